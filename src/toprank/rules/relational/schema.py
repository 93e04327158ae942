"""Schemas of relational data: predicates, the types of their arguments, and modes.

A mode says how the arguments of a predicate may be used in a clause: `+` takes a variable that the clause
already has (input), `-` a variable that may be new (output), `#` a constant. What is not declared is
inferred from the tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from toprank.rule import quote_identifier
from toprank.rules.relational.background import (
    TableSource,
    connect,
    describe,
    one_line_errors,
    value_type,
)
from toprank.tables import known_columns

MODE_SIGNS = ("+", "-", "#")
WIDE = 4  # tables with more columns than this are mostly properties: fewer modes, fewer joins
MIN_SHARED = 0.5  # a column joins the type that has at least this share of its distinct values
MAX_CONSTANTS = 32  # columns that join others get no `#` for more distinct values than this, but
CONSTANT_FACTS = 5  # where each of them has so many facts on average
HUB_FACTS = 200  # properties whose values have more facts than this on average are no inputs
MIN_ODD_FACTS = 10  # smaller tables say little about the types of their columns

_NUMBER_AT_END = re.compile(r"[_ ]?\d+\Z")
_MODE_TEXT = re.compile(r"\s*(?P<name>.+?)\s*\((?P<arguments>[^()]*)\)\s*\.?\s*\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mode:
    """How one predicate may be used.

    Parameters
    ----------
    predicate : str
    arguments : tuple of str
        One entry for each argument: "+", "-" or "#", followed by the type or by nothing (the type of
        the column then).
    recall : int, optional
        Most facts that one call (one binding of the inputs) adds to a bottom clause; None leaves it to
        the learner.

    Examples
    --------
    >>> mode = Mode("publication", ("-title", "+person"))
    >>> mode.kinds, mode.types
    (('-', '+'), ('title', 'person'))
    >>> print(mode)
    publication(-title,+person)
    """

    predicate: str
    arguments: tuple[str, ...]
    recall: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", tuple(self.arguments))
        for argument in self.arguments:
            if not argument or argument[0] not in MODE_SIGNS:
                raise ValueError(
                    f"the mode of {self.predicate!r} has an argument {argument!r}; each must start "
                    "with + (input), - (output) or # (constant)"
                )
        if self.recall is not None and self.recall < 1:
            raise ValueError(f"the recall of the mode {self} must be at least 1, not {self.recall}")

    @classmethod
    def of_text(cls, text: str, recall: int | None = None) -> Mode:
        """Read a mode as schema files write it.

        Examples
        --------
        >>> Mode.of_text("publication(-title,+person)").kinds
        ('-', '+')
        """
        match = _MODE_TEXT.match(text)
        if match is None:
            raise ValueError(f"cannot read the mode {text!r}; write it as name(+type,-type,#type)")
        arguments = tuple(part.strip() for part in match["arguments"].split(","))
        return cls(match["name"], arguments, recall)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The sign of each argument."""
        return tuple(argument[0] for argument in self.arguments)

    @property
    def types(self) -> tuple[str | None, ...]:
        """The type of each argument, None where the mode does not name it."""
        return tuple(argument[1:] or None for argument in self.arguments)

    def __str__(self) -> str:
        return f"{self.predicate}({','.join(self.arguments)})"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate: the columns of its table and their types.

    Examples
    --------
    >>> Predicate("publication", ("title", "person"), ("title", "person")).arity
    2
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def arity(self) -> int:
        """Number of arguments."""
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class Schema:
    """The target predicate, the background predicates and their modes.

    Examples
    --------
    >>> target = Predicate("good", ("id",), ("item",))
    >>> size = Predicate("size", ("item", "value"), ("item", "size"))
    >>> schema = Schema(target, (size,), (Mode("size", ("+", "#")),))
    >>> schema.columns
    {'good': ('id',), 'size': ('item', 'value')}
    """

    target: Predicate
    predicates: tuple[Predicate, ...]
    modes: tuple[Mode, ...]

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """Columns by predicate, the target's first."""
        return {predicate.name: predicate.columns for predicate in (self.target, *self.predicates)}

    def index(self, name: str) -> int:
        """Position of a background predicate."""
        names = [predicate.name for predicate in self.predicates]
        if name not in names:
            raise ValueError(
                f"there is no background predicate {name!r}; known: {', '.join(map(repr, names))}"
            )
        return names.index(name)


