"""The stochastic draw of each round: a share of the rows, the same share of each class."""

from __future__ import annotations

import numpy as np

__all__ = ["StratifiedDraw"]


class StratifiedDraw:
    """Draw rows without replacement, the same share of positives and of negatives.

    The objective is computed on the draw alone (Friedman's stochastic gradient boosting; Frery et al.
    2017, algorithm 1), so at least one row of each class is always in it.

    Parameters
    ----------
    positive : ndarray of bool
    present : ndarray of bool
        Rows with a weight above zero; the others are never drawn.
    share : float
        Share of the rows in (0, 1]; 1 draws every row that is present.
    random_state : int
    """

    def __init__(
        self, positive: np.ndarray, present: np.ndarray, share: float, random_state: int
    ) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"subsample must be above 0 and at most 1, got {share!r}")
        self._classes = [np.flatnonzero(present & positive), np.flatnonzero(present & ~positive)]
        self._share = share
        self._random = np.random.default_rng(random_state)
        self._everything = present.all()

    def __call__(self) -> np.ndarray | None:
        """Return the sorted rows of one draw, or None for every row."""
        if self._share == 1:
            return None if self._everything else np.sort(np.concatenate(self._classes))
        drawn = [
            self._random.choice(rows, size=max(1, round(self._share * len(rows))), replace=False)
            for rows in self._classes
        ]
        return np.sort(np.concatenate(drawn))
