"""Models as plain data, JSON and flat arrays, and back.

Numbers, strings, booleans, None and lists stand for themselves in the JSON; everything else is an object with
a tag under the key "~". Cells of arrays are kept apart, all of one type one after the other. Names of classes
are keys of the tables below, never module paths: no file can import or call what it likes, and a module
can move. Every record and estimator is checked as soon as it is made.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Literal

import numpy as np

from toprank.persistence.boosters import booster_parts, make_booster
from toprank.persistence.checks import check_estimator, check_record, make_record, require
from toprank.persistence.scikit_learn import check_scikit_learn, make_tree, tree_parts
from toprank.registry import (
    ESTIMATORS,
    MEMBERS,
    RELATIONAL,
    RELATIONAL_TRANSFORMERS,
    TRANSFORMERS,
    WRAPPERS,
)

__all__ = ["ARRAY_TYPE", "Decoder", "Encoder"]

MAX_DEPTH = 100
MAX_DIMENSIONS = 8
MAX_LENGTH, MAX_EMPTY_LENGTH = 2**40, 2**21

# -- what a model file may hold -----------------------------------------------------------------------


def _by_name(modules: dict[str, str]) -> dict[str, str]:
    return {name: module for module, names in modules.items() for name in names.split()}


# Frozen dataclasses of the library, made by their constructors. What follows a dot is the class's name.
RECORDS = _by_name({
    "toprank.columns": "Columns",
    "toprank.binning": "binning.Bins",
    "toprank.encoding": "NumericEncoding",
    "toprank.rule": "Literal Rule",
    "toprank.rules.weak_rankers": "BinnedColumns",
    "toprank.rules.boosters": "KeptRound",
    "toprank.rules.relational.clause": "Variable Constant Atom Aggregate Comparison Clause",
    "toprank.rules.relational.schema": "Mode Predicate Schema",
    "toprank.trees.tree": "RankTree",
    "toprank.trees.leafrank": "LeafRankRules",
    "toprank.trees.splitters": "SVMRules EstimatorRules SVMSplit",
    "toprank.trees.consensus": "CellOrder",
    "toprank.margin.matrices": "ColumnScaler",
    "toprank.margin.base": "KernelFunction KernelExpansion",
    "toprank.margin.tree_path": "PathTree",
    "toprank.boosting.library": "Combination CategoryStatistics",
    "toprank.automatic.features": "TextProjection TableFeatures TargetEncoding",
    "toprank.automatic.networks": "Layer NeuralNetworks",
    "toprank.automatic.portfolio": "FittedModel",
    "toprank.automatic.ensemble": "LogOdds",
    "toprank.automatic.ranker": "Member",
    "toprank.shortlisting.counts": "OutOfFoldCounts",
    "toprank.shortlisting.calibration": "ProbabilityMap",
})  # fmt: skip

# Parts of scikit-learn whose fitted state is plain, so that none of it reaches compiled code unchecked.
SCIKIT_LEARN = _by_name({
    "sklearn.pipeline": "Pipeline FeatureUnion",
    "sklearn.compose": "ColumnTransformer",
    "sklearn.preprocessing": "FunctionTransformer StandardScaler MinMaxScaler MaxAbsScaler RobustScaler "
    "OneHotEncoder OrdinalEncoder LabelEncoder LabelBinarizer",
    "sklearn.impute": "SimpleImputer MissingIndicator",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.feature_selection": "VarianceThreshold",
    "sklearn.linear_model": "LogisticRegression RidgeClassifier",
    "sklearn.svm": "LinearSVC",
    "sklearn.naive_bayes": "GaussianNB",
    "sklearn.tree": "DecisionTreeClassifier ExtraTreeClassifier",
    "sklearn.ensemble": "RandomForestClassifier ExtraTreesClassifier",
    "sklearn.calibration": "CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration",
    "sklearn.isotonic": "IsotonicRegression",
})  # fmt: skip

# Types that scikit-learn keeps as parameters or fitted state.
TYPES: dict[str, type] = {cls.__name__: cls for cls in (float, int, str, bool, object)}
TYPES |= {f"numpy.{np.dtype(code).name}": np.dtype(code).type for code in "?bhilqBHILQefd"}
TYPES["numpy.str_"] = np.str_


# The only functions that a file can name: metrics f(y, scores), which score no row of a model.
@cache
def metric_functions() -> dict[str, Callable[..., Any]]:
    """Return the metrics by name; imported where a file names one, for they need Numba."""
    from toprank.metrics.registry import METRICS

    return {name: metric.function for name, metric in METRICS.items()}


@cache
def modules_of(kind: str) -> dict[str, str]:
    """Return the modules of all classes of a kind ("estimator", "record" or "sklearn") by name."""
    if kind == "estimator":
        relational = {**RELATIONAL, **RELATIONAL_TRANSFORMERS}
        return {**ESTIMATORS, **relational, **TRANSFORMERS, **WRAPPERS, **MEMBERS}
    if kind == "sklearn":
        return SCIKIT_LEARN
    objectives = import_module("toprank.objectives").OBJECTIVES.values()
    return {**RECORDS, **{f"objectives.{cls.__name__}": cls.__module__ for cls in objectives}}


def class_of(kind: str, name: Any) -> type:
    """Return the class of a kind and name."""
    require(isinstance(name, str), f"it names a {kind} that is not text")
    # or Numba comes
    modules = RECORDS if kind == "record" and name in RECORDS else modules_of(kind)
    require(name in modules, f"it holds a {kind} {name[:60]!r}, which is not among those allowed")
    return getattr(import_module(modules[name]), name.rpartition(".")[2])


def name_of(value: Any) -> tuple[str, str] | None:
    """Return kind and name under which an object is stored; None for what cannot be."""
    for kind in ("estimator", "record", "sklearn"):
        for name in modules_of(kind):
            same_name = name.rpartition(".")[2] == type(value).__name__
            if same_name and class_of(kind, name) is type(value):
                return kind, name
    return None


# -- a model as plain data ----------------------------------------------------------------------------

ARRAY_TYPE = re.compile(r"b1|[iu][1248]|f[48]|U[1-9][0-9]{0,5}")
# Requests of scikit-learn's metadata routing concern fit in a search, not a fitted model; the training summary
# has a member of its own, where it is checked.
LEFT_OUT = ("_metadata_request", "training_summary_")
Where = tuple[str, ...]  # the place of a value in the model, for messages


class Encoder:
    """Turns a model into JSON, and keeps its arrays beside.

    Cells of arrays go in one after the other, by type, and come out in the same order: no two arrays can
    claim the same cells, and a file cannot describe more than it holds.

    Examples
    --------
    >>> from toprank.rule import Literal
    >>> Encoder().encode(Literal("amount", ">", 900.0))["fields"]["operator"]
    '>'
    """

    def __init__(self) -> None:
        self.arrays: dict[str, list[np.ndarray]] = {}

    def cells(self) -> dict[str, bytes]:
        """Return the cells of all arrays of each type."""
        return {name: np.concatenate(parts).tobytes() for name, parts in self.arrays.items()}

    def encode(self, value: Any, where: Where = ()) -> Any:
        """Encode a value."""
        where = where or (type(value).__name__,)
        if len(where) > MAX_DEPTH:
            raise TypeError(f"{''.join(where)[:80]} nests too deeply for a model file")
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return self._items(value, where)
        if type(value) in _PARTS:
            tag, parts = _PARTS[type(value)]
            return {"~": tag, "items": self._items(parts(value), where)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic):
            return {"~": "scalar", "type": _storable(value.dtype, where), "value": value.item()}
        if isinstance(value, np.dtype):
            return {"~": "dtype", "type": "O" if value.kind == "O" else _storable(value, where)}
        if isinstance(value, type):
            for name, known in TYPES.items():
                if value is known:
                    return {"~": "type", "name": name}
            raise TypeError(_refusal(f"the class {value.__name__}", where))
        return self._object(value, where)

    def _items(self, values: Any, where: Where) -> list[Any]:
        return [self.encode(value, (*where, f"[{k}]")) for k, value in enumerate(values)]

    def _fields(self, state: dict[str, Any], where: Where) -> dict[str, Any]:
        return {name: self.encode(value, (*where, f".{name}")) for name, value in state.items()}

    def _array(self, value: np.ndarray, where: Where) -> Any:
        shape = list(value.shape)
        if value.dtype == object:
            items = self._items(value.ravel().tolist(), where)
            return {"~": "objects", "shape": shape, "items": items}
        value = np.asarray(value) if isinstance(value, np.memmap) else value
        if type(value) is not np.ndarray:
            raise TypeError(_refusal(f"a {type(value).__name__}", where))
        name = _storable(value.dtype, where)
        by_column = value.flags.f_contiguous and not value.flags.c_contiguous
        order: Literal["F", "C"] = "F" if by_column else "C"
        little_endian = value.astype(value.dtype.newbyteorder("<"), copy=False)
        self.arrays.setdefault(name, []).append(little_endian.ravel(order))
        return {"~": "array", "type": name, "shape": shape, "order": order}

    def _object(self, value: Any, where: Where) -> Any:
        """Encode a record, an estimator, a booster, a tree or a metric; nothing else."""
        place = (type(value).__module__, type(value).__name__)
        if place == ("xgboost.core", "Booster"):
            threads = int(json.loads(value.save_config())["learner"]["generic_param"]["nthread"])
            threads = threads if 0 < threads <= 1024 else 0  # 0: as many as there are cores
            settings, arrays = booster_parts(value)
            nodes = self._fields(arrays, where)
            return {"~": "booster", "settings": settings, "nodes": nodes, "threads": threads}
        if place == ("sklearn.tree._tree", "Tree"):
            return {"~": "tree", "parts": self._fields(tree_parts(value), where)}
        name = getattr(value, "__name__", "")
        if inspect.isfunction(value) and metric_functions().get(name) is value:
            return {"~": "metric", "name": name}
        found = name_of(value)
        if found is None:
            raise TypeError(_object_refusal(value, where))
        kind, name = found
        if kind == "record":
            state = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {"~": "record", "name": name, "fields": self._fields(state, where)}
        state = {k: v for k, v in value.__getstate__().items() if k not in LEFT_OUT}
        return {"~": kind, "name": name, "state": self._fields(state, where)}


def _state_of(random: np.random.RandomState) -> list[Any]:
    _, key, position, has_gauss, cached = random.get_state(legacy=True)
    return [np.asarray(key), int(position), int(has_gauss), float(cached)]


# Types that are stored as a list of their parts: the tag and the parts.
_PARTS: dict[type, tuple[str, Callable[[Any], Sequence[Any]]]] = {
    tuple: ("tuple", list),
    dict: ("dict", lambda value: [[k, v] for k, v in value.items()]),
    slice: ("slice", lambda value: [value.start, value.stop, value.step]),
    np.random.RandomState: ("random_state", _state_of),
}


def _storable(dtype: np.dtype, where: Where) -> str:
    """Return the short name of a type that can be stored, such as "f8" or "U12"."""
    name = f"U{dtype.itemsize // 4}" if dtype.kind == "U" else f"{dtype.kind}{dtype.itemsize}"
    if ARRAY_TYPE.fullmatch(name) is None:
        raise TypeError(_refusal(f"of type {dtype}", where))
    return name


def _refusal(what: str, where: Where) -> str:
    return f"{''.join(where)} is {what}, which a model file cannot hold"


def _object_refusal(value: Any, where: Where) -> str:
    """Say why an object cannot be stored, and what to do."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if callable(value) and not hasattr(value, "fit"):
        function = f"a function ({getattr(value, '__name__', name)})"
        return (
            f"{_refusal(function, where)} since opening it must not run code; set that parameter to a "
            "name or to None (set_params) and save again"
        )
    return (
        f"{_refusal(f'a {name}', where)}: only the estimators of toprank and the parts of scikit-learn "
        "listed in toprank.persistence.encoding are stored"
    )


