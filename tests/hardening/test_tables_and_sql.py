"""Tables and SQL: no leak by a name, no cell that runs, no query that does more than read what it names."""

from __future__ import annotations

import csv
import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

import toprank
from toprank.report import evaluate
from toprank.rule import DIALECTS, Literal, Rule, quote_identifier, sql_value
from toprank.sources import Source
from toprank.tables import TableError, csv_rows, read_table, write_table


def streamed(sql: str) -> pd.DataFrame:
    """The rows of a query that are read batch by batch, with a temporary folder beside them."""
    with Source.of(sql=sql).opened(folder=os.curdir) as stream:
        return pd.concat(list(stream.batches()))


QUERIED = [lambda sql: read_table(sql=sql), streamed]  # what runs a user's query

# -- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "tsv", "csv.gz", "parquet", "semicolons"])
def test_two_columns_of_one_name_are_refused(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(np.arange(12).reshape(4, 3), columns=["amount", "target", "target"])
    path = tmp_path / f"rows.{'csv' if kind == 'semicolons' else kind}"
    if kind == "parquet":
        arrays = [pa.array(frame.iloc[:, j]) for j in range(3)]
        pq.write_table(pa.Table.from_arrays(arrays, names=list(frame.columns)), path)
    else:
        separator = {"tsv": "\t", "semicolons": ";"}.get(kind, ",")
        frame.to_csv(path, index=False, sep=separator)
    for read in (read_table, lambda path: Source.of(path).schema()):  # at once, or batch by batch
        with pytest.raises(
            TableError, match=r"rows\..* has 2 columns named 'target' \(columns 2 and 3\)"
        ):
            read(path)


def test_estimators_and_queries_refuse_them_too() -> None:
    frame = pd.DataFrame(np.arange(12.0).reshape(4, 3), columns=["a", "b", "b"])
    with pytest.raises(ValueError, match=r"2 columns named 'b' \(columns 2 and 3\)"):
        toprank.TreeRank().fit(frame, [0, 1, 0, 1])
    for read in QUERIED:
        with pytest.raises(TableError, match="2 columns named 'x'"):
            read("SELECT 1 AS x, 2 AS x")


def test_files_of_relational_data_refuse_them_too(tmp_path: Path) -> None:
    cells = [pa.array(["r1", "r2"]), pa.array([0, 1]), pa.array([0, 1])]
    pq.write_table(pa.Table.from_arrays(cells, names=["row", "y", "y"]), tmp_path / "paid.parquet")
    examples = pd.DataFrame({"row": ["r1", "r2"]})
    with pytest.raises(
        ValueError, match=r"table 'paid' has 2 columns named 'y' \(columns 2 and 3\)"
    ):
        toprank.RelationalData({"paid": tmp_path / "paid.parquet"}, examples, target="positive")


def test_streamed_tables_without_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,y\n")
    with pytest.raises(TableError, match=r"rows.csv has no rows"):
        Source.of(tmp_path / "rows.csv").distinct("y")


def test_other_headers_pass(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    for text in ('"a,b",c\n1,2\n', "a;b\n1;2\n", "\ufeffa,b\n1,2\n", '"a\nb",b\n1,2\n', "a\n1\n"):
        path.write_text(text)
        assert len(read_table(path)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_named_pipe_is_read(tmp_path: Path) -> None:
    pipe = tmp_path / "rows.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("a,b\n1,2\n"))
    writer.start()
    assert read_table(pipe)["b"].tolist() == [2]
    writer.join()


# -- CSV ----------------------------------------------------------------------------------------------------

HOSTILE = ["=1+1", "b\n=1+1", "b\r=1+1", "b\r\n@x", 'say "=1"', "a,=b", "-1", "ann", "\n=x", "\t=y"]


def cells_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_no_row_of_a_csv_file_begins_inside_a_cell(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": HOSTILE, "n": np.arange(len(HOSTILE))})
    write_table(frame, tmp_path / "a.csv")
    rows = cells_of((tmp_path / "a.csv").read_bytes().decode())
    assert len(rows) == len(frame) + 1
    assert not any(row[0].startswith(("=", "@", "\n", "\t")) for row in rows)
    lines = csv_rows(frame)
    assert len(lines) == len(frame) + 1
    assert cells_of("\r\n".join(lines)) == rows


def test_the_download_of_the_page_is_written_in_the_same_way(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.permutation(len(HOSTILE) * 10) / 10.0
    ids = [f"{HOSTILE[k % len(HOSTILE)]}{k}" for k in range(len(scores))]
    found = evaluate(rng.random(len(scores)) < 0.3, scores, ids=ids, n_resamples=5, random_state=0)
    lines = found["alerts"]["csv"]
    text = "\r\n".join(lines) + "\r\n"  # as the page joins them
    rows = cells_of(text)
    assert len(rows) == len(lines)
    assert not any(row[1].startswith(("=", "@", "\n", "\t")) for row in rows)


# -- queries --------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "more.csv").write_text("a,b\n5,6\n")
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FORBIDDEN = [
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 1) TO 'out.csv'",
    "COPY (SELECT 1) TO 'out.csv'",
    "ATTACH 'other.db'",
    "EXPORT DATABASE 'all'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "CREATE TABLE t AS SELECT 1",
    "PRAGMA version",
    "",
    "-- nothing",
    "SELECT 1); COPY (SELECT 1) TO 'out.csv'; SELECT * FROM (SELECT 2",
]


@pytest.mark.parametrize("read", QUERIED)
@pytest.mark.parametrize("query", FORBIDDEN)
def test_a_query_is_one_select(query: str, read: Any, here: Path) -> None:
    before = sorted(os.listdir(here))
    with pytest.raises(TableError, match="must be one SELECT|cannot be read: .*syntax error"):
        read(query)
    assert sorted(os.listdir(here)) == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('sec' || 'ret.txt')",
        "SELECT * FROM glob('/' || '*')",
        "SELECT * FROM 'https://example.org/rows.csv'",
        "SELECT * FROM sqlite_scan('other' || '.db', 't')",
    ],
)
@pytest.mark.parametrize("read", QUERIED)
def test_a_query_reads_only_what_it_names(query: str, read: Any, here: Path) -> None:
    with pytest.raises(TableError, match="the query cannot be read"):
        read(query)


@pytest.mark.parametrize(
    ("query", "n_rows"),
    [
        ("SELECT * FROM 'rows.csv'", 2),
        ("SELECT * FROM '*.csv' WHERE a > 1;", 2),
        ('SELECT a FROM "rows.csv"', 2),
        ("FROM read_csv(['rows.csv', 'more.csv'])", 3),
        ("WITH t AS (SELECT * FROM read_csv('rows.csv')) SELECT a + b AS c FROM t", 2),
        ("SELECT * FROM 'FOLDER/rows.csv' UNION ALL SELECT * FROM 'FOLDER/more.csv'", 3),
        ("SELECT 'it''s' AS a", 1),
    ],
)
@pytest.mark.parametrize("read", QUERIED)
def test_files_that_a_query_names_are_read(query: str, n_rows: int, read: Any, here: Path) -> None:
    assert len(read(query.replace("FOLDER", str(here)))) == n_rows
    assert sorted(os.listdir(here)) == ["more.csv", "rows.csv", "secret.txt"]


# -- SQL of rules ------------------------------------------------------------------------------------------

TEXTS = [
    "\\",
    "\\'",
    "a\\' OR 1=1 --",
    "it's",
    "'",
    "''",
    "\\\\'",
    "a\nb",
    '"',
    "`",
    "\\n",
    "é",
    "; DROP TABLE x",
]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("text", TEXTS)
def test_text_stays_text_in_every_dialect(dialect: str, text: str) -> None:
    """Parsed by another library's parser of that dialect, value and column are what they were."""
    rule = Rule(
        (Literal('na`m"e', "=", text), Literal("x", "in", (text, "b")), Literal("n", ">", 0.5))
    )
    tree = sqlglot.parse_one(f"SELECT 1 FROM t WHERE {rule.sql(dialect=dialect)}", read=dialect)
    values = [node.this for node in tree.find_all(exp.Literal) if node.is_string]
    assert sorted(values) == sorted([text, text, "b"])
    assert {node.name for node in tree.find_all(exp.Column)} == {'na`m"e', "x", "n"}


def test_without_a_dialect_a_backslash_is_refused() -> None:
    rule = Rule((Literal("x", "=", "a\\' OR 1=1 --"),))
    with pytest.raises(ValueError, match=r"backslash.*dialect=.*mysql"):
        rule.sql()
    assert Rule((Literal("x", "=", "it's"),)).sql() == "\"x\" = 'it''s'"
    with pytest.raises(ValueError, match="unknown dialect 'dbase'"):
        rule.sql(dialect="dbase")
    with pytest.raises(ValueError, match="NUL"):
        sql_value("a\0b", "postgres")
    with pytest.raises(ValueError, match="MySQL has no number"):
        sql_value(float("inf"), "mysql")
    assert quote_identifier("a`b", "bigquery") == "`a\\`b`"


def test_a_whole_model_in_a_dialect() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.4).astype(int)
    names = np.array(["a\\'b", "c\\"])
    frame = pd.DataFrame(
        {"k": names[np.where(rng.random(200) < 0.8, y, 1 - y)], "n": rng.normal(size=200)}
    )
    model = toprank.RankBoost(n_estimators=4).fit(frame, y)
    for dialect in DIALECTS:
        tree: Any = sqlglot.parse_one(model.to_sql("rows", dialect=dialect), read=dialect)
        texts = {node.this for node in tree.find_all(exp.Literal) if node.is_string}
        assert texts <= set(names)
        assert texts
    with pytest.raises(ValueError, match="dialect="):
        model.to_sql()
