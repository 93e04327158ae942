"""Dask workers against one process: do they find the same gradients and rank as well?

Gradients of every objective on one list, held by one process and shared between two (bar: within 1e-5 of
the greatest), with the bytes that a worker sends for them. Then models of 30 rounds on half of the rows of
simulated payments, and of creditcard_fraud where TOPRANK_DATA names a folder that has it: average precision on
the other half, of one process and of 1, 2 and 4 workers (bar: within 0.005), over seeds of the halves. Columns
and rows are not drawn. `--rows 2000000 --seeds 1 --data simulated` is the large run.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from xgboost import collective
from xgboost.tracker import RabitTracker

from toprank import (
    DaskGradientBoostingRanker,
    GradientBoostingRanker,
    datasets,
    metrics,
    objectives,
)
from toprank.boosting.gradients import TreeGradients
from toprank.boosting.xgboost_helpers import Workers

COMPARED = ("ap_exp", "ap_softmax", "ap_sigmoid", "lambda_map", "lambda_auc", "pauc")
PARAMETERS = {
    "n_estimators": 30, "n_seeds": 1, "learning_rate": 0.2, "subsample": 1.0, "colsample_bynode": 1.0,
    "n_jobs": 1,
}  # fmt: skip


def cluster(n_workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        silence_logs=logging.ERROR, memory_limit=None,
    )  # fmt: skip


def verdict(error: float, bar: float) -> str:
    return f"bar {bar:g}  {'met' if error <= bar else 'MISSED'}"


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
                chosen = form == "exact" or objective.binnable
                said = verdict(error, 1e-5) if chosen else "'auto' takes the exact exchange"
                print(
                    f"{form:<7} {name:<18} {parts[0][k][1]:>10,} bytes  error {error:.1e}  {said}",
                    flush=True,
                )


def halves(data: Any, seed: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Training and test rows."""
    first = np.random.default_rng(seed).random(len(data.y)) < 0.5
    X = data.X.reset_index(drop=True)
    return X[first], data.y[first], X[~first], data.y[~first]


def compare_models(name: str, data: Any, seeds: range, names: list[str]) -> None:
    """Print the average precision of one process and of 1, 2 and 4 workers."""
    alone, worst = {}, {}
    for n_workers in (0, 1, 2, 4):
        with cluster(max(n_workers, 1)) as workers, Client(workers) as client:
            for seed in seeds:
                X, y, X_test, y_test = halves(data, seed)
                joined = dd.from_pandas(X.assign(label=y), npartitions=2 * max(n_workers, 1))
                joined = client.persist(joined) if n_workers else joined
                for objective in names:
                    start, kind = time.perf_counter(), (objective, seed)
                    if n_workers == 0:
                        model = GradientBoostingRanker(objective, random_state=seed, **PARAMETERS)
                        model.fit(X, y)
                    else:
                        model = DaskGradientBoostingRanker(
                            objective, random_state=seed, **PARAMETERS
                        )
                        model.fit(joined.drop(columns="label"), joined["label"], client=client)
                        sent, model = model.bytes_per_round_, model.to_local()
                    seconds = time.perf_counter() - start
                    found = metrics.average_precision(y_test, model.decision_function(X_test))
                    if n_workers == 0:
                        alone[kind] = found
                        print(f"{name} seed {seed} {objective:<11} one process: AP {found:.4f}, "
                              f"{seconds:.0f} s", flush=True)  # fmt: skip
                        continue
                    gap = abs(found - alone[kind])
                    worst[objective] = max(worst.get(objective, 0.0), gap)
                    print(
                        f"{name} seed {seed} {objective:<11} {n_workers} workers: AP {found:.4f}, "
                        f"difference {gap:.4f}, {seconds:.0f} s, {sent:,.0f} bytes a round",
                        flush=True,
                    )
    for objective, gap in worst.items():
        print(f"{name} {objective:<11} greatest difference {gap:.4f}  {verdict(gap, 0.005)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--data", nargs="*", default=["gradients", "simulated", "creditcard_fraud"],
        choices=["gradients", "simulated", "creditcard_fraud"],
    )  # fmt: skip
    parser.add_argument("--objectives", nargs="*", default=list(COMPARED))
    options = parser.parse_args()
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
        compare_models(name, data, range(options.seeds), options.objectives)


if __name__ == "__main__":
    main()
