"""`toprank compare` and `toprank fit`: which model is best on labelled rows, and a model file."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.app import app
from toprank.cli.output import (
    check_output,
    note,
    on_terminal,
    print_json,
    print_list_figures,
    print_table,
    records,
    say,
    shown,
    warn,
    with_interval,
)

if TYPE_CHECKING:
    from toprank.cli.inputs import InputTable

__all__ = ["compare", "fit", "print_comparison"]

TITLES = {
    "average_precision": "AP",
    "precision_at_k": "P@k",
    "pos_at_top": "Pos@Top",
    "partial_auc": "pAUC",
    "roc_auc": "AUC",
}
SPLITS = {  # of a comparison, one and several
    "stratified": ("stratified fold", "stratified folds"),
    "grouped": ("fold of whole queries", "folds of whole queries"),
    "time": ("block of time", "blocks of time"),
}


@app.command()
def compare(
    target: options.Target,
    data: options.Data = None,
    sql: options.Sql = None,
    models: options.Models = None,
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
    out: options.Page = Path("toprank-comparison.html"),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Write the page.")] = True,
    positive: options.Positive = None,
    identifier: options.Identifier = None,
    query: options.Query = None,
    time: options.Time = None,
    gap: options.Gap = None,
    weight: options.Weight = None,
    value: options.Value = None,
    drop: options.Drop = None,
    text: options.Text = None,
    cost_of_check: options.CostOfCheck = None,
    currency: options.Currency = "",
    lengths: options.Lengths = "50,100,200",
    level: options.Level = 0.95,
    jobs: options.Jobs = 1,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Compare models on your data: which is best, how good, how sure; writes a page.

    [bold]Examples[/bold]

    toprank compare payments.parquet --target is_fraud --id payment --drop card

    toprank compare payments.parquet --target is_fraud --time paid_at --gap 7 --time-budget 600

    toprank compare rows.csv --target kind --positive bad --models ap_sigmoid,linear,treerank
    """
    from toprank.cli.inputs import Roles, input_files, read_labelled
    from toprank.selection import compare_models

    if page:
        check_output(out, (".html", ".htm"), input_files(data))
    shown_lengths, names = options.read_lengths(lengths), options.read_model_names(models)
    roles = Roles(target, positive, identifier, query, time, weight, value, drop or (), text or ())
    rows = read_labelled(data, sql, roles)
    for warning in rows.warnings:
        warn(warning)
    comparison = compare_models(
        rows.X, rows.y, models=names, qid=rows.qid, time=rows.time, gap=gap,
        sample_weight=rows.weight, n_splits=splits, n_repeats=repeats, time_budget=time_budget,
        k=k, level=level, random_state=seed, n_jobs=jobs, verbose=on_terminal(),
    )  # fmt: skip
    found = None
    if page:
        from toprank.report import write_page

        found = _report_best(
            comparison, rows, cost_of_check=cost_of_check, currency=currency,
            lengths=shown_lengths, level=level, random_state=seed,
        )  # fmt: skip
        write_page(found, out)
    if as_json:
        answer = {"rows": len(rows.X), **comparison.as_dict()}
        print_json({**answer, "file": str(out)} if page else answer)
        return
    print_comparison(comparison)
    if found is not None:
        print_list_figures(found)
        say(f"The page: {out}")


