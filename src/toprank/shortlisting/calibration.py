"""Calibrated probabilities: an increasing map from scores, bounds, and CalibratedRanker around any ranker."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker
from toprank.columns import as_frame, is_table
from toprank.docstrings import fill_docstring
from toprank.folds import cross_fitted_scores, fit_arguments, scores_of
from toprank.ranking import descending_order
from toprank.registry import estimator as registered
from toprank.shortlisting.counts import (
    OutOfFoldCounts,
    design_effect,
    effective_rows,
    lower_share,
    share_interval,
    upper_share,
)
from toprank.shortlisting.cut import Cut, cut_counts
from toprank.validation import (
    PARAMETER_CONSTRAINTS,
    StrOptions,
    binary_rows,
    check_choice,
    check_scores,
)

__all__ = [
    "CalibratedRanker", "ProbabilityMap", "calibrate", "probability_bounds", "top_calibration",
]  # fmt: skip

METHODS = ("auto", "isotonic", "sigmoid")
ENOUGH_FOR_ISOTONIC = 100  # rows of the rarer class
SMALLEST_WINDOW = 4


@dataclass(frozen=True)
class ProbabilityMap:
    """An increasing function from scores to probabilities.

    Attributes
    ----------
    method : {"isotonic", "sigmoid"}
    slope, intercept : float
        Of the sigmoid: 1 / (1 + exp(-slope * score - intercept)).
    knots, values : ndarray
        Of the isotonic map: straight lines between these points, level beyond them.

    Examples
    --------
    >>> import numpy as np
    >>> rising = ProbabilityMap("isotonic", knots=np.array([0.0, 1.0]), values=np.array([0.1, 0.9]))
    >>> rising(np.array([-5.0, 0.5, 5.0])).tolist()
    [0.1, 0.5, 0.9]
    """

    method: str
    slope: float = 0.0
    intercept: float = 0.0
    knots: np.ndarray = field(default_factory=lambda: np.empty(0))
    values: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __call__(self, scores: Any) -> np.ndarray:
        scores = np.asarray(scores, dtype=np.float64)
        if self.method == "sigmoid":
            return expit(self.slope * scores + self.intercept)
        return np.interp(scores, self.knots, self.values)

    @classmethod
    def learn(cls, counts: OutOfFoldCounts, method: str = "auto") -> ProbabilityMap:
        """Learn the map from held-out scores.

        ``"auto"`` takes the isotonic map from 100 rows of the rarer class on, the sigmoid below.
        """
        if check_choice(method, "method", METHODS) == "auto":
            rarer = min(counts.effective_positives, counts.effective_negatives)
            method = "isotonic" if rarer >= ENOUGH_FOR_ISOTONIC else "sigmoid"
        return _isotonic(counts) if method == "isotonic" else _sigmoid(counts)


def _isotonic(counts: OutOfFoldCounts) -> ProbabilityMap:
    """Fit an isotonic regression with half a row of the other class at each end.

    It would give probability 1 to the k positives at the top of the list; with half a negative above them it
    is k / (k + 1/2). (Venn-Abers predictors, Vovk and Petej 2014, UAI, add a whole row; at the top that is as
    far below the truth as no row is above it.)
    """
    from sklearn.isotonic import IsotonicRegression  # slow to import, and not needed to score

    positives, negatives = counts.step_counts()
    weight = positives + negatives
    half_row = 0.5 * counts.flagged_squares[-1] / counts.total  # of mean weight
    scores = np.append((counts.tops + counts.bottoms) / 2, [counts.tops[0], counts.bottoms[-1]])
    share = np.append(positives / weight, [0.0, 1.0])
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(scores, share, sample_weight=np.append(weight, [half_row, half_row]))
    curve = (np.asarray(v, dtype=np.float64) for v in (model.X_thresholds_, model.y_thresholds_))
    return ProbabilityMap("isotonic", 0.0, 0.0, *curve)


def _sigmoid(counts: OutOfFoldCounts) -> ProbabilityMap:
    """Fit a logistic curve to smoothed labels (Platt 1999), never decreasing.

    With P positives and N negatives the targets are (P + 1) / (P + 2) and 1 / (N + 2): every step counts
    for the positive class with the weight of its targets and for the negative class with the remainder.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import, and not needed to score

    positives, negatives = counts.step_counts()
    n_positives, n_negatives = counts.effective_positives, counts.effective_negatives
    high, low = (n_positives + 1) / (n_positives + 2), 1 / (n_negatives + 2)
    weight = (positives + negatives) / counts.total
    for_positive = (positives * high + negatives * low) / counts.total
    scores = (counts.tops + counts.bottoms) / 2
    centre = float(weight @ scores)
    spread = float(np.sqrt(weight @ (scores - centre) ** 2))
    share = float(for_positive.sum())
    constant = ProbabilityMap("sigmoid", intercept=float(np.log(share) - np.log1p(-share)))
    if not spread > 0:
        return constant
    scaled = np.tile((scores - centre) / spread, 2)[:, None]
    labels = np.repeat([1, 0], len(scores))
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
    model.fit(scaled, labels, sample_weight=np.concatenate([for_positive, weight - for_positive]))
    slope, intercept = float(model.coef_[0, 0]), float(model.intercept_[0])
    if not slope > 0:
        return constant
    return ProbabilityMap("sigmoid", slope / spread, intercept - slope * centre / spread)


