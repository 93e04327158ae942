"""Compare models on the same splits, with intervals and paired differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.docstrings import fill_docstring
from toprank.folds import Split, Splits, make_splits
from toprank.metrics import METRICS
from toprank.metrics.bootstrap import Job, ListSample, affordable_resamples
from toprank.metrics.intervals import check_level, check_resamples
from toprank.progress import progress
from toprank.selection.comparison import METRIC_NAMES, ModelComparison
from toprank.selection.models import DEFAULT_MODELS, YARDSTICK, make_model
from toprank.selection.runs import ComparisonData, Runs, run_splits
from toprank.validation import BinaryRows, check_length, check_range

__all__ = ["Evaluator", "HeldOutRows", "compare_models"]

RESERVED_NAMES = ("row", "fold", "label")  # columns of the table of scores
ENOUGH_SPLITS = 3  # below, a t interval says nothing


@fill_docstring
def compare_models(
    X: Any,
    y: Any,
    *,
    models: Iterable[str] | Mapping[str, Any] | None = None,
    groups: Any = None,
    qid: Any = None,
    time: Any = None,
    gap: Any = None,
    sample_weight: Any = None,
    n_splits: int = 5,
    n_repeats: int = 2,
    time_budget: float | None = None,
    k: float | None = None,
    fpr: tuple[float, float] = (0.0, 0.05),
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
    X : array, sparse matrix or table of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
        Two labels, the greater one positive unless `pos_label` says otherwise.
    models : iterable of names or mapping, optional
        Names of `MODELS`, or a mapping from names of your own to unfitted estimators with
        `decision_function` (a value of None is looked up by its name). By default
        `DEFAULT_MODELS`. The yardstick, a tuned logistic booster, is always added; a mapping may
        bring one of its own under the name "yardstick".
    groups : array of shape (n_rows,), optional
        A group is never both in training and in test.
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
        Seconds. It is checked between two fits: no fit is broken off.
    k : float, optional
        List length of `precision_at_k` in each test part; the number of its positives by default.
    fpr : tuple, default=(0, 0.05)
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
    >>> models = {"linear": None, "yardstick": TunedLogisticBooster(depths=[2], n_estimators=20)}
    >>> found = compare_models(X, y, models=models, n_splits=3, n_repeats=1)
    >>> found.models, found.n_splits
    (('yardstick', 'linear'), 3)
    >>> found.leaderboard()["average_precision"].is_monotonic_decreasing
    True
    """
    if time_budget is not None and not time_budget > 0:
        raise ValueError(f"time_budget must be a number of seconds above 0, got {time_budget!r}")
    evaluator = Evaluator(k, fpr, level, n_resamples, random_state, n_jobs)
    candidates = _candidates(models, random_state, n_jobs)
    data = ComparisonData.of(
        X, y, groups=groups, qid=qid, time=time, gap=gap, sample_weight=sample_weight,
        pos_label=pos_label,
    )  # fmt: skip
    splits = make_splits(
        data.positive, groups=data.groups, time=data.time, gap=data.gap,
        n_splits=n_splits, n_repeats=1 if time is not None else n_repeats, random_state=random_state,
    )  # fmt: skip
    ordered = splits[::-1] if splits.kind == "time" else list(splits)
    with progress(len(ordered) * len(candidates), "comparing models", verbose > 0) as advance:
        runs = run_splits(
            candidates, data, ordered, time_budget=time_budget, random_state=random_state,
            advance=advance,
        )  # fmt: skip
    return _summarise(runs, data, splits, evaluator)


def _candidates(
    models: Iterable[str] | Mapping[str, Any] | None, random_state: int, n_jobs: int | None
) -> dict[str, Any]:
    """Return unfitted estimators by name, the yardstick first."""
    given: Mapping[str, Any]
    if models is None:
        given = dict.fromkeys(DEFAULT_MODELS)
    elif isinstance(models, Mapping):
        given = models
    else:
        given = dict.fromkeys([models] if isinstance(models, str) else models)
    chosen = {}
    for name, model in {YARDSTICK: None, **given}.items():
        if name in RESERVED_NAMES:
            raise ValueError(
                f"a model cannot be called {name!r}: the table of scores has that column"
            )
        if model is None:
            model = make_model(name, random_state, n_jobs)
        elif not hasattr(model, "fit") or not hasattr(type(model), "decision_function"):
            raise TypeError(f"model {name!r} has no fit or no decision_function")
        chosen[name] = model
    return chosen


