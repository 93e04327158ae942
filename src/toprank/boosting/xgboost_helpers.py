"""XGBoost helpers: import, parameters, matrices, predictions, scaled leaves, SHAP values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from toprank.columns import Columns
from toprank.parallel import thread_count

__all__ = [
    "automatic_rate",
    "booster_parameters",
    "column_types",
    "predict_margin",
    "quantile_matrix",
    "require_xgboost",
    "row_matrix",
    "scale_leaves",
    "shap_values",
]


GROWTH = {"depth": "depthwise", "leaf": "lossguide"}

_FEW_ROWS = (
    2_000  # below, trees of 16 leaves; the automatic values were chosen by `experiments.defaults`
)


def require_xgboost(submodule: str = "") -> Any:
    """Import XGBoost, or one of its submodules such as "dask"; or say how to install it."""
    try:
        return import_module(f"xgboost.{submodule}" if submodule else "xgboost")
    except ImportError as error:
        raise ImportError(
            "boosted trees need XGBoost: install toprank[cpu] (small, no GPU code) "
            "or toprank[gpu], not both"
        ) from error


def automatic_rate(n_rows: int) -> float:
    """Return the learning rate for a number of training rows: 0.05 to 500 rows, 0.3 from 20,000 on.

    Examples
    --------
    >>> [round(automatic_rate(n), 3) for n in (100, 5_000, 1_000_000)]
    [0.05, 0.153, 0.3]
    """
    share = np.log(n_rows / 500) / np.log(40)
    return float(0.05 * 6 ** np.clip(share, 0, 1))


def booster_parameters(ranker: Any, n_rows: int, seed: int) -> dict[str, Any]:
    """Return XGBoost's parameters for a ranker whose columns are known.

    The gradients are ours, so the objective named here only says that there is one score for each row.
    """
    newton, few = ranker.step == "newton", n_rows < _FEW_ROWS
    rate = ranker.learning_rate or automatic_rate(n_rows)
    leaves, penalty = ranker.max_leaves, ranker.reg_lambda
    parameters = {
        "objective": "reg:squarederror",
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "seed": seed,
        "eta": rate if newton else 1.0,  # a line search scales the leaves at the end
        "tree_method": "hist",
        "grow_policy": GROWTH[ranker.growth],
        "max_depth": ranker.max_depth,
        "max_leaves": (16 if few else 31) if leaves is None else leaves,
        "min_child_weight": ranker.min_child_weight,
        "gamma": ranker.min_split_gain,
        "lambda": (1.0 if few else 5.0) if penalty is None else penalty,
        "alpha": ranker.reg_alpha,
        "max_delta_step": ranker.max_leaf_step if newton else 0.0,
        "colsample_bytree": ranker.colsample_bytree,
        "colsample_bynode": ranker.colsample_bynode,
        "max_bin": ranker.max_bins,
        "device": ranker.device,
        "nthread": thread_count(ranker.n_jobs),
        "verbosity": 1,
    }
    if ranker.monotone_constraints is not None:
        parameters["monotone_constraints"] = _monotone_signs(ranker)
    if ranker.interaction_constraints is not None:
        groups = [
            [_position(ranker, column) for column in group]
            for group in ranker.interaction_constraints
        ]
        parameters["interaction_constraints"] = json.dumps(groups)
    return parameters


def _monotone_signs(ranker: Any) -> tuple[int, ...]:
    """Return one sign for each column, from a mapping by name or a sequence."""
    given, n_columns = ranker.monotone_constraints, ranker.n_features_in_
    signs = [0] * n_columns
    if isinstance(given, Mapping):
        for column, sign in given.items():
            signs[_position(ranker, column)] = sign
    else:
        signs = list(given)
    if len(signs) != n_columns or not set(signs) <= {-1, 0, 1}:
        raise ValueError(
            f"monotone_constraints needs -1, 0 or 1 for each of the {n_columns} columns, "
            f"or a mapping from column names; got {given!r}"
        )
    return tuple(signs)


def _position(ranker: Any, column: str | int) -> int:
    """Return the index of a column given by name or position."""
    names = ranker.columns_.names
    if column in names:
        return names.index(column)
    if isinstance(column, str) or not 0 <= column < len(names):
        raise ValueError(f"a constraint names column {column!r}; the data has {', '.join(names)}")
    return int(column)


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
    config = json.loads(booster.save_config())  # a model file does not keep the number of threads
    scaled = require_xgboost().Booster(
        {"nthread": int(config["learner"]["generic_param"]["nthread"])}
    )
    scaled.load_model(bytearray(json.dumps(model).encode()))
    return scaled


def _without_zeros(X: Any) -> Any:
    """Return a sparse matrix of the class XGBoost knows that stores its non-zero entries and no other."""
    if not sparse.issparse(X):
        return X
    matrix = sparse.csr_matrix(X, copy=bool((X.data == 0).any()))
    matrix.eliminate_zeros()
    return matrix
