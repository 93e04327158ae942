"""How the contract tests build each estimator, and which of them draw rows or bins."""

from __future__ import annotations

from typing import Any

from toprank.registry import estimator

# Parameters that keep the checks quick; names not listed use their defaults.
SMALL: dict[str, dict[str, Any]] = {
    "GradientBoostingRanker": {
        "n_estimators": 20,
        "learning_rate": 0.3,
        "min_child_weight": 0.1,
        "n_jobs": 1,
        "n_seeds": 1,
        "random_trees": 0,  # these and drawn rows make a weight differ from copies
        "subsample": 1.0,
    },
    "AutoRanker": {
        "time_limit": None,
        "portfolio": ("linear", "rankboost"),
        "n_folds": 2,
        "n_repeats": 1,
    },
    "RankingForest": {"n_estimators": 15},
    "RuleScorecard": {"n_rules": 8, "n_folds": 3},
    "TreePathEmbedding": {"n_folds": 2},
    "TunedLogisticBooster": {
        "n_candidates": 2,
        "n_estimators": 20,
        "n_jobs": 1,
    },
}

# Estimators for which a weight is not exactly a copy, with the reason: scikit-learn's two checks of
# that equivalence are expected to fail and quality over seeds is tested instead.
DRAWS: dict[str, str] = {
    "AutoRanker": "its folds draw rows",
    "RankingForest": "each tree draws its rows",
    "TunedLogisticBooster": "its inner split draws rows",
}


# A parameter of each estimator and two values of it that learn differently, for the grid search.
GRIDS: dict[str, tuple[str, list[Any]]] = {
    "AutoRanker": ("portfolio", [("linear",), ("rankboost",)]),
    "GradientBoostingRanker": ("n_estimators", [1, 20]),
    "GreedyPAUC": ("fpr", [(0.0, 0.02), (0.0, 0.5)]),
    "KernelLogisticRanker": ("gamma", [1e-6, 0.5]),
    "LogisticRanker": ("C", [1e-6, 1.0]),
    "PAUCBoost": ("n_estimators", [1, 30]),
    "PNormPush": ("n_estimators", [1, 30]),
    "PRankBoost": ("n_estimators", [1, 30]),
    "PartialAUCRanker": ("penalty", [1e-3, 1e3]),
    "PartialAUCSVM": ("C", [1e-6, 1.0]),
    "RankBoost": ("n_estimators", [1, 30]),
    "RankLS": ("kernel", ["linear", "rbf"]),
    "RankSVM": ("kernel", ["linear", "rbf"]),
    "RankingForest": ("n_estimators", [1, 15]),
    "RuleScorecard": ("n_rules", [1, 8]),
    "TreeRank": ("max_depth", [1, 6]),
    "TunedLogisticBooster": ("n_estimators", [1, 20]),
}


def small(name: str, **parameters: Any) -> Any:
    """The estimator `name` with quick settings."""
    cls = estimator(name)
    parameters = {**SMALL.get(name, {}), **parameters}
    if "random_state" in cls().get_params():
        parameters.setdefault("random_state", 0)
    return cls(**parameters)
