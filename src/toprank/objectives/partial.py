"""Partial AUC: positives against the negatives that rank inside a range of false-positive rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numba import njit

from toprank.objectives._base import FloatArray, Rows
from toprank.objectives._lists import ListObjective, RankedLists, ranked_lists
from toprank.pair_sums import ranked_hinge_sums, ranked_sums
from toprank.parallel import run_tasks

__all__ = ["PartialAUC"]


@dataclass(frozen=True)
class PartialAUC(ListObjective):
    r"""Surrogate loss over pairs of a positive and a negative ranked between a·N and b·N.

    .. math:: L = \frac{1}{P (b - a) N} \sum_{positives\ i} \sum_{j\ in\ range} w_i w_j
              \phi(f_j - f_i)

    The range is found among the negatives alone, at the scores of the moment; tied negatives at
    its edge share what is left of it. With a = 0 and a convex surrogate the loss is convex, as the
    range holds the worst negatives.

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
        if not 0 <= self.a < self.b <= 1:
            raise ValueError(f"the range needs 0 <= a < b <= 1, not a={self.a!r}, b={self.b!r}")
        if self.surrogate not in _SURROGATES:
            raise ValueError(
                f"surrogate must be one of {list(_SURROGATES)}, not {self.surrogate!r}"
            )

    def _prepare(self, rows: Rows) -> tuple[RankedLists, FloatArray]:
        """Ranked lists, and weights: the negatives' only as far as they lie within the range."""
        lists = ranked_lists(rows, n_levels=2)
        ranked = lists.ranked
        pairs = lists.totals.prod(axis=1) * (self.b - self.a)
        share = np.where(lists.rankable, lists.query_share / np.maximum(pairs, 1e-300), 0.0)
        weight = _range_weights(
            ranked.scores, lists.codes, lists.weight, ranked.starts, self.a, self.b, share
        )
        return lists, weight

    def _loss(self, rows: Rows) -> float:
        lists, weight = self._prepare(rows)
        values = _SURROGATES[self.surrogate].value(lists, 1, weight)[0]
        return float(values @ lists.weight)

    def _slopes_by_place(self, rows: Rows) -> tuple[RankedLists, FloatArray, FloatArray]:
        lists, weight = self._prepare(rows)
        surrogate = _SURROGATES[self.surrogate]
        both = np.zeros((2, lists.n_rows))
        run_tasks(
            [partial(surrogate.slopes, lists, t, weight, out=both) for t in (1, 0)],
            lists.n_rows,
        )
        both *= weight
        slopes = both[surrogate.slope]
        return lists, np.where(lists.codes == 1, -slopes, slopes), both[1]


def _hinge(
    lists: RankedLists, target: int, weight: FloatArray, out: FloatArray | None = None
) -> FloatArray:
    return ranked_hinge_sums(
        lists.ranked, lists.codes, target, 1 - target, weight, rising=target == 1, out=out
    )


def _sigmoid(
    lists: RankedLists, target: int, weight: FloatArray, out: FloatArray | None = None
) -> FloatArray:
    return ranked_sums(
        lists.ranked, lists.codes, target, 1 - target, weight, rising=target == 1, out=out
    )


def _softplus(lists: RankedLists, target: int, weight: FloatArray) -> FloatArray:
    return ranked_sums(
        lists.ranked, lists.codes, target, 1 - target, weight, rising=target == 1, kernel="softplus"
    )


class _Surrogate(NamedTuple):
    """How to sum a surrogate: `value(...)[0]`, and in `slopes(...)` the row of its slopes.

    Row 1 of `slopes` serves as the curvature. The hinge has none, so its slope stands in and a
    Newton step is one margin; for the sigmoid the slope is a bound, as |sig''| <= sig'.
    """

    value: Callable[..., FloatArray]
    slopes: Callable[..., FloatArray]
    slope: int


_SURROGATES = {
    "hinge": _Surrogate(_hinge, _hinge, 1),
    "sigmoid": _Surrogate(_sigmoid, _sigmoid, 1),
    "logistic": _Surrogate(_softplus, _sigmoid, 0),
}


@njit(cache=True, nogil=True)
def _range_weights(scores, codes, weight, starts, low, high, share):
    """Weights by place; a negative's counts as far as it lies between low·N and high·N.

    Negatives with the same score share alike what the range covers of them. The negatives also carry
    what one pair of their query counts in the loss.
    """
    inside = weight.copy()
    for q in range(len(starts) - 1):
        total = 0.0
        for k in range(starts[q], starts[q + 1]):
            if codes[k] == 0:
                total += weight[k]
        above, start = 0.0, starts[q]
        while start < starts[q + 1]:
            end, group = start, 0.0
            while end < starts[q + 1] and scores[end] == scores[start]:
                if codes[end] == 0:
                    group += weight[end]
                end += 1
            covered = min(above + group, high * total) - max(above, low * total)
            if group > 0.0:
                factor = share[q] * max(covered, 0.0) / group
                for k in range(start, end):
                    if codes[k] == 0:
                        inside[k] = weight[k] * factor
            above += group
            start = end
    return inside
