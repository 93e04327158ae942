"""Losses against their definitions, gradients against finite differences and real swaps."""

from __future__ import annotations

import naive_pairs as naive
import numpy as np
import pytest
from cases import ALL, LAMBDA, PAIRS, SMOOTH, make

from toprank import objectives, parallel
from toprank.pairs import sums as pair_sums

SETTINGS = [
    {},
    {"ties": True},
    {"weights": True},
    {"queries": 4},
    {"ties": True, "weights": True, "queries": 3},
]


@pytest.fixture(params=["double_loop", "scan"])
def way(request, monkeypatch):
    """Both ways of summing over pairs, whatever the size of the list."""
    monkeypatch.setattr(
        pair_sums, "PAIRS_PER_ROW", {"double_loop": 10**12, "scan": 0}[request.param]
    )
    return request.param


def test_every_name_is_tested():
    assert {case.objective.name for case in ALL} == set(objectives.OBJECTIVES)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_loss_is_its_definition(rng, way, case, settings):
    y, scores, extra = make(rng, 40, case.objective, **settings)
    expected = naive.loss_of_copies(
        case.loss, y, scores, extra.get("sample_weight"), extra.get("qid"), average=case.average
    )
    assert case.objective.loss(y, scores, **extra) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_gradient_is_the_derivative_of_the_loss(rng, way, case, settings):
    y, scores, extra = make(rng, 40, case.objective, **settings)
    if getattr(case.objective, "surrogate", "") and settings.get("ties"):
        scores = scores + 0.3 * rng.random(40)  # the range's edge and the hinge are not smooth
    gradient, hessian = case.objective.gradient_hessian(y, scores, **extra)
    numeric = naive.numeric_gradient(
        lambda moved: case.objective.loss(y, moved, **extra), scores, step=1e-4
    )
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-5 * np.abs(numeric).max())
    present = extra.get("sample_weight", np.ones(40)) > 0
    assert (hessian[present] > 0).all()
    assert not gradient[~present].any()
    assert not hessian[~present].any()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_hessian_bounds_the_curvature(rng, case, settings):
    y, scores, extra = make(rng, 30, case.objective, **settings)
    if getattr(case.objective, "surrogate", "") and settings.get("ties"):
        scores = scores + 0.1 * rng.random(30)
    _, hessian = case.objective.gradient_hessian(y, scores, **extra)
    if getattr(case.objective, "surrogate", "") == "hinge":
        return  # no curvature but at the kinks
    curvature = naive.numeric_curvature(
        lambda moved: case.objective.loss(y, moved, **extra), scores
    )
    assert (curvature <= hessian * 1.001 + 1e-4 * np.abs(curvature).max()).all()


@pytest.mark.parametrize("case", LAMBDA, ids=str)
@pytest.mark.parametrize("n", [2, 5, 12, 25])
def test_delta_is_what_a_real_swap_changes(rng, case, n):
    y, scores, _ = make(rng, n, case.objective)
    deltas = case.objective.deltas(y, scores)
    np.testing.assert_allclose(deltas, naive.swap_matrix(case.metric, y, scores), atol=1e-12)


@pytest.mark.parametrize("case", [c for c in LAMBDA if "mauc" not in c.objective.name], ids=str)
def test_deltas_of_queries_are_those_of_each_query(rng, case):
    y, scores, extra = make(rng, 30, case.objective, queries=3)
    deltas = case.objective.deltas(y, scores, **extra)
    expected = np.zeros((30, 30))
    for q in range(3):
        own = np.flatnonzero(extra["qid"] == q)
        expected[np.ix_(own, own)] = naive.swap_matrix(case.metric, y[own], scores[own]) / 3
    np.testing.assert_allclose(deltas, expected, atol=1e-12)


