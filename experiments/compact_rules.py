"""Compact rules against FIGS, RuleFit, SkopeRules, L1 logistic and XGBoost stumps, at equal numbers of rules.

    python -m experiments.compact_rules [--rules 10] [--methods NAME ...] [--sets 20]
    python -m experiments.compact_rules --report

A rule is a term that a reader has to look at: a conjunction with its points, a split of FIGS (its own count), a
rule or a linear term of RuleFit, a column with a coefficient, a stump. The rivals of imodels need that package
(`pip install imodels`); it is no dependency of toprank.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from experiments.common import ROOT, Results, markdown_table
from experiments.defaults.sets import Split, all_sets, read_split
from toprank import RuleScorecard, TableEncoder, metrics

RESULTS = ROOT / "results" / "compact_rules.jsonl"
# The sets that are taken: small enough for every rival, with positives to learn from, and rare ones.
MOST_ROWS = 10_000
MOST_CELLS = 65_000
FEWEST_POSITIVES = 25
MOST_POSITIVE = 1 / 3  # share of the rows
LONGEST = 3  # literals of a rule, where the method has such a limit


class Answer(NamedTuple):
    """Scores of the test rows, and how much there is to read: rules, and conditions in them."""

    scores: np.ndarray
    n_rules: int
    n_literals: int


Method = Callable[[Split, int, int], Answer]


# -- the rivals --------------------------------------------------------------------------------------


def encoded(rows: Split) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows as numbers without missing cells; categories one column each."""
    encoder = TableEncoder().fit(rows.X)
    return encoder.transform(rows.X), encoder.transform(rows.X_test)


def figs(rows: Split, n_rules: int, seed: int) -> Answer:
    """FIGS with so many splits over all of its trees."""
    from imodels import FIGSClassifier

    X, X_test = encoded(rows)
    model = FIGSClassifier(max_rules=n_rules, random_state=seed).fit(X, rows.y)
    scores = sum(tree_scores(tree, X_test) for tree in model.trees_)
    return Answer(scores, model.complexity_, model.complexity_)


def tree_scores(node: Any, X: np.ndarray) -> np.ndarray:
    """Return what a tree of FIGS adds to each row: its probabilities are cut off at 0 and 1, this is not."""
    if node.left is None and node.right is None:
        return np.full(len(X), float(np.ravel(node.value)[-1]))
    left = X[:, node.feature] <= node.threshold
    scores = np.empty(len(X))
    for side, child in ((left, node.left), (~left, node.right)):
        scores[side] = tree_scores(child, X[side])
    return scores


def rulefit(rows: Split, n_rules: int, seed: int) -> Answer:
    """RuleFit with at most so many terms, rules and linear ones together."""
    from imodels import RuleFitClassifier

    X, X_test = encoded(rows)
    model = RuleFitClassifier(max_rules=n_rules, random_state=seed).fit(X, rows.y)
    n_terms = len(model.rules_without_feature_names_) + np.count_nonzero(model.coef[: X.shape[1]])
    return Answer(model._predict_continuous_output(X_test), n_terms, int(model.complexity_))


def skope_rules(rows: Split, n_rules: int, seed: int) -> Answer:
    """SkopeRules: the rules with the greatest F1 among those at least twice as precise as all rows."""
    from imodels import SkopeRulesClassifier

    X, X_test = encoded(rows)
    share = float(rows.y.mean())
    model = SkopeRulesClassifier(
        precision_min=min(2 * share, (1 + share) / 2),
        n_estimators=30,
        max_depth=LONGEST,
        max_depth_duplication=LONGEST,
        random_state=seed,
    ).fit(X, rows.y)
    model.rules_without_feature_names_ = model.rules_without_feature_names_[:n_rules]
    kept = model.rules_without_feature_names_
    scores = model._eval_weighted_rule_sum(X_test) if kept else np.zeros(len(X_test))
    return Answer(scores, len(kept), sum(len(rule.agg_dict) for rule in kept))


