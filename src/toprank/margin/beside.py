"""Blocks of columns side by side in one sparse matrix, put together a part of the rows at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from toprank.margin._matrix import row_blocks

__all__ = ["row_products", "side_by_side"]


def side_by_side(matrix: Any, path: sparse.csr_array, products: bool = False) -> sparse.csr_matrix:
    """`[matrix, path]`, or `[matrix, path, all products of the two]`, as one CSR matrix.

    Its arrays are made at their full size and filled in turn, so that nothing is held twice.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> path = sparse.csr_array(np.array([[1.0, 0.0], [0.0, -1.0]]))
    >>> side_by_side(np.array([[5.0], [7.0]]), path, products=True).toarray().tolist()
    [[5.0, 1.0, 0.0, 5.0, 0.0], [7.0, 0.0, -1.0, 0.0, -7.0]]
    """
    n_rows, n_columns = matrix.shape
    blocks = row_blocks(matrix)
    own = np.concatenate([np.empty(0, np.int64), *(_entries(matrix[block]) for block in blocks)])
    passed = np.diff(path.indptr).astype(np.int64)
    starts = np.concatenate(([0], np.cumsum(own + passed + (own * passed if products else 0))))
    width = n_columns + path.shape[1] * (1 + (n_columns if products else 0))
    # 32-bit indices where they suffice: what other learners accept
    kind = np.int32 if max(int(starts[-1]), width) < np.iinfo(np.int32).max else np.int64
    values, indices = np.empty(starts[-1]), np.empty(starts[-1], dtype=kind)
    for block in blocks:
        columns, edges = sparse.csr_array(matrix[block], dtype=np.float64), path[block]
        parts = [columns, edges, *([row_products(edges, columns)] if products else [])]
        joined = sparse.hstack(parts, format="csr")
        first = starts[block.start]
        values[first : first + joined.nnz] = joined.data
        indices[first : first + joined.nnz] = joined.indices
    return sparse.csr_matrix((values, indices, starts.astype(kind)), shape=(n_rows, width))


def _entries(rows: Any) -> np.ndarray:
    """How many entries each row has in a CSR matrix."""
    return np.diff(rows.indptr) if sparse.issparse(rows) else np.count_nonzero(rows, axis=1)


def row_products(path: sparse.csr_array, columns: sparse.csr_array) -> sparse.csr_array:
    """All products of an entry of the path with an entry of the columns, row by row."""
    n_rows, n_columns = columns.shape
    per_path, per_row = np.diff(path.indptr), np.diff(columns.indptr)
    sizes = per_path * per_row
    starts = np.concatenate(([0], np.cumsum(sizes)))
    row = np.repeat(np.arange(n_rows), sizes)
    within = np.arange(starts[-1]) - starts[row]
    from_path = path.indptr[row] + within // per_row[row]
    from_columns = columns.indptr[row] + within % per_row[row]
    values = path.data[from_path] * columns.data[from_columns]
    where = path.indices[from_path].astype(np.int64) * n_columns + columns.indices[from_columns]
    return sparse.csr_array((values, where, starts), shape=(n_rows, path.shape[1] * n_columns))
