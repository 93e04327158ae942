"""Metrics of many lists at once: queries with their own rankings, graded labels, several classes.

Each is the mean over the queries that can be scored, which need a positive row (or two classes); the
others are left out, and ``return_skipped=True`` says how many they were.

The metrics of several classes under one score follow Welleck, "Efficient AUC Optimization for
Information Ranking Applications" (ECIR 2016), where the classes are grades of relevance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np

from toprank.metrics import _kernels
from toprank.metrics.steps import Metric, PublicMetric, Staircase, publish, staircase
from toprank.ranking import RankedQueries
from toprank.validation import GradedRows, check_choice, check_length, check_range, graded_rows

__all__ = [
    "mean_average_precision",
    "mean_reciprocal_rank",
    "multiclass_auc",
    "multiclass_precision",
    "ndcg",
    "per_class_auc",
]

GAINS = ("exponential", "linear")


@dataclass(frozen=True)
class QueryTable:
    """Rows of every query, highest score first, with graded labels as codes of the ascending `levels`.

    Query `q` is the stretch `starts[q]:starts[q + 1]` of the rows; `order` are their indices before ranking.
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
        scores, codes = ranked.scores.astype(np.float64), codes[ranked.order].astype(np.int64)
        return cls(ranked.starts, scores, weight, codes, levels, ranked.order)

    @property
    def ranked_rows(self) -> tuple[np.ndarray, ...]:
        """The arrays that the compiled loops over graded rows take."""
        return self.starts, self.scores, self.codes, self.weight

    @cached_property
    def level_weight(self) -> np.ndarray:
        """Weight of each level over all queries."""
        return np.bincount(self.codes, weights=self.weight, minlength=len(self.levels))

    @cached_property
    def steps(self) -> tuple[np.ndarray, ...]:
        """The steps of all queries end to end; rows with a label above 0 are positive."""
        positive = (self.levels > 0)[self.codes]
        return _kernels.steps_of_queries(self.starts, self.scores, positive, self.weight)


def mean_over_queries(values: np.ndarray, return_skipped: bool = False) -> Any:
    """Return the mean of the queries that have a value; NaN marks a query that is left out."""
    scored = ~np.isnan(values)
    if not scored.any():
        raise ValueError(
            "No query has a row of a positive class, so no query can be scored: check the labels "
            "and qid."
        )
    mean = float(values[scored].mean())
    return (mean, int(len(values) - scored.sum())) if return_skipped else mean


def query_metric(
    summary: str,
    *,
    graded: bool = False,
    signed: bool = False,
    list_core: Callable[..., float] | None = None,
) -> Callable[[Callable[..., np.ndarray]], PublicMetric]:
    """Turn a function of a `QueryTable`, one value per query, into the mean over the queries of raw rows.

    `list_core` computes it on the `Staircase` of two classes. Without queries a graded metric takes all rows
    as one of them; another one is its `list_core`, or needs queries.
    """

    def decorate(core: Callable[..., np.ndarray]) -> PublicMetric:
        @wraps(core)
        def metric(
            y_true: Any,
            scores: Any,
            *,
            qid: Any = None,
            sample_weight: Any = None,
            pos_label: Any = None,
            return_skipped: bool = False,
            **parameters: Any,
        ) -> Any:
            if qid is None and not graded:
                if list_core is None:
                    raise TypeError(f"{core.__name__} is a mean over queries: pass qid.")
                value = list_core(staircase(y_true, scores, sample_weight, pos_label), **parameters)
                return (value, 0) if return_skipped else value
            rows = graded_rows(y_true, scores, sample_weight, pos_label, qid, signed=signed)
            return mean_over_queries(core(QueryTable.of(rows), **parameters), return_skipped)

        return publish(Metric(metric, summary, list_core, core, graded, signed), core)

    return decorate


# -- gain, average precision and reciprocal rank ---------------------------------------------------


def ndcg_core(stairs: Staircase, *, k: float | None = None, gain: str = "exponential") -> float:
    """Return the NDCG of a ranked list of two classes (both kinds of gain are then 0 and 1)."""
    check_choice(gain, "gain", GAINS)
    return _kernels.binary_gain(*stairs.steps, math.inf if k is None else check_length(k))


