"""What an objective is: a surrogate loss of a scored list, its gradient and its Hessian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from toprank.objectives.adapters import LibraryAdapters
from toprank.pairs._kernels import LANES
from toprank.parallel import run_halves
from toprank.validation import check_lengths, check_scores

__all__ = ["GradientHessian", "Objective", "ScoredList", "scale_for_trees"]

FloatArray = np.ndarray
GradientHessian = tuple[FloatArray, FloatArray, np.ndarray | None]
"""Gradient, Hessian, and the row that each of their entries belongs to (None: they are in row order)."""

_FLOOR = 1e-12  # least Hessian of a row, as a part of the mean Hessian
_LEAST = 1e-290
_LEAST_WEIGHT = 1e-100
_LEAST_FLOAT32 = 1e-30  # well above the least float32


@dataclass(frozen=True)
class ScoredList:
    """Checked input of an objective; labels may be grades, and a weight is a number of copies."""

    y: FloatArray
    scores: FloatArray
    weight: FloatArray | None = None
    qid: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        y: Any,
        scores: Any,
        sample_weight: Any = None,
        qid: Any = None,
        *,
        graded: bool = False,
    ) -> ScoredList:
        """Check raw input, or say what is wrong with it."""
        labels, values = _vector(y), _vector(check_scores(np.ravel(scores)))
        weight = None if sample_weight is None else _vector(sample_weight)
        queries = None if qid is None else np.asarray(qid).ravel()
        check_lengths(y=labels, scores=values, sample_weight=weight, qid=queries)
        if not graded and not ((labels == 0) | (labels == 1)).all():
            raise ValueError(
                "y must hold 0 (negative) and 1 (positive) only; "
                "graded relevance needs a graded objective such as lambda_ndcg"
            )
        if graded and not ((labels >= 0) & (labels < 2**31) & (labels % 1 == 0)).all():
            raise ValueError("y must hold relevance grades: whole numbers, 0 or more")
        if weight is not None and (not np.isfinite(weight.sum()) or weight.min(initial=0.0) < 0):
            raise ValueError("sample_weight must be finite and at least 0")
        return cls(labels, values, weight, queries)

    def at(self, scores: FloatArray, where: np.ndarray | None = None) -> ScoredList:
        """Return these rows, or those at some positions, with other scores (given for all rows)."""
        if where is None:
            return ScoredList(self.y, check_scores(scores), self.weight, self.qid)
        weight = None if self.weight is None else self.weight[where]
        qid = None if self.qid is None else self.qid[where]
        return ScoredList(self.y[where], check_scores(scores[where]), weight, qid)

    def present(self) -> tuple[ScoredList, np.ndarray | None]:
        """Leave out the rows of weight 0; also return where the others were (None: everywhere).

        A weight too small to divide by is taken for 0.
        """
        if self.weight is None or self.weight.min(initial=1.0) > _LEAST_WEIGHT:
            return self, None
        where = np.flatnonzero(self.weight > _LEAST_WEIGHT)
        return self.at(self.scores, where), where

    def weighted(self, values: FloatArray) -> FloatArray:
        """Multiply one value for each row by the weights."""
        return values if self.weight is None else values * self.weight


def _vector(values: Any) -> FloatArray:
    """Return a flat float64 array; read-only ones (pandas') are copied, or kernels would compile anew."""
    return np.require(values, np.float64, ["C", "W"]).ravel()


@dataclass(frozen=True)
class Objective(LibraryAdapters, ABC):
    """Base of all objectives: frozen parameters, pure functions of labels and scores.

    A subclass sets the class attributes and writes `_loss` and `_gradient_hessian` of a
    `ScoredList`. The gradient is the exact gradient of `loss` (to be minimised); the Hessian is a
    positive diagonal that bounds the curvature of `loss` from above. A weight is a number of
    copies of its row: weight 2 is the row twice, weight 0 the row absent. Rows of different
    queries never meet; the loss is the mean over the queries that have something to rank.

    Attributes
    ----------
    name : str
        The name under which `toprank.objectives.get` finds the class.
    summary : str
        One line for lists of objectives.
    graded : bool
        Whether labels may be relevance grades 0, 1, 2, ... rather than 0 and 1.
    pointwise : bool
        Whether the loss is a sum over rows (no row's gradient depends on another row).
    by_rank : bool
        Whether single ranks count, so that the first rows of a list must be told apart exactly.
    sorts : bool
        Whether a gradient costs a sort, rather than a pass over the rows.
    smooth : bool
        Whether the gradient is that of `loss` as the scores move. A lambda objective's is not: it holds the
        weights of pairs, which go by the ranks of the moment, fixed.
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    graded: ClassVar[bool] = False
    pointwise: ClassVar[bool] = False
    by_rank: ClassVar[bool] = False
    sorts: ClassVar[bool] = True
    smooth: ClassVar[bool] = True

    def binnable(self, n_positives: float, weighted: bool) -> bool:
        """Whether the binned form of a list errs by less than 1e-5 of the greatest gradient."""
        return True

    def loss(self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None) -> float:
        """Return the loss of `scores` (lower is better)."""
        rows, _ = ScoredList.of(y, scores, sample_weight, qid, graded=self.graded).present()
        return float(self._loss(rows)) if len(rows.y) else 0.0

    def gradient_hessian(
        self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of `loss` and a positive diagonal majorant of its Hessian.

        Rows of weight 0 get 0 and 0.
        """
        rows = ScoredList.of(y, scores, sample_weight, qid, graded=self.graded)
        present, where = rows.present()
        if len(present.y) == 0:
            return np.zeros(len(rows.y)), np.zeros(len(rows.y))
        gradient, hessian, order = self._gradient_hessian(present)
        # Just above 0, so that no division by it can fail.
        floor = np.maximum(_FLOOR * hessian.mean(), _LEAST)
        if present.weight is not None:
            weight = present.weight if order is None else present.weight[order]
            floor = np.maximum(floor * weight, _LEAST)
        np.maximum(hessian, floor, out=hessian)
        return _in_row_order(gradient, hessian, order, where, len(rows.y))

    def scaled_gradient_hessian(self, rows: ScoredList) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian rescaled for Newton trees, in float32.

        Ranking objectives go through `scale_for_trees`; those that are sums over rows stay as they are.
        """
        present, where = rows.present()
        if len(present.y) == 0:
            return np.zeros(len(rows.y), np.float32), np.zeros(len(rows.y), np.float32)
        gradient, hessian, order = self._gradient_hessian(present)
        if self.pointwise:
            gradient = gradient.astype(np.float32)
            hessian = np.maximum(hessian.astype(np.float32), np.float32(_LEAST_FLOAT32))
        else:
            gradient, hessian = scale_for_trees(
                gradient, hessian, present.y, present.weight, dtype=np.float32, floor=_FLOOR
            )
        return _in_row_order(gradient, hessian, order, where, len(rows.y))

    @abstractmethod
    def _loss(self, rows: ScoredList) -> float:
        """Return the loss of checked rows."""

    @abstractmethod
    def _gradient_hessian(self, rows: ScoredList) -> GradientHessian:
        """Return gradient and Hessian of checked rows, and the order in which they stand."""


def _in_row_order(
    gradient: FloatArray,
    hessian: FloatArray,
    order: np.ndarray | None,
    where: np.ndarray | None,
    n_rows: int,
) -> tuple[FloatArray, FloatArray]:
    """Put results given by place of a ranked list, of the rows that are present, back in row order."""
    if where is not None:
        order = where if order is None else where[order]
    if order is None:
        return gradient, hessian
    make = np.empty if len(order) == n_rows else np.zeros
    gradient_out, hessian_out = make(n_rows, gradient.dtype), make(n_rows, hessian.dtype)

    def scatter(part: slice) -> None:
        _scatter(order[part], gradient[part], hessian[part], gradient_out, hessian_out)

    run_halves(scatter, len(order))
    return gradient_out, hessian_out


@njit(cache=True, nogil=True)
def _scatter(order, first, second, first_out, second_out):
    """Scatter both arrays at once: the order is read one time only."""
    for k in range(len(order)):
        first_out[order[k]] = first[k]
        second_out[order[k]] = second[k]


# -- scaling for trees -----------------------------------------------------------------------------


def scale_for_trees(
    gradient: np.ndarray,
    hessian: np.ndarray,
    y: Any,
    sample_weight: Any = None,
    *,
    dtype: Any = np.float64,
    floor: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Rescale a gradient and a Hessian so that Newton trees can work with them.

    The loss of a ranking is a mean over a list: its gradients are of order 1/n, and would vanish
    beside the constants of Newton trees (XGBoost's `min_child_weight` and `lambda`, both 1). Two
    things are done, the same for every ranking objective:

    1. Each row's Hessian is raised to the size of its gradient where it is less. No leaf can then
       want a step above 1, which keeps a pure leaf from running away when its curvature vanishes
       (a softmax that has found its first positives, a pair that is hopelessly the wrong way round).
    2. Both are multiplied by one number, so that the Hessian adds up to :math:`n p (1 - p)`, what it
       is for a logistic loss at the base rate p: close to the number of positives when they are
       rare. (With several grades, half the chance that two rows differ takes the place of p (1 - p).)

    Parameters
    ----------
    gradient, hessian : ndarray of shape (n_rows,)
    y : array-like of shape (n_rows,)
        Labels 0 and 1, or grades.
    sample_weight : array-like of shape (n_rows,), optional
    dtype : dtype, default=numpy.float64
        Of the result; trees work in float32.
    floor : float, default=0.0
        Least Hessian of a row, as a part of the mean Hessian.

    Returns
    -------
    gradient, hessian : ndarray of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> g, h = scale_for_trees(np.array([-1e-6, 5e-7, 5e-7]), np.full(3, 1e-9), [1, 0, 0])
    >>> g.round(6).tolist(), h.round(6).tolist()
    ([-0.333333, 0.166667, 0.166667], [0.333333, 0.166667, 0.166667])
    """
    gradient, hessian = np.ascontiguousarray(gradient), np.ascontiguousarray(hessian)
    total, target = _raised_total(gradient, hessian), _logistic_total(y, sample_weight)
    factor = target / total if total > 0 and target > 0 else 1.0
    factor = factor if np.isfinite(factor) else 1.0
    least = max(floor * factor * total / max(len(gradient), 1), _LEAST_FLOAT32 if floor else 0.0)
    scaled = np.empty(len(gradient), dtype), np.empty(len(gradient), dtype)
    _scale(gradient, hessian, factor, least, *scaled)
    return scaled


@njit(cache=True, nogil=True, fastmath=LANES)
def _raised_total(gradient, hessian):
    """Return the sum of the Hessians, raised so that no row wants a step above 1."""
    total = 0.0
    for i in range(len(hessian)):
        total += max(hessian[i], abs(gradient[i]))
    return total


@njit(cache=True, nogil=True, fastmath=LANES)
def _scale(gradient, hessian, factor, least, scaled_gradient, scaled_hessian):
    """Fill in both, raised and multiplied by `factor`."""
    for i in range(len(hessian)):
        scaled_gradient[i] = factor * gradient[i]
        scaled_hessian[i] = max(factor * max(hessian[i], abs(gradient[i])), least)


def _logistic_total(y: Any, sample_weight: Any) -> float:
    """Return the sum of the logistic Hessian at the base rate, n p (1 - p), or its like for grades."""
    labels = np.ascontiguousarray(y, dtype=np.float64)
    weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, np.float64)
    total, positive, highest = _label_totals(labels, weight)
    if total <= 0:
        return 0.0
    if highest > 1:
        codes = labels.astype(np.int64)
        if highest > 65_535:
            codes = np.unique(codes, return_inverse=True)[1]
        shares = np.bincount(codes, weight) / total
        return 0.5 * total * float(1.0 - shares @ shares)
    return positive * (total - positive) / total


@njit(cache=True, nogil=True, fastmath=LANES)
def _label_totals(labels, weight):
    """Return the weight of all rows and of those above label 0, and the highest label; in one pass."""
    total = positive = highest = 0.0
    for i in range(len(labels)):
        w = 1.0
        if weight is not None:
            w = weight[i]
        total += w
        positive += w if labels[i] > 0 else 0.0
        highest = max(highest, labels[i])
    return total, positive, highest
