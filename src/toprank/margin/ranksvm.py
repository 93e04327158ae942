"""RankSVM: the support vector machine on pairs, by Newton's method with a certificate.

Primal, over the pairs p = (i, j) of `pairs.GradedPairs` with weights c_p = w_i·w_j and differences
d_p = x_i - x_j:

    squared hinge   F(v) = |v|²/2 + C · sum c_p max(0, r_p)²,     r_p = 1 - v·d_p
    hinge           F(v) = |v|²/2 + C · sum c_p max(0, r_p)

Any dual point a_p in [0, C·c_p] (hinge) or a_p >= 0 (squared) bounds the optimum from below. The
derivative of the (smoothed) loss at v is such a point; with u = sum a_p d_p its gap to F(v) is

    squared hinge   |v - u|²/2
    hinge           |v - u|²/2 + C · sum c_p max(0, r_p) - sum a_p r_p

and v - u is the gradient. So the squared hinge needs a small gradient only; the hinge is smoothed by a
parabola of width mu around its kink (Chapelle, 2007), which shrinks as soon as the second part of the
gap outweighs the first. All sums over pairs cost a sort and two walks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.margin.base import (
    NOTHING_TO_COMPARE,
    GradedQueries,
    KernelRanker,
    Solution,
)
from toprank.margin.matrices import (
    SERIAL,
    fit_threads,
    newton_direction,
    product,
    transposed_product,
)
from toprank.margin.pairs import GradedPairs, PairSums
from toprank.parallel import ThreadPool
from toprank.progress import progress
from toprank.validation import Interval, StrOptions

__all__ = ["RankSVM"]

_LARGE, _SAMPLE = 20_000, 4  # rows from which a first guess comes from one row in so many
_GUESS_ROWS = 60_000  # more would copy much and tell little
_FIRST_BEND, _WARM_BEND = 2.0, 0.05
_SLOWEST_BEND, _FASTEST_BEND = 0.5, 0.3
_LINE_STEPS = 60
_FINEST_TOL = 1e-10  # rounding allows no relative gap below this
_GRADIENT_SHARE = 10.0  # gap of the gradient over that of smoothing, up to which smoothing shrinks


@fill_docstring
class RankSVM(GradedQueries, KernelRanker):
    r"""Rank by a support vector machine on pairs of rows.

    Minimises

    .. math:: \tfrac12 |v|^2 + C \sum_{q} \sum_{i, j \in q,\ y_i > y_j} w_i w_j
              \, \ell(1 - v\cdot(\phi(x_i) - \phi(x_j)))

    with the squared hinge :math:`\ell(r) = \max(0, r)^2` or the hinge :math:`\max(0, r)`. Sums
    over pairs take one sort (pairs are never listed), so a fit costs n log n. The optimum is certified
    by its duality gap.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "laplacian"}, default="linear"
        Anything but "linear" goes through the kernel's features: exact up to `exact_rows` distinct
        rows, Nyström beyond.
    C : float, default=1.0
        Multiplies the sum over pairs.
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
    (0.69, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelRanker._parameter_constraints,
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        kernel: str = "linear",
        C: float = 1.0,
        *,
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
        %(sample_weight)s
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

    def _fit_each(self, rankers: list[RankSVM], data: TrainingData) -> None:
        """Fit rankers that differ in C only, each from the solution of the one before."""
        pairs = GradedPairs.of(data.y, data.weights, data.qid)
        if pairs.total == 0:
            raise ValueError(NOTHING_TO_COMPARE)
        start: np.ndarray | None = None
        with fit_threads(self.n_jobs) as pool:
            features, source = self._features(data, pool)
            for ranker in rankers:
                problem = PairProblem(features, pairs, ranker.C, self.loss, pool)
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
