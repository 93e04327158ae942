"""Bins: every column as one byte a row.

A column with few distinct values keeps them all (the cuts lie half-way between neighbours, so the splits
found are those of an exhaustive search); a column with many is cut at weighted quantiles. Categories
have a bin each. One byte, `MISSING`, is kept for missing cells and for categories never seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["MISSING", "Bins"]

MISSING = 255
MAX_BINS = 255
_CHUNK = 65_536


@dataclass(frozen=True)
class Bins:
    """How the columns of a matrix become bytes.

    Attributes
    ----------
    cuts : ndarray
        The upper ends of the bins of all numeric columns, one column after the other; a cell lies in
        the first bin whose cut it does not exceed.
    starts : int ndarray of shape (n_columns + 1,)
        Column `j` has `cuts[starts[j]:starts[j + 1]]` (a categorical one has its table of bins there).
    n_bins : int ndarray of shape (n_columns,)
        Bins of each column, without the one of missing cells.
    is_category : bool ndarray of shape (n_columns,)
    has_missing : bool ndarray of shape (n_columns,)
        Whether training rows had missing cells there.
    """

    cuts: np.ndarray
    starts: np.ndarray
    n_bins: np.ndarray
    is_category: np.ndarray
    has_missing: np.ndarray

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        is_category: np.ndarray,
        sample_weight: np.ndarray | None = None,
        max_bins: int = MAX_BINS,
    ) -> Bins:
        """Learn the bins of a matrix of numbers and category codes.

        Examples
        --------
        >>> import numpy as np
        >>> bins = Bins.of(np.array([[1.0], [3.0], [np.nan], [3.0]]), np.array([False]))
        >>> bins.cuts.tolist(), bins.prepare(np.array([[0.0], [2.5], [np.nan]])).ravel().tolist()
        ([2.0], [0, 1, 255])
        """
        tables, n_bins = [], []
        for j in range(X.shape[1]):
            values, weights = _distinct(X[:, j], sample_weight)
            if is_category[j]:
                table, size = _category_bins(values, weights, max_bins)
            else:
                table = _numeric_cuts(values, weights, max_bins)
                size = len(table) + 1
            tables.append(table)
            n_bins.append(size)
        starts = np.concatenate([[0], np.cumsum([len(table) for table in tables])])
        return cls(
            np.concatenate(tables) if tables else np.empty(0),
            starts.astype(np.int64),
            np.array(n_bins, dtype=np.int64),
            np.asarray(is_category, dtype=bool),
            np.array([np.isnan(X[:, j]).any() for j in range(X.shape[1])], dtype=bool),
        )

    @property
    def n_columns(self) -> int:
        return len(self.n_bins)

    def table(self, column: int) -> np.ndarray:
        """The cuts of a numeric column, or the bin of each code of a categorical one."""
        return self.cuts[self.starts[column] : self.starts[column + 1]]

    def prepare(self, X: np.ndarray) -> np.ndarray:
        """The bin of every cell, as bytes, row after row."""
        out = np.empty(X.shape, dtype=np.uint8)
        for start in range(0, len(X), _CHUNK):
            for j in range(X.shape[1]):
                cells = X[start : start + _CHUNK, j]
                out[start : start + _CHUNK, j] = self._column_codes(cells, j)
        return out

    def _column_codes(self, cells: np.ndarray, column: int) -> np.ndarray:
        missing = np.isnan(cells)
        table = self.table(column)
        if not self.is_category[column]:
            # a float32 cell must meet float64 cuts as the float64 number it is
            codes = np.searchsorted(table, cells.astype(np.float64, copy=False), side="left")
            codes[missing] = MISSING
            return codes
        known = ~missing & (cells >= 0) & (cells < len(table))
        codes = np.full(len(cells), MISSING, dtype=np.int64)
        codes[known] = table[cells[known].astype(np.int64)].astype(np.int64)
        return codes

    def codes_in_bins(self, column: int, chosen: np.ndarray) -> np.ndarray:
        """The category codes of a column whose bins are marked in a mask over bins."""
        table = self.table(column).astype(np.int64)
        return np.flatnonzero((table != MISSING) & chosen[table])


def _distinct(cells: np.ndarray, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column, ascending, and the weight of each."""
    present = ~np.isnan(cells)
    if sample_weight is None:
        values, counts = np.unique(cells[present].astype(np.float64), return_counts=True)
        return values, counts.astype(np.float64)
    values, which = np.unique(cells[present].astype(np.float64), return_inverse=True)
    return values, np.bincount(which, sample_weight[present], minlength=len(values))


def _numeric_cuts(values: np.ndarray, weights: np.ndarray, max_bins: int) -> np.ndarray:
    """Cuts half-way between distinct values: all of them, or those nearest to equal weights."""
    if len(values) < 2:
        return np.empty(0)
    last_of_bin = np.arange(len(values) - 1)
    if len(values) > max_bins:
        below = np.cumsum(weights)
        wanted = below[-1] * np.arange(1, max_bins) / max_bins
        last_of_bin = np.unique(np.searchsorted(below, wanted, side="left"))
        last_of_bin = last_of_bin[last_of_bin < len(values) - 1]
    lower, upper = values[last_of_bin], values[last_of_bin + 1]
    middle = lower / 2 + upper / 2  # the difference of huge values would overflow
    return np.where((lower <= middle) & (middle < upper), middle, lower)


def _category_bins(
    values: np.ndarray, weights: np.ndarray, max_bins: int
) -> tuple[np.ndarray, int]:
    """The bin of each category code: the heaviest have their own, the rest share the last one."""
    if not len(values):
        return np.empty(0), 1
    codes = values.astype(np.int64)
    table = np.full(codes.max() + 1, float(MISSING))
    if len(codes) <= max_bins:
        table[codes] = np.arange(len(codes))
        return table, len(codes)
    heaviest = np.lexsort((codes, -weights))[: max_bins - 1]
    table[codes] = max_bins - 1
    table[np.sort(codes[heaviest])] = np.arange(max_bins - 1)
    return table, max_bins
