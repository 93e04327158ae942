"""What swaps of two rows change, and the loss with those changes held fixed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from toprank.objectives import _lambda_kernels as kernels
from toprank.objectives._base import FloatArray
from toprank.objectives._lists import RankedLists
from toprank.pair_sums import ranked_sums
from toprank.ranking import RankedQueries, descending_order

__all__ = ["FrozenLoss", "Swaps"]

_PAIRS_PER_ROW = 32
"""Stretches of a list with no more pairs for each row than this are done pair by pair."""


@dataclass(frozen=True)
class Swaps:
    """What a swap of two rows changes, at given scores.

    Attributes
    ----------
    lists : RankedLists
    good, bad : ndarray
        Worth of each place of the ranked list, when the better row stands higher (lower).
    inside : ndarray
        Expected difference of worth between two rows of the tie group at each place.
    potentials : ndarray of shape (n_queries, n_levels)
        Worth of each level; queries that leave nothing to rank hold zeros.
    """

    lists: RankedLists
    good: FloatArray
    bad: FloatArray
    inside: FloatArray
    potentials: FloatArray

    def add_sums(self, target: int, source: int, out: FloatArray, kernel: str = "sigmoid") -> None:
        """Add the sums over the sources of w · |Delta| · kernel to `out` at the targets."""
        lists, better = self.lists, target > source
        gaps = np.abs(self.potentials[:, target] - self.potentials[:, source])
        weight, factor = lists.weight, float(gaps[0])
        if len(gaps) > 1:
            weight, factor = weight * lists.per_place(gaps), 1.0
        ranked_sums(
            lists.ranked,
            lists.codes,
            target,
            source,
            weight,
            worths=(self.bad, self.good) if better else (self.good, self.bad),
            kernel=kernel,
            rising=better,
            factors=(-factor if better and kernel == "sigmoid" else factor, factor),
            out=out,
        )

    def delta_matrix(self) -> FloatArray:
        """|Delta| between all places of the ranked list."""
        lists = self.lists
        place = np.arange(lists.n_rows)
        query = np.repeat(np.arange(len(lists.ranked.starts) - 1), np.diff(lists.ranked.starts))
        above, below = np.minimum.outer(place, place), np.maximum.outer(place, place)
        better_above = lists.codes[above] > lists.codes[below]
        worth = np.where(
            better_above, self.good[above] - self.good[below], self.bad[above] - self.bad[below]
        )
        tied = lists.ranked.scores[above] == lists.ranked.scores[below]
        worth = np.where(tied, self.inside[above], worth)
        levels = self.potentials[query, lists.codes]
        own = self.potentials[query[:, None], lists.codes[None, :]]
        return np.where(
            query[:, None] == query[None, :], np.abs(levels[:, None] - own) * worth, 0.0
        )


class FrozenLoss:
    """Sum over pairs of |Delta| · softplus(worse - better), Delta fixed, the scores free.

    Delta belongs to one order and the scores to another. The list is halved again and again in the
    order of Delta: between a higher and a lower half the difference of worths is always the same way
    round, whatever the scores, so the pairs across are sums of `toprank.pair_sums`; the pairs within
    small enough parts are done one by one.
    """

    def __init__(self, swaps: Swaps) -> None:
        self.swaps = swaps
        ranked = swaps.lists.ranked
        new_group = np.diff(ranked.scores, prepend=np.inf) != 0
        new_group[ranked.starts[:-1][np.diff(ranked.starts) > 0]] = True
        self.groups = np.cumsum(new_group)

    def __call__(self, scores: FloatArray) -> float:
        """Return the loss of scores given by place."""
        swaps, starts = self.swaps, self.swaps.lists.ranked.starts
        total = 0.0
        small: list[tuple[int, int, int]] = []  # stretches to be done pair by pair
        for query in range(len(starts) - 1):
            stack: list[tuple[int, int, np.ndarray | None]]
            stack = [(int(starts[query]), int(starts[query + 1]), None)]
            while stack:
                lo, hi, order = stack.pop()
                if self._is_small(lo, hi):
                    small.append((lo, hi, query))
                    continue
                if order is None:
                    order = lo + descending_order(scores[lo:hi])
                middle = self._middle(lo, hi)
                if middle is None:
                    total += self._within(order, query, scores)
                    continue
                total += self._across(order, middle, query, scores)
                above = order < middle
                stack += [(lo, middle, order[above]), (middle, hi, order[~above])]
        firsts, lasts, queries = np.array(small, dtype=np.int64).reshape(-1, 3).T.copy()
        lists = swaps.lists
        return total + kernels.frozen_pairs(
            firsts, lasts, queries, scores, lists.weight, lists.codes, self.groups,
            swaps.potentials, swaps.good, swaps.bad, swaps.inside,
        )  # fmt: skip

    def _is_small(self, lo: int, hi: int) -> bool:
        counts = np.bincount(self.swaps.lists.codes[lo:hi], minlength=2).astype(np.float64)
        return bool(counts @ (np.cumsum(counts) - counts) <= _PAIRS_PER_ROW * (hi - lo))

    def _middle(self, lo: int, hi: int) -> int | None:
        """Where to halve a stretch, between tie groups; None if it is a single one."""
        group = self.groups[(lo + hi) // 2]
        first, last = np.searchsorted(self.groups[lo:hi], [group, group + 1]) + lo
        middle = int(first if first > lo else last)
        return middle if middle < hi else None

    def _within(self, places: np.ndarray, query: int, scores: FloatArray) -> float:
        """Pairs of one tie group, all with the same difference of worth."""
        lists, ranked = self.swaps.lists, self._ranked(places, scores)
        codes, weight = lists.codes[places], lists.weight[places]
        total = 0.0
        for better, worse, gap in self._level_pairs(query):
            (sums,) = ranked_sums(ranked, codes, better, worse, weight, kernel="softplus")
            total += gap * float(sums @ weight)
        return total * float(self.swaps.inside[places[0]])

    def _across(self, places: np.ndarray, middle: int, query: int, scores: FloatArray) -> float:
        """Pairs with one row above `middle` and one below it; `places` by descending score."""
        lists, n_levels = self.swaps.lists, len(self.swaps.lists.levels)
        codes = lists.codes[places] + np.where(places < middle, 0, n_levels).astype(np.uint8)
        held = np.bincount(codes, minlength=2 * n_levels)
        ranked, weight = self._ranked(places, scores), lists.weight[places]
        groups = _tie_groups(ranked.scores)
        total = 0.0
        for better, worse, gap in self._level_pairs(query):
            for worth, target, source in (
                (self.swaps.good, better, worse + n_levels),
                (-self.swaps.bad, better + n_levels, worse),
            ):
                if held[target] == 0 or held[source] == 0:
                    continue
                # Worth of target minus worth of source wherever the source's score lies.
                values = worth[places]
                (sums,) = ranked_sums(
                    ranked, codes, target, source, weight, worths=(-values, values),
                    kernel="softplus",
                )  # fmt: skip
                total += gap * float(sums @ weight)
                if groups is not None:
                    kinds = codes == target, codes == source
                    total += gap * _tied_pairs(groups, *kinds, weight, values)
        return total

    @staticmethod
    def _ranked(places: np.ndarray, scores: FloatArray) -> RankedQueries:
        starts = np.array([0, len(places)], dtype=np.int64)
        return RankedQueries(np.zeros(1), places, starts, scores[places])

    def _level_pairs(self, query: int) -> Iterator[tuple[int, int, float]]:
        """Every two levels of a query, the better first, with their difference of potentials."""
        potentials = self.swaps.potentials[query]
        held = np.flatnonzero(self.swaps.lists.totals[query])
        for worse, better in combinations(held.tolist(), 2):
            yield better, worse, float(abs(potentials[better] - potentials[worse]))


def _tie_groups(scores: FloatArray) -> np.ndarray | None:
    """Number the groups of equal scores of a descending list; None if there are no ties."""
    different = scores[1:] != scores[:-1]
    if different.all():
        return None
    return np.concatenate(([0], np.cumsum(different)))


def _tied_pairs(
    groups: np.ndarray,
    is_target: np.ndarray,
    is_source: np.ndarray,
    weight: FloatArray,
    values: FloatArray,
) -> float:
    """Pairs with equal scores: worth of target minus worth of source, each times log 2."""

    def held(own: np.ndarray, factor: FloatArray) -> FloatArray:
        return np.bincount(groups, np.where(own, weight * factor, 0.0))

    ones = np.ones(len(weight))
    total = held(is_target, values) @ held(is_source, ones)
    return float(np.log(2.0) * (total - held(is_target, ones) @ held(is_source, values)))
