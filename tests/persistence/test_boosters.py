"""Boosters are checked before XGBoost sees them, and pass unchanged when they are sound."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost

from toprank import GradientBoostingRanker
from toprank.columns import Columns
from toprank.persistence import ModelFileError
from toprank.persistence.boosters import MAX_DEPTH, check_booster, make_booster

COLUMNS = Columns(("a", "b", "kind"), (None, None, np.array(["p", "q", "r", "s", "t"])))


def node_arrays(left: list[int], right: list[int], **more: Any) -> dict[str, Any]:
    """A tree of numeric splits on the first column with these children."""
    n = len(left)
    parents = [2**31 - 1] * n
    for node in range(n):
        for child in (left[node], right[node]):
            if 0 < child < n:
                parents[child] = node
    return {
        "base_weights": [0.0] * n, "default_left": [0] * n, "id": 0, "left_children": left,
        "loss_changes": [1.0] * n, "parents": parents, "right_children": right,
        "split_conditions": [0.5] * n, "split_indices": [0] * n, "split_type": [0] * n,
        "sum_hessian": [1.0] * n, "categories": [], "categories_nodes": [],
        "categories_segments": [], "categories_sizes": [],
        "tree_param": {"num_deleted": "0", "num_feature": "3", "num_nodes": str(n),
                       "size_leaf_vector": "1"},
        **more,
    }  # fmt: skip


def booster(*trees: dict[str, Any]) -> dict[str, Any]:
    for number, tree in enumerate(trees):
        tree["id"] = number
    return {
        "learner": {
            "attributes": {}, "feature_names": [], "feature_types": ["q", "q", "c"],
            "gradient_booster": {
                "model": {
                    "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
                    "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                    "iteration_indptr": list(range(len(trees) + 1)),
                    "tree_info": [0] * len(trees), "trees": list(trees),
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": "[0E0]", "boost_from_average": "0", "num_class": "0",
                "num_feature": "3", "num_target": "1",
            },
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": [3, 2, 0],
    }  # fmt: skip


def stump() -> dict[str, Any]:
    return node_arrays([1, -1, -1], [2, -1, -1])


def category_stump() -> dict[str, Any]:
    return node_arrays(
        [1, -1, -1], [2, -1, -1], split_type=[1, 0, 0], split_indices=[2, 0, 0], categories=[1, 3],
        categories_nodes=[0], categories_segments=[0], categories_sizes=[2],
    )  # fmt: skip


def test_sound_boosters_score_as_they_should() -> None:
    made = make_booster(booster(stump(), category_stump()), COLUMNS)
    cells = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 3.0]], dtype=np.float32)
    cut = np.where(cells[:, 0] < 0.5, 0.5, 0.5)  # both leaves hold their condition
    np.testing.assert_allclose(made.inplace_predict(cells), 2 * cut)


def test_boosters_of_fits_pass_unchanged() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=300), "c": rng.choice(list("abcdefgh"), 300)})
    y = (frame["x"] + (frame["c"] < "d") + rng.normal(size=300) > 2).astype(int)
    for settings in (
        {},
        {"step": "line_search"},
        {"growth": "leaf", "max_depth": 0, "max_leaves": 9},
    ):
        model = GradientBoostingRanker(n_estimators=8, random_state=0, n_jobs=1, **settings)
        model.fit(frame, y)
        raw = bytes(model.boosters_[0].save_raw(raw_format="json"))
        again = make_booster(json.loads(raw), model.columns_, 1)
        assert json.loads(bytes(again.save_raw(raw_format="json"))) == json.loads(raw)


def tree(model: dict[str, Any], number: int = 0) -> dict[str, Any]:
    return model["learner"]["gradient_booster"]["model"]["trees"][number]


def put(name: str, index: int, value: Any, number: int = 0) -> Callable[[dict[str, Any]], None]:
    return lambda model: tree(model, number)[name].__setitem__(index, value)


def learner(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(model: dict[str, Any]) -> None:
        node = model["learner"]
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value

    return change


LIES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "child beyond": (put("left_children", 0, 3), "child out of range"),
    "child far beyond": (put("right_children", 0, 2**31 - 1), "child out of range"),
    "child below": (put("left_children", 0, -2), "child out of range"),
    "child too large for 32 bits": (put("left_children", 0, 2**40), "numbers out of range"),
    "root as a child": (put("left_children", 0, 0), "child out of range"),
    "one child": (put("left_children", 0, -1), "one child"),
    "shared child": (put("right_children", 0, 1), "cycle"),
    "fraction of a child": (put("left_children", 0, 1.0), "other things than numbers"),
    "text as a child": (put("left_children", 0, "1"), "other things than numbers"),
    "wrong parent": (put("parents", 1, 2), "another parent"),
    "root with a parent": (put("parents", 0, 1), "root with a parent"),
    "column beyond": (put("split_indices", 0, 3), "column that does not exist"),
    "column below": (put("split_indices", 0, -1), "column that does not exist"),
    "leaf column below": (put("split_indices", 1, -5), "column that does not exist"),
    "infinite leaf": (put("split_conditions", 1, float("inf")), "not finite"),
    "leaf beyond single precision": (put("split_conditions", 1, 1e39), "not finite"),
    "missing leaf": (put("base_weights", 1, float("nan")), "not finite"),
    "unknown default": (put("default_left", 0, 2), "damaged default_left"),
    "unknown split": (put("split_type", 0, 7), "damaged split_type"),
    "numbers split as categories": (put("split_type", 0, 1), "misplaced|by categories"),
    "leaf that splits": (put("split_type", 1, 1), "leaves that split|misplaced"),
    "short array": (lambda m: tree(m)["parents"].pop(), "wrong length"),
    "long array": (lambda m: tree(m)["base_weights"].append(0.0), "wrong length"),
    "no array": (lambda m: tree(m).update(parents=None), "not a list"),
    "lost array": (lambda m: tree(m).pop("parents"), "lacks parents"),
    "unknown array": (lambda m: tree(m).update(extra=[]), "unknown parts: extra"),
    "more nodes declared": (lambda m: tree(m)["tree_param"].update(num_nodes="4"), "wrong length"),
    "no nodes declared": (lambda m: tree(m)["tree_param"].update(num_nodes="0"), "empty"),
    "huge number of nodes": (
        lambda m: tree(m)["tree_param"].update(num_nodes="99999999999999999999"), "damaged"),
    "deleted nodes": (lambda m: tree(m)["tree_param"].update(num_deleted="1"), "unknown parameters"),
    "vector leaves": (lambda m: tree(m)["tree_param"].update(size_leaf_vector="8"), "unknown param"),
    "columns of a tree": (lambda m: tree(m)["tree_param"].update(num_feature="9"), "unknown param"),
    "number of a tree": (lambda m: tree(m).update(id=5), "another number"),
    "category beyond": (put("categories", 0, 5, 1), "categories that do not exist"),
    "category far beyond": (put("categories", 0, 2**31 - 1, 1), "categories that do not exist"),
    "category below": (put("categories", 0, -1, 1), "categories that do not exist"),
    "set beyond": (put("categories_sizes", 0, 3, 1), "wrong length"),
    "negative set": (put("categories_sizes", 0, -2, 1), "wrong length"),
    "set elsewhere": (put("categories_segments", 0, 1, 1), "wrong length"),
    "set of a leaf": (put("categories_nodes", 0, 1, 1), "misplaced"),
    "two sets": (lambda m: tree(m, 1)["categories_nodes"].append(0), "misplaced"),
    "columns": (learner("learner_model_param", "num_feature", value="9"), "9 columns where"),
    "outputs": (learner("learner_model_param", "num_target", value="2"), "more than one output"),
    "classes": (learner("learner_model_param", "num_class", value="3"), "more than one output"),
    "base score": (learner("learner_model_param", "base_score", value="[nan]"), "base score"),
    "huge base score": (learner("learner_model_param", "base_score", value="1E99"), "base score"),
    "objective": (learner("objective", "name", value="rank:ndcg"), "unknown objective"),
    "column types": (learner("feature_types", value=["q", "c", "c"]), "other column types"),
    "few column types": (learner("feature_types", value=["q"]), "too few"),
    "no column types": (learner("feature_types", value=[]), "lacks the types"),
    "column names": (learner("feature_names", value=["x"]), "other columns"),
    "attributes": (learner("attributes", value={"a": 1}), "attributes"),
    "dart": (learner("gradient_booster", "name", value="dart"), "unknown kind"),
    "lost trees": (lambda m: m["learner"]["gradient_booster"]["model"]["trees"].pop(), "lost trees"),
    "rounds": (learner("gradient_booster", "model", "iteration_indptr", value=[0, 2]), "rounds"),
    "rounds beyond": (
        learner("gradient_booster", "model", "iteration_indptr", value=[0, 1, 9]), "rounds"),
    "groups": (learner("gradient_booster", "model", "tree_info", value=[0, 7]), "unknown groups"),
    "own categories": (
        learner("gradient_booster", "model", "cats", "enc", value=[{}]), "categories of its own"),
    "version": (lambda m: m.update(version=[0, 0, 0]), "version"),
    "no learner": (lambda m: m.pop("learner"), "lacks learner"),
    "list for an object": (lambda m: m.update(learner=[]), "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("case", LIES)
def test_lies_are_refused(case: str) -> None:
    change, message = LIES[case]
    model = copy.deepcopy(booster(stump(), category_stump()))
    check_booster(model, COLUMNS)
    change(model)
    with pytest.raises(ModelFileError, match=message):
        check_booster(model, COLUMNS)


def test_cycles_and_unreachable_nodes_are_refused() -> None:
    below_itself = node_arrays([1, 3, -1, 1, -1], [2, 4, -1, -1, -1])
    with pytest.raises(ModelFileError, match="one child|cycle|another parent"):
        check_booster(booster(below_itself), COLUMNS)
    # nodes 3 and 4 point at one another, out of reach of the root
    apart = node_arrays([1, -1, -1, 4, 3], [2, -1, -1, 5, 6], parents=[2**31 - 1, 0, 0, 4, 3, 3, 4])
    apart = {name: (v + [v[-1]] * 2 if isinstance(v, list) and len(v) == 5 else v)
             for name, v in apart.items()}  # fmt: skip
    apart["left_children"], apart["right_children"] = (
        [1, -1, -1, 4, 3, -1, -1],
        [2, -1, -1, 5, 6, -1, -1],
    )
    apart["tree_param"]["num_nodes"] = "7"
    with pytest.raises(ModelFileError, match="unreachable nodes"):
        check_booster(booster(apart), COLUMNS)


def chain(depth: int) -> dict[str, Any]:
    """A tree that goes down one side."""
    n = 2 * depth + 1
    left, right = [-1] * n, [-1] * n
    for level in range(depth):
        node = 0 if level == 0 else 2 * level
        left[node], right[node] = 2 * level + 1, 2 * level + 2
    return node_arrays(left, right)


def test_trees_too_deep_for_recursion_are_refused() -> None:
    made = make_booster(booster(chain(MAX_DEPTH - 1)), COLUMNS)
    shap = made.predict(
        xgboost.DMatrix(np.zeros((1, 3)), feature_types=["q", "q", "c"], enable_categorical=True),
        pred_contribs=True,
    )
    assert shap.shape == (1, 4)
    with pytest.raises(ModelFileError, match="deeper"):
        check_booster(booster(chain(MAX_DEPTH + 1)), COLUMNS)
    with pytest.raises(ModelFileError, match="deeper"):
        check_booster(booster(chain(20_000)), COLUMNS)


def test_what_xgboost_gets_is_written_anew_from_the_checked_values() -> None:
    whole = booster(stump())
    tree(whole)["split_conditions"] = [1, 2, 3]  # whole numbers where XGBoost wants others
    made = make_booster(whole, COLUMNS)
    assert made.inplace_predict(np.zeros((1, 3), np.float32)).tolist() == [2.0]


def test_checks_of_many_trees_cost_little_more_than_parsing_them() -> None:
    many = booster(*(chain(30) for _ in range(300)))
    written = json.dumps(many)

    def seconds(work: Callable[[], Any]) -> float:
        best = np.inf
        for _ in range(5):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
        return best

    assert seconds(lambda: check_booster(many, COLUMNS)) < 3 * seconds(lambda: json.loads(written))