@query_metric("normalised discounted cumulative gain", graded=True, list_core=ndcg_core)
def ndcg(table: QueryTable, *, k: float | None = None, gain: str = "exponential") -> np.ndarray:
    """Normalised discounted cumulative gain.

    ``sum of gain(relevance_i) / log2(1 + rank_i)`` over the first k rows, divided by its value for
    the best order. Tied rows get the mean discount of the ranks they share.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Relevances: numbers >= 0, where 0 is not relevant; or labels of two classes.
    scores : array-like of shape (n_rows,)
        Finite scores, higher for rows to be ranked first.
    k : float, optional
        Only the first k ranks count; by default all.
    qid : array-like of shape (n_rows,), optional
        Query of each row: the mean over the queries that have a relevant row. Without it all rows
        are one list.
    gain : {"exponential", "linear"}, default="exponential"
        ``2**relevance - 1``, or the relevance itself as in trec_eval and scikit-learn.
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0: a row of weight 2 fills two ranks, weight 0 is the row absent.
    pos_label : label, optional
        Rows of this label have relevance 1, all others 0.
    %(metric_skipped)s

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In [0, 1].

    Examples
    --------
    >>> round(ndcg([2, 0, 1], [0.9, 0.5, 0.1]), 4)
    0.9639
    >>> round(ndcg([2, 0, 1, 0, 1], [0.9, 0.5, 0.1, 0.8, 0.3], qid=[1, 1, 1, 2, 2]), 4)
    0.7974
    """
    gains = table.levels
    if check_choice(gain, "gain", GAINS) == "exponential":
        if table.levels[-1] > 1000:
            raise ValueError(
                f"A relevance of {table.levels[-1]:g} is too large for the gain 2**relevance - 1: "
                "use small grades or gain='linear'."
            )
        gains = np.exp2(table.levels) - 1
    size = math.inf if k is None else check_length(k)
    return _kernels.query_gain(*table.ranked_rows, gains, size)


@query_metric("mean over queries of average precision")
def mean_average_precision(table: QueryTable) -> np.ndarray:
    """Mean over the queries of the average precision of each.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes, or relevances, positive above 0.
    scores : array-like of shape (n_rows,)
        Finite scores, higher for rows to be ranked first.
    qid : array-like of shape (n_rows,)
        Query of each row. Queries without a positive are left out.
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0 of the rows inside their query; every query counts once.
    pos_label : label, optional
        Rows of this label are the positives.
    %(metric_skipped)s

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In (0, 1].

    Examples
    --------
    >>> mean_average_precision([1, 0, 0, 1], [0.9, 0.5, 0.8, 0.3], qid=[1, 1, 2, 2])
    0.75
    """
    return _kernels.query_values(*table.steps, _kernels.AVERAGE_PRECISION, 0.0)


@query_metric("mean over queries of 1 / rank of the first positive")
def mean_reciprocal_rank(table: QueryTable) -> np.ndarray:
    """Mean over the queries of 1 over the rank of the first positive.

    Ties count by their expected value over the orders of the tied rows.

    Parameters
    ----------
    y_true, scores, qid, sample_weight, pos_label, return_skipped
        As in :func:`mean_average_precision`.

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In (0, 1].

    Examples
    --------
    >>> mean_reciprocal_rank([1, 0, 0, 1], [0.9, 0.5, 0.8, 0.3], qid=[1, 1, 2, 2])
    0.75
    """
    return _kernels.query_values(*table.steps, _kernels.RECIPROCAL_RANK, 0.0)


# -- several classes -------------------------------------------------------------------------------


@query_metric("AUC averaged over the classes", graded=True, signed=True)
def multiclass_auc(
    table: QueryTable, *, kind: str = "ordered", fpr: tuple[float, float] = (0.0, 1.0)
) -> np.ndarray:
    """AUC averaged over classes: ``sum over c of p(c) AUC(c) / sum over c of p(c)``.

    `p(c)` is the share of the rows that have label c in the whole data.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Numeric labels, in order of preference.
    scores : array-like of shape (n_rows,)
        Finite scores, one per row.
    kind : {"ordered", "one_vs_rest"}, default="ordered"
        - "ordered": AUC(c) of the rows of label c and above against those below, for every label
          but the lowest. A perfect order gives 1.
        - "one_vs_rest": AUC(c) of the rows of label c against all others, for every label. With one
          score per row this does not reward the right order: four equal classes in perfect order
          and in reverse both give 0.5.
    qid : array-like of shape (n_rows,), optional
        Query of each row. Classes that a query lacks, or that fill it, are left out of both sums
        for that query; queries in which none is left are left out of the mean.
    fpr : tuple (a, b), default=(0, 1)
        Use the partial area over this range of false positive rates, divided by its width.
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0: weight 2 is the row twice, weight 0 the row absent.
    pos_label : label, optional
        Rows of this label against all others.
    %(metric_skipped)s

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In [0, 1].

    Examples
    --------
    >>> multiclass_auc([2, 1, 0, 0], [0.9, 0.5, 0.4, 0.1])
    1.0
    >>> multiclass_auc([3, 2, 1, 0], [4, 3, 2, 1], kind="one_vs_rest")
    0.5
    """
    areas = _level_areas(table, kind, fpr)
    shares = np.where(np.isnan(areas), 0.0, table.level_weight)
    total = shares.sum(axis=1)
    weighted = (np.nan_to_num(areas) * shares).sum(axis=1)
    return np.divide(weighted, total, out=np.full(len(total), np.nan), where=total > 0)


