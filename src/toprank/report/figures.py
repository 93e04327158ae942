"""The plots as Plotly figures in plain data, each with a title, a description and a table of its figures.

Colours are named by their role; the page's script puts in those of the light or the dark theme. Names
of models and features are escaped, because Plotly reads a little HTML in its texts.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from toprank.report.evaluate import LOW_RANGE
from toprank.report.text import (
    VERDICTS,
    amount,
    between,
    count,
    decimal,
    percent,
    shorten,
    signed,
)

__all__ = ["build_figures"]

Figure = dict[str, Any]
Report = dict[str, Any]
MOST_MODELS = 8  # in one plot
MOST_FEATURES_SHOWN = 15
SERIES = 6  # colours before they come again
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
VERDICT_MARKS = {  # colour and shape, so that neither has to be told alone
    "better": ("series-3", "triangle-up"),
    "worse": ("series-2", "triangle-down"),
    "cannot tell": ("muted", "circle"),
}


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
    figures |= _difference_figures(report)
    if report["time"] is not None:
        figures["time"] = _time(report)
    if report["importance"]:
        figures["importance"] = _importance(report)
    return figures


# -- list length ----------------------------------------------------------------------------------


def _lists(report: Report) -> Figure:
    """Precision and recall against list length; the last two traces are the slider's marks."""
    lists = report["lists"]
    lengths = lists["length"]
    traces = []
    for series, name in enumerate(("precision", "recall"), start=1):
        column = lists[name]
        traces += _band_traces(lengths, column["low"], column["high"], series)
        traces.append(_line_trace(lengths, column["value"], name.capitalize(), series, "%{y:.1%}"))
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
    layout = _base_layout("Rows on the list", "")
    layout["xaxis"] |= _log_axis(lengths[-1])
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
    traces = _band_traces(lists["length"], lists["precision"]["low"], lists["precision"]["high"], 1)
    curves = _models_of(report)
    traces += [
        _line_trace(curve["x"], curve["y"], name, series, "%{y:.1%}")
        for series, (name, curve) in enumerate(_kind(curves, "list_precision"), start=1)
    ]
    layout = _base_layout("Rows on the list", "Precision")
    layout["xaxis"] |= _log_axis(lists["length"][-1])
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
    traces = _band_traces(band["x"], band["low"], band["high"], 1)
    traces += [
        _line_trace(curve["x"], curve["y"], name, series, "recall %{x:.1%}: precision %{y:.1%}")
        for series, (name, curve) in enumerate(_kind(curves, "recall_precision"), start=1)
    ]
    base = report["data"]["prevalence"]
    traces.append(_chance_trace([0, 1], [base, base]))
    layout = _base_layout("Recall", "Precision")
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".0%"}
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    places = [place for place, x in enumerate(band["x"]) if round(100 * x) in range(10, 101, 10)]
    curve = curves[report["model"]]["recall_precision"]
    rows = [
        [
            _round_percent(band["x"][place]),
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
    traces = _band_traces([band["x"][place] for place in inside], low, high, 1)
    hover = "false positive rate %{x:.2%}: recall %{y:.1%}"
    for series, (name, curve) in enumerate(_kind(curves, "roc"), start=1):
        x, y = _cut(curve, limit)
        traces.append(_line_trace(x, y, name, series, hover))
    traces.append(_chance_trace([0, limit], [0, limit]))
    layout = _base_layout("False positive rate", "Recall")
    layout["xaxis"] |= {"range": [0, limit], "tickformat": ".0%"}
    layout["yaxis"] |= {"range": [0, 1.02], "tickformat": ".0%"}
    step = 0.1 if most is None else most / 5
    places = [p for p in inside if abs(band["x"][p] / step - round(band["x"][p] / step)) < 1e-6]
    curve = curves[report["model"]]["roc"]
    rows = [
        [
            _round_percent(band["x"][place]),
            percent(_height(curve, band["x"][place])),
            between(band["low"][place], band["high"][place], percent),
        ]
        for place in places
    ]
    return {
        "title": "ROC curve"
        if most is None
        else f"ROC curve up to {_round_percent(limit)} false positives",
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
    return f"At a false positive rate of {_round_percent(most)}, {percent(reached)} of the positives are found."


# -- models, time, features ---------------------------------------------------------------------------


def _difference_figures(report: Report) -> dict[str, Figure]:
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
            traces.append(_forest(chosen, VERDICTS[verdict], color, symbol))
    layout = _base_layout("Difference of average precision", "")
    layout["yaxis"] |= {
        "categoryorder": "array",
        "categoryarray": [_short_name(entry["model"]) for entry in entries[::-1]],
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
                VERDICTS.get(entry["verdict"], entry["verdict"]),
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
        "y": [_short_name(entry["model"]) for entry in entries],
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


def _time(report: Report) -> Figure:
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
            **_chance_trace(labels, [block["prevalence"] for block in scored]),
            "name": "Share of positives",
        },
    ]
    layout = _base_layout("Start of the block", "Average precision")
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
                _with_interval(block["average_precision"]),
                _with_interval(block["roc_auc"]),
            ]
            for block in blocks
        ],
        "traces": traces,
        "layout": layout,
        "height": 340,
    }


