"""Objectives in the forms that other libraries ask for: people keep the learner they have.

Trees get gradients and Hessians rescaled by `scale_for_trees`; PyTorch gets the plain loss.
Nothing here imports a library before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.validation import check_choice

__all__ = ["LibraryAdapters"]

Pair = tuple[np.ndarray, np.ndarray]
_APIS = ("native", "sklearn")


class LibraryAdapters:
    """The methods of an objective that hand it to another library."""

    def for_xgboost(self, api: str = "native") -> Callable[..., Pair]:
        """Return this objective for XGBoost.

        Parameters
        ----------
        api : {"native", "sklearn"}
            "native" for `xgboost.train(..., obj=...)`, with the weights and query groups of the
            DMatrix (weights given for whole groups weigh queries); "sklearn" for
            `XGBRegressor(objective=...)`.
        """

        def native(scores: np.ndarray, matrix: Any) -> Pair:
            bounds = matrix.get_uint_info("group_ptr")
            sizes = np.diff(bounds.astype(np.int64)) if len(bounds) else None
            return _gradient_hessian(self, matrix.get_label(), scores, matrix.get_weight(), sizes)

        def sklearn(y: np.ndarray, scores: np.ndarray, sample_weight: Any = None) -> Pair:
            return _gradient_hessian(self, y, scores, sample_weight)

        check_choice(api, "api", _APIS)
        return native if api == "native" else sklearn

    def for_lightgbm(self, api: str = "native") -> Callable[..., Pair]:
        """Return this objective for LightGBM.

        Parameters
        ----------
        api : {"native", "sklearn"}
            "native" for `lightgbm.train({"objective": ...}, ...)`, with the weights and groups of the
            Dataset; "sklearn" for `LGBMRegressor(objective=...)`.
        """

        def native(scores: np.ndarray, data: Any) -> Pair:
            return _gradient_hessian(
                self, data.get_label(), scores, data.get_weight(), data.get_group()
            )

        def sklearn(
            y: np.ndarray, scores: np.ndarray, weight: Any = None, group: Any = None
        ) -> Pair:
            return _gradient_hessian(self, y, scores, weight, group)

        check_choice(api, "api", _APIS)
        return native if api == "native" else sklearn

    def for_catboost(self: Any) -> Any:
        """Return this objective for `CatBoost(loss_function=...)`; pointwise objectives only."""
        if not self.pointwise:
            raise ValueError(
                f"{self.name} needs the whole list of scores, but CatBoost hands a custom objective "
                "blocks of rows; use a pointwise objective (logistic), or for_xgboost, for_lightgbm or "
                "GradientBoostingRanker for this one"
            )
        return _CatBoostObjective(self)

    def for_torch(self: Any) -> Callable[..., Any]:
        """Return `loss(scores, y, sample_weight=None, qid=None)`, differentiable in PyTorch."""
        try:
            import torch
        except ImportError as error:
            raise ImportError("for_torch needs PyTorch: pip install torch") from error
        objective = self

        class RankingLoss(torch.autograd.Function):
            @staticmethod
            def forward(context: Any, scores: Any, y: Any, sample_weight: Any, qid: Any) -> Any:
                rows = scores.detach().double().reshape(-1).cpu().numpy()
                extra = {"sample_weight": _as_array(sample_weight), "qid": _as_array(qid)}
                labels = _as_array(y)
                gradient, _ = objective.gradient_hessian(labels, rows, **extra)
                saved = torch.as_tensor(gradient, dtype=scores.dtype, device=scores.device)
                context.save_for_backward(saved.reshape(scores.shape))
                return scores.new_tensor(objective.loss(labels, rows, **extra))

            @staticmethod
            def backward(context: Any, outer: Any) -> tuple[Any, None, None, None]:
                (gradient,) = context.saved_tensors
                return outer * gradient, None, None, None

        def loss(scores: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Any:
            return RankingLoss.apply(scores, y, sample_weight, qid)

        return loss


class _CatBoostObjective:
    """First and second derivatives of minus the loss, row by row, as CatBoost maximises."""

    no_jit = True  # CatBoost would try to compile the method below, and warn that it cannot

    def __init__(self, objective: Any) -> None:
        self.objective = objective

    def calc_ders_range(
        self, approxes: Any, targets: Any, weights: Any
    ) -> list[tuple[float, float]]:
        gradient, hessian = self.objective.gradient_hessian(
            np.asarray(targets),
            np.asarray(approxes),
            sample_weight=None if weights is None else np.asarray(weights),
        )
        return list(zip((-gradient).tolist(), (-hessian).tolist(), strict=True))


def _as_array(values: Any) -> np.ndarray | None:
    """Turn a tensor or anything array-like into a flat array (None stays None)."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return None if values is None else np.asarray(values).reshape(-1)


def _gradient_hessian(
    objective: Any, y: Any, scores: Any, weight: Any, group_sizes: Any = None
) -> Pair:
    """Return rescaled gradient and Hessian from a library's idea of weights and groups.

    Weights come one for each row, or one for each group; the latter weigh whole queries.
    """
    from toprank.objectives.base import ScoredList

    qid = None if group_sizes is None else np.repeat(np.arange(len(group_sizes)), group_sizes)
    weight = None if weight is None or len(weight) == 0 else np.asarray(weight, dtype=np.float64)
    by_group = qid is not None and weight is not None and len(weight) == len(group_sizes) != len(y)
    rows = ScoredList.of(y, scores, None if by_group else weight, qid, graded=objective.graded)
    gradient, hessian = objective.scaled_gradient_hessian(rows)
    if by_group:
        return gradient * weight[qid], hessian * weight[qid]
    return gradient, hessian
