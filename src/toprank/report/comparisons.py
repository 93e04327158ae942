"""Plots that set things side by side: models, stretches of time, features."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.report import words
from toprank.report.drawing import (
    Figure,
    Report,
    base_layout,
    chance_trace,
    short_name,
    with_interval,
)
from toprank.report.words import between, count, decimal, signed

__all__ = ["difference_figures", "importance_figure", "time_figure"]

MOST_FEATURES_SHOWN = 15
VERDICT_MARKS = {  # colour and shape, so that neither has to be told alone
    "better": ("series-3", "triangle-up"),
    "worse": ("series-2", "triangle-down"),
    "cannot tell": ("muted", "circle"),
}


def difference_figures(report: Report) -> dict[str, Figure]:
    """Paired differences of average precision from the anchor and from the yardstick."""
    models = report["models"]
    if models is None:
        return {}
    chosen = {}
    for name, against in (("differences", models["anchor"]), ("yardstick", models["yardstick"])):
        entries = [
            entry
            for entry in models["differences"]
            if entry["metric"] == "average_precision"
            and entry["against"] == against
            and (entry["reference"] == "yardstick") == (name == "yardstick")
            and entry["low"] is not None
            and entry["high"] is not None
        ]
        if entries and not (name == "yardstick" and against == models["anchor"]):
            chosen[name] = _differences(entries, against)
    return chosen


def _differences(entries: list[dict[str, Any]], against: str) -> Figure:
    """Differences from one model, the highest on top."""
    entries = sorted(entries, key=lambda entry: -entry["difference"])
    traces: list[dict[str, Any]] = []
    for verdict, (color, symbol) in VERDICT_MARKS.items():
        chosen = [entry for entry in entries if entry["verdict"] == verdict]
        if chosen:
            traces.append(_forest(chosen, words.VERDICTS[verdict], color, symbol))
    layout = base_layout("Difference of average precision", "")
    layout["yaxis"] |= {
        "categoryorder": "array",
        "categoryarray": [short_name(entry["model"]) for entry in entries[::-1]],
        "showgrid": False,
        "automargin": True,
    }
    layout["showlegend"] = True
    layout["xaxis"] |= {"zeroline": True, "zerolinewidth": 1.5, "tickformat": "+.2f"}
    tally = {kind: sum(e["verdict"] == kind for e in entries) for kind in VERDICT_MARKS}
    return {
        "title": f"Difference from {against}",
        "summary": (
            f"Of {len(entries)} other models, {tally['better']} rank better than {against}, "
            f"{tally['worse']} rank worse, and {tally['cannot tell']} cannot be told apart from it."
        ),
        "columns": ["Model", "Difference", "Interval", "Verdict"],
        "rows": [
            [
                entry["model"],
                signed(entry["difference"]),
                between(entry["low"], entry["high"], signed),
                words.VERDICTS.get(entry["verdict"], entry["verdict"]),
            ]
            for entry in entries
        ],
        "traces": traces,
        "layout": layout,
        "height": 130 + 34 * len(entries),
    }


def _forest(entries: list[dict[str, Any]], name: str, color: str, symbol: str) -> dict[str, Any]:
    value = np.array([entry["difference"] for entry in entries])
    low = np.array([entry["low"] for entry in entries])
    high = np.array([entry["high"] for entry in entries])
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": value.tolist(),
        "y": [short_name(entry["model"]) for entry in entries],
        "marker": {"size": 10, "color": color, "symbol": symbol},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": np.maximum(high - value, 0).tolist(),
            "arrayminus": np.maximum(value - low, 0).tolist(),
            "color": color,
            "thickness": 2,
            "width": 0,
        },
        "hovertemplate": "%{x:+.3f}",
    }


def time_figure(report: Report) -> Figure:
    blocks = report["time"]["blocks"]
    scored = [block for block in blocks if block["average_precision"] is not None]
    labels = [block["start"] for block in scored]
    value = np.array([block["average_precision"]["value"] for block in scored])
    low = np.array([block["average_precision"]["low"] for block in scored])
    high = np.array([block["average_precision"]["high"] for block in scored])
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "Average precision",
            "x": labels,
            "y": value.tolist(),
            "line": {"color": "series-1", "width": 1.5, "dash": "dot"},
            "marker": {"size": 9, "color": "series-1"},
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": np.maximum(high - value, 0).tolist(),
                "arrayminus": np.maximum(value - low, 0).tolist(),
                "color": "series-1",
                "thickness": 2,
                "width": 0,
            },
            "hovertemplate": "%{y:.3f}",
        },
        {
            **chance_trace(labels, [block["prevalence"] for block in scored]),
            "name": "Share of positives",
        },
    ]
    layout = base_layout("Start of the block", "Average precision")
    layout["xaxis"] |= {"type": "category", "showgrid": False, "automargin": True}
    layout["yaxis"] |= {"range": [0, 1.02]}
    lowest, highest = (float(pick(value)) for pick in (np.min, np.max)) if len(value) else (0, 0)
    noun = "block" if len(scored) == 1 else "blocks"
    n_skipped = len(blocks) - len(scored)
    skipped = f" ({n_skipped} more with rows of one class only)" if n_skipped else ""
    return {
        "title": "Average precision over time",
        "summary": (
            f"Over {len(scored)} consecutive {noun}{skipped} the average precision lies between "
            f"{decimal(lowest)} and {decimal(highest)}."
        ),
        "columns": ["From", "To", "Rows", "Positives", "Average precision", "ROC AUC"],
        "rows": [
            [
                block["start"],
                block["end"],
                count(block["n_rows"]),
                count(block["n_positives"]),
                with_interval(block["average_precision"]),
                with_interval(block["roc_auc"]),
            ]
            for block in blocks
        ],
        "traces": traces,
        "layout": layout,
        "height": 340,
    }


def importance_figure(report: Report) -> Figure:
    entries = report["importance"]
    drawn = entries[:MOST_FEATURES_SHOWN][::-1]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [entry["importance"] for entry in drawn],
            "y": [f"{place}. {short_name(entry['feature'])}" for place, entry in
                  zip(range(len(drawn), 0, -1), drawn, strict=True)],
            "marker": {"color": "series-1"},
            "hovertemplate": "%{x:.4g}<extra></extra>",
            "showlegend": False,
        }
    ]  # fmt: skip
    layout = base_layout("Mean absolute contribution to the score", "")
    layout["yaxis"] |= {"showgrid": False, "automargin": True}
    layout["bargap"] = 0.45
    return {
        "title": "Mean contribution of each feature",
        "summary": (
            f"The greatest contribution comes from {entries[0]['feature']}"
            + (f", then {entries[1]['feature']}." if len(entries) > 1 else ".")
        ),
        "columns": ["Feature", "Importance"],
        "rows": [[entry["feature"], words.amount(entry["importance"])] for entry in entries],
        "traces": traces,
        "layout": layout,
        "height": 90 + 26 * len(drawn),
    }
