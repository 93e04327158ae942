"""Metrics of the top of the list: what a short list holds, and how long it must be.

Lengths are in units of weight, so that a row of weight 2 fills two places. A cut inside a tie group
takes the expected share of each class unless told otherwise.
"""

from __future__ import annotations

import numpy as np

from toprank.metrics import _kernels
from toprank.metrics.queries import QueryTable, query_metric
from toprank.metrics.steps import ROUNDING, Staircase, list_metric
from toprank.validation import check_choice, check_length, check_share

__all__ = ["hit_rate", "list_length_for_recall", "local_auc", "pos_at_top", "precision_at_k"]

TIES = ("split", "group")


@list_metric
def pos_at_top(stairs: Staircase) -> float:
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
    caught = stairs.positives_caught[stairs.negatives_flagged == 0]
    return float(caught.max(initial=0.0)) / stairs.total_positives


def precision_at_k_core(stairs: Staircase, *, k: float | None = None) -> float:
    """Return the precision of the first k rows of a ranked list."""
    size = stairs.total_positives if k is None else check_length(k)
    if size > stairs.total * (1 + 1e-12):
        raise ValueError(f"k is out of range: k={k!r}, but there are only {stairs.total:g} rows.")
    return _kernels.list_point(*stairs.steps, size, False)[0] / size


@query_metric(without=precision_at_k_core)
def precision_at_k(table: QueryTable, *, k: float | None = None) -> np.ndarray:
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
    size = 0.0 if k is None else check_length(k)
    return _kernels.query_values(*table.steps, _kernels.PRECISION, size)


@list_metric
def hit_rate(stairs: Staircase, *, top: float = 0.1) -> float:
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
    size = check_share(top, "top") * stairs.total
    return _kernels.list_point(*stairs.steps, size, False)[0] / size


@list_metric
def local_auc(stairs: Staircase, *, top: float = 0.2, ties: str = "split") -> float:
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
    size = check_share(top, "top") * stairs.total
    whole = check_choice(ties, "ties", TIES) == "group"
    found, passed, area = _kernels.list_point(*stairs.steps, size, whole)
    return (found * (stairs.total_negatives - passed) + area) / (
        stairs.total_positives * stairs.total_negatives
    )


@list_metric
def list_length_for_recall(
    stairs: Staircase, *, recall: float = 0.8, as_share: bool = False
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
    needed = check_share(recall, "recall") * stairs.total_positives * (1 - ROUNDING)
    last = int(np.argmax(stairs.positives_caught >= needed))
    length = float(stairs.positives_caught[last] + stairs.negatives_flagged[last])
    return length / stairs.total if as_share else length
