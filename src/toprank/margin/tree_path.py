"""The tree-path embedding: what a decision tree has learnt, as columns for a linear model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import InputChecks
from toprank.margin import path_tree
from toprank.margin._matrix import product, row_blocks
from toprank.margin.beside import side_by_side
from toprank.margin.folds import sample_rows, stratified_folds
from toprank.margin.partial_batch import BatchOptions, fit_range
from toprank.margin.partial_loss import PartialLoss
from toprank.margin.path_tree import PathTree, TreeOptions
from toprank.margin.scaling import Scaling
from toprank.margin.spectral import leaf_coordinates

__all__ = ["TreePathEmbedding"]

_OUTPUTS = ("concat", "product", "spectral")
_MOST_CODES = 200_000_000  # cells that are binned for one tree, one byte each


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
    n_jobs : int or None, default=None
        Threads; one tree is grown by one thread.
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

    def fit(self, X: Any, y: Any) -> TreePathEmbedding:
        """Grow the trees.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.

        Returns
        -------
        self : TreePathEmbedding
        """
        self._grow(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Any:
        """Grow the trees and embed the training rows out of fold.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)
        y : array of shape (n_rows,)

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
            place = sparse.csr_array(
                (np.full(len(own), np.sqrt(n_trees)), (own, np.arange(len(own)))),
                shape=(len(fold), len(own)),
            )
            blocks.append(place @ self._embed(k, matrix[own]))
        return self._assemble(matrix, blocks)

    def transform(self, X: Any) -> Any:
        """Embed new rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_columns_out)
        """
        check_is_fitted(self)
        matrix = self._check_rows(X)
        down = 1.0 / np.sqrt(len(self.trees_))
        return self._assemble(
            matrix, [down * self._embed(k, matrix) for k in range(len(self.trees_))]
        )

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
            names = [str(name) for name in getattr(self, "feature_names_in_", self.columns_.names)]
        else:
            names = [str(name) for name in input_features]
        if len(names) != self.n_features_in_:
            raise ValueError(f"{len(names)} names for {self.n_features_in_} columns")
        edges = [name for k in range(len(self.trees_)) for name in self._names_of_tree(k, names)]
        crossed = (
            [f"{name}*{edge}" for edge in edges for name in names]
            if self.output == "product"
            else []
        )
        return np.asarray([*names, *edges, *crossed], dtype=object)

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
        from joblib import Parallel, delayed

        self._check_parameters()
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        data = self._check_training(X, y)
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=(self.n_folds or 1) + 1)
        self.scaling_ = Scaling.of(data.X, enabled=self.scale)
        positive = data.y > 0
        fold = stratified_folds(positive, self.n_folds, int(seeds[0]))
        grown = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._grow_one)(data.X, positive, np.flatnonzero(fold != k), int(seed))
            for k, seed in zip(range(max(int(fold.max()) + 1, 1)), seeds[1:], strict=False)
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
        """The linear score and the tree of the given rows."""
        most = _MOST_CODES // matrix.shape[1] + 1
        rows = sample_rows(positive, rows, min(self.max_rows or most, most), seed)
        part, labels = self.scaling_.apply(matrix[rows]), positive[rows]
        loss = PartialLoss(labels, np.ones(len(rows)), (0.0, 1.0))
        w = fit_range(part, loss, BatchOptions(2.0 * self.penalty, tol=1e-3)).w
        options = TreeOptions(self.max_depth, self.min_samples_leaf, self.smote_neighbors)
        return w, path_tree.grow(_with_score(part, w), labels, options, seed)

    def _check_parameters(self) -> None:
        if self.output not in _OUTPUTS:
            raise ValueError(f"output must be one of {', '.join(_OUTPUTS)}; got {self.output!r}")
        if self.n_folds is not None and self.n_folds < 2:
            raise ValueError(f"n_folds must be at least 2, or None; got {self.n_folds!r}")
        if self.max_depth is not None and self.max_depth < 1:
            raise ValueError(f"max_depth must be at least 1, or None; got {self.max_depth!r}")
        if self.smote_neighbors < 1:
            raise ValueError(f"smote_neighbors must be at least 1; got {self.smote_neighbors!r}")
        if not self.penalty > 0:
            raise ValueError(f"penalty must be above 0; got {self.penalty!r}")

    # -- embedding -----------------------------------------------------------------------------------

    def _embed(self, k: int, matrix: Any) -> sparse.csr_array:
        """The columns that tree k gives to rows."""
        parts = []
        for rows in self._scored_blocks(k, matrix):
            if self.output == "spectral":
                leaves = self.trees_[k].leaf_of(rows)
                parts.append(sparse.csr_array(self.spectral_[k][leaves]))
            else:
                parts.append(path_tree.paths(self.trees_[k], rows, self.frugal))
        return parts[0] if len(parts) == 1 else sparse.csr_array(sparse.vstack(parts))

    def _leaves(self, k: int, matrix: Any) -> np.ndarray:
        """The leaf of tree k each row ends in."""
        return np.concatenate(
            [self.trees_[k].leaf_of(rows) for rows in self._scored_blocks(k, matrix)]
        )

    def _scored_blocks(self, k: int, matrix: Any) -> Iterator[np.ndarray]:
        """What tree k sees of the rows, a part of them at a time: scaled columns and the score."""
        for block in row_blocks(matrix):
            rows = _with_score(self.scaling_.apply(matrix[block]), self.score_coef_[k])
            yield rows.toarray() if sparse.issparse(rows) else rows

    def _assemble(self, matrix: Any, blocks: list[Any]) -> Any:
        """Put the columns, the paths and the products side by side."""
        path = sparse.csr_array(sparse.hstack(blocks))
        out = side_by_side(matrix, path, products=self.output == "product")
        return out if self.sparse_output else out.toarray()

    def _names_of_tree(self, k: int, names: list[str]) -> list[str]:
        """Names of the columns of tree k."""
        if self.output == "spectral":
            return [f"tree{k}_spectral{c}" for c in range(self.spectral_[k].shape[1])]
        tree = self.trees_[k]
        parent = np.zeros(tree.n_nodes, dtype=np.int64)
        inner = np.flatnonzero(tree.left >= 0)
        parent[tree.left[inner]] = parent[tree.right[inner]] = inner
        found = []
        for node in tree.edges(self.frugal):
            above = parent[node]
            sign = "<=" if tree.left[above] == node else ">"
            column = int(tree.feature[above])
            if column == self.n_features_in_:
                condition = f"score{sign}{tree.threshold[above]:.6g}"
            else:
                cut = tree.threshold[above] * self.scaling_.spread[column]
                condition = f"{names[column]}{sign}{cut + self.scaling_.centre[column]:.6g}"
            found.append(f"tree{k}_edge{node}[{condition}]")
        return found


def _with_score(rows: Any, coefficients: np.ndarray) -> Any:
    """Append the linear score as the last column."""
    score = product(rows, coefficients)[:, None]
    if sparse.issparse(rows):
        return sparse.csr_matrix(sparse.hstack([rows, score], format="csr"))
    return np.hstack([rows, score])
