"""XGBoost helpers: import, matrices, predictions, scaled leaves, SHAP values."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from toprank.columns import Columns
from toprank.parallel import thread_count

__all__ = [
    "column_types",
    "predict_margin",
    "quantile_matrix",
    "require_xgboost",
    "row_matrix",
    "scale_leaves",
    "shap_values",
]


def require_xgboost(submodule: str = "") -> Any:
    """Import XGBoost, or one of its submodules such as "dask"; or say how to install it."""
    try:
        return import_module(f"xgboost.{submodule}" if submodule else "xgboost")
    except ImportError as error:
        raise ImportError(
            "boosted trees need XGBoost: install toprank[cpu] (small, no GPU code) "
            "or toprank[gpu], not both"
        ) from error


def column_types(columns: Columns) -> dict[str, Any]:
    """Return what a DMatrix needs to know about the columns: which are categories."""
    return {
        "feature_types": ["c" if c else "q" for c in columns.is_category],
        "enable_categorical": bool(columns.is_category.any()),
    }


def quantile_matrix(
    X: Any,
    columns: Columns,
    *,
    max_bin: int,
    sample_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    reference: Any = None,
) -> Any:
    """Bin the rows of a checked matrix (absent entries of a sparse one count as missing).

    The weights only shape the bins: with custom gradients XGBoost uses them for nothing else.
    """
    return require_xgboost().QuantileDMatrix(
        _without_zeros(X),
        weight=sample_weight,
        max_bin=max_bin,
        nthread=thread_count(n_jobs),
        ref=reference,
        **column_types(columns),
    )


def row_matrix(X: Any, binned: Any) -> Any:
    """Return the matrix to score training rows with: the binned one, but for sparse data its rows.

    A binned sparse matrix is searched for every cell, which takes several times as long.
    """
    return require_xgboost().DMatrix(_without_zeros(X)) if sparse.issparse(X) else binned


def predict_margin(booster: Any, X: Any, rounds: tuple[int, int] = (0, 0)) -> np.ndarray:
    """Return the sum of the leaves of a range of rounds (all of them by default) for checked rows."""
    if X.shape[0] == 0:
        return np.zeros(0)
    margin = booster.inplace_predict(
        _without_zeros(X), predict_type="margin", iteration_range=rounds, validate_features=False
    )
    return np.asarray(margin, dtype=np.float64)


def shap_values(boosters: list[Any], columns: Columns, X: Any) -> np.ndarray:
    """Return what each column adds to the mean margin of checked rows, and last the constant part."""
    matrix = require_xgboost().DMatrix(X, **column_types(columns))
    each = [booster.predict(matrix, pred_contribs=True) for booster in boosters]
    return np.asarray(np.mean(each, axis=0, dtype=np.float64))


def scale_leaves(booster: Any, factors: np.ndarray) -> Any:
    """Return a copy of `booster` whose tree t has its leaves multiplied by `factors[t]`.

    In XGBoost's JSON a leaf keeps its value in `split_conditions` and, again, in `base_weights`
    (which SHAP values read at inner nodes too), so both are scaled.
    """
    if np.all(factors == 1):
        return booster
    xgboost = require_xgboost()
    model = json.loads(bytes(booster.save_raw(raw_format="json")))
    trees = model["learner"]["gradient_booster"]["model"]["trees"]
    for tree, factor in zip(trees, factors, strict=True):
        if factor == 1:
            continue
        tree["base_weights"] = [w * float(factor) for w in tree["base_weights"]]
        tree["split_conditions"] = [
            value * float(factor) if left == -1 else value
            for value, left in zip(tree["split_conditions"], tree["left_children"], strict=True)
        ]
    scaled = xgboost.Booster(_run_time_parameters(booster))
    scaled.load_model(bytearray(json.dumps(model).encode()))
    return scaled


def _run_time_parameters(booster: Any) -> dict[str, Any]:
    """Return the run-time parameters that a model file does not keep."""
    config = json.loads(booster.save_config())
    return {"nthread": int(config["learner"]["generic_param"]["nthread"])}


def _without_zeros(X: Any) -> Any:
    """Return a sparse matrix of the class XGBoost knows that stores its non-zero entries and no other."""
    if not sparse.issparse(X):
        return X
    matrix = sparse.csr_matrix(X, copy=bool((X.data == 0).any()))
    matrix.eliminate_zeros()
    return matrix
