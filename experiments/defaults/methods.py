"""What is compared: candidates for the defaults of `GradientBoostingRanker`, its twin, and the rivals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toprank import GradientBoostingRanker, TunedLogisticBooster
from toprank.selection.peers import PEERS, PeerRanker

Maker = Callable[[int], Any]

DEFAULT = "default"
TWIN = "logistic twin"  # the same trees with the logistic loss alone
YARDSTICK = "tuned logistic booster"


def _ranker(objective: str = "auto", **settings: Any) -> Maker:
    return lambda seed: GradientBoostingRanker(objective, n_jobs=1, random_state=seed, **settings)


# Settings among which the defaults are chosen, on one half of the sets. One thing is changed at a time.
CANDIDATES: dict[str, Maker] = {
    DEFAULT: _ranker(),
    "300 rounds, rate by rows": _ranker(n_estimators=300),
    "no forest": _ranker(random_trees=0),
    "no linear model": _ranker(linear_share=0.0),
    "linear model, twice the weight": _ranker(linear_share=0.5),
    "lambda_map alone": _ranker("lambda_map"),
    "ap_sigmoid alone": _ranker("ap_sigmoid"),
    "ap_softmax alone": _ranker("ap_softmax"),
    TWIN: _ranker("logistic"),
    "one seed": _ranker(n_seeds=1),
    "all rows": _ranker(subsample=1.0),
    "more leaves": _ranker(max_leaves=31),
    "least child weight 1, penalty 1": _ranker(min_child_weight=1.0, reg_lambda=1.0),
    "least child weight 0.1, penalty 0.1": _ranker(min_child_weight=0.1, reg_lambda=0.1),
    "three tenths of the columns": _ranker(colsample_bynode=0.3),
    "half the columns": _ranker(colsample_bynode=0.5),
}
# Columns of many categories: what inner validation chooses between in each fit of the default.
CATEGORIES: dict[str, Maker] = {
    DEFAULT: _ranker(),
    "rates or counts": _ranker(max_categories=30),
    "any subset of categories": _ranker(max_categories=10**9),
}
RIVALS: dict[str, Maker] = {
    **{
        kind: (lambda seed, kind=kind: PeerRanker(kind, n_jobs=1, random_state=seed))
        for kind in PEERS
    },
    YARDSTICK: lambda seed: TunedLogisticBooster(n_jobs=1, random_state=seed),
}
METHODS = {**CANDIDATES, **CATEGORIES, **RIVALS}
