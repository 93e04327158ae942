"""Coverage equals a backtracking prover, and the clauses' own SQL."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_relational import Prover, plain_rows
from relational_worlds import (
    PREDICATES,
    clauses_drawn,
    examples_drawn,
    extended_clauses_drawn,
    facts_drawn,
    frame,
    friends,
    world,
)

from toprank import RelationalData, RelationalPRankBoost, RelationalRankBoost
from toprank.rules.relational.background import UNSEEN
from toprank.rules.relational.clause import (
    Atom,
    Clause,
    CodedAtom,
    Constant,
    Variable,
    canonical,
    components,
    decode,
    encode,
)
from toprank.rules.relational.coverage import Coverage

A, B, C = map(Variable, "ABC")
drawn = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def masks(data: RelationalData, clauses: list[Clause]) -> list[np.ndarray]:
    with Coverage(data.background, data.codes()) as coverage:
        bodies = [encode(clause, data.schema, data.background) for clause in clauses]
        alone = [coverage.mask(body) for body in bodies]
    with Coverage(data.background, data.codes()) as coverage:
        coverage.prepare(bodies)
        together = [coverage.mask(body) for body in bodies]
    np.testing.assert_array_equal(alone, together)
    return alone


def masks_of(data: RelationalData, bodies: list) -> list[np.ndarray]:
    with Coverage(data.background, data.codes()) as coverage:
        return [coverage.mask(body) for body in bodies]


def sql_mask(facts, examples, condition: str) -> np.ndarray:
    """The examples that a condition in SQL selects, in a database of the facts."""
    connection = duckdb.connect()
    for name, types in PREDICATES.items():
        connection.register(f"view {name}", frame(facts[name], types))
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "view {name}"')
    connection.register(
        "examples", frame(examples, ("person", "person")).assign(row=range(len(examples)))
    )
    rows = connection.execute(f"SELECT row FROM examples WHERE {condition}").fetchall()
    return np.isin(np.arange(len(examples)), [row[0] for row in rows])


@drawn
@given(facts_drawn, examples_drawn, st.lists(clauses_drawn(), min_size=1, max_size=6))
def test_masks_equal_a_backtracking_prover(facts, examples, clauses) -> None:
    data = world(facts, examples)
    prover = Prover(facts)
    for clause, mask in zip(clauses, masks(data, clauses), strict=True):
        assert mask.tolist() == prover.mask(clause, examples), str(clause)


@drawn
@given(facts_drawn, examples_drawn, clauses_drawn())
def test_masks_equal_the_clauses_own_sql(facts, examples, clause) -> None:
    data = world(facts, examples)
    expected = sql_mask(facts, examples, clause.sql(data.schema.columns))
    np.testing.assert_array_equal(masks(data, [clause])[0], expected, err_msg=str(clause))


@drawn
@given(facts_drawn, examples_drawn, st.lists(extended_clauses_drawn(), min_size=1, max_size=6))
def test_masks_of_the_larger_language_equal_a_backtracking_prover(facts, examples, clauses) -> None:
    data = world(facts, examples)
    prover = Prover(facts)
    for clause, mask in zip(clauses, masks(data, clauses), strict=True):
        assert mask.tolist() == prover.mask(clause, examples), str(clause)
        coded = encode(clause, data.schema, data.background)
        if str(-UNSEEN - 1) in repr(coded):
            continue  # a constant without a code has no name either
        again = encode(decode(coded, data.schema, data.background), data.schema, data.background)
        assert [mask.tolist()] == [m.tolist() for m in masks_of(data, [again])], str(clause)


@drawn
@given(facts_drawn, examples_drawn, st.lists(extended_clauses_drawn(), min_size=1, max_size=4))
def test_masks_of_the_larger_language_equal_the_clauses_own_sql(facts, examples, clauses) -> None:
    data = world(facts, examples)
    for clause, mask in zip(clauses, masks(data, clauses), strict=True):
        expected = sql_mask(facts, examples, clause.sql(data.schema.columns))
        np.testing.assert_array_equal(mask, expected, err_msg=str(clause))


@drawn
@given(
    facts_drawn, examples_drawn, clauses_drawn(max_length=3), st.lists(clauses_drawn(1), max_size=8)
)
def test_literals_of_a_step_equal_whole_clauses(facts, examples, clause, more) -> None:
    """What the search asks for, literal by literal, is what the longer clause covers."""
    data = world(facts, examples)
    prover = Prover(facts)
    literals = [atom for other in more for atom in other.body]
    longer = [Clause(clause.head, (*clause.body, atom)) for atom in _compatible(clause, literals)]
    weights = np.random.default_rng(0).random(len(examples))
    positive = np.arange(len(examples)) % 2 == 0
    with Coverage(data.background, data.codes()) as coverage:
        body = encode(clause, data.schema, data.background)
        coded = [encode(c, data.schema, data.background)[-1] for c in longer]
        covered = coverage.mask(body)
        sets = coverage.cover_literals(body, coded)
        sums = coverage.weigh(sets, covered, positive, weights)
        for k, (whole, head_set) in enumerate(zip(longer, sets, strict=True)):
            expected = np.array(prover.mask(whole, examples))
            np.testing.assert_array_equal(coverage.narrow(covered, head_set), expected)
            assert sums[0][k] == pytest.approx(weights[expected & positive].sum())
            assert sums[1][k] == pytest.approx(weights[expected & ~positive].sum())


def _compatible(clause: Clause, literals: list[Atom]) -> list[Atom]:
    """Literals whose variables have the types that they have in the clause."""
    types: dict[object, str] = {A: "person", B: "person"}
    for atom in clause.body:
        types.update(zip(atom.terms, PREDICATES[atom.predicate], strict=True))
    return [
        atom
        for atom in literals
        if all(
            types.get(term, kind) == kind
            for term, kind in zip(atom.terms, PREDICATES[atom.predicate], strict=True)
            if isinstance(term, Variable)
        )
    ]


def test_a_missing_argument_equals_nothing_but_the_fact_stands() -> None:
    data = world({"likes": [("ann", None), (None, "bob")]}, [("ann", "bob"), (None, None)])
    likes = Clause(Atom("pair", (A, B)), (Atom("likes", (A, C)),))
    liked_back = Clause(Atom("pair", (A, B)), (Atom("likes", (A, C)), Atom("likes", (B, C))))
    assert [m.tolist() for m in masks(data, [likes, liked_back])] == [[True, False], [False, False]]


def test_literals_on_the_same_variables_take_one_query() -> None:
    data, _ = friends()
    with Coverage(data.background, data.codes()) as coverage:
        blue, red, green = (
            encode(
                Clause(Atom("ill", (A,)), (Atom("likes", (A, Constant(c))),)),
                data.schema,
                data.background,
            )[0]
            for c in ("blue", "red", "green")
        )
        smokes = CodedAtom(data.schema.index("smokes"), (0,))
        opening = CodedAtom(data.schema.index("friends"), (0, 1))
        coverage.cover_literals((), [blue, red, green, smokes, opening])
        assert coverage.n_queries == 1
        on_friend = [
            atom._replace(terms=(1, *atom.terms[1:])) for atom in (blue, red, green, smokes)
        ]
        coverage.cover_literals((opening,), on_friend)
        assert coverage.n_queries == 2
        coverage.cover_literals((opening,), [*on_friend, blue])
        assert coverage.n_queries == 2  # answered from memory


def test_the_cache_keeps_its_size_and_the_answers() -> None:
    data, _ = friends()
    names = [f"p{k:03d}" for k in range(60)]
    clauses = [Clause(Atom("ill", (A,)), (Atom("friends", (A, Constant(name))),)) for name in names]
    bodies = [encode(clause, data.schema, data.background) for clause in clauses]
    with Coverage(data.background, data.codes(), cache_bytes=64) as small:
        first = [small.mask(body) for body in bodies]
        assert small._cached_bytes <= 64
        with Coverage(data.background, data.codes()) as large:
            np.testing.assert_array_equal(first, [large.mask(body) for body in bodies])


def test_many_literals_are_asked_for_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = friends()
    body = [
        encode(
            Clause(Atom("ill", (A,)), (Atom("friends", (A, Constant(f"p{k:03d}"))),)),
            data.schema,
            data.background,
        )[0]
        for k in range(30)
    ]
    with Coverage(data.background, data.codes()) as coverage:
        expected = [s.bits.tolist() for s in coverage.cover_literals((), body)]
    monkeypatch.setattr("toprank.rules.relational.coverage.MAX_PAIRS", 60 * 7)
    with Coverage(data.background, data.codes()) as coverage:
        assert [s.bits.tolist() for s in coverage.cover_literals((), body)] == expected
        assert coverage.n_queries == 5


def test_tables_of_heads_are_dropped() -> None:
    data = world({"likes": [("ann", "bob")]}, [("ann", "bob"), ("bob", "ann")])
    clause = Clause(Atom("pair", (A, B)), (Atom("likes", (A, B)),))
    assert masks(data, [clause])[0].tolist() == [True, False]
    tables = data.background.cursor().execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert not [name for (name,) in tables if name.startswith("heads")]


def test_encoding_is_undone_by_decoding() -> None:
    data = world({"owns": [("ann", 2)], "made_of": [(2, "it's")]}, [("ann", "ann")])
    clause = Clause(
        Atom("pair", (A, B)), (Atom("owns", (B, C)), Atom("made_of", (C, Constant("it's"))))
    )
    assert (
        decode(encode(clause, data.schema, data.background), data.schema, data.background) == clause
    )


def test_components_share_no_inner_variable() -> None:
    chain = (CodedAtom(0, (0, 2)), CodedAtom(1, (2, 3)), CodedAtom(2, (3,)))
    alone, other = CodedAtom(3, (0, 1)), CodedAtom(0, (1, 4))
    parts = components((chain[0], alone, chain[2], other, chain[1]), n_heads=2)
    assert [set(part) for part in parts] == [set(chain), {alone}, {other}]
    assert canonical(chain, 2) == canonical(
        [a._replace(terms=tuple(t + 5 if t > 1 else t for t in a.terms)) for a in chain], 2
    )


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        (Clause(Atom("pair", (A, B)), (Atom("unknown", (A,)),)), "unknown"),
        (Clause(Atom("pair", (A, B)), (Atom("happy", (A, B)),)), "2 arguments"),
        (Clause(Atom("pair", (A, B)), (Atom("made_of", (A, C)),)), "do not join"),
        (Clause(Atom("other", (A,)), ()), "other"),
    ],
)
def test_clauses_that_do_not_fit_the_data_get_clear_errors(clause: Clause, message: str) -> None:
    data = world({}, [("ann", "bob")])
    with pytest.raises(ValueError, match=message):
        encode(clause, data.schema, data.background)


@pytest.mark.data
@pytest.mark.parametrize("name", ["toy_cancer", "toy_father", "trains1", "uwcse", "mutagenesis"])
def test_learnt_clauses_cover_what_a_prover_says_on_real_data(name: str, data_dir: Path) -> None:
    folder = data_dir / "relational" / name
    data = RelationalData.from_folder(folder)
    schema = json.loads((folder / "schema.json").read_text())
    tables = {n: pd.read_parquet(folder / e["file"]) for n, e in schema["predicates"].items()}
    prover = Prover.of_tables(tables, data.schema.columns)
    clauses: dict[Clause, None] = {}
    for model in (
        RelationalPRankBoost(6, weak="path", random_state=0),
        RelationalRankBoost(6, random_state=1),
    ):
        for kept in model.fit(data, data.labels).rounds_:
            clauses.update(dict.fromkeys(kept.rules))
    examples = plain_rows(data.examples)
    keep = np.random.default_rng(0).permutation(len(examples))[:1500]
    keep = np.union1d(keep, np.flatnonzero(data.labels)[:100])
    sample = [examples[k] for k in keep]
    assert len(clauses) >= (1 if name.startswith("toy") else 5)
    for clause, mask in zip(clauses, masks(data, list(clauses)), strict=True):
        assert mask[keep].tolist() == prover.mask(clause, sample), str(clause)
