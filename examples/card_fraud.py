"""
Rank tomorrow's payments
========================

Train on early days, look at the top of the list of the late ones: how many of the first fifty checks
hit?
"""

import matplotlib.pyplot as plt

from toprank import GradientBoostingRanker, LogisticRanker, datasets, metrics

BUDGET = 50
data = datasets.make_card_fraud(20_000, fraud_rate=0.01, random_state=0)
early = data.extra["day"].to_numpy() < 45
X, y = data.X[early], data.y[early]
X_new, y_new = data.X[~early], data.y[~early]
print(f"{len(y):,} payments to learn from, {len(y_new):,} to rank, {y_new.sum()} of them fraud")

# %%
# Text columns and missing cells go to the boosted trees as they are; a linear model needs numbers.
boosted = GradientBoostingRanker(n_estimators=100, n_jobs=1, random_state=0).fit(X, y)
numbers = X.select_dtypes("number").columns
linear = LogisticRanker().fit(X[numbers].fillna(0), y)
scores = {
    "boosted": boosted.decision_function(X_new),
    "linear": linear.decision_function(X_new[numbers].fillna(0)),
}
for name, values in scores.items():
    hits = metrics.interval("precision_at_k", y_new, values, k=BUDGET)
    print(f"{name:>8}: precision of the first {BUDGET} {hits}")
    print(f"{'':>8}  average precision {metrics.interval('average_precision', y_new, values)}")

# %%
# Is the difference more than chance? The two are measured on the same rows, so compare them pair by pair.
print(metrics.compare("average_precision", y_new, scores["boosted"], scores["linear"]))

# %%
# The precision of a list against its length: what a team that checks so many rows will find.
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
for name, values in scores.items():
    metrics.RankingCurveDisplay.from_predictions(
        y_new, values, kind="list_precision", name=name, ax=ax
    )
ax.set(xlim=(0, 300), title="precision of the list")
ax.axvline(BUDGET, color="grey", linewidth=0.8)

# %%
# Why does the first payment stand there? The contributions of the columns add up to its score.
first = scores["boosted"].argmax()
why = boosted.explain(X_new.iloc[[first]]).iloc[0].drop("(base)")
for column, added in why.sort_values(key=abs, ascending=False).head(3).items():
    print(f"{column:>20} = {X_new.iloc[first][column]!s:<10} adds {added:+.2f}")
