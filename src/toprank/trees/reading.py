"""Reading a ranking tree: text, pictures, what each column gained, and the rule of a leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank.rule import Literal, Rule
from toprank.trees.binning import MISSING, Bins
from toprank.trees.leafrank import (
    FEATURE,
    FIRST,
    MISSING_FIRST,
    SECOND,
    SIDE,
    THRESHOLD,
    LeafRankRules,
    cut_gains,
)
from toprank.trees.region import Region
from toprank.trees.tree import RankTree

__all__ = [
    "auc_gained",
    "export_text",
    "leaf_region",
    "leaf_rules",
    "roc_vertices",
    "side_rules",
]

Box = dict[int, np.ndarray]  # for some columns a mask over the 256 bytes that are allowed


def auc_gained(tree: RankTree, n_columns: int) -> np.ndarray:
    """The AUC that the cuts on each column gained; the sum is the training AUC - 1/2.

    A split of node C adds TPR_C FPR_C (tpr - fpr) / 2 to the AUC, with tpr and fpr the shares of the node
    that go left, and tpr - fpr is the sum of the gains of LeafRank's cuts.
    """
    importance = np.zeros(n_columns)
    rates = tree.weights / tree.weights[0]
    for node in np.flatnonzero(~tree.is_leaf):
        cells, weights, _ = _node_cells(tree.rules, int(tree.rule[node]))
        gain = cut_gains(cells, weights, weights[0, 0], weights[0, 1])
        cut = cells[:, FEATURE] >= 0
        np.add.at(importance, cells[cut, FEATURE], rates[node].prod() * gain[cut])
    return importance


def roc_vertices(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the training ROC curve of a tree, one for each leaf, from (0, 0) to (1, 1).

    Parameters
    ----------
    model : TreeRank
        Fitted.

    Returns
    -------
    false_positive_rate, true_positive_rate : ndarray of shape (n_leaves_ + 1,)

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.trees import roc_vertices
    >>> tree = TreeRank(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> roc_vertices(tree)[1].tolist()
    [0.0, 1.0, 1.0]
    """
    check_is_fitted(model)
    tree = model.tree_
    rates = tree.weights[tree.leaves] / tree.weights[0]
    corners = np.vstack([np.zeros(2), np.cumsum(rates, axis=0)])
    corners[-1] = 1.0
    return corners[:, 1], corners[:, 0]


def leaf_region(model: Any, leaf: int, *, mention_missing: bool = True) -> Region:
    """The rows of one leaf, as a rule that prints, covers rows and gives SQL.

    Parameters
    ----------
    model : TreeRank
        Fitted, with LeafRank as its splitting rule.
    leaf : int
        A node of `model.tree_`, such as `model.apply(X)` gives; an inner node will do as well.
    mention_missing : bool, default=True
        Whether the rule says where missing cells go in columns that had none in training.

    Returns
    -------
    Region
        One part for each split on the way; each part is met when any of its rules is.

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.trees import leaf_region
    >>> tree = TreeRank(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> best = tree.tree_.leaves[0]
    >>> print(leaf_region(tree, best, mention_missing=False).sql())
    "x0" > 2.5e0
    """
    parts = [
        side_rules(model, parent, goes_left, mention_missing=mention_missing)
        for parent, goes_left in _way(model, leaf)
    ]
    return Region(tuple(parts))


