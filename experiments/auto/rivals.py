"""Run one rival on one split, in the environment of that rival.

    python rivals.py NAME FOLDER SECONDS CORES SEED CLOCK

The folder holds `train.parquet` and `test.parquet`, with a column `target` in the first; `scores.npy` and `done.json`
are written there. It imports nothing of the project, since the rivals live in environments of their own.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd


def autogluon(train, test, seconds, cores, seed, folder):
    from autogluon.tabular import TabularPredictor

    predictor = TabularPredictor(
        "target", eval_metric="average_precision", path=str(folder / "ag"), verbosity=0
    )
    predictor.fit(
        train,
        presets="best_quality_v150",
        time_limit=seconds,
        dynamic_stacking=False,
        num_cpus=cores,
    )
    return predictor.predict_proba(test)[1].to_numpy()


def flaml(train, test, seconds, cores, seed, folder):
    from flaml import AutoML

    model = AutoML()
    X, y = train.drop(columns="target"), train["target"]
    model.fit(
        X,
        y,
        task="classification",
        metric="ap",
        time_budget=seconds,
        n_jobs=cores,
        seed=seed,
        verbose=0,
    )
    return model.predict_proba(test)[:, 1]


def perpetual(train, test, seconds, cores, seed, folder):
    from perpetual import PerpetualBooster

    X, y = train.drop(columns="target"), train["target"].to_numpy(float)
    for name in X.select_dtypes(exclude="number"):
        both = pd.concat([X[name], test[name]]).astype("category").cat.categories
        X[name], test[name] = (pd.Categorical(t[name], categories=both) for t in (X, test))
    model = PerpetualBooster(objective="LogLoss", budget=1.0, num_threads=cores)
    model.fit(X, y)
    return model.predict_proba(test)[:, 1]


def main() -> None:
    name, folder, clock = sys.argv[1], Path(sys.argv[2]), sys.argv[6]
    seconds, cores, seed = float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    warnings.simplefilter("ignore")
    train, test = (pd.read_parquet(folder / f"{part}.parquet") for part in ("train", "test"))
    if clock == "processor":
        began = time.time() - time.process_time()
        time.time = lambda: began + time.process_time()
        time.perf_counter = time.monotonic = time.process_time
    start = time.perf_counter()
    scores = globals()[name](train, test, seconds, cores, seed, folder)
    taken = {"own_seconds": round(time.perf_counter() - start, 2)}
    np.save(folder / "scores.npy", np.asarray(scores, dtype=float))
    (folder / "done.json").write_text(json.dumps(taken))


if __name__ == "__main__":
    main()
