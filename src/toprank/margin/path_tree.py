"""Decision trees as arrays, and the paths that rows take through them.

The tree of Rao & Acharyya (2020), section 4: its root splits on a linear score, each side is balanced by
SMOTE on its own and gets a tree of its own. Nodes are numbered level by level, left before right, so
that the edge into node k is column k - 1 of the full embedding, as in figure 2 of the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from toprank.margin._tree_kernels import bin_columns, grow_tree

__all__ = ["PathTree", "TreeOptions", "grow", "oversample", "paths"]

_MINORITY_BLOCK = 4000
"""Rows of the rarer class that SMOTE searches for neighbours at a time: its cost is their square."""
_SMALL = 1000


@dataclass(frozen=True)
class TreeOptions:
    """How a tree is grown (see `TreePathEmbedding`)."""

    max_depth: int | None
    min_samples_leaf: int
    smote_neighbors: int


@dataclass(frozen=True)
class PathTree:
    """A binary tree, its nodes numbered level by level.

    Attributes
    ----------
    feature : ndarray of int
        Column each node splits on; -1 for a leaf.
    threshold : ndarray of float
        A row goes left when its cell is at most this.
    left, right : ndarray of int
        Children; -1 for a leaf.
    sign : ndarray of int
        +1 for a leaf of the positive class, -1 for one of the negative class, 0 for other nodes.
    sampling : tuple of str
        How the classes of each side were balanced.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sign: np.ndarray
    sampling: tuple[str, ...] = ()

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def depth(self) -> int:
        """Number of edges on the longest path."""
        levels = np.zeros(self.n_nodes, dtype=np.int64)
        for node in range(self.n_nodes):
            if self.left[node] >= 0:
                levels[[self.left[node], self.right[node]]] = levels[node] + 1
        return int(levels.max())

    def edges(self, frugal: bool) -> np.ndarray:
        """The nodes whose incoming edge is a column: all but the root, or only left children."""
        return np.sort(self.left[self.left >= 0]) if frugal else np.arange(1, self.n_nodes)

    def leaf_of(self, rows: np.ndarray) -> np.ndarray:
        """The leaf each row ends in."""
        return _leaves(_rows(rows), self.feature, self.threshold, self.left, self.right)


def paths(tree: PathTree, rows: np.ndarray, frugal: bool = True) -> sparse.csr_array:
    """Signed path vectors: +1 or -1, by the class of the leaf, on the edges a row passes.

    Examples
    --------
    >>> import numpy as np
    >>> stump = PathTree(*map(np.array, ([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, -1, 1])))
    >>> paths(stump, np.array([[0.0], [1.0]]), frugal=False).toarray().tolist()
    [[-1.0, 0.0], [0.0, 1.0]]
    """
    kept = tree.edges(frugal)
    column = np.full(tree.n_nodes, -1, dtype=np.int64)
    column[kept] = np.arange(len(kept))
    values, columns, starts = _paths(
        _rows(rows), tree.feature, tree.threshold, tree.left, tree.right, tree.sign, column,
        max(tree.depth, 1),
    )  # fmt: skip
    out = sparse.csr_array((values, columns, starts), shape=(len(rows), len(kept)))
    out.sort_indices()
    return out


def _rows(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows, dtype=np.float64)


@njit(cache=True, nogil=True)
def _leaves(rows, feature, threshold, left, right):
    leaves = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        node = 0
        while feature[node] >= 0:
            node = left[node] if rows[i, feature[node]] <= threshold[node] else right[node]
        leaves[i] = node
    return leaves


@njit(cache=True, nogil=True)
def _paths(rows, feature, threshold, left, right, sign, column, depth):
    n = len(rows)
    values = np.empty(n * depth)
    columns = np.empty(n * depth, np.int64)
    starts = np.zeros(n + 1, np.int64)
    k = 0
    for i in range(n):
        node = 0
        while feature[node] >= 0:
            node = left[node] if rows[i, feature[node]] <= threshold[node] else right[node]
            if column[node] >= 0:
                columns[k] = column[node]
                k += 1
        for place in range(starts[i], k):
            values[place] = sign[node]
        starts[i + 1] = k
    return values[:k].copy(), columns[:k].copy(), starts


def grow(rows: Any, positive: np.ndarray, options: TreeOptions, random_state: int) -> PathTree:
    """Grow the tree: the root on the last column, SMOTE and a tree on each side.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n_rows, n_columns + 1)
        The columns, and the linear score as the last.
    positive : ndarray of bool
    options : TreeOptions
    random_state : int
    """
    score = rows[:, [-1]]
    score = score.toarray() if sparse.issparse(score) else score
    cut = _best_cut(score, positive)
    if cut is None:
        subtree, used = _grow_side(rows, positive, options, random_state, options.max_depth)
        return _by_level([subtree], None, rows.shape[1] - 1, (used,))
    right = score.ravel() > cut
    depth = None if options.max_depth is None else options.max_depth - 1
    sides, sampling = [], []
    for side in (~right, right):
        subtree, used = _grow_side(rows[side], positive[side], options, random_state, depth)
        sides.append(subtree)
        sampling.append(used)
    return _by_level(sides, cut, rows.shape[1] - 1, tuple(sampling))


