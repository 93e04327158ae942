"""Solvers for a linear score: minimise F(w) = D(X w) + strength/2 |w|^2, D of `partial_loss`.

Exact, on all rows. L-BFGS comes very near the minimum in a few dozen steps, since sums over so many pairs
are almost smooth. Each evaluation of a convex H also gives a plane below it; the minimum of the highest
plane plus the squared norm is a lower bound of that of F (Teo et al. 2010, "Bundle methods for regularized
risk minimization"): a small quadratic program in the weights of the planes, solved by Clarabel (Goulart &
Chen 2024). Proximal bundle steps close what is left of the gap.

For [0, b] the problem is convex and solved with a certificate. For [a, b] a direct descent by L-BFGS goes
first; then, with (b - a) D[a, b] = b D[0, b] - a D[0, a], the concave-convex procedure (Yuille & Rangarajan
2003) replaces the second term by its tangent and solves what is left; every round lowers F.

The choice of the range. Where the classes overlap, no linear score may put most positives above the hardest
negatives; the convex loss of a narrow range is then smallest for equal scores and says nothing about the
order, and the loss of a wider range gives the better partial AUC in the narrow one. Candidates are
[0, 1], [0, 1/2], ... down to [0, b], then [a, 1/2], ... down to [a, b]; the one whose solutions do best on
held-out folds is taken.

Stochastic. Rao & Acharyya (2020), algorithm 1: negatives are visited one after the other, and those that
rank in the wanted range take part in a subgradient step. Where the range begins and ends is estimated from
a sample of the negatives that is scored anew after every step. How large it must be does not depend on the
number of rows: the k-th highest of m scores has a false positive rate that follows Beta(k, m - k + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import optimize, sparse

from toprank.margin.base import LEAST_OBJECTIVE, Solution
from toprank.margin.matrices import (
    MatrixArrays,
    add_row,
    matrix_arrays,
    product,
    rotate_onto_rows,
    row_product,
    transposed_product,
)
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
_MOST_ROTATED = 2000  # rows: their eigenvectors take the cube of that
_QUICK_EVALUATIONS = 30
_POLISHING_ROUNDS = 20
_EQUAL_SCORES = 0.98  # share of the loss of equal scores above which a minimum is not trusted
HINGE, LOGISTIC, EXPONENTIAL = 0, 1, 2
_LOSSES = {"hinge": HINGE, "logistic": LOGISTIC, "exponential": EXPONENTIAL}
_BATCH, _PARTNERS = 8, 64  # negatives in the range, and positives they meet, in a step
_PATIENCE = 3  # passes without gain before the end


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

    def lowest(
        self, strength: float, scale: float, linear: np.ndarray, *, polish: bool = False
    ) -> tuple[np.ndarray, float]:
        """Minimise strength/2 |w|^2 + scale * (the highest plane) + linear . w; return w and the minimum.

        With weights x of the planes (x >= 0, sum 1), the minimising w is
        -(scale * x @ gradients + linear)/strength, and the bound is the value of the dual at x. It is
        as sharp as x is exact, which `polish` sees to.
        """
        heights = scale * self.heights - (scale / strength) * (self.gradients @ linear)
        quadratic = (scale**2 / strength) * self.gram
        shares = _simplex_program(quadratic, heights)
        if polish:
            shares = _polished(quadratic, heights, shares)
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


def _polished(quadratic: np.ndarray, gain: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Solve the program once more on the planes that an interior point has found to matter.

    Where the classes can be separated the minimum is many orders below the heights of the planes, whose
    weighted gradients must cancel to more digits than the interior point gives.
    """

    def value(x: np.ndarray) -> float:
        return float(gain @ x - 0.5 * x @ quadratic @ x)

    chosen = np.flatnonzero(shares > 1e-9 * shares.max())
    for _ in range(_POLISHING_ROUNDS):
        size = len(chosen)
        part = quadratic[np.ix_(chosen, chosen)]
        unit = max(float(np.abs(part).max()), 1e-300)
        system = np.ones((size + 1, size + 1))
        system[:size, :size], system[size, size] = part / unit, 0.0
        right = np.append(gain[chosen] / unit, 1.0)
        exact = np.linalg.lstsq(system, right, rcond=1e-14)[0][:size]
        if (exact >= 0).all() and exact.sum() > 0:
            polished = np.zeros(len(shares))
            polished[chosen] = exact / exact.sum()
            return polished if value(polished) > value(shares) else shares
        chosen = chosen[exact > 0]
        if len(chosen) == 0:
            break
    return shares


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
            bound = max(bound, planes.lowest(strength, scale, linear, polish=True)[1])
            if search.value - bound <= options.tol * max(abs(search.value), LEAST_OBJECTIVE):
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

    if not sparse.issparse(X):
        return lambda w: _at(loss, X, w)
    columns = X.T  # once: to turn a small matrix costs more than to multiply it

    def oracle(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(X @ w)
        return value, columns @ gradient

    return oracle


def _at(loss: Callable[..., Any], X: np.ndarray, w: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the loss of the scores X w and its derivative by w."""
    value, gradient = loss(product(X, w))
    return value, transposed_product(X, gradient)


def fit_range(
    X: Any,
    loss: PartialLoss,
    options: BatchOptions,
    start: np.ndarray | None = None,
    callback: Callback | None = None,
) -> Solution:
    """Minimise D(X w) + strength/2 |w|^2 over the range of `loss`.

    For a > 0 the bound is that of the last convex problem. With more columns than rows the coefficients
    are sums of rows, and are searched for among these, as long as there are not too many to turn them.
    """
    n_rows, n_features = X.shape
    if n_rows < n_features and n_rows <= _MOST_ROTATED:
        features, back = rotate_onto_rows(X)
        turned = None if start is None else back.T @ start
        inner = None if callback is None else lambda v: callback(back @ v)
        found = fit_range(features, loss, options, turned, inner)
        return replace(found, coefficients=back @ found.coefficients)
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
    bound = search.value - gap * max(abs(search.value), LEAST_OBJECTIVE)
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
    ranges: list[tuple[float, float]],
    strengths: Sequence[float],
    measure: Callable[[np.ndarray, np.ndarray], float],
    folds: np.ndarray,
) -> tuple[tuple[float, float], float, np.ndarray]:
    """Find the range and the strength whose minimiser does best on held-out folds.

    `measure(rows, scores)` is the quality of the scores of the rows with these numbers; with a single
    fold, rows are judged by scores they were learnt on. Of equals, the first strength and the first range
    are taken. Returns both, and coefficients learnt from all rows to a low accuracy, to start from.
    """
    quality = np.zeros((len(strengths), len(ranges)))
    n_folds = int(folds.max()) + 1
    for fold in range(n_folds):
        held_out = np.flatnonzero(folds == fold)
        kept = held_out if n_folds == 1 else np.flatnonzero(folds != fold)
        part = replace(loss, positive=loss.positive[kept], weight=loss.weight[kept])
        rows, test = X[kept], X[held_out]
        for s, strength in enumerate(strengths):
            descent = _descent(rows, part, replace(options, strength=strength), ranges)
            for k, found in enumerate(descent):
                w = found.coefficients
                reached = found.objective - 0.5 * strength * float(w @ w)
                useful = k == 0 or reached < _EQUAL_SCORES * loss.at_zero
                quality[s, k] += measure(held_out, product(test, w)) if useful else -np.inf
    chosen, best = divmod(int(np.argmax(quality)), len(ranges))
    options = replace(options, strength=strengths[chosen])
    *_, found = _descent(X, loss, options, ranges[: best + 1])
    return ranges[best], strengths[chosen], found.coefficients


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


# -- stochastic steps --------------------------------------------------------------------------------


def sample_size(rate: float, deviation: float) -> int:
    """Return the size m of a sample in which the k-th highest score, k = rate (m + 1), estimates a quantile.

    The false positive rate at that score is Beta(k, m - k + 1): its mean is k/(m + 1), and with
    m = rate (1 - rate)/deviation^2 - 2 its standard deviation is `deviation` (Rao & Acharyya 2020,
    section 5.1).
    """
    return max(1, round(rate * (1.0 - rate) / deviation**2 - 2.0))


def proportional_draw(weights: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Draw `size` row numbers in proportion to the weights, in random order.

    Row i comes up the whole number below or above size * w_i / sum(w) times, so equal weights and
    size = the number of rows give every row once.
    """
    order = random.permutation(len(weights))
    steps = np.cumsum(weights[order])
    # the middle of a cell, moved by less than half of it: rounding cannot lose or double a row
    offset = 0.5 if np.ptp(weights) == 0 and size == len(weights) else random.random()
    places = (np.arange(size) + offset) * (steps[-1] / size)
    drawn = order[np.minimum(np.searchsorted(steps, places, side="right"), len(weights) - 1)]
    return random.permutation(drawn)


def fit_stochastic(
    X: Any,
    loss: PartialLoss,
    strength: float,
    random: np.random.Generator,
    *,
    tol: float = 1e-3,
    n_epochs: int = 50,
    relative_deviation: float = 0.1,
    literal: bool = False,
    callback: Callable[[np.ndarray], bool] | None = None,
) -> Solution:
    """Minimise D(X w) + strength/2 |w|^2 by stochastic subgradient steps with averaging.

    There are at most `n_epochs` passes over the negatives; they end when a few have not lowered the
    objective by the share `tol`. `relative_deviation` is the standard deviation of the estimated rates, as
    a share of them. For a range [a, b] with a > 0 the first pass is over [0, b], where the problem is
    convex. `callback` is called after each pass with the averaged coefficients; True ends the search.
    `literal` takes the steps of the paper: from a random start, with the sample and the range of the
    first pass in all of them, and without averaging; the last pass is kept.
    """
    as_rows = sparse.csr_matrix if sparse.issparse(X) else np.ascontiguousarray
    matrix = matrix_arrays(as_rows(X, dtype=np.float64))
    squares = float(np.vdot(matrix.dense, matrix.dense) + matrix.data @ matrix.data)
    row_norm = np.sqrt(squares / X.shape[0])
    first_distance = 1e-2 / max(row_norm, 1e-12)  # moves scores by about a hundredth
    if literal:
        return _algorithm_1(
            X, matrix, loss, strength, random, n_epochs, relative_deviation, callback
        )
    state = _State.start(np.zeros(X.shape[1]), first_distance)
    ranges = [loss.fpr] if loss.fpr[0] == 0.0 else [(0.0, loss.fpr[1]), loss.fpr]
    best, best_w, waited, epoch = np.inf, state.w.copy(), 0, 0
    for epoch in range(1, n_epochs + 1):
        current = ranges[min(epoch, len(ranges)) - 1]
        if epoch == len(ranges) > 1:  # a new problem: start its averages and steps afresh
            state = _State.start(state.average, first_distance)
        drawn = _draw_pass(loss.over(current), strength, relative_deviation, random)
        pegasos_pass(matrix, drawn, state)
        if epoch < len(ranges):
            continue
        w = state.average
        objective = loss(product(X, w))[0] + 0.5 * strength * float(w @ w)
        waited = 0 if objective < best * (1.0 - tol) else waited + 1
        if objective < best:
            best, best_w = objective, w.copy()
        if (callback is not None and callback(w)) or waited >= _PATIENCE:
            break
    return Solution(best_w, best, float("nan"), epoch)


def _algorithm_1(
    X: Any,
    matrix: MatrixArrays,
    loss: PartialLoss,
    strength: float,
    random: np.random.Generator,
    n_epochs: int,
    relative_deviation: float,
    callback: Callable[[np.ndarray], bool] | None,
) -> Solution:
    """Take the steps of Rao & Acharyya's algorithm 1, one for each negative that is in the range."""
    state = _State.start(random.uniform(-1.0, 1.0, X.shape[1]), np.inf)
    first = _draw_pass(loss, strength, relative_deviation, random)
    steps = first._replace(batch=1, partners=len(first.positives))
    n_passes, stopped = 0, False
    while n_passes < n_epochs and not stopped:
        pegasos_pass(matrix, steps._replace(negatives=random.permutation(first.negatives)), state)
        n_passes += 1
        stopped = callback is not None and callback(state.w)
    objective = loss(product(X, state.w))[0] + 0.5 * strength * float(state.w @ state.w)
    return Solution(state.w.copy(), objective, float("nan"), n_passes)


class _Pass(NamedTuple):
    """The rows of a pass in their order, the sample of negatives for the quantiles, and how steps are made.

    `k_low` and `k_high` are the places in the sample where the range begins and ends; 0 stands for no
    limit. A step is made of `batch` negatives and `partners` positives.
    """

    negatives: np.ndarray
    positives: np.ndarray
    sample: np.ndarray
    k_low: int
    k_high: int
    loss: int
    strength: float
    batch: int
    partners: int


class _State(NamedTuple):
    """What steps change: `w`, its average since `origin`, and `numbers`.

    These are the number of steps, the sum of squared gradient norms, and the largest distance from
    `origin` so far.
    """

    origin: np.ndarray
    w: np.ndarray
    average: np.ndarray
    numbers: np.ndarray

    @classmethod
    def start(cls, w: np.ndarray, first_distance: float) -> _State:
        return cls(w.copy(), w.copy(), w.copy(), np.array([0.0, 0.0, first_distance]))


def _draw_pass(
    loss: PartialLoss, strength: float, relative_deviation: float, random: np.random.Generator
) -> _Pass:
    """Draw the order of the rows and the sample for the quantiles."""
    low, high = loss.fpr
    positives, negatives = np.flatnonzero(loss.positive), np.flatnonzero(~loss.positive)
    weights = loss.weight[negatives]
    sample, k_low, k_high = np.empty(0, dtype=np.int64), 0, 0
    rates = [rate for rate in loss.fpr if 0.0 < rate < 1.0]
    if rates:
        size = max(sample_size(rate, relative_deviation * rate) for rate in rates)
        size = min(size, len(weights))
        sample = proportional_draw(weights, size, random)
        k_low = min(max(1, round(low * (size + 1))), size) if low > 0.0 else 0
        k_high = min(max(1, round(high * (size + 1))), size) if high < 1.0 else 0
    in_range = len(negatives) * (high - low)
    return _Pass(
        negatives[proportional_draw(weights, len(negatives), random)],
        positives[proportional_draw(loss.weight[positives], len(positives), random)],
        negatives[sample],
        k_low,
        k_high,
        _LOSSES[loss.surrogate],
        strength,
        min(_BATCH, max(1, int(in_range) // 8)),  # several steps in a small pass
        _PARTNERS,
    )


# -- compiled loops ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _range_limits(matrix, drawn, w, scores):
    """Estimate the lowest and the highest score of the range from the sample."""
    size, lowest, highest = len(scores), -np.inf, np.inf
    for r in range(size):
        scores[r] = row_product(matrix, drawn.sample[r], w)
    if drawn.k_high > 0:
        lowest = np.partition(scores, size - drawn.k_high)[size - drawn.k_high]
    if drawn.k_low > 0:
        highest = np.partition(scores, size - drawn.k_low)[size - drawn.k_low]
    return lowest, highest


@njit(cache=True, nogil=True)
def _negative_derivative(margin, loss):
    """Minus the derivative of the loss of one pair at margin f_i - f_j."""
    if loss == HINGE:
        return 1.0 if margin < 1.0 else 0.0
    if loss == LOGISTIC:
        return 1.0 / (1.0 + np.exp(min(margin, 700.0)))
    return np.exp(min(-margin, 30.0))


@njit(cache=True, nogil=True)
def pegasos_pass(matrix, drawn, state):
    """One pass over the negatives; changes the state in place.

    A negative takes part when its score lies between the `k_high`-th and the `k_low`-th highest
    score of the sample. When `batch` of them have come together, the mean subgradient over their pairs
    with the next `partners` positives, plus strength * w, gives a step.
    """
    gradient = np.empty(len(state.w))
    gathered, gathered_scores = np.empty(drawn.batch, np.int64), np.empty(drawn.batch)
    estimate = np.empty(len(drawn.sample))
    n_gathered, place = 0, 0
    lowest, highest = _range_limits(matrix, drawn, state.w, estimate)
    for row in drawn.negatives:
        score = row_product(matrix, row, state.w)
        if score < lowest or score > highest:
            continue
        gathered[n_gathered], gathered_scores[n_gathered] = row, score
        n_gathered += 1
        if n_gathered < drawn.batch:
            continue
        n_gathered = 0
        _pair_gradient(matrix, drawn, state.w, place, gathered, gathered_scores, gradient)
        place = (place + drawn.partners) % len(drawn.positives)
        _take_step(gradient, drawn.strength, state)
        lowest, highest = _range_limits(matrix, drawn, state.w, estimate)


@njit(cache=True, nogil=True)
def _pair_gradient(matrix, drawn, w, place, gathered, gathered_scores, gradient):
    """Mean subgradient over the pairs of the gathered negatives and the positives from `place` on."""
    gradient[:] = 0.0
    share = 1.0 / (drawn.batch * drawn.partners)
    by_negative = np.zeros(drawn.batch)
    for p in range(drawn.partners):
        partner = drawn.positives[(place + p) % len(drawn.positives)]
        score = row_product(matrix, partner, w)
        by_positive = 0.0
        for g in range(drawn.batch):
            derivative = _negative_derivative(score - gathered_scores[g], drawn.loss)
            by_positive += derivative
            by_negative[g] += derivative
        if by_positive > 0.0:
            add_row(matrix, partner, -share * by_positive, gradient)
    for g in range(drawn.batch):
        if by_negative[g] > 0.0:
            add_row(matrix, gathered[g], share * by_negative[g], gradient)


@njit(cache=True, nogil=True)
def _take_step(gradient, strength, state):
    """Move w against the gradient of the loss and of the squared norm; move the average on.

    The length is the smaller of 1/(strength * t) (Pegasos, Shalev-Shwartz et al. 2011) and the largest
    distance from `origin` so far over the root of the sum of squared gradients (Ivgi et al. 2023), which
    needs no constant. The average weighs step t in proportion to t^3.
    """
    origin, w, average, numbers = state
    numbers[0] += 1.0
    t = numbers[0]
    norm = 0.0
    for c in range(len(w)):
        gradient[c] += strength * w[c]
        norm += gradient[c] * gradient[c]
    numbers[1] += norm
    if numbers[1] == 0.0:
        return
    length = min(numbers[2] / np.sqrt(numbers[1]), 1.0 / (strength * t))
    blend = 4.0 / (t + 3.0)
    distance = 0.0
    for c in range(len(w)):
        w[c] -= length * gradient[c]
        average[c] += blend * (w[c] - average[c])
        distance += (w[c] - origin[c]) ** 2
    numbers[2] = max(numbers[2], np.sqrt(distance))
