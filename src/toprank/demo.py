"""The demonstration, `toprank demo`: compare, fit, list and report on simulated card fraud."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toprank.cli import options
from toprank.cli.app import app, on_terminal, print_json, print_list_figures, say, shown
from toprank.cli.training import print_comparison

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["Demo", "demo", "run_demo", "write_demo"]

FRAUD_RATE = 0.04
# those that finish soon; `toprank compare --models all` has all others
MODELS = ("boosting", "linear", "rankboost")
BLOCKS = 3  # of time, in the comparison and in the calibration
CHECKS_A_DAY = 10
COST_OF_CHECK = 5.0


@dataclass(frozen=True, eq=False)
class Demo:
    """The results of the demonstration."""

    payments: dict[str, pd.DataFrame]  # `early` ones to learn from, `late` ones to rank
    comparison: Any  # of models on blocks of the early days
    model: Any  # the recommended one, calibrated, trained on all early days
    check: Any  # of the comparison's claim: the model against the yardstick on the late days
    alerts: pd.DataFrame  # late payments to check, so many a day, with reasons
    report: dict[str, Any]  # of `toprank.report.evaluate`, on the late days

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data: `data`, `comparison`, `report`."""
        sizes = {
            name: {"rows": len(table), "frauds": int(table["is_fraud"].sum())}
            for name, table in self.payments.items()
        }
        return {"data": sizes, "comparison": self.comparison.as_dict(), "report": self.report}


def run_demo(
    n_rows: int = 12_000,
    *,
    models: Sequence[str] = MODELS,
    time_budget: float | None = None,
    n_resamples: int = 1000,
    random_state: int = 0,
    n_jobs: int | None = 1,
    verbose: int = 0,
) -> Demo:
    """Simulate payments, compare models on early days, rank the late ones with the best.

    Parameters
    ----------
    n_rows : int, default=12_000
        Payments; one in twenty-five is fraud, so that each block of days has enough to learn from.
    models : sequence of str
        Names of `toprank.selection.MODELS`; the yardstick is added.
    time_budget : float, optional
        Seconds for the comparison; by default it takes what its three splits need.
    n_resamples, random_state, n_jobs, verbose
        As for `compare_models`.

    Examples
    --------
    >>> demo = run_demo(1500, models=["linear"], n_resamples=50, time_budget=None)
    >>> demo.comparison.kind, sorted(demo.as_dict())
    ('time', ['comparison', 'data', 'report'])
    """
    from toprank import shortlist
    from toprank.datasets import make_card_fraud
    from toprank.folds import scores_of
    from toprank.metrics import compare
    from toprank.persistence import summarise
    from toprank.report import evaluate
    from toprank.selection import YARDSTICK, compare_models, fit_model
    from toprank.shortlisting import effects

    data = make_card_fraud(n_rows, fraud_rate=FRAUD_RATE, random_state=random_state)
    table, features = data.to_frame("is_fraud"), list(data.X.columns)
    table.insert(0, "payment", [f"P{number:06d}" for number in range(1, len(table) + 1)])
    is_early = _early_days(table["day"].to_numpy(), table["is_fraud"].to_numpy())
    early, late = table[is_early], table[~is_early].reset_index(drop=True)
    X, y, time = early[features], early["is_fraud"].to_numpy(), early["time"].to_numpy()
    settings: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs, "verbose": verbose}
    comparison = compare_models(
        X, y, models=models, time=time, n_splits=BLOCKS, time_budget=time_budget,
        n_resamples=n_resamples, **settings,
    )  # fmt: skip
    best = comparison.recommended.model
    model, _ = fit_model(best, X, y, time=time, folds=BLOCKS, **settings)
    model.training_summary_ = summarise(model, X, y)
    scores = {best: scores_of(model, late[features])}
    check = None
    if comparison.yardstick not in (None, best):
        rival, _ = fit_model(YARDSTICK, X, y, time=time, folds=None, **settings)
        scores[YARDSTICK] = scores_of(rival, late[features])
        check = compare("average_precision", late["is_fraud"], *scores.values(),
                        n_resamples=n_resamples, random_state=random_state)  # fmt: skip
    listed: dict[str, Any] = {
        "ids": late["payment"],
        "value": late["amount"],
        "scores": scores[best],
    }
    days = late["time"].dt.strftime("%Y-%m-%d")
    alerts = shortlist(model, late[features], budget=CHECKS_A_DAY, per=days, **listed)
    report = evaluate(
        late["is_fraud"], scores[best], model=best, comparison=comparison.as_dict(),
        scores_by_model=scores, remarks=[] if check is None else [check_sentence(best, check)],
        ids=late["payment"].to_numpy(), alerts=shortlist(model, late[features], budget=200, **listed),
        effects=effects(model, late[features], scores=scores[best]),
        probability=model.calibration_(scores[best]),
        time=late["time"].to_numpy(), value=late["amount"].to_numpy(dtype=float),
        cost_of_check=COST_OF_CHECK, n_resamples=n_resamples, random_state=random_state,
        title="Simulated card fraud: which payments to check",
        source="the late days, which no model has learnt from",
    )  # fmt: skip
    return Demo({"early": early, "late": late}, comparison, model, check, alerts, report)


