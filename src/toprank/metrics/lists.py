"""Metrics of one list of two classes: areas under its curves, precision along it, and its top.

The ROC curve joins the points of all thresholds by straight lines, so a pair of equal scores counts one
half. Lengths are in units of weight, so a row of weight 2 fills two places. A cut inside a tie group takes
the expected share of each class, unless a metric says that it reads only where a threshold can cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.metrics import _kernels
from toprank.metrics.queries import QueryTable, query_metric
from toprank.metrics.steps import Staircase, list_metric
from toprank.validation import (
    check_choice,
    check_labels,
    check_length,
    check_lengths,
    check_range,
    check_scores,
    check_share,
    check_weight,
)

__all__ = [
    "average_precision",
    "hit_rate",
    "list_length_for_recall",
    "local_auc",
    "mean_precision",
    "partial_auc",
    "pos_at_top",
    "precision_at_k",
    "precision_at_recall",
    "preference_auc",
    "recall_at_precision",
    "recall_precision_area",
    "roc_auc",
    "two_way_partial_auc",
]

ROUNDING = 1e-12  # shares such as .55 of 100 rows come out as 55.00000000000001


@list_metric("area under the ROC curve")
def roc_auc(stairs: Staircase) -> float:
    """Area under the ROC curve.

    The mean over all pairs of a positive and a negative of 1 if the positive has the higher score,
    1/2 if the two scores are equal, and 0 otherwise.

    Parameters
    ----------
    %(metric_input)s
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1]; 0.5 for constant scores.

    Examples
    --------
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    area = _kernels.roc_area(*stairs.steps, 0.0, stairs.total_negatives, 0.0)
    return area / (stairs.total_positives * stairs.total_negatives)


@list_metric("area under the ROC curve over a range of false positive rates")
def partial_auc(
    stairs: Staircase, *, fpr: tuple[float, float] = (0.0, 0.1), standardize: str | None = None
) -> float:
    """Area under the ROC curve for false positive rates in a range, divided by its width.

    Parameters
    ----------
    %(metric_input)s
    fpr : tuple (a, b), default=(0, 0.1)
        Range of false positive rates, 0 <= a < b <= 1.
    standardize : {None, "mcclish"}, default=None
        With "mcclish", map the area A so that chance gives 1/2 and a perfect order 1
        (McClish 1989): ``(1 + (A - m) / (1 - m)) / 2``, where ``m = (a + b) / 2`` is the
        area of the diagonal.
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1]; the average true positive rate over the range when not standardised.

    Examples
    --------
    >>> y, scores = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    >>> partial_auc(y, scores, fpr=(0, 0.5))
    0.5
    >>> round(partial_auc(y, scores, fpr=(0, 0.5), standardize="mcclish"), 4)
    0.6667
    """
    low, high = check_range(fpr)
    check_choice(standardize, "standardize", (None, "mcclish"))
    area = _clipped_area(stairs, low, high, 0.0)
    if standardize is None:
        return area
    chance = (low + high) / 2
    return (1 + (area - chance) / (1 - chance)) / 2


@list_metric("area under the ROC curve over a range of false positive rates and above a recall")
def two_way_partial_auc(
    stairs: Staircase, *, fpr: tuple[float, float] = (0.0, 0.3), min_tpr: float = 0.5
) -> float:
    """Area under the ROC curve within a range of false positive rates and above a minimum recall.

    ``integral of max(TPR - min_tpr, 0) over the FPR range / ((b - a) * (1 - min_tpr))``: 1 when
    every positive precedes every negative, 0 when the curve is below `min_tpr` all over the range
    (Yang, Lu, Lyu and Hu, "Two-way partial AUC and its properties", 2019, here divided by its
    largest value).

    Parameters
    ----------
    %(metric_input)s
    fpr : tuple (a, b), default=(0, 0.3)
        Range of false positive rates.
    min_tpr : float, default=0.5
        Smallest true positive rate of interest, in [0, 1).
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> two_way_partial_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], fpr=(0, 1), min_tpr=0.5)
    0.5
    """
    low, high = check_range(fpr)
    floor = check_share(min_tpr, "min_tpr", zero=True)
    return _clipped_area(stairs, low, high, floor) / (1 - floor)


def _clipped_area(stairs: Staircase, low: float, high: float, floor: float) -> float:
    """Return the area over `floor` between two false positive rates, divided by their distance."""
    positives, negatives = stairs.total_positives, stairs.total_negatives
    area = _kernels.roc_area(*stairs.steps, low * negatives, high * negatives, floor * positives)
    return area / (positives * negatives * (high - low))


