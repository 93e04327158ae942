"""POISE and its kin from 125,000 to 1,000,000 rows: time, log-log slope, peak memory.

Bars: slope of time against rows at most 1.25; peak memory of a fit at most four times the feature matrix +
300 bytes a row + 300 MB, above what the process held before. Each fit runs in a process of its own.
`PartialAUCRanker(embedding="tree_path")` at most 5 times scikit-learn's random forest (300 trees, leaves of
at least 2) on hepatitis, letter_img_z and w8a, one thread each.

    python -m benchmarks.poise [--quick] [--forest] [--sizes N ...] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import numpy as np

from benchmarks.common import SIZES, in_own_process, measured, medians, report, report_growth
from experiments.common import use_local_data

COLUMNS = 40
MODELS = {
    "batch [0, .05]": ("PartialAUCRanker", {"fpr": (0.0, 0.05)}),
    "batch [.02, .05]": ("PartialAUCRanker", {"fpr": (0.02, 0.05)}),
    "batch logistic [0, .05]": ("PartialAUCRanker", {"fpr": (0.0, 0.05), "loss": "logistic"}),
    "pegasos [0, .05]": ("PartialAUCRanker", {"fpr": (0.0, 0.05), "solver": "pegasos"}),
    "AUC [0, 1]": ("PartialAUCRanker", {"fpr": (0.0, 1.0)}),
    "SVM-AUC": ("PartialAUCSVM", {}),
    "SVM-pAUC [.02, .05]": ("PartialAUCSVM", {"fpr": (0.02, 0.05)}),
    "SVM-pAUC tight [.02, .05]": ("PartialAUCSVM", {"fpr": (0.02, 0.05), "tight": True}),
    "tree-path embedding": ("TreePathEmbedding", {}),
    "full method [.02, .05]": (
        "PartialAUCRanker",
        {"fpr": (0.02, 0.05), "embedding": "tree_path"},
    ),
}


def rows(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows with 1% positives that a linear score ranks well but not perfectly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, COLUMNS))
    signal = X[:, :5].sum(axis=1) + 0.7 * X[:, 5] * X[:, 6] + rng.normal(size=n_rows)
    return X, (signal > np.quantile(signal, 0.99)).astype(int)


def one_fit(model: str, n_rows: int) -> dict:
    """Fit one model; seconds and peak memory above the start."""
    import toprank

    name, parameters = MODELS[model]
    cls = getattr(toprank, name)
    if name != "PartialAUCSVM":
        parameters = {**parameters, "random_state": 0}
    few = rows(3000, seed=1)
    learn = "fit_transform" if name == "TreePathEmbedding" else "fit"
    getattr(cls(**parameters), learn)(*few)  # compile
    X, y = rows(n_rows)
    fitted = cls(**parameters)
    found = measured(lambda: getattr(fitted, learn)(X, y))
    return {**found, "matrix": X.nbytes, "iterations": int(getattr(fitted, "n_iter_", 0))}


def growth(sizes: Sequence[int], models: list[str]) -> None:
    """Time and memory of every model at every size, the slope, and the steps that were taken."""
    for model in models:
        fits = [in_own_process("benchmarks.poise", model, n) for n in sizes]
        steps = "/".join(str(fit["iterations"]) for fit in fits)
        report_growth(model, sizes, fits)
        print(f"  steps {steps}", flush=True)


def losses(n_rows: int, repeats: int) -> None:
    """Time of one loss and gradient against a stable argsort of the scores."""
    from toprank.margin.partial_loss import PartialLoss

    rng = np.random.default_rng(0)
    scores = rng.normal(size=n_rows)
    positive = rng.random(n_rows) < 0.01
    weight = np.ones(n_rows)
    calls = {"argsort": lambda: np.argsort(scores, kind="stable")}
    for fpr in ((0.0, 1.0), (0.02, 0.05)):
        for surrogate in ("hinge", "logistic", "exponential"):
            loss = PartialLoss(positive, weight, fpr, surrogate)
            calls[f"{surrogate} {list(fpr)}"] = lambda loss=loss: loss(scores)
        bound = PartialLoss(positive, weight, fpr, structural=True)
        calls[f"most violated ordering {list(fpr)}"] = lambda bound=bound: bound(scores)
    for call in calls.values():
        call()
    times = medians(calls, repeats)
    print(f"one loss and gradient of {n_rows:,} scores, against a stable argsort")
    for name in list(calls)[1:]:
        report(name, times[name], times["argsort"])


def against_forest(repeats: int) -> None:
    """Time of the full method against a random forest's, on three sets."""
    from sklearn.ensemble import RandomForestClassifier

    from toprank import PartialAUCRanker, TreePathEmbedding, datasets
    from toprank.encoding import TableEncoder

    use_local_data()
    PartialAUCRanker(embedding="tree_path", random_state=0).fit(*rows(1000))  # compile
    for name in ("hepatitis", "letter_img_z", "w8a"):
        try:
            data = datasets.load(name)
        except (OSError, ValueError) as missing:
            print(f"{name} is not here: {missing}")
            continue
        X, y = TableEncoder().fit_transform(data.X), np.asarray(data.y)
        forest = RandomForestClassifier(300, min_samples_leaf=2, n_jobs=1, random_state=0)
        embedding = TreePathEmbedding(scale=False, n_jobs=1, random_state=0)
        ranker = PartialAUCRanker(embedding=embedding, random_state=0)
        calls = {
            "ours": lambda ranker=ranker, X=X, y=y: ranker.fit(X, y),
            "theirs": lambda forest=forest, X=X, y=y: forest.fit(X, y),
        }
        times = medians(calls, repeats if len(y) < 1000 else 1)
        report(f"tree paths, {name} {X.shape}", times["ours"], times["theirs"], 5.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two small sizes")
    parser.add_argument("--forest", action="store_true", help="only the bar against a forest")
    parser.add_argument("--only", nargs="*", choices=list(MODELS), help="some of the models")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="numbers of rows")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(one_fit(*json.loads(options.child))))
        return
    against_forest(3 if options.quick else 5)
    if options.forest:
        return
    losses(100_000 if options.quick else 1_000_000, 3 if options.quick else 5)
    growth((20_000, 40_000) if options.quick else options.sizes, options.only or list(MODELS))


if __name__ == "__main__":
    main()
