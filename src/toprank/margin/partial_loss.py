"""The loss over positives and the negatives ranked in a range, and its derivative by the scores.

    D(f) = 1/(W+ (b - a) W-) sum over positives i, negatives j of w_i u_j loss(f_i - f_j)

where W+ and W- are the weights of the classes and u_j is the part of the weight of negative j whose
cumulative weight, counted from the highest score, lies between a W- and b W-. For a = 0 this is the
largest value that any choice of negatives of total weight b W- gives (Rao & Acharyya 2020, eq. 7), so it
is convex in the scores for every convex decreasing loss. For a > 0 it is the difference of two such
functions: (b - a) D[a, b] = b D[0, b] - a D[0, a].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from toprank.margin._poise_kernels import range_loss, weights_in_range
from toprank.pairs import sigmoid_sums, softplus_sums
from toprank.ranking import RankedQueries, descending_order

__all__ = ["SURROGATES", "PartialLoss", "Surrogate", "check_range"]


def check_range(fpr: Any) -> tuple[float, float]:
    """Return the two ends of a range of false positive rates, or say what is wrong with it.

    Examples
    --------
    >>> check_range((0, 0.05))
    (0.0, 0.05)
    """
    try:
        low, high = (float(end) for end in fpr)
    except (TypeError, ValueError):
        raise ValueError(f"fpr must be a pair (a, b) of numbers, got {fpr!r}") from None
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(f"fpr=(a, b) needs 0 <= a < b <= 1, got {fpr!r}")
    return low, high


def exponential_pair_sums(
    positive_scores: np.ndarray,
    positive_weights: np.ndarray,
    negative_scores: np.ndarray,
    negative_weights: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum over pairs of w_i u_j exp(f_j - f_i), which factorises, and its derivatives.

    Both lists run from the highest score down.
    """
    lowest, highest = positive_scores[-1], negative_scores[0]
    positive = positive_weights * np.exp(lowest - positive_scores)
    negative = negative_weights * np.exp(negative_scores - highest)
    scale = np.exp(min(highest - lowest, 600.0))  # finite, so that a line search can turn back
    total = scale * positive.sum() * negative.sum()
    return total, -scale * negative.sum() * positive, scale * positive.sum() * negative


def logistic_pair_sums(
    positive_scores: np.ndarray,
    positive_weights: np.ndarray,
    negative_scores: np.ndarray,
    negative_weights: np.ndarray,
) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum over pairs of w_i u_j log(1 + exp(f_j - f_i)), and its derivatives.

    Both lists run from the highest score down.
    """
    losses = softplus_sums(positive_scores, negative_scores, negative_weights)
    up = sigmoid_sums(positive_scores, negative_scores, negative_weights)[0]
    down = sigmoid_sums(-negative_scores, -positive_scores, positive_weights)[0]
    return float(positive_weights @ losses), -positive_weights * up, negative_weights * down


class Surrogate(NamedTuple):
    """A convex loss of the margin: its value at 0 and, unless it is the hinge, its pair sums."""

    at_zero: float
    pair_sums: Callable[..., tuple[float, np.ndarray, np.ndarray]] | None


SURROGATES: dict[str, Surrogate] = {
    "hinge": Surrogate(1.0, None),
    "logistic": Surrogate(float(np.log(2.0)), logistic_pair_sums),
    "exponential": Surrogate(1.0, exponential_pair_sums),
}


@dataclass(frozen=True)
class PartialLoss:
    """Partial-AUC loss of a list of scores.

    Attributes
    ----------
    positive : ndarray of bool
        Which rows are positives.
    weight : ndarray of shape (n_rows,)
        Copies of each row.
    fpr : tuple (a, b)
        The range of false positive rates.
    surrogate : {"hinge", "logistic", "exponential"}
        The loss of one pair.
    structural : bool
        Use the bound of the structural SVM (Narasimhan & Agarwal 2013) in place of the hinge itself.
    qid : ndarray or None
        Queries: the loss is then the mean over those with both classes (hinge only).

    Examples
    --------
    >>> import numpy as np
    >>> loss = PartialLoss(np.array([True, False, False]), np.ones(3), (0.0, 0.5))
    >>> value, gradient = loss(np.array([0.5, 0.25, -3.0]))
    >>> value, gradient.tolist()
    (0.75, [-1.0, 1.0, 0.0])
    """

    positive: np.ndarray
    weight: np.ndarray
    fpr: tuple[float, float]
    surrogate: str = "hinge"
    structural: bool = False
    qid: np.ndarray | None = None

    def over(self, fpr: tuple[float, float]) -> PartialLoss:
        """The same loss over another range."""
        return replace(self, fpr=fpr)

    @property
    def at_zero(self) -> float:
        """The loss of scores that are all equal."""
        return SURROGATES[self.surrogate].at_zero

    def __call__(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its derivative by every score."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        pair_sums = SURROGATES[self.surrogate].pair_sums
        if pair_sums is None:
            ranked = RankedQueries.of(scores, self.qid)
            value, gradient, _ = range_loss(
                scores, self.positive, self.weight, ranked.order, ranked.starts, *self.fpr,
                self.structural,
            )  # fmt: skip
            return value, gradient
        return self._smooth(scores, pair_sums)

    def _smooth(
        self, scores: np.ndarray, pair_sums: Callable[..., tuple[float, np.ndarray, np.ndarray]]
    ) -> tuple[float, np.ndarray]:
        above = np.flatnonzero(self.positive)
        below = np.flatnonzero(~self.positive)
        above = above[descending_order(scores[above])]
        below = below[descending_order(scores[below])]
        mass = self.weight[below].sum()
        low, high = self.fpr
        end = high * mass if high < 1.0 else np.inf
        inside = weights_in_range(scores[below], self.weight[below], low * mass, end)
        used = slice(*np.flatnonzero(inside)[[0, -1]] + [0, 1])
        pairs = self.weight[above].sum() * mass * (high - low)
        total, up, down = pair_sums(
            scores[above], self.weight[above], scores[below[used]], inside[used]
        )
        gradient = np.zeros(len(scores))
        gradient[above] = up / pairs
        gradient[below[used]] = down / pairs
        return total / pairs, gradient
