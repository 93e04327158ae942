"""Boosted rules against their bars.

    python -m benchmarks rules [--quick] [--one-thread]

- RankBoost and PNormPush, 100 rounds of stumps, 1,000,000 x 40: at most the time of scikit-learn's
  HistGradientBoosting with 100 stumps.
- PRankBoost on 280,000 rows, 100 clauses: clauses evaluated a second at least 1,000 times those of a loop
  over pandas boolean masks.

How time and memory grow with the rows is measured by `benchmarks.growth`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from benchmarks.common import medians, report, report_bar, seconds
from toprank import PNormPush, PRankBoost, RankBoost
from toprank.binning import Bins
from toprank.rules.boosters import initial_weights

STUMPS_BAR, CLAUSES_BAR = 1.0, 1_000.0


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
    print(
        f"{model.n_evaluated_.sum():,} clauses in {elapsed:.2f} s; pandas masks {theirs:,.0f} a second"
    )
    what = f"PRankBoost, clauses a second over pandas masks', {n_rows:,} x 30"
    report_bar(what, ours / theirs, CLAUSES_BAR, at_least=True, unit="x")


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
    arguments = parser.parse_args()
    scale = 10 if arguments.quick else 1
    repeats = 1 if arguments.quick else 3
    binning(1_000_000 // scale)
    stump_bars(1_000_000 // scale, repeats, 1 if arguments.one_thread else None)
    clause_bar(280_000 // scale, repeats)


if __name__ == "__main__":
    main()
