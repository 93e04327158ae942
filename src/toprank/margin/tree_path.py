"""The tree-path embedding: what a decision tree has learnt, as columns for a linear model.

The tree of Rao & Acharyya (2020), section 4: its root splits on a linear score, each side is balanced by
SMOTE on its own and gets a tree of its own. Nodes are numbered level by level, left before right, so
that the edge into node k is column k - 1 of the full embedding, as in figure 2 of the paper.

The trees are grown on binned columns, with the same splits as an exact tree where the bins hold all
values: scikit-learn's DecisionTreeClassifier, which sorts every column in every node, took 15 to 25
times as long on 40,000 to 300,000 dense rows, and it rounds cells to single precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numba import njit
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import InputChecks
from toprank.binning import N_BINS, Bins
from toprank.docstrings import fill_docstring
from toprank.margin.base import SCALE, scaler_of
from toprank.margin.matrices import fit_threads, product, row_blocks, scale_rows, to_dense
from toprank.margin.partial_loss import PartialLoss
from toprank.margin.partial_solvers import BatchOptions, fit_range
from toprank.sampling import sample_rows, stratified_folds
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions

__all__ = ["PathTree", "TreePathEmbedding", "hstack_with_products"]

_MOST_CODES = 200_000_000  # cells that are binned for one tree, one byte each
_BLOCK = 1 << 22  # cells that are binned at a time
_ROWS_FOR_CUTS = 50_000
_MINORITY_BLOCK = 4000  # rows of the rarer class in one search of SMOTE: its cost is their square
_SMALL = 1000


@fill_docstring
class TreePathEmbedding(InputChecks, TransformerMixin, BaseEstimator):
    """Turn rows into their paths through a decision tree that leaves the linear part to others.

    Rao & Acharyya (2020), section 4. A linear maximiser of the AUC is fitted and its score appended
    to the columns. The root of the tree splits on that score; each side is balanced by SMOTE and
    gets a tree of its own. A row then becomes the edges on its path, +1 if its leaf belongs to the
    positive class, -1 otherwise, 0 for the edges it does not pass, so the inner product of two rows
    is the length of the path they share, with the product of the signs of their leaves. Synthetic
    rows only grow the tree.

    The sign of a leaf knows the labels it was grown on, so training rows must not be embedded by a
    tree that has seen them: `fit_transform` embeds them out of fold. There is then one tree for each
    fold, grown on the other folds, with columns of its own. A training row has entries in the
    columns of its fold only, a new row in all of them; entries are scaled by the square root of
    the number of trees (up for training rows, down for new ones) so that a linear model on them is
    the mean of one model for each tree, and inner products stay path lengths on average. Like
    scikit-learn's `TargetEncoder`, `fit(X, y).transform(X)` is therefore not
    `fit_transform(X, y)`; use the latter for training, as pipelines do.

    Parameters
    ----------
    output : {"concat", "product", "spectral"}, default="concat"
        With x the columns and t the path: `[x, t]`, `[x, t, x (x) t]` (all products), or `[x, s]`
        with s the spectral embedding of the kernel ``exp(-|t_i - t_j|^2 / bandwidth^2)``.
    n_folds : int or None, default=5
        Number of folds, hence of trees. None grows one tree on all rows and embeds training rows
        with it: only for shallow trees.
    max_depth : int or None, default=10
        Most edges on a path.
    min_samples_leaf : int, default=5
        Fewest rows, synthetic ones included, in a leaf.
    frugal : bool, default=True
        Keep only the left one of each pair of sibling edges, which says the same with half the
        columns.
    smote_neighbors : int, default=5
        Neighbours for SMOTE. A side with fewer rows of its rarer class uses as many as there are; a
        single such row is repeated. `sampling_` tells what was done.
    max_rows : int or None, default=200000
        Most rows that a tree (and the linear score) is grown on. Of more, a random part is drawn:
        the rarer class fills up to half of it. Very wide data is drawn from even so.
    n_components : int, default=10
        Coordinates for each tree with `output="spectral"`.
    bandwidth : float or None, default=None
        Width of the kernel for `output="spectral"`; None takes the root mean squared distance
        between training rows.
    penalty : float, default=1e-4
        Factor of the squared norm in the linear AUC maximiser.
    scale : bool, default=True
        Bring columns to a common spread for the linear score and the neighbour search. The columns
        x in the output stay as they are.
    sparse_output : bool, default=True
        Return a sparse matrix.
    %(n_jobs)s
    random_state : int, RandomState or None, default=None
        For the folds, the draw of rows and SMOTE.

    Attributes
    ----------
    trees_ : list of PathTree
        One tree for each fold.
    score_coef_ : ndarray of shape (n_trees, n_columns)
        Coefficients of the linear scores on scaled columns.
    sampling_ : list of tuple of str
        How the two sides of each tree were balanced: "smote(k)", "random" or "none".
    spectral_ : list of ndarray
        Coordinates of the nodes of each tree (`output="spectral"` only).
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive one.

    References
    ----------
    N. Rao & S. Acharyya (2020). Handling class imbalance with POISE: pAUC optimization in
    supervised experiments.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from toprank import TreePathEmbedding
    >>> X, y = make_moons(400, noise=0.2, random_state=0)
    >>> plain = LinearSVC(random_state=0).fit(X, y).score(X, y)
    >>> model = make_pipeline(TreePathEmbedding(random_state=0), LinearSVC(random_state=0))
    >>> bool(model.fit(X, y).score(X, y) > plain + 0.05)
    True
    """

    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "output": [StrOptions({"concat", "product", "spectral"})],
        "n_folds": [Interval(Integral, 2, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "frugal": ["boolean"],
        "smote_neighbors": [Interval(Integral, 1, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left"), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "bandwidth": [Interval(Real, 0, None, closed="neither"), None],
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "scale": SCALE,
        "sparse_output": ["boolean"],
    }

    def __init__(
        self,
        output: str = "concat",
        *,
        n_folds: int | None = 5,
        max_depth: int | None = 10,
        min_samples_leaf: int = 5,
        frugal: bool = True,
        smote_neighbors: int = 5,
        max_rows: int | None = 200_000,
        n_components: int = 10,
        bandwidth: float | None = None,
        penalty: float = 1e-4,
        scale: bool = True,
        sparse_output: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.output = output
        self.n_folds = n_folds
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.frugal = frugal
        self.smote_neighbors = smote_neighbors
        self.max_rows = max_rows
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.penalty = penalty
        self.scale = scale
        self.sparse_output = sparse_output
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fill_docstring
    def fit(self, X: Any, y: Any) -> TreePathEmbedding:
        """Grow the trees.

        Parameters
        ----------
        %(sparse_X)s
        %(y)s

        Returns
        -------
        self : TreePathEmbedding
        """
        self._grow(X, y)
        return self

    @fill_docstring
    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Any:
        """Grow the trees and embed the training rows out of fold.

        Parameters
        ----------
        %(sparse_X)s
        %(y)s

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_columns_out)
        """
        matrix, fold = self._grow(X, y)
        n_trees = len(self.trees_)
        if n_trees == 1:
            return self._assemble(matrix, [self._embed(0, matrix)])
        blocks = []
        for k in range(n_trees):
            own = np.flatnonzero(fold == k)
            entries = np.full(len(own), np.sqrt(n_trees)), (own, np.arange(len(own)))
            place = sparse.csr_array(entries, shape=(len(fold), len(own)))
            blocks.append(place @ self._embed(k, matrix[own]))
        return self._assemble(matrix, blocks)

    @fill_docstring
    def transform(self, X: Any) -> Any:
        """Embed new rows.

        Parameters
        ----------
        %(sparse_X)s

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_columns_out)
        """
        check_is_fitted(self)
        matrix = self._check_rows(X)
        down = 1.0 / np.sqrt(len(self.trees_))
        blocks = [down * self._embed(k, matrix) for k in range(len(self.trees_))]
        return self._assemble(matrix, blocks)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of the output.

        An edge is named by its tree, its node and the condition that leads along it.

        Parameters
        ----------
        input_features : array of str, optional
            Names of the columns; by default those of training.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        if input_features is None:
            input_features = getattr(self, "feature_names_in_", self.columns_.names)
        names = [str(name) for name in input_features]
        if len(names) != self.n_features_in_:
            raise ValueError(f"{len(names)} names for {self.n_features_in_} columns")
        edges = [name for k in range(len(self.trees_)) for name in self._names_of_tree(k, names)]
        crossed = []
        if self.output == "product":
            crossed = [f"{name}*{edge}" for edge in edges for name in names]
        return np.asarray(names + edges + crossed, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.classifier_tags = ClassifierTags(multi_class=False)  # it learns from two labels
        tags.input_tags.sparse = True
        return tags

    # -- growing -----------------------------------------------------------------------------------

    def _grow(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Learn everything; return the checked rows and the fold of each row."""
        if y is None:
            raise ValueError("TreePathEmbedding requires y to be passed, but the target y is None")
        data = self._check_training(X, y)
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=(self.n_folds or 1) + 1).tolist()
        self.scaler_ = scaler_of(self, data)
        positive = data.y > 0
        # never more folds than rows of the rarer class, and none with a single such row
        rare = int(min(np.count_nonzero(positive), np.count_nonzero(~positive)))
        fold = np.full(len(positive), -1, dtype=np.int64)
        if self.n_folds is not None and rare > 1:
            fold = stratified_folds(positive, min(self.n_folds, rare), seeds[0])
        with fit_threads(self.n_jobs) as pool:
            grown = pool.map(
                lambda k: self._grow_one(data.X, positive, np.flatnonzero(fold != k), seeds[k + 1]),
                range(max(int(fold.max()) + 1, 1)),
            )
        self.trees_ = [tree for _, tree in grown]
        self.score_coef_ = np.array([w for w, _ in grown])
        self.sampling_ = [tree.sampling for tree in self.trees_]
        if self.output == "spectral":
            self.spectral_ = [
                leaf_coordinates(tree, self._leaves(k, data.X), self.n_components, self.bandwidth)
                for k, tree in enumerate(self.trees_)
            ]
        return data.X, fold

    def _grow_one(
        self, matrix: Any, positive: np.ndarray, rows: np.ndarray, seed: int
    ) -> tuple[np.ndarray, PathTree]:
        """Learn the linear score and the tree of the given rows."""
        most = _MOST_CODES // matrix.shape[1] + 1
        rows = sample_rows(positive, rows, min(self.max_rows or most, most), seed)
        part, labels = scale_rows(self.scaler_, matrix[rows]), positive[rows]
        loss = PartialLoss(labels, np.ones(len(rows)), (0.0, 1.0))
        # the tree needs the direction only, and L-BFGS comes near it: no certificate
        options = BatchOptions(2.0 * self.penalty, tol=1e-3, certify=False)
        w = fit_range(part, loss, options).coefficients
        part = _with_score(part, w)  # frees the rows without the score
        most_edges = np.iinfo(np.int64).max if self.max_depth is None else self.max_depth
        return w, grow(part, labels, most_edges, self.min_samples_leaf, self.smote_neighbors, seed)

    # -- embedding -----------------------------------------------------------------------------------

    def _embed(self, k: int, matrix: Any) -> sparse.csr_array:
        """Return the columns that tree k gives to rows."""
        if self.output == "spectral":
            return sparse.csr_array(self.spectral_[k][self._leaves(k, matrix)])
        return leaf_paths(self.trees_[k], self.frugal)[self._leaves(k, matrix)]

    def _leaves(self, k: int, matrix: Any) -> np.ndarray:
        """Return the leaf of tree k each row ends in, by its scaled columns and the score."""
        parts = [np.empty(0, np.int64)]
        for block in row_blocks(matrix):
            rows = _with_score(scale_rows(self.scaler_, matrix[block]), self.score_coef_[k])
            parts.append(self.trees_[k].leaf_of(to_dense(rows)))
        return np.concatenate(parts)

    def _assemble(self, matrix: Any, blocks: list[Any]) -> Any:
        """Put the columns, the paths and the products side by side."""
        path = sparse.csr_array(sparse.hstack(blocks))
        out = hstack_with_products(matrix, path, products=self.output == "product")
        return out if self.sparse_output else out.toarray()

    def _names_of_tree(self, k: int, names: list[str]) -> list[str]:
        """Return the names of the columns of tree k."""
        if self.output == "spectral":
            return [f"tree{k}_spectral{c}" for c in range(self.spectral_[k].shape[1])]
        tree, scaler, found = self.trees_[k], self.scaler_, []
        for node in tree.edges(self.frugal):
            above = tree.parent[node]
            sign = "<=" if tree.left[above] == node else ">"
            column, threshold, name = (
                int(tree.feature[above]),
                float(tree.threshold[above]),
                "score",
            )
            if column < self.n_features_in_:
                name = names[column]
                threshold = threshold * scaler.spread[column] + scaler.centre[column]
            found.append(f"tree{k}_edge{node}[{name}{sign}{threshold:.6g}]")
        return found


