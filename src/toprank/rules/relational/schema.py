"""Schemas of relational data: predicates, the types of their arguments, and modes.

A mode says how the arguments of a predicate may be used in a clause: `+` takes a variable that the clause
already has (input), `-` a variable that may be new (output), `#` a constant. What is not declared is
inferred from the tables (`toprank.rules.relational.inference`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "WIDE",
    "Mode",
    "Predicate",
    "Schema",
    "check_modes",
    "check_reachable",
    "common_sql_type",
    "read_schema",
    "value_type",
]

MODE_SIGNS = ("+", "-", "#")
WIDE = 4  # tables with more columns than this are mostly properties: fewer modes, fewer joins

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

    Examples
    --------
    >>> declared = read_schema({
    ...     "target_predicate": "active",
    ...     "examples": {"arguments": ["drug"], "argument_types": None, "modes": ["active(+drug)"]},
    ...     "predicates": {"ring": {"arguments": ["arg0", "arg1"], "argument_types": None,
    ...                             "modes": ["ring(+drug,-atoms)", "ring(+drug)"]}},
    ... })
    >>> declared["types"]["ring"], [str(mode) for mode in declared["modes"]]
    (['drug', 'atoms'], ['ring(+drug,-atoms)'])
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


# -- values of columns -----------------------------------------------------------------------------

_SQL_TYPES = {
    "text": ("VARCHAR", "ENUM", "UUID", "CHAR", "TEXT"),
    "boolean": ("BOOLEAN",),
    "integer": (
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER",
    ),
    "large integer": ("UBIGINT", "HUGEINT", "UHUGEINT"),
    "float": ("FLOAT", "DOUBLE", "DECIMAL", "REAL"),
    "date": ("DATE",),
    "time of day": ("TIME", "TIME_NS"),
    "timestamp": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "timestamp with time zone": ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"),
}  # fmt: skip
_COMPARED_AS = {"integer": "BIGINT", "float": "DOUBLE", "boolean": "BOOLEAN"}  # all others as text


def value_type(sql_type: str) -> str | None:
    """Return what the values of an SQL type are, or None for types that cannot be arguments.

    Examples
    --------
    >>> value_type("BIGINT"), value_type("ENUM('a', 'b')"), value_type("INTEGER[]")
    ('integer', 'text', None)
    """
    if sql_type.endswith("]"):
        return None
    head = sql_type.split("(")[0].strip().upper()
    return next((name for name, heads in _SQL_TYPES.items() if head in heads), None)


def common_sql_type(name: str, columns: Sequence[tuple[str, str]]) -> str:
    """Return the SQL type in which all columns of one argument type are compared.

    `columns` holds pairs of "table.column" and an SQL type. Integers and text compare as text (17 and
    "17" are the same constant), integers and floats as floats; any other mixture does not join.

    Examples
    --------
    >>> common_sql_type("person", [("student.person", "VARCHAR"), ("examples.person", "VARCHAR")])
    'VARCHAR'
    """
    first_column: dict[str, str] = {}
    for column, sql_type in columns:
        values = value_type(sql_type)
        if values is None:
            raise ValueError(
                f"{column} holds {sql_type}, which cannot be the argument of a predicate; "
                "turn it into text or numbers, or leave the column out"
            )
        first_column.setdefault(values, column)
    if len(first_column) == 1:
        return _COMPARED_AS.get(next(iter(first_column)), "VARCHAR")
    if set(first_column) <= {"text", "integer", "large integer"}:
        return "VARCHAR"
    if set(first_column) <= {"integer", "large integer", "float"}:
        return "DOUBLE"
    shown = " but ".join(f"{column} holds {values}" for values, column in first_column.items())
    raise ValueError(
        f"the arguments of type {name!r} do not join: {shown}; give the columns different types, "
        "or convert their values to one type"
    )
