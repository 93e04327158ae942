"""The baseline: logistic loss of each row on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from toprank._pair_tiles import LANES
from toprank.objectives._base import FloatArray, Objective, Rows

__all__ = ["Logistic"]

_FAR = 700.0


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
        gradient, hessian = np.empty(len(rows.y)), np.empty(len(rows.y))
        # From exp(-|f|) both tails keep all their digits; cut where numbers would turn subnormal,
        # far scores cost no more than near ones.
        np.clip(np.abs(rows.scores, out=gradient), None, _FAR, out=gradient)
        np.exp(np.negative(gradient, out=gradient), out=gradient)
        _slopes(rows.y, rows.scores, rows.weight, gradient, hessian)
        return gradient, hessian


@njit(cache=True, nogil=True, fastmath=LANES)
def _slopes(y, scores, weight, tails, hessian):
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
