"""Metrics made smooth by putting a sigmoid wherever they ask which of two rows ranks higher."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from toprank.objectives._base import FloatArray, Rows
from toprank.objectives._gains import gains_of, ideal_gains
from toprank.objectives._lists import ListObjective, RankedLists, ranked_lists
from toprank.pair_sums import ranked_sums
from toprank.parallel import run_tasks

__all__ = ["APSigmoid", "NDCGSigmoid"]


@dataclass(frozen=True)
class _SmoothRanks:
    """For each relevant row i: sums over rows j of w_j S_ij and w_j S'_ij, S_ij = sig(f_j - f_i).

    `among` runs over the relevant rows, i itself included; `against` over the others. The relevant
    rows are also a list of their own, and `places` says where they stand in the whole one.
    """

    lists: RankedLists
    relevant: RankedLists
    places: np.ndarray
    among: FloatArray
    among_slope: FloatArray
    against: FloatArray
    against_slope: FloatArray

    @classmethod
    def of(cls, lists: RankedLists) -> _SmoothRanks:
        relevant, places = lists.only(1), lists.places(1)

        def task(which: RankedLists, source: int) -> FloatArray:
            return ranked_sums(which.ranked, which.codes, 1, source, which.weight)

        among, against = run_tasks(
            [lambda: task(relevant, 1), lambda: task(lists, 0)[:, places]], lists.n_rows
        )
        return cls(lists, relevant, places, *among, *against)

    @property
    def weight(self) -> FloatArray:
        return self.relevant.weight

    def slope_sums(self, on_others: FloatArray, among: FloatArray) -> list[FloatArray]:
        """Sums over relevant rows i of factors_i · S'_ik at rows k.

        With the first factors, at the other rows (by place of the whole list); with the second, at
        the relevant rows.
        """

        def outward() -> FloatArray:
            by_place = np.zeros(self.lists.n_rows)
            by_place[self.places] = on_others
            return ranked_sums(self.lists.ranked, self.lists.codes, 0, 1, by_place)[1]

        def inward() -> FloatArray:
            return ranked_sums(self.relevant.ranked, self.relevant.codes, 1, 1, among)[1]

        return run_tasks([outward, inward], self.lists.n_rows)


def _check_alpha(alpha: float) -> None:
    if not (math.isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha must be a positive number, not {alpha!r}")


@dataclass(frozen=True)
class APSigmoid(ListObjective):
    r"""Average precision with sigmoids for indicators (SGBAPsig), in the time of a sort.

    With :math:`S_{ij} = sig(\alpha (f_j - f_i))`, and for each positive i
    :math:`A_i = \sum_{positives\ j} S_{ij}` and :math:`B_i = \sum_j S_{ij}`,

    .. math:: L = 1 - \frac{1}{P} \sum_{positives\ i} \frac{A_i}{B_i}

    (Fréry et al. 2017, eq. 9). The paper's gradient, eq. 10, is misprinted; this one is the
    derivative of L. The Hessian bounds :math:`|S''|` by :math:`S'` and leaves out concave parts.

    Parameters
    ----------
    alpha : float
        Steepness; as it grows the surrogate tends to average precision.
    self_term : float
        What the term j = i counts: 1, as in AP itself, or 1/2, the paper's literal sigmoid of 0.

    Examples
    --------
    >>> round(APSigmoid(alpha=100.0).loss([1, 0, 1], [3.0, 2.0, 1.0]), 6)
    0.166667
    """

    name: ClassVar[str] = "ap_sigmoid"
    summary: ClassVar[str] = "average precision by sigmoids (SGBAPsig)"

    alpha: float = 1.0
    self_term: float = 1.0

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)
        if not 0 < self.self_term <= 1:
            raise ValueError(f"self_term must be above 0 and at most 1, not {self.self_term!r}")

    def _loss(self, rows: Rows) -> float:
        ranks = _SmoothRanks.of(ranked_lists(rows, n_levels=2, scale=self.alpha))
        own = self.self_term - 0.5 + ranks.among
        missed = ranks.against / (own + ranks.against)
        return float(missed @ self._row_share(ranks))

    def _row_share(self, ranks: _SmoothRanks) -> FloatArray:
        """What each positive counts: its weight over its query's, over the number of queries."""
        lists = ranks.lists
        share = lists.query_share / np.maximum(lists.totals[:, 1], 1e-300)
        return ranks.weight * lists.per_place(share, ranks.places)

    def _slopes_by_place(self, rows: Rows) -> tuple[RankedLists, FloatArray, FloatArray]:
        lists = ranked_lists(rows, n_levels=2, scale=self.alpha)
        ranks = _SmoothRanks.of(lists)
        share = self._row_share(ranks)
        own = self.self_term - 0.5 + ranks.among  # A_i; its own copies tie with it at 1/2 each
        both = own + ranks.against  # B_i
        push = share * own / both**2  # of positive i on the negatives, for each unit of S'
        lift = share * ranks.against / both**2  # of positive i on the other positives
        gradient, of_positives = ranks.slope_sums(push, lift)
        others = ranks.weight * of_positives  # a term in other positives' ranks
        by_positives = ranks.among_slope * lift  # the row i itself
        by_negatives = ranks.against_slope * push
        gradient *= self.alpha * lists.weight
        hessian = self.alpha * gradient
        gradient[ranks.places] = self.alpha * (by_positives - by_negatives - others)
        # A row does not move against itself: take its own S'(0) = 1/4 out of both sums. Its other
        # copies stay in, so that the Hessian of a weighted row is the sum over its copies.
        apart = np.maximum(others + by_positives - 0.5 * lift, 0.0)
        hessian[ranks.places] = self.alpha**2 * (by_negatives + 3.0 * apart)
        return lists, gradient, hessian


