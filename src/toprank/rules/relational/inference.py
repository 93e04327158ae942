"""Types and modes of columns that came without them, inferred from the tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from toprank.rule import quote_identifier
from toprank.rules.relational.background import TableSource, connect, describe, one_line_errors
from toprank.rules.relational.schema import WIDE, Mode, Predicate, Schema, check_modes, value_type
from toprank.tables import known_columns

__all__ = ["complete_schema", "infer_modes", "infer_types"]

MIN_SHARED = 0.5  # a column joins the type that has at least this share of its distinct values
MAX_CONSTANTS = 32  # columns with more distinct values than this get no `#` when modes are inferred

_NUMBER_AT_END = re.compile(r"[_ ]?\d+\Z")


def complete_schema(
    sources: Mapping[str, TableSource],
    examples: pa.Table,
    target: str,
    arguments: Mapping[str, Sequence[str]],
    types: Mapping[str, Sequence[str | None]],
    modes: Iterable[Mode],
) -> Schema:
    """Check what was declared of some tables and infer the rest."""
    _check_names(target, sources, arguments=arguments, types=types)
    with connect() as connection:
        tables = {target: TableSource.of_arrow(examples), **sources}
        scans = {name: source.scan(connection) for name, source in tables.items()}
        columns: list[Column] = []
        for name, scan in scans.items():
            columns += _argument_columns(
                connection, name, scan, arguments.get(name), types.get(name)
            )
        found = infer_types(connection, columns)
        gathered: dict[str, list[tuple[str, str]]] = {}
        for column, of_column in zip(columns, found, strict=True):
            gathered.setdefault(column.predicate, []).append((column.name, of_column))
        of_target, *predicates = (
            Predicate(name, *zip(*pairs, strict=True)) for name, pairs in gathered.items()
        )
        given = check_modes(modes, predicates)
        shared = [name for name, count in Counter(found).items() if count > 1]
        every: list[Mode] = []
        for predicate in predicates:
            own = [mode for mode in given if mode.predicate == predicate.name]
            if not own:
                counts = _count_distinct(connection, predicate, scans[predicate.name])
                own = infer_modes(predicate, *counts, of_target.types, shared)
            every += own
    return Schema(of_target, tuple(predicates), tuple(every))


def _check_names(target: str, sources: Mapping[str, Any], **declared: Collection[str]) -> None:
    """Refuse a target among the tables, and declarations about tables that are not there."""
    if target in sources:
        raise ValueError(
            f"{target!r} is both the target and a background table; rename one of them "
            "(a table of the target's own facts would give the labels away)"
        )
    for what, names in declared.items():
        unknown = sorted(set(names) - {target, *sources})
        if unknown:
            raise ValueError(
                f"{what} are given for {', '.join(map(repr, unknown))}, but the tables are "
                f"{', '.join(map(repr, sources))} and the target is {target!r}"
            )


# -- types -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One argument of a predicate."""

    predicate: str
    name: str
    values: str  # what they are (`value_type`), or the SQL type
    scan: str
    type: str | None  # if it is declared


def _argument_columns(
    connection: Any,
    name: str,
    scan: str,
    arguments: Sequence[str] | None,
    types: Sequence[str | None] | None,
) -> list[Column]:
    """Return the argument columns of one table with their declared types."""
    what = f"the table of {name!r}"
    with one_line_errors(what):
        sql_types = describe(connection, scan)
    names = list(arguments or sql_types)
    known_columns(names, list(sql_types), what)
    types = [None] * len(names) if types is None else types
    if len(types) != len(names):
        raise ValueError(
            f"{name!r} has {len(names)} columns ({', '.join(names)}), but {len(types)} types "
            "were given"
        )
    return [
        Column(name, column, value_type(sql_types[column]) or sql_types[column], scan, given)
        for column, given in zip(names, types, strict=True)
    ]


def infer_types(connection: Any, columns: Sequence[Column]) -> list[str]:
    """Return the types of columns: those declared, for the others the type whose values they share.

    A column of text joins the type that has most of its distinct values, if that is at least half of
    them; integers are joined only where the names agree too, since small numbers are equal by chance. A
    column that joins no type gets a type of its own, with the name of the column.
    """
    types = {k: column.type for k, column in enumerate(columns) if column.type is not None}
    sizes: dict[int, int] = {}
    if len(types) < len(columns):
        connection.execute("CREATE TEMP TABLE cells (position INTEGER, value VARCHAR)")
        for k, column in enumerate(columns):
            cell = f"CAST({quote_identifier(column.name)} AS VARCHAR)"
            values = f"SELECT DISTINCT {k}, {cell} FROM {column.scan} WHERE {cell} IS NOT NULL"
            sizes[k] = connection.execute(f"INSERT INTO cells {values}").fetchone()[0]
    members: dict[str, list[int]] = {}  # the columns of each type
    for k, name in types.items():
        members.setdefault(name, []).append(k)
    # the largest first: a column of few values then finds the type it is a part of
    for k in sorted(sizes.keys() - types.keys(), key=lambda k: (-sizes[k], k)):
        allowed = {
            name: of_type
            for name, of_type in members.items()
            if _may_join(columns[k], name, [columns[m] for m in of_type])
        }
        types[k] = _shared_type(connection, k, sizes[k], allowed) or _new_name(columns[k], members)
        members.setdefault(types[k], []).append(k)
    return [types[k] for k in range(len(columns))]


