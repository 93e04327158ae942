"""Clauses: conjunctions of literals over background predicates, as text, as SQL and in integer codes.

A clause covers an example when some binding of its variables makes every atom of its body a fact and every
comparison true. A comparison is about a variable, or about an aggregate over the facts that are connected
with one: `C <= 0.5`, `B != A`, `count(publication(_,A)) >= 3`; "not" is a count of none.

In codes, a term of 0 or above is a variable (the head's arguments are 0, 1, ..., others follow as they are
introduced), a term below 0 the constant of code `-term - 1`. Variables inside an aggregate that the clause
does not have elsewhere are local to it, and numbered from `LOCAL`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from toprank.rule import Scalar, find_dialect, quote_identifier, sql_value
from toprank.rules.relational.background import Background
from toprank.rules.relational.schema import Schema

LOCAL = 2**20  # the first number of the variables that are local to an aggregate
#: SQL of each aggregate; a count is of the distinct bindings of the local variables
AGGREGATES = {"count": "count(*)", "min": "min", "max": "max", "sum": "sum", "mean": "avg"}
OPERATORS = ("<=", ">", ">=", "!=")
LARGEST = "1.7976931348623157e308"  # beyond it there are only infinities and NaN: no numbers

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
class Aggregate:
    """A number that some facts have together.

    The facts are the distinct bindings of the variables that the clause does not have elsewhere. Of
    no facts the count is 0, and the others are missing.

    Parameters
    ----------
    function : {"count", "min", "max", "sum", "mean"}
    atoms : tuple of Atom
        A conjunction; it shares at least one variable with the clause.
    variable : Variable, optional
        What is aggregated (a number); a count has none.

    Examples
    --------
    >>> A, B = Variable("A"), Variable("B")
    >>> print(Aggregate("count", (Atom("publication", (B, A)),)))
    count(publication(B,A))
    >>> print(Aggregate("mean", (Atom("charge", (A, B)),), B))
    mean(B: charge(A,B))
    """

    function: str
    atoms: tuple[Atom, ...]
    variable: Variable | None = None

    def __post_init__(self) -> None:
        if self.function not in AGGREGATES:
            raise ValueError(f"unknown aggregate {self.function!r}; known: {', '.join(AGGREGATES)}")
        if (self.variable is None) != (self.function == "count"):
            raise ValueError("min, max, sum and mean are of a variable, a count is of none")
        if self.variable is not None and self.variable not in self.terms:
            raise ValueError(f"the atoms of {self} do not have the variable {self.variable}")

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for atom in self.atoms for term in atom.terms)

    def __str__(self) -> str:
        variable = "" if self.variable is None else f"{self.variable}: "
        return f"{self.function}({variable}{', '.join(map(str, self.atoms))})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on a variable or an aggregate.

    Parameters
    ----------
    left : Variable or Aggregate
    operator : {"<=", ">", ">=", "!="}
        "!=" says that two variables have different values.
    right : Constant or Variable
        A number, or with "!=" a variable.

    Examples
    --------
    >>> A, B = Variable("A"), Variable("B")
    >>> print(Comparison(A, "<=", Constant(0.5)))
    A <= 0.5
    >>> papers = Aggregate("count", (Atom("publication", (B, A)),))
    >>> print(Comparison(papers, ">=", Constant(3)))
    count(publication(B,A)) >= 3
    >>> print(Comparison(papers, "<=", Constant(0)))
    not publication(B,A)
    """

    left: Variable | Aggregate
    operator: str
    right: Variable | Constant

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"unknown operator {self.operator!r}; known: {', '.join(OPERATORS)}")
        of_variables = isinstance(self.left, Variable) and isinstance(self.right, Variable)
        number = isinstance(self.right, Constant) and isinstance(self.right.value, (int, float))
        if not (of_variables if self.operator == "!=" else number):
            raise ValueError(
                "'!=' compares two variables, the other operators a variable or an aggregate with "
                f"a number; got {self.left} {self.operator} {self.right}"
            )

    @property
    def terms(self) -> tuple[Term, ...]:
        left = self.left.terms if isinstance(self.left, Aggregate) else (self.left,)
        return (*left, *((self.right,) if isinstance(self.right, Variable) else ()))

    def __str__(self) -> str:
        left = self.left
        if isinstance(left, Aggregate) and left.function == "count":
            shown = ", ".join(map(str, left.atoms))
            if (self.operator, self.right) == ("<=", Constant(0)):
                return f"not {shown}" if len(left.atoms) == 1 else f"not ({shown})"
        return f"{left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class Clause:
    """A head and the literals that imply it; a clause with no body covers every example.

    Variables that occur once print as `_`.

    Parameters
    ----------
    head : Atom
        The target predicate with a variable for each argument.
    body : tuple of Atom or Comparison

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
    body: tuple[Atom | Comparison, ...] = ()

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
        shown = ", ".join(str(_anonymous(literal, once)) for literal in self.body)
        return f"{self.head} :- {shown}"

    def sql(
        self,
        columns: Mapping[str, Sequence[str]],
        *,
        examples: str = "examples",
        as_text: Collection[tuple[str, str]] = (),
        dialect: str | None = None,
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
        dialect : str, optional
            The database that will read it (`toprank.rule.sql_value`).

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
        writer = _SQLWriter(columns, as_text, prefix, dialect)
        head = [(t, writer.cell(self.head, p, examples)) for p, t in enumerate(self.head.terms)]
        atoms = [literal for literal in self.body if isinstance(literal, Atom)]
        tables, cells = writer.scans(atoms)
        cell_of, conditions = unify([*head, *cells])
        for literal in self.body:
            if isinstance(literal, Comparison):
                conditions.append(writer.comparison(literal, cell_of))
        if not tables:
            return " AND ".join(conditions)
        return f"EXISTS (SELECT 1 FROM {', '.join(tables)}{where_sql(conditions)})"


def _anonymous(literal: Any, once: Collection[Term]) -> Any:
    """Return a literal in which the variables that occur once are `_`."""
    if isinstance(literal, Atom):
        terms = tuple(ANONYMOUS if t in once else t for t in literal.terms)
        return replace(literal, terms=terms)
    if isinstance(literal, Comparison) and isinstance(literal.left, Aggregate):
        return replace(literal, left=_anonymous(literal.left, once))
    if isinstance(literal, Aggregate):
        once = {t for t in once if t != literal.variable}
        return replace(literal, atoms=tuple(_anonymous(atom, once) for atom in literal.atoms))
    return literal


@dataclass
class _SQLWriter:
    """Writes the atoms and comparisons of one clause, each table under an alias of its own."""

    columns: Mapping[str, Sequence[str]]
    as_text: Collection[tuple[str, str]]
    prefix: str
    dialect: str | None = None
    n_tables: int = 0

    def name(self, name: str) -> str:
        return quote_identifier(name, self.dialect)

    def value(self, value: Scalar) -> str:
        return sql_value(value, self.dialect)

    def cell(self, atom: Atom, place: int, alias: str) -> str:
        column = _columns_of(atom, self.columns)[place]
        cell = f"{self.name(alias)}.{self.name(column)}"
        if (atom.predicate, column) in self.as_text:
            return f"CAST({cell} AS {find_dialect(self.dialect).text})"
        return cell

    def scans(self, atoms: Sequence[Atom]) -> tuple[list[str], list[tuple[Any, str]]]:
        """Return the tables of atoms, and their terms with the cells that hold them."""
        tables: list[str] = []
        cells: list[tuple[Any, str]] = []
        for atom in atoms:
            alias = f"{self.prefix}{self.n_tables}"
            self.n_tables += 1
            tables.append(f"{self.name(atom.predicate)} AS {self.name(alias)}")
            for place, term in enumerate(atom.terms):
                cell = self.cell(atom, place, alias)
                if isinstance(term, Constant):
                    cells += [(cell, self.value(term.value)), (cell, cell)]
                else:
                    cells.append((term, cell))
        return tables, cells

    def comparison(self, literal: Comparison, cell_of: Mapping[Any, str]) -> str:
        left, right = literal.left, literal.right
        if isinstance(right, Variable):
            return f"{cell_of[left]} <> {cell_of[right]}"
        if isinstance(left, Aggregate):
            return self._aggregate(left, literal.operator, right, cell_of)
        number = f"{cell_of[left]} {literal.operator} {self.value(right.value)}"
        return f"{number} AND {_is_number(cell_of[left])}"

    def _aggregate(
        self, aggregate: Aggregate, operator: str, right: Constant, cell_of: Mapping[Any, str]
    ) -> str:
        tables, cells = self.scans(aggregate.atoms)
        outer = [
            (term, cell_of[term]) for term in dict.fromkeys(aggregate.terms) if term in cell_of
        ]
        found, conditions = unify([*outer, *cells])
        source = f"FROM {', '.join(tables)}{where_sql(conditions)}"
        if aggregate.function == "count" and (operator, right.value) in {("<=", 0), (">=", 1)}:
            return f"{'NOT ' if operator == '<=' else ''}EXISTS (SELECT 1 {source})"
        known = {cell for _, cell in outer}
        local = dict.fromkeys(
            found[t] for t in aggregate.terms if isinstance(t, Variable) and found[t] not in known
        )
        listed = ", ".join(f"{cell} AS c{k}" for k, cell in enumerate(local)) or "1 AS c0"
        value = "count(*)"
        if aggregate.variable is not None:
            name = f"c{list(local).index(found[aggregate.variable])}"
            number = f"CASE WHEN {_is_number(name)} THEN {name} END"
            value = f"{AGGREGATES[aggregate.function]}({number})"
        rows = f"SELECT DISTINCT {listed} {source}"
        return f"(SELECT {value} FROM ({rows}) AS facts) {operator} {self.value(right.value)}"


def _is_number(cell: str) -> str:
    """Return the condition that a cell is neither missing, nor infinite, nor NaN."""
    return f"{cell} BETWEEN -{LARGEST} AND {LARGEST}"


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
        return {term for term in self.terms if term >= n_heads}

    def renamed(self, rename: Callable[[int], int]) -> CodedAtom:
        return CodedAtom(self.predicate, tuple(map(rename, self.terms)))


class CodedAggregate(NamedTuple):
    """An aggregate: its function, its atoms, and the (local) variable that is aggregated."""

    function: str
    atoms: tuple[CodedAtom, ...]
    variable: int = -1

    @property
    def variables(self) -> tuple[int, ...]:
        """The distinct variables that it shares with the clause, in order."""
        every = (term for atom in self.atoms for term in atom.terms)
        return tuple(dict.fromkeys(term for term in every if 0 <= term < LOCAL))

    @property
    def constants(self) -> tuple[int, ...]:
        """The codes of the constants, in order."""
        return tuple(-term - 1 for atom in self.atoms for term in atom.terms if term < 0)

    @property
    def depth(self) -> int:
        """How many atoms lie between the clause and the deepest local variable; 0 without any."""
        local = [{t for t in atom.terms if t >= LOCAL} for atom in self.atoms]
        deepest = [k + 1 for k, own in enumerate(local) if own - set().union(*local[:k])]
        return max(deepest, default=0)

    def pattern(self) -> CodedAggregate:
        """Return the aggregate with every constant as -1: one query answers all that share it."""
        atoms = tuple(
            CodedAtom(a.predicate, tuple(max(t, -1) for t in a.terms)) for a in self.atoms
        )
        return self._replace(atoms=atoms)

    def renamed(self, rename: Callable[[int], int]) -> CodedAggregate:

        def outer(term: int) -> int:
            return rename(term) if term < LOCAL else term

        return self._replace(atoms=tuple(atom.renamed(outer) for atom in self.atoms))


class CodedComparison(NamedTuple):
    """A comparison of a variable or an aggregate with a number, or ("!=") of two variables."""

    left: int | CodedAggregate
    operator: str
    other: int = -1  # the second variable of "!="
    value: float = 0.0

    @property
    def variables(self) -> tuple[int, ...]:
        """The distinct variables of the clause, in order."""
        if isinstance(self.left, CodedAggregate):
            return self.left.variables
        return (self.left,) if self.other < 0 else (self.left, self.other)

    @property
    def terms(self) -> tuple[int, ...]:
        return self.variables

    def inner_variables(self, n_heads: int) -> set[int]:
        return {term for term in self.variables if term >= n_heads}

    def renamed(self, rename: Callable[[int], int]) -> CodedComparison:
        left = self.left.renamed(rename) if not isinstance(self.left, int) else rename(self.left)
        return self._replace(left=left, other=rename(self.other) if self.other >= 0 else -1)


CodedLiteral = CodedAtom | CodedComparison
Body = tuple[CodedLiteral, ...]


def connected(body: Sequence[CodedLiteral], variables: Iterable[int], n_heads: int) -> Body:
    """Return the literals that share inner variables with the given ones, directly or through others."""
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


def components(body: Sequence[CodedLiteral], n_heads: int) -> list[Body]:
    """Split a body into parts that share no inner variable: a clause covers what all of them cover.

    In each part the atoms come first: a comparison is about variables that atoms introduce.
    """
    parts: list[Body] = []
    seen: set[CodedLiteral] = set()
    for literal in body:
        if literal in seen:
            continue
        inner = literal.inner_variables(n_heads)
        part = connected(body, inner, n_heads) if inner else (literal,)
        seen.update(part)
        parts.append(tuple(sorted(part, key=lambda own: isinstance(own, CodedComparison))))
    return parts


def canonical(literals: Sequence[CodedLiteral], n_heads: int) -> Body:
    """Number the inner variables in order of appearance, so that equal parts compare equal.

    Examples
    --------
    >>> canonical([CodedAtom(0, (0, 5)), CodedAtom(1, (5, 3))], n_heads=1)
    (CodedAtom(predicate=0, terms=(0, 1)), CodedAtom(predicate=1, terms=(1, 2)))
    """
    names: dict[int, int] = {}

    def rename(term: int) -> int:
        return term if term < n_heads else names.setdefault(term, n_heads + len(names))

    return tuple(literal.renamed(rename) for literal in literals)


def ordered(body: Sequence[CodedLiteral], n_heads: int) -> Body:
    """Return the literals in an order that does not depend on how a search found them.

    Literals on variables that are known come first, atoms before comparisons; then by predicate and
    terms. Bodies that differ in the order of their literals and the names of their variables
    become equal, but for symmetric ones.
    """
    left = list(dict.fromkeys(body))
    names: dict[int, int] = {v: v for v in range(n_heads)}
    found: list[CodedLiteral] = []

    def key(literal: CodedLiteral) -> tuple[Any, ...]:
        known = [names.get(v, LOCAL) for v in literal.variables]
        if isinstance(literal, CodedComparison):
            shown = repr(literal.renamed(lambda v: names.get(v, v)))
            return (1 + (LOCAL in known), 0, shown)
        n_known = sum(v < LOCAL for v in known)
        terms = tuple(names.get(t, LOCAL) if t >= 0 else t for t in literal.terms)
        return (0 if n_known or not known else 3, literal.predicate, *terms)

    while left:
        chosen = min(left, key=key)
        left.remove(chosen)
        found.append(chosen)
        for v in chosen.variables:
            names.setdefault(v, len(names))
    return canonical(found, n_heads)


def decode(body: Sequence[CodedLiteral], schema: Schema, background: Background) -> Clause:
    """Return the clause of a body, with the names of predicates, variables and constants."""
    coded = canonical(body, schema.target.arity)
    every = {v for literal in coded for v in literal.variables}
    locals_from = max([schema.target.arity, *(v + 1 for v in every)])
    literals: list[Atom | Comparison] = []
    for literal in coded:
        if isinstance(literal, CodedAtom):
            literals.append(_decode_atom(literal, schema, background, locals_from))
            continue
        if isinstance(literal.left, CodedAggregate):
            left: Any = decode_aggregate(literal.left, schema, background, locals_from)
            locals_from += len({t for a in literal.left.atoms for t in a.terms if t >= LOCAL})
        else:
            left = Variable(variable_name(literal.left))
        right: Any = Variable(variable_name(literal.other))
        if literal.operator != "!=":
            whole = isinstance(left, Aggregate) and left.function == "count"
            right = Constant(int(literal.value) if whole else float(literal.value))
        literals.append(Comparison(left, literal.operator, right))
    head = tuple(Variable(variable_name(k)) for k in range(schema.target.arity))
    return Clause(Atom(schema.target.name, head), tuple(literals))


def _decode_atom(atom: CodedAtom, schema: Schema, background: Background, shift: int) -> Atom:
    """Return an atom with its names; local variables are numbered from `shift`."""
    predicate = schema.predicates[atom.predicate]
    terms = (
        Constant(background.value(name, -t - 1))
        if t < 0
        else Variable(variable_name(t if t < LOCAL else t - LOCAL + shift))
        for t, name in zip(atom.terms, predicate.types, strict=True)
    )
    return Atom(predicate.name, tuple(terms))


def decode_aggregate(
    aggregate: CodedAggregate, schema: Schema, background: Background, shift: int
) -> Aggregate:
    """Return an aggregate with its names; local variables are numbered from `shift`."""
    atoms = tuple(_decode_atom(atom, schema, background, shift) for atom in aggregate.atoms)
    variable = None
    if aggregate.function != "count":
        variable = Variable(variable_name(aggregate.variable - LOCAL + shift))
    return Aggregate(aggregate.function, atoms, variable)


def show_aggregate(aggregate: Aggregate, outer: Collection[Term]) -> str:
    """Return an aggregate as text, with `_` for local variables that occur once.

    Examples
    --------
    >>> A, B = Variable("A"), Variable("B")
    >>> show_aggregate(Aggregate("count", (Atom("publication", (B, A)),)), [A])
    'count(publication(_,A))'
    """
    counts = Counter(t for t in aggregate.terms if isinstance(t, Variable))
    once = {t for t, count in counts.items() if count == 1 and t not in outer}
    return str(_anonymous(aggregate, once))


class _Numbering:
    """Numbers the variables of a clause as they appear, and checks that each has one type."""

    def __init__(self, clause: Clause, schema: Schema, background: Background) -> None:
        self.clause, self.schema, self.background = clause, schema, background
        self.numbers: dict[Term, int] = {term: k for k, term in enumerate(clause.head.terms)}
        self.types: dict[Term, str] = dict(zip(clause.head.terms, schema.target.types, strict=True))

    def atom(self, atom: Atom, local: dict[Term, int] | None = None) -> CodedAtom:
        """Return an atom in codes; with `local`, new variables are local and numbered there."""
        index = self.schema.index(atom.predicate)
        predicate = self.schema.predicates[index]
        _columns_of(atom, self.schema.columns)  # as many as the atom has terms
        terms = []
        for term, name in zip(atom.terms, predicate.types, strict=True):
            if isinstance(term, Constant):
                terms.append(-self.background.code(name, term.value) - 1)
                continue
            if self.types.setdefault(term, name) != name:
                raise ValueError(
                    f"{self.clause} uses {term} both as {self.types[term]!r} and as {name!r} "
                    f"(in {atom}): these types do not join"
                )
            if local is not None and term not in self.numbers:
                terms.append(local.setdefault(term, LOCAL + len(local)))
            else:
                terms.append(self.numbers.setdefault(term, len(self.numbers)))
        return CodedAtom(index, tuple(terms))

    def aggregate(self, aggregate: Aggregate) -> CodedAggregate:
        local: dict[Term, int] = {}
        atoms = tuple(self.atom(atom, local) for atom in aggregate.atoms)
        for term in local:
            del self.types[term]  # another aggregate may use the name for something else
        coded = CodedAggregate(aggregate.function, atoms)
        if not coded.variables:
            raise ValueError(f"{aggregate} shares no variable with {self.clause}")
        if aggregate.variable is None:
            return coded
        if aggregate.variable not in local:
            raise ValueError(
                f"{aggregate} is over {aggregate.variable}, which {self.clause} has elsewhere too"
            )
        return coded._replace(variable=local[aggregate.variable])

    def comparison(self, literal: Comparison) -> CodedComparison:
        if isinstance(literal.left, Aggregate):
            left: Any = self.aggregate(literal.left)
        else:
            left = self._number(literal.left, literal)
        if isinstance(literal.right, Variable):
            return CodedComparison(left, "!=", self._number(literal.right, literal))
        return CodedComparison(left, literal.operator, value=float(literal.right.value))

    def _number(self, variable: Variable, literal: Comparison) -> int:
        if variable not in self.numbers:
            raise ValueError(f"{literal}: no atom of {self.clause} has the variable {variable}")
        return self.numbers[variable]


def encode(clause: Clause, schema: Schema, background: Background) -> Body:
    """Return the body of a clause in codes; a constant that no fact has gets one that joins nothing."""
    if clause.head.predicate != schema.target.name or len(clause.head.terms) != schema.target.arity:
        raise ValueError(
            f"the clause is about {clause.head}, the examples are of {schema.target.name!r} with "
            f"{schema.target.arity} arguments"
        )
    numbering = _Numbering(clause, schema, background)
    # atoms first: a variable is local to an aggregate only if no atom has it
    atoms = {a: numbering.atom(a) for a in clause.body if isinstance(a, Atom)}
    return tuple(
        atoms[literal] if isinstance(literal, Atom) else numbering.comparison(literal)
        for literal in clause.body
    )


def encode_aggregate(
    aggregate: Aggregate, schema: Schema, background: Background
) -> CodedAggregate:
    head = tuple(Variable(variable_name(k)) for k in range(schema.target.arity))
    clause = Clause(Atom(schema.target.name, head))
    return _Numbering(clause, schema, background).aggregate(aggregate)
