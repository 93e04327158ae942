"""The parameters of GradientBoostingRanker in XGBoost's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toprank.boosting.automatic import automatic_leaves, automatic_penalty

__all__ = ["tree_parameters"]

GROWTH = {"depth": "depthwise", "leaf": "lossguide"}


def tree_parameters(ranker: Any, n_rows: int) -> dict[str, Any]:
    """Return XGBoost's parameters for the trees of a ranker whose columns are known."""
    if ranker.growth not in GROWTH:
        raise ValueError(f"growth must be one of {', '.join(GROWTH)}, got {ranker.growth!r}")
    leaves, penalty = ranker.max_leaves, ranker.reg_lambda
    parameters = {
        "tree_method": "hist",
        "grow_policy": GROWTH[ranker.growth],
        "max_depth": ranker.max_depth,
        "max_leaves": automatic_leaves(n_rows) if leaves is None else leaves,
        "min_child_weight": ranker.min_child_weight,
        "gamma": ranker.min_split_gain,
        "lambda": automatic_penalty(n_rows) if penalty is None else penalty,
        "alpha": ranker.reg_alpha,
        "max_delta_step": ranker.max_leaf_step if ranker.step == "newton" else 0.0,
        "colsample_bytree": ranker.colsample_bytree,
        "colsample_bynode": ranker.colsample_bynode,
        "max_bin": ranker.max_bins,
        "device": ranker.device,
        "nthread": ranker.n_jobs or 0,
        "verbosity": 1,
    }
    if ranker.monotone_constraints is not None:
        parameters["monotone_constraints"] = _monotone(ranker)
    if ranker.interaction_constraints is not None:
        groups = [
            [_position(ranker, column) for column in group]
            for group in ranker.interaction_constraints
        ]
        parameters["interaction_constraints"] = json.dumps(groups)
    return parameters


def _monotone(ranker: Any) -> tuple[int, ...]:
    """One sign for each column, from a mapping by name or a sequence."""
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
    """Index of a column given by name or position."""
    names = ranker.columns_.names
    if isinstance(column, str):
        if column not in names:
            raise ValueError(
                f"a constraint names column {column!r}; the data has {', '.join(names)}"
            )
        return names.index(column)
    if not 0 <= column < len(names):
        raise ValueError(f"a constraint names column {column}; there are {len(names)}")
    return int(column)