def _with_score(rows: Any, coefficients: np.ndarray) -> Any:
    """Append the linear score as the last column."""
    score = product(rows, coefficients)[:, None]
    if sparse.issparse(rows):
        return sparse.csr_matrix(sparse.hstack([rows, score], format="csr"))
    return np.hstack([rows, score])


def hstack_with_products(
    matrix: Any, path: sparse.csr_array, products: bool = False
) -> sparse.csr_matrix:
    """`[matrix, path]`, or `[matrix, path, all products of the two]`, as one CSR matrix.

    Its arrays are made at their full size and filled in turn, so that nothing is held twice.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> path = sparse.csr_array(np.array([[1.0, 0.0], [0.0, -1.0]]))
    >>> hstack_with_products(np.array([[5.0], [7.0]]), path, products=True).toarray().tolist()
    [[5.0, 1.0, 0.0, 5.0, 0.0], [7.0, 0.0, -1.0, 0.0, -7.0]]
    """
    n_rows, n_columns = matrix.shape
    blocks = row_blocks(matrix)
    if sparse.issparse(matrix):
        own = np.diff(matrix.indptr).astype(np.int64)
    else:
        own = np.count_nonzero(matrix, axis=1)
    passed = np.diff(path.indptr).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(own + passed + (own * passed if products else 0))))
    width = n_columns + path.shape[1] * (1 + (n_columns if products else 0))
    # 32-bit indices where they suffice: what other learners accept
    kind = np.int32 if max(int(starts[-1]), width) < np.iinfo(np.int32).max else np.int64
    values, indices = np.empty(starts[-1]), np.empty(starts[-1], dtype=kind)
    for block in blocks:
        columns, edges = sparse.csr_array(matrix[block], dtype=np.float64), path[block]
        parts = [columns, edges, *([_row_products(edges, columns)] if products else [])]
        joined = sparse.hstack(parts, format="csr")
        first = starts[block.start]
        values[first : first + joined.nnz] = joined.data
        indices[first : first + joined.nnz] = joined.indices
    return sparse.csr_matrix((values, indices, starts.astype(kind)), shape=(n_rows, width))


