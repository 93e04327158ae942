"""Bootstrap values of metrics without sorting again.

A resample only changes how often each row counts. For one list of two classes it is enough to know
on which step of the staircase (or between which two) each row lies: a draw adds the row's weight
there, and the metrics read the new staircase. Every resample has its own stream of random numbers,
made from the seed and its index: the values do not depend on the number of threads, and two lists
of scores of the same rows that share a seed share their draws.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from toprank.metrics._lists import QueryTable, Staircase, mean_over_queries
from toprank.ranking import RankedList
from toprank.validation import BinaryRows, GradedRows

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
FEWEST_RESAMPLES = 200
CHUNK = 16  # resamples that one task draws

Core = Callable[..., Any]
Job = tuple[Core, dict[str, Any]]


@dataclass(frozen=True)
class ListSample:
    """Rows of two classes in one list."""

    rows: BinaryRows

    @cached_property
    def ranked(self) -> RankedList:
        return RankedList.of(self.rows.positive, self.rows.scores, self.rows.weight)

    @cached_property
    def stairs(self) -> Staircase:
        return Staircase.of(self.ranked)

    def value(self, job: Job) -> float:
        """Value of a metric on the rows as they are."""
        core, parameters = job
        return float(core(self.stairs, **parameters))

    def distribution(
        self, jobs: Sequence[Job], n_resamples: int, seed: int, n_jobs: int | None = None
    ) -> np.ndarray:
        """Values of each job (rows) on each resample (columns), stratified by class."""
        draw = self._drawer(seed)

        def evaluate(resample: int) -> list[float]:
            stairs = draw(resample)
            return [core(stairs, **parameters) for core, parameters in jobs]

        return _gather(evaluate, n_resamples, n_jobs)

    def _drawer(self, seed: int) -> Callable[[int], Staircase]:
        """Map the rows to the places of the staircase and return a function that redraws them."""
        positive, scores, weight = self.rows.positive, self.rows.scores, self.rows.weight
        levels = np.ascontiguousarray(self.stairs.scores[::-1])
        n_steps = len(levels)
        found = np.searchsorted(levels, scores)  # levels strictly below the score
        met = levels[np.minimum(found, n_steps - 1)] == scores
        step = n_steps - found - met  # levels strictly above the score
        rises = step[positive].astype(np.int32)
        # negatives between steps come first (n_steps + 1 places), then those tied with one
        places = (step + met * (n_steps + 1))[~positive].astype(np.int32)
        none = np.empty(0)
        heights = none if weight is None else weight[positive]
        widths = none if weight is None else weight[~positive]

        def draw(resample: int) -> Staircase:
            with np.errstate(over="ignore"):  # the generator wraps; NumPy warns where Numba is off
                rise, across = _draw_steps(
                    seed, resample, rises, heights, places, widths, n_steps, 2 * n_steps + 1
                )
            run, tied = across[: n_steps + 1], across[n_steps + 1 :]
            return Staircase(run, rise, tied, self.stairs.scores)

        return draw


@dataclass(frozen=True)
class TableSample:
    """Rows of many queries, or of one list with graded labels."""

    rows: GradedRows

    @cached_property
    def table(self) -> QueryTable:
        return QueryTable.of(self.rows)

    def value(self, job: Job) -> float:
        """Mean over the queries that can be scored."""
        return mean_over_queries(self.query_values(job))

    def query_values(self, job: Job) -> np.ndarray:
        """Value of each query, NaN where it cannot be scored."""
        core, parameters = job
        return core(self.table, **parameters)

    def distribution(
        self, jobs: Sequence[Job], n_resamples: int, seed: int, n_jobs: int | None = None
    ) -> np.ndarray:
        """Resample the queries; or, where there are none, the rows of each label."""
        if self.rows.qid is not None:
            return np.stack([self._redraw_queries(job, n_resamples, seed) for job in jobs])
        table = self.table
        by_level = np.argsort(table.codes, kind="stable")
        bounds = np.searchsorted(table.codes[by_level], np.arange(len(table.levels) + 1))

        def evaluate(resample: int) -> list[float]:
            with np.errstate(over="ignore"):
                weight = _draw_rows(seed, resample, by_level, bounds, table.weight)
            redrawn = table.reweighted(weight)
            return [float(core(redrawn, **parameters)[0]) for core, parameters in jobs]

        return _gather(evaluate, n_resamples, n_jobs)

    def _redraw_queries(self, job: Job, n_resamples: int, seed: int) -> np.ndarray:
        """Means over as many queries as can be scored, drawn with replacement."""
        values = self.query_values(job)
        values = values[~np.isnan(values)]
        generator = np.random.default_rng(seed)
        means = np.empty(n_resamples)
        for resample in range(n_resamples):
            means[resample] = values[generator.integers(len(values), size=len(values))].mean()
        return means


@dataclass(frozen=True)
class CustomSample:
    """Rows for any function of labels and scores: each resample calls it on the drawn rows."""

    labels: np.ndarray
    scores: np.ndarray
    weight: np.ndarray | None
    qid: np.ndarray | None
    fixed: dict[str, Any]

    def value(self, job: Job) -> float:
        """Value of the function on the rows as they are."""
        return self._call(job, np.arange(len(self.labels)), self.qid)

    def distribution(
        self, jobs: Sequence[Job], n_resamples: int, seed: int, n_jobs: int | None = None
    ) -> np.ndarray:
        """Draw rows within each label, or whole queries where there are any."""
        key = self.labels if self.qid is None else self.qid
        codes = np.unique(key, return_inverse=True)[1]
        members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])

        def evaluate(resample: int) -> list[float]:
            generator = np.random.default_rng([seed, resample])
            if self.qid is None:
                drawn = [part[generator.integers(len(part), size=len(part))] for part in members]
                rows, qid = np.concatenate(drawn), None
            else:
                chosen = generator.integers(len(members), size=len(members))
                rows = np.concatenate([members[query] for query in chosen])
                qid = np.repeat(np.arange(len(chosen)), [len(members[q]) for q in chosen])
            return [self._call(job, rows, qid) for job in jobs]

        return _gather(evaluate, n_resamples, n_jobs)

    def _call(self, job: Job, rows: np.ndarray, qid: np.ndarray | None) -> float:
        function, parameters = job
        given = {"sample_weight": None if self.weight is None else self.weight[rows], "qid": qid}
        given = {name: value for name, value in given.items() if value is not None}
        value = function(self.labels[rows], self.scores[rows], **given, **self.fixed, **parameters)
        return float(value)


def affordable_resamples(n_resamples: int, cost: float, most: float = 1e8) -> int:
    """Return how many resamples of `cost` draws each fit into `most` draws, but at least 200.

    Never more than were asked for. Long lists vary less, so fewer resamples do.

    Examples
    --------
    >>> affordable_resamples(1000, 1e3), affordable_resamples(1000, 1e7), affordable_resamples(50, 1e7)
    (1000, 200, 50)
    """
    return int(min(n_resamples, max(FEWEST_RESAMPLES, most // max(cost, 1.0))))


def count_jobs(n_jobs: int | None) -> int:
    """Number of threads: None is one, -1 as many as there are processors."""
    if n_jobs is None:
        return 1
    available = os.cpu_count() or 1
    return max(1, available + 1 + n_jobs) if n_jobs < 0 else max(1, n_jobs)


def seed_of(random_state: Any) -> int:
    """A seed below 2**62 from an integer, a generator or nothing."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**62))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(np.random.default_rng(random_state).integers(2**62))


