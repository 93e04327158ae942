"""The report: every metric once, plain types, intervals on request."""

from __future__ import annotations

import json

import numpy as np
import pytest

from toprank import metrics
from toprank.metrics import METRICS, evaluate

LISTS = {name for name, metric in METRICS.items() if metric.list_core is not None}
OVER_QUERIES = {"precision_at_k", "ndcg", "mean_average_precision", "mean_reciprocal_rank"}


@pytest.fixture
def rows(rng):
    y = (rng.random(300) < 0.2).astype(int)
    return y, (rng.normal(size=300) + y).round(1), rng.integers(0, 30, size=300)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_are_those_of_the_functions(rows, rng, weighted) -> None:
    y, scores, _ = rows
    weight = rng.uniform(0, 2, size=300) if weighted else None
    report = evaluate(y, scores, sample_weight=weight, intervals=None)
    assert set(report) == LISTS
    for name, entry in report.items():
        expected = METRICS[name].function(y, scores, sample_weight=weight)
        assert entry["value"] == pytest.approx(expected, abs=1e-12)
        assert (entry["low"], entry["high"], entry["method"]) == (None, None, None)
    assert json.loads(json.dumps(report)) == report


def test_intervals(rows) -> None:
    y, scores, _ = rows
    report = evaluate(y, scores, n_resamples=100, n_jobs=2)
    assert report == evaluate(y, scores, n_resamples=100)
    assert json.loads(json.dumps(report)) == report
    for name, entry in report.items():
        assert entry["low"] <= entry["high"]
        assert entry["method"] == ("delong" if name == "roc_auc" else "bootstrap")
        alone = metrics.interval(name, y, scores, n_resamples=100)
        assert (entry["value"], entry["low"], entry["high"]) == pytest.approx(tuple(alone))
    drawn = evaluate(y, scores, metrics=["roc_auc"], intervals="bootstrap", n_resamples=100)
    assert drawn["roc_auc"]["method"] == "bootstrap"
    few = evaluate(y, scores, intervals="delong")
    assert {name for name, entry in few.items() if entry["low"] is not None} == {"roc_auc"}
    none = evaluate(y, scores, n_resamples=0)
    assert {name for name, entry in none.items() if entry["low"] is not None} == {"roc_auc"}


def test_queries(rows) -> None:
    y, scores, qid = rows
    y = np.where(qid < 5, 0, y)
    report = evaluate(y, scores, qid=qid, n_resamples=50)
    assert set(report) == LISTS | OVER_QUERIES
    for name in OVER_QUERIES:
        entry = report[name]
        value, skipped = METRICS[name].function(y, scores, qid=qid, return_skipped=True)
        assert entry["value"] == pytest.approx(value)
        assert (entry["n_skipped"], entry["n_queries"]) == (skipped, 30 - skipped)
        assert skipped >= 5
        assert entry["low"] <= entry["value"] <= entry["high"]
    assert report["roc_auc"]["value"] == metrics.roc_auc(y, scores)
    assert "n_skipped" not in report["roc_auc"]


def test_grades(rows, rng) -> None:
    _, scores, qid = rows
    y = rng.integers(0, 4, size=300)
    graded = {"ndcg", "multiclass_auc", "multiclass_precision"}
    assert set(evaluate(y, scores, intervals=None)) == graded
    report = evaluate(y, scores, n_resamples=50)
    for name, entry in report.items():
        assert entry["value"] == pytest.approx(METRICS[name].function(y, scores))
        assert entry["low"] <= entry["value"] <= entry["high"]
    assert set(evaluate(y, scores, qid=qid, intervals=None)) == graded | OVER_QUERIES
    assert set(evaluate(y, scores, pos_label=3, intervals=None)) == LISTS


def test_choice_and_parameters(rows) -> None:
    y, scores, qid = rows
    report = evaluate(
        y,
        scores,
        metrics=["partial_auc", "precision_at_k"],
        parameters={"precision_at_k": {"k": np.int64(10)}, "partial_auc": {"fpr": (0, 0.02)}},
        n_resamples=20,
    )
    assert list(report) == ["partial_auc", "precision_at_k"]
    assert report["precision_at_k"]["value"] == metrics.precision_at_k(y, scores, k=10)
    assert report["precision_at_k"]["parameters"] == {"k": 10}
    assert report["partial_auc"]["parameters"] == {"fpr": [0.0, 0.02], "standardize": None}
    assert json.loads(json.dumps(report)) == report
    assert list(evaluate(y, scores, metrics="roc_auc")) == ["roc_auc"]
    assert list(evaluate(y, scores, metrics=["multiclass_auc"], intervals=None, qid=qid))
    with pytest.raises(ValueError, match="Unknown metric"):
        evaluate(y, scores, metrics=["area"])
    with pytest.raises(ValueError, match="not among"):
        evaluate(y, scores, metrics=["roc_auc"], parameters={"ndcg": {"k": 3}})
    with pytest.raises(TypeError, match="no parameter"):
        evaluate(y, scores, parameters={"roc_auc": {"k": 3}})
    with pytest.raises(ValueError, match="pass qid"):
        evaluate(y, scores, metrics=["mean_reciprocal_rank"])
    with pytest.raises(ValueError, match="intervals"):
        evaluate(y, scores, intervals="yes")
    with pytest.raises(TypeError, match="names"):
        evaluate(y, scores, metrics=[len])


def test_bad_rows_raise_as_in_the_metrics(rows) -> None:
    y, scores, _ = rows
    with pytest.raises(ValueError, match="one class"):
        evaluate(np.ones(300), scores)
    with pytest.raises(ValueError, match="NaN"):
        evaluate(y, np.where(scores > 1, np.nan, scores))
    with pytest.raises(ValueError, match="rows differ"):
        evaluate(y, scores[1:])


def test_public_names() -> None:
    for name in metrics.__all__:
        assert getattr(metrics, name) is not None
    assert dir(metrics) == sorted(metrics.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = metrics.nothing
    for name, metric in METRICS.items():
        assert metric.function is getattr(metrics, name)
        assert metric.summary
