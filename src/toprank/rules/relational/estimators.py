"""Boosted clauses over relational data: PRankBoost and its RankBoost baseline."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.rule import quote_identifier
from toprank.rules.boosters import (
    STEPS,
    VARIANT_CONSTRAINTS,
    Booster,
    KeptRound,
    PRankBooster,
    RankBooster,
    waits_for_stall,
)
from toprank.rules.ensemble import BoostedRules, Depths, select_score
from toprank.rules.relational.clause import Clause, encode
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.data import RelationalData, check_examples, without_background
from toprank.rules.relational.schema import Schema
from toprank.rules.relational.search import (
    SEED_CHOICES,
    Diagnosis,
    RelationalLimits,
    RelationalSource,
    extensions,
)
from toprank.validation import Interval, StrOptions

__all__ = ["RelationalPRankBoost", "RelationalRankBoost"]


@fill_docstring
class RelationalPRankBoost(BoostedRules):
    """Rank examples by clauses chosen for the area under the recall-precision curve.

    PRankBoost [1]_ on first-order clauses. Each round draws a positive example in proportion to its
    weight now, gathers the facts around it (its bottom clause), and refines the most general clause
    greedily with literals that are true of it; literals may introduce new variables. All literals of a
    step are scored by few queries in DuckDB. `as_published` gives the method as the paper has it.

    Parameters
    ----------
    n_estimators : int, default=100
        Most rounds.
    weak, switch_at, step, learning_rate
        As in :class:`PRankBoost`; rows are examples here.
    %(relational_search)s
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
    _published_step = "area"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedRules._parameter_constraints,
        **VARIANT_CONSTRAINTS,
        "max_depth": [Interval(Integral, 0, None, closed="left")],
        "recall": [Interval(Integral, 1, None, closed="left")],
        "lookahead": [Interval(Integral, 0, None, closed="left")],
        "language": [str, list, tuple, set, frozenset],
        "seed_choice": [StrOptions(set(SEED_CHOICES))],
        "n_seeds": [Interval(Integral, 1, None, closed="left")],
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
        language: Any = "extended",
        seed_choice: str = "weight",
        n_seeds: int = 5,
        max_evaluated: int | None = None,
        max_seconds: float | None = 60.0,
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
        self.language = language
        self.seed_choice = seed_choice
        self.n_seeds = n_seeds
        self.max_evaluated = max_evaluated
        self.max_seconds = max_seconds
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def as_published(cls, n_estimators: int = 100, **parameters: Any) -> Self:
        """Return the method as the paper has it.

        Clauses of atoms alone, seeds drawn uniformly among the positives, no look-ahead, and the step
        that minimises the bound.

        Parameters
        ----------
        n_estimators : int, default=100
        **parameters
            Any others of the constructor.

        Returns
        -------
        estimator

        Examples
        --------
        >>> from toprank import RelationalPRankBoost
        >>> RelationalPRankBoost.as_published(weak="path").language
        'paper'
        """
        published = {"language": "paper", "seed_choice": "uniform", "lookahead": 0}
        published["step"] = cls._published_step
        return cls(n_estimators, **{**published, **parameters})

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
                self.max_length, self.max_evaluated, self.max_seconds, self.max_depth, self.recall,
                self.lookahead, self.n_seeds, self.seed_choice, extensions(self.language),
            )  # fmt: skip
            source = RelationalSource(examples, coverage, limits, search_random)
            source.data_weights = train.sample_weight
            self._grow(self._booster(source, train), validation)
            coverage.deadline = math.inf
            scores = self._sum(_depths_on(coverage, examples), len(train.y))  # mostly cached
            diagnosis = Diagnosis(source, train.y, scores, len(self.rounds_), self.n_estimators)
            self.stop_reason_ = diagnosis.stop_reason(stopped=hasattr(self, "best_iteration_"))
            if diagnosis.is_poor():
                warnings.warn(diagnosis.message(type(self).__name__), stacklevel=2)
        self._set_threshold(scores, train)
        return self

    @property
    def rules_(self) -> pd.DataFrame:
        """The rules of the ensemble, one line each; clauses of several rounds are one line.

        As `BoostedRules.rules_`, with the number of `rounds` in which a clause was
        found and what these add together.
        """
        table = super().rules_
        table.insert(2, "rounds", 1)
        if (table["level"] != 1).any():
            return table  # the clauses of a path belong together
        merged = table.groupby("rule", sort=False).agg({"rounds": "sum", "adds": "sum"})
        table = table.drop_duplicates("rule").reset_index(drop=True)
        for column in ("rounds", "adds"):
            table[column] = table["rule"].map(merged[column])
        return table

    def _holds_out(self) -> bool:
        return super()._holds_out() or waits_for_stall(self)

    def _booster(self, rows: RelationalSource, train: TrainingData, /) -> Booster:
        return PRankBooster.of(self, rows, train)

    def _check_rows(self, X: Any, *, reset: bool = False) -> RelationalData:
        data = check_examples(self, X, training=reset)
        if reset:
            self.text_types_ = data.text_types()
        return data

    # -- scoring -----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return without_background(super().__getstate__())

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

    @fill_docstring
    def to_sql(
        self, examples: str = "examples", *, score: str = "score", dialect: str | None = None
    ) -> str:
        """Write SQL that scores a table of examples in a database.

        Parameters
        ----------
        examples : str, default="examples"
            Name of the table of examples. It has the columns of the target predicate; the background
            tables have the names of their predicates.
        %(sql_score)s

        Returns
        -------
        query : str
            Selects every column of the table and the score, equal to `decision_function` up to the
            rounding of sums. Only CASE, EXISTS, subqueries with DISTINCT and aggregates, comparisons
            and sums are used, and casts to text where the training tables held the same things as text
            and as numbers.
        """
        check_is_fitted(self)
        for predicate in self.schema_.predicates:
            if predicate.name.lower() == examples.lower():
                raise ValueError(
                    f"the background has a table {predicate.name!r} already: SQL could not tell it "
                    f"from the table of examples. Give that another name: to_sql('my_examples')"
                )
        as_text = frozenset(
            (predicate.name, column)
            for predicate in (self.schema_.target, *self.schema_.predicates)
            for column, name in zip(predicate.columns, predicate.types, strict=True)
            if name in self.text_types_
        )

        def condition(clause: Clause) -> str:
            columns = self.schema_.columns
            return clause.sql(columns, examples=examples, as_text=as_text, dialect=dialect)

        names = quote_identifier(examples, dialect), quote_identifier(score, dialect)
        return select_score(self.rounds_, self.offset_, *names, condition)


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

    _published_step = "bound"
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
        language: Any = "extended",
        seed_choice: str = "weight",
        n_seeds: int = 5,
        max_evaluated: int | None = None,
        max_seconds: float | None = 60.0,
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
            language=language,
            seed_choice=seed_choice,
            n_seeds=n_seeds,
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
            rows, train.y, train.sample_weight, step=self.step, learning_rate=self.learning_rate
        )


@contextmanager
def _coverage(data: RelationalData, n_jobs: int | None) -> Iterator[Coverage]:
    """Open the coverage of some examples, with the threads that `n_jobs` stands for."""
    with (
        data.background.threads(n_jobs),
        Coverage(data.background, data.codes(), data.numbers()) as coverage,
    ):
        yield coverage


def _depths_on(coverage: Coverage, data: RelationalData) -> Depths:
    """Return how many of the nested clauses of a round cover each example, as a function."""

    def depth(kept: KeptRound) -> np.ndarray:
        found = np.zeros(len(data), dtype=np.uint8)
        for clause in kept.rules:
            found += coverage.mask(encode(clause, data.schema, data.background))
        return found

    return depth
