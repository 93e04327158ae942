"""What must hold for every metric: weights are copies, only the order of the scores matters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import metrics
from toprank.metrics import METRICS

LISTS = [name for name, metric in METRICS.items() if metric.list_core is not None]
QUERIES = [name for name, metric in METRICS.items() if metric.takes_queries]
VARIANTS = {
    "partial_auc": [{"fpr": (0.1, 0.37)}, {"fpr": (0, 0.2), "standardize": "mcclish"}],
    "two_way_partial_auc": [{"fpr": (0, 0.5), "min_tpr": 0.25}],
    "local_auc": [{"top": 0.35}, {"top": 0.35, "ties": "group"}],
    "hit_rate": [{"top": 0.33}],
    "precision_at_k": [{"k": 2}],
    "ndcg": [{"k": 2}, {"gain": "linear"}],
    "precision_at_recall": [{"recall": 0.33}],
    "recall_at_precision": [{"precision": 0.33}],
    "list_length_for_recall": [{"recall": 0.33}, {"as_share": True}],
    "multiclass_auc": [{"kind": "one_vs_rest"}, {"fpr": (0.1, 0.4)}],
    "multiclass_precision": [{"average": "macro"}],
}
CASES = [(name, options) for name in LISTS for options in [{}, *VARIANTS.get(name, [])]]
QUERY_CASES = [(name, options) for name in QUERIES for options in [{}, *VARIANTS.get(name, [])]]


@st.composite
def weighted_lists(draw, grades: int = 2):
    """Labels, scores with ties, whole weights with zeros, and queries."""
    n = draw(st.integers(4, 14))
    y = np.array(draw(st.lists(st.integers(0, grades - 1), min_size=n, max_size=n)))
    scores = draw(st.lists(st.sampled_from([-2.0, 0.0, 0.5, 1.0]), min_size=n, max_size=n))
    weight = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    qid = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    y[:2], weight[:2], qid[:2] = (0, 1), (1, 2), 0  # both classes have weight, in one query
    return y, np.array(scores), weight, qid


@pytest.mark.parametrize(("name", "options"), CASES)
@given(rows=weighted_lists())
def test_weights_are_copies(name, options, rows) -> None:
    y, scores, weight, _ = rows
    function = METRICS[name].function
    copies = function(np.repeat(y, weight), np.repeat(scores, weight), **options)
    weighted = function(y, scores, sample_weight=weight, **options)
    assert weighted == pytest.approx(copies, abs=1e-12)


@pytest.mark.parametrize(("name", "options"), QUERY_CASES)
@given(rows=weighted_lists(grades=4))
def test_weights_are_copies_in_queries(name, options, rows) -> None:
    y, scores, weight, qid = rows
    function = METRICS[name].function
    one = function(
        *(np.repeat(a, weight) for a in (y, scores)), qid=np.repeat(qid, weight), **options
    )
    other = function(y, scores, sample_weight=weight, qid=qid, **options)
    assert other == pytest.approx(one, abs=1e-12)


@pytest.mark.parametrize(("name", "options"), CASES)
@given(rows=weighted_lists(), seed=st.integers(0, 99), fraction=st.booleans())
def test_only_the_order_of_the_scores_matters(name, options, rows, seed, fraction) -> None:
    y, scores, weight, _ = rows
    weight = np.where(weight > 0, weight + 0.5 * fraction, 0)
    function = METRICS[name].function
    value = function(y, scores, sample_weight=weight, **options)
    shuffle = np.random.default_rng(seed).permutation(len(y))
    moved = function(y[shuffle], scores[shuffle], sample_weight=weight[shuffle], **options)
    assert moved == pytest.approx(value, abs=1e-12)
    for mapped in (np.arctan(scores), 1e-300 * scores, 1e300 * scores, 7 * scores - 1e6):
        assert function(y, mapped, sample_weight=weight, **options) == pytest.approx(
            value, abs=1e-12
        )
    for labels, positive in (
        (2 * y - 1, None),
        (y == 1, None),
        (1 - y, 0),
        (np.array(["no", "yes"])[y], None),
    ):
        same = function(labels, scores, sample_weight=weight, pos_label=positive, **options)
        assert same == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(("name", "options"), CASES)
@given(rows=weighted_lists())
def test_values_lie_in_the_unit_interval_and_a_perfect_order_is_best(name, options, rows) -> None:
    y, scores, weight, _ = rows
    function = METRICS[name].function
    value = function(y, scores, sample_weight=weight, **options)
    perfect = function(y, y.astype(float), sample_weight=weight, **options)
    if METRICS[name].greater_is_better:
        # a tie group counted whole may lift the local AUC over the best list of the right length
        slack = 1.0 if options.get("ties") == "group" else 1e-12
        assert -1e-12 <= value <= perfect + slack
        assert perfect <= 1 + 1e-12
    else:
        total = weight.sum() if options.get("as_share") else 1
        recall = options.get("recall", 0.8)
        assert weight[y == 1].sum() * recall / total - 1e-12 <= value <= weight.sum() / total


@given(rows=weighted_lists())
def test_constant_scores(rows) -> None:
    y, _, weight, _ = rows
    share = np.average(y, weights=weight)
    given_weight = {"sample_weight": weight}
    flat = np.full(len(y), 3.0)
    assert metrics.roc_auc(y, flat, **given_weight) == pytest.approx(0.5)
    assert metrics.partial_auc(y, flat, fpr=(0.2, 0.6), **given_weight) == pytest.approx(0.4)
    assert metrics.pos_at_top(y, flat, **given_weight) == 0
    for name in ("average_precision", "precision_at_k", "hit_rate", "mean_precision"):
        assert METRICS[name].function(y, flat, **given_weight) == pytest.approx(share)
    assert metrics.recall_precision_area(y, flat, **given_weight) == pytest.approx(share)
    assert metrics.local_auc(y, flat, top=1, **given_weight) == pytest.approx(0.5)


@given(st.integers(1, 30), st.integers(1, 30))
def test_one_positive_at_a_rank(rank, below) -> None:
    n = rank + below
    y, scores = np.arange(1, n + 1) == rank, -np.arange(float(n))
    assert metrics.roc_auc(y, scores) == pytest.approx(below / (n - 1))
    assert metrics.average_precision(y, scores) == pytest.approx(1 / rank)
    assert metrics.precision_at_k(y, scores) == float(rank == 1)
    assert metrics.pos_at_top(y, scores) == float(rank == 1)
    assert metrics.ndcg(y, scores) == pytest.approx(1 / np.log2(1 + rank))
    assert metrics.mean_reciprocal_rank(y, scores, qid=np.zeros(n)) == pytest.approx(1 / rank)
    assert metrics.list_length_for_recall(y, scores) == rank


@given(rows=weighted_lists())
def test_reversing_the_list_turns_the_roc_curve_round(rows) -> None:
    y, scores, weight, _ = rows
    value = metrics.roc_auc(y, scores, sample_weight=weight)
    assert metrics.roc_auc(y, -scores, sample_weight=weight) == pytest.approx(1 - value)
    whole = metrics.partial_auc(y, scores, fpr=(0, 1), sample_weight=weight)
    assert whole == pytest.approx(value, abs=1e-12)
    half = [
        metrics.partial_auc(y, scores, fpr=fpr, sample_weight=weight)
        for fpr in ((0, 0.5), (0.5, 1))
    ]
    assert np.mean(half) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.float16])
def test_any_number_type(dtype) -> None:
    y = np.array([0, 1, 0, 1, 1], dtype=dtype)
    scores = np.array([1, 2, 2, 3, 0], dtype=dtype)
    assert metrics.roc_auc(y, scores) == pytest.approx(0.5833333333333334)
    assert isinstance(metrics.roc_auc(y, scores), float)


def test_tables_of_other_libraries() -> None:
    import pandas as pd
    import polars as pl

    y, scores = [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8]
    for make in (pd.Series, pl.Series, list, tuple, pd.array):
        assert metrics.roc_auc(make(y), make(scores)) == 1.0
        assert metrics.roc_auc(make(["n", "y", "n", "y"]), make(scores)) == 1.0


def test_scale_of_real_weights_does_not_matter_where_it_should_not() -> None:
    rng = np.random.default_rng(0)
    y, scores, weight = rng.random(80) < 0.3, rng.normal(size=80).round(1), rng.random(80)
    for name in ("roc_auc", "average_precision", "recall_precision_area", "local_auc", "hit_rate"):
        values = [
            METRICS[name].function(y, scores, sample_weight=weight * s) for s in (1e-6, 1, 1e9)
        ]
        assert values == pytest.approx([values[0]] * 3, rel=1e-9)
    for name in ("ndcg", "mean_precision"):  # ranks are sums of weights: the scale is part of them
        for scale in (1e-6, 1, 1e9):
            assert 0 < METRICS[name].function(y, scores, sample_weight=weight * scale) <= 1 + 1e-12
