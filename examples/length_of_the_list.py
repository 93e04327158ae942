"""
How long a list?
================

A budget, a false positive rate, a precision or costs: four ways to end a list, with what can be promised
for new rows.
"""

import matplotlib.pyplot as plt

from toprank import CalibratedRanker, GradientBoostingRanker, datasets, metrics, shortlist

data = datasets.make_card_fraud(12_000, fraud_rate=0.03, random_state=0)
early = data.extra["day"].to_numpy() < 40
X, y, X_new, y_new = data.X[early], data.y[early], data.X[~early], data.y[~early]

ranker = GradientBoostingRanker("lambda_map", n_estimators=60, n_seeds=1, n_jobs=1, random_state=0)
model = CalibratedRanker(ranker, cv=3).fit(X, y)
scores = model.decision_function(X_new)

# %%
# Promises
# --------
# Cuts come from scores of rows that the model was not trained on. What cannot be promised is said, not
# guessed.
for wish in ({"budget": 100}, {"fpr": 0.01}, {"precision": 0.6}, {"cost": (5, 100)}):
    cut = model.cut(**wish)
    chosen = scores > cut.threshold
    right = y_new[chosen].mean() if chosen.any() else float("nan")
    print(f"{wish}: {chosen.sum()} rows, {right:.0%} right. {cut.guarantee}")

# %%
# Probabilities
# -------------
# From the same scores come probabilities. Do they hold on the later days?
probability = model.predict_proba(X_new)[:, 1]
print(f"expected frauds {probability.sum():.0f}, found {y_new.sum()}")

# %%
# The list itself
# ---------------
table = shortlist(model, X_new, budget=5, n_reasons=2)
for row in table.itertuples():
    print(f"{row.rank}. probability {row.probability:.2f}: {row.reasons}")

# %%
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
metrics.RankingCurveDisplay.from_predictions(y_new, scores, kind="list_precision", ax=ax)
ax.set(xlim=(0, 400))
