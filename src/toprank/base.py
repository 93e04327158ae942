"""BaseRanker: what every estimator of the library shares.

A ranker is a scikit-learn binary classifier whose answer is `decision_function`. `fit` of a family
reads as: check the training data, learn, keep the state, set the threshold. This module owns the first
and the last step and everything that follows from a fitted `_raw_scores`.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from toprank.columns import Columns, as_frame, check_names, is_table
from toprank.ranking import RankedList
from toprank.validation import PARAMETER_CONSTRAINTS, check_cells, query_codes

__all__ = ["BaseRanker", "InputChecks", "TrainingData", "WeightScale", "check_weights"]

# when weights are numbers of copies
MOST_PARTS = 4  # of the smallest weight
MOST_COPIES = 100  # on average
MOST_VALUES = 10_000  # distinct ones


@dataclass(frozen=True)
class TrainingData:
    """Checked training data.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_columns)
        Floats; categories as codes.
    y : float ndarray
        1 for a positive, 0 for a negative; grades 0, 1, 2, ... for graded objectives.
    sample_weight : float ndarray or None
    qid : int ndarray or None
        Query codes 0, 1, ...
    """

    X: Any
    y: np.ndarray
    sample_weight: np.ndarray | None
    qid: np.ndarray | None

    @property
    def weights(self) -> np.ndarray:
        """The sample weights, ones when none were given."""
        return np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight

    def rows(self, keep: np.ndarray) -> TrainingData:
        """The part of the data that a mask or an index array selects."""
        weight = None if self.sample_weight is None else self.sample_weight[keep]
        qid = None if self.qid is None else self.qid[keep]
        return TrainingData(self.X[keep], self.y[keep], weight, qid)


class InputChecks:
    """The first step of every `fit`: the same checks, and the same messages, everywhere."""

    columns_: Columns
    _validate_params: Any  # scikit-learn's, of the estimator that this is mixed into

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PARAMETER_CONSTRAINTS
    _accepts_missing = False
    _accepts_categories = False
    _accepts_dates = False  # as days; elsewhere dates written as text are categories
    _accepts_sparse = False
    _unseen_category = float("nan")  # the code of a category that training did not have

    def _accepts_grades(self) -> bool:
        """Whether labels may be grades 0, 1, 2, ... (depends on parameters in some families)."""
        return False

    def _check_training(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        qid: Any = None,
        *,
        keep_zero_weights: bool = False,
    ) -> TrainingData:
        """Check training data and set `classes_`, `columns_` and scikit-learn's input attributes.

        Rows of weight zero are dropped unless the learner wants to see them.
        """
        self._validate_params()
        X = self._check_rows(X, reset=True)
        y = self._check_labels(y)
        check_consistent_length(X, y)
        weight = check_weights(self._with_class_weight(y, sample_weight), X)
        data = TrainingData(X, y, weight, query_codes(qid, len(y)))
        if weight is not None:
            present = weight > 0
            if len(np.unique(y[present])) < 2:
                raise ValueError(
                    "only one class is left after leaving out the rows of weight zero; "
                    "both positives and negatives are needed"
                )
            if not keep_zero_weights and not present.all():
                data = data.rows(present)
        return data

    def _with_class_weight(self, y: np.ndarray, sample_weight: Any) -> Any:
        """Return the weights of the rows times those of their classes, where there is a `class_weight`."""
        setting = getattr(self, "class_weight", None)
        if setting is None:
            return sample_weight
        weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        codes = (y > 0).astype(np.intp)
        totals = np.bincount(codes, weight, minlength=2)
        if totals.min() == 0:
            return weight  # one class is left, which the next check refuses
        if setting == "balanced":
            return weight * (totals.sum() / (2 * totals))[codes]
        of_class = compute_class_weight(setting, classes=self.classes_, y=self.classes_[codes])
        return weight * of_class[codes]

    def _check_rows(self, X: Any, *, reset: bool = False) -> Any:
        """Check a table or array and return it as a float matrix."""
        matrix = self._float_matrix(X, reset)
        taker = None if self._accepts_missing else type(self).__name__
        check_cells(matrix, self.columns_.names, taker)
        return matrix

    def _float_matrix(self, X: Any, reset: bool) -> Any:
        if not is_table(X):
            if not reset and self.columns_.category_names():
                raise ValueError(
                    f"{type(self).__name__} was trained on a table with categorical columns "
                    f"({', '.join(self.columns_.category_names())}); give it a table with the "
                    "same columns, not an array"
                )
            try:
                matrix = validate_data(
                    self,
                    X,
                    reset=reset,
                    accept_sparse="csr" if self._accepts_sparse else False,
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                )
            except ValueError:
                self._refuse_text(X)
                raise
            if sparse.issparse(matrix):
                matrix.sort_indices()
            if reset:
                self.columns_ = Columns.numeric(matrix.shape[1])
            return matrix
        frame = as_frame(X)
        if reset:
            check_names(frame.columns, "the table")
            validate_data(self, frame, reset=True, skip_check_array=True)
            self.columns_ = self._check_columns(self._read_columns(frame))
        return check_array(
            self._table_matrix(frame),
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            estimator=self,
            input_name="X",
        )

    def _read_columns(self, frame: pd.DataFrame) -> Columns:
        """Return what the columns of a training table are."""
        return Columns.of(frame, dates=self._accepts_dates)

    def _refuse_text(self, X: Any) -> None:
        """Refuse an array with text as a table is refused; where tables may hold it, ask for one."""
        if sparse.issparse(X) or np.asarray(X).dtype.kind not in "OU" or np.ndim(X) != 2:
            return
        cells = np.asarray(X, dtype=object)
        frame = pd.DataFrame(cells, columns=list(Columns.numeric(cells.shape[1]).names))
        for name in frame:
            with suppress(TypeError, ValueError):
                frame[name] = frame[name].astype(np.float64)
        found = Columns.of(frame)
        if found.is_category.any():
            self._check_columns(found)
            raise ValueError(
                f"X is an array with text in these columns: {', '.join(found.category_names())}. "
                f"{type(self).__name__} reads categories from a table: give it pandas.DataFrame(X), "
                "with column names of your choice, in training and in scoring"
            )

    def _table_matrix(self, frame: Any) -> np.ndarray:
        """A table with the columns of training as a float matrix, or an error that names the others."""
        try:
            validate_data(self, frame, reset=False, skip_check_array=True)
            return self.columns_.matrix(frame, unseen=self._unseen_category)
        except ValueError as error:
            if not hasattr(self, "feature_names_in_"):  # names that are not text are not compared
                raise
            difference = self.columns_.differences(frame)
            if not difference:
                raise
            known = "" if str(error) in str(difference) else f"\n{error}"
            raise ValueError(f"{type(self).__name__}: {difference}{known}") from None

    def _check_columns(self, columns: Columns) -> Columns:
        """Refuse categories where the method has no use for them, and say what to do."""
        if columns.is_category.any() and not self._accepts_categories:
            raise ValueError(
                f"{type(self).__name__} needs numbers, but these columns hold categories: "
                f"{', '.join(columns.category_names())}. Put scikit-learn's "
                "ColumnTransformer([('categories', OneHotEncoder(handle_unknown='ignore'), ...)], "
                "remainder='passthrough') before it in a Pipeline"
            )
        return columns

    def _check_labels(self, y: Any) -> np.ndarray:
        """Set `classes_` and return the labels as 0/1 floats, or as grades."""
        y = column_or_1d(y, warn=True)
        if y.dtype.kind in "fc" and not np.isfinite(y).all():
            raise ValueError(
                "Input y contains NaN or infinity: some labels are missing; drop those rows first"
            )
        if y.dtype == object and any(label is None or label != label for label in y):
            raise ValueError("Input y contains NaN: some labels are missing; drop those rows first")
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind == "multiclass" and self._accepts_grades():
            return self._check_grades(y)
        if kind != "binary":
            if kind == "continuous":
                raise ValueError(
                    f"Unknown label type: {kind}. {type(self).__name__} ranks two classes; "
                    "turn the target into two labels first"
                )
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds only one class, {self.classes_.tolist()[0]!r}; "
                "both positives and negatives are needed to learn a ranking"
            )
        return codes.astype(np.float64)

    def _check_grades(self, y: np.ndarray) -> np.ndarray:
        """Grades: integers from 0 up; relevant means above 0."""
        grades = np.asarray(y)
        if grades.dtype.kind not in "iufb" or (grades < 0).any() or (grades % 1 != 0).any():
            raise ValueError(
                "more than two labels are taken as grades of relevance and must be "
                "whole numbers from 0 up"
            )
        self.classes_ = np.array([0, 1])
        return grades.astype(np.float64)

    def _known_labels(self, y: Any) -> np.ndarray:
        """Labels of other rows as training has them: 0/1, or grades."""
        y = column_or_1d(y)
        if np.isin(y, self.classes_).all():
            return (y == self.classes_[1]).astype(np.float64)
        if self._accepts_grades():
            return self._check_grades(y)
        unknown = sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist()), key=str)
        raise ValueError(
            f"labels that were not there in training: {unknown}; known are {self.classes_.tolist()}"
        )

    def _check_evaluation(
        self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None
    ) -> TrainingData:
        """Check labelled rows against what training has set (columns, classes)."""
        X, y = self._check_rows(X), self._known_labels(y)
        check_consistent_length(X, y)
        return TrainingData(X, y, check_weights(sample_weight, X), query_codes(qid, len(y)))


def check_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Weights >= 0, one for each row, if there are any, in the unit of `WeightScale`."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    return WeightScale.of(weight).apply(weight)


@dataclass(frozen=True)
class WeightScale:
    """The unit of weights: weights times any constant become the same numbers.

    Penalties and the least weight of a leaf count rows, so weights need a unit in which 1 is a row. Weights
    that are multiples of the smallest one, or of a half, third or quarter of it, are numbers of
    copies: 1, 2 and 3, or .2 and .3, which count as 2 and 3. Others, and those that would be more than 100
    copies on average, only say how rows compare: their mean is 1. Rows of weight 0 are absent.

    Scales of parts of the rows merge into the scale of all of them.

    Examples
    --------
    >>> import numpy as np
    >>> WeightScale.of(np.array([0.2, 0.3, 0.0])).apply(np.array([0.2, 0.3, 0.0])).tolist()
    [2.0, 3.0, 0.0]
    >>> WeightScale.of(np.array([0.35, 1.0])).apply(np.array([0.35, 1.0])).round(2).tolist()
    [0.52, 1.48]
    """

    largest: float
    total: float  # over the largest, so that it stays finite
    n_present: int
    values: np.ndarray | None  # the distinct weights above 0, unless they are many

    @classmethod
    def of(cls, weight: np.ndarray) -> WeightScale:
        """Return the scale of the weights of some rows."""
        present = weight[weight > 0]
        largest = float(present.max(initial=0.0))
        return cls(largest, float((present / largest).sum()), len(present), _few(present))

    @classmethod
    def merge(cls, scales: Sequence[WeightScale]) -> WeightScale:
        """Return the scale of rows that come in parts, in any order."""
        scales = [scale for scale in scales if scale.n_present]
        largest = max((scale.largest for scale in scales), default=0.0)
        total = sum(scale.total * (scale.largest / largest) for scale in scales)
        values = [scale.values for scale in scales if scale.values is not None]
        few = _few(np.concatenate(values)) if values and len(values) == len(scales) else None
        return cls(largest, total, sum(scale.n_present for scale in scales), few)

    def apply(self, weight: np.ndarray) -> np.ndarray:
        """Return weights in this unit, to 32 binary digits: what a constant changes beyond is rounding."""
        if not self.n_present:
            return weight
        mantissa, exponent = np.frexp(weight / self.largest / self._unit())
        return np.ldexp(np.rint(mantissa * 2.0**32), exponent - 32)

    def _unit(self) -> float:
        """Return the unit, as a share of the largest weight."""
        mean = self.total / self.n_present
        if self.values is not None:
            values = self.values / self.largest
            for parts in range(1, MOST_PARTS + 1):
                unit = values[0] / parts
                copies = values / unit
                near = np.abs(copies - np.rint(copies)) <= np.minimum(1e-6 * copies, 0.01)
                if near.all() and mean <= MOST_COPIES * unit:
                    return float(unit)
        return mean


def _few(weights: np.ndarray) -> np.ndarray | None:
    """Return the distinct values in increasing order; None if there are many."""
    values = np.unique(weights)
    return values if len(values) <= MOST_VALUES else None


def _is_calibrated(ranker: Any) -> bool:
    """Say why a ranker has no probabilities, unless it has."""
    if "calibration_" not in vars(ranker):
        raise AttributeError(
            f"{type(ranker).__name__} ranks rows and has no probabilities yet: learn them with "
            "toprank.shortlisting.calibrate(ranker, X, y) from rows that it was not trained on, or fit it in "
            "a CalibratedRanker, which cross-fits"
        )
    return True


class BaseRanker(InputChecks, ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of all rankers.

    Subclasses set the class attributes of `InputChecks`, implement `fit` with `_check_training` first and
    `_set_threshold` last, and `_raw_scores(X)` on a checked matrix.
    """

    @abstractmethod
    def fit(self, X: Any, y: Any) -> BaseRanker:
        """Learn from rows `X` with labels `y`."""

    @abstractmethod
    def _raw_scores(self, X: Any) -> np.ndarray:
        """Scores of checked rows before the threshold is subtracted."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Score rows: the higher, the more likely a positive; above 0 is flagged.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)

        Returns
        -------
        scores : ndarray of shape (n_rows,)
        """
        check_is_fitted(self)
        return self._raw_scores(self._check_rows(X)) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Flag rows: `classes_[1]` where `decision_function` is above 0, `classes_[0]` elsewhere."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp)]

    @available_if(_is_calibrated)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, by the calibration that `toprank.shortlisting.calibrate` learnt.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)

        Returns
        -------
        probability : ndarray of shape (n_rows, 2)
            In the order of `classes_`.
        """
        positive = self.calibration_(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Average precision of the ranking of `X` against labels `y`."""
        from toprank.metrics import average_precision

        scores = self.decision_function(X)
        return average_precision(self._known_labels(y) > 0, scores, sample_weight=sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = self._accepts_missing
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.categorical = self._accepts_categories
        return tags

    # -- the last step of every fit --------------------------------------------------------------

    def _forget_calibration(self) -> None:
        """Drop the probabilities of an earlier fit."""
        self.__dict__.pop("calibration_", None)

    def _set_threshold(self, raw_scores: np.ndarray, data: TrainingData) -> None:
        """Set `offset_` so that as many training rows score above 0 as there are positives."""
        self._forget_calibration()
        self.offset_ = threshold_for_positives(data.y > 0, raw_scores, data.sample_weight)


def threshold_for_positives(
    positive: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """Return the cut that flags as much weight as the positives have, as nearly as ties allow.

    It lies half-way between two neighbouring scores. If all scores are equal, nothing is flagged.

    Examples
    --------
    >>> import numpy as np
    >>> threshold_for_positives(np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 1.0]))
    2.5
    """
    total = float(np.sum(np.asarray(positive) > 0))
    if sample_weight is not None:
        total = float(np.asarray(sample_weight) @ (np.asarray(positive) > 0))
    return threshold_for_weight(total, scores, sample_weight)


def threshold_for_weight(
    total: float, scores: np.ndarray, sample_weight: np.ndarray | None = None
) -> float:
    """Return the cut that flags rows of so much weight, as nearly as ties allow."""
    if sample_weight is not None and (sample_weight == 0).any():
        present = sample_weight > 0  # absent rows have no say in where the cut lies
        scores, sample_weight = np.asarray(scores)[present], sample_weight[present]
    ranked = RankedList.of(np.ones(len(scores), dtype=bool), scores, sample_weight)
    if ranked.n_groups == 1:
        return float(ranked.scores[0])
    miss = np.abs(ranked.positives[:-1] - total)
    # scores that only rounding tells apart are ties too: a cut between them would be chance
    apart = -np.diff(ranked.scores) > 1e-12 * max(abs(ranked.scores[0]), abs(ranked.scores[-1]))
    if apart.any():
        miss = np.where(apart, miss, np.inf)
    cut = int(np.argmin(miss))
    above, below = float(ranked.scores[cut]), float(ranked.scores[cut + 1])
    middle = below + (above - below) / 2
    return middle if middle < above else below
