"""Bootstrap resamples of ranked lists, drawn without sorting again.

Rows are drawn within each class, or whole groups of rows. A draw adds the weight of a row to the step of its
staircase, or between two steps, where the row lies. Every resample has its own stream of random numbers, made
from the seed and its index, so the values do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from toprank.metrics.queries import QueryTable, mean_over_queries
from toprank.metrics.steps import Job, Staircase
from toprank.parallel import ThreadPool
from toprank.ranking import RankedList
from toprank.validation import BinaryRows, GradedRows

__all__ = [
    "CustomSample",
    "Job",
    "ListSample",
    "TableSample",
    "affordable_resamples",
    "draw_groups",
    "run_resamples",
    "seed_of",
]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
CHUNK = 16  # resamples that one task draws
FEWEST_RESAMPLES = 200
ROWS_PER_PLACE = 10  # drawing the count of a place takes about as long as drawing so many rows,
ROWS_PER_PLACE_LONG = 3  # or so many of a list that is too long for the caches
LONG_LIST = 500_000
MOST_DRAWS = 1_000  # of groups, until both classes are there

Reader = Callable[[int], Sequence[float] | np.ndarray]


def affordable_resamples(n_resamples: int, cost: float, most: float = 1e8) -> int:
    """Return how many resamples of `cost` draws each fit into `most` draws, but at least 200.

    Never more than were asked for. Long lists vary less, so fewer resamples do.
    """
    return int(min(n_resamples, max(FEWEST_RESAMPLES, most // max(cost, 1.0))))


def seed_of(random_state: Any) -> int:
    """Return a seed below 2**62 from an integer, a generator or nothing."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.default_rng(random_state).integers(2**62))


def run_resamples(read: Reader, n_resamples: int, n_jobs: int | None = None) -> np.ndarray:
    """Call `read` with the number of each resample, in threads; return its values in rows."""

    def run(start: int) -> list[Any]:
        return [read(resample) for resample in range(start, min(start + CHUNK, n_resamples))]

    with ThreadPool(n_jobs) as pool:
        chunks = pool.map(run, range(0, n_resamples, CHUNK))
    return np.array([values for chunk in chunks for values in chunk], dtype=np.float64)


