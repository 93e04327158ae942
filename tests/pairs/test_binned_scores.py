"""The binned, mergeable form against the rows it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from toprank.pairs import BinnedScores, Grid, sigmoid_sums, softplus_sums


@pytest.mark.parametrize(("spread", "bound"), [(1.0, 1e-7), (30.0, 1e-6), (300.0, 1e-5)])
def test_sums_over_the_occupied_points_are_close_to_those_over_the_rows(rng, spread, bound):
    scores = rng.normal(size=20_000)
    scores *= spread / np.ptp(scores)
    weights, at = rng.random(20_000), scores[:500]
    binned = BinnedScores.of(scores, None, weights, grid=Grid.over(scores.min(), scores.max()))
    _, points, mass = binned.occupied()
    exact = *sigmoid_sums(at, scores, weights), softplus_sums(at, scores, weights)
    ours = *sigmoid_sums(at, points, mass), softplus_sums(at, points, mass)
    for a, b in zip(ours, exact, strict=True):
        assert np.abs(a - b).max() < bound * np.abs(b).max()


def test_three_workers_are_one(rng):
    scores, labels, weights = rng.normal(size=3000), rng.integers(0, 3, 3000), rng.random(3000)
    grid = Grid.over(scores.min(), scores.max(), n_points=512)

    def binned(own):
        return BinnedScores.of(scores[own], labels[own], weights[own], grid=grid, n_labels=3)

    parts = [binned(own) for own in np.array_split(rng.permutation(3000), 3)]
    merged = sum(part.weights for part in parts)
    np.testing.assert_allclose(merged, binned(slice(None)).weights, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("breaks", [(), (-0.3, 0.0, 0.001, 2.0)])
def test_no_weight_is_lost(rng, breaks):
    scores, labels, weights = rng.normal(size=1000), rng.integers(0, 2, 1000), rng.random(1000)
    # narrower than the scores: the ends take the rest
    grid = Grid.over(-1.0, 1.0, n_points=64, breaks=breaks)
    held = BinnedScores.of(scores, labels, weights, grid=grid, n_labels=2).weights
    np.testing.assert_allclose(held.sum(axis=1), np.bincount(labels, weights))
    assert (held >= 0).all()


def test_no_row_is_moved_across_a_break(rng):
    scores = rng.normal(size=2000).round(2)
    breaks = np.unique(scores[:50])
    grid = Grid.over(scores.min(), scores.max(), n_points=16, breaks=breaks)
    held = BinnedScores.of(scores, grid=grid).weights[0]
    for value in breaks:
        assert held[grid.points < value].sum() == pytest.approx((scores < value).sum())
        assert held[grid.points == value].sum() == (scores == value).sum()


def test_rows_of_other_labels_are_left_out():
    binned = BinnedScores.of([0.0, 1.0], [0, 7], grid=Grid.over(0.0, 1.0, n_points=4))
    assert binned.weights.tolist() == [[1.0, 0.0, 0.0, 0.0]]
    assert binned.read(np.ones((1, 1)), [0.0, 1.0], [0, 7]).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("breaks", [(), (-0.3, 0.0, 0.001)])
def test_a_linear_function_of_the_score_is_read_exactly(rng, breaks):
    scores, labels, weights = rng.normal(size=500), rng.integers(0, 2, 500), rng.random(500)
    grid = Grid.over(scores.min(), scores.max(), n_points=64, breaks=breaks)
    binned = BinnedScores.of(scores, labels, weights, grid=grid, n_labels=2)
    codes, points, _ = binned.occupied()
    values = np.stack([3 * points + 10 * codes, np.ones(len(points))])
    found = binned.read(values, scores, labels, weights)
    np.testing.assert_allclose(found[0], weights * (3 * scores + 10 * labels), atol=1e-12)
    np.testing.assert_allclose(found[1], weights)


def test_equal_scores_need_a_grid_too():
    binned = BinnedScores.of(np.full(10, 3.0), grid=Grid.over(3.0, 3.0))
    _, points, mass = binned.occupied()
    np.testing.assert_allclose(sigmoid_sums([3.0], points, mass)[0], 5.0, rtol=1e-6)


def test_errors_say_what_is_wrong():
    grid = Grid.over(0.0, 1.0, n_points=4)
    with pytest.raises(ValueError, match="at least 4 points"):
        Grid.over(0.0, 1.0, n_points=3)
    with pytest.raises(ValueError, match="finite ends"):
        Grid.over(0.0, np.inf)
    with pytest.raises(ValueError, match="2 weights for 1 scores"):
        BinnedScores.of([0.0], None, [1.0, 2.0], grid=grid)
