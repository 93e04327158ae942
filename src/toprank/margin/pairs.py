"""Pairs of rows with different grades inside a query, counted and summed without listing them.

For a pair of one query with grade_i > grade_j put r = 1 - f_i + f_j and, with a bend mu > 0,

    loss(r) = 0 for r <= 0,   r²/2 for 0 < r < mu,   mu·(r - mu/2) for r >= mu.

mu = infinity is half the squared hinge; loss/mu tends to the hinge as mu falls to 0.

Each pair is seen from both of its rows. From the higher one (side 0), rows stand in descending order of
score, and the rows with r > 0 and those with r >= mu are two growing prefixes of that order; of these,
the ones of lower grade are its partners. From the lower row (side 1) the order is turned round. One
walk along a side finds how far the two prefixes reach (`_walk_side`); sums over the partners then come
from a Fenwick tree over the grades (`_sum_partners`), in O(n log levels): sums of weights, scores and
squared scores give the losses, sums of feature vectors the Hessian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from toprank.margin.matrices import SERIAL, cross_product, to_dense
from toprank.parallel import ThreadPool
from toprank.ranking import descending_order, order_by_code

__all__ = ["GradedPairs", "PairSums"]

_BLOCK = 1 << 20  # numbers of the Hessian's half worked on at a time
_NARROW = 32  # rows in the bend up to which they are summed one by one


@dataclass(frozen=True)
class PairSums:
    """Sums over all pairs at given scores.

    Attributes
    ----------
    scores, order : ndarray of shape (n_rows,)
        Where the sums were taken, and the rows in descending order inside each query.
    bend : float
        The residual at which the loss turns from a parabola into a line.
    loss, hinge, derivative : float
        Sum of the losses, of max(0, r), and of the derivatives of the loss in r.
    gradient : ndarray of shape (n_rows,)
        Gradient of `loss` in the scores.
    degree : ndarray of shape (n_rows,)
        Diagonal of the second derivative of `loss` in the scores: a row's weight times the weight of
        its partners with 0 < r < bend.
    """

    scores: np.ndarray
    order: np.ndarray
    bend: float
    loss: float
    hinge: float
    derivative: float
    gradient: np.ndarray
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
        """Count the pairs of rows with labels `y`, weights, and query codes 0, 1, ...

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
        group_weight = np.bincount(group, weight)
        below = np.concatenate([[0.0], np.cumsum(group_weight)])
        lower = below[:-1] - below[np.repeat(first, levels)]
        return cls(
            grade=(group - first[codes]).astype(np.int64),
            levels=levels.astype(np.int64),
            weight=np.ascontiguousarray(weight, dtype=np.float64),
            query=None if len(sizes) == 1 else codes,
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            total=float(group_weight @ lower),
        )

    def sample(self, share: int) -> tuple[np.ndarray, GradedPairs]:
        """Draw every `share`-th query, or rows if queries are few; return them and their pairs."""
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
        """Sum over all pairs at `scores`: one sort, and a walk along each side."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        if self.query is None:
            order = descending_order(scores)
        else:
            order = order_by_code(scores, self.query, len(self.levels))[0]
        centred = _centre(scores, order, self.starts)
        moments = _matrix_arrays(np.column_stack((np.ones(len(centred)), centred, centred**2)))
        gradient, degree = np.zeros(len(scores)), np.zeros(len(scores))
        totals = np.zeros(3)
        for side in (0, 1):
            walk = self._walk(side, centred, order, bend)
            bent = self._moments(walk, walk.far, walk.near, moments)
            straight = np.zeros((0, 3))
            if np.isfinite(bend):
                straight = self._moments(walk, np.zeros_like(walk.far), walk.far, moments)
            _add_losses(
                side, walk, centred, self.weight, bend, bent, straight, totals, gradient, degree
            )
        loss, hinge, derivative = totals.tolist()
        return PairSums(scores, order, bend, loss, hinge, derivative, gradient, degree)

    def hessian_product(self, at: PairSums, v: np.ndarray) -> np.ndarray:
        """Multiply the second derivative of the loss in the scores (a graph Laplacian) by `v`."""
        out = at.degree * v
        for side in (0, 1):
            for rows, sums in self._partners(at, v.reshape(-1, 1), side, len(v)):
                out[rows] -= sums[:, 0]
        return out

    def hessian(self, at: PairSums, X: Any, pool: ThreadPool = SERIAL) -> np.ndarray:
        """Return the second derivative of the loss in the coefficients of scores `X @ v`.

        X'LX = X'Z + Z'X with Z = degree·X/2 - (sums over the partners of lower grade), so one side
        of the pairs is enough; blocks of Z are used as they come.
        """
        n_columns = X.shape[1]
        out = np.zeros((n_columns, n_columns))
        for rows, sums in self._partners(at, X, 0, max(1, _BLOCK // n_columns)):
            part = to_dense(X[rows])
            half = 0.5 * at.degree[rows, None] * part
            half -= sums
            out += cross_product(part, half, pool)
        return out + out.T

    def _walk(self, side: int, centred: np.ndarray, order: np.ndarray, bend: float) -> _Walk:
        return _Walk(*_walk_side(side, centred, order, self.starts, self.grade, self.levels, bend))

    def _moments(
        self, walk: _Walk, begin: np.ndarray, end: np.ndarray, moments: _Matrix
    ) -> np.ndarray:
        """Return the sums of w, w·f and w·f² over a window of each row's partners."""
        window = _Window(walk.rows, walk.rank, begin, end, self.starts, self.levels)
        return _TreeSums(window, self.weight, moments).next(len(walk.rows))

    def _partners(
        self, at: PairSums, X: Any, side: int, step: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of rows i with w_i times the sum of w_j·x_j over the partners in the bend."""
        centred = _centre(at.scores, at.order, self.starts)
        walk = self._walk(side, centred, at.order, at.bend)
        window = _Window(walk.rows, walk.rank, walk.far, walk.near, self.starts, self.levels)
        tree_sums = _TreeSums(window, self.weight, _matrix_arrays(X))
        for first in range(0, len(walk.rows), step):
            rows = walk.rows[first : first + step]
            sums = tree_sums.next(len(rows))
            sums *= self.weight[rows, None]
            yield rows, sums


# -- compiled walks ----------------------------------------------------------------------------------


class _Walk(NamedTuple):
    """One side of the pairs, by position in its order.

    `rank` is the grade counted from the side's own end, so that partners have a lower rank. The rows of
    the query before position `near` have r > 0, those before position `far` have r >= bend.
    """

    rows: np.ndarray
    rank: np.ndarray
    near: np.ndarray
    far: np.ndarray


class _Window(NamedTuple):
    """For each position, the positions from `begin` to `end` over whose lower ranks to sum."""

    rows: np.ndarray
    rank: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    starts: np.ndarray
    levels: np.ndarray


class _Matrix(NamedTuple):
    """A matrix as the kernels read it: `dense`, or compressed sparse rows if `indptr` is not empty."""

    dense: np.ndarray
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_columns: int


def _matrix_arrays(X: Any) -> _Matrix:
    if sparse.issparse(X):
        indices, indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return _Matrix(np.zeros((0, 0)), X.data, indices, indptr, X.shape[1])
    none = np.zeros(0, np.int64)
    return _Matrix(np.ascontiguousarray(X), np.zeros(0), none, none, X.shape[1])


class _TreeSums:
    """Sums over the windows of one position after the other, as many at a time as are asked for."""

    def __init__(self, window: _Window, weight: np.ndarray, matrix: _Matrix) -> None:
        self.window, self.weight, self.matrix = window, weight, matrix
        self.tree = np.zeros((int(window.levels.max()) + 1, matrix.n_columns))
        self.state = np.array([0, -1, 0, 0], dtype=np.int64)  # position, query, entered, left

    def next(self, n_positions: int) -> np.ndarray:
        """Return the sums of the next positions."""
        out = np.zeros((n_positions, self.matrix.n_columns))
        _sum_partners(self.window, self.weight, self.matrix, self.state, self.tree, out)
        return out


@njit(cache=True, nogil=True)
def _centre(scores, order, starts):
    """Subtract from each score the middle one of its query: squares stay small."""
    out = np.empty(len(scores))
    for q in range(len(starts) - 1):
        start, stop = starts[q], starts[q + 1]
        for k in range(start, stop):
            out[order[k]] = scores[order[k]] - scores[order[(start + stop) // 2]]
    return out


@njit(cache=True, nogil=True)
def _residual(side, own, other):
    """r of a pair: the same floating-point expression from either row, so both sides agree."""
    return (1.0 - own) + other if side == 0 else (1.0 - other) + own


@njit(cache=True, nogil=True)
def _walk_side(side, scores, order, starts, grade, levels, bend):
    """Rows, ranks and the two reaches at each position of one side (see `_Walk`)."""
    n = len(order)
    rows, rank = np.empty(n, np.int64), np.empty(n, np.int64)
    near, far = np.empty(n, np.int64), np.empty(n, np.int64)
    for q in range(len(levels)):
        start, stop = starts[q], starts[q + 1]
        for k in range(start, stop):
            rows[k] = order[k] if side == 0 else order[start + stop - 1 - k]
            rank[k] = grade[rows[k]] if side == 0 else levels[q] - 1 - grade[rows[k]]
        near_end = far_end = start
        for k in range(start, stop):
            own = scores[rows[k]]
            while near_end < stop and _residual(side, own, scores[rows[near_end]]) > 0.0:
                near_end += 1
            while far_end < near_end and _residual(side, own, scores[rows[far_end]]) >= bend:
                far_end += 1
            near[k], far[k] = near_end, far_end
    return rows, rank, near, far


@njit(cache=True, nogil=True)
def _add_row(tree, place, top, factor, row, matrix):
    """Add `factor` times a row to the nodes of a Fenwick tree that cover `place`."""
    while place <= top:
        if len(matrix.indptr) > 0:
            for p in range(matrix.indptr[row], matrix.indptr[row + 1]):
                tree[place, matrix.indices[p]] += factor * matrix.data[p]
        else:
            for c in range(matrix.dense.shape[1]):
                tree[place, c] += factor * matrix.dense[row, c]
        place += place & -place


@njit(cache=True, nogil=True)
def _sum_partners(window, weight, matrix, state, tree, out):
    """Fill `out` with the sum of w_j·x_j over the window and the lower ranks, position by position.

    Rows come into the tree as `end` passes them and go out as `begin` does. Rows of the best rank
    have no better one, so they are never stored. `state` and `tree` carry on from call to call.
    """
    first, q, entered, left = state
    for k in range(first, first + len(out)):
        while q < 0 or k >= window.starts[q + 1]:
            q += 1
            entered = left = window.starts[q]
            tree[: window.levels[q]] = 0.0
        if window.rank[k] == 0:
            continue
        top = window.levels[q] - 1
        while entered < window.end[k]:
            row = window.rows[entered]
            _add_row(tree, window.rank[entered] + 1, top, weight[row], row, matrix)
            entered += 1
        while left < window.begin[k]:
            row = window.rows[left]
            _add_row(tree, window.rank[left] + 1, top, -weight[row], row, matrix)
            left += 1
        place = window.rank[k]
        while place > 0:
            for c in range(out.shape[1]):
                out[k - first, c] += tree[place, c]
            place -= place & -place
    state[0], state[1], state[2], state[3] = first + len(out), q, entered, left


@njit(cache=True, nogil=True)
def _add_losses(side, walk, scores, weight, bend, bent, straight, totals, gradient, degree):
    """Add one side's part to the gradient and degree and, for side 0, to the totals.

    `bent` and `straight` hold the moments w, w·f, w·f² of each row's partners with 0 < r < bend and
    r >= bend. `totals`: loss, hinge, derivative.
    """
    sign = 1.0 if side == 0 else -1.0
    for k in range(len(walk.rows)):
        if walk.rank[k] == 0:
            continue
        row = walk.rows[k]
        base = 1.0 - sign * scores[row]  # r = base + sign·f
        partners, residuals, squares = _bent_residuals(walk, k, base, sign, scores, weight, bent[k])
        beyond, beyond_residuals, beyond_derivative = 0.0, 0.0, 0.0
        if len(straight) > 0 and straight[k, 0] > 0.0:
            beyond = straight[k, 0]
            beyond_residuals = base * beyond + sign * straight[k, 1]
            beyond_derivative = bend * beyond
        degree[row] += weight[row] * partners
        gradient[row] -= sign * weight[row] * (residuals + beyond_derivative)
        if side == 0:
            beyond_loss = bend * (beyond_residuals - 0.5 * bend * beyond) if beyond > 0.0 else 0.0
            totals[0] += weight[row] * (0.5 * squares + beyond_loss)
            totals[1] += weight[row] * (residuals + beyond_residuals)
            totals[2] += weight[row] * (residuals + beyond_derivative)


@njit(cache=True, nogil=True)
def _bent_residuals(walk, k, base, sign, scores, weight, moments):
    """Weight, sum of r and sum of r² of the partners in the bend.

    When they are few they are summed one by one: a narrow bend needs the digits that a difference of
    two growing sums would lose.
    """
    if walk.near[k] - walk.far[k] > _NARROW:
        residuals = base * moments[0] + sign * moments[1]
        squares = base * (residuals + sign * moments[1]) + moments[2]
        return moments[0], residuals, squares
    partners, residuals, squares = 0.0, 0.0, 0.0
    for j in range(walk.far[k], walk.near[k]):
        if walk.rank[j] < walk.rank[k]:
            other = walk.rows[j]
            r = base + sign * scores[other]
            partners += weight[other]
            residuals += weight[other] * r
            squares += weight[other] * r * r
    return partners, residuals, squares
