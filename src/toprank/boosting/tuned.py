"""TunedLogisticBooster: the yardstick, XGBoost with the logistic loss tuned by inner validation."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from toprank.base import TrainingData
from toprank.boosting.base import BoostedTreesRanker
from toprank.boosting.engine import StratifiedDraw
from toprank.boosting.settings import MAX_CATEGORIES
from toprank.boosting.training import FEW_CELLS, best_round, mean_curve
from toprank.boosting.xgboost_helpers import quantile_matrix, require_xgboost
from toprank.docstrings import fill_docstring
from toprank.folds import QUARTERS, SplitKeys, inner_splits
from toprank.metrics import average_precision
from toprank.parallel import ThreadPool, thread_count
from toprank.progress import progress
from toprank.validation import PARAMETER_CONSTRAINTS

__all__ = ["TunedLogisticBooster"]

FEW_ROWS = 5000  # below, or with few positives, choose by folds; otherwise one quarter is held out
FEW_POSITIVES = 300
FOLDS, REPEATS = 5, 2
SEEDS = 3  # averaged where rows are few, as GradientBoostingRanker does
KEPT = 1 / 3  # of the settings after each stage of the search
EARLY_ROUNDS, MEASURED = 25, 5  # each of the first rounds is measured, then every fifth

# rounds times learning rate: with few positives, early rounds look good by chance
LEAST_LENGTH = 2.0

# Settings that users of XGBoost start from; the others are drawn at random. The first is left only for one
# that is better by more than chance explains.
USUAL = (
    {"max_depth": 5, "learning_rate": 0.05, "subsample": 0.7, "colsample_bynode": 0.3},
    {"max_depth": 6, "learning_rate": 0.1},
    {"max_depth": 5, "learning_rate": 0.03},
)
XGBOOST_DEFAULTS = {
    "subsample": 1.0,
    "colsample_bynode": 1.0,
    "reg_lambda": 1.0,
    "min_child_weight": 1.0,
    "scale_pos_weight": 1.0,
}

InnerSplit = tuple[np.ndarray, np.ndarray]


@fill_docstring
class TunedLogisticBooster(BoostedTreesRanker):
    """XGBoost with the logistic loss, every setting that matters chosen for average precision.

    What a careful user of XGBoost would do without a ranking objective: the yardstick that any other
    model has to beat. The settings that users start from and random draws of depth (2 to 8), learning rate
    (0.02 to 0.3), rows and columns drawn, penalty, least weight of a child and weight of the positives are
    boosted on part of the training rows and judged by the average precision of validation rows after
    each round. The best third goes on to a second stage and the best third of those to a third
    (successive halving); the best setting is boosted once more on all rows, below 5,000 of them with three
    seeds whose scores are averaged. Where several splits judge, the
    first usual setting is left only for one that leads by more than the standard error of its lead.

    Below 5,000 rows the stages have two, five and ten validation folds (five folds, repeated), and below 300
    positives two and five; otherwise one quarter of the rows validates boosters of a ninth, a third and all of
    the others. With `groups` the folds are made of whole groups. With `time` they are the last quarters of the
    rows in time (only the latest where rows and positives are many), each at least `gap` later than what is
    trained on, and without the rows of its groups.

    Parameters
    ----------
    n_candidates : int, default=16
        Settings to try.
    n_estimators : int, default=600
        Most rounds.
    early_stopping_rounds : int, default=100
        A setting is given up when the validation has not improved for so many rounds.
    %(n_jobs)s
    random_state : int, RandomState or None
        Fixes the inner splits, the settings tried and the draws of rows and columns.
    %(verbose)s

    Attributes
    ----------
    best_params_ : dict
        The chosen settings by XGBoost's names, `n_estimators` (rounds) among them.
    best_score_ : float
        Average precision of the best setting on the inner validation; NaN where a class is too small
        to be split, and the first setting was taken untried.
    boosters_ : list of xgboost.Booster
        Boosted on all rows, one for each seed.
    %(classes)s

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import TunedLogisticBooster
    >>> X, y = make_classification(600, weights=[0.9], random_state=0)
    >>> model = TunedLogisticBooster(n_candidates=4, n_estimators=30, random_state=0).fit(X, y)
    >>> model.best_params_["n_estimators"] <= 30
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "n_candidates": PARAMETER_CONSTRAINTS["n_estimators"],
        "early_stopping_rounds": PARAMETER_CONSTRAINTS["n_estimators"],
    }

    def __init__(
        self,
        *,
        n_candidates: int = 16,
        n_estimators: int = 600,
        early_stopping_rounds: int = 100,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_candidates = n_candidates
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
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
            Missing values are NaN or None; text and category columns are categories, dates, also those
            written as text, days since 1970.
        y : array of shape (n_rows,)
            Two labels, the greater one positive.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.
        %(inner_splits)s

        Returns
        -------
        self : TunedLogisticBooster
        """
        require_xgboost()
        data = self._encode_categories(self._check_training(X, y, sample_weight), MAX_CATEGORIES)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        weights = np.asarray(1.0 if sample_weight is None else sample_weight)
        kept = weights > 0 if weights.ndim else slice(None)  # or one number for all rows
        n_rows = len(weights) if weights.ndim else len(data.y)
        keys = SplitKeys.of(n_rows, groups, time, gap).rows(kept)
        if data.sample_weight is not None:  # penalties and least weights count rows
            data = replace(data, sample_weight=data.sample_weight / data.sample_weight.mean())
        self.trained_on_sparse_ = bool(sparse.issparse(data.X))
        inner = choose_splits(data.y, keys, seed)
        self.best_params_, self.best_score_ = self._choose(data, inner, seed)
        chosen = {k: v for k, v in self.best_params_.items() if k != "n_estimators"}
        rounds = self.best_params_["n_estimators"]
        matrix, n_seeds = self._matrix(data, self.n_jobs), SEEDS if len(data.y) < FEW_ROWS else 1
        self.boosters_ = [
            require_xgboost().train(self._parameters(chosen, seed + k, self.n_jobs), matrix, rounds)
            for k in range(n_seeds)
        ]
        self.booster_weights_ = np.full(n_seeds, 1 / n_seeds)
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    # -- parts of fit ----------------------------------------------------------------------------

    def _choose(
        self, data: TrainingData, inner: list[InnerSplit], seed: int
    ) -> tuple[dict[str, Any], float]:
        """Return the setting with the best validation, its rounds in it, and its value."""
        settings = candidates(self.n_candidates, data.y, seed)
        if not inner:
            return {**settings[0], "n_estimators": min(self.n_estimators, 100)}, float("nan")
        stages, splits = search_stages(inner, data.y, seed)
        curves: dict[tuple[int, int], list[float]] = {}
        few_cells = np.prod(data.X.shape) < FEW_CELLS  # then rather a setting to each thread
        n_jobs = 1 if few_cells else self.n_jobs  # of one setting

        def bin_rows(k: int) -> tuple[Any, Any]:
            train, validation = splits[k]
            training = self._matrix(data.rows(train), n_jobs)
            return training, self._matrix(data.rows(validation), n_jobs, reference=training)

        # XGBoost's matrices are not made for several threads
        matrices = bin_rows if few_cells else cache(bin_rows)

        def curve(tried: tuple[int, int]) -> list[float]:
            c, k = tried
            return self._curve(*matrices(k), self._parameters(settings[c], seed, n_jobs))

        alive = list(range(len(settings)))
        values: dict[int, np.ndarray] = {}
        rounds: dict[int, int] = {}
        with (
            progress(len(stages), "tuning the yardstick", self.verbose > 0) as advance,
            ThreadPool(self.n_jobs if few_cells else 1) as pool,
        ):
            for stage in stages:
                new = [(c, k) for c in alive for k in stage if (c, k) not in curves]
                curves |= zip(new, pool.map(curve, new), strict=True)
                for c in alive:
                    found = [curves[c, k] for k in stage]
                    rounds[c] = _choose_round(found, settings[c]["learning_rate"])
                    values[c] = np.array([curve[min(rounds[c], len(curve)) - 1] for curve in found])
                # ties: the setting that was tried first
                ranked = sorted(alive, key=lambda c: -values[c].mean())
                advance(tried=len(ranked))
                alive = ranked[: int(np.ceil(KEPT * len(ranked)))]
                alive = alive if 0 in alive else [*alive, 0]
        best = _better_than_usual(ranked[0], values)
        return {**settings[best], "n_estimators": rounds[best]}, float(values[best].mean())

    def _matrix(self, data: TrainingData, n_jobs: int | None, reference: Any = None) -> Any:
        matrix = quantile_matrix(
            data.X, self.columns_, max_bin=256, sample_weight=data.sample_weight, n_jobs=n_jobs,
            reference=reference,
        )  # fmt: skip
        matrix.set_label(data.y)
        return matrix

    def _curve(self, training: Any, validation: Any, parameters: dict[str, Any]) -> list[float]:
        """Return the average precision of the validation rows after each round.

        To measure takes as long as a round: late ones, which differ little, are measured now and then, and
        between them the curve is a line.
        """
        booster = require_xgboost().Booster(parameters, [training, validation])
        positive, weight = validation.get_label() > 0, validation.get_weight()
        measured: list[int] = []
        values: list[float] = []
        for number in range(1, self.n_estimators + 1):
            booster.update(training, number - 1)
            if number > EARLY_ROUNDS and number % MEASURED and number < self.n_estimators:
                continue
            scores = booster.predict(validation, output_margin=True)
            measured.append(number)
            values.append(
                average_precision(positive, scores, sample_weight=weight if len(weight) else None)
            )
            if number - measured[int(np.argmax(values))] >= self.early_stopping_rounds:
                break
        return np.interp(np.arange(1, measured[-1] + 1), measured, values).tolist()

    def _parameters(self, setting: dict[str, Any], seed: int, n_jobs: int | None) -> dict[str, Any]:
        return {
            "objective": "binary:logistic",
            "disable_default_eval_metric": True,
            "tree_method": "hist",
            "max_bin": 256,
            "seed": seed,
            "nthread": thread_count(n_jobs),
            **setting,
        }


def candidates(n_candidates: int, y: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """Return settings to try: those that users start from, then random draws."""
    random = np.random.default_rng(seed)
    positive = float(np.mean(y > 0))
    drawn = [
        {
            "max_depth": int(random.integers(2, 9)),
            "learning_rate": _log_uniform(random, 0.02, 0.3),
            "subsample": float(random.uniform(0.5, 1.0)),
            "colsample_bynode": float(random.uniform(0.2, 1.0)),
            "reg_lambda": _log_uniform(random, 0.05, 10.0),
            "min_child_weight": _log_uniform(random, 0.02, 5.0),
            "scale_pos_weight": float(random.choice([1.0, np.sqrt((1 - positive) / positive)])),
        }
        for _ in range(n_candidates - len(USUAL))
    ]
    return [{**XGBOOST_DEFAULTS, **usual} for usual in USUAL[:n_candidates]] + drawn


def _log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def search_stages(
    inner: list[InnerSplit], y: np.ndarray, seed: int
) -> tuple[list[list[int]], list[InnerSplit]]:
    """Return the splits that each stage judges by, as positions in the list of splits that follows.

    Several splits: more of them in each stage. One: a ninth, a third, then all of its training rows, as
    long as there are many.
    """
    if len(inner) > 1:
        sizes = sorted({min(n, len(inner)) for n in (2, FOLDS, FOLDS * REPEATS)})
        return [list(range(n)) for n in sizes], inner
    ((train, validation),) = inner
    if len(y) < FEW_ROWS:
        return [[0]], inner
    positive, present = y[train] > 0, np.ones(len(train), dtype=bool)
    parts = [train[StratifiedDraw(positive, present, share, seed)()] for share in (1 / 9, 1 / 3)]
    return [[0], [1], [2]], [(rows, validation) for rows in (*parts, train)]


def choose_splits(y: np.ndarray, keys: SplitKeys, seed: int) -> list[InnerSplit]:
    """Return rows to boost on and rows to judge by; empty where a class is too small to be split."""
    few = len(y) < FEW_ROWS or np.count_nonzero(y > 0) < FEW_POSITIVES
    splits = inner_splits(
        y, keys, n_splits=FOLDS if few else QUARTERS,
        n_repeats=REPEATS if len(y) < FEW_ROWS else 1, random_state=seed,
    )  # fmt: skip
    return [(split.train, split.test) for split in (splits if few else splits[:1])]


def _choose_round(curves: list[list[float]], learning_rate: float) -> int:
    """Return the best round of the mean curve, but not one of the very first."""
    curve = mean_curve(curves)
    least = min(int(np.ceil(LEAST_LENGTH / learning_rate)), len(curve))
    return least - 1 + best_round(curve[least - 1 :])[0]


def _better_than_usual(best: int, values: dict[int, np.ndarray]) -> int:
    """Return the best setting, or the first where the lead over it is within its standard error."""
    lead = values[best] - values[0]
    if len(lead) < 2:
        return best
    return best if lead.mean() > lead.std(ddof=1) / np.sqrt(len(lead)) else 0
