"""Tables in, one float matrix out: which columns are numbers, which are categories, which are dates.

Estimators that take categories see their codes (0, 1, ... in the order of the known values, NaN for
missing or never seen), or a number for each category, such as how often it was there in training. What was
learnt is plain data, so a model file can carry it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from toprank.parsing import date_order, holds_text, parse_numbers, read_dates, truth_of

__all__ = ["Columns", "SchemaDifference", "as_frame", "check_names", "is_table", "is_text"]


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


def check_names(names: Iterable[Any], what: str) -> None:
    """Refuse two columns of one name: nobody could tell which of them is meant.

    Examples
    --------
    >>> check_names(["amount", "target", "target"], "payments.csv")
    Traceback (most recent call last):
    ...
    ValueError: payments.csv has 2 columns named 'target' (columns 2 and 3); rename or drop all but one
    """
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names, start=1):
        places.setdefault(str(name), []).append(place)
    for name, found in places.items():
        if len(found) > 1:
            shown = f"{', '.join(map(str, found[:-1][:8]))} and {found[-1]}"
            raise ValueError(
                f"{what} has {len(found)} columns named {name!r} (columns {shown}); rename or drop all "
                "but one"
            )


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
    numbers : tuple of (ndarray or None)
        For a categorical column that is given as numbers rather than codes: the number of each category,
        such as the weight of the training rows that have it; 0 stands for one never seen. Empty where there is
        no such column.
    dates : tuple of (str or None)
        For a column of dates, which are given as days since 1970, the order of day, month and year where they
        are text (see `date_order`). Empty where there is no such column.
    """

    names: tuple[str, ...]
    categories: tuple[np.ndarray | None, ...]
    numbers: tuple[np.ndarray | None, ...] = ()
    dates: tuple[str | None, ...] = ()

    @classmethod
    def numeric(cls, n_columns: int) -> Columns:
        """Return the columns of an array without names: all numbers."""
        return cls(tuple(f"x{j}" for j in range(n_columns)), (None,) * n_columns)

    @classmethod
    def of(cls, frame: pd.DataFrame, *, dates: bool = False) -> Columns:
        """Read from a table which columns are numbers and which are categories.

        With `dates`, columns of dates, also those written as text, are days since 1970; without, text is
        categories, and dates by their type are refused.

        Examples
        --------
        >>> import pandas as pd
        >>> columns = Columns.of(pd.DataFrame({"amount": [9.5, None], "country": ["NL", "DE"]}))
        >>> columns.is_category.tolist()
        [False, True]
        """
        check_names(frame.columns, "the table")
        cells = [frame.iloc[:, j] for j in range(frame.shape[1])]
        orders = tuple(date_order(column) if dates else None for column in cells)
        categories = tuple(
            _categories_of(column) if order is None else None
            for column, order in zip(cells, orders, strict=True)
        )
        return cls(tuple(map(str, frame.columns)), categories, dates=_or_empty(orders))

    @classmethod
    def union(cls, parts: Sequence[Columns]) -> Columns:
        """Put together what was read from several parts of one table.

        A column is a category if it is one in any part; its values are those of all parts. Of dates the parts
        may allow several orders: then it is the one that some part does not leave open.

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
        orders = zip(*(part.dates or (None,) * len(names) for part in parts), strict=True)
        return cls(names, tuple(categories), dates=_or_empty(tuple(map(_common_order, orders))))

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
                found = _as_text(found) if is_text(known) else found
                if is_text(known) or not is_text(found):
                    more = pd.Index(known).get_indexer(pd.Index(found)) < 0
                    known = np.concatenate((known, found[more]))
            categories.append(known)
        numbers = tuple(
            None
            if number is None or values is None
            else np.pad(number, (0, len(values) - len(number)))
            for number, values in zip(self.numbers, categories[: len(self.numbers)], strict=True)
        )
        return replace(self, categories=tuple(categories), numbers=numbers)

    def with_counts(self, X: np.ndarray, weight: np.ndarray, more_than: int) -> Columns:
        """Learn from training rows, categories as codes, how common the categories of some columns are.

        Columns of more than so many categories are then given as counts: how common a category is, not
        which. Trees that may choose any subset of many categories, most of them rare, find one that fits
        the labels by chance; how common a merchant or a name is, is often what matters.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> frame = pd.DataFrame({"city": ["Delft", "Gent", "Gent"]})
        >>> columns = Columns.of(frame)
        >>> counted = columns.with_counts(columns.matrix(frame), np.ones(3), more_than=1)
        >>> counted.matrix(pd.DataFrame({"city": ["Gent", "Lille", None]})).ravel()
        array([ 2.,  0., nan])
        """
        counts: list[np.ndarray | None] = [None] * len(self.names)
        for j, values in enumerate(self.categories):
            if values is not None and len(values) > more_than:
                known = ~np.isnan(X[:, j])
                counts[j] = np.bincount(X[known, j].astype(np.int64), weight[known], len(values))
        return replace(self, numbers=_or_empty(tuple(counts)))

    def numbers_for_codes(self, X: np.ndarray) -> np.ndarray:
        """Return rows with categories as codes as `matrix` would give them: with numbers for some."""
        if not self.numbers:
            return X
        X = np.array(X)
        for j, number in enumerate(self.numbers):
            if number is not None:
                known = ~np.isnan(X[:, j])
                X[known, j] = number[X[known, j].astype(np.int64)]
        return X

    @property
    def is_category(self) -> np.ndarray:
        """Which columns are codes of categories in the matrix."""
        pairs = zip(self.categories, self.numbers or (None,) * len(self.names), strict=True)
        return np.array([v is not None and c is None for v, c in pairs], dtype=bool)

    def category_names(self) -> list[str]:
        """Names of the categorical columns, those given as numbers among them."""
        pairs = zip(self.names, self.categories, strict=True)
        return [name for name, values in pairs if values is not None]

    def matrix(self, frame: pd.DataFrame, *, unseen: float = np.nan) -> np.ndarray:
        """Return `frame` as a float matrix: numbers as they are, categories as codes or numbers.

        Categories never seen in training get the code `unseen`, or the number 0.
        """
        dtype = np.float32 if set(frame.dtypes) == {np.dtype(np.float32)} else np.float64
        out = np.empty(frame.shape, dtype=dtype, order="F")
        kinds = zip(self.names, self.categories, frame.items(), strict=True)
        for j, (name, values, (_, column)) in enumerate(kinds):
            if values is None:
                out[:, j] = self._numbers(j, column)
            else:
                codes = _codes(column, values, name)
                number = self.numbers[j] if self.numbers else None
                missing = column.isna().to_numpy(dtype=bool)
                unknown = np.where(missing, np.nan, unseen if number is None else 0.0)
                known = codes if number is None else number[codes]
                out[:, j] = np.where(codes < 0, unknown, known)
        return out

    def _numbers(self, j: int, column: pd.Series) -> np.ndarray:
        """Return the cells of a column of numbers or dates as floats."""
        order = self.dates[j] if self.dates else None
        days = None if order is None else read_dates(column, order)
        if days is None and order is not None and holds_text(column) and column.notna().any():
            raise ValueError(
                f"column {self.names[j]!r} held dates in training but has cells that are not dates"
            )
        return _numbers(column, self.names[j]) if days is None else days

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
        for j, (name, values) in enumerate(zip(self.names, self.categories, strict=True)):
            if name in names:
                column = frame.iloc[:, names.index(name)]
                try:
                    _ = self._numbers(j, column) if values is None else _codes(column, values, name)
                except ValueError as error:
                    retyped.append(str(error))
        return SchemaDifference(
            tuple(name for name in self.names if name not in names),
            tuple(name for name in dict.fromkeys(names) if name not in known),
            tuple(retyped),
        )


def _or_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values, or none if all of them are None."""
    return () if all(value is None for value in values) else values


