"""Boosters are checked before XGBoost sees them, and pass unchanged when they are sound."""

from __future__ import annotations

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
from toprank.persistence.boosters import (
    ARRAYS,
    MAX_DEPTH,
    booster_parts,
    check_arrays,
    check_settings,
    make_booster,
)

COLUMNS = Columns(("a", "b", "kind"), (None, None, np.array(["p", "q", "r", "s", "t"])))
Parts = tuple[dict[str, Any], dict[str, np.ndarray]]


def tree(left: list[int], right: list[int], **more: Any) -> dict[str, list[Any]]:
    """A tree of numeric splits on the first column with these children."""
    n = len(left)
    return {
        "num_nodes": [n], "base_weights": [0.0] * n, "loss_changes": [1.0] * n,
        "split_conditions": [0.5] * n, "sum_hessian": [1.0] * n, "left_children": left,
        "right_children": right, "split_indices": [0] * n, "default_left": [0] * n,
        "split_type": [0] * n, "categories_sizes": [], "categories": [], **more,
    }  # fmt: skip


def parts(*trees: dict[str, list[Any]]) -> Parts:
    settings = {
        "version": [3, 2, 0], "attributes": {}, "feature_names": [],
        "feature_types": ["q", "q", "c"], "base_score": "[0E0]", "boost_from_average": "0",
        "objective": "reg:squarederror", "scale_pos_weight": "1",
    }  # fmt: skip
    arrays = {
        name: np.array([v for tree in trees for v in tree[name]], dtype=array.dtype)
        for name, array in ARRAYS.items()
    }
    return settings, arrays


def check(settings: Any, arrays: Any) -> None:
    check_settings(settings, COLUMNS)
    check_arrays(arrays, COLUMNS)


def stump(**more: Any) -> dict[str, list[Any]]:
    return tree([1, -1, -1], [2, -1, -1], **more)


def category_stump() -> dict[str, list[Any]]:
    return stump(
        split_type=[1, 0, 0], split_indices=[2, 0, 0], categories=[1, 3], categories_sizes=[2],
        split_conditions=[0.0, 10.0, 20.0],
    )  # fmt: skip


def test_sound_boosters_score_as_they_should() -> None:
    numbers = stump(split_conditions=[0.5, 1.0, 2.0])
    made = make_booster(*parts(numbers, category_stump(), numbers, category_stump()), COLUMNS)
    cells = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 1.0]], dtype=np.float32)
    # members of the set go right
    np.testing.assert_allclose(made.inplace_predict(cells), [22.0, 44.0, 42.0])


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
        again = make_booster(*booster_parts(model.boosters_[0]), model.columns_, 1)
        assert again.save_raw(raw_format="json") == model.boosters_[0].save_raw(raw_format="json")


@pytest.mark.parametrize("sign", [-1, 1])
def test_cuts_between_missing_cells_and_all_others_pass(sign: int) -> None:
    """Such a cut may be minus infinity in XGBoost, which is no number of a file."""
    rng = np.random.default_rng(3)
    x, z = rng.normal(size=(2, 600)).astype(np.float32)
    x[rng.random(600) < 0.5] = np.nan
    target = np.isnan(x) + 0.3 * rng.normal(size=600)
    settings = {"max_depth": 2, "monotone_constraints": (sign, 0)}
    cells = np.stack([x, z], axis=1)
    booster = xgboost.train(settings, xgboost.QuantileDMatrix(cells, target), 2)
    settings, arrays = booster_parts(booster)
    first_cut = arrays["split_conditions"][0]
    assert not np.nanmin(x) < first_cut <= np.nanmax(x), "no such cut; the test shows nothing"
    again = make_booster(settings, arrays, Columns(("x", "z"), (None, None)), 1)
    least = np.finfo(np.float32).min
    cells = np.append(cells, [[least, 0.0], [-least, 0.0]], axis=0).astype(np.float32)
    np.testing.assert_array_equal(again.inplace_predict(cells), booster.inplace_predict(cells))


def test_boosters_without_trees_pass() -> None:
    made = make_booster(*parts(tree([], [], num_nodes=[])), COLUMNS)
    assert made.num_boosted_rounds() == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"booster": "dart", "rate_drop": 0.9},
        {"num_parallel_tree": 2},
        {"objective": "multi:softprob", "num_class": 2},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*`booster=dart` is deprecated")
