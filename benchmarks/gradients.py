"""Gradients of every objective on one list of 2,000,000 rows, 0.2% positive.

The yardstick is one stable argsort of the same scores. Beside it: how much longer widely spread
scores and equal scores take, and the error against `benchmarks.brute_force`, which writes every loss out
pair by pair, on 5,000 rows (greatest absolute error over greatest absolute gradient; bar 1e-6). The compiled
double loop over pairs that all this replaces is timed on a shorter list; its time on the long one is that times
the pairs.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import brute_force
from benchmarks.common import medians, report, report_bar, seconds
from toprank import objectives
from toprank.objectives import Objective
from toprank.objectives.binned import binned_gradient_hessian
from toprank.pairs import sums

EXPONENTIAL = {"ap_exp", "ap_softmax", "pairwise_exp", "pnorm_push"}
NO_SLOWER = 1.1  # two timings of one thing may differ by a tenth


def make_rows(n: int, rate: float = 0.002) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (rng.random(n) < rate).astype(np.float64)
    return y, rng.normal(size=n) + 2 * y


def double_loop(objective: Objective, y: np.ndarray, scores: np.ndarray) -> None:
    """The same gradient by the compiled loop over all pairs, as for short queries."""
    usual = sums.PAIRS_PER_ROW
    sums.PAIRS_PER_ROW = 10**12
    try:
        objective.gradient_hessian(y, scores)
    finally:
        sums.PAIRS_PER_ROW = usual


def errors() -> dict[str, float]:
    """Greatest error over greatest gradient, on 5,000 rows, a hundred of them positive."""
    y, scores = make_rows(5_000, rate=0.02)
    found = {}
    for name, exact in brute_force.gradients(y, scores).items():
        ours, _ = objectives.get(name).gradient_hessian(y, scores)
        found[name] = float(np.abs(ours - exact).max() / np.abs(exact).max())
    return found


def first_use() -> float:
    """Seconds for the first call of every objective: all kernels compiled, or read from the cache."""
    y, scores = make_rows(2_000, rate=0.1)
    total = 0.0
    for name in objectives.OBJECTIVES:
        objective = objectives.get(name)
        total += seconds(lambda o=objective: (o.loss(y, scores), o.gradient_hessian(y, scores)))
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="200,000 rows")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    n = 200_000 if options.quick else 2_000_000
    y, scores = make_rows(n)
    wide, equal = 1000.0 * scores, np.zeros(n)
    print(f"first use of all objectives: {first_use():.1f} s (compiled, or read from the cache)")
    print(f"{n:,} rows, {int(y.sum()):,} positives, medians of {options.repeats}")
    error = errors()
    for name in objectives.OBJECTIVES:
        objective = objectives.get(name)
        objective.gradient_hessian(y, scores)
        times = medians(
            {
                "argsort": lambda: np.argsort(scores, kind="stable"),
                "gradient": lambda o=objective: o.gradient_hessian(y, scores),
                "wide": lambda o=objective: o.gradient_hessian(y, wide),
                "equal": lambda o=objective: o.gradient_hessian(y, equal),
                "loss": lambda o=objective: o.loss(y, scores),
                "binned": lambda o=objective: binned_gradient_hessian(o, y, scores),
            },
            options.repeats,
        )
        bar = 0.25 if name in EXPONENTIAL else 1.0
        report(f"{name} against one argsort", times["gradient"], times["argsort"], bar)
        report_bar(f"{name}, error against brute force", error[name], 1e-6)
        slower = times["wide"] / times["gradient"]
        report_bar(f"{name}, widely spread scores over usual ones", slower, NO_SLOWER, unit="x")
        others = {k: times[k] / times["gradient"] for k in ("wide", "equal", "loss", "binned")}
        print("    over the gradient: " + ", ".join(f"{k} {v:.2f}x" for k, v in others.items()))
    compare_double_loop(n, y)


def compare_double_loop(n: int, y: np.ndarray) -> None:
    """The O(P·N) loop on a shorter list, and what it would take on the long one."""
    shorter = n // 10
    few_y, few_scores = make_rows(shorter)
    pairs = few_y.sum() * (shorter - few_y.sum())
    all_pairs = y.sum() * (n - y.sum())
    for name in ("ap_sigmoid", "lambda_map"):
        objective = objectives.get(name)
        took = seconds(lambda o=objective: double_loop(o, few_y, few_scores))
        print(
            f"double loop, {name}: {shorter:,} rows, {pairs:.2g} pairs, {took:.2f} s; "
            f"{n:,} rows, {all_pairs:.2g} pairs, would take {took * all_pairs / pairs:.0f} s"
        )


if __name__ == "__main__":
    main()
