"""`toprank report`: the page of a model on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toprank.cli.application import app
from toprank.cli.inputs import Roles, input_files, load_model, model_columns, read_scored
from toprank.cli.options import (
    CostOfCheck,
    Currency,
    Data,
    Identifier,
    Json,
    Lengths,
    Level,
    ModelFile,
    PageResamples,
    Positive,
    Seed,
    Sql,
    Target,
    Time,
    Value,
    Weight,
)
from toprank.cli.output import check_target, print_json, say, shown
from toprank.cli.pages import alerts_of, as_lengths, print_lists

__all__ = ["report"]


@app.command()
def report(
    model: ModelFile,
    target: Target,
    data: Data = None,
    sql: Sql = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page, *.html.")] = Path(
        "toprank-report.html"
    ),
    positive: Positive = None,
    identifier: Identifier = None,
    time: Time = None,
    weight: Weight = None,
    value: Value = None,
    cost_of_check: CostOfCheck = None,
    currency: Currency = "",
    lengths: Lengths = "50,100,200",
    title: Annotated[str | None, typer.Option("--title", help="Heading of the page.")] = None,
    resamples: PageResamples = 1000,
    level: Level = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write the page of a model: how good it is on labelled rows that it has not learnt from.

    [bold]Examples[/bold]

    toprank report fraud.toprank may.parquet --target is_fraud --id payment --time paid_at

    toprank report fraud.toprank may.csv --target is_fraud --value amount --cost-of-check 12
    """
    from toprank.report import evaluate, write_page
    from toprank.shortlisting import global_importance

    check_target(out, (".html", ".htm"), [str(model), *input_files(data)])
    shown_lengths = as_lengths(lengths)
    ranker = load_model(model)
    roles = Roles(target, positive, identifier, None, time, weight, value)
    rows = read_scored(data, sql, model_columns(ranker), roles)
    assert rows.y is not None
    found = evaluate(
        rows.y,
        ranker.decision_function(rows.X),
        model=model.stem,
        ids=rows.names(),
        alerts=alerts_of(ranker, rows, max(shown_lengths)),
        importance=global_importance(ranker, rows.X),
        time=rows.time,
        value=rows.value,
        cost_of_check=cost_of_check,
        currency=currency,
        lengths=shown_lengths,
        level=level,
        n_resamples=resamples,
        random_state=seed,
        sample_weight=rows.weight,
        title=title,
    )
    write_page(found, out)
    if as_json:
        print_json({**found, "file": str(out)})
        return
    say(f"{shown(len(rows.y))} rows of {rows.source}, {shown(int(rows.y.sum()))} of them positive.")
    print_lists(found)
    say(f"The page: {out}")
