"""Learning a model from rows: what `toprank fit` and `toprank demo` share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

__all__ = ["Drawn", "learn"]


def learn(
    name: str,
    X: Any,
    y: np.ndarray,
    *,
    weight: Any = None,
    qid: Any = None,
    time: Any = None,
    gap: Any = None,
    folds: int | None = 5,
    random_state: int = 0,
    n_jobs: int | None = 1,
    verbose: int = 0,
) -> tuple[Any, list[str]]:
    """Fit a model by its short name, calibrated unless `folds` is None.

    With `time` the calibration is learnt from blocks of time, each scored by a model of the past, so that
    it allows for how the data change. A method that does not scale learns from all positives and a
    draw of the others, in the folds and in the end, while the calibration sees all rows.

    Returns
    -------
    model : fitted estimator
    notes : list of str
        What the user should know.
    """
    from toprank import CalibratedRanker
    from toprank.selection import make_model, training_rows
    from toprank.shortlisting.cross_fit import fit_arguments

    model, notes = make_model(name, random_state, n_jobs), []
    drawn = training_rows(name, y, random_state)
    if drawn is not None:
        notes.append(
            f"{name} does not scale to all rows: it learns from all positives and a draw of the "
            f"others, {len(drawn):,} of {len(y):,} rows"
        )
        model = Drawn(model, name, random_state)
    if folds is None:
        fitted = model.fit(X, y, **fit_arguments(model, sample_weight=weight, qid=qid))
        return (fitted.model_ if drawn is not None else fitted), notes
    cv, more = _folds(y, qid, time, gap, folds)
    calibrated = CalibratedRanker(model, cv=cv, random_state=random_state, verbose=verbose)
    calibrated.fit(X, y, weight, qid)
    calibrated.cv = folds  # not the rows of each fold: they have no place in a model file
    if drawn is not None:
        calibrated.estimator, calibrated.estimator_ = model.estimator, calibrated.estimator_.model_
    return calibrated, [*notes, *more]


def _folds(y: np.ndarray, qid: Any, time: Any, gap: Any, folds: int) -> tuple[Any, list[str]]:
    """A number of folds, or blocks of time."""
    if time is None:
        if gap is not None:
            raise ValueError(
                "--gap needs --time: without it there is no order to keep a distance in"
            )
        return folds, []
    from toprank.selection import make_splits

    splits = make_splits(y, groups=qid, time=time, gap=gap, n_splits=folds)
    return [(split.train, split.test) for split in splits], list(splits.notes)


class Drawn(ClassifierMixin, BaseEstimator):
    """Fit a model on all positives and a draw of the other rows; lives only while a model is learnt."""

    def __init__(self, estimator: Any = None, name: str = "", random_state: int = 0) -> None:
        self.estimator = estimator
        self.name = name
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Drawn:
        """Draw rows, fit."""
        from toprank.selection import training_rows
        from toprank.shortlisting.cross_fit import fit_arguments, take_rows

        labels = np.asarray(y)
        drawn = training_rows(self.name, labels, self.random_state)
        rows = np.arange(len(labels)) if drawn is None else drawn
        arguments = fit_arguments(self.estimator, sample_weight=sample_weight, qid=qid, rows=rows)
        self.model_ = clone(self.estimator).fit(take_rows(X, rows), labels[rows], **arguments)
        for name in ("classes_", "n_features_in_", "feature_names_in_", "columns_"):
            if hasattr(self.model_, name):
                setattr(self, name, getattr(self.model_, name))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the model."""
        return self.model_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
