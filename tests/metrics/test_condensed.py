"""Metrics of condensed lists against those of all rows."""

from __future__ import annotations

import numpy as np
import pytest

from toprank import metrics
from toprank.metrics.condensed import condense, evaluate_parts


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("decimals", [1, 6])  # many ties, and hardly any
def test_every_metric_of_the_short_list_is_that_of_the_long_one(rng, weights, decimals):
    y = rng.random(600) < 0.1
    scores = (rng.normal(size=600) + y).round(decimals)
    weight = rng.integers(0, 4, 600).astype(float) if weights else None
    short, ranks, copies = condense(y, scores, weight)
    assert len(short) <= 2 * len(np.unique(scores[y])) + 1 + len(np.unique(scores[y]))
    expected = metrics.evaluate(y.astype(int), scores, sample_weight=weight, intervals=None)
    found = metrics.evaluate(short, ranks, sample_weight=copies, intervals=None)
    assert found.keys() == expected.keys()
    for name, entry in expected.items():
        assert found[name]["value"] == pytest.approx(entry["value"], rel=1e-9, abs=1e-12), name


def test_parts_and_empty_parts(rng):
    y, scores = rng.random(90) < 0.2, rng.normal(size=90).round(1)
    places = [np.arange(0), *np.array_split(np.arange(90), 4)]
    found = evaluate_parts(lambda: [(y[k], scores[k], None) for k in places])
    whole = metrics.average_precision(y, scores)
    assert found["average_precision"]["value"] == pytest.approx(whole, rel=1e-12)


def test_labels_of_a_source():
    query = "SELECT 'bad' AS kind, 1.0 AS s UNION ALL SELECT 'good', 2.0"
    found = metrics.evaluate_source(sql=query, label="kind", score="s", pos_label="bad")
    assert found["roc_auc"]["value"] == 0.0
    with pytest.raises(ValueError, match="two labels"):
        metrics.evaluate_source(sql=query, label="kind", score="s", pos_label="worse")
    with pytest.raises(ValueError, match="NaN or infinite"):
        metrics.evaluate_source(
            sql="SELECT i AS y, NULL::DOUBLE AS s FROM range(2) t(i)", label="y", score="s"
        )
