"""Columns of a table as small integers: quantile bins of numbers, positions of categories.

One byte a cell. Numbers fall between cut points; a category is its own bin; two bins are set apart:
`MISSING`, and `OTHER` for categories that are rare or were never seen. What was learnt is plain data.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.columns import Columns
from toprank.ranking import RankedList
from toprank.rule import Literal
from toprank.rules._kernels import MISSING, N_BINS, OTHER, fill_bins

__all__ = ["MISSING", "N_BINS", "OTHER", "Bins", "boolean_columns"]

SAMPLE_ROWS = 100_000  # of each class, to place the cut points
CHUNK_ROWS = 8_192


@dataclass(frozen=True)
class Bins:
    """How the columns of a table are binned.

    Attributes
    ----------
    columns : Columns
        Names and categories of the columns.
    cuts : tuple of ndarray
        Of a column of numbers, the ascending cut points: bin k holds the cells in
        (cuts[k - 1], cuts[k]]. Of a categorical column, the category codes that have a bin, ascending.
    is_boolean : ndarray of bool
        Columns of numbers that are truth values in the table.
    """

    columns: Columns
    cuts: tuple[np.ndarray, ...]
    is_boolean: np.ndarray

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        y: np.ndarray,
        sample_weight: np.ndarray | None,
        columns: Columns,
        *,
        max_bins: int = 255,
        is_boolean: np.ndarray | None = None,
        random: np.random.RandomState | None = None,
        map_tasks: Callable[..., Any] = map,
    ) -> Bins:
        """Place the cut points at quantiles of the classes in equal shares.

        Both classes together weigh the same, so that rare positives are resolved as finely as the
        many negatives: with plain quantiles the 492 frauds among 284,807 payments could all fall
        into one bin. Up to 100,000 rows of each class are looked at, drawn at random beyond that.
        """
        rows = _sample_rows(y, random or np.random.RandomState(0))
        labels = y[rows] > 0
        weight = None if sample_weight is None else sample_weight[rows]
        category = columns.is_category

        def place(j: int) -> np.ndarray:
            cells = np.asarray(X[rows, j], dtype=np.float64)
            if category[j]:
                return _category_bins(cells, labels, weight, max_bins)
            return _cut_points(cells, labels, weight, max_bins)

        cuts = tuple(map_tasks(place, range(X.shape[1])))
        boolean = np.zeros(X.shape[1], dtype=bool) if is_boolean is None else is_boolean
        return cls(columns, cuts, boolean)

    def codes(
        self, X: np.ndarray, *, only: np.ndarray | None = None, n_jobs: int = 1
    ) -> np.ndarray:
        """Bins of the cells of a float matrix, as bytes of shape (n_columns, n_rows).

        Parameters
        ----------
        X : float ndarray of shape (n_rows, n_columns)
        only : int ndarray, optional
            The columns to bin (the rows of the answer); all of them by default.
        n_jobs : int, default=1
            Threads.
        """
        chosen = np.arange(len(self.cuts)) if only is None else np.asarray(only, dtype=np.int64)
        tables = np.full((len(chosen), N_BINS), np.inf)
        for row, j in enumerate(chosen):
            tables[row, : len(self.cuts[j])] = self.cuts[j]
        category = self.columns.is_category[chosen]
        codes = np.empty((len(chosen), len(X)), dtype=np.uint8)

        def fill(start: int) -> None:
            block = X[start : start + CHUNK_ROWS]
            block = block if only is None else block[:, chosen]
            cells = np.ascontiguousarray(block.T, dtype=np.float64)
            fill_bins(cells, tables, category, codes, start)

        starts = range(0, len(X), CHUNK_ROWS)
        if n_jobs > 1 and len(starts) > 1:
            with ThreadPoolExecutor(n_jobs) as pool:
                list(pool.map(fill, starts))
        else:
            for start in starts:
                fill(start)
        return codes

    @property
    def n_columns(self) -> int:
        return len(self.cuts)

    @property
    def n_cuts(self) -> np.ndarray:
        """Cut points, or categories with a bin, of each column."""
        return np.array([len(cuts) for cuts in self.cuts], dtype=np.int64)

    # -- bins as literals and back -------------------------------------------------------------------

    def at_most(self, column: int, cut: int, *, or_missing: bool = False) -> Literal:
        """The literal of the bins up to and with `cut`."""
        return self._threshold(column, cut, "<=", False, or_missing)

    def above(self, column: int, cut: int, *, or_missing: bool = False) -> Literal:
        """The literal of the bins beyond `cut`."""
        return self._threshold(column, cut, ">", True, or_missing)

    def _threshold(
        self, column: int, cut: int, operator: str, truth: bool, or_missing: bool
    ) -> Literal:
        name = self.columns.names[column]
        if self.is_boolean[column]:
            return Literal(name, "=", truth, or_missing)
        return Literal(name, operator, float(self.cuts[column][cut]), or_missing)

    def category(self, column: int, position: int) -> Any:
        """The category value whose bin is `position`."""
        values = self.columns.categories[column]
        assert values is not None
        return values[int(self.cuts[column][position])].item()

    def equals(self, column: int, position: int) -> Literal:
        """The literal of one category."""
        return Literal(self.columns.names[column], "=", self.category(column, position))

    def is_missing(self, column: int) -> Literal:
        """The literal of the missing cells."""
        return Literal(self.columns.names[column], "is missing")

    def members(self, literal: Literal) -> tuple[int, np.ndarray]:
        """Column index of a literal over these bins, and which of the 256 bins it holds in."""
        if literal.column not in self.columns.names:
            raise ValueError(
                f"the rule names a column the table does not have: {literal.column!r}; "
                f"the table has {', '.join(self.columns.names)}"
            )
        column = self.columns.names.index(literal.column)
        member = np.zeros(N_BINS, dtype=np.uint8)
        if literal.operator == "is missing":
            member[MISSING] = 1
        elif literal.operator == "is present":
            member[:MISSING] = 1
        elif self.columns.is_category[column]:
            member[:] = self._category_members(column, literal)
        else:
            member[:] = self._number_members(column, literal)
        if literal.or_missing:
            member[MISSING] = 1
        return column, member

    def _number_members(self, column: int, literal: Literal) -> np.ndarray:
        if self.is_boolean[column]:
            cut, low = 0, literal.value is False
        else:
            cut = int(np.searchsorted(self.cuts[column], float(literal.value)))  # type: ignore[arg-type]
            low = literal.operator == "<="
        member = np.arange(N_BINS) <= cut if low else np.arange(N_BINS) > cut
        member[MISSING] = False
        return member

    def _category_members(self, column: int, literal: Literal) -> np.ndarray:
        values = literal.value if isinstance(literal.value, tuple) else (literal.value,)
        inside = [self.category(column, k) in values for k in range(len(self.cuts[column]))]
        member = np.zeros(N_BINS, dtype=bool)
        member[: len(inside)] = inside
        if literal.operator in {"!=", "not in"}:
            member = ~member
            member[MISSING] = False
        return member


def boolean_columns(frame: pd.DataFrame) -> np.ndarray:
    """Which columns hold truth values (SQL does not compare those with numbers)."""

    def boolean(column: pd.Series) -> bool:
        if pd.api.types.is_bool_dtype(column.dtype):
            return True
        if column.dtype != object:
            return False
        values = column.dropna().unique()
        return len(values) > 0 and all(isinstance(v, (bool, np.bool_)) for v in values)

    return np.array([boolean(frame.iloc[:, j]) for j in range(frame.shape[1])], dtype=bool)


def _sample_rows(y: np.ndarray, random: np.random.RandomState) -> Any:
    """Rows that the cut points are read from: all, or as many of each class as are enough."""
    if len(y) <= 2 * SAMPLE_ROWS:
        return slice(None)
    kept = []
    for rows in (np.flatnonzero(y > 0), np.flatnonzero(y <= 0)):
        if len(rows) > SAMPLE_ROWS:
            rows = np.sort(random.choice(rows, SAMPLE_ROWS, replace=False))
        kept.append(rows)
    return np.concatenate(kept)


def _shares(
    cells: np.ndarray, labels: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, ascending, and the share of the classes at or below each, in [0, 1].

    Each class counts one half, whatever its size.
    """
    present = ~np.isnan(cells)
    if not present.any():
        return np.empty(0), np.empty(0)
    weight = None if weight is None else weight[present]
    ranked = RankedList.of(labels[present], cells[present], weight)
    above = np.zeros(ranked.n_groups)
    classes = [ranked.positives, ranked.negatives]
    present_classes = [c for c in classes if c[-1] > 0]
    for cumulative in present_classes:
        # weight strictly above each group, so that 1 minus it is the share at or below
        shifted = np.concatenate([[0.0], cumulative[:-1]])
        above += shifted / cumulative[-1] / len(present_classes)
    return ranked.scores[::-1], (1.0 - above)[::-1]


