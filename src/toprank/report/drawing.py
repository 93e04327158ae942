"""Parts of the plots: traces, axes and texts, in the words of Plotly but in plain data.

Colours are named by their role; the page's script puts in those of the light or the dark theme. Names
of models and features are escaped, because Plotly reads a little HTML in its texts.
"""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from toprank.report.words import between, count, decimal

Figure = dict[str, Any]
Report = dict[str, Any]
SERIES = 6  # colours before they come again
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def line_trace(
    x: list[float], y: list[float], name: str, series: int, hover: str
) -> dict[str, Any]:
    color = f"series-{(series - 1) % SERIES + 1}"
    dash = DASHES[(series - 1) % len(DASHES)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": short_name(name),
        "x": x,
        "y": y,
        "line": {"color": color, "width": 2.5 if series == 1 else 1.8, "dash": dash},
        "hovertemplate": hover,
    }


def band_traces(
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


def chance_trace(x: list[Any], y: list[float]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "Random order",
        "x": x,
        "y": y,
        "line": {"color": "muted", "width": 1.2, "dash": "dot"},
        "hoverinfo": "skip",
    }


def base_layout(x_title: str, y_title: str) -> dict[str, Any]:
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


def log_axis(last: float) -> dict[str, Any]:
    top = max(1, int(np.ceil(np.log10(max(last, 2)))))
    ticks = [10**power for power in range(top + 1)]
    return {
        "type": "log",
        "range": [0, float(np.log10(max(last, 2)))],
        "tickvals": ticks,
        "ticktext": [count(tick) for tick in ticks],
    }


def with_interval(entry: dict[str, float] | None) -> str:
    if entry is None:
        return "n/a"
    if entry["low"] is None:
        return decimal(entry["value"])
    return f"{decimal(entry['value'])} ({between(entry['low'], entry['high'], decimal)})"


def round_percent(share: float) -> str:
    """A share that was chosen, not measured, as a percentage."""
    return f"{100 * share:.3g}%"


def safe(name: str) -> str:
    """Text that Plotly shows as it is."""
    return escape(name, quote=False)


def short_name(name: str, most: int = 28) -> str:
    return safe(name if len(name) <= most else name[: most - 1] + "\u2026")
