"""Stochastic learning of a linear score that minimises a partial-AUC loss (POISE).

Rao & Acharyya (2020), algorithm 1: negatives are visited one after the other, and those that rank in the
wanted range take part in a subgradient step. Where the range begins and ends is estimated from a
sample of the negatives that is scored anew after every step. How large it must be does not depend on
the number of rows: the k-th highest of m scores has a false positive rate that follows
Beta(k, m - k + 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from toprank.margin.base import Solution
from toprank.margin.matrices import add_row, matrix_arrays, product, row_product
from toprank.margin.partial_loss import PartialLoss

HINGE, LOGISTIC, EXPONENTIAL = 0, 1, 2
_LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "exponential": EXPONENTIAL}
_BATCH, _PARTNERS = 8, 64  # negatives in the range, and positives they meet, in a step
_PATIENCE = 3  # passes without gain before the end


def sample_size(rate: float, deviation: float) -> int:
    """Return the size m of a sample in which the k-th highest score, k = rate (m + 1), estimates a quantile.

    The false positive rate at that score is Beta(k, m - k + 1): its mean is k/(m + 1), and with
    m = rate (1 - rate)/deviation^2 - 2 its standard deviation is `deviation` (Rao & Acharyya 2020,
    section 5.1).
    """
    return max(1, round(rate * (1.0 - rate) / deviation**2 - 2.0))


def proportional_draw(weights: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Draw `size` row numbers in proportion to the weights, in random order.

    Row i comes up the whole number below or above size * w_i / sum(w) times, so equal weights and
    size = the number of rows give every row once.
    """
    order = random.permutation(len(weights))
    steps = np.cumsum(weights[order])
    # the middle of a cell, moved by less than half of it: rounding cannot lose or double a row
    offset = 0.5 if np.ptp(weights) == 0 and size == len(weights) else random.random()
    places = (np.arange(size) + offset) * (steps[-1] / size)
    drawn = order[np.minimum(np.searchsorted(steps, places, side="right"), len(weights) - 1)]
    return random.permutation(drawn)


def fit_stochastic(
    X: Any,
    loss: PartialLoss,
    strength: float,
    random: np.random.Generator,
    *,
    tol: float = 1e-3,
    n_epochs: int = 50,
    relative_deviation: float = 0.1,
    callback: Callable[[np.ndarray], bool] | None = None,
) -> Solution:
    """Minimise D(X w) + strength/2 |w|^2 by stochastic subgradient steps with averaging.

    There are at most `n_epochs` passes over the negatives; they end when a few have not lowered the
    objective by the share `tol`. `relative_deviation` is the standard deviation of the estimated rates, as
    a share of them. For a range [a, b] with a > 0 the first pass is over [0, b], where the problem is
    convex. `callback` is called after each pass with the averaged coefficients; True ends the search.
    """
    as_rows = sparse.csr_matrix if sparse.issparse(X) else np.ascontiguousarray
    matrix = matrix_arrays(as_rows(X, dtype=np.float64))
    squares = float(np.vdot(matrix.dense, matrix.dense) + matrix.data @ matrix.data)
    row_norm = np.sqrt(squares / X.shape[0])
    first_distance = 1e-2 / max(row_norm, 1e-12)  # moves scores by about a hundredth
    state = _State.start(np.zeros(X.shape[1]), first_distance)
    ranges = [loss.fpr] if loss.fpr[0] == 0.0 else [(0.0, loss.fpr[1]), loss.fpr]
    best, best_w, waited, epoch = np.inf, state.w.copy(), 0, 0
    for epoch in range(1, n_epochs + 1):
        current = ranges[min(epoch, len(ranges)) - 1]
        if epoch == len(ranges) > 1:  # a new problem: start its averages and steps afresh
            state = _State.start(state.average, first_distance)
        drawn = _draw_pass(loss.over(current), strength, relative_deviation, random)
        pegasos_pass(matrix, drawn, state)
        if epoch < len(ranges):
            continue
        w = state.average
        objective = loss(product(X, w))[0] + 0.5 * strength * float(w @ w)
        waited = 0 if objective < best * (1.0 - tol) else waited + 1
        if objective < best:
            best, best_w = objective, w.copy()
        if (callback is not None and callback(w)) or waited >= _PATIENCE:
            break
    return Solution(best_w, best, float("nan"), epoch)


class _Pass(NamedTuple):
    """The rows of a pass in their order, the sample of negatives for the quantiles, and how steps are made.

    `k_low` and `k_high` are the places in the sample where the range begins and ends; 0 stands for no
    limit. A step is made of `batch` negatives and `partners` positives.
    """

    negatives: np.ndarray
    positives: np.ndarray
    sample: np.ndarray
    k_low: int
    k_high: int
    loss: int
    strength: float
    batch: int
    partners: int


class _State(NamedTuple):
    """What steps change: `w`, its average since `origin`, and `numbers`.

    These are the number of steps, the sum of squared gradient norms, and the largest distance from
    `origin` so far.
    """

    origin: np.ndarray
    w: np.ndarray
    average: np.ndarray
    numbers: np.ndarray

    @classmethod
    def start(cls, w: np.ndarray, first_distance: float) -> _State:
        return cls(w.copy(), w.copy(), w.copy(), np.array([0.0, 0.0, first_distance]))


