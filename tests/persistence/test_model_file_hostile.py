"""Files made to do harm: refused with one clear line."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest
from model_file_damage import ANY_NAME, members_of, sealed, zipped
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import toprank
from toprank.persistence import ModelFileError
from toprank.persistence.archive import read_archive

Members = dict[str, bytes]


class Bomb:
    """Pickled, it would leave a file behind when it is opened."""

    def __reduce__(self) -> Any:
        return os.system, ("touch pwned",)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).round(1)
    return X, (X[:, 0] + 0.5 * rng.normal(size=80) > 0.8).astype(int)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of some small models."""
    X, y = rows()
    models = {
        "linear": toprank.LogisticRanker(),
        "tree": toprank.TreeRank(max_depth=3, random_state=0),
        "rules": toprank.RankBoost(n_estimators=3),
        "booster": toprank.GradientBoostingRanker(n_estimators=2, n_jobs=1),
        "kendall": toprank.RankingForest(2, consensus="kendall", random_state=0),
        "svm": toprank.TreeRank(splitter="svm", max_depth=2, random_state=0),
        "split": toprank.TreeRank(
            splitter=DecisionTreeClassifier(max_depth=3), max_depth=2, random_state=0
        ),
        "kernel": toprank.RankSVM(kernel="rbf"),
        "embedding": toprank.TreePathEmbedding(n_folds=None, max_depth=3, random_state=0),
        "pipeline": make_pipeline(StandardScaler(), toprank.LogisticRanker()),
        "one-hot": make_pipeline(OneHotEncoder(handle_unknown="ignore"), toprank.LogisticRanker()),
    }
    path = tmp_path_factory.mktemp("hostile") / "model.toprank"
    found = {}
    for name, model in models.items():
        toprank.save(model.fit(X, y), path)
        found[name] = path.read_bytes()
    return found


@pytest.fixture
def refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes, str], None]:
    monkeypatch.chdir(tmp_path)

    def check(data: bytes, message: str) -> None:
        path = tmp_path / "hostile.toprank"
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=message) as caught:
            toprank.load(path)
        assert "\n" not in str(caught.value)
        assert str(caught.value).startswith(str(path))
        assert sorted(os.listdir(tmp_path)) == ["hostile.toprank"]

    return check


# -- the archive ------------------------------------------------------------------------------------


def test_other_files(refuses, saved) -> None:
    refuses(b"", "too short")
    refuses(b"hello" * 100, "not a zip archive")
    refuses(pickle.dumps(Bomb()) * 10, "not a zip archive")
    refuses(zipped({"header.json": b"{}"}), "names no format")
    refuses(zipped({"model.json": b"{}"}), "no header")
    refuses(zipped({"header.json": b"[1]"}), "header cannot be read")
    refuses(zipped({"header.json": b"[" * 100_000}), "header cannot be read")


def test_a_pickle_inside(refuses, saved) -> None:
    members = members_of(saved["linear"])
    refuses(
        zipped({**members, "state.pkl": pickle.dumps(Bomb())}), "'state.pkl', which does not belong"
    )
    for name in ("model.json", "arrays.skops", "schema.json", "summary.json"):
        refuses(sealed({**members, name: pickle.dumps(Bomb())}), ".")
    objects = io.BytesIO()
    np.save(objects, np.array([Bomb()], dtype=object), allow_pickle=True)
    refuses(sealed({**members, "arrays.skops": with_npy(members, objects.getvalue())}), "header")


def test_names_that_lead_out_of_the_archive(refuses, saved) -> None:
    members = members_of(saved["linear"])
    for name in ("../header.json", "/etc/passwd", "boosters/../../0.json", "header.json/"):
        refuses(zipped({**members, name: b"x"}), "does not belong")


def test_an_altered_archive(refuses, saved) -> None:
    data = saved["linear"]
    refuses(data + b"more", "cut short or has something appended")
    refuses(data[:-30], "cut short")
    refuses(b"MZ" + data, "not a zip archive")
    refuses(data[:4] + b"prefix" + data, "not laid out")
    members = members_of(data)
    refuses(
        zipped({**members, "model.json": members["model.json"] + b" "}), "not those it was saved"
    )
    no_arrays = {name: part for name, part in members.items() if name != "arrays.skops"}
    refuses(sealed(no_arrays), "lacks arrays.skops")
    refuses(_twice(members), "twice")
    refuses(_packed(members, ZIP_BZIP2), "unknown way")
    encrypted = bytearray(data)
    at = encrypted.rindex(b"PK\x01\x02")
    encrypted[at + 8] |= 1
    refuses(bytes(encrypted), "encrypted")


