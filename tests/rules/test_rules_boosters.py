"""Weights, steps and losses of the boosters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_rules import pair_loss
from scipy.optimize import minimize_scalar

from toprank import PNormPush, RankBoost
from toprank.binning import Bins
from toprank.columns import Columns
from toprank.rules.boosters import (
    PRankBooster,
    RankBooster,
    bound_step,
    contributions,
    exact_path_step,
    exact_step,
    initial_weights,
)
from toprank.rules.weak_rankers import (
    BinnedColumns,
    BinnedRows,
    ClauseSource,
    CurvePath,
    SearchPath,
    StumpSource,
)
from toprank.stopping import EarlyStopping


def rows(rng, n=120, share=0.25):
    X = rng.normal(size=(n, 4)).round(1)
    y = (rng.random(n) < share).astype(float)
    y[:2] = 0, 1
    X[y == 1, 0] += 1
    return X, y, rng.integers(1, 4, n).astype(float)


def binned(X, y, weights=None):
    columns = Columns.numeric(X.shape[1])
    bins = Bins.of(X, columns.is_category, weights, y=y)
    return BinnedRows(BinnedColumns.named(bins, columns), bins.codes(X))


@pytest.mark.parametrize("push", [1.0, 4.0])
@pytest.mark.parametrize("step", ["exact", "bound"])
@pytest.mark.parametrize("weak", ["stump", "clause"])
def test_the_loss_falls_every_round_and_is_the_naive_one(rng, push, step, weak):
    X, y, weights = rows(rng)
    source = {"stump": StumpSource, "clause": ClauseSource}[weak](binned(X, y, weights))
    booster = RankBooster(source, y, weights, push=push, step=step)
    scores, before = np.zeros(len(y)), 0.0
    for _ in range(15):
        found = next(booster)
        scores += contributions(booster.depth, found.levels, found.step)
        assert found.log_loss < before
        assert np.exp(found.log_loss) == pytest.approx(pair_loss(y, scores, weights, push))
        before = found.log_loss


def test_a_push_of_one_is_rankboost(rng):
    X, y, weights = rows(rng)
    plain = RankBoost(20).fit(X, y, weights)
    pushed = PNormPush(1.0, 20).fit(X, y, weights)
    assert plain.rules_.equals(pushed.rules_)
    assert np.array_equal(plain.decision_function(X), pushed.decision_function(X))


@pytest.mark.parametrize("push", [1.0, 3.0])
def test_weights_are_the_shares_of_the_loss(rng, push):
    X, y, sample_weight = rows(rng)
    booster = RankBooster(StumpSource(binned(X, y)), y, sample_weight, push=push)
    scores = np.zeros(len(y))
    for _ in range(10):
        found = next(booster)
        scores += contributions(booster.depth, found.levels, found.step)
    positive = y == 1
    expected = sample_weight * np.where(positive, np.exp(-scores), np.exp(push * scores))
    expected[positive] /= expected[positive].sum()
    expected[~positive] /= expected[~positive].sum()
    assert booster.weights == pytest.approx(expected)


@pytest.mark.parametrize("weak", ["clause", "path", "mix1", "mix2", "mix3", "mix4"])
def test_prankboost_weights_keep_their_totals(rng, weak):
    X, y, sample_weight = rows(rng, n=400, share=0.1)
    positive = y == 1
    source = ClauseSource(binned(X, y))
    booster = PRankBooster(source, y, sample_weight, weak=weak, switch_at=5)
    skew = sample_weight[~positive].sum() / sample_weight[positive].sum()
    scores = np.zeros(len(y))
    for _ in range(10):
        found = next(booster)
        scores += contributions(booster.depth, found.levels, found.step)
        assert booster.weights[positive].sum() == pytest.approx(1.0)
        assert booster.weights[~positive].sum() == pytest.approx(skew)
        assert found.step == pytest.approx(0.5 * np.log((1 + found.score) / (1 - found.score)))
    expected = sample_weight * np.where(positive, np.exp(-scores), np.exp(scores))
    expected[positive] /= expected[positive].sum()
    expected[~positive] *= skew / expected[~positive].sum()
    assert booster.weights == pytest.approx(expected)


@pytest.mark.parametrize("weak", ["clause", "path", "mix1", "mix2"])
def test_prankboost_with_exact_steps_lowers_the_naive_loss(rng, weak):
    X, y, weights = rows(rng)
    source = ClauseSource(binned(X, y, weights))
    booster = PRankBooster(source, y, weights, weak=weak, step="exact")
    scores, before = np.zeros(len(y)), 0.0
    for _ in range(10):
        found = next(booster)
        scores += contributions(booster.depth, found.levels, found.step)
        assert found.log_loss < before
        assert np.exp(found.log_loss) == pytest.approx(pair_loss(y, scores, weights))
        before = found.log_loss


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_the_exact_step_of_a_path_minimises_the_loss(seed, n_rules):
    rng = np.random.default_rng(seed)
    levels = np.append(np.sort(rng.random(n_rules - 1)), 1.0)
    p, q = rng.dirichlet(np.ones(n_rules + 1), size=2)
    h = np.append(0.0, levels)

    def log_loss(step):
        return np.log(p @ np.exp(-step * h)) + np.log(q @ np.exp(step * h))

    found = exact_path_step(levels, p, q)
    best = minimize_scalar(log_loss, bounds=(0, 13.9), method="bounded", options={"xatol": 1e-9})
    assert log_loss(found) <= min(best.fun, 0.0) + 1e-4
    one = exact_path_step(np.ones(1), np.array([0.3, 0.7]), np.array([0.9, 0.1]))
    assert one == pytest.approx(exact_step(0.7, 0.1))


def test_initial_weights_preserve_the_skew(rng):
    y = np.array([1.0, 0, 0, 0, 1])
    weights = initial_weights(y, None, 1.5)
    assert weights == pytest.approx([0.5, 0.5, 0.5, 0.5, 0.5])  # all rows alike at the skew
    weights = initial_weights(y, np.array([3.0, 1, 1, 2, 1]), 1.0)
    assert weights == pytest.approx([0.75, 0.25, 0.25, 0.5, 0.25])


SHARE = st.floats(0.001, 0.999)


@given(SHARE, SHARE, st.floats(1, 20))
def test_the_exact_step_minimises_the_loss(p, q, push):
    def log_loss(step):
        positives = np.log(p * np.exp(-step) + 1 - p)
        return push * positives + np.logaddexp(np.log(q) + push * step, np.log(1 - q))

    found = exact_step(p, q, push)
    best = minimize_scalar(log_loss, bounds=(-15, 15), method="bounded", options={"xatol": 1e-9})
    assert log_loss(found) <= best.fun + 1e-9
    # the bound's step lies between no step and the exact one
    bound = bound_step(p, q, push)
    assert abs(bound) <= abs(found) + 1e-12
    assert bound * found >= 0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 20))
def test_steps_stay_finite_and_clipping_keeps_their_direction(p, q, push):
    step = exact_step(p, q, push)
    assert np.isfinite(step)
    assert step * (p - q) >= 0
    assert np.isfinite(bound_step(p, q, push))


class OnePath:
    """A source that always finds the same path, and notes what it was asked for."""

    def __init__(self, y, depth):
        self.y, self.depth, self.asked = y, depth, []

    def best(self, y, weights, score="auc"):
        self.asked.append(score)
        points = [
            (weights[(self.depth >= k) & y].sum(), weights[(self.depth >= k) & ~y].sum())
            for k in (1, 2, 3)
        ]
        positives, negatives = map(np.array, zip(*points, strict=True))
        return SearchPath(("a", "b", "c"), self.depth, positives, negatives, 0.4, 7)


@pytest.fixture
def one_path(rng):
    y = np.r_[np.ones(20), np.zeros(80)]
    depth = np.r_[rng.integers(0, 4, 20), rng.integers(0, 3, 80)].astype(np.uint8)
    return y, OnePath(y, depth)


KEPT = {
    "clause": [("clause", 1)] * 4,
    "path": [("path", 3)] * 4,
    "mix1": [("path", 1)] * 4,
    "mix2": [("clause", 3)] * 4,
    "mix3": [("clause", 1), ("path", 3)] * 2,
    "mix4": [("clause", 1)] * 2 + [("path", 1)] * 2,
}


@pytest.mark.parametrize("weak", KEPT)
def test_variants_search_and_keep_what_they_say(one_path, weak):
    y, source = one_path
    booster = PRankBooster(source, y, weak=weak, switch_at=2)
    rounds = [next(booster) for _ in range(4)]
    assert list(zip(source.asked, (len(r.rules) for r in rounds), strict=True)) == KEPT[weak]
    assert all(r.rules[-1] == "c" and r.levels[-1] == 1.0 for r in rounds)


def test_a_kept_path_gives_rows_the_share_of_the_area(one_path):
    y, source = one_path
    booster = PRankBooster(source, y, weak="path")
    weights = booster.weights.copy()
    found = next(booster)
    path = CurvePath(1.0, 4.0)
    for k in (1, 2, 3):
        covered = source.depth >= k
        path = path.extended(weights[covered & (y == 1)].sum(), weights[covered & (y == 0)].sum())
    assert found.levels == pytest.approx(path.levels())
    values = contributions(booster.depth, found.levels, found.step)
    assert values[source.depth == 0] == pytest.approx(0.0)
    assert values[source.depth == 3] == pytest.approx(found.step)
    assert values[source.depth == 1] == pytest.approx(found.step * path.levels()[0])


def test_mix4_waits_for_the_switch(one_path):
    y, source = one_path
    booster = PRankBooster(source, y, weak="mix4")
    for _ in range(3):
        next(booster)
    booster.late = True
    next(booster)
    assert source.asked == ["clause"] * 3 + ["path"]


@pytest.mark.parametrize("greater_is_better", [True, False])
def test_mix4_switches_when_the_validation_metric_stalls(one_path, greater_is_better):
    y, source = one_path
    booster = PRankBooster(source, y, weak="mix4", switch_at="stall")
    stopping = EarlyStopping(None, greater_is_better)
    improving = np.arange(4.0) if greater_is_better else -np.arange(4.0)
    for value in [*improving, *[improving[0]] * 11]:
        next(booster)
        stopping.record(value)
        booster.observe(stopping)
    # the best of 4 rounds, and 10 without anything better
    assert source.asked == ["clause"] * 14 + ["path"]


def test_a_perfect_rule_has_a_finite_step(rng):
    y = np.r_[np.ones(5), np.zeros(50)]
    table = binned(y[:, None] + 0.0, y)
    for booster in (
        RankBooster(StumpSource(table), y, push=4),
        PRankBooster(ClauseSource(table), y),
    ):
        for _ in range(300):
            found = next(booster)
            assert np.isfinite(found.step)
            assert np.isfinite(booster.weights).all()
            assert (booster.weights > 0).all()


def test_contributions_follow_depth():
    values = contributions(np.array([0, 2, 1], dtype=np.uint8), np.array([0.25, 1.0]), 2.0)
    assert values.tolist() == [0.0, 2.0, 0.5]


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_no_stump_can_lower_the_loss_when_the_source_is_empty(seed):
    rng = np.random.default_rng(seed)
    y = np.r_[1.0, 0.0, rng.integers(0, 2, 10)]
    booster = RankBooster(StumpSource(binned(np.zeros((len(y), 2)), y)), y)
    with pytest.raises(StopIteration):
        next(booster)
