"""Tables that come from elsewhere - alerts, importance, comparisons - as plain data."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from toprank.columns import as_frame
from toprank.ranking import descending_order
from toprank.report.plain import plain
from toprank.report.rows import ReportRows
from toprank.tables import escape_formulas

__all__ = ["alert_rows", "importance_rows", "top_rows"]

MOST_ALERTS = 2_000
MOST_FEATURES = 25
LONGEST_CELL = 500


def alert_rows(alerts: Any, rows: ReportRows, most: int = MOST_ALERTS) -> dict[str, Any]:
    """The alerts as columns and cells, with the truth beside them where an id tells it.

    `csv` holds each row as a line of a CSV file in which no cell can run as a formula.
    """
    frame = as_frame(alerts).head(most).copy()
    total = len(as_frame(alerts))
    truth = _truth(frame, rows)
    if truth is not None and "outcome" not in frame:
        frame.insert(min(2, frame.shape[1]), "outcome", truth)
    columns = [plain(str(name)) for name in frame.columns]
    records = [
        [_cell(frame.iloc[row, column], columns[column]) for column in range(len(columns))]
        for row in range(len(frame))
    ]
    return {"columns": columns, "rows": records, "n_total": total, "csv": _csv_lines(frame)}


def top_rows(rows: ReportRows, length: int) -> pd.DataFrame:
    """The highest rows as alerts without reasons, for a report that was given none."""
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


def importance_rows(importance: Any, most: int = MOST_FEATURES) -> list[dict[str, Any]]:
    """Features and their importance, the greatest first, from a mapping or a table."""
    if isinstance(importance, Mapping):
        names, values = list(importance), list(importance.values())
    else:
        frame = importance if isinstance(importance, pd.DataFrame) else pd.DataFrame(importance)
        names = list(frame[_named(frame, ("feature", "name", "column"), 0)])
        values = list(frame[_named(frame, ("importance", "mean_abs_contribution", "value"), 1)])
    numbers = np.asarray(values, dtype=np.float64)
    known = np.flatnonzero(np.isfinite(numbers))
    order = known[descending_order(numbers[known])][:most]
    return [{"feature": plain(str(names[i])), "importance": float(numbers[i])} for i in order]


def _named(frame: pd.DataFrame, names: tuple[str, ...], position: int) -> Any:
    """The first of some column names, or the column of a position."""
    for name in names:
        if name in frame:
            return name
    if frame.shape[1] <= position:
        raise ValueError("importance needs two columns: feature and importance.")
    return frame.columns[position]


def _truth(frame: pd.DataFrame, rows: ReportRows) -> list[str] | None:
    """Whether each alert was right, if its id or its position says which row it is.

    A position (the index of `toprank.shortlist`) is believed only if every score agrees with the row's.
    """
    place = None
    if rows.ids is not None and "id" in frame and pd.Index(rows.ids).is_unique:
        place = pd.Index(rows.ids).get_indexer(pd.Index(frame["id"].to_numpy(dtype=object)))
    elif frame.index.name == "row" and "score" in frame and rows.weight is None and len(frame):
        position = frame.index.to_numpy()
        if position.dtype.kind in "iu" and 0 <= position.min() <= position.max() < len(
            rows.positive
        ):
            known = rows.scores[rows.model][position]
            if np.allclose(known, frame["score"].to_numpy(dtype=np.float64), rtol=1e-6):
                place = position
    if place is None:
        return None
    found = np.where(rows.positive[place], "right", "false alarm")
    return np.where(place >= 0, found, "").tolist()


def _cell(cell: Any, column: str) -> Any:
    """A number, a text of bounded length, a list of texts (reasons), or None."""
    if column == "reasons":
        return [plain(str(reason))[:LONGEST_CELL] for reason in _reasons(cell)]
    plain_cell = plain(_joined(cell))
    return plain_cell[:LONGEST_CELL] if isinstance(plain_cell, str) else plain_cell


def _reasons(cell: Any) -> list[Any]:
    if isinstance(cell, str):
        return [part.strip() for part in cell.split("; ") if part.strip()]
    if isinstance(cell, list | tuple | np.ndarray):
        return list(cell)
    return [] if cell is None or pd.isna(cell) else [cell]


def _csv_lines(frame: pd.DataFrame) -> list[str]:
    """Header and rows as lines of CSV."""
    flat = frame.copy()
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":
            cells = [_joined(cell) for cell in frame.iloc[:, place]]
            flat.isetitem(place, pd.Series(cells, dtype=object).array)
    safe = escape_formulas(flat)
    lines = [_line([str(name) for name in safe.columns])]
    return lines + [_line(row) for row in safe.itertuples(index=False, name=None)]


def _joined(cell: Any) -> Any:
    """Several texts as one."""
    return "; ".join(map(str, cell)) if isinstance(cell, list | tuple | np.ndarray) else cell


def _line(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="")
    writer.writerow(["" if plain(cell) is None else plain(cell) for cell in cells])
    return text.getvalue()
