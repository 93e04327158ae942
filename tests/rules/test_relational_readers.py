"""Folders of Parquet files and database files as relational data, and files that are not."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from toprank import Mode, RelationalData, RelationalPRankBoost
from toprank.datasets import make_relational

FRIENDS = pd.DataFrame({"a": ["ann", "bob", "ann"], "b": ["bob", "carl", "dan"]})
SMOKES = pd.DataFrame({"person": ["bob"]})
PEOPLE = pd.DataFrame({"person": ["ann", "bob"], "ill": [1, 0], "fold": [1, 2]})


def facts(data: RelationalData) -> dict[str, list[list[int]]]:
    return {p.name: data.background.rows(j).tolist() for j, p in enumerate(data.schema.predicates)}


def plain_folder(folder: Path) -> Path:
    """Two tables, one of them in parts, and the examples; no schema.json."""
    (folder / "friends" / "year=2020").mkdir(parents=True)
    FRIENDS[:2].to_parquet(folder / "friends" / "first.parquet")
    FRIENDS[2:].to_parquet(folder / "friends" / "second.parquet")
    (folder / "friends" / "year=2020").rmdir()
    SMOKES.to_parquet(folder / "smokes.parquet")
    PEOPLE.to_parquet(folder / "people.parquet")
    (folder / "notes.txt").write_text("not a table")
    return folder


def test_a_folder_without_a_schema_is_read_with_types_and_modes_inferred(tmp_path: Path) -> None:
    folder = plain_folder(tmp_path / "it's [a] folder; --")
    arguments = {"cancer": ["person"]}
    data = RelationalData.from_folder(
        folder, examples="people", label="ill", target="cancer", arguments=arguments
    )
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0]
    assert data.extra["fold"].tolist() == [1, 2]
    in_memory = RelationalData(
        {"friends": FRIENDS, "smokes": SMOKES}, PEOPLE[["person"]], target="cancer"
    )
    assert data.schema == in_memory.schema
    assert facts(data) == facts(in_memory)
    part = RelationalData.from_folder(
        folder, examples="people", label="ill", arguments={"target": ["person"]}, where={"fold": 2}
    )
    assert part.examples["person"].tolist() == ["bob"]
    as_tables = RelationalData(
        {"friends": folder / "friends", "smokes": str(folder / "smokes.parquet")},
        PEOPLE[["person"]],
        target="cancer",
    )
    assert facts(as_tables) == facts(in_memory)


def test_declarations_hold_in_folders_without_a_schema_only(tmp_path: Path) -> None:
    folder = plain_folder(tmp_path / "data")
    declared = {
        "examples": "people",
        "arguments": {"target": ["person"]},
        "types": {"target": ["who"], "friends": ["who", "who"], "smokes": ["who"]},
        "modes": [Mode("friends", ("+", "-")), Mode("smokes", ("+",), recall=2)],
    }
    data = RelationalData.from_folder(folder, **declared)
    assert [str(mode) for mode in data.schema.modes] == ["friends(+,-)", "smokes(+)"]
    assert data.labels is None
    schema = {
        "target_predicate": "cancer",
        "examples": {"file": "people.parquet", "arguments": ["person"]},
        "predicates": {"smokes": {"file": "smokes.parquet", "arguments": ["person"]}},
    }
    (folder / "schema.json").write_text(json.dumps(schema))
    assert RelationalData.from_folder(folder).schema.target.name == "cancer"
    with pytest.raises(ValueError, match=r"has a schema\.json"):
        RelationalData.from_folder(folder, **declared)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({}, r"no schema\.json .* nor a file 'examples\.parquet'.*'friends', 'people', 'smokes'"),
        ({"examples": "people", "where": {"flod": 1}}, "no file has a column 'flod'"),
        ({"examples": "people", "where": {"fold": []}}, "needs one value or more"),
        ({"examples": "people", "where": {"fold": None}}, "needs one value or more"),
        (
            {"examples": "people", "arguments": {"target": ["who"]}},
            "the table of examples has no column 'who'",
        ),
    ],
)
def test_what_a_folder_lacks_is_named(tmp_path: Path, keywords: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RelationalData.from_folder(plain_folder(tmp_path / "data"), **keywords)


def test_files_that_are_no_tables_get_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.parquet"
    broken.write_text("hello")
    people = PEOPLE[["person"]]
    with pytest.raises(ValueError, match=r"table of 'p' cannot be read: [^\n]*\Z"):
        RelationalData({"p": broken}, people)
    with pytest.raises(ValueError, match="file of the examples.* cannot be read"):
        RelationalData.from_folder(tmp_path, examples="broken")
    with pytest.raises(ValueError, match=r"database file .* cannot be read: [^\n]*\Z"):
        RelationalData.from_database(broken, "people")
    with pytest.raises(ValueError, match="no folder"):
        RelationalData.from_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no Parquet file in"):
        RelationalData({"p": tmp_path / "empty"}, people)


def test_an_argument_may_be_called_as_the_labels_are(tmp_path: Path) -> None:
    pd.DataFrame({"target": ["ann", "bob"]}).to_parquet(tmp_path / "examples.parquet")
    SMOKES.to_parquet(tmp_path / "smokes.parquet")
    schema = {
        "target_predicate": "ill",
        "examples": {"file": "examples.parquet", "arguments": ["target"]},
        "predicates": {"smokes": {"file": "smokes.parquet", "arguments": ["person"]}},
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    data = RelationalData.from_folder(tmp_path)
    assert data.labels is None
    assert data.examples["target"].tolist() == ["ann", "bob"]


def test_large_keys_keep_every_digit_beside_missing_ones(tmp_path: Path) -> None:
    keys = [2**60 + 1, 2**60 + 2, None]
    table = pa.table({"id": pa.array(keys, pa.int64())})
    path = tmp_path / "keys.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", table)
        connection.execute("CREATE TABLE p AS SELECT * FROM rows")
        connection.execute("CREATE TABLE e AS SELECT * FROM rows")
    data = RelationalData.from_database(path, "e", types={"target": ["id"], "p": ["id"]})
    assert data.codes().ravel().tolist() == [0, 1, -1]


@pytest.mark.parametrize("names", [["a", "A"], ["a", "a"], ["a", ""]])
def test_column_names_that_sql_cannot_tell_apart_are_refused(names: list[str]) -> None:
    table = pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=names)
    with pytest.raises(ValueError, match=r"table 'p' has (columns whose names|a column without)"):
        RelationalData({"p": table}, SMOKES)
    with pytest.raises(ValueError, match="examples has"):
        RelationalData({"p": SMOKES}, table)


# -- databases -------------------------------------------------------------------------------------

SHOP = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, city VARCHAR);
CREATE TABLE "order" (number INTEGER PRIMARY KEY, buyer INTEGER REFERENCES customer (id));
CREATE TABLE line ("of order" INTEGER REFERENCES "order" (number), price INTEGER);
CREATE TABLE late (customer_number INTEGER REFERENCES customer (id));
CREATE SCHEMA other;
CREATE TABLE other.hidden (id INTEGER);
INSERT INTO customer SELECT range, 'c' || range % 3 FROM range(30);
INSERT INTO "order" SELECT range + 100, range % 30 FROM range(60);
INSERT INTO line SELECT 100 + range % 60, CASE WHEN range % 60 < 6 THEN 5 ELSE range % 4 END FROM range(90);
INSERT INTO late SELECT range FROM range(30);
"""


