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

LINE_SEARCH: dict[str, Any] = {"step": "line_search", "max_leaf_step": 0.5}


def SGBAP(*, subsample: float = 0.5, **parameters: Any) -> GradientBoostingRanker:
    """Stochastic gradient boosting on the exponential surrogate of average precision.

    Frery et al. (2017), section 3.3: ``ap_exp`` on a random draw of the rows each round, a step by line
    search. The draw is what keeps one very high score from taking the whole gradient, and the bound on
    the step (no score moves by more than 0.5 before shrinkage) keeps the search from running away.

    Examples
    --------
    >>> from toprank import SGBAP
    >>> SGBAP(n_estimators=50).objective
    'ap_exp'
    """
    settings = {**LINE_SEARCH, **parameters}
    return GradientBoostingRanker("ap_exp", subsample=subsample, **settings)


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
    settings = {**LINE_SEARCH, **parameters}
    return GradientBoostingRanker(objective, subsample=subsample, **settings)


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
