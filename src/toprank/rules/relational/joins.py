"""SQL for parts of clauses: variables are eliminated one by one.

To know which heads a part covers, its inner variables must be projected out. Each is eliminated by
joining only the relations that hold it and keeping the distinct rows of the others (bucket elimination;
for acyclic parts this is Yannakakis' semi-join program), so intermediate results stay far below the
full join. Columns that nothing asks for are projected away beforehand. Many parts that differ in one
literal go through together: the candidate literals are one more relation whose column `l` says which
literal a row belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from toprank.rules.relational.coded import CodedAtom

__all__ = ["LITERAL", "Relation", "atom_relation", "candidate_relation", "eliminate", "join_sql"]

LITERAL = "l"  # the variable that numbers candidate literals
# a last join of fewer rows than this may hand over repeated ones: cheaper than to sort them out
REPEATED = 1e6


class Facts(Protocol):
    """What the SQL must know of the facts."""

    def projection(self, j: int, columns: Sequence[int]) -> str:
        """Table of the distinct values of some columns of predicate j."""

    def sizes(self, j: int) -> tuple[float, tuple[float, ...]]:
        """Number of facts of predicate j, and of distinct values of each of its columns."""


@dataclass(frozen=True)
class Relation:
    """A table or subquery.

    Attributes
    ----------
    sql : str
        What to write after FROM.
    columns, variables : tuple of str
        Columns, and the variable that each holds.
    distinct : tuple of float
        Roughly how many values each column has.
    size : float
        Roughly how many rows there are.
    conditions : tuple of str
        On further columns.
    """

    sql: str
    columns: tuple[str, ...]
    variables: tuple[str, ...]
    distinct: tuple[float, ...]
    size: float
    conditions: tuple[str, ...] = ()


def atom_relation(atom: CodedAtom, wanted: Collection[int], facts: Facts) -> Relation:
    """The facts of an atom, projected to its constants and to the wanted ones of its variables."""
    used = [p for p, t in enumerate(atom.terms) if t < 0 or t in wanted]
    variables = [p for p in used if atom.terms[p] >= 0]
    size, distinct = estimate(atom, used, facts)
    return Relation(
        facts.projection(atom.predicate, used),
        tuple(f"c{p}" for p in variables),
        tuple(f"v{atom.terms[p]}" for p in variables),
        tuple(distinct[p] for p in variables),
        size,
        tuple(f"c{p} = {-atom.terms[p] - 1}" for p in used if atom.terms[p] < 0),
    )


def estimate(atom: CodedAtom, used: Sequence[int], facts: Facts) -> tuple[float, tuple[float, ...]]:
    """Roughly how many facts an atom has in some columns, and distinct values in each."""
    size, distinct = facts.sizes(atom.predicate)
    size = min(size, math.prod(distinct[p] for p in used))
    size /= math.prod(distinct[p] for p in used if atom.terms[p] < 0)
    return size, tuple(min(count, max(size, 1.0)) for count in distinct)


def candidate_relation(
    literals: Sequence[CodedAtom], bound: Sequence[int], facts: Facts, *, alone: bool = False
) -> Relation:
    """Rows (l, values of the bound variables) for which candidate literal number l holds.

    Parameters
    ----------
    literals : sequence of CodedAtom
        Literals that use exactly the bound variables, and new ones of their own.
    bound : sequence of int
        The variables whose values are wanted.
    facts : Facts
    alone : bool
        Whether it will be joined with nothing, so that repeated rows do no harm.
    """
    patterns: dict[CodedAtom, list[tuple[int, ...]]] = {}
    for number, literal in enumerate(literals):
        pattern = CodedAtom(literal.predicate, tuple(max(t, -1) for t in literal.terms))
        codes = tuple(-t - 1 for t in literal.terms if t < 0)
        patterns.setdefault(pattern, []).append((number, *codes))
    parts, total, most = [], 0.0, dict.fromkeys(bound, 1.0)
    for pattern, rows in patterns.items():
        terms = pattern.terms
        used = [p for p, t in enumerate(terms) if t < 0 or t in bound or terms.count(t) > 1]
        table = f"fact_{pattern.predicate}" if alone else facts.projection(pattern.predicate, used)
        parts.append(_pattern_sql(pattern, rows, bound, table))
        size, distinct = estimate(pattern, used, facts)
        total += size * len(rows)
        for variable in bound:
            most[variable] = max(most[variable], distinct[terms.index(variable)])
    names = (LITERAL, *(f"v{v}" for v in bound))
    sql = f"({' UNION ALL '.join(parts)})"
    return Relation(sql, names, names, (float(len(literals)), *most.values()), total)


def _pattern_sql(
    pattern: CodedAtom, rows: Sequence[tuple[int, ...]], bound: Sequence[int], table: str
) -> str:
    """Literals that differ in their constants only: one scan serves them all."""
    places: dict[int, str] = {}
    conditions, n_constants = [], 0
    for p, term in enumerate(pattern.terms):
        if term < 0:
            conditions.append(f"f.c{p} = k.k{n_constants}")
            n_constants += 1
        elif term in places:
            conditions.append(f"f.c{p} = {places[term]}")
        else:
            places[term] = f"f.c{p}"
    source = f"{table} AS f"
    number = "k.l" if n_constants else str(rows[0][0])
    if n_constants:
        listed = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in rows)
        names = ", ".join(["l", *(f"k{i}" for i in range(n_constants))])
        source += f", (VALUES {listed}) AS k({names})"
    values = "".join(f", {places[v]} AS v{v}" for v in bound)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {number} AS l{values} FROM {source}{where}"


def join_sql(relations: Sequence[Relation], output: Sequence[str], *, distinct: bool) -> str:
    """Join relations on their common variables and keep some of them."""
    places: dict[str, str] = {}
    tables, conditions = [], []
    for k, relation in enumerate(relations):
        tables.append(f"{relation.sql} AS t{k}")
        conditions += [f"t{k}.{condition}" for condition in relation.conditions]
        for column, variable in zip(relation.columns, relation.variables, strict=True):
            place = f"t{k}.{column}"
            if variable in places:
                conditions.append(f"{place} = {places[variable]}")
            else:
                places[variable] = place
    kept = ", ".join(f"{places[name]} AS {name}" for name in output) or "1 AS holds"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {'DISTINCT ' if distinct else ''}{kept} FROM {', '.join(tables)}{where}"


def eliminate(relations: Sequence[Relation], keep: Collection[str]) -> list[Relation]:
    """Project out every variable that is not kept.

    First goes the variable with the smallest join, of several the one whose join has the fewest columns.
    Where only the last join would be left, its relations are returned: their join may hold rows more
    than once.
    """
    remaining = list(relations)
    while True:
        every = dict.fromkeys(v for relation in remaining for v in relation.variables)
        inner = [name for name in every if name not in keep]
        holding = {name: [r for r in remaining if name in r.variables] for name in inner}
        sizes = {name: join_size(found) for name, found in holding.items()}
        if not inner or (
            len(inner) == 1
            and len(holding[inner[0]]) == len(remaining)
            and sizes[inner[0]] < REPEATED
        ):
            return remaining
        variable = min(inner, key=lambda name: (sizes[name], _width(holding[name]), name))
        others = [relation for relation in remaining if variable not in relation.variables]
        remaining = [*others, joined(holding[variable], variable)]


def join_size(relations: Sequence[Relation]) -> float:
    """The usual estimate of the number of rows of a join.

    The product of the sizes, divided, for each common variable, by all but the smallest of its numbers
    of distinct values.
    """
    size = math.prod(relation.size for relation in relations)
    for counts in _distinct_values(relations).values():
        size /= math.prod(sorted(counts)[1:])
    return size


def joined(relations: Sequence[Relation], variable: str) -> Relation:
    """Join relations and project one variable out."""
    values = _distinct_values(relations)
    size = join_size(relations)
    scope = tuple(name for name in values if name != variable)
    distinct = tuple(min(*values[name], max(size, 1.0)) for name in scope)
    sql = join_sql(relations, scope, distinct=True)
    return Relation(f"({sql})", scope, scope, distinct, min(size, math.prod(distinct)))


def _width(relations: Sequence[Relation]) -> int:
    """Number of variables of a join."""
    return len({name for relation in relations for name in relation.variables})


def _distinct_values(relations: Sequence[Relation]) -> dict[str, list[float]]:
    """Numbers of distinct values of each variable in the relations that hold it."""
    values: dict[str, list[float]] = {}
    for relation in relations:
        for name, count in zip(relation.variables, relation.distinct, strict=True):
            values.setdefault(name, []).append(count)
    return values
