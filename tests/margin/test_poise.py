"""POISE: the loss over a range, its two solvers, the choice of the range, the estimator."""

from __future__ import annotations

from contextlib import contextmanager

import naive_poise as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import LinearSVC

from toprank import POISE, PartialAUCRanker
from toprank.margin import partial_solvers
from toprank.margin.base import deduplicate_rows
from toprank.margin.matrices import matrix_arrays
from toprank.margin.partial_auc import content_folds, penalties_to_try
from toprank.margin.partial_loss import SURROGATES, PartialLoss
from toprank.margin.partial_solvers import (
    BatchOptions,
    candidate_ranges,
    fit_range,
    fit_stochastic,
    proportional_draw,
    sample_size,
)
from toprank.metrics import average_precision, list_length_for_recall, partial_auc, roc_auc
from toprank.pairs import range_weights
from toprank.stopping import hold_out

every_loss = pytest.mark.parametrize("surrogate", list(SURROGATES))


def sample(rng, n=400, shift=1.5, share=0.2, columns=5):
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, columns))
    X[:, 0] += shift * y
    X[:, 1] -= 0.5 * shift * y
    return X, y


# -- the loss ----------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 25),
    ends=st.tuples(st.floats(0, 0.95), st.floats(0.05, 1)),
    levels=st.sampled_from([None, 1, 2]),
    size=st.sampled_from([1e-3, 1.0, 20.0]),
    surrogate=st.sampled_from(list(SURROGATES)),
)
def test_loss_equals_the_sum_over_pairs(seed, n, ends, levels, size, surrogate) -> None:
    low, high = min(ends), max(ends)
    if high - low < 1e-3:
        return
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n) * size
    if levels:
        scores = np.round(scores / size * levels) * size
    positive = rng.random(n) < 0.5
    positive[:2] = True, False
    weight = rng.integers(1, 4, n) * 0.5
    value, gradient = PartialLoss(positive, weight, (low, high), surrogate)(scores)
    expected = naive.partial_loss(positive, scores, weight, (low, high), surrogate)
    assert value == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert abs(gradient.sum()) <= 1e-7 * max(1.0, np.abs(gradient).max())
    assert (gradient[positive] <= 0).all()
    assert (gradient[~positive] >= 0).all()


@every_loss
@pytest.mark.parametrize("fpr", [(0.0, 1.0), (0.0, 0.23), (0.11, 0.57)])
def test_gradient_by_finite_differences(rng, surrogate, fpr) -> None:
    positive = np.arange(30) < 9
    scores, weight = rng.normal(size=30), rng.random(30) + 0.5
    loss = PartialLoss(positive, weight, fpr, surrogate)
    gradient = loss(scores)[1]
    numeric = [
        (loss(scores + step)[0] - loss(scores - step)[0]) / 2e-6 for step in 1e-6 * np.eye(30)
    ]
    np.testing.assert_allclose(gradient, numeric, atol=1e-7, rtol=1e-5)


@every_loss
def test_a_range_is_the_difference_of_two_convex_ones(rng, surrogate) -> None:
    positive = np.arange(40) < 12
    loss = PartialLoss(positive, rng.random(40) + 0.1, (0.2, 0.7), surrogate)
    scores, other = rng.normal(size=(2, 40))
    whole, top = loss.over((0.0, 0.7)), loss.over((0.0, 0.2))
    parts = 0.7 * whole(scores)[0] - 0.2 * top(scores)[0]
    assert 0.5 * loss(scores)[0] == pytest.approx(parts, rel=1e-7)
    for t in (0.2, 0.5, 0.9):  # convex from the top
        between = whole(t * scores + (1 - t) * other)[0]
        assert between <= t * whole(scores)[0] + (1 - t) * whole(other)[0] + 1e-9


def test_extreme_scores_stay_finite() -> None:
    positive = np.array([True, True, False, False])
    for surrogate in SURROGATES:
        for scores in ([1e6, -1e6, 1e6, -1e6], [0.0] * 4, [-1e3, -1e3, 1e3, 1e3]):
            value, gradient = PartialLoss(positive, np.ones(4), (0.0, 0.5), surrogate)(
                np.array(scores)
            )
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()


# -- the batch solver ----------------------------------------------------------------------------------


