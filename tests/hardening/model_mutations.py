"""Ways to change a model file: single bytes, other values, other structures, all with valid digests.

Everything is drawn from a `random.Random`, so that a seed gives the same file everywhere.
"""

from __future__ import annotations

import copy
import io
import json
import random
from typing import Any

import numpy as np

from toprank.persistence.files import digests, read_archive, write_archive

# What a number, a string or a part of JSON may turn into.
LIES: tuple[Any, ...] = (
    -1, 0, 1, 2, 3, 7, 255, 256, 10**6, 2**31 - 1, 2**31, 2**62, 2**64, -(2**31), -(2**63), 0.5, 1e39,
    1e308, -1e-320, float("nan"), float("inf"), True, None, "", "0", "x0", "[0E0]", "<=", "f8", [], {},
    [0], {"~": "tuple", "items": []}, {"~": "array", "type": "f8", "shape": [3], "order": "C"},
    "builtins.eval", "sklearn.pipeline.Pipeline", 10**400,
)  # fmt: skip


def members_of(data: bytes) -> dict[str, bytes]:
    return read_archive(io.BytesIO(data))


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
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind == 3 and isinstance(holder, dict):
            holder[dice.choice(("extra", "~", "__class__", "decision_function"))] = holder.pop(key)
        elif kind < 6 and type(holder[key]) in (int, float):
            step = dice.choice((-1, 1, 2, -0.5, 1000))
            holder[key] += step if abs(holder[key]) < 2**64 else int(step)
        else:
            holder[key] = copy.deepcopy(dice.choice(LIES))
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


# -- structures: lies that a program would tell that has read the format --------------------------------

HUGE = (2**31 - 1, 500_000_000, 250_000_000, 10**7, 2**40, 2**62, -1, -(2**31))
SIZES = ("n_features_in_", "n_classes_", "n_outputs_", "n_components_", "n_jobs", "max_depth", "degree",
         "n_columns", "shape", "_n_features", "n_estimators", "number", "threads")  # fmt: skip
FUNCTIONS = ("evaluate", "interval", "compare", "average_precision", "eval", "system")
TEXTS = (
    "{:300000000}",
    "%300000000d",
    "U999999",
    "O",
    "../../etc/passwd",
    "x" * 2000,
    "\0",
    "passthrough",
)


def _drop_attributes(state: dict[str, Any], dice: random.Random) -> None:
    """Leave out fitted attributes, as a state that skips the checks would."""
    fitted = [name for name in state if name.endswith("_")]
    for name in dice.sample(fitted, min(len(fitted), dice.choice((1, 1, 2, 3)))):
        del state[name]


def _add_attribute(state: dict[str, Any], dice: random.Random) -> None:
    """Add an attribute of another estimator, or one that no estimator has."""
    names = ("columns_", "boosters_", "trees_", "tree_", "coef_", "estimator_", "steps", "func", "x_",
             "_check_rows", "training_summary_", "kw_args", "f_", "dtype")  # fmt: skip
    others = (dice.choice(list(state.values()) or [None]), *LIES)
    state[dice.choice(names)] = copy.deepcopy(dice.choice(others))


def _name_function(state: dict[str, Any], dice: random.Random) -> None:
    """Put a function by name where a parameter was."""
    tag = dice.choice(("metric", "type", "estimator", "sklearn"))
    name = dice.choice((*FUNCTIONS, "FunctionTransformer", "float", "object"))
    part: Any = {"~": tag, "name": name}
    if tag in ("estimator", "sklearn"):
        part["state"] = {"func": {"~": "metric", "name": dice.choice(FUNCTIONS)},
                         "kw_args": {"~": "dict", "items": [["n_resamples", 200_000_000]]}}  # fmt: skip
    state[dice.choice([*state, "func"])] = part


