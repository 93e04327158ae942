"""5,000 rounds at depth 10 on sparse rows of w8a's size, for every objective: does anything overflow?

Scores, gains and leaves must be finite, and the scores within what the steps allow. Times are printed; there
is no bar for them.

    python -m benchmarks endurance [--quick] [--objectives NAME ...]
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import sparse

from benchmarks.common import seconds
from toprank import GradientBoostingRanker
from toprank.objectives import OBJECTIVES

ROWS, COLUMNS, RATE = 49_749, 300, 0.03  # those of w8a
LEARNING_RATE, LARGEST_STEP = 0.1, 2.0


def make_rows(n: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Columns of 0 and 1, one cell in 25 being 1."""
    rng = np.random.default_rng(0)
    X = sparse.random(n, COLUMNS, density=0.04, random_state=0, format="csr", data_rvs=np.ones)
    signal = X @ rng.normal(size=COLUMNS) + 0.5 * rng.normal(size=n)
    return X, (signal > np.quantile(signal, 1 - RATE)).astype(int)


def endure(objective: str, X: sparse.csr_matrix, y: np.ndarray, rounds: int) -> None:
    """Fit, look for anything that is not finite, print one line."""
    model = GradientBoostingRanker(
        objective,
        n_estimators=rounds,
        learning_rate=LEARNING_RATE,
        max_leaf_step=LARGEST_STEP,
        growth="depth",
        max_depth=10,
        max_leaves=0,
        random_state=0,
    )
    taken = seconds(lambda: model.fit(X, y))
    scores = model.decision_function(X)
    trees = model.boosters_[0].trees_to_dataframe()
    highest = np.abs(scores).max()
    sound = (
        np.isfinite(scores).all()
        and np.isfinite(trees["Gain"]).all()
        and highest <= 2 * rounds * LEARNING_RATE * LARGEST_STEP
    )
    print(
        f"{objective:<18} {taken:7.1f} s  {len(trees):>9,} nodes  scores within {highest:8.2f}  "
        f"training AP {model.score(X, y):.4f}  {'finite' if sound else 'NOT FINITE'}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the rows and of the rounds"
    )
    parser.add_argument("--objectives", nargs="*", default=list(OBJECTIVES), choices=OBJECTIVES)
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    X, y = make_rows(ROWS // scale)
    rounds = 5_000 // scale
    print(f"{X.shape[0]:,} x {COLUMNS} sparse rows, {rounds:,} rounds at depth 10")
    for objective in options.objectives:
        endure(objective, X, y, rounds)


if __name__ == "__main__":
    main()
