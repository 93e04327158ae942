"""BoostedRules: the base of all estimators that add up rules, and how fitted rules score rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.binning import N_BINS, Bins
from toprank.columns import as_frame, is_table
from toprank.docstrings import fill_docstring
from toprank.parallel import ThreadPool, thread_count
from toprank.rule import Literal, quote_identifier, sql_value
from toprank.rules._kernels import add_tables, walk_paths
from toprank.rules.boosters import Booster, KeptRound, contributions
from toprank.rules.weak_rankers import BinnedColumns, BinnedRows, boolean_columns
from toprank.stopping import EarlyStopping, ValidationMetric, hold_out, run_rounds
from toprank.validation import PARAMETER_CONSTRAINTS, Interval

ROWS_FOR_THREADS = 50_000
CHUNK_ROWS = 8_192

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
        %(pair_weight)s

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

    @fill_docstring
    def to_sql(
        self, table: str = "rows", *, score: str = "score", dialect: str | None = None
    ) -> str:
        """Write SQL that scores a table in a database.

        Parameters
        ----------
        table : str, default="rows"
            Name of the table; its columns have the names of the training table (x0, x1, ... if it
            was an array) and NULL where a cell is missing.
        %(sql_score)s

        Returns
        -------
        query : str
            Selects every column of the table and the score, equal to `decision_function` up to the
            rounding of sums. Only CASE, comparisons and sums are used.
        """
        check_is_fitted(self)
        names = quote_identifier(table, dialect), quote_identifier(score, dialect)
        return select_score(self.rounds_, self.offset_, *names, lambda r: r.sql(dialect=dialect))

    @property
    def rules_(self) -> pd.DataFrame:
        """The rules, one line each.

        Columns: round (from 1), rule, level (the weak ranker's value), adds (what the rule adds to the
        score of rows it is the most specific rule of), positives and negatives (training weight that it
        covers), precision, r (of the round), n_evaluated (of the round).
        """
        check_is_fitted(self)
        lines = [
            (t, str(rule), level, kept.step * level, p, n, kept.score, kept.n_evaluated)
            for t, kept in enumerate(self.rounds_, start=1)
            for rule, level, p, n in zip(
                kept.rules, kept.levels, kept.positives, kept.negatives, strict=True
            )
        ]
        columns = ["round", "rule", "level", "adds", "positives", "negatives", "r", "n_evaluated"]
        table = pd.DataFrame(lines, columns=columns)
        covered = table["positives"] + table["negatives"]
        table.insert(6, "precision", (table["positives"] / covered).where(covered > 0))
        return table


def _values(kept: KeptRound, depth: Depths) -> np.ndarray:
    return contributions(depth(kept), kept.levels, kept.step)


def _fired(t: int, kept: KeptRound, depth: np.ndarray) -> pd.DataFrame:
    """Return the rules of round t that fired, one line for each row that one covers."""
    rows = np.flatnonzero(depth)
    last = depth[rows].astype(np.int64) - 1
    texts = np.array([str(rule) for rule in kept.rules], dtype=object)
    adds = kept.step * kept.levels
    return pd.DataFrame({"row": rows, "round": t, "rule": texts[last], "adds": adds[last]})


# -- fitted rounds over binned rows, as a table and as SQL ------------------------------------------------


@dataclass(frozen=True)
class PathLookup:
    """Rounds as arrays over binned rows.

    Attributes
    ----------
    used : int ndarray
        The columns that the rules look at, ascending; the rows of binned data are in this order.
    columns, members, values : ndarray
        Of each literal its column (a position in `used`), the bins in which it holds, and the score of
        a row that passes it and fails the next. The literals of round t are `starts[t]` to before
        `starts[t + 1]`.
    starts : int ndarray
    """

    used: np.ndarray
    columns: np.ndarray
    members: np.ndarray
    values: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, bins: BinnedColumns, rounds: Sequence[KeptRound]) -> PathLookup:
        """Write the rounds as one list of literals.

        Each rule of a path adds literals to the one before it; a row that passes all of them gets the
        rule's value, a row that passes a part of them the value of the rule before.
        """
        literals: list[tuple[int, np.ndarray]] = []
        values: list[float] = []
        starts = [0]
        for kept in rounds:
            seen: set[Literal] = set()
            value = 0.0
            for rule, level in zip(kept.rules, kept.levels, strict=True):
                added = [literal for literal in rule.literals if literal not in seen]
                seen.update(added)
                literals += [bins.members(literal) for literal in added]
                values += [value] * len(added)
                value = kept.step * float(level)
                values[-1] = value
            starts.append(len(literals))
        columns = np.array([column for column, _ in literals], dtype=np.int64)
        used, positions = np.unique(columns, return_inverse=True)
        members = np.array([member for _, member in literals], dtype=np.uint8)
        return cls(
            used,
            positions.astype(np.int64),
            members.reshape(len(literals), N_BINS),
            np.array(values, dtype=np.float64),
            np.array(starts, dtype=np.int64),
        )

    def scores(self, codes: np.ndarray, pool: ThreadPool) -> np.ndarray:
        """Score binned rows; rounds that look at one column are added up beforehand, by bin."""
        scores = np.zeros(codes.shape[1])
        starts, stops = self.starts[:-1], self.starts[1:]
        several = np.ones(len(starts), dtype=bool)
        tables = np.zeros((len(self.used), N_BINS))
        every_bin = np.tile(np.arange(N_BINS, dtype=np.uint8), (len(self.used), 1))
        for t, (start, stop) in enumerate(zip(starts, stops, strict=True)):
            column = self.columns[start]
            if (self.columns[start:stop] == column).all():
                tables[column] += self.round_scores(every_bin, t)
                several[t] = False
        paths = (self.columns, self.members, self.values, starts[several], stops[several])

        def fill(first: int) -> None:
            last = min(first + CHUNK_ROWS, len(scores))
            add_tables(codes, tables, scores, first, last)
            walk_paths(codes, *paths, scores, first, last)

        pool.map(fill, range(0, len(scores), CHUNK_ROWS))
        return scores

    def round_scores(self, codes: np.ndarray, t: int) -> np.ndarray:
        """Return what round t adds to binned rows."""
        scores = np.zeros(codes.shape[1])
        paths = (self.columns, self.members, self.values, self.starts[[t]], self.starts[[t + 1]])
        walk_paths(codes, *paths, scores, 0, len(scores))
        return scores


def select_score(
    rounds: Sequence[KeptRound],
    offset: float,
    table: str,
    score: str,
    condition: Callable[[Any], str],
) -> str:
    """Write a query that gives every row of a table with its score; both names are quoted already.

    The score is a sum of CASE expressions, one for each distinct weak ranker, in which the most
    specific rule that holds decides; `condition` writes a rule.
    """
    terms: dict[tuple[Any, ...], np.ndarray] = {}
    for kept in rounds:
        terms[kept.rules] = terms.get(kept.rules, 0.0) + kept.step * kept.levels
    cases = []
    for rules, values in terms.items():
        pairs = zip(reversed(rules), reversed(values.tolist()), strict=True)
        branches = " ".join(f"WHEN {condition(r)} THEN {sql_value(v)}" for r, v in pairs)
        cases.append(f"CASE {branches} ELSE 0e0 END")
    expression = _balanced_sum([*cases, sql_value(float(-offset))])
    return f"SELECT *,\n  {expression} AS {score}\nFROM {table}"


def _balanced_sum(terms: list[str]) -> str:
    """Write a sum whose parentheses nest to a depth of log2: databases limit how deep they may."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_balanced_sum(terms[:half])}\n  + {_balanced_sum(terms[half:])})"
