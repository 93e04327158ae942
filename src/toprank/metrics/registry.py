"""The list of metrics that drives intervals, reports, scorers and tests."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.metrics import classes, gain, precision, roc, top
from toprank.metrics.bootstrap import CustomSample, ListSample, TableSample
from toprank.validation import (
    binary_rows,
    check_labels,
    check_lengths,
    check_queries,
    check_weight,
    graded_rows,
)

__all__ = ["METRICS", "Metric"]

Sample = ListSample | TableSample | CustomSample


@dataclass(frozen=True)
class Metric:
    """A metric and the functions that compute it on a list that is already ranked.

    Attributes
    ----------
    name, summary : str
    function : callable
        The public function of raw arrays.
    list_core : callable or None
        Computes it on the staircase of one list of two classes.
    query_core : callable or None
        Computes it for each query of a table.
    graded : bool
        Whether `query_core` also takes a single list with more than two labels.
    signed : bool
        Whether labels may be any numbers.
    greater_is_better : bool
    """

    name: str
    summary: str
    function: Callable[..., Any]
    list_core: Callable[..., Any] | None = None
    query_core: Callable[..., Any] | None = None
    graded: bool = False
    signed: bool = False
    greater_is_better: bool = True

    @property
    def takes_queries(self) -> bool:
        return self.query_core is not None

    def parameters(self, given: dict[str, Any]) -> dict[str, Any]:
        """Parameters of the metric with their defaults; unknown ones raise."""
        core = self.list_core or self.query_core
        assert core is not None
        known = {
            name: parameter.default
            for name, parameter in inspect.signature(core).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        unknown = sorted(set(given) - set(known))
        if unknown:
            choices = ", ".join(known) or "none"
            raise TypeError(f"{self.name} has no parameter {unknown[0]!r} (it has: {choices}).")
        return {**known, **given}


_ALL = (
    Metric("roc_auc", "area under the ROC curve", roc.roc_auc, roc.roc_auc_core),
    Metric(
        "average_precision",
        "mean precision at the ranks of the positives",
        precision.average_precision,
        precision.average_precision_core,
    ),
    Metric(
        "recall_precision_area",
        "exact area under the recall-precision curve",
        precision.recall_precision_area,
        precision.recall_precision_area_core,
    ),
    Metric(
        "pos_at_top",
        "share of positives above every negative",
        top.pos_at_top,
        top.pos_at_top_core,
    ),
    Metric(
        "precision_at_k",
        "share of positives among the first k rows",
        top.precision_at_k,
        top.precision_at_k_core,
        top.precision_at_k_queries,
    ),
    Metric(
        "hit_rate",
        "share of positives among the first share of rows",
        top.hit_rate,
        top.hit_rate_core,
    ),
    Metric(
        "partial_auc",
        "area under the ROC curve over a range of false positive rates",
        roc.partial_auc,
        roc.partial_auc_core,
    ),
    Metric(
        "two_way_partial_auc",
        "area under the ROC curve over a range of false positive rates and above a recall",
        roc.two_way_partial_auc,
        roc.two_way_partial_auc_core,
    ),
    Metric(
        "local_auc",
        "area under the ROC curve of the best share of rows",
        top.local_auc,
        top.local_auc_core,
    ),
    Metric(
        "mean_precision",
        "mean precision over all list lengths",
        precision.mean_precision,
        precision.mean_precision_core,
    ),
    Metric(
        "precision_at_recall",
        "best precision at a recall",
        precision.precision_at_recall,
        precision.precision_at_recall_core,
    ),
    Metric(
        "recall_at_precision",
        "best recall at a precision",
        precision.recall_at_precision,
        precision.recall_at_precision_core,
    ),
    Metric(
        "list_length_for_recall",
        "rows to check for a recall",
        top.list_length_for_recall,
        top.list_length_for_recall_core,
        greater_is_better=False,
    ),
    Metric(
        "ndcg",
        "normalised discounted cumulative gain",
        gain.ndcg,
        gain.ndcg_core,
        gain.ndcg_queries,
        graded=True,
    ),
    Metric(
        "mean_average_precision",
        "mean over queries of average precision",
        gain.mean_average_precision,
        query_core=gain.average_precision_queries,
    ),
    Metric(
        "mean_reciprocal_rank",
        "mean over queries of 1 / rank of the first positive",
        gain.mean_reciprocal_rank,
        query_core=gain.reciprocal_rank_queries,
    ),
    Metric(
        "multiclass_auc",
        "AUC averaged over the classes",
        classes.multiclass_auc,
        query_core=classes.multiclass_auc_queries,
        graded=True,
        signed=True,
    ),
    Metric(
        "multiclass_precision",
        "precision averaged over the classes",
        classes.multiclass_precision,
        query_core=classes.multiclass_precision_queries,
        graded=True,
        signed=True,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
_BY_FUNCTION = {metric.function: metric for metric in _ALL}


def find_metric(metric: str | Callable[..., Any]) -> Metric | None:
    """Registered metric of a name or a function; None for any other function."""
    if isinstance(metric, str):
        if metric not in METRICS:
            raise ValueError(f"Unknown metric {metric!r}. Known: {', '.join(METRICS)}.")
        return METRICS[metric]
    if not callable(metric):
        raise TypeError(f"metric must be a name or a function, got {type(metric).__name__}.")
    return _BY_FUNCTION.get(metric)


def prepare(
    metric: str | Callable[..., Any],
    y_true: Any,
    scores: Any,
    sample_weight: Any,
    pos_label: Any,
    qid: Any,
    parameters: dict[str, Any],
) -> tuple[Sample, tuple[Callable[..., Any], dict[str, Any]]]:
    """Check the data once for a metric and return it with the function to run on it."""
    known = find_metric(metric)
    if known is None:
        sample = custom_sample(y_true, scores, sample_weight, pos_label, qid)
        return sample, (metric, dict(parameters))  # type: ignore[return-value]
    full = known.parameters(parameters)
    if takes_list(known, y_true, pos_label, qid):
        if qid is not None:
            raise ValueError(f"{known.name} ranks all rows as one list: it takes no qid.")
        return ListSample(binary_rows(y_true, scores, sample_weight, pos_label)), (
            known.list_core,  # type: ignore[return-value]
            full,
        )
    if qid is None and not known.graded:
        raise ValueError(f"{known.name} is a mean over queries: pass qid.")
    rows = graded_rows(y_true, scores, sample_weight, pos_label, qid, signed=known.signed)
    return TableSample(rows), (known.query_core, full)  # type: ignore[return-value]


def custom_sample(
    y_true: Any, scores: Any, sample_weight: Any, pos_label: Any, qid: Any
) -> CustomSample:
    """Rows for a function that is not in the registry."""
    labels, values = check_labels(y_true), np.asarray(scores)
    check_lengths(y_true=labels, scores=values, sample_weight=sample_weight, qid=qid)
    weight = None
    if sample_weight is not None:
        check_weight(sample_weight, len(labels))
        weight = np.asarray(sample_weight, dtype=np.float64)
    queries = None if qid is None else check_queries(qid)
    fixed = {} if pos_label is None else {"pos_label": pos_label}
    return CustomSample(labels, values, weight, queries, fixed)


def takes_list(metric: Metric, y_true: Any, pos_label: Any, qid: Any) -> bool:
    """Whether the metric runs on one list of two classes rather than on a table of queries."""
    if metric.list_core is None:
        return False
    if metric.query_core is None:
        return True
    return qid is None and not (metric.graded and is_graded(y_true, pos_label))


def is_graded(y_true: Any, pos_label: Any) -> bool:
    """Whether the labels are grades rather than two classes of which the lower gains nothing."""
    labels = check_labels(y_true)
    if pos_label is not None or labels.dtype.kind not in "iuf":
        return False
    low, high = labels.min(), labels.max()
    between = np.count_nonzero((labels > low) & (labels < high)) > 0
    return bool(between or (low > 0 and low != high))
