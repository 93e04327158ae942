"""PRankBoost on tables: boosting of clauses and paths on the area under the recall-precision curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.base import TrainingData
from toprank.rules.bins import Bins
from toprank.rules.boosters import PRankBooster
from toprank.rules.clauses import ClauseSource
from toprank.rules.ensemble import RuleEnsemble
from toprank.rules.search import Limits
from toprank.rules.variants import AreaBoosting
from toprank.rules.workers import Workers

__all__ = ["PRankBoost"]


class PRankBoost(AreaBoosting, RuleEnsemble):
    """Rank by a weighted sum of clauses chosen for the area under the recall-precision curve.

    RankBoost with two changes [1]_: negatives' weights sum to the skew N/P instead of 1, so that a weak
    learner sees precision as it is; and a weak learner is chosen, and its step set, by its weighted area
    under the recall-precision curve r: alpha = ln((1 + r)/(1 - r))/2. Each round draws a positive seed
    row in proportion to its weight now, and adds literals that are true of it, greedily.

    Parameters
    ----------
    n_estimators : int, default=100
        Most rounds.
    weak : {"clause", "path", "mix1", "mix2", "mix3", "mix4"}, default="clause"
        What a search maximises and what is kept of it:

        - "clause": the area of the clause alone; the clause;
        - "path": the area of all clauses from the most general to the best; all of them, and a row
          gets the share of the area at and above the recall of the most specific one that covers it;
        - "mix1": the area of the path; the clause;
        - "mix2": the area of the clause; the path;
        - "mix3": "clause" and "path" in turns;
        - "mix4": "clause" first, then "mix1" (see `switch_at`).

        In all of them the area that was maximised is the r of the step (with `step="area"`).
    switch_at : int, "stall" or None, default=None
        For "mix4": the round (from 0) that is the first to learn as "mix1", or "stall" to hold out rows
        and switch when their area under the recall-precision curve has not risen for ten rounds. None
        is half of `n_estimators`.
    step : {"area", "exact"}, default="area"
        "area": alpha from r, as in [1]_. "exact": the minimum of RankBoost's loss over pairs along the
        weak ranker, best with a `learning_rate` of about 0.5; not in the paper (see the experiment
        `prankboost` for where it helps).
    learning_rate : float, default=1.0
        Share of each step that is taken.
    max_length : int, default=6
        Most literals added to a clause.
    eval_metric : str or callable, default="recall_precision_area"
        What early stopping watches: a metric of `toprank.metrics`, or `f(y, scores, sample_weight=...)`.
    random_state : int, RandomState or None
        Fixes the seeds' draws.
    max_evaluated, max_seconds, max_bins, early_stopping_rounds, validation_fraction, n_jobs, verbose
        As in :class:`RankBoost`.

    Attributes
    ----------
    train_loss_ : ndarray
        Logarithm of RankBoost's loss over pairs after each round.
    rules_, rounds_, n_evaluated_, bins_, classes_, offset_, validation_scores_, best_iteration_
        As in :class:`RankBoost`.

    References
    ----------
    .. [1] Oliphant, Burnside & Shavlik (2009), "Boosting first-order clauses for large, skewed data
       sets", Inductive Logic Programming.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import PRankBoost
    >>> table = pd.DataFrame({"amount": [5.0, 900.0, 7.0, 800.0], "country": ["XX", "XX", "NL", "NL"]})
    >>> model = PRankBoost(n_estimators=1, random_state=0).fit(table, [0, 1, 0, 0])
    >>> print(model.rounds_[0].rules[0])
    amount > 850
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        weak: str = "clause",
        switch_at: int | str | None = None,
        step: str = "area",
        learning_rate: float = 1.0,
        max_length: int = 6,
        max_evaluated: int | None = None,
        max_seconds: float | None = None,
        max_bins: int = 255,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        eval_metric: Any = "recall_precision_area",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.weak = weak
        self.switch_at = switch_at
        self.step = step
        self.learning_rate = learning_rate
        self.max_length = max_length
        self.max_evaluated = max_evaluated
        self.max_seconds = max_seconds
        self.max_bins = max_bins
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PRankBoost:
        """Learn the clauses.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
            Numbers and categories; missing cells are allowed.
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.

        Returns
        -------
        self : PRankBoost
        """
        self._check_variant()
        self._learn(X, y, sample_weight)
        return self

    def _booster(
        self,
        bins: Bins,
        codes: np.ndarray,
        data: TrainingData,
        random: np.random.RandomState,
        workers: Workers,
    ) -> PRankBooster:
        limits = Limits(self.max_length, self.max_evaluated, self.max_seconds)
        return self._area_booster(ClauseSource(bins, codes, random, limits, workers), data)
