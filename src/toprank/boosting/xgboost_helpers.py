"""XGBoost helpers: import, parameters, matrices, predictions, scaled leaves, SHAP values, workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

from toprank.boosting.settings import Settings
from toprank.columns import Columns
from toprank.exchange import Exchange
from toprank.parallel import hold_openmp_after_fork, is_forked, thread_count

__all__ = [
    "Workers",
    "booster_parameters",
    "column_types",
    "cut_points",
    "external_matrix",
    "matrix_margin",
    "predict_margin",
    "quantile_matrix",
    "require_xgboost",
    "row_matrix",
    "scale_leaves",
    "shap_values",
    "without_lost_threads",
]


GROWTH = {"depth": "depthwise", "leaf": "lossguide"}
_SKETCHED_COLUMNS = 16  # at once, where memory is scarce
MAX_ONE_HOT = 10  # categories of a column that are split off one by one; of more, in subsets


def require_xgboost(submodule: str = "") -> Any:
    """Import XGBoost, or one of its submodules such as "dask"; or say how to install it."""
    hold_openmp_after_fork()
    try:
        return import_module(f"xgboost.{submodule}" if submodule else "xgboost")
    except ImportError as error:
        raise ImportError(
            "boosted trees need XGBoost: install toprank[cpu] (small, no GPU code) "
            "or toprank[gpu], not both"
        ) from error


def booster_parameters(ranker: Any, settings: Settings, seed: int) -> dict[str, Any]:
    """Return XGBoost's parameters for a ranker whose columns are known.

    The gradients are ours, so the objective named here only says that there is one score for each row.
    """
    newton = ranker.step == "newton"
    parameters = {
        "objective": "reg:squarederror",
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "seed": seed,
        "eta": settings.learning_rate
        if newton
        else 1.0,  # a line search scales the leaves at the end
        "tree_method": "hist",
        "grow_policy": GROWTH[ranker.growth],
        "max_depth": ranker.max_depth,
        "max_leaves": settings.max_leaves,
        "min_child_weight": settings.min_child_weight,
        "gamma": ranker.min_split_gain,
        "lambda": settings.reg_lambda,
        "alpha": ranker.reg_alpha,
        "max_delta_step": ranker.max_leaf_step if newton else 0.0,
        "colsample_bytree": ranker.colsample_bytree,
        "colsample_bynode": settings.colsample_bynode,
        "max_bin": ranker.max_bins,
        "max_cat_to_onehot": MAX_ONE_HOT + 1,
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
    """Return what a DMatrix needs to know about the columns: which are categories, if any.

    XGBoost reads the types anew each round, which takes time where columns are many.
    """
    if not columns.is_category.any():
        return {}
    kinds = ["c" if c else "q" for c in columns.is_category]
    return {"feature_types": kinds, "enable_categorical": True}


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


def cut_points(
    X: np.ndarray,
    columns: Columns,
    *,
    max_bin: int,
    sample_weight: np.ndarray | None = None,
    n_jobs: int | None = None,
) -> np.ndarray:
    """Return a table of few rows that XGBoost bins at the quantiles of `X`, to be the `reference` of others.

    XGBoost's sketches of all columns at once would take up to several megabytes a column: here a few columns at
    a time go through them. The cut points found are the rows of the table: all of them distinct, and few
    enough that each is a cut point again. Every category has a row.
    """
    found: list[np.ndarray] = []
    for start in range(0, X.shape[1], _SKETCHED_COLUMNS):
        block = require_xgboost().QuantileDMatrix(
            np.ascontiguousarray(X[:, start : start + _SKETCHED_COLUMNS]),
            weight=sample_weight,
            max_bin=max_bin,
            nthread=thread_count(n_jobs),
        )
        ends, values = block.get_quantile_cut()
        found += [_lowest_and_cuts(bounds) for bounds in np.split(values, ends[1:-1])]
    for j, categories in enumerate(columns.categories):
        if categories is not None and columns.is_category[j]:
            found[j] = np.arange(len(categories), dtype=np.float32)
    rows = np.full((max(map(len, found)), len(found)), np.nan, np.float32)
    for j, cuts in enumerate(found):
        rows[: len(cuts), j] = cuts
    return rows


def _lowest_and_cuts(bounds: np.ndarray) -> np.ndarray:
    """Return the values that lie in the bins with these bounds, one in each.

    They are the lower bounds. That of the first bin is below all values: in newer versions of XGBoost it is
    minus infinity, which no matrix may hold, and in older ones so far below that a column of a single value
    would lose it. Then the number just below the next bound stands for it.
    """
    values = bounds[:-1].copy()
    if len(values) == 1 or np.isneginf(values[0]):
        values[0] = np.nextafter(bounds[1], np.float32(-np.inf))
    return values


def external_matrix(
    batches: Callable[[], Iterator[np.ndarray]],
    columns: Columns,
    reference: Any,
    *,
    max_bin: int,
    cache: str,
    n_jobs: int | None = None,
) -> Any:
    """Bin rows that come in batches as `reference` is, and keep them in files that start with `cache`."""
    types = column_types(columns)

    class Batches(require_xgboost().DataIter):  # type: ignore[misc]
        """Hand one batch after the other to XGBoost, as often as it wants them."""

        def __init__(self) -> None:
            self._left: Iterator[np.ndarray] = iter(())
            super().__init__(cache_prefix=cache)
            self.reset()

        def next(self, input_data: Callable[..., Any]) -> bool:
            batch = next(self._left, None)
            if batch is not None:
                input_data(data=batch, feature_types=types.get("feature_types"))
            return batch is not None

        def reset(self) -> None:
            self._left = batches()

    return require_xgboost().ExtMemQuantileDMatrix(
        Batches(),
        max_bin=max_bin,
        ref=reference,
        nthread=thread_count(n_jobs),
        enable_categorical=types.get("enable_categorical", False),
    )


def row_matrix(X: Any, binned: Any) -> Any:
    """Return the matrix to score training rows with: the binned one, but for sparse data its rows.

    A binned sparse matrix is searched for every cell, which takes several times as long.
    """
    return _matrix(_without_zeros(X)) if sparse.issparse(X) else binned


def _matrix(X: Any, **options: Any) -> Any:
    """Return rows as XGBoost's matrix, made by all threads that there may be."""
    return require_xgboost().DMatrix(X, nthread=thread_count(None), **options)


