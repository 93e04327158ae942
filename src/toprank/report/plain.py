"""Python's own types only, so that JSON can hold everything."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["plain"]


def plain(thing: Any) -> Any:
    """The same with Python's own types only; what JSON cannot say (NaN, infinity) becomes None."""
    if isinstance(thing, Mapping):
        return {str(key): plain(item) for key, item in thing.items()}
    if isinstance(thing, str):
        # a lone surrogate cannot be written as UTF-8
        return thing.encode("utf-8", "replace").decode("utf-8")
    if isinstance(thing, pd.DataFrame):
        return [plain(row) for row in thing.to_dict("records")]
    if isinstance(thing, Sequence | np.ndarray | pd.Series | set | tuple):
        return [plain(item) for item in (thing.tolist() if hasattr(thing, "tolist") else thing)]
    if isinstance(thing, np.generic):
        return plain(thing.item())
    if thing is None or thing is pd.NaT or thing is pd.NA:
        return None
    if isinstance(thing, bool | int):
        return thing
    if isinstance(thing, float):
        return thing if math.isfinite(thing) else None
    return plain(str(thing))
