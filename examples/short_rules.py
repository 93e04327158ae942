"""
One page of rules
=================

A scorecard that fits on a page, clauses that print as people write them, and both as SQL.
"""

from toprank import GradientBoostingRanker, PRankBoost, RuleScorecard, datasets, metrics

data = datasets.make_card_fraud(12_000, fraud_rate=0.02, random_state=0)
early = data.extra["day"].to_numpy() < 45
X, y, X_new, y_new = data.X[early], data.y[early], data.X[~early], data.y[~early]

card = RuleScorecard(n_rules=8, max_length=2, n_jobs=1, random_state=0).fit(X, y)
print(card.to_text())

# %%
# As a picture: points of each rule.
card.plot()

# %%
# What do eight rules give up against boosted trees?
boosted = GradientBoostingRanker(n_estimators=100, n_jobs=1, random_state=0).fit(X, y)
clauses = PRankBoost(30, max_length=3, n_jobs=1, random_state=0).fit(X, y)
for name, model in {"8 rules": card, "30 clauses": clauses, "boosted trees": boosted}.items():
    scores = model.decision_function(X_new)
    print(f"{name:>14}: average precision {metrics.interval('average_precision', y_new, scores)}")

# %%
# The scorecard as SQL, for a database that knows nothing of Python.
print(card.to_sql(dialect="postgres"))
