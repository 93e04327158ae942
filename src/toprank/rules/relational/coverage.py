"""Which examples a clause covers, for all candidate literals of a step at once.

Parts of a clause that share no inner variable are independent given the head's arguments, so coverage is
kept part by part, over the *distinct* values of the head's arguments in the part. Adding a literal changes
only the part it is connected with, and all literals on the same variables are answered by one query: they
are one more relation of its join, whose column `l` is the number of the literal.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numba import njit

from toprank.rules.relational.background import Background, Queries
from toprank.rules.relational.clause import (
    Body,
    CodedAtom,
    canonical,
    components,
    connected,
    unify,
    where_sql,
)

__all__ = ["Coverage", "HeadSet", "Heads"]

MAX_PAIRS = 2**24  # (literal, head) pairs that one query may return
LITERAL = "l"  # the variable that numbers candidate literals
# a last join of fewer rows than this may return repeated rows: cheaper than making them distinct
MAX_REPEATED_ROWS = 1e6


@dataclass(frozen=True, eq=False)
class Heads:
    """The distinct values that some of the head's arguments have in the examples, numbered."""

    arguments: tuple[int, ...]  # which arguments
    size: int  # how many distinct values there are
    number: np.ndarray  # of each example's values; -1 where an argument is in no fact at all
    lookup: np.ndarray  # from what a query returns to that number
    table: str | None = None  # (h, v0, v1, ...) to join with, if there are several arguments


class HeadSet(NamedTuple):
    """A set of values of some of the head's arguments, as bits over `Heads`."""

    arguments: tuple[int, ...]
    bits: np.ndarray


