"""TunedLogisticBooster: the yardstick, XGBoost with the logistic loss tuned by inner validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from toprank.base import TrainingData
from toprank.boosting.base import BoostedTreesRanker
from toprank.boosting.xgboost_helpers import quantile_matrix, require_xgboost
from toprank.docstrings import fill_docstring
from toprank.folds import make_splits
from toprank.metrics import average_precision
from toprank.parallel import thread_count
from toprank.progress import progress
from toprank.validation import PARAMETER_CONSTRAINTS, check_gap, check_groups, check_time

__all__ = ["TunedLogisticBooster"]

FEW_ROWS = 5000  # below, choose by folds; from here on one quarter is held out
HELD_OUT = 0.25
MOST_FOLDS = 5

InnerSplit = tuple[np.ndarray, np.ndarray]


@fill_docstring
class TunedLogisticBooster(BoostedTreesRanker):
    """XGBoost with the logistic loss, its depth, rate and rounds chosen for average precision.

    What a careful user of XGBoost would do without a ranking objective: the yardstick that any other
    model has to beat. Every pair of depth and learning rate is boosted on part of the training rows
    and judged by the average precision of the validation rows after each round; the best setting is
    boosted once more on all rows.

    Below 5,000 rows the validation rows are each of five folds in turn, above they are one quarter of the
    rows. With `groups` the folds are made of whole groups; with `time` the validation rows are the latest
    quarter, at least `gap` later than what is trained on.

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
    %(n_jobs)s
    random_state : int, RandomState or None
        Fixes the inner split.
    %(verbose)s

    Attributes
    ----------
    best_params_ : dict
        `max_depth`, `learning_rate` and `n_estimators` (rounds).
    best_score_ : float
        Average precision of the best setting on the inner validation; NaN where a class is too small
        to be split, and the first setting was taken untried.
    boosters_ : list of xgboost.Booster
        The one that was boosted on all rows.
    %(classes)s

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import TunedLogisticBooster
    >>> X, y = make_classification(600, weights=[0.9], random_state=0)
    >>> model = TunedLogisticBooster(depths=(2, 4), n_estimators=30, random_state=0)
    >>> sorted(model.fit(X, y).best_params_)
    ['learning_rate', 'max_depth', 'n_estimators']
    """

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "early_stopping_rounds": PARAMETER_CONSTRAINTS["n_estimators"],
    }

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
            Least distance in time between training and validation rows; a number counts days between
            dates.

        Returns
        -------
        self : TunedLogisticBooster
        """
        require_xgboost()
        for name in ("depths", "learning_rates"):
            values = getattr(self, name)
            if len(values) == 0 or not min(values) > 0:
                raise ValueError(f"{name} must list numbers above 0, got {values!r}")
        data = self._check_training(X, y, sample_weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        weights = np.asarray(1.0 if sample_weight is None else sample_weight)
        kept = weights > 0 if weights.ndim else slice(None)  # or one number for all rows
        n_rows = len(weights) if weights.ndim else len(data.y)
        groups = None if groups is None else check_groups(groups, n_rows)[kept]
        time = None if time is None else check_time(time, n_rows)[kept]
        inner = inner_splits(data.y, groups, time, gap, seed)
        self.trained_on_sparse_ = bool(sparse.issparse(data.X))
        self.best_params_, self.best_score_ = self._choose(data, inner, seed)
        chosen = self._parameters(
            self.best_params_["max_depth"], self.best_params_["learning_rate"], seed
        )
        rounds = self.best_params_["n_estimators"]
        self.boosters_ = [require_xgboost().train(chosen, self._matrix(data), rounds)]
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    # -- parts of fit ----------------------------------------------------------------------------

    def _choose(
        self, data: TrainingData, inner: list[InnerSplit], seed: int
    ) -> tuple[dict[str, Any], float]:
        """Return the setting with the best validation, and its value."""
        settings = [(int(d), float(r)) for d in self.depths for r in self.learning_rates]
        best, best_value = (*settings[0], min(self.n_estimators, 100)), float("nan")
        parts = []  # binned once for all settings
        for train, validation in inner:
            matrix = self._matrix(data.rows(train))
            parts.append((matrix, self._matrix(data.rows(validation), reference=matrix)))
        with progress(len(settings), "tuning the yardstick", self.verbose > 0) as advance:
            for depth, rate in settings if parts else ():
                curve = self._curve(parts, depth, rate, seed)
                top = int(np.argmax(curve))
                if not curve[top] <= best_value:  # the first is compared with NaN
                    best, best_value = (depth, rate, top + 1), float(curve[top])
                advance(depth=depth, rate=rate)
        names = ("max_depth", "learning_rate", "n_estimators")
        return dict(zip(names, best, strict=True)), best_value

    def _matrix(self, data: TrainingData, reference: Any = None) -> Any:
        matrix = quantile_matrix(
            data.X, self.columns_, max_bin=256, sample_weight=data.sample_weight,
            n_jobs=self.n_jobs, reference=reference,
        )  # fmt: skip
        matrix.set_label(data.y)
        return matrix

    def _curve(
        self, parts: list[tuple[Any, Any]], depth: int, rate: float, seed: int
    ) -> np.ndarray:
        """Return the mean over the inner splits of the average precision after each round.

        A fold that stops early keeps its last value from there on, so that no round after its end
        looks better than it would have been.
        """
        curves = []
        for training, validation in parts:
            found: dict[str, Any] = {}
            require_xgboost().train(
                self._parameters(depth, rate, seed),
                training,
                self.n_estimators,
                evals=[(validation, "validation")],
                evals_result=found,
                custom_metric=_validation_precision,
                early_stopping_rounds=self.early_stopping_rounds,
                maximize=True,
                verbose_eval=False,
            )
            curves.append(found["validation"]["average_precision"])
        longest = max(map(len, curves))
        padded = [c + c[-1:] * (longest - len(c)) for c in curves]
        return np.mean(padded, axis=0)

    def _parameters(self, depth: int, rate: float, seed: int) -> dict[str, Any]:
        return {
            "objective": "binary:logistic",
            "disable_default_eval_metric": True,
            "tree_method": "hist",
            "max_depth": depth,
            "eta": rate,
            "max_bin": 256,
            "seed": seed,
            "nthread": thread_count(self.n_jobs),
        }


def inner_splits(y: np.ndarray, groups: Any, time: Any, gap: Any, seed: int) -> list[InnerSplit]:
    """Return rows to boost on and rows to judge by; empty where a class is too small to be split."""
    if time is not None:
        return _latest_quarter(y, check_time(time), gap)
    few = len(y) < FEW_ROWS
    n_splits = MOST_FOLDS if few else round(1 / HELD_OUT)
    try:
        splits = make_splits(y, groups=groups, n_splits=n_splits, random_state=seed)
    except ValueError:  # fewer than two rows, or groups, of a class
        return []
    found = [(split.train, split.test) for split in splits]
    return found if few else found[:1]


def _latest_quarter(y: np.ndarray, time: np.ndarray, gap: Any) -> list[InnerSplit]:
    """Split where a quarter of the rows, with rows of equal time together, lies behind."""
    start = np.sort(time)[int(np.floor((1 - HELD_OUT) * len(time)))]
    known = time < start
    known[known] = (start - time[known]) >= check_gap(gap, time)
    split = np.flatnonzero(known), np.flatnonzero(time >= start)
    return [split] if all(len(np.unique(y[rows])) == 2 for rows in split) else []


def _validation_precision(scores: np.ndarray, matrix: Any) -> tuple[str, float]:
    """Return average precision as XGBoost wants its metrics."""
    weight = matrix.get_weight()
    value = average_precision(
        matrix.get_label() > 0, scores, sample_weight=weight if len(weight) else None
    )
    return "average_precision", value
