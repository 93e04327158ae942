"""Clauses: what a search maximises, the greedy search, and clauses over a table.

A rule is one point (TP, FP) of a recall-precision curve, the weights of the positives and negatives it
covers. Between two points the curve is the interpolation of Davis & Goadrich (2006), integrated in
closed form (Oliphant, Burnside & Shavlik 2009, "Calculating AURPC"): with s = (FP_B - FP_A)/(TP_B - TP_A),

    area(A, B) = integral over x from TP_A to TP_B of x / (x + FP_A + s (x - TP_A)) dx.

The curve starts at (0, 0) and ends at (P, N), the rule that takes every row.

The search starts from "every row" and adds the refinement that raises the score most. Over a table the
refinements are the literals that are true of a positive seed row: one histogram of the class weights
a column gives the weights under every threshold at once, so a step scores all literals of the
bottom clause in one pass over the rows still covered.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numba import njit

from toprank.binning import MISSING
from toprank.rule import Literal, Rule
from toprank.rules._kernels import literal_weights, row_hashes
from toprank.rules.binned import BinnedRows
from toprank.rules.weak_rankers import SearchPath, best_candidate, total_weights

__all__ = [
    "SCORES",
    "ClauseSource",
    "CurvePath",
    "Refiner",
    "SearchLimits",
    "draw_seed",
    "greedy_refine",
    "simplified",
]

IMPROVEMENT = 1e-10  # relative; anything less is rounding
MAX_SEEDS = 10  # drawn before a round finds nothing


# -- areas under recall-precision curves -------------------------------------------------------------


@njit(cache=True, nogil=True)
def _segment_area(tp_a, fp_a, tp_b, fp_b):
    """Integrate precision over true-positive weight between two points, `tp_a <= tp_b`."""
    gain = tp_b - tp_a
    if gain <= 1e-290:  # the area is at most the gain, and the slope would overflow
        return 0.0
    slope = max(fp_b - fp_a, 0.0) / gain
    a = 1.0 + slope
    b = fp_a - slope * tp_a
    covered = tp_a + fp_a
    if covered <= 1e-14 * (tp_b + fp_b) or abs(b) <= 1e-14 * (fp_a + slope * tp_a):
        return gain / a
    return gain / a - b / (a * a) * np.log1p(a * gain / covered)


@njit(cache=True, nogil=True)
def _extension_areas(positives, negatives, end_positives, end_negatives, fixed_area):
    """Return areas of the curve (0, 0) -> candidate -> end, plus the fixed part right of the end."""
    areas = np.empty(len(positives))
    for k in range(len(positives)):
        tp, fp = positives[k], negatives[k]
        areas[k] = (
            fixed_area
            + _segment_area(0.0, 0.0, tp, fp)
            + _segment_area(tp, fp, end_positives, end_negatives)
        )
    return areas


@dataclass(frozen=True)
class CurvePath:
    """The curve of a path of nested rules, with the totals of both classes."""

    total_positives: float
    total_negatives: float
    positives: tuple[float, ...] = ()  # of the rules, from the most general to the most specific
    negatives: tuple[float, ...] = ()
    fixed_area: float = 0.0  # from the last rule's recall up to recall 1, times `total_positives`

    def extended(self, positives: float, negatives: float) -> CurvePath:
        """Return the path with one more rule, which covers a part of what the last one covers."""
        step = _segment_area(float(positives), float(negatives), *self.end)
        return CurvePath(
            self.total_positives,
            self.total_negatives,
            (*self.positives, float(positives)),
            (*self.negatives, float(negatives)),
            self.fixed_area + step,
        )

    @property
    def end(self) -> tuple[float, float]:
        """The point of the most specific rule, or of every row."""
        if not self.positives:
            return float(self.total_positives), float(self.total_negatives)
        return self.positives[-1], self.negatives[-1]

    @property
    def area(self) -> float:
        """Area under the whole curve, in [0, 1]."""
        whole = self.fixed_area + _segment_area(0.0, 0.0, *self.end)
        return whole / self.total_positives

    def levels(self) -> np.ndarray:
        """Return the value in [0, 1] of rows whose most specific rule is each rule of the path.

        The area from the rule's recall up to recall 1, over the whole area. The stretch down to recall
        0 belongs to the most specific rule, which so gets 1; rows under no rule get 0.
        """
        levels = np.empty(len(self.positives))
        path = CurvePath(self.total_positives, self.total_negatives)
        for k, point in enumerate(zip(self.positives, self.negatives, strict=True)):
            path = path.extended(*point)
            levels[k] = path.fixed_area
        whole = self.area * self.total_positives
        levels = levels / whole if whole > 0 else np.zeros(len(levels))
        levels[-1:] = 1.0
        return levels


def _auc_scores(positives: np.ndarray, negatives: np.ndarray, path: CurvePath) -> np.ndarray:
    """Return r = 2 AUC - 1 of each rule: its true-positive rate minus its false-positive rate."""
    return positives / path.total_positives - negatives / path.total_negatives


def _path_scores(positives: np.ndarray, negatives: np.ndarray, path: CurvePath) -> np.ndarray:
    """Return the area of the curve through the whole path and each candidate at its end."""
    areas = _extension_areas(positives, negatives, *path.end, path.fixed_area)
    return areas / path.total_positives


def _clause_scores(positives: np.ndarray, negatives: np.ndarray, path: CurvePath) -> np.ndarray:
    """Return the area of the curve through each candidate alone."""
    every_row = CurvePath(path.total_positives, path.total_negatives)
    return _path_scores(positives, negatives, every_row)


#: What a search maximises: scores of candidate extensions (their weights of positives and
#: negatives, float64 arrays) of a path.
SCORES: dict[str, Callable[[np.ndarray, np.ndarray, CurvePath], np.ndarray]] = {
    "auc": _auc_scores,
    "clause": _clause_scores,
    "path": _path_scores,
}


# -- the greedy search ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchLimits:
    """When a search stops even though it could go on, before a step.

    After `max_length` refinements (at most 255), once `max_evaluated` rules were scored, or once
    `max_seconds` have passed; results then depend on the machine.
    """

    max_length: int = 4
    max_evaluated: int | None = None
    max_seconds: float | None = None

    def exhausted(self, n_evaluated: int, start: float) -> bool:
        """Return whether so many rules were scored, or so much time passed since `start`."""
        if self.max_evaluated is not None and n_evaluated >= self.max_evaluated:
            return True
        return self.max_seconds is not None and time.monotonic() - start >= self.max_seconds


class Refiner(Protocol):
    """One search in progress: the current rule and what could be added to it."""

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of positives and of negatives under every refinement of the rule."""

    def refine(self, index: int) -> tuple[Any, np.ndarray]:
        """Take a refinement; return the new rule and the mask of the training rows it covers."""


