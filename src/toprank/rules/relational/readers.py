"""Folders of Parquet files and database files, read as tables, examples and what is declared of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from toprank.rules.relational.schema_file import SchemaParts, read_schema
from toprank.rules.relational.sources import (
    DatabaseSource,
    ParquetSource,
    Source,
    connect,
    describe,
    parquet_source,
    readable,
    where_condition,
)

__all__ = ["Tables", "read_database", "read_folder", "read_plain_folder"]

Condition = tuple[tuple[str, tuple[Any, ...]], ...]
Place = tuple[str, str]  # a table and a column


@dataclass(frozen=True)
class Tables:
    """What there is to learn from.

    Attributes
    ----------
    sources : dict of str to Source
        Background tables by predicate.
    examples : pyarrow.Table
    parts : SchemaParts
    labels : ndarray or None
    extra : DataFrame or None
        Columns of the examples that are no arguments.
    """

    sources: dict[str, Source]
    examples: pa.Table
    parts: SchemaParts
    labels: np.ndarray | None = None
    extra: pd.DataFrame | None = None


# -- folders of Parquet files ----------------------------------------------------------------------


def read_folder(folder: Path, where: Mapping[str, Any] | None) -> Tables:
    """A folder that its `schema.json` describes."""
    schema = json.loads((folder / "schema.json").read_text())
    parts = read_schema(schema)
    files = {name: folder / entry["file"] for name, entry in schema["predicates"].items()}
    return _of_files(files, folder / schema["examples"]["file"], "target", parts, where)


def read_plain_folder(
    folder: Path,
    examples: str,
    label: str | None,
    parts: SchemaParts,
    where: Mapping[str, Any] | None,
) -> Tables:
    """A folder without a `schema.json`: every Parquet file, or folder of them, is a table."""
    files = {
        path.stem if path.is_file() else path.name: path
        for path in sorted(folder.iterdir())
        if path.suffix == ".parquet" or path.is_dir()
    }
    if examples not in files:
        raise ValueError(
            f"{str(folder)!r} has no schema.json that describes its tables, nor a file "
            f"{examples + '.parquet'!r} with the examples; it has the tables "
            f"{', '.join(map(repr, files)) or 'none'}"
        )
    return _of_files(files, files.pop(examples), label, parts, where)


def _of_files(
    files: Mapping[str, Path],
    of_examples: Path,
    label: str | None,
    parts: SchemaParts,
    where: Mapping[str, Any] | None,
) -> Tables:
    condition = where_condition(where)
    connection = connect()
    try:
        every = {"examples": of_examples, **{f"table {n!r}": path for n, path in files.items()}}
        kept = [_kept_rows(connection, path, what, condition) for what, path in every.items()]
        _check_used(condition, [column for source in kept for column, _ in source.where])
        with readable(f"the file of the examples, {str(of_examples)!r},"):
            rows = connection.sql(f"SELECT * FROM {kept[0].scan(connection)}").to_arrow_table()
    finally:
        connection.close()
    return _with_labels(dict(zip(files, kept[1:], strict=True)), rows, label, parts)


def _kept_rows(connection: Any, path: Path, what: str, condition: Condition) -> ParquetSource:
    """A file with the part of a condition that its columns allow."""
    source = parquet_source(path, what)
    if not condition:
        return source
    with readable(f"{what}: {str(path)!r}"):
        columns = describe(connection, source.scan(connection))
    return replace(source, where=tuple(part for part in condition if part[0] in columns))


def _check_used(condition: Condition, used: Sequence[str]) -> None:
    for column, _ in condition:
        if column not in used:
            raise ValueError(f"where: no file has a column {column!r}")


def _with_labels(
    sources: Mapping[str, Source], rows: pa.Table, label: str | None, parts: SchemaParts
) -> Tables:
    """Take the labels, and what else is no argument, out of a table of examples."""
    declared = parts.arguments.get(parts.target)
    labels = None
    if label in rows.column_names and label not in (declared or ()):
        labels = rows.column(label).to_numpy()
        rows = rows.drop_columns([label])
    names = list(rows.column_names if declared is None else declared)
    _check_columns(names, rows.column_names)
    extra = rows.drop_columns(names).to_pandas()
    extra.index = pd.RangeIndex(rows.num_rows)
    return Tables(dict(sources), rows, parts, labels, extra)


def _check_columns(names: Sequence[str], present: Sequence[str]) -> None:
    missing = [name for name in names if name not in present]
    if missing:
        raise ValueError(
            f"the examples have no column {', '.join(map(repr, missing))}; "
            f"they have {', '.join(map(repr, present))}"
        )


# -- database files --------------------------------------------------------------------------------


def read_database(
    path: Path, examples: str, tables: Sequence[str] | None, parts: SchemaParts
) -> Tables:
    """Tables of a DuckDB database file; columns that its foreign keys tie have one type."""
    if not path.is_file():
        raise ValueError(f"there is no database file {str(path)!r}")
    file = str(path.resolve())
    connection = connect()
    try:
        scan = DatabaseSource(file, examples).scan(connection)
        alias = scan.split(".")[0]
        names = _table_names(connection, alias)
        unknown = sorted({examples, *(tables or ())} - set(names))
        if unknown:
            raise ValueError(
                f"{file!r} has no table {', '.join(unknown)}; it has {', '.join(names)}"
            )
        rows = connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
        wanted = tables if tables is not None else [name for name in names if name != examples]
        sources: dict[str, Source] = {name: DatabaseSource(file, name) for name in wanted}
        called = {examples: parts.target, **{name: name for name in wanted}}
        columns = {
            called[name]: list(describe(connection, DatabaseSource(file, name).scan(connection)))
            for name in called
        }
        keys = [
            ((called[a], b), (called[c], d))
            for (a, b), (c, d) in _foreign_keys(connection, alias)
            if a in called and c in called
        ]
    finally:
        connection.close()
    return Tables(sources, rows, replace(parts, types=_tied_types(keys, columns, parts)))


def _table_names(connection: Any, alias: str) -> list[str]:
    query = (
        "SELECT table_name FROM information_schema.tables "
        "WHERE table_catalog = $1 AND table_schema = 'main' ORDER BY 1"
    )
    return [row[0] for row in connection.execute(query, [alias]).fetchall()]


def _foreign_keys(connection: Any, alias: str) -> list[tuple[Place, Place]]:
    """Pairs of columns, the second of which the first refers to."""
    query = (
        "SELECT table_name, constraint_column_names, referenced_table, referenced_column_names "
        "FROM duckdb_constraints() WHERE database_name = $1 AND schema_name = 'main' "
        "AND constraint_type = 'FOREIGN KEY' ORDER BY table_name, constraint_index"
    )
    return [
        ((table, column), (other, referenced))
        for table, columns, other, others in connection.execute(query, [alias]).fetchall()
        for column, referenced in zip(columns, others, strict=True)
    ]


def _tied_types(
    keys: Iterable[tuple[Place, Place]], columns: Mapping[str, Sequence[str]], parts: SchemaParts
) -> dict[str, Sequence[str | None]]:
    """The declared types, and one type for each set of columns that foreign keys tie together.

    A set is called as one of its declared types, or as the column that is referred to.
    """
    arguments = {name: list(parts.arguments.get(name) or columns[name]) for name in columns}
    declared: dict[Place, str | None] = {}
    for name, given in parts.types.items():
        declared.update(
            {(name, c): t for c, t in zip(arguments.get(name, []), given, strict=False)}
        )
    groups: dict[Place, list[Place]] = {}
    for first, second in keys:
        merged = [*groups.get(second, [second]), *groups.get(first, [first])]
        groups.update(dict.fromkeys(merged, merged))
    found: dict[str, Sequence[str | None]] = dict(parts.types)
    for name, own in arguments.items():
        if name in found and len(found[name]) != len(own):
            continue  # refused later, with a message
        types = []
        for column in own:
            group = groups.get((name, column), [])
            known = [declared[place] for place in [(name, column), *group] if declared.get(place)]
            types.append(known[0] if known else ".".join(group[0]) if group else None)
        if any(types):
            found[name] = types
    return found
