"""Options that several commands share, each with one name and one meaning, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "ChecksPerDay", "CostOfCheck", "Currency", "Data", "Drop", "Gap", "Group", "GroupHistory",
    "Identifier", "Jobs", "Json", "Lengths", "Level", "Memory", "ModelFile", "Models", "NewGroup", "NewTime",
    "OptionalTarget", "Page", "PageResamples", "Positive", "Query", "Relational", "Resamples", "Seed",
    "Segment", "Sql", "Target", "Text", "Time", "TimeLimit", "Value", "Weight", "read_costs", "read_lengths",
    "read_model_names",
]  # fmt: skip


def _column(flag: str, help_text: str, metavar: str = "COL", **more: Any) -> Any:
    """Return an option about columns of the data."""
    return typer.Option(flag, metavar=metavar, help=help_text, rich_help_panel="Columns", **more)


def _page(flag: str, help_text: str, **more: Any) -> Any:
    """Return an option about the page that is written."""
    return typer.Option(flag, help=help_text, rich_help_panel="Page", **more)


def _run(flag: str, help_text: str, **more: Any) -> Any:
    """Return an option about how a command is run."""
    return typer.Option(flag, help=help_text, rich_help_panel="Run", **more)


Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV or Parquet file; a pattern such as 'days/*.parquet'; - for standard input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="Model file, written by toprank fit.", show_default=False),
]
Models = Annotated[
    str | None,
    typer.Option(
        "--models",
        metavar="NAMES",
        help="Joined by commas, or all; toprank models lists them. The yardstick is always added.",
    ),
]
Sql = Annotated[
    str | None,
    typer.Option("--sql", metavar="QUERY", help="Read the answer of a DuckDB query, not a file."),
]
Relational = Annotated[
    str | None,
    typer.Option(
        "--relational",
        metavar="FOLDER",
        help="Instead of one file: a folder of Parquet tables, one of them examples.parquet; with a "
        "schema.json it needs no --target.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit", metavar="SECONDS", min=1,
        help="For each fit of the model auto, which tries as much as the time allows.",
    ),
]  # fmt: skip
Page = Annotated[Path, typer.Option("--out", metavar="FILE", help="The page, *.html.")]

Target = Annotated[str, _column("--target", "Column of the labels.", show_default=False)]
OptionalTarget = Annotated[str | None, _column("--target", "Column of the labels.")]
Positive = Annotated[
    str | None,
    _column("--positive", "The label of the rows to find; by default the greater of two.", "VALUE"),
]
Identifier = Annotated[str | None, _column("--id", "Column that names rows.")]
Query = Annotated[
    str | None, _column("--query", "Column of queries: rows of one query are one list.")
]
Group = Annotated[
    str | None,
    _column(
        "--group", "Column of customers, cards, ...: one is never both in training and in test."
    ),
]
GroupHistory = Annotated[
    bool,
    typer.Option(
        "--group-history",
        help="With --time and --group: a group's earlier rows may be trained on.",
        rich_help_panel="Columns",
    ),
]
Time = Annotated[
    str | None, _column("--time", "Column of times: train on the past, test on what follows.")
]
NewTime = Annotated[
    str | None, _column("--time", "Column of times, for lists by day and quality over time.")
]
NewGroup = Annotated[
    str | None, _column("--group", "Column of customers, cards, ...: a daily list has each once.")
]
Weight = Annotated[str | None, _column("--weight", "Column of row weights: 2 is the row twice.")]
Value = Annotated[str | None, _column("--value", "Column of the money at stake in each row.")]
Drop = Annotated[
    list[str] | None,
    _column("--drop", "Columns to leave out, joined by commas; may be repeated.", "COLS"),
]
Text = Annotated[
    list[str] | None,
    _column("--text", "Columns to take as text even where they hold numbers.", "COLS"),
]
Gap = Annotated[
    float | None,
    _column(
        "--gap",
        "Days between training and test, for labels that arrive late (with --time; in the column's own "
        "unit where it holds numbers).",
        "DAYS",
        min=0,
    ),
]
CostOfCheck = Annotated[
    float | None, _page("--cost-of-check", "What it costs to check a row.", min=0)
]
Currency = Annotated[str, _page("--currency", "Sign before money on the page.")]
Segment = Annotated[
    list[str] | None,
    _page(
        "--segment",
        "Columns whose values are looked at one by one; may be repeated.",
        metavar="COL",
    ),
]
ChecksPerDay = Annotated[
    int | None,
    _page("--checks-per-day", "Length of the daily lists, with --time.", metavar="K", min=1),
]
Lengths = Annotated[
    str, _page("--lengths", "List lengths to show first, joined by commas.", metavar="NUMBERS")
]
Json = Annotated[bool, _run("--json", "Print JSON instead of a table.")]
Seed = Annotated[int, _run("--seed", "Fixes everything that is drawn.")]
Jobs = Annotated[int, _run("--jobs", "Cores to use; -1 for all.", min=-1024, max=1024)]
Memory = Annotated[
    str | None,
    _run(
        "--memory",
        "Stream rows that would need more than this to be held at once; by default what is free.",
        metavar="SIZE",
    ),
]
Level = Annotated[float, _run("--level", "Confidence level of intervals.")]
PageResamples = Annotated[int, _run("--resamples", "Bootstrap resamples for the intervals.", min=1)]
Resamples = Annotated[
    int, _run("--resamples", "Bootstrap resamples for the intervals; 0: none.", min=0)
]


def read_model_names(text: str | None) -> list[str] | None:
    """Read names of models, joined by commas; None for the default set."""
    from toprank.selection.models import MODELS, find_candidate

    if text is None:
        return None
    names = list(MODELS) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        find_candidate(name)
    return names


def read_lengths(text: str) -> list[int]:
    """Read list lengths such as 50,100,200."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise ValueError(f"--lengths {text}: write whole numbers such as 50,100,200")
    return found


def read_costs(text: str | None) -> tuple[float, ...] | None:
    """Read the costs of a false alarm and of a miss, and the gain of a hit, such as 5,100,20."""
    if text is None:
        return None
    try:
        costs = tuple(float(part) for part in text.split(","))
    except ValueError:
        costs = ()
    if len(costs) not in (2, 3):
        raise ValueError(
            f"--cost {text}: write the cost of a false alarm and of a miss, such as 5,100"
        )
    return costs