@every_loss
def test_batch_reaches_the_minimum_with_a_certificate(rng, surrogate) -> None:
    X, y = sample(rng, 120, columns=3)
    loss = PartialLoss(y == 1, np.ones(120), (0.0, 0.4), surrogate)
    found = fit_range(X, loss, BatchOptions(0.02, tol=1e-5))
    assert found.relative_gap <= 1e-5

    def objective(w):
        return naive.partial_loss(y == 1, X @ w, np.ones(120), (0.0, 0.4), surrogate) + 0.01 * w @ w

    assert found.objective == pytest.approx(objective(found.coefficients), rel=1e-6)
    rough = optimize.minimize(objective, found.coefficients + 0.05, method="Nelder-Mead")
    assert found.objective <= rough.fun * (1 + 1e-4)


def test_auc_maximiser_equals_linear_svc_on_all_pair_differences(rng) -> None:
    X, y = sample(rng, 60)
    pairs = (X[y == 1][:, None] - X[y == 0][None]).reshape(-1, 5)
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    c = 0.01
    peer = LinearSVC(
        loss="hinge", C=1 / (2 * c * len(pairs)), fit_intercept=False, tol=1e-10, max_iter=200_000
    ).fit(pairs * signs[:, None], signs)
    ours = PartialAUCRanker((0, 1), penalty=c, scale=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_[0], atol=1e-4)


def test_concave_rounds_never_go_up(rng) -> None:
    X, y = sample(rng, 300)
    loss = PartialLoss(y == 1, np.ones(300), (0.1, 0.4))
    start = rng.normal(size=5)
    direct = fit_range(X, loss, BatchOptions(0.01), start)
    pure = fit_range(X, loss, BatchOptions(0.01, direct=False), start)
    before = loss(X @ start)[0] + 0.005 * start @ start
    assert direct.objective < before
    assert pure.objective < before
    for found in (direct, pure):
        exact = loss(X @ found.coefficients)[0] + 0.005 * found.coefficients @ found.coefficients
        assert found.objective == pytest.approx(exact, rel=1e-9)


# -- the stochastic solver -----------------------------------------------------------------------------


def test_size_of_the_sample_has_the_mean_and_variance_asked_for(rng) -> None:
    for rate in (0.02, 0.1, 0.5):
        deviation = rate / 10
        size = sample_size(rate, deviation)
        place = round(rate * (size + 1))
        # rate of U(k), the k-th highest of m uniform scores: Beta(k, m - k + 1)
        mean = place / (size + 1)
        variance = place * (size - place + 1) / ((size + 1) ** 2 * (size + 2))
        assert mean == pytest.approx(rate, rel=0.05)
        assert variance**0.5 == pytest.approx(deviation, rel=0.05)
        scores = rng.random((3000, size)) if size < 3000 else rng.random((400, size))
        cuts = np.sort(scores, axis=1)[:, -place]
        rates = 1 - cuts  # share of the negatives above the estimate
        error = deviation / np.sqrt(len(rates))
        assert rates.mean() == pytest.approx(mean, abs=4 * error)
        assert rates.std() == pytest.approx(deviation, rel=0.15)


def test_proportional_draw(rng) -> None:
    equal = proportional_draw(np.full(1000, 0.3), 1000, rng)
    np.testing.assert_array_equal(np.sort(equal), np.arange(1000))
    few = proportional_draw(np.ones(1000), 100, rng)
    assert len(np.unique(few)) == 100
    weight = rng.random(50)
    counts = np.bincount(proportional_draw(weight, 500, rng), minlength=50)
    assert (np.abs(counts - 500 * weight / weight.sum()) <= 1 + 1e-9).all()


@pytest.mark.parametrize("places", [(0, 0), (0, 8), (3, 12)])
@every_loss
def test_one_pass_equals_its_plain_twin(rng, surrogate, places) -> None:
    X = rng.normal(size=(60, 4))
    negatives, positives = rng.permutation(45), 45 + rng.permutation(15)
    reservoir = rng.choice(45, 20, replace=False)
    numbers = (surrogate, 0.05, 2, 5)
    loss = list(SURROGATES).index(surrogate)
    drawn = partial_solvers._Pass(negatives, positives, reservoir, *places, loss, *numbers[1:])
    dense, thin = (partial_solvers._State.start(np.zeros(4), 0.01) for _ in range(2))
    partial_solvers.pegasos_pass(matrix_arrays(X), drawn, dense)
    expected = naive.pegasos_pass(X, negatives, positives, reservoir, places, *numbers, reach=0.01)
    np.testing.assert_allclose(dense.w, expected[0], rtol=1e-9)
    np.testing.assert_allclose(dense.average, expected[1], rtol=1e-9)
    partial_solvers.pegasos_pass(matrix_arrays(sparse.csr_matrix(X)), drawn, thin)
    np.testing.assert_allclose(thin.w, dense.w, rtol=1e-12)


