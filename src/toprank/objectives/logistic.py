"""The baseline: logistic loss of each row on its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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
        # From exp(-|f|) both tails keep all their digits; cut where numbers would turn subnormal,
        # far scores cost no more than near ones.
        tail = np.exp(-np.minimum(np.abs(rows.scores), 700.0))
        head = 1.0 / (1.0 + tail)
        tail *= head
        missing = np.where((rows.scores > 0) == (rows.y > 0), tail, head)
        gradient = np.where(rows.y > 0, -missing, missing)
        return rows.weighted(gradient), rows.weighted(head * tail)
