"""Settings of the trees: those that depend on the number of rows, and all of them in XGBoost's words.

The automatic ones were chosen by `experiments.defaults`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from toprank.parallel import thread_count

__all__ = ["automatic_leaves", "automatic_penalty", "automatic_rate", "booster_parameters"]

GROWTH = {"depth": "depthwise", "leaf": "lossguide"}

_FEW_ROWS = 2_000


def automatic_rate(n_rows: int) -> float:
    """Return the learning rate for a number of training rows: 0.05 to 500 rows, 0.3 from 20,000 on.

    Examples
    --------
    >>> [round(automatic_rate(n), 3) for n in (100, 5_000, 1_000_000)]
    [0.05, 0.153, 0.3]
    """
    share = np.log(n_rows / 500) / np.log(40)
    return float(0.05 * 6 ** np.clip(share, 0, 1))


def automatic_leaves(n_rows: int) -> int:
    """Return the most leaves of a tree: 16 below 2,000 training rows, 31 from there on."""
    return 16 if n_rows < _FEW_ROWS else 31


def automatic_penalty(n_rows: int) -> float:
    """Return the L2 penalty on leaf values: 1 below 2,000 training rows, 5 from there on."""
    return 1.0 if n_rows < _FEW_ROWS else 5.0


def booster_parameters(ranker: Any, n_rows: int, seed: int) -> dict[str, Any]:
    """Return XGBoost's parameters for a ranker whose columns are known.

    The gradients are ours, so the objective named here only says that there is one score for each row.
    """
    newton = ranker.step == "newton"
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
        "max_leaves": automatic_leaves(n_rows) if leaves is None else leaves,
        "min_child_weight": ranker.min_child_weight,
        "gamma": ranker.min_split_gain,
        "lambda": automatic_penalty(n_rows) if penalty is None else penalty,
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
        parameters["monotone_constraints"] = _monotone(ranker)
    if ranker.interaction_constraints is not None:
        groups = [
            [_position(ranker, column) for column in group]
            for group in ranker.interaction_constraints
        ]
        parameters["interaction_constraints"] = json.dumps(groups)
    return parameters


def _monotone(ranker: Any) -> tuple[int, ...]:
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
    if isinstance(column, str):
        if column not in names:
            raise ValueError(
                f"a constraint names column {column!r}; the data has {', '.join(names)}"
            )
        return names.index(column)
    if not 0 <= column < len(names):
        raise ValueError(f"a constraint names column {column}; there are {len(names)}")
    return int(column)
