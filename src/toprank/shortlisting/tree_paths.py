"""Reasons of a single ranking tree: the splits on the way to the leaf of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.rule import Rule

__all__ = ["has_paths", "path_reasons"]


def has_paths(model: Any) -> bool:
    """Whether the model is one ranking tree whose splits can be written as rules."""
    rules = getattr(getattr(model, "tree_", None), "rules", None)
    return hasattr(model, "apply") and type(rules).__name__ == "LeafRankRules"


def path_reasons(model: Any, X: Any, n: int, raising_only: bool) -> list[list[str]]:
    """For each row the conditions on its way to the leaf, by how much they change the share of positives.

    A split sends a union of cells to each side; of it, the cell that holds the row is named.
    """
    from toprank.trees.reading import side_rules

    leaves = model.apply(X)
    tree = model.tree_
    texts: list[list[str]] = [[] for _ in range(len(leaves))]
    for leaf in np.unique(leaves):
        rows = np.flatnonzero(leaves == leaf)
        found: list[tuple[float, int, np.ndarray, str, Rule]] = []
        for depth, (parent, child) in enumerate(_path(tree, int(leaf))):
            change = _share(tree, child) - _share(tree, parent)
            goes_left = int(tree.left[parent] == child)
            words = _change(tree, parent, child)
            exact = side_rules(model, parent, goes_left)
            shown = side_rules(model, parent, goes_left, mention_missing=False)
            found += [
                (change, depth, _mask(rule, model, X, rows), words, short)
                for rule, short in zip(exact, shown, strict=True)
                if len(short)
            ]
        found.sort(key=lambda one: (-one[0] if raising_only else -abs(one[0]), one[1]))
        for change, _, covered, words, rule in found:
            if change == 0 or (raising_only and change < 0):
                continue
            for row in rows[covered]:
                if len(texts[row]) < n:
                    texts[row].append(f"{rule} {words}")
    return texts


def _path(tree: Any, leaf: int) -> list[tuple[int, int]]:
    """Pairs of parent and child from the root to a leaf."""
    steps = []
    node = leaf
    while node > 0:
        parent = int(np.flatnonzero((tree.left == node) | (tree.right == node))[0])
        steps.append((parent, node))
        node = parent
    return steps[::-1]


def _mask(rule: Rule, model: Any, X: Any, rows: np.ndarray) -> np.ndarray:
    from toprank.shortlisting.cross_fit import take_rows

    part = take_rows(X, rows)
    if getattr(model, "columns_", None) is not None and not hasattr(part, "columns"):
        import pandas as pd

        part = pd.DataFrame(np.asarray(part), columns=list(model.columns_.names))
    return rule.mask(part)


def _share(tree: Any, node: int) -> float:
    """Share of positives in a node."""
    return float(tree.weights[node, 0] / tree.weights[node].sum())


def _change(tree: Any, parent: int, child: int) -> str:
    before, after = _share(tree, parent), _share(tree, child)
    verb = "raises" if after > before else "lowers"
    return f"{verb} the share of positives from {100 * before:.3g}% to {100 * after:.3g}%"
