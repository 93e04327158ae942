"""Read CSV, Parquet and SQL with DuckDB; atomic writes.

DuckDB runs in memory; SQL cannot read Python variables, and no extension is installed or loaded. A query is one
SELECT, and reads the files that it names and nothing else. Whatever is wrong with a file becomes a `TableError`
of one line. Files are written completely or not at all.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
import re
import secrets
import stat
import sys
import tempfile
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from toprank.columns import as_frame, check_names
from toprank.rule import quote_identifier, sql_value
from toprank.temporary import to_be_removed

__all__ = [
    "TableError",
    "atomic_path",
    "check_header",
    "check_query",
    "connect",
    "csv_rows",
    "describe",
    "escape_formulas",
    "known_columns",
    "lock",
    "numbers",
    "read_table",
    "scan_of",
    "table_errors",
    "to_csv",
    "write_table",
    "write_text",
]

StrPath = str | os.PathLike[str]
_FORMATS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
# A header, standard quotes, no comments; types judged from all rows. Never booleans, and dates in one form:
# whether "yes" and "no" are alone in a column, or days could be months, differs from file to file.
_CSV_OPTIONS = (
    "header=true, skip=0, sample_size=-1, quote='\"', escape='\"', comment='', "
    "nullstr=['', 'NA', 'NaN', 'nan', 'NULL', 'null'], "
    "auto_type_candidates=['BIGINT', 'DOUBLE', 'TIME', 'DATE', 'TIMESTAMP', 'VARCHAR'], "
    "dateformat='%Y-%m-%d', timestampformat='%Y-%m-%d %H:%M:%S'"
)
_SCANS = {
    "csv": f"read_csv(?, {_CSV_OPTIONS})",
    "tsv": f"read_csv(?, {_CSV_OPTIONS}, delim='\t')",
    "parquet": "read_parquet(?)",
}
_RAGGED = "its rows do not all have the same number of cells, or quotes do not match"
_FORMULA_START = ("=", "+", "-", "@", "\t", "\r", "\n")
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class TableError(ValueError):
    """A table that cannot be read or written as asked; the message is one line."""


def connect() -> Any:
    """Open an in-memory DuckDB that sees no Python variables and installs no extensions.

    Examples
    --------
    >>> connect().cursor().execute("SELECT 1 + 1").fetchone()
    (2,)
    """
    import duckdb

    return duckdb.connect(
        config={
            "python_enable_replacements": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
    )


def read_table(
    path: StrPath | None = None,
    columns: Sequence[str] | None = None,
    *,
    sql: str | None = None,
    text: Collection[str] = (),
) -> pd.DataFrame:
    """Read a file, several files or the result of a query as a table.

    Parameters
    ----------
    path : path
        A file .csv, .tsv (both also .gz) or .parquet; a pattern such as ``days/*.parquet``, whose
        files are read one after the other; or ``-`` for the standard input (CSV or Parquet).
    columns : sequence of str, optional
        The columns to read, in that order; by default all.
    sql : str, optional
        Instead of a path: one SELECT in DuckDB's SQL. It may read the files that it names, and cannot
        write, attach, install or change anything.
    text : collection of str, optional
        Columns of CSV and TSV files that are read as they are written, whatever they look like.

    Returns
    -------
    table : DataFrame

    Raises
    ------
    TableError
        If there is no such file, it is empty or has no rows, cannot be read, or lacks a column.

    Examples
    --------
    >>> read_table(sql="SELECT 1 AS y, 0.5 AS score").columns.tolist()
    ['y', 'score']
    """
    if (path is None) == (sql is None):
        raise TypeError("read_table takes either a path or sql")
    if sql is not None:
        with connect() as connection:
            return _run(connection, f"({check_query(sql)}\n)", None, "the query", columns, sql)
    if str(path) == "-":
        return _read_stream(sys.stdin.buffer, "standard input", columns, text)
    name = os.fspath(path)  # type: ignore[arg-type]
    if os.path.exists(name) and stat.S_ISFIFO(os.stat(name).st_mode):
        with open(name, "rb") as pipe:
            return _read_stream(pipe, name, columns, text)
    return _read_files(_files(name), str(path), columns, text)


def write_table(table: Any, path: StrPath) -> None:
    """Write a table as CSV, TSV or Parquet, by its extension, completely or not at all.

    In CSV and TSV, text that a spreadsheet would run as a formula (first character ``=``, ``+``,
    ``-``, ``@``, tab or line break) gets a leading apostrophe; numbers, and text that is a
    plain number, stay as they are.

    Parameters
    ----------
    table : pandas, Polars or Arrow table
    path : path
        Ends in .csv, .tsv (both also .gz) or .parquet.

    Raises
    ------
    TableError
        If the extension is unknown or the folder does not exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "alerts.csv"
    ...     write_table(pd.DataFrame({"name": ["=A1", "ann"], "change": [-1, 2]}), path)
    ...     path.read_text().splitlines()
    ['name,change', "'=A1,-1", 'ann,2']
    """
    frame = as_frame(table)
    file_format = _format_of_name(os.fspath(path))
    with atomic_path(path) as temporary:
        if file_format == "parquet":
            frame.to_parquet(temporary, index=False)
        else:
            to_csv(frame, temporary, "," if file_format == "csv" else "\t")


def to_csv(frame: pd.DataFrame, path: Path | None = None, separator: str = ",") -> str | None:
    """Write CSV in which no cell runs as a formula or ends a line; return it where there is no path."""
    safe = escape_formulas(frame)
    text = safe.select_dtypes(exclude="number").to_numpy(dtype=object)
    # a carriage return would end a line for some readers
    returns = any(isinstance(cell, str) and "\r" in cell for cell in text.flat)
    returns |= any("\r" in str(name) for name in safe.columns)
    quoting: Any = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    return safe.to_csv(path, index=False, sep=separator, quoting=quoting, lineterminator="\n")


_CSV_ROW = re.compile(r'(?:[^"\n]|"(?:[^"]|"")*+")*+\n')


def csv_rows(frame: pd.DataFrame) -> list[str]:
    """Return the header and the rows of `to_csv`, each without its end.

    Examples
    --------
    >>> csv_rows(pd.DataFrame({"id": ["=A1", "b\\n=A1"]}))
    ['id', "'=A1", '"b\\n=A1"']
    """
    return [row[:-1] for row in _CSV_ROW.findall(to_csv(frame) or "")]


def write_text(text: str, path: StrPath) -> None:
    """Write text as UTF-8, completely or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def atomic_path(path: StrPath) -> Iterator[Path]:
    """Give a temporary path beside `path` that replaces it when the block ends without an error.

    After any error, an interruption included, the temporary file is removed and `path` is unchanged.

    Parameters
    ----------
    path : path
        A file that may exist already; its folder must.

    Yields
    ------
    temporary : Path
        With the same extensions.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise TableError(f"{path} is not a regular file; choose another name")
    if not target.parent.is_dir():
        raise TableError(f"{path} cannot be written: the folder {target.parent} does not exist")
    temporary = target.with_name(f".{secrets.token_hex(6)}.{target.name}")
    with to_be_removed(temporary):
        try:
            yield temporary
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def numbers(table: pd.DataFrame, column: str) -> np.ndarray:
    """Return a column as floats, NaN where missing; say which cell is not a number.

    Examples
    --------
    >>> numbers(pd.DataFrame({"score": ["1", "2.5"]}), "score").tolist()
    [1.0, 2.5]
    """
    cells = table[column]
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(np.isnan(values) & cells.notna().to_numpy())
    if len(bad):
        raise TableError(
            f"column {column!r} mixes numbers with text: row {bad[0] + 1} holds "
            f"{str(cells.iloc[bad[0]])[:40]!r} where a number is needed"
        )
    return values


# -- reading --------------------------------------------------------------------------------------


def scan_of(files: Sequence[str]) -> tuple[str, list[Any]]:
    """Return DuckDB's scan of files of one format, and its parameters."""
    formats = {_format_of_name(name) for name in files}
    if len(formats) > 1:
        raise TableError(f"files of several formats: {', '.join(sorted(formats))}")
    # DuckDB expands patterns too: escape names that are plain by now
    return _SCANS[formats.pop()], [[glob.escape(name) for name in files]]


@contextmanager
def table_errors(what: str) -> Iterator[None]:
    """Turn DuckDB's errors about `what` into a `TableError` of one line."""
    import duckdb

    try:
        yield
    except (duckdb.Error, UnicodeDecodeError) as error:
        raise TableError(f"{what} cannot be read: {_reason(error)}") from error


def _read_stream(
    stream: BinaryIO, what: str, columns: Sequence[str] | None, text: Collection[str]
) -> pd.DataFrame:
    """Read CSV (perhaps packed) or Parquet from a stream, by way of a file."""
    content = stream.read()
    if not content:
        raise TableError(f"{what} is empty")
    zipped, parquet = content.startswith(b"\x1f\x8b"), content.startswith(b"PAR1")
    suffix = ".csv.gz" if zipped else ".parquet" if parquet else ".csv"
    with tempfile.TemporaryDirectory() as folder, to_be_removed(Path(folder)):
        copy = Path(folder) / f"input{suffix}"
        copy.write_bytes(content)
        return _read_files([str(copy)], what, columns, text)


def check_query(sql: str) -> str:
    """Return a query without its semicolon if it is one SELECT; say what else it is."""
    import duckdb

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise TableError(f"the query cannot be read: {_reason(error)}") from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        found = " and ".join(kinds) or "nothing"
        raise TableError(f"the query must be one SELECT; this is {found}")
    return sql.strip().rstrip(";")


_QUOTED = re.compile(r"""'((?:[^']|'')*)'|"((?:[^"]|"")*)\"""")


def _named_files(sql: str) -> list[str]:
    """Return the names and patterns of files that stand in quotes in a query, and what they match."""
    found: dict[str, None] = {}
    for single, double in _QUOTED.findall(sql):
        name = single.replace("''", "'") or double.replace('""', '"')
        matches = glob.glob(name, recursive=True) if glob.has_magic(name) else []
        if name and "\0" not in name and (matches or os.path.isfile(name)):
            found |= dict.fromkeys([name, *matches])
    return [path for name in found for path in (name, os.path.abspath(name))]


def lock(connection: Any, sql: str, folder: str | None = None) -> None:
    """Let a connection read the files that a query names, use a folder, and nothing else outside of itself."""
    allowed = ", ".join(sql_value(name) for name in _named_files(sql))
    folders = "" if folder is None else sql_value(os.path.join(folder, ""))
    for setting in (
        f"allowed_paths = [{allowed}]", f"allowed_directories = [{folders}]",
        "enable_external_access = false", "lock_configuration = true",
    ):  # fmt: skip
        connection.execute(f"SET {setting}")


def _files(path: str) -> list[str]:
    """Return the files that a path or a pattern names; each exists and is not empty."""
    if os.path.exists(path):
        files = [path]
    elif glob.has_magic(path):
        files = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not files:
            raise TableError(f"{path}: no file matches")
    else:
        raise TableError(f"{path}: no such file")
    for name in files:
        if os.path.isdir(name):
            raise TableError(f"{name} is a folder; for the files in it, write {name}/*.parquet")
        if os.path.getsize(name) == 0:
            raise TableError(f"{name} is empty")
    formats = {_format_of_name(name) for name in files}
    if len(formats) > 1:
        raise TableError(f"{path} names files of several formats: {', '.join(sorted(formats))}")
    return files


def _format_of_name(path: str) -> str:
    """Return the format that an extension stands for."""
    name = Path(path).name.lower()
    found = _FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    if found is None or (found == "parquet" and name.endswith(".gz")):
        raise TableError(f"{path}: unknown extension; use .csv, .tsv, .csv.gz, .tsv.gz or .parquet")
    return found


def _read_files(
    files: list[str], what: str, columns: Sequence[str] | None, text: Collection[str]
) -> pd.DataFrame:
    """Read files of one format and refuse a table without rows."""
    file_format = _format_of_name(files[0])
    scan = _SCANS[file_format]
    # DuckDB expands patterns too: escape names that are plain by now
    parameters: list[Any] = [[glob.escape(name) for name in files]]
    with connect() as connection:  # takes some time to open
        for name in files:
            check_header(name, what, connection)
        if text and file_format != "parquet":
            names = f"(SELECT * FROM {scan[:-1]}, all_varchar=true) LIMIT 0)"
            header = _run(connection, names, parameters, what, None)
            as_text = {name: "VARCHAR" for name in header.columns if name in text}
            if as_text:
                scan = f"{scan[:-1]}, types=?)"
                parameters = [*parameters, as_text]
        table = _run(connection, scan, parameters, what, columns)
    if file_format == "csv" and _is_unsplit(list(table.columns)):
        raise TableError(f"{what} cannot be read: {_RAGGED}")
    if len(table) == 0:
        raise TableError(f"{what} has no rows")
    return table


def check_header(path: str, what: str, connection: Any = None) -> None:
    """Refuse a file with two columns of one name; DuckDB would give one of them another."""
    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    names: list[Any]
    file_format = _format_of_name(path)
    try:
        if file_format == "parquet":
            names = pq.read_schema(path).names
        else:
            first_rows = _CSV_OPTIONS.replace("sample_size=-1", "sample_size=20480")
            sniff = f"SELECT Delimiter FROM sniff_csv(?, {first_rows})"
            with connect() if connection is None else nullcontext(connection) as opened:
                found = opened.execute(sniff, [glob.escape(path)]).fetchone()
            separator = "\t" if file_format == "tsv" else found[0]
            opener: Any = gzip.open if path.lower().endswith(".gz") else open
            with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
                names = next(csv.reader(file, delimiter=separator))
    except (
        duckdb.Error, pa.ArrowException, OSError, EOFError, ValueError, TypeError, csv.Error, zlib.error,
        StopIteration,
    ):  # fmt: skip
        return  # reading the table says what is wrong
    _check_names([name.strip() for name in names if name], what)


def _check_names(names: Sequence[str], what: str) -> None:
    try:
        check_names(names, what)
    except ValueError as error:
        raise TableError(str(error)) from None


def describe(connection: Any, query: str, what: str) -> dict[str, str]:
    """Return the columns of a query and DuckDB's names of their types; refuse two of one name."""
    rows = connection.execute(f"DESCRIBE {query}").fetchall()
    _check_names([row[0] for row in rows], what)
    return {row[0]: row[1] for row in rows}


def _run(
    connection: Any,
    source: str,
    parameters: list[Any] | None,
    what: str,
    columns: Sequence[str] | None,
    sql: str | None = None,
) -> pd.DataFrame:
    """Select from a scan or a query, which may read only what it names; turn DuckDB's errors into one line."""
    import duckdb

    try:
        if sql is not None:
            lock(connection, sql)
            describe(connection, source, what)
        selected = "*"
        if columns is not None:
            query = f"DESCRIBE SELECT * FROM {source}"
            known = [row[0] for row in connection.execute(query, parameters).fetchall()]
            if _is_unsplit(known) and not set(columns) <= set(known):
                raise TableError(f"{what} cannot be read: {_RAGGED}")
            selected = ", ".join(map(quote_identifier, known_columns(columns, known, what)))
        return connection.execute(f"SELECT {selected} FROM {source}", parameters).df()
    except (duckdb.Error, UnicodeDecodeError) as error:
        raise TableError(f"{what} cannot be read: {_reason(error)}") from error


def known_columns(columns: Sequence[str], known: Sequence[str], what: str) -> list[str]:
    """Return the columns without repetition if `what` has them all; otherwise name similar ones.

    Examples
    --------
    >>> known_columns(["amount"], ["amount", "country"], "payments.csv")
    ['amount']
    """
    for name in columns:
        if name not in known:
            same = [column for column in known if column.lower() == name.lower()]
            similar = same or get_close_matches(name, known, n=3, cutoff=0.5)
            shown = ", ".join(map(repr, similar or known[:8]))
            more = ", ..." if not similar and len(known) > 8 else ""
            hint = "did you mean" if similar else "it has"
            raise TableError(f"{what} has no column {name!r}; {hint} {shown}{more}")
    return list(dict.fromkeys(columns))


def _is_unsplit(names: Sequence[str]) -> bool:
    """Return whether DuckDB read whole lines as one column, as it does when rows differ in length."""
    return len(names) == 1 and re.search(r"[,;\t|]", str(names[0])) is not None


def _reason(error: Exception) -> str:
    """Return the first useful line of DuckDB's error, without its advice on SQL options."""
    text = str(error)
    if "not utf-8" in text.lower() or "invalid unicode" in text.lower():
        return "it is not UTF-8 text; save it as UTF-8 first"
    if "when sniffing file" in text:
        return _RAGGED
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    detail = [line for line in lines[1:] if line.startswith("Expected Number of Columns")]
    return ". ".join(lines[:1] + detail) or type(error).__name__


# -- writing --------------------------------------------------------------------------------------


def escape_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy in which no spreadsheet runs text as a formula, column names included.

    Examples
    --------
    >>> escape_formulas(pd.DataFrame({"name": ["=A1", "ann"], "change": [-1, 2]}))["name"].tolist()
    ["'=A1", 'ann']
    """
    safe = frame.rename(columns={name: _escape_cell(name) for name in frame.columns})
    for position, dtype in enumerate(frame.dtypes):
        if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype):
            continue
        cells = frame.iloc[:, position].astype(object)
        safe.isetitem(position, cells.map(_escape_cell, na_action="ignore").array)
    return safe


def _escape_cell(cell: Any) -> Any:
    """Put an apostrophe before text that could be run as a formula."""
    if (
        isinstance(cell, str)
        and cell.startswith(_FORMULA_START)
        and not _PLAIN_NUMBER.fullmatch(cell)
    ):
        return "'" + cell
    return cell
