"""Compiled loop of the stochastic partial-AUC solver.

A matrix comes as `values, columns, starts, width`. If `width` is above 0 it is dense, row r being
values[r * width : (r + 1) * width]; otherwise it is in compressed sparse rows.
"""

from __future__ import annotations

import numpy as np
from numba import njit

HINGE, LOGISTIC, EXPONENTIAL = 0, 1, 2


@njit(cache=True, nogil=True)
def _row_score(values, columns, starts, width, row, w):
    """Inner product of a row with w."""
    total = 0.0
    if width > 0:
        base = row * width
        for c in range(width):
            total += values[base + c] * w[c]
    else:
        for k in range(starts[row], starts[row + 1]):
            total += values[k] * w[columns[k]]
    return total


@njit(cache=True, nogil=True)
def _add_row(values, columns, starts, width, row, factor, out):
    """Add factor times a row to out."""
    if width > 0:
        base = row * width
        for c in range(width):
            out[c] += factor * values[base + c]
    else:
        for k in range(starts[row], starts[row + 1]):
            out[columns[k]] += factor * values[k]


@njit(cache=True, nogil=True)
def kth_highest(scores, k):
    """The k-th highest of the scores (k counts from 1), by quickselect; reorders them."""
    low, high = 0, len(scores) - 1
    target = k - 1
    while low < high:
        pivot = scores[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while scores[i] > pivot:
                i += 1
            while scores[j] < pivot:
                j -= 1
            if i <= j:
                scores[i], scores[j] = scores[j], scores[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            break
    return scores[target]


@njit(cache=True, nogil=True)
def _slope(margin, loss):
    """Minus the derivative of the loss of one pair at margin f_i - f_j."""
    if loss == HINGE:
        return 1.0 if margin < 1.0 else 0.0
    if loss == LOGISTIC:
        return 1.0 / (1.0 + np.exp(min(margin, 700.0)))
    return np.exp(min(-margin, 30.0))


@njit(cache=True, nogil=True)
def pegasos_pass(
    values,
    columns,
    starts,
    width,
    negatives,
    positives,
    reservoir,
    k_low,
    k_high,
    loss,
    strength,
    batch,
    partners,
    origin,
    w,
    average,
    state,
):
    """One pass over the negatives; changes w, its average and the state in place.

    A negative takes part when its score lies between the `k_high`-th and the `k_low`-th highest
    score of the reservoir (0: no limit on that side). When `batch` of them have come together, the
    mean subgradient over their pairs with the next `partners` positives, plus strength * w, gives a
    step. Its length is the smaller of 1/(strength * t) (Pegasos, Shalev-Shwartz et al. 2011) and
    the largest distance from `origin` so far over the root of the sum of squared gradients (Ivgi
    et al. 2023), which needs no constant. The average weighs step t in proportion to t^3.

    state: number of steps, sum of squared gradient norms, largest distance, place among positives.
    """
    n_features = len(w)
    gradient = np.empty(n_features)
    gathered = np.empty(batch, np.int64)
    gathered_scores = np.empty(batch)
    positive_slopes = np.empty(partners)
    estimate = np.empty(len(reservoir))
    lowest, highest = -np.inf, np.inf
    stale = True
    n_gathered = 0
    for row in negatives:
        if stale:
            for r in range(len(reservoir)):
                estimate[r] = _row_score(values, columns, starts, width, reservoir[r], w)
            lowest = kth_highest(estimate, k_high) if k_high > 0 else -np.inf
            highest = kth_highest(estimate, k_low) if k_low > 0 else np.inf
            stale = False
        score = _row_score(values, columns, starts, width, row, w)
        if score < lowest or score > highest:
            continue
        gathered[n_gathered] = row
        gathered_scores[n_gathered] = score
        n_gathered += 1
        if n_gathered < batch:
            continue
        n_gathered = 0
        stale = True
        gradient[:] = 0.0
        share = 1.0 / (batch * partners)
        negative_slopes = np.zeros(batch)
        for p in range(partners):
            place = int(state[3])
            state[3] = (place + 1) % len(positives)
            partner = positives[place]
            score = _row_score(values, columns, starts, width, partner, w)
            positive_slopes[p] = 0.0
            for g in range(batch):
                slope = _slope(score - gathered_scores[g], loss)
                positive_slopes[p] += slope
                negative_slopes[g] += slope
            if positive_slopes[p] > 0.0:
                factor = -share * positive_slopes[p]
                _add_row(values, columns, starts, width, partner, factor, gradient)
        for g in range(batch):
            if negative_slopes[g] > 0.0:
                factor = share * negative_slopes[g]
                _add_row(values, columns, starts, width, gathered[g], factor, gradient)
        _take_step(gradient, strength, origin, w, average, state)


@njit(cache=True, nogil=True)
def _take_step(gradient, strength, origin, w, average, state):
    """Move w against the gradient of the loss and of the squared norm; move the average on."""
    state[0] += 1.0
    t = state[0]
    norm = 0.0
    for c in range(len(w)):
        gradient[c] += strength * w[c]
        norm += gradient[c] * gradient[c]
    state[1] += norm
    if state[1] == 0.0:
        return
    length = min(state[2] / np.sqrt(state[1]), 1.0 / (strength * t))
    blend = 4.0 / (t + 3.0)
    distance = 0.0
    for c in range(len(w)):
        w[c] -= length * gradient[c]
        average[c] += blend * (w[c] - average[c])
        distance += (w[c] - origin[c]) ** 2
    state[2] = max(state[2], np.sqrt(distance))
