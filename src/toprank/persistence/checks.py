"""Checks of what a model file holds, before compiled code sees it.

Compiled code follows child numbers, column numbers and lengths without looking. So every record is made by
its constructor from fields of the declared types, then its arrays are compared with the tables below (type,
shape, range), then what must hold between them is checked; at last the parts of an estimator are
compared with one another and with its columns.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from toprank.parallel import MAX_THREADS
from toprank.registry import MEMBERS, RELATIONAL, RELATIONAL_TRANSFORMERS, TRANSFORMERS, WRAPPERS

__all__ = [
    "ModelFileError", "check_estimator", "check_record", "check_threads", "children_follow", "is_a",
    "is_ascending", "is_fitted", "is_integer", "is_wrapper", "make_record", "require",
]  # fmt: skip

MAX_TREE_DEPTH = 62  # of a ranking tree: positions are integers of 64 bits


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message is one line."""


def require(condition: Any, message: str) -> None:
    """Raise a `ModelFileError` unless the condition holds."""
    if not condition:
        raise ModelFileError(message)


# -- records: fields of the declared types ------------------------------------------------------------

# Fields that may hold more than they declare: ensembles over relational data keep clauses there.
ANY_TYPE = {("KeptRound", "rules")}


def make_record(cls: type, fields: dict[str, Any]) -> Any:
    """Make a frozen dataclass from fields of the right names and types.

    Fields that the class gives a default, such as those added since the file was written, may lack.
    """
    name = cls.__name__
    declared = _declared_fields(cls)
    unknown = sorted(set(fields) - set(declared))
    require(not unknown, f"a {name} has unknown fields: {', '.join(unknown)[:80]}")
    for field, (annotation, optional) in declared.items():
        if field not in fields:
            require(optional, f"a {name} has no {field!r}")
        elif (name, field) not in ANY_TYPE:
            fits = matches(fields[field], annotation)
            require(fits, f"the {field!r} of a {name} is of the wrong type")
    return cls(**fields)


@cache
def _declared_fields(cls: type) -> dict[str, tuple[Any, bool]]:
    """Return the annotation of each field and whether it has a default."""
    hints, fields = typing.get_type_hints(cls), [f for f in dataclasses.fields(cls) if f.init]
    required = {f.name for f in fields if f.default is f.default_factory is dataclasses.MISSING}
    return {field.name: (hints[field.name], field.name not in required) for field in fields}


def matches(value: Any, annotation: Any) -> bool:
    """Whether a value is of an annotated type; annotations not understood here match everything."""
    if annotation is Any:
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return any(matches(value, one) for one in arguments)
    if origin is tuple and arguments[1:] != (Ellipsis,):
        fits = isinstance(value, tuple) and len(value) == len(arguments)
        return fits and all(map(matches, value, arguments))
    if origin in (tuple, list):
        return isinstance(value, origin) and all(matches(item, arguments[0]) for item in value)
    if origin is not None or not isinstance(annotation, type):
        return annotation is not None or value is None
    if annotation is float:
        return isinstance(value, (int, float, np.integer, np.floating)) and type(value) is not bool
    if annotation is int:
        return isinstance(value, (int, np.integer)) and type(value) is not bool
    return isinstance(value, annotation)


# -- records: arrays ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Array:
    """What an array must be; all cells lie in [low, high), floats are finite, or at least not NaN.

    A name for a length stands for the same length all over the record, "*" for any.
    """

    dtype: str
    shape: tuple[int | str, ...] = ("n",)
    low: float | None = None
    high: float | str | None = None
    finite: bool = True

    def check(self, array: Any, what: str, lengths: dict[str, int] | None = None) -> Any:
        """Check an array and return it; note the lengths that it is the first to have."""
        lengths = {} if lengths is None else lengths
        fits = isinstance(array, np.ndarray) and array.dtype == self.dtype
        require(fits and array.ndim == len(self.shape), f"{what} is not the array it should be")
        for length, side in zip(self.shape, array.shape, strict=True):
            if isinstance(length, str):
                length = side if length == "*" else lengths.setdefault(length, side)
            require(side == length, f"{what} is not the array it should be")
        if array.dtype.kind == "f":
            bad = ~np.isfinite(array) if self.finite else np.isnan(array)
            require(not bad.any(), f"{what} has a value that is not finite")
        high = lengths[self.high] if isinstance(self.high, str) else self.high
        below = self.low is not None and (array < self.low).any()
        above = high is not None and (array >= high).any()
        require(not (below or above), f"{what} is out of range")
        return array


