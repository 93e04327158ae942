"""TreeRank: additivity of the AUC, scores, limits, weights, kinds of columns."""

from __future__ import annotations

import naive_trees as naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from toprank import LogisticRanker, TreeRank, metrics
from toprank.trees import RankTree, SVMSplit


def draw(seed: int = 0, n: int = 300, d: int = 4):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)), 1)
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=n) > 1.5).astype(int)
    return X, y


SPLITTERS = {
    "leafrank": "leafrank",
    "linear": SVMSplit("linear"),
    "gaussian": SVMSplit("gaussian"),
    "svm": "svm",
    "tree": DecisionTreeClassifier(max_depth=2),
    "bayes": GaussianNB(),
}
each_splitter = pytest.mark.parametrize("splitter", SPLITTERS.values(), ids=SPLITTERS)


@each_splitter
def test_auc_is_additive_over_splits_and_equals_the_metric(splitter) -> None:
    X, y = draw()
    weight = np.random.default_rng(1).uniform(0.5, 3.0, size=len(y))
    model = TreeRank(max_depth=5, splitter=splitter, random_state=0).fit(X, y, sample_weight=weight)
    scores = model.decision_function(X)
    auc = 0.5 + model.tree_.gains().sum()
    # a fit takes weights to 32 binary digits
    assert auc == pytest.approx(metrics.roc_auc(y, scores, sample_weight=weight), abs=1e-10)
    assert auc == pytest.approx(naive.pairwise_auc(y, scores, weight), abs=1e-10)
    assert (model.tree_.gains()[~model.tree_.is_leaf] > 0).all()


