"""The plots as Plotly figures in plain data, each with a title, a description and a table of its figures.

Colours are named by their role; the page's script puts in those of the light or the dark theme. Names
of models and features are escaped, because Plotly reads a little HTML in its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
Curve = dict[str, list[float]]
MOST_MODELS = 8  # in one plot
MOST_FEATURES_SHOWN = 15
SHARE_AXIS = {"range": [0, 1.02], "tickformat": ".0%"}
# List lengths in tables: 1, 2, 5, 10, ...
LANDMARKS = {base * 10**power for power in range(10) for base in (1, 2, 5)}
SERIES = 6  # colours before they come again
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
VERDICT_MARKS = {  # colour and shape, so that neither has to be told alone
    "better": ("series-3", "triangle-up"),
    "worse": ("series-2", "triangle-down"),
    "cannot tell": ("muted", "circle"),
}


def build_figures(report: Report) -> dict[str, Figure]:
    """Return every plot that the report has data for, by the id of its place on the page."""
    figures = {
        "lists": _lists(report),
        "recall-precision": _recall_precision(report),
        "roc": _roc(report, 1.0),
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
    """Plot precision and recall against list length; the last two traces are the slider's marks."""
    lists, lengths = report["lists"], report["lists"]["length"]
    first, start, last = (
        lengths.index(report["lengths"][place]) for place in (0, len(report["lengths"]) // 2, -1)
    )
    traces, marks, cells = [], [], []
    for series, name in enumerate(("precision", "recall"), start=1):
        value, low, high = (lists[name][key] for key in ("value", "low", "high"))
        traces += _band_traces(lengths, low, high, series)
        traces.append(_line_trace(lengths, value, name.capitalize(), series, "%{y:.1%}"))
        ring = {"width": 2, "color": "surface"}
        marker = {"size": 11, "color": f"series-{series}", "line": ring}
        mark = _scatter("markers", [lengths[start]], [value[start]], marker=marker)
        marks.append({**mark, "showlegend": False, "hoverinfo": "skip"})
        cells.append(
            [_with_interval(*entry, percent) for entry in zip(value, low, high, strict=True)]
        )
    precision, recall = (lists[name]["value"] for name in ("precision", "recall"))
    return {
        "title": "Precision and recall by list length",
        "summary": (
            f"Precision is {percent(precision[first])} at {count(lengths[first])} rows and "
            f"{percent(precision[last])} at {count(lengths[last])}; recall rises to "
            f"{percent(recall[last])} there."
        ),
        "columns": ["Rows", "Precision (interval)", "Recall (interval)"],
        "rows": [
            [count(lengths[place]), *(column[place] for column in cells)]
            for place in sorted(map(lengths.index, LANDMARKS.intersection(lengths)))
        ],
        "traces": traces + marks,
        "layout": _layout("Rows on the list", "", _log_axis(lengths[-1]))
        | {"hovermode": "x unified"},
        "height": 340,
    }


def _list_precision(report: Report) -> Figure:
    """Plot precision against list length, model by model."""
    lists, curves = report["lists"], _curves_of(report, "list_precision")
    precision = lists["precision"]
    wanted = {1, 10, 100, 1000, 10_000, *report["lengths"]}
    lengths = sorted(length for length in wanted if length <= lists["length"][-1])
    return {
        "title": "Precision against list length",
        "summary": f"Share of right rows for each list length, for {len(curves)} models.",
        "columns": ["Model", *(f"Top {count(length)}" for length in lengths)],
        "rows": [
            [name, *(percent(_read(curve, length)) for length in lengths)]
            for name, curve in curves.items()
        ],
        "traces": [
            *_band_traces(lists["length"], precision["low"], precision["high"], 1),
            *_line_traces(curves, "%{y:.1%}"),
        ],
        "layout": _layout("Rows on the list", "Precision", _log_axis(lists["length"][-1])),
        "height": 360,
    }


# -- curves ---------------------------------------------------------------------------------------


def _recall_precision(report: Report) -> Figure:
    """Plot precision against recall, model by model."""
    band, curves = report["bands"]["recall_precision"], _curves_of(report, "recall_precision")
    prevalence = report["data"]["prevalence"]
    places = [place for place, x in enumerate(band["x"]) if round(100 * x) in range(10, 101, 10)]
    area = report["metrics"]["recall_precision_area"]
    return {
        "title": "Precision against recall",
        "summary": (
            f"Area under the curve {decimal(area['value'])}; a random order would have "
            f"precision {percent(prevalence)} throughout."
        ),
        "columns": ["Recall", f"Precision of {report['model']}", "Interval"],
        "rows": _band_rows(band, places, curves[report["model"]], _read),
        "traces": [
            *_band_traces(band["x"], band["low"], band["high"], 1),
            *_line_traces(curves, "recall %{x:.1%}: precision %{y:.1%}"),
            _chance_trace([0, 1], [prevalence, prevalence]),
        ],
        "layout": _layout("Recall", "Precision", SHARE_AXIS | {"range": [0, 1]}),
        "height": 360,
    }


def _roc(report: Report, limit: float) -> Figure:
    """Plot the ROC curve up to a false positive rate, model by model."""
    band, curves = report["bands"]["roc"], _curves_of(report, "roc")
    inside = sum(x <= limit for x in band["x"])
    x, low, high = (band[key][:inside] for key in ("x", "low", "high"))
    steps = np.divide(x, 0.1 if limit == 1 else limit / 5)
    places = np.flatnonzero(abs(steps - steps.round()) < 1e-6)
    upto = "" if limit == 1 else f" up to {_round_percent(limit)} false positives"
    hover = "false positive rate %{x:.2%}: recall %{y:.1%}"
    return {
        "title": f"ROC curve{upto}",
        "summary": _roc_summary(report, limit),
        "columns": ["False positive rate", f"Recall of {report['model']}", "Interval"],
        "rows": _band_rows(band, places, curves[report["model"]], _height),
        "traces": [
            *_band_traces(x, low, high, 1),
            *_line_traces({name: _cut(curve, limit) for name, curve in curves.items()}, hover),
            _chance_trace([0, limit], [0, limit]),
        ],
        "layout": _layout("False positive rate", "Recall", SHARE_AXIS | {"range": [0, limit]}),
        "height": 360,
    }


def _roc_summary(report: Report, limit: float) -> str:
    """Say the area under the whole curve, or the recall at the end of a part of it."""
    if limit == 1:
        area = report["metrics"]["roc_auc"]
        written = _with_interval(area["value"], area["low"], area["high"], decimal, "interval ")
        return f"Area under the curve {written}."
    recall = percent(_height(report["curves"][report["model"]]["roc"], limit))
    return (
        f"At a false positive rate of {_round_percent(limit)}, {recall} of the positives are found."
    )


# -- models, time, features ---------------------------------------------------------------------------


def _difference_figures(report: Report) -> dict[str, Figure]:
    """Plot paired differences of average precision from the anchor and from the yardstick."""
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
    """Plot differences from one model, the highest on top."""
    entries = sorted(entries, key=lambda entry: -entry["difference"])
    traces, tally = [], {}
    for verdict, (color, symbol) in VERDICT_MARKS.items():
        chosen = [entry for entry in entries if entry["verdict"] == verdict]
        tally[verdict] = len(chosen)
        if chosen:
            x = [entry["difference"] for entry in chosen]
            trace = _scatter("markers", x, [_short_name(entry["model"]) for entry in chosen])
            marker = {"size": 10, "color": color, "symbol": symbol}
            bars = _error_bars(chosen, "difference", color)
            trace |= {"name": VERDICTS[verdict], "marker": marker, "error_x": bars}
            traces.append(trace | {"hovertemplate": "%{x:+.3f}"})
    x_axis = {"zeroline": True, "zerolinewidth": 1.5, "tickformat": "+.2f"}
    order = [_short_name(entry["model"]) for entry in entries[::-1]]
    y_axis = {
        "categoryorder": "array",
        "categoryarray": order,
        "showgrid": False,
        "automargin": True,
    }
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
        "layout": _layout("Difference of average precision", "", x_axis, y_axis)
        | {"showlegend": True},
        "height": 130 + 34 * len(entries),
    }


