"""PAUCBoost: boosting of splines and stumps on a smoothed partial AUC (Komori & Eguchi 2010).

    S(f) = 1/(P (b - a) N) sum over negatives k in the range, positives i, of Phi((f_i - f_k)/sigma)

The range holds the negatives ranked between a N and b N; the step of the ROC curve is replaced by the
normal distribution function Phi. Which negatives are in the range is exact. The sums over pairs are
convolutions on a grid of scores, sigma/32 apart, where each row's weight is shared linearly between its
two neighbours, so no pairs are formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize_scalar
from scipy.special import ndtr
from sklearn.utils import check_random_state

from toprank.base import BaseRanker, TrainingData
from toprank.binning import MISSING, N_BINS
from toprank.docstrings import fill_docstring
from toprank.metrics import partial_auc
from toprank.pairs import range_weights
from toprank.progress import progress
from toprank.rule import Literal, Rule
from toprank.rules.boosters import Booster, KeptRound, contributions
from toprank.rules.ensemble import BoostedRules
from toprank.rules.weak_rankers import BinnedColumns, BinnedRows, StumpSource
from toprank.sampling import sample_classes
from toprank.stopping import ValidationMetric
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions, check_range

__all__ = ["GreedyPAUC", "PAUCBoost", "SmoothPartialAUC", "SplineBasis"]

POINTS_PER_SIGMA = 32
MAX_POINTS = 65_536
REACH = 6.0  # beyond so many sigmas Phi is 0 or 1 to 9 digits
MAX_LEVELS = 48  # values a spline takes
LONGEST_STEP = 2.0  # in sigmas
HALVINGS = 4
N_ANGLES = 24  # of GreedyPAUC, tried over the half circle on a sample
N_REFINEMENTS = 10  # tried near the best of them
SAMPLE_ROWS = 20_000  # of each class


# -- the smoothed partial AUC ------------------------------------------------------------------------


@dataclass(frozen=True)
class SmoothPartialAUC:
    """The smoothed partial AUC of weighted rows."""

    positive: np.ndarray
    weights: np.ndarray
    sigma: float = 1.0  # width of the smoothing, in units of the score

    def in_range(self, scores: np.ndarray, low: float, high: float) -> np.ndarray:
        """Return the weight of each negative that is ranked between low N and high N; 0 for positives.

        Negatives that tie at an end of the range are in it by the share of them that is.
        """
        order = np.flatnonzero(~self.positive)
        order = order[np.argsort(-scores[order], kind="stable")]
        total = float(self.weights[order].sum())
        inside = np.zeros(len(scores))
        ranked = scores[order], self.weights[order]
        inside[order] = range_weights(*ranked, low * total, high * total)
        return inside

    def value(self, scores: np.ndarray, in_range: np.ndarray) -> float:
        """Return the smoothed partial AUC against negatives of these weights, in [0, 1]."""
        positives, negatives, _, step = self._spread(scores, in_range)
        # sums of Phi over the positives: of its step by a running sum, of the rest, which is short, by
        # convolution
        above = np.cumsum(positives[::-1])[::-1] - 0.5 * positives
        above += _convolve(positives, _kernels(step / self.sigma)[0])
        # not a BLAS product: its threads cost more than such a short sum
        return float(np.sum(negatives * above) / (positives.sum() * negatives.sum()))

    def gradient(self, scores: np.ndarray, in_range: np.ndarray) -> np.ndarray:
        """Return the derivative of `value` by each score: >= 0 for positives, <= 0 for negatives."""
        positives, negatives, start, step = self._spread(scores, in_range)
        scale = 1.0 / (positives.sum() * negatives.sum() * self.sigma)
        _, density = _kernels(step / self.sigma)
        for_positives = scale * _convolve(negatives, density)
        for_negatives = scale * _convolve(positives, density)
        rows = scores, self.positive, self.weights, in_range
        return _interpolate_gradient(*rows, for_positives, for_negatives, start, 1 / step)

    def _grid(self, scores: np.ndarray) -> tuple[float, float, int]:
        """Return the first point, the distance and the number of the grid points."""
        start, end = float(scores.min()), float(scores.max())
        step = max(self.sigma / POINTS_PER_SIGMA, (end - start) / (MAX_POINTS - 2))
        return start, step, int((end - start) / step) + 2

    def _spread(
        self, scores: np.ndarray, in_range: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Spread the weights of positives, and of negatives in the range, over the grid."""
        start, step, n_points = self._grid(scores)
        sums = _spread_over_grid(
            scores, self.positive, self.weights, in_range, start, 1 / step, n_points
        )
        return sums[1], sums[0], start, step


