"""Everything that a report shows, as one dict of plain data: lists of every length, curves, metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from toprank import metrics
from toprank.docstrings import fill_docstring
from toprank.formatting import to_jsonable
from toprank.metrics.bootstrap import Job, ListSample, affordable_resamples, run_resamples
from toprank.metrics.display import CURVES
from toprank.metrics.intervals import Resampling, percentiles
from toprank.metrics.steps import CumulativeCounts, Staircase
from toprank.report.details import (
    PARAMETERS,
    compare_on_rows,
    daily_lists,
    drift_table,
    effect_points,
    from_comparison,
    quality_over_time,
    reliability,
    score_distribution,
    segment_tables,
)
from toprank.report.inputs import (
    ReportRows,
    alert_table,
    check_rows,
    highest_rows,
    importance_table,
)
from toprank.shortlisting.reasons import importance_of

__all__ = ["evaluate"]

SCHEMA = 1
MOST_POINTS = 400  # of a curve
LOW_RANGE = 0.1  # the false positive rates that are drawn enlarged
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
    effects: Any = None,
    probability: Any = None,
    segments: Mapping[str, Any] | None = None,
    drift: Any = None,
    day: Any = None,
    group: Any = None,
    checks_per_day: int | None = None,
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
    source: str | None = None,
    warnings: Iterable[str] = (),
    remarks: Iterable[str] = (),
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
        Features and what they contribute; by default what `effects` says.
    effects : DataFrame, optional
        What `toprank.shortlisting.effects` returned: how the values of each feature move the scores.
    probability : array-like of shape (n_rows,), optional
        Probability of a positive: adds the reliability plot.
    segments : mapping, optional
        By name, an array that gives the part of each row (a country, a channel): adds the quality
        within each.
    drift : Drift, optional
        What `toprank.shortlisting.drift` returned.
    day, group : array-like of shape (n_rows,), optional
        The day and the card (customer, machine) of each row: adds the precision of daily lists.
    checks_per_day : int, optional
        Length of the daily lists; by default the longest of `lengths` over the number of days.
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
    source : str, optional
        Where the rows come from, in words: the name of a file, "the late days".
    warnings : iterable of str
        What a reader must know before anything else.
    remarks : iterable of str
        Further sentences of the first screen, below the advice.

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
    if importance is None and effects is not None:
        importance = importance_of(effects)

    def kept(column: Any, dtype: Any = None) -> np.ndarray:
        """Return what is known of the rows of positive weight."""
        cells = np.asarray(column, dtype=dtype)
        return cells if sample_weight is None else cells[np.asarray(sample_weight) > 0]

    cost = None if cost_of_check is None else float(cost_of_check)
    if cost is not None and not 0 <= cost < np.inf:
        raise ValueError(f"cost_of_check must be a number of at least 0, got {cost_of_check!r}.")
    grid = length_grid(rows.total, [*shown, *(many * shown[-1] for many in MULTIPLES)])
    sample = rows.sample()
    entries = metrics.evaluate(
        rows.positive, sample.rows.scores, parameters=PARAMETERS, sample_weight=rows.weight,
        intervals="delong", level=level,
    )  # fmt: skip
    waiting = [name for name, entry in entries.items() if entry["method"] is None]
    jobs = [metrics.METRICS[name].list_job(**PARAMETERS.get(name, {})) for name in waiting]
    drawn = read_resamples(sample, rows.positive_values, grid, jobs, resampling)
    for name, values in zip(waiting, drawn["metrics"].T, strict=True):
        low, high = percentiles(values, level)
        entries[name] |= {"low": low, "high": high, "method": "bootstrap"}
    lists = _lists(sample, rows, grid, drawn, cost, resampling.level)
    models = None
    if comparison is not None and comparison["leaderboard"]:
        models = from_comparison(to_jsonable(comparison))
    elif len(rows.scores) > 1:
        models = compare_on_rows(rows, resampling)
    return {
        "schema": SCHEMA,
        "title": to_jsonable(title) or f"How good is {rows.model}?",
        "model": rows.model,
        "created": to_jsonable(created),
        "source": to_jsonable(source),
        "warnings": [to_jsonable(str(text)) for text in warnings],
        "remarks": [to_jsonable(str(text)) for text in remarks],
        "currency": to_jsonable(currency),
        "cost_of_check": cost,
        "level": resampling.level,
        "data": {
            "n_rows": rows.total,
            "n_positives": rows.n_positives,
            "n_negatives": rows.total - rows.n_positives,
            "prevalence": rows.n_positives / rows.total,
            "weighted": rows.weight is not None,
        },
        "metrics": to_jsonable(entries),
        "lengths": shown,
        "lists": lists,
        "bigger": bigger_lists(lists, shown),
        "curves": {
            name: _curves((sample if name == rows.model else rows.sample(name)).stairs)
            for name in rows.scores
        },
        "bands": {
            "roc": _band(FALSE_POSITIVE_RATES, drawn["recall"], resampling.level),
            "recall_precision": _band(RECALLS, drawn["precision"], resampling.level),
        },
        "models": models,
        "time": None if rows.time is None else quality_over_time(rows, resampling),
        "importance": None if importance is None else importance_table(importance),
        "effects": None if effects is None else effect_points(effects),
        "reliability": (
            None if probability is None else reliability(rows, kept(probability, float), level)
        ),
        "distribution": score_distribution(rows),
        "segments": segment_tables(
            rows, {name: kept(column) for name, column in (segments or {}).items()}, shown[-1]
        ),
        "drift": None if drift is None else drift_table(drift),
        "daily": None
        if day is None
        else daily_lists(
            rows, kept(day), None if group is None else kept(group), checks_per_day, shown[-1]
        ),
        "alerts": alert_table(highest_rows(rows, shown[-1]) if alerts is None else alerts, rows),
    }


def read_resamples(
    sample: ListSample,
    values: np.ndarray | None,
    lengths: np.ndarray,
    jobs: Sequence[Job],
    resampling: Resampling,
) -> dict[str, np.ndarray]:
    """Draw each resample once (fewer of long lists) and read lists, curves and metrics off it.

    Returns, with a row for each resample: positives (`hits`) and their `value` in lists of each length, all
    `positives`, `recall` at `FALSE_POSITIVE_RATES`, `precision` at `RECALLS`, and a column for each job in
    `metrics`. `values` is the money of each positive row.
    """

    def read(resample: int) -> np.ndarray:
        stairs = sample.draw(resampling.seed, resample, paired=False)
        passed = CumulativeCounts.of(stairs)
        parts: list[Any] = [
            passed.positives_among(lengths),
            [stairs.total_positives],
            passed.recall_at_fpr(FALSE_POSITIVE_RATES),
            passed.precision_at_recall(RECALLS),
            [core(stairs, **parameters) for core, parameters in jobs],
        ]
        if values is not None:
            sums = sample.draw_sums(resampling.seed, resample, values)
            parts.append(passed.sum_among(lengths, sums))
        return np.concatenate(parts)

    count = affordable_resamples(resampling.n_resamples, sample.cost)
    table = run_resamples(read, count, resampling.n_jobs)
    sizes = [len(lengths), 1, len(FALSE_POSITIVE_RATES), len(RECALLS), len(jobs)]
    names = ("hits", "positives", "recall", "precision", "metrics", "value")
    return dict(zip(names, np.split(table, np.cumsum(sizes), axis=1), strict=True))


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


def _lists(
    sample: ListSample,
    rows: ReportRows,
    lengths: np.ndarray,
    drawn: dict[str, np.ndarray],
    cost: float | None,
    level: float,
) -> dict[str, Any]:
    """Return right rows, precision, recall, false alarms and money of a list of each length."""
    passed, total = CumulativeCounts.of(sample.stairs), rows.n_positives
    hits = passed.positives_among(lengths)
    low, high = count_interval(hits, drawn["hits"], lengths, level)
    recall_low, recall_high = percentiles(drawn["hits"] / drawn["positives"], level)
    certain = _certain(hits, lengths)
    recall_low = np.where(certain, np.minimum(low / total, 1.0), recall_low)
    recall_high = np.where(certain, np.minimum(high / total, 1.0), recall_high)
    values, money = rows.positive_values, None
    spent = lengths * (cost or 0.0)
    if values is not None or cost is not None:
        money = {
            "spent": None if cost is None else spent.tolist(),
            "caught": None,
            "net": None,
            "best": None,
        }
    if money is not None and values is not None:
        caught = passed.sum_among(lengths, sample.step_sums(values))
        least, most = percentiles(drawn["value"], level)
        money["caught"] = _column(caught, least, most)
        money["net"] = _column(caught - spent, least - spent, most - spent)
        money["best"] = int(lengths[np.argmax(caught - spent)])
    return {
        "length": lengths.tolist(),
        "n_resamples": len(drawn["hits"]),
        "hits": _column(hits, low, high),
        "precision": _column(hits / lengths, low / lengths, high / lengths),
        "recall": _column(hits / total, recall_low, recall_high),
        "false_alarms": _column(lengths - hits, lengths - high, lengths - low),
        "money": money,
    }


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


def count_interval(
    hits: np.ndarray, drawn_hits: np.ndarray, lengths: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentile interval of the number of right rows.

    Resamples of a list without one false alarm (or without one right row) may hold none either and
    would claim certainty; there the interval reaches at least as far as the exact binomial one of Clopper and
    Pearson (1934).
    """
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


def bigger_lists(table: dict[str, Any], lengths: list[int]) -> list[dict[str, Any]]:
    """Return what lists 2, 5 and 10 times the longest of `lengths` would catch beyond it."""
    grid = np.asarray(table["length"])
    start = int(np.searchsorted(grid, lengths[-1]))
    ends = np.searchsorted(grid, np.multiply(MULTIPLES, lengths[-1])).clip(max=len(grid) - 1)
    hits, false_alarms = table["hits"]["value"], table["false_alarms"]["value"]
    return [
        {
            "length": int(grid[end]),
            "hits": hits[end],
            "recall": table["recall"]["value"][end],
            "more_hits": hits[end] - hits[start],
            "more_false_alarms": false_alarms[end] - false_alarms[start],
        }
        for end in np.unique(ends[ends > start])
    ]


def _column(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, list[float]]:
    """Return three lists; an interval always holds its value."""
    return {
        "value": value.tolist(),
        "low": np.minimum(low, value).tolist(),
        "high": np.maximum(high, value).tolist(),
    }
