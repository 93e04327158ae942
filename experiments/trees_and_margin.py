"""Ranking trees and margin methods at their defaults beside their closest relatives in scikit-learn.

Every cell fits one method on one split of one of the sets of `experiments.defaults`, with one thread; seconds
are those of the processor. Settings are chosen on one half of the sets and judged on the other.

    python -m experiments.trees_and_margin [--methods NAME ...] [--candidates] [--splits N] [--most-rows N] [--half 0|1]
    python -m experiments.trees_and_margin --scan [--splits N] [--most-rows N]
    python -m experiments.trees_and_margin --noise | --cases
    python -m experiments.trees_and_margin --report
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from experiments.common import ROOT, Results, markdown_table
from experiments.defaults.report import complete_splits, per_set
from experiments.defaults.sets import Split, all_sets, read_split
from toprank import (
    POISE,
    KernelLogisticRanker,
    LogisticRanker,
    PartialAUCRanker,
    PartialAUCSVM,
    RankingForest,
    RankLS,
    RankSVM,
    TreeRank,
    datasets,
    metrics,
)
from toprank.encoding import TableEncoder
from toprank.folds import scores_of
from toprank.selection.peers import PeerRanker

RESULTS = ROOT / "results" / "trees_and_margin.jsonl"
SCAN = ROOT / "results" / "trees_and_margin_scan.jsonl"
Maker = Callable[[int], Any]

LINEAR, KERNEL, FOREST, TREE = "logistic regression", "SVC", "random forest", "decision tree"
# Cells of margin methods from when columns of 0 and 1 were divided by their deviation, too.
DIVIDED = "all columns divided"
CLOSE = 0.03  # mean AP that a method may lie below its relative
TIME_BAR = 3.0  # times the random forest's seconds that the ranking forest may take


def encoded(make: Maker) -> Maker:
    """Put the `TableEncoder` before a method that wants numbers."""
    return lambda seed: make_pipeline(TableEncoder(), make(seed))


def peer(kind: str) -> Maker:
    return lambda seed: PeerRanker(kind, n_jobs=1, random_state=seed)


def forest(**settings: Any) -> Maker:
    return lambda seed: RankingForest(n_jobs=1, random_state=seed, **settings)


# Each method with its closest relative; the relatives stand for themselves.
DEFAULTS: dict[str, tuple[str, Maker]] = {
    LINEAR: (LINEAR, encoded(lambda seed: LogisticRegression(max_iter=2000))),
    "LogisticRanker": (LINEAR, encoded(lambda seed: LogisticRanker())),
    "RankSVM": (LINEAR, encoded(lambda seed: RankSVM(n_jobs=1))),
    "RankLS": (LINEAR, encoded(lambda seed: RankLS(n_jobs=1))),
    "PartialAUCSVM": (LINEAR, encoded(lambda seed: PartialAUCSVM())),
    "PartialAUCSVM (0, .1)": (LINEAR, encoded(lambda seed: PartialAUCSVM((0.0, 0.1)))),
    "PartialAUCRanker": (LINEAR, encoded(lambda seed: PartialAUCRanker(random_state=seed))),
    KERNEL: (KERNEL, encoded(lambda seed: SVC())),
    "RankSVM rbf": (KERNEL, encoded(lambda seed: RankSVM("rbf", n_jobs=1, random_state=seed))),
    "RankLS rbf": (KERNEL, encoded(lambda seed: RankLS("rbf", n_jobs=1, random_state=seed))),
    "KernelLogisticRanker": (
        KERNEL, encoded(lambda seed: KernelLogisticRanker(n_jobs=1, random_state=seed))
    ),
    FOREST: (FOREST, peer("random_forest")),
    "extra trees": (FOREST, peer("extra_trees")),
    "RankingForest": (FOREST, forest()),
    TREE: (
        TREE, encoded(lambda seed: DecisionTreeClassifier(min_samples_leaf=5, random_state=seed))
    ),
    "TreeRank": (TREE, lambda seed: TreeRank(random_state=seed)),
    "PartialAUCRanker, paths": (
        FOREST, encoded(lambda seed: PartialAUCRanker(embedding="tree_path", random_state=seed))
    ),
    "POISE as printed": (TREE, encoded(lambda seed: POISE(random_state=seed))),
}  # fmt: skip
# In full, so that a cell stays true when a default changes.
FOREST_DEFAULTS: dict[str, Any] = {
    "n_estimators": 300, "variant": "sqrt", "consensus": "precision", "max_depth": 16,
    "min_samples_leaf": 2, "leafrank_depth": 2, "max_set_categories": 10,
}  # fmt: skip
PAPER: dict[str, Any] = {
    "n_estimators": 50, "variant": "rf3", "max_depth": 8, "min_samples_leaf": 1, "leafrank_depth": 6,
}  # fmt: skip
# Cells of RankSVM from when C="auto" did not grow with the rows, on sets of more than a thousand.
FIXED = "as for a thousand rows"


class FixedStrength(RankSVM):
    """RankSVM whose C="auto" is that of up to a thousand rows."""

    def _usual_C(self, features: Any, weights: np.ndarray) -> float:
        return super()._usual_C(features, weights) / max(1.0, len(weights) / 1000)


# What the defaults were before.
BEFORE: dict[str, tuple[str, Maker]] = {
    "RankSVM": ("sum over pairs", encoded(lambda seed: RankSVM(C=1.0, loss_scale="sum", n_jobs=1))),
    "RankSVM rbf": (
        "sum over pairs",
        encoded(lambda seed: RankSVM("rbf", 1.0, loss_scale="sum", n_jobs=1, random_state=seed)),
    ),
    "PartialAUCRanker": (
        "penalty .001", encoded(lambda seed: PartialAUCRanker(penalty=1e-3, random_state=seed))
    ),
    "RankingForest": ("50 trees, rf3, depths 8 and 6", forest(**{**FOREST_DEFAULTS, **PAPER})),
}  # fmt: skip
# Other settings of the ranking forest, one thing changed at a time.
FORESTS: dict[str, dict[str, Any]] = {
    "100 trees": {"n_estimators": 100},
    "leaves of one": {"min_samples_leaf": 1},
    "leaves of four": {"min_samples_leaf": 4},
    "single cuts": {"leafrank_depth": 1},
    "LeafRank's depth 3": {"leafrank_depth": 3},
    "depths 8 and 6": {"max_depth": 8, "leafrank_depth": 6},
    "rf5": {"variant": "rf5"},
    "mean mid-rank": {"consensus": "spearman"},
    "all categories by rate": {"max_set_categories": 0},
    "category sets": {"max_set_categories": 255},
}
CANDIDATES = {
    f"RankSVM, {FIXED}": encoded(lambda seed: FixedStrength(n_jobs=1)),
    f"RankSVM rbf, {FIXED}": encoded(
        lambda seed: FixedStrength("rbf", n_jobs=1, random_state=seed)
    ),
    **{f"{name}, {what}": make for name, (what, make) in BEFORE.items()},
    **{f"RankingForest, {k}": forest(**{**FOREST_DEFAULTS, **v}) for k, v in FORESTS.items()},
}
METHODS = {name: make for name, (_, make) in DEFAULTS.items()} | CANDIDATES


@lru_cache(maxsize=1)
def rows_of(data: str, split: int) -> Split:
    """Read one split; the methods come one after the other."""
    return read_split(all_sets().loc[data], split)


def run_cell(data: str, split: int, method: str) -> dict[str, Any]:
    """Fit one method on one split and measure it on the test rows."""
    rows = rows_of(data, split)
    model = METHODS[method](split)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(rows.X, rows.y)
    seconds = time.process_time() - start
    scores = scores_of(model, rows.X_test)
    ranker = model[-1] if hasattr(model, "steps") else model
    chosen = getattr(ranker, "surrogate_range_", None)
    return {
        "average_precision": metrics.average_precision(rows.y_test, scores),
        "partial_auc": metrics.partial_auc(rows.y_test, scores, fpr=(0.0, 0.05)),
        "fit_seconds": round(seconds, 3),
        "train_rows": len(rows.y),
        "train_positives": int(rows.y.sum()),
        "range": None if chosen is None else [round(end, 4) for end in chosen],
        "penalty": getattr(ranker, "penalty_", None),
        "warnings": sorted({str(warning.message)[:120] for warning in said}),
    }


# -- how strong a penalty, and a column of noise -----------------------------------------------------

STRENGTHS = 10.0 ** np.arange(-1, 6.6, 0.5)  # what multiplies the mean loss, over |v|^2 / 2
# Methods whose penalty is scanned: the relative, and what fits them for all strengths.
SCANNED: dict[str, tuple[str, Callable[..., Any]]] = {
    "RankSVM": (LINEAR, lambda X, y: RankSVM(tol=1e-3, n_jobs=1).path(X, y, STRENGTHS)),
    "RankSVM rbf": (
        KERNEL,
        lambda X, y: RankSVM("rbf", tol=1e-3, n_jobs=1, random_state=0).path(X, y, STRENGTHS),
    ),
    "KernelLogisticRanker": (
        KERNEL,
        lambda X, y: [
            KernelLogisticRanker(C=strength / len(y), tol=1e-4, n_jobs=1, random_state=0).fit(X, y)
            for strength in STRENGTHS
        ],
    ),
    LINEAR: (LINEAR, lambda X, y: [LogisticRegression(max_iter=2000).fit(X, y)]),
    KERNEL: (KERNEL, lambda X, y: [SVC().fit(X, y)]),
}
# A rule gives the strength from positives, negatives and columns.
RULES: dict[str, dict[str, Callable[[float, float, float], float]]] = {
    "RankSVM": {
        "50 / columns (the default)": lambda p, n, d: 50 / d,
        "C = 1 times the sum (before)": lambda p, n, d: p * n,
    },
    "RankSVM rbf": {
        "50 (the default, nearly)": lambda p, n, d: 50,
        "C = 1 times the sum (before)": lambda p, n, d: p * n,
    },
    "KernelLogisticRanker": {"C = 1 times the sum over rows (the default)": lambda p, n, d: p + n},
}


def scan_cell(data: str, split: int, method: str) -> dict[str, Any]:
    """Fit one method for all strengths of its penalty; a relative at its default."""
    rows = rows_of(data, split)
    encoder = TableEncoder().fit(rows.X)
    X, X_test = encoder.transform(rows.X), encoder.transform(rows.X_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = SCANNED[method][1](X, rows.y)
    strengths = STRENGTHS if len(models) > 1 else [np.nan]
    values = {
        f"{strength:.3g}": metrics.average_precision(rows.y_test, model.decision_function(X_test))
        for strength, model in zip(strengths, models, strict=True)
    }
    positives = int(rows.y.sum())
    return {
        "average_precision": values,
        "positives": positives,
        "negatives": len(rows.y) - positives,
        "columns": X.shape[1],
    }


def scan_table(results: Results) -> str:
    """Return, for each method, the mean AP by strength and by rule on either half of the sets."""
    cells = {(c["cell"]["method"], c["cell"]["data"], c["cell"]["split"]): c for c in results.cells}
    half, text = all_sets()["half"], ""
    for name, rules in RULES.items():
        relative = SCANNED[name][0]
        own = [k[1:] for k in cells if k[0] == name and (relative, *k[1:]) in cells]
        if not own:
            continue
        found = [cells[name, *key] for key in own]
        first = np.array([half[data] == 0 for data, _ in own])
        lines = {relative: [cells[relative, *key]["average_precision"]["nan"] for key in own]}
        for rule, strength in rules.items():
            lines[rule] = [
                nearest(c["average_precision"], strength(c["positives"], c["negatives"], c["columns"]))
                for c in found
            ]  # fmt: skip
        shared = set.intersection(*(set(c["average_precision"]) for c in found))
        for key in sorted(shared, key=float):
            lines[f"strength {key}"] = [c["average_precision"][key] for c in found]
        rows = [
            [line, *(float(np.array(v)[part].mean()) for part in (first | True, first, ~first))]
            for line, v in lines.items()
        ]
        header = [f"{name} ({len(own)} splits)", "all", "first half", "second half"]
        text += markdown_table(header, rows) + "\n"
    return text


def nearest(values: dict[str, float], strength: float) -> float:
    """Return the value at the strength of the grid nearest to one."""
    return values[min(values, key=lambda key: abs(np.log(float(key) / strength)))]


NOISE: dict[str, Maker] = {
    "TreeRank": lambda seed: TreeRank(random_state=seed),
    "TreeRank, category sets": lambda seed: TreeRank(max_set_categories=255, random_state=seed),
    "RankingForest": forest(),
    "RankingForest, category sets": forest(max_set_categories=255),
    FOREST: peer("random_forest"),
}


def noise_cell(noise: str, seed: int, method: str) -> dict[str, Any]:
    """AUC with and without a column of 200 categories that say nothing."""
    (X, y), (X_test, y_test) = (_noisy_rows(s) for s in (seed, seed + 1_000))
    columns = list(X.columns) if noise == "with" else ["a", "b", "c"]
    model = NOISE[method](seed).fit(X[columns], y)
    return {"roc_auc": metrics.roc_auc(y_test, model.decision_function(X_test[columns]))}


def _noisy_rows(seed: int, n_rows: int = 2_000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=["a", "b", "c"])
    X["noise"] = [f"level {k}" for k in rng.integers(200, size=n_rows)]
    risk = X["a"] + X["b"] * X["c"] + 0.5 * rng.normal(size=n_rows)
    return X, (risk > 1.0).astype(int).to_numpy()


# Single cases: the data (a set, or so many simulated payments), what it was before, what it is now.
CASES: dict[str, tuple[str | int, Maker, Maker]] = {
    "ranking forest, mean mid-rank or leaf precision: w8a": (
        "w8a", forest(consensus="spearman"), forest()
    ),
    "the same: letter_img_z": ("letter_img_z", forest(consensus="spearman"), forest()),
    "the same: simulated payments": (12_000, forest(consensus="spearman"), forest()),
    "the forest of the paper, rf1, unpruned or prune='leafrank': simulated payments": (
        12_000, forest(**PAPER | {"variant": "rf1"}),
        forest(**PAPER | {"variant": "rf1"}, prune="leafrank"),
    ),
    "PartialAUCRanker, penalty .001 or chosen: hepatitis": (
        "hepatitis", BEFORE["PartialAUCRanker"][1], DEFAULTS["PartialAUCRanker"][1]
    ),
    "RankSVM rbf, C = 1 over the sum or per pair: 60,000 simulated payments": (
        60_000, BEFORE["RankSVM rbf"][1], DEFAULTS["RankSVM rbf"][1]
    ),
}  # fmt: skip


def case_cell(case: str, form: str) -> dict[str, Any]:
    """AP on a third of the rows, and the seconds of the fit."""
    data, before, now = CASES[case]
    if isinstance(data, str):
        rows = rows_of(data, 0)
    else:
        found = datasets.make_card_fraud(data, fraud_rate=0.04, random_state=0)
        train, test = train_test_split(
            np.arange(data), test_size=1 / 3, stratify=found.y, random_state=0
        )
        rows = Split(found.X.iloc[train], found.y[train], found.X.iloc[test], found.y[test])
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = (before if form == "before" else now)(0).fit(rows.X, rows.y)
    seconds = time.process_time() - start
    found_ap = metrics.average_precision(rows.y_test, scores_of(model, rows.X_test))
    return {"average_precision": found_ap, "fit_seconds": round(seconds, 2)}


# -- the page ----------------------------------------------------------------------------------------

INTRODUCTION = """# Ranking trees and margin methods at their defaults