def probability_bounds(
    counts: OutOfFoldCounts, scores: Any, confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds for the probability of a positive at given scores, if only it rises with the score.

    The rows just below a score have at most its probability, so a lower bound for the mean of any window of
    them is one for it; the rows just above give an upper bound. Windows of 4, 8, 16, ... rows share the
    allowed error, and the best bound is taken. Exact for each score, without a model of the curve. (The
    same device, for all scores at once: Dimitriadis, Duembgen, Henzi, Puke and Ziegel 2023, Biometrika
    110.)
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = counts.n_steps
    rows = counts.by_steps_flagged("flagged")
    sums = (rows, counts.by_steps_flagged("positives"), counts.by_steps_flagged("flagged_squares"))
    typical = counts.flagged_squares[-1] / counts.total
    n_windows = max(1, int(np.ceil(np.log2(max(rows[-1] / typical / SMALLEST_WINDOW, 1.0)))) + 1)
    error = (1.0 - confidence) / (2 * n_windows)
    below = np.searchsorted(-counts.tops, -scores, side="left")  # first step wholly at or below
    above = np.searchsorted(-counts.bottoms, -scores, side="right")  # steps wholly at or above
    first, low_at = np.unique(below, return_inverse=True)
    last, high_at = np.unique(above, return_inverse=True)
    low, high = np.zeros(len(first)), np.ones(len(last))
    for k in range(n_windows):
        size = SMALLEST_WINDOW * 2.0**k * typical * (1 - 1e-12)
        down = np.minimum(np.searchsorted(rows, rows[first] + size), n)
        up = np.maximum(np.searchsorted(rows, rows[last] - size, side="right") - 1, 0)
        low = np.maximum(low, lower_share(*_window(sums, first, down), error))
        high = np.minimum(high, upper_share(*_window(sums, up, last), error))
    return low[low_at], high[high_at]


def _window(sums: Any, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return effective hits and rows of the steps from `start` to before `end`."""
    weight, positives, squares = (values[end] - values[start] for values in sums)
    rows = effective_rows(weight, squares)
    share = np.divide(positives, weight, out=np.zeros_like(weight), where=weight > 0)
    return rows * np.clip(share, 0.0, 1.0), rows


# -- the ranker -----------------------------------------------------------------------------------


@fill_docstring
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
        The folds of cross-fitting; see `cross_fitted_scores`. An `AutoRanker` has held-out scores of its own,
        from folds of its own, which are taken instead of fitting it again for each of a number of folds.
    random_state : int, RandomState or None, default=0
        Of the folds.
    %(verbose)s

    Attributes
    ----------
    estimator_ : estimator
        The ranker, fitted on all rows.
    calibration_ : ProbabilityMap
        From scores to probabilities.
    staircase_ : OutOfFoldCounts
        The out-of-fold scores, as counts above every threshold.
    classes_ : ndarray of shape (2,)

    Notes
    -----
    The models of the folds learn from fewer rows than the final one, which is therefore, if anything,
    better than promised. Their scores are brought to the scale of the final model's by matching the
    quantiles on the rows that both have seen; that the scales then agree is an assumption. All bounds
    allow for a quarter more variance than that of as many rows, and for more where the rates of the folds
    differ by more than chance (`counts.design_effect`).
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

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "method": [StrOptions(set(METHODS))],
    }

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

    @fill_docstring
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        qid: Any = None,
        *,
        groups: Any = None,
        time: Any = None,
        gap: Any = None,
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
        %(fold_splits)s

        Returns
        -------
        self : CalibratedRanker
        """
        self._validate_params()
        X = as_frame(X) if is_table(X) else X
        inner = self._unfitted()
        known = {"groups": groups, "time": time, "gap": gap}
        arguments = fit_arguments(inner, sample_weight=sample_weight, qid=qid, **known)
        self.estimator_ = clone(inner).fit(X, y, **arguments)  # first: it checks the data
        self._copy_inputs(X)
        positive = self._known_labels(y) > 0
        scores, folds = getattr(self.estimator_, "out_of_fold_scores_", None), None
        if scores is None or not isinstance(self.cv, Integral):
            scores, folds = cross_fitted_scores(
                inner, X, y, self.cv, sample_weight=sample_weight, qid=qid, **known,
                final=self.estimator_, random_state=self.random_state, verbose=self.verbose,
                return_folds=True,
            )  # fmt: skip
        return self._learn(positive, scores, sample_weight, folds)

    @classmethod
    def of_fitted(
        cls, estimator: Any, y: Any, sample_weight: Any = None, **parameters: Any
    ) -> CalibratedRanker:
        """Calibrate a ranker that was fitted already, by its own held-out scores of the training rows.

        Parameters
        ----------
        estimator : fitted ranker
            With the attribute `out_of_fold_scores_`, as an `AutoRanker` has it.
        y, sample_weight : array of shape (n_rows,)
            Those of its `fit`.
        **parameters
            Of `CalibratedRanker`.

        Returns
        -------
        model : CalibratedRanker

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from toprank import AutoRanker, CalibratedRanker
        >>> X, y = make_classification(300, weights=[0.8], random_state=0)
        >>> ranker = AutoRanker(time_limit=None, portfolio=["linear"], n_repeats=1, random_state=0).fit(X, y)
        >>> CalibratedRanker.of_fitted(ranker, y).predict_proba(X).shape
        (300, 2)
        """
        model = cls(clone(estimator), **parameters)
        model._validate_params()
        model.estimator_ = estimator
        model._copy_inputs(None)
        positive = model._known_labels(y) > 0
        return model._learn(positive, estimator.out_of_fold_scores_, sample_weight)

    def _learn(
        self,
        positive: np.ndarray,
        scores: np.ndarray,
        sample_weight: Any,
        folds: np.ndarray | None = None,
    ) -> CalibratedRanker:
        """Learn probabilities and counts from held-out scores, NaN where there is none."""
        known = ~np.isnan(scores)  # the rows that were held out
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)[known]
        if not 0 < positive[known].sum() < known.sum():
            raise ValueError("the rows that cv holds out are of one class; probabilities need both")
        counts = OutOfFoldCounts.of(positive[known], scores[known], weight)
        self.calibration_ = ProbabilityMap.learn(counts, self.method)
        folds = None if folds is None else folds[known]
        counts = counts.widened(design_effect(positive[known], scores[known], folds))
        self.staircase_ = counts.thin()
        self.offset_ = 0.0  # the ranker has subtracted its own
        return self

    def _unfitted(self) -> Any:
        return registered("GradientBoostingRanker")() if self.estimator is None else self.estimator

    def _copy_inputs(self, X: Any) -> None:
        """Copy what scikit-learn asks about the input from the ranker inside."""
        classes = getattr(self.estimator_, "classes_", None)
        if classes is None or len(classes) != 2:
            raise ValueError(f"{type(self.estimator_).__name__} is no ranker of two classes")
        self.classes_ = np.asarray(classes)
        for name in ("n_features_in_", "feature_names_in_"):
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

    def _check_rows(self, X: Any, *, reset: bool = False) -> Any:
        return X  # the ranker inside checks them

    def _raw_scores(self, X: Any) -> np.ndarray:
        return scores_of(self.estimator_, X)

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
        (`toprank.shortlisting.calibration.probability_bounds`).

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
        confidence : float, default=0.95

        Returns
        -------
        low, high : ndarray of shape (n_rows,)
        """
        return self._probability_interval(self.decision_function(X), confidence)

    def _probability_interval(
        self, scores: np.ndarray, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of `probability_interval` for scores."""
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
        **options: Any,
    ) -> Cut:
        """Choose a cut from the out-of-fold scores, as `toprank.choose_cut` does.

        Parameters
        ----------
        budget, fpr, precision, cost : optional
            Exactly one of them.
        **options
            `population`, `confidence`, `n_resamples` and `random_state` of `choose_cut`.

        Returns
        -------
        cut : Cut
        """
        check_is_fitted(self)
        targets = {"budget": budget, "fpr": fpr, "precision": precision, "cost": cost}
        return cut_counts(self.staircase_, targets, **options)

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), "explain"))
    def explain(self, X: Any) -> pd.DataFrame:
        """Explain the scores of rows, as the ranker does."""
        check_is_fitted(self)
        return self.estimator_.explain(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._unfitted()).input_tags
        return tags


