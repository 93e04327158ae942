"""Details of a report: models compared, quality over time, reliability, segments, drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from toprank import metrics
from toprank.formatting import to_jsonable
from toprank.metrics import METRICS
from toprank.metrics.bootstrap import affordable_resamples
from toprank.metrics.daily import daily_hits
from toprank.metrics.intervals import (
    Resampling,
    bootstrap_interval,
    delong,
    has_delong,
    holm,
    holm_levels,
    interval_verdict,
    normal_interval,
    normal_p_value,
    percentiles,
    verdict,
)
from toprank.report.inputs import ReportRows, count_rows
from toprank.shortlisting.counts import share_interval
from toprank.shortlisting.reasons import importance_of
from toprank.validation import check_lengths

__all__ = [
    "PARAMETERS", "compare_on_rows", "daily_lists", "drift_table", "effect_points", "from_comparison",
    "quality_over_time", "reliability", "score_distribution", "segment_tables", "time_blocks",
]  # fmt: skip

COMPARED = ("average_precision", "precision_at_k", "pos_at_top", "partial_auc", "roc_auc")
PARAMETERS: dict[str, dict[str, Any]] = {"partial_auc": {"fpr": (0.0, 0.1)}}
PAIRED_DRAWS = 2e8  # rows drawn to compare one model, beyond 200 resamples
MOST_BLOCKS = 12
POSITIVES_PER_BLOCK = 10  # on average; a block with fewer says little
BLOCK_RESAMPLES = 400
BLOCK_METRICS = ("average_precision", "roc_auc")
RELIABILITY_BINS = 10
SCORE_BINS = 40
MOST_SEGMENTS = 20
MOST_EFFECTS, MOST_POINTS = 12, 250
MOST_DRIFTED = 15
LONGEST_NAME = 60
SPLITS = {
    "stratified": "repeated stratified cross-validation",
    "grouped": "grouped cross-validation (no group on both sides)",
    "time": "splits by time (trained on the past, tested on what came next)",
}
PAIRINGS = {
    "corrected_t": "Differences are paired on the same splits; their intervals allow for the "
    "training rows that splits share (Nadeau and Bengio 2003).",
    "bootstrap": "Differences are paired: the same test rows are drawn again for both models.",
}


def compare_on_rows(rows: ReportRows, resampling: Resampling) -> dict[str, Any]:
    """Return the metrics of every model and the paired differences from that of the report.

    All models share their resamples. p-values are two-sided and adjusted over the models by Holm's
    method, metric by metric.
    """
    n_resamples = affordable_resamples(resampling.n_resamples, len(rows.positive), PAIRED_DRAWS)
    resampling = replace(resampling, n_resamples=n_resamples)
    jobs = [METRICS[name].list_job(**PARAMETERS.get(name, {})) for name in COMPARED]
    values, draws = {}, {}
    for name in rows.scores:
        sample = rows.sample(name)
        values[name] = [sample.value(job) for job in jobs]
        draws[name] = resampling.draw(sample, jobs, paired=True)
    table: list[dict[str, Any]] = []
    for name in rows.scores:
        table.append({"model": name})
        for metric, value, drawn in zip(COMPARED, values[name], draws[name], strict=True):
            low, high = percentiles(drawn, resampling.level)
            table[-1][metric] = {"value": value, "low": min(low, value), "high": max(high, value)}
    table.sort(key=lambda row: -row["average_precision"]["value"])
    return {
        "source": "rows",
        "anchor": rows.model,
        "yardstick": None,
        "recommended": None,
        "settings": {"precision_at_k": "k = positives", "partial_auc": "FPR 0 to 0.1"},
        "note": "All models rank the same rows; differences are paired over the same resamples.",
        "notes": [],
        "table": table,
        "differences": _differences(rows.model, values, draws, resampling.level),
    }


def _differences(
    reference: str,
    values: Mapping[str, list[float]],
    draws: Mapping[str, np.ndarray],
    level: float,
) -> list[dict[str, Any]]:
    """Return the paired differences of the other models from the model of the report."""
    found: list[dict[str, Any]] = []
    others = [name for name in values if name != reference]
    for position, metric in enumerate(COMPARED):
        gaps = [
            (values[n][position] - values[reference][position], draws[n][position] - draws[reference][position])
            for n in others
        ]  # fmt: skip
        p_values = [bootstrap_interval(gap, drawn, level)[3] for gap, drawn in gaps]
        adjusted, levels = holm(p_values).tolist(), holm_levels(p_values, level).tolist()
        for name, (gap, drawn), p_value, own in zip(others, gaps, adjusted, levels, strict=True):
            low, high = percentiles(drawn, own)
            known: dict[str, Any] = {
                "metric": metric,
                "model": name,
                "against": reference,
                "reference": "this",
            }
            known |= {"difference": gap, "low": low, "high": high, "p_value": p_value}
            found.append(known | {"verdict": interval_verdict(low, high)})
    return found


def from_comparison(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `ModelComparison.as_dict` gave, in the same form.

    Differences are against the best model of each metric and, where there is one, the yardstick.
    """
    metrics = comparison["metrics"]
    table = [
        {
            "model": row["model"],
            "seconds": row.get("seconds"),
            **{
                name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
                for name in metrics
            },
        }
        for row in comparison["leaderboard"]
    ]
    differences = [
        {
            "metric": metric,
            "model": row["model"],
            "against": row["other"],
            "reference": row["reference"],
            **{key: row[key] for key in ("difference", "low", "high", "verdict")},
            "p_value": row["p_adjusted"],
        }
        for metric in metrics
        for row in comparison["differences"][metric]
    ]
    parameters = comparison.get("parameters", {})
    k, (low, high) = parameters.get("k"), parameters.get("fpr") or (0.0, 0.1)
    return {
        "source": "splits",
        "anchor": table[0]["model"],
        "yardstick": comparison.get("yardstick"),
        "recommended": comparison.get("recommended"),
        "settings": {
            "precision_at_k": "k = positives" if k is None else f"k = {k:g}",
            "partial_auc": f"FPR {low:g} to {high:g}",
        },
        "note": _how_split(comparison),
        "notes": [
            *comparison.get("notes", []),
            *(f"{name} failed: {why}" for name, why in comparison.get("failures", {}).items()),
            *(
                f"{name} was left out: {why}"
                for name, why in comparison.get("left_out", {}).items()
            ),
        ],
        "table": table,
        "differences": differences,
    }


