r"""LambdaMART's objectives: pairwise logistic forces weighted by what a swap does to a metric.

For a pair whose row i is more relevant than row j the force is :math:`sig(f_j - f_i) |\Delta_{ij}|`, where
Delta is the change of a metric when the two swap places (Burges 2010). Every Delta here is a product of a
difference of values of the two labels and a difference of values of the two ranks: one rank value for
pairs that stand in the right order, another for inverted pairs. So the sums over pairs are those of
`toprank.pairs` with rank values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from toprank.objectives import _lambda_kernels as kernels
from toprank.objectives.base import FloatArray, GradientHessian, Objective, ScoredList
from toprank.objectives.binned import EXACT_ROWS
from toprank.objectives.lists import RankedLists, gains_of, ideal_gains, ranked_lists
from toprank.objectives.pairwise import sum_over_levels
from toprank.pairs import ranked_sums
from toprank.validation import check_choice, check_range

__all__ = [
    "LambdaAUC",
    "LambdaMAP",
    "LambdaMAUC",
    "LambdaMRR",
    "LambdaNDCG",
    "LambdaPrecision",
]


@dataclass(frozen=True)
class Swaps:
    """What a swap of two rows changes, at given scores: a difference of level values times one of rank values.

    Rank values are by place: `ordered` for pairs whose better row ranks higher, `inverted` for the others, and
    `tied` the expected difference between two rows of the place's tie group. `level_values` are by query and
    level; queries that leave nothing to rank hold zeros.
    """

    lists: RankedLists
    ordered: FloatArray
    inverted: FloatArray
    tied: FloatArray
    level_values: FloatArray

    def add_sums(self, target: int, source: int, out: FloatArray, kernel: str = "sigmoid") -> None:
        """Add the sums over the sources of w · |Delta| · kernel to `out` at the targets."""
        lists, better = self.lists, target > source
        gaps = np.abs(self.level_values[:, target] - self.level_values[:, source])
        weight, factor = lists.weight, float(gaps[0])
        if len(gaps) > 1:
            weight, factor = weight * lists.per_place(gaps), 1.0
        values = (self.inverted, self.ordered) if better else (self.ordered, self.inverted)
        factors = (-factor if better and kernel == "sigmoid" else factor, factor)
        ranked_sums(
            lists.ranked, lists.codes, target, source, weight, rank_values=values, kernel=kernel,
            rising=better, factors=factors, out=out,
        )  # fmt: skip

    def loss(self) -> float:
        """Return the sum over pairs of |Delta| · softplus(worse - better)."""
        lists = self.lists
        total = float(self._add_ties(np.zeros((2, lists.n_rows))).sum())
        for worse, better in combinations(range(len(lists.levels)), 2):
            sums = np.zeros((1, lists.n_rows))
            self.add_sums(better, worse, sums, kernel="softplus")
            total += float(sums[0] @ lists.weight)
        return total

    def gradient_hessian(self) -> FloatArray:
        """Return gradient and Hessian of that sum, by place, Delta held fixed."""
        both = sum_over_levels(self.add_sums, self.lists)
        if self.lists.weighted:
            both *= self.lists.weight
        self._add_ties(both)
        return both

    def _add_ties(self, both: FloatArray) -> FloatArray:
        """Add what tied rows do to each other to gradient and Hessian; return their loss by query."""
        ranked = self.lists.ranked
        return kernels.add_ties(
            ranked.scores, self.lists.weight, self.lists.codes, ranked.starts, self.level_values,
            self.tied, both[0], both[1],
        )  # fmt: skip

    def delta_matrix(self) -> FloatArray:
        """Return |Delta| between all places of the ranked list."""
        lists = self.lists
        place = np.arange(lists.n_rows)
        query = np.repeat(np.arange(len(lists.ranked.starts) - 1), np.diff(lists.ranked.starts))
        above, below = np.minimum.outer(place, place), np.maximum.outer(place, place)
        gap = np.where(
            lists.codes[above] > lists.codes[below],
            self.ordered[above] - self.ordered[below],
            self.inverted[above] - self.inverted[below],
        )
        tied = lists.ranked.scores[above] == lists.ranked.scores[below]
        gap = np.where(tied, self.tied[above], gap)
        own = self.level_values[query, lists.codes]
        other = self.level_values[query[:, None], lists.codes[None, :]]
        return np.where(query[:, None] == query[None, :], np.abs(own[:, None] - other) * gap, 0.0)


class LambdaObjective(Objective):
    """Base of the lambda objectives; a subclass names the values of ranks and of labels.

    `loss` is the sum over pairs of |Delta| · softplus(worse - better) at the Deltas of the moment, and the
    gradient that of the same sum with every Delta held fixed (Fréry et al. 2017, eq. 7).
    """

    smooth: ClassVar[bool] = False
    by_rank: ClassVar[bool] = True
    rank_value: ClassVar[int]

    def _level_values(self, lists: RankedLists) -> FloatArray:
        """Return the value of each level by query, scaled so that Delta is the change of the metric."""
        return _positive_only(np.ones(len(lists.totals)))

    def _cutoffs(self, lists: RankedLists) -> FloatArray:
        """Return the rank at which the metric stops looking, by query."""
        return np.full(len(lists.ranked.starts) - 1, np.inf)

    def _swaps(self, rows: ScoredList) -> list[Swaps]:
        """Return what swaps change, as one or several parts that add up."""
        lists = ranked_lists(rows, n_levels=None if self.graded else 2)
        ordered, tied = np.empty(lists.n_rows), np.zeros(lists.n_rows)
        one_value = self.rank_value in (kernels.AUC, kernels.DISCOUNT, kernels.TOP)
        inverted = ordered if one_value else np.empty(lists.n_rows)
        by_table = self.rank_value == kernels.DISCOUNT and not lists.weighted  # whole ranks
        kernels.rank_values(
            self.rank_value, lists.ranked.scores, lists.weight, lists.codes, lists.ranked.starts,
            self._cutoffs(lists), _discounts(lists.n_rows if by_table else 0),
            ordered, inverted, tied,
        )  # fmt: skip
        values = self._level_values(lists) * lists.query_share[:, None]
        return [Swaps(lists, ordered, inverted, tied, np.ascontiguousarray(values))]

    def _loss(self, rows: ScoredList) -> float:
        return sum(swaps.loss() for swaps in self._swaps(rows))

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        parts = self._swaps(rows)
        both = parts[0].gradient_hessian()
        for swaps in parts[1:]:
            both += swaps.gradient_hessian()
        return both[0], both[1], parts[0].lists.ranked.order

    def deltas(
        self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None
    ) -> FloatArray:
        """Return the matrix of |Delta| between all rows (0 between rows that form no pair).

        For looking at small lists: it has a cell for every pair of rows.
        """
        rows = ScoredList.of(y, scores, sample_weight, qid, graded=self.graded)
        present, where = rows.present()
        index = np.arange(len(rows.y)) if where is None else where
        matrix = np.zeros((len(rows.y), len(rows.y)))
        if len(present.y):
            parts = self._swaps(present)
            by_place = index[parts[0].lists.ranked.order]
            matrix[np.ix_(by_place, by_place)] = sum(swaps.delta_matrix() for swaps in parts)
        return matrix


@lru_cache(maxsize=1)
def _discounts(n_ranks: int) -> FloatArray:
    """Return 1 / log2(1 + rank) of the ranks 1, 2, ...; kept, as a booster asks for it every round."""
    return 1.0 / np.log2(np.arange(2.0, n_ranks + 2.0))


def _check_k(k: int | None) -> None:
    if k is not None and not k >= 1:
        raise ValueError(f"k must be at least 1 or None, not {k!r}")


def _positive_only(values: FloatArray) -> FloatArray:
    """Return level values of a binary metric: 0 for the negatives, the given ones for the positives."""
    return np.stack((np.zeros_like(values), values), axis=1)


@dataclass(frozen=True)
class LambdaAUC(LambdaObjective):
    r"""AUC: :math:`|\Delta_{ij}| = |rank_i - rank_j| / (P N)` (Welleck 2016, theorem 1).

    Inside a tie group of m rows its expectation over the orders is :math:`(m + 1) / 3 / (P N)`.

    Examples
    --------
    >>> LambdaAUC().deltas([1, 0, 0], [3.0, 2.0, 1.0])[0].tolist()
    [0.0, 0.5, 1.0]
    """

    name: ClassVar[str] = "lambda_auc"
    summary: ClassVar[str] = "LambdaMART for the area under the ROC curve"
    rank_value: ClassVar[int] = kernels.AUC
    by_rank: ClassVar[bool] = False

    def _level_values(self, lists: RankedLists) -> FloatArray:
        return _positive_only(1.0 / np.maximum(lists.totals.prod(axis=1), 1e-300))


@dataclass(frozen=True)
class LambdaMAP(LambdaObjective):
    r"""Average precision. With C(k) the positives in the first k rows and S(k) the sum of 1/k' over
    positive ranks :math:`k' \le k`: for ranks a < b, a negative over a positive gives
    :math:`|\Delta| = (T(a) - T(b)) / P` with :math:`T(k) = (C(k) + 1) / k - S(k)`, a positive over a
    negative :math:`(U(a) - U(b)) / P` with :math:`U(k) = C(k) / k - S(k)`.

    Inside a tie group the positives are taken to be spread evenly over its ranks.

    Examples
    --------
    >>> LambdaMAP().deltas([0, 1, 0], [3.0, 2.0, 1.0])[1].round(6).tolist()
    [0.5, 0.0, 0.166667]
    """

    name: ClassVar[str] = "lambda_map"
    summary: ClassVar[str] = "LambdaMART for average precision"
    rank_value: ClassVar[int] = kernels.AVERAGE_PRECISION

    def _level_values(self, lists: RankedLists) -> FloatArray:
        return _positive_only(1.0 / np.maximum(lists.totals[:, 1], 1e-300))


@dataclass(frozen=True)
class LambdaMRR(LambdaObjective):
    r"""Reciprocal rank of the first positive. With :math:`r_1, r_2` the ranks of the first two
    positives: a negative at rank a over any positive gives :math:`\max(1/a - 1/r_1, 0)`, the first
    positive over a negative at rank b gives :math:`1/r_1 - \max(1/b, 1/r_2)`, all else nothing.

    In tie groups :math:`r_1` and :math:`r_2` are their expected ranks.

    Examples
    --------
    >>> LambdaMRR().deltas([0, 1, 0], [3.0, 2.0, 1.0])[1].round(6).tolist()
    [0.5, 0.0, 0.166667]
    """

    name: ClassVar[str] = "lambda_mrr"
    summary: ClassVar[str] = "LambdaMART for the reciprocal rank of the first positive"
    rank_value: ClassVar[int] = kernels.RECIPROCAL


@dataclass(frozen=True)
class LambdaPrecision(LambdaObjective):
    r"""Precision among the first k rows: a swap across rank k changes it by 1/k.

    Parameters
    ----------
    k : int, optional
        Length of the list; by default the number of positives of each query.

    Examples
    --------
    >>> LambdaPrecision(k=2).deltas([0, 0, 1], [3.0, 2.0, 1.0])[2].tolist()
    [0.5, 0.5, 0.0]
    """

    name: ClassVar[str] = "lambda_precision"
    summary: ClassVar[str] = "LambdaMART for precision among the first k rows"
    rank_value: ClassVar[int] = kernels.TOP

    k: int | None = None

    def __post_init__(self) -> None:
        _check_k(self.k)

    def binnable(self, n_positives: float, weighted: bool) -> bool:
        """Whether rank k is among those that are told apart."""
        return (self.k or n_positives) <= EXACT_ROWS // 2 and not weighted

    def _cutoffs(self, lists: RankedLists) -> FloatArray:
        if self.k is not None:
            return np.full(len(lists.totals), float(self.k))
        return np.maximum(lists.totals[:, 1], 1e-300)


@dataclass(frozen=True)
class LambdaNDCG(LambdaObjective):
    r"""NDCG: :math:`|\Delta| = |2^{rel_i} - 2^{rel_j}| \cdot |1/\log_2(1 + rank_i) -
    1/\log_2(1 + rank_j)| / IDCG`.

    Parameters
    ----------
    k : int, optional
        Ranks beyond k count nothing; by default all count.

    Examples
    --------
    >>> LambdaNDCG().deltas([0, 1], [2.0, 1.0])[0].round(6).tolist()
    [0.0, 0.36907]
    """

    name: ClassVar[str] = "lambda_ndcg"
    summary: ClassVar[str] = "LambdaMART for NDCG, for graded relevance"
    graded: ClassVar[bool] = True
    rank_value: ClassVar[int] = kernels.DISCOUNT

    k: int | None = None

    def __post_init__(self) -> None:
        _check_k(self.k)

    def _cutoffs(self, lists: RankedLists) -> FloatArray:
        return np.full(len(lists.totals), np.inf if self.k is None else float(self.k))

    def _level_values(self, lists: RankedLists) -> FloatArray:
        gains = gains_of(lists.levels)
        ideal = ideal_gains(lists.totals, gains, np.inf if self.k is None else float(self.k))
        return gains / np.maximum(ideal, 1e-300)[:, None] * (ideal > 0)[:, None]


@dataclass(frozen=True)
class LambdaMAUC(LambdaObjective):
    r"""AUC of several relevance levels.

    Parameters
    ----------
    kind : {"ordered", "one_vs_rest"}
        "ordered": the AUC of "relevance at least c" against lower relevance, averaged over c = 1, 2, ... with
        the share p(c) of label c in the data. For labels lo < hi,
        :math:`|\Delta| = |rank_i - rank_j| \sum_{c=lo+1}^{hi} p(c) / (m_c n_c)` over
        :math:`\sum_{c \ge 1} p(c)`, with :math:`m_c` and :math:`n_c` the rows of the query at or above c
        and below it. A perfect order gives 1.

        "one_vs_rest": each label against all others, weighted by its share (Welleck 2016, read
        literally): :math:`|\Delta| = |rank_i - rank_j| / n \cdot |1/(n - n_b) -
        1/(n - n_a)|`. With one score for each row this does not reward the right order: with four
        equally frequent labels the perfect and the reversed order both give 1/2, and Delta is 0.
    fpr : tuple (a, b), default=(0, 1)
        Range of false positive rates of each of the AUCs; only for "ordered". A swap then counts for
        what it changes inside the range: partial AUC for several levels, exact with fractional ends.

    Examples
    --------
    >>> LambdaMAUC().deltas([1, 0, 0], [3.0, 2.0, 1.0])[0].tolist()
    [0.0, 0.5, 1.0]
    """

    name: ClassVar[str] = "lambda_mauc"
    summary: ClassVar[str] = "LambdaMART for the (partial) AUC of several relevance levels"
    graded: ClassVar[bool] = True
    rank_value: ClassVar[int] = kernels.AUC
    by_rank: ClassVar[bool] = False

    kind: str = "ordered"
    fpr: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", ("ordered", "one_vs_rest"))
        if check_range(self.fpr) != (0.0, 1.0) and self.kind == "one_vs_rest":
            raise ValueError(
                "fpr goes with kind='ordered': with 'one_vs_rest' a swap may win for one class what it "
                "loses for the other, in proportions that change from pair to pair inside a range"
            )

    def binnable(self, n_positives: float, weighted: bool) -> bool:
        """Whether the whole list counts: the edge of a range cannot be binned."""
        return tuple(self.fpr) == (0, 1)

    def _level_values(self, lists: RankedLists) -> FloatArray:
        if self.kind == "ordered":
            return np.cumsum(self._steps(lists), axis=1)
        totals = lists.totals
        sizes = totals.sum(axis=1, keepdims=True)
        others = np.where(totals > 0, sizes - totals, 0.0)
        return np.where(others > 0, 1.0 / np.maximum(sizes * others, 1e-300), 0.0)

    @staticmethod
    def _steps(lists: RankedLists) -> FloatArray:
        """Return what one pair counts in the AUC of "at least this level", by query and level."""
        totals = lists.totals
        shares = totals.sum(axis=0) / totals.sum()
        above = np.cumsum(totals[:, ::-1], axis=1)[:, ::-1]  # m_c, the rows at or above level c
        pairs = above * (totals.sum(axis=1, keepdims=True) - above)
        relevant = (lists.levels >= 1) & (shares > 0)
        steps = np.where((pairs > 0) & relevant, shares / np.maximum(pairs, 1e-300), 0.0)
        return steps / max(float(shares[relevant].sum()), 1e-300)

    def _swaps(self, rows: ScoredList) -> list[Swaps]:
        if tuple(self.fpr) == (0, 1):
            return super()._swaps(rows)
        lists = ranked_lists(rows)
        steps = self._steps(lists) * lists.query_share[:, None] / (self.fpr[1] - self.fpr[0])
        return [
            self._threshold_swaps(lists, level, steps[:, level])
            for level in range(len(lists.levels))
            if steps[:, level].any()
        ] or super()._swaps(rows)

    def _threshold_swaps(self, lists: RankedLists, level: int, steps: FloatArray) -> Swaps:
        """Return the part of one AUC: rows at or above a level against those below."""
        codes = (lists.codes >= level).astype(np.uint8)
        two = RankedLists(lists.ranked, codes, np.arange(2.0), lists.weight, lists.weighted)
        ordered, inverted, tied = np.zeros((3, lists.n_rows))
        negatives, (low, high) = two.totals[:, 0], self.fpr
        kernels.partial_auc_values(
            two.ranked.scores, two.weight, codes, two.ranked.starts,
            low * negatives if low > 0 else np.full_like(negatives, -np.inf),
            high * negatives if high < 1 else np.full_like(negatives, np.inf),
            ordered, inverted, tied,
        )  # fmt: skip
        return Swaps(two, ordered, inverted, tied, _positive_only(steps))
