"""Compare models on the same splits, with intervals and paired differences."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from toprank.docstrings import fill_docstring
from toprank.folds import (
    Split,
    Splits,
    fit_arguments,
    fit_takes,
    make_indexable,
    make_splits,
    positive_rows,
    scores_of,
    take_rows,
)
from toprank.formatting import first_line
from toprank.metrics import METRICS
from toprank.metrics.bootstrap import ListSample, affordable_resamples
from toprank.metrics.intervals import check_level, check_resamples
from toprank.progress import progress
from toprank.registry import ESTIMATORS
from toprank.selection.comparison import METRIC_NAMES, ModelComparison
from toprank.selection.models import (
    MODELS,
    RELATIONAL_MODELS,
    YARDSTICK,
    cost_rank,
    default_models,
    is_relational,
    make_model,
    training_rows,
)
from toprank.validation import (
    BinaryRows,
    check_gap,
    check_groups,
    check_length,
    check_lengths,
    check_range,
    check_time,
    check_weight,
)

__all__ = ["ComparisonData", "Evaluator", "Runs", "compare_models"]

RESERVED_NAMES = ("row", "fold", "label")  # columns of the table of scores
ENOUGH_SPLITS = 3  # below, a t interval says nothing


@fill_docstring
def compare_models(
    X: Any,
    y: Any,
    *,
    models: Iterable[str] | Mapping[str, Any] | None = None,
    groups: Any = None,
    group_history: bool = False,
    qid: Any = None,
    time: Any = None,
    gap: Any = None,
    sample_weight: Any = None,
    n_splits: int = 5,
    n_repeats: int = 2,
    time_budget: float | None = None,
    k: float | None = None,
    fpr: tuple[float, float] = (0.0, 0.1),
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
    n_jobs: int | None = 1,
    verbose: int = 0,
    pos_label: Any = None,
) -> ModelComparison:
    """Compare models on the same splits.

    Splits are repeated stratified folds; folds of whole groups with `groups` or `qid`; blocks of time,
    each tested by what was known before it, with `time` (see `make_splits`). Every model is run on a
    split before the next split begins, so that whatever ends the comparison early leaves splits that
    all models share. Blocks of time are run from the latest to the earliest.

    Intervals and paired differences over folds are those of Nadeau and Bengio (2003), which allow for
    the training rows that folds share (`corrected_interval`). Over blocks of time, and when fewer than
    three splits are complete, they come from a paired bootstrap of the test rows within each block and
    class (whole groups or queries where there are any): these measure the uncertainty due to the test
    rows, for the models as they were trained; not how they would vary with other training rows or in
    other times.

    Parameters
    ----------
    X : array, sparse matrix or table of shape (n_rows, n_columns), or RelationalData
        On relational data the models of clauses (`RELATIONAL_MODELS`) are compared with models of
        tables, which get its facts as columns (`RelationalFeatures`).
    y : array of shape (n_rows,)
        Two labels, the greater one positive unless `pos_label` says otherwise.
    models : iterable of names or mapping, optional
        Names of `MODELS`, or a mapping from names of your own to unfitted classifiers with
        `decision_function` or `predict_proba` (a value of None is looked up by its name). By default those of
        `default_models`: the random forest, LightGBM and CatBoost (`pip install toprank[peers]`)
        among them. The yardstick, a tuned logistic booster, is always added; a mapping may bring one
        of its own under the name "yardstick".
    groups : array of shape (n_rows,), optional
        A group is never both in training and in test.
    group_history : bool, default=False
        With `time` and `groups`: whether the earlier rows of a group may be trained on when its later
        rows are tested, as they will be when new rows come from known groups.
    qid : array of shape (n_rows,), optional
        Query of each row. Queries are kept whole and passed to models that take them, and every
        metric is the mean over the queries with both classes.
    time : array of shape (n_rows,), optional
        Numbers or dates, for splits in the order of time.
    gap : timedelta or number, optional
        Least distance in time between training and test rows; a number counts days if `time` holds
        dates.
    sample_weight : array of shape (n_rows,), optional
        For training, where the model takes weights, and for the metrics.
    n_splits : int, default=5
        Folds, or blocks of time.
    n_repeats : int, default=2
        Repeats of the folds.
    time_budget : float, optional
        Seconds. It is checked between two fits: no fit is broken off. Models that learn quickly are
        run first.
    k : float, optional
        List length of `precision_at_k` in each test part; the number of its positives by default.
    fpr : tuple, default=(0, 0.1)
        Range of `partial_auc`.
    level : float, default=0.95
        Confidence level of intervals and verdicts.
    n_resamples : int, default=1000
        Of the bootstrap; fewer where the test rows are very many.
    random_state : int, default=0
        Fixes the splits and the models.
    n_jobs : int or None, default=1
        Threads of each model and of the bootstrap (None and -1: all cores that this process may use);
        the models are run one after the other, so that their times can be compared.
    %(verbose)s
    pos_label : label, optional
        The positive class.

    Returns
    -------
    comparison : ModelComparison

    Raises
    ------
    KeyboardInterrupt
        On Ctrl-C before the first split is complete; later ones end the comparison with what there is.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import TunedLogisticBooster
    >>> X, y = make_classification(300, weights=[0.8], random_state=0)
    >>> models = {"linear": None, "yardstick": TunedLogisticBooster(n_candidates=2, n_estimators=20)}
    >>> found = compare_models(X, y, models=models, n_splits=3, n_repeats=1)
    >>> found.models, found.n_splits
    (('yardstick', 'linear'), 3)
    >>> found.leaderboard()["average_precision"].is_monotonic_decreasing
    True
    """
    if time_budget is not None and not time_budget > 0:
        raise ValueError(f"time_budget must be a number of seconds above 0, got {time_budget!r}")
    evaluator = Evaluator(k, fpr, level, n_resamples, random_state, n_jobs)
    candidates = _candidates(models, random_state, n_jobs, relational=is_relational(X))
    data = ComparisonData.of(
        X, y, groups=groups, qid=qid, time=time, gap=gap, sample_weight=sample_weight,
        pos_label=pos_label,
    )  # fmt: skip
    splits = make_splits(
        data.positive, groups=None if group_history and time is not None else data.groups,
        time=data.time, gap=data.gap,
        n_splits=n_splits, n_repeats=1 if time is not None else n_repeats, random_state=random_state,
    )  # fmt: skip
    ordered = splits[::-1] if splits.kind == "time" else list(splits)
    if time_budget is not None:
        named = {} if isinstance(models, Mapping) else candidates
        candidates = dict(sorted(candidates.items(), key=lambda item: cost_rank(item[0], named)))
    with progress(len(ordered) * len(candidates), "comparing models", verbose > 0) as advance:
        runs = Runs(candidates, data, random_state, advance).run(ordered, time_budget)
    return _summarise(runs, data, splits, evaluator)


def _candidates(
    models: Iterable[str] | Mapping[str, Any] | None,
    random_state: int,
    n_jobs: int | None,
    *,
    relational: bool,
) -> dict[str, Any]:
    """Return unfitted estimators by name, the yardstick first."""
    if models is None or isinstance(models, str):
        by_default = [*(RELATIONAL_MODELS if relational else ()), *default_models()]
        models = by_default if models is None else [models]
    given = models if isinstance(models, Mapping) else dict.fromkeys(models)
    chosen = {}
    for name, model in {YARDSTICK: None, **given}.items():
        if name in RESERVED_NAMES:
            raise ValueError(f"a model cannot be called {name!r}: the scores have that column")
        if model is None:
            model = make_model(name, random_state, n_jobs, relational=relational)
        elif not hasattr(model, "fit") or not (
            hasattr(model, "decision_function") or hasattr(model, "predict_proba")
        ):
            raise TypeError(
                f"model {name!r} has no fit, or neither decision_function nor predict_proba"
            )
        chosen[name] = model
    return chosen


def _summarise(
    runs: Runs, data: ComparisonData, splits: Splits, evaluator: Evaluator
) -> ModelComparison:
    """Measure the models that were run on every complete split."""
    names = [name for name in runs.models if name not in {**runs.failures, **runs.left_out}]
    if not names:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in runs.failures.items())
        raise ValueError(f"every model failed ({reasons})")
    known = replace(data, X=None)  # the columns that metrics need
    tests = [known.take(split.test) for split in runs.splits]
    k = evaluator.k
    if k is not None and any(k > len(test.positive) for test in tests):
        runs.note(f"k = {k:g} is more than the rows of some test parts: all of them are the list")
    use_bootstrap = splits.kind == "time" or len(runs.splits) < ENOUGH_SPLITS
    return ModelComparison(
        models=tuple(names),
        yardstick=YARDSTICK if YARDSTICK in names else None,
        kind=splits.kind,
        method="bootstrap" if use_bootstrap else "corrected_t",
        level=evaluator.level,
        values=np.array(
            [
                [evaluator.metrics(test, scores[name]) for name in names]
                for test, scores in zip(tests, runs.scores, strict=True)
            ]
        ),
        resampled=evaluator.resampled_means(tests, runs, names) if use_bootstrap else None,
        seconds=np.array([[seconds[name] for name in names] for seconds in runs.seconds]),
        splits=tuple(_describe_split(data, split) for split in runs.splits),
        training_rows={n: round(float(np.mean([r[n] for r in runs.n_rows]))) for n in names},
        scores=_score_table(runs, data, names),
        failures=runs.failures,
        left_out=runs.left_out,
        notes=(*splits.notes, *runs.notes),
        parameters={"k": k, "fpr": [float(end) for end in evaluator.fpr]},
    )


def _describe_split(data: ComparisonData, split: Split) -> dict[str, int]:
    parts = {"train": split.train, "test": split.test}
    sizes = {f"n_{name}": len(rows) for name, rows in parts.items()}
    positives = {
        f"{name}_positives": int(data.positive[rows].sum()) for name, rows in parts.items()
    }
    return {"repeat": split.repeat, "fold": split.fold, **sizes, **positives}


def _score_table(runs: Runs, data: ComparisonData, names: list[str]) -> pd.DataFrame:
    """Return the scores of the test rows of the first repeat, in the order of the rows."""
    parts = []
    for split, scores in zip(runs.splits, runs.scores, strict=True):
        if split.repeat == 0:
            part = {"row": data.positions[split.test], "fold": split.fold}
            part["label"] = data.positive[split.test].astype(np.int64)
            parts.append(pd.DataFrame({**part, **{name: scores[name] for name in names}}))
    return pd.concat(parts).sort_values("row", kind="stable", ignore_index=True)


# -- rows ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ComparisonData:
    """Everything that is known of each row, checked."""

    X: Any
    positive: np.ndarray
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None
    groups: np.ndarray | None = None  # the queries, if there are no groups of their own
    time: np.ndarray | None = None
    gap: Any = None  # in the units of `time`
    kept: np.ndarray | None = None  # positions of the rows among all that were given

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
        check_lengths(y=positive, sample_weight=sample_weight)
        kept = check_weight(sample_weight, n_rows)[1]
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        queries = None if qid is None else check_groups(qid, n_rows, "qid")
        codes = queries if groups is None else check_groups(groups, n_rows)
        if codes is not None and queries is not None:
            pairs = np.unique(np.column_stack([codes, queries]), axis=0)
            if len(pairs) > len(np.unique(queries)):
                raise ValueError("a query has rows in several groups; then it cannot be kept whole")
        times = None if time is None else check_time(time, n_rows)
        distance = gap if times is None else check_gap(gap, times)
        data = cls(table, positive, weight, queries, codes, times, distance)
        return data if kept is None else data.take(np.flatnonzero(kept))

    @property
    def positions(self) -> np.ndarray:
        return np.arange(len(self.positive)) if self.kept is None else self.kept

    def take(self, rows: np.ndarray) -> ComparisonData:
        """Return these rows and no others."""
        names = ("positive", "weight", "qid", "groups", "time")
        columns = {name: getattr(self, name) for name in names}
        taken = {name: column[rows] for name, column in columns.items() if column is not None}
        X = None if self.X is None else take_rows(self.X, rows)
        return replace(self, X=X, kept=self.positions[rows], **taken)

    def lists(self) -> list[np.ndarray]:
        """Return the positions of the rows of each list that holds both classes."""
        if self.qid is None:
            return [np.arange(len(self.positive))]
        order = np.argsort(self.qid, kind="stable")
        queries = np.split(order, np.flatnonzero(np.diff(self.qid[order])) + 1)
        return [rows for rows in queries if len(np.unique(self.positive[rows])) == 2]

    def sample(self, scores: np.ndarray, rows: np.ndarray) -> ListSample:
        """Return the list of some rows, ranked by scores when it is first read."""
        weight = None if self.weight is None else self.weight[rows]
        return ListSample(BinaryRows(self.positive[rows], scores[rows], weight))


# -- runs -----------------------------------------------------------------------------------------------


@dataclass
class Runs:
    """Runs of models on splits, and their results: those of the complete splits, in the order they were run.

    A split is complete when every model that has not failed was run on it.
    """

    models: Mapping[str, Any]
    data: ComparisonData
    random_state: int = 0
    advance: Callable[..., None] = lambda **_: None
    clock: Callable[[], float] = time.perf_counter
    splits: list[Split] = field(default_factory=list)
    scores: list[dict[str, np.ndarray]] = field(default_factory=list)  # of the test rows
    seconds: list[dict[str, float]] = field(default_factory=list)  # to fit and score
    n_rows: list[dict[str, int]] = field(default_factory=list)  # trained on
    failures: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def run(self, splits: Sequence[Split], time_budget: float | None) -> Runs:
        """Run all models on a split before the next split begins.

        A further split begins only if the budget, judged by the slowest split so far, has room for it. In
        the first split models for which no time is left are left out altogether, so that there is at
        least one complete split. Ctrl-C ends the runs; before the first complete split it is raised.
        """
        begin, slowest = self.clock(), 0.0
        with _watch_interrupts() as interrupted:
            for number, split in enumerate(splits):
                start = self.clock()
                left = np.inf if time_budget is None else time_budget - (start - begin)
                if number and left < slowest:
                    break
                try:
                    self._run_split(split, left, interrupted)
                except KeyboardInterrupt:
                    if not self.splits:
                        raise
                    self.note(
                        f"interrupted: {len(self.splits)} of {len(splits)} splits are complete"
                    )
                    return self
                slowest = max(slowest, self.clock() - start)
                if len(self.failures) + len(self.left_out) == len(self.models):
                    break
        if len(self.splits) < len(splits) and time_budget is not None:
            self.note(
                f"the time budget of {time_budget:g} seconds was enough for {len(self.splits)} of "
                f"{len(splits)} splits"
            )
        return self

    def _run_split(self, split: Split, left: float, interrupted: threading.Event) -> None:
        """Run all models on one split; nothing is kept of a split that is not complete."""
        start, first = self.clock(), not self.splits
        scores: dict[str, np.ndarray] = {}
        seconds: dict[str, float] = {}
        n_rows: dict[str, int] = {}
        for name in self.models:
            if name in self.failures or name in self.left_out:
                continue
            if self.clock() - start > left and (scores or not first):
                if not first:
                    return
                self.left_out[name] = "the time budget was used up in the first split"
                continue
            began = self.clock()
            try:
                scores[name], n_rows[name] = self._fit_and_score(name, split)
            except Exception as error:  # a model that fails is reported, the others go on
                self.failures[name] = (
                    f"{type(error).__name__}: {first_line(error) or 'no reason given'}"
                )
            if interrupted.is_set():  # some models end early on Ctrl-C instead of raising
                raise KeyboardInterrupt
            seconds[name] = self.clock() - began
            self.advance(model=name)
        if scores:
            self.splits.append(split)
            self.scores.append(scores)
            self.seconds.append(seconds)
            self.n_rows.append(n_rows)

    def _fit_and_score(self, name: str, split: Split) -> tuple[np.ndarray, int]:
        """Return the scores of the test rows by a fresh copy of a model, and its number of training rows."""
        data, train = self.data, split.train
        if name in MODELS or name in ESTIMATORS:
            sample = training_rows(name, data.positive[train], self.random_state)
            if sample is not None:
                train = train[sample]
                self.note(
                    f"{name} learns from all positives and a sample of the other training rows: it "
                    "does not scale to all of them"
                )
        model = clone(self.models[name])
        if data.weight is not None and not fit_takes(model, "sample_weight"):
            self.note(f"{name} takes no sample weights: it was trained without them")
        arguments = fit_arguments(
            model, rows=train, skip_unknown=True, sample_weight=data.weight, qid=data.qid,
            groups=data.groups, time=data.time, gap=data.gap,
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(take_rows(data.X, train), data.positive[train].astype(np.int64), **arguments)
            scores = scores_of(model, take_rows(data.X, split.test))
        for warning in caught:
            self.note(f"{name} warned: {first_line(warning.message)}")
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != (len(split.test),) or not np.isfinite(scores).all():
            raise ValueError("it gave scores that are not one finite number for each row")
        return scores, len(train)


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


# -- metrics on test rows --------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluator:
    """How models are measured: the metrics of `METRIC_NAMES` and their resamples.

    With queries every metric is the mean over the queries that have both classes. Resamples draw
    whole queries, else whole groups, else rows within each class.
    """

    k: float | None = None  # list length of `precision_at_k`; by default the number of positives
    fpr: tuple[float, float] = (0.0, 0.1)  # range of `partial_auc`
    level: float = 0.95
    n_resamples: int = 1000  # of the bootstrap
    random_state: int = 0
    n_jobs: int | None = 1

    def __post_init__(self) -> None:
        check_level(self.level)
        check_range(self.fpr)
        check_resamples(self.n_resamples)
        if self.k is not None:
            check_length(self.k)

    def resampled_means(
        self, tests: list[ComparisonData], runs: Runs, names: list[str]
    ) -> np.ndarray:
        """Return means over the splits of the metrics on resamples that all models share."""
        count = affordable_resamples(self.n_resamples, sum(len(test.positive) for test in tests))
        return np.mean(
            [
                [
                    self.resample(test, scores[name], count, self.random_state + number)
                    for name in names
                ]
                for number, (test, scores) in enumerate(zip(tests, runs.scores, strict=True))
            ],
            axis=0,
        )

    def metrics(self, test: ComparisonData, scores: np.ndarray) -> np.ndarray:
        """Return one value for each of `METRIC_NAMES`."""
        return self._metrics_by_list(test, scores).mean(axis=0)

    def resample(
        self, test: ComparisonData, scores: np.ndarray, n_resamples: int, seed: int
    ) -> np.ndarray:
        """Return the metrics (rows) on each resample (columns); a seed draws the same rows again."""
        if test.qid is not None:
            each = self._metrics_by_list(test, scores)
            drawn = np.random.default_rng(seed).integers(len(each), size=(n_resamples, len(each)))
            return each[drawn].mean(axis=1).T
        sample = test.sample(scores, np.arange(len(scores)))
        if test.groups is not None:
            sample = replace(sample, groups=np.unique(test.groups, return_inverse=True)[1])
        return sample.distribution(self._jobs(sample.rows), n_resamples, seed, self.n_jobs)

    def _metrics_by_list(self, test: ComparisonData, scores: np.ndarray) -> np.ndarray:
        """Return the metrics of each list that holds both classes, in rows."""
        samples = [test.sample(scores, rows) for rows in test.lists()]
        if not samples:
            raise ValueError("no query of the test rows has both positives and negatives")
        return np.array([[s.value(job) for job in self._jobs(s.rows)] for s in samples])

    def _jobs(self, rows: BinaryRows) -> list[Any]:
        """Return the metrics with their parameters for a list of so many rows (or so much weight)."""
        size = float(len(rows.positive)) if rows.weight is None else float(rows.weight.sum())
        given: dict[str, dict[str, Any]] = {
            "precision_at_k": {"k": None if self.k is None else min(self.k, size)},
            "partial_auc": {"fpr": self.fpr},
        }
        metrics = {name: METRICS[name] for name in METRIC_NAMES}
        return [(m.list_core, m.parameters(given.get(name, {}))) for name, m in metrics.items()]