def per_class_auc(
    y_true: Any,
    scores: Any,
    *,
    kind: str = "ordered",
    qid: Any = None,
    fpr: tuple[float, float] = (0.0, 1.0),
    sample_weight: Any = None,
    pos_label: Any = None,
) -> dict[float, float]:
    """AUC of each class, as averaged by :func:`multiclass_auc`.

    Parameters
    ----------
    y_true, scores, kind, fpr, sample_weight, pos_label
        As in :func:`multiclass_auc`.
    qid : array-like of shape (n_rows,), optional
        Query of each row: the mean of each class over the queries in which it can be compared.

    Returns
    -------
    dict
        From label to AUC. With ``kind="ordered"`` the lowest label is not there.

    Examples
    --------
    >>> per_class_auc([2, 1, 0, 0], [0.9, 0.2, 0.4, 0.1])
    {1.0: 0.75, 2.0: 1.0}
    """
    rows = graded_rows(y_true, scores, sample_weight, pos_label, qid, signed=True)
    table = QueryTable.of(rows)
    areas = _level_areas(table, kind, fpr)
    known = ~np.isnan(areas)
    return {
        float(level): float(areas[known[:, c], c].mean())
        for c, level in enumerate(table.levels)
        if known[:, c].any()
    }


def _level_areas(table: QueryTable, kind: str, fpr: tuple[float, float]) -> np.ndarray:
    """Return the area of each level (columns) in each query (rows)."""
    ordered = check_choice(kind, "kind", ("ordered", "one_vs_rest")) == "ordered"
    low, high = check_range(fpr)
    return _kernels.query_level_areas(*table.ranked_rows, len(table.levels), ordered, low, high)


@query_metric("precision averaged over the classes", graded=True, signed=True)
def multiclass_precision(table: QueryTable, *, average: str = "micro") -> np.ndarray:
    """Precision averaged over classes when each class claims as many ranks as it has rows.

    The highest class claims the first ranks, the next one the ranks below, and so on: the precision
    of a class is the share of its own rows in its stretch (its recall as well). Tied rows spread
    evenly over the ranks they share. The source names micro- and macro-averaged precision of a
    ranking without a formula; this is the reading that turns a ranking into classes without a
    threshold to choose.

    Parameters
    ----------
    y_true, scores, sample_weight, pos_label
        As in :func:`multiclass_auc`.
    average : {"micro", "macro"}, default="micro"
        Every row counts the same (the share of rows that stand in the stretch of their class), or
        every class does.
    qid : array-like of shape (n_rows,), optional
        Query of each row: the mean over queries. Those with a single class are left out.
    %(metric_skipped)s

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In [0, 1].

    Examples
    --------
    >>> multiclass_precision([2, 1, 0, 0], [0.9, 0.2, 0.4, 0.1])
    0.5
    >>> multiclass_precision([2, 1, 0, 0], [0.9, 0.2, 0.4, 0.1], average="macro")
    0.5
    """
    check_choice(average, "average", ("micro", "macro"))
    sizes, hits = _kernels.query_level_hits(*table.ranked_rows, len(table.levels))
    present = sizes > 0
    if average == "micro":
        values = hits.sum(axis=1) / sizes.sum(axis=1)
    else:
        each = np.divide(hits, sizes, out=np.zeros_like(hits), where=present)
        values = each.sum(axis=1) / present.sum(axis=1)
    return np.where(present.sum(axis=1) > 1, values, np.nan)