def greedy_refine(
    refiner: Refiner,
    total_positives: float,
    total_negatives: float,
    score: str,
    limits: SearchLimits,
) -> SearchPath | None:
    """Refine greedily from the most general rule until nothing raises the score, or a limit is met.

    `score` is what is maximised, a key of `SCORES`.
    """
    path = CurvePath(float(total_positives), float(total_negatives))
    scorer = SCORES[score]
    positives, negatives = (np.array([total]) for total in path.end)
    current = float(scorer(positives, negatives, path)[0])
    rules: list[Any] = []
    depth: np.ndarray | None = None
    n_evaluated, start = 0, time.monotonic()
    while len(rules) < limits.max_length and not limits.exhausted(n_evaluated, start):
        positives, negatives = refiner.candidates()
        n_evaluated += len(positives)
        if len(positives) == 0:
            break
        index, best = best_candidate(scorer(positives, negatives, path))
        if not best > current + IMPROVEMENT * max(abs(current), 1e-6):
            break
        rule, covered = refiner.refine(index)
        path = path.extended(positives[index], negatives[index])
        depth = covered.astype(np.uint8) if depth is None else depth + covered
        rules.append(rule)
        current = best
    if depth is None:
        return None
    points = np.array(path.positives), np.array(path.negatives)
    return SearchPath(tuple(rules), depth, *points, current, n_evaluated)


