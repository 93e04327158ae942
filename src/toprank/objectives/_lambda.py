"""The engine of the lambda objectives (LambdaMART).

For a pair whose row i is more relevant than row j the force is sig(f_j - f_i)·|Delta_ij|, where Delta
is the change of a metric when the two swap places. Every Delta here is a product of a difference
of potentials of the two labels and a difference of worths of the two ranks: one worth when the
better row stands higher (`good`), another when it stands lower (`bad`). So the sums over pairs are
the sums of `toprank.pair_sums` with two factors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from toprank.objectives import _lambda_kernels as kernels
from toprank.objectives._base import FloatArray, Rows, checked_rows, present_rows
from toprank.objectives._lists import ListObjective, RankedLists, ranked_lists
from toprank.objectives._swaps import FrozenLoss, Swaps
from toprank.objectives.pairwise import add_up_levels

__all__ = ["LambdaObjective"]


class LambdaObjective(ListObjective):
    """Base of the lambda objectives; a subclass names the worth of ranks and of labels."""

    worth: ClassVar[int]

    @abstractmethod
    def _potentials(self, lists: RankedLists) -> FloatArray:
        """Worth of each level by query, scaled so that Delta is the change of the metric."""

    def _cutoffs(self, lists: RankedLists) -> FloatArray:
        """Rank at which the metric stops looking, by query."""
        return np.full(len(lists.ranked.starts) - 1, np.inf)

    def _swaps(self, rows: Rows) -> list[Swaps]:
        """What swaps change, as one or several parts that add up."""
        lists = ranked_lists(rows, n_levels=None if self.graded else 2)
        good, inside = np.empty(lists.n_rows), np.zeros(lists.n_rows)
        one_worth = self.worth in (kernels.AUC, kernels.DISCOUNT, kernels.TOP)
        bad = good if one_worth else np.empty(lists.n_rows)
        by_table = self.worth == kernels.DISCOUNT and not lists.weighted  # ranks are whole numbers
        kernels.rank_worths(
            self.worth, lists.ranked.scores, lists.weight, lists.codes, lists.ranked.starts,
            self._cutoffs(lists), _discounts(lists.n_rows if by_table else 0), good, bad, inside,
        )  # fmt: skip
        potentials = self._potentials(lists) * lists.query_share[:, None]
        return [Swaps(lists, good, bad, inside, np.ascontiguousarray(potentials))]

    def _loss(self, rows: Rows) -> float:
        return sum(_loss_of(swaps) for swaps in self._swaps(rows))

    def _slopes_by_place(self, rows: Rows) -> tuple[RankedLists, FloatArray, FloatArray]:
        parts = self._swaps(rows)
        both = _slopes_of(parts[0])
        for swaps in parts[1:]:
            both += _slopes_of(swaps)
        return parts[0].lists, both[0], both[1]

    def deltas(
        self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None
    ) -> FloatArray:
        """Return the matrix of |Delta| between all rows (0 between rows that form no pair).

        For looking at small lists: it has a cell for every pair of rows.
        """
        rows = checked_rows(y, scores, sample_weight, qid, graded=self.graded)
        present, where = present_rows(rows)
        index = np.arange(len(rows.y)) if where is None else where
        matrix = np.zeros((len(rows.y), len(rows.y)))
        if len(present.y):
            parts = self._swaps(present)
            rows_by_place = index[parts[0].lists.ranked.order]
            matrix[np.ix_(rows_by_place, rows_by_place)] = sum(s.delta_matrix() for s in parts)
        return matrix

    def freeze(
        self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None
    ) -> Callable[[Any], float]:
        """Return the loss as a function of scores with every Delta kept as it is at `scores`.

        Its gradient at `scores` is that of `gradient_hessian`. A call costs some twenty times a
        gradient on long lists, where the order that gave the Deltas and the order of the moved
        scores have to be followed together.
        """
        rows = checked_rows(y, scores, sample_weight, qid, graded=self.graded)
        present, where = present_rows(rows)
        if len(present.y) == 0:
            return lambda moved: 0.0
        parts = self._swaps(present)
        places = parts[0].lists.ranked.order
        order = places if where is None else where[places]
        losses = [FrozenLoss(swaps) for swaps in parts]

        def loss(moved: Any) -> float:
            by_place = np.asarray(moved, dtype=np.float64)[order]
            return sum(part(by_place) for part in losses)

        return loss


@lru_cache(maxsize=1)
def _discounts(n_ranks: int) -> FloatArray:
    """1 / log2(1 + rank) of the ranks 1, 2, ...; kept, since a booster asks for the same every round."""
    return 1.0 / np.log2(np.arange(2.0, n_ranks + 2.0))


def _loss_of(swaps: Swaps) -> float:
    """Sum over pairs of |Delta| · softplus(worse - better)."""
    lists = swaps.lists
    total = float(_tie_terms(swaps, np.zeros((2, lists.n_rows))).sum())
    for worse, better in combinations(range(len(lists.levels)), 2):
        sums = np.zeros((1, lists.n_rows))
        swaps.add_sums(better, worse, sums, kernel="softplus")
        total += float(sums[0] @ lists.weight)
    return total


def _slopes_of(swaps: Swaps) -> FloatArray:
    """Gradient and Hessian of that sum, by place."""
    both = add_up_levels(swaps.add_sums, swaps.lists)
    if swaps.lists.weighted:
        both *= swaps.lists.weight
    _tie_terms(swaps, both)
    return both


def _tie_terms(swaps: Swaps, both: FloatArray) -> FloatArray:
    ranked = swaps.lists.ranked
    return kernels.tie_terms(
        ranked.scores, swaps.lists.weight, swaps.lists.codes, ranked.starts, swaps.potentials,
        swaps.inside, both[0], both[1],
    )  # fmt: skip