@dataclass(frozen=True)
class ListSample:
    """Rows of two classes in one list; with groups (codes from 0 on) resamples draw whole groups."""

    rows: BinaryRows
    groups: np.ndarray | None = None

    @cached_property
    def ranked(self) -> RankedList:
        return RankedList.of(self.rows.positive, self.rows.scores, self.rows.weight)

    @cached_property
    def stairs(self) -> Staircase:
        return Staircase.of_rows(self.rows)

    def value(self, job: Job) -> float:
        """Return the value of a metric on the rows as they are."""
        core, parameters = job
        return float(core(self.stairs, **parameters))

    def distribution(
        self,
        jobs: Sequence[Job],
        n_resamples: int,
        seed: int,
        n_jobs: int | None = None,
        *,
        paired: bool = True,
    ) -> np.ndarray:
        """Return the values of each job (rows) on each resample (columns), as `draw` makes them."""

        def read(resample: int) -> list[float]:
            stairs = self.draw(seed, resample, paired=paired)
            # a draw of groups may have fewer rows than were asked for
            return [core(stairs, **_at_most(stairs.total, parameters)) for core, parameters in jobs]

        return run_resamples(read, n_resamples, n_jobs).T

    def draw(self, seed: int, resample: int, *, paired: bool = True) -> Staircase:
        """Draw the rows of each class with replacement and return the staircase of the draw.

        Paired draws depend on the classes, the seed and the number of the resample only: every list of
        scores of the same rows gets the same rows. Where that is not needed and positives are rare, the
        negatives are counted by place instead of drawn one by one: without weights these counts are
        multinomial, and there are no more than two places for each positive and one.
        """
        n_steps, (steps, places) = self.stairs.n_steps, self._row_places
        if self.groups is not None:
            weight = draw_groups(self.rows.positive, self.groups, seed, resample)
            weight = weight if self.rows.weight is None else weight * self.rows.weight
            positives = np.bincount(steps, weight[self.rows.positive], n_steps)
            negatives = np.bincount(places, weight[~self.rows.positive], 2 * n_steps + 1)
            return self._redrawn(positives, negatives)
        of_positives, of_negatives = self._class_weights
        positives = _draw(seed, resample, 0, steps, of_positives, n_steps)
        if not paired and self.draws_by_place:
            generator = np.random.default_rng([seed, resample])
            negatives = generator.multinomial(len(places), self._place_shares).astype(np.float64)
        else:
            negatives = _draw(seed, resample, len(steps), places, of_negatives, 2 * n_steps + 1)
        return self._redrawn(positives, negatives)

    def _redrawn(self, positives: np.ndarray, negatives: np.ndarray) -> Staircase:
        """Return the staircase with other weights of positives by step and of negatives by place."""
        n_between = self.stairs.n_steps + 1
        return Staircase(
            negatives[:n_between], positives, negatives[n_between:], self.stairs.scores
        )

    def draw_sums(self, seed: int, resample: int, values: np.ndarray) -> np.ndarray:
        """Return the sum of `values` (one for each positive row) by step, over the rows that `draw` draws."""
        return _draw(seed, resample, 0, self._row_places[0], values, self.stairs.n_steps)

    def step_sums(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of `values` (one for each positive row) by step, over the rows as they are."""
        return np.bincount(self._row_places[0], values, self.stairs.n_steps)

    @property
    def draws_by_place(self) -> bool:
        """Whether unpaired draws count the negatives by place."""
        n_negatives, n_places = len(self._row_places[1]), 2 * self.stairs.n_steps + 1
        fewest = ROWS_PER_PLACE_LONG if n_negatives > LONG_LIST else ROWS_PER_PLACE
        return self.rows.weight is None and n_negatives > fewest * n_places

    @property
    def cost(self) -> int:
        """About how many numbers one unpaired draw takes, for `affordable_resamples`."""
        steps, places = self._row_places
        n_places = 2 * self.stairs.n_steps + 1
        return len(steps) + (n_places if self.rows.weight is None else len(places))

    @cached_property
    def _row_places(self) -> tuple[np.ndarray, np.ndarray]:
        """The step of each positive row, and the place of each negative one.

        The places between steps come first (n_steps + 1 of them), then those tied with a step.
        """
        positive, scores = self.rows.positive, self.rows.scores
        levels = np.ascontiguousarray(self.stairs.scores[::-1])
        n_steps = len(levels)
        below = np.searchsorted(levels, scores)
        tied = levels[np.minimum(below, n_steps - 1)] == scores
        step = n_steps - below - tied
        places = step + tied * (n_steps + 1)
        return step[positive].astype(np.int32), places[~positive].astype(np.int32)

    @cached_property
    def _class_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the positive and the negative rows; empty where every row counts one."""
        if self.rows.weight is None:
            return np.empty(0), np.empty(0)
        return self.rows.weight[self.rows.positive], self.rows.weight[~self.rows.positive]

    @cached_property
    def _place_shares(self) -> np.ndarray:
        """Share of the negatives in each place."""
        counts = np.concatenate((self.stairs.negatives_between, self.stairs.negatives_tied))
        return counts / counts.sum()


@dataclass(frozen=True)
class TableSample:
    """Rows of many queries, or of one list with graded labels."""

    rows: GradedRows

    @cached_property
    def table(self) -> QueryTable:
        return QueryTable.of(self.rows)

    def value(self, job: Job) -> float:
        """Return the mean over the queries that can be scored."""
        return mean_over_queries(self.query_values(job))

    def query_values(self, job: Job) -> np.ndarray:
        """Return the value of each query, NaN where it cannot be scored."""
        core, parameters = job
        return core(self.table, **parameters)

    def distribution(
        self,
        jobs: Sequence[Job],
        n_resamples: int,
        seed: int,
        n_jobs: int | None = None,
        *,
        paired: bool = True,
    ) -> np.ndarray:
        """Resample the queries; or, where there are none, the rows of each label. Always paired."""
        if self.rows.qid is not None:
            return self._redraw_queries(jobs, n_resamples, seed)
        table = self.table
        by_level = np.argsort(table.codes, kind="stable")
        bounds = np.searchsorted(table.codes[by_level], np.arange(len(table.levels) + 1))

        def read(resample: int) -> list[float]:
            with np.errstate(over="ignore"):
                weight = _draw_rows(seed, resample, by_level, bounds, table.weight)
            redrawn = replace(table, weight=weight)
            return [float(core(redrawn, **parameters)[0]) for core, parameters in jobs]

        return run_resamples(read, n_resamples, n_jobs).T

    def _redraw_queries(self, jobs: Sequence[Job], n_resamples: int, seed: int) -> np.ndarray:
        """Return means over as many queries as can be scored, drawn with replacement."""
        means = np.empty((len(jobs), n_resamples))
        for row, job in zip(means, jobs, strict=True):
            values = self.query_values(job)
            values = values[~np.isnan(values)]
            generator = np.random.default_rng(seed)
            for resample in range(n_resamples):
                row[resample] = values[generator.integers(len(values), size=len(values))].mean()
        return means


@dataclass(frozen=True)
class CustomSample:
    """Rows for any function of labels and scores: each resample calls it on the drawn rows."""

    labels: np.ndarray
    scores: np.ndarray
    weight: np.ndarray | None
    qid: np.ndarray | None
    groups: np.ndarray | None = None

    def value(self, job: Job) -> float:
        """Return the value of the function on the rows as they are."""
        return self._call(job, np.arange(len(self.labels)), self.qid)

    def distribution(
        self,
        jobs: Sequence[Job],
        n_resamples: int,
        seed: int,
        n_jobs: int | None = None,
        *,
        paired: bool = True,
    ) -> np.ndarray:
        """Draw rows within each label, or whole queries or groups where there are any. Always paired."""
        classes = np.unique(self.labels, return_inverse=True)[1]
        key = classes if self.qid is None else self.qid
        codes = np.unique(key, return_inverse=True)[1]
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])

        def read(resample: int) -> list[float]:
            if self.groups is not None:
                counts = draw_groups(classes, self.groups, seed, resample)
                rows = np.repeat(np.arange(len(counts)), counts)
                return [self._call(job, rows, None) for job in jobs]
            generator = np.random.default_rng([seed, resample])
            if self.qid is None:
                drawn = [part[generator.integers(len(part), size=len(part))] for part in members]
                rows, qid = np.concatenate(drawn), None
            else:
                chosen = generator.integers(len(members), size=len(members))
                rows = np.concatenate([members[query] for query in chosen])
                qid = np.repeat(np.arange(len(chosen)), [len(members[q]) for q in chosen])
            return [self._call(job, rows, qid) for job in jobs]

        return run_resamples(read, n_resamples, n_jobs).T

    def _call(self, job: Job, rows: np.ndarray, qid: np.ndarray | None) -> float:
        function, parameters = job
        given = {"sample_weight": None if self.weight is None else self.weight[rows], "qid": qid}
        given = {name: value for name, value in given.items() if value is not None}
        return float(function(self.labels[rows], self.scores[rows], **given, **parameters))


