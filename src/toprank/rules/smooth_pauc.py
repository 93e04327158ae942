"""A smooth partial AUC and its gradient, in a few passes over the rows.

    S(f) = 1/(P (b - a) N) sum over negatives k in the range, positives i, of Phi((f_i - f_k)/sigma)

The range holds the negatives ranked between a N and b N; the step of the ROC curve is replaced by the
normal distribution function Phi (Komori & Eguchi 2010). Which negatives are in the range is exact. The
sums over pairs are convolutions on a grid of scores, sigma/32 apart, where each row's weight is shared
linearly between its two neighbours: no pairs, and no sort but of the few rows near the ends of the range.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from scipy.special import ndtr

__all__ = ["SmoothPartialAUC"]

POINTS_A_SIGMA = 32
MOST_POINTS = 65_536
REACH = 6.0  # beyond so many sigmas Phi is 0 or 1 to 9 digits


@dataclass(frozen=True)
class SmoothPartialAUC:
    """The smoothed partial AUC of weighted rows.

    Attributes
    ----------
    positive : bool ndarray
    weights : float ndarray
        Row weights.
    sigma : float
        Width of the smoothing, in units of the score.
    """

    positive: np.ndarray
    weights: np.ndarray
    sigma: float = 1.0

    def in_range(self, scores: np.ndarray, low: float, high: float) -> np.ndarray:
        """Weight of each negative that is ranked between low N and high N; 0 for positives.

        Negatives that tie at an end of the range are in it by the share of them that is.
        """
        start, step, n_points = self._grid(scores)
        cells = _cell_weights(scores, self.positive, self.weights, start, 1 / step, n_points)
        total = float(cells.sum())
        inside = np.where(self.positive, 0.0, self.weights)
        if low > 0:
            score, before, tied = self._group_at(scores, cells, low * total)
            inside[scores > score] = 0.0
            inside[scores == score] *= (before + tied - low * total) / tied
        if high < 1:
            score, before, tied = self._group_at(scores, cells, high * total)
            inside[scores < score] = 0.0
            # a group that holds both ends has lost the part before the first already
            end = inside[scores == score].sum()
            wanted = high * total - max(before, low * total)
            inside[scores == score] *= min(wanted / end, 1.0) if end > 0 else 0.0
        return inside

    def value(self, scores: np.ndarray, in_range: np.ndarray) -> float:
        """The smoothed partial AUC against negatives of these weights, in [0, 1]."""
        positives, negatives, _, step = self._spread(scores, in_range)
        above = _normal_sums(positives, step / self.sigma)
        # not a BLAS product: its threads cost more than such a short sum
        return float(np.sum(negatives * above) / (positives.sum() * negatives.sum()))

    def gradient(self, scores: np.ndarray, in_range: np.ndarray) -> np.ndarray:
        """Derivative of `value` with respect to each score: >= 0 for positives, <= 0 for negatives."""
        positives, negatives, start, step = self._spread(scores, in_range)
        scale = 1.0 / (positives.sum() * negatives.sum() * self.sigma)
        for_positives = scale * _density_sums(negatives, step / self.sigma)
        for_negatives = scale * _density_sums(positives, step / self.sigma)
        return _read_slopes(
            scores,
            self.positive,
            self.weights,
            in_range,
            for_positives,
            for_negatives,
            start,
            1 / step,
        )

    def _grid(self, scores: np.ndarray) -> tuple[float, float, int]:
        """First point, distance and number of the grid points."""
        start, end = float(scores.min()), float(scores.max())
        step = max(self.sigma / POINTS_A_SIGMA, (end - start) / (MOST_POINTS - 2))
        return start, step, int((end - start) / step) + 2

    def _group_at(
        self, scores: np.ndarray, cells: np.ndarray, rank: float
    ) -> tuple[float, float, float]:
        """Score, weight strictly above, and weight of the tied negatives at a rank (by weight)."""
        start, step, n_points = self._grid(scores)
        through = np.cumsum(cells[::-1])[::-1]
        reached = np.flatnonzero(through >= rank * (1 - 1e-12))
        cell = int(reached[-1])
        rows = _rows_of_cell(scores, self.positive, start, 1 / step, n_points, cell)
        values, inverse = np.unique(-scores[rows], return_inverse=True)
        weight = np.bincount(inverse, weights=self.weights[rows])
        down = through[cell] - cells[cell] + np.cumsum(weight)
        k = min(int(np.searchsorted(down, rank * (1 - 1e-12))), len(values) - 1)
        return float(-values[k]), float(down[k] - weight[k]), float(weight[k])

    def _spread(
        self, scores: np.ndarray, in_range: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Weights of the positives, and of the negatives in the range, on the grid."""
        start, step, n_points = self._grid(scores)
        sums = _share_out(scores, self.positive, self.weights, in_range, start, 1 / step, n_points)
        return sums[1], sums[0], start, step


