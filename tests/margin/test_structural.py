"""Structural SVMs: the most violated ordering, the cutting planes, the estimator."""

from __future__ import annotations

from dataclasses import replace

import naive_poise as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from toprank import PartialAUCSVM, RankSVM
from toprank.margin import partial_solvers
from toprank.margin.partial_loss import PartialLoss
from toprank.margin.partial_solvers import (
    BatchOptions,
    Planes,
    Search,
    fit_range,
    linear_oracle,
    minimise,
)
from toprank.metrics import partial_auc, roc_auc


def structural(scores, positive, fpr, weight=None, qid=None) -> tuple[float, np.ndarray]:
    weight = np.ones(len(scores)) if weight is None else weight
    return PartialLoss(positive, weight, fpr, structural=True, qid=qid)(np.asarray(scores, float))


def draw(rng, n=12, levels=None):
    scores = rng.normal(size=n) * 1.5
    if levels:
        scores = np.round(scores * levels) / levels
    positive = rng.random(n) < 0.4
    positive[:2] = True, False
    return scores, positive


# -- the most violated ordering --------------------------------------------------------------------


@pytest.mark.parametrize("fpr", [(0.0, 1.0), (0.0, 0.5), (0.25, 0.75), (0.25, 1.0), (0.5, 0.75)])
def test_argmax_equals_exhaustive_search_over_orderings(rng, fpr) -> None:
    orderings = naive.all_orderings(2, 4)
    for _ in range(5):
        up, down = rng.normal(size=2) * 1.5, rng.normal(size=4) * 1.5
        best = max(
            naive.ordering_loss(matrix, negatives, fpr)
            - (matrix * (up[:, None] - down)).sum() / (8 * (fpr[1] - fpr[0]))
            for matrix, negatives in orderings
        )
        value, _ = structural(np.r_[up, down], np.arange(6) < 2, fpr)
        assert value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("fpr", [(0.0, 0.5), (1 / 6, 1.0), (1 / 6, 0.5), (0.5, 5 / 6)])
def test_argmax_with_fractional_ends_equals_exhaustive_search(rng, fpr) -> None:
    for _ in range(4):
        up, down = rng.normal(size=2) * 1.5, rng.normal(size=3) * 1.5
        value, _ = structural(np.r_[up, down], np.arange(5) < 2, fpr)
        assert value == pytest.approx(naive.structural_loss(up, down, fpr, copies=2), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    ends=st.tuples(st.floats(0, 0.9), st.floats(0.05, 1)),
    levels=st.sampled_from([None, 1, 2]),
)
def test_bounds_and_derivative(seed, ends, levels) -> None:
    low, high = min(ends), max(ends)
    if high - low < 0.02:
        return
    rng = np.random.default_rng(seed)
    scores, positive = draw(rng, 15, levels)
    weight = rng.integers(1, 4, 15).astype(float)
    loose, gradient = structural(scores, positive, (low, high), weight)
    tight = PartialLoss(positive, weight, (low, high))(scores)[0]
    error = 1 - partial_auc(positive, scores, fpr=(low, high), sample_weight=weight)
    assert loose >= tight - 1e-9 if low == 0 else loose >= -1e-12
    assert tight >= error - 1e-9
    assert loose >= error / 2 - 1e-9  # ties in the ordering cost nothing, in the AUC a half
    assert abs(gradient.sum()) < 1e-9
    if levels is None:
        for i in rng.integers(0, 15, 3):
            step = np.zeros(15)
            step[i] = 1e-6
            change = (
                structural(scores + step, positive, (low, high), weight)[0]
                - structural(scores - step, positive, (low, high), weight)[0]
            )
            assert gradient[i] == pytest.approx(change / 2e-6, abs=1e-5)


def test_over_the_whole_range_it_is_the_mean_hinge_of_all_pairs(rng) -> None:
    scores, positive = draw(rng, 30)
    value, gradient = structural(scores, positive, (0.0, 1.0))
    hinge, slope = PartialLoss(positive, np.ones(30), (0.0, 1.0))(scores)
    assert value == pytest.approx(hinge, abs=1e-12)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)


