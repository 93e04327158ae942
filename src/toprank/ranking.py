"""Ranked lists: order, tie groups and cumulative class weights from one sort.

Ranks count from the highest score. Rows with equal scores form a tie group; nothing that these objects
expose at the level of tie groups depends on the order in which rows were given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toprank.parallel import run_halves
from toprank.validation import require_finite

__all__ = ["RankedList", "RankedQueries", "descending_order", "order_by_code"]

FloatArray = np.ndarray
IntArray = np.ndarray


def descending_order(scores: FloatArray) -> IntArray:
    """Return the row indices from the highest to the lowest score (ties in no particular order).

    Examples
    --------
    >>> import numpy as np
    >>> descending_order(np.array([0.1, 0.9, 0.5])).tolist()
    [1, 2, 0]
    """
    return _order_and_scores(np.ascontiguousarray(scores))[0]


_ROWS_FOR_KEYS = 20_000


def _order_and_scores(scores: FloatArray) -> tuple[IntArray, FloatArray]:
    """Rows from the highest to the lowest score, and the scores in that order.

    Every sort of scores goes through here or through `RankedList.of`, so what walks along them meets no NaN.

    On long lists the high bits of each score and the row's number go into one 64-bit integer: integers
    are sorted without a permutation, in half the time of an argsort. Scores that agree in all the bits
    kept are put right by insertion, or by an argsort where there are too many of them.
    """
    require_finite(scores)
    n = len(scores)
    if scores.dtype == np.float64 and _ROWS_FOR_KEYS <= n < 2**32:
        from toprank import _ranking_kernels as kernels  # Numba is slow to import

        bits = (n - 1).bit_length()
        # from NumPy: memory that compiled code asks for costs more to fetch than to fill
        keys, order, ranked = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n)
        kernels.sort_keys(scores, bits, keys)
        keys.sort()

        def read(part: slice) -> None:
            kernels.read_keys(keys[part], scores, bits, order[part], ranked[part])

        run_halves(read, n)
        if kernels.settle(order, ranked):
            return order, ranked
    order = np.argsort(-scores)
    return order, scores[order]


def order_by_code(scores: FloatArray, codes: IntArray, n_codes: int) -> tuple[IntArray, IntArray]:
    """Group rows by code (0, 1, ...), highest score first in each; return the order and the starts.

    What `RankedQueries.of` does, for callers that know the codes and sort many times.

    Examples
    --------
    >>> import numpy as np
    >>> order, starts = order_by_code(np.array([0.1, 0.9, 0.5]), np.array([1, 1, 0]), 2)
    >>> order.tolist(), starts.tolist()
    ([2, 1, 0], [0, 1, 3])
    """
    from toprank import _ranking_kernels as kernels

    return kernels.group_by_code(descending_order(scores), codes, n_codes)


@dataclass(frozen=True)
class RankedList:
    """One list of rows, highest score first, seen as a sequence of tie groups.

    Attributes
    ----------
    scores : ndarray of shape (n_groups,)
        The distinct scores, descending.
    ends : ndarray of shape (n_groups,)
        How many rows are ranked at or above each group.
    positives, negatives : ndarray of shape (n_groups,)
        Weight of the positives (negatives) ranked at or above each group.
    """

    scores: FloatArray
    ends: IntArray
    positives: FloatArray
    negatives: FloatArray
    row_scores: FloatArray

    @classmethod
    def of(
        cls, y: np.ndarray, scores: FloatArray, sample_weight: FloatArray | None = None
    ) -> RankedList:
        """Rank rows with labels `y` (0/1 or boolean) by `scores`.

        Without weights no permutation is needed: the scores of each class are sorted on their own
        (several times faster than an argsort) and merged.

        Examples
        --------
        >>> import numpy as np
        >>> ranked = RankedList.of(np.array([1, 0, 1, 0]), np.array([3.0, 2.0, 2.0, 1.0]))
        >>> ranked.scores.tolist(), ranked.positives.tolist(), ranked.negatives.tolist()
        ([3.0, 2.0, 1.0], [1.0, 2.0, 2.0], [0.0, 1.0, 2.0])
        """
        from toprank import _ranking_kernels as kernels

        scores = np.ascontiguousarray(scores)
        positive = np.asarray(y) > 0
        if sample_weight is None:
            require_finite(scores)
            by_class = np.sort(scores[positive]), np.sort(scores[~positive])
            distinct, ends, positives, negatives = kernels.merge_classes(*by_class)
            return cls(distinct, ends, positives, negatives, scores)
        order = descending_order(scores)
        weight = np.ascontiguousarray(sample_weight, dtype=np.float64)
        distinct, ends, positives, negatives = kernels.weigh_groups(order, scores, positive, weight)
        ranked = cls(distinct, ends, positives, negatives, scores)
        ranked.__dict__["order"] = order  # what the cached property would compute again
        return ranked

    @cached_property
    def order(self) -> IntArray:
        """Row indices, highest score first."""
        return descending_order(self.row_scores)

    @property
    def n_groups(self) -> int:
        return len(self.scores)

    @property
    def n_rows(self) -> int:
        return len(self.row_scores)

    @property
    def total_positives(self) -> float:
        return float(self.positives[-1])

    @property
    def total_negatives(self) -> float:
        return float(self.negatives[-1])


@dataclass(frozen=True)
class RankedQueries:
    """Many lists at once: rows grouped by query, highest score first inside each.

    Attributes
    ----------
    queries : ndarray of shape (n_queries,)
        The distinct query identifiers, in the order in which their blocks stand.
    order : ndarray of shape (n_rows,)
        Row indices, one query after the other.
    starts : ndarray of shape (n_queries + 1,)
        Block `q` is `order[starts[q]:starts[q + 1]]`.
    scores : ndarray of shape (n_rows,)
        The scores in that order.
    """

    queries: np.ndarray
    order: IntArray
    starts: IntArray
    scores: FloatArray

    @classmethod
    def of(cls, scores: FloatArray, qid: Any = None) -> RankedQueries:
        """Rank `scores` inside each query; without `qid` all rows are one query.

        Examples
        --------
        >>> import numpy as np
        >>> ranked = RankedQueries.of(np.array([0.1, 0.2, 0.9, 0.3]), qid=np.array([7, 7, 5, 5]))
        >>> ranked.order.tolist(), ranked.starts.tolist()
        ([2, 3, 1, 0], [0, 2, 4])
        """
        scores = np.ascontiguousarray(scores)
        by_score, ranked = _order_and_scores(scores)
        if qid is None:
            starts = np.array([0, len(scores)], dtype=np.int64)
            return cls(np.zeros(1, dtype=np.int64), by_score, starts, ranked)
        from toprank import _ranking_kernels as kernels

        queries, codes = np.unique(np.asarray(qid), return_inverse=True)
        order, starts = kernels.group_by_code(by_score, codes.astype(np.int64), len(queries))
        return cls(queries, order, starts, scores[order])

    @property
    def n_queries(self) -> int:
        return len(self.starts) - 1
