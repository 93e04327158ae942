"""Bottom clauses: everything that is true of one example, within limits.

From the constants of a positive example, the modes are followed layer by layer: facts whose inputs are
known add their outputs to what is known (saturation, as in Progol and Aleph). A literal is a candidate
to refine a clause if some binding of the clause's variables inside these facts makes it true, so every
clause of the search covers the example it started from.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np

from toprank.rules.relational.background import Background
from toprank.rules.relational.calls import Call
from toprank.rules.relational.clause import Clause
from toprank.rules.relational.coded import Body, CodedAtom, decode
from toprank.rules.relational.modes import WIDE, Schema
from toprank.rules.relational.queries import TimeUpError

__all__ = ["BottomClause", "Partial", "Refinement", "Saturation"]

MAX_BINDINGS = 500  # bindings of one clause that are followed for its example
# known variables that the outputs of one literal may repeat: more would be 2^arity literals a fact
MAX_REPEATED = 2
NEW = -1  # stands for a new variable while a literal is put together


@dataclass(frozen=True)
class Partial:
    """A clause under construction, seen from the example it started from.

    Attributes
    ----------
    body : tuple of CodedAtom
    types : tuple of str
        Type of each variable.
    depths : tuple of int
        How many literals lie between each variable and the head.
    bindings : tuple of tuple of int
        Values of the variables for which the body is true of the example.
    """

    body: Body
    types: tuple[str, ...]
    depths: tuple[int, ...]
    bindings: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Refinement:
    """A literal that may be added.

    Attributes
    ----------
    literal : CodedAtom
    n_new : int
        Variables it introduces.
    implied : bool
        Whether an atom of the clause already says as much, so that only its new variables matter.
    """

    literal: CodedAtom
    n_new: int
    implied: bool


@dataclass(frozen=True)
class Saturation:
    """How bottom clauses are built.

    Attributes
    ----------
    schema : Schema
    max_depth : int
        Deepest variable that may be introduced.
    recall : int
        Most facts that one call of a mode adds, where the mode itself says nothing; those that come
        first in the order of their values are kept.
    max_facts : int
        Most facts of one predicate, kept in the same order.
    """

    schema: Schema
    max_depth: int = 2
    recall: int = 10
    max_facts: int = 500

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The modes, ready to be looked up.

        In tables of more than `WIDE` columns an output repeats a known variable only if some mode takes
        its type as an input: equal properties would be most of the literals, and of little use.
        """
        positions = [self.schema.index(mode.predicate) for mode in self.schema.modes]
        types = [self.schema.predicates[j].types for j in positions]
        taken = {
            name
            for mode, names in zip(self.schema.modes, types, strict=True)
            for kind, name in zip(mode.kinds, names, strict=True)
            if kind == "+"
        }
        return tuple(
            Call(
                j,
                mode.kinds,
                names,
                self.recall if mode.recall is None else mode.recall,
                tuple(len(names) <= WIDE or name in taken for name in names),
            )
            for j, mode, names in zip(positions, self.schema.modes, types, strict=True)
        )

    def of(self, background: Background, head: Sequence[int]) -> BottomClause:
        """Build the bottom clause of an example given by the codes of its arguments."""
        known: dict[str, np.ndarray] = {}
        _learn(known, self.schema.target.types, np.array([head]))
        found: dict[int, list[np.ndarray]] = {}
        for layer in range(self.max_depth + 1):
            last = layer == self.max_depth
            new: list[tuple[list[str], np.ndarray]] = []
            for call in self.calls:
                rows = call.rows(background, known, last=last)
                if len(rows):
                    found.setdefault(call.predicate, []).append(rows)
                    outputs = [p for p, kind in enumerate(call.kinds) if kind == "-"]
                    facts = background.rows(call.predicate)[rows][:, outputs]
                    new.append(([call.types[p] for p in outputs], facts))
            for names, facts in new:
                _learn(known, names, facts)
        facts_of = {}
        for j, parts in sorted(found.items()):
            rows = np.unique(np.concatenate(parts))[: self.max_facts]
            facts_of[j] = [tuple(row) for row in background.rows(j)[rows].tolist()]
        return BottomClause(self, tuple(map(int, head)), facts_of)


