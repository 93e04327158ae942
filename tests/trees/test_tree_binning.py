"""Bins and encodings: what splitting rules see of a table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank.trees.binning import MISSING, Bins
from toprank.trees.encoding import Encoding

NUMBER = np.array([False])
CATEGORY = np.array([True])


def column(values) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).reshape(-1, 1)


def test_few_values_keep_a_bin_each() -> None:
    X = column([3.0, 1.0, 2.0, 2.0, np.nan])
    bins = Bins.of(X, NUMBER)
    assert bins.cuts.tolist() == [1.5, 2.5]
    assert bins.prepare(X).ravel().tolist() == [2, 0, 1, 1, MISSING]
    assert bins.prepare(column([-9, 1.5, 1.6, 9])).ravel().tolist() == [0, 0, 1, 2]


def test_many_values_are_cut_at_quantiles() -> None:
    X = column(np.random.default_rng(0).normal(size=10_000))
    codes = Bins.of(X, NUMBER, max_bins=16).prepare(X).ravel()
    counts = np.bincount(codes)
    assert len(counts) == 16
    assert counts.max() - counts.min() <= 2


def test_bins_keep_the_order() -> None:
    X = column(np.random.default_rng(1).gamma(1.0, size=3000))
    codes = Bins.of(X, NUMBER).prepare(X).ravel().astype(int)
    assert codes.max() <= 254
    order = np.argsort(X.ravel())
    assert (np.diff(codes[order]) >= 0).all()


@settings(max_examples=50, deadline=None)
@given(
    arrays(
        np.float64, st.integers(1, 40), elements=st.sampled_from([-1e300, -1.0, 0.0, 5e-324, 2.0])
    ),
    st.integers(2, 6),
    st.randoms(use_true_random=False),
)
def test_a_weight_is_a_number_of_copies(values, max_bins, random) -> None:
    weight = np.array([random.randint(1, 3) for _ in values])
    weighted = Bins.of(column(values), NUMBER, weight.astype(float), max_bins)
    copied = Bins.of(column(np.repeat(values, weight)), NUMBER, None, max_bins)
    np.testing.assert_array_equal(weighted.cuts, copied.cuts)


def test_neighbouring_floats_stay_apart() -> None:
    low = 1.0
    X = column([low, np.nextafter(low, 2)])
    assert Bins.of(X, NUMBER).prepare(X).ravel().tolist() == [0, 1]


def test_huge_values_have_finite_cuts() -> None:
    X = column([-1.7e308, 1.7e308])
    bins = Bins.of(X, NUMBER)
    assert np.isfinite(bins.cuts).all()
    assert bins.prepare(X).ravel().tolist() == [0, 1]


def test_float32_cells_meet_the_same_cuts() -> None:
    X = np.random.default_rng(2).normal(size=(500, 3)).astype(np.float32)
    bins = Bins.of(X, np.zeros(3, bool))
    np.testing.assert_array_equal(bins.prepare(X), bins.prepare(X.astype(np.float64)))


def test_categories_have_a_bin_each_and_unseen_ones_are_missing() -> None:
    bins = Bins.of(column([0, 2, 2, np.nan]), CATEGORY)
    assert bins.prepare(column([0, 1, 2, 7, np.nan])).ravel().tolist() == [
        0,
        MISSING,
        1,
        MISSING,
        MISSING,
    ]


def test_rare_categories_share_the_last_bin() -> None:
    codes = np.concatenate([np.repeat(np.arange(3), [5, 1, 4]), np.arange(3, 6)])
    bins = Bins.of(column(codes), CATEGORY, max_bins=3)
    assert bins.prepare(column([0, 1, 2, 3, 5])).ravel().tolist() == [0, 2, 1, 2, 2]
    chosen = np.arange(256) == 2
    assert bins.codes_in_bins(0, chosen).tolist() == [1, 3, 4, 5]


def test_a_column_of_missing_cells() -> None:
    X = column([np.nan, np.nan])
    for kind in (NUMBER, CATEGORY):
        assert Bins.of(X, kind).prepare(X).ravel().tolist() == [MISSING, MISSING]
        assert np.isfinite(Encoding.of(X, kind).prepare(X)).all()


def test_encoding_standardises_fills_and_marks() -> None:
    X = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 2.0], [5.0, np.nan]])
    encoding = Encoding.of(X, np.array([False, True]))
    rows = encoding.prepare(X)
    assert encoding.source.tolist() == [0, 0, 1, 1, 1]
    present = rows[[0, 1, 3], 0]
    assert present.mean() == pytest.approx(0)
    assert present.std() == pytest.approx(1)
    assert rows[2, :2].tolist() == [0.0, 1.0]
    assert rows[:, 2:].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert encoding.encoded_columns(np.array([1])).tolist() == [2, 3, 4]


def test_encoding_of_weights_is_that_of_copies() -> None:
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(30, 2)), rng.integers(1, 4, size=30)
    kinds = np.zeros(2, bool)
    weighted = Encoding.of(X, kinds, weight.astype(float))
    copied = Encoding.of(np.repeat(X, weight, axis=0), kinds)
    np.testing.assert_allclose(weighted.shift, copied.shift, rtol=1e-12)
    np.testing.assert_allclose(weighted.scale, copied.scale, rtol=1e-12)


def test_a_constant_column_stays_finite() -> None:
    X = column([1e9, 1e9, 1e9])
    assert Encoding.of(X, NUMBER).prepare(X).tolist() == [[0.0], [0.0], [0.0]]
