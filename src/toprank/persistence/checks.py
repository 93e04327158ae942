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
from typing import Any

import numpy as np

from toprank.registry import WRAPPERS

__all__ = [
    "ModelFileError", "check_estimator", "check_record", "check_scikit_learn", "children_follow", "is_wrapper",
    "make_record", "require",
]  # fmt: skip

MAX_THREADS = 1024
MAX_TREE_DEPTH = 62  # of a ranking tree: positions are integers of 64 bits
MAX_SKLEARN_COLUMNS = 2_000_000  # of a step of scikit-learn, which need not list their names


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
        "roots": Array("i4", ("*",), low=-1),
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
    "KernelExpansion": {"landmarks": Array("f8", ("n", "*")), "dual_coef": Array("f8")},
    "PathTree": {
        "feature": Array("i8"), "left": Array("i8"), "right": Array("i8"),
        "sign": Array("i8", low=-1, high=2), "threshold": Array("f8", finite=False),
    },
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


def _ascending(values: np.ndarray) -> bool:
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
    """Whether categories are lists of different values; they need not be sorted."""
    return all(
        values.ndim == 1 and values.dtype.kind in "Uifbu" and len(np.unique(values)) == len(values)
        for values in columns.categories
        if values is not None
    )


def _cut_points(cuts: Any) -> bool:
    """Whether cut points, or categories with a bin, ascend."""
    fits = isinstance(cuts, np.ndarray) and cuts.dtype == "f8" and cuts.ndim == 1
    return fits and len(cuts) <= 254 and bool(np.isfinite(cuts).all()) and _ascending(cuts)


def _known_categories(bins: Any, columns: Any) -> bool:
    """Whether the categories that have a bin exist."""
    kinds = [values is not None for values in columns.categories]
    return bins.is_category.tolist() == kinds and all(
        _within(cuts, 0, len(values))
        for cuts, values in zip(bins.cuts, columns.categories, strict=True)
        if values is not None
    )


def _sound_scaler(scaler: Any) -> bool:
    """Whether a StandardScaler inside a ranker is None or finite everywhere, and does not divide by 0."""
    if type(scaler).__name__ != "StandardScaler":
        return False
    for name in ("mean_", "var_", "scale_"):
        if getattr(scaler, name, None) is not None:
            width = Array(
                "f8",
                (scaler.n_features_in_,),
                low=np.finfo(float).tiny if name == "scale_" else None,
            )
            width.check(getattr(scaler, name), f"the {name} of a scaler")
    return True


# The columns of `cells`, one row for each node of the small trees that split a node.
FEATURE, THRESHOLD, MISSING_FIRST, FIRST, SECOND, SIDE = range(6)


def _forward(rules: Any) -> bool:
    """Whether the children of a small tree come after their parent."""
    inner = rules.cells[:, FEATURE] >= 0
    children = rules.cells[inner][:, [FIRST, SECOND]]
    return bool((children > np.flatnonzero(inner)[:, None]).all() and (children < len(inner)).all())


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
        (lambda r: (r.roots < max(len(r.cells), 1)).all(), "has a root out of range"),
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
        (lambda o: len(o.keys) > 0 and _ascending(o.keys), "has keys that do not ascend"),
        (lambda o: len(o.ranks) == (len(o.keys) if o.distance == "kendall" else 0), "has lost ranks"),
        (lambda o: 0 < len(o.node_ranks) == len(o.multipliers), "has lost trees"),
        (lambda o: all(np.isfinite(r).all() for r in o.node_ranks), "has a rank that is not finite"),
    ],
    "KernelFunction": [
        (lambda f: _sound_scaler(f.scaler), "has a damaged scaler"),
        (lambda f: f.name in ("rbf", "laplacian", "poly", "linear"), "is unknown"),
        (lambda f: np.isfinite([f.gamma, f.coef0]).all() and 0 <= f.degree < 100, "is damaged"),
    ],
    "KernelExpansion": [
        (lambda e: len(e.landmarks) > 0, "has no landmarks"),
        (lambda e: e.landmarks.shape[1] == e.function.scaler.n_features_in_, "is for other columns"),
    ],
    "PathTree": [
        (lambda t: children_follow(t.left, t.right), "has a child out of range"),
        (lambda t: ((t.feature >= 0) == (t.left != -1)).all(), "has leaves that split"),
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
        (lambda m: _ascending(m.knots) and (np.diff(m.values) >= 0).all(), "does not rise"),
        (lambda m: (m.values <= 1).all(), "leaves the range from 0 to 1"),
    ],
}  # fmt: skip


