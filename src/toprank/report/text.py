"""Numbers and findings in words: everything that the page writes, where tests can read it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from toprank.metrics import METRICS

__all__ = ["amount", "between", "count", "decimal", "money", "page_texts", "percent", "signed"]

Report = dict[str, Any]
SHORT_CELL = 24  # letters
METRIC_NAMES = {
    "roc_auc": "ROC AUC",
    "average_precision": "Average precision",
    "recall_precision_area": "Area under recall-precision",
    "pos_at_top": "Positives at the top",
    "precision_at_k": "Precision at k",
    "hit_rate": "Hit rate",
    "partial_auc": "Partial AUC",
    "two_way_partial_auc": "Two-way partial AUC",
    "local_auc": "Local AUC",
    "mean_precision": "Mean precision",
    "precision_at_recall": "Precision at recall",
    "recall_at_precision": "Recall at precision",
    "list_length_for_recall": "List length for recall",
    "ndcg": "NDCG",
}
LENGTHS = ("list_length_for_recall",)  # metrics that count rows
MEANINGS = {"hit_rate": "share of right rows in the first part of the whole list"}
VERDICTS = {"better": "better", "worse": "worse", "cannot tell": "cannot tell apart"}
COLUMN_NAMES = {
    "rank": "Rank",
    "id": "Id",
    "row": "Row",
    "per": "Group",
    "outcome": "Outcome",
    "score": "Score",
    "probability": "Probability",
    "value": "Value",
    "expected_value": "Expected value",
    "reasons": "Reasons",
}


# -- numbers ------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """Write a share as a percentage; only exactly 0 and 1 are written as 0% and 100%."""
    if share <= 0 or share >= 1:
        return f"{100 * share:.0f}%"
    if share < 0.0001:
        return "<0.01%"
    if share > 0.999:
        return ">99.9%"
    if share < 0.001:
        return f"{100 * share:.2f}%"
    return f"{100 * share:.1f}%" if share < 0.0995 or share >= 0.995 else f"{100 * share:.0f}%"


def count(number: float) -> str:
    """Write a number of rows; one decimal where ties or weights leave a fraction."""
    if abs(number - round(number)) < 1e-6 or abs(number) >= 1000:
        return f"{number:,.0f}".replace("-0", "0") if round(number) == 0 else f"{number:,.0f}"
    return f"{number:,.1f}"


def amount(number: float) -> str:
    """Write any number in about four significant digits."""
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else str(number)
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.4g}"


def decimal(number: float | None) -> str:
    """Write a metric with three decimals."""
    if number is None:
        return "n/a"
    return whole(number) if abs(number) >= 100 else f"{number:.3f}"


def whole(number: float) -> str:
    """Write a number without decimals."""
    return f"{number:,.0f}"


def signed(number: float | None) -> str:
    """Write a difference with its sign."""
    return "n/a" if number is None else f"{number:+.3f}"


def money(number: float, currency: str = "", beside: float = 0.0) -> str:
    """Write money without small change where it, or what stands beside it, is large."""
    large = max(abs(number), abs(beside)) >= 1000
    digits = f"{abs(number):,.0f}" if large else f"{abs(number):,.2f}"
    digits = digits.removesuffix(".00")
    sign = "-" if number < 0 and digits.strip("0.,") else ""
    return f"{sign}{currency}{digits}"


def between(low: Any, high: Any, write: Callable[[Any], str]) -> str:
    """Write an interval."""
    first, last = write(low), write(high)
    return first if first == last else f"{first} to {last}"


# -- sentences and tables -----------------------------------------------------------------------------


def page_texts(report: Report) -> dict[str, Any]:
    """Return everything that the template writes beside the figures."""
    lists, lengths, data = report["lists"], report["lengths"], report["data"]
    texts = [_one_list(report, position) for position in range(len(lists["length"]))]
    start = lists["length"].index(lengths[len(lengths) // 2])  # what the slider starts with
    longest = lists["length"].index(lengths[-1])
    missed = data["n_positives"] - lists["hits"]["value"][longest]
    right = texts[start]["hits"]
    return {
        "headline": (
            f"Of the {texts[start]['length']} rows ranked highest, "
            f"{right} {'is' if right == '1' else 'are'} right."
        ),
        "lists": texts,
        "start": start,
        "cards": [
            {
                **texts[position],
                "position": position,
                "share": _shares(lists["precision"], position),
            }
            for position in map(lists["length"].index, lengths)
        ],
        "bigger": [
            {
                key: percent(number) if key == "recall" else count(number)
                for key, number in row.items()
            }
            for row in report["bigger"]
        ],
        "missed": count(max(missed, 0.0)),
        "metrics": metric_texts(report),
        "alerts": alert_texts(report),
        "models": model_texts(report),
        "time": None if report["time"] is None else time_sentence(report),
        "segments": [segment_texts(table) for table in report["segments"]],
        "drift": None if report["drift"] is None else drift_texts(report["drift"]),
        "daily": None if report["daily"] is None else daily_sentence(report["daily"]),
        "level": percent(report["level"]),
        "n_rows": count(data["n_rows"]),
        "n_positives": count(data["n_positives"]),
        "prevalence": percent(data["prevalence"]),
    }


def _shares(column: dict[str, list[float]], position: int) -> dict[str, str]:
    """Return a share and its interval in percent, for the style of a bar."""
    return {key: f"{100 * column[key][position]:.2f}" for key in ("value", "low", "high")}


def _one_list(report: Report, position: int) -> dict[str, str]:
    """Return the figures of one list length as strings."""
    lists = report["lists"]
    texts = {"length": count(lists["length"][position])}
    for name in ("hits", "precision", "recall", "false_alarms"):
        share = name in ("precision", "recall")
        value, low, high = (lists[name][key][position] for key in ("value", "low", "high"))
        texts[name] = percent(value) if share else count(value)
        texts[f"{name}_range"] = (
            between(low, high, percent) if share else between(round(low), round(high), count)
        )
    texts |= _money_texts(report, position)
    texts["spoken"] = (
        f"{texts['length']} rows: {texts['hits']} right, precision {texts['precision']}, "
        f"recall {texts['recall']}, {texts['false_alarms']} false alarms"
    )
    if "money" in texts:
        texts["spoken"] += f", {texts['money']} {texts['money_note']}"
    return texts


def _money_texts(report: Report, position: int) -> dict[str, str]:
    """Return the money of one list: left over, caught or spent, as far as it is known."""
    table = report["lists"]["money"]
    if table is None:
        return {}
    write = partial(money, currency=report["currency"] or "")
    spent = None if table["spent"] is None else write(table["spent"][position])
    if table["caught"] is None:
        return {"money": spent or "", "money_range": "", "money_note": "spent on checks"}
    column = table["caught" if spent is None else "net"]
    ends = (column[key][position] for key in ("value", "low", "high"))
    write = partial(write, beside=max(map(abs, ends)))
    caught = write(table["caught"]["value"][position])
    return {
        "money": write(column["value"][position]),
        "money_range": between(column["low"][position], column["high"][position], write),
        "money_note": (
            "caught" if spent is None else f"left: {caught} caught, {spent} spent on checks"
        ),
    }


def metric_texts(report: Report) -> list[dict[str, str]]:
    """Return all metrics as rows of a table."""
    rows = []
    for name, entry in report["metrics"].items():
        given = {
            key: value
            for key, value in entry["parameters"].items()
            if value is not None and not isinstance(value, bool)
        }
        rows.append(
            {
                "name": METRIC_NAMES.get(name, name),
                "summary": MEANINGS.get(name, METRICS[name].summary if name in METRICS else ""),
                "settings": ", ".join(f"{key} = {_setting(value)}" for key, value in given.items()),
                **_value_and_range(entry, whole if name in LENGTHS else decimal, unknown=""),
            }
        )
    return rows


def _setting(value: Any) -> str:
    """Write the value of a parameter."""
    if isinstance(value, list):
        return f"{value[0]:g} to {value[-1]:g}"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def alert_texts(report: Report) -> dict[str, Any]:
    """Return the alerts as strings: columns with their kind, and rows of cells."""
    alerts, currency = report["alerts"], report["currency"] or ""
    names = alerts["columns"]
    hidden = {"probability_low", "probability_high"} if "probability" in names else set()
    places = [place for place, name in enumerate(names) if name not in hidden]
    return {
        "columns": [
            {
                "name": COLUMN_NAMES.get(names[place], names[place]),
                "kind": _kind(names[place], [row[place] for row in alerts["rows"]]),
            }
            for place in places
        ],
        "rows": [
            [_alert_cell(place, names, row, currency) for place in places] for row in alerts["rows"]
        ],
        "csv": alerts["csv"],
        "n_total": alerts["n_total"],
    }


def _kind(name: str, cells: list[Any]) -> str:
    """Return how a column is set: reasons, outcome, number, short text (never broken) or text."""
    if name in ("reasons", "outcome"):
        return name
    given = [cell for cell in cells if cell is not None]
    if given and all(isinstance(cell, int | float) for cell in given):
        return "number"
    return "short" if all(len(str(cell)) <= SHORT_CELL for cell in given) else "text"


def _alert_cell(place: int, names: list[str], row: list[Any], currency: str) -> Any:
    """Return one cell of the alerts as text, or as a list of texts."""
    cell, name = row[place], names[place]
    if isinstance(cell, list):
        return cell
    if cell is None:
        return ""
    if name == "probability" and isinstance(cell, float):
        by_name = dict(zip(names, row, strict=True))
        low, high = (by_name.get(f"probability_{end}") for end in ("low", "high"))
        known = low is not None and high is not None
        return percent(cell) + (f" ({between(low, high, percent)})" if known else "")
    if name in ("value", "expected_value") and isinstance(cell, int | float):
        return money(cell, currency)
    if name == "score" and isinstance(cell, float):
        return f"{cell:,.3f}"
    return amount(cell) if isinstance(cell, float) else str(cell)


def model_texts(report: Report) -> dict[str, Any] | None:
    """Return the comparison of models as rows of strings."""
    models = report["models"]
    if models is None:
        return None
    names = [name for name in models["table"][0] if name in METRIC_NAMES]
    table = [
        {
            "model": row["model"],
            "summary": model_words(row["model"]),
            "is_this": row["model"] == report["model"],
            "cells": [_value_and_range(row[name], decimal) for name in names],
            "seconds": f"{row['seconds']:,.1f}" if row.get("seconds") is not None else None,
        }
        for row in models["table"]
    ]
    differences = [
        {
            "model": entry["model"],
            "against": entry["against"],
            "metric": METRIC_NAMES.get(entry["metric"], entry["metric"]),
            **_value_and_range({**entry, "value": entry["difference"]}, signed),
            "verdict": VERDICTS.get(entry["verdict"], entry["verdict"]),
        }
        for entry in models["differences"]
    ]
    return {
        "note": models["note"],
        "notes": models["notes"],
        "advice": (models["recommended"] or {}).get("sentence"),
        "metrics": [
            {"name": METRIC_NAMES[name], "setting": models["settings"].get(name, "")}
            for name in names
        ],
        "timed": any(row["seconds"] is not None for row in table),
        "table": table,
        "differences": differences,
    }


def _value_and_range(
    entry: dict[str, Any], write: Callable[[Any], str], unknown: str = "no interval"
) -> dict[str, str]:
    """Return a figure and its interval, which a single split cannot give."""
    known = entry["low"] is not None and entry["high"] is not None
    return {
        "value": write(entry["value"]),
        "range": between(entry["low"], entry["high"], write) if known else unknown,
    }


def model_words(name: str) -> str:
    """Return what a model is, in words; nothing for a name that is not one of the library's."""
    from toprank.selection.models import MODELS, YARDSTICK

    if name == YARDSTICK:
        return "what a careful user would have otherwise: XGBoost on the logistic loss, tuned"
    return MODELS[name].summary if name in MODELS else ""