def _gather(
    evaluate: Callable[[int], list[float]], n_resamples: int, n_jobs: int | None
) -> np.ndarray:
    """Evaluate all resamples, in fixed chunks over threads, as a (jobs, resamples) array."""

    def run(start: int) -> list[list[float]]:
        return [evaluate(b) for b in range(start, min(start + CHUNK, n_resamples))]

    starts = range(0, n_resamples, CHUNK)
    workers = count_jobs(n_jobs)
    if workers == 1:
        chunks = [run(start) for start in starts]
    else:
        with ThreadPoolExecutor(workers) as pool:
            chunks = list(pool.map(run, starts))
    return np.array([values for chunk in chunks for values in chunk], dtype=np.float64).T


@njit(cache=True, nogil=True)
def _mix(z):
    """Finaliser of the splitmix64 generator (Steele, Lea and Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def _stream(seed, resample):
    """Start of the random stream of one resample."""
    return _mix(_mix(np.uint64(seed) + GOLDEN) ^ (np.uint64(resample) * GOLDEN))


@njit(cache=True, nogil=True)
def _add_draws(state, places, weight, sums):
    """Draw as many rows as there are, with replacement, and add them up by place."""
    n = len(places)
    scale = n / 9007199254740992.0  # 53 random bits to [0, n)
    if len(weight) == 0:
        for _ in range(n):
            state += GOLDEN
            row = int(np.float64(_mix(state) >> np.uint64(11)) * scale)
            sums[places[row]] += 1.0
    else:
        for _ in range(n):
            state += GOLDEN
            row = int(np.float64(_mix(state) >> np.uint64(11)) * scale)
            sums[places[row]] += weight[row]
    return state


@njit(cache=True, nogil=True)
def _draw_steps(seed, resample, rises, heights, places, widths, n_steps, n_places):
    """Weights of one stratified resample: positives by step, negatives by place."""
    rise = np.zeros(n_steps, np.float64)
    across = np.zeros(n_places, np.float64)
    state = _add_draws(_stream(seed, resample), rises, heights, rise)
    _add_draws(state, places, widths, across)
    return rise, across


@njit(cache=True, nogil=True)
def _draw_rows(seed, resample, rows, bounds, weight):
    """Weights of all rows in one resample that draws within `rows[bounds[c]:bounds[c + 1]]`."""
    drawn = np.zeros(len(weight), np.float64)
    state = _stream(seed, resample)
    for c in range(len(bounds) - 1):
        n = bounds[c + 1] - bounds[c]
        scale = n / 9007199254740992.0
        for _ in range(n):
            state += GOLDEN
            row = rows[bounds[c] + int(np.float64(_mix(state) >> np.uint64(11)) * scale)]
            drawn[row] += weight[row]
    return drawn