# -- estimators of the library ------------------------------------------------------------------------


def check_estimator(model: Any) -> None:
    """Check that the parts of a fitted estimator fit one another and its columns."""
    state = vars(model)
    _check_threads(model)
    n_columns = state.get("n_features_in_")
    if n_columns is None:
        return  # not fitted: a parameter of another estimator
    require(_is_integer(n_columns, 1, 2**31 - 1), "a model has no columns")
    if is_wrapper(model):
        _check_wrapper(model, n_columns)
    elif "schema_" not in state:
        _check_columns(state, n_columns)
    if type(model).__name__ != "TableEncoder":
        _check_classes(state)
    offset = state.get("offset_", 0.0)
    require(isinstance(offset, float) and np.isfinite(offset), "a threshold is not finite")
    for name, (classes, width) in PARTS.items():
        fits = name not in state or (
            _is_a(state[name], *classes) and width(state[name]) == n_columns
        )
        require(fits, f"the {name} of a model is not for its columns")
    for name, holds, wrong in ATTRIBUTES:
        require(name not in state or holds(model), wrong)


def is_wrapper(model: Any) -> bool:
    """Whether an estimator wraps another ranker."""
    return type(model).__name__ in WRAPPERS


def _is_integer(value: Any, low: int, high: int) -> bool:
    return isinstance(value, (int, np.integer)) and low <= int(value) <= high


def _is_a(value: Any, *names: str) -> bool:
    """Whether a value, which an allowed class has made, is of a class of one of these names."""
    return type(value).__name__ in names


def _all_are(values: Any, container: type[list[Any] | tuple[Any, ...]], name: str) -> bool:
    return type(values) is container and all(_is_a(value, name) for value in values)


def _check_threads(model: Any) -> None:
    jobs = vars(model).get("n_jobs")
    possible = jobs is None or _is_integer(jobs, -MAX_THREADS, MAX_THREADS)
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
        require(_is_a(state.get(name), kind), "a calibrated model lacks its calibration")


def _check_columns(state: dict[str, Any], n_columns: int) -> None:
    columns, names = state.get("columns_"), state.get("feature_names_in_")
    known = _is_a(columns, "Columns") and len(columns.names) == n_columns  # type: ignore[union-attr]
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
    "scaler_": (("StandardScaler",), lambda scaler: scaler.n_features_in_),
    "expansion_": (("KernelExpansion",), lambda expansion: expansion.landmarks.shape[1]),
    "encoding_": (("NumericEncoding",), lambda encoding: encoding.n_columns),
}


def _columns_of_splits(tree: Any, space: Any) -> bool:
    """Whether the splits of a ranking tree are over columns that exist."""
    if _is_a(tree.rules, "LeafRankRules"):
        return _within(tree.rules.cells[:, FEATURE], -1, space.n_columns)
    if _is_a(tree.rules, "SVMRules"):
        return _within(tree.rules.columns, 0, len(space.source))
    widths = [getattr(split, "n_features_in_", None) for split in tree.rules.models]
    known = all(_within(columns, 0, len(space.source)) for columns in tree.rules.columns)
    return known and widths == [len(columns) for columns in tree.rules.columns]


def _check_rank_trees(trees: Any, space: Any) -> bool:
    for tree in trees:
        require(_is_a(tree, "RankTree"), "a ranking tree is something else")
        fits = _is_a(tree.rules, "LeafRankRules") == _is_a(space, "Bins")
        require(fits, "splits and bins do not fit together")
        require(_columns_of_splits(tree, space), "the column of a split is out of range")
    return True


def _check_trees(model: Any) -> bool:
    """Check the trees of a forest or of a path embedding."""
    require(type(model.trees_) is list and len(model.trees_) > 0, "a model has no trees")
    if hasattr(model, "scaler_"):
        return _check_embedding(model)
    _check_rank_trees(model.trees_, model.space_)
    _check_node_ranks(model.node_ranks_, model.trees_)
    require(model.consensus in ("spearman", "footrule", "kendall"), "unknown consensus")
    if model.consensus != "spearman":
        order: Any = vars(model).get("cell_order_")
        known = _is_a(order, "CellOrder") and order.distance == model.consensus
        require(known, "a forest has lost its consensus")
        _check_node_ranks(list(order.node_ranks), model.trees_)
    return True


