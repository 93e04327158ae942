"""Losses of single rows and of pairs: logistic, pairwise logistic (RankNet), partial AUC."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import ClassVar

import numpy as np
from numba import njit

from toprank.objectives.base import FloatArray, GradientHessian, Objective, ScoredList
from toprank.objectives.lists import RankedLists, ranked_lists
from toprank.pairs import range_weights, ranked_hinge_sums, ranked_sums
from toprank.pairs._kernels import LANES
from toprank.parallel import run_tasks
from toprank.validation import check_choice, check_range

__all__ = ["Logistic", "PairwiseLogistic", "PartialAUC", "sum_over_levels"]

_FAR = 700.0
_LEAST_NEGATIVES = 300  # in the range that trees learn from
_ROWS_TO_SELECT = 20_000  # from here on finding the range costs less than ranking all rows


@dataclass(frozen=True)
class Logistic(Objective):
    r"""Logistic loss, :math:`\sum_i w_i \log(1 + e^{-(2 y_i - 1) f_i})`: a sum over rows.

    The gradient-boosting baseline of Fréry et al. (2017). Queries make no difference to it.

    Examples
    --------
    >>> gradient, hessian = Logistic().gradient_hessian([1, 0], [0.0, 0.0])
    >>> gradient.tolist(), hessian.tolist()
    ([-0.5, 0.5], [0.25, 0.25])
    """

    name: ClassVar[str] = "logistic"
    summary: ClassVar[str] = "logistic loss of each row on its own; the baseline"
    sorts: ClassVar[bool] = False
    pointwise: ClassVar[bool] = True

    def _loss(self, rows: ScoredList) -> float:
        margins = (2.0 * rows.y - 1.0) * rows.scores
        return float(rows.weighted(np.logaddexp(0.0, -margins)).sum())

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        gradient, hessian = np.empty(len(rows.y)), np.empty(len(rows.y))
        # From exp(-|f|) both tails keep all their digits; cut where numbers would turn subnormal,
        # far scores cost no more than near ones.
        np.clip(np.abs(rows.scores, out=gradient), None, _FAR, out=gradient)
        np.exp(np.negative(gradient, out=gradient), out=gradient)
        _fill_logistic(rows.y, rows.scores, rows.weight, gradient, hessian)
        return gradient, hessian, None


@njit(cache=True, nogil=True, fastmath=LANES)
def _fill_logistic(y, scores, weight, tails, hessian):
    """Turn exp(-|f|) into the gradient, in its place, and the Hessian; no `weight` stands for ones."""
    for i in range(len(y)):
        head = 1.0 / (1.0 + tails[i])
        tail = tails[i] * head
        w = 1.0
        if weight is not None:
            w = weight[i]
        missing = tail if (scores[i] > 0) == (y[i] > 0) else head
        tails[i] = -w * missing if y[i] > 0 else w * missing
        hessian[i] = w * head * tail


@dataclass(frozen=True)
class PairwiseLogistic(Objective):
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

    def _loss(self, rows: ScoredList) -> float:
        lists = ranked_lists(rows)
        weight = lists.weight * lists.per_place(_pair_share(lists))
        total = 0.0
        for worse, better in combinations(range(len(lists.levels)), 2):
            (sums,) = ranked_sums(
                lists.ranked, lists.codes, better, worse, lists.weight, kernel="softplus"
            )
            total += float(sums @ weight)
        return total

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        lists = ranked_lists(rows)

        def add(target: int, source: int, out: FloatArray) -> None:
            better = target > source
            ranked_sums(
                lists.ranked, lists.codes, target, source, lists.weight, rising=better,
                factors=(-1.0 if better else 1.0, 1.0), out=out,
            )  # fmt: skip

        both = sum_over_levels(add, lists)
        both *= lists.weight * lists.per_place(_pair_share(lists))
        return both[0], both[1], lists.ranked.order


def sum_over_levels(add: Callable[[int, int, FloatArray], None], lists: RankedLists) -> FloatArray:
    """Let `add(target, source, out)` add gradients and curvatures for every two levels.

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
    """Return what one pair of each query counts in the mean over queries of the mean over pairs."""
    totals = lists.totals
    pairs = (totals * (np.cumsum(totals, axis=1) - totals)).sum(axis=1)
    return np.where(lists.rankable, lists.query_share / np.maximum(pairs, 1e-300), 0.0)


# How to sum a surrogate: the kernel of its value, the kernel of its derivatives and the row of the first one.
# Row 1 serves as the curvature. The hinge has none, so its derivative stands in and a Newton step is one
# margin; for the sigmoid the derivative is a bound, as |sig''| <= sig'.
_SURROGATES = {
    "hinge": ("hinge", "hinge", 1),
    "sigmoid": ("sigmoid", "sigmoid", 1),
    "logistic": ("softplus", "sigmoid", 0),
}


