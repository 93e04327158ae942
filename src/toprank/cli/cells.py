"""Columns as labels, times, weights and features, each checked; messages name column and row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

__all__ = [
    "as_amounts",
    "as_identifiers",
    "as_label",
    "as_labels",
    "as_periods",
    "as_times",
    "as_weights",
    "check_features",
    "refuse_infinite",
]

# Pairs of words of which it is clear which one is the positive.
CLEAR_PAIRS = {("f", "t"), ("false", "true"), ("n", "y"), ("no", "yes"), ("0", "1")}
PERIODS = {"hour": "h", "day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
MOST_NUMBERS = 0.5  # text of which more than this share is numbers is a damaged column of numbers
MANY_ROWS, ALL_DIFFERENT = 200, 0.5  # text with so many rows and distinct values looks like names
SHOWN_VALUES = 4
INFINITIES = [
    "inf",
    "+inf",
    "-inf",
    "Inf",
    "-Inf",
    "infinity",
    "-infinity",
    "Infinity",
    "-Infinity",
]


def as_label(text: str, labels: pd.Series) -> Any:
    """A label as typed on the command line, in the type of the column.

    Examples
    --------
    >>> as_label("1", pd.Series([0, 1])), as_label("yes", pd.Series(["no", "yes"]))
    (1.0, 'yes')
    """
    if pd.api.types.is_bool_dtype(labels.dtype):
        names = {"true": True, "1": True, "false": False, "0": False}
        if text.lower() not in names:
            raise ValueError(f"--positive {text}: the labels are true and false")
        return names[text.lower()]
    if pd.api.types.is_numeric_dtype(labels.dtype):
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"--positive {text}: the labels are numbers") from None
    return text


def as_labels(labels: pd.Series, positive: str | None) -> np.ndarray:
    """1 for the positive label and 0 for the others.

    Without a named positive there must be two labels and no doubt which one is meant: the greater
    of two numbers, true, yes.

    Examples
    --------
    >>> as_labels(pd.Series(["ok", "fraud", "ok"], name="kind"), "fraud").tolist()
    [0, 1, 0]
    """
    name = labels.name
    _refuse_missing(labels, "a label", "leave such rows out, for instance with --sql")
    values = pd.unique(labels)
    if positive is not None:
        chosen = as_label(positive, labels)
        cells = labels if not isinstance(chosen, str) else labels.astype(str)
        answer = (cells == chosen).to_numpy(dtype=np.int64)
        if not answer.any():
            raise ValueError(f"--positive {positive}: column {name!r} holds {_some(values)}")
    elif len(values) > 2:
        raise ValueError(
            f"column {name!r} has {len(values)} different labels ({_some(values)}); say with "
            "--positive which one counts as positive"
        )
    else:
        answer = (labels == _clear_positive(values, name)).to_numpy(dtype=np.int64)
    if len(values) < 2:
        raise ValueError(
            f"column {name!r} holds only one class, {_some(values)}; both positives and negatives "
            "are needed"
        )
    return answer


def _clear_positive(values: Any, name: Any) -> Any:
    """The positive of at most two labels."""
    ordered = sorted(values.tolist(), key=lambda value: (str(type(value)), value))
    texts = tuple(str(value).lower() for value in ordered)
    words = any(isinstance(value, str) for value in ordered)
    if len(ordered) == 2 and words and texts not in CLEAR_PAIRS:
        raise ValueError(
            f"column {name!r} holds {_some(values)}; say with --positive which one counts as positive"
        )
    return ordered[-1]


def as_identifiers(cells: pd.Series) -> pd.Series:
    """Identifiers: none missing, each on one row only."""
    _refuse_missing(cells, "an identifier", "every row needs its own")
    again = cells.duplicated().to_numpy()
    if again.any():
        second = int(np.argmax(again))
        first = int(np.argmax((cells == cells.iloc[second]).to_numpy()))
        raise ValueError(
            f"--id: column {cells.name!r} does not identify rows: rows {first + 1} and {second + 1} "
            f"both hold {_short(cells.iloc[second])}"
        )
    return cells


def as_weights(table: pd.DataFrame, name: str) -> np.ndarray:
    """Row weights: numbers from 0 up."""
    weights = as_amounts(table, name, "--weight")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"--weight: column {name!r} is negative in row {row + 1}: {weights[row]:g}"
        )
    return weights


def as_amounts(table: pd.DataFrame, name: str, option: str) -> np.ndarray:
    """Finite numbers."""
    from toprank.tables import numbers

    cells = numbers(table, name)
    bad = ~np.isfinite(cells)
    if bad.any():
        row = int(np.argmax(bad))
        what = "missing" if np.isnan(cells[row]) else "infinite"
        raise ValueError(f"{option}: column {name!r} is {what} in row {row + 1}")
    return cells


def as_times(cells: pd.Series) -> np.ndarray:
    """Times: dates as they are, text as dates, numbers as numbers."""
    _refuse_missing(cells, "a time", "every row needs one")
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return _naive(cells)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return cells.to_numpy()
    times = pd.to_datetime(cells.astype(str), errors="coerce", format="ISO8601", utc=True)
    if times.isna().any():
        row = int(np.argmax(times.isna().to_numpy()))
        raise ValueError(
            f"--time: column {cells.name!r} holds {_short(cells.iloc[row])} in row {row + 1}, which "
            "is not a date such as 2024-05-31 or 2024-05-31T12:00:00"
        )
    return _naive(times)


def _naive(times: pd.Series) -> np.ndarray:
    """Times without a zone: those with one in UTC."""
    zone = getattr(times.dtype, "tz", None)
    return (times if zone is None else times.dt.tz_convert("UTC").dt.tz_localize(None)).to_numpy()


def as_periods(times: np.ndarray, period: str) -> np.ndarray:
    """The day (or week, ...) of each time, as text.

    Examples
    --------
    >>> as_periods(np.array(["2024-05-31T23:59"], dtype="datetime64[s]"), "month").tolist()
    ['2024-05']
    """
    if times.dtype.kind != "M":
        raise ValueError(f"--per {period}: the column of --time holds numbers, not dates")
    return pd.DatetimeIndex(times).to_period(PERIODS[period]).astype(str).to_numpy(dtype=object)


def check_features(X: pd.DataFrame, as_text: Collection[str] = ()) -> list[str]:
    """Refuse columns that no model can use; return warnings about doubtful ones."""
    if X.shape[1] == 0:
        raise ValueError("no column is left to learn from")
    doubts = []
    for position, name in enumerate(X.columns):
        cells = X.iloc[:, position]
        refuse_infinite(cells)
        if pd.api.types.is_numeric_dtype(cells.dtype):
            continue
        if cells.dtype.kind in "mM" or isinstance(cells.dtype, pd.DatetimeTZDtype):
            raise ValueError(
                f"column {name!r} holds dates or times, which models do not read: name it with "
                "--time, or leave it out with --drop"
            )
        _refuse_odd_cells(cells)
        if name not in as_text:
            _refuse_half_numbers(cells)
            doubts += _looks_like_names(cells)
    return doubts


def refuse_infinite(cells: pd.Series) -> None:
    """Refuse a column with an infinite number, also one that was read as text."""
    if cells.dtype.kind == "f":
        infinite = np.isinf(cells.to_numpy())
    elif pd.api.types.is_string_dtype(cells.dtype):
        infinite = cells.isin(INFINITIES).to_numpy()
    else:
        return
    if infinite.any():
        row = int(np.argmax(infinite))
        raise ValueError(f"column {cells.name!r} is infinite in row {row + 1}")


def _refuse_odd_cells(cells: pd.Series) -> None:
    if cells.dtype != object:
        return
    plain = (str, bool, int, float, np.number, np.bool_)
    for row, cell in enumerate(cells):
        if cell is not None and not isinstance(cell, plain) and cell is not pd.NA:
            raise ValueError(
                f"column {cells.name!r} holds a {type(cell).__name__} in row {row + 1}, where models "
                "read numbers and text; leave it out with --drop"
            )


def _refuse_half_numbers(cells: pd.Series) -> None:
    """Text among numbers makes a text of every number: rarely meant."""
    present = cells.dropna()
    numeric = pd.to_numeric(present, errors="coerce").notna().to_numpy()
    if len(numeric) and not numeric.all() and numeric.mean() > MOST_NUMBERS:
        at = int(np.argmin(numeric))
        row = int(np.flatnonzero(cells.notna().to_numpy())[at])
        raise ValueError(
            f"column {cells.name!r} mixes numbers with text: row {row + 1} holds "
            f"{_short(present.iloc[at])}; mend it, leave it out with --drop, or say with --text "
            "that all of it is text"
        )


def _looks_like_names(cells: pd.Series) -> list[str]:
    distinct = cells.nunique()
    if len(cells) < MANY_ROWS or distinct <= ALL_DIFFERENT * len(cells):
        return []
    return [
        f"column {cells.name!r} holds {distinct:,} different texts in {len(cells):,} rows, as names "
        "do: if it identifies rows, say so with --id or leave it out with --drop"
    ]


def _refuse_missing(cells: pd.Series, what: str, advice: str) -> None:
    missing = cells.isna().to_numpy()
    if missing.any():
        rows = f"{missing.sum():,} rows" if missing.sum() > 1 else "one row"
        raise ValueError(
            f"column {cells.name!r} lacks {what} in {rows}, the first is row "
            f"{int(np.argmax(missing)) + 1}; {advice}"
        )


def _some(values: Any) -> str:
    """Some values of a column."""
    shown = [_short(value) for value in values[:SHOWN_VALUES]]
    return ", ".join(shown) + (", ..." if len(values) > SHOWN_VALUES else "")


def _short(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    return repr(value if isinstance(value, (bool, int, float)) else str(value)[:40])
