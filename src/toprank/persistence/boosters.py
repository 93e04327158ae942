"""Boosters of XGBoost and decision trees of scikit-learn, checked before compiled code sees them.

Both libraries trust what they load: a child number out of range, a cycle, or a length that does not agree
reads foreign memory or never ends. Only what a booster of this library can be passes: trees
of one output over known columns. What XGBoost gets is written anew from the checked
values, so nothing depends on how two parsers read the same text.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import numpy as np

from toprank.columns import Columns
from toprank.parallel import thread_count
from toprank.persistence.checks import ModelFileError, children_follow, require

__all__ = ["check_booster", "make_booster", "make_tree", "tree_parts"]

MAX_DEPTH = 1000  # SHAP values descend by recursion in compiled code
FLOAT32_MAX = 3.4028235e38
ROOT_PARENT = 2**31 - 1
OBJECTIVES = ("reg:squarederror", "binary:logistic", "reg:logistic")
FEATURE_TYPES = {"c": {"c"}, "q": {"q", "float", "int", "i"}}
_INTEGER = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

# Arrays of a tree, one number for each node.
FLOAT_ARRAYS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
INTEGER_ARRAYS = (
    "default_left", "left_children", "parents", "right_children", "split_indices", "split_type",
)  # fmt: skip
CATEGORY_ARRAYS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")


# The keys of each object of a booster, by its name.
PARTS: dict[str, str] = {
    "booster": "learner version",
    "learner": "attributes feature_names feature_types gradient_booster learner_model_param objective",
    "learner_model_param": "base_score boost_from_average num_class num_feature num_target",
    "objective": "name reg_loss_param",
    "reg_loss_param": "scale_pos_weight",
    "gradient_booster": "model name",
    "model": "cats gbtree_model_param iteration_indptr tree_info trees",
    "cats": "enc feature_segments sorted_idx",
    "gbtree_model_param": "num_parallel_tree num_trees",
    "tree": " ".join(("id tree_param", *FLOAT_ARRAYS, *INTEGER_ARRAYS, *CATEGORY_ARRAYS)),
    "tree_param": "num_deleted num_feature num_nodes size_leaf_vector",
}


def make_booster(text: bytes, columns: Columns, threads: int = 0) -> Any:
    """Check a booster over some columns and let XGBoost load it."""
    from toprank.boosting.xgboost_helpers import require_xgboost

    checked = check_booster(text, columns)
    xgboost = require_xgboost()
    threads = min(threads, thread_count(None))  # compiled code gives up when it cannot start them
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
    _check_parts(model, "booster", "a booster")
    version = model["version"]
    known = isinstance(version, list) and len(version) == 3
    known = known and all(_is_integer(v, 0, 999) for v in version) and version[0] >= 2
    require(known, "a booster has no version")
    _check_learner(model["learner"], columns)
    _check_trees(model["learner"]["gradient_booster"]["model"], columns)
    return model


def _check_parts(node: Any, name: str, what: str) -> None:
    """Check that a part is an object with exactly the known keys, and its own parts too."""
    require(isinstance(node, dict), f"{what} is damaged")
    known = set(PARTS[name].split())
    lacking, unknown = sorted(known - set(node) - {"cats"}), sorted(set(node) - known)
    require(not lacking, f"{what} lacks {', '.join(lacking)}")
    require(not unknown, f"{what} has unknown parts: {', '.join(unknown)[:80]}")
    for inner in sorted(set(node) & set(PARTS)):
        _check_parts(node[inner], inner, what)


def _is_integer(value: Any, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _text_number(value: Any) -> int:
    """Return an integer that XGBoost keeps as text."""
    known = isinstance(value, str) and _INTEGER.fullmatch(value) is not None
    require(known, "a booster is damaged")
    return int(value)


def _is_text_of_number(value: Any) -> bool:
    number = isinstance(value, str) and _NUMBER.fullmatch(value)
    return bool(number) and abs(float(value)) <= FLOAT32_MAX


def _check_learner(learner: dict[str, Any], columns: Columns) -> None:
    """Check parameters, objective, attributes and columns."""
    parameters, objective, names = (
        learner["learner_model_param"],
        learner["objective"],
        list(columns.names),
    )
    n_columns = _text_number(parameters["num_feature"])
    wrong = f"a booster has {n_columns} columns where its model has {len(names)}"
    require(n_columns == len(names), wrong)
    require(_text_number(parameters["boost_from_average"]) <= 1, "a booster is damaged")
    single = parameters["num_class"] == "0" and parameters["num_target"] == "1"
    require(single, "a booster has more than one output")
    score = parameters["base_score"]
    known = isinstance(score, str) and _is_text_of_number(score.removeprefix("[").removesuffix("]"))
    require(known, "a booster has a damaged base score")
    name = objective["name"]
    require(isinstance(name, str) and name in OBJECTIVES, f"unknown objective {name!r:.40}")
    weight = objective["reg_loss_param"]["scale_pos_weight"]
    require(_is_text_of_number(weight), "the objective of a booster is damaged")
    attributes = learner["attributes"]
    plain = isinstance(attributes, dict) and all(isinstance(v, str) for v in attributes.values())
    require(plain, "a booster has damaged attributes")
    require(learner["feature_names"] in ([], names), "a booster names other columns")
    kinds = learner["feature_types"]
    require(isinstance(kinds, list), "a booster has damaged column types")
    require(kinds or not columns.is_category.any(), "a booster lacks the types of its columns")
    require(len(kinds) in (0, len(names)), "a booster has too few or too many column types")
    for kind, category in zip(kinds, columns.is_category, strict=False):
        known = isinstance(kind, str) and kind in FEATURE_TYPES["c" if category else "q"]
        require(known, "a booster has other column types than its model")
    name = learner["gradient_booster"]["name"]
    require(name == "gbtree", f"a booster is of the unknown kind {name!r:.40}")


def _check_trees(model: Any, columns: Columns) -> None:
    """Check the counts around the trees, then each tree."""
    trees, starts, info = model["trees"], model["iteration_indptr"], model["tree_info"]
    require(all(isinstance(part, list) for part in (trees, starts, info)), "a booster is damaged")
    n_trees = _text_number(model["gbtree_model_param"]["num_trees"])
    parallel = _text_number(model["gbtree_model_param"]["num_parallel_tree"])
    require(n_trees == len(trees) == len(info), "a booster has lost trees")
    require(parallel == 1 and starts == list(range(n_trees + 1)), "a booster has damaged rounds")
    single = all(_is_integer(group, 0, 0) for group in info)
    require(single, "a booster has trees of unknown groups")
    empty = all(part == [] for part in model.get("cats", {}).values())
    require(empty, "a booster keeps categories of its own")
    for number, tree in enumerate(trees):
        _check_tree(tree, number, columns)


def _check_tree(tree: Any, number: int, columns: Columns) -> None:
    what = f"tree {number} of a booster"
    _check_parts(tree, "tree", what)
    parameters = tree["tree_param"]
    n_nodes = _text_number(parameters["num_nodes"])
    require(_is_integer(tree["id"], number, number), f"{what} has another number")
    known = parameters["num_deleted"] == "0" and parameters["size_leaf_vector"] in ("0", "1")
    known = known and _text_number(parameters["num_feature"]) == len(columns.names)
    require(known, f"{what} has unknown parameters")
    require(n_nodes > 0, f"{what} is empty")
    nodes = {
        name: _numbers(tree[name], f"{what} ({name})", whole=name in INTEGER_ARRAYS)
        for name in (*FLOAT_ARRAYS, *INTEGER_ARRAYS)
    }
    for name, cells in nodes.items():
        require(len(cells) == n_nodes, f"{what} has {name} of the wrong length")
    for name in ("default_left", "split_type"):
        require(np.isin(nodes[name], (0, 1)).all(), f"{what} has a damaged {name}")
    _check_links(nodes, len(columns.names), what)
    _check_categories(tree, nodes, columns, what)


def _numbers(values: Any, what: str, whole: bool) -> np.ndarray:
    """Return a list of integers of 32 bits, or of finite numbers of single precision, as an array.

    XGBoost tells integers from other numbers by their spelling, so the latter become floats in place.
    """
    require(isinstance(values, list), f"{what} is not a list")
    types = {int} if whole else {int, float}
    require(set(map(type, values)) <= types, f"{what} holds other things than numbers")
    limit = 2**31 if whole else 2**53
    small = all(type(v) is float or -limit <= v < limit for v in values)
    require(small, f"{what} holds numbers out of range")
    if whole:
        return np.array(values, dtype=np.int64)
    values[:] = map(float, values)
    cells = np.array(values, dtype=np.float64)
    require((np.abs(cells) <= FLOAT32_MAX).all(), f"{what} is not finite")  # NaN neither
    return cells


def _check_links(nodes: dict[str, np.ndarray], n_columns: int, what: str) -> None:
    """Check that every node is reached from the root exactly once, and that its parent knows it."""
    left, right, parents = nodes["left_children"], nodes["right_children"], nodes["parents"]
    n_nodes, inner, feature = len(left), left != -1, nodes["split_indices"]
    for child in (left, right):
        inside = (child == -1) | ((child > 0) & (child < n_nodes))
        require(inside.all(), f"{what} has a child out of range")
    require((inner == (right != -1)).all(), f"{what} has a node with one child")
    known = (feature >= 0).all() and (feature[inner] < n_columns).all()
    require(known, f"{what} splits on a column that does not exist")
    require(parents[0] == ROOT_PARENT, f"{what} has a root with a parent")
    seen, level, depth = np.zeros(n_nodes, dtype=bool), np.array([0]), 0
    while len(level):
        depth += 1
        require(depth <= MAX_DEPTH, f"{what} is deeper than {MAX_DEPTH} levels")
        once = not seen[level].any() and len(np.unique(level)) == len(level)
        require(once, f"{what} has a cycle")
        seen[level] = True
        above = level[inner[level]]
        level = np.concatenate([left[above], right[above]])
        linked = (parents[level] == np.tile(above, 2)).all()
        require(linked, f"{what} has children that name another parent")
    require(seen.all(), f"{what} has unreachable nodes")


def _check_categories(
    tree: dict[str, Any], nodes: dict[str, np.ndarray], columns: Columns, what: str
) -> None:
    """Check sets of categories: one for each split on a categorical column, one after the other."""
    categories, owners, starts, sizes = (
        _numbers(tree[name], f"{what} ({name})", whole=True) for name in CATEGORY_ARRAYS
    )
    inner, is_set = nodes["left_children"] != -1, nodes["split_type"] == 1
    feature = nodes["split_indices"]
    require(not is_set[~inner].any(), f"{what} has leaves that split")
    placed = np.array_equal(owners, np.flatnonzero(is_set))
    require(placed, f"{what} has misplaced sets of categories")
    same = columns.is_category[feature[inner]] == is_set[inner]
    require(same.all(), f"{what} splits a column as another kind than it is")
    ends = np.cumsum(sizes)
    fits = len(starts) == len(sizes) == len(owners) and (sizes > 0).all()
    fits = fits and np.array_equal(starts, ends - sizes) and len(categories) == sizes.sum()
    require(fits, f"{what} has sets of categories of the wrong length")
    for owner, start, size in zip(owners, starts, sizes, strict=True):
        values, chosen = columns.categories[feature[owner]], categories[start : start + size]
        known = values is not None and ((chosen >= 0) & (chosen < len(values))).all()
        require(known, f"{what} names categories that do not exist")


# -- scikit-learn's decision trees --------------------------------------------------------------------

MAX_CLASSES = 10_000


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
    require(_is_integer(parts["n_features"], 1, 2**31 - 1), "a decision tree has no columns")
    depth = n_nodes > 0 and _is_integer(parts["max_depth"], 0, n_nodes)
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