def test_other_kinds_of_boosters_are_not_stored(settings: dict[str, Any]) -> None:
    matrix = xgboost.DMatrix(np.arange(8.0).reshape(-1, 1), np.tile([0, 1], 4))
    with pytest.raises(ModelFileError, match="of a kind that a model file does not hold"):
        booster_parts(xgboost.train(settings, matrix, 2))


@pytest.mark.filterwarnings("ignore:.*`booster=dart` is deprecated")
@pytest.mark.parametrize("rate_drop", [0.0, 0.9])
def test_trees_with_weights_of_their_own_are_not_stored_without_them(rate_drop: float) -> None:
    """Dropped trees weigh less; newer versions of XGBoost say so beside trees that look like any other."""
    cells = np.arange(40.0).reshape(-1, 1)
    settings = {"booster": "dart", "rate_drop": rate_drop, "max_depth": 2, "seed": 0}
    booster = xgboost.train(settings, xgboost.DMatrix(cells, np.arange(40) % 7), 6)
    saved = json.loads(bytes(booster.save_raw(raw_format="json")))["learner"]["gradient_booster"]
    weights = saved.get("weight_drop", saved.get("model", {}).get("weight_drop", [1.0]))
    assert (min(weights) < 1) == (rate_drop > 0)
    if rate_drop > 0 or saved["name"] != "gbtree":
        with pytest.raises(ModelFileError, match="of a kind that a model file does not hold"):
            booster_parts(booster)
    else:  # nothing was dropped: a booster like any other
        again = make_booster(*booster_parts(booster), Columns(("x",), (None,)), 1)
        np.testing.assert_array_equal(again.inplace_predict(cells), booster.inplace_predict(cells))


def put(name: str, index: int, value: float) -> Callable[[Any, Any], None]:
    return lambda _, arrays: arrays[name].__setitem__(index, value)


def give(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda _, arrays: arrays.update({name: value})


def setting(name: str, value: Any) -> Callable[[Any, Any], None]:
    return lambda settings, _: settings.update({name: value})


# Nodes 0 to 2 are a split by numbers, 3 to 5 one by categories.
LIES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "child beyond": (put("left_children", 0, 3), "child out of range"),
    "child far beyond": (put("right_children", 0, 2**31 - 1), "child out of range"),
    "child below": (put("left_children", 0, -2), "left_children of a booster is out of range"),
    "root as a child": (put("left_children", 0, 0), "child out of range"),
    "one child": (put("left_children", 0, -1), "one child"),
    "shared child": (put("right_children", 0, 1), "or more than one"),
    "fraction of a child": (give("left_children", np.zeros(6)), "not the array it should be"),
    "table of children": (give("left_children", np.zeros((6, 1), "i4")), "not the array it should"),
    "text as children": (give("left_children", "123"), "not the array it should be"),
    "column beyond": (put("split_indices", 0, 3), "column that does not exist"),
    "column below": (put("split_indices", 0, -1), "split_indices of a booster is out of range"),
    "leaf column below": (put("split_indices", 1, -5), "split_indices of a booster is out of range"),
    "infinite leaf": (put("split_conditions", 1, np.inf), "not finite"),
    "missing leaf": (put("base_weights", 1, np.nan), "not finite"),
    "unknown default": (put("default_left", 0, 2), "default_left of a booster is out of range"),
    "unknown split": (put("split_type", 0, 7), "split_type of a booster is out of range"),
    "numbers split as categories": (put("split_type", 0, 1), "column of numbers by categories"),
    "leaf that splits": (put("split_type", 1, 1), "leaves that split"),
    "short array": (give("sum_hessian", np.zeros(5, "f4")), "not the array it should be"),
    "long array": (give("base_weights", np.zeros(7, "f4")), "not the array it should be"),
    "no array": (give("sum_hessian", None), "not the array it should be"),
    "lost array": (lambda _, arrays: arrays.pop("sum_hessian"), "lost arrays"),
    "unknown array": (give("parents", np.zeros(6, "i4")), "more than it should"),
    "no arrays": (lambda _, arrays: arrays.clear(), "lost arrays"),
    "more nodes declared": (put("num_nodes", 0, 4), "lost nodes"),
    "nodes of another tree": (
        give("num_nodes", np.array([2, 4], "i4")), "out of range"),
    "no nodes declared": (put("num_nodes", 0, 0), "num_nodes of a booster is out of range"),
    "many nodes declared": (give("num_nodes", np.full(9, 2**31 - 1, "i4")), "lost nodes"),
    "category beyond": (put("categories", 0, 5), "categories that do not exist"),
    "category far beyond": (put("categories", 0, 2**31 - 1), "categories that do not exist"),
    "category below": (put("categories", 0, -1), "categories of a booster is out of range"),
    "set beyond": (put("categories_sizes", 0, 3), "wrong length"),
    "empty set": (put("categories_sizes", 0, 0), "categories_sizes of a booster is out of range"),
    "negative set": (put("categories_sizes", 0, -2), "categories_sizes of a booster is out of range"),
    "two sets": (give("categories_sizes", np.array([1, 1], "i4")), "wrong length"),
    "no set": (give("categories_sizes", np.array([], "i4")), "wrong length"),
    "base score": (setting("base_score", "[nan]"), "base score"),
    "huge base score": (setting("base_score", "1E99"), "base score"),
    "base score of a kind": (setting("base_score", 0.5), "base score"),
    "average": (setting("boost_from_average", "2"), "damaged"),
    "objective": (setting("objective", "rank:ndcg"), "unknown objective"),
    "objective of a kind": (setting("objective", ["reg:logistic"]), "unknown objective"),
    "weight": (setting("scale_pos_weight", "inf"), "objective of a booster is damaged"),
    "column types": (setting("feature_types", ["q", "c", "c"]), "other column types"),
    "few column types": (setting("feature_types", ["q"]), "too few"),
    "no column types": (setting("feature_types", []), "lacks the types"),
    "types of a kind": (setting("feature_types", "qqc"), "damaged column types"),
    "column names": (setting("feature_names", ["x"]), "other columns"),
    "attributes": (setting("attributes", {"a": 1}), "attributes"),
    "version": (setting("version", [0, 0, 0]), "version"),
    "lost setting": (lambda settings, _: settings.pop("version"), "incomplete"),
    "unknown setting": (setting("nthread", 4), "more than there are"),
}  # fmt: skip


