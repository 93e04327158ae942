"""A source of weak rankers over relational data: greedy clauses grown from seed examples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from toprank.rules.clauses import SCORES, CurvePath, SearchLimits, draw_seed, greedy_refine
from toprank.rules.relational.bottom import BottomClause, Partial, Refinement, Saturation
from toprank.rules.relational.coded import Body, CodedAtom, decode
from toprank.rules.relational.coverage import Coverage, HeadSet
from toprank.rules.relational.data import RelationalData
from toprank.rules.relational.queries import TimeUpError
from toprank.rules.weak_rankers import SearchPath, total_weights

__all__ = ["RelationalLimits", "RelationalSource"]


@dataclass(frozen=True)
class RelationalLimits:
    """Limits of the search for one clause.

    Attributes
    ----------
    max_length : int
        Most literals of a clause.
    max_depth : int
        Deepest variable: how many literals lie between it and the head.
    recall : int
        Most facts that one call of a mode adds to a bottom clause (where the mode does not say).
    lookahead : int
        How many of the literals that introduce variables, the best ones, are also tried together with
        a second literal on those variables.
    max_evaluated : int or None
        Most clauses scored in one search.
    max_seconds : float or None
        A search is stopped after this time and what it has found so far is kept; results then depend
        on the machine.
    n_seeds : int
        How many seed examples are tried before a round finds nothing.
    """

    max_length: int = 4
    max_depth: int = 2
    recall: int = 10
    lookahead: int = 5
    max_evaluated: int | None = None
    max_seconds: float | None = None
    n_seeds: int = 5


class RelationalSource:
    """Finds clauses over relational data.

    Each search draws a positive example by its weight, builds its bottom clause, and refines the most
    general clause greedily with literals of it.

    Parameters
    ----------
    data : RelationalData
    coverage : Coverage
        Of the same examples.
    limits : RelationalLimits
    random : numpy.random.RandomState
        Draws the seeds.
    """

    def __init__(
        self,
        data: RelationalData,
        coverage: Coverage,
        limits: RelationalLimits,
        random: np.random.RandomState,
    ) -> None:
        self.data = data
        self.coverage = coverage
        self.limits = limits
        self.random = random
        self.saturation = Saturation(data.schema, limits.max_depth, limits.recall)
        # by what they are, not by where they stand: the draw must not depend on the order of rows
        self.order = np.lexsort(coverage.codes.T[::-1])

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "auc") -> SearchPath | None:
        """Search from one seed, or from a few if the first lead nowhere."""
        positive = np.ascontiguousarray(y > 0)
        seeds = self.order[positive[self.order]]
        totals = total_weights(y, weights)
        limits = SearchLimits(
            self.limits.max_length, self.limits.max_evaluated, self.limits.max_seconds
        )
        n_evaluated = 0
        for _ in range(self.limits.n_seeds):
            seed = draw_seed(seeds, weights, self.random)
            bottom = self.saturation.of(self.data.background, self.coverage.codes[seed])
            refiner = ClauseRefiner(self, bottom, positive, weights, CurvePath(*totals), score)
            found = greedy_refine(refiner, *totals, score, limits)
            n_evaluated += refiner.n_evaluated
            if found is not None:
                return replace(found, n_evaluated=n_evaluated)
        return None


class ClauseRefiner:
    """One greedy search: the clause so far, what it covers, and what could be added.

    Parameters
    ----------
    source : RelationalSource
    bottom : BottomClause
        Of the seed example.
    positive : bool ndarray of shape (n_examples,)
    weights : float ndarray of shape (n_examples,)
    path : CurvePath
        Of the most general clause.
    score : str
        What is maximised.
    """

    def __init__(
        self,
        source: RelationalSource,
        bottom: BottomClause,
        positive: np.ndarray,
        weights: np.ndarray,
        path: CurvePath,
        score: str,
    ) -> None:
        self.source = source
        self.coverage = source.coverage
        self.bottom = bottom
        self.positive = positive
        self.weights = weights
        self.path = path
        self.scorer = SCORES[score]
        positives, negatives = (np.array([total]) for total in path.end)
        self.current = float(self.scorer(positives, negatives, path)[0])
        self.partial: Partial = bottom.start()
        self.covered = np.ones(len(positive), dtype=bool)
        self.n_evaluated = 0
        self.options: list[tuple[Body, HeadSet]] = []
        self.sums = (np.empty(0), np.empty(0))
        limit = source.limits.max_seconds
        self.coverage.deadline = None if limit is None else time.monotonic() + limit

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Score every literal of the bottom clause, and pairs of those that open new variables."""
        self.options, self.sums = [], (np.empty(0), np.empty(0))
        with suppress(TimeUpError):  # what was scored in time still counts
            refinements = self._refinements(self.partial)
            singles = [r.literal for r in refinements if not r.implied]
            self._evaluate((), singles)
            self._look_ahead(refinements)
        return self.sums

    def refine(self, index: int) -> tuple[object, np.ndarray]:
        """Take a candidate; return the clause and the examples it covers."""
        literals, head_set = self.options[index]
        for literal in literals:
            self.partial = self.bottom.extend(self.partial, literal)
        self.covered = self.coverage.narrow(self.covered, head_set)
        positives, negatives = (float(sums[index]) for sums in self.sums)
        point = np.array([positives]), np.array([negatives])
        self.current = float(self.scorer(*point, self.path)[0])
        self.path = self.path.extended(positives, negatives)
        schema, background = self.source.data.schema, self.source.data.background
        return decode(self.partial.body, schema, background), self.covered

    def _refinements(self, partial: Partial) -> list[Refinement]:
        """Literals that may be added to a clause of this search; none where it is long enough."""
        if len(partial.body) >= self.source.limits.max_length:
            return []
        return self.bottom.refinements(partial, self.coverage.deadline)

    def _evaluate(self, first: Body, literals: Sequence[CodedAtom]) -> None:
        """Add the clauses with `first` and each of the literals to the options."""
        literals = literals[: self._n_left()]
        body = (*self.partial.body, *first)
        try:
            self._add(first, literals, self.coverage.literals(body, literals))
        except TimeUpError:
            self._add(first, literals, self.coverage.known(body, literals))
            raise

    def _n_left(self) -> int | None:
        """How many more clauses this search may score."""
        limit = self.source.limits.max_evaluated
        return None if limit is None else max(0, limit - self.n_evaluated)

    def _add(
        self, first: Body, literals: Sequence[CodedAtom], found: Sequence[HeadSet | None]
    ) -> None:
        """Weigh the sets that were found and add their clauses to the options."""
        pairs = [(e, s) for e, s in zip(literals, found, strict=True) if s is not None]
        sets = [head_set for _, head_set in pairs]
        sums = self.coverage.weigh(sets, self.covered, self.positive, self.weights)
        self.n_evaluated += len(pairs)
        self.options += [((*first, literal), head_set) for literal, head_set in pairs]
        self.sums = (
            np.concatenate([self.sums[0], sums[0]]),
            np.concatenate([self.sums[1], sums[1]]),
        )

    def _repeats(self, refinement: Refinement) -> bool:
        """Whether the new variables could only be those of an atom that the clause has already."""
        literal, n_known = refinement.literal, len(self.partial.types)
        fixed = [p for p, term in enumerate(literal.terms) if term < n_known]
        return refinement.implied and self.source.data.background.is_key(literal.predicate, fixed)

    def _look_ahead(self, refinements: list[Refinement]) -> None:
        """Try second literals on the variables that a first literal introduces.

        A literal that only introduces a variable is often true of every example, and of no use but to
        the literal after it.
        """
        if len(self.partial.body) + 2 > self.source.limits.max_length or self._n_left() == 0:
            return
        of_singles = self.scorer(*self.sums, self.path).tolist()
        scores = {e[0]: score for (e, _), score in zip(self.options, of_singles, strict=True)}
        openings = [r.literal for r in refinements if r.n_new and not self._repeats(r)]
        # an implied literal leaves the coverage, and so the score, as it is
        openings.sort(key=lambda literal: -scores.get(literal, self.current))
        n_known = len(self.partial.types)
        for opening in openings[: self.source.limits.lookahead]:
            extended = self.bottom.extend(self.partial, opening)
            seconds = [
                r.literal
                for r in self._refinements(extended)
                if not r.implied
                and any(n_known <= v < len(extended.types) for v in r.literal.terms)
            ]
            self._evaluate((opening,), seconds)
