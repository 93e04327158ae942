"""Modes: how the arguments of a predicate may be used in a clause.

`+` takes a variable that the clause already binds (input), `-` a variable that may be new (output), `#`
a constant. A mode is data; the text form of schema files is read by `Mode.of_text`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["WIDE", "Mode", "Predicate", "Schema", "check_modes", "infer_modes"]

KINDS = ("+", "-", "#")
WIDE = 4  # tables with more columns than this are mostly properties: fewer modes, fewer joins
MAX_CONSTANTS = 32  # columns with more distinct values than this get no `#` when modes are inferred

_TEXT = re.compile(r"\s*(?P<name>.+?)\s*\((?P<arguments>[^()]*)\)\s*\.?\s*\Z", re.DOTALL)


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
            if not argument or argument[0] not in KINDS:
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
        match = _TEXT.match(text)
        if match is None:
            raise ValueError(f"cannot read the mode {text!r}; write it as name(+type,-type,#type)")
        arguments = tuple(part.strip() for part in match["arguments"].split(","))
        return cls(match["name"], arguments, recall)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(argument[0] for argument in self.arguments)

    @property
    def types(self) -> tuple[str | None, ...]:
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

    @property
    def types(self) -> tuple[str, ...]:
        """Every type of a background argument or of the target, in order of first mention."""
        every = (self.target, *self.predicates)
        return tuple(dict.fromkeys(name for predicate in every for name in predicate.types))

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
    known = {predicate.name: predicate for predicate in predicates}
    checked = []
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
        for given, column, of_column in zip(
            mode.types, predicate.columns, predicate.types, strict=True
        ):
            if given is not None and given != of_column:
                raise ValueError(
                    f"the mode {mode} gives column {column!r} the type {given!r}, but the column "
                    f"has type {of_column!r}: the two would not join"
                )
        checked.append(mode)
    return tuple(dict.fromkeys(checked))


def infer_modes(
    predicate: Predicate,
    distinct: Mapping[str, int],
    n_facts: int,
    named: Collection[str] = (),
    shared: Collection[str] = (),
) -> tuple[Mode, ...]:
    """Modes of a predicate that came without any.

    Each argument in turn is the input and the others are outputs; in a table of more than `WIDE`
    columns only keys and columns of a type that others have too are inputs (all, if there are none). A
    column that looks like a property
    (at most `MAX_CONSTANTS` distinct values, each in two facts or more on average, and not of a type of
    the target's arguments) may be a constant instead of an output, one column at a time.

    Parameters
    ----------
    predicate : Predicate
    distinct : mapping of str to int
        Number of distinct values of each column.
    n_facts : int
        Number of rows of the table.
    named : collection of str
        The types of the target's arguments: clauses should not name examples.
    shared : collection of str
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
    properties = [
        k
        for k, (column, name) in enumerate(zip(predicate.columns, predicate.types, strict=True))
        if distinct[column] <= min(MAX_CONSTANTS, n_facts / 2) and name not in named
    ]
    modes = []
    for given in _inputs(predicate, distinct, n_facts, {*named, *shared}):
        for constant in (None, *(k for k in properties if k != given)):
            kinds = ["+" if k == given else "-" for k in range(predicate.arity)]
            if constant is not None:
                kinds[constant] = "#"
            arguments = tuple(k + t for k, t in zip(kinds, predicate.types, strict=True))
            modes.append(Mode(predicate.name, arguments))
    return tuple(modes)


def _inputs(
    predicate: Predicate, distinct: Mapping[str, int], n_facts: int, joined: Collection[str]
) -> Sequence[int]:
    """Arguments that may be the input of an inferred mode."""
    every = range(predicate.arity)
    if predicate.arity <= WIDE:
        return every
    columns = list(zip(predicate.columns, predicate.types, strict=True))
    keys = [k for k, (column, _) in enumerate(columns) if 0 < distinct[column] == n_facts]
    chosen = [k for k, (_, name) in enumerate(columns) if k in keys or name in joined]
    return chosen or every
