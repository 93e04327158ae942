"""Sums over pairs against the same sums written out pair by pair."""

from __future__ import annotations

from contextlib import contextmanager

import naive_pairs as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.pairs import (
    range_weights,
    ranked_hinge_sums,
    ranked_sums,
    sigmoid_sums,
    softplus_sums,
)
from toprank.pairs import sums as sums_module
from toprank.parallel import run_tasks
from toprank.ranking import RankedQueries

SCAN, DOUBLE_LOOP = 0, 10**12  # PAIRS_PER_ROW that force the one way or the other


@contextmanager
def forced(way):
    """Set how many pairs for each row are done pair by pair."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums_module, "PAIRS_PER_ROW", way)
        yield


def sigmoid_derivative(t):
    return naive.sigmoid(t) * naive.sigmoid(-t)


def hinge_sums(targets, sources, weights=None, *, margin=1.0, target_qid=None, source_qid=None):
    """`ranked_hinge_sums` of two lists, in the order of the targets."""
    weights = np.ones(len(sources)) if weights is None else weights
    ranked, codes, by_place, places = joined(targets, sources, weights, target_qid, source_qid)
    return ranked_hinge_sums(ranked, codes, 0, 1, by_place, margin=margin)[:, places]


def joined(targets, sources, weights, target_qid=None, source_qid=None):
    """Targets (code 0) and sources (code 1) as one ranked list, and where each target stands."""
    n = len(targets)
    qid = None if target_qid is None else np.concatenate((target_qid, source_qid))
    ranked = RankedQueries.of(np.concatenate((targets, sources)), qid)
    codes = (ranked.order >= n).astype(np.uint8)
    by_place = np.concatenate((np.zeros(n), weights))[ranked.order]
    return ranked, codes, by_place, np.argsort(ranked.order)[:n]


def agree(ours, theirs, tolerance=1e-6):
    scale = max(np.max(np.abs(theirs), initial=0.0), 1e-300)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


@pytest.mark.parametrize("way", [SCAN, DOUBLE_LOOP])
@pytest.mark.parametrize("sizes", [(1, 1), (1, 40), (40, 1), (30, 50), (400, 3), (5, 900)])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 30.0, 1e6])
def test_smooth_sums_equal_the_double_loop(rng, way, sizes, spread):
    targets = spread * rng.normal(size=sizes[0])
    sources = spread * rng.normal(size=sizes[1])
    shared = min(sizes)  # some sources tie with targets
    sources[: shared // 2] = targets[: shared // 2]
    weights = rng.random(sizes[1]) * rng.choice([1.0, 100.0, 1e-3], size=sizes[1])
    with forced(way):
        sums, derivatives = sigmoid_sums(targets, sources, weights)
        plus = softplus_sums(targets, sources, weights)
    for ours, kernel in (
        (sums, naive.sigmoid),
        (derivatives, sigmoid_derivative),
        (plus, naive.softplus),
    ):
        agree(ours, naive.pair_sums(kernel, targets, sources, weights))


@pytest.mark.parametrize("n", [1, 2, 7, 500, 5000])
def test_all_sizes(rng, n):
    targets, sources = rng.normal(size=n), rng.normal(size=max(1, n // 3)) + 1.0
    sums, derivatives = sigmoid_sums(targets, sources)
    ones = np.ones(len(sources))
    agree(sums, naive.pair_sums(naive.sigmoid, targets, sources, ones))
    agree(derivatives, naive.pair_sums(sigmoid_derivative, targets, sources, ones))
    hinge, _ = hinge_sums(targets, sources)
    agree(hinge, naive.pair_sums(lambda t: np.maximum(0, 1 + t), targets, sources, ones), 1e-12)


score = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6),
    st.floats(-1e-6, 1e-6),
    st.floats(-50, 50),
)


@given(
    st.lists(score, min_size=1, max_size=25),
    st.lists(st.tuples(score, st.floats(0, 10)), min_size=1, max_size=25),
    st.sampled_from([SCAN, DOUBLE_LOOP]),
)
def test_any_scores(targets, sources, way):
    scores, weights = np.array(sources).T
    targets = np.array(targets)
    with forced(way):
        sums, derivatives = sigmoid_sums(targets, scores, weights)
        plus = softplus_sums(targets, scores, weights)
    total = max(weights.sum(), 1e-300)
    np.testing.assert_allclose(
        sums, naive.pair_sums(naive.sigmoid, targets, scores, weights), atol=1e-8 * total
    )
    np.testing.assert_allclose(
        derivatives,
        naive.pair_sums(sigmoid_derivative, targets, scores, weights),
        atol=1e-7 * total,
    )
    np.testing.assert_allclose(
        plus, naive.pair_sums(naive.softplus, targets, scores, weights), rtol=1e-8,
        atol=1e-8 * total,
    )  # fmt: skip


def test_the_relative_error_is_uniform(rng):
    """A target 30 below half a million sources: the sum is tiny and still right."""
    sources = 30.0 + 0.1 * rng.random(500_000)
    with forced(SCAN):
        sums, derivatives = sigmoid_sums(-np.array([0.0]), -sources)
    exact = np.sum(1.0 / (1.0 + np.exp(sources)))
    assert sums[0] == pytest.approx(exact, rel=1e-6)
    assert derivatives[0] == pytest.approx(exact, rel=1e-6)


def test_queries_do_not_meet(rng):
    targets, sources = rng.normal(size=200), rng.normal(size=300)
    target_qid, source_qid = rng.integers(0, 12, 200), rng.integers(3, 15, 300)
    weights = rng.random(300)
    ranked, codes, by_place, places = joined(targets, sources, weights, target_qid, source_qid)
    sums = ranked_sums(ranked, codes, 0, 1, by_place)[0, places]
    hinge, active = hinge_sums(
        targets, sources, weights, margin=0.5, target_qid=target_qid, source_qid=source_qid
    )
    for q in range(15):
        own, other = target_qid == q, source_qid == q
        agree(
            sums[own], naive.pair_sums(naive.sigmoid, targets[own], sources[other], weights[other])
        )
        for ours, kernel in (
            (hinge, lambda t: np.maximum(0, 0.5 + t)),
            (active, lambda t: (t > -0.5) * 1.0),
        ):
            theirs = naive.pair_sums(kernel, targets[own], sources[other], weights[other])
            np.testing.assert_allclose(ours[own], theirs, rtol=1e-12, atol=1e-12)


def test_hinge_sums_keep_their_digits_far_from_zero(rng):
    targets, sources = 1e6 + rng.normal(size=50), 1e6 + rng.normal(size=60)
    hinge, _ = hinge_sums(targets, sources)
    theirs = naive.pair_sums(lambda t: np.maximum(0, 1 + t), targets, sources, np.ones(60))
    np.testing.assert_allclose(hinge, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("way", [SCAN, DOUBLE_LOOP])
@pytest.mark.parametrize("rising", [True, False])
def test_pairs_weighted_by_rank_values(rng, way, rising):
    """Value of the higher place minus that of the lower, tied pairs left out."""
    n = 300
    scores = np.round(rng.normal(size=n), 1)
    ranked = RankedQueries.of(scores)
    codes = rng.integers(0, 3, n).astype(np.uint8)
    weight, upper, lower = rng.random((3, n))
    with forced(way):
        sums = ranked_sums(ranked, codes, 2, 0, weight, rank_values=(upper, lower), rising=rising)
    f = ranked.scores
    for i in np.flatnonzero(codes == 2):
        exact = 0.0
        for j in np.flatnonzero(codes == 0):
            value = upper[j] - upper[i] if f[j] > f[i] else lower[i] - lower[j]
            if f[j] != f[i]:
                exact += weight[j] * value * naive.sigmoid(f[j] - f[i] if rising else f[i] - f[j])
        assert sums[0, i] == pytest.approx(exact, rel=1e-6, abs=1e-6)
    assert not sums[:, codes != 2].any()


def test_a_row_is_a_source_of_its_own_sum(rng):
    scores = np.array([2.0, 1.0, 1.0, -4.0])
    ranked, codes = RankedQueries.of(scores), np.ones(4, np.uint8)
    with forced(SCAN):
        sums = ranked_sums(ranked, codes, 1, 1, np.ones(4))
    exact = naive.pair_sums(naive.sigmoid, ranked.scores, ranked.scores, np.ones(4))
    np.testing.assert_allclose(sums[0], exact, rtol=1e-8)


def test_large_tie_groups_take_linear_time(rng):
    """Interleaved codes inside one tie group: a quadratic walk would take minutes here."""
    n = 400_000
    ranked = RankedQueries.of(np.zeros(n))
    codes = (np.arange(n) % 3).astype(np.uint8)
    with forced(SCAN):
        sums = ranked_sums(ranked, codes, 2, 0, np.ones(n))
    np.testing.assert_allclose(sums[0][codes == 2], 0.5 * np.count_nonzero(codes == 0))


def test_threads_do_not_change_the_answer(rng):
    n = 5000
    ranked = RankedQueries.of(rng.normal(size=n))
    codes = (rng.random(n) < 0.3).astype(np.uint8)
    weight = rng.random(n)

    def run(n_threads):
        out = np.zeros((2, n))
        tasks = [lambda t=t: ranked_sums(ranked, codes, t, 1 - t, weight, out=out) for t in (0, 1)]
        run_tasks(tasks, n, n_threads)
        return out

    assert np.array_equal(run(1), run(2))


@given(
    st.lists(st.tuples(st.integers(-2, 2), st.floats(0, 5)), min_size=1, max_size=12),
    st.floats(0, 20),
    st.floats(0, 20),
)
def test_range_weights_are_the_overlaps_of_tie_groups(rows, low, length):
    scores, weights = np.array(sorted(rows, reverse=True), dtype=float).T.copy()
    inside = range_weights(scores, weights, low, low + length)
    above = 0.0
    for value in sorted(set(scores), reverse=True):
        mass = weights[scores == value].sum()
        overlap = max(min(above + mass, low + length) - max(above, low), 0.0)
        assert inside[scores == value].sum() == pytest.approx(overlap, abs=1e-9)
        if mass > 1e-6:  # the tie group shares in proportion to the weights
            expected = weights[scores == value] * overlap / mass
            np.testing.assert_allclose(inside[scores == value], expected, atol=1e-9)
        above += mass


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="2 weights for 1 sources"):
        sigmoid_sums([0.0], [1.0], [1.0, 2.0])


def test_the_series_are_as_close_as_promised():
    u = np.linspace(1e-9, 1, 2001)
    sigmoid_series, softplus_series = sums_module._coefficients()
    for series, exact in (
        (sigmoid_series[0], 1 / (1 + u)),
        (sigmoid_series[1], (1 + u) ** -2),
        (softplus_series[0], np.log1p(u) / u),
    ):
        fitted = np.polynomial.polynomial.polyval(u, series)
        assert np.max(np.abs(fitted / exact - 1)) < 5e-8