def _cut_points(
    cells: np.ndarray, labels: np.ndarray, weight: np.ndarray | None, max_bins: int
) -> np.ndarray:
    """Cut points half-way between neighbouring values, at most `max_bins - 1` of them."""
    values, shares = _shares(cells, labels, weight)
    if len(values) < 2:
        return np.empty(0)
    if len(values) <= max_bins:
        last = np.arange(len(values) - 1)
    else:
        wanted = np.arange(1, max_bins) / max_bins
        last = np.unique(np.searchsorted(shares, wanted - 1e-12))
        last = last[last < len(values) - 1]
    low, high = values[last], values[last + 1]
    middle = np.maximum(low / 2 + high / 2, low)  # halves first: the sum could overflow
    return np.where(middle < high, middle, low)


def _category_bins(
    cells: np.ndarray, labels: np.ndarray, weight: np.ndarray | None, max_bins: int
) -> np.ndarray:
    """Category codes that get a bin of their own: all, or the ones with the greatest shares."""
    values, shares = _shares(cells, labels, weight)
    capacity = min(max_bins, OTHER)
    if len(values) <= capacity:
        return values
    share = np.diff(shares, prepend=0.0)
    greatest = np.lexsort((values, -np.round(share, 12)))[:capacity]
    return np.sort(values[greatest])
