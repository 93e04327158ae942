"""GradientBoostingRanker: any objective, on XGBoost's histogram trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank import objectives
from toprank.base import BaseRanker, TrainingData
from toprank.boosting._xgboost import predict_margin, require_xgboost
from toprank.boosting.automatic import automatic_rate
from toprank.boosting.engine import Boosted, Callback, Settings, boost
from toprank.boosting.explain import contributions, pair_contributions
from toprank.boosting.tree_parameters import tree_parameters
from toprank.boosting.validation import split_validation, validation_metric
from toprank.progress import progress

__all__ = ["GradientBoostingRanker"]

STEPS = ("newton", "line_search")


class GradientBoostingRanker(BaseRanker):
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
        sum to its positives: a leaf of 1 holds about one positive's worth of curvature.
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
        for each, as Frery et al. (2017) have it.
    n_seeds : int, default=1
        Train this many boosters with different seeds and average their scores.
    early_stopping_rounds : int, optional
        Stop when the validation metric has not risen for so many rounds, and keep the best round.
        Validation rows come from `eval_set`, or are split off by `validation_fraction`.
    validation_fraction : float, default=0.2
        Share of the rows (stratified) or queries held out for early stopping.
    eval_metric : str or callable, optional
        Name of a metric of `toprank.metrics` or f(y, scores); the higher the better. Average
        precision by default, NDCG for graded objectives.
    monotone_constraints : mapping or sequence of {-1, 0, 1}, optional
        By column name, or one for each column.
    interaction_constraints : sequence of sequences, optional
        Groups of columns (names or positions) that may meet in one branch.
    device : str, default="cpu"
        XGBoost's device, such as "cpu" or "cuda".
    n_jobs : int, optional
        Threads; all cores by default.
    random_state : int, RandomState or None
        Fixes the draws of rows and columns and the validation split.
    verbose : int, default=0
        Above 0, show a progress bar.

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
    classes_ : ndarray of shape (2,)
    offset_ : float
        The threshold that was subtracted from the scores.

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

    _accepts_missing = True
    _accepts_categories = True
    _accepts_sparse = True

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
            A fitted ranker to go on from: its trees come first.
        callbacks : sequence of callables
            Each is called with a `Round` after each round; a true answer ends the fit.

        Returns
        -------
        self : GradientBoostingRanker
        """
        objective = self._objective()
        self._check_parameters()
        data = self._check_training(X, y, sample_weight, qid, keep_zero_weights=True)
        self.trained_on_sparse_ = bool(sparse.issparse(data.X))
        training, validation = self._validation_split(data, eval_set)
        results = self._boost(objective, training, validation, init_model, callbacks)
        self.boosters_ = [result.booster for result in results]
        self.n_estimators_ = results[0].n_rounds
        self.validation_scores_ = list(results[0].history)
        raw_scores = self._raw_scores(data.X)
        self._warn_if_constant(raw_scores)
        self._set_threshold(raw_scores, data)
        return self

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Yield the scores of rows after each round (with the final threshold subtracted)."""
        check_is_fitted(self)
        X = self._form(self._check_rows(X))
        total = np.zeros(X.shape[0])
        for number in range(max(b.num_boosted_rounds() for b in self.boosters_)):
            for booster in self.boosters_:
                if number < booster.num_boosted_rounds():
                    total += predict_margin(booster, X, (number, number + 1)) / len(self.boosters_)
            yield total - self.offset_

    def explain(self, X: Any) -> pd.DataFrame:
        """Split each row's score into what each column adds (SHAP values of the trees).

        Returns
        -------
        table : DataFrame of shape (n_rows, n_columns + 1)
            One column for each feature and a last one, ``(base)``; a row sums to its score.
        """
        check_is_fitted(self)
        return contributions(self, self._form(self._check_rows(X)))

    def explain_pair(self, a: Any, b: Any) -> pd.DataFrame:
        """Say why row `a` is ranked above (or below) row `b`.

        Parameters
        ----------
        a, b : one row each, in any form that `decision_function` takes (a table or array of one row)

        Returns
        -------
        table : DataFrame
            For each column its value in `a` and in `b` and what it adds to the difference of their
            scores, the greatest first; the last column sums to ``score(a) - score(b)``.
        """
        check_is_fitted(self)
        return pair_contributions(
            self, self._form(self._check_rows(a)), self._form(self._check_rows(b))
        )

    @property
    def feature_importances_(self) -> np.ndarray:
        check_is_fitted(self)
        gain = np.zeros(self.n_features_in_)
        for booster in self.boosters_:
            for key, value in booster.get_score(importance_type="total_gain").items():
                gain[int(key[1:])] += value
        return gain / gain.sum() if gain.sum() > 0 else gain

    # -- parts of fit ----------------------------------------------------------------------------

    def _objective(self) -> objectives.Objective:
        if isinstance(self.objective, objectives.Objective):
            return self.objective
        return objectives.get(self.objective)

    def _accepts_grades(self) -> bool:
        return self._objective().graded

    def _check_parameters(self) -> None:
        require_xgboost()
        if self.step not in STEPS:
            raise ValueError(f"step must be one of {', '.join(STEPS)}, got {self.step!r}")
        for name in ("n_estimators", "n_seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        if self.max_depth == 0 and self.max_leaves == 0:
            raise ValueError(
                "max_depth and max_leaves are both 0: one of them must bound the trees"
            )
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be above 0, got {self.learning_rate!r}")

    def _validation_split(
        self, data: TrainingData, eval_set: tuple[Any, ...] | None
    ) -> tuple[TrainingData, TrainingData | None]:
        """Training and validation data; the latter only where it is given or needed."""
        if eval_set is not None:
            return data, self._check_eval_set(eval_set)
        if self.early_stopping_rounds is None:
            return data, None
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        held_out = split_validation(data, self.validation_fraction, seed)
        return data.rows(~held_out), data.rows(held_out)

    def _check_eval_set(self, eval_set: tuple[Any, ...]) -> TrainingData:
        if not 2 <= len(eval_set) <= 4:
            raise ValueError(
                "eval_set must be (X, y), (X, y, sample_weight) or (X, y, weight, qid)"
            )
        data = self._check_evaluation(*eval_set)
        return replace(data, X=self._form(data.X))

    def _boost(
        self,
        objective: objectives.Objective,
        data: TrainingData,
        validation: TrainingData | None,
        init_model: GradientBoostingRanker | None,
        callbacks: Sequence[Callback],
    ) -> list[Boosted]:
        """One booster for each seed."""
        settings = Settings(
            objective=objective,
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate or automatic_rate(len(data.y)),
            step=self.step,
            largest_move=self.max_leaf_step or np.inf,
            subsample=self.subsample,
            max_bins=self.max_bins,
            n_jobs=self.n_jobs,
            trees=tree_parameters(self, len(data.y)),
        )
        starts = self._starts(init_model)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_seeds)
        total = self.n_estimators * self.n_seeds
        with progress(total, f"boosting {objective.name}", enabled=self.verbose > 0) as advance:
            return [
                boost(
                    data,
                    self.columns_,
                    settings,
                    seed=int(seed),
                    validation=validation,
                    metric=validation_metric(self.eval_metric, objective.graded),
                    patience=self.early_stopping_rounds,
                    callbacks=[*callbacks, lambda _: advance()],
                    start=start,
                )
                for seed, start in zip(seeds, starts, strict=True)
            ]

    def _starts(self, init_model: GradientBoostingRanker | None) -> list[Any]:
        """The boosters to go on from, one for each seed."""
        if init_model is None:
            return [None] * self.n_seeds
        check_is_fitted(init_model)
        if (
            init_model.columns_.names != self.columns_.names
            or len(init_model.boosters_) != self.n_seeds
        ):
            raise ValueError(
                "init_model was trained on other columns or with another n_seeds; "
                "only a ranker like this one can be continued"
            )
        self.columns_ = init_model.columns_
        return list(init_model.boosters_)

    def _warn_if_constant(self, raw_scores: np.ndarray) -> None:
        if len(raw_scores) > 1 and np.ptp(raw_scores) == 0:
            warnings.warn(
                "all scores are equal: no tree found a split. There may be too few positives for "
                f"min_child_weight={self.min_child_weight} (try a smaller one), the columns may hold "
                "nothing that tells positives from negatives, or the penalties are too strong",
                stacklevel=3,
            )

    def _raw_scores(self, X: Any) -> np.ndarray:
        X = self._form(X)
        return np.mean([predict_margin(booster, X) for booster in self.boosters_], axis=0)

    def _form(self, X: Any) -> Any:
        """Rows in the form of the training data: what a sparse matrix leaves out is missing to it."""
        if self.trained_on_sparse_ and not sparse.issparse(X):
            return sparse.csr_matrix(X)
        if not self.trained_on_sparse_ and sparse.issparse(X):
            return X.toarray()
        return X
