"""The report in words and display strings: what the template and the script put on the page."""

from __future__ import annotations

from typing import Any

from toprank.metrics import METRICS
from toprank.report import words
from toprank.report.words import between, count, decimal, money, percent, signed

__all__ = ["alert_texts", "bigger_texts", "card_texts", "list_texts", "metric_texts"]

Report = dict[str, Any]
SHORT_CELL = 24  # letters
COLUMN_NAMES = {
    "rank": "Rank",
    "id": "Id",
    "row": "Row",
    "per": "Group",
    "outcome": "Outcome",
    "score": "Score",
    "probability": "Probability",
    "value": "Value",
    "reasons": "Reasons",
}


def list_texts(report: Report) -> list[dict[str, str]]:
    """For every list length: what the slider writes."""
    return [_one_list(report, position) for position in range(len(report["lists"]["length"]))]


def _one_list(report: Report, position: int) -> dict[str, str]:
    lists = report["lists"]
    length = lists["length"][position]

    def three(name: str) -> tuple[float, float, float]:
        column = lists[name]
        return column["value"][position], column["low"][position], column["high"][position]

    hits, hits_low, hits_high = three("hits")
    right, low, high = three("precision")
    recall, recall_low, recall_high = three("recall")
    alarms, alarms_low, alarms_high = three("false_alarms")
    texts = {
        "length": count(length),
        "hits": count(hits),
        "hits_range": between(hits_low, hits_high, _whole),
        "precision": percent(right),
        "precision_range": between(low, high, percent),
        "recall": percent(recall),
        "recall_range": between(recall_low, recall_high, percent),
        "false_alarms": count(alarms),
        "false_alarms_range": between(alarms_low, alarms_high, _whole),
    }
    texts |= _money_texts(report, position)
    texts["spoken"] = (
        f"{texts['length']} rows: {texts['hits']} right, precision {texts['precision']}, "
        f"recall {texts['recall']}, {texts['false_alarms']} false alarms"
    )
    if "money" in texts:
        texts["spoken"] += f", {texts['money']} {texts['money_note']}"
    return texts


def _whole(number: float) -> str:
    return count(round(number))


def _money_texts(report: Report, position: int) -> dict[str, str]:
    """Money of one list: what is left over, caught or spent, as far as it is known."""
    table, currency = report["lists"]["money"], report["currency"] or ""
    if table is None:
        return {}

    def write(number: float) -> str:
        return money(number, currency)

    if table["caught"] is None:
        spent = write(table["spent"][position])
        return {"money": spent, "money_range": "", "money_note": "spent on checks"}
    key = "caught" if table["spent"] is None else "net"
    column = table[key]
    texts = {
        "money": write(column["value"][position]),
        "money_range": between(column["low"][position], column["high"][position], write),
        "money_note": "caught" if key == "caught" else "left after the checks",
    }
    if key == "net":
        caught, spent = write(table["caught"]["value"][position]), write(table["spent"][position])
        texts["money_note"] = f"left: {caught} caught, {spent} spent on checks"
    return texts


def card_texts(report: Report) -> list[dict[str, Any]]:
    """The lists of the first screen."""
    lists = report["lists"]
    cards = []
    for length in report["lengths"]:
        position = lists["length"].index(length)
        shares = {
            key: f"{100 * lists['precision'][key][position]:.2f}"
            for key in ("value", "low", "high")
        }
        cards.append({**_one_list(report, position), "position": position, "share": shares})
    return cards


def bigger_texts(report: Report) -> list[dict[str, str]]:
    """What longer lists would add."""
    return [
        {
            "length": count(entry["length"]),
            "hits": count(entry["hits"]),
            "recall": percent(entry["recall"]),
            "more_hits": count(entry["more_hits"]),
            "more_false_alarms": count(entry["more_false_alarms"]),
        }
        for entry in report["bigger"]
    ]


def headline(report: Report) -> str:
    """The answer in one sentence."""
    lists, length = report["lists"], _middle(report["lengths"])
    texts = _one_list(report, lists["length"].index(length))
    return (
        f"Of the {texts['length']} rows that {_brief(report['model'])} ranks highest, "
        f"{texts['hits']} {'is' if texts['hits'] == '1' else 'are'} right."
    )


def _brief(name: str, most: int = 60) -> str:
    return name if len(name) <= most else name[: most - 1] + "\u2026"