def test_foreign_keys_tie_columns_of_other_names(tmp_path: Path) -> None:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SHOP)
    data = RelationalData.from_database(path, "late")
    types = {p.name: p.types for p in data.schema.predicates}
    assert set(types) == {"customer", "order", "line"}  # not those of another schema
    assert data.schema.target.types == ("customer.id",)
    assert types["customer"][0] == types["order"][1] == "customer.id"
    assert types["line"][0] == types["order"][0] == "order.number"
    y = (np.arange(30) < 6).astype(int)
    model = RelationalPRankBoost(1, max_depth=3, random_state=0).fit(data, y)
    assert str(model.rounds_[0].rules[0]) == "target(A) :- order(B,A), line(B,5)"
    declared = RelationalData.from_database(
        path, "late", types={"customer": ["person", None]}, tables=["customer", "order"]
    )
    assert declared.schema.target.types == ("person",)
    assert {p.name: p.types for p in declared.schema.predicates}["order"][1] == "person"
    with pytest.raises(ValueError, match="2 columns"):
        RelationalData.from_database(path, "late", types={"customer": ["person"]})


def test_labels_and_folds_of_generated_data_come_along() -> None:
    dataset = make_relational(500, random_state=0)
    data = RelationalData.from_dataset(dataset)
    np.testing.assert_array_equal(data.labels, dataset.y)
    pd.testing.assert_frame_equal(data.extra, dataset.extra.reset_index(drop=True))