def _best_cut(score: np.ndarray, positive: np.ndarray) -> float | None:
    """The split of the score that separates the classes best, None if it is constant."""
    from sklearn.tree import DecisionTreeClassifier

    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(score, positive).tree_
    return float(stump.threshold[0]) if stump.node_count == 3 else None


def _grow_side(
    rows: Any, positive: np.ndarray, options: TreeOptions, random_state: int, depth: int | None
) -> tuple[Any, str]:
    """Balance one side and grow its tree: arrays feature, threshold, left, right, sign."""
    used = "none"
    if positive.any() and not positive.all():
        rows, positive, used = oversample(rows, positive, options.smote_neighbors, random_state)
    codes, cuts = bin_columns(rows)
    feature, code, left, right, share = grow_tree(
        codes,
        np.ascontiguousarray(positive, dtype=np.int64),
        np.iinfo(np.int64).max if depth is None else depth,
        options.min_samples_leaf,
    )
    threshold = np.array(
        [cuts[f][c] if f >= 0 else 0.0 for f, c in zip(feature, code, strict=True)]
    )
    sign = np.where(feature < 0, np.where(share > 0.5, 1, -1), 0)
    return (feature, threshold, left, right, sign), used


def oversample(
    rows: Any, positive: np.ndarray, neighbors: int, random_state: int
) -> tuple[Any, np.ndarray, str]:
    """Balance two classes by SMOTE and say how it was done.

    With fewer rows of the rarer class than SMOTE needs, fewer neighbours are used; a single row is
    repeated. Many rows of the rarer class are balanced in random blocks, each with its share of the
    other class, since the neighbour search costs the square of their number.
    """
    from imblearn.over_sampling import SMOTE, RandomOverSampler
    from sklearn.neighbors import NearestNeighbors

    rare = int(min(np.count_nonzero(positive), np.count_nonzero(~positive)))
    if 2 * rare == len(positive):
        return rows, positive, "none"
    if rare < 2:
        sampler, used = RandomOverSampler(random_state=random_state), "random"
        return (*sampler.fit_resample(rows, positive), used)
    used = f"smote({min(neighbors, rare - 1)})"
    n_blocks = -(-rare // _MINORITY_BLOCK)
    parts = []
    for block in _stratified_blocks(positive, n_blocks, random_state):
        fewest = min(np.count_nonzero(positive[block]), np.count_nonzero(~positive[block]))
        k = min(neighbors, int(fewest) - 1)
        # a tree of few rows is searched by one thread, with no start-up cost of several
        search = "auto" if sparse.issparse(rows) or fewest > _SMALL else "kd_tree"
        sampler = SMOTE(
            k_neighbors=NearestNeighbors(n_neighbors=k + 1, algorithm=search),
            random_state=random_state,
        )
        parts.append(sampler.fit_resample(rows[block], positive[block]))
    stack = sparse.vstack if sparse.issparse(rows) else np.vstack
    balanced = parts[0][0] if n_blocks == 1 else stack([part[0] for part in parts])
    return balanced, np.concatenate([part[1] for part in parts]), used


def _stratified_blocks(positive: np.ndarray, n_blocks: int, random_state: int) -> list[np.ndarray]:
    """Random blocks of rows with equal shares of each class."""
    if n_blocks == 1:
        return [np.arange(len(positive))]
    random = np.random.default_rng(random_state)
    block = np.empty(len(positive), dtype=np.int64)
    for label in (True, False):
        rows = np.flatnonzero(positive == label)
        block[random.permutation(rows)] = np.arange(len(rows)) % n_blocks
    return [np.flatnonzero(block == b) for b in range(n_blocks)]


def _by_level(
    sides: list[Any], cut: float | None, score_column: int, sampling: tuple[str, ...]
) -> PathTree:
    """Join the root and its sides, and number the nodes level by level."""
    feature, threshold, left, right, sign = (
        np.concatenate(parts) for parts in zip(*sides, strict=True)
    )
    if cut is not None:
        first = len(sides[0][0])
        second = np.arange(len(feature)) >= first
        left = np.where(left >= 0, left + np.where(second, first, 0) + 1, -1)
        right = np.where(right >= 0, right + np.where(second, first, 0) + 1, -1)
        feature = np.append(score_column, feature)
        threshold = np.append(cut, threshold)
        left, right = np.append(1, left), np.append(first + 1, right)
        sign = np.append(0, sign)
    order = [0]
    for node in order:  # grows while it is read: breadth first
        if left[node] >= 0:
            order += [int(left[node]), int(right[node])]
    place = np.full(len(feature) + 1, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    return PathTree(
        feature[order].astype(np.int64),
        threshold[order].astype(np.float64),
        place[left[order]],
        place[right[order]],
        sign[order].astype(np.int64),
        sampling,
    )
