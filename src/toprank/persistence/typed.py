"""Whether the fields of a record are what its class declares."""

from __future__ import annotations

import dataclasses
import types
import typing
from functools import cache
from typing import Any

import numpy as np

from toprank.persistence.errors import require

__all__ = ["make_record"]

# Fields that may hold more than they declare: ensembles over relational data keep clauses there.
WIDER = {("KeptRound", "rules")}


def make_record(cls: type, fields: dict[str, Any]) -> Any:
    """Make a frozen dataclass from fields of the right names and types.

    Fields that the class gives a default, such as those added since the file was written, may lack.

    Examples
    --------
    >>> from toprank.rule import Literal
    >>> make_record(Literal, {"column": "amount", "operator": ">", "value": 900.0})
    Literal(column='amount', operator='>', value=900.0, or_missing=False)
    """
    name = cls.__name__
    declared = _declared(cls)
    unknown = sorted(set(fields) - set(declared))
    require(not unknown, f"a {name} has unknown fields: {', '.join(unknown)[:80]}")
    for field, (annotation, optional) in declared.items():
        if field not in fields:
            require(optional, f"a {name} has no {field!r}")
        elif (name, field) not in WIDER:
            fits = matches(fields[field], annotation)
            require(fits, f"the {field!r} of a {name} is of the wrong type")
    return cls(**fields)


def matches(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type; what is not understood here passes.

    Examples
    --------
    >>> matches((1.0, None), tuple[float | None, ...]), matches([1.0], tuple[float, ...])
    (True, False)
    """
    if annotation is Any:
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(matches(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _match_items(value, arguments)
    if origin is list:
        return isinstance(value, list) and all(matches(item, arguments[0]) for item in value)
    if origin is not None or not isinstance(annotation, type):
        return annotation is not None or value is None
    if annotation is float:
        return isinstance(value, (int, float, np.integer, np.floating)) and type(value) is not bool
    if annotation is int:
        return isinstance(value, (int, np.integer)) and type(value) is not bool
    if annotation is type(None):
        return value is None
    return isinstance(value, annotation)


def _match_items(value: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return all(matches(item, arguments[0]) for item in value)
    return len(value) == len(arguments) and all(map(matches, value, arguments))


@cache
def _declared(cls: type) -> dict[str, tuple[Any, bool]]:
    """Annotation of each field, and whether it has a default."""
    hints = typing.get_type_hints(cls)
    return {
        field.name: (
            hints[field.name],
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING,
        )
        for field in dataclasses.fields(cls)
        if field.init
    }