# -- and back -----------------------------------------------------------------------------------------


class Decoder:
    """Puts a model together from JSON and arrays.

    `_read_tag` reads the part with that tag; its parameters are the keys that the part must have.
    """

    def __init__(self, arrays: Mapping[str, bytes]) -> None:
        self.cells = {name: _read_cells(name, data) for name, data in arrays.items()}
        self.columns: Any = None  # of the estimator that is being put together

    def decode_model(self, tree: Any) -> Any:
        """Return the model; every cell must have been used, once."""
        model = self.decode(tree)
        left = sum(map(len, self.cells.values()))
        require(left == 0, "there are more cells than arrays to hold them")
        return model

    def decode(self, node: Any) -> Any:
        """Decode one value."""
        if node is None or type(node) in (bool, int, float, str):
            return node
        if type(node) is list:
            return [self.decode(item) for item in node]
        tag = node.get("~")
        require(isinstance(tag, str) and tag in _READERS, f"it holds an unknown part {tag!r:.60}")
        read, keys = _READERS[tag]
        whole = set(node) == {"~", *keys}
        require(whole, f"a part {tag!r} of it is incomplete or has more to it")
        return read(self, *(node[key] for key in keys))

    def _list(self, items: Any) -> list[Any]:
        require(type(items) is list, "a list of it is no list")
        return [self.decode(item) for item in items]

    def _fields(self, fields: Any) -> dict[str, Any]:
        require(type(fields) is dict, "the fields of a part are missing")
        return {name: self.decode(value) for name, value in fields.items()}

    def _read_tuple(self, items: Any) -> tuple[Any, ...]:
        return tuple(self._list(items))

    def _read_dict(self, items: Any) -> dict[Any, Any]:
        pairs = self._list(items)
        require(all(type(p) is list and len(p) == 2 for p in pairs), "a dict of it is damaged")
        keys = (type(None), str, int, float, tuple, np.generic)
        require(all(isinstance(key, keys) for key, _ in pairs), "a dict of it has a damaged key")
        return {key: value for key, value in pairs}  # noqa: C416 - the pairs are lists

    def _read_slice(self, items: Any) -> slice:
        ends = self._list(items)
        whole = len(ends) == 3 and all(e is None or isinstance(e, (int, np.integer)) for e in ends)
        require(whole, "a slice of it is damaged")
        return slice(*ends)

    def _read_array(self, type: Any, shape: Any, order: Any) -> np.ndarray:
        known = isinstance(type, str) and type in self.cells
        require(known, "an array has an unknown type, or one that has no cells")
        require(_is_shape(shape) and order in ("C", "F"), "an array has an impossible shape")
        size, cells = math.prod(shape), self.cells[type]
        require(size <= len(cells), "an array is larger than the cells that are stored")
        self.cells[type] = cells[size:]
        return cells[:size].reshape(shape, order=order).copy(order="K")

    def _read_objects(self, shape: Any, items: Any) -> np.ndarray:
        items = self._list(items)
        fits = _is_shape(shape) and math.prod(shape) == len(items)
        require(fits, "an array of objects is damaged")
        array = np.empty(len(items), dtype=object)
        for k, item in enumerate(items):  # all at once, NumPy would look into the items
            array[k] = item
        return array.reshape(shape)

    def _read_scalar(self, type: Any, value: Any) -> Any:
        kinds: dict[str, Any] = {"b": bool, "i": int, "u": int, "f": (float, int), "U": str}
        fits = _is_type_name(type) and isinstance(value, kinds[type[0]])
        require(fits, "a number of it is damaged")
        return np.dtype(type).type(value)

    def _read_dtype(self, type: Any) -> np.dtype:
        plain = type == "O" or (_is_type_name(type) and not type.startswith("U"))
        require(plain, "a type of it is unknown")
        return np.dtype(type)

    def _read_type(self, name: Any) -> type:
        require(isinstance(name, str) and name in TYPES, "a type of it is unknown")
        return TYPES[name]

    def _read_random_state(self, items: Any) -> np.random.RandomState:
        items = self._list(items)
        require(len(items) == 4, "a random state of it is damaged")
        key, position, has_gauss, cached = items
        keys = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (624,)
        place = type(position) is int and 0 <= position <= 624 and has_gauss in (0, 1)
        require(keys and place and isinstance(cached, float), "a random state of it is damaged")
        random = np.random.RandomState(0)
        random.set_state(("MT19937", key, position, has_gauss, cached))
        return random

    def _read_metric(self, name: Any) -> Callable[..., Any]:
        known = isinstance(name, str) and name in metric_functions()
        require(known, "it names an unknown metric")
        return metric_functions()[name]

    def _read_tree(self, parts: Any) -> Any:
        return make_tree(self._fields(parts))

    def _read_booster(self, settings: Any, nodes: Any, threads: Any) -> Any:
        possible = type(threads) is int and 0 <= threads <= 1024
        require(possible, "a booster asks for too many threads")
        require(self.columns is not None, "a booster comes without columns")
        return make_booster(settings, self._fields(nodes), self.columns, threads)

    def _read_record(self, name: Any, fields: Any) -> Any:
        record = make_record(class_of("record", name), self._fields(fields))
        check_record(name, record)
        return record

    def _read_estimator(self, name: Any, state: Any) -> Any:
        cls = class_of("estimator", name)
        found = self._state(state, cls)
        model: Any = object.__new__(cls)
        vars(model).update({**_defaults(cls), **found})
        check_estimator(model)
        return model

    def _read_sklearn(self, name: Any, state: Any) -> Any:
        cls = class_of("sklearn", name)
        found = self._state(state, cls)
        model: Any = object.__new__(cls)
        vars(model).update(found)
        check_scikit_learn(name, model)
        if hasattr(model, "__setstate__"):
            vars(model).clear()
            model.__setstate__(found)
        return model

    def _state(self, fields: Any, cls: type) -> dict[str, Any]:
        """Return attributes by name; none may hide something that the class defines.

        Boosters among them are for the columns of this estimator, whatever those inside or around it have.
        """
        require(type(fields) is dict, "the state of an estimator is missing")
        outer, self.columns = self.columns, None
        state = {}
        for name, value in fields.items():
            own = name.isidentifier() and not name.startswith("__") and not hasattr(cls, name)
            own = own and name not in LEFT_OUT
            require(own, f"an estimator sets {name[:60]!r}, which is not its own to set")
            state[name] = self.decode(value)
            if name == "columns_":
                self.columns = state[name]
        self.columns = outer
        return state


