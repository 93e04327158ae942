"""Folds and samples inside a fit: the classes, and repeatable draws."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.sampling import sample_classes, sample_rows, stratified_folds


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 9), st.integers(0, 40), st.integers(2, 7))
def test_folds_are_stratified(seed: int, n_positives: int, n_negatives: int, n_folds: int) -> None:
    positive = np.random.default_rng(seed).permutation(
        np.arange(n_positives + n_negatives) < n_positives
    )
    fold = stratified_folds(positive, n_folds, seed)
    for label in (False, True):
        counts = np.bincount(fold[positive == label], minlength=n_folds)
        assert len(counts) == n_folds
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(fold, stratified_folds(positive.astype(np.uint8), n_folds, seed))


def test_a_seed_draws_as_a_fresh_generator_and_another_seed_differs() -> None:
    positive = np.arange(100) % 3 == 0
    rows = np.arange(100)
    for draw in (
        lambda random: stratified_folds(positive, 5, random),
        lambda random: sample_rows(positive, rows, 20, random),
        lambda random: sample_classes(positive, 9, 9, random),
    ):
        np.testing.assert_array_equal(draw(4), draw(np.random.default_rng(4)))
        assert (draw(4) != draw(5)).any()


def test_the_rarer_class_fills_up_to_half_of_a_sample() -> None:
    positive = np.arange(5000) % 400 == 0
    present = np.arange(100, 5000)
    rows = sample_rows(positive, present, 1000, 2)
    assert len(rows) == len(set(rows)) == 1000
    assert rows.min() >= 100
    assert (np.diff(rows) > 0).all()
    assert positive[rows].sum() == positive[100:].sum() == 12
    assert (~positive)[sample_rows(~positive, present, 1000, 2)].sum() == 1000 - 12
    half = np.arange(5000) % 2 == 0
    assert half[sample_rows(half, present, 1000, 2)].sum() == 500
    assert sample_rows(positive, present[:1000], 1000, 2).tolist() == present[:1000].tolist()


def test_a_few_rows_of_each_class() -> None:
    positive = np.array([1] * 5 + [0] * 995, np.uint8)
    drawn = sample_classes(positive, 50, 50, 0)
    assert drawn[:5].tolist() == [0, 1, 2, 3, 4]
    assert len(drawn) == len(set(drawn)) == 55
    assert sample_classes(positive, 5, 995, 0).tolist() == list(range(1000))
