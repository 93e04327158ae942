"""
A ranking tree and a forest of them
===================================

A ranking tree cuts the plane into cells and orders the cells; each split is the one that adds most to
the AUC.
"""

import matplotlib.pyplot as plt
import numpy as np

from toprank import RankingForest, TreeRank, metrics

rng = np.random.default_rng(0)


def draw(n):
    """Negatives everywhere, positives on a ring."""
    X = rng.uniform(-2, 2, size=(n, 2))
    radius = np.hypot(*X.T)
    y = (rng.random(n) < 0.75 * np.exp(-8 * (radius - 1.1) ** 2)).astype(int)
    return X, y


(X, y), (X_new, y_new) = draw(1500), draw(3000)
models = {
    "TreeRank, depth 3": TreeRank(max_depth=3, leafrank_depth=4),
    "TreeRank, pruned": TreeRank(max_depth=8, leafrank_depth=4, prune=True, random_state=0),
    "RankingForest": RankingForest(50, n_jobs=1, random_state=0),
}
grid = np.stack(np.meshgrid(*[np.linspace(-2, 2, 120)] * 2), axis=-1)
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    scores = model.decision_function(grid.reshape(-1, 2))
    places = np.searchsorted(np.unique(scores), scores).reshape(120, 120)
    ax.pcolormesh(grid[..., 0], grid[..., 1], places, cmap="RdBu_r", rasterized=True)
    auc = metrics.roc_auc(y_new, model.decision_function(X_new))
    ax.set(title=f"{name}\nAUC {auc:.3f}", xticks=[], yticks=[])

# %%
# The order of the cells is a staircase under the ROC curve: a tree of depth 3 gives a curve of eight
# pieces.
fig, ax = plt.subplots(figsize=(4.4, 3.4), layout="constrained")
for name, model in models.items():
    metrics.RankingCurveDisplay.from_predictions(
        y_new, model.decision_function(X_new), name=name, ax=ax
    )
