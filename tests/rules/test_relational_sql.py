"""Ensembles as SQL equal their scores, whatever types and names the tables have."""

from __future__ import annotations

import datetime

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from relational_worlds import friends

from toprank import Mode, RelationalData, RelationalPRankBoost
from toprank.rules.relational.background import UNSEEN
from toprank.rules.relational.clause import Atom, Clause, Constant, Variable

N = 24
HALF = np.arange(N) % 2
DAYS = [datetime.date(2024, 1, 1 + k) for k in HALF]

PROPERTIES = {
    "text": pa.array([("o'neil", 'say "hi"')[k] for k in HALF]),
    "whole": pa.array(HALF + 7, pa.int64()),
    "small": pa.array(HALF + 7, pa.uint8()),
    "unsigned": pa.array([2**64 - 1 - int(k) for k in HALF], pa.uint64()),
    "float": pa.array(HALF + 0.1, pa.float64()),
    "single": pa.array(HALF + 0.1, pa.float32()),
    "truth": pa.array(HALF == 1),
    "date": pa.array(DAYS, pa.date32()),
    "moment": pa.array(
        [datetime.datetime(2024, 1, 1, 12, 30, int(k)) for k in HALF], pa.timestamp("us")
    ),
    "missing": pa.array([None if k else "here" for k in HALF], pa.string()),
}


def scores_of_sql(model, tables: dict[str, pa.Table], examples: pa.Table, name: str) -> np.ndarray:
    """Scores of the model's SQL on tables in a database, by the examples' column `row`."""
    connection = duckdb.connect()
    numbered = examples.append_column("row", pa.array(np.arange(len(examples))))
    for table_name, table in {**tables, name: numbered}.items():
        connection.register("given rows", table)
        quoted = '"' + table_name.replace('"', '""') + '"'
        connection.execute(f'CREATE TABLE {quoted} AS SELECT * FROM "given rows"')
    found = connection.execute(model.to_sql(name)).df().sort_values("row")
    return found["score"].to_numpy()


@pytest.mark.parametrize("value_type", PROPERTIES)
def test_constants_of_every_type_score_alike_in_a_database(value_type: str) -> None:
    ids = pa.array([f"x{k}" for k in range(N)])
    tables = {"has": pa.table({"id": ids, "value": PROPERTIES[value_type]})}
    examples = pa.table({"id": ids})
    data = RelationalData(tables, examples, target="good", modes=[Mode("has", ("+", "#"))])
    y = (HALF == 0).astype(int)
    model = RelationalPRankBoost(2, random_state=0).fit(data, y)
    assert model.predict(data).tolist() == y.tolist()
    scores = scores_of_sql(model, tables, examples, "examples")
    np.testing.assert_allclose(scores, model.decision_function(data), atol=1e-12)


@pytest.mark.parametrize("text_in", ["background", "examples", "one of two tables"])
def test_text_and_numbers_of_one_type_score_alike_in_a_database(text_in: str) -> None:
    numbers = pa.array([*range(N - 1), None], pa.int64())
    text = pa.array([*map(str, range(N - 1)), "not a number"])
    first = text if text_in == "background" else numbers
    tables = {
        "has": pa.table({"id": first, "value": pa.array([("a", "b")[k] for k in HALF])}),
        "seen": pa.table({"id": text[:6] if text_in == "one of two tables" else first[:6]}),
    }
    examples = pa.table({"id": text if text_in == "examples" else numbers})
    types = {"good": ["id"], "has": ["id", "value"], "seen": ["id"]}
    modes = [Mode("has", ("+", "#")), Mode("seen", ("+",))]
    data = RelationalData(tables, examples, target="good", types=types, modes=modes)
    assert data.text_types() == ("id",)
    model = RelationalPRankBoost(3, random_state=0).fit(data, (HALF == 0).astype(int))
    scores = scores_of_sql(model, tables, examples, "examples")
    np.testing.assert_allclose(scores, model.decision_function(data), atol=1e-12)


@pytest.mark.parametrize("name", ["t0", "T1", "tt0", "friends; --", "select", 'a "b"'])
def test_a_table_of_examples_may_have_any_name(name: str) -> None:
    data, y = friends()
    model = RelationalPRankBoost(4, weak="path", random_state=0).fit(data, y)
    tables = {n: source.table for n, source in data.background.sources.items()}
    examples = pa.Table.from_pandas(data.examples)
    scores = scores_of_sql(model, tables, examples, name)
    np.testing.assert_allclose(scores, model.decision_function(data), atol=1e-12)


def test_examples_of_another_type_join_without_rounding() -> None:
    tables = {"p": pd.DataFrame({"id": [1, 2, 3]})}
    types = {"t": ["id"], "p": ["id"]}

    def codes(column) -> list[int]:
        data = RelationalData(tables, pa.table({"id": column}), target="t", types=types)
        return data.codes().ravel().tolist()

    # -1 is missing; values that no fact has get one code each below that
    assert codes(pa.array(["2", "x", " 3", "x"])) == [1, -3, -2, -3]
    assert codes(pa.array([2.0, 2.5, float("nan"), 3.0])) == [1, -2, -1, 2]
    assert codes(pa.array([3, 2**64 - 1], pa.uint64())) == [2, -2]
    with pytest.raises(ValueError, match="p.id holds integer but examples.id holds boolean"):
        codes(pa.array([True]))


def test_dates_and_timestamps_do_not_join() -> None:
    day = datetime.date(2024, 1, 1)
    tables = {"p": pa.table({"day": pa.array([day], pa.date32())})}
    noon = datetime.datetime(2024, 1, 1, 12)
    moments = pa.table({"day": pa.array([noon], pa.timestamp("us"))})
    types = {"t": ["day"], "p": ["day"]}
    with pytest.raises(ValueError, match="p.day holds date but examples.day holds timestamp"):
        RelationalData(tables, moments, target="t", types=types).codes()
    nanoseconds = {"p": pa.table({"day": pa.array([noon], pa.timestamp("ns"))})}
    assert RelationalData(nanoseconds, moments, target="t", types=types).codes().tolist() == [[0]]


@pytest.mark.parametrize(
    ("column", "value", "seen"),
    [
        ([1, 2], 2, True), ([1, 2], 2.0, True), ([1, 2], "2", True), ([1, 2], 2.5, False),
        ([1, 2], "2.5", False), ([1, 2], True, False), ([1, 2], 2**80, False),
        ([0.5, 2.0], 2, True), ([0.5, 2.0], 0.5, True), ([0.5, 2.0], "word", False),
        (["a", "2"], 2, True), (["a", "2"], "b", False), ([True, False], True, True),
        ([True, False], 1, False),
    ],
)  # fmt: skip
def test_constants_are_found_as_they_are_or_not_at_all(column: list, value, seen: bool) -> None:
    data = RelationalData({"p": pd.DataFrame({"id": column})}, pd.DataFrame({"id": column}))
    name = data.schema.predicates[0].types[0]
    code = data.background.code(name, value)
    assert (code != UNSEEN) == seen
    if seen:
        assert str(data.background.value(name, code)) in (str(value), f"{value}.0", "2")


def test_a_variable_that_occurs_once_prints_as_an_underscore() -> None:
    a, b, c = map(Variable, "ABC")
    clause = Clause(Atom("t", (a,)), (Atom("p", (a, b, c)), Atom("q", (c, Constant("x")))))
    assert str(clause) == "t(A) :- p(A,_,C), q(C,x)"
    same = Clause(Atom("t", (a,)), (Atom("p", (a, b, b)),))
    assert str(same) == "t(A) :- p(A,B,B)"
