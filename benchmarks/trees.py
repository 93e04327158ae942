"""Ranking trees and forests against their bars.

    python -m benchmarks.trees [--quick] [--sizes N ...]

- A forest of 50 trees, 2,000 x 20, depth 8 and 6 in LeafRank: at most 3 times the time of scikit-learn's
  RandomForest with 50 trees of unlimited depth, one job each.
- `RankingForest()` as it comes, 5,000 x 20 with 3% positives, and 20,000 x 40 with 1%: at most 3 times
  scikit-learn's RandomForest with 300 trees and leaves of two rows.
- One tree, 20 columns, 125,000 to 1,000,000 rows: log-log slope of time at most 1.25 (n log n has
  1.06), with LeafRank and with support vector machines.
- Peak memory of a fit at 1,000,000 rows: at most 4 times the matrix + 300 bytes a row + 300 MB.
- For information: pruning, SVMs, consensus, scoring.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from benchmarks.common import (
    SIZES,
    in_own_process,
    measured,
    medians,
    report,
    report_growth,
    seconds,
)
from toprank import RankingForest, TreeRank
from toprank.datasets import gauss20d
from toprank.trees import VARIANTS, SVMSplit

FOREST_BAR = 3.0
DEPTHS = {"max_depth": 8, "leafrank_depth": 6}
TREES: dict[str, dict[str, Any]] = {
    "LeafRank, depth 8/6": DEPTHS,
    "linear SVMs, depth 8": {"max_depth": 8, "splitter": SVMSplit("linear")},
    "Gaussian SVMs, depth 8": {"max_depth": 8, "splitter": SVMSplit("gaussian")},
}


def forests(repeats: int) -> None:
    """Every variant against a random forest."""
    X, y = gauss20d("easy", n_samples=2_000, random_state=0)
    peer = RandomForestClassifier(50, n_jobs=1, random_state=0)
    settings = {"consensus": "spearman", "n_jobs": 1, "random_state": 0, **DEPTHS}
    models = {v: RankingForest(50, variant=v, **settings) for v in VARIANTS}
    for model in models.values():
        model.fit(X[:200], y[:200])  # compile
    calls = {name: (lambda m=m: m.fit(X, y)) for name, m in {"peer": peer, **models}.items()}
    times = medians(calls, repeats)
    for name in models:
        report(f"forest {name}, 50 trees, 2,000 x 20", times[name], times["peer"], FOREST_BAR)


def default_forest(repeats: int) -> None:
    """The forest with its defaults against a random forest with its usual good settings."""
    RankingForest(n_estimators=2, random_state=0).fit(*rare_rows(500, 20, 0.05))  # compile
    for n_rows, n_columns, share in ((5_000, 20, 0.03), (20_000, 40, 0.01)):
        X, y = rare_rows(n_rows, n_columns, share)
        peer = RandomForestClassifier(300, min_samples_leaf=2, n_jobs=1, random_state=0)
        ours = RankingForest(n_jobs=1, random_state=0)
        calls = {n: partial(m.fit, X, y) for n, m in (("peer", peer), ("ours", ours))}
        times = medians(calls, repeats)
        report(
            f"RankingForest(), {n_rows:,} x {n_columns}, {share:.0%} positive",
            times["ours"],
            times["peer"],
            FOREST_BAR,
        )


def rare_rows(n_rows: int, n_columns: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Simulated rows of which a small share is positive."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    risk = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)
    return X, (risk > np.quantile(risk, 1 - share)).astype(int)


def options_of_forests() -> None:
    """What other options cost, against the plain forest."""
    X, y = gauss20d("easy", n_samples=2_000, random_state=0)
    plain = RankingForest(50, variant="rf3", n_jobs=1, random_state=0, **DEPTHS)
    options: dict[str, dict[str, Any]] = {
        "two jobs": {"n_jobs": 2},
        "pruned by 5 folds": {"prune": True},
        "linear SVMs (rf1)": {"variant": "rf1", "splitter": SVMSplit("linear")},
        "Gaussian SVMs (rf1)": {"variant": "rf1", "splitter": SVMSplit("gaussian")},
        "footrule consensus": {"consensus": "footrule"},
        "Kendall consensus": {"consensus": "kendall"},
    }
    base = seconds(lambda: plain.fit(X, y))
    for name, option in options.items():
        model = RankingForest(**{**plain.get_params(), **option})
        RankingForest(**{**model.get_params(), "n_estimators": 2}).fit(X[:200], y[:200])
        report(f"forest, {name}, against the plain one", seconds(lambda m=model: m.fit(X, y)), base)
    report("forest, scoring 2,000 rows", seconds(lambda: plain.decision_function(X)), base)


def one_fit(name: str, n_rows: int) -> dict[str, float]:
    """Fit one tree on simulated rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + 2 * rng.normal(size=n_rows) > 1).astype(int)
    model = TreeRank(random_state=0, **TREES[name]).fit(X[:3_000], y[:3_000])  # compile
    return {**measured(lambda: model.fit(X, y)), "matrix": X.nbytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats, up to 250,000 rows")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="numbers of rows")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_fit(*json.loads(options.child))))
        return
    forests(3 if options.quick else 7)
    default_forest(1 if options.quick else 3)
    options_of_forests()
    sizes = SIZES[:2] if options.quick else options.sizes
    for name in TREES:
        fits = [in_own_process("benchmarks.trees", name, n) for n in sizes]
        report_growth(f"tree, {name}", sizes, fits)


if __name__ == "__main__":
    main()
