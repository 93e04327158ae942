"""Staircase: a list of labelled scores as the counts above every possible cut.

It is what cuts and calibration are learnt from, and small enough to live in a model file: the steps at the
top of the list are kept one by one, those further down are joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.ranking import RankedList
from toprank.shortlisting.bounds import effective_rows

__all__ = ["MOST_STEPS", "Staircase"]

MOST_STEPS = 10_000


@dataclass(frozen=True)
class Staircase:
    """Labelled scores from the highest to the lowest, in steps that no cut divides.

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
    >>> stairs = Staircase.of(np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 2.0]))
    >>> stairs.positives.tolist(), stairs.negatives.tolist()
    ([1.0, 1.0, 2.0], [0.0, 1.0, 2.0])
    >>> [stairs.threshold(k) for k in range(4)]
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
    ) -> Staircase:
        """Rank labelled scores (weights above 0); equal scores share a step."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        ranked = RankedList.of(positive, scores, weight)
        squares = ranked
        if weight is not None:
            squares = RankedList.of(positive, scores, np.asarray(weight, dtype=np.float64) ** 2)
        return cls(
            ranked.scores,
            ranked.scores.copy(),
            ranked.positives,
            ranked.negatives,
            squares.positives.copy(),
            squares.negatives.copy(),
        )

    def thinned(self, most: int = MOST_STEPS) -> Staircase:
        """At most so many steps: the upper half stays as it is, the rest is joined evenly.

        Examples
        --------
        >>> import numpy as np
        >>> stairs = Staircase.of(np.arange(100) % 2, np.arange(100.0)).thinned(10)
        >>> stairs.n_steps, stairs.total_positives, stairs.bottoms[:6].tolist()
        (10, 50.0, [99.0, 98.0, 97.0, 96.0, 95.0, 76.0])
        """
        if self.n_steps <= most:
            return self
        exact = most // 2
        rest = np.linspace(exact - 1, self.n_steps - 1, most - exact + 1)[1:]
        ends = np.concatenate([np.arange(exact), np.round(rest).astype(np.int64)])
        starts = np.concatenate([[0], ends[:-1] + 1])
        return Staircase(
            self.tops[starts],
            self.bottoms[ends],
            self.positives[ends],
            self.negatives[ends],
            self.positive_squares[ends],
            self.negative_squares[ends],
        )

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

    def above(self, name: str) -> np.ndarray:
        """A cumulative sum by the number of steps flagged: 0, 1, ..., n_steps."""
        return np.concatenate([[0.0], getattr(self, name)])

    def threshold(self, n_flagged_steps: int) -> float:
        """The score above which just these steps lie, half-way to the next; infinite at the ends."""
        if n_flagged_steps <= 0:
            return float("inf")
        if n_flagged_steps >= self.n_steps:
            return float("-inf")
        high = float(self.bottoms[n_flagged_steps - 1])
        low = float(self.tops[n_flagged_steps])
        middle = low / 2 + high / 2  # the difference of two huge scores would overflow
        return middle if low <= middle < high else low

    def step_counts(self) -> tuple[Any, Any]:
        """Weight of the positives and the negatives of each single step."""
        return np.diff(self.positives, prepend=0.0), np.diff(self.negatives, prepend=0.0)
