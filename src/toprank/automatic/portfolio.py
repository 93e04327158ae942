"""The portfolio: configurations of the methods, in the order in which they are tried.

First what takes little time for what it does on many rows, since a limit of time is reached there; then the
default booster, which is best alone, and the slower ones. On small tables there is time for all of them, and
the order does not matter. What each adds on development sets `python -m experiments.auto.choices` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from toprank.automatic.features import TargetEncoding
from toprank.automatic.networks import NeuralNetworks
from toprank.boosting.library import LIBRARIES, LibraryBooster, is_installed
from toprank.columns import Columns
from toprank.encoding import NumericEncoding
from toprank.folds import SplitKeys, fit_takes
from toprank.parallel import thread_count
from toprank.registry import estimator

__all__ = [
    "PORTFOLIO",
    "Configuration",
    "FittedModel",
    "choose_configurations",
    "fit_configuration",
    "make_ranker",
]

_BOOSTER = "GradientBoostingRanker"


@dataclass(frozen=True)
class Configuration:
    """A method with its settings.

    Attributes
    ----------
    method : str
        An estimator of the library, "lightgbm", "catboost", "networks", or a forest of scikit-learn.
    settings : dict
        Parameters that differ from its defaults.
    form : {"native", "own", "target", "scaled"}
        What it is given for categories: the categories themselves (as a table, or for CatBoost's own
        statistics), target encoding, or columns of 0 and 1 with all numbers on one scale and no cell missing.
    cost : float
        Seconds of a fit on a thousand rows of fifty columns, with one thread.
    most_rows : int or None
        It learns from all positives and at most so many rows in all; None for no limit.
    most_columns : int or None
        Wider tables are not for it.
    by_default : bool
        Whether it is tried where no names are given; otherwise only by its name.
    prior : float
        Its weight in the ensemble before any score is known; the sum over the portfolio is below 1.
    """

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    form: str = "native"
    cost: float = 1.0
    most_rows: int | None = None
    most_columns: int | None = None
    by_default: bool = True
    prior: float = 0.0

    @property
    def tunes_itself(self) -> bool:
        """Whether a fit tunes settings by inner validation, which takes longer than the final fit."""
        return self.method == _BOOSTER and "n_estimators" not in self.settings

    def with_tuned_settings(self, fitted: FittedModel) -> Configuration:
        """Return the configuration with the settings that a fit of it has tuned.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(150, 2))
        >>> default = PORTFOLIO["boosted logistic"]
        >>> fitted = fit_configuration(default, X, (X[:, 0] > 1).astype(float), Columns.numeric(2))
        >>> default.tunes_itself, default.with_tuned_settings(fitted).tunes_itself
        (True, False)
        """
        chosen = {k: v for k, v in fitted.model.chosen_.items() if k != "objectives"}
        return replace(self, settings={**self.settings, **chosen})


_FOREST = {"n_estimators": 150, "min_samples_leaf": 2}
_ONE = {"n_seeds": 1, "random_trees": 0}
PORTFOLIO: dict[str, Configuration] = {
    "linear": Configuration("LogisticRanker", {}, "scaled", 0.02, None, 20_000),
    "kernel least squares": Configuration("RankLS", {"kernel": "rbf"}, "scaled", 0.1, 5_000, 5_000),
    "lightgbm": Configuration(
        "lightgbm",
        {"n_estimators": 300, "learning_rate": 0.04, "num_leaves": 12, "min_child_samples": 5,
         "colsample_bytree": 0.5, "subsample": 0.7, "subsample_freq": 1},
        "scaled", 0.3,
    ),
    "boosted ap_softmax": Configuration(
        _BOOSTER, {**_ONE, "objective": "ap_softmax", "n_estimators": 300}, "native", 0.5,
    ),
    "extra trees": Configuration("ExtraTreesClassifier", _FOREST, "target", 0.3, 50_000),
    "default booster": Configuration(_BOOSTER, {}, "native", 2.0, prior=0.5),
    "boosted logistic, deep": Configuration(
        _BOOSTER,
        {**_ONE, "objective": "logistic", "max_depth": 200, "max_leaves": 0, "n_estimators": 200,
         "learning_rate": 0.1, "subsample": 0.7, "colsample_bynode": 0.3, "min_child_weight": 0.05},
        "native", 0.2,
    ),
    "random forest": Configuration("RandomForestClassifier", _FOREST, "target", 0.4, 50_000),
    "networks": Configuration("networks", {}, "scaled", 0.5, 50_000, 2_000),
    "catboost": Configuration(
        "catboost", {"iterations": 500, "max_ctr_complexity": 2, "ctr_leaf_count_limit": 10_000}, "own", 1.5,
        200_000, 2_000,
    ),
    "boosted lambda_map": Configuration(_BOOSTER, {**_ONE, "objective": "lambda_map"}, "native", 0.5),
    "boosted logistic": Configuration(_BOOSTER, {**_ONE, "objective": "logistic"}, "native", 0.3),
    "boosted ap_sigmoid": Configuration(
        _BOOSTER, {**_ONE, "objective": "ap_sigmoid", "n_estimators": 300}, "native", 0.5,
    ),
    "kernel logistic": Configuration("KernelLogisticRanker", {}, "scaled", 0.1, 5_000, 5_000),
    "balanced forest": Configuration(
        "RandomForestClassifier", {**_FOREST, "class_weight": "balanced_subsample"}, "target", 0.5, 50_000,
    ),
    # on development sets these did not help the others, the last took weight from better ones
    "rankboost": Configuration("RankBoost", {}, "native", 0.1, 200_000, by_default=False),
    "ranking forest": Configuration(
        "RankingForest", {"n_estimators": 20}, "native", 0.1, 10_000, 500, by_default=False,
    ),
    "prankboost": Configuration("PRankBoost", {}, "native", 0.1, 20_000, 500, by_default=False),
}  # fmt: skip


def choose_configurations(names: Sequence[str] | None, n_columns: int) -> dict[str, Configuration]:
    """Return the configurations of some names, or those tried by default, that can run here, in their order.

    Examples
    --------
    >>> list(choose_configurations(["extra trees", "linear"], 10))
    ['extra trees', 'linear']
    """
    if names is None:
        names = [name for name, configuration in PORTFOLIO.items() if configuration.by_default]
    unknown = [name for name in names if name not in PORTFOLIO]
    if unknown:
        raise ValueError(f"unknown configuration {unknown[0]!r}; known: {', '.join(PORTFOLIO)}")
    chosen = {
        name: PORTFOLIO[name]
        for name in names
        if PORTFOLIO[name].method not in LIBRARIES or is_installed(PORTFOLIO[name].method)
    }
    if not chosen:
        raise ValueError(f"none of {', '.join(names)} is installed: pip install toprank[peers]")
    narrow = {
        name: c
        for name, c in chosen.items()
        if c.most_columns is None or n_columns <= c.most_columns
    }
    return narrow or chosen


@dataclass(frozen=True)
class FittedModel:
    """A fitted model with what its columns become before it sees them.

    Attributes
    ----------
    form : str
        As in `Configuration`.
    encoding : TargetEncoding, NumericEncoding, CategoryStatistics or None
    model : estimator
    """

    form: str
    encoding: Any
    model: Any

    def scores(self, X: np.ndarray, columns: Columns) -> np.ndarray:
        """Return the scores of rows of numbers and codes; log-odds where the model has probabilities."""
        rows = X if self.encoding is None else self.encoding.transform(X)
        if self.form == "native":
            rows = _table(rows, columns)
        if hasattr(self.model, "decision_function"):
            return np.asarray(self.model.decision_function(rows), dtype=np.float64)
        # a forest is never sure: as if one row in ten thousand were of the other class
        probability = 1e-4 + (1 - 2e-4) * self.model.predict_proba(rows)[:, 1]
        return np.log(probability) - np.log1p(-probability)


def fit_configuration(
    configuration: Configuration,
    X: np.ndarray,
    y: np.ndarray,
    columns: Columns,
    *,
    sample_weight: np.ndarray | None = None,
    qid: np.ndarray | None = None,
    keys: SplitKeys | None = None,
    seed: int = 0,
    n_jobs: int | None = 1,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> FittedModel:
    """Fit a configuration on rows of numbers and codes.

    Parameters
    ----------
    configuration : Configuration
    X : ndarray of shape (n_rows, n_columns)
    y : ndarray of 0 and 1
    columns : Columns
        Of `X`.
    sample_weight, qid : ndarray, optional
        Handed on where the method takes them.
    keys : SplitKeys, optional
        What its inner validation goes by, where it has one.
    seed : int
    n_jobs : int or None
    callbacks : sequence of callables
        Of what is boosted; a true answer ends the fit.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(40.0)[:, None]
    >>> y = (X[:, 0] > 30).astype(float)
    >>> fitted = fit_configuration(PORTFOLIO["linear"], X, y, Columns.numeric(1))
    >>> scores = fitted.scores(X, Columns.numeric(1))
    >>> bool(scores[-1] > scores[0])
    True
    """
    keep = sample_rows(y, configuration.most_rows, seed)
    X, y = X[keep], y[keep]
    weight = None if sample_weight is None else sample_weight[keep]
    ones = np.ones(len(y)) if weight is None else weight
    sizes = np.array([0 if v is None else len(v) for v in columns.categories], dtype=np.int64)
    encoding: Any = None
    rows: Any = X
    if configuration.form == "own":
        model = _make_model(configuration, seed, n_jobs)
        encoding = model.fit_categories(X, y, sizes, weight, callbacks=callbacks)
        return FittedModel(configuration.form, encoding, model)
    if configuration.form == "scaled":
        encoding = NumericEncoding.of(X, columns.is_category, weight, max_categories=50, clip=10.0)
        rows = encoding.transform(X)
    elif configuration.form == "native":
        rows = _table(X, columns)
    elif (sizes > 2).any():
        encoding, rows = TargetEncoding.fit_transform(X, y, ones, sizes, seed)
    if configuration.method == "networks":
        return FittedModel(configuration.form, encoding, NeuralNetworks.of(rows, y, weight, seed))
    model = _make_model(configuration, seed, n_jobs)
    known = {
        "sample_weight": weight,
        "qid": None if qid is None else qid[keep],
        "callbacks": callbacks or None,
        **({} if keys is None else keys.rows(keep).as_dict()),
    }
    arguments = {k: v for k, v in known.items() if v is not None and fit_takes(model, k)}
    model.fit(rows, y.astype(np.int64), **arguments)
    return FittedModel(configuration.form, encoding, model)


def _make_model(configuration: Configuration, seed: int, n_jobs: int | None) -> Any:
    """Return the unfitted model of a configuration."""
    method, settings = configuration.method, dict(configuration.settings)
    if method in LIBRARIES:
        return LibraryBooster(method, settings, n_jobs=n_jobs, random_state=seed)
    if method.endswith("Classifier"):
        forest = getattr(import_module("sklearn.ensemble"), method)
        return forest(**settings, n_jobs=thread_count(n_jobs), random_state=seed)
    return make_ranker(method, settings, seed, n_jobs)


def make_ranker(name: str, settings: Mapping[str, Any], seed: int, n_jobs: int | None) -> Any:
    """Return an unfitted estimator of the library; seed and threads where it takes them."""
    kind: Any = estimator(name)
    more = {"random_state": seed, "n_jobs": n_jobs}
    known = kind._get_param_names()
    return kind(**settings, **{k: v for k, v in more.items() if k in known})


def sample_rows(y: np.ndarray, most_rows: int | None, seed: int) -> np.ndarray:
    """Return the positions of all positives and a sample of the others, at least as many; ascending.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(1_000) < 10
    >>> kept = sample_rows(y, 100, seed=0)
    >>> len(kept), int(y[kept].sum())
    (100, 10)
    """
    if most_rows is None or len(y) <= most_rows:
        return np.arange(len(y))
    random = np.random.default_rng(seed)
    positives, others = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    most_positives = max(most_rows // 2, most_rows - len(others))  # more are not rare
    if len(positives) > most_positives:
        positives = random.choice(positives, most_positives, replace=False)
    n_others = min(len(others), max(most_rows - len(positives), 2))
    return np.sort(np.concatenate([positives, random.choice(others, n_others, replace=False)]))


def _table(X: np.ndarray, columns: Columns) -> Any:
    """Return codes of categories as a table of categories; numbers alone stay an array."""
    if not columns.is_category.any():
        return X
    table = pd.DataFrame(X, columns=list(columns.names))
    for j in np.flatnonzero(columns.is_category):
        values: Any = columns.categories[j]
        codes = np.where(np.isnan(X[:, j]), -1, X[:, j]).astype(np.int64)
        table.isetitem(int(j), pd.Categorical.from_codes(codes, categories=pd.Index(values)))
    return table
