"""Exact full-batch learning of a linear score: minimise F(w) = D(X w) + strength/2 |w|^2, D of `partial_loss`.

L-BFGS comes very near the minimum in a few dozen steps, since sums over so many pairs are almost smooth.
Each evaluation of a convex H also gives a plane below it; the minimum of the highest plane plus the squared
norm is a lower bound of that of F (Teo et al. 2010, "Bundle methods for regularized risk minimization"): a
small quadratic program in the weights of the planes, solved by Clarabel (Goulart & Chen 2024). Proximal
bundle steps close what is left of the gap.

For [0, b] the problem is convex and solved with a certificate. For [a, b] a direct descent by L-BFGS goes
first; then, with (b - a) D[a, b] = b D[0, b] - a D[0, a], the concave-convex procedure (Yuille & Rangarajan
2003) replaces the second term by its tangent and solves what is left; every round lowers F.

The choice of the range. Where the classes overlap, no linear score may put most positives above the hardest
negatives; the convex loss of a narrow range is then smallest for equal scores and says nothing about the
order, and the loss of a wider range gives the better partial AUC in the narrow one. Candidates are
[0, 1], [0, 1/2], ... down to [0, b], then [a, 1/2], ... down to [a, b]; the one whose solutions do best on
held-out folds is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import optimize, sparse

from toprank.margin.base import Solution
from toprank.margin.matrices import product, transposed_product
from toprank.margin.partial_loss import PartialLoss

Oracle = Callable[[np.ndarray], tuple[float, np.ndarray]]
Callback = Callable[[np.ndarray], bool]

_MOST_PLANES = 100
_STEEPEST = 1e8  # a plane of an exploding loss far out tells nothing and spoils the program
_FIRST_PULL = 10.0
_GOOD_PART = 0.1
_STEPS_PER_BOUND = 3
_SMOOTH_STEPS = 200  # most steps of L-BFGS before the planes take over
_CONCAVE_ROUNDS = 30
_QUICK_EVALUATIONS = 30
_EQUAL_SCORES = 0.98  # share of the loss of equal scores above which a minimum is not trusted


@dataclass(frozen=True)
class BatchOptions:
    """How far to go: to a certified relative gap of `tol`, within `max_iter` evaluations of the loss.

    `strength` is the factor of half the squared norm. Without `direct` the concave-convex rounds start
    at once; without `certify` the end of L-BFGS is the end.
    """

    strength: float
    tol: float = 1e-4
    max_iter: int = 500
    direct: bool = True
    certify: bool = True


# -- cutting planes ----------------------------------------------------------------------------------


class Planes:
    """The planes below a convex function that its evaluations have given."""

    def __init__(self, n_features: int) -> None:
        self.gradients = np.empty((0, n_features))
        self.heights = np.empty(0)
        self.gram = np.empty((0, 0))

    def add(self, w: np.ndarray, value: float, gradient: np.ndarray) -> None:
        """Add the plane value + gradient . (v - w)."""
        products = self.gradients @ gradient
        self.gram = np.block(
            [[self.gram, products[:, None]], [products[None], gradient @ gradient]]
        )
        self.gradients = np.vstack((self.gradients, gradient))
        self.heights = np.append(self.heights, value - gradient @ w)

    def lowest(self, strength: float, scale: float, linear: np.ndarray) -> tuple[np.ndarray, float]:
        """Minimise strength/2 |w|^2 + scale * (the highest plane) + linear . w; return w and the minimum.

        With weights x of the planes (x >= 0, sum 1), the minimising w is
        -(scale * x @ gradients + linear)/strength, and the bound is the value of the dual at x.
        """
        heights = scale * self.heights - (scale / strength) * (self.gradients @ linear)
        shares = _simplex_program((scale**2 / strength) * self.gram, heights)
        if len(shares) > _MOST_PLANES:
            chosen = np.sort(np.argsort(-shares, kind="stable")[: _MOST_PLANES * 2 // 3])
            self.gradients, self.heights = self.gradients[chosen], self.heights[chosen]
            self.gram = self.gram[np.ix_(chosen, chosen)]
            shares = shares[chosen] / shares[chosen].sum()
        gradient = scale * (shares @ self.gradients) + linear
        bound = scale * (shares @ self.heights) - gradient @ gradient / (2.0 * strength)
        return -gradient / strength, float(bound)


def _simplex_program(quadratic: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Maximise gain . x - x' quadratic x / 2 over x >= 0 with sum 1."""
    import clarabel

    n = len(gain)
    if n == 1:
        return np.ones(1)
    unit = max(float(np.abs(gain).max()), float(np.abs(quadratic).max()), 1e-300)
    constraints = sparse.vstack((np.ones((1, n)), -sparse.eye_array(n)), format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(quadratic / unit)),
        -gain / unit,
        sparse.csc_matrix(constraints),
        np.concatenate(([1.0], np.zeros(n))),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    ).solve()
    # any point of the simplex gives a valid bound, so an inexact answer is still an answer
    shares = np.maximum(np.nan_to_num(np.asarray(answer.x)), 0.0)
    total = shares.sum()
    return shares / total if total > 0 else np.full(n, 1.0 / n)