def l1_logistic(rows: Split, n_rules: int, seed: int, *, refit: bool) -> Answer:
    """L1 logistic regression: of the penalties that leave so many columns, the best by inner folds.

    `refit` learns the coefficients of the columns that are left once more, with a weak L2 penalty.
    """
    X, X_test = encoded(rows)

    def fitted(C: float, rows_: np.ndarray | slice = slice(None)) -> tuple[Any, np.ndarray]:
        model = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", random_state=seed)
        model.fit(X[rows_], rows.y[rows_])
        used = np.flatnonzero(model.coef_[0])
        if refit and len(used):
            model = LogisticRegression(C=10.0, max_iter=500).fit(X[rows_][:, used], rows.y[rows_])
        else:
            used = np.arange(X.shape[1])
        return model, used

    def n_used(C: float) -> int:
        model = LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", random_state=seed)
        return int(np.count_nonzero(model.fit(X, rows.y).coef_))

    grid = []
    for C in np.geomspace(1e-3, 10, 25) * min(1.0, 1_000 / len(X)):
        used = n_used(float(C))
        if used > n_rules:
            break
        if used:
            grid.append(float(C))
    if not grid:
        return Answer(np.zeros(len(X_test)), 0, 0)
    grid = grid[-6:]
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    quality = np.zeros(len(grid))
    for train, test in folds.split(X, rows.y):
        for k, C in enumerate(grid):
            model, used = fitted(C, train)
            scores = model.decision_function(X[test][:, used])
            quality[k] += metrics.average_precision(rows.y[test], scores)
    best = grid[int(np.argmax(quality))]
    model, used = fitted(best)
    n_terms = int(np.count_nonzero(model.coef_))
    return Answer(model.decision_function(X_test[:, used]), n_terms, n_terms)


def xgboost_stumps(rows: Split, n_rules: int, seed: int) -> Answer:
    """XGBoost with so many trees of one split; the rate by inner folds."""
    from xgboost import XGBClassifier

    both = pd.concat([rows.X, rows.X_test], ignore_index=True)
    for name in both.columns[[not pd.api.types.is_numeric_dtype(t) for t in both.dtypes]]:
        both[name] = both[name].astype("category")
    X, X_test = both.iloc[: len(rows.X)], both.iloc[len(rows.X) :]

    def fitted(rate: float, X: pd.DataFrame, y: np.ndarray) -> Any:
        return XGBClassifier(
            n_estimators=n_rules, max_depth=1, learning_rate=rate, enable_categorical=True, n_jobs=1
        ).fit(X, y)

    rates = (0.3, 0.6, 1.0)
    quality = np.zeros(len(rates))
    for train, test in StratifiedKFold(3, shuffle=True, random_state=seed).split(X, rows.y):
        for k, rate in enumerate(rates):
            model = fitted(rate, X.iloc[train], rows.y[train])
            scores = model.predict(X.iloc[test], output_margin=True)
            quality[k] += metrics.average_precision(rows.y[test], scores)
    model = fitted(rates[int(np.argmax(quality))], X, rows.y)
    return Answer(model.predict(X_test, output_margin=True), n_rules, n_rules)


# -- ours --------------------------------------------------------------------------------------------


def rule_scorecard(rows: Split, n_rules: int, seed: int) -> Answer:
    """RuleScorecard at its defaults but for the number of rules: lengths by inner folds."""
    model = RuleScorecard(n_rules, n_jobs=1, random_state=seed).fit(rows.X, rows.y)
    n_literals = sum(len(kept.rules[0]) for kept in model.rounds_)
    return Answer(model.decision_function(rows.X_test), model.n_rules_, n_literals)


