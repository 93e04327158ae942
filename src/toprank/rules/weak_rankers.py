"""Weak rankers: the interface that boosters know, and stumps.

A source of weak rankers looks at labels and weights and answers with a path of nested rules, from the
most general refinement to the best rule it found; a stump or a single clause is a path of length one. The
boosters decide what they keep of it (the last rule, or the whole path) and at which values. What a
rule is does not matter to them: `toprank.rule.Rule` over tables, clauses over relational data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from toprank.binning import MISSING, OTHER
from toprank.rule import Literal, Rule
from toprank.rules._kernels import cover, signed_weights
from toprank.rules.binned import BinnedRows

__all__ = ["SearchPath", "StumpSource", "WeakRankerSource", "best_candidate", "total_weights"]

TINY = 1e-12  # a signed weight below is rounding


@dataclass(frozen=True)
class SearchPath:
    """Nested rules from the first refinement of "every row" to the best one found."""

    rules: tuple[Any, ...]  # each covers a part of what the one before covers; never empty
    depth: np.ndarray  # how many of the rules cover each training row, as bytes
    positives: np.ndarray  # weight of the positives that each rule covers
    negatives: np.ndarray
    score: float  # what the search maximised, at the best rule
    n_evaluated: int  # rules scored to find this path


class WeakRankerSource(Protocol):
    """Finds weak rankers: stumps, clauses of a table or of relational data."""

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "auc") -> SearchPath | None:
        """Return the path of rules that ranks best, None when none is better than taking every row.

        `y` is 1 for a positive; the classes' weights need not have the same total; `score` is what the
        search maximises (`toprank.rules.clauses.SCORES`).
        """


def total_weights(y: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return the total weight of the positives and of the negatives."""
    positive = y > 0
    total_positives = float(weights[positive].sum())
    return total_positives, float(weights[~positive].sum())


def best_candidate(scores: np.ndarray) -> tuple[int, float]:
    """Return index and score of the best candidate; the first of those equal up to rounding.

    The tolerance makes the choice independent of the order in which rows were summed.
    """
    best = float(scores.max())
    index = int(np.argmax(scores >= best - 1e-11 * max(abs(best), 1e-300)))
    return index, float(scores[index])


class StumpSource:
    """Stumps over the columns of a binned table: the best single literal.

    A stump h in {0, 1} has r = (positive weight where h = 1) - (negative weight where h = 1), a sum
    of signed weights, so one histogram of a column gives r of every threshold (RankBoost.B, Freund,
    Iyer, Schapire & Singer 2003). Both classes must have the same total weight.

    Numbers: `column <= t` or `column > t`, missing cells on the better side. Categories: the subset
    with the greatest r, which is every category whose positives outweigh its negatives. The literal is
    written so that r > 0. `columns` are those to look at, all by default.
    """

    def __init__(self, rows: BinnedRows, columns: Sequence[int] | None = None) -> None:
        self.rows = rows
        self.columns = list(range(rows.bins.n_columns)) if columns is None else list(columns)
        self.n_evaluated = int((rows.bins.n_cuts[self.columns] + 1).sum())
        self._signed = np.empty(rows.codes.shape[1])

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "auc") -> SearchPath | None:
        """Return the stump with the greatest |r|; None when every r is 0."""
        if score != "auc":
            raise ValueError(f"stumps are searched by 'auc' alone, not by {score!r}")
        positive = y > 0
        signed_weights(positive, weights, self._signed)
        sums = self.rows.sums(self._signed)
        is_category = self.rows.bins.is_category
        stumps = [
            self._best_subset(j, sums[j]) if is_category[j] else self._best_threshold(j, sums[j])
            for j in self.columns
        ]
        strength = np.array([r for r, _ in stumps])
        if not len(strength) or strength.max() <= TINY:
            return None
        literal = stumps[best_candidate(strength)[0]][1]
        assert literal is not None
        column, member = self.rows.bins.members(literal)
        depth = np.empty(len(weights), dtype=np.uint8)
        p, q = cover(self.rows.codes[column], member, weights, positive, depth)
        return SearchPath(
            (Rule((literal,)),), depth, np.array([p]), np.array([q]), p - q, self.n_evaluated
        )

    def _best_threshold(self, column: int, sums: np.ndarray) -> tuple[float, Literal | None]:
        """Return the greatest r of a column of numbers, and the literal that has it."""
        bins = self.rows.bins
        n_cuts = len(bins.cuts[column])
        missing = float(sums[MISSING])
        low = np.cumsum(sums[:n_cuts])  # r of "at most" without the missing cells
        sides = np.concatenate([np.abs(low), np.abs(low + missing), [abs(missing)]])
        k, strength = best_candidate(sides)
        if k == 2 * n_cuts:
            operator = "is missing" if missing > 0 else "is present"
            return strength, Literal(bins.columns.names[column], operator)
        cut = k % n_cuts
        missing_low = k >= n_cuts  # missing cells counted with the low side
        if low[cut] + (missing if missing_low else 0.0) > 0:
            return strength, bins.threshold(column, cut, "<=", or_missing=missing_low)
        missing_high = not missing_low and missing != 0
        return strength, bins.threshold(column, cut, ">", or_missing=missing_high)

    def _best_subset(self, column: int, sums: np.ndarray) -> tuple[float, Literal | None]:
        """Return the categories of positive signed weight; those without a bin are all in or all out."""
        bins = self.rows.bins
        n_categories = len(bins.cuts[column])
        inside = sums[:n_categories] > TINY
        missing, others = bool(sums[MISSING] > TINY), bool(sums[OTHER] > TINY)
        strength = float(sums[:n_categories][inside].sum() + max(sums[MISSING], 0.0))
        strength += max(float(sums[OTHER]), 0.0)
        name = bins.columns.names[column]
        listed = tuple(bins.category(column, k) for k in np.flatnonzero(inside != others).tolist())
        if not listed:
            if others != missing:
                return strength, Literal(name, "is present" if others else "is missing")
            return 0.0, None
        return strength, Literal(name, "not in" if others else "in", listed, missing)