# -- convex problems ---------------------------------------------------------------------------------


@dataclass
class Search:
    """F(w) = strength/2 |w|^2 + scale * H(w) + linear . w, and the best point found so far.

    `oracle` gives H and a subgradient; `planes`, if any, gathers the planes of all evaluations.
    """

    oracle: Oracle
    strength: float
    linear: np.ndarray
    scale: float = 1.0
    planes: Planes | None = None
    value: float = np.inf
    w: np.ndarray = field(default_factory=lambda: np.empty(0))
    n_evaluations: int = 0

    def total(self, w: np.ndarray, value: float) -> float:
        """Return F at `w`, where H or its model is `value`."""
        return self.scale * value + 0.5 * self.strength * float(w @ w) + float(self.linear @ w)

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Return F and its gradient."""
        value, gradient = self.oracle(w)
        self.n_evaluations += 1
        gentle = value < _STEEPEST and np.abs(gradient).max() < _STEEPEST
        if gentle and self.planes is not None:
            self.planes.add(w, value, gradient)
        total = self.total(w, value)
        if total < self.value:
            self.value, self.w = total, w.copy()
        return total, self.scale * gradient + self.strength * w + self.linear


def minimise(
    search: Search, start: np.ndarray, options: BatchOptions, callback: Callback | None = None
) -> Solution:
    """Minimise F with a convex H; without planes there is no certificate.

    `callback` is called with the best point after every step and stops the search when it returns True.
    """
    steps = min(_SMOOTH_STEPS, options.max_iter)
    stopped = _lbfgs(search, start, steps, options.tol * 1e-4, callback)
    bound = -np.inf
    if search.planes is not None and not stopped:
        bound = _close_gap(search, search.planes, options, callback)
    return Solution(search.w, float(search.value), float(bound), search.n_evaluations)


def _lbfgs(
    search: Search, start: np.ndarray, steps: int, ftol: float, callback: Callback | None
) -> bool:
    """Run L-BFGS from `start`; return whether the callback asked to stop."""
    if steps < 2:
        search(start)
        return False
    stopped = False

    def report(w: np.ndarray) -> None:
        nonlocal stopped
        if callback is not None and callback(search.w):
            stopped = True
            raise StopIteration

    options = {"maxiter": steps, "maxfun": steps, "maxcor": 20, "ftol": ftol, "gtol": 1e-10}
    optimize.minimize(search, start, jac=True, method="L-BFGS-B", callback=report, options=options)
    return stopped


def _close_gap(
    search: Search, planes: Planes, options: BatchOptions, callback: Callback | None
) -> float:
    """Proximal bundle steps (Kiwiel 1990) until the bound is near; return the bound.

    Each step minimises the model plus pull/2 |w - best|^2. The pull weakens after a step that
    lowers the objective by a good part of what the model promised, and grows after one that does not.
    """
    strength, scale, linear = search.strength, search.scale, search.linear
    pull = _FIRST_PULL * strength
    bound, step = -np.inf, 0
    while True:
        if step % _STEPS_PER_BOUND == 0 or search.n_evaluations >= options.max_iter:
            bound = max(bound, planes.lowest(strength, scale, linear)[1])
            if search.value - bound <= options.tol * abs(search.value):
                return bound
        if search.n_evaluations >= options.max_iter or not np.isfinite(search.value):
            return bound
        before, best = search.value, search.w
        candidate = planes.lowest(strength + pull, scale, linear - pull * best)[0]
        highest = float((planes.gradients @ candidate + planes.heights).max())
        promised = before - search.total(candidate, highest)
        value, _ = search(candidate)
        if value <= before - _GOOD_PART * promised:
            pull = max(pull / 2.0, 1e-2 * strength)
        else:
            pull = min(pull * 1.3, 1e6 * strength)
        if np.array_equal(candidate, best):  # the model has nothing left to offer there
            pull = max(pull / 10.0, 1e-2 * strength)
        step += 1
        if callback is not None and callback(search.w):
            return bound


# -- ranges ------------------------------------------------------------------------------------------


def linear_oracle(X: Any, loss: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> Oracle:
    """Turn a loss of scores into a function of the coefficients: value and (sub)gradient."""

    def oracle(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(product(X, w))
        return value, transposed_product(X, gradient)

    return oracle


def fit_range(
    X: Any,
    loss: PartialLoss,
    options: BatchOptions,
    start: np.ndarray | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimise D(X w) + strength/2 |w|^2 over the range of `loss`.

    For a > 0 the bound is that of the last convex problem.
    """
    n_features = X.shape[1]
    if start is None:
        start = np.zeros(n_features)
        if loss.fpr != (0.0, 1.0) and not loss.structural:
            # at 0 all negatives are tied and the loss of a narrow range has a sharp kink
            start = fit_range(X, loss.over((0.0, 1.0)), options, start).coefficients
    if loss.fpr[0] > 0.0 and not loss.structural:
        return _concave_convex(X, loss, options, start, callback)
    planes = Planes(n_features) if options.certify else None
    search = Search(linear_oracle(X, loss), options.strength, np.zeros(n_features), planes=planes)
    return minimise(search, start, options, callback)


