"""LeafRank: the split found is the best there is."""

from __future__ import annotations

import naive_trees as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.binning import MISSING, OTHER, Bins
from toprank.trees._kernels import (
    FEATURE,
    SMALL,
    BinnedSample,
    comes_first,
    find_cut,
    partition,
    workspace,
)
from toprank.trees.leafrank import (
    FIRST,
    SECOND,
    SIDE,
    LeafRank,
    LeafRankSplitter,
    choose_penalties,
    cut_gains,
    grow_level,
)
from toprank.trees.tree import Sample, TreeLimits, grow_tree


def search(codes, positive, weight, is_category, min_leaf=1.0, n_bins=None, rising=None):
    """The split that the kernel finds, as a mask, or None."""
    n_rows, n_columns = codes.shape
    order = np.arange(n_rows)
    P, N = weight[positive == 1].sum(), weight[positive == 0].sum()
    n_bins = np.full(n_columns, 255) if n_bins is None else n_bins
    rising = np.zeros(n_columns, bool) if rising is None else rising
    rows = BinnedSample(codes, positive, weight, n_bins, is_category, rising)
    work = workspace(n_columns, n_rows)
    cut, bits = np.zeros(6, np.int32), np.zeros(32, np.uint8)
    features = np.arange(n_columns)
    if not find_cut(rows, order, 0, n_rows, P, N, features, min_leaf, work, cut, bits):
        return None
    column = codes[:, cut[0]]
    return np.array([comes_first(int(c), cut[1], cut[2], bits) for c in column])


def draw_cell(rng, n_rows, n_columns, n_values, missing=0.2):
    codes = rng.integers(n_values, size=(n_rows, n_columns)).astype(np.uint8)
    codes[rng.random(codes.shape) < missing] = MISSING
    positive = (rng.random(n_rows) < 0.4).astype(np.uint8)
    positive[:2] = 0, 1
    weight = rng.integers(1, 4, size=n_rows).astype(np.float64)
    return codes, positive, weight


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 3), st.integers(1, 5), st.data())
def test_the_split_is_that_of_exhaustive_search(seed, n_rows, n_columns, n_values, data) -> None:
    rng = np.random.default_rng(seed)
    codes, positive, weight = draw_cell(rng, n_rows, n_columns, n_values)
    is_category = rng.random(n_columns) < 0.5
    min_leaf = data.draw(st.sampled_from([1.0, 3.0]))
    first = search(codes, positive, weight, is_category, min_leaf)
    # with a least weight the categories are cut in the order of their shares, not in every way
    exact = min_leaf == 1.0 or not is_category.any()
    best = naive.best_criterion(codes, positive, weight, is_category, min_leaf)
    if first is None:
        assert best == 0.0 or not exact
        return
    p, n = weight[first & (positive == 1)].sum(), weight[first & (positive == 0)].sum()
    value = abs(p * weight[positive == 0].sum() - n * weight[positive == 1].sum())
    assert value == pytest.approx(best) if exact else value <= best + 1e-9
    assert min(weight[first].sum(), weight[~first].sum()) >= min_leaf


@pytest.mark.parametrize("n_rows", [SMALL - 1, SMALL, SMALL + 1, 300])
def test_sorting_and_counting_agree(n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    codes, positive, weight = draw_cell(rng, n_rows, 40, 30)
    is_category = np.arange(40) % 3 == 0
    first = search(codes, positive, weight, is_category)
    p, n = weight[first & (positive == 1)].sum(), weight[first & (positive == 0)].sum()
    value = abs(p * weight[positive == 0].sum() - n * weight[positive == 1].sum())
    numbers = np.flatnonzero(~is_category)
    best = naive.best_criterion(codes[:, numbers], positive, weight, np.zeros(len(numbers), bool))
    for j in np.flatnonzero(is_category):  # the best subset takes every category above the mean
        p_c = np.bincount(codes[:, j], weight * (positive == 1), 256)
        n_c = np.bincount(codes[:, j], weight * (positive == 0), 256)
        edge = p_c * weight[positive == 0].sum() - n_c * weight[positive == 1].sum()
        best = max(best, edge[edge > 0].sum())
    assert value == pytest.approx(best)


def test_a_constant_cell_has_no_split() -> None:
    codes = np.full((10, 2), 3, np.uint8)
    positive = (np.arange(10) % 2).astype(np.uint8)
    assert search(codes, positive, np.ones(10), np.array([False, True])) is None


def test_missing_cells_alone_can_be_the_split() -> None:
    codes = np.array([[1], [2], [MISSING], [MISSING]], np.uint8)
    positive = np.array([0, 0, 1, 1], np.uint8)
    for category in (False, True):
        first = search(codes, positive, np.ones(4), np.array([category]))
        assert first.tolist() in ([True, True, False, False], [False, False, True, True])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 6))
