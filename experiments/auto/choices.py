"""Choices of AutoRanker from kept scores: order of the portfolio, weights, folds or refit, coverage.

    python -m experiments.auto.choices collect FOLDER [--most-rows N] [--splits N] [--first N] [--minutes N]
    python -m experiments.auto.choices report FOLDER

`collect` keeps out-of-fold and test scores of every configuration on the development sets as arrays, and a run that was
stopped goes on where it was; `report` then compares choices without fitting anything, each on both halves of the sets, so
that what is chosen on one half can be judged on the other.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd

from experiments.common import ROOT, markdown_table
from experiments.defaults.sets import all_sets, half_of, read_split
from toprank.automatic import ensemble
from toprank.automatic.ensemble import (
    assess,
    cross_fitted_ensemble,
    greedy_weights,
    select_weights,
    to_log_odds,
)
from toprank.automatic.portfolio import PORTFOLIO, fit_configuration
from toprank.base import TrainingData
from toprank.columns import Columns
from toprank.folds import make_splits
from toprank.metrics import average_precision
from toprank.selection.peers import PeerRanker

N_FOLDS = 5
REFERENCE = "CatBoost"  # scored on the test rows only, with categories of its own


def collect(row: pd.Series, split: int, folder: Path) -> None:
    """Fill the folder of one split of one set: five folds and a refit of each configuration."""
    rows = read_split(row, split)
    columns = Columns.of(rows.X, dates=True)
    X, X_test, y = columns.matrix(rows.X), columns.matrix(rows.X_test), rows.y.astype(float)
    folds = make_splits(rows.y, n_splits=N_FOLDS, random_state=split)
    folder.mkdir(parents=True, exist_ok=True)
    fold = np.full(len(y), -1)
    for f in folds:
        fold[f.test] = f.fold
    np.savez(folder / "labels.npz", y=rows.y, y_test=rows.y_test, fold=fold)
    for name, configuration in PORTFOLIO.items():
        path, most = folder / f"{name}.npz", configuration.most_columns
        too_wide = most is not None and X.shape[1] > most
        if path.exists() or too_wide or not configuration.by_default:
            continue
        out, test = np.full(len(y), np.nan), []
        refit = fit_configuration(configuration, X, y, columns, seed=N_FOLDS)
        for f in folds:
            fitted = fit_configuration(configuration, X[f.train], y[f.train], columns, seed=f.fold)
            if configuration.tunes_itself:  # as in a search, where the first fold tunes for all
                configuration = configuration.with_tuned_settings(fitted)
            out[f.test] = fitted.scores(X[f.test], columns)
            test.append(fitted.scores(X_test, columns))
        np.savez(
            path, out_of_fold=out, test=np.mean(test, axis=0), refit=refit.scores(X_test, columns)
        )
    path = folder / "reference.npz"
    if not path.exists():
        model = PeerRanker("catboost", n_jobs=1, random_state=0).fit(rows.X, rows.y)
        np.savez(path, test=model.decision_function(rows.X_test))


def precision(y: np.ndarray, scores: np.ndarray, *_: object) -> float:
    return average_precision(y > 0, scores)


class KeptSplit:
    """The kept scores of one split of one set, as log-odds."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name.rsplit(" ", 1)[0]
        labels = np.load(folder / "labels.npz")
        self.y, self.y_test = labels["y"].astype(float), labels["y_test"]
        found = {
            n: np.load(folder / f"{n}.npz") for n in PORTFOLIO if (folder / f"{n}.npz").exists()
        }
        self.names, self.fold = list(found), labels["fold"]
        self.prior = np.array([PORTFOLIO[name].prior for name in self.names])
        self.held_out = np.column_stack([m["out_of_fold"] for m in found.values()])
        scales, self.columns = to_log_odds(self.data(self.held_out), self.held_out)
        self.test, self.refit = (
            np.column_stack([f(m[kind]) for f, m in zip(scales, found.values(), strict=True)])
            for kind in ("test", "refit")
        )
        self.reference = precision(self.y_test, np.load(folder / "reference.npz")["test"])
        alone = [self.value(plain_mean, [m]) for m in range(len(self.names))]
        self.usual, self.spread = float(np.median(alone)), max(float(np.std(alone)), 0.005)

    def data(self, columns: np.ndarray) -> TrainingData:
        return TrainingData(columns, self.y, None, None)

    def value(
        self, rule: Callable[..., np.ndarray], members: list[int], refit: bool = False
    ) -> float:
        """Return the test AP of the members weighted by a rule."""
        weights = rule(self.data(self.columns[:, members]), self.prior[members])
        return precision(self.y_test, (self.refit if refit else self.test)[:, members] @ weights)

    def standing(self, members: list[int]) -> float:
        """Return the test AP of the mean of members in standard deviations between them, at most two.

        On a few small sets members differ by tenths; means of AP would tell of these alone.
        """
        return float(np.clip((self.value(plain_mean, members) - self.usual) / self.spread, -2, 2))


def in_use(held_out: TrainingData, prior: np.ndarray) -> np.ndarray:
    return select_weights(held_out, precision, prior=prior)


def without_prior(held_out: TrainingData, prior: np.ndarray) -> np.ndarray:
    return select_weights(held_out, precision)


def without_stacking(held_out: TrainingData, prior: np.ndarray) -> np.ndarray:
    with mock.patch.object(ensemble, "stacking_weights", lambda rows, centre: centre):
        return in_use(held_out, prior)


def greedy(held_out: TrainingData, prior: np.ndarray) -> np.ndarray:
    return greedy_weights(held_out, precision)


