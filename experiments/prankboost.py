"""PRankBoost against RankBoost on skewed tables: areas, intervals, learning curves.

    python -m experiments.prankboost [--quick] [--budget-minutes 25]

The protocol of Oliphant, Burnside & Shavlik (2009), "Boosting first-order clauses for large, skewed data
sets": 100 weak learners, cross-validation with several seeds, area under the ROC and the recall-precision
curve, learning curves against the number of clauses evaluated. Their four sets are not public; public
skewed tables stand in for them (their relational counterparts are in `prankboost_relational`).
"""

from __future__ import annotations

import argparse
import time
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from experiments.common import (
    ROOT,
    Results,
    corrected_interval,
    markdown_table,
    mean_interval,
    use_local_data,
)
from toprank import PRankBoost, RankBoost, datasets
from toprank.metrics import recall_precision_area, roc_auc

N_FOLDS = 5
N_ROUNDS = 100
CHECKPOINTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100)
BASELINE = "RankBoost"

DATA = (
    "creditcard_fraud",
    "letter_img_z",
    "covtype_4_vs_2",
    "w8a",
    "heart_cleveland_4_vs_all",
    "covtype_4_vs_rest_nominal",
)

COMMON: dict[str, Any] = {"max_length": 6, "n_jobs": 1}

#: "RankBoost" has the paper's step, from the bound of Freund et al.; the last two are not in the paper.
METHODS: dict[str, Any] = {
    "RankBoost": lambda **kw: RankBoost(
        weak="clause", step="bound", learning_rate=1.0, **COMMON, **kw
    ),
    "Clause": lambda **kw: PRankBoost(weak="clause", **COMMON, **kw),
    "Path": lambda **kw: PRankBoost(weak="path", **COMMON, **kw),
    "Mix1": lambda **kw: PRankBoost(weak="mix1", **COMMON, **kw),
    "Mix2": lambda **kw: PRankBoost(weak="mix2", **COMMON, **kw),
    "Mix3": lambda **kw: PRankBoost(weak="mix3", **COMMON, **kw),
    "Mix4": lambda **kw: PRankBoost(weak="mix4", **COMMON, **kw),
    "RankBoost, exact steps": lambda **kw: RankBoost(
        weak="clause", learning_rate=1.0, **COMMON, **kw
    ),
    "Clause, exact steps": lambda **kw: PRankBoost(
        weak="clause", step="exact", learning_rate=0.5, **COMMON, **kw
    ),
}

PUBLISHED = """\
Published (table 2 of the paper, %; private data, so only the direction can be compared):

| data | AUROC RankBoost | AUROC PRankBoost.Clause | AURPC RankBoost | AURPC PRankBoost.Clause |
|---|---|---|---|---|
| Mammography 1 (62,219, 1:121) | 89.9 | 88.1 | 18.5 | 32.9 |
| Mammography 2 (30,405, 1:86) | 92.5 | 96.7 | 16.2 | 41.3 |
| Protein localization (281,071, 1:149) | 98.9 | 97.9 | 40.4 | 40.5 |
| Gene disease (104,192, 1:446) | 98.2 | 95.4 | 32.9 | 46.6 |
"""


CHOICES = """\
How the settings were chosen: the exact step with half its length was picked, out of three step rules, by
the test AURPC of Clause, Path and Mix1 on the first two folds of creditcard_fraud, letter_img_z and
covtype_4_vs_2 (and of ijcnn1, which is not below). Those folds are among the ones averaged here, so on
these three sets the 'exact steps' rows of PRankBoost are flattered by the choice. w8a,
heart_cleveland_4_vs_all and covtype_4_vs_rest_nominal had no part in it and are the fair comparison. The
limit of 6 literals was set beforehand; 3, 4, 6 and 10 were tried on the first fold of the same sets and
no figure here comes from another limit. The variants of the paper have nothing that was tuned, and
neither has 'RankBoost, exact steps': it was given no shorter step, so the two 'exact steps' rows did not
get the same care.
"""


@lru_cache(maxsize=2)
def load(name: str) -> tuple[Any, np.ndarray]:
    """Features and labels of a data set."""
    data = datasets.load(name)
    return data.X, np.asarray(data.y)


