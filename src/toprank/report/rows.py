"""The rows of a report, checked against one another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.report.plain import plain
from toprank.validation import binary_rows, check_lengths, check_scores

__all__ = ["ReportRows", "check_rows"]


@dataclass(frozen=True)
class ReportRows:
    """Rows of positive weight: labels, the scores of each model, and what else is known of them.

    `scores` holds the model of the report first.
    """

    positive: np.ndarray
    scores: dict[str, np.ndarray]
    weight: np.ndarray | None
    value: np.ndarray | None
    time: np.ndarray | None
    ids: np.ndarray | None

    @property
    def model(self) -> str:
        return next(iter(self.scores))

    @property
    def total(self) -> float:
        return float(len(self.positive) if self.weight is None else self.weight.sum())

    @property
    def n_positives(self) -> float:
        found = self.positive if self.weight is None else self.weight[self.positive]
        return float(found.sum())


def check_rows(
    y: Any,
    scores: Any,
    *,
    model: str = "model",
    scores_by_model: Mapping[str, Any] | None = None,
    ids: Any = None,
    time: Any = None,
    value: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> ReportRows:
    """Check all columns; leave out rows of weight 0."""
    model = plain(str(model))
    others = {plain(str(name)): column for name, column in (scores_by_model or {}).items()}
    columns = {f"the scores of {name!r}": column for name, column in others.items()}
    check_lengths(y=np.asarray(y), scores=scores, **columns, ids=ids, time=time, value=value)
    rows = binary_rows(y, scores, sample_weight, pos_label)
    kept = slice(None) if rows.weight is None else np.asarray(sample_weight) > 0
    by_model = {model: rows.scores.astype(np.float64)}
    for name, column in others.items():
        if name != model:
            by_model[name] = check_scores(column, f"the scores of {name!r}")[kept].astype(float)
    return ReportRows(
        positive=rows.positive,
        scores=by_model,
        weight=rows.weight,
        value=None if value is None else _check_value(value)[kept],
        time=None if time is None else _check_time(time)[kept],
        ids=None if ids is None else np.asarray(ids, dtype=object)[kept],
    )


def _check_value(value: Any) -> np.ndarray:
    """Money per row as finite numbers."""
    try:
        money = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("value must be numbers: the money of each row.") from error
    if money.ndim != 1 or not np.isfinite(money).all():
        raise ValueError("value must be one finite number per row: fill missing money with 0.")
    return money


def _check_time(time: Any) -> np.ndarray:
    """Times as numbers or as dates (text is read as dates)."""
    import pandas as pd

    column = pd.Series(np.asarray(time))
    if not pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_datetime64_any_dtype(
        column
    ):
        try:
            column = pd.to_datetime(column, utc=True, format="ISO8601").dt.tz_localize(None)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "time must hold numbers, dates, or dates written like 2024-05-31 14:00."
            ) from error
    if column.isna().any():
        raise ValueError("time has missing values: give every row its time.")
    return column.to_numpy()
