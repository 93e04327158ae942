"""pAUCBoost: boosting of splines and stumps on a smoothed partial AUC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from toprank.base import TrainingData
from toprank.rule import Rule
from toprank.rules.bins import Bins
from toprank.rules.boosters import Round, rank_values
from toprank.rules.checks import check_choice, check_range_of_rates
from toprank.rules.ensemble import RuleEnsemble
from toprank.rules.scoring import KeptRound
from toprank.rules.smooth_pauc import SmoothPartialAUC
from toprank.rules.splines import SplineBasis, spline_bases
from toprank.rules.stumps import StumpSource, column_sums
from toprank.rules.workers import Workers

__all__ = ["PAUCBoost"]

LONGEST_STEP = 2.0  # in sigmas
HALVINGS = 4
SHARPNESS = 20.0  # rounds are compared by a partial AUC that is smoothed so much less


class Direction(NamedTuple):
    """A weak ranker to step along, its slope, and which spline it is: (basis, function, sign)."""

    rules: tuple[Rule, ...]
    levels: np.ndarray
    depth: np.ndarray
    slope: float
    spline: tuple[int, int, float] | None = None


class PartialAUCBooster:
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
        self.source = source
        self.bases = bases
        self.objective = objective
        self.sharp = replace(objective, sigma=objective.sigma / SHARPNESS)
        self.fpr = fpr
        self.narrow_until = narrow_until
        self.penalty = penalty
        self.learning_rate = learning_rate
        self.n_evaluated = source.n_evaluated + sum(len(basis.levels) for basis in bases)
        self.coefficients = [np.zeros(len(basis.levels)) for basis in bases]
        self.scores = np.zeros(len(objective.positive))
        self.n_rounds = 0

    def __iter__(self) -> Iterator[Round]:
        return self

    def __next__(self) -> Round:
        """Learn one weak ranker. StopIteration: none raises the penalised partial AUC."""
        in_range = self.objective.in_range(self.scores, *self._range())
        direction = self._steepest(self.objective.gradient(self.scores, in_range))
        if direction is None:
            raise StopIteration
        step = self.learning_rate * self._step(direction, in_range)
        self.n_rounds += 1
        self.scores += rank_values(direction.depth, direction.levels, step)
        if direction.spline is not None:
            b, k, sign = direction.spline
            self.coefficients[b][k] += sign * step
        in_range = self.objective.in_range(self.scores, *self.fpr)
        value = self.objective.value(self.scores, in_range)
        return Round(
            direction.rules,
            direction.levels,
            step,
            self.sharp.value(self.scores, in_range),
            self.n_evaluated,
            direction.depth,
            float(np.log(max(1.0 - value, 1e-300))),
        )

    def _range(self) -> tuple[float, float]:
        """The range of this round: from (0, 1) to `fpr`, its upper end by equal factors."""
        share = min(self.n_rounds / self.narrow_until, 1.0) if self.narrow_until > 0 else 1.0
        return self.fpr[0] * share, self.fpr[1] ** share

    def _steepest(self, gradient: np.ndarray) -> Direction | None:
        """The stump or basis spline with the greatest slope."""
        positive = self.objective.positive
        weights = np.abs(gradient)
        up, down = float(weights[positive].sum()), float(weights[~positive].sum())
        if not min(up, down) > 1e-12:
            return None
        # the two totals are equal but for the rounding of the grid
        weights *= np.where(positive, 1.0 / up, 1.0 / down)
        stump = self.source.best(positive, weights, "auc") if self.source.columns else None
        found = (
            []
            if stump is None
            else [Direction(stump.rules, np.ones(1), stump.depth, up * stump.score)]
        )
        found += self._splines(gradient) if self.bases else []
        return max(found, key=lambda direction: direction.slope, default=None)

    def _splines(self, gradient: np.ndarray) -> list[Direction]:
        """The steepest function of each basis, up or down, less the slope of its penalty."""
        codes = self.source.codes
        sums = column_sums(codes, gradient, self.source.workers)
        best: tuple[float, int, int, float] = (1e-12, -1, 0, 1.0)
        for b, (basis, beta) in enumerate(zip(self.bases, self.coefficients, strict=True)):
            slopes = basis.slopes(sums[basis.column])
            slopes = slopes - 2 * self.penalty * (basis.roughness @ beta)
            k = int(np.argmax(np.abs(slopes)))
            if abs(slopes[k]) > best[0] * (1 + 1e-11):
                best = (float(abs(slopes[k])), b, k, float(np.sign(slopes[k])))
        slope, b, k, sign = best
        if b < 0:
            return []
        basis = self.bases[b]
        depth = basis.depth_of_bin[codes[basis.column]]
        return [Direction(basis.rules, sign * basis.levels[k], depth, slope, (b, k, sign))]

    def _step(self, direction: Direction, in_range: np.ndarray) -> float:
        """Step that maximises the smoothed partial AUC against fixed negatives, less the penalty.

        Halved a few times while the partial AUC of the list as it is then, with other negatives in
        the range, would fall.
        """
        along = rank_values(direction.depth, direction.levels, 1.0)

        def lost(step: float) -> float:
            value = self.objective.value(self.scores + step * along, in_range)
            return self._penalty_of(direction, step) - value

        longest = LONGEST_STEP * self.objective.sigma
        found = minimize_scalar(
            lost, bounds=(0.0, longest), method="bounded", options={"xatol": longest / 50}
        )
        step, now = float(found.x), self.objective.value(self.scores, in_range)
        for _ in range(HALVINGS):
            scores = self.scores + step * along
            if self.objective.value(scores, self.objective.in_range(scores, *self._range())) >= now:
                break
            step /= 2
        return step

    def _penalty_of(self, direction: Direction, step: float) -> float:
        """What a step adds to the penalty."""
        if direction.spline is None:
            return self.penalty * step**2
        b, k, sign = direction.spline
        roughness = self.bases[b].roughness[k]
        cross = 2 * sign * step * float(roughness @ self.coefficients[b])
        return self.penalty * (cross + float(roughness[k]) * step**2)


class PAUCBoost(RuleEnsemble):
    """Boost the partial AUC: an additive model of splines or stumps, one column a round.

    Maximises the partial AUC with its steps smoothed by the normal distribution function, minus a
    penalty, by coordinate ascent [1]_. The partial AUC for false positive rates (a, b) counts only the
    negatives ranked between a N and b N. Sums over pairs are taken on a fine grid of scores, so a round
    costs a few passes over the rows.

    Parameters
    ----------
    fpr : tuple of two floats, default=(0.0, 0.1)
        The range (a, b) of false positive rates.
    n_estimators : int, default=100
        Most rounds.
    weak : {"stump", "spline"}, default="stump"
        "stump": single literals. "spline": natural cubic splines of the columns with more distinct
        values than knots, stumps of the others.
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
    max_bins, early_stopping_rounds, validation_fraction, n_jobs, random_state, verbose
        As in :class:`RankBoost`.
    eval_metric : str or callable, optional
        By default the partial AUC over `fpr`.

    Attributes
    ----------
    rules_, rounds_, n_evaluated_, bins_, classes_, offset_
        As in :class:`RankBoost`. A spline is a path of nested thresholds of one column.
    train_loss_ : ndarray
        Logarithm of 1 minus the smoothed partial AUC after each round.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PAUCBoost:
        """Learn the weak rankers.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
            Numbers and categories; missing cells are allowed.
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.

        Returns
        -------
        self : PAUCBoost
        """
        check_choice(self, "weak", ("stump", "spline"))
        check_range_of_rates(self)
        self._learn(X, y, sample_weight)
        return self

    def _run(
        self, rounds: Iterator[KeptRound], booster: Any, watched: TrainingData | None
    ) -> list[KeptRound]:
        """The rounds up to the best one: against a moving range the ascent need not always rise."""
        done = super()._run(rounds, booster, watched)
        if self.early_stopping_rounds is not None or not done:
            return done
        return done[: int(np.argmax([kept.score for kept in done])) + 1]

    def _watched_metric(self) -> Any:
        if self.eval_metric is not None:
            return self.eval_metric
        from toprank.metrics import partial_auc

        fpr = check_range_of_rates(self)

        def metric(y: np.ndarray, scores: np.ndarray, sample_weight: Any = None) -> float:
            return partial_auc(y, scores, fpr=fpr, sample_weight=sample_weight)

        return metric

    def _booster(
        self,
        bins: Bins,
        codes: np.ndarray,
        data: TrainingData,
        random: np.random.RandomState,
        workers: Workers,
    ) -> PartialAUCBooster:
        bases = spline_bases(bins, self.n_knots) if self.weak == "spline" else []
        smooth = {basis.column for basis in bases}
        columns = [j for j in range(bins.n_columns) if j not in smooth]
        return PartialAUCBooster(
            StumpSource(bins, codes, workers, columns),
            bases,
            SmoothPartialAUC(data.y > 0, data.weights, float(self.sigma)),
            check_range_of_rates(self),
            narrow_until=self.narrowing * self.n_estimators,
            penalty=float(self.penalty),
            learning_rate=float(self.learning_rate),
        )
