"""`toprank compare`: which model to trust on your data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from toprank.cli.application import app
from toprank.cli.inputs import Roles, input_files, read_labelled
from toprank.cli.options import (
    CostOfCheck,
    Currency,
    Data,
    Drop,
    Gap,
    Identifier,
    Jobs,
    Json,
    Lengths,
    Level,
    Positive,
    Query,
    Seed,
    Sql,
    Target,
    Text,
    Time,
    Value,
    Weight,
)
from toprank.cli.output import (
    check_target,
    note,
    on_terminal,
    print_json,
    print_table,
    say,
    warn,
    with_interval,
)
from toprank.cli.pages import as_lengths, print_lists

__all__ = ["compare", "compared_report", "print_comparison"]

TITLES = {
    "average_precision": "AP",
    "precision_at_k": "P@k",
    "pos_at_top": "Pos@Top",
    "partial_auc": "pAUC",
    "roc_auc": "AUC",
}


@app.command()
def compare(
    target: Target,
    data: Data = None,
    sql: Sql = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            metavar="NAMES",
            help="Joined by commas, or all; toprank models lists them. The yardstick is always there.",
        ),
    ] = None,
    splits: Annotated[
        int, typer.Option("--splits", min=2, help="Folds, or blocks of time with --time.")
    ] = 5,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Repeats of the folds.")] = 2,
    time_budget: Annotated[
        float | None,
        typer.Option(
            "--time-budget",
            metavar="SECONDS",
            help="Stop after about so long, with the splits that are complete.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("--k", min=1, help="List length of P@k; by default as many as positives."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page, *.html.")] = Path(
        "toprank-comparison.html"
    ),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the page.")] = True,
    positive: Positive = None,
    identifier: Identifier = None,
    query: Query = None,
    time: Time = None,
    gap: Gap = None,
    weight: Weight = None,
    value: Value = None,
    drop: Drop = None,
    text: Text = None,
    cost_of_check: CostOfCheck = None,
    currency: Currency = "",
    lengths: Lengths = "50,100,200",
    level: Level = 0.95,
    jobs: Jobs = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare models on your data: which is best, how good, how sure; writes a page.

    [bold]Examples[/bold]

    toprank compare payments.parquet --target is_fraud --id payment --drop card

    toprank compare payments.parquet --target is_fraud --time paid_at --gap 7 --time-budget 600

    toprank compare rows.csv --target kind --positive bad --models ap_sigmoid,linear,treerank
    """
    from toprank.selection import compare_models

    if page:
        check_target(out, (".html", ".htm"), input_files(data))
    shown_lengths, names = as_lengths(lengths), model_names(models)
    roles = Roles(target, positive, identifier, query, time, weight, value, drop or (), text or ())
    rows = read_labelled(data, sql, roles)
    for doubt in rows.doubts:
        warn(doubt)
    comparison = compare_models(
        rows.X, rows.y, models=names, qid=rows.qid, time=rows.time, gap=gap,
        sample_weight=rows.weight, n_splits=splits, n_repeats=repeats, time_budget=time_budget,
        k=k, level=level, random_state=seed, n_jobs=jobs, verbose=on_terminal(),
    )  # fmt: skip
    found = None
    if page:
        from toprank.report import write_page

        settings = {
            "cost_of_check": cost_of_check,
            "currency": currency,
            "lengths": shown_lengths,
            "level": level,
            "random_state": seed,
        }
        found = compared_report(comparison, rows, settings)
        write_page(found, out)
    if as_json:
        answer = {"rows": len(rows.X), **comparison.as_dict()}
        print_json({**answer, "file": str(out)} if page else answer)
        return
    print_comparison(comparison)
    if found is not None:
        print_lists(found)
        say(f"The page: {out}")


def model_names(text: str | None) -> list[str] | None:
    """Names of models from text; None for the default set."""
    from toprank.selection import MODELS
    from toprank.selection.models import find_candidate

    if text is None:
        return None
    names = list(MODELS) if text == "all" else [name.strip() for name in text.split(",")]
    for name in names:
        find_candidate(name)
    return names


def compared_report(comparison: Any, rows: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """The report of the best model on the rows that it was tested on."""
    from toprank.report import evaluate

    table, best = comparison.scores, comparison.recommended.model
    held_out = table["row"].to_numpy()
    pooled = pooled_scores(table, list(comparison.models))

    def part(values: Any) -> Any:
        return None if values is None else values[held_out]

    return evaluate(
        table["label"].to_numpy(),
        pooled[best],
        model=best,
        scores_by_model=pooled,
        comparison=comparison.as_dict(),
        ids=rows.names()[held_out],
        time=part(rows.time),
        value=part(rows.value),
        sample_weight=part(rows.weight),
        **settings,
    )


def pooled_scores(table: Any, models: list[str]) -> dict[str, Any]:
    """Held-out scores of all folds on one scale: the share of its fold that a row stands above.

    Each fold has a model of its own, and models need not agree on a scale: joined as they are, the rows of one
    fold might fill the top of the list. So the list of all folds takes an equal share of each.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"fold": [0, 0, 1, 1], "m": [1.0, 2.0, 700.0, 500.0]})
    >>> pooled_scores(table, ["m"])["m"].tolist()
    [0.25, 0.75, 0.75, 0.25]
    """
    folds = table.groupby("fold")
    sizes = folds["fold"].transform("size")
    return {name: ((folds[name].rank() - 0.5) / sizes).to_numpy() for name in models}


def print_comparison(comparison: Any) -> None:
    """Leaderboard, real differences, what was left out, advice."""
    board = comparison.leaderboard()
    cells = [
        [
            row["model"],
            *(with_interval(row[m], row[f"{m}_low"], row[f"{m}_high"]) for m in TITLES),
            f"{row['seconds']:.1f}",
        ]
        for _, row in board.iterrows()
    ]
    one = comparison.n_splits == 1
    kinds = {
        "stratified": "stratified fold" if one else "stratified folds",
        "grouped": "fold of whole queries" if one else "folds of whole queries",
        "time": "block of time" if one else "blocks of time",
    }
    say(
        f"{len(board)} models on {comparison.n_splits} {kinds[comparison.kind]}; intervals at "
        f"{comparison.level:.0%}"
    )
    print_table(["model", *TITLES.values(), "seconds"], cells, right_from=1)
    _print_differences(comparison)
    for name, reason in {**comparison.failures, **comparison.left_out}.items():
        warn(f"{name} was left out: {reason}")
    for text in comparison.notes:
        note(text)
    say(str(comparison.recommended))


def _print_differences(comparison: Any) -> None:
    """Average precision against the best and against the yardstick, paired."""
    table = comparison.differences()
    cells = [
        [
            row["model"],
            row["other"],
            f"{row['difference']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})",
            row["verdict"],
        ]
        for _, row in table.drop_duplicates(["model", "other"]).iterrows()
    ]
    if cells:
        print_table(["model", "against", "difference of AP", "verdict"], cells)
