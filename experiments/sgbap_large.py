"""The cells of Frery et al. (2017), table 3, that did not finish, and their rivals, on large data.

The paper stopped SGBAPsig and LambdaMART-AP at 86,000 s on w8a (64,000 rows) and on 2,000,000 private
payments. Here: w8a, the real creditcard_fraud (trained on its first half, tested on what follows) and
simulated payments of 40 columns at 0.2% fraud, tested on the last quarter of their days.
`python -m experiments sgbap_large [--sets w8a creditcard_fraud payments] [--rows 2000000]`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.common import ROOT, Results, markdown_table, use_local_data
from toprank import (
    SGBAP,
    GradientBoostingRanker,
    LambdaMART,
    RankBoost,
    SGBAPsig,
    datasets,
    metrics,
)

FIGURES = {
    "average_precision": "AP",
    "precision_at_k": "P@k",
    "pos_at_top": "Pos@Top",
    "roc_auc": "AUC",
}
GROWN = {"max_depth": 200, "max_leaves": 0, "colsample_bynode": 0.1}
ROUNDS = 100
METHODS = {
    "GB-Logistic": lambda **p: GradientBoostingRanker("logistic", subsample=0.5, n_seeds=1, **p),
    "RankBoost": lambda n_estimators, n_jobs, random_state: RankBoost(
        n_estimators, learning_rate=1.0
    ),
    "LambdaMART-AP": lambda **p: LambdaMART("map", subsample=0.5, n_seeds=1, **p),
    "SGBAP": SGBAP,
    "SGBAP, rate .05": lambda **p: SGBAP(learning_rate=0.05, **p),
    "SGBAP, trees to the end": lambda **p: SGBAP(**GROWN, **p),
    "SGBAPsig": SGBAPsig,
    "GradientBoostingRanker()": GradientBoostingRanker,
}


def load(data: str, n_rows: int | None):
    """Training and test rows: X, y, X_test, y_test."""
    if data == "w8a":
        found = datasets.load("w8a")
        parts = train_test_split(
            found.X, found.y, test_size=1 / 3, stratify=found.y, random_state=0
        )
        return parts[0], parts[2], parts[1], parts[3]
    if data == "creditcard_fraud":
        found = datasets.load("creditcard_fraud")
        X, y = found.X, np.asarray(found.y)
        early = np.arange(len(y)) < len(y) / 2  # rows are in order of time
    else:
        found = datasets.make_card_fraud(n_rows, random_state=0)
        X, y = found.X, np.asarray(found.y)
        day = found.extra["day"].to_numpy()
        early = day < np.quantile(day, 0.75)
    return X[early], y[early], X[~early], y[~early]


def compute(data: str, method: str, rows: int | None = None) -> dict:
    """One method on one set, default trees."""
    X, y, X_test, y_test = load(data, rows)
    model = METHODS[method](n_estimators=ROUNDS, n_jobs=1, random_state=0)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    scores = model.decision_function(X_test)
    figures = {name: float(getattr(metrics, name)(y_test, scores)) for name in FIGURES}
    return {**figures, "train_seconds": seconds, "train_rows": len(y), "positives": int(y.sum())}


def table(results: Results) -> str:
    rows = [
        [
            c["cell"]["data"], f"{c['train_rows']:,} ({c['positives']:,})", c["cell"]["method"],
            *(c[name] for name in FIGURES), f"{c['train_seconds']:.0f}",
        ]
        for c in sorted(results.cells, key=lambda c: (c["cell"]["data"], c["train_rows"]))
    ]  # fmt: skip
    header = ["data", "training rows (positives)", "method", *FIGURES.values(), "seconds"]
    return markdown_table(header, rows)


WHY = """
Published on 2,000,000 private payments (AP, P@k): GB-Logistic .1477, .2411; RankBoost .1560, .2449; SGBAP .1747,
.3203; LambdaMART-AP and SGBAPsig did not finish in 86,000 s. All of ours finish; SGBAP is not ahead of GB-Logistic
with the same trees, which the paper says it is. SGBAP's softmax soon looks at the rows on top alone, so what early
trees have not told apart late ones hardly will: a smaller rate or trees grown to the end are the two remedies tried
here. The published run had its settings chosen by cross-validation; these have none chosen.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ("w8a", "creditcard_fraud", "payments")
    parser.add_argument("--sets", nargs="*", default=names, choices=names)
    parser.add_argument("--rows", type=int, default=2_000_000, help="of the simulated payments")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    options = parser.parse_args()
    use_local_data()
    results = Results(ROOT / "results" / "sgbap_large.jsonl")
    sizes = {"payments": {"rows": options.rows}}
    cells = [
        {"data": d, "method": m, **sizes.get(d, {})} for d in options.sets for m in options.methods
    ]
    results.run(cells, compute)
    text = table(results)
    (ROOT / "results" / "sgbap_large.md").write_text(
        "# Where the published runs did not finish\n\n"
        f"`python -m experiments sgbap_large`. {ROUNDS} rounds with default trees, one thread, seconds of the "
        "processor; one split, so differences of a few hundredths are chance on w8a and creditcard_fraud.\n\n"
        + text + WHY
    )  # fmt: skip
    print(text)


if __name__ == "__main__":
    main()