def test_weights_are_copies_and_row_order_does_not_matter(rng) -> None:
    for tight in (False, True):
        scores, positive = draw(rng, 20, levels=2)
        weight = rng.integers(1, 4, 20).astype(float)
        copies = np.repeat(np.arange(20), weight.astype(int))
        loss = PartialLoss(positive, weight, (0.13, 0.61), structural=not tight)
        repeated = PartialLoss(
            positive[copies], np.ones(len(copies)), (0.13, 0.61), structural=not tight
        )
        value, gradient = loss(scores)
        other, parts = repeated(scores[copies])
        assert value == pytest.approx(other, abs=1e-12)
        np.testing.assert_allclose(gradient, np.bincount(copies, parts), atol=1e-12)
        order = rng.permutation(20)
        shuffled = PartialLoss(positive[order], weight[order], (0.13, 0.61), structural=not tight)
        np.testing.assert_allclose(shuffled(scores[order])[1], gradient[order], atol=1e-12)


def test_queries_never_meet_and_count_alike(rng) -> None:
    qid = np.repeat([5, 3, 9], [10, 14, 6])
    scores, positive = draw(rng, 30)
    positive[qid == 9] = False  # left out: one class only
    positive[10:12] = True, False
    value, gradient = structural(scores, positive, (0.1, 0.6), qid=qid)
    single = [structural(scores[qid == q], positive[qid == q], (0.1, 0.6)) for q in (5, 3)]
    assert value == pytest.approx(np.mean([s[0] for s in single]), abs=1e-12)
    np.testing.assert_allclose(gradient[qid == 5], single[0][1] / 2, atol=1e-12)
    assert not gradient[qid == 9].any()


# -- the cutting planes ------------------------------------------------------------------------------


def test_planes_stay_below_and_close_the_gap(rng, monkeypatch) -> None:
    X = rng.normal(size=(60, 4))
    positive = X[:, 0] + rng.normal(size=60) > 0.8
    loss = PartialLoss(positive, np.ones(60), (0.0, 0.4), structural=True)
    oracle = linear_oracle(X, loss)
    planes = Planes(4)
    zero, options = np.zeros(4), BatchOptions(0.01, tol=1e-6)
    found = minimise(Search(oracle, 0.01, zero, planes=planes), zero, options)
    assert found.bound <= found.objective <= found.bound + 1e-6 * found.objective
    for w in rng.normal(size=(50, 4)):
        assert (planes.gradients @ w + planes.heights).max() <= oracle(w)[0] + 1e-9
        assert oracle(w)[0] + 0.005 * w @ w >= found.bound
    monkeypatch.setattr(partial_solvers, "_SMOOTH_STEPS", 0)
    alone = minimise(Search(oracle, 0.01, zero, planes=Planes(4)), zero, options)
    assert alone.objective == pytest.approx(found.objective, rel=2e-6)


def test_linear_term_and_scale(rng) -> None:
    X = rng.normal(size=(40, 3))
    positive = X[:, 0] > 0.5
    oracle = linear_oracle(X, PartialLoss(positive, np.ones(40), (0.0, 0.5)))
    linear = rng.normal(size=3) * 0.1

    def objective(w):
        return 2.5 * oracle(w)[0] + linear @ w + 0.05 * w @ w

    search = Search(oracle, 0.1, linear, 2.5, Planes(3))
    found = minimise(search, np.zeros(3), BatchOptions(0.1, tol=1e-7))
    assert found.objective == pytest.approx(objective(found.coefficients), rel=1e-12)
    rough = min(
        optimize.minimize(objective, found.coefficients + s, method="Nelder-Mead").fun
        for s in rng.normal(size=(3, 3)) * 0.1
    )
    assert found.objective <= rough + 1e-6


def test_optimum_equals_a_program_over_all_orderings(rng) -> None:
    X = rng.normal(size=(6, 2))
    positive = np.arange(6) < 2
    fpr, strength = (0.25, 0.75), 0.1
    gaps = X[:2, None, :] - X[None, 2:, :]
    planes = Planes(2)
    for matrix, negatives in naive.all_orderings(2, 4):
        slope = -np.einsum("ij,ijd->d", matrix, gaps) / (8 * 0.5)
        planes.add(np.zeros(2), naive.ordering_loss(matrix, negatives, fpr), slope)
    _, exact = planes.lowest(strength, 1.0, np.zeros(2))
    loss = PartialLoss(positive, np.ones(6), fpr, structural=True)
    found = fit_range(X, loss, BatchOptions(strength, tol=1e-7))
    assert found.objective == pytest.approx(exact, rel=1e-5)


