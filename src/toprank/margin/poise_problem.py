"""What `PartialAUCRanker` solves: its rows, its parameters, and the order in which choices are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank import metrics
from toprank.base import TrainingData
from toprank.margin._matrix import product
from toprank.margin.folds import content_folds, held_out_rows, sample_classes
from toprank.margin.partial_batch import BatchOptions, fit_range
from toprank.margin.partial_loss import PartialLoss, check_range
from toprank.margin.pegasos import PegasosOptions, fit_stochastic
from toprank.margin.range_choice import choose_range
from toprank.progress import progress

__all__ = ["Problem", "Solved"]

_PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5)
_MOST_POSITIVES, _MOST_NEGATIVES, _RANGE_FOLDS = 3_000, 12_000, 3


@dataclass(frozen=True)
class Solved:
    """What a solver found."""

    w: np.ndarray
    fpr: tuple[float, float]
    objective: float
    gap: float
    n_iter: int
    validation_scores: list[float]


class Watch:
    """Follow the rounds: the progress bar, and early stopping on held-out rows."""

    def __init__(self, problem: Problem, held_out: np.ndarray | None, advance: Any) -> None:
        self.problem, self.held_out, self.advance = problem, held_out, advance
        self.scores: list[float] = []
        self.best, self.best_w, self.best_round = -np.inf, np.empty(0), 0

    def __call__(self, w: np.ndarray, objective: float | None = None) -> bool:
        """Note a round; return whether to stop."""
        if self.held_out is None:
            self.advance()
            return False
        value = self.problem.quality(w, self.held_out)
        self.scores.append(value)
        self.advance(metric=value)
        if value > self.best:
            self.best, self.best_w, self.best_round = value, w.copy(), len(self.scores)
        return len(self.scores) - self.best_round >= self.problem.ranker.early_stopping_rounds


class Problem:
    """The rows to learn from, and the ways a ranker's parameters ask to learn from them."""

    def __init__(self, ranker: Any, rows: Any, data: TrainingData, seed: int) -> None:
        self.ranker, self.rows, self.data, self.seed = ranker, rows, data, seed
        self.positive = data.y > 0
        self.weights = data.weights
        self.wanted = check_range(ranker.fpr)
        self.measure = _metric(ranker.eval_metric, self.wanted)

    def loss(self, part: Any, fpr: tuple[float, float]) -> PartialLoss:
        return PartialLoss(self.positive[part], self.weights[part], fpr, self.ranker.loss)

    def part_rows(self, part: Any) -> Any:
        """Some of the rows; all of them without a copy."""
        return self.rows if isinstance(part, slice) else self.rows[part]

    def quality(self, w: np.ndarray, part: np.ndarray) -> float:
        """The metric of scores with coefficients w on some rows."""
        weight = None if self.data.sample_weight is None else self.weights[part]
        return self.measure(self.positive[part], product(self.rows[part], w), weight)

    def best_penalty(self) -> float:
        """The penalty whose solution does best on held-out rows."""
        held_out = held_out_rows(self.positive, self.ranker.validation_fraction, self.seed)
        kept = np.flatnonzero(~held_out)
        tried = {
            penalty: self.quality(self._minimise(penalty, kept, None).w, np.flatnonzero(held_out))
            for penalty in _PENALTIES
        }
        return max(tried, key=lambda penalty: tried[penalty])

    def solve(self, penalty: float) -> Solved:
        """Minimise on all rows, or on those that early stopping leaves."""
        part: Any = slice(None)
        held_out = None
        if self.ranker.early_stopping_rounds is not None:
            mask = held_out_rows(self.positive, self.ranker.validation_fraction, self.seed)
            part, held_out = np.flatnonzero(~mask), np.flatnonzero(mask)
        return self._minimise(penalty, part, held_out, show=True)

    def _minimise(
        self, penalty: float, part: Any, held_out: np.ndarray | None, show: bool = False
    ) -> Solved:
        ranker = self.ranker
        fpr, start = self._range(penalty, part)
        total = ranker.n_epochs if ranker.solver == "pegasos" else None
        with progress(total, "partial AUC", enabled=ranker.verbose if show else 0) as advance:
            watch = Watch(self, held_out, advance)
            solve = self._stochastic if ranker.solver == "pegasos" else self._batch
            solved = solve(penalty, part, fpr, start, watch)
        if watch.scores:
            loss = self.loss(part, fpr)(product(self.part_rows(part), watch.best_w))[0]
            objective = loss + penalty * float(watch.best_w @ watch.best_w)
            return Solved(
                watch.best_w, fpr, objective, float("nan"), len(watch.scores), watch.scores
            )
        return solved

    def _batch(
        self, penalty: float, part: Any, fpr: tuple[float, float], start: Any, watch: Watch
    ) -> Solved:
        options = BatchOptions(2.0 * penalty, self.ranker.tol, self.ranker.max_iter)
        found = fit_range(self.part_rows(part), self.loss(part, fpr), options, start, watch)
        return Solved(found.w, fpr, found.objective, found.gap, found.n_evaluations, [])

    def _stochastic(
        self, penalty: float, part: Any, fpr: tuple[float, float], start: Any, watch: Watch
    ) -> Solved:
        options = PegasosOptions(
            2.0 * penalty, self.ranker.tol, self.ranker.n_epochs, self.ranker.relative_deviation
        )
        random = np.random.default_rng(self.seed)
        found = fit_stochastic(self.part_rows(part), self.loss(part, fpr), options, random, watch)
        return Solved(found.w, fpr, found.objective, float("nan"), found.n_epochs, [])

    def _range(self, penalty: float, part: Any) -> tuple[tuple[float, float], np.ndarray | None]:
        """The range to minimise over, and coefficients to start from if there are any."""
        chosen = self.ranker.surrogate_range
        if chosen == "exact" or self.wanted == (0.0, 1.0):
            return self.wanted, None
        if not isinstance(chosen, str):
            return check_range(chosen), None
        numbers = np.arange(len(self.positive))[part]
        sample = numbers[
            sample_classes(self.positive[numbers], _MOST_POSITIVES, _MOST_NEGATIVES, self.seed)
        ]
        rows = self.rows[sample]
        random = np.random.default_rng(self.seed)
        found = choose_range(
            rows,
            self.loss(sample, self.wanted),
            BatchOptions(2.0 * penalty, self.ranker.tol, self.ranker.max_iter),
            lambda part, scores: metrics.partial_auc(
                self.positive[sample[part]],
                scores,
                fpr=self.wanted,
                sample_weight=self.weights[sample[part]],
            ),
            content_folds(rows, self.positive[sample], _RANGE_FOLDS, random),
        )
        return found.fpr, found.w


def _metric(
    metric: Any, fpr: tuple[float, float]
) -> Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]:
    """The metric of held-out rows as f(positive, scores, weight)."""
    if metric is None or metric == "partial_auc":
        return lambda y, scores, weight: metrics.partial_auc(
            y, scores, fpr=fpr, sample_weight=weight
        )
    function = getattr(metrics, metric, None) if isinstance(metric, str) else metric
    if not callable(function):
        raise ValueError(f"unknown eval_metric {metric!r}; use a function of toprank.metrics")
    if isinstance(metric, str):
        return lambda y, scores, weight: float(function(y, scores, sample_weight=weight))
    return lambda y, scores, weight: float(function(y, scores))