def _declare_sizes(state: dict[str, Any], dice: random.Random) -> None:
    """Declare other sizes, types and texts than there are."""
    for holder, key in _places(state):
        if key in SIZES and dice.random() < 0.3:
            lie = dice.choice(HUGE)
            holder[key] = [lie] if isinstance(holder[key], list) else lie
        elif isinstance(holder[key], str) and dice.random() < 0.05:
            holder[key] = dice.choice(TEXTS)


def _nest(state: dict[str, Any], dice: random.Random) -> None:
    """Nest a value in lists, dicts or tuples, deeply or widely."""
    key = dice.choice(list(state) or ["x_"])
    value: Any = state.get(key)
    for _ in range(dice.choice((1, 3, 50, 300))):
        value = dice.choice(([value], {"~": "tuple", "items": [value]}))
    state[key] = [value] * dice.choice((1, 2, 500))


def _swap(state: dict[str, Any], dice: random.Random) -> None:
    """Exchange the values of two attributes."""
    if len(state) > 1:
        one, other = dice.sample(list(state), 2)
        state[one], state[other] = state[other], state[one]


STRUCTURES = (
    _drop_attributes, _add_attribute, _name_function, _declare_sizes, _nest, _swap,
)  # fmt: skip


def restructured(data: bytes, dice: random.Random) -> bytes:
    """A model whose parts have other attributes, sizes, functions or depths."""
    tree = json.loads(data)
    states = [node["state"] for node in [tree, *_nodes(tree)] if "state" in node]
    for _ in range(dice.choice((1, 1, 2, 3))):
        dice.choice(STRUCTURES)(dice.choice(states), dice)
    return json.dumps(tree).encode()


def _nodes(tree: Any) -> list[dict[str, Any]]:
    values = (holder[key] for holder, key in _places(tree))
    return [
        value
        for value in values
        if isinstance(value, dict) and isinstance(value.get("state"), dict)
    ]


def grafted(
    members: dict[str, bytes], others: dict[str, bytes], dice: random.Random
) -> dict[str, bytes]:
    """The members with one of another file in their place, or beside them."""
    name = dice.choice(list(others))
    return {**members, name: others[name]}


def packed_tightly(members: dict[str, bytes], dice: random.Random) -> bytes:
    """A small file whose members unpack to a lot, or that share their bytes."""
    from zipfile import ZIP_DEFLATED, ZipFile

    unit = dice.choice((b"[],", b"{},", b"[[[[[[[[", b" ", b'{"a":', b'"\\"', b"0,"))
    filled = b"[" + unit * (dice.choice((10**5, 10**6, 6 * 10**6)) // len(unit)) + b"0]"
    n_copies = dice.choice((1, 1, 20))
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, filled if name == "header.json" and n_copies == 1 else content)
        for k in range(n_copies - 1):
            archive.writestr(f"arrays/U{k + 1}.bin", filled)
    return buffer.getvalue()


KINDS = {
    "bytes": 1,
    "values": 4,
    "structure": 5,
    "cells": 4,
    "summary": 1,
    "graft": 1,
    "packing": 0.1,
}


def mutant(seed: int, models: dict[str, bytes]) -> tuple[str, str, bytes]:
    """The model that a seed changes, the way it does, and the file that comes of it."""
    dice = random.Random(f"mutant {seed}")
    model = dice.choice(sorted(models))
    kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
    members = members_of(models[model])
    if kind == "bytes":
        return model, kind, damaged_bytes(models[model], dice)
    if kind == "packing":
        return model, kind, packed_tightly(members, dice)
    if kind == "structure":
        changed = {**members, "model.json": restructured(members["model.json"], dice)}
        return model, kind, sealed(changed)
    if kind == "graft":
        other = members_of(models[dice.choice(sorted(models))])
        return model, kind, sealed(grafted(members, other, dice))
    chosen = {
        "values": [name for name in members if name.endswith(".json") and name != "summary.json"],
        "cells": [name for name in members if name.startswith("arrays/")],
        "summary": [name for name in members if name == "summary.json"],
    }[kind] or ["model.json"]
    return model, kind, sealed(damaged_member(members, dice.choice(chosen), dice))


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
