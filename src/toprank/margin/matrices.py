"""Feature matrices: scaling, products, linear systems and threads, for dense and sparse rows.

Sums are always taken in double precision; a single-precision matrix is widened a block at a time.
While a ranker is fitted BLAS runs on one thread, and the threads of `n_jobs` share pieces whose sizes do
not depend on their number: so neither does the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils import gen_batches

from toprank.parallel import ThreadPool, single_threaded_blas

_BLOCK = 1 << 20  # numbers handled at a time
_PANEL = 64  # columns of a product that are one thread's piece of work
EXPLICIT_COLUMNS = 1024  # a Hessian of up to this size is formed and factorised
_CG_STEPS, _CG_FINEST = 500, 1e-8
_EIGENVALUE_CUT = 1e-12

SERIAL = ThreadPool(1)


# -- blocks and products -----------------------------------------------------------------------------


def row_blocks(X: Any) -> list[slice]:
    """Return slices that cut the rows of `X` into blocks of about a million numbers."""
    step = max(1, _BLOCK // max(1, X.shape[1]))
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def to_dense(X: Any) -> np.ndarray:
    """Return a dense or sparse matrix as a contiguous double-precision array."""
    return np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)


def product(X: Any, v: np.ndarray) -> np.ndarray:
    """Return `X @ v`."""
    if _is_double(X):
        return np.asarray(X @ v)
    return np.concatenate([X[block].astype(np.float64) @ v for block in row_blocks(X)])


def transposed_product(X: Any, Z: np.ndarray) -> np.ndarray:
    """Return `X.T @ Z` for a vector or a matrix `Z`."""
    if _is_double(X):
        return np.asarray(X.T @ Z)
    out = np.zeros((X.shape[1], *Z.shape[1:]))
    for block in row_blocks(X):
        out += X[block].T.astype(np.float64) @ Z[block]
    return out


def cross_product(left: np.ndarray, right: np.ndarray, pool: ThreadPool = SERIAL) -> np.ndarray:
    """Return `left.T @ right` of two dense matrices, some columns of the result by each thread."""
    panels = gen_batches(right.shape[1], _PANEL)
    return np.hstack(pool.map(lambda panel: left.T @ right[:, panel], panels))


def weighted_gram(X: Any, weight: np.ndarray, pool: ThreadPool = SERIAL) -> np.ndarray:
    """Return X' diag(weight) X, a block of rows at a time."""
    out = np.zeros((X.shape[1], X.shape[1]))
    for block in row_blocks(X):
        rows = to_dense(X[block])
        out += cross_product(rows, weight[block, None] * rows, pool)
    return out


def _is_double(X: Any) -> bool:
    return sparse.issparse(X) or X.dtype == np.float64


# -- rows in compiled loops --------------------------------------------------------------------------


class MatrixArrays(NamedTuple):
    """A matrix as kernels read it: `dense`, or compressed sparse rows if `indptr` is not empty."""

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


def matrix_arrays(X: Any) -> MatrixArrays:
    """Return a dense or CSR matrix in the form that kernels read."""
    if sparse.issparse(X):
        indices, indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return MatrixArrays(np.zeros((0, X.shape[1])), X.data, indices, indptr)
    none = np.zeros(0, np.int64)
    return MatrixArrays(np.ascontiguousarray(X), np.zeros(0), none, none)


@njit(inline="always")
def add_row(matrix, row, factor, out):
    """Add `factor` times a row to `out`."""
    if len(matrix.indptr) > 0:
        for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
            out[matrix.indices[k]] += factor * matrix.data[k]
    else:
        for c in range(matrix.dense.shape[1]):
            out[c] += factor * matrix.dense[row, c]


@njit(inline="always")
def row_product(matrix, row, v):
    """Return the inner product of a row with `v`."""
    total = 0.0
    if len(matrix.indptr) > 0:
        for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
            total += matrix.data[k] * v[matrix.indices[k]]
    else:
        for c in range(matrix.dense.shape[1]):
            total += matrix.dense[row, c] * v[c]
    return total


# -- scaling -----------------------------------------------------------------------------------------

_FAR_OUT, _FEW = 1e4, 0.05  # so many times as far out as all but this share of the cells
_ROBUST_REACH = 5.0  # the same for scale="robust"
_CUE = 8.0  # deviations that a column must reach for its quantiles to be looked at
_LEAST = 1e-100  # a size whose square is a number
_SMALLEST, _LARGEST = 1e-305, 8e307  # no coefficient overflows above, no difference below


@dataclass(frozen=True)
class ColumnScaler:
    """Cells are cut off at `lower` and `upper`, then `centre` is subtracted and `spread` divides.

    `deviation` is the standard deviation of what was cut off so, 0 for a constant column; `faint`
    says which columns are too small to be told apart.
    """

    centre: np.ndarray
    spread: np.ndarray
    deviation: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    faint: np.ndarray

    @property
    def n_columns(self) -> int:
        return len(self.spread)

    @property
    def cut(self) -> np.ndarray:
        """Which columns have cells that are cut off."""
        return np.isfinite(self.upper) | np.isfinite(self.lower)


