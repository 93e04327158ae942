"""How time and memory of every estimator grow from 10,000 to 2,000,000 rows, beside XGBoost's own training.

Each fit runs in a process of its own, with one thread. Bars: log-log slope of the processor's time from 125,000
to 1,000,000 rows at most 1.25; peak memory at most four times the feature matrix + 300 bytes a row + 300 MB,
above what the process held before the fit.

    python -m benchmarks.growth [--quick] [--sizes N ...] [--fits NAME ...]
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from benchmarks.common import SIZES, in_own_process, measured, report_growth
from toprank.registry import ESTIMATORS

COLUMNS = 20
ALL_SIZES = (10_000, 50_000, *SIZES, 2_000_000)
XGBOOST = "XGBoost, logistic, 20 rounds"  # the yardstick that users know
FEW_ROUNDS = {  # rounds, trees and seconds that let a million rows finish in minutes
    "GradientBoostingRanker": {"n_estimators": 20},
    "TunedLogisticBooster": {"n_candidates": 3, "n_estimators": 20},
    "RankBoost": {"n_estimators": 20},
    "PNormPush": {"n_estimators": 20},
    "PRankBoost": {"n_estimators": 10},
    "PAUCBoost": {"n_estimators": 10},
    "RankingForest": {"n_estimators": 2},
    "AutoRanker": {"time_limit": 30},
}
FITS: dict[str, tuple[str, dict]] = {
    XGBOOST: (XGBOOST, {}),
    **{name: (name, FEW_ROUNDS.get(name, {})) for name in ESTIMATORS},
    "RankBoost, clauses": ("RankBoost", {"n_estimators": 10, "weak": "clause"}),
    "PRankBoost, paths": ("PRankBoost", {"n_estimators": 10, "weak": "path"}),
    "PAUCBoost, splines": ("PAUCBoost", {"n_estimators": 10, "weak": "spline"}),
}


def one_fit(name: str, n_rows: int, settings: dict) -> dict:
    """Fit one estimator on simulated rows; seconds and peak memory above the start."""
    from xgboost import XGBClassifier

    from toprank.registry import estimator

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, COLUMNS))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)
    y = (signal > np.quantile(signal, 0.99)).astype(int)
    if name == XGBOOST:
        model = XGBClassifier(n_estimators=20, n_jobs=1)
    else:
        model = estimator(name)(**settings)
        if "n_jobs" in model.get_params():
            model.set_params(n_jobs=1)
    few = np.r_[np.flatnonzero(y)[:50], np.flatnonzero(y == 0)[:1950]]
    model.fit(X[few], y[few])  # compile
    return {**measured(lambda: model.fit(X, y)), "matrix": X.nbytes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="125,000 and 250,000 rows")
    parser.add_argument("--fits", nargs="*", default=list(FITS), choices=list(FITS))
    parser.add_argument("--sizes", nargs="*", type=int, default=ALL_SIZES, help="numbers of rows")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_fit(*json.loads(options.child))))
        return
    sizes = SIZES[:2] if options.quick else options.sizes
    for label in options.fits:
        name, settings = FITS[label]
        try:
            fits = [in_own_process("benchmarks.growth", name, n, settings) for n in sizes]
        except RuntimeError as error:  # the others still run
            print(f"{label:<28} failed: {str(error).splitlines()[-1]}", flush=True)
        else:
            report_growth(label, sizes, fits)


if __name__ == "__main__":
    main()
