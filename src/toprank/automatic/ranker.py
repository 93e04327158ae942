"""AutoRanker: many methods within a time limit, the best combined, and how good the result is."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.automatic.ensemble import (
    LogOdds,
    assess,
    cross_fitted_ensemble,
    select_weights,
    to_log_odds,
)
from toprank.automatic.features import (
    TableFeatures,
    read_columns,
    suspicious_columns,
)
from toprank.automatic.interpretation import (
    Distillation,
    distill,
    make_student,
    shapley_table,
)
from toprank.automatic.portfolio import FittedModel
from toprank.automatic.search import Search, Trial
from toprank.base import BaseRanker, TrainingData
from toprank.columns import Columns, as_frame, is_table
from toprank.docstrings import fill_docstring
from toprank.folds import SplitKeys
from toprank.formatting import join_names
from toprank.parallel import thread_count
from toprank.stopping import ValidationMetric
from toprank.validation import PARAMETER_CONSTRAINTS, Interval

__all__ = ["AutoRanker", "Member"]

MOST_REPEATS = 3
MANY_ROWS, VERY_MANY_ROWS = 50_000, 300_000  # from which on there are fewer folds


@dataclass(frozen=True)
class Member:
    """A configuration in the ensemble: its models, the line to log-odds, and its weight.

    Attributes
    ----------
    name : str
        Of the configuration.
    weight : float
    scale : LogOdds
    models : tuple of FittedModel
        Their mean is the score of the member.
    """

    name: str
    weight: float
    scale: LogOdds
    models: tuple[FittedModel, ...]

    def scores(self, X: np.ndarray, columns: Columns) -> np.ndarray:
        """Return log-odds of rows of numbers and codes."""
        mean = np.mean([model.scores(X, columns) for model in self.models], axis=0)
        return self.scale(mean)


@fill_docstring
class AutoRanker(BaseRanker):
    """Try many methods within a time limit, combine the best, and say how good the result is.

    Configurations of boosted trees, forests, linear and kernel methods (and LightGBM and CatBoost
    where they are installed) are fitted over folds, the cheap ones first. Out-of-fold scores, brought to
    log-odds, decide how much each counts: a start, by how far its metric lies behind the best and, with many
    positives, by greedy selection on the metric, is moved to where the labels are likelier. A row is scored by
    the models of all folds.

    Parameters
    ----------
    metric : str or callable, default="average_precision"
        Name or function of `toprank.metrics`, or f(y, scores), of which more is better.
    time_limit : float or None, default=60
        Seconds for `fit`. None tries everything; the model then depends on the data and the seed alone, while
        a limit that is reached makes it depend on the speed of the machine.
    portfolio : sequence of str, optional
        Names of configurations to try, in this order; by default all of `toprank.automatic.PORTFOLIO` but
        "rankboost", "ranking forest" and "prankboost", which did not help the others on development sets.
    n_folds : int, optional
        Folds, or blocks of time. By default 5; 3 above 50,000 rows and 2 above 300,000.
    n_repeats : int, optional
        Most repeats of the folds, each with other folds, the later ones for what has done well so far. By
        default 3 up to 5,000 rows and 1 above, as far as the time allows.
    %(n_jobs)s
    random_state : int, RandomState or None
        Fixes the folds and all draws.
    %(verbose)s

    Attributes
    ----------
    estimated_ : dict
        For each metric `value`, `low` and `high`: what to expect on a new list of as many rows as there
        were in training, with a 95%% interval that allows for the choice of members. `estimate` does it for
        other lengths.
    leaderboard_ : DataFrame
        Every configuration: the metric of its out-of-fold scores, its weight, seconds, models, status.
    members_ : tuple of Member
        Those with a weight.
    out_of_fold_scores_ : ndarray of shape (n_rows,)
        Scores of the training rows by models and weights that had not seen them; NaN for rows of weight 0 and
        rows before the first block of time. Not kept in files.
    notes_ : list of str
        Columns that alone rank almost perfectly, what was left out of the table, how the folds differ from the
        request.
    %(classes)s

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import AutoRanker
    >>> X, y = make_classification(400, weights=[0.9], random_state=0)
    >>> model = AutoRanker(time_limit=None, portfolio=["linear", "extra trees"], n_repeats=1, random_state=0)
    >>> model = model.fit(X[:300], y[:300])
    >>> model.leaderboard_["member"].tolist()
    ['extra trees', 'linear']
    >>> found = model.estimated_["average_precision"]
    >>> found["low"] < model.score(X[300:], y[300:]) < found["high"]
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "metric": [str, callable],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "portfolio": ["array-like", None],
        "n_folds": [Interval(Integral, 2, None, closed="left"), None],
        "n_repeats": [Interval(Integral, 1, None, closed="left"), None],
    }
    _accepts_missing = True
    _accepts_categories = True
    features_: TableFeatures

    def __init__(
        self,
        metric: str | Callable[..., float] = "average_precision",
        *,
        time_limit: float | None = 60,
        portfolio: Sequence[str] | None = None,
        n_folds: int | None = None,
        n_repeats: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.metric = metric
        self.time_limit = time_limit
        self.portfolio = portfolio
        self.n_folds = n_folds
        self.n_repeats = n_repeats
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
    ) -> AutoRanker:
        """Search, choose, measure.

        An interruption from the keyboard leaves the best model so far, with a warning.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
            Numbers, categories, dates, text; missing values are NaN or None.
        y : array of shape (n_rows,)
            Two labels, the greater one positive.
        sample_weight : array of shape (n_rows,), optional
            Given to the methods that take weights, and to the metric.
        qid : array of shape (n_rows,), optional
            Query of each row: never split between folds, and given to the methods that know queries.
        groups : array of shape (n_rows,), optional
            A group (a customer, say) is never both in training and in test.
        time : array of shape (n_rows,), optional
            When each row happened: then every block of time is scored by models of the past alone, and the
            members are fitted again on all rows at the end.
        gap : timedelta or number, optional
            Least distance between a training row and the first test row, for labels that arrive late.

        Returns
        -------
        self : AutoRanker
        """
        start = clock.perf_counter()
        present = _present(sample_weight)
        data = self._check_training(X, y, sample_weight, qid)
        metric = ValidationMetric.of(self.metric)
        thread_count(self.n_jobs)  # an impossible number is refused before the search
        leaks = suspicious_columns(data.X, self.features_.columns, data.y)
        numbering = [text for text in leaks if "numbers the rows" in text]
        for text in numbering:
            warnings.warn(text, UserWarning, stacklevel=2)
        keys = SplitKeys.of(len(data.y) if present is None else len(present), groups, time, gap)
        keys = keys if present is None else keys.rows(present)
        search = self._search(data, metric, keys, start)
        done = search.run()
        self._choose(search, done, metric.greater_is_better, present)
        self.estimated_ = self.estimate(len(self._out_of_fold.y))
        known = [text for text in leaks if text not in numbering]  # it may be honest
        self.notes_ = [*known, *self.features_.notes, *search.notes]
        if search.interrupted:
            warnings.warn(
                f"interrupted: the model is made of the {len(done)} configurations done so far",
                UserWarning,
                stacklevel=2,
            )
        self.fit_seconds_ = clock.perf_counter() - start
        return self

    # -- the steps of a fit ----------------------------------------------------------------------

    def _search(
        self, data: TrainingData, metric: ValidationMetric, keys: SplitKeys, start: float
    ) -> Search:
        """Return the search that `fit` runs."""
        n_rows = len(data.y)
        few_folds = 5 if n_rows <= MANY_ROWS else 3 if n_rows <= VERY_MANY_ROWS else 2
        if keys.groups is None:
            keys = replace(keys, groups=data.qid)
        repeats = 1 if keys.time is not None or n_rows > 5_000 else MOST_REPEATS
        search = Search(
            data,
            self.features_.columns,
            _value_of(metric),
            names=self.portfolio,
            seconds=_for_search(self.time_limit, n_rows),
            n_folds=self.n_folds or few_folds,
            n_repeats=self.n_repeats or repeats,
            seed=int(check_random_state(self.random_state).randint(2**30)),
            n_jobs=self.n_jobs,
            keys=keys,
            verbose=self.verbose,
        )
        search.start = start
        return search

    def _choose(
        self, search: Search, done: list[Trial], greater_is_better: bool, present: np.ndarray | None
    ) -> None:
        """Choose weights on the out-of-fold scores; keep the members that have one, and the held-out rows."""
        metric = search.metric
        scores = np.column_stack([trial.out_of_fold for trial in done])
        known = np.flatnonzero(~np.isnan(scores).any(axis=1))
        held_out = replace(search.data, X=scores).rows(known)
        scales, columns = to_log_odds(held_out, held_out.X)
        prior = np.array([trial.configuration.prior for trial in done])
        weights = select_weights(replace(held_out, X=columns), metric, search.seed, prior)
        self.members_ = tuple(
            Member(trial.name, float(weight), scale, tuple(trial.models))
            for trial, weight, scale in zip(done, weights, scales, strict=True)
            if weight > 0
        )
        by_name = {member.name: member.weight for member in self.members_}
        self.trials_ = _rows_of(search.trials, by_name, 1.0 if greater_is_better else -1.0)
        out = cross_fitted_ensemble(held_out, search.parts()[known], metric, search.seed, prior)
        self._out_of_fold = replace(held_out, X=out)
        groups = search.keys.rows(known).groups
        several = groups is not None and np.ptp(groups) > 0  # of one alone rows are drawn
        self._out_of_fold_groups = groups if several else None
        self._set_threshold(out, held_out)  # rows to come score like these, not like training rows
        places = known if present is None else np.flatnonzero(present)[known]
        self.out_of_fold_scores_ = np.full(len(scores if present is None else present), np.nan)
        self.out_of_fold_scores_[places] = out - self.offset_

    # -- tables ----------------------------------------------------------------------------------

    def _read_columns(self, frame: pd.DataFrame) -> Columns:
        return read_columns(frame)

    def _float_matrix(self, X: Any, reset: bool) -> np.ndarray:
        frame = as_frame(X) if is_table(X) else None
        matrix = super()._float_matrix(X if frame is None else frame, reset)
        if reset:
            self.features_ = TableFeatures.of(matrix, self.columns_, frame)
            self.usual_ = self.features_.usual_values(self.features_.expand(matrix, frame))
        return self.features_.expand(matrix, frame)

    def _raw_scores(self, X: Any) -> np.ndarray:
        columns = self.features_.columns
        total = np.zeros(len(X))
        for member in self.members_:
            total += member.weight * member.scores(X, columns)
        return total

    # -- what a user asks afterwards -------------------------------------------------------------

    @property
    def leaderboard_(self) -> pd.DataFrame:
        """Every configuration, the best first."""
        check_is_fitted(self)
        return pd.DataFrame(self.trials_)

    def estimate(self, n_rows: int, level: float = 0.95) -> dict[str, dict[str, Any]]:
        """Say what to expect on a new list of `n_rows` rows.

        The shorter the list, the wider the intervals. Needs the model that was fitted, not one from a file.

        Returns
        -------
        estimated : dict
            As `estimated_`.
        """
        check_is_fitted(self)
        if not hasattr(self, "_out_of_fold"):
            raise ValueError(
                "a model from a file has no out-of-fold scores; estimated_ is what it knows about itself"
            )
        held_out = self._out_of_fold
        return assess(
            held_out.y, held_out.X, held_out.sample_weight, held_out.qid,
            groups=self._out_of_fold_groups, n_rows=n_rows, level=level, n_jobs=self.n_jobs,
        )  # fmt: skip

    def explain(self, X: Any) -> pd.DataFrame:
        """Split each row's score into what each column adds, compared with the usual row.

        Shapley values by sampling: columns take their values one after the other, from the usual ones of
        training to those of the row, in a random order and in its reverse (Mitchell et al. 2022).

        Returns
        -------
        table : DataFrame of shape (n_rows, n_columns + 1)
            One column for each column of the table and a last one, ``(base)``; a row sums to its score. Beyond
            100 columns only those that matter most are told apart.
        """
        check_is_fitted(self)
        return shapley_table(
            lambda rows: self._raw_scores(rows) - self.offset_,
            self._check_rows(X),
            self.usual_,
            self.features_.source,
            self.columns_.names,
        )

    def distill(
        self, X: Any, y: Any, kind: str | Any = "booster", *, random_state: int = 0
    ) -> Distillation:
        """Teach one small model what this one knows.

        Parameters
        ----------
        X, y : rows and labels, best those of `fit`
            Where they are those of `fit`, the small model learns from scores of models that had not seen
            the row.
        kind : {"booster", "tree", "rules"} or ranker, default="booster"
            A hundred small boosted trees, one ranking tree of depth 4, ten boosted rules; or a ranker of
            your own that takes weights. None of them reads text, and of these only the boosted trees dates.
        random_state : int, default=0

        Returns
        -------
        distillation : Distillation
            With `model`, and the metric that it gives up.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> X, y = make_classification(300, weights=[0.8], random_state=0)
        >>> model = AutoRanker(time_limit=None, portfolio=["linear"], random_state=0).fit(X, y)
        >>> small = model.distill(X, y, kind="tree")
        >>> type(small.model).__name__, small.given_up < 0.5
        ('TreeRank', True)
        """
        check_is_fitted(self)
        student = make_student(kind, random_state, self.n_jobs)
        odd = {"text": [text.column for text in self.features_.texts]}
        if not getattr(student, "_accepts_dates", False):
            odd["dates"] = list(self.features_.dates)
        for what, places in odd.items():
            if places:
                raise ValueError(
                    f"{type(student).__name__} takes no {what}, but that is what "
                    f"{join_names([self.columns_.names[j] for j in places])} held; fit without such "
                    "columns, or with numbers made of them, and distill that"
                )
        positive = self._known_labels(y) > 0
        scores = self.decision_function(X)
        own = getattr(self, "out_of_fold_scores_", None)
        if own is not None and len(own) == len(scores):
            scores = np.where(np.isnan(own), scores, own)
        return distill(
            X, positive, scores + self.offset_, self.classes_, student, ValidationMetric.of(self.metric),
            seed=random_state, n_jobs=self.n_jobs,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to the training rows."""
        state = dict(super().__getstate__())
        for name in ("out_of_fold_scores_", "_out_of_fold", "_out_of_fold_groups"):
            state.pop(name, None)
        return state


def _for_search(time_limit: float | None, n_rows: int) -> float | None:
    """Return the seconds of a time limit that the search may take; the rest is for weights and intervals."""
    if time_limit is None:
        return None
    rest = 1.0 + 4.0 * min(n_rows / 10_000, 1.0) + 4e-6 * n_rows
    return time_limit - min(rest, 0.25 * time_limit)


def _value_of(metric: ValidationMetric) -> Callable[..., float]:
    """Return ``f(y, scores, weight, qid)`` of a metric, of which more is better."""
    sign = 1.0 if metric.greater_is_better else -1.0

    def value(y: np.ndarray, scores: np.ndarray, weight: Any, qid: Any) -> float:
        return sign * metric(y, scores, weight, qid)

    return value


def _present(sample_weight: Any) -> np.ndarray | None:
    """Return which rows have a weight above 0; None where all have, or none is given."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight)
    if weight.ndim != 1 or weight.dtype.kind not in "iufb":
        return None  # the check of the weights will say so
    present = weight > 0
    return None if present.all() else present


def _rows_of(trials: list[Trial], weights: dict[str, float], sign: float) -> list[dict[str, Any]]:
    """Return the rows of the leaderboard, the best first and those without a value last."""
    ordered = sorted(trials, key=lambda trial: (np.isnan(trial.value), -trial.value))
    return [
        {
            "member": trial.name,
            "value": sign * float(trial.value),
            "weight": float(weights.get(trial.name, 0.0)),
            "seconds": round(trial.seconds, 3),
            "models": len(trial.models),
            "status": trial.status,
        }
        for trial in ordered
    ]
