"""`toprank models` and `toprank datasets`: what can be named and loaded."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.app import app
from toprank.cli.output import print_json, print_table, say, shown

__all__ = ["datasets", "models"]


@app.command()
def models(as_json: options.Json = False) -> None:
    """List the models that can be compared and fitted.

    [bold]Examples[/bold]

    toprank models

    toprank models --json
    """
    from toprank.selection import DEFAULT_MODELS, MODELS, YARDSTICK

    chosen = {*DEFAULT_MODELS, YARDSTICK}
    found: list[dict[str, Any]] = [
        {"name": name, "class": c.estimator, "default": name in chosen, "summary": c.summary}
        for name, c in MODELS.items()
    ]
    if as_json:
        print_json(found)
        return
    lines = [[m["name"], "*" if m["default"] else "", m["class"], m["summary"]] for m in found]
    print_table(["name", "", "class", "summary"], lines)
    say("* compared by default. toprank fit --model takes any of them.")


@app.command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="One data set, for details.", show_default=False)
    ] = None,
    as_json: options.Json = False,
) -> None:
    """List the data sets that can be loaded, or show one.

    [bold]Examples[/bold]

    toprank datasets

    toprank datasets wdbc --json
    """
    from toprank.datasets import describe
    from toprank.datasets.loaders import find

    table = describe()
    if name is not None:
        table = table.loc[[find(name).name]]
    rows = json.loads(table.reset_index().to_json(orient="records"))
    if as_json:
        print_json(rows[0] if name is not None else rows)
        return
    for row in rows:  # an identifier, not a quantity
        row["openml_id"] = None if row["openml_id"] is None else str(row["openml_id"])
    if name is not None:
        print_table(["", ""], [[key, shown(value)] for key, value in rows[0].items()])
        return
    columns = ["name", "task", "rows", "features", "positives", "positive_share", "openml_id"]
    print_table(columns, [[shown(row[key]) for key in columns] for row in rows], right_from=2)
    say("Set TOPRANK_DATA to a folder of Parquet files, or let OpenML provide those with an id.")
