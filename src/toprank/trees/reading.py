"""Reading a ranking tree: its regions as rules and SQL, text, pictures, and what each column gained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank.binning import MISSING, N_BINS, OTHER, Bins
from toprank.rule import Literal, Rule
from toprank.trees._kernels import FEATURE, MISSING_FIRST, THRESHOLD
from toprank.trees.leafrank import FIRST, SECOND, SIDE, LeafRankRules, cut_gains
from toprank.trees.tree import RankTree

__all__ = [
    "Region",
    "auc_gained",
    "export_text",
    "leaf_region",
    "leaf_rules",
    "plot_roc",
    "plot_tree",
    "roc_vertices",
    "side_rules",
]

BOX_PADDING = 0.3  # around the text of a node, in parts of its size

Box = dict[int, np.ndarray]  # for some columns a mask over the 256 bytes that are allowed


@dataclass(frozen=True, slots=True)
class Region:
    """Rows that meet every part; a part is met when any of its rules is.

    A split of a ranking tree sends a union of cells to each side, so the path to a leaf is a conjunction
    of unions. With one rule in each part it is a plain `Rule` (see `rule`).

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.rule import Literal, Rule
    >>> high, low = Rule((Literal("x0", ">", 5.0),)), Rule((Literal("x0", "<=", 1.0),))
    >>> region = Region(((high, low), (Rule((Literal("x1", ">", 0.0),)),)))
    >>> print(region)
    (x0 > 5 or x0 <= 1) and x1 > 0
    >>> region.mask(np.array([[6.0, 1.0], [3.0, 1.0]])).tolist()
    [True, False]
    >>> print(region.sql())
    ("x0" > 5.0e0 OR "x0" <= 1.0e0) AND "x1" > 0.0e0
    """

    parts: tuple[tuple[Rule, ...], ...] = ()

    def mask(self, table: Any) -> np.ndarray:
        """Return which rows of a table or array the region covers."""
        covered = Rule().mask(table)
        for rules in self.parts:
            covered &= np.logical_or.reduce([rule.mask(table) for rule in rules])
        return covered

    def sql(self, *, table: str | None = None, dialect: str | None = None) -> str:
        """Return the region as an SQL condition (`TRUE` if it covers every row), as `Rule.sql` does."""
        parts = [[rule.sql(table=table, dialect=dialect) for rule in rules] for rules in self.parts]
        return _join(parts, " OR ", " AND ") or "TRUE"

    @property
    def rule(self) -> Rule:
        """Return the region as one conjunction, if it is one."""
        if any(len(rules) != 1 for rules in self.parts):
            raise ValueError(
                "this region is a union of cells, not one conjunction; toprank.trees.leaf_rules "
                "gives its conjunctions, and leafrank_depth=1 grows leaves that are one"
            )
        return Rule(tuple(literal for (rule,) in self.parts for literal in rule.literals))

    def __len__(self) -> int:
        return len(self.parts)

    def __str__(self) -> str:
        parts = [list(map(str, rules)) for rules in self.parts]
        return _join(parts, " or ", " and ") or "every row"


def _join(parts: list[list[str]], either: str, both: str) -> str:
    """Join the parts, alternatives in brackets where there are several."""
    return both.join(f"({either.join(rules)})" if len(rules) > 1 else rules[0] for rules in parts)


def leaf_region(model: Any, leaf: int, *, mention_missing: bool = True) -> Region:
    """Return the rows of one leaf, as a region that prints, covers rows and gives SQL.

    Parameters
    ----------
    model : TreeRank
        Fitted, with LeafRank as its splitting rule.
    leaf : int
        A node of `model.tree_`, such as `model.apply(X)` returns; inner nodes work too.
    mention_missing : bool, default=True
        Whether the rule says where missing cells go in columns that had none in training.

    Returns
    -------
    Region
        One part for each split on the path; each part is met when any of its rules is.

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.trees import leaf_region
    >>> tree = TreeRank(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> best = tree.tree_.leaves[0]
    >>> print(leaf_region(tree, best, mention_missing=False).sql())
    "x0" > 2.5e0
    """
    path = _path(model, leaf)
    return Region(tuple(side_rules(model, *step, mention_missing=mention_missing) for step in path))


def leaf_rules(
    model: Any, leaf: int, *, mention_missing: bool = True, max_rules: int = 1000
) -> tuple[Rule, ...]:
    """Return the rows of one leaf as conjunctions, of which each of its rows meets exactly one.

    Parameters
    ----------
    model : TreeRank
        Fitted, with LeafRank as its splitting rule.
    leaf : int
        A node of `model.tree_`; inner nodes work too.
    mention_missing : bool, default=True
        Whether a rule says where missing cells go in columns that had none in training.
    max_rules : int, default=1000
        Most rules. Their number can grow with the product of the cells on the path; `leaf_region`, which
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
    for parent, goes_left in _path(model, leaf):
        cells = _side_boxes(model, parent, goes_left)
        shared = (_intersect(model, box, cell) for box in boxes for cell in cells)
        boxes = [box for box in shared if box is not None]
        if len(boxes) > max_rules:
            raise ValueError(
                f"node {leaf} needs more than max_rules={max_rules} rules; use leaf_region, or a "
                "smaller leafrank_depth"
            )
    return tuple(_rule(model, box, mention_missing) for box in boxes)


def side_rules(
    model: Any, node: int, goes_left: int = 1, *, mention_missing: bool = True
) -> tuple[Rule, ...]:
    """Return the cells of a node that go to one side, as rules of which a row meets exactly one."""
    boxes = _side_boxes(model, node, goes_left)
    return tuple(_rule(model, box, mention_missing) for box in boxes)


def _path(model: Any, leaf: int) -> list[tuple[int, bool]]:
    """Return the splits from the root to a node, and whether the path goes left at each."""
    check_is_fitted(model)
    tree = model.tree_
    if not isinstance(tree.rules, LeafRankRules):
        raise ValueError("only trees split by LeafRank can be written as rules")
    if not 0 <= leaf < tree.n_nodes:
        raise ValueError(f"the tree has nodes 0 to {tree.n_nodes - 1}, there is no {leaf}")
    return tree.path(int(leaf))


def _side_boxes(model: Any, node: int, goes_left: int) -> list[Box]:
    """Return the cells of a node that go to one side, as the bytes that each column may have."""
    cells, _, bits = model.tree_.rules.split_cells(int(model.tree_.rule[node]))
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
            shared = _intersect(model, box, {feature: mask})
            if shared is not None:
                pending.append((int(cells[cell, part]), shared))
    return boxes


def _intersect(model: Any, box: Box, other: Box) -> Box | None:
    """Return what two boxes share, None if that is nothing."""
    shared = dict(box)
    for column, mask in other.items():
        both = shared[column] & mask if column in shared else mask
        if not (both[_present_bytes(model, column)].any() or both[MISSING]):
            return None
        shared[column] = both
    return shared


def _present_bytes(model: Any, column: int) -> np.ndarray:
    """Return the bytes of cells that are present: all bins of numbers in turn, or that of each category."""
    cuts, values = model.space_.cuts[column], model.columns_.categories[column]
    if values is None:
        return np.arange(len(cuts) + 1)
    codes = np.full(len(values), OTHER)
    codes[cuts.astype(np.int64)] = np.arange(len(cuts))
    return model.category_bytes_[column][codes]


def _first_bytes(cell: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """Return a mask over the 256 bytes of those in the first part of a cut."""
    if cell[THRESHOLD] < 0:
        return np.unpackbits(bits, bitorder="little").astype(bool)
    first = np.arange(N_BINS) <= cell[THRESHOLD]
    first[MISSING] = cell[MISSING_FIRST] == 1
    return first


def _rule(model: Any, box: Box, mention_missing: bool) -> Rule:
    """Return a cell as a conjunction, from the bytes that each column may have."""
    literals: list[Literal] = []
    bins: Bins = model.space_
    for column, mask in box.items():
        name, values = model.columns_.names[column], model.columns_.categories[column]
        present = mask[_present_bytes(model, column)]
        missing = bool(mask[MISSING])
        if not mention_missing and not bins.has_missing[column]:
            missing = bool(present.all())
        if values is None:
            literals += _number_literals(name, bins.cuts[column], present, missing)
        else:
            literals += _category_literals(name, values, present, missing)
    return Rule(tuple(literals))


def _number_literals(
    name: str, cuts: np.ndarray, present: np.ndarray, missing: bool
) -> list[Literal]:
    """Return the literals of an interval of bins; `present` says which bins are in it."""
    inside = np.flatnonzero(present)  # an interval: every cut keeps one side of a threshold
    if not len(inside):
        return [Literal(name, "is missing")]
    if len(inside) == len(present):
        return [] if missing else [Literal(name, "is present")]
    literals = []
    if inside[0] > 0:
        literals.append(Literal(name, ">", float(cuts[inside[0] - 1]), or_missing=missing))
    if inside[-1] < len(cuts):
        literals.append(Literal(name, "<=", float(cuts[inside[-1]]), or_missing=missing))
    return literals


def _category_literals(
    name: str, values: np.ndarray, present: np.ndarray, missing: bool
) -> list[Literal]:
    """Return the literals of a set of categories; with missing cells go categories never seen."""
    listed = values[~present if missing else present].tolist()
    if not listed:
        return [] if missing else [Literal(name, "is missing")]
    if len(listed) == 1:
        return [Literal(name, "!=" if missing else "=", listed[0], or_missing=missing)]
    return [Literal(name, "not in" if missing else "in", tuple(listed), or_missing=missing)]


# -- importance, text and figures ------------------------------------------------------------------


def auc_gained(tree: RankTree, n_columns: int) -> np.ndarray:
    """Return the AUC that the cuts on each column gained; the sum is the training AUC - 1/2.

    A split of node C adds TPR_C FPR_C (tpr - fpr) / 2 to the AUC, with tpr and fpr the shares of the node
    that go left, and tpr - fpr is the sum of the gains of LeafRank's cuts.
    """
    importance = np.zeros(n_columns)
    node_share = tree.rates.prod(axis=1)
    for node in np.flatnonzero(~tree.is_leaf):
        cells, weights, _ = tree.rules.split_cells(int(tree.rule[node]))
        gain = cut_gains(cells, weights, weights[0, 0], weights[0, 1])
        cut = cells[:, FEATURE] >= 0
        np.add.at(importance, cells[cut, FEATURE], node_share[node] * gain[cut])
    return importance


def roc_vertices(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the training ROC curve of a tree, from (0, 0) to (1, 1), one for each leaf.

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
    corners = np.vstack([np.zeros(2), np.cumsum(tree.rates[tree.leaves], axis=0)])
    corners[-1] = 1.0
    return corners[:, 1], corners[:, 0]


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
    rates = _rate_texts(tree, decimals)
    pending = [(0, "")]
    while pending:
        node, side = pending.pop()
        depth = int(tree.depth[node])
        head = f"{'|   ' * (depth - 1)}|-- {side}: " if side else ""
        head += f"{', '.join(rates[node])}: "
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
                f"{'|   ' * depth}{'left where' if k == 0 else '        or'} {rule}"
                for k, rule in enumerate(shown)
            ]
        pending += [(int(tree.right[node]), "right"), (int(tree.left[node]), "left")]
    return "\n".join(lines)


def _rate_texts(tree: RankTree, decimals: int) -> list[tuple[str, str]]:
    """Return what texts and pictures say of the rates of each node."""
    return [(f"TPR {tpr:.{decimals}f}", f"FPR {fpr:.{decimals}f}") for tpr, fpr in tree.rates]


def plot_tree(
    model: Any,
    *,
    max_depth: int | None = None,
    decimals: int = 2,
    fontsize: float | None = None,
    ax: Any = None,
) -> list[Any]:
    """Draw a ranking tree, the best leaf on the left.

    Each node shows its TPR and FPR (its share of all positives and negatives) and what its split adds
    to the AUC; a leaf shows its score. The colour tells whether positives or negatives are
    over-represented.

    Parameters
    ----------
    model : TreeRank
        Fitted.
    max_depth : int, optional
        Deepest level shown.
    decimals : int, default=2
    fontsize : float, optional
        By default, on each level, as large as keeps nodes apart, at most matplotlib's own.
    ax : matplotlib Axes, optional

    Returns
    -------
    list of matplotlib Annotation
        One for each node shown.

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.trees import plot_tree
    >>> tree = TreeRank(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> len(plot_tree(tree))
    3
    """
    import matplotlib.pyplot as plt

    check_is_fitted(model)
    tree: RankTree = model.tree_
    if ax is None:
        ax = plt.gca()
    ax.set_axis_off()
    deepest = int(tree.depth.max()) if max_depth is None else max_depth
    shown = np.flatnonzero(tree.depth <= deepest)
    across = _horizontal_positions(tree, deepest)
    purity = tree.rates[:, 0] / np.maximum(tree.rates.sum(axis=1), 1e-300)
    colours = plt.get_cmap("coolwarm")(0.2 + 0.6 * purity)
    for node in shown:
        for child in (tree.left[node], tree.right[node]):
            if child >= 0 and tree.depth[child] <= deepest:
                ends = [across[node], across[child]], [-tree.depth[node], -tree.depth[child]]
                ax.plot(*ends, color="0.6", linewidth=1, zorder=1)
    labels = _labels(tree, decimals)
    box = {"boxstyle": f"round,pad={BOX_PADDING}", "edgecolor": "0.4"}
    notes = [
        ax.annotate(
            labels[node],
            (across[node], -float(tree.depth[node])),
            ha="center",
            va="center",
            fontsize=fontsize,
            bbox={**box, "facecolor": colours[node]},
        )
        for node in shown
    ]
    ax.set_xlim(across[shown].min() - 0.6, across[shown].max() + 0.6)
    ax.set_ylim(-min(deepest, int(tree.depth.max())) - 0.5, 0.5)
    if fontsize is None:
        _fit_text(ax, notes, across[shown], tree.depth[shown])
    return notes


def plot_roc(model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """Draw the training ROC curve of a tree with its vertices, one for each leaf.

    Parameters
    ----------
    model : TreeRank
        Fitted.
    X, y : array-like, optional
        Rows and labels whose ROC curve is drawn beside it.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from toprank import TreeRank
    >>> from toprank.trees import plot_roc
    >>> tree = TreeRank(max_depth=1).fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> plot_roc(tree).get_xlabel()
    'False positive rate'
    """
    import matplotlib.pyplot as plt
    from sklearn.metrics import roc_curve

    if ax is None:
        ax = plt.gca()
    false_positive_rate, true_positive_rate = roc_vertices(model)
    area = 0.5 + model.tree_.gains().sum()
    ax.plot(
        false_positive_rate, true_positive_rate, marker="o", markersize=4,
        label=f"training, {len(false_positive_rate) - 1} leaves (AUC {area:.3f})",
    )  # fmt: skip
    if X is not None:
        from toprank.metrics import roc_auc

        positive = np.asarray(y) == model.classes_[1]
        scores = model.decision_function(X)
        curve = roc_curve(positive, scores, drop_intermediate=False)
        ax.plot(curve[0], curve[1], label=f"rows given (AUC {roc_auc(positive, scores):.3f})")
    ax.plot([0, 1], [0, 1], linestyle=":", color="0.5")
    ax.set_xlabel("False positive rate")
    ax.set_ylabel("True positive rate")
    ax.legend(loc="lower right")
    return ax


def _horizontal_positions(tree: RankTree, deepest: int) -> np.ndarray:
    """Return the horizontal position of each node: the ends of the tree as shown in turn, parents half-way."""
    ends = np.flatnonzero((tree.depth == deepest) | (tree.is_leaf & (tree.depth < deepest)))
    across = np.zeros(tree.n_nodes)
    order = np.argsort(tree.position[ends] / 2.0 ** tree.depth[ends])
    across[ends[order]] = np.arange(len(ends))
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.left[node] >= 0 and tree.depth[node] < deepest:
            across[node] = (across[tree.left[node]] + across[tree.right[node]]) / 2
    return across


def _labels(tree: RankTree, decimals: int) -> list[str]:
    """Return the text of each node: its rates, and the gain of its split or, for a leaf, its score."""
    gains, scores = tree.gains(), tree.scores
    return [
        "\n".join((*rates, f"score {score:g}" if leaf else f"AUC +{gain:.{decimals}f}"))
        for rates, leaf, score, gain in zip(
            _rate_texts(tree, decimals), tree.is_leaf, scores, gains, strict=True
        )
    ]


def _fit_text(ax: Any, notes: list[Any], across: np.ndarray, depth: np.ndarray) -> None:
    """Shrink the text of each level until neighbours on it, and levels, keep apart."""
    (left, bottom), (right, top) = ax.transData.transform([(0, 0), (1, 1)])
    points = 72 / ax.figure.dpi
    for level in np.unique(depth):
        members = np.flatnonzero(depth == level)
        boxes = [notes[k].get_window_extent() for k in members]
        size = notes[members[0]].get_fontsize()
        padding = 2 * BOX_PADDING * size / points
        width = max(box.width for box in boxes) + padding
        height = max(box.height for box in boxes) + padding
        gap = float(np.diff(np.sort(across[members])).min(initial=np.inf))
        room = min(1.0, 0.95 * gap * (right - left) / width, 0.8 * (top - bottom) / height)
        for k in members:
            notes[k].set_fontsize(room * size)
