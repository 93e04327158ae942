"""Reading and writing tables."""

from __future__ import annotations

import gzip
import io
import os
import stat

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank import tables
from toprank.rule import quote_identifier
from toprank.tables import (
    TableError,
    atomic_path,
    numbers,
    read_table,
    write_table,
)

CONNECTION = tables.connect()
FRAME = pd.DataFrame({"y": [1, 0, 1], "score": [0.5, 0.25, -1.0], "name": ["a", "b,c", 'd"e']})


@pytest.mark.parametrize("extension", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet"])
def test_what_is_written_is_read(tmp_path, extension):
    path = tmp_path / f"table.{extension}"
    write_table(FRAME, path)
    pd.testing.assert_frame_equal(read_table(path), FRAME)
    selected = read_table(path, ["score", "y"])
    pd.testing.assert_frame_equal(selected, FRAME[["score", "y"]])


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_other_tables_are_written_too(tmp_path, convert):
    write_table(convert(FRAME), tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.parquet"), FRAME)


def test_patterns_read_their_files_in_order(tmp_path):
    for day in (2, 1):
        write_table(FRAME.assign(day=day), tmp_path / f"day{day}.csv")
    assert read_table(tmp_path / "day*.csv")["day"].tolist() == [1, 1, 1, 2, 2, 2]
    with pytest.raises(TableError, match="no file matches"):
        read_table(tmp_path / "week*.csv")


def test_a_name_with_brackets_is_a_name(tmp_path):
    write_table(FRAME, tmp_path / "table[1].csv")
    write_table(FRAME.head(1), tmp_path / "table1.csv")
    assert len(read_table(tmp_path / "table[1].csv")) == 3


def test_queries_are_explicit_and_see_no_python_variables(tmp_path):
    write_table(FRAME, tmp_path / "table.csv")
    file = str(tmp_path / "table.csv").replace("'", "''")
    query = f"SELECT sum(score) AS total FROM '{file}' -- all rows\n;"
    assert read_table(sql=query)["total"].tolist() == [-0.25]
    secret = FRAME  # noqa: F841
    with pytest.raises(TableError, match="secret"):
        read_table(sql="SELECT * FROM secret")
    with pytest.raises(TypeError, match="either"):
        read_table("table.csv", sql="SELECT 1")


def test_extensions_are_neither_installed_nor_loaded():
    settings = (
        tables.connect()
        .cursor()
        .execute(
            "SELECT name, value FROM duckdb_settings() WHERE name IN "
            "('autoinstall_known_extensions', 'autoload_known_extensions', "
            "'python_enable_replacements')"
        )
    )
    assert {value for _, value in settings.fetchall()} == {"false"}


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(monkeypatch, packed):
    content = b"y,score\n1,0.5\n0,0.1\n"
    content = gzip.compress(content) if packed else content
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert read_table("-", ["score"])["score"].tolist() == [0.5, 0.1]


def test_parquet_on_standard_input(monkeypatch, tmp_path):
    write_table(FRAME, tmp_path / "table.parquet")
    content = (tmp_path / "table.parquet").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    pd.testing.assert_frame_equal(read_table("-"), FRAME)


def test_missing_cells_and_hash_signs(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("y,score,note\n1,NA,#1\n,nan,\n0,0.5,x\n")
    table = read_table(path)
    assert np.isnan(numbers(table, "score")).tolist() == [True, True, False]
    assert np.isnan(numbers(table, "y")).tolist() == [False, True, False]
    assert table["note"].tolist()[0] == "#1"


# -- files that cannot be read --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty"),
        ("header.csv", b"y,score\n", "has no rows"),
        ("latin.csv", "y,name\n1,caf\xe9\n0,x\n".encode("latin-1"), "not UTF-8"),
        ("cut.parquet", b"PAR1\x00\x01", "cannot be read"),
        ("text.parquet", b"y,score\n1,2\n" * 10, "cannot be read"),
        (
            "cut.csv.gz",
            gzip.compress(b"y,score\n" + b"1,2\n" * 5000, mtime=0)[:40],
            "cannot be read",
        ),
        ("ragged.csv", b"y,score\n1,2\n1,2,3,4\n5\n", "number of cells"),
        ("ragged2.csv", b"y,score\n" + b"1,2\n" * 500 + b"1,2,3\n", "cannot be read"),
        ("table.xlsx", b"anything", "unknown extension"),
        ("table.parquet.gz", b"anything", "unknown extension"),
    ],
)
def test_bad_files_are_one_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    for columns in (None, ["y"]):
        with pytest.raises(TableError, match=message) as caught:
            read_table(path, columns)
        assert "\n" not in str(caught.value)
        assert name in str(caught.value)


def test_a_truncated_parquet_file(tmp_path):
    whole = tmp_path / "whole.parquet"
    write_table(pd.DataFrame({"x": np.arange(1000)}), whole)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole.read_bytes()[:-100])
    with pytest.raises(TableError, match=r"cut\.parquet cannot be read"):
        read_table(cut)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(TableError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(TableError, match=r"query.*syntax"):
        read_table(sql="SELEC 1")


def test_missing_columns_come_with_near_ones(tmp_path):
    path = tmp_path / "table.csv"
    write_table(FRAME, path)
    with pytest.raises(TableError, match="no column 'scores'; did you mean 'score'"):
        read_table(path, ["y", "scores"])
    with pytest.raises(TableError, match="did you mean 'score'"):
        read_table(path, ["SCORE"])
    with pytest.raises(TableError, match="it has 'y', 'score', 'name'"):
        read_table(path, ["zzz"])


def test_several_formats_and_several_columns_are_not_mixed(tmp_path):
    write_table(FRAME, tmp_path / "a.csv")
    write_table(FRAME, tmp_path / "a.tsv")
    with pytest.raises(TableError, match="several formats"):
        read_table(tmp_path / "a.*")


def test_text_among_numbers_is_named(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("score\n1\n2.5\nhigh\n")
    with pytest.raises(TableError, match=r"'score' mixes.*row 3 holds 'high'"):
        numbers(read_table(path), "score")


# -- writing --------------------------------------------------------------------------------------


def test_formulas_are_escaped_and_numbers_left_alone(tmp_path):
    cells = ["=1+1", "+A1", "-A1", "@x", "\tx", "\rx", "-5", "+33.1", "safe", None]
    frame = pd.DataFrame({"=head": cells, "n": -np.arange(10.0)})
    frame["kind"] = pd.Categorical(["=a", "b"] * 5)
    path = tmp_path / "table.csv"
    write_table(frame, path)
    lines = pd.read_csv(path, keep_default_na=False, dtype=str)
    assert lines.columns.tolist() == ["'=head", "n", "kind"]
    assert lines["'=head"].tolist()[:4] == ["'=1+1", "'+A1", "'-A1", "'@x"]
    assert lines["'=head"].tolist()[6:] == ["-5", "+33.1", "safe", ""]
    assert lines["n"].tolist()[1] == "-1.0"
    assert lines["kind"].tolist()[:2] == ["'=a", "b"]
    assert frame["=head"][0] == "=1+1"  # the caller's table is untouched


@given(st.text(min_size=1))
def test_no_text_leaves_with_a_risky_first_character(text):
    safe = tables._escape_cell(text)
    assert safe in (text, "'" + text)
    if safe[0] in "=+-@\t\r\n":
        float(safe)  # only plain numbers keep their sign


@given(st.text(min_size=1, max_size=20).filter(lambda name: "\x00" not in name))
def test_any_name_can_be_quoted(name):
    answer = CONNECTION.cursor().execute(f"SELECT 1 AS {quote_identifier(name)}")
    assert answer.description[0][0] == name


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_an_unfinished_file_leaves_nothing(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("before")

    def begin():
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        begin()
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_finished_file_takes_the_place_of_the_old_one(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("before")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    write_table(FRAME[["y"]], link)
    assert link.is_symlink()
    assert path.read_text() == "y\n1\n0\n1\n"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(TableError, match="does not exist"):
        write_table(FRAME, tmp_path / "none" / "table.csv")
    with pytest.raises(TableError, match="not a regular file"):
        tables.write_text("x", os.devnull)
    with pytest.raises(TableError, match="unknown extension"):
        write_table(FRAME, tmp_path / "table.xls")
    assert os.listdir(tmp_path) == []