def calibrate(
    ranker: Any, X: Any, y: Any, *, method: str = "auto", sample_weight: Any = None
) -> Any:
    """Teach a fitted ranker probabilities from rows that it was not trained on.

    Parameters
    ----------
    ranker : fitted ranker
        It gets the attribute `calibration_` and the method `predict_proba`, until it is fitted again.
    X : array, sparse matrix or table
        Held-out rows.
    y : array of shape (n_rows,)
        Their labels.
    method : {"auto", "isotonic", "sigmoid"}, default="auto"
        As for `CalibratedRanker`, which needs no rows of its own: it cross-fits.
    sample_weight : array of shape (n_rows,), optional

    Returns
    -------
    ranker

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import LogisticRanker
    >>> from toprank.shortlisting import calibrate
    >>> X, y = make_classification(2000, weights=[0.9], random_state=0)
    >>> ranker = calibrate(LogisticRanker().fit(X[:1000], y[:1000]), X[1000:], y[1000:])
    >>> ranker.predict_proba(X[:3]).shape
    (3, 2)
    """
    check_is_fitted(ranker)
    if not isinstance(ranker, BaseRanker) or isinstance(ranker, CalibratedRanker):
        raise TypeError(
            f"calibrate takes a ranker of the library, got {type(ranker).__name__}; CalibratedRanker takes "
            "any classifier"
        )
    positive = ranker._known_labels(y) > 0
    rows = binary_rows(positive, ranker.decision_function(X), sample_weight, None)
    counts = OutOfFoldCounts.of(rows.positive, rows.scores, rows.weight)
    ranker.calibration_ = ProbabilityMap.learn(counts, method)
    return ranker


