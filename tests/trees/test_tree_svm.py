"""The support vector machines of the splits: optimal, balanced, and well chosen."""

from __future__ import annotations

import naive_trees as naive
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from toprank import TreeRank, metrics
from toprank.encoding import NumericEncoding
from toprank.trees.splitters import (
    SVMSplit,
    balanced_costs,
    choose_svm,
    decision_values,
    descend_kernel,
    descend_linear,
    fit_svm,
    gaussian_kernel,
)
from toprank.trees.tree import Sample, TreeLimits


def draw(n: int = 80, d: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    positive = (rows[:, 0] + rng.normal(size=n) > 0.7).astype(np.uint8)
    weight = rng.uniform(0.5, 2.0, size=n)
    return rows, positive, weight


def test_the_kernel_is_that_of_scikit_learn() -> None:
    rows, _, _ = draw()
    np.testing.assert_allclose(
        gaussian_kernel(rows, rows[:7], 0.3), rbf_kernel(rows, rows[:7], gamma=0.3), rtol=1e-12
    )


def test_the_linear_svm_is_that_of_scikit_learn() -> None:
    rows, positive, weight = draw()
    costs = balanced_costs(positive, weight, 0.7)
    sign = np.where(positive == 1, 1.0, -1.0)
    coef, intercept = descend_linear(rows, sign, costs, 1e-9, 20_000, np.random.default_rng(0))
    peer = LinearSVC(loss="hinge", C=1.0, tol=1e-9, max_iter=1_000_000, random_state=0)
    peer.fit(rows, positive, sample_weight=costs)
    np.testing.assert_allclose(coef, peer.coef_[0], atol=1e-4)
    assert intercept == pytest.approx(peer.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_kernel_svm_reaches_the_optimum(C: float) -> None:
    rows, positive, weight = draw()
    costs = balanced_costs(positive, weight, C)
    sign = np.where(positive == 1, 1.0, -1.0)
    kernel = gaussian_kernel(rows, rows, 0.5)
    dual, values = descend_kernel(kernel, sign, costs, 1e-7, 20_000, np.random.default_rng(0))
    assert ((dual >= 0) & (dual <= costs)).all()
    np.testing.assert_allclose(values, (kernel + 1) @ (dual * sign), atol=1e-9)
    value = naive.svm_dual_value(kernel, sign, dual)
    assert value == pytest.approx(naive.svm_dual_optimum(kernel, sign, costs), rel=1e-6)


def test_linear_and_kernel_descent_agree_on_a_linear_kernel() -> None:
    rows, positive, weight = draw()
    costs = balanced_costs(positive, weight, 1.0)
    sign = np.where(positive == 1, 1.0, -1.0)
    coef, intercept = descend_linear(rows, sign, costs, 1e-8, 20_000, np.random.default_rng(0))
    dual, values = descend_kernel(
        rows @ rows.T, sign, costs, 1e-8, 20_000, np.random.default_rng(1)
    )
    np.testing.assert_allclose(coef, (dual * sign) @ rows, atol=1e-5)
    np.testing.assert_allclose(values, rows @ coef + intercept, atol=1e-4)
    assert intercept == pytest.approx((dual * sign).sum(), abs=1e-5)


def test_both_classes_weigh_the_same() -> None:
    _, positive, weight = draw()
    costs = balanced_costs(positive, weight, 2.0)
    assert costs[positive == 1].sum() == pytest.approx(costs[positive == 0].sum())
    assert costs.sum() == pytest.approx(2.0 * weight.sum())


def test_nystrom_comes_near_the_exact_svm() -> None:
    rows, positive, weight = draw(n=600, d=2)
    split = SVMSplit("gaussian", C=1.0)
    exact, _ = fit_svm(rows, positive, weight, split, np.random.default_rng(0))
    split = SVMSplit("gaussian", C=1.0, exact_rows=100, n_components=60)
    some, values = fit_svm(rows, positive, weight, split, np.random.default_rng(0))
    assert len(some.coef) == 60
    first = decision_values(rows, exact, rows[exact.centres])
    second = decision_values(rows, some, rows[some.centres])
    np.testing.assert_allclose(values, second, atol=1e-8)
    assert np.corrcoef(first, second)[0, 1] > 0.99


def test_scores_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, positive, weight = draw()
    split = SVMSplit("gaussian", C=1.0)
    svm, values = fit_svm(rows, positive, weight, split, np.random.default_rng(0))
    whole = decision_values(rows, svm, rows[svm.centres])
    np.testing.assert_allclose(whole, values, atol=1e-9)
    monkeypatch.setattr("toprank.trees.splitters.BLOCK", 100)
    np.testing.assert_allclose(decision_values(rows, svm, rows[svm.centres]), whole, rtol=1e-12)


def test_large_nodes_learn_from_a_part_of_their_rows() -> None:
    rows, positive, _ = draw(n=600)
    small, full = (
        TreeRank(3, splitter=SVMSplit("gaussian", max_rows=n), random_state=0)
        .fit(rows, positive)
        .decision_function(rows)
        for n in (200, 20_000)
    )
    assert metrics.roc_auc(positive, small) == pytest.approx(
        metrics.roc_auc(positive, full), abs=0.05
    )


def test_a_linear_svm_separates() -> None:
    rows = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    positive = np.array([0, 0, 1, 1], np.uint8)
    split = SVMSplit("linear", C=10.0)
    svm, _ = fit_svm(rows, positive, np.ones(4), split, np.random.default_rng(0))
    assert (decision_values(rows, svm, None) > 0).tolist() == [False, False, True, True]
    assert svm.coef[0] == pytest.approx(1.0, abs=0.02)


def test_the_better_svm_is_kept() -> None:
    """A plane in many dimensions wants a linear kernel, a ring in two a Gaussian one."""
    rng = np.random.default_rng(0)
    many, two = rng.normal(size=(300, 20)), rng.normal(size=(300, 2))
    plane = (many.sum(axis=1) + rng.normal(size=300) > 0).astype(np.uint8)
    ring = ((two**2).sum(axis=1) > 1.4).astype(np.uint8)

    def choose(rows, positive, parameters):
        sample, limits = Sample(rows, positive, np.ones(300)), TreeLimits(1, 2.0, 1.0)
        encoding = NumericEncoding.of(rows, np.zeros(rows.shape[1], bool))
        return choose_svm(sample, parameters, limits, encoding, np.random.default_rng(1))

    assert choose(many, plane, SVMSplit(C=0.1)) == SVMSplit("linear", C=0.1)
    assert choose(two, ring, SVMSplit(C=2.0)) == SVMSplit("gaussian", C=2.0)
    assert choose(two, ring, SVMSplit()).kernel == "gaussian"
    assert choose(many, plane, SVMSplit("linear")).C in (0.1, 1.0)
    assert choose(two, ring, SVMSplit("linear", C=3.0)) == SVMSplit("linear", C=3.0)


def test_svms_rank_held_out_rows() -> None:
    rows, positive, weight = draw(n=400)
    split = SVMSplit("linear", C=1.0)
    svm, _ = fit_svm(rows[:300], positive[:300], weight[:300], split, np.random.default_rng(0))
    assert metrics.roc_auc(positive[300:], decision_values(rows[300:], svm, None)) > 0.7


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "cubic"}, "kernel of SVMSplit must be one of"),
        ({"C": 0.0}, "C of SVMSplit must be 'auto' or a number above 0"),
        ({"gamma": "auto"}, "gamma of SVMSplit must be 'scale' or a number above 0"),
    ],
)
def test_errors_say_what_is_wrong(parameters, message) -> None:
    with pytest.raises(ValueError, match=message):
        SVMSplit(**parameters)
