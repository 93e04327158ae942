"""Files made to do harm: refused with one clear line."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pandas as pd
import pytest
from model_cases import MODELS, labelled_rows, rows_of
from model_mutations import members_of, sealed, zipped
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import toprank
from toprank.binning import Bins
from toprank.encoding import TableEncoder
from toprank.persistence import ModelFileError, files
from toprank.persistence.checks import REQUIRED, check_record, required_attributes
from toprank.persistence.encoding import Encoder
from toprank.persistence.files import measure_json
from toprank.registry import (
    ESTIMATORS,
    MEMBERS,
    RELATIONAL,
    RELATIONAL_TRANSFORMERS,
    TRANSFORMERS,
    WRAPPERS,
)
from toprank.rules.relational.schema import Predicate, Schema

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
    for name in ("../header.json", "/etc/passwd", "arrays/../../f8.bin", "header.json/"):
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
    bomb = _packed({**members, "summary.json": b" " * 30_000_000}, ZIP_DEFLATED)
    assert len(bomb) < 200_000
    refuses(bomb, "packed too tightly")
    # stored, but declared larger than the file
    data = bytearray(_packed(members, ZIP_STORED))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", 2**31 - 2**21)
    refuses(bytes(data), "which it cannot hold")
    many = _packed({f"arrays/U{k}.bin": b"" for k in range(1, 1002)}, ZIP_STORED)
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
    refuses(tried({**array, "shape": [2**40, 0]}), "impossible shape")
    empty = {"~": "objects", "shape": [2**40, 0], "items": []}
    refuses(tried(empty), "array of objects is damaged")
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
        "training_summary_",
    ):
        refuses(
            changed(data, lambda tree, name=name: tree["state"].update({name: 1})), "not its own"
        )


SCHEMA = Encoder().encode(
    Schema(Predicate("t", ("a",), ("x",)), (Predicate("p", ("b",), ("x",)),), ())
)
EMPTY_BOOSTER = {"~": "booster", "settings": {}, "nodes": {}, "threads": 1}
STATES: dict[str, tuple[str, Callable[[dict[str, Any]], None], str]] = {
    "threshold": ("linear", lambda s: s.update(offset_=float("nan")), "not finite"),
    "columns": ("linear", lambda s: s.update(n_features_in_=10**9), "what its columns are"),
    "no columns": ("linear", lambda s: s.update(n_features_in_=0), "no columns"),
    "threads": ("kendall", lambda s: s.update(n_jobs=10**9), "threads"),
    "classes": ("linear", lambda s: s.update(classes_=[0, 1]), "what its classes are"),
    "columns of a schema": (
        "linear", lambda s: s.update(schema_=SCHEMA, n_features_in_=1), "what its columns are"),
    "no boosters": ("linear", lambda s: s.update(boosters_=[]), "no boosters"),
    "empty booster": ("linear", lambda s: s.update(x_=EMPTY_BOOSTER), "incomplete"),
    "steps": (
        "pipeline", lambda s: s["steps"][0]["items"][1]["state"].update(n_features_in_=2**31),
        "n_features_in_ of a StandardScaler"),
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
        "one-hot", ("state", "steps", 0, "items", 1, "state", "categories_", 0), 0, 1e9, "categories_ of"),
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


# -- required attributes, and indices that reach compiled code ------------------------------------------


def state_without(*names: str) -> Callable[[dict[str, Any]], None]:
    def change(tree: dict[str, Any]) -> None:
        for name in names:
            tree["state"].pop(name)

    return change


def split_far_away(cells: np.ndarray) -> None:
    """Let all splits, and nothing else, look at column 500,000,000."""
    column = cells if cells.ndim == 1 else cells[:, 0]
    leaf = cells < 0 if cells.ndim == 1 else cells[:, 3] < 0
    assert leaf.any()
    assert not leaf.all()
    column[~leaf] = 500_000_000


INDICES = {
    "tree": ("tree", (*RULES, "cells")),
    "kendall": ("kendall", ("state", "trees_", 0, "fields", "rules", "fields", "cells")),
    "embedding": ("embedding", ("state", "trees_", 0, "fields", "feature")),
}


@pytest.mark.parametrize("case", INDICES)
def test_no_index_reaches_compiled_code_unchecked(case: str, refuses, saved) -> None:
    """The file lacks what the columns would be checked against, or it does not."""
    model, place = INDICES[case]
    bare = changed(saved[model], state_without("n_features_in_"))
    refuses(cells_changed(bare, place, split_far_away), "lacks n_features_in_")
    refuses(cells_changed(saved[model], place, split_far_away), "column of a split is out of range")


FITTED = {**ESTIMATORS, **TRANSFORMERS}
OTHERS = {*RELATIONAL, *RELATIONAL_TRANSFORMERS, *WRAPPERS, *MEMBERS}


def test_every_estimator_says_what_it_cannot_do_without() -> None:
    assert set(REQUIRED) == {*FITTED, *OTHERS}, "name what a new estimator needs to score"


@pytest.mark.parametrize(
    "name", ["linear", "tree", "rules", "booster", "kendall", "kernel", "embedding"]
)
def test_a_required_attribute_is_required(name: str, refuses, saved) -> None:
    tree = json.loads(members_of(saved[name])["model.json"])
    for attribute in required_attributes(tree["name"]):
        present = next(one for one in attribute.split("|") if one in tree["state"])
        # without an array, those after it get other cells, and something else may be wrong first
        plain = not _arrays(tree["state"][present]) and name != "booster"
        refuses(changed(saved[name], state_without(present)), "lacks" if plain else ".")


def test_a_small_tree_does_not_lead_into_the_next(refuses, saved) -> None:
    """Explaining a model reads the cells of one split at a time."""
    tree = json.loads(members_of(saved["tree"])["model.json"])
    shape = tree["state"]["tree_"]["fields"]["rules"]["fields"]["cells"]["shape"]
    refuses(
        cells_changed(saved["tree"], (*RULES, "cells"), put((0, 4), shape[0] - 1)),
        "child out of range",
    )


# -- one budget ---------------------------------------------------------------------------------------


def peak_of(work: Callable[[], Any]) -> float:
    """The most memory that Python's allocator gave out during some work, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_json_that_would_take_gigabytes_is_counted_first(refuses, saved) -> None:
    members = members_of(saved["linear"])
    for name in ("header.json", "model.json", "schema.json"):
        filled = b'{"a": [' + b"[]," * 1_600_000 + b"0]}"
        data = _packed({**members, name: filled}, ZIP_DEFLATED)
        assert len(data) < 100_000
        assert peak_of(lambda data=data: refuses(data, "packed too tightly")) < 2**26
    # not packed tightly on the whole
    noise = random.Random(0).randbytes(200_000).hex().encode()
    filled = b'{"a": ["' + noise + b'", ' + b"[]," * 3_300_000 + b"0]}"
    data = _packed({**members, "header.json": filled}, ZIP_DEFLATED)
    assert len(filled) < 60 * len(data)
    assert peak_of(lambda: refuses(data, "more values")) < 2**26
    stored = _packed({**members, "header.json": b'{"a": [' + b"[]," * 900_000 + b"0]}"}, ZIP_STORED)
    assert peak_of(lambda: refuses(stored, "no format|more values")) < 40 * len(stored)


