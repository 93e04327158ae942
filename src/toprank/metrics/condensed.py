"""Exact metrics of lists that no process holds: streamed from files, or spread over workers.

What a metric of one list needs is how many negatives lie between two neighbouring scores of positives, and
how many at each such score. Negatives between two positives may change places freely: so all of them
become one weighted row, and the list shrinks to at most twice its positives. A weight is a number of copies,
and every metric of the shrunk list is that of the whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from toprank.exchange import ALONE, Exchange
from toprank.metrics.intervals import evaluate
from toprank.metrics.steps import negatives_around, positive_steps
from toprank.validation import check_scores

__all__ = ["CondensedList", "condense", "evaluate_source"]

Part = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Which rows are positive, their scores, and their weights or None."""


class CondensedList:
    """The scores of the positives, and the weight of the negatives at them and between them.

    First every part of the list is given to `positives_of`, then the merged positives make the list, then
    every part is given to `negatives_of`; both answers add up over parts.
    """

    def __init__(self, scores: np.ndarray, weights: np.ndarray) -> None:
        self.scores, places = np.unique(scores, return_inverse=True)
        self.positives = np.bincount(places, weights, len(self.scores))

    @staticmethod
    def positives_of(part: Part) -> np.ndarray:
        """Return scores and weights of the positives of a part, as two rows; equal scores once."""
        return np.stack(positive_steps(*part)).astype(np.float64)

    def negatives_of(self, part: Part) -> np.ndarray:
        """Return the weight of the negatives of a part: between two scores of positives, at one, and so on."""
        positive, scores, weight = part
        return negatives_around(self.scores, positive, scores.astype(np.float64), weight)

    def rows(self, negatives: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels, ranks (to be used as scores) and weights of the short list."""
        places = np.flatnonzero(negatives)
        y = np.repeat([1.0, 0.0], [len(self.scores), len(places)])
        ranks = np.concatenate((2.0 * np.arange(len(self.scores)) + 1, places))
        return y, ranks, np.concatenate((self.positives, negatives[places]))


def condense(
    positive: np.ndarray,
    scores: np.ndarray,
    sample_weight: np.ndarray | None = None,
    exchange: Exchange = ALONE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, ranks and weights of a short list with the metrics of all workers' rows.

    Examples
    --------
    >>> import numpy as np
    >>> y, ranks, weight = condense(np.array([1, 0, 0, 0]) > 0, np.array([2.0, 3.0, 1.0, 0.5]))
    >>> y.tolist(), ranks.tolist(), weight.tolist()
    ([1.0, 0.0, 0.0], [1.0, 0.0, 2.0], [1.0, 2.0, 1.0])
    """
    part = positive, scores, sample_weight
    known = CondensedList(*exchange.gather(CondensedList.positives_of(part))[0])
    return known.rows(exchange.combine(known.negatives_of(part), "sum"))


def evaluate_source(
    source: Any = None,
    *,
    label: str,
    score: str,
    sample_weight: str | None = None,
    pos_label: Any = None,
    sql: str | None = None,
    memory: int | str | None = None,
    metrics: Iterable[str] | None = None,
    parameters: dict[str, dict[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """Compute the metrics of a ranking in files or a query, however many rows there are.

    The rows are streamed twice; what is kept is two figures for each positive. The values are those of
    `evaluate` on all rows, to the last digits; intervals are left out.

    Parameters
    ----------
    source : path, optional
        A Parquet or CSV file, a folder of them, or a pattern.
    label, score : str
        Columns of the labels (two of them) and of the scores.
    sample_weight : str, optional
        Column of the weights.
    pos_label : label, optional
        Which label is the positive; by default the greater.
    sql : str, optional
        Instead of a source: a query in DuckDB's SQL.
    memory : int or str, optional
        What DuckDB may use, such as "1GB".
    metrics, parameters
        As in `evaluate`.

    Returns
    -------
    dict
        As `evaluate` gives it, without intervals.

    Examples
    --------
    >>> query = "SELECT (i % 4 = 0)::INT AS y, i / 10 AS s FROM range(100) AS t(i)"
    >>> round(evaluate_source(sql=query, label="y", score="s")["roc_auc"]["value"], 3)
    0.48
    """
    from toprank.sources import Source

    rows = Source.of(source, sql=sql, memory=memory)
    labels = _labels(rows, label, pos_label)
    columns = [name for name in (label, score, sample_weight) if name is not None]
    with rows.opened(columns) as stream:

        def parts() -> Iterator[Part]:
            for table in stream.batches():
                weight = None if sample_weight is None else _numbers(table, sample_weight)
                positive = np.asarray(table[label] == labels[1])
                yield positive, check_scores(_numbers(table, score), score), weight

        return evaluate_parts(parts, metrics=metrics, parameters=parameters)


def evaluate_parts(parts: Callable[[], Iterable[Part]], **settings: Any) -> dict[str, Any]:
    """Compute metrics of a list that comes in parts, twice; `settings` are those of `evaluate`."""
    found = [CondensedList.positives_of(part) for part in parts()]
    known = CondensedList(*np.concatenate(found, axis=1))
    negatives = sum(known.negatives_of(part) for part in parts())
    y, ranks, weight = known.rows(np.asarray(negatives))
    return evaluate(y, ranks, sample_weight=weight, intervals=None, **settings)


def _numbers(table: Any, column: str) -> np.ndarray:
    return table[column].to_numpy(dtype=np.float64, na_value=np.nan)


def _labels(rows: Any, column: str, pos_label: Any) -> tuple[Any, Any]:
    """Return the negative and the positive label of a source."""
    labels = rows.distinct(column)
    if len(labels) != 2 or (pos_label is not None and pos_label not in labels):
        shown = ", ".join(map(repr, labels[:5]))
        raise ValueError(
            f"column {column!r} must hold two labels, pos_label one of them; it has {shown}"
        )
    positive = labels[1] if pos_label is None else pos_label
    return next(value for value in labels if value != positive), positive