def _how_split(comparison: Mapping[str, Any]) -> str:
    """Say how the rows were split and how models were paired."""
    kind = SPLITS.get(comparison["kind"], comparison["kind"])
    n_splits = comparison["n_splits"]
    means = f"Means over {n_splits} {'split' if n_splits == 1 else 'splits'}: {kind}."
    return f"{means} {PAIRINGS.get(comparison['method'], '')}".strip()


# -- over time ----------------------------------------------------------------------------------------


def quality_over_time(rows: ReportRows, resampling: Resampling) -> dict[str, Any] | None:
    """Return average precision and AUC of consecutive blocks, and whether the later half differs."""
    assert rows.time is not None
    n_positives = int(np.count_nonzero(rows.positive))
    n_blocks = min(MOST_BLOCKS, max(2, n_positives // POSITIVES_PER_BLOCK))
    codes = time_blocks(rows.time, n_blocks if n_positives >= POSITIVES_PER_BLOCK else 1)
    if codes.max() == 0:
        return None
    resampling = replace(resampling, n_resamples=min(resampling.n_resamples, BLOCK_RESAMPLES))
    members = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]
    return {
        "blocks": [_block(rows, block, resampling) for block in members],
        "change": _change(rows, resampling.level),
    }


def time_blocks(time: np.ndarray, n_blocks: int) -> np.ndarray:
    """Return codes 0, 1, ... of about equally long blocks in order of time; equal times stay together.

    Examples
    --------
    >>> time_blocks(np.array([3, 1, 1, 2, 2, 3]), 3).tolist()
    [2, 0, 0, 1, 1, 2]
    """
    _, moment, counts = np.unique(time, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(time)
    code_of_moment = np.minimum((middle * n_blocks).astype(np.int64), n_blocks - 1)
    used = np.unique(code_of_moment)
    return np.searchsorted(used, code_of_moment)[moment]


def _block(rows: ReportRows, members: np.ndarray, resampling: Resampling) -> dict[str, Any]:
    """Return the metrics of one stretch of time."""
    assert rows.time is not None
    sample = rows.sample(members=members)
    positive, weight = sample.rows.positive, sample.rows.weight
    total, n_positives = count_rows(positive, weight)
    block: dict[str, Any] = {
        "start": _shown(rows.time[members].min()),
        "end": _shown(rows.time[members].max()),
        "n_rows": total,
        "n_positives": n_positives,
        "prevalence": n_positives / total,
        **dict.fromkeys(BLOCK_METRICS),
    }
    if 0 < np.count_nonzero(positive) < len(members):
        count = affordable_resamples(resampling.n_resamples, sample.cost)
        found = metrics.evaluate(
            positive,
            sample.rows.scores,
            metrics=BLOCK_METRICS,
            sample_weight=weight,
            level=resampling.level,
            n_resamples=count,
            random_state=resampling.seed,
            n_jobs=resampling.n_jobs,
        )
        block |= {name: {key: entry[key] for key in ("value", "low", "high")}
                  for name, entry in found.items()}  # fmt: skip
    return block


def _change(rows: ReportRows, level: float) -> dict[str, Any] | None:
    """Return the AUC of the later half of the rows minus that of the earlier, by DeLong's variances.

    The AUC does not depend on how common positives are, which may itself change with time.
    """
    assert rows.time is not None
    later = time_blocks(rows.time, 2).astype(bool)
    areas, variance = [], 0.0
    for half in (~later, later):
        sample = rows.sample(members=half)
        if not has_delong(sample):
            return None
        area, covariance = delong([sample])
        areas.append(float(area[0]))
        variance += float(covariance[0, 0])
    difference = areas[1] - areas[0]
    low, high = normal_interval(difference, variance, level, -1.0, 1.0)
    said = verdict(difference, normal_p_value(difference, variance), level)
    change = {"earlier": areas[0], "later": areas[1], "difference": difference}
    return change | {"low": low, "high": high, "verdict": said}


def _shown(moment: Any) -> str:
    """Return a date without an empty clock, or a short number."""
    if isinstance(moment, np.datetime64):
        text = np.datetime_as_string(moment, unit="m").replace("T", " ")
        return text.removesuffix(" 00:00")
    return f"{float(moment):,.6g}"


# -- probabilities, scores, parts of the rows ------------------------------------------------------


def reliability(rows: ReportRows, probability: np.ndarray, level: float) -> list[dict[str, Any]]:
    """Compare predicted with observed shares of positives in ten bins of equally many rows.

    Most rows of a rare class have probabilities near 0: the upper half of the bins divides the tenth of the
    rows with the highest ones.
    """
    check_lengths(scores=rows.positive, probability=probability)
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ValueError("probability must lie between 0 and 1.")
    half = RELIABILITY_BINS // 2
    places = np.r_[np.linspace(0, 0.9, half + 1), np.linspace(0.9, 1, half + 1)[1:]]
    edges = np.unique(np.quantile(probability, places[1:-1]))
    codes = np.searchsorted(edges, probability, side="right")
    found = []
    for code in np.unique(codes):
        inside = codes == code
        hits, total = int(rows.positive[inside].sum()), int(inside.sum())
        low, high = share_interval(hits, total, level)
        share = {"observed": hits / total, "low": low, "high": high}
        found.append({"n_rows": total, "predicted": float(probability[inside].mean()), **share})
    return found


def score_distribution(rows: ReportRows) -> dict[str, list[float]]:
    """Return the shares of the positives and of the negatives in equal steps of the score."""
    scores = rows.scores[rows.model]
    low, high = np.quantile(scores, [0.001, 0.999])
    if not high > low:
        low, high = float(low) - 0.5, float(low) + 0.5
    edges = np.linspace(low, high, SCORE_BINS + 1)
    places = np.clip(np.searchsorted(edges, scores, side="right") - 1, 0, SCORE_BINS - 1)
    weight = np.ones(len(scores)) if rows.weight is None else rows.weight
    shares = {}
    for name, inside in (("positives", rows.positive), ("negatives", ~rows.positive)):
        counts = np.bincount(places[inside], weight[inside], minlength=SCORE_BINS)
        shares[name] = [float(f"{share:.5g}") for share in counts / counts.sum()]
    return {"edges": [float(f"{edge:.6g}") for edge in edges], **shares}


def segment_tables(
    rows: ReportRows, segments: Mapping[str, np.ndarray], length: int
) -> list[dict[str, Any]]:
    """Return the quality within each part of the rows, the largest parts first.

    `listed` and `hits` count the rows of the part among the first `length` rows of the whole list.
    """
    scores = rows.scores[rows.model]
    on_list = np.zeros(len(scores), dtype=bool)
    on_list[np.argsort(-scores, kind="stable")[:length]] = True
    found = []
    for name, column in segments.items():
        check_lengths(scores=scores, **{f"segment {name!r}": column})
        values = pd.Series(column).astype(object).where(pd.notna(column), "(missing)")
        parts = values.value_counts().index
        lines = []
        for part in parts[:MOST_SEGMENTS]:
            inside = (values == part).to_numpy()
            lines.append(_segment(rows, inside, on_list) | {"part": _name(part)})
        found.append({"name": _name(name), "length": length, "n_parts": len(parts), "parts": lines})
    return found


def _segment(rows: ReportRows, inside: np.ndarray, on_list: np.ndarray) -> dict[str, Any]:
    """Return counts and metrics of one part; metrics only where it has both classes."""
    positive, weight = rows.positive[inside], None if rows.weight is None else rows.weight[inside]
    total, n_positives = count_rows(positive, weight)
    line: dict[str, Any] = {
        "n_rows": total,
        "n_positives": n_positives,
        "prevalence": n_positives / total,
        "listed": int(on_list[inside].sum()),
        "hits": int(positive[on_list[inside]].sum()),
        "average_precision": None,
        "roc_auc": None,
    }
    if 0 < positive.sum() < len(positive):
        scores = rows.scores[rows.model][inside]
        for name in ("average_precision", "roc_auc"):
            line[name] = getattr(metrics, name)(positive, scores, sample_weight=weight)
    return line


def drift_table(drift: Any) -> dict[str, Any]:
    """Return the columns that have drifted most, and the warnings."""
    columns = sorted(drift.columns, key=lambda column: -(column["psi"] or 0.0))[:MOST_DRIFTED]
    keys = ("name", "kind", "psi", "missing", "missing_training", "unseen", "drift")
    return to_jsonable(
        {
            "n_rows": drift.n_rows,
            "warnings": drift.warnings,
            "scores": drift.scores,
            "columns": [{key: column[key] for key in keys} for column in columns],
        }
    )


def effect_points(effects: pd.DataFrame) -> list[dict[str, Any]]:
    """Return, for the features that matter most, contributions of rows with the level of their values.

    `effects` has a line for each row and feature: `feature`, `adds` and `level`, the share of rows with a
    lower value (NaN for categories and missing cells).
    """
    found = []
    for feature in importance_of(effects)["feature"][:MOST_EFFECTS]:
        part = effects[effects["feature"] == feature]
        step = max(1, len(part) // MOST_POINTS)
        part = part.iloc[::step]
        level = [None if value != value else round(float(value), 3) for value in part["level"]]
        adds = [float(f"{value:.4g}") for value in part["adds"]]
        found.append({"feature": _name(feature), "adds": adds, "level": level})
    return found


def daily_lists(
    rows: ReportRows, day: Any, group: Any, checks: int | None, length: int
) -> dict[str, Any]:
    """Return the precision of daily lists, with an interval over the days."""
    days = pd.Series(np.asarray(day))
    per_day = checks or max(1, round(length / max(1, days.nunique())))
    table = daily_hits(rows.positive, rows.scores[rows.model], days, per_day, group)
    share = table["hits"].to_numpy() / per_day
    low = high = None
    if len(share) > 1:
        random = np.random.default_rng(0)
        drawn = share[random.integers(len(share), size=(1000, len(share)))].mean(axis=1)
        low, high = (float(end) for end in percentiles(drawn, 0.95))
    return to_jsonable(
        {
            "k": per_day,
            "grouped": group is not None,
            "value": float(share.mean()),
            "low": low,
            "high": high,
            "days": [
                {
                    "day": str(line.day),
                    "listed": line.listed,
                    "hits": line.hits,
                    "positives": line.positives,
                }
                for line in table.itertuples()
            ],
        }
    )


def _name(value: Any) -> str:
    """Return a value as a short text that JSON can hold."""
    return to_jsonable(str(value))[:LONGEST_NAME]
