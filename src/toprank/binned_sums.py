r"""Pair sums of rows that are spread over workers: the binned, mergeable form of `toprank.pair_sums`.

Each worker puts the weights of its rows into a histogram on a common grid of scores, every row shared
linearly between the two grid points around it (so that its mean score is kept). Histograms add up;
only they travel. The sums :math:`\sum_j w_j K(f_j - f_i)` are then a convolution of the histogram with
the kernel, done once by FFT on the grid and read back at any score by interpolation. The error is of
the order of the squared distance between grid points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy import fft

__all__ = ["BinnedScores", "Grid", "merge"]

FloatArray = np.ndarray


@dataclass(frozen=True)
class Grid:
    """Evenly spaced scores.

    Attributes
    ----------
    low : float
        The first point.
    step : float
        Distance between two points.
    n_points : int
    """

    low: float
    step: float
    n_points: int

    @classmethod
    def over(cls, low: float, high: float, n_points: int = 16_384) -> Grid:
        """Return the grid from `low` to `high`: the extreme scores of all workers.

        Examples
        --------
        >>> Grid.over(-1.0, 1.0, n_points=5).points.tolist()
        [-1.0, -0.5, 0.0, 0.5, 1.0]
        """
        if n_points < 4:
            raise ValueError(f"a grid needs at least 4 points, not {n_points}")
        if not (np.isfinite(low) and np.isfinite(high) and low <= high):
            raise ValueError(f"a grid needs finite ends, low <= high, not {low!r} and {high!r}")
        span = max(high - low, 1e-9 * max(abs(low), abs(high), 1.0))
        return cls(float(low), float(span) / (n_points - 1), n_points)

    @property
    def points(self) -> FloatArray:
        return self.low + self.step * np.arange(self.n_points)


@dataclass(frozen=True)
class BinnedScores:
    """Weights of rows on a grid of scores, and the pair sums they give.

    Attributes
    ----------
    grid : Grid
    weights : ndarray of shape (n_vectors, n_points)
        One histogram for each vector of weights, such as one for each class.
    """

    grid: Grid
    weights: FloatArray

    @classmethod
    def of(cls, scores: Any, weights: Any = None, *, grid: Grid) -> BinnedScores:
        """Put rows on the grid; `weights` is one vector or several (ones by default).

        Examples
        --------
        >>> grid = Grid.over(0.0, 3.0, n_points=4)
        >>> BinnedScores.of([0.0, 1.25], grid=grid).weights.tolist()
        [[1.0, 0.75, 0.25, 0.0]]
        """
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        matrix = np.ones((1, len(scores))) if weights is None else np.atleast_2d(weights)
        if matrix.shape[1] != len(scores):
            raise ValueError(f"{matrix.shape[1]} weights for {len(scores)} scores")
        held = np.zeros((len(matrix), grid.n_points))
        _share(scores, np.ascontiguousarray(matrix, dtype=np.float64), grid.low, grid.step, held)
        return cls(grid, held)

    def merge(self, *others: BinnedScores) -> BinnedScores:
        """Add the histograms of other workers."""
        return merge([self, *others])

    def sigmoid_sums(self, at: Any) -> tuple[FloatArray, FloatArray]:
        r"""Return :math:`\sum_j w_j sig(f_j - f_i)` and the same with sig', at scores :math:`f_i`.

        Examples
        --------
        >>> grid = Grid.over(-5.0, 5.0)
        >>> sums, slopes = BinnedScores.of([0.0, 0.0, 3.0], grid=grid).sigmoid_sums([0.0])
        >>> sums.round(5).tolist(), slopes.round(5).tolist()
        ([[1.95257]], [[0.54518]])
        """
        distance = self._distances()
        u = np.exp(-np.abs(distance))
        sigmoid = np.where(distance > 0, 1.0, u) / (1.0 + u)
        return self._read(sigmoid, at), self._read(u / (1.0 + u) ** 2, at)

    def softplus_sums(self, at: Any) -> FloatArray:
        r"""Return :math:`\sum_j w_j \log(1 + e^{f_j - f_i})` at scores :math:`f_i`."""
        distance = self._distances()
        return self._read(np.maximum(distance, 0.0) + np.log1p(np.exp(-np.abs(distance))), at)

    def weight_above(self, at: Any) -> FloatArray:
        """Return the weight ranked above scores: ranks from cumulative sums.

        A row's own weight counts half. Inside one step of the grid ranks are interpolated, so the
        very top of a list needs a finer grid or an exchange of its rows.
        """
        below = np.cumsum(self.weights, axis=1)
        above = below[:, -1:] - below + 0.5 * self.weights
        return _interpolate(above, np.asarray(at, dtype=np.float64), self.grid.low, self.grid.step)

    def _distances(self) -> FloatArray:
        n = self.grid.n_points
        return self.grid.step * np.arange(-(n - 1), n)

    def _read(self, kernel: FloatArray, at: Any) -> FloatArray:
        """Convolve with `kernel`, given at all distances between points, and interpolate."""
        n = self.grid.n_points
        size = fft.next_fast_len(3 * n, real=True)
        # Sum over points c of weight_c · kernel(c - b): correlate, by convolving with the mirror.
        transformed = fft.rfft(self.weights, size, axis=1) * fft.rfft(kernel[::-1], size)
        on_grid = fft.irfft(transformed, size, axis=1)[:, n - 1 : 2 * n - 1]
        scores = np.ascontiguousarray(at, dtype=np.float64)
        return _interpolate(np.ascontiguousarray(on_grid), scores, self.grid.low, self.grid.step)


def merge(parts: Sequence[BinnedScores]) -> BinnedScores:
    """Add up the histograms of several workers.

    Examples
    --------
    >>> grid = Grid.over(0.0, 3.0, n_points=4)
    >>> merge([BinnedScores.of([0.0], grid=grid), BinnedScores.of([3.0], grid=grid)]).weights.tolist()
    [[1.0, 0.0, 0.0, 1.0]]
    """
    grids = {part.grid for part in parts}
    if len(grids) != 1:
        raise ValueError("only histograms on one and the same grid can be merged")
    return BinnedScores(grids.pop(), np.sum([part.weights for part in parts], axis=0))


@njit(cache=True, nogil=True)
def _share(scores, weights, low, step, held):
    """Share each row's weights between the two points around its score (ends take what is beyond)."""
    n_points = held.shape[1]
    for i in range(len(scores)):
        place = min(max((scores[i] - low) / step, 0.0), n_points - 1.0)
        left = min(int(place), n_points - 2)
        part = place - left
        for v in range(weights.shape[0]):
            held[v, left] += weights[v, i] * (1.0 - part)
            held[v, left + 1] += weights[v, i] * part


@njit(cache=True, nogil=True)
def _interpolate(values, scores, low, step):
    """Cubic through the four points around each score."""
    n_points = values.shape[1]
    out = np.empty((values.shape[0], len(scores)))
    for i in range(len(scores)):
        place = min(max((scores[i] - low) / step, 0.0), n_points - 1.0)
        left = min(max(int(place), 1), n_points - 3)
        x = place - left
        a = -x * (x - 1.0) * (x - 2.0) / 6.0
        b = (x + 1.0) * (x - 1.0) * (x - 2.0) / 2.0
        c = -(x + 1.0) * x * (x - 2.0) / 2.0
        d = (x + 1.0) * x * (x - 1.0) / 6.0
        for v in range(values.shape[0]):
            out[v, i] = (
                a * values[v, left - 1]
                + b * values[v, left]
                + c * values[v, left + 1]
                + d * values[v, left + 2]
            )
    return out
