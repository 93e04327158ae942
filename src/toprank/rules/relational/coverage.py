"""Which examples a clause covers, for all candidate literals of a step at once.

Parts of a clause that share no inner variable are independent given the head's arguments, so coverage is
kept part by part, as a set over the *distinct* values of the head's arguments that the part touches: a
part about the person A is joined once for each person, not once for each example. Adding a literal
changes only the part it hangs on. All literals on the same variables are answered by one query.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from toprank.rules.relational._kernels import group_weights, set_bits, sum_bits, test_bits
from toprank.rules.relational.background import Background
from toprank.rules.relational.coded import Body, CodedAtom, attached, canonical, components
from toprank.rules.relational.joins import (
    LITERAL,
    Relation,
    atom_relation,
    candidate_relation,
    eliminate,
    join_sql,
)
from toprank.rules.relational.queries import Queries

__all__ = ["Coverage", "HeadSet", "Heads"]

Attachment = tuple[tuple[int, ...], Body]
MAX_PAIRS = 2**24  # (literal, head) pairs that one query may bring back


@dataclass(frozen=True, eq=False)
class Heads:
    """The distinct values that some of the head's arguments take in the examples.

    Attributes
    ----------
    arguments : tuple of int
        Which arguments.
    places : int32 ndarray of shape (n_examples,)
        The number of each example's values; -1 where an argument is in no fact at all.
    size : int
        How many distinct values there are.
    lookup : int32 ndarray
        From what a query returns to that number.
    table : str or None
        Where there are two arguments or more: the table (h, v0, v1, ...) that queries join with.
    """

    arguments: tuple[int, ...]
    places: np.ndarray
    size: int
    lookup: np.ndarray
    table: str | None


@dataclass(frozen=True, eq=False)
class HeadSet:
    """A set of values of some of the head's arguments, as bits over `Heads`."""

    arguments: tuple[int, ...]
    bits: np.ndarray


