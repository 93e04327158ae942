"""Bottom clauses hold what is true of their example, and refinements are exactly the true literals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_relational import Prover
from relational_worlds import MODES, PREDICATES, VALUES, facts_drawn, friends, world

from toprank import Mode, RelationalData
from toprank.rules.relational.bottom import MAX_BINDINGS, BottomClause, Partial, Saturation
from toprank.rules.relational.clause import CodedAtom, decode


def bottom(data: RelationalData, row: int = 0, **limits) -> BottomClause:
    limits = {"max_depth": 2, "recall": 100, **limits}
    return Saturation(data.schema, **limits).of(data.background, data.codes()[row])


def true_literals(
    data: RelationalData, facts: dict, example: tuple, partial: Partial, max_depth: int
) -> set[CodedAtom]:
    """Every literal that the modes allow and that leaves the example covered, by trying them all."""
    prover, schema, n_known = Prover(facts), data.schema, len(partial.types)
    found = set()
    for mode in schema.modes:
        j = schema.index(mode.predicate)
        choices = []
        for kind, name in zip(mode.kinds, PREDICATES[mode.predicate], strict=True):
            bound = [v for v, t in enumerate(partial.types) if t == name]
            codes = [
                data.background.code(name, value) for value in VALUES[name] if value is not None
            ]
            constants = [-code - 1 for code in codes]
            choices.append({"+": bound, "-": [None, *bound], "#": constants}[kind])
        for terms in product(*choices):
            inputs = [partial.depths[t] for t, k in zip(terms, mode.kinds, strict=True) if k == "+"]
            if None in terms and 1 + max(inputs, default=-1) > max_depth:
                continue
            fresh = iter(range(n_known, n_known + len(terms)))
            literal = CodedAtom(j, tuple(next(fresh) if t is None else t for t in terms))
            if literal in partial.body or any(-t - 1 > 1000 for t in literal.terms):
                continue  # constants that no fact holds
            clause = decode((*partial.body, literal), schema, data.background)
            if prover.covers(clause, example):
                found.add(literal)
    return found


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(facts_drawn, st.sampled_from(["ann", "bob"]), st.randoms(use_true_random=False))
def test_refinements_are_exactly_the_literals_true_of_the_seed(facts, person, random) -> None:
    example = (person, "carl")
    data = world(facts, [example])
    around = bottom(data)
    partial = around.start()
    for _ in range(3):
        refinements = around.refinements(partial)
        expected = true_literals(data, facts, example, partial, max_depth=2)
        assert {r.literal for r in refinements} == expected
        assert len(refinements) == len(expected)
        if not refinements:
            break
        partial = around.extend(partial, random.choice(refinements).literal)
        assert partial.bindings


def test_the_bottom_clause_follows_facts_in_both_directions() -> None:
    facts = {
        "likes": [("ann", "bob"), ("dan", "bob")],
        "owns": [("bob", 1), ("carl", 3)],
        "made_of": [(1, "wood"), (2, "wood")],
        "happy": [("dan",), ("bob",), ("eve",)],
    }
    data = world(facts, [("ann", "ann")])
    value, gathered = data.background.value, bottom(data).facts
    found = {
        predicate.name: [
            tuple(value(name, code) for name, code in zip(predicate.types, row, strict=True))
            for row in gathered.get(j, ())
        ]
        for j, predicate in enumerate(data.schema.predicates)
    }
    assert found == {
        "likes": [("ann", "bob"), ("dan", "bob")],
        "owns": [("bob", 1)],
        "made_of": [(1, "wood")],
        "happy": [("bob",), ("dan",)],
        "swap": [],
    }


def test_depth_and_recall_limit_what_is_gathered() -> None:
    chain = [(a, b) for a, b in zip(["ann", "bob", "carl"], ["bob", "carl", "dan"], strict=True)]
    data = world({"likes": chain}, [("ann", "ann")], [Mode("likes", ("+", "-"))])
    sizes = [len(bottom(data, max_depth=d).facts.get(0, ())) for d in range(4)]
    assert sizes == [0, 1, 2, 3]
    hub = [("ann", name) for name in ("bob", "carl", "dan")]
    data = world({"likes": hub}, [("ann", "ann")], [Mode("likes", ("+", "-"))])
    assert bottom(data, recall=2, max_depth=1).facts[0] == [(0, 1), (0, 2)]
    declared = world({"likes": hub}, [("ann", "ann")], [Mode("likes", ("+", "-"), recall=1)])
    assert bottom(declared, max_depth=1).facts[0] == [(0, 1)]


def test_recall_counts_each_binding_of_several_inputs() -> None:
    swaps = [("ann", k, "bob") for k in (1, 2, 3)] + [("ann", k, "ann") for k in (1, 2)]
    data = world({"swap": swaps}, [("ann", "bob")], [Mode("swap", ("+", "-", "+"), recall=2)])
    gathered = bottom(data, max_depth=1).facts[data.schema.index("swap")]
    assert sorted(row[2] for row in gathered) == [0, 0, 1, 1]


def test_a_mode_without_inputs_takes_the_first_facts() -> None:
    data = world(
        {"happy": [("bob",), ("dan",)]}, [("ann", "ann")], [Mode("happy", ("-",), recall=1)]
    )
    around = bottom(data)
    assert [r.literal.terms for r in around.refinements(around.start())] == [(2,)]


def test_an_example_that_no_fact_names_has_an_empty_bottom_clause() -> None:
    data = world({"happy": [("bob",)]}, [("a stranger", None)])
    assert bottom(data).facts == {}
    assert bottom(data).refinements(bottom(data).start()) == []


def test_implied_literals_are_marked() -> None:
    data = world({"likes": [("ann", "bob"), ("ann", "carl")]}, [("ann", "dan")], MODES[:1])
    around = bottom(data)
    (first,) = around.refinements(around.start())
    assert not first.implied
    again = around.refinements(around.extend(around.start(), first.literal))
    assert [(r.literal.terms, r.implied) for r in again] == [((0, 3), True)]


def test_bindings_are_capped() -> None:
    n = MAX_BINDINGS + 50
    hub = [("ann", f"f{k}") for k in range(n)]
    data = world({"likes": hub}, [("ann", "ann")], [Mode("likes", ("+", "-"))])
    around = bottom(data, recall=n)
    partial = around.start()
    for _ in range(2):
        partial = around.extend(partial, CodedAtom(0, (0, len(partial.types))))
        assert 0 < len(partial.bindings) <= MAX_BINDINGS


@pytest.mark.parametrize("row", [0, 7])
def test_row_order_of_the_tables_does_not_matter(row: int) -> None:
    data, _ = friends()
    tables = {
        name: source.table.to_pandas().sample(frac=1, random_state=3)
        for name, source in data.background.sources.items()
    }
    types = {p.name: p.types for p in (data.schema.target, *data.schema.predicates)}
    shuffled = RelationalData(tables, data.examples, target="ill", types=types)
    np.testing.assert_array_equal(shuffled.codes(), data.codes())
    assert bottom(shuffled, row, recall=2).facts == bottom(data, row, recall=2).facts