N2 = ("n", 2)
ARRAYS: dict[str, dict[str, Array]] = {
    "NumericEncoding": {
        "source": Array("i8"), "kind": Array("i1", low=0, high=3), "shift": Array("f8"),
        "scale": Array("f8"),
    },
    "RankTree": {
        "left": Array("i4"), "right": Array("i4"), "rule": Array("i4"),
        "depth": Array("i8", low=0, high=MAX_TREE_DEPTH), "position": Array("i8", low=0),
        "weights": Array("f8", N2),
    },
    "LeafRankRules": {
        "cells": Array("i4", ("n", 6)), "weights": Array("f8", N2), "bits": Array("u1", ("*", 32)),
        "roots": Array("i4", ("*",), low=0),
    },
    "SVMRules": {
        "intercept": Array("f8"), "gamma": Array("f8"), "points": Array("f8", ("points", "width")),
        "coef": Array("f8", ("m",)), "centres": Array("i8", ("m",), low=-1),
        "columns": Array("i8", ("*",), low=0, high="width"),
    },
    "CellOrder": {
        "keys": Array("u8"), "places": Array("i8", low=0, high="n"),
        "multipliers": Array("u8", ("trees",)), "ranks": Array("f4", ("*", "trees")),
    },
    "ColumnScaler": {
        "centre": Array("f8"), "spread": Array("f8", low=np.finfo(float).tiny),
        "deviation": Array("f8", low=0), "lower": Array("f8", finite=False),
        "upper": Array("f8", finite=False), "faint": Array("?"),
    },
    "KernelExpansion": {"landmarks": Array("f8", ("n", "*")), "dual_coef": Array("f8")},
    "PathTree": {
        "feature": Array("i8"), "left": Array("i8"), "right": Array("i8"),
        "sign": Array("i8", low=-1, high=2), "threshold": Array("f8", finite=False),
    },
    "Combination": {
        "categories": Array("i8", ("*",), low=0), "conditions": Array("f8", ("*", 3)), "keys": Array("i8"),
        "values": Array("f8", ("n", "statistics")), "otherwise": Array("f8", ("statistics",)),
    },
    "CategoryStatistics": {"hashes": Array("i8", ("*",)), "indicators": Array("i8", ("*", 2))},
    "Layer": {
        "weights": Array("f8", ("*", "n"), low=-1e9, high=1e9), "bias": Array("f8", low=-1e9, high=1e9),
    },
    "TextProjection": {"components": Array("f8", ("n", "*"))},
    "TableFeatures": {"kept": Array("i8", low=0), "source": Array("i8", low=0)},
    "OutOfFoldCounts": {
        "tops": Array("f8"), "bottoms": Array("f8"), "positives": Array("f8", low=0),
        "negatives": Array("f8", low=0), "positive_squares": Array("f8", low=0),
        "negative_squares": Array("f8", low=0),
    },
    "ProbabilityMap": {"knots": Array("f8"), "values": Array("f8", low=0)},
    "KeptRound": {"levels": Array("f8"), "positives": Array("f8"), "negatives": Array("f8")},
    "binning.Bins": {"is_category": Array("?"), "has_missing": Array("?")},
    "BinnedColumns": {
        "is_category": Array("?"), "has_missing": Array("?"), "is_boolean": Array("?"),
    },
}  # fmt: skip


def check_record(name: str, record: Any) -> None:
    """Check a record that was just made: its arrays, then what must hold between its fields."""
    lengths: dict[str, int] = {}
    for field, array in ARRAYS.get(name, {}).items():
        array.check(getattr(record, field), f"the {field!r} of a {name}", lengths)
    for holds, wrong in RELATIONS.get(name, ()):
        require(holds(record), f"a {name} {wrong}")


# -- records: what must hold between fields -----------------------------------------------------------


def is_ascending(values: np.ndarray) -> bool:
    return bool((values[1:] > values[:-1]).all())


def _within(values: np.ndarray, low: float, high: float) -> bool:
    """Whether all values lie in [low, high)."""
    return bool(((values >= low) & (values < high)).all())


def _add_up(offsets: Any, n_parts: int, total: int) -> bool:
    """Whether offsets of parts ascend from 0 to the end."""
    fits = isinstance(offsets, np.ndarray) and offsets.dtype == "i8"
    fits = fits and offsets.shape == (n_parts + 1,) and (np.diff(offsets) >= 0).all()
    return bool(fits and offsets[0] == 0 and offsets[-1] == total)


