"""What is varied: the settings of the trees, one choice at a time, and the objectives."""

from __future__ import annotations

from typing import Any

OBJECTIVES = ("ap_sigmoid", "lambda_map", "logistic")

# Where the search began: 16 leaves and a penalty of 1 on any number of rows. Each variant changes one
# thing, or two that helped alone; the defaults that came out of it are the ranker's own.
BASE: dict[str, Any] = {"max_leaves": 16, "reg_lambda": 1.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "depth 5": {"growth": "depth", "max_depth": 5, "max_leaves": 0},
    "31 leaves": {"max_leaves": 31},
    "63 leaves": {"max_leaves": 63},
    "31 leaves, lambda 5": {"max_leaves": 31, "reg_lambda": 5.0},
    "31 leaves, rows drawn, 0.7": {"max_leaves": 31, "subsample": 0.7},
    "31 leaves, half the rate, twice the rounds": {
        "max_leaves": 31,
        "n_estimators": 600,
        "rate_factor": 0.5,
    },
    "8 leaves": {"max_leaves": 8},
    "all columns": {"colsample_bynode": 1.0},
    "half the columns": {"colsample_bynode": 0.5},
    "rows drawn, 0.7": {"subsample": 0.7},
    "rows drawn, 0.5": {"subsample": 0.5},
    "lambda 5": {"reg_lambda": 5.0},
    "child weight 0.2": {"min_child_weight": 0.2},
    "64 bins": {"max_bins": 64},
    "half the rate, twice the rounds": {"n_estimators": 600, "rate_factor": 0.5},
    "leaf step 1": {"max_leaf_step": 1.0},
    "4 seeds": {"n_seeds": 4, "subsample": 0.7},
    "early stopping": {"n_estimators": 1000, "early_stopping_rounds": 50},
    "line search": {"step": "line_search"},
    "XGBoost's own settings": {
        "growth": "depth",
        "max_depth": 6,
        "max_leaves": 0,
        "colsample_bynode": 1.0,
        "learning_rate": 0.3,
        "n_estimators": 100,
    },
}
