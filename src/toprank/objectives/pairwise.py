"""Logistic loss over pairs of rows of different relevance (RankNet)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import ClassVar

import numpy as np

from toprank.objectives._base import FloatArray, Rows
from toprank.objectives._lists import ListObjective, RankedLists, ranked_lists
from toprank.pair_sums import ranked_sums
from toprank.parallel import run_tasks

__all__ = ["PairwiseLogistic", "add_up_levels"]


@dataclass(frozen=True)
class PairwiseLogistic(ListObjective):
    r"""Mean over pairs of :math:`\log(1 + e^{-(f_i - f_j)})`, row i being more relevant than row j.

    RankNet (Burges et al. 2005), in the time of a sort. Each query is the mean over its own pairs.

    Examples
    --------
    >>> gradient, _ = PairwiseLogistic().gradient_hessian([1, 0, 0], [0.0, 0.0, 0.0])
    >>> gradient.round(6).tolist()
    [-0.5, 0.25, 0.25]
    """

    name: ClassVar[str] = "pairwise_logistic"
    summary: ClassVar[str] = "logistic loss over pairs (RankNet); every pair counts the same"
    graded: ClassVar[bool] = True

    def _loss(self, rows: Rows) -> float:
        lists = ranked_lists(rows)
        weight = lists.weight * lists.per_place(_pair_share(lists))
        total = 0.0
        for worse, better in combinations(range(len(lists.levels)), 2):
            (sums,) = ranked_sums(
                lists.ranked, lists.codes, better, worse, lists.weight, kernel="softplus"
            )
            total += float(sums @ weight)
        return total

    def _slopes_by_place(self, rows: Rows) -> tuple[RankedLists, FloatArray, FloatArray]:
        lists = ranked_lists(rows)

        def add(target: int, source: int, out: FloatArray) -> None:
            better = target > source
            ranked_sums(
                lists.ranked, lists.codes, target, source, lists.weight, rising=better,
                factors=(-1.0 if better else 1.0, 1.0), out=out,
            )  # fmt: skip

        both = add_up_levels(add, lists)
        both *= lists.weight * lists.per_place(_pair_share(lists))
        return lists, both[0], both[1]


def add_up_levels(add: Callable[[int, int, FloatArray], None], lists: RankedLists) -> FloatArray:
    """Let `add(target, source, out)` add slopes and curvatures for every two levels.

    One task for each level of targets, which alone writes at their places.
    """
    both = np.zeros((2, lists.n_rows))

    def task(target: int) -> None:
        for source in range(len(lists.levels)):
            if source != target:
                add(target, source, both)

    run_tasks([partial(task, t) for t in range(len(lists.levels))], lists.n_rows)
    return both


def _pair_share(lists: RankedLists) -> FloatArray:
    """What one pair of each query counts in the mean over queries of the mean over pairs."""
    totals = lists.totals
    pairs = (totals * (np.cumsum(totals, axis=1) - totals)).sum(axis=1)
    return np.where(lists.rankable, lists.query_share / np.maximum(pairs, 1e-300), 0.0)
