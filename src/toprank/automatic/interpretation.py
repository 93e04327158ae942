"""A fitted ensemble made readable: Shapley values by sampling, and small models that learn its scores.

A small model is taught with soft labels (Hinton, Vinyals & Dean 2015): every row is there twice, as a positive
with the probability p that the ensemble gives it for weight, and as a negative with 1 - p. Any ranker that
takes weights can learn so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse, stats
from scipy.special import expit
from sklearn.base import clone

from toprank import metrics
from toprank.automatic.portfolio import make_ranker
from toprank.folds import make_indexable, make_splits, scores_of, take_rows
from toprank.stopping import ValidationMetric

__all__ = ["STUDENTS", "Distillation", "distill", "make_student", "shapley_table"]

# -- Shapley values ----------------------------------------------------------------------------------

BASE = "(base)"
TOLD_APART = 100  # columns; of more, those that matter most
SCREENED = 16  # rows that tell which matter
CHUNK = 20_000  # rows scored in one call


def shapley_table(
    score: Callable[[np.ndarray], np.ndarray],
    X: np.ndarray,
    usual: np.ndarray,
    source: np.ndarray,
    names: Sequence[str],
    seed: int = 0,
) -> pd.DataFrame:
    """Split scores into what each column adds to the score of the usual row.

    Features of one column change together. They do so in a random order and in its reverse, and the two
    effects are averaged (Mitchell, Cooper, Frank & Holmes 2022, Sampling permutations for Shapley value
    estimation, JMLR 23).

    Parameters
    ----------
    score : callable
        From features to scores.
    X : ndarray of shape (n_rows, n_features)
    usual : ndarray of shape (n_features,)
    source : int ndarray of shape (n_features,)
        The column that each feature comes from.
    names : sequence of str
        Of the columns.
    seed : int

    Returns
    -------
    table : DataFrame of shape (n_rows, n_columns + 1)
        The last column is ``(base)``; a row sums to its score.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [0.0, 0.0]])
    >>> shapley_table(lambda rows: rows.sum(axis=1), X, np.zeros(2), np.arange(2), ["a", "b"]).values.tolist()
    [[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]]
    """
    values = np.zeros((len(X), len(names) + 1))
    if len(X):
        columns = _that_matter(score, X, usual, source)
        order = np.random.default_rng(seed).permutation(columns)
        together = max(1, CHUNK // len(X))
        for sequence in (order, order[::-1]):
            _add_effects(score, X, usual, source, sequence, values, together)
        values[:, :-1] /= 2
        values[:, -1] = score(X) - values[:, :-1].sum(axis=1)
    return pd.DataFrame(values, columns=[*names, BASE])


def _add_effects(
    score: Callable[[np.ndarray], np.ndarray],
    X: np.ndarray,
    usual: np.ndarray,
    source: np.ndarray,
    order: np.ndarray,
    values: np.ndarray,
    together: int,
) -> None:
    """Add the change of the score as one column after the other takes the row's own value."""
    hidden = np.isin(source, order)
    current = np.where(hidden, usual, X)
    before = score(current)
    for start in range(0, len(order), together):
        steps = []
        for column in order[start : start + together]:
            features = source == column
            current = current.copy()
            current[:, features] = X[:, features]
            steps.append(current)
        found = score(np.vstack(steps)).reshape(len(steps), len(X))
        for column, after in zip(order[start : start + together], found, strict=True):
            values[:, column] += after - before
            before = after


def _that_matter(
    score: Callable[[np.ndarray], np.ndarray], X: np.ndarray, usual: np.ndarray, source: np.ndarray
) -> np.ndarray:
    """Return the columns to tell apart: all, or those whose usual value changes the score of some rows most."""
    columns = np.unique(source)
    if len(columns) <= TOLD_APART:
        return columns
    few = X[np.unique(np.linspace(0, len(X) - 1, min(SCREENED, len(X))).astype(np.int64))]
    before, effects = score(few), np.zeros(len(columns))
    together = max(1, CHUNK // len(few))
    for start in range(0, len(columns), together):
        part = columns[start : start + together]
        blocks = [np.where(source == column, usual, few) for column in part]
        after = score(np.vstack(blocks)).reshape(len(part), len(few))
        effects[start : start + len(part)] = np.abs(after - before).mean(axis=1)
    return np.sort(columns[np.argsort(-effects, kind="stable")[:TOLD_APART]])


# -- small models ------------------------------------------------------------------------------------

TEACHER_SHARE = 0.7  # of the label that the teacher says; the rest is the label itself
N_FOLDS = 3


# name -> estimator and its settings
STUDENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "booster": (
        "GradientBoostingRanker",
        {"objective": "logistic", "n_estimators": 100, "learning_rate": 0.15, "max_leaves": 15,
         "n_seeds": 1, "random_trees": 0},
    ),
    "tree": ("TreeRank", {"max_depth": 4}),
    "rules": ("PRankBoost", {"n_estimators": 10}),
}  # fmt: skip


