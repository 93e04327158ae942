"""Promise on one half of a set, count on the other: `python -m experiments promises --rounds 30`.

A model is calibrated on one half of the rows; on the other its lists are counted. A promise at 95% is kept if the rate
of the list stays within it. The count itself is a sample: `surely broken` are those whose rate exceeds the promise by
more than chance explains (exact binomial test at 5%). Ranges are exact 95% intervals of the share kept, as if lists
were independent; the lists of one set share their rows, so where its split is an unlucky one, it is so for many
models at once, and the true ranges are wider. One objective alone has too few lists to tell 93% from 95%: read the
rows of all models.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from experiments.common import ROOT, Results
from experiments.defaults.sets import _plain_column, all_sets
from toprank.folds import scores_of
from toprank.selection.models import MODELS, find_candidate, fit_model, make_model
from toprank.shortlisting import CalibratedRanker
from toprank.shortlisting.counts import probability_at_least, probability_at_most, share_interval

TRAIN_SHARE = 0.5  # the promise is about lists of as many new rows
FALSE_POSITIVE_RATES = (0.01, 0.05)
PRECISIONS = (0.5, 0.8)
PROMISES = (
    *(f"fpr {r:g}" for r in FALSE_POSITIVE_RATES),
    *(f"precision {p:g}" for p in PRECISIONS),
)
# what a cell says of the rule it was made under: nothing, or
WITHOUT_ALLOWANCE = "without allowance"
SECTIONS = {
    "The rule": None,
    "For comparison: without the allowance for a final model that differs (LEAST_EFFECT = 1)": WITHOUT_ALLOWANCE,
}
RESULTS = ROOT / "results" / "promises.jsonl"
TABLE = ROOT / "results" / "promises.md"


def promised(name: str, model: str, repeat: int, rounds: int | None) -> dict[str, Any]:
    """Calibrate on one part of a set and count what the promises come to on the other."""
    row = all_sets().loc[name]
    frame = pd.read_parquet(Path(row["folder"]) / f"{name}.parquet")
    y = frame.pop("target").to_numpy().astype(int)
    X = frame.apply(_plain_column)
    train, test = train_test_split(
        np.arange(len(y)), train_size=TRAIN_SHARE, stratify=y, random_state=repeat
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = _fit(model, X.iloc[train].reset_index(drop=True), y[train], repeat, rounds)
        scores = scores_of(fitted, X.iloc[test])
    positive = y[test] == 1
    found: dict[str, Any] = {
        "sum_of_probabilities": float(fitted.calibration_(scores).sum() / positive.sum()),
        "design_effect": fitted.staircase_.total_negatives / fitted.staircase_.effective_negatives,
    }
    for rate in FALSE_POSITIVE_RATES:
        cut = fitted.cut(fpr=rate)
        alarms, total = int((scores[~positive] > cut.threshold).sum()), int((~positive).sum())
        found[f"fpr {rate:g}"] = _count(cut.reached, alarms / total, alarms / total <= rate,
                                       float(probability_at_least(alarms, total, rate)))  # fmt: skip
    for share in PRECISIONS:
        cut = fitted.cut(precision=share)
        listed = scores > cut.threshold
        hits, total = int(positive[listed].sum()), int(listed.sum())
        measured = hits / total if total else 1.0
        entry = _count(cut.reached, measured, measured >= share,
                       float(probability_at_most(hits, total, share)))  # fmt: skip
        inside = cut.precision_low <= measured <= cut.precision_high if total else True
        found[f"precision {share:g}"] = entry | {"listed": total, "in_range": bool(inside)}
    return found


def _fit(model: str, X: pd.DataFrame, y: np.ndarray, seed: int, rounds: int | None) -> Any:
    """Fit a calibrated model; boosters with fewer rounds where asked, to cover more sets."""
    if rounds is None or find_candidate(model).estimator != "GradientBoostingRanker":
        return fit_model(model, X, y, random_state=seed)[0]
    ranker = make_model(model, seed).set_params(n_estimators=rounds, n_seeds=1)
    return CalibratedRanker(ranker, random_state=seed).fit(X, y)


def _count(reached: bool, measured: float, kept: bool, p_value: float) -> dict[str, Any]:
    return {"reached": bool(reached), "measured": measured, "kept": bool(kept),
            "surely_broken": bool(reached and not kept and p_value < 0.05)}  # fmt: skip


def write_table(results: Results) -> str:
    """Return the coverage of every promise, by model and over all of them, as Markdown."""
    lines = ["# Promises", "", " ".join(__doc__.split("\n\n")[1].split())]
    for title, rule in SECTIONS.items():
        cells = results.select(rule=rule)
        if cells:
            lines += ["", f"## {title}", "", *_section(cells)]
    return "\n".join(lines) + "\n"


def _section(cells: list[dict[str, Any]]) -> list[str]:
    """Return what was measured under one rule."""
    sets = {(cell["cell"]["name"], cell["cell"]["repeat"]) for cell in cells}
    rounds = {cell["cell"]["rounds"] for cell in cells} - {None}
    short = f", boosters of {min(rounds)} rounds" if rounds else ""
    lines = [f"{len(cells)} models on {len(sets)} halves of {len({name for name, _ in sets})} sets{short}.",
             "", "| model | promise | lists | promised | kept | surely broken | offered without promise, in "
             "their range |", "|---|---|---|---|---|---|---|"]  # fmt: skip
    by_model = {"all": cells}
    for cell in cells:
        by_model.setdefault(cell["cell"]["model"], []).append(cell)
    for model in ["all", *sorted(by_model.keys() - {"all"})]:
        lines += [_row(model, name, [cell[name] for cell in by_model[model]]) for name in PROMISES]
        sums = [cell["sum_of_probabilities"] for cell in by_model[model]]
        low, middle, high = np.quantile(sums, [0.1, 0.5, 0.9])
        lines.append(f"| {model} | probabilities sum to | {len(sums)} | | {middle:.2f} ({low:.2f} to "
                     f"{high:.2f}, 80% of the cells) of the positives | | |")  # fmt: skip
    return lines


def _row(model: str, promise: str, entries: list[dict[str, Any]]) -> str:
    """Return how often one promise was made and kept."""
    made = [entry for entry in entries if entry["reached"]]
    kept, broken = (sum(e[key] for e in made) for key in ("kept", "surely_broken"))
    offered = [e for e in entries if not e["reached"] and e.get("listed")]
    low, high = share_interval(kept, len(made), 0.95)
    share = f" ({kept / len(made):.1%}; {low:.0%} to {high:.0%})" if made else ""
    return (
        f"| {model} | {promise} | {len(entries)} | {len(made)} | {kept}{share} | {broken} | "
        f"{sum(e['in_range'] for e in offered)} of {len(offered)} |"
    )


def main() -> None:
    """Run what is not there yet, smallest sets first, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    objectives = [name for name, c in MODELS.items() if "objective" in c.parameters]
    parser.add_argument(
        "--models", default=",".join(["linear", *objectives]), help="by default every objective"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--least-rows", type=int, default=600)
    parser.add_argument("--most-rows", type=int, default=20_000)
    parser.add_argument("--most-columns", type=int, default=200)
    parser.add_argument("--rounds", type=int, help="of single-objective boosters; by default all")
    given = parser.parse_args()
    sets = all_sets().query("positives >= 50 and features <= @given.most_columns")
    inside = sets["rows"].between(given.least_rows, given.most_rows)
    names = [name for name in sets.index[inside] if not isinstance(sets.loc[name, "group"], str)]
    results = Results(RESULTS)
    cells = [
        {"name": name, "model": model, "repeat": repeat, "rounds": given.rounds}
        for repeat in range(given.repeats)
        for name in names
        for model in given.models.split(",")
    ]
    results.run(cells, promised)
    TABLE.write_text(write_table(results))
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
