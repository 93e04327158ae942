"""The search for one clause: what clauses may say, greedy refinement, and why little was found.

Beside atoms a clause may have comparisons of numbers, counts, negation, inequality and aggregates. An
aggregate over facts that are joined with a variable gives a number for each of its values; a comparison
with a cut makes a literal of it. Which aggregates there are follows from the modes, with one atom or with two
("counts of a person's papers", "of the papers of two persons"). Cut points are quantiles of the
values that the covered examples have along the clause's own joins. The same aggregates over the head's
arguments are the columns of `RelationalFeatures`.

A search draws a positive example, builds its bottom clause, and refines the most general clause greedily
with literals that are true of the example.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
from numba import njit

from toprank.rules.relational.background import Background, TimeUpError
from toprank.rules.relational.bottom import BottomClause, Partial, Refinement, Saturation
from toprank.rules.relational.clause import (
    LOCAL,
    Body,
    Clause,
    CodedAggregate,
    CodedAtom,
    CodedComparison,
    CodedLiteral,
    canonical,
    decode,
    ordered,
)
from toprank.rules.relational.coverage import (
    Coverage,
    HeadSet,
    Left,
    Ranges,
    group_weights,
    join_size,
    part_relations,
)
from toprank.rules.relational.data import RelationalData
from toprank.rules.relational.schema import Mode, Schema
from toprank.rules.weak_rankers import (
    SCORES,
    CurvePath,
    SearchLimits,
    SearchPath,
    draw_seed,
    greedy_refine,
    total_weights,
)

#: what may be added to the language of the paper
EXTENSIONS = ("comparison", "negation", "count", "inequality", "aggregate")
SEED_CHOICES = ("weight", "uniform")
MAX_CUTS = 16  # of one number in one step
MAX_COUNT = 1023  # numbers that are whole and no greater are not sorted
MAX_CONSTANTS = 12  # most frequent constants, or lists of them, that aggregates of a mode are about
MIN_PAIR_ROWS, ROWS_PER_FACT = 1e5, 20.0  # most rows of a join of two atoms, whichever is more
MIN_KEY_FACTS = 20  # integers that are a key of so many facts are taken for identifiers
MAX_AGGREGATES = 100  # over the head's arguments
MAX_INNER_LEFTS = 8  # aggregates over variables that are no arguments of the head, in one step
MAX_PAIRS = 6  # pairs of variables that are compared in one step
ROUNDING = 1e-12  # of the greatest value, at least of 1: a difference that is none
# shares of positives without facts: named with other findings, reported alone
MANY, MOST = 0.5, 0.9


# -- what clauses may say --------------------------------------------------------------------------


def extensions(language: str | Collection[str]) -> frozenset[str]:
    """Return the extensions that a `language` parameter stands for.

    Examples
    --------
    >>> sorted(extensions(("count", "negation")))
    ['count', 'negation']
    >>> extensions("paper")
    frozenset()
    """
    if isinstance(language, str):
        named = {"paper": (), "extended": EXTENSIONS, **{name: (name,) for name in EXTENSIONS}}
        if language not in named:
            raise ValueError(
                f"language must be 'paper', 'extended' or some of {', '.join(EXTENSIONS)}; "
                f"got {language!r}"
            )
        return frozenset(named[language])
    unknown = sorted(set(language) - set(EXTENSIONS))
    if unknown:
        raise ValueError(
            f"language has {', '.join(map(repr, unknown))}; known: {', '.join(EXTENSIONS)}"
        )
    return frozenset(language)


@dataclass(frozen=True, eq=False)
class Language:
    """The numbers that comparisons may be about, for one background."""

    schema: Schema
    background: Background
    functions: tuple[str, ...] = ("count", "min", "max", "mean", "sum")
    max_aggregates: int = 300
    # whether a table that only links an example to others is no step of its own
    through_links: bool = False

    @cached_property
    def comparable(self) -> frozenset[str]:
        """The types whose values have a meaningful order: numbers that are no identifiers."""
        found = set()
        for name in {t for p in self.schema.predicates for t in p.types}:
            values = self.background.numbers(name)
            if values is None or len(values) < 2:
                continue
            whole = bool((values == np.round(values)).all())
            if not whole or not (name in self.schema.target.types or self._is_identifier(name)):
                found.add(name)
        return frozenset(found)

    def _is_identifier(self, name: str) -> bool:
        """Return whether some column of a type is a key of a table of several columns."""
        return any(
            predicate.arity > 1
            and self.background.sizes(j)[0] >= MIN_KEY_FACTS
            and self.background.is_key(j, [place])
            for j, predicate in enumerate(self.schema.predicates)
            for place, of_column in enumerate(predicate.types)
            if of_column == name
        )

    # -- aggregates -------------------------------------------------------------------------------

    @cached_property
    def of_head(self) -> tuple[CodedAggregate, ...]:
        """The aggregates over the head's arguments: those of one atom, then those of two.

        With `through_links` there are those of three too, where each example has one fact of the first
        atom: the row that holds its foreign keys.
        """
        types = self.schema.target.types
        single = self.of_variables(types, range(len(types)))
        found = dict.fromkeys(single)
        for first in dict.fromkeys(a.atoms[0] for a in single if not a.constants):
            found.update(dict.fromkeys(self._longer((first,), types)))
        for pair in list(found) if self.through_links else ():
            if len(pair.atoms) == 2 and pair.function == "count" and not pair.constants:
                first = pair.atoms[0]
                fixed = [p for p, term in enumerate(first.terms) if term < LOCAL]
                if self.background.is_key(first.predicate, fixed):
                    found.update(dict.fromkeys(self._longer(pair.atoms, types)))
        return tuple(found)[: self.max_aggregates]

    def of_variables(self, types: Sequence[str], variables: Sequence[int]) -> list[CodedAggregate]:
        """Return the aggregates of one atom over some variables; `types` are those of all variables."""
        found: dict[CodedAggregate, None] = {}
        for mode in self.schema.modes:
            choices: list[list[int | None]] = [
                [v for v in variables if types[v] == name] if kind == "+" else [None]
                for kind, name in zip(mode.kinds, self._types(mode), strict=True)
            ]
            for terms in product(*choices):
                if any(t is not None for t in terms):
                    found.update(dict.fromkeys(self._aggregates(mode, terms, ())))
        return list(found)

    def _types(self, mode: Mode) -> tuple[str, ...]:
        return self.schema.predicates[self.schema.index(mode.predicate)].types

    def _longer(
        self, atoms: tuple[CodedAtom, ...], types: Sequence[str]
    ) -> Iterator[CodedAggregate]:
        """Yield the aggregates of one atom more, on variables that the last one introduces."""
        known, new = dict(enumerate(types)), set[int]()
        for atom in atoms:
            own = self.schema.predicates[atom.predicate].types
            new = {t for t in atom.terms if t >= LOCAL and t not in known}
            known.update({t: n for t, n in zip(atom.terms, own, strict=True) if t in new})
        for mode in self.schema.modes:
            choices: list[list[int | None]] = []
            for kind, name in zip(mode.kinds, self._types(mode), strict=True):
                fitting = [v for v, own in known.items() if own == name]
                # an output may be known too: an argument of the head or, of a link, another key
                repeated = [v for v in fitting if v < LOCAL or self.through_links]
                choices.append([*fitting] if kind == "+" else [None])
                if kind == "-":
                    choices[-1] += repeated
            for terms in product(*choices):
                if any(t in new for t in terms):
                    yield from self._aggregates(mode, terms, atoms)

    def _aggregates(
        self, mode: Mode, terms: Sequence[int | None], before: tuple[CodedAtom, ...]
    ) -> Iterator[CodedAggregate]:
        """Yield counts and aggregates whose last atom has these terms; None is new or a constant."""
        j = self.schema.index(mode.predicate)
        start = max([LOCAL - 1, *(t for atom in before for t in atom.terms)]) + 1
        numbered = [start + p if t is None else t for p, t in enumerate(terms)]
        atom = CodedAtom(j, tuple(numbered))
        if atom in before or not self._affordable((*before, atom)):
            return
        if self.through_links and any(self._same_fact(atom, other) for other in before):
            return
        names = _renumbered((*before, atom))
        yield CodedAggregate("count", names)
        for place, name in enumerate(self._types(mode)):
            if terms[place] is None and name in self.comparable:
                for function in self.functions[1:]:
                    yield CodedAggregate(function, names, names[-1].terms[place])
        places = [p for p, kind in enumerate(mode.kinds) if kind == "#"]
        for codes in self._frequent(j, places) if places else ():
            fixed = list(numbered)
            for place, code in zip(places, codes, strict=True):
                fixed[place] = -code - 1
            yield CodedAggregate("count", _renumbered((*before, CodedAtom(j, tuple(fixed)))))

    def _same_fact(self, atom: CodedAtom, other: CodedAtom) -> bool:
        """Return whether two atoms can only be about one fact."""
        if atom.predicate != other.predicate:
            return False
        pairs = zip(atom.terms, other.terms, strict=True)
        equal = [p for p, (own, term) in enumerate(pairs) if own == term]
        return bool(equal) and self.background.is_key(atom.predicate, equal)

    def _affordable(self, atoms: tuple[CodedAtom, ...]) -> bool:
        """Return whether the join of some atoms is small enough to be grouped."""
        if len(atoms) == 1:
            return True
        every = {t for atom in atoms for t in atom.terms if t >= 0}
        relations = part_relations(atoms, every, self.background)
        largest = max(self.background.sizes(atom.predicate)[0] for atom in atoms)
        return join_size(relations) <= max(MIN_PAIR_ROWS, ROWS_PER_FACT * largest)

    def _frequent(self, j: int, places: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the most frequent constants of some columns of a predicate, together."""
        columns = ", ".join(f"c{p}" for p in places)
        present = " AND ".join(f"c{p} IS NOT NULL" for p in places)
        query = (
            f"SELECT {columns} FROM fact_{j} WHERE {present} GROUP BY {columns} "
            f"ORDER BY count(*) DESC, {columns} LIMIT {MAX_CONSTANTS}"
        )
        return self.background.answer(query)