@dataclass(frozen=True)
class Distillation:
    """A small model that learnt from a larger one, and what that costs.

    Attributes
    ----------
    model : fitted ranker
        It takes the same columns, and has a model file and explanations of its own.
    metric : str
    teacher, student : float
        The metric of the large and of the small model on rows that neither had learnt from.
    given_up, low, high : float
        The difference, with its 95% interval.
    agreement : float
        Spearman's correlation of their scores on these rows.
    """

    model: Any
    metric: str
    teacher: float
    student: float
    given_up: float
    low: float
    high: float
    agreement: float

    def __str__(self) -> str:
        return (
            f"{type(self.model).__name__} gives up {self.given_up:.4f} of {self.metric} "
            f"({self.low:+.4f} to {self.high:+.4f}): {self.student:.4f} instead of {self.teacher:.4f}"
        )


def make_student(kind: str | Any, seed: int = 0, n_jobs: int | None = None) -> Any:
    """Return an unfitted small model: one of `STUDENTS`, or a copy of a ranker.

    Examples
    --------
    >>> make_student("tree").max_depth
    4
    """
    if not isinstance(kind, str):
        return clone(kind)
    if kind not in STUDENTS:
        raise ValueError(f"kind must be a ranker or one of {', '.join(STUDENTS)}; got {kind!r}")
    return make_ranker(*STUDENTS[kind], seed, n_jobs)


def distill(
    X: Any,
    positive: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    student: Any,
    metric: ValidationMetric,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
) -> Distillation:
    """Teach a small model with scores, and measure it on rows that it had not learnt from.

    Parameters
    ----------
    X : array or table
    positive : bool ndarray of shape (n_rows,)
    scores : ndarray of shape (n_rows,)
        Log-odds of the teacher, of models that had not seen the row.
    labels : ndarray of shape (2,)
        What the classes are called.
    student : ranker
        It must take weights.
    metric : ValidationMetric
    seed : int
    n_jobs : int or None
    """
    X = make_indexable(X)
    held_out = np.full(len(positive), np.nan)
    for split in make_splits(positive, n_splits=N_FOLDS, random_state=seed):
        part = _teach(student, X, positive, scores, labels, split.train)
        held_out[split.test] = scores_of(part, take_rows(X, split.test))
    model = _teach(student, X, positive, scores, labels, np.arange(len(positive)))
    found = metrics.compare(
        metric.function, positive, scores, held_out, n_resamples=300, random_state=seed, n_jobs=n_jobs
    )  # fmt: skip
    sign = 1.0 if metric.greater_is_better else -1.0
    low, high = sorted((sign * found.low, sign * found.high))
    agreement = float(stats.spearmanr(scores, held_out).statistic)
    return Distillation(
        model, metric.name, found.value_a, found.value_b, sign * found.difference, low, high, agreement
    )  # fmt: skip


def _teach(
    student: Any,
    X: Any,
    positive: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    rows: np.ndarray,
) -> Any:
    """Fit a copy of the student on some rows, each of them once for either label."""
    probability = TEACHER_SHARE * expit(scores[rows]) + (1 - TEACHER_SHARE) * positive[rows]
    part = take_rows(X, rows)
    if isinstance(part, pd.DataFrame):
        twice: Any = pd.concat([part, part], ignore_index=True)
    else:
        stack = sparse.vstack if sparse.issparse(part) else np.vstack
        twice = stack([part, part])
    y = np.repeat(labels[[1, 0]], len(rows))
    weight = np.concatenate([probability, 1 - probability])
    return clone(student).fit(twice, y, sample_weight=weight)