def _draw_pass(
    loss: PartialLoss, strength: float, relative_deviation: float, random: np.random.Generator
) -> _Pass:
    """Draw the order of the rows and the sample for the quantiles."""
    low, high = loss.fpr
    positives, negatives = np.flatnonzero(loss.positive), np.flatnonzero(~loss.positive)
    weights = loss.weight[negatives]
    sample, k_low, k_high = np.empty(0, dtype=np.int64), 0, 0
    rates = [rate for rate in loss.fpr if 0.0 < rate < 1.0]
    if rates:
        size = max(sample_size(rate, relative_deviation * rate) for rate in rates)
        size = min(size, len(weights))
        sample = proportional_draw(weights, size, random)
        k_low = min(max(1, round(low * (size + 1))), size) if low > 0.0 else 0
        k_high = min(max(1, round(high * (size + 1))), size) if high < 1.0 else 0
    in_range = len(negatives) * (high - low)
    return _Pass(
        negatives[proportional_draw(weights, len(negatives), random)],
        positives[proportional_draw(loss.weight[positives], len(positives), random)],
        negatives[sample],
        k_low,
        k_high,
        _LOSSES[loss.surrogate],
        strength,
        min(_BATCH, max(1, int(in_range) // 8)),  # several steps in a small pass
        _PARTNERS,
    )


# -- compiled loops ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _range_limits(matrix, drawn, w, scores):
    """Estimate the lowest and the highest score of the range from the sample."""
    size, lowest, highest = len(scores), -np.inf, np.inf
    for r in range(size):
        scores[r] = row_product(matrix, drawn.sample[r], w)
    if drawn.k_high > 0:
        lowest = np.partition(scores, size - drawn.k_high)[size - drawn.k_high]
    if drawn.k_low > 0:
        highest = np.partition(scores, size - drawn.k_low)[size - drawn.k_low]
    return lowest, highest


@njit(cache=True, nogil=True)
def _negative_derivative(margin, loss):
    """Minus the derivative of the loss of one pair at margin f_i - f_j."""
    if loss == HINGE:
        return 1.0 if margin < 1.0 else 0.0
    if loss == LOGISTIC:
        return 1.0 / (1.0 + np.exp(min(margin, 700.0)))
    return np.exp(min(-margin, 30.0))


@njit(cache=True, nogil=True)
def pegasos_pass(matrix, drawn, state):
    """One pass over the negatives; changes the state in place.

    A negative takes part when its score lies between the `k_high`-th and the `k_low`-th highest
    score of the sample. When `batch` of them have come together, the mean subgradient over their pairs
    with the next `partners` positives, plus strength * w, gives a step.
    """
    gradient = np.empty(len(state.w))
    gathered, gathered_scores = np.empty(drawn.batch, np.int64), np.empty(drawn.batch)
    estimate = np.empty(len(drawn.sample))
    n_gathered, place = 0, 0
    lowest, highest = _range_limits(matrix, drawn, state.w, estimate)
    for row in drawn.negatives:
        score = row_product(matrix, row, state.w)
        if score < lowest or score > highest:
            continue
        gathered[n_gathered], gathered_scores[n_gathered] = row, score
        n_gathered += 1
        if n_gathered < drawn.batch:
            continue
        n_gathered = 0
        _pair_gradient(matrix, drawn, state.w, place, gathered, gathered_scores, gradient)
        place = (place + drawn.partners) % len(drawn.positives)
        _take_step(gradient, drawn.strength, state)
        lowest, highest = _range_limits(matrix, drawn, state.w, estimate)


@njit(cache=True, nogil=True)
def _pair_gradient(matrix, drawn, w, place, gathered, gathered_scores, gradient):
    """Mean subgradient over the pairs of the gathered negatives and the positives from `place` on."""
    gradient[:] = 0.0
    share = 1.0 / (drawn.batch * drawn.partners)
    by_negative = np.zeros(drawn.batch)
    for p in range(drawn.partners):
        partner = drawn.positives[(place + p) % len(drawn.positives)]
        score = row_product(matrix, partner, w)
        by_positive = 0.0
        for g in range(drawn.batch):
            derivative = _negative_derivative(score - gathered_scores[g], drawn.loss)
            by_positive += derivative
            by_negative[g] += derivative
        if by_positive > 0.0:
            add_row(matrix, partner, -share * by_positive, gradient)
    for g in range(drawn.batch):
        if by_negative[g] > 0.0:
            add_row(matrix, gathered[g], share * by_negative[g], gradient)


@njit(cache=True, nogil=True)
def _take_step(gradient, strength, state):
    """Move w against the gradient of the loss and of the squared norm; move the average on.

    The length is the smaller of 1/(strength * t) (Pegasos, Shalev-Shwartz et al. 2011) and the largest
    distance from `origin` so far over the root of the sum of squared gradients (Ivgi et al. 2023), which
    needs no constant. The average weighs step t in proportion to t^3.
    """
    origin, w, average, numbers = state
    numbers[0] += 1.0
    t = numbers[0]
    norm = 0.0
    for c in range(len(w)):
        gradient[c] += strength * w[c]
        norm += gradient[c] * gradient[c]
    numbers[1] += norm
    if numbers[1] == 0.0:
        return
    length = min(numbers[2] / np.sqrt(numbers[1]), 1.0 / (strength * t))
    blend = 4.0 / (t + 3.0)
    distance = 0.0
    for c in range(len(w)):
        w[c] -= length * gradient[c]
        average[c] += blend * (w[c] - average[c])
        distance += (w[c] - origin[c]) ** 2
    numbers[2] = max(numbers[2], np.sqrt(distance))
