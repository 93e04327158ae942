"""Which model to trust: all of them on the same splits, with honest intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from toprank.folds import Split, Splits, _check_classes, make_splits
from toprank.progress import progress
from toprank.selection import figures
from toprank.selection.comparison import ModelComparison
from toprank.selection.models import DEFAULT_MODELS, YARDSTICK, make_model
from toprank.selection.runs import Rows, Runs, as_rows, run_splits
from toprank.validation import check_gap, check_groups, check_length, check_range, check_time

__all__ = ["compare_models"]

TAKEN = ("row", "fold", "label")  # columns of the table of scores
ENOUGH_SPLITS = 3  # below, a t interval says nothing


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
    split before the next one is begun, so that whatever ends the comparison early leaves splits that
    all models share. Blocks of time are run from the latest to the earliest.

    Intervals and paired differences over folds are those of Nadeau and Bengio (2003), which allow for
    the training rows that folds share (`corrected_interval`). Over blocks of time, and when fewer than
    three splits are complete, they come from a paired bootstrap of the test rows within each block and
    class (whole groups or queries where there are any): these say how far the figures of the models as
    they were trained are due to the rows they happened to be tested on, not how they would vary with
    other training rows or in other times.

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
        Query of each row. Queries are kept whole, models that know queries are told, and every metric
        is the mean over the queries with both classes.
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
        Seconds. It is looked at between two fits: no fit is broken off.
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
        Threads of each model; the models are run one after the other, for honest times.
    verbose : int, default=0
        Above 0, show a progress bar.
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
    _check_settings(time_budget, k, fpr, level, n_resamples)
    candidates = _candidates(models, random_state, n_jobs)
    rows, kept = _rows(X, y, groups, qid, time, gap, sample_weight, pos_label)
    splits = make_splits(
        rows.positive, groups=rows.groups, time=rows.time, gap=rows.gap,
        n_splits=n_splits, n_repeats=1 if time is not None else n_repeats, random_state=random_state,
    )  # fmt: skip
    ordered = splits[::-1] if splits.kind == "time" else list(splits)
    total = len(ordered) * len(candidates)
    with progress(total, "comparing models", verbose > 0) as advance:
        runs = run_splits(
            candidates,
            rows,
            ordered,
            time_budget=time_budget,
            random_state=random_state,
            advance=advance,
        )
    return _conclude(
        runs, rows, kept, splits, qid is not None, candidates, (k, fpr), level, n_resamples,
        random_state,
    )  # fmt: skip


def _check_settings(
    time_budget: float | None, k: float | None, fpr: Any, level: float, n_resamples: int
) -> None:
    from toprank.metrics.intervals import check_level, check_resamples

    check_level(level)
    check_range(fpr)
    check_resamples(n_resamples)
    if k is not None:
        check_length(k)
    if time_budget is not None and not time_budget > 0:
        raise ValueError(f"time_budget must be a number of seconds above 0, got {time_budget!r}")


def _candidates(
    models: Iterable[str] | Mapping[str, Any] | None, random_state: int, n_jobs: int | None
) -> dict[str, Any]:
    """Unfitted estimators by name, the yardstick first."""
    given: Mapping[str, Any]
    if models is None:
        given = dict.fromkeys(DEFAULT_MODELS)
    elif isinstance(models, Mapping):
        given = models
    else:
        given = dict.fromkeys([models] if isinstance(models, str) else models)
    chosen = {YARDSTICK: given.get(YARDSTICK) or make_model(YARDSTICK, random_state, n_jobs)}
    for name, model in given.items():
        if name in TAKEN:
            raise ValueError(
                f"a model cannot be called {name!r}: the table of scores has that column"
            )
        if model is None:
            model = make_model(name, random_state, n_jobs)
        elif not hasattr(model, "fit") or not hasattr(type(model), "decision_function"):
            raise TypeError(f"model {name!r} has no fit or no decision_function")
        chosen[name] = chosen[name] if name == YARDSTICK else model
    return chosen


def _rows(
    X: Any, y: Any, groups: Any, qid: Any, time: Any, gap: Any, sample_weight: Any, pos_label: Any
) -> tuple[Rows, np.ndarray]:
    """The rows that have weight, checked, and their positions among all rows."""
    table = as_rows(X)
    positive = _positives(y, pos_label)
    n_rows = len(positive)
    if table.shape[0] != n_rows:
        raise ValueError(f"X has {table.shape[0]} rows but y has {n_rows} labels")
    codes = None if groups is None else check_groups(groups, n_rows)
    queries = None if qid is None else check_groups(qid, n_rows)
    if codes is None:
        codes = queries
    elif queries is not None and _pairs_of(codes, queries) > len(np.unique(queries)):
        raise ValueError("a query has rows in several groups; then it cannot be kept whole")
    when = None if time is None else check_time(time, n_rows)
    distance = None if when is None else check_gap(gap, when)
    if time is None and gap is not None:
        raise ValueError("gap needs time: without it there is no order to keep a distance in")
    weight = None if sample_weight is None else _weights(sample_weight, n_rows)
    kept = np.arange(n_rows) if weight is None else np.flatnonzero(weight > 0)
    whole = Rows(table, positive, weight, queries, codes, when, distance)
    if len(kept) == n_rows:
        return whole, kept
    return whole.only(kept), kept


def _positives(y: Any, pos_label: Any) -> np.ndarray:
    """Which rows are positive."""
    greater = _check_classes(y)
    if pos_label is None:
        return greater
    positive = np.asarray(y) == pos_label
    if not positive.any():
        raise ValueError(f"pos_label {pos_label!r} is not among the labels")
    return positive


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weight.shape} for {n_rows} rows")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and not negative")
    return weight


def _pairs_of(codes: np.ndarray, queries: np.ndarray) -> int:
    return len(np.unique(np.column_stack([codes, queries]), axis=0))


def _conclude(
    runs: Runs,
    rows: Rows,
    kept: np.ndarray,
    splits: Splits,
    by_query: bool,
    candidates: Mapping[str, Any],
    settings: tuple[float | None, tuple[float, float]],
    level: float,
    n_resamples: int,
    random_state: int,
) -> ModelComparison:
    """Figures of the models that were run on every complete split."""
    absent = {*runs.failures, *runs.left_out}
    names = [name for name in candidates if name not in absent]
    if not names:
        reasons = "; ".join(f"{name}: {why}" for name, why in runs.failures.items())
        raise ValueError(f"every model failed ({reasons})")
    k, fpr = settings
    tests = [_test(rows, split, by_query) for split in runs.splits]
    if k is not None and any(k > len(test.positive) for test in tests):
        runs.note(
            f"k = {k:g} is more than the rows of some test parts, where all rows are the list"
        )
    values = np.array([
        [figures.figures_of(test, scores[name], k, fpr) for name in names]
        for test, scores in zip(tests, runs.scores, strict=True)
    ])  # fmt: skip
    few = len(runs.splits) < ENOUGH_SPLITS
    method = "bootstrap" if splits.kind == "time" or few else "corrected_t"
    resampled = None
    if method == "bootstrap":
        resampled = _resampled(tests, runs, names, settings, n_resamples, random_state)
    return ModelComparison(
        models=tuple(names),
        yardstick=YARDSTICK if YARDSTICK in names else None,
        kind=splits.kind,
        method=method,
        level=level,
        values=values,
        resampled=resampled,
        seconds=np.array([[seconds[name] for name in names] for seconds in runs.seconds]),
        splits=tuple(_described(rows, split) for split in runs.splits),
        training_rows={n: round(float(np.mean([r[n] for r in runs.n_rows]))) for n in names},
        scores=_score_table(runs, rows, kept, names),
        failures=runs.failures,
        left_out=runs.left_out,
        notes=(*splits.notes, *runs.notes),
        parameters={"k": k, "fpr": [float(end) for end in fpr]},
    )


def _test(rows: Rows, split: Split, by_query: bool) -> figures.Part:
    def part(values: np.ndarray | None) -> np.ndarray | None:
        return None if values is None else values[split.test]

    groups = None if by_query else part(rows.groups)
    return figures.Part(rows.positive[split.test], part(rows.weight), part(rows.qid), groups)


def _resampled(
    tests: list[figures.Part],
    runs: Runs,
    names: list[str],
    settings: tuple[float | None, tuple[float, float]],
    n_resamples: int,
    random_state: int,
) -> np.ndarray:
    """Means over the splits of the figures on resamples that all models share."""
    count = figures.how_many(n_resamples, sum(len(test.positive) for test in tests))
    each = [
        [
            figures.resampled_figures(test, scores[name], *settings, count, random_state + number)
            for name in names
        ]
        for number, (test, scores) in enumerate(zip(tests, runs.scores, strict=True))
    ]
    return np.mean(each, axis=0)


def _described(rows: Rows, split: Split) -> dict[str, int]:
    return {
        "repeat": split.repeat,
        "fold": split.fold,
        "n_train": len(split.train),
        "n_test": len(split.test),
        "train_positives": int(rows.positive[split.train].sum()),
        "test_positives": int(rows.positive[split.test].sum()),
    }


def _score_table(runs: Runs, rows: Rows, kept: np.ndarray, names: list[str]) -> pd.DataFrame:
    """Scores of the test rows of the first repeat, in the order of the rows."""
    parts = []
    for split, scores in zip(runs.splits, runs.scores, strict=True):
        if split.repeat == 0:
            part = {"row": kept[split.test], "fold": split.fold}
            part["label"] = rows.positive[split.test].astype(np.int64)
            parts.append(pd.DataFrame({**part, **{name: scores[name] for name in names}}))
    return pd.concat(parts).sort_values("row", kind="stable", ignore_index=True)
