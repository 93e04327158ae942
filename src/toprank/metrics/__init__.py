"""Ranking metrics.

Every metric is ``f(y_true, scores, *, sample_weight=None, pos_label=None, ...)``; `evaluate`
computes them all from one sort, `interval` and `compare` say how sure a figure is.
"""

from __future__ import annotations

from toprank.metrics.condensed import evaluate_source
from toprank.metrics.daily import daily_precision_at_k
from toprank.metrics.display import RankingCurveDisplay, ranking_curve
from toprank.metrics.intervals import Comparison, Interval, compare, evaluate, interval
from toprank.metrics.lists import (
    average_precision,
    hit_rate,
    list_length_for_recall,
    local_auc,
    mean_precision,
    partial_auc,
    pos_at_top,
    precision_at_k,
    precision_at_recall,
    preference_auc,
    recall_at_precision,
    recall_precision_area,
    roc_auc,
    two_way_partial_auc,
)
from toprank.metrics.queries import (
    mean_average_precision,
    mean_reciprocal_rank,
    multiclass_auc,
    multiclass_precision,
    ndcg,
    per_class_auc,
)
from toprank.metrics.registry import METRICS, SCORERS, find_metric, get_scorer
from toprank.metrics.stability import instability

__all__ = [
    "METRICS",
    "SCORERS",
    "Comparison",
    "Interval",
    "RankingCurveDisplay",
    "average_precision",
    "compare",
    "daily_precision_at_k",
    "evaluate",
    "evaluate_source",
    "find_metric",
    "get_scorer",
    "hit_rate",
    "instability",
    "interval",
    "list_length_for_recall",
    "local_auc",
    "mean_average_precision",
    "mean_precision",
    "mean_reciprocal_rank",
    "multiclass_auc",
    "multiclass_precision",
    "ndcg",
    "partial_auc",
    "per_class_auc",
    "pos_at_top",
    "precision_at_k",
    "precision_at_recall",
    "preference_auc",
    "ranking_curve",
    "recall_at_precision",
    "recall_precision_area",
    "roc_auc",
    "two_way_partial_auc",
]


def __dir__() -> list[str]:
    return sorted(__all__)
