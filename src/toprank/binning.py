"""Bins: every column of a table as one byte a row.

A column of numbers with few distinct values keeps them all (the cut points lie half-way between neighbours,
so the splits found are those of an exhaustive search); one with many is cut at quantiles. A category has
a bin of its own. Two bins are set apart: `MISSING`, and `OTHER` for categories that are rare or were
never seen. What was learnt is plain data, so a model file can carry it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from scipy import sparse

from toprank.parallel import ThreadPool
from toprank.ranking import RankedList
from toprank.sampling import sample_classes

__all__ = ["MAX_BINS", "MISSING", "N_BINS", "OTHER", "Bins"]

N_BINS = 256
MISSING = 255  # the bin of missing cells
OTHER = 254  # of categories without a bin of their own
MAX_BINS = 255
SAMPLE_ROWS = 100_000  # of each class, to place the cut points
CHUNK_ROWS = 8_192


@dataclass(frozen=True)
class Bins:
    """How the columns of a matrix of numbers and category codes become bytes.

    Attributes
    ----------
    cuts : tuple of ndarray
        Of a column of numbers, the ascending cut points: bin k holds the cells in
        (cuts[k - 1], cuts[k]]. Of a categorical column, the category codes that have a bin, ascending.
    is_category : bool ndarray of shape (n_columns,)
    has_missing : bool ndarray of shape (n_columns,)
        Whether the rows that the bins were learnt from had missing cells there.
    """

    cuts: tuple[np.ndarray, ...]
    is_category: np.ndarray
    has_missing: np.ndarray

    @classmethod
    def of(
        cls,
        X: Any,
        is_category: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        y: np.ndarray | None = None,
        max_bins: int = MAX_BINS,
        random_state: int = 0,
        n_jobs: int | None = 1,
    ) -> Bins:
        """Learn the bins of a matrix, dense or sparse.

        With labels `y` the cut points lie at quantiles of both classes in equal shares, so that rare
        positives are resolved as finely as the many negatives: with plain quantiles the 492 frauds
        among 284,807 payments could all fall into one bin. Up to 100,000 rows of each class (200,000
        without labels) are looked at, drawn at random beyond that.

        Examples
        --------
        >>> import numpy as np
        >>> bins = Bins.of(np.array([[1.0], [3.0], [np.nan], [3.0]]), np.array([False]))
        >>> bins.cuts[0].tolist(), bins.codes(np.array([[0.0], [2.5], [np.nan]])).tolist()
        ([2.0], [[0, 1, 255]])
        """
        rows: Any = slice(None)
        if X.shape[0] > 2 * SAMPLE_ROWS:
            positive = np.zeros(X.shape[0], dtype=bool) if y is None else y > 0
            n_negatives = 2 * SAMPLE_ROWS if y is None else SAMPLE_ROWS
            random = np.random.RandomState(random_state)
            rows = sample_classes(positive, SAMPLE_ROWS, n_negatives, random)
        labels = None if y is None else y[rows] > 0
        weight = None if sample_weight is None else sample_weight[rows]

        matrix = X.tocsc() if sparse.issparse(X) else X  # read a column at a time

        def place(j: int) -> np.ndarray:
            cells = matrix[:, [j]].toarray().ravel()[rows] if sparse.issparse(X) else X[rows, j]
            cells = np.asarray(cells, dtype=np.float64)
            values, shares = _cumulative_shares(cells, labels, weight)
            if is_category[j]:
                return _category_bins(values, shares, max_bins)
            return _cut_points(values, shares, max_bins)

        with ThreadPool(n_jobs) as pool:
            cuts = tuple(pool.map(place, range(X.shape[1])))
        columns: Any = X.T  # a row of it is a view of a column
        if sparse.issparse(X):
            columns = np.split(matrix.data, matrix.indptr[1:-1])
        has_missing = np.array([np.isnan(cells).any() for cells in columns], dtype=bool)
        return cls(cuts, np.asarray(is_category, dtype=bool), has_missing)

    @property
    def n_columns(self) -> int:
        return len(self.cuts)

    @property
    def n_cuts(self) -> np.ndarray:
        """Cut points, or categories with a bin, of each column."""
        return np.array([len(cuts) for cuts in self.cuts], dtype=np.int64)

    def codes(
        self,
        X: Any,
        *,
        only: np.ndarray | None = None,
        by_row: bool = False,
        n_jobs: int | None = 1,
    ) -> np.ndarray:
        """Return the bins of the cells as bytes of shape (n_columns, n_rows).

        Parameters
        ----------
        X : float ndarray or sparse matrix (CSR) of shape (n_rows, n_columns)
        only : int ndarray, optional
            The columns to bin (the rows of the answer); all of them by default.
        by_row : bool, default=False
            Return the answer as (n_rows, n_columns), the bytes of a row next to one another.
        n_jobs : int, default=1
            Threads.
        """
        chosen = np.arange(len(self.cuts)) if only is None else np.asarray(only, dtype=np.int64)
        tables = np.full((len(chosen), N_BINS), np.inf)
        for row, j in enumerate(chosen):
            tables[row, : len(self.cuts[j])] = self.cuts[j]
        is_category = self.is_category[chosen]
        n_rows = X.shape[0]
        shape = (n_rows, len(chosen)) if by_row else (len(chosen), n_rows)
        out = np.empty(shape, dtype=np.uint8)
        codes = out.T if by_row else out

        def fill(start: int) -> None:
            block = X[start : start + CHUNK_ROWS]
            block = block.toarray() if sparse.issparse(block) else block
            block = block if only is None else block[:, chosen]
            cells = np.ascontiguousarray(block.T, dtype=np.float64)
            _fill_bins(cells, tables, is_category, codes[:, start : start + len(block)])

        with ThreadPool(n_jobs) as pool:
            pool.map(fill, range(0, n_rows, CHUNK_ROWS))
        return out


def _cumulative_shares(
    cells: np.ndarray, labels: np.ndarray | None, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values, ascending, and the share of the rows at or below each, in [0, 1].

    With labels each class counts one half, whatever its size.
    """
    present = ~np.isnan(cells)
    if not present.any():
        return np.empty(0), np.empty(0)
    positive = np.zeros(int(present.sum()), dtype=bool) if labels is None else labels[present]
    ranked = RankedList.of(positive, cells[present], None if weight is None else weight[present])
    classes = [c for c in (ranked.positives, ranked.negatives) if c[-1] > 0]
    above = np.zeros(ranked.n_groups)
    for cumulative in classes:
        # weight strictly above each group, so that 1 minus it is the share at or below
        above += np.concatenate([[0.0], cumulative[:-1]]) / cumulative[-1] / len(classes)
    return ranked.scores[::-1], (1.0 - above)[::-1]


