"""Pruning: the weakest-link sequence against every subtree, and the choice of the penalty."""

from __future__ import annotations

import naive_trees as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank import TreeRank, metrics
from toprank.trees.tree import best_candidate, collapse_penalties, kept_gains, penalty_candidates


def random_tree(rng: np.random.Generator, n_splits: int):
    """A binary tree with random shape and gains, breadth first."""
    left, right, open_leaves = [-1], [-1], [0]
    for _ in range(n_splits):
        node = open_leaves.pop(int(rng.integers(len(open_leaves))))
        left[node], right[node] = len(left), len(left) + 1
        open_leaves += [len(left), len(left) + 1]
        left += [-1, -1]
        right += [-1, -1]
    gain = np.where(np.array(left) >= 0, rng.integers(0, 6, size=len(left)) / 16, 0.0)
    return np.array(left, np.int32), np.array(right, np.int32), gain


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 7))
def test_weakest_links_give_the_best_subtree_for_every_penalty(seed: int, n_splits: int) -> None:
    rng = np.random.default_rng(seed)
    left, right, gain = random_tree(rng, n_splits)
    penalties = collapse_penalties(left, right, gain)
    for penalty in (*np.unique(penalties), *penalty_candidates(penalties), 0.01, 0.1, 0.3):
        if np.isinf(penalty):
            continue
        kept = np.flatnonzero(penalties > penalty)
        value, size = naive.best_subtree(left, right, gain, penalty)
        assert gain[kept].sum() - penalty * (len(kept) + 1) == pytest.approx(value, abs=1e-12)
        assert len(kept) <= -size + 0 or gain[kept].sum() == pytest.approx(0)


def test_pruned_nodes_are_connected() -> None:
    left, right, gain = random_tree(np.random.default_rng(0), 30)
    penalties = collapse_penalties(left, right, gain)
    for node in np.flatnonzero(left >= 0):
        for child in (left[node], right[node]):
            assert penalties[child] <= penalties[node]


def test_candidates_lie_between_the_collapses() -> None:
    penalties = np.array([0.4, 0.0, 0.1, 0.1, 0.4])
    candidates = penalty_candidates(penalties)
    assert candidates.tolist() == pytest.approx([0.0, 0.2, np.inf])
    assert penalty_candidates(np.zeros(3)).tolist() == [0.0]


def test_kept_gains() -> None:
    total = kept_gains(np.array([0.4, 0.1]), np.array([3.0, 1.0]), np.array([0.0, 0.2, np.inf]))
    assert total.tolist() == [4.0, 3.0, 0.0]


def test_of_equal_candidates_the_smallest_tree_wins() -> None:
    assert best_candidate(np.array([0.0, 0.2, np.inf]), np.array([1.0, 1.0, 0.0])) == 0.2


def test_the_penalty_does_best_on_held_out_rows() -> None:
    penalties = np.array([0.3, 0.02])
    candidates = penalty_candidates(penalties)
    values = kept_gains(penalties, np.array([0.2, -0.1]), candidates)
    assert 0.02 < best_candidate(candidates, values) < 0.3
    useless = kept_gains(penalties, np.array([-0.2, -0.1]), candidates)
    assert best_candidate(candidates, useless) == np.inf


def draw(seed: int, n: int = 500):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] + 1.5 * rng.normal(size=n) > 0).astype(int)
    return X, y


def size(model: TreeRank, prune) -> int:
    """Leaves for a pruned tree; cells for each split where the small trees are pruned too."""
    if prune == "tree":
        return model.n_leaves_
    return len(model.tree_.rules.cells) / max(1, model.n_leaves_ - 1)


@pytest.mark.parametrize("prune", ["tree", "leafrank", True])
def test_pruning_makes_smaller_and_better_trees(prune) -> None:
    X_test, y_test = draw(99, 4000)
    full, pruned, sizes = [], [], []
    for seed in range(4):
        X, y = draw(seed)
        settings = {"leafrank_depth": 6, "random_state": seed}
        first = TreeRank(**settings).fit(X, y)
        second = TreeRank(prune=prune, **settings).fit(X, y)
        full.append(metrics.roc_auc(y_test, first.decision_function(X_test)))
        pruned.append(metrics.roc_auc(y_test, second.decision_function(X_test)))
        sizes.append((size(first, prune), size(second, prune)))
    assert np.mean(pruned) > np.mean(full) + (-0.005 if prune == "tree" else 0.03)
    assert np.mean(sizes, axis=0)[1] < np.mean(sizes, axis=0)[0]


def test_a_pruned_tree_keeps_the_order_of_its_leaves() -> None:
    X, y = draw(1)
    tree = TreeRank().fit(X, y).tree_
    penalties = collapse_penalties(tree.left, tree.right, tree.gains())
    for penalty in penalty_candidates(penalties):
        small = tree.pruned(penalties > penalty)
        shares = small.weights[small.leaves]
        np.testing.assert_allclose(shares.sum(axis=0), tree.weights[0])
        assert small.gains().sum() == pytest.approx(tree.gains()[penalties > penalty].sum())
        assert small.rule[small.is_leaf].tolist() == [-1] * int(small.is_leaf.sum())
