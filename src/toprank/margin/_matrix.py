"""Products with a feature matrix that is dense (double or single precision) or sparse.

Sums are always taken in double precision; a single-precision matrix is widened a block at a time.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy import linalg, sparse
from threadpoolctl import ThreadpoolController

__all__ = [
    "EXPLICIT_COLUMNS",
    "blas_threads",
    "column_block",
    "product",
    "row_blocks",
    "solve_positive",
    "transposed_product",
]

_BLOCK = 1 << 20  # numbers widened at a time
EXPLICIT_COLUMNS = 1024  # a Hessian of up to this size is formed and factorised


def blas_threads(n_jobs: int | None) -> AbstractContextManager[Any]:
    """Limit the threads of linear algebra: None is one, -1 all cores.

    One is the default because threads that wait for busy cores can make small products a hundred
    times slower.
    """
    return _threads().limit(limits=effective_n_jobs(n_jobs), user_api="blas")


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def row_blocks(X: Any) -> list[slice]:
    """Slices that cut the rows of `X` into blocks of about a million numbers."""
    step = max(1, _BLOCK // max(1, X.shape[1]))
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def _is_double(X: Any) -> bool:
    return sparse.issparse(X) or X.dtype == np.float64


def product(X: Any, v: np.ndarray) -> np.ndarray:
    """`X @ v`."""
    if _is_double(X):
        return np.asarray(X @ v)
    return np.concatenate([X[block].astype(np.float64) @ v for block in row_blocks(X)])


def transposed_product(X: Any, Z: np.ndarray) -> np.ndarray:
    """`X.T @ Z` for a vector or a matrix `Z`."""
    if _is_double(X):
        return np.asarray(X.T @ Z)
    out = np.zeros((X.shape[1], *Z.shape[1:]))
    for block in row_blocks(X):
        out += X[block].T.astype(np.float64) @ Z[block]
    return out


def column_block(X: Any, start: int, stop: int) -> np.ndarray:
    """Some columns as a contiguous double-precision array."""
    part = X[:, start:stop]
    part = part.toarray() if sparse.issparse(part) else part
    return np.ascontiguousarray(part, dtype=np.float64)


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
