"""The plots as Plotly figures in plain data, each with a title, a description and a table of its figures.

Colours are named by their role; the page's script puts in those of the light or the dark theme. Names
of models and features are escaped, because Plotly reads a little HTML in its texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from toprank.report.evaluate import LOW_RANGE
from toprank.report.text import (
    VERDICTS,
    amount,
    between,
    count,
    decimal,
    money,
    percent,
    signed,
)

__all__ = ["build_figures"]

Figure = dict[str, Any]
Report = dict[str, Any]
Curve = dict[str, list[float]]
SHARE_AXIS = {"range": [0, 1.02], "tickformat": ".0%"}
SERIES = 6  # colours before they come again
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MOST_MODELS = 8  # in one plot
MOST_FEATURES_SHOWN = 15
SHADES = 5  # of the values of a feature, from low to high
# List lengths in tables: 1, 2, 5, 10, ...
LANDMARKS = {base * 10**power for power in range(10) for base in (1, 2, 5)}
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
    money = report["lists"]["money"]
    others = {
        "time": (_time, report["time"]),
        "importance": (_importance, report["importance"]),
        "distribution": (_distribution, report["distribution"]),
        "reliability": (_reliability, report["reliability"]),
        "money": (_money, money and money["caught"]),
        "effects": (_effects, report["effects"]),
    }
    return figures | {name: plot(report) for name, (plot, data) in others.items() if data}


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
        traces += band_traces(lengths, low, high, series)
        traces.append(line_trace(lengths, value, name.capitalize(), series, "%{y:.1%}"))
        ring = {"width": 2, "color": "surface"}
        marker = {"size": 11, "color": f"series-{series}", "line": ring}
        mark = scatter("markers", [lengths[start]], [value[start]], marker=marker)
        marks.append({**mark, "showlegend": False, "hoverinfo": "skip"})
        cells.append(
            [with_interval(*entry, percent) for entry in zip(value, low, high, strict=True)]
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
        "layout": make_layout("Rows on the list", "", log_axis(lengths[-1]))
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
            *band_traces(lists["length"], precision["low"], precision["high"], 1),
            *line_traces(curves, "%{y:.1%}"),
        ],
        "layout": make_layout("Rows on the list", "Precision", log_axis(lists["length"][-1])),
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
            *band_traces(band["x"], band["low"], band["high"], 1),
            *line_traces(curves, "recall %{x:.1%}: precision %{y:.1%}"),
            chance_trace([0, 1], [prevalence, prevalence]),
        ],
        "layout": make_layout("Recall", "Precision", SHARE_AXIS | {"range": [0, 1]}),
        "height": 360,
    }


def _roc(report: Report, limit: float) -> Figure:
    """Plot the ROC curve up to a false positive rate, model by model."""
    band, curves = report["bands"]["roc"], _curves_of(report, "roc")
    inside = sum(x <= limit for x in band["x"])
    x, low, high = (band[key][:inside] for key in ("x", "low", "high"))
    steps = np.divide(x, 0.1 if limit == 1 else limit / 5)
    places = np.flatnonzero(abs(steps - steps.round()) < 1e-6)
    upto = "" if limit == 1 else f" up to {round_percent(limit)} false positives"
    hover = "false positive rate %{x:.2%}: recall %{y:.1%}"
    return {
        "title": f"ROC curve{upto}",
        "summary": _roc_summary(report, limit),
        "columns": ["False positive rate", f"Recall of {report['model']}", "Interval"],
        "rows": _band_rows(band, places, curves[report["model"]], _height),
        "traces": [
            *band_traces(x, low, high, 1),
            *line_traces({name: _cut(curve, limit) for name, curve in curves.items()}, hover),
            chance_trace([0, limit], [0, limit]),
        ],
        "layout": make_layout("False positive rate", "Recall", SHARE_AXIS | {"range": [0, limit]}),
        "height": 360,
    }


def _roc_summary(report: Report, limit: float) -> str:
    """Say the area under the whole curve, or the recall at the end of a part of it."""
    if limit == 1:
        area = report["metrics"]["roc_auc"]
        written = with_interval(area["value"], area["low"], area["high"], decimal, "interval ")
        return f"Area under the curve {written}."
    recall = percent(_height(report["curves"][report["model"]]["roc"], limit))
    return (
        f"At a false positive rate of {round_percent(limit)}, {recall} of the positives are found."
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
            trace = scatter("markers", x, [short_name(entry["model"]) for entry in chosen])
            marker = {"size": 10, "color": color, "symbol": symbol}
            bars = error_bars(chosen, "difference", color)
            trace |= {"name": VERDICTS[verdict], "marker": marker, "error_x": bars}
            traces.append(trace | {"hovertemplate": "%{x:+.3f}"})
    x_axis = {"zeroline": True, "zerolinewidth": 1.5, "tickformat": "+.2f"}
    order = [short_name(entry["model"]) for entry in entries[::-1]]
    y_axis = {
        "categoryorder": "array",
        "categoryarray": order,
        "showgrid": False,
        "automargin": True,
    }
    return {
        "title": f"Difference from {against}",
        "summary": (
            f"Of {len(entries)} other models, {tally['better'] or 'none'} "
            f"{'ranks' if tally['better'] < 2 else 'rank'} better than {against}, "
            f"{tally['worse'] or 'none'} {'ranks' if tally['worse'] < 2 else 'rank'} worse, and "
            f"{tally['cannot tell'] or 'none'} cannot be told apart from it."
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
        "layout": make_layout("Difference of average precision", "", x_axis, y_axis)
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
    line = scatter("lines+markers", starts, values, name="Average precision") | {
        "line": {"color": "series-1", "width": 1.5, "dash": "dot"},
        "marker": {"size": 9, "color": "series-1"},
        "error_y": error_bars(entries, "value", "series-1"),
        "hovertemplate": "%{y:.3f}",
    }
    chance = chance_trace(starts, [block["prevalence"] for block in scored])
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
                    "n/a" if metric is None else with_interval(**metric, write=decimal)
                    for metric in (block["average_precision"], block["roc_auc"])
                ),
            ]
            for block in blocks
        ],
        "traces": [line, chance | {"name": "Share of positives"}],
        "layout": make_layout(
            "Start of the block", "Average precision", x_axis, {"range": [0, 1.02]}
        ),
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
        "y": [f"{place}. {short_name(entry['feature'])}" for place, entry in drawn],
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
        "layout": make_layout("Mean contribution", "", {}, y_axis) | {"bargap": 0.45},
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
            round_percent(band["x"][place]),
            percent(read(curve, band["x"][place])),
            between(band["low"][place], band["high"][place], percent),
        ]
        for place in places
    ]


# -- probabilities, money, scores, effects ------------------------------------------------------------


def _reliability(report: Report) -> Figure:
    """Plot observed against predicted shares of positives."""
    bins = report["reliability"]
    predicted, observed = ([entry[key] for entry in bins] for key in ("predicted", "observed"))
    points = scatter("markers", predicted, observed, name="Rows of similar probability") | {
        "marker": {"size": 9, "color": "series-1"},
        "error_y": error_bars(bins, "observed", "series-1"),
        "hovertemplate": "predicted %{x:.1%}: observed %{y:.1%}",
    }
    top = max(1e-3, 1.05 * max(*predicted, *(entry["high"] for entry in bins)))
    line = {"color": "muted", "width": 1.2, "dash": "dot"}
    exact = scatter("lines", [0, top], [0, top], name="Exactly right", line=line, hoverinfo="skip")
    agree = sum(entry["low"] <= entry["predicted"] <= entry["high"] for entry in bins)
    axis = {"range": [0, min(top, 1.02)], "tickformat": ".0%"}
    return {
        "title": "Are the probabilities right?",
        "summary": (
            f"In {agree} of {len(bins)} groups of rows the predicted share of positives lies within the "
            "interval of the observed one."
        ),
        "columns": ["Predicted", "Observed", "Interval", "Rows"],
        "rows": [
            [
                percent(entry["predicted"]),
                percent(entry["observed"]),
                between(entry["low"], entry["high"], percent),
                count(entry["n_rows"]),
            ]
            for entry in bins
        ],
        "traces": [points, exact],
        "layout": make_layout("Predicted probability", "Observed share", axis, axis),
        "height": 360,
    }


def _money(report: Report) -> Figure:
    """Plot the money of lists of every length, and the best length where checks cost something."""
    lists, table = report["lists"], report["lists"]["money"]
    lengths, costly = lists["length"], table["spent"] is not None
    write = partial(money, currency=report["currency"] or "")
    column = table["net" if costly else "caught"]
    shown = {*map(lengths.index, report["lengths"]), len(lengths) - 1}
    place = lengths.index(table["best"] if costly else report["lengths"][-1])
    traces = [
        *band_traces(lengths, column["low"], column["high"], 1),
        line_trace(
            lengths, column["value"], f"Money {'left' if costly else 'caught'}", 1, "%{y:,.0f}"
        ),
    ]
    value, low, high = (column[key][place] for key in ("value", "low", "high"))
    figure = with_interval(value, low, high, write)
    if costly:
        ring = {"size": 12, "color": "series-3", "line": {"width": 2, "color": "surface"}}
        best = [table["best"]], [column["value"][place]]
        mark = scatter("markers", *best, name="Best length", marker=ring)
        traces.append(mark | {"hovertemplate": "%{x:,} rows: %{y:,.0f}"})
        summary = (
            f"A list of {count(table['best'])} rows leaves most after the cost of the checks: {figure}. The "
            "best length was found on these rows, so expect a little less."
        )
    else:
        summary = (
            f"A list of {count(lengths[place])} rows catches {figure}. Where a check costs something, "
            "--cost-of-check shows which length leaves most."
        )
    columns = ["Rows", "Caught", "Spent on checks", "Left"]
    return {
        "title": "Money by list length",
        "summary": summary,
        "columns": columns if costly else columns[:2],
        "rows": [
            [count(lengths[k]), write(table["caught"]["value"][k])]
            + ([write(table["spent"][k]), write(column["value"][k])] if costly else [])
            for k in sorted(shown | {place})
        ],
        "traces": traces,
        "layout": make_layout(
            "Rows on the list",
            "Money",
            log_axis(lengths[-1]),
            {"tickformat": ",.0f", "automargin": True},
        ),
        "height": 340,
    }


def _distribution(report: Report) -> Figure:
    """Plot the shares of both classes by score."""
    found = report["distribution"]
    edges = found["edges"]
    middle = [(low + high) / 2 for low, high in pairwise(edges)]
    traces = [
        {
            "type": "bar",
            "name": name.capitalize(),
            "x": middle,
            "y": found[name],
            "marker": {"color": color},
            "opacity": 0.6,
            "hovertemplate": "%{y:.1%}",
        }
        for name, color in (("negatives", "muted"), ("positives", "series-2"))
    ]
    overlap = float(np.minimum(found["positives"], found["negatives"]).sum())
    return {
        "title": "Scores of positives and negatives",
        "summary": f"Each class sums to 100%; {percent(overlap)} of the two overlaps.",
        "columns": ["Score from", "Positives", "Negatives"],
        "rows": [
            [amount(edge), percent(positive), percent(negative)]
            for edge, positive, negative in zip(
                edges[:-1], found["positives"], found["negatives"], strict=True
            )
        ],
        "traces": traces,
        "layout": make_layout("Score", "Share of the class", {}, {"tickformat": ".0%"})
        | {"barmode": "overlay", "bargap": 0},
        "height": 320,
    }


def _effects(report: Report) -> Figure:
    """Plot what each row's value adds to its score, coloured from low to high values."""
    entries = report["effects"]
    names = [f"{place}. {short_name(entry['feature'])}" for place, entry in enumerate(entries, 1)]
    random = np.random.default_rng(0)
    points: dict[int | None, tuple[list[float], list[float]]] = {}
    for place, entry in enumerate(entries):
        height = len(entries) - 1 - place
        for adds, level in zip(entry["adds"], entry["level"], strict=True):
            shade = None if level is None else min(int(level * SHADES), SHADES - 1)
            x, y = points.setdefault(shade, ([], []))
            x.append(adds)
            y.append(round(height + float(random.uniform(-0.3, 0.3)), 3))
    words = {0: "lowest values", SHADES - 1: "highest values", None: "categories, missing"}
    traces = []
    for shade in sorted(points, key=lambda s: -1 if s is None else s):
        color = "muted" if shade is None else f"shade-{shade + 1}"
        trace = scatter(
            "markers", *points[shade], marker={"size": 5, "color": color, "opacity": 0.7}
        )
        named = shade in words
        traces.append(
            trace | {"name": words.get(shade, ""), "showlegend": named, "hoverinfo": "skip"}
        )
    y_axis = {
        "tickvals": list(range(len(names))), "ticktext": names[::-1], "showgrid": False,
        "automargin": True, "range": [-0.6, len(names) - 0.4],
    }  # fmt: skip
    return {
        "title": "Which values raise the score, and which lower it",
        "summary": "Each point is a row: right of zero its value raises the score, left of it lowers it.",
        "columns": ["Feature", "Low values add", "High values add"],
        "rows": [[entry["feature"], *_ends(entry)] for entry in entries],
        "traces": traces,
        "layout": make_layout("Added to the score", "", {"zeroline": True}, y_axis)
        | {"showlegend": True},
        "height": 110 + 34 * len(names),
    }


