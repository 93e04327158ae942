"""One list of objectives that drives the tests: every registered one, with its naive twin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import naive_pairs as naive
import numpy as np

from toprank import objectives
from toprank.objectives import Objective


@dataclass(frozen=True)
class Smooth:
    """An objective whose loss is written out in `naive_pairs`."""

    objective: Objective
    loss: Callable
    average: bool = True

    def __str__(self) -> str:
        return repr(self.objective)


@dataclass(frozen=True)
class Lambda:
    """A lambda objective and the metric of ranked labels whose swaps weight its pairs."""

    objective: Objective
    metric: Callable

    def __str__(self) -> str:
        return repr(self.objective)


SMOOTH = [
    Smooth(objectives.get("logistic"), naive.logistic, average=False),
    Smooth(objectives.get("ap_exp"), naive.ap_exp),
    Smooth(objectives.get("ap_exp", form="log"), naive.ap_exp_log),
    Smooth(objectives.get("ap_softmax"), naive.ap_softmax),
    Smooth(objectives.get("ap_sigmoid"), naive.ap_sigmoid),
    Smooth(
        objectives.get("ap_sigmoid", alpha=2.5, self_term=0.5),
        partial(naive.ap_sigmoid, alpha=2.5, self_term=0.5),
    ),
    Smooth(objectives.get("ndcg_sigmoid"), naive.ndcg_sigmoid),
    Smooth(objectives.get("ndcg_sigmoid", alpha=0.7), partial(naive.ndcg_sigmoid, alpha=0.7)),
    Smooth(objectives.get("pairwise_logistic"), partial(naive.pairwise, phi=naive.softplus)),
    Smooth(objectives.get("pairwise_exp"), partial(naive.pnorm_push, p=1.0)),
    Smooth(objectives.get("pnorm_push"), partial(naive.pnorm_push, p=4.0)),
    Smooth(objectives.get("pnorm_push", p=2.5), partial(naive.pnorm_push, p=2.5)),
    Smooth(objectives.get("pauc"), partial(naive.pauc, a=0.0, b=0.1, phi=naive.hinge)),
    Smooth(
        objectives.get("pauc", a=0.2, b=0.75), partial(naive.pauc, a=0.2, b=0.75, phi=naive.hinge)
    ),
    Smooth(
        objectives.get("pauc", b=0.4, surrogate="sigmoid"),
        partial(naive.pauc, a=0.0, b=0.4, phi=naive.sigmoid),
    ),
    Smooth(
        objectives.get("pauc", a=0.1, b=1.0, surrogate="logistic"),
        partial(naive.pauc, a=0.1, b=1.0, phi=naive.softplus),
    ),
]

LAMBDA = [
    Lambda(objectives.get("lambda_auc"), naive.auc),
    Lambda(objectives.get("lambda_map"), naive.average_precision),
    Lambda(objectives.get("lambda_ndcg"), naive.ndcg),
    Lambda(objectives.get("lambda_ndcg", k=3), partial(naive.ndcg, k=3)),
    Lambda(objectives.get("lambda_mrr"), naive.reciprocal_rank),
    Lambda(objectives.get("lambda_precision"), naive.precision_at),
    Lambda(objectives.get("lambda_precision", k=4), partial(naive.precision_at, k=4)),
    Lambda(objectives.get("lambda_mauc"), naive.mauc_ordered),
    Lambda(
        objectives.get("lambda_mauc", fpr=(0.1, 0.45)),
        partial(naive.mauc_ordered, area=partial(naive.partial_auc, a=0.1, b=0.45)),
    ),
    Lambda(objectives.get("lambda_mauc", kind="one_vs_rest"), naive.mauc_one_vs_rest),
]

ALL = SMOOTH + LAMBDA
PAIRS = [c for c in ALL if not c.objective.pointwise]


def make(rng, n, objective, *, ties=False, weights=False, queries=1):
    """Labels, scores, and the optional arguments, for one objective."""
    grades = 4 if objective.graded else 2
    y = np.where(rng.random(n) < 0.5, 0, rng.integers(0, grades, n)).astype(float)
    y[: min(2, n)] = [0, 1][: min(2, n)]
    scores = rng.normal(size=n) + 0.3 * y
    if ties:
        scores = np.round(scores)
    extra = {}
    if weights:
        extra["sample_weight"] = rng.integers(0, 4, n).astype(float)
        extra["sample_weight"][:2] = 1.0
    if queries > 1:
        extra["qid"] = rng.integers(0, queries, n)
    return y, scores, extra