def without_lost_threads(booster: Any) -> Any:
    """Return a booster that does not wait for threads that a fork has left behind."""
    if is_forked():
        booster.set_param({"nthread": 1})
    return booster


def predict_margin(booster: Any, X: Any, rounds: tuple[int, int] = (0, 0)) -> np.ndarray:
    """Return the sum of the leaves of a range of rounds (all of them by default) for checked rows."""
    if X.shape[0] == 0:
        return np.zeros(0)
    margin = without_lost_threads(booster).inplace_predict(
        _without_zeros(X), predict_type="margin", iteration_range=rounds, validate_features=False
    )
    return np.asarray(margin, dtype=np.float64)


def matrix_margin(booster: Any, matrix: Any, rounds: tuple[int, int] = (0, 0)) -> np.ndarray:
    """Return the sum of the leaves of a range of rounds (all of them by default) for the rows of a matrix."""
    margin = booster.predict(matrix, output_margin=True, iteration_range=rounds)
    return margin.reshape(-1)  # no rows may come as a table without columns


def shap_values(boosters: list[Any], weights: np.ndarray, columns: Columns, X: Any) -> np.ndarray:
    """Return what each column adds to the weighted margins of checked rows, and last the constant part."""
    matrix = _matrix(X, **column_types(columns))
    values = np.zeros((X.shape[0], X.shape[1] + 1))
    for booster, weight in zip(boosters, weights, strict=True):
        values += weight * without_lost_threads(booster).predict(matrix, pred_contribs=True)
    return values


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


class Workers(Exchange):
    """The workers that have joined XGBoost's communicator in this process.

    Attributes
    ----------
    bytes_sent : int
        Size of the arrays that this worker has put in, so far.
    """

    def __init__(self) -> None:
        self._collective = require_xgboost("collective")
        self.rank = int(self._collective.get_rank())
        self.size = int(self._collective.get_world_size())
        self.bytes_sent = 0

    def combine(self, array: np.ndarray, how: str) -> np.ndarray:
        """Return the elementwise "sum", "min" or "max" of an array over the workers."""
        array = np.ascontiguousarray(array, dtype=np.float64)
        self.bytes_sent += array.nbytes
        operation = self._collective.Op[how.upper()]
        return self._collective.allreduce(array, operation).reshape(array.shape)
