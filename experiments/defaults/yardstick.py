"""The yardstick: XGBoost with the logistic loss, tuned over depth, rate and rounds by validation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xgboost as xgb

from experiments.defaults.tasks import Task
from toprank import metrics

DEPTHS = (4, 6, 8)
RATES = (0.1, 0.3)
MOST_ROUNDS = 600
PATIENCE = 50


def tuned_logistic(task: Task, seed: int, n_jobs: int = 1) -> dict:
    """Choose by inner validation, fit again on all training rows, score the test rows."""
    best: tuple[float, dict, int] = (-1.0, {}, 0)
    for depth in DEPTHS:
        for rate in RATES:
            settings = {
                "objective": "binary:logistic",
                "tree_method": "hist",
                "max_depth": depth,
                "eta": rate,
                "eval_metric": "aucpr",
                "seed": seed,
                "nthread": n_jobs,
            }
            curve = validation_curve(task, settings)
            rounds = int(np.argmax(curve)) + 1
            if curve[rounds - 1] > best[0]:
                best = (float(curve[rounds - 1]), settings, rounds)
    value, settings, rounds = best
    model = xgb.train(settings, as_matrix(task, task.X, task.y), rounds)
    scores = model.predict(as_matrix(task, task.X_test), output_margin=True)
    chosen = {"depth": settings["max_depth"], "rate": settings["eta"], "rounds": rounds}
    return {"scores": np.asarray(scores, dtype=float), "validation": value, "chosen": chosen}


def validation_curve(task: Task, settings: dict) -> np.ndarray:
    """Mean over the inner splits of the average precision after each round."""
    curves = []
    stop = PATIENCE if len(task.inner) == 1 else None
    rounds = MOST_ROUNDS if stop else 200
    for fit, held_out in task.inner:
        training = as_matrix(task, task.X.iloc[fit], task.y[fit])
        validation = as_matrix(task, task.X.iloc[held_out], task.y[held_out])
        found: dict = {}
        model = xgb.train(
            settings,
            training,
            rounds,
            evals=[(validation, "held_out")],
            evals_result=found,
            early_stopping_rounds=stop,
            verbose_eval=False,
        )
        assert model is not None
        curves.append(found["held_out"]["aucpr"])
    return np.mean(np.array(curves), axis=0)


def as_matrix(task: Task, X: pd.DataFrame, y: np.ndarray | None = None) -> xgb.DMatrix:
    """A DMatrix with text columns as categories, coded by the values of the training rows."""
    return xgb.DMatrix(
        task.columns.matrix(X),
        label=y,
        feature_types=["c" if c else "q" for c in task.columns.is_category],
        enable_categorical=True,
    )


def quality(y: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """The figures that are compared."""
    return {
        "average_precision": metrics.average_precision(y, scores),
        "precision_at_k": metrics.precision_at_k(y, scores),
        "pos_at_top": metrics.pos_at_top(y, scores),
        "roc_auc": metrics.roc_auc(y, scores),
    }
