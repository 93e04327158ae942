"""Small relational data for tests: drawn worlds, drawn clauses, and a hostile one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from toprank import Mode, RelationalData
from toprank.rules.relational.clause import (
    Aggregate,
    Atom,
    Clause,
    Comparison,
    Constant,
    Variable,
    variable_name,
)

PREDICATES = {
    "likes": ("person", "person"),
    "owns": ("person", "thing"),
    "made_of": ("thing", "stuff"),
    "happy": ("person",),
    "swap": ("person", "thing", "person"),
}
TARGET = ("person", "person")
VALUES = {
    "person": ["ann", "bob", "carl", "dan", None],
    "thing": [1, 2, 3],
    "stuff": ["wood", "it's", 'a "b"'],
}


def frame(rows: Sequence[tuple], types: Sequence[str]) -> pd.DataFrame:
    """A table of rows, with a dtype for each type even when it has no rows."""
    columns = {}
    for k, name in enumerate(types):
        values = [row[k] for row in rows]
        columns[f"x{k}"] = pd.array(values, dtype="Int64" if name == "thing" else "string")
    return pd.DataFrame(columns)


MODES = [
    Mode("likes", ("+", "-")),
    Mode("likes", ("-", "+")),
    Mode("owns", ("+", "-")),
    Mode("made_of", ("+", "#")),
    Mode("happy", ("+",)),
    Mode("swap", ("+", "-", "+")),
]


def world(
    facts: dict[str, Sequence[tuple]], examples: Sequence[tuple], modes: Sequence[Mode] = MODES
) -> RelationalData:
    """Facts and examples as RelationalData with the types above."""
    tables = {name: frame(facts.get(name, []), types) for name, types in PREDICATES.items()}
    return RelationalData(
        tables,
        frame(examples, TARGET),
        target="pair",
        types={**PREDICATES, "pair": TARGET},
        modes=modes,
    )


def rows_of(types: Sequence[str]) -> st.SearchStrategy:
    return st.tuples(*(st.sampled_from(VALUES[name]) for name in types))


facts_drawn = st.fixed_dictionaries(
    {name: st.lists(rows_of(types), max_size=8) for name, types in PREDICATES.items()}
)
examples_drawn = st.lists(
    st.tuples(*(st.sampled_from([*VALUES["person"], "a stranger"]) for _ in TARGET)),
    min_size=1,
    max_size=12,
)


@st.composite
def clauses_drawn(draw, max_length: int = 4) -> Clause:
    """Typed clauses: any mix of head, inner and repeated variables and constants, seen or not."""
    pool: dict[str, list[Variable]] = {"person": [Variable("A"), Variable("B")]}
    n_variables = 2
    body = []
    for _ in range(draw(st.integers(0, max_length))):
        name = draw(st.sampled_from(sorted(PREDICATES)))
        terms: list[Variable | Constant] = []
        for kind in PREDICATES[name]:
            choice = draw(st.integers(0, 3))
            known = pool.setdefault(kind, [])
            if choice == 0:
                unseen = 99 if kind == "thing" else "never seen"
                values = [v for v in VALUES[kind] if v is not None]
                terms.append(Constant(draw(st.sampled_from([*values, unseen]))))
            elif choice == 1 or not known:
                known.append(Variable(variable_name(n_variables)))
                n_variables += 1
                terms.append(known[-1])
            else:
                terms.append(draw(st.sampled_from(known)))
        body.append(Atom(name, tuple(terms)))
    return Clause(Atom("pair", (Variable("A"), Variable("B"))), tuple(body))


@st.composite
def extended_clauses_drawn(draw) -> Clause:
    """Clauses with comparisons, inequalities, counts, negations and aggregates beside their atoms."""
    clause = draw(clauses_drawn(max_length=2))
    types: dict[object, str] = {Variable("A"): "person", Variable("B"): "person"}
    for atom in clause.body:
        pairs = zip(atom.terms, PREDICATES[atom.predicate], strict=True)
        types.update({t: name for t, name in pairs if isinstance(t, Variable)})
    more: list[Comparison] = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["number", "unequal", "aggregate", "aggregate"]))
        numbers = [t for t, name in types.items() if name == "thing"]
        same = [(a, b) for a in types for b in types if a != b and types[a] == types[b]]
        if kind == "number" and numbers:
            cut = Constant(draw(st.sampled_from([0, 1, 1.5, 2, 3, 9])))
            operator = draw(st.sampled_from(["<=", ">", ">="]))
            more.append(Comparison(draw(st.sampled_from(numbers)), operator, cut))
        elif kind == "unequal":
            a, b = draw(st.sampled_from(same))
            more.append(Comparison(a, "!=", b))
        else:
            more.append(draw(_aggregates_drawn(types)))
    return Clause(clause.head, draw(st.permutations([*clause.body, *more])))


@st.composite
def _aggregates_drawn(draw, types: dict) -> Comparison:
    """A comparison of an aggregate of one or two atoms that shares a variable with a clause."""
    local: dict[str, list[Variable]] = {}
    atoms, numbers = [], []
    for k in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted(PREDICATES)))
        terms: list[Variable | Constant] = []
        for place, kind in enumerate(PREDICATES[name]):
            known = [t for t, own in types.items() if own == kind] + local.get(kind, [])
            choice = draw(st.integers(0, 4))
            if choice == 0:
                values = [v for v in VALUES[kind] if v is not None]
                terms.append(Constant(draw(st.sampled_from(values))))
            elif choice <= 2 and known:
                terms.append(draw(st.sampled_from(known)))
            else:
                new = Variable(f"L{k}{place}")
                local.setdefault(kind, []).append(new)
                terms.append(new)
        atoms.append(Atom(name, tuple(terms)))
    every = [t for atom in atoms for t in atom.terms]
    if not any(t in types for t in every):
        atoms.append(Atom("happy", (Variable("A"),)))
    numbers = [t for t in local.get("thing", []) if t in every]
    operators = st.sampled_from(["<=", ">", ">="])
    if numbers and draw(st.booleans()):
        function = draw(st.sampled_from(["min", "max", "sum", "mean"]))
        aggregate = Aggregate(function, tuple(atoms), draw(st.sampled_from(numbers)))
        return Comparison(aggregate, draw(operators), Constant(draw(st.sampled_from([1, 1.7, 4]))))
    count = Aggregate("count", tuple(atoms))
    return Comparison(count, draw(operators), Constant(draw(st.integers(0, 3))))


def friends(seed: int = 0, n: int = 60) -> tuple[RelationalData, np.ndarray]:
    """People who smoke, own things and have friends; y: a friend of one's own smokes, with noise."""
    rng = np.random.default_rng(seed)
    names = np.array([f"p{k:03d}" for k in range(n)])
    pairs = rng.integers(0, n, size=(3 * n, 2))
    smokes = rng.random(n) < 0.2
    colour = rng.choice(["red", "green", "blue"], size=n)
    tables = {
        "friends": pd.DataFrame({"a": names[pairs[:, 0]], "b": names[pairs[:, 1]]}),
        "smokes": pd.DataFrame({"person": names[smokes]}),
        "likes": pd.DataFrame({"person": names, "colour": colour}),
    }
    y = np.zeros(n, dtype=int)
    y[pairs[smokes[pairs[:, 1]], 0]] = 1
    y ^= rng.random(n) < 0.05
    types = {
        "ill": ["person"],
        "friends": ["person", "person"],
        "smokes": ["person"],
        "likes": ["person", "colour"],
    }
    data = RelationalData(tables, pd.DataFrame({"person": names}), target="ill", types=types)
    return data, y
