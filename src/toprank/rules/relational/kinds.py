"""What columns hold, and which of them can be compared."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["common_type", "kind_of"]

_KINDS = {
    "text": ("VARCHAR", "ENUM", "UUID", "CHAR", "TEXT"),
    "truth value": ("BOOLEAN",),
    "whole number": (
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
    ),
    "large number": ("UBIGINT", "HUGEINT", "UHUGEINT"),
    "number": ("FLOAT", "DOUBLE", "DECIMAL", "REAL"),
    "date": ("DATE",),
    "time of day": ("TIME", "TIME_NS"),
    "moment": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "moment with a time zone": ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"),
}
_NUMBERS = {"whole number", "large number", "number"}
_WRITTEN_OUT = {"text", "whole number", "large number"}  # 17 and "17" are then the same constant


def kind_of(sql_type: str) -> str | None:
    """What the values of an SQL type are, or None for types that cannot be arguments.

    Examples
    --------
    >>> kind_of("BIGINT"), kind_of("ENUM('a', 'b')"), kind_of("INTEGER[]")
    ('whole number', 'text', None)
    """
    if sql_type.endswith("]"):
        return None
    head = sql_type.split("(")[0].strip().upper()
    return next((kind for kind, names in _KINDS.items() if head in names), None)


def common_type(name: str, places: Sequence[tuple[str, str]]) -> str:
    """SQL type in which all columns of one argument type are compared.

    Whole numbers and text compare as text, whole numbers and others as floats; anything else that is
    mixed does not join.

    Parameters
    ----------
    name : str
        The argument type.
    places : sequence of (place, SQL type)

    Examples
    --------
    >>> common_type("person", [("student.person", "VARCHAR"), ("examples.person", "VARCHAR")])
    'VARCHAR'
    """
    kinds: dict[str, str] = {}
    for place, sql_type in places:
        kind = kind_of(sql_type)
        if kind is None:
            raise ValueError(
                f"{place} holds {sql_type}, which cannot be the argument of a predicate; "
                "turn it into text or numbers, or leave the column out"
            )
        kinds.setdefault(kind, place)
    if len(kinds) == 1:
        return {"whole number": "BIGINT", "number": "DOUBLE", "truth value": "BOOLEAN"}.get(
            next(iter(kinds)), "VARCHAR"
        )
    if set(kinds) <= _WRITTEN_OUT:
        return "VARCHAR"
    if set(kinds) <= _NUMBERS:
        return "DOUBLE"
    shown = " but ".join(f"{place} holds {kind}" for kind, place in kinds.items())
    raise ValueError(
        f"the arguments of type {name!r} do not join: {shown}; give the columns different types, "
        "or bring their values to one kind"
    )
