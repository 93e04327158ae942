"""Tables in, one float matrix out: which columns are numbers, which are categories.

Estimators that take categories see their codes (0, 1, ... in the order of the known values, NaN for
missing or never seen). What was learnt is plain data, so a model file can carry it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Columns", "SchemaDifference", "as_frame", "is_table"]


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
class SchemaDifference:
    """How the columns of a table differ from those of training.

    Attributes
    ----------
    missing : tuple of str
        Columns of training that the table does not have.
    extra : tuple of str
        Columns of the table that training did not have.
    retyped : tuple of str
        Columns that held one type of cell in training and hold another now, with both types.

    Examples
    --------
    >>> print(SchemaDifference(("amount",), ("Amount",), ()))
    the columns differ from those of training: missing 'amount'; not in training 'Amount'
    """

    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.retyped)

    def __str__(self) -> str:
        named = {"missing": self.missing, "not in training": self.extra}
        parts = [f"{what} {', '.join(map(repr, names))}" for what, names in named.items() if names]
        return f"the columns differ from those of training: {'; '.join([*parts, *self.retyped])}"


@dataclass(frozen=True)
class Columns:
    """What each column of a training table is.

    Attributes
    ----------
    names : tuple of str
        Column names; `x0`, `x1`, ... when the data had none.
    categories : tuple of (ndarray or None)
        The values of each categorical column (sorted, as read from a table), in the order of their codes;
        None for a column of numbers.
    """

    names: tuple[str, ...]
    categories: tuple[np.ndarray | None, ...]

    @classmethod
    def numeric(cls, n_columns: int) -> Columns:
        """Return the columns of an array without names: all numbers."""
        return cls(tuple(f"x{j}" for j in range(n_columns)), (None,) * n_columns)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Columns:
        """Read from a table which columns are numbers and which are categories.

        Examples
        --------
        >>> import pandas as pd
        >>> columns = Columns.of(pd.DataFrame({"amount": [9.5, None], "country": ["NL", "DE"]}))
        >>> columns.is_category.tolist()
        [False, True]
        """
        categories = tuple(_categories_of(frame.iloc[:, j]) for j in range(frame.shape[1]))
        return cls(tuple(map(str, frame.columns)), categories)

    @classmethod
    def union(cls, parts: Sequence[Columns]) -> Columns:
        """Put together what was read from several parts of one table.

        A column is a category if it is one in any part; its values are those of all parts.

        Examples
        --------
        >>> import pandas as pd
        >>> parts = [Columns.of(pd.DataFrame({"country": [name]})) for name in ("NL", "DE")]
        >>> Columns.union(parts).categories[0].tolist()
        ['DE', 'NL']
        """
        names = parts[0].names
        if any(part.names != names for part in parts):
            raise ValueError("the parts of the table differ in their columns")
        categories = []
        for values in zip(*(part.categories for part in parts), strict=True):
            known = [v.astype(object) for v in values if v is not None]
            categories.append(_sorted_values(pd.unique(np.concatenate(known))) if known else None)
        return cls(names, tuple(categories))

    def extended(self, other: Columns) -> Columns:
        """Append the categories that `other` has more; the known ones keep their codes.

        For going on with a model on a new table. The new values come last, so the values of a column
        are no longer sorted.

        Examples
        --------
        >>> import pandas as pd
        >>> old, new = (Columns.of(pd.DataFrame({"country": v})) for v in (["DE", "NL"], ["BE", "NL"]))
        >>> old.extended(new).categories[0].tolist()
        ['DE', 'NL', 'BE']
        """
        categories = []
        for known, found in zip(self.categories, other.categories, strict=True):
            if known is not None and found is not None:
                found = found.astype(np.str_) if known.dtype.kind == "U" else found
                if known.dtype.kind == "U" or found.dtype.kind != "U":
                    known = np.concatenate((known, found[~np.isin(found, known)]))
            categories.append(known)
        return Columns(self.names, tuple(categories))

    @property
    def is_category(self) -> np.ndarray:
        return np.array([values is not None for values in self.categories], dtype=bool)

    def category_names(self) -> list[str]:
        """Names of the categorical columns."""
        return np.array(self.names, dtype=object)[self.is_category].tolist()

    def matrix(self, frame: pd.DataFrame, *, unseen: float = np.nan) -> np.ndarray:
        """Return `frame` as a float matrix: numbers as they are, categories as codes.

        Categories never seen in training get the code `unseen`.
        """
        dtypes = {frame.iloc[:, j].dtype for j in range(frame.shape[1])}
        dtype = np.float32 if dtypes == {np.dtype(np.float32)} else np.float64
        out = np.empty(frame.shape, dtype=dtype, order="F")
        for j, (name, values) in enumerate(zip(self.names, self.categories, strict=True)):
            column = frame.iloc[:, j]
            if values is None:
                out[:, j] = _numbers(column, name)
            else:
                codes = _codes(column, values, name)
                unknown = np.where(column.isna().to_numpy(dtype=bool), np.nan, unseen)
                out[:, j] = np.where(codes < 0, unknown, codes)
        return out

    def differences(self, frame: pd.DataFrame) -> SchemaDifference:
        """Compare the columns of `frame`, by name, with those of training.

        Examples
        --------
        >>> import pandas as pd
        >>> columns = Columns.of(pd.DataFrame({"amount": [9.5], "country": ["NL"]}))
        >>> columns.differences(pd.DataFrame({"amount": ["much"], "city": ["Delft"]})).missing
        ('country',)
        """
        names = [str(name) for name in frame.columns]
        known = set(self.names)
        retyped = []
        for name, values in zip(self.names, self.categories, strict=True):
            if name in names:
                column = frame.iloc[:, names.index(name)]
                try:
                    _ = _numbers(column, name) if values is None else _codes(column, values, name)
                except ValueError as error:
                    retyped.append(str(error))
        return SchemaDifference(
            tuple(name for name in self.names if name not in names),
            tuple(name for name in dict.fromkeys(names) if name not in known),
            tuple(retyped),
        )


def _categories_of(column: pd.Series) -> np.ndarray | None:
    """Return the sorted category values of a column, or None if it holds numbers."""
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
    """Return category values as one sorted array of a plain dtype (mixed types become text)."""
    types = {type(v) for v in values.tolist()}
    if types <= {float, int} or types <= {bool}:
        return np.sort(np.array(values.tolist()))
    return np.sort(np.array([str(v) for v in values.tolist()], dtype=np.str_))


def _codes(column: pd.Series, values: np.ndarray, name: str) -> np.ndarray:
    """Return the position of each cell in `values`, -1 where missing or unknown."""
    cells: Any = column
    if values.dtype.kind == "U":
        cells = column.astype(object).map(str, na_action="ignore")
    elif isinstance(column.dtype, pd.CategoricalDtype):
        cells = column.astype(object)
    codes = pd.Index(values).get_indexer(pd.Index(cells))
    if len(codes) and (codes < 0).all() and column.notna().any():
        # one new category is no surprise; another type of cell, none of them known, is a mistake
        trained, now = _kind(pd.Index(values).dtype), _kind(column.dtype)
        if trained != now:
            raise ValueError(
                f"column {name!r} held {trained} as categories in training but holds {now} "
                f"(type {column.dtype})"
            )
    return codes


def _kind(dtype: Any) -> str:
    """Return a word for what cells of a type are; those of categories are their values."""
    dtype = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
    if pd.api.types.is_bool_dtype(dtype):
        return "booleans"
    if pd.api.types.is_numeric_dtype(dtype):
        return "numbers"
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return "dates or times"
    return "text"


def _numbers(column: pd.Series, name: str) -> np.ndarray:
    """Return the cells of a numeric column as floats, NaN where missing."""
    try:
        if (
            _kind(column.dtype) == "dates or times"
        ):  # NumPy would take them for counts of a time unit
            raise TypeError("they are dates or times")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"column {name!r} held numbers in training but has cells that are not numbers "
            f"(type {column.dtype}): {error}"
        ) from error
