"""Dask workers against one process: do they find the same gradients and rank as well?

Gradients of every objective on one list, held by one process and shared between two (bar: within 1e-5 of
the greatest), with the bytes that a worker sends for them. Then models on half of the rows of simulated
payments, and of creditcard_fraud where TOPRANK_DATA names a folder that has it: a quarter of that half decides
when to stop (at most 40 rounds, 10 without progress), the other half measures. Printed are average precision
of one process and of 1, 2 and 4 workers, as means over seeds of the halves (bar: within 0.005), the greatest
difference of a single seed, and the rounds that were kept. Columns and rows are not drawn.

With `--results FILE` each model's figures are kept there, and the next call only fits what is missing.
`--rows 2000000 --seeds 3 --data simulated` is the large run.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from pathlib import Path
from typing import Any, NamedTuple

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from xgboost import collective
from xgboost.tracker import RabitTracker

from benchmarks.common import report_bar
from experiments.common import use_local_data
from toprank import (
    DaskGradientBoostingRanker,
    GradientBoostingRanker,
    datasets,
    metrics,
    objectives,
)
from toprank.boosting.gradients import TreeGradients
from toprank.boosting.xgboost_helpers import Workers

WORKERS = (0, 1, 2, 4)  # 0: one process, without Dask
KEY = ("data", "rows", "objective", "seed", "workers")
COMPARED = ("ap_exp", "ap_softmax", "ap_sigmoid", "lambda_map", "lambda_auc", "pauc")
PARAMETERS = {
    "n_estimators": 40, "early_stopping_rounds": 10, "n_seeds": 1, "learning_rate": 0.2,
    "subsample": 1.0, "colsample_bynode": 1.0, "n_jobs": 1,
}  # fmt: skip


def cluster(n_workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        silence_logs=logging.ERROR, memory_limit=None,
    )  # fmt: skip


def part(names, form, y, scores, arguments):
    """What one of two workers computes for its part of the list, one objective after the other."""
    with collective.CommunicatorContext(**arguments):
        workers, found = Workers(), []
        mine = slice(None, len(y) // 3) if workers.rank == 0 else slice(len(y) // 3, None)
        for name in names:
            gradients = TreeGradients(objectives.get(name), y[mine], form=form, exchange=workers)
            before = workers.bytes_sent
            found.append((np.stack(gradients(scores[mine])), workers.bytes_sent - before))
        return workers.rank, found


def compare_gradients(n_rows: int) -> None:
    """Print the greatest error of each objective's gradient, over the greatest one, and bytes sent."""
    rng, names = np.random.default_rng(1), list(objectives.OBJECTIVES)
    y = (rng.random(n_rows) < 0.01).astype(float)
    scores = rng.normal(size=n_rows) + y
    with cluster(2) as two, Client(two) as client:
        for form in ("exact", "binned"):
            tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1")
            tracker.start()
            futures = [
                client.submit(
                    part, names, form, y, scores,
                    {**tracker.worker_args(), "dmlc_task_id": str(k)}, workers=[worker], pure=False,
                )
                for k, worker in enumerate(client.scheduler_info(n_workers=-1)["workers"])
            ]  # fmt: skip
            parts = dict(client.gather(futures))
            tracker.wait_for()
            for k, name in enumerate(names):
                objective = objectives.get(name)
                rows = objectives.ScoredList.of(y, scores, graded=objective.graded)
                exact = objective.scaled_gradient_hessian(rows)[0]
                spread = np.concatenate([parts[0][k][0], parts[1][k][0]], axis=1)[0]
                error = float(np.abs(spread - exact).max() / np.abs(exact).max())
                chosen = form == "exact" or objective.binnable(float(y.sum()), weighted=False)
                what = f"{form} {name}, two workers, error of the gradient"
                print(f"{form:<7} {name:<18} {parts[0][k][1]:>10,} bytes", flush=True)
                if chosen:
                    report_bar(what, error, 1e-5)
                else:
                    print(f"{what}: {error:.1e}; 'auto' takes the exact exchange")


class Split(NamedTuple):
    """Rows to learn from, to stop by and to measure on, with their labels."""

    train: pd.DataFrame
    validation: pd.DataFrame
    test: pd.DataFrame

    @classmethod
    def of(cls, data: Any, seed: int) -> Split:
        """Deal rows out: three eighths, an eighth, a half."""
        rows = data.X.reset_index(drop=True).assign(label=data.y)
        drawn = np.random.default_rng(seed).random(len(rows))
        return cls(*(rows[(low <= drawn) & (drawn < high)] for low, high in
                     ((0, 0.375), (0.375, 0.5), (0.5, 1))))  # fmt: skip


