"""One boosting round on 1,000,000 x 40 rows against the same trees on ready-made gradients.

Each objective is run for 60 rounds, its gradients are kept, and `xgboost.train` goes through the same rounds
once more with an objective that only hands them over. The cost of a round is the time from the end of round
20 to the end of round 60, over 40. The objectives that need a sort are also run in their binned form. Beside
it, XGBoost's own logistic and rank:map objectives and LightGBM's lambdarank, which refuses lists of more
than 10,000 rows.
"""

from __future__ import annotations

import argparse
import time

import lightgbm
import numpy as np
import xgboost as xgb

from benchmarks.common import report
from toprank import GradientBoostingRanker, objectives
from toprank.objectives import OBJECTIVES, Objective
from toprank.objectives.binned import binned_gradient_hessian

EXPONENTIAL = ("logistic", "ap_exp", "ap_softmax", "pairwise_exp", "pnorm_push")
FEW, MANY = 20, 60
TREES = {  # those of the yardstick
    "growth": "depth", "max_depth": 6, "max_leaves": 0, "colsample_bynode": 1.0,
    "learning_rate": 0.1, "max_bins": 255, "max_leaf_step": 0.0, "reg_lambda": 1.0,
}  # fmt: skip


def make_rows(n: int, columns: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, (signal > np.quantile(signal, 1 - rate)).astype(np.float64)


class Wrapped(Objective):
    """An objective whose gradients for trees go another way."""

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.pointwise, self.graded, self.name = (
            objective.pointwise, objective.graded, objective.name
        )  # fmt: skip

    def _loss(self, rows):
        return self.objective._loss(rows)

    def _gradient_hessian(self, rows):
        return self.objective._gradient_hessian(rows)


class Binned(Wrapped):
    """The objective in its binned form."""

    def scaled_gradient_hessian(self, rows):
        both = binned_gradient_hessian(self.objective, rows.y, rows.scores, for_trees=True)
        return tuple(part.astype(np.float32) for part in both)


class Recorded(Wrapped):
    """The objective, keeping the gradients that it gives to the trees."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(objective)
        self.kept = []

    def scaled_gradient_hessian(self, rows):
        self.kept.append(self.objective.scaled_gradient_hessian(rows))
        return self.kept[-1]


def per_round(ends: list[float]) -> float:
    """Seconds a round, from the times at which the rounds ended."""
    return (ends[MANY - 1] - ends[FEW - 1]) / (MANY - FEW)


def ours(objective, X, y) -> float:
    ends: list[float] = []
    GradientBoostingRanker(objective, n_estimators=MANY, random_state=0, **TREES).fit(
        X, y, callbacks=[lambda _: ends.append(time.perf_counter())]
    )
    return per_round(ends)


class Clock(xgb.callback.TrainingCallback):
    """Notes when each round ends."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[float] = []

    def after_iteration(self, model, epoch, evals_log) -> bool:
        self.ends.append(time.perf_counter())
        return False


def ready_made(matrix, gradients) -> float:
    """The same rounds of XGBoost with an objective that costs nothing."""
    settings = {
        "tree_method": "hist", "max_depth": 6, "eta": TREES["learning_rate"], "base_score": 0.0,
        "max_bin": TREES["max_bins"], "lambda": TREES["reg_lambda"],
        "disable_default_eval_metric": True,
    }  # fmt: skip
    clock, kept = Clock(), iter(gradients)
    xgb.train(settings, matrix, MANY, obj=lambda scores, data: next(kept), callbacks=[clock])
    return per_round(clock.ends)


def theirs(objective: str, matrix) -> float:
    """A round of an objective of XGBoost's own."""
    clock = Clock()
    settings = {"objective": objective, "tree_method": "hist", "max_depth": 6, "eta": 0.1}
    xgb.train(settings, matrix, MANY, callbacks=[clock])
    return per_round(clock.ends)


def compare(label, objective, X, y, matrix, bar: float, repeats: int) -> None:
    """Print our time and the yardstick's; each pair of runs is made one right after the other."""
    recorded = Recorded(objective)
    ours(recorded, X, y)  # also compiles
    pairs = [(ours(objective, X, y), ready_made(matrix, recorded.kept)) for _ in range(repeats)]
    report(label, *np.median(pairs, axis=0), bar)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--objectives", nargs="*", default=list(OBJECTIVES), choices=OBJECTIVES)
    options = parser.parse_args()
    n = 100_000 if options.quick else 1_000_000
    X, y = make_rows(n, 40, 0.002 if n > 100_000 else 0.02)
    matrix = xgb.QuantileDMatrix(X, max_bin=TREES["max_bins"])
    print(f"{n:,} x 40 rows, {int(y.sum()):,} positives; ours, ready-made gradients")
    for name in options.objectives:
        objective = objectives.get(name)
        bar = 1.3 if name in EXPONENTIAL else 2.5
        compare(f"a round of {name}", objective, X, y, matrix, bar, options.repeats)
        if name not in EXPONENTIAL:
            label = f"a round of {name}, binned"
            compare(label, Binned(objective), X, y, matrix, 1.8, options.repeats)
    labelled = xgb.QuantileDMatrix(X, label=y)
    grouped = xgb.QuantileDMatrix(X, label=y, qid=np.zeros(n))
    for name, data in (("binary:logistic", labelled), ("rank:map", grouped)):
        own = float(np.median([theirs(name, data) for _ in range(options.repeats)]))
        print(f"a round of XGBoost's {name:<31} {own:9.4f} s", flush=True)
    try:
        listed = lightgbm.Dataset(X, label=y, group=[n])
        lightgbm.train({"objective": "lambdarank", "verbose": -1}, listed, 1)
        print("LightGBM's lambdarank took the list")
    except lightgbm.basic.LightGBMError as error:
        print(f"LightGBM's lambdarank: {error}")


if __name__ == "__main__":
    main()
