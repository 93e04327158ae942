"""Hostile names, cells and model files are harmless from one end to the other."""

from __future__ import annotations

import io
import json
import os
import pickle
import random
import re
from itertools import takewhile
from math import prod
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
from cli_cases import one_line, rows, run, written

from toprank.persistence.files import digests, read_archive, write_archive

SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
FORMULA = "=cmd|'/C calc'!A0"
SQL = 'x"; DROP TABLE rows; --'
TERMINAL = "\x1b[31mred\x07"
MARKUP = "[bold]amount[/bold]"
NAMES = {"amount": SCRIPT, "ratio": SQL, "country": FORMULA}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A table whose names and cells are out to do harm, and a model trained on it."""
    place = tmp_path_factory.mktemp("hostile")
    table = rows(seed=5).rename(columns=NAMES)
    table[FORMULA] = table[FORMULA].map({"DE": IMAGE, "NL": "@SUM(A1)"})
    table["payment"] = [f"={name}" for name in table["payment"]]
    rng = np.random.default_rng(0)
    table[TERMINAL] = rng.normal(size=len(table)) + table["is_fraud"]
    table[MARKUP] = np.where(
        table["is_fraud"] + rng.normal(size=len(table)) > 0.5, SCRIPT, TERMINAL
    )
    table[IMAGE] = rng.normal(size=len(table))
    written(table, place / "rows.parquet")
    fitted = run("fit", place / "rows.parquet", "--target", "is_fraud", "--id", "payment", "--drop",
                 "day", "--model", "rankboost", "--folds", 2, "--out", place / "m.toprank")  # fmt: skip
    assert fitted.exit_code == 0, fitted.stderr
    return place


def is_quiet(text):
    return all(character.isprintable() or character == "\n" for character in text)


def test_alerts_hold_no_formula(hostile, tmp_path):
    out = tmp_path / "alerts.csv"
    result = run("score", hostile / "m.toprank", hostile / "rows.parquet", "--budget", 50, "--id",
                 "payment", "--per", FORMULA, "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert is_quiet(result.stdout)
    assert is_quiet(result.stderr)
    alerts = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert alerts["id"].str.startswith("'=P").all()
    assert set(alerts["per"]) == {IMAGE, "'@SUM(A1)"}
    for column in alerts.columns:
        cells = alerts[column]
        risky = cells.str.match(r"[=+\-@\t\r\n]") & ~cells.str.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?")
        assert not risky.any()


def test_the_page_runs_nothing_of_the_data(hostile, tmp_path):
    out = tmp_path / "page.html"
    result = run("report", hostile / "m.toprank", hostile / "rows.parquet", "--target", "is_fraud",
                 "--id", "payment", "--resamples", 50, "--title", SCRIPT, "--currency", IMAGE,
                 "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    page = out.read_text()
    for bad in (SCRIPT, "<img", "onerror=alert(2)>"):
        assert bad not in page
    assert "alert(1)" in page  # it is there, as text


def test_explanations_do_not_steer_the_terminal(hostile):
    described = run("explain", hostile / "m.toprank")
    explained = run("explain", hostile / "m.toprank", hostile / "rows.parquet", "--id", "payment")
    for result in (described, explained):
        assert result.exit_code == 0, result.stderr
        assert is_quiet(result.stdout)
    assert MARKUP in described.stdout  # shown, not obeyed
    as_json = run("explain", hostile / "m.toprank", "--json").stdout
    assert as_json.isascii()
    assert TERMINAL in {column["name"] for column in json.loads(as_json)["columns"]}


def test_errors_do_not_steer_the_terminal(hostile, tmp_path):
    path = written(rows().assign(is_fraud=TERMINAL), tmp_path / "rows.csv")
    line = one_line(run("fit", path, "--target", "is_fraud", "--drop", "payment,day", "--out",
                        tmp_path / "m.toprank"))  # fmt: skip
    assert is_quiet(line)
    line = one_line(run("score", hostile / "m.toprank", path, "--budget", 3))
    assert is_quiet(line)
    assert "DROP TABLE" in line  # the missing column, by its name


def test_a_column_named_like_sql_is_a_column(hostile):
    result = run("evaluate", hostile / "rows.parquet", "--label", "is_fraud", "--score", IMAGE,
                 "--json", "--resamples", 0)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    refused = one_line(run("evaluate", hostile / "rows.parquet", "--label", SQL, "--score", "none"))
    assert "no column 'none'" in refused


# -- model files ----------------------------------------------------------------------------------


class Bomb:
    """Pickled, it would leave a file behind when it is opened."""

    def __reduce__(self):
        return os.system, ("touch pwned",)


def members_of(path):
    return read_archive(io.BytesIO(path.read_bytes()))


def sealed(members):
    """A file of these members whose header is right about their digests."""
    header = json.loads(members["header.json"])
    header["digests"] = digests(members)
    buffer = io.BytesIO()
    write_archive({**members, "header.json": json.dumps(header).encode()}, buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    """The file of a small boosted model."""
    import toprank

    table = rows()[["amount", "ratio"]]
    model = toprank.GradientBoostingRanker(n_estimators=3, n_jobs=1).fit(table, rows()["is_fraud"])
    path = tmp_path_factory.mktemp("boosted") / "m.toprank"
    toprank.save(model, path, table, rows()["is_fraud"])
    return path


def arrays_in(node):
    """All arrays of a model in the order in which they are stored."""
    if isinstance(node, dict) and node.get("~") == "array":
        return [node]
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [array for part in parts for array in arrays_in(part)]


def out_of_range(key, value):
    """Change the first cell of an array of the first booster."""

    def spoil(members):
        model = json.loads(members["model.json"])
        target = model["state"]["boosters_"][0]["nodes"][key]
        before = takewhile(lambda array: array is not target, arrays_in(model))
        start = sum(prod(array["shape"]) for array in before if array["type"] == target["type"])
        name = f"arrays/{target['type']}.bin"
        cells = np.frombuffer(members[name], target["type"]).copy()
        cells[start] = value
        return {**members, name: cells.tobytes()}

    return spoil


def huge_array(members):
    """An array that says it has 10**12 cells."""
    shape = re.compile(rb'("type": "[a-zA-Z0-9]+", "shape": )\[[0-9]+\]')
    changed, n_changed = shape.subn(rb"\1[1000000000000]", members["model.json"])
    assert n_changed > 0
    return {**members, "model.json": changed}


LIES = {
    "child": out_of_range("left_children", 10_000),
    "cycle": out_of_range("left_children", 0),
    "feature": out_of_range("split_indices", 999),
    "huge": huge_array,
    "pickle": lambda members: {**members, "model.json": pickle.dumps(Bomb())},
}


@pytest.mark.parametrize("name", LIES)
def test_well_formed_lies(boosted, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.toprank").write_bytes(sealed(LIES[name](members_of(boosted))))
    written(rows(50), tmp_path / "rows.csv")
    result = run("score", "m.toprank", "rows.csv", "--budget", 3, "--out", "a.csv")
    assert "m.toprank" in one_line(result)
    assert sorted(os.listdir(tmp_path)) == ["m.toprank", "rows.csv"]


def test_plain_pickles_and_altered_archives(boosted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(rows(50), tmp_path / "rows.csv")
    whole = boosted.read_bytes()
    with_pickle = io.BytesIO(whole)
    with ZipFile(with_pickle, "a") as archive:
        archive.writestr("state.pkl", pickle.dumps(Bomb()))
    for data in (pickle.dumps(Bomb()), with_pickle.getvalue(), whole[:-20], whole + b"x", b"PK"):
        (tmp_path / "m.toprank").write_bytes(data)
        line = one_line(run("score", "m.toprank", "rows.csv", "--budget", 3))
        assert "m.toprank" in line
        assert sorted(os.listdir(tmp_path)) == ["m.toprank", "rows.csv"]


def test_random_damage_is_refused_or_harmless(boosted, tmp_path, monkeypatch):
    """Bytes changed at random anywhere: one line and exit code 2, every time."""
    monkeypatch.chdir(tmp_path)
    written(rows(20), tmp_path / "rows.csv")
    whole, dice = boosted.read_bytes(), random.Random(0)
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(dice.choice((1, 1, 3))):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        (tmp_path / "m.toprank").write_bytes(damaged)
        result = run("explain", "m.toprank")
        if result.exit_code != 0:
            assert "m.toprank" in one_line(result)
        else:  # a bit that says nothing, such as the date of a member
            assert "GradientBoostingRanker" in result.stdout
