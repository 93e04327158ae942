"""What commands read: files as checked tables, with the roles of their columns, and model files.

Commands import this module when they run: pandas is slow to load.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toprank.columns import is_text
from toprank.formatting import to_python
from toprank.parsing import (
    add_date_parts,
    date_parts,
    date_source,
    parse_dates,
    parse_numbers,
    truth_of,
)
from toprank.persistence.schema import columns_of
from toprank.tables import known_columns, numbers, read_table
from toprank.validation import check_numbers, check_time

__all__ = [
    "InputTable",
    "Roles",
    "input_files",
    "load_model",
    "model_columns",
    "read_input",
    "read_labelled",
    "read_relational",
    "read_scored",
    "read_truth",
    "split_names",
    "would_not_fit",
]

# Pairs of labels of which it is clear which one is the positive.
CLEAR_PAIRS = {("f", "t"), ("false", "true"), ("n", "y"), ("no", "yes"), ("0", "1")}
PERIODS = {"hour": "h", "day": "D", "week": "W", "month": "M", "quarter": "Q", "year": "Y"}
MAX_SHARE_OF_NUMBERS = 0.5  # text of which more than this share is numbers is a damaged column
MANY_ROWS, MANY_DISTINCT = 200, 0.5  # text with so many rows and distinct values looks like names
INFINITIES = {
    sign + text for sign in ("", "+", "-") for text in ("inf", "Inf", "infinity", "Infinity")
}


@dataclass(frozen=True)
class Roles:
    """Names of the columns that play a part; all others are features."""

    target: str | None = None
    positive: str | None = None  # a label, as typed
    identifier: str | None = None
    query: str | None = None
    time: str | None = None
    weight: str | None = None
    value: str | None = None
    drop: Sequence[str] = ()
    text: Sequence[str] = ()  # whose numbers are text
    group: str | None = None  # rows of one group are never in training and in test

    def columns(self) -> dict[str, str]:
        """Return the columns with a role of their own, by the option that named them."""
        named = {"--target": self.target, "--id": self.identifier, "--query": self.query,
                 "--time": self.time, "--weight": self.weight, "--group": self.group}  # fmt: skip
        return {option: name for option, name in named.items() if name is not None}


@dataclass(frozen=True)
class InputTable:
    """A table, taken apart by the roles of its columns."""

    source: str  # what to call it in messages
    X: pd.DataFrame  # the features
    table: pd.DataFrame  # all columns
    y: np.ndarray | None = None  # 1 for the positives
    ids: pd.Series | None = None
    qid: np.ndarray | None = None
    group: np.ndarray | None = None
    time: np.ndarray | None = None
    weight: np.ndarray | None = None
    value: np.ndarray | None = None
    warnings: list[str] = field(default_factory=list)  # what is suspicious about the features
    notes: list[str] = field(default_factory=list)  # how cells were read
    unused: list[str] = field(default_factory=list)  # neither known to the model nor named

    def row_names(self) -> np.ndarray:
        """Return the identifiers of the rows, or their numbers from 1."""
        return np.arange(1, len(self.X) + 1) if self.ids is None else self.ids.to_numpy()

    def row_positions(self, wanted: Sequence[str]) -> np.ndarray:
        """Return the positions of rows by name; several names may be joined by commas."""
        names = [str(name) for name in self.row_names()]
        places = {name: position for position, name in enumerate(names)}
        asked: list[str] = []
        for text in wanted:
            asked += [text] if text in places else [part.strip() for part in text.split(",")]
        for name in asked:
            if name not in places:
                what = f"a number from 1 to {len(names)}" if self.ids is None else "an identifier"
                raise ValueError(f"--row {name}: {self.source} has no such row; name it by {what}")
        return np.array([places[name] for name in asked], dtype=np.int64)

    def days(self) -> np.ndarray | None:
        """Return the day of each row, if there are times and these are dates."""
        if self.time is None or self.time.dtype.kind != "M":
            return None
        return to_periods(self.time, "day")

    def groups(self, per: str) -> np.ndarray:
        """Return the groups that each get a list: the values of a column, or the days of the times.

        A word such as day means the days of --time where there is one, whatever columns are called.
        Several are joined by commas: a list for each combination.
        """
        if per not in self.table.columns and "," in per:
            parts = [self.groups(part.strip()) for part in per.split(",")]
            joined = pd.DataFrame(
                {k: pd.Series(part).astype("str") for k, part in enumerate(parts)}
            )
            return joined.agg(" / ".join, axis=1).to_numpy(dtype=object)
        if per in PERIODS and self.time is not None:
            if per in self.table.columns:
                self.notes.append(f"--per {per}: the {per}s of --time, not the column {per!r}")
            return to_periods(self.time, per)
        if per in self.table.columns:
            if per in PERIODS:
                self.notes.append(
                    f"--per {per}: the values of the column {per!r}; for the {per}s of a column of times, "
                    "add --time COL"
                )
            return self.table[per].to_numpy()
        if per in PERIODS:
            raise ValueError(f"--per {per} needs the column of times: --time COL")
        known_columns([per], [str(name) for name in self.table.columns], self.source)
        raise AssertionError("known_columns refuses a column that is not there")


# -- reading ---------------------------------------------------------------------------------------


def read_labelled(data: str | None, sql: str | None, roles: Roles) -> InputTable:
    """Read rows to learn from or to compare on: all columns without a role are features."""
    table, source = read_input(data, sql)
    text = split_names(roles.text, table, source)
    drop = split_names(roles.drop, table, source)
    _check_roles(roles, drop, table, source)
    y = read_labels(table[roles.target], roles.positive)
    names = {roles.target, roles.identifier, roles.query, roles.group}
    written = [name for name in table.columns if name not in {*text, *drop, *names}]
    table, decimals, notes = read_written_numbers(table, dict.fromkeys(written))
    apart = {*drop, *roles.columns().values()}
    X = table[[name for name in table.columns if name not in apart]]
    X, orders, more = _dates_as_numbers(X, table, roles.time, text)
    notes += more
    if text:
        X = X.assign(**{name: X[name].astype("str") for name in text if name in X})
    warnings = check_features(X, text)
    X.attrs |= {"decimals": decimals, "date_orders": orders}  # for the summary in the model file
    rows = InputTable(source, X, table, y, warnings=warnings, notes=notes)
    return _add_roles(rows, roles)


def read_relational(
    folder: str, target: str | None = None, positive: str | None = None, *, schema: Any = None
) -> InputTable:
    """Read a folder of relational data; its rows are the examples.

    The labels are those that its schema.json names, or the column `target` of its examples. With the
    `schema` of a model, the examples' columns that it knows are read, and no others.
    """
    from toprank import RelationalData

    declared: dict[str, Any] = {}
    if not (Path(folder) / "schema.json").is_file():
        declared = {"label": target}
        if schema is not None:
            name, columns = schema.target.name, list(schema.target.columns)
            declared |= {"target": name, "arguments": {name: columns}}
    data = RelationalData.from_folder(folder, **declared)
    y = None
    if data.labels is not None:
        y = read_labels(pd.Series(data.labels, name=target or "target"), positive)
    return InputTable(folder, data, data.examples, y, warnings=list(data.notes))


def read_scored(data: str | None, sql: str | None, model: Any, roles: Roles) -> InputTable:
    """Read rows for a model, every column as the type that it was trained on.

    The target is read where it is named.
    """
    columns = model_columns(model)
    known = columns_of(model)
    kinds = dict(zip(known.names, known.categories, strict=True))
    text = [name for name, values in kinds.items() if values is not None and is_text(values)]
    table, source = read_input(data, sql, text=text)
    _check_roles(roles, (), table, source)
    learnt = (getattr(model, "training_summary_", None) or {}).get("columns", [])
    decimals = {column["name"]: column.get("decimal") for column in learnt}
    numeric = [name for name in columns if kinds.get(name) is None]
    amounts = [name for name in (roles.weight, roles.value) if name is not None]
    wanted = {name: decimals.get(name) for name in (*numeric, *amounts)}
    table, _, notes = read_written_numbers(table, wanted)
    absent = [name for name in columns if name not in table.columns]
    orders = {date_source(c["name"]): c.get("date_order") for c in learnt}
    table, dates = add_date_parts(table, absent, orders)
    missing = [name for name in columns if name not in table.columns]
    if missing:
        others = [name for name in table.columns if name not in columns]
        raise ValueError(
            f"{source} lacks columns that the model was trained on: {_join_some(missing)}"
            + (f"; not in training: {_join_some(others)}" if others else "")
        )
    y = None if roles.target is None else read_labels(table[roles.target], roles.positive)
    named = {*columns, *roles.columns().values(), roles.value, *dates}
    unused = [str(name) for name in table.columns if name not in named]
    X = table[list(columns)]
    for name in columns:
        check_finite(X[name])
    return _add_roles(InputTable(source, X, table, y, unused=unused, notes=notes), roles)


def read_input(
    data: str | None,
    sql: str | None,
    columns: Sequence[str] | None = None,
    text: Collection[str] = (),
) -> tuple[pd.DataFrame, str]:
    """Read a DATA argument or the answer of a query; return the table and what to call it."""
    if (data is None) == (sql is None):
        raise ValueError("name the data: a file, a pattern, - for standard input, or --sql QUERY")
    if data is not None:
        return read_table(data, columns, text=text), "standard input" if data == "-" else data
    table = read_table(columns=columns, sql=sql)
    if len(table) == 0:
        raise ValueError("the query has no rows")
    return table, "the query"


def read_written_numbers(
    table: pd.DataFrame, wanted: Mapping[str, str | None]
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read text such as "$1,234.50" and "37%" in some columns as numbers.

    Parameters
    ----------
    table : DataFrame
    wanted : mapping
        Columns, each with its decimal separator where that is known.

    Returns
    -------
    table : DataFrame
    decimals : dict
        The decimal separators of the columns that were read so.
    notes : list of str

    Examples
    --------
    >>> table, _, notes = read_written_numbers(pd.DataFrame({"rate": ["37%"]}), {"rate": None})
    >>> table["rate"].tolist(), notes
    ([0.37], ["read as numbers: rate ('37%' is 0.37)"])
    """
    decimals, changed, examples = {}, {}, []
    for name, decimal in wanted.items():
        if name not in table.columns or not pd.api.types.is_string_dtype(table[name].dtype):
            continue
        parsed = parse_numbers(table[name], decimal)
        if parsed is not None:
            changed[name], decimals[name] = parsed.values, parsed.decimal
            examples.append(f"{name} ({_short(parsed.example[0])} is {parsed.example[1]:.10g})")
    notes = [f"read as numbers: {', '.join(examples)}"] if examples else []
    return table.assign(**changed) if changed else table, decimals, notes


