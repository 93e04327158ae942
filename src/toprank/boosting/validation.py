"""Held-out rows and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank import metrics
from toprank.base import TrainingData

__all__ = ["EarlyStopping", "split_validation", "validation_metric"]

Metric = Callable[[TrainingData, np.ndarray], float]


def split_validation(data: TrainingData, share: float, random_state: int) -> np.ndarray:
    """Return a mask of the rows to hold out: whole queries, or the same share of each class."""
    if not 0 < share < 1:
        raise ValueError(f"validation_fraction must lie between 0 and 1, got {share!r}")
    random = np.random.default_rng(random_state)
    if data.qid is not None:
        queries = np.unique(data.qid)
        if len(queries) < 2:
            raise ValueError("one query cannot be split for validation; give an eval_set")
        size = min(len(queries) - 1, max(1, round(share * len(queries))))
        held_out = np.isin(data.qid, random.choice(queries, size=size, replace=False))
    else:
        held_out = np.zeros(len(data.y), dtype=bool)
        for label in (True, False):
            rows = np.flatnonzero((data.y > 0) == label)
            if len(rows) < 2:
                raise ValueError(
                    "a validation split needs at least two positives and two negatives; "
                    "give an eval_set or leave early stopping off"
                )
            size = min(len(rows) - 1, max(1, round(share * len(rows))))
            held_out[random.choice(rows, size=size, replace=False)] = True
    for part, name in ((held_out, "validation"), (~held_out, "training")):
        if len(np.unique(data.y[part] > 0)) < 2:
            raise ValueError(f"the {name} part of the split has only one class; give an eval_set")
    return held_out


def validation_metric(metric: str | Callable[..., float] | None, graded: bool) -> Metric:
    """Turn a metric of `toprank.metrics` (by name, or any f(y, scores)) into one of held-out data."""
    chosen = metric or ("ndcg" if graded else "average_precision")
    function = getattr(metrics, chosen, None) if isinstance(chosen, str) else chosen
    if function is None or not callable(function):
        raise ValueError(f"unknown eval_metric {chosen!r}; use a function of toprank.metrics")
    takes = _arguments(function)
    by_grade = chosen in {"ndcg", "multiclass_auc"}

    def measure(data: TrainingData, scores: np.ndarray) -> float:
        labels = data.y if by_grade or not isinstance(chosen, str) else data.y > 0
        extra: dict[str, Any] = {}
        if data.sample_weight is not None and "sample_weight" in takes:
            extra["sample_weight"] = data.sample_weight
        if data.qid is not None and "qid" in takes:
            extra["qid"] = data.qid
        return float(function(labels, scores, **extra))

    return measure


def _arguments(function: Callable[..., float]) -> set[str]:
    import inspect

    return set(inspect.signature(function).parameters)


class EarlyStopping:
    """Keep the best round so far and say when `patience` rounds brought nothing better."""

    def __init__(self, patience: int | None) -> None:
        if patience is not None and patience < 1:
            raise ValueError(f"early_stopping_rounds must be at least 1, got {patience!r}")
        self.patience = patience
        self.history: list[float] = []
        self.best_round = -1
        self.best_value = -np.inf

    def record(self, value: float) -> bool:
        """Note the value after a round; return whether to stop."""
        self.history.append(value)
        if value > self.best_value:
            self.best_value, self.best_round = value, len(self.history) - 1
        waited = len(self.history) - 1 - self.best_round
        return self.patience is not None and waited >= self.patience
