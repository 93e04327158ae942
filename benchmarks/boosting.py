"""One boosting round on 1,000,000 x 40 rows against the same trees on ready-made gradients.

Each objective is run for 30 rounds, its gradients are kept, and `xgboost.train` goes through the same rounds
once more with an objective that only hands them over. The cost of a round is the processor's time from the end
of round 10 to the end of round 30, over 20, in one thread. The rows are in memory; `--out-of-core` takes the
forms that save memory, and `--exact` the sorted list where a histogram is the default. The second yardstick,
with the same bars, is a round of XGBoost's own logistic objective, which users know. Beside it, XGBoost's
rank:map and LightGBM's lambdarank, which refuses lists of more than 10,000 rows.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import ClassVar

import lightgbm
import numpy as np
import xgboost as xgb

from benchmarks.common import report
from toprank import GradientBoostingRanker
from toprank.boosting import engine
from toprank.boosting.gradients import TreeGradients
from toprank.objectives import OBJECTIVES

EXPONENTIAL = ("logistic", "ap_exp", "ap_softmax", "pairwise_exp", "pnorm_push")
FEW, MANY = 10, 30
TREES = {  # those of the yardstick
    "growth": "depth", "max_depth": 6, "max_leaves": 0, "colsample_bynode": 1.0,
    "learning_rate": 0.1, "max_bins": 255, "max_leaf_step": 0.0, "reg_lambda": 1.0,
}  # fmt: skip


def make_rows(n: int, columns: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, (signal > np.quantile(signal, 1 - rate)).astype(np.float64)


class Recorded(TreeGradients):
    """Gradients for the trees, kept as they are handed over."""

    kept: ClassVar[list] = []

    def __call__(self, scores, drawn=None):
        self.kept.append(super().__call__(scores, drawn))
        return self.kept[-1]


def per_round(ends: list[float]) -> float:
    """Seconds a round, from the times at which the rounds ended."""
    return (ends[MANY - 1] - ends[FEW - 1]) / (MANY - FEW)


def ours(objective: str, X, y, gradients) -> float:
    """A round of ours, with one of the forms of the gradients."""
    ends: list[float] = []
    engine.TreeGradients = gradients
    GradientBoostingRanker(
        objective, n_estimators=MANY, n_seeds=1, random_state=0, n_jobs=1, **TREES
    ).fit(X, y, callbacks=[lambda _: ends.append(time.process_time())])
    return per_round(ends)


class Clock(xgb.callback.TrainingCallback):
    """Notes when each round ends."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[float] = []

    def after_iteration(self, model, epoch, evals_log) -> bool:
        self.ends.append(time.process_time())
        return False


def ready_made(matrix, gradients) -> float:
    """The same rounds of XGBoost with an objective that costs nothing."""
    settings = {
        "tree_method": "hist", "max_depth": 6, "eta": TREES["learning_rate"], "base_score": 0.0,
        "max_bin": TREES["max_bins"], "lambda": TREES["reg_lambda"],
        "disable_default_eval_metric": True, "nthread": 1,
    }  # fmt: skip
    clock, kept = Clock(), iter(gradients)
    xgb.train(settings, matrix, MANY, obj=lambda scores, data: next(kept), callbacks=[clock])
    return per_round(clock.ends)


def theirs(objective: str, matrix) -> float:
    """A round of an objective of XGBoost's own."""
    clock = Clock()
    settings = {
        "objective": objective,
        "tree_method": "hist",
        "max_depth": 6,
        "eta": 0.1,
        "nthread": 1,
    }
    xgb.train(settings, matrix, MANY, callbacks=[clock])
    return per_round(clock.ends)


def compare(objective: str, X, y, matrix, form: dict, bar: float, repeats: int) -> float:
    """Print our time and the yardstick's, return ours; each pair of runs is made one right after the other."""
    Recorded.kept = []
    ours(objective, X, y, partial(Recorded, **form))  # also compiles
    pairs = [
        (ours(objective, X, y, partial(TreeGradients, **form)), ready_made(matrix, Recorded.kept))
        for _ in range(repeats)
    ]
    own, yardstick = np.median(pairs, axis=0)
    report(f"a round of {objective}", own, yardstick, bar)
    return own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--objectives", nargs="*", default=list(OBJECTIVES), choices=OBJECTIVES)
    parser.add_argument("--exact", action="store_true", help="the sorted list, however long it is")
    parser.add_argument("--out-of-core", action="store_true", help="the forms that save memory")
    options = parser.parse_args()
    n = 100_000 if options.quick else 1_000_000
    X, y = make_rows(n, 40, 0.002 if n > 100_000 else 0.02)
    matrix = xgb.QuantileDMatrix(X, max_bin=TREES["max_bins"])
    print(f"{n:,} x 40 rows, {int(y.sum()):,} positives; ours, ready-made gradients")
    form = {"form": "exact" if options.exact else "auto", "thrifty": options.out_of_core}
    bars = {name: 1.15 if name in EXPONENTIAL else 1.5 for name in options.objectives}
    times = {
        name: compare(name, X, y, matrix, form, bar, options.repeats) for name, bar in bars.items()
    }
    labelled = xgb.QuantileDMatrix(X, label=y)
    grouped = xgb.QuantileDMatrix(X, label=y, qid=np.zeros(n))
    for name, data in (("binary:logistic", labelled), ("rank:map", grouped)):
        own = float(np.median([theirs(name, data) for _ in range(options.repeats)]))
        print(f"a round of XGBoost's {name:<31} {own:9.4f} s", flush=True)
        if name == "binary:logistic":
            for objective, took in times.items():
                report(
                    f"a round of {objective} against XGBoost's logistic", took, own, bars[objective]
                )
    try:
        listed = lightgbm.Dataset(X, label=y, group=[n])
        lightgbm.train({"objective": "lambdarank", "verbose": -1}, listed, 1)
        print("LightGBM's lambdarank took the list")
    except lightgbm.basic.LightGBMError as error:
        print(f"LightGBM's lambdarank: {error}")


if __name__ == "__main__":
    main()
