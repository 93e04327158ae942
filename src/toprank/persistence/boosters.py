"""Boosters of XGBoost as plain data, checked before compiled code sees them.

XGBoost trusts what it loads: a child number out of range, a cycle, or a length that does not agree reads
foreign memory or never ends. So a file keeps of a booster only what is its own: its settings, and the nodes
of its trees as arrays, one tree after the other. The rest (parents, counts, places of sets) follows from
these, and what XGBoost gets is written anew from the checked values. Only what a booster of this library can
be is kept: trees of one output over known columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from struct import pack
from typing import Any

import numpy as np

from toprank.columns import Columns
from toprank.parallel import thread_count
from toprank.persistence.checks import Array, ModelFileError, is_integer, require

__all__ = ["booster_parts", "make_booster"]

MAX_DEPTH = 1000  # SHAP values descend by recursion in compiled code
FLOAT32_MAX = 3.4028235e38
ROOT_PARENT = 2**31 - 1
OBJECTIVES = ("reg:squarederror", "binary:logistic", "reg:logistic")
FEATURE_TYPES = {"c": {"c", "q"}, "q": {"q", "float", "int", "i"}}
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][-+]?[0-9]{1,3})?")

# Arrays by XGBoost's names: of each node, of each set of categories, of each category in a set.
NODES = {
    "base_weights": Array("f4"),
    "loss_changes": Array("f4"),
    "split_conditions": Array("f4"),
    "sum_hessian": Array("f4"),
    "left_children": Array("i4", low=-1),
    "right_children": Array("i4", low=-1),
    "split_indices": Array("i4", low=0),
    "default_left": Array("u1", high=2),
    "split_type": Array("u1", high=2),
}
SETS = {"categories_sizes": Array("i4", ("*",), low=1), "categories": Array("i4", ("*",), low=0)}
ARRAYS = {"num_nodes": Array("i4", ("*",), low=1), **NODES, **SETS}
MODEL = {"cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees"}
SETTINGS = {
    "attributes", "base_score", "boost_from_average", "feature_names", "feature_types", "objective",
    "scale_pos_weight", "version",
}  # fmt: skip


# -- what a file keeps --------------------------------------------------------------------------------


def booster_parts(booster: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the settings of a booster, and the nodes of its trees as arrays."""
    saved = json.loads(bytes(booster.save_raw(raw_format="json")))
    learner, boosting = saved["learner"], saved["learner"]["gradient_booster"]
    parameters, objective = learner["learner_model_param"], learner["objective"]
    settings = {
        "version": saved["version"],
        **{name: learner[name] for name in ("attributes", "feature_names", "feature_types")},
        **{name: parameters[name] for name in ("base_score", "boost_from_average")},
        "objective": objective["name"],
        "scale_pos_weight": objective.get("reg_loss_param", {}).get("scale_pos_weight"),
    }
    other = "a booster is of a kind that a model file does not hold"
    require(boosting["name"] == "gbtree", other)
    model = boosting["model"]
    # in newer versions of XGBoost dart is a gbtree too, with weights of its trees
    require(set(model) <= MODEL, other)
    trees = model["trees"]
    plain = parameters["num_class"] == "0" and parameters["num_target"] == "1"
    plain &= model["iteration_indptr"] == list(range(len(trees) + 1))
    plain &= not any(model.get("cats", {}).values())
    require(plain and all(t["tree_param"]["num_deleted"] == "0" for t in trees), other)
    sizes = np.array([len(tree["base_weights"]) for tree in trees], dtype=np.int32)
    arrays = {
        name: np.array(list(chain.from_iterable(tree[name] for tree in trees)), dtype=array.dtype)
        for name, array in (NODES | SETS).items()
    }
    # In newer versions the cut that parts missing cells from all others is minus infinity. No number is
    # below the least one either, and a file holds none that is not finite.
    cuts, is_inner = arrays["split_conditions"], arrays["left_children"] != -1
    cuts[is_inner & np.isneginf(cuts)] = -FLOAT32_MAX
    return settings, {"num_nodes": sizes, **arrays}


def make_booster(settings: Any, arrays: Any, columns: Columns, threads: int = 0) -> Any:
    """Check the parts of a booster over some columns and let XGBoost load it."""
    from toprank.boosting.xgboost_helpers import require_xgboost

    check_settings(settings, columns)
    check_arrays(arrays, columns)
    xgboost = require_xgboost()
    threads = min(threads, thread_count(None))  # compiled code gives up when it cannot start them
    booster = xgboost.Booster({"nthread": threads} if threads else None)
    try:
        booster.load_model(bytearray(_write(_saved(settings, arrays, len(columns.names)))))
    except xgboost.core.XGBoostError as error:
        line = str(error).strip().splitlines()
        raise ModelFileError(f"XGBoost refuses a booster: {line[-1] if line else ''}") from error
    return booster