def test_members_that_share_their_bytes(refuses, saved) -> None:
    """Many names for one packed part: a few bytes that would be unpacked thousands of times."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b"{}")
        archive.writestr("arrays/U1.bin", b"[" + b"[]," * 300_000 + b"0]")
        first = archive.infolist()[1]
        for k in range(2, 100):
            twin = copy.copy(first)
            twin.filename = twin.orig_filename = f"arrays/U{k}.bin"
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
    refuses(buffer.getvalue(), "not laid out|packed too tightly|overlap")


def test_a_budget_is_enough_for_what_is_written(tmp_path: Path) -> None:
    X, y = rows()
    model = toprank.RankBoost(n_estimators=1).fit(X, y)
    model.train_loss_ = [0] * 700_000  # as tight as JSON can be packed
    toprank.save(model, tmp_path / "model.toprank")
    assert len(toprank.load(tmp_path / "model.toprank").train_loss_) == 700_000


@pytest.mark.parametrize(
    "text", [b'{"a": "\\"\\"[[[", "b": [1, {}]}', b'{"a,[": [1, 2]}', b'{"\\\\": {}}']
)
def test_values_are_counted_as_the_parser_sees_them(text: bytes) -> None:
    def count(value: Any) -> int:
        inner = (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        )
        return 1 + sum(map(count, inner))

    n_nodes, _ = measure_json(text)
    assert count(json.loads(text)) <= n_nodes <= 2 * count(json.loads(text))


def test_text_that_does_not_end_is_measured_in_time() -> None:
    assert measure_json(b'"' + b'\\"' * 2_000_000) == (1, 0)
    assert measure_json(b"[" * 1_000_000)[1] == 1_000_000


# -- parts of scikit-learn ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=np.where(y, "u", "v"))
    encoder = make_column_transformer((OneHotEncoder(), ["d"]), remainder="passthrough")
    models = {
        "forest": make_pipeline(
            StandardScaler(), RandomForestClassifier(2, max_depth=2, random_state=0)
        ),
        "table": make_pipeline(encoder, toprank.LogisticRanker()),
        "function": make_pipeline(FunctionTransformer(), toprank.LogisticRanker()),
    }
    found = {}
    for name, model in models.items():
        path = tmp_path_factory.mktemp("parts") / f"{name}.toprank"
        toprank.save(model.fit(frame if name == "table" else X, y), path)
        found[name] = path.read_bytes()
    return found


def step(tree: dict[str, Any], number: int) -> dict[str, Any]:
    return tree["state"]["steps"][number]["items"][1]["state"]


def evaluates(tree: dict[str, Any]) -> None:
    """A step that calls a metric with arguments of its own when it scores."""
    step(tree, 0).update(
        func={"~": "metric", "name": "evaluate"},
        kw_args={"~": "dict", "items": [["scores", [1.0, 2.0, 3.0]], ["n_resamples", 200_000_000]]},
    )


def averages(tree: dict[str, Any]) -> None:
    step(tree, 0).update(func={"~": "metric", "name": "average_precision"})


PARTS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "classes": ("forest", lambda t: step(t, 1).update(n_classes_=250_000_000), "n_classes_"),
    "width": (
        "table", lambda t: step(t, 0).update(verbose_feature_names_out="{:300000000}"), "verbose_feature"),
    "dtype": (
        "table",
        lambda t: step(t, 0)["transformers_"][0]["items"][1]["state"].update(
            dtype={"~": "dtype", "type": "U999999"}), "type of it is unknown"),
    "function": ("function", evaluates, "unknown metric"),
    "any function": ("function", averages, "'func' of a FunctionTransformer"),
    "a type as function": (
        "function", lambda t: step(t, 0).update(func={"~": "type", "name": "float"}), "'func'"),
    "unknown attribute": ("forest", lambda t: step(t, 0).update(columns_=1), "unknown attribute"),
    "cache": ("forest", lambda t: t["state"].update(memory="/etc"), "'memory' of a Pipeline"),
    "no parameter": ("forest", lambda t: step(t, 0).pop("with_mean"), "lacks its parameter with_mean"),
    "no columns": ("forest", lambda t: step(t, 0).pop("n_features_in_"), "lacks n_features_in_"),
    "wrong parameter": ("forest", lambda t: step(t, 1).update(max_depth="deep"), "max_depth"),
    "threads": ("forest", lambda t: step(t, 1).update(n_jobs=10**6), "threads"),
}  # fmt: skip


@pytest.mark.parametrize("case", PARTS)
def test_parts_of_scikit_learn_are_what_they_are_in_our_files(case: str, refuses, parts) -> None:
    model, change, message = PARTS[case]
    refuses(changed(parts[model], change), message)


def test_a_booster_needs_columns_before_it(refuses, saved) -> None:
    def change(tree: dict[str, Any]) -> None:
        tree["state"] = {"x_": EMPTY_BOOSTER, **tree["state"]}

    refuses(changed(saved["linear"], change), "without columns")


def test_columns_inside_do_not_replace_those_of_a_booster(refuses, saved) -> None:
    """A booster over column 0 of 1 must not pass because a part before it has more columns."""

    def change(tree: dict[str, Any]) -> None:
        wide = copy.deepcopy(tree["state"]["columns_"])
        wide["fields"]["names"]["items"] = [f"x{k}" for k in range(50)]
        wide["fields"]["categories"]["items"] = [None] * 50
        inner = {"~": "sklearn", "name": "FunctionTransformer", "state": {"columns_": wide}}
        items = list(tree["state"].items())
        place = [name for name, _ in items].index("boosters_")
        items.insert(place, ("x_", inner))
        tree["state"] = dict(items)
        for booster in tree["state"]["boosters_"]:
            booster["settings"]["feature_types"] = []

    splits = ("state", "boosters_", 0, "nodes", "split_indices")
    lied = cells_changed(saved["booster"], splits, put(0, 49))
    refuses(changed(lied, change), "unknown attribute|lacks its parameter|does not exist")
    refuses(lied, "column that does not exist")


# -- summaries ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "quantiles", [[0.0, 1.0], [10**400] * 101, [float("nan")] * 101, "abc", [0] * 102]
)
def test_summaries_have_a_finite_number_for_each_percent(quantiles: Any, refuses, saved) -> None:
    members = members_of(saved["linear"])
    summary = {
        "n_rows": 80,
        "n_positives": 9,
        "columns": [{"name": "x0", "kind": "number", "missing": 0.0, "quantiles": quantiles}],
    }
    refuses(sealed({**members, "summary.json": json.dumps(summary).encode()}), "summary")


# -- memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("std::bad_alloc")])
def test_lack_of_memory_is_not_damage(error: Exception, saved, tmp_path, monkeypatch) -> None:
    def fails(*_: Any) -> None:
        raise error

    path = tmp_path / "model.toprank"
    path.write_bytes(saved["linear"])
    monkeypatch.setattr(files, "probe", fails)
    with pytest.raises(MemoryError, match="not enough memory") as caught:
        toprank.load(path)
    assert str(path) in str(caught.value)
    assert "damaged" not in str(caught.value)


# -- the same model, the same bytes --------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*MODELS} - {"automatic"}))  # its trials tell their seconds
def test_the_same_fit_gives_the_same_file(name: str, tmp_path: Path) -> None:
    frame, y = labelled_rows()
    rows, contents = rows_of(name, frame), []
    for k in range(2):
        path = tmp_path / f"{k}.toprank"
        toprank.save(MODELS[name]().fit(rows, y), path, rows, y)
        contents.append(path.read_bytes())
    again = tmp_path / "again.toprank"
    toprank.save(toprank.load(path), again)
    assert contents[0] == contents[1] == again.read_bytes()


DIGESTS = """
import hashlib, sys, toprank
from model_cases import MODELS, labelled_rows, rows_of
frame, y = labelled_rows()
for name in sys.argv[2:]:
    rows = rows_of(name, frame)
    toprank.save(MODELS[name]().fit(rows, y), sys.argv[1], rows, y)
    with open(sys.argv[1], "rb") as file:
        print(name, hashlib.sha256(file.read()).hexdigest())
"""


def test_the_same_fit_in_another_process_gives_the_same_file(tmp_path: Path) -> None:
    """Sets and hashes have another order there."""
    said = []
    for seed in ("1", "2"):
        place = str(tmp_path / f"{seed}.toprank")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", DIGESTS, place, *sorted({*MODELS} - {"automatic"})],
            env={**os.environ, "PYTHONHASHSEED": seed}, cwd=Path(__file__).parent,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        said.append(done.stdout.splitlines())
    assert said[0] == said[1]
    assert len(said[0]) == len(MODELS) - 1


def test_an_encoder_is_saved_with_its_rows(tmp_path: Path) -> None:
    frame, y = labelled_rows()
    path = tmp_path / "encoder.toprank"
    toprank.save(TableEncoder().fit(frame), path, frame, y)
    again = toprank.load(path)
    assert again.training_summary_["n_positives"] is None
    np.testing.assert_array_equal(again.transform(frame), TableEncoder().fit_transform(frame))
