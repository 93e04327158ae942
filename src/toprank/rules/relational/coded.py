"""Clauses as tuples of integers: what the search and the SQL work on.

A term that is 0 or above is a variable (the head's arguments are 0, 1, ..., further ones follow in the
order in which they were introduced); a term below 0 is the constant of code `-term - 1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toprank.rules.relational.background import Background
from toprank.rules.relational.clause import Atom, Clause, Constant, Term, Variable, variable_name
from toprank.rules.relational.modes import Schema

__all__ = ["Body", "CodedAtom", "attached", "canonical", "components", "decode", "encode"]


class CodedAtom(NamedTuple):
    """An atom: the position of its predicate in the schema, and its terms."""

    predicate: int
    terms: tuple[int, ...]

    @property
    def variables(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(term for term in self.terms if term >= 0))


Body = tuple[CodedAtom, ...]


def inner_variables(atoms: Iterable[CodedAtom], n_heads: int) -> set[int]:
    """Variables of atoms that are not the head's."""
    return {v for atom in atoms for v in atom.variables if v >= n_heads}


def attached(body: Sequence[CodedAtom], start: Iterable[int], n_heads: int) -> Body:
    """The atoms that hang together with some inner variables, in the order of the body."""
    reached = {v for v in start if v >= n_heads}
    found: set[int] = set()
    grown = True
    while grown:
        grown = False
        for k, atom in enumerate(body):
            inner = inner_variables([atom], n_heads)
            if k not in found and inner & reached:
                found.add(k)
                grown = True
                reached |= inner
    return tuple(body[k] for k in sorted(found))


def components(body: Sequence[CodedAtom], n_heads: int) -> list[Body]:
    """Split a body into parts that share no inner variable.

    Given the head's arguments the parts are independent: a clause covers an example exactly if each of
    its parts does.

    Examples
    --------
    >>> p, q = CodedAtom(0, (0, 1)), CodedAtom(1, (1,))
    >>> components([p, CodedAtom(1, (0,)), q], n_heads=1) == [(p, q), (CodedAtom(1, (0,)),)]
    True
    """
    parts: list[Body] = []
    seen: set[CodedAtom] = set()
    for atom in body:
        if atom in seen:
            continue
        inner = inner_variables([atom], n_heads)
        part = attached(body, inner, n_heads) if inner else (atom,)
        seen.update(part)
        parts.append(part)
    return parts


def canonical(atoms: Sequence[CodedAtom], n_heads: int) -> Body:
    """Number the inner variables in order of appearance, so that equal parts compare equal.

    Examples
    --------
    >>> canonical([CodedAtom(0, (0, 5)), CodedAtom(1, (5, 3))], n_heads=1)
    (CodedAtom(predicate=0, terms=(0, 1)), CodedAtom(predicate=1, terms=(1, 2)))
    """
    names: dict[int, int] = {}

    def rename(term: int) -> int:
        return term if term < n_heads else names.setdefault(term, n_heads + len(names))

    return tuple(CodedAtom(a.predicate, tuple(map(rename, a.terms))) for a in atoms)


def decode(body: Sequence[CodedAtom], schema: Schema, background: Background) -> Clause:
    """The clause with its predicates' names, variables and constants."""
    atoms = []
    for atom in canonical(body, schema.target.arity):
        predicate = schema.predicates[atom.predicate]
        terms: list[Term] = []
        for term, name in zip(atom.terms, predicate.types, strict=True):
            if term >= 0:
                terms.append(Variable(variable_name(term)))
            else:
                code = -term - 1
                terms.append(Constant(background.values(name, [code])[code]))
        atoms.append(Atom(predicate.name, tuple(terms)))
    head = tuple(Variable(variable_name(k)) for k in range(schema.target.arity))
    return Clause(Atom(schema.target.name, head), tuple(atoms))


def encode(clause: Clause, schema: Schema, background: Background) -> Body:
    """The body of a clause in codes; a constant that no fact has gets a code that joins nothing."""
    if clause.head.predicate != schema.target.name or len(clause.head.terms) != schema.target.arity:
        raise ValueError(
            f"the clause is about {clause.head}, the examples are of {schema.target.name!r} with "
            f"{schema.target.arity} arguments"
        )
    numbers: dict[Term, int] = {term: k for k, term in enumerate(clause.head.terms)}
    types: dict[Term, str] = dict(zip(clause.head.terms, schema.target.types, strict=True))
    body = []
    for atom in clause.body:
        index = schema.index(atom.predicate)
        predicate = schema.predicates[index]
        if len(atom.terms) != predicate.arity:
            raise ValueError(
                f"{atom} has {len(atom.terms)} arguments, the table of {atom.predicate!r} "
                f"has {predicate.arity} columns"
            )
        terms = []
        for term, name in zip(atom.terms, predicate.types, strict=True):
            if isinstance(term, Constant):
                terms.append(-background.code(name, term.value) - 1)
                continue
            if types.setdefault(term, name) != name:
                raise ValueError(
                    f"{clause} uses {term} both as {types[term]!r} and as {name!r} (in {atom}): "
                    "these types do not join"
                )
            terms.append(numbers.setdefault(term, len(numbers)))
        body.append(CodedAtom(index, tuple(terms)))
    return tuple(body)
