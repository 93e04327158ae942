"""RankBoost.B: boosting of stumps or clauses on the exponential loss over pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.base import TrainingData
from toprank.rules.bins import Bins
from toprank.rules.boosters import STEPS, RankBooster
from toprank.rules.checks import check_choice
from toprank.rules.clauses import ClauseSource
from toprank.rules.ensemble import RuleEnsemble
from toprank.rules.search import Limits
from toprank.rules.source import WeakRankerSource
from toprank.rules.stumps import StumpSource
from toprank.rules.workers import Workers

__all__ = ["RankBoost"]


class RankBoost(RuleEnsemble):
    """Rank by a weighted sum of rules that minimises the exponential loss over pairs.

    The loss is the mean over pairs of a positive i and a negative k of exp(-(f_i - f_k)). It factorises,
    so each round costs one pass over the rows [1]_. Row weights are pair weights by their product.

    Parameters
    ----------
    n_estimators : int, default=100
        Most rounds.
    weak : {"stump", "clause"}, default="stump"
        "stump": the single literal with the greatest r of all. "clause": a conjunction found by greedy
        search from a positive seed row, drawn in proportion to its weight: the baseline that [2]_
        compares PRankBoost with.
    step : {"exact", "bound"}, default="exact"
        Length of a step: the minimum of the loss, or of Freund's bound on it.
    learning_rate : float, default=1.0
        Share of each step that is taken.
    max_length : int, default=4
        Most literals added to a clause.
    max_evaluated : int, optional
        Stop the search for a clause after so many were scored.
    max_seconds : float, optional
        Stop the search for a clause after this time; the answer then depends on the machine.
    max_bins : int, default=255
        Most bins of a column; missing values have a bin of their own.
    early_stopping_rounds : int, optional
        Hold out rows and stop when so many rounds brought no better `eval_metric`.
    validation_fraction : float, default=0.1
        Share of each class that is held out.
    eval_metric : str or callable, default="average_precision"
        A metric of `toprank.metrics`, or `f(y, scores, sample_weight=...)`.
    n_jobs : int, optional
        Threads; None is all cores. The answer does not depend on it.
    random_state : int, RandomState or None
    verbose : int, default=0
        Above 0 shows a progress bar.

    Attributes
    ----------
    rules_ : DataFrame
        The rules, one line each.
    rounds_ : tuple of KeptRound
        The same as data.
    n_evaluated_ : ndarray
        Rules scored in each round.
    train_loss_ : ndarray
        Logarithm of the loss after each round.
    bins_ : Bins
    classes_ : ndarray of shape (2,)
    offset_ : float
        The threshold that was subtracted from the scores.
    validation_scores_ : ndarray
        The metric on the rows held out, if any were.
    best_iteration_ : int
        Rounds kept by early stopping.

    References
    ----------
    .. [1] Freund, Iyer, Schapire & Singer (2003), "An efficient boosting algorithm for combining
       preferences", Journal of Machine Learning Research 4.
    .. [2] Oliphant, Burnside & Shavlik (2009), "Boosting first-order clauses for large, skewed data
       sets", Inductive Logic Programming.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import RankBoost
    >>> table = pd.DataFrame({"amount": [5.0, 900.0, 7.0, 800.0], "country": ["NL", "XX", "XX", "NL"]})
    >>> model = RankBoost(n_estimators=1).fit(table, [0, 1, 0, 1])
    >>> model.rules_["rule"].tolist()
    ['amount > 403.5']
    >>> model.predict(table).tolist()
    [0, 1, 0, 1]
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        weak: str = "stump",
        step: str = "exact",
        learning_rate: float = 1.0,
        max_length: int = 4,
        max_evaluated: int | None = None,
        max_seconds: float | None = None,
        max_bins: int = 255,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        eval_metric: Any = "average_precision",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.weak = weak
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RankBoost:
        """Learn the rules.

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
        self : RankBoost
        """
        check_choice(self, "weak", ("stump", "clause"))
        check_choice(self, "step", tuple(STEPS))
        self._learn(X, y, sample_weight)
        return self

    def _push(self) -> float:
        """The exponent on the loss of a negative."""
        return 1.0

    def _booster(
        self,
        bins: Bins,
        codes: np.ndarray,
        data: TrainingData,
        random: np.random.RandomState,
        workers: Workers,
    ) -> RankBooster:
        source: WeakRankerSource
        if self.weak == "stump":
            source = StumpSource(bins, codes, workers)
        else:
            limits = Limits(self.max_length, self.max_evaluated, self.max_seconds)
            source = ClauseSource(bins, codes, random, limits, workers)
        return RankBooster(
            source,
            data.y,
            data.sample_weight,
            push=self._push(),
            step=self.step,
            learning_rate=self.learning_rate,
        )