# -- clauses over a table ------------------------------------------------------------------------------


class ClauseSource:
    """Conjunctions of literals over the columns of a binned table.

    The literals of a seed row: `column <= t` for the cut points at or above its value, `column > t`
    for those below, `column = v` for its category, `column is missing` where it has no value. Seeds are
    drawn among the positives in proportion to their weight now (`draw_seed`), from an order that
    depends on the contents of the rows alone: neither the order of the table nor copies in place of
    weights change the draws.
    """

    def __init__(self, rows: BinnedRows, limits: SearchLimits | None = None) -> None:
        self.rows = rows
        self.limits = limits or SearchLimits()
        self.random = np.random.RandomState(rows.seed)
        self._hashes = row_hashes(rows.codes)
        self._positive_rows: np.ndarray | None = None

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "clause") -> SearchPath | None:
        """Return the best path from a seed; None when several seeds gave nothing."""
        positive = y > 0
        if self._positive_rows is None:
            positive_rows = np.flatnonzero(positive)
            order = np.argsort(self._hashes[positive_rows], kind="stable")
            self._positive_rows = positive_rows[order]
        totals = total_weights(positive, weights)
        n_evaluated = 0
        for _ in range(MAX_SEEDS):
            seed = draw_seed(self._positive_rows, weights, self.random)
            refiner = TableRefiner(self.rows, positive, weights, seed)
            found = greedy_refine(refiner, *totals, score, self.limits)
            n_evaluated += refiner.n_evaluated
            if found is not None:
                return replace(found, n_evaluated=n_evaluated)
        return None


class TableRefiner:
    """One search over a table: the rows still covered, and the literals that could be added."""

    def __init__(
        self, table: BinnedRows, positive: np.ndarray, weights: np.ndarray, seed: int
    ) -> None:
        self.table = table
        self.weights = weights
        self.seed_codes = np.ascontiguousarray(table.codes[:, seed])
        self.covered = [np.flatnonzero(positive), np.flatnonzero(~positive)]
        self.rule = Rule()
        self.n_evaluated = 0

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the class weights under every literal of the bottom clause."""
        bins = self.table.bins
        sums = [self.table.sums(self.weights[rows], rows) for rows in self.covered]
        self.columns, self.cuts, positives, negatives = literal_weights(
            *sums, self.seed_codes, bins.n_cuts, bins.is_category
        )
        self.n_evaluated += len(positives)
        return positives, negatives

    def refine(self, index: int) -> tuple[Rule, np.ndarray]:
        """Add the literal of a candidate; return the new rule and the rows it covers."""
        literal = self._literal(int(self.columns[index]), int(self.cuts[index]))
        column, member = self.table.bins.members(literal)
        codes = self.table.codes[column]
        self.covered = [rows[member[codes[rows]] > 0] for rows in self.covered]
        self.rule = simplified(self.rule, literal)
        mask = np.zeros(len(codes), dtype=bool)
        for rows in self.covered:
            mask[rows] = True
        return self.rule, mask

    def _literal(self, column: int, cut: int) -> Literal:
        bins, seed = self.table.bins, int(self.seed_codes[column])
        if seed == MISSING:
            return Literal(bins.columns.names[column], "is missing")
        if bins.is_category[column]:
            return Literal(bins.columns.names[column], "=", bins.category(column, seed))
        return bins.threshold(column, cut, "<=" if seed <= cut else ">")


def simplified(rule: Rule, literal: Literal) -> Rule:
    """Return the rule with one more literal, without the one on the same column that it implies.

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


def draw_seed(positive_rows: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> int:
    """Draw a positive row with probability proportional to its weight now.

    Later rounds so start from the positives that the ensemble still ranks low, and a row of weight 2
    is drawn as often as two copies of it. With `positive_rows` in an order that depends on their contents
    alone, the draw does not depend on the order of the rows in the table.
    """
    cumulative = np.cumsum(weights[positive_rows])
    target = random.random_sample() * cumulative[-1]
    drawn = int(np.searchsorted(cumulative, target, side="right"))
    return int(positive_rows[min(drawn, len(positive_rows) - 1)])
