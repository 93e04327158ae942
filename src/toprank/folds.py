"""Training and test rows for comparing models: stratified, grouped or in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.validation import check_gap, check_groups, check_time

__all__ = ["Split", "Splits", "make_splits"]

TRIES = 20  # shuffles of the groups that are tried before a part without both classes is accepted


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of training and test rows.

    Attributes
    ----------
    train, test : int ndarray
        Row positions, ascending.
    repeat, fold : int
        Which repeat, and which fold or block of it, from 0.
    """

    train: np.ndarray
    test: np.ndarray
    repeat: int
    fold: int


class Splits(list[Split]):
    """A list of splits that says how it was made.

    Attributes
    ----------
    kind : {"stratified", "grouped", "time"}
    notes : tuple of str
        What is not as it was asked for, such as blocks left out, and why.
    """

    def __init__(self, splits: Iterable[Split], kind: str, notes: Iterable[str] = ()) -> None:
        super().__init__(splits)
        self.kind = kind
        self.notes = tuple(notes)


def make_splits(
    y: Any,
    *,
    groups: Any = None,
    time: Any = None,
    gap: Any = None,
    n_splits: int = 5,
    n_repeats: int = 1,
    random_state: int = 0,
) -> Splits:
    """Split rows for a comparison of models.

    Without `groups` and `time`: repeated stratified folds. With `groups`: repeated folds of whole
    groups, stratified as far as the groups allow. With `time`: each of `n_splits` blocks of about
    equal size is tested by a model trained on everything before it; there is one repeat. With both,
    the rows of the past whose group turns up in the test block are left out of training.

    Every training part and every test part has both classes; those that would not have them are
    left out, and `notes` says so.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels of two classes.
    groups : array of shape (n_rows,), optional
        A group (a query, a customer) is never both in training and in test.
    time : array of shape (n_rows,), optional
        Numbers, dates, or dates as text (2024-12-31). Rows of equal time stay together.
    gap : timedelta or number, optional
        Least distance in time between a training row and the first test row, for labels that arrive
        late. A number is in the units of a numeric `time`, and counts days when `time` holds dates.
    n_splits : int, default=5
        Folds, or blocks.
    n_repeats : int, default=1
        Repeats of the folds with other shuffles.
    random_state : int, default=0

    Returns
    -------
    splits : Splits
        A list of `Split`, with the attributes `kind` and `notes`.

    Examples
    --------
    >>> import numpy as np
    >>> y, day = np.tile([0, 0, 0, 1], 6), np.repeat(np.arange(12), 2)
    >>> [(len(s.train), len(s.test)) for s in make_splits(y, n_splits=3)]
    [(16, 8), (16, 8), (16, 8)]
    >>> [(len(s.train), len(s.test)) for s in make_splits(y, time=day, gap=2, n_splits=3)]
    [(4, 6), (10, 6), (16, 6)]
    """
    _check_counts(n_splits, n_repeats)
    positive = _check_classes(y)
    codes = None if groups is None else check_groups(groups, len(positive))
    if time is not None:
        when = check_time(time, len(positive))
        return _time_splits(positive, when, check_gap(gap, when), codes, n_splits)
    if gap is not None:
        raise ValueError("gap needs time: without it there is no order to keep a distance in")
    if codes is not None:
        return _grouped_splits(positive, codes, n_splits, n_repeats, random_state)
    return _stratified_splits(positive, n_splits, n_repeats, random_state)


def _check_counts(n_splits: Any, n_repeats: Any) -> None:
    for name, value, least in (("n_splits", n_splits, 1), ("n_repeats", n_repeats, 1)):
        if int(value) != value or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _check_classes(y: Any) -> np.ndarray:
    """Which rows are positive: those with the greater of two labels."""
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"y must be a list of labels, got shape {labels.shape}")
    if pd.isna(labels).any():
        raise ValueError("y has missing labels; drop those rows first")
    known = np.unique(labels)
    if len(known) != 2:
        raise ValueError(
            f"y must hold two classes, positives and negatives; it holds {len(known)}: "
            f"{', '.join(map(str, known[:5].tolist()))}"
        )
    return labels == known[1]


def _both(positive: np.ndarray, rows: np.ndarray) -> bool:
    """Whether both classes are among the rows."""
    return bool(len(rows)) and bool(positive[rows].any()) and not bool(positive[rows].all())


# -- folds -----------------------------------------------------------------------------------------


def _stratified_splits(
    positive: np.ndarray, n_splits: int, n_repeats: int, random_state: int
) -> Splits:
    from sklearn.model_selection import StratifiedKFold

    folds, notes = _fewer_folds(n_splits, positive, "rows")
    splits = []
    for repeat in range(n_repeats):
        folder = StratifiedKFold(folds, shuffle=True, random_state=random_state + repeat)
        for fold, (train, test) in enumerate(folder.split(np.zeros(len(positive)), positive)):
            splits.append(Split(train, test, repeat, fold))
    return Splits(splits, "stratified", notes)


