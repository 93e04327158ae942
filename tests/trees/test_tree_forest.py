"""RankingForest: variants, draws, threads, out-of-bag scores, consensus."""

from __future__ import annotations

from contextlib import contextmanager

import joblib
import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from toprank import RankingForest, TreeRank, metrics
from toprank.datasets import gauss20d
from toprank.trees import VARIANTS, SVMSplit
from toprank.trees._kernels import FEATURE
from toprank.trees.estimators import count_features, draw_bootstrap


@pytest.fixture(scope="module")
def data():
    X, y = gauss20d("easy", n_samples=900, random_state=0)
    return X[:400], y[:400], X[400:], y[400:]


def test_any_number_of_threads_grows_the_same_forest(data) -> None:
    X, y, X_test, _ = data
    settings = {"n_estimators": 12, "variant": "rf5", "random_state": 3}
    one = RankingForest(n_jobs=1, **settings).fit(X, y)
    for n_jobs in (2, 3, None, -1):
        many = RankingForest(n_jobs=n_jobs, **settings).fit(X, y)
        np.testing.assert_array_equal(one.decision_function(X_test), many.decision_function(X_test))
        np.testing.assert_array_equal(one.oob_decision_function_, many.oob_decision_function_)


def test_another_backend_grows_the_same_forest(data) -> None:
    X, y, X_test, _ = data
    settings = {"n_estimators": 4, "random_state": 3}
    here = RankingForest(**settings).fit(X, y).decision_function(X_test)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        there = RankingForest(**settings).fit(X, y)
    np.testing.assert_array_equal(here, there.decision_function(X_test))


def test_dask_grows_the_same_forest(data) -> None:
    distributed = pytest.importorskip("distributed")
    X, y, X_test, _ = data
    settings = {"n_estimators": 4, "random_state": 3}
    here = RankingForest(**settings).fit(X, y).decision_function(X_test)
    client = distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address="127.0.0.1:0"
    )
    with client, joblib.parallel_config(backend="dask"):
        there = RankingForest(**settings).fit(X, y)
    np.testing.assert_array_equal(here, there.decision_function(X_test))