def _dates_as_numbers(
    X: pd.DataFrame, table: pd.DataFrame, time: str | None, text: Collection[str]
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Put parts and distances in the place of dates; return the orders of those in text, and notes."""
    orders, parts, names = {}, {}, []
    times = None
    if time is not None:
        is_number = pd.api.types.is_numeric_dtype(table[time].dtype)
        times = None if is_number else pd.Series(_times(table[time]), index=table.index)
    for name in X.columns:
        column = X[name]
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        elif pd.api.types.is_string_dtype(column.dtype) and name not in text:
            parsed = parse_dates(column)
            if parsed is None:
                continue
            column, orders[name] = parsed
        elif column.dtype.kind != "M":
            continue
        dates = pd.DataFrame({name: column})
        if times is not None and times.dtype.kind == "M":
            dates[time] = times.to_numpy()
        parts[name] = date_parts(dates, name, time if time in dates else None)
        order = f", read as {orders[name]}" if name in orders else ""
        names.append(
            f"{name} ({', '.join(str(c).removeprefix(name + '.') for c in parts[name])}{order})"
        )
    if not parts:
        return X, {}, []
    blocks = [parts[name] if name in parts else X[[name]] for name in X.columns]
    return pd.concat(blocks, axis=1), orders, [f"dates became numbers: {'; '.join(names)}"]


def load_model(path: Path) -> Any:
    """Load a model file."""
    import toprank

    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a model file")
    if not path.exists():
        raise ValueError(f"{path}: no such model file")
    return toprank.load(path)


def model_columns(model: Any) -> list[str]:
    """Return the names of the columns that a model was trained on."""
    from toprank.persistence.schema import relational_schema

    if relational_schema(model) is not None:
        raise ValueError(
            "the model ranks relational data, which one table is not: name a folder of tables by "
            "--relational FOLDER"
        )
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            "the model was trained on an array without column names; train it on a table, or use it "
            "from Python"
        )
    return [str(name) for name in names]


def input_files(data: str | None) -> list[str]:
    """Return the files that a DATA argument names."""
    if data is None or data == "-":
        return []
    return [data, *glob.glob(data, recursive=True)]


# -- memory ---------------------------------------------------------------------------------------

COPIES = 4  # of the feature matrix that a fit in memory may hold, and bytes for each row beside it
BYTES_A_ROW = 300
FIXED_BYTES = 300 * 10**6
EXPANSION = 40  # of a compressed file, at most, on its way to such a fit


def would_not_fit(data: str | None, sql: str | None, memory: str | None) -> bool:
    """Return whether the rows need more than `memory` (by default: what is free) to be fitted at once."""
    from toprank.sources import Source, memory_bytes
    from toprank.tables import TableError

    limit = memory_bytes(memory) or _free_memory()
    if data == "-" or (data is None and (sql is None or memory is None)):
        return False
    if data is not None and os.path.exists(data) and stat.S_ISFIFO(os.stat(data).st_mode):
        return False  # it can be read once
    if data is not None and sql is not None:
        return False  # reading it will say that one of them is too many
    try:
        source = Source.of(data, sql=sql)
    except TableError:
        if memory is not None:
            raise
        return False  # reading it will say what is wrong
    if sum(map(os.path.getsize, source.files)) * EXPANSION + FIXED_BYTES < limit and not sql:
        return False
    columns = list(source.schema())
    with source.opened(columns[:1]) as stream:  # one column is enough to count rows
        needed = stream.count() * (COPIES * 8 * len(columns) + BYTES_A_ROW) + FIXED_BYTES
    return needed > limit


def _free_memory() -> int:
    """Return the bytes of memory that are free now; without limit where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**62


# -- roles -----------------------------------------------------------------------------------------


def split_names(names: Sequence[str], table: pd.DataFrame, source: str) -> list[str]:
    """Return columns named one by one or joined by commas (unless a column's own name has the comma)."""
    known = [str(name) for name in table.columns]
    split: list[str] = []
    for name in names:
        parts = [name] if name in known else [part.strip() for part in name.split(",")]
        split += [part for part in parts if part]
    return known_columns(split, known, source)


def _check_roles(roles: Roles, drop: Sequence[str], table: pd.DataFrame, source: str) -> None:
    """Check that every column with a role exists, has no other role and is not dropped."""
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


def _times(column: pd.Series) -> np.ndarray:
    """Return the times of rows, also those that text writes with the day first."""
    is_text = pd.api.types.is_string_dtype(column.dtype)
    parsed = parse_dates(column) if is_text else None
    return check_time(
        column if parsed is None else parsed[0], name=f"--time: column {column.name!r}"
    )


def _add_roles(rows: InputTable, roles: Roles) -> InputTable:
    """Check the columns with other roles and return them with the rows."""
    table = rows.table
    found: dict[str, Any] = {}
    if roles.identifier is not None:
        found["ids"] = check_identifiers(table[roles.identifier])
    if roles.query is not None:
        if table[roles.query].isna().any():
            raise ValueError(f"--query: column {roles.query!r} has missing values")
        found["qid"] = table[roles.query].to_numpy()
    if roles.group is not None:
        if table[roles.group].isna().any():
            raise ValueError(f"--group: column {roles.group!r} has missing values")
        found["group"] = table[roles.group].to_numpy()
    if roles.time is not None:
        found["time"] = _times(table[roles.time])
    if roles.weight is not None:
        found["weight"] = check_amounts(table, roles.weight, "--weight", least=0)
    if roles.value is not None:
        found["value"] = check_amounts(table, roles.value, "--value")
    return replace(rows, **found)


# -- columns ---------------------------------------------------------------------------------------


def read_label(text: str, labels: pd.Series) -> Any:
    """Return a label as typed on the command line, in the type of the column.

    Examples
    --------
    >>> read_label("1", pd.Series([0, 1])), read_label("yes", pd.Series(["no", "yes"]))
    (1.0, 'yes')
    >>> read_label("yes", pd.Series([False, True]))
    True
    """
    if pd.api.types.is_bool_dtype(labels.dtype):
        truth = truth_of(text)
        if truth is None:
            raise ValueError(f"--positive {text}: the labels are true and false")
        return truth
    if pd.api.types.is_numeric_dtype(labels.dtype):
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"--positive {text}: the labels are numbers") from None
    return text


