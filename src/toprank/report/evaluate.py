"""All that a report shows, as one dict of plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from toprank import metrics
from toprank.metrics.bootstrap import seed_of
from toprank.metrics.intervals import check_level, check_resamples, percentiles
from toprank.report.curves import FALSE_POSITIVE_RATES, RECALLS, band, curve_points, other_curves
from toprank.report.frames import alert_rows, importance_rows, top_rows
from toprank.report.history import quality_over_time
from toprank.report.lists import (
    MULTIPLES,
    bigger_lists,
    check_list_lengths,
    length_grid,
    list_table,
    money_table,
)
from toprank.report.models import PARAMETERS, compare_on_rows, from_comparison
from toprank.report.plain import plain
from toprank.report.resamples import Readings, Resampler, n_affordable, read_resamples
from toprank.report.rows import ReportRows, check_rows

__all__ = ["evaluate"]

SCHEMA = 1
ROW_DRAWS = 2e8  # rows drawn to compare one model, beyond 200 resamples


def evaluate(
    y: Any,
    scores: Any,
    *,
    model: str = "model",
    scores_by_model: Mapping[str, Any] | None = None,
    comparison: Mapping[str, Any] | None = None,
    ids: Any = None,
    alerts: Any = None,
    importance: Any = None,
    time: Any = None,
    value: Any = None,
    cost_of_check: float | None = None,
    currency: str = "",
    lengths: Iterable[int] = (50, 100, 200),
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
    sample_weight: Any = None,
    pos_label: Any = None,
    title: str | None = None,
    created: str | None = None,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Compute everything that the page of a model shows.

    Scores should come from rows that the model has not learned from. Intervals are percentiles of a
    bootstrap that draws the rows of each class with replacement; on millions of rows fewer resamples
    are drawn (never fewer than 200), and the dict says how many.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of two classes.
    scores : array-like of shape (n_rows,)
        Finite scores of the model, higher for rows more likely positive.
    model : str, default="model"
        Its name.
    scores_by_model : dict, optional
        Scores of the same rows by other models, by name: for the curves, and for the comparison when
        `comparison` is not given.
    comparison : dict, optional
        ``ModelComparison.as_dict()`` of `toprank.selection`.
    ids : array-like of shape (n_rows,), optional
        Names of the rows, to find the truth of the alerts.
    alerts : DataFrame, optional
        What `toprank.shortlist` returned. By default the highest rows, without reasons.
    importance : table or dict, optional
        Features and what they contribute.
    time : array-like of shape (n_rows,), optional
        Time of each row, as dates or numbers: adds quality over time.
    value : array-like of shape (n_rows,), optional
        Money that is saved when a positive row is checked.
    cost_of_check : float, optional
        Money that each check costs.
    currency : str, default=""
        Sign written before money.
    lengths : iterable of int, default=(50, 100, 200)
        List lengths that the first screen shows.
    level : float, default=0.95
        Confidence level of all intervals.
    n_resamples : int, default=1000
        Bootstrap resamples.
    random_state : int, Generator, RandomState or None, default=0
        Fixes the resamples.
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0; lengths are then in units of weight.
    pos_label : label, optional
        The positive class; by default the greater of two labels.
    title, created : str, optional
        Heading and date of the page.
    n_jobs : int, optional
        Threads for the comparison of models; None is one, -1 all processors.

    Returns
    -------
    dict
        Ready for JSON: `metrics` (as `toprank.metrics.evaluate`), `lists` (what a list of each length
        holds, with intervals), `lengths`, `bigger`, `curves`, `bands`, `models`, `time`,
        `importance`, `alerts`, `data`, and what names the report.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> y = np.arange(1000) < 100
    >>> scores = generator.normal(size=1000) + 2 * y
    >>> report = evaluate(y, scores, model="demo", n_resamples=200)
    >>> place = report["lists"]["length"].index(50)
    >>> report["lists"]["hits"]["value"][place]
    41.0
    """
    level, seed = check_level(level), seed_of(random_state)
    count = check_resamples(n_resamples)
    rows = check_rows(
        y,
        scores,
        model=model,
        scores_by_model=scores_by_model,
        ids=ids,
        time=time,
        value=value,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    shown = check_list_lengths(lengths, rows.total)
    cost = _check_cost(cost_of_check)
    grid = length_grid(rows.total, [*shown, *(many * shown[-1] for many in MULTIPLES)])
    resampler = Resampler.of(rows.positive, rows.scores[rows.model], rows.weight, rows.value)
    figures, jobs = _metrics(rows, level)
    n_drawn = n_affordable(count, resampler.cost)
    drawn = read_resamples(resampler, grid, jobs, n_drawn, seed)
    lists = _lists(resampler, rows, grid, drawn, cost, level)
    by_row = n_affordable(count, len(rows.positive), ROW_DRAWS)
    return {
        "schema": SCHEMA,
        "title": plain(title) or f"How good is {rows.model}?",
        "model": plain(rows.model),
        "created": plain(created),
        "currency": plain(currency),
        "cost_of_check": cost,
        "level": level,
        "data": _data(rows),
        "metrics": _with_intervals(figures, drawn, level),
        "lengths": shown,
        "lists": lists,
        "bigger": bigger_lists(lists, shown),
        "curves": _curves(resampler, rows),
        "bands": {
            "roc": band(FALSE_POSITIVE_RATES, drawn.roc, level),
            "recall_precision": band(RECALLS, drawn.precision, level),
        },
        "models": _models(rows, comparison, level, by_row, seed, n_jobs),
        "time": None if rows.time is None else quality_over_time(rows, level, count, seed),
        "importance": None if importance is None else importance_rows(importance),
        "alerts": alert_rows(top_rows(rows, shown[-1]) if alerts is None else alerts, rows),
    }


def _lists(
    resampler: Resampler,
    rows: ReportRows,
    lengths: np.ndarray,
    drawn: Readings,
    cost: float | None,
    level: float,
) -> dict[str, Any]:
    """What a list of each length holds."""
    observed = resampler.observed()
    lists: dict[str, Any] = {"length": lengths.tolist(), "n_resamples": len(drawn.positives)}
    hits = observed.hits(lengths)
    lists |= list_table(lengths, hits, drawn.hits, rows.n_positives, drawn.positives, level)
    caught = None if rows.value is None else observed.caught(lengths)
    has_money = rows.value is not None or cost is not None
    lists["money"] = money_table(lengths, caught, drawn.money, cost, level) if has_money else None
    return lists


def _metrics(rows: ReportRows, level: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """All metrics of the model, and how to compute on resamples those that lack an interval."""
    figures = metrics.evaluate(
        rows.positive,
        rows.scores[rows.model],
        parameters=PARAMETERS,
        sample_weight=rows.weight,
        intervals="delong",
        level=level,
    )
    jobs = {
        name: (
            metrics.METRICS[name].list_core,
            metrics.METRICS[name].parameters(PARAMETERS.get(name, {})),
        )
        for name, entry in figures.items()
        if entry["method"] is None
    }
    return figures, jobs


def _with_intervals(figures: dict[str, Any], drawn: Readings, level: float) -> dict[str, Any]:
    """The metrics with the percentiles of their resamples."""
    full = {name: dict(entry) for name, entry in figures.items()}
    for name, values in drawn.metrics.items():
        low, high = percentiles(values, level)
        full[name] |= {"low": low, "high": high, "method": "bootstrap"}
    return plain(full)


def _curves(resampler: Resampler, rows: ReportRows) -> dict[str, Any]:
    """Curves of each model, the model of the report first."""
    others = {name: column for name, column in rows.scores.items() if name != rows.model}
    return {
        rows.model: curve_points(resampler.stairs),
        **other_curves(rows.positive, others, rows.weight),
    }


def _models(
    rows: ReportRows,
    comparison: Mapping[str, Any] | None,
    level: float,
    count: int,
    seed: int,
    n_jobs: int | None,
) -> dict[str, Any] | None:
    """The comparison that was given, or one on the rows of the report."""
    if comparison is not None and comparison["leaderboard"]:
        return from_comparison(plain(comparison))
    if len(rows.scores) < 2:
        return None
    return compare_on_rows(rows, level, count, seed, n_jobs)


def _data(rows: ReportRows) -> dict[str, Any]:
    """How many rows there are."""
    return {
        "n_rows": rows.total,
        "n_positives": rows.n_positives,
        "n_negatives": rows.total - rows.n_positives,
        "prevalence": rows.n_positives / rows.total,
        "weighted": rows.weight is not None,
    }


def _check_cost(cost_of_check: Any) -> float | None:
    if cost_of_check is None:
        return None
    cost = float(cost_of_check)
    if not np.isfinite(cost) or cost < 0:
        raise ValueError(f"cost_of_check must be a number of at least 0, got {cost_of_check!r}.")
    return cost
