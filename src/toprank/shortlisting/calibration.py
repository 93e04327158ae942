"""CalibratedRanker: any ranker, with probabilities and cuts that hold for new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker
from toprank.columns import as_frame, is_table
from toprank.registry import estimator as registered
from toprank.shortlisting.cross_fit import cross_fitted_scores, fit_arguments, scores_of
from toprank.shortlisting.cut import Cut, cut_stairs
from toprank.shortlisting.probability import METHODS, ProbabilityMap, probability_bounds
from toprank.shortlisting.staircase import Staircase

__all__ = ["CalibratedRanker"]


def _explains(self: Any) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "explain")


class CalibratedRanker(BaseRanker):
    """A ranker with calibrated probabilities, their intervals, and cuts by rate, precision or cost.

    The ranker is fitted on all rows and ranks as it would alone. How its scores turn into probabilities
    is learnt from cross-fitted scores: each row is scored by a model that was trained without it. A
    summary of these out-of-fold scores stays in the model (at most 10,000 steps), so that cuts can be chosen
    later, also from a saved model.

    Parameters
    ----------
    estimator : estimator, optional
        Any ranker of the library, a pipeline that ends in one, or another binary classifier;
        `GradientBoostingRanker()` by default.
    method : {"auto", "isotonic", "sigmoid"}, default="auto"
        The map from scores to probabilities. "auto" takes the isotonic one from 100 rows of the
        rarer class on and the sigmoid below.
    cv : int, splitter or list of (train, test), default=5
        The folds of cross-fitting; see `cross_fitted_scores`.
    random_state : int, RandomState or None, default=0
        Of the folds.
    verbose : int, default=0
        Above 0, show a progress bar.

    Attributes
    ----------
    estimator_ : estimator
        The ranker, fitted on all rows.
    calibration_ : ProbabilityMap
        From scores to probabilities.
    staircase_ : Staircase
        The out-of-fold scores in short.
    classes_ : ndarray of shape (2,)

    Notes
    -----
    The models of the folds learn from fewer rows than the final one, which is therefore, if anything,
    better than promised. Their scores are brought to the scale of the final model's on either side of
    the threshold, which lies at 0 in every model; that the scales then agree is an assumption.
    Probabilities hold for rows drawn like the training rows, with the same share of positives.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import CalibratedRanker, LogisticRanker
    >>> X, y = make_classification(2000, weights=[0.9], random_state=0)
    >>> model = CalibratedRanker(LogisticRanker()).fit(X, y)
    >>> probability = model.predict_proba(X)[:, 1]
    >>> bool(abs(probability.mean() - y.mean()) < 0.01)
    True
    >>> model.cut(precision=0.7).precision_low >= 0.7
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "auto",
        cv: Any = 5,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None, *, groups: Any = None
    ) -> CalibratedRanker:
        """Fit the ranker on all rows and learn probabilities from cross-fitted scores.

        Parameters
        ----------
        X : array, sparse matrix, table or RelationalData
            Whatever the ranker takes.
        y : array of shape (n_rows,)
            Two labels, or grades where the ranker takes them: then a positive is a grade above 0.
        sample_weight : array of shape (n_rows,), optional
            Where the ranker takes weights.
        qid : array of shape (n_rows,), optional
            Where the ranker takes queries; a query is never split between folds.
        groups : array of shape (n_rows,), optional
            Rows of one group are never split between folds.

        Returns
        -------
        self : CalibratedRanker
        """
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        X = as_frame(X) if is_table(X) else X
        inner = self._unfitted()
        arguments = fit_arguments(inner, sample_weight=sample_weight, qid=qid)
        self.estimator_ = clone(inner).fit(X, y, **arguments)  # first: it checks the data
        self._copy_inputs(X)
        positive = self._known_labels(y) > 0
        scores = cross_fitted_scores(
            inner,
            X,
            y,
            self.cv,
            sample_weight=sample_weight,
            qid=qid,
            groups=groups,
            final=self.estimator_,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        self._calibrate(positive, scores, sample_weight)
        return self

    def _calibrate(self, positive: np.ndarray, scores: np.ndarray, sample_weight: Any) -> None:
        """Learn from the rows that were held out."""
        known = ~np.isnan(scores)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)[known]
        if not 0 < positive[known].sum() < known.sum():
            raise ValueError("the rows that cv holds out are of one class; probabilities need both")
        stairs = Staircase.of(positive[known], scores[known], weight)
        self.calibration_ = ProbabilityMap.learn(stairs, self.method)
        self.staircase_ = stairs.thinned()
        self.offset_ = 0.0  # the ranker has subtracted its own

    def _unfitted(self) -> Any:
        return registered("GradientBoostingRanker")() if self.estimator is None else self.estimator

    def _copy_inputs(self, X: Any) -> None:
        """What scikit-learn wants to know about the input, from the ranker inside."""
        classes = getattr(self.estimator_, "classes_", None)
        if classes is None or len(classes) != 2:
            raise ValueError(
                f"{type(self.estimator_).__name__} is no binary classifier; a ranker of two classes "
                "is needed"
            )
        self.classes_ = np.asarray(classes)
        names = ("n_features_in_", "feature_names_in_")
        for name in names:
            self.__dict__.pop(name, None)  # a refit may have other columns
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        if not hasattr(self, "n_features_in_"):
            self.n_features_in_ = int(X.shape[1])

    @property
    def columns_(self) -> Any:  # type: ignore[override]
        """The columns of the ranker; a pipeline has none of its own."""
        return self._inside("columns_")

    @property
    def schema_(self) -> Any:
        """The predicates of a ranker of relational data."""
        return self._inside("schema_")

    def _inside(self, name: str) -> Any:
        if "estimator_" not in vars(self):  # getattr on it would ask for this very property
            raise AttributeError(f"a CalibratedRanker has no {name} before it is fitted")
        return getattr(self.estimator_, name)

    def _accepts_grades(self) -> bool:
        accepts = getattr(getattr(self, "estimator_", self._unfitted()), "_accepts_grades", None)
        return accepts is not None and accepts()

    def _raw_scores(self, X: Any) -> np.ndarray:
        return scores_of(self.estimator_, X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Score rows as the ranker does: above 0 is flagged.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)

        Returns
        -------
        scores : ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        return self._raw_scores(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)

        Returns
        -------
        probability : ndarray of shape (n_rows, 2)
            In the order of `classes_`; the second column is that of the positives. It never falls
            where the score rises.
        """
        scores = self.decision_function(X)
        positive = self.calibration_(scores)
        return np.column_stack([1.0 - positive, positive])

    def probability_interval(
        self, X: Any, confidence: float = 0.95
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds for the probability that a row with this score is a positive.

        They assume only that the probability rises with the score
        (`toprank.shortlisting.probability.probability_bounds`).

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
        confidence : float, default=0.95

        Returns
        -------
        low, high : ndarray of shape (n_rows,)
        """
        scores = self.decision_function(X)
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
        low, high = probability_bounds(self.staircase_, scores, confidence)
        estimate = self.calibration_(scores)
        return np.minimum(low, estimate), np.maximum(high, estimate)

    def cut(
        self,
        *,
        budget: float | None = None,
        fpr: float | None = None,
        precision: float | None = None,
        cost: Any = None,
        population: float | None = None,
        confidence: float = 0.95,
        n_resamples: int = 1000,
        random_state: Any = 0,
    ) -> Cut:
        """Choose a cut from the out-of-fold scores; see `toprank.choose_cut`."""
        check_is_fitted(self)
        return cut_stairs(
            self.staircase_,
            budget=budget,
            fpr=fpr,
            precision=precision,
            cost=cost,
            population=population,
            confidence=confidence,
            n_resamples=n_resamples,
            random_state=random_state,
        )

    @available_if(_explains)
    def explain(self, X: Any) -> pd.DataFrame:
        """Say why rows have their scores, as the ranker does."""
        check_is_fitted(self)
        return self.estimator_.explain(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._unfitted()).input_tags
        return tags
