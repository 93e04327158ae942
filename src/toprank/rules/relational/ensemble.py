"""RelationalEnsemble: what the boosted-clause estimators of relational data share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.columns import is_table
from toprank.rules.boosters import Round, rank_values
from toprank.rules.checks import check_parameters
from toprank.rules.ensemble import kept_round
from toprank.rules.relational.clause import Clause
from toprank.rules.relational.coded import encode
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.data import RelationalData
from toprank.rules.relational.modes import Schema
from toprank.rules.relational.source import RelationalLimits, RelationalSource
from toprank.rules.rounds import EarlyStopping, hold_out, run_rounds, watch_metric
from toprank.rules.scoring import rules_table, score_expression, select_score

__all__ = ["RelationalEnsemble"]


class RelationalEnsemble(BaseRanker):
    """Base of the estimators that add up clauses over relational data.

    Subclasses name their parameters in `__init__` and build a booster in `_booster`.
    """

    n_estimators: int
    max_length: int
    max_depth: int
    recall: int
    lookahead: int
    max_evaluated: int | None
    max_seconds: float | None
    early_stopping_rounds: int | None
    validation_fraction: float
    eval_metric: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @abstractmethod
    def _booster(self, source: RelationalSource, train: TrainingData) -> Any:
        """An iterator of rounds over the training examples."""

    def _learn(self, data: Any, y: Any, sample_weight: Any) -> None:
        """The body of every `fit`: check, boost, keep."""
        check_parameters(self)
        checked = self._check_examples(data, y, sample_weight)
        random = check_random_state(self.random_state)
        split_random, search_random = map(
            np.random.RandomState, random.randint(np.iinfo(np.int32).max, size=2)
        )
        train, watched = checked, None
        if self._holds_out():
            held = hold_out(checked.y, self.validation_fraction, split_random)
            train, watched = checked.rows(~held), checked.rows(held)
        background = train.X.background
        if self.n_jobs is not None and self.n_jobs > 0:
            background.set_threads(self.n_jobs)
        with Coverage(background, train.X.codes()) as coverage:
            source = RelationalSource(train.X, coverage, self._limits(), search_random)
            rounds = self._run(self._booster(source, train), watched)
        self.rounds_ = tuple(kept_round(found, train) for found in rounds)
        self.n_evaluated_ = np.array([kept.n_evaluated for kept in self.rounds_], dtype=np.int64)
        self.train_loss_ = np.array([found.log_loss for found in rounds])
        scores = np.zeros(len(train.y))
        for found in rounds:
            scores += found.values(found.depth)
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
        self.n_features_in_ = data.schema.target.arity
        self._background_data = data
        return checked

    def _holds_out(self) -> bool:
        """Whether examples are held out to watch the ensemble grow."""
        return self.early_stopping_rounds is not None

    def _run(self, booster: Any, watched: TrainingData | None) -> list[Round]:
        """Run the booster and cut the ensemble at the best round on the examples held out."""
        label = type(self).__name__
        if watched is None:
            return run_rounds(booster, self.n_estimators, verbose=self.verbose, label=label)
        stopping = EarlyStopping(
            watch_metric(self.eval_metric),
            watched.y,
            watched.sample_weight,
            self.early_stopping_rounds,
        )
        scores = np.zeros(len(watched.y))
        with _Scorer(watched.X) as scorer:

            def after_round(found: Round) -> bool:
                scores[:] += found.values(scorer.depth(found.rules))
                stop = stopping.update(scores)
                self._after_round(booster, stopping)
                return stop

            rounds = run_rounds(
                booster,
                self.n_estimators,
                after_round=after_round,
                verbose=self.verbose,
                label=label,
            )
        self.validation_scores_ = np.array(stopping.scores)
        if self.early_stopping_rounds is not None and stopping.scores:
            self.best_iteration_ = stopping.best_round
            rounds = rounds[: stopping.best_round]
        return rounds

    def _after_round(self, booster: Any, stopping: EarlyStopping) -> None:
        """A hook for variants that change course when validation stalls."""

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
        scores = np.zeros(len(X))
        for values in self._contributions(X):
            scores += values
        return scores

    def _contributions(self, X: RelationalData) -> Iterator[np.ndarray]:
        """What each round adds to the scores."""
        with _Scorer(X) as scorer:
            scorer.prepare([kept.rules for kept in self.rounds_])
            for kept in self.rounds_:
                yield rank_values(scorer.depth(kept.rules), kept.levels, kept.step)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round.

        Parameters
        ----------
        X : RelationalData, or a table of examples

        Yields
        ------
        scores : ndarray of shape (n_examples,)
            The last is `decision_function(X)`; the threshold of the whole ensemble is subtracted
            from all of them.
        """
        check_is_fitted(self)
        data = self._check_rows(X)
        scores = np.full(len(data), -self.offset_)
        for values in self._contributions(data):
            scores = scores + values
            yield scores

    def explain(self, X: Any) -> pd.DataFrame:
        """Which clauses fired for which examples, and what each added to the score.

        Parameters
        ----------
        X : RelationalData, or a table of examples

        Returns
        -------
        table : DataFrame
            Columns `row` (position in `X`), `round`, `rule`, `adds`; by row, the greatest additions
            first. Of each round only the most specific clause that covers the row is there. The
            additions of a row minus `offset_` are its score.
        """
        check_is_fitted(self)
        data = self._check_rows(X)
        parts = [pd.DataFrame({"row": [], "round": [], "rule": [], "adds": []})]
        with _Scorer(data) as scorer:
            scorer.prepare([kept.rules for kept in self.rounds_])
            for t, kept in enumerate(self.rounds_, start=1):
                depth = scorer.depth(kept.rules)
                rows = np.flatnonzero(depth)
                texts = np.array([str(rule) for rule in kept.rules], dtype=object)
                adds = (kept.step * kept.levels)[depth[rows] - 1]
                part = {"row": rows, "round": t, "rule": texts[depth[rows] - 1], "adds": adds}
                parts.append(pd.DataFrame(part))
        table = pd.concat(parts[1:] or parts, ignore_index=True)
        order = np.lexsort((table["round"], -table["adds"].abs(), table["row"]))
        return table.iloc[order].reset_index(drop=True)

    @property
    def rules_(self) -> pd.DataFrame:
        """The clauses of the ensemble, one line each (`toprank.rules.scoring.rules_table`)."""
        check_is_fitted(self)
        return rules_table(self.rounds_)

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
            rounding of sums. Only CASE, EXISTS, comparisons and sums are used.
        """
        check_is_fitted(self)
        columns = self.schema_.columns
        rounds = [
            replace(kept, rules=tuple(_InSql(rule, columns, examples) for rule in kept.rules))
            for kept in self.rounds_
        ]
        return select_score(score_expression(rounds, self.offset_), examples, score)


@dataclass(frozen=True)
class _InSql:
    """A clause that writes itself as a condition on the table of examples, as rules of tables do."""

    clause: Clause
    columns: dict[str, tuple[str, ...]]
    examples: str

    def __hash__(self) -> int:
        return hash(self.clause)

    def sql(self, *, table: str | None = None) -> str:
        return self.clause.sql(self.columns, examples=table or self.examples)


class _Scorer:
    """Depths of paths of clauses for a list of examples."""

    def __init__(self, data: RelationalData) -> None:
        self.schema = data.schema
        self.background = data.background
        self.coverage = Coverage(self.background, data.codes())

    def __enter__(self) -> _Scorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.coverage.close()

    def prepare(self, paths: Sequence[tuple[Clause, ...]]) -> None:
        """Ask for the parts of many clauses together, which takes fewer queries."""
        distinct = list(dict.fromkeys(clause for path in paths for clause in path))
        self.coverage.prepare([encode(c, self.schema, self.background) for c in distinct])

    def depth(self, path: Sequence[Clause]) -> np.ndarray:
        """How many of the nested clauses cover each example."""
        depth = np.zeros(len(self.coverage.codes), dtype=np.uint8)
        for clause in path:
            depth += self.coverage.mask(encode(clause, self.schema, self.background))
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
