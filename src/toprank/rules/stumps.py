"""Stumps: the best single literal of a table, from one histogram of signed weights a column.

A stump h in {0, 1} has r = (positive weight where h = 1) - (negative weight where h = 1), a sum of
signed weights, so one pass over a column gives r of every threshold (RankBoost.B,
Freund, Iyer, Schapire & Singer 2003). Both classes must have the same total weight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toprank.rule import Literal, Rule
from toprank.rules._kernels import MISSING, N_BINS, OTHER, cover, histograms, signed_weights
from toprank.rules.bins import Bins
from toprank.rules.source import SearchPath
from toprank.rules.workers import Workers

__all__ = ["StumpSource", "column_sums"]

COLUMNS_A_TASK = 4
SMALL = 1_000_000  # cells below which threads do not pay


def column_sums(
    codes: np.ndarray, values: np.ndarray, workers: Workers | None = None
) -> np.ndarray:
    """Sums of one value a row by column and bin, of shape (n_columns, 256)."""
    n_columns = len(codes)
    sums = np.empty((n_columns, N_BINS))

    def fill(first: int) -> None:
        histograms(codes, values, sums, first, min(first + COLUMNS_A_TASK, n_columns))

    if workers is None or codes.size < SMALL:
        histograms(codes, values, sums, 0, n_columns)
    else:
        workers.map(fill, range(0, n_columns, COLUMNS_A_TASK))
    return sums


class StumpSource:
    """Stumps over the columns of a binned table.

    Numbers: `column <= t` or `column > t`, missing cells on the better side. Categories: the subset
    with the greatest r, which is every category whose positives outweigh its negatives. The literal is
    written so that r > 0.

    Parameters
    ----------
    bins : Bins
    codes : uint8 ndarray of shape (n_columns, n_rows)
        The training rows, binned.
    workers : Workers
    columns : sequence of int, optional
        The columns to look at; all of them by default.
    """

    def __init__(
        self,
        bins: Bins,
        codes: np.ndarray,
        workers: Workers | None = None,
        columns: Sequence[int] | None = None,
    ) -> None:
        self.bins = bins
        self.codes = codes
        self.workers = workers
        self.columns = list(range(bins.n_columns) if columns is None else columns)
        self.n_evaluated = int((bins.n_cuts[self.columns] + 1).sum())
        self._signed = np.empty(codes.shape[1])

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "auc") -> SearchPath | None:
        """Return the stump with the greatest |r|; None when every r is 0."""
        if score != "auc":
            raise ValueError(f"stumps are searched by 'auc' alone, not by {score!r}")
        positive = y > 0
        signed_weights(positive, weights, self._signed)
        sums = column_sums(self.codes, self._signed, self.workers)
        stumps = [self._best_of_column(j, sums[j]) for j in self.columns]
        strength = np.array([r for r, _ in stumps])
        if not len(strength) or strength.max() <= 1e-12:
            return None
        best = int(np.argmax(strength >= strength.max() * (1 - 1e-11)))
        literal = stumps[best][1]
        assert literal is not None
        column, member = self.bins.members(literal)
        depth = np.empty(len(weights), dtype=np.uint8)
        p, q = cover(self.codes[column], member, weights, positive, depth)
        return SearchPath(
            (Rule((literal,)),), depth, np.array([p]), np.array([q]), p - q, self.n_evaluated
        )

    def _best_of_column(self, column: int, sums: np.ndarray) -> tuple[float, Literal | None]:
        """The greatest r of the stumps of a column, and its literal (written so that r > 0)."""
        if self.bins.columns.is_category[column]:
            return self._best_subset(column, sums)
        return self._best_threshold(column, sums)

    def _best_threshold(self, column: int, sums: np.ndarray) -> tuple[float, Literal | None]:
        n_cuts = len(self.bins.cuts[column])
        missing = float(sums[MISSING])
        low = np.cumsum(sums[:n_cuts])  # r of "at most", missing cells out
        sides = np.concatenate([np.abs(low), np.abs(low + missing), [abs(missing)]])
        k = int(np.argmax(sides >= sides.max() * (1 - 1e-11)))
        strength = float(sides[k])
        name = self.bins.columns.names[column]
        if k == 2 * n_cuts:
            return strength, Literal(name, "is missing" if missing > 0 else "is present")
        cut = k % n_cuts
        joined = k >= n_cuts  # missing cells counted with the low side
        if low[cut] + (missing if joined else 0.0) > 0:
            return strength, self.bins.at_most(column, cut, or_missing=joined)
        return strength, self.bins.above(column, cut, or_missing=not joined and missing != 0)

    def _best_subset(self, column: int, sums: np.ndarray) -> tuple[float, Literal | None]:
        """The categories whose signed weight is positive; those without a bin go along or not."""
        n_categories = len(self.bins.cuts[column])
        tiny = 1e-12
        inside = sums[:n_categories] > tiny
        missing, others = bool(sums[MISSING] > tiny), bool(sums[OTHER] > tiny)
        strength = float(sums[:n_categories][inside].sum() + max(sums[MISSING], 0.0))
        strength += max(float(sums[OTHER]), 0.0)
        name = self.bins.columns.names[column]
        listed = tuple(
            self.bins.category(column, k) for k in np.flatnonzero(inside != others).tolist()
        )
        if not listed:
            if others != missing:
                return strength, Literal(name, "is present" if others else "is missing")
            return 0.0, None
        return strength, Literal(name, "not in" if others else "in", listed, missing)