def _middle(lengths: list[int]) -> int:
    return lengths[len(lengths) // 2]


def missed(report: Report) -> str:
    """How many positives the longest list of the first screen leaves out."""
    lists = report["lists"]
    position = lists["length"].index(report["lengths"][-1])
    left = report["data"]["n_positives"] - lists["hits"]["value"][position]
    return count(max(left, 0.0))


def metric_texts(report: Report) -> list[dict[str, str]]:
    """All metrics as rows of a table."""
    rows = []
    for name, entry in report["metrics"].items():
        settings = ", ".join(
            f"{key} = {_setting(value)}"
            for key, value in entry["parameters"].items()
            if value is not None
        )
        known = METRICS.get(name)
        has_interval = entry["low"] is not None
        rows.append(
            {
                "name": words.METRIC_NAMES.get(name, name),
                "summary": known.summary if known else "",
                "settings": settings,
                "value": decimal(entry["value"]),
                "range": between(entry["low"], entry["high"], decimal) if has_interval else "",
            }
        )
    return rows


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return f"{value[0]:g} to {value[-1]:g}"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def alert_texts(report: Report) -> dict[str, Any]:
    """The alerts as strings: columns with their kind, and rows of cells."""
    alerts = report["alerts"]
    names = alerts["columns"]
    hidden = {"probability_low", "probability_high"} if "probability" in names else set()
    columns = [
        {
            "name": COLUMN_NAMES.get(name, name),
            "kind": _kind(name, [row[place] for row in alerts["rows"]]),
            "place": place,
        }
        for place, name in enumerate(names)
        if name not in hidden
    ]
    rows = [
        [_alert_cell(row, names, column["place"], report) for column in columns]
        for row in alerts["rows"]
    ]
    shown = [{"name": column["name"], "kind": column["kind"]} for column in columns]
    return {"columns": shown, "rows": rows, "csv": alerts["csv"], "n_total": alerts["n_total"]}


def _kind(name: str, cells: list[Any]) -> str:
    """How a column is set: reasons, outcome, number, short text (never broken) or text."""
    if name in ("reasons", "outcome"):
        return name
    given = [cell for cell in cells if cell is not None]
    if given and all(isinstance(cell, int | float) for cell in given):
        return "number"
    return "short" if all(len(str(cell)) <= SHORT_CELL for cell in given) else "text"


def _alert_cell(row: list[Any], names: list[str], place: int, report: Report) -> Any:
    cell, name = row[place], names[place]
    if isinstance(cell, list):
        return cell
    if cell is None:
        return ""
    if name == "probability" and isinstance(cell, float):
        text = percent(cell)
        if "probability_low" in names and "probability_high" in names:
            low = row[names.index("probability_low")]
            high = row[names.index("probability_high")]
            if low is not None and high is not None:
                text += f" ({between(low, high, percent)})"
        return text
    if name == "value" and isinstance(cell, int | float):
        return money(cell, report["currency"] or "")
    if isinstance(cell, float):
        return words.amount(cell)
    return str(cell)


def model_texts(report: Report) -> dict[str, Any] | None:
    """The comparison of models as rows of strings."""
    models = report["models"]
    if models is None:
        return None
    names = [name for name in models["table"][0] if name in words.METRIC_NAMES]
    table = [
        {
            "model": row["model"],
            "is_this": row["model"] == report["model"],
            "cells": [_value_and_range(row[name], decimal) for name in names],
            "seconds": words.amount(row["seconds"]) if row.get("seconds") is not None else None,
        }
        for row in models["table"]
    ]
    differences = [
        {
            "model": entry["model"],
            "against": entry["against"],
            "metric": words.METRIC_NAMES.get(entry["metric"], entry["metric"]),
            **_value_and_range({**entry, "value": entry["difference"]}, signed),
            "verdict": words.VERDICTS.get(entry["verdict"], entry["verdict"]),
        }
        for entry in models["differences"]
    ]
    return {
        "note": models["note"],
        "notes": models["notes"],
        "advice": (models["recommended"] or {}).get("sentence"),
        "metrics": [
            {"name": words.METRIC_NAMES[name], "setting": models["settings"].get(name, "")}
            for name in names
        ],
        "timed": any(row["seconds"] is not None for row in table),
        "table": table,
        "differences": differences,
    }


def _value_and_range(entry: dict[str, Any], write: Any) -> dict[str, str]:
    """A figure and its interval, which a single split cannot give."""
    known = entry["low"] is not None and entry["high"] is not None
    return {
        "value": write(entry["value"]),
        "range": between(entry["low"], entry["high"], write) if known else "no interval",
    }


def time_sentence(report: Report) -> str:
    """What happened to the quality over time."""
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


def page_texts(report: Report) -> dict[str, Any]:
    """Everything the template writes that is not a figure."""
    lists = report["lists"]
    start = lists["length"].index(_middle(report["lengths"]))
    return {
        "headline": headline(report),
        "lists": list_texts(report),
        "start": start,
        "cards": card_texts(report),
        "bigger": bigger_texts(report),
        "missed": missed(report),
        "metrics": metric_texts(report),
        "alerts": alert_texts(report),
        "models": model_texts(report),
        "time": None if report["time"] is None else time_sentence(report),
        "level": percent(report["level"]),
        "n_rows": count(report["data"]["n_rows"]),
        "n_positives": count(report["data"]["n_positives"]),
        "prevalence": percent(report["data"]["prevalence"]),
    }
