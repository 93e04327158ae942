"""The few special functions inside the metrics, against SciPy and plain sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import digamma, expi
from sklearn.metrics import average_precision_score, roc_auc_score

from toprank.metrics import _kernels, average_precision, roc_auc
from toprank.metrics.steps import Staircase
from toprank.ranking import RankedList
from toprank.validation import BinaryRows


@pytest.mark.parametrize("x", [1.0, 1.5, 2.0, 5.25, 9.99, 10.0, 57.3, 1e4, 1e9])
def test_digamma(x) -> None:
    assert _kernels.digamma(x) == pytest.approx(digamma(x), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 7), (3, 19), (3, 20), (0, 5000), (5e5, 6e5)])
def test_harmonic_sums(low, high) -> None:
    exact = np.sum(1.0 / np.arange(low + 1, high + 1))
    assert _kernels.harmonic(float(low), float(high)) == pytest.approx(exact, rel=1e-11)


def test_harmonic_sums_add_up_at_fractions() -> None:
    ends = np.cumsum([0.3, 0.01, 2.5, 1.0, 40.0, 3.0])
    pieces = [_kernels.harmonic(a, b) for a, b in pairwise(ends)]
    assert sum(pieces) == pytest.approx(digamma(ends[-1] + 1) - digamma(ends[0] + 1), rel=1e-12)


@pytest.mark.parametrize("x", [1.5, 2.0, 10.0, 1e3, 1e9])
def test_logarithmic_integral(x) -> None:
    assert _kernels.logarithmic_integral(x) == pytest.approx(expi(np.log(x)), rel=1e-13)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0, 2), (4, 5), (0, 4000), (0, 300_000), (90_000, 200_000)]
)
def test_discounts_of_whole_ranks(low, high) -> None:
    exact = np.sum(1 / np.log2(1.0 + np.arange(low + 1, high + 1)))
    assert _kernels.discount_between(float(low), float(high)) == pytest.approx(exact, rel=1e-12)


def test_discounts_of_parts_of_ranks_add_up() -> None:
    ends = [0.0, 0.25, 0.5, 1.75, 2.0, 7.1, 7.9, 9000.5]
    pieces = [_kernels.discount_between(a, b) for a, b in pairwise(ends)]
    assert sum(pieces) == pytest.approx(_kernels.discount_between(0.0, 9000.5), rel=1e-12)
    assert _kernels.discount_between(1.25, 1.75) == pytest.approx(0.5 / np.log2(3))
    assert _kernels.discount_between(2.0, 2.0) == 0.0


@pytest.mark.parametrize("n_values", [2, 7, 40, None])  # distinct scores, or as many as rows
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_positives_alone_are_sorted_to_the_same_steps(n_values, weighted, share, rng) -> None:
    for n in (1, 2, 3, 60, 500):
        scores = rng.normal(size=n) if n_values is None else rng.integers(0, n_values, n) * 1.0
        positive = rng.random(n) < share
        positive[rng.integers(n)] = True
        weight = rng.integers(1, 5, n) * 0.25 if weighted else None
        expected = Staircase.of(RankedList.of(positive, scores, weight))
        found = Staircase.of_rare(BinaryRows(positive, scores, weight))
        for name in ("negatives_between", "positives", "negatives_tied", "scores"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


def test_a_long_list_of_few_positives_has_the_metrics_of_scikit_learn(rng) -> None:
    y = rng.random(20_000) < 0.01
    weight = rng.random(20_000)
    for scores in (np.round(rng.normal(size=20_000) + y, 2), rng.normal(size=20_000) - y):
        for w in (None, weight):
            for ours, theirs in (
                (average_precision, average_precision_score),
                (roc_auc, roc_auc_score),
            ):
                expected = theirs(y, scores, sample_weight=w)
                assert ours(y, scores, sample_weight=w) == pytest.approx(expected, rel=1e-10)
