"""How time and memory of every estimator grow from 125,000 to 1,000,000 rows.

Each fit runs in a process of its own. Bars: log-log slope of time at most 1.25; peak memory at most four
times the feature matrix + 300 bytes a row + 300 MB, above what the process held before the fit.

    python -m benchmarks.growth [--quick] [--estimators NAME ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import numpy as np

from toprank.registry import ESTIMATORS

COLUMNS = 20
SIZES = (125_000, 250_000, 500_000, 1_000_000)
SETTINGS = {  # rounds and trees that let a million rows finish in minutes
    "GradientBoostingRanker": {"n_estimators": 20},
    "RankBoost": {"n_estimators": 20},
    "PNormPush": {"n_estimators": 20},
    "PRankBoost": {"n_estimators": 10},
    "PAUCBoost": {"n_estimators": 10},
    "RankingForest": {"n_estimators": 2},
}


def one_fit(name: str, n_rows: int, settings: dict) -> dict:
    """Fit one estimator on simulated rows; seconds and peak memory above the start."""
    import resource
    import time

    from toprank.registry import estimator

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, COLUMNS))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n_rows)
    y = (signal > np.quantile(signal, 0.99)).astype(int)
    model = estimator(name)(**settings)
    few = np.r_[np.flatnonzero(y)[:50], np.flatnonzero(y == 0)[:1950]]
    model.fit(X[few], y[few])  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "bytes": max(peak - before, 0), "matrix": X.nbytes}


def in_own_process(name: str, n_rows: int) -> dict:
    call = json.dumps([name, n_rows, SETTINGS.get(name, {})])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", "--child", call],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 250,000 rows")
    parser.add_argument(
        "--estimators", nargs="*", default=list(ESTIMATORS), choices=list(ESTIMATORS)
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_fit(*json.loads(options.child))))
        return
    sizes = SIZES[:2] if options.quick else SIZES
    for name in options.estimators:
        fits = [in_own_process(name, n) for n in sizes]
        errors = [f["error"] for f in fits if "error" in f]
        if errors:
            print(f"{name:<26} failed: {errors[0]}", flush=True)
            continue
        times = [f["seconds"] for f in fits]
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        allowed = 4 * fits[-1]["matrix"] + 300 * sizes[-1] + 300e6
        used = fits[-1]["bytes"]
        shown = " ".join(f"{t:8.2f}" for t in times)
        verdict = "met" if slope <= 1.25 and used <= allowed else "MISSED"
        print(
            f"{name:<26} {shown} s  slope {slope:5.2f} (bar 1.25)  "
            f"memory {used / 1e6:7.0f} of {allowed / 1e6:.0f} MB  {verdict}",
            flush=True,
        )


if __name__ == "__main__":
    main()
