"""The baseline: logistic loss of each row on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from toprank.objectives._base import FloatArray, Objective, Rows

__all__ = ["Logistic"]


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
    pointwise: ClassVar[bool] = True

    def _loss(self, rows: Rows) -> float:
        margins = (2.0 * rows.y - 1.0) * rows.scores
        return float(rows.weighted(np.logaddexp(0.0, -margins)).sum())

    def _gradient_hessian(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        weight = np.empty(0) if rows.weight is None else rows.weight
        return _slopes(rows.y, rows.scores, weight)


@njit(cache=True, nogil=True)
def _slopes(y, scores, weight):
    """Gradient and Hessian in one pass; empty `weight` stands for ones."""
    gradient, hessian = np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        # From exp(-|f|) both tails keep all their digits; cut where numbers would turn subnormal,
        # far scores cost no more than near ones.
        tail = math.exp(-min(abs(scores[i]), 700.0))
        head = 1.0 / (1.0 + tail)
        tail *= head
        w = weight[i] if len(weight) else 1.0
        positive = y[i] > 0
        missing = tail if (scores[i] > 0) == positive else head
        gradient[i] = -w * missing if positive else w * missing
        hessian[i] = w * head * tail
    return gradient, hessian
