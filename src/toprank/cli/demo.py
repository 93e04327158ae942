"""`toprank demo`: the whole job on simulated card fraud."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toprank.cli.application import app
from toprank.cli.compare import model_names, print_comparison
from toprank.cli.options import Jobs, Json, PageResamples, Seed
from toprank.cli.output import on_terminal, print_json, say, shown
from toprank.cli.pages import print_lists

__all__ = ["demo"]


@app.command()
def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Folder for the page, the alerts, the model."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Payments to simulate.")] = 12_000,
    models: Annotated[
        str | None,
        typer.Option(
            "--models", metavar="NAMES", help="Models to compare, joined by commas, or all."
        ),
    ] = None,
    time_budget: Annotated[
        float,
        typer.Option("--time-budget", metavar="SECONDS", help="For the comparison."),
    ] = 50.0,
    resamples: PageResamples = 1000,
    jobs: Jobs = 1,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Simulate card fraud, compare models on early days, list and report the late ones.

    [bold]Examples[/bold]

    toprank demo --out demo-report
    """
    from toprank.demo import CHECKS_A_DAY, MODELS, run_demo, write_demo

    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder")
    found = run_demo(
        rows,
        models=model_names(models) or MODELS,
        time_budget=time_budget,
        n_resamples=resamples,
        random_state=seed,
        n_jobs=jobs,
        verbose=on_terminal(),
    )
    paths = write_demo(found, out) if out is not None else {}
    if as_json:
        files = {what: str(path) for what, path in paths.items()}
        print_json({**found.as_dict(), "files": files})
        return
    data = found.as_dict()["data"]
    say(
        f"Simulated payments: {shown(data['early']['rows'])} of the early days to learn from "
        f"({data['early']['frauds']} frauds), {shown(data['late']['rows'])} of the late days to rank "
        f"({data['late']['frauds']} frauds)."
    )
    print_comparison(found.comparison)
    say(f"{found.report['model']}, trained on all early days, on the late ones:")
    print_lists(found.report)
    hits = found.payments["late"].set_index("payment")["is_fraud"].loc[found.alerts["id"]].sum()
    say(
        f"With {CHECKS_A_DAY} checks a day, {hits} of {len(found.alerts)} alerts are fraud. The first:"
    )
    first = found.alerts.iloc[0]
    say(f"  {first['id']}, score {first['score']:.2f}: {first['reasons']}")
    if paths:
        say(f"The page: {paths['page']}")
        say("Go on with the same files:")
        say(f"  toprank explain {paths['model']} {paths['late']} --id payment")
        say(
            f"  toprank score {paths['model']} {paths['late']} --id payment --budget 20 --per day "
            f"--out {paths['alerts'].with_name('list.csv')}"
        )
