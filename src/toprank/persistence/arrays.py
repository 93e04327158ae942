"""Arrays in a model file: all cells of one type in one flat array, stored by skops.

skops keeps arrays as `.npy` members of an archive of its own, beside a `schema.json` that says how to put
them together. Before skops sees such an archive the schema is compared with the only shape it can
have here (a dict of plain arrays) and every `.npy` header with the size of its member.
"""

from __future__ import annotations

import io
import json
import re
from typing import Any, Literal

import numpy as np

from toprank.persistence.archive import read_archive
from toprank.persistence.errors import require

__all__ = ["Pools", "pack_pools", "unpack_pools"]

MOST_DIMENSIONS = 8
LONGEST_SIDE = 2**40
_NAMES = re.compile(r"schema\.json|[0-9]{1,20}\.npy")
_TYPE = re.compile(r"b1|[iu][1248]|f[48]|U[1-9][0-9]{0,5}")
_HEADER = re.compile(
    rb"\{'descr': '([<|][biufU][0-9]{1,6})', 'fortran_order': False, 'shape': \(([0-9]{1,15}),\), \} *\n"
)
_STR = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode"}


def type_name(dtype: np.dtype) -> str | None:
    """The short name of a type that can be stored, such as "f8" or "U12"; None for other types."""
    name = f"U{dtype.itemsize // 4}" if dtype.kind == "U" else f"{dtype.kind}{dtype.itemsize}"
    return name if _TYPE.fullmatch(name) else None


def is_type_name(name: Any) -> bool:
    """Whether it is a name that `type_name` gives."""
    return isinstance(name, str) and _TYPE.fullmatch(name) is not None


