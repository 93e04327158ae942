"""Generated data: fourteen points on a line, pairs of Gaussian clouds, queries with graded relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "GAUSSIANS",
    "gauss20d",
    "gauss20d_bayes_auc",
    "gauss20d_bayes_score",
    "make_queries",
    "toy14",
]


def toy14() -> tuple[np.ndarray, np.ndarray]:
    """Return fourteen points on a line whose best order by AUC is the worst by average precision.

    The points are -6, ..., 7 with positives at -3, -2 and 6. Ranked upwards the AUC is 16/33 and
    the average precision .324; ranked downwards 17/33 and .294. The example of table 1 of [1]_.

    Returns
    -------
    X : ndarray of shape (14, 1)
    y : ndarray of shape (14,)

    References
    ----------
    .. [1] J. Frery, A. Habrard, M. Sebban, O. Caelen and L. He-Guelton (2017), Efficient top rank
       optimization with gradient boosting for supervised anomaly detection, ECML PKDD.

    Examples
    --------
    >>> X, y = toy14()
    >>> X[y == 1].ravel().tolist()
    [-3.0, -2.0, 6.0]
    """
    x = np.arange(-6.0, 8.0)
    return x.reshape(-1, 1), np.isin(x, (-3.0, -2.0, 6.0)).astype(np.int64)


@dataclass(frozen=True)
class GaussianPair:
    """Negatives around 0 with unit variances, positives around a shifted centre with less."""

    distance: float  # of the two centres, shared evenly by all dimensions
    variance: float  # of the positives in each dimension, below 1
    n_features: int = 20

    @property
    def centre(self) -> np.ndarray:
        """Centre of the positives."""
        return np.full(self.n_features, self.distance / np.sqrt(self.n_features))


GAUSSIANS: dict[str, GaussianPair] = {
    "easy": GaussianPair(distance=0.92, variance=0.80),
    "medium": GaussianPair(distance=0.90, variance=0.83),
    "hard": GaussianPair(distance=0.36, variance=0.94),
}


def gauss20d(
    difficulty: str = "easy", n_samples: int = 2000, *, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw from two Gaussian clouds in twenty dimensions, half of the rows positive.

    The paper [1]_ describes its sets GaussEasy20d, GaussMed20d and GaussHard20d by three facts: both
    classes are Gaussian with diagonal covariances that may differ, the centres come closer
    from set to set, and half of 2,000 rows are positive. Centres and variances are not printed; those
    here are a guess, two numbers for each set, chosen by trial among some twenty settings to come
    near its tables 2, 7 and 8. The negatives are N(0, I), the positives N(c, v I) with v < 1.

    The guess rests on stand-ins for the paper's methods, trained on 1,000 rows: a linear
    discriminant for RankSVM, RankLS and KLR (the paper does not state their kernels; that they are
    linear is our reading), boosted stumps for RankBoost, a random forest for RF1-CART and bagged
    Gaussian SVMs for RF1-SVM. Their mean AUC over eight draws, and in brackets the paper's:

    ====== ======== === =================== =========== =========== =========== =========
    set    distance v   linear              stumps      forest      SVMs        Bayes AUC
    ====== ======== === =================== =========== =========== =========== =========
    easy   .92      .80 .741 (.740 to .742) .760 (.754) .755 (.747) .775 (.776) .800
    medium .90      .83 .734 (.719 to .740) .744 (.746) .737 (.737) .758 (.760) .782
    hard   .36      .94 .581 (.578 to .582) .572 (.577) .567 (.569) .583 (.582) .615
    ====== ======== === =================== =========== =========== =========== =========

    So results on these sets can be set beside the paper's, but not compared with them figure
    by figure.

    Parameters
    ----------
    difficulty : {"easy", "medium", "hard"}, default="easy"
    n_samples : int, default=2000
        At least 2; half of them, rounded down, are positive.
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray of shape (n_samples, 20)
    y : ndarray of shape (n_samples,)

    See Also
    --------
    gauss20d_bayes_score : The best score there is.
    gauss20d_bayes_auc : Its AUC, exactly.

    References
    ----------
    .. [1] M. Depecker, S. Clemencon and N. Vayatis (2011), An empirical comparison of learning
       algorithms for nonparametric scoring, HAL preprint hal-00730434.

    Examples
    --------
    >>> X, y = gauss20d("easy", n_samples=500, random_state=0)
    >>> X.shape, int(y.sum())
    ((500, 20), 250)
    """
    from sklearn.utils import check_random_state

    pair = _pair(difficulty)
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, got {n_samples}")
    random = check_random_state(random_state)
    y = random.permutation(np.arange(n_samples) % 2)
    noise = random.standard_normal((n_samples, pair.n_features))
    positives = pair.centre + np.sqrt(pair.variance) * noise
    return np.where(y[:, None] == 1, positives, noise), y


