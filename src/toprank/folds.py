"""Splits of rows into training and test, what they go by, arguments of `fit`, and out-of-fold scores."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from toprank.columns import as_frame, is_table
from toprank.docstrings import fill_docstring
from toprank.progress import progress
from toprank.validation import check_gap, check_groups, check_time, require_finite

__all__ = [
    "Split", "SplitKeys", "Splits", "cross_fitted_scores", "fit_arguments", "fit_takes",
    "inner_splits", "make_indexable", "make_splits", "match_quantiles", "positive_rows", "scores_of",
    "take_rows",
]  # fmt: skip

QUARTERS = 4  # of the rows in time, for inner validation
SHUFFLES = 20  # of the groups, tried before a fold without both classes is accepted


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of training and test rows, ascending; which repeat, and which fold or block, from 0."""

    train: np.ndarray
    test: np.ndarray
    repeat: int
    fold: int


class Splits(list[Split]):
    """A list of splits, their `kind`, and `notes` on how they differ from the request and why."""

    def __init__(self, splits: Iterable[Split], kind: str, notes: Iterable[str] = ()) -> None:
        super().__init__(splits)
        self.kind = kind
        self.notes = tuple(notes)


@dataclass(frozen=True, eq=False)
class SplitKeys:
    """What splits of some rows go by; see `make_splits`.

    Attributes
    ----------
    groups : int ndarray of shape (n_rows,) or None
    time : ndarray of shape (n_rows,) or None
    gap : number or timedelta, optional
    """

    groups: np.ndarray | None = None
    time: np.ndarray | None = None
    gap: Any = None

    @classmethod
    def of(cls, n_rows: int, groups: Any = None, time: Any = None, gap: Any = None) -> SplitKeys:
        """Check what a user gave for `n_rows` rows.

        Examples
        --------
        >>> SplitKeys.of(3, groups=["a", "b", "a"]).groups.tolist()
        [0, 1, 0]
        """
        if time is None and gap is not None:
            raise ValueError("gap needs time: without it there is no order to keep a distance in")
        codes = None if groups is None else check_groups(groups, n_rows)
        when = None if time is None else check_time(time, n_rows)
        if when is not None:
            check_gap(gap, when)
        return cls(codes, when, gap)

    def rows(self, kept: Any) -> SplitKeys:
        """Return those of some rows."""
        groups, time = (None if v is None else v[kept] for v in (self.groups, self.time))
        return SplitKeys(groups, time, self.gap)

    def as_dict(self) -> dict[str, Any]:
        """Return them as arguments of `make_splits` or of a `fit`."""
        return {name: getattr(self, name) for name in SPLIT_KEYS}


SPLIT_KEYS = tuple(field.name for field in fields(SplitKeys))


def make_splits(
    y: Any,
    *,
    groups: Any = None,
    time: Any = None,
    gap: Any = None,
    n_splits: int = 5,
    n_repeats: int = 1,
    random_state: int = 0,
) -> Splits:
    """Split rows for a comparison of models.

    Without `groups` and `time`: repeated stratified folds. With `groups`: repeated folds of whole
    groups, stratified as far as the groups allow. With `time`: each of `n_splits` blocks of about
    equal size is tested by a model trained on everything before it; there is one repeat. With both,
    the rows of the past whose group turns up in the test block are left out of training.

    Every training part and every test part has both classes; those that would not have them are
    left out, and `notes` says so.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Labels of two classes.
    groups : array of shape (n_rows,), optional
        A group (a query, a customer) is never both in training and in test.
    time : array of shape (n_rows,), optional
        Numbers, dates, or dates as text (2024-12-31). Rows of equal time stay together.
    gap : timedelta or number, optional
        Least distance in time between a training row and the first test row, for labels that arrive
        late. A number is in the units of a numeric `time`, and counts days when `time` holds dates.
    n_splits : int, default=5
        Folds, or blocks.
    n_repeats : int, default=1
        Repeats of the folds with other shuffles.
    random_state : int, default=0

    Returns
    -------
    splits : Splits
        A list of `Split`, with the attributes `kind` and `notes`.

    Examples
    --------
    >>> import numpy as np
    >>> y, day = np.tile([0, 0, 0, 1], 6), np.repeat(np.arange(12), 2)
    >>> [(len(s.train), len(s.test)) for s in make_splits(y, n_splits=3)]
    [(16, 8), (16, 8), (16, 8)]
    >>> [(len(s.train), len(s.test)) for s in make_splits(y, time=day, gap=2, n_splits=3)]
    [(4, 6), (10, 6), (16, 6)]
    """
    for name, value in (("n_splits", n_splits), ("n_repeats", n_repeats)):
        if int(value) != value or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    positive = positive_rows(y)
    keys = SplitKeys.of(len(positive), groups, time, gap)
    if keys.time is not None:
        return _time_splits(positive, keys.time, check_gap(gap, keys.time), keys.groups, n_splits)
    return _fold_splits(positive, keys.groups, n_splits, n_repeats, random_state)


