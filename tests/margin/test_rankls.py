"""RankLS against explicit pairs and explicit refits."""

from __future__ import annotations

import numpy as np
import pytest
from naive_margin import (
    laplacian_of_pairs,
    rank_ls,
    rank_ls_pairs,
    rank_ls_query_errors,
    rank_ls_row_errors,
)
from scipy import sparse
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel

from toprank import RankLS, metrics
from toprank.base import threshold_for_positives
from toprank.margin import rankls
from toprank.margin.rankls import PairLaplacian, query_errors, row_errors


def _of_mean_1(weight: np.ndarray) -> np.ndarray:
    """Return weights as `fit` takes those that are no whole numbers."""
    return weight / weight.mean()


both_pairs = pytest.mark.parametrize("pairs", ["all", "cross"])
WEIGHTS = {
    "ones": lambda rng, n: np.ones(n),
    "copies": lambda rng, n: rng.integers(1, 4, n).astype(float),
    "fractions": lambda rng, n: _of_mean_1(rng.uniform(0.3, 1.7, n)),
}
all_weights = pytest.mark.parametrize("weights", WEIGHTS)


def draw(
    seed: int, weights: str = "copies", n: int = 36, levels: int = 3, n_queries: int = 4, d: int = 4
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.integers(0, levels, n).astype(float)
    qid = np.unique(rng.integers(0, n_queries, n), return_inverse=True)[1]
    X[:, 0] += y
    X += 3 * rng.normal(size=(n_queries, d))[qid]
    return X, y, qid, WEIGHTS[weights](rng, n)


@both_pairs
@all_weights
def test_laplacian_equals_the_sum_over_pairs(pairs: str, weights: str) -> None:
    X, y, qid, weight = draw(0, weights)
    L = laplacian_of_pairs(len(y), *rank_ls_pairs(y, weight, qid, pairs))
    laplacian = PairLaplacian.of(y, weight, qid, pairs)
    np.testing.assert_allclose(laplacian.times(np.eye(len(y))), L, atol=1e-12)
    np.testing.assert_allclose(laplacian.times(y), L @ y, atol=1e-11)
    centred = laplacian.centre(X.copy())
    for rows in (centred, sparse.csr_matrix(X)):
        gram, right = laplacian.gram(rows, y)
        np.testing.assert_allclose(gram, X.T @ L @ X, atol=1e-9)
        np.testing.assert_allclose(right, X.T @ L @ y, atol=1e-9)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, qid, weight = draw(1)
    order = np.random.default_rng(0).permutation(len(y))
    plain = PairLaplacian.of(y, weight, qid, "cross")
    expected = plain.gram(plain.centre(X.copy()), y)
    laplacian = PairLaplacian.of(y[order], weight[order], qid[order], "cross")
    monkeypatch.setattr("toprank.margin.matrices._BLOCK", 20)
    monkeypatch.setattr(rankls, "_ROWS_AT_A_TIME", 3)
    centred = plain.centre(X.copy())
    mixed = laplacian.gram(laplacian.centre(X[order].copy()), y[order])
    np.testing.assert_allclose(mixed[0], expected[0], atol=1e-9)
    np.testing.assert_allclose(mixed[1], expected[1], atol=1e-9)
    alphas = np.array([1.0, 30.0])
    blocked = row_errors(centred[order], y[order], laplacian, alphas)
    monkeypatch.undo()
    np.testing.assert_allclose(blocked, row_errors(centred, y, plain, alphas), rtol=1e-9)


@both_pairs
@all_weights
@pytest.mark.parametrize("alpha", [0.01, 1.0, 1e4])
def test_closed_form_equals_least_squares_on_pairs(pairs: str, weights: str, alpha: float) -> None:
    X, y, qid, weight = draw(2, weights)
    model = RankLS(alpha=alpha, pairs=pairs, scale=False).fit(X, y, weight, qid)
    expected = rank_ls(X, y, weight, qid, alpha, pairs)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-8, atol=1e-10)
    one_list = RankLS(alpha=alpha, pairs=pairs, scale=False).fit(X, y > 0, weight)
    expected = rank_ls(X, (y > 0).astype(float), weight, None, alpha, pairs)
    np.testing.assert_allclose(one_list.coef_, expected, rtol=1e-8, atol=1e-10)


