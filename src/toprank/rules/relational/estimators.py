"""Boosted clauses over relational data: PRankBoost and its RankBoost baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData
from toprank.columns import is_table
from toprank.docstrings import fill_docstring
from toprank.rules.boosters import (
    STEPS,
    VARIANT_CONSTRAINTS,
    Booster,
    PRankBooster,
    RankBooster,
    waits_for_stall,
)
from toprank.rules.ensemble import BoostedRules, Depths
from toprank.rules.relational.clause import Clause, encode
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.data import RelationalData
from toprank.rules.relational.schema import Schema, check_reachable
from toprank.rules.relational.search import RelationalLimits, RelationalSource
from toprank.rules.scoring import KeptRound, score_expression, select_score
from toprank.validation import Interval, StrOptions

__all__ = ["RelationalPRankBoost", "RelationalRankBoost"]


@fill_docstring
class RelationalPRankBoost(BoostedRules):
    """Rank examples by clauses chosen for the area under the recall-precision curve.

    PRankBoost [1]_ on first-order clauses. Each round draws a positive example in proportion to its
    weight now, gathers the facts around it (its bottom clause), and refines the most general clause
    greedily with literals that are true of it; literals may introduce new variables. All literals of a
    step are scored by few queries in DuckDB.

    Parameters
    ----------
    n_estimators : int, default=100
        Most rounds.
    weak, switch_at, step, learning_rate
        As in :class:`PRankBoost`; rows are examples here.
    %(relational_search)s
    %(clause_limits)s
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
    %(relational_attributes)s
    %(classes)s

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

    schema_: Schema
    _background_data: RelationalData
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedRules._parameter_constraints,
        **VARIANT_CONSTRAINTS,
        "max_depth": [Interval(Integral, 0, None, closed="left")],
        "recall": [Interval(Integral, 1, None, closed="left")],
        "lookahead": [Interval(Integral, 0, None, closed="left")],
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

    # -- learning ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        self
        """
        data = self._check_training(X, y, sample_weight)
        random = check_random_state(self.random_state)
        split_seed, search_seed = random.randint(np.iinfo(np.int32).max, size=2).tolist()
        train, validation = self._split(data, split_seed)
        examples: RelationalData = train.X
        with _coverage(examples, self.n_jobs) as coverage:
            search_random = np.random.RandomState(search_seed)
            limits = RelationalLimits(
                self.max_length, self.max_evaluated, self.max_seconds,
                self.max_depth, self.recall, self.lookahead,
            )  # fmt: skip
            source = RelationalSource(examples, coverage, limits, search_random)
            self._grow(self._booster(source, train), validation)
            coverage.deadline = math.inf
            scores = self._sum(_depths_on(coverage, examples), len(train.y))  # mostly cached
        self._set_threshold(scores, train)
        return self

    def _holds_out(self) -> bool:
        return super()._holds_out() or waits_for_stall(self)

    def _booster(self, rows: RelationalSource, train: TrainingData, /) -> Booster:
        return PRankBooster.of(self, rows, train)

    def _check_rows(self, X: Any, *, reset: bool = False) -> RelationalData:
        """Check examples; in training (`reset`) keep the schema and the background.

        A table of examples is scored against the background of training.
        """
        if is_table(X) and not reset:
            if not hasattr(self, "_background_data"):
                raise ValueError(
                    f"this {type(self).__name__} was loaded without its background; "
                    "give it a RelationalData (`data.with_examples(table)`)"
                )
            X = self._background_data.with_examples(X)
        if not isinstance(X, RelationalData):
            use = "learns from a RelationalData" if reset else "scores a RelationalData or a table"
            raise TypeError(f"{type(self).__name__} {use} of examples; got {type(X).__name__}")
        if not reset:
            return X.with_schema(self.schema_)
        check_reachable(X.schema)
        self.schema_ = X.schema
        self.text_types_ = X.text_types()
        self.n_features_in_ = X.schema.target.arity
        self._background_data = X
        return X

    # -- scoring -----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the background of training, which is only a convenience for scoring tables."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_background_data"}

    def _raw_scores(self, X: RelationalData) -> np.ndarray:
        with self._depths(X, self.rounds_) as depth:
            return self._sum(depth, len(X))

    @contextmanager
    def _depths(
        self, X: RelationalData, rounds: Sequence[KeptRound] | None = None
    ) -> Iterator[Depths]:
        with _coverage(X, self.n_jobs) as coverage:
            distinct = dict.fromkeys(rule for kept in rounds or () for rule in kept.rules)
            coverage.prepare([encode(rule, X.schema, X.background) for rule in distinct])
            yield _depths_on(coverage, X)

    def to_sql(self, examples: str = "examples", *, score: str = "score") -> str:
        """Write SQL that scores a table of examples in a database.

        Parameters
        ----------
        examples : str, default="examples"
            Name of the table of examples. It has the columns of the target predicate; the background
            tables have the names of their predicates.
        score : str, default="score"
            Name of the column that holds the score.

        Returns
        -------
        query : str
            Selects every column of the table and the score, equal to `decision_function` up to the
            rounding of sums. Only CASE, EXISTS, comparisons and sums are used, and casts to text
            where the training tables held the same things as text and as numbers.
        """
        check_is_fitted(self)
        as_text = frozenset(
            (predicate.name, column)
            for predicate in (self.schema_.target, *self.schema_.predicates)
            for column, name in zip(predicate.columns, predicate.types, strict=True)
            if name in self.text_types_
        )

        def condition(clause: Clause) -> _Condition:
            text = clause.sql(self.schema_.columns, examples=examples, as_text=as_text)
            return _Condition(text)

        rounds = [replace(kept, rules=tuple(map(condition, kept.rules))) for kept in self.rounds_]
        return select_score(score_expression(rounds, self.offset_), examples, score)


@fill_docstring
class RelationalRankBoost(RelationalPRankBoost):
    """Rank examples by clauses that minimise the exponential loss over pairs.

    RankBoost.B with the clause search of :class:`RelationalPRankBoost`, which maximises
    r = 2 AUC - 1 here: the baseline that [1]_ compares PRankBoost with.

    Parameters
    ----------
    n_estimators : int, default=100
        Most rounds.
    step : {"exact", "bound"}, default="exact"
        Length of a step: the minimum of the loss, or of Freund's bound on it.
    learning_rate : float, default=1.0
        Share of each step that is taken.
    %(relational_search)s
    %(clause_limits)s
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
    %(relational_attributes)s
    %(classes)s

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
        **RelationalPRankBoost._parameter_constraints,
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
        super().__init__(
            n_estimators,
            step=step,
            learning_rate=learning_rate,
            max_length=max_length,
            max_depth=max_depth,
            recall=recall,
            lookahead=lookahead,
            max_evaluated=max_evaluated,
            max_seconds=max_seconds,
            early_stopping_rounds=early_stopping_rounds,
            validation_fraction=validation_fraction,
            eval_metric=eval_metric,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )

    def _booster(self, rows: RelationalSource, train: TrainingData, /) -> Booster:
        return RankBooster(
            rows,
            train.y,
            train.sample_weight,
            step=self.step,
            learning_rate=self.learning_rate,
        )


@contextmanager
def _coverage(data: RelationalData, n_jobs: int | None) -> Iterator[Coverage]:
    """Open the coverage of some examples, with the threads that `n_jobs` stands for."""
    with data.background.threads(n_jobs), Coverage(data.background, data.codes()) as coverage:
        yield coverage


def _depths_on(coverage: Coverage, data: RelationalData) -> Depths:
    """Return how many of the nested clauses of a round cover each example, as a function."""

    def depth(kept: KeptRound) -> np.ndarray:
        found = np.zeros(len(data), dtype=np.uint8)
        for clause in kept.rules:
            found += coverage.mask(encode(clause, data.schema, data.background))
        return found

    return depth


@dataclass(frozen=True)
class _Condition:
    """A clause as an SQL condition on a row of a table of examples."""

    text: str

    def sql(self) -> str:
        return self.text