def read_labels(labels: pd.Series, positive: str | None) -> np.ndarray:
    """Return 1 for the positive label and 0 for the others.

    Without a named positive there must be two labels and no question which one is meant: the greater
    of two numbers, true, yes.

    Examples
    --------
    >>> read_labels(pd.Series(["ok", "fraud", "ok"], name="kind"), "fraud").tolist()
    [0, 1, 0]
    """
    name = labels.name
    _check_scalars(labels)
    _check_present(labels, "a label", "leave such rows out, for instance with --sql")
    values = pd.unique(labels)
    if positive is not None:
        chosen = read_label(positive, labels)
        comparable = labels.astype(str) if isinstance(chosen, str) else labels
        answer = (comparable == chosen).to_numpy(dtype=np.int64)
        if not answer.any() and truth_of(positive) is not None:  # true for True, yes for YES
            alike = [v for v in values if str(v).casefold() == positive.casefold()]
            answer = (labels == alike[0]).to_numpy(dtype=np.int64) if len(alike) == 1 else answer
        if not answer.any():
            raise ValueError(f"--positive {positive}: column {name!r} holds {_some_values(values)}")
    elif len(values) > 2:
        raise ValueError(
            f"column {name!r} has {len(values)} different labels ({_some_values(values)}); say with "
            "--positive which one counts as positive"
        )
    else:
        answer = (labels == _clear_positive(values, name)).to_numpy(dtype=np.int64)
    if len(values) < 2:
        raise ValueError(
            f"column {name!r} holds only one class, {_some_values(values)}; both positives and "
            "negatives are needed"
        )
    return answer


