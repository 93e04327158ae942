"""Weak rankers: what boosters ask for, and the search for stumps and clauses over a table.

A source of weak rankers looks at labels and weights and answers with a path of nested rules, from the
most general refinement to the best rule it found; a stump or a single clause is a path of length one. The
boosters decide what they keep of it (the last rule, or the whole path) and at which values. What a
rule is does not matter to them: `toprank.rule.Rule` over tables, clauses over relational data.

A rule is one point (TP, FP) of a recall-precision curve, the weights of the positives and negatives it
covers. Between two points the curve is the interpolation of Davis & Goadrich (2006), integrated in
closed form (Oliphant, Burnside & Shavlik 2009, "Calculating AURPC"): with s = (FP_B - FP_A)/(TP_B - TP_A),

    area(A, B) = integral over x from TP_A to TP_B of x / (x + FP_A + s (x - TP_A)) dx.

The curve starts at (0, 0) and ends at (P, N), the rule that takes every row.

The search starts from "every row" and adds the refinement that raises the score most. Columns of a table are
binned (`toprank.binning`), and a literal such as `amount > 900` holds in some of the 256 bins: one
histogram of the class weights a column gives the weights under every literal on it at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numba import njit

from toprank.binning import MISSING, N_BINS, OTHER, Bins
from toprank.columns import Columns
from toprank.formatting import to_python
from toprank.parallel import ThreadPool
from toprank.rule import Literal, Rule
from toprank.rules._kernels import cover, histograms, literal_weights, row_hashes, signed_weights

COLUMNS_PER_TASK = 4
CELLS_FOR_THREADS = 1_000_000  # threads do not pay below
TINY = 1e-12  # a signed weight below is rounding
IMPROVEMENT = 1e-10  # relative; anything less is rounding
MAX_SEEDS = 10  # drawn before a round finds nothing


# -- what boosters ask for ---------------------------------------------------------------------------------


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
        search maximises, a key of `SCORES`.
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


# -- binned tables -----------------------------------------------------------------------------------------


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
        return cls(bins.cuts, bins.is_category, bins.has_missing, columns, boolean)

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
        return to_python(values[int(self.cuts[column][position])])

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

    def folds(
        self, positive: np.ndarray, n_folds: int
    ) -> Iterator[tuple[int, tuple[np.ndarray, np.ndarray]]]:
        """Yield the number of a fold, the rows outside it and those in it, if each have both classes.

        The rows of each class are dealt out by their contents: copies of a row stay together.
        """
        hashes = row_hashes(self.codes)
        random = np.random.RandomState(self.seed)
        fold = np.empty(len(hashes), dtype=np.int64)
        for side in (positive, ~positive):
            distinct, inverse = np.unique(hashes[side], return_inverse=True)
            fold[side] = (random.permutation(len(distinct)) % n_folds)[inverse]
        for k in range(n_folds):
            parts = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if all(positive[rows].any() and not positive[rows].all() for rows in parts):
                yield k, parts

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


# -- stumps and clauses over a table -----------------------------------------------------------------------


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