def preference_auc(
    y_true: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Share of preferred pairs that are scored in the preferred order; equal scores count half.

    For triples (x, x', z) where z says which of the two rows is preferred.

    Parameters
    ----------
    y_true : array-like of shape (n_pairs,)
        1 (or True) when the first row of the pair is preferred, -1 (or False) when the second is,
        0 for no preference: such pairs are left out. With `pos_label`, the first row is preferred
        where ``y_true == pos_label``, the second elsewhere.
    scores : array-like of shape (n_pairs, 2) or (n_pairs,)
        Scores of the two rows of each pair, or their difference (first minus second).
    sample_weight : array-like of shape (n_pairs,), optional
        Weights >= 0 of the pairs.
    pos_label : label, optional
        See `y_true`.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> preference_auc([1, -1, 1], [[0.9, 0.1], [0.3, 0.2], [0.5, 0.5]])
    0.5
    """
    direction, margin, weight = _preferences(y_true, scores, sample_weight, pos_label)
    return float(np.average((np.sign(direction * margin) + 1) / 2, weights=weight))


def _preferences(
    y_true: Any, scores: Any, sample_weight: Any, pos_label: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the direction (+1 or -1) and signed margin of every pair that has a preference."""
    labels, values = check_labels(y_true), np.asarray(scores)
    check_lengths(y_true=labels, scores=values, sample_weight=sample_weight)
    if values.ndim == 2 and values.shape[1] == 2:
        first, second = check_scores(values[:, 0]), check_scores(values[:, 1])
        margin = (first > second).astype(float) - (first < second)  # no overflow, no rounding
    else:
        margin = check_scores(values)
    if pos_label is not None:
        direction = np.where(labels == pos_label, 1.0, -1.0)
    elif labels.dtype.kind == "b":
        direction = np.where(labels, 1.0, -1.0)
    elif labels.dtype.kind in "iuf" and np.isin(labels, (-1, 0, 1)).all():
        direction = labels.astype(float)
    else:
        raise ValueError("Preferences must be -1, 0 or 1, or booleans, or come with pos_label.")
    weight, kept = check_weight(sample_weight, len(labels))
    if kept is not None:
        direction, margin = direction[kept], margin[kept]
    stated = direction != 0
    if not stated.any():
        raise ValueError("No pair has a preference: every label is 0 (or has weight 0).")
    return direction[stated], margin[stated], None if weight is None else weight[stated]


# -- precision along the list -----------------------------------------------------------------------


@list_metric("mean precision at the ranks of the positives")
def average_precision(stairs: Staircase) -> float:
    """Average precision.

    ``(1/P) * sum over positives i of C(k_i) / k_i``, where ``k_i`` is the number of rows scored at
    least as high as row i and ``C(k_i)`` the number of positives among them: a tie group shares the
    rank of its end. Equals :func:`sklearn.metrics.average_precision_score`.

    Parameters
    ----------
    %(metric_input)s
    %(metric_options)s

    Returns
    -------
    float
        In (0, 1]; the share of positives for constant scores.

    Examples
    --------
    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return _kernels.precision_sum(*stairs.steps)


@list_metric("exact area under the recall-precision curve")
def recall_precision_area(stairs: Staircase) -> float:
    r"""Exact area under the recall-precision curve.

    Between two thresholds A and B the numbers of true and false positives grow in proportion
    (Davis and Goadrich 2006), so precision follows a hyperbola. With the slope
    ``s = (FP_B - FP_A)/(TP_B - TP_A)``, ``a = 1 + s`` and ``b = FP_A - s * TP_A`` the area is
    ``[(TP_B - TP_A)/a - b/a**2 * log1p(a * (TP_B - TP_A)/(TP_A + FP_A))] / P``. The curve starts
    at the empty list, with constant precision up to the first threshold, and ends at the whole
    list. It is XGBoost's ``aucpr``.

    Parameters
    ----------
    %(metric_input)s
    %(metric_options)s

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> round(recall_precision_area([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.7973
    """
    return _kernels.interpolated_precision_area(*stairs.steps)


@list_metric("mean precision over all list lengths")
def mean_precision(stairs: Staircase) -> float:
    """Mean over all list lengths k of the precision of the k highest rows.

    Inside a tie group the precision is its expected value over the orders of the tied rows. What
    some papers print under the name of average precision is this mean, which stays well below 1
    even for a perfect order. With weights that are not whole numbers the sums of 1/k that arise are
    continued by the digamma function.

    Parameters
    ----------
    %(metric_input)s
    %(metric_options)s

    Returns
    -------
    float
        In (0, 1).

    Examples
    --------
    >>> round(mean_precision([1, 0, 0, 0], [4, 3, 2, 1]), 4)  # (1 + 1/2 + 1/3 + 1/4) / 4
    0.5208
    """
    return _kernels.precision_over_lengths(*stairs.steps)


@list_metric("best precision at a recall")
def precision_at_recall(stairs: Staircase, *, recall: float = 0.8) -> float:
    """Highest precision of a threshold that catches at least a share of the positives.

    Parameters
    ----------
    %(metric_input)s
    recall : float, default=0.8
        Share of the positives to catch, in (0, 1].
    %(metric_options)s

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> round(precision_at_recall([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], recall=0.8), 4)
    0.6667
    """
    needed = check_share(recall, "recall") * stairs.total_positives * (1 - ROUNDING)
    return float(stairs.precisions[stairs.positives_caught >= needed].max())


@list_metric("best recall at a precision")
def recall_at_precision(stairs: Staircase, *, precision: float = 0.5) -> float:
    """Highest share of the positives that a threshold catches at a given precision or better.

    Parameters
    ----------
    %(metric_input)s
    precision : float, default=0.5
        Smallest precision allowed, in (0, 1].
    %(metric_options)s

    Returns
    -------
    float
        In [0, 1]; 0 when no threshold reaches the precision.

    Examples
    --------
    >>> recall_at_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], precision=0.9)
    0.5
    """
    needed = check_share(precision, "precision") * (1 - ROUNDING)
    caught = stairs.positives_caught[stairs.precisions >= needed]
    return float(caught.max(initial=0.0)) / stairs.total_positives


# -- the top of the list ----------------------------------------------------------------------------


@list_metric("share of positives above every negative")
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


@query_metric("share of positives among the first k rows", list_core=precision_at_k_core)
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


@list_metric("share of positives among the first share of rows")
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


@list_metric("area under the ROC curve of the best share of rows")
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
    whole = check_choice(ties, "ties", ("split", "group")) == "group"
    found, passed, area = _kernels.list_point(*stairs.steps, size, whole)
    return (found * (stairs.total_negatives - passed) + area) / (
        stairs.total_positives * stairs.total_negatives
    )


@list_metric("rows to check for a recall", greater_is_better=False)
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