def test_scoring_in_parts_changes_nothing(data, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, X_test, _ = data
    forest = RankingForest(5, random_state=0, n_jobs=2).fit(X, y)
    whole = forest.decision_function(X_test)
    monkeypatch.setattr("toprank.trees.estimators.CHUNK_ROWS", 64)
    np.testing.assert_array_equal(forest.decision_function(X_test), whole)


@pytest.mark.parametrize(
    ("variant", "d1", "d2"),
    [
        ("sqrt", 20, 4),
        ("bagging", 20, 20),
        ("rf1", 5, 5),
        ("rf2", 1, 1),
        ("rf3", 20, 5),
        ("rf4", 20, 1),
        ("rf5", 10, 5),
        ("rf6", 5, 1),
    ],
)
def test_variants_draw_as_published(variant: str, d1: int, d2: int) -> None:
    node, cell = VARIANTS[variant]
    n_node = count_features(node, 20)
    assert n_node == d1
    assert min(n_node, count_features(cell, 20)) == d2
    assert count_features(node, 3) >= 1


def test_one_feature_a_node(data) -> None:
    X, y, _, _ = data
    forest = RankingForest(3, variant="rf2", random_state=0).fit(X, y)
    for tree in forest.trees_:
        roots = tree.rules.roots
        for begin, end in zip(roots, [*roots[1:], len(tree.rules.cells)], strict=True):
            used = tree.rules.cells[begin:end, FEATURE]
            assert len(set(used[used >= 0])) == 1


def test_features_given_take_the_place_of_the_variant(data) -> None:
    X, y, X_test, _ = data
    named = RankingForest(5, variant="rf5", random_state=1).fit(X, y)
    given = RankingForest(
        5, variant="bagging", max_features=10, leafrank_max_features=5, random_state=1
    ).fit(X, y)
    np.testing.assert_array_equal(named.decision_function(X_test), given.decision_function(X_test))


def test_forests_beat_their_trees(data) -> None:
    X, y, X_test, y_test = data
    tree = TreeRank(leafrank_depth=6).fit(X, y)
    forest = RankingForest(40, random_state=0).fit(X, y)
    alone = metrics.roc_auc(y_test, tree.decision_function(X_test))
    together = metrics.roc_auc(y_test, forest.decision_function(X_test))
    assert together > alone + 0.05


@pytest.fixture(scope="module")
def rare():
    """Return rows of which 6% are positive, to train on and to test on."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(1_500, 8))
    risk = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X))
    y = (risk > np.quantile(risk, 0.94)).astype(int)
    return X[:700], y[:700], X[700:], y[700:]


def test_precision_is_the_mean_smoothed_share_of_positives_in_the_leaves(rare) -> None:
    X, y, X_test, _ = rare
    forest = RankingForest(6, consensus="precision", random_state=0).fit(X, y)
    rows, rows_test = (forest.space_.codes(part, by_row=True) for part in (X, X_test))
    seeds = np.random.RandomState(0).randint(2**31 - 1, size=7)
    total, outside, times = np.zeros(len(X_test)), np.zeros(len(y)), np.zeros(len(y))
    for tree, seed in zip(forest.trees_, seeds[:-1], strict=True):
        rng = np.random.default_rng(seed)
        drawn = draw_bootstrap(y.astype(np.uint8), np.ones(len(y)), len(y), rng)
        share = drawn[y == 1].sum() / drawn.sum()
        leaf, leaf_test = tree.apply(rows), tree.apply(rows_test)
        for i, own in enumerate(leaf_test):
            p, n = (drawn[(leaf == own) & (y == label)].sum() for label in (1, 0))
            total[i] += (p + share) / (p + n + 1)
        for i in np.flatnonzero(drawn == 0):
            p, n = (drawn[(leaf == leaf[i]) & (y == label)].sum() for label in (1, 0))
            outside[i] += (p + share) / (p + n + 1)
            times[i] += 1
    scores = forest.decision_function(X_test) + forest.offset_
    np.testing.assert_allclose(scores, total / 6, rtol=1e-12)
    expected = np.where(times > 0, outside / np.maximum(times, 1), np.nan) - forest.offset_
    np.testing.assert_allclose(forest.oob_decision_function_, expected, atol=1e-12)


def test_precision_keeps_the_top_where_positives_are_rare(rare) -> None:
    X, y, X_test, y_test = rare
    found = {}
    for consensus in ("precision", "spearman"):
        forest = RankingForest(60, consensus=consensus, random_state=0)
        found[consensus] = forest.fit(X, y).score(X_test, y_test)
    assert found["precision"] > found["spearman"] + 0.02


def test_spearman_orders_by_the_mean_mid_rank_over_training_rows(data) -> None:
    X, y, X_test, _ = data
    forest = RankingForest(7, consensus="spearman", random_state=0).fit(X, y)
    rows = forest.space_.codes(X, by_row=True)
    ranks = np.stack([rankdata(tree.scores[tree.apply(rows)]) for tree in forest.trees_])
    expected = (ranks.mean(axis=0) - 0.5) / len(y)
    np.testing.assert_allclose(forest.decision_function(X) + forest.offset_, expected, atol=1e-12)
    np.testing.assert_allclose(
        forest.tree_scores(X_test).mean(axis=0), forest.decision_function(X_test) + forest.offset_
    )


def test_out_of_bag_scores_come_from_trees_that_did_not_see_the_row(data) -> None:
    X, y, _, _ = data
    forest = RankingForest(15, random_state=0).fit(X, y)
    seeds = np.random.RandomState(0).randint(2**31 - 1, size=16)
    total, times = np.zeros(len(y)), np.zeros(len(y))
    for tree_scores, seed in zip(forest.tree_scores(X), seeds[:-1], strict=True):
        rng = np.random.default_rng(seed)
        out = draw_bootstrap(y.astype(np.uint8), np.ones(len(y)), len(y), rng) == 0
        total[out] += tree_scores[out]
        times[out] += 1
    expected = np.where(times > 0, total / np.maximum(times, 1), np.nan) - forest.offset_
    np.testing.assert_allclose(forest.oob_decision_function_, expected, atol=1e-12)
    seen = times > 0
    assert forest.oob_auc_ == pytest.approx(metrics.roc_auc(y[seen], expected[seen]))


def test_out_of_bag_auc_is_honest(data) -> None:
    X, y, X_test, y_test = data
    forest = RankingForest(50, random_state=0).fit(X, y)
    test = metrics.roc_auc(y_test, forest.decision_function(X_test))
    assert forest.oob_auc_ == pytest.approx(test, abs=0.06)
    assert metrics.roc_auc(y, forest.decision_function(X)) > forest.oob_auc_ + 0.1


def test_bootstrap_draws_both_classes_in_proportion() -> None:
    rng = np.random.default_rng(0)
    positive = np.array([1] * 3 + [0] * 97, np.uint8)
    counts = draw_bootstrap(positive, np.ones(100), 200, rng)
    assert counts.sum() == 200
    assert counts[:3].sum() == 6
    one = draw_bootstrap(np.array([1] + [0] * 999, np.uint8), np.ones(1000), 10, rng)
    assert one[0] == 1


def test_bootstrap_odds_follow_the_weights() -> None:
    rng = np.random.default_rng(1)
    positive = np.array([1, 1, 0, 0], np.uint8)
    weight = np.array([3.0, 1.0, 1.0, 1.0])
    total = sum(draw_bootstrap(positive, weight, 600, rng) for _ in range(50))
    assert total[0] / total[1] == pytest.approx(3.0, rel=0.1)
    assert total[:2].sum() / total.sum() == pytest.approx(4 / 6, abs=0.01)


def test_sizes_of_samples(data) -> None:
    X, y, _, _ = data
    for max_samples, expected in ((None, 400), (60, 60), (0.5, 200)):
        forest = RankingForest(2, max_samples=max_samples, random_state=0).fit(X, y)
        assert forest.trees_[0].weights[0].sum() == expected


@pytest.mark.parametrize("consensus", ["footrule", "kendall"])
def test_other_distances_rank_as_well(data, consensus: str) -> None:
    X, y, X_test, y_test = data
    settings = {"n_estimators": 20, "random_state": 0, "n_jobs": 1}
    mean = RankingForest(consensus="spearman", **settings).fit(X[:150], y[:150])
    other = RankingForest(consensus=consensus, **settings).fit(X[:150], y[:150])
    first, second = mean.decision_function(X_test), other.decision_function(X_test)
    assert np.corrcoef(rankdata(first), rankdata(second))[0, 1] > 0.9
    auc = metrics.roc_auc(y_test, second)
    assert auc == pytest.approx(metrics.roc_auc(y_test, first), abs=0.03)
    cells = other.cell_order_
    assert sorted(cells.places) == list(range(len(cells.keys)))


@pytest.mark.parametrize("splitter", ["svm", SVMSplit("linear"), LogisticRegression()])
def test_other_splitters(data, splitter) -> None:
    X, y, X_test, y_test = data
    settings = {"variant": "rf1", "splitter": splitter, "max_depth": 3, "random_state": 0}
    forest = RankingForest(6, **settings).fit(X, y)
    assert metrics.roc_auc(y_test, forest.decision_function(X_test)) > 0.65
    again = RankingForest(6, n_jobs=2, **settings).fit(X, y)
    np.testing.assert_array_equal(forest.decision_function(X_test), again.decision_function(X_test))


def test_pruned_forests_learn(data) -> None:
    X, y, X_test, y_test = data
    forest = RankingForest(10, prune=True, random_state=0).fit(X, y)
    assert metrics.roc_auc(y_test, forest.decision_function(X_test)) > 0.65


@pytest.mark.parametrize("distance", ["spearman", "kendall", "footrule"])
def test_instability_of_a_fitted_forest(data, distance: str) -> None:
    X, y, X_test, _ = data
    calm = RankingForest(6, max_depth=1, leafrank_depth=1, variant="bagging", random_state=0)
    wild = RankingForest(6, variant="rf2", random_state=0)
    values = [f.fit(X, y).instability(X_test, distance=distance) for f in (calm, wild)]
    assert 0 < values[0] < values[1] < 1
    scores = wild.tree_scores(X_test)
    assert values[1] == metrics.instability(scores, distance=distance)


def test_importance_finds_the_columns_that_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    y = (X[:, 2] + X[:, 4] + 0.5 * rng.normal(size=500) > 0).astype(int)
    importance = RankingForest(20, random_state=0).fit(X, y).feature_importances_
    assert set(importance.argsort()[-2:]) == {2, 4}
    svm = RankingForest(2, splitter=SVMSplit("linear"), random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="permutation_importance"):
        _ = svm.feature_importances_


def test_weights_act_like_copies_on_average(data) -> None:
    X, y, X_test, y_test = data
    weight = np.random.default_rng(4).integers(0, 3, size=len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    weighted, copied = [], []
    for seed in range(4):
        forest = RankingForest(20, random_state=seed)
        scores = forest.fit(X, y, sample_weight=weight).decision_function(X_test)
        weighted.append(metrics.roc_auc(y_test, scores))
        scores = forest.fit(X[copies], y[copies]).decision_function(X_test)
        copied.append(metrics.roc_auc(y_test, scores))
    assert np.mean(weighted) == pytest.approx(np.mean(copied), abs=0.02)


def test_a_progress_bar_when_asked(data, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, _, _ = data
    bars = []

    @contextmanager
    def progress(total, label, enabled):
        bars.append([total, enabled, 0])

        def advance() -> None:
            bars[-1][2] += 1

        yield advance

    RankingForest(2, random_state=0).fit(X, y)
    assert capsys.readouterr() == ("", "")  # quiet by default
    monkeypatch.setattr("toprank.trees.estimators.progress", progress)
    RankingForest(3, random_state=0, verbose=1).fit(X, y)
    assert bars == [[3, 1, 3]]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"variant": "rf7"}, "variant"),
        ({"consensus": "borda"}, "consensus"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": 2.0}, "n_estimators"),
        ({"max_samples": 1}, "max_samples"),
        ({"max_samples": -0.5}, "max_samples"),
    ],
)
def test_errors_say_what_is_wrong(data, parameters, message) -> None:
    X, y, _, _ = data
    with pytest.raises(ValueError, match=message):
        RankingForest(**{"n_estimators": 2, **parameters}).fit(X, y)
