"""Bottom clauses: the facts around an example, and the literals that are true of it.

From the constants of a positive example the modes are followed layer by layer: facts whose inputs are known
add their outputs to what is known (saturation, as in Progol and Aleph). Candidate atoms are true of these
facts under some binding of the clause's variables, so a clause made of them covers the example.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, count, product
from typing import NamedTuple

import numpy as np
import pandas as pd

from toprank.rules.relational.background import Background, TimeUpError
from toprank.rules.relational.clause import Body, CodedAtom, CodedComparison, CodedLiteral
from toprank.rules.relational.schema import WIDE, Schema

MAX_BINDINGS = 500  # bindings of one clause that are followed for its example
# known variables that the outputs of one literal may repeat: more would be 2^arity literals a fact
MAX_REPEATED = 2

#: terms of a literal under construction: None is a new variable that has no number yet
OpenTerms = tuple[int | None, ...]


# -- from an example to the facts around it --------------------------------------------------------


@dataclass(frozen=True)
class ModeCall:
    """A mode with everything that looking up its facts needs."""

    predicate: int  # position in the schema
    kinds: tuple[str, ...]
    types: tuple[str, ...]
    recall: int  # most facts for each binding of the inputs
    repeats: tuple[bool, ...]  # whether an output may be a variable that the clause has already

    def positions(self, kind: str) -> list[int]:
        return [p for p, k in enumerate(self.kinds) if k == kind]

    def rows(
        self, background: Background, known: Mapping[str, np.ndarray], *, last: bool
    ) -> np.ndarray:
        """Return the facts whose inputs are known, at most `recall` for each binding of them.

        In the last layer outputs must be known too: nothing new may be introduced there.
        """
        inputs = self.positions("+")
        checked = sorted([*inputs, *self.positions("-")]) if last else inputs
        if not all(self.types[p] in known for p in checked):
            return np.empty(0, dtype=np.int64)
        facts = background.rows(self.predicate)
        if not inputs:
            rows = np.arange(min(self.recall, len(facts)))
        else:
            order, values = background.index(self.predicate, inputs[0])
            recall = self.recall if len(inputs) == 1 else None
            rows = order[_positions_of(known[self.types[inputs[0]]], values, recall)]
        for p in checked:
            if p not in inputs[:1]:
                rows = rows[np.isin(facts[rows, p], known[self.types[p]])]
        if len(inputs) > 1:
            rows = np.sort(rows)
            calls = pd.DataFrame(facts[rows][:, inputs]).groupby(list(range(len(inputs))))
            rows = rows[calls.cumcount().to_numpy() < self.recall]
        return rows


def _positions_of(wanted: np.ndarray, values: np.ndarray, most: int | None) -> np.ndarray:
    """Return the positions of the wanted values in a sorted array, at most `most` of each."""
    starts = np.searchsorted(values, wanted, side="left")
    counts = np.searchsorted(values, wanted, side="right") - starts
    if most is not None:
        counts = np.minimum(counts, most)
    shifts = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    return np.arange(counts.sum()) + shifts


@dataclass(frozen=True)
class Saturation:
    """How bottom clauses are built.

    Of each call the facts that come first in the order of their values are taken. Where a predicate has
    more than `max_facts`, those nearest to the example are kept: its own facts always, and of the
    first layer that does not fit a sample.
    """

    schema: Schema
    max_depth: int = 2  # of the deepest variable that may be introduced
    recall: int = 10  # most facts that one call of a mode adds, where the mode itself does not say
    max_facts: int = 500  # most facts of one predicate

    @cached_property
    def calls(self) -> tuple[ModeCall, ...]:
        """The modes, ready to be looked up.

        In tables of more than `WIDE` columns an output repeats a known variable only if some mode takes
        its type as an input: equal properties would be most of the literals, and of little use.
        """
        known = {p.name: (j, p.types) for j, p in enumerate(self.schema.predicates)}
        inputs = {
            name
            for mode in self.schema.modes
            for name, kind in zip(known[mode.predicate][1], mode.kinds, strict=True)
            if kind == "+"
        }
        calls = []
        for mode in self.schema.modes:
            j, types = known[mode.predicate]
            repeats = tuple(len(types) <= WIDE or name in inputs for name in types)
            calls.append(ModeCall(j, mode.kinds, types, mode.recall or self.recall, repeats))
        return tuple(calls)

    def of(self, background: Background, head: Sequence[int]) -> BottomClause:
        """Build the bottom clause of an example given by the codes of its arguments."""
        known: dict[str, np.ndarray] = {}
        new = [(list(self.schema.target.types), np.array([head]))]
        rows_of: dict[int, list[tuple[int, np.ndarray]]] = {}
        for layer in range(self.max_depth + 1):
            for types, facts in new:
                for name, column in zip(types, facts.T, strict=True):
                    values = column[column >= 0]
                    known[name] = np.union1d(known.get(name, values), values)
            new = []
            for call in self.calls:
                rows = call.rows(background, known, last=layer == self.max_depth)
                if len(rows):
                    rows_of.setdefault(call.predicate, []).append((layer, rows))
                    outputs = call.positions("-")
                    facts = background.rows(call.predicate)[rows][:, outputs]
                    new.append(([call.types[p] for p in outputs], facts))
        facts_of = {}
        for j, parts in sorted(rows_of.items()):
            random = np.random.default_rng([j, *(abs(int(code)) for code in head)])
            rows = _nearest(parts, self.max_facts, random)
            facts_of[j] = [tuple(row) for row in background.rows(j)[rows].tolist()]
        return BottomClause(self, tuple(map(int, head)), facts_of)


def _nearest(
    parts: Sequence[tuple[int, np.ndarray]], most: int, random: np.random.Generator
) -> np.ndarray:
    """Return the rows of the nearest layers, sorted: the first whole, at most so many in all."""
    every = np.concatenate([rows for _, rows in parts])
    layers = np.repeat([layer for layer, _ in parts], [len(rows) for _, rows in parts])
    rows, first = np.unique(every, return_index=True)  # the parts are in the order of the layers
    if len(rows) <= most:
        return rows
    distance = np.where(layers[first] == 0, -1.0, layers[first] + random.random(len(rows)))
    n_own = int((distance < 0).sum())
    nearest = np.argsort(distance, kind="stable")[: max(most, n_own)]
    return np.sort(rows[nearest])


# -- clauses inside a bottom clause ----------------------------------------------------------------


@dataclass(frozen=True)
class Partial:
    """A clause under construction, seen from the example it started from."""

    body: Body
    types: tuple[str, ...]  # of each variable
    depths: tuple[int, ...]  # how many literals lie between each variable and the head
    bindings: tuple[tuple[int, ...], ...]  # values of the variables that make the body true

    def implies(self, literal: CodedAtom) -> bool:
        """Return whether some atom is the literal with values in place of its new variables."""
        n_known = len(self.types)
        return any(
            isinstance(atom, CodedAtom)
            and atom.predicate == literal.predicate
            and all(a == b or b >= n_known for a, b in zip(atom.terms, literal.terms, strict=True))
            for atom in self.body
        )


class Refinement(NamedTuple):
    """A literal that may be added."""

    n_new: int  # variables it introduces
    literal: CodedAtom
    implied: bool  # whether the clause already says as much, so that only the new variables matter


@dataclass(frozen=True)
class BottomClause:
    """The facts around one example."""

    saturation: Saturation
    head: tuple[int, ...]  # codes of the example's arguments
    facts: dict[int, list[tuple[int, ...]]]  # by predicate, sorted; -1 for a missing argument
    # by predicate and place, the facts with each value there; as they are asked for
    _indexes: dict[tuple[int, int], dict[int, list[tuple[int, ...]]]] = field(default_factory=dict)

    def start(self) -> Partial:
        target = self.saturation.schema.target
        return Partial((), target.types, (0,) * target.arity, (self.head,))

    def extend(self, partial: Partial, literal: CodedLiteral) -> Partial:
        """Return a clause with one literal more; comparisons leave the bindings as they are."""
        if isinstance(literal, CodedComparison):
            return replace(partial, body=(*partial.body, literal))
        predicate = self.saturation.schema.predicates[literal.predicate]
        n_known = len(partial.types)
        types, depths = list(partial.types), list(partial.depths)
        depth = 1 + max((partial.depths[v] for v in literal.variables if v < n_known), default=-1)
        for term, name in zip(literal.terms, predicate.types, strict=True):
            if term == len(types):
                types.append(name)
                depths.append(depth)
        bindings: dict[tuple[int, ...], None] = {}
        for binding in partial.bindings:
            for fact in self.facts.get(literal.predicate, ()):
                extended = _extend_binding(binding, literal.terms, fact, len(types))
                if extended is not None:
                    bindings[extended] = None
            if len(bindings) >= MAX_BINDINGS:
                break
        kept = tuple(bindings)[:MAX_BINDINGS]
        return Partial((*partial.body, literal), tuple(types), tuple(depths), kept)

    def _facts_of(self, call: ModeCall, literals: _LiteralsOf) -> Iterator[tuple[int, ...]]:
        """Yield the facts whose first input is a value of some variable; without inputs, all."""
        inputs = call.positions("+")
        if not inputs:
            yield from self.facts.get(call.predicate, ())
            return
        key = call.predicate, inputs[0]
        if key not in self._indexes:
            self._indexes[key] = {}
            for fact in self.facts.get(call.predicate, ()):
                self._indexes[key].setdefault(fact[inputs[0]], []).append(fact)
        for code in literals.values.get(call.types[inputs[0]], ()):
            yield from self._indexes[key].get(code, ())

    def refinements(self, partial: Partial, deadline: float = math.inf) -> list[Refinement]:
        """Return the literals that some binding makes true, those with few new variables first.

        The outputs of a literal repeat at most `MAX_REPEATED` known variables. Past the deadline (on
        the clock of `time.monotonic`) `TimeUpError` is raised.
        """
        literals = _LiteralsOf(partial, self.saturation.max_depth)
        for call in self.saturation.calls:
            for fact in self._facts_of(call, literals):
                if time.monotonic() > deadline:
                    raise TimeUpError
                literals.add(call, fact)
        return sorted(
            Refinement(n_new, literal, partial.implies(literal))
            for literal, n_new in literals.found.items()
            if literal not in partial.body
        )


class _LiteralsOf:
    """The literals that facts allow to add to a clause, each with its number of new variables."""

    def __init__(self, partial: Partial, max_depth: int) -> None:
        self.partial = partial
        self.max_depth = max_depth
        self.found: dict[CodedAtom, int] = {}
        self._holders: dict[tuple[str, int], list[int]] = {}  # variables that can be a constant
        self.values: dict[str, set[int]] = {}  # that variables of a type have
        for variable, name in enumerate(partial.types):
            for code in sorted({binding[variable] for binding in partial.bindings}):
                if code >= 0:
                    self._holders.setdefault((name, code), []).append(variable)
                    self.values.setdefault(name, set()).add(code)
        self._joint_values: dict[tuple[int, ...], set[tuple[int, ...]]] = {}

    def add(self, call: ModeCall, fact: Sequence[int]) -> None:
        """Add the literals that are this fact, used as a mode allows, under some binding."""
        for terms in _combinations(self._choices(call, fact)):
            numbers = count(len(self.partial.types))
            numbered = tuple(next(numbers) if term is None else term for term in terms)
            literal = CodedAtom(call.predicate, numbered)
            if literal in self.found or not self._is_true(terms, fact):
                continue
            inputs = [numbered[p] for p in call.positions("+")]
            depth = 1 + max((self.partial.depths[v] for v in inputs), default=-1)
            if None not in terms or depth <= self.max_depth:
                self.found[literal] = terms.count(None)

    def _choices(self, call: ModeCall, fact: Sequence[int]) -> list[Sequence[int | None]]:
        """Return the terms that each argument may be; nothing where one of them can be none."""
        choices: list[Sequence[int | None]] = []
        for kind, name, repeats, code in zip(
            call.kinds, call.types, call.repeats, fact, strict=True
        ):
            terms: Sequence[int | None]
            if kind == "#":
                terms = () if code < 0 else (-code - 1,)
            elif kind == "+":
                terms = self._holders.get((name, code), ())
            else:
                terms = (None, *(self._holders.get((name, code), ()) if repeats else ()))
            if not terms:
                return []
            choices.append(terms)
        return choices

    def _is_true(self, terms: OpenTerms, fact: Sequence[int]) -> bool:
        """Return whether some binding gives all variables of a literal the values of a fact at once."""
        bound = [(t, code) for t, code in zip(terms, fact, strict=True) if t is not None and t >= 0]
        if len(bound) < 2:
            return True  # each variable was chosen because one of its values fits
        variables = tuple(t for t, _ in bound)
        if variables not in self._joint_values:
            self._joint_values[variables] = {
                tuple(binding[v] for v in variables) for binding in self.partial.bindings
            }
        return tuple(code for _, code in bound) in self._joint_values[variables]


def _combinations(choices: Sequence[Sequence[int | None]]) -> Iterator[OpenTerms]:
    """Choose one term for each argument; of those that may be new, at most `MAX_REPEATED` are not."""
    if not choices:
        return
    optional = [p for p, terms in enumerate(choices) if terms[0] is None]
    known = [p for p in optional if len(choices[p]) > 1]
    for n_repeated in range(min(MAX_REPEATED, len(known)) + 1):
        for repeated in combinations(known, n_repeated):
            narrowed = [
                terms if p not in optional else terms[1:] if p in repeated else terms[:1]
                for p, terms in enumerate(choices)
            ]
            yield from product(*narrowed)


def _extend_binding(
    binding: tuple[int, ...], terms: Sequence[int], fact: Sequence[int], n_variables: int
) -> tuple[int, ...] | None:
    """Return a binding extended so that a literal becomes this fact, or None if it cannot."""
    n_known = len(binding)
    values = list(binding) + [-1] * (n_variables - n_known)
    for term, code in zip(terms, fact, strict=True):
        if term >= n_known:
            values[term] = code
        elif code < 0 or code != (values[term] if term >= 0 else -term - 1):
            return None
    return tuple(values)
