"""RankLS: least squares on the differences of pairs, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg

from toprank.base import TrainingData
from toprank.margin._laplacian import PAIRS, PairLaplacian
from toprank.margin._leave_out import query_errors, row_errors
from toprank.margin._linear import GradedQueries, KernelRanker
from toprank.margin._matrix import product, solve_positive, transposed_product

__all__ = ["RankLS"]

_MOST_COLUMNS = 2048  # beyond, the columns are rotated onto the rows or the system is iterated
_EIGENVALUE_CUT = 1e-12


class RankLS(GradedQueries, KernelRanker):
    r"""Rank by regularised least squares on pairs of rows.

    Minimises

    .. math:: \sum_q \sum_{\{i, j\} \subset q} w_i w_j
              \big((y_i - y_j) - v\cdot(\phi(x_i) - \phi(x_j))\big)^2 + \alpha |v|^2

    in closed form: the pair errors are a quadratic form of the rows' errors, whose matrix (the
    Laplacian of the pairs) is diagonal plus low rank, so no pair is listed.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "laplacian"}, default="linear"
        Anything but "linear" goes through the kernel's features: exact up to `exact_rows` distinct
        rows, Nyström beyond.
    alpha : float or "auto", default="auto"
        Strength of the penalty. "auto" takes the one of `alphas` with the least error on what was
        left out, computed without refitting.
    pairs : {"all", "cross"}, default="all"
        All pairs of a query, or those with different labels only.
    alphas : sequence of float, optional
        What "auto" chooses from; by default 21 values from 1e-9 to 10 times the greatest eigenvalue.
    leave_out : {"auto", "row", "query"}, default="auto"
        What "auto" leaves out in turn: queries if there are several, else rows. (Of a row of weight w,
        min(w, 1) is left out: a weight of 2 is the row twice.)
    gamma : float or "scale", default="scale"
        Width of the kernel; "scale" is one over the summed variance of the columns.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    n_components : int, default=256
        Landmarks of the Nyström features, half of them positives where there are enough.
    exact_rows : int, default=1000
        Up to this many distinct rows the kernel is exact.
    scale : bool, default=True
        Divide each column by its standard deviation (and centre it, if the data is dense) first.
    n_jobs : int or None, default=None
        Threads of the linear algebra: None is one, -1 all cores.
    random_state : int, RandomState or None, default=None
        Draws the landmarks.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        With the linear kernel: coefficients on the scale of the data as given.
    expansion_ : KernelExpansion
        With another kernel: landmarks and their coefficients.
    alpha_ : float
        The penalty used.
    alphas_, left_out_errors_ : ndarray
        With `alpha="auto"`: the penalties tried and the error of each on what was left out.
    ranks_queries_ : bool
        Whether `fit` was given queries.
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive one.
    offset_ : float
        The threshold that was subtracted from the scores.

    References
    ----------
    Pahikkala, T., Tsivtsivadze, E., Airola, A., Järvinen, J. and Boberg, J. (2009). An efficient
    algorithm for learning to rank from preference graphs. Machine Learning 75.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import RankLS
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> round(RankLS().fit(X, y).score(X, y), 2)
    0.8
    """

    def __init__(
        self,
        kernel: str = "linear",
        alpha: float | str = "auto",
        *,
        pairs: str = "all",
        alphas: Sequence[float] | None = None,
        leave_out: str = "auto",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int = 256,
        exact_rows: int = 1000,
        scale: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.pairs = pairs
        self.alphas = alphas
        self.leave_out = leave_out
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.exact_rows = exact_rows
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> RankLS:
        """Learn the coefficients.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Two labels, the greater one positive; or, with `qid`, grades 0, 1, 2, ...
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent; a pair weighs the product.
        qid : array of shape (n_rows,), optional
            The query of each row; only rows of the same query are compared.

        Returns
        -------
        self : RankLS
        """
        self._check_parameters()
        data = self._check_training(X, y, sample_weight, qid)
        with self._threads():
            laplacian = _laplacian_of(data, self.pairs)
            space = self._feature_space(data)
            features = laplacian.centre(space.transform(data.X))
            targets = laplacian.centre(data.y.copy())
            self._keep(self._learn(features, targets, laplacian), space)
            self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _check_parameters(self) -> None:
        if self.pairs not in PAIRS:
            raise ValueError(f"pairs must be one of {', '.join(PAIRS)}, got {self.pairs!r}")
        if self.leave_out not in ("auto", "row", "query"):
            raise ValueError(f"leave_out must be auto, row or query, got {self.leave_out!r}")
        if self.alpha != "auto" and (isinstance(self.alpha, str) or not self.alpha > 0):
            raise ValueError(f"alpha must be a number above 0 or 'auto', got {self.alpha!r}")
        if self.alphas is not None and not (np.asarray(self.alphas, dtype=float) > 0).all():
            raise ValueError("all of alphas must be above 0")

    def _learn(self, X: Any, y: np.ndarray, laplacian: PairLaplacian) -> np.ndarray:
        """Coefficients on centred features; sets `alpha_` and what led to it."""
        if X.shape[1] <= _MOST_COLUMNS:
            return self._closed_form(X, y, laplacian)
        if X.shape[0] <= _MOST_COLUMNS:
            rotated, back = _onto_rows(X)
            return back @ self._closed_form(rotated, y, laplacian)
        if isinstance(self.alpha, str):
            raise ValueError(
                f"with more than {_MOST_COLUMNS} rows and columns alpha='auto' is not at hand: give "
                "alpha as a number, or put TruncatedSVD before RankLS in a Pipeline"
            )
        self.alpha_ = float(self.alpha)
        return _iterate(X, y, laplacian, self.alpha_)

    def _closed_form(self, X: Any, y: np.ndarray, laplacian: PairLaplacian) -> np.ndarray:
        gram, right = laplacian.gram(X, y)
        self.__dict__.pop("alphas_", None)
        self.__dict__.pop("left_out_errors_", None)
        if isinstance(self.alpha, str):
            self.alphas_ = _candidates(gram) if self.alphas is None else np.sort(self.alphas)
            several = len(laplacian.query_weight) > 1
            if self.leave_out == "query" and not several:
                raise ValueError("leave_out='query' needs at least two queries; give qid, or 'row'")
            errors = row_errors if self.leave_out == "row" or not several else query_errors
            self.left_out_errors_ = errors(X, y, laplacian, self.alphas_)
            self.alpha_ = float(self.alphas_[np.argmin(self.left_out_errors_)])
        else:
            self.alpha_ = float(self.alpha)
        return solve_positive(gram + self.alpha_ * np.eye(len(gram)), right)


def _laplacian_of(data: TrainingData, pairs: str) -> PairLaplacian:
    """The Laplacian of the training rows; some pair must have different labels."""
    laplacian = PairLaplacian.of(data.y, data.weights, data.qid, pairs)
    if len(laplacian.group_weight) == len(laplacian.query_weight):
        raise ValueError(
            "no query holds rows of more than one class, so there is nothing to compare; "
            "check qid, or leave it out to compare all rows"
        )
    return laplacian


def _candidates(gram: np.ndarray) -> np.ndarray:
    """Penalties from far below to above the greatest eigenvalue, two a decade."""
    last = len(gram) - 1
    greatest = float(linalg.eigvalsh(gram, subset_by_index=(last, last))[0])
    return (greatest if greatest > 0 else 1.0) * np.logspace(-9, 1, 21)


def _onto_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Features U S^(1/2) with XX' = USU', and the matrix that takes coefficients back to columns."""
    products = X @ X.T
    products = products.toarray() if sparse.issparse(products) else products
    values, vectors = linalg.eigh(products)
    kept = values > max(values[-1], 0.0) * _EIGENVALUE_CUT
    root = np.sqrt(values[kept])
    return vectors[:, kept] * root, np.asarray(X.T @ (vectors[:, kept] / root))


def _iterate(X: Any, y: np.ndarray, laplacian: PairLaplacian, alpha: float) -> np.ndarray:
    """Solve (X'LX + alpha·I) v = X'Ly by conjugate gradients, for too many columns to factorise."""

    def times(v: np.ndarray) -> np.ndarray:
        v = v.ravel()
        return alpha * v + transposed_product(X, laplacian.times(product(X, v)))

    size = X.shape[1]
    operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
    right = transposed_product(X, laplacian.times(y))
    return cg(operator, right, rtol=1e-10, maxiter=10 * size)[0]
