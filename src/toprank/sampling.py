"""Rows drawn at random inside a fit, class by class: folds and samples in which rare positives keep a part.

`random` is a seed or a NumPy Generator (of samples of both classes, a RandomState too); the same one draws
the same rows.
"""

from __future__ import annotations

import numpy as np

__all__ = ["sample_classes", "sample_rows", "stratified_folds"]


def stratified_folds(
    positive: np.ndarray, n_folds: int, random: int | np.random.Generator
) -> np.ndarray:
    """Return the fold of each row, the rows of each class dealt out in turns.

    A class with fewer rows than folds is absent from some of them (scikit-learn's StratifiedKFold refuses
    that, and trees are pruned on what few positives they have).

    Examples
    --------
    >>> import numpy as np
    >>> fold = stratified_folds(np.array([1, 1, 1, 0, 0, 0]) == 1, 3, 0)
    >>> sorted(fold[:3].tolist()), sorted(fold[3:].tolist())
    ([0, 1, 2], [0, 1, 2])
    """
    rng = np.random.default_rng(random)
    positive = np.asarray(positive) > 0
    fold = np.empty(len(positive), dtype=np.int64)
    for label in (True, False):
        rows = np.flatnonzero(positive == label)
        fold[rng.permutation(rows)] = np.arange(len(rows)) % n_folds
    return fold


def sample_rows(
    positive: np.ndarray, rows: np.ndarray, size: int, random: int | np.random.Generator
) -> np.ndarray:
    """Return at most `size` of the rows, ascending; the rarer class fills up to half of them.

    Examples
    --------
    >>> import numpy as np
    >>> positive = np.arange(1000) < 3
    >>> sample_rows(positive, np.arange(1000), 10, 0)[:3].tolist()
    [0, 1, 2]
    """
    if len(rows) <= size:
        return rows
    positive = np.asarray(positive) > 0
    n_positives = int(np.count_nonzero(positive[rows]))
    n_rare = min(n_positives, len(rows) - n_positives, size // 2)
    rare_is_positive = 2 * n_positives <= len(rows)
    n_drawn = (n_rare, size - n_rare) if rare_is_positive else (size - n_rare, n_rare)
    return rows[sample_classes(positive[rows], *n_drawn, random)]


def sample_classes(
    positive: np.ndarray,
    max_positives: int,
    max_negatives: int,
    random: int | np.random.Generator | np.random.RandomState,
) -> np.ndarray:
    """Return the numbers of at most so many rows of each class, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> sample_classes(np.array([1, 0, 0, 0]) == 1, 2, 2, 0).size
    3
    """
    rng = random if isinstance(random, np.random.RandomState) else np.random.default_rng(random)
    positive = np.asarray(positive) > 0
    parts = []
    for label, most in ((True, max_positives), (False, max_negatives)):
        rows = np.flatnonzero(positive == label)
        parts.append(rows if len(rows) <= most else rng.choice(rows, most, replace=False))
    return np.sort(np.concatenate(parts))
