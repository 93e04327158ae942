"""What an objective is: a surrogate loss of a list of scores, its gradient and its Hessian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numba import njit

from toprank.objectives import adapters
from toprank.objectives.scaling import LEAST, scale_for_trees

__all__ = ["Objective", "Rows", "checked_rows", "present_rows", "scaled_slopes"]

FloatArray = np.ndarray

_FLOOR = 1e-12
_LEAST = 1e-290
_LEAST_WEIGHT = 1e-100
_LEAST_FLOAT32 = np.float32(LEAST)


@dataclass(frozen=True)
class Rows:
    """Checked input of an objective: labels, scores, weights (copies of a row) and queries."""

    y: FloatArray
    scores: FloatArray
    weight: FloatArray | None
    qid: np.ndarray | None

    def weighted(self, values: FloatArray) -> FloatArray:
        """Multiply one value for each row by the weights."""
        return values if self.weight is None else values * self.weight

    def at(self, scores: FloatArray, where: np.ndarray | None = None) -> Rows:
        """These rows, or those at some places, with other scores (by row, before any are left out)."""
        if where is None:
            return Rows(self.y, _finite(scores), self.weight, self.qid)
        return Rows(
            self.y[where],
            _finite(scores[where]),
            None if self.weight is None else self.weight[where],
            None if self.qid is None else self.qid[where],
        )


def checked_rows(
    y: Any, scores: Any, sample_weight: Any = None, qid: Any = None, *, graded: bool = False
) -> Rows:
    """Turn raw input into `Rows`, or say what is wrong with it."""
    scores, labels = _plain_array(scores), _plain_array(y)
    if len(labels) != len(scores):
        raise ValueError(f"y has {len(labels)} rows but scores has {len(scores)}; give one of each")
    scores = _finite(scores)
    _check_labels(labels, graded)
    weight = None
    if sample_weight is not None:
        weight = _plain_array(sample_weight)
        if len(weight) != len(scores):
            raise ValueError(f"sample_weight has {len(weight)} rows but scores has {len(scores)}")
        if not np.isfinite(weight.sum()) or (len(weight) and weight.min() < 0):
            raise ValueError("sample_weight must be finite and at least 0")
    if qid is not None:
        qid = np.asarray(qid).ravel()
        if len(qid) != len(scores):
            raise ValueError(f"qid has {len(qid)} rows but scores has {len(scores)}")
    return Rows(labels, scores, weight, qid)


def _finite(scores: FloatArray) -> FloatArray:
    if not np.isfinite(scores.sum()) and not np.isfinite(scores).all():
        raise ValueError("scores contain NaN or infinity; objectives need finite scores")
    return scores


def _plain_array(values: Any) -> FloatArray:
    """A flat float64 array; read-only ones (pandas') are copied, or kernels would compile anew."""
    return np.require(values, np.float64, ["C", "W"]).ravel()


def _check_labels(labels: FloatArray, graded: bool) -> None:
    if graded:
        if len(labels) and not (
            labels.min() >= 0 and labels.max() < 2**31 and np.array_equal(np.floor(labels), labels)
        ):
            raise ValueError("y must hold relevance grades: whole numbers, 0 or more")
    elif not _is_binary(labels):
        raise ValueError(
            "y must hold 0 (negative) and 1 (positive) only; "
            "graded relevance needs a graded objective such as lambda_ndcg"
        )


@njit(cache=True, nogil=True)
def _is_binary(labels):
    for label in labels:  # noqa: SIM110 - compiled
        if not (label == 0.0 or label == 1.0):
            return False
    return True


def present_rows(rows: Rows) -> tuple[Rows, np.ndarray | None]:
    """Leave out the rows of weight 0; also say where the others were (None: everywhere).

    A weight too small to divide by is taken for 0.
    """
    if rows.weight is None or len(rows.weight) == 0 or rows.weight.min() > _LEAST_WEIGHT:
        return rows, None
    where = np.flatnonzero(rows.weight > _LEAST_WEIGHT)
    return rows.at(rows.scores, where), where


def _spread(values: FloatArray, where: np.ndarray, n_rows: int) -> FloatArray:
    result = np.zeros(n_rows, values.dtype)
    result[where] = values
    return result


def _floored(hessian: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Lift the Hessian of every row just above 0, so that no division by it can fail."""
    floor = max(_FLOOR * float(hessian.mean()), _LEAST)
    least = floor if weight is None else np.maximum(floor * weight, _LEAST)
    return np.maximum(hessian, least, out=hessian)


def scaled_slopes(
    gradient: FloatArray, hessian: FloatArray, rows: Rows
) -> tuple[FloatArray, FloatArray]:
    """Rescale the slopes of rows, in whatever order, for trees."""
    return scale_for_trees(gradient, hessian, rows.y, rows.weight, dtype=np.float32, floor=_FLOOR)


@dataclass(frozen=True)
class Objective(ABC):
    """Base of all objectives: frozen parameters, pure functions of labels and scores.

    A subclass sets the class attributes and writes `_loss` and `_gradient_hessian` of checked
    `Rows`. The gradient is the exact gradient of `loss` (to be minimised); the Hessian is a
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
    """

    name: ClassVar[str] = ""
    summary: ClassVar[str] = ""
    graded: ClassVar[bool] = False
    pointwise: ClassVar[bool] = False
    by_rank: ClassVar[bool] = False

    def loss(self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None) -> float:
        """Return the loss of `scores` (lower is better)."""
        rows, _ = present_rows(checked_rows(y, scores, sample_weight, qid, graded=self.graded))
        return float(self._loss(rows)) if len(rows.y) else 0.0

    def gradient_hessian(
        self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of `loss` and a positive diagonal majorant of its Hessian.

        Rows of weight 0 get 0 and 0.
        """
        rows = checked_rows(y, scores, sample_weight, qid, graded=self.graded)
        present, where = present_rows(rows)
        if len(present.y) == 0:
            return np.zeros(len(rows.y)), np.zeros(len(rows.y))
        gradient, hessian = self._gradient_hessian(present)
        hessian = _floored(hessian, present.weight)
        if where is None:
            return gradient, hessian
        return _spread(gradient, where, len(rows.y)), _spread(hessian, where, len(rows.y))

    def tree_gradient_hessian(
        self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return gradient and Hessian rescaled for Newton trees (see `scale_for_trees`), in float32."""
        return self.slopes_for_trees(
            checked_rows(y, scores, sample_weight, qid, graded=self.graded)
        )

    def slopes_for_trees(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """The same of rows that have been checked: labels and weights stay as they are while trees grow."""
        present, where = present_rows(rows)
        if len(present.y) == 0:
            return np.zeros(len(rows.y), np.float32), np.zeros(len(rows.y), np.float32)
        gradient, hessian = self._slopes_for_trees(present)
        if where is None:
            return gradient, hessian
        return _spread(gradient, where, len(rows.y)), _spread(hessian, where, len(rows.y))

    def _slopes_for_trees(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        gradient, hessian = self._gradient_hessian(rows)
        if not self.pointwise:
            return scaled_slopes(gradient, hessian, rows)
        return gradient.astype(np.float32), np.maximum(hessian.astype(np.float32), _LEAST_FLOAT32)

    def freeze(
        self, y: Any, scores: Any, *, sample_weight: Any = None, qid: Any = None
    ) -> Callable[[Any], float]:
        """Return the function of scores whose gradient at `scores` is `gradient_hessian`'s.

        For a smooth objective this is `loss` itself; for one that weighs pairs by the ranks of the
        moment, those ranks stay as they are at `scores`.
        """
        return lambda moved: self.loss(y, moved, sample_weight=sample_weight, qid=qid)

    def for_xgboost(self, api: str = "native") -> Callable[..., tuple[FloatArray, FloatArray]]:
        """Return this objective for XGBoost.

        Parameters
        ----------
        api : {"native", "sklearn"}
            "native" for `xgboost.train(..., obj=...)`, with the weights and query groups of the
            DMatrix (weights given for whole groups weigh queries); "sklearn" for
            `XGBRegressor(objective=...)`.
        """
        return adapters.for_xgboost(self, api)

    def for_lightgbm(self, api: str = "native") -> Callable[..., tuple[FloatArray, FloatArray]]:
        """Return this objective for LightGBM.

        Parameters
        ----------
        api : {"native", "sklearn"}
            "native" for `lightgbm.train({"objective": ...}, ...)`, with the weights and groups of the
            Dataset; "sklearn" for `LGBMRegressor(objective=...)`.
        """
        return adapters.for_lightgbm(self, api)

    def for_catboost(self) -> Any:
        """Return this objective for `CatBoost(loss_function=...)`; pointwise objectives only."""
        return adapters.for_catboost(self)

    def for_torch(self) -> Callable[..., Any]:
        """Return `loss(scores, y, sample_weight=None, qid=None)`, differentiable in PyTorch."""
        return adapters.for_torch(self)

    @abstractmethod
    def _loss(self, rows: Rows) -> float:
        """The loss of checked rows."""

    @abstractmethod
    def _gradient_hessian(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Gradient and Hessian of checked rows, in their order."""
