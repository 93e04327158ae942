"""The published methods by their own names."""

from __future__ import annotations

from typing import Any

from toprank import objectives
from toprank.boosting.ranker import GradientBoostingRanker

__all__ = ["SGBAP", "LambdaMART", "SGBAPsig"]

LAMBDA_METRICS = {
    "auc": "lambda_auc",
    "mauc": "lambda_mauc",
    "map": "lambda_map",
    "ndcg": "lambda_ndcg",
    "mrr": "lambda_mrr",
    "precision": "lambda_precision",
}

# The softmax leaves little curvature to positives that are not high yet: penalties of the usual size
# would keep their leaves at zero.
FREE_LEAVES: dict[str, Any] = {"min_child_weight": 1e-3, "reg_lambda": 1e-3, "max_leaf_step": 1.0}


def SGBAP(*, subsample: float = 0.5, **parameters: Any) -> GradientBoostingRanker:
    """Stochastic gradient boosting on the exponential surrogate of average precision.

    Frery et al. (2017), section 3.3: ``ap_exp`` on a random draw of the rows each round, which keeps one
    very high score from taking the whole gradient. Leaves are Newton's, with hardly any penalty and none
    above 1; a line search as in the paper (``step="line_search"``) moves mostly the leaf that is
    highest already.

    The softmax soon looks at nothing but the rows on top, so what early trees have not told apart, late
    ones hardly will. On wide, sparse rows let them grow to the end, as in a forest:
    ``SGBAP(max_depth=200, max_leaves=0, colsample_bynode=0.1)`` is what cross-validation chose on every
    split of w8a, before trees of 31 leaves or of depth 8 (``experiments/sgbap.py``).

    Examples
    --------
    >>> from toprank import SGBAP
    >>> SGBAP(n_estimators=50).objective
    'ap_exp'
    """
    return GradientBoostingRanker("ap_exp", subsample=subsample, **{**FREE_LEAVES, **parameters})


def SGBAPsig(
    *, alpha: float = 1.0, subsample: float = 0.5, **parameters: Any
) -> GradientBoostingRanker:
    """Stochastic gradient boosting on the sigmoid surrogate of average precision.

    Frery et al. (2017), section 3.2, with their term of 1/2 for a positive compared with itself.

    Examples
    --------
    >>> from toprank import SGBAPsig
    >>> SGBAPsig(alpha=2.0).objective.self_term
    0.5
    """
    objective = objectives.get("ap_sigmoid", alpha=alpha, self_term=0.5)
    return GradientBoostingRanker(objective, subsample=subsample, **parameters)


def LambdaMART(metric: str = "map", **parameters: Any) -> GradientBoostingRanker:
    """Trees on lambda gradients of a ranking metric.

    Burges (2010); for the area under the ROC curve and its multi-class form, Welleck (2016), Efficient
    AUC optimization for information ranking applications.

    Parameters
    ----------
    metric : {"auc", "mauc", "map", "ndcg", "mrr", "precision"}, default="map"
    **parameters
        Those of `GradientBoostingRanker`.

    Examples
    --------
    >>> from toprank import LambdaMART
    >>> LambdaMART("auc").objective
    'lambda_auc'
    """
    if metric not in LAMBDA_METRICS:
        raise ValueError(f"unknown metric {metric!r}; known: {', '.join(LAMBDA_METRICS)}")
    return GradientBoostingRanker(LAMBDA_METRICS[metric], **parameters)
