"""Rank tomorrow's payments: train on early days, look at the top of the list of late ones.

Run it with `python examples/card_fraud.py`; it takes well under a minute.
"""

from __future__ import annotations

from toprank import GradientBoostingRanker, LogisticRanker, datasets, metrics

ROWS, BUDGET = 60_000, 50


def main() -> None:
    data = datasets.make_card_fraud(ROWS, fraud_rate=0.005, random_state=0)
    early = data.extra["day"].to_numpy() < 45
    X, y = data.X[early], data.y[early]
    X_new, y_new = data.X[~early], data.y[~early]

    boosted = GradientBoostingRanker(n_estimators=100, random_state=0).fit(X, y)
    numbers = X.select_dtypes("number").columns
    linear = LogisticRanker(max_iter=500, tol=1e-4).fit(X[numbers].fillna(0), y)
    scores = {
        "boosted on average precision": boosted.decision_function(X_new),
        "linear": linear.decision_function(X_new[numbers].fillna(0)),
    }
    print(f"{len(y_new):,} payments to rank, {int(y_new.sum())} of them fraud")
    for name, values in scores.items():
        hits = metrics.interval("precision_at_k", y_new, values, k=BUDGET)
        found = metrics.interval("average_precision", y_new, values)
        print(f"{name:>30}: {hits.value:.0%} of the first {BUDGET} are fraud ({hits})")
        print(f"{'':>30}  average precision {found}")

    first = scores["boosted on average precision"].argmax()
    why = boosted.explain(X_new.iloc[[first]]).iloc[0].drop("(base)")
    print("the highest payment stands there because of")
    for column, added in why.sort_values(key=abs, ascending=False).head(3).items():
        print(f"{column:>30} = {X_new.iloc[first][column]!s:<12} adds {added:+.2f}")


if __name__ == "__main__":
    main()
