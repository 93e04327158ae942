"""Which objective and which trees make `GradientBoostingRanker()` the best single model to call.

Every cell fits one variant of the trees with one objective on one split: on the inner splits for the
validation figure, on all training rows for the test figures. The objective of a split is chosen by its
validation figure, never by the test. The yardstick is XGBoost's logistic booster, tuned over depth, rate
and rounds by the same inner splits.

    python -m experiments.defaults --what yardstick|variants|objectives|table [--data NAME ...]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from experiments.common import ROOT, Results, use_local_data
from experiments.defaults.report import write_report
from experiments.defaults.tasks import REPEATS, Task, make_task
from experiments.defaults.variants import BASE, OBJECTIVES, VARIANTS
from experiments.defaults.yardstick import quality, tuned_logistic
from toprank import GradientBoostingRanker, metrics
from toprank.boosting.xgboost_helpers import automatic_rate


def ours(data: str, repeat: int, variant: str, objective: str) -> dict:
    """One variant with one objective on one split."""
    task = make_task(data, repeat)
    settings = {} if variant == "default" else {**BASE, **VARIANTS[variant]}
    if "rate_factor" in settings:
        settings["learning_rate"] = settings.pop("rate_factor") * automatic_rate(len(task.y))
    model = GradientBoostingRanker(objective, random_state=repeat, n_jobs=1, **settings)
    validation = float("nan")
    if variant == "default":  # the others are compared on the test rows, with one objective
        validation = float(np.mean([validation_value(model, task, split) for split in task.inner]))
    start = time.perf_counter()
    model.fit(task.X, task.y)
    seconds = time.perf_counter() - start
    scores = model.decision_function(task.X_test)
    return {**quality(task.y_test, scores), "validation": validation, "fit_seconds": seconds}


def validation_value(model: GradientBoostingRanker, task: Task, split) -> float:
    fit, held_out = split
    model.fit(task.X.iloc[fit], task.y[fit])
    scores = model.decision_function(task.X.iloc[held_out])
    return metrics.average_precision(task.y[held_out], scores)


def yardstick(data: str, repeat: int) -> dict:
    """The tuned logistic booster on one split."""
    task = make_task(data, repeat)
    found = tuned_logistic(task, repeat)
    figures = quality(task.y_test, found["scores"])
    return {**figures, "validation": found["validation"], "chosen": found["chosen"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--what", choices=["yardstick", "variants", "objectives", "table"], default="table"
    )
    parser.add_argument("--data", nargs="*", default=list(REPEATS), choices=list(REPEATS))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    use_local_data()
    tuned = Results(ROOT / "results" / "defaults_yardstick.jsonl")
    found = Results(ROOT / "results" / "defaults.jsonl")
    splits = [
        {"data": data, "repeat": repeat}
        for repeat in range(options.repeats)
        for data in options.data
        if repeat < REPEATS[data]
    ]
    if options.what == "yardstick":
        tuned.run(splits, yardstick)
    elif options.what == "objectives":
        found.run(
            [{**s, "variant": "default", "objective": o} for s in splits for o in OBJECTIVES], ours
        )
    elif options.what == "variants":
        found.run(
            [
                {**s, "variant": v, "objective": "ap_sigmoid"}
                for s in splits
                for v in options.variants
            ],
            ours,
        )
    else:
        print(write_report(found, tuned))


if __name__ == "__main__":
    main()