def read_truth(labels: pd.Series, positive: str | None) -> np.ndarray:
    """Return the labels of rows that were ranked: 1 and 0 as `read_labels`, or grades of relevance.

    Examples
    --------
    >>> read_truth(pd.Series([0, 2, 1]), None).tolist(), read_truth(pd.Series(["n", "y"]), None).tolist()
    ([0, 2, 1], [0, 1])
    """
    _check_scalars(labels)
    number = pd.api.types.is_numeric_dtype(labels.dtype)
    if positive is None and number and not pd.api.types.is_bool_dtype(labels.dtype):
        _check_present(labels, "a label", "leave such rows out, for instance with --sql")
        return labels.to_numpy()
    return read_labels(labels, positive)


def _clear_positive(values: Any, name: Any) -> Any:
    """Return the positive of at most two labels."""
    ordered = sorted(values.tolist(), key=lambda value: (str(type(value)), value))
    texts = tuple(str(value).lower() for value in ordered)
    is_text = any(isinstance(value, str) for value in ordered)
    if len(ordered) == 2 and is_text and texts not in CLEAR_PAIRS:
        raise ValueError(
            f"column {name!r} holds {_some_values(values)}; say with --positive which one counts as "
            "positive"
        )
    return ordered[-1]


def check_identifiers(ids: pd.Series) -> pd.Series:
    """Return identifiers: none missing, each on one row only."""
    _check_present(ids, "an identifier", "every row needs its own")
    repeated = ids.duplicated().to_numpy()
    if repeated.any():
        second = int(np.argmax(repeated))
        first = int(np.argmax((ids == ids.iloc[second]).to_numpy()))
        raise ValueError(
            f"--id: column {ids.name!r} does not identify rows: rows {first + 1} and {second + 1} "
            f"both hold {_short(ids.iloc[second])}"
        )
    return ids


