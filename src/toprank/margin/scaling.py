"""Columns on a common scale, learnt with the sample weights.

Margin methods penalise the squared norm of their coefficients, which only means something when the
columns have comparable spreads. The means and standard deviations are weighted, so a weight of 2 is the
row twice. Sparse matrices are divided but never centred: differences of rows, which are all that a
pairwise loss sees, do not change by centring.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

__all__ = ["Scaling", "column_moments"]

_BLOCK = 1 << 20  # numbers handled at a time


@dataclass(frozen=True)
class Scaling:
    """What to subtract from each column and what to divide it by.

    Attributes
    ----------
    centre : ndarray of shape (n_columns,)
        Weighted means; zeros for sparse data or when scaling is switched off.
    spread : ndarray of shape (n_columns,)
        Weighted standard deviations; 1 for a constant column or when scaling is switched off.
    """

    centre: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(
        cls, X: Any, sample_weight: np.ndarray | None = None, *, enabled: bool = True
    ) -> Scaling:
        """Learn the scale of the columns of `X`.

        Examples
        --------
        >>> import numpy as np
        >>> scaling = Scaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
        >>> scaling.apply(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        """
        n_columns = X.shape[1]
        if not enabled:
            return cls(np.zeros(n_columns), np.ones(n_columns))
        mean, variance = column_moments(X, sample_weight)
        # a variance within the rounding error of the mean is that of a constant column
        constant = variance <= (8 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
        spread = np.where(constant, 1.0, np.sqrt(variance))
        spread[spread == 0.0] = 1.0
        return cls(np.zeros(n_columns) if sparse.issparse(X) else mean, spread)

    def apply(self, X: Any) -> Any:
        """Return `X` centred and divided, as a float64 array or CSR matrix (a copy)."""
        if sparse.issparse(X):
            scaled = sparse.csr_matrix(X, dtype=np.float64, copy=True)
            scaled.data /= self.spread[scaled.indices]
            return scaled
        out = np.subtract(X, self.centre, dtype=np.float64, order="C")
        out /= self.spread
        return out


def column_moments(
    X: Any, sample_weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance (over the total weight) of each column of a dense or sparse matrix.

    Examples
    --------
    >>> import numpy as np
    >>> mean, variance = column_moments(np.array([[0.0], [3.0]]), np.array([2.0, 1.0]))
    >>> mean.tolist(), variance.tolist()
    ([1.0], [2.0])
    """
    if sparse.issparse(X):
        mean, variance = mean_variance_axis(
            sparse.csr_matrix(X, dtype=np.float64), axis=0, weights=sample_weight
        )
        return mean, np.maximum(variance, 0.0)
    n_rows, n_columns = X.shape
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
    total = weight.sum()
    step = max(1, _BLOCK // max(1, n_columns))
    mean = np.zeros(n_columns)
    for start in range(0, n_rows, step):
        mean += weight[start : start + step] @ np.asarray(X[start : start + step], np.float64)
    mean /= total
    variance = np.zeros(n_columns)
    for start in range(0, n_rows, step):
        deviation = X[start : start + step] - mean
        variance += weight[start : start + step] @ np.square(deviation, out=deviation)
    return mean, variance / total
