"""The rounds of stochastic gradient boosting on an objective of the whole list.

Each round draws rows, takes the objective's gradient on the draw, grows one XGBoost tree on it, decides
how far to go along that tree, and adds it. The booster holds the trees. The scores of the training rows are
kept here, in float64; with many rows and Newton's steps they are XGBoost's own, in float32, which it has
at no cost.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank.base import TrainingData
from toprank.boosting._xgboost import (
    predict_margin,
    quantile_matrix,
    require_xgboost,
    row_matrix,
    scale_leaves,
)
from toprank.boosting.draws import StratifiedDraw
from toprank.boosting.steps import line_search
from toprank.boosting.validation import EarlyStopping, Metric
from toprank.columns import Columns
from toprank.objectives import Objective
from toprank.objectives._base import checked_rows
from toprank.parallel import limit_threads

__all__ = ["Boosted", "Round", "Settings", "boost"]

_MANY_ROWS = 20_000


@dataclass(frozen=True)
class Settings:
    """What a fit is told: the objective, the rounds and XGBoost's own parameters."""

    objective: Objective
    n_estimators: int
    learning_rate: float
    step: str
    largest_move: float
    subsample: float
    max_bins: int
    n_jobs: int | None
    trees: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Round:
    """What a callback sees after each round.

    Attributes
    ----------
    number : int
        Rounds done so far in this fit.
    total : int
        Rounds asked for.
    validation : float or None
        The validation metric after this round, where there is validation data.
    """

    number: int
    total: int
    validation: float | None


@dataclass(frozen=True)
class Boosted:
    """What the rounds leave behind."""

    booster: Any
    n_rounds: int
    history: tuple[float, ...]
    best_round: int | None


Callback = Callable[[Round], Any]


def boost(
    data: TrainingData,
    columns: Columns,
    settings: Settings,
    *,
    seed: int,
    validation: TrainingData | None = None,
    metric: Metric | None = None,
    patience: int | None = None,
    callbacks: Sequence[Callback] = (),
    start: Any = None,
) -> Boosted:
    """Run the rounds from scratch, or from the booster `start`.

    Ctrl-C keeps the rounds done so far (with a warning) if there is at least one.
    """
    run = _Run(data, columns, settings, seed, validation, start)
    stopping = EarlyStopping(patience)
    try:
        for number in range(1, settings.n_estimators + 1):
            with limit_threads(settings.n_jobs):
                run.round()
            value = None
            if validation is not None and metric is not None:
                value = metric(validation, run.validation_scores)
            stop = value is not None and stopping.record(value)
            done = Round(number, settings.n_estimators, value)
            asked = [callback(done) for callback in callbacks]  # each of them is called
            if any(asked) or stop:
                break
    except KeyboardInterrupt:
        if not run.factors:
            raise
        warnings.warn(
            f"interrupted: the model keeps the {len(run.factors)} rounds done so far",
            stacklevel=2,
        )
    return run.result(stopping if patience is not None else None, tuple(stopping.history))


