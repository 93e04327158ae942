"""Other libraries' models at their usual good settings, to stand beside ours in a comparison."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_random_state

from toprank.base import BaseRanker
from toprank.docstrings import fill_docstring
from toprank.parallel import thread_count
from toprank.validation import PARAMETER_CONSTRAINTS, StrOptions

__all__ = ["PEERS", "PeerRanker", "installed_peers"]

# The library that each peer needs; all but these come with toprank.
PEERS = {
    "catboost": "catboost",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "random_forest": "sklearn",
    "extra_trees": "sklearn",
    "balanced_forest": "imblearn",
}


def installed_peers() -> list[str]:
    """Return the peers whose libraries are installed.

    Examples
    --------
    >>> "random_forest" in installed_peers()
    True
    """
    return [name for name, library in PEERS.items() if find_spec(library) is not None]


@fill_docstring
class PeerRanker(BaseRanker):
    """A model of another library, at the settings that its users know to be good.

    For comparisons: it keeps to the interface of the rankers but has no model file and no explanations.

    Parameters
    ----------
    kind : {"catboost", "lightgbm", "xgboost", "random_forest", "extra_trees", "balanced_forest"}
        CatBoost with 500 rounds and its own treatment of categories; LightGBM with 500 rounds at rate
        0.03; XGBoost with 500 rounds at rate 0.03, depth 5; scikit-learn's random forest and
        extra trees and imbalanced-learn's balanced random forest with 300 trees and leaves of two rows.
    %(n_jobs)s
    random_state : int, RandomState or None

    Attributes
    ----------
    model_ : object
        The fitted model.
    %(classes)s

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.9], random_state=0)
    >>> PeerRanker("extra_trees", random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "kind": [StrOptions(set(PEERS))],
    }
    _accepts_missing = True
    _accepts_categories = True
    _accepts_dates = True

    def __init__(
        self, kind: str = "random_forest", *, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.kind = kind
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PeerRanker:
        """Fit the model on rows `X` with labels `y`."""
        data = self._check_training(X, y, sample_weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.model_ = MAKERS[self.kind](self, seed)
        step = f"{self.model_.steps[-1][0]}__" if self.kind in _FORESTS else ""
        arguments: dict[str, Any] = {f"{step}sample_weight": data.sample_weight}
        if self.kind == "lightgbm":
            arguments["categorical_feature"] = np.flatnonzero(self.columns_.is_category).tolist()
        self.model_.fit(self._in_form(data.X), data.y.astype(int), **arguments)
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        probability = self.model_.predict_proba(self._in_form(X))[:, 1]
        if self.kind in _FORESTS:
            return probability
        # the log-odds tell apart what is 1 within float32
        with np.errstate(divide="ignore"):
            return np.clip(np.log(probability) - np.log1p(-probability), -700, 700)

    def _in_form(self, X: np.ndarray) -> Any:
        """Return codes of categories as the library wants them."""
        if self.kind != "catboost":
            return X
        table = pd.DataFrame(X)
        for j in np.flatnonzero(self.columns_.is_category):
            table[j] = np.where(np.isnan(X[:, j]), -1, X[:, j]).astype(int)
        return table


def _catboost(ranker: PeerRanker, seed: int) -> Any:
    return import_module("catboost").CatBoostClassifier(
        iterations=500,
        cat_features=np.flatnonzero(ranker.columns_.is_category).tolist(),
        random_seed=seed,
        thread_count=thread_count(ranker.n_jobs),
        verbose=0,
        allow_writing_files=False,
    )


def _lightgbm(ranker: PeerRanker, seed: int) -> Any:
    return import_module("lightgbm").LGBMClassifier(
        n_estimators=500,
        learning_rate=0.03,
        n_jobs=thread_count(ranker.n_jobs),
        random_state=seed,
        verbose=-1,
    )


def _xgboost(ranker: PeerRanker, seed: int) -> Any:
    return import_module("xgboost").XGBClassifier(
        n_estimators=500,
        learning_rate=0.03,
        max_depth=5,
        enable_categorical=True,
        feature_types=["c" if c else "q" for c in ranker.columns_.is_category],
        n_jobs=thread_count(ranker.n_jobs),
        random_state=seed,
    )


def _forest(module: str, name: str, **settings: Any) -> Callable[[PeerRanker, int], Any]:
    """Return a maker of forests, which take medians for missing values."""

    def make(ranker: PeerRanker, seed: int) -> Any:
        trees = getattr(import_module(module), name)(
            300,
            min_samples_leaf=2,
            n_jobs=thread_count(ranker.n_jobs),
            random_state=seed,
            **settings,
        )
        return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), trees)

    return make


_FORESTS = {
    "random_forest": _forest("sklearn.ensemble", "RandomForestClassifier"),
    "extra_trees": _forest("sklearn.ensemble", "ExtraTreesClassifier"),
    "balanced_forest": _forest(
        "imblearn.ensemble", "BalancedRandomForestClassifier",
        sampling_strategy="all", replacement=True, bootstrap=False,
    ),
}  # fmt: skip
MAKERS: dict[str, Callable[[PeerRanker, int], Any]] = {
    "catboost": _catboost,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    **_FORESTS,
}