def _renumbered(atoms: tuple[CodedAtom, ...]) -> tuple[CodedAtom, ...]:
    """Number the local variables of atoms in order of appearance."""
    return canonical(atoms, LOCAL)  # type: ignore[return-value]  # of atoms, atoms


# -- cut points --------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """A comparison with a number, and the class weights of the heads for which it holds."""

    operator: str
    value: float
    positives: float
    negatives: float


@dataclass(frozen=True, eq=False)
class ValueSums:
    """The distinct numbers of the heads that are present, with what their examples weigh."""

    distinct: np.ndarray  # ascending
    counts: np.ndarray  # heads with each number
    weights: np.ndarray  # of their negatives and positives, two columns
    some_missing: bool  # whether heads without a number are present too

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray, present: np.ndarray) -> ValueSums:
        """Take the values (NaN for none) and the weights of each head.

        Examples
        --------
        >>> values, weights = np.array([3.0, 1.0, 3.0]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
        >>> ValueSums.of(values, weights, np.array([True, True, True])).weights.tolist()
        [[1.0, 0.0], [1.0, 2.0]]
        """
        if values.dtype == np.float16:  # which compiled code does not know
            values = values.astype(np.float32)
        counts, sums = sum_counts(values, present, weights, MAX_COUNT)
        distinct = np.flatnonzero(counts)
        counts, sums = counts[distinct], sums[distinct]
        if not len(distinct):  # other numbers than small counts
            finite = present & ~np.isnan(values)
            distinct, codes, counts = np.unique(
                values[finite], return_inverse=True, return_counts=True
            )
            columns = [np.bincount(codes, own, len(distinct)) for own in weights[finite].T]
            sums = np.stack(columns, axis=1)
        some_missing = counts.sum() < np.count_nonzero(present)
        return cls(distinct.astype(np.float64), counts, sums, bool(some_missing))


