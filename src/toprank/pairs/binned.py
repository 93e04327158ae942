"""The binned, mergeable form: a histogram of scores that stands for rows spread over workers.

A row is shared linearly between the two grid points around it, so that its mean score is kept, and a weight
is a number of copies: the occupied points are a short weighted list to which the sums of
`toprank.pairs.sums`, and every objective, apply as they are. Histograms add up; only they travel. The
error is of the order of the squared distance between grid points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from toprank.parallel import run_halves

__all__ = ["BinnedScores", "Grid"]

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
    """Weights of rows on a grid of scores, by label.

    Attributes
    ----------
    grid : Grid
    weights : ndarray of shape (n_labels, n_points)
        These add up over workers.
    nearest : bool
        Whether rows were given whole to their nearest point, rather than shared between two.
    """

    grid: Grid
    weights: FloatArray
    nearest: bool = False

    @classmethod
    def of(
        cls,
        scores: Any,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        grid: Grid,
        n_labels: int = 1,
        nearest: bool = False,
    ) -> BinnedScores:
        """Put rows with labels 0, 1, ... (all 0 by default) on the grid.

        Examples
        --------
        >>> grid = Grid.over(0.0, 3.0, n_points=4)
        >>> BinnedScores.of([0.0, 1.25], grid=grid).weights.tolist()
        [[1.0, 0.75, 0.25, 0.0]]
        """
        held = np.zeros((n_labels, grid.n_points))
        _share(*_checked_rows(scores, labels, sample_weight), grid.low, grid.step, nearest, held)
        return cls(grid, held, nearest)

    def occupied(self) -> tuple[np.ndarray, FloatArray, FloatArray]:
        """Return labels, scores and weights of the occupied points: a short list for all rows.

        Examples
        --------
        >>> grid = Grid.over(0.0, 3.0, n_points=4)
        >>> [part.tolist() for part in BinnedScores.of([0.0, 1.25], grid=grid).occupied()]
        [[0, 0, 0], [0.0, 1.0, 2.0], [1.0, 0.75, 0.25]]
        """
        labels, points = np.nonzero(self.weights)
        return labels, self.grid.points[points], self.weights[labels, points]

    def read(
        self, values: FloatArray, scores: Any, labels: Any = None, sample_weight: Any = None
    ) -> FloatArray:
        """Interpolate values of the occupied points at rows, and multiply by the rows' weights.

        Interpolation is linear (which keeps the sign of a curvature), or from the nearest point.

        Parameters
        ----------
        values : ndarray of shape (n_values, n_occupied)
            For one copy of a row at each of the points that `occupied` lists.
        scores, labels, sample_weight : array-like of shape (n_rows,)
            Rows that were put on the grid.

        Returns
        -------
        ndarray of shape (n_values, n_rows)
        """
        scores, codes, weight = _checked_rows(scores, labels, sample_weight)
        # Zero elsewhere: no row has a share in an empty point, nor reads from it.
        fields = np.zeros((len(values), *self.weights.shape))
        fields[:, self.weights != 0] = values
        found = np.empty((len(values), len(scores)))

        def read(part: slice) -> None:
            _interpolate(
                scores[part], codes[part], weight[part], self.grid.low, self.grid.step,
                self.nearest, fields, found[:, part],
            )  # fmt: skip

        run_halves(read, len(scores))
        return found


def _checked_rows(
    scores: Any, labels: Any, sample_weight: Any
) -> tuple[FloatArray, np.ndarray, FloatArray]:
    """Return scores, labels as small integers (0 by default) and weights of rows (empty for ones)."""
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    codes = np.zeros(len(scores), np.uint8) if labels is None else np.asarray(labels, np.uint8)
    weight = np.ascontiguousarray(() if sample_weight is None else sample_weight, np.float64)
    if sample_weight is not None and len(weight) != len(scores):
        raise ValueError(f"{len(weight)} weights for {len(scores)} scores")
    return scores, codes, weight


@njit(cache=True, nogil=True)
def _locate(score, low, step, nearest, last):
    """Return the point to the left of a score and what of the row belongs to the point to its right.

    The ends of the grid take what lies beyond them; with `nearest` the part is 0 or 1.
    """
    place = min(max((score - low) / step, 0.0), float(last))
    place = np.rint(place) if nearest else place
    left = min(int(place), last - 1)
    return left, place - left


@njit(cache=True, nogil=True)
def _share(scores, codes, weight, low, step, nearest, held):
    """Share each row's weight between the two points around its score, or give it to the nearest."""
    for i in range(len(scores)):
        left, right_part = _locate(scores[i], low, step, nearest, held.shape[1] - 1)
        w = weight[i] if len(weight) else 1.0
        held[codes[i], left] += w * (1.0 - right_part)
        held[codes[i], left + 1] += w * right_part


@njit(cache=True, nogil=True)
def _interpolate(scores, codes, weight, low, step, nearest, fields, found):
    """Fill in the weighted values of the two points around each row, or of the nearest."""
    for i in range(len(scores)):
        left, part = _locate(scores[i], low, step, nearest, fields.shape[2] - 1)
        w, code = weight[i] if len(weight) else 1.0, codes[i]
        right_part = w * part
        left_part = w - right_part
        for v in range(len(fields)):
            found[v, i] = left_part * fields[v, code, left] + right_part * fields[v, code, left + 1]
