"""Options that several commands share, each with one name and one meaning, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "CostOfCheck", "Currency", "Data", "Drop", "Gap", "Identifier", "Jobs", "Json", "Lengths",
    "Level", "ModelFile", "Models", "PageResamples", "Positive", "Query", "Resamples", "Seed",
    "Sql", "Target", "Text", "Time", "Value", "Weight", "read_costs", "read_lengths",
    "read_model_names",
]  # fmt: skip

_COLUMNS, _PAGE, _RUN = "Columns", "Page", "Run"

Data = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV or Parquet file; a pattern such as 'days/*.parquet'; - for standard input.",
        show_default=False,
    ),
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file of toprank fit.", show_default=False)
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
Target = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="COL",
        help="Column of the labels.",
        rich_help_panel=_COLUMNS,
        show_default=False,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="VALUE",
        help="The label that counts; without it, the greater of two.",
        rich_help_panel=_COLUMNS,
    ),
]
Identifier = Annotated[
    str | None,
    typer.Option("--id", metavar="COL", help="Column that names rows.", rich_help_panel=_COLUMNS),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        metavar="COL",
        help="Column of queries: rows of one query are one list.",
        rich_help_panel=_COLUMNS,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="COL",
        help="Column of times: train on the past, test on what follows.",
        rich_help_panel=_COLUMNS,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COL",
        help="Column of row weights: 2 is the row twice.",
        rich_help_panel=_COLUMNS,
    ),
]
Value = Annotated[
    str | None,
    typer.Option(
        "--value",
        metavar="COL",
        help="Column of the money at stake in each row.",
        rich_help_panel=_COLUMNS,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COLS",
        help="Columns to leave out, joined by commas; may be repeated.",
        rich_help_panel=_COLUMNS,
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        "--text",
        metavar="COLS",
        help="Columns to take as text even where they hold numbers.",
        rich_help_panel=_COLUMNS,
    ),
]
Gap = Annotated[
    float | None,
    typer.Option(
        "--gap",
        metavar="DAYS",
        min=0,
        help="Days between training and test, for labels that arrive late (with --time; in the "
        "column's own unit where it holds numbers).",
        rich_help_panel=_COLUMNS,
    ),
]
CostOfCheck = Annotated[
    float | None,
    typer.Option(
        "--cost-of-check", min=0, help="What it costs to check a row.", rich_help_panel=_PAGE
    ),
]
Currency = Annotated[
    str, typer.Option("--currency", help="Sign before money on the page.", rich_help_panel=_PAGE)
]
Lengths = Annotated[
    str,
    typer.Option(
        "--lengths", metavar="NUMBERS", help="List lengths to show first.", rich_help_panel=_PAGE
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of a table.", rich_help_panel=_RUN)
]
Seed = Annotated[
    int, typer.Option("--seed", help="Fixes everything that is drawn.", rich_help_panel=_RUN)
]
Jobs = Annotated[
    int,
    typer.Option("--jobs", help="Cores to use; -1 for all.", rich_help_panel=_RUN),
]
Level = Annotated[
    float, typer.Option("--level", help="Confidence level of intervals.", rich_help_panel=_RUN)
]
PageResamples = Annotated[
    int,
    typer.Option(
        "--resamples", min=1, help="Bootstrap resamples for the intervals.", rich_help_panel=_RUN
    ),
]
Resamples = Annotated[
    int,
    typer.Option(
        "--resamples",
        min=0,
        help="Bootstrap resamples for the intervals; 0: none.",
        rich_help_panel=_RUN,
    ),
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