# -- a check --------------------------------------------------------------------------------------


def top_calibration(
    y_true: Any,
    probability: Any,
    k: Any = (50, 100, 200),
    *,
    scores: Any = None,
    confidence: float = 0.95,
    pos_label: Any = None,
) -> pd.DataFrame:
    """Compare the predicted with the observed rate of positives in the top of the list.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
    probability : array of shape (n_rows,)
    k : int or sequence of int, default=(50, 100, 200)
        Lengths of the list; those longer than the data are left out.
    scores : array of shape (n_rows,), optional
        What the list is ranked by; by default the probabilities themselves.
    confidence : float, default=0.95
    pos_label : label, optional

    Returns
    -------
    table : DataFrame
        One line for each length: `k`, `predicted` (mean probability), `observed` (share of positives)
        with `observed_low` and `observed_high`, and `agrees`, whether the prediction lies in between.

    Examples
    --------
    >>> from toprank.shortlisting import top_calibration
    >>> top_calibration([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1], k=2)[["predicted", "observed"]]
       predicted  observed
    0       0.85       1.0
    """
    rows = binary_rows(y_true, probability, None, pos_label)
    if rows.scores.min() < 0 or rows.scores.max() > 1:
        raise ValueError("probability must lie between 0 and 1")
    order = descending_order(rows.scores if scores is None else check_scores(scores))
    hits = np.cumsum(rows.positive[order])
    predicted = np.cumsum(rows.scores[order], dtype=np.float64)
    found = []
    for length in np.atleast_1d(k).tolist():
        if not 1 <= length <= len(order):
            continue
        low, high = share_interval(float(hits[length - 1]), length, confidence)
        mean = predicted[length - 1] / length
        found.append((int(length), mean, hits[length - 1] / length, low, high, low <= mean <= high))
    names = ["k", "predicted", "observed", "observed_low", "observed_high", "agrees"]
    return pd.DataFrame(found, columns=names)