def leaf_rules(
    model: Any, leaf: int, *, mention_missing: bool = True, max_rules: int = 1000
) -> tuple[Rule, ...]:
    """The rows of one leaf as conjunctions, of which each of its rows meets exactly one.

    Parameters
    ----------
    model : TreeRank
        Fitted, with LeafRank as its splitting rule.
    leaf : int
        A node of `model.tree_`; an inner node will do as well.
    mention_missing : bool, default=True
        Whether a rule says where missing cells go in columns that had none in training.
    max_rules : int, default=1000
        Most rules. Their number can grow with the product of the cells on the way; `leaf_region`, which
        does not multiply them out, has no such limit.

    Returns
    -------
    tuple of Rule

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.trees import leaf_rules
    >>> tree = TreeRank(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [1, 0, 0, 1])
    >>> for rule in leaf_rules(tree, tree.tree_.leaves[0], mention_missing=False):
    ...     print(rule)
    x0 <= 1.5
    x0 > 3.5
    """
    boxes: list[Box] = [{}]
    for parent, goes_left in _way(model, leaf):
        cells = _side_boxes(model, parent, goes_left)
        met = (_meet(model.space_, box, cell) for box in boxes for cell in cells)
        boxes = [box for box in met if box is not None]
        if len(boxes) > max_rules:
            raise ValueError(
                f"node {leaf} needs more than max_rules={max_rules} rules; use leaf_region, or a "
                "smaller leafrank_depth"
            )
    return tuple(_rule(model, box, mention_missing) for box in boxes)


def side_rules(
    model: Any, node: int, goes_left: int = 1, *, mention_missing: bool = True
) -> tuple[Rule, ...]:
    """The cells of a node that go to one side, as rules of which a row meets exactly one."""
    boxes = _side_boxes(model, node, goes_left)
    return tuple(_rule(model, box, mention_missing) for box in boxes)


def _way(model: Any, leaf: int) -> list[tuple[int, int]]:
    """From the root to a node: each node that is split, and whether the way goes left there."""
    check_is_fitted(model)
    tree = model.tree_
    if not isinstance(tree.rules, LeafRankRules):
        raise ValueError("only trees split by LeafRank can be written as rules")
    if not 0 <= leaf < tree.n_nodes:
        raise ValueError(f"the tree has nodes 0 to {tree.n_nodes - 1}, there is no {leaf}")
    steps = []
    node = int(leaf)
    while node > 0:
        parent = int(np.flatnonzero((tree.left == node) | (tree.right == node))[0])
        steps.append((parent, int(tree.left[parent] == node)))
        node = parent
    return steps[::-1]


def _side_boxes(model: Any, node: int, goes_left: int) -> list[Box]:
    """The cells of a node that go to one side, as the bytes that each column may have."""
    cells, _, bits = _node_cells(model.tree_.rules, int(model.tree_.rule[node]))
    boxes: list[Box] = []
    pending: list[tuple[int, Box]] = [(0, {})]
    while pending:
        cell, box = pending.pop()
        feature = int(cells[cell, FEATURE])
        if feature < 0:
            if cells[cell, SIDE] == goes_left:
                boxes.append(box)
            continue
        first = _first_bytes(cells[cell], bits[cell] if len(bits) > 1 else bits[0])
        for part, mask in ((SECOND, ~first), (FIRST, first)):
            smaller = _meet(model.space_, box, {feature: mask})
            if smaller is not None:
                pending.append((int(cells[cell, part]), smaller))
    return boxes


def _meet(bins: Bins, box: Box, other: Box) -> Box | None:
    """What two boxes share, None if that is nothing."""
    shared = dict(box)
    for column, mask in other.items():
        both = shared[column] & mask if column in shared else mask
        if not (both[: bins.n_bins[column]].any() or both[MISSING]):
            return None
        shared[column] = both
    return shared


