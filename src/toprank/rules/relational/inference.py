"""Types and modes of columns that came without them, inferred from the tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from toprank.rule import quote_identifier
from toprank.rules.relational.background import (
    ArrowSource,
    TableSource,
    connect,
    describe,
    one_line_errors,
)
from toprank.rules.relational.schema import (
    WIDE,
    Declarations,
    Mode,
    Predicate,
    Schema,
    check_modes,
    value_type,
)
from toprank.tables import known_columns

__all__ = ["Column", "complete_schema", "infer_modes", "infer_types"]

MIN_SHARED = 0.5  # a column joins the type that has at least this share of its distinct values
MAX_CONSTANTS = 32  # columns with more distinct values than this get no `#` when modes are inferred

_NUMBER_AT_END = re.compile(r"[_ ]?\d+\Z")


def complete_schema(
    sources: Mapping[str, TableSource], examples: pa.Table, declared: Declarations
) -> Schema:
    """Check what was declared of some tables and infer the rest."""
    _check_names(declared, sources)
    connection = connect()
    try:
        columns: list[Column] = []
        for name, source in {declared.target: ArrowSource(examples), **sources}.items():
            columns += _argument_columns(connection, name, source.scan(connection), declared)
        types = infer_types(connection, columns)
        target, *predicates = _predicates(columns, types)
        given = check_modes(declared.modes, predicates)
        shared = [name for name, count in Counter(types).items() if count > 1]
        modes: list[Mode] = []
        for predicate in predicates:
            own = [mode for mode in given if mode.predicate == predicate.name]
            if not own:
                scan = next(c.scan for c in columns if c.predicate == predicate.name)
                counts = _count_distinct(connection, predicate, scan)
                own = list(infer_modes(predicate, *counts, target.types, shared))
            modes += own
    finally:
        connection.close()
    return Schema(target, tuple(predicates), tuple(modes))


def _check_names(declared: Declarations, sources: Mapping[str, TableSource]) -> None:
    """Refuse a target among the tables, and declarations about tables that are not there."""
    if declared.target in sources:
        raise ValueError(
            f"{declared.target!r} is both the target and a background table; rename one of them "
            "(a table of the target's own facts would give the labels away)"
        )
    known = {declared.target, *sources}
    for what, names in (("arguments", declared.arguments), ("types", declared.types)):
        unknown = sorted(set(names) - known)
        if unknown:
            raise ValueError(
                f"{what} are given for {', '.join(map(repr, unknown))}, but the tables are "
                f"{', '.join(map(repr, sources))} and the target is {declared.target!r}"
            )


# -- types -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One argument of a predicate, where to read it, and its type if that is declared."""

    predicate: str
    name: str
    sql_type: str
    scan: str
    type: str | None

    @property
    def value_type(self) -> str:
        """What the values are."""
        return value_type(self.sql_type) or self.sql_type


def _argument_columns(
    connection: Any, name: str, scan: str, declared: Declarations
) -> list[Column]:
    """Return the argument columns of one table with their declared types."""
    what = f"the table of {name!r}"
    with one_line_errors(what):
        sql_types = describe(connection, scan)
    names = list(declared.arguments.get(name) or sql_types)
    known_columns(names, list(sql_types), what)
    types = declared.types.get(name, [None] * len(names))
    if len(types) != len(names):
        raise ValueError(
            f"{name!r} has {len(names)} columns ({', '.join(names)}), but {len(types)} types "
            "were given"
        )
    return [
        Column(name, column, sql_types[column], scan, given)
        for column, given in zip(names, types, strict=True)
    ]


def _predicates(columns: Sequence[Column], types: Sequence[str]) -> list[Predicate]:
    """Gather columns, in the order of their tables, into predicates."""
    gathered: dict[str, tuple[list[str], list[str]]] = {}
    for column, name in zip(columns, types, strict=True):
        names, of_columns = gathered.setdefault(column.predicate, ([], []))
        names.append(column.name)
        of_columns.append(name)
    return [Predicate(name, tuple(n), tuple(t)) for name, (n, t) in gathered.items()]


def infer_types(connection: Any, columns: Sequence[Column]) -> list[str]:
    """Return the types of columns: those declared, for the others the type whose values they share.

    A column of text joins the type that has most of its distinct values, if that is at least half of
    them; integers are joined only where the names agree too, since small numbers are equal by chance. A
    column that joins no type gets a type of its own, with the name of the column.
    """
    if all(column.type is not None for column in columns):
        return [str(column.type) for column in columns]
    pool = _TypePool(connection)
    for column in columns:
        if column.type is not None:
            pool.add(column, column.type)
    types = [column.type for column in columns]
    untyped = [k for k, name in enumerate(types) if name is None]
    sizes = {k: pool.stage(k, columns[k]) for k in untyped}
    # the largest first: a column of few values then finds the type it is a part of
    for k in sorted(untyped, key=lambda k: (-sizes[k], k)):
        name = pool.best(k, sizes[k], columns[k]) or pool.new_name(columns[k])
        pool.add(columns[k], name)
        types[k] = name
    return [str(name) for name in types]