def _cut_points(values: np.ndarray, shares: np.ndarray, max_bins: int) -> np.ndarray:
    """Cut points half-way between neighbouring values, at most `max_bins - 1` of them."""
    if len(values) < 2:
        return np.empty(0)
    last = np.arange(len(values) - 1)
    if len(values) > max_bins:
        wanted = np.arange(1, max_bins) / max_bins
        last = np.unique(np.searchsorted(shares, wanted - 1e-12))
        last = last[last < len(values) - 1]
    low, high = values[last], values[last + 1]
    middle = np.maximum(low / 2 + high / 2, low)  # halves first: the sum could overflow
    return np.where(middle < high, middle, low)


def _category_bins(values: np.ndarray, shares: np.ndarray, max_bins: int) -> np.ndarray:
    """Category codes that get a bin of their own: all, or the ones with the greatest shares."""
    capacity = min(max_bins, OTHER)
    if len(values) <= capacity:
        return values
    share = np.diff(shares, prepend=0.0)
    greatest = np.lexsort((values, -np.round(share, 12)))[:capacity]
    return np.sort(values[greatest])


@njit(cache=True, nogil=True)
def _fill_bins(cells, tables, is_category, codes):
    """Bins of a block of cells (n_columns, n_block), written to `codes`.

    The bin of a number is how many of the cut points (ascending, padded with infinity to 256) lie below
    it: eight halvings without a branch. A category has the position of its code, if it is there.
    """
    n_columns, n_block = cells.shape
    for j in range(n_columns):
        cuts = tables[j]
        for i in range(n_block):
            x = cells[j, i]
            low = 0
            for half in (128, 64, 32, 16, 8, 4, 2, 1):
                low += half if cuts[low + half - 1] < x else 0
            if np.isnan(x):
                low = MISSING
            elif is_category[j] and cuts[low] != x:
                low = OTHER
            codes[j, i] = low