def _row_products(path: sparse.csr_array, columns: sparse.csr_array) -> sparse.csr_array:
    """Return all products of an entry of the path with an entry of the columns, row by row."""
    n_rows, n_columns = columns.shape
    per_path, per_row = np.diff(path.indptr), np.diff(columns.indptr)
    sizes = per_path * per_row
    starts = np.concatenate(([0], np.cumsum(sizes)))
    row = np.repeat(np.arange(n_rows), sizes)
    within = np.arange(starts[-1]) - starts[row]
    from_path = path.indptr[row] + within // per_row[row]
    from_columns = columns.indptr[row] + within % per_row[row]
    values = path.data[from_path] * columns.data[from_columns]
    where = path.indices[from_path].astype(np.int64) * n_columns + columns.indices[from_columns]
    return sparse.csr_array((values, where, starts), shape=(n_rows, path.shape[1] * n_columns))


# -- the tree and the paths through it --------------------------------------------------------------


@dataclass(frozen=True)
class PathTree:
    """A binary tree, its nodes numbered level by level.

    A row goes left when its cell in column `feature` is at most `threshold`. Leaves have -1 as feature
    and children, and the sign +1 or -1 of their class (0 elsewhere). `sampling` says how the classes of
    each side were balanced.
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
    def parent(self) -> np.ndarray:
        """The node above each node; 0 for the root."""
        out, inner = np.zeros(self.n_nodes, np.int64), np.flatnonzero(self.left >= 0)
        out[self.left[inner]] = out[self.right[inner]] = inner
        return out

    def edges(self, frugal: bool) -> np.ndarray:
        """Return the nodes whose incoming edge is a column: all but the root, or only left children."""
        return np.sort(self.left[self.left >= 0]) if frugal else np.arange(1, self.n_nodes)

    def leaf_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the leaf each row ends in."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        return _leaves(rows, self.feature, self.threshold, self.left, self.right)


def leaf_paths(tree: PathTree, frugal: bool = True) -> sparse.csr_array:
    """Return the path of every leaf: its sign on the edges passed (rows of other nodes are empty).

    Examples
    --------
    >>> import numpy as np
    >>> stump = PathTree(*map(np.array, ([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, -1, 1])))
    >>> leaf_paths(stump, frugal=False).toarray().tolist()
    [[0.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
    """
    kept, parent = tree.edges(frugal), tree.parent
    column = np.full(tree.n_nodes, -1, dtype=np.int64)
    column[kept] = np.arange(len(kept))
    leaf = node = np.flatnonzero(tree.sign)
    leaves, columns = [], []
    while len(node):  # one level up at a time
        passed = column[node] >= 0
        leaves.append(leaf[passed])
        columns.append(column[node[passed]])
        leaf, node = leaf[node > 0], parent[node[node > 0]]
    row = np.concatenate(leaves)
    entries = tree.sign[row].astype(np.float64), (row, np.concatenate(columns))
    return sparse.csr_array(entries, shape=(tree.n_nodes, len(kept)))


@njit(cache=True, nogil=True)
def _leaves(rows, feature, threshold, left, right):
    leaves = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        node = 0
        while feature[node] >= 0:
            node = left[node] if rows[i, feature[node]] <= threshold[node] else right[node]
        leaves[i] = node
    return leaves


# -- growing the tree -------------------------------------------------------------------------------


def grow(
    rows: Any, positive: np.ndarray, max_depth: int, min_leaf: int, neighbors: int, seed: int
) -> PathTree:
    """Grow the tree: the root on the last column, the linear score, SMOTE and a tree on each side."""
    from sklearn.tree import DecisionTreeClassifier

    score = to_dense(rows[:, [-1]])
    stump = DecisionTreeClassifier(max_depth=1, random_state=0).fit(score, positive).tree_
    cut = float(stump.threshold[0]) if stump.node_count == 3 else None
    parts = [np.ones(len(score), dtype=bool)]
    if cut is not None:
        parts, max_depth = [score.ravel() <= cut, score.ravel() > cut], max_depth - 1
    sides, sampling = [], []
    for part in parts:
        part_rows, labels, used = oversample(rows[part], positive[part], neighbors, seed)
        codes, cuts = _bin_columns(part_rows)
        feature, code, left, right, share = _grow_tree(
            codes, labels.astype(np.int64), max_depth, min_leaf
        )
        threshold = [cuts[f][c] if f >= 0 else 0.0 for f, c in zip(feature, code, strict=True)]
        sign = np.where(feature < 0, np.where(share > 0.5, 1, -1), 0)
        sides.append((feature, np.array(threshold), left, right, sign))
        sampling.append(used)
    return _by_level(sides, cut, rows.shape[1] - 1, tuple(sampling))


def oversample(
    rows: Any, positive: np.ndarray, neighbors: int, random_state: int
) -> tuple[Any, np.ndarray, str]:
    """Balance two classes by SMOTE and say how it was done.

    A single class stays as it is. With fewer rows of the rarer class than SMOTE needs, fewer neighbours
    are used; a single row is repeated. Many rows of the rarer class are balanced in random blocks, each
    with its share of the other class, since the neighbour search costs the square of their number.
    """
    from imblearn.over_sampling import SMOTE, RandomOverSampler
    from sklearn.neighbors import NearestNeighbors

    rare = int(min(np.count_nonzero(positive), np.count_nonzero(~positive)))
    if rare == 0 or 2 * rare == len(positive):
        return rows, positive, "none"
    if rare < 2:
        sampler, used = RandomOverSampler(random_state=random_state), "random"
        return (*sampler.fit_resample(rows, positive), used)
    used = f"smote({min(neighbors, rare - 1)})"
    n_blocks = -(-rare // _MINORITY_BLOCK)
    parts = []
    blocks = stratified_folds(positive, n_blocks, random_state)
    for block in [np.flatnonzero(blocks == b) for b in range(n_blocks)]:
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


def _by_level(
    sides: list[Any], cut: float | None, score_column: int, sampling: tuple[str, ...]
) -> PathTree:
    """Join the root and its sides, and number the nodes level by level."""
    feature, threshold, left, right, sign = (
        np.concatenate(parts) for parts in zip(*sides, strict=True)
    )
    if cut is not None:
        first = len(sides[0][0])
        shift = np.where(np.arange(len(feature)) < first, 1, first + 1)
        left, right = (np.where(nodes >= 0, nodes + shift, -1) for nodes in (left, right))
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


def _bin_columns(rows: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the bins of the cells (column by column) and the cut points, some columns at a time.

    A cell has bin k when k cut points lie below it: cell <= cuts[c] means bin <= c.
    """
    n_rows, n_columns = rows.shape
    codes = np.empty((n_columns, n_rows), dtype=np.uint8)
    cuts: list[np.ndarray] = []
    step = max(1, _BLOCK // n_rows)
    for first in range(0, n_columns, step):
        part = to_dense(rows[:, first : first + step])
        sample = part[:: max(1, n_rows // _ROWS_FOR_CUTS)]
        bins = Bins.of(sample, np.zeros(part.shape[1], dtype=bool))
        codes[first : first + step] = bins.codes(part)
        cuts += bins.cuts
    return codes, cuts


@njit(cache=True, nogil=True)
def _grow_tree(codes, positive, max_depth, min_leaf):
    """Grow a tree by the Gini impurity, level by level.

    Returns, for every node, the column and the code it splits on (-1 for leaves; codes up to that
    one go left), its children and its share of positives. Children come after their parents.
    """
    n_rows = codes.shape[1]
    most = 2 * (n_rows // max(min_leaf, 1)) + 3
    column, code = np.full(most, -1, np.int64), np.full(most, -1, np.int64)
    left, right = np.full(most, -1, np.int64), np.full(most, -1, np.int64)
    share, depth = np.zeros(most), np.zeros(most, np.int64)
    begin, end = np.zeros(most, np.int64), np.zeros(most, np.int64)
    order, spare = np.arange(n_rows), np.empty(n_rows, np.int64)
    end[0] = n_rows
    n_nodes, node = 1, 0
    while node < n_nodes:
        rows = order[begin[node] : end[node]]
        total = 0
        for row in rows:
            total += positive[row]
        share[node] = total / len(rows)
        if 0 < total < len(rows) and depth[node] < max_depth and len(rows) >= 2 * min_leaf:
            column[node], code[node] = _best_split(codes, positive, rows, total, min_leaf)
        if column[node] >= 0:
            middle = begin[node] + _partition(codes[column[node]], code[node], rows, spare)
            left[node], right[node] = n_nodes, n_nodes + 1
            begin[n_nodes], end[n_nodes] = begin[node], middle
            begin[n_nodes + 1], end[n_nodes + 1] = middle, end[node]
            depth[n_nodes : n_nodes + 2] = depth[node] + 1
            n_nodes += 2
        node += 1
    return column[:n_nodes], code[:n_nodes], left[:n_nodes], right[:n_nodes], share[:n_nodes]


@njit(cache=True, nogil=True)
def _partition(codes, code, rows, spare):
    """Put the rows whose code is at most `code` first, in their order; return how many they are."""
    kept, moved = 0, 0
    for row in rows:
        if codes[row] <= code:
            rows[kept] = row
            kept += 1
        else:
            spare[moved] = row
            moved += 1
    rows[kept:] = spare[:moved]
    return kept


@njit(cache=True, nogil=True)
def _best_split(codes, positive, rows, total, min_leaf):
    """Column and code of the split that lowers the Gini impurity most, -1 if none does.

    Up to constants the impurity left is minus the sum over both sides of (P^2 + N^2)/(P + N).
    """
    n = len(rows)
    best = (total * total + (n - total) * (n - total)) / n * (1.0 + 1e-12)
    best_column, best_code = -1, -1
    counts = np.zeros(N_BINS, np.int64)
    positives = np.zeros(N_BINS, np.int64)
    for c in range(len(codes)):
        counts[:] = 0
        positives[:] = 0
        column = codes[c]
        for row in rows:
            counts[column[row]] += 1
            positives[column[row]] += positive[row]
        size, hits = 0, 0
        for k in range(N_BINS - 1):
            if counts[k] == 0:
                continue
            size += counts[k]
            hits += positives[k]
            other = n - size
            if other < min_leaf:
                break
            if size < min_leaf:
                continue
            misses, other_hits = size - hits, total - hits
            other_misses = other - other_hits
            gain = (hits * hits + misses * misses) / size
            gain += (other_hits * other_hits + other_misses * other_misses) / other
            if gain > best:
                best, best_column, best_code = gain, c, k
    return best_column, best_code


def leaf_coordinates(
    tree: PathTree, leaves: np.ndarray, n_components: int, bandwidth: float | None
) -> np.ndarray:
    """Laplacian eigenmap (Belkin & Niyogi 2003) of training rows, as coordinates of their leaves.

    With K_ij = exp(-|t_i - t_j|^2 / bandwidth^2) between rows and D its row sums, the coordinates are
    D^(-1/2) times the leading eigenvectors of D^(-1/2) K D^(-1/2), without the constant one.
    They are scaled to mean square 1 over the rows, whose `leaves` are given. No bandwidth means the
    root mean squared distance between rows.

    Returns an array of shape (n_nodes, n_components): zeros for nodes that are no leaves; leaves
    without training rows by the Nyström formula.
    """
    counts = np.bincount(leaves, minlength=tree.n_nodes).astype(np.float64)
    ends = np.flatnonzero(tree.sign != 0)
    vectors, weight = leaf_paths(tree, frugal=False).toarray()[ends], counts[ends]
    lengths = np.einsum("ij,ij->i", vectors, vectors)
    squares = np.maximum(lengths[:, None] + lengths - 2.0 * vectors @ vectors.T, 0.0)
    share = weight / weight.sum()
    width = float(share @ squares @ share) if bandwidth is None else bandwidth**2
    kernel = np.exp(-squares / max(width, 1e-12))
    degree = kernel @ weight
    half = np.sqrt(weight / degree)
    values, basis = np.linalg.eigh(half[:, None] * kernel * half)
    kept = np.argsort(-values)[1 : n_components + 1]
    values, basis = values[kept], basis[:, kept]
    usable = values > 1e-10 * max(values.max(initial=0.0), 1e-300)
    # K (weight/degree)^(1/2) basis / value is the eigenvector on every leaf, with rows or without
    spread = kernel @ (half[:, None] * basis) / np.where(usable, values, 1.0)
    spread = np.where(usable, spread / degree[:, None], 0.0)
    if spread.size:  # eigenvectors have no sign: the entry of largest size is positive
        top = np.take_along_axis(spread, np.argmax(np.abs(spread), axis=0)[None], axis=0)
        spread *= np.where(top < 0, -1.0, 1.0)
    scale = np.sqrt(share @ spread**2)
    out = np.zeros((tree.n_nodes, n_components))
    out[ends, : len(kept)] = spread / np.where(scale > 0, scale, 1.0)
    return out
