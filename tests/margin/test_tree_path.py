"""The tree-path embedding: paths, growing, outputs, out-of-fold training rows."""

from __future__ import annotations

import naive_poise as naive
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_circles, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import spectral_embedding
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from toprank import TreePathEmbedding
from toprank.margin import tree_path
from toprank.margin.matrices import scale_rows
from toprank.margin.tree_path import (
    PathTree,
    grow,
    hstack_with_products,
    leaf_coordinates,
    leaf_paths,
    oversample,
)
from toprank.metrics import roc_auc
from toprank.sampling import sample_rows


def paths(tree, rows, frugal):
    return leaf_paths(tree, frugal)[tree.leaf_of(rows)]


def rare(rng, n=400, share=0.15, columns=4):
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, columns))
    X[:, 0] += 1.5 * y
    X[:, 1] = np.where(y, np.sign(X[:, 1]) * (np.abs(X[:, 1]) + 1), X[:, 1])
    return X, y


def grown(rng, depth=5, n=400) -> tuple[PathTree, np.ndarray]:
    X, y = rare(rng, n)
    rows = np.column_stack((X, X[:, 0] + 0.1 * X[:, 1]))
    return grow(rows, y == 1, depth, 1, 5, 0), rows


# -- paths -------------------------------------------------------------------------------------------


def test_figure_2_of_the_paper() -> None:
    # root -> (leaf, A), A -> (B, C), B -> two leaves, C -> two leaves; edges numbered by level
    tree = PathTree(
        feature=np.array([0, -1, 1, 2, 2, -1, -1, -1, -1]),
        threshold=np.array([0.5, 0, 0.5, 0.5, 0.5, 0, 0, 0, 0]),
        left=np.array([1, -1, 3, 5, 7, -1, -1, -1, -1]),
        right=np.array([2, -1, 4, 6, 8, -1, -1, -1, -1]),
        sign=np.array([0, 1, 0, 0, 0, 1, -1, -1, 1]),
    )
    rows = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    embedded = paths(tree, rows, frugal=False).toarray()
    assert np.abs(embedded[0]).tolist() == [0, 1, 0, 1, 0, 0, 1, 0]
    assert np.abs(embedded[1]).tolist() == [0, 1, 1, 0, 1, 0, 0, 0]
    assert np.abs(embedded[0]) @ np.abs(embedded[1]) == 1
    assert embedded[0] @ embedded[1] == -1  # leaves of different classes
    assert embedded[0] @ embedded[0] == 3
    assert paths(tree, rows, frugal=True).shape == (2, 4)  # half the edges


def test_inner_products_are_shared_path_lengths(rng) -> None:
    tree, rows = grown(rng)
    embedded = paths(tree, rows[:60], frugal=False).toarray()
    for i in range(0, 60, 7):
        for j in range(60):
            expected = naive.signed_shared_path(tree, rows[i], rows[j])
            assert embedded[i] @ embedded[j] == expected
    # squared distance of the unsigned vectors = length of the walk between the leaves
    size = np.abs(embedded)
    depth = size.sum(axis=1)
    shared = size @ size.T
    np.testing.assert_array_equal(
        ((size[:, None] - size[None]) ** 2).sum(-1), depth[:, None] + depth - 2 * shared
    )


def test_paths_equal_a_plain_walk(rng) -> None:
    tree, rows = grown(rng, depth=7)
    assert np.diff(leaf_paths(tree, False).indptr).max() <= 7
    full = paths(tree, rows[:50], frugal=False).toarray()
    frugal = paths(tree, rows[:50], frugal=True).toarray()
    for row, dense in zip(rows[:50], full, strict=True):
        passed, sign = naive.walk(tree, row)
        expected = np.zeros(tree.n_nodes - 1)
        expected[np.array(passed, dtype=int) - 1] = sign
        np.testing.assert_array_equal(dense, expected)
    np.testing.assert_array_equal(frugal, full[:, tree.edges(True) - 1])
    assert full.shape[1] == 2 * frugal.shape[1]
    np.testing.assert_array_equal(
        tree.leaf_of(rows[:50]), [naive.walk(tree, row)[0][-1] for row in rows[:50]]
    )


def test_nodes_are_numbered_by_level(rng) -> None:
    tree, _ = grown(rng)
    children = np.concatenate([[tree.left[k], tree.right[k]] for k in range(tree.n_nodes)])
    assert (children[children >= 0] == np.arange(1, tree.n_nodes)).all()
    assert tree.feature[0] == 4  # the score is the last column
    assert set(tree.sign[tree.left < 0]) <= {-1, 1}
    assert not tree.sign[tree.left >= 0].any()