def check_amounts(
    table: pd.DataFrame, name: str, option: str, least: float = -np.inf
) -> np.ndarray:
    """Return finite numbers of at least `least`."""
    amounts = numbers(table, name)
    for what, bad in (
        ("missing", np.isnan(amounts)),
        ("infinite", np.isinf(amounts)),
        ("negative", amounts < least),
    ):
        if bad.any():
            raise ValueError(f"{option}: column {name!r} is {what} in row {np.argmax(bad) + 1}")
    return amounts


def to_periods(times: np.ndarray, period: str) -> np.ndarray:
    """Return the day (or week, ...) of each time, as text.

    Examples
    --------
    >>> to_periods(np.array(["2024-05-31T23:59"], dtype="datetime64[s]"), "month").tolist()
    ['2024-05']
    """
    if times.dtype.kind != "M":
        raise ValueError(f"--per {period}: the column of --time holds numbers, not dates")
    return pd.DatetimeIndex(times).to_period(PERIODS[period]).astype(str).to_numpy(dtype=object)


# -- features --------------------------------------------------------------------------------------


def check_features(X: pd.DataFrame, as_text: Collection[str] = ()) -> list[str]:
    """Refuse columns that no model can use; return warnings about suspicious ones."""
    if X.shape[1] == 0:
        raise ValueError("no column is left to learn from")
    warnings = []
    for position, name in enumerate(X.columns):
        column = X.iloc[:, position]
        check_finite(column)
        if pd.api.types.is_numeric_dtype(column.dtype):
            continue
        if column.dtype.kind in "mM" or isinstance(column.dtype, pd.DatetimeTZDtype):
            raise ValueError(
                f"column {name!r} holds dates or times, which models do not read: name it with "
                "--time, or leave it out with --drop"
            )
        _check_scalars(column)
        if name not in as_text:
            _check_not_half_numbers(column)
            distinct = column.nunique()
            if len(column) >= MANY_ROWS and distinct > MANY_DISTINCT * len(column):
                warnings.append(
                    f"column {name!r} holds {distinct:,} different texts in {len(column):,} rows, as "
                    "names do: if it identifies rows, say so with --id or leave it out with --drop"
                )
    return warnings


