"""Ranked lists of relevance levels, and the gains of graded relevance: what list objectives work on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit

from toprank.objectives.base import ScoredList
from toprank.ranking import RankedQueries

__all__ = ["RankedLists", "gains_of", "ideal_gains", "ranked_lists"]

_MOST_LEVELS = 127
_HIGHEST_GRADE = 62


@dataclass(frozen=True)
class RankedLists:
    """All queries, ranked: for each place its code (an index into the ascending `levels`) and its weight.

    `weighted` is False where all weights are 1.
    """

    ranked: RankedQueries
    codes: np.ndarray
    levels: np.ndarray
    weight: np.ndarray
    weighted: bool

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    @cached_property
    def totals(self) -> np.ndarray:
        """Weight of each level (columns) in each query (rows)."""
        shape = self.ranked.n_queries, len(self.levels)
        cells: np.ndarray = self.codes
        if shape[0] > 1:
            cells = self.per_place(np.arange(shape[0]) * shape[1]) + self.codes
        weight = self.weight if self.weighted else None
        return np.bincount(cells, weight, shape[0] * shape[1]).reshape(shape).astype(np.float64)

    @cached_property
    def rankable(self) -> np.ndarray:
        """Which queries hold rows of at least two levels."""
        return np.count_nonzero(self.totals, axis=1) > 1

    @property
    def query_share(self) -> np.ndarray:
        """Each query's part in the mean over the rankable queries."""
        return self.rankable / max(1, np.count_nonzero(self.rankable))

    def per_place(self, query_values: np.ndarray, places: np.ndarray | None = None) -> np.ndarray:
        """Repeat one value for each query over its places, or over those given."""
        if len(query_values) == 1:
            return np.full(self.n_rows if places is None else len(places), query_values[0])
        values = np.repeat(query_values, np.diff(self.ranked.starts))
        return values if places is None else values[places]

    def only(self, places: np.ndarray) -> RankedLists:
        """Some of the rows on their own."""
        starts = np.searchsorted(places, self.ranked.starts)
        ranked = RankedQueries(
            self.ranked.queries, self.ranked.order[places], starts, self.ranked.scores[places]
        )
        return RankedLists(
            ranked, self.codes[places], self.levels, self.weight[places], self.weighted
        )


def ranked_lists(
    rows: ScoredList, *, n_levels: int | None = None, scale: float = 1.0
) -> RankedLists:
    """Rank `rows` (scores times `scale`) and number their levels.

    With `n_levels` the labels are taken to be 0, ..., `n_levels` - 1 whether they occur or not.
    """
    scores = rows.scores if scale == 1.0 else rows.scores * scale
    ranked = RankedQueries.of(scores, rows.qid)
    if n_levels is not None:
        codes, levels = rows.y.astype(np.uint8), np.arange(n_levels, dtype=np.float64)
    else:
        codes, levels = _level_codes(rows.y)
    weight = np.ones(len(codes)) if rows.weight is None else rows.weight[ranked.order]
    return RankedLists(ranked, codes[ranked.order], levels, weight, rows.weight is not None)


def _level_codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and distinct values of whole labels; by counting unless a label is large."""
    if labels.max() > 255:
        levels, codes = np.unique(labels, return_inverse=True)
    else:
        codes = labels.astype(np.uint8)
        present = np.flatnonzero(np.bincount(codes))
        levels = present.astype(np.float64)
        if len(present) <= present[-1]:  # some labels between do not occur
            codes = np.searchsorted(present, np.arange(256))[codes]
    if len(levels) > _MOST_LEVELS:
        raise ValueError(
            f"y has {len(levels)} distinct relevance grades and at most {_MOST_LEVELS} can be "
            "ranked; put neighbouring grades together"
        )
    return codes.astype(np.uint8, copy=False), levels


# -- gains of graded relevance ----------------------------------------------------------------------


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
    """Return the IDCG by query from the weight held at each of the ascending gains."""
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
