"""The Laplacian of all pairs of a query, or of its pairs with different labels.

The squared pair errors sum to a quadratic form: with e = y - f,

    sum over pairs {i, j} of w_i w_j (e_i - e_j)² = e'Le.

For all pairs of a query of weight W, L = W·diag(w) - ww'; for pairs with different labels the same
block of each label is taken off again. L ignores a constant added to a query, so features and targets
are centred query by query first, after which the term ww' of the query vanishes:

    all     X'LX = X' diag(w·W) X
    cross   X'LX = X' diag(w·(W - W_g)) X + sum over labels g of s_g s_g',   s_g = sum of w·x over g.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from toprank.margin._matrix import column_block, row_blocks, transposed_product

__all__ = ["PAIRS", "PairLaplacian"]

PAIRS = ("all", "cross")


@dataclass(frozen=True)
class PairLaplacian:
    """Queries and groups (the rows of one query with one label), with their weights.

    Attributes
    ----------
    weight : float ndarray of shape (n_rows,)
    query, group : int ndarray of shape (n_rows,)
    query_weight : float ndarray of shape (n_queries,)
    group_weight : float ndarray of shape (n_groups,)
    group_query : int ndarray of shape (n_groups,)
    cross : bool
        Whether only pairs with different labels count.
    """

    weight: np.ndarray
    query: np.ndarray
    group: np.ndarray
    query_weight: np.ndarray
    group_weight: np.ndarray
    group_query: np.ndarray
    cross: bool

    @classmethod
    def of(
        cls, y: np.ndarray, weight: np.ndarray, qid: np.ndarray | None, pairs: str
    ) -> PairLaplacian:
        """The Laplacian of rows with labels `y`, weights and query codes.

        Examples
        --------
        >>> import numpy as np
        >>> laplacian = PairLaplacian.of(np.array([1.0, 0.0, 0.0]), np.ones(3), None, "cross")
        >>> laplacian.times(np.eye(3)).tolist()
        [[2.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]]
        """
        query = np.zeros(len(y), np.int64) if qid is None else qid
        labels, label = np.unique(y, return_inverse=True)
        present, group = np.unique(query * len(labels) + label, return_inverse=True)
        return cls(
            weight=weight,
            query=query,
            group=group,
            query_weight=np.bincount(query, weight),
            group_weight=np.bincount(group, weight),
            group_query=present // len(labels),
            cross=pairs == "cross",
        )

    @property
    def degree(self) -> np.ndarray:
        """What multiplies each row in the diagonal: its weight times that of its partners.

        For all pairs the row itself is among them: the off-diagonal part takes it off again.
        """
        partners = self.query_weight[self.query]
        if self.cross:
            partners = partners - self.group_weight[self.group]
        return self.weight * partners

    def times(self, V: np.ndarray) -> np.ndarray:
        """L times a vector or the columns of a matrix."""
        by_query = _group_sums(V, self.weight, self.query, len(self.query_weight))[self.query]
        if self.cross:
            by_query = (
                by_query
                - _group_sums(V, self.weight, self.group, len(self.group_weight))[self.group]
            )
        extend = (slice(None),) + (None,) * (V.ndim - 1)
        return self.degree[extend] * V - self.weight[extend] * by_query

    def centre(self, V: Any) -> Any:
        """Subtract the mean of its query from each row, in place if dense; sparse rows stay."""
        if sparse.issparse(V):
            return V
        sums = _group_sums(V, self.weight, self.query, len(self.query_weight))
        extend = (slice(None),) + (None,) * (V.ndim - 1)
        means = sums / self.query_weight[extend]
        for block in [slice(None)] if V.ndim == 1 else row_blocks(V):
            V[block] -= means[self.query[block]]
        return V

    def gram(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """X'LX and X'Ly, for dense `X` after `centre`."""
        degree = self.degree
        out = np.zeros((X.shape[1], X.shape[1]))
        for block in row_blocks(X):
            rows = column_block(X[block], 0, X.shape[1])
            out += rows.T @ (degree[block, None] * rows)
        if self.cross:
            sums = _group_sums(X, self.weight, self.group, len(self.group_weight))
            out += sums.T @ sums
        if sparse.issparse(X) or not self.cross:
            sums = _group_sums(X, self.weight, self.query, len(self.query_weight))
            out -= sums.T @ sums
        return 0.5 * (out + out.T), transposed_product(X, self.times(y))


def _group_sums(V: Any, weight: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """Weighted sums of the rows of each group."""
    if V.ndim == 1:
        return np.bincount(group, weight * V, minlength=n_groups)
    out = np.zeros((n_groups, V.shape[1]))
    for block in row_blocks(V):
        chosen = group[block]
        first, last = int(chosen.min()), int(chosen.max()) + 1
        member = sparse.csr_matrix(
            (weight[block], (chosen - first, np.arange(len(chosen)))),
            shape=(last - first, len(chosen)),
        )
        out[first:last] += member @ column_block(V[block], 0, V.shape[1])
    return out
