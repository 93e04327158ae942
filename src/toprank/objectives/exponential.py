"""Objectives that factorise into sums of exponentials: no sort, linear time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from toprank.objectives.base import FloatArray, GradientHessian, Objective, ScoredList
from toprank.pairs._kernels import LANES, TILE, tile_exp
from toprank.validation import check_choice

__all__ = ["APExponential", "APSoftmax", "PNormPush", "PairwiseExponential"]

_LOWEST = -1.7e308


@dataclass(frozen=True)
class _ClassSums:
    """Sums of w·exp(multiplier·f) over class c (0 negatives, 1 positives) of each query q.

    Rows stand query after query: `order` says where each was (None for one list). `terms` are
    exp(multiplier·f), each divided by the greatest of its query and class. By query and class: `logs` of sums
    (0 where a class has no rows), `parts`, what to multiply the terms by so that they add up to 1, and
    `weights`. `share` is each query's part in the mean over those that hold both classes, as a column.
    """

    order: np.ndarray | None
    starts: np.ndarray
    classes: np.ndarray
    weight: FloatArray | None
    terms: FloatArray
    logs: FloatArray
    parts: FloatArray
    weights: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, rows: ScoredList, negative: float = 1.0, positive: float = 1.0) -> _ClassSums:
        order, starts, qid = None, np.array([0, len(rows.y)]), rows.qid
        if qid is not None:
            order = np.argsort(qid, kind="stable")
            first = np.flatnonzero(qid[order[1:]] != qid[order[:-1]]) + 1
            starts = np.concatenate(([0], first, [len(order)]))
            rows = rows.at(rows.scores, order)
        terms, classes = np.empty(len(rows.y)), rows.y.astype(np.uint8)
        highest, sums, weights = np.zeros((3, len(starts) - 1, 2))
        _class_sums(
            rows.scores, classes, rows.weight, starts, float(negative), float(positive),
            highest, terms, sums, weights,
        )  # fmt: skip
        present = sums > 0
        sums = np.where(present, sums, 1.0)
        logs = np.where(present, np.where(present, highest, 0.0) + np.log(sums), 0.0)
        both = present[:, :1] & present[:, 1:]  # as a column
        share = both / max(1, int(np.count_nonzero(both)))
        return cls(order, starts, classes, rows.weight, terms, logs, 1.0 / sums, weights, share)

    @property
    def log_both(self) -> FloatArray:
        """Logarithm of the sum over both classes, by query (meaningless where one is missing)."""
        return np.logaddexp(self.logs[:, :1], self.logs[:, 1:])

    @property
    def masses(self) -> FloatArray:
        """Part of each class in the sum over both, by query and class."""
        return np.exp(self.logs - self.log_both)

    def gradient_hessian(self, *factors: FloatArray) -> GradientHessian:
        """Return gradient w·(slope·term + offset), Hessian w·curvature·term·(1 - saturation·term).

        The four factors are by query and class. The gradient takes the place of the terms.
        """
        table = np.array([np.broadcast_to(factor, self.parts.shape) for factor in factors])
        hessian = np.empty(len(self.terms))
        _fill_gradients(self.terms, self.classes, self.weight, self.starts, table, hessian)
        return self.terms, hessian, self.order


@dataclass(frozen=True)
class APExponential(Objective):
    r"""Average precision with exponentials for indicators (SGBAP), in linear time.

    With the softmax :math:`q_i = e^{f_i} / \sum_j w_j e^{f_j}` over a query, the surrogate of AP is the
    mass of the positives and :math:`L = \sum_{negatives} w_j q_j` (Fréry et al. 2017, section 3.3).
    The gradient is :math:`-w q L` for a positive and :math:`w q (1 - L)` for a negative; the majorant
    of the Hessian is :math:`w q (1 - q)`.

    Parameters
    ----------
    form : {"plain", "log"}
        "log" minimises :math:`-\log(1 - L)` instead, which behaves better with very rare positives.

    Examples
    --------
    >>> round(APExponential().loss([1, 0, 0, 0], [0.0, 0.0, 0.0, 0.0]), 6)
    0.75
    """

    name: ClassVar[str] = "ap_exp"
    sorts: ClassVar[bool] = False
    summary: ClassVar[str] = (
        "average precision by exponentials (SGBAP); favours what is already high"
    )

    form: str = "plain"

    def __post_init__(self) -> None:
        check_choice(self.form, "form", ("plain", "log"))

    def _loss(self, rows: ScoredList) -> float:
        sums = _ClassSums.of(rows)
        if self.form == "plain":
            return float(sums.share[:, 0] @ sums.masses[:, 0])
        return float(sums.share[:, 0] @ (sums.log_both[:, 0] - sums.logs[:, 1]))

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        sums = _ClassSums.of(rows)
        masses = sums.masses
        softmax = masses * sums.parts  # turns terms into q
        # The pull on (negatives, positives): (1 - L, -L) times q, or the log form's (1, -L/(1-L)),
        # whose quotient is taken inside the part so that a vanishing mass does no harm.
        pull = masses[:, ::-1] * softmax
        if self.form == "log":
            pull = np.stack((softmax[:, 0], masses[:, 0] * sums.parts[:, 1]), axis=1)
        pull *= np.array([1.0, -1.0]) * sums.share
        return sums.gradient_hessian(pull, np.zeros(2), softmax * sums.share, softmax)


@dataclass(frozen=True)
class APSoftmax(Objective):
    r"""Cross-entropy of the softmax over the list: every positive is pulled up, in linear time.

    :math:`L = -(1/P) \sum_{positives} w_i \log q_i` with :math:`q_i = e^{f_i} / \sum_j w_j e^{f_j}`;
    :math:`\log P - L` is a lower bound on the logarithm of the exponential surrogate of AP.
    The gradient is :math:`w_i (q_i - y_i / P)`, the Hessian :math:`w_i q_i (1 - q_i)`.

    Examples
    --------
    >>> gradient, _ = APSoftmax().gradient_hessian([1, 0, 0, 0], [0.0, 0.0, 0.0, 0.0])
    >>> gradient.round(6).tolist()
    [-0.75, 0.25, 0.25, 0.25]
    """

    name: ClassVar[str] = "ap_softmax"
    sorts: ClassVar[bool] = False
    summary: ClassVar[str] = "cross-entropy of the softmax over the list; pulls every positive"

    def _loss(self, rows: ScoredList) -> float:
        sums = _ClassSums.of(rows)
        count = sums.share[:, 0] / np.maximum(sums.weights[:, 1], 1e-300)
        queries = np.repeat(np.arange(len(count)), np.diff(sums.starts))
        rows = rows if sums.order is None else rows.at(rows.scores, sums.order)
        logs = (sums.log_both[:, 0][queries] - rows.scores) * count[queries]
        return float(rows.weighted(logs)[rows.y > 0].sum())

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        sums = _ClassSums.of(rows)
        softmax = sums.masses * sums.parts
        offset = np.array([0.0, -1.0]) * sums.share / np.maximum(sums.weights, 1e-300)
        return sums.gradient_hessian(softmax * sums.share, offset, softmax * sums.share, softmax)


class _ExponentialPairs(Objective):
    """Log of the p-norm push; subclasses say what the power p is."""

    sorts: ClassVar[bool] = False

    p: float

    def _loss(self, rows: ScoredList) -> float:
        sums = _ClassSums.of(rows, self.p, -1.0)
        return float(sums.share[:, 0] @ (sums.logs @ np.array([1.0, self.p])))

    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        sums = _ClassSums.of(rows, self.p, -1.0)
        size = self.p * sums.share * sums.parts
        return sums.gradient_hessian(
            size * np.array([1.0, -1.0]), np.zeros(2), size * np.array([self.p, 1.0]), np.zeros(2)
        )


@dataclass(frozen=True)
class PNormPush(_ExponentialPairs):
    r"""The p-norm push in logarithms: the higher a negative stands, the harder it is pushed down.

    :math:`R = \sum_{negatives\ k} w_k (\sum_{positives\ i} w_i e^{-(f_i - f_k)})^p` factorises, so that
    :math:`L = \log R = p \log \sum_i w_i e^{-f_i} + \log \sum_k w_k e^{p f_k}` (Rudin 2009). With
    :math:`\pi` and :math:`\kappa` the two softmaxes, the gradient is :math:`-p \pi_i` for a positive and
    :math:`p \kappa_k` for a negative; the majorants are :math:`p \pi_i` and :math:`p^2 \kappa_k`.

    Parameters
    ----------
    p : float
        1 is the loss of RankBoost; larger values look at the top of the list only.

    Examples
    --------
    >>> gradient, _ = PNormPush(p=2.0).gradient_hessian([1, 0, 0], [0.0, 0.0, 0.0])
    >>> gradient.round(6).tolist()
    [-2.0, 1.0, 1.0]
    """

    name: ClassVar[str] = "pnorm_push"
    summary: ClassVar[str] = "p-norm push (log of the sum): presses on the highest negatives"

    p: float = 4.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.p) and self.p >= 1):
            raise ValueError(f"p must be a number of at least 1, not {self.p!r}")


@dataclass(frozen=True)
class PairwiseExponential(_ExponentialPairs):
    r"""The loss of RankBoost in logarithms, :math:`\log \sum_{i,k} w_i w_k e^{-(f_i - f_k)}`.

    The p-norm push with p = 1 (Freund et al. 2003): linear time, because the sum factorises.

    Examples
    --------
    >>> round(PairwiseExponential().loss([1, 0], [1.0, 0.0]), 6)
    -1.0
    """

    name: ClassVar[str] = "pairwise_exp"
    summary: ClassVar[str] = "RankBoost's exponential loss over pairs (log of the sum)"
    p = 1.0  # no annotation: a constant, not a field


# -- kernels ---------------------------------------------------------------------------------------
#
# These loops compile to vector code, and what they cost is reading and writing memory: few passes, and arrays
# that come from NumPy (memory that compiled code asks for is given back at once, and fetching it anew costs
# more than filling it). `weight` is None for ones; what belongs to the other case is left out when a loop is
# compiled.


@njit(cache=True, nogil=True, fastmath=LANES)
def _class_sums(scores, classes, weight, starts, negative, positive, highest, terms, sums, weights):
    """Fill in terms = exp(multiplier·score - highest); add up weighted terms, and weights.

    `highest`, the highest exponent, `sums` and `weights` are by query and class.
    """
    below, bits = np.empty(TILE), np.empty(TILE, np.int64)
    scale = bits.view(np.float64)
    for q in range(len(starts) - 1):
        lo, hi = starts[q], starts[q + 1]
        top_negative, top_positive = _highest_exponents(
            scores[lo:hi], classes[lo:hi], negative, positive
        )
        highest[q, 0], highest[q, 1] = top_negative, top_positive
        for first in range(lo, hi, TILE):
            n = min(TILE, hi - first)
            some, own = scores[first : first + n], classes[first : first + n]
            values = terms[first : first + n]
            for a in range(n):
                below[a] = (positive if own[a] else negative) * some[a] - (
                    top_positive if own[a] else top_negative
                )
            tile_exp(below[:n], 1.0, 0.0, values, bits, scale)
            held_negative = held_positive = count_negative = count_positive = 0.0
            for a in range(n):
                w = 1.0
                if weight is not None:
                    w = weight[first + a]
                held_negative += 0.0 if own[a] else w * values[a]
                held_positive += w * values[a] if own[a] else 0.0
                count_negative += 0.0 if own[a] else w
                count_positive += w if own[a] else 0.0
            sums[q, 0] += held_negative
            sums[q, 1] += held_positive
            weights[q, 0] += count_negative
            weights[q, 1] += count_positive


@njit(cache=True, nogil=True, fastmath=LANES)
def _highest_exponents(scores, classes, negative, positive):
    """Return the highest multiplier·score of the negatives and of the positives of one query."""
    top_negative = top_positive = _LOWEST
    for i in range(len(scores)):
        exponent = (positive if classes[i] else negative) * scores[i]
        top_negative = max(top_negative, _LOWEST if classes[i] else exponent)
        top_positive = max(top_positive, exponent if classes[i] else _LOWEST)
    return top_negative, top_positive


@njit(cache=True, nogil=True, fastmath=LANES)
def _fill_gradients(terms, classes, weight, starts, factors, hessian):
    """Turn each term, in its place, into the gradient w·(slope·term + offset).

    Also fill in the Hessian w·curvature·term·(1 - saturation·term). `factors` holds slope, offset,
    curvature and saturation by query and class.
    """
    for q in range(len(starts) - 1):
        slope_0, offset_0, curvature_0, saturation_0 = factors[:, q, 0]
        slope_1, offset_1, curvature_1, saturation_1 = factors[:, q, 1]
        for i in range(np.uint64(starts[q]), np.uint64(starts[q + 1])):  # unsigned: vectorises
            w = 1.0
            if weight is not None:
                w = weight[i]
            term = terms[i]
            rest = max(1.0 - (saturation_1 if classes[i] else saturation_0) * term, 0.0)
            terms[i] = w * (
                (slope_1 if classes[i] else slope_0) * term + (offset_1 if classes[i] else offset_0)
            )
            hessian[i] = w * (curvature_1 if classes[i] else curvature_0) * term * rest