def fit_scaler(
    X: Any, sample_weight: np.ndarray | None = None, scale: bool | str = True
) -> ColumnScaler:
    """Learn the weighted means and standard deviations of the columns, a block of rows at a time.

    Margin methods penalise the squared norm of their coefficients, which only means something when
    columns have comparable spreads. Sparse matrices are divided but never centred: differences of
    rows, which are all that a pairwise loss sees, do not change by centring. Columns of nothing but 0 and
    1 are not divided: that would make the rarest categories the loudest.

    One absurd cell would make the standard deviation its own and all other cells of its column equal:
    cells more than 10,000 times as far from the median as 95% of the others are cut off at the farthest
    of those others. With scale="robust" all cells beyond five times that distance are. Without `scale`
    only the deviations are learnt.
    """
    n_rows, n_columns = X.shape
    weight = np.ones(n_rows) if sample_weight is None else sample_weight
    sizes = largest(X)
    unit = np.ones(n_columns)
    odd = (sizes > 0) & (sizes < _LEAST)
    unit[odd] = np.ldexp(1.0, np.frexp(sizes[odd])[1] - 1)
    lower, upper = np.full(n_columns, -np.inf), np.full(n_columns, np.inf)
    mean, deviation, reach = _moments(X, weight, unit, lower, upper)
    if scale:
        lower[sizes > _LARGEST], upper[sizes > _LARGEST] = -_LARGEST, _LARGEST
        suspects = (reach > _CUE * deviation) | (n_rows < 2 * _CUE**2) | (scale == "robust")
        for j in np.flatnonzero(suspects & (deviation > 0)):
            column = to_dense(X[:, [j]]).ravel()
            low, high = _cut_offs(column / unit[j], weight, robust=scale == "robust")
            if sparse.issparse(X):  # empty cells stay as they are
                low, high = min(low, 0.0), max(high, 0.0)
            lower[j], upper[j] = max(low * unit[j], lower[j]), min(high * unit[j], upper[j])
        if np.isfinite(lower).any() or np.isfinite(upper).any():
            mean, deviation, _ = _moments(X, weight, unit, lower, upper)
    faint = (deviation > 0) & (deviation * unit < _SMALLEST)
    deviation = np.where(faint, 0.0, deviation * unit)
    centred = scale and not sparse.issparse(X)
    divided = (deviation > 0) & bool(scale) & ~_is_indicator(X)
    return ColumnScaler(
        centre=mean * unit if centred else np.zeros(n_columns),
        spread=np.where(divided, deviation, 1.0),
        deviation=deviation, lower=lower, upper=upper, faint=faint,
    )  # fmt: skip


def scale_rows(scaler: ColumnScaler, X: Any) -> Any:
    """Return scaled rows as a new double-precision array or CSR matrix."""
    rows = cut_cells(X, scaler.lower, scaler.upper)
    if sparse.issparse(rows):
        rows.data /= scaler.spread[rows.indices]
    else:
        rows -= scaler.centre
        rows /= scaler.spread
    return rows


def cut_cells(X: Any, lower: np.ndarray, upper: np.ndarray) -> Any:
    """Return a double-precision copy with the cells of each column cut off at two limits."""
    cut = np.isfinite(lower).any() or np.isfinite(upper).any()
    if not sparse.issparse(X):
        rows = np.array(X, dtype=np.float64, order="C")
        return np.clip(rows, lower, upper, out=rows) if cut else rows
    rows = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    if cut:
        np.clip(rows.data, lower[rows.indices], upper[rows.indices], out=rows.data)
    return rows


def largest(X: Any) -> np.ndarray:
    """Return the largest absolute value of each column."""
    out = np.zeros(X.shape[1])
    for block in row_blocks(X):
        rows = X[block]
        size = abs(rows).max(axis=0)
        size = size.toarray().ravel() if sparse.issparse(rows) else size
        np.maximum(out, size, out=out)
    return out


def _is_indicator(X: Any) -> np.ndarray:
    """Return which columns hold nothing but 0 and 1."""
    other = np.zeros(X.shape[1], dtype=bool)
    for block in row_blocks(X):
        rows = X[block]
        if sparse.issparse(rows):
            other[rows.indices[(rows.data != 0) & (rows.data != 1)]] = True
        else:
            other |= ((rows != 0) & (rows != 1)).any(axis=0)
    return ~other


