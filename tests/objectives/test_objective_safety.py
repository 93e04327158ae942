"""No scores, however extreme, and no labels, however few, may break a gradient."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cases import ALL, PAIRS, make
from hypothesis import given
from hypothesis import strategies as st

from toprank import objectives
from toprank.objectives import OBJECTIVES, Objective, ScoredList, get, scale_for_trees

EXTREMES = {
    "huge": lambda rng, n: 1e6 * rng.normal(size=n),
    "tiny": lambda rng, n: 1e-6 * rng.normal(size=n),
    "equal": lambda rng, n: np.zeros(n),
    "equal and far": lambda rng, n: np.full(n, -1e6),
    "one outlier": lambda rng, n: np.where(np.arange(n) == 3, 1e6, rng.normal(size=n)),
    "two camps": lambda rng, n: np.where(rng.random(n) < 0.5, 1e6, -1e6),
}


def check(objective, y, scores, **extra):
    for gradient, hessian in (
        objective.gradient_hessian(y, scores, **extra),
        objective.scaled_gradient_hessian(
            ScoredList.of(y, scores, **extra, graded=objective.graded)
        ),
    ):
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()
        present = np.asarray(extra.get("sample_weight", np.ones(len(y)))) > 0
        assert (hessian[present] > 0).all()
    assert np.isfinite(objective.loss(y, scores, **extra))


@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("n", [30, 400])
def test_extreme_scores(rng, case, extreme, n):
    y, _, extra = make(rng, n, case.objective, weights=True, queries=2)
    check(case.objective, y, EXTREMES[extreme](rng, n), **extra)


@pytest.mark.parametrize("case", ALL, ids=str)
@pytest.mark.parametrize("n", [2, 300])
def test_one_positive_and_separable(rng, case, n):
    y = np.zeros(n)
    y[0] = 1
    scores = rng.normal(size=n)
    check(case.objective, y, scores)
    for gap in (1.0, 30.0, 1e6):
        check(case.objective, y, scores + gap * y)
        check(case.objective, y, scores - gap * y)
        check(case.objective, 1 - y, scores + gap * y)


@pytest.mark.parametrize("case", PAIRS, ids=str)
@pytest.mark.parametrize("label", [0.0, 1.0])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_nothing_to_rank_is_no_loss(case, n, label):
    y, scores = np.full(n, label), np.arange(n) * 1.0
    check(case.objective, y, scores)
    if case.objective.name != "ndcg_sigmoid":  # the one with a loss inside a single level
        assert case.objective.loss(y, scores) == 0.0
        assert not case.objective.gradient_hessian(y, scores)[0].any()


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_queries_with_one_class_are_left_out(rng, case):
    y, scores, _ = make(rng, 40, case.objective)
    with_more = case.objective.loss(
        np.concatenate((y, np.zeros(5))), np.concatenate((scores, np.ones(5))),
        qid=np.repeat([0, 1], [40, 5]),
    )  # fmt: skip
    if case.objective.name == "lambda_mauc" and case.objective.kind == "ordered":
        return  # its shares of labels are those of all rows
    assert with_more == pytest.approx(case.objective.loss(y, scores), rel=1e-12)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1),
            st.one_of(st.integers(-2, 2).map(float), st.floats(-1e6, 1e6)),
            st.one_of(st.just(0.0), st.floats(1e-30, 5)),
            st.integers(0, 2),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(ALL),
)
def test_anything_goes(rows, case):
    y, scores, weight, qid = map(np.array, zip(*rows, strict=True))
    check(case.objective, y, scores.astype(float), sample_weight=weight.astype(float), qid=qid)


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_the_first_round_pulls_positives_up(case):
    """All scores equal: rows of one label get one gradient, and the signs are right."""
    y = np.zeros(1000)
    y[::97] = 1
    gradient, _ = case.objective.gradient_hessian(y, np.zeros(1000))
    assert np.ptp(gradient[y == 1]) <= 1e-12 * np.abs(gradient).max()
    assert np.ptp(gradient[y == 0]) <= 1e-12 * np.abs(gradient).max()
    if case.objective != get("lambda_mauc", kind="one_vs_rest"):
        assert gradient[y == 1].max() < 0 < gradient[y == 0].min()


@pytest.mark.parametrize("m", [2, 3, 10, 1000])
def test_auc_inside_a_tie_group_is_the_expectation(m):
    y = np.zeros(m)
    y[0] = 1
    deltas = get("lambda_auc").deltas(y, np.zeros(m))
    assert deltas[0, 1] == pytest.approx((m + 1) / 3 / (m - 1), rel=1e-12)


@pytest.mark.parametrize("name", ["lambda_auc", "lambda_ndcg", "lambda_precision"])
def test_ties_get_the_expectation_over_orders(rng, name):
    """Average the Delta of a pair over random orders of its tie groups."""
    objective = get(name)
    y = np.array([1, 0, 1, 0, 0, 1, 0])
    scores = np.array([3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 0.0])
    deltas = objective.deltas(y, scores)
    mean = np.zeros((7, 7))
    repeats = 4000
    for _ in range(repeats):
        mean += objective.deltas(y, scores + 1e-9 * rng.permutation(7)) / repeats
    np.testing.assert_allclose(deltas, mean, atol=0.03 * mean.max())


def test_average_precision_of_two_tied_rows_is_exact():
    deltas = get("lambda_map").deltas([1, 0], [0.0, 0.0])
    assert deltas[0, 1] == pytest.approx(0.5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_registry(name):
    objective = get(name)
    assert isinstance(objective, Objective)
    assert objective.name == name
    assert len(objective.summary) > 20
    assert "\n" not in objective.summary
    assert get(objective) is objective
    assert objective == get(name)
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        objective.name = "other"


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="unknown objective 'auc'; the names are logistic"):
        get("auc")
    with pytest.raises(TypeError, match="parameters go with the name"):
        get(get("logistic"), alpha=2)
    objective = get("ap_exp")
    with pytest.raises(ValueError, match="y has 2, scores has 3"):
        objective.loss([0, 1], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="NaN or infinite"):
        objective.loss([0, 1], [0.0, np.nan])
    with pytest.raises(ValueError, match="graded objective"):
        objective.loss([0, 2], [0.0, 1.0])
    with pytest.raises(ValueError, match="0 .negative. and 1"):
        objective.loss([0, np.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match="at least 0"):
        objective.loss([0, 1], [0.0, 1.0], sample_weight=[1.0, -1.0])
    with pytest.raises(ValueError, match="sample_weight has 1"):
        objective.loss([0, 1], [0.0, 1.0], sample_weight=[1.0])
    with pytest.raises(ValueError, match="qid has 1"):
        objective.loss([0, 1], [0.0, 1.0], qid=[1])
    with pytest.raises(ValueError, match="whole numbers"):
        get("lambda_ndcg").loss([0, 0.5], [0.0, 1.0])
    with pytest.raises(ValueError, match="grades above 62"):
        get("lambda_ndcg").loss([0, 100], [0.0, 1.0])
    with pytest.raises(ValueError, match="distinct relevance grades"):
        get("pairwise_logistic").loss(np.arange(300), np.zeros(300))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("ap_sigmoid", {"alpha": 0.0}),
        ("ap_sigmoid", {"self_term": 2.0}),
        ("ap_exp", {"form": "cubic"}),
        ("ndcg_sigmoid", {"alpha": np.inf}),
        ("pnorm_push", {"p": 0.5}),
        ("pauc", {"a": 0.5, "b": 0.2}),
        ("pauc", {"surrogate": "square"}),
        ("lambda_precision", {"k": 0}),
        ("lambda_ndcg", {"k": 0}),
        ("lambda_mauc", {"kind": "any"}),
        ("lambda_mauc", {"fpr": (0.5, 0.2)}),
    ],
)
def test_wrong_parameters(name, parameters):
    with pytest.raises(ValueError, match="must|needs"):
        get(name, **parameters)


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_scaling_for_trees_keeps_the_direction(rng, case):
    y, scores, _ = make(rng, 200, case.objective)
    gradient, hessian = case.objective.gradient_hessian(y, scores)
    scaled, _ = scale_for_trees(gradient, hessian, y)
    factor = np.linalg.norm(scaled) / np.linalg.norm(gradient)
    np.testing.assert_allclose(scaled, factor * gradient, rtol=1e-12)


def test_very_heavy_rows_need_no_more_memory():
    """A weight of a billion copies is not a billion ranks."""
    y, scores = np.array([1, 0, 1, 0, 0]), np.array([2.0, 1.0, 1.0, 1.0, 0.0])
    for name in ("lambda_map", "lambda_ndcg", "lambda_auc", "ndcg_sigmoid"):
        check(objectives.get(name), y, scores, sample_weight=np.full(5, 1e9))


@pytest.mark.parametrize(("n_negatives", "range_end"), [(100, 1.0), (1000, 0.3), (4000, 0.1)])
def test_trees_of_few_negatives_learn_from_a_wider_range(
    n_negatives: int, range_end: float
) -> None:
    rng = np.random.default_rng(0)
    y = (np.arange(n_negatives + 50) < 50).astype(float)
    rows = ScoredList.of(y, rng.normal(size=len(y)) + y)
    found = get("pauc").scaled_gradient_hessian(rows)
    expected = Objective.scaled_gradient_hessian(get("pauc", b=range_end), rows)
    np.testing.assert_array_equal(found, expected)
    in_range = np.count_nonzero(found[0][y == 0])
    assert min(300, n_negatives) * 0.5 < in_range <= 400
