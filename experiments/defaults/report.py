"""The page: the defaults against the rivals, the choice on either half, every set."""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.common import ROOT, Results, markdown_table
from experiments.defaults.methods import (
    CANDIDATES,
    CATEGORIES,
    DEFAULT,
    RIVALS,
    TWIN,
    YARDSTICK,
)
from experiments.defaults.sets import BUCKET_NAMES, all_sets

PEERS = [m for m in RIVALS if m != YARDSTICK]
METRICS = {"average_precision": "AP", "precision_at_k": "P@k", "pos_at_top": "Pos@Top"}
OBJECTIVES = tuple(m for m in CANDIDATES if m.endswith("alone") or m in (DEFAULT, TWIN))
CHOICES = tuple(m for m in CANDIDATES if m not in OBJECTIVES or m == DEFAULT)
INTRODUCTION = """# The defaults of GradientBoostingRanker

Every set is split five times at random (three times above 20,000 rows) into two thirds to train on and one
third to test on, within the classes, or by whole groups where the data has a group column. Every method has
one thread and its settings fixed, but for the tuned booster, which searches on inner splits. Categories are
given as such to the boosters and as codes to the forests; dates, also those written as text, are days for all. Figures
are means over splits, then over sets. Every choice was looked at on both halves of these sets: the linear model and its
weight, the columns drawn, the form of categories and of dates on other splits than those here (seeds 10 to 12), rounds and
rates of categories on these. That the linear model must come close to the trees was added after a first version had been
run on split 0 of all sets and had lost on a few; that run was thrown away and made again. So no figure is on sets that
nobody has seen, and split 0 is a little flattered; the table of halves says how each choice does on the half that it would
not have been made on.

"""


def write_report(results: Results) -> str:
    """Write the page and return it."""
    cells = pd.DataFrame([{**c["cell"], **c} for c in results.cells]).drop(columns="cell")
    sets = all_sets()
    text = INTRODUCTION
    rivals = [m for m in (DEFAULT, TWIN, *RIVALS) if m in set(cells["method"])]
    table = per_set(cells, rivals)
    text += f"## The default against its rivals, {len(table)} sets\n\n"
    text += f"So far {complete_splits(cells, rivals)} of {sets['splits'].sum()} splits have all of these.\n\n"
    text += by_bucket(table, sets)
    text += "\n## Losses first: every set\n\n" + every_set(table, sets)
    text += "\n## On either half of the sets\n\n" + halves(table, sets)
    text += "\n## The choice on one half, judged on the other\n\n" + by_half(cells, sets, CHOICES)
    text += "\n" + by_half(cells, sets, OBJECTIVES)
    text += "\n## Columns of more than 30 categories\n\n" + categories(cells)
    text += "\n## Other metrics\n\n" + other_metrics(cells, rivals)
    text += "\n## Time of a fit, in seconds of one processor\n\n" + times(cells, rivals)
    (ROOT / "results" / "defaults.md").write_text(text)
    return text


def per_set(
    cells: pd.DataFrame, methods: list[str], metric: str = "average_precision"
) -> pd.DataFrame:
    """Return one row for each set with the mean of each method over the splits that all of them have."""
    return _complete(cells, methods, metric).groupby("data").mean()


def complete_splits(cells: pd.DataFrame, methods: list[str]) -> int:
    """Return how many splits all of the methods have."""
    return len(_complete(cells, methods, "average_precision"))


def _complete(cells: pd.DataFrame, methods: list[str], metric: str) -> pd.DataFrame:
    wide = cells[cells["method"].isin(methods)].pivot_table(
        index=["data", "split"], columns="method", values=metric
    )
    return wide.reindex(columns=methods).dropna()


def by_bucket(table: pd.DataFrame, sets: pd.DataFrame) -> str:
    """Return mean AP over all sets and by number of positives, and the mean rank."""
    bucket = sets.loc[table.index, "bucket"]
    rows = []
    for method in table.mean().sort_values(ascending=False).index:
        parts = [float(table.loc[bucket == b, method].mean()) for b in BUCKET_NAMES]
        rank = float(table.rank(axis=1, ascending=False)[method].mean())
        rows.append([method, float(table[method].mean()), rank, *parts])
    sizes = ["sets", len(table), "", *(int((bucket == b).sum()) for b in BUCKET_NAMES)]
    header = ["method", "mean AP", "mean rank", *(f"positives {b}" for b in BUCKET_NAMES)]
    return markdown_table(header, [*rows, sizes])


