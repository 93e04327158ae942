"""`toprank models`: the names that `--model` and `--models` take."""

from __future__ import annotations

from toprank.cli.application import app
from toprank.cli.options import Json
from toprank.cli.output import print_json, print_table, say

__all__ = ["models"]


@app.command()
def models(as_json: Json = False) -> None:
    """List the models that can be compared and fitted.

    [bold]Examples[/bold]

    toprank models

    toprank models --json
    """
    from toprank.selection import DEFAULT_MODELS, MODELS, YARDSTICK

    chosen = {*DEFAULT_MODELS, YARDSTICK}
    rows = [
        {
            "name": name,
            "class": candidate.estimator,
            "default": name in chosen,
            "summary": candidate.summary,
        }
        for name, candidate in MODELS.items()
    ]
    if as_json:
        print_json(rows)
        return
    cells = [
        [str(row["name"]), "*" if row["default"] else "", str(row["class"]), str(row["summary"])]
        for row in rows
    ]
    print_table(["name", "", "class", "what it is"], cells)
    say("* compared by default. toprank fit --model takes any of them.")
