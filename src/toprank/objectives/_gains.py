"""Gains and ideal orders of graded relevance."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["gains_of", "ideal_gains"]

_HIGHEST_GRADE = 62


def gains_of(labels: np.ndarray) -> np.ndarray:
    """Return 2**rel - 1 for every label."""
    if len(labels) and labels.max() > _HIGHEST_GRADE:
        raise ValueError(
            f"relevance grades above {_HIGHEST_GRADE} make gains of 2**grade meaningless; "
            "number the grades 0, 1, 2, ..."
        )
    return np.exp2(labels) - 1.0


@njit(cache=True, nogil=True)
def ideal_gains(held, gains, cutoff):
    """IDCG by query from the weight held at each of the ascending gains."""
    ideal = np.zeros(held.shape[0])
    for q in range(held.shape[0]):
        above = 0.0
        for level in range(held.shape[1] - 1, -1, -1):
            weight = held[q, level]
            if weight == 0.0 or gains[level] == 0.0:
                continue
            # One step for each copy; a million steps at most, each then as wide as needed.
            steps = max(1.0, min(round(weight), 1e6))
            width = weight / steps
            for k in range(int(steps)):
                rank = above + (k + 0.5) * width + 0.5
                if rank < cutoff + 0.5:
                    ideal[q] += gains[level] * width / math.log2(1.0 + rank)
            above += weight
    return ideal
