"""`toprank fit`: learn from labelled rows, write a model file."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import Annotated, Any

import typer

from toprank.cli.application import app
from toprank.cli.inputs import Roles, Rows, input_files, read_labelled
from toprank.cli.options import (
    Data,
    Drop,
    Gap,
    Identifier,
    Jobs,
    Json,
    Positive,
    Query,
    Seed,
    Sql,
    Target,
    Text,
    Time,
    Weight,
)
from toprank.cli.output import check_target, on_terminal, print_json, say, shown, warn

__all__ = ["fit"]


@app.command()
def fit(
    target: Target,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", help="Model file, *.toprank.", show_default=False),
    ],
    data: Data = None,
    sql: Sql = None,
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
    positive: Positive = None,
    identifier: Identifier = None,
    query: Query = None,
    time: Time = None,
    gap: Gap = None,
    weight: Weight = None,
    drop: Drop = None,
    text: Text = None,
    jobs: Jobs = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Learn from labelled rows and write a model file.

    [bold]Examples[/bold]

    toprank fit payments.parquet --target is_fraud --id payment --out fraud.toprank

    toprank fit 'days/*.csv' --target outcome --positive fraud --model lambda_map --out m.toprank

    toprank fit --sql "SELECT * FROM 'p.parquet' WHERE amount > 1" --target y --out m.toprank
    """
    import toprank
    from toprank.cli.learning import learn
    from toprank.selection.models import find_candidate

    check_target(out, (".toprank",), input_files(data))
    find_candidate(model)
    roles = Roles(target, positive, identifier, query, time, weight, None, drop or (), text or ())
    rows = read_labelled(data, sql, roles)
    assert rows.y is not None
    start = clock.perf_counter()
    fitted, notes = learn(
        model, rows.X, rows.y, weight=rows.weight, qid=rows.qid, time=rows.time, gap=gap,
        folds=folds if calibrate else None, random_state=seed, n_jobs=jobs, verbose=on_terminal(),
    )  # fmt: skip
    toprank.save(fitted, out, rows.X, rows.y)
    for note in (*rows.doubts, *notes):
        warn(note)
    found = _description(model, fitted, rows, clock.perf_counter() - start, out)
    if as_json:
        print_json(found)
        return
    say(
        f"{model} has learnt from {shown(found['rows'])} rows, {shown(found['positives'])} of them "
        f"positive, with {found['columns']} columns, in {found['seconds']:.1f} s: {out}"
    )
    if "held_out_average_precision" in found:
        say(
            f"Average precision of its cross-fitted scores: {found['held_out_average_precision']:.3f}"
        )


def _description(name: str, fitted: Any, rows: Rows, seconds: float, out: Path) -> dict[str, Any]:
    assert rows.y is not None
    found = {
        "model": name,
        "class": type(getattr(fitted, "estimator_", fitted)).__name__,
        "rows": len(rows.y),
        "positives": int(rows.y.sum()),
        "columns": rows.X.shape[1],
        "seconds": round(seconds, 2),
        "file": str(out),
    }
    stairs = getattr(fitted, "staircase_", None)
    if stairs is not None:
        found["held_out_average_precision"] = _average_precision(stairs)
    return found


def _average_precision(stairs: Any) -> float:
    """Average precision from the counts at every step of a list (`toprank.metrics`)."""
    from toprank.metrics import average_precision

    positives, negatives = stairs.step_counts()
    n_steps = len(positives)
    labels, scores, weights = [], [], []
    for label, counts in ((1, positives), (0, negatives)):
        present = counts > 0
        labels += [label] * int(present.sum())
        scores += (n_steps - present.nonzero()[0]).tolist()
        weights += counts[present].tolist()
    return average_precision(labels, scores, sample_weight=weights)