def test_rising_columns_send_high_bytes_to_the_positives(seed, n_rows, n_values) -> None:
    """The cut found is the best among those whose first part has the smaller share of positives."""
    codes, positive, weight = draw_cell(np.random.default_rng(seed), n_rows, 1, n_values)
    first = search(codes, positive, weight, np.array([False]), rising=np.array([True]))
    shares = [weight * (positive == label) for label in (1, 0)]
    tpr_less_fpr = lambda mask: sum(  # noqa: E731
        sign * w[mask].sum() / w.sum() for sign, w in zip((1, -1), shares, strict=True)
    )
    column = codes[:, 0]
    masks = [
        (column <= t) & (column != MISSING) | (side & (column == MISSING))
        for t in [*range(n_values), MISSING - 1]
        for side in (False, True)
    ]
    values = [tpr_less_fpr(mask) for mask in masks if 0 < mask.sum() < n_rows]
    best = min(values, default=0.0)
    if best >= -1e-12:
        assert first is None
    else:
        assert tpr_less_fpr(first) == pytest.approx(best)


def test_partition_keeps_all_rows() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(10, size=(50, 1)).astype(np.uint8)
    order = rng.permutation(50)
    split = np.array([0, 4, 0], np.int32)
    middle = partition(codes, order, 10, 40, split, np.zeros(32, np.uint8), np.empty(50, np.int64))
    assert (codes[order[10:middle], 0] <= 4).all()
    assert (codes[order[middle:40], 0] > 4).all()
    assert sorted(order) == list(range(50))


def leafrank_split(rows, positive, weight, depth, **parameters):
    """One LeafRank split of all rows: the mask of rows that go left, and the rules."""
    n_columns = rows.shape[1]
    bins = Bins.of(rows, np.zeros(n_columns, bool), weight)
    sample = Sample(bins.codes(rows, by_row=True), positive, weight)
    limits = TreeLimits(1, 2.0, 1.0)
    settings = {"min_weight": 1.0, "n_node_features": n_columns, "n_cell_features": n_columns}
    splitter = LeafRankSplitter(sample, limits, bins, LeafRank(depth, **{**settings, **parameters}))
    tree = grow_tree(sample, splitter, limits, np.random.default_rng(0))
    return tree.apply(sample.rows) == tree.left[0], tree


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_leafrank_is_its_definition(depth: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(120, 3))
    positive = (rows[:, 0] + rng.normal(size=120) > 0.5).astype(np.uint8)
    weight = rng.uniform(0.5, 2.0, size=120)  # no two splits tie
    expected, cells = naive.leafrank_sides(rows, positive, weight, depth)
    left, tree = leafrank_split(rows, positive, weight, depth, min_weight=0.1)
    np.testing.assert_array_equal(left, expected)
    assert (tree.rules.cells[:, FEATURE] < 0).sum() <= len(cells)


def test_the_gain_of_a_split_is_the_sum_of_the_gains_of_its_cuts() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(200, 4))
    positive = (rows[:, 0] * rows[:, 1] > 0.3).astype(np.uint8)
    weight = rng.uniform(0.5, 2.0, size=200)
    left, tree = leafrank_split(rows, positive, weight, 5)
    P, N = weight[positive == 1].sum(), weight[positive == 0].sum()
    gains = cut_gains(tree.rules.cells, tree.rules.weights, P, N)
    tpr = weight[left & (positive == 1)].sum() / P
    fpr = weight[left & (positive == 0)].sum() / N
    assert gains.sum() == pytest.approx((tpr - fpr) / 2, abs=1e-12)
    assert (gains >= 0).all()
    assert tree.gains()[0] == pytest.approx((tpr - fpr) / 2, abs=1e-12)


def test_cuts_between_cells_of_the_same_side_are_gone() -> None:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(150, 3))
    positive = (rows[:, 0] + rng.normal(size=150) > 0).astype(np.uint8)
    _, tree = leafrank_split(rows, positive, np.ones(150), 6)
    cells = tree.rules.cells
    for cell in cells[cells[:, FEATURE] >= 0]:
        first, second = cells[cell[FIRST]], cells[cell[SECOND]]
        if first[FEATURE] < 0 and second[FEATURE] < 0:
            assert first[SIDE] != second[SIDE]


