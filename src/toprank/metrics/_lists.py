"""What the metrics read: one list as a staircase, or many lists as a table of queries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toprank.metrics import _kernels, _query_kernels
from toprank.ranking import RankedList, RankedQueries
from toprank.validation import GradedRows, binary_rows, graded_rows

SKIPPED_ALL = (
    "No query has a row of a positive class, so no query can be scored: check the labels and qid."
)


@dataclass(frozen=True)
class Staircase:
    """One ranked list of two classes, reduced to the tie groups that hold a positive.

    Attributes
    ----------
    run : ndarray of shape (n_steps + 1,)
        Weight of the negatives strictly between two steps; the last entry is for those below all.
    rise, tied : ndarray of shape (n_steps,)
        Weight of the positives of each step and of the negatives that share its score.
    scores : ndarray of shape (n_steps,)
        The scores of the steps, descending.
    """

    run: np.ndarray
    rise: np.ndarray
    tied: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, ranked: RankedList) -> Staircase:
        """Reduce a ranked list."""
        run, rise, tied, groups = _kernels.steps_of_list(ranked.positives, ranked.negatives)
        return cls(run, rise, tied, ranked.scores[groups])

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that the compiled loops take."""
        return self.run, self.rise, self.tied

    @cached_property
    def positives(self) -> float:
        return float(self.rise.sum())

    @cached_property
    def negatives(self) -> float:
        return float(self.run.sum() + self.tied.sum())

    @property
    def total(self) -> float:
        return self.positives + self.negatives


def staircase(
    y_true: Any, scores: Any, sample_weight: Any = None, pos_label: Any = None
) -> Staircase:
    """Check raw arrays and rank them once."""
    rows = binary_rows(y_true, scores, sample_weight, pos_label)
    return Staircase.of(RankedList.of(rows.positive, rows.scores, rows.weight))


@dataclass(frozen=True)
class QueryTable:
    """Rows of every query, highest score first, with graded labels as codes of `levels`.

    Attributes
    ----------
    starts : ndarray of shape (n_queries + 1,)
        Query `q` is the stretch `starts[q]:starts[q + 1]` of the row arrays.
    scores, weight, codes : ndarray of shape (n_rows,)
        Score, weight and index into `levels` of each row in ranked order.
    levels : ndarray of shape (n_levels,)
        The distinct labels, ascending.
    order : ndarray of shape (n_rows,)
        Index of each row in the arrays that were ranked.
    """

    starts: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    codes: np.ndarray
    levels: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, rows: GradedRows) -> QueryTable:
        """Rank the rows of each query; without queries all rows are one list."""
        ranked = RankedQueries.of(rows.scores, rows.qid)
        levels, codes = np.unique(rows.relevance, return_inverse=True)
        weight = np.ones(len(codes)) if rows.weight is None else rows.weight[ranked.order]
        return cls(
            starts=ranked.starts,
            scores=ranked.scores.astype(np.float64),
            weight=weight,
            codes=codes[ranked.order].astype(np.int64),
            levels=levels,
            order=ranked.order,
        )

    @property
    def n_queries(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def level_weight(self) -> np.ndarray:
        """Weight of each level over all queries."""
        return np.bincount(self.codes, weights=self.weight, minlength=len(self.levels))

    @cached_property
    def steps(self) -> tuple[np.ndarray, ...]:
        """Staircases of all queries end to end: the rows with a label above 0 are positive."""
        positive = (self.levels > 0)[self.codes]
        return _query_kernels.steps_of_queries(self.starts, self.scores, positive, self.weight)

    def reweighted(self, weight: np.ndarray) -> QueryTable:
        """Return the same ranking with other weights, given in ranked order."""
        return QueryTable(self.starts, self.scores, weight, self.codes, self.levels, self.order)


def query_table(
    y_true: Any,
    scores: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    qid: Any = None,
    *,
    signed: bool = False,
) -> QueryTable:
    """Check raw arrays and rank the rows of every query once."""
    return QueryTable.of(graded_rows(y_true, scores, sample_weight, pos_label, qid, signed=signed))


def mean_over_queries(values: np.ndarray, return_skipped: bool = False) -> Any:
    """Mean of the queries that have a value; NaN marks a query that is left out."""
    scored = ~np.isnan(values)
    if not scored.any():
        raise ValueError(SKIPPED_ALL)
    mean = float(values[scored].mean())
    return (mean, int(len(values) - scored.sum())) if return_skipped else mean