@both_pairs
def test_kernel_closed_form(pairs: str) -> None:
    """Minimise (y - Ka)'L(y - Ka) + alpha·a'Ka over a: (LK + alpha·I) a = Ly."""
    X, y, qid, weight = draw(3)
    K = rbf_kernel(X, gamma=0.2)
    L = laplacian_of_pairs(len(y), *rank_ls_pairs(y, weight, qid, pairs))
    expected = K @ np.linalg.solve(L @ K + 2.0 * np.eye(len(y)), L @ y)
    model = RankLS("rbf", alpha=2.0, gamma=0.2, pairs=pairs, scale=False).fit(X, y, weight, qid)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], atol=1e-6)


@both_pairs
@all_weights
@pytest.mark.parametrize("n_queries", [1, 4, 12])
def test_rows_left_out_equal_refits(pairs: str, weights: str, n_queries: int) -> None:
    X, y, qid, weight = draw(4, weights, n_queries=n_queries)
    alphas = np.array([0.1, 10.0, 1000.0])
    laplacian = PairLaplacian.of(y, weight, qid, pairs)
    fast = row_errors(laplacian.centre(X.copy()), y, laplacian, alphas)
    slow = [rank_ls_row_errors(X, y, weight, qid, alpha, pairs) for alpha in alphas]
    np.testing.assert_allclose(fast, slow, rtol=1e-8)


@both_pairs
@all_weights
@pytest.mark.parametrize("d", [2, 9])  # fewer and more columns than rows in a query
def test_queries_left_out_equal_refits(pairs: str, weights: str, d: int) -> None:
    X, y, qid, weight = draw(5, weights, n_queries=7, d=d)
    alphas = np.array([0.1, 10.0, 1000.0])
    laplacian = PairLaplacian.of(y, weight, qid, pairs)
    fast = query_errors(laplacian.centre(X.copy()), y, laplacian, alphas)
    slow = [rank_ls_query_errors(X, y, weight, qid, alpha, pairs) for alpha in alphas]
    np.testing.assert_allclose(fast, slow, rtol=1e-8)


def test_one_list_with_all_pairs_is_ridge_regression() -> None:
    """n times the ridge loss with an intercept; leave-one-out scales the penalty by n - 1 instead."""
    X, y, _, _ = draw(6, "ones", n=50, levels=2)
    n, ridge = len(y), np.array([0.1, 1.0, 10.0])
    peer = RidgeCV(alphas=ridge, store_cv_results=True).fit(X, y)
    model = RankLS(alphas=ridge * (n - 1), leave_out="row", scale=False).fit(X, y)
    np.testing.assert_allclose(
        model.left_out_errors_ / (n - 1), peer.cv_results_.sum(axis=0), rtol=1e-8
    )
    assert model.alpha_ == pytest.approx(peer.alpha_ * (n - 1))
    fixed = RankLS(alpha=n * 1.0, scale=False).fit(X, y)
    np.testing.assert_allclose(fixed.coef_, RidgeCV(alphas=[1.0]).fit(X, y).coef_, rtol=1e-8)


@both_pairs
@pytest.mark.parametrize("leave_out", ["row", "query"])
def test_auto_takes_the_least_error_left_out(pairs: str, leave_out: str) -> None:
    X, y, qid, weight = draw(7)
    alphas = [100.0, 1.0, 10.0, 1e4]
    naive = {"row": rank_ls_row_errors, "query": rank_ls_query_errors}[leave_out]
    errors = [naive(X, y, weight, qid, alpha, pairs) for alpha in sorted(alphas)]
    model = RankLS(alphas=alphas, pairs=pairs, leave_out=leave_out, scale=False)
    model.fit(X, y, weight, qid)
    assert model.alpha_ == sorted(alphas)[int(np.argmin(errors))]
    np.testing.assert_allclose(model.left_out_errors_, errors, rtol=1e-8)
    fixed = RankLS(alpha=model.alpha_, pairs=pairs, scale=False).fit(X, y, weight, qid)
    np.testing.assert_allclose(model.coef_, fixed.coef_)
    assert not hasattr(fixed, "left_out_errors_")