# -- what XGBoost reads -------------------------------------------------------------------------------


def _saved(settings: dict[str, Any], arrays: dict[str, np.ndarray], n_columns: int) -> Any:
    """Return a booster as `Booster.save_model` lays it out."""
    n_trees = len(arrays["num_nodes"])
    model = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(n_trees)},
        "iteration_indptr": list(range(n_trees + 1)),
        "tree_info": [0] * n_trees,
        "trees": list(_trees(arrays, n_columns)),
    }
    learner = {
        **{name: settings[name] for name in ("attributes", "feature_names", "feature_types")},
        "gradient_booster": {"model": model, "name": "gbtree"},
        "learner_model_param": {
            "base_score": settings["base_score"],
            "boost_from_average": settings["boost_from_average"],
            "num_class": "0", "num_feature": str(n_columns), "num_target": "1",
        },
        "objective": {
            "name": settings["objective"],
            "reg_loss_param": {"scale_pos_weight": settings["scale_pos_weight"]},
        },
    }  # fmt: skip
    return {"learner": learner, "version": settings["version"]}


def _trees(arrays: dict[str, np.ndarray], n_columns: int) -> Iterator[dict[str, Any]]:
    """Yield each tree with its own parts of the arrays, and what follows from them."""
    ends, end_of_sets = np.cumsum(arrays["num_nodes"]), np.cumsum(arrays["categories_sizes"])
    written = {name: _big_endian(arrays[name]) for name in (*NODES, "categories")}
    node = n_sets = n_categories = 0
    for number, end in enumerate(ends.tolist()):
        left, right, split_type = (
            arrays[name][node:end] for name in ("left_children", "right_children", "split_type")
        )
        owners = np.flatnonzero(split_type)
        lengths = arrays["categories_sizes"][n_sets : n_sets + len(owners)].astype(np.int64)
        n_sets += len(owners)
        last = int(end_of_sets[n_sets - 1]) if n_sets else 0
        inner = np.flatnonzero(left >= 0)
        parents = np.full(end - node, ROOT_PARENT, dtype=np.int32)
        parents[left[inner]] = parents[right[inner]] = inner
        yield {
            **{name: written[name][node:end] for name in NODES},
            "id": number,
            "parents": parents,
            "categories": written["categories"][n_categories:last],
            "categories_nodes": owners.astype(np.int32),
            "categories_segments": np.cumsum(lengths) - lengths,
            "categories_sizes": lengths,
            "tree_param": {
                "num_deleted": "0", "num_feature": str(n_columns), "num_nodes": str(end - node),
                "size_leaf_vector": "1",
            },
        }  # fmt: skip
        node, n_categories = end, last


MARKS = {"f4": b"d", "i4": b"l", "i8": b"L", "u1": b"U"}


def _write(value: Any) -> bytes:
    """Write plain data and arrays as UBJSON."""
    if isinstance(value, dict):
        parts = (_text(key) + _write(part) for key, part in value.items())
        return b"{" + b"".join(parts) + b"}"
    if isinstance(value, str):
        return b"S" + _text(value)
    if isinstance(value, int):
        return b"L" + pack(">q", value)
    length = b"#L" + pack(">q", len(value))
    if isinstance(value, np.ndarray):
        return b"[$" + MARKS[value.dtype.str[1:]] + length + _big_endian(value).tobytes()
    return b"[" + length + b"".join(map(_write, value))


def _big_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder(">"), copy=False)


@lru_cache(128)
def _text(value: str) -> bytes:
    data = value.encode(errors="backslashreplace")
    return b"L" + pack(">q", len(data)) + data


# -- checks -------------------------------------------------------------------------------------------


