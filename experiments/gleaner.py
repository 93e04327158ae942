"""Gleaner, the rival of PRankBoost's learning curves.

Goadrich, Oliphant & Shavlik (2006), "Gleaner: creating ensembles of first-order clauses to improve
recall-precision curves", Machine Learning 64. Recall is cut into equal bins. From each of many positive seeds
a random local search scores clauses of the seed's bottom clause, and of each seed and bin the clause with the
greatest precision x recall whose recall falls into the bin is kept. In each bin the theory "at least L of
the kept clauses cover it" gets the L that reaches the bin's recall at the best precision on tuning
examples. The curve runs over the theories of the bins. Here they rank: an example has the precision, on the
tuning examples, of the best theory that covers it. (By recall instead, a theory of a low bin that reaches a far
greater recall at a poor precision would come first: AURPC .05 against .19 on the first fold of uwcse.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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
    counted: dict[int, Any] = field(default_factory=dict)  # by data, as in `_counts`

    def fit(self, data: RelationalData, y: np.ndarray) -> Iterator[int]:
        """Search from one seed after the other; yield the clauses evaluated so far."""
        random = np.random.RandomState(self.random_state)
        split = StratifiedShuffleSplit(1, test_size=self.tuning_share, random_state=random)
        rows, tuning = next(split.split(np.zeros(len(y)), y))
        self.tuning, self.tuning_y = data[tuning], y[tuning]
        train, positive = data[rows], np.ascontiguousarray(y[rows] > 0)
        self.kept, self.counted = [{} for _ in range(self.n_bins)], {}
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
        """Rank examples by the tuned precision of the best theory that covers them, then by its votes."""
        found = np.zeros(len(data))
        every, tuned = self._counts(data), self._counts(self.tuning)
        for place, (counts, bodies) in enumerate(zip(every, self.kept, strict=True)):
            if bodies:
                least, precision = self._threshold(tuned[place], len(bodies), place / self.n_bins)
                votes = counts / (len(bodies) + 1)
                found = np.maximum(found, np.where(counts >= least, precision + 1e-6 * votes, 0))
        return found

    def _threshold(self, counts: np.ndarray, n_clauses: int, recall: float) -> tuple[int, float]:
        """Return the L of the best precision among those that reach the bin's recall on tuning examples.

        Of its precision one false positive more is counted: few examples are no proof.
        """
        positive = self.tuning_y > 0
        best, least = 0.0, 1
        for bound in range(1, n_clauses + 1):
            covered = counts >= bound
            hits = int((covered & positive).sum())
            precision = hits / (int(covered.sum()) + 1)
            if hits >= recall * positive.sum() and precision > best:
                best, least = precision, bound
        return least, best

    def _counts(self, data: RelationalData) -> list[np.ndarray]:
        """Return how many of the clauses of each bin cover each example; those seen before are kept.

        Codes belong to a background: clauses go through their names.
        """
        own = self.tuning
        seen = self.counted.setdefault(
            id(data), [(set(), np.zeros(len(data), dtype=np.int64)) for _ in self.kept]
        )
        with Coverage(data.background, data.codes()) as coverage:
            for bodies, (done, counts) in zip(self.kept, seen, strict=True):
                for body in bodies.keys() - done:
                    clause = decode(body, own.schema, own.background)
                    counts += coverage.mask(encode(clause, data.schema, data.background))
                    done.add(body)
        return [counts for _, counts in seen]
