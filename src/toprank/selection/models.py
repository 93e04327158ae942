"""The models that can be compared and fitted, by short names."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from toprank.encoding import TableEncoder
from toprank.folds import fit_arguments, make_splits, take_rows
from toprank.registry import ESTIMATORS, RELATIONAL, estimator
from toprank.selection.peers import installed_peers

__all__ = [
    "MODELS",
    "RELATIONAL_MODELS",
    "YARDSTICK",
    "Candidate",
    "cost_rank",
    "default_models",
    "find_candidate",
    "fit_model",
    "is_relational",
    "make_model",
    "training_rows",
]

YARDSTICK = "yardstick"


@dataclass(frozen=True)
class Candidate:
    """A model that can be chosen by name.

    Attributes
    ----------
    estimator : str
        Name of the class in `toprank`.
    summary : str
        A short description.
    parameters : dict
        Those that differ from the defaults of the class.
    most_negatives : int or None
        In comparisons it is trained on all positives and at most this many other rows, since its
        cost grows faster than the rows; None for no limit.
    """

    estimator: str
    summary: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    most_negatives: int | None = None


_OBJECTIVES = {
    "ap_sigmoid": "boosted trees for average precision (sigmoid surrogate)",
    "ap_exp": "boosted trees for average precision (exponential surrogate)",
    "ap_softmax": "boosted trees for average precision (softmax over the list)",
    "lambda_map": "boosted trees on lambda gradients of average precision",
    "lambda_auc": "boosted trees on lambda gradients of the AUC",
    "lambda_mauc": "boosted trees on lambda gradients of the multi-class AUC",
    "lambda_ndcg": "boosted trees on lambda gradients of NDCG",
    "lambda_mrr": "boosted trees on lambda gradients of the reciprocal rank",
    "lambda_precision": "boosted trees on lambda gradients of precision at k",
    "ndcg_sigmoid": "boosted trees for NDCG (sigmoid surrogate)",
    "pairwise_logistic": "boosted trees on the logistic loss of pairs",
    "pairwise_exp": "boosted trees on the exponential loss of pairs",
    "pauc": "boosted trees for the partial AUC",
    "logistic": "boosted trees on the logistic loss",
}

_PEERS = {
    "catboost": "CatBoost, 500 rounds",
    "lightgbm": "LightGBM, 500 rounds",
    "xgboost": "XGBoost, 500 rounds, not tuned",
    "random_forest": "scikit-learn's random forest, 300 trees",
    "extra_trees": "scikit-learn's extra trees, 300 trees",
    "balanced_forest": "imbalanced-learn's balanced random forest, 300 trees",
}

MODELS: dict[str, Candidate] = {
    "auto": Candidate("AutoRanker", "many methods within a time limit, the best of them combined"),
    "boosting": Candidate(
        "GradientBoostingRanker", "boosted trees and a random forest, averaged"
    ),
    **{
        name: Candidate("GradientBoostingRanker", summary, {"objective": name})
        for name, summary in _OBJECTIVES.items()
    },
    # the name of this objective is that of the published method, further down
    "boosted_pnorm_push": Candidate(
        "GradientBoostingRanker", "boosted trees on the p-norm push", {"objective": "pnorm_push"}
    ),
    **{
        name: Candidate("PeerRanker", summary, {"kind": name})
        for name, summary in _PEERS.items()
    },
    YARDSTICK: Candidate("TunedLogisticBooster", "XGBoost, logistic loss, tuned by validation"),
    "linear": Candidate("LogisticRanker", "linear score, logistic loss"),
    "rankboost": Candidate("RankBoost", "boosted stumps on the loss of pairs"),
    "pnorm_push": Candidate("PNormPush", "boosted stumps on the p-norm push"),
    "prankboost": Candidate("PRankBoost", "boosted clauses for recall-precision area", {}, 50_000),
    "scorecard": Candidate("RuleScorecard", "a handful of short rules with points"),
    "pauc_boost": Candidate("PAUCBoost", "boosted stumps for the partial AUC", {}, 20_000),
    "greedy_pauc": Candidate("GreedyPAUC", "linear score grown greedily for pAUC", {}, 20_000),
    "treerank": Candidate("TreeRank", "one ranking tree", {}, 50_000),
    "ranking_forest": Candidate("RankingForest", "a forest of ranking trees", {}, 50_000),
    "ranksvm": Candidate("RankSVM", "linear score, squared hinge of pairs"),
    "rankls": Candidate("RankLS", "linear score, least squares of pairs"),
    "ranksvm_rbf": Candidate("RankSVM", "RankSVM with a Gaussian kernel", {"kernel": "rbf"}, 20_000),
    "rankls_rbf": Candidate("RankLS", "RankLS with a Gaussian kernel", {"kernel": "rbf"}, 20_000),
    "klr": Candidate("KernelLogisticRanker", "kernel logistic regression", {}, 20_000),
    "pauc_svm": Candidate(
        "PartialAUCSVM", "structural SVM for the partial AUC", {"fpr": (0.0, 0.1)}, 50_000
    ),
    "pauc_linear": Candidate("PartialAUCRanker", "linear score for the partial AUC", {}, 50_000),
    "poise": Candidate(
        "PartialAUCRanker", "partial AUC on paths of trees", {"embedding": "tree_path"}, 10_000
    ),
}  # fmt: skip

# For relational data; the others get its facts as columns (`RelationalFeatures`).
RELATIONAL_MODELS: dict[str, Candidate] = {
    "clauses": Candidate("RelationalPRankBoost", "boosted clauses over the tables, to be read"),
    "clauses_rankboost": Candidate("RelationalRankBoost", "boosted clauses on the loss of pairs"),
}

_COMPARED = (
    "boosting", "ap_sigmoid", "lambda_map", "logistic", "rankboost", "ranking_forest", "rankls",
    "linear",
)  # fmt: skip
_PEERS_COMPARED = ("random_forest", "lightgbm", "catboost")  # those that are installed


# By class, what is quick to learn first; several boosters and the search of the yardstick come last.
_COST_RANKS = {
    **dict.fromkeys(("LogisticRanker", "RankLS", "RankSVM"), 0),
    **dict.fromkeys(("RankBoost", "PNormPush", "TreeRank"), 1),
    **dict.fromkeys(("GradientBoostingRanker", "PeerRanker"), 2),
    "TunedLogisticBooster": 4,
}


def cost_rank(name: str, named: Collection[str]) -> int:
    """Return a small number for a model that learns quickly; 2 for one that is not among the `named`.

    Examples
    --------
    >>> [cost_rank(name, MODELS) for name in ("linear", "logistic", "poise", "boosting")]
    [0, 2, 3, 4]
    """
    if name not in named or (name not in MODELS and name not in ESTIMATORS):
        return 2
    candidate = find_candidate(name)
    several = candidate.estimator == "GradientBoostingRanker" and not candidate.parameters
    slow = candidate.most_negatives is not None and candidate.estimator != "TreeRank"
    return 4 if several else 3 if slow else _COST_RANKS.get(candidate.estimator, 3)


def is_relational(X: Any) -> bool:
    """Return whether rows are examples of relational data."""
    return type(X).__name__ == "RelationalData"


def default_models() -> list[str]:
    """Return the models that are compared unless others are named.

    Examples
    --------
    >>> {"ap_sigmoid", "linear", "random_forest"} <= set(default_models())
    True
    """
    return [*_COMPARED, *(name for name in _PEERS_COMPARED if name in installed_peers())]


def make_model(
    name: str,
    random_state: int | None = 0,
    n_jobs: int | None = 1,
    *,
    relational: bool = False,
) -> Any:
    """Make a model by its short name, ready for any table, or for relational data.

    A method that takes neither categories nor missing values gets a `TableEncoder` before it, in a
    scikit-learn pipeline whose last step is called ``model``. For relational data a method of tables
    gets `RelationalFeatures` before it.

    Parameters
    ----------
    name : str
        A key of `MODELS`, or the name of an estimator of `toprank`.
    random_state : int or None, default=0
    n_jobs : int or None, default=1
        Threads; None and -1 are all cores that this process may use.
    relational : bool, default=False
        Whether its rows will be examples of a `RelationalData`.

    Returns
    -------
    model : estimator or Pipeline

    Examples
    --------
    >>> make_model("lambda_map").objective
    'lambda_map'
    >>> [step for step, _ in make_model("ranksvm").steps]
    ['table', 'model']
    """
    candidate = find_candidate(name)
    kind = estimator(candidate.estimator)
    given = dict(candidate.parameters)
    settings = {"random_state": random_state, "n_jobs": n_jobs}
    known = kind._get_param_names()  # type: ignore[attr-defined]
    given |= {key: value for key, value in settings.items() if key in known}
    model = kind(**given)
    if candidate.estimator in RELATIONAL:
        if not relational:
            raise ValueError(
                f"{name} learns clauses over several tables: it needs relational data, not one table"
            )
        return model
    tags = model.__sklearn_tags__().input_tags
    steps: list[tuple[str, Any]] = [("model", model)]
    if not (tags.allow_nan and tags.categorical):
        steps.insert(0, ("table", TableEncoder()))
    if relational:
        steps.insert(0, ("facts", estimator("RelationalFeatures")(n_jobs=n_jobs)))
    return model if len(steps) == 1 else Pipeline(steps)


def find_candidate(name: str) -> Candidate:
    """Return the candidate of that name; estimators of the registry may be named by their class."""
    if name in MODELS:
        return MODELS[name]
    if name in RELATIONAL_MODELS:
        return RELATIONAL_MODELS[name]
    if name in RELATIONAL:
        return Candidate(name, f"{name} with its defaults")
    if name in ESTIMATORS:
        limits = [c.most_negatives for c in MODELS.values() if c.estimator == name]
        most = limits[0] if limits else None
        return Candidate(name, f"{name} with its defaults", {}, most)
    near = difflib.get_close_matches(str(name), MODELS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ValueError(f"unknown model {name!r}{hint} Known: {', '.join(MODELS)}")


def training_rows(name: str, y: Any, random_state: int = 0) -> np.ndarray | None:
    """Return the positions of the rows that a model of limited size is trained on; None for all of them.

    All positives and a sample of `most_negatives` other rows, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(100_000) % 100 == 0
    >>> training_rows("ap_sigmoid", y) is None, len(training_rows("klr", y))
    (True, 21000)
    """
    most = find_candidate(name).most_negatives
    labels = np.asarray(y)
    positive = labels == np.unique(labels)[-1]
    others = np.flatnonzero(~positive)
    if most is None or len(others) <= most:
        return None
    sample = np.random.default_rng(random_state).choice(others, most, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(positive), sample]))


def fit_model(
    name: str,
    X: Any,
    y: np.ndarray,
    *,
    sample_weight: Any = None,
    qid: Any = None,
    groups: Any = None,
    group_history: bool = False,
    time: Any = None,
    gap: Any = None,
    folds: int | None = 5,
    random_state: int = 0,
    n_jobs: int | None = 1,
    verbose: int = 0,
    time_limit: float | None = None,
) -> tuple[Any, list[str]]:
    """Fit a model by its short name, calibrated unless `folds` is None.

    With `time` the calibration is learnt from blocks of time, each scored by a model of the past, so that
    it allows for how the data change; `groups` are kept whole in the folds, and with `time` their
    earlier rows are left out of training unless `group_history`. `time_limit` is that of a model which has
    one, in seconds. A method that does not scale learns from all positives and a sample of the others, in
    the folds and in the end, while the calibration sees all rows.

    Returns
    -------
    model : fitted estimator
    notes : list of str
        What the user should know.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, weights=[0.8], random_state=0)
    >>> model, notes = fit_model("linear", X, y, folds=2)
    >>> type(model).__name__, notes
    ('CalibratedRanker', [])
    """
    from toprank.shortlisting import CalibratedRanker

    model = make_model(name, random_state, n_jobs, relational=is_relational(X))
    notes: list[str] = []
    if "time_limit" in model.get_params():
        model.set_params(time_limit=time_limit or model.time_limit, verbose=verbose)
        apart = None if group_history else groups
        return _fit_automatic(
            model,
            X,
            y,
            folds,
            sample_weight=sample_weight,
            qid=qid,
            groups=apart,
            time=time,
            gap=gap,
        )
    sample = training_rows(name, y, random_state)
    if sample is not None:
        notes.append(
            f"{name} does not scale to all rows: it learns from all positives and a sample of the "
            f"others, {len(sample):,} of {len(y):,} rows"
        )
        model = SampledNegatives(model, name, random_state)
    if time is None and gap is not None:
        raise ValueError("gap needs time: without it there is no order to keep a distance in")
    known = {
        "groups": None if time is not None and group_history else groups,
        "time": time,
        "gap": gap,
    }
    if folds is None:
        arguments = fit_arguments(model, sample_weight=sample_weight, qid=qid, **known)
        fitted = model.fit(X, y, **arguments)
        return (fitted if sample is None else fitted.model_), notes
    cv: Any = folds
    if time is not None:
        apart = qid if groups is None else known["groups"]
        splits = make_splits(y, groups=apart, time=time, gap=gap, n_splits=folds)
        cv = [(split.train, split.test) for split in splits]
        notes += splits.notes
    calibrated = CalibratedRanker(model, cv=cv, random_state=random_state, verbose=verbose)
    calibrated.fit(X, y, sample_weight, qid, **known)
    calibrated.cv = folds  # not the rows of each fold: they have no place in a model file
    if sample is not None:
        calibrated.estimator, calibrated.estimator_ = model.estimator, calibrated.estimator_.model_
    return calibrated, notes


def _fit_automatic(
    model: Any, X: Any, y: np.ndarray, folds: int | None, **known: Any
) -> tuple[Any, list[str]]:
    """Fit a model that makes folds of its own, and calibrate it by its own held-out scores."""
    from toprank.shortlisting import CalibratedRanker

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **known)
    notes = [*map(str, dict.fromkeys(str(w.message) for w in caught)), *model.notes_]
    if folds is None:
        return model, notes
    return CalibratedRanker.of_fitted(model, y, known["sample_weight"], cv=folds), notes


class SampledNegatives(ClassifierMixin, BaseEstimator):
    """Fit a model on all positives and a sample of the other rows, as `training_rows` draws them."""

    def __init__(self, estimator: Any = None, name: str = "", random_state: int = 0) -> None:
        self.estimator = estimator
        self.name = name
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> SampledNegatives:
        """Sample rows and fit the model."""
        labels = np.asarray(y)
        sample = training_rows(self.name, labels, self.random_state)
        rows = np.arange(len(labels)) if sample is None else sample
        arguments = fit_arguments(self.estimator, rows=rows, sample_weight=sample_weight, qid=qid)
        self.model_ = clone(self.estimator).fit(take_rows(X, rows), labels[rows], **arguments)
        for name in ("classes_", "n_features_in_", "feature_names_in_", "columns_"):
            if hasattr(self.model_, name):
                setattr(self, name, getattr(self.model_, name))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of the model."""
        return self.model_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags
