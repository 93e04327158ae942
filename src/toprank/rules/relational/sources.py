"""Where the rows of a predicate are: in memory, in a Parquet file, or in a DuckDB database file.

A source is plain data without a connection, so whatever holds it can be copied and pickled. It says how
to scan its rows from a connection; names and values of users are always quoted.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    "as_arrow",
    "as_source",
    "connect",
    "describe",
    "parquet_source",
    "readable",
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
    """Parquet files of one table; `where` keeps the rows whose columns have one of the given values."""

    paths: tuple[str, ...]
    where: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def scan(self, connection: Any) -> str:
        """What to write after FROM."""
        rows = f"read_parquet([{', '.join(map(sql_value, self.paths))}])"
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
        query = f"ATTACH IF NOT EXISTS {sql_value(self.path)} AS {alias} (READ_ONLY)"
        with readable(f"the database file {self.path!r}"):
            connection.execute(query)
        return f"{alias}.{quote_identifier(self.table)}"


Source = ArrowSource | ParquetSource | DatabaseSource


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn what DuckDB says of a file that it cannot read into a ValueError of one line."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"{what} cannot be read: {reason}") from error


def connect() -> Any:
    """Open an in-memory DuckDB; what does not fit in memory spills to a folder of temporary files."""
    connection = tables.connect()
    spill = os.path.join(tempfile.gettempdir(), f"toprank-{uuid.uuid4().hex}")
    connection.execute(f"SET temp_directory = {sql_value(spill)}")
    connection.execute("SET preserve_insertion_order = false")
    return connection


def describe(connection: Any, scan: str) -> dict[str, str]:
    """Columns of a scan and their SQL types."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
    return {row[0]: str(row[1]).upper() for row in rows}


def as_source(table: Any, what: str) -> Source:
    """The source of a table in memory, of a Parquet file, or of a folder of Parquet files."""
    if isinstance(table, (ArrowSource, ParquetSource, DatabaseSource)):
        return table
    if isinstance(table, (str, Path)):
        return parquet_source(Path(table), what)
    return ArrowSource(as_arrow(table, what))


def parquet_source(path: Path, what: str) -> ParquetSource:
    """The rows of a Parquet file, or of all Parquet files below a folder."""
    files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{what}: there is no Parquet file in {str(path)!r}")
    if not files[0].is_file():
        raise ValueError(f"{what}: there is no file {str(path)!r}")
    return ParquetSource(tuple(str(file.resolve()) for file in files))


def as_arrow(table: Any, what: str) -> pa.Table:
    """A pandas, Polars or Arrow table as an Arrow table (NaN counts as missing)."""
    if not is_table(table):
        raise TypeError(
            f"{what} must be a pandas, Polars or Arrow table, not {type(table).__name__}"
        )
    package = type(table).__module__.split(".")[0]
    if package == "pyarrow":
        found = table if isinstance(table, pa.Table) else pa.Table.from_batches([table])
    elif package == "polars":
        found = (table.collect() if hasattr(table, "collect") else table).to_arrow()
    else:
        try:
            found = pa.Table.from_pandas(_plain_names(as_frame(table)), preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
            raise ValueError(f"{what} has a column of mixed kinds: {error}") from None
    _check_column_names(found.column_names, what)
    return found


def _check_column_names(names: Sequence[str], what: str) -> None:
    """Raise a ValueError for names that SQL could not tell apart."""
    counts = Counter(name.lower() for name in names)
    twice = [name for name in names if counts[name.lower()] > 1]
    if twice:
        raise ValueError(
            f"{what} has columns whose names are the same but for capitals: "
            f"{', '.join(map(repr, twice))}; rename them"
        )
    if "" in names:
        raise ValueError(f"{what} has a column without a name; give it one")


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
        if not listed or any(value is None for value in listed):
            raise ValueError(
                f"where: the column {column!r} needs one value or more, got {values!r}"
            )
        found.append((column, tuple(v.item() if hasattr(v, "item") else v for v in listed)))
    return tuple(found)
