"""Rules: the mask of a rule is the answer of its SQL, whatever the names and values."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.rule import OPERATORS, Literal, Rule, quote_identifier, sql_value

NASTY = ['say "hi"', "a; drop table t", "select", "ünï cödé", "it's", " ", "a--b", "x/*y*/"]
TEXT = ["a", "O'Neil", '"', "'; drop table t; --", "%", ""]


def by_sql(rule: Rule, frame: pd.DataFrame) -> np.ndarray:
    with duckdb.connect() as connection:
        connection.register("t", frame.reset_index(names="__row"))
        rows = connection.execute(f'SELECT "__row" FROM t WHERE {rule.sql()}').fetchall()
    covered = np.zeros(len(frame), dtype=bool)
    covered[[r[0] for r in rows]] = True
    return covered


@st.composite
def literals(draw) -> Literal:
    operator = draw(st.sampled_from(OPERATORS))
    text = draw(st.booleans()) if operator in {"=", "!=", "in", "not in"} else False
    column = "text" if text else draw(st.sampled_from(["number", *NASTY]))
    if operator in {"is missing", "is present"}:
        return Literal(column, operator)
    one = st.sampled_from(TEXT) if text else st.sampled_from([-1.5, 0.0, 0.1, 1e-300, 1e300])
    value = tuple(draw(st.lists(one, min_size=1, max_size=3))) if "in" in operator else draw(one)
    return Literal(column, operator, value, or_missing=draw(st.booleans()))


@settings(max_examples=60, deadline=None)
@given(rule=st.lists(literals(), max_size=3).map(tuple).map(Rule), seed=st.integers(0, 99))
def test_mask_equals_sql(rule: Rule, seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = [-1.5, 0.0, 0.1, 1e-300, 2.0, np.nan]
    frame = pd.DataFrame({c: rng.choice(numbers, size=12) for c in ["number", *NASTY]})
    frame["text"] = rng.choice([*TEXT, None], size=12)
    np.testing.assert_array_equal(rule.mask(frame), by_sql(rule, frame))


def test_a_rule_prints_as_a_person_would_write_it() -> None:
    rule = Rule((Literal("amount", ">", 900.0), Literal("country", "=", "XX")))
    assert str(rule) == "amount > 900 and country = 'XX'"
    assert str(rule & Literal("age", "is missing")) == f"{rule} and age is missing"
    assert str(Rule()) == "every row"
    assert len(rule) == 2


def test_the_empty_rule_holds_everywhere() -> None:
    assert Rule().mask(pd.DataFrame({"a": [1, 2]})).all()
    assert Rule().sql() == "TRUE"


def test_arrays_have_columns_by_position() -> None:
    covered = Rule((Literal("x1", "<=", 2.0),)).mask(np.array([[0, 1], [0, 3]]))
    assert covered.tolist() == [True, False]


def test_an_unknown_column_gets_a_clear_error() -> None:
    with pytest.raises(ValueError, match="nothing.*the table has a"):
        Rule((Literal("nothing", ">", 1.0),)).mask(pd.DataFrame({"a": [1]}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", "like", "x"), "unknown operator"),
        (("a", "in", "x"), "tuple"),
        (("a", "=", ("x",)), "one"),
    ],
)
def test_bad_literals_get_a_clear_error(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Literal(*arguments)


def test_floats_keep_every_bit() -> None:
    with duckdb.connect() as connection:
        for value in (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, float("inf")):
            assert connection.execute(f"SELECT {sql_value(value)}").fetchone()[0] == value


def test_a_name_with_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote_identifier("a\0b")
