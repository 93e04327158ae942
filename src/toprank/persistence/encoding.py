"""A fitted model as plain JSON, flat arrays and boosters.

Numbers, strings, truth values, None and lists are themselves; everything else is an object with a tag
under the key "~". `toprank.persistence.decoding` reads what is written here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.persistence.allowed import NUMPY_TYPES, TYPES, name_of
from toprank.persistence.arrays import Pools, type_name
from toprank.persistence.scikit_tree import tree_parts

__all__ = ["Encoded", "Encoder"]

DEEPEST = 100
# Requests of scikit-learn's metadata routing concern fit in a search, not a fitted model.
LEFT_OUT = ("_metadata_request",)


@dataclasses.dataclass(frozen=True)
class Encoded:
    """What a model consists of in a file."""

    tree: Any
    pools: dict[str, np.ndarray]
    boosters: tuple[bytes, ...]


class Encoder:
    """Turns a model into its parts.

    Examples
    --------
    >>> from toprank.rule import Literal
    >>> Encoder().whole(Literal("amount", ">", 900.0)).tree["fields"]["operator"]
    '>'
    """

    def __init__(self) -> None:
        self.pools = Pools()
        self.boosters: list[bytes] = []

    def whole(self, model: Any) -> Encoded:
        """All parts of a model."""
        tree = self.encode(model, type(model).__name__, 0)
        return Encoded(tree, self.pools.joined(), tuple(self.boosters))

    def encode(self, value: Any, where: str, depth: int) -> Any:
        """Encode a value; `where` names its place in messages."""
        if depth > DEEPEST:
            raise TypeError(f"{where} nests too deeply for a model file")
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return self._items(value, where, depth)
        write = _WRITERS.get(type(value))
        if write is not None:
            return write(self, value, where, depth)
        for kind, write in _KINDS.items():
            if isinstance(value, kind):
                return write(self, value, where, depth)
        return self._object(value, where, depth)

    def _items(self, values: Any, where: str, depth: int) -> list[Any]:
        return [self.encode(v, f"{where}[{k}]", depth + 1) for k, v in enumerate(values)]

    def _fields(self, state: dict[str, Any], where: str, depth: int) -> dict[str, Any]:
        return {
            name: self.encode(value, f"{where}.{name}", depth + 1) for name, value in state.items()
        }

    def _tuple(self, value: tuple[Any, ...], where: str, depth: int) -> Any:
        return {"~": "tuple", "items": self._items(value, where, depth)}

    def _dict(self, value: dict[Any, Any], where: str, depth: int) -> Any:
        pairs = [
            [self.encode(k, f"a key of {where}", depth + 1), self.encode(v, f"{where}[{k!r}]", depth + 1)]
            for k, v in value.items()
        ]  # fmt: skip
        return {"~": "dict", "items": pairs}

    def _slice(self, value: slice, where: str, depth: int) -> Any:
        return {
            "~": "slice",
            "items": self._items((value.start, value.stop, value.step), where, depth),
        }

    def _array(self, value: np.ndarray, where: str, depth: int) -> Any:
        if value.dtype == object:
            items = self._items(value.ravel().tolist(), where, depth)
            return {"~": "objects", "shape": list(value.shape), "items": items}
        value = np.asarray(value) if isinstance(value, np.memmap) else value
        if type(value) is not np.ndarray or type_name(value.dtype) is None:
            raise TypeError(f"{where} is an array of {value.dtype}, which a model file cannot hold")
        return {"~": "array", **self.pools.put(value)}

    def _scalar(self, value: np.generic, where: str, depth: int) -> Any:
        name = type_name(value.dtype)
        if name is None:
            raise TypeError(f"{where} is a {value.dtype}, which a model file cannot hold")
        return {"~": "scalar", "type": name, "value": value.item()}

    def _dtype(self, value: np.dtype, where: str, depth: int) -> Any:
        name = "O" if value.kind == "O" else type_name(value)
        if name is None:
            raise TypeError(f"{where} is the type {value}, which a model file cannot hold")
        return {"~": "dtype", "name": name}

    def _type(self, value: type, where: str, depth: int) -> Any:
        for name, known in TYPES.items():
            if value is known:
                return {"~": "type", "name": name}
        for name in NUMPY_TYPES:
            if value is getattr(np, name):
                return {"~": "type", "name": f"numpy.{name}"}
        raise TypeError(f"{where} is the class {value.__name__}, which a model file cannot hold")

    def _random_state(self, value: np.random.RandomState, where: str, depth: int) -> Any:
        _, key, position, has_gauss, cached = value.get_state(legacy=True)
        state = [np.asarray(key), int(position), int(has_gauss), float(cached)]
        return {"~": "random_state", "items": self._items(state, where, depth)}

    def _object(self, value: Any, where: str, depth: int) -> Any:
        """Records, estimators, boosters, trees and metrics; nothing else."""
        module = type(value).__module__
        if module == "xgboost.core" and type(value).__name__ == "Booster":
            return self._booster(value)
        if module == "sklearn.tree._tree" and type(value).__name__ == "Tree":
            return {"~": "tree", "parts": self._fields(tree_parts(value), where, depth)}
        if callable(value) and getattr(value, "__module__", "").startswith("toprank.metrics"):
            return self._metric(value, where)
        found = name_of(value)
        if found is None:
            raise TypeError(_refusal(value, where))
        kind, name = found
        if kind == "record":
            state = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return {"~": "record", "name": name, "fields": self._fields(state, where, depth)}
        state = {k: v for k, v in value.__getstate__().items() if k not in LEFT_OUT}
        return {"~": kind, "name": name, "state": self._fields(state, where, depth)}

    def _booster(self, value: Any) -> Any:
        threads = int(json.loads(value.save_config())["learner"]["generic_param"]["nthread"])
        self.boosters.append(bytes(value.save_raw(raw_format="json")))
        threads = threads if 0 < threads <= 1024 else 0  # 0: as many as there are cores
        return {"~": "booster", "number": len(self.boosters) - 1, "threads": threads}

    def _metric(self, value: Any, where: str) -> Any:
        from toprank import metrics

        name = getattr(value, "__name__", "")
        if name not in metrics.__all__ or getattr(metrics, name) is not value:
            raise TypeError(_refusal(value, where))
        return {"~": "metric", "name": name}


def _refusal(value: Any, where: str) -> str:
    """Why an object cannot be stored, and what to do."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if callable(value) and not hasattr(value, "fit"):
        return (
            f"{where} is a function ({getattr(value, '__name__', kind)}), which a model file cannot "
            "hold since opening it must not run code; set that parameter to a name or to None "
            "(set_params) and save again"
        )
    return (
        f"{where} is a {kind}, which a model file cannot hold: only the estimators of toprank and the "
        "parts of scikit-learn listed in toprank.persistence.allowed are stored"
    )


Writer = Callable[[Encoder, Any, str, int], Any]
_WRITERS: dict[type, Writer] = {
    tuple: Encoder._tuple,
    dict: Encoder._dict,
    slice: Encoder._slice,
    np.random.RandomState: Encoder._random_state,
}
_KINDS: dict[type, Writer] = {
    np.ndarray: Encoder._array,
    np.generic: Encoder._scalar,
    np.dtype: Encoder._dtype,
    type: Encoder._type,
}