def check_settings(settings: Any, columns: Columns) -> None:
    """Check the settings of a booster against the columns it was trained on."""
    known = isinstance(settings, dict) and set(settings) == SETTINGS
    require(known, "the settings of a booster are incomplete, or more than there are")
    version, name = settings["version"], settings["objective"]
    known = isinstance(version, list) and len(version) == 3
    known = known and all(is_integer(v, 0, 999) for v in version) and version[0] >= 2
    require(known, "a booster has no version")
    score = settings["base_score"]
    known = isinstance(score, str) and _is_number(score.removeprefix("[").removesuffix("]"))
    require(known, "a booster has a damaged base score")
    require(settings["boost_from_average"] in ("0", "1"), "a booster is damaged")
    require(isinstance(name, str) and name in OBJECTIVES, f"unknown objective {name!r:.40}")
    require(_is_number(settings["scale_pos_weight"]), "the objective of a booster is damaged")
    attributes = settings["attributes"]
    plain = isinstance(attributes, dict) and all(isinstance(v, str) for v in attributes.values())
    require(plain, "a booster has damaged attributes")
    names, kinds = list(columns.names), settings["feature_types"]
    require(settings["feature_names"] in ([], names), "a booster names other columns")
    require(isinstance(kinds, list), "a booster has damaged column types")
    require(kinds or not columns.is_category.any(), "a booster lacks the types of its columns")
    require(len(kinds) in (0, len(names)), "a booster has too few or too many column types")
    for kind, category in zip(kinds, columns.is_category, strict=False):
        known = isinstance(kind, str) and kind in FEATURE_TYPES["c" if category else "q"]
        require(known, "a booster has other column types than its model")


def _is_number(value: Any) -> bool:
    """Whether a text is a number that single precision holds."""
    number = isinstance(value, str) and _NUMBER.fullmatch(value)
    return bool(number) and abs(float(value)) <= FLOAT32_MAX


def check_arrays(arrays: Any, columns: Columns) -> None:
    """Check the nodes of the trees of a booster against the columns it was trained on."""
    known = isinstance(arrays, dict) and set(arrays) == set(ARRAYS)
    require(known, "a booster has lost arrays, or has more than it should")
    lengths: dict[str, int] = {}
    for name, array in ARRAYS.items():
        array.check(arrays[name], f"{name} of a booster", lengths)
    sizes = arrays["num_nodes"].astype(np.int64)
    require(sizes.sum() == lengths["n"], "a booster has lost nodes")
    _check_links(arrays, sizes, len(columns.names))
    _check_categories(arrays, columns)


def _check_links(arrays: dict[str, np.ndarray], sizes: np.ndarray, n_columns: int) -> None:
    """Check that every node is reached from the root of its tree exactly once."""
    left, right = arrays["left_children"], arrays["right_children"]
    size = np.repeat(sizes, sizes)
    in_range = (left != 0) & (right != 0) & (left < size) & (right < size)
    require(in_range.all(), "a tree of a booster has a child out of range")
    inner = left != -1
    require((inner == (right != -1)).all(), "a tree of a booster has a node with one child")
    known = arrays["split_indices"][inner] < n_columns
    require(known.all(), "a tree of a booster splits on a column that does not exist")
    roots = np.cumsum(sizes) - sizes
    start = np.repeat(roots, sizes)  # turns the number of a node in its tree into one of all nodes
    first, second = left + start, right + start
    n_parents = np.bincount(np.concatenate([first[inner], second[inner]]), minlength=len(left))
    n_parents[roots] += 1
    single = (n_parents == 1).all()
    require(single, "a tree of a booster has a node that no other leads to, or more than one")
    level, n_reached, depth = roots, 0, 0
    while len(level):  # with one parent each, only a ring apart from the root is out of reach
        depth, n_reached = depth + 1, n_reached + len(level)
        require(depth <= MAX_DEPTH, f"a tree of a booster is deeper than {MAX_DEPTH} levels")
        above = level[inner[level]]
        level = np.concatenate([first[above], second[above]])
    require(n_reached == len(left), "a tree of a booster has unreachable nodes")


def _check_categories(arrays: dict[str, np.ndarray], columns: Columns) -> None:
    """Check the sets of categories, one for each node that splits by them; only such columns are so split.

    They may be split by a number, too: by the code of a category.
    """
    is_set, sizes = arrays["split_type"] == 1, arrays["categories_sizes"].astype(np.int64)
    require(
        (arrays["left_children"][is_set] != -1).all(), "a tree of a booster has leaves that split"
    )
    feature = arrays["split_indices"][is_set]
    require(
        columns.is_category[feature].all(), "a booster splits a column of numbers by categories"
    )
    fits = len(sizes) == len(feature) and sizes.sum() == len(arrays["categories"])
    require(fits, "a booster has sets of categories of the wrong length")
    known = np.array([0 if values is None else len(values) for values in columns.categories])
    exist = arrays["categories"] < np.repeat(known[feature], sizes)
    require(exist.all(), "a booster names categories that do not exist")
