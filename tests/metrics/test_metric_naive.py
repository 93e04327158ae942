"""The metrics against their definitions: pairs, thresholds, and all orders of tied rows."""

from __future__ import annotations

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import metrics


@st.composite
def small_lists(draw, max_rows: int = 7, grades: int = 2):
    """Labels with at least two classes, and scores with many ties."""
    n = draw(st.integers(2, max_rows))
    y = draw(st.lists(st.integers(0, grades - 1), min_size=n, max_size=n))
    scores = draw(st.lists(st.integers(-2, 2).map(float), min_size=n, max_size=n))
    if len(set(y)) == 1:
        y[draw(st.integers(0, n - 1))] ^= 1
    return y, scores


def distinct(seed: int, positives: int = 20, negatives: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """A list without ties."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], [positives, negatives])
    return y, rng.normal(size=len(y)) + y


@given(small_lists(max_rows=12))
def test_pairs_and_thresholds(rows) -> None:
    y, scores = rows
    assert metrics.roc_auc(y, scores) == pytest.approx(naive.pair_auc(y, scores), abs=1e-12)
    assert metrics.average_precision(y, scores) == pytest.approx(
        naive.average_precision(y, scores), abs=1e-12
    )
    assert metrics.pos_at_top(y, scores) == pytest.approx(naive.pos_at_top(y, scores), abs=1e-12)
    assert metrics.recall_precision_area(y, scores) == pytest.approx(
        naive.recall_precision_area(y, scores), abs=1e-9
    )


@given(small_lists(), st.integers(1, 7))
def test_expected_values_over_tie_orders(rows, k) -> None:
    y, scores = rows
    k = min(k, len(y))
    expected = naive.expected(lambda labels: naive.precision_of_first(labels, k), y, scores)
    assert metrics.precision_at_k(y, scores, k=k) == pytest.approx(expected, abs=1e-12)
    at_positives = naive.expected(
        lambda labels: naive.precision_of_first(labels, sum(labels)), y, scores
    )
    assert metrics.precision_at_k(y, scores) == pytest.approx(at_positives, abs=1e-12)
    assert metrics.mean_precision(y, scores) == pytest.approx(
        naive.expected(naive.mean_precision, y, scores), abs=1e-12
    )
    one_query = np.zeros(len(y))
    assert metrics.mean_reciprocal_rank(y, scores, qid=one_query) == pytest.approx(
        naive.expected(naive.reciprocal_rank, y, scores), abs=1e-12
    )


@given(small_lists(), st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_hit_rate_is_the_precision_of_a_share(rows, top) -> None:
    y, scores = rows
    size = top * len(y)
    expected = naive.expected(lambda labels: naive.precision_of_first(labels, size), y, scores)
    assert metrics.hit_rate(y, scores, top=top) == pytest.approx(expected, abs=1e-12)


@given(small_lists(grades=4), st.sampled_from([None, 1, 2, 3]))
def test_ndcg_over_tie_orders(rows, k) -> None:
    y, scores = rows
    expected = naive.expected(lambda labels: naive.ndcg(labels, k), y, scores)
    assert metrics.ndcg(y, scores, k=k) == pytest.approx(expected, abs=1e-12)


@given(small_lists(), st.sampled_from([None, 1, 3]))
def test_ndcg_of_two_classes_has_two_ways(rows, k) -> None:
    """One list of two classes goes along the staircase in reports and intervals."""
    y, scores = rows
    report = metrics.evaluate(
        y, scores, metrics=["ndcg"], parameters={"ndcg": {"k": k}}, intervals=None
    )
    assert report["ndcg"]["value"] == pytest.approx(metrics.ndcg(y, scores, k=k), abs=1e-12)


@given(
    small_lists(max_rows=10),
    st.sampled_from([(0, 1), (0, 0.1), (0.2, 0.55), (0.9, 1)]),
    st.sampled_from([0.0, 0.3, 0.5, 0.9]),
)
def test_areas_by_numerical_integration(rows, fpr, floor) -> None:
    y, scores = rows
    width = fpr[1] - fpr[0]
    area = naive.integrate_roc(y, scores, *fpr) / width
    assert metrics.partial_auc(y, scores, fpr=fpr) == pytest.approx(area, abs=1e-4)
    above = naive.integrate_roc(y, scores, *fpr, floor) / (width * (1 - floor))
    got = metrics.two_way_partial_auc(y, scores, fpr=fpr, min_tpr=floor)
    assert got == pytest.approx(above, abs=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_areas_by_pairs(seed) -> None:
    y, scores = distinct(seed)
    for first, last in [(0, 5), (0, 50), (10, 25), (49, 50)]:
        fpr = (first / 50, last / 50)
        expected = naive.pair_partial_auc(y, scores, first, last)
        assert metrics.partial_auc(y, scores, fpr=fpr) == pytest.approx(expected, abs=1e-12)
        for skipped in (0, 5, 19):
            expected = naive.pair_partial_auc(y, scores, first, last, skipped)
            got = metrics.two_way_partial_auc(y, scores, fpr=fpr, min_tpr=skipped / 20)
            assert got == pytest.approx(expected, abs=1e-12)
    for size in (1, 7, 14, 35, 70):
        expected = naive.pair_local_auc(y, scores, size)
        for ties in ("split", "group"):
            got = metrics.local_auc(y, scores, top=size / 70, ties=ties)
            assert got == pytest.approx(expected, abs=1e-12)


@given(small_lists(max_rows=10), st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]))
def test_local_auc_where_the_control_line_meets_the_curve(rows, top) -> None:
    y, scores = rows
    fpr, tpr = naive.roc_corners(y, scores)
    p = np.mean(y)
    flagged = p * tpr + (1 - p) * fpr
    cut_fpr, cut_tpr = np.interp(top, flagged, fpr), np.interp(top, flagged, tpr)
    area = naive.integrate_roc(y, scores, 0, cut_fpr) if cut_fpr > 0 else 0.0
    expected = cut_tpr * (1 - cut_fpr) + area
    assert metrics.local_auc(y, scores, top=top) == pytest.approx(expected, abs=1e-4)
    group = np.flatnonzero(flagged >= top - 1e-12)[0]
    area = naive.integrate_roc(y, scores, 0, fpr[group]) if fpr[group] > 0 else 0.0
    expected = tpr[group] * (1 - fpr[group]) + area
    got = metrics.local_auc(y, scores, top=top, ties="group")
    assert got == pytest.approx(expected, abs=1e-4)
    if top <= p:
        assert metrics.local_auc(y, scores, top=top) <= top / p + 1e-12


@given(small_lists(max_rows=12), st.sampled_from([0.1, 0.3, 0.55, 0.8, 1.0]))
def test_price_of_a_recall_over_all_thresholds(rows, share) -> None:
    y, scores = np.array(rows[0]), np.array(rows[1])
    lists = [scores >= threshold for threshold in np.unique(scores)[::-1]]
    precision = np.array([y[flagged].mean() for flagged in lists])
    recall = np.array([y[flagged].sum() / y.sum() for flagged in lists])
    length = np.array([flagged.sum() for flagged in lists])
    enough = recall >= share - 1e-12
    got = metrics.precision_at_recall(y, scores, recall=share)
    assert got == pytest.approx(precision[enough].max(), abs=1e-12)
    assert metrics.list_length_for_recall(y, scores, recall=share) == length[enough].min()
    assert metrics.list_length_for_recall(y, scores, recall=share, as_share=True) == pytest.approx(
        length[enough].min() / len(y)
    )
    clean = precision >= share - 1e-12
    best = recall[clean].max() if clean.any() else 0.0
    got = metrics.recall_at_precision(y, scores, precision=share)
    assert got == pytest.approx(best, abs=1e-12)


@given(small_lists(max_rows=10, grades=4), st.sampled_from(["ordered", "one_vs_rest"]))
def test_classes_by_pairs(rows, kind) -> None:
    y, scores = rows
    areas = metrics.per_class_auc(y, scores, kind=kind)
    expected = naive.class_auc(y, scores, kind)
    assert areas == pytest.approx(expected, abs=1e-12)
    assert metrics.multiclass_auc(y, scores, kind=kind) == pytest.approx(
        naive.multiclass_auc(y, scores, kind), abs=1e-12
    )


@given(small_lists(max_rows=6, grades=3), st.sampled_from(["micro", "macro"]))
def test_class_precision_over_tie_orders(rows, average) -> None:
    y, scores = rows
    expected = naive.expected(lambda labels: naive.multiclass_precision(labels, average), y, scores)
    got = metrics.multiclass_precision(y, scores, average=average)
    assert got == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("fpr", [(0, 0.3), (0.25, 0.6)])
def test_partial_areas_of_classes(fpr) -> None:
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 3, size=60), rng.normal(size=60).round(1)
    for kind in ("ordered", "one_vs_rest"):
        for c, area in metrics.per_class_auc(y, scores, kind=kind, fpr=fpr).items():
            positive = y >= c if kind == "ordered" else y == c
            assert area == pytest.approx(metrics.partial_auc(positive, scores, fpr=fpr), abs=1e-12)


def test_one_vs_rest_does_not_see_the_order() -> None:
    y, scores = np.repeat([0, 1, 2, 3], 5), np.arange(20.0)
    for direction in (1, -1):
        got = metrics.multiclass_auc(y, direction * scores, kind="one_vs_rest")
        assert got == pytest.approx(0.5)
    assert metrics.multiclass_auc(y, scores) == 1.0
    assert metrics.multiclass_auc(y, -scores) == 0.0


def test_queries_are_ranked_apart_and_averaged() -> None:
    rng = np.random.default_rng(5)
    qid = rng.choice(["a", "b", "c", "d"], size=60)
    y, scores = rng.integers(0, 3, size=60), rng.normal(size=60).round(1)
    y[qid == "c"] = 0
    scored = ["a", "b", "d"]
    shares = {float(c): float(np.mean(y == c)) for c in (0, 1, 2)}
    for kind in ("ordered", "one_vs_rest"):
        each = [naive.multiclass_auc(y[qid == q], scores[qid == q], kind, shares) for q in scored]
        got = metrics.multiclass_auc(y, scores, kind=kind, qid=qid, return_skipped=True)
        assert got == (pytest.approx(np.mean(each), abs=1e-12), 1)
        per_class = metrics.per_class_auc(y, scores, kind=kind, qid=qid)
        lists = [naive.class_auc(y[qid == q], scores[qid == q], kind) for q in scored]
        for c, area in per_class.items():
            assert area == pytest.approx(np.mean([one[c] for one in lists]), abs=1e-12)
    average = [naive.average_precision((y > 0)[qid == q], scores[qid == q]) for q in scored]
    assert metrics.mean_average_precision(y, scores, qid=qid) == pytest.approx(np.mean(average))
    gains = [metrics.ndcg(y[qid == q], scores[qid == q], k=5) for q in scored]
    assert metrics.ndcg(y, scores, k=5, qid=qid) == pytest.approx(np.mean(gains))
    tops = [metrics.precision_at_k((y > 0)[qid == q], scores[qid == q]) for q in scored]
    assert metrics.precision_at_k(y, scores, qid=qid) == pytest.approx(np.mean(tops))
    for average in ("micro", "macro"):
        shares_right = [
            metrics.multiclass_precision(y[qid == q], scores[qid == q], average=average)
            for q in scored
        ]
        got = metrics.multiclass_precision(y, scores, qid=qid, average=average, return_skipped=True)
        assert got == (pytest.approx(np.mean(shares_right)), 1)


def test_preferences() -> None:
    z = np.array([1, -1, 1, 0, -1])
    scores = np.array([[2, 1], [2, 1], [3, 3], [9, 1], [0, 5]], dtype=float)
    assert metrics.preference_auc(z, scores) == pytest.approx((1 + 0 + 0.5 + 1) / 4)
    assert metrics.preference_auc(z, scores[:, 0] - scores[:, 1]) == pytest.approx(2.5 / 4)
    weight = [2, 1, 1, 7, 0]
    assert metrics.preference_auc(z, scores, sample_weight=weight) == pytest.approx(2.5 / 4)
    assert metrics.preference_auc(z[:2] > 0, scores[:2]) == pytest.approx(0.5)
    assert metrics.preference_auc(["l", "r"], scores[:2], pos_label="l") == pytest.approx(0.5)
    assert metrics.preference_auc([1], [[1e308, -1e308]]) == 1.0