def test_pruned_small_trees_generalise_better_on_noise() -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(400, 6))
    positive = (rows[:, 0] + 1.5 * rng.normal(size=400) > 0).astype(np.uint8)
    fresh = rng.normal(size=(4000, 6))
    truth = fresh[:, 0] > 0
    _, full = leafrank_split(rows, positive, np.ones(400), 6)
    _, pruned = leafrank_split(rows, positive, np.ones(400), 6, n_folds=5)
    bins = Bins.of(rows, np.zeros(6, bool))

    def agreement(tree) -> float:
        return float(((tree.apply(bins.codes(fresh, by_row=True)) == tree.left[0]) == truth).mean())

    assert len(pruned.rules.cells) < len(full.rules.cells)
    assert agreement(pruned) > agreement(full)


def test_penalties_of_small_trees_are_the_best_of_their_candidates() -> None:
    """With a strong single cut, cross-validation keeps it and drops what lies beneath."""
    rng = np.random.default_rng(8)
    codes = rng.integers(50, size=(600, 3)).astype(np.uint8)
    positive = ((codes[:, 1] > 25) ^ (rng.random(600) < 0.1)).astype(np.uint8)
    weight, order = np.ones(600), np.arange(600)
    starts, stops = np.array([0]), np.array([600])
    n_bins, kinds = np.full(3, 50), np.zeros(3, bool)
    rows = BinnedSample(codes, positive, weight, n_bins, kinds, kinds)
    nodes = (rows, order, starts, stops, LeafRank(5, 1.0, 3, 3, 5), rng)
    tables, begins, drawn = grow_level(*nodes)
    chosen = choose_penalties(*nodes, tables, begins, drawn)
    cells, weights = tables.cells[: begins[1]], tables.weights
    gains = cut_gains(cells, weights, weights[0, 0], weights[0, 1])
    assert cells[0, FEATURE] == 1
    assert gains[1:].max() < chosen[0] < gains[0]


def test_draws_use_only_the_features_drawn() -> None:
    rng = np.random.default_rng(9)
    codes = rng.integers(20, size=(300, 8)).astype(np.uint8)
    positive = (rng.random(300) < 0.5).astype(np.uint8)
    starts, stops = np.array([0, 150]), np.array([150, 300])
    rows = BinnedSample(codes, positive, np.ones(300), np.full(8, 20), *np.zeros((2, 8), bool))
    parameters = LeafRank(4, 1.0, n_node_features=3, n_cell_features=1)
    tables, begins, drawn = grow_level(rows, np.arange(300), starts, stops, parameters, rng)
    for node in range(2):
        used = tables.cells[begins[node] : begins[node + 1], FEATURE]
        assert set(used[used >= 0]) <= set(drawn[node])
        assert len(set(drawn[node])) == 3


@pytest.mark.parametrize("max_bins", [255, 4])
def test_rare_categories_go_together_and_unseen_ones_with_missing_cells(max_bins: int) -> None:
    """Categories 0-3 are frequent, 4-9 rare; the code 10 never occurs in training."""
    rng = np.random.default_rng(10)
    category = np.concatenate([np.repeat(np.arange(4), 60), np.repeat(np.arange(4, 10), 20)])
    rows = np.where(rng.random(len(category)) < 0.2, np.nan, category)[:, None]
    positive = np.where(np.isnan(rows.ravel()), 1, np.isin(category, [1, 3])).astype(np.uint8)
    bins = Bins.of(rows, np.array([True]), max_bins=max_bins)
    sample = Sample(bins.codes(rows, by_row=True), positive, np.ones(len(rows)))
    limits = TreeLimits(1, 2.0, 1.0)
    splitter = LeafRankSplitter(sample, limits, bins, LeafRank(1, 1.0, 1, 1))
    tree = grow_tree(sample, splitter, limits, rng)
    codes = bins.codes(np.array([[1.0], [0.0], [5.0], [9.0], [10.0], [np.nan]]), by_row=True)
    rare_share_a_bin = max_bins == 4
    assert (codes[2:4] == OTHER).all() == rare_share_a_bin
    left = (tree.apply(codes) == tree.left[0]).tolist()
    assert left[:4] == [True, False, False, False]
    assert left[5]
    assert left[4] == (not rare_share_a_bin)