@lru_cache(maxsize=8)
def _kernels(step: float) -> tuple[np.ndarray, np.ndarray]:
    """What Phi differs from a step, and its density, at the grid offsets within reach."""
    half = int(np.ceil(REACH / step))
    offsets = np.arange(-half, half + 1) * step
    difference = ndtr(offsets) - (offsets > 0) - 0.5 * (offsets == 0)
    density = np.exp(-0.5 * offsets**2) / np.sqrt(2 * np.pi)
    return difference[::-1].copy(), density


def _normal_sums(positives: np.ndarray, step: float) -> np.ndarray:
    """For each grid point b, the sum over points m of positives[m] Phi((m - b) step).

    Exact steps by a running sum; what Phi differs from a step is short, and convolved.
    """
    above = np.cumsum(positives[::-1])[::-1] - 0.5 * positives
    return above + _convolve(positives, _kernels(step)[0])


def _density_sums(weights: np.ndarray, step: float) -> np.ndarray:
    """For each grid point b, the sum over points m of weights[m] times the normal density."""
    return _convolve(weights, _kernels(step)[1])


def _convolve(values: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Convolution centred on each point (the kernel has odd length)."""
    half = len(kernel) // 2
    return np.convolve(values, kernel)[half : half + len(values)]


@njit(cache=True, nogil=True)
def _cell_weights(scores, positive, weights, start, inverse_step, n_points):
    """Weight of the negatives in each cell [point, next point)."""
    cells = np.zeros(n_points)
    for i in range(len(scores)):
        if not positive[i]:
            cells[min(int((scores[i] - start) * inverse_step), n_points - 1)] += weights[i]
    return cells


@njit(cache=True, nogil=True)
def _rows_of_cell(scores, positive, start, inverse_step, n_points, cell):
    """Negatives in one cell."""
    rows = np.empty(len(scores), np.int64)
    n = 0
    for i in range(len(scores)):
        here = min(int((scores[i] - start) * inverse_step), n_points - 1) == cell
        if here and not positive[i]:
            rows[n] = i
            n += 1
    return rows[:n].copy()


@njit(cache=True, nogil=True)
def _share_out(scores, positive, weights, in_range, start, inverse_step, n_points):
    """Weights of negatives in the range (row 0) and of positives (row 1) on the grid."""
    sums = np.zeros((2, n_points))
    for i in range(len(scores)):
        label = 1 if positive[i] else 0
        weight = weights[i] if positive[i] else in_range[i]
        place = (scores[i] - start) * inverse_step
        left = min(int(place), n_points - 2)
        share = place - left
        sums[label, left] += weight * (1.0 - share)
        sums[label, left + 1] += weight * share
    return sums


@njit(cache=True, nogil=True)
def _read_slopes(
    scores, positive, weights, in_range, for_positives, for_negatives, start, inverse_step
):
    """Derivatives from the grid, interpolated at each row's score."""
    values = np.empty(len(scores))
    for i in range(len(scores)):
        place = (scores[i] - start) * inverse_step
        left = min(int(place), len(for_positives) - 2)
        share = place - left
        grid = for_positives if positive[i] else for_negatives
        slope = grid[left] * (1.0 - share) + grid[left + 1] * share
        values[i] = weights[i] * slope if positive[i] else -in_range[i] * slope
    return values
