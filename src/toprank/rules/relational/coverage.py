"""Which examples a clause covers, for all candidate literals of a step at once.

Parts of a clause that share no inner variable are independent given the head's arguments, so coverage is
kept part by part, over the *distinct* values of the head's arguments in the part. Adding a literal changes
only the part it is connected with, and all literals on the same variables are answered by one query: they
are one more relation of its join, whose column `l` is the number of the literal. Comparisons of a number
with any cut are answered together by its least and its greatest value over the bindings of each head.

The size of every join is estimated before it is run; a search may leave out those that are too large.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numba import njit

from toprank.rules.relational.background import Background, Queries
from toprank.rules.relational.clause import (
    Body,
    CodedAggregate,
    CodedAtom,
    CodedComparison,
    CodedLiteral,
    canonical,
    components,
    connected,
    unify,
    where_sql,
)

Left = int | CodedAggregate  # what a comparison is about: a variable or an aggregate
Rows = dict[str, np.ndarray]  # some rows of an answer: its columns, and `lookup`

MAX_PAIRS = 2**24  # (literal, head) pairs that one query may return
LITERAL = "l"  # the variable that numbers candidate literals
# a last join may repeat rows if it has fewer than this, or each so often: cheaper than a DISTINCT
MAX_REPEATED_ROWS, MAX_REPEATS = 1e6, 8.0
# a search leaves out literals whose joins would have more rows than these (whichever is more)
MIN_JOIN_ROWS, ROWS_PER_EXAMPLE = 2e6, 50.0
MIN_CACHE_BYTES, CACHE_BYTES_PER_EXAMPLE = 3 * 2**25, 96  # of answers that are kept


@dataclass(frozen=True, eq=False)
class Heads:
    """The distinct values that some of the head's arguments have in the examples, numbered."""

    arguments: tuple[int, ...]  # which arguments
    distinct: np.ndarray  # their distinct codes, one row each
    number: np.ndarray  # of each example's values
    lookup: np.ndarray  # from the code of a single argument to that number; -1 for others

    @property
    def size(self) -> int:
        return len(self.distinct)


class HeadSet(NamedTuple):
    """A set of values of some of the head's arguments, as bits over `Heads`."""

    arguments: tuple[int, ...]
    bits: np.ndarray


