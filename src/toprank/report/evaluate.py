"""Everything that a report shows, as one dict of plain data: lists of every length, curves, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank import metrics
from toprank.docstrings import fill_docstring
from toprank.formatting import to_jsonable
from toprank.metrics.bootstrap import Job, ListSample, affordable_resamples, run_resamples
from toprank.metrics.display import CURVES
from toprank.metrics.intervals import Resampling, percentiles
from toprank.metrics.steps import CumulativeCounts, Staircase
from toprank.report.comparisons import (
    PARAMETERS,
    compare_on_rows,
    from_comparison,
    quality_over_time,
)
from toprank.report.inputs import (
    ReportRows,
    alert_table,
    check_rows,
    highest_rows,
    importance_table,
)

__all__ = ["evaluate"]

SCHEMA = 1
MOST_POINTS = 400  # of a curve
LOW_RANGE = 0.05  # the false positive rates that are drawn enlarged
FALSE_POSITIVE_RATES = np.union1d(np.linspace(0, LOW_RANGE, 51), np.linspace(0, 1, 101))
RECALLS = np.linspace(0.01, 1, 100)
EVERY_LENGTH_TO = 300
ROUND_LENGTHS = np.r_[100:200:5, 200:500:10, 500:1000:25]  # times a power of ten, beyond that
MULTIPLES = (2, 5, 10)  # of the longest list asked for


@fill_docstring
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
    %(bootstrap_options)s
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0; lengths are then in units of weight.
    pos_label : label, optional
        The positive class; by default the greater of two labels.
    title, created : str, optional
        Heading and date of the page.

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
    resampling = Resampling.of(level, n_resamples, random_state, n_jobs)
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
    sample = rows.sample()
    entries = metrics.evaluate(
        rows.positive, sample.rows.scores, parameters=PARAMETERS, sample_weight=rows.weight,
        intervals="delong", level=level,
    )  # fmt: skip
    drawn = read_resamples(sample, rows.positive_values, grid, _waiting_jobs(entries), resampling)
    lists = _lists(sample, rows, grid, drawn, cost, resampling.level)
    return {
        "schema": SCHEMA,
        "title": to_jsonable(title) or f"How good is {rows.model}?",
        "model": rows.model,
        "created": to_jsonable(created),
        "currency": to_jsonable(currency),
        "cost_of_check": cost,
        "level": resampling.level,
        "data": _data(rows),
        "metrics": _with_intervals(entries, drawn, resampling.level),
        "lengths": shown,
        "lists": lists,
        "bigger": bigger_lists(lists, shown),
        "curves": {
            name: _curves((sample if name == rows.model else rows.sample(name)).stairs)
            for name in rows.scores
        },
        "bands": {
            "roc": _band(FALSE_POSITIVE_RATES, drawn.recall, resampling.level),
            "recall_precision": _band(RECALLS, drawn.precision, resampling.level),
        },
        "models": _models(rows, comparison, resampling),
        "time": None if rows.time is None else quality_over_time(rows, resampling),
        "importance": None if importance is None else importance_table(importance),
        "alerts": alert_table(highest_rows(rows, shown[-1]) if alerts is None else alerts, rows),
    }


def _models(
    rows: ReportRows, comparison: Mapping[str, Any] | None, resampling: Resampling
) -> dict[str, Any] | None:
    """Return the comparison that was given, or one on the rows of the report."""
    if comparison is not None and comparison["leaderboard"]:
        return from_comparison(to_jsonable(comparison))
    return compare_on_rows(rows, resampling) if len(rows.scores) > 1 else None


def _data(rows: ReportRows) -> dict[str, Any]:
    """Return how many rows there are."""
    return {
        "n_rows": rows.total,
        "n_positives": rows.n_positives,
        "n_negatives": rows.total - rows.n_positives,
        "prevalence": rows.n_positives / rows.total,
        "weighted": rows.weight is not None,
    }


def _check_cost(cost_of_check: Any) -> float | None:
    """Return a cost of at least 0, where one is given."""
    if cost_of_check is None:
        return None
    cost = float(cost_of_check)
    if not np.isfinite(cost) or cost < 0:
        raise ValueError(f"cost_of_check must be a number of at least 0, got {cost_of_check!r}.")
    return cost


# -- resamples ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Readings:
    """What was read off each resample (first axis).

    Positives and their value in lists of each length, all positives, recall at `FALSE_POSITIVE_RATES`,
    precision at `RECALLS`, and metrics by name.
    """

    hits: np.ndarray
    value: np.ndarray | None
    positives: np.ndarray
    recall: np.ndarray
    precision: np.ndarray
    metrics: dict[str, np.ndarray]


def read_resamples(
    sample: ListSample,
    values: np.ndarray | None,
    lengths: np.ndarray,
    jobs: Mapping[str, Job],
    resampling: Resampling,
) -> Readings:
    """Draw each resample once and read lists, curves and metrics off it.

    `values` is the money of each positive row. Long lists get fewer resamples.
    """

    def read(resample: int) -> np.ndarray:
        stairs = sample.draw(resampling.seed, resample, paired=False)
        passed = CumulativeCounts.of(stairs)
        parts: list[Any] = [
            passed.positives_among(lengths),
            [stairs.total_positives],
            passed.recall_at_fpr(FALSE_POSITIVE_RATES),
            passed.precision_at_recall(RECALLS),
            [core(stairs, **parameters) for core, parameters in jobs.values()],
        ]
        if values is not None:
            sums = sample.draw_sums(resampling.seed, resample, values)
            parts.append(passed.sum_among(lengths, sums))
        return np.concatenate(parts)

    table = run_resamples(
        read, affordable_resamples(resampling.n_resamples, sample.cost), resampling.n_jobs
    )
    sizes = [len(lengths), 1, len(FALSE_POSITIVE_RATES), len(RECALLS), len(jobs)]
    hits, positives, recall, precision, found, value = np.split(table, np.cumsum(sizes), axis=1)
    return Readings(
        hits=hits,
        value=None if values is None else value,
        positives=positives[:, 0],
        recall=recall,
        precision=precision,
        metrics=dict(zip(jobs, found.T, strict=True)),
    )


def _waiting_jobs(entries: Mapping[str, Any]) -> dict[str, Job]:
    """Return how to compute on resamples the metrics that still lack an interval."""
    return {
        name: metrics.METRICS[name].list_job(**PARAMETERS.get(name, {}))
        for name, entry in entries.items()
        if entry["method"] is None
    }


def _with_intervals(entries: dict[str, Any], drawn: Readings, level: float) -> dict[str, Any]:
    """Return the metrics with the percentiles of their resamples."""
    full = {name: dict(entry) for name, entry in entries.items()}
    for name, values in drawn.metrics.items():
        low, high = percentiles(values, level)
        full[name] |= {"low": low, "high": high, "method": "bootstrap"}
    return to_jsonable(full)


def _curves(stairs: Staircase) -> dict[str, dict[str, list[float]]]:
    """Return the points of each kind of curve, thinned to stay small."""
    points = {kind: draw(stairs, MOST_POINTS) for kind, draw in CURVES.items()}
    return {kind: {"x": _shortened(x), "y": _shortened(y)} for kind, (x, y) in points.items()}


def _band(x: np.ndarray, drawn: np.ndarray, level: float) -> dict[str, list[float]]:
    """Return the pointwise percentile band of curves drawn at the same places."""
    low, high = percentiles(drawn, level)
    return {"x": _shortened(x), "low": _shortened(low), "high": _shortened(high)}


def _shortened(values: np.ndarray) -> list[float]:
    """Return numbers with six significant digits, which is finer than any screen."""
    return [float(f"{number:.6g}") for number in np.asarray(values, dtype=np.float64)]


# -- lists of every length ----------------------------------------------------------------------------


def _lists(
    sample: ListSample,
    rows: ReportRows,
    lengths: np.ndarray,
    drawn: Readings,
    cost: float | None,
    level: float,
) -> dict[str, Any]:
    """Return what a list of each length holds."""
    passed = CumulativeCounts.of(sample.stairs)
    lists: dict[str, Any] = {"length": lengths.tolist(), "n_resamples": len(drawn.positives)}
    hits = passed.positives_among(lengths)
    lists |= list_table(lengths, hits, drawn.hits, rows.n_positives, drawn.positives, level)
    values = rows.positive_values
    caught = None if values is None else passed.sum_among(lengths, sample.step_sums(values))
    has_money = caught is not None or cost is not None
    lists["money"] = money_table(lengths, caught, drawn.value, cost, level) if has_money else None
    return lists


def check_list_lengths(lengths: Iterable[Any], total: float) -> list[int]:
    """Return whole lengths of at least 1, ascending; those beyond the data become the whole data."""
    given = list(lengths)
    for length in given:
        if isinstance(length, bool) or int(length) != length or length < 1:
            raise ValueError(f"lengths must be whole numbers of at least 1, got {length!r}.")
    if not given:
        raise ValueError("lengths is empty: name at least one list length, such as 100.")
    return sorted({min(int(length), max(1, int(total))) for length in given})


def length_grid(total: float, extra: Iterable[int] = ()) -> np.ndarray:
    """Return every length up to 300, then round ones at most 5 % apart, up to all rows.

    Examples
    --------
    >>> length_grid(5).tolist()
    [1, 2, 3, 4, 5]
    >>> length_grid(2_000_000)[298:304].tolist()
    [299, 300, 310, 320, 330, 340]
    """
    last = max(1, int(total))
    near = np.arange(1, EVERY_LENGTH_TO + 1)
    decades = 10 ** np.arange(2, max(3, len(str(last))))
    far = np.outer(decades, ROUND_LENGTHS).ravel() // 100
    grid = np.concatenate(
        (near, far[far > EVERY_LENGTH_TO], [last], np.array([*extra], dtype=np.int64))
    )
    return np.unique(grid[(grid >= 1) & (grid <= last)])


def list_table(
    lengths: np.ndarray,
    hits: np.ndarray,
    drawn_hits: np.ndarray,
    total_positives: float,
    drawn_positives: np.ndarray,
    level: float,
) -> dict[str, dict[str, list[float]]]:
    """Return right rows, precision, recall and false alarms of each length, with percentile intervals.

    Resamples of a list without one false alarm (or without one right row) may hold none either and
    would claim certainty; there the interval reaches at least as far as the exact binomial one of Clopper and
    Pearson (1934).

    Parameters
    ----------
    lengths, hits : ndarray of shape (n_lengths,)
    drawn_hits : ndarray of shape (n_resamples, n_lengths)
    total_positives : float
    drawn_positives : ndarray of shape (n_resamples,)
    level : float
    """
    low, high = count_interval(hits, drawn_hits, lengths, level)
    recall_low, recall_high = percentiles(drawn_hits / drawn_positives[:, None], level)
    certain = _certain(hits, lengths)
    recall_low = np.where(certain, np.minimum(low / total_positives, 1.0), recall_low)
    recall_high = np.where(certain, np.minimum(high / total_positives, 1.0), recall_high)
    return {
        "hits": _column(hits, low, high),
        "precision": _column(hits / lengths, low / lengths, high / lengths),
        "recall": _column(hits / total_positives, recall_low, recall_high),
        "false_alarms": _column(lengths - hits, lengths - high, lengths - low),
    }


def count_interval(
    hits: np.ndarray, drawn_hits: np.ndarray, lengths: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the interval of the number of right rows; exact where resamples cannot differ."""
    low, high = percentiles(drawn_hits, level)
    tail = (1 - level) / 2
    certain = _certain(hits, lengths)
    reach = tail ** (1 / lengths)  # what k of k right leave open below, and 0 of k above
    exact_low = np.where(hits > 0, lengths * reach, 0.0)
    exact_high = np.where(hits > 0, lengths, lengths * (1 - reach))
    low = np.where(certain, np.minimum(low, exact_low), low)
    return low, np.where(certain, np.maximum(high, exact_high), high)


