"""Metrics of many lists at once: queries with their own rankings, and graded labels.

Each is the mean over the queries that hold a positive row; the others are left out, and
``return_skipped=True`` says how many they were.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toprank.metrics import _kernels, _query_kernels
from toprank.metrics._lists import QueryTable, Staircase, mean_over_queries, query_table
from toprank.validation import check_choice, check_length

__all__ = ["mean_average_precision", "mean_reciprocal_rank", "ndcg"]

GAINS = ("exponential", "linear")


def ndcg(
    y_true: Any,
    scores: Any,
    *,
    k: float | None = None,
    qid: Any = None,
    gain: str = "exponential",
    sample_weight: Any = None,
    pos_label: Any = None,
    return_skipped: bool = False,
) -> Any:
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
    return_skipped : bool, default=False
        Return also how many queries were left out.

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
    table = query_table(y_true, scores, sample_weight, pos_label, qid)
    return mean_over_queries(ndcg_queries(table, k=k, gain=gain), return_skipped)


def ndcg_core(stairs: Staircase, *, k: float | None = None, gain: str = "exponential") -> float:
    """NDCG of a ranked list of two classes (both kinds of gain are then 0 and 1)."""
    check_choice(gain, "gain", GAINS)
    return _kernels.binary_gain(*stairs.steps, math.inf if k is None else check_length(k))


def ndcg_queries(
    table: QueryTable, *, k: float | None = None, gain: str = "exponential"
) -> np.ndarray:
    """NDCG of each query; NaN where no row is relevant."""
    gains = table.levels
    if check_choice(gain, "gain", GAINS) == "exponential":
        if table.levels[-1] > 1000:
            raise ValueError(
                f"A relevance of {table.levels[-1]:g} is too large for the gain 2**relevance - 1: "
                "use small grades or gain='linear'."
            )
        gains = np.exp2(table.levels) - 1
    size = math.inf if k is None else check_length(k)
    return _query_kernels.query_gain(
        table.starts, table.scores, table.codes, table.weight, gains, size
    )


def mean_average_precision(
    y_true: Any,
    scores: Any,
    *,
    qid: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    return_skipped: bool = False,
) -> Any:
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
    return_skipped : bool, default=False
        Return also how many queries were left out.

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In (0, 1].

    Examples
    --------
    >>> mean_average_precision([1, 0, 0, 1], [0.9, 0.5, 0.8, 0.3], qid=[1, 1, 2, 2])
    0.75
    """
    table = query_table(y_true, scores, sample_weight, pos_label, qid)
    return mean_over_queries(average_precision_queries(table), return_skipped)


def average_precision_queries(table: QueryTable) -> np.ndarray:
    """Average precision of each query; NaN where no row is positive."""
    return _query_kernels.query_average_precision(*table.steps)


def mean_reciprocal_rank(
    y_true: Any,
    scores: Any,
    *,
    qid: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    return_skipped: bool = False,
) -> Any:
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
    table = query_table(y_true, scores, sample_weight, pos_label, qid)
    return mean_over_queries(reciprocal_rank_queries(table), return_skipped)


def reciprocal_rank_queries(table: QueryTable) -> np.ndarray:
    """Reciprocal rank of the first positive of each query; NaN where no row is positive."""
    return _query_kernels.query_reciprocal_rank(*table.steps)
