"""Parts of scikit-learn in a model file: the parameters and fitted attributes that each may have.

Scikit-learn trusts its own state: a forest takes room for as many classes as it says it has, names of columns
are made by a format string, an encoder's type sets the size of its cells, a decision tree follows its child
numbers. So a part passes only with parameters that scikit-learn itself would accept, none of them a function,
and with the fitted attributes listed here, whose types and sizes agree with one another.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Any

import numpy as np
from sklearn.utils._param_validation import validate_parameter_constraints

from toprank.persistence.checks import (
    check_threads,
    children_follow,
    is_a,
    is_ascending,
    is_integer,
    require,
)

__all__ = ["check_scikit_learn", "make_tree", "tree_parts"]

MAX_COLUMNS = 2_000_000  # of a step, which need not list their names
MAX_TEXT = 1_000  # characters of a parameter
MAX_ROWS = 2**53
MAX_CLASSES = 10_000

Check = Callable[[Any, Any], Any]  # of the part and the value of one of its attributes

# -- what an attribute may be -------------------------------------------------------------------------


def _of(*types: type) -> Check:
    return lambda _, value: isinstance(value, types)


def _named(*names: str) -> Check:
    """Return a check for an object of a class of one of these names."""
    return lambda _, value: is_a(value, *names)


def _whole(low: int, high: int, *, optional: bool = False) -> Check:
    return lambda _, value: (optional and value is None) or is_integer(value, low, high)


def _array(kinds: str, *sides: str, optional: bool = False) -> Check:
    """Return a check for an array of a kind of type whose sides are named in `_side`."""

    def check(model: Any, value: Any) -> bool:
        if value is None:
            return optional
        fits = isinstance(value, np.ndarray) and value.dtype.kind in kinds
        return fits and value.shape == tuple(_side(model, side) for side in sides)

    return check


def _side(model: Any, name: str) -> int:
    """Return a length: "n" columns, "c" classes, "k" components, "b" outputs of a linear model."""
    if name == "n":
        return model.n_features_in_
    if name == "k":
        return len(model.components_)
    n_classes = len(model.classes_)
    return n_classes if name == "c" or n_classes > 2 else 1


def _list_of(name: str) -> Check:
    def check(_: Any, value: Any) -> bool:
        return type(value) is list and len(value) > 0 and all(is_a(part, name) for part in value)

    return check


_count, _width = _whole(0, MAX_ROWS, optional=True), _whole(0, MAX_COLUMNS)
_number, _flag, _none = _of(float, np.floating), _of(bool, np.bool_), _of(NoneType)
_list, _dict, _dtype = _of(list), _of(dict), _of(np.dtype)
_floats, _per_column = _array("f", "n"), _array("f", "n", optional=True)
_drops = _array("iufbUO", "n", optional=True)


def _divisors(model: Any, value: Any) -> bool:
    return value is None or (
        _floats(model, value) and bool(np.isfinite(value).all() and (value != 0).all())
    )


def _counts(model: Any, value: Any) -> bool:
    """Rows that were seen: a number, or one for each column."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "if":
        return value.shape in ((), (model.n_features_in_,))
    return isinstance(value, (int, float, np.number))