# -- growing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("depth", "leaf"), [(3, 1), (6, 5), (30, 1)])
def test_binned_tree_equals_an_exact_one_when_bins_hold_all_values(rng, depth, leaf) -> None:
    X = np.round(rng.normal(size=(2000, 5)), 1)
    y = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + rng.normal(size=2000) > 0.7
    codes, cuts = tree_path._bin_columns(X)
    feature, code, left, right, share = tree_path._grow_tree(codes, y.astype(np.int64), depth, leaf)
    peer = DecisionTreeClassifier(max_depth=depth, min_samples_leaf=leaf, random_state=0).fit(X, y)
    threshold = np.array(
        [cuts[f][c] if f >= 0 else 0.0 for f, c in zip(feature, code, strict=True)]
    )
    ours = PathTree(feature, threshold, left, right, np.where(feature < 0, 1, 0))
    leaves = ours.leaf_of(X)
    assert np.bincount(leaves, minlength=1)[feature < 0].min() >= leaf
    impurity = np.mean(share[leaves] * (1 - share[leaves]))
    theirs = peer.predict_proba(X)[:, 1]
    # equally good splits may be chosen otherwise; the purity reached is the same
    assert impurity == pytest.approx(np.mean(theirs * (1 - theirs)), rel=0.02, abs=1e-12)
    if depth == 3:
        np.testing.assert_allclose(share[leaves], theirs)


def test_many_values_are_cut_at_quantiles(rng) -> None:
    column = rng.lognormal(size=(5000, 1))
    codes, cuts = tree_path._bin_columns(column)
    assert len(cuts[0]) <= 255
    counts = np.bincount(codes[0])
    assert counts.max() < 3 * 5000 / 256
    for c in (0, 100, 200):
        np.testing.assert_array_equal(codes[0] <= c, column.ravel() <= cuts[0][c])
    thin = sparse.csr_matrix(np.where(column > 1, column, 0))
    np.testing.assert_array_equal(
        tree_path._bin_columns(thin)[0], tree_path._bin_columns(thin.toarray())[0]
    )


def test_a_part_of_many_rows_keeps_the_rarer_class(rng) -> None:
    positive = np.arange(1000) < 60
    rows = sample_rows(positive, np.arange(1000), 200, 0)
    assert len(rows) == len(set(rows)) == 200
    assert positive[rows].sum() == 60
    assert positive[sample_rows(positive, np.arange(1000), 80, 0)].sum() == 40
    assert (~positive)[sample_rows(~positive, np.arange(1000), 80, 0)].sum() == 40
    assert len(sample_rows(positive, np.arange(50), 200, 0)) == 50


def test_smote_balances_each_side_and_says_how(rng) -> None:
    X, y = rare(rng, 300)
    rows, labels, used = oversample(X, y == 1, 5, 0)
    assert labels.sum() * 2 == len(labels)
    assert used == "smote(5)"
    assert len(rows) > 300
    np.testing.assert_array_equal(rows[:300], X)
    three = np.flatnonzero(y)[:3]
    part = np.r_[three, np.flatnonzero(y == 0)[:50]]
    assert oversample(X[part], y[part] == 1, 5, 0)[2] == "smote(2)"
    one = part[2:]
    rows, labels, used = oversample(X[one], y[one] == 1, 5, 0)
    assert used == "random"
    assert labels.sum() * 2 == len(labels)


def test_many_rare_rows_are_balanced_in_blocks(rng, monkeypatch) -> None:
    monkeypatch.setattr("toprank.margin.tree_path._MINORITY_BLOCK", 40)
    X, y = rare(rng, 1000, share=0.3)
    rows, labels, _ = oversample(X, y == 1, 5, 0)
    assert labels.mean() == pytest.approx(0.5, abs=0.01)
    thin, thin_labels, _ = oversample(sparse.csr_matrix(X), y == 1, 5, 0)
    np.testing.assert_array_equal(labels, thin_labels)
    np.testing.assert_allclose(thin.toarray(), rows, atol=1e-12)


def test_one_class_on_a_side_is_a_leaf() -> None:
    rows = np.arange(20.0)[:, None]
    tree = grow(rows, rows.ravel() > 12, 4, 1, 5, 0)
    assert tree.n_nodes == 3
    assert tree.sampling == ("none", "none")
    assert tree.sign.tolist() == [0, -1, 1]
    constant = grow(np.zeros((6, 1)), np.arange(6) < 2, 4, 1, 5, 0)
    assert constant.n_nodes == 1
    assert paths(constant, np.zeros((6, 1)), True).shape == (6, 0)


def test_few_positives() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    for n_positives in (1, 2, 3):
        y = (np.arange(80) < n_positives).astype(int)
        embedding = TreePathEmbedding(random_state=0)
        assert embedding.fit_transform(X, y).shape[0] == 80
        assert len(embedding.trees_) == max(n_positives if n_positives > 1 else 1, 1)
        assert len(embedding.sampling_) == len(embedding.trees_)


