"""The plots as Plotly figures in plain data, each with a title, a description and a table of its figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.report.comparisons import difference_figures, importance_figure, time_figure
from toprank.report.curves import LOW_RANGE
from toprank.report.drawing import (
    Figure,
    Report,
    band_traces,
    base_layout,
    chance_trace,
    line_trace,
    log_axis,
    round_percent,
)
from toprank.report.words import between, count, decimal, percent

__all__ = ["build_figures"]

MOST_MODELS = 8  # in one plot


def build_figures(report: Report) -> dict[str, Figure]:
    """Every plot that the report has data for, by the id of its place on the page."""
    figures = {
        "lists": _lists(report),
        "recall-precision": _recall_precision(report),
        "roc": _roc(report, None),
        "roc-low": _roc(report, LOW_RANGE),
    }
    if len(report["curves"]) > 1:
        figures["list-precision"] = _list_precision(report)
    figures |= difference_figures(report)
    if report["time"] is not None:
        figures["time"] = time_figure(report)
    if report["importance"]:
        figures["importance"] = importance_figure(report)
    return figures


# -- list length ----------------------------------------------------------------------------------


def _lists(report: Report) -> Figure:
    """Precision and recall against list length; the last two traces are the slider's marks."""
    lists = report["lists"]
    lengths = lists["length"]
    traces = []
    for series, name in enumerate(("precision", "recall"), start=1):
        column = lists[name]
        traces += band_traces(lengths, column["low"], column["high"], series)
        traces.append(line_trace(lengths, column["value"], name.capitalize(), series, "%{y:.1%}"))
    start = lengths.index(report["lengths"][len(report["lengths"]) // 2])
    for series, name in enumerate(("precision", "recall"), start=1):
        mark = {"size": 11, "color": f"series-{series}", "line": {"width": 2, "color": "surface"}}
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [lengths[start]],
                "y": [lists[name]["value"][start]],
                "marker": mark,
                "showlegend": False,
                "hoverinfo": "skip",
            }
        )
    layout = base_layout("Rows on the list", "")
    layout["xaxis"] |= log_axis(lengths[-1])
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    layout["hovermode"] = "x unified"
    rows = [
        [
            count(lengths[place]),
            *(
                f"{percent(lists[name]['value'][place])} "
                f"({between(lists[name]['low'][place], lists[name]['high'][place], percent)})"
                for name in ("precision", "recall")
            ),
        ]
        for place in _landmarks(lengths)
    ]
    first, last = report["lengths"][0], report["lengths"][-1]
    at = {length: lists["precision"]["value"][lengths.index(length)] for length in (first, last)}
    return {
        "title": "Precision and recall by list length",
        "summary": (
            f"Precision is {percent(at[first])} at {count(first)} rows and {percent(at[last])} at "
            f"{count(last)}; recall rises to {percent(_value_at(lists, 'recall', last))} there."
        ),
        "columns": ["Rows", "Precision (interval)", "Recall (interval)"],
        "rows": rows,
        "traces": traces,
        "layout": layout,
        "height": 340,
    }


def _list_precision(report: Report) -> Figure:
    """Precision against list length, model by model."""
    lists = report["lists"]
    traces = band_traces(lists["length"], lists["precision"]["low"], lists["precision"]["high"], 1)
    curves = _models_of(report)
    traces += [
        line_trace(curve["x"], curve["y"], name, series, "%{y:.1%}")
        for series, (name, curve) in enumerate(_kind(curves, "list_precision"), start=1)
    ]
    layout = base_layout("Rows on the list", "Precision")
    layout["xaxis"] |= log_axis(lists["length"][-1])
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    wanted = {1, 10, 100, 1000, 10_000, *report["lengths"]}
    lengths = sorted(length for length in wanted if length <= lists["length"][-1])
    rows = [
        [name, *(percent(_read(curve, length)) for length in lengths)]
        for name, curve in _kind(curves, "list_precision")
    ]
    return {
        "title": "Precision against list length",
        "summary": f"Share of right rows for each list length, for {len(rows)} models.",
        "columns": ["Model", *(f"Top {count(length)}" for length in lengths)],
        "rows": rows,
        "traces": traces,
        "layout": layout,
        "height": 360,
    }


# -- curves ---------------------------------------------------------------------------------------