@dataclass(frozen=True)
class BottomClause:
    """The facts around one example.

    Attributes
    ----------
    saturation : Saturation
    head : tuple of int
        Codes of the example's arguments.
    facts : dict of int to list of tuple of int
        Facts by predicate, sorted; -1 for a missing argument.
    """

    saturation: Saturation
    head: tuple[int, ...]
    facts: dict[int, list[tuple[int, ...]]]

    def start(self) -> Partial:
        """The most general clause."""
        target = self.saturation.schema.target
        return Partial((), target.types, (0,) * target.arity, (self.head,))

    def extend(self, partial: Partial, literal: CodedAtom) -> Partial:
        """A clause with one literal more."""
        schema = self.saturation.schema
        n_known = len(partial.types)
        types, depths = list(partial.types), list(partial.depths)
        depth = 1 + max((partial.depths[v] for v in literal.variables if v < n_known), default=-1)
        for term, name in zip(
            literal.terms, schema.predicates[literal.predicate].types, strict=True
        ):
            if term == len(types):
                types.append(name)
                depths.append(depth)
        bindings: dict[tuple[int, ...], None] = {}
        rows = self.facts.get(literal.predicate, [])
        for binding in partial.bindings:
            for row in rows:
                extended = _match(literal.terms, row, binding, len(types))
                if extended is not None:
                    bindings[extended] = None
            if len(bindings) >= MAX_BINDINGS:
                break
        kept = tuple(bindings)[:MAX_BINDINGS]
        return Partial((*partial.body, literal), tuple(types), tuple(depths), kept)

    def refinements(self, partial: Partial, deadline: float | None = None) -> list[Refinement]:
        """Literals that some binding makes true, each once; those with few new variables first.

        The outputs of a literal repeat at most `MAX_REPEATED` known variables. Past the deadline (on
        the clock of `time.monotonic`) `TimeUpError` is raised.
        """
        holders: dict[tuple[str, int], list[int]] = {}
        for v, name in enumerate(partial.types):
            for code in sorted({binding[v] for binding in partial.bindings}):
                if code >= 0:
                    holders.setdefault((name, code), []).append(v)
        joint = _Joint(partial.bindings)
        found: dict[CodedAtom, int] = {}
        for call in self.saturation.calls:
            self._literals(call, partial, holders, joint, found, deadline)
        refinements = [
            Refinement(literal, n_new, _implied(literal, partial))
            for literal, n_new in found.items()
            if literal not in partial.body
        ]
        return sorted(refinements, key=lambda r: (r.n_new, r.literal))

    def _literals(
        self,
        call: Call,
        partial: Partial,
        holders: dict[tuple[str, int], list[int]],
        joint: _Joint,
        found: dict[CodedAtom, int],
        deadline: float | None,
    ) -> None:
        """Add the literals of one mode to `found`, with the number of their new variables."""
        n_known = len(partial.types)
        arguments = list(zip(call.kinds, call.types, call.repeats, strict=True))
        for row in self.facts.get(call.predicate, ()):
            if deadline is not None and time.monotonic() > deadline:
                raise TimeUpError
            choices: list[Sequence[int]] = []
            for (kind, name, repeats), code in zip(arguments, row, strict=True):
                if kind == "#":
                    choices.append(() if code < 0 else (-code - 2,))  # below NEW, undone by _number
                else:
                    variables = holders.get((name, code), [])
                    fresh = [NEW, *variables] if repeats else [NEW]
                    choices.append(variables if kind == "+" else fresh)
                if not choices[-1]:
                    break
            else:
                for terms in _choose(choices):
                    literal = CodedAtom(call.predicate, _number(terms, n_known))
                    if literal in found or not joint.holds(terms, row):
                        continue
                    if self._allowed(call, terms, partial):
                        found[literal] = terms.count(NEW)

    def _allowed(self, call: Call, terms: Sequence[int], partial: Partial) -> bool:
        """Whether the new variables of a literal would not lie too deep."""
        if NEW not in terms:
            return True
        inputs = [
            partial.depths[t] for t, kind in zip(terms, call.kinds, strict=True) if kind == "+"
        ]
        return 1 + max(inputs, default=-1) <= self.saturation.max_depth

    def clause(self, background: Background) -> Clause:
        """The bottom clause as it is usually written: one variable for each constant that a mode hides."""
        schema = self.saturation.schema
        names: dict[tuple[str, int], int] = {}
        for name, code in zip(schema.target.types, self.head, strict=True):
            names.setdefault((name, code), len(names))
        first = [names[key] for key in zip(schema.target.types, self.head, strict=True)]
        body: dict[CodedAtom, None] = {}
        for call in self.saturation.calls:
            for row in self.facts.get(call.predicate, ()):
                keys = list(zip(call.types, row, strict=True))
                inputs = [k for k, kind in zip(keys, call.kinds, strict=True) if kind == "+"]
                if not all(key in names and key[1] >= 0 for key in inputs):
                    continue
                terms = [
                    -code - 1 if kind == "#" else names.setdefault((name, code), len(names))
                    for kind, (name, code) in zip(call.kinds, keys, strict=True)
                ]
                body[CodedAtom(call.predicate, tuple(terms))] = None
        places = {number: k for k, number in enumerate(dict.fromkeys(first))}
        shift = schema.target.arity
        renamed = [
            CodedAtom(a.predicate, tuple(t if t < 0 else places.get(t, t + shift) for t in a.terms))
            for a in body
        ]
        return decode(renamed, schema, background)


