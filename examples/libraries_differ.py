"""
Where libraries differ
======================

The same list, other numbers: average precision by steps, lines and curves, and what ties do.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score

from toprank import metrics

rng = np.random.default_rng(3)
y = (rng.random(300) < 0.05).astype(int)
scores = rng.normal(size=300) + 1.2 * y

# %%
# Three areas
# -----------
# scikit-learn's `average_precision_score` and `toprank.metrics.average_precision` add up steps.
# `auc(recall, precision)` draws straight lines between the points, which no threshold attains: lower than the
# steps here, far too high where many rows are tied (below). `recall_precision_area` follows the points that
# mixing two thresholds attains (Davis & Goadrich 2006).
precision, recall, _ = precision_recall_curve(y, scores)
values = {
    "toprank average_precision": metrics.average_precision(y, scores),
    "scikit-learn average_precision_score": average_precision_score(y, scores),
    "trapezoid, auc(recall, precision)": auc(recall, precision),
    "toprank recall_precision_area": metrics.recall_precision_area(y, scores),
}
for name, value in values.items():
    print(f"{name:>38}: {value:.4f}")

fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.step(recall, precision, where="post", label="steps")
ax.plot(recall, precision, linewidth=0.8, label="lines")
x, curve = metrics.ranking_curve("recall_precision", y, scores)
ax.plot(x, curve, "--", label="attainable curve")
ax.set(xlabel="recall", ylabel="precision", xlim=(0, 1))
ax.legend()

# %%
# Ties
# ----
# Scores of a shallow tree or of a scorecard take few values. If a metric sorts tied rows by their place in
# the file, the same model gets another value on a shuffled file. In toprank (as in scikit-learn) it does
# not depend on the order of rows: a tied pair counts one half in AUC, a group of ties shares the place of
# its end in average precision, and precision at k is its expectation over the orders.
few = np.round(scores)
shuffled = rng.permutation(300)


def naive_ap(y, scores):
    """Average precision of the order that argsort happens to give."""
    hits = y[np.argsort(-scores, kind="stable")]
    return (np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits == 1].mean()


best_first = np.argsort(-y, kind="stable")
print("argsort, as the file stands      ", round(naive_ap(y, few), 4))
print("argsort, shuffled                ", round(naive_ap(y[shuffled], few[shuffled]), 4))
print("argsort, positives first in file ", round(naive_ap(y[best_first], few[best_first]), 4))
print("toprank, in any order            ", round(metrics.average_precision(y, few), 4))
print("expected precision at 20         ", round(metrics.precision_at_k(y, few, k=20), 4))
print("AUC, toprank and scikit-learn    ", metrics.roc_auc(y, few), roc_auc_score(y, few))

# %%
# Interpolation
# -------------
# With ties the points of the curve lie far apart, and what is drawn between them decides. A line from point
# to point is too high. The attainable curve bends; some programs follow it exactly (*continuous*, as
# `recall_precision_area` and `auc.integral` of R's PRROC), some at whole numbers of true positives with lines
# between (*discrete*, as Davis and Goadrich's program and `auc.davis.goadrich` of PRROC).


def discrete_area(y, scores):
    """Area under lines between whole numbers of true positives on the attainable curve."""
    thresholds = np.unique(scores)[::-1]
    true = np.array([0, *(y[scores >= t].sum() for t in thresholds)])
    false = np.array([0, *((1 - y)[scores >= t].sum() for t in thresholds)])
    area = 0.0
    for k in np.flatnonzero(np.diff(true)):
        hits = np.arange(true[k], true[k + 1] + 1)
        misses = np.interp(hits, true[k : k + 2], false[k : k + 2])
        precision = hits / np.maximum(hits + misses, 1e-9)
        if hits[0] == 0:  # constant down to recall 0
            precision[0] = precision[1]
        area += np.trapezoid(precision, hits / y.sum())
    return area


precision, recall, _ = precision_recall_curve(y, few)
print(f"steps       {metrics.average_precision(y, few):.4f}")
print(f"lines       {auc(recall, precision):.4f}")
print(f"discrete    {discrete_area(y, few):.4f}")
print(f"continuous  {metrics.recall_precision_area(y, few):.4f}")

# %%
# Queries without a positive
# --------------------------
# In LETOR's own evaluation a query without a relevant row counts 0 (XGBoost counts some as 1); here it is
# left out of the mean, and how many were is told.
grades, qid = [1, 0, 0, 0, 0, 2], [1, 1, 2, 2, 3, 3]
print(metrics.ndcg(grades, [0.9, 0.1, 0.5, 0.4, 0.8, 0.2], qid=qid, return_skipped=True))
