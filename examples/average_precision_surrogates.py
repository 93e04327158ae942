"""
Why average precision needs its own loss
========================================

Table 1 and figures 1 to 3 of Frery et al. (2017), drawn with the objectives of the library.
"""

import matplotlib.pyplot as plt
import numpy as np

from toprank import datasets, metrics, objectives

# %%
# Two rankings of ten rows with two positives: AUC prefers the first, average precision the second (figure
# 1).
fig, axes = plt.subplots(1, 2, figsize=(5, 2.6), layout="constrained")
for ax, ranks in zip(axes, ((4, 5), (2, 8)), strict=True):
    y = np.isin(np.arange(1, 11), ranks).astype(int)
    scores = -np.arange(10.0)
    ax.barh(np.arange(1, 11), 1, color=np.where(y, "#b2182b", "#d9d9d9"), edgecolor="w")
    ax.invert_yaxis()
    ax.set(xticks=[], ylabel="place")
    auc, ap = metrics.roc_auc(y, scores), metrics.average_precision(y, scores)
    ax.set_title(f"AUC {auc:.2f}, AP {ap:.2f}")

# %%
# Where an objective pulls (figure 2)
# -----------------------------------
# The push on each positive of a list, by its place. Losses of pairs pull hardest at the positives at the
# bottom; objectives of the top pull at those that are high already or can become so.
rng = np.random.default_rng(0)
y = np.zeros(60, int)
y[[3, 9, 20, 35, 55]] = 1
scores = np.linspace(3, -3, 60)
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
names = ("pairwise_logistic", "lambda_auc", "lambda_map", "ap_sigmoid", "ap_exp")
for offset, name in enumerate(names):
    gradient, _ = objectives.get(name).gradient_hessian(y, scores)
    push = -gradient[y == 1]
    ax.bar(np.arange(5) + 0.16 * (offset - 2), push / push.sum(), width=0.16, label=name)
ax.set_xticks(range(5), [f"place {k + 1}" for k in np.flatnonzero(y)])
ax.set(ylabel="share of the push")
ax.legend(fontsize=8)

# %%
# The surfaces of the toy (table 1, figure 3)
# -------------------------------------------
# Fourteen points on a line, positives at -3, -2 and 6, and the model f(x) = theta0 + theta1 x. Ranked
# upwards average precision is .324 and AUC .485, downwards .294 and .515. Both surrogates of average
# precision have their minimum where theta1 > 0, a loss of pairs where theta1 < 0, and theta0 makes no
# difference to any of them: only differences of scores count. As theta1 grows the exponentials rise again,
# the sigmoids go on falling, as published.
X, toy = datasets.toy14()
slopes = np.linspace(-1.5, 1.5, 301)
fig, axes = plt.subplots(1, 3, figsize=(8, 2.6), layout="constrained")
for ax, name in zip(axes, ("ap_exp", "ap_sigmoid", "pairwise_logistic"), strict=True):
    losses = [objectives.get(name).loss(toy, slope * X.ravel()) for slope in slopes]
    lowest = slopes[int(np.argmin(losses))]
    ax.plot(slopes, losses)
    ax.axvline(lowest, color="#b2182b", linewidth=0.8)
    ax.set(title=f"{name}: lowest at {lowest:.2f}", xlabel="theta1")
    print(f"{name:>18}: lowest loss {min(losses):.4f} at theta1 = {lowest:.2f}")
axes[0].set_ylabel("loss")

# %%
# The same in both parameters, as the paper draws them. The logistic loss, which looks at one row at a time,
# is the only one to which theta0 matters; like the loss of pairs it prefers theta1 < 0.
slopes, offsets = np.linspace(-1.5, 1.5, 301), np.linspace(-4, 2, 21)
names = ("ap_exp", "ap_sigmoid", "pairwise_logistic", "logistic")
fig, axes = plt.subplots(1, 4, figsize=(10, 2.6), sharey=True, layout="constrained")
for ax, name in zip(axes, names, strict=True):
    loss = objectives.get(name).loss
    surface = np.array([[loss(toy, t0 + t1 * X.ravel()) for t1 in slopes] for t0 in offsets])
    ax.contourf(slopes, offsets, surface, levels=20, cmap="viridis")
    row, column = np.unravel_index(surface.argmin(), surface.shape)
    ax.axvline(0, color="w", linewidth=0.6)
    if name == "logistic":
        ax.plot(slopes[column], offsets[row], "o", color="#b2182b")
    else:  # the same at every theta0
        ax.axvline(slopes[column], color="#b2182b")
    ax.set(title=f"{name}: {slopes[column]:.2f}", xlabel="theta1")
axes[0].set_ylabel("theta0")