def check_modes(modes: Iterable[Mode], predicates: Sequence[Predicate]) -> tuple[Mode, ...]:
    """Check that modes name known predicates, with as many arguments and the same types."""
    modes = tuple(dict.fromkeys(modes))
    known = {predicate.name: predicate for predicate in predicates}
    for mode in modes:
        if mode.predicate not in known:
            raise ValueError(
                f"the mode {mode} names a predicate without a table; "
                f"known: {', '.join(map(repr, known))}"
            )
        predicate = known[mode.predicate]
        if len(mode.arguments) != predicate.arity:
            raise ValueError(
                f"the mode {mode} has {len(mode.arguments)} arguments, but the table "
                f"{predicate.name!r} has {predicate.arity} columns: {', '.join(predicate.columns)}"
            )
        for given, column, name in zip(mode.types, predicate.columns, predicate.types, strict=True):
            if given is not None and given != name:
                raise ValueError(
                    f"the mode {mode} gives column {column!r} the type {given!r}, but the column "
                    f"has type {name!r}: the two would not join"
                )
    return modes


def check_reachable(schema: Schema) -> None:
    """Refuse a schema in which no mode takes only types that the target's arguments have."""
    given = set(schema.target.types)
    for mode in schema.modes:
        types = schema.predicates[schema.index(mode.predicate)].types
        if {t for t, kind in zip(types, mode.kinds, strict=True) if kind == "+"} <= given:
            return
    raise ValueError(
        f"nothing joins with the arguments of {schema.target.name!r}, whose types are "
        f"{', '.join(schema.target.types)}: the modes are {', '.join(map(str, schema.modes))}. Give "
        "columns that hold the same things the same type"
    )


# -- declarations and schema files -----------------------------------------------------------------