def best_member(held_out: TrainingData, prior: np.ndarray) -> np.ndarray:
    values = [precision(held_out.y, column) for column in held_out.X.T]
    return np.eye(len(values))[int(np.argmax(values))]


def plain_mean(held_out: TrainingData, prior: np.ndarray) -> np.ndarray:
    return np.full(held_out.X.shape[1], 1 / held_out.X.shape[1])


RULES = {
    "weights in use: stacking around prior weights and standard errors": in_use,
    "the same without prior weights": without_prior,
    "the same without stacking": without_stacking,
    "greedy selection": greedy,
    "plain mean": plain_mean,
    "best member": best_member,
}


def greedy_order(splits: list[KeptSplit]) -> list[str]:
    """Return the configurations, each the one that helps most when it joins those before."""
    left, order = list(range(len(splits[0].names))), []
    while left:
        gains = [np.mean([s.standing([*order, m]) for s in splits]) for m in left]
        order.append(left.pop(int(np.argmax(gains))))
    return [splits[0].names[m] for m in order]


def best_portfolio(splits: list[KeptSplit]) -> list[int]:
    """Return the configurations of the greedy order up to where the mean of members is best."""
    places = {name: m for m, name in enumerate(splits[0].names)}
    order = [places[name] for name in greedy_order(splits)]
    values = [np.mean([s.standing(order[:k]) for s in splits]) for k in range(1, len(order) + 1)]
    return order[: int(np.argmax(values)) + 1]


def coverage(splits: list[KeptSplit]) -> float:
    """Return how often the 95% interval holds the test AP."""
    inside = []
    for s in splits:
        out = cross_fitted_ensemble(s.data(s.held_out), s.fold, precision, prior=s.prior)
        found = assess(s.y, out, n_rows=len(s.y_test))["average_precision"]
        inside.append(found["low"] <= s.value(in_use, list(range(len(s.names)))) <= found["high"])
    return float(np.mean(inside))


def report(folder: Path) -> str:
    """Return a page of all choices."""
    complete = [f for f in sorted(folder.iterdir()) if (f / "reference.npz").exists()]
    splits = [KeptSplit(f) for f in complete]
    most = max(len(s.names) for s in splits)
    splits = [s for s in splits if len(s.names) == most]
    everyone = list(range(most))
    halves = [[s for s in splits if half_of(s.name) == h] for h in (0, 1)]
    few = [s for s in splits if s.y.sum() < 60]
    rows = []

    def add(title: str, value: Callable[[KeptSplit], float]) -> None:
        parts = (splits, *halves, few)
        rows.append([title, *(float(np.mean([value(s) for s in part])) for part in parts)])

    for title, rule in RULES.items():
        add(title, lambda s, rule=rule: s.value(rule, everyone))
    add("refit instead of folds", lambda s: s.value(in_use, everyone, refit=True))
    for place, half in zip(("first", "second"), halves, strict=True):
        chosen = best_portfolio(half)
        named = ", ".join(splits[0].names[m] for m in chosen)
        add(
            f"portfolio made on the {place} half: {named}",
            lambda s, m=chosen: s.value(in_use, m),
        )
    default = splits[0].names.index("default booster")
    add(
        "GradientBoostingRanker(), one fit of all rows",
        lambda s: s.value(plain_mean, [default], refit=True),
    )
    add(REFERENCE, lambda s: s.reference)
    for m, name in enumerate(splits[0].names):
        add(f"{name} alone", lambda s, m=m: s.value(plain_mean, [m]))
    header = ["choice", f"{len(splits)} splits", "first half", "second half", "below 60 positives"]
    numbers = ", ".join(sorted({f.name.rsplit(" ", 1)[1] for f in complete}))
    text = f"# Choices of AutoRanker\n\nMean test AP on sets up to 4,600 rows, split number {numbers}; fold models averaged unless the row says otherwise.\n\n"
    text += markdown_table(header, rows)
    values = {row[0]: row[2:4] for row in rows}
    made = [row for row in rows if row[0].startswith("portfolio made on")]
    first, second = values[made[1][0]][0], values[made[0][0]][1]
    everything, catboost = (values[name] for name in (next(iter(RULES)), REFERENCE))
    text += (
        f"\nA portfolio made on one half is judged on the other: {first:.4f} on the first and {second:.4f} on the second "
        f"half, where all configurations have {everything[0]:.4f} and {everything[1]:.4f}, CatBoost {catboost[0]:.4f} and "
        f"{catboost[1]:.4f}. AutoRanker tries all configurations while there is time.\n"
    )
    text += f"\nThe 95% interval holds the test AP in {coverage(splits):.3f} of the splits.\n\n"
    text += "Order by what each adds to the plain mean of those before, in standard deviations between the members of a set:\n\n"
    for place, part in (
        ("all splits", splits),
        ("first half", halves[0]),
        ("second half", halves[1]),
    ):
        text += f"- {place}: {', '.join(greedy_order(part))}.\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("collect", "report"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most-rows", type=int, default=4_600)
    parser.add_argument("--most-columns", type=int, default=120)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--minutes", type=float, default=np.inf, help="begin no set after these")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.action == "report":
        page = report(options.folder)
        (ROOT / "results" / "auto_choices.md").write_text(page)
        print(page)
        return
    sets, start = all_sets(), time.perf_counter()
    sets = sets[(sets["rows"] <= options.most_rows) & (sets["features"] <= options.most_columns)]
    for split in range(options.first, options.first + options.splits):
        for name, row in sets.sample(frac=1, random_state=split).iterrows():
            if time.perf_counter() - start > 60 * options.minutes:
                return
            collect(row, split, options.folder / f"{name} {split}")
            print(f"{name} {split}", flush=True)


if __name__ == "__main__":
    main()
