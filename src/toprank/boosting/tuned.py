"""TunedLogisticBooster: the yardstick, XGBoost with the logistic loss tuned by inner validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.boosting._xgboost import predict_margin, quantile_matrix, require_xgboost
from toprank.boosting.ranker import GradientBoostingRanker
from toprank.metrics import average_precision
from toprank.progress import progress

__all__ = ["TunedLogisticBooster"]

FEW_ROWS = 5000  # below, choose by folds; from here on one quarter is held out
HELD_OUT = 0.25
MOST_FOLDS = 5

InnerSplit = tuple[np.ndarray, np.ndarray]


class TunedLogisticBooster(BaseRanker):
    """XGBoost with the logistic loss, its depth, rate and rounds chosen for average precision.

    What a careful user of XGBoost would do without a ranking objective: the yardstick that any other
    model has to beat. Every pair of depth and learning rate is boosted on part of the training rows
    and judged by the average precision of the rest after each round; the best setting is boosted
    once more on all rows.

    Below 5,000 rows the rest is each of five folds in turn, above it is one quarter of the rows. With
    `groups` the folds are made of whole groups; with `time` the rest is the latest quarter of the
    rows, at least `gap` later than what is trained on.

    Parameters
    ----------
    depths : sequence of int, default=(4, 6, 8)
        Depths to try.
    learning_rates : sequence of float, default=(0.1, 0.3)
        Rates to try.
    n_estimators : int, default=600
        Most rounds.
    early_stopping_rounds : int, default=50
        A setting is given up when the validation has not improved for so many rounds.
    n_jobs : int, optional
        Threads; all cores by default.
    random_state : int, RandomState or None
        Fixes the inner split.
    verbose : int, default=0
        Above 0, show a progress bar.

    Attributes
    ----------
    best_params_ : dict
        `max_depth`, `learning_rate` and `n_estimators` (rounds).
    best_score_ : float
        Average precision of the best setting on the inner validation; NaN where a class is too small
        to be split, and the first setting was taken untried.
    boosters_ : list of xgboost.Booster
        The one that was boosted on all rows.
    classes_ : ndarray of shape (2,)
    offset_ : float
        The threshold that was subtracted from the scores.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import TunedLogisticBooster
    >>> X, y = make_classification(600, weights=[0.9], random_state=0)
    >>> model = TunedLogisticBooster(depths=(2, 4), n_estimators=30, random_state=0)
    >>> sorted(model.fit(X, y).best_params_)
    ['learning_rate', 'max_depth', 'n_estimators']
    """

    _accepts_missing = True
    _accepts_categories = True
    _accepts_sparse = True

    def __init__(
        self,
        *,
        depths: Sequence[int] = (4, 6, 8),
        learning_rates: Sequence[float] = (0.1, 0.3),
        n_estimators: int = 600,
        early_stopping_rounds: int = 50,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.depths = depths
        self.learning_rates = learning_rates
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        time: Any = None,
        gap: Any = None,
    ) -> TunedLogisticBooster:
        """Choose a setting by inner validation and boost it on all rows.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
            Missing values are NaN or None; text and category columns are categories.
        y : array of shape (n_rows,)
            Two labels, the greater one positive.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.
        groups : array of shape (n_rows,), optional
            Rows of one group are never on both sides of the inner split.
        time : array of shape (n_rows,), optional
            Numbers or dates: choose by the latest rows. Goes before `groups`.
        gap : number or timedelta, optional
            What `time` can have subtracted: least distance between training and validation rows.

        Returns
        -------
        self : TunedLogisticBooster
        """
        self._check_settings()
        data = self._check_training(X, y, sample_weight)
        weights = np.asarray(1.0 if sample_weight is None else sample_weight)
        kept = weights > 0 if weights.ndim else None  # one number weighs all rows
        n_rows = len(data.y) if kept is None else len(kept)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        inner = inner_splits(
            data.y,
            _rows(groups, kept, n_rows, "groups"),
            _rows(time, kept, n_rows, "time"),
            gap,
            seed,
        )
        self.trained_on_sparse_ = bool(sparse.issparse(data.X))
        self.best_params_, self.best_score_ = self._choose(data, inner, seed)
        self.boosters_ = [self._boost(data, self.best_params_, seed)]
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    @property
    def best_estimator_(self) -> GradientBoostingRanker:
        """The booster as a `GradientBoostingRanker` with the logistic objective."""
        check_is_fitted(self)
        ranker = GradientBoostingRanker(
            "logistic",
            **self.best_params_,
            max_leaves=0,
            reg_lambda=1.0,
            growth="depth",
            max_leaf_step=0.0,
            colsample_bynode=1.0,
            max_bins=256,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        learnt = ("classes_", "columns_", "n_features_in_", "feature_names_in_", "offset_",
                  "boosters_", "trained_on_sparse_")  # fmt: skip
        for name in learnt:
            if name in vars(self):
                setattr(ranker, name, vars(self)[name])
        ranker.n_estimators_ = self.best_params_["n_estimators"]
        ranker.validation_scores_ = []
        return ranker

    def explain(self, X: Any) -> pd.DataFrame:
        """Split each row's score into what each column adds; see `GradientBoostingRanker.explain`."""
        return self.best_estimator_.explain(X)

    def explain_pair(self, a: Any, b: Any) -> pd.DataFrame:
        """Say why row `a` is above row `b`; see `GradientBoostingRanker.explain_pair`."""
        return self.best_estimator_.explain_pair(a, b)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of the total gain of the splits on each column."""
        return self.best_estimator_.feature_importances_

    def _raw_scores(self, X: Any) -> np.ndarray:
        if self.trained_on_sparse_ != sparse.issparse(X):
            X = sparse.csr_matrix(X) if self.trained_on_sparse_ else X.toarray()
        return predict_margin(self.boosters_[0], X)

    # -- parts of fit ----------------------------------------------------------------------------

    def _check_settings(self) -> None:
        require_xgboost()
        for name in ("depths", "learning_rates"):
            values = getattr(self, name)
            if len(values) == 0 or not min(values) > 0:
                raise ValueError(f"{name} must list numbers above 0, got {values!r}")
        for name in ("n_estimators", "early_stopping_rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}")

    def _choose(
        self, data: TrainingData, inner: list[InnerSplit], seed: int
    ) -> tuple[dict[str, Any], float]:
        """The setting with the best validation, and its value."""
        settings = [(int(d), float(r)) for d in self.depths for r in self.learning_rates]
        best, best_value = _named(*settings[0], min(self.n_estimators, 100)), float("nan")
        if not inner:
            return best, best_value
        parts = [self._matrices(data, *split) for split in inner]
        with progress(len(settings), "tuning the yardstick", self.verbose > 0) as advance:
            for depth, rate in settings:
                curve = self._curve(parts, depth, rate, seed)
                top = int(np.argmax(curve))
                if not curve[top] <= best_value:  # the first is compared with NaN
                    best, best_value = _named(depth, rate, top + 1), float(curve[top])
                advance(depth=depth, rate=rate)
        return best, best_value

    def _matrices(self, data: TrainingData, fit: np.ndarray, rest: np.ndarray) -> tuple[Any, Any]:
        """Training part and validation part as XGBoost wants them, made once for all settings."""
        training = self._matrix(data.rows(fit))
        return training, self._matrix(data.rows(rest), reference=training)

    def _matrix(self, data: TrainingData, reference: Any = None) -> Any:
        matrix = quantile_matrix(
            data.X,
            self.columns_,
            max_bin=256,
            sample_weight=data.sample_weight,
            n_jobs=self.n_jobs,
            reference=reference,
        )
        matrix.set_label(data.y)
        return matrix

    def _curve(
        self, parts: list[tuple[Any, Any]], depth: int, rate: float, seed: int
    ) -> np.ndarray:
        """Mean over the inner splits of the average precision after each round.

        A fold that stops early keeps its last value from there on, so that no round after its end
        looks better than it would have been.
        """
        curves = []
        for training, rest in parts:
            found: dict[str, Any] = {}
            require_xgboost().train(
                self._parameters(depth, rate, seed),
                training,
                self.n_estimators,
                evals=[(rest, "rest")],
                evals_result=found,
                custom_metric=_validation_precision,
                early_stopping_rounds=self.early_stopping_rounds,
                maximize=True,
                verbose_eval=False,
            )
            curves.append(found["rest"]["average_precision"])
        longest = max(map(len, curves))
        padded = [c + c[-1:] * (longest - len(c)) for c in curves]
        return np.mean(padded, axis=0)

    def _boost(self, data: TrainingData, chosen: dict[str, Any], seed: int) -> Any:
        parameters = self._parameters(chosen["max_depth"], chosen["learning_rate"], seed)
        return require_xgboost().train(parameters, self._matrix(data), chosen["n_estimators"])

    def _parameters(self, depth: int, rate: float, seed: int) -> dict[str, Any]:
        return {
            "objective": "binary:logistic",
            "disable_default_eval_metric": True,
            "tree_method": "hist",
            "max_depth": depth,
            "eta": rate,
            "max_bin": 256,
            "seed": seed,
            "nthread": self.n_jobs or 0,
        }


def inner_splits(y: np.ndarray, groups: Any, time: Any, gap: Any, seed: int) -> list[InnerSplit]:
    """Rows to boost on and rows to judge by; empty where a class is too small to be split."""
    if time is not None:
        return _latest_quarter(y, np.asarray(time), gap)
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    folds = MOST_FOLDS if len(y) < FEW_ROWS else round(1 / HELD_OUT)
    codes = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    for label in (0, 1):
        members = y == label
        count = members.sum() if codes is None else len(np.unique(codes[members]))
        folds = min(folds, int(count))
    if folds < 2:
        return []
    kind = StratifiedKFold if codes is None else StratifiedGroupKFold
    found = list(kind(folds, shuffle=True, random_state=seed).split(np.zeros(len(y)), y, codes))
    found = [s for s in found if _both(y[s[0]]) and _both(y[s[1]])]
    return found if len(y) < FEW_ROWS else found[:1]


def _latest_quarter(y: np.ndarray, time: np.ndarray, gap: Any) -> list[InnerSplit]:
    """Split where a quarter of the rows, with rows of equal time together, lies behind."""
    start = np.sort(time)[int(np.floor((1 - HELD_OUT) * len(time)))]
    known = time < start
    if gap is not None:
        known[known] = (start - time[known]) >= gap
    fit, rest = np.flatnonzero(known), np.flatnonzero(time >= start)
    return [(fit, rest)] if _both(y[fit]) and _both(y[rest]) else []


def _both(y: np.ndarray) -> bool:
    return bool(len(y)) and bool(y.any()) and not bool(y.all())


def _named(depth: int, rate: float, rounds: int) -> dict[str, Any]:
    return {"max_depth": depth, "learning_rate": rate, "n_estimators": rounds}


def _rows(values: Any, kept: np.ndarray | None, n_rows: int, name: str) -> np.ndarray | None:
    """An entry for each row that has weight."""
    if values is None:
        return None
    values = np.asarray(values)
    if values.shape != (n_rows,):
        raise ValueError(f"{name} has {len(values)} entries for {n_rows} rows")
    return values if kept is None else values[kept]


def _validation_precision(scores: np.ndarray, matrix: Any) -> tuple[str, float]:
    """Average precision as XGBoost wants its metrics."""
    weight = matrix.get_weight()
    value = average_precision(
        matrix.get_label() > 0, scores, sample_weight=weight if len(weight) else None
    )
    return "average_precision", value
