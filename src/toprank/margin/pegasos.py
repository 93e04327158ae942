"""Stochastic learning of a linear score that minimises a partial-AUC loss (POISE).

Rao & Acharyya (2020), algorithm 1: negatives are visited one after the other, and those that rank in the
wanted range take part in a subgradient step. Where the range begins and ends is estimated from a
sample of the negatives that is scored anew after every step. How large it must be does not depend on
the number of rows: the k-th highest of m scores has a false positive rate that follows
Beta(k, m - k + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from toprank.margin import _pegasos_kernels as kernels
from toprank.margin._matrix import product
from toprank.margin.partial_loss import PartialLoss

__all__ = [
    "PegasosOptions",
    "PegasosResult",
    "fit_stochastic",
    "order_statistic",
    "proportional_draw",
]

_LOSSES = {
    "hinge": kernels.HINGE,
    "logistic": kernels.LOGISTIC,
    "exponential": kernels.EXPONENTIAL,
}
_NOTHING = np.zeros(1, dtype=np.int64)


def order_statistic(rate: float, deviation: float) -> tuple[int, int]:
    """Sample size m and place k whose k-th highest score estimates a quantile.

    The false positive rate at that score is Beta(k, m - k + 1): its mean is k/(m + 1), and with
    m = rate (1 - rate)/deviation^2 - 2 and k = rate (m + 1) its standard deviation is `deviation`
    (Rao & Acharyya 2020, section 5.1). Both are rounded and at least 1.

    Examples
    --------
    >>> order_statistic(0.05, 0.005)
    (1898, 95)
    """
    size = max(1, round(rate * (1.0 - rate) / deviation**2 - 2.0))
    return size, max(1, round(rate * (size + 1)))


def proportional_draw(weights: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Draw `size` row numbers in proportion to the weights, in random order.

    Row i comes up the whole number below or above size * w_i / sum(w) times, so equal weights and
    size = the number of rows give every row once.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = proportional_draw(np.array([1.0, 2.0]), 3, np.random.default_rng(0))
    >>> sorted(drawn.tolist())
    [0, 1, 1]
    """
    order = random.permutation(len(weights))
    steps = np.cumsum(weights[order])
    # the middle of a cell, moved by less than half of it: rounding cannot lose or double a row
    offset = 0.5 if np.ptp(weights) == 0 and size == len(weights) else random.random()
    places = (np.arange(size) + offset) * (steps[-1] / size)
    drawn = order[np.minimum(np.searchsorted(steps, places, side="right"), len(weights) - 1)]
    return random.permutation(drawn)


@dataclass(frozen=True)
class PegasosOptions:
    """How the stochastic solver goes about it.

    Attributes
    ----------
    strength : float
        Factor of half the squared norm.
    tol : float
        Passes end when the best objective of the last few is not lower by this share.
    n_epochs : int
        Most passes over the negatives.
    relative_deviation : float
        Standard deviation of the estimated false positive rate, as a share of the rate.
    batch_size : int
        Negatives in the range for each step.
    partners : int
        Positives they meet in a step.
    patience : int
        Passes without gain before the end.
    """

    strength: float
    tol: float = 1e-3
    n_epochs: int = 50
    relative_deviation: float = 0.1
    batch_size: int = 8
    partners: int = 64
    patience: int = 3


@dataclass(frozen=True)
class PegasosResult:
    """The best averaged coefficients, the exact objective there, and the passes made."""

    w: np.ndarray
    objective: float
    n_epochs: int


class _Matrix:
    """A matrix in the form of the kernels: values, columns, starts, width."""

    def __init__(self, X: Any) -> None:
        if sparse.issparse(X):
            rows = sparse.csr_matrix(X, dtype=np.float64)
            self.parts = (
                rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64), 0,
            )  # fmt: skip
            squares = float(rows.data @ rows.data)
        else:
            values = np.ascontiguousarray(X, dtype=np.float64).ravel()
            self.parts = (values, _NOTHING, _NOTHING, X.shape[1])
            squares = float(values @ values)
        self.row_norm = np.sqrt(squares / X.shape[0])