def features_and_labels(rows: Any) -> tuple[Any, Any]:
    return rows.drop(columns="label"), rows["label"]


def fitted(objective: str, split: Split, seed: int, n_workers: int, client: Any) -> dict[str, Any]:
    """Fit on one process or on workers; say how well it ranks and what it took."""
    settings = {"random_state": seed, **PARAMETERS}
    start, sent = time.perf_counter(), 0.0
    if n_workers == 0:
        model = GradientBoostingRanker(objective, **settings)
        model.fit(*features_and_labels(split.train), eval_set=features_and_labels(split.validation))
    else:
        parts = 2 * n_workers
        train, held_out = (dd.from_pandas(rows, npartitions=parts) for rows in split[:2])
        spread = DaskGradientBoostingRanker(objective, **settings).fit(
            *features_and_labels(train), eval_set=features_and_labels(held_out), client=client
        )
        sent, model = spread.bytes_per_round_, spread.to_local()
    seconds = time.perf_counter() - start
    X, y = features_and_labels(split.test)
    found = metrics.average_precision(y, model.decision_function(X))
    return {"ap": found, "rounds": model.n_estimators_, "seconds": seconds, "bytes": sent}


def compare_models(
    name: str, data: Any, seeds: range, names: list[str], results: Path | None
) -> None:
    """Fit what is not among the results yet, and print a table of all."""
    kept: dict[tuple[Any, ...], dict[str, Any]] = {}
    if results is not None and results.exists():
        for line in results.read_text().splitlines():
            row = json.loads(line)
            kept[tuple(row.pop(k) for k in KEY)] = row
    for seed in seeds:
        split = Split.of(data, seed)
        for n_workers in WORKERS:
            missing = [o for o in names if (name, len(data.y), o, seed, n_workers) not in kept]
            if not missing:
                continue
            with cluster(max(n_workers, 1)) as workers, Client(workers) as client:
                for objective in missing:
                    key = (name, len(data.y), objective, seed, n_workers)
                    row = kept[key] = fitted(objective, split, seed, n_workers, client)
                    who = dict(zip(KEY, key, strict=True))
                    if results is not None:
                        with results.open("a") as file:
                            file.write(json.dumps(who | row) + "\n")
                    print(*key, f"AP {row['ap']:.4f}, {row['rounds']} rounds, {row['seconds']:.0f} s, "
                          f"{row['bytes']:,.0f} bytes a round", flush=True)  # fmt: skip
    for objective in names:
        table = np.array(
            [[kept[name, len(data.y), objective, seed, n]["ap"] for n in WORKERS] for seed in seeds]
        )
        rounds = [
            [kept[name, len(data.y), objective, seed, n]["rounds"] for n in WORKERS]
            for seed in seeds
        ]
        means = table.mean(axis=0)
        gap = float(np.abs(means[1:] - means[0]).max())
        single = float(np.abs(table[:, 1:] - table[:, :1]).max())
        shown = " ".join(f"{mean:.4f}" for mean in means)
        kept_rounds = " ".join(map(str, rounds))
        print(f"{name} {objective:<11} AP {shown}; of a seed {single:.4f}; rounds {kept_rounds}")
        what = f"{name}, {len(data.y):,} rows, {objective}: AP of workers and of one process"
        report_bar(what, gap, 0.005)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--data", nargs="*", default=["gradients", "simulated", "creditcard_fraud"],
        choices=["gradients", "simulated", "creditcard_fraud"],
    )  # fmt: skip
    parser.add_argument("--objectives", nargs="*", default=list(COMPARED))
    parser.add_argument("--results", type=Path, help="a file of figures to go on from")
    options = parser.parse_args()
    use_local_data()
    if "gradients" in options.data:
        compare_gradients(options.rows)
    for name in options.data:
        if name == "gradients":
            continue
        try:
            data = (
                datasets.make_card_fraud(options.rows, random_state=0)
                if name == "simulated"
                else datasets.load(name)
            )
        except (FileNotFoundError, ValueError) as error:
            print(f"{name} is left out: {error}")
            continue
        print(f"{name}: {len(data.y):,} rows, {int(data.y.sum()):,} positives", flush=True)
        compare_models(name, data, range(options.seeds), options.objectives, options.results)


if __name__ == "__main__":
    main()