@pytest.mark.filterwarnings("ignore:TreeRank gives all rows the same score")
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 3), st.integers(1, 4))
def test_auc_is_additive_on_any_data(seed: int, n: int, d: int, n_values: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(n_values, size=(n, d)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = rng.permutation(np.arange(n) % 2)
    model = TreeRank().fit(X, y)
    auc = 0.5 + model.tree_.gains().sum()
    assert auc == pytest.approx(metrics.roc_auc(y, model.decision_function(X)), abs=1e-12)


def test_scores_follow_depth_and_position() -> None:
    X, y = draw()
    model = TreeRank(max_depth=3).fit(X, y)
    tree = model.tree_
    deepest = tree.depth.max()
    for leaf in tree.leaves:
        path, node = [], leaf
        while node:
            parent = np.flatnonzero((tree.left == node) | (tree.right == node))[0]
            path.append(int(tree.right[parent] == node))
            node = parent
        position = int("".join(map(str, reversed(path))) or "0", 2)
        assert tree.depth[leaf] == len(path)
        assert tree.position[leaf] == position
        assert tree.scores[leaf] == 2.0**deepest * (1 - position / 2.0 ** len(path))
    assert (np.diff(tree.scores[tree.leaves]) < 0).all()
    np.testing.assert_array_equal(
        model.decision_function(X), tree.scores[model.apply(X)] - model.offset_
    )


def test_left_is_better() -> None:
    X, y = draw(n=800)
    tree = TreeRank().fit(X, y).tree_
    share = tree.weights[:, 0] / tree.weights.sum(axis=1)
    for node in np.flatnonzero(~tree.is_leaf):
        assert share[tree.left[node]] > share[node] > share[tree.right[node]]


def test_nodes_partition_their_parents() -> None:
    X, y = draw(n=500)
    model = TreeRank().fit(X, y)
    tree = model.tree_
    inner = ~tree.is_leaf
    np.testing.assert_array_equal(
        tree.weights[tree.left[inner]] + tree.weights[tree.right[inner]], tree.weights[inner]
    )
    leaf = model.apply(X)
    np.testing.assert_array_equal(
        tree.class_weights(leaf, y.astype(np.uint8), np.ones(len(y))), tree.weights
    )


@pytest.mark.parametrize("splitter", ["leafrank", "svm"])
def test_limits(splitter: str) -> None:
    X, y = draw(n=400)
    tree = TreeRank(3, min_samples_leaf=40, splitter=splitter, random_state=0).fit(X, y).tree_
    assert tree.depth.max() <= 3
    assert tree.weights.sum(axis=1).min() >= 40
    tree = TreeRank(min_samples_split=150, splitter=splitter, random_state=0).fit(X, y).tree_
    assert tree.weights[~tree.is_leaf].sum(axis=1).min() >= 150


def test_cells_keep_their_least_weight() -> None:
    X, y = draw(n=400)
    rules = TreeRank(leafrank_min_samples_leaf=25).fit(X, y).tree_.rules
    assert rules.weights.sum(axis=1).min() >= 25


@pytest.mark.parametrize("splitter", ["leafrank", DecisionTreeClassifier(max_depth=2)])
def test_a_weight_is_a_number_of_copies(splitter) -> None:
    X, y = draw()
    weight = np.random.default_rng(2).integers(0, 3, size=len(y))
    weighted = TreeRank(splitter=splitter, random_state=0).fit(X, y, sample_weight=weight)
    copies = np.repeat(np.arange(len(y)), weight)
    copied = TreeRank(splitter=splitter, random_state=0).fit(X[copies], y[copies])
    np.testing.assert_array_equal(weighted.decision_function(X), copied.decision_function(X))


def test_svms_weigh_rows_as_copies() -> None:
    X, y = draw()
    weight = np.random.default_rng(2).integers(1, 3, size=len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    parameters = {"max_depth": 1, "splitter": SVMSplit("linear"), "random_state": 0}
    weighted = TreeRank(**parameters).fit(X, y, sample_weight=weight).decision_function(X)
    copied = TreeRank(**parameters).fit(X[copies], y[copies]).decision_function(X)
    assert (np.sign(weighted) == np.sign(copied)).mean() > 0.97  # the solver stops near the optimum


def test_the_order_of_rows_does_not_matter() -> None:
    X, y = draw()
    shuffled = np.random.default_rng(3).permutation(len(y))
    np.testing.assert_array_equal(
        TreeRank().fit(X, y).decision_function(X),
        TreeRank().fit(X[shuffled], y[shuffled]).decision_function(X),
    )


def test_increasing_maps_of_columns_do_not_matter() -> None:
    X, y = draw()
    np.testing.assert_array_equal(
        TreeRank().fit(X, y).decision_function(X), TreeRank().fit(X**3, y).decision_function(X**3)
    )


def frame(n: int = 400, seed: int = 0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"amount": rng.gamma(1.0, size=n), "country": rng.choice(["NL", "DE", "FR", "XX"], size=n)}
    )
    y = ((table["country"].isin(["XX", "DE"])) ^ (rng.random(n) < 0.1)).to_numpy().astype(int)
    table.loc[rng.random(n) < 0.1, "amount"] = None
    table.loc[rng.random(n) < 0.1, "country"] = None
    return table, y


@each_splitter
def test_categories_and_missing_values(splitter) -> None:
    table, y = frame()
    model = TreeRank(2, splitter=splitter, random_state=0).fit(table, y)
    assert metrics.roc_auc(y, model.decision_function(table)) > 0.8
    strange = table.assign(country="never seen", amount=None)
    scores = model.decision_function(strange)
    assert np.isfinite(scores).all()
    missing = model.decision_function(table.assign(country=None, amount=None))
    np.testing.assert_array_equal(scores, missing)


def test_missing_values_that_tell_go_to_the_better_side() -> None:
    X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan], [4.0]])
    y = np.array([0, 0, 0, 1, 1, 1])
    model = TreeRank(1).fit(X, y)
    assert model.decision_function(X).argmin() in (0, 1, 2)
    assert metrics.roc_auc(y, model.decision_function(X)) == 1.0


def test_importance_adds_up_to_the_auc() -> None:
    X, y = draw(n=600, d=6)
    model = TreeRank().fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(model.tree_.gains().sum(), abs=1e-12)
    assert set(model.feature_importances_.argsort()[-2:]) == {0, 1}
    pruned = TreeRank(prune=True, random_state=0).fit(X, y)
    assert pruned.feature_importances_.sum() == pytest.approx(pruned.tree_.gains().sum(), abs=1e-12)


def test_importance_of_svms_is_refused() -> None:
    X, y = draw()
    model = TreeRank(2, splitter=SVMSplit("linear")).fit(X, y)
    with pytest.raises(AttributeError, match="permutation_importance"):
        _ = model.feature_importances_


def test_partial_dependence() -> None:
    X, y = draw(n=600)
    model = TreeRank(min_samples_leaf=10).fit(X, y)
    curve = partial_dependence(model, X, [0], response_method="decision_function")["average"][0]
    assert curve[-1] > curve[0]