@dataclass(frozen=True)
class PartialAUC(Objective):
    r"""Surrogate loss over pairs of a positive and a negative ranked between a·N and b·N.

    .. math:: L = \frac{1}{P (b - a) N} \sum_{positives\ i} \sum_{j\ in\ range} w_i w_j
              \phi(f_j - f_i)

    The range is found among the negatives alone, at the scores of the moment; tied negatives at
    its edge share what is left of it. With a = 0 and a convex surrogate the loss is convex, as the
    range holds the worst negatives.

    Trees of one list learn from a range that is wide enough to hold 300 negatives (`scaled_gradient_hessian`).

    Parameters
    ----------
    a, b : float
        The range of false-positive rates, 0 <= a < b <= 1.
    surrogate : {"hinge", "sigmoid", "logistic"}
        :math:`\phi(t) = \max(0, 1 + t)`, :math:`sig(t)` or :math:`\log(1 + e^t)`.

    Examples
    --------
    >>> PartialAUC(b=0.5).loss([1, 0, 0], [1.0, 0.5, -1.0])
    0.5
    """

    name: ClassVar[str] = "pauc"
    summary: ClassVar[str] = "partial AUC: positives against the negatives of an FPR range"
    by_rank: ClassVar[bool] = True

    a: float = 0.0
    b: float = 0.1
    surrogate: str = "hinge"

    def __post_init__(self) -> None:
        check_range((self.a, self.b))
        check_choice(self.surrogate, "surrogate", tuple(_SURROGATES))

    def binnable(self, n_positives: float, weighted: bool) -> bool:
        """Never: the edge of the range cannot be binned."""
        return False

    def scaled_gradient_hessian(self, rows: ScoredList) -> tuple[FloatArray, FloatArray]:
        """Return both for trees, of a range that is widened downwards until it holds 300 negatives.

        Trees learn a handful of negatives by heart: where the range as given holds few, it has the highest
        partial AUC on the training rows and the lowest on new ones.
        """
        negative = rows.y == 0
        n_negatives = negative.sum() if rows.weight is None else rows.weight[negative].sum()
        if rows.qid is None and 0 < n_negatives * self.b < _LEAST_NEGATIVES and self.b < 1:
            wider = replace(self, b=min(1.0, _LEAST_NEGATIVES / float(n_negatives)))
            return super(PartialAUC, wider).scaled_gradient_hessian(rows)
        return super().scaled_gradient_hessian(rows)

    def _prepare(
        self, rows: ScoredList, n_negatives: float | None = None
    ) -> tuple[RankedLists, FloatArray]:
        """Rank rows; return their weights too, the negatives' as far as they lie within the range.

        Negatives below the range may be left out if their number is given.
        """
        lists = ranked_lists(rows, n_levels=2)
        totals = lists.totals
        if n_negatives is not None:
            totals[:, 0] = n_negatives
        ranked, negatives = lists.ranked, totals[:, 0]
        pairs = totals.prod(axis=1) * (self.b - self.a)
        share = np.where(lists.rankable, lists.query_share / np.maximum(pairs, 1e-300), 0.0)
        # the end of the list is the end of the range, whatever the rounding of the weights
        end = self.b * negatives if self.b < 1 else np.full_like(negatives, np.inf)
        weight = _weights_in_range(
            ranked.scores, lists.codes, lists.weight, ranked.starts, self.a * negatives, end, share
        )
        return lists, weight

    def _loss(self, rows: ScoredList) -> float:
        lists, weight = self._prepare(rows)
        values = _class_sums(_SURROGATES[self.surrogate][0], lists, 1, weight)[0]
        return float(values @ lists.weight)

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        alone = rows.qid is None and rows.weight is None
        if alone and self.b <= 0.5 and len(rows.y) >= _ROWS_TO_SELECT:
            return self._of_rows_in_range(rows)
        return self._of_ranked(*self._prepare(rows))

    def _of_rows_in_range(self, rows: ScoredList) -> GradientHessian:
        """Rank only the positives and the negatives that are not below the range; the others get 0."""
        both, negatives = np.zeros((2, len(rows.y))), rows.scores[rows.y == 0]
        below = max(0, len(negatives) - math.ceil(self.b * len(negatives)) - 1)
        chosen = rows.y > 0
        if len(negatives):
            chosen |= rows.scores >= np.partition(negatives, below)[below]
        where = np.flatnonzero(chosen)
        lists, weight = self._prepare(rows.at(rows.scores, where), len(negatives))
        gradient, hessian, order = self._of_ranked(lists, weight)
        both[:, where[order]] = gradient, hessian
        return both[0], both[1], None

    def _of_ranked(self, lists: RankedLists, weight: FloatArray) -> GradientHessian:
        _, kernel, row = _SURROGATES[self.surrogate]
        both = np.zeros((2, lists.n_rows))
        tasks = [partial(_class_sums, kernel, lists, target, weight, both) for target in (1, 0)]
        run_tasks(tasks, lists.n_rows)
        both *= weight
        size = both[row]
        return np.where(lists.codes == 1, -size, size), both[1], lists.ranked.order


def _class_sums(
    kernel: str, lists: RankedLists, target: int, weight: FloatArray, out: FloatArray | None = None
) -> FloatArray:
    """Return the sums of a kernel over the other class at the rows of one."""
    sums = ranked_hinge_sums if kernel == "hinge" else partial(ranked_sums, kernel=kernel)
    rising = target == 1
    return sums(lists.ranked, lists.codes, target, 1 - target, weight, rising=rising, out=out)


@njit(cache=True, nogil=True)
def _weights_in_range(scores, codes, weight, starts, lows, highs, share):
    """Return weights by place; a negative's counts as far as it lies between `lows` and `highs`.

    The negatives also carry what one pair of their query counts in the loss.
    """
    inside = weight.copy()
    places = np.empty(len(codes), np.int64)
    for q in range(len(starts) - 1):
        n, above = 0, 0.0
        for k in range(starts[q], starts[q + 1]):
            if codes[k] != 0:
                continue
            inside[k] = 0.0
            if above < highs[q] or scores[k] == scores[places[n - 1]]:  # to the end of a tie group
                places[n] = k
                n += 1
                above += weight[k]
        first = places[:n]
        inside[first] = share[q] * range_weights(scores[first], weight[first], lows[q], highs[q])
    return inside
