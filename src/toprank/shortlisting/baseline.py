"""The usual value of each column: what a row is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from toprank.columns import as_frame, is_table

__all__ = ["Baseline", "column_names"]


def column_names(X: Any) -> list[str]:
    """Names of the columns of a table; x0, x1, ... of an array."""
    if is_table(X):
        return [str(name) for name in as_frame(X).columns]
    n_columns = X.shape[1] if hasattr(X, "shape") else len(X[0])
    return [f"x{j}" for j in range(n_columns)]


@dataclass(frozen=True)
class Baseline:
    """One value for each column: the training median, or the most frequent category."""

    values: list[Any]

    @classmethod
    def of(cls, X: Any, summary: dict[str, Any] | None = None, background: Any = None) -> Baseline:
        """Take usual values from a training summary, else from background rows, else from `X`.

        Examples
        --------
        >>> import numpy as np
        >>> Baseline.of(np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 7.0]])).values
        [2.0, 9.0]
        """
        known = {column["name"]: column for column in (summary or {}).get("columns", [])}
        rows = X if background is None else background
        rows = as_frame(rows) if is_table(rows) else rows
        values = []
        for j, name in enumerate(column_names(X)):
            cells = _cells(rows, j, name)
            value = _from_summary(known[name], cells) if name in known else None
            values.append(_from_cells(cells) if value is None else value)
        return cls(values)

    def fill(self, X: Any, column: int) -> Any:
        """The rows with one column set to its usual value."""
        value = self.values[column]
        if isinstance(X, pd.DataFrame):
            table = X.copy(deep=False)
            table.isetitem(column, _constant(value, X.iloc[:, column]).array)
            return table
        if sparse.issparse(X):
            keep = np.ones(X.shape[1])
            keep[column] = 0.0
            return (X @ sparse.diags(keep)).tocsr()
        filled = np.array(X, copy=True)
        filled[:, column] = np.nan if value is None else value
        return filled


def _cells(rows: Any, j: int, name: str) -> pd.Series:
    if isinstance(rows, pd.DataFrame):
        names = [str(c) for c in rows.columns]
        return rows.iloc[:, names.index(name) if name in names else j]
    if sparse.issparse(rows):
        return pd.Series(rows[:, [j]].toarray().ravel())
    return pd.Series(np.asarray(rows)[:, j])


def _from_summary(column: dict[str, Any], cells: pd.Series) -> Any:
    """The usual value by a summary; None where it has none that these cells could hold."""
    if column["kind"] == "number":
        quantiles = column["quantiles"]
        return quantiles[len(quantiles) // 2] if quantiles else None
    if not column["shares"]:
        return None
    common = max(column["shares"], key=column["shares"].get)
    possible = cells.cat.categories if isinstance(cells.dtype, pd.CategoricalDtype) else cells
    for value in pd.unique(pd.Series(possible).dropna()):
        if str(value) == common:  # a summary keeps categories as text
            return value
    return common if pd.api.types.is_string_dtype(cells.dtype) else None


def _from_cells(cells: pd.Series) -> Any:
    """The median of numbers and dates (a value that occurs), else the most frequent cell."""
    present = cells.dropna()
    if not len(present):
        return None
    ordered = pd.api.types.is_numeric_dtype(cells.dtype) or cells.dtype.kind in "mM"
    if ordered:
        cells = present.sort_values(kind="stable")
        return _plain(cells.iloc[(len(cells) - 1) // 2])
    return _plain(present.mode().iloc[0])


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _constant(value: Any, like: pd.Series) -> pd.Series:
    """A column of one value, of the type of another where that can hold it."""
    cells = pd.Series([value] * len(like), index=like.index, dtype=object)
    try:
        return cells.astype(like.dtype)
    except (TypeError, ValueError):
        return cells.infer_objects()