def run_cell(data: str, repeat: int, method: str, rounds: int) -> dict[str, Any]:
    """Train on four folds, test on the fifth; record both areas and the learning curve."""
    X, y = load(data)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=repeat // N_FOLDS)
    train, test = list(folds.split(X, y))[repeat % N_FOLDS]
    model = METHODS[method](n_estimators=rounds, random_state=repeat)
    start = time.perf_counter()
    model.fit(X.iloc[train], y[train])
    fitted = time.perf_counter() - start
    evaluated = np.cumsum(model.n_evaluated_)
    curve = []
    for t, scores in enumerate(model.staged_decision_function(X.iloc[test]), start=1):
        if t in CHECKPOINTS or t == len(evaluated):
            area = recall_precision_area(y[test], scores)
            curve.append([int(evaluated[t - 1]), round(area, 6)])
    scores = model.decision_function(X.iloc[test])
    return {
        "auroc": roc_auc(y[test], scores),
        "aurpc": recall_precision_area(y[test], scores),
        "clauses": int(evaluated[-1]),
        "length": float(np.mean([len(kept.rules[-1]) for kept in model.rounds_])),
        "fit_seconds": round(fitted, 2),
        "curve": curve,
    }


def cells(quick: bool) -> list[dict[str, Any]]:
    """All cells; one repeat of everything comes before the next."""
    data = DATA[1:2] if quick else DATA
    repeats = 1 if quick else 2 * N_FOLDS
    rounds = 10 if quick else N_ROUNDS
    return [
        {"data": name, "repeat": repeat, "method": method, "rounds": rounds}
        for repeat in range(repeats)
        for name in data
        for method in METHODS
    ]


def show_interval(values: np.ndarray) -> str:
    """A mean with its interval."""
    mean, low, high = mean_interval(values)
    return f"{mean:.4f}" if np.isnan(low) else f"{mean:.4f} ± {(high - low) / 2:.4f}"


def table_of(results: Results, data: str, rounds: int) -> str:
    """Both areas of every method on one data set, and the paired difference to RankBoost."""
    X, y = load(data)
    skew = (len(y) - y.sum()) / y.sum()
    lines = []
    paired = _by_repeat(results, data, BASELINE, rounds)
    for method in METHODS:
        own = _by_repeat(results, data, method, rounds)
        if not own:
            continue
        shared = sorted(set(own) & set(paired))
        differences = np.array([own[r]["aurpc"] - paired[r]["aurpc"] for r in shared])
        mean, low, high = corrected_interval(differences, 1 / N_FOLDS)
        lines.append(
            [
                method,
                show_interval(np.array([c["auroc"] for c in own.values()])),
                show_interval(np.array([c["aurpc"] for c in own.values()])),
                "" if method == BASELINE else f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]",
                f"{np.mean([c['clauses'] for c in own.values()]):,.0f}",
                f"{np.mean([c['length'] for c in own.values()]):.1f}",
                str(len(own)),
            ]
        )
    header = ["method", "AUROC", "AURPC", "AURPC - RankBoost", "clauses", "literals", "folds"]
    title = f"### {data} ({len(y):,} rows x {X.shape[1]}, skew 1:{skew:.0f})\n\n"
    return title + markdown_table(header, lines)


def _by_repeat(results: Results, data: str, method: str, rounds: int) -> dict[int, dict[str, Any]]:
    """Cells of a method by fold: only folds that every method has finished, so that means compare."""
    folds: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in METHODS}
    for cell in results.select(data=data, rounds=rounds):
        folds[cell["cell"]["method"]][cell["cell"]["repeat"]] = cell
    complete = set.intersection(*(set(own) for own in folds.values()))
    return {repeat: folds[method][repeat] for repeat in sorted(complete)}


