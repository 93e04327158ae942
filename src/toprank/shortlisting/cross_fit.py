"""Scores of rows by models that have not seen them."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d, has_fit_parameter

from toprank.columns import as_frame, is_table
from toprank.progress import progress

__all__ = ["cross_fitted_scores", "fit_arguments", "scores_of", "take_rows"]


def cross_fitted_scores(
    estimator: Any,
    X: Any,
    y: Any,
    cv: Any = 5,
    *,
    sample_weight: Any = None,
    qid: Any = None,
    groups: Any = None,
    final: Any = None,
    random_state: Any = 0,
    verbose: int = 0,
) -> np.ndarray:
    """Score every row by a model that was trained without it.

    Parameters
    ----------
    estimator : estimator
        It is cloned for every fold and stays as it is.
    X : array, sparse matrix, table or RelationalData
    y : array of shape (n_rows,)
    cv : int, splitter or list of (train, test), default=5
        Number of stratified folds (fewer when a class has fewer rows), or a splitter of
        scikit-learn, or the folds themselves as arrays of row positions.
    sample_weight : array of shape (n_rows,), optional
        Handed to `fit`. Rows of weight 0 take no part.
    qid : array of shape (n_rows,), optional
        Handed to `fit`; a query is never on both sides.
    groups : array of shape (n_rows,), optional
        Rows of one group (a customer, say) are never on both sides.
    final : fitted estimator, optional
        The model on all rows that will score new ones. If it is a ranker of the library, the scores of
        each fold are brought to its scale: those above the threshold 0 and those below are multiplied
        by a factor each, so that on the rows of the fold's training both models' scores
        have the same mean above and below it.
    random_state : int, RandomState or None, default=0
        Of the folds.
    verbose : int, default=0
        Above 0, show a progress bar.

    Returns
    -------
    scores : ndarray of shape (n_rows,)
        NaN for rows that no fold holds out (in splits by time, say); the mean where several do.

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
    X = as_frame(X) if is_table(X) else X
    y = column_or_1d(y)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    present = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    row_groups = qid if groups is None else groups
    folds = _folds(cv, y, present, row_groups, random_state)
    total, times = np.zeros(len(y)), np.zeros(len(y))
    known = scores_of(final, X) if _has_threshold(final) else None
    with progress(len(folds), "cross-fitting", enabled=verbose > 0) as advance:
        for train, test in folds:
            arguments = fit_arguments(estimator, sample_weight=weight, qid=qid, rows=train)
            model = clone(estimator).fit(take_rows(X, train), y[train], **arguments)
            scores = scores_of(model, take_rows(X, test))
            if known is not None:
                scores = rescaled(scores, scores_of(model, take_rows(X, train)), known[train])
            total[test] += scores
            times[test] += 1
            advance()
    mean = np.full(len(y), np.nan)
    return np.divide(total, times, out=mean, where=times > 0)


def rescaled(scores: np.ndarray, own: np.ndarray, final: np.ndarray) -> np.ndarray:
    """Bring scores to the scale of another model, on either side of the threshold 0.

    Parameters
    ----------
    scores : ndarray
    own, final : ndarray
        Scores of the same rows by the model of the scores and by the other one.

    Examples
    --------
    >>> import numpy as np
    >>> own = np.array([1.0, 3.0, -2.0, -4.0])
    >>> rescaled(np.array([2.0, -3.0]), own, np.where(own > 0, 2 * own, own / 3)).tolist()
    [4.0, -1.0]
    """
    above, below = (
        _factor(np.abs(side(own, 0)).mean(), np.abs(side(final, 0)).mean())
        for side in (np.maximum, np.minimum)
    )
    return np.where(scores > 0, above, below) * scores


def _factor(own: float, final: float) -> float:
    """How much larger the one is, within reason."""
    return float(np.clip(final / own, 0.1, 10.0)) if own > 0 and final > 0 else 1.0


def _has_threshold(model: Any) -> bool:
    """Whether 0 means the same in every model of this kind, as in the rankers of the library."""
    while hasattr(model, "steps"):
        model = model.steps[-1][1]
    return hasattr(model, "offset_") and hasattr(model, "_raw_scores")


def fit_arguments(
    estimator: Any, *, sample_weight: Any = None, qid: Any = None, rows: Any = None
) -> dict[str, Any]:
    """Weights and queries as arguments of an estimator's `fit`; in a pipeline, of its last step."""
    prefix, last = "", estimator
    while hasattr(last, "steps"):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    found = {}
    for argument, values in (("sample_weight", sample_weight), ("qid", qid)):
        if values is None:
            continue
        if not has_fit_parameter(last, argument):
            raise ValueError(
                f"{type(last).__name__} takes no {argument}, so it cannot be fitted with one; "
                "leave it out or take another estimator"
            )
        values = np.asarray(values)
        found[prefix + argument] = values if rows is None else values[rows]
    return found


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of a table, an array, a sparse matrix or relational data."""
    if is_table(X):
        return as_frame(X).iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


def scores_of(model: Any, X: Any) -> np.ndarray:
    """Scores of a fitted model: its decision function, or the log-odds of its probabilities."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    if not hasattr(model, "predict_proba"):
        raise TypeError(
            f"{type(model).__name__} gives no scores: it has neither decision_function nor "
            "predict_proba"
        )
    probability = np.clip(np.asarray(model.predict_proba(X))[:, 1], 1e-15, 1 - 1e-15)
    return np.log(probability) - np.log1p(-probability)


def _folds(
    cv: Any, y: np.ndarray, present: np.ndarray, groups: Any, random_state: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Positions of training and test rows; every training part holds both classes."""
    labels = _classes(y[present])
    inside = None if groups is None else np.asarray(groups)[present]
    splits: Iterable[Any]
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        splits = _stratified(int(cv), labels, inside, random_state)
        folds = [(present[train], present[test]) for train, test in splits]
    elif hasattr(cv, "get_n_splits"):
        splits = cv.split(np.zeros((len(present), 1)), labels, inside)
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
    everything = _classes(y)
    for train, _ in folds:
        if len(np.unique(everything[train])) < 2:
            raise ValueError(
                "a fold leaves only one class to train on: take fewer folds, or groups that do not "
                "hold all rows of a class"
            )
    return folds


def _classes(y: np.ndarray) -> np.ndarray:
    """Two classes as they are; grades as relevant or not."""
    if len(np.unique(y)) <= 2:
        return np.unique(y, return_inverse=True)[1]
    return (y > 0).astype(np.int64)


def _stratified(cv: int, labels: np.ndarray, groups: Any, random_state: Any) -> Iterable[Any]:
    """Stratified folds, as many as asked for or as the rarer class allows."""
    if cv < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv}")
    if groups is None:
        rarest = int(np.bincount(labels, minlength=2).min())
        what = "rows"
    else:
        rarest = min(len(np.unique(groups[labels == label])) for label in (0, 1))
        what = "groups with rows"
    if rarest < 2:
        raise ValueError(
            f"cross-fitting needs at least 2 {what} of each class, so that one is left to train on "
            f"when another is held out; one class has {rarest}"
        )
    seed = check_random_state(random_state).randint(2**31 - 1)
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = kind(min(cv, rarest), shuffle=True, random_state=seed)
    return folds.split(np.zeros((len(labels), 1)), labels, groups)