def draw_groups(classes: np.ndarray, groups: np.ndarray, seed: int, resample: int) -> np.ndarray:
    """Draw as many groups as there are, with replacement; return how often each row is drawn.

    A draw of one class only is drawn again; the rows as they are, should every draw be.
    """
    n_groups = int(groups.max()) + 1
    generator = np.random.default_rng([seed, resample])
    for _ in range(MOST_DRAWS):
        counts = np.bincount(generator.integers(n_groups, size=n_groups), minlength=n_groups)[
            groups
        ]
        drawn = classes[counts > 0]
        if (drawn != drawn[0]).any():
            return counts
    return np.ones(len(groups), dtype=np.int64)


def _at_most(total: float, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a metric with a length of the list that is no more than `total`."""
    k = parameters.get("k")
    return parameters if k is None or k <= total else {**parameters, "k": total}


def _draw(*arguments: Any) -> np.ndarray:
    """Call `_draw_places`; its generator wraps, of which NumPy warns where Numba is off."""
    with np.errstate(over="ignore"):
        return _draw_places(*arguments)


@njit(cache=True, nogil=True)
def _mix(z):
    """Finaliser of the splitmix64 generator (Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _stream(seed, resample, start):
    """Return the state of the random stream of one resample after `start` numbers."""
    begin = _mix(_mix(np.uint64(seed) + GOLDEN) ^ (np.uint64(resample) * GOLDEN))
    return begin + np.uint64(start) * GOLDEN


@njit(cache=True, nogil=True)
def _draw_row(state, n):
    """Advance a stream and return it with a row of [0, n): 53 random bits times n."""
    state += GOLDEN
    return state, int(np.float64(_mix(state) >> np.uint64(11)) * (n / 9007199254740992.0))


@njit(cache=True, nogil=True)
def _draw_places(seed, resample, start, places, weight, n_places):
    """Draw `places` again with replacement, from `start` in the stream of a resample on; sum weight by place.

    Without weights every row counts one.
    """
    sums = np.zeros(n_places, np.float64)
    state = _stream(seed, resample, start)
    if len(weight) == 0:
        for _ in range(len(places)):
            state, row = _draw_row(state, len(places))
            sums[places[row]] += 1.0
    else:
        for _ in range(len(places)):
            state, row = _draw_row(state, len(places))
            sums[places[row]] += weight[row]
    return sums


@njit(cache=True, nogil=True)
def _draw_rows(seed, resample, rows, bounds, weight):
    """Return the weights of all rows in a resample that draws within `rows[bounds[c]:bounds[c + 1]]`."""
    drawn = np.zeros(len(weight), np.float64)
    state = _stream(seed, resample, 0)
    for c in range(len(bounds) - 1):
        for _ in range(bounds[c + 1] - bounds[c]):
            state, place = _draw_row(state, bounds[c + 1] - bounds[c])
            row = rows[bounds[c] + place]
            drawn[row] += weight[row]
    return drawn
