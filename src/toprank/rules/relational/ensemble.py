"""RelationalEnsemble: what the boosted-clause estimators of relational data share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from toprank.base import TrainingData
from toprank.columns import is_table
from toprank.rules.ensemble import BoostedRules, Depths
from toprank.rules.relational.clause import Clause
from toprank.rules.relational.coded import encode
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.data import RelationalData
from toprank.rules.relational.modes import Schema
from toprank.rules.relational.source import RelationalLimits, RelationalSource
from toprank.rules.scoring import KeptRound, score_expression, select_score

__all__ = ["RelationalEnsemble"]


class RelationalEnsemble(BoostedRules):
    """Base of the estimators that add up clauses over relational data.

    Subclasses name their parameters in `__init__` and build a booster in `_booster`.
    """

    max_length: int
    max_depth: int
    recall: int
    lookahead: int
    max_evaluated: int | None
    max_seconds: float | None

    @abstractmethod
    def _booster(self, source: RelationalSource, train: TrainingData, /) -> Any:
        """An iterator of rounds over the training examples."""

    def _learn(self, data: Any, y: Any, sample_weight: Any) -> None:
        """The body of every `fit`: check, boost, keep."""
        self._validate_params()
        checked = self._check_examples(data, y, sample_weight)
        random = check_random_state(self.random_state)
        split_seed, search_seed = random.randint(np.iinfo(np.int32).max, size=2).tolist()
        search_random = np.random.RandomState(search_seed)
        train, watched = self._split(checked, split_seed)
        background = train.X.background
        with background.threads(self.n_jobs), Coverage(background, train.X.codes()) as coverage:
            source = RelationalSource(train.X, coverage, self._limits(), search_random)
            self._grow(self._booster(source, train), train, watched)
            coverage.deadline = None
            scores = self._sum(depths_on(coverage, train.X), len(train.y))  # mostly from memory
        self._set_threshold(scores, train)

    def _limits(self) -> RelationalLimits:
        return RelationalLimits(
            self.max_length,
            self.max_depth,
            self.recall,
            self.lookahead,
            self.max_evaluated,
            self.max_seconds,
        )

    def _check_examples(self, data: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Check data, labels and weights; set `schema_`, `classes_` and `n_features_in_`."""
        if not isinstance(data, RelationalData):
            raise TypeError(
                f"{type(self).__name__} learns from a RelationalData (background tables and "
                f"examples), not from {type(data).__name__}"
            )
        labels = self._check_labels(y)
        check_consistent_length(data, labels)
        check_reachable(data.schema)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(
                sample_weight, data.codes(), dtype=np.float64, ensure_non_negative=True
            )
        checked = TrainingData(data, labels, weight, None)
        if weight is not None and not (weight > 0).all():
            checked = checked.rows(weight > 0)
            if len(np.unique(checked.y)) < 2:
                raise ValueError(
                    "only one class is left after leaving out the examples of weight zero; "
                    "both positives and negatives are needed"
                )
        self.schema_ = data.schema
        self.text_types_ = data.text_types()
        self.n_features_in_ = data.schema.target.arity
        self._background_data = data
        return checked

    # -- what a fitted ensemble answers ------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """The fitted state without the training background, which only saves giving it again."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_background_data"}

    def _check_rows(self, X: Any, *, reset: bool = False) -> RelationalData:
        """Examples with a background: as given, or new examples on that of the training data."""
        if is_table(X):
            if not hasattr(self, "_background_data"):
                raise ValueError(
                    f"this {type(self).__name__} was loaded without its background; "
                    "give it a RelationalData (`data.with_examples(table)`)"
                )
            X = self._background_data.with_examples(X)
        if not isinstance(X, RelationalData):
            raise TypeError(
                f"{type(self).__name__} scores a RelationalData, or a table of examples against the "
                f"background it was trained on; not {type(X).__name__}"
            )
        return X.with_schema(self.schema_)

    def _raw_scores(self, X: RelationalData) -> np.ndarray:
        with self._depths(X, self.rounds_) as depth:
            return self._sum(depth, len(X))

    @contextmanager
    def _depths(
        self, X: RelationalData, rounds: Sequence[KeptRound] | None = None
    ) -> Iterator[Depths]:
        with X.background.threads(self.n_jobs), Coverage(X.background, X.codes()) as coverage:
            distinct = dict.fromkeys(rule for kept in rounds or () for rule in kept.rules)
            coverage.prepare([encode(rule, X.schema, X.background) for rule in distinct])
            yield depths_on(coverage, X)

    def to_sql(self, examples: str = "examples", *, score: str = "score") -> str:
        """SQL that scores a table of examples in a database.

        Parameters
        ----------
        examples : str, default="examples"
            Name of the table of examples. It has the columns of the target predicate; the background
            tables are called as their predicates.
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
        predicates = (self.schema_.target, *self.schema_.predicates)
        as_text = frozenset(
            (predicate.name, column)
            for predicate in predicates
            for column, name in zip(predicate.columns, predicate.types, strict=True)
            if name in self.text_types_
        )
        columns = self.schema_.columns
        rounds = [
            replace(
                kept, rules=tuple(_InSql(rule, columns, examples, as_text) for rule in kept.rules)
            )
            for kept in self.rounds_
        ]
        return select_score(score_expression(rounds, self.offset_), examples, score)


@dataclass(frozen=True)
class _InSql:
    """A clause that writes itself as a condition on the table of examples, as rules of tables do."""

    clause: Clause
    columns: dict[str, tuple[str, ...]]
    examples: str
    as_text: frozenset[tuple[str, str]]

    def __hash__(self) -> int:
        return hash(self.clause)

    def sql(self, *, table: str | None = None) -> str:
        return self.clause.sql(self.columns, examples=table or self.examples, as_text=self.as_text)


def depths_on(coverage: Coverage, data: RelationalData) -> Depths:
    """How many of the nested clauses of a round cover each example."""

    def depth(kept: KeptRound) -> np.ndarray:
        found = np.zeros(len(data), dtype=np.uint8)
        for clause in kept.rules:
            found += coverage.mask(encode(clause, data.schema, data.background))
        return found

    return depth


def check_reachable(schema: Schema) -> None:
    """Raise a ValueError when no clause can be built: no mode takes what the target's arguments are."""
    given = set(schema.target.types)
    for mode in schema.modes:
        types = schema.predicates[schema.index(mode.predicate)].types
        inputs = {t for t, kind in zip(types, mode.kinds, strict=True) if kind == "+"}
        if inputs <= given:
            return
    wanted = ", ".join(map(str, schema.modes))
    raise ValueError(
        f"nothing joins with the arguments of {schema.target.name!r}, whose types are "
        f"{', '.join(schema.target.types)}: the modes are {wanted}. Give columns that hold the same "
        "things the same type"
    )
