"""Binned columns of a table, and literals over them.

A literal on a binned column (`amount > 900`, `country = 'NL'`) holds in some of its 256 bins and not in
the others, so the search for rules and the scoring of rows never look at the cells again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from toprank.binning import MISSING, N_BINS, Bins
from toprank.columns import Columns
from toprank.parallel import ThreadPool
from toprank.rule import Literal
from toprank.rules._kernels import histograms

__all__ = ["BinnedColumns", "BinnedRows", "boolean_columns"]

COLUMNS_PER_TASK = 4
CELLS_FOR_THREADS = 1_000_000  # threads do not pay below


@dataclass(frozen=True)
class BinnedColumns(Bins):
    """Bins of columns with names: literals become sets of bins, and bins literals.

    Attributes
    ----------
    cuts, is_category, has_missing
        As in :class:`toprank.binning.Bins`.
    columns : Columns
        Names and categories of the columns.
    is_boolean : bool ndarray of shape (n_columns,)
        Columns of numbers that are truth values in the table.
    """

    columns: Columns
    is_boolean: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.columns.names)
        flags = (self.is_category, self.has_missing, self.is_boolean)
        if len(self.cuts) != n or any(flag.shape != (n,) for flag in flags):
            raise ValueError(f"bins and flags are not those of {n} columns")
        if not np.array_equal(self.is_category, self.columns.is_category):
            raise ValueError("the bins have other categorical columns than the table")

    @classmethod
    def named(
        cls, bins: Bins, columns: Columns, is_boolean: np.ndarray | None = None
    ) -> BinnedColumns:
        """Return the bins with the names and categories of their columns."""
        boolean = np.zeros(bins.n_columns, dtype=bool) if is_boolean is None else is_boolean
        learnt = {field.name: getattr(bins, field.name) for field in fields(Bins)}
        return cls(**learnt, columns=columns, is_boolean=boolean)

    def threshold(
        self, column: int, cut: int, operator: str, *, or_missing: bool = False
    ) -> Literal:
        """Return the literal that holds in the bins up to and with `cut` ("<="), or above it (">")."""
        name = self.columns.names[column]
        if self.is_boolean[column]:
            return Literal(name, "=", operator == ">", or_missing)
        return Literal(name, operator, float(self.cuts[column][cut]), or_missing)

    def category(self, column: int, position: int) -> Any:
        """Return the category whose bin is `position`."""
        values = self.columns.categories[column]
        assert values is not None
        return values[int(self.cuts[column][position])].item()

    def members(self, literal: Literal) -> tuple[int, np.ndarray]:
        """Return the column index of a literal, and in which of its 256 bins it holds."""
        if literal.column not in self.columns.names:
            raise ValueError(
                f"the rule names a column the table does not have: {literal.column!r}; "
                f"the table has {', '.join(self.columns.names)}"
            )
        column = self.columns.names.index(literal.column)
        bins = np.arange(N_BINS)
        if literal.operator == "is missing":
            member = bins == MISSING
        elif literal.operator == "is present":
            member = bins != MISSING
        elif self.is_category[column]:
            values = literal.value if isinstance(literal.value, tuple) else (literal.value,)
            inside = [self.category(column, k) in values for k in range(len(self.cuts[column]))]
            member = np.isin(bins, np.flatnonzero(inside))
            if literal.operator in {"!=", "not in"}:
                member = ~member & (bins != MISSING)
        else:
            if self.is_boolean[column]:
                cut, low = 0, literal.value is False
            else:
                cut = int(np.searchsorted(self.cuts[column], float(literal.value)))  # type: ignore[arg-type]
                low = literal.operator == "<="
            member = (bins <= cut if low else bins > cut) & (bins != MISSING)
        if literal.or_missing:
            member[MISSING] = True
        return column, member.astype(np.uint8)


@dataclass(frozen=True)
class BinnedRows:
    """The training rows of a search for rules."""

    bins: BinnedColumns
    codes: np.ndarray  # bytes, of shape (n_columns, n_rows)
    pool: ThreadPool | None = None  # for large tables
    seed: int = 0  # of what a search draws

    def sums(self, values: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the sums of one value a row by column and bin, of shape (n_columns, 256).

        With `rows` (indices), over these rows; `values[k]` then belongs to row `rows[k]`.
        """
        n_columns = len(self.codes)
        sums = np.zeros((n_columns, N_BINS))

        def fill(first: int) -> None:
            last = min(first + COLUMNS_PER_TASK, n_columns)
            histograms(self.codes, rows, values, sums, first, last)

        if self.pool is None or len(values) * n_columns < CELLS_FOR_THREADS:
            histograms(self.codes, rows, values, sums, 0, n_columns)
        else:
            self.pool.map(fill, range(0, n_columns, COLUMNS_PER_TASK))
        return sums


def boolean_columns(frame: pd.DataFrame) -> np.ndarray:
    """Return which columns hold truth values; SQL does not compare those with numbers."""

    def boolean(column: pd.Series) -> bool:
        if pd.api.types.is_bool_dtype(column.dtype):
            return True
        if column.dtype != object:
            return False
        values = column.dropna().unique()
        return len(values) > 0 and all(isinstance(v, (bool, np.bool_)) for v in values)

    return np.array([boolean(frame.iloc[:, j]) for j in range(frame.shape[1])], dtype=bool)
