"""Bins: columns as bytes, with and without labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank import binning
from toprank.binning import MISSING, OTHER, Bins

NUMBER = np.array([False])
CATEGORY = np.array([True])


def column(values) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).reshape(-1, 1)


def codes_of(bins: Bins, values) -> list[int]:
    return bins.codes(column(values)).ravel().tolist()


def naive_cuts(values, weight, y, max_bins) -> list[float]:
    """Cut points by the definition: a loop over the values, and exact shares from counts."""
    present = ~np.isnan(values)
    values, weight = values[present], weight[present]
    labels = np.zeros(len(values), dtype=bool) if y is None else y[present] > 0
    distinct = np.unique(values)
    if len(distinct) < 2:
        return []
    if len(distinct) <= max_bins:
        last = list(range(len(distinct) - 1))
    else:
        classes = [c for c in (labels, ~labels) if weight[c].sum() > 0]
        shares = [
            np.mean([weight[c & (values <= v)].sum() / weight[c].sum() for c in classes])
            for v in distinct
        ]
        last = []
        for k in range(1, max_bins):
            first = next(i for i, share in enumerate(shares) if share >= k / max_bins - 1e-12)
            if first < len(distinct) - 1 and first not in last:
                last.append(first)
    return [distinct[i] / 2 + distinct[i + 1] / 2 for i in sorted(last)]


@settings(max_examples=80, deadline=None)
@given(
    arrays(np.float64, st.integers(1, 40), elements=st.integers(0, 12) | st.just(np.nan)),
    st.integers(2, 6),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_cuts_are_those_of_the_definition(values, max_bins, labelled, random) -> None:
    y = np.array([random.randint(0, 1) for _ in values]) if labelled else None
    weight = np.array([float(random.randint(1, 3)) for _ in values])
    bins = Bins.of(column(values), NUMBER, weight, y=y, max_bins=max_bins)
    np.testing.assert_allclose(bins.cuts[0], naive_cuts(values, weight, y, max_bins))
    expected = [MISSING if np.isnan(v) else int((bins.cuts[0] < v).sum()) for v in values]
    assert codes_of(bins, values) == expected
    assert bins.has_missing.tolist() == [bool(np.isnan(values).any())]


@settings(max_examples=50, deadline=None)
@given(
    arrays(
        np.float64, st.integers(1, 40), elements=st.sampled_from([-1e300, -1.0, 0.0, 5e-324, 2.0])
    ),
    st.integers(2, 6),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_weight_is_a_number_of_copies(values, max_bins, labelled, category, random) -> None:
    if category:
        values = np.unique(values, return_inverse=True)[1].astype(float)
    weight = np.array([random.randint(1, 3) for _ in values])
    y = np.array([random.randint(0, 1) for _ in values]) if labelled else None
    copies = np.repeat(np.arange(len(values)), weight)
    kind = np.array([category])
    weighted = Bins.of(column(values), kind, weight.astype(float), y=y, max_bins=max_bins)
    copied = Bins.of(
        column(values[copies]), kind, y=None if y is None else y[copies], max_bins=max_bins
    )
    np.testing.assert_array_equal(weighted.cuts[0], copied.cuts[0])


def test_few_values_keep_a_bin_each() -> None:
    bins = Bins.of(column([3.0, 1.0, 2.0, 2.0, np.nan]), NUMBER)
    assert bins.cuts[0].tolist() == [1.5, 2.5]
    assert bins.n_cuts.tolist() == [2]
    assert bins.n_columns == 1
    assert codes_of(bins, [3.0, 1.0, 2.0, 2.0, np.nan]) == [2, 0, 1, 1, MISSING]
    assert codes_of(bins, [-9, 1.5, 1.6, 9, -np.inf, np.inf]) == [0, 0, 1, 2, 0, 2]


def test_many_values_are_cut_at_quantiles() -> None:
    X = column(np.random.default_rng(0).normal(size=10_000))
    counts = np.bincount(Bins.of(X, NUMBER, max_bins=16).codes(X)[0])
    assert len(counts) == 16
    assert counts.max() - counts.min() <= 2


def test_labels_resolve_the_rare_class() -> None:
    """Plain quantiles leave a few positives in the tail in one bin, balanced ones spread them."""
    rng = np.random.default_rng(0)
    y = (np.arange(20_000) < 40).astype(int)
    X = column(rng.normal(size=20_000) + 6.0 * y)
    plain, balanced = (Bins.of(X, NUMBER, y=labels, max_bins=32) for labels in (None, y))
    spread = [len(np.unique(bins.codes(X[:40]))) for bins in (plain, balanced)]
    assert spread[0] <= 2
    assert spread[1] >= 14


def test_bins_keep_the_order() -> None:
    X = column(np.random.default_rng(1).gamma(1.0, size=3000))
    codes = Bins.of(X, NUMBER).codes(X)[0].astype(int)
    assert codes.max() <= 254
    assert (np.diff(codes[np.argsort(X.ravel())]) >= 0).all()


def test_neighbouring_floats_stay_apart() -> None:
    values = [1.0, np.nextafter(1.0, 2)]
    assert codes_of(Bins.of(column(values), NUMBER), values) == [0, 1]


def test_huge_values_have_finite_cuts() -> None:
    bins = Bins.of(column([-1.7e308, 1.7e308]), NUMBER)
    assert np.isfinite(bins.cuts[0]).all()
    assert codes_of(bins, [-1.7e308, 1.7e308]) == [0, 1]


def test_float32_cells_meet_the_same_cuts() -> None:
    X = np.random.default_rng(2).normal(size=(500, 3)).astype(np.float32)
    bins = Bins.of(X, np.zeros(3, bool))
    np.testing.assert_array_equal(bins.codes(X), bins.codes(X.astype(np.float64)))


@pytest.mark.parametrize("kind", [NUMBER, CATEGORY])
@pytest.mark.parametrize("y", [None, np.array([0, 1, 1])])
def test_constant_and_empty_columns(kind, y) -> None:
    constant = Bins.of(column([3.0, 3.0, 3.0]), kind, y=y)
    assert codes_of(constant, [3.0, np.nan]) == [0, MISSING]
    empty = Bins.of(column([np.nan] * 3), kind, y=y)
    assert empty.n_cuts.tolist() == [0]
    assert codes_of(empty, [np.nan, 1.0]) == [MISSING, OTHER if kind[0] else 0]


def test_categories_have_a_bin_each_and_unseen_ones_share_another() -> None:
    bins = Bins.of(column([0, 2, 2, np.nan]), CATEGORY)
    assert bins.cuts[0].tolist() == [0.0, 2.0]
    assert codes_of(bins, [0, 1, 2, 7, -1, np.nan]) == [0, OTHER, 1, OTHER, OTHER, MISSING]


def test_rare_categories_share_a_bin() -> None:
    codes = np.concatenate([np.repeat(np.arange(3), [5, 1, 4]), np.arange(3, 6)])
    bins = Bins.of(column(codes), CATEGORY, max_bins=2)
    assert codes_of(bins, [0, 1, 2, 3, 5]) == [0, OTHER, 1, OTHER, OTHER]
    weight = np.where(codes == 4, 9.0, 1.0)
    assert Bins.of(column(codes), CATEGORY, weight, max_bins=2).cuts[0].tolist() == [0.0, 4.0]


def test_the_bin_of_rare_categories_is_never_a_category() -> None:
    codes = np.repeat(np.arange(300), 2)
    bins = Bins.of(column(codes), CATEGORY)
    found = bins.codes(column(codes))[0]
    assert bins.n_cuts.tolist() == [OTHER]
    assert np.bincount(found)[:OTHER].tolist() == [2] * OTHER
    assert (found == OTHER).sum() == 2 * (300 - OTHER)


def test_many_rows_are_drawn_by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binning, "SAMPLE_ROWS", 500)
    rng = np.random.default_rng(0)
    y = (np.arange(20_000) < 300).astype(int)
    X = column(rng.normal(size=20_000) + 2.0 * y)
    bins = [Bins.of(X, NUMBER, y=y, max_bins=16, random_state=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(bins[0].cuts[0], bins[1].cuts[0])
    assert (bins[0].cuts[0] != bins[2].cuts[0]).any()
    share = np.bincount(bins[0].codes(X[:300])[0], minlength=16) / 300
    other = np.bincount(bins[0].codes(X[300:])[0], minlength=16) / 19_700
    np.testing.assert_allclose((share + other) / 2, 1 / 16, atol=0.02)


def test_threads_layout_and_choice_of_columns_change_nothing() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 5))
    X[:, 3] = rng.integers(0, 7, size=20_000)
    X[rng.random(X.shape) < 0.1] = np.nan
    kinds = np.arange(5) == 3
    one, three = (Bins.of(X, kinds, n_jobs=n) for n in (1, 3))
    for first, second in zip(one.cuts, three.cuts, strict=True):
        np.testing.assert_array_equal(first, second)
    codes = one.codes(X)
    assert codes.dtype == np.uint8
    np.testing.assert_array_equal(codes, one.codes(X, n_jobs=3))
    by_row = one.codes(X, by_row=True, n_jobs=2)
    assert by_row.flags.c_contiguous
    np.testing.assert_array_equal(codes.T, by_row)
    np.testing.assert_array_equal(codes[[4, 3]], one.codes(X, only=np.array([4, 3])))
