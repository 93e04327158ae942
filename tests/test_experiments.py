"""The experiments' common ground: cells that survive an interruption, verdicts, one entry."""

from __future__ import annotations

import pytest

from experiments.__main__ import experiments
from experiments.common import Results, reaches


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
