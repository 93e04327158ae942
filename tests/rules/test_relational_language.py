"""What clauses can say beside atoms: each part of the language finds what only it can say."""

from __future__ import annotations

import warnings

import duckdb
import numpy as np
import pandas as pd
import pytest
from naive_relational import Prover, plain_rows
from relational_worlds import friends

from toprank import Mode, RelationalData, RelationalPRankBoost, RelationalRankBoost
from toprank.rules.relational.clause import (
    LOCAL,
    Aggregate,
    Atom,
    Clause,
    CodedAtom,
    CodedComparison,
    Comparison,
    Constant,
    Variable,
    ordered,
)
from toprank.rules.relational.search import (
    EXTENSIONS,
    ValueSums,
    choose_cuts,
    extensions,
    short_between,
)

A, B, C = map(Variable, "ABC")
N = 40
IDS = np.array([f"m{k:02d}" for k in range(N)])


def planted(kind: str) -> tuple[RelationalData, np.ndarray, dict[str, pd.DataFrame]]:
    """Molecules and their atoms; only one part of the language tells the positives."""
    rng = np.random.default_rng(5)
    y = (np.arange(N) % 4 == 0).astype(int)
    n_atoms = np.full(N, 4)
    if kind == "count":
        n_atoms = np.where(y == 1, 6, rng.integers(2, 5, N))
    owner = np.repeat(np.arange(N), n_atoms)
    charge = np.round(rng.uniform(0.0, 1.0, len(owner)), 3)
    if kind == "comparison":  # one atom of the positives has a high charge
        charge[np.searchsorted(owner, np.flatnonzero(y))] += 1.0
    if kind == "aggregate":  # all charges are a little higher: no single one stands out
        charge = np.clip(charge, 0.3, 0.7) + 0.25 * y[owner]
    names = np.array([f"a{k:03d}" for k in range(len(owner))])
    tables = {"atom": pd.DataFrame({"molecule": IDS[owner], "atom": names, "charge": charge})}
    modes = [Mode("atom", ("+", "-", "-"))]
    types = {"good": ["molecule"], "atom": ["molecule", "atom", "charge"]}
    if kind == "negation":
        tables = {"toxic": pd.DataFrame({"molecule": IDS[y == 0]})}
        types, modes = {"good": ["molecule"], "toxic": ["molecule"]}, [Mode("toxic", ("+",))]
    if kind == "inequality":  # each is bound to itself, the positives to another too
        other = IDS[(np.arange(N) + 1) % N]
        pairs = np.concatenate([np.c_[IDS, IDS], np.c_[IDS, other][y == 1]])
        tables = {"bound": pd.DataFrame({"a": pairs[:, 0], "b": pairs[:, 1]})}
        types, modes = (
            {"good": ["molecule"], "bound": ["molecule"] * 2},
            [Mode("bound", ("+", "-"))],
        )
    data = RelationalData(
        tables, pd.DataFrame({"id": IDS}), target="good", types=types, modes=modes
    )
    return data, y, tables


