"""Fit and score models split by split, within a time budget, until the end or Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from toprank.folds import Split, fit_arguments, fit_takes, make_indexable, positive_rows, take_rows
from toprank.registry import ESTIMATORS
from toprank.selection.models import MODELS, training_rows
from toprank.validation import check_gap, check_groups, check_lengths, check_time, check_weight

__all__ = ["ComparisonData", "Runs", "run_splits"]


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """Everything that is known of each row, checked.

    Attributes
    ----------
    X : array, sparse matrix or pandas table
    positive : bool ndarray
    weight, qid, groups, time : ndarray or None
        Without groups of their own, queries are the groups.
    gap : number, timedelta64 or None
        In the units of `time`.
    """

    X: Any
    positive: np.ndarray
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None
    groups: np.ndarray | None = None
    time: np.ndarray | None = None
    gap: Any = None
    kept: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        qid: Any = None,
        time: Any = None,
        gap: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
    ) -> ComparisonData:
        """Check the arguments of `compare_models` and leave out rows of weight 0."""
        table, positive = make_indexable(X), positive_rows(y)
        n_rows = len(positive)
        if table.shape[0] != n_rows:
            raise ValueError(f"X has {table.shape[0]} rows but y has {n_rows} labels")
        if pos_label is not None:
            positive = np.asarray(y) == pos_label
            if not positive.any():
                raise ValueError(f"pos_label {pos_label!r} is not among the labels")
        if time is None and gap is not None:
            raise ValueError("gap needs time: without it there is no order to keep a distance in")
        check_lengths(y=positive, sample_weight=sample_weight)
        kept = check_weight(sample_weight, n_rows)[1]
        queries = None if qid is None else check_groups(qid, n_rows, "qid")
        times = None if time is None else check_time(time, n_rows)
        data = cls(
            table,
            positive,
            None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64),
            queries,
            queries if groups is None else _check_groups_of_queries(groups, queries, n_rows),
            times,
            None if times is None else check_gap(gap, times),
        )
        return data if kept is None else data.take(np.flatnonzero(kept))

    @property
    def positions(self) -> np.ndarray:
        """Positions of the rows among all that were given."""
        return np.arange(len(self.positive)) if self.kept is None else self.kept

    def take(self, rows: np.ndarray) -> ComparisonData:
        """Return these rows and no others."""
        names = ("positive", "weight", "qid", "groups", "time")
        columns = {name: getattr(self, name) for name in names}
        taken = {name: column[rows] for name, column in columns.items() if column is not None}
        return replace(self, X=take_rows(self.X, rows), kept=self.positions[rows], **taken)


def _check_groups_of_queries(groups: Any, queries: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Return groups as codes; every query must lie within one of them."""
    codes = check_groups(groups, n_rows)
    if queries is not None:
        pairs = np.unique(np.column_stack([codes, queries]), axis=0)
        if len(pairs) > len(np.unique(queries)):
            raise ValueError("a query has rows in several groups; then it cannot be kept whole")
    return codes


@dataclass
class Runs:
    """The results: one entry for each complete split, in which every remaining model has its scores.

    Attributes
    ----------
    models : list of str
        All that were to be run.
    splits : list of Split
        The complete ones, in the order they were run.
    scores : list of dict
        For each split, by model, the scores of its test rows.
    seconds : list of dict
        For each split, by model, the time to fit and score.
    n_rows : list of dict
        For each split, by model, how many rows it was trained on.
    failures : dict
        By model, why it failed.
    left_out : dict
        By model, why it was not run.
    notes : list of str
    """

    models: list[str]
    splits: list[Split] = field(default_factory=list)
    scores: list[dict[str, np.ndarray]] = field(default_factory=list)
    seconds: list[dict[str, float]] = field(default_factory=list)
    n_rows: list[dict[str, int]] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def complete_models(self) -> list[str]:
        """Return the models that were run on every complete split; an error where there is none."""
        absent = {*self.failures, *self.left_out}
        names = [name for name in self.models if name not in absent]
        if not names:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.failures.items())
            raise ValueError(f"every model failed ({reasons})")
        return names

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)


