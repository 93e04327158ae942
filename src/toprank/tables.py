"""Files and SQL in, tables out: DuckDB's home.

DuckDB runs in memory with Python variables out of reach of SQL and without fetching extensions; every
query has a cursor of its own and is read to the end. Whatever is wrong with a file becomes
a `TableError` of one line. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import glob
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from toprank.columns import as_frame
from toprank.rule import quote_identifier

__all__ = [
    "TableError",
    "atomic_path",
    "connect",
    "known_columns",
    "numbers",
    "quote_identifier",
    "read_table",
    "write_table",
    "write_text",
]

StrPath = str | os.PathLike[str]
_FORMATS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_CSV_OPTIONS = (  # a header, standard quotes, no comments; types judged from all rows
    "header=true, skip=0, sample_size=-1, quote='\"', escape='\"', comment='', "
    "nullstr=['', 'NA', 'NaN', 'nan', 'NULL', 'null']"
)
_SCANS = {
    "csv": f"read_csv(?, {_CSV_OPTIONS})",
    "tsv": f"read_csv(?, {_CSV_OPTIONS}, delim='\t')",
    "parquet": "read_parquet(?)",
}
_RAGGED = "its rows do not all have the same number of cells, or quotes do not match"
_RISKY_START = ("=", "+", "-", "@", "\t", "\r", "\n")
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
) -> pd.DataFrame:
    """Read a file, several files or the answer of a query as a table.

    Parameters
    ----------
    path : path
        A file .csv, .tsv (both also .gz) or .parquet; a pattern such as ``days/*.parquet``, whose
        files are read one after the other; or ``-`` for the standard input (CSV or Parquet).
    columns : sequence of str, optional
        The columns to read, in that order; by default all.
    sql : str, optional
        Instead of a path: a query in DuckDB's SQL, which may read files itself.

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
        return _run(f"({sql.strip().rstrip(';')}\n)", None, "the query", columns)
    if str(path) == "-":
        with _standard_input() as copy:
            return _read_files([copy], _kind_of_content(copy), "standard input", columns)
    files = _files(os.fspath(path))  # type: ignore[arg-type]
    return _read_files(files, _kind_of_name(files[0]), str(path), columns)


def write_table(table: Any, path: StrPath) -> None:
    """Write a table as CSV, TSV or Parquet, by its extension, whole or not at all.

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
    kind = _kind_of_name(os.fspath(path))
    with atomic_path(path) as temporary:
        if kind == "parquet":
            frame.to_parquet(temporary, index=False)
        else:
            _write_text_table(_defused(frame), temporary, "," if kind == "csv" else "\t")


def write_text(text: str, path: StrPath) -> None:
    """Write text as UTF-8, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def atomic_path(path: StrPath) -> Iterator[Path]:
    """Give a temporary path beside `path` that takes its place when the block ends well.

    After any error, an interruption included, the temporary file is removed and `path` is as before.

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


def _files(path: str) -> list[str]:
    """The files that a path or a pattern names; each is there and not empty."""
    if os.path.exists(path):
        files = [path]
    elif glob.has_magic(path):
        files = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
        if not files:
            raise TableError(f"{path}: no file has such a name")
    else:
        raise TableError(f"{path}: no such file")
    for name in files:
        if os.path.isdir(name):
            raise TableError(f"{name} is a folder; for the files in it, write {name}/*.parquet")
        if os.path.getsize(name) == 0:
            raise TableError(f"{name} is empty")
    kinds = {_kind_of_name(name) for name in files}
    if len(kinds) > 1:
        raise TableError(f"{path} names files of several formats: {', '.join(sorted(kinds))}")
    return files


def _kind_of_name(path: str) -> str:
    """The format that an extension stands for."""
    name = Path(path).name.lower()
    packed = name.endswith(".gz")
    kind = _FORMATS.get(Path(name.removesuffix(".gz")).suffix)
    if kind is None or (packed and kind == "parquet"):
        raise TableError(f"{path}: unknown extension; use .csv, .tsv, .csv.gz, .tsv.gz or .parquet")
    return kind


def _kind_of_content(path: str) -> str:
    """The format of a file without an extension."""
    with open(path, "rb") as file:
        start = file.read(4)
    if not start:
        raise TableError("standard input is empty")
    return "parquet" if start == b"PAR1" else "csv"


@contextmanager
def _standard_input() -> Iterator[str]:
    """The standard input as a file."""
    with tempfile.TemporaryDirectory() as folder:
        content = sys.stdin.buffer.read()
        suffix = ".csv.gz" if content[:2] == b"\x1f\x8b" else ""
        copy = Path(folder) / f"input{suffix}"
        copy.write_bytes(content)
        yield str(copy)


def _read_files(
    files: list[str], kind: str, shown: str, columns: Sequence[str] | None
) -> pd.DataFrame:
    """Read files of one format and refuse a table without rows."""
    # DuckDB expands patterns too: escape what is a plain name by now
    table = _run(_SCANS[kind], [[glob.escape(name) for name in files]], shown, columns)
    if kind == "csv" and _is_unsplit(list(table.columns)):
        raise TableError(f"{shown} cannot be read: {_RAGGED}")
    if len(table) == 0:
        raise TableError(f"{shown} has no rows")
    return table


def _run(
    source: str, parameters: list[Any] | None, shown: str, columns: Sequence[str] | None
) -> pd.DataFrame:
    """Select from a scan or a query; turn what DuckDB says into one line."""
    import duckdb

    connection = connect()
    try:
        chosen = "*"
        if columns is not None:
            query = f"DESCRIBE SELECT * FROM {source}"
            known = [row[0] for row in connection.cursor().execute(query, parameters).fetchall()]
            chosen = ", ".join(
                quote_identifier(name) for name in known_columns(columns, known, shown)
            )
        return connection.cursor().execute(f"SELECT {chosen} FROM {source}", parameters).df()
    except (duckdb.Error, UnicodeDecodeError) as error:
        raise TableError(f"{shown} cannot be read: {_reason(error)}") from error
    finally:
        connection.close()


def known_columns(columns: Sequence[str], known: Sequence[str], shown: str) -> list[str]:
    """Return the columns without repetition if all are known; name near ones if not.

    Examples
    --------
    >>> known_columns(["amount"], ["amount", "country"], "payments.csv")
    ['amount']
    """
    for name in columns:
        if name not in known:
            if _is_unsplit(known):
                raise TableError(f"{shown} cannot be read: {_RAGGED}")
            near = get_close_matches(name, known, n=3, cutoff=0.5)
            others = [column for column in known if column.lower() == name.lower()]
            hint = ", ".join(map(repr, others or near or list(known[:8])))
            word = "did you mean" if others or near else "it has"
            more = ", ..." if not (others or near) and len(known) > 8 else ""
            raise TableError(f"{shown} has no column {name!r}; {word} {hint}{more}")
    return list(dict.fromkeys(columns))


def _is_unsplit(names: Sequence[str]) -> bool:
    """Whether DuckDB took whole lines for one column, as it does when their cells differ in number."""
    return len(names) == 1 and re.search(r"[,;\t|]", str(names[0])) is not None


def _reason(error: Exception) -> str:
    """The first telling line of DuckDB's answer, without its advice on SQL options."""
    text = str(error)
    if "not utf-8" in text.lower() or "invalid unicode" in text.lower():
        return "it is not UTF-8 text; save it as UTF-8 first"
    if "when sniffing file" in text:
        return _RAGGED
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    detail = [line for line in lines[1:] if line.startswith("Expected Number of Columns")]
    return ". ".join(lines[:1] + detail) or type(error).__name__


# -- writing --------------------------------------------------------------------------------------


def _defused(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy whose text no spreadsheet takes for a formula, column names included."""
    safe = frame.rename(columns={name: _safe_cell(name) for name in frame.columns})
    for position, dtype in enumerate(frame.dtypes):
        if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_datetime64_any_dtype(dtype):
            continue
        cells = frame.iloc[:, position].astype(object)
        safe.isetitem(position, cells.map(_safe_cell, na_action="ignore").array)
    return safe


def _write_text_table(frame: pd.DataFrame, path: Path, separator: str) -> None:
    """Write CSV; a lone carriage return would end a line for some readers unless text is quoted."""
    texts = frame.select_dtypes(exclude="number")
    cells = (cell for position in range(texts.shape[1]) for cell in texts.iloc[:, position])
    if any(isinstance(cell, str) and "\r" in cell for cell in cells):
        frame.to_csv(path, index=False, sep=separator, quoting=csv.QUOTE_NONNUMERIC)
    else:
        frame.to_csv(path, index=False, sep=separator)


def _safe_cell(cell: Any) -> Any:
    """Text with an apostrophe before it where it could be run."""
    if (
        isinstance(cell, str)
        and cell.startswith(_RISKY_START)
        and not _PLAIN_NUMBER.fullmatch(cell)
    ):
        return "'" + cell
    return cell
