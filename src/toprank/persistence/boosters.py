"""Boosters of XGBoost, checked before compiled code sees them.

XGBoost trusts what it loads: a child number out of range, a cycle, or a length that does not agree reads
foreign memory or never ends. Only what a booster of this library can be passes: trees of one output over
known columns. What XGBoost gets is written anew from the checked values, so nothing depends on how two
parsers read the same text.
"""

from __future__ import annotations

import re
from itertools import chain
from struct import pack
from typing import Any

import numpy as np

from toprank.columns import Columns
from toprank.parallel import thread_count
from toprank.persistence.checks import ModelFileError, is_integer, require

__all__ = ["check_booster", "make_booster"]

MAX_DEPTH = 1000  # SHAP values descend by recursion in compiled code
FLOAT32_MAX = 3.4028235e38
ROOT_PARENT = 2**31 - 1
OBJECTIVES = ("reg:squarederror", "binary:logistic", "reg:logistic")
FEATURE_TYPES = {"c": {"c", "q"}, "q": {"q", "float", "int", "i"}}
_INTEGER = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

# Arrays of a tree, one number for each node.
FLOAT_ARRAYS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")
INTEGER_ARRAYS = (
    "default_left", "left_children", "parents", "right_children", "split_indices", "split_type",
)  # fmt: skip
CATEGORY_ARRAYS = ("categories", "categories_nodes", "categories_segments", "categories_sizes")
# Their types in UBJSON and in `struct`.
ARRAY_TYPES = {
    **dict.fromkeys(FLOAT_ARRAYS, (b"d", "f")),
    **dict.fromkeys((*INTEGER_ARRAYS, *CATEGORY_ARRAYS[:2], "feature_segments", "sorted_idx"), (b"l", "i")),
    **dict.fromkeys(CATEGORY_ARRAYS[2:], (b"L", "q")),
    **dict.fromkeys(("default_left", "split_type"), (b"U", "B")),
}  # fmt: skip


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


def make_booster(model: dict[str, Any], columns: Columns, threads: int = 0) -> Any:
    """Check a booster over some columns and let XGBoost load it."""
    from toprank.boosting.xgboost_helpers import require_xgboost

    check_booster(model, columns)
    xgboost = require_xgboost()
    threads = min(threads, thread_count(None))  # compiled code gives up when it cannot start them
    booster = xgboost.Booster({"nthread": threads} if threads else None)
    try:
        booster.load_model(bytearray(_write(model)))
    except xgboost.core.XGBoostError as error:
        line = str(error).strip().splitlines()
        raise ModelFileError(f"XGBoost refuses a booster: {line[-1] if line else ''}") from error
    return booster


def _write(value: Any, name: str = "") -> bytes:
    """Write checked values as XGBoost's UBJSON, with the arrays of trees as its own writer types them."""
    if isinstance(value, dict):
        parts = (_text(key) + _write(part, key) for key, part in value.items())
        return b"{" + b"".join(parts) + b"}"
    if isinstance(value, list):
        length = b"#L" + pack(">q", len(value))
        if name not in ARRAY_TYPES:
            return b"[" + length + b"".join(map(_write, value))
        mark, code = ARRAY_TYPES[name]
        return b"[$" + mark + length + pack(f">{len(value)}{code}", *value)
    return b"S" + _text(value) if isinstance(value, str) else b"L" + pack(">q", value)


def _text(value: str) -> bytes:
    data = value.encode(errors="backslashreplace")
    return b"L" + pack(">q", len(data)) + data


def check_booster(model: Any, columns: Columns) -> None:
    """Check what `Booster.save_raw("json")` has written, parsed, against the columns it was trained on."""
    _check_parts(model, "booster", "a booster")
    version = model["version"]
    known = isinstance(version, list) and len(version) == 3
    known = known and all(is_integer(v, 0, 999) for v in version) and version[0] >= 2
    require(known, "a booster has no version")
    _check_learner(model["learner"], columns)
    _check_trees(model["learner"]["gradient_booster"]["model"], columns)