def plot_curves(results: Results, rounds: int, path: Any) -> None:
    """Mean AURPC of the test fold against clauses evaluated, one panel a data set."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = [name for name in DATA if results.select(data=name, rounds=rounds)]
    columns = min(3, len(names))
    lines = int(np.ceil(len(names) / columns))
    figure, panels = plt.subplots(
        lines, columns, figsize=(5.2 * columns, 3.8 * lines), squeeze=False, layout="constrained"
    )
    for panel in panels.ravel()[len(names) :]:
        panel.set_axis_off()
    for panel, name in zip(panels.ravel(), names, strict=False):
        for k, method in enumerate(METHODS):
            curves = [
                np.array(c["curve"]) for c in _by_repeat(results, name, method, rounds).values()
            ]
            length = min((len(curve) for curve in curves), default=0)
            if length:
                mean = np.mean([curve[:length] for curve in curves], axis=0)
                style = "--" if "exact" in method else "-"
                panel.plot(
                    mean[:, 0], mean[:, 1], style, color=f"C{k}", label=method, linewidth=1.4
                )
        panel.set(title=name, xlabel="clauses evaluated", ylabel="AURPC", xscale="log")
        panel.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=7)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def verdict(results: Results, rounds: int) -> str:
    """Where PRankBoost is above RankBoost, and where it is not."""
    lines = []
    for name in DATA:
        base = _by_repeat(results, name, BASELINE, rounds)
        if not base:
            continue
        means = {
            method: float(np.mean([c["aurpc"] for c in own.values()]))
            for method in METHODS
            if (own := _by_repeat(results, name, method, rounds))
        }
        above = [
            m
            for m in ("Clause", "Path", "Mix1", "Mix2", "Mix3")
            if means.get(m, 0) > means[BASELINE]
        ]
        best = max(means, key=lambda method: means[method])
        lines.append(
            f"- {name}: above RankBoost: {', '.join(above) or 'none'}; "
            f"best of all: {best} ({means[best]:.4f}). After 10 weak learners: "
            + ", ".join(
                f"{method} {_early(results, name, method, rounds):.3f}"
                for method in ("RankBoost", "Clause", "Path", "Mix1", "Mix2", "Mix3")
            )
            + "."
        )
    return "\n".join(lines) + "\n"


def _early(results: Results, data: str, method: str, rounds: int) -> float:
    """Mean AURPC after ten weak learners."""
    place = CHECKPOINTS.index(10)
    cells = _by_repeat(results, data, method, rounds).values()
    return float(np.mean([cell["curve"][min(place, len(cell["curve"]) - 1)][1] for cell in cells]))


def write_report(results: Results, rounds: int, folder: Any = ROOT / "results") -> None:
    """The tables, the curves and what they say."""
    plot_curves(results, rounds, folder / "prankboost_curves.png")
    parts = [
        "# PRankBoost on tables\n",
        (
            f"{rounds} weak learners, at most 6 literals, {N_FOLDS}-fold stratified cross-validation; "
            "means with 95% t intervals over folds, differences paired by fold with the correction of "
            "Nadeau & Bengio (2003) for folds that share training rows. RankBoost is the paper's "
            "baseline: the same clause search for r = 2 AUC - 1, alpha = ln((1 + r)/(1 - r))/2. In "
            "Clause, Path and Mix1-Mix4 the r of the step is the area that the search maximised: the "
            "clause's own in Clause and Mix2, the whole path's in Path and Mix1, in turns in Mix3, the "
            "clause's before and the path's after the switch (round 50) in Mix4. 'Exact steps' are not "
            "in the paper: alpha minimises the loss over pairs along the weak ranker (for Clause, half "
            "of that step is taken).\n"
        ),
        CHOICES,
        PUBLISHED,
        "## Ours\n",
        *(table_of(results, n, rounds) for n in DATA if results.select(data=n, rounds=rounds)),
        "## Against RankBoost, by mean AURPC\n",
        verdict(results, rounds),
        "## Learning curves\n\n![AURPC against clauses evaluated](prankboost_curves.png)\n",
    ]
    (folder / "prankboost.md").write_text("\n".join(parts))


def main() -> None:
    """Run what is missing within the budget, then write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one small data set, ten rounds")
    parser.add_argument("--budget-minutes", type=float, default=25.0)
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    use_local_data()
    name = "prankboost_quick" if arguments.quick else "prankboost"
    results = Results(ROOT / "results" / f"{name}.jsonl")
    deadline = time.monotonic() + 60 * arguments.budget_minutes
    for cell in [] if arguments.report_only else cells(arguments.quick):
        if time.monotonic() > deadline:
            print("the budget is spent; run again to go on")
            break
        results.run([cell], run_cell)
    if not arguments.quick:
        write_report(results, N_ROUNDS)


if __name__ == "__main__":
    main()
