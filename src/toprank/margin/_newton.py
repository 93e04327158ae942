"""Newton's method for pairwise hinge losses, with the duality gap as certificate.

Primal, over the pairs p = (i, j) with weights c_p = w_i·w_j and differences d_p = x_i - x_j:

    squared hinge   F(v) = |v|²/2 + C · sum c_p max(0, r_p)²,     r_p = 1 - v·d_p
    hinge           F(v) = |v|²/2 + C · sum c_p max(0, r_p)

Any dual point a_p in [0, C·c_p] (hinge) or a_p >= 0 (squared) bounds the optimum from below. The
derivative of the (smoothed) loss at v is such a point; with u = sum a_p d_p its gap to F(v) is

    squared hinge   |v - u|²/2
    hinge           |v - u|²/2 + C · sum c_p max(0, r_p) - sum a_p r_p

and v - u is the gradient. So the squared hinge needs a small gradient only; the hinge is smoothed by a
parabola of width mu around its kink (Chapelle, 2007), which shrinks as soon as the second part of the
gap outweighs the first. All sums over pairs cost a sort and two sweeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from toprank.margin._matrix import (
    EXPLICIT_COLUMNS,
    product,
    solve_positive,
    transposed_product,
)
from toprank.margin.pairs import GradedPairs, PairSums

__all__ = ["LOSSES", "Solution", "solve"]

LOSSES = ("squared_hinge", "hinge")
_LARGE, _SAMPLE = 20_000, 4  # rows from which a first guess comes from one row in so many
_GUESS_ROWS = 60_000  # more would copy much and tell little
_FIRST_BEND, _WARM_BEND = 2.0, 0.05
_LINE_STEPS = 60
_FINEST_TOL = 1e-10  # rounding allows no relative gap below this
_SLOWEST_BEND, _FASTEST_BEND = 0.5, 0.3
_PATIENCE = 10.0  # the rest of the gap over what smoothing leaves, at which smoothing gets sharper


@dataclass(frozen=True)
class Solution:
    """An optimum with its certificate: the best value is between `objective - gap` and `objective`."""

    coefficients: np.ndarray
    objective: float
    gap: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class _Point:
    """A point with all that was computed there."""

    v: np.ndarray
    sums: PairSums
    scale: float  # what multiplies the smoothed loss
    smooth: float  # the smoothed objective
    gradient: np.ndarray
    objective: float
    kink_gap: float

    @property
    def gap(self) -> float:
        return 0.5 * float(self.gradient @ self.gradient) + self.kink_gap


def solve(
    X: Any,
    pairs: GradedPairs,
    *,
    C: float,
    loss: str = "squared_hinge",
    tol: float = 1e-6,
    max_iter: int = 200,
    start: np.ndarray | None = None,
    advance: Callable[[], None] | None = None,
) -> Solution:
    """Minimise F over v until the duality gap is at most `tol` times F.

    `start` is a first guess; `advance` is called once an iteration. Every point visited bounds the
    optimum from below, so the gap is that of the best point to the best bound.
    """
    if start is None:
        start = _first_guess(X, pairs, C, loss)
    v = np.zeros(X.shape[1]) if start is None else start
    bend = _FIRST_BEND if start is None else _WARM_BEND
    bend = np.inf if loss == "squared_hinge" else bend
    scores = product(X, v)
    point = best = _evaluate(X, pairs, C, v, pairs.sums(scores, bend))
    bound = point.objective - point.gap
    iteration = 0
    while iteration < max_iter and best.objective - bound > tol * best.objective:
        iteration += 1
        direction = _newton_direction(X, pairs, point)
        moved = _line_search(X, pairs, C, point, direction)
        if advance is not None:
            advance()
        point = moved or point
        sharper = _sharper_bend(point, tol)
        if moved is None and sharper == bend:
            break  # rounding errors leave no further descent
        if sharper < bend and point.gap > tol * point.objective:
            bound = max(bound, point.objective - point.gap)
            bend = sharper
            point = _evaluate(X, pairs, C, point.v, pairs.sums(point.sums.scores, bend))
        best = point if point.objective <= best.objective else best
        bound = max(bound, point.objective - point.gap)
    gap = max(best.objective - bound, 0.0)
    return Solution(best.v, best.objective, gap, iteration, gap <= tol * best.objective)


def _first_guess(X: Any, pairs: GradedPairs, C: float, loss: str) -> np.ndarray | None:
    """The rough optimum of a part of a large problem: it saves half of the full steps."""
    if X.shape[0] < _LARGE:
        return None
    rows, sampled = pairs.sample(max(_SAMPLE, -(-X.shape[0] // _GUESS_ROWS)))
    total = sampled.total
    if total == 0:
        return None
    C = C * pairs.total / total
    return solve(X[rows], sampled, C=C, loss=loss, tol=1e-3, max_iter=20).coefficients


def _sharper_bend(point: _Point, tol: float) -> float:
    """The next width of the smoothing: smaller once it makes up most of the gap.

    The gap that smoothing leaves falls about as the square of the width.
    """
    bend, wanted = point.sums.bend, 0.5 * max(tol, _FINEST_TOL) * point.objective
    rest = point.gap - point.kink_gap
    if not np.isfinite(bend) or point.kink_gap <= wanted or rest > _PATIENCE * point.kink_gap:
        return bend
    return bend * float(np.clip(np.sqrt(wanted / point.kink_gap), _FASTEST_BEND, _SLOWEST_BEND))


def _evaluate(X: Any, pairs: GradedPairs, C: float, v: np.ndarray, sums: PairSums) -> _Point:
    """Objective, gradient and gap at `v`, whose scores' pair sums are given."""
    smoothed = np.isfinite(sums.bend)
    scale = C / sums.bend if smoothed else 2 * C
    norm = 0.5 * float(v @ v)
    smooth = norm + scale * sums.loss
    gradient = v + scale * transposed_product(X, sums.slope)
    if not smoothed:
        return _Point(v, sums, scale, smooth, gradient, smooth, 0.0)
    # sum a_p r_p = sum a_p - sum a_p (f_i - f_j)
    explained = scale * (sums.pull + float(sums.slope @ sums.scores))
    kink_gap = max(C * sums.hinge - explained, 0.0)
    return _Point(v, sums, scale, smooth, gradient, norm + C * sums.hinge, kink_gap)