@cache
def _defaults(cls: type) -> dict[str, Any]:
    """Return the parameters of a class that have a default."""
    parameters = inspect.signature(cls).parameters.items()
    return {name: p.default for name, p in parameters if p.default is not p.empty}


def _is_shape(shape: Any) -> bool:
    """Whether it is a list of lengths; what holds nothing must not be long in another direction."""
    plain = isinstance(shape, list) and len(shape) <= MAX_DIMENSIONS
    longest = MAX_LENGTH if plain and 0 not in shape else MAX_EMPTY_LENGTH
    return plain and all(type(side) is int and 0 <= side <= longest for side in shape)


def _is_type_name(name: Any) -> bool:
    """Whether it is the short name of a type that can be stored, such as "f8" or "U12"."""
    return isinstance(name, str) and ARRAY_TYPE.fullmatch(name) is not None


def _read_cells(name: str, data: bytes) -> np.ndarray:
    """Return the cells of one type; booleans must be 0 or 1, and text must be text."""
    dtype = np.dtype(name).newbyteorder("<")
    require(len(data) % dtype.itemsize == 0, "an array is cut short")
    cells = np.frombuffer(data, dtype=dtype)
    if name == "b1":
        require((cells.view(np.uint8) <= 1).all(), "an array of booleans is damaged")
    if name[0] == "U":
        points = np.frombuffer(data, dtype="<u4")
        text = (points <= 0x10FFFF) & ((points < 0xD800) | (points > 0xDFFF))
        require(text.all(), "an array of text is damaged")
    return cells.astype(dtype.newbyteorder("="), copy=False)


# Tag -> how the part is read, and its keys.
_READERS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    name.removeprefix("_read_"): (method, list(inspect.signature(method).parameters)[1:])
    for name, method in vars(Decoder).items()
    if name.startswith("_read_")
}