def inner_splits(
    y: np.ndarray, keys: SplitKeys, *, n_splits: int, n_repeats: int = 1, random_state: int = 0
) -> list[Split]:
    """Split training rows once more, to choose settings by.

    With time: the last quarters of the rows, each tested by what was known before it, the latest first, since
    it is the most like what comes. Otherwise folds, as in `make_splits`. Empty where a class has fewer than
    two rows, groups or moments.

    Examples
    --------
    >>> y, keys = np.tile([0, 1], 20), SplitKeys.of(40, time=np.arange(40))
    >>> [(len(s.train), len(s.test)) for s in inner_splits(y, keys, n_splits=3)]
    [(30, 10), (20, 10), (10, 10)]
    """
    known = keys.as_dict()
    try:
        if keys.time is not None:
            return make_splits(y, **known, n_splits=QUARTERS - 1)[::-1]
        return make_splits(
            y, **known, n_splits=n_splits, n_repeats=n_repeats, random_state=random_state
        )
    except ValueError:
        return []


def positive_rows(y: Any) -> np.ndarray:
    """Return which rows have the greater of two labels."""
    labels = np.asarray(y)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"y must be a list of labels, got shape {labels.shape}")
    if pd.isna(labels).any():
        raise ValueError("y has missing labels; drop those rows first")
    known = np.unique(labels)
    if len(known) != 2:
        shown = ", ".join(map(str, known[:5].tolist()))
        raise ValueError(f"y must hold two classes; it holds {len(known)}: {shown}")
    return labels == known[1]


def _has_both_classes(positive: np.ndarray, rows: np.ndarray) -> bool:
    return bool(len(rows)) and bool(positive[rows].any()) and not bool(positive[rows].all())


# -- folds -----------------------------------------------------------------------------------------


def _count_folds(n_splits: int, positive: np.ndarray, groups: np.ndarray | None, name: str) -> int:
    """Return `n_splits`, or as many folds as the rarer class has rows (or groups) if these are fewer."""
    if n_splits < 2:
        raise ValueError(f"{name} must be at least 2 folds: one fold leaves nothing to train on")
    unit = "rows" if groups is None else "groups with rows"
    units = np.arange(len(positive)) if groups is None else groups
    n_positives, n_negatives = (len(np.unique(units[side])) for side in (positive, ~positive))
    if min(n_positives, n_negatives) < 2:
        raise ValueError(
            f"at least 2 {unit} of each class are needed; found {n_positives} for the positives and "
            f"{n_negatives} for the negatives"
        )
    return min(n_splits, n_positives, n_negatives)


