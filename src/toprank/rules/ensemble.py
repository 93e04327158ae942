"""RuleEnsemble: what the boosted-rule estimators of tables share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.columns import as_frame, is_table
from toprank.rules._kernels import count_depths
from toprank.rules.bins import Bins, boolean_columns
from toprank.rules.boosters import Round
from toprank.rules.checks import check_parameters
from toprank.rules.rounds import EarlyStopping, hold_out, run_rounds, watch_metric
from toprank.rules.scoring import (
    KeptRound,
    PathLookup,
    rules_table,
    score_expression,
    select_score,
)
from toprank.rules.workers import Workers, thread_count

__all__ = ["RuleEnsemble", "kept_round"]


class RuleEnsemble(BaseRanker):
    """Base of the estimators that add up rules of a table, one weak ranker a round.

    Subclasses name their parameters in `__init__` and build a booster in `_booster`.
    """

    _accepts_missing = True
    _accepts_categories = True
    _unseen_category = -1.0  # not missing: only literals that exclude known categories hold for it

    n_estimators: int
    max_bins: int
    early_stopping_rounds: int | None
    validation_fraction: float
    eval_metric: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @abstractmethod
    def _booster(
        self,
        bins: Bins,
        codes: np.ndarray,
        data: TrainingData,
        random: np.random.RandomState,
        workers: Workers,
    ) -> Any:
        """An iterator of rounds over binned training rows."""

    def _learn(self, X: Any, y: Any, sample_weight: Any) -> None:
        """The body of every `fit`: check, bin, boost, keep."""
        check_parameters(self)
        X = as_frame(X) if is_table(X) else X
        data = self._check_training(X, y, sample_weight)
        self._check_names()
        boolean = boolean_columns(X) if isinstance(X, pd.DataFrame) else None
        random = check_random_state(self.random_state)
        # one draw for each use, so that none of them shifts the others
        seeds = random.randint(np.iinfo(np.int32).max, size=3)
        bin_random, split_random, search_random = map(np.random.RandomState, seeds)
        train, watched = data, None
        if self._holds_out():
            held = hold_out(data.y, self.validation_fraction, split_random)
            train, watched = data.rows(~held), data.rows(held)
        with Workers(self.n_jobs) as workers:
            self.bins_ = Bins.of(
                train.X,
                train.y,
                train.sample_weight,
                self.columns_,
                max_bins=self.max_bins,
                is_boolean=boolean,
                random=bin_random,
                map_tasks=workers.map,
            )
            codes = self.bins_.codes(train.X, n_jobs=workers.n_threads)
            booster = self._booster(self.bins_, codes, train, search_random, workers)
            # kept as they come: a Round holds a byte for every row
            rounds = (kept_round(found, train) for found in booster)
            self.rounds_ = tuple(self._run(rounds, booster, watched))
            self.n_evaluated_ = np.array(
                [kept.n_evaluated for kept in self.rounds_], dtype=np.int64
            )
            self.train_loss_ = np.array([kept.log_loss for kept in self.rounds_])
            lookup = PathLookup.of(self.bins_, self.rounds_)
            scores = lookup.scores(codes[lookup.used], workers)
        self._set_threshold(scores, train)

    def _check_names(self) -> None:
        """Rules name their columns, so names must be distinct."""
        names = pd.Index(self.columns_.names)
        if names.has_duplicates:
            twice = ", ".join(sorted(set(names[names.duplicated()])))
            raise ValueError(
                f"{type(self).__name__} writes rules by column name, but these names occur more "
                f"than once: {twice}; rename the columns"
            )

    def _holds_out(self) -> bool:
        """Whether rows are held out to watch the ensemble grow."""
        return self.early_stopping_rounds is not None

    def _watched_metric(self) -> Any:
        """The metric of the rows held out."""
        return self.eval_metric

    def _run(
        self, rounds: Iterator[KeptRound], booster: Any, watched: TrainingData | None
    ) -> list[KeptRound]:
        """Take rounds of the booster and cut the ensemble at the best one on the rows held out."""
        label = type(self).__name__
        if watched is None:
            return run_rounds(rounds, self.n_estimators, verbose=self.verbose, label=label)
        stopping = EarlyStopping(
            watch_metric(self._watched_metric()),
            watched.y,
            watched.sample_weight,
            self.early_stopping_rounds,
        )
        codes = self.bins_.codes(watched.X)
        scores = np.zeros(len(watched.y))

        def after_round(found: KeptRound) -> bool:
            lookup = PathLookup.of(self.bins_, [found])
            scores[:] += lookup.scores(codes[lookup.used])
            stop = stopping.update(scores)
            self._after_round(booster, stopping)
            return stop

        done = run_rounds(
            rounds, self.n_estimators, after_round=after_round, verbose=self.verbose, label=label
        )
        self.validation_scores_ = np.array(stopping.scores)
        if self.early_stopping_rounds is not None and stopping.scores:
            self.best_iteration_ = stopping.best_round
            done = done[: stopping.best_round]
        return done

    def _after_round(self, booster: Any, stopping: EarlyStopping) -> None:
        """A hook for variants that change course when validation stalls."""

    # -- what a fitted ensemble answers ------------------------------------------------------------

    def _raw_scores(self, X: Any) -> np.ndarray:
        lookup = PathLookup.of(self.bins_, self.rounds_)
        n_threads = thread_count(self.n_jobs) if len(X) > 50_000 else 1
        codes = lookup.codes(X, n_threads)
        with Workers(n_threads) as workers:
            return lookup.scores(codes, workers)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)

        Yields
        ------
        scores : ndarray of shape (n_rows,)
            The last is `decision_function(X)`; the threshold of the whole ensemble is subtracted
            from all of them.
        """
        lookup, codes = self._binned(X)
        scores = np.full(codes.shape[1], -self.offset_)
        for t in range(len(self.rounds_)):
            scores = scores + lookup.round_scores(codes, t)
            yield scores

    def explain(self, X: Any) -> pd.DataFrame:
        """Which rules fired for which rows, and what each added to the score.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)

        Returns
        -------
        table : DataFrame
            Columns `row` (position in `X`), `round`, `rule`, `adds`; by row, the greatest additions
            first. Of each round only the most specific rule that covers the row is there. The
            additions of a row minus `offset_` are its score.
        """
        lookup, codes = self._binned(X)
        parts = []
        for t, kept in enumerate(self.rounds_):
            values = kept.step * kept.levels
            depth = _depths(lookup, codes, t, kept)
            rows = np.flatnonzero(depth > 0)
            texts = np.array([str(rule) for rule in kept.rules], dtype=object)
            part = {
                "row": rows,
                "round": t + 1,
                "rule": texts[depth[rows] - 1],
                "adds": values[depth[rows] - 1],
            }
            parts.append(pd.DataFrame(part))
        if not parts:
            return pd.DataFrame({"row": [], "round": [], "rule": [], "adds": []})
        table = pd.concat(parts, ignore_index=True)
        size = table["adds"].abs()
        order = np.lexsort((table["round"], -size, table["row"]))
        return table.iloc[order].reset_index(drop=True)

    @property
    def rules_(self) -> pd.DataFrame:
        """The rules of the ensemble, one line each (`toprank.rules.scoring.rules_table`)."""
        check_is_fitted(self)
        return rules_table(self.rounds_)

    def to_sql(self, table: str = "rows", *, score: str = "score") -> str:
        """SQL that scores a table in a database.

        Parameters
        ----------
        table : str, default="rows"
            Name of the table; its columns have the names of the training table (x0, x1, ... if it
            was an array) and NULL where a cell is missing.
        score : str, default="score"
            Name of the column that holds the score.

        Returns
        -------
        query : str
            Selects every column of the table and the score, equal to `decision_function` up to the
            rounding of sums. Only CASE, comparisons and sums are used.
        """
        check_is_fitted(self)
        return select_score(score_expression(self.rounds_, self.offset_), table, score)

    def _binned(self, X: Any) -> tuple[PathLookup, np.ndarray]:
        check_is_fitted(self)
        X = self._check_rows(X)
        lookup = PathLookup.of(self.bins_, self.rounds_)
        return lookup, lookup.codes(X)


def kept_round(found: Round, data: TrainingData) -> KeptRound:
    """The part of a round that a fitted estimator keeps."""
    n_depths = len(found.rules) + 1
    counts = count_depths(found.depth, data.y > 0, data.weights, n_depths)
    covered = np.cumsum(counts[:0:-1], axis=0)[::-1]
    return KeptRound(
        found.rules,
        found.levels,
        found.step,
        found.score,
        found.n_evaluated,
        np.ascontiguousarray(covered[:, 1]),
        np.ascontiguousarray(covered[:, 0]),
        found.log_loss,
    )


def _depths(lookup: PathLookup, codes: np.ndarray, t: int, kept: KeptRound) -> np.ndarray:
    """How many of the nested rules of a round cover each row."""
    counting = KeptRound(
        kept.rules,
        np.arange(1.0, len(kept.rules) + 1),
        1.0,
        0.0,
        0,
        kept.positives,
        kept.negatives,
    )
    alone = PathLookup.of(lookup.bins, [counting])
    positions = np.searchsorted(lookup.used, alone.used)
    return alone.round_scores(codes[positions], 0).astype(np.int64)