@every_loss
@pytest.mark.parametrize("fpr", [(0.0, 1.0), (0.0, 0.2), (0.1, 0.4)])
@pytest.mark.parametrize("penalty", [1e-2, 1e-4])
def test_both_solvers_reach_the_same_objective(rng, surrogate, fpr, penalty) -> None:
    X, y = sample(rng, 3000, shift=2.0)
    loss = PartialLoss(y == 1, np.ones(3000), fpr, surrogate)
    batch = fit_range(X, loss, BatchOptions(2 * penalty, tol=1e-4))
    stochastic = fit_stochastic(X, loss, 2 * penalty, np.random.default_rng(0))
    assert stochastic.objective == pytest.approx(batch.objective, rel=0.02)
    if fpr[0] == 0:
        assert stochastic.objective >= batch.objective * (1 - 2e-4)


# -- helpers -------------------------------------------------------------------------------------------


def test_candidate_ranges_end_at_the_range_itself() -> None:
    assert candidate_ranges((0.0, 1.0)) == [(0.0, 1.0)]
    found = candidate_ranges((0.02, 0.05))
    assert found[0] == (0.0, 1.0)
    assert found[-1] == (0.02, 0.05)
    assert (0.0, 0.05) in found
    assert len(set(found)) == len(found)


def test_folds_keep_classes_and_copies_together(rng) -> None:
    X, y = sample(rng, 90)
    twice = np.repeat(np.arange(90), 2)
    order = rng.permutation(180)
    single = content_folds(X, y == 1, 3, np.random.default_rng(5))
    double = content_folds(X[twice][order], y[twice][order] == 1, 3, np.random.default_rng(5))
    np.testing.assert_array_equal(double, single[twice][order])
    for label in (0, 1):
        counts = np.bincount(single[y == label], minlength=3)
        assert counts.max() - counts.min() <= 1


def test_equal_rows_become_one_row_with_a_weight(rng) -> None:
    model = PartialAUCRanker()
    X, y = sample(rng, 40)
    twice = np.repeat(np.arange(40), 2)
    merged = deduplicate_rows(model._check_training(sparse.csr_matrix(X[twice]), y[twice]))
    assert merged.X.shape == (40, 5)
    assert (merged.weights == 2).all()


# -- the estimator -------------------------------------------------------------------------------------


def test_auto_finds_a_range_where_the_exact_one_says_nothing(rng) -> None:
    X, y = sample(rng, 1500, shift=1.0)
    X_test, y_test = sample(rng, 5000, shift=1.0)
    fpr = (0.0, 0.05)
    exact = PartialAUCRanker(fpr, surrogate_range="exact").fit(X, y)
    auto = PartialAUCRanker(fpr, random_state=0).fit(X, y)
    assert exact.surrogate_range_ == fpr
    assert exact.objective_ > 0.95  # nearly the loss of equal scores
    assert auto.surrogate_range_[1] > 0.05
    assert auto.objective_ < 0.95
    ours = partial_auc(y_test, auto.decision_function(X_test), fpr=fpr)
    assert ours > 0.9 * partial_auc(y_test, X_test[:, 0] - 0.5 * X_test[:, 1], fpr=fpr)
    given_range = PartialAUCRanker(fpr, surrogate_range=(0, 0.5)).fit(X, y)
    assert given_range.surrogate_range_ == (0.0, 0.5)


def test_range_matters_where_a_linear_score_cannot_serve_all(rng) -> None:
    # one column serves the top of the list, another one the rest
    n = 6000
    y = (rng.random(n) < 0.15).astype(int)
    easy = rng.random(n) < 0.3
    X = rng.normal(size=(n, 2))
    X[:, 0] += y * np.where(easy, 6.0, -0.5)
    X[:, 1] += 1.3 * y
    train, test = slice(0, 3000), slice(3000, None)
    top = PartialAUCRanker((0, 0.02), surrogate_range="auto", random_state=0).fit(
        X[train], y[train]
    )
    whole = PartialAUCRanker((0, 1)).fit(X[train], y[train])
    quality = [
        partial_auc(y[test], model.decision_function(X[test]), fpr=(0, 0.02))
        for model in (top, whole)
    ]
    assert quality[0] >= quality[1]
    assert roc_auc(y[test], whole.decision_function(X[test])) >= roc_auc(
        y[test], top.decision_function(X[test])
    )


