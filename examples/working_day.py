"""
A working day
=============

A model trained once fades; labels arrive late and only for what was checked. What a fixed team finds
each day, with and without retraining.
"""

import matplotlib.pyplot as plt
import numpy as np

from toprank import GradientBoostingRanker, datasets
from toprank.persistence import summarise
from toprank.shortlisting import drift

data = datasets.make_card_fraud(16_000, fraud_rate=0.03, random_state=5)
X, y, day = data.X, data.y, data.extra["day"].to_numpy().astype(int)
START, CHECKS, DELAY, EVERY = 24, 10, 3, 6  # days, rows a day, days until labels are known, days


def fit(known, labels):
    model = GradientBoostingRanker(
        "lambda_map", n_estimators=40, n_seeds=1, n_jobs=1, random_state=0
    )
    return model.fit(X[known], labels[known])


# %%
# Three ways to go on. *Once*: never retrained. *All labels*: every few days on every row that is old
# enough. *Checked only*: what nobody looked at is taken for genuine, as happens when labels come from the
# checks alone; a few checks at random (here 2 of 10) keep an eye on the rest.
def simulate(kind):
    labels = y.copy()
    if kind.startswith("checked"):
        labels[day >= START] = 0  # until someone looks
    rng = np.random.default_rng(0)
    model = fit(day < START - DELAY, labels)
    found = []
    for today in range(START, day.max() + 1):
        if kind != "once" and (today - START) % EVERY == 0:
            model = fit(day < today - DELAY, labels)
        rows = np.flatnonzero(day == today)
        by_score = rows[np.argsort(-model.decision_function(X.iloc[rows]))]
        at_random = 2 if kind.endswith("random") else 0
        checked = by_score[: CHECKS - at_random]
        if at_random:
            checked = np.append(checked, rng.choice(by_score[CHECKS:], at_random, replace=False))
        labels[checked] = y[checked]
        found.append(y[checked].sum())
    return np.array(found)


fig, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for kind in ("once", "all labels", "checked only", "checked and random"):
    found = simulate(kind)
    ax.plot(np.arange(START, day.max() + 1), found.cumsum(), label=kind)
    print(f"{kind:>18}: {found.sum()} frauds in {len(found)} days of {CHECKS} checks")
ax.set(xlabel="day", ylabel="frauds found so far")
ax.legend()

# %%
# Drift
# -----
# Before retraining: are today's rows still like those of training? ``toprank score`` asks this each time
# and warns where the difference is more than chance explains.
model = fit(day < START, y)
summary = summarise(model, X[day < START])
for first in (START, 50):
    rows = X[(day >= first) & (day < first + 8)]
    result = drift(summary, rows)
    print(f"days {first} to {first + 7}: drifted {result.drifted}")
