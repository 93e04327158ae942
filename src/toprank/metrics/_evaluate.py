"""All metrics of one list of scores, as a plain dict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from toprank.metrics.bootstrap import ListSample, TableSample, seed_of
from toprank.metrics._lists import mean_over_queries
from toprank.metrics.registry import METRICS, Metric, find_metric, is_graded, takes_list
from toprank.metrics.intervals import (
    check_level,
    check_resamples,
    delong_interval,
    has_delong,
    percentiles,
)
from toprank.validation import binary_rows, check_choice, graded_rows

__all__ = ["evaluate"]

INTERVALS = ("all", "bootstrap", "delong", None)


def evaluate(
    y_true: Any,
    scores: Any,
    *,
    metrics: Iterable[str] | None = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    qid: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    intervals: str | None = "all",
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Compute many metrics from one sort, with confidence intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes; or grades >= 0, for which the metrics of grades are computed.
    scores : array-like of shape (n_rows,)
        Finite scores, higher for rows more likely positive.
    metrics : iterable of str, optional
        Names of the metrics; by default all that fit the data.
    parameters : dict of dict, optional
        Parameters by metric, such as ``{"precision_at_k": {"k": 100}}``.
    qid : array-like of shape (n_rows,), optional
        Query of each row. Metrics that know queries become means over them; the others still rank
        all rows as one list.
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0: weight 2 is the row twice, weight 0 the row absent.
    pos_label : label, optional
        The positive class; by default the greater of two labels.
    intervals : {"all", "bootstrap", "delong", None}, default="all"
        Which intervals: "bootstrap" for every metric; "delong" for `roc_auc` only; "all" takes
        DeLong for `roc_auc` and the bootstrap for the rest; None leaves them out.
    level : float, default=0.95
        Confidence level.
    n_resamples : int, default=1000
        Number of bootstrap resamples; 0 leaves the bootstrap out.
    random_state : int, Generator, RandomState or None, default=0
        Fixes the resamples. The answer does not depend on `n_jobs`.
    n_jobs : int, optional
        Threads for the bootstrap; None is one, -1 all processors.

    Returns
    -------
    dict
        From the name of each metric to a dict of plain values, ready for JSON: `value`, `low` and
        `high` (None without an interval), `method` ("bootstrap", "delong" or None), `parameters`,
        and for means over queries `n_queries` (scored) and `n_skipped` (left out of the mean).

    Examples
    --------
    >>> report = evaluate([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], intervals=None)
    >>> report["roc_auc"]["value"], report["pos_at_top"]["value"]
    (0.75, 0.5)
    """
    check_choice(intervals, "intervals", INTERVALS)
    level = check_level(level)
    chosen = _choose_metrics(metrics, y_true, pos_label, qid)
    given = _check_parameters(parameters, chosen)
    data = (y_true, scores, sample_weight, pos_label)
    count = check_resamples(n_resamples) if n_resamples and intervals != "delong" else 0
    drawing = (count if intervals else 0, seed_of(random_state), n_jobs)

    on_list = [metric for metric in chosen if takes_list(metric, y_true, pos_label, qid)]
    on_table = [metric for metric in chosen if metric not in on_list]
    report: dict[str, dict[str, Any]] = {}
    if on_list:
        sample = ListSample(binary_rows(*data))
        report |= _report_list(sample, on_list, given, intervals, level, drawing)
    if on_table:
        signed = all(metric.signed for metric in on_table)
        table = TableSample(graded_rows(*data, qid, signed=signed))
        report |= _report_table(table, on_table, given, level, drawing)
    return {metric.name: report[metric.name] for metric in chosen}