@pytest.mark.parametrize("case", LIES)
def test_lies_are_refused(case: str) -> None:
    change, message = LIES[case]
    settings, arrays = parts(stump(), category_stump())
    check(settings, arrays)
    change(settings, arrays)
    with pytest.raises(ModelFileError, match=message):
        check(settings, arrays)


def test_lists_in_place_of_objects_are_refused() -> None:
    settings, arrays = parts(stump())
    for lie in ([], None, "text"):
        with pytest.raises(ModelFileError, match="incomplete"):
            check(lie, arrays)
        with pytest.raises(ModelFileError, match="lost arrays"):
            check(settings, lie)


def test_cycles_and_unreachable_nodes_are_refused() -> None:
    below_itself = tree([1, 3, -1, 1, -1], [2, 4, -1, -1, -1])
    with pytest.raises(ModelFileError, match="one child"):
        check(*parts(below_itself))
    # nodes 3 and 4 point at one another, out of reach of the root
    apart = tree([1, -1, -1, 4, 3, -1, -1], [2, -1, -1, 5, 6, -1, -1])
    with pytest.raises(ModelFileError, match="unreachable nodes"):
        check(*parts(apart))


def chain(depth: int) -> dict[str, list[Any]]:
    """A tree that goes down one side."""
    n = 2 * depth + 1
    left, right = [-1] * n, [-1] * n
    for level in range(depth):
        node = 0 if level == 0 else 2 * level
        left[node], right[node] = 2 * level + 1, 2 * level + 2
    return tree(left, right)


def test_trees_too_deep_for_recursion_are_refused() -> None:
    made = make_booster(*parts(chain(MAX_DEPTH - 1)), COLUMNS)
    shap = made.predict(
        xgboost.DMatrix(np.zeros((1, 3)), feature_types=["q", "q", "c"], enable_categorical=True),
        pred_contribs=True,
    )
    assert shap.shape == (1, 4)
    with pytest.raises(ModelFileError, match="deeper"):
        check(*parts(chain(MAX_DEPTH + 1)))
    with pytest.raises(ModelFileError, match="deeper"):
        check(*parts(chain(20_000)))


def test_checks_of_many_trees_cost_little() -> None:
    """No more than to parse XGBoost's own JSON of the same trees."""
    settings, arrays = parts(*(chain(30) for _ in range(300)))
    written = bytes(make_booster(settings, arrays, COLUMNS).save_raw(raw_format="json"))

    def seconds(work: Callable[[], Any]) -> float:
        best = np.inf
        for _ in range(5):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
        return best

    assert seconds(lambda: check(settings, arrays)) < seconds(lambda: json.loads(written))