def _time(report: Report) -> Figure:
    """Plot average precision over time with its intervals, and the share of positives."""
    blocks = report["time"]["blocks"]
    scored = [block for block in blocks if block["average_precision"] is not None]
    entries = [block["average_precision"] for block in scored]
    starts = [block["start"] for block in scored]
    values = [entry["value"] for entry in entries]
    line = _scatter("lines+markers", starts, values, name="Average precision") | {
        "line": {"color": "series-1", "width": 1.5, "dash": "dot"},
        "marker": {"size": 9, "color": "series-1"},
        "error_y": _error_bars(entries, "value", "series-1"),
        "hovertemplate": "%{y:.3f}",
    }
    chance = _chance_trace(starts, [block["prevalence"] for block in scored])
    x_axis = {"type": "category", "showgrid": False, "automargin": True}
    n_skipped = len(blocks) - len(scored)
    skipped = f" ({n_skipped} more with rows of one class only)" if n_skipped else ""
    return {
        "title": "Average precision over time",
        "summary": (
            f"Over {len(scored)} consecutive {'block' if len(scored) == 1 else 'blocks'}{skipped} the "
            f"average precision lies between {decimal(min(values, default=0.0))} and "
            f"{decimal(max(values, default=0.0))}."
        ),
        "columns": ["From", "To", "Rows", "Positives", "Average precision", "ROC AUC"],
        "rows": [
            [
                block["start"],
                block["end"],
                count(block["n_rows"]),
                count(block["n_positives"]),
                *(
                    "n/a" if metric is None else _with_interval(**metric, write=decimal)
                    for metric in (block["average_precision"], block["roc_auc"])
                ),
            ]
            for block in blocks
        ],
        "traces": [line, chance | {"name": "Share of positives"}],
        "layout": _layout("Start of the block", "Average precision", x_axis, {"range": [0, 1.02]}),
        "height": 340,
    }