@lru_cache(maxsize=8)
def _kernels(step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Phi minus a step, and its density, at the grid offsets within reach."""
    half = int(np.ceil(REACH / step))
    offsets = np.arange(-half, half + 1) * step
    difference = ndtr(offsets) - (offsets > 0) - 0.5 * (offsets == 0)
    density = np.exp(-0.5 * offsets**2) / np.sqrt(2 * np.pi)
    return difference[::-1].copy(), density


def _convolve(values: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Convolve with a kernel of odd length, centred on each point."""
    half = len(kernel) // 2
    return np.convolve(values, kernel)[half : half + len(values)]


# -- natural cubic splines as weak rankers -------------------------------------------------------------


@dataclass(frozen=True)
class SplineBasis:
    """The cardinal natural cubic splines of one column: step functions, read off at its bins.

    A spline over a binned column takes one value an interval, so it is a path of nested rules
    (`x is present`, `x > c1`, `x > c2`, ...) with a level for each: it is scored, explained and written
    as SQL like any other path. The basis functions (rows of `levels`) are 1 at one knot and 0 at the
    others, then centred over the intervals and scaled to unit length; `roughness` has the integrals of
    the products of their second derivatives, over the greatest diagonal entry.
    """

    column: int
    rules: tuple[Rule, ...]
    depth_of_bin: np.ndarray  # how many of the rules cover each of the 256 bins
    levels: np.ndarray
    roughness: np.ndarray

    @classmethod
    def of(cls, bins: BinnedColumns, column: int, n_knots: int) -> SplineBasis:
        """Return the basis with knots at quantiles of a column of numbers."""
        chosen = _spread_out(len(bins.cuts[column]), MAX_LEVELS - 1)
        cuts = bins.cuts[column][chosen]
        name = bins.columns.names[column]
        literals = [Literal(name, "is present")]
        literals += [bins.threshold(column, int(k), ">") for k in chosen]
        depth = np.searchsorted(chosen, np.arange(N_BINS), side="left") + 1
        depth[MISSING] = 0
        centres = np.concatenate([cuts[:1], (cuts[1:] + cuts[:-1]) / 2, cuts[-1:]])
        knots = np.unique(centres[_spread_out(len(centres), n_knots)])
        unit = (knots - knots[0]) / (knots[-1] - knots[0])
        splines = CubicSpline(unit, np.eye(len(unit)), bc_type="natural")
        levels = splines((centres - knots[0]) / (knots[-1] - knots[0])).T
        levels = levels - levels.mean(axis=1, keepdims=True)
        length = np.sqrt((levels**2).mean(axis=1, keepdims=True))
        rules = tuple(Rule((literal,)) for literal in literals)
        return cls(
            column, rules, depth.astype(np.uint8), levels / length, _roughness(splines, length)
        )

    def products(self, sums: np.ndarray) -> np.ndarray:
        """Return the inner products of the basis functions with values of rows, summed by bin."""
        by_depth = np.bincount(self.depth_of_bin, weights=sums, minlength=len(self.rules) + 1)
        return self.levels @ by_depth[1:]


def _spread_out(n: int, wanted: int) -> np.ndarray:
    """Return up to `wanted` of the indices below n, evenly spaced, with both ends."""
    return np.unique(np.round(np.linspace(0, n - 1, min(n, wanted))).astype(np.int64))


def _roughness(splines: CubicSpline, length: np.ndarray) -> np.ndarray:
    """Integrate products of second derivatives (linear between knots, so sums are exact)."""
    points = np.unique(np.concatenate([splines.x, (splines.x[1:] + splines.x[:-1]) / 2]))
    second = splines(points, 2)  # (n_points, n_basis)
    widths = np.diff(splines.x)
    left, middle, right = second[:-1:2], second[1::2], second[2::2]
    # Simpson's rule is exact for the products, which are quadratic between knots
    products = sum(
        share * np.einsum("ki,kj,k->ij", part, part, widths)
        for share, part in ((1 / 6, left), (4 / 6, middle), (1 / 6, right))
    )
    products = products / (length * length.T)
    return products / np.diag(products).max()


# -- the booster and the estimator ---------------------------------------------------------------------


class Direction(NamedTuple):
    """A weak ranker to step along, its derivative, and which spline it is: (basis, function, sign)."""

    rules: tuple[Rule, ...]
    levels: np.ndarray
    depth: np.ndarray
    derivative: float
    spline: tuple[int, int, float] | None = None


class PartialAUCBooster(Booster):
    """Coordinate ascent on the smoothed partial AUC minus a penalty, one weak ranker a round.

    The gradient against the negatives that are in the range now gives the steepest stump or basis
    spline; a bounded line search against the same negatives gives the step. The range narrows from the
    whole list to (low, high): while few rules are in the score most rows tie, and no single rule
    raises the partial AUC of a narrow range, though it does raise the AUC.
    """

    def __init__(
        self,
        source: StumpSource,
        bases: list[SplineBasis],
        objective: SmoothPartialAUC,
        fpr: tuple[float, float],
        *,
        narrow_until: float,
        penalty: float,
        learning_rate: float,
    ) -> None:
        super().__init__(objective.positive, objective.weights)
        self.source = source
        self.bases = bases
        self.objective = objective
        self.fpr = fpr
        self.narrow_until = narrow_until
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.n_evaluated = source.n_evaluated + sum(len(basis.levels) for basis in bases)
        self.coefficients = [np.zeros(len(basis.levels)) for basis in bases]
        self.scores = np.zeros(len(objective.positive))
        self.n_rounds = 0

    def __next__(self) -> KeptRound:
        in_range = self.objective.in_range(self.scores, *self._range())
        direction = self._steepest(self.objective.gradient(self.scores, in_range))
        if direction is None:
            raise StopIteration
        step = self.learning_rate * self._step(direction, in_range)
        self.n_rounds += 1
        self.depth = direction.depth
        self.scores += contributions(direction.depth, direction.levels, step)
        if direction.spline is not None:
            b, k, sign = direction.spline
            self.coefficients[b][k] += sign * step
        in_range = self.objective.in_range(self.scores, *self.fpr)
        value = self.objective.value(self.scores, in_range)
        # exact: a smoothed one gives ties one half, and would prefer one rule that covers nearly all;
        # scores that only rounding tells apart are ties
        ties = np.round(self.scores / self.objective.sigma, 9)
        score = partial_auc(self.positive, ties, fpr=self.fpr, sample_weight=self.sample_weight)
        log_loss = float(np.log(max(1.0 - value, 1e-300)))
        rules, levels = direction.rules, direction.levels
        return self._kept(rules, levels, step, score, self.n_evaluated, log_loss)

    def _range(self) -> tuple[float, float]:
        """Return the range of this round: from (0, 1) to `fpr`, its upper end by equal factors."""
        share = min(self.n_rounds / self.narrow_until, 1.0) if self.narrow_until > 0 else 1.0
        return self.fpr[0] * share, self.fpr[1] ** share

    def _steepest(self, gradient: np.ndarray) -> Direction | None:
        """Return the stump or basis spline along which the partial AUC rises most steeply."""
        positive = self.objective.positive
        weights = np.abs(gradient)
        up, down = float(weights[positive].sum()), float(weights[~positive].sum())
        if not min(up, down) > 1e-12:
            return None
        # the two totals are equal but for the rounding of the grid
        weights *= np.where(positive, 1.0 / up, 1.0 / down)
        found = self._splines(gradient) if self.bases else []
        stump = self.source.best(positive, weights, "auc") if self.source.columns else None
        if stump is not None:
            found.append(Direction(stump.rules, np.ones(1), stump.depth, up * stump.score))
        return max(found, key=lambda direction: direction.derivative, default=None)

    def _splines(self, gradient: np.ndarray) -> list[Direction]:
        """Return the steepest basis function, up or down, of the partial AUC less its penalty."""
        rows = self.source.rows
        sums = rows.sums(gradient)
        best: tuple[float, int, int, float] = (1e-12, -1, 0, 1.0)
        for b, (basis, beta) in enumerate(zip(self.bases, self.coefficients, strict=True)):
            derivatives = basis.products(sums[basis.column])
            derivatives = derivatives - 2 * self.penalty * (basis.roughness @ beta)
            k = int(np.argmax(np.abs(derivatives)))
            if abs(derivatives[k]) > best[0] * (1 + 1e-11):
                best = (float(abs(derivatives[k])), b, k, float(np.sign(derivatives[k])))
        derivative, b, k, sign = best
        if b < 0:
            return []
        basis = self.bases[b]
        depth = basis.depth_of_bin[rows.codes[basis.column]]
        return [Direction(basis.rules, sign * basis.levels[k], depth, derivative, (b, k, sign))]

    def _step(self, direction: Direction, in_range: np.ndarray) -> float:
        """Return the step that maximises the smoothed partial AUC against fixed negatives.

        Less the penalty, and halved a few times while the partial AUC of the list as it is then, with
        other negatives in the range, would fall.
        """
        along = contributions(direction.depth, direction.levels, 1.0)

        def loss(step: float) -> float:
            value = self.objective.value(self.scores + step * along, in_range)
            return self._penalty_of(direction, step) - value

        longest = LONGEST_STEP * self.objective.sigma
        found = minimize_scalar(
            loss, bounds=(0.0, longest), method="bounded", options={"xatol": longest / 50}
        )
        step, now = float(found.x), self.objective.value(self.scores, in_range)
        for _ in range(HALVINGS):
            scores = self.scores + step * along
            if self.objective.value(scores, self.objective.in_range(scores, *self._range())) >= now:
                break
            step /= 2
        return step

    def _penalty_of(self, direction: Direction, step: float) -> float:
        if direction.spline is None:
            return self.penalty * step**2
        b, k, sign = direction.spline
        roughness = self.bases[b].roughness[k]
        cross = 2 * sign * step * float(roughness @ self.coefficients[b])
        return self.penalty * (cross + float(roughness[k]) * step**2)


@fill_docstring
class PAUCBoost(BoostedRules):
    """Boost the partial AUC: an additive model of splines or stumps, one column a round.

    Maximises the partial AUC with its steps smoothed by the normal distribution function, minus a
    penalty, by coordinate ascent [1]_. The partial AUC for false positive rates (a, b) counts only the
    negatives ranked between a N and b N. Sums over pairs are taken on a fine grid of scores, so a round
    costs a few passes over the rows.

    Parameters
    ----------
    fpr : tuple (a, b), default=(0.0, 0.1)
        Range of false positive rates, 0 <= a < b <= 1.
    n_estimators : int, default=100
        Maximum number of rounds.
    weak : {"stump", "spline"}, default="stump"
        "stump": single literals. "spline": natural cubic splines of the columns with more distinct
        values than knots (kept as paths of nested thresholds), stumps of the others.
    n_knots : int, default=8
        Knots of a spline, at quantiles of its column.
    sigma : float, default=1.0
        Width of the smoothing. Only its ratio to the penalty and the steps matters.
    penalty : float, default=1e-4
        Times the sum of squared steps of stumps, plus the roughness (the integrated squared second
        derivative, relative to that of the roughest basis spline) of splines.
    learning_rate : float, default=1.0
        Share of each step that is taken.
    narrowing : float, default=0.5
        Share of the rounds in which the range narrows from the whole list to `fpr`. At first most rows
        tie, and no single rule raises the partial AUC of a narrow range: the ascent needs this start,
        which is not in [1]_.
    %(max_bins)s
    %(rule_validation)s
    eval_metric : str, callable or None, default=None
        A metric of `toprank.metrics`, or `f(y, scores, sample_weight=...)`; None is the partial AUC
        over `fpr`.
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    %(rule_attributes)s
    train_loss_ : ndarray
        Logarithm of 1 minus the smoothed partial AUC after each round.
    bins_ : BinnedColumns
        The columns, their bins and categories.
    %(classes)s

    References
    ----------
    .. [1] Komori & Eguchi (2010), "A boosting method for maximizing the partial area under the ROC
       curve", BMC Bioinformatics 11:314.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PAUCBoost, metrics
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = PAUCBoost(fpr=(0, 0.05), n_estimators=30).fit(X, y)
    >>> bool(metrics.partial_auc(y, model.decision_function(X), fpr=(0, 0.05)) > 0.7)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedRules._parameter_constraints,
        "weak": [StrOptions({"stump", "spline"})],
        "n_knots": [Interval(Integral, 3, 40, closed="both")],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "narrowing": [Interval(Real, 0, 1, closed="both")],
        "eval_metric": [str, callable, None],
    }

    def __init__(
        self,
        fpr: tuple[float, float] = (0.0, 0.1),
        n_estimators: int = 100,
        *,
        weak: str = "stump",
        n_knots: int = 8,
        sigma: float = 1.0,
        penalty: float = 1e-4,
        learning_rate: float = 1.0,
        narrowing: float = 0.5,
        max_bins: int = 255,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        eval_metric: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.fpr = fpr
        self.n_estimators = n_estimators
        self.weak = weak
        self.n_knots = n_knots
        self.sigma = sigma
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.narrowing = narrowing
        self.max_bins = max_bins
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _run(self, booster: Booster, validation: TrainingData | None) -> list[KeptRound]:
        """Keep the rounds up to the one with the greatest partial AUC of the training rows.

        Against a moving range the ascent need not always rise.
        """
        done = super()._run(booster, validation)
        if self.early_stopping_rounds is not None or not done:
            return done
        return done[: int(np.argmax([kept.score for kept in done])) + 1]

    def _validation_metric(self) -> ValidationMetric:
        if self.eval_metric is not None:
            return super()._validation_metric()
        return ValidationMetric.of("partial_auc", fpr=check_range(self.fpr))

    def _booster(self, rows: BinnedRows, train: TrainingData, /) -> PartialAUCBooster:
        bins = rows.bins
        smooth = ~bins.is_category & (bins.n_cuts > self.n_knots) & (self.weak == "spline")
        return PartialAUCBooster(
            StumpSource(rows, np.flatnonzero(~smooth).tolist()),
            [SplineBasis.of(bins, j, self.n_knots) for j in np.flatnonzero(smooth).tolist()],
            SmoothPartialAUC(train.y > 0, train.weights, float(self.sigma)),
            check_range(self.fpr),
            narrow_until=self.narrowing * self.n_estimators,
            penalty=float(self.penalty),
            learning_rate=float(self.learning_rate),
        )


# -- the greedy combination of columns -----------------------------------------------------------------------


@fill_docstring
class GreedyPAUC(BaseRanker):
    """Rank by a linear combination of the columns, chosen greedily for its partial AUC.

    Starts from the column with the greatest partial AUC, up or down, and adds one column after the
    other [1]_: the score so far, f, becomes cos(t) f + sin(t) x for the angle t that maximises the
    empirical partial AUC of the training rows, both scaled to unit variance. Covering the half circle
    covers both forms f + c x and c f + x of the pairwise combination. Columns that do not help are
    left out. The angle is looked for on a sample of up to 20,000 rows of each class, and it and two
    others near it are tried on all rows; each trial costs one sort.

    Parameters
    ----------
    fpr : tuple (a, b), default=(0.0, 0.1)
        Range of false positive rates, 0 <= a < b <= 1.
    selection : {"ranked", "greedy"}, default="ranked"
        Which column comes next: the one with the next greatest partial AUC of its own, or the one
        whose combination with the score so far has the greatest (as many more trials as columns).
    n_passes : int, default=1
        How often all columns are tried.
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        Coefficients on the scale of the data as given.
    order_ : ndarray of int
        The columns in the order in which they were added.
    train_scores_ : ndarray
        Partial AUC of the training rows after each of them.
    %(classes)s

    References
    ----------
    .. [1] Ricamato & Tortorella (2011), "Partial AUC maximization in a linear combination of
       dichotomizers", Pattern Recognition 44.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import GreedyPAUC
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = GreedyPAUC(fpr=(0, 0.05), random_state=0).fit(X, y)
    >>> bool((model.train_scores_[1:] > model.train_scores_[:-1]).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "selection": [StrOptions({"ranked", "greedy"})],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        fpr: tuple[float, float] = (0.0, 0.1),
        *,
        selection: str = "ranked",
        n_passes: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.fpr = fpr
        self.selection = selection
        self.n_passes = n_passes
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GreedyPAUC:
        """Learn the coefficients.

        Parameters
        ----------
        %(X)s
            Numbers.
        %(y)s
        %(pair_weight)s

        Returns
        -------
        self : GreedyPAUC
        """
        data = self._check_training(X, y, sample_weight)
        random = check_random_state(self.random_state)
        sample = sample_classes(data.y > 0, SAMPLE_ROWS, SAMPLE_ROWS, random)
        search = _Search(data, check_range(self.fpr), sample)
        with progress(None, type(self).__name__, enabled=self.verbose) as advance:
            search.start()
            for _ in range(self.n_passes):
                waiting = search.ranked_columns()
                while waiting:
                    column = waiting[0]
                    if self.selection == "greedy":  # the best combination on the sample
                        column = max(waiting, key=lambda j: (search.coarse(j)[1], -j))
                    waiting.remove(column)
                    search.add(column)
                    advance()
        self.coef_ = search.coefficients
        self.order_ = np.array(search.order, dtype=np.int64)
        self.train_scores_ = np.array(search.values)
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_, dtype=np.float64)


class _Search:
    """The score so far, its coefficients, and the search for the next column."""

    def __init__(self, data: TrainingData, fpr: tuple[float, float], sample: np.ndarray) -> None:
        self.data = data
        self.sample = sample
        deviations = np.array([_deviation(cells, data.sample_weight) for cells in data.X.T])
        only_rounding = 1e-12 * np.abs(data.X).max(axis=0)
        self.spread = np.where(deviations > only_rounding, deviations, 0.0)
        self.coefficients = np.zeros(data.X.shape[1])
        self.scores = np.zeros(len(data.y))
        self.deviation = 1.0
        self.value = -np.inf
        self.order: list[int] = []
        self.values: list[float] = []
        weight = data.sample_weight

        def measure(scores: np.ndarray, rows: Any = slice(None)) -> float:
            part = None if weight is None else weight[rows]
            return partial_auc(data.y[rows], scores, fpr=fpr, sample_weight=part)

        self.measure: Callable[..., float] = measure

    def column(self, j: int, rows: Any = slice(None)) -> np.ndarray:
        """Return a column at unit variance (zeros if it is constant)."""
        cells = np.asarray(self.data.X[rows, j], dtype=np.float64)
        return cells / self.spread[j] if self.spread[j] > 0 else np.zeros_like(cells)

    def start(self) -> None:
        """Start from the column with the greatest partial AUC, up or down."""
        usable = np.flatnonzero(self.spread > 0).tolist()
        both = [
            (self.measure(sign * self.column(j, self.sample), self.sample), -j, sign)
            for j in usable
            for sign in (1.0, -1.0)
        ]
        self.single = {-j: value for value, j, _ in sorted(both)}  # the greater of the two
        if not both:
            return
        _, negated, sign = max(both)
        self._set(-negated, 0.0, sign, self.measure(sign * self.column(-negated)))

    def ranked_columns(self) -> list[int]:
        """Return the columns but the last one added, the greatest partial AUC of their own first."""
        waiting = [j for j in self.single if not self.order or j != self.order[-1]]
        return sorted(waiting, key=lambda j: (-self.single[j], j))

    def add(self, j: int) -> None:
        """Add a column at its best angle, if that raises the partial AUC of all rows."""
        width = np.pi / N_ANGLES
        coarse, _ = self.coarse(j)
        on_sample = self._trial(j, self.sample)
        ends = (coarse - width, coarse + width)
        found = minimize_scalar(
            lambda t: -on_sample(t),
            bounds=ends,
            method="bounded",
            options={"maxiter": N_REFINEMENTS},
        )
        near = float(found.x) if -found.fun > on_sample(coarse) else coarse
        on_all = self._trial(j, slice(None))
        value, angle = max((on_all(t), t) for t in (near, near - width / 8, near + width / 8))
        if value > self.value + 1e-12:
            self._set(j, np.cos(angle), np.sin(angle), value)

    def _trial(self, j: int, rows: Any) -> Callable[[float], float]:
        """Return the partial AUC of the combination with a column as a function of the angle."""
        column, unit = self.column(j, rows), self.scores[rows] / self.deviation
        return lambda t: self.measure(np.cos(t) * unit + np.sin(t) * column, rows)

    def coarse(self, j: int) -> tuple[float, float]:
        """Return the best of evenly spaced angles on the sample, and its partial AUC there."""
        # straight up and straight down leave out the score so far, and are not tried
        angles = (np.arange(1, N_ANGLES) / N_ANGLES - 0.5) * np.pi
        trial = self._trial(j, self.sample)
        values = [trial(t) for t in angles]
        best = int(np.argmax(values))
        return float(angles[best]), float(values[best])

    def _set(self, j: int, keep: float, add: float, value: float) -> None:
        self.coefficients *= keep / self.deviation
        self.coefficients[j] += add / self.spread[j]
        self.scores = self.scores * (keep / self.deviation) + add * self.column(j)
        self.deviation = max(_deviation(self.scores, self.data.sample_weight), 1e-300)
        self.value = value
        self.order.append(j)
        self.values.append(value)


def _deviation(values: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.sqrt(np.cov(values, aweights=weight, ddof=0)))


# -- kernels -------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _spread_over_grid(scores, positive, weights, in_range, start, inverse_step, n_points):
    """Spread the weights of negatives in the range (row 0) and of positives (row 1) over the grid."""
    sums = np.zeros((2, n_points))
    for i in range(len(scores)):
        label = 1 if positive[i] else 0
        weight = weights[i] if positive[i] else in_range[i]
        place = (scores[i] - start) * inverse_step
        left = min(int(place), n_points - 2)
        share = place - left
        sums[label, left] += weight * (1.0 - share)
        sums[label, left + 1] += weight * share
    return sums


@njit(cache=True, nogil=True)
def _interpolate_gradient(
    scores, positive, weights, in_range, for_positives, for_negatives, start, inverse_step
):
    """Interpolate derivatives on the grid at the score of each row."""
    values = np.empty(len(scores))
    for i in range(len(scores)):
        place = (scores[i] - start) * inverse_step
        left = min(int(place), len(for_positives) - 2)
        share = place - left
        grid = for_positives if positive[i] else for_negatives
        derivative = grid[left] * (1.0 - share) + grid[left + 1] * share
        values[i] = weights[i] * derivative if positive[i] else -in_range[i] * derivative
    return values
