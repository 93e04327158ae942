"""Gradients from a histogram of the scores: for one long list spread over workers, or for speed.

Rows of one level and (nearly) one score are alike to every objective, and a weight is a number of
copies. So the list can be replaced by a weighted one with a row for each level and each point of a
grid of scores: the histogram of `toprank.binned_sums`. Its gradient, for one copy at each point, is
read back at the rows by interpolation. The histogram adds up over workers and is all that travels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from toprank.binned_sums import Grid
from toprank.objectives._base import FloatArray, Objective, checked_rows
from toprank.objectives.scaling import scale_for_trees
from toprank.parallel import run_halves

__all__ = ["binned_gradient_hessian"]

Combine = Callable[[FloatArray, str], FloatArray]

_HIGHEST_LABEL = 255


def binned_gradient_hessian(
    objective: Objective,
    y: FloatArray,
    scores: FloatArray,
    *,
    sample_weight: FloatArray | None = None,
    n_points: int = 16_384,
    for_trees: bool = False,
    combine: Combine | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return gradient and Hessian of the rows at hand within the list of all workers' rows.

    Rows are shared between the two points around them, and the error is of the order of the squared
    distance between points: below 1e-6 of the greatest gradient for the smooth objectives on a usual
    spread of scores. Objectives that go by ranks (`by_rank`) get whole rows at the nearest point
    instead, so that the top of the list keeps its ranks; their error is of the order of that distance.

    Parameters
    ----------
    objective : Objective
    y, scores, sample_weight : array-like of shape (n_rows,)
        The rows of this worker, all of one and the same query.
    n_points : int
        Points of the grid between the lowest and the highest score.
    for_trees : bool
        Rescale as `scale_for_trees` does, by the sums over all workers.
    combine : callable, optional
        `combine(array, how)` returns the elementwise "min", "max" or "sum" of an array over the
        workers. Without it the rows at hand are the whole list.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import objectives
    >>> y, scores = np.array([1, 0, 0]), np.array([0.0, 1.0, -2.0])
    >>> binned, _ = binned_gradient_hessian(objectives.get("ap_sigmoid"), y, scores)
    >>> exact, _ = objectives.get("ap_sigmoid").gradient_hessian(y, scores)
    >>> bool(np.allclose(binned, exact, atol=1e-6))
    True
    """
    rows = checked_rows(y, scores, sample_weight, graded=objective.graded)
    if objective.pointwise:
        return objective.gradient_hessian(rows.y, rows.scores, sample_weight=rows.weight)
    combine = _alone if combine is None else combine
    grid, n_levels = _grid(rows.y, rows.scores, n_points, combine)
    weight = np.empty(0) if rows.weight is None else rows.weight
    codes = rows.y.astype(np.uint8)
    held = np.zeros((n_levels, grid.n_points))
    by_rank = objective.by_rank
    _share_levels(rows.scores, codes, weight, grid.low, grid.step, by_rank, held)
    fields = _fields(objective, combine(held, "sum"), grid, for_trees)
    gradient, hessian = np.empty(len(codes)), np.empty(len(codes))

    def read(part: slice) -> None:
        _read_levels(
            rows.scores[part], codes[part], weight[part], grid.low, grid.step, by_rank, *fields,
            gradient[part], hessian[part],
        )  # fmt: skip

    run_halves(read, len(codes))
    return gradient, hessian


def _alone(array: FloatArray, how: str) -> FloatArray:
    return array


def _grid(y: FloatArray, scores: FloatArray, n_points: int, combine: Combine) -> tuple[Grid, int]:
    """The common grid, and the number of levels 0, 1, ... that any worker holds."""
    empty = len(scores) == 0  # a worker without rows must not move the ends
    low = combine(np.array([np.inf if empty else scores.min()]), "min")[0]
    ends = np.array([-np.inf, 0.0] if empty else [scores.max(), y.max()])
    high, top = combine(ends, "max")
    if top > _HIGHEST_LABEL:
        raise ValueError(f"the binned form takes labels 0, 1, ..., {_HIGHEST_LABEL}, not {top:g}")
    return Grid.over(float(low), float(high), n_points), max(int(top), 1) + 1


def _fields(
    objective: Objective, held: FloatArray, grid: Grid, for_trees: bool
) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian for one copy of a row of each level at each point of the grid.

    Only where there is any weight: no row has a share in the other points, nor reads from them.
    """
    level, point = np.nonzero(held)
    weight, scores = held[level, point], grid.points[point]
    gradient, hessian = objective.gradient_hessian(level, scores, sample_weight=weight)
    if for_trees:
        gradient, hessian = scale_for_trees(gradient, hessian, level, weight)
    fields = np.zeros((2, *held.shape))
    fields[:, level, point] = gradient / weight, hessian / weight
    return fields[0], fields[1]


@njit(cache=True, nogil=True)
def _share_levels(scores, codes, weight, low, step, nearest, held):
    """Share each row's weight between the two points around its score, or give it to the nearest."""
    last = held.shape[1] - 1
    for i in range(len(scores)):
        place = min(max((scores[i] - low) / step, 0.0), float(last))
        place = np.rint(place) if nearest else place
        left = min(int(place), last - 1)
        w = weight[i] if len(weight) else 1.0
        held[codes[i], left] += w * (1.0 - (place - left))
        held[codes[i], left + 1] += w * (place - left)


@njit(cache=True, nogil=True)
def _read_levels(scores, codes, weight, low, step, nearest, slopes, curvatures, gradient, hessian):
    """Interpolate the fields at each row, linearly (which keeps the sign of the curvature)."""
    last = slopes.shape[1] - 1
    for i in range(len(scores)):
        place = min(max((scores[i] - low) / step, 0.0), float(last))
        place = np.rint(place) if nearest else place
        left, level = min(int(place), last - 1), codes[i]
        w = weight[i] if len(weight) else 1.0
        right_part = w * (place - left)
        left_part = w - right_part
        gradient[i] = left_part * slopes[level, left] + right_part * slopes[level, left + 1]
        hessian[i] = left_part * curvatures[level, left] + right_part * curvatures[level, left + 1]
