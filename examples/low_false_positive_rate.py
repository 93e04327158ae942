"""
Few false alarms: the partial AUC
=================================

If one negative in twenty may be flagged, what a model does to the other nineteen does not matter.
"""

import matplotlib.pyplot as plt
import numpy as np

from toprank import LogisticRanker, PartialAUCRanker, metrics

rng = np.random.default_rng(0)


def draw(n):
    """Two kinds of negatives: most lie far off in x1, a few hard ones are told by x2 alone."""
    y = (rng.random(n) < 0.1).astype(int)
    hard = (y == 0) & (rng.random(n) < 0.1)
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.where(y == 1, 1.5, np.where(hard, 3.5, -1.5))
    X[:, 1] += np.where(y == 1, 1.5, np.where(hard, -1.0, 0.8))
    return X, y


(X, y), (X_new, y_new) = draw(4000), draw(20_000)
FPR = (0.0, 0.05)
models = {
    "logistic": LogisticRanker(),
    "whole AUC": PartialAUCRanker(fpr=(0, 1), random_state=0),
    "AUC up to .05": PartialAUCRanker(fpr=FPR, random_state=0),
    "the same, on tree paths": PartialAUCRanker(fpr=FPR, embedding="tree_path", random_state=0),
}
fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
for name, model in models.items():
    scores = model.fit(X, y).decision_function(X_new)
    metrics.RankingCurveDisplay.from_predictions(y_new, scores, name=name, ax=ax)
    partial, whole = metrics.partial_auc(y_new, scores, fpr=FPR), metrics.roc_auc(y_new, scores)
    print(f"{name:>24}: partial AUC {partial:.3f}, AUC {whole:.3f}")
ax.axvspan(*FPR, color="#b2182b", alpha=0.15)
ax.set(xlim=(0, 0.3))
