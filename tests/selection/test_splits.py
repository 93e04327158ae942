"""Splits: nothing leaks, everything is tested, classes keep their shares."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_selection import is_ascending

from toprank.selection import Splits, make_splits

seeds = st.integers(0, 10_000)


def draw_labels(seed: int, n: int, share: float) -> np.ndarray:
    y = (np.random.default_rng(seed).random(n) < share).astype(int)
    y[:3], y[-3:] = 1, 0
    return np.random.default_rng(seed + 1).permutation(y)


def try_blocks(y: np.ndarray, **arguments) -> Splits | str:
    """The splits, or why there are none."""
    try:
        return make_splits(y, **arguments)
    except ValueError as error:
        return str(error)


def check_sound(splits: Splits, y: np.ndarray) -> None:
    assert splits
    for split in splits:
        assert is_ascending(split.train.tolist())
        assert is_ascending(split.test.tolist())
        assert not set(split.train) & set(split.test)
        for rows in (split.train, split.test):
            assert set(y[rows]) == {0, 1}


@given(seeds, st.integers(10, 200), st.floats(0.02, 0.6), st.integers(2, 6), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_stratified_folds_test_every_row_once_and_keep_shares(seed, n, share, n_splits, n_repeats):
    y = draw_labels(seed, n, share)
    splits = make_splits(y, n_splits=n_splits, n_repeats=n_repeats, random_state=seed)
    check_sound(splits, y)
    assert splits.kind == "stratified"
    folds = min(n_splits, y.sum(), n - y.sum())
    assert len(splits) == folds * n_repeats
    assert bool(splits.notes) == (folds < n_splits)
    for repeat in range(n_repeats):
        own = [s for s in splits if s.repeat == repeat]
        assert [s.fold for s in own] == list(range(folds))
        assert sorted(np.concatenate([s.test for s in own])) == list(range(n))
        for split in own:
            assert len(split.train) + len(split.test) == n
            assert abs(y[split.test].sum() - y.sum() / folds) < 1


@given(seeds, st.integers(30, 200), st.floats(0.05, 0.6), st.integers(4, 40), st.integers(2, 5))
@settings(max_examples=60, deadline=None)
def test_a_group_is_never_on_both_sides(seed, n, share, n_groups, n_splits):
    y = draw_labels(seed, n, share)
    groups = np.random.default_rng(seed).integers(n_groups, size=n)
    sides = [len(set(groups[y == label])) for label in (0, 1)]
    if min(sides) < 2:
        with pytest.raises(ValueError, match="at least 2 groups"):
            make_splits(y, groups=groups, n_splits=n_splits)
        return
    splits = make_splits(y, groups=groups, n_splits=n_splits, n_repeats=2, random_state=seed)
    check_sound(splits, y)
    for split in splits:
        assert not set(groups[split.train]) & set(groups[split.test])
        assert len(split.train) + len(split.test) == n
    for repeat in range(2):
        tested = np.concatenate([s.test for s in splits if s.repeat == repeat] or [[]])
        assert len(tested) == len(set(tested))


def test_group_folds_are_about_as_rich_in_positives():
    generator = np.random.default_rng(0)
    groups = generator.integers(300, size=6000)
    y = (generator.random(6000) < 0.05).astype(int)
    for split in make_splits(y, groups=groups, n_splits=5, n_repeats=2):
        assert y[split.test].mean() == pytest.approx(y.mean(), rel=0.25)
        assert len(split.test) == pytest.approx(1200, rel=0.25)


@given(
    seeds,
    st.integers(20, 200),
    st.floats(0.05, 0.6),
    st.integers(2, 30),
    st.integers(1, 5),
    st.integers(0, 6),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_time_never_runs_backwards(seed, n, share, n_moments, n_splits, gap, grouped):
    y = draw_labels(seed, n, share)
    generator = np.random.default_rng(seed)
    time = generator.integers(n_moments, size=n)
    groups = generator.integers(30, size=n) if grouped else None
    splits = try_blocks(y, time=time, gap=gap, groups=groups, n_splits=n_splits)
    if isinstance(splits, str):
        assert "no block of time" in splits or "same in all rows" in splits
        return
    check_sound(splits, y)
    assert splits.kind == "time"
    assert len(splits) <= n_splits
    assert bool(splits.notes) == (len(splits) < n_splits)
    for split in splits:
        assert time[split.train].max() < time[split.test].min()
        assert time[split.test].min() - time[split.train].max() >= gap
        # rows of equal time are on one side, and nothing inside the block is left out
        inside = (time >= time[split.test].min()) & (time <= time[split.test].max())
        assert np.array_equal(np.flatnonzero(inside), split.test)
        if groups is None:
            start = time[split.test].min()
            known = np.flatnonzero((time < start) & (start - time >= gap))
            assert np.array_equal(known, split.train)
        else:
            assert not set(groups[split.train]) & set(groups[split.test])
    tested = np.concatenate([s.test for s in splits])
    assert len(tested) == len(set(tested))


def test_blocks_of_time_are_about_equal_and_reach_the_end():
    y = np.tile([0, 0, 0, 1], 300)
    time = np.random.default_rng(0).permutation(1200)
    splits = make_splits(y, time=time, n_splits=5)
    assert [len(s.test) for s in splits] == [200] * 5
    assert [len(s.train) for s in splits] == [200, 400, 600, 800, 1000]
    assert time[splits[-1].test].max() == 1199


def test_a_block_of_one_class_is_left_out_and_the_note_says_which():
    y = np.zeros(60, dtype=int)
    y[[2, 5, 12, 55]] = 1
    splits = make_splits(y, time=np.arange(60), n_splits=5)
    assert [s.fold for s in splits] == [0, 4]
    assert len(splits.notes) == 3
    assert "block 2 of 5" in splits.notes[0]
    assert "0 positives" in splits.notes[0]


DAYS = pd.date_range("2024-01-01", periods=40, freq="D")
FORMS = {
    "datetime64": DAYS.to_numpy(),
    "series with another index": pd.Series(DAYS, index=range(100, 140)),
    "time zone": pd.Series(DAYS.tz_localize("Europe/Amsterdam")),
    "text": DAYS.strftime("%Y-%m-%d").to_numpy(),
    "dates": [day.date() for day in DAYS],
    "timestamps as objects": np.array(list(DAYS), dtype=object),
    "durations": (DAYS - DAYS[0]).to_numpy(),
}
GAPS = (
    3, 3.0, datetime.timedelta(days=3), np.timedelta64(3, "D"), pd.Timedelta(days=3), "3D",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gap", GAPS, ids=lambda g: f"{type(g).__name__}")
def test_dates_of_all_kinds_split_as_numbers_do(form, gap):
    y = np.tile([0, 1], 20)
    expected = make_splits(y, time=np.arange(40), gap=3, n_splits=4)
    found = make_splits(y, time=FORMS[form], gap=gap, n_splits=4)
    assert len(found) == len(expected) == 4
    for a, b in zip(found, expected, strict=True):
        assert np.array_equal(a.train, b.train)
        assert np.array_equal(a.test, b.test)


def test_groups_of_all_kinds():
    y = np.tile([0, 1], 20)
    plain = np.repeat(np.arange(10), 4)
    expected = make_splits(y, groups=plain, n_splits=5)
    for groups in (plain.astype(str), pd.Series(plain).astype("category"), list(plain)):
        found = make_splits(y, groups=groups, n_splits=5)
        assert [s.test.tolist() for s in found] == [s.test.tolist() for s in expected]


def test_the_seed_decides():
    y = draw_labels(0, 100, 0.3)
    groups = np.arange(100) // 3
    for given_groups in (None, groups):
        a, b, c = (
            [s.test.tolist() for s in make_splits(y, groups=given_groups, random_state=seed)]
            for seed in (1, 1, 2)
        )
        assert a == b
        assert a != c


y20 = np.tile([0, 0, 0, 1], 5)
BAD = {
    "one class": ({"y": np.ones(20)}, "two classes"),
    "three classes": ({"y": np.arange(20) % 3}, "two classes"),
    "missing label": ({"y": [None, *y20[1:]]}, "missing labels"),
    "one positive": ({"y": np.eye(20)[0]}, "found 1 for the positives"),
    "no rows": ({"y": []}, "labels"),
    "one fold": ({"y": y20, "n_splits": 1}, "at least 2"),
    "half a fold": ({"y": y20, "n_splits": 2.5}, "whole number"),
    "no repeat": ({"y": y20, "n_repeats": 0}, "n_repeats"),
    "few groups": ({"y": y20, "groups": np.zeros(20)}, "at least 2 groups"),
    "group missing": ({"y": y20, "groups": [None] + [1] * 19}, "groups is missing in 1 rows"),
    "group length": ({"y": y20, "groups": [1, 2]}, "2 entries for 20 rows"),
    "time length": ({"y": y20, "time": [1, 2]}, "2 entries for 20 rows"),
    "time missing": ({"y": y20, "time": [np.nan, *range(19)]}, "missing in 1 rows"),
    "time infinite": ({"y": y20, "time": [np.inf, *range(19)]}, "infinite"),
    "time is text": ({"y": y20, "time": ["soon"] * 20}, "neither a number nor a date"),
    "time could be two days": ({"y": y20, "time": ["03/04/2024"] * 20}, "neither a number nor"),
    "one moment": ({"y": y20, "time": np.zeros(20)}, "same in all rows"),
    "gap without time": ({"y": y20, "gap": 3}, "gap needs time"),
    "gap negative": ({"y": y20, "time": range(20), "gap": -1}, "negative"),
    "gap of days, negative": ({"y": y20, "time": DAYS[:20], "gap": -1}, "negative"),
    "gap is nonsense": ({"y": y20, "time": DAYS[:20], "gap": "much"}, "gap must be"),
    "gap too long": ({"y": y20, "time": range(20), "gap": 100}, "no block of time"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_split_is_refused(kind):
    arguments, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        make_splits(**arguments)


def test_a_gap_in_days_does_not_fit_numbers():
    with pytest.raises(TypeError, match="same units"):
        make_splits(y20, time=np.arange(20), gap=datetime.timedelta(days=1))


def test_whole_numbers_of_small_types_do_not_wrap_around():
    y = np.tile([0, 1], 20)
    wide = make_splits(y, time=np.arange(40) * 6, gap=30, n_splits=4)
    narrow = make_splits(y, time=(np.arange(40) * 6).astype(np.uint8), gap=30, n_splits=4)
    assert [s.train.tolist() for s in narrow] == [s.train.tolist() for s in wide]
