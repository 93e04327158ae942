"""The search: configurations one after the other over folds, until they are all done or the time is.

Every configuration that finishes a repeat of the folds has scored every row by a model that did not see it. A
configuration that cannot finish in the time left is not begun; an interruption leaves those that are done.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from toprank.automatic.portfolio import (
    Configuration,
    FittedModel,
    choose_configurations,
    fit_configuration,
    sample_rows,
)
from toprank.base import TrainingData
from toprank.columns import Columns
from toprank.folds import SplitKeys, Splits, make_splits
from toprank.parallel import thread_count
from toprank.progress import progress

__all__ = ["Search", "Trial"]

PROBES = (500, 2_000)  # rows of two short fits that tell how the time of a configuration grows
PROBE_ABOVE = 4_000  # rows
FEWEST_SPEEDS = 3  # of other configurations, that tell how long one takes that tunes itself
SAFETY = 1.3  # a fit may take so much longer than was foreseen
REUSED = 0.5  # most time of a fit with settings tuned before, over one that tunes them itself
FEWEST_ROWS = 2_000  # that a sample for lack of time has
DONE, FAILED = "done", "failed"
STOPPED, NOT_BEGUN = "stopped: no time left", "not begun: no time left"


@dataclass
class Trial:
    """What is known of one configuration.

    Attributes
    ----------
    name : str
    configuration : Configuration
        With the settings that the first of its folds has chosen, once that is fitted.
    models : list of FittedModel
        One for each fold of each finished repeat; with blocks of time the one of all rows.
    seconds : float
        All its fits took.
    status : str
    """

    name: str
    configuration: Configuration
    models: list[FittedModel] = field(default_factory=list)
    seconds: float = 0.0
    status: str = NOT_BEGUN
    repeats: int = 0
    total: np.ndarray | None = None
    times: np.ndarray | None = None
    value: float = np.nan
    error: Exception | None = None

    @property
    def out_of_fold(self) -> np.ndarray:
        """Mean score of each row by the models that did not see it; NaN where there is none."""
        assert self.total is not None
        assert self.times is not None
        empty = np.full(len(self.total), np.nan)
        return np.divide(self.total, self.times, out=empty, where=self.times > 0)


class OutOfTimeError(Exception):
    """A fit was broken off at the deadline."""


@dataclass(frozen=True)
class FoldFit:
    """What the fit of one fold has left: the model, scores of the rows held out, seconds."""

    fold: int
    model: FittedModel
    scores: np.ndarray
    seconds: float
    typical: bool = True  # False where it took longer because it tuned the settings for all folds


class Search:
    """Fit configurations over folds within a time.

    Parameters
    ----------
    data : TrainingData
        Checked rows.
    columns : Columns
        Of its matrix.
    metric : callable
        ``metric(y, scores, weight, qid)``, the more the better.
    names : sequence of str or None
        Configurations to try.
    seconds : float or None
        For the search; None for no limit.
    n_folds, n_repeats : int
    seed : int
    n_jobs : int or None
    keys : SplitKeys
        What the splits go by.
    verbose : int
    """

    def __init__(
        self,
        data: TrainingData,
        columns: Columns,
        metric: Callable[..., float],
        *,
        names: Any = None,
        seconds: float | None = None,
        n_folds: int = 5,
        n_repeats: int = 1,
        seed: int = 0,
        n_jobs: int | None = None,
        keys: SplitKeys | None = None,
        verbose: int = 0,
    ) -> None:
        self.data, self.columns, self.metric = data, columns, metric
        self.seconds, self.n_folds, self.n_repeats = seconds, n_folds, n_repeats
        self.seed, self.verbose = seed, verbose
        # two folds with a thread each are faster than one after the other with two
        self.n_threads = thread_count(n_jobs)
        self.n_parallel = min(self.n_threads, n_folds)
        self.stopped = threading.Event()
        self.keys = keys or SplitKeys()
        self.start = time.perf_counter()
        chosen = choose_configurations(names, data.X.shape[1])
        self.trials = [Trial(name, configuration) for name, configuration in chosen.items()]
        self.notes: list[str] = []
        self.interrupted = False
        # of each trial: seconds of its quickest fit over its cost
        self.speeds: dict[str, float] = {}

    # -- the loop --------------------------------------------------------------------------------

    def run(self) -> list[Trial]:
        """Run and return the trials that have out-of-fold scores; raise if there are none."""
        self.splits = self._make_splits(0)
        self.notes += self.splits.notes
        limit = self.seconds
        with progress(limit, "searching", enabled=self.verbose) as advance:
            shown = 0.0

            def report(trial: Trial) -> None:
                nonlocal shown
                now = self.elapsed if limit is not None else shown + 1.0
                advance(now - shown, tried=trial.name, best=self.best_value)
                shown = now

            try:
                for repeat in range(self.n_repeats):
                    if not self._run_repeat(repeat, report):
                        break
            except KeyboardInterrupt:
                self.interrupted = True
                if not self.done:
                    raise
        if not self.done:
            raise self._no_model()
        return self.done

    @property
    def done(self) -> list[Trial]:
        """The trials that have finished at least one repeat."""
        return [trial for trial in self.trials if trial.repeats > 0]

    @property
    def best_value(self) -> float:
        """The best metric of a single configuration so far."""
        return max((trial.value for trial in self.done), default=float("nan"))

    @property
    def refits(self) -> bool:
        """Whether a model of all rows takes the place of those of the folds: with blocks of time."""
        return self.keys.time is not None

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.start

    @property
    def time_left(self) -> float:
        return np.inf if self.seconds is None else self.seconds - self.elapsed

    def _run_repeat(self, repeat: int, report: Callable[[Trial], None]) -> bool:
        """Run one repeat; the later ones only of what has done well. Return whether any trial ran."""
        trials = self.trials
        if repeat:
            trials = _promising(self.done)
        splits = self.splits if repeat == 0 else self._make_splits(repeat)
        ran = False
        for trial in trials:
            if self._run_trial(trial, splits):
                ran = True
            report(trial)
        return ran

    def _run_trial(self, trial: Trial, splits: Splits) -> bool:
        """Run a configuration over the folds of one repeat; return whether it has finished."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of members; what matters is in the leaderboard
                most_rows = self._affordable_rows(trial, len(splits) + self.refits)
                if most_rows == 0:
                    return False
                models, total, times = self._fit_folds(trial, splits, most_rows)
        except OutOfTimeError:
            trial.status = STOPPED if trial.repeats == 0 else trial.status
            return False
        except Exception as error:  # one configuration that fails must not take the others with it
            if trial.repeats == 0:
                trial.status, trial.error = f"{FAILED}: {error}"[:200], error
            return False
        trial.models += models
        trial.total = total if trial.total is None else trial.total + total
        trial.times = times if trial.times is None else trial.times + times
        trial.repeats, trial.status = trial.repeats + 1, DONE
        trial.value = self._value(trial)
        return True

    def _fit_folds(
        self, trial: Trial, splits: Splits, most_rows: int | None
    ) -> tuple[list[FittedModel], np.ndarray, np.ndarray]:
        """Fit every fold; break off when it becomes clear that the rest does not fit into the time."""
        n_rows = len(self.data.y)
        parts = [(split.train, split.test) for split in splits]
        if self.refits:  # the last block of time has taught no model yet
            parts.append((np.arange(n_rows), np.arange(0)))
        total, times = np.zeros(n_rows), np.zeros(n_rows)
        models: dict[int, FittedModel] = {}
        tasks = [
            partial(self._fit_fold, trial, k, train, test, most_rows)
            for k, (train, test) in enumerate(parts)
        ]
        with closing(self._fits(trial, tasks)) as fits:
            for done in fits:
                models[done.fold] = done.model
                total[parts[done.fold][1]] += done.scores
                times[parts[done.fold][1]] += 1
                trial.seconds += done.seconds
                speed = done.seconds / trial.configuration.cost
                self.speeds[trial.name] = min(speed, self.speeds.get(trial.name, speed))
                each = done.seconds if done.typical else REUSED * done.seconds
                if self.done and each * self._turns(len(parts) - len(models)) > self.time_left:
                    raise OutOfTimeError
        if not np.isfinite(total).all():
            raise ValueError("its scores are not finite")
        ordered = [models[k] for k in range(len(parts))]
        return ordered[-1:] if self.refits else ordered, total, times

    def _fits(
        self, trial: Trial, tasks: Sequence[Callable[..., FoldFit]]
    ) -> Generator[FoldFit, None, None]:
        """Yield what tasks return: the first may tune the settings for all, the others run in parallel.

        Where folds are blocks of time the first has the fewest rows, so each tunes its own.
        """
        if trial.configuration.tunes_itself and not self.refits:
            first = replace(tasks[0](n_jobs=self.n_threads), typical=False)
            trial.configuration = trial.configuration.with_tuned_settings(first.model)
            yield first
            tasks = tasks[1:]
        yield from self._in_parallel(tasks)

    def _in_parallel(
        self, tasks: Sequence[Callable[[], FoldFit]]
    ) -> Generator[FoldFit, None, None]:
        """Yield what tasks return, in order of completion; closing the generator stops those that still run."""
        if self.n_parallel == 1:
            yield from (task() for task in tasks)
            return
        try:
            with ThreadPoolExecutor(self.n_parallel) as pool:
                try:
                    futures = [pool.submit(task) for task in tasks]
                    yield from (future.result() for future in as_completed(futures))
                finally:
                    self.stopped.set()
                    pool.shutdown(wait=False, cancel_futures=True)
        finally:
            self.stopped.clear()

    def _fit_fold(
        self,
        trial: Trial,
        fold: int,
        train: np.ndarray,
        test: np.ndarray,
        most_rows: int | None,
        n_jobs: int | None = None,
    ) -> FoldFit:
        """Fit one fold and score the rows that it holds out."""
        start = time.perf_counter()
        seed = (self.seed + 7919 * (len(trial.models) + fold + 1)) % (2**31 - 1)
        model = self._fit(trial.configuration, train, seed, most_rows, n_jobs)
        scores = model.scores(self.data.X[test], self.columns) if len(test) else np.empty(0)
        return FoldFit(fold, model, scores, time.perf_counter() - start)

    def _fit(
        self,
        configuration: Configuration,
        rows: np.ndarray,
        seed: int,
        most_rows: int | None,
        n_jobs: int | None = None,
    ) -> FittedModel:
        """Fit a configuration on some rows, or on a sample of them."""
        data = self.data
        if most_rows is not None and len(rows) > most_rows:
            rows = rows[sample_rows(data.y[rows], most_rows, seed)]
        deadline = self.start + self.seconds if self.seconds is not None and self.done else np.inf
        late = []

        def out_of_time(_: Any) -> bool:
            if time.perf_counter() > deadline or self.stopped.is_set():
                late.append(True)
            return bool(late)

        part = data.rows(rows)
        fitted = fit_configuration(
            configuration, part.X, part.y, self.columns, sample_weight=part.sample_weight,
            qid=part.qid, keys=self.keys.rows(rows), seed=seed,
            n_jobs=n_jobs or self.n_threads // self.n_parallel,
            callbacks=() if deadline == np.inf and self.n_parallel == 1 else (out_of_time,),
        )  # fmt: skip
        if late:
            raise OutOfTimeError
        return fitted

    # -- folds -----------------------------------------------------------------------------------

    def _make_splits(self, repeat: int) -> Splits:
        return make_splits(
            self.data.y > 0, n_splits=self.n_folds, random_state=self.seed + repeat,
            **self.keys.as_dict(),
        )  # fmt: skip

    def parts(self) -> np.ndarray:
        """Return the fold of the first repeat that tests each row, -1 where none does."""
        part = np.full(len(self.data.y), -1)
        for k, split in enumerate(self.splits):
            part[split.test] = k
        return part

    def _value(self, trial: Trial) -> float:
        """Return the metric of the rows that were held out."""
        scores, data = trial.out_of_fold, self.data
        known = np.flatnonzero(~np.isnan(scores))
        held_out = data.rows(known)
        return self.metric(held_out.y, scores[known], held_out.sample_weight, held_out.qid)

    def _no_model(self) -> Exception:
        """Return the error to raise when every configuration has failed."""
        for trial in self.trials:
            if trial.error is not None:
                return trial.error
        return RuntimeError("no configuration has finished")

    # -- time ------------------------------------------------------------------------------------

    def _affordable_rows(self, trial: Trial, n_fits: int) -> int | None:
        """Return how many rows there is time to fit on: None for all, 0 for too few to be worth it.

        The first configuration is always begun, on a sample if need be.
        """
        if self.seconds is None:
            return None
        if self.done and self.time_left <= 0:
            return 0
        n_rows = len(self.data.y)
        most = trial.configuration.most_rows
        n_rows = n_rows if most is None else min(n_rows, most)
        turns = float(self._turns(n_fits))
        if trial.configuration.tunes_itself and not self.refits:
            turns = 1 + REUSED * self._turns(n_fits - 1)
        share = self.time_left / turns / SAFETY
        if not self.done:
            share = min(share, 0.5 * self.seconds / turns)
        if trial.repeats:
            return None if trial.seconds / len(trial.models) < share else 0
        fixed, slope = self._time_model(trial)
        if not fixed + slope * n_rows > share:
            return None
        fewest = min(n_rows, FEWEST_ROWS)
        if slope > 0 and fixed + slope * fewest <= share:
            rows = int((share - fixed) / slope)
            many = rows >= 20_000 and self.time_left > 0.3 * self.seconds
            if not self.done or rows >= n_rows // 4 or many:
                return rows
        return 0 if self.done else fewest

    def _turns(self, n_fits: int) -> int:
        """Return how many fits come one after the other, where several run side by side."""
        return -(-n_fits // self.n_parallel)

    def _time_model(self, trial: Trial) -> tuple[float, float]:
        """Return seconds of a fit as a fixed part and a part for each row."""
        configuration, n_rows = trial.configuration, len(self.data.y)
        usual = configuration.cost * float(np.median([*self.speeds.values()] or [0.0]))
        if n_rows <= PROBE_ABOVE:
            return usual, 0.0
        # tuning takes nearly as long on few rows as on many: short fits would foresee too much
        if configuration.tunes_itself and len(self.speeds) >= FEWEST_SPEEDS:
            return 0.5 * usual, 0.5 * usual / n_rows
        seconds: list[float] = []
        for rows in PROBES:
            if self.done and self.time_left < 4 * sum(seconds):
                raise OutOfTimeError
            start = time.perf_counter()
            self._fit(configuration, np.arange(n_rows), self.seed, rows)
            seconds.append(time.perf_counter() - start)
        trial.seconds += sum(seconds)
        slope = max(seconds[1] - seconds[0], 0.0) / (PROBES[1] - PROBES[0])
        return max(seconds[0] - slope * PROBES[0], 0.0), slope


def _promising(trials: list[Trial]) -> list[Trial]:
    """Return the better half of the trials, at least three, the best first."""
    ordered = sorted(trials, key=lambda trial: -trial.value)
    return ordered[: max(3, (len(ordered) + 1) // 2)]
