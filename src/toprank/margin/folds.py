"""Ways to set rows aside: folds, held-out rows, samples. Both classes keep their shares in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.margin._matrix import product
from toprank.ranking import descending_order

__all__ = ["content_folds", "held_out_rows", "sample_classes", "sample_rows", "stratified_folds"]


def stratified_folds(positive: np.ndarray, n_folds: int | None, seed: int) -> np.ndarray:
    """The fold of each row, classes spread evenly; -1 everywhere without folds.

    There are never more folds than rows of the rarer class, and none with a single such row.
    """
    fold = np.full(len(positive), -1, dtype=np.int64)
    rare = min(np.count_nonzero(positive), np.count_nonzero(~positive))
    if n_folds is None or rare < 2:
        return fold
    random = np.random.default_rng(seed)
    n_folds = min(n_folds, int(rare))
    for label in (True, False):
        rows = np.flatnonzero(positive == label)
        fold[random.permutation(rows)] = np.arange(len(rows)) % n_folds
    return fold


def sample_rows(positive: np.ndarray, rows: np.ndarray, size: int, seed: int) -> np.ndarray:
    """At most `size` of the rows; the rarer class fills up to half of them."""
    if len(rows) <= size:
        return rows
    n_positives = int(np.count_nonzero(positive[rows]))
    n_rare = min(n_positives, len(rows) - n_positives, size // 2)
    rare_is_positive = 2 * n_positives <= len(rows)
    random = np.random.default_rng(seed)
    parts = []
    for label in (True, False):
        members = rows[positive[rows] == label]
        n_kept = n_rare if label == rare_is_positive else size - n_rare
        parts.append(random.choice(members, size=min(n_kept, len(members)), replace=False))
    return np.sort(np.concatenate(parts))


def content_folds(
    X: Any, positive: np.ndarray, n_folds: int, random: np.random.Generator
) -> np.ndarray:
    """Folds with equal shares of both classes in which equal rows lie in the same fold.

    Rows of a class are put in the order of a random projection and dealt out in turns, so that a
    row of weight 2 and the same row twice get the same folds, and the order of the rows does not
    matter. With fewer distinct rows than folds there are fewer folds.
    """
    projection = product(X, random.standard_normal(X.shape[1]))
    unit = 1e-9 * max(float(np.abs(projection).max(initial=0.0)), 1e-300)
    group = np.empty(len(positive), dtype=np.int64)
    n_groups = []
    for label in (True, False):
        rows = np.flatnonzero(positive == label)
        rows = rows[descending_order(projection[rows])]
        new = np.diff(projection[rows], prepend=np.inf) < -unit
        group[rows] = np.cumsum(new) - 1
        n_groups.append(int(new.sum()))
    return group % max(1, min(n_folds, *n_groups))


def held_out_rows(positive: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Mask of the rows to hold out: the same share of each class."""
    random = np.random.default_rng(seed)
    mask = np.zeros(len(positive), dtype=bool)
    for label in (True, False):
        rows = np.flatnonzero(positive == label)
        if len(rows) < 2:
            raise ValueError(
                "held-out rows need at least two positives and two negatives; leave early stopping "
                "off and give the penalty as a number"
            )
        size = min(len(rows) - 1, max(1, round(share * len(rows))))
        mask[random.choice(rows, size=size, replace=False)] = True
    return mask


def sample_classes(
    positive: np.ndarray, most_positives: int, most_negatives: int, seed: int
) -> np.ndarray:
    """Row numbers of at most so many of each class, all of them where they are few."""
    random = np.random.default_rng(seed)
    parts = []
    for label, most in ((True, most_positives), (False, most_negatives)):
        rows = np.flatnonzero(positive == label)
        parts.append(rows if len(rows) <= most else random.choice(rows, most, replace=False))
    return np.sort(np.concatenate(parts))