# -- the estimator -----------------------------------------------------------------------------------


def sample(rng, n=400, shift=1.2):
    y = (rng.random(n) < 0.25).astype(int)
    X = rng.normal(size=(n, 5))
    X[:, 0] += shift * y
    X[:, 1] -= 0.6 * shift * y
    return X, y


def test_whole_range_equals_linear_svc_on_all_pair_differences(rng) -> None:
    X, y = sample(rng, 60)
    up, down = X[y == 1], X[y == 0]
    pairs = (up[:, None] - down[None]).reshape(-1, 5)
    C = 5.0
    signs = np.where(np.arange(len(pairs)) % 2, 1, -1)
    peer = LinearSVC(
        loss="hinge", C=C / len(pairs), fit_intercept=False, tol=1e-10, max_iter=200_000
    ).fit(pairs * signs[:, None], signs)
    ours = PartialAUCSVM(fpr=(0, 1), C=C, scale=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_[0], atol=1e-4)


def test_tight_is_certified_from_the_top_and_descends_elsewhere(rng) -> None:
    X, y = sample(rng, shift=2.0)
    top = PartialAUCSVM(fpr=(0, 0.3), tight=True, C=100, tol=1e-4).fit(X, y)
    assert top.gap_ <= 1e-4
    scaled = (X - X.mean(0)) / X.std(0)
    w = top.coef_ * X.std(0)
    objective = naive.partial_loss(y == 1, scaled @ w, np.ones(len(y)), (0, 0.3)) + w @ w / 200
    assert top.objective_ == pytest.approx(objective, rel=1e-9)
    inside = PartialAUCSVM(fpr=(0.1, 0.3), tight=True, C=100).fit(X, y)
    loose = PartialAUCSVM(fpr=(0.1, 0.3), C=100).fit(X, y)
    start = loose.coef_ * X.std(0)
    before = naive.partial_loss(y == 1, scaled @ start, np.ones(len(y)), (0.1, 0.3))
    assert inside.objective_ < 0.9 * before
    assert inside.objective_ <= before + start @ start / 200 + 1e-9


def test_it_serves_its_range(rng) -> None:
    X, y = sample(rng, 1500, shift=2.5)
    X_test, y_test = sample(rng, 4000, shift=2.5)
    for model in (PartialAUCSVM((0, 0.2)), PartialAUCSVM((0.05, 0.2), tight=True)):
        scores = model.fit(X, y).decision_function(X_test)
        assert roc_auc(y_test, scores) > 0.95
        assert partial_auc(y_test, scores, fpr=(0, 0.2)) > 0.85


def test_a_warning_when_equal_scores_are_best(rng) -> None:
    X, y = sample(rng, 400, shift=0.2)
    with pytest.warns(UserWarning, match="no linear score has .* widen fpr"):
        model = PartialAUCSVM((0, 0.05), degenerate="warn").fit(X, y)
    assert not model.coef_.any()
    assert model.objective_ == pytest.approx(1.0)
    assert model.solution_ == "structural"


def has_zero_optimum(X, positive, share) -> bool:
    """Whether a mean of negatives, none with more than its part of the share, is the positives' mean."""
    below = X[~positive]
    most = 1.0 / (share * len(below))
    found = optimize.linprog(
        np.zeros(len(below)), A_eq=np.vstack([below.T, np.ones(len(below))]),
        b_eq=np.append(X[positive].mean(0), 1.0), bounds=(0.0, most),
    )  # fmt: skip
    return bool(found.status == 0)


@pytest.mark.parametrize("shift", [0.2, 3.0])
def test_the_fallback_is_taken_exactly_where_a_program_says_so(rng, shift) -> None:
    X, y = sample(rng, 400, shift=shift)
    degenerate = has_zero_optimum(X, y == 1, 0.1)
    assert degenerate == (shift < 1)
    model = PartialAUCSVM((0, 0.1), C=1e4)
    if not degenerate:
        assert model.fit(X, y).solution_ == "structural"
        return
    with pytest.warns(UserWarning, match="is kept instead"):
        model.fit(X, y)
    assert model.solution_ in ("tight", "auc")
    scores = model.decision_function(X)
    whole = PartialAUCSVM(C=1e4).fit(X, y).decision_function(X)
    assert partial_auc(y, scores, fpr=(0, 0.1)) >= partial_auc(y, whole, fpr=(0, 0.1)) > 0.05