def _text(_: Any, value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _classes(_: Any, value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and 0 < len(value) <= MAX_CLASSES


def _n_classes(model: Any, value: Any) -> bool:
    return is_integer(value, 1, MAX_CLASSES) and int(value) == len(model.classes_)


def _tree(model: Any, tree: Any) -> bool:
    fits = is_a(tree, "Tree") and tree.n_features == model.n_features_in_
    return fits and model.n_outputs_ == 1 and len(model.classes_) == tree.n_classes[0]


def _forest(model: Any, trees: Any) -> bool:
    """Whether all trees are for the columns and classes of their forest."""
    return (
        _list_of(TREES[type(model).__name__])(model, trees)
        and all(tree.n_features_in_ == model.n_features_in_ for tree in trees)
        and all(len(tree.classes_) == len(model.classes_) for tree in trees)
    )


def _category_arrays(model: Any, categories: Any) -> bool:
    fits = type(categories) is list and len(categories) == model.n_features_in_
    return fits and all(
        isinstance(values, np.ndarray) and values.ndim == 1 and len(values) > 0
        for values in categories
    )


def _one_hot(model: Any, categories: Any) -> bool:
    """Whether categories become positions of a sparse matrix that exist; scikit-learn does not look."""
    if not _category_arrays(model, categories):
        return False
    dropped, grouped = vars(model).get("drop_idx_"), vars(model).get("_drop_idx_after_grouping")
    expected = []
    for k, values in enumerate(categories):
        if values.dtype.kind != "O":
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            if not is_ascending(known) or len(values) - len(known) > 1:
                return False
        drop = None if dropped is None else dropped[k]
        if drop != (None if grouped is None else grouped[k]):
            return False
        if drop is not None and not is_integer(drop, 0, len(values) - 1):
            return False
        expected.append(len(values) - (drop is not None))
    return [int(n) for n in model._n_features_outs] == expected


def _missing_codes(model: Any, value: Any) -> bool:
    """Whether each column with a code for missing cells exists, and the code too."""
    return type(value) is dict and all(
        is_integer(column, 0, model.n_features_in_ - 1)
        and is_integer(code, 0, len(model.categories_[column]) - 1)
        for column, code in value.items()
    )


def _places(model: Any, value: Any) -> bool:
    """Whether columns, or those of each step of a ColumnTransformer, exist."""
    return all(
        isinstance(places, (list, np.ndarray))
        and all(is_integer(place, 0, model.n_features_in_ - 1) for place in places)
        for places in (value.values() if type(value) is dict else [value])
    )


def _named_steps(_: Any, value: Any) -> bool:
    """Whether it is a list of tuples: a name, a step or what stands for one, perhaps columns."""
    return type(value) is list and all(
        type(step) is tuple and len(step) in (2, 3) and type(step[0]) is str for step in value
    )


def _strings(_: Any, value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(text, str) for text in value)


def _rising(model: Any, value: Any) -> bool:
    """Whether the curve of an isotonic regression has as many values as places, which ascend."""
    fits = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 1
    same = fits and len(value) == len(model.y_thresholds_) > 0
    return same and bool(np.isfinite(value).all()) and bool((np.diff(value) >= 0).all())


def _features(model: Any, value: Any) -> bool:
    return _array("O", "n")(model, value) and all(type(name) is str for name in value)


# -- the parts ----------------------------------------------------------------------------------------

TREES = {
    "RandomForestClassifier": "DecisionTreeClassifier",
    "ExtraTreesClassifier": "ExtraTreeClassifier",
}
_DECISION_TREE: dict[str, Check] = {
    "classes_": _classes, "n_outputs_": _count, "n_classes_": _n_classes, "max_features_": _count,
    "tree_": _tree,
}  # fmt: skip
_FOREST: dict[str, Check] = {
    "classes_": _classes, "n_outputs_": _whole(1, 1), "n_classes_": _n_classes, "estimators_": _forest,
    "estimator_": _named(*TREES.values()), "?_n_samples": _count, "?_n_samples_bootstrap": _count,
    "?_sample_weight": lambda _, value: value is None or value.dtype.kind in "fi",
    "?oob_score_": _number, "?oob_decision_function_": lambda m, value: value.shape[1:] == m.classes_.shape,
}  # fmt: skip
_LINEAR: dict[str, Check] = {
    "classes_": _classes, "coef_": _array("f", "b", "n"), "intercept_": _array("f", "b"),
    "n_iter_": lambda m, value: isinstance(value, np.ndarray) or _count(m, value),
}  # fmt: skip
_COMPONENTS: dict[str, Check] = {
    "components_": _array("f", "k", "n"), "explained_variance_": _array("f", "k"),
    "explained_variance_ratio_": _array("f", "k"), "singular_values_": _array("f", "k"),
}  # fmt: skip
# Fitted attributes by class; `?` marks those that a fitted part may lack.
FITTED: dict[str, dict[str, Check]] = {
    "Pipeline": {},
    "FeatureUnion": {},
    "ColumnTransformer": {
        "_columns": _list, "_transformer_to_input_indices": _places, "sparse_output_": _flag,
        "_remainder": lambda _, value: type(value) is tuple and len(value) == 3,
        "transformers_": _named_steps,
        "output_indices_": lambda _, value: all(type(part) is slice for part in value.values()),
        "?_n_features": _count,
        "?_name_to_fitted_passthrough": _dict,
    },
    "FunctionTransformer": {},
    "StandardScaler": {
        "n_samples_seen_": _counts, "mean_": _per_column, "var_": _per_column, "scale_": _divisors,
    },
    "MinMaxScaler": {
        "n_samples_seen_": _count, "scale_": _floats, "min_": _floats, "data_min_": _floats,
        "data_max_": _floats, "data_range_": _floats,
    },
    "MaxAbsScaler": {"n_samples_seen_": _count, "max_abs_": _floats, "scale_": _floats},
    "RobustScaler": {"center_": _per_column, "scale_": _per_column},
    "OneHotEncoder": {
        "_infrequent_enabled": lambda _, value: value is False, "categories_": _one_hot,
        "drop_idx_": _drops, "_drop_idx_after_grouping": _drops, "_n_features_outs": _list,
    },
    "OrdinalEncoder": {
        "_infrequent_enabled": lambda _, value: value is False, "categories_": _category_arrays,
        "_missing_indices": _missing_codes,
    },
    "LabelEncoder": {"classes_": _classes},
    "LabelBinarizer": {"y_type_": _text, "sparse_input_": _flag, "classes_": _classes},
    "SimpleImputer": {
        "_fit_dtype": _dtype, "?_fill_dtype": _dtype, "statistics_": _array("fiubO", "n"),
        "indicator_": _named("NoneType", "MissingIndicator"),
    },
    "MissingIndicator": {"_precomputed": _flag, "_n_features": _width, "features_": _places},
    "PCA": {
        "_fit_svd_solver": _text, "mean_": _floats, "noise_variance_": _number, "n_samples_": _count,
        "n_components_": lambda m, value: value == len(m.components_), **_COMPONENTS,
    },
    "TruncatedSVD": _COMPONENTS,
    "VarianceThreshold": {"variances_": _floats},
    "LogisticRegression": _LINEAR,
    "RidgeClassifier": {
        **_LINEAR, "_label_binarizer": _named("LabelBinarizer"), "?solver_": _text,
        "coef_": lambda m, value: _array("f", "b", "n")(m, value) or _floats(m, value),
        "?classes_": _classes,
    },
    "LinearSVC": _LINEAR,
    "GaussianNB": {
        "classes_": _classes, "epsilon_": _number, "theta_": _array("f", "c", "n"),
        "var_": _array("f", "c", "n"), "class_count_": _array("f", "c"), "class_prior_": _array("f", "c"),
    },
    "DecisionTreeClassifier": _DECISION_TREE,
    "ExtraTreeClassifier": _DECISION_TREE,
    "RandomForestClassifier": _FOREST,
    "ExtraTreesClassifier": _FOREST,
    "CalibratedClassifierCV": {
        "classes_": _classes, "calibrated_classifiers_": _list_of("_CalibratedClassifier"),
    },
    "_CalibratedClassifier": {},
    "_SigmoidCalibration": {"a_": _number, "b_": _number},
    "IsotonicRegression": {
        "increasing_": _flag, "X_min_": _number, "X_max_": _number, "X_thresholds_": _rising,
        "y_thresholds_": lambda m, value: value.dtype.kind == "f" and value.shape == m.X_thresholds_.shape,
    },
}  # fmt: skip
# Attributes that any part may have.
COMMON: dict[str, Check] = {
    "n_features_in_": _width, "feature_names_in_": _features, "_sklearn_version": _text,
    "_sklearn_output_config": lambda _, value: set(value.values()) <= {"default", "pandas", "polars", None},
}  # fmt: skip
# Parts that need not know the number of their columns.
WITHOUT_COLUMNS = {
    "Pipeline", "FeatureUnion", "LabelEncoder", "LabelBinarizer", "_CalibratedClassifier",
    "_SigmoidCalibration", "IsotonicRegression", "CalibratedClassifierCV", "FunctionTransformer",
}  # fmt: skip
# Parameters of forests that no signature has: their tree, and the names of its parameters.
EXTRA: dict[str, dict[str, Check]] = {
    name: {"estimator": _named(tree), "estimator_params": _strings} for name, tree in TREES.items()
}
# Parameters that may be less than scikit-learn allows: a file names no function, and no format of a text.
NARROWED: dict[str, dict[str, Check]] = {
    "FunctionTransformer": dict.fromkeys(("func", "inverse_func", "kw_args", "inv_kw_args"), _none),
    "ColumnTransformer": {"verbose_feature_names_out": _flag, "transformers": _named_steps},
    "Pipeline": {"memory": _none, "steps": _named_steps},
    "FeatureUnion": {"transformer_list": _named_steps},
    "OneHotEncoder": {"feature_name_combiner": lambda _, value: value == "concat"},
}
PLAIN = (NoneType, bool, int, float, slice, np.generic, np.dtype, type, np.random.RandomState)


def check_scikit_learn(name: str, model: Any) -> None:
    """Check the parameters and the fitted attributes of a part, before scikit-learn sees them."""
    check_threads(model)
    fitted = {key.removeprefix("?"): check for key, check in FITTED[name].items()}
    # the number of columns comes first
    checks = {**COMMON, **EXTRA.get(name, {}), **fitted}
    state, parameters = vars(model), _check_parameters(name, model)
    unknown = sorted(set(state) - parameters - set(checks))
    require(not unknown, f"a {name} has an unknown attribute {', '.join(unknown)[:80]!r}")
    if set(state) & {"n_features_in_", "feature_names_in_", *fitted}:
        required = {key for key in fitted if f"?{key}" not in FITTED[name]}
        required |= set() if name in WITHOUT_COLUMNS else {"n_features_in_"}
        lacking = sorted(required - set(state))
        require(not lacking, f"a {name} lacks {', '.join(lacking)}")
    for key, check in checks.items():
        if key in state:
            require(check(model, state[key]), f"the {key} of a {name} is not what it should be")


def _check_parameters(name: str, model: Any) -> set[str]:
    """Check that parameters are plain and that scikit-learn would take them; return their names."""
    cls: type = type(model)
    names = _parameters(cls)
    given = {key: value for key, value in vars(model).items() if key in names}
    lacking = sorted(names - set(given))
    require(not lacking, f"a {name} lacks its parameter {', '.join(lacking)[:80]}")
    for key, value in given.items():
        plain = _is_plain(value) and NARROWED.get(name, {}).get(key, lambda *_: True)(model, value)
        require(plain, f"the parameter {key!r} of a {name} is not what it should be")
    constraints = getattr(model, "_parameter_constraints", {})
    validate_parameter_constraints(constraints, given, caller_name=name)
    return names


@cache
def _parameters(cls: type) -> set[str]:
    return set(inspect.signature(cls).parameters)


def _is_plain(value: Any) -> bool:
    """Whether a parameter is data, or a part that was checked itself."""
    if isinstance(value, str):
        return len(value) <= MAX_TEXT
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    if isinstance(value, np.ndarray):
        return True
    return isinstance(value, PLAIN) or hasattr(value, "get_params") or is_a(value, *FITTED)


# -- decision trees -----------------------------------------------------------------------------------


def tree_parts(tree: Any) -> dict[str, Any]:
    """Return the arrays of a tree, one for each field of its nodes."""
    state = tree.__getstate__()
    nodes = state["nodes"]
    return {
        "n_features": int(tree.n_features),
        "n_classes": np.asarray(tree.n_classes).astype(np.int64),
        "max_depth": int(state["max_depth"]),
        "values": np.ascontiguousarray(state["values"]),
        "nodes": {name: np.ascontiguousarray(nodes[name]) for name in nodes.dtype.names},
    }


def make_tree(parts: Any) -> Any:
    """Check the parts of a tree and put it together."""
    names = {"n_features", "n_classes", "max_depth", "values", "nodes"}
    require(isinstance(parts, dict) and set(parts) == names, "a decision tree lacks parts")
    tree_class, dtype = _tree_class()
    given, n_features = parts["nodes"], parts["n_features"]
    known = isinstance(given, dict) and set(given) == set(dtype.names or ())
    require(known, "a decision tree has unknown nodes")
    n_nodes = len(given["left_child"])
    for name, cells in given.items():
        fits = isinstance(cells, np.ndarray) and cells.dtype == dtype[name]
        require(fits and cells.shape == (n_nodes,), f"a decision tree has a damaged field {name!r}")
    _check_tree_sizes(parts, n_nodes)
    linked = children_follow(given["left_child"], given["right_child"])
    require(linked, "a decision tree has a child out of range or a cycle")
    columns = given["feature"][given["left_child"] != -1]
    known = ((columns >= 0) & (columns < n_features)).all()
    require(known, "a decision tree splits on a column that does not exist")
    nodes = np.zeros(n_nodes, dtype=dtype)
    for name, cells in given.items():
        nodes[name] = cells
    tree = tree_class(n_features, parts["n_classes"].astype(np.intp), 1)
    state = {"max_depth": parts["max_depth"], "node_count": n_nodes, "nodes": nodes}
    tree.__setstate__({**state, "values": np.ascontiguousarray(parts["values"])})
    return tree


def _check_tree_sizes(parts: dict[str, Any], n_nodes: int) -> None:
    n_classes, values = parts["n_classes"], parts["values"]
    require(is_integer(parts["n_features"], 1, 2**31 - 1), "a decision tree has no columns")
    depth = n_nodes > 0 and is_integer(parts["max_depth"], 0, n_nodes)
    require(depth, "a decision tree has an impossible depth")
    one = isinstance(n_classes, np.ndarray) and n_classes.shape == (1,)
    possible = one and n_classes.dtype.kind == "i" and 0 < n_classes[0] <= MAX_CLASSES
    require(possible, "a decision tree has an impossible number of classes")
    fits = isinstance(values, np.ndarray) and values.dtype == np.float64
    fits = fits and values.shape == (n_nodes, 1, int(n_classes[0]))
    require(fits, "a decision tree has values of the wrong shape")


@cache
def _tree_class() -> tuple[Any, np.dtype]:
    """Return the class of compiled trees and the type of their nodes, from a tree just grown."""
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1]).tree_
    return type(tree), tree.__getstate__()["nodes"].dtype
