"""Pairs of rows with different grades inside a query, summed without listing them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from toprank.margin._kernels import pair_losses, partner_sums
from toprank.margin._matrix import column_block
from toprank.ranking import descending_order, order_by_code

__all__ = ["GradedPairs", "PairSums"]

_BLOCK = 1 << 20  # numbers of the Hessian's half worked on at a time


@dataclass(frozen=True)
class PairSums:
    """Sums over all pairs at given scores (`margin._kernels` defines the loss).

    Attributes
    ----------
    scores, order : ndarray of shape (n_rows,)
        Where the sums were taken, and the rows in descending order inside each query.
    bend : float
        The residual at which the loss turns from a parabola into a line.
    loss, hinge, pull : float
        Sum of the losses, of max(0, r), and of the derivatives of the loss in r.
    slope : ndarray of shape (n_rows,)
        Gradient of `loss` in the scores.
    degree : ndarray of shape (n_rows,)
        Diagonal of the second derivative of `loss` in the scores.
    """

    scores: np.ndarray
    order: np.ndarray
    bend: float
    loss: float
    hinge: float
    pull: float
    slope: np.ndarray
    degree: np.ndarray


@dataclass(frozen=True)
class GradedPairs:
    """All pairs (i, j) of one query with y_i > y_j, each with the weight w_i·w_j.

    Attributes
    ----------
    grade : int ndarray of shape (n_rows,)
        Position of a row's label among the distinct labels of its query.
    levels : int ndarray of shape (n_queries,)
        Number of distinct labels in each query.
    weight : float ndarray of shape (n_rows,)
    query : int ndarray of shape (n_rows,) or None
        None when all rows are one query.
    starts : int ndarray of shape (n_queries + 1,)
        Where the block of each query begins in an order by query.
    total : float
        Summed weight of all pairs.
    """

    grade: np.ndarray
    levels: np.ndarray
    weight: np.ndarray
    query: np.ndarray | None
    starts: np.ndarray
    total: float

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, query: np.ndarray | None = None) -> GradedPairs:
        """Pairs of rows with labels `y`, weights, and query codes 0, 1, ...

        Examples
        --------
        >>> import numpy as np
        >>> pairs = GradedPairs.of(np.array([2.0, 0.0, 1.0]), np.ones(3))
        >>> pairs.grade.tolist(), pairs.total
        ([2, 0, 1], 3.0)
        """
        labels, label = np.unique(y, return_inverse=True)
        codes = np.zeros(len(y), np.int64) if query is None else query.astype(np.int64)
        sizes = np.bincount(codes)
        present, group = np.unique(codes * len(labels) + label, return_inverse=True)
        levels = np.bincount(present // len(labels), minlength=len(sizes))
        first = np.cumsum(levels) - levels  # the first group of each query
        mass = np.bincount(group, weight)
        below = np.concatenate([[0.0], np.cumsum(mass)])
        lower = below[:-1] - below[np.repeat(first, levels)]
        return cls(
            grade=(group - first[codes]).astype(np.int64),
            levels=levels.astype(np.int64),
            weight=np.ascontiguousarray(weight, dtype=np.float64),
            query=None if len(sizes) == 1 else codes,
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            total=float(mass @ lower),
        )

    def sample(self, share: int) -> tuple[np.ndarray, GradedPairs]:
        """Every `share`-th query, or rows at random if queries are few; and the pairs among them."""
        query = self.query
        if query is not None and len(self.levels) >= 50 * share:
            rows = np.flatnonzero(query % share == 0)
        else:
            n_rows = len(self.grade)
            rows = np.sort(np.random.default_rng(0).permutation(n_rows)[: n_rows // share])
        if query is not None:
            query = np.unique(query[rows], return_inverse=True)[1]
        return rows, GradedPairs.of(self.grade[rows], self.weight[rows], query)

    def sums(self, scores: np.ndarray, bend: float) -> PairSums:
        """Sums over all pairs at `scores`: one sort and two sweeps."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        if self.query is None:
            order = descending_order(scores)
        else:
            order = order_by_code(scores, self.query, len(self.levels))[0]
        loss, hinge, pull, slope, degree = pair_losses(
            scores, order, self.starts, self.grade, self.levels, self.weight, bend
        )
        return PairSums(scores, order, bend, loss, hinge, pull, slope, degree)

    def curvature(self, at: PairSums, v: np.ndarray) -> np.ndarray:
        """Second derivative of the summed loss in the scores (a graph Laplacian), times `v`."""
        out = at.degree * v
        walk = _Rows.of(np.ascontiguousarray(v).reshape(-1, 1))
        for side in (0, 1):
            for rows, sums in self._partners(at, walk, side, len(v)):
                out[rows] -= sums[:, 0]
        return out

    def hessian(self, at: PairSums, X: Any) -> np.ndarray:
        """Second derivative of the summed loss in the coefficients of scores `X @ v`.

        X'LX = X'Z + Z'X with Z = degree·X/2 - (sums over the partners of lower grade), so one walk
        over the pairs is enough; blocks of Z are used as they come.
        """
        n_columns = X.shape[1]
        out = np.zeros((n_columns, n_columns))
        step = max(1, _BLOCK // n_columns)
        for rows, sums in self._partners(at, _Rows.of(X), 0, step):
            part = column_block(X[rows], 0, n_columns)
            half = 0.5 * at.degree[rows, None] * part
            half -= sums
            out += part.T @ half
        return out + out.T

    def _partners(
        self, at: PairSums, walk: _Rows, side: int, step: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Blocks of rows with the weighted sums over each row's partners in the bend of the loss."""
        n_rows = len(self.grade)
        state = np.full(3, -1, np.int64)
        tree = np.zeros((int(self.levels.max()) + 1, walk.n_columns))
        rows = np.empty(min(step, n_rows), np.int64)
        sums = np.empty((len(rows), walk.n_columns))
        for first in range(0, n_rows, step):
            last = min(first + step, n_rows)
            partner_sums(
                side, at.scores, at.order, self.starts, self.grade, self.levels, self.weight,
                at.bend, walk.dense, walk.data, walk.indices, walk.indptr, first, last, state,
                tree, rows, sums,
            )  # fmt: skip
            yield rows[: last - first], sums[: last - first]


@dataclass(frozen=True)
class _Rows:
    """A dense or sparse matrix as the arrays that a kernel reads."""

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_columns: int

    @classmethod
    def of(cls, X: Any) -> _Rows:
        if sparse.issparse(X):
            parts = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
            return cls(np.zeros((0, 0)), *parts, X.shape[1])
        none = np.zeros(0, np.int64)
        return cls(np.ascontiguousarray(X), np.zeros(0), none, none, X.shape[1])