def test_a_small_c_is_no_degeneracy(rng) -> None:
    X, y = sample(rng, 300, shift=2.0)
    model = PartialAUCSVM((0, 0.3), C=1e-6).fit(X, y)
    assert model.solution_ == "structural"
    assert roc_auc(y, model.decision_function(X)) > 0.8


def test_tight_starts_from_the_auc_too(rng) -> None:
    # hard negatives all around: equal scores are the optimum of the convex loss
    X, y = sample(rng, 600, shift=1.5)
    loss = PartialLoss(y == 1, np.ones(600), (0.05, 0.1))
    scaled = (X - X.mean(0)) / X.std(0)
    options = BatchOptions(1e-3, 1e-3, 1000, direct=False)
    starts = [
        fit_range(scaled, replace(loss, structural=True), options).coefficients,
        fit_range(scaled, loss.over((0.0, 1.0)), options).coefficients,
    ]
    reached = [fit_range(scaled, loss, options, start).objective for start in starts]
    model = PartialAUCSVM((0.05, 0.1), tight=True, C=1000).fit(X, y)
    assert model.objective_ == pytest.approx(min(reached), rel=1e-6)
    assert reached[1] < 0.9 * reached[0]
    assert not starts[0].any()


def test_many_more_columns_than_rows_are_solved_soon(rng) -> None:
    """The objective is nearly 0 there: a share of it would never be reached."""
    wide = PartialAUCSVM(max_iter=300).fit(rng.normal(size=(40, 3000)), np.arange(40) < 8)
    assert wide.gap_ <= 1e-3


def test_only_few_rows_are_turned_into_features(rng, monkeypatch) -> None:
    """Their eigenvectors take the cube of the rows, minutes from ten thousand on."""
    X, y = rng.normal(size=(60, 80)), np.arange(60) < 12
    turned = PartialAUCSVM(C=10.0, tol=1e-4).fit(X, y)
    monkeypatch.setattr(partial_solvers, "_MOST_ROTATED", 59)
    monkeypatch.delattr(partial_solvers, "rotate_onto_rows")
    as_they_are = PartialAUCSVM(C=10.0, tol=1e-4).fit(X, y)
    assert as_they_are.objective_ == pytest.approx(turned.objective_, rel=1e-2)


def test_more_columns_than_rows(rng) -> None:
    X = rng.normal(size=(30, 400))
    y = np.arange(30) < 8
    wide = PartialAUCSVM(C=10.0, tol=1e-4).fit(X, y)
    assert wide.gap_ <= 1e-3
    peer = RankSVM(C=10.0, loss="hinge", tol=1e-8).fit(X, y)
    assert wide.objective_ * 10.0 == pytest.approx(peer.objective_, rel=1e-2)
    assert np.corrcoef(wide.coef_, peer.coef_)[0, 1] > 0.99


def test_queries_and_sparse_input(rng) -> None:
    X, y = sample(rng, 300)
    qid = rng.integers(0, 12, 300)
    shifted = X + 50.0 * (qid[:, None] == 3)  # what differs only between queries must not matter
    plain = PartialAUCSVM((0, 0.5), scale=False, tol=1e-6).fit(X, y, qid=qid)
    moved = PartialAUCSVM((0, 0.5), scale=False, tol=1e-6).fit(shifted, y, qid=qid)
    np.testing.assert_allclose(plain.coef_, moved.coef_, atol=2e-2 * abs(plain.coef_).max())
    dense = PartialAUCSVM((0, 0.5), scale=False).fit(X, y)
    thin = PartialAUCSVM((0, 0.5), scale=False).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(dense.coef_, thin.coef_, rtol=1e-6)


def test_errors_and_warnings(rng) -> None:
    X, y = sample(rng, 100)
    with pytest.raises(ValueError, match="0 <= a < b <= 1"):
        PartialAUCSVM(fpr=(0.5, 0.2)).fit(X, y)
    with pytest.raises(ValueError, match="pair"):
        PartialAUCSVM(fpr=0.2).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter of PartialAUCSVM must"):
        PartialAUCSVM(C=0).fit(X, y)
    with pytest.raises(ValueError, match="no query holds rows of more than one class"):
        PartialAUCSVM().fit(X, y, qid=y)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        PartialAUCSVM(fpr=(0, 0.8), C=1e4, max_iter=3).fit(X, y)
