"""Ranking trees and forests against their bars.

    python -m benchmarks.trees [--quick]

- A forest of 50 trees, 2,000 x 20, depth 8 and 6 in LeafRank: at most 5 times the time of scikit-learn's
  RandomForest with 50 trees of unlimited depth, one job each.
- One tree, 20 columns, 125,000 to 1,000,000 rows: log-log slope of time at most 1.25 (n log n has
  1.06), with LeafRank and with support vector machines.
- Peak memory of a fit at 1,000,000 rows: at most 4 times the matrix + 300 bytes a row + 300 MB.
- For information: pruning, machines, consensus, scoring.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.common import medians, report, seconds
from toprank import RankingForest, TreeRank
from toprank.datasets import gauss20d
from toprank.trees import VARIANTS, SVMSplit

FOREST_BAR, SLOPE_BAR = 5.0, 1.25
DEPTHS = {"max_depth": 8, "leafrank_depth": 6}
SIZES = (125_000, 250_000, 500_000, 1_000_000)
TREES: dict[str, dict[str, Any]] = {
    "LeafRank, depth 8/6": DEPTHS,
    "linear machines, depth 8": {"max_depth": 8, "splitter": SVMSplit("linear")},
    "Gaussian machines, depth 8": {"max_depth": 8, "splitter": SVMSplit("gaussian")},
}


def forests(repeats: int) -> None:
    """Every variant against a random forest."""
    X, y = gauss20d("easy", n_samples=2_000, random_state=0)
    peer = RandomForestClassifier(50, n_jobs=1, random_state=0)
    models = {v: RankingForest(50, variant=v, n_jobs=1, random_state=0, **DEPTHS) for v in VARIANTS}
    for model in models.values():
        model.fit(X[:200], y[:200])  # compile
    calls = {name: (lambda m=m: m.fit(X, y)) for name, m in {"peer": peer, **models}.items()}
    times = medians(calls, repeats)
    for name in models:
        report(f"forest {name}, 50 trees, 2,000 x 20", times[name], times["peer"], FOREST_BAR)


def asides() -> None:
    """What the dearer options cost, against the plain forest."""
    X, y = gauss20d("easy", n_samples=2_000, random_state=0)
    plain = RankingForest(50, n_jobs=1, random_state=0, **DEPTHS)
    options: dict[str, dict[str, Any]] = {
        "two jobs": {"n_jobs": 2},
        "pruned by 5 folds": {"prune": True},
        "linear machines (rf1)": {"variant": "rf1", "splitter": SVMSplit("linear")},
        "Gaussian machines (rf1)": {"variant": "rf1", "splitter": SVMSplit("gaussian")},
        "footrule consensus": {"consensus": "footrule"},
        "Kendall consensus": {"consensus": "kendall"},
    }
    base = seconds(lambda: plain.fit(X, y))
    for name, option in options.items():
        model = RankingForest(**{**plain.get_params(), **option})
        RankingForest(**{**model.get_params(), "n_estimators": 2}).fit(X[:200], y[:200])
        report(f"forest, {name}, against the plain one", seconds(lambda m=model: m.fit(X, y)), base)
    report("forest, scoring 2,000 rows", seconds(lambda: plain.decision_function(X)), base)


def one_fit(parameters: dict[str, Any], n_rows: int, out: Any) -> None:
    """Fit one tree on simulated rows; send the seconds and the growth of the greatest memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 2 * rng.normal(size=n_rows) > 1).astype(int)
    TreeRank(random_state=0, **parameters).fit(X[:3_000], y[:3_000])  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    model = TreeRank(random_state=0, **parameters).fit(X, y)
    elapsed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    out.send((elapsed, max(after - before, 0), model.n_leaves_))


def growth(name: str, sizes: tuple[int, ...]) -> None:
    """Time and memory of one tree against rows, each fit in a process of its own."""
    context = multiprocessing.get_context("spawn")
    fits = []
    for n_rows in sizes:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=one_fit, args=(TREES[name], n_rows, sender))
        process.start()
        fits.append(receiver.recv())
        process.join()
    times = [fit[0] for fit in fits]
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    bar = 4 * 160 * sizes[-1] + 300 * sizes[-1] + 300e6
    verdict = "met" if slope <= SLOPE_BAR and fits[-1][1] <= bar else "MISSED"
    shown = " ".join(f"{t:.2f}" for t in times)
    print(
        f"tree, {name}: {shown} s, {fits[-1][2]} leaves, slope {slope:.2f} (bar {SLOPE_BAR}), "
        f"memory {fits[-1][1] / 1e6:.0f} of {bar / 1e6:.0f} MB  {verdict}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, up to 250,000 rows")
    options = parser.parse_args()
    forests(3 if options.quick else 7)
    asides()
    for name in TREES:
        growth(name, SIZES[:2] if options.quick else SIZES)


if __name__ == "__main__":
    main()
