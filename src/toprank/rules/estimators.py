"""RankBoost, the p-norm push and PRankBoost on tables."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.parallel import ThreadPool
from toprank.rules.boosters import (
    STEPS,
    VARIANT_CONSTRAINTS,
    PRankBooster,
    RankBooster,
    waits_for_stall,
)
from toprank.rules.ensemble import BoostedRules, PathLookup
from toprank.rules.weak_rankers import (
    BinnedRows,
    ClauseSource,
    SearchLimits,
    StumpSource,
    WeakRankerSource,
)
from toprank.stopping import run_rounds
from toprank.validation import Interval, StrOptions

__all__ = ["PNormPush", "PRankBoost", "RankBoost"]

LENGTHS, DEFAULT_LENGTH = (1, 2, 3, 6), 3  # of clauses: what inner folds choose from
LENGTH_FOLDS = 3


@fill_docstring
class RankBoost(BoostedRules):
    """Rank by a weighted sum of rules that minimises the exponential loss over pairs.

    The loss is the mean over pairs of a positive i and a negative k of exp(-(f_i - f_k)). It factorises,
    so each round costs one pass over the rows [1]_. Row weights are pair weights by their product.

    Parameters
    ----------
    n_estimators : int, default=100
        Maximum number of rounds.
    weak : {"stump", "clause"}, default="stump"
        "stump": the single literal with the greatest r of all. "clause": a conjunction found by greedy
        search from a positive seed row, drawn in proportion to its weight: the baseline that [2]_
        compares PRankBoost with.
    step : {"exact", "bound"}, default="exact"
        Length of a step: the minimum of the loss, or of Freund's bound on it.
    learning_rate : float, default=0.5
        Share of each step that is taken; 1 is the published algorithm. Where rows are many, 1 or more
        rounds may be better.
    max_length : int, default=4
        Maximum number of literals added to a clause.
    %(clause_limits)s
    %(max_bins)s
    %(rule_validation)s
    eval_metric : str or callable, default="average_precision"
        A metric of `toprank.metrics`, or `f(y, scores, sample_weight=...)`.
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    %(rule_attributes)s
    train_loss_ : ndarray
        Logarithm of the loss after each round.
    bins_ : BinnedColumns
        The columns, their bins and categories.
    %(classes)s

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedRules._parameter_constraints,
        "weak": [StrOptions({"stump", "clause"})],
        "step": [StrOptions(set(STEPS))],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        weak: str = "stump",
        step: str = "exact",
        learning_rate: float = 0.5,
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

    def _push(self) -> float:
        """Return the exponent of the loss of a negative."""
        return 1.0

    def _booster(self, rows: BinnedRows, train: TrainingData, /) -> RankBooster:
        source: WeakRankerSource = StumpSource(rows)
        if self.weak == "clause":
            limits = SearchLimits(self.max_length, self.max_evaluated, self.max_seconds)
            source = ClauseSource(rows, limits)
        return RankBooster(
            source,
            train.y,
            train.sample_weight,
            push=self._push(),
            step=self.step,
            learning_rate=self.learning_rate,
        )


