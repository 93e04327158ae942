"""Distances between orderings against counting by hand and SciPy."""

from __future__ import annotations

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import kendalltau, spearmanr

from toprank.metrics import instability
from toprank.metrics.stability import DISTANCES

TIED = hnp.arrays(np.float64, st.tuples(st.just(3), st.integers(2, 9)), elements=st.integers(0, 3))


@given(TIED)
def test_ties_by_hand(scores) -> None:
    ranks = [naive.mid_ranks(row) for row in scores]
    n = scores.shape[1]
    pairs = [(0, 1), (0, 2), (1, 2)]
    expected = {
        "spearman": [
            np.linalg.norm(ranks[a] - ranks[b]) / np.sqrt((n**3 - n) / 3) for a, b in pairs
        ],
        "footrule": [np.abs(ranks[a] - ranks[b]).sum() / (n * n // 2) for a, b in pairs],
        "kendall": [naive.kendall(scores[a], scores[b]) for a, b in pairs],
    }
    for name, values in expected.items():
        got = instability(scores, distance=name)
        assert got == pytest.approx(np.mean(values), abs=1e-12)
        assert 0 <= got <= 1


def test_without_ties_scipy_agrees(rng) -> None:
    a, b = rng.normal(size=(2, 500))
    pair = np.stack([a, b])
    rho, tau = spearmanr(a, b).statistic, kendalltau(a, b).statistic
    assert instability(pair) ** 2 == pytest.approx((1 - rho) / 2)
    assert instability(pair, distance="kendall") == pytest.approx((1 - tau) / 2)


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("n", [2, 3, 10, 11])
def test_ends_of_the_scale(distance, n) -> None:
    scores = np.arange(float(n))
    assert instability([scores, np.exp(scores)], distance=distance) == 0
    assert instability([scores, -scores], distance=distance) == pytest.approx(1)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([[1, 2, 3]], {}, "at least 2 models"),
        ([1, 2, 3], {}, "matrix"),
        ([[1], [2]], {}, "2 rows"),
        ([[1, 2], [np.nan, 1]], {}, "NaN"),
        ([[1, 2], [2, 1]], {"distance": "cosine"}, "distance"),
    ],
)
def test_bad_input(scores, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        instability(scores, **options)
