"""Types and modes of columns that came without them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from toprank.rule import quote_identifier
from toprank.rules.relational.kinds import kind_of
from toprank.rules.relational.modes import Mode, Predicate, Schema, check_modes, infer_modes
from toprank.rules.relational.schema_file import SchemaParts
from toprank.rules.relational.sources import ArrowSource, Source, connect, describe, readable

__all__ = ["Column", "complete_schema", "count_distinct", "infer_types"]

SHARED = 0.5  # a column joins the type that has at least this share of its distinct values
_STEM = re.compile(r"[_ ]?\d+\Z")


@dataclass(frozen=True)
class Column:
    """One argument of a predicate, where to read it, and its type if that is known."""

    predicate: str
    name: str
    sql_type: str
    scan: str
    type: str | None

    @property
    def kind(self) -> str:
        return kind_of(self.sql_type) or self.sql_type


def count_distinct(connection: Any, columns: Sequence[Column]) -> tuple[dict[str, int], int]:
    """Number of distinct values of the columns of one predicate, and of its rows."""
    counts = ", ".join(f"count(DISTINCT {quote_identifier(c.name)})" for c in columns)
    row = connection.execute(f"SELECT {counts}, count(*) FROM {columns[0].scan}").fetchone()
    return dict(zip((c.name for c in columns), row, strict=False)), row[-1]


def infer_types(connection: Any, columns: Sequence[Column]) -> list[str]:
    """Types of columns: those declared, and for the others the type whose values they share.

    A column of text joins the type that has most of its distinct values, if that is at least half of
    them; numbers are joined only where the names agree too, since small numbers meet by chance. A
    column that joins nothing is a type of its own, called as the column.
    """
    if all(column.type is not None for column in columns):
        return [str(column.type) for column in columns]
    pools = _Pools(connection)
    for column in columns:
        if column.type is not None:
            pools.add(column, column.type)
    found: dict[tuple[str, str], str] = {}
    untyped = [column for column in columns if column.type is None]
    sizes = [pools.stage(column) for column in untyped]
    # the largest first: a column of few values then finds the type it is a part of
    for position in sorted(range(len(untyped)), key=lambda k: (-sizes[k], k)):
        column = untyped[position]
        name = pools.best(position, sizes[position], column) or pools.new_name(column)
        pools.add(column, name)
        found[column.predicate, column.name] = name
    return [column.type or found[column.predicate, column.name] for column in columns]


class _Pools:
    """The values of each type so far, in tables of a scratch connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.members: dict[str, list[Column]] = {}
        self.n_staged = 0

    def stage(self, column: Column) -> int:
        """Write the distinct values of an untyped column to a table; return how many there are."""
        table = f"staged_{self.n_staged}"
        self.n_staged += 1
        self.connection.execute(f"CREATE TEMP TABLE {table} AS {_distinct_sql(column)}")
        return int(self.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def add(self, column: Column, name: str) -> None:
        """Add a column's values to a type."""
        if name not in self.members:
            self.members[name] = []
            table = self._table(name)
            self.connection.execute(f"CREATE TEMP TABLE {table} (value VARCHAR)")
        self.members[name].append(column)
        self.connection.execute(f"INSERT INTO {self._table(name)} {_distinct_sql(column)}")

    def best(self, position: int, size: int, column: Column) -> str | None:
        """The type that shares most of a staged column's values, or None."""
        best, best_shared = None, 0.0
        for name, members in self.members.items():
            if not size or members[0].kind != column.kind or not _may_join(column, name, members):
                continue
            shared = self.connection.execute(
                f"SELECT count(*) FROM staged_{position} WHERE value IN "
                f"(SELECT value FROM {self._table(name)})"
            ).fetchone()[0]
            if shared / size > best_shared:
                best, best_shared = name, shared / size
        return best if best_shared >= SHARED else None

    def new_name(self, column: Column) -> str:
        """A name for a new type: the column's, made longer where it is taken."""
        name = column.name
        if name in self.members:
            name = f"{column.predicate}.{column.name}"
        while name in self.members:
            name += "'"
        return name

    def _table(self, name: str) -> str:
        return f"pool_{list(self.members).index(name)}"


def _distinct_sql(column: Column) -> str:
    cell = f"CAST({quote_identifier(column.name)} AS VARCHAR)"
    return f"SELECT DISTINCT {cell} AS value FROM {column.scan} WHERE {cell} IS NOT NULL"


def _may_join(column: Column, name: str, members: Sequence[Column]) -> bool:
    """Whether shared values are enough to think that a column has a type."""
    if column.kind == "text":
        return True
    names = {_stem(name), *(_stem(member.name) for member in members)}
    return column.kind in {"whole number", "large number"} and _stem(column.name) in names


def _stem(name: str) -> str:
    """A column's name without a number at its end."""
    return _STEM.sub("", name).lower()


def _declared(
    given: Mapping[str, Sequence[str | None]] | None, predicate: str, columns: Sequence[str]
) -> list[str | None]:
    """The declared types of a predicate's columns, None where there is none."""
    types = (given or {}).get(predicate)
    if types is None:
        return [None] * len(columns)
    if len(types) != len(columns):
        raise ValueError(
            f"{predicate!r} has {len(columns)} columns ({', '.join(columns)}), but "
            f"{len(types)} types were given"
        )
    return list(types)


def complete_schema(
    sources: Mapping[str, Source], examples: pa.Table, parts: SchemaParts
) -> Schema:
    """Check what was declared and infer the rest."""
    if parts.target in sources:
        raise ValueError(
            f"{parts.target!r} is both the target and a background table; rename one of them "
            "(a table of the target's own facts would give the labels away)"
        )
    _check_names(parts, sources)
    connection = connect()
    try:
        columns: list[Column] = []
        for name, source in {parts.target: ArrowSource(examples), **sources}.items():
            columns += _columns(connection, name, source.scan(connection), parts)
        types = infer_types(connection, columns)
        predicates = _predicates(columns, types)
        declared = check_modes(parts.modes, predicates[1:])
        counted = Counter(types)
        shared = {name for name, count in counted.items() if count > 1}
        modes: list[Mode] = []
        for predicate in predicates[1:]:
            own = [mode for mode in declared if mode.predicate == predicate.name]
            if not own:
                of_table = [c for c in columns if c.predicate == predicate.name]
                counts = count_distinct(connection, of_table)
                own = list(infer_modes(predicate, *counts, predicates[0].types, shared))
            modes += own
    finally:
        connection.close()
    return Schema(predicates[0], tuple(predicates[1:]), tuple(modes))


def _check_names(parts: SchemaParts, sources: Mapping[str, Source]) -> None:
    known = {parts.target, *sources}
    for what, names in (("arguments", parts.arguments), ("types", parts.types)):
        unknown = sorted(set(names) - known)
        if unknown:
            raise ValueError(
                f"{what} are given for {', '.join(map(repr, unknown))}, but the tables are "
                f"{', '.join(map(repr, sources))} and the target is {parts.target!r}"
            )


def _columns(connection: Any, name: str, scan: str, parts: SchemaParts) -> list[Column]:
    """The argument columns of one table with their declared types."""
    with readable(f"the table of {name!r}"):
        sql_types = describe(connection, scan)
    names = list(parts.arguments.get(name) or sql_types)
    unknown = [column for column in names if column not in sql_types]
    if unknown:
        raise ValueError(
            f"the table of {name!r} has no column {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(map(repr, sql_types))}"
        )
    types = _declared(parts.types, name, names)
    return [
        Column(name, column, sql_types[column], scan, declared)
        for column, declared in zip(names, types, strict=True)
    ]


def _predicates(columns: Sequence[Column], types: Sequence[str]) -> list[Predicate]:
    """Columns, in the order of their tables, gathered into predicates."""
    gathered: dict[str, tuple[list[str], list[str]]] = {}
    for column, name in zip(columns, types, strict=True):
        names, of_columns = gathered.setdefault(column.predicate, ([], []))
        names.append(column.name)
        of_columns.append(name)
    return [Predicate(name, tuple(n), tuple(t)) for name, (n, t) in gathered.items()]
