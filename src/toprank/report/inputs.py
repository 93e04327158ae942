"""What a report is given: rows with the scores of each model, alerts and importances, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.columns import as_frame
from toprank.formatting import to_jsonable
from toprank.metrics.bootstrap import ListSample
from toprank.ranking import descending_order
from toprank.tables import csv_rows
from toprank.validation import BinaryRows, binary_rows, check_lengths, check_scores, check_time

__all__ = ["ReportRows", "alert_table", "check_rows", "highest_rows", "importance_table"]

MOST_ALERTS = 2_000
MOST_FEATURES = 25
LONGEST_CELL = 500


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

    def sample(self, model: str | None = None, members: Any = slice(None)) -> ListSample:
        """Return the ranked list of a model (that of the report by default), or of some of its rows."""
        scores = self.scores[self.model if model is None else model]
        weight = None if self.weight is None else self.weight[members]
        return ListSample(BinaryRows(self.positive[members], scores[members], weight))

    @property
    def positive_values(self) -> np.ndarray | None:
        """Value of each positive row, times its weight."""
        if self.value is None:
            return None
        weight = 1.0 if self.weight is None else self.weight[self.positive]
        return self.value[self.positive] * weight

    @property
    def total(self) -> float:
        return count_rows(self.positive, self.weight)[0]

    @property
    def n_positives(self) -> float:
        return count_rows(self.positive, self.weight)[1]


def count_rows(positive: np.ndarray, weight: np.ndarray | None) -> tuple[float, float]:
    """Return how many rows and positives there are, or their weight."""
    if weight is None:
        return float(len(positive)), float(positive.sum())
    return float(weight.sum()), float(weight[positive].sum())


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
    model = to_jsonable(str(model))
    others = {to_jsonable(str(name)): column for name, column in (scores_by_model or {}).items()}
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
        time=None if time is None else check_time(time)[kept],
        ids=None if ids is None else np.asarray(ids, dtype=object)[kept],
    )


def _check_value(value: Any) -> np.ndarray:
    """Return the money of each row as finite numbers."""
    try:
        money = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError("value must be numbers: the money of each row.") from error
    if money.ndim != 1 or not np.isfinite(money).all():
        raise ValueError("value must be one finite number per row: fill missing money with 0.")
    return money


# -- alerts and importance ----------------------------------------------------------------------------


def alert_table(alerts: Any, rows: ReportRows, most: int = MOST_ALERTS) -> dict[str, Any]:
    """Return the alerts as columns and cells, with the truth beside them where an id tells it.

    `csv` holds each row as a line of a CSV file in which no cell can run as a formula.
    """
    given = as_frame(alerts)
    frame, total = given.head(most).copy(), len(given)
    truth = _truth(frame, rows)
    if truth is not None and "outcome" not in frame:
        frame.insert(min(2, frame.shape[1]), "outcome", truth)
    columns = [to_jsonable(str(name)) for name in frame.columns]
    cells = [[_cell(cell, name) for cell in frame.iloc[:, i]] for i, name in enumerate(columns)]
    records = [list(row) for row in zip(*cells, strict=True)]
    return {"columns": columns, "rows": records, "n_total": total, "csv": _csv_lines(frame)}


def highest_rows(rows: ReportRows, length: int) -> pd.DataFrame:
    """Return the highest rows as alerts without reasons, for a report that was given none."""
    scores = rows.scores[rows.model]
    best = descending_order(scores)[:length]
    names = best if rows.ids is None else rows.ids[best]
    found = np.where(rows.positive[best], "right", "false alarm")
    table = {
        "rank": np.arange(1, len(best) + 1),
        "row" if rows.ids is None else "id": names,
        "outcome": found,
        "score": scores[best],
    }
    if rows.value is not None:
        table["value"] = rows.value[best]
    return pd.DataFrame(table)


def importance_table(importance: Any, most: int = MOST_FEATURES) -> list[dict[str, Any]]:
    """Return features and their importance, the greatest first, from a mapping or a table."""
    if isinstance(importance, Mapping):
        names, values = list(importance), list(importance.values())
    else:
        frame = importance if isinstance(importance, pd.DataFrame) else pd.DataFrame(importance)
        names = list(frame[_named(frame, ("feature", "name", "column"), 0)])
        values = list(frame[_named(frame, ("importance", "mean_abs_contribution", "value"), 1)])
    numbers = np.asarray(values, dtype=np.float64)
    known = np.flatnonzero(np.isfinite(numbers))
    order = known[descending_order(numbers[known])][:most]
    return [{"feature": to_jsonable(str(names[i])), "importance": float(numbers[i])} for i in order]


def _named(frame: pd.DataFrame, names: tuple[str, ...], position: int) -> Any:
    """Return the first of some column names that is there, or the column of a position."""
    for name in names:
        if name in frame:
            return name
    if frame.shape[1] <= position:
        raise ValueError("importance needs two columns: feature and importance.")
    return frame.columns[position]


def _truth(frame: pd.DataFrame, rows: ReportRows) -> list[str] | None:
    """Say whether each alert was right, if its id or its position tells which row it is.

    A position (the index of `toprank.shortlist`) is believed only if every score agrees with the row's.
    """
    place = None
    if rows.ids is not None and "id" in frame and pd.Index(rows.ids).is_unique:
        place = pd.Index(rows.ids).get_indexer(pd.Index(frame["id"].to_numpy(dtype=object)))
    elif frame.index.name == "row" and "score" in frame and rows.weight is None and len(frame):
        position, n_rows = frame.index.to_numpy(), len(rows.positive)
        if position.dtype.kind in "iu" and 0 <= position.min() <= position.max() < n_rows:
            known = rows.scores[rows.model][position]
            if np.allclose(known, frame["score"].to_numpy(dtype=np.float64), rtol=1e-6):
                place = position
    if place is None:
        return None
    found = np.where(rows.positive[place], "right", "false alarm")
    return np.where(place >= 0, found, "").tolist()


def _cell(cell: Any, column: str) -> Any:
    """Return a number, a text of bounded length, a list of texts (reasons), or None."""
    if column == "reasons":
        if isinstance(cell, str):
            cell = [part.strip() for part in cell.split("; ") if part.strip()]
        elif not isinstance(cell, list | tuple | np.ndarray):
            cell = [] if cell is None or pd.isna(cell) else [cell]
        return [to_jsonable(str(reason))[:LONGEST_CELL] for reason in cell]
    value = to_jsonable(_joined(cell))
    return value[:LONGEST_CELL] if isinstance(value, str) else value


def _csv_lines(frame: pd.DataFrame) -> list[str]:
    """Return header and rows as lines of CSV in which no cell runs as a formula."""
    flat = frame.copy()
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":
            cells = [_joined(cell) for cell in frame.iloc[:, place]]
            flat.isetitem(place, pd.Series(cells, dtype=object).array)
    return [to_jsonable(line) for line in csv_rows(flat)]


def _joined(cell: Any) -> Any:
    """Join several texts to one."""
    return "; ".join(map(str, cell)) if isinstance(cell, list | tuple | np.ndarray) else cell
