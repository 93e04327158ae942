"""Tables that are larger than memory: files or queries, read batch by batch by DuckDB.

A `Source` names the rows. Opened, it gives the same rows in the same order as often as asked, whatever they
are: Parquet is read where it lies, CSV and queries are written once to a temporary Parquet file. DuckDB keeps
to a limit of memory and spills to disk.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from toprank.rule import quote_identifier
from toprank.tables import (
    TableError,
    check_header,
    check_query,
    connect,
    describe,
    known_columns,
    lock,
    scan_of,
    table_errors,
)
from toprank.temporary import to_be_removed

__all__ = ["OpenSource", "Source", "memory_bytes"]

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
DUCKDB_MEMORY = 32 * 10**6  # at least; it spills what is more
_FILES = ("*.parquet", "*.pq", "*.csv", "*.csv.gz", "*.tsv", "*.tsv.gz")


def memory_bytes(memory: int | str | None) -> int | None:
    """Return a size such as "2GB" or "500 MB" as a number of bytes.

    Examples
    --------
    >>> memory_bytes("1.5GB"), memory_bytes(2_000_000)
    (1500000000, 2000000)
    """
    if memory is None or isinstance(memory, int):
        found = memory
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", memory, flags=re.IGNORECASE)
        if match is None:
            raise ValueError(f"memory {memory!r} is no size; write 2GB or 500MB")
        unit = match[2].upper()
        found = int(float(match[1]) * UNITS[f"{unit}B" if unit else ""])
    if found is not None and found <= 0:
        raise ValueError(f"memory must be positive, got {memory!r}")
    return found


@dataclass(frozen=True)
class Source:
    """Rows in files or in the answer of a query, and how much memory may be used to read them.

    Attributes
    ----------
    name : str
        What to call it in messages.
    files : tuple of str
        All of one format; empty for a query.
    sql : str or None
    memory : int
        Bytes that DuckDB may use.
    """

    name: str
    files: tuple[str, ...]
    sql: str | None
    memory: int

    @classmethod
    def of(
        cls, source: Any = None, *, sql: str | None = None, memory: int | str | None = None
    ) -> Source:
        """Name a file, a folder of files (with its subfolders), a pattern, or a query.

        Examples
        --------
        >>> Source.of(sql="SELECT 1 AS a").schema()
        {'a': 'INTEGER'}
        """
        if (source is None) == (sql is None):
            raise TypeError("give either a source (a file, a folder or a pattern) or sql")
        limit = max(memory_bytes(memory) or 2**30, DUCKDB_MEMORY)
        if isinstance(source, Source):
            return source if memory is None else replace(source, memory=limit)
        if sql is not None:
            return cls("the query", (), check_query(sql), limit)
        path = os.fspath(source)
        if os.path.isdir(path):
            inside = glob.escape(path)
            files = sorted(
                file
                for pattern in _FILES
                for file in glob.glob(os.path.join(inside, "**", pattern), recursive=True)
                if not os.path.basename(file).startswith((".", "_"))
            )
            if not files:
                raise TableError(f"{path} holds no Parquet or CSV file")
        else:
            files = sorted(glob.glob(path, recursive=True)) if not os.path.exists(path) else [path]
            if not files:
                raise TableError(f"{path}: no such file, folder or pattern")
        return cls(path, tuple(files), None, limit)

    def schema(self) -> dict[str, str]:
        """Return the columns and DuckDB's names of their types.

        Every part file is looked at: one that cannot be read, or whose columns or types are not those of
        the first, is named.
        """
        if self.sql is not None:
            with self._connection() as connection, table_errors(self.name):
                return describe(connection, f"({self.sql}\n)", self.name)
        first: dict[str, str] = {}
        for file in self.files:
            if os.path.getsize(file) == 0:
                raise TableError(f"{file} is empty")
            check_header(file, file)
            found = self._describe(*scan_of([file]), file)
            if not first:
                first = found
            elif found != first:
                raise TableError(
                    f"{file} differs from {self.files[0]}: {_difference(first, found)}"
                )
        return first

    def distinct(self, column: str, *, most: int = 1_000) -> list[Any]:
        """Return the sorted distinct values of a column, which must not be missing anywhere."""
        known_columns([column], list(self.schema()), self.name)
        name = quote_identifier(column)
        with self._connection() as connection, table_errors(self.name):
            scan, parameters = self._scan()
            query = f"SELECT DISTINCT {name} FROM {scan} LIMIT {most + 1}"
            values = [row[0] for row in connection.execute(query, parameters).fetchall()]
        if not values:
            raise TableError(f"{self.name} has no rows")
        if any(value is None or value != value for value in values):
            raise ValueError(f"column {column!r} of {self.name} has missing values")
        if len(values) > most:
            raise ValueError(f"column {column!r} of {self.name} has more than {most} values")
        return sorted(values)

    @contextmanager
    def opened(
        self, columns: Sequence[str] | None = None, folder: str | None = None
    ) -> Iterator[OpenSource]:
        """Open some columns to be streamed several times; a copy in `folder` is removed at the end.

        Of a Parquet file DuckDB holds a page of each column, which may be the whole row group. Where that is
        too much, some columns after the other are copied to files of small row groups, to be read side by
        side.
        """
        schema = self.schema()
        names = known_columns(list(schema) if columns is None else columns, list(schema), self.name)
        work = tempfile.mkdtemp(prefix="toprank-", dir=folder)
        try:
            with to_be_removed(Path(work)), self._connection(work) as connection:
                scan, parameters = self._scan()
                n_blocks = self._blocks(connection, names)
                if n_blocks:
                    copies = [os.path.join(work, f"columns-{k}.parquet") for k in range(n_blocks)]
                    size = _group_rows(self.memory, len(names))
                    for k, copy in enumerate(copies):
                        start, end = (len(names) * j // n_blocks for j in (k, k + 1))
                        selected = ", ".join(map(quote_identifier, names[start:end]))
                        with table_errors(self.name):
                            connection.execute(
                                f"COPY (SELECT {selected} FROM {scan}) TO '{_quoted(copy)}' "
                                f"(FORMAT parquet, ROW_GROUP_SIZE {size})",
                                parameters,
                            )
                    scans, lists = zip(*(scan_of([copy]) for copy in copies), strict=True)
                    scan = " POSITIONAL JOIN ".join(scans)
                    parameters = [parameter for held in lists for parameter in held]
                types = {name: schema[name] for name in names}
                yield OpenSource(self.name, connection, scan, parameters, types, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _blocks(self, connection: Any, names: Sequence[str]) -> int:
        """Return into how many files, of some columns each, the rows must be copied; 0 if they need not be."""
        if any(Path(file).suffix.lower() not in (".parquet", ".pq") for file in self.files):
            return 1
        if self.sql is not None:
            return 1
        query = (
            "SELECT max(held) FROM (SELECT sum(total_compressed_size + total_uncompressed_size) AS held FROM "
            "parquet_metadata(?) WHERE list_contains(?, path_in_schema) GROUP BY file_name, row_group_id)"
        )
        files = scan_of(self.files)[1]
        with table_errors(self.name):
            held = connection.execute(query, [*files, list(names)]).fetchone()[0] or 0
        return min(-(-2 * held // self.memory), len(names)) if 2 * held > self.memory else 0

    def _scan(self) -> tuple[str, list[Any] | None]:
        return scan_of(self.files) if self.sql is None else (f"({self.sql}\n)", None)

    def _describe(self, scan: str, parameters: list[Any] | None, what: str) -> dict[str, str]:
        with self._connection() as connection, table_errors(what):
            rows = connection.execute(f"DESCRIBE SELECT * FROM {scan}", parameters).fetchall()
        return {row[0]: row[1] for row in rows}

    @contextmanager
    def _connection(self, work: str | None = None) -> Iterator[Any]:
        with connect() as connection:
            connection.execute(f"SET memory_limit = '{self.memory} B'; SET threads = 1")
            connection.execute("SET preserve_insertion_order = true")
            # a row group is then read page by page and not as a whole, twice
            connection.execute("SET disable_parquet_prefetching = true")
            if work is not None:
                connection.execute(f"SET temp_directory = '{_quoted(work)}'")
            if self.sql is not None:
                lock(connection, self.sql, work)
            yield connection


@dataclass(frozen=True)
class OpenSource:
    """Rows that can be streamed again and again, always in the same order."""

    name: str
    connection: Any
    scan: str
    parameters: list[Any] | None
    types: dict[str, str]
    folder: str

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.rows("SELECT count(*)")[0][0])

    def rows(self, select: str, rest: str = "") -> list[tuple[Any, ...]]:
        """Return the answer of a small query ``{select} FROM these rows {rest}``."""
        with table_errors(self.name):
            query = f"{select} FROM {self.scan} {rest}"
            return self.connection.execute(query, self.parameters).fetchall()

    def batches(
        self, n_rows: int = 100_000, columns: Sequence[str] | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield the rows as tables of up to `n_rows`, with all of the columns or some."""
        selected = ", ".join(map(quote_identifier, self.types if columns is None else columns))
        with table_errors(self.name):
            cursor = self.connection.cursor()
            query = f"SELECT {selected} FROM {self.scan}"
            reader = cursor.sql(query, params=self.parameters).to_arrow_reader(n_rows)
            for batch in reader:
                yield batch.to_pandas()


def _difference(first: dict[str, str], found: dict[str, str]) -> str:
    """Say how the columns of one part file differ from those of another."""
    missing = [f"it lacks {name!r}" for name in first if name not in found]
    extra = [f"it also has {name!r}" for name in found if name not in first]
    retyped = [
        f"column {name!r} is {found[name]}, not {first[name]}"
        for name in first
        if name in found and found[name] != first[name]
    ]
    return "; ".join((missing + extra + retyped)[:5]) or "the columns stand in another order"


def _group_rows(memory: int, n_columns: int) -> int:
    """Return how many rows to write as one group, of which DuckDB holds a few copies in its memory."""
    return max(2_048, min(122_880, memory // (8 * 8 * n_columns) // 2_048 * 2_048))


def _quoted(path: str) -> str:
    return path.replace("'", "''")
