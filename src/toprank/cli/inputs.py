"""What commands read: tables and the roles of their columns, model files."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = [
    "Roles",
    "Rows",
    "input_files",
    "load_model",
    "model_columns",
    "names_in",
    "read_labelled",
    "read_scored",
]


@dataclass(frozen=True)
class Roles:
    """Which column plays which part; all others are features.

    Attributes
    ----------
    target, identifier, query, time, weight, value : str or None
        Names of columns.
    positive : str or None
        The positive label as typed.
    drop, text : sequence of str
        Columns to leave out, and columns whose numbers are text.
    """

    target: str | None = None
    positive: str | None = None
    identifier: str | None = None
    query: str | None = None
    time: str | None = None
    weight: str | None = None
    value: str | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()

    def columns(self) -> dict[str, str]:
        """The columns with a role, by the option that named them."""
        named = {
            "--target": self.target,
            "--id": self.identifier,
            "--query": self.query,
            "--time": self.time,
            "--weight": self.weight,
        }
        return {option: name for option, name in named.items() if name is not None}


@dataclass(frozen=True)
class Rows:
    """A table taken apart by the roles of its columns.

    Attributes
    ----------
    source : str
        What to call it in messages.
    X : DataFrame
        The features.
    table : DataFrame
        All columns.
    y : int array or None
        1 for the positives.
    ids, qid, time, weight, value : arrays or None
    doubts : list of str
        What is odd about the features.
    unused : list of str
        Columns that the model does not know and no option names.
    """

    source: str
    X: pd.DataFrame
    table: pd.DataFrame
    y: np.ndarray | None = None
    ids: pd.Series | None = None
    qid: np.ndarray | None = None
    time: np.ndarray | None = None
    weight: np.ndarray | None = None
    value: np.ndarray | None = None
    doubts: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def names(self) -> Any:
        """What rows are called: their identifiers, or their numbers from 1."""
        import numpy as np

        return np.arange(1, len(self.X) + 1) if self.ids is None else self.ids.to_numpy()


def read_labelled(data: str | None, sql: str | None, roles: Roles) -> Rows:
    """Read rows to learn from or to measure with: the target is there, the rest are features."""
    from toprank.cli.cells import as_labels, check_features

    table, source = _read(data, sql)
    text = names_in(roles.text, table, source)
    drop = names_in(roles.drop, table, source)
    _check_roles(roles, drop, table, source)
    y = as_labels(table[roles.target], roles.positive)
    apart = {*drop, *roles.columns().values()}
    X = table[[name for name in table.columns if name not in apart]]
    if text:
        X = X.assign(**{name: X[name].astype("str") for name in text if name in X})
    rows = Rows(source, X, table, y, doubts=check_features(X, text))
    return _with_roles(rows, roles)


def read_scored(data: str | None, sql: str | None, columns: Sequence[str], roles: Roles) -> Rows:
    """Read rows for a model that knows its columns; the target is read where it is named."""
    from toprank.cli.cells import as_labels, refuse_infinite

    table, source = _read(data, sql)
    _check_roles(roles, (), table, source)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        others = [name for name in table.columns if name not in columns]
        raise ValueError(
            f"{source} lacks columns that the model was trained on: {_list(missing)}"
            + (f"; not in training: {_list(others)}" if others else "")
        )
    y = None if roles.target is None else as_labels(table[roles.target], roles.positive)
    named = {*columns, *roles.columns().values(), roles.value}
    unused = [str(name) for name in table.columns if name not in named]
    X = table[list(columns)]
    for name in columns:
        refuse_infinite(X[name])
    return _with_roles(Rows(source, X, table, y, unused=unused), roles)


def load_model(path: Path) -> Any:
    """Open a model file; a folder or no file at all is said in one line."""
    import toprank

    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a model file")
    if not path.exists():
        raise ValueError(f"{path}: no such model file")
    return toprank.load(path)


def model_columns(model: Any) -> list[str]:
    """The columns that a model was trained on, by name."""
    if hasattr(model, "schema_"):
        raise ValueError(
            "the model ranks relational data, which one table is not; use it from Python"
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "the model was trained on an array without column names; train it on a table, or use it "
            "from Python"
        )
    return [str(name) for name in names]


def input_files(data: str | None) -> list[str]:
    """The files that a DATA argument names."""
    if data is None or data == "-":
        return []
    return [data, *glob.glob(data, recursive=True)]


def names_in(names: Sequence[str], table: pd.DataFrame, source: str) -> list[str]:
    """Columns named one by one or joined by commas (a column whose own name has a comma goes first)."""
    from toprank.tables import known_columns

    known = [str(name) for name in table.columns]
    split: list[str] = []
    for name in names:
        parts = [name] if name in known else [part.strip() for part in name.split(",")]
        split += [part for part in parts if part]
    return known_columns(split, known, source)


def _read(data: str | None, sql: str | None) -> tuple[pd.DataFrame, str]:
    from toprank.tables import read_table

    if (data is None) == (sql is None):
        raise ValueError("name the data: a file, a pattern, - for standard input, or --sql QUERY")
    if sql is not None:
        table, source = read_table(sql=sql), "the query"
        if len(table) == 0:
            raise ValueError("the query has no rows")
    else:
        table, source = read_table(data), "standard input" if data == "-" else str(data)
    return table, source


def _check_roles(roles: Roles, drop: Sequence[str], table: pd.DataFrame, source: str) -> None:
    """Every column with a role is there, none has two, none is dropped."""
    from toprank.tables import known_columns

    columns = roles.columns()
    for option, name in columns.items():
        known_columns([name], list(table.columns), source)
        others = [other for other, same in columns.items() if same == name and other != option]
        if others:
            raise ValueError(f"column {name!r} is named by both {option} and {others[0]}")
        if name in drop and option == "--target":
            raise ValueError(f"column {name!r} is named by both {option} and --drop")
    if roles.value is not None:
        known_columns([roles.value], list(table.columns), source)


def _with_roles(rows: Rows, roles: Roles) -> Rows:
    """The rows with their other columns, checked."""
    from dataclasses import replace

    from toprank.cli.cells import as_amounts, as_identifiers, as_times, as_weights

    table = rows.table
    found: dict[str, Any] = {}
    if roles.identifier is not None:
        found["ids"] = as_identifiers(table[roles.identifier])
    if roles.query is not None:
        if table[roles.query].isna().any():
            raise ValueError(f"--query: column {roles.query!r} has missing cells")
        found["qid"] = table[roles.query].to_numpy()
    if roles.time is not None:
        found["time"] = as_times(table[roles.time])
    if roles.weight is not None:
        found["weight"] = as_weights(table, roles.weight)
    if roles.value is not None:
        found["value"] = as_amounts(table, roles.value, "--value")
    return replace(rows, **found)


def _list(names: Sequence[Any], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(str(name)) for name in names[:most]) + more
