"""Gradients from a histogram of the scores: for long lists, in one process or spread over workers.

Rows of one level and (nearly) one score are alike to every objective, and a weight is a number of
copies. So the list can be replaced by a weighted one with a row for each level and each point of a
grid of scores: the histogram of `toprank.pairs.binned`. Its gradient, for one copy at each point, is
read back at the rows. The histogram adds up over workers and is all that travels, but for rows whose ranks
count one by one: the first of the list, and the positives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numba import njit

from toprank.exchange import ALONE, Exchange
from toprank.objectives.base import FloatArray, Objective, scale_for_trees
from toprank.pairs import BinnedScores, Grid
from toprank.validation import check_lengths, check_scores

__all__ = ["EXACT_POSITIVES", "EXACT_ROWS", "binned_gradient_hessian"]

SMOOTH_POINTS = 16_384
RANK_POINTS = 32_768  # of objectives that hold ranks fixed
EXACT_ROWS = 32_768  # at the top of the list, for objectives that go by ranks
EXACT_POSITIVES = 131_072  # the highest, for objectives that hold ranks fixed
_HIGHEST_LABEL = 254
_APART = 255  # the label of rows that are not on the grid


def binned_gradient_hessian(
    objective: Objective,
    y: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    n_points: int | None = None,
    exact_rows: int = EXACT_ROWS,
    exact_positives: int = EXACT_POSITIVES,
    for_trees: bool = False,
    thrifty: bool = False,
    exchange: Exchange = ALONE,
) -> tuple[FloatArray, FloatArray]:
    """Return gradient and Hessian of the rows at hand within the list of all workers' rows.

    Rows are shared between the two points around them, and the error is of the order of the squared
    distance between points: below 1e-6 of the greatest gradient on a usual spread of scores. A lambda
    objective weighs a pair by the ranks of its rows: the positives keep theirs exactly, and where the
    metric looks at the top (`by_rank`) so do the first rows.

    Parameters
    ----------
    objective : Objective
    y, scores, sample_weight : array-like of shape (n_rows,)
        The rows of this worker, all of one and the same query. Scores in float32 are not copied.
    n_points : int, optional
        Points of the grid between the lowest and the highest score; by default 16,384, for lambda
        objectives 32,768.
    exact_rows, exact_positives : int
        How many rows, and how many above level 0, from the top of the list, are told apart.
    for_trees : bool
        Rescale as `scale_for_trees` does, by the sums over all workers, and return float32.
    thrifty : bool
        Save 4 bytes a row at the cost of time.
    exchange : Exchange
        The workers; by default the rows at hand are the whole list.

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
    scores = check_scores(scores)
    if scores.dtype != np.float32:
        scores = scores.astype(np.float64, copy=False)
    check_lengths(y=y, scores=scores, sample_weight=sample_weight)
    if objective.pointwise:
        return objective.gradient_hessian(y, scores, sample_weight=sample_weight)
    keeps_ranks = not objective.smooth or objective.by_rank
    n_points = n_points or (RANK_POINTS if keeps_ranks else SMOOTH_POINTS)
    low, high, n_labels = _common_range(np.asarray(y), scores, exchange)
    grid, labels = Grid.over(low, high, n_points), np.asarray(y).astype(np.uint8)
    apart, exact, mine = np.zeros(0, np.int64), np.zeros((3, 0)), slice(0)
    if keeps_ranks:
        limits = exact_rows, exact_positives
        apart, breaks = _rows_apart(grid, labels, scores, limits, objective.by_rank, exchange)
        weight = np.ones(len(apart)) if sample_weight is None else np.asarray(sample_weight)[apart]
        apart, weight = apart[weight > 0], weight[weight > 0]
        exact, mine = exchange.gather(np.stack((labels[apart], scores[apart], weight)))
        grid = Grid.over(low, high, n_points, np.unique(exact[1][exact[1] < breaks]))
        labels[apart] = _APART
    own = BinnedScores.of(
        scores, labels, sample_weight, grid=grid, n_labels=n_labels, keep_places=not thrifty
    )
    whole = replace(own, weights=exchange.combine(own.weights, "sum"))
    levels, points, weight = map(np.concatenate, zip(whole.occupied(), exact, strict=True))
    gradient, hessian = objective.gradient_hessian(levels, points, sample_weight=weight)
    if for_trees:
        gradient, hessian = scale_for_trees(gradient, hessian, levels, weight)
    by_point, end = np.stack((gradient, hessian)), len(levels) - exact.shape[1]
    dtype = np.float32 if for_trees else np.float64
    found = whole.read(by_point[:, :end] / weight[:end], scores, labels, sample_weight, dtype=dtype)
    found[:, apart] = by_point[:, end:][:, mine]
    return found[0], found[1]


def _common_range(
    y: np.ndarray, scores: FloatArray, exchange: Exchange
) -> tuple[float, float, int]:
    """Return the lowest and highest score of all workers, and how many labels 0, 1, ... there are."""
    ends = np.array([-np.inf, -np.inf, 0.0])  # a worker without rows must not move the ends
    if len(scores):
        ends = np.array([-float(scores.min()), float(scores.max()), float(y.max())])
    minus_low, high, top = exchange.combine(ends, "max")
    if top > _HIGHEST_LABEL:
        raise ValueError(f"the binned form takes labels 0, 1, ..., {_HIGHEST_LABEL}, not {top:g}")
    return -float(minus_low), float(high), max(int(top), 1) + 1


def _rows_apart(
    grid: Grid,
    y: np.ndarray,
    scores: FloatArray,
    limits: tuple[int, int],
    by_rank: bool,
    exchange: Exchange,
) -> tuple[np.ndarray, float]:
    """Return which of the rows at hand are among the first rows or positives of the whole list.

    At most so many as `limits` says, whole cells of the grid; the first rows only if they count (`by_rank`) or
    are all that there are. Also return the score from which on all rows are among them.
    """
    counts = np.zeros((2, len(grid.points)))
    _count_by_cell(scores, y, grid.low, grid.scale, counts)
    from_top = np.cumsum(exchange.combine(counts, "sum")[:, ::-1], axis=1)
    if not by_rank and from_top[0, -1] > limits[0]:
        limits = 0, limits[1]
    first = [
        len(grid.points) - int(np.searchsorted(reached, limit, side="right"))
        for reached, limit in zip(from_top, limits, strict=True)
    ]
    apart = _rows_from(scores, y, grid.low, grid.scale, len(grid.points) - 1, *first)
    return apart, grid.low + first[0] / grid.scale


@njit(cache=True, nogil=True, inline="always")
def _cell(score, low, scale, last):
    return int(min(max((score - low) * scale, 0.0), float(last)))


@njit(cache=True, nogil=True)
def _count_by_cell(scores, y, low, scale, counts):
    """Count the rows of each cell, and those above level 0."""
    for i in range(len(scores)):
        cell = _cell(scores[i], low, scale, counts.shape[1] - 1)
        counts[0, cell] += 1.0
        if y[i] > 0:
            counts[1, cell] += 1.0


@njit(cache=True, nogil=True)
def _rows_from(scores, y, low, scale, last, first, first_positive):
    """Return the rows from one cell on, and those above level 0 from another one on."""
    found, n = np.empty(len(scores), np.int64), 0
    for i in range(len(scores)):
        cell = _cell(scores[i], low, scale, last)
        if cell >= first or (y[i] > 0 and cell >= first_positive):
            found[n] = i
            n += 1
    return found[:n].copy()
