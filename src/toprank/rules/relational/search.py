"""The search for one clause: greedy refinement from the bottom clause of a seed example."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from toprank.rules.clauses import SCORES, CurvePath, SearchLimits, draw_seed, greedy_refine
from toprank.rules.relational.background import TimeUpError
from toprank.rules.relational.bottom import BottomClause, Partial, Refinement, Saturation
from toprank.rules.relational.clause import Body, Clause, CodedAtom, decode
from toprank.rules.relational.coverage import Coverage, HeadSet
from toprank.rules.relational.data import RelationalData
from toprank.rules.weak_rankers import SearchPath, total_weights

__all__ = ["RelationalLimits", "RelationalSource"]


@dataclass(frozen=True)
class RelationalLimits(SearchLimits):
    """Limits of the search for one clause, beside those on its length, evaluations and time."""

    max_depth: int = 2  # as in `Saturation`
    recall: int = 10
    lookahead: int = 5  # literals that open variables, tried with a second literal on these
    n_seeds: int = 5  # seed examples that are tried before a round ends without a clause


class RelationalSource:
    """A source of weak rankers over relational data and the coverage of its examples.

    Each search draws a positive example by its weight, builds its bottom clause, and refines the most
    general clause greedily with literals of it.
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
        # sorted by their contents, so that the draw does not depend on the order of rows
        self.order = np.lexsort(coverage.codes.T[::-1])

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "auc") -> SearchPath | None:
        """Search from one seed, or from a few if the first ones find nothing."""
        positive = np.ascontiguousarray(y > 0)
        seeds = self.order[positive[self.order]]
        totals = total_weights(y, weights)
        n_evaluated = 0
        for _ in range(self.limits.n_seeds):
            seed = draw_seed(seeds, weights, self.random)
            bottom = self.saturation.of(self.data.background, self.coverage.codes[seed])
            refiner = ClauseRefiner(self, bottom, positive, weights, score)
            found = greedy_refine(refiner, *totals, score, self.limits)
            n_evaluated += refiner.n_evaluated
            if found is not None:
                return replace(found, n_evaluated=n_evaluated)
        return None


class ClauseRefiner:
    """One greedy search in the bottom clause of a seed: the clause so far, and what could be added."""

    def __init__(
        self,
        source: RelationalSource,
        bottom: BottomClause,
        positive: np.ndarray,
        weights: np.ndarray,
        score: str,
    ) -> None:
        self.data = source.data
        self.coverage = source.coverage
        self.limits = source.limits
        self.bottom = bottom
        self.positive = positive
        self.weights = weights
        self.scorer = SCORES[score]
        self.path = CurvePath(*total_weights(positive, weights))
        self.current = self._score(*self.path.end)
        self.partial: Partial = bottom.start()
        self.covered = np.ones(len(positive), dtype=bool)
        self.n_evaluated = 0
        self.options: list[tuple[Body, HeadSet]] = []
        self.sums = (np.empty(0), np.empty(0))
        limit = self.limits.max_seconds
        self.coverage.deadline = None if limit is None else time.monotonic() + limit

    def candidates(self) -> tuple[np.ndarray, np.ndarray]:
        """Score every literal of the bottom clause, and pairs of those that open new variables."""
        self.options, self.sums = [], (np.empty(0), np.empty(0))
        with suppress(TimeUpError):  # what was scored in time still counts
            refinements = self._refinements(self.partial)
            self._evaluate((), [r.literal for r in refinements if not r.implied])
            self._look_ahead(refinements)
        return self.sums

    def refine(self, index: int) -> tuple[Clause, np.ndarray]:
        """Take a candidate; return the clause and the examples it covers."""
        literals, head_set = self.options[index]
        for literal in literals:
            self.partial = self.bottom.extend(self.partial, literal)
        self.covered = self.coverage.narrow(self.covered, head_set)
        point = float(self.sums[0][index]), float(self.sums[1][index])
        self.current = self._score(*point)
        self.path = self.path.extended(*point)
        return decode(self.partial.body, self.data.schema, self.data.background), self.covered

    def _score(self, positives: float, negatives: float) -> float:
        """Return the score of a clause that covers these weights of the classes."""
        return float(self.scorer(np.array([positives]), np.array([negatives]), self.path)[0])

    def _refinements(self, partial: Partial) -> list[Refinement]:
        """Return the literals that may be added to a clause of this search, if it is short enough."""
        if len(partial.body) >= self.limits.max_length:
            return []
        return self.bottom.refinements(partial, self.coverage.deadline)

    def _evaluate(self, first: Body, literals: Sequence[CodedAtom]) -> None:
        """Add the clauses with `first` and each of the literals to the options."""
        literals = literals[: self._n_left()]
        body = (*self.partial.body, *first)
        try:
            self._add(first, literals, self.coverage.cover_literals(body, literals))
        except TimeUpError:
            self._add(first, literals, self.coverage.cached_literals(body, literals))
            raise

    def _n_left(self) -> int | None:
        """Return how many more clauses this search may score."""
        limit = self.limits.max_evaluated
        return None if limit is None else max(0, limit - self.n_evaluated)

    def _add(
        self, first: Body, literals: Sequence[CodedAtom], found: Sequence[HeadSet | None]
    ) -> None:
        """Sum the weights of the sets that were found and add their clauses to the options."""
        pairs = [(e, s) for e, s in zip(literals, found, strict=True) if s is not None]
        sets = [head_set for _, head_set in pairs]
        sums = self.coverage.weigh(sets, self.covered, self.positive, self.weights)
        self.n_evaluated += len(pairs)
        self.options += [((*first, literal), head_set) for literal, head_set in pairs]
        self.sums = np.append(self.sums[0], sums[0]), np.append(self.sums[1], sums[1])

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
            self._evaluate((opening,), seconds)

    def _repeats(self, refinement: Refinement) -> bool:
        """Return whether the new variables could only be those of an atom that the clause has."""
        literal, n_known = refinement.literal, len(self.partial.types)
        fixed = [p for p, term in enumerate(literal.terms) if term < n_known]
        return refinement.implied and self.data.background.is_key(literal.predicate, fixed)
