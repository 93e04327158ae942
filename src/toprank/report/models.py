"""The models side by side on the same rows, and which differences are real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from toprank.metrics import METRICS
from toprank.metrics.bootstrap import ListSample
from toprank.metrics.intervals import percentiles
from toprank.report.rows import ReportRows
from toprank.validation import BinaryRows

__all__ = ["COMPARED", "compare_on_rows", "from_comparison", "holm"]

COMPARED = ("average_precision", "precision_at_k", "pos_at_top", "partial_auc", "roc_auc")
PARAMETERS: dict[str, dict[str, Any]] = {"partial_auc": {"fpr": (0.0, 0.05)}}


def compare_on_rows(
    rows: ReportRows, level: float, n_resamples: int, seed: int, n_jobs: int | None
) -> dict[str, Any]:
    """Metrics of every model and the paired differences from the first, over shared resamples.

    p-values are two-sided and adjusted over the models by Holm's method, metric by metric.
    """
    jobs = [
        (METRICS[name].list_core, METRICS[name].parameters(PARAMETERS.get(name, {})))
        for name in COMPARED
    ]
    values, draws = {}, {}
    for name, scores in rows.scores.items():
        sample = ListSample(BinaryRows(rows.positive, scores, rows.weight))
        values[name] = [sample.value(job) for job in jobs]  # type: ignore[arg-type]
        draws[name] = sample.distribution(jobs, n_resamples, seed, n_jobs)  # type: ignore[arg-type]
    table: list[dict[str, Any]] = [
        {"model": name, **_entries(values[name], draws[name], level)} for name in rows.scores
    ]
    table.sort(key=lambda row: -row["average_precision"]["value"])
    return {
        "source": "rows",
        "anchor": rows.model,
        "yardstick": None,
        "recommended": None,
        "settings": {"precision_at_k": "k = positives", "partial_auc": "FPR 0 to 0.05"},
        "note": "All models rank the same rows; differences are paired over the same resamples.",
        "notes": [],
        "table": table,
        "differences": _differences(rows.model, values, draws, level),
    }


def from_comparison(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """What `ModelComparison.as_dict` gave, in the same form.

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
    return {
        "source": "splits",
        "anchor": table[0]["model"],
        "yardstick": comparison.get("yardstick"),
        "recommended": comparison.get("recommended"),
        "settings": _settings(comparison.get("parameters", {})),
        "note": _how_split(comparison),
        "notes": _leftovers(comparison),
        "table": table,
        "differences": differences,
    }


def _how_split(comparison: Mapping[str, Any]) -> str:
    kinds = {
        "stratified": "repeated stratified cross-validation",
        "grouped": "grouped cross-validation (no group on both sides)",
        "time": "splits by time (trained on the past, tested on what came next)",
    }
    kind = kinds.get(comparison["kind"], comparison["kind"])
    pairing = {
        "corrected_t": "Differences are paired on the same splits; their intervals allow for the "
        "training rows that splits share (Nadeau and Bengio 2003).",
        "bootstrap": "Differences are paired: the same test rows are drawn again for both models.",
    }
    n_splits = comparison["n_splits"]
    means = f"Means over {n_splits} {'split' if n_splits == 1 else 'splits'}: {kind}."
    return f"{means} {pairing.get(comparison['method'], '')}".strip()


def _settings(parameters: Mapping[str, Any]) -> dict[str, str]:
    """What was chosen for the metrics that have a choice, in a few letters."""
    k, (low, high) = parameters.get("k"), parameters.get("fpr") or (0.0, 0.05)
    return {
        "precision_at_k": "k = positives" if k is None else f"k = {k:g}",
        "partial_auc": f"FPR {low:g} to {high:g}",
    }


def _leftovers(comparison: Mapping[str, Any]) -> list[str]:
    """What the reader of the comparison should know besides."""
    return [
        *comparison.get("notes", []),
        *(f"{name} failed: {why}" for name, why in comparison.get("failures", {}).items()),
        *(f"{name} was left out: {why}" for name, why in comparison.get("left_out", {}).items()),
    ]


def holm(p_values: list[float]) -> list[float]:
    """p-values adjusted for their number (Holm 1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    adjusted = np.asarray(p_values, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    answer = np.empty(len(order))
    answer[order] = np.minimum(np.maximum.accumulate(adjusted), 1.0)
    return answer.tolist()


def _entries(values: list[float], draws: np.ndarray, level: float) -> dict[str, dict[str, float]]:
    """Value and interval of each metric of one model."""
    found = {}
    for name, value, drawn in zip(COMPARED, values, draws, strict=True):
        low, high = percentiles(drawn, level)
        found[name] = {"value": float(value), "low": min(low, value), "high": max(high, value)}
    return found


def _differences(
    best: str, values: Mapping[str, list[float]], draws: Mapping[str, np.ndarray], level: float
) -> list[dict[str, Any]]:
    """Paired differences of the other models from the model of the report."""
    found: list[dict[str, Any]] = []
    for position, metric in enumerate(COMPARED):
        others = [name for name in values if name != best]
        batch: list[dict[str, Any]] = []
        for name in others:
            drawn = draws[name][position] - draws[best][position]
            low, high = percentiles(drawn, level)
            tail = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
            batch.append(
                {
                    "metric": metric,
                    "model": name,
                    "against": best,
                    "reference": "this",
                    "difference": float(values[name][position] - values[best][position]),
                    "low": low,
                    "high": high,
                    "p_value": min(1.0, 2.0 * (int(tail) + 1) / (len(drawn) + 1)),
                }
            )
        adjusted = holm([entry["p_value"] for entry in batch])
        for entry, p_value in zip(batch, adjusted, strict=True):
            entry |= {"p_value": p_value, "verdict": _verdict(entry["difference"], p_value, level)}
        found += batch
    return found


def _verdict(difference: float, p_value: float, level: float) -> str:
    if p_value > 1 - level or difference == 0:
        return "cannot tell"
    return "better" if difference > 0 else "worse"