def _summarise(
    runs: Runs, data: ComparisonData, splits: Splits, evaluator: Evaluator
) -> ModelComparison:
    """Measure the models that were run on every complete split."""
    names = runs.complete_models()
    tests = [HeldOutRows.of(data, split) for split in runs.splits]
    k = evaluator.k
    if k is not None and any(k > len(test.positive) for test in tests):
        runs.note(
            f"k = {k:g} is more than the rows of some test parts, where all rows are the list"
        )
    use_bootstrap = splits.kind == "time" or len(runs.splits) < ENOUGH_SPLITS
    return ModelComparison(
        models=tuple(names),
        yardstick=YARDSTICK if YARDSTICK in names else None,
        kind=splits.kind,
        method="bootstrap" if use_bootstrap else "corrected_t",
        level=evaluator.level,
        values=evaluator.values(tests, runs, names),
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
    return {
        "repeat": split.repeat,
        "fold": split.fold,
        "n_train": len(split.train),
        "n_test": len(split.test),
        "train_positives": int(data.positive[split.train].sum()),
        "test_positives": int(data.positive[split.test].sum()),
    }


def _score_table(runs: Runs, data: ComparisonData, names: list[str]) -> pd.DataFrame:
    """Return the scores of the test rows of the first repeat, in the order of the rows."""
    parts = []
    for split, scores in zip(runs.splits, runs.scores, strict=True):
        if split.repeat == 0:
            part = {"row": data.positions[split.test], "fold": split.fold}
            part["label"] = data.positive[split.test].astype(np.int64)
            parts.append(pd.DataFrame({**part, **{name: scores[name] for name in names}}))
    return pd.concat(parts).sort_values("row", kind="stable", ignore_index=True)


# -- metrics on test rows --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """The test rows of one split: labels, and weights, queries and groups where there are any.

    With queries every metric is the mean over the queries that have both classes. Resamples draw
    whole queries, else whole groups, else rows within each class.
    """

    positive: np.ndarray
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None
    groups: np.ndarray | None = None

    @classmethod
    def of(cls, data: ComparisonData, split: Split) -> HeldOutRows:
        """Take the test rows of a split."""
        groups = data.groups if data.qid is None else None
        columns = (data.positive, data.weight, data.qid, groups)
        return cls(*(None if column is None else column[split.test] for column in columns))  # type: ignore[arg-type]

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


@dataclass(frozen=True)
class Evaluator:
    """How models are measured: the metrics of `METRIC_NAMES` and their resamples.

    Attributes
    ----------
    k : float or None
        List length of `precision_at_k`; by default the number of positives.
    fpr : tuple
        Range of `partial_auc`.
    level : float
        Confidence level.
    n_resamples, random_state, n_jobs : int
        Of the bootstrap.
    """

    k: float | None = None
    fpr: tuple[float, float] = (0.0, 0.05)
    level: float = 0.95
    n_resamples: int = 1000
    random_state: int = 0
    n_jobs: int | None = 1

    def __post_init__(self) -> None:
        check_level(self.level)
        check_range(self.fpr)
        check_resamples(self.n_resamples)
        if self.k is not None:
            check_length(self.k)

    def values(self, tests: list[HeldOutRows], runs: Runs, names: list[str]) -> np.ndarray:
        """Return the metrics by split, model and metric."""
        return np.array(
            [
                [self.metrics(test, scores[name]) for name in names]
                for test, scores in zip(tests, runs.scores, strict=True)
            ]
        )

    def resampled_means(self, tests: list[HeldOutRows], runs: Runs, names: list[str]) -> np.ndarray:
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

    def metrics(self, test: HeldOutRows, scores: np.ndarray) -> np.ndarray:
        """Return one value for each of `METRIC_NAMES`."""
        return self._metrics_by_list(test, scores).mean(axis=0)

    def resample(
        self, test: HeldOutRows, scores: np.ndarray, n_resamples: int, seed: int
    ) -> np.ndarray:
        """Return the metrics (rows) on each resample (columns); a seed draws the same rows again."""
        if test.qid is not None:
            each = self._metrics_by_list(test, scores)
            drawn = np.random.default_rng(seed).integers(len(each), size=(n_resamples, len(each)))
            return each[drawn].mean(axis=1).T
        if test.groups is not None:
            return self._resample_groups(test, scores, n_resamples, seed)
        sample = test.sample(scores, np.arange(len(scores)))
        return sample.distribution(self._jobs(sample.rows), n_resamples, seed, self.n_jobs)

    def _metrics_by_list(self, test: HeldOutRows, scores: np.ndarray) -> np.ndarray:
        """Return the metrics of each list that holds both classes, in rows."""
        samples = [test.sample(scores, rows) for rows in test.lists()]
        if not samples:
            raise ValueError("no query of the test rows has both positives and negatives")
        return np.array([[s.value(job) for job in self._jobs(s.rows)] for s in samples])

    def _resample_groups(
        self, test: HeldOutRows, scores: np.ndarray, n_resamples: int, seed: int
    ) -> np.ndarray:
        """Draw whole groups; a draw that lacks a class is drawn again."""
        assert test.groups is not None
        codes = np.unique(test.groups, return_inverse=True)[1]
        weight = np.ones(len(scores)) if test.weight is None else test.weight
        generator = np.random.default_rng(seed)
        values = np.empty((n_resamples, len(METRIC_NAMES)))
        for resample in range(n_resamples):
            counts = _draw_groups(generator, codes, test.positive)[codes]
            rows = np.flatnonzero(counts)
            part = BinaryRows(test.positive[rows], scores[rows], weight[rows] * counts[rows])
            sample = ListSample(part)
            values[resample] = [sample.value(job) for job in self._jobs(part)]
        return values.T

    def _jobs(self, rows: BinaryRows) -> list[Job]:
        """Return the metrics with their parameters for a list of so many rows (or so much weight)."""
        size = float(len(rows.positive)) if rows.weight is None else float(rows.weight.sum())
        parameters: dict[str, dict[str, Any]] = {
            "precision_at_k": {"k": None if self.k is None else min(self.k, size)},
            "partial_auc": {"fpr": self.fpr},
        }
        jobs = []
        for name in METRIC_NAMES:
            core = METRICS[name].list_core
            assert core is not None
            jobs.append((core, METRICS[name].parameters(parameters.get(name, {}))))
        return jobs


def _draw_groups(
    generator: np.random.Generator, codes: np.ndarray, positive: np.ndarray
) -> np.ndarray:
    """Return how often each group is drawn."""
    n_groups = int(codes.max()) + 1
    with_positive = np.bincount(codes[positive], minlength=n_groups) > 0
    with_negative = np.bincount(codes[~positive], minlength=n_groups) > 0
    for _ in range(1000):
        counts = np.bincount(generator.integers(n_groups, size=n_groups), minlength=n_groups)
        if counts[with_positive].any() and counts[with_negative].any():
            return counts
    return np.ones(n_groups, dtype=np.int64)