def _fold_splits(
    positive: np.ndarray,
    groups: np.ndarray | None,
    n_splits: int,
    n_repeats: int,
    random_state: int,
) -> Splits:
    """Split into stratified folds, of whole groups where there are any."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # slow to import

    folds = _count_folds(n_splits, positive, groups, "n_splits")
    notes: list[str] = []
    splits: list[Split] = []
    if folds < n_splits:
        few = f"the rarer class has only {folds} rows"
        reason = few if groups is None else "too few groups have both classes"
        notes.append(f"{folds} folds instead of {n_splits}: {reason}")
    for repeat in range(n_repeats):
        best: list[Split] = []  # the shuffle with most folds that have both classes on both sides
        for attempt in range(SHUFFLES):
            folder = StratifiedKFold(folds, shuffle=True, random_state=random_state + repeat)
            if groups is not None:
                seed = np.random.SeedSequence([random_state, repeat, attempt]).generate_state(1)[0]
                folder = StratifiedGroupKFold(folds, shuffle=True, random_state=int(seed) % 2**31)
            found = [
                Split(train, test, repeat, fold)
                for fold, (train, test) in enumerate(folder.split(positive, positive, groups))
                if _has_both_classes(positive, train) and _has_both_classes(positive, test)
            ]
            best = max(best, found, key=len)
            if len(best) == folds:
                break
        else:
            lost = f"{folds - len(best)} of {folds} folds left out"
            notes.append(f"repeat {repeat}: {lost}, one class was missing")
        splits += best
    if not splits:
        raise ValueError(f"no split of the groups has both classes on both sides: {notes[-1]}")
    return Splits(splits, "stratified" if groups is None else "grouped", notes)


# -- time ------------------------------------------------------------------------------------------


def _time_splits(
    positive: np.ndarray, time: np.ndarray, gap: Any, groups: np.ndarray | None, n_splits: int
) -> Splits:
    """Split into blocks of about equal size, each tested by what was known before it."""
    starts, notes = _block_starts(time, n_splits)
    splits = []
    blocks = np.searchsorted(starts, time, side="right")  # 0 before the first
    for fold, start in enumerate(starts):
        inside = blocks == fold + 1
        # the distance is taken as a difference: start - gap may not exist among whole numbers
        known = time < start
        known[known] = (start - time[known]) >= gap
        if groups is not None:
            known &= ~np.isin(groups, groups[inside])
        train, test = np.flatnonzero(known), np.flatnonzero(inside)
        for rows, name in ((train, "training"), (test, "test")):
            if not _has_both_classes(positive, rows):
                notes.append(
                    f"block {fold + 1} of {len(starts)} left out: its {len(rows)} {name} rows hold "
                    f"{positive[rows].sum()} positives; both classes are needed"
                )
                break
        else:
            splits.append(Split(train, test, 0, fold))
    if not splits:
        raise ValueError(f"no block of time can be tested: {'; '.join(notes)}")
    return Splits(splits, "time", notes)


def _block_starts(time: np.ndarray, n_splits: int) -> tuple[np.ndarray, list[str]]:
    """Return where the test blocks begin; what lies before the first one is only trained on."""
    moments, counts = np.unique(time, return_counts=True)
    if len(moments) < 2:
        raise ValueError("time is the same in all rows; there is no past to train on")
    before = np.concatenate([[0], np.cumsum(counts)[:-1]])  # rows before each moment
    wanted = len(time) * np.arange(1, n_splits + 1) / (n_splits + 1)
    places = np.unique(np.abs(before[1:] - wanted[:, None]).argmin(axis=1)) + 1
    notes = []
    if len(places) < n_splits:
        notes.append(
            f"{len(places)} blocks instead of {n_splits}: rows of equal time are not split"
        )
    return moments[places], notes


# -- rows, arguments of fit, scores ----------------------------------------------------------------


def make_indexable(X: Any) -> Any:
    """Return X in a form whose rows `take_rows` takes by position: a frame, CSR matrix or array."""
    if is_table(X):
        return as_frame(X)
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Return some rows of a table, an array, a sparse matrix or relational data."""
    X = make_indexable(X)
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def fit_takes(estimator: Any, argument: str) -> bool:
    """Whether the `fit` of an estimator (in a pipeline, of its last step) takes an argument."""
    last = _last_step(estimator)[1]
    if argument == "sample_weight" and getattr(last, "embedding", None) is not None:
        return False  # an embedding that makes synthetic rows has no use for weights
    return argument in inspect.signature(last.fit).parameters


