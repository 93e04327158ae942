"""Out-of-fold scores as counts above every threshold, and exact bounds of shares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv, chdtri

from toprank.ranking import RankedList

__all__ = [
    "OutOfFoldCounts", "design_effect", "effective_rows", "lower_share", "probability_at_least",
    "probability_at_most", "share_interval", "upper_share",
]  # fmt: skip

MAX_STEPS = 10_000


@dataclass(frozen=True)
class OutOfFoldCounts:
    """Labelled scores from the highest to the lowest, in steps that no threshold divides.

    Cuts and calibration are learnt from it, and it is small enough for a model file: the steps at the
    top of the list are kept one by one, those further down are joined (`thin`).

    Attributes
    ----------
    tops, bottoms : ndarray of shape (n_steps,)
        The highest and the lowest score of each step; both are equal for a step of tied rows.
    positives, negatives : ndarray of shape (n_steps,)
        Weight of the positives (negatives) down to the end of each step.
    positive_squares, negative_squares : ndarray of shape (n_steps,)
        Sums of the squared weights, likewise.

    Examples
    --------
    >>> import numpy as np
    >>> counts = OutOfFoldCounts.of(np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 2.0]))
    >>> counts.positives.tolist(), counts.negatives.tolist()
    ([1.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    >>> [counts.threshold(k) for k in range(4)]
    [inf, 3.5, 2.5, -inf]
    """

    tops: np.ndarray
    bottoms: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray
    positive_squares: np.ndarray
    negative_squares: np.ndarray

    @classmethod
    def of(
        cls, positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None
    ) -> OutOfFoldCounts:
        """Rank labelled scores (weights above 0); equal scores share a step."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        ranked = squares = RankedList.of(positive, scores, weight)
        if weight is not None:
            squares = RankedList.of(positive, scores, np.asarray(weight, dtype=np.float64) ** 2)
        sums = (ranked.positives, ranked.negatives, squares.positives, squares.negatives)
        return cls(ranked.scores, ranked.scores.copy(), *(values.copy() for values in sums))

    def score_quantiles(self, n_quantiles: int = 101) -> list[float]:
        """Return quantiles of the scores, from the lowest to the highest, at equal distances.

        Examples
        --------
        >>> import numpy as np
        >>> OutOfFoldCounts.of(np.array([1, 0, 0]), np.array([4.0, 3.0, 2.0])).score_quantiles(3)
        [2.0, 3.0, 4.0]
        """
        weight = np.diff(self.positives + self.negatives, prepend=0.0)[::-1]
        share = np.cumsum(weight) / weight.sum()
        steps = np.searchsorted(share, np.linspace(0, 1, n_quantiles), side="right")
        return self.tops[::-1][np.minimum(steps, len(share) - 1)].tolist()

    def thin(self, max_steps: int = MAX_STEPS) -> OutOfFoldCounts:
        """Return at most so many steps: the upper half stays as it is, the others are joined evenly.

        Examples
        --------
        >>> import numpy as np
        >>> counts = OutOfFoldCounts.of(np.arange(100) % 2, np.arange(100.0)).thin(10)
        >>> counts.n_steps, counts.total_positives, counts.bottoms[:6].tolist()
        (10, 50.0, [99.0, 98.0, 97.0, 96.0, 95.0, 76.0])
        """
        if self.n_steps <= max_steps:
            return self
        exact = max_steps // 2
        joined = np.linspace(exact - 1, self.n_steps - 1, max_steps - exact + 1)[1:]
        ends = np.concatenate([np.arange(exact), np.round(joined).astype(np.int64)])
        starts = np.concatenate([[0], ends[:-1] + 1])
        sums = (self.positives, self.negatives, self.positive_squares, self.negative_squares)
        sums_at_ends = (values[ends] for values in sums)
        return OutOfFoldCounts(self.tops[starts], self.bottoms[ends], *sums_at_ends)

    def widened(self, factor: float) -> OutOfFoldCounts:
        """Return counts that say as much as `factor` times fewer rows: every bound gets wider.

        Examples
        --------
        >>> import numpy as np
        >>> counts = OutOfFoldCounts.of(np.array([1, 0, 1, 0]), np.arange(4.0))
        >>> counts.widened(2.0).effective_positives
        1.0
        """
        squares = {"positive_squares": self.positive_squares * factor}
        return replace(self, negative_squares=self.negative_squares * factor, **squares)

    @property
    def n_steps(self) -> int:
        return len(self.tops)

    @property
    def flagged(self) -> np.ndarray:
        """Weight of all rows down to the end of each step."""
        return self.positives + self.negatives

    @property
    def flagged_squares(self) -> np.ndarray:
        return self.positive_squares + self.negative_squares

    @property
    def total_positives(self) -> float:
        return float(self.positives[-1])

    @property
    def total_negatives(self) -> float:
        return float(self.negatives[-1])

    @property
    def total(self) -> float:
        return self.total_positives + self.total_negatives

    @property
    def effective_positives(self) -> float:
        """How many positives of equal weight say as much."""
        return float(effective_rows(self.positives[-1], self.positive_squares[-1]))

    @property
    def effective_negatives(self) -> float:
        return float(effective_rows(self.negatives[-1], self.negative_squares[-1]))

    def by_steps_flagged(self, name: str) -> np.ndarray:
        """Return a cumulative sum by the number of steps flagged: 0, 1, ..., n_steps."""
        return np.concatenate([[0.0], getattr(self, name)])

    def threshold(self, n_flagged_steps: int) -> float:
        """Return the score half-way between these steps and the next; infinite at the ends."""
        if not 0 < n_flagged_steps < self.n_steps:
            return float("inf") if n_flagged_steps <= 0 else float("-inf")
        high = float(self.bottoms[n_flagged_steps - 1])
        low = float(self.tops[n_flagged_steps])
        middle = low / 2 + high / 2  # the difference of two huge scores would overflow
        return middle if low <= middle < high else low

    def step_counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of the positives and the negatives of each single step."""
        return np.diff(self.positives, prepend=0.0), np.diff(self.negatives, prepend=0.0)

    def average_precision(self) -> float:
        """Return the average precision of the scores; joined steps count as ties.

        Examples
        --------
        >>> import numpy as np
        >>> OutOfFoldCounts.of(np.array([1, 0, 1]), np.array([3.0, 2.0, 1.0])).average_precision()
        0.8333333333333333
        """
        precision = self.positives / self.flagged
        return float(np.sum(self.step_counts()[0] * precision)) / self.total_positives


# -- folds that differ -----------------------------------------------------------------------------

RATES = (0.01, 0.02, 0.05, 0.1, 0.2)  # false positive rates at which folds are compared
# A handful of folds cannot show that their models and the final one agree any closer than this; at 1, false
# positive rates promised at 95% were kept in 93% of the lists (experiments/results/promises.md).
LEAST_EFFECT = 1.25


def design_effect(
    positive: np.ndarray, scores: np.ndarray, folds: np.ndarray | None = None
) -> float:
    """Return by how much a new model's rates vary more than those of as many independent rows.

    At a threshold, the false positive rates of K folds differ by chance and because their models differ.
    Let D be the chi-squared statistic of equal rates over its K - 1 degrees of freedom, averaged over
    thresholds. What exceeds chance (the 80% quantile) is the variance of the models, in units of that of a
    fold's rows; the rate of one more model, predicted from all folds, then has 1 + (K + 1)(D - 1) times the
    variance of a share of all rows (Kish 1965 calls such a ratio a design effect), and at least `LEAST_EFFECT`,
    which is also the answer where the folds are not known.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> scores, folds = random.normal(size=5000), np.arange(5000) % 5
    >>> none, apart = (design_effect(np.zeros(5000, bool), scores + s * folds, folds) for s in (0, 0.3))
    >>> none, apart > 10
    (1.25, True)
    """
    if folds is None:
        return LEAST_EFFECT
    negatives = scores[~positive]
    codes, sizes = np.unique(folds[~positive], return_inverse=True, return_counts=True)[1:]
    n_folds = len(sizes)
    if n_folds < 3 or not len(negatives):
        return LEAST_EFFECT
    found = []
    for rate in RATES:
        if rate * sizes.min() < 1:  # no rows to compare
            continue
        above = negatives > np.quantile(negatives, 1.0 - rate)
        share = above.mean()
        if 0 < share < 1:
            shares = np.bincount(codes, above) / sizes
            statistic = np.sum(sizes * (shares - share) ** 2) / (share * (1 - share))
            found.append(statistic / (n_folds - 1))
    if not found:
        return LEAST_EFFECT
    by_chance = float(chdtri(n_folds - 1, 0.2)) / (n_folds - 1)
    effect = 1.0 + (n_folds + 1) * max(0.0, float(np.mean(found)) / by_chance - 1.0)
    return max(LEAST_EFFECT, effect)


# -- shares ----------------------------------------------------------------------------------------


def effective_rows(weight: Any, squares: Any) -> np.ndarray:
    """Return how many rows of equal weight say as much (Kish 1965): W^2 / S; 0 where there is no weight.

    Examples
    --------
    >>> float(effective_rows(4.0, 4.0)), float(effective_rows(3.0, 5.0))
    (4.0, 1.8)
    """
    weight, squares = np.asarray(weight, dtype=float), np.asarray(squares, dtype=float)
    return np.divide(weight**2, squares, out=np.zeros_like(squares), where=squares > 0)


def lower_share(hits: Any, total: Any, error: Any) -> np.ndarray:
    """Return the lower bound of a share that is too high with probability at most `error`.

    The p at which hits or more of total have just that probability (Clopper & Pearson 1934,
    Biometrika 26): a quantile of Beta(hits, total - hits + 1). 0 without a hit.

    Examples
    --------
    >>> round(float(lower_share(5, 5, 0.05)), 3)
    0.549
    """
    return _with_hits(betaincinv, hits, total, error, 0.0)


def upper_share(hits: Any, total: Any, error: Any) -> np.ndarray:
    """Return the upper bound of a share that is too low with probability at most `error`."""
    return 1.0 - lower_share(np.maximum(np.subtract(total, hits), 0.0), total, error)


def share_interval(hits: float, total: float, confidence: float) -> tuple[float, float]:
    """Return both bounds, each wrong with half of what `confidence` leaves."""
    error = (1.0 - confidence) / 2
    return float(lower_share(hits, total, error)), float(upper_share(hits, total, error))


def probability_at_least(hits: Any, total: Any, share: float) -> np.ndarray:
    """Return the probability of `hits` or more of `total` when each is one with probability `share`."""
    return _with_hits(betainc, hits, total, share, 1.0)


def probability_at_most(hits: Any, total: Any, share: float) -> np.ndarray:
    """Return the probability of `hits` or fewer of `total` when each is one with probability `share`."""
    return probability_at_least(np.maximum(np.subtract(total, hits), 0.0), total, 1.0 - share)


def _with_hits(function: Any, hits: Any, total: Any, value: Any, without: float) -> np.ndarray:
    """Return a function of Beta(hits, total - hits + 1); `without` where there is no hit."""
    hits, total = np.asarray(hits, dtype=float), np.asarray(total, dtype=float)
    missed = np.maximum(total - hits, 0.0)
    found = function(np.where(hits > 0, hits, 1.0), missed + 1.0, value)
    return np.where(hits > 0, found, without)
