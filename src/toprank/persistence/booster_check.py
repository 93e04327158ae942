"""Boosters of XGBoost, checked in Python before XGBoost sees them.

XGBoost trusts its model files: a child number out of range, a cycle, or a length that does not agree
reads foreign memory or never ends. Only what a booster of this library can be is let through: trees
of one output, hist-grown, over known columns. What is handed on is written anew from the checked
values, so nothing depends on how two parsers read the same text.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np

from toprank.columns import Columns
from toprank.persistence.errors import ModelFileError, require

__all__ = ["check_booster", "make_booster"]

DEEPEST = 1000  # SHAP values descend by recursion in compiled code
LARGEST = 3.4028235e38  # of single precision
ROOT_PARENT = 2**31 - 1
OBJECTIVES = {
    "reg:squarederror": {"reg_loss_param"},
    "binary:logistic": {"reg_loss_param"},
    "reg:logistic": {"reg_loss_param"},
}
FEATURE_TYPES = {"c": {"c"}, "q": {"q", "float", "int", "i"}}
_WHOLE = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

# Arrays of a tree: name -> whether the cells are whole numbers.
NODE_ARRAYS = {
    "base_weights": False,
    "default_left": True,
    "left_children": True,
    "loss_changes": False,
    "parents": True,
    "right_children": True,
    "split_conditions": False,
    "split_indices": True,
    "split_type": True,
    "sum_hessian": False,
}
CATEGORY_ARRAYS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


def make_booster(text: bytes, columns: Columns, threads: int = 0) -> Any:
    """Check a booster over some columns and let XGBoost load it."""
    from toprank.boosting.xgboost_helpers import require_xgboost

    checked = check_booster(text, columns)
    xgboost = require_xgboost()
    # more threads than cores help nobody, and compiled code gives up when it cannot start them
    threads = min(threads, os.cpu_count() or 1)
    booster = xgboost.Booster({"nthread": threads} if threads else None)
    try:
        booster.load_model(bytearray(json.dumps(checked).encode()))
    except xgboost.core.XGBoostError as error:
        line = str(error).strip().splitlines()
        raise ModelFileError(f"XGBoost refuses a booster: {line[-1] if line else ''}") from error
    return booster


def check_booster(text: bytes, columns: Columns) -> dict[str, Any]:
    """Parse and check a booster in XGBoost's JSON form; return what may be handed on.

    Parameters
    ----------
    text : bytes
        What `Booster.save_raw("json")` gives.
    columns : Columns
        The columns the booster was trained on.
    """
    model = json.loads(text)
    _keys(model, {"learner", "version"}, "a booster")
    version = model["version"]
    sane = (
        isinstance(version, list) and len(version) == 3 and all(_whole(v, 0, 999) for v in version)
    )
    require(sane and version[0] >= 2, "a booster has no version")
    learner = model["learner"]
    _keys(
        learner,
        {"attributes", "feature_names", "feature_types", "gradient_booster", "learner_model_param",
         "objective"},
        "a booster",
    )  # fmt: skip
    _check_learner(learner, columns)
    booster = learner["gradient_booster"]
    _keys(booster, {"model", "name"}, "a booster")
    require(
        booster["name"] == "gbtree", f"a booster is of the unknown kind {booster['name']!r:.40}"
    )
    _check_trees(booster["model"], columns)
    return model


def _keys(node: Any, known: set[str], what: str, optional: frozenset[str] = frozenset()) -> None:
    """Check that a part is an object with exactly the known keys."""
    require(isinstance(node, dict), f"{what} is damaged")
    lacking, unknown = sorted(known - set(node)), sorted(set(node) - known - optional)
    require(not lacking, f"{what} lacks {', '.join(lacking)}")
    require(not unknown, f"{what} has unknown parts: {', '.join(unknown)[:80]}")


def _whole(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _text_number(value: Any) -> int:
    """A whole number that XGBoost keeps as text."""
    require(isinstance(value, str) and _WHOLE.fullmatch(value) is not None, "a booster is damaged")
    return int(value)


def _check_learner(learner: dict[str, Any], columns: Columns) -> None:
    """Parameters, objective, attributes, columns."""
    parameters = learner["learner_model_param"]
    known = {"base_score", "boost_from_average", "num_class", "num_feature", "num_target"}
    _keys(parameters, known, "the parameters of a booster")
    n_columns = _text_number(parameters["num_feature"])
    require(
        n_columns == len(columns.names),
        f"a booster has {n_columns} columns where its model has {len(columns.names)}",
    )
    require(_text_number(parameters["boost_from_average"]) <= 1, "a booster is damaged")
    single = parameters["num_class"] == "0" and parameters["num_target"] == "1"
    require(single, "a booster has more than one output")
    score = parameters["base_score"]
    number = isinstance(score, str) and _NUMBER.fullmatch(score.removeprefix("[").removesuffix("]"))
    require(bool(number), "a booster has a damaged base score")
    require(abs(float(score.strip("[]"))) <= LARGEST, "a booster has a damaged base score")
    _check_objective(learner["objective"])
    attributes = learner["attributes"]
    plain = isinstance(attributes, dict) and all(isinstance(v, str) for v in attributes.values())
    require(plain, "a booster has damaged attributes")
    require(learner["feature_names"] in ([], list(columns.names)), "a booster names other columns")
    _check_feature_types(learner["feature_types"], columns)


def _check_objective(objective: Any) -> None:
    require(isinstance(objective, dict), "a booster has no objective")
    name = objective.get("name")
    require(isinstance(name, str) and name in OBJECTIVES, f"unknown objective {name!r:.40}")
    _keys(objective, {"name", *OBJECTIVES[name]}, "the objective of a booster")
    _keys(objective["reg_loss_param"], {"scale_pos_weight"}, "the objective of a booster")
    weight = objective["reg_loss_param"]["scale_pos_weight"]
    require(
        isinstance(weight, str) and _NUMBER.fullmatch(weight) is not None,
        "the objective of a booster is damaged",
    )


def _check_feature_types(types: Any, columns: Columns) -> None:
    require(isinstance(types, list), "a booster has damaged column types")
    if not types:
        require(not columns.is_category.any(), "a booster lacks the types of its columns")
        return
    require(len(types) == len(columns.names), "a booster has too few or too many column types")
    for kind, category in zip(types, columns.is_category, strict=True):
        known = isinstance(kind, str) and kind in FEATURE_TYPES["c" if category else "q"]
        require(known, "a booster has other column types than its model")


def _check_trees(model: Any, columns: Columns) -> None:
    """The forest around the trees, then each tree."""
    known = {"gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
    _keys(model, known, "a booster", optional=frozenset({"cats"}))
    _keys(model["gbtree_model_param"], {"num_parallel_tree", "num_trees"}, "a booster")
    trees, starts, info = model["trees"], model["iteration_indptr"], model["tree_info"]
    require(all(isinstance(part, list) for part in (trees, starts, info)), "a booster is damaged")
    n_trees = _text_number(model["gbtree_model_param"]["num_trees"])
    parallel = _text_number(model["gbtree_model_param"]["num_parallel_tree"])
    require(n_trees == len(trees) == len(info), "a booster has lost trees")
    require(parallel == 1 and starts == list(range(n_trees + 1)), "a booster has damaged rounds")
    require(all(_whole(group, 0, 0) for group in info), "a booster has trees of unknown groups")
    if "cats" in model:
        _keys(model["cats"], {"enc", "feature_segments", "sorted_idx"}, "a booster")
        empty = all(part == [] for part in model["cats"].values())
        require(empty, "a booster keeps categories of its own")
    for number, tree in enumerate(trees):
        _check_tree(tree, number, columns)


def _check_tree(tree: Any, number: int, columns: Columns) -> None:
    what = f"tree {number} of a booster"
    _keys(tree, {"id", "tree_param", *NODE_ARRAYS, *CATEGORY_ARRAYS}, what)
    parameters = tree["tree_param"]
    _keys(parameters, {"num_deleted", "num_feature", "num_nodes", "size_leaf_vector"}, what)
    n_nodes = _text_number(parameters["num_nodes"])
    require(_whole(tree["id"], number, number), f"{what} has another number")
    require(
        parameters["num_deleted"] == "0"
        and parameters["size_leaf_vector"] in ("0", "1")
        and _text_number(parameters["num_feature"]) == len(columns.names),
        f"{what} has unknown parameters",
    )
    require(n_nodes > 0, f"{what} is empty")
    nodes = {}
    for name, whole in NODE_ARRAYS.items():
        nodes[name] = _cells(tree[name], whole, f"{what} ({name})")
        require(len(nodes[name]) == n_nodes, f"{what} has {name} of the wrong length")
    _check_values(nodes, what)
    _check_links(nodes, n_nodes, len(columns.names), what)
    _check_categories(tree, nodes, columns, what)


def _cells(values: Any, whole: bool, what: str) -> np.ndarray:
    """A list of numbers as an array; whole ones fit 32 bits, all of them single precision."""
    require(isinstance(values, list), f"{what} is no list")
    allowed = {int} if whole else {int, float}
    require(set(map(type, values)) <= allowed, f"{what} holds other things than numbers")
    if whole:
        require(all(-(2**31) <= v < 2**31 for v in values), f"{what} holds numbers out of range")
        return np.array(values, dtype=np.int64)
    # XGBoost tells whole numbers from others by their spelling
    require(not any(type(v) is int and abs(v) >= 2**53 for v in values), f"{what} is out of range")
    values[:] = map(float, values)
    return np.array(values, dtype=np.float64)


def _check_values(nodes: dict[str, np.ndarray], what: str) -> None:
    for name in ("base_weights", "split_conditions", "loss_changes", "sum_hessian"):
        cells = nodes[name]
        finite = bool((np.abs(cells) <= LARGEST).all())  # false for NaN as well
        require(finite, f"{what} has {name} that are not finite")
    for name in ("default_left", "split_type"):
        marks = bool(np.isin(nodes[name], (0, 1)).all())
        require(marks, f"{what} has a damaged {name}")


def _check_links(nodes: dict[str, np.ndarray], n_nodes: int, n_columns: int, what: str) -> None:
    """Every node hangs below the root exactly once, and its parent knows it."""
    left, right = nodes["left_children"], nodes["right_children"]
    for child in (left, right):
        inside = (child == -1) | ((child > 0) & (child < n_nodes))
        require(bool(inside.all()), f"{what} has a child out of range")
    require(bool(((left == -1) == (right == -1)).all()), f"{what} has a node with one child")
    inner = left != -1
    feature = nodes["split_indices"]
    known = (feature >= 0) & (feature < n_columns)
    require(bool(known[inner].all()), f"{what} splits on a column that does not exist")
    require(bool((feature >= 0).all()), f"{what} splits on a column that does not exist")
    parents = nodes["parents"]
    require(int(parents[0]) == ROOT_PARENT, f"{what} has a root with a parent")
    seen = np.zeros(n_nodes, dtype=bool)
    level = np.array([0])
    for _ in range(DEEPEST):
        require(
            not seen[level].any() and len(np.unique(level)) == len(level), f"{what} has a cycle"
        )
        seen[level] = True
        level = level[inner[level]]
        if not len(level):
            break
        below = np.concatenate([left[level], right[level]])
        linked = bool((parents[below] == np.concatenate([level, level])).all())
        require(linked, f"{what} has children that name another parent")
        level = below
    else:
        raise ModelFileError(f"{what} is deeper than {DEEPEST} levels")
    require(bool(seen.all()), f"{what} has nodes that hang nowhere")


def _check_categories(
    tree: dict[str, Any], nodes: dict[str, np.ndarray], columns: Columns, what: str
) -> None:
    """Sets of categories: one for each split on a categorical column, one after the other."""
    categories, at, starts, sizes = (
        _cells(tree[name], True, f"{what} ({name})") for name in CATEGORY_ARRAYS
    )
    is_set = (nodes["split_type"] == 1) & (nodes["left_children"] != -1)
    require(np.array_equal(at, np.flatnonzero(is_set)), f"{what} has sets of categories astray")
    leaf_sets = (nodes["split_type"] == 1) & (nodes["left_children"] == -1)
    require(not leaf_sets.any(), f"{what} has leaves that split")
    feature = nodes["split_indices"]
    inner = nodes["left_children"] != -1
    kinds = columns.is_category[feature[inner]] == is_set[inner]
    require(bool(kinds.all()), f"{what} splits a column as another kind than it is")
    require(len(starts) == len(sizes) == len(at), f"{what} has damaged sets of categories")
    expected = np.concatenate([[0], np.cumsum(sizes)])
    laid_out = bool((sizes > 0).all()) and np.array_equal(starts, expected[:-1])
    fits = laid_out and int(expected[-1]) == len(categories)
    require(fits, f"{what} has sets of categories of the wrong length")
    for node, start, size in zip(at, starts, sizes, strict=True):
        values = columns.categories[feature[node]]
        chosen = categories[start : start + size]
        most = 0 if values is None else len(values)
        inside = bool(((chosen >= 0) & (chosen < most)).all())
        require(inside, f"{what} names categories that do not exist")
