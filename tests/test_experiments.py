"""The experiments' common ground: cells that survive an interruption, verdicts, one entry."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from experiments.__main__ import experiments
from experiments.common import Results, reaches
from experiments.gleaner import Gleaner
from toprank import RelationalData
from toprank.metrics import recall_precision_area
from toprank.rules.relational.coverage import Coverage


def test_a_cell_is_computed_once_and_a_broken_run_goes_on(tmp_path):
    calls = []

    def compute(number):
        calls.append(number)
        if number == 2 and len(calls) < 4:
            raise KeyboardInterrupt
        return {"value": number**2}

    cells = [{"number": number} for number in (1, 2, 3)]
    with pytest.raises(KeyboardInterrupt):
        Results(tmp_path / "cells.jsonl").run(cells, compute)
    Results(tmp_path / "cells.jsonl").run([cells[0], cells[2]], compute)
    results = Results(tmp_path / "cells.jsonl")
    results.run(cells, compute)
    assert calls == [1, 2, 3, 2]
    assert sorted(results.values("value")) == [1, 4, 9]


@pytest.mark.parametrize(
    ("ours", "published", "deviation", "verdict"),
    [
        (0.81, 0.80, 0.0, "reaches"),
        (0.80, 0.80, 0.0, "reaches"),
        (0.79, 0.80, 0.0, "does not reach"),
        (0.79, 0.80, 0.02, "reaches, within its deviation,"),
        (0.77, 0.80, 0.02, "does not reach"),
    ],
)
def test_reaching_is_a_matter_of_means_and_published_deviations(
    ours, published, deviation, verdict
):
    assert reaches(ours, published, deviation) == verdict


def test_every_experiment_has_a_sentence():
    found = experiments()
    assert {"sgbap", "treerank", "poise", "prankboost", "lambdamart_auc", "defaults"} <= set(found)
    assert all(len(sentence) > 20 for sentence in found.values())
    assert "common" not in found


def test_gleaner_keeps_the_best_clause_of_each_bin_and_seed():
    """Persons who know an owner are positive; others are noise."""
    rng = np.random.default_rng(0)
    names = np.array([f"p{k}" for k in range(240)])
    pairs = rng.integers(0, 240, (500, 2))
    owners = rng.random(240) < 0.15
    tables = {
        "knows": pd.DataFrame({"a": names[pairs[:, 0]], "b": names[pairs[:, 1]]}),
        "owner": pd.DataFrame({"person": names[owners]}),
        "tall": pd.DataFrame({"person": names[rng.random(240) < 0.5]}),
    }
    y = np.zeros(240, dtype=int)
    y[pairs[owners[pairs[:, 1]], 0]] = 1
    data = RelationalData(tables, pd.DataFrame({"person": names}), target="rich")
    gleaner = Gleaner(n_seeds=6, clauses_per_seed=60, n_bins=5, random_state=0)
    curve = [
        (evaluated, recall_precision_area(y, gleaner.scores(data)))
        for evaluated in gleaner.fit(data, y)
    ]
    assert [n for n, _ in curve] == sorted({n for n, _ in curve})  # ever more clauses
    assert curve[-1][1] > 0.95 > y.mean() + 0.3
    # each kept clause has its recall, and its precision x recall, among the rows that it was searched in
    learnt = np.ones(240, dtype=bool)
    tuning = gleaner.tuning.examples["person"].to_numpy()
    learnt[np.isin(names, tuning)] = False
    rows = data[learnt]
    with Coverage(rows.background, rows.codes()) as coverage:
        for place, bodies in enumerate(gleaner.kept):
            for body, quality in bodies.items():
                covered = coverage.mask(body)
                hits = (covered & (y[learnt] > 0)).sum()
                recall = hits / y[learnt].sum()
                assert min(int(recall * 5), 4) == place
                assert quality == pytest.approx(recall * hits / covered.sum())
