"""BoostedRules: the base of all estimators that add up rules, one weak ranker a round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.binning import Bins
from toprank.columns import as_frame, is_table
from toprank.docstrings import fill_docstring
from toprank.parallel import ThreadPool, thread_count
from toprank.rules.binned import BinnedColumns, BinnedRows, boolean_columns
from toprank.rules.boosters import Booster, contributions
from toprank.rules.scoring import (
    KeptRound,
    PathLookup,
    rules_table,
    score_expression,
    select_score,
)
from toprank.stopping import EarlyStopping, ValidationMetric, hold_out, run_rounds
from toprank.validation import PARAMETER_CONSTRAINTS, Interval

__all__ = ["BoostedRules", "Depths"]

ROWS_FOR_THREADS = 50_000

#: from a round to how many of its nested rules cover each row of some data
Depths = Callable[[KeptRound], np.ndarray]


class BoostedRules(BaseRanker):
    """Base of the estimators that add up rules, one weak ranker a round.

    Subclasses name their parameters in `__init__` and build a booster in `_booster`. Here the rules are
    about the columns of a table; estimators of relational data have their own `fit`, `_check_rows`,
    `_raw_scores`, `_depths` and `to_sql`.
    """

    _accepts_missing = True
    _accepts_categories = True
    _unseen_category = -1.0  # not missing: only literals that exclude known categories hold for it
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "max_length": [Interval(Integral, 1, 255, closed="both")],
        "max_evaluated": [Interval(Integral, 1, None, closed="left"), None],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "eval_metric": [str, callable],
    }

    n_estimators: int
    max_bins: int
    early_stopping_rounds: int | None
    validation_fraction: float
    eval_metric: Any
    n_jobs: int | None
    random_state: Any
    verbose: int

    @abstractmethod
    def _booster(self, rows: Any, train: TrainingData, /) -> Booster:
        """Return the booster of the training rows (`BinnedRows` where they are those of a table)."""

    # -- learning ----------------------------------------------------------------------------------

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the rules.

        Parameters
        ----------
        %(X)s
            Numbers and categories; missing cells are allowed.
        %(y)s
        %(sample_weight)s

        Returns
        -------
        self
        """
        X = as_frame(X) if is_table(X) else X
        data = self._check_training(X, y, sample_weight)
        self._check_names()
        random = check_random_state(self.random_state)
        # one draw for each use, so that none of them shifts the others
        bin_seed, split_seed, search_seed = random.randint(np.iinfo(np.int32).max, size=3).tolist()
        train, validation = self._split(data, split_seed)
        bins = Bins.of(
            train.X,
            self.columns_.is_category,
            train.sample_weight,
            y=train.y,
            max_bins=self.max_bins,
            random_state=bin_seed,
            n_jobs=self.n_jobs,
        )
        is_boolean = boolean_columns(X) if isinstance(X, pd.DataFrame) else None
        self.bins_ = BinnedColumns.named(bins, self.columns_, is_boolean)
        with ThreadPool(self.n_jobs) as pool:
            codes = bins.codes(train.X, n_jobs=self.n_jobs)
            rows = BinnedRows(self.bins_, codes, pool, search_seed)
            self._grow(self._booster(rows, train), validation)
            lookup = PathLookup.of(self.bins_, self.rounds_)
            scores = lookup.scores(codes[lookup.used], pool)
        self._set_threshold(scores, train)
        return self

    def _check_names(self) -> None:
        """Raise a ValueError when two columns have one name: rules name their columns."""
        names = pd.Index(self.columns_.names)
        if names.has_duplicates:
            twice = ", ".join(sorted(set(names[names.duplicated()])))
            raise ValueError(
                f"{type(self).__name__} writes rules by column name, but these names occur more "
                f"than once: {twice}; rename the columns"
            )

    def _holds_out(self) -> bool:
        """Return whether rows are held out for validation."""
        return self.early_stopping_rounds is not None

    def _split(self, data: TrainingData, seed: int) -> tuple[TrainingData, TrainingData | None]:
        """Return the rows to learn from, and those held out for validation if any are."""
        if not self._holds_out():
            return data, None
        held_out = hold_out(data.y, self.validation_fraction, seed)
        return data.rows(~held_out), data.rows(held_out)

    def _grow(self, booster: Booster, validation: TrainingData | None) -> None:
        """Take rounds of the booster, and set the attributes that describe them."""
        for attribute in ("validation_scores_", "best_iteration_"):  # of a fit before
            self.__dict__.pop(attribute, None)
        self.rounds_ = tuple(self._run(booster, validation))
        self.n_evaluated_ = np.array([kept.n_evaluated for kept in self.rounds_], dtype=np.int64)
        self.train_loss_ = np.array([kept.log_loss for kept in self.rounds_])

    def _run(self, booster: Booster, validation: TrainingData | None) -> list[KeptRound]:
        """Run the booster; with early stopping, keep the rounds up to the best one."""
        options: Any = {"verbose": self.verbose, "label": type(self).__name__}
        if validation is None:
            return run_rounds(booster, self.n_estimators, **options)
        metric = self._validation_metric()
        stopping = EarlyStopping(self.early_stopping_rounds, metric.greater_is_better)
        scores = np.zeros(len(validation.y))
        with self._depths(validation.X) as depth:

            def after_round(kept: KeptRound) -> bool:
                scores[:] += _values(kept, depth)
                stop = stopping.record(metric(validation.y, scores, validation.sample_weight))
                booster.observe(stopping)
                return stop

            done = run_rounds(booster, self.n_estimators, after_round=after_round, **options)
        self.validation_scores_ = np.array(stopping.history)
        if self.early_stopping_rounds is not None and stopping.history:
            self.best_iteration_ = stopping.best_round
            done = done[: stopping.best_round]
        return done

    def _validation_metric(self) -> ValidationMetric:
        return ValidationMetric.of(self.eval_metric)

    # -- scoring -----------------------------------------------------------------------------------

    def _raw_scores(self, X: Any) -> np.ndarray:
        lookup = PathLookup.of(self.bins_, self.rounds_)
        n_threads = thread_count(self.n_jobs) if len(X) > ROWS_FOR_THREADS else 1
        with ThreadPool(n_threads) as pool:
            codes = self.bins_.codes(X, only=lookup.used, n_jobs=n_threads)
            return lookup.scores(codes, pool)

    @contextmanager
    def _depths(self, X: Any, rounds: Sequence[KeptRound] | None = None) -> Iterator[Depths]:
        """Open checked rows for evaluation; `rounds` are those that will be asked for, if known."""
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

    def _sum(self, depth: Depths, n_rows: int) -> np.ndarray:
        """Sum what all rounds add to each row."""
        scores = np.zeros(n_rows)
        for kept in self.rounds_:
            scores += _values(kept, depth)
        return scores

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """Score rows after each round.

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
        """Show which rules fired for which rows, and what each added to the score.

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
        empty = pd.DataFrame({"row": [], "round": [], "rule": [], "adds": []})
        table = pd.concat(parts, ignore_index=True) if parts else empty
        order = np.lexsort((table["round"], -table["adds"].abs(), table["row"]))
        return table.iloc[order].reset_index(drop=True)

    def to_sql(self, table: str = "rows", *, score: str = "score") -> str:
        """Write SQL that scores a table in a database.

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

    @property
    def rules_(self) -> pd.DataFrame:
        """The rules of the ensemble, one line each (`toprank.rules.scoring.rules_table`)."""
        check_is_fitted(self)
        return rules_table(self.rounds_)


def _values(kept: KeptRound, depth: Depths) -> np.ndarray:
    """Return what a round adds to each row."""
    return contributions(depth(kept), kept.levels, kept.step)


def _fired(t: int, kept: KeptRound, depth: np.ndarray) -> pd.DataFrame:
    """Return the rules of round t that fired, one line for each row that one covers."""
    rows = np.flatnonzero(depth)
    last = depth[rows].astype(np.int64) - 1
    texts = np.array([str(rule) for rule in kept.rules], dtype=object)
    adds = kept.step * kept.levels
    return pd.DataFrame({"row": rows, "round": t, "rule": texts[last], "adds": adds[last]})