@pytest.mark.parametrize("solver", ["batch", "pegasos"])
def test_weights_are_copies(rng, solver) -> None:
    X, y = sample(rng, 200)
    weight = rng.integers(0, 3, 200)
    copies = np.repeat(np.arange(200), weight)
    weighted = PartialAUCRanker((0.05, 0.3), solver=solver, random_state=0)
    weighted.fit(X, y, sample_weight=weight)
    repeated = PartialAUCRanker((0.05, 0.3), solver=solver, random_state=0)
    repeated.fit(X[copies], y[copies])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)


@pytest.mark.parametrize("solver", ["batch", "pegasos"])
def test_sparse_and_dense_agree(rng, solver) -> None:
    X, y = sample(rng, 300)
    X[np.abs(X) < 0.7] = 0
    models = [
        PartialAUCRanker((0, 0.3), solver=solver, scale=False, random_state=0).fit(rows, y)
        for rows in (X, sparse.csr_matrix(X))
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("solver", ["batch", "pegasos"])
def test_early_stopping_keeps_the_best_round(rng, solver, monkeypatch) -> None:
    X, y = sample(rng, 600, columns=30)
    shown = []

    @contextmanager
    def progress(total, label, enabled):
        yield lambda **fields: shown.append(fields) if enabled else None

    monkeypatch.setattr("toprank.margin.partial_auc.progress", progress)
    model = PartialAUCRanker(
        (0, 0.2), solver=solver, penalty=1e-6, early_stopping_rounds=3, validation_fraction=0.3,
        verbose=1, random_state=0,
    ).fit(X, y)  # fmt: skip
    scores = model.validation_scores_
    assert [fields["metric"] for fields in shown] == scores
    assert model.n_iter_ == len(scores)
    assert len(scores) - 1 - int(np.argmax(scores)) <= 3
    other = PartialAUCRanker(
        (0, 0.2), solver=solver, penalty=1e-6, early_stopping_rounds=3, validation_fraction=0.3,
        eval_metric="average_precision", random_state=0,
    ).fit(X, y)  # fmt: skip
    assert len(shown) == len(scores)  # quiet unless asked
    custom = PartialAUCRanker(
        (0, 0.2), solver=solver, penalty=1e-6, early_stopping_rounds=3, validation_fraction=0.3,
        eval_metric=average_precision, random_state=0,
    ).fit(X, y)  # fmt: skip
    np.testing.assert_array_equal(other.coef_, custom.coef_)


def sorted_rows(X, y):
    """Rows in the order in which a ranker without an embedding takes them."""
    order = np.lexsort(np.column_stack((y, X)).T[::-1])
    return X[order], y[order]


@pytest.mark.parametrize("solver", ["batch", "pegasos"])
def test_early_stopping_follows_the_direction_of_the_metric(rng, solver) -> None:
    """The fewest rows that hold a share of the positives are best, not the most."""
    X, y = sorted_rows(*sample(rng, 600, shift=1.0, columns=30))
    model = PartialAUCRanker(
        (0, 1), solver=solver, penalty=1e-6, early_stopping_rounds=4, validation_fraction=0.3,
        eval_metric="list_length_for_recall", random_state=0,
    ).fit(X, y)  # fmt: skip
    lengths = model.validation_scores_
    assert min(lengths) < max(lengths)
    mask = hold_out(y, 0.3, int(np.random.RandomState(0).randint(np.iinfo(np.int32).max)))
    kept = list_length_for_recall(y[mask], X[mask] @ model.coef_)
    assert kept == min(lengths)


def test_penalty_follows_the_direction_of_the_metric(rng) -> None:
    X, y = sorted_rows(*sample(rng, 120, columns=10))
    chosen = {
        metric: PartialAUCRanker((0, 1), penalty="auto", eval_metric=metric, random_state=0)
        .fit(X, y)
        .penalty_
        for metric in ("roc_auc", lambda labels, scores: -roc_auc(labels, scores))
    }
    assert len(set(chosen.values())) == 2  # the best by one is the worst by the other


def test_penalty_by_folds(rng) -> None:
    X, y = sample(rng, 300, columns=40)
    model = PartialAUCRanker((0, 0.3), random_state=0).fit(X, y)
    assert model.penalty_ in penalties_to_try(min(y.sum(), (1 - y).sum()))
    X_test, y_test = sample(rng, 2000, columns=40)
    weak = PartialAUCRanker((0, 0.3), penalty=1e-4, random_state=0).fit(X[:80], y[:80])
    auto = PartialAUCRanker((0, 0.3), random_state=0).fit(X[:80], y[:80])
    assert auto.score(X_test, y_test) > weak.score(X_test, y_test)


def test_algorithm_1_equals_its_plain_twin(rng) -> None:
    X, y = sample(rng, 80)
    loss = PartialLoss(y == 1, np.ones(80), (0.0, 0.3))
    ours = fit_stochastic(X, loss, 0.05, np.random.default_rng(5), n_epochs=2, literal=True)
    w = naive.algorithm_1(X, y == 1, 0.3, 0.05, np.random.default_rng(5), n_epochs=2)
    np.testing.assert_allclose(ours.coefficients, w, rtol=1e-9)


def test_the_printed_method_is_a_preset(rng) -> None:
    X, y = make_circles(300, factor=0.5, noise=0.12, random_state=0)
    model = POISE((0, 0.3), random_state=0).fit(X, y)
    assert model.surrogate_range_ == (0, 0.3)
    assert len(model.embedding_.trees_) == 1
    assert np.isnan(model.gap_)
    assert model.n_iter_ == 10
    assert partial_auc(y, model.decision_function(X), fpr=(0, 0.3)) > 0.8


def test_scores_that_are_no_numbers_end_the_kernel() -> None:
    weights = range_weights(np.full(5, np.nan), np.ones(5), 1.0, 3.0)
    assert weights.shape == (5,)


def test_embeddings(rng) -> None:
    X, y = make_circles(600, factor=0.5, noise=0.12, random_state=0)
    train, test = slice(0, 400), slice(400, None)

    def quality(**parameters):
        model = PartialAUCRanker((0, 0.2), random_state=0, **parameters).fit(X[train], y[train])
        return partial_auc(y[test], model.decision_function(X[test]), fpr=(0, 0.2))

    plain = quality()
    assert quality(embedding="tree_path") > max(0.8, plain + 0.3)
    assert quality(embedding=PolynomialFeatures(2, include_bias=False)) > 0.9
    assert quality(embedding="tree_path", solver="pegasos") > plain + 0.3
    with pytest.raises(ValueError, match="synthetic rows"):
        PartialAUCRanker(embedding="tree_path").fit(X, y, sample_weight=np.ones(600))


def test_embedded_rows_are_scored_in_parts(rng, monkeypatch) -> None:
    X, y = sample(rng, 300)
    model = PartialAUCRanker(embedding="tree_path", random_state=0).fit(X, y)
    whole = model.decision_function(X)
    monkeypatch.setattr("toprank.margin.partial_auc._ROWS_AT_A_TIME", 70)
    np.testing.assert_allclose(model.decision_function(X), whole, rtol=1e-12)


def test_errors(rng) -> None:
    X, y = sample(rng, 60)
    for parameters, message in (
        ({"fpr": (0.3, 0.3)}, "0 <= a < b <= 1"),
        ({"solver": "sgd"}, "'solver' parameter of PartialAUCRanker must be.*pegasos"),
        ({"loss": "square"}, "'loss' parameter of PartialAUCRanker must be.*hinge"),
        ({"penalty": 0}, "'penalty' parameter of PartialAUCRanker must be"),
        ({"penalty": "best"}, "'penalty' parameter of PartialAUCRanker must be.*auto"),
        ({"surrogate_range": "wide"}, "'surrogate_range' parameter of PartialAUCRanker must be"),
        ({"surrogate_range": (0.3, 0.1)}, "0 <= a < b <= 1"),
        ({"embedding": "forest"}, "'embedding' parameter of PartialAUCRanker must be.*tree_path"),
        ({"early_stopping_rounds": 0}, "'early_stopping_rounds' parameter of PartialAUCRanker"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter of PartialAUCRanker"),
        ({"eval_metric": "nonsense", "early_stopping_rounds": 1}, "Unknown metric"),
    ):
        with pytest.raises(ValueError, match=message):
            PartialAUCRanker(**parameters).fit(X, y)
    few = np.r_[1, np.zeros(59)]
    with pytest.raises(ValueError, match="at least two positives"):
        PartialAUCRanker(early_stopping_rounds=2).fit(X, few)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        PartialAUCRanker((0, 0.3), penalty=1e-3, max_iter=3, surrogate_range="exact").fit(X, y)


def test_one_positive_among_few_rows() -> None:
    X = np.array([[3.0], [1.0], [0.0], [-1.0]])
    for solver in ("batch", "pegasos"):
        model = PartialAUCRanker((0, 0.5), solver=solver, random_state=0).fit(X, [1, 0, 0, 0])
        assert model.decision_function(X).argmax() == 0