def read_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Read a data folder's `schema.json`: return the arguments of `RelationalData` that it declares.

    Modes that do not have as many arguments as the table has columns are left out (some published sets
    declare a list as one argument and store its items as several). Types that are null are taken from
    the modes where these have them.
    """
    try:
        target = schema["target_predicate"]
        entries = {target: schema["examples"], **schema["predicates"]}
        arguments = {name: list(entry["arguments"]) for name, entry in entries.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            "the schema must have target_predicate, predicates and examples, each with its "
            f"arguments; missing or not readable: {error}"
        ) from None
    types: dict[str, list[str | None]] = {}
    modes: list[Mode] = []
    for name, entry in entries.items():
        arity = len(arguments[name])
        own = [Mode.of_text(text) for text in entry.get("modes") or ()]
        own = [mode for mode in own if len(mode.arguments) == arity]
        given = entry.get("argument_types")
        types[name] = [None] * arity if given is None else list(given)
        if len(types[name]) != arity:
            raise ValueError(f"{len(types[name])} types are given for {arity} arguments")
        for mode in own:
            types[name] = [a or b for a, b in zip(types[name], mode.types, strict=True)]
        if name != target:
            modes += own
    return {"target": target, "arguments": arguments, "types": types, "modes": modes}


# -- inference from the tables -----------------------------------------------------------------------


def complete_schema(
    sources: Mapping[str, TableSource],
    examples: pa.Table,
    target: str,
    arguments: Mapping[str, Sequence[str]],
    types: Mapping[str, Sequence[str | None]],
    modes: Iterable[Mode],
) -> tuple[Schema, tuple[str, ...]]:
    """Check what was declared of some tables and infer the rest; return what looks odd with it."""
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
        notes: list[str] = []
        for predicate in predicates:
            own = [mode for mode in given if mode.predicate == predicate.name]
            if not own:
                counts = _count_distinct(connection, predicate, scans[predicate.name])
                own = infer_modes(predicate, *counts, of_target.types, shared)
                declared = types.get(predicate.name) or [None] * predicate.arity
                notes += _odd_columns(predicate, *counts, declared, shared)
            every += own
    return Schema(of_target, tuple(predicates), tuple(every)), tuple(notes)


def _odd_columns(
    predicate: Predicate,
    n_distinct: Mapping[str, int],
    n_facts: int,
    declared: Sequence[str | None],
    shared: Collection[str],
) -> Iterator[str]:
    """Yield a sentence for each column whose inferred type looks odd."""
    for column, name, given in zip(predicate.columns, predicate.types, declared, strict=True):
        where = f"column {column!r} of table {predicate.name!r}"
        if given is not None or n_facts < MIN_ODD_FACTS:
            continue
        if n_distinct[column] == n_facts and name not in shared:
            yield (
                f"{where} looks like an id (each of its {n_facts:,} values occurs once), but no "
                "other column has its values, so it joins nothing; if it refers to another table, "
                "give both columns one type"
            )
        elif (
            name in shared
            and n_distinct[column] < n_facts / 2
            and not _few(n_distinct[column], n_facts)
        ):
            yield (
                f"{where} has {n_distinct[column]:,} values of the type {name!r}, which other "
                "columns have too: it joins them, and is never compared with a constant; a mode "
                "with # allows that"
            )


def _check_names(target: str, sources: Mapping[str, Any], **declared: Collection[str]) -> None:
    """Refuse a target among the tables, and declarations about tables that are not there."""
    lower = Counter(name.lower() for name in sources)
    alike = sorted(name for name in sources if lower[name.lower()] > 1)
    if alike:
        raise ValueError(
            f"the tables {', '.join(map(repr, alike))} have names that differ only in case: SQL "
            "could not tell them apart; rename them"
        )
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
    for column in names:
        if value_type(sql_types[column]) is None:
            raise ValueError(
                f"{name}.{column} holds {sql_types[column]}, which cannot be the argument of a "
                "predicate; turn it into text or numbers (a list into a table of its items), or "
                "leave the column out of `arguments`"
            )
    return [
        Column(name, column, str(value_type(sql_types[column])), scan, given)
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
    hub (a value of it occurs in more than `HUB_FACTS` facts on average) is no input: it would join
    almost everything with everything. A column that looks like a property (its values occur in two facts or
    more on average, and are not of a type of the target's arguments; if other columns have the type, `_few`
    of them) may be a constant instead of an output, one at a time.
    """
    columns = list(zip(predicate.columns, predicate.types, strict=True))
    properties = [
        k
        for k, (column, name) in enumerate(columns)
        if n_distinct[column] <= n_facts / 2
        and name not in target_types
        and (name not in shared_types or _few(n_distinct[column], n_facts))
    ]
    inputs = list(range(predicate.arity))
    if predicate.arity > WIDE:
        joined = {*target_types, *shared_types}
        inputs = [
            k
            for k, (column, name) in enumerate(columns)
            if 0 < n_distinct[column] == n_facts or name in joined
        ] or inputs
    hubs = [k for k in properties if n_facts > HUB_FACTS * max(n_distinct[predicate.columns[k]], 1)]
    inputs = [k for k in inputs if k not in hubs] or inputs
    modes = []
    for k in inputs:
        for constant in (None, *(p for p in properties if p != k)):
            signs = ["+" if p == k else "#" if p == constant else "-" for p in range(len(columns))]
            arguments = tuple(s + t for s, t in zip(signs, predicate.types, strict=True))
            modes.append(Mode(predicate.name, arguments))
    return modes


def _few(n_distinct: int, n_facts: int) -> bool:
    """Return whether the values of a column that joins others may be constants too."""
    return n_distinct <= MAX_CONSTANTS or n_facts >= CONSTANT_FACTS * n_distinct


def _count_distinct(connection: Any, predicate: Predicate, scan: str) -> tuple[dict[str, int], int]:
    """Return the number of distinct values of each column of a predicate, and of its rows."""
    counts = ", ".join(f"count(DISTINCT {quote_identifier(name)})" for name in predicate.columns)
    *distinct, n_rows = connection.execute(f"SELECT {counts}, count(*) FROM {scan}").fetchone()
    return dict(zip(predicate.columns, distinct, strict=True)), n_rows
