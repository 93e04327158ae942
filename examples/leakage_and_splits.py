"""
Leakage, and splits by time and group
=====================================

The same model on the same rows, measured by three kinds of splits. Only one of them resembles the day on
which the model will be used.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from toprank import GradientBoostingRanker, datasets, metrics
from toprank.selection import find_leaks, make_splits

data = datasets.make_card_fraud(8_000, fraud_rate=0.03, n_cards=300, random_state=3)
X, y = data.X, data.y
card, day = data.extra["card_id"].to_numpy(), data.extra["day"].to_numpy()
X = X.assign(card=pd.Categorical(card.astype(str)))  # a column by which cards can be told

kinds = {
    "random rows": make_splits(y, n_splits=4),
    "whole cards": make_splits(y, groups=card, n_splits=4),
    "later days": make_splits(y, time=day, n_splits=4),
}
values = {}
for name, splits in kinds.items():
    found = []
    for split in splits:
        model = GradientBoostingRanker(
            "lambda_map", n_estimators=40, n_seeds=1, n_jobs=1, random_state=0
        )
        model.fit(X.iloc[split.train], y[split.train])
        scores = model.decision_function(X.iloc[split.test])
        found.append(metrics.average_precision(y[split.test], scores))
    values[name] = found
    print(f"{name:>12}: average precision {np.mean(found):.3f}, by split {np.round(found, 2)}")

fig, ax = plt.subplots(figsize=(5, 2.6), layout="constrained")
for place, found in enumerate(values.values()):
    ax.plot(found, [place] * len(found), "o", alpha=0.5)
    ax.plot(np.mean(found), place, "k|", markersize=18)
ax.set_yticks(range(3), list(values))
ax.set(xlabel="average precision")

# %%
# A stolen card is used several times within hours. With random rows some of its payments are in training
# and others in test, and the model knows the card. On new cards, and on days to come, it does not.
#
# Columns from the future
# -----------------------
# A column that is filled in afterwards ("refund", "closed at") decides the label in the file and is empty
# on the day. The command line warns of it; so does :func:`toprank.selection.find_leaks`.
refund = np.where(y == 1, X["amount"], np.nan)
for warning in find_leaks(X.assign(refund=refund), y):
    print("warning:", warning)