def _importance(report: Report) -> Figure:
    """Plot the contributions of the features, the greatest on top."""
    entries = report["importance"]
    drawn = list(enumerate(entries[:MOST_FEATURES_SHOWN], start=1))[::-1]
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": [entry["importance"] for _, entry in drawn],
        "y": [f"{place}. {_short_name(entry['feature'])}" for place, entry in drawn],
        "marker": {"color": "series-1"},
        "hovertemplate": "%{x:.4g}<extra></extra>",
        "showlegend": False,
    }
    y_axis = {"showgrid": False, "automargin": True}
    return {
        "title": "Mean contribution of each feature",
        "summary": (
            f"The greatest contribution comes from {entries[0]['feature']}"
            + (f", then {entries[1]['feature']}." if len(entries) > 1 else ".")
        ),
        "columns": ["Feature", "Importance"],
        "rows": [[entry["feature"], amount(entry["importance"])] for entry in entries],
        "traces": [bars],
        "layout": _layout("Mean absolute contribution to the score", "", {}, y_axis)
        | {"bargap": 0.45},
        "height": 90 + 26 * len(drawn),
    }


# -- reading curves -----------------------------------------------------------------------------


def _curves_of(report: Report, kind: str) -> dict[str, Curve]:
    """Return one kind of curve of the first few models."""
    return {name: curves[kind] for name, curves in list(report["curves"].items())[:MOST_MODELS]}


def _read(curve: Curve, x: float) -> float:
    """Return the height of a curve."""
    return float(np.interp(x, curve["x"], curve["y"]))


def _height(curve: Curve, x: float) -> float:
    """Return the height of a ROC curve; its upper end where it is vertical."""
    xs, ys = np.asarray(curve["x"]), np.asarray(curve["y"])
    at = np.searchsorted(xs, x, side="right") - 1
    return float(ys[at]) if xs[at] == x else _read(curve, x)


def _cut(curve: Curve, limit: float) -> Curve:
    """Return a curve up to x = limit."""
    inside = sum(x <= limit for x in curve["x"])
    x, y = curve["x"][:inside], curve["y"][:inside]
    if x[-1] < limit:
        x, y = [*x, limit], [*y, _read(curve, limit)]
    return {"x": x, "y": y}


