"""The binned, mergeable form: a histogram of scores that stands for rows spread over workers.

A row is shared linearly between the two grid points around it, so that its mean score is kept, and a weight
is a number of copies: the occupied points are a short weighted list to which the sums of
`toprank.pairs.sums`, and every objective, apply as they are. Histograms add up; only they travel. The
error is of the order of the squared distance between grid points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from toprank.parallel import run_halves

__all__ = ["BinnedScores", "Grid"]

FloatArray = np.ndarray


@dataclass(frozen=True)
class Grid:
    """Scores to which rows are moved: evenly spaced ones, and breaks that no row is moved across.

    Attributes
    ----------
    low : float
        The first point.
    scale : float
        One over the distance between two evenly spaced points, the ends of a cell.
    points : ndarray
        All points, ascending.
    lefts : ndarray
        The point at the left end of each cell; for a cell with breaks -1 - k, where point k is one of them.
    starts : ndarray
        The first point of each cell.
    """

    low: float
    scale: float
    points: FloatArray
    lefts: np.ndarray
    starts: np.ndarray

    @classmethod
    def over(cls, low: float, high: float, n_points: int = 16_384, breaks: Any = ()) -> Grid:
        """Return the grid from `low` to `high`: the extreme scores of all workers.

        A break is a point with one right above and one right below it. Rows of another score are shared
        among points on their own side of it, so that a row at a break keeps its rank, and its ties.

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
        low, scale = float(low), (n_points - 1) / float(span)
        even = low + np.arange(n_points) / scale
        if len(breaks) == 0:
            every = np.arange(n_points + 1)
            return cls(low, scale, even, every[:-1].astype(np.int32), every)
        breaks = np.asarray(breaks, np.float64)
        around = [np.nextafter(breaks, -np.inf), breaks, np.nextafter(breaks, np.inf)]
        # stable: quick to merge what is sorted
        points = np.sort(np.concatenate((even, *around)), kind="stable")
        points = points[np.diff(points, prepend=-np.inf) > 0]
        cells = np.clip((points - low) * scale, 0, n_points - 1).astype(np.int64)
        lefts = np.searchsorted(points, even).astype(np.int32)
        places, numbers = (breaks - low) * scale, np.searchsorted(points, breaks)
        for end in (places - 1e-6, places + 1e-6):  # rounding may put a point into the next cell
            lefts[np.clip(end, 0, n_points - 1).astype(np.int64)] = -1 - numbers
        return cls(low, scale, points, lefts, np.searchsorted(cells, np.arange(n_points + 1)))


@dataclass(frozen=True)
class BinnedScores:
    """Weights of rows on a grid of scores, by label.

    Attributes
    ----------
    grid : Grid
    weights : ndarray of shape (n_labels, n_points)
        These add up over workers.
    places : ndarray of int32
        The point to the left of each row, where they were to be kept; otherwise empty.
    """

    grid: Grid
    weights: FloatArray
    places: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))

    @classmethod
    def of(
        cls,
        scores: Any,
        labels: Any = None,
        sample_weight: Any = None,
        *,
        grid: Grid,
        n_labels: int = 1,
        keep_places: bool = False,
    ) -> BinnedScores:
        """Put rows with labels 0, 1, ... (all 0 by default) on the grid; rows of other labels are left out.

        With `keep_places`, for 4 bytes a row, reading values of these rows takes a third of the time.

        Examples
        --------
        >>> grid = Grid.over(0.0, 3.0, n_points=4)
        >>> BinnedScores.of([0.0, 1.25], grid=grid).weights.tolist()
        [[1.0, 0.75, 0.25, 0.0]]
        """
        scores, codes, weight = _checked_rows(scores, labels, sample_weight)
        held = np.zeros((2, n_labels, len(grid.points)))  # of each half of the rows
        places = np.zeros(len(scores) if keep_places else 0, np.int32)

        def share(part: slice) -> None:
            own = held[0 if part.start is None else 1]
            _share(
                scores[part], codes[part], weight[part], grid.low, grid.scale, grid.points,
                grid.lefts, grid.starts, own, places[part],
            )  # fmt: skip

        run_halves(share, len(scores))
        held[0] += held[1]
        return cls(grid, held[0], places)

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
        self,
        values: FloatArray,
        scores: Any,
        labels: Any = None,
        sample_weight: Any = None,
        dtype: Any = np.float64,
    ) -> FloatArray:
        """Interpolate values of the occupied points at rows, and multiply by the rows' weights.

        Interpolation is linear, which keeps the sign of a curvature. Rows of labels that are not on the
        grid get nothing.

        Parameters
        ----------
        values : ndarray of shape (n_values, n_occupied)
            For one copy of a row at each of the points that `occupied` lists.
        scores, labels, sample_weight : array-like of shape (n_rows,)
            Rows that were put on the grid.
        dtype : dtype, default=numpy.float64
            Of the result.

        Returns
        -------
        ndarray of shape (n_values, n_rows)
        """
        scores, codes, weight = _checked_rows(scores, labels, sample_weight)
        # Zero elsewhere: no row has a share in an empty point, nor reads from it.
        fields = np.zeros((*self.weights.shape, len(values)), dtype)
        fields[self.weights != 0] = values.T
        found = np.empty((len(values), len(scores)), dtype)
        grid = self.grid

        def read(part: slice) -> None:
            _interpolate(
                scores[part], codes[part], weight[part], grid.low, grid.scale, grid.points,
                grid.lefts, grid.starts, self.places[part], fields, found[:, part],
            )  # fmt: skip

        run_halves(read, len(scores))
        return found