class Ranges(NamedTuple):
    """The least and the greatest number over the bindings of each of some `Heads`; NaN for none."""

    arguments: tuple[int, ...]
    low: np.ndarray
    high: np.ndarray

    def where(self, operator: str, value: float) -> HeadSet:
        """Return the heads for which some binding has a number that compares so."""
        compare = {"<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[operator]
        numbers = self.low if operator == "<=" else self.high
        with np.errstate(invalid="ignore"):
            return HeadSet(self.arguments, pack(compare(numbers, np.float64(value))))


def pack(mask: np.ndarray) -> np.ndarray:
    """Return a mask as bits, 64 to a word, the first in the lowest."""
    padded = np.zeros((len(mask) + 63) // 64 * 64, dtype=bool)
    padded[: len(mask)] = mask
    return np.packbits(padded, bitorder="little").view(np.uint64)


class Coverage:
    """Answers which of a fixed list of examples, given by the codes of their arguments, are covered.

    `numbers` holds the values of those arguments that are numbers. Sets that may be asked for again
    are kept in `cache_bytes` of memory (by default more for more examples). `n_too_large` counts the
    literals that were left out because their joins would have been larger than `max_rows`.
    """

    def __init__(
        self,
        background: Background,
        codes: np.ndarray,
        numbers: Mapping[int, np.ndarray] | None = None,
        *,
        cache_bytes: int | None = None,
    ) -> None:
        self.background = background
        self.codes = codes
        self.numbers = dict(numbers or {})
        self.max_rows = max(MIN_JOIN_ROWS, ROWS_PER_EXAMPLE * len(codes))
        self.n_too_large = 0
        self.n_heads = codes.shape[1]
        self.cursor: Any = background.cursor()
        self.queries = Queries(self.cursor)
        self.n_queries = 0
        self.deadline = math.inf  # on the clock of time.monotonic
        self._heads: dict[tuple[int, ...], Heads] = {}
        self._tables: dict[tuple[int, ...], str] = {}
        self._cache: OrderedDict[Body, HeadSet | Ranges] = OrderedDict()
        if cache_bytes is None:
            cache_bytes = max(MIN_CACHE_BYTES, CACHE_BYTES_PER_EXAMPLE * len(codes))
        self._cache_bytes = cache_bytes
        self._cached_bytes = 0

    def __enter__(self) -> Coverage:
        return self

    def __exit__(self, *_: object) -> None:
        self.queries.close()
        for table in self._tables.values():
            self.cursor.execute(f"DROP TABLE IF EXISTS {table}")
        self._tables.clear()
        self._heads.clear()
        self._cache.clear()

    def heads(self, arguments: tuple[int, ...]) -> Heads:
        """Number the distinct values of some arguments, those that no fact has too."""
        if arguments not in self._heads:
            lookup: np.ndarray = np.empty(0, dtype=np.int32)
            number: np.ndarray
            distinct: np.ndarray
            if not arguments:
                number, distinct = np.zeros(len(self.codes), np.int32), np.zeros((1, 0), np.int32)
            else:
                columns = pd.DataFrame(self.codes[:, list(arguments)])
                groups = columns.groupby(list(columns), sort=True)
                number = groups.ngroup().to_numpy(dtype=np.int32)
                distinct = groups.size().index.to_frame().to_numpy(dtype=np.int32)
            if len(arguments) == 1:
                known = distinct[:, 0] >= 0
                lookup = np.full(int(distinct.max(initial=-1)) + 1, -1, dtype=np.int32)
                lookup[distinct[known, 0]] = np.flatnonzero(known)
            self._heads[arguments] = Heads(arguments, distinct, number, lookup)
        return self._heads[arguments]

    def _head_relation(self, heads: Heads) -> Relation:
        """Return the table (h, v0, v1, ...) of heads; it is written once."""
        columns = ("h", *(f"v{a}" for a in heads.arguments))
        if heads.arguments not in self._tables:
            table = f"heads_{id(self)}_{'_'.join(map(str, heads.arguments))}"
            rows = {"h": np.arange(heads.size, dtype=np.int32)}
            for name, column in zip(columns[1:], heads.distinct.T, strict=True):
                rows[name] = pa.array(column, mask=column == -1)
            self.cursor.register(f"new_{table}", pa.table(rows))
            self.cursor.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM new_{table}")
            self.cursor.unregister(f"new_{table}")
            self._tables[heads.arguments] = table
        size = float(heads.size)
        return Relation(
            self._tables[heads.arguments], columns, columns, (size,) * len(columns), size
        )

    # -- sets of heads ----------------------------------------------------------------------------

    def cover_literals(
        self, body: Sequence[CodedLiteral], literals: Sequence[CodedLiteral]
    ) -> list[HeadSet]:
        """Return, for each literal, what it covers together with the part of `body` it is connected with.

        The clause with the literal covers what the clause covers and this set holds. Variables that
        neither the head nor the body has are new.
        """
        found = self.try_literals(body, literals, math.inf)
        return [head_set for head_set in found if head_set is not None]

    def try_literals(
        self, body: Sequence[CodedLiteral], literals: Sequence[CodedLiteral], max_rows: float
    ) -> list[HeadSet | None]:
        """Return the same, but None where the joins of a literal would have more rows than `max_rows`."""
        found: list[HeadSet | None] = []
        groups: dict[tuple[Any, ...], list[tuple[int, Body]]] = {}
        for k, literal in enumerate(literals):
            bound, part, key = self._connection(body, literal)
            found.append(self._cached(key))
            if found[k] is None:
                kind = () if isinstance(literal, CodedAtom) else (k,)
                groups.setdefault((bound, part, *kind), []).append((k, key))
        for (bound, part, *_), members in groups.items():
            asked = [literals[k] for k, _ in members]
            sets: Sequence[HeadSet | None]
            if isinstance(asked[0], CodedAtom):
                sets = self._query_atoms(part, bound, asked, max_rows)
            else:
                sets = [self._query_comparison(body, part, asked[0], max_rows)]
            for (k, key), head_set in zip(members, sets, strict=True):
                found[k] = head_set
                if head_set is None:
                    self.n_too_large += 1
                else:
                    self._keep(key, head_set)
        return found

    def cached_literals(
        self, body: Sequence[CodedLiteral], literals: Sequence[CodedLiteral]
    ) -> list[HeadSet | None]:
        """Return the sets that are known without a query, None for the others."""
        return [self._cached(self._connection(body, literal)[2]) for literal in literals]

    def _cached(self, key: Body) -> Any:
        if key in self._cache:
            self._cache.move_to_end(key)
        return self._cache.get(key)

    def _keep(self, key: Body, found: HeadSet | Ranges) -> None:
        """Remember an answer; forget the oldest ones where there is no room."""
        self._cache[key] = found
        self._cached_bytes += _bytes_of(found)
        while self._cached_bytes > self._cache_bytes and len(self._cache) > 1:
            self._cached_bytes -= _bytes_of(self._cache.popitem(last=False)[1])

    def _connection(
        self, body: Sequence[CodedLiteral], literal: CodedLiteral
    ) -> tuple[tuple[int, ...], Body, Body]:
        """Return a literal's variables that a clause has, the atoms these belong to, and a cache key."""
        in_body = {v for atom in body for v in atom.terms}
        bound = tuple(sorted(v for v in literal.variables if v < self.n_heads or v in in_body))
        part = connected(body, bound, self.n_heads)
        return bound, part, canonical([*part, literal], self.n_heads)

    def _heads_of(self, part: Body, bound: Iterable[int]) -> Heads:
        """Return the heads over the arguments that a part and some variables have."""
        variables = {v for literal in part for v in literal.variables} | set(bound)
        return self.heads(tuple(sorted(v for v in variables if v < self.n_heads)))

    def _query_atoms(
        self, part: Body, bound: tuple[int, ...], literals: Sequence[Any], max_rows: float
    ) -> list[HeadSet | None]:
        """Ask for the sets of atoms on the same variables, connected with the same part."""
        heads = self._heads_of(part, bound)
        sets: list[HeadSet | None] = []
        batch = max(1, MAX_PAIRS // max(heads.size, 1))
        for start in range(0, len(literals), batch):
            asked = literals[start : start + batch]
            relations = [candidate_relation(asked, bound, self.background, alone=not part)]
            relations += part_relations(part, [*bound, *heads.arguments], self.background)
            bits = self._bits(len(asked), relations, [LITERAL], heads, max_rows)
            if bits is None:
                sets += [None] * len(asked)
            else:
                sets += [HeadSet(heads.arguments, row.copy()) for row in bits]
        return sets

    def _bits(
        self,
        n_sets: int,
        relations: Sequence[Relation],
        outputs: Sequence[str],
        heads: Heads,
        max_rows: float,
    ) -> np.ndarray | None:
        """Join relations and return the heads of the rows as bits, for each number in the output if any."""
        bits = np.zeros((n_sets, (heads.size + 63) // 64), dtype=np.uint64)

        def take(rows: Rows) -> None:
            numbers = rows[outputs[0]] if outputs else np.zeros(len(rows["h"]), np.int32)
            set_bits(bits, numbers, rows["h"], rows["lookup"])

        return bits if self._fetch(relations, outputs, heads, max_rows, take) else None

    def _fetch(
        self,
        relations: Sequence[Relation],
        outputs: Sequence[str],
        heads: Heads,
        max_rows: float,
        take: Callable[[Rows], None],
        select: str = "{rows}",
    ) -> bool:
        """Join relations and hand over some variables and the heads `h`, batch by batch.

        `lookup` beside them leads from what is in `h` to the numbers of the heads. Returns False, and
        does nothing, if the join is too large.
        """
        sql, peak, by_number = self._rows_sql(relations, outputs, heads)
        if peak > max_rows:
            return False
        lookup = np.arange(heads.size, dtype=np.int32) if by_number else heads.lookup

        def convert(batch: pa.RecordBatch) -> None:
            rows = {"lookup": lookup}
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                number = name in {"low", "high"}
                column = column.cast(pa.float64() if number else pa.int32())
                if column.null_count:
                    column = column.fill_null(math.nan if number else -1)
                rows[name] = column.to_numpy()
            take(rows)

        self.queries.run(select.format(rows=sql), convert, self.deadline)
        self.n_queries += 1
        return True

    def _rows_sql(
        self, relations: Sequence[Relation], outputs: Sequence[str], heads: Heads
    ) -> tuple[str, float, bool]:
        """Return SQL of rows (outputs, h), the estimated size of its joins, and if h is a number."""
        names = [f"v{a}" for a in heads.arguments]
        listed = "".join(f"{name}, " for name in outputs)
        held = {v for r in relations if r.sql for v in r.variables}
        tested = {v for r in relations if r.test for v in r.variables}
        if len(names) > 1 or any(name not in held or name in tested for name in names):
            every = self._head_relation(heads)
            early = [every] if tested & set(names) else []
            kept = [*outputs, "h", *names]
            remaining, peak = eliminate([*relations, *early], kept, None if early else every)
            remaining += [] if early else [every]
            return (
                join_sql(remaining, [*outputs, "h"], distinct=False),
                max(peak, join_size(remaining)),
                True,
            )
        remaining, peak = eliminate(relations, [*outputs, *names])
        if not names:
            sql = join_sql(remaining, outputs, distinct=True)
            return f"SELECT {listed}0 AS h FROM ({sql})", peak, True
        sql = join_sql(remaining, [*outputs, names[0]], distinct=False)
        return (
            f"SELECT {listed}{names[0]} AS h FROM ({sql}) WHERE {names[0]} IS NOT NULL",
            max(peak, join_size(remaining)),
            False,
        )

    # -- comparisons ------------------------------------------------------------------------------

    def _query_comparison(
        self, body: Sequence[CodedLiteral], part: Body, literal: Any, max_rows: float
    ) -> HeadSet | None:
        if literal.operator != "!=":
            (ranges,) = self.ranges(body, [literal.left], max_rows)
            return None if ranges is None else ranges.where(literal.operator, literal.value)
        heads = self._heads_of(part, literal.variables)
        relations = part_relations((*part, literal), heads.arguments, self.background)
        bits = self._bits(1, relations, [], heads, max_rows)
        return None if bits is None else HeadSet(heads.arguments, bits[0])

    def ranges(
        self, body: Sequence[CodedLiteral], lefts: Sequence[Left], max_rows: float = math.inf
    ) -> list[Ranges | None]:
        """Return the least and greatest values of variables or aggregates, by head.

        Those of aggregates that differ in their constants only take one query. None stands for joins
        with more rows than `max_rows`.
        """
        found: list[Ranges | None] = []
        groups: dict[tuple[Any, ...], list[tuple[int, Body]]] = {}
        for k, left in enumerate(lefts):
            bound, part, key = self._connection(body, CodedComparison(left, "range"))
            found.append(self._cached(key))
            if found[k] is None:
                of = left if isinstance(left, int) else left.pattern()
                groups.setdefault((of, bound, part), []).append((k, key))
        for (of, bound, part), members in groups.items():
            answers: Sequence[Ranges | None]
            if isinstance(of, int):
                answers = [self._variable_ranges(of, part, max_rows)]
            else:
                constants = [lefts[k].constants for k, _ in members]  # type: ignore[union-attr]
                answers = self._aggregate_ranges(of, bound, part, constants, max_rows)
            for (k, key), answer in zip(members, answers, strict=True):
                found[k] = answer
                if answer is None:
                    self.n_too_large += 1
                else:
                    self._keep(key, answer)
        return found

    def _variable_ranges(self, variable: int, part: Body, max_rows: float) -> Ranges | None:
        """Ask for the least and the greatest value of a variable."""
        if variable < self.n_heads:
            if variable not in self.numbers:
                raise ValueError(f"argument {variable + 1} of the examples holds no numbers")
            heads = self.heads((variable,))
            values = np.full(heads.size, np.nan)
            values[heads.number] = self.numbers[variable]
            return Ranges(heads.arguments, values, values)
        heads, name = self._heads_of(part, ()), f"v{variable}"
        relations = part_relations(part, [variable, *heads.arguments], self.background)
        select = (
            f"SELECT h, min({name}) AS low, max({name}) AS high FROM ({{rows}}) "
            f"WHERE {name} IS NOT NULL GROUP BY h"
        )
        low, high = np.full((2, heads.size), np.nan)
        numbers = self.background.numbers(type_of(variable, part, self.background))

        def take(rows: Rows) -> None:
            if numbers is not None:  # what is no number compares with none
                at, known = _head_numbers(rows)
                low[at] = numbers[rows["low"][known].astype(np.int64)]
                high[at] = numbers[rows["high"][known].astype(np.int64)]

        answered = self._fetch(relations, [name], heads, max_rows, take, select)
        return Ranges(heads.arguments, low, high) if answered else None

    def _aggregate_ranges(
        self,
        pattern: CodedAggregate,
        bound: tuple[int, ...],
        part: Body,
        constants: Sequence[tuple[int, ...]],
        max_rows: float,
    ) -> list[Ranges | None]:
        """Ask for the least and greatest values of an aggregate with several lists of constants."""
        heads = self._heads_of(part, bound)
        missing = 0.0 if pattern.function == "count" else np.nan
        table, columns = aggregate_source(pattern, self.background, once=not part)
        given = "(VALUES " + ", ".join(f"({k}{_listed(c)})" for k, c in enumerate(constants)) + ")"
        given += f" AS g(l{''.join(f', g{k}' for k in range(len(constants[0])))})"
        same = [f"a.k{k} = g.g{k}" for k in range(len(constants[0]))]
        shape = len(constants), heads.size
        # of four bytes, counts are exact up to 16 million
        number = np.float32 if pattern.function == "count" else np.float64
        if part:
            outputs = [f"v{v}" for v in bound]
            relations = part_relations(part, [*bound, *heads.arguments], self.background)
            value = "coalesce(n, 0)" if pattern.function == "count" else "n"
            same += [f"a.{column} = r.v{v}" for column, v in columns]
            select = (
                f"SELECT l, h, min({value}) AS low, max({value}) AS high FROM ({{rows}}) AS r "
                f"CROSS JOIN {given} LEFT JOIN {table} AS a ON {' AND '.join(same)} GROUP BY l, h"
            )
            # without a binding nothing holds
            low, high = np.full((2, *shape), np.nan, dtype=number)
        else:
            low = high = np.full(shape, missing, dtype=number)  # one number
            relations, outputs = [], ["l", "n"]
            names = ("l", "n", *(f"v{v}" for _, v in columns))
            cells = "".join(f", a.{column} AS v{v}" for column, v in columns)
            sql = f"(SELECT g.l, a.n{cells} FROM {table} AS a, {given}{where_sql(same)})"
            relations = [Relation(sql, names, names, (1.0,) * len(names), 1.0)]
            select = "SELECT l, h, n AS low, n AS high FROM ({rows})"

        def take(rows: Rows) -> None:
            at, known = _head_numbers(rows)
            low[rows["l"][known], at] = rows["low"][known]
            high[rows["l"][known], at] = rows["high"][known]

        if not self._fetch(relations, outputs, heads, max_rows, take, select):
            return [None] * len(constants)
        lows = [_compact(values) for values in low]
        highs = lows if high is low else [_compact(values) for values in high]
        return [Ranges(heads.arguments, *ends) for ends in zip(lows, highs, strict=True)]

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
        by_start: dict[Body, dict[CodedLiteral, None]] = {}
        for body in bodies:
            for part in components(body, self.n_heads):
                *start, end = canonical(part, self.n_heads)
                by_start.setdefault(tuple(start), {})[end] = None
        for first, ends in by_start.items():
            self.cover_literals(first, list(ends))


# -- SQL of joins ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relation:
    """A table or subquery in a join, or (without SQL) a test of variables that others hold."""

    sql: str  # what to write after FROM
    columns: tuple[str, ...]
    variables: tuple[str, ...]  # the variable that each column holds
    distinct: tuple[float, ...]  # roughly how many values each column has
    size: float  # roughly how many rows there are
    conditions: tuple[str, ...] = ()  # on further columns
    test: str = ""  # a condition with {variables}


def part_relations(
    part: Sequence[CodedLiteral], outputs: Iterable[int], facts: Background
) -> list[Relation]:
    """Return the relations of a part's literals; `outputs` are variables that are needed afterwards."""
    uses = Counter(t for literal in part for t in literal.terms if t >= 0)
    uses.update(set(outputs))
    compared = {v for c in part if isinstance(c, CodedComparison) for v in c.variables}
    wanted = {v for v, count in uses.items() if count > 1} | compared
    relations = []
    for literal in part:
        if isinstance(literal, CodedAtom):
            relations.append(atom_relation(literal, wanted, facts))
        else:
            relations.append(comparison_relation(literal, part, facts))
    return relations


def comparison_relation(
    literal: CodedComparison, part: Sequence[CodedLiteral], facts: Background
) -> Relation:
    """Return a comparison as a relation: a test of variables, or the table of an aggregate."""
    names = tuple(f"v{v}" for v in literal.variables)
    left = literal.left
    if isinstance(left, int):
        if literal.operator == "!=":
            test = f"{{v{left}}} <> {{v{literal.other}}}"
        else:  # codes have the order of the values
            numbers = facts.numbers(type_of(left, part, facts))
            side: Any = "left" if literal.operator == ">=" else "right"
            code = 0 if numbers is None else int(np.searchsorted(numbers, literal.value, side))
            test = f"{{v{left}}} {'<' if literal.operator == '<=' else '>='} {code}"
            test = "1 = 0" if numbers is None else test  # what is no number compares with none
        return Relation("", (), names, (), 1.0, test=test)
    table, columns = aggregate_source(left.pattern(), facts)
    fixed = tuple(f"k{k} = {code}" for k, code in enumerate(left.constants))
    value = f"n {literal.operator} {literal.value!r}"
    holds_for_none = {"<=": literal.value >= 0, ">": literal.value < 0, ">=": literal.value <= 0}
    if left.function == "count" and holds_for_none[literal.operator]:
        same = [*(f"a.{c} = {{v{v}}}" for c, v in columns), *(f"a.{test}" for test in fixed)]
        test = f"NOT EXISTS (SELECT 1 FROM {table} AS a{where_sql([*same, f'NOT a.{value}'])})"
        return Relation("", (), names, (), 1.0, test=test)
    size = facts.sizes(left.atoms[0].predicate)[0]
    places = tuple(column for column, _ in columns)
    held = tuple(f"v{v}" for _, v in columns)
    return Relation(table, places, held, (size,) * len(held), size, (*fixed, value))


def aggregate_source(
    pattern: CodedAggregate, facts: Background, *, once: bool = False
) -> tuple[str, list[tuple[str, int]]]:
    """Return the table of an aggregate, and its columns with the variables that they hold.

    What is asked `once`, since its answer is kept, is a subquery instead: no table stays in memory.
    """
    order = {v: k for k, v in enumerate(pattern.variables)}
    renamed = pattern.renamed(lambda t: order.get(t, t))
    source = f"({facts.aggregate_sql(renamed)})" if once else facts.aggregate_table(renamed)
    return source, [(f"b{k}", v) for v, k in order.items()]


def type_of(variable: int, part: Sequence[CodedLiteral], facts: Background) -> str:
    for atom in part:
        if isinstance(atom, CodedAtom) and variable in atom.terms:
            return facts.predicates[atom.predicate].types[atom.terms.index(variable)]
    raise ValueError(f"no atom has variable {variable}")


def _head_numbers(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the heads in rows, and which rows are about heads that examples have."""
    found, lookup = rows["h"], rows["lookup"]
    known = (found >= 0) & (found < len(lookup))
    known[known] = lookup[found[known]] >= 0
    return lookup[found[known]], known


def _listed(codes: Sequence[int]) -> str:
    return "".join(f", {code}" for code in codes)


def _compact(values: np.ndarray) -> np.ndarray:
    """Return a copy in the shortest floats that lose nothing: small counts take two bytes each."""
    for short in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            found = values.astype(short)
        if np.array_equal(found, values, equal_nan=True):
            return found
    return values.copy()


def _bytes_of(found: HeadSet | Ranges) -> int:
    if isinstance(found, HeadSet):
        return found.bits.nbytes
    return found.low.nbytes * (1 if found.low is found.high else 2)


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
    held = [relation for relation in relations if relation.sql]
    tables = ", ".join(f"{relation.sql} AS t{k}" for k, relation in enumerate(held))
    cell_of, conditions = unify(
        (variable, f"t{k}.{column}")
        for k, relation in enumerate(held)
        for column, variable in zip(relation.columns, relation.variables, strict=True)
    )
    conditions += [f"t{k}.{test}" for k, r in enumerate(held) for test in r.conditions]
    conditions += [relation.test.format(**cell_of) for relation in relations if relation.test]
    kept = ", ".join(f"{cell_of[name]} AS {name}" for name in output) or "1 AS holds"
    selected = f"DISTINCT {kept}" if distinct else kept
    return f"SELECT {selected} FROM {tables}{where_sql(conditions)}"


def eliminate(
    relations: Sequence[Relation], keep: Collection[str], heads: Relation | None = None
) -> tuple[list[Relation], float]:
    """Project out every variable that is not kept, that of the smallest join first.

    Bucket elimination: only the relations that have the variable are joined, and the distinct rows of
    their other columns kept (for acyclic parts this is Yannakakis' semi-join program).
    Where only the last join would be left, its relations are returned: their join may repeat rows.
    Returned with them is the estimated size of the largest join. `heads` will be joined in the end; it
    takes part before where that makes a join smaller (two persons of one country are almost all
    pairs of persons, but few of them are examples).
    """
    remaining, peak = list(relations), 0.0
    while True:
        every = dict.fromkeys(v for r in remaining if r.sql for v in r.variables)
        inner = [name for name in every if name not in keep]
        holding = {name: _narrowed(_holding(remaining, name), heads) for name in inner}
        sizes = {name: join_size(found) for name, found in holding.items()}
        if not inner or (
            len(inner) == 1
            and len(_holding(remaining, inner[0])) == len(remaining)
            and sizes[inner[0]]
            <= max(MAX_REPEATED_ROWS, MAX_REPEATS * joined(remaining, inner[0]).size)
        ):
            return remaining, peak
        variable = min(
            inner, key=lambda name: (sizes[name], len(_distinct_values(holding[name])), name)
        )
        used = holding[variable]
        peak = max(peak, sizes[variable])
        others = [r for r in remaining if not any(r is other for other in used)]
        remaining = [*others, joined(used, variable)]


def _holding(relations: Sequence[Relation], name: str) -> list[Relation]:
    """Return the relations that have a variable, and for tests of it those of their other variables."""
    tests = [r for r in relations if r.test and name in r.variables]
    needed = {name, *(v for r in tests for v in r.variables)}
    reached = {name}
    found = [r for r in relations if r.sql and name in r.variables]
    reached.update(v for r in found for v in r.variables)
    for relation in relations:
        if relation.sql and set(relation.variables) & (needed - reached):
            found.append(relation)
            reached.update(relation.variables)
    return [*found, *tests]


def _narrowed(relations: list[Relation], heads: Relation | None) -> list[Relation]:
    """Return the relations of a join, with the heads if these make it smaller."""
    if heads is None or len(_distinct_values(relations).keys() & set(heads.variables)) < 2:
        return relations
    with_heads = [*relations, heads]
    return with_heads if join_size(with_heads) < join_size(relations) else relations


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
        if relation.sql:
            for name, count in zip(relation.variables, relation.distinct, strict=True):
                values.setdefault(name, []).append(count)
    return values


# -- sets of heads as bits, 64 to a word ------------------------------------------------------------

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