@app.command()
def fit(
    target: options.Target,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Model file, *.toprank.", show_default=False),
    ],
    data: options.Data = None,
    sql: options.Sql = None,
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="One of those that toprank models lists.")
    ] = "ap_sigmoid",
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibration/--no-calibration",
            help="Learn probabilities and cuts from cross-fitted scores; without, fitting is several "
            "times quicker, and only --budget can cut a list.",
        ),
    ] = True,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Folds of the calibration.")] = 5,
    positive: options.Positive = None,
    identifier: options.Identifier = None,
    query: options.Query = None,
    time: options.Time = None,
    gap: options.Gap = None,
    weight: options.Weight = None,
    drop: options.Drop = None,
    text: options.Text = None,
    jobs: options.Jobs = 1,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Learn from labelled rows and write a model file.

    [bold]Examples[/bold]

    toprank fit payments.parquet --target is_fraud --id payment --out fraud.toprank

    toprank fit 'days/*.csv' --target outcome --positive fraud --model lambda_map --out m.toprank

    toprank fit --sql "SELECT * FROM 'p.parquet' WHERE amount > 1" --target y --out m.toprank
    """
    import toprank
    from toprank.cli.inputs import Roles, input_files, read_labelled
    from toprank.selection.models import find_candidate, fit_model

    check_output(out, (".toprank",), input_files(data))
    find_candidate(model)
    roles = Roles(target, positive, identifier, query, time, weight, None, drop or (), text or ())
    rows = read_labelled(data, sql, roles)
    assert rows.y is not None
    start = clock.perf_counter()
    fitted, notes = fit_model(
        model, rows.X, rows.y, sample_weight=rows.weight, qid=rows.qid, time=rows.time, gap=gap,
        folds=folds if calibrate else None, random_state=seed, n_jobs=jobs, verbose=on_terminal(),
    )  # fmt: skip
    toprank.save(fitted, out, rows.X, rows.y)
    for warning in (*rows.warnings, *notes):
        warn(warning)
    found = {
        "model": model,
        "class": type(getattr(fitted, "estimator_", fitted)).__name__,
        "rows": len(rows.y),
        "positives": int(rows.y.sum()),
        "columns": rows.X.shape[1],
        "seconds": round(clock.perf_counter() - start, 2),
        "file": str(out),
    }
    if calibrate:
        found["held_out_average_precision"] = fitted.staircase_.average_precision()
    if as_json:
        print_json(found)
        return
    say(
        f"{model} has learnt from {shown(found['rows'])} rows, {shown(found['positives'])} of them "
        f"positive, with {found['columns']} columns, in {found['seconds']:.1f} s: {out}"
    )
    if calibrate:
        value = found["held_out_average_precision"]
        say(f"Average precision of its cross-fitted scores: {value:.3f}")


def _report_best(comparison: Any, rows: InputTable, **settings: Any) -> dict[str, Any]:
    """Return the report of the best model on the rows that it was tested on."""
    from toprank.report import evaluate

    held_out = comparison.scores["row"].to_numpy()
    best, pooled = comparison.recommended.model, comparison.pooled_scores()
    known = {"time": rows.time, "value": rows.value, "sample_weight": rows.weight}
    return evaluate(
        comparison.scores["label"].to_numpy(), pooled[best], model=best, scores_by_model=pooled,
        comparison=comparison.as_dict(), ids=rows.row_names()[held_out],
        **{name: column[held_out] for name, column in known.items() if column is not None},
        **settings,
    )  # fmt: skip


def print_comparison(comparison: Any) -> None:
    """Print the leaderboard, the differences, what was left out, and the recommendation."""
    lines = []
    for row in records(comparison.leaderboard()):
        figures = [with_interval(row[m], row[f"{m}_low"], row[f"{m}_high"]) for m in TITLES]
        lines.append([row["model"], *figures, f"{row['seconds']:.1f}"])
    splits = f"{comparison.n_splits} {SPLITS[comparison.kind][comparison.n_splits > 1]}"
    say(f"{len(lines)} models on {splits}; intervals at {comparison.level:.0%}")
    print_table(["model", *TITLES.values(), "seconds"], lines, right_from=1)
    lines = []
    for row in records(comparison.differences().drop_duplicates(["model", "other"])):
        gain = f"{row['difference']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
        lines.append([row["model"], row["other"], gain, row["verdict"]])
    if lines:
        print_table(["model", "against", "difference of AP", "verdict"], lines)
    for name, reason in {**comparison.failures, **comparison.left_out}.items():
        warn(f"{name} was left out: {reason}")
    for text in comparison.notes:
        note(text)
    say(str(comparison.recommended))
