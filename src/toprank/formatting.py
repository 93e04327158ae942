"""Plain data and plain text: values that JSON knows, names in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["first_line", "join_names", "to_jsonable", "to_python"]


def to_jsonable(obj: Any) -> Any:
    """Return the same with Python's own types only; NaN, infinity and missing values become None.

    Examples
    --------
    >>> import numpy as np
    >>> to_jsonable({"area": np.float64(0.5), 1: (np.nan, np.arange(2))})
    {'area': 0.5, '1': [None, [0, 1]]}
    """
    if isinstance(obj, Mapping):
        return {str(key): to_jsonable(value) for key, value in obj.items()}
    if isinstance(obj, str):
        return obj.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates
    if isinstance(obj, pd.DataFrame):
        return [to_jsonable(row) for row in obj.to_dict("records")]
    if isinstance(obj, Sequence | np.ndarray | pd.Series | set | frozenset):
        return [to_jsonable(item) for item in (obj.tolist() if hasattr(obj, "tolist") else obj)]
    if isinstance(obj, np.generic):
        return to_jsonable(obj.item())
    if obj is None or obj is pd.NaT or obj is pd.NA:
        return None
    if isinstance(obj, bool | int):
        return obj
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else None
    return to_jsonable(str(obj))


def to_python(value: Any) -> Any:
    """Return a NumPy scalar as Python's own number, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def join_names(names: Sequence[str]) -> str:
    """Return names as a part of a sentence.

    Examples
    --------
    >>> join_names(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def first_line(message: Any) -> str:
    """Return the first line of a message or an error, without what a terminal would act upon.

    Examples
    --------
    >>> first_line(ValueError("no such column\\nat row 3"))
    'no such column'
    """
    line = next(iter(str(message).strip().splitlines()), "")
    return "".join(c if c.isprintable() else "?" for c in line[:300])
