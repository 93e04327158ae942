"""Objectives in the forms that other libraries ask for: people keep the learner they have.

Trees get gradients and Hessians rescaled by `scale_for_trees`; PyTorch gets the plain loss.
Nothing here imports a library before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from toprank.objectives.base import Objective

__all__ = ["for_catboost", "for_lightgbm", "for_torch", "for_xgboost"]

Pair = tuple[np.ndarray, np.ndarray]


def for_xgboost(objective: Objective, api: str = "native") -> Callable[..., Pair]:
    """Return what `xgboost.train(obj=...)` takes, or `XGBRegressor(objective=...)` with "sklearn"."""

    def native(scores: np.ndarray, matrix: Any) -> Pair:
        weight = matrix.get_weight()
        bounds = matrix.get_uint_info("group_ptr")
        sizes = np.diff(bounds.astype(np.int64)) if len(bounds) else None
        return _gradient_hessian(objective, matrix.get_label(), scores, weight, sizes)

    def sklearn(y: np.ndarray, scores: np.ndarray, sample_weight: Any = None) -> Pair:
        return _gradient_hessian(objective, y, scores, sample_weight, None)

    return _choose(api, native, sklearn)


def for_lightgbm(objective: Objective, api: str = "native") -> Callable[..., Pair]:
    """Return what `lightgbm.train({"objective": ...})` takes, or `LGBMRegressor` with "sklearn"."""

    def native(scores: np.ndarray, data: Any) -> Pair:
        return _gradient_hessian(
            objective, data.get_label(), scores, data.get_weight(), data.get_group()
        )

    def sklearn(y: np.ndarray, scores: np.ndarray, weight: Any = None, group: Any = None) -> Pair:
        return _gradient_hessian(objective, y, scores, weight, group)

    return _choose(api, native, sklearn)


def for_catboost(objective: Objective) -> Any:
    """Return an object for `CatBoost(loss_function=...)`; for losses of single rows only."""
    if not objective.pointwise:
        raise ValueError(
            f"{objective.name} needs the whole list of scores, but CatBoost hands a custom objective "
            "blocks of rows; use a pointwise objective (logistic), or for_xgboost, for_lightgbm or "
            "GradientBoostingRanker for this one"
        )
    return _CatBoostObjective(objective)


class _CatBoostObjective:
    """First and second derivatives of minus the loss, row by row, as CatBoost maximises."""

    no_jit = True  # CatBoost would try to compile the method below, and warn that it cannot

    def __init__(self, objective: Objective) -> None:
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


def for_torch(objective: Objective) -> Callable[..., Any]:
    """Return `loss(scores, y, sample_weight=None, qid=None)` for PyTorch: a differentiable scalar."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("for_torch needs PyTorch: pip install torch") from error

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


def _choose(api: str, native: Callable[..., Pair], sklearn: Callable[..., Pair]) -> Any:
    forms = {"native": native, "sklearn": sklearn}
    if api not in forms:
        raise ValueError(f"api must be 'native' or 'sklearn', not {api!r}")
    return forms[api]


def _as_array(values: Any) -> np.ndarray | None:
    """Turn a tensor or anything array-like into a flat array (None stays None)."""
    if values is None:
        return None
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values).reshape(-1)


def _gradient_hessian(
    objective: Objective, y: Any, scores: Any, weight: Any, group_sizes: Any
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
