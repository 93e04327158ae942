"""LambdaMART's objectives: pairwise logistic forces weighed by what a swap does to a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from toprank.objectives import _lambda_kernels as kernels
from toprank.objectives._base import FloatArray, Rows
from toprank.objectives._gains import gains_of, ideal_gains
from toprank.objectives._lambda import LambdaObjective
from toprank.objectives._lists import RankedLists, ranked_lists
from toprank.objectives._swaps import Swaps

__all__ = [
    "LambdaAUC",
    "LambdaMAP",
    "LambdaMAUC",
    "LambdaMRR",
    "LambdaNDCG",
    "LambdaPrecision",
]


def _positive_only(values: FloatArray) -> FloatArray:
    """Potentials of a binary metric: 0 for the negatives, the given values for the positives."""
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
    worth: ClassVar[int] = kernels.AUC

    def _potentials(self, lists: RankedLists) -> FloatArray:
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
    worth: ClassVar[int] = kernels.AVERAGE_PRECISION
    by_rank: ClassVar[bool] = True

    def _potentials(self, lists: RankedLists) -> FloatArray:
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
    worth: ClassVar[int] = kernels.RECIPROCAL
    by_rank: ClassVar[bool] = True

    def _potentials(self, lists: RankedLists) -> FloatArray:
        return _positive_only(np.ones(len(lists.totals)))


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
    worth: ClassVar[int] = kernels.TOP
    by_rank: ClassVar[bool] = True

    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None and not self.k >= 1:
            raise ValueError(f"k must be at least 1 or None, not {self.k!r}")

    def _cutoffs(self, lists: RankedLists) -> FloatArray:
        if self.k is not None:
            return np.full(len(lists.totals), float(self.k))
        return np.maximum(lists.totals[:, 1], 1e-300)

    def _potentials(self, lists: RankedLists) -> FloatArray:
        return _positive_only(np.ones(len(lists.totals)))


@dataclass(frozen=True)
class LambdaNDCG(LambdaObjective):
    r"""NDCG: :math:`|\Delta| = |2^{rel_i} - 2^{rel_j}| \cdot |1/\log_2(1 + rank_i) -
    1/\log_2(1 + rank_j)| / IDCG`.

    Parameters
    ----------
    k : int, optional
        Ranks beyond k are worth nothing; by default all count.

    Examples
    --------
    >>> LambdaNDCG().deltas([0, 1], [2.0, 1.0])[0].round(6).tolist()
    [0.0, 0.36907]
    """

    name: ClassVar[str] = "lambda_ndcg"
    summary: ClassVar[str] = "LambdaMART for NDCG, for graded relevance"
    graded: ClassVar[bool] = True
    worth: ClassVar[int] = kernels.DISCOUNT
    by_rank: ClassVar[bool] = True

    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None and not self.k >= 1:
            raise ValueError(f"k must be at least 1 or None, not {self.k!r}")

    def _cutoffs(self, lists: RankedLists) -> FloatArray:
        return np.full(len(lists.totals), np.inf if self.k is None else float(self.k))

    def _potentials(self, lists: RankedLists) -> FloatArray:
        gains = gains_of(lists.levels)
        ideal = ideal_gains(lists.totals, gains, np.inf if self.k is None else float(self.k))
        return gains / np.maximum(ideal, 1e-300)[:, None] * (ideal > 0)[:, None]


@dataclass(frozen=True)
class LambdaMAUC(LambdaObjective):
    r"""AUC of several relevance levels.

    Parameters
    ----------
    kind : {"ordered", "one_vs_rest"}
        "ordered": the AUC of "relevance at least c" against the rest, averaged over c = 1, 2, ... with
        the share p(c) of label c in the data. For labels lo < hi,
        :math:`|\Delta| = |rank_i - rank_j| \sum_{c=lo+1}^{hi} p(c) / (m_c n_c)` over
        :math:`\sum_{c \ge 1} p(c)`, with :math:`m_c` and :math:`n_c` the rows of the query at or above c
        and below it. A perfect order gives 1.

        "one_vs_rest": each label against all others, weighed by its share (Welleck 2016, read
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
    worth: ClassVar[int] = kernels.AUC

    kind: str = "ordered"
    fpr: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.kind not in ("ordered", "one_vs_rest"):
            raise ValueError(f"kind must be 'ordered' or 'one_vs_rest', not {self.kind!r}")
        low, high = self.fpr
        if not 0 <= low < high <= 1:
            raise ValueError(f"fpr must be a range (a, b) with 0 <= a < b <= 1, not {self.fpr!r}")
        if self.kind == "one_vs_rest" and (low, high) != (0, 1):
            raise ValueError(
                "fpr goes with kind='ordered': with 'one_vs_rest' a swap may win for one class what it "
                "loses for the other, in proportions that change from pair to pair inside a range"
            )

    def _potentials(self, lists: RankedLists) -> FloatArray:
        if self.kind == "ordered":
            return np.cumsum(self._steps(lists), axis=1)
        totals = lists.totals
        sizes = totals.sum(axis=1, keepdims=True)
        rest = np.where(totals > 0, sizes - totals, 0.0)
        return np.where(rest > 0, 1.0 / np.maximum(sizes * rest, 1e-300), 0.0)

    @staticmethod
    def _steps(lists: RankedLists) -> FloatArray:
        """What one pair counts in the AUC of "at least this level", by query and level."""
        totals = lists.totals
        shares = totals.sum(axis=0) / totals.sum()
        above = np.cumsum(totals[:, ::-1], axis=1)[:, ::-1]  # m_c, the rows at or above level c
        pairs = above * (totals.sum(axis=1, keepdims=True) - above)
        relevant = (lists.levels >= 1) & (shares > 0)
        steps = np.where((pairs > 0) & relevant, shares / np.maximum(pairs, 1e-300), 0.0)
        return steps / max(float(shares[relevant].sum()), 1e-300)

    def _swaps(self, rows: Rows) -> list[Swaps]:
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
        """The part of one AUC: rows at or above a level against those below."""
        codes = (lists.codes >= level).astype(np.uint8)
        two = RankedLists(lists.ranked, codes, np.arange(2.0), lists.weight, lists.weighted)
        good, bad = np.empty(lists.n_rows), np.empty(lists.n_rows)
        inside, negatives, (low, high) = np.zeros(lists.n_rows), two.totals[:, 0], self.fpr
        kernels.partial_worths(
            two.ranked.scores, two.weight, codes, two.ranked.starts,
            low * negatives if low > 0 else np.full_like(negatives, -np.inf),
            high * negatives if high < 1 else np.full_like(negatives, np.inf),
            good, bad, inside,
        )  # fmt: skip
        return Swaps(two, good, bad, inside, _positive_only(steps))