def _newton_direction(X: Any, pairs: GradedPairs, point: _Point) -> np.ndarray:
    """Solve (I + scale·X'LX) p = -gradient, L the curvature over pairs."""
    if X.shape[1] <= EXPLICIT_COLUMNS:
        hessian = point.scale * pairs.hessian(point.sums, X)
        hessian[np.diag_indices(len(hessian))] += 1.0
        return solve_positive(hessian, -point.gradient)

    def hessian_product(p: np.ndarray) -> np.ndarray:
        moved = pairs.curvature(point.sums, product(X, p.ravel()))
        return p.ravel() + point.scale * transposed_product(X, moved)

    size = X.shape[1]
    norm = float(np.linalg.norm(point.gradient))
    rtol = min(0.1, np.sqrt(norm / (1.0 + abs(point.smooth))))
    operator = LinearOperator((size, size), matvec=hessian_product, dtype=np.float64)
    direction, _ = cg(operator, -point.gradient, rtol=max(rtol, 1e-6), maxiter=250)
    return direction


def _line_search(
    X: Any, pairs: GradedPairs, C: float, point: _Point, direction: np.ndarray
) -> _Point | None:
    """Go along `direction`: the whole step if it does not overshoot, else to about the minimum.

    The function is convex, so its derivative along the line, which changes sign at the minimum, tells
    more than its value, and tells it to the last digit. None when no step makes progress.
    """
    downhill = float(point.gradient @ direction)
    if not downhill < 0:
        return None
    shift = product(X, direction)
    short, short_slope, far, far_slope = 0.0, downhill, np.inf, np.inf
    step, best = 1.0, None
    for _ in range(_LINE_STEPS):
        v = point.v + step * direction
        sums = pairs.sums(point.sums.scores + step * shift, point.sums.bend)
        slope = float(v @ direction) + point.scale * float(sums.slope @ shift)
        smooth = 0.5 * float(v @ v) + point.scale * sums.loss
        if slope <= 0:
            short, short_slope, best = step, slope, (v, sums)
        else:
            far, far_slope = step, slope
        lowered = smooth <= point.smooth + 1e-4 * step * downhill
        if (slope <= 0 and step == 1.0) or (lowered and abs(slope) <= -0.5 * downhill):
            return _evaluate(X, pairs, C, v, sums)
        if not np.isfinite(far) or far - short <= 1e-14 * far:
            break
        share = short_slope / (short_slope - far_slope)
        step = short + (far - short) * float(np.clip(share, 0.1, 0.5))
    return None if best is None else _evaluate(X, pairs, C, *best)