def _checked_rows(
    scores: Any, labels: Any, sample_weight: Any
) -> tuple[FloatArray, np.ndarray, FloatArray]:
    """Return scores, labels as small integers (0 by default) and weights of rows (empty for ones).

    Scores in float32 stay so.
    """
    scores = np.ascontiguousarray(scores)
    if scores.dtype != np.float32:
        scores = scores.astype(np.float64, copy=False)
    codes = np.zeros(len(scores), np.uint8) if labels is None else np.asarray(labels, np.uint8)
    weight = np.ascontiguousarray(() if sample_weight is None else sample_weight, np.float64)
    if sample_weight is not None and len(weight) != len(scores):
        raise ValueError(f"{len(weight)} weights for {len(scores)} scores")
    return scores, codes, weight


@njit(cache=True, nogil=True, inline="always")
def _locate(score, low, scale, lefts):
    """Return the point to the left of a score, and what of the row belongs to the point to its right.

    The ends of the grid take what lies beyond them. In a cell with breaks the point is negative: -1 - k.
    """
    place = min(max((score - low) * scale, 0.0), len(lefts) - 1.0)
    cell = min(int(place), len(lefts) - 2)
    return lefts[cell], place - cell


@njit(cache=True, nogil=True, inline="always")
def _locate_near(score, low, scale, points, starts, known):
    """Do the same in a cell with breaks, of which point `known` is one: most rows of trees stand at a break."""
    if points[known] == score:
        return known, 0.0
    return _locate_between_breaks(score, low, scale, points, starts)


@njit(cache=True, nogil=True)
def _locate_between_breaks(score, low, scale, points, starts):
    """Search among the points of the cell."""
    cell = int(min(max((score - low) * scale, 0.0), len(starts) - 2.0))
    left, end = max(starts[cell] - 1, 0), starts[cell + 1]
    while end - left > 1:  # the last point that is not above the score
        middle = (left + end) // 2
        if points[middle] <= score:
            left = middle
        else:
            end = middle
    left = min(left, len(points) - 2)
    part = (score - points[left]) / (points[left + 1] - points[left])
    return left, min(max(part, 0.0), 1.0)


@njit(cache=True, nogil=True)
def _share(scores, codes, weight, low, scale, points, lefts, starts, held, places):
    """Share each row's weight between the two points around its score; note the first of them."""
    for i in range(len(scores)):
        code = codes[i]
        if code >= len(held):
            continue
        left, part = _locate(scores[i], low, scale, lefts)
        if left < 0:
            left, part = _locate_near(scores[i], low, scale, points, starts, -1 - left)
        w = weight[i] if len(weight) else 1.0
        held[code, left] += w * (1.0 - part)
        held[code, left + 1] += w * part
        if len(places):
            places[i] = left


@njit(cache=True, nogil=True)
def _interpolate(scores, codes, weight, low, scale, points, lefts, starts, places, fields, found):
    """Fill in the weighted values of the two points around each row."""
    for i in range(len(scores)):
        code = codes[i]
        if code >= len(fields):
            found[:, i] = 0.0
            continue
        if len(places):
            left = places[i]
            part = (scores[i] - points[left]) / (points[left + 1] - points[left])
            part = min(max(part, 0.0), 1.0)
        else:
            left, part = _locate(scores[i], low, scale, lefts)
            if left < 0:
                left, part = _locate_near(scores[i], low, scale, points, starts, -1 - left)
        w = weight[i] if len(weight) else 1.0
        right_part = w * part
        left_part = w - right_part
        for v in range(len(found)):
            found[v, i] = left_part * fields[code, left, v] + right_part * fields[code, left + 1, v]