def _band_rows(
    band: Curve, places: Iterable[int], curve: Curve, read: Callable[[Curve, float], float]
) -> list[list[str]]:
    """Return a table of a curve with its band at some places."""
    return [
        [
            _round_percent(band["x"][place]),
            percent(read(curve, band["x"][place])),
            between(band["low"][place], band["high"][place], percent),
        ]
        for place in places
    ]


# -- parts of plots -----------------------------------------------------------------------------------


def _scatter(mode: str, x: list[Any], y: list[Any], **options: Any) -> dict[str, Any]:
    """Return lines or marks."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **options}


def _line_trace(
    x: list[float], y: list[float], name: str, series: int, hover: str
) -> dict[str, Any]:
    """Return one line in the colour and dashes of its series."""
    color = f"series-{(series - 1) % SERIES + 1}"
    dash = DASHES[(series - 1) % len(DASHES)]
    line = {"color": color, "width": 2.5 if series == 1 else 1.8, "dash": dash}
    return _scatter("lines", x, y, name=_short_name(name), line=line, hovertemplate=hover)


def _line_traces(curves: dict[str, Curve], hover: str) -> list[dict[str, Any]]:
    """Return one line for each model."""
    return [
        _line_trace(curve["x"], curve["y"], name, series, hover)
        for series, (name, curve) in enumerate(curves.items(), start=1)
    ]


def _band_traces(
    x: list[float], low: list[float], high: list[float], series: int
) -> list[dict[str, Any]]:
    """Return two lines with the space between them filled."""
    line = {"width": 0, "color": f"series-{series}"}
    lower, upper = (
        _scatter("lines", x, y, line=line, hoverinfo="skip", showlegend=False) for y in (low, high)
    )
    return [lower, upper | {"fill": "tonexty", "fillcolor": f"band-{series}"}]


def _chance_trace(x: list[Any], y: list[float]) -> dict[str, Any]:
    """Return the line of a random order."""
    line = {"color": "muted", "width": 1.2, "dash": "dot"}
    return _scatter("lines", x, y, name="Random order", line=line, hoverinfo="skip")


def _error_bars(entries: list[dict[str, Any]], key: str, color: str) -> dict[str, Any]:
    """Return error bars from the intervals of entries around their values."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(entry["high"] - entry[key], 0.0) for entry in entries],
        "arrayminus": [max(entry[key] - entry["low"], 0.0) for entry in entries],
        "color": color,
        "thickness": 2,
        "width": 0,
    }


def _layout(
    x_title: str, y_title: str, x_axis: Figure, y_axis: Figure = SHARE_AXIS
) -> dict[str, Any]:
    """Return axes, margins and legend as every plot has them, with what is special to its axes."""
    axis = {"gridcolor": "grid", "zeroline": False, "fixedrange": True, "zerolinecolor": "muted"}
    title = {"font": {"size": 13}}
    return {
        "xaxis": {**axis, "title": {"text": x_title, "standoff": 10, **title}, **x_axis},
        "yaxis": {**axis, "title": {"text": y_title, "standoff": 8, **title}, **y_axis},
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
    """Return a logarithmic axis from 1 to the last list length."""
    top = max(1, int(np.ceil(np.log10(max(last, 2)))))
    ticks = [10**power for power in range(top + 1)]
    return {
        "type": "log",
        "range": [0, float(np.log10(max(last, 2)))],
        "tickvals": ticks,
        "ticktext": [count(tick) for tick in ticks],
    }


def _with_interval(
    value: float, low: float | None, high: float | None, write: Callable[[Any], str], word: str = ""
) -> str:
    """Write a figure with its interval, if that is known."""
    return write(value) if low is None else f"{write(value)} ({word}{between(low, high, write)})"


def _round_percent(share: float) -> str:
    """Write a share that was chosen, not measured, as a percentage."""
    return f"{100 * share:.3g}%"


def _short_name(name: str, most: int = 28) -> str:
    """Cut a long name and escape it, so that Plotly shows it as it is."""
    return escape(shorten(name, most), quote=False)