def _packed(members: Members, kind: int) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", kind) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _twice(members: Members) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("model.json", b"{}")
    return buffer.getvalue()


def test_a_small_file_cannot_ask_for_much_memory(refuses, saved) -> None:
    members = members_of(saved["linear"])
    bomb = _packed({**members, "summary.json": b" " * 300_000_000}, ZIP_DEFLATED)
    assert len(bomb) < 2_000_000
    refuses(bomb, "packed too tightly")
    # stored, but declared larger than the file
    data = bytearray(_packed(members, ZIP_STORED))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", 2**31 - 2**21)
    refuses(bytes(data), "which it cannot hold")
    many = _packed({f"boosters/{k}.json": b"" for k in range(10_001)}, ZIP_STORED)
    refuses(many, "too many members")


# -- arrays -----------------------------------------------------------------------------------------


def inner_of(members: Members) -> Members:
    return read_archive(io.BytesIO(members["arrays.skops"]), ANY_NAME)


def with_npy(members: Members, npy: bytes) -> bytes:
    inner = inner_of(members)
    name = next(n for n in inner if n.endswith(".npy"))
    return _packed({**inner, name: npy}, ZIP_STORED)


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def test_arrays_that_declare_more_than_they_have(refuses, saved) -> None:
    members = members_of(saved["linear"])

    def tried(data: bytes) -> bytes:
        return sealed({**members, "arrays.skops": with_npy(members, data)})

    shape = "{'descr': '<i8', 'fortran_order': False, 'shape': (%s,), }"
    refuses(tried(npy(shape % "99999999999999")), "declares 799999999999992 bytes but has 0")
    refuses(tried(npy(shape % "9" * 30)), "unknown header")
    refuses(tried(npy(shape % "-1")), "unknown header")
    refuses(
        tried(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")), "unknown header"
    )
    refuses(tried(npy("__import__('os').system('touch pwned')")), "unknown header")
    refuses(tried(npy("(" * 9000)), "unknown header")
    refuses(tried(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }", b"12345678")),
            "another type")  # fmt: skip


def test_skops_is_shown_plain_arrays_only(refuses, saved) -> None:
    members = members_of(saved["linear"])
    inner = inner_of(members)
    schema = json.loads(inner["schema.json"])

    def tried(change: Callable[[Any], None]) -> bytes:
        changed = copy.deepcopy(schema)
        change(changed)
        packed = _packed({**inner, "schema.json": json.dumps(changed).encode()}, ZIP_STORED)
        return sealed({**members, "arrays.skops": packed})

    def method(node: Any) -> None:
        node["content"]["f8"] = {
            "__class__": "system", "__module__": "os", "__loader__": "FunctionNode", "__id__": 5,
        }  # fmt: skip

    refuses(tried(method), "only plain arrays are read")
    refuses(tried(lambda node: node.update(__loader__="ObjectNode")), "only plain arrays are read")
    refuses(tried(lambda node: node.update(protocol=True)), "unknown protocol")
    refuses(tried(lambda node: node["content"]["f8"].update(__id__=node["__id__"])), "tangled")
    refuses(
        tried(lambda node: node["content"].update(O8=node["content"].pop("f8"))), "unknown type"
    )


def test_more_arrays_than_cells_or_fewer(refuses, saved) -> None:
    members = members_of(saved["linear"])
    tree = json.loads(members["model.json"])

    def tried(coef: Any) -> bytes:
        changed = copy.deepcopy(tree)
        changed["state"]["coef_"] = coef
        return sealed({**members, "model.json": json.dumps(changed).encode()})

    array = tree["state"]["coef_"]
    refuses(tried({**array, "shape": [2**39]}), "larger than the cells")
    refuses(tried({**array, "shape": [2**62, 2**62]}), "impossible shape")
    refuses(tried({**array, "shape": [-3]}), "impossible shape")
    refuses(tried({**array, "shape": [1] * 30}), "impossible shape")
    refuses(tried([array] * 1000), "larger than the cells")
    refuses(tried(None), "more cells than arrays|not the array")


# -- the model --------------------------------------------------------------------------------------


def changed(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file whose model says something else."""
    members = members_of(data)
    tree = json.loads(members["model.json"])
    change(tree)
    return sealed({**members, "model.json": json.dumps(tree).encode()})


def test_only_what_is_allowed_is_made(refuses, saved) -> None:
    data = saved["linear"]
    for name in ("os.system", "builtins.eval", "Popen", "SVC", "LogisticRegression"):
        refuses(
            changed(data, lambda tree, name=name: tree.update(name=name)), "not among those allowed"
        )
    refuses(changed(data, lambda tree: tree.update({"~": "pickle"})), "unknown part")
    refuses(changed(data, lambda tree: tree.update(name=["LogisticRanker"])), "not text")
    refuses(changed(data, lambda tree: tree.update(name="RankSVM")), "another class|not its own")
    record = {"~": "record", "name": "os.system", "fields": {"command": "touch pwned"}}
    refuses(changed(data, lambda tree: tree["state"].update(columns_=record)), "not among those")


def test_messages_stay_one_plain_line(refuses, saved) -> None:
    evil = "x\x1b[2J\x07\nsecond line"
    columns = json.loads(members_of(saved["linear"])["model.json"])["state"]["columns_"]
    columns["fields"][evil] = 1
    refuses(changed(saved["linear"], lambda tree: tree["state"].update(columns_=columns)),
            r"unknown fields: x\?\[2J\?$")  # fmt: skip
    refuses(changed(saved["linear"], lambda tree: tree["state"].update({evil: 1})), "not its own")


def test_attributes_cannot_stand_before_methods(refuses, saved) -> None:
    data = saved["linear"]
    for name in (
        "decision_function",
        "__class__",
        "__dict__",
        "_check_rows",
        "_accepts_sparse",
        "a b",
    ):
        refuses(
            changed(data, lambda tree, name=name: tree["state"].update({name: 1})), "not its own"
        )


STATES: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "threshold": ("linear", lambda s: s.update(offset_=float("nan")), "not finite"),
    "columns": ("linear", lambda s: s.update(n_features_in_=10**9), "what its columns are"),
    "no columns": ("linear", lambda s: s.update(n_features_in_=0), "no columns"),
    "threads": ("kendall", lambda s: s.update(n_jobs=10**9), "threads"),
    "classes": ("linear", lambda s: s.update(classes_=[0, 1]), "what its classes are"),
    "no boosters": ("linear", lambda s: s.update(boosters_=[]), "no boosters"),
    "booster astray": (
        "linear", lambda s: s.update(x_={"~": "booster", "number": 0, "threads": 1}), "missing"),
    "steps": (
        "pipeline", lambda s: s["steps"][0]["items"][1]["state"].update(n_features_in_=2**31),
        "number of columns"),
}  # fmt: skip


@pytest.mark.parametrize("case", STATES)
def test_states_that_cannot_be(case: str, refuses, saved) -> None:
    model, change, message = STATES[case]
    refuses(changed(saved[model], lambda tree: change(tree["state"])), message)


def cells_changed(
    data: bytes, place: tuple[Any, ...], change: Callable[[np.ndarray], None]
) -> bytes:
    """A file in which the cells of the array at a place of the model are other."""
    members = members_of(data)
    tree = json.loads(members["model.json"])
    target: Any = tree
    for key in place:
        target = target[key]
    start = 0
    for node in _arrays(tree):
        if node is target:
            break
        if node["type"] == target["type"]:
            start += int(np.prod(node["shape"]))
    inner = inner_of(members)
    file = json.loads(inner["schema.json"])["content"][target["type"]]["file"]
    pool = np.load(io.BytesIO(inner[file])).copy()
    part = pool[start : start + int(np.prod(target["shape"]))]
    change(part.reshape(target["shape"], order=target["order"]))
    buffer = io.BytesIO()
    np.save(buffer, pool)
    packed = _packed({**inner, file: buffer.getvalue()}, ZIP_STORED)
    return sealed({**members, "arrays.skops": packed})


def _arrays(node: Any) -> list[dict[str, Any]]:
    """All arrays of a model in the order in which they are stored."""
    if isinstance(node, dict) and node.get("~") == "array":
        return [node]
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [array for part in parts for array in _arrays(part)]


def put(index: Any, value: Any) -> Callable[[np.ndarray], None]:
    def change(cells: np.ndarray) -> None:
        cells[index] = value

    return change


TREE = ("state", "tree_", "fields")
RULES = (*TREE, "rules", "fields")
SPLIT = (*RULES, "models", "items", 0, "state", "tree_", "parts")
CELLS: dict[str, tuple[str, tuple[Any, ...], Any, Any, str]] = {
    "child beyond": ("tree", (*TREE, "left"), 0, 10**6, "child out of range"),
    "child of itself": ("tree", (*TREE, "left"), 0, 0, "child out of range"),
    "one child": ("tree", (*TREE, "right"), 0, -1, "one child"),
    "split beyond": ("tree", (*TREE, "rule"), 0, 10**6, "number of a split is out of range"),
    "root beyond": ("tree", (*RULES, "roots"), 0, 10**6, "root of a small tree"),
    "cycle of cells": ("tree", (*RULES, "cells"), (0, 3), 0, "part out of range"),
    "part beyond": ("tree", (*RULES, "cells"), (0, 4), 10**6, "part out of range"),
    "column beyond": ("tree", (*RULES, "cells"), (0, 0), 3, "column of a cut is out of range"),
    "depth": ("tree", (*TREE, "depth"), 0, 2**40, "depth of a ranking tree"),
    "starts": ("tree", ("state", "space_", "fields", "starts"), 1, 10**9, "does not add up"),
    "cuts": ("rules", ("state", "bins_", "fields", "cuts", "items", 0), 0, np.nan, "not finite"),
    "descending cuts": ("rules", ("state", "bins_", "fields", "cuts", "items", 0), 0, 1e9, "ascend"),
    "kendall keys": ("kendall", ("state", "cell_order_", "fields", "keys"), 0, 2**64 - 1, "keys"),
    "kendall places": ("kendall", ("state", "cell_order_", "fields", "places"), 0, 10**9, "place"),
    "centres": ("svm", (*RULES, "columns"), 0, 99, "column of a machine"),
    "compiled child": ("split", (*SPLIT, "nodes", "items", 0, 1), 0, 10**6, "child out of range"),
    "compiled cycle": ("split", (*SPLIT, "nodes", "items", 0, 1), 0, 0, "child out of range"),
    "landmarks": ("kernel", ("state", "expansion_", "fields", "landmarks"), (0, 0), np.inf, "finite"),
    "path child": (
        "embedding", ("state", "trees_", 0, "fields", "left"), 0, 10**6, "child out of range"),
    "path column": (
        "embedding", ("state", "trees_", 0, "fields", "feature"), 0, 10**6, "column of a split"),
    "unsorted categories": (
        "one-hot", ("state", "steps", 0, "items", 1, "state", "categories_", 0), 0, 1e9, "out of order"),
}  # fmt: skip


@pytest.mark.parametrize("case", CELLS)
def test_numbers_that_compiled_code_would_follow(case: str, refuses, saved) -> None:
    model, place, index, value, message = CELLS[case]
    refuses(cells_changed(saved[model], place, put(index, value)), message)


def test_truth_values_and_text_are_what_they_say(refuses, saved) -> None:
    members = members_of(saved["tree"])
    inner = inner_of(members)
    file = json.loads(inner["schema.json"])["content"]["b1"]["file"]
    broken = _packed({**inner, file: inner[file][:-1] + b"\x02"}, ZIP_STORED)
    refuses(sealed({**members, "arrays.skops": broken}), "truth values")
    X, y = rows()
    path = Path("text.toprank")
    toprank.save(toprank.LogisticRanker().fit(X, np.where(y == 1, "yes", "no")), path)
    members = members_of(path.read_bytes())
    path.unlink()
    inner = inner_of(members)
    file = json.loads(inner["schema.json"])["content"]["U3"]["file"]
    broken = _packed({**inner, file: inner[file][:-4] + b"\xff\xff\xff\x7f"}, ZIP_STORED)
    refuses(sealed({**members, "arrays.skops": broken}), "text is damaged")


def test_schema_header_and_summary_must_be_those_of_the_model(
    refuses, saved, tmp_path: Path
) -> None:
    members = members_of(saved["linear"])
    schema = json.loads(members["schema.json"])
    schema["columns"][0]["name"] = "other"
    refuses(sealed({**members, "schema.json": json.dumps(schema).encode()}), "schema is not that")
    header = json.loads(members["header.json"])
    for changes, message in (
        ({"class": "RankSVM"}, "another class"),
        ({"probed": False}, "skips a check"),
        ({"format": "2"}, "names no format"),
        ({"format": -1}, "names no format"),
        ({"toprank": 5}, "names no toprank"),
    ):
        data = {**members, "header.json": json.dumps({**header, **changes}).encode()}
        refuses(sealed(data), message)
    for summary in (b"[]", b'{"n_rows": 1}', b'{"n_rows": -1, "n_positives": 0, "columns": []}',
                    b'{"n_rows": 1, "n_positives": 0, "columns": [{"name": "<script>"}]}'):  # fmt: skip
        refuses(sealed({**members, "summary.json": summary}), "summary")


def test_parts_that_do_not_fit_together_are_found_by_a_trial(refuses, saved) -> None:
    data = changed(saved["pipeline"], lambda tree: tree["state"]["steps"].pop(0))
    refuses(data, ".")
    shuffled = changed(saved["pipeline"], lambda tree: tree["state"]["steps"].reverse())
    refuses(shuffled, ".")
