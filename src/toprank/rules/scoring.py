"""Fitted rounds: scores of binned rows, the table of rules, and SQL text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toprank.binning import N_BINS
from toprank.parallel import ThreadPool
from toprank.rule import Literal, Rule, quote_identifier, sql_value
from toprank.rules._kernels import add_tables, walk_paths
from toprank.rules.binned import BinnedColumns

__all__ = ["KeptRound", "PathLookup", "rules_table", "score_expression", "select_score"]

CHUNK_ROWS = 8_192


@dataclass(frozen=True)
class KeptRound:
    """One fitted round: what is needed to score rows and to show the rules.

    Attributes
    ----------
    rules : tuple of Rule
        Nested, from the most general to the most specific.
    levels : float ndarray
        The weak ranker's value of rows whose most specific rule is each of them.
    step : float
        What the ensemble multiplies it by.
    score : float
        r, the quality that the search reached.
    n_evaluated : int
        Rules scored to find it.
    positives, negatives : float ndarray
        Weight of the training rows that each rule covers.
    log_loss : float
        Logarithm of the training loss after the round.
    """

    rules: tuple[Any, ...]
    levels: np.ndarray
    step: float
    score: float
    n_evaluated: int
    positives: np.ndarray
    negatives: np.ndarray
    log_loss: float = float("nan")


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


def rules_table(rounds: Sequence[KeptRound]) -> pd.DataFrame:
    """Return one line for each rule of each round.

    Columns: round (from 1), rule, level (the weak ranker's value), adds (what the rule adds to the
    score of rows it is the most specific rule of), positives and negatives (training weight that it
    covers), precision, r (of the round), n_evaluated (of the round).
    """
    lines = [
        (t, str(rule), level, kept.step * level, positives, negatives, kept.score, kept.n_evaluated)
        for t, kept in enumerate(rounds, start=1)
        for rule, level, positives, negatives in zip(
            kept.rules, kept.levels, kept.positives, kept.negatives, strict=True
        )
    ]
    columns = ["round", "rule", "level", "adds", "positives", "negatives", "r", "n_evaluated"]
    table = pd.DataFrame(lines, columns=columns)
    covered = table["positives"] + table["negatives"]
    table.insert(6, "precision", (table["positives"] / covered).where(covered > 0))
    return table


def score_expression(rounds: Sequence[KeptRound], offset: float) -> str:
    """Write the score of a row as an SQL expression.

    A sum of CASE expressions, one for each distinct weak ranker; missing cells are NULL.
    """
    terms: dict[tuple[Rule, ...], np.ndarray] = {}
    for kept in rounds:
        values = kept.step * kept.levels
        terms[kept.rules] = terms.get(kept.rules, 0.0) + values
    cases = [_case(rules, values) for rules, values in terms.items()]
    return _balanced_sum([*cases, sql_value(float(-offset))])


def select_score(expression: str, table: str, score: str) -> str:
    """Write a query that gives every row of a table with its score."""
    return f"SELECT *,\n  {expression} AS {quote_identifier(score)}\nFROM {quote_identifier(table)}"


def _case(rules: tuple[Any, ...], values: np.ndarray) -> str:
    """Write one weak ranker: the most specific rule that holds decides."""
    branches = " ".join(
        f"WHEN {rule.sql()} THEN {sql_value(float(value))}"
        for rule, value in zip(reversed(rules), reversed(values), strict=True)
    )
    return f"CASE {branches} ELSE 0e0 END"


def _balanced_sum(terms: list[str]) -> str:
    """Write a sum whose parentheses nest to a depth of log2: databases limit how deep they may."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    return f"({_balanced_sum(terms[:half])}\n  + {_balanced_sum(terms[half:])})"
