"""Surrogate losses of a ranking, as pure functions of labels and scores.

Every objective gives `loss(y, scores, *, sample_weight=None, qid=None)` and
`gradient_hessian(...)`: the exact gradient of that loss and a positive diagonal majorant of its
Hessian. `OBJECTIVES` lists them by name and `get` makes one.
"""

from __future__ import annotations

from typing import Any

from toprank.objectives.base import Objective, ScoredList, scale_for_trees
from toprank.objectives.exponential import (
    APExponential,
    APSoftmax,
    PairwiseExponential,
    PNormPush,
)
from toprank.objectives.lambdas import (
    LambdaAUC,
    LambdaMAP,
    LambdaMAUC,
    LambdaMRR,
    LambdaNDCG,
    LambdaPrecision,
)
from toprank.objectives.pairwise import Logistic, PairwiseLogistic, PartialAUC
from toprank.objectives.sigmoid import APSigmoid, NDCGSigmoid

__all__ = ["OBJECTIVES", "Objective", "ScoredList", "get", "scale_for_trees"]

OBJECTIVES: dict[str, type[Objective]] = {
    objective.name: objective
    for objective in (
        Logistic,
        APExponential,
        APSigmoid,
        APSoftmax,
        LambdaAUC,
        LambdaMAUC,
        LambdaMAP,
        LambdaNDCG,
        LambdaMRR,
        LambdaPrecision,
        NDCGSigmoid,
        PairwiseLogistic,
        PairwiseExponential,
        PNormPush,
        PartialAUC,
    )
}


def get(name: str | Objective, **parameters: Any) -> Objective:
    """Return the objective of that name with the given parameters (an objective is returned as is).

    Examples
    --------
    >>> get("ap_sigmoid", alpha=2.0)
    APSigmoid(alpha=2.0, self_term=1.0)
    """
    if isinstance(name, Objective):
        if parameters:
            raise TypeError("parameters go with the name of an objective, not with an objective")
        return name
    if name not in OBJECTIVES:
        raise ValueError(f"unknown objective {name!r}; the names are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name](**parameters)