def _concave_convex(
    X: Any, loss: PartialLoss, options: BatchOptions, start: np.ndarray, callback: Callback | None
) -> Solution:
    """Minimise the difference of convex functions that a range [a, b], a > 0, gives."""
    low, high = loss.fpr
    outer = linear_oracle(X, loss.over((0.0, high)))
    inner = linear_oracle(X, loss.over((0.0, low)))
    search = Search(linear_oracle(X, loss), options.strength, np.zeros(X.shape[1]))
    search(start)
    stopped = options.direct and _lbfgs(
        search, start, max(2, options.max_iter // 2), options.tol * 1e-3, callback
    )
    n_evaluations, gap, planes = search.n_evaluations, np.inf, Planes(X.shape[1])
    for _ in range(_CONCAVE_ROUNDS if options.certify or not options.direct else 0):
        if stopped or n_evaluations >= options.max_iter:
            break
        before = search.value
        tangent = -low / (high - low) * inner(search.w)[1]
        convex = Search(outer, options.strength, tangent, high / (high - low), planes)
        left = replace(options, max_iter=max(2, options.max_iter - n_evaluations))
        found = minimise(convex, search.w, left, callback)
        search(found.coefficients)
        n_evaluations += found.n_iter + 2
        gap, stopped = found.relative_gap, not np.isfinite(found.bound)
        if before - search.value <= options.tol * abs(search.value):
            break
    bound = search.value * (1.0 - gap) if np.isfinite(gap) else -np.inf
    return Solution(search.w, search.value, bound, n_evaluations)


# -- the choice of the range -------------------------------------------------------------------------


def candidate_ranges(fpr: tuple[float, float]) -> list[tuple[float, float]]:
    """Return the ranges to try, widest first.

    Examples
    --------
    >>> candidate_ranges((0.1, 0.25))
    [(0.0, 1.0), (0.0, 0.5), (0.0, 0.25), (0.1, 0.5), (0.1, 0.25)]
    """
    low, high = fpr
    ends, end = [], 1.0
    while end > 1.3 * high:
        ends.append(end)
        end /= 2.0
    ends.append(high)
    above = [(low, end) for end in ends if end < 1.0 or high == 1.0] if low > 0.0 else []
    return [(0.0, end) for end in ends] + above


def choose_range(
    X: Any,
    loss: PartialLoss,
    options: BatchOptions,
    measure: Callable[[np.ndarray, np.ndarray], float],
    folds: np.ndarray,
) -> tuple[tuple[float, float], np.ndarray]:
    """Find the range whose minimiser does best on held-out folds, for the range of `loss` itself.

    `measure(rows, scores)` is the quality of the scores of the rows with these numbers; with a single
    fold, rows are judged by scores they were learnt on. Returns the range, and coefficients learnt from
    all rows to a low accuracy, to start from.
    """
    ranges = candidate_ranges(loss.fpr)
    quality = np.zeros(len(ranges))
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        held_out = np.flatnonzero(folds == fold)
        kept = held_out if n_folds == 1 else np.flatnonzero(folds != fold)
        part = replace(loss, positive=loss.positive[kept], weight=loss.weight[kept])
        for k, found in enumerate(_descent(X[kept], part, options, ranges)):
            w = found.coefficients
            reached = found.objective - 0.5 * options.strength * float(w @ w)
            useful = k == 0 or reached < _EQUAL_SCORES * loss.at_zero
            quality[k] += measure(held_out, product(X[held_out], w)) if useful else -np.inf
    best = int(np.argmax(quality))
    *_, found = _descent(X, loss, options, ranges[: best + 1])
    return ranges[best], found.coefficients


def _descent(
    X: Any, loss: PartialLoss, options: BatchOptions, ranges: list[tuple[float, float]]
) -> Iterator[Solution]:
    """Solve for one range after the other, each from the solution before."""
    quick = replace(options, certify=False, max_iter=min(options.max_iter, _QUICK_EVALUATIONS))
    w, first = np.zeros(X.shape[1]), None
    for fpr in ranges:
        if first is not None and fpr[0] > 0.0 and fpr[1] == ranges[1][1]:
            w = first  # the lower end moves up: back to the widest range that can have it
        found = fit_range(X, loss.over(fpr), quick, w)
        w = found.coefficients
        if fpr == ranges[min(1, len(ranges) - 1)]:
            first = w
        yield found
