"""From plain JSON, flat arrays and boosters back to a model.

Nothing is imported, called or set that is not listed in `toprank.persistence.allowed`, and every record
is checked as soon as it is made: compiled code follows numbers from these arrays without looking.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toprank.persistence.allowed import NUMPY_TYPES, TYPES, class_of
from toprank.persistence.arrays import Pools, is_type_name
from toprank.persistence.booster_check import make_booster
from toprank.persistence.errors import require
from toprank.persistence.estimator_checks import check_estimator, check_scikit_learn
from toprank.persistence.record_checks import check_record
from toprank.persistence.scikit_tree import make_tree
from toprank.persistence.typed import make_record

__all__ = ["Decoder"]


class Decoder:
    """Puts a model together from its parts."""

    def __init__(self, pools: dict[str, np.ndarray], boosters: Sequence[bytes]) -> None:
        self.pools = Pools(pools)
        self.boosters = boosters
        self.n_boosters = 0
        self.columns: Any = None  # of the estimator that is being put together

    def whole(self, tree: Any) -> Any:
        """The model; every part must have been used, once."""
        model = self.decode(tree)
        self.pools.finish()
        require(self.n_boosters == len(self.boosters), "it holds boosters that no model uses")
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
        require(set(node) == {"~", *keys}, f"a part {tag!r} of it is incomplete or has more to it")
        return read(self, node)

    def _list(self, items: Any) -> list[Any]:
        require(type(items) is list, "a list of it is no list")
        return [self.decode(item) for item in items]

    def _fields(self, fields: Any) -> dict[str, Any]:
        require(type(fields) is dict, "the fields of a part are missing")
        return {name: self.decode(value) for name, value in fields.items()}

    def _tuple(self, node: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self._list(node["items"]))

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        pairs = self._list(node["items"])
        require(all(type(p) is list and len(p) == 2 for p in pairs), "a table of it is damaged")
        for key, _ in pairs:
            plain = key is None or isinstance(key, (str, int, float, tuple, np.generic))
            require(plain, "a table of it has a damaged key")
        return {key: value for key, value in pairs}  # noqa: C416 - the pairs are lists

    def _slice(self, node: dict[str, Any]) -> slice:
        ends = self._list(node["items"])
        whole = len(ends) == 3 and all(e is None or isinstance(e, (int, np.integer)) for e in ends)
        require(whole, "a range of it is damaged")
        return slice(*ends)

    def _array(self, node: dict[str, Any]) -> np.ndarray:
        return self.pools.take(node)

    def _objects(self, node: dict[str, Any]) -> np.ndarray:
        items, shape = self._list(node["items"]), node["shape"]
        fits = type(shape) is list and all(type(s) is int and 0 <= s <= len(items) for s in shape)
        require(
            fits and int(np.prod(shape, dtype=float)) == len(items), "a list of text is damaged"
        )
        array = np.empty(len(items), dtype=object)
        for k, item in enumerate(items):  # all at once, NumPy would look into the items
            array[k] = item
        return array.reshape(shape)

    def _scalar(self, node: dict[str, Any]) -> Any:
        name, value = node["type"], node["value"]
        kinds: dict[str, Any] = {"b": bool, "i": int, "u": int, "f": (float, int), "U": str}
        fits = is_type_name(name) and isinstance(value, kinds[name[0]])
        require(fits, "a number of it is damaged")
        return np.dtype(name).type(value)

    def _dtype(self, node: dict[str, Any]) -> np.dtype:
        require(node["name"] == "O" or is_type_name(node["name"]), "a type of it is unknown")
        return np.dtype(node["name"])

    def _type(self, node: dict[str, Any]) -> type:
        name = node["name"]
        if isinstance(name, str) and name.removeprefix("numpy.") in NUMPY_TYPES and "." in name:
            return getattr(np, name.removeprefix("numpy."))
        require(isinstance(name, str) and name in TYPES, "a type of it is unknown")
        return TYPES[name]

    def _random_state(self, node: dict[str, Any]) -> np.random.RandomState:
        items = self._list(node["items"])
        require(len(items) == 4, "a random state of it is damaged")
        key, position, has_gauss, cached = items
        keys = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (624,)
        rest = type(position) is int and 0 <= position <= 624 and has_gauss in (0, 1)
        require(keys and rest and isinstance(cached, float), "a random state of it is damaged")
        random = np.random.RandomState(0)
        random.set_state(("MT19937", key, position, has_gauss, cached))
        return random

    def _metric(self, node: dict[str, Any]) -> Callable[..., Any]:
        from toprank import metrics

        name = node["name"]
        known = name in metrics.__all__ and inspect.isfunction(getattr(metrics, name))
        require(known, "it names an unknown metric")
        return getattr(metrics, name)

    def _tree(self, node: dict[str, Any]) -> Any:
        return make_tree(self._fields(node["parts"]))

    def _booster(self, node: dict[str, Any]) -> Any:
        number, threads = node["number"], node["threads"]
        require(type(number) is int and number == self.n_boosters, "its boosters are out of order")
        require(number < len(self.boosters), "one of its boosters is missing")
        require(
            type(threads) is int and 0 <= threads <= 1024, "a booster asks for too many threads"
        )
        require(self.columns is not None, "a booster comes without columns")
        self.n_boosters += 1
        return make_booster(self.boosters[number], self.columns, threads)

    def _record(self, node: dict[str, Any]) -> Any:
        cls = class_of("record", node["name"])
        record = make_record(cls, self._fields(node["fields"]))
        check_record(node["name"], record)
        return record

    def _estimator(self, node: dict[str, Any]) -> Any:
        cls = class_of("estimator", node["name"])
        outer, self.columns = self.columns, None
        state = self._state(node["state"], cls)
        self.columns = outer
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(cls).parameters.items()
            if parameter.default is not parameter.empty
        }
        model: Any = object.__new__(cls)
        vars(model).update({**defaults, **state})
        check_estimator(model)
        return model

    def _sklearn(self, node: dict[str, Any]) -> Any:
        cls = class_of("sklearn", node["name"])
        state = self._state(node["state"], cls)
        model: Any = object.__new__(cls)
        if hasattr(model, "__setstate__"):
            model.__setstate__(state)
        else:
            vars(model).update(state)
        check_scikit_learn(node["name"], model)
        return model

    def _state(self, fields: Any, cls: type) -> dict[str, Any]:
        """Attributes by name; none may stand before something that the class defines."""
        require(type(fields) is dict, "the state of an estimator is missing")
        state = {}
        for name, value in fields.items():
            own = name.isidentifier() and not name.startswith("__") and not hasattr(cls, name)
            require(own, f"an estimator sets {name[:60]!r}, which is not its own to set")
            state[name] = self.decode(value)
            if name == "columns_":
                self.columns = state[name]
        return state


Reader = Callable[[Decoder, dict[str, Any]], Any]
_READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "tuple": (Decoder._tuple, ("items",)),
    "dict": (Decoder._dict, ("items",)),
    "slice": (Decoder._slice, ("items",)),
    "array": (Decoder._array, ("type", "shape", "order")),
    "objects": (Decoder._objects, ("shape", "items")),
    "scalar": (Decoder._scalar, ("type", "value")),
    "dtype": (Decoder._dtype, ("name",)),
    "type": (Decoder._type, ("name",)),
    "random_state": (Decoder._random_state, ("items",)),
    "metric": (Decoder._metric, ("name",)),
    "tree": (Decoder._tree, ("parts",)),
    "booster": (Decoder._booster, ("number", "threads")),
    "record": (Decoder._record, ("name", "fields")),
    "estimator": (Decoder._estimator, ("name", "state")),
    "sklearn": (Decoder._sklearn, ("name", "state")),
}