def _check_parts(node: Any, name: str, what: str) -> None:
    """Check that a part is an object with exactly the known keys, and its own parts too."""
    require(isinstance(node, dict), f"{what} is damaged")
    known = set(PARTS[name].split())
    lacking, unknown = sorted(known - set(node) - {"cats"}), sorted(set(node) - known)
    require(not lacking, f"{what} lacks {', '.join(lacking)}")
    require(not unknown, f"{what} has unknown parts: {', '.join(unknown)[:80]}")
    for inner in sorted(set(node) & set(PARTS)):
        _check_parts(node[inner], inner, what)


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
    parameters, objective = learner["learner_model_param"], learner["objective"]
    names = list(columns.names)
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
    single = all(is_integer(group, 0, 0) for group in info)
    require(single, "a booster has trees of unknown groups")
    empty = all(part == [] for part in model.get("cats", {}).values())
    require(empty, "a booster keeps categories of its own")
    sizes = np.array([_tree_size(tree, k, columns) for k, tree in enumerate(trees)], dtype=np.int64)
    names = (*FLOAT_ARRAYS, *INTEGER_ARRAYS)
    nodes = {name: _numbers(trees, name, name in INTEGER_ARRAYS, sizes) for name in names}
    tree_of = np.repeat(np.arange(n_trees), sizes)
    for name in ("default_left", "split_type"):
        _require_all(np.isin(nodes[name], (0, 1)), tree_of, f"has a damaged {name}")
    _check_links(nodes, sizes, tree_of, len(columns.names))
    _check_categories(trees, nodes, sizes, columns)


def _tree_size(tree: Any, number: int, columns: Columns) -> int:
    """Check what stands around the nodes of a tree; return how many they are."""
    what = f"tree {number} of a booster"
    _check_parts(tree, "tree", what)
    parameters = tree["tree_param"]
    n_nodes = _text_number(parameters["num_nodes"])
    require(is_integer(tree["id"], number, number), f"{what} has another number")
    known = parameters["num_deleted"] == "0" and parameters["size_leaf_vector"] in ("0", "1")
    known = known and _text_number(parameters["num_feature"]) == len(columns.names)
    require(known, f"{what} has unknown parameters")
    require(n_nodes > 0, f"{what} is empty")
    return n_nodes


def _numbers(trees: list[Any], name: str, whole: bool, sizes: Any = None) -> np.ndarray:
    """Return the lists that trees keep under a name as one array, of 32 bits or of finite numbers."""
    for number, tree in enumerate(trees):
        what = f"tree {number} of a booster"
        require(isinstance(tree[name], list), f"{what} ({name}) is not a list")
        fits = sizes is None or len(tree[name]) == sizes[number]
        require(fits, f"{what} has {name} of the wrong length")
    values = list(chain.from_iterable(tree[name] for tree in trees))
    known = set(map(type, values)) <= ({int} if whole else {int, float})
    require(known, f"{name} of a booster holds other things than numbers")
    try:
        cells = np.array(values, dtype=np.int64 if whole else np.float64)
    except OverflowError:
        raise ModelFileError(f"{name} of a booster holds numbers out of range") from None
    if whole:
        small = (cells >= -(2**31)) & (cells < 2**31)
        require(small.all(), f"{name} of a booster holds numbers out of range")
        return cells
    require(
        (np.abs(cells) <= FLOAT32_MAX).all(), f"{name} of a booster is not finite"
    )  # NaN neither
    return cells


def _require_all(fits: np.ndarray, tree_of: np.ndarray, text: str) -> None:
    """Refuse the first tree with a node (or a set of categories) that does not fit."""
    if not fits.all():
        raise ModelFileError(f"tree {tree_of[np.argmin(fits)]} of a booster {text}")


