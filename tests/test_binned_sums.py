"""The binned, mergeable pair sums against the exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from toprank.binned_sums import BinnedScores, Grid, merge
from toprank.pair_sums import sigmoid_sums, softplus_sums


@pytest.mark.parametrize(("spread", "bound"), [(1.0, 1e-7), (30.0, 1e-6), (300.0, 1e-5)])
def test_binned_sums_are_close_to_the_exact_ones(rng, spread, bound):
    scores = rng.normal(size=20_000)
    scores *= spread / np.ptp(scores)
    weights = rng.random((2, 20_000))
    binned = BinnedScores.of(scores, weights, grid=Grid.over(scores.min(), scores.max()))
    at = scores[:500]
    exact = *sigmoid_sums(at, scores, weights), softplus_sums(at, scores, weights)
    for ours, theirs in zip(
        (*binned.sigmoid_sums(at), binned.softplus_sums(at)), exact, strict=True
    ):
        assert np.abs(ours - theirs).max() < bound * np.abs(theirs).max()


def test_three_workers_are_one(rng):
    scores, weights = rng.normal(size=3000), rng.random(3000)
    grid = Grid.over(scores.min(), scores.max(), n_points=512)
    whole = BinnedScores.of(scores, weights, grid=grid)
    parts = [
        BinnedScores.of(scores[own], weights[own], grid=grid)
        for own in np.array_split(rng.permutation(3000), 3)
    ]
    np.testing.assert_allclose(merge(parts).weights, whole.weights, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        parts[0].merge(*parts[1:]).sigmoid_sums(scores)[0], whole.sigmoid_sums(scores)[0]
    )


def test_no_weight_is_lost(rng):
    scores, weights = rng.normal(size=1000), rng.random(1000)
    grid = Grid.over(-1.0, 1.0, n_points=64)  # narrower than the scores: the ends take the rest
    held = BinnedScores.of(scores, weights, grid=grid).weights
    assert held.sum() == pytest.approx(weights.sum())
    assert (held >= 0).all()


def test_ranks_come_from_cumulative_sums(rng):
    scores = rng.normal(size=100_000)
    binned = BinnedScores.of(scores, grid=Grid.over(scores.min(), scores.max()))
    order = np.argsort(-scores)
    ranks = np.empty(100_000)
    ranks[order] = np.arange(100_000) + 0.5
    assert np.abs(binned.weight_above(scores)[0] - ranks).max() < 25  # rows of a step, at most


def test_equal_scores_need_a_grid_too():
    binned = BinnedScores.of(np.full(10, 3.0), grid=Grid.over(3.0, 3.0))
    np.testing.assert_allclose(binned.sigmoid_sums([3.0])[0], 5.0, rtol=1e-6)


def test_what_is_wrong_is_said():
    grid = Grid.over(0.0, 1.0, n_points=4)
    with pytest.raises(ValueError, match="at least 4 points"):
        Grid.over(0.0, 1.0, n_points=3)
    with pytest.raises(ValueError, match="finite ends"):
        Grid.over(0.0, np.inf)
    with pytest.raises(ValueError, match="2 weights for 1 scores"):
        BinnedScores.of([0.0], [1.0, 2.0], grid=grid)
    with pytest.raises(ValueError, match="one and the same grid"):
        merge([BinnedScores.of([0.0], grid=g) for g in (grid, Grid.over(0.0, 2.0, n_points=4))])