def _moments(
    X: Any, weight: np.ndarray, unit: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weighted means, standard deviations and largest distances from the mean, in `unit`.

    A deviation that is nothing but rounding is 0.
    """
    n_rows, n_columns = X.shape
    total, cut = weight.sum(), bool(np.isfinite(lower).any() or np.isfinite(upper).any())

    def blocks() -> Iterator[tuple[slice, Any]]:
        for block in row_blocks(X):
            rows = X[block]
            if sparse.issparse(rows):
                rows = sparse.csr_matrix(rows, dtype=np.float64, copy=True)
                rows.data = np.clip(rows.data, lower[rows.indices], upper[rows.indices])
                rows.data /= unit[rows.indices]
            else:
                rows = np.clip(rows, lower, upper) if cut else rows
                rows = rows / unit if (unit != 1).any() else rows.astype(np.float64, copy=False)
            yield block, rows

    mean = sum(weight[block] @ rows for block, rows in blocks()) / total
    squares, reach, stored = np.zeros(n_columns), np.zeros(n_columns), np.zeros(n_columns)
    for block, rows in blocks():
        if sparse.issparse(rows):
            own = np.repeat(weight[block], np.diff(rows.indptr))
            distance = np.abs(rows.data - mean[rows.indices])
            squares += np.bincount(rows.indices, own * distance**2, minlength=n_columns)
            stored += np.bincount(rows.indices, own, minlength=n_columns)
            np.maximum.at(reach, rows.indices, distance)
        else:
            distance = np.abs(rows - mean)
            np.maximum(reach, distance.max(axis=0), out=reach)
            squares += weight[block] @ np.square(distance, out=distance)
    if sparse.issparse(X):
        squares += (total - stored) * mean**2
        reach = np.maximum(reach, np.abs(mean))
    deviation = np.sqrt(squares / total)
    noise = n_rows * np.finfo(np.float64).eps * np.abs(mean)
    return mean, np.where(deviation > noise, deviation, 0.0), reach


def _cut_offs(column: np.ndarray, weight: np.ndarray, robust: bool) -> tuple[float, float]:
    """Return where the cells of a column are cut off: at the farthest cell that is not far out.

    Infinite where no cell is. Cells are far out by their distance from the median, measured by the
    distance that all but a few of the cells keep; where these are all equal, by the median distance of
    the others.
    """
    middle = _quantile(column, weight, 0.5)
    distance = np.abs(column - middle)
    usual = _quantile(distance, weight, 1.0 - _FEW)
    if usual == 0.0:
        away = distance > 0
        usual = _quantile(distance[away], weight[away], 0.5)
    if robust:
        return middle - _ROBUST_REACH * usual, middle + _ROBUST_REACH * usual
    near = distance <= _FAR_OUT * usual
    if near.all():
        return -np.inf, np.inf
    return float(column[near].min()), float(column[near].max())


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    """Return the least value at or below which this share of the weight lies."""
    order = np.argsort(values, kind="stable")
    steps = np.cumsum(weight[order])
    place = np.searchsorted(steps, share * steps[-1] * (1.0 - 1e-12))
    return float(values[order[min(place, len(order) - 1)]])


def rotate_onto_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return features with the inner products of the rows, and the matrix that turns their coefficients back.

    With XX' = USU' the features are U S^(1/2), no more than there are rows; coefficients v of them are
    the coefficients X'U S^(-1/2) v of the columns, of the same length.
    """
    values, vectors = linalg.eigh(to_dense(X @ X.T))
    kept = values > max(values[-1], 0.0) * _EIGENVALUE_CUT
    if not kept.any():
        return np.zeros((X.shape[0], 1)), np.zeros((X.shape[1], 1))
    root, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return vectors * root, transposed_product(X, vectors / root)


# -- linear systems ----------------------------------------------------------------------------------


def solve_positive(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Solve by Cholesky; what rounding takes from positive definiteness is put back."""
    ridge = 0.0
    for _ in range(40):
        try:
            factor = linalg.cho_factor(
                matrix + ridge * np.eye(len(matrix)) if ridge else matrix, check_finite=False
            )
            return linalg.cho_solve(factor, right, check_finite=False)
        except linalg.LinAlgError:
            ridge = max(10 * ridge, 1e-15 * float(np.trace(matrix)))
    return right


def newton_direction(
    gradient: np.ndarray,
    hessian: Callable[[], np.ndarray],
    hessian_product: Callable[[np.ndarray], np.ndarray],
    rtol: float,
) -> np.ndarray:
    """Solve Hessian · direction = -gradient: by Cholesky with the matrix that `hessian` forms or, if
    it is large, by conjugate gradients with `hessian_product` up to the relative residual `rtol`.
    """
    size = len(gradient)
    if size <= EXPLICIT_COLUMNS + 1:
        return solve_positive(hessian(), -gradient)
    operator = LinearOperator(
        (size, size), matvec=lambda v: hessian_product(v.ravel()), dtype=np.float64
    )
    return cg(operator, -gradient, rtol=max(rtol, _CG_FINEST), maxiter=_CG_STEPS)[0]


# -- threads -----------------------------------------------------------------------------------------


@contextmanager
def fit_threads(n_jobs: int | None) -> Iterator[ThreadPool]:
    """Give a pool of threads to work with, and hold BLAS at one thread for as long."""
    with single_threaded_blas, ThreadPool(n_jobs) as pool:
        yield pool