def segment_texts(table: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the rows as lines of strings."""
    lines = [
        [
            line["part"],
            count(line["n_rows"]),
            f"{count(line['n_positives'])} ({percent(line['prevalence'])})",
            decimal(line["average_precision"]),
            decimal(line["roc_auc"]),
            f"{count(line['hits'])} of {count(line['listed'])}",
        ]
        for line in table["parts"]
    ]
    more = table["n_parts"] - len(lines)
    return {
        "name": table["name"],
        "columns": [table["name"], "Rows", "Positives", "Average precision", "ROC AUC",
                    f"Right in the top {count(table['length'])}"],
        "lines": lines,
        "more": f"{count(more)} smaller parts are not shown." if more > 0 else "",
    }  # fmt: skip


def drift_texts(drift: dict[str, Any]) -> dict[str, Any]:
    """Return the drift of the columns as lines of strings, and a sentence."""
    said = (
        "Compared with the training rows, these have drifted: "
        + "; ".join(drift["warnings"][:5])
        + "."
        if drift["warnings"]
        else "No column has drifted from the training rows by more than chance explains."
    )
    lines = [
        [
            column["name"],
            column["drift"],
            f"{column['psi']:.3f}",
            percent(column["missing"]),
            percent(column["missing_training"]),
            "\u2013" if column["unseen"] is None else percent(column["unseen"]),
        ]
        for column in drift["columns"]
    ]
    return {"sentence": said, "lines": lines}


def daily_sentence(daily: dict[str, Any]) -> str:
    """Say how precise daily lists are."""
    what = "groups of rows, none of them again once it is found" if daily["grouped"] else "rows"
    bounds = (
        ""
        if daily["low"] is None
        else f" ({between(daily['low'], daily['high'], percent)} over days)"
    )
    return (
        f"With {count(daily['k'])} checks a day, {percent(daily['value'])}{bounds} of the checks are right, as "
        f"the mean over {count(len(daily['days']))} days; a list holds the first {count(daily['k'])} {what}."
    )


def time_sentence(report: Report) -> str:
    """Return what happened to the quality over time."""
    change = report["time"]["change"]
    if change is None:
        return "There are too few positives in one half of the time to compare the halves."
    figures = (
        f"ROC AUC {decimal(change['earlier'])} in the earlier half of the rows, "
        f"{decimal(change['later'])} in the later (difference {signed(change['difference'])}, "
        f"interval {between(change['low'], change['high'], signed)})."
    )
    verdict = {
        "better": "Later rows are ranked better than earlier ones.",
        "worse": "Later rows are ranked worse than earlier ones: the model may be ageing.",
        "cannot tell": "No sign that the ranking gets better or worse with time.",
    }[change["verdict"]]
    return f"{verdict} {figures}"