def children_follow(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether children come in pairs, after their parent, each with one parent only."""
    inner = left != -1
    children = np.concatenate([left[inner], right[inner]])
    forward = (children > np.tile(np.flatnonzero(inner), 2)) & (children < len(left))
    paired = len(left) > 0 and bool((inner == (right != -1)).all())
    return paired and bool(forward.all()) and len(np.unique(children)) == len(children)


def _category_lists(columns: Any) -> bool:
    """Whether categories are lists of different numbers or texts; they need not be sorted."""
    for values in columns.categories:
        if values is not None:
            plain = values.ndim == 1 and values.dtype.kind in "OUifbu"
            if plain and values.dtype.kind == "O":
                plain = all(type(value) is str for value in values)
            if not plain or len(np.unique(values)) != len(values):
                return False
    return True


def _category_numbers(columns: Any) -> bool:
    """Whether there is a number for each category of the columns that are given as numbers."""
    if len(columns.numbers) not in (0, len(columns.categories)):
        return False
    for values, numbers in zip(columns.categories, columns.numbers, strict=False):
        if numbers is not None:
            if values is None:
                return False
            Array("f8", (len(values),), low=-1).check(numbers, "the numbers of categories")
    return True


def _date_orders(columns: Any) -> bool:
    """Whether only columns of numbers are dates."""
    if len(columns.dates) not in (0, len(columns.categories)):
        return False
    pairs = zip(columns.categories, columns.dates, strict=False)
    return all(values is None or order is None for values, order in pairs)


def _cut_points(cuts: Any) -> bool:
    """Whether cut points, or categories with a bin, ascend."""
    fits = isinstance(cuts, np.ndarray) and cuts.dtype == "f8" and cuts.ndim == 1
    return fits and len(cuts) <= 254 and bool(np.isfinite(cuts).all()) and is_ascending(cuts)


def _finite_list(values: Any) -> bool:
    """Whether it is None or a list of finite numbers, at least one."""
    if values is None:
        return True
    fits = isinstance(values, np.ndarray) and values.dtype == "f8" and values.ndim == 1
    return fits and len(values) > 0 and bool(np.isfinite(values).all())


def _known_categories(bins: Any, columns: Any) -> bool:
    """Whether the categories that have a bin exist."""
    kinds = [values is not None for values in columns.categories]
    return bins.is_category.tolist() == kinds and all(
        _within(cuts, 0, len(values))
        for cuts, values in zip(bins.cuts, columns.categories, strict=True)
        if values is not None
    )


# The columns of `cells`, one row for each node of the small trees that split a node.
FEATURE, THRESHOLD, MISSING_FIRST, FIRST, SECOND, SIDE = range(6)


def _forward(rules: Any) -> bool:
    """Whether the children of a small tree come after their parent, and before the next small tree."""
    inner = rules.cells[:, FEATURE] >= 0
    children, parents = rules.cells[inner][:, [FIRST, SECOND]], np.flatnonzero(inner)
    ends = np.append(rules.roots[1:], len(inner))
    own_end = ends[np.searchsorted(rules.roots, parents, side="right") - 1]
    return bool(((children > parents[:, None]) & (children < own_end[:, None])).all())


def _svm_sizes(rules: Any) -> bool:
    """Whether a linear SVM has a coefficient for each column, and another a centre for each."""
    for k, gamma in enumerate(rules.gamma):
        own = slice(rules.coef_starts[k], rules.coef_starts[k + 1])
        width = rules.column_starts[k + 1] - rules.column_starts[k]
        fits = own.stop - own.start == width if gamma == 0 else (rules.centres[own] >= 0).all()
        if not fits:
            return False
    return True


N_SPLITS: dict[str, Callable[[Any], int]] = {
    "LeafRankRules": lambda rules: len(rules.roots),
    "SVMRules": lambda rules: len(rules.intercept),
    "EstimatorRules": lambda rules: len(rules.models),
}


def _split_numbers(tree: Any) -> bool:
    """Whether the inner nodes of a ranking tree have splits that exist."""
    kind, used = type(tree.rules).__name__, tree.rule[tree.left != -1]
    if kind not in N_SPLITS or not _within(used, 0, N_SPLITS[kind](tree.rules)):
        return False
    return kind != "LeafRankRules" or _within(tree.rules.roots[used], 0, len(tree.rules.cells))


def _counts(stairs: Any) -> bool:
    """Whether the four running sums rise, and rows with them."""
    names = ("positives", "negatives", "positive_squares", "negative_squares")
    sums = [getattr(stairs, name) for name in names]
    rising = all(total[-1] > 0 and (np.diff(total) >= 0).all() for total in sums)
    return rising and bool((np.diff(sums[0] + sums[1], prepend=0.0) > 0).all())


# Record -> what must hold of it, and what is wrong if it does not; in this order.
RELATIONS: dict[str, list[tuple[Callable[[Any], Any], str]]] = {
    "Columns": [
        (lambda c: len(c.names) == len(c.categories) == len(set(c.names)), "repeats or lacks columns"),
        (_category_lists, "has a damaged list of categories"),
        (_category_numbers, "has damaged counts of categories"),
        (_date_orders, "has damaged dates"),
    ],
    "Rule": [(lambda r: len(r.literals) < 10_000, "has too many conditions")],
    "KeptRound": [
        (lambda k: isinstance(k.rules, tuple) and 0 < len(k.levels) == len(k.rules) < 256,
         "has no rules, or too many"),
        (lambda k: np.isfinite(k.step), "has a step that is not finite"),
    ],
    "Clause": [(lambda c: len(c.body) <= 256, "is too long")],
    "Schema": [
        (lambda s: all(0 < len(p.columns) == len(p.types) for p in (s.target, *s.predicates)),
         "has columns without types"),
        (lambda s: 0 < len({p.name for p in s.predicates}) == len(s.predicates),
         "has two predicates of the same name, or none"),
    ],
    "binning.Bins": [
        (lambda b: len(b.cuts) == len(b.is_category), "is for other columns"),
        (lambda b: all(map(_cut_points, b.cuts)), "has cut points that do not ascend"),
    ],
    "BinnedColumns": [
        (lambda b: len(b.cuts) == len(b.is_category) == len(b.columns.names), "is for other columns"),
        (lambda b: all(map(_cut_points, b.cuts)), "has cut points that do not ascend"),
        (lambda b: _known_categories(b, b.columns), "has a category that does not exist"),
    ],
    "NumericEncoding": [
        (lambda e: _within(e.source, 0, e.n_columns), "reads a column that does not exist"),
        (lambda e: e.clip > 0, "has a damaged limit"),
    ],
    "RankTree": [
        (lambda t: children_follow(t.left, t.right), "has a child out of range"),
        (_split_numbers, "has a split out of range"),
        (lambda t: (t.position < (1 << t.depth)).all(), "has a position out of range"),
    ],
    "LeafRankRules": [
        (lambda r: len(r.bits) in {1, max(len(r.cells), 1)}, "has lost its sets of categories"),
        (lambda r: _within(r.roots, 0, max(len(r.cells), 1)) and is_ascending(r.roots),
         "has a root out of range"),
        (_forward, "has a child out of range"),
        (lambda r: (r.cells[:, FEATURE] >= -1).all(), "has a column out of range"),
        (lambda r: _within(r.cells[:, SIDE], 0, 2), "has a side out of range"),
        (lambda r: _within(r.cells[r.cells[:, FEATURE] >= 0, THRESHOLD], -1, 256),
         "has a threshold out of range"),
    ],
    "SVMRules": [
        (lambda r: _add_up(r.column_starts, len(r.gamma), len(r.columns)), "has damaged columns"),
        (lambda r: _add_up(r.coef_starts, len(r.gamma), len(r.coef)), "has damaged coefficients"),
        (lambda r: (r.centres < max(len(r.points), 1)).all(), "has a centre out of range"),
        (_svm_sizes, "has too few coefficients or centres"),
    ],
    "EstimatorRules": [
        (lambda r: len(r.models) == len(r.columns) == len(r.swapped), "has lost some of its splits"),
        (lambda r: all(c.dtype.kind == "i" and c.ndim == 1 for c in r.columns), "has damaged columns"),
    ],
    "CellOrder": [
        (lambda o: o.distance in ("footrule", "kendall"), "has an unknown distance"),
        (lambda o: len(o.keys) > 0 and is_ascending(o.keys), "has keys that do not ascend"),
        (lambda o: len(o.ranks) == (len(o.keys) if o.distance == "kendall" else 0), "has lost ranks"),
        (lambda o: 0 < len(o.node_ranks) == len(o.multipliers), "has lost trees"),
        (lambda o: all(np.isfinite(r).all() for r in o.node_ranks), "has a rank that is not finite"),
    ],
    "KernelFunction": [
        (lambda f: is_a(f.scaler, "ColumnScaler"), "has a damaged scaler"),
        (lambda f: f.name in ("rbf", "laplacian", "poly", "linear"), "is unknown"),
        (lambda f: np.isfinite([f.gamma, f.coef0]).all() and 0 <= f.degree < 100, "is damaged"),
    ],
    "KernelExpansion": [
        (lambda e: len(e.landmarks) > 0, "has no landmarks"),
        (lambda e: e.landmarks.shape[1] == e.function.scaler.n_columns, "is for other columns"),
    ],
    "PathTree": [
        (lambda t: children_follow(t.left, t.right), "has a child out of range"),
        (lambda t: ((t.feature >= 0) == (t.left != -1)).all(), "has leaves that split"),
    ],
    "Combination": [
        (lambda c: len(c.keys) > 0 and is_ascending(c.keys), "has cases that do not ascend"),
    ],
    "CategoryStatistics": [
        (lambda s: len(s.hashes) > 0, "has lost its categories"),
        (lambda s: all(_within(columns, 0, s.n_columns) for columns in (
            s.indicators[:, 0], *(c.categories for c in s.combinations),
            *(c.conditions[:, 0] for c in s.combinations))), "reads a column that does not exist"),
    ],
    "TargetEncoding": [
        (lambda e: len(e.shares) == len(e.counts), "has lost columns"),
        (lambda e: all(map(_finite_list, (*e.shares, *e.counts))), "has a damaged list of shares"),
    ],
    "TableFeatures": [
        (lambda f: 0 < len(f.kept) == len(f.columns.names), "has lost features"),
        (lambda f: is_ascending(f.kept), "has features out of order"),
        (lambda f: all(is_integer(place, 0, 2**31 - 1) for place in f.dates), "has damaged dates"),
        (lambda f: len({text.column for text in f.texts}) == len(f.texts), "reads a text twice"),
    ],
    "NeuralNetworks": [
        (lambda m: len(m.networks) > 0 and all(m.networks), "has lost networks, or layers of one"),
        (lambda m: all(len(a.bias) == len(b.weights) for layers in m.networks
                       for a, b in pairwise(layers)), "has layers that do not fit"),
        (lambda m: all(len(layers[-1].bias) == 1 for layers in m.networks), "has more than one output"),
        (lambda m: len({len(layers[0].weights) for layers in m.networks}) == 1,
         "has networks for different columns"),
    ],
    "FittedModel": [
        (lambda f: f.form in ("native", "own", "target", "scaled"), "has an unknown form"),
        (lambda f: f.encoding is None
         or is_a(f.encoding, "TargetEncoding", "NumericEncoding", "CategoryStatistics"),
         "has an unknown encoding"),
        (lambda f: hasattr(f.model, "decision_function") or hasattr(f.model, "predict_proba"),
         "does not score"),
    ],
    "LogOdds": [
        (lambda s: np.isfinite([s.slope, s.intercept, s.low, s.high]).all(), "is not finite"),
        (lambda s: s.slope >= 0 and s.low <= s.high, "falls"),
    ],
    "Member": [
        (lambda m: 0 < m.weight <= 1 + 1e-9, "has an impossible weight"),
        (lambda m: len(m.models) > 0, "has no models"),
    ],
    "OutOfFoldCounts": [
        (lambda s: 0 < len(s.tops) <= 100_000, "is empty, or too long"),
        (lambda s: (s.tops >= s.bottoms).all() and (s.bottoms[:-1] > s.tops[1:]).all(),
         "has scores that do not descend"),
        (_counts, "has counts that do not add up"),
    ],
    "ProbabilityMap": [
        (lambda m: m.method in ("isotonic", "sigmoid"), "has an unknown method"),
        (lambda m: np.isfinite([m.slope, m.intercept]).all() and m.slope >= 0, "is damaged"),
        (lambda m: (len(m.knots) > 0) == (m.method == "isotonic"), "lacks its curve"),
        (lambda m: is_ascending(m.knots) and (np.diff(m.values) >= 0).all(), "does not rise"),
        (lambda m: (m.values <= 1).all(), "leaves the range from 0 to 1"),
    ],
}  # fmt: skip


# -- estimators of the library ------------------------------------------------------------------------


def check_estimator(model: Any) -> None:
    """Check that the parts of a fitted estimator fit one another and its columns."""
    state, name = vars(model), type(model).__name__
    check_threads(model)
    if not is_fitted(model):
        return  # a parameter of another estimator
    for choices in required_attributes(name):
        one = any(choice in state for choice in choices.split("|"))
        require(one, f"a fitted {name} lacks {choices.replace('|', ' or ')}")
    n_columns = state["n_features_in_"]
    require(is_integer(n_columns, 1, 2**31 - 1), "a model has no columns")
    if is_wrapper(model):
        _check_wrapper(model, n_columns)
    elif name not in {*RELATIONAL, *RELATIONAL_TRANSFORMERS}:
        _check_columns(state, n_columns)
    if name not in {"TableEncoder", "RelationalFeatures"}:
        _check_classes(state)
    offset = state.get("offset_", 0.0)
    require(isinstance(offset, float) and np.isfinite(offset), "a threshold is not finite")
    for name, (classes, width) in PARTS.items():
        fits = name not in state or (
            is_a(state[name], *classes) and width(state[name]) == n_columns
        )
        require(fits, f"the {name} of a model is not for its columns")
    for name, holds, wrong in ATTRIBUTES:
        require(name not in state or holds(model), wrong)


# What a fitted estimator cannot do without, besides what all have; of names joined by | one.
REQUIRED: dict[str, str] = {
    "LogisticRanker": "coef_",
    **dict.fromkeys(
        ("GradientBoostingRanker", "TunedLogisticBooster", *MEMBERS),
        "boosters_ booster_weights_ trained_on_sparse_",
    ),
    **dict.fromkeys(
        ("RankBoost", "PNormPush", "PRankBoost", "PAUCBoost", "RuleScorecard"), "bins_ rounds_"
    ),
    "GreedyPAUC": "coef_",
    "TreeRank": "space_ tree_",
    "RankingForest": "space_ trees_ node_scores_ consensus_",
    "RankSVM": "coef_|expansion_",
    "RankLS": "coef_|expansion_",
    "KernelLogisticRanker": "coef_|expansion_",
    "PartialAUCSVM": "coef_",
    "PartialAUCRanker": "coef_ embedding_ scaler_",
    "AutoRanker": "members_ features_ usual_",
    **dict.fromkeys(RELATIONAL, "schema_ rounds_"),
    **dict.fromkeys(RELATIONAL_TRANSFORMERS, "schema_ aggregates_ exists_ numbers_"),
    **dict.fromkeys(WRAPPERS, "estimator_ calibration_ staircase_"),
    "TreePathEmbedding": "scaler_ trees_ score_coef_",
    "TableEncoder": "trained_on_sparse_ encoding_|scale_",
}


def required_attributes(name: str) -> list[str]:
    """Return the fitted attributes that an estimator of a class must have."""
    of_all = ["n_features_in_"]
    if name not in {*RELATIONAL, *RELATIONAL_TRANSFORMERS, *WRAPPERS}:
        of_all.append("columns_")
    if name not in {*TRANSFORMERS, *RELATIONAL_TRANSFORMERS}:
        of_all += ["classes_", "offset_"]
    return of_all + REQUIRED.get(name, "").split()


def is_fitted(model: Any) -> bool:
    """Whether an estimator has any attribute that a fit sets; their names end in an underscore."""
    return any(name.endswith("_") for name in vars(model))


def is_wrapper(model: Any) -> bool:
    """Whether an estimator wraps another ranker."""
    return type(model).__name__ in WRAPPERS


def is_integer(value: Any, low: int, high: int) -> bool:
    whole = isinstance(value, (int, np.integer)) and type(value) is not bool
    return whole and low <= int(value) <= high


def is_a(value: Any, *names: str) -> bool:
    """Whether a value, which an allowed class has made, is of a class of one of these names."""
    return type(value).__name__ in names


def _all_are(values: Any, container: type[list[Any] | tuple[Any, ...]], name: str) -> bool:
    return type(values) is container and all(is_a(value, name) for value in values)


def check_threads(model: Any) -> None:
    jobs = vars(model).get("n_jobs")
    possible = jobs is None or is_integer(jobs, -MAX_THREADS, MAX_THREADS)
    require(possible, "a model asks for an impossible number of threads")


def _check_wrapper(model: Any, n_columns: int) -> None:
    """Check that the ranker inside takes the same columns and classes, and is calibrated."""
    state, inner = vars(model), vars(model).get("estimator_")
    scores = hasattr(inner, "decision_function") or hasattr(inner, "predict_proba")
    require(scores, "a calibrated model has no ranker inside")
    same = getattr(inner, "n_features_in_", None) == n_columns
    for name in ("feature_names_in_", "classes_"):
        own, other = state.get(name), getattr(inner, name, None)
        arrays = isinstance(own, np.ndarray) and isinstance(other, np.ndarray)
        absent = name != "classes_" and own is other is None
        same &= absent or (arrays and own.tolist() == other.tolist())  # type: ignore[union-attr]
    require(same, "a calibrated model and its ranker have other columns or classes")
    for name, kind in (("staircase_", "OutOfFoldCounts"), ("calibration_", "ProbabilityMap")):
        require(is_a(state.get(name), kind), "a calibrated model lacks its calibration")


def _check_columns(state: dict[str, Any], n_columns: int) -> None:
    columns, names = state.get("columns_"), state.get("feature_names_in_")
    known = is_a(columns, "Columns") and len(columns.names) == n_columns  # type: ignore[union-attr]
    require(known, "a model does not say what its columns are")
    if names is not None:
        text = isinstance(names, np.ndarray) and names.dtype == object and names.ndim == 1
        same = text and tuple(names.tolist()) == columns.names  # type: ignore[union-attr]
        require(same, "a model names its columns in two ways")


def _check_classes(state: dict[str, Any]) -> None:
    classes: Any = state.get("classes_")
    known = isinstance(classes, np.ndarray) and classes.shape == (2,)
    require(known and classes.dtype.kind in "iufbUO", "a model does not say what its classes are")
    labels = classes.tolist()
    plain = all(isinstance(label, (str, int, float, bool)) for label in labels)
    require(plain and labels[0] != labels[1], "the classes of a model are damaged")


# Fitted attribute -> the classes it may be of, and the number of columns it is for.
PARTS: dict[str, tuple[tuple[str, ...], Callable[[Any], int]]] = {
    "schema_": (("Schema",), lambda schema: schema.target.arity),
    "bins_": (("BinnedColumns",), lambda bins: len(bins.columns.names)),
    "space_": (("Bins", "NumericEncoding"), lambda space: space.n_columns),
    "scaler_": (("ColumnScaler",), lambda scaler: scaler.n_columns),
    "expansion_": (("KernelExpansion",), lambda expansion: expansion.landmarks.shape[1]),
    "encoding_": (("NumericEncoding",), lambda encoding: encoding.n_columns),
}


def _columns_of_splits(tree: Any, space: Any) -> bool:
    """Whether the splits of a ranking tree are over columns that exist."""
    if is_a(tree.rules, "LeafRankRules"):
        return _within(tree.rules.cells[:, FEATURE], -1, space.n_columns)
    if is_a(tree.rules, "SVMRules"):
        return _within(tree.rules.columns, 0, len(space.source))
    widths = [getattr(split, "n_features_in_", None) for split in tree.rules.models]
    known = all(_within(columns, 0, len(space.source)) for columns in tree.rules.columns)
    return known and widths == [len(columns) for columns in tree.rules.columns]


def _check_rank_trees(trees: Any, space: Any) -> bool:
    for tree in trees:
        require(is_a(tree, "RankTree"), "a ranking tree is something else")
        fits = is_a(tree.rules, "LeafRankRules") == is_a(space, "Bins")
        require(fits, "splits and bins do not fit together")
        require(_columns_of_splits(tree, space), "the column of a split is out of range")
    return True


def _check_trees(model: Any) -> bool:
    """Check the trees of a forest or of a path embedding."""
    require(type(model.trees_) is list and len(model.trees_) > 0, "a model has no trees")
    if is_a(model, "TreePathEmbedding"):
        return _check_embedding(model)
    _check_rank_trees(model.trees_, model.space_)
    _check_node_scores(model.node_scores_, model.trees_)
    consensus = vars(model).get("consensus_")
    require(consensus in ("precision", "spearman", "footrule", "kendall"), "unknown consensus")
    if consensus in ("footrule", "kendall"):
        order: Any = vars(model).get("cell_order_")
        known = is_a(order, "CellOrder") and order.distance == consensus
        require(known, "a forest has lost its consensus")
        _check_node_scores(list(order.node_ranks), model.trees_)
    return True


def _check_node_scores(scores: Any, trees: list[Any]) -> None:
    """Check that there is a score for each node that a row can end in."""
    require(type(scores) is list and len(scores) == len(trees), "a forest has lost its scores")
    for tree, own in zip(trees, scores, strict=True):
        Array("f8", ("*",), finite=False).check(own, "the scores of leaves")
        require(len(own) > np.flatnonzero(tree.left < 0).max(), "a tree has leaves without a score")


def _check_embedding(model: Any) -> bool:
    """Check the trees of a path embedding: the linear score is one more column after the others."""
    trees, n_columns = model.trees_, model.n_features_in_
    scores = Array("f8", (len(trees), n_columns), finite=False)
    scores.check(model.score_coef_, "the linear scores")
    require(model.output in ("concat", "product", "spectral"), "an embedding of unknown output")
    require(type(model.frugal) is bool and type(model.sparse_output) is bool, "unknown options")
    require(_all_are(trees, list, "PathTree"), "an embedding has other trees")
    known = all(_within(tree.feature, -1, n_columns + 1) for tree in trees)
    require(known, "the column of a split is out of range")
    if model.output == "spectral":
        nodes: Any = vars(model).get("spectral_")
        require(type(nodes) is list and len(nodes) == len(trees), "coordinates are missing")
        for tree, own in zip(trees, nodes, strict=True):
            coordinates = Array("f8", (len(tree.feature), "*"), finite=False)
            coordinates.check(own, "the coordinates of nodes")
    return True


def _encoded_categories(model: Any) -> bool:
    """Whether a table encoder reads numbers as numbers and categories that exist."""
    encoding, categories = model.encoding_, model.columns_.categories
    for source, kind, shift in zip(encoding.source, encoding.kind, encoding.shift, strict=True):
        values = categories[source]
        if not (kind != 2 if values is None else kind == 2 and shift in range(len(values))):
            return False
    return True


# Fitted attribute, what else must hold of it, what is wrong if not; in this order, since some rely on others.
ATTRIBUTES: list[tuple[str, Callable[[Any], Any], str]] = [
    ("coef_", lambda m: Array("f8").check(m.coef_, "the coefficients") is not None, ""),
    ("coef_", lambda m: len(m.coef_) == m.n_features_in_
     or (is_a(m, "PartialAUCRanker") and m.embedding_ is not None),
     "the coefficients are not the array they should be"),
    ("limits_", lambda m: Array("f8", (2, int(m.n_features_in_)), finite=False).check(
        m.limits_, "the limits of the columns") is not None, ""),
    ("boosters_", lambda m: m.boosters_ and _all_are(m.boosters_, list, "Booster"),
     "a model has no boosters"),
    ("boosters_", lambda m: len(Array("f8").check(m.booster_weights_, "the weights of the boosters"))
     == len(m.boosters_), "a model has more or fewer boosters than weights"),
    ("boosters_", lambda m: type(vars(m).get("trained_on_sparse_")) is bool,
     "a boosted model is incomplete"),
    ("bins_", lambda m: m.bins_.columns.names == m.columns_.names,
     "the bins of a model are for other columns"),
    ("rounds_", lambda m: _all_are(m.rounds_, tuple, "KeptRound"), "a model has no rounds"),
    ("rounds_", lambda m: all(_all_are(kept.rules, tuple, "Clause" if is_a(m, *RELATIONAL) else "Rule")
                              for kept in m.rounds_), "a model holds rules of the wrong kind"),
    ("aggregates_", lambda m: _all_are(m.aggregates_, tuple, "Aggregate")
     and len(m.aggregates_) == len(m.exists_)
     and all(is_integer(k, 0, m.n_features_in_ - 1) for k in m.numbers_),
     "the columns of a transformer are damaged"),
    ("space_", lambda m: not is_a(m.space_, "Bins") or _known_categories(m.space_, m.columns_),
     "the bins of a model are for other columns"),
    ("space_", lambda m: Array("u1", (int(m.n_features_in_), 256)).check(
        vars(m).get("category_bytes_"), "the order of the categories") is not None, ""),
    ("tree_", lambda m: _check_rank_trees([m.tree_], m.space_), ""),
    ("trees_", _check_trees, ""),
    ("encoding_", _encoded_categories, "an encoding has a category that does not exist"),
    ("scale_", lambda m: (Array("f8", (int(m.n_features_in_),)).check(m.scale_, "the scale") > 0).all(),
     "the scale of an encoder is not above 0"),
    ("embedding_", lambda m: m.embedding_ is None
     or getattr(m.embedding_, "n_features_in_", None) == m.n_features_in_,
     "the embedding of a model is for other columns"),
    ("members_", lambda m: m.members_ and _all_are(m.members_, tuple, "Member"),
     "a model has no members"),
    ("features_", lambda m: is_a(m.features_, "TableFeatures")
     and _within(m.features_.source, 0, int(m.n_features_in_)), "the features are for other columns"),
    ("usual_", lambda m: isinstance(m.usual_, np.ndarray) and m.usual_.dtype == "f8"
     and m.usual_.shape == m.features_.kept.shape, "a model has lost its usual values"),
]  # fmt: skip
