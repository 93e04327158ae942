"""Clauses: how they print, and their SQL."""

from __future__ import annotations

import pytest

from toprank.rules.relational.clause import Atom, Clause, Constant, Variable, variable_name

A, B, P = map(Variable, "ABP")
HEAD = Atom("advised_by", (A, B))


def test_prints_as_a_person_would_write_it() -> None:
    body = (Atom("publication", (P, A)), Atom("publication", (P, B)), Atom("professor", (B,)))
    text = "advised_by(A,B) :- publication(P,A), publication(P,B), professor(B)"
    assert str(Clause(HEAD, body)) == text
    assert str(Clause(HEAD)) == "advised_by(A,B)."
    assert len(Clause(HEAD, body)) == 3


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("faculty", "faculty"),
        ("Faculty", "'Faculty'"),
        ("it's", "'it''s'"),
        ("", "''"),
        (3, "3"),
        (0.5, "0.5"),
        (True, "true"),
        ("true", "true"),
    ],
)
def test_constants_print_as_in_prolog(value, shown: str) -> None:
    assert str(Constant(value)) == shown


def test_names_of_variables_do_not_repeat() -> None:
    names = [variable_name(k) for k in range(100)]
    assert names[:3] == ["A", "B", "C"]
    assert len(set(names)) == 100


def test_clauses_are_data() -> None:
    clause = Clause(HEAD, (Atom("professor", (B,)),))
    assert clause == Clause(HEAD, (Atom("professor", (B,)),))
    assert len({clause, Clause(HEAD)}) == 2
    with pytest.raises(AttributeError):
        clause.body = ()  # type: ignore[misc]


def test_heads_have_distinct_variables() -> None:
    with pytest.raises(ValueError, match="twice"):
        Clause(Atom("same", (A, A)))
    with pytest.raises(ValueError, match="variables only"):
        Clause(Atom("same", (A, Constant(1))))


def test_sql_names_unknown_predicates_and_wrong_arities() -> None:
    clause = Clause(HEAD, (Atom("professor", (B,)),))
    with pytest.raises(ValueError, match="professor"):
        clause.sql({"advised_by": ["a", "b"]})
    with pytest.raises(ValueError, match=r"professor\(B\) has 1 arguments"):
        clause.sql({"advised_by": ["a", "b"], "professor": ["x", "y"]})


def test_sql_of_no_body_is_true() -> None:
    assert Clause(HEAD).sql({"advised_by": ["a", "b"]}) == "TRUE"
