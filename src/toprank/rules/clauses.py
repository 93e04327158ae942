"""Clauses over a table: greedy search among the literals that are true of a positive seed row.

One histogram of the class weights a column gives the weights under every threshold at once, so a
refinement step scores all literals of the bottom clause in one pass over the rows still covered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toprank.rule import Literal, Rule
from toprank.rules._kernels import MISSING, row_hashes, row_histograms, thresholds
from toprank.rules.bins import Bins
from toprank.rules.search import Limits, climb
from toprank.rules.source import SearchPath, draw_seed, total_weights
from toprank.rules.workers import Workers

__all__ = ["ClauseSource", "simplified"]

COLUMNS_A_TASK = 4
SMALL = 1_000_000  # cells below which threads do not pay
SEEDS = 10  # drawn before giving up


class ClauseSource:
    """Conjunctions of literals over the columns of a binned table.

    The literals of a seed row: `column <= t` for the cut points at or above its value, `column > t`
    for those below, `column = v` for its category, `column is missing` where it has no value. Seeds are
    drawn among the positives in proportion to their weight now (`draw_seed`), from an order that
    depends on the contents of the rows alone: neither the order of the table nor copies in place of
    weights change the draws.

    Parameters
    ----------
    bins : Bins
    codes : uint8 ndarray of shape (n_columns, n_rows)
        The training rows, binned.
    random : numpy.random.RandomState
    limits : Limits
    workers : Workers
    """

    def __init__(
        self,
        bins: Bins,
        codes: np.ndarray,
        random: np.random.RandomState,
        limits: Limits | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.bins = bins
        self.codes = codes
        self.random = random
        self.limits = limits or Limits()
        self.workers = workers
        self._hashes = row_hashes(codes)
        self._positive_rows: np.ndarray | None = None

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "clause") -> SearchPath | None:
        """Return the best path from a seed; None when several seeds gave nothing."""
        positive = y > 0
        if self._positive_rows is None:
            rows = np.flatnonzero(positive)
            self._positive_rows = rows[np.argsort(self._hashes[rows], kind="stable")]
        totals = total_weights(positive, weights)
        n_wasted = 0
        for _ in range(SEEDS):
            seed = draw_seed(self._positive_rows, weights, self.random)
            refiner = TableRefiner(self, positive, weights, seed)
            found = climb(refiner, *totals, score, self.limits)
            if found is not None:
                return replace(found, n_evaluated=found.n_evaluated + n_wasted)
            n_wasted += refiner.n_evaluated
        return None


class TableRefiner:
    """One search over a table: the rows still covered, and the literals that could be added."""

    def __init__(
        self, source: ClauseSource, positive: np.ndarray, weights: np.ndarray, seed: int
    ) -> None:
        self.source = source
        self.weights = weights
        self.seed_codes = np.ascontiguousarray(source.codes[:, seed])
        self.rows = [np.flatnonzero(positive), np.flatnonzero(~positive)]
        self.rule = Rule()
        self.n_evaluated = 0

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Class weights under every literal of the bottom clause."""
        bins = self.source.bins
        positive_sums, negative_sums = (self._histograms(rows) for rows in self.rows)
        self.columns, self.cuts, positives, negatives = thresholds(
            positive_sums, negative_sums, self.seed_codes, bins.n_cuts, bins.columns.is_category
        )
        self.n_evaluated += len(positives)
        return positives, negatives

    def refine(self, index: int) -> tuple[Rule, np.ndarray]:
        """Add the literal of a candidate; return the new rule and the rows it covers."""
        literal = self._literal(int(self.columns[index]), int(self.cuts[index]))
        column, member = self.source.bins.members(literal)
        codes = self.source.codes[column]
        self.rows = [rows[member[codes[rows]] > 0] for rows in self.rows]
        self.rule = simplified(self.rule, literal)
        covered = np.zeros(len(codes), dtype=bool)
        for rows in self.rows:
            covered[rows] = True
        return self.rule, covered

    def _literal(self, column: int, cut: int) -> Literal:
        bins, seed = self.source.bins, int(self.seed_codes[column])
        if seed == MISSING:
            return bins.is_missing(column)
        if bins.columns.is_category[column]:
            return bins.equals(column, seed)
        return bins.at_most(column, cut) if seed <= cut else bins.above(column, cut)

    def _histograms(self, rows: np.ndarray) -> np.ndarray:
        """Sums of the weights of some rows by column and bin."""
        codes, workers = self.source.codes, self.source.workers
        n_columns = len(codes)
        sums = np.zeros((n_columns, 256))
        values = self.weights[rows]

        def fill(first: int) -> None:
            row_histograms(codes, rows, values, sums, first, min(first + COLUMNS_A_TASK, n_columns))

        if workers is None or len(rows) * n_columns < SMALL:
            row_histograms(codes, rows, values, sums, 0, n_columns)
        else:
            workers.map(fill, range(0, n_columns, COLUMNS_A_TASK))
        return sums


def simplified(rule: Rule, literal: Literal) -> Rule:
    """The rule with one more literal, without the one on the same column that it implies.

    Examples
    --------
    >>> print(simplified(Rule((Literal("amount", ">", 5.0),)), Literal("amount", ">", 9.0)))
    amount > 9
    """
    implied = literal.operator in {"<=", ">"}
    kept = tuple(
        other
        for other in rule.literals
        if not (implied and (other.column, other.operator) == (literal.column, literal.operator))
    )
    return Rule((*kept, literal))