def test_mauc_weights_levels_by_their_share_of_all_rows(rng):
    objective = objectives.get("lambda_mauc")
    y, scores, extra = make(rng, 40, objective, queries=2)
    shares = {c: np.mean(y == c) for c in np.unique(y) if c >= 1}
    deltas = objective.deltas(y, scores, **extra)
    for q in (0, 1):
        own = np.flatnonzero(extra["qid"] == q)
        swaps = naive.swap_matrix(
            lambda labels: naive.mauc_ordered(labels, shares), y[own], scores[own]
        )
        np.testing.assert_allclose(deltas[np.ix_(own, own)], swaps / 2, atol=1e-12)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_ranges_of_mauc_add_up_to_the_whole(rng, settings):
    """Where the two halves of the axis change a swap, they change it the same way round."""
    y, scores, extra = make(rng, 60, objectives.get("lambda_mauc"), **settings)
    low, high = (
        objectives.get("lambda_mauc", fpr=fpr).deltas(y, scores, **extra)
        for fpr in ((0.0, 0.3), (0.3, 1.0))
    )
    whole = objectives.get("lambda_mauc").deltas(y, scores, **extra)
    np.testing.assert_allclose(0.3 * low + 0.7 * high, whole, atol=1e-12)


def test_mauc_of_one_against_the_rest_has_no_range():
    with pytest.raises(ValueError, match="kind='ordered'"):
        objectives.get("lambda_mauc", kind="one_vs_rest", fpr=(0.0, 0.1))


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("case", LAMBDA, ids=str)
def test_lambda_loss_and_gradient_are_sums_over_pairs(rng, way, case, settings):
    y, scores, extra = make(rng, 40, case.objective, **settings)
    weight = extra.get("sample_weight", np.ones(40))
    deltas = case.objective.deltas(y, scores, **extra) * np.outer(weight, weight)
    loss = case.objective.loss(y, scores, **extra)
    assert loss == pytest.approx(naive.lambda_loss(deltas, y, scores), rel=1e-6)
    gradient, hessian = case.objective.gradient_hessian(y, scores, **extra)
    expected, curvature = naive.lambda_gradient_hessian(deltas, y, scores)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(hessian, curvature, rtol=0, atol=1e-6 * curvature.max())


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("case", LAMBDA, ids=str)
def test_lambda_gradient_is_the_derivative_with_every_delta_fixed(rng, way, case, settings):
    y, scores, extra = make(rng, 40, case.objective, **settings)
    weight = extra.get("sample_weight", np.ones(40))
    deltas = case.objective.deltas(y, scores, **extra) * np.outer(weight, weight)
    gradient, _ = case.objective.gradient_hessian(y, scores, **extra)
    numeric = naive.numeric_gradient(
        lambda moved: naive.lambda_loss(deltas, y, moved), scores, step=1e-4
    )
    np.testing.assert_allclose(gradient, numeric, rtol=0, atol=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("settings", [*SETTINGS, {"queries": 20}], ids=str)
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_forces_cancel(rng, way, case, settings):
    """What pushes one row up pushes another down: a common shift of the scores changes nothing."""
    y, scores, extra = make(rng, 200, case.objective, **settings)
    gradient, _ = case.objective.gradient_hessian(y, scores, **extra)
    assert abs(gradient.sum()) < 1e-7 * np.abs(gradient).sum()
    shifted, _ = case.objective.gradient_hessian(y, scores + 7.0, **extra)
    np.testing.assert_allclose(shifted, gradient, atol=1e-7 * np.abs(gradient).max())


@pytest.mark.parametrize("settings", [{"ties": True}, {"ties": True, "queries": 2}], ids=str)
@pytest.mark.parametrize("case", ALL, ids=str)
def test_a_weight_is_a_number_of_copies(rng, case, settings):
    y, scores, extra = make(rng, 60, case.objective, weights=True, **settings)
    weight = extra["sample_weight"].astype(int)
    row = np.repeat(np.arange(60), weight)
    copies = {"qid": extra["qid"][row]} if "qid" in extra else {}
    loss = case.objective.loss(y, scores, **extra)
    assert loss == pytest.approx(case.objective.loss(y[row], scores[row], **copies), rel=1e-9)
    gradient, hessian = case.objective.gradient_hessian(y, scores, **extra)
    of_copies = case.objective.gradient_hessian(y[row], scores[row], **copies)
    for ours, theirs in zip((gradient, hessian), of_copies, strict=True):
        summed = np.bincount(row, theirs, minlength=60)
        if ours is gradient or case.objective.name not in ("ap_sigmoid", "ndcg_sigmoid"):
            np.testing.assert_allclose(ours, summed, atol=1e-7 * np.abs(summed).max())


@pytest.mark.parametrize("case", ALL, ids=str)
def test_row_order_makes_no_difference(rng, case):
    y, scores, extra = make(rng, 80, case.objective, ties=True, weights=True, queries=2)
    gradient, hessian = case.objective.gradient_hessian(y, scores, **extra)
    shuffle = rng.permutation(80)
    other = case.objective.gradient_hessian(
        y[shuffle], scores[shuffle], **{k: v[shuffle] for k, v in extra.items()}
    )
    np.testing.assert_allclose(gradient[shuffle], other[0], atol=1e-10 * np.abs(gradient).max())
    np.testing.assert_allclose(hessian[shuffle], other[1], atol=1e-10 * hessian.max())


@pytest.mark.parametrize("case", [c for c in ALL if c.objective.name != "lambda_mauc"], ids=str)
def test_queries_are_averaged(rng, case):
    """Two copies of a list as two queries give the loss of one."""
    y, scores, _ = make(rng, 50, case.objective)
    once = case.objective.loss(y, scores)
    twice = case.objective.loss(np.tile(y, 2), np.tile(scores, 2), qid=np.repeat([0, 1], 50))
    assert twice == pytest.approx(once * (2 if case.objective.pointwise else 1), rel=1e-9)


@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("n", [300, 1500, 5000])
def test_long_lists_equal_the_double_loop(rng, monkeypatch, case, n):
    y, scores, extra = make(rng, n, case.objective, ties=n == 300)
    ours = case.objective.gradient_hessian(y, scores, **extra)
    loss = case.objective.loss(y, scores, **extra)
    monkeypatch.setattr(pair_sums, "PAIRS_PER_ROW", 10**12)
    exact = case.objective.gradient_hessian(y, scores, **extra)
    for a, b in zip(ours, exact, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6 * np.abs(b).max())
    assert loss == pytest.approx(case.objective.loss(y, scores, **extra), rel=1e-6)


@pytest.mark.parametrize("case", LAMBDA, ids=str)
def test_one_thread_and_two_agree_bit_by_bit(rng, monkeypatch, case):
    y, scores, extra = make(rng, 3000, case.objective, ties=True, weights=True)
    one = case.objective.gradient_hessian(y, scores, **extra)
    monkeypatch.setattr(parallel, "_ROWS_FOR_THREADS", 0)
    monkeypatch.setattr(parallel, "available_cores", lambda: 2)
    two = case.objective.gradient_hessian(y, scores, **extra)
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])


@pytest.mark.parametrize("k", [None, 1500, 3010, 3025, 3100])
@pytest.mark.parametrize("n_tied", [5, 60])
def test_a_tie_group_far_down_the_list_expects_the_mean_of_its_orders(k, n_tied):
    """Its discounts come from three nodes, unless the metric stops looking inside it."""
    y = np.zeros(3000 + n_tied)
    y[[0, 2, -1]] = 1.0
    scores = np.concatenate((np.arange(3000.0, 0.0, -1.0), np.zeros(n_tied)))
    deltas = objectives.get("lambda_ndcg", k=k).deltas(y, scores)
    ranks = np.arange(1.0, len(y) + 1.0)
    discounts = np.where(ranks <= (k or np.inf), 1 / np.log2(1 + ranks), 0.0)
    group, ideal = discounts[3000:], discounts[:3].sum()
    np.testing.assert_allclose(deltas[0, -2], (1 - group.mean()) / ideal, rtol=1e-9)
    apart = np.abs(group[:, None] - group).sum() / (n_tied * (n_tied - 1.0))
    np.testing.assert_allclose(deltas[-1, -2], apart / ideal, rtol=1e-6, atol=1e-12)
