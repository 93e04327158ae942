"""
An objective of your own
========================

A new objective is one small class. This one is after TopPush (Li, Jin & Zhou 2014): every positive
should stand above the highest negative, which is Pos@Top as a loss. It takes all rows for one list; an
objective of the library would be the mean over queries, where `rows.qid` names them.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import check_grad
from scipy.special import expit, logsumexp

from toprank import GradientBoostingRanker, datasets, metrics
from toprank.objectives import Objective, ScoredList


@dataclass(frozen=True)
class TopPush(Objective):
    """Mean over positives of log(1 + exp(m - f_i)), m a smooth maximum of the negatives' scores."""

    sharpness: float = 1.0
    name: ClassVar[str] = "top_push"
    summary: ClassVar[str] = "positives above the highest negative"
    sorts: ClassVar[bool] = False

    def _parts(self, rows: ScoredList):
        positive = rows.y == 1
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        logits = self.sharpness * rows.scores[~positive] + np.log(weight[~positive])
        top = logsumexp(logits) / self.sharpness
        share = weight[positive] / weight[positive].sum()
        return positive, top, np.exp(logits - logsumexp(logits)), share

    def _loss(self, rows: ScoredList) -> float:
        positive, top, _, share = self._parts(rows)
        return float(share @ np.logaddexp(0, top - rows.scores[positive]))

    def _gradient_hessian(self, rows: ScoredList):
        positive, top, softmax, share = self._parts(rows)
        miss = expit(top - rows.scores[positive])
        gradient, hessian = np.empty(len(rows.y)), np.empty(len(rows.y))
        gradient[positive] = -share * miss
        gradient[~positive] = softmax * (share @ miss)
        curvature = miss * (1 - miss)
        hessian[positive] = share * curvature
        hessian[~positive] = softmax * (self.sharpness * (share @ miss) + share @ curvature)
        return gradient, hessian, None  # None: rows stand in their own order


# %%
# The gradient must be that of the loss: compare it with finite differences.
rng = np.random.default_rng(0)
y = (rng.random(50) < 0.2).astype(int)
objective = TopPush(sharpness=2.0)
error = check_grad(
    lambda f: objective.loss(y, f),
    lambda f: objective.gradient_hessian(y, f)[0],
    rng.normal(size=50),
)
print(f"largest difference to finite differences: {error:.1e}")

# %%
# Train with it. Gradients of ranking losses are of the size 1/n; the ranker rescales them, so that trees'
# usual settings mean what they always mean.
data = datasets.make_card_fraud(12_000, fraud_rate=0.02, random_state=1)
early = data.extra["day"].to_numpy() < 45
for candidate in (TopPush(), "ap_sigmoid", "logistic"):
    model = GradientBoostingRanker(candidate, n_estimators=60, n_seeds=1, n_jobs=1, random_state=0)
    model.fit(data.X[early], data.y[early])
    scores, late = model.decision_function(data.X[~early]), data.y[~early]
    print(
        f"{getattr(candidate, 'name', candidate):>12}: Pos@Top {metrics.pos_at_top(late, scores):.3f}, "
        f"average precision {metrics.average_precision(late, scores):.3f}"
    )

# %%
# It also gives itself to plain libraries: ``TopPush().for_xgboost()``, ``.for_lightgbm()``,
# ``.for_torch()``.
#
# To add it to the library, move the class to a file of ``src/toprank/objectives/`` and name it in
# ``OBJECTIVES`` in that folder's ``__init__.py``: that brings it into this manual and into ``toprank fit
# --model``. Write its loss out for one list without weights in ``tests/naive_pairs.py`` and put a line with
# both into ``tests/objectives/cases.py``: the tests then ask for finite differences, weights as copies, ties,
# extreme scores and queries. What is missing here for that are queries: the loss of several is the mean over
# those that hold both classes (see ``toprank/objectives/exponential.py``).
print(TopPush(), "will be found as", repr(TopPush.name))
