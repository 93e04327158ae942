"""Fit and score models split by split, within a time budget, until the end or Ctrl-C."""

from __future__ import annotations

import inspect
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

from toprank.columns import as_frame, is_table
from toprank.folds import Split
from toprank.selection.models import training_rows

__all__ = ["Rows", "Runs", "run_splits"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Everything that is known of each row.

    Attributes
    ----------
    X : array, sparse matrix or pandas table
    positive : bool ndarray
    weight, qid, groups, time : ndarray or None
    gap : number or None
        In the units of `time`.
    """

    X: Any
    positive: np.ndarray
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None
    groups: np.ndarray | None = None
    time: np.ndarray | None = None
    gap: Any = None

    def table(self, rows: np.ndarray) -> Any:
        """Some rows of X."""
        return self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]

    def only(self, rows: np.ndarray) -> Rows:
        """These rows and no others."""
        known = ("positive", "weight", "qid", "groups", "time")
        parts = {name: getattr(self, name) for name in known}
        taken = {name: part[rows] for name, part in parts.items() if part is not None}
        return replace(self, X=self.table(rows), **taken)

    def extras(self, rows: np.ndarray) -> dict[str, Any]:
        """What a model may be told of some rows beside X and the labels, by the name of the argument."""
        known = {
            "sample_weight": self.weight,
            "qid": self.qid,
            "groups": self.groups,
            "time": self.time,
        }
        found = {name: values[rows] for name, values in known.items() if values is not None}
        return {**found, "gap": self.gap} if self.time is not None else found


@dataclass
class Runs:
    """What was run: one entry for each complete split, in which every model left has its scores.

    Attributes
    ----------
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

    splits: list[Split] = field(default_factory=list)
    scores: list[dict[str, np.ndarray]] = field(default_factory=list)
    seconds: list[dict[str, float]] = field(default_factory=list)
    n_rows: list[dict[str, int]] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep a remark, once."""
        if text not in self.notes:
            self.notes.append(text)


def as_rows(X: Any) -> Any:
    """X in a form whose rows can be taken by position."""
    if is_table(X):
        return as_frame(X)
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if isinstance(X, np.ndarray) else np.asarray(X)


def run_splits(
    models: Mapping[str, Any],
    rows: Rows,
    splits: Sequence[Split],
    *,
    time_budget: float | None = None,
    random_state: int = 0,
    advance: Callable[..., None] = lambda **_: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Runs:
    """Run all models on a split before the next split is begun.

    A split counts only when every model that has not failed was run on it. A further split is begun
    only if the budget, judged by the slowest split so far, has room for it. In the first split models
    for which no time is left are left out altogether, so that there is at least one complete split.
    Ctrl-C ends the runs; before the first complete split it is handed on.
    """
    runs, begin = Runs(), clock()
    slowest = 0.0
    with _watched_interrupts() as interrupted:
        for number, split in enumerate(splits):
            left = np.inf if time_budget is None else time_budget - (clock() - begin)
            if number and left < slowest:
                break
            start = clock()
            try:
                _run_split(
                    models, rows, split, runs, left, interrupted, random_state, advance, clock
                )
            except KeyboardInterrupt:
                if not runs.splits:
                    raise
                runs.note(f"interrupted: {len(runs.splits)} of {len(splits)} splits are complete")
                return runs
            slowest = max(slowest, clock() - start)
            if len(runs.failures) + len(runs.left_out) == len(models):
                break
    if len(runs.splits) < len(splits) and time_budget is not None:
        runs.note(
            f"the time budget of {time_budget:g} seconds was enough for {len(runs.splits)} of "
            f"{len(splits)} splits"
        )
    return runs


def _run_split(
    models: Mapping[str, Any],
    rows: Rows,
    split: Split,
    runs: Runs,
    left: float,
    interrupted: threading.Event,
    random_state: int,
    advance: Callable[..., None],
    clock: Callable[[], float],
) -> None:
    """All models on one split; nothing is kept of a split that is not complete."""
    start, first = clock(), not runs.splits
    scores: dict[str, np.ndarray] = {}
    seconds: dict[str, float] = {}
    n_rows: dict[str, int] = {}
    for name, model in models.items():
        if name in runs.failures or name in runs.left_out:
            continue
        if clock() - start > left and (scores or not first):
            if not first:
                return
            runs.left_out[name] = "the time budget was used up in the first split"
            continue
        began = clock()
        try:
            scores[name], n_rows[name] = fit_and_score(name, model, rows, split, runs, random_state)
        except Exception as error:  # a model that fails is reported, the others go on
            runs.failures[name] = reason(error)
        if interrupted.is_set():  # some models end early on Ctrl-C instead of raising
            raise KeyboardInterrupt
        seconds[name] = clock() - began
        advance(model=name)
    if scores:
        runs.splits.append(split)
        runs.scores.append(scores)
        runs.seconds.append(seconds)
        runs.n_rows.append(n_rows)


def fit_and_score(
    name: str, model: Any, rows: Rows, split: Split, runs: Runs, random_state: int
) -> tuple[np.ndarray, int]:
    """Scores of the test rows by a fresh copy of a model, and how many rows it was trained on."""
    train = split.train
    drawn = training_rows(name, rows.positive[train], random_state) if is_known(name) else None
    if drawn is not None:
        runs.note(
            f"{name} learns from all positives and a draw of the other training rows: it does not "
            "scale to all of them"
        )
        train = train[drawn]
    fresh = clone(model)
    extras, unused = accepted(fresh, rows.extras(train))
    if "sample_weight" in unused:
        runs.note(f"{name} takes no sample weights: it was trained without them")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fresh.fit(rows.table(train), rows.positive[train].astype(np.int64), **extras)
        scores = np.asarray(fresh.decision_function(rows.table(split.test)), dtype=np.float64)
    for warning in caught:
        runs.note(f"{name} warned: {first_line(str(warning.message))}")
    if scores.shape != (len(split.test),) or not np.isfinite(scores).all():
        raise ValueError("it gave scores that are not one finite number for each row")
    return scores, len(train)


def is_known(name: str) -> bool:
    """Whether a name is that of a model that may be limited in its rows."""
    from toprank.registry import ESTIMATORS
    from toprank.selection.models import MODELS

    return name in MODELS or name in ESTIMATORS


def accepted(model: Any, extras: Mapping[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """The extra arguments that `fit` takes (in a pipeline, that of its last step), and the others."""
    last, prefix = model, ""
    while hasattr(last, "steps"):
        step, last = last.steps[-1]
        prefix += f"{step}__"
    takes = set(inspect.signature(last.fit).parameters)
    if getattr(last, "embedding", None) is not None:
        takes.discard("sample_weight")  # an embedding that makes synthetic rows has no use for them
    given = {prefix + name: value for name, value in extras.items() if name in takes}
    return given, set(extras) - takes


def reason(error: Exception) -> str:
    """Why a model failed, on one line."""
    return f"{type(error).__name__}: {first_line(str(error))}"


def first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:300] if lines else "no reason given"


@contextmanager
def _watched_interrupts() -> Iterator[threading.Event]:
    """Note Ctrl-C even where a model catches it to keep what it has learnt so far."""
    interrupted = threading.Event()
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield interrupted
        return

    def handle(number: int, frame: Any) -> None:
        interrupted.set()
        usual(number, frame)

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, usual)
