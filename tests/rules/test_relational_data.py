"""RelationalData: its constructors, types and modes, hostile names, bad input."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from relational_worlds import friends

from toprank import Mode, RelationalData
from toprank.rules.relational.background import UNSEEN, common_sql_type
from toprank.rules.relational.schema import Predicate, infer_modes, infer_types, read_schema

FRIENDS = pd.DataFrame({"a": ["ann", "bob", "ann"], "b": ["bob", "carl", "bob"]})
SMOKES = pd.DataFrame({"person": ["bob"]})
PEOPLE = pd.DataFrame({"person": ["ann", "bob", "a stranger"]})
TYPES = {"ill": ["person"], "friends": ["person", "person"], "smokes": ["person"]}
MODES = [Mode("friends", ("+person", "-person")), Mode("smokes", ("+",))]


def build(tables=None, examples=PEOPLE, **keywords) -> RelationalData:
    tables = {"friends": FRIENDS, "smokes": SMOKES} if tables is None else tables
    keywords = {"target": "ill", "types": TYPES, "modes": MODES, **keywords}
    return RelationalData(tables, examples, **keywords)


def facts(data: RelationalData) -> dict[str, list[list[int]]]:
    return {p.name: data.background.rows(j).tolist() for j, p in enumerate(data.schema.predicates)}


# -- constructors ----------------------------------------------------------------------------------


def test_tables_of_all_libraries_give_the_same_facts(tmp_path: Path) -> None:
    expected = build()
    makes = {
        "polars": pl.from_pandas,
        "lazy polars": lambda frame: pl.from_pandas(frame).lazy(),
        "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
        "categories": lambda frame: frame.astype("category"),
        "object": lambda frame: frame.astype(object),
    }
    for name, make in makes.items():
        data = build({"friends": make(FRIENDS), "smokes": make(SMOKES)}, make(PEOPLE))
        assert facts(data) == facts(expected), name
        np.testing.assert_array_equal(data.codes(), expected.codes())
    for name, frame in {"friends": FRIENDS, "smokes": SMOKES}.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
    paths = {name: tmp_path / f"{name}.parquet" for name in ("friends", "smokes")}
    assert facts(build(paths)) == facts(expected)


def test_facts_are_distinct_and_codes_follow_sorted_values() -> None:
    data = build()
    assert facts(data) == {"friends": [[0, 1], [1, 2]], "smokes": [[1]]}
    assert data.codes().tolist() == [[0], [1], [-2]]
    assert data.background.code("person", "carl") == 2
    assert data.background.code("person", "nobody") == UNSEEN
    assert data.background.code("no such type", "x") == UNSEEN
    assert [data.background.value("person", code) for code in (0, 2)] == ["ann", "carl"]


def test_a_database_file_is_attached_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "facts; of 'people'.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, frame in {"friends": FRIENDS, "smokes": SMOKES, "who else": PEOPLE}.items():
            connection.register("frame", frame)
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM frame')
    before = path.read_bytes()
    data = RelationalData.from_database(path, "who else", target="ill", types=TYPES, modes=MODES)
    assert facts(data) == facts(build())
    assert data.codes().tolist() == build().codes().tolist()
    only = RelationalData.from_database(path, "who else", target="ill", tables=["smokes"])
    assert [p.name for p in only.schema.predicates] == ["smokes"]
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="no table enemies"):
        RelationalData.from_database(path, "who else", tables=["enemies"])
    with pytest.raises(ValueError, match="no database file"):
        RelationalData.from_database(tmp_path / "nothing.duckdb", "x")


def write_folder(folder: Path, *, drop: str | None = None) -> Path:
    folder.mkdir()
    FRIENDS.assign(fold=[1, 2, 2]).to_parquet(folder / "friends.parquet")
    SMOKES.to_parquet(folder / "smokes.parquet")
    PEOPLE.assign(target=[1, 0, 0], fold=[1, 2, 2]).to_parquet(folder / "examples.parquet")
    schema = {
        "target_predicate": "ill",
        "examples": {
            "file": "examples.parquet",
            "arguments": ["person"],
            "argument_types": ["person"],
        },
        "predicates": {
            "friends": {
                "file": "friends.parquet",
                "arguments": ["a", "b"],
                "argument_types": ["person", "person"],
                "modes": ["friends(+person,-person)", "friends(+person)"],
            },
            "smokes": {"file": "smokes.parquet", "arguments": ["person"], "argument_types": None},
        },
    }
    schema.pop(drop or "", None)
    (folder / "schema.json").write_text(json.dumps(schema))
    return folder


def test_a_folder_gives_labels_and_folds_and_can_be_read_in_part(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data")
    data = RelationalData.from_folder(folder)
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0, 0]
    assert data.extra["fold"].tolist() == [1, 2, 2]
    assert [str(mode) for mode in data.schema.modes] == [
        "friends(+person,-person)",
        "smokes(+person)",
    ]
    part = RelationalData.from_folder(folder, where={"fold": 1})
    assert len(part) == 1
    assert facts(part)["friends"] == [[0, 1]]
    assert len(RelationalData.from_folder(folder, where={"fold": np.array([1, 2])})) == 3


@pytest.mark.parametrize("missing", ["target_predicate", "predicates", "examples"])
def test_a_folder_that_is_not_whole_gets_a_clear_error(tmp_path: Path, missing: str) -> None:
    with pytest.raises(ValueError, match=r"no schema\.json"):
        RelationalData.from_folder(tmp_path)
    with pytest.raises((ValueError, KeyError), match=missing):
        RelationalData.from_folder(write_folder(tmp_path / "data", drop=missing))
    whole = write_folder(tmp_path / "other")
    (whole / "smokes.parquet").unlink()
    with pytest.raises(ValueError, match=r"smokes\.parquet"):
        RelationalData.from_folder(whole)


@pytest.mark.data
def test_every_real_folder_loads_with_all_its_rows(data_dir: Path) -> None:
    folders = sorted(path.parent for path in (data_dir / "relational").glob("*/schema.json"))
    assert folders
    for folder in folders:
        data = RelationalData.from_folder(folder)
        schema = json.loads((folder / "schema.json").read_text())
        assert len(data) == schema["examples"]["rows"], folder.name
        assert data.labels is not None
        assert int(data.labels.sum()) == schema["examples"]["positives"]
        assert (data.codes() >= 0).mean() > 0.9
        modes = {mode.predicate for mode in data.schema.modes}
        assert modes == set(schema["predicates"])


# -- as an array -----------------------------------------------------------------------------------


def test_parts_share_the_background() -> None:
    data, _ = friends()
    part = data[np.arange(5, 10)]
    assert part.background is data.background
    np.testing.assert_array_equal(part.codes(), data.codes()[5:10])
    np.testing.assert_array_equal(data[2:4].codes(), data.codes()[2:4])
    mask = np.zeros(len(data), dtype=bool)
    mask[[3, 5]] = True
    assert data[mask].examples["person"].tolist() == ["p003", "p005"]
    assert data.shape == (60, 1)
    with pytest.raises(IndexError, match="several"):
        data[3]


def test_new_examples_on_the_same_background() -> None:
    data = build()
    new = data.with_examples(pd.DataFrame({"other": [1, 2], "person": ["carl", "nobody"]}))
    assert new.codes().tolist() == [[2], [-2]]
    assert new.background is data.background
    with pytest.raises(ValueError, match="table of examples has no column 'person'"):
        data.with_examples(pd.DataFrame({"someone": ["ann"]}))


def test_pickles_without_its_connection() -> None:
    data = build()
    expected = facts(data)
    copy = pickle.loads(pickle.dumps(data))
    assert facts(copy) == expected
    assert copy.schema == data.schema
    np.testing.assert_array_equal(copy.codes(), data.codes())


# -- types and modes -------------------------------------------------------------------------------


def test_columns_join_the_type_that_has_their_values() -> None:
    tables = {
        "order": pd.DataFrame({"order_id": [7, 8, 9], "customer": ["a", "b", "a"], "n": [1, 2, 1]}),
        "lives": pd.DataFrame({"who": ["a", "b", "c", "d"], "city": ["x", "y", "x", "y"]}),
        "line": pd.DataFrame({"order_id": [7, 7, 9], "product": ["p", "q", "p"], "n": [7, 8, 9]}),
    }
    data = RelationalData(tables, pd.DataFrame({"customer": ["a", "b"]}))
    types = {p.name: p.types for p in data.schema.predicates}
    who = types["lives"][0]
    assert data.schema.target.types == (who,)
    assert types["order"][1] == who
    assert types["line"][0] == types["order"][0] == "order_id"
    # numbers that only happen to be equal stay apart
    assert types["line"][2] != types["order"][0]
    assert len({types["lives"][1], types["line"][1], who}) == 3


def test_inferred_modes_use_properties_as_constants_and_never_name_examples() -> None:
    data, _ = friends()
    modes = [str(mode) for mode in data.schema.modes]
    assert modes == [
        "friends(+person,-person)",
        "friends(-person,+person)",
        "smokes(+person)",
        "likes(+person,-colour)",
        "likes(+person,#colour)",
        "likes(-person,+colour)",
    ]
    wide = Predicate("p", ("a", "b", "c"), ("x", "y", "z"))
    found = infer_modes(wide, {"a": 10, "b": 2, "c": 3}, 10)
    assert "p(+x,#y,-z)" in map(str, found)
    assert "p(+x,-y,#z)" in map(str, found)
    assert all(str(mode).count("#") <= 1 for mode in found)


def test_schema_files_may_lack_types_or_have_lists_as_one_argument() -> None:
    schema = {
        "target_predicate": "t",
        "examples": {"arguments": ["x"], "argument_types": None, "modes": ["t(+drug)"]},
        "predicates": {
            "ring": {
                "arguments": ["a", "b", "c"],
                "argument_types": None,
                "modes": ["ring(+drug,-l)"],
            },
            "bare": {"arguments": ["a"], "argument_types": ["drug"], "modes": ["bare(+)"]},
        },
    }
    parts = read_schema(schema)
    assert parts["types"] == {"t": ["drug"], "ring": [None] * 3, "bare": ["drug"]}
    assert [str(mode) for mode in parts["modes"]] == ["bare(+)"]
    schema["predicates"]["bare"]["argument_types"] = ["drug", "x"]
    with pytest.raises(ValueError, match="2 types are given for 1 arguments"):
        read_schema(schema)


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (["BIGINT", "INTEGER"], "BIGINT"),
        (["DOUBLE", "BIGINT"], "DOUBLE"),
        (["DECIMAL(9,2)"], "DOUBLE"),
        (["UBIGINT"], "VARCHAR"),
        (["VARCHAR", "ENUM('a')"], "VARCHAR"),
        (["VARCHAR", "BIGINT"], "VARCHAR"),
        (["BOOLEAN"], "BOOLEAN"),
        (["TIMESTAMP WITH TIME ZONE"], "VARCHAR"),
    ],
)
def test_value_types_that_join(places: list[str], expected: str) -> None:
    assert common_sql_type("t", [(f"c{k}", p) for k, p in enumerate(places)]) == expected


@pytest.mark.parametrize(
    "places",
    [["VARCHAR", "DOUBLE"], ["BOOLEAN", "BIGINT"], ["DATE", "VARCHAR"], ["INTEGER[]"], ["BLOB"]],
)
def test_value_types_that_do_not_join(places: list[str]) -> None:
    with pytest.raises(ValueError, match=r"do not join|cannot be the argument"):
        common_sql_type("t", [(f"c{k}", p) for k, p in enumerate(places)])


def test_numbers_and_text_of_one_type_compare_as_text() -> None:
    tables = {"p": pd.DataFrame({"id": [1, 2]}), "q": pd.DataFrame({"id": ["2", "x"]})}
    types = {"t": ["id"], "p": ["id"], "q": ["id"]}
    data = RelationalData(tables, pd.DataFrame({"id": [2, 3]}), target="t", types=types)
    assert facts(data) == {"p": [[0], [1]], "q": [[1], [2]]}
    assert data.codes().tolist() == [[1], [-2]]


def test_missing_cells_and_nan_are_no_constants() -> None:
    tables = {
        "p": pd.DataFrame({"id": ["a", None, "b"], "x": [1.5, np.nan, np.nan]}),
        "q": pl.DataFrame({"id": ["a", "b"], "x": [float("nan"), 2.5]}),
    }
    types = {"t": ["id"], "p": ["id", "x"], "q": ["id", "x"]}
    data = RelationalData(tables, pd.DataFrame({"id": ["a", None]}), target="t", types=types)
    assert facts(data) == {"p": [[-1, -1], [0, 0], [1, -1]], "q": [[0, -1], [1, 1]]}
    assert data.codes().tolist() == [[0], [-1]]


def test_an_empty_table_joins_nothing() -> None:
    empty = pd.DataFrame({"person": pd.array([], dtype="string")})
    data = build({"friends": FRIENDS, "smokes": empty})
    assert facts(data)["smokes"] == []


def test_types_are_taken_as_declared_without_looking_at_the_data() -> None:
    assert infer_types(None, []) == []


# -- hostile names and bad input -------------------------------------------------------------------

HOSTILE = [
    'say "hi"; DROP TABLE examples; --',
    "select",
    "it's",
    "fact_0",
    "a\nb",
    "naïve ünï",
    "c0",
]


def test_hostile_names_and_values_work_and_cannot_inject() -> None:
    tables = {
        name: pd.DataFrame({f"{name} 1": ["a'; DROP TABLE type_0; --", "b"], name: ["x", name]})
        for name in HOSTILE
    }
    examples = pd.DataFrame({"from": ["a'; DROP TABLE type_0; --", 'c"']})
    types = {"order by": ["where"], **{name: ["where", "limit"] for name in HOSTILE}}
    modes = [Mode(name, ("+where", "#limit")) for name in HOSTILE]
    data = RelationalData(tables, examples, target="order by", types=types, modes=modes)
    assert data.codes().tolist() == [[0], [-2]]
    assert {len(rows) for rows in facts(data).values()} == {2}
    inferred = RelationalData(tables, examples, target="order by")
    assert len(inferred.schema.modes) > len(HOSTILE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tables": {}}, "no background tables"),
        ({"tables": {"ill": SMOKES, "friends": FRIENDS}}, "both the target and a background table"),
        ({"types": {"enemies": ["person"]}}, "'enemies'"),
        ({"arguments": {"enemies": ["person"]}}, "'enemies'"),
        ({"arguments": {"smokes": ["who"]}}, "no column 'who'"),
        ({"types": {**TYPES, "friends": ["person"]}}, "2 columns"),
        ({"modes": [Mode("enemies", ("+",))]}, "without a table"),
        ({"modes": [Mode("smokes", ("+", "-"))]}, "has 2 arguments"),
        ({"modes": [Mode("smokes", ("+animal",))]}, "would not join"),
        ({"tables": {"smokes": "no such file.parquet"}}, "no file"),
        (
            {"tables": {"friends": FRIENDS, "smokes": pd.DataFrame({"person": [1, "x"]})}},
            "mixed types",
        ),
    ],
)
def test_bad_declarations_get_clear_errors(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**change)


def test_bad_types_get_clear_errors() -> None:
    with pytest.raises(TypeError, match="table 'smokes' must be"):
        build({"smokes": [1, 2]})
    with pytest.raises(TypeError, match="examples must be"):
        build(examples={"person": ["ann"]})
    numbers = pd.DataFrame({"person": [1.5, 2.5]})
    with pytest.raises(ValueError, match=r"type 'person' do not join: .*holds"):
        build({"friends": FRIENDS, "smokes": numbers}).codes()
    with pytest.raises(ValueError, match="do not join"):
        build(examples=numbers).codes()
    with pytest.raises(ValueError, match="starts?"):
        Mode("p", ("person",))
    with pytest.raises(ValueError, match="at least 1"):
        Mode("p", ("+person",), recall=0)
    with pytest.raises(ValueError, match="cannot read the mode"):
        Mode.of_text("publication")


def test_a_background_without_a_table_of_the_model_gets_a_clear_error() -> None:
    data = build()
    fewer = build({"friends": FRIENDS}, types={"ill": ["person"]}, modes=MODES[:1])
    with pytest.raises(ValueError, match="no table 'smokes'"):
        fewer.with_schema(data.schema)
    renamed = build({"friends": FRIENDS.rename(columns={"a": "x"}), "smokes": SMOKES}, types=TYPES)
    with pytest.raises(ValueError, match="'friends' has the columns x, b"):
        renamed.with_schema(data.schema)
    other = build(target="well", types={"well": ["person"]}, modes=None)
    with pytest.raises(ValueError, match="trained on ill"):
        other.with_schema(data.schema)
    more = build({"friends": FRIENDS, "smokes": SMOKES, "extra": SMOKES}, types=TYPES)
    assert more.with_schema(data.schema).schema == data.schema
