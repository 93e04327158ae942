"""The support vector machines of the splits: optimal, balanced, and well chosen."""

from __future__ import annotations

import naive_trees as naive
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from toprank import TreeRank, metrics
from toprank.trees.encoding import Encoding
from toprank.trees.growing import Limits, Sample
from toprank.trees.splitters import _trial_rows, choose_machine
from toprank.trees.svm import (
    SVMSplit,
    balanced_costs,
    decide,
    descend_kernel,
    descend_linear,
    draw_rows,
    fit_gaussian,
    fit_linear,
    gaussian_kernel,
)


def draw(n: int = 80, d: int = 3, seed: int = 0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    positive = (rows[:, 0] + rng.normal(size=n) > 0.7).astype(np.uint8)
    weight = rng.uniform(0.5, 2.0, size=n)
    return rows, positive, weight


def test_the_kernel_is_the_known_one() -> None:
    rows, _, _ = draw()
    np.testing.assert_allclose(
        gaussian_kernel(rows, rows[:7], 0.3), rbf_kernel(rows, rows[:7], gamma=0.3), rtol=1e-12
    )


def test_the_linear_machine_is_the_known_one() -> None:
    rows, positive, weight = draw()
    costs = balanced_costs(positive, weight, 0.7)
    sign = np.where(positive == 1, 1.0, -1.0)
    coef, intercept = descend_linear(rows, sign, costs, 1e-9, 20_000, np.random.default_rng(0))
    peer = LinearSVC(loss="hinge", C=1.0, tol=1e-9, max_iter=1_000_000, random_state=0)
    peer.fit(rows, positive, sample_weight=costs)
    np.testing.assert_allclose(coef, peer.coef_[0], atol=1e-4)
    assert intercept == pytest.approx(peer.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_kernel_machine_reaches_the_optimum(C: float) -> None:
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


def test_nystrom_comes_near_the_exact_machine() -> None:
    rows, positive, weight = draw(n=600, d=2)
    costs = balanced_costs(positive, weight, 1.0)
    exact, _ = fit_gaussian(rows, positive, costs, SVMSplit(), np.random.default_rng(0))
    some, values = fit_gaussian(
        rows, positive, costs, SVMSplit(exact_rows=100, n_components=60), np.random.default_rng(0)
    )
    assert len(some.coef) == 60
    first = decide(rows, exact, rows[exact.centres])
    second = decide(rows, some, rows[some.centres])
    np.testing.assert_allclose(values, second, atol=1e-8)
    assert np.corrcoef(first, second)[0, 1] > 0.99


def test_scores_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, positive, weight = draw()
    machine, values = fit_gaussian(
        rows, positive, balanced_costs(positive, weight, 1.0), SVMSplit(), np.random.default_rng(0)
    )
    whole = decide(rows, machine, rows[machine.centres])
    np.testing.assert_allclose(whole, values, atol=1e-9)
    monkeypatch.setattr("toprank.trees.svm._BLOCK", 100)
    np.testing.assert_allclose(decide(rows, machine, rows[machine.centres]), whole, rtol=1e-12)


def test_large_nodes_draw_rows_of_both_classes() -> None:
    positive = np.array([1] * 5 + [0] * 995, np.uint8)
    rng = np.random.default_rng(0)
    assert draw_rows(positive, 1000, rng).tolist() == list(range(1000))
    drawn = draw_rows(positive, 100, rng)
    assert drawn[:5].tolist() == [0, 1, 2, 3, 4]
    assert len(drawn) == len(set(drawn)) == 55
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


def test_a_linear_machine_separates() -> None:
    rows = np.array([[-1.0], [-2.0], [1.0], [2.0]])
    positive = np.array([0, 0, 1, 1], np.uint8)
    machine, _ = fit_linear(rows, positive, np.full(4, 10.0), np.random.default_rng(0))
    assert (decide(rows, machine, None) > 0).tolist() == [False, False, True, True]
    assert machine.coef[0] == pytest.approx(1.0, abs=0.02)


def test_the_better_machine_is_kept() -> None:
    """A plane in many dimensions wants a linear machine, a ring in two a Gaussian one."""
    rng = np.random.default_rng(0)
    many, two = rng.normal(size=(300, 20)), rng.normal(size=(300, 2))
    plane = (many.sum(axis=1) + rng.normal(size=300) > 0).astype(np.uint8)
    ring = ((two**2).sum(axis=1) > 1.4).astype(np.uint8)

    def choose(rows, positive, parameters):
        sample, limits = Sample(rows, positive, np.ones(300)), Limits(1, 2.0, 1.0)
        encoding = Encoding.of(rows, np.zeros(rows.shape[1], bool))
        return choose_machine(sample, parameters, limits, encoding, np.random.default_rng(1))

    assert choose(many, plane, SVMSplit(C=0.1)) == SVMSplit("linear", C=0.1)
    assert choose(two, ring, SVMSplit(C=2.0)) == SVMSplit("gaussian", C=2.0)
    assert choose(two, ring, SVMSplit()).kernel == "gaussian"
    assert choose(many, plane, SVMSplit("linear")).C in (0.1, 1.0)
    assert choose(two, ring, SVMSplit("linear", C=3.0)) == SVMSplit("linear", C=3.0)


def test_few_positives_among_many_rows_still_choose() -> None:
    """A trial sees all of a dozen positives, not the one or two that a plain draw would."""
    rng = np.random.default_rng(2)
    positive = (np.arange(5000) % 400 == 0).astype(np.uint8)
    weight = np.ones(5000)
    weight[:100] = 0.0
    sample = Sample(rng.normal(size=(5000, 2)), positive, weight)
    rows = _trial_rows(sample, rng)
    assert len(rows) == len(set(rows)) == 1000
    assert rows.min() >= 100
    assert positive[rows].sum() == positive[100:].sum() == 12
    turned = _trial_rows(Sample(sample.rows, 1 - positive, weight), rng)
    assert (1 - positive[turned]).sum() == 1000 - 12
    half = (np.arange(5000) % 2).astype(np.uint8)
    assert half[_trial_rows(Sample(sample.rows, half, weight), rng)].sum() == 500


def test_machines_rank_rows_held_out() -> None:
    rows, positive, weight = draw(n=400)
    costs = balanced_costs(positive[:300], weight[:300], 1.0)
    machine, _ = fit_linear(rows[:300], positive[:300], costs, np.random.default_rng(0))
    assert metrics.roc_auc(positive[300:], decide(rows[300:], machine, None)) > 0.7