def _common_order(orders: tuple[str | None, ...]) -> str | None:
    """Return the order of dates that suits all parts of a column.

    Where both orders are possible, `parse_dates` puts the month first between slashes and the day elsewhere;
    so the other one is known for sure.
    """
    known = [order for order in orders if order is not None]
    sure = [order for order in known if order.startswith("%d" if "/" in order else "%m")]
    return next(iter([*sure, *known]), None)


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
    return np.sort(_as_text(values))


def _as_text(values: np.ndarray) -> np.ndarray:
    """Return values as text, each as long as it is: one long text must not make all others long."""
    return np.array([str(v) for v in values.tolist()], dtype=object)


def is_text(values: np.ndarray) -> bool:
    """Whether category values are text."""
    return values.dtype.kind in "OU"


def _codes(column: pd.Series, values: np.ndarray, name: str) -> np.ndarray:
    """Return the position of each cell in `values`, -1 where missing or unknown.

    Files write one value in several ways, so cells of another type are matched by what they mean: 7 and
    7.0 with "7" or "007", true with "yes", "0" with the number 0.
    """
    cells = column.astype(object) if isinstance(column.dtype, pd.CategoricalDtype) else column
    order, unique = pd.factorize(cells)
    positions = np.append(_positions(list(unique), values), -1)  # the last for missing cells
    codes = positions[order]
    if len(values) and len(codes) and (codes < 0).all() and column.notna().any():
        # one new category is no surprise; another type of cell, none of them known, is a mistake
        trained, now = _kind(pd.Index(values).dtype), _kind(column.dtype)
        if trained != now:
            raise ValueError(
                f"column {name!r} held {trained} as categories in training but holds {now} "
                f"(type {column.dtype})"
            )
    return codes


