"""Columns of many categories: ordered by shrunken rates in folds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import toprank
from toprank import RankingForest, TreeRank, metrics
from toprank.binning import MISSING, OTHER
from toprank.sampling import stratified_folds
from toprank.trees import leaf_region
from toprank.trees.leafrank import N_FOLDS, apply_order, order_categories


def noisy_table(seed: int, n_rows: int = 1_500, n_levels: int = 200):
    """Return rows whose label depends on two numbers, with a column of categories that are noise."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n_rows, 2)), columns=["a", "b"])
    table["noise"] = [f"level {k}" for k in rng.integers(n_levels, size=n_rows)]
    y = (table["a"] + table["b"] + 0.7 * rng.normal(size=n_rows) > 1.0).astype(int).to_numpy()
    return table, y


def test_rates_are_those_of_the_other_folds() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(12, size=(300, 2)).astype(np.uint8)
    codes[rng.random(300) < 0.1, 1] = MISSING
    positive = (rng.random(300) < 0.1 + 0.05 * (codes[:, 1] % 12)).astype(np.uint8)
    weight = rng.integers(1, 4, size=300).astype(float)
    tables, training = order_categories(
        codes, np.array([1]), positive, weight, np.random.default_rng(7)
    )
    fold = stratified_folds(positive, N_FOLDS, np.random.default_rng(7))

    def rate(category, rows) -> float:
        share = weight[rows & (positive == 1)].sum() / weight[rows].sum()
        own = rows & (codes[:, 1] == category)
        return (weight[own & (positive == 1)].sum() + 1) / (weight[own].sum() + 1 / share)

    everyone = np.ones(300, bool)
    final = np.array([rate(category, everyone) for category in range(12)])
    np.testing.assert_array_equal(np.argsort(tables[1, :12]), np.argsort(final))
    levels = np.sort(final)
    for row in range(300):
        if codes[row, 1] == MISSING:
            assert training[row, 1] == MISSING
        else:
            own = rate(codes[row, 1], fold != fold[row])
            assert training[row, 1] == np.argmin(np.abs(levels - own))
    np.testing.assert_array_equal(training[:, 0], codes[:, 0])
    assert tables[1, MISSING] == tables[1, OTHER] == MISSING
    np.testing.assert_array_equal(apply_order(codes.copy(), tables)[:, 0], codes[:, 0])


@pytest.mark.parametrize("make", [TreeRank, lambda **k: RankingForest(15, **k)])
def test_a_column_of_noise_costs_little(make) -> None:
    lost = {}
    for name, options in {"ordered": {}, "sets": {"max_set_categories": 255}}.items():
        auc = []
        for seed in range(2):
            table, y = noisy_table(seed)
            fresh, y_fresh = noisy_table(seed + 100)
            for columns in (["a", "b"], ["a", "b", "noise"]):
                model = make(random_state=0, **options).fit(table[columns], y)
                auc.append(metrics.roc_auc(y_fresh, model.decision_function(fresh[columns])))
        lost[name] = np.mean(auc[::2]) - np.mean(auc[1::2])
    assert lost["ordered"] < 0.02
    assert lost["sets"] > lost["ordered"] + 0.01


@pytest.mark.parametrize("share", [0.3, 0.04])
def test_many_categories_that_matter_are_found(share: float) -> None:
    rng = np.random.default_rng(1)
    effect = rng.normal(size=60)
    city = rng.integers(60, size=4_000)
    risk = effect[city] + 0.5 * rng.normal(size=4_000)
    y = (risk > np.quantile(risk, 1 - share)).astype(int)
    table = pd.DataFrame({"city": np.array([f"c{k}" for k in city]), "x": rng.normal(size=4_000)})
    model = TreeRank(max_depth=3).fit(table[:2_000], y[:2_000])
    assert metrics.roc_auc(y[2_000:], model.decision_function(table[2_000:])) > 0.85


def test_names_of_rows_teach_nothing() -> None:
    """A column in which every row has a category of its own is left alone."""
    table, y = noisy_table(3, n_rows=200)
    table["id"] = [f"row {k}" for k in range(200)]
    tree = TreeRank(max_depth=2).fit(table[["id", "a"]], y)
    assert tree.feature_importances_[0] == 0.0
    with pytest.warns(UserWarning, match="same score"):
        TreeRank().fit(table[["id"]], y)


def test_leaves_name_the_sets_of_ordered_categories(tmp_path) -> None:
    rng = np.random.default_rng(2)
    names = np.array([f"c{k}" for k in range(30)])
    city = names[rng.integers(30, size=900)]
    y = (np.isin(city, names[::3]) & (rng.random(900) < 0.8)).astype(int)
    table = pd.DataFrame({"city": city, "x": rng.normal(size=900)})
    table.loc[rng.random(900) < 0.05, "city"] = None
    tree = TreeRank(max_depth=2, leafrank_depth=2).fit(table, y)
    leaf = tree.apply(table)
    for node in np.unique(leaf):
        np.testing.assert_array_equal(leaf_region(tree, node).mask(table), leaf == node)
    toprank.save(tree, tmp_path / "tree.toprank")
    again = toprank.load(tmp_path / "tree.toprank")
    np.testing.assert_array_equal(again.decision_function(table), tree.decision_function(table))


def test_out_of_bag_scores_do_not_know_the_labels_of_their_categories() -> None:
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"noise": [f"l{k}" for k in rng.integers(150, size=600)]})
    y = (rng.random(600) < 0.3).astype(int)
    forest = RankingForest(40, random_state=0, max_set_categories=0).fit(table, y)
    assert forest.oob_auc_ < 0.6
