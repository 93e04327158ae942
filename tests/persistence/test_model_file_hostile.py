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
import pandas as pd
import pytest
from model_file_damage import members_of, sealed, zipped
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import toprank
from toprank.binning import Bins
from toprank.encoding import TableEncoder
from toprank.persistence import ModelFileError
from toprank.persistence.checks import check_record

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
    table = pd.DataFrame(
        {"amount": np.where(y, np.nan, X[:, 0]), "country": np.where(y, "NL", "DE")}
    )
    for name, data in (("encoder", table), ("sparse encoder", sparse.csr_matrix(X))):
        toprank.save(TableEncoder().fit(data), path)
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
    for name in ("model.json", "arrays/f8.bin", "schema.json", "summary.json"):
        refuses(sealed({**members, name: pickle.dumps(Bomb())}), ".")
    for name in (
        "arrays/O8.bin",
        "arrays/V8.bin",
        "arrays/M8.bin",
        "arrays/f8.npy",
        "arrays/U0.bin",
    ):
        refuses(sealed({**members, name: pickle.dumps(Bomb())}), "does not belong")


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
    for name, message in (("arrays/f8.bin", "no cells"), ("model.json", "lacks model.json")):
        refuses(sealed({k: part for k, part in members.items() if k != name}), message)
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


def test_cells_that_are_no_whole_number_of_values(refuses, saved) -> None:
    members = members_of(saved["linear"])
    for data in (members["arrays/f8.bin"] + b"1234", members["arrays/f8.bin"][:-1], b"1"):
        refuses(sealed({**members, "arrays/f8.bin": data}), "array is cut short")
    refuses(sealed({**members, "arrays/f4.bin": b"1234"}), "more cells than arrays")


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
    refuses(tried({**array, "shape": 3}), "impossible shape")
    refuses(tried({**array, "order": "K"}), "impossible shape")
    for name in ("O", "O8", "f2", "float64", None, [], "f4"):
        refuses(tried({**array, "type": name}), "unknown type")
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
    name = f"arrays/{target['type']}.bin"
    pool = np.frombuffer(members[name], target["type"]).copy()
    part = pool[start : start + int(np.prod(target["shape"]))]
    change(part.reshape(target["shape"], order=target["order"]))
    return sealed({**members, name: pool.tobytes()})


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
ENCODING = ("state", "encoding_", "fields")
CELLS: dict[str, tuple[str, tuple[Any, ...], Any, Any, str]] = {
    "child beyond": ("tree", (*TREE, "left"), 0, 10**6, "child out of range"),
    "child of itself": ("tree", (*TREE, "left"), 0, 0, "child out of range"),
    "one child": ("tree", (*TREE, "right"), 0, -1, "child out of range"),
    "split beyond": ("tree", (*TREE, "rule"), 0, 10**6, "split out of range"),
    "root beyond": ("tree", (*RULES, "roots"), 0, 10**6, "root out of range"),
    "cycle of cells": ("tree", (*RULES, "cells"), (0, 3), 0, "child out of range"),
    "part beyond": ("tree", (*RULES, "cells"), (0, 4), 10**6, "child out of range"),
    "column beyond": ("tree", (*RULES, "cells"), (0, 0), 3, "column of a split is out of range"),
    "depth": ("tree", (*TREE, "depth"), 0, 2**40, "'depth' of a RankTree is out of range"),
    "bins": ("tree", ("state", "space_", "fields", "cuts", "items", 0), 0, np.nan, "ascend"),
    "cuts": ("rules", ("state", "bins_", "fields", "cuts", "items", 0), 0, np.nan, "ascend"),
    "descending cuts": ("rules", ("state", "bins_", "fields", "cuts", "items", 0), 0, 1e9, "ascend"),
    "kendall keys": ("kendall", ("state", "cell_order_", "fields", "keys"), 0, 2**64 - 1, "keys"),
    "kendall places": ("kendall", ("state", "cell_order_", "fields", "places"), 0, 10**9, "'places'"),
    "centres": ("svm", (*RULES, "columns"), 0, 99, "'columns' of a SVMRules is out of range"),
    "compiled child": ("split", (*SPLIT, "nodes", "items", 0, 1), 0, 10**6, "child out of range"),
    "compiled cycle": ("split", (*SPLIT, "nodes", "items", 0, 1), 0, 0, "child out of range"),
    "landmarks": ("kernel", ("state", "expansion_", "fields", "landmarks"), (0, 0), np.inf, "finite"),
    "path child": (
        "embedding", ("state", "trees_", 0, "fields", "left"), 0, 10**6, "child out of range"),
    "path column": (
        "embedding", ("state", "trees_", 0, "fields", "feature"), 0, 10**6, "column of a split"),
    "encoded column": ("encoder", (*ENCODING, "source"), 0, 2, "column that does not exist"),
    "encoded column below": ("encoder", (*ENCODING, "source"), 0, -1, "column that does not exist"),
    "numbers of a category": ("encoder", (*ENCODING, "source"), 0, 1, "category that does not exist"),
    "kind of encoding": ("encoder", (*ENCODING, "kind"), 0, 3, "'kind' .* out of range"),
    "numbers as categories": ("encoder", (*ENCODING, "kind"), 0, 2, "category that does not exist"),
    "unknown category": ("encoder", (*ENCODING, "shift"), 3, 2.0, "category that does not exist"),
    "half a category": ("encoder", (*ENCODING, "shift"), 3, 0.5, "category that does not exist"),
    "encoded NaN": ("encoder", (*ENCODING, "scale"), 0, np.nan, "not finite"),
    "sparse scale": ("sparse encoder", ("state", "scale_"), 0, 0.0, "not above 0"),
    "unsorted categories": (
        "one-hot", ("state", "steps", 0, "items", 1, "state", "categories_", 0), 0, 1e9, "out of order"),
}  # fmt: skip