def run_splits(
    models: Mapping[str, Any],
    data: ComparisonData,
    splits: Sequence[Split],
    *,
    time_budget: float | None = None,
    random_state: int = 0,
    advance: Callable[..., None] = lambda **_: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Runs:
    """Run all models on a split before the next split begins.

    A split counts only when every model that has not failed was run on it. A further split begins
    only if the budget, judged by the slowest split so far, has room for it. In the first split models
    for which no time is left are left out altogether, so that there is at least one complete split.
    Ctrl-C ends the runs; before the first complete split it is raised.
    """
    runner = _Runner(models, data, random_state, advance, clock, Runs(list(models)))
    return runner.run(splits, time_budget)


@dataclass
class _Runner:
    """Runs models on splits and collects their results."""

    models: Mapping[str, Any]
    data: ComparisonData
    random_state: int
    advance: Callable[..., None]
    clock: Callable[[], float]
    runs: Runs

    def run(self, splits: Sequence[Split], time_budget: float | None) -> Runs:
        """Run splits until the end, the end of the budget or Ctrl-C."""
        runs, begin, slowest = self.runs, self.clock(), 0.0
        with _watch_interrupts() as interrupted:
            for number, split in enumerate(splits):
                start = self.clock()
                left = np.inf if time_budget is None else time_budget - (start - begin)
                if number and left < slowest:
                    break
                try:
                    self._run_split(split, left, interrupted)
                except KeyboardInterrupt:
                    if not runs.splits:
                        raise
                    runs.note(
                        f"interrupted: {len(runs.splits)} of {len(splits)} splits are complete"
                    )
                    return runs
                slowest = max(slowest, self.clock() - start)
                if len(runs.failures) + len(runs.left_out) == len(self.models):
                    break
        if len(runs.splits) < len(splits) and time_budget is not None:
            runs.note(
                f"the time budget of {time_budget:g} seconds was enough for {len(runs.splits)} of "
                f"{len(splits)} splits"
            )
        return runs

    def _run_split(self, split: Split, left: float, interrupted: threading.Event) -> None:
        """Run all models on one split; nothing is kept of a split that is not complete."""
        runs, start, first = self.runs, self.clock(), not self.runs.splits
        scores: dict[str, np.ndarray] = {}
        seconds: dict[str, float] = {}
        n_rows: dict[str, int] = {}
        for name in self.models:
            if name in runs.failures or name in runs.left_out:
                continue
            if self.clock() - start > left and (scores or not first):
                if not first:
                    return
                runs.left_out[name] = "the time budget was used up in the first split"
                continue
            began = self.clock()
            try:
                scores[name], n_rows[name] = self._fit_and_score(name, split)
            except Exception as error:  # a model that fails is reported, the others go on
                runs.failures[name] = f"{type(error).__name__}: {_first_line(str(error))}"
            if interrupted.is_set():  # some models end early on Ctrl-C instead of raising
                raise KeyboardInterrupt
            seconds[name] = self.clock() - began
            self.advance(model=name)
        if scores:
            runs.splits.append(split)
            runs.scores.append(scores)
            runs.seconds.append(seconds)
            runs.n_rows.append(n_rows)

    def _fit_and_score(self, name: str, split: Split) -> tuple[np.ndarray, int]:
        """Return the scores of the test rows by a fresh copy of a model, and its number of training rows."""
        data, train = self.data, self._sample_training_rows(name, split.train)
        model = clone(self.models[name])
        if data.weight is not None and not fit_takes(model, "sample_weight"):
            self.runs.note(f"{name} takes no sample weights: it was trained without them")
        arguments = fit_arguments(
            model, rows=train, skip_unknown=True, sample_weight=data.weight, qid=data.qid,
            groups=data.groups, time=data.time, gap=data.gap,
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(take_rows(data.X, train), data.positive[train].astype(np.int64), **arguments)
            scores = model.decision_function(take_rows(data.X, split.test))
        for warning in caught:
            self.runs.note(f"{name} warned: {_first_line(str(warning.message))}")
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != (len(split.test),) or not np.isfinite(scores).all():
            raise ValueError("it gave scores that are not one finite number for each row")
        return scores, len(train)

    def _sample_training_rows(self, name: str, train: np.ndarray) -> np.ndarray:
        """Return the training rows, or all positives and a sample of the others for a model of that name."""
        if name not in MODELS and name not in ESTIMATORS:
            return train
        sample = training_rows(name, self.data.positive[train], self.random_state)
        if sample is None:
            return train
        self.runs.note(
            f"{name} learns from all positives and a sample of the other training rows: it does not "
            "scale to all of them"
        )
        return train[sample]


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:300] if lines else "no reason given"


@contextmanager
def _watch_interrupts() -> Iterator[threading.Event]:
    """Record Ctrl-C even where a model catches it to keep what it has learnt so far."""
    interrupted = threading.Event()
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield interrupted
        return

    def handle(number: int, frame: Any) -> None:
        interrupted.set()
        previous(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)
