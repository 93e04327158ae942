"""RankLS: least squares on the differences of pairs, in closed form.

The squared pair errors sum to a quadratic form: with e = y - f,

    sum over pairs {i, j} of w_i w_j (e_i - e_j)² = e'Le.

For all pairs of a query of weight W, L = W·diag(w) - ww'; for pairs with different labels the same
block of each label is taken off again. L ignores a constant added to a query, so features and targets
are centred query by query first, after which the term ww' of the query vanishes:

    all     X'LX = X' diag(w·W) X
    cross   X'LX = X' diag(w·(W - W_g)) X + sum over labels g of s_g s_g',   s_g = sum of w·x over g.

The coefficients are A⁻¹b with A = alpha·I + X'LX and b = X'Ly. What the model would have got wrong on rows
or queries it had not seen follows without refitting.

A query left out. With its rows X_q, Laplacian L_q and errors e = y - f of the full fit, the errors of
the fit without it are (I - G L_q)⁻¹ e, G = X_q A⁻¹ X_q' (Woodbury), and their pairs cost e'L_q e.

A row left out. Taking a weight d from row i of query q (weight W_q, scatter S_q about its mean, z the
row minus that mean) changes X'LX by -d·S_q - d·W_q·zz', since the scatter falls by d·W_q/(W_q - d)·zz'
and its factor W_q by d. With pairs of different labels only, the same terms of the row's own group
come back with the other sign. The first term is the same for all rows of a group, so one
eigendecomposition a group serves its rows and every alpha; what remains is a correction of rank one or
two. The error of the row is that of its score relative to the mean of the rows it is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils import gen_batches

from toprank.docstrings import fill_docstring
from toprank.margin.base import NOTHING_TO_COMPARE, GradedQueries, KernelRanker
from toprank.margin.matrices import (
    SERIAL,
    fit_threads,
    product,
    rotate_onto_rows,
    row_blocks,
    solve_positive,
    to_dense,
    transposed_product,
    weighted_gram,
)
from toprank.parallel import ThreadPool
from toprank.validation import Interval, StrOptions

__all__ = ["RankLS"]

_MOST_COLUMNS = 2048  # beyond, the columns are rotated onto the rows or the system is iterated
_ROWS_AT_A_TIME = 8192


@fill_docstring
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
    %(kernel_features)s
    %(scale)s
    %(n_jobs)s
    %(random_state)s

    Attributes
    ----------
    %(kernel_model)s
    alpha_ : float
        The penalty used.
    alphas_, left_out_errors_ : ndarray
        With `alpha="auto"`: the penalties tried and the error of each on what was left out.
    ranks_queries_ : bool
        Whether `fit` was given queries.
    %(classes)s

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelRanker._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "pairs": [StrOptions({"all", "cross"})],
        "leave_out": [StrOptions({"auto", "row", "query"})],
    }

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

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> RankLS:
        """Learn the coefficients.

        Parameters
        ----------
        %(sparse_X)s
        y : array of shape (n_rows,)
            Two labels, the greater one positive; or, with `qid`, grades 0, 1, 2, ...
        %(pair_weight)s
        qid : array of shape (n_rows,), optional
            The query of each row; only rows of the same query are compared.

        Returns
        -------
        self : RankLS
        """
        data = self._check_training(X, y, sample_weight, qid)
        if self.alphas is not None and not (np.asarray(self.alphas, dtype=float) > 0).all():
            raise ValueError(f"all of alphas must be above 0, got {self.alphas!r}")
        with fit_threads(self.n_jobs) as pool:
            laplacian = PairLaplacian.of(data.y, data.weights, data.qid, self.pairs, pool)
            if len(laplacian.group_weight) == len(laplacian.query_weight):
                raise ValueError(NOTHING_TO_COMPARE)
            features, source = self._features(data, pool)
            features, targets = laplacian.centre(features), laplacian.centre(data.y.copy())
            self._keep(self._learn(features, targets, laplacian), source)
            self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _learn(self, X: Any, y: np.ndarray, laplacian: PairLaplacian) -> np.ndarray:
        """Return the solution of (X'LX + alpha·I) v = X'Ly for centred features.

        With too many columns to factorise it is found by conjugate gradients.
        """
        if X.shape[1] <= _MOST_COLUMNS:
            return self._closed_form(X, y, laplacian)
        if X.shape[0] <= _MOST_COLUMNS:
            features, back = rotate_onto_rows(X)
            return back @ self._closed_form(features, y, laplacian)
        if isinstance(self.alpha, str):
            raise ValueError(
                f"with more than {_MOST_COLUMNS} rows and columns alpha='auto' is not at hand: give "
                "alpha as a number, or put TruncatedSVD before RankLS in a Pipeline"
            )
        self.alpha_ = float(self.alpha)

        def times(v: np.ndarray) -> np.ndarray:
            v = v.ravel()
            return self.alpha_ * v + transposed_product(X, laplacian.times(product(X, v)))

        size = X.shape[1]
        operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
        right = transposed_product(X, laplacian.times(y))
        return cg(operator, right, rtol=1e-10, maxiter=10 * size)[0]

    def _closed_form(self, X: Any, y: np.ndarray, laplacian: PairLaplacian) -> np.ndarray:
        """Solve by Cholesky; with "auto", choose the penalty by what was left out first."""
        gram, right = laplacian.gram(X, y)
        for name in ("alphas_", "left_out_errors_"):
            self.__dict__.pop(name, None)
        alpha = self.alpha
        if isinstance(alpha, str):
            several = len(laplacian.query_weight) > 1
            if self.leave_out == "query" and not several:
                raise ValueError("leave_out='query' needs at least two queries; give qid, or 'row'")
            last = len(gram) - 1
            greatest = float(linalg.eigvalsh(gram, subset_by_index=(last, last))[0])
            default = (greatest if greatest > 0 else 1.0) * np.logspace(-9, 1, 21)  # two a decade
            self.alphas_ = default if self.alphas is None else np.sort(self.alphas)
            left_out = query_errors if several and self.leave_out != "row" else row_errors
            self.left_out_errors_ = left_out(X, y, laplacian, self.alphas_)
            alpha = self.alphas_[np.argmin(self.left_out_errors_)]
        self.alpha_ = float(alpha)
        return solve_positive(gram + self.alpha_ * np.eye(len(gram)), right)


# -- the Laplacian of the pairs ----------------------------------------------------------------------


@dataclass(frozen=True)
class PairLaplacian:
    """Queries and groups (the rows of one query with one label), with their weights.

    `cross` says that only pairs with different labels count; `pool` has the threads for products.
    """

    weight: np.ndarray
    query: np.ndarray
    group: np.ndarray
    query_weight: np.ndarray
    group_weight: np.ndarray
    cross: bool
    pool: ThreadPool = SERIAL

    @classmethod
    def of(
        cls,
        y: np.ndarray,
        weight: np.ndarray,
        qid: np.ndarray | None,
        pairs: str,
        pool: ThreadPool = SERIAL,
    ) -> PairLaplacian:
        """Make the Laplacian of rows with labels `y`, weights and query codes.

        Examples
        --------
        >>> import numpy as np
        >>> laplacian = PairLaplacian.of(np.array([1.0, 0.0, 0.0]), np.ones(3), None, "cross")
        >>> laplacian.times(np.eye(3)).tolist()
        [[2.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
        """
        query = np.zeros(len(y), np.int64) if qid is None else qid
        labels, label = np.unique(y, return_inverse=True)
        group = np.unique(query * len(labels) + label, return_inverse=True)[1]
        return cls(
            weight=weight,
            query=query,
            group=group,
            query_weight=np.bincount(query, weight),
            group_weight=np.bincount(group, weight),
            cross=pairs == "cross",
            pool=pool,
        )

    @property
    def degree(self) -> np.ndarray:
        """What multiplies each row in the diagonal: its weight times that of its partners.

        For all pairs the row itself is among them: the off-diagonal part takes it off again.
        """
        partners = self.query_weight[self.query]
        if self.cross:
            partners = partners - self.group_weight[self.group]
        return self.weight * partners

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return L times a vector or the columns of a matrix."""
        by_query = _group_sums(V, self.weight, self.query, len(self.query_weight))[self.query]
        if self.cross:
            by_group = _group_sums(V, self.weight, self.group, len(self.group_weight))
            by_query = by_query - by_group[self.group]
        extend = (slice(None),) + (None,) * (V.ndim - 1)
        return self.degree[extend] * V - self.weight[extend] * by_query

    def centre(self, V: Any) -> Any:
        """Subtract the mean of its query from each row, in place if dense; sparse rows stay."""
        if sparse.issparse(V):
            return V
        sums = _group_sums(V, self.weight, self.query, len(self.query_weight))
        extend = (slice(None),) + (None,) * (V.ndim - 1)
        means = sums / self.query_weight[extend]
        for block in [slice(None)] if V.ndim == 1 else row_blocks(V):
            V[block] -= means[self.query[block]]
        return V

    def gram(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return X'LX and X'Ly, for dense `X` after `centre`."""
        out = weighted_gram(X, self.degree, self.pool)
        if self.cross:
            sums = _group_sums(X, self.weight, self.group, len(self.group_weight))
            out += sums.T @ sums
        if sparse.issparse(X) or not self.cross:
            sums = _group_sums(X, self.weight, self.query, len(self.query_weight))
            out -= sums.T @ sums
        return 0.5 * (out + out.T), transposed_product(X, self.times(y))


def _group_sums(V: Any, weight: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the weighted sums of the rows of each group."""
    if V.ndim == 1:
        return np.bincount(group, weight * V, minlength=n_groups)
    out = np.zeros((n_groups, V.shape[1]))
    for block in row_blocks(V):
        chosen = group[block]
        first, last = int(chosen.min()), int(chosen.max()) + 1
        member = sparse.csr_matrix(
            (weight[block], (chosen - first, np.arange(len(chosen)))),
            shape=(last - first, len(chosen)),
        )
        out[first:last] += member @ to_dense(V[block])
    return out


# -- errors on what was left out ---------------------------------------------------------------------


def query_errors(X: Any, y: np.ndarray, laplacian: PairLaplacian, alphas: np.ndarray) -> np.ndarray:
    """Sum the squared errors over the pairs of each query left out in turn, for each alpha."""
    gram, right = laplacian.gram(X, y)
    values, vectors = linalg.eigh(gram)
    values, right = np.maximum(values, 0.0), vectors.T @ right
    total = np.zeros(len(alphas))
    for rows in _rows_by(laplacian.query):
        pairs = "cross" if laplacian.cross else "all"
        part = PairLaplacian.of(laplacian.group[rows], laplacian.weight[rows], None, pairs)
        Z = to_dense(X[rows]) @ vectors  # in the basis where X'LX is diagonal
        LZ = part.times(Z)
        if not LZ.any():
            continue
        for k, alpha in enumerate(alphas):
            diagonal = values + alpha
            errors = y[rows] - Z @ (right / diagonal)
            if Z.shape[0] <= Z.shape[1]:  # the smaller of two systems: of rows, or of columns
                errors = np.linalg.solve(np.eye(len(Z)) - (Z / diagonal) @ LZ.T, errors)
            else:
                remaining = np.diag(diagonal) - Z.T @ LZ
                errors = errors + Z @ linalg.solve(remaining, LZ.T @ errors, assume_a="sym")
            total[k] += float(errors @ part.times(errors))
    return total


def row_errors(X: Any, y: np.ndarray, laplacian: PairLaplacian, alphas: np.ndarray) -> np.ndarray:
    """Sum the squared errors of each row left out in turn, for each alpha.

    Of a row of weight w, min(w, 1) is left out, and its error counts w times the weight it is
    compared with: a weight of 2 is the row twice.
    """
    gram, right = laplacian.gram(X, y)
    removed = np.minimum(laplacian.weight, 1.0)
    total = np.zeros(len(alphas))
    for query_rows in _rows_by(laplacian.query):
        query = _Scatter.of(X, y, laplacian.weight, query_rows)
        groups = [query_rows]
        if laplacian.cross:
            groups = [query_rows[part] for part in _rows_by(laplacian.group[query_rows])]
        for group_rows in groups:
            own = _Scatter.of(X, y, laplacian.weight, group_rows) if laplacian.cross else None
            for amount in np.unique(removed[group_rows]):
                compared = query.weight - (own.weight if own else amount)
                if compared <= 0:
                    continue  # nothing to compare these rows with
                left_out = _RowLeftOut(query, own, float(amount), gram, right, alphas)
                rows = group_rows[removed[group_rows] == amount]
                for part in gen_batches(len(rows), _ROWS_AT_A_TIME):
                    block = rows[part]
                    errors = left_out.errors(to_dense(X[block]), y[block])
                    total += compared * (laplacian.weight[block] @ errors**2)
    return total


def _rows_by(key: np.ndarray) -> list[np.ndarray]:
    """Return the row numbers of each value of `key`."""
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1)


@dataclass(frozen=True)
class _Scatter:
    """Weighted means of some rows, and sums of squares and products about them."""

    weight: float
    mean: np.ndarray
    target: float
    matrix: np.ndarray
    vector: np.ndarray

    @classmethod
    def of(cls, X: Any, y: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> _Scatter:
        blocks = [rows[part] for part in gen_batches(len(rows), _ROWS_AT_A_TIME)]
        total = float(weight[rows].sum())
        mean = sum(weight[block] @ to_dense(X[block]) for block in blocks) / total
        target = float(weight[rows] @ y[rows]) / total
        matrix, vector = np.zeros((X.shape[1], X.shape[1])), np.zeros(X.shape[1])
        for block in blocks:
            deviation = to_dense(X[block]) - mean
            weighted = weight[block, None] * deviation
            matrix += deviation.T @ weighted
            vector += (y[block] - target) @ weighted
        return cls(total, mean, target, matrix, vector)


class _RowLeftOut:
    """A weight `amount` taken from one row of a query, or of its group `own` if only pairs across
    groups count.

    What all rows take from the system is taken off at once; M, what is left, is diagonal in a basis of
    its own (`vectors`), with `inverse` of shape (n_features, n_alphas).
    """

    def __init__(
        self,
        query: _Scatter,
        own: _Scatter | None,
        amount: float,
        gram: np.ndarray,
        right: np.ndarray,
        alphas: np.ndarray,
    ) -> None:
        self.query, self.own, self.amount = query, own, amount
        scatter = query.matrix if own is None else query.matrix - own.matrix
        matrix = gram - amount * scatter
        values, self.vectors = linalg.eigh(0.5 * (matrix + matrix.T))
        self.inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + alphas[None, :])
        self.right = self.vectors.T @ (right - amount * query.vector)

    def inner(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the products of rows (or of rows and the right-hand side) through M⁻¹, by alpha."""
        return (a * b) @ self.inverse

    def errors(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the errors (n_rows, n_alphas) of rows of the group, each left out in turn."""
        query, own = self.query, self.own
        if own is not None:
            return self._errors_across_groups(x, y, own)
        # M + k zz', z the row minus the mean, by Sherman and Morrison; the row is compared with the
        # mean of the others, W/(W - d) times as far away as the mean
        z = (x - query.mean) @ self.vectors
        offset = (y - query.target)[:, None]
        k = -self.amount * query.weight
        zz = self.inner(z, z)
        zb = self.inner(z, self.right) + k * offset * zz
        return query.weight / (query.weight - self.amount) * (offset - zb / (1.0 + k * zz))

    def _errors_across_groups(self, x: np.ndarray, y: np.ndarray, own: _Scatter) -> np.ndarray:
        """Solve with M + k zz' + h gg' by Woodbury: (I + KC) (t, s) = K (zb, gb), K = diag(k, h).

        z and g are the row minus the means of the query and of its own group, C their products
        through M⁻¹; r is the row minus the mean of the other groups, which it is compared with.
        """
        query = self.query
        compared = query.weight - own.weight
        k, h = -self.amount * query.weight, self.amount * own.weight
        others = (query.weight * query.mean - own.weight * own.mean) / compared
        z, g, r = ((x - mean) @ self.vectors for mean in (query.mean, own.mean, others))
        zz, zg, gg = self.inner(z, z), self.inner(z, g), self.inner(g, g)
        rz, rg = self.inner(r, z), self.inner(r, g)
        shift = k * (y - query.target)[:, None]
        zb = self.inner(z, self.right) + shift * zz
        gb = self.inner(g, self.right) + shift * zg
        rb = self.inner(r, self.right) + shift * rz
        determinant = (1.0 + k * zz) * (1.0 + h * gg) - k * h * zg**2
        t = ((1.0 + h * gg) * k * zb - k * zg * h * gb) / determinant
        s = ((1.0 + k * zz) * h * gb - h * zg * k * zb) / determinant
        target = query.weight * query.target - own.weight * own.target
        return (y - target / compared)[:, None] - (rb - rz * t - rg * s)
