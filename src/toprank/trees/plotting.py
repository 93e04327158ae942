"""Pictures of a ranking tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from toprank.trees.reading import roc_vertices
from toprank.trees.tree import RankTree

__all__ = ["plot_roc", "plot_tree"]

BOX_PADDING = 0.3  # of the size of the text


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
    across = _places(tree, deepest)
    share = tree.weights / tree.weights[0]
    purity = share[:, 0] / np.maximum(share.sum(axis=1), 1e-300)
    colours = plt.get_cmap("coolwarm")(0.2 + 0.6 * purity)
    _draw_edges(ax, tree, shown, across, deepest)
    labels = _labels(tree, decimals)
    notes = [
        ax.annotate(
            labels[node],
            (across[node], -float(tree.depth[node])),
            ha="center",
            va="center",
            fontsize=fontsize,
            bbox={
                "boxstyle": f"round,pad={BOX_PADDING}",
                "facecolor": colours[node],
                "edgecolor": "0.4",
            },
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


def _draw_edges(
    ax: Any, tree: RankTree, shown: np.ndarray, across: np.ndarray, deepest: int
) -> None:
    """A line from each node to its children."""
    for node in shown:
        for child in (tree.left[node], tree.right[node]):
            if child >= 0 and tree.depth[child] <= deepest:
                ends = [across[node], across[child]], [-tree.depth[node], -tree.depth[child]]
                ax.plot(*ends, color="0.6", linewidth=1, zorder=1)


def _places(tree: RankTree, deepest: int) -> np.ndarray:
    """Horizontal place of each node: ends of the tree as shown side by side, parents half-way."""
    ends = np.flatnonzero((tree.depth == deepest) | (tree.is_leaf & (tree.depth < deepest)))
    across = np.zeros(tree.n_nodes)
    order = np.argsort(tree.position[ends] / 2.0 ** tree.depth[ends])
    across[ends[order]] = np.arange(len(ends))
    for node in range(tree.n_nodes - 1, -1, -1):
        if tree.left[node] >= 0 and tree.depth[node] < deepest:
            across[node] = (across[tree.left[node]] + across[tree.right[node]]) / 2
    return across


def _labels(tree: RankTree, decimals: int) -> list[str]:
    """What each node says: its rates, and the gain of its split or, for a leaf, its score."""
    rates, gains, scores = tree.weights / tree.weights[0], tree.gains(), tree.scores
    last = [
        f"score {scores[node]:g}" if leaf else f"AUC +{gains[node]:.{decimals}f}"
        for node, leaf in enumerate(tree.is_leaf)
    ]
    return [
        f"TPR {tpr:.{decimals}f}\nFPR {fpr:.{decimals}f}\n{end}"
        for (tpr, fpr), end in zip(rates, last, strict=True)
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
