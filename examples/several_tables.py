"""
Several tables
==============

What decides may lie in rows that an example only points to. Clauses read such tables directly; features
carry them to any other model.
"""

from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from toprank import (
    GradientBoostingRanker,
    RelationalData,
    RelationalFeatures,
    RelationalPRankBoost,
    datasets,
    metrics,
)

found = datasets.make_relational(4000, skew=30, random_state=0)
for name, table in list(found.tables.items())[-3:]:
    print(name, list(table.columns), len(table), "facts")
print("hidden rule:", found.rule)

# %%
data = RelationalData(found.tables, found.examples, target="suspicious")
train, test = train_test_split(range(len(found.y)), test_size=0.4, stratify=found.y, random_state=0)
y = found.y
clauses = RelationalPRankBoost(10, n_jobs=1, random_state=0).fit(data[train], y[train])
print("first clauses learnt:")
for rule in clauses.rules_["rule"][:3]:
    print(" ", rule)

# %%
# The same facts as columns (counts, minima, means ...) before boosted trees.
columns = make_pipeline(
    RelationalFeatures(n_jobs=1),
    GradientBoostingRanker(n_estimators=60, n_jobs=1, random_state=0),
).fit(data[train], y[train])
for name, model in {"clauses": clauses, "features and trees": columns}.items():
    scores = model.decision_function(data[test])
    print(f"{name:>20}: average precision {metrics.average_precision(y[test], scores):.3f}")