Two thirds of a set to train on, one third to test on (`experiments.defaults.sets`). Linear and kernel methods
stand behind the same `TableEncoder`; trees read the table. Random forest and extra trees are scikit-learn's with
300 trees and leaves of two rows, categories as codes, medians for missing cells; the decision tree has leaves
of five. One thread; seconds are those
of the processor, medians over sets. Figures are means over splits, then over sets; a line compares a method
with its closest relative on the splits that both have.

"""


def defaults_table(cells: pd.DataFrame) -> str:
    """Return each method beside its relative, the greatest loss first: AP, pAUC(0, .05), seconds."""
    rows, relatives = [], []
    for name, (relative, _) in DEFAULTS.items():
        both = list(dict.fromkeys([relative, name]))
        ap, pauc, seconds = (
            per_set(cells, both, m) for m in ("average_precision", "partial_auc", "fit_seconds")
        )
        if ap.empty:
            continue
        lead, ratio = ap[name] - ap[relative], (seconds[name] / seconds[relative]).median()
        line = [name, relative, f"{complete_splits(cells, both)} of {len(ap)}", float(ap[name].mean()),
                f"{lead.mean():+.4f}", f"{lead.std(ddof=1) / np.sqrt(len(lead)):.4f}",
                f"{lead.min():+.3f} {lead.idxmin()}", float(pauc[name].mean()),
                f"{(pauc[name] - pauc[relative]).mean():+.4f}", float(seconds[name].median()), f"{ratio:.2f}",
                "within" if lead.mean() >= -CLOSE else "BELOW"]  # fmt: skip
        (rows if name != relative else relatives).append((lead.mean(), line))
    for _, line in relatives:
        line[1] = line[4] = line[5] = line[6] = line[8] = line[10] = line[11] = ""
    header = ["method", "relative", "splits of sets", "AP", "less relative", "standard error", "worst set",
              "pAUC(0, .05)", "less relative", "seconds", "ratio", f"within {CLOSE:g}"]  # fmt: skip
    lines = [line for _, line in sorted(rows, key=lambda row: row[0])]
    return markdown_table(header, lines + [line for _, line in relatives])


def forest_bar(cells: pd.DataFrame) -> str:
    """Say whether the ranking forest is at least as good as the random forest, and quick enough."""
    both = ["RankingForest", FOREST]
    ap, seconds = (per_set(cells, both, m) for m in ("average_precision", "fit_seconds"))
    if ap.empty:
        return "Not run yet.\n"
    lead = ap[both[0]] - ap[both[1]]
    half = all_sets()["half"].loc[ap.index]
    ratio = float((seconds[both[0]] / seconds[both[1]]).median())
    total = float(seconds[both[0]].sum() / seconds[both[1]].sum())
    by_half = ", ".join(f"{lead[half == k].mean():+.4f} on half {k}" for k in (0, 1))
    return (
        f"`RankingForest()` on {len(ap)} sets, {complete_splits(cells, both)} splits: mean AP "
        f"{ap[both[0]].mean():.4f}, random forest {ap[both[1]].mean():.4f}, difference {lead.mean():+.4f} "
        f"({by_half}; the settings were chosen on half 0): {'met' if lead.mean() >= 0 else 'MISSED'}. "
        f"Time: {ratio:.2f} times the random forest's (median over sets), {total:.2f} times in all; at most "
        f"{TIME_BAR:g}: {'met' if max(ratio, total) <= TIME_BAR else 'MISSED'}.\n"
    )


def settings_table(cells: pd.DataFrame) -> str:
    """Return the settings of the ranking forest that were tried, on either half of the sets.

    Each line has its own sets, and the default on the same ones beside it.
    """
    names = [m for m in CANDIDATES if m.startswith("RankingForest") and m in set(cells["method"])]
    rows = []
    for name in names:
        methods = [FOREST, "RankingForest", name]
        ap, seconds = (per_set(cells, methods, m) for m in ("average_precision", "fit_seconds"))
        ratio = f"{(seconds[name] / seconds[FOREST]).median():.2f}"
        half = all_sets()["half"].loc[ap.index]
        for k in sorted(half.unique()):
            part = ap[half == k]
            leads = [f"{(part[m] - part[FOREST]).mean():+.4f}" for m in (name, "RankingForest")]
            rows.append([name, k, len(part), *leads, ratio])
    header = ["settings", "half", "sets", "these", "the default", "time ratio"]
    return "AP less that of the random forest:\n\n" + markdown_table(header, rows)


def before_table(cells: pd.DataFrame) -> str:
    """Return the former defaults beside the present ones."""
    rows = []
    changes = [(name, what) for name, (what, _) in BEFORE.items()]
    for name, what in [*changes, *((name, w) for w in (DIVIDED, FIXED) for name in DEFAULTS)]:
        table = per_set(cells, [f"{name}, {what}", name])
        if not table.empty:
            rows.append([name, what, len(table), *map(float, table.mean())])
    return markdown_table(["method", "before", "sets", "AP before", "AP now"], rows)


def case_table(found: pd.DataFrame) -> str:
    """Return the single cases before and now."""
    wide = found[found["case"].notna()].set_index(["case", "form"])
    rows = [
        [case, *(float(wide.loc[(case, form), key]) for key in ("average_precision", "fit_seconds")
                 for form in ("before", "now"))]
        for case in CASES if (case, "now") in wide.index
    ]  # fmt: skip
    return markdown_table(["case", "AP before", "AP now", "seconds before", "now"], rows)


def every_set(cells: pd.DataFrame) -> str:
    """Return the AP of every method on every set."""
    present = [m for m in DEFAULTS if m in set(cells["method"])]
    wide = cells[cells["method"].isin(present)].pivot_table(
        index="data", columns="method", values="average_precision"
    )
    sets = all_sets()
    rows = [
        [name, int(sets.loc[name, "rows"]), int(sets.loc[name, "positives"]),
         *(float(v) for v in wide.loc[name].reindex(present))]
        for name in sets.index.intersection(wide.index)
    ]  # fmt: skip
    return markdown_table(["set", "rows", "positives", *present], rows)


def write_report(results: Results) -> str:
    """Write the page and return it."""
    found = pd.DataFrame([{**c["cell"], **c} for c in results.cells]).drop(columns="cell")
    cells, noise = (found[found[key].notna()] for key in ("data", "noise"))
    text = (
        INTRODUCTION + "## Beside their closest relatives, losses first\n\n" + defaults_table(cells)
    )
    text += "\n## The ranking forest\n\n" + forest_bar(cells) + "\n" + settings_table(cells)
    text += "\n## Before and now\n\n" + before_table(cells)
    used = cells[cells["method"] == "PartialAUCRanker"]
    exact = np.mean([tuple(r) == (0.0, 0.1) for r in used["range"]])
    text += (
        f"\n`PartialAUCRanker()` used the wanted range (0, .1) itself in {exact:.0%} of {len(used)} fits, "
        f"and these penalties: {used['penalty'].value_counts().sort_index().to_dict()}.\n"
    )
    if "case" in found:
        text += "\nSingle cases, one split each (`--cases`):\n\n" + case_table(found)
    if len(noise):
        wide = noise.pivot_table(index="method", columns="noise", values="roc_auc")
        rows = [
            [m, *map(float, wide.loc[m, ["without", "with"]])] for m in NOISE if m in wide.index
        ]
        text += "\n## A column of 200 categories that are noise: AUC\n\n"
        text += markdown_table(["method", "without it", "with it"], rows)
    text += "\n## How strong a penalty: AP by what multiplies the mean loss\n\n"
    text += "With columns of 0 and 1 divided by their deviation, as it was before.\n\n"
    text += scan_table(Results(SCAN)) + "## Every set: AP\n\n" + every_set(cells)
    (ROOT / "results" / "trees_and_margin.md").write_text(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=list(DEFAULTS), choices=list(METHODS))
    parser.add_argument("--candidates", action="store_true", help="all other settings as well")
    parser.add_argument("--splits", type=int, default=3, help="at most so many of each set")
    parser.add_argument("--most-rows", type=int, default=5_000, help="leave out larger sets")
    parser.add_argument("--least-rows", type=int, default=0, help="leave out smaller sets")
    parser.add_argument("--half", type=int, choices=(0, 1), help="only this half of the sets")
    parser.add_argument("--scan", action="store_true", help="scan the strength of the penalties")
    parser.add_argument("--noise", action="store_true", help="the column of noise instead")
    parser.add_argument("--cases", action="store_true", help="the single cases instead")
    parser.add_argument("--report", action="store_true", help="write the page from what is there")
    options = parser.parse_args()
    if options.report:
        print(write_report(Results(RESULTS)))
        return
    if options.noise:
        cells = [
            {"noise": noise, "seed": seed, "method": method}
            for seed in range(5) for method in NOISE for noise in ("without", "with")
        ]  # fmt: skip
        Results(RESULTS).run(cells, noise_cell)
        return
    if options.cases:
        both = [{"case": case, "form": form} for case in CASES for form in ("before", "now")]
        Results(RESULTS).run(both, case_cell)
        return
    sets = all_sets()
    sets = sets[sets["rows"].between(options.least_rows, options.most_rows)]
    if options.half is not None:
        sets = sets[sets["half"] == options.half]
    methods = [*options.methods, *(CANDIDATES if options.candidates else ())]
    cells = [
        {"data": name, "split": split, "method": method}
        for split in range(options.splits)
        for name, row in sets.iterrows()
        if split < row["splits"]
        for method in (SCANNED if options.scan else methods)
    ]
    if options.scan:
        Results(SCAN).run(cells, scan_cell)
    else:
        Results(RESULTS).run(cells, run_cell)


if __name__ == "__main__":
    main()
