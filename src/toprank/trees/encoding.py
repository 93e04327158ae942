"""Encoding: numbers on one scale, a 0/1 column for each category, for splits that measure distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Encoding"]

MAX_CATEGORIES = 64
NUMBER, MISSING_MARK, CATEGORY = 0, 1, 2


@dataclass(frozen=True)
class Encoding:
    """How the columns of a matrix become the columns of a splitting rule.

    A column of numbers has its mean subtracted and is divided by its standard deviation; missing cells
    get the mean, and a 0/1 column of their own when training rows had any. A categorical column becomes a
    0/1 column for each of its (at most 64 heaviest) categories.

    Attributes
    ----------
    source : int ndarray of shape (n_encoded,)
        The column it comes from.
    kind : int8 ndarray of shape (n_encoded,)
        0 for numbers, 1 for the mark of missing cells, 2 for a category.
    shift, scale : ndarray of shape (n_encoded,)
        Mean and standard deviation of numbers; the code of a category in `shift`.
    n_columns : int
    """

    source: np.ndarray
    kind: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    n_columns: int

    @classmethod
    def of(
        cls, X: np.ndarray, is_category: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> Encoding:
        """Learn the encoding of a matrix of numbers and category codes.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[1.0, 0.0], [3.0, 1.0]])
        >>> Encoding.of(X, np.array([False, True])).prepare(X).tolist()
        [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
        """
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        entries: list[tuple[int, int, float, float]] = []
        for j in range(X.shape[1]):
            if is_category[j]:
                entries += [(j, CATEGORY, float(code), 1.0) for code in _heaviest(X[:, j], weight)]
            else:
                entries += _number_entries(j, X[:, j], weight)
        table = np.array(entries, dtype=np.float64).reshape(-1, 4)
        return cls(
            table[:, 0].astype(np.int64),
            table[:, 1].astype(np.int8),
            table[:, 2].copy(),
            table[:, 3].copy(),
            X.shape[1],
        )

    def prepare(self, X: np.ndarray) -> np.ndarray:
        """The encoded rows."""
        out = np.empty((len(X), len(self.source)))
        for k in range(len(self.source)):
            cells = X[:, self.source[k]]
            if self.kind[k] == NUMBER:
                out[:, k] = (cells - self.shift[k]) / self.scale[k]
                np.nan_to_num(out[:, k], copy=False, nan=0.0)
            elif self.kind[k] == MISSING_MARK:
                out[:, k] = np.isnan(cells)
            else:
                out[:, k] = cells == self.shift[k]
        return out

    def encoded_columns(self, columns: np.ndarray) -> np.ndarray:
        """The encoded columns that come from some columns."""
        wanted = np.zeros(self.n_columns, dtype=bool)
        wanted[columns] = True
        return np.flatnonzero(wanted[self.source])


def _number_entries(
    column: int, cells: np.ndarray, weight: np.ndarray
) -> list[tuple[int, int, float, float]]:
    present = ~np.isnan(cells)
    mean, spread = 0.0, 1.0
    if present.any():
        values = cells[present].astype(np.float64)
        mean = float(np.average(values, weights=weight[present]))
        spread = float(np.sqrt(np.average((values - mean) ** 2, weights=weight[present])))
    if not np.isfinite(spread) or spread <= 1e-12 * max(1.0, abs(mean)):
        spread = 1.0  # a constant column stays constant
    entries = [(column, NUMBER, mean, spread)]
    if not present.all():
        entries.append((column, MISSING_MARK, 0.0, 1.0))
    return entries


def _heaviest(cells: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The codes of the heaviest categories, ascending."""
    present = ~np.isnan(cells)
    totals = np.bincount(cells[present].astype(np.int64), weight[present])
    codes = np.flatnonzero(totals)
    return np.sort(codes[np.lexsort((codes, -totals[codes]))[:MAX_CATEGORIES]])
