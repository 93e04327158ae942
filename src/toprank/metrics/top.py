"""Metrics of the top of the list: what a short list holds, and how long it must be.

Lengths are in units of weight, so that a row of weight 2 fills two places. A cut inside a tie group
takes the expected share of each class unless told otherwise.
"""

from __future__ import annotations

from typing import Any

from toprank.docstrings import fill_docstring
from toprank.metrics import _kernels
from toprank.metrics.queries import QueryTable, mean_over_queries, query_table
from toprank.metrics.steps import Staircase, staircase
from toprank.validation import check_choice, check_length, check_share

__all__ = ["hit_rate", "list_length_for_recall", "local_auc", "pos_at_top", "precision_at_k"]

TIES = ("split", "group")


@fill_docstring
def pos_at_top(
    y_true: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Share of the positives that are scored strictly above every negative.

    Parameters
    ----------
    %(metric_input)s
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> pos_at_top([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    """
    return pos_at_top_core(staircase(y_true, scores, sample_weight, pos_label))


def pos_at_top_core(stairs: Staircase) -> float:
    """Return the share of positives of a ranked list above its first negative."""
    return _kernels.top_positives(*stairs.steps) / stairs.total_positives


@fill_docstring
def precision_at_k(
    y_true: Any,
    scores: Any,
    *,
    k: float | None = None,
    qid: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    return_skipped: bool = False,
) -> Any:
    """Share of positives among the k highest rows.

    Ties at the cut count by their expected value over the orders of the tied rows.

    Parameters
    ----------
    %(metric_input)s
    k : float, optional
        Length of the list, from 1 to the number of rows (their weight, when weighted). By default
        the number of positives: precision, recall and F1 are then the same.
    qid : array-like of shape (n_rows,), optional
        Query of each row: the mean over the queries that have a positive. A query of fewer than k
        rows is filled up with negatives, as trec_eval does. Labels may then be grades, positive above
        0.
    %(metric_options)s
    %(metric_skipped)s

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In [0, 1].

    Examples
    --------
    >>> precision_at_k([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.5
    >>> precision_at_k([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], k=1)
    1.0
    """
    if qid is None:
        stairs = staircase(y_true, scores, sample_weight, pos_label)
        value = precision_at_k_core(stairs, k=k)
        return (value, 0) if return_skipped else value
    table = query_table(y_true, scores, sample_weight, pos_label, qid)
    return mean_over_queries(precision_at_k_queries(table, k=k), return_skipped)


def precision_at_k_core(stairs: Staircase, *, k: float | None = None) -> float:
    """Return the precision of the first k rows of a ranked list."""
    size = stairs.total_positives if k is None else check_length(k)
    if size > stairs.total * (1 + 1e-12):
        raise ValueError(f"k is out of range: k={k!r}, but there are only {stairs.total:g} rows.")
    return _kernels.list_point(*stairs.steps, size, False)[0] / size


def precision_at_k_queries(table: QueryTable, *, k: float | None = None) -> Any:
    """Return the precision of the first k rows of each query."""
    size = 0.0 if k is None else check_length(k)
    return _kernels.query_values(*table.steps, _kernels.PRECISION, size)


@fill_docstring
def hit_rate(
    y_true: Any,
    scores: Any,
    *,
    top: float = 0.1,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Share of positives among the highest rows, where the list is a share of all rows.

    Parameters
    ----------
    %(metric_input)s
    top : float, default=0.1
        Length of the list as a share of all rows, in (0, 1]. A fraction of a row at its end counts
        as that fraction.
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> hit_rate([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], top=0.25)
    1.0
    """
    return hit_rate_core(staircase(y_true, scores, sample_weight, pos_label), top=top)


def hit_rate_core(stairs: Staircase, *, top: float = 0.1) -> float:
    """Return the precision of the first share of a ranked list."""
    size = check_share(top, "top") * stairs.total
    return _kernels.list_point(*stairs.steps, size, False)[0] / size


@fill_docstring
def local_auc(
    y_true: Any,
    scores: Any,
    *,
    top: float = 0.2,
    ties: str = "split",
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Local area under the ROC curve for the best share u of the rows.

    With (FPR, TPR) the point of the ROC curve where the list holds the share u of all rows:
    ``TPR * (1 - FPR) + area under the curve on [0, FPR]`` (Clemencon and Vayatis 2007). At most
    u/p for u up to the share p of positives; the whole AUC for u = 1.

    Parameters
    ----------
    %(metric_input)s
    top : float, default=0.2
        The share u, in (0, 1].
    ties : {"split", "group"}, default="split"
        When the cut falls inside a tie group: interpolate on the curve, or count the whole group
        (the value can then exceed u/p).
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> local_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], top=0.5)
    0.5
    """
    stairs = staircase(y_true, scores, sample_weight, pos_label)
    return local_auc_core(stairs, top=top, ties=ties)


def local_auc_core(stairs: Staircase, *, top: float = 0.2, ties: str = "split") -> float:
    """Return the local area of a ranked list."""
    size = check_share(top, "top") * stairs.total
    whole = check_choice(ties, "ties", TIES) == "group"
    found, passed, area = _kernels.list_point(*stairs.steps, size, whole)
    return (found * (stairs.total_negatives - passed) + area) / (
        stairs.total_positives * stairs.total_negatives
    )


@fill_docstring
def list_length_for_recall(
    y_true: Any,
    scores: Any,
    *,
    recall: float = 0.8,
    as_share: bool = False,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> float:
    """Length of the shortest list that catches at least a share of the positives.

    The list ends where a threshold can cut it: tied rows come together.

    Parameters
    ----------
    %(metric_input)s
    recall : float, default=0.8
        Share of the positives to catch, in (0, 1].
    as_share : bool, default=False
        Return the share of all rows instead of their number (their weight, when weighted).
    %(metric_options)s

    Returns
    -------
    float
        Number (or share) of rows; lower is better.

    Examples
    --------
    >>> list_length_for_recall([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], recall=0.8)
    3.0
    """
    stairs = staircase(y_true, scores, sample_weight, pos_label)
    return list_length_for_recall_core(stairs, recall=recall, as_share=as_share)


def list_length_for_recall_core(
    stairs: Staircase, *, recall: float = 0.8, as_share: bool = False
) -> float:
    """Return the length of the shortest list with a recall."""
    needed = check_share(recall, "recall") * stairs.total_positives
    length = _kernels.length_for_positives(*stairs.steps, needed)
    return length / stairs.total if as_share else length