class Pools:
    """Cells by type: arrays go in one after the other, and come out in the same order.

    Since each array takes what comes next, no two can claim the same cells, and a file cannot
    describe more than it holds.

    Examples
    --------
    >>> import numpy as np
    >>> pools = Pools()
    >>> shape = pools.put(np.array([[1.0, 2.0]]))
    >>> Pools(pools.joined()).take(shape).tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, cells: dict[str, np.ndarray] | None = None) -> None:
        self.cells = cells or {}
        self.parts: dict[str, list[np.ndarray]] = {}
        self.taken = dict.fromkeys(self.cells, 0)

    def put(self, array: np.ndarray) -> dict[str, Any]:
        """Add an array; return what is needed to take it out again."""
        if array.dtype == "U0":
            array = array.astype("U1")
        name = type_name(array.dtype)
        if name is None:
            raise TypeError(f"an array of {array.dtype} cannot be stored")
        column_major = array.flags.f_contiguous and not array.flags.c_contiguous
        order: Literal["F", "C"] = "F" if column_major else "C"
        little = array.dtype.newbyteorder("<")
        self.parts.setdefault(name, []).append(array.astype(little, copy=False).ravel(order))
        return {"type": name, "shape": list(array.shape), "order": order}

    def joined(self) -> dict[str, np.ndarray]:
        """One flat array for each type."""
        return {name: np.concatenate(parts) for name, parts in self.parts.items()}

    def take(self, description: dict[str, Any]) -> np.ndarray:
        """The next array of a type."""
        name, shape, order = (description.get(key) for key in ("type", "shape", "order"))
        require(isinstance(name, str) and name in self.cells, "an array has an unknown type")
        assert isinstance(name, str)
        sides = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
        require(sides and order in ("C", "F"), "an array has an impossible shape")
        assert isinstance(shape, list)
        size = 1
        for side in shape:
            fits = type(side) is int and 0 <= side <= LONGEST_SIDE
            require(fits, "an array has an impossible shape")
            size *= side
        start = self.taken[name]
        pool = self.cells[name]
        require(size <= len(pool) - start, "an array is larger than the cells that are stored")
        self.taken[name] = start + size
        return pool[start : start + size].reshape(shape, order=order).copy(order="K")

    def finish(self) -> None:
        """Check that nothing is left over."""
        for name, pool in self.cells.items():
            require(self.taken[name] == len(pool), "there are more cells than arrays to hold them")


def pack_pools(pools: dict[str, np.ndarray]) -> bytes:
    """The flat arrays as a skops archive."""
    from skops import io as skops_io

    return skops_io.dumps(dict(pools))


def unpack_pools(data: bytes) -> dict[str, np.ndarray]:
    """Check a skops archive of flat arrays, then let skops read it."""
    from skops import io as skops_io

    members = read_archive(io.BytesIO(data), _NAMES)
    require("schema.json" in members, "its arrays have no description")
    files = _check_schema(json.loads(members["schema.json"]))
    expected = {"schema.json", *files.values()}
    require(len(expected) == len(files) + 1, "two of its arrays share a member")
    require(set(members) == expected, "its arrays do not match their description")
    for name, file in files.items():
        _check_npy(name, members[file])
    pools = skops_io.loads(data)
    for name, array in pools.items():
        _check_cells(name, array)
    return {name: array.astype(array.dtype.newbyteorder("=")) for name, array in pools.items()}


def _check_schema(schema: Any) -> dict[str, str]:
    """The member of each array, from a description that holds nothing else."""
    require(isinstance(schema, dict), "its arrays have an unknown description")
    protocol = schema.pop("protocol", None)
    require(type(protocol) is int and 0 < protocol < 100, "its arrays have an unknown protocol")
    require(isinstance(schema.pop("_skops_version", None), str), "its arrays name no skops version")
    root = _node(schema, "dict", "builtins", "DictNode", {"content", "key_types"})
    content, key_types = root["content"], root["key_types"]
    require(isinstance(content, dict), "its arrays have an unknown description")
    listed = _node(key_types, "list", "builtins", "ListNode", {"content"})["content"]
    require(isinstance(listed, list) and len(listed) == len(content), "its arrays are miscounted")
    type_ids = set()
    for node in listed:
        _node(node, "str", "builtins", "TypeNode", set())
        type_ids.add(node["__id__"])
    ids, files = [root["__id__"], key_types["__id__"]], {}
    for name, node in content.items():
        require(is_type_name(name), f"its arrays name an unknown type {name[:40]!r}")
        array = _node(node, "ndarray", "numpy", "NdArrayNode", {"type", "file"})
        plain = array["type"] == "numpy" and isinstance(array["file"], str)
        require(plain, "one of its arrays is not plain")
        ids.append(array["__id__"])
        files[name] = array["file"]
    # skops takes nodes of one number for one object, so numbers must not be used twice
    require(len(set(ids)) == len(ids) and not type_ids & set(ids), "its arrays are tangled")
    return files


def _node(node: Any, cls: str, module: str, loader: str, more: set[str]) -> dict[str, Any]:
    """A node of the description that is exactly of one kind."""
    keys = {"__class__", "__module__", "__loader__", "__id__", *more}
    alike = (
        isinstance(node, dict)
        and set(node) == keys
        and (node["__class__"], node["__module__"], node["__loader__"]) == (cls, module, loader)
        and type(node["__id__"]) is int
    )
    require(alike, "its arrays are described in an unknown way (only plain arrays are read)")
    return node


def _check_npy(name: str, data: bytes) -> None:
    """Check the header of one array against its name and its size."""
    length = int.from_bytes(data[8:10], "little")
    require(data[:8] == b"\x93NUMPY\x01\x00", "one of its arrays is no array of numbers or text")
    match = _HEADER.fullmatch(data[10 : 10 + length])
    require(match is not None, "one of its arrays has an unknown header")
    assert match is not None
    dtype = np.dtype(match[1].decode())
    require(type_name(dtype) == name, "one of its arrays is of another type than it says")
    declared = int(match[2]) * dtype.itemsize
    there = len(data) - 10 - length
    require(declared == there, f"an array declares {declared} bytes but has {there}")


def _check_cells(name: str, array: np.ndarray) -> None:
    """Check that truth values are 0 or 1 and that text is text."""
    if name == "b1":
        require(bool((array.view(np.uint8) <= 1).all()), "an array of truth values is damaged")
    elif name[0] == "U" and len(array):
        points = array.view(np.uint32)
        text = (points <= 0x10FFFF) & ((points < 0xD800) | (points > 0xDFFF))
        require(bool(text.all()), "an array of text is damaged")
