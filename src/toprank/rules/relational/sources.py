"""Where the rows of a predicate are: in memory, in a Parquet file, or in a DuckDB database file.

A source is plain data without a connection, so whatever holds it can be copied and pickled. It says how
to scan its rows from a connection; names and values of users are always quoted.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from toprank import tables
from toprank.columns import as_frame, is_table
from toprank.rule import quote_identifier, sql_value

__all__ = [
    "ArrowSource",
    "DatabaseSource",
    "ParquetSource",
    "Source",
    "TimeUpError",
    "as_arrow",
    "as_source",
    "connect",
    "describe",
    "fetch",
    "where_condition",
]


@dataclass(frozen=True, eq=False)
class ArrowSource:
    """A table in memory."""

    table: pa.Table

    def scan(self, connection: Any) -> str:
        """Make the rows visible to a connection; return what to write after FROM."""
        name = f"memory_{uuid.uuid4().hex}"
        connection.register(name, self.table)
        return name


@dataclass(frozen=True)
class ParquetSource:
    """A Parquet file; `where` keeps the rows whose columns have one of the given values."""

    path: str
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def scan(self, connection: Any) -> str:
        """What to write after FROM."""
        rows = f"read_parquet({sql_value(self.path)})"
        if not self.where:
            return rows
        conditions = (
            f"{quote_identifier(column)} IN ({', '.join(sql_value(v) for v in values)})"
            for column, values in self.where
        )
        return f"(SELECT * FROM {rows} WHERE {' AND '.join(conditions)})"


@dataclass(frozen=True)
class DatabaseSource:
    """A table or view of a DuckDB database file, which is opened for reading only."""

    path: str
    table: str

    def scan(self, connection: Any) -> str:
        """Attach the file, if it is not yet, and return what to write after FROM."""
        alias = f"file_{uuid.uuid5(uuid.NAMESPACE_URL, self.path).hex}"
        connection.execute(f"ATTACH IF NOT EXISTS {sql_value(self.path)} AS {alias} (READ_ONLY)")
        return f"{alias}.{quote_identifier(self.table)}"


Source = ArrowSource | ParquetSource | DatabaseSource


def connect() -> Any:
    """Open an in-memory DuckDB; what does not fit in memory spills to a folder of temporary files."""
    connection = tables.connect()
    spill = os.path.join(tempfile.gettempdir(), f"toprank-{uuid.uuid4().hex}")
    connection.execute(f"SET temp_directory = {sql_value(spill)}")
    connection.execute("SET preserve_insertion_order = false")
    return connection


class TimeUpError(Exception):
    """A query was stopped because its time was up."""


def fetch(cursor: Any, sql: str, deadline: float | None = None) -> dict[str, Any]:
    """Run a query and return its columns as arrays.

    Past the deadline (on the clock of `time.monotonic`) the query is stopped and `TimeUpError` raised. DuckDB
    answers an interruption from the keyboard with an error of its own; it is raised as what it is.
    """
    timer = None
    if deadline is not None:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeUpError
        timer = threading.Timer(remaining, cursor.interrupt)
        timer.start()
    try:
        return cursor.execute(sql).fetchnumpy()
    except Exception as error:
        if type(error).__name__ == "InterruptException":
            raise TimeUpError from None
        if type(error) is RuntimeError and "interrupted" in str(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        if timer is not None:
            timer.cancel()


def describe(connection: Any, scan: str) -> dict[str, str]:
    """Columns of a scan and their SQL types."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    return {row[0]: str(row[1]).upper() for row in rows}


def as_source(table: Any, what: str) -> Source:
    """The source of a table in memory, or the path of a Parquet file."""
    if isinstance(table, (ArrowSource, ParquetSource, DatabaseSource)):
        return table
    if isinstance(table, (str, Path)):
        if not Path(table).is_file():
            raise ValueError(f"{what}: there is no file {str(table)!r}")
        return ParquetSource(str(Path(table).resolve()))
    return ArrowSource(as_arrow(table, what))


def as_arrow(table: Any, what: str) -> pa.Table:
    """A pandas, Polars or Arrow table as an Arrow table (NaN counts as missing)."""
    if not is_table(table):
        raise TypeError(
            f"{what} must be a pandas, Polars or Arrow table, not {type(table).__name__}"
        )
    package = type(table).__module__.split(".")[0]
    if package == "pyarrow":
        return table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    if package == "polars":
        frame = table.collect() if hasattr(table, "collect") else table
        return frame.to_arrow()
    try:
        return pa.Table.from_pandas(_plain_names(as_frame(table)), preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        raise ValueError(f"{what} has a column of mixed kinds: {error}") from None


def _plain_names(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with text for column names."""
    if all(isinstance(name, str) for name in frame.columns):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def where_condition(where: Mapping[str, Any] | None) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """A mapping of column to value or values as plain tuples."""
    found = []
    for column, values in (where or {}).items():
        many = isinstance(values, Sequence) and not isinstance(values, str)
        listed = tuple(values) if many or hasattr(values, "tolist") else (values,)
        if not listed:
            raise ValueError(f"no value was given for the column {column!r}")
        found.append((column, tuple(v.item() if hasattr(v, "item") else v for v in listed)))
    return tuple(found)
