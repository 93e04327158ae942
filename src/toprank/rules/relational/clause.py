"""Clauses: conjunctions of atoms over background predicates, as text, as SQL and in integer codes.

A clause covers an example when some binding of its variables makes every atom of its body a fact. In codes,
a term of 0 or above is a variable (the head's arguments are 0, 1, ..., others follow as they are introduced),
a term below 0 the constant of code `-term - 1`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from toprank.rule import Scalar, quote_identifier, sql_value
from toprank.rules.relational.background import Background
from toprank.rules.relational.schema import Schema

__all__ = [
    "Atom",
    "Body",
    "Clause",
    "CodedAtom",
    "Constant",
    "Term",
    "Variable",
    "canonical",
    "components",
    "connected",
    "decode",
    "encode",
    "unify",
    "variable_name",
    "where_sql",
]

_PLAIN_NAME = re.compile(r"[a-z][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Variable:
    """A logical variable.

    Examples
    --------
    >>> print(Variable("A"))
    A
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """A value: text, a number or a boolean.

    Examples
    --------
    >>> print(Constant("faculty"), Constant("New York"), Constant(3))
    faculty 'New York' 3
    """

    value: Scalar

    def __str__(self) -> str:
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, float):
            return repr(self.value)
        return _show_name(self.value) if isinstance(self.value, str) else str(self.value)


Term = Variable | Constant
ANONYMOUS = Variable("_")  # how a variable that occurs once is printed


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate and its arguments.

    Examples
    --------
    >>> print(Atom("hasposition", (Variable("A"), Constant("faculty"))))
    hasposition(A,faculty)
    """

    predicate: str
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return f"{_show_name(self.predicate)}({','.join(map(str, self.terms))})"


@dataclass(frozen=True, slots=True)
class Clause:
    """A head and the atoms that imply it; a clause with no body covers every example.

    Variables that occur once print as `_`.

    Parameters
    ----------
    head : Atom
        The target predicate with a variable for each argument.
    body : tuple of Atom

    Examples
    --------
    >>> A, B, P = map(Variable, "ABP")
    >>> clause = Clause(
    ...     Atom("advised_by", (A, B)),
    ...     (Atom("publication", (P, A)), Atom("publication", (P, B)), Atom("professor", (B,))),
    ... )
    >>> print(clause)
    advised_by(A,B) :- publication(P,A), publication(P,B), professor(B)
    """

    head: Atom
    body: tuple[Atom, ...] = ()

    def __post_init__(self) -> None:
        if not all(isinstance(term, Variable) for term in self.head.terms):
            raise ValueError(f"the head {self.head} must have variables only")
        if len(set(self.head.terms)) < len(self.head.terms):
            raise ValueError(f"the head {self.head} names a variable twice")

    def __len__(self) -> int:
        return len(self.body)

    def __str__(self) -> str:
        if not self.body:
            return f"{self.head}."
        counts = Counter(t for atom in (self.head, *self.body, self.head) for t in atom.terms)
        once = {t for t, count in counts.items() if count == 1 and isinstance(t, Variable)}
        shown = [
            replace(atom, terms=tuple(ANONYMOUS if t in once else t for t in atom.terms))
            for atom in self.body
        ]
        return f"{self.head} :- {', '.join(map(str, shown))}"

    def sql(
        self,
        columns: Mapping[str, Sequence[str]],
        *,
        examples: str = "examples",
        as_text: Collection[tuple[str, str]] = (),
    ) -> str:
        """Write the clause as an SQL condition on a row of the table of examples.

        Parameters
        ----------
        columns : mapping of str to sequence of str
            The columns of each predicate's table, the target's among them (`Schema.columns`).
            Background tables have the names of their predicates.
        examples : str, default="examples"
            Name (or alias) of the table whose rows are tested.
        as_text : collection of (predicate, column)
            Columns that are cast to text before they are compared.

        Returns
        -------
        condition : str

        Examples
        --------
        >>> A = Variable("A")
        >>> clause = Clause(Atom("good", (A,)), (Atom("size", (A, Constant("big"))),))
        >>> print(clause.sql({"good": ["id"], "size": ["item", "value"]}))
        EXISTS (SELECT 1 FROM "size" AS "t0" WHERE "t0"."item" = "examples"."id" AND "t0"."value" = 'big')
        """
        if not self.body:
            return "TRUE"
        prefix = "t"
        while examples.lower().startswith(prefix):  # an alias would hide the table of examples
            prefix += "t"
        tables: list[str] = []
        cells: list[tuple[Any, str]] = []
        for k, atom in enumerate((self.head, *self.body)):
            alias = quote_identifier(f"{prefix}{k - 1}" if k else examples)
            if k:
                tables.append(f"{quote_identifier(atom.predicate)} AS {alias}")
            for term, column in zip(atom.terms, _columns_of(atom, columns), strict=True):
                cell = f"{alias}.{quote_identifier(column)}"
                if (atom.predicate, column) in as_text:
                    cell = f"CAST({cell} AS VARCHAR)"
                if isinstance(term, Constant):
                    cells += [(cell, sql_value(term.value)), (cell, cell)]
                else:
                    cells.append((term, cell))
        _, conditions = unify(cells)
        return f"EXISTS (SELECT 1 FROM {', '.join(tables)}{where_sql(conditions)})"


def variable_name(index: int) -> str:
    """Return the name of variable number `index`: A, B, ..., Z, A1, B1, ..."""
    letter, cycle = chr(ord("A") + index % 26), index // 26
    return f"{letter}{cycle}" if cycle else letter


def unify(cells: Iterable[tuple[Any, str]]) -> tuple[dict[Any, str], list[str]]:
    """Return SQL of the first cell of each term, and the conditions that its other cells equal it.

    Examples
    --------
    >>> unify([("A", "s.x"), ("B", "s.y"), ("A", "t.x")])
    ({'A': 's.x', 'B': 's.y'}, ['t.x = s.x'])
    """
    first: dict[Any, str] = {}
    conditions = []
    for term, cell in cells:
        if term in first:
            conditions.append(f"{cell} = {first[term]}")
        first.setdefault(term, cell)
    return first, conditions


def where_sql(conditions: Sequence[str]) -> str:
    """Return a WHERE clause, or nothing."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _columns_of(atom: Atom, columns: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the columns of an atom's table, or raise an error that names the predicate."""
    if atom.predicate not in columns:
        raise ValueError(
            f"the clause names the predicate {atom.predicate!r}, which is not among "
            f"{', '.join(map(repr, columns))}"
        )
    found = columns[atom.predicate]
    if len(found) != len(atom.terms):
        raise ValueError(f"{atom} has {len(atom.terms)} arguments, its table {len(found)} columns")
    return found