def every_set(table: pd.DataFrame, sets: pd.DataFrame) -> str:
    """Return every set, those first where the default is furthest behind the best rival."""
    others = table.drop(columns=DEFAULT)
    lead = table[DEFAULT] - others.max(axis=1)
    rows = [
        [name, int(sets.loc[name, "rows"]), int(sets.loc[name, "positives"]), f"{lead[name]:+.4f}",
         others.loc[name].idxmax(), *map(float, table.loc[name])]
        for name in lead.sort_values().index
    ]  # fmt: skip
    header = ["set", "rows", "positives", "default less best rival", "best rival", *table.columns]
    return markdown_table(header, rows)


def halves(table: pd.DataFrame, sets: pd.DataFrame) -> str:
    """Return mean AP and mean rank of the default and its rivals on either half."""
    half = sets.loc[table.index, "half"]
    parts = [table[half == h] for h in (0, 1)]
    figures = [
        f for part in parts for f in (part.mean(), part.rank(axis=1, ascending=False).mean())
    ]
    rows = [[name, *(float(f[name]) for f in figures)] for name in table.columns]
    header = ["method", "first half", "mean rank", "second half", "mean rank"]
    return markdown_table(header, sorted(rows, key=lambda row: -row[1]))


def by_half(cells: pd.DataFrame, sets: pd.DataFrame, methods: tuple[str, ...]) -> str:
    """Return some candidates on either half; the best of one half is judged on the other."""
    table = per_set(cells, [m for m in methods if m in set(cells["method"])])
    half = sets.loc[table.index, "half"]
    means = table.groupby(half).mean().T
    rows = [[name, *map(float, means.loc[name])] for name in means.index]
    text = f"{len(table)} sets that have all of these:\n\n"
    text += markdown_table(["settings", "first half", "second half"], rows)
    for chosen_on in (0, 1):
        best = means[chosen_on].idxmax()
        judged = means[1 - chosen_on]
        place = int(judged.rank(ascending=False)[best])
        others = per_set(cells, [best, *PEERS]).reindex(table.index[half == 1 - chosen_on]).mean()
        rival = others[PEERS].idxmax()
        text += (
            f"\nBest on the {'first' if chosen_on == 0 else 'second'} half: {best}; on the other half "
            f"{judged[best]:.4f}, place {place} of {len(judged)}. There, on the splits that both have, it stands at "
            f"{others[best]:.4f}, the best of the other libraries, {rival}, at {others[rival]:.4f}.\n"
        )
    return text


def categories(cells: pd.DataFrame) -> str:
    """Return the forms of many categories on the sets that have such columns, and what the default makes of it."""
    table = per_set(cells, list(CATEGORIES))
    rows = [
        [name, *map(float, values)]
        for name, values in zip(table.index, table.to_numpy(), strict=True)
    ]
    mean = ["mean", *map(float, table.mean())]
    return (
        "XGBoost's own subsets of categories; numbers in their place (rates of positives in folds, or counts); and "
        "the default, which chooses between the two by inner validation where there are 100 positives.\n\n"
        + markdown_table(["set", *table.columns], [*rows, mean])
    )


def other_metrics(cells: pd.DataFrame, methods: list[str]) -> str:
    """Return the means of all metrics."""
    means = {m: per_set(cells, methods, m).mean() for m in METRICS}
    order = means["average_precision"].sort_values(ascending=False).index
    rows = [[name, *(float(means[m][name]) for m in METRICS)] for name in order]
    return markdown_table(["method", *METRICS.values()], rows)


def times(cells: pd.DataFrame, methods: list[str]) -> str:
    """Return processor seconds of a fit, and the median ratio to CatBoost's."""
    wide = cells.pivot_table(index=["data", "split"], columns="method", values="fit_seconds")
    wide = wide.reindex(columns=methods).dropna()
    few = cells[cells["train_rows"] < 2_000].groupby("method")["fit_seconds"].max()
    rows = [
        [m, float(wide[m].median()), float(wide[m].max()), float(few.get(m, np.nan)),
         float((wide[m] / wide["catboost"]).median()) if "catboost" in wide else np.nan]
        for m in methods
    ]  # fmt: skip
    header = ["method", "median", "most", "most below 2,000 rows", "median ratio to CatBoost"]
    return markdown_table(header, rows)
