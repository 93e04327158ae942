"""The figures of one model on one test part, and what they become when its rows are drawn again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.metrics import METRICS
from toprank.metrics.bootstrap import Job, ListSample
from toprank.validation import BinaryRows

__all__ = ["NAMES", "Part", "figures_of", "resampled_figures"]

NAMES = ("average_precision", "precision_at_k", "pos_at_top", "partial_auc", "roc_auc")
MOST_DRAWS = 100_000_000  # rows drawn for one model on one test part
FEWEST_RESAMPLES = 200


@dataclass(frozen=True, eq=False)
class Part:
    """The rows of one test part: labels, and weights, queries and groups where there are any.

    With queries every figure is the mean over the queries that have both classes. Resamples draw
    whole queries, else whole groups, else rows within each class.
    """

    positive: np.ndarray
    weight: np.ndarray | None
    qid: np.ndarray | None
    groups: np.ndarray | None

    def lists(self) -> list[np.ndarray]:
        """Positions of the rows of each list that can be scored."""
        if self.qid is None:
            return [np.arange(len(self.positive))]
        return [rows for rows in _members(self.qid) if self.has_both(rows)]

    def has_both(self, rows: np.ndarray) -> bool:
        """Whether both classes are among some rows."""
        return bool(self.positive[rows].any()) and not bool(self.positive[rows].all())

    def sample(self, scores: np.ndarray, rows: np.ndarray) -> ListSample:
        """The list of some rows, ranked by scores when it is first read."""
        weight = None if self.weight is None else self.weight[rows]
        return ListSample(BinaryRows(self.positive[rows], scores[rows], weight))


def jobs_for(n_rows: float, k: float | None, fpr: tuple[float, float]) -> list[Job]:
    """The figures, in the order of `NAMES`, for a list of so many rows."""
    settings: dict[str, dict[str, Any]] = {
        "precision_at_k": {"k": None if k is None else min(k, n_rows)},
        "partial_auc": {"fpr": fpr},
    }
    jobs = []
    for name in NAMES:
        core = METRICS[name].list_core
        assert core is not None
        jobs.append((core, METRICS[name].parameters(settings.get(name, {}))))
    return jobs


def figures_of(
    test: Part, scores: np.ndarray, k: float | None, fpr: tuple[float, float]
) -> np.ndarray:
    """All figures: one value for each of `NAMES`."""
    return list_figures(test, scores, k, fpr).mean(axis=0)


def list_figures(
    test: Part, scores: np.ndarray, k: float | None, fpr: tuple[float, float]
) -> np.ndarray:
    """The figures of each list that can be scored, in rows."""
    found = []
    for rows in test.lists():
        sample = test.sample(scores, rows)
        jobs = jobs_for(_size(sample.rows), k, fpr)
        found.append([sample.value(job) for job in jobs])
    if not found:
        raise ValueError("no query of the test rows has both positives and negatives")
    return np.array(found)


def resampled_figures(
    test: Part,
    scores: np.ndarray,
    k: float | None,
    fpr: tuple[float, float],
    n_resamples: int,
    seed: int,
) -> np.ndarray:
    """The figures (rows) on each resample (columns); the same seed draws the same rows again."""
    if test.qid is not None:
        each = list_figures(test, scores, k, fpr)
        drawn = np.random.default_rng(seed).integers(len(each), size=(n_resamples, len(each)))
        return each[drawn].mean(axis=1).T
    if test.groups is not None:
        return _by_groups(test, scores, k, fpr, n_resamples, seed)
    sample = test.sample(scores, np.arange(len(scores)))
    return sample.distribution(jobs_for(_size(sample.rows), k, fpr), n_resamples, seed)


def how_many(n_resamples: int, n_rows: int) -> int:
    """Fewer resamples of very long lists, which vary less: at least 200."""
    return int(
        np.clip(MOST_DRAWS // max(n_rows, 1), min(FEWEST_RESAMPLES, n_resamples), n_resamples)
    )


def _by_groups(
    test: Part,
    scores: np.ndarray,
    k: float | None,
    fpr: tuple[float, float],
    n_resamples: int,
    seed: int,
) -> np.ndarray:
    """Draw whole groups; a draw that lacks a class is drawn again."""
    assert test.groups is not None
    codes = np.unique(test.groups, return_inverse=True)[1]
    n_groups = int(codes.max()) + 1
    weight = np.ones(len(scores)) if test.weight is None else test.weight
    generator = np.random.default_rng(seed)
    values = np.empty((n_resamples, len(NAMES)))
    for resample in range(n_resamples):
        counts = _draw_groups(generator, n_groups, codes, test.positive)[codes]
        rows = np.flatnonzero(counts)
        part = BinaryRows(test.positive[rows], scores[rows], weight[rows] * counts[rows])
        sample = ListSample(part)
        jobs = jobs_for(_size(part), k, fpr)
        values[resample] = [sample.value(job) for job in jobs]
    return values.T


def _draw_groups(
    generator: np.random.Generator, n_groups: int, codes: np.ndarray, positive: np.ndarray
) -> np.ndarray:
    """How often each group is drawn."""
    with_positive = np.bincount(codes[positive], minlength=n_groups) > 0
    with_negative = np.bincount(codes[~positive], minlength=n_groups) > 0
    for _ in range(1000):
        counts = np.bincount(generator.integers(n_groups, size=n_groups), minlength=n_groups)
        if counts[with_positive].any() and counts[with_negative].any():
            return counts
    return np.ones(n_groups, dtype=np.int64)


def _members(codes: np.ndarray) -> list[np.ndarray]:
    """Positions of the rows of each query."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _size(rows: BinaryRows) -> float:
    """Number of rows, or their weight."""
    return float(len(rows.positive)) if rows.weight is None else float(rows.weight.sum())