def _show_name(name: str) -> str:
    """Return a name as it is if it reads as one word in lower case, quoted otherwise."""
    return name if _PLAIN_NAME.match(name) else "'" + name.replace("'", "''") + "'"


# -- clauses in codes ------------------------------------------------------------------------------


class CodedAtom(NamedTuple):
    """An atom: the position of its predicate in the schema, and its terms."""

    predicate: int
    terms: tuple[int, ...]

    @property
    def variables(self) -> tuple[int, ...]:
        """The distinct variables, in order."""
        return tuple(dict.fromkeys(term for term in self.terms if term >= 0))

    def inner_variables(self, n_heads: int) -> set[int]:
        """The variables that are not arguments of the head."""
        return {term for term in self.terms if term >= n_heads}


Body = tuple[CodedAtom, ...]


def connected(body: Sequence[CodedAtom], variables: Iterable[int], n_heads: int) -> Body:
    """Return the atoms that share inner variables with the given ones, directly or through others."""
    reached = {v for v in variables if v >= n_heads}
    found: set[int] = set()
    n_before = -1
    while len(found) > n_before:
        n_before = len(found)
        for k, atom in enumerate(body):
            inner = atom.inner_variables(n_heads)
            if inner & reached:
                found.add(k)
                reached |= inner
    return tuple(body[k] for k in sorted(found))


def components(body: Sequence[CodedAtom], n_heads: int) -> list[Body]:
    """Split a body into parts that share no inner variable: a clause covers what all of them cover."""
    parts: list[Body] = []
    seen: set[CodedAtom] = set()
    for atom in body:
        if atom in seen:
            continue
        inner = atom.inner_variables(n_heads)
        part = connected(body, inner, n_heads) if inner else (atom,)
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
    """Return the clause of a body, with the names of predicates, variables and constants."""
    atoms = []
    for atom in canonical(body, schema.target.arity):
        predicate = schema.predicates[atom.predicate]
        terms = (
            Variable(variable_name(t)) if t >= 0 else Constant(background.value(name, -t - 1))
            for t, name in zip(atom.terms, predicate.types, strict=True)
        )
        atoms.append(Atom(predicate.name, tuple(terms)))
    head = tuple(Variable(variable_name(k)) for k in range(schema.target.arity))
    return Clause(Atom(schema.target.name, head), tuple(atoms))


def encode(clause: Clause, schema: Schema, background: Background) -> Body:
    """Return the body of a clause in codes; a constant that no fact has gets one that joins nothing."""
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
        _columns_of(atom, schema.columns)  # as many as the atom has terms
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
