"""LambdaMART for AUC and multi-class AUC against XGBoost's own ranking objectives (Welleck 2016).

MQ2008 by its five folds (three parts to train on, one to choose the rounds, one to test), the MSLR sample
(train part against test part) and the OHSUMED part (five splits by query).
`python -m experiments.lambdamart_auc [--quick]`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import xgboost as xgb
from sklearn.model_selection import GroupKFold

from experiments.common import ROOT, Results, markdown_table, mean_interval, use_local_data
from toprank import LambdaMART, datasets, metrics
from toprank.registry import ESTIMATORS, estimator

SETS = {"letor_mq2008": 5, "mslr_fold1_sample": 1, "letor3_ohsumed_test_part": 5}
OURS = ("auc", "mauc", "map", "ndcg")
THEIRS = ("rank:pairwise", "rank:ndcg", "rank:map", "binary:logistic")
FIGURES = (
    "AUC",
    "MAUC",
    "AUC >= 1",
    "AUC >= 2",
    "MAP",
    "micro precision",
    "macro precision",
    "NDCG@10",
)
ROUNDS, PATIENCE = 500, 50


def split(data: str, fold: int):
    """Training, validation and test rows of one fold, and the whole set."""
    found = datasets.load(data)
    X, y, qid = found.X.to_numpy(dtype=np.float32), np.asarray(found.y), np.asarray(found.qid)
    if data == "letor_mq2008":
        part = found.extra["part"].to_numpy()
        names = [(fold + k) % 5 + 1 for k in range(5)]
        train, held_out, test = (np.isin(part, names[a:b]) for a, b in ((0, 3), (3, 4), (4, 5)))
    elif data == "mslr_fold1_sample":
        train = found.extra["fold_split"].to_numpy() == "train"
        test = ~train
        held_out = np.isin(qid, np.unique(qid[train])[::5]) & train
        train &= ~held_out
    else:
        folds = list(GroupKFold(5).split(X, y, qid))
        test, held_out = np.zeros(len(y), bool), np.zeros(len(y), bool)
        test[folds[fold][1]] = True
        held_out[folds[(fold + 1) % 5][1]] = True
        train = ~test & ~held_out
    return X, y, qid, train, held_out, test


def fit_ours(metric: str, X, y, qid, train, held_out) -> object:
    criterion = {"map": "mean_average_precision", "ndcg": "ndcg"}.get(metric, "multiclass_auc")
    model = LambdaMART(
        metric,
        n_estimators=ROUNDS,
        learning_rate=0.1,
        early_stopping_rounds=PATIENCE,
        eval_metric=criterion,
        n_jobs=1,
        random_state=0,
    )
    labels = (y > 0).astype(int) if metric in {"auc", "map"} else y
    held_out_set = (X[held_out], labels[held_out], None, qid[held_out])
    return model.fit(X[train], labels[train], qid=qid[train], eval_set=held_out_set)


def fit_theirs(objective: str, X, y, qid, train, held_out) -> xgb.Booster:
    binary = objective in {"rank:map", "binary:logistic"}
    labels = (y > 0).astype(int) if binary else y

    def matrix(rows) -> xgb.DMatrix:
        order = np.flatnonzero(rows)[np.argsort(qid[rows], kind="stable")]
        return xgb.DMatrix(
            X[order], label=labels[order], qid=np.unique(qid[order], return_inverse=True)[1]
        )

    settings = {
        "objective": objective,
        "tree_method": "hist",
        "eta": 0.1,
        "max_depth": 6,
        "nthread": 1,
    }
    settings["eval_metric"] = "map" if binary else "ndcg"
    return xgb.train(
        settings,
        matrix(train),
        ROUNDS,
        evals=[(matrix(held_out), "held_out")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )


def compute(data: str, fold: int, method: str) -> dict:
    """One method on one fold."""
    X, y, qid, train, held_out, test = split(data, fold)
    start = time.perf_counter()
    if method.startswith("lambda_"):
        model = fit_ours(method.removeprefix("lambda_"), X, y, qid, train, held_out)
        scores = model.decision_function(X[test])
    elif method == "SVM-AUC":
        model = estimator("PartialAUCSVM")(fpr=(0.0, 1.0))
        model.fit(X[train], (y[train] > 0).astype(int), qid=qid[train])
        scores = model.decision_function(X[test])
    else:
        booster = fit_theirs(method, X, y, qid, train, held_out)
        rounds = (0, booster.best_iteration + 1)
        scores = booster.predict(xgb.DMatrix(X[test]), output_margin=True, iteration_range=rounds)
    seconds = time.perf_counter() - start
    return {
        **figures(y[test], np.asarray(scores, dtype=float), qid[test]),
        "train_seconds": seconds,
    }


def figures(y, scores, qid) -> dict[str, float]:
    """All figures of one test part: AUCs pooled over queries, gains per query."""
    by_class = {
        level: metrics.roc_auc(y >= level, scores) for level in (1, 2) if (y >= level).any()
    }
    values = {
        "AUC": metrics.roc_auc(y > 0, scores),
        "MAUC": metrics.multiclass_auc(y, scores, qid=qid),
        "AUC >= 1": by_class.get(1, np.nan),
        "AUC >= 2": by_class.get(2, np.nan),
        "MAP": metrics.mean_average_precision((y > 0).astype(int), scores, qid=qid),
        "micro precision": metrics.multiclass_precision(y, scores, average="micro", qid=qid),
        "macro precision": metrics.multiclass_precision(y, scores, average="macro", qid=qid),
        "NDCG@10": metrics.ndcg(y, scores, k=10, qid=qid),
    }
    return {name: float(value) for name, value in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one fold of each set")
    options = parser.parse_args()
    use_local_data()
    methods = [*(f"lambda_{m}" for m in OURS), *THEIRS]
    if "PartialAUCSVM" in ESTIMATORS:
        methods.append("SVM-AUC")
    results = Results(ROOT / "results" / "lambdamart_auc.jsonl")
    folds = {data: 1 if options.quick else n for data, n in SETS.items()}
    results.run(
        [
            {"data": data, "fold": fold, "method": method}
            for data, n in folds.items()
            for fold in range(n)
            for method in methods
        ],
        compute,
    )
    text = [
        "# LambdaMART for AUC and multi-class AUC\n",
        "After Welleck (2016), *Efficient AUC optimization for information ranking applications*. AUC of "
        "relevance above 0 and the per-class AUCs are pooled over queries; MAUC (ordered), MAP, precision "
        "and NDCG are means over queries. Rounds chosen on the validation part. The LETOR 3.0 Gov sets of "
        "the paper are not in our data (its figures there: td2004 .867, np2004 .971, td2003 .870, np2003 "
        ".991). The MSLR figures come from a sample of the first rows of one fold.\n",
    ]
    for data in SETS:
        rows = []
        for method in methods:
            if not results.select(data=data, method=method):
                continue
            values = [
                results.values(f, data=data, method=method) for f in (*FIGURES, "train_seconds")
            ]
            low, high = mean_interval(values[0])[1:]
            interval = f"[{low:.4f}, {high:.4f}]" if len(values[0]) > 1 else "one split"
            rows.append([method, *(float(np.nanmean(v)) for v in values), interval])
        text.append(f"## {data}\n")
        header = ["method", *FIGURES, "training s", "95% interval of AUC"]
        text.append(markdown_table(header, rows))
    page = "\n".join(text)
    (ROOT / "results" / "lambdamart_auc.md").write_text(page)
    print(page)


if __name__ == "__main__":
    main()
