"""The protocol: twelve variants, three Gaussian sets, ten benchmark sets, and the figures of each cell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from experiments.treerank.published import BENCHMARKS, GAUSSIANS
from toprank import RankingForest, TreeRank, datasets, metrics

TRAIN_ROWS = TEST_ROWS = 1000
TEST_SEED = 2011
N_FOLDS = 10
N_BOOTSTRAP = 20
# the paper's sets: positive class turned round, rows with missing cells left out
FLIPPED = {"congressional_vote", "ionosphere"}
COMPLETE_ROWS = {"congressional_vote", "breast_cancer_wisconsin", "hepatitis"}
VARIANTS = {
    "TRK": None,
    "Bagg": "bagging",
    "RF1": "rf1",
    "RF2": "rf2",
    "RF3": "rf3",
    "RF4": "rf4",
    "RF5": "rf5",
    "RF6": "rf6",
}
SPLITTERS = {"CART": "leafrank", "SVM": "svm"}


def make_model(method: str, seed: int, prune: bool) -> Any:
    """A variant by its name in the paper: depth 8, depth 6 in LeafRank, 50 trees."""
    variant, splitter = method.split("-")
    settings: dict[str, Any] = {
        "max_depth": 8,
        "min_samples_leaf": 1,
        "leafrank_depth": 6,
        "splitter": SPLITTERS[splitter],
        "prune": prune,
        "max_set_categories": 255,
        "random_state": seed,
    }
    if VARIANTS[variant] is None:
        return TreeRank(**settings)
    return RankingForest(50, variant=VARIANTS[variant], consensus="spearman", n_jobs=1, **settings)


@cache
def benchmark_set(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """One of the ten sets as the paper has it."""
    found = datasets.load(name)
    X, y = found.X, np.asarray(found.y)
    if name == "hepatitis":
        X = X.drop(columns="PROTIME")
    if name in COMPLETE_ROWS:
        kept = X.notna().all(axis=1).to_numpy()
        X, y = X[kept].reset_index(drop=True), y[kept]
    return X, 1 - y if name in FLIPPED else y


def figures(y: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """The paper's figures; local AUCs with the tie group at the cut split, and with all of it."""
    values = {"AUC": metrics.roc_auc(y, scores)}
    for share in (0.20, 0.10, 0.05):
        name = f"LocAUC@{share:.0%}"
        values[name] = metrics.local_auc(y, scores, top=share, ties="group")
        values[f"{name} split"] = metrics.local_auc(y, scores, top=share)
    for share in (0.10, 0.20):
        values[f"HR@{share:.0%}"] = metrics.hit_rate(y, scores, top=share)
    values["AP"] = metrics.mean_precision(y, scores)
    values["average precision"] = metrics.average_precision(y, scores)
    return values


def compute(part: str, data: str, method: str, number: int) -> dict[str, Any]:
    """The figures of one cell."""
    return PARTS[part](data, method, number)


def gaussian_cell(data: str, method: str, number: int) -> dict[str, Any]:
    """Train on one draw of 1,000 rows, unpruned; test on the one test set."""
    X, y = datasets.gauss20d(data, TRAIN_ROWS, random_state=number)
    X_test, y_test = datasets.gauss20d(data, TEST_ROWS, random_state=TEST_SEED)
    model = make_model(method, number, prune=False).fit(X, y)
    return figures(y_test, model.decision_function(X_test))


def instability_cell(data: str, method: str, number: int) -> dict[str, Any]:
    """Distance between the orders that models from 20 bootstrap samples give the test set."""
    X, y = datasets.gauss20d(data, TRAIN_ROWS, random_state=number)
    X_test, _ = datasets.gauss20d(data, TEST_ROWS, random_state=TEST_SEED)
    rng = np.random.default_rng(number)
    scores = []
    for seed in range(N_BOOTSTRAP):
        rows = rng.integers(len(y), size=len(y))
        model = make_model(method, seed, prune=False).fit(X[rows], y[rows])
        scores.append(model.decision_function(X_test))
    return {"instability": metrics.instability(np.stack(scores))}


def benchmark_cell(data: str, method: str, number: int) -> dict[str, Any]:
    """One fold of ten, pruned by nested stratified 5-fold cross-validation."""
    X, y = benchmark_set(data)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    train, test = list(folds.split(X, y))[number]
    model = make_model(method, number, prune=True).fit(X.iloc[train], y[train])
    kernel = {} if "SVM" not in method else {"kernel": model.svm_.kernel, "C": model.svm_.C}
    return {**figures(y[test], model.decision_function(X.iloc[test])), **kernel}


def cost_cell(data: str, method: str, number: int) -> dict[str, Any]:
    """Seconds of the processor for one fit on 2,000 rows, unpruned (0) or pruned by 5 folds (1)."""
    X, y = datasets.gauss20d(data, 2 * TRAIN_ROWS, random_state=0)
    make_model(method, 0, prune=bool(number)).fit(X[:100], y[:100])  # compile
    start = time.process_time()
    make_model(method, 0, prune=bool(number)).fit(X, y)
    return {"processor": time.process_time() - start}


PARTS = {
    "gaussian": gaussian_cell,
    "instability": instability_cell,
    "benchmark": benchmark_cell,
    "cost": cost_cell,
}
COST_METHODS = ("TRK-CART", "TRK-SVM", "Bagg-CART", "RF3-CART", "Bagg-SVM")


def cells(repeats: int, quick: bool = False) -> Iterator[dict[str, Any]]:
    """All cells, in an order in which an early stop leaves whole tables of fewer repeats."""
    methods = list(GAUSSIANS["easy"])
    first = 1 if quick else min(3, repeats)
    yield from _gaussian(range(first), methods)
    groups: tuple[tuple[str, ...], ...] = (
        ("RF3-CART", "RF1-SVM"),
        ("TRK-CART", "TRK-SVM", "RF1-CART", "RF5-CART"),
        ("Bagg-CART",),
        ("Bagg-SVM",),
    )
    for group in groups[:1] if quick else groups:
        for data in BENCHMARKS:
            for method in group:
                for fold in range(2 if quick else N_FOLDS):
                    yield {"part": "benchmark", "data": data, "method": method, "number": fold}
    if quick:
        return
    yield from _gaussian(range(first, min(10, repeats)), methods)
    for data in GAUSSIANS:
        for method in methods:
            yield {"part": "instability", "data": data, "method": method, "number": 0}
    yield from _gaussian(range(min(10, repeats), repeats), methods)
    for pruned in (0, 1):
        for method in COST_METHODS:
            yield {"part": "cost", "data": "easy", "method": method, "number": pruned}


def _gaussian(repeats: range, methods: list[str]) -> Iterator[dict[str, Any]]:
    for repeat in repeats:
        for data in GAUSSIANS:
            for method in methods:
                yield {"part": "gaussian", "data": data, "method": method, "number": repeat}
