"""BoostedRules: what the boosted-rule estimators of tables and of relational data share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.rules._kernels import count_depths
from toprank.rules.boosters import Round, rank_values
from toprank.rules.rounds import EarlyStopping, hold_out, run_rounds, watch_metric
from toprank.rules.scoring import KeptRound, rules_table

__all__ = ["BoostedRules", "Depths", "kept_round"]

#: from a round to how many of its nested rules cover each row of some data
Depths = Callable[[KeptRound], np.ndarray]


class BoostedRules(BaseRanker):
    """Base of the estimators that add up rules, one weak ranker a round.

    Subclasses turn data into a booster and say which rules cover which rows (`_depths`).
    """

    n_estimators: int
    early_stopping_rounds: int | None
    validation_fraction: float
    eval_metric: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @abstractmethod
    def _depths(
        self, X: Any, rounds: Sequence[KeptRound] | None = None
    ) -> AbstractContextManager[Depths]:
        """Depths of checked rows; `rounds` are those that will be asked for, if they are known."""

    # -- growing -----------------------------------------------------------------------------------

    def _holds_out(self) -> bool:
        """Whether rows are held out to watch the ensemble grow."""
        return self.early_stopping_rounds is not None

    def _split(
        self, data: TrainingData, random: np.random.RandomState
    ) -> tuple[TrainingData, TrainingData | None]:
        """The rows to learn from, and those held out if any are."""
        if not self._holds_out():
            return data, None
        held = hold_out(data.y, self.validation_fraction, random)
        return data.rows(~held), data.rows(held)

    def _grow(self, booster: Any, train: TrainingData, watched: TrainingData | None) -> None:
        """Take rounds of the booster and set what is known of them."""
        # kept as they come: a Round holds a byte for every row
        rounds = (kept_round(found, train) for found in booster)
        self.rounds_ = tuple(self._run(rounds, booster, watched))
        self.n_evaluated_ = np.array([kept.n_evaluated for kept in self.rounds_], dtype=np.int64)
        self.train_loss_ = np.array([kept.log_loss for kept in self.rounds_])

    def _run(
        self, rounds: Iterator[KeptRound], booster: Any, watched: TrainingData | None
    ) -> list[KeptRound]:
        """Run the booster and cut the ensemble at the best round on the rows held out."""
        label = type(self).__name__
        if watched is None:
            return run_rounds(rounds, self.n_estimators, verbose=self.verbose, label=label)
        stopping = EarlyStopping(
            watch_metric(self._watched_metric()),
            watched.y,
            watched.sample_weight,
            self.early_stopping_rounds,
        )
        scores = np.zeros(len(watched.y))
        with self._depths(watched.X) as depth:

            def after_round(kept: KeptRound) -> bool:
                scores[:] += _values(kept, depth)
                stop = stopping.update(scores)
                self._after_round(booster, stopping)
                return stop

            done = run_rounds(
                rounds,
                self.n_estimators,
                after_round=after_round,
                verbose=self.verbose,
                label=label,
            )
        self.validation_scores_ = np.array(stopping.scores)
        if self.early_stopping_rounds is not None and stopping.scores:
            self.best_iteration_ = stopping.best_round
            done = done[: stopping.best_round]
        return done

    def _watched_metric(self) -> Any:
        """The metric of the rows held out."""
        return self.eval_metric

    def _after_round(self, booster: Any, stopping: EarlyStopping) -> None:
        """A hook for variants that change course when validation stalls."""

    # -- what a fitted ensemble answers ------------------------------------------------------------

    def _sum(self, depth: Depths, n_rows: int) -> np.ndarray:
        """What all rounds add to each row."""
        scores = np.zeros(n_rows)
        for kept in self.rounds_:
            scores += _values(kept, depth)
        return scores

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
            For relational estimators a RelationalData, or a table of examples.

        Yields
        ------
        scores : ndarray of shape (n_rows,)
            The last is `decision_function(X)`; the threshold of the whole ensemble is subtracted
            from all of them.
        """
        check_is_fitted(self)
        X = self._check_rows(X)
        scores = np.full(len(X), -self.offset_)
        with self._depths(X, self.rounds_) as depth:
            for kept in self.rounds_:
                scores = scores + _values(kept, depth)
                yield scores

    def explain(self, X: Any) -> pd.DataFrame:
        """Which rules fired for which rows, and what each added to the score.

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
            For relational estimators a RelationalData, or a table of examples.

        Returns
        -------
        table : DataFrame
            Columns `row` (position in `X`), `round`, `rule`, `adds`; by row, the greatest additions
            first. Of each round only the most specific rule that covers the row is there. The
            additions of a row minus `offset_` are its score.
        """
        check_is_fitted(self)
        X = self._check_rows(X)
        with self._depths(X, self.rounds_) as depth:
            parts = [_fired(t, kept, depth(kept)) for t, kept in enumerate(self.rounds_, start=1)]
        if not parts:
            return pd.DataFrame({"row": [], "round": [], "rule": [], "adds": []})
        table = pd.concat(parts, ignore_index=True)
        order = np.lexsort((table["round"], -table["adds"].abs(), table["row"]))
        return table.iloc[order].reset_index(drop=True)

    @property
    def rules_(self) -> pd.DataFrame:
        """The rules of the ensemble, one line each (`toprank.rules.scoring.rules_table`)."""
        check_is_fitted(self)
        return rules_table(self.rounds_)


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


def _values(kept: KeptRound, depth: Depths) -> np.ndarray:
    """What a round adds to each row."""
    return rank_values(depth(kept), kept.levels, kept.step)


def _fired(t: int, kept: KeptRound, depth: np.ndarray) -> pd.DataFrame:
    """The rules of round t that fired, one line for each row that one covers."""
    rows = np.flatnonzero(depth)
    last = depth[rows].astype(np.int64) - 1
    texts = np.array([str(rule) for rule in kept.rules], dtype=object)
    adds = kept.step * kept.levels
    return pd.DataFrame({"row": rows, "round": t, "rule": texts[last], "adds": adds[last]})