OURS = "RuleScorecard"
RIVALS: dict[str, Method] = {
    "FIGS": figs,
    "RuleFit": rulefit,
    "SkopeRules": skope_rules,
    "L1 logistic": lambda *a: l1_logistic(*a, refit=False),
    "L1 logistic, refit": lambda *a: l1_logistic(*a, refit=True),
    "XGBoost stumps": xgboost_stumps,
}
METHODS = {OURS: rule_scorecard, **RIVALS}


def chosen_sets() -> pd.DataFrame:
    """Return the sets of the comparison, the smallest first."""
    sets = all_sets()
    small = (sets["rows"] <= MOST_ROWS) & (sets["rows"] * sets["features"] <= MOST_CELLS)
    share = sets["positives"] / sets["rows"]
    return sets[small & (sets["positives"] >= FEWEST_POSITIVES) & (share <= MOST_POSITIVE)]


def run_cell(data: str, split: int, method: str, rules: int) -> dict[str, Any]:
    """Fit one method on one split and measure it on the test rows."""
    rows = read_split(all_sets().loc[data], split)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = METHODS[method](rows, rules, split)
    return {
        "average_precision": metrics.average_precision(rows.y_test, answer.scores),
        "precision_at_k": metrics.precision_at_k(rows.y_test, answer.scores),
        "n_rules": int(answer.n_rules),
        "n_literals": int(answer.n_literals),
        "fit_seconds": round(time.perf_counter() - start, 3),
    }


# -- the page ----------------------------------------------------------------------------------------

INTRODUCTION = """# Compact rules at equal numbers of rules

`python -m experiments.compact_rules`. Sets of at most {most_rows:,} rows and {most_cells:,} cells with at least
{positives} positives that are at most a third of the rows; two thirds to train on, one third to test on. Every
method may use at most so many rules, each as it counts them itself: conjunctions (RuleScorecard, SkopeRules),
splits over all trees (FIGS), rules and linear terms (RuleFit), columns with a coefficient (L1 logistic, which
ranks by the exact values and has hardly any ties), stumps (XGBoost). The inner choices are made on training rows
alone: lengths of rules (RuleScorecard), penalties (RuleFit, L1 logistic), the rate (XGBoost). "refit" learns
the coefficients of the columns that the L1 penalty left once more. Settings of RuleScorecard were chosen on the
first half of the sets; the second half judges them, with one exception: conditions on sets of categories were
added after a look at the figures of XGBoost's stumps on both halves. A set counts where every method has finished on the same
splits.

"""


def write_report(results: Results) -> str:
    """Write the page and return it."""
    introduction = INTRODUCTION.format(
        most_rows=MOST_ROWS, most_cells=MOST_CELLS, positives=FEWEST_POSITIVES
    )
    cells = pd.DataFrame([{**c["cell"], **c} for c in results.cells]).drop(columns="cell")
    sets = chosen_sets()
    cells = cells[cells["data"].isin(sets.index) & cells["method"].isin(METHODS)]
    text = introduction
    for rules, part in cells.groupby("rules"):
        text += f"## At most {rules} rules\n\n" + _tables(part, sets)
        text += f"### Each rival on every split that both have finished\n\n{_pairs(part, sets)}\n"
    (ROOT / "results" / "compact_rules.md").write_text(text)
    return text


