"""The rounds of stochastic gradient boosting on an objective of the whole list.

Each round draws rows, takes the objective's gradient on the draw, grows one XGBoost tree on it, decides
how far to go along that tree, and adds it. The booster holds the trees. The scores of the training rows are
kept here, in float64; with large tables and Newton's steps they are XGBoost's own, in float32, which it has
at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from toprank.base import TrainingData
from toprank.boosting.checkpoint import Checkpoint
from toprank.boosting.gradients import TreeGradients
from toprank.boosting.settings import Callback, Round, Settings
from toprank.boosting.xgboost_helpers import (
    booster_parameters,
    matrix_margin,
    predict_margin,
    quantile_matrix,
    require_xgboost,
    row_matrix,
    scale_leaves,
)
from toprank.exchange import ALONE, Exchange
from toprank.metrics.condensed import condense
from toprank.objectives import Objective, ScoredList
from toprank.parallel import limit_threads
from toprank.stopping import EarlyStopping, ValidationMetric, run_rounds

__all__ = ["HeldOut", "Round", "Rows", "Validation", "boost", "line_search", "quadratic_step"]

_MANY_CELLS = 200_000


@dataclass(frozen=True)
class Validation:
    """Held-out rows, what is measured on them, and for how many rounds it may stand still.

    `graded` says whether the metric takes relevance grades, rather than relevant or not.
    """

    data: TrainingData
    metric: ValidationMetric
    graded: bool
    patience: int | None

    def __call__(self, scores: np.ndarray) -> float:
        data = self.data
        y = data.y if self.graded else data.y > 0
        return self.metric(y, scores, sample_weight=data.sample_weight, qid=data.qid)


@dataclass(frozen=True)
class HeldOut:
    """Rows of the training matrix, at the places `rows`, that get no gradient and measure the model.

    XGBoost keeps their margins up to date at no cost. The metric is that of the held-out rows of all
    workers together: exactly, not a mean of what each of them finds.
    """

    rows: np.ndarray
    data: TrainingData
    metric: ValidationMetric
    graded: bool
    patience: int | None
    exchange: Exchange = ALONE

    def __call__(self, scores: np.ndarray) -> float:
        data, own = self.data, scores[self.rows].astype(np.float64)
        if self.exchange.size == 1:
            y = data.y if self.graded else data.y > 0
            return self.metric(y, own, sample_weight=data.sample_weight, qid=data.qid)
        if data.qid is None and not self.graded:
            y, ranks, weight = condense(data.y > 0, own, data.sample_weight, self.exchange)
            return self.metric(y, ranks, sample_weight=weight)
        query = np.zeros(len(own)) if data.qid is None else data.qid
        owner = np.full(len(own), float(self.exchange.rank))
        columns = np.stack((data.y, own, data.weights, query, owner))
        y, own, weights, query, owner = self.exchange.gather(columns)[0]
        qid = None
        if data.qid is not None:  # the workers number their queries each from 0
            qid = np.unique(np.stack((owner, query)), axis=1, return_inverse=True)[1].ravel()
        y = y if self.graded else y > 0
        return self.metric(y, own, sample_weight=None if (weights == 1).all() else weights, qid=qid)


@dataclass(frozen=True)
class Rows:
    """Rows that are binned already: out of core, or those of one worker.

    Attributes
    ----------
    matrix : xgboost.DMatrix
    exchange : Exchange
        The workers that hold the other rows.
    form : {"auto", "exact", "binned"}
        Of the gradients, as in `TreeGradients`.
    """

    matrix: Any
    exchange: Exchange = ALONE
    form: str = "auto"


def boost(
    ranker: Any,
    data: TrainingData,
    objective: Objective,
    settings: Settings,
    seed: int,
    *,
    label: str = "boosting",
    validation: Validation | HeldOut | None = None,
    callbacks: Sequence[Callback] = (),
    start: Any = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[Any, list[float]]:
    """Run a ranker's rounds from scratch, or from the booster `start`; return booster and validation values.

    Ctrl-C keeps the rounds done so far (with a warning) if there is at least one. `data.X` is a matrix, or
    `Rows` that are binned. With a `checkpoint` the rounds go on from what it holds.
    """
    stopping, done_before = EarlyStopping(), 0
    if validation is not None:
        stopping = EarlyStopping(validation.patience, validation.metric.greater_is_better)
    if checkpoint is not None:
        found = checkpoint.read()
        if found is not None:
            start, done_before, stopping.history = found.booster, found.n_rounds, found.history
            if found.finished:
                return start, stopping.history
    run = _Run(
        ranker, data, objective, settings, seed, validation, start, done_before,
        keeps_rounds=checkpoint is not None,
    )  # fmt: skip
    total = settings.n_estimators

    def after_round(done: Round) -> bool:
        stop = done.validation is not None and stopping.record(done.validation)
        asked = [callback(done) for callback in callbacks]  # each of them is called
        if checkpoint is not None and done.number % checkpoint.every == 0:
            booster = run.finished_booster(len(run.factors))
            checkpoint.write(booster, done.number, stopping.history)
            run.go_on_from(booster)
        return stop or any(asked)

    run_rounds(
        run.rounds(),
        total - done_before,
        after_round=after_round,
        verbose=ranker.verbose,
        label=label,
    )
    keep = stopping.best_round if stopping.patience is not None else len(run.factors)
    booster = run.finished_booster(keep or len(run.factors))
    if checkpoint is not None:
        checkpoint.write(booster, len(run.factors), stopping.history, finished=True)
    return booster, stopping.history


class _Run:
    """The changing state of one booster: its trees, the scores of the rows, the steps taken."""

    def __init__(
        self,
        ranker: Any,
        data: TrainingData,
        objective: Objective,
        settings: Settings,
        seed: int,
        validation: Validation | HeldOut | None,
        start: Any,
        done_before: int = 0,
        keeps_rounds: bool = False,
    ) -> None:
        self.ranker, self.objective, self.validation = ranker, objective, validation
        self.settings = settings
        self.newton = ranker.step == "newton"
        self.factors = [1.0] * done_before  # these rounds of `start` are the fit's own
        self.parameters = booster_parameters(ranker, settings, seed)
        if keeps_rounds:  # the same draws of columns before and after a break
            self.parameters["seed_per_iteration"] = True
        binned = data.X if isinstance(data.X, Rows) else None
        self.matrix = binned.matrix if binned else quantile_matrix(
            data.X, ranker.columns_, max_bin=ranker.max_bins, sample_weight=data.sample_weight,
            n_jobs=ranker.n_jobs,
        )  # fmt: skip
        self.data, self.binned = data, binned
        large = binned is not None or np.prod(data.X.shape) >= _MANY_CELLS
        self.cached = self.newton and large
        if not self.cached:
            self.rows = row_matrix(data.X, self.matrix)
        self.present = data.weights > 0
        if isinstance(validation, HeldOut):
            self.present[validation.rows] = False
        self._start_from(start)
        self.n_start = self.booster.num_boosted_rounds() - done_before
        more: dict[str, Any] = {}
        if binned:
            more = {"form": binned.form, "thrifty": True, "exchange": binned.exchange}
            more["redrawn"] = settings.subsample < 1
        self.gradients = TreeGradients(objective, data.y, data.sample_weight, data.qid, **more)
        rank = binned.exchange.rank if binned else 0
        self.draw = StratifiedDraw(
            data.y > 0, self.present, settings.subsample, seed + rank, data.qid
        )
        for _ in range(done_before):
            self.draw()

    def go_on_from(self, booster: Any) -> None:
        """Take up this run's own rounds again as another process would that finds them in a checkpoint."""
        self.factors = [1.0] * len(self.factors)
        self._start_from(booster)

    def _start_from(self, start: Any) -> None:
        """Set the booster and the scores of all rows to those of `start`, or to none."""
        self.booster = require_xgboost().Booster(self.parameters, [self.matrix], model_file=start)
        data, binned = self.data, self.binned
        if binned is not None:
            rate = _base_score(data, self.present, self.objective, binned.exchange)
            self.base: Any = np.float32(rate)
            self.scores: Any = self.base + self._margins()
        else:
            self.scores = _starting_scores(start, data, self.objective)
            # asked for once, XGBoost keeps the margins up to date as it grows trees
            if self.cached:
                # (not quite the scores of `start`, whose splits may fall inside a bin of these rows)
                self.base = self.scores - self._margins()
                if start is None:
                    self.base = self.base[:1]  # one number for all rows
        if isinstance(self.validation, Validation):
            held_out = self.validation.data
            self.validation_scores = _starting_scores(start, held_out, self.objective)

    def rounds(self) -> Iterator[Round]:
        """Do one round after the other."""
        total = self.settings.n_estimators
        for number in range(len(self.factors) + 1, total + 1):
            with limit_threads(self.ranker.n_jobs):
                self._round()
            value = None
            if self.validation is not None:
                held_out = isinstance(self.validation, HeldOut)
                value = self.validation(self.scores if held_out else self.validation_scores)
            yield Round(number, total, value)

    def _round(self) -> None:
        """Draw rows, take the gradient, grow a tree, go along it."""
        drawn = self.draw()
        gradient, hessian = self.gradients(self.scores, drawn)
        number = self.n_start + len(self.factors)
        tree_hessian = hessian
        if not self.newton:  # so that the tree fits the gradient by least squares
            rows = self.gradients.rows_at(self.scores, drawn)
            weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
            tree_hessian = (weight * (hessian.sum() / weight.sum())).astype(np.float32)
        self.booster.boost(
            self.matrix, number, grad=self._of_all_rows(gradient, drawn),
            hess=self._of_all_rows(tree_hessian, drawn),
        )  # fmt: skip
        tree = (number, number + 1)
        factor = 1.0
        if self.cached:
            np.add(self.base, self._margins(), out=self.scores)
        else:
            update = matrix_margin(self.booster, self.rows, tree).astype(np.float64)
            if not self.newton:
                direction = update if drawn is None else update[drawn]
                factor = self._step(rows, gradient, hessian, direction)
            self.scores += factor * update
        if isinstance(self.validation, Validation):
            self.validation_scores += factor * predict_margin(
                self.booster, self.validation.data.X, tree
            )
        self.factors.append(factor)

    def _margins(self) -> np.ndarray:
        """Return the sums of the leaves that XGBoost keeps for the rows that it trains on."""
        return matrix_margin(self.booster, self.matrix)

    def _of_all_rows(self, values: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
        """Put values of the drawn rows among zeros for the others."""
        if drawn is None:
            return values
        full = np.zeros(len(self.scores), dtype=np.float32)
        full[drawn] = values
        return full

    def _step(
        self, rows: ScoredList, gradient: np.ndarray, hessian: np.ndarray, direction: np.ndarray
    ) -> float:
        """Return how far to go along the new tree."""
        largest_move = self.ranker.max_leaf_step or np.inf
        if self.objective.smooth:

            def loss(scores: np.ndarray) -> float:
                return self.objective.loss(rows.y, scores, sample_weight=rows.weight, qid=rows.qid)

            best = line_search(loss, rows.scores, direction, largest_move=largest_move)
        else:
            best = quadratic_step(gradient, hessian, direction, largest_move)
        return self.settings.learning_rate * best

    def finished_booster(self, n_rounds: int) -> Any:
        """Return the booster with its steps written into the leaves, cut after so many rounds."""
        booster = self.booster
        if self.n_start + n_rounds < booster.num_boosted_rounds():
            booster = booster[: self.n_start + n_rounds]
        return scale_leaves(booster, np.r_[np.ones(self.n_start), self.factors[:n_rounds]])


def _starting_scores(start: Any, data: TrainingData, objective: Objective) -> np.ndarray:
    """Return the scores before the first round.

    Losses of single rows (logistic) start at the base rate, or the first trees would only learn how
    rare positives are; a constant does not matter to losses of pairs and lists.
    """
    scores = np.zeros(len(data.y)) if start is None else predict_margin(start, data.X)
    if not objective.pointwise:
        return scores
    positive = float(np.sum(data.weights[data.y > 0]))
    negative = float(np.sum(data.weights[data.y == 0]))
    return scores + np.log(positive / negative)


def _base_score(
    data: TrainingData, present: np.ndarray, objective: Objective, exchange: Exchange
) -> float:
    """Return the log-odds of a positive among the rows of all workers, for losses of single rows; else 0."""
    if not objective.pointwise:
        return 0.0
    positive = data.y > 0
    weights = data.weights
    own = np.array([weights[present & positive].sum(), weights[present & ~positive].sum()])
    n_positive, n_negative = exchange.combine(own, "sum")
    return float(np.log(n_positive / n_negative))


# -- draws -----------------------------------------------------------------------------------------


class StratifiedDraw:
    """Draw rows without replacement: the same share of the positives and of the negatives of each query.

    The objective is computed on the draw alone (Friedman's stochastic gradient boosting; Frery et al.
    2017, algorithm 1), so at least one row of each class, in each query that has it, is always in it.

    Rows that are not `present` (of weight 0) are never drawn; a share of 1 draws all others.
    """

    def __init__(
        self,
        positive: np.ndarray,
        present: np.ndarray,
        share: float,
        random_state: int,
        qid: np.ndarray | None = None,
    ) -> None:
        self._share, self._everything = share, bool(present.all())
        if share == 1 and self._everything:
            return
        self._random = np.random.default_rng(random_state)
        stratum = positive.astype(np.int64) if qid is None else 2 * qid + positive
        rows = np.flatnonzero(present)
        self._rows = rows[np.argsort(stratum[rows], kind="stable")]  # stratum after stratum
        sizes = np.unique(stratum[rows], return_counts=True)[1]
        self._ends = np.cumsum(sizes)
        self._wanted = np.maximum(1, np.round(share * sizes).astype(np.int64))
        self._sorted = False

    def __call__(self) -> np.ndarray | None:
        """Return the sorted rows of one draw, or None for every row."""
        if self._share == 1:
            if not self._everything and not self._sorted:
                self._rows.sort()
                self._sorted = True
            return None if self._everything else self._rows
        sizes = np.diff(self._ends, prepend=0)
        if len(sizes) == 2:
            drawn = [
                self._random.choice(rows, wanted, replace=False)
                for rows, wanted in zip(
                    np.split(self._rows, self._ends[:1]), self._wanted, strict=True
                )
            ]
            return np.sort(np.concatenate(drawn))
        stratum = np.repeat(np.arange(len(sizes)), sizes)
        shuffled = self._rows[np.argsort(stratum + self._random.random(len(stratum)))]
        place = np.arange(len(stratum)) - np.repeat(self._ends - sizes, sizes)
        return np.sort(shuffled[place < self._wanted[stratum]])


# -- steps -----------------------------------------------------------------------------------------


def line_search(
    loss: Callable[[np.ndarray], float],
    scores: np.ndarray,
    direction: np.ndarray,
    *,
    largest_move: float,
    evaluations: int = 12,
) -> float:
    """Return the step in [0, bound] that lowers `loss(scores + step * direction)` most.

    The bound keeps every score's move at most `largest_move`: without it one pure leaf would run to
    infinity under losses that go on falling as it does. The search runs over the logarithm of the
    step, for the right one may be 1/n of the bound or the bound itself.

    Examples
    --------
    >>> import numpy as np
    >>> step = line_search(lambda s: float((s[0] - 1) ** 2), np.zeros(1), np.ones(1), largest_move=4)
    >>> abs(step - 1) < 0.05
    True
    """
    longest = float(np.abs(direction).max(initial=0.0))
    if longest == 0 or not np.isfinite(longest):
        return 0.0
    bound = largest_move / longest
    before = loss(scores)
    found = minimize_scalar(
        lambda exponent: loss(scores + bound * 10**exponent * direction),
        bounds=(-4.0, 0.0),
        method="bounded",
        options={"maxiter": evaluations, "xatol": 0.01},
    )
    at_bound = loss(scores + bound * direction)
    best, step = min((float(found.fun), float(bound * 10**found.x)), (at_bound, bound))
    return step if best < before else 0.0


def quadratic_step(
    gradient: np.ndarray, hessian: np.ndarray, direction: np.ndarray, largest_move: float
) -> float:
    r"""Return the minimum of the quadratic model :math:`s\, g \cdot d + s^2 \sum_i h_i d_i^2 / 2`.

    For objectives that are not smooth: the loss of a lambda objective holds the weights of pairs fixed at
    the ranks of the moment, and away from those ranks its sums over pairs do not factorise any more: a line
    search would cost a double loop. The model has the loss's own gradient, and as :math:`(d_i - d_j)^2 \le
    2 d_i^2 + 2 d_j^2` at least half of its curvature, so that at the current scores no learning rate up to 1
    leads uphill. No score moves by more than `largest_move`.

    Examples
    --------
    >>> import numpy as np
    >>> quadratic_step(np.array([-1.0, 1.0]), np.ones(2), np.array([2.0, -2.0]), largest_move=9.0)
    0.5
    """
    longest = float(np.abs(direction).max(initial=0.0))
    curvature = float(hessian @ direction**2)
    if curvature == 0 or not np.isfinite(curvature):
        return 0.0
    return float(np.clip(-(gradient @ direction) / curvature, 0.0, largest_move / longest))