# -- outputs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["concat", "product", "spectral"])
@pytest.mark.parametrize("n_folds", [None, 3])
def test_shapes_names_and_kinds(rng, output, n_folds) -> None:
    X, y = rare(rng)
    frame = pd.DataFrame(X, columns=["amount", "hour", "age", "visits"])
    embedding = TreePathEmbedding(output, n_folds=n_folds, max_depth=4, random_state=0)
    trained = embedding.fit_transform(frame, y)
    new = embedding.transform(frame)
    names = embedding.get_feature_names_out()
    assert sparse.issparse(trained)
    assert trained.shape == new.shape == (400, len(names))
    assert len(set(names)) == len(names)
    assert names[:4].tolist() == frame.columns.tolist()
    np.testing.assert_allclose(new[:, :4].toarray(), X)
    dense = clone(embedding).set_params(sparse_output=False).fit_transform(frame, y)
    np.testing.assert_allclose(dense, trained.toarray())
    thin = clone(embedding).set_params(scale=False)
    plain = thin.fit_transform(X, y)
    assert abs(thin.fit_transform(sparse.csr_matrix(X), y) - plain).max() < 1e-9
    with pytest.raises(ValueError, match="names for"):
        embedding.get_feature_names_out(["a"])


def test_product_is_every_column_times_every_edge(rng) -> None:
    X, y = rare(rng)
    concat = TreePathEmbedding("concat", n_folds=2, max_depth=3, random_state=0).fit(X, y)
    product = TreePathEmbedding("product", n_folds=2, max_depth=3, random_state=0).fit(X, y)
    base = concat.transform(X).toarray()
    edges = base[:, 4:]
    crossed = product.transform(X).toarray()
    np.testing.assert_array_equal(crossed[:, : base.shape[1]], base)
    expected = (edges[:, :, None] * X[:, None, :]).reshape(400, -1)
    np.testing.assert_allclose(crossed[:, base.shape[1] :], expected)
    names = product.get_feature_names_out()
    k = base.shape[1] + 4 * 1 + 2  # the second edge, the third column
    assert names[k] == f"x2*{names[4 + 1]}"


@pytest.mark.parametrize("products", [False, True])
def test_columns_are_stacked_in_parts(rng, products, monkeypatch) -> None:
    X = np.where(rng.random((50, 3)) < 0.3, 0.0, rng.normal(size=(50, 3)))
    path = sparse.random_array((50, 4), density=0.4, format="csr", rng=rng)
    expected = [X, path.toarray()]
    if products:
        expected.append((expected[1][:, :, None] * X[:, None, :]).reshape(50, -1))
    for block in (1 << 20, 21):  # all rows at once, and seven at a time
        monkeypatch.setattr("toprank.margin.matrices._BLOCK", block)
        for rows in (X, sparse.csr_matrix(X), X[:0]):
            joined = hstack_with_products(rows, path[: rows.shape[0]], products)
            np.testing.assert_array_equal(joined.toarray(), np.hstack(expected)[: rows.shape[0]])
            assert joined.indices.dtype == np.int32
            assert joined.has_canonical_format


def test_names_tell_the_condition(rng) -> None:
    X, y = rare(rng)
    X = X * 100 + 7
    embedding = TreePathEmbedding(n_folds=None, max_depth=3, frugal=False, random_state=0).fit(X, y)
    path = embedding.transform(X).toarray()[:, 4:]
    for name, column in zip(embedding.get_feature_names_out()[4:], path.T, strict=True):
        condition = name[name.index("[") + 1 : -1]
        sign = "<=" if "<=" in condition else ">"
        left, right = condition.split(sign)
        if left == "score":
            continue
        cells = X[column != 0, int(left[1:])]
        # names show six digits
        edge = float(right) + (1e-3 if sign == "<=" else -1e-3)
        assert (cells <= edge).all() if sign == "<=" else (cells > edge).all()


def test_spectral_output_is_the_laplacian_eigenmap_of_the_rows(rng) -> None:
    tree, rows = grown(rng, depth=4, n=150)
    leaves = tree.leaf_of(rows)
    coordinates = leaf_coordinates(tree, leaves, 3, bandwidth=2.0)
    path = paths(tree, rows, frugal=False).toarray()
    squares = ((path[:, None] - path[None]) ** 2).sum(-1)
    kernel = np.exp(-squares / 4.0)
    degree = kernel.sum(axis=1)
    vectors = np.linalg.eigh(kernel / np.sqrt(degree[:, None] * degree))[1]
    exact = vectors[:, [-2, -3, -4]] / np.sqrt(degree)[:, None]
    peer = spectral_embedding(kernel, n_components=3, eigen_solver="arpack", random_state=0)
    # scikit-learn leaves the diagonal of the kernel out
    for other, tolerance in ((exact, 1e-9), (peer, 1e-2)):
        for ours, theirs in zip(coordinates[leaves].T, other.T, strict=True):
            cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
            assert abs(cosine) == pytest.approx(1.0, abs=tolerance)
    np.testing.assert_allclose((coordinates[leaves] ** 2).mean(axis=0), 1.0)


