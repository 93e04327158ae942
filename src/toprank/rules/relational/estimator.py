"""Boosted clauses over relational data: PRankBoost and its RankBoost baseline."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from toprank.base import TrainingData
from toprank.rules.boosters import (
    STEPS,
    VARIANT_CONSTRAINTS,
    PRankBooster,
    RankBooster,
    waits_for_stall,
)
from toprank.rules.ensemble import BoostedRules
from toprank.rules.relational.ensemble import RelationalEnsemble
from toprank.rules.relational.source import RelationalSource
from toprank.validation import Interval, StrOptions

__all__ = ["RelationalPRankBoost", "RelationalRankBoost"]

CONSTRAINTS = {
    **BoostedRules._parameter_constraints,
    "max_depth": [Interval(Integral, 0, None, closed="left")],
    "recall": [Interval(Integral, 1, None, closed="left")],
    "lookahead": [Interval(Integral, 0, None, closed="left")],
}


class RelationalPRankBoost(RelationalEnsemble):
    """Rank examples by clauses chosen for the area under the recall-precision curve.

    PRankBoost [1]_ on first-order clauses. Each round draws a positive example in proportion to its
    weight now, gathers the facts around it (its bottom clause), and refines the most general clause
    greedily with literals that are true of it; literals may introduce new variables. All literals of a
    step are scored by few queries in DuckDB.

    Parameters
    ----------
    n_estimators : int, default=100
        Most rounds.
    max_length : int, default=4
        Most literals of a clause.
    max_depth : int, default=2
        Deepest variable: how many literals lie between it and the head.
    recall : int, default=10
        Most facts that one call of a mode adds to a bottom clause, where the mode does not say. It
        limits which literals are tried, never what a clause covers.
    lookahead : int, default=5
        So many of the literals that introduce variables, the best ones, are at each step also tried
        together with a second literal on these variables. 0 is none.
    max_evaluated : int, optional
        Most clauses scored in one search.
    max_seconds : float, optional
        Stop a search after this time; the answer then depends on the machine.
    n_jobs : int, optional
        Threads of DuckDB; None is all cores. The answer does not depend on it.
    weak, switch_at, step, learning_rate, eval_metric, random_state, early_stopping_rounds,\
    validation_fraction, verbose
        As in :class:`PRankBoost`; rows are examples here.

    Attributes
    ----------
    rules_ : DataFrame
        The clauses, one line each.
    rounds_ : tuple of KeptRound
        The same as data; the rules are `Clause` objects.
    schema_ : Schema
        Predicates, types and modes of the training data.
    text_types_ : tuple of str
        Argument types that the training data has as text and as numbers; `to_sql` casts them to text.
    n_evaluated_, train_loss_, classes_, offset_, validation_scores_, best_iteration_
        As in :class:`PRankBoost`.

    References
    ----------
    .. [1] Oliphant, Burnside & Shavlik (2009), "Boosting first-order clauses for large, skewed data
       sets", Inductive Logic Programming.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import RelationalData, RelationalPRankBoost
    >>> tables = {
    ...     "friends": pd.DataFrame({"a": ["ann", "bob", "dan"], "b": ["bob", "carl", "ann"]}),
    ...     "smokes": pd.DataFrame({"who": ["bob"]}),
    ... }
    >>> people = pd.DataFrame({"person": ["ann", "bob", "carl", "dan"]})
    >>> data = RelationalData(tables, people, target="cancer")
    >>> model = RelationalPRankBoost(n_estimators=1, random_state=0).fit(data, [1, 0, 0, 0])
    >>> print(model.rounds_[0].rules[0])
    cancer(A) :- friends(A,B), smokes(B)
    >>> model.predict(data).tolist()
    [1, 0, 0, 0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        **VARIANT_CONSTRAINTS,
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        weak: str = "clause",
        switch_at: int | str | None = None,
        step: str = "area",
        learning_rate: float = 1.0,
        max_length: int = 4,
        max_depth: int = 2,
        recall: int = 10,
        lookahead: int = 5,
        max_evaluated: int | None = None,
        max_seconds: float | None = None,
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
        self.max_depth = max_depth
        self.recall = recall
        self.lookahead = lookahead
        self.max_evaluated = max_evaluated
        self.max_seconds = max_seconds
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RelationalPRankBoost:
        """Learn the clauses.

        Parameters
        ----------
        X : RelationalData
            Examples and background.
        y : array of shape (n_examples,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_examples,), optional
            A weight of 2 is the example twice, of 0 the example absent.

        Returns
        -------
        self : RelationalPRankBoost
        """
        self._learn(X, y, sample_weight)
        return self

    def _holds_out(self) -> bool:
        return super()._holds_out() or waits_for_stall(self)

    def _booster(self, source: RelationalSource, train: TrainingData, /) -> PRankBooster:
        return PRankBooster.of(self, source, train)


class RelationalRankBoost(RelationalEnsemble):
    """Rank examples by clauses that minimise the exponential loss over pairs.

    RankBoost.B with the clause search of :class:`RelationalPRankBoost`, which maximises
    r = 2 AUC - 1 here: the baseline that [1]_ compares PRankBoost with.

    Parameters
    ----------
    n_estimators : int, default=100
        Most rounds.
    step : {"exact", "bound"}, default="exact"
        Length of a step: the minimum of the loss, or of Freund's bound on it.
    learning_rate, max_length, max_depth, recall, lookahead, max_evaluated, max_seconds,\
    early_stopping_rounds, validation_fraction, eval_metric, n_jobs, random_state, verbose
        As in :class:`RelationalPRankBoost`; the default `eval_metric` is "average_precision".

    Attributes
    ----------
    train_loss_ : ndarray
        Logarithm of the loss after each round.
    rules_, rounds_, n_evaluated_, schema_, classes_, offset_, validation_scores_, best_iteration_
        As in :class:`RelationalPRankBoost`.

    References
    ----------
    .. [1] Oliphant, Burnside & Shavlik (2009), "Boosting first-order clauses for large, skewed data
       sets", Inductive Logic Programming.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import RelationalData, RelationalRankBoost
    >>> size = pd.DataFrame({"item": ["a", "b", "c", "d"], "size": ["big", "big", "small", "small"]})
    >>> items = pd.DataFrame({"item": ["a", "b", "c", "d"]})
    >>> data = RelationalData({"size": size}, items, target="good")
    >>> model = RelationalRankBoost(n_estimators=1, random_state=0).fit(data, [1, 1, 0, 0])
    >>> print(model.rounds_[0].rules[0])
    good(A) :- size(A,big)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "step": [StrOptions(set(STEPS))],
    }

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        step: str = "exact",
        learning_rate: float = 1.0,
        max_length: int = 4,
        max_depth: int = 2,
        recall: int = 10,
        lookahead: int = 5,
        max_evaluated: int | None = None,
        max_seconds: float | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        eval_metric: Any = "average_precision",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.step = step
        self.learning_rate = learning_rate
        self.max_length = max_length
        self.max_depth = max_depth
        self.recall = recall
        self.lookahead = lookahead
        self.max_evaluated = max_evaluated
        self.max_seconds = max_seconds
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RelationalRankBoost:
        """Learn the clauses.

        Parameters
        ----------
        X : RelationalData
            Examples and background.
        y : array of shape (n_examples,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_examples,), optional
            A weight of 2 is the example twice, of 0 the example absent.

        Returns
        -------
        self : RelationalRankBoost
        """
        self._learn(X, y, sample_weight)
        return self

    def _booster(self, source: RelationalSource, train: TrainingData, /) -> RankBooster:
        return RankBooster(
            source,
            train.y,
            train.sample_weight,
            step=self.step,
            learning_rate=self.learning_rate,
        )