class Coverage:
    """Answers which of a fixed list of examples, given by the codes of their arguments, are covered.

    Sets that may be asked for again are kept in `cache_bytes` of memory.
    """

    def __init__(
        self, background: Background, codes: np.ndarray, *, cache_bytes: int = 2**27
    ) -> None:
        self.background = background
        self.codes = codes
        self.n_heads = codes.shape[1]
        self.cursor: Any = background.cursor()
        self.queries = Queries(self.cursor)
        self.n_queries = 0
        self.deadline = math.inf  # on the clock of time.monotonic
        self._heads: dict[tuple[int, ...], Heads] = {}
        self._cache: OrderedDict[Body, HeadSet] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._cached_bytes = 0

    def __enter__(self) -> Coverage:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop the tables of this list of examples."""
        self.queries.close()
        for heads in self._heads.values():
            if heads.table is not None:
                self.cursor.execute(f"DROP TABLE IF EXISTS {heads.table}")
        self._heads.clear()
        self._cache.clear()

    def heads(self, arguments: tuple[int, ...]) -> Heads:
        """Number the distinct values of some arguments; write those of several to a table."""
        if arguments in self._heads:
            return self._heads[arguments]
        if not arguments:
            number, every = np.zeros(len(self.codes), np.int32), np.zeros(1, np.int32)
            self._heads[()] = Heads((), 1, number, every)
            return self._heads[()]
        columns = self.codes[:, list(arguments)]
        known = (columns >= 0).all(axis=1)
        groups = pd.DataFrame(columns[known]).groupby(list(range(len(arguments))), sort=True)
        number = np.full(len(columns), -1, dtype=np.int32)
        number[known] = groups.ngroup()
        distinct = groups.size().index.to_frame().to_numpy(dtype=np.int32)
        lookup = every = np.arange(len(distinct), dtype=np.int32)
        table = None
        if len(arguments) == 1:
            lookup = np.full(int(distinct.max(initial=-1)) + 1, -1, dtype=np.int32)
            lookup[distinct[:, 0]] = every
        else:
            table = f"heads_{id(self)}_{'_'.join(map(str, arguments))}"
            rows = {"h": every, **{f"v{a}": distinct[:, k] for k, a in enumerate(arguments)}}
            self.cursor.register(f"new_{table}", pa.table(rows))
            self.cursor.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM new_{table}")
            self.cursor.unregister(f"new_{table}")
        self._heads[arguments] = Heads(arguments, len(distinct), number, lookup, table)
        return self._heads[arguments]

    # -- sets of heads ----------------------------------------------------------------------------

    def cover_literals(
        self, body: Sequence[CodedAtom], literals: Sequence[CodedAtom]
    ) -> list[HeadSet]:
        """Return, for each literal, what it covers together with the part of `body` it is connected with.

        The clause with the literal covers what the clause covers and this set holds. Variables that
        neither the head nor the body has are new.
        """
        found: list[HeadSet | None] = []
        groups: dict[tuple[tuple[int, ...], Body], list[tuple[int, Body]]] = {}
        for k, literal in enumerate(literals):
            bound, part, key = self._connection(body, literal)
            found.append(self._cached(key))
            if found[k] is None:
                groups.setdefault((bound, part), []).append((k, key))
        for (bound, part), members in groups.items():
            sets = self._query(part, bound, [literals[k] for k, _ in members])
            for (k, key), head_set in zip(members, sets, strict=True):
                found[k] = self._cache[key] = head_set
                self._cached_bytes += head_set.bits.nbytes
                while self._cached_bytes > self._cache_bytes and len(self._cache) > 1:
                    self._cached_bytes -= self._cache.popitem(last=False)[1].bits.nbytes
        return [head_set for head_set in found if head_set is not None]

    def cached_literals(
        self, body: Sequence[CodedAtom], literals: Sequence[CodedAtom]
    ) -> list[HeadSet | None]:
        """Return the sets that are known without a query, None for the others."""
        return [self._cached(self._connection(body, literal)[2]) for literal in literals]

    def _cached(self, key: Body) -> HeadSet | None:
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    def _connection(
        self, body: Sequence[CodedAtom], literal: CodedAtom
    ) -> tuple[tuple[int, ...], Body, Body]:
        """Return a literal's variables that a clause has, the atoms these belong to, and a cache key."""
        in_body = {v for atom in body for v in atom.terms}
        bound = tuple(sorted(v for v in literal.variables if v < self.n_heads or v in in_body))
        part = connected(body, bound, self.n_heads)
        return bound, part, canonical([*part, literal], self.n_heads)

    def _query(
        self, part: Body, bound: tuple[int, ...], literals: Sequence[CodedAtom]
    ) -> list[HeadSet]:
        """Ask for the sets of literals on the same variables, connected with the same part."""
        variables = {v for atom in part for v in atom.variables} | set(bound)
        heads = self.heads(tuple(sorted(v for v in variables if v < self.n_heads)))
        sets: list[HeadSet] = []
        batch = max(1, MAX_PAIRS // max(heads.size, 1))
        for start in range(0, len(literals), batch):
            asked = literals[start : start + batch]
            sql = _cover_sql(part, bound, asked, heads, self.background)
            rows = self.queries.fetch(sql, self.deadline)
            self.n_queries += 1
            bits = np.zeros((len(asked), (heads.size + 63) // 64), dtype=np.uint64)
            numbers, found = (
                np.ascontiguousarray(np.ma.getdata(rows[name]), dtype=np.int32)
                for name in (LITERAL, "h")
            )
            set_bits(bits, numbers, found, heads.lookup)
            sets += [HeadSet(heads.arguments, row.copy()) for row in bits]
        return sets

    # -- examples ---------------------------------------------------------------------------------

    def narrow(self, mask: np.ndarray, head_set: HeadSet) -> np.ndarray:
        """Return the examples of a mask that are in a set too."""
        narrowed = mask.copy()
        test_bits(head_set.bits, self.heads(head_set.arguments).number, narrowed)
        return narrowed

    def weigh(
        self,
        sets: Sequence[HeadSet],
        covered: np.ndarray,
        positive: np.ndarray,
        weights: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the weight of the covered positives, and negatives, that are in each set."""
        sums = np.zeros((2, len(sets)))
        grouped: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
        for k, head_set in enumerate(sets):
            if head_set.arguments not in grouped:
                heads = self.heads(head_set.arguments)
                grouped[head_set.arguments] = group_weights(
                    heads.number, covered, positive, weights, heads.size
                )
            head_weights, present = grouped[head_set.arguments]
            sums[:, k] = sum_bits(head_set.bits, present, head_weights)
        return sums[0], sums[1]

    def mask(self, body: Body) -> np.ndarray:
        """Return the examples that a clause covers."""
        covered = np.ones(len(self.codes), dtype=bool)
        for part in components(body, self.n_heads):
            (head_set,) = self.cover_literals(part[:-1], part[-1:])
            covered = self.narrow(covered, head_set)
        return covered

    def prepare(self, bodies: Sequence[Body]) -> None:
        """Ask for the parts of many clauses together, before their masks: it takes fewer queries."""
        by_start: dict[Body, dict[CodedAtom, None]] = {}
        for body in bodies:
            for part in components(body, self.n_heads):
                *start, end = canonical(part, self.n_heads)
                by_start.setdefault(tuple(start), {})[end] = None
        for first, ends in by_start.items():
            self.cover_literals(first, list(ends))


# -- SQL of joins ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    """A table or subquery in a join."""

    sql: str  # what to write after FROM
    columns: tuple[str, ...]
    variables: tuple[str, ...]  # the variable that each column holds
    distinct: tuple[float, ...]  # roughly how many values each column has
    size: float  # roughly how many rows there are
    conditions: tuple[str, ...] = ()  # on further columns


def _cover_sql(
    part: Body,
    bound: Sequence[int],
    literals: Sequence[CodedAtom],
    heads: Heads,
    facts: Background,
) -> str:
    """Return SQL for the pairs (literal, head) under which a part with that candidate holds."""
    uses = Counter(term for atom in part for term in atom.terms if term >= 0)
    uses.update({*bound, *heads.arguments})
    wanted = {variable for variable, count in uses.items() if count > 1}
    relations = [candidate_relation(literals, bound, facts, alone=not part)]
    relations += [atom_relation(atom, wanted, facts) for atom in part]
    names = [f"v{a}" for a in heads.arguments]
    remaining = eliminate(relations, [LITERAL, *names])
    if not names:
        sql = join_sql(remaining, [LITERAL], distinct=True)
        return f"SELECT l, 0 AS h FROM ({sql})"
    if heads.table is None:
        sql = join_sql(remaining, [LITERAL, *names], distinct=False)
        return f"SELECT l, {names[0]} AS h FROM ({sql}) WHERE {names[0]} IS NOT NULL"
    columns = ("h", *names)
    every = Relation(heads.table, columns, columns, (heads.size,) * len(columns), heads.size)
    return join_sql([*remaining, every], [LITERAL, "h"], distinct=False)


def atom_relation(atom: CodedAtom, wanted: Collection[int], facts: Background) -> Relation:
    """Return an atom's facts, projected to its constants and the wanted ones of its variables."""
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


def estimate(
    atom: CodedAtom, used: Sequence[int], facts: Background
) -> tuple[float, tuple[float, ...]]:
    """Return roughly how many facts an atom has in some columns, and distinct values in each."""
    size, distinct = facts.sizes(atom.predicate)
    size = min(size, math.prod(distinct[p] for p in used))
    size /= math.prod(distinct[p] for p in used if atom.terms[p] < 0)
    return size, tuple(min(count, max(size, 1.0)) for count in distinct)


def candidate_relation(
    literals: Sequence[CodedAtom], bound: Sequence[int], facts: Background, *, alone: bool = False
) -> Relation:
    """Return rows (l, values of the bound variables) for which candidate literal number l holds.

    The literals have exactly the bound variables, and new ones of their own. `alone` says that the
    relation will be joined with nothing, so that repeated rows do no harm.
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
    """Return one scan for all literals that differ in their constants only."""
    constants = [p for p, term in enumerate(pattern.terms) if term < 0]
    cell_of, conditions = unify((t, f"f.c{p}") for p, t in enumerate(pattern.terms) if t >= 0)
    conditions += [f"f.c{p} = k.c{p}" for p in constants]
    source, number = f"{table} AS f", str(rows[0][0])
    if constants:
        listed = ", ".join("(" + ", ".join(map(str, row)) + ")" for row in rows)
        names = ", ".join(["l", *(f"c{p}" for p in constants)])
        source, number = f"{source}, (VALUES {listed}) AS k({names})", "k.l"
    values = "".join(f", {cell_of[v]} AS v{v}" for v in bound)
    return f"SELECT {number} AS l{values} FROM {source}{where_sql(conditions)}"


def join_sql(relations: Sequence[Relation], output: Sequence[str], *, distinct: bool) -> str:
    """Return SQL that joins relations on their common variables and keeps some of them."""
    tables = ", ".join(f"{relation.sql} AS t{k}" for k, relation in enumerate(relations))
    cell_of, conditions = unify(
        (variable, f"t{k}.{column}")
        for k, relation in enumerate(relations)
        for column, variable in zip(relation.columns, relation.variables, strict=True)
    )
    conditions += [f"t{k}.{test}" for k, r in enumerate(relations) for test in r.conditions]
    kept = ", ".join(f"{cell_of[name]} AS {name}" for name in output) or "1 AS holds"
    selected = f"DISTINCT {kept}" if distinct else kept
    return f"SELECT {selected} FROM {tables}{where_sql(conditions)}"


def eliminate(relations: Sequence[Relation], keep: Collection[str]) -> list[Relation]:
    """Project out every variable that is not kept, that of the smallest join first.

    Bucket elimination: only the relations that have the variable are joined, and the distinct rows of
    their other columns kept (for acyclic parts this is Yannakakis' semi-join program).
    Where only the last join would be left, its relations are returned: their join may repeat rows.
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
            and sizes[inner[0]] < MAX_REPEATED_ROWS
        ):
            return remaining
        variable = min(
            inner, key=lambda name: (sizes[name], len(_distinct_values(holding[name])), name)
        )
        others = [relation for relation in remaining if variable not in relation.variables]
        remaining = [*others, joined(holding[variable], variable)]


def join_size(relations: Sequence[Relation]) -> float:
    """Estimate the rows of a join: prod of sizes / prod of all but each variable's least distinct count."""
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


def _distinct_values(relations: Sequence[Relation]) -> dict[str, list[float]]:
    """Return the numbers of distinct values of each variable in the relations that have it."""
    values: dict[str, list[float]] = {}
    for relation in relations:
        for name, count in zip(relation.variables, relation.distinct, strict=True):
            values.setdefault(name, []).append(count)
    return values


# -- sets of heads as bits -------------------------------------------------------------------------


# a de Bruijn sequence: its multiples by powers of two differ in their first six bits, so these give the
# power (Leiserson, Prokop & Randall 1998)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
POSITIONS = np.empty(64, dtype=np.int64)
for _power in range(64):
    POSITIONS[((int(DE_BRUIJN) << _power) & (2**64 - 1)) >> 58] = _power


@njit(cache=True, nogil=True)
def set_bits(bits, rows, values, lookup):
    """Set bit `lookup[values[i]]` of row `rows[i]`; values outside the lookup or at -1 have none."""
    for i in range(len(rows)):
        if values[i] < len(lookup):
            head = lookup[values[i]]
            if head >= 0:
                bits[rows[i], head >> 6] |= np.uint64(1) << np.uint64(head & 63)


@njit(cache=True, nogil=True)
def test_bits(bits, heads, mask):
    """Compute `mask &= bit of each head`; a head of -1 has no bit."""
    for i in range(len(heads)):
        head = heads[i]
        if mask[i]:
            mask[i] = head >= 0 and (bits[head >> 6] >> np.uint64(head & 63)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def group_weights(heads, covered, positive, weights, n_heads):
    """Return the weight of the covered negatives and positives by head, and the heads of any as bits."""
    sums = np.zeros((n_heads, 2))
    present = np.zeros((n_heads + 63) // 64, dtype=np.uint64)
    for i in range(len(heads)):
        head = heads[i]
        if covered[i] and head >= 0:
            sums[head, np.int64(positive[i])] += weights[i]
            present[head >> 6] |= np.uint64(1) << np.uint64(head & 63)
    return sums, present


@njit(cache=True, nogil=True)
def sum_bits(bits, present, sums):
    """Return the sums of the second and the first column over the heads whose bit is in both sets."""
    positive_sum, negative_sum = 0.0, 0.0
    for word in range(len(bits)):
        left = bits[word] & present[word]
        while left != 0:
            lowest = left & (~left + np.uint64(1))
            head = (word << 6) + POSITIONS[(lowest * DE_BRUIJN) >> np.uint64(58)]
            negative_sum += sums[head, 0]
            positive_sum += sums[head, 1]
            left ^= lowest
    return positive_sum, negative_sum