def gauss20d_bayes_score(X: np.ndarray, difficulty: str = "easy") -> np.ndarray:
    """Return the log of the likelihood ratio of rows of `gauss20d`: no score ranks them better.

    With centre c and variance v of the positives in d dimensions it is
    |x|^2 / 2 - |x - c|^2 / (2 v) - (d / 2) log v.

    Parameters
    ----------
    X : array of shape (n_rows, 20)
    difficulty : {"easy", "medium", "hard"}, default="easy"

    Returns
    -------
    scores : ndarray of shape (n_rows,)

    Examples
    --------
    >>> X, y = gauss20d("easy", n_samples=4000, random_state=0)
    >>> scores = gauss20d_bayes_score(X, "easy")
    >>> bool(scores[y == 1].mean() > scores[y == 0].mean())
    True
    """
    pair = _pair(difficulty)
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != pair.n_features:
        raise ValueError(f"X must have {pair.n_features} columns, got the shape {rows.shape}")
    from_positives = np.square(rows - pair.centre).sum(axis=1) / pair.variance
    constant = pair.n_features * np.log(pair.variance)
    return 0.5 * (np.square(rows).sum(axis=1) - from_positives - constant)


def gauss20d_bayes_auc(difficulty: str = "easy") -> float:
    """Return the AUC of the best score for `gauss20d`, by integration.

    Since v < 1, the likelihood ratio falls with T = |x - c / (1 - v)|^2. Under the negatives T is a
    non-central chi-square, under the positives v times another one; the AUC is the chance
    that the positive's T is the smaller.

    Parameters
    ----------
    difficulty : {"easy", "medium", "hard"}, default="easy"

    Returns
    -------
    auc : float

    Examples
    --------
    >>> round(gauss20d_bayes_auc("easy"), 3)
    0.8
    """
    from scipy.integrate import quad
    from scipy.stats import ncx2

    pair = _pair(difficulty)
    pole = pair.centre / (1.0 - pair.variance)
    negatives = ncx2(pair.n_features, float(pole @ pole))
    offset = pole - pair.centre
    positives = ncx2(pair.n_features, float(offset @ offset) / pair.variance, scale=pair.variance)
    low, high = negatives.ppf([1e-12, 1.0 - 1e-12])
    return float(
        quad(lambda t: negatives.pdf(t) * positives.cdf(t), low, high, limit=200, epsabs=1e-10)[0]
    )


def _pair(difficulty: str) -> GaussianPair:
    """Return the parameters of one data set."""
    if difficulty not in GAUSSIANS:
        raise ValueError(f"difficulty must be one of {', '.join(GAUSSIANS)}; got {difficulty!r}")
    return GAUSSIANS[difficulty]


# -- queries -------------------------------------------------------------------------------------------


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
    from scipy.stats import norm
    from sklearn.utils import check_random_state

    for name, value, least in (
        ("n_queries", n_queries, 1), ("rows_per_query", rows_per_query, 1),
        ("n_features", n_features, 1), ("levels", levels, 2), ("noise", noise, 0),
    ):  # fmt: skip
        if not value >= least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    random = check_random_state(random_state)
    # at least one document for each query, the others spread unevenly
    weights = random.gamma(3.0, 1.0, n_queries)
    spare = round(n_queries * rows_per_query) - n_queries
    sizes = 1 + random.multinomial(spare, weights / weights.sum())
    qid = np.repeat(np.arange(n_queries), sizes)
    quality = random.standard_normal(len(qid))
    X = _query_features(random, quality, qid, n_features)
    # grades are cut at thresholds that are higher for hard queries
    hidden = (quality + noise * random.standard_normal(len(qid))) / np.hypot(1.0, noise)
    hardness = 0.5 * random.standard_normal(n_queries)
    cuts = norm.isf(0.25 * 0.35 ** np.arange(levels - 1)) * np.hypot(1.0, 0.5)
    y = ((hidden - hardness[qid])[:, None] > cuts).sum(axis=1).astype(np.int64)
    return X, y, qid


def _query_features(
    random: np.random.RandomState, quality: np.ndarray, qid: np.ndarray, n_features: int
) -> np.ndarray:
    """Draw informative, query-only and noise columns, in random order."""
    n_queries, n_informative = qid[-1] + 1, (n_features + 1) // 2
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
