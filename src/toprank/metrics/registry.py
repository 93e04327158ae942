"""The registry of metrics, which drives intervals, reports and tests; and their scikit-learn scorers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.metrics import precision, queries, roc, top
from toprank.metrics.bootstrap import CustomSample, Job, ListSample, TableSample
from toprank.metrics.steps import PublicMetric
from toprank.validation import (
    binary_rows,
    check_labels,
    check_lengths,
    check_queries,
    check_weight,
    graded_rows,
)

__all__ = ["METRICS", "SCORERS", "Metric", "find_metric", "get_scorer"]

RESPONSES = ("decision_function", "predict_proba")
Sample = ListSample | TableSample | CustomSample


@dataclass(frozen=True)
class Metric:
    """A metric and the functions that compute it on a list that is already ranked.

    Attributes
    ----------
    function : callable
        The public function of raw arrays.
    summary : str
    list_core : callable or None
        Computes it on the `Staircase` of one list of two classes.
    query_core : callable or None
        Computes it for each query of a `QueryTable`.
    graded : bool
        Whether `query_core` also takes a single list with more than two labels.
    signed : bool
        Whether labels may be any numbers.
    greater_is_better : bool
    """

    function: Callable[..., Any]
    summary: str
    list_core: Callable[..., Any] | None = None
    query_core: Callable[..., Any] | None = None
    graded: bool = False
    signed: bool = False
    greater_is_better: bool = True

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def takes_queries(self) -> bool:
        return self.query_core is not None

    def list_job(self, **given: Any) -> Job:
        """Return what a `ListSample` runs: the function of one list, and all its parameters."""
        assert self.list_core is not None
        return self.list_core, self.parameters(given)

    def query_job(self, **given: Any) -> Job:
        """Return what a `TableSample` runs: the function of all queries, and all its parameters."""
        assert self.query_core is not None
        return self.query_core, self.parameters(given)

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


def _of_list(metric: PublicMetric, summary: str, greater_is_better: bool = True) -> Metric:
    """Register a metric of one list of two classes."""
    return Metric(metric, summary, metric.core, greater_is_better=greater_is_better)


_ALL = (
    _of_list(roc.roc_auc, "area under the ROC curve"),
    _of_list(precision.average_precision, "mean precision at the ranks of the positives"),
    _of_list(precision.recall_precision_area, "exact area under the recall-precision curve"),
    _of_list(top.pos_at_top, "share of positives above every negative"),
    Metric(
        top.precision_at_k,
        "share of positives among the first k rows",
        top.precision_at_k_core,
        top.precision_at_k.core,
    ),
    _of_list(top.hit_rate, "share of positives among the first share of rows"),
    _of_list(roc.partial_auc, "area under the ROC curve over a range of false positive rates"),
    _of_list(
        roc.two_way_partial_auc,
        "area under the ROC curve over a range of false positive rates and above a recall",
    ),
    _of_list(top.local_auc, "area under the ROC curve of the best share of rows"),
    _of_list(precision.mean_precision, "mean precision over all list lengths"),
    _of_list(precision.precision_at_recall, "best precision at a recall"),
    _of_list(precision.recall_at_precision, "best recall at a precision"),
    _of_list(top.list_length_for_recall, "rows to check for a recall", greater_is_better=False),
    Metric(
        queries.ndcg,
        "normalised discounted cumulative gain",
        queries.ndcg_core,
        queries.ndcg.core,
        graded=True,
    ),
    Metric(
        queries.mean_average_precision,
        "mean over queries of average precision",
        query_core=queries.mean_average_precision.core,
    ),
    Metric(
        queries.mean_reciprocal_rank,
        "mean over queries of 1 / rank of the first positive",
        query_core=queries.mean_reciprocal_rank.core,
    ),
    Metric(
        queries.multiclass_auc,
        "AUC averaged over the classes",
        query_core=queries.multiclass_auc.core,
        graded=True,
        signed=True,
    ),
    Metric(
        queries.multiclass_precision,
        "precision averaged over the classes",
        query_core=queries.multiclass_precision.core,
        graded=True,
        signed=True,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
_BY_FUNCTION = {metric.function: metric for metric in _ALL}


def find_metric(metric: str | Callable[..., Any]) -> Metric | None:
    """Return the registered metric of a name or a function; None for any other function."""
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
) -> tuple[Sample, Job]:
    """Check the data once for a metric and return it with the function to run on it."""
    known = find_metric(metric)
    if known is None:
        assert callable(metric)
        sample = custom_sample(y_true, scores, sample_weight, pos_label, qid)
        return sample, (metric, dict(parameters))
    if takes_list(known, y_true, pos_label, qid):
        if qid is not None:
            raise ValueError(f"{known.name} ranks all rows as one list: it takes no qid.")
        job = known.list_job(**parameters)
        return ListSample(binary_rows(y_true, scores, sample_weight, pos_label)), job
    if qid is None and not known.graded:
        raise ValueError(f"{known.name} is a mean over queries: pass qid.")
    job = known.query_job(**parameters)
    rows = graded_rows(y_true, scores, sample_weight, pos_label, qid, signed=known.signed)
    return TableSample(rows), job


def custom_sample(
    y_true: Any, scores: Any, sample_weight: Any, pos_label: Any, qid: Any
) -> CustomSample:
    """Check the rows for a function that is not in the registry."""
    labels, values = check_labels(y_true), np.asarray(scores)
    check_lengths(y_true=labels, scores=values, sample_weight=sample_weight, qid=qid)
    weight = None
    if sample_weight is not None:
        check_weight(sample_weight, len(labels))
        weight = np.asarray(sample_weight, dtype=np.float64)
    checked = None if qid is None else check_queries(qid)
    fixed = {} if pos_label is None else {"pos_label": pos_label}
    return CustomSample(labels, values, weight, checked, fixed)


def takes_list(metric: Metric, y_true: Any, pos_label: Any, qid: Any) -> bool:
    """Return whether the metric runs on one list of two classes rather than on a table of queries."""
    if metric.list_core is None:
        return False
    if metric.query_core is None:
        return True
    return qid is None and not (metric.graded and is_graded(y_true, pos_label))


def is_graded(y_true: Any, pos_label: Any) -> bool:
    """Return whether the labels are grades rather than two classes of which the lower gains nothing."""
    labels = check_labels(y_true)
    if pos_label is not None or labels.dtype.kind not in "iuf":
        return False
    low, high = labels.min(), labels.max()
    between = np.count_nonzero((labels > low) & (labels < high)) > 0
    return bool(between or (low > 0 and low != high))


# -- scorers of scikit-learn -------------------------------------------------------------------------


def get_scorer(name: str, **parameters: Any) -> Any:
    """Make a scorer of a metric.

    Scorers of metrics that know queries ask for `qid` through metadata routing: enable it with
    ``sklearn.set_config(enable_metadata_routing=True)`` and hand `qid` to ``fit`` of the search.
    Those that are lower for better rankings change their sign, as scikit-learn expects.

    Parameters
    ----------
    name : str
        Name of a metric, a key of `SCORERS`.
    **parameters
        Parameters of the metric, such as ``k=100``.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> model = LogisticRegression().fit(X, y)
    >>> round(get_scorer("precision_at_k", k=10)(model, X, y), 2)
    1.0
    """
    from sklearn import config_context
    from sklearn.metrics import make_scorer  # slow to import, and only needed here

    if name == "preference_auc":
        return make_scorer(roc.preference_auc, response_method=RESPONSES, **parameters)
    if name not in METRICS:
        raise ValueError(f"Unknown metric {name!r}. Known: {', '.join(SCORERS)}.")
    metric = METRICS[name]
    metric.parameters(parameters)  # raises where one is unknown
    scorer = make_scorer(
        metric.function,
        response_method=RESPONSES,
        greater_is_better=metric.greater_is_better,
        **parameters,
    )
    if metric.takes_queries:
        with config_context(enable_metadata_routing=True):
            scorer = scorer.set_score_request(qid=True)
    return scorer


class _Scorers(Mapping[str, Any]):
    """Scorers by name, each made when it is asked for.

    Libraries that extend scikit-learn's metadata routing when they are imported (imbalanced-learn) break
    routed scorers that were made before; one made on demand knows what is there.
    """

    def __getitem__(self, name: str) -> Any:
        if name not in list(self):
            raise KeyError(name)
        return get_scorer(name)

    def __iter__(self) -> Iterator[str]:
        return iter([*METRICS, "preference_auc"])

    def __len__(self) -> int:
        return len(METRICS) + 1


SCORERS: Mapping[str, Any] = _Scorers()