@fill_docstring
class PNormPush(RankBoost):
    """Rank by a weighted sum of rules that pushes down the highest negatives.

    The loss is the sum over negatives k of (the sum over positives i of exp(-(f_i - f_k)))^p [1]_: the
    greater p, the more the negatives at the top of the list weigh. p = 1 is RankBoost. The loss
    factorises into (sum exp(-f_i))^p (sum exp(p f_k)), so each round costs one pass over the rows.

    Parameters
    ----------
    p : float, default=4.0
        At least 1.
    n_estimators, weak, step, learning_rate, max_length, eval_metric
        As in :class:`RankBoost`.
    %(clause_limits)s
    %(max_bins)s
    %(rule_validation)s
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    %(rule_attributes)s
    train_loss_ : ndarray
        Logarithm of the loss after each round.
    bins_ : BinnedColumns
        The columns, their bins and categories.
    %(classes)s

    References
    ----------
    .. [1] Rudin (2009), "The P-norm push: a simple convex ranking algorithm that concentrates at the
       top of the list", Journal of Machine Learning Research 10.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PNormPush
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = PNormPush(p=8, n_estimators=30).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RankBoost._parameter_constraints,
        "p": [Interval(Real, 1, None, closed="left")],
    }

    def __init__(
        self,
        p: float = 4.0,
        n_estimators: int = 100,
        *,
        weak: str = "stump",
        step: str = "exact",
        learning_rate: float = 0.5,
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
        super().__init__(
            n_estimators,
            weak=weak,
            step=step,
            learning_rate=learning_rate,
            max_length=max_length,
            max_evaluated=max_evaluated,
            max_seconds=max_seconds,
            max_bins=max_bins,
            early_stopping_rounds=early_stopping_rounds,
            validation_fraction=validation_fraction,
            eval_metric=eval_metric,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.p = p

    def _push(self) -> float:
        return float(self.p)


@fill_docstring
class PRankBoost(BoostedRules):
    """Rank by a weighted sum of clauses chosen for the area under the recall-precision curve.

    RankBoost with two changes [1]_: negatives' weights sum to the skew N/P instead of 1, so that a weak
    learner sees precision as it is; and a weak learner is chosen, and its step set, by its weighted area
    under the recall-precision curve r: alpha = ln((1 + r)/(1 - r))/2. Each round draws a positive seed
    row in proportion to its weight now, and adds literals that are true of it, greedily.

    Parameters
    ----------
    n_estimators : int, default=100
        Maximum number of rounds.
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
    max_length : int or "auto", default=3
        Maximum number of literals added to a clause; "auto" chooses 1, 2, 3 or 6 by the `eval_metric`
        of three inner folds, which takes about eight times as long. For the best ranking together with
        `step="exact"` and `learning_rate=0.25` (see the experiment `rule_defaults`).
    %(clause_limits)s
    %(max_bins)s
    %(rule_validation)s
    eval_metric : str or callable, default="recall_precision_area"
        A metric of `toprank.metrics`, or `f(y, scores, sample_weight=...)`.
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    %(rule_attributes)s
    train_loss_ : ndarray
        Logarithm of RankBoost's loss over pairs after each round.
    max_length_ : int
        The `max_length` that was used.
    bins_ : BinnedColumns
        The columns, their bins and categories.
    %(classes)s

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedRules._parameter_constraints,
        **VARIANT_CONSTRAINTS,
        "max_length": [Interval(Integral, 1, 255, closed="both"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        weak: str = "clause",
        switch_at: int | str | None = None,
        step: str = "area",
        learning_rate: float = 1.0,
        max_length: int | str = 3,
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

    def _holds_out(self) -> bool:
        return super()._holds_out() or waits_for_stall(self)

    def _booster(self, rows: BinnedRows, train: TrainingData, /) -> PRankBooster:
        if self.max_length == "auto":
            self.max_length_ = self._choose_length(rows, train)
        else:
            self.max_length_ = int(self.max_length)
        return self._booster_of(rows, train, self.max_length_)

    def _booster_of(self, rows: BinnedRows, train: TrainingData, max_length: int) -> PRankBooster:
        limits = SearchLimits(max_length, self.max_evaluated, self.max_seconds)
        return PRankBooster.of(self, ClauseSource(rows, limits), train)

    def _choose_length(self, rows: BinnedRows, train: TrainingData) -> int:
        """Return the length whose boosters are best on inner folds, the shorter one if two are."""
        metric = self._validation_metric()
        pool = rows.pool or ThreadPool(1)
        found: list[list[float]] = []
        for _, (inside, outside) in rows.folds(train.y > 0, LENGTH_FOLDS):
            part, held = train.rows(inside), train.rows(outside)
            binned = replace(rows, codes=np.ascontiguousarray(rows.codes[:, inside]))
            found.append([])
            for length in LENGTHS:
                rounds = run_rounds(self._booster_of(binned, part, length), self.n_estimators)
                lookup = PathLookup.of(rows.bins, rounds)
                scores = lookup.scores(rows.codes[lookup.used][:, outside], pool)
                found[-1].append(metric(held.y, scores, held.sample_weight))
        if not found:  # too few positives for folds
            return DEFAULT_LENGTH
        means = np.round(np.mean(found, axis=0), 9)
        return LENGTHS[int(np.argmax(means if metric.greater_is_better else -means))]
