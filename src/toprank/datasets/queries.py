"""Queries and documents with graded relevance."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["make_queries"]


def make_queries(
    n_queries: int = 100,
    rows_per_query: float = 40.0,
    *,
    n_features: int = 46,
    levels: int = 3,
    noise: float = 1.0,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw documents for queries, with features and a grade of relevance for each.

    Every document has a hidden quality. Half of the features follow it (some through a curve, some
    only for part of the queries), a quarter tell the query but not the document, and a quarter are
    noise. Each query has its own level and scale, so that features compare documents of one query
    far better than documents of two. Grades are cut from quality plus noise: about three quarters of
    the documents get grade 0 and each higher grade is rarer; some queries have none above 0.

    `make_queries(1_700, 69_623 / 1_700)` has the shape of LETOR 4.0's MQ2007 [1]_.

    Parameters
    ----------
    n_queries : int, default=100
    rows_per_query : float, default=40.0
        Mean number of documents, at least 1. All queries together have the rounded product with
        `n_queries`; single ones vary, as real ones do.
    n_features : int, default=46
    levels : int, default=3
        Number of grades: 0, ..., levels - 1.
    noise : float, default=1.0
        Standard deviation of the noise between quality and grade, in units of that of the quality.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
        Grades.
    qid : ndarray of shape (n_rows,)
        Query identifiers, rows of one query side by side.

    References
    ----------
    .. [1] T. Qin and T.-Y. Liu (2013), Introducing LETOR 4.0 datasets, arXiv:1306.2597.

    Examples
    --------
    >>> X, y, qid = make_queries(20, 15, n_features=8, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((300, 8), [0, 1, 2])
    """
    from sklearn.utils import check_random_state

    for name, value, least in (
        ("n_queries", n_queries, 1), ("rows_per_query", rows_per_query, 1),
        ("n_features", n_features, 1), ("levels", levels, 2), ("noise", noise, 0),
    ):  # fmt: skip
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    random = check_random_state(random_state)
    qid = np.repeat(np.arange(n_queries), _sizes(random, n_queries, rows_per_query))
    quality = random.standard_normal(len(qid))
    X = _features(random, quality, qid, n_queries, n_features)
    return X, _grades(random, quality, qid, n_queries, levels, noise), qid


def _sizes(random: np.random.RandomState, n_queries: int, mean: float) -> np.ndarray:
    """Draw the numbers of documents: at least one for each query, the others spread unevenly."""
    spare = round(n_queries * mean) - n_queries
    weights = random.gamma(3.0, 1.0, n_queries)
    return 1 + random.multinomial(spare, weights / weights.sum())


def _features(
    random: np.random.RandomState,
    quality: np.ndarray,
    qid: np.ndarray,
    n_queries: int,
    n_features: int,
) -> np.ndarray:
    """Draw informative, query-only and noise columns, in random order."""
    n_informative = (n_features + 1) // 2
    n_query = (n_features - n_informative) // 2
    X = random.standard_normal((len(qid), n_features))
    for column in range(n_informative):
        signal = (quality, np.tanh(1.5 * quality), np.exp(0.5 * quality))[column % 3]
        useful = random.random_sample(n_queries) < random.choice([1.0, 0.5])
        X[:, column] = 1.5 * X[:, column] + signal * useful[qid]
    for column in range(n_informative, n_informative + n_query):
        X[:, column] = 0.3 * X[:, column] + random.standard_normal(n_queries)[qid]
    level = random.standard_normal((n_queries, n_informative))
    scale = np.exp(0.3 * random.standard_normal((n_queries, n_informative)))
    X[:, :n_informative] = X[:, :n_informative] * scale[qid] + level[qid]
    return X[:, random.permutation(n_features)]


def _grades(
    random: np.random.RandomState,
    quality: np.ndarray,
    qid: np.ndarray,
    n_queries: int,
    levels: int,
    noise: float,
) -> np.ndarray:
    """Cut quality plus noise at thresholds that are higher for hard queries."""
    from scipy.stats import norm

    hidden = (quality + noise * random.standard_normal(len(quality))) / np.hypot(1.0, noise)
    at_or_above = 0.25 * 0.35 ** np.arange(levels - 1)
    hardness = 0.5 * random.standard_normal(n_queries)
    cuts = norm.isf(at_or_above) * np.hypot(1.0, 0.5)
    return ((hidden - hardness[qid])[:, None] > cuts).sum(axis=1).astype(np.int64)
