"""
Ranking metrics in pictures
===========================

One list of 40 rows with 8 positives, and what each metric makes of it.
"""

import matplotlib.pyplot as plt
import numpy as np

from toprank import metrics

rng = np.random.default_rng(7)
y = np.repeat([0, 1], [32, 8])
scores = np.round(rng.normal(size=40) + 1.6 * y, 2)
order = np.argsort(-scores)
ranked = y[order]


def strip(ax):
    """Draw the list from its top: a bar for each row, dark where it is positive."""
    ax.bar(
        np.arange(1, 41), 1, color=np.where(ranked, "#b2182b", "#d9d9d9"), width=0.9, edgecolor="w"
    )
    ax.set(yticks=[], xlim=(0.4, 40.6), xlabel="place in the list")


def figure(width=6.0, height=2.8):
    return plt.subplots(figsize=(width, height), layout="constrained")


# %%
# **Precision at k**: positives among the first k, over k. With k = the number of positives (the default)
# precision, recall and F1 are the same.
fig, ax = figure(6, 1.6)
strip(ax)
ax.axvspan(0.4, 8.5, color="#2166ac", alpha=0.2)
ax.set_title(f"precision at 8 = {metrics.precision_at_k(y, scores):.3f}")

# %%
# **Pos@Top**: the share of positives above every negative.
fig, ax = figure(6, 1.6)
strip(ax)
first_negative = int(np.argmin(ranked)) + 1
ax.axvline(first_negative - 0.5, color="#2166ac", linewidth=2)
ax.set_title(f"Pos@Top = {metrics.pos_at_top(y, scores):.3f}")

# %%
# **Average precision**: the mean, over the positives, of the precision of the list that ends with each. It
# is the area under the steps, not under lines drawn between the points.
fig, ax = figure()
k = np.arange(1, 41)
recall, precision = np.cumsum(ranked) / 8, np.cumsum(ranked) / k
hit = ranked == 1
ax.bar(recall[hit] - 1 / 16, precision[hit], width=1 / 8, alpha=0.3, edgecolor="#2166ac")
ax.plot(recall, precision, "k.", markersize=3)
ax.set(xlabel="recall", ylabel="precision", ylim=(0, 1.05))
ax.set_title(f"average precision = {metrics.average_precision(y, scores):.3f}")

# %%
# **Recall-precision area**: between two thresholds the attainable points lie on a curve, not on a line or
# a step (Davis & Goadrich 2006). `recall_precision_area` is the exact area below it.
fig, ax = figure()
x, curve = metrics.ranking_curve("recall_precision", y, scores)
ax.fill_between(x, curve, alpha=0.3)
ax.plot(x, curve)
ax.set(xlabel="recall", ylabel="precision", ylim=(0, 1.05))
ax.set_title(f"recall-precision area = {metrics.recall_precision_area(y, scores):.3f}")

# %%
# **AUC**: the share of pairs of a positive and a negative that stand in order, a tie counting one half;
# the area under the ROC curve. **Partial AUC** is the part of it over a range of false positive rates,
# over the width of the range.
fig, axes = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
fpr, tpr = metrics.ranking_curve("roc", y, scores)
axes[0].fill_between(fpr, tpr, alpha=0.3)
axes[0].set_title(f"AUC = {metrics.roc_auc(y, scores):.3f}")
inside = np.linspace(0, 0.25, 200)
axes[1].fill_between(inside, np.interp(inside, fpr, tpr), alpha=0.3, color="#b2182b")
axes[1].set_title(f"partial AUC(0, .25) = {metrics.partial_auc(y, scores, fpr=(0, 0.25)):.3f}")
for ax in axes:
    ax.plot(fpr, tpr, "k")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")

# %%
# **Two-way partial AUC**: only the corner of few false positives *and* many true ones.
fig, ax = figure(3.6, 3)
grid = np.linspace(0, 0.5, 300)
height = np.interp(grid, fpr, tpr)
ax.fill_between(grid, 0.5, np.maximum(height, 0.5), alpha=0.3, color="#b2182b")
ax.plot(fpr, tpr, "k")
ax.set(xlabel="false positive rate", ylabel="true positive rate")
value = metrics.two_way_partial_auc(y, scores, fpr=(0, 0.5), min_tpr=0.5)
ax.set_title(f"two-way pAUC = {value:.3f}")

# %%
# **Local AUC**: the control line marks the best u of all rows; the metric is the area left of it plus the
# rectangle up to the right border.
fig, ax = figure(3.6, 3)
u, p = 0.3, y.mean()
grid = np.linspace(0, 1, 2000)
meet = grid[np.argmin(np.abs(p * np.interp(grid, fpr, tpr) + (1 - p) * grid - u))]
height = float(np.interp(meet, fpr, tpr))
left = grid[grid <= meet]
ax.fill_between(left, np.interp(left, fpr, tpr), alpha=0.3)
ax.fill_between([meet, 1], [height, height], alpha=0.3, color="C0")
ax.plot(fpr, tpr, "k")
ax.plot([0, u / (1 - p)], [u / p, 0], "--", color="#b2182b")
ax.set(xlabel="false positive rate", ylabel="true positive rate", ylim=(0, 1.02))
ax.set_title(f"local AUC at 30% = {metrics.local_auc(y, scores, top=u):.3f}")

# %%
# **NDCG**: for graded relevance. Each row adds its gain, 2 to the grade less 1, divided by a discount that
# grows with its place; the sum is divided by that of the perfect order.
fig, ax = figure(6, 2.4)
grades = np.array([3, 0, 2, 0, 1, 0, 0, 2, 0, 0])
places = np.arange(1, 11)
gains = (2.0**grades - 1) / np.log2(1 + places)
ax.bar(places, gains)
ax.plot(places, 7 / np.log2(1 + places), "k--", linewidth=0.8, label="a grade of 3 here would add")
ax.legend()
ax.set(xlabel="place", ylabel="discounted gain")
ax.set_title(
    f"NDCG = {metrics.ndcg(grades, -places):.3f}, NDCG@3 = {metrics.ndcg(grades, -places, k=3):.3f}"
)

# %%
# **Intervals**: forty rows say little. Every metric has one by stratified bootstrap, AUC also DeLong's.
for name in ("average_precision", "roc_auc", "precision_at_k"):
    print(f"{name:>18}: {metrics.interval(name, y, scores)}")
