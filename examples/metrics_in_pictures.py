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
# **Hit rate**: the precision of the first x% of all rows. **Mean precision**: its mean over all lengths of the
# list, which some papers print as average precision. Even a perfect order does not give 1.
fig, ax = figure()
ax.plot(k, precision, "k.-", markersize=4)
ax.axvspan(0, 8, color="#2166ac", alpha=0.2)
mean_precision = metrics.mean_precision(y, scores)
ax.axhline(mean_precision, color="#b2182b", linestyle="--")
ax.set(xlabel="length of the list", ylabel="precision", xlim=(0, 40.5), ylim=(0, 1.05))
ax.set_title(
    f"hit rate at 20% = {metrics.hit_rate(y, scores, top=0.2):.3f}, mean precision = {mean_precision:.3f}"
)

# %%
# **One point of the curve**: the most recall at a precision of .9, the best precision at a recall of .8, and
# how long the list for that recall is.
fig, ax = figure()
best = metrics.recall_at_precision(y, scores, precision=0.9)
price = metrics.precision_at_recall(y, scores, recall=0.8)
ax.plot(recall, precision, "k.-", markersize=4)
ax.plot([0, best, best], [0.9, 0.9, 0], "--", color="#2166ac")
ax.plot([0.8, 0.8, 0], [0, price, price], "--", color="#b2182b")
ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.05))
length = metrics.list_length_for_recall(y, scores, recall=0.8)
ax.set_title(f"recall {best:.3f}, precision {price:.3f}, {length:.0f} rows")

# %%
# **A list for each day**: the mean over the days of the precision of the first k rows of each. Found cards
# leave the lists of later days if `group` names them.
fig, ax = figure(6, 2.2)
day = np.tile(np.arange(4), 10)
for today in range(4):
    rows = np.flatnonzero(day == today)
    rows = rows[np.argsort(-scores[rows])]
    colours = np.where(y[rows], "#b2182b", "#d9d9d9")
    ax.bar(np.arange(1, 11), 0.8, bottom=3 - today, color=colours, width=0.9, edgecolor="w")
ax.axvline(3.5, color="#2166ac", linewidth=2)
ax.set(
    xlabel="place in the list of the day",
    yticks=np.arange(4) + 0.4,
    yticklabels=list("4321"),
    ylabel="day",
)
ax.set_title(
    f"precision of the first 3 of each day = {metrics.daily_precision_at_k(y, scores, day, 3):.3f}"
)

# %%
# **Queries**: a list for each, means over those that have a positive. The reciprocal rank looks at the first
# positive only, average precision at all of them.
fig, ax = figure(6, 1.9)
queries = [[0, 1, 0, 0, 1], [1, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
for number, query in enumerate(queries):
    colours = np.where(query, "#b2182b", "#d9d9d9")
    ax.bar(np.arange(1, 6), 0.8, bottom=2 - number, color=colours, width=0.9, edgecolor="w")
    ax.text(5.7, 2.3 - number, f"1/{query.index(1) + 1}")
labels, qid = np.ravel(queries), np.repeat([0, 1, 2], 5)
places = -np.tile(np.arange(5.0), 3)
ax.set(
    xlabel="place",
    yticks=np.arange(3) + 0.4,
    yticklabels=list("321"),
    ylabel="query",
    xlim=(0.4, 6.4),
)
ax.set_title(
    f"MRR = {metrics.mean_reciprocal_rank(labels, places, qid=qid):.3f}, "
    f"MAP = {metrics.mean_average_precision(labels, places, qid=qid):.3f}"
)

# %%
# **Several grades**: the AUC of each grade and above against those below, weighed by the share of the grade.
# `multiclass_precision` gives each grade as many places as it has rows, and counts its own rows there.
fig, ax = figure(6, 2.6)
grades = rng.choice(4, size=200, p=[0.6, 0.2, 0.15, 0.05])
guesses = rng.normal(size=200) + 0.7 * grades
each = metrics.per_class_auc(grades, guesses)
ax.bar([f"{grade:.0f} and above" for grade in each], each.values(), color="#2166ac", alpha=0.5)
ax.set(ylabel="AUC", ylim=(0.5, 1))
ax.set_title(
    f"multi-class AUC = {metrics.multiclass_auc(grades, guesses):.3f}, "
    f"precision (micro) = {metrics.multiclass_precision(grades, guesses):.3f}"
)

# %%
# **Preferences**: pairs of rows of which one is preferred; the share scored in that order.
fig, ax = figure(3.6, 3)
first, second = rng.normal(size=(2, 40))
preferred = np.where(first - second + rng.normal(size=40) > 0, 1, -1)
for side, colour in ((1, "#b2182b"), (-1, "#2166ac")):
    ax.plot(first[preferred == side], second[preferred == side], ".", color=colour)
ax.axline((0, 0), slope=1, color="k", linewidth=0.8)
ax.set(xlabel="score of the first", ylabel="score of the second")
value = metrics.preference_auc(preferred, np.column_stack([first, second]))
ax.set_title(f"preference AUC = {value:.3f}")

# %%
# **Instability**: the orders that models from resampled rows give the same rows; 0 if all agree, 1 if they are
# reversed.
fig, axes = plt.subplots(1, 2, figsize=(7, 2.6), sharey=True, layout="constrained")
for ax, noise in zip(axes, (0.2, 1.5), strict=True):
    models = np.sort(rng.normal(size=12)) + noise * rng.normal(size=(4, 12))
    ranks = 12 - np.argsort(np.argsort(models))
    ax.plot(np.arange(1, 5), ranks, "-o", markersize=3, color="#2166ac", alpha=0.5)
    ax.set(
        xticks=range(1, 5), xlabel="model", title=f"instability = {metrics.instability(models):.3f}"
    )
axes[0].set_ylabel("place of each row")

# %%
# **Intervals**: forty rows say little. Every metric has one by stratified bootstrap, AUC also DeLong's.
for name in ("average_precision", "roc_auc", "precision_at_k"):
    print(f"{name:>18}: {metrics.interval(name, y, scores)}")
