"""Ways to damage a model file, from single bytes to well-formed lies with valid digests."""

from __future__ import annotations

import copy
import io
import json
import random
from typing import Any

import numpy as np

from toprank.persistence.files import MEMBER_NAMES, digests, read_archive, write_archive

# What a number, a string or a part of JSON may turn into.
LIES: tuple[Any, ...] = (
    -1, 0, 1, 2, 3, 7, 255, 256, 10**6, 2**31 - 1, 2**31, 2**62, 2**64, -(2**31), -(2**63), 0.5, 1e39,
    1e308, -1e-320, float("nan"), float("inf"), True, None, "", "0", "x0", "[0E0]", "<=", "f8", [], {},
    [0], {"~": "tuple", "items": []}, {"~": "array", "type": "f8", "shape": [3], "order": "C"},
    "builtins.eval", "sklearn.pipeline.Pipeline", 10**400,
)  # fmt: skip


def members_of(data: bytes) -> dict[str, bytes]:
    return read_archive(io.BytesIO(data), MEMBER_NAMES)


def sealed(members: dict[str, bytes]) -> bytes:
    """A file of these members whose header is right about their digests."""
    members = dict(members)
    try:
        header = json.loads(members["header.json"])
        header["digests"] = digests(members)
        members["header.json"] = json.dumps(header).encode()
    except (KeyError, ValueError, TypeError):
        pass  # the header itself is damaged
    return zipped(members)


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    write_archive(members, buffer)
    return buffer.getvalue()


def damaged_bytes(data: bytes, dice: random.Random) -> bytes:
    """Flip, cut, repeat or insert a few bytes."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        if not changed:
            break
        at = dice.randrange(len(changed))
        kind = dice.randrange(5)
        if kind == 0:
            changed[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            changed[at] = dice.randrange(256)
        elif kind == 2:
            del changed[at : at + dice.choice((1, 4, 100))]
        elif kind == 3:
            changed[at:at] = changed[at : at + dice.choice((1, 8, 64))]
        else:
            del changed[at:]
    return bytes(changed)


def damaged_text(data: bytes, dice: random.Random) -> bytes:
    """JSON that is still JSON but says something else."""
    tree = copy.deepcopy(json.loads(data))
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        places = _places(tree)
        if not places:
            break
        holder, key = dice.choice(places)
        kind = dice.randrange(10)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other_holder, other_key = dice.choice(places)
            holder[key] = copy.deepcopy(other_holder[other_key])
        elif kind == 2 and isinstance(holder, list):
            holder.insert(key, holder[key])
        elif kind == 3 and isinstance(holder, dict):
            holder[dice.choice(("extra", "~", "__class__", "decision_function"))] = holder.pop(key)
        elif kind < 6 and type(holder[key]) in (int, float):
            holder[key] = holder[key] + dice.choice((-1, 1, 2, -0.5, 1000))
        else:
            holder[key] = dice.choice(LIES)
    return json.dumps(tree).encode()


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            found.append((node, key))
            if isinstance(value, (dict, list)):
                stack.append(value)
    return found


def damaged_cells(data: bytes, dtype: np.dtype, dice: random.Random) -> bytes:
    """Arrays of a type with other cells than they had, or fewer."""
    cells = np.frombuffer(data, dtype).copy()
    for _ in range(dice.choice((1, 1, 3, 20))):
        if len(cells):
            cells[dice.randrange(len(cells))] = _cell(dtype, dice)
    if dice.random() < 0.1:
        cells = cells[: dice.randrange(len(cells) + 1)]
    return cells.tobytes()


def _cell(dtype: np.dtype, dice: random.Random) -> Any:
    if dtype.kind == "f":
        return dice.choice((np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 3.5, 1e-300))
    if dtype.kind == "b":
        return dice.random() < 0.5
    if dtype.kind == "U":
        return dice.choice(("", "x", "DE", "\U0010ffff", "a\0b"))
    limits = np.iinfo(dtype)
    values = (limits.min, limits.max, 0, 1, 2, 3, 5, 8, 31, limits.max - 1)
    extra = (-1, -2) if dtype.kind == "i" else ()
    return dice.choice((*values, *extra))


def damaged_member(members: dict[str, bytes], name: str, dice: random.Random) -> dict[str, bytes]:
    """The members with one of them damaged in one of the ways that suit it."""
    data = members[name]
    if dice.random() < 0.15:
        changed = damaged_bytes(data, dice)
    elif name.startswith("arrays/"):
        changed = damaged_cells(data, np.dtype(name[7:-4]), dice)
    else:
        changed = damaged_text(data, dice)
    return {**members, name: changed}
