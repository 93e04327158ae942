"""What the commands that write a page share."""

from __future__ import annotations

from typing import Any

from toprank.cli.inputs import Rows
from toprank.cli.output import say, shown

__all__ = ["alerts_of", "as_lengths", "print_lists"]


def as_lengths(text: str) -> list[int]:
    """List lengths from text such as 50,100,200."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise ValueError(f"--lengths {text}: write whole numbers such as 50,100,200")
    return found


def alerts_of(ranker: Any, rows: Rows, length: int) -> Any:
    """The highest rows with their reasons."""
    import toprank

    budget = min(length, len(rows.X))
    return toprank.shortlist(ranker, rows.X, budget=budget, ids=rows.names(), value=rows.value)


def print_lists(found: dict[str, Any]) -> None:
    """How many of the first rows are right."""
    lists = found["lists"]
    for length in found["lengths"]:
        place = lists["length"].index(length)
        hits = lists["hits"]
        bounds = ""
        if hits["low"][place] is not None:
            bounds = f" ({hits['low'][place]:.0f} to {hits['high'][place]:.0f})"
        recall = lists["recall"]["value"][place]
        say(
            f"Of the first {shown(length)} rows {hits['value'][place]:.0f}{bounds} are right: "
            f"{recall:.0%} of all positives."
        )
