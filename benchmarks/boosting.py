"""One boosting round on 1,000,000 x 40 rows beside the same trees on ready-made gradients.

The cost of a round is (60 rounds - 20 rounds) / 40, so that setting up counts on neither side. Beside it,
XGBoost's own logistic and rank:map objectives and LightGBM's lambdarank, which refuses lists of more than
10,000 rows.
"""

from __future__ import annotations

import argparse
import time

import lightgbm
import numpy as np
import xgboost as xgb

from benchmarks.common import report
from toprank import GradientBoostingRanker
from toprank.objectives import OBJECTIVES

EXPONENTIAL = ("logistic", "ap_exp", "ap_softmax", "pairwise_exp", "pnorm_push")
TREES = {  # those of the yardstick
    "growth": "depth", "max_depth": 6, "max_leaves": 0, "colsample_bynode": 1.0,
    "learning_rate": 0.1, "max_bins": 255, "max_leaf_step": 0.0,
}  # fmt: skip


def make_rows(n: int, columns: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, columns)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, (signal > np.quantile(signal, 1 - rate)).astype(np.float64)


def per_round(fit, few: int, many: int) -> float:
    """Seconds a round: the difference of a long and a short fit."""
    times = []
    for rounds in (few, many):
        start = time.perf_counter()
        fit(rounds)
        times.append(time.perf_counter() - start)
    return max(times[1] - times[0], 1e-9) / (many - few)


def ready_made(matrix, gradient, hessian, rounds: int) -> None:
    """The same trees with gradients that cost nothing."""
    settings = {
        "tree_method": "hist",
        "max_depth": 6,
        "eta": 0.1,
        "base_score": 0.0,
        "max_bin": 255,
    }
    booster = xgb.Booster(settings, [matrix])
    for number in range(rounds):
        booster.boost(matrix, number, grad=gradient, hess=hessian)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--objectives", nargs="*", default=list(OBJECTIVES), choices=OBJECTIVES)
    options = parser.parse_args()
    n = 100_000 if options.quick else 1_000_000
    X, y = make_rows(n, 40, 0.002 if n > 100_000 else 0.02)
    matrix = xgb.QuantileDMatrix(X, max_bin=255)
    share = y.mean()
    gradient = (share - y).astype(np.float32)
    hessian = np.full(n, share * (1 - share), dtype=np.float32)

    def cost(fit) -> float:
        return float(np.median([per_round(fit, 20, 60) for _ in range(options.repeats)]))

    yardstick = cost(lambda rounds: ready_made(matrix, gradient, hessian, rounds))
    print(
        f"{n:,} x 40 rows, {int(y.sum()):,} positives; ready-made gradients {yardstick:.4f} s a round"
    )
    for name in options.objectives:
        bar = 1.3 if name in EXPONENTIAL else 2.5
        model = GradientBoostingRanker(name, **TREES)

        def fit(rounds: int, model=model) -> None:
            model.set_params(n_estimators=rounds).fit(X, y)

        fit(1)  # compile
        report(f"a round of {name}", cost(fit), yardstick, bar)

    labelled = xgb.DMatrix(X, label=y)
    grouped = xgb.DMatrix(X, label=y, qid=np.zeros(n))
    for name, data in (("binary:logistic", labelled), ("rank:map", grouped)):
        settings = {"objective": name, "tree_method": "hist", "max_depth": 6, "eta": 0.1}
        report(
            f"a round of XGBoost's {name}",
            cost(lambda rounds, s=settings, d=data: xgb.train(s, d, rounds)),
            yardstick,
        )
    try:
        listed = lightgbm.Dataset(X, label=y, group=[n])
        lightgbm.train({"objective": "lambdarank", "verbose": -1}, listed, 1)
        print("LightGBM's lambdarank took the list")
    except lightgbm.basic.LightGBMError as error:
        print(f"LightGBM's lambdarank: {error}")


if __name__ == "__main__":
    main()
