"""Feature matrices: scaling, products, linear systems and threads, for dense and sparse rows.

Sums are always taken in double precision; a single-precision matrix is widened a block at a time.
While a ranker is fitted BLAS runs on one thread, and the threads of `n_jobs` share pieces whose sizes do
not depend on their number: so neither does the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches
from threadpoolctl import ThreadpoolController

from toprank.parallel import ThreadPool

_BLOCK = 1 << 20  # numbers handled at a time
_PANEL = 64  # columns of a product that are one thread's piece of work
EXPLICIT_COLUMNS = 1024  # a Hessian of up to this size is formed and factorised
_CG_STEPS, _CG_FINEST = 500, 1e-8

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


def fit_scaler(
    X: Any, sample_weight: np.ndarray | None = None, *, enabled: bool = True
) -> StandardScaler:
    """Learn the weighted means and standard deviations of the columns, a block of rows at a time.

    Margin methods penalise the squared norm of their coefficients, which only means something when
    columns have comparable spreads. Sparse matrices are divided but never centred: differences of
    rows, which are all that a pairwise loss sees, do not change by centring.
    """
    scaler = StandardScaler(
        copy=False, with_mean=enabled and not sparse.issparse(X), with_std=enabled
    )
    for block in row_blocks(X):
        weight = None if sample_weight is None else sample_weight[block]
        scaler.partial_fit(X[block].astype(np.float64), sample_weight=weight)
    return scaler


def scale_rows(scaler: StandardScaler, X: Any) -> Any:
    """Return scaled rows as a new double-precision array or CSR matrix."""
    if sparse.issparse(X):
        return scaler.transform(sparse.csr_matrix(X, dtype=np.float64, copy=True))
    return scaler.transform(np.array(X, dtype=np.float64, order="C"))


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


class _SingleThreadedBlas:
    """Hold BLAS at one thread while a fit runs in any thread of Python, and restore it after the last."""

    lock, n_fits = Lock(), 0
    limiter: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.n_fits == 0:
                self.limiter = _blas().limit(limits=1, user_api="blas")
            self.n_fits += 1

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.n_fits -= 1
            if self.n_fits == 0:
                self.limiter.restore_original_limits()


_single_threaded_blas = _SingleThreadedBlas()
_blas = cache(ThreadpoolController)


@contextmanager
def fit_threads(n_jobs: int | None) -> Iterator[ThreadPool]:
    """Give a pool of threads to work with, and hold BLAS at one thread for as long."""
    with _single_threaded_blas, ThreadPool(n_jobs) as pool:
        yield pool