def fit_arguments(
    estimator: Any, *, rows: Any = None, skip_unknown: bool = False, **known: Any
) -> dict[str, Any]:
    """Return what is known of the rows as keyword arguments of an estimator's `fit`.

    Parameters
    ----------
    estimator : estimator or Pipeline
        In a pipeline the arguments go to the last step, under its name.
    rows : int array, optional
        The positions of the rows that `fit` is given; by default all.
    skip_unknown : bool, default=False
        Leave out what `fit` does not take, instead of an error.
    **known : arrays, one value for each row, or scalars
        By the name of the argument: `sample_weight`, `qid`, `groups`, `time`, `gap`. None is left out, and
        so are the last three, which inner splits go by, where `fit` makes none.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import RankSVM
    >>> ranker = make_pipeline(StandardScaler(), RankSVM())
    >>> fit_arguments(ranker, sample_weight=[1, 2, 3], qid=None, rows=[0, 2])
    {'ranksvm__sample_weight': array([1, 3])}
    """
    prefix, last = _last_step(estimator)
    arguments = {}
    for name, value in known.items():
        if value is None:
            continue
        if fit_takes(estimator, name):
            values = np.asarray(value)
            if values.ndim and rows is not None:  # not a scalar such as gap
                values = values[rows]
            arguments[prefix + name] = values if values.ndim else value
        elif not skip_unknown and name not in SPLIT_KEYS:
            raise ValueError(
                f"{type(last).__name__} takes no {name}; leave it out or take another estimator"
            )
    return arguments


