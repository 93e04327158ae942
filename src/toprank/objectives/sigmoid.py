"""Metrics made smooth by putting a sigmoid wherever they ask which of two rows ranks higher."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from toprank.objectives.base import FloatArray, GradientHessian, Objective, ScoredList
from toprank.objectives.lists import RankedLists, gains_of, ideal_gains, ranked_lists
from toprank.pairs import ranked_sums
from toprank.parallel import run_tasks

__all__ = ["APSigmoid", "NDCGSigmoid"]


@dataclass(frozen=True)
class _SmoothRanks:
    r"""Ranks of the relevant rows counted with sigmoids :math:`S_{ij} = sig(\alpha (f_j - f_i))`.

    `lists` has all rows, with scores times alpha; `relevant` the relevant rows, at `places` of it, as a list
    of their own. For each of them, i, `among` and `among_derivative` are the sums of :math:`w_j S_{ij}` and
    :math:`w_j S'_{ij}` over the relevant rows j, i itself included; `against` those over the other rows.
    """

    lists: RankedLists
    relevant: RankedLists
    places: np.ndarray
    among: FloatArray
    among_derivative: FloatArray
    against: FloatArray
    against_derivative: FloatArray

    @classmethod
    def of(cls, rows: ScoredList, alpha: float) -> _SmoothRanks:
        lists = ranked_lists(rows, n_levels=2, scale=alpha)
        places = np.flatnonzero(lists.codes == 1)
        relevant = lists.only(places)

        def sums(which: RankedLists, source: int) -> FloatArray:
            return ranked_sums(which.ranked, which.codes, 1, source, which.weight)

        among, against = run_tasks(
            [lambda: sums(relevant, 1), lambda: sums(lists, 0)[:, places]], lists.n_rows
        )
        return cls(lists, relevant, places, *among, *against)

    def gradient_hessian(
        self, by_among: FloatArray, by_against: FloatArray, alpha: float, curvature: float
    ) -> GradientHessian:
        r"""Return gradient and Hessian, by place, of a loss that is a function of the two sums.

        With :math:`a_i` and :math:`b_i` the derivatives of the loss by the sums `among` and `against` of the
        relevant row i, the chain rule gives

        .. math::
            \partial L / \partial f_k = \alpha w_k \sum_i b_i S'_{ik} \quad (k\ not\ relevant), \\
            \partial L / \partial f_k = \alpha (w_k \sum_i a_i S'_{ik} - a_k \sum_j w_j S'_{kj}
            - b_k \sum_{j'} w_{j'} S'_{kj'}) \quad (k\ relevant)

        with j over the relevant rows and j' over the others. The Hessian adds up the sizes of these terms
        (:math:`|S''| \le S'`), those among relevant rows times `curvature`, and leaves out concave parts.
        """

        def at_others() -> FloatArray:
            by_place = np.zeros(self.lists.n_rows)
            by_place[self.places] = by_against
            return ranked_sums(self.lists.ranked, self.lists.codes, 0, 1, by_place)[1]

        def at_relevant() -> FloatArray:
            return ranked_sums(self.relevant.ranked, self.relevant.codes, 1, 1, by_among)[1]

        gradient, from_relevant = run_tasks([at_others, at_relevant], self.lists.n_rows)
        from_relevant *= self.relevant.weight  # k as a term in the sums of other relevant rows
        own_among = by_among * self.among_derivative  # k's own sums
        own_against = by_against * self.against_derivative
        gradient *= alpha * self.lists.weight
        hessian = alpha * gradient
        gradient[self.places] = alpha * (from_relevant - own_among - own_against)
        # A row does not move against itself: take its own S'(0) = 1/4 out of both sums. Its other
        # copies stay in, so that the Hessian of a weighted row is the sum over its copies.
        moved = np.abs(from_relevant + own_among) - 0.5 * np.abs(by_among)
        hessian[self.places] = alpha**2 * (own_against + curvature * np.maximum(moved, 0.0))
        return gradient, hessian, self.lists.ranked.order


def _check_alpha(alpha: float) -> None:
    if not (math.isfinite(alpha) and alpha > 0):
        raise ValueError(f"alpha must be a positive number, not {alpha!r}")


@dataclass(frozen=True)
class APSigmoid(Objective):
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

    def _prepare(self, rows: ScoredList) -> tuple[_SmoothRanks, FloatArray, FloatArray]:
        """Return the smooth ranks, A_i (a row ties with itself at 1/2), and what each positive counts."""
        ranks = _SmoothRanks.of(rows, self.alpha)
        lists = ranks.lists
        share = lists.query_share / np.maximum(lists.totals[:, 1], 1e-300)
        counts = ranks.relevant.weight * lists.per_place(share, ranks.places)
        return ranks, self.self_term - 0.5 + ranks.among, counts

    def _loss(self, rows: ScoredList) -> float:
        ranks, positives, counts = self._prepare(rows)
        return float(counts @ (ranks.against / (positives + ranks.against)))

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        ranks, positives, counts = self._prepare(rows)
        squares = (positives + ranks.against) ** 2  # B_i²
        by_among = -counts * ranks.against / squares  # the derivative of -A/B by A, as B - A stays
        by_against = counts * positives / squares
        return ranks.gradient_hessian(by_among, by_against, self.alpha, curvature=3.0)


@dataclass(frozen=True)
class NDCGSigmoid(Objective):
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

    def _prepare(self, rows: ScoredList) -> tuple[_SmoothRanks, FloatArray, FloatArray]:
        """Return smooth ranks, 1 + k_i, and each relevant row's part of the ideal gain."""
        binary = replace(rows, y=(rows.y > 0).astype(np.float64))
        ranks = _SmoothRanks.of(binary, self.alpha)
        lists = ranks.lists
        gains = gains_of(rows.y[lists.ranked.order[ranks.places]])
        distinct, codes = np.unique(gains, return_inverse=True)
        queries = lists.per_place(np.arange(len(lists.totals)), ranks.places)
        held = np.zeros((len(lists.totals), len(distinct)))
        np.add.at(held, (queries, codes), ranks.relevant.weight)
        ideal = ideal_gains(held, distinct, np.inf)
        share = np.where(ideal > 0, 1.0 / np.maximum(ideal, 1e-300), 0.0)
        share /= max(1, np.count_nonzero(ideal))
        parts = gains * ranks.relevant.weight * lists.per_place(share, ranks.places)
        return ranks, 1.5 + ranks.among + ranks.against, parts  # a row ties with itself at 1/2

    def _loss(self, rows: ScoredList) -> float:
        _, after, parts = self._prepare(rows)
        return float(len(parts) > 0) - float(parts @ (1.0 / np.log2(after)))

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        ranks, after, parts = self._prepare(rows)
        by_rank = parts * math.log(2.0) / (after * np.log(after) ** 2)  # dL/dk_i
        return ranks.gradient_hessian(by_rank, by_rank, self.alpha, curvature=1.0)
