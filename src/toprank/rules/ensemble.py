"""RuleEnsemble: what the boosted-rule estimators of tables share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData
from toprank.columns import as_frame, is_table
from toprank.parallel import thread_count
from toprank.rules.bins import Bins, boolean_columns
from toprank.rules.boosted import BoostedRules, Depths
from toprank.rules.checks import check_parameters
from toprank.rules.scoring import KeptRound, PathLookup, score_expression, select_score
from toprank.rules.workers import Workers

__all__ = ["RuleEnsemble"]


class RuleEnsemble(BoostedRules):
    """Base of the estimators that add up rules of a table, one weak ranker a round.

    Subclasses name their parameters in `__init__` and build a booster in `_booster`.
    """

    _accepts_missing = True
    _accepts_categories = True
    _unseen_category = -1.0  # not missing: only literals that exclude known categories hold for it

    max_bins: int

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
        train, watched = self._split(data, split_random)
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
            self._grow(booster, train, watched)
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

    # -- what a fitted ensemble answers ------------------------------------------------------------

    def _raw_scores(self, X: Any) -> np.ndarray:
        lookup = PathLookup.of(self.bins_, self.rounds_)
        n_threads = thread_count(self.n_jobs) if len(X) > 50_000 else 1
        codes = lookup.codes(X, n_threads)
        with Workers(n_threads) as workers:
            return lookup.scores(codes, workers)

    @contextmanager
    def _depths(self, X: np.ndarray, rounds: Sequence[KeptRound] | None = None) -> Iterator[Depths]:
        used = np.arange(self.bins_.n_columns)
        if rounds is not None:
            used = PathLookup.of(self.bins_, rounds).used
        codes = self.bins_.codes(X, only=used)

        def depth(kept: KeptRound) -> np.ndarray:
            counting = replace(kept, levels=np.arange(1.0, len(kept.rules) + 1), step=1.0)
            lookup = PathLookup.of(self.bins_, [counting])
            rows = np.searchsorted(used, lookup.used)
            return lookup.round_scores(codes[rows], 0).astype(np.int64)

        yield depth

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
