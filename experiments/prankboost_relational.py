"""PRankBoost against RankBoost on relational data: areas, intervals, learning curves.

    python -m experiments.prankboost_relational [--quick] [--budget-minutes 25] [--modes published default]
        [--methods RankBoost Clause ...]

The protocol of Oliphant, Burnside & Shavlik (2009), "Boosting first-order clauses for large, skewed data
sets": 100 weak learners that are clauses over background predicates, cross-validation with several seeds,
area under the ROC and the recall-precision curve, learning curves against the number of clauses evaluated,
with Gleaner's beside them. Their four sets are not public; four public sets stand in for them.

Every method is run twice: as published (atoms only, seeds drawn uniformly, no look-ahead, the step of the
bound) and with the defaults of this library (the larger language, seeds by weight, look-ahead).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from experiments.common import ROOT, Results, corrected_interval, markdown_table, use_local_data
from experiments.gleaner import Gleaner
from experiments.prankboost import CHECKPOINTS, PUBLISHED
from toprank import RelationalData, RelationalPRankBoost, RelationalRankBoost
from toprank.metrics import recall_precision_area, roc_auc

N_ROUNDS = 100
BASELINE = "RankBoost"

#: how each set is split: (how, number of folds)
DATA: dict[str, tuple[str, int]] = {
    "uwcse": ("published folds", 5),
    "financial_nlp_small": ("whole sentences", 5),
    "imdb3": ("examples", 5),
    "citeseer": ("published folds", 4),
}
SPLITS = {
    "published folds": "by its published folds, each with its own background facts",
    "whole sentences": "five folds of whole sentences, stratified; one background",
    "examples": "five folds of examples, stratified; one background",
}

MODES = ("published", "default")
N_FITS = 10  # folds times seeds
GLEANER = "Gleaner"
VARIANTS = {
    "Clause": "clause", "Path": "path", "Mix1": "mix1", "Mix2": "mix2", "Mix3": "mix3", "Mix4": "mix4",
}  # fmt: skip
METHODS = (BASELINE, *VARIANTS, GLEANER)


def make(method: str, mode: str, **parameters: Any) -> Any:
    """Return a method as published or with our defaults."""
    kind = RelationalRankBoost if method == BASELINE else RelationalPRankBoost
    if method != BASELINE:
        parameters["weak"] = VARIANTS[method]
    return kind.as_published(**parameters) if mode == "published" else kind(**parameters)


def folder_of(name: str) -> Path:
    return Path(os.environ["TOPRANK_DATA"]) / "relational" / name


@lru_cache(maxsize=4)
def split(name: str, repeat: int) -> tuple[RelationalData, RelationalData]:
    """Training and test data of one fold; after the last fold, another shuffle where there is one."""
    how, n_folds = DATA[name]
    fold, shuffle = repeat % n_folds, repeat // n_folds
    if how == "published folds":
        others = [k + 1 for k in range(n_folds) if k != fold]
        train = RelationalData.from_folder(folder_of(name), where={"fold": others})
        return train, RelationalData.from_folder(folder_of(name), where={"fold": fold + 1})
    data = RelationalData.from_folder(folder_of(name))
    groups, splitter = None, StratifiedKFold
    if how == "whole sentences":
        groups, splitter = data.examples["sentenceid"], StratifiedGroupKFold
    folds = splitter(n_folds, shuffle=True, random_state=shuffle)
    train, test = list(folds.split(np.zeros(len(data)), data.labels, groups))[fold]
    return data[train], data[test]


def run_cell(data: str, repeat: int, method: str, rounds: int, mode: str) -> dict[str, Any]:
    """Train on all folds but one, test on that; record both areas and the learning curve."""
    train, test = split(data, repeat)
    start = time.process_time()
    curve: list[list[float]] = []
    if method == GLEANER:
        gleaner = Gleaner(n_seeds=rounds, random_state=repeat)
        for n, evaluated in enumerate(gleaner.fit(train, train.labels), start=1):
            if n in CHECKPOINTS or n == rounds:
                scores = gleaner.scores(test)
                curve.append([evaluated, round(recall_precision_area(test.labels, scores), 6)])
        learners, rule = sum(map(len, gleaner.kept)), ""
    else:
        model = make(method, mode, n_estimators=rounds, random_state=repeat, n_jobs=1)
        model.fit(train, train.labels)
        evaluated_by_round = np.cumsum(model.n_evaluated_)
        for t, scores in enumerate(model.staged_decision_function(test), start=1):
            if t in CHECKPOINTS or t == len(evaluated_by_round):
                area = recall_precision_area(test.labels, scores)
                curve.append([int(evaluated_by_round[t - 1]), round(area, 6)])
        if not model.rounds_:  # it warned: every example has the same score
            scores = model.decision_function(test)
            curve = [[0, round(recall_precision_area(test.labels, scores), 6)]]
        learners = len(model.rounds_)
        rule = str(max(model.rounds_, key=lambda kept: kept.step).rules[-1]) if learners else ""
    return {
        "auroc": roc_auc(test.labels, scores),
        "aurpc": recall_precision_area(test.labels, scores),
        "clauses": int(curve[-1][0]),
        "learners": learners,
        "fit_cpu_seconds": round(time.process_time() - start, 2),
        "best_rule": rule,
        "curve": curve,
    }


def cells(
    quick: bool, modes: Sequence[str] = MODES, methods: Sequence[str] = METHODS
) -> list[dict[str, Any]]:
    """All cells: one fit of every set and method comes before the next."""
    return [
        {
            "data": name,
            "repeat": repeat,
            "method": method,
            "rounds": 10 if quick else N_ROUNDS,
            "mode": mode,
        }
        for repeat in range(1 if quick else N_FITS)
        for name in (("uwcse",) if quick else DATA)
        for method in methods
        for mode in modes
        if method != GLEANER or mode == "published"
    ]


def by_repeat(
    results: Results, data: str, rounds: int, mode: str
) -> dict[str, dict[int, dict[str, Any]]]:
    """Cells by method and fit: only fits that every method has finished, so that means compare."""
    found: dict[str, dict[int, dict[str, Any]]] = {
        name: {} for name in METHODS if name != GLEANER or mode == "published"
    }
    for cell in results.select(data=data, rounds=rounds, mode=mode):
        found[cell["cell"]["method"]][cell["cell"]["repeat"]] = cell
    started = {method: own for method, own in found.items() if own}
    if BASELINE not in started:
        return {}
    complete = sorted(set.intersection(*(set(own) for own in started.values())))
    return {method: {r: own[r] for r in complete} for method, own in started.items()}


def table_of(results: Results, data: str, rounds: int) -> str:
    """Both areas of every method on one data set, as published and with our defaults, side by side."""
    labels = RelationalData.from_folder(folder_of(data)).labels
    how, n_folds = DATA[data]
    modes = {mode: by_repeat(results, data, rounds, mode) for mode in MODES}
    lines = []
    for method in METHODS:
        line = [method]
        for found in modes.values():
            line += _figures(found, method, n_folds)
        lines.append(line)
    header = ["method"]
    for mode in MODES:
        header += [f"AUROC, {mode}", f"AURPC, {mode}", "- RankBoost", "p", "fits"]
    skew = (len(labels) - labels.sum()) / labels.sum()
    title = f"### {data} ({len(labels):,} examples, skew 1:{skew:.0f}; {SPLITS[how]})\n\n"
    return title + markdown_table(header, lines)


def _figures(found: dict[str, dict[int, dict[str, Any]]], method: str, n_folds: int) -> list[str]:
    """Means with standard deviations, the paired difference with its interval, and a paired t test."""
    own = list(found.get(method, {}).values())
    if not own:
        return [""] * 5
    areas = {name: np.array([c[name] for c in own]) for name in ("auroc", "aurpc")}
    shown = [f"{v.mean():.4f} ({v.std(ddof=1) if len(v) > 1 else 0:.4f})" for v in areas.values()]
    base = np.array([c["aurpc"] for c in found[BASELINE].values()])
    if method == BASELINE or len(base) < 2:
        return [*shown, "", "", str(len(own))]
    mean, low, high = corrected_interval(areas["aurpc"] - base, 1 / n_folds)
    same = np.ptp(areas["aurpc"] - base) == 0
    p = "" if same else f"{stats.ttest_rel(areas['aurpc'], base).pvalue:.3f}"
    return [*shown, f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]", p, str(len(own))]


def verdict(results: Results, rounds: int) -> str:
    """Where PRankBoost is above RankBoost, and where it is not, in either mode."""
    lines = []
    for name in DATA:
        for mode in MODES:
            found = by_repeat(results, name, rounds, mode)
            if not found or not found[BASELINE]:
                continue
            means = {m: float(np.mean([c["aurpc"] for c in o.values()])) for m, o in found.items()}
            above = [m for m in VARIANTS if m in means and means[m] > means[BASELINE]]
            below = [m for m in VARIANTS if m in means and means[m] < means[BASELINE]]
            best = max(means, key=lambda method: means[method])
            lines.append(
                f"- {name}, {mode}: above RankBoost ({means[BASELINE]:.4f}): "
                f"{', '.join(above) or 'none'}; below: {', '.join(below) or 'none'}; best of all: "
                f"{best} ({means[best]:.4f}); {len(found[BASELINE])} fits"
            )
    return "\n".join(lines) + "\n"


def plot_curves(results: Results, rounds: int, path: Path) -> None:
    """Mean AURPC of the test fold against clauses evaluated, one panel a data set."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 2, figsize=(10.4, 7.6), layout="constrained")
    for panel, name in zip(panels.ravel(), DATA, strict=True):
        found = {
            (mode, method): own
            for mode in MODES
            for method, own in by_repeat(results, name, rounds, mode).items()
        }
        for (mode, method), own in found.items():
            k = METHODS.index(method)
            curves = [np.array(cell["curve"]) for cell in own.values()]
            length = min((len(curve) for curve in curves), default=0)
            if length:
                mean = np.mean([curve[:length] for curve in curves], axis=0)
                style = "-" if mode == "default" else "--"
                label = method if method == GLEANER else f"{method}, {mode}"
                panel.plot(*mean.T, style, color=f"C{k}", label=label, linewidth=1.4)
        panel.set(title=name, xlabel="clauses evaluated", ylabel="AURPC", xscale="log")
        panel.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=7)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def write_report(results: Results, rounds: int, folder: Path = ROOT / "results") -> None:
    """The tables, the curves and what they say."""
    plot_curves(results, rounds, folder / "prankboost_relational_curves.png")
    parts = [
        "# PRankBoost on relational data\n",
        (
            f"{rounds} weak learners, clauses of at most 4 literals with variables at most 2 deep. Means "
            "and standard deviations over fits (folds times seeds); differences of AURPC to RankBoost "
            "paired by fit, with 95% intervals corrected for folds that share training examples (Nadeau "
            "& Bengio 2003), and the p of a paired t test as in the paper, which is not corrected. "
            "'published': atoms alone, seeds drawn uniformly, no look-ahead, the step of the bound. "
            "'default': the larger language, seeds by weight, look-ahead from 5 literals; RankBoost with "
            "exact steps. Gleaner keeps clauses of 20 bins of recall, from as many seeds as there are "
            "rounds, of at least 500 clauses each.\n"
        ),
        PUBLISHED,
        "## Ours\n",
        *(table_of(results, n, rounds) for n in DATA if results.select(data=n, rounds=rounds)),
        "## Against RankBoost, by mean AURPC\n",
        verdict(results, rounds),
        (
            "## Learning curves\n\n"
            "![AURPC against clauses evaluated](prankboost_relational_curves.png)\n"
        ),
    ]
    (folder / "prankboost_relational.md").write_text("\n".join(parts))


def main() -> None:
    """Run what is missing within the budget, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one fold of one set, ten rounds")
    parser.add_argument("--budget-minutes", type=float, default=25.0)
    parser.add_argument("--modes", nargs="*", default=list(MODES))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS)
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    use_local_data()
    name = "prankboost_relational_quick" if arguments.quick else "prankboost_relational"
    results = Results(ROOT / "results" / f"{name}.jsonl")
    deadline = time.monotonic() + 60 * arguments.budget_minutes
    wanted = cells(arguments.quick, arguments.modes, arguments.methods)
    for cell in [] if arguments.report_only else wanted:
        if time.monotonic() > deadline:
            print("the budget is spent; run again to go on")
            break
        results.run([cell], run_cell)
    if any(results.select(rounds=N_ROUNDS, mode=mode) for mode in MODES):
        write_report(results, N_ROUNDS)


if __name__ == "__main__":
    main()
