"""Tables in, one float matrix out: which columns are numbers, which are categories.

Estimators that take categories see their codes (0, 1, ... in the sorted order of the values, NaN for
missing or never seen). What was learnt is plain data, so a model file can carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Columns", "as_frame", "is_table"]


def is_table(X: Any) -> bool:
    """Whether `X` is a pandas, Polars or Arrow table."""
    return isinstance(X, pd.DataFrame) or type(X).__module__.split(".")[0] in {"polars", "pyarrow"}


def as_frame(X: Any) -> pd.DataFrame:
    """Return a pandas, Polars or Arrow table as a pandas frame (copying no numbers if it can).

    Examples
    --------
    >>> import pyarrow as pa
    >>> as_frame(pa.table({"amount": [1.0, 2.0]})).columns.tolist()
    ['amount']
    """
    if isinstance(X, pd.DataFrame):
        return X
    package = type(X).__module__.split(".")[0]
    if package == "polars":
        frame = X.collect() if hasattr(X, "collect") else X
        return frame.to_pandas()
    if package == "pyarrow":
        return X.to_pandas()
    raise TypeError(f"expected a pandas, Polars or Arrow table, got {type(X).__name__}")


@dataclass(frozen=True)
class Columns:
    """What each column of a training table is.

    Attributes
    ----------
    names : tuple of str
        Column names; `x0`, `x1`, ... when the data had none.
    categories : tuple of (ndarray or None)
        The sorted values of each categorical column, None for a column of numbers.
    """

    names: tuple[str, ...]
    categories: tuple[np.ndarray | None, ...]

    @classmethod
    def numeric(cls, n_columns: int) -> Columns:
        """Columns of an array without names: all numbers."""
        return cls(tuple(f"x{j}" for j in range(n_columns)), (None,) * n_columns)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Columns:
        """Read the kinds of the columns of `frame`.

        Examples
        --------
        >>> import pandas as pd
        >>> columns = Columns.of(pd.DataFrame({"amount": [9.5, None], "country": ["NL", "DE"]}))
        >>> columns.is_category.tolist()
        [False, True]
        """
        categories = tuple(_categories_of(frame.iloc[:, j]) for j in range(frame.shape[1]))
        return cls(tuple(map(str, frame.columns)), categories)

    @property
    def is_category(self) -> np.ndarray:
        return np.array([values is not None for values in self.categories], dtype=bool)

    def category_names(self) -> list[str]:
        """Names of the categorical columns."""
        return [
            name
            for name, values in zip(self.names, self.categories, strict=True)
            if values is not None
        ]

    def matrix(self, frame: pd.DataFrame, *, unseen: float = np.nan) -> np.ndarray:
        """Return `frame` as a float matrix: numbers as they are, categories as codes.

        Categories never seen in training get the code `unseen`.
        """
        kinds = {frame.iloc[:, j].dtype for j in range(frame.shape[1])}
        dtype = np.float32 if kinds == {np.dtype(np.float32)} else np.float64
        out = np.empty(frame.shape, dtype=dtype, order="F")
        for j, (name, values) in enumerate(zip(self.names, self.categories, strict=True)):
            column = frame.iloc[:, j]
            if values is None:
                out[:, j] = _numbers(column, name)
            else:
                codes = _codes(column, values)
                unknown = np.where(column.isna().to_numpy(dtype=bool), np.nan, unseen)
                out[:, j] = np.where(codes < 0, unknown, codes)
        return out


def _categories_of(column: pd.Series) -> np.ndarray | None:
    """Sorted category values of a column, or None if it holds numbers."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _sorted_values(dtype.categories.to_numpy())
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_numeric_dtype(dtype):
        return None
    if pd.api.types.is_string_dtype(dtype) or dtype.kind == "O":
        values = column.dropna().unique()
        if len(values) and all(isinstance(v, (int, float, np.number)) for v in values):
            return None  # numbers stored as objects
        return _sorted_values(np.asarray(values, dtype=object))
    raise ValueError(
        f"column {column.name!r} has type {dtype}, which is neither numbers nor categories; "
        "turn it into numbers (for a date, say, days since the first one) or drop it"
    )


def _sorted_values(values: np.ndarray) -> np.ndarray:
    """Category values as one sorted array of a plain dtype (mixed kinds become text)."""
    kinds = {type(v).__name__ for v in values.tolist()}
    if kinds <= {"int"} or kinds <= {"float", "int"} or kinds <= {"bool"}:
        return np.sort(np.array(values.tolist()))
    return np.sort(np.array([str(v) for v in values.tolist()], dtype=np.str_))


def _codes(column: pd.Series, values: np.ndarray) -> np.ndarray:
    """Position of each cell in `values`, -1 where missing or unknown."""
    cells: Any = column
    if values.dtype.kind == "U":
        cells = column.astype(object).map(str, na_action="ignore")
    elif isinstance(column.dtype, pd.CategoricalDtype):
        cells = column.astype(object)
    return pd.Index(values).get_indexer(pd.Index(cells))


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    """The cells of a numeric column as floats, NaN where missing."""
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} held numbers in training but has cells that are not numbers "
            f"(type {column.dtype}): {error}"
        ) from None