def _shared_type(
    connection: Any, position: int, size: int, members: Mapping[str, Sequence[int]]
) -> str | None:
    """Return the type whose columns have most of a column's values, or None if it is not enough."""
    if not members or not size:
        return None
    numbered = enumerate(members.values())
    typed = ", ".join(f"({m}, {number})" for number, of_type in numbered for m in of_type)
    best = connection.execute(
        "SELECT type, count(DISTINCT value) FROM cells "
        f"JOIN (VALUES {typed}) AS typed(position, type) USING (position) "
        f"WHERE value IN (SELECT value FROM cells WHERE position = {position}) "
        "GROUP BY type ORDER BY 2 DESC, 1 LIMIT 1"
    ).fetchone()
    return None if best is None or best[1] / size < MIN_SHARED else list(members)[best[0]]


def _new_name(column: Column, taken: Collection[str]) -> str:
    """Return a name for a new type: the column's, made longer where it is taken."""
    name = column.name if column.name not in taken else f"{column.predicate}.{column.name}"
    while name in taken:
        name += "'"
    return name


def _may_join(column: Column, name: str, members: Sequence[Column]) -> bool:
    """Return whether shared values are enough to conclude that a column has a type."""
    if members[0].values != column.values:
        return False
    stems = {_NUMBER_AT_END.sub("", n).lower() for n in (name, *(m.name for m in members))}
    return column.values == "text" or (
        column.values in {"integer", "large integer"}
        and _NUMBER_AT_END.sub("", column.name).lower() in stems
    )


# -- modes -----------------------------------------------------------------------------------------


def infer_modes(
    predicate: Predicate,
    n_distinct: Mapping[str, int],
    n_facts: int,
    target_types: Collection[str] = (),
    shared_types: Collection[str] = (),
) -> list[Mode]:
    """Return modes of a predicate that came without any, from its numbers of distinct values and facts.

    Each argument in turn is the input and the others are outputs; in a table of more than `WIDE`
    columns only keys and columns of a type that others have too are inputs (all, if there are none). A
    column that looks like a property (at most `MAX_CONSTANTS` distinct values, each in two facts or more
    on average, and not of a type of the target's arguments) may be a constant instead of an output, one
    column at a time.

    Examples
    --------
    >>> gender = Predicate("gender", ("person", "value"), ("person", "gender"))
    >>> for mode in infer_modes(gender, {"person": 349, "value": 2}, 349, {"person"}):
    ...     print(mode)
    gender(+person,-gender)
    gender(+person,#gender)
    gender(-person,+gender)
    """
    columns = list(zip(predicate.columns, predicate.types, strict=True))
    properties = [
        k
        for k, (column, name) in enumerate(columns)
        if n_distinct[column] <= min(MAX_CONSTANTS, n_facts / 2) and name not in target_types
    ]
    inputs = list(range(predicate.arity))
    if predicate.arity > WIDE:
        joined = {*target_types, *shared_types}
        inputs = [
            k
            for k, (column, name) in enumerate(columns)
            if 0 < n_distinct[column] == n_facts or name in joined
        ] or inputs
    modes = []
    for k in inputs:
        for constant in (None, *(p for p in properties if p != k)):
            signs = ["+" if p == k else "#" if p == constant else "-" for p in range(len(columns))]
            arguments = tuple(s + t for s, t in zip(signs, predicate.types, strict=True))
            modes.append(Mode(predicate.name, arguments))
    return modes


def _count_distinct(connection: Any, predicate: Predicate, scan: str) -> tuple[dict[str, int], int]:
    """Return the number of distinct values of each column of a predicate, and of its rows."""
    counts = ", ".join(f"count(DISTINCT {quote_identifier(name)})" for name in predicate.columns)
    *distinct, n_rows = connection.execute(f"SELECT {counts}, count(*) FROM {scan}").fetchone()
    return dict(zip(predicate.columns, distinct, strict=True)), n_rows
