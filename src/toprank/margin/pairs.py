"""Pairs of rows with different grades inside a query, counted and summed without listing them.

For a pair of one query with grade_i > grade_j put r = 1 - f_i + f_j and, with a bend mu > 0,

    loss(r) = 0 for r <= 0,   r²/2 for 0 < r < mu,   mu·(r - mu/2) for r >= mu.

mu = infinity is half the squared hinge; loss/mu tends to the hinge as mu falls to 0.

Each pair is seen from both of its rows. From the higher one (side 0), rows stand in descending order of
score, and the rows with r > 0 and those with r >= mu are two growing prefixes of that order; of these,
the ones of lower grade are its partners. From the lower row (side 1) the order is turned round. One
walk along a side finds how far the two prefixes reach (`_walk_side`). A Fenwick tree over the grades then
gives sums over the partners in O(n log levels): sums of weights, scores and squared scores for the losses
(`_add_losses`), sums of feature vectors for the Hessian (`_sum_partners`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from toprank.margin.matrices import (
    SERIAL,
    add_row,
    cross_product,
    matrix_arrays,
    to_dense,
)
from toprank.parallel import ThreadPool
from toprank.ranking import descending_order, order_by_code

_BLOCK = 1 << 20  # numbers of the Hessian's half worked on at a time
_NARROW = 32  # rows in the bend up to which they are summed one by one


@dataclass(frozen=True)
class PairSums:
    """Sums over all pairs at `scores`; `order` has the rows in descending order inside each query.

    `loss`, `hinge` and `derivative` sum the losses with that bend, max(0, r), and the derivatives of the
    loss in r. `gradient` and `degree` are the gradient of `loss` in the scores and the diagonal of its
    second derivative: a row's weight times the weight of its partners with 0 < r < bend.
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

    `grade` is the position of a row's label among the distinct labels of its query, `levels` how many
    there are in each query. `query` is None when all rows are one query; in an order by query the block
    of each begins at `starts`. `total` is the summed weight of all pairs.
    """

    grade: np.ndarray
    levels: np.ndarray
    weight: np.ndarray
    query: np.ndarray | None
    starts: np.ndarray
    total: float

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, query: np.ndarray | None = None) -> GradedPairs:
        """Count the pairs of rows with labels `y`, weights, and query codes 0, 1, ..."""
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
        gradient, degree, totals = np.zeros(len(scores)), np.zeros(len(scores)), np.zeros(3)
        for side in (0, 1):
            walk = self._walk(side, scores, order, bend)
            _add_losses(
                side, walk, self.starts, self.levels, self.weight, bend, totals, gradient, degree
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

    def _walk(self, side: int, scores: np.ndarray, order: np.ndarray, bend: float) -> _Walk:
        return _Walk(*_walk_side(side, scores, order, self.starts, self.grade, self.levels, bend))

    def _partners(
        self, at: PairSums, X: Any, side: int, step: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield blocks of rows i with w_i times the sum of w_j·x_j over the partners in the bend."""
        walk, matrix = self._walk(side, at.scores, at.order, at.bend), matrix_arrays(X)
        tree = np.zeros((int(self.levels.max()) + 1, X.shape[1]))
        state = np.array([0, -1, 0, 0], dtype=np.int64)
        for first in range(0, len(walk.rows), step):
            rows = walk.rows[first : first + step]
            sums = np.zeros((len(rows), X.shape[1]))
            _sum_partners(walk, self.starts, self.levels, self.weight, matrix, state, tree, sums)
            yield rows, sums


# -- compiled walks ----------------------------------------------------------------------------------


class _Walk(NamedTuple):
    """One side of the pairs, by position in its order.

    `rank` is the grade counted from the side's own end, so that partners have a lower rank. `scores` are
    relative to the middle one of the query, so that squares stay small. The rows of the query before
    position `near` have r > 0, those before position `far` have r >= bend.
    """

    rows: np.ndarray
    rank: np.ndarray
    scores: np.ndarray
    near: np.ndarray
    far: np.ndarray


@njit(inline="always")
def _residual(side, own, other):
    """r of a pair: the same floating-point expression from either row, so both sides agree."""
    return (1.0 - own) + other if side == 0 else (1.0 - other) + own