def test_new_rows_are_the_mean_over_trees(rng) -> None:
    X, y = rare(rng)
    embedding = TreePathEmbedding(n_folds=4, max_depth=3, frugal=False, random_state=0).fit(X, y)
    new = embedding.transform(X).toarray()[:, 4:]
    gram = new @ new.T
    single = np.zeros_like(gram)
    for k, tree in enumerate(embedding.trees_):
        scaled = scale_rows(embedding.scaler_, X)
        rows = np.column_stack((scaled, scaled @ embedding.score_coef_[k]))
        path = paths(tree, rows, frugal=False).toarray()
        single += path @ path.T / 4
    np.testing.assert_allclose(gram, single, atol=1e-12)


# -- out of fold -------------------------------------------------------------------------------------


def test_training_rows_are_embedded_by_a_tree_that_has_not_seen_them(rng) -> None:
    X = rng.normal(size=(500, 6))
    y = rng.integers(0, 2, 500)  # nothing to learn

    def apparent(n_folds):
        embedding = TreePathEmbedding(
            n_folds=n_folds, max_depth=12, min_samples_leaf=1, random_state=0
        )
        path = embedding.fit_transform(X, y)[:, 6:].sum(axis=1)
        return roc_auc(y, np.asarray(path).ravel())

    assert apparent(None) > 0.8  # the signs know the labels
    assert apparent(5) == pytest.approx(0.5, abs=0.08)


def test_each_training_row_is_in_the_columns_of_one_tree(rng) -> None:
    X, y = rare(rng)
    embedding = TreePathEmbedding(n_folds=3, max_depth=4, frugal=False, random_state=0)
    path = embedding.fit_transform(X, y).tocsc()[:, 4:]
    ends = np.cumsum([tree.n_nodes - 1 for tree in embedding.trees_])
    blocks = np.split(path.toarray(), ends[:-1], axis=1)
    present = np.array([np.abs(block).sum(axis=1) > 0 for block in blocks])
    np.testing.assert_array_equal(present.sum(axis=0), 1)
    assert set(np.unique(np.abs(path.data)).round(9)) == {round(np.sqrt(3), 9)}


# -- as a step of others -----------------------------------------------------------------------------


def test_it_makes_a_linear_model_bend() -> None:
    X, y = make_circles(800, factor=0.5, noise=0.12, random_state=0)
    model = make_pipeline(TreePathEmbedding(random_state=0), LogisticRegression(max_iter=2000))
    model.fit(X[:500], y[:500])
    assert model.score(X[500:], y[500:]) > 0.85
    search = GridSearchCV(
        make_pipeline(TreePathEmbedding(random_state=0), LinearSVC(random_state=0)),
        {"treepathembedding__max_depth": [1, 6]},
        cv=2,
    ).fit(X[:300], y[:300])
    assert search.best_params_["treepathembedding__max_depth"] == 6


def test_seeds_threads_and_draws(rng) -> None:
    X, y = make_moons(600, noise=0.3, random_state=0)
    first = TreePathEmbedding(random_state=3).fit_transform(X, y)
    again = TreePathEmbedding(random_state=3, n_jobs=2).fit_transform(X, y)
    assert (first != again).nnz == 0
    drawn = TreePathEmbedding(random_state=3, max_rows=100, max_depth=3).fit(X, y)
    assert drawn.transform(X).shape[0] == 600


def test_errors(rng) -> None:
    X, y = rare(rng, 60)
    for parameters, message in (
        ({"output": "sum"}, "'output' parameter of TreePathEmbedding must be.*spectral"),
        ({"n_folds": 1}, "'n_folds' parameter of TreePathEmbedding must be"),
        ({"max_depth": 0}, "'max_depth' parameter of TreePathEmbedding must be"),
        ({"smote_neighbors": 0}, "'smote_neighbors' parameter of TreePathEmbedding must be"),
        ({"penalty": 0}, "'penalty' parameter of TreePathEmbedding must be"),
    ):
        with pytest.raises(ValueError, match=message):
            TreePathEmbedding(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="only one class"):
        TreePathEmbedding().fit(X, np.zeros(60))
    frame = pd.DataFrame({"a": X[:, 0], "country": ["NL", "DE"] * 30})
    with pytest.raises(ValueError, match=r"country.*OneHotEncoder"):
        TreePathEmbedding().fit(frame, y)


def test_scikit_learn_conventions_without_folds() -> None:
    check_estimator(TreePathEmbedding(n_folds=None, max_depth=3), on_skip=None)
