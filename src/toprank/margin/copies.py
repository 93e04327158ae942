"""Identical rows as one row with a weight.

A loss over pairs is the same for a row of weight 2 and for the row twice, but a solver that stops at a
tolerance ends at slightly different points. Merged and sorted, the two are the same problem to the bit,
and so is every order of the rows.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from toprank.base import TrainingData

__all__ = ["merge_copies"]

_MOST_NUMBERS = 1 << 21  # beyond, sorting whole rows would cost more than it is worth


def merge_copies(data: TrainingData) -> TrainingData:
    """Return small data with each distinct row (and label, and query) once, weights added up.

    Examples
    --------
    >>> import numpy as np
    >>> rows = TrainingData(np.array([[2.0], [1.0], [2.0]]), np.array([1.0, 0.0, 1.0]), None, None)
    >>> merged = merge_copies(rows)
    >>> merged.X.ravel().tolist(), merged.weights.tolist()
    ([1.0, 2.0], [1.0, 2.0])
    """
    n_rows, n_columns = data.X.shape
    if n_rows * n_columns > _MOST_NUMBERS:
        return data
    dense = data.X.toarray() if sparse.issparse(data.X) else np.asarray(data.X)
    query = np.zeros(n_rows) if data.qid is None else data.qid
    keys = np.column_stack((query, data.y, dense)) + 0.0  # no negative zeros
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights=data.weights)
    kept = data.rows(first)
    return TrainingData(kept.X, kept.y, weights, kept.qid)