@njit(cache=True, nogil=True)
def _walk_side(side, scores, order, starts, grade, levels, bend):
    """Walk along one side: the fields of `_Walk`."""
    n = len(order)
    rows, rank, relative = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    near, far = np.empty(n, np.int64), np.empty(n, np.int64)
    for q in range(len(levels)):
        start, stop = starts[q], starts[q + 1]
        for k in range(start, stop):
            row = order[k] if side == 0 else order[start + stop - 1 - k]
            rows[k] = row
            rank[k] = grade[row] if side == 0 else levels[q] - 1 - grade[row]
            relative[k] = scores[row] - scores[order[(start + stop) // 2]]
        near_end = far_end = start
        for k in range(start, stop):
            own = relative[k]
            while near_end < stop and _residual(side, own, relative[near_end]) > 0.0:
                near_end += 1
            while far_end < near_end and _residual(side, own, relative[far_end]) >= bend:
                far_end += 1
            near[k], far[k] = near_end, far_end
    return rows, rank, relative, near, far


# Nodes of a Fenwick tree over the ranks 0 to top - 1 have the numbers 1 to top: rows of the best rank have
# no better one and are never stored. A row of rank r is added at r + 1 and its carries; what lies below
# rank r is read at r and what it covers.


@njit(cache=True, nogil=True)
def _sum_partners(walk, starts, levels, weight, matrix, state, tree, out):
    """Fill `out` with w_i times the sum of w_j·x_j over the partners in the bend, by position.

    Rows come into the tree as `near` passes them and go out as `far` does. `state` (position, query,
    rows that came in, rows that went out) and `tree` carry on from call to call.
    """
    first, q, entered, left = state
    for k in range(first, first + len(out)):
        while q < 0 or k >= starts[q + 1]:
            q += 1
            entered = left = starts[q]
            tree[: levels[q]] = 0.0
        if walk.rank[k] == 0:
            continue
        top = levels[q] - 1
        while entered < walk.near[k]:
            row = walk.rows[entered]
            _add_vector(tree, walk.rank[entered] + 1, top, weight[row], row, matrix)
            entered += 1
        while left < walk.far[k]:
            row = walk.rows[left]
            _add_vector(tree, walk.rank[left] + 1, top, -weight[row], row, matrix)
            left += 1
        place, own_weight = walk.rank[k], weight[walk.rows[k]]
        while place > 0:
            for c in range(out.shape[1]):
                out[k - first, c] += own_weight * tree[place, c]
            place -= place & -place
    state[0], state[1], state[2], state[3] = first + len(out), q, entered, left


@njit(inline="always")
def _add_vector(tree, place, top, factor, row, matrix):
    """Add `factor` times a row of the matrix to the tree."""
    while place <= top:
        add_row(matrix, row, factor, tree[place])
        place += place & -place


@njit(cache=True, nogil=True)
def _add_losses(side, walk, starts, levels, weight, bend, totals, gradient, degree):
    """Add one side's part to the gradient and degree and, for side 0, to the totals.

    Columns of the tree: w, w·f and w·f² of the rows with r > 0, then of those with r >= bend. `totals`:
    loss, hinge, derivative.
    """
    sign = 1.0 if side == 0 else -1.0
    tree, sums = np.zeros((levels.max() + 1, 6)), np.empty(6)
    for q in range(len(levels)):
        entered = passed = starts[q]
        top = levels[q] - 1
        tree[: levels[q]] = 0.0
        for k in range(starts[q], starts[q + 1]):
            if walk.rank[k] == 0:
                continue
            entered = _add_moments(tree, 0, walk, entered, walk.near[k], top, weight)
            passed = _add_moments(tree, 3, walk, passed, walk.far[k], top, weight)
            sums[:] = 0.0
            place = walk.rank[k]
            while place > 0:
                for c in range(6):
                    sums[c] += tree[place, c]
                place -= place & -place
            base = 1.0 - sign * walk.scores[k]  # r = base + sign·f
            partners, residuals, squares = _bent_residuals(walk, k, base, sign, weight, sums)
            beyond = sums[3]  # the weight of the partners with r >= bend
            beyond_residuals = base * beyond + sign * sums[4]
            beyond_derivative = bend * beyond if beyond > 0.0 else 0.0
            row, own = walk.rows[k], weight[walk.rows[k]]
            degree[row] += own * partners
            gradient[row] -= sign * own * (residuals + beyond_derivative)
            if side == 0:
                beyond_loss = 0.0
                if beyond > 0.0:
                    beyond_loss = bend * (beyond_residuals - 0.5 * bend * beyond)
                totals[0] += own * (0.5 * squares + beyond_loss)
                totals[1] += own * (residuals + beyond_residuals)
                totals[2] += own * (residuals + beyond_derivative)


@njit(inline="always")
def _add_moments(tree, column, walk, first, last, top, weight):
    """Add w, w·f and w·f² of the positions `first` to `last` to the tree; return `last`."""
    for k in range(first, last):
        w, f = weight[walk.rows[k]], walk.scores[k]
        place = walk.rank[k] + 1
        while place <= top:
            tree[place, column] += w
            tree[place, column + 1] += w * f
            tree[place, column + 2] += w * f * f
            place += place & -place
    return last


@njit(inline="always")
def _bent_residuals(walk, k, base, sign, weight, sums):
    """Weight, sum of r and sum of r² of the partners in the bend.

    When they are few they are summed one by one: a narrow bend needs the digits that a difference of
    two growing sums would lose.
    """
    if walk.near[k] - walk.far[k] > _NARROW:
        partners, first = sums[0] - sums[3], sign * (sums[1] - sums[4])
        residuals = base * partners + first
        return partners, residuals, base * (residuals + first) + (sums[2] - sums[5])
    partners, residuals, squares = 0.0, 0.0, 0.0
    for j in range(walk.far[k], walk.near[k]):
        if walk.rank[j] < walk.rank[k]:
            w, r = weight[walk.rows[j]], base + sign * walk.scores[j]
            partners += w
            residuals += w * r
            squares += w * r * r
    return partners, residuals, squares