def _importance(report: Report) -> Figure:
    entries = report["importance"]
    drawn = entries[:MOST_FEATURES_SHOWN][::-1]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "x": [entry["importance"] for entry in drawn],
            "y": [f"{place}. {_short_name(entry['feature'])}" for place, entry in
                  zip(range(len(drawn), 0, -1), drawn, strict=True)],
            "marker": {"color": "series-1"},
            "hovertemplate": "%{x:.4g}<extra></extra>",
            "showlegend": False,
        }
    ]  # fmt: skip
    layout = _base_layout("Mean absolute contribution to the score", "")
    layout["yaxis"] |= {"showgrid": False, "automargin": True}
    layout["bargap"] = 0.45
    return {
        "title": "Mean contribution of each feature",
        "summary": (
            f"The greatest contribution comes from {entries[0]['feature']}"
            + (f", then {entries[1]['feature']}." if len(entries) > 1 else ".")
        ),
        "columns": ["Feature", "Importance"],
        "rows": [[entry["feature"], amount(entry["importance"])] for entry in entries],
        "traces": traces,
        "layout": layout,
        "height": 90 + 26 * len(drawn),
    }


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


# -- parts of plots -----------------------------------------------------------------------------------


def _line_trace(
    x: list[float], y: list[float], name: str, series: int, hover: str
) -> dict[str, Any]:
    color = f"series-{(series - 1) % SERIES + 1}"
    dash = DASHES[(series - 1) % len(DASHES)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _short_name(name),
        "x": x,
        "y": y,
        "line": {"color": color, "width": 2.5 if series == 1 else 1.8, "dash": dash},
        "hovertemplate": hover,
    }


def _band_traces(
    x: list[float], low: list[float], high: list[float], series: int
) -> list[dict[str, Any]]:
    """Two lines with the space between them filled."""
    edge = {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "line": {"width": 0, "color": f"series-{series}"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [
        {**edge, "y": low},
        {**edge, "y": high, "fill": "tonexty", "fillcolor": f"band-{series}"},
    ]


def _chance_trace(x: list[Any], y: list[float]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "Random order",
        "x": x,
        "y": y,
        "line": {"color": "muted", "width": 1.2, "dash": "dot"},
        "hoverinfo": "skip",
    }


def _base_layout(x_title: str, y_title: str) -> dict[str, Any]:
    axis = {"gridcolor": "grid", "zeroline": False, "fixedrange": True, "zerolinecolor": "muted"}
    return {
        "xaxis": {**axis, "title": {"text": x_title, "standoff": 10, "font": {"size": 13}}},
        "yaxis": {**axis, "title": {"text": y_title, "standoff": 8, "font": {"size": 13}}},
        "margin": {"l": 56, "r": 28, "t": 12, "b": 52},
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "hovermode": "closest",
        "dragmode": False,
    }


def _log_axis(last: float) -> dict[str, Any]:
    top = max(1, int(np.ceil(np.log10(max(last, 2)))))
    ticks = [10**power for power in range(top + 1)]
    return {
        "type": "log",
        "range": [0, float(np.log10(max(last, 2)))],
        "tickvals": ticks,
        "ticktext": [count(tick) for tick in ticks],
    }


def _with_interval(entry: dict[str, float] | None) -> str:
    if entry is None:
        return "n/a"
    if entry["low"] is None:
        return decimal(entry["value"])
    return f"{decimal(entry['value'])} ({between(entry['low'], entry['high'], decimal)})"


def _round_percent(share: float) -> str:
    """A share that was chosen, not measured, as a percentage."""
    return f"{100 * share:.3g}%"


def _short_name(name: str, most: int = 28) -> str:
    """Cut a long name and escape it, so that Plotly shows it as it is."""
    return escape(shorten(name, most), quote=False)