@both_pairs
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("with_queries", [False, True])
def test_weights_are_copies(pairs: str, kernel: str, with_queries: bool) -> None:
    X, y, qid, weight = draw(8, n=80)
    weight -= 1
    y = (y > 1).astype(float)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    model = RankLS(kernel, pairs=pairs, random_state=0)
    weighted = model.fit(X, y, weight, qid if with_queries else None)
    alpha, scores = weighted.alpha_, weighted.decision_function(X)
    repeated = model.fit(X[copies], y[copies], qid=qid[copies] if with_queries else None)
    assert repeated.alpha_ == pytest.approx(alpha)
    np.testing.assert_allclose(repeated.decision_function(X), scores, rtol=1e-6, atol=1e-6)


def test_wide_data_is_rotated_onto_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, y, qid, weight = draw(9, d=40)
    plain = RankLS(alpha=3.0, scale=False).fit(wide, y, weight, qid)
    monkeypatch.setattr(rankls, "_MOST_COLUMNS", 36)
    for rows in (wide, sparse.csr_matrix(wide)):
        rotated = RankLS(alpha=3.0, scale=False).fit(rows, y, weight, qid)
        np.testing.assert_allclose(rotated.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    monkeypatch.setattr(rankls, "_MOST_COLUMNS", 10)
    for rows in (wide, sparse.csr_matrix(wide)):
        iterated = RankLS(alpha=3.0, scale=False).fit(rows, y, weight, qid)
        np.testing.assert_allclose(iterated.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="TruncatedSVD"):
        RankLS().fit(wide, y, weight, qid)


def test_it_finds_a_curve_with_a_kernel(rng: np.random.Generator) -> None:
    X = rng.normal(size=(400, 2))
    y = (np.hypot(*X.T) < 0.6).astype(int)
    curved, straight = RankLS("rbf").fit(X, y), RankLS().fit(X, y)
    assert metrics.roc_auc(y, curved.decision_function(X)) > 0.97
    assert metrics.roc_auc(y, straight.decision_function(X)) < 0.7


def test_the_choice_of_the_penalty_helps_on_new_rows(rng: np.random.Generator) -> None:
    X = rng.normal(size=(2060, 50))
    y = (X[:, 0] + rng.normal(size=2060) > 0.8).astype(int)
    train, test = slice(60), slice(60, None)
    chosen = RankLS().fit(X[train], y[train])
    scores = {
        alpha: metrics.roc_auc(
            y[test], RankLS(alpha=alpha).fit(X[train], y[train]).decision_function(X[test])
        )
        for alpha in chosen.alphas_[::4]
    }
    reached = metrics.roc_auc(y[test], chosen.decision_function(X[test]))
    assert reached > max(scores.values()) - 0.03
    assert reached > min(scores.values()) + 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "'alpha' parameter of RankLS must be"),
        ({"alpha": "loo"}, "'alpha' parameter of RankLS must be.*auto"),
        ({"alphas": [1.0, -1.0]}, "alphas must be"),
        ({"pairs": "some"}, "'pairs' parameter of RankLS must be.*cross"),
        ({"leave_out": "fold"}, "'leave_out' parameter of RankLS must be.*query"),
        ({"leave_out": "query"}, "at least two queries"),
    ],
)
def test_bad_parameters_get_a_clear_error(parameters: dict, message: str) -> None:
    X, y, _, _ = draw(10, levels=2)
    with pytest.raises(ValueError, match=message):
        RankLS(**parameters).fit(X, y)


def test_queries_of_one_label_only_get_a_clear_error() -> None:
    X, y, _, _ = draw(11, levels=2)
    with pytest.raises(ValueError, match="nothing to compare"):
        RankLS().fit(X, y, qid=y)


def test_scores_that_only_rounding_tells_apart_are_not_cut() -> None:
    scores = np.array([3.0, 2.0, 2.0 + 4e-16, 2.0 - 4e-16, 1.0, 0.0])
    positive = np.array([1, 1, 0, 0, 0, 0])
    cut = threshold_for_positives(positive, scores)
    assert 2.1 < cut < 2.9  # one flagged instead of two: the three in the middle are one tie
    assert threshold_for_positives(positive[1:4], scores[1:4]) < 2.1