def _recall_precision(report: Report) -> Figure:
    band, curves = report["bands"]["recall_precision"], _models_of(report)
    traces = band_traces(band["x"], band["low"], band["high"], 1)
    traces += [
        line_trace(curve["x"], curve["y"], name, series, "recall %{x:.1%}: precision %{y:.1%}")
        for series, (name, curve) in enumerate(_kind(curves, "recall_precision"), start=1)
    ]
    base = report["data"]["prevalence"]
    traces.append(chance_trace([0, 1], [base, base]))
    layout = base_layout("Recall", "Precision")
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".0%"}
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    places = [place for place, x in enumerate(band["x"]) if round(100 * x) in range(10, 101, 10)]
    curve = curves[report["model"]]["recall_precision"]
    rows = [
        [
            round_percent(band["x"][place]),
            percent(_read(curve, band["x"][place])),
            between(band["low"][place], band["high"][place], percent),
        ]
        for place in places
    ]
    area = report["metrics"]["recall_precision_area"]
    return {
        "title": "Precision against recall",
        "summary": (
            f"Area under the curve {decimal(area['value'])}; a random order would have "
            f"precision {percent(base)} throughout."
        ),
        "columns": ["Recall", f"Precision of {report['model']}", "Interval"],
        "rows": rows,
        "traces": traces,
        "layout": layout,
        "height": 360,
    }


def _roc(report: Report, most: float | None) -> Figure:
    """The ROC curve, whole or only its range of low false positive rates."""
    band, curves = report["bands"]["roc"], _models_of(report)
    limit = 1.0 if most is None else most
    inside = [place for place, x in enumerate(band["x"]) if x <= limit]
    low, high = ([band[key][place] for place in inside] for key in ("low", "high"))
    traces = band_traces([band["x"][place] for place in inside], low, high, 1)
    hover = "false positive rate %{x:.2%}: recall %{y:.1%}"
    for series, (name, curve) in enumerate(_kind(curves, "roc"), start=1):
        x, y = _cut(curve, limit)
        traces.append(line_trace(x, y, name, series, hover))
    traces.append(chance_trace([0, limit], [0, limit]))
    layout = base_layout("False positive rate", "Recall")
    layout["xaxis"] |= {"range": [0, limit], "tickformat": ".0%"}
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    step = 0.1 if most is None else most / 5
    places = [p for p in inside if abs(band["x"][p] / step - round(band["x"][p] / step)) < 1e-6]
    curve = curves[report["model"]]["roc"]
    rows = [
        [
            round_percent(band["x"][place]),
            percent(_height(curve, band["x"][place])),
            between(band["low"][place], band["high"][place], percent),
        ]
        for place in places
    ]
    return {
        "title": "ROC curve"
        if most is None
        else f"ROC curve up to {round_percent(limit)} false positives",
        "summary": _roc_summary(report, most),
        "columns": ["False positive rate", f"Recall of {report['model']}", "Interval"],
        "rows": rows,
        "traces": traces,
        "layout": layout,
        "height": 360,
    }


def _roc_summary(report: Report, most: float | None) -> str:
    if most is None:
        area = report["metrics"]["roc_auc"]
        interval = between(area["low"], area["high"], decimal) if area["low"] is not None else ""
        return f"Area under the curve {decimal(area['value'])}" + (
            f" (interval {interval})." if interval else "."
        )
    reached = _height(report["curves"][report["model"]]["roc"], most)
    return f"At a false positive rate of {round_percent(most)}, {percent(reached)} of the positives are found."


# -- reading curves -----------------------------------------------------------------------------


def _models_of(report: Report) -> dict[str, Any]:
    return dict(list(report["curves"].items())[:MOST_MODELS])


def _kind(curves: dict[str, Any], kind: str) -> list[tuple[str, Any]]:
    return [(name, curve[kind]) for name, curve in curves.items()]


def _read(curve: dict[str, list[float]], x: float) -> float:
    return float(np.interp(x, curve["x"], curve["y"]))


def _height(curve: dict[str, list[float]], x: float) -> float:
    """A ROC curve at a rate; its upper end where it is vertical."""
    xs, ys = np.asarray(curve["x"]), np.asarray(curve["y"])
    at = np.searchsorted(xs, x, side="right") - 1
    return float(ys[at]) if xs[at] == x else _read(curve, x)


def _cut(curve: dict[str, list[float]], limit: float) -> tuple[list[float], list[float]]:
    """A curve up to x = limit."""
    inside = [place for place, x in enumerate(curve["x"]) if x <= limit]
    x, y = ([curve[key][place] for place in inside] for key in ("x", "y"))
    if x[-1] < limit:
        x, y = [*x, limit], [*y, _read(curve, limit)]
    return x, y


def _value_at(lists: dict[str, Any], name: str, length: int) -> float:
    return float(lists[name]["value"][lists["length"].index(length)])


def _landmarks(lengths: list[int]) -> list[int]:
    """Places of 1, 2, 5, 10, ... in the grid."""
    wanted = [base * 10**power for power in range(10) for base in (1, 2, 5)]
    return sorted({lengths.index(length) for length in wanted if length in set(lengths)})