def _ends(entry: dict[str, Any]) -> list[str]:
    """Return the mean contribution of the lowest and of the highest third of the values."""
    known = [(level, adds) for level, adds in zip(entry["level"], entry["adds"], strict=True)
             if level is not None]  # fmt: skip
    ends = (
        [a for level, a in known if level <= 1 / 3],
        [a for level, a in known if level >= 2 / 3],
    )
    return [f"{np.mean(part):+.3g}" if part else "" for part in ends]


# -- what plots are made of -------------------------------------------------------------------------


def scatter(mode: str, x: list[Any], y: list[Any], **options: Any) -> dict[str, Any]:
    """Return lines or marks."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, **options}


def line_trace(
    x: list[float], y: list[float], name: str, series: int, hover: str
) -> dict[str, Any]:
    """Return one line in the colour and dashes of its series."""
    color = f"series-{(series - 1) % SERIES + 1}"
    dash = DASHES[(series - 1) % len(DASHES)]
    line = {"color": color, "width": 2.5 if series == 1 else 1.8, "dash": dash}
    return scatter("lines", x, y, name=short_name(name), line=line, hovertemplate=hover)


def line_traces(curves: dict[str, Curve], hover: str) -> list[dict[str, Any]]:
    """Return one line for each model."""
    return [
        line_trace(curve["x"], curve["y"], name, series, hover)
        for series, (name, curve) in enumerate(curves.items(), start=1)
    ]


def band_traces(
    x: list[float], low: list[float], high: list[float], series: int
) -> list[dict[str, Any]]:
    """Return two lines with the space between them filled."""
    line = {"width": 0, "color": f"series-{series}"}
    lower, upper = (
        scatter("lines", x, y, line=line, hoverinfo="skip", showlegend=False) for y in (low, high)
    )
    return [lower, upper | {"fill": "tonexty", "fillcolor": f"band-{series}"}]


def chance_trace(x: list[Any], y: list[float]) -> dict[str, Any]:
    """Return the line of a random order."""
    line = {"color": "muted", "width": 1.2, "dash": "dot"}
    return scatter("lines", x, y, name="Random order", line=line, hoverinfo="skip")


def error_bars(entries: list[dict[str, Any]], key: str, color: str) -> dict[str, Any]:
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


def make_layout(
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


def log_axis(last: float) -> dict[str, Any]:
    """Return a logarithmic axis from 1 to the last list length."""
    top = max(1, int(np.ceil(np.log10(max(last, 2)))))
    ticks = [10**power for power in range(top + 1)]
    return {
        "type": "log",
        "range": [0, float(np.log10(max(last, 2)))],
        "tickvals": ticks,
        "ticktext": [count(tick) for tick in ticks],
    }


def with_interval(
    value: float, low: float | None, high: float | None, write: Callable[[Any], str], word: str = ""
) -> str:
    """Write a figure with its interval, if that is known."""
    return write(value) if low is None else f"{write(value)} ({word}{between(low, high, write)})"


def round_percent(share: float) -> str:
    """Write a share that was chosen, not measured, as a percentage."""
    return f"{100 * share:.3g}%"


def short_name(name: str, most: int = 28) -> str:
    """Cut a long name in the middle and escape it, so that Plotly shows it as it is."""
    if len(name) > most:
        name = f"{name[: most // 2]}\u2026{name[-((most - 1) // 2) :]}"
    return escape(name, quote=False)