@pytest.mark.parametrize("kind", EXTENSIONS)
def test_each_extension_finds_what_only_it_can_say(kind: str) -> None:
    data, y, tables = planted(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of finding nothing
        plain = RelationalPRankBoost(5, language="paper", random_state=0).fit(data, y)
    model = RelationalPRankBoost(5, language=(kind,), random_state=0).fit(data, y)
    assert model.score(data, y) > 0.95 > plain.score(data, y)
    clauses = [kept.rules[-1] for kept in model.rounds_]
    assert any(isinstance(literal, Comparison) for clause in clauses for literal in clause.body)
    # mask, SQL and the naive twin agree
    prover = Prover.of_tables(tables, data.schema.columns)
    connection = duckdb.connect()
    for name, table in {**tables, "examples": pd.DataFrame({"id": IDS, "row": range(N)})}.items():
        connection.register(f"{name}_view", table)
        connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "{name}_view"')
    found = connection.execute(model.to_sql()).df().sort_values("row")["score"]
    np.testing.assert_allclose(found, model.decision_function(data), atol=1e-9)
    examples = plain_rows(data.examples)
    fired = model.explain(data)
    for clause in dict.fromkeys(clauses):
        covered = fired.loc[fired["rule"] == str(clause), "row"].unique()
        assert np.isin(np.arange(N), covered).tolist() == prover.mask(clause, examples), str(clause)


def test_the_paper_has_its_own_language_seeds_and_steps() -> None:
    for kind, step in ((RelationalPRankBoost, "area"), (RelationalRankBoost, "bound")):
        model = kind.as_published(7, recall=3)
        assert (model.n_estimators, model.recall, model.step) == (7, 3, step)
        assert (model.language, model.seed_choice, model.lookahead) == ("paper", "uniform", 0)
    data, y = friends()
    model = RelationalPRankBoost.as_published(3, random_state=0).fit(data, y)
    for kept in model.rounds_:
        assert all(isinstance(literal, Atom) for literal in kept.rules[-1].body)


def test_unknown_languages_are_named() -> None:
    assert extensions("extended") == frozenset(EXTENSIONS)
    assert extensions("count") == frozenset({"count"})
    with pytest.raises(ValueError, match="'paper', 'extended' or some of"):
        extensions("prolog")
    with pytest.raises(ValueError, match="has 'sums'; known: comparison"):
        extensions(["sums"])


def test_comparisons_print_as_a_person_would_write_them() -> None:
    papers = Aggregate("count", (Atom("paper", (B, A)),))
    head = Atom("good", (A,))
    shown = {
        Comparison(papers, ">=", Constant(3)): "good(A) :- count(paper(_,A)) >= 3",
        Comparison(papers, "<=", Constant(0)): "good(A) :- not paper(_,A)",
        Comparison(
            Aggregate("mean", (Atom("paper", (B, A)), Atom("year", (B, C))), C), ">", Constant(2.5)
        ): "good(A) :- mean(C: paper(B,A), year(B,C)) > 2.5",
    }
    for literal, text in shown.items():
        assert str(Clause(head, (literal,))) == text


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Aggregate("median", ()), "unknown aggregate 'median'"),
        (lambda: Aggregate("mean", (Atom("p", (A,)),)), "are of a variable, a count is of none"),
        (lambda: Aggregate("mean", (Atom("p", (A,)),), B), "do not have the variable B"),
        (lambda: Comparison(A, "=", Constant(1)), "unknown operator '='"),
        (lambda: Comparison(A, "<=", B), "'!=' compares two variables"),
        (lambda: Comparison(A, "<=", Constant("x")), "with a number; got A <= x"),
        (lambda: Comparison(A, "!=", Constant(1)), "'!=' compares two variables"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_equal_clauses_have_one_order() -> None:
    first = CodedAtom(0, (0, 3)), CodedAtom(1, (3, -2)), CodedComparison(3, "<=", value=2.0)
    second = CodedComparison(1, "<=", value=2.0), CodedAtom(1, (1, -2)), CodedAtom(0, (0, 1))
    assert ordered(first, 1) == ordered(second, 1) == ordered([*first, first[0]], 1)
    assert ordered(first, 1)[0] == CodedAtom(0, (0, 1))
    assert LOCAL > 1000


def test_a_perfect_clause_ends_the_fit_and_repeated_ones_are_one_line() -> None:
    data, y, _ = planted("negation")
    model = RelationalPRankBoost(100, random_state=0).fit(data, y)
    assert len(model.rounds_) == 1
    assert model.stop_reason_ == "a clause covers every positive example and no negative one"
    noisy = y.copy()
    noisy[1] = 1
    model = RelationalPRankBoost(12, random_state=0).fit(data, noisy)
    assert model.rules_["rule"].is_unique
    assert model.rules_["rounds"].sum() == len(model.rounds_)
    total = sum(kept.step for kept in model.rounds_)
    assert model.rules_["adds"].sum() == pytest.approx(total)


def test_cuts_lie_between_values_and_hold_for_the_seed() -> None:
    values = np.array([0.0, 1.0, 2.0, np.nan, 2.0])
    weights = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [1.0, 1.0], [0.0, 4.0]])
    present = np.array([True, True, True, True, True])
    found = ValueSums.of(values, weights, present)
    low = choose_cuts(found, 1.0, "<=", whole=False)
    assert [(c.value, c.positives, c.negatives) for c in low] == [(1.5, 2.0, 1.0), (2.0, 6.0, 4.0)]
    high = choose_cuts(found, 1.0, ">", whole=False)
    assert [(c.value, c.positives, c.negatives) for c in high] == [(0.5, 6.0, 3.0)]
    counts = choose_cuts(found, 2.0, ">=", whole=True)
    assert [(c.value, c.positives) for c in counts] == [(1.0, 6.0), (2.0, 4.0)]
    assert choose_cuts(found, np.nan, "<=", whole=False) == []
    rng = np.random.default_rng(0)
    for low_value, high_value in np.sort(rng.normal(size=(200, 2)), axis=1):
        assert low_value <= short_between(low_value, high_value) < high_value


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("operator", ["<=", ">", ">="])
def test_cuts_weigh_what_a_loop_over_the_heads_weighs(operator: str, counts: bool) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 40, 300) - (0.0 if counts else 7.5)
    values[rng.random(300) < 0.1] = np.nan
    weights, present = rng.random((300, 2)), rng.random(300) < 0.7
    cuts = choose_cuts(ValueSums.of(values, weights, present), 12.5, operator, whole=False)
    compare = {"<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[operator]
    assert cuts
    for cut in cuts:
        holds = [h for h in range(300) if present[h] and compare(values[h], cut.value)]
        expected = weights[holds].sum(axis=0)
        assert (cut.negatives, cut.positives) == pytest.approx(tuple(expected))


def test_many_constants_are_used_where_nothing_else_joins_them() -> None:
    rng = np.random.default_rng(0)
    ids = np.array([f"v{k}" for k in range(400)])
    code = rng.integers(0, 50, 400)
    tables = {"visit": pd.DataFrame({"id": ids, "code": [f"c{k}" for k in code]})}
    data = RelationalData(tables, pd.DataFrame({"id": ids}), target="ill")
    y = (code == 7).astype(int)
    model = RelationalPRankBoost(3, language="paper", random_state=0).fit(data, y)
    assert str(model.rounds_[0].rules[-1]) == "ill(A) :- visit(A,c7)"


def test_constants_are_used_although_a_table_describes_them() -> None:
    rng = np.random.default_rng(0)
    ids = np.array([f"v{k}" for k in range(400)])
    codes = np.array([f"c{k}" for k in range(50)])
    code = rng.integers(0, 50, 400)
    tables = {
        "visit": pd.DataFrame({"id": ids, "code": codes[code]}),
        "chapter": pd.DataFrame({"code": codes, "letter": ["A", "B"] * 25}),
    }
    data = RelationalData(tables, pd.DataFrame({"id": ids}), target="ill")
    assert not data.notes
    model = RelationalPRankBoost(1, random_state=0).fit(data, (code == 7).astype(int))
    assert str(model.rounds_[0].rules[-1]) == "ill(A) :- visit(A,c7)"


def test_numbers_among_the_arguments_of_the_examples_are_compared() -> None:
    rng = np.random.default_rng(0)
    amount = np.round(rng.uniform(0, 100, 60), 2)
    ids = np.array([f"x{k}" for k in range(60)])
    tables = {"known": pd.DataFrame({"id": ids[::2]})}
    examples = pd.DataFrame({"id": ids, "amount": amount})
    types = {"fraud": ["id", "amount"], "known": ["id"]}
    data = RelationalData(tables, examples, target="fraud", types=types)
    y = (amount > 80).astype(int)
    model = RelationalPRankBoost(2, random_state=0).fit(data, y)
    assert model.score(data, y) == 1.0
    assert "B > " in str(model.rounds_[0].rules[-1])
    assert model.score(data[:30], y[:30]) == 1.0
