"""LightGBM and CatBoost as rankers, their trees kept as a booster of XGBoost.

A model file must not run code when it is opened, and neither library can promise that. So the trees are
taken over, cut for cut (`foreign_trees`). What is left of the library after `fit` is nothing: scores,
explanations and model files are those of our own boosters. What CatBoost makes of categories, counts and rates
of single ones and of combinations, is taken over as a table for each, `CategoryStatistics`.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from toprank.base import TrainingData
from toprank.boosting.base import BoostedTreesRanker
from toprank.boosting.foreign_trees import LEAF, Node, make_booster
from toprank.docstrings import fill_docstring
from toprank.parallel import thread_count
from toprank.validation import PARAMETER_CONSTRAINTS, StrOptions

Callbacks = Sequence[Callable[[Any], Any]]

__all__ = ["LIBRARIES", "CategoryStatistics", "Combination", "LibraryBooster", "is_installed"]


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
    _accepts_dates = False
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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, callbacks: Callbacks = ()
    ) -> LibraryBooster:
        """Let the library learn from rows `X` with labels `y`, and take its trees over.

        Callbacks are called after each round with what the library knows of it; a true answer ends the fit.
        """
        data = self._check_training(X, y, sample_weight)
        trees = LIBRARIES[self.library](
            data.X.astype(np.float32), data.y.astype(int), data.sample_weight, callbacks=callbacks,
            **self._settings(),
        )  # fmt: skip
        return self._take_over(trees, data)

    def fit_categories(
        self,
        X: np.ndarray,
        y: np.ndarray,
        n_categories: np.ndarray,
        sample_weight: Any = None,
        *,
        callbacks: Callbacks = (),
    ) -> CategoryStatistics:
        """Let CatBoost learn from numbers and codes of categories, and return what its trees look at.

        The fitted ranker scores rows that ``statistics.transform`` has made of numbers and codes.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Numbers, and codes from 0 up, in single precision; NaN where a cell is missing.
        y : ndarray of 0 and 1
        n_categories : int ndarray of shape (n_columns,)
            Number of codes of each column of categories, 0 for numbers.
        sample_weight : ndarray, optional
        callbacks : sequence of callables
            As for `fit`.

        Returns
        -------
        statistics : CategoryStatistics
        """
        X = X.astype(np.float32)
        trees, statistics = catboost_with_categories(
            X, y.astype(int), n_categories, sample_weight, callbacks=callbacks, **self._settings()
        )
        self._take_over(trees, self._check_training(statistics.transform(X), y, sample_weight))
        return statistics

    def _settings(self) -> dict[str, Any]:
        return {
            "parameters": dict(self.parameters or {}),
            "seed": int(check_random_state(self.random_state).randint(2**31 - 1)),
            "n_jobs": thread_count(self.n_jobs),
        }

    def _take_over(self, trees: list[list[Node]], data: TrainingData) -> LibraryBooster:
        self.boosters_ = [make_booster(trees, data.X.shape[1], thread_count(self.n_jobs))]
        self.booster_weights_ = np.ones(1)
        self.trained_on_sparse_ = False
        self._set_threshold(self._raw_scores(data.X), data)
        return self


class _Watch:
    """Callbacks in the forms that LightGBM and CatBoost call."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks

    def __call__(self, environment: Any) -> None:
        if any(callback(environment) for callback in self.callbacks):
            raise import_module("lightgbm.callback").EarlyStopException(environment.iteration, [])

    def after_iteration(self, info: Any) -> bool:
        return not any(callback(info) for callback in self.callbacks)