class Coverage:
    """Answers which of a fixed list of examples are covered.

    Parameters
    ----------
    background : Background
    codes : int32 ndarray of shape (n_examples, n_heads)
        Codes of the examples' arguments.
    cache_bytes : int
        How much memory sets that may be asked for again can take.
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
        self.deadline: float | None = None  # on the clock of time.monotonic
        self._heads: dict[tuple[int, ...], Heads] = {}
        self._cache: OrderedDict[Body, HeadSet] = OrderedDict()
        self._cache_bytes = cache_bytes
        self._cached_bytes = 0

    def close(self) -> None:
        """Drop the tables of this list of examples."""
        self.queries.close()
        for heads in self._heads.values():
            if heads.table is not None:
                self.cursor.execute(f"DROP TABLE IF EXISTS {heads.table}")
        self._heads.clear()
        self._cache.clear()

    def __enter__(self) -> Coverage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- heads ------------------------------------------------------------------------------------

    def heads(self, arguments: tuple[int, ...]) -> Heads:
        """The distinct values of some arguments of the head."""
        if arguments not in self._heads:
            self._heads[arguments] = self._number_heads(arguments)
        return self._heads[arguments]

    def _number_heads(self, arguments: tuple[int, ...]) -> Heads:
        n = len(self.codes)
        if not arguments:
            return Heads((), np.zeros(n, np.int32), 1, np.zeros(1, np.int32), None)
        if len(arguments) == 1:
            return _number_values(arguments, self.codes[:, arguments[0]])
        columns = self.codes[:, list(arguments)]
        known = (columns >= 0).all(axis=1)
        places = np.full(n, -1, dtype=np.int32)
        keys = _mixed_radix(columns[known].astype(np.int64))
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        places[known] = inverse
        distinct = columns[known][first]
        table = f"heads_{id(self)}_{'_'.join(map(str, arguments))}"
        numbers = np.arange(len(distinct), dtype=np.int32)
        rows = {"h": numbers, **{f"v{a}": distinct[:, k] for k, a in enumerate(arguments)}}
        self.cursor.register(f"new_{table}", pa.table(rows))
        self.cursor.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM new_{table}")
        self.cursor.unregister(f"new_{table}")
        return Heads(arguments, places, len(distinct), numbers, table)

    # -- sets -------------------------------------------------------------------------------------

    def literals(self, body: Sequence[CodedAtom], literals: Sequence[CodedAtom]) -> list[HeadSet]:
        """For each literal, what the part of `body` it hangs on covers together with it.

        Parameters
        ----------
        body : sequence of CodedAtom
            The clause so far.
        literals : sequence of CodedAtom
            Candidates; variables that neither the head nor the body has are new.

        Returns
        -------
        sets : list of HeadSet
            The clause with the literal covers what the clause covers and this set holds.
        """
        places = [self._attachment(body, literal) for literal in literals]
        keys = self._keys(places, literals)
        found = [self._recall(key) for key in keys]
        groups: dict[Attachment, list[int]] = {}
        for k, place in enumerate(places):
            if found[k] is None:
                groups.setdefault(place, []).append(k)
        for (bound, part), members in groups.items():
            sets = self._query(part, bound, [literals[k] for k in members])
            for k, head_set in zip(members, sets, strict=True):
                found[k] = head_set
                self._remember(keys[k], head_set)
        return [head_set for head_set in found if head_set is not None]

    def known(
        self, body: Sequence[CodedAtom], literals: Sequence[CodedAtom]
    ) -> list[HeadSet | None]:
        """The same for what was asked before, None for the rest: no query is made."""
        places = [self._attachment(body, literal) for literal in literals]
        return [self._recall(key) for key in self._keys(places, literals)]

    def _attachment(self, body: Sequence[CodedAtom], literal: CodedAtom) -> Attachment:
        """The variables by which a literal hangs on a body, and the part it so hangs on."""
        in_body = {v for atom in body for v in atom.terms}
        bound = tuple(sorted(v for v in literal.variables if v < self.n_heads or v in in_body))
        return bound, attached(body, bound, self.n_heads)

    def _keys(self, places: Sequence[Attachment], literals: Sequence[CodedAtom]) -> list[Body]:
        """What sets are remembered by."""
        return [
            canonical([*part, literal], self.n_heads)
            for (_, part), literal in zip(places, literals, strict=True)
        ]

    def _query(
        self, part: Body, bound: tuple[int, ...], literals: Sequence[CodedAtom]
    ) -> list[HeadSet]:
        """Sets of literals on the same variables, hanging on the same part."""
        touched = {v for atom in part for v in atom.variables} | set(bound)
        heads = self.heads(tuple(sorted(v for v in touched if v < self.n_heads)))
        sets: list[HeadSet] = []
        batch = max(1, MAX_PAIRS // max(heads.size, 1))
        for start in range(0, len(literals), batch):
            asked = literals[start : start + batch]
            sql = _cover_sql(part, bound, asked, heads, self.background)
            rows = self.queries.fetch(sql, self.deadline)
            self.n_queries += 1
            bits = np.zeros((len(asked), (heads.size + 63) // 64), dtype=np.uint64)
            set_bits(bits, _plain(rows[LITERAL]), _plain(rows["h"]), heads.lookup)
            sets += [HeadSet(heads.arguments, row.copy()) for row in bits]
        return sets

    def _recall(self, key: Body) -> HeadSet | None:
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key]
        return None

    def _remember(self, key: Body, head_set: HeadSet) -> None:
        self._cache[key] = head_set
        self._cached_bytes += head_set.bits.nbytes
        while self._cached_bytes > self._cache_bytes and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1].bits.nbytes

    # -- examples ---------------------------------------------------------------------------------

    def narrow(self, mask: np.ndarray, head_set: HeadSet) -> np.ndarray:
        """The examples of a mask that a set holds too."""
        narrowed = mask.copy()
        test_bits(head_set.bits, self.heads(head_set.arguments).places, narrowed)
        return narrowed

    def weigh(
        self,
        sets: Sequence[HeadSet],
        covered: np.ndarray,
        positive: np.ndarray,
        weights: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weight of the covered positives and negatives that each set holds."""
        sums = np.zeros((len(sets), 2))
        grouped: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
        for k, head_set in enumerate(sets):
            if head_set.arguments not in grouped:
                heads = self.heads(head_set.arguments)
                grouped[head_set.arguments] = group_weights(
                    heads.places, covered, positive, weights, heads.size
                )
            weighed, present = grouped[head_set.arguments]
            sums[k] = sum_bits(head_set.bits, present, weighed)
        return np.ascontiguousarray(sums[:, 0]), np.ascontiguousarray(sums[:, 1])

    def mask(self, body: Body) -> np.ndarray:
        """The examples that a clause covers."""
        common: dict[tuple[int, ...], np.ndarray] = {}
        for part in components(body, self.n_heads):
            (head_set,) = self.literals(part[:-1], part[-1:])
            known = common.get(head_set.arguments, head_set.bits)
            common[head_set.arguments] = known & head_set.bits
        covered = np.ones(len(self.codes), dtype=bool)
        for arguments, bits in common.items():
            test_bits(bits, self.heads(arguments).places, covered)
        return covered

    def prepare(self, bodies: Sequence[Body]) -> None:
        """Ask for the parts of many clauses together, before their masks: it takes fewer queries."""
        by_start: dict[Body, dict[CodedAtom, None]] = {}
        for body in bodies:
            for part in components(body, self.n_heads):
                *start, end = canonical(part, self.n_heads)
                by_start.setdefault(tuple(start), {})[end] = None
        for first, ends in by_start.items():
            self.literals(first, list(ends))


def _number_values(arguments: tuple[int, ...], codes: np.ndarray) -> Heads:
    """Number the distinct values of one argument in the order of their codes."""
    known = codes >= 0
    present = np.zeros(int(codes.max(initial=-1)) + 1, dtype=bool)
    present[codes[known]] = True
    lookup = np.where(present, np.cumsum(present) - 1, -1).astype(np.int32)
    places = np.full(len(codes), -1, dtype=np.int32)
    places[known] = lookup[codes[known]]
    return Heads(arguments, places, int(present.sum()), lookup, None)


def _cover_sql(
    part: Body,
    bound: Sequence[int],
    literals: Sequence[CodedAtom],
    heads: Heads,
    facts: Background,
) -> str:
    """SQL for the pairs (literal, head) under which a part with one candidate more holds."""
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


def _plain(column: Any) -> np.ndarray:
    """A result column as a contiguous int32 array."""
    return np.ascontiguousarray(np.ma.getdata(column), dtype=np.int32)


def _mixed_radix(columns: np.ndarray) -> np.ndarray:
    """One whole number for each row of codes; rows compare as their numbers do.

    The numbers are ranks wherever the product of the columns' sizes would not fit.
    """
    keys = np.zeros(len(columns), dtype=np.int64)
    bound = 1
    for column in columns.T:
        size = int(column.max(initial=0)) + 1
        if bound > 2**62 // size:
            _, keys = np.unique(keys, return_inverse=True)
            bound = int(keys.max(initial=0)) + 1
        keys = keys * size + column
        bound *= size
    return keys
