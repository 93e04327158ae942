"""pAUCBoost, its smooth partial AUC and splines, and the greedy heuristic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_rules import in_range, smooth_partial_auc

from toprank import GreedyPAUC, PAUCBoost
from toprank.binning import Bins
from toprank.columns import Columns
from toprank.metrics import partial_auc
from toprank.rules.partial_auc import SmoothPartialAUC, SplineBasis
from toprank.rules.weak_rankers import BinnedColumns

RANGES = [(0.0, 1.0), (0.0, 0.1), (0.05, 0.3), (0.3, 0.31), (0.2, 1.0)]


def draw(seed, ties, n=60):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    scores = 2 * rng.normal(size=n) + y
    return y, scores.round(0) if ties else scores, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("fpr", RANGES)
@given(seed=st.integers(0, 10**6), ties=st.booleans())
@settings(max_examples=15, deadline=None)
def test_the_range_is_exact(fpr, seed, ties):
    y, scores, weights = draw(seed, ties)
    found = SmoothPartialAUC(y > 0, weights).in_range(scores, *fpr)
    assert found == pytest.approx(in_range(y, scores, weights, *fpr), abs=1e-9)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0])
@given(seed=st.integers(0, 10**6), ties=st.booleans())
@settings(max_examples=10, deadline=None)
def test_the_grid_gives_the_sum_over_pairs(sigma, seed, ties):
    y, scores, weights = draw(seed, ties)
    smooth = SmoothPartialAUC(y > 0, weights, sigma)
    inside = smooth.in_range(scores, 0.05, 0.4)
    expected = smooth_partial_auc(y, scores, weights, inside, sigma)
    assert smooth.value(scores, inside) == pytest.approx(expected, abs=1e-4)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
def test_the_gradient_is_that_of_the_sum_over_pairs(seed):
    y, scores, weights = draw(seed, False, 30)
    smooth = SmoothPartialAUC(y > 0, weights, 0.7)
    inside = smooth.in_range(scores, 0.0, 0.5)
    gradient = smooth.gradient(scores, inside)
    numeric = np.empty(30)
    for i in range(30):
        step = np.zeros(30)
        step[i] = 1e-4
        numeric[i] = (
            smooth_partial_auc(y, scores + step, weights, inside, 0.7)
            - smooth_partial_auc(y, scores - step, weights, inside, 0.7)
        ) / 2e-4
    assert gradient == pytest.approx(numeric, abs=2e-3 * np.abs(numeric).max())
    assert gradient[y == 1].min() >= 0
    assert gradient[y == 0].max() <= 0
    assert gradient.sum() == pytest.approx(0.0, abs=1e-9)


def test_a_narrow_smoothing_gives_the_partial_auc(rng):
    y, scores, _ = draw(1, False, 400)
    smooth = SmoothPartialAUC(y > 0, np.ones(400), 1e-3)
    inside = smooth.in_range(scores, 0.02, 0.3)
    # the exact area joins points of the curve by lines, inside ties; without ties they agree
    assert smooth.value(scores, inside) == pytest.approx(
        partial_auc(y, scores, fpr=(0.02, 0.3)), abs=5e-3
    )


def test_widely_spread_scores_stay_on_a_bounded_grid():
    y = np.r_[1, 0, 1, 0]
    scores = np.array([1e9, -1e9, 0.0, 1.0])
    smooth = SmoothPartialAUC(y > 0, np.ones(4))
    assert smooth.value(scores, smooth.in_range(scores, 0, 1)) == pytest.approx(0.875, abs=0.13)


def make_rows(rng, n=1_500):
    X = rng.normal(size=(n, 5))
    y = (rng.random(n) < 0.2).astype(int)
    X[y == 1, 0] += 1.0
    X[y == 1, 1] *= 3.0  # only a curve sees this
    return X, y


@pytest.mark.parametrize("weak", ["stump", "spline"])
def test_without_a_range_the_ascent_never_falls(rng, weak):
    X, y = make_rows(rng)
    model = PAUCBoost((0, 1), 30, weak=weak, penalty=0).fit(X, y)
    assert len(model.rounds_) > 15
    assert (np.diff(model.train_loss_) < 1e-9).all()
    scores = model.decision_function(X)
    smooth = SmoothPartialAUC(y > 0, np.ones(len(y)))
    value = smooth.value(scores, smooth.in_range(scores, 0, 1))
    assert np.log(1 - value) == pytest.approx(model.train_loss_[-1], abs=1e-3)


@pytest.mark.parametrize("weak", ["stump", "spline"])
def test_the_range_is_what_is_optimised(rng, weak):
    X, y = make_rows(rng, 4_000)
    narrow = PAUCBoost((0, 0.05), 120, weak=weak).fit(X, y)
    whole = PAUCBoost((0, 1), 120, weak=weak).fit(X, y)
    at_narrow = [partial_auc(y, m.decision_function(X), fpr=(0, 0.05)) for m in (narrow, whole)]
    assert at_narrow[0] > at_narrow[1]
    at_whole = [partial_auc(y, m.decision_function(X), fpr=(0, 1)) for m in (narrow, whole)]
    assert at_whole[1] >= at_whole[0] - 0.005


@pytest.mark.parametrize("fpr", [(0, 0.02), (0, 0.1)])
def test_rounds_are_kept_up_to_the_greatest_exact_partial_auc(rng, fpr):
    n = 1_500
    y = (rng.random(n) < 0.1).astype(int)
    X = (rng.random((n, 8)) < 0.4 + 0.1 * y[:, None]).astype(float)
    # one column covers nearly all positives and most negatives: with ties at one half it looks best alone
    X[:, 0] = rng.random(n) < np.where(y == 1, 0.97, 0.6)
    weight = rng.integers(1, 4, n)
    model = PAUCBoost(fpr, 40, n_jobs=1).fit(X, y, sample_weight=weight)
    staged = [
        partial_auc(y, np.round(scores, 9), fpr=fpr, sample_weight=weight)
        for scores in model.staged_decision_function(X)
    ]
    assert len(staged) > 5
    assert int(np.argmax(staged)) == len(staged) - 1
    assert staged[-1] > 1.5 * staged[0]
    assert [kept.score for kept in model.rounds_] == pytest.approx(staged, abs=1e-12)


def test_a_range_that_starts_late(rng):
    X, y = make_rows(rng)
    model = PAUCBoost((0.2, 0.4), 40).fit(X, y)
    assert partial_auc(y, model.decision_function(X), fpr=(0.2, 0.4)) > 0.75


def test_the_scale_of_the_smoothing_is_only_a_unit(rng):
    X, y = make_rows(rng)
    one = PAUCBoost((0, 0.1), 20, penalty=0).fit(X, y)
    ten = PAUCBoost((0, 0.1), 20, penalty=0, sigma=10.0).fit(X, y)
    assert ten.decision_function(X) == pytest.approx(10 * one.decision_function(X), rel=1e-6)


# -- splines ---------------------------------------------------------------------------------------


@pytest.fixture
def basis(rng):
    X = rng.normal(size=(3_000, 1))
    columns = Columns.numeric(1)
    bins = Bins.of(X, columns.is_category, y=rng.integers(0, 2, 3_000))
    bins = BinnedColumns.named(bins, columns)
    return X, bins, SplineBasis.of(bins, 0, 6)


def test_splines_are_steps_over_the_column(basis):
    X, bins, splines = basis
    depth = splines.depth_of_bin[bins.codes(X)[0]]
    expected = np.sum([rule.mask(X) for rule in splines.rules], axis=0)
    assert np.array_equal(depth, expected)
    assert splines.depth_of_bin[255] == 0
    assert splines.levels.shape == (6, len(splines.rules))
    assert splines.levels.mean(axis=1) == pytest.approx(0, abs=1e-12)
    assert (splines.levels**2).mean(axis=1) == pytest.approx(1)


def test_splines_span_straight_lines_without_roughness(basis):
    splines = basis[2]
    cuts = np.array([rule.literals[0].value for rule in splines.rules[1:]])
    centres = np.r_[cuts[0], (cuts[1:] + cuts[:-1]) / 2, cuts[-1]]
    line = centres - centres.mean()
    coefficients = np.linalg.lstsq(splines.levels.T, line, rcond=None)[0]
    # natural splines hold every straight line exactly
    assert splines.levels.T @ coefficients == pytest.approx(line)
    bent = np.eye(6)[2]
    line_roughness = coefficients @ splines.roughness @ coefficients
    size = np.abs(coefficients).max() ** 2
    assert line_roughness < 1e-9 * size
    assert bent @ splines.roughness @ bent > 1e-3
    assert np.linalg.eigvalsh(splines.roughness).min() > -1e-10


def test_products_with_splines_are_inner_products(basis, rng):
    X, bins, splines = basis
    codes = bins.codes(X)[0]
    values = rng.normal(size=len(X))
    sums = np.bincount(codes, weights=values, minlength=256)
    full = np.column_stack([np.zeros(6), splines.levels])
    expected = full[:, splines.depth_of_bin[codes]] @ values
    assert splines.products(sums) == pytest.approx(expected)


def test_a_heavy_penalty_makes_splines_straight(rng):
    X, y = make_rows(rng, 2_000)
    X = X[:, 1:2]  # only a curve sees the positives
    free = PAUCBoost((0, 1), 30, weak="spline", penalty=0).fit(X, y)
    stiff = PAUCBoost((0, 1), 30, weak="spline", penalty=100.0).fit(X, y)
    assert free.train_loss_[-1] < stiff.train_loss_[-1] - 0.05


# -- the greedy heuristic ----------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["ranked", "greedy"])
def test_greedy_rises_with_every_column(rng, selection):
    X, y = make_rows(rng)
    X[:, 2] += 0.7 * y
    model = GreedyPAUC((0, 0.2), selection=selection, n_passes=2, random_state=0).fit(X, y)
    assert (np.diff(model.train_scores_) > 0).all()
    scores = model.decision_function(X)
    assert partial_auc(y, scores, fpr=(0, 0.2)) == pytest.approx(model.train_scores_[-1])
    single = max(partial_auc(y, s * X[:, j], fpr=(0, 0.2)) for j in range(5) for s in (1, -1))
    assert model.train_scores_[0] == pytest.approx(single)
    assert model.train_scores_[-1] > single + 0.01


def test_greedy_finds_the_best_angle_of_two_columns(rng):
    X, y = make_rows(rng, 800)
    X = np.column_stack([X[:, 0], X[:, 2] + 0.8 * y])
    model = GreedyPAUC((0, 0.3)).fit(X, y)
    unit = X / X.std(axis=0)
    angles = np.linspace(-np.pi, np.pi, 721)
    values = [
        partial_auc(y, np.cos(t) * unit[:, 0] + np.sin(t) * unit[:, 1], fpr=(0, 0.3))
        for t in angles
    ]
    assert model.train_scores_[-1] >= max(values) - 0.003


def test_greedy_does_not_depend_on_scale_or_shift(rng):
    X, y = make_rows(rng, 600)
    plain = GreedyPAUC((0, 0.2)).fit(X, y)
    moved = GreedyPAUC((0, 0.2)).fit(X * np.array([1e-3, 10, 1, 1, 4.0]) + 5, y)
    assert np.array_equal(plain.order_, moved.order_)
    assert moved.train_scores_ == pytest.approx(plain.train_scores_, abs=1e-3)


def test_greedy_leaves_constant_columns_out(rng):
    X, y = make_rows(rng, 300)
    X[:, 3] = 7.0
    model = GreedyPAUC((0, 0.2)).fit(X, y)
    assert model.coef_[3] == 0
    assert 3 not in model.order_
    flat = GreedyPAUC().fit(np.ones((20, 2)), np.arange(20) % 2)
    assert (flat.coef_ == 0).all()
    assert len(flat.order_) == 0


def test_greedy_weights_are_copies(rng):
    X, y = make_rows(rng, 200)
    weights = rng.integers(0, 3, 200)
    copies = np.repeat(np.arange(200), weights)
    weighted = GreedyPAUC((0, 0.2)).fit(X, y, weights)
    copied = GreedyPAUC((0, 0.2)).fit(X[copies], y[copies])
    assert weighted.coef_ == pytest.approx(copied.coef_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"selection": "all"}, "selection"), ({"fpr": (0, 2)}, "fpr"), ({"n_passes": 0}, "n_passes")],
)
def test_greedy_names_bad_parameters(rng, parameters, message):
    X, y = make_rows(rng, 50)
    with pytest.raises(ValueError, match=message):
        GreedyPAUC(**parameters).fit(X, y)