def _check_links(
    nodes: dict[str, np.ndarray], sizes: np.ndarray, tree_of: np.ndarray, n_columns: int
) -> None:
    """Check that every node is reached from its root exactly once, and that its parent knows it."""
    left, right, parents = nodes["left_children"], nodes["right_children"], nodes["parents"]
    inner, feature = left != -1, nodes["split_indices"]
    for child in (left, right):
        inside = (child == -1) | ((child > 0) & (child < sizes[tree_of]))
        _require_all(inside, tree_of, "has a child out of range")
    _require_all(inner == (right != -1), tree_of, "has a node with one child")
    known = (feature >= 0) & (~inner | (feature < n_columns))
    _require_all(known, tree_of, "splits on a column that does not exist")
    roots = np.cumsum(sizes) - sizes
    single = parents[roots] == ROOT_PARENT
    _require_all(single, np.arange(len(roots)), "has a root with a parent")
    start = roots[tree_of]  # what turns the number of a node in its tree into one among all nodes
    seen, level, depth = np.zeros(len(left), dtype=bool), roots, 0
    while len(level):
        depth += 1
        require(depth <= MAX_DEPTH, f"a tree of a booster is deeper than {MAX_DEPTH} levels")
        once = np.bincount(np.unique(level, return_inverse=True)[1])
        require((once == 1).all() and not seen[level].any(), "a tree of a booster has a cycle")
        seen[level] = True
        above = level[inner[level]]
        level = np.concatenate([left[above] + start[above], right[above] + start[above]])
        linked = parents[level] + start[level] == np.tile(above, 2)
        _require_all(linked, tree_of[level], "has children that name another parent")
    _require_all(seen, tree_of, "has unreachable nodes")


def _check_categories(
    trees: list[Any], nodes: dict[str, np.ndarray], sizes: np.ndarray, columns: Columns
) -> None:
    """Check sets of categories, one after the other, which split categorical columns only.

    Such a column may be split by a number, too: by the code of a category.
    """
    categories, owners, starts, lengths = (_numbers(trees, name, True) for name in CATEGORY_ARRAYS)
    tree_of = np.repeat(np.arange(len(trees)), sizes)
    is_set, feature = nodes["split_type"] == 1, nodes["split_indices"]
    leaf = nodes["left_children"] == -1
    _require_all(~(is_set & leaf), tree_of, "has leaves that split")
    n_categories, n_owners, *others = (
        np.array([len(tree[name]) for tree in trees], dtype=np.int64) for name in CATEGORY_ARRAYS
    )
    numbers = np.arange(len(trees))
    placed = n_owners == np.bincount(tree_of[is_set], minlength=len(trees))
    _require_all(placed, numbers, "has misplaced sets of categories")
    tree_of_set = np.repeat(numbers, n_owners)
    within = np.flatnonzero(is_set) - (np.cumsum(sizes) - sizes)[tree_of_set]
    _require_all(owners == within, tree_of_set, "has misplaced sets of categories")
    number = ~columns.is_category[feature[is_set]]
    _require_all(~number, tree_of_set, "splits a column of numbers by categories")
    wrong = "has sets of categories of the wrong length"
    for count in others:
        _require_all(count == n_owners, numbers, wrong)
    _require_all(lengths > 0, tree_of_set, wrong)
    totals = np.bincount(tree_of_set, lengths, minlength=len(trees)).astype(np.int64)
    _require_all(totals == n_categories, numbers, wrong)
    expected = np.cumsum(lengths) - lengths - (np.cumsum(totals) - totals)[tree_of_set]
    _require_all(starts == expected, tree_of_set, wrong)
    known = np.array([0 if values is None else len(values) for values in columns.categories])
    limit = np.repeat(known[feature[is_set]], lengths)
    exist = (categories >= 0) & (categories < limit)
    _require_all(exist, np.repeat(tree_of_set, lengths), "names categories that do not exist")
