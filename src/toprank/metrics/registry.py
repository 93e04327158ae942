"""The registry of metrics, which drives intervals, reports and tests; and their scikit-learn scorers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from toprank.metrics import lists, queries
from toprank.metrics.bootstrap import CustomSample, Job, ListSample, TableSample
from toprank.metrics.steps import Metric
from toprank.validation import (
    binary_rows,
    check_groups,
    check_labels,
    check_lengths,
    check_queries,
    check_weight,
    graded_rows,
)

__all__ = ["METRICS", "SCORERS", "Metric", "find_metric", "get_scorer"]

RESPONSES = ("decision_function", "predict_proba")
Sample = ListSample | TableSample | CustomSample

METRICS: dict[str, Metric] = {
    metric.entry.name: metric.entry
    for metric in (
        lists.roc_auc,
        lists.average_precision,
        lists.recall_precision_area,
        lists.pos_at_top,
        lists.precision_at_k,
        lists.hit_rate,
        lists.partial_auc,
        lists.two_way_partial_auc,
        lists.local_auc,
        lists.mean_precision,
        lists.precision_at_recall,
        lists.recall_at_precision,
        lists.list_length_for_recall,
        queries.ndcg,
        queries.mean_average_precision,
        queries.mean_reciprocal_rank,
        queries.multiclass_auc,
        queries.multiclass_precision,
    )
}


# XGBoost's names of the same metrics.
SPELLINGS = {"auc": "roc_auc", "aucpr": "average_precision", "map": "mean_average_precision"}


def find_metric(metric: str | Callable[..., Any]) -> Metric | None:
    """Return the registered metric of a name or a function; None for any other function."""
    if isinstance(metric, str):
        metric = SPELLINGS.get(metric, metric)
        if metric not in METRICS:
            raise ValueError(f"Unknown metric {metric!r}. Known: {', '.join(METRICS)}.")
        return METRICS[metric]
    if not callable(metric):
        raise TypeError(f"metric must be a name or a function, got {type(metric).__name__}.")
    return next((known for known in METRICS.values() if known.function is metric), None)


def prepare(
    metric: str | Callable[..., Any],
    y_true: Any,
    scores: Any,
    sample_weight: Any,
    pos_label: Any,
    qid: Any,
    parameters: dict[str, Any],
    groups: Any = None,
) -> tuple[Sample, Job]:
    """Check the data once for a metric and return it with the function to run on it."""
    if groups is not None and qid is not None:
        raise ValueError(
            "resamples draw whole queries or whole groups: pass qid or groups, not both."
        )
    known = find_metric(metric)
    if known is None:
        assert callable(metric)
        labels, values = check_labels(y_true), np.asarray(scores)
        check_lengths(y_true=labels, scores=values, sample_weight=sample_weight, qid=qid)
        check_weight(sample_weight, len(labels))
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        checked_qid = None if qid is None else check_queries(qid)
        fixed = {} if pos_label is None else {"pos_label": pos_label}
        codes = None if groups is None else _several_groups(check_groups(groups, len(labels)))
        sample = CustomSample(labels, values, weight, checked_qid, codes)
        return sample, (metric, fixed | parameters)
    if takes_list(known, y_true, pos_label, qid):
        if qid is not None:
            raise ValueError(f"{known.name} ranks all rows as one list: it takes no qid.")
        job = known.list_job(**parameters)
        return list_sample(y_true, scores, sample_weight, pos_label, groups), job
    if groups is not None:
        raise ValueError(
            f"groups are drawn for metrics of one list with two classes; {known.name} is not."
        )
    if qid is None and known.needs_queries:
        raise ValueError(f"{known.name} is a mean over queries: pass qid.")
    job = known.query_job(**parameters)
    rows = graded_rows(y_true, scores, sample_weight, pos_label, qid, signed=known.signed)
    return TableSample(rows), job


def list_sample(
    y_true: Any, scores: Any, sample_weight: Any, pos_label: Any, groups: Any = None
) -> ListSample:
    """Check the rows of one list, and their groups where whole groups are to be drawn."""
    rows = binary_rows(y_true, scores, sample_weight, pos_label)
    if groups is None:
        return ListSample(rows)
    n_rows = len(np.asarray(scores))
    codes, kept = check_groups(groups, n_rows), check_weight(sample_weight, n_rows)[1]
    codes = codes if kept is None else np.unique(codes[kept], return_inverse=True)[1]
    return ListSample(rows, _several_groups(codes))


def _several_groups(codes: np.ndarray) -> np.ndarray:
    """Return the groups; one alone would be drawn again and again, and every interval had no width."""
    if not codes.any():
        raise ValueError("all rows are of one group: leave groups out to draw rows instead.")
    return codes


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
        return make_scorer(lists.preference_auc, response_method=RESPONSES, **parameters)
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