class _TypePool:
    """The values of each type so far, in tables of a scratch connection."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.members: dict[str, list[Column]] = {}
        connection.execute("CREATE TEMP TABLE typed (type INTEGER, value VARCHAR)")
        connection.execute("CREATE TEMP TABLE untyped (position INTEGER, value VARCHAR)")

    def stage(self, position: int, column: Column) -> int:
        """Write down the distinct values of an untyped column; return how many there are."""
        insert = f"INSERT INTO untyped {_distinct_sql(position, column)}"
        return int(self.connection.execute(insert).fetchone()[0])

    def add(self, column: Column, name: str) -> None:
        """Add a column's values to a type."""
        self.members.setdefault(name, []).append(column)
        number = list(self.members).index(name)
        self.connection.execute(f"INSERT INTO typed {_distinct_sql(number, column)}")

    def best(self, position: int, size: int, column: Column) -> str | None:
        """Return the type that shares most of a staged column's values, or None."""
        allowed = {
            number: name
            for number, (name, members) in enumerate(self.members.items())
            if _may_join(column, name, members)
        }
        if not allowed or not size:
            return None
        shared = self.connection.execute(
            "SELECT type, count(DISTINCT value) FROM typed SEMI JOIN "
            f"(SELECT value FROM untyped WHERE position = {position}) USING (value) "
            f"WHERE type IN ({', '.join(map(str, allowed))}) GROUP BY type "
            "ORDER BY 2 DESC, 1 LIMIT 1"
        ).fetchone()
        if shared is None or shared[1] / size < MIN_SHARED:
            return None
        return allowed[shared[0]]

    def new_name(self, column: Column) -> str:
        """Return a name for a new type: the column's, made longer where it is taken."""
        name = column.name
        if name in self.members:
            name = f"{column.predicate}.{column.name}"
        while name in self.members:
            name += "'"
        return name


def _distinct_sql(number: int, column: Column) -> str:
    """Return SQL of the distinct values of a column, each with a number in front."""
    cell = f"CAST({quote_identifier(column.name)} AS VARCHAR)"
    return f"SELECT DISTINCT {number}, {cell} FROM {column.scan} WHERE {cell} IS NOT NULL"


def _may_join(column: Column, name: str, members: Sequence[Column]) -> bool:
    """Return whether shared values are enough to conclude that a column has a type."""
    if members[0].value_type != column.value_type:
        return False
    if column.value_type == "text":
        return True
    names = {_stem(name), *(_stem(member.name) for member in members)}
    return column.value_type in {"integer", "large integer"} and _stem(column.name) in names


def _stem(name: str) -> str:
    """Return a column's name without a number at its end."""
    return _NUMBER_AT_END.sub("", name).lower()


# -- modes -----------------------------------------------------------------------------------------


def infer_modes(
    predicate: Predicate,
    n_distinct: Mapping[str, int],
    n_facts: int,
    target_types: Collection[str] = (),
    shared_types: Collection[str] = (),
) -> tuple[Mode, ...]:
    """Return modes of a predicate that came without any.

    Each argument in turn is the input and the others are outputs; in a table of more than `WIDE`
    columns only keys and columns of a type that others have too are inputs (all, if there are none). A
    column that looks like a property (at most `MAX_CONSTANTS` distinct values, each in two facts or more
    on average, and not of a type of the target's arguments) may be a constant instead of an output, one
    column at a time.

    Parameters
    ----------
    predicate : Predicate
    n_distinct : mapping of str to int
        Number of distinct values of each column.
    n_facts : int
        Number of rows of the table.
    target_types : collection of str
        The types of the target's arguments: clauses should not name examples.
    shared_types : collection of str
        Types that several columns have.

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
    return tuple(modes)


def _count_distinct(connection: Any, predicate: Predicate, scan: str) -> tuple[dict[str, int], int]:
    """Return the number of distinct values of each column of a predicate, and of its rows."""
    counts = ", ".join(f"count(DISTINCT {quote_identifier(name)})" for name in predicate.columns)
    *distinct, n_rows = connection.execute(f"SELECT {counts}, count(*) FROM {scan}").fetchone()
    return dict(zip(predicate.columns, distinct, strict=True)), n_rows