def export_text(
    model: Any, *, max_depth: int | None = None, decimals: int = 3, rules: bool = True
) -> str:
    """Write a ranking tree as text, the better side of each node first.

    Parameters
    ----------
    model : TreeRank
        Fitted.
    max_depth : int, optional
        Deepest level shown.
    decimals : int, default=3
    rules : bool, default=True
        Whether to write which rows go left (LeafRank only).

    Returns
    -------
    str

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.trees import export_text
    >>> tree = TreeRank(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> print(export_text(tree))
    TPR 1.000, FPR 1.000: split gains 0.500 of AUC
    left where x0 > 2.5
    |-- left: TPR 1.000, FPR 0.000: leaf 1, score 2
    |-- right: TPR 0.000, FPR 1.000: leaf 2, score 1
    """
    check_is_fitted(model)
    tree, lines = model.tree_, []
    gains, scores = tree.gains(), tree.scores
    rates = tree.weights / tree.weights[0]
    pending = [(0, "")]
    while pending:
        node, side = pending.pop()
        depth = int(tree.depth[node])
        indent, inner = "|   " * max(0, depth - 1), "|   " * depth
        head = f"{indent}|-- {side}: " if side else ""
        head += f"TPR {rates[node, 0]:.{decimals}f}, FPR {rates[node, 1]:.{decimals}f}: "
        if tree.left[node] < 0:
            lines.append(f"{head}leaf {node}, score {scores[node]:g}")
            continue
        lines.append(f"{head}split gains {gains[node]:.{decimals}f} of AUC")
        if max_depth is not None and depth >= max_depth:
            lines[-1] += " (not shown)"
            continue
        if rules and isinstance(tree.rules, LeafRankRules):
            shown = side_rules(model, node, mention_missing=False)
            lines += [
                f"{inner}{'left where' if k == 0 else '        or'} {rule}"
                for k, rule in enumerate(shown)
            ]
        pending += [(int(tree.right[node]), "right"), (int(tree.left[node]), "left")]
    return "\n".join(lines)


def _node_cells(rules: LeafRankRules, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of one split, numbered from 0, their class weights and their sets of bytes."""
    begin = rules.roots[number]
    end = rules.roots[number + 1] if number + 1 < len(rules.roots) else len(rules.cells)
    cells = rules.cells[begin:end].copy()
    cells[cells[:, FEATURE] >= 0, FIRST : SECOND + 1] -= begin
    bits = rules.bits[begin:end] if len(rules.bits) > 1 else rules.bits
    return cells, rules.weights[begin:end], bits


def _first_bytes(cell: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Mask over the 256 bytes of those in the first part of a cut."""
    if cell[THRESHOLD] < 0:
        return np.unpackbits(bits, bitorder="little").astype(bool)
    first = np.arange(256) <= cell[THRESHOLD]
    first[MISSING] = cell[MISSING_FIRST] == 1
    return first


def _rule(model: Any, box: Box, mention_missing: bool) -> Rule:
    """A cell as a conjunction, from the bytes that each column may have."""
    literals: list[Literal] = []
    bins: Bins = model.space_
    for column, mask in box.items():
        name = model.columns_.names[column]
        if not mention_missing and not bins.has_missing[column]:
            mask = mask.copy()
            mask[MISSING] = mask[: bins.n_bins[column]].all()
        values = model.columns_.categories[column]
        if values is None:
            literals += _number_literals(name, bins, column, mask)
        else:
            literals += _category_literals(name, bins, column, mask, values)
    return Rule(tuple(literals))


def _number_literals(name: str, bins: Bins, column: int, mask: np.ndarray) -> list[Literal]:
    n_bins, missing = int(bins.n_bins[column]), bool(mask[MISSING])
    inside = np.flatnonzero(mask[:n_bins])  # an interval: every cut keeps one side of a threshold
    if not len(inside):
        return [Literal(name, "is missing")]
    if len(inside) == n_bins:
        return [] if missing else [Literal(name, "is present")]
    cuts, literals = bins.table(column), []
    if inside[0] > 0:
        literals.append(Literal(name, ">", float(cuts[inside[0] - 1]), or_missing=missing))
    if inside[-1] < n_bins - 1:
        literals.append(Literal(name, "<=", float(cuts[inside[-1]]), or_missing=missing))
    return literals


def _category_literals(
    name: str, bins: Bins, column: int, mask: np.ndarray, values: np.ndarray
) -> list[Literal]:
    """A set of categories; where missing cells belong to it, so do categories never seen."""
    missing = bool(mask[MISSING])
    listed = values[bins.codes_in_bins(column, ~mask if missing else mask)].tolist()
    if not listed:
        return [] if missing else [Literal(name, "is missing")]
    if len(listed) == 1:
        return [Literal(name, "!=" if missing else "=", listed[0], or_missing=missing)]
    return [Literal(name, "not in" if missing else "in", tuple(listed), or_missing=missing)]
