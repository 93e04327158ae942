"""LightGBM and CatBoost as rankers, their trees kept as a booster of XGBoost.

A model file must not run code when it is opened, and neither library can promise that. So the trees are
taken over, cut for cut: rows are single precision for all three libraries, and `x <= t` is `x < u` with `u`
the next number of single precision above `t`. What is left of the library after `fit` is nothing: scores,
explanations and model files are those of our own boosters.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from toprank.boosting.base import BoostedTreesRanker
from toprank.boosting.xgboost_helpers import require_xgboost
from toprank.docstrings import fill_docstring
from toprank.parallel import thread_count
from toprank.validation import PARAMETER_CONSTRAINTS, StrOptions

__all__ = ["LIBRARIES", "LibraryBooster", "is_installed"]

FLOAT32_MAX = float(np.finfo(np.float32).max)
ROOT_PARENT = 2**31 - 1


def is_installed(library: str) -> bool:
    """Whether a library can be imported.

    Examples
    --------
    >>> is_installed("a library that does not exist")
    False
    """
    return find_spec(library) is not None


@fill_docstring
class LibraryBooster(BoostedTreesRanker):
    """Boosted trees of LightGBM or CatBoost on the logistic loss, for tables of numbers.

    Parameters
    ----------
    library : {"lightgbm", "catboost"}
        Which must be installed: ``pip install toprank[peers]``.
    parameters : dict, optional
        Of the library's classifier, such as ``{"n_estimators": 300}``.
    %(n_jobs)s
    random_state : int, RandomState or None

    Attributes
    ----------
    boosters_ : list of xgboost.Booster
        One: the trees of the library.
    booster_weights_ : ndarray of shape (1,)
    %(classes)s

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank.boosting.library import LibraryBooster
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> ranker = LibraryBooster("lightgbm", {"n_estimators": 20}, random_state=0)
    >>> ranker.fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "library": [StrOptions({"lightgbm", "catboost"})],
        "parameters": [Mapping, None],
    }
    _accepts_categories = False
    _accepts_sparse = False

    def __init__(
        self,
        library: str = "lightgbm",
        parameters: Mapping[str, Any] | None = None,
        *,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.library = library
        self.parameters = parameters
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LibraryBooster:
        """Let the library learn from rows `X` with labels `y`, and take its trees over."""
        data = self._check_training(X, y, sample_weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        n_jobs, given = thread_count(self.n_jobs), dict(self.parameters or {})
        trees = LIBRARIES[self.library](
            data.X.astype(np.float32), data.y.astype(int), data.sample_weight, given, seed, n_jobs
        )
        self.boosters_ = [make_booster(trees, data.X.shape[1], n_jobs)]
        self.booster_weights_ = np.ones(1)
        self.trained_on_sparse_ = False
        self._set_threshold(self._raw_scores(data.X), data)
        return self


# A tree is a list of nodes: (column, threshold, NaN goes left, left, right, value); the column of a leaf is -1.
Node = tuple[int, float, bool, int, int, float]
LEAF = -1


def _require(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(f"{library} is not installed: pip install toprank[peers]") from error


def lightgbm_trees(
    X: np.ndarray, y: np.ndarray, weight: Any, parameters: dict[str, Any], seed: int, n_jobs: int
) -> list[list[Node]]:
    """Train LightGBM's classifier and return its trees."""
    classifier = _require("lightgbm").LGBMClassifier(
        **{"verbose": -1, "deterministic": True, "force_row_wise": True, **parameters},
        n_jobs=n_jobs, random_state=seed,
    )  # fmt: skip
    classifier.fit(X, y, sample_weight=weight)
    return [_flatten(t["tree_structure"]) for t in classifier.booster_.dump_model()["tree_info"]]


def _flatten(root: dict[str, Any]) -> list[Node]:
    """Return the nodes of a nested tree level by level: XGBoost takes siblings for neighbours."""
    nodes: list[Node] = []
    waiting = [root]
    for node in waiting:  # which grows on the way
        if "leaf_value" in node:
            nodes.append((LEAF, 0.0, False, -1, -1, float(node["leaf_value"])))
            continue
        cut, first = float(node["threshold"]), len(waiting)
        # where training had no missing cell, LightGBM takes one for 0
        nan_left = bool(node["default_left"]) if node["missing_type"] == "NaN" else cut >= 0.0
        nodes.append((int(node["split_feature"]), cut, nan_left, first, first + 1, 0.0))
        waiting += [node["left_child"], node["right_child"]]
    return nodes


def catboost_trees(
    X: np.ndarray, y: np.ndarray, weight: Any, parameters: dict[str, Any], seed: int, n_jobs: int
) -> list[list[Node]]:
    """Train CatBoost's classifier and return its trees; all nodes of a level have the same cut."""
    classifier = _require("catboost").CatBoostClassifier(
        **{"verbose": 0, "allow_writing_files": False, **parameters},
        thread_count=n_jobs, random_seed=seed,
    )  # fmt: skip
    classifier.fit(X, y, sample_weight=weight)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trees.json"
        classifier.save_model(str(path), format="json")
        model = json.loads(path.read_text())
    scale, (bias,) = model["scale_and_bias"]
    nan_left = {
        f["flat_feature_index"]: f.get("nan_value_treatment") != "AsTrue"
        for f in model["features_info"]["float_features"]
    }
    column_of = {
        f["feature_index"]: f["flat_feature_index"]
        for f in model["features_info"]["float_features"]
    }
    constant: list[Node] = [(LEAF, 0.0, False, -1, -1, float(bias))]
    trees = [constant]
    for tree in model["oblivious_trees"]:
        cuts = [(column_of[s["float_feature_index"]], s["border"]) for s in tree["splits"] or ()]
        values = [scale * value for value in tree["leaf_values"]]
        trees.append(_oblivious(cuts, values, nan_left))
    return trees


def _oblivious(
    cuts: list[tuple[int, float]], values: list[float], nan_left: dict[int, bool]
) -> list[Node]:
    """Return a full tree: bit k of a leaf's number says whether the row lies above cut k."""
    nodes: list[Node] = []
    for level, (column, cut) in enumerate(cuts):
        first = 2 ** (level + 1) - 1
        nodes += [
            (column, float(cut), nan_left[column], first + 2 * k, first + 2 * k + 1, 0.0)
            for k in range(2**level)
        ]
    depth = len(cuts)
    for place in range(2**depth):  # the cut of the root is the highest bit of a place
        number = int(format(place, f"0{depth}b")[::-1], 2) if depth else 0
        nodes.append((LEAF, 0.0, False, -1, -1, float(values[number])))
    return nodes


LIBRARIES = {"lightgbm": lightgbm_trees, "catboost": catboost_trees}


# -- trees as a booster of XGBoost -------------------------------------------------------------------


def make_booster(trees: list[list[Node]], n_columns: int, n_jobs: int) -> Any:
    """Return the sum of some trees as a booster.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.boosting.xgboost_helpers import predict_margin
    >>> stump = [(0, 2.0, True, 1, 2, 0.0), (-1, 0.0, False, -1, -1, -1.0), (-1, 0.0, False, -1, -1, 1.0)]
    >>> booster = make_booster([stump], n_columns=1, n_jobs=1)
    >>> predict_margin(booster, np.array([[2.0], [2.1], [np.nan]])).tolist()
    [-1.0, 1.0, -1.0]
    """
    xgboost = require_xgboost()
    matrix = xgboost.DMatrix(np.zeros((1, n_columns), dtype=np.float32), nthread=1)
    settings = {"objective": "reg:squarederror", "base_score": 0.0, "nthread": n_jobs}
    model = json.loads(bytes(xgboost.Booster(settings, [matrix]).save_raw(raw_format="json")))
    kept = model["learner"]["gradient_booster"]["model"]
    kept["trees"] = [_tree_json(nodes, number, n_columns) for number, nodes in enumerate(trees)]
    kept["tree_info"] = [0] * len(trees)
    kept["iteration_indptr"] = list(range(len(trees) + 1))
    kept["gbtree_model_param"]["num_trees"] = str(len(trees))
    booster = xgboost.Booster({"nthread": n_jobs})
    booster.load_model(bytearray(json.dumps(model).encode()))
    return booster


def _tree_json(nodes: list[Node], number: int, n_columns: int) -> dict[str, Any]:
    """Return a tree in the words of XGBoost's JSON."""
    column, cut, nan_left, left, right, value = map(list, zip(*nodes, strict=True))
    parents = [ROOT_PARENT] * len(nodes)
    for k in range(len(nodes)):
        if column[k] != LEAF:
            parents[left[k]] = parents[right[k]] = k
    conditions = np.where(np.array(column) == LEAF, value, _strict_cuts(np.array(cut)))
    zeros, none = [0.0] * len(nodes), [0] * len(nodes)
    return {
        "id": number,
        "tree_param": {
            "num_deleted": "0", "num_feature": str(n_columns), "num_nodes": str(len(nodes)),
            "size_leaf_vector": "1",
        },
        "base_weights": [float(v) for v in _means(nodes)], "loss_changes": zeros, "sum_hessian": _cover(nodes),
        "split_conditions": [float(c) for c in conditions],
        "left_children": left, "right_children": right, "parents": parents,
        "split_indices": [max(c, 0) for c in column], "split_type": none,
        "default_left": [int(goes) for goes in nan_left],
        "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": [],
    }  # fmt: skip


def _strict_cuts(cuts: np.ndarray) -> np.ndarray:
    """Return u with `x < u` exactly where `x <= t`, for x of single precision."""
    inside = np.clip(cuts, -FLOAT32_MAX, FLOAT32_MAX)
    nearest = inside.astype(np.float32)
    with np.errstate(over="ignore"):
        above = np.nextafter(nearest, np.float32(np.inf))
    strict = np.where(nearest > inside, nearest, above).astype(np.float64)
    return np.minimum(strict, FLOAT32_MAX)


def _cover(nodes: list[Node]) -> list[float]:
    """Return the leaves below each node, which SHAP values take for its share of the rows."""
    cover = [1.0] * len(nodes)
    for k in range(len(nodes) - 1, -1, -1):  # children come after their parent
        if nodes[k][0] != LEAF:
            cover[k] = cover[nodes[k][3]] + cover[nodes[k][4]]
    return cover


def _means(nodes: list[Node]) -> np.ndarray:
    """Return the mean of the leaves below each node."""
    cover, sums = _cover(nodes), np.array([node[5] for node in nodes])
    for k in range(len(nodes) - 1, -1, -1):
        if nodes[k][0] != LEAF:
            sums[k] = sums[nodes[k][3]] + sums[nodes[k][4]]
    return sums / np.array(cover)
