"""Two Dask workers against one process: do they find the same gradients and rank as well?

Gradients of every objective on one list, held by one process and shared between two (bar: within 1e-5 of
the greatest; by histograms only for the smooth ones), and average precision on test rows of a model of 50
rounds, without draws of columns, which would differ anyway (bar: within 0.005).
"""

from __future__ import annotations

import argparse
import logging
import time

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from xgboost import collective
from xgboost.tracker import RabitTracker

from benchmarks.boosting import make_rows
from toprank import GradientBoostingRanker, metrics, objectives
from toprank.distributed import SpreadObjective, fit_distributed


def half(names, exchange, y, scores, address, task):
    """What one of two workers computes for its part of the list, one objective after the other."""
    with collective.CommunicatorContext(**address, dmlc_task_id=str(task)):
        rank = collective.get_rank()
        mine = slice(None, len(y) // 3) if rank == 0 else slice(len(y) // 3, None)
        found = [
            np.stack(
                SpreadObjective(objectives.get(name), exchange).gradient_hessian(
                    y[mine], scores[mine], None
                )
            )
            for name in names
        ]
        return rank, found


def errors(client, names, exchange, y, scores):
    """Greatest error of each objective's gradient, over the greatest gradient."""
    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1")
    tracker.start()
    workers = list(client.scheduler_info(n_workers=-1)["workers"])
    futures = [
        client.submit(
            half, names, exchange, y, scores, tracker.worker_args(), k, workers=[worker], pure=False
        )
        for k, worker in enumerate(workers)
    ]
    parts = dict(client.gather(futures))
    tracker.wait_for()
    found = {}
    for k, name in enumerate(names):
        exact = objectives.get(name).scaled_gradient_hessian(
            objectives.ScoredList.of(y, scores, graded=objectives.get(name).graded)
        )[0]
        spread = np.concatenate([parts[0][k], parts[1][k]], axis=1)[0]
        found[name] = float(np.abs(spread - exact).max() / np.abs(exact).max())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    options = parser.parse_args()
    X, y = make_rows(2 * options.rows, 20, 0.01)
    half_way = options.rows
    scores = np.random.default_rng(1).normal(size=half_way) + y[:half_way]
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.ERROR,
    )
    with cluster, Client(cluster) as client:
        names = list(objectives.OBJECTIVES)
        for exchange in ("exact", "histogram"):
            for name, error in errors(client, names, exchange, y[:half_way], scores).items():
                verdict = f"bar 1e-05  {'met' if error <= 1e-5 else 'MISSED'}"
                if exchange == "histogram" and objectives.get(name).by_rank:
                    verdict = "goes by ranks: 'auto' takes the exact exchange"
                print(f"{exchange:<10} {name:<20} error {error:.1e}  {verdict}")
        ranker = GradientBoostingRanker(n_estimators=50, learning_rate=0.1, colsample_bynode=1.0)
        start = time.perf_counter()
        alone = ranker.fit(X[:half_way], y[:half_way])
        seconds = time.perf_counter() - start
        one = metrics.average_precision(y[half_way:], alone.decision_function(X[half_way:]))
        chunk = half_way // 4
        rows, labels = (
            da.from_array(X[:half_way], chunks=(chunk, -1)),
            da.from_array(y[:half_way], chunk),
        )
        for exchange in ("exact", "histogram"):
            start = time.perf_counter()
            spread = fit_distributed(ranker, rows, labels, client=client, exchange=exchange)
            two = metrics.average_precision(y[half_way:], spread.decision_function(X[half_way:]))
            print(
                f"{exchange:<10} AP on test rows {two:.4f} against {one:.4f} of one process "
                f"({time.perf_counter() - start:.0f} s against {seconds:.0f} s)  bar 0.005  "
                f"{'met' if abs(two - one) <= 0.005 else 'MISSED'}"
            )


if __name__ == "__main__":
    main()
