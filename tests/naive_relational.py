"""A backtracking prover: what relational coverage means, one example at a time."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from toprank.rules.relational.clause import (
    Aggregate,
    Atom,
    Clause,
    Comparison,
    Constant,
    Term,
    Variable,
)

Row = tuple[Any, ...]


class Prover:
    """Proves clauses by trying facts one by one, as Prolog does.

    Facts are rows of plain values; None is a missing argument, which equals nothing. They are found
    through an index on each argument.
    """

    def __init__(self, facts: Mapping[str, Sequence[Row]]) -> None:
        self.facts = {name: list(rows) for name, rows in facts.items()}
        self.index: dict[tuple[str, int, Any], list[Row]] = defaultdict(list)
        for name, rows in self.facts.items():
            for row in rows:
                for place, value in enumerate(row):
                    self.index[name, place, value].append(row)

    @classmethod
    def of_tables(
        cls, tables: Mapping[str, pd.DataFrame], columns: Mapping[str, Sequence[str]]
    ) -> Prover:
        """Facts of frames, by the argument columns of each."""
        return cls({name: plain_rows(frame[list(columns[name])]) for name, frame in tables.items()})

    def covers(self, clause: Clause, example: Row) -> bool:
        """Whether some binding makes the body of the clause true of an example."""
        atoms = [literal for literal in clause.body if isinstance(literal, Atom)]
        tests = [literal for literal in clause.body if isinstance(literal, Comparison)]
        start = dict(zip(clause.head.terms, example, strict=True))
        return any(all(self._holds(t, b) for t in tests) for b in self._bindings(atoms, start))

    def mask(self, clause: Clause, examples: Sequence[Row]) -> list[bool]:
        return [self.covers(clause, example) for example in examples]

    def _bindings(
        self, goals: Sequence[Atom], binding: dict[Term, Any]
    ) -> Iterator[dict[Term, Any]]:
        """Every binding that extends a given one and makes the goals facts."""
        if not goals:
            yield binding
            return
        first, *rest = goals
        for row in self._matching(first, binding):
            extended = _unify(first, row, binding)
            if extended is not None:
                yield from self._bindings(rest, extended)

    def value(self, aggregate: Aggregate, binding: dict[Term, Any]) -> float | None:
        """An aggregate over the distinct bindings of its local variables; None where it has no value."""
        own = [t for t in dict.fromkeys(aggregate.terms) if isinstance(t, Variable)]
        found = {tuple(b[t] for t in own) for b in self._bindings(aggregate.atoms, binding)}
        if aggregate.variable is None:
            return len(found)
        place = own.index(aggregate.variable)
        numbers = [row[place] for row in found if row[place] is not None]
        if not numbers:
            return None
        of = {"min": min, "max": max, "sum": sum, "mean": lambda v: sum(v) / len(v)}
        return of[aggregate.function](numbers)

    def _holds(self, literal: Comparison, binding: dict[Term, Any]) -> bool:
        left = literal.left
        value = self.value(left, binding) if isinstance(left, Aggregate) else binding[left]
        right = literal.right
        other = right.value if isinstance(right, Constant) else binding[right]
        if value is None or other is None:
            return False
        compare = {"<=": operator.le, ">": operator.gt, ">=": operator.ge, "!=": operator.ne}
        return compare[literal.operator](value, other)

    def _matching(self, atom: Atom, binding: dict[Term, Any]) -> list[Row]:
        """Facts that may match: those of the rarest argument that is known."""
        best = self.facts[atom.predicate]
        for place, term in enumerate(atom.terms):
            if isinstance(term, Constant) or term in binding:
                value = term.value if isinstance(term, Constant) else binding[term]
                found = self.index.get((atom.predicate, place, value), [])
                best = min(best, found, key=len)
        return best


def _unify(atom: Atom, row: Row, binding: dict[Term, Any]) -> dict[Term, Any] | None:
    extended = dict(binding)
    for term, value in zip(atom.terms, row, strict=True):
        if isinstance(term, Constant):
            if value is None or value != term.value:
                return None
        elif term in extended:
            if value is None or extended[term] is None or extended[term] != value:
                return None
        else:
            extended[term] = value
    return extended


def plain_rows(frame: pd.DataFrame) -> list[Row]:
    """Rows of a frame as tuples of Python values, None where missing."""
    cells = frame.astype(object).where(frame.notna(), None)
    return [
        tuple(v.item() if hasattr(v, "item") else v for v in row)
        for row in cells.itertuples(index=False, name=None)
    ]