@njit(cache=True, nogil=True)
def sum_counts(values, present, weights, most):
    """Return how many present heads have each whole number up to `most`, and what they weigh.

    There are none at all if some number is none of these; heads with NaN are left out.
    """
    counts = np.zeros(most + 1, dtype=np.int64)
    sums = np.zeros((most + 1, 2))
    for head in range(len(values)):
        value = values[head]
        if not present[head] or np.isnan(value):
            continue
        if not (0 <= value <= most and value == np.floor(value)):
            return np.zeros(most + 1, dtype=np.int64), sums
        number = np.int64(value)
        counts[number] += 1
        sums[number, 0] += weights[head, 0]
        sums[number, 1] += weights[head, 1]
    return counts, sums


def choose_cuts(found: ValueSums, own: float, operator: str, *, whole: bool) -> list[Cut]:
    """Return comparisons of the heads' values with cuts, those that hold for `own`.

    The cuts lie between the distinct values, at their quantiles where there are many.
    """
    distinct = found.distinct
    if math.isnan(own) or not len(distinct):
        return []
    if len(distinct) > MAX_CUTS + 1:
        at = np.linspace(0, found.counts.sum() - 1, MAX_CUTS + 2).astype(int)[1:-1]
        lower = np.unique(np.searchsorted(np.cumsum(found.counts), at, side="right"))
        lower = lower[lower < len(distinct) - 1]
    else:
        lower = np.arange(len(distinct) - 1)
    # a sum differs by the order of its terms, which may be far greater than the sum
    apart = np.diff(distinct) > ROUNDING * max(np.abs(distinct).max(), 1.0)
    lower = lower[apart[lower]]
    if operator == "<=" and whole:
        cuts = distinct[lower]
    elif whole:  # ">=" of a count
        cuts = distinct[lower + 1]
    else:
        pairs = zip(distinct[lower], distinct[lower + 1], strict=True)
        cuts = np.array([short_between(a, b) for a, b in pairs])
    if operator == "<=" and found.some_missing and not whole:
        cuts = np.append(cuts, distinct[-1])  # "has a number" splits the heads too
    cuts = cuts[own <= cuts] if operator == "<=" else cuts[own >= cuts if whole else own > cuts]
    # how many of the distinct values lie below each cut, or at it
    below = np.searchsorted(distinct, cuts, side="left" if operator == ">=" else "right")
    totals = np.vstack([np.zeros(2), np.cumsum(found.weights, axis=0)])
    holding = totals[below] if operator == "<=" else totals[-1] - totals[below]
    return [
        Cut(operator, float(c), float(p), float(n)) for c, (n, p) in zip(cuts, holding, strict=True)
    ]