def _learn(known: dict[str, np.ndarray], names: Sequence[str], facts: np.ndarray) -> None:
    """Add the values of columns of facts to the known values of their types."""
    for name, column in zip(names, facts.T, strict=True):
        codes = np.concatenate([known.get(name, np.empty(0, np.int64)), column[column >= 0]])
        if len(codes):
            known[name] = np.unique(codes)


class _Joint:
    """Whether some binding gives several variables given values at once."""

    def __init__(self, bindings: Sequence[tuple[int, ...]]) -> None:
        self.bindings = bindings
        self._seen: dict[tuple[int, ...], set[tuple[int, ...]]] = {}

    def holds(self, terms: Sequence[int], row: Sequence[int]) -> bool:
        bound = [(t, code) for t, code in zip(terms, row, strict=True) if t >= 0]
        if len(bound) < 2:
            return True  # each variable was chosen because one of its values fits
        variables = tuple(t for t, _ in bound)
        if variables not in self._seen:
            self._seen[variables] = {tuple(b[v] for v in variables) for b in self.bindings}
        return tuple(code for _, code in bound) in self._seen[variables]


def _choose(choices: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """One term for each argument; of those that may be new, at most `MAX_REPEATED` are not."""
    optional = [p for p, terms in enumerate(choices) if terms[0] == NEW]
    known = [p for p in optional if len(choices[p]) > 1]
    for n_repeated in range(min(MAX_REPEATED, len(known)) + 1):
        for repeated in combinations(known, n_repeated):
            narrowed = [
                terms if p not in optional else terms[1:] if p in repeated else terms[:1]
                for p, terms in enumerate(choices)
            ]
            yield from product(*narrowed)


def _number(terms: Sequence[int], n_known: int) -> tuple[int, ...]:
    """Give new variables the next numbers and constants their form in a coded atom."""
    numbered, n_new = [], 0
    for term in terms:
        if term == NEW:
            numbered.append(n_known + n_new)
            n_new += 1
        else:
            numbered.append(term + 1 if term < NEW else term)
    return tuple(numbered)


def _match(
    terms: Sequence[int], row: Sequence[int], binding: tuple[int, ...], n_variables: int
) -> tuple[int, ...] | None:
    """A binding extended so that a literal becomes this fact, or None."""
    values = list(binding) + [-1] * (n_variables - len(binding))
    n_known = len(binding)
    for term, code in zip(terms, row, strict=True):
        if term < 0:
            if code != -term - 1:
                return None
        elif term < n_known:
            if code < 0 or values[term] != code:
                return None
        else:
            values[term] = code
    return tuple(values)


def _implied(literal: CodedAtom, partial: Partial) -> bool:
    """Whether an atom of the clause is the literal with something in place of its new variables."""
    n_known = len(partial.types)
    return any(
        atom.predicate == literal.predicate
        and all(a == b or b >= n_known for a, b in zip(atom.terms, literal.terms, strict=True))
        for atom in partial.body
    )
