"""Boosted rules against their bars.

    python benchmarks/rules.py [--quick] [--one-thread]

- RankBoost and PNormPush, 100 rounds of stumps, 1,000,000 x 40: at most the time of scikit-learn's
  HistGradientBoosting with 100 stumps.
- PRankBoost on 280,000 rows, 100 clauses: clauses evaluated a second at least 1,000 times those of a loop
  over pandas boolean masks.
- Time against rows: slope of log time over log rows from 125,000 to 1,000,000 at most 1.25.
- Peak memory of a fit: at most 4 times the matrix + 300 bytes a row + 300 MB.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import medians, report, seconds
from toprank import GreedyPAUC, PAUCBoost, PNormPush, PRankBoost, RankBoost
from toprank.binning import Bins
from toprank.rules.boosters import initial_weights

STUMPS_BAR, CLAUSES_BAR, SLOPE_BAR = 1.0, 1_000.0, 1.25


def make_table(
    n_rows: int, n_columns: int, share: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of noise whose first ten columns tell the positives, some of them by an interaction."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    signal = X[:, :8] @ rng.normal(size=8) + 2.0 * (X[:, 8] > 1) * (X[:, 9] < 0)
    noise = rng.logistic(size=n_rows)
    cut = np.quantile(signal + noise, 1 - share)
    return X, (signal + noise > cut).astype(np.int64)


def stump_bars(n_rows: int, repeats: int, n_jobs: int | None) -> None:
    """RankBoost and the p-norm push against histogram gradient boosting, all of stumps."""
    X, y = make_table(n_rows, 40, 0.1)
    models = {
        "RankBoost": RankBoost(100, random_state=0, n_jobs=n_jobs),
        "PNormPush": PNormPush(4, 100, random_state=0, n_jobs=n_jobs),
        "HistGradientBoosting": HistGradientBoostingClassifier(
            max_iter=100, max_leaf_nodes=2, early_stopping=False
        ),
    }
    for name in ("RankBoost", "PNormPush"):
        models[name].fit(X[:5_000], y[:5_000])  # compile
    with threadpool_limits(n_jobs):
        times = medians({name: (lambda m=m: m.fit(X, y)) for name, m in models.items()}, repeats)
    for name in ("RankBoost", "PNormPush"):
        what = f"{name}, 100 stumps, {n_rows:,} x 40"
        report(what, times[name], times["HistGradientBoosting"], STUMPS_BAR)


def pandas_clause_rate(
    frame: pd.DataFrame, y: np.ndarray, weights: np.ndarray, n_clauses: int
) -> float:
    """Clauses a second of a loop over boolean masks: mask, conjunction, weighted counts."""
    rng = np.random.default_rng(0)
    parent = frame.iloc[:, 0] > 0
    positive = pd.Series(y > 0)
    weight = pd.Series(weights)
    start = time.perf_counter()
    for _ in range(n_clauses):
        column = frame.columns[rng.integers(frame.shape[1])]
        mask = parent & (frame[column] <= rng.normal())
        _ = weight[mask & positive].sum(), weight[mask & ~positive].sum()
    return n_clauses / (time.perf_counter() - start)


def clause_bar(n_rows: int, repeats: int) -> None:
    """Clauses evaluated a second by the search of PRankBoost, over all of its fit."""
    X, y = make_table(n_rows, 30, 0.01)
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(30)])
    model = PRankBoost(100, random_state=0)
    model.fit(frame.iloc[:5_000], y[:5_000])  # compile
    elapsed = float(np.median([seconds(lambda: model.fit(frame, y)) for _ in range(repeats)]))
    ours = float(model.n_evaluated_.sum()) / elapsed
    theirs = pandas_clause_rate(frame, y, initial_weights(y, None, 1.0), 200)
    ratio = ours / theirs
    verdict = "met" if ratio >= CLAUSES_BAR else "MISSED"
    print(
        f"PRankBoost, 100 clauses, {n_rows:,} x 30: {model.n_evaluated_.sum():,} clauses in "
        f"{elapsed:.2f} s, {ours:,.0f} a second; pandas masks {theirs:,.0f} a second; "
        f"{ratio:,.0f}x  bar {CLAUSES_BAR:g}x  {verdict}",
        flush=True,
    )


def slopes(sizes: tuple[int, int]) -> None:
    """Slope of log time over log rows of every estimator, 20 columns."""
    X, y = make_table(sizes[1], 20, 0.1)
    models = [
        RankBoost(50, random_state=0),
        RankBoost(20, weak="clause", random_state=0),
        PNormPush(4, 50, random_state=0),
        PRankBoost(50, random_state=0),
        PRankBoost(50, weak="path", random_state=0),
        PAUCBoost(n_estimators=30, random_state=0),
        PAUCBoost(n_estimators=30, weak="spline", random_state=0),
        GreedyPAUC(random_state=0),
    ]
    for model in models:
        model.fit(X[:5_000], y[:5_000])
        few = min(seconds(lambda m=model: m.fit(X[: sizes[0]], y[: sizes[0]])) for _ in range(3))
        many = min(seconds(lambda m=model: m.fit(X, y)) for _ in range(2))
        slope = np.log(many / few) / np.log(sizes[1] / sizes[0])
        verdict = "met" if slope <= SLOPE_BAR else "MISSED"
        name = f"{type(model).__name__} {getattr(model, 'weak', '')}"
        print(
            f"{name:<22} {few:7.2f} s at {sizes[0]:,}, {many:7.2f} s at {sizes[1]:,}: "
            f"slope {slope:.2f}  bar {SLOPE_BAR}  {verdict}",
            flush=True,
        )


def peak_memory(n_rows: int) -> None:
    """Growth of the process's greatest memory during one fit."""
    X, y = make_table(n_rows, 40, 0.1)
    RankBoost(2).fit(X[:5_000], y[:5_000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    RankBoost(20).fit(X, y)
    PRankBoost(10, random_state=0).fit(X, y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    bar = 4 * X.nbytes + 300 * n_rows + 300 * 2**20
    used = X.nbytes + after - before
    verdict = "met" if used <= bar else "MISSED"
    print(f"peak memory {used / 2**20:,.0f} MB  bar {bar / 2**20:,.0f} MB  {verdict}", flush=True)


def binning(n_rows: int) -> None:
    """How much of a fit is binning."""
    X, y = make_table(n_rows, 40, 0.1)
    numbers = np.zeros(40, dtype=bool)
    bins = Bins.of(X[:5_000], numbers, y=y[:5_000])
    bins.codes(X[:5_000])  # compile
    placed = seconds(lambda: Bins.of(X, numbers, y=y))
    print(f"cut points {placed:.2f} s, bins {seconds(lambda: bins.codes(X)):.2f} s, one thread")


def main() -> None:
    """Run the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one repeat")
    parser.add_argument(
        "--one-thread", action="store_true", help="stumps: one thread on both sides"
    )
    parser.add_argument("--only", choices=("memory", "stumps", "clauses", "slopes"))
    arguments = parser.parse_args()
    quick, only = arguments.quick, arguments.only
    scale = 10 if quick else 1
    repeats = 1 if quick else 3
    if only in (None, "memory"):
        peak_memory(1_000_000 // scale)
    if only in (None, "stumps"):
        binning(1_000_000 // scale)
        stump_bars(1_000_000 // scale, repeats, 1 if arguments.one_thread else None)
    if only in (None, "clauses"):
        clause_bar(280_000 // scale, repeats)
    if only in (None, "slopes"):
        slopes((125_000 // scale, 1_000_000 // scale))


if __name__ == "__main__":
    main()