def check_finite(column: pd.Series) -> None:
    """Refuse a column with an infinite or huge number, also one that was read as text."""
    if column.dtype.kind == "f":
        check_numbers(column.to_numpy(), str(column.name))
    elif pd.api.types.is_string_dtype(column.dtype):
        infinite = column.isin(INFINITIES).to_numpy()
        check_numbers(np.where(infinite, np.inf, 0.0), str(column.name))


def _check_scalars(column: pd.Series) -> None:
    """Refuse lists, dicts and other objects."""
    if column.dtype != object:
        return
    scalars = (str, bool, int, float, np.number, np.bool_)
    for row, value in enumerate(column):
        if value is not None and not isinstance(value, scalars) and value is not pd.NA:
            raise ValueError(
                f"column {column.name!r} holds a {_kind_of(value)} in row {row + 1}, where models "
                "read numbers and text; leave it out with --drop"
            )


def _kind_of(value: Any) -> str:
    """Return a word for a cell that is neither a number nor text."""
    words = {"ndarray": "list", "bytes": "binary cell", "bytearray": "binary cell"}
    return words.get(type(value).__name__, type(value).__name__)


def _check_not_half_numbers(column: pd.Series) -> None:
    """Refuse a column of numbers that a few texts among them turned into text: rarely meant."""
    numeric = pd.to_numeric(column.dropna(), errors="coerce").notna()
    if not len(numeric) or numeric.mean() <= MAX_SHARE_OF_NUMBERS:
        return
    try:
        numbers(column.to_frame(), str(column.name))
    except ValueError as error:
        advice = "correct it, leave it out with --drop, or say with --text that all of it is text"
        raise ValueError(f"{error}; {advice}") from None


def _check_present(column: pd.Series, what: str, advice: str) -> None:
    missing = column.isna().to_numpy()
    if missing.any():
        rows = f"{missing.sum():,} rows" if missing.sum() > 1 else "one row"
        raise ValueError(
            f"column {column.name!r} lacks {what} in {rows}, the first is row "
            f"{int(np.argmax(missing)) + 1}; {advice}"
        )


def _some_values(values: Any, most: int = 4) -> str:
    return ", ".join([_short(value) for value in values[:most]] + ["..."] * (len(values) > most))


def _join_some(names: Sequence[Any], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(str(name)) for name in names[:most]) + more


def _short(value: Any) -> str:
    value = to_python(value)
    return repr(value if isinstance(value, (bool, int, float)) else str(value)[:40])