class _Run:
    """The changing state of one booster: its trees, the scores of the rows, the steps taken."""

    def __init__(
        self,
        data: TrainingData,
        columns: Columns,
        settings: Settings,
        seed: int,
        validation: TrainingData | None,
        start: Any,
    ) -> None:
        xgboost = require_xgboost()
        self.data, self.settings, self.validation = data, settings, validation
        self.factors: list[float] = []
        self.matrix = quantile_matrix(
            data.X,
            columns,
            max_bin=settings.max_bins,
            sample_weight=data.sample_weight,
            n_jobs=settings.n_jobs,
        )
        newton = settings.step == "newton"
        self.cached = newton and len(data.y) >= _MANY_ROWS
        if not self.cached:
            self.rows = row_matrix(data.X, self.matrix)
        parameters = {
            **settings.trees,
            "eta": settings.learning_rate if newton else 1.0,
            "seed": seed,
            "base_score": 0.0,
            "objective": "reg:squarederror",
            "disable_default_eval_metric": True,
        }
        self.booster = xgboost.Booster(parameters, [self.matrix], model_file=start)
        self.n_start = self.booster.num_boosted_rounds()
        self.scores = _starting_scores(start, data, settings.objective)
        if self.cached:  # asked for once, XGBoost keeps the margins up to date as it grows trees
            # (not quite the scores of `start`, whose splits may fall inside a bin of these rows)
            self.base = self.scores - self._margins()
            if start is None:
                self.base = self.base[:1]  # one number for all rows
        self.listed = checked_rows(
            data.y, self.scores, data.sample_weight, data.qid, graded=settings.objective.graded
        )
        if validation is not None:
            self.validation_scores = _starting_scores(start, validation, settings.objective)
        positive = data.y > 0
        present = data.weights > 0
        self.draw = StratifiedDraw(positive, present, settings.subsample, seed)

    def round(self) -> None:
        """One round: draw, gradient, tree, step."""
        rows = self.draw()
        gradient, hessian = self._gradient(rows)
        number = self.n_start + len(self.factors)
        self.booster.boost(self.matrix, number, grad=gradient, hess=hessian)
        rounds = (number, number + 1)
        factor = self._advance(rows, rounds)
        if self.validation is not None:
            self.validation_scores += factor * predict_margin(
                self.booster, self.validation.X, rounds
            )
        self.factors.append(factor)

    def _advance(self, rows: np.ndarray | None, rounds: tuple[int, int]) -> float:
        """Add the new tree to the scores; return how far it was gone along."""
        if self.cached:
            np.add(self.base, self._margins(), out=self.scores)
            return 1.0
        update = self.booster.predict(self.rows, output_margin=True, iteration_range=rounds)
        update = update.astype(np.float64)
        factor = self._step(update, rows)
        self.scores += factor * update
        return factor

    def _margins(self) -> np.ndarray:
        """Sums of the leaves of all trees, which XGBoost keeps for the rows that it trains on."""
        return self.booster.predict(self.matrix, output_margin=True)

    def _gradient(self, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian for the trees, zero outside the draw."""
        drawn = self.listed.at(self.scores, rows)
        gradient, hessian = self.settings.objective.slopes_for_trees(drawn)
        if self.settings.step == "line_search":  # trees fit the gradient by least squares
            weight = np.ones(len(drawn.y)) if drawn.weight is None else drawn.weight
            hessian = (weight * (hessian.sum() / weight.sum())).astype(np.float32)
        if rows is None:
            return gradient, hessian
        full_gradient = np.zeros(len(self.data.y), dtype=np.float32)
        full_hessian = np.zeros(len(self.data.y), dtype=np.float32)
        full_gradient[rows] = gradient
        full_hessian[rows] = hessian
        return full_gradient, full_hessian

    def _step(self, update: np.ndarray, rows: np.ndarray | None) -> float:
        """How far to go along the new tree."""
        if self.settings.step == "newton":
            return 1.0
        drawn = self.listed.at(self.scores, rows)
        loss = self.settings.objective.freeze(
            drawn.y, drawn.scores, sample_weight=drawn.weight, qid=drawn.qid
        )
        direction = update if rows is None else update[rows]
        best = line_search(loss, drawn.scores, direction, largest_move=self.settings.largest_move)
        return self.settings.learning_rate * best

    def result(self, stopping: EarlyStopping | None, history: tuple[float, ...]) -> Boosted:
        """The booster with its steps written into the leaves, cut at the best round."""
        factors = np.concatenate([np.ones(self.n_start), self.factors])
        booster = scale_leaves(self.booster, factors)
        best = None
        if stopping is not None and stopping.best_round >= 0:
            best = stopping.best_round
            booster = booster[: self.n_start + best + 1]
        n_rounds = booster.num_boosted_rounds()
        return Boosted(booster, n_rounds, history, best)


def _starting_scores(start: Any, data: TrainingData, objective: Objective) -> np.ndarray:
    """Scores before the first round.

    Losses of single rows (logistic) start at the base rate, or the first trees would only learn how
    rare positives are; a constant does not matter to losses of pairs and lists.
    """
    if start is not None:
        return predict_margin(start, data.X)
    if not objective.pointwise:
        return np.zeros(len(data.y))
    positive = float(np.sum(data.weights[data.y > 0]))
    negative = float(np.sum(data.weights[data.y == 0]))
    return np.full(len(data.y), np.log(positive / negative))