def fit_stochastic(
    X: Any,
    loss: PartialLoss,
    options: PegasosOptions,
    random: np.random.Generator,
    callback: Callable[[np.ndarray, float], bool] | None = None,
) -> PegasosResult:
    """Minimise D(X w) + strength/2 |w|^2 by stochastic subgradient steps with averaging.

    For a range [a, b] with a > 0 the first pass is over [0, b], where the problem is convex.

    Parameters
    ----------
    X : matrix of shape (n_rows, n_columns)
    loss : PartialLoss
    options : PegasosOptions
    random : numpy Generator
    callback : callable, optional
        Called after each pass with the averaged coefficients and the exact objective; ends the
        search when it returns True.

    Returns
    -------
    PegasosResult
    """
    matrix = _Matrix(X)
    w = np.zeros(X.shape[1])
    average, origin = w.copy(), w.copy()
    first_reach = 1e-2 / max(matrix.row_norm, 1e-12)  # moves scores by about a hundredth
    state = np.array([0.0, 0.0, first_reach, 0.0])
    ranges = [loss.fpr] if loss.fpr[0] == 0.0 else [(0.0, loss.fpr[1]), loss.fpr]
    best, best_w, waited, epoch = np.inf, w.copy(), 0, 0
    for epoch in range(1, options.n_epochs + 1):
        current = ranges[min(epoch, len(ranges)) - 1]
        if epoch == len(ranges) > 1:  # a new problem: start its averages and steps afresh
            w[:] = average
            origin[:] = average
            state[:3] = 0.0, 0.0, first_reach
        _one_pass(matrix, loss.over(current), options, random, origin, w, average, state)
        if epoch < len(ranges):
            continue
        objective = loss(product(X, average))[0] + 0.5 * options.strength * float(average @ average)
        waited = 0 if objective < best * (1.0 - options.tol) else waited + 1
        if objective < best:
            best, best_w = objective, average.copy()
        if (callback is not None and callback(average, objective)) or waited >= options.patience:
            break
    return PegasosResult(best_w, best, epoch)


def _one_pass(
    matrix: _Matrix,
    loss: PartialLoss,
    options: PegasosOptions,
    random: np.random.Generator,
    origin: np.ndarray,
    w: np.ndarray,
    average: np.ndarray,
    state: np.ndarray,
) -> None:
    """Draw the order of the rows and the sample for the quantiles, then run the compiled pass."""
    positives = np.flatnonzero(loss.positive)
    negatives = np.flatnonzero(~loss.positive)
    weights = loss.weight[negatives]
    sample, k_low, k_high = _reservoir(weights, loss.fpr, options.relative_deviation, random)
    state[3] = 0.0
    in_range = len(negatives) * (loss.fpr[1] - loss.fpr[0])
    batch = min(options.batch_size, max(1, int(in_range) // 8))  # several steps in a small pass
    kernels.pegasos_pass(
        *matrix.parts,
        negatives[proportional_draw(weights, len(negatives), random)],
        positives[proportional_draw(loss.weight[positives], len(positives), random)],
        negatives[sample],
        k_low,
        k_high,
        _LOSSES[loss.surrogate],
        options.strength,
        batch,
        options.partners,
        origin,
        w,
        average,
        state,
    )


def _reservoir(
    weights: np.ndarray,
    fpr: tuple[float, float],
    relative_deviation: float,
    random: np.random.Generator,
) -> tuple[np.ndarray, int, int]:
    """A sample of the negatives, and the places in it where the range begins and ends.

    A place of 0 stands for no limit: the range begins at 0 or ends at 1.
    """
    low, high = fpr
    rates = [rate for rate in fpr if 0.0 < rate < 1.0]
    if not rates:
        return np.empty(0, dtype=np.int64), 0, 0
    size = max(order_statistic(rate, relative_deviation * rate)[0] for rate in rates)
    size = min(size, len(weights))
    sample = proportional_draw(weights, size, random)
    k_low = max(1, round(low * (size + 1))) if low > 0.0 else 0
    k_high = max(1, round(high * (size + 1))) if high < 1.0 else 0
    return sample, min(k_low, size), min(k_high, size)
