"""Gleaner, the rival of PRankBoost's learning curves.

Goadrich, Oliphant & Shavlik (2006), "Gleaner: creating ensembles of first-order clauses to improve
recall-precision curves", Machine Learning 64. Recall is cut into equal bins. From each of many positive seeds
a random local search scores clauses of the seed's bottom clause, and of each seed and bin the clause with the
greatest precision x recall whose recall falls into the bin is kept. In each bin the theory "at least L of
the kept clauses cover it" gets the L that reaches the bin's recall at the best precision on tuning
examples. A ranking runs over the bins: what the theory of a lower recall covers comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from toprank import RelationalData
from toprank.rules.relational.clause import Body, decode, encode
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.search import ClauseRefiner, RelationalLimits, RelationalSource

TOP = 5  # the local search takes one of so many best refinements


@dataclass
class Gleaner:
    """Gleaner over relational data, in the language of the paper.

    `fit` yields the number of clauses evaluated after each seed, so that a learning curve can be drawn;
    `scores` ranks examples with what has been kept so far.
    """

    n_seeds: int = 20
    clauses_per_seed: int = 500
    n_bins: int = 20
    max_length: int = 4
    tuning_share: float = 0.25
    random_state: int = 0
    kept: list[dict[Body, float]] = field(default_factory=list)  # by bin

    def fit(self, data: RelationalData, y: np.ndarray) -> Iterator[int]:
        """Search from one seed after the other; yield the clauses evaluated so far."""
        random = np.random.RandomState(self.random_state)
        split = StratifiedShuffleSplit(1, test_size=self.tuning_share, random_state=random)
        rows, tuning = next(split.split(np.zeros(len(y)), y))
        self.tuning, self.tuning_y = data[tuning], y[tuning]
        train, positive = data[rows], np.ascontiguousarray(y[rows] > 0)
        self.kept = [{} for _ in range(self.n_bins)]
        limits = RelationalLimits(self.max_length, lookahead=0, seed_choice="uniform")
        weights, n_evaluated = np.ones(len(rows)), 0
        with Coverage(train.background, train.codes()) as coverage:
            source = RelationalSource(train, coverage, limits, random)
            seeds = np.flatnonzero(positive & source.has_facts)
            for seed in random.permutation(seeds)[: self.n_seeds]:
                n_evaluated += self._search(source, int(seed), positive, weights)
                yield n_evaluated

    def _search(
        self, source: RelationalSource, seed: int, positive: np.ndarray, weights: np.ndarray
    ) -> int:
        """Walk at random through the bottom clause of a seed; keep its best clause of each bin."""
        bottom = source.saturation.of(source.data.background, source.coverage.codes[seed])
        best: dict[int, tuple[float, Body]] = {}
        n_evaluated, n_walks = 0, 0
        while n_evaluated < self.clauses_per_seed and n_walks < 20:
            n_walks += 1
            refiner = ClauseRefiner(source, bottom, positive, weights, "clause", seed)
            for _ in range(self.max_length):
                positives, negatives = refiner.candidates()
                n_evaluated += len(positives)
                if not len(positives):
                    break
                recall = positives / positive.sum()
                value = recall * positives / np.maximum(positives + negatives, 1e-300)
                for k, (reached, quality) in enumerate(zip(recall, value, strict=True)):
                    place = min(int(reached * self.n_bins), self.n_bins - 1)
                    if quality > best.get(place, (0.0, ()))[0]:
                        best[place] = quality, (*refiner.partial.body, *refiner.options[k][0])
                top = np.argsort(-value, kind="stable")[:TOP]
                refiner.refine(int(source.random.choice(top)))
        for place, (quality, body) in best.items():
            self.kept[place][body] = quality
        return n_evaluated

    def scores(self, data: RelationalData) -> np.ndarray:
        """Rank examples: by the lowest bin whose theory covers them, then by the share of its clauses."""
        counts, tuned = self._counts(data), self._counts(self.tuning)
        found = np.zeros(len(data))
        for place in range(self.n_bins):
            n_clauses = len(self.kept[place])
            if not n_clauses:
                continue
            least = self._threshold(tuned[place], n_clauses, place / self.n_bins)
            covered = counts[place] >= least
            value = (self.n_bins - place) + counts[place] / (n_clauses + 1)
            found = np.where(covered, np.maximum(found, value), found)
        return found

    def _threshold(self, counts: np.ndarray, n_clauses: int, recall: float) -> int:
        """Return the L of the best precision among those that reach the bin's recall on tuning examples."""
        positive = self.tuning_y > 0
        best, least = -1.0, 1
        for bound in range(1, n_clauses + 1):
            covered = counts >= bound
            hits = int((covered & positive).sum())
            if hits >= recall * positive.sum() and hits and hits / covered.sum() > best:
                best, least = hits / covered.sum(), bound
        return least

    def _counts(self, data: RelationalData) -> list[np.ndarray]:
        """Return how many of the clauses of each bin cover each example.

        Codes belong to a background: clauses go through their names.
        """
        own = self.tuning
        with Coverage(data.background, data.codes()) as coverage:
            counts = []
            for bodies in self.kept:
                covered = np.zeros(len(data), dtype=np.int64)
                for body in bodies:
                    clause = decode(body, own.schema, own.background)
                    covered += coverage.mask(encode(clause, data.schema, data.background))
                counts.append(covered)
        return counts