def _fewer_folds(n_splits: int, positive: np.ndarray, unit: str) -> tuple[int, list[str]]:
    """As many folds as the rarer class has members, at most."""
    if n_splits < 2:
        raise ValueError("n_splits must be at least 2: one fold leaves nothing to train on")
    count = int(positive.sum())
    rarer = min(count, len(positive) - count)
    if rarer < 2:
        name = "positive" if count < 2 else "negative"
        raise ValueError(
            f"there is only one {name} among the {unit}; two are needed, one to train and one to test"
        )
    if rarer >= n_splits:
        return n_splits, []
    return rarer, [f"{rarer} folds instead of {n_splits}: the rarer class has only {rarer} {unit}"]


def _grouped_splits(
    positive: np.ndarray, codes: np.ndarray, n_splits: int, n_repeats: int, random_state: int
) -> Splits:
    n_groups = int(codes.max()) + 1
    with_positive = len(np.unique(codes[positive]))
    with_negative = len(np.unique(codes[~positive]))
    folds = min(n_splits, with_positive, with_negative)
    if min(folds, n_groups) < 2:
        raise ValueError(
            f"{n_groups} groups, {with_positive} of them with positives and {with_negative} with "
            "negatives, cannot be split: two of each are needed, and n_splits of at least 2"
        )
    notes = []
    if folds < n_splits:
        notes.append(f"{folds} folds instead of {n_splits}: too few groups have both classes")
    splits: list[Split] = []
    for repeat in range(n_repeats):
        found, dropped = _one_grouped_repeat(positive, codes, folds, repeat, random_state)
        splits += found
        notes += dropped
    if not splits:
        raise ValueError(f"no split of the groups has both classes on both sides: {notes[-1]}")
    return Splits(splits, "grouped", notes)


def _one_grouped_repeat(
    positive: np.ndarray, codes: np.ndarray, folds: int, repeat: int, random_state: int
) -> tuple[list[Split], list[str]]:
    """The shuffle of the groups that leaves most folds with both classes on both sides."""
    from sklearn.model_selection import StratifiedGroupKFold

    best: list[Split] = []
    for attempt in range(TRIES):
        seed = np.random.SeedSequence([random_state, repeat, attempt]).generate_state(1)[0]
        folder = StratifiedGroupKFold(folds, shuffle=True, random_state=int(seed) % 2**31)
        found = [
            Split(train, test, repeat, fold)
            for fold, (train, test) in enumerate(
                folder.split(np.zeros(len(positive)), positive, codes)
            )
            if _both(positive, train) and _both(positive, test)
        ]
        if len(found) > len(best):
            best = found
        if len(best) == folds:
            return best, []
    lost = folds - len(best)
    return best, [f"repeat {repeat}: {lost} of {folds} folds left out, one class was missing"]


# -- time ------------------------------------------------------------------------------------------


def _time_splits(
    positive: np.ndarray, when: np.ndarray, gap: Any, codes: np.ndarray | None, n_splits: int
) -> Splits:
    """Blocks of about equal size, each tested by what was known before it."""
    starts, notes = _block_starts(when, n_splits)
    splits = []
    for fold, (start, end) in enumerate(_pairs(starts)):
        inside = when >= start if end is None else (when >= start) & (when < end)
        # the distance is taken as a difference: start - gap may not exist among whole numbers
        known = when < start
        known[known] = (start - when[known]) >= gap
        if codes is not None:
            known &= ~np.isin(codes, codes[inside])
        train, test = np.flatnonzero(known), np.flatnonzero(inside)
        reason = _trouble(positive, train, test)
        if reason:
            notes.append(f"block {fold + 1} of {len(starts)} left out: {reason}")
        else:
            splits.append(Split(train, test, 0, fold))
    if not splits:
        raise ValueError(f"no block of time can be tested: {'; '.join(notes)}")
    return Splits(splits, "time", notes)


def _block_starts(when: np.ndarray, n_splits: int) -> tuple[list[Any], list[str]]:
    """Where the test blocks begin; what lies before the first one is only trained on."""
    moments, counts = np.unique(when, return_counts=True)
    if len(moments) < 2:
        raise ValueError("time is the same in all rows; there is no past to train on")
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])  # rows before each moment
    wanted = len(when) * np.arange(1, n_splits + 1) / (n_splits + 1)
    nearest = [int(np.argmin(np.abs(before[1:] - rows))) + 1 for rows in wanted]
    places = sorted(set(nearest))
    notes = []
    if len(places) < n_splits:
        notes.append(
            f"{len(places)} blocks instead of {n_splits}: rows of equal time are not split"
        )
    return [moments[place] for place in places], notes


def _pairs(starts: list[Any]) -> Iterator[tuple[Any, Any]]:
    yield from zip(starts, [*starts[1:], None], strict=True)


def _trouble(positive: np.ndarray, train: np.ndarray, test: np.ndarray) -> str:
    """Why a split cannot be used; empty if it can."""
    for rows, name in ((train, "training"), (test, "test")):
        if not _both(positive, rows):
            count = int(positive[rows].sum()) if len(rows) else 0
            return f"its {len(rows)} {name} rows hold {count} positives; both classes are needed"
    return ""