def _last_step(estimator: Any) -> tuple[str, Any]:
    """Return the last step of a pipeline with the prefix of its parameters, or the estimator itself."""
    prefix = ""
    while hasattr(estimator, "steps"):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def scores_of(model: Any, X: Any) -> np.ndarray:
    """Return the decision function of a fitted model, or the log-odds of its probabilities; all finite."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
    elif hasattr(model, "predict_proba"):
        chance = np.clip(np.asarray(model.predict_proba(X))[:, 1], 1e-15, 1 - 1e-15)
        scores = np.log(chance) - np.log1p(-chance)
    else:
        raise TypeError(f"{type(model).__name__} has neither decision_function nor predict_proba")
    require_finite(scores, f"what {type(model).__name__} returns")
    return scores


# -- out-of-fold scores ----------------------------------------------------------------------------


@fill_docstring
def cross_fitted_scores(
    estimator: Any,
    X: Any,
    y: Any,
    cv: Any = 5,
    *,
    sample_weight: Any = None,
    qid: Any = None,
    groups: Any = None,
    time: Any = None,
    gap: Any = None,
    final: Any = None,
    random_state: Any = 0,
    verbose: int = 0,
    return_folds: bool = False,
) -> Any:
    """Score every row by a model that was trained without it.

    Parameters
    ----------
    estimator : estimator
        It is cloned for every fold and stays as it is.
    X : array, sparse matrix, table or RelationalData
    y : array of shape (n_rows,)
    cv : int, splitter or list of (train, test), default=5
        Number of stratified folds (fewer when a class has fewer rows) or, with `time`, of blocks; or a
        splitter of scikit-learn, or the folds themselves as arrays of row positions.
    sample_weight : array of shape (n_rows,), optional
        Passed to `fit`. Rows of weight 0 take no part.
    qid : array of shape (n_rows,), optional
        Passed to `fit`; a query is never both in training and in test.
    %(fold_splits)s
    final : fitted estimator, optional
        The model on all rows that will score new ones. The scores of each fold are brought to its
        scale, so that on the training rows of the fold, which both models have seen, their scores are
        distributed alike (`match_quantiles`).
    random_state : int, RandomState or None, default=0
        Of the folds.
    verbose : int, default=0
        Above 0, show a progress bar.
    return_folds : bool, default=False
        Also return the last fold that tested each row.

    Returns
    -------
    scores : ndarray of shape (n_rows,)
        NaN for rows that no fold tests (in splits by time, say); the mean where several do.
    folds : ndarray of shape (n_rows,)
        With `return_folds`; -1 for rows that no fold tests.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import LogisticRanker, choose_cut
    >>> from toprank.shortlisting import cross_fitted_scores
    >>> X, y = make_classification(1000, weights=[0.9], random_state=0)
    >>> scores = cross_fitted_scores(LogisticRanker(), X, y)
    >>> choose_cut(y, scores, budget=50).n_flagged
    50.0
    """
    X, y = make_indexable(X), column_or_1d(y)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    present = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    keys = SplitKeys.of(len(y), groups, time, gap)
    apart = SplitKeys.of(len(y), qid if groups is None else groups, time, gap)
    folds = _training_and_test(cv, y, present, apart.rows(present), random_state)
    total, times = np.zeros(len(y)), np.zeros(len(y))
    tested_by = np.full(len(y), -1)
    final_scores = None if final is None else scores_of(final, X)
    with progress(len(folds), "cross-fitting", enabled=verbose > 0) as advance:
        for fold, (train, test) in enumerate(folds):
            arguments = fit_arguments(
                estimator, rows=train, sample_weight=weight, qid=qid, **keys.as_dict()
            )
            model = clone(estimator).fit(take_rows(X, train), y[train], **arguments)
            scores = scores_of(model, take_rows(X, test))
            if final_scores is not None:
                own = scores_of(model, take_rows(X, train))
                scores = match_quantiles(scores, own, final_scores[train])
            total[test] += scores
            times[test] += 1
            tested_by[test] = fold
            advance()
    scores = np.divide(total, times, out=np.full(len(y), np.nan), where=times > 0)
    return (scores, tested_by) if return_folds else scores


def match_quantiles(scores: np.ndarray, own: np.ndarray, final: np.ndarray) -> np.ndarray:
    """Bring scores to the scale of another model: the increasing map that takes `own` to `final`.

    `own` and `final` are scores of the same rows by the model of `scores` and by the other one. A score at
    some quantile of `own` becomes that quantile of `final`, with straight lines in between; beyond the
    ends the map goes on with the ratio of the two spreads.

    Examples
    --------
    >>> import numpy as np
    >>> own = np.array([0.0, 1.0, 2.0, 4.0])
    >>> match_quantiles(np.array([0.5, 2.0, 5.0]), own, 10 * own[::-1]).tolist()
    [5.0, 20.0, 50.0]
    """
    if not len(own):
        return scores
    places, start, counts = np.unique(np.sort(own), return_index=True, return_counts=True)
    sums = np.concatenate([[0.0], np.cumsum(np.sort(final))])
    heights = (sums[start + counts] - sums[start]) / counts  # the mean over ties
    spread, wanted = float(np.std(own)), float(np.std(final))
    slope = wanted / spread if spread > 0 and wanted > 0 else 1.0
    beyond = np.minimum(scores - places[0], 0.0) + np.maximum(scores - places[-1], 0.0)
    return np.interp(scores, places, heights) + slope * beyond


def _training_and_test(
    cv: Any, y: np.ndarray, present: np.ndarray, keys: SplitKeys, random_state: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the positions of training and test rows; every training part holds both classes.

    `keys` are those of the rows that are present.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # slow to import

    labels = np.unique(y)
    positive = y == labels[-1] if len(labels) <= 2 else y > 0  # of grades, those above 0
    if isinstance(cv, Integral) and not isinstance(cv, bool) and keys.time is not None:
        blocks = make_splits(positive[present], **keys.as_dict(), n_splits=int(cv))
        cv = [(present[block.train], present[block.test]) for block in blocks]
    elif isinstance(cv, Integral) and not isinstance(cv, bool):
        kind = StratifiedKFold if keys.groups is None else StratifiedGroupKFold
        n_folds = _count_folds(int(cv), positive[present], keys.groups, "cv")
        seed = check_random_state(random_state).randint(2**31 - 1)
        cv = kind(n_folds, shuffle=True, random_state=seed)
    if hasattr(cv, "get_n_splits"):
        splits = cv.split(
            np.zeros((len(present), 1)), positive[present].astype(np.int64), keys.groups
        )
        folds = [(present[train], present[test]) for train, test in splits]
    elif isinstance(cv, Iterable) and not isinstance(cv, (str, bytes)):
        kept = np.zeros(len(y), dtype=bool)
        kept[present] = True
        folds = [tuple(np.asarray(part)[kept[np.asarray(part)]] for part in fold) for fold in cv]
    else:
        raise ValueError(
            f"cv must be a number of folds, a splitter or a list of (train, test), got {cv!r}"
        )
    if not folds:
        raise ValueError("cv gives no folds")
    if not all(_has_both_classes(positive, train) for train, _ in folds):
        raise ValueError(
            "a fold leaves only one class to train on: take fewer folds or other groups"
        )
    return folds