def _tables(cells: pd.DataFrame, sets: pd.DataFrame) -> str:
    """Return the means over sets, by half, and every set."""
    wide = cells.pivot_table(index=["data", "split"], columns="method", values="average_precision")
    methods = [method for method in METHODS if method in wide.columns]
    wide = wide[methods].dropna()
    table = wide.groupby("data").mean().loc[[name for name in sets.index if name in wide.index]]
    half = sets.loc[table.index, "half"]
    finished = cells.set_index(["data", "split"]).loc[wide.index].reset_index()
    read = finished.groupby("method")[["precision_at_k", "n_rules", "n_literals"]].mean()
    rows = []
    for method in table.mean().sort_values(ascending=False).index:
        other = table[OURS] - table[method]
        wins = "" if method == OURS else f"{int((other > 0).sum())} : {int((other < 0).sum())}"
        p = "" if method == OURS or len(table) < 6 else f"{wilcoxon(other).pvalue:.2g}"
        rows.append(
            [method, float(table[method].mean()), *(float(table.loc[half == h, method].mean()) for h in (0, 1)),
             float(table.rank(axis=1, ascending=False)[method].mean()), wins, p,
             float(read.loc[method, "precision_at_k"]), f"{read.loc[method, 'n_rules']:.1f}",
             f"{read.loc[method, 'n_literals']:.1f}"]
        )  # fmt: skip
    header = ["method", "mean AP", "first half", "second half", "mean rank",
              "sets won : lost by RuleScorecard", "Wilcoxon p", "precision at P", "rules", "conditions"]  # fmt: skip
    n_splits = wide.groupby("data").size()
    text = (
        f"{len(table)} sets ({int((half == 0).sum())} and {int((half == 1).sum())} by half), "
        f"{n_splits.min()} to {n_splits.max()} splits a set. {_verdict(table)}\n\n"
    )
    text += markdown_table(header, rows)
    lines = [
        [name, int(sets.loc[name, "rows"]), int(sets.loc[name, "positives"]), int(sets.loc[name, "half"]),
         *map(float, table.loc[name])]
        for name in table.index
    ]  # fmt: skip
    return (
        text
        + "\n"
        + markdown_table(["set", "rows", "positives", "half", *table.columns], lines)
        + "\n"
    )


def _verdict(table: pd.DataFrame) -> str:
    """Say who is first, by mean and by rank, and against whom the lead of ours is more than chance."""
    rivals = [method for method in table.columns if method != OURS]
    beyond = [
        m for m in rivals if len(table) > 5 and wilcoxon(table[OURS] - table[m]).pvalue < 0.05
    ]
    ahead = [m for m in beyond if table[OURS].mean() > table[m].mean()]
    within = [m for m in rivals if m not in beyond]
    return (
        f"First in mean AP: {table.mean().idxmax()}; by mean rank: "
        f"{table.rank(axis=1, ascending=False).mean().idxmin()}. {OURS} is ahead beyond chance of "
        f"{', '.join(ahead) or 'none'}; within chance of {', '.join(within) or 'none'}."
    )


def _pairs(cells: pd.DataFrame, sets: pd.DataFrame) -> str:
    """Return the mean of each rival beside ours over the splits that both have finished."""
    wide = cells.pivot_table(index=["data", "split"], columns="method", values="average_precision")
    rows = []
    for method in (method for method in RIVALS if method in wide.columns):
        both = wide[[OURS, method]].dropna()
        table = both.groupby("data").mean()
        lead = table[OURS] - table[method]
        second = sets.loc[table.index, "half"] == 1
        rows.append(
            [method, len(table), len(both), float(table[OURS].mean()), float(table[method].mean()),
             f"{lead.mean():+.4f}", f"{lead[second].mean():+.4f}",
             f"{int((lead > 0).sum())} : {int((lead < 0).sum())}", f"{wilcoxon(lead).pvalue:.2g}"]
        )  # fmt: skip
    header = ["rival", "sets", "splits", OURS, "rival's mean AP", "lead", "lead on the second half",
              "sets won : lost", "Wilcoxon p"]  # fmt: skip
    return markdown_table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--rules", type=int, default=10)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument(
        "--sets", type=int, default=None, help="so many of the sets, smallest first"
    )
    parser.add_argument("--report", action="store_true", help="write the page from what is there")
    options = parser.parse_args()
    if options.report:
        print(write_report(Results(RESULTS)))
        return
    sets = chosen_sets().iloc[: options.sets]
    cells = [
        {"data": name, "split": split, "method": method, "rules": options.rules}
        for split in range(options.splits)
        for name in sets.index
        for method in options.methods
    ]
    Results(RESULTS).run(cells, run_cell)


if __name__ == "__main__":
    main()