def short_between(low: float, high: float) -> float:
    """Return a number with few digits that is at least `low` and below `high`.

    Examples
    --------
    >>> short_between(0.123456, 0.129), short_between(3.0, 4.0), short_between(-1.5, 8.25)
    (0.126, 3.5, 3.0)
    """
    middle = low + (high - low) / 2
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded < high:
            return rounded
    return low


# -- greedy refinement -----------------------------------------------------------------------------


@dataclass(frozen=True)
class RelationalLimits(SearchLimits):
    """Limits of the search for one clause, beside those on its length, evaluations and time."""

    max_depth: int = 2  # as in `Saturation`
    recall: int = 10
    lookahead: int = 5  # literals that open variables, tried with a second literal on these
    n_seeds: int = 5  # seed examples that are tried before a round ends without a clause
    seed_choice: str = "weight"  # by what seeds are drawn
    extensions: frozenset[str] = frozenset()  # of the language, some of `EXTENSIONS`


@dataclass(eq=False)
class RelationalSource:
    """A source of weak rankers over relational data and the coverage of its examples.

    Each search draws a positive example, builds its bottom clause, and refines the most general clause
    greedily with literals of it. `reason` says why the last search returned nothing.
    """

    data: RelationalData
    coverage: Coverage
    limits: RelationalLimits
    random: np.random.RandomState
    data_weights: np.ndarray | None = None  # with uniform seeds, an example of weight 2 is two

    def __post_init__(self) -> None:
        limits = self.limits
        self.saturation = Saturation(self.data.schema, limits.max_depth, limits.recall)
        self.language = Language(
            self.data.schema, self.data.background, max_aggregates=MAX_AGGREGATES
        )
        # sorted by their contents, so that the draw does not depend on the order of rows
        self.order = np.lexsort(self.coverage.codes.T[::-1])
        self.has_facts: np.ndarray = np.any(self.coverage.codes >= 0, axis=1)
        self.n_out_of_time = 0
        self.reason = ""
        self._perfect = False

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "auc") -> SearchPath | None:
        """Search from one seed, or from a few if the first ones find nothing.

        After a clause that covers all positives and no negative there is nothing left to find.
        """
        if self._perfect:
            self.reason = "perfect"
            return None
        positive = np.ascontiguousarray(y > 0)
        seeds = self.order[positive[self.order] & (weights[self.order] > 0)]
        with_facts = seeds[self.has_facts[seeds]]
        totals = total_weights(y, weights)
        n_evaluated = 0
        for attempt in range(self.limits.n_seeds):
            last = 0 < attempt == self.limits.n_seeds - 1
            if len(with_facts) and not (last and self.limits.extensions):
                drawn_from = with_facts
            elif self.limits.extensions:  # what a positive lacks may be what all of them lack
                drawn_from = seeds
            else:
                break
            seed = self._draw(drawn_from, weights)
            bottom = self.saturation.of(self.data.background, self.coverage.codes[seed])
            refiner = ClauseRefiner(self, bottom, positive, weights, score, seed)
            found = greedy_refine(refiner, *totals, score, self.limits)
            self.n_out_of_time += time.monotonic() >= self.coverage.deadline
            n_evaluated += refiner.n_evaluated
            if found is not None:
                none = found.negatives[-1] <= 1e-12 * totals[1]
                self._perfect = none and found.positives[-1] >= (1 - 1e-12) * totals[0]
                return replace(found, n_evaluated=n_evaluated)
        self.reason = "nothing found" if len(with_facts) else "no facts"
        return None

    def _draw(self, seeds: np.ndarray, weights: np.ndarray) -> int:
        if self.limits.seed_choice == "uniform":
            own = self.data_weights
            weights = np.ones(len(weights)) if own is None else own
        return draw_seed(seeds, weights, self.random)