def check_sentence(model: str, check: Any) -> str:
    """Say whether what the comparison found on the early days holds on the late ones."""
    said = (
        "better than"
        if check.low > 0
        else "worse than"
        if check.high < 0
        else "not to be told from"
    )
    return (
        f"On the late days, which the comparison has not seen, {model} is {said} the tuned logistic "
        f"booster: average precision {check.value_a:.3f} against {check.value_b:.3f} (difference "
        f"{check.difference:+.3f}, {check.low:+.3f} to {check.high:+.3f})"
    )


def write_demo(demo: Demo, folder: str | Path) -> dict[str, Path]:
    """Write the page, the alerts, the model and the payments into a folder, which may be new."""
    from toprank import save
    from toprank.report import write_page
    from toprank.tables import write_table, write_text

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    tables = {"comparison": demo.comparison.leaderboard(), "alerts": demo.alerts, **demo.payments}
    paths = {"report": place / "report.json"}
    paths |= {n: place / f"{n}.{'parquet' if n in demo.payments else 'csv'}" for n in tables}
    paths |= {"model": place / "fraud.toprank", "page": place / "report.html"}
    write_text(json.dumps(demo.as_dict(), indent=1) + "\n", paths["report"])
    for name, table in tables.items():
        write_table(table, paths[name])
    save(demo.model, paths["model"])
    write_page(demo.report, paths["page"])
    return paths


def _early_days(day: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which rows lie in the first three quarters of the days, or fewer if later ones have no fraud."""
    cut = round(0.75 * (int(day.max()) + 1))
    while cut > 1 and not y[day >= cut].any():
        cut -= 1
    early = day < cut
    if not (y[early].any() and y[~early].any()):
        raise ValueError("too few rows: fraud is needed both in early and in late days; take more")
    return early


@app.command()
def demo(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Folder for the page, the alerts, the model."),
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1000, help="Payments to simulate.")] = 12_000,
    models: options.Models = None,
    time_budget: Annotated[
        float | None, typer.Option("--time-budget", metavar="SECONDS", help="For the comparison.")
    ] = None,
    resamples: options.PageResamples = 1000,
    jobs: options.Jobs = -1,
    seed: options.Seed = 0,
    as_json: options.Json = False,
) -> None:
    """Simulate card fraud, compare models on early days, list and report the late ones.

    [bold]Examples[/bold]

    toprank demo --out demo-report
    """
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder")
    found = run_demo(
        rows, models=options.read_model_names(models) or MODELS, time_budget=time_budget,
        n_resamples=resamples, random_state=seed, n_jobs=jobs, verbose=on_terminal(),
    )  # fmt: skip
    paths = write_demo(found, out) if out is not None else {}
    if as_json:
        files = {what: str(path) for what, path in paths.items()}
        print_json({**found.as_dict(), "files": files})
        return
    _print_demo(found)
    if out is not None:
        arguments = f"{paths['model']} {paths['late']} --id payment"
        say(f"The page: {paths['page']}")
        say("Go on with the same files:")
        say(f"  toprank explain {arguments}")
        say(
            f"  toprank score {arguments} --budget 20 --per day --time time --out {out / 'list.csv'}"
        )


def _print_demo(found: Demo) -> None:
    """Print the comparison, the figures on the late days and the first alert."""
    early, late = (
        f"{shown(len(table))} of the {name} days ({table['is_fraud'].sum()} frauds)"
        for name, table in found.payments.items()
    )
    say(f"Simulated payments: {early} to learn from, {late} to rank.")
    print_comparison(found.comparison)
    for remark in found.report["remarks"]:
        say(f"{remark}.")
    say(f"{found.report['model']}, trained on all early days, on the late ones:")
    print_list_figures(found.report)
    hits = found.payments["late"].set_index("payment")["is_fraud"].loc[found.alerts["id"]].sum()
    alerts, first = len(found.alerts), found.alerts.sort_values("score", ascending=False).iloc[0]
    say(f"With {CHECKS_A_DAY} checks a day, {hits} of {alerts} alerts are fraud. The highest:")
    say(f"  {first['id']}, score {first['score']:.2f}: {first['reasons']}")