def _positions(cells: list[Any], values: np.ndarray) -> np.ndarray:
    """Return the position of each distinct cell in `values`, -1 where it is not one of them."""
    text = is_text(values)
    found = pd.Index(values).get_indexer(pd.Index([str(c) for c in cells] if text else cells))
    unknown = [k for k in np.flatnonzero(found < 0) if isinstance(cells[k], str) != text]
    if unknown:
        meanings: dict[Any, int] = {}
        for position, value in enumerate(values.tolist()):
            for meaning in _meanings(value):
                # what two values could mean says nothing
                meanings[meaning] = -1 if meaning in meanings else position
        for k in unknown:
            found[k] = next((meanings[m] for m in _meanings(cells[k]) if m in meanings), -1)
    return found


def _meanings(cell: Any) -> list[Any]:
    """Return what a cell may stand for: a number, a truth."""
    if isinstance(cell, (bool, np.bool_)):
        return [("truth", bool(cell))]
    try:
        return [("number", float(cell))]
    except (TypeError, ValueError):
        truth = truth_of(cell)
        return [] if truth is None else [("truth", truth)]


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
    """Return the cells of a numeric column as floats, NaN where missing; also those written as text."""
    try:
        # NumPy would take them for counts of a time unit
        if _kind(column.dtype) == "dates or times":
            raise TypeError("they are dates or times")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        written = _numbers_in_text(column)
        if written is not None:
            return written
        raise ValueError(
            f"column {name!r} held numbers in training but has cells that are not numbers "
            f"(type {column.dtype}): {error}"
        ) from error


def _numbers_in_text(column: pd.Series) -> np.ndarray | None:
    """Return the numbers that text stands for, 1 and 0 for yes and no; None if it is something else."""
    parsed = parse_numbers(column)
    if parsed is not None:
        return parsed.values
    order, unique = pd.factorize(column)
    truths = [truth_of(cell) for cell in unique]
    if not truths or None in truths:
        return None
    return np.append(np.array(truths, dtype=np.float64), np.nan)[order]