def test_draws_depend_on_the_seed_only() -> None:
    X, y = draw(d=8)
    settings = {"max_features": 4, "leafrank_max_features": 1}
    first, second, other = (
        TreeRank(random_state=seed, **settings).fit(X, y).decision_function(X) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_nothing_to_split() -> None:
    with pytest.warns(UserWarning, match="TreeRank gives all rows the same score: no cut"):
        model = TreeRank().fit(np.ones((10, 2)), np.arange(10) % 2)
    assert model.n_leaves_ == 1
    assert isinstance(model.tree_, RankTree)
    assert model.decision_function(np.zeros((3, 2))).tolist() == [0.0, 0.0, 0.0]
    for splitter in ("svm", LogisticRegression()):
        with pytest.warns(UserWarning, match="same score"):
            model = TreeRank(splitter=splitter).fit(np.ones((10, 2)), np.arange(10) % 2)
        assert model.n_leaves_ == 1


def test_a_tree_pruned_to_its_root_says_so() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 20 == 0  # nothing to learn
    with pytest.warns(UserWarning, match="pruning left no split.*10 positives.*prune='leafrank'"):
        model = TreeRank(prune="tree", random_state=0).fit(X, y)
    assert model.n_leaves_ == 1


@each_splitter
def test_sparse_rows_grow_the_tree_of_dense_rows(splitter) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.2)
    X[rng.random(X.shape) < 0.02] = np.nan
    y = (np.nan_to_num(X[:, 0] + X[:, 1]) + 0.1 * rng.normal(size=300) > 0.3).astype(int)
    dense = TreeRank(3, splitter=splitter, random_state=0).fit(X, y)
    thin = TreeRank(3, splitter=splitter, random_state=0).fit(sparse.csr_array(X), y)
    expected = dense.decision_function(X)
    np.testing.assert_array_equal(thin.decision_function(X), expected)
    for form in (sparse.csr_matrix, sparse.csc_array):
        np.testing.assert_array_equal(thin.decision_function(form(X)), expected)
    assert thin.apply(sparse.csr_matrix(X)).tolist() == dense.apply(X).tolist()


def test_arrays_with_text_are_answered_as_tables_are() -> None:
    X = np.array([[1.0, "red"], [2.0, "blue"], [3.0, "red"], [4.0, "blue"]], dtype=object)
    y = [0, 0, 1, 1]
    with pytest.raises(ValueError, match=r"text in these columns: x1.*pandas.DataFrame\(X\)"):
        TreeRank().fit(X, y)
    with pytest.raises(ValueError, match="LogisticRanker needs numbers.*categories: x1.*OneHotEn"):
        LogisticRanker().fit(X, y)
    with pytest.raises(ValueError, match="text in these columns: x0, x1"):
        TreeRank().fit(X.astype(str)[:, [1, 1]], y)
    numbers = X[:, :1]  # of type object, yet numbers
    assert TreeRank(1).fit(numbers, y).predict(numbers).tolist() == y


def test_svms_learn_what_axes_cannot() -> None:
    """A line across both axes: one split of an SVM, many of LeafRank."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    fresh = rng.normal(size=(1000, 2))
    truth = fresh[:, 0] > fresh[:, 1]
    auc = {
        name: metrics.roc_auc(
            truth, TreeRank(2, splitter=s, random_state=0).fit(X, y).decision_function(fresh)
        )
        for name, s in (("svm", "svm"), ("leafrank", "leafrank"))
    }
    assert auc["svm"] > 0.97
    assert auc["svm"] > auc["leafrank"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"splitter": "cart"}, "leafrank"),
        ({"splitter": 3}, "splitter"),
        ({"splitter": KNeighborsClassifier()}, "sample_weight"),
        ({"splitter": Ridge()}, "classifier"),
        ({"splitter": DecisionTreeClassifier}, "classifier"),
        ({"prune": "leaves"}, "prune"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": 51}, "max_depth"),
        ({"leafrank_depth": 2.5}, "leafrank_depth"),
        ({"max_bins": 256}, "max_bins"),
        ({"prune_folds": 1}, "prune_folds"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"min_samples_split": "2"}, "min_samples_split"),
        ({"max_features": 0}, "max_features"),
        ({"max_features": 1.5}, "max_features"),
        ({"leafrank_max_features": "all"}, "leafrank_max_features"),
    ],
)
def test_errors_say_what_is_wrong(parameters, message) -> None:
    X, y = draw()
    with pytest.raises(ValueError, match=message):
        TreeRank(**parameters).fit(X, y)