def _report_list(
    sample: ListSample,
    chosen: list[Metric],
    given: dict[str, dict[str, Any]],
    intervals: str | None,
    level: float,
    drawing: tuple[int, int, int | None],
) -> dict[str, dict[str, Any]]:
    """Entries of the metrics of one list."""
    jobs = {metric.name: (metric.list_core, given[metric.name]) for metric in chosen}
    report = {name: _entry(sample.value(job), job[1]) for name, job in jobs.items()}  # type: ignore[arg-type]
    if intervals in ("all", "delong"):
        for name, (core, _) in jobs.items():
            if has_delong(sample, core):  # type: ignore[arg-type]
                low, high = delong_interval(sample, level)
                report[name] |= {"low": low, "high": high, "method": "delong"}
    waiting = {name: job for name, job in jobs.items() if report[name]["method"] is None}
    _add_bootstrap(report, sample, waiting, level, drawing)
    return report


def _report_table(
    sample: TableSample,
    chosen: list[Metric],
    given: dict[str, dict[str, Any]],
    level: float,
    drawing: tuple[int, int, int | None],
) -> dict[str, dict[str, Any]]:
    """Entries of the metrics of queries or grades."""
    jobs = {metric.name: (metric.query_core, given[metric.name]) for metric in chosen}
    report = {}
    for name, job in jobs.items():
        values = sample.query_values(job)  # type: ignore[arg-type]
        mean, n_skipped = mean_over_queries(values, return_skipped=True)
        report[name] = _entry(mean, job[1])
        if sample.rows.qid is not None:
            report[name] |= {"n_queries": len(values) - n_skipped, "n_skipped": n_skipped}
    _add_bootstrap(report, sample, jobs, level, drawing)
    return report


def _add_bootstrap(
    report: dict[str, dict[str, Any]],
    sample: Any,
    jobs: Mapping[str, Any],
    level: float,
    drawing: tuple[int, int, int | None],
) -> None:
    """Fill in percentile intervals; every resample is drawn once for all metrics."""
    if not jobs or drawing[0] == 0:
        return
    distribution = sample.distribution(list(jobs.values()), *drawing)
    for name, values in zip(jobs, distribution, strict=True):
        low, high = percentiles(values, level)
        report[name] |= {"low": low, "high": high, "method": "bootstrap"}


def _entry(value: float, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """One metric without an interval, in types that JSON knows."""
    plain = {name: _plain(setting) for name, setting in parameters.items()}
    return {"value": float(value), "low": None, "high": None, "method": None, "parameters": plain}


def _plain(setting: Any) -> Any:
    if isinstance(setting, tuple | list | np.ndarray):
        return [float(bound) for bound in setting]
    return setting.item() if isinstance(setting, np.generic) else setting


def _choose_metrics(
    metrics: Iterable[str] | None, y_true: Any, pos_label: Any, qid: Any
) -> list[Metric]:
    """The named metrics, or all that fit the labels and queries."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if metrics is not None:
        named = [find_metric(name) for name in dict.fromkeys(metrics)]
        for metric in named:
            if metric is None:
                raise TypeError("metrics must be names of metrics, see toprank.metrics.METRICS.")
            if qid is None and metric.list_core is None and not metric.graded:
                raise ValueError(f"{metric.name} is a mean over queries: pass qid.")
        return named  # type: ignore[return-value]
    graded = is_graded(y_true, pos_label)
    return [metric for metric in METRICS.values() if _fits(metric, graded, qid is not None)]


def _fits(metric: Metric, graded: bool, queries: bool) -> bool:
    if metric.signed:  # on two classes these only repeat the AUC and the precision at k
        return graded
    if metric.list_core is None or graded:
        return metric.takes_queries and (queries or metric.graded)
    return True


def _check_parameters(
    parameters: Mapping[str, Mapping[str, Any]] | None, chosen: list[Metric]
) -> dict[str, dict[str, Any]]:
    given = dict(parameters or {})
    unknown = sorted(set(given) - {metric.name for metric in chosen})
    if unknown:
        raise ValueError(f"parameters names {unknown[0]!r}, which is not among the metrics.")
    return {metric.name: metric.parameters(dict(given.get(metric.name, {}))) for metric in chosen}
