"""RankSVM: the support vector machine on pairs, by Newton's method with a certificate.

Primal, over the pairs p = (i, j) of one query with grade_i > grade_j, with weights c_p = w_i·w_j and
differences d_p = x_i - x_j:

    squared hinge   F(v) = |v|²/2 + C · sum c_p max(0, r_p)²,     r_p = 1 - v·d_p
    hinge           F(v) = |v|²/2 + C · sum c_p max(0, r_p)

Any dual point a_p in [0, C·c_p] (hinge) or a_p >= 0 (squared) bounds the optimum from below. The
derivative of the (smoothed) loss at v is such a point; with u = sum a_p d_p its gap to F(v) is

    squared hinge   |v - u|²/2
    hinge           |v - u|²/2 + C · sum c_p max(0, r_p) - sum a_p r_p

and v - u is the gradient. So the squared hinge needs a small gradient only; the hinge is smoothed by a
parabola of width mu around its kink (Chapelle, 2007), which shrinks as soon as the second part of the
gap outweighs the first. Both are sums of

    loss(r) = 0 for r <= 0,   r²/2 for 0 < r < mu,   mu·(r - mu/2) for r >= mu,

half the squared hinge for mu = infinity; loss/mu tends to the hinge as mu falls to 0.

Pairs are never listed. Each is seen from both of its rows. From the higher one (side 0), rows stand in
descending order of score, and the rows with r > 0 and those with r >= mu are two growing prefixes of that
order; of these, the ones of lower grade are its partners. From the lower row (side 1) the order is turned
round. One walk along a side finds how far the two prefixes reach (`_walk_side`). A Fenwick tree over the
grades then gives sums over the partners in O(n log levels): of weights, scores and squared scores for the
losses (`_add_losses`), of feature vectors for the Hessian (`_sum_partners`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.margin.base import NOTHING_TO_COMPARE, GradedQueries, KernelRanker, Solution
from toprank.margin.matrices import (
    SERIAL,
    add_row,
    cross_product,
    fit_scaler,
    fit_threads,
    matrix_arrays,
    newton_direction,
    product,
    to_dense,
    transposed_product,
)
from toprank.parallel import ThreadPool
from toprank.progress import progress
from toprank.ranking import descending_order, order_by_code
from toprank.validation import Interval, StrOptions

__all__ = ["RankSVM"]

# C="auto" times the summed variance of the features, for up to so many rows; then it grows with them
_USUAL_STRENGTH, _USUAL_ROWS = 50.0, 1000.0
_LARGE, _SAMPLE = 20_000, 4  # rows from which a first guess comes from one row in so many
_GUESS_ROWS = 60_000  # more would copy much and tell little
_FIRST_BEND, _WARM_BEND = 2.0, 0.05
_SLOWEST_BEND, _FASTEST_BEND = 0.5, 0.3
_LINE_STEPS = 60
_FINEST_TOL = 1e-10  # rounding allows no relative gap below this
_GRADIENT_SHARE = 10.0  # gap of the gradient over that of smoothing, up to which smoothing shrinks
_BLOCK = 1 << 20  # numbers of the Hessian's half worked on at a time
_NARROW = 32  # rows in the bend up to which they are summed one by one


@fill_docstring
class RankSVM(GradedQueries, KernelRanker):
    r"""Rank by a support vector machine on pairs of rows.

    Minimises

    .. math:: \tfrac12 |v|^2 + C \frac1W \sum_{q} \sum_{i, j \in q,\ y_i > y_j} w_i w_j
              \, \ell(1 - v\cdot(\phi(x_i) - \phi(x_j)))

    with W the weight of all pairs (or 1, if `loss_scale` is "sum") and the squared hinge
    :math:`\ell(r) = \max(0, r)^2` or the hinge :math:`\max(0, r)`. Sums
    over pairs take one sort (pairs are never listed), so a fit costs n log n. The optimum is certified
    by its duality gap.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "laplacian"}, default="linear"
        Anything but "linear" goes through the kernel's features: exact up to `exact_rows` distinct
        rows, Nyström beyond.
    C : float or "auto", default="auto"
        Multiplies the mean or the sum over pairs. "auto" is 50 over the summed variance of the
        features, so 50 divided by the number of columns if these are scaled, and a little above 50 for
        a Gaussian kernel, times the thousands of rows where there are more; and 1 for the sum.
    loss_scale : {"mean", "sum"}, default="mean"
        The mean over pairs, with which C means the same for any number of rows; or their sum, which
        grows as their square.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The squared hinge takes a handful of Newton steps, the hinge some tens.
    %(kernel_features)s
    %(scale)s
    tol : float, default=1e-6
        Duality gap, relative to the objective, at which to stop. Rounding allows about 1e-10.
    max_iter : int, default=500
        Most Newton steps.
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    %(kernel_model)s
    C_ : float
        The C used.
    objective_ : float
        Value reached.
    duality_gap_ : float
        The best possible value lies at most this far below `objective_`.
    n_iter_ : int
        Newton steps taken.
    ranks_queries_ : bool
        Whether `fit` was given queries.
    %(classes)s

    References
    ----------
    Joachims, T. (2002). Optimizing search engines using clickthrough data. KDD.
    Chapelle, O. and Keerthi, S. S. (2010). Efficient algorithms for ranking with SVMs. Information
    Retrieval 13.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import RankSVM
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> ranker = RankSVM().fit(X, y)
    >>> round(ranker.score(X, y), 2), ranker.duality_gap_ <= 1e-6 * ranker.objective_
    (0.72, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelRanker._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "loss_scale": [StrOptions({"mean", "sum"})],
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        kernel: str = "linear",
        C: float | str = "auto",
        *,
        loss_scale: str = "mean",
        loss: str = "squared_hinge",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int = 256,
        exact_rows: int = 1000,
        scale: bool = True,
        tol: float = 1e-6,
        max_iter: int = 500,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.loss_scale = loss_scale
        self.loss = loss
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.exact_rows = exact_rows
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> RankSVM:
        """Learn the coefficients.

        Parameters
        ----------
        %(sparse_X)s
        y : array of shape (n_rows,)
            Two labels, the greater one positive; or, with `qid`, grades 0, 1, 2, ...
        %(pair_weight)s
        qid : array of shape (n_rows,), optional
            The query of each row; only rows of the same query are compared.

        Returns
        -------
        self : RankSVM
        """
        self._fit_each([self], self._check_training(X, y, sample_weight, qid))
        return self

    def path(
        self, X: Any, y: Any, Cs: Sequence[float], sample_weight: Any = None, qid: Any = None
    ) -> list[RankSVM]:
        """Fit one ranker for each C, from the smallest up, each started from the one before.

        The columns are scaled and the kernel features computed once.

        Parameters
        ----------
        X, y, sample_weight, qid
            As in `fit`.
        Cs : sequence of float
            The values of C.

        Returns
        -------
        rankers : list of RankSVM
            Fitted, in ascending order of C.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from toprank import RankSVM
        >>> X, y = make_classification(300, random_state=0)
        >>> [ranker.C for ranker in RankSVM().path(X, y, [1.0, 0.01])]
        [0.01, 1.0]
        """
        values = sorted(float(C) for C in Cs)
        for C in values:
            clone(self).set_params(C=C)._validate_params()
        unfitted = clone(self)
        data = unfitted._check_training(X, y, sample_weight, qid)
        rankers = [copy(unfitted).set_params(C=C) for C in values]
        unfitted._fit_each(rankers, data)
        return rankers

    def _usual_C(self, features: Any, weights: np.ndarray) -> float:
        """Return what C="auto" stands for."""
        if self.loss_scale == "sum":
            return 1.0
        variance = float((fit_scaler(features, weights, scale=False).deviation ** 2).sum())
        # as many of one weight tell as much
        n_rows = float(weights.sum() ** 2 / (weights @ weights))
        strength = _USUAL_STRENGTH * max(1.0, n_rows / _USUAL_ROWS)
        return strength / variance if variance > 0 else 1.0

    def _fit_each(self, rankers: list[RankSVM], data: TrainingData) -> None:
        """Fit rankers that differ in C only, each from the solution of the one before."""
        pairs = GradedPairs.of(data.y, data.weights, data.qid)
        if pairs.total == 0:
            raise ValueError(NOTHING_TO_COMPARE)
        start: np.ndarray | None = None
        with fit_threads(self.n_jobs) as pool:
            features, source = self._features(data, pool)
            share = 1.0 / pairs.total if self.loss_scale == "mean" else 1.0
            for ranker in rankers:
                ranker.C_ = (
                    self._usual_C(features, data.weights) if ranker.C == "auto" else float(ranker.C)
                )
                problem = PairProblem(features, pairs, ranker.C_ * share, self.loss, pool)
                with progress(None, "RankSVM", enabled=self.verbose) as advance:
                    found = solve(problem, self.tol, self.max_iter, start, advance)
                if found.gap > self.tol * found.objective:
                    warnings.warn(
                        f"RankSVM stopped after {found.n_iter} steps with a relative duality gap of "
                        f"{found.relative_gap:.1e}, above tol={self.tol:g}; raise max_iter, "
                        "scale the columns, or lower C",
                        ConvergenceWarning,
                        stacklevel=3,
                    )
                start = found.coefficients
                ranker._keep(start, source)
                ranker.objective_, ranker.duality_gap_ = found.objective, found.gap
                ranker.n_iter_ = found.n_iter
                ranker._set_threshold(ranker._raw_scores(data.X), data)


# -- Newton's method ---------------------------------------------------------------------------------


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
    def gradient_gap(self) -> float:
        return 0.5 * float(self.gradient @ self.gradient)

    @property
    def gap(self) -> float:
        return self.gradient_gap + self.kink_gap


@dataclass(frozen=True)
class PairProblem:
    """What is minimised: feature rows `X`, their pairs, C and the loss; and the threads to use."""

    X: Any
    pairs: GradedPairs
    C: float
    loss: str = "squared_hinge"
    pool: ThreadPool = SERIAL

    def evaluate(self, v: np.ndarray, sums: PairSums) -> _Point:
        """Return objective, gradient and gap at `v`, whose scores' pair sums are given."""
        smoothed = np.isfinite(sums.bend)
        scale = self.C / sums.bend if smoothed else 2 * self.C
        norm = 0.5 * float(v @ v)
        smooth = norm + scale * sums.loss
        gradient = v + scale * transposed_product(self.X, sums.gradient)
        if not smoothed:
            return _Point(v, sums, scale, smooth, gradient, smooth, 0.0)
        # sum a_p r_p = sum a_p - sum a_p (f_i - f_j)
        explained = scale * (sums.derivative + float(sums.gradient @ sums.scores))
        kink_gap = max(self.C * sums.hinge - explained, 0.0)
        return _Point(v, sums, scale, smooth, gradient, norm + self.C * sums.hinge, kink_gap)

    def direction(self, point: _Point) -> np.ndarray:
        """Solve (I + scale·X'LX) p = -gradient, L the second derivative in the scores."""

        def hessian() -> np.ndarray:
            matrix = point.scale * self.pairs.hessian(point.sums, self.X, self.pool)
            matrix[np.diag_indices(len(matrix))] += 1.0
            return matrix

        def hessian_product(p: np.ndarray) -> np.ndarray:
            moved = self.pairs.hessian_product(point.sums, product(self.X, p))
            return p + point.scale * transposed_product(self.X, moved)

        norm = float(np.linalg.norm(point.gradient))
        rtol = min(0.1, np.sqrt(norm / (1.0 + abs(point.smooth))))
        return newton_direction(point.gradient, hessian, hessian_product, rtol)

    def line_search(self, point: _Point, direction: np.ndarray) -> _Point | None:
        """Go along `direction`: the whole step if it does not overshoot, else to about the minimum.

        The function is convex, so its derivative along the line, which changes sign at the minimum,
        tells more than its value, and tells it to the last digit. None when no step makes progress.
        """
        downhill = float(point.gradient @ direction)
        if not downhill < 0:
            return None
        shift = product(self.X, direction)
        short, short_slope, far, far_slope = 0.0, downhill, np.inf, np.inf
        step, best = 1.0, None
        for _ in range(_LINE_STEPS):
            v = point.v + step * direction
            sums = self.pairs.sums(point.sums.scores + step * shift, point.sums.bend)
            slope = float(v @ direction) + point.scale * float(sums.gradient @ shift)
            smooth = 0.5 * float(v @ v) + point.scale * sums.loss
            if slope <= 0:
                short, short_slope, best = step, slope, (v, sums)
            else:
                far, far_slope = step, slope
            lowered = smooth <= point.smooth + 1e-4 * step * downhill
            if (slope <= 0 and step == 1.0) or (lowered and abs(slope) <= -0.5 * downhill):
                return self.evaluate(v, sums)
            if not np.isfinite(far) or far - short <= 1e-14 * far:
                break
            share = short_slope / (short_slope - far_slope)
            step = short + (far - short) * float(np.clip(share, 0.1, 0.5))
        return None if best is None else self.evaluate(*best)


def solve(
    problem: PairProblem,
    tol: float = 1e-6,
    max_iter: int = 200,
    start: np.ndarray | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Solution:
    """Minimise F over v until the duality gap is at most `tol` times F.

    `start` is a first guess; `advance` is called once an iteration. Every point visited bounds the
    optimum from below, so the gap is that of the best point to the best bound.
    """
    if start is None:
        start = _first_guess(problem)
    v = np.zeros(problem.X.shape[1]) if start is None else start
    bend = _FIRST_BEND if start is None else _WARM_BEND
    bend = np.inf if problem.loss == "squared_hinge" else bend
    point = best = problem.evaluate(v, problem.pairs.sums(product(problem.X, v), bend))
    bound = point.objective - point.gap
    iteration = 0
    while iteration < max_iter and best.objective - bound > tol * best.objective:
        iteration += 1
        moved = problem.line_search(point, problem.direction(point))
        advance()
        point = moved or point
        sharper = _sharper_bend(point, tol)
        if moved is None and sharper == bend:
            break  # rounding errors leave no further descent
        if sharper < bend and point.gap > tol * point.objective:
            bound = max(bound, point.objective - point.gap)
            bend = sharper
            point = problem.evaluate(point.v, problem.pairs.sums(point.sums.scores, bend))
        best = point if point.objective <= best.objective else best
        bound = max(bound, point.objective - point.gap)
    return Solution(best.v, best.objective, min(bound, best.objective), iteration)


def _first_guess(problem: PairProblem) -> np.ndarray | None:
    """Return the rough optimum of a part of a large problem: it saves half of the full steps."""
    n_rows = problem.X.shape[0]
    if n_rows < _LARGE:
        return None
    rows, sampled = problem.pairs.sample(max(_SAMPLE, -(-n_rows // _GUESS_ROWS)))
    if sampled.total == 0:
        return None
    C = problem.C * problem.pairs.total / sampled.total
    part = replace(problem, X=problem.X[rows], pairs=sampled, C=C)
    return solve(part, tol=1e-3, max_iter=20).coefficients


def _sharper_bend(point: _Point, tol: float) -> float:
    """Return the next width of the smoothing: smaller once it makes up most of the gap.

    The gap that smoothing leaves falls about as the square of the width.
    """
    bend, wanted = point.sums.bend, 0.5 * max(tol, _FINEST_TOL) * point.objective
    if not np.isfinite(bend) or point.kink_gap <= wanted:
        return bend
    if point.gradient_gap > _GRADIENT_SHARE * point.kink_gap:
        return bend
    return bend * float(np.clip(np.sqrt(wanted / point.kink_gap), _FASTEST_BEND, _SLOWEST_BEND))


# -- pairs -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairSums:
    """Sums over all pairs at `scores`; `order` has the rows in descending order inside each query.

    `loss`, `hinge` and `derivative` sum the losses with that bend, max(0, r), and the derivatives of the
    loss in r. `gradient` and `degree` are the gradient of `loss` in the scores and the diagonal of its
    second derivative: a row's weight times the weight of its partners with 0 < r < bend.
    """

    scores: np.ndarray
    order: np.ndarray
    bend: float
    loss: float
    hinge: float
    derivative: float
    gradient: np.ndarray
    degree: np.ndarray


@dataclass(frozen=True)
class GradedPairs:
    """All pairs (i, j) of one query with y_i > y_j, each with the weight w_i·w_j.

    `grade` is the position of a row's label among the distinct labels of its query, `levels` how many
    there are in each query. `query` is None when all rows are one query; in an order by query the block
    of each begins at `starts`. `total` is the summed weight of all pairs.
    """

    grade: np.ndarray
    levels: np.ndarray
    weight: np.ndarray
    query: np.ndarray | None
    starts: np.ndarray
    total: float

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, query: np.ndarray | None = None) -> GradedPairs:
        """Count the pairs of rows with labels `y`, weights, and query codes 0, 1, ..."""
        labels, label = np.unique(y, return_inverse=True)
        codes = np.zeros(len(y), np.int64) if query is None else query.astype(np.int64)
        sizes = np.bincount(codes)
        present, group = np.unique(codes * len(labels) + label, return_inverse=True)
        levels = np.bincount(present // len(labels), minlength=len(sizes))
        first = np.cumsum(levels) - levels  # the first group of each query
        group_weight = np.bincount(group, weight)
        below = np.concatenate([[0.0], np.cumsum(group_weight)])
        lower = below[:-1] - below[np.repeat(first, levels)]
        return cls(
            grade=(group - first[codes]).astype(np.int64),
            levels=levels.astype(np.int64),
            weight=np.ascontiguousarray(weight, dtype=np.float64),
            query=None if len(sizes) == 1 else codes,
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            total=float(group_weight @ lower),
        )

    def sample(self, share: int) -> tuple[np.ndarray, GradedPairs]:
        """Draw every `share`-th query, or rows if queries are few; return them and their pairs."""
        query = self.query
        if query is not None and len(self.levels) >= 50 * share:
            rows = np.flatnonzero(query % share == 0)
        else:
            n_rows = len(self.grade)
            rows = np.sort(np.random.default_rng(0).permutation(n_rows)[: n_rows // share])
        if query is not None:
            query = np.unique(query[rows], return_inverse=True)[1]
        return rows, GradedPairs.of(self.grade[rows], self.weight[rows], query)

    def sums(self, scores: np.ndarray, bend: float) -> PairSums:
        """Sum over all pairs at `scores`: one sort, and a walk along each side."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        if self.query is None:
            order = descending_order(scores)
        else:
            order = order_by_code(scores, self.query, len(self.levels))[0]
        gradient, degree, totals = np.zeros(len(scores)), np.zeros(len(scores)), np.zeros(3)
        for side in (0, 1):
            walk = self._walk(side, scores, order, bend)
            _add_losses(
                side, walk, self.starts, self.levels, self.weight, bend, totals, gradient, degree
            )
        loss, hinge, derivative = totals.tolist()
        return PairSums(scores, order, bend, loss, hinge, derivative, gradient, degree)

    def hessian_product(self, at: PairSums, v: np.ndarray) -> np.ndarray:
        """Multiply the second derivative of the loss in the scores (a graph Laplacian) by `v`."""
        out = at.degree * v
        for side in (0, 1):
            for rows, sums in self._partners(at, v.reshape(-1, 1), side, len(v)):
                out[rows] -= sums[:, 0]
        return out

    def hessian(self, at: PairSums, X: Any, pool: ThreadPool = SERIAL) -> np.ndarray:
        """Return the second derivative of the loss in the coefficients of scores `X @ v`.

        X'LX = X'Z + Z'X with Z = degree·X/2 - (sums over the partners of lower grade), so one side
        of the pairs is enough; blocks of Z are used as they come.
        """
        n_columns = X.shape[1]
        out = np.zeros((n_columns, n_columns))
        for rows, sums in self._partners(at, X, 0, max(1, _BLOCK // n_columns)):
            part = to_dense(X[rows])
            half = 0.5 * at.degree[rows, None] * part
            half -= sums
            out += cross_product(part, half, pool)
        return out + out.T

    def _walk(self, side: int, scores: np.ndarray, order: np.ndarray, bend: float) -> _Walk:
        return _Walk(*_walk_side(side, scores, order, self.starts, self.grade, self.levels, bend))

    def _partners(
        self, at: PairSums, X: Any, side: int, step: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of rows i with w_i times the sum of w_j·x_j over the partners in the bend."""
        walk, matrix = self._walk(side, at.scores, at.order, at.bend), matrix_arrays(X)
        tree = np.zeros((int(self.levels.max()) + 1, X.shape[1]))
        state = np.array([0, -1, 0, 0], dtype=np.int64)
        for first in range(0, len(walk.rows), step):
            rows = walk.rows[first : first + step]
            sums = np.zeros((len(rows), X.shape[1]))
            _sum_partners(walk, self.starts, self.levels, self.weight, matrix, state, tree, sums)
            yield rows, sums


# -- compiled walks ----------------------------------------------------------------------------------


class _Walk(NamedTuple):
    """One side of the pairs, by position in its order.

    `rank` is the grade counted from the side's own end, so that partners have a lower rank. `scores` are
    relative to the middle one of the query, so that squares stay small. The rows of the query before
    position `near` have r > 0, those before position `far` have r >= bend.
    """

    rows: np.ndarray
    rank: np.ndarray
    scores: np.ndarray
    near: np.ndarray
    far: np.ndarray


@njit(inline="always")
def _residual(side, own, other):
    """r of a pair: the same floating-point expression from either row, so both sides agree."""
    return (1.0 - own) + other if side == 0 else (1.0 - other) + own


@njit(cache=True, nogil=True)
def _walk_side(side, scores, order, starts, grade, levels, bend):
    """Walk along one side: the fields of `_Walk`."""
    n = len(order)
    rows, rank, relative = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    near, far = np.empty(n, np.int64), np.empty(n, np.int64)
    for q in range(len(levels)):
        start, stop = starts[q], starts[q + 1]
        for k in range(start, stop):
            row = order[k] if side == 0 else order[start + stop - 1 - k]
            rows[k] = row
            rank[k] = grade[row] if side == 0 else levels[q] - 1 - grade[row]
            relative[k] = scores[row] - scores[order[(start + stop) // 2]]
        near_end = far_end = start
        for k in range(start, stop):
            own = relative[k]
            while near_end < stop and _residual(side, own, relative[near_end]) > 0.0:
                near_end += 1
            while far_end < near_end and _residual(side, own, relative[far_end]) >= bend:
                far_end += 1
            near[k], far[k] = near_end, far_end
    return rows, rank, relative, near, far


# Nodes of a Fenwick tree over the ranks 0 to top - 1 have the numbers 1 to top: rows of the best rank have
# no better one and are never stored. A row of rank r is added at r + 1 and its carries; what lies below
# rank r is read at r and what it covers.


@njit(cache=True, nogil=True)
def _sum_partners(walk, starts, levels, weight, matrix, state, tree, out):
    """Fill `out` with w_i times the sum of w_j·x_j over the partners in the bend, by position.

    Rows come into the tree as `near` passes them and go out as `far` does. `state` (position, query,
    rows that came in, rows that went out) and `tree` carry on from call to call.
    """
    first, q, entered, left = state
    for k in range(first, first + len(out)):
        while q < 0 or k >= starts[q + 1]:
            q += 1
            entered = left = starts[q]
            tree[: levels[q]] = 0.0
        if walk.rank[k] == 0:
            continue
        top = levels[q] - 1
        while entered < walk.near[k]:
            row = walk.rows[entered]
            _add_vector(tree, walk.rank[entered] + 1, top, weight[row], row, matrix)
            entered += 1
        while left < walk.far[k]:
            row = walk.rows[left]
            _add_vector(tree, walk.rank[left] + 1, top, -weight[row], row, matrix)
            left += 1
        place, own_weight = walk.rank[k], weight[walk.rows[k]]
        while place > 0:
            for c in range(out.shape[1]):
                out[k - first, c] += own_weight * tree[place, c]
            place -= place & -place
    state[0], state[1], state[2], state[3] = first + len(out), q, entered, left


@njit(inline="always")
def _add_vector(tree, place, top, factor, row, matrix):
    """Add `factor` times a row of the matrix to the tree."""
    while place <= top:
        add_row(matrix, row, factor, tree[place])
        place += place & -place


@njit(cache=True, nogil=True)
def _add_losses(side, walk, starts, levels, weight, bend, totals, gradient, degree):
    """Add one side's part to the gradient and degree and, for side 0, to the totals.

    Columns of the tree: w, w·f and w·f² of the rows with r > 0, then of those with r >= bend. `totals`:
    loss, hinge, derivative.
    """
    sign = 1.0 if side == 0 else -1.0
    tree, sums = np.zeros((levels.max() + 1, 6)), np.empty(6)
    for q in range(len(levels)):
        entered = passed = starts[q]
        top = levels[q] - 1
        tree[: levels[q]] = 0.0
        for k in range(starts[q], starts[q + 1]):
            if walk.rank[k] == 0:
                continue
            entered = _add_moments(tree, 0, walk, entered, walk.near[k], top, weight)
            passed = _add_moments(tree, 3, walk, passed, walk.far[k], top, weight)
            sums[:] = 0.0
            place = walk.rank[k]
            while place > 0:
                for c in range(6):
                    sums[c] += tree[place, c]
                place -= place & -place
            base = 1.0 - sign * walk.scores[k]  # r = base + sign·f
            partners, residuals, squares = _bent_residuals(walk, k, base, sign, weight, sums)
            beyond = sums[3]  # the weight of the partners with r >= bend
            beyond_residuals = base * beyond + sign * sums[4]
            beyond_derivative = bend * beyond if beyond > 0.0 else 0.0
            row, own = walk.rows[k], weight[walk.rows[k]]
            degree[row] += own * partners
            gradient[row] -= sign * own * (residuals + beyond_derivative)
            if side == 0:
                beyond_loss = 0.0
                if beyond > 0.0:
                    beyond_loss = bend * (beyond_residuals - 0.5 * bend * beyond)
                totals[0] += own * (0.5 * squares + beyond_loss)
                totals[1] += own * (residuals + beyond_residuals)
                totals[2] += own * (residuals + beyond_derivative)


@njit(inline="always")
def _add_moments(tree, column, walk, first, last, top, weight):
    """Add w, w·f and w·f² of the positions `first` to `last` to the tree; return `last`."""
    for k in range(first, last):
        w, f = weight[walk.rows[k]], walk.scores[k]
        place = walk.rank[k] + 1
        while place <= top:
            tree[place, column] += w
            tree[place, column + 1] += w * f
            tree[place, column + 2] += w * f * f
            place += place & -place
    return last


@njit(inline="always")
def _bent_residuals(walk, k, base, sign, weight, sums):
    """Weight, sum of r and sum of r² of the partners in the bend.

    When they are few they are summed one by one: a narrow bend needs the digits that a difference of
    two growing sums would lose.
    """
    if walk.near[k] - walk.far[k] > _NARROW:
        partners, first = sums[0] - sums[3], sign * (sums[1] - sums[4])
        residuals = base * partners + first
        return partners, residuals, base * (residuals + first) + (sums[2] - sums[5])
    partners, residuals, squares = 0.0, 0.0, 0.0
    for j in range(walk.far[k], walk.near[k]):
        if walk.rank[j] < walk.rank[k]:
            w, r = weight[walk.rows[j]], base + sign * walk.scores[j]
            partners += w
            residuals += w * r
            squares += w * r * r
    return partners, residuals, squares