def _certain(hits: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Say where a list holds no false alarm, or no right row."""
    return (hits >= lengths * (1 - 1e-12)) | (hits <= 1e-12)


def money_table(
    lengths: np.ndarray,
    caught: np.ndarray | None,
    drawn: np.ndarray | None,
    cost_of_check: float | None,
    level: float,
) -> dict[str, Any]:
    """Return money caught, spent on checks, and left over, for each length."""
    spent = lengths * (cost_of_check or 0.0)
    table: dict[str, Any] = {"spent": spent.tolist() if cost_of_check is not None else None}
    if caught is None or drawn is None:
        return table | {"caught": None, "net": None}
    low, high = percentiles(drawn, level)
    table["caught"] = _column(caught, low, high)
    table["net"] = _column(caught - spent, low - spent, high - spent)
    return table


def bigger_lists(table: dict[str, Any], lengths: list[int]) -> list[dict[str, Any]]:
    """Return what lists 2, 5 and 10 times the longest of `lengths` would catch beyond it."""
    grid = np.asarray(table["length"])
    start = int(np.searchsorted(grid, lengths[-1]))
    found: list[dict[str, Any]] = []
    for multiple in MULTIPLES:
        end = min(int(np.searchsorted(grid, multiple * lengths[-1])), len(grid) - 1)
        if end > start and (not found or grid[end] > found[-1]["length"]):
            found.append(
                {
                    "length": int(grid[end]),
                    "hits": table["hits"]["value"][end],
                    "recall": table["recall"]["value"][end],
                    "more_hits": table["hits"]["value"][end] - table["hits"]["value"][start],
                    "more_false_alarms": table["false_alarms"]["value"][end]
                    - table["false_alarms"]["value"][start],
                }
            )
    return found


def _column(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, list[float]]:
    """Return three lists; an interval always holds its value."""
    return {
        "value": value.tolist(),
        "low": np.minimum(low, value).tolist(),
        "high": np.maximum(high, value).tolist(),
    }