def _require(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(f"{library} is not installed: pip install toprank[peers]") from error


def lightgbm_trees(
    X: np.ndarray, y: np.ndarray, weight: Any, parameters: dict[str, Any], seed: int, n_jobs: int,
    callbacks: Callbacks = (),
) -> list[list[Node]]:  # fmt: skip
    """Train LightGBM's classifier and return its trees."""
    classifier = _require("lightgbm").LGBMClassifier(
        **{"verbose": -1, "deterministic": True, "force_row_wise": True, **parameters},
        n_jobs=n_jobs, random_state=seed,
    )  # fmt: skip
    classifier.fit(X, y, sample_weight=weight, callbacks=[_Watch(callbacks)])
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
    X: np.ndarray, y: np.ndarray, weight: Any, parameters: dict[str, Any], seed: int, n_jobs: int,
    callbacks: Callbacks = (),
) -> list[list[Node]]:  # fmt: skip
    """Train CatBoost's classifier on numbers and return its trees."""
    none = np.zeros(X.shape[1], dtype=np.int64)
    return catboost_with_categories(X, y, none, weight, parameters, seed, n_jobs, callbacks)[0]


def catboost_with_categories(
    X: np.ndarray,
    y: np.ndarray,
    n_categories: np.ndarray,
    weight: Any,
    parameters: dict[str, Any],
    seed: int,
    n_jobs: int,
    callbacks: Callbacks = (),
) -> tuple[list[list[Node]], CategoryStatistics]:
    """Train CatBoost's classifier; return its trees, and what they look at in place of categories."""
    catboost = _require("catboost")
    classifier = catboost.CatBoostClassifier(
        **{"verbose": 0, "allow_writing_files": False, **parameters},
        thread_count=n_jobs, random_seed=seed,
    )  # fmt: skip
    rows: Any = X
    categories = np.flatnonzero(n_categories)
    if len(categories):
        rows = pd.DataFrame(X)
        for j in categories:
            codes = np.where(np.isnan(X[:, j]), MISSING, X[:, j])
            rows[j] = codes.astype(np.int64).astype(str)
    pool = catboost.Pool(rows, y, cat_features=categories.tolist(), weight=weight)
    classifier.fit(pool, callbacks=[_Watch(callbacks)] if callbacks else None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trees.json"
        classifier.save_model(str(path), format="json", pool=pool)
        model = json.loads(path.read_text())
    return _read_catboost(model, X.shape[1], int(n_categories.max(initial=0)))


def _read_catboost(
    model: dict[str, Any], n_columns: int, n_codes: int
) -> tuple[list[list[Node]], CategoryStatistics]:
    """Return trees and statistics of CatBoost's JSON.

    All nodes of a level of a tree have one cut. Cuts are counted through: first those of numbers, then those
    of single categories, then those of statistics.
    """
    info = model["features_info"]
    statistics, places = CategoryStatistics.read(
        info, model.get("ctr_data") or {}, n_columns, n_codes
    )
    numbers = info.get("float_features") or ()
    nan_left = {f["flat_feature_index"]: f.get("nan_value_treatment") != "AsTrue" for f in numbers}
    cuts = [
        (f["flat_feature_index"], border, nan_left[f["flat_feature_index"]])
        for f in numbers
        for border in f["borders"] or ()
    ]
    cuts += [(n_columns + k, 0.5, True) for k in range(len(statistics.indicators))]
    cuts += [
        (column, border, True)
        for column, ctr in zip(places, info.get("ctrs") or (), strict=True)
        for border in ctr["borders"]
    ]
    scale, (bias,) = model["scale_and_bias"]
    trees: list[list[Node]] = [[(LEAF, 0.0, False, -1, -1, float(bias))]]
    for tree in model["oblivious_trees"]:
        splits = [cuts[split["split_index"]] for split in tree["splits"] or ()]
        trees.append(_oblivious(splits, [scale * value for value in tree["leaf_values"]]))
    return trees, statistics


def _oblivious(cuts: list[tuple[int, float, bool]], values: list[float]) -> list[Node]:
    """Return a full tree: bit k of a leaf's number says whether the row lies above cut k."""
    nodes: list[Node] = []
    for level, (column, cut, nan_left) in enumerate(cuts):
        first = 2 ** (level + 1) - 1
        nodes += [
            (column, float(cut), nan_left, first + 2 * k, first + 2 * k + 1, 0.0)
            for k in range(2**level)
        ]
    depth = len(cuts)
    for place in range(2**depth):  # the cut of the root is the highest bit of a place
        number = int(format(place, f"0{depth}b")[::-1], 2) if depth else 0
        nodes.append((LEAF, 0.0, False, -1, -1, float(values[number])))
    return nodes


LIBRARIES = {"lightgbm": lightgbm_trees, "catboost": catboost_trees}


# -- categories as CatBoost sees them ------------------------------------------------------------------

MISSING = -1  # the code that stands for a missing category
MULTIPLIER = np.uint64(0x4906BA494954CB65)  # of CatBoost's hash of a combination
UNSEEN = 0x7FFFFFFF  # hash of a category that no training row had
FREE_BUCKET = 2**64 - 1


@dataclass(frozen=True)
class Combination:
    """One or more categories, and conditions beside them, with some statistics of each case that was seen.

    Attributes
    ----------
    categories : int ndarray of shape (n_categories,)
        Columns of categories.
    conditions : ndarray of shape (n_conditions, 3)
        A column, a value, and what must hold: 0, the number is greater; 1, it is greater or missing; 2, the
        code is equal.
    keys : int ndarray of shape (n_cases,), ascending
        Hashes of the cases.
    values : ndarray of shape (n_cases, n_statistics)
        Rates of positives and counts, smoothed in different ways.
    otherwise : ndarray of shape (n_statistics,)
        The statistics of a case that was not seen.
    """

    categories: np.ndarray
    conditions: np.ndarray
    keys: np.ndarray
    values: np.ndarray
    otherwise: np.ndarray

    def statistics(self, X: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        """Return the statistics of each row; `hashes` has one for each code, and last that of missing cells."""
        found = np.zeros(len(X), dtype=np.uint64)
        for j in self.categories:
            cells = X[:, j]
            known = np.isnan(cells) | (cells < len(hashes) - 1)
            code = np.where(np.isnan(cells) | ~known, MISSING, cells).astype(np.int64)
            found = _hash(found, np.where(known, hashes[code], UNSEEN))
        for column, value, kind in self.conditions:
            cells = X[:, int(column)]
            if kind == 2:
                holds = np.where(np.isnan(cells), MISSING, cells) == value
            else:
                holds = (cells > value) | ((kind == 1) & np.isnan(cells))
            found = _hash(found, holds.astype(np.int64))
        key = found.view(np.int64)
        place = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where((self.keys[place] == key)[:, None], self.values[place], self.otherwise)


def _hash(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return CatBoost's hash of pairs of whole numbers, which wraps around at 64 bits."""
    return MULTIPLIER * (first + MULTIPLIER * second.astype(np.int64).view(np.uint64))


@dataclass(frozen=True)
class CategoryStatistics:
    """What CatBoost's trees look at in place of categories (Prokhorenkova et al. 2018).

    While CatBoost learns, the statistics of a row come from the rows before it in a random order; these here,
    for rows that are scored later, come from all training rows.

    Attributes
    ----------
    n_columns : int
    hashes : int ndarray of shape (n_codes + 1,)
        Of each code, and last that of a missing cell.
    indicators : int ndarray of shape (n_indicators, 2)
        A column and a code: 1 where the cell has this code.
    combinations : tuple of Combination
    """

    n_columns: int
    hashes: np.ndarray
    indicators: np.ndarray
    combinations: tuple[Combination, ...]

    @classmethod
    def read(
        cls, info: dict[str, Any], tables: dict[str, Any], n_columns: int, n_codes: int
    ) -> tuple[CategoryStatistics, list[int]]:
        """Read the features and the tables of CatBoost's JSON.

        Also return the column of `transform` for each statistic in CatBoost's order.
        """
        known = {int(f["value"]): _signed(f["hash"]) for f in info.get("cat_features_hash") or ()}
        codes = {value: code for code, value in known.items()}
        hashes = np.array(
            [known.get(code, UNSEEN) for code in [*range(n_codes), MISSING]], np.int64
        )
        flat = {
            f["feature_index"]: f["flat_feature_index"]
            for f in info.get("categorical_features") or ()
        }
        indicators = [
            (f["flat_feature_index"], codes[value])
            for f in info.get("categorical_features") or ()
            for value in f.get("values") or ()
        ]
        numbers = {f["feature_index"]: f for f in info.get("float_features") or ()}
        statistics: dict[str, list[int]] = defaultdict(list)
        ctrs = info.get("ctrs") or []
        for k, ctr in enumerate(ctrs):
            statistics[json.dumps(ctr["elements"])].append(k)
        combinations, places = [], [0] * len(ctrs)
        first = n_columns + len(indicators)
        for own in statistics.values():
            for k in own:
                places[k], first = first, first + 1
            elements = ctrs[own[0]]["elements"]
            combinations.append(
                _combination(elements, [_table(ctrs[k], tables) for k in own], flat, numbers, codes)
            )
        ones = np.array(indicators, np.int64).reshape(-1, 2)
        return cls(n_columns, hashes, ones, tuple(combinations)), places

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return rows with the indicators and the statistics behind their own columns."""
        X = np.asarray(X, dtype=np.float32)
        cells = np.where(np.isnan(X), MISSING, X)
        ones = [cells[:, column] == code for column, code in self.indicators]
        found = [c.statistics(X, self.hashes) for c in self.combinations]
        return np.column_stack([X, *ones, *found]).astype(np.float32)


def _signed(number: int) -> int:
    """Return the whole number with a sign that has the same 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def _table(ctr: dict[str, Any], tables: dict[str, Any]) -> tuple[dict[int, float], float]:
    """Return a statistic of each case that was seen, by its hash, and that of any other."""
    table = tables[ctr["identifier"]]
    cells, stride, total = table["hash_map"], table["hash_stride"], table["counter_denominator"]

    def value(count: float, out_of: float) -> float:
        share = (count + ctr["prior_numerator"]) / (out_of + ctr["prior_denomerator"])
        return float((share + ctr["shift"]) * ctr["scale"])

    found = {}
    for k in range(0, len(cells), stride):
        key, counts = int(cells[k]), cells[k + 1 : k + stride]
        if key != FREE_BUCKET:
            found[key] = value(counts[-1], total if ctr["ctr_type"] == "Counter" else sum(counts))
    return found, value(0, total if ctr["ctr_type"] == "Counter" else 0)


def _combination(
    elements: list[dict[str, Any]],
    tables: list[tuple[dict[int, float], float]],
    columns: dict[int, int],
    numbers: dict[int, dict[str, Any]],
    codes: dict[int, int],
) -> Combination:
    """Bring the tables of statistics of one combination together."""
    categories, conditions = [], []
    for element in elements:
        kind = element["combination_element"]
        if kind == "cat_feature_value":
            categories.append(columns[element["cat_feature_index"]])
        elif kind == "cat_feature_exact_value":
            code = codes[_signed(element["value"])]
            conditions.append((columns[element["cat_feature_index"]], code, 2))
        else:
            feature = numbers[element["float_feature_index"]]
            greater = 1 if feature.get("nan_value_treatment") == "AsTrue" else 0
            conditions.append((feature["flat_feature_index"], element["border"], greater))
    otherwise = np.array([other for _, other in tables])
    seen = np.array(sorted({key for table, _ in tables for key in table}), np.uint64)
    values = np.array(
        [[table.get(int(key), other) for table, other in tables] for key in seen]
    ).reshape(len(seen), len(tables))
    keys = seen.view(np.int64)
    order = np.argsort(keys)
    return Combination(
        np.array(categories, np.int64), np.array(conditions, np.float64).reshape(-1, 3), keys[order],
        values[order], otherwise,
    )  # fmt: skip
