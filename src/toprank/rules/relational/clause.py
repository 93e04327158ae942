"""Clauses: frozen conjunctions of atoms over background predicates.

A clause is plain data that prints as a person would write it and gives itself as SQL text for any
database. It is never parsed from a string. It covers an example when some binding of its variables makes
every atom of its body a fact.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from toprank.rule import Scalar, quote_identifier, sql_value

__all__ = ["Atom", "Clause", "Constant", "Term", "Variable", "variable_name"]

_BARE = re.compile(r"[a-z][A-Za-z0-9_]*\Z")


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
    """A value: text, a number or a truth value.

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
ANYTHING = Variable("_")  # how a variable that occurs once is printed


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
        uses = Counter(t for atom in (self.head, *self.body, self.head) for t in atom.terms)
        shown = [
            replace(atom, terms=tuple(ANYTHING if _alone(t, uses) else t for t in atom.terms))
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
        """The clause as an SQL condition on a row of the table of examples.

        Parameters
        ----------
        columns : mapping of str to sequence of str
            The columns of each predicate's table, the target's among them (`Schema.columns`).
            Background tables are called as their predicates.
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
        places: dict[Term, str] = {}
        tables, conditions = [], []
        for k, atom in enumerate((self.head, *self.body)):
            alias = quote_identifier(_alias(k - 1, examples) if k else examples)
            if k:
                tables.append(f"{quote_identifier(atom.predicate)} AS {alias}")
            for term, column in zip(atom.terms, _columns_of(atom, columns), strict=True):
                place = f"{alias}.{quote_identifier(column)}"
                if (atom.predicate, column) in as_text:
                    place = f"CAST({place} AS VARCHAR)"
                if isinstance(term, Constant):
                    conditions.append(f"{place} = {sql_value(term.value)}")
                elif term in places:
                    conditions.append(f"{place} = {places[term]}")
                else:
                    places[term] = place
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"EXISTS (SELECT 1 FROM {', '.join(tables)}{where})"


def variable_name(index: int) -> str:
    """Name of the variable introduced as number `index`: A, B, ..., Z, A1, B1, ...

    Examples
    --------
    >>> variable_name(0), variable_name(25), variable_name(26)
    ('A', 'Z', 'A1')
    """
    letter, cycle = chr(ord("A") + index % 26), index // 26
    return f"{letter}{cycle}" if cycle else letter


def _alone(term: Term, uses: Mapping[Term, int]) -> bool:
    """Whether a term is a variable that no other place shares."""
    return isinstance(term, Variable) and uses[term] == 1


def _alias(index: int, examples: str) -> str:
    """Alias of the table of an atom; never the name of the table of examples, which it would hide."""
    prefix = "t"
    while examples.lower().startswith(prefix):
        prefix += "t"
    return f"{prefix}{index}"


def _columns_of(atom: Atom, columns: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Columns of an atom's table, or an error that names the predicate."""
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
    """A name as it is if it reads as one word in lower case, quoted otherwise."""
    return name if _BARE.match(name) else "'" + name.replace("'", "''") + "'"
