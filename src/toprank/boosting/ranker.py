"""GradientBoostingRanker: any objective, on XGBoost's histogram trees; and the published methods by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank import metrics, objectives
from toprank.base import TrainingData
from toprank.boosting.base import BoostedTreesRanker
from toprank.boosting.engine import Callback, Validation, boost
from toprank.boosting.xgboost_helpers import GROWTH, predict_margin, require_xgboost
from toprank.docstrings import fill_docstring
from toprank.stopping import ValidationMetric, hold_out
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions

__all__ = ["SGBAP", "GradientBoostingRanker", "LambdaMART", "SGBAPsig"]

_SHARE = Interval(Real, 0, 1, closed="right")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


@fill_docstring
class GradientBoostingRanker(BoostedTreesRanker):
    """Stochastic gradient boosting of a ranking objective on XGBoost's trees.

    Parameters
    ----------
    objective : str or Objective, default="ap_sigmoid"
        What the trees minimise: a name of `toprank.objectives` or an instance of one, such as
        ``objectives.get("ap_sigmoid", alpha=2)``.
    n_estimators : int, default=300
        Rounds, one tree each.
    learning_rate : float, optional
        Shrinkage of each tree. By default it depends on the number of rows: few rows are learnt
        slowly, at 0.05 up to 500 and faster with more, at 0.3 from 20,000 on.
    max_depth : int, default=0
        Deepest level of a tree; 0 sets no limit (then `max_leaves` must).
    max_leaves : int, optional
        Most leaves of a tree; 0 sets no limit. By default 16 below 2,000 rows and 31 from there on.
    growth : {"leaf", "depth"}, default="leaf"
        Grow always at the leaf with the greatest gain, or level by level.
    min_child_weight : float, default=1.0
        Least sum of Hessians in a leaf. Ranking gradients are rescaled so that the Hessians of a list
        sum to its positives: a leaf of 1 has about the curvature of one positive.
    min_split_gain : float, default=0.0
        Least gain of a split.
    reg_lambda : float, optional
        L2 penalty on leaf values. By default 1 below 2,000 rows and 5 from there on.
    reg_alpha : float, default=0.0
        L1 penalty on leaf values.
    max_leaf_step : float, default=2.0
        Bound on a leaf's value before shrinkage (with a line search: on any row's move); 0 for none.
    subsample : float, default=1.0
        Share of rows drawn each round, the same from each class. The objective is computed on the
        draw: a list of the drawn rows.
    colsample_bytree, colsample_bynode : float, default=1.0 and 0.3
        Share of columns drawn for each tree and for each split.
    max_bins : int, default=255
        Bins of each column.
    step : {"newton", "line_search"}, default="newton"
        Newton leaves, or trees fitted to the gradient by least squares with a bounded line search
        for each, as Frery et al. (2017) have it. A lambda objective has no loss beyond the ranks of the
        moment: along its trees the step is the minimum of the quadratic model of gradient and Hessian.
        Either way no row moves by more than `max_leaf_step`, and the step is then shrunk.
    n_seeds : int, default=1
        Train this many boosters with different seeds and average their scores.
    early_stopping_rounds : int, optional
        Stop when the validation metric has not improved for so many rounds, and keep the best round.
        Validation rows come from `eval_set`, or are split off by `validation_fraction`.
    validation_fraction : float, default=0.2
        Share of the rows (stratified) or queries held out for early stopping.
    eval_metric : str or callable, optional
        Name of a metric of `toprank.metrics`, whose direction is known, or f(y, scores), of which more is
        better. Average precision by default, NDCG for graded objectives.
    monotone_constraints : mapping or sequence of {-1, 0, 1}, optional
        By column name, or one for each column.
    interaction_constraints : sequence of sequences, optional
        Groups of columns (names or positions) that may meet in one branch.
    device : str, default="cpu"
        XGBoost's device, such as "cpu" or "cuda".
    %(n_jobs)s
    random_state : int, RandomState or None
        Fixes the draws of rows and columns and the validation split.
    %(verbose)s

    Attributes
    ----------
    boosters_ : list of xgboost.Booster
        One for each seed.
    n_estimators_ : int
        Rounds kept (of the first booster).
    validation_scores_ : list of float
        The validation metric after each round of the first booster, where there was validation data.
    feature_importances_ : ndarray of shape (n_columns,)
        Share of the total gain of the splits on each column.
    %(classes)s

    References
    ----------
    Frery, Habrard, Sebban, Caelen, He-Guelton (2017), Efficient top rank optimization with gradient
    boosting for supervised anomaly detection, ECML PKDD.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import GradientBoostingRanker
    >>> X, y = make_classification(600, weights=[0.95], random_state=0)
    >>> model = GradientBoostingRanker(n_estimators=30, random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 3 * y.mean())
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "max_depth": [Interval(Integral, 0, None, closed="left")],
        "max_leaves": [Interval(Integral, 0, None, closed="left"), None],
        "growth": [StrOptions(set(GROWTH))],
        "min_child_weight": [_NOT_NEGATIVE],
        "min_split_gain": [_NOT_NEGATIVE],
        "reg_lambda": [_NOT_NEGATIVE, None],
        "reg_alpha": [_NOT_NEGATIVE],
        "max_leaf_step": [_NOT_NEGATIVE],
        "subsample": [_SHARE],
        "colsample_bytree": [_SHARE],
        "colsample_bynode": [_SHARE],
        "max_bins": [Interval(Integral, 2, None, closed="left")],
        "step": [StrOptions({"newton", "line_search"})],
        "n_seeds": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        objective: str | objectives.Objective = "ap_sigmoid",
        *,
        n_estimators: int = 300,
        learning_rate: float | None = None,
        max_depth: int = 0,
        max_leaves: int | None = None,
        growth: str = "leaf",
        min_child_weight: float = 1.0,
        min_split_gain: float = 0.0,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        max_leaf_step: float = 2.0,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        colsample_bynode: float = 0.3,
        max_bins: int = 255,
        step: str = "newton",
        n_seeds: int = 1,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.2,
        eval_metric: str | Callable[..., float] | None = None,
        monotone_constraints: Mapping[str, int] | Sequence[int] | None = None,
        interaction_constraints: Sequence[Sequence[str | int]] | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.growth = growth
        self.min_child_weight = min_child_weight
        self.min_split_gain = min_split_gain
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.max_leaf_step = max_leaf_step
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.colsample_bynode = colsample_bynode
        self.max_bins = max_bins
        self.step = step
        self.n_seeds = n_seeds
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.monotone_constraints = monotone_constraints
        self.interaction_constraints = interaction_constraints
        self.device = device
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
        eval_set: tuple[Any, ...] | None = None,
        init_model: GradientBoostingRanker | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> GradientBoostingRanker:
        """Boost.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
            Missing values are NaN or None; text and category columns are categories. Entries that a
            sparse matrix does not store count as missing.
        y : array of shape (n_rows,)
            Two labels, the greater one positive; whole numbers from 0 up for graded objectives.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.
        qid : array of shape (n_rows,), optional
            Query of each row; rows of different queries are never compared.
        eval_set : tuple (X, y), (X, y, sample_weight) or (X, y, sample_weight, qid), optional
            Validation rows. With `early_stopping_rounds` they choose the number of rounds.
        init_model : GradientBoostingRanker, optional
            A fitted ranker to go on from: its trees come first. The rows may have other categories: known
            ones keep their codes, new ones are added.
        callbacks : sequence of callables
            Each is called with a `Round` after each round; a true answer ends the fit.

        Returns
        -------
        self : GradientBoostingRanker
        """
        objective = self._objective()
        self._check_trees()
        data = self._check_training(X, y, sample_weight, qid, keep_zero_weights=True)
        self.trained_on_sparse_ = bool(sparse.issparse(data.X))
        if init_model is not None:
            data = self._encode_like(init_model, X, data)
        training, validation = self._validation_split(data, eval_set, objective.graded)
        starts = [None] * self.n_seeds if init_model is None else init_model.boosters_
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_seeds)
        results = [
            boost(
                self, training, objective, int(seed), validation=validation, callbacks=callbacks,
                start=start, label=f"boosting {objective.name}" + (f", seed {k}" if k > 1 else ""),
            )
            for k, (seed, start) in enumerate(zip(seeds, starts, strict=True), start=1)
        ]  # fmt: skip
        self.boosters_ = [booster for booster, _ in results]
        self.n_estimators_ = self.boosters_[0].num_boosted_rounds()
        self.validation_scores_ = results[0][1]
        raw_scores = self._raw_scores(data.X)
        self._warn_if_constant(raw_scores)
        self._set_threshold(raw_scores, data)
        return self

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores of rows after each round (with the final threshold subtracted)."""
        check_is_fitted(self)
        X = self._in_form(self._check_rows(X))
        total = np.zeros(X.shape[0])
        for number in range(max(b.num_boosted_rounds() for b in self.boosters_)):
            for booster in self.boosters_:
                if number < booster.num_boosted_rounds():
                    total += predict_margin(booster, X, (number, number + 1)) / len(self.boosters_)
            yield total - self.offset_

    # -- parts of fit ----------------------------------------------------------------------------

    def _objective(self) -> objectives.Objective:
        return objectives.get(self.objective)

    def _accepts_grades(self) -> bool:
        return self._objective().graded

    def _check_trees(self) -> None:
        require_xgboost()
        if self.max_depth == 0 and self.max_leaves == 0:
            raise ValueError(
                "max_depth and max_leaves are both 0: one of them must bound the trees"
            )

    def _encode_like(
        self, init_model: GradientBoostingRanker, X: Any, data: TrainingData
    ) -> TrainingData:
        """Encode the rows as the trees of `init_model` know them: their codes first, then new ones."""
        check_is_fitted(init_model)
        if (
            init_model.columns_.names != self.columns_.names
            or len(init_model.boosters_) != self.n_seeds
        ):
            raise ValueError(
                "init_model was trained on other columns or with another n_seeds; "
                "only a ranker like this one can be continued"
            )
        self.columns_ = init_model.columns_.extended(self.columns_)
        self.trained_on_sparse_ = init_model.trained_on_sparse_
        return replace(data, X=self._in_form(self._check_rows(X)))

    def _validation_split(
        self, data: TrainingData, eval_set: tuple[Any, ...] | None, graded: bool
    ) -> tuple[TrainingData, Validation | None]:
        """Return training and validation data; the latter only where it is given or needed."""
        chosen = self.eval_metric or ("ndcg" if graded else "average_precision")
        metric, known = ValidationMetric.of(chosen), metrics.find_metric(chosen)
        by_grade = known is None or known.graded
        patience = self.early_stopping_rounds
        if eval_set is not None:
            if not 2 <= len(eval_set) <= 4:
                raise ValueError(
                    "eval_set must be (X, y), then sample_weight and qid if there are any"
                )
            given = self._check_evaluation(*eval_set)
            given = replace(given, X=self._in_form(given.X))
            return data, Validation(given, metric, by_grade, patience)
        if patience is None:
            return data, None
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        held_out = hold_out(data.y, self.validation_fraction, seed, data.qid)
        return data.rows(~held_out), Validation(data.rows(held_out), metric, by_grade, patience)

    def _warn_if_constant(self, raw_scores: np.ndarray) -> None:
        if len(raw_scores) > 1 and np.ptp(raw_scores) == 0:
            warnings.warn(
                "all scores are equal: no tree found a split. There may be too few positives for "
                f"min_child_weight={self.min_child_weight} (try a smaller one), the columns may hold "
                "nothing that tells positives from negatives, or the penalties are too strong",
                stacklevel=3,
            )


# -- the published methods by their own names ------------------------------------------------------

LAMBDA_METRICS = {
    "auc": "lambda_auc",
    "mauc": "lambda_mauc",
    "map": "lambda_map",
    "ndcg": "lambda_ndcg",
    "mrr": "lambda_mrr",
    "precision": "lambda_precision",
}

# The softmax leaves little curvature to positives that are not high yet: penalties of the usual size
# would keep their leaves at zero.
FREE_LEAVES: dict[str, Any] = {"min_child_weight": 1e-3, "reg_lambda": 1e-3, "max_leaf_step": 1.0}


def SGBAP(*, subsample: float = 0.5, **parameters: Any) -> GradientBoostingRanker:
    """Stochastic gradient boosting on the exponential surrogate of average precision.

    Frery et al. (2017), section 3.3: ``ap_exp`` on a random draw of the rows each round, which keeps one
    very high score from taking the whole gradient. Leaves are Newton's, with hardly any penalty and none
    above 1; a line search as in the paper (``step="line_search"``) moves mostly the leaf that is
    highest already.

    The softmax soon looks at nothing but the rows on top, so what early trees have not told apart, late
    ones hardly will. On wide, sparse rows let them grow to the end, as in a forest:
    ``SGBAP(max_depth=200, max_leaves=0, colsample_bynode=0.1)`` is what cross-validation chose on every
    split of w8a, before trees of 31 leaves or of depth 8 (``experiments/sgbap.py``).

    Examples
    --------
    >>> from toprank import SGBAP
    >>> SGBAP(n_estimators=50).objective
    'ap_exp'
    """
    return GradientBoostingRanker("ap_exp", subsample=subsample, **{**FREE_LEAVES, **parameters})


def SGBAPsig(
    *, alpha: float = 1.0, subsample: float = 0.5, **parameters: Any
) -> GradientBoostingRanker:
    """Stochastic gradient boosting on the sigmoid surrogate of average precision.

    Frery et al. (2017), section 3.2, with their term of 1/2 for a positive compared with itself.

    Examples
    --------
    >>> from toprank import SGBAPsig
    >>> SGBAPsig(alpha=2.0).objective.self_term
    0.5
    """
    objective = objectives.get("ap_sigmoid", alpha=alpha, self_term=0.5)
    return GradientBoostingRanker(objective, subsample=subsample, **parameters)


def LambdaMART(metric: str = "map", **parameters: Any) -> GradientBoostingRanker:
    """Trees on lambda gradients of a ranking metric.

    Burges (2010); for the area under the ROC curve and its multi-class form, Welleck (2016), Efficient
    AUC optimization for information ranking applications.

    Parameters
    ----------
    metric : {"auc", "mauc", "map", "ndcg", "mrr", "precision"}, default="map"
    **parameters
        Those of `GradientBoostingRanker`.

    Examples
    --------
    >>> from toprank import LambdaMART
    >>> LambdaMART("auc").objective
    'lambda_auc'
    """
    if metric not in LAMBDA_METRICS:
        raise ValueError(f"unknown metric {metric!r}; known: {', '.join(LAMBDA_METRICS)}")
    return GradientBoostingRanker(LAMBDA_METRICS[metric], **parameters)
