"""Gradients from a histogram of the scores: for one long list spread over workers, or for speed.

Rows of one level and (nearly) one score are alike to every objective, and a weight is a number of
copies. So the list can be replaced by a weighted one with a row for each level and each point of a
grid of scores: the histogram of `toprank.pairs.binned`. Its gradient, for one copy at each point, is
read back at the rows by interpolation. The histogram adds up over workers and is all that travels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from toprank.objectives.base import FloatArray, Objective, ScoredList, scale_for_trees
from toprank.pairs import BinnedScores, Grid

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
    rows = ScoredList.of(y, scores, sample_weight, graded=objective.graded)
    if objective.pointwise:
        return objective.gradient_hessian(rows.y, rows.scores, sample_weight=rows.weight)
    combine = _alone if combine is None else combine
    grid, n_labels = _common_grid(rows, n_points, combine)
    own = BinnedScores.of(
        rows.scores, rows.y, rows.weight, grid=grid, n_labels=n_labels, nearest=objective.by_rank
    )
    whole = replace(own, weights=combine(own.weights, "sum"))
    labels, points, weight = whole.occupied()
    gradient, hessian = objective.gradient_hessian(labels, points, sample_weight=weight)
    if for_trees:
        gradient, hessian = scale_for_trees(gradient, hessian, labels, weight)
    for_one_copy = np.stack((gradient, hessian)) / weight
    gradient, hessian = whole.read(for_one_copy, rows.scores, rows.y, rows.weight)
    return gradient, hessian


def _alone(array: FloatArray, how: str) -> FloatArray:
    """Combine nothing: the rows at hand are the whole list."""
    return array


def _common_grid(rows: ScoredList, n_points: int, combine: Combine) -> tuple[Grid, int]:
    """Return the grid of all workers, and the number of labels 0, 1, ... that any of them holds."""
    empty = len(rows.scores) == 0  # a worker without rows must not move the ends
    low = combine(np.array([np.inf if empty else rows.scores.min()]), "min")[0]
    ends = np.array([-np.inf, 0.0] if empty else [rows.scores.max(), rows.y.max()])
    high, top = combine(ends, "max")
    if top > _HIGHEST_LABEL:
        raise ValueError(f"the binned form takes labels 0, 1, ..., {_HIGHEST_LABEL}, not {top:g}")
    return Grid.over(float(low), float(high), n_points), max(int(top), 1) + 1
