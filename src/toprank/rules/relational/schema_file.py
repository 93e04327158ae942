"""Schema files: what the `schema.json` of a folder of tables says of predicates, types and modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toprank.rules.relational.modes import Mode

__all__ = ["SchemaParts", "read_schema"]


@dataclass(frozen=True)
class SchemaParts:
    """What was declared; what is missing is inferred from the tables.

    Attributes
    ----------
    target : str
    arguments : dict of str to sequence of str
        Argument columns by predicate.
    types : dict of str to sequence of (str or None)
    modes : tuple of Mode
    """

    target: str
    arguments: dict[str, Sequence[str]]
    types: dict[str, Sequence[str | None]]
    modes: tuple[Mode, ...]


def read_schema(schema: Mapping[str, Any]) -> SchemaParts:
    """Read a schema in the shape of the data folders' `schema.json`.

    Modes that do not have as many arguments as the table has columns are left out (some published sets
    declare a list as one argument and store its items as several). Types that are null are taken from
    the modes where these have them.

    Examples
    --------
    >>> parts = read_schema({
    ...     "target_predicate": "active",
    ...     "examples": {"arguments": ["drug"], "argument_types": None, "modes": ["active(+drug)"]},
    ...     "predicates": {"ring": {"arguments": ["arg0", "arg1"], "argument_types": None,
    ...                             "modes": ["ring(+drug,-atoms)", "ring(+drug)"]}},
    ... })
    >>> parts.types["ring"], [str(mode) for mode in parts.modes]
    (['drug', 'atoms'], ['ring(+drug,-atoms)'])
    """
    try:
        target, of_examples = schema["target_predicate"], schema["examples"]
        entries = {target: of_examples, **schema["predicates"]}
        arguments: dict[str, Sequence[str]] = {
            name: list(entry["arguments"]) for name, entry in entries.items()
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            "the schema must have target_predicate, predicates and examples, each with its "
            f"arguments; missing or not readable: {error}"
        ) from None
    types: dict[str, Sequence[str | None]] = {}
    modes: list[Mode] = []
    for name, entry in entries.items():
        own = [Mode.of_text(text) for text in entry.get("modes") or ()]
        own = [mode for mode in own if len(mode.arguments) == len(arguments[name])]
        types[name] = _types(entry.get("argument_types"), own, len(arguments[name]))
        if name != target:
            modes += own
    return SchemaParts(target, arguments, types, tuple(modes))


def _types(
    declared: Sequence[str | None] | None, modes: Sequence[Mode], arity: int
) -> list[str | None]:
    """Types of the arguments: the declared ones, else those that the first modes name."""
    types: list[str | None] = list(declared) if declared is not None else [None] * arity
    if len(types) != arity:
        raise ValueError(f"{len(types)} types are given for {arity} arguments")
    for mode in modes:
        types = [known or given for known, given in zip(types, mode.types, strict=True)]
    return types
