"""How good `GradientBoostingRanker()` is on 114 sets, beside its rivals and other settings of its own.

Every cell fits one method on one split of one set, with one thread. The page also names the
best candidate on one half of the sets and its place on the other, and the other way round; the halves go by the
names of the sets.

    python -m experiments.defaults [--methods NAME ...] [--splits N] [--most-rows N] [--sets NAME ...]
                                   [--part 0/2] [--scores FOLDER]
    python -m experiments.defaults --report
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from experiments.common import ROOT, Results
from experiments.defaults.methods import METHODS
from experiments.defaults.report import write_report
from experiments.defaults.sets import all_sets, read_split
from toprank import metrics

RESULTS = ROOT / "results" / "defaults.jsonl"


def run_cell(data: str, split: int, method: str, keep: Path | None = None) -> dict:
    """Fit one method on one split and measure it on the test rows; `keep` is a folder for their scores."""
    rows = read_split(all_sets().loc[data], split)
    model = METHODS[method](split)
    start = time.process_time()  # one thread: what else the machine does is not counted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows.X, rows.y)
    seconds = time.process_time() - start
    scores = model.decision_function(rows.X_test)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        np.savez(keep / f"{data}.{split}.{method}.npz", y=rows.y_test, scores=scores)
    return {
        "average_precision": metrics.average_precision(rows.y_test, scores),
        "precision_at_k": metrics.precision_at_k(rows.y_test, scores),
        "pos_at_top": metrics.pos_at_top(rows.y_test, scores),
        "fit_seconds": round(seconds, 3),
        "train_rows": len(rows.y),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--splits", type=int, default=5, help="at most so many of each set")
    parser.add_argument("--most-rows", type=int, default=10**9, help="leave out larger sets")
    parser.add_argument("--sets", nargs="*", help="only these; by default all, the smallest first")
    parser.add_argument("--part", default="0/1", help="k/n: every n-th set, from the k-th on")
    parser.add_argument("--scores", type=Path, help="a folder to keep the scores of test rows in")
    parser.add_argument("--report", action="store_true", help="write the page from what is there")
    options = parser.parse_args()
    if options.report:
        print(write_report(Results(RESULTS)))
        return
    sets = all_sets()
    first, step = map(int, options.part.split("/"))
    sets = sets if options.sets is None else sets.loc[options.sets]
    sets = sets[sets["rows"] <= options.most_rows].iloc[first::step]
    cells = [
        {"data": name, "split": split, "method": method}
        for split in range(options.splits)
        for name, row in sets.iterrows()
        if split < row["splits"]
        for method in options.methods
    ]
    Results(RESULTS).run(cells, partial(run_cell, keep=options.scores))


if __name__ == "__main__":
    main()
