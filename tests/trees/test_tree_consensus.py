"""Consensus rankings against all orders of a few cells."""

from __future__ import annotations

import naive_trees as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from toprank.trees import consensus
from toprank.trees.consensus import CellOrder, footrule_order, kendall_order


def draw_ranks(seed: int, n_cells: int, n_trees: int, ties: bool = True) -> np.ndarray:
    """Mid-ranks, from 0 at the best, that trees give to cells."""
    rng = np.random.default_rng(seed)
    levels = max(2, n_cells // 2) if ties else 10**6
    marks = rng.integers(levels, size=(n_cells, n_trees))
    return np.column_stack([rankdata(marks[:, t]) - 1 for t in range(n_trees)])


many = settings(max_examples=40, deadline=None)
shapes = given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 5))


@many
@shapes
def test_footrule_is_the_best_of_all_orders(seed: int, n_cells: int, n_trees: int) -> None:
    ranks = draw_ranks(seed, n_cells, n_trees)
    order = footrule_order(ranks)
    assert sorted(order) == list(range(n_cells))
    best = naive.best_order_cost(ranks, naive.footrule_cost)
    assert naive.footrule_cost(ranks, order) == pytest.approx(best)


@many
@shapes
def test_kendall_is_the_best_of_all_orders(seed: int, n_cells: int, n_trees: int) -> None:
    ranks = draw_ranks(seed, n_cells, n_trees)
    order = kendall_order(ranks)
    assert sorted(order) == list(range(n_cells))
    best = naive.best_order_cost(ranks, naive.kendall_cost)
    assert naive.kendall_cost(ranks, order) == best


@pytest.mark.parametrize("seed", range(5))
def test_local_search_finds_a_local_optimum_near_the_best(seed, monkeypatch) -> None:
    ranks = draw_ranks(seed, 9, 7)
    best = naive.kendall_cost(ranks, kendall_order(ranks))
    start = np.argsort(ranks.mean(axis=1))
    monkeypatch.setattr(consensus, "KENDALL_EXACT_CELLS", 0)
    order = kendall_order(ranks)
    cost = naive.kendall_cost(ranks, order)
    assert best <= cost <= naive.kendall_cost(ranks, start)
    assert cost <= 1.05 * best
    for place in range(9):  # no single cell can be moved to a better place
        others = np.delete(order, place)
        for target in range(9):
            moved = np.insert(others, target, order[place])
            assert naive.kendall_cost(ranks, moved) >= cost


def test_many_cells_move_within_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = draw_ranks(0, 60, 5)
    monkeypatch.setattr(consensus, "KENDALL_FULL_CELLS", 10)
    monkeypatch.setattr(consensus, "KENDALL_WINDOW", 3)
    order = kendall_order(ranks)
    assert sorted(order) == list(range(60))
    start = np.argsort(ranks.mean(axis=1))
    assert naive.kendall_cost(ranks, order) <= naive.kendall_cost(ranks, start)


def test_many_cells_go_by_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = draw_ranks(1, 30, 5, ties=False)
    monkeypatch.setattr(consensus, "FOOTRULE_CELLS", 10)
    medians = np.median(ranks, axis=1)[footrule_order(ranks)]
    assert (np.diff(medians) >= 0).all()


@pytest.mark.parametrize("order", [footrule_order, kendall_order])
def test_trees_that_agree_are_followed(order) -> None:
    ranks = np.repeat(np.random.default_rng(2).permutation(40)[:, None].astype(float), 5, axis=1)
    np.testing.assert_array_equal(order(ranks), np.argsort(ranks[:, 0]))


def cell_order(distance: str):
    """Three trees with leaves 1 (best), 2 and 3 (worst), and six rows."""
    leaves = np.array([[1, 1, 1], [1, 1, 2], [2, 1, 2], [2, 2, 3], [3, 3, 3], [1, 1, 1]], np.int32)
    orders = [np.array([1, 2, 3])] * 3
    return CellOrder.of(distance, leaves, orders, np.random.default_rng(0)), leaves


@pytest.mark.parametrize("distance", ["footrule", "kendall"])
def test_rows_of_one_cell_share_their_score(distance: str) -> None:
    cells, leaves = cell_order(distance)
    scores = cells.scores(leaves)
    assert len(cells.keys) == 5
    assert scores[0] == scores[5]
    assert ((scores > 0) & (scores < 1)).all()
    assert (np.diff(scores[:5]) < 0).all()


@pytest.mark.parametrize("distance", ["footrule", "kendall"])
def test_new_cells_go_where_they_fit(distance: str) -> None:
    cells, leaves = cell_order(distance)
    known = cells.scores(leaves)
    new = cells.scores(np.array([[3, 2, 3], [1, 1, 3]], np.int32))
    assert known[4] < new[0] <= known[3] + 0.2
    assert new[0] < new[1] < known[0]


def test_a_new_cell_is_put_where_kendall_costs_least() -> None:
    rng = np.random.default_rng(3)
    known = draw_ranks(3, 12, 5).astype(np.float32)
    known = known[kendall_order(known)]
    fresh = rng.uniform(0, 12, size=(20, 5)).astype(np.float32)
    places = consensus._kendall_insert(known, fresh)
    for row, place in zip(fresh, places, strict=True):
        together = np.vstack([known, row])
        costs = [
            naive.kendall_cost(together, list(np.insert(np.arange(12), k, 12))) for k in range(13)
        ]
        assert costs[int(place + 0.5)] == min(costs)
