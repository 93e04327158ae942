"""Precision along the list: averages over ranks, areas, and precision at a given recall.

A tie group is taken whole: precision is read where a threshold can cut the list. Only
:func:`mean_precision` looks inside tie groups, where it takes the expected value over their orders.
"""

from __future__ import annotations

from toprank.metrics import _kernels
from toprank.metrics.steps import ROUNDING, Staircase, list_metric
from toprank.validation import check_share

__all__ = [
    "average_precision",
    "mean_precision",
    "precision_at_recall",
    "recall_at_precision",
    "recall_precision_area",
]


@list_metric
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


@list_metric
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


@list_metric
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


@list_metric
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


@list_metric
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