@dataclass(eq=False)
class ClauseRefiner:
    """One greedy search in the bottom clause of a seed: the clause so far, and what could be added."""

    source: RelationalSource
    bottom: BottomClause
    positive: np.ndarray
    weights: np.ndarray
    score: str
    seed: int

    def __post_init__(self) -> None:
        self.data = self.source.data
        self.coverage = self.source.coverage
        self.limits = self.source.limits
        self.scorer = SCORES[self.score]
        self.path = CurvePath(*total_weights(self.positive, self.weights))
        self.current = self._score(*self.path.end)
        self.partial = self.bottom.start()
        self.covered = np.ones(len(self.positive), dtype=bool)
        self.n_evaluated = 0
        self.options: list[tuple[Body, HeadSet | Ranges]] = []
        self.sums = (np.empty(0), np.empty(0))
        limit = self.limits.max_seconds
        self.coverage.deadline = math.inf if limit is None else time.monotonic() + limit

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Score every literal of the bottom clause, pairs of those that open variables, comparisons."""
        self.options, self.sums = [], (np.empty(0), np.empty(0))
        with suppress(TimeUpError):  # what was scored in time still counts
            refinements = self._refinements(self.partial)
            self._evaluate((), [r.literal for r in refinements if not r.implied])
            self._look_ahead(refinements)
            if self.limits.extensions and len(self.partial.body) < self.limits.max_length:
                self._compare(self._lefts())
                self._evaluate((), self._unequal(self.partial))
        return self.sums

    def refine(self, index: int) -> tuple[Clause, np.ndarray]:
        """Take a candidate; return the clause and the examples it covers."""
        literals, found = self.options[index]
        if isinstance(found, Ranges):
            comparison = literals[-1]
            assert isinstance(comparison, CodedComparison)
            found = found.where(comparison.operator, comparison.value)
        for literal in literals:
            self.partial = self.bottom.extend(self.partial, literal)
        self.covered = self.coverage.narrow(self.covered, found)
        point = float(self.sums[0][index]), float(self.sums[1][index])
        self.current = self._score(*point)
        self.path = self.path.extended(*point)
        body = ordered(self.partial.body, self.data.schema.target.arity)
        return decode(body, self.data.schema, self.data.background), self.covered

    def _score(self, positives: float, negatives: float) -> float:
        return float(self.scorer(np.array([positives]), np.array([negatives]), self.path)[0])

    def _refinements(self, partial: Partial) -> list[Refinement]:
        """Return the literals that may be added to a clause of this search, if it is short enough."""
        if len(partial.body) >= self.limits.max_length:
            return []
        return self.bottom.refinements(partial, self.coverage.deadline)

    def _evaluate(self, first: Body, literals: Sequence[CodedLiteral]) -> None:
        """Add the clauses with `first` and each of the literals to the options."""
        literals = literals[: self._n_left()]
        body = (*self.partial.body, *first)
        found: Sequence[HeadSet | None]
        time_is_up = False
        try:
            found = self.coverage.try_literals(body, literals, self.coverage.max_rows)
        except TimeUpError:
            found, time_is_up = self.coverage.cached_literals(body, literals), True
        pairs = [
            (e, s)
            for e, s in zip(literals, found, strict=True)
            if s is not None and self._seed_in(s)
        ]
        sets = [head_set for _, head_set in pairs]
        sums = self.coverage.weigh(sets, self.covered, self.positive, self.weights)
        self.n_evaluated += len(pairs)
        self.options += [((*first, literal), head_set) for literal, head_set in pairs]
        self.sums = np.append(self.sums[0], sums[0]), np.append(self.sums[1], sums[1])
        if time_is_up:
            raise TimeUpError

    def _seed_in(self, head_set: HeadSet) -> bool:
        head = int(self.coverage.heads(head_set.arguments).number[self.seed])
        return bool((int(head_set.bits[head >> 6]) >> (head & 63)) & 1)

    def _n_left(self) -> int | None:
        limit = self.limits.max_evaluated
        return None if limit is None else max(0, limit - self.n_evaluated)

    def _look_ahead(self, refinements: Sequence[Refinement]) -> None:
        """Try second literals on the variables that a first literal introduces.

        A literal that only introduces a variable is often true of every example, and useful only
        together with the next one.
        """
        if len(self.partial.body) + 2 > self.limits.max_length or self._n_left() == 0:
            return
        of_singles = self.scorer(*self.sums, self.path).tolist()
        scores = {e[0]: score for (e, _), score in zip(self.options, of_singles, strict=True)}
        openings = [r.literal for r in refinements if r.n_new and not self._repeats(r)]
        # an implied literal leaves the coverage, and so the score, as it is
        openings.sort(key=lambda literal: -scores.get(literal, self.current))
        n_known = len(self.partial.types)
        for opening in openings[: self.limits.lookahead]:
            extended = self.bottom.extend(self.partial, opening)
            seconds = [
                r.literal
                for r in self._refinements(extended)
                if not r.implied
                and any(n_known <= v < len(extended.types) for v in r.literal.terms)
            ]
            unequal = self._unequal(extended, n_known)
            self._evaluate((opening,), [*seconds, *unequal])
            if "comparison" in self.limits.extensions:
                new = range(n_known, len(extended.types))
                numbers = [v for v in new if extended.types[v] in self.source.language.comparable]
                self._compare(numbers, (opening,))

    def _repeats(self, refinement: Refinement) -> bool:
        """Return whether the new variables could only be those of an atom that the clause has."""
        literal, n_known = refinement.literal, len(self.partial.types)
        fixed = [p for p, term in enumerate(literal.terms) if term < n_known]
        return refinement.implied and self.data.background.is_key(literal.predicate, fixed)

    # -- comparisons ------------------------------------------------------------------------------

    def _lefts(self) -> list[Left]:
        """Return the variables and aggregates that comparisons may be about in this step."""
        allowed, language = self.limits.extensions, self.source.language
        types, n_heads = self.partial.types, self.data.schema.target.arity
        lefts: list[Left] = []
        if "comparison" in allowed:
            lefts += [v for v in range(n_heads) if v in self.coverage.numbers]
            lefts += [v for v in range(n_heads, len(types)) if types[v] in language.comparable]
        if allowed & {"negation", "count", "aggregate"}:
            inner = language.of_variables(types, range(n_heads, len(types)))[:MAX_INNER_LEFTS]
            depths = self.partial.depths
            lefts += [
                a
                for a in (*language.of_head, *inner)
                if (a.function == "count" or "aggregate" in allowed)
                and max(depths[v] for v in a.variables) + a.depth <= self.limits.max_depth
            ]
        return lefts

    def _compare(self, lefts: Sequence[Left], first: Body = ()) -> None:
        """Add comparisons of numbers with cuts to the options."""
        if not lefts or self._n_left() == 0:
            return
        body = (*self.partial.body, *first)
        found = self.coverage.ranges(body, lefts, self.coverage.max_rows)
        grouped: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = {}
        positives, negatives = [], []
        for left, ranges in zip(lefts, found, strict=True):
            if ranges is None:
                continue
            heads = self.coverage.heads(ranges.arguments)
            if ranges.arguments not in grouped:
                rows = (self.positive, self.weights, heads.size)
                by_head, _ = group_weights(heads.number, self.covered, *rows)
                present = np.zeros(heads.size, dtype=bool)
                present[heads.number[self.covered]] = True
                grouped[ranges.arguments] = by_head, present
            whole = not isinstance(left, int) and left.function == "count"
            low = ValueSums.of(ranges.low, *grouped[ranges.arguments])
            high = low
            if ranges.high is not ranges.low:
                high = ValueSums.of(ranges.high, *grouped[ranges.arguments])
            for operator, sums in (("<=", low), (">=" if whole else ">", high)):
                values = ranges.low if operator == "<=" else ranges.high
                own = float(values[heads.number[self.seed]])
                for cut in choose_cuts(sums, own, operator, whole=whole):
                    needed = "negation" if (operator, cut.value) == ("<=", 0.0) else "count"
                    if whole and needed not in self.limits.extensions:
                        continue
                    literal = CodedComparison(left, operator, value=cut.value)
                    self.options.append(((*first, literal), ranges))
                    positives.append(cut.positives)
                    negatives.append(cut.negatives)
        n_kept = len(positives[: self._n_left()])
        del self.options[len(self.options) - len(positives) + n_kept :]
        self.n_evaluated += n_kept
        self.sums = (
            np.append(self.sums[0], positives[:n_kept]),
            np.append(self.sums[1], negatives[:n_kept]),
        )

    def _unequal(self, partial: Partial, start: int = 0) -> list[CodedLiteral]:
        """Return inequalities that the seed's bindings allow: one variable is no argument of the head.

        With `start`, that variable is new: number `start` or later.
        """
        pairs: list[CodedLiteral] = []
        if "inequality" not in self.limits.extensions:
            return pairs
        for w in range(max(start, self.data.schema.target.arity), len(partial.types)):
            for v in range(w):
                literal = CodedComparison(v, "!=", w)
                if (
                    partial.types[v] == partial.types[w]
                    and literal not in partial.body
                    and any(b[v] != b[w] and min(b[v], b[w]) >= 0 for b in partial.bindings)
                ):
                    pairs.append(literal)
        return pairs[:MAX_PAIRS]


# -- why little was found --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What a finished fit can say about itself."""

    source: RelationalSource
    y: np.ndarray
    scores: np.ndarray
    n_rounds: int
    n_wanted: int

    def stop_reason(self, *, stopped: bool = False) -> str:
        """Return why there are no more rounds, in one sentence."""
        if self.n_rounds >= self.n_wanted:
            return f"all {self.n_wanted} rounds were run"
        if stopped:
            return "the validation metric did not improve any more"
        tried = self.source.limits.n_seeds
        return {
            "perfect": "a clause covers every positive example and no negative one",
            "no facts": "no fact names the arguments of any positive example",
            "nothing found": f"from {tried} seed(s) no clause was better than taking every example",
            "": "it was interrupted",
        }[self.source.reason]

    @cached_property
    def without_facts(self) -> np.ndarray:
        return (self.y > 0) & ~self.source.has_facts

    def is_poor(self) -> bool:
        """Return whether the user should hear about it: no use of the model, or limits that cut it short."""
        source, positive = self.source, self.y > 0
        cut_short = self.n_rounds < self.n_wanted and source.reason == "nothing found"
        constant = len(self.scores) > 0 and np.ptp(self.scores) == 0
        blind = self.without_facts.sum() >= MOST * positive.sum() and bool(
            np.median(self.scores[self.without_facts]) <= np.median(self.scores[~positive])
        )
        limited = cut_short and source.coverage.n_too_large > 0
        return bool(constant or blind or limited or source.n_out_of_time)

    def message(self, name: str) -> str:
        """Return what happened, why, and what to do."""
        if not self.n_rounds:
            what = f"{name} found no rule, so every example has the same score"
        elif np.ptp(self.scores) == 0:
            what = f"{name} gives every training example the same score"
        else:
            what = f"{name} has {self.n_rounds} of {self.n_wanted} rounds"
        found = list(self.findings())
        listed = " ".join(f"({k}) {text}." for k, text in enumerate(found, start=1))
        return f"{what}: {self.stop_reason()}. {listed}".strip()

    def findings(self) -> Iterator[str]:
        """Yield what stands in the way, each with what to do about it."""
        yield from self._without_facts()
        yield from self._unused_tables()
        yield from self.source.data.notes
        yield from self._limits()
        limits = self.source.limits
        missing = [name for name in EXTENSIONS if name not in limits.extensions]
        if missing:
            yield (
                f"clauses could not use {', '.join(missing)}: language='extended' allows what "
                "positives lack, and numbers, to be used"
            )
        if self.source.reason == "nothing found":
            yield (
                f"more could be found with a larger n_seeds (now {limits.n_seeds}), max_depth "
                f"({limits.max_depth}), recall ({limits.recall}) or max_length ({limits.max_length})"
            )

    def _without_facts(self) -> Iterator[str]:
        """Say how many positives no fact is about, and which values are absent."""
        n_positives, n_without = int((self.y > 0).sum()), int(self.without_facts.sum())
        if n_without < MANY * n_positives:
            return
        data = self.source.data
        row = int(np.flatnonzero(self.without_facts)[0])
        columns = data.schema.target.columns
        shown = ", ".join(f"{c} = {v!r}" for c, v in zip(columns, data.values(row), strict=True))
        yield (
            f"no fact is about {n_without:,} of {n_positives:,} positives "
            f"({n_without / n_positives:.0%}), such as {shown}: compare the values of these "
            "columns with those of the background tables (case, spaces, prefixes, text against "
            "numbers), or give the tables of the missing facts"
        )

    def _unused_tables(self) -> Iterator[str]:
        """Name the tables without facts, and those that no chain of modes reaches from the examples."""
        schema, background = self.source.data.schema, self.source.data.background
        empty = [p.name for j, p in enumerate(schema.predicates) if not len(background.rows(j))]
        if empty:
            yield f"there are no facts in {', '.join(map(repr, empty))}"
        known, unused = set(schema.target.types), {p.name: p.types for p in schema.predicates}
        for _ in range(self.source.limits.max_depth + 1):
            for mode in schema.modes:
                types = schema.predicates[schema.index(mode.predicate)].types
                pairs = list(zip(types, mode.kinds, strict=True))
                if {t for t, kind in pairs if kind == "+"} <= known:
                    unused.pop(mode.predicate, None)
                    known = known | {t for t, kind in pairs if kind == "-"}
        for name, types in unused.items():
            yield (
                f"the table {name!r}, of the types {', '.join(types)}, is not reached from the "
                f"examples, of the types {', '.join(schema.target.types)}: give columns that hold "
                "the same things the same type, or a larger max_depth"
            )

    def _limits(self) -> Iterator[str]:
        """Say what limits of size and time left out."""
        coverage = self.source.coverage
        if coverage.n_too_large:
            yield (
                f"{coverage.n_too_large:,} literals were left out because their joins would have "
                f"had more than {coverage.max_rows:,.0f} rows: a column with few values links "
                "almost everything; declare modes in which it is no input (+)"
            )
        if self.source.n_out_of_time:
            yield (
                f"{self.source.n_out_of_time:,} searches for a clause were stopped after max_seconds "
                f"({self.source.limits.max_seconds}): raise it, or lower recall or lookahead"
            )