@pytest.mark.parametrize("case", CELLS)
def test_numbers_that_compiled_code_would_follow(case: str, refuses, saved) -> None:
    model, place, index, value, message = CELLS[case]
    refuses(cells_changed(saved[model], place, put(index, value)), message)


LIMITS = {
    "below": {"clip": -1.0}, "zero": {"clip": 0}, "text": {"clip": "much"}, "columns": {"n_columns": 3},
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS)
def test_encodings_that_cannot_be(case: str, refuses, saved) -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["state"]["encoding_"]["fields"].update(LIMITS[case])

    refuses(changed(saved["encoder"], change), "limit|wrong type|not for its columns")


NO, BOTH = np.zeros(2, dtype=bool), np.array([False, True])
BINS: dict[str, tuple[dict[str, Any], str]] = {
    "one column": ({"cuts": (np.array([1.0]),)}, "other columns"),
    "descending": ({"cuts": (np.array([2.0, 1.0]), np.array([0.0]))}, "ascend"),
    "repeated": ({"cuts": (np.array([1.0, 1.0]), np.array([0.0]))}, "ascend"),
    "not finite": ({"cuts": (np.array([np.nan]), np.array([0.0]))}, "ascend"),
    "too many": ({"cuts": (np.arange(255.0), np.array([0.0]))}, "ascend"),
    "integers": ({"cuts": (np.array([1]), np.array([0.0]))}, "ascend"),
    "marks": ({"has_missing": np.zeros(3, dtype=bool)}, "'has_missing'"),
    "numbers as marks": ({"is_category": np.zeros(2)}, "'is_category'"),
}


@pytest.mark.parametrize("case", BINS)
def test_damaged_bins_are_refused(case: str) -> None:
    good = {
        "cuts": (np.array([1.0, 2.0]), np.array([0.0, 3.0])),
        "is_category": BOTH,
        "has_missing": NO,
    }
    check_record("binning.Bins", Bins(**good))
    change, message = BINS[case]
    with pytest.raises(ModelFileError, match=message):
        check_record("binning.Bins", Bins(**{**good, **change}))


def test_booleans_and_text_are_what_they_say(refuses, saved) -> None:
    members = members_of(saved["tree"])
    broken = members["arrays/b1.bin"][:-1] + b"\x02"
    refuses(sealed({**members, "arrays/b1.bin": broken}), "booleans")
    X, y = rows()
    path = Path("text.toprank")
    toprank.save(toprank.LogisticRanker().fit(X, np.where(y == 1, "yes", "no")), path)
    members = members_of(path.read_bytes())
    path.unlink()
    for point in (b"\xff\xff\xff\x7f", b"\x00\xd8\x00\x00"):  # too large, and half of a pair
        broken = members["arrays/U3.bin"][:-4] + point
        refuses(sealed({**members, "arrays/U3.bin": broken}), "text is damaged")


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


def test_parts_that_do_not_fit_together_are_found_by_scoring_rows(refuses, saved) -> None:
    data = changed(saved["pipeline"], lambda tree: tree["state"]["steps"].pop(0))
    refuses(data, ".")
    shuffled = changed(saved["pipeline"], lambda tree: tree["state"]["steps"].reverse())
    refuses(shuffled, ".")