@dataclass(frozen=True)
class NDCGSigmoid(ListObjective):
    r"""NDCG at ranks counted with sigmoids, for graded relevance.

    .. math:: L = 1 - \frac{1}{IDCG} \sum_i \frac{2^{rel_i} - 1}{\log_2(1 + k_i)}, \qquad
              k_i = 1 + \sum_{j \ne i} sig(\alpha (f_j - f_i))

    the next step that Fréry et al. (2017) announce. The mean over queries with a relevant row.

    Parameters
    ----------
    alpha : float
        Steepness; as it grows the loss tends to 1 - NDCG.

    Examples
    --------
    >>> round(NDCGSigmoid(alpha=100.0).loss([2, 0, 1], [3.0, 2.0, 1.0]), 6)
    0.03606
    """

    name: ClassVar[str] = "ndcg_sigmoid"
    summary: ClassVar[str] = "NDCG by sigmoids, for graded relevance"
    graded: ClassVar[bool] = True

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def _prepare(self, rows: Rows) -> tuple[_SmoothRanks, FloatArray, bool]:
        """Smooth ranks, each relevant row's part of the ideal gain, and whether there are any."""
        binary = Rows((rows.y > 0).astype(np.float64), rows.scores, rows.weight, rows.qid)
        ranks = _SmoothRanks.of(ranked_lists(binary, n_levels=2, scale=self.alpha))
        lists = ranks.lists
        gains = gains_of(rows.y[lists.ranked.order[ranks.places]])
        distinct, codes = np.unique(gains, return_inverse=True)
        queries = lists.per_place(np.arange(len(lists.totals)), ranks.places)
        held = np.zeros((len(lists.totals), len(distinct)))
        np.add.at(held, (queries, codes), ranks.weight)
        ideal = ideal_gains(held, distinct, np.inf)
        share = np.where(ideal > 0, 1.0 / np.maximum(ideal, 1e-300), 0.0)
        share /= max(1, np.count_nonzero(ideal))
        parts = gains * ranks.weight * lists.per_place(share, ranks.places)
        return ranks, parts, bool(len(gains))

    def _loss(self, rows: Rows) -> float:
        ranks, parts, any_relevant = self._prepare(rows)
        discount = 1.0 / np.log2(1.5 + ranks.among + ranks.against)
        return float(any_relevant) - float(parts @ discount)

    def _slopes_by_place(self, rows: Rows) -> tuple[RankedLists, FloatArray, FloatArray]:
        ranks, parts, _ = self._prepare(rows)
        after = 1.5 + ranks.among + ranks.against  # 1 + k_i; a row ties with itself at 1/2
        push = parts * math.log(2.0) / (after * np.log(after) ** 2)  # dL/dk_i
        gradient, of_relevant = ranks.slope_sums(push, push)
        terms = ranks.weight * of_relevant
        own = push * (ranks.among_slope + ranks.against_slope)
        gradient *= self.alpha * ranks.lists.weight
        hessian = self.alpha * gradient
        gradient[ranks.places] = self.alpha * (terms - own)
        apart = np.maximum(terms + own - 0.5 * push, 0.0)
        hessian[ranks.places] = self.alpha**2 * apart
        return ranks.lists, gradient, hessian