def _check_node_ranks(ranks: Any, trees: list[Any]) -> None:
    """Check that there is a rank for each node that a row can end in."""
    require(type(ranks) is list and len(ranks) == len(trees), "a forest has lost its ranks")
    for tree, own in zip(trees, ranks, strict=True):
        Array("f8", ("*",), finite=False).check(own, "the ranks of leaves")
        require(len(own) > np.flatnonzero(tree.left < 0).max(), "a tree has leaves without a rank")


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
    ("coef_", lambda m: getattr(m, "embedding_", None) is not None or len(m.coef_) == m.n_features_in_,
     "the coefficients are not the array they should be"),
    ("boosters_", lambda m: m.boosters_ and _all_are(m.boosters_, list, "Booster"),
     "a model has no boosters"),
    ("boosters_", lambda m: type(vars(m).get("trained_on_sparse_")) is bool,
     "a boosted model is incomplete"),
    ("bins_", lambda m: m.bins_.columns.names == m.columns_.names,
     "the bins of a model are for other columns"),
    ("rounds_", lambda m: _all_are(m.rounds_, tuple, "KeptRound"), "a model has no rounds"),
    ("rounds_", lambda m: all(_all_are(kept.rules, tuple, "Clause" if hasattr(m, "schema_") else "Rule")
                              for kept in m.rounds_), "a model holds rules of the wrong kind"),
    ("space_", lambda m: not _is_a(m.space_, "Bins") or _known_categories(m.space_, m.columns_),
     "the bins of a model are for other columns"),
    ("tree_", lambda m: _check_rank_trees([m.tree_], m.space_), ""),
    ("trees_", _check_trees, ""),
    ("encoding_", _encoded_categories, "an encoding has a category that does not exist"),
    ("scale_", lambda m: (Array("f8", (int(m.n_features_in_),)).check(m.scale_, "the scale") > 0).all(),
     "the scale of an encoder is not above 0"),
    ("scaler_", lambda m: _sound_scaler(m.scaler_), "the scaler of a model is damaged"),
]  # fmt: skip


# -- parts of scikit-learn ----------------------------------------------------------------------------


def check_scikit_learn(name: str, model: Any) -> None:
    """Check those parts of scikit-learn whose state reaches compiled code."""
    _check_threads(model)
    state = vars(model)
    n_columns = state.get("n_features_in_", 0)
    possible = _is_integer(n_columns, 0, MAX_SKLEARN_COLUMNS)
    require(possible, f"a {name} has an impossible number of columns")
    if "tree_" in state:
        tree = model.tree_
        fits = hasattr(tree, "n_features") and tree.n_features == model.n_features_in_
        require(fits, "a decision tree is for other columns")
        whole = model.n_outputs_ == 1 and state.get("n_classes_") == tree.n_classes[0]
        require(whole, "a decision tree is for other classes")
    if "estimators_" in state:
        for tree in model.estimators_:
            same = getattr(tree, "n_features_in_", None) == model.n_features_in_
            require(same and hasattr(tree, "tree_"), "a forest has trees for other columns")
    if name == "OneHotEncoder" and "categories_" in state:
        _check_one_hot(model)


def _check_one_hot(encoder: Any) -> None:
    """Check a OneHotEncoder: it turns categories into positions in a sparse matrix, unchecked."""
    require(not getattr(encoder, "_infrequent_enabled", False), "a OneHotEncoder groups categories")
    categories = encoder.categories_
    whole = type(categories) is list and len(categories) == encoder.n_features_in_
    require(whole, "a OneHotEncoder has lost categories")
    dropped = getattr(encoder, "drop_idx_", None)
    grouped = getattr(encoder, "_drop_idx_after_grouping", None)
    expected = []
    for k, values in enumerate(categories):
        plain = isinstance(values, np.ndarray) and values.ndim == 1 and len(values) > 0
        require(plain, "the categories of a OneHotEncoder are damaged")
        if values.dtype.kind != "O":
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            ascending = _ascending(known) and len(values) - len(known) <= 1
            require(ascending, "the categories of a OneHotEncoder are out of order")
        drop = None if dropped is None else dropped[k]
        require(drop == (None if grouped is None else grouped[k]), "a OneHotEncoder is damaged")
        exists = drop is None or _is_integer(drop, 0, len(values) - 1)
        require(exists, "a OneHotEncoder drops a category that does not exist")
        expected.append(len(values) - (drop is not None))
    counted = [int(n) for n in encoder._n_features_outs]
    require(counted == expected, "the categories of a OneHotEncoder are miscounted")
