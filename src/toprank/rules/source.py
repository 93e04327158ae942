"""What a booster knows of weak rankers.

A source looks at labels and weights and answers with a path of nested rules, from the most general
refinement to the best rule it found; a stump or a single clause is a path of length one. The boosters
decide what they keep of it (the last rule, or the whole path) and at which values. Rules themselves are
opaque here: `toprank.rule.Rule` over tables, clauses over relational data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

__all__ = ["SearchPath", "WeakRankerSource", "draw_seed", "total_weights"]


@dataclass(frozen=True)
class SearchPath:
    """Nested rules from the first refinement of "every row" to the best one found.

    Attributes
    ----------
    rules : tuple
        `rules[k + 1]` covers a part of what `rules[k]` covers. Never empty.
    depth : uint8 ndarray of shape (n_rows,)
        How many of the rules cover each training row (0: none, `len(rules)`: the best rule too).
    positives, negatives : float ndarray of shape (len(rules),)
        Weight of the positives (negatives) that each rule covers.
    score : float
        What the search maximised, at the best rule.
    n_evaluated : int
        How many rules were scored to find this path.
    """

    rules: tuple[Any, ...]
    depth: np.ndarray
    positives: np.ndarray
    negatives: np.ndarray
    score: float
    n_evaluated: int


class WeakRankerSource(Protocol):
    """Where weak rankers come from."""

    def best(self, y: np.ndarray, weights: np.ndarray, score: str = "auc") -> SearchPath | None:
        """Return the path of rules that ranks best under these weights.

        Parameters
        ----------
        y : ndarray of shape (n_rows,)
            1 for a positive, 0 for a negative, in the order of the rows the source was made of.
        weights : float ndarray of shape (n_rows,)
            Weights of the rows now; the two classes need not have the same total.
        score : {"auc", "clause", "path"}
            What the search maximises (`toprank.rules.curve.SCORES`).

        Returns
        -------
        SearchPath or None
            None when no rule is better than taking every row.
        """


def total_weights(y: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Total weight of the positives and of the negatives."""
    positive = y > 0
    total_positives = float(weights[positive].sum())
    return total_positives, float(weights[~positive].sum())


def draw_seed(positive_rows: np.ndarray, weights: np.ndarray, random: np.random.RandomState) -> int:
    """Draw a positive row with probability proportional to its weight now.

    Later rounds so start from the positives that the ensemble still ranks low, and a row of weight 2
    is drawn as often as two copies of it.

    Parameters
    ----------
    positive_rows : int ndarray
        Rows to draw from. Give them in an order that depends on their contents alone, and the draw
        does not depend on the order of the rows in the table.
    weights : float ndarray of shape (n_rows,)
    random : numpy.random.RandomState
    """
    cumulative = np.cumsum(weights[positive_rows])
    target = random.random_sample() * cumulative[-1]
    drawn = int(np.searchsorted(cumulative, target, side="right"))
    return int(positive_rows[min(drawn, len(positive_rows) - 1)])
