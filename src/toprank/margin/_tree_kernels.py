"""A decision tree on binned columns: the same splits as an exact tree where the bins hold all values.

Histograms of the classes over at most 256 bins a column make a level of the tree cost one pass over
the codes, instead of a sort of every column in every node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from toprank.margin._matrix import column_block

__all__ = ["bin_columns", "grow_tree"]

MAX_BINS = 256
_ROWS_FOR_CUTS = 50_000


def bin_columns(rows: Any) -> tuple[np.ndarray, list[np.ndarray]]:
    """Codes of the cells (column by column) and the cuts between the codes.

    A cell has code k when k cuts lie below it: cell <= cuts[c] means code <= c. A column with few
    values has a cut between every two of them, others have cuts at quantiles.

    Examples
    --------
    >>> import numpy as np
    >>> codes, cuts = bin_columns(np.array([[3.0], [1.0], [2.0]]))
    >>> codes.tolist(), cuts[0].tolist()
    ([[2, 0, 1]], [1.5, 2.5])
    """
    n_rows, n_columns = rows.shape
    codes = np.empty((n_columns, n_rows), dtype=np.uint8)
    cuts = []
    step = max(1, n_rows // _ROWS_FOR_CUTS)
    for c in range(n_columns):
        column = column_block(rows, c, c + 1).ravel()
        found = _cuts(column[::step])
        codes[c] = np.searchsorted(found, column, side="left")
        cuts.append(found)
    return codes, cuts


def _cuts(column: np.ndarray) -> np.ndarray:
    """Cuts between the values of a column, at most one fewer than the bins."""
    values = np.unique(column)
    if len(values) > MAX_BINS:
        places = np.linspace(0, len(column) - 1, MAX_BINS + 1)[1:-1]
        return np.unique(np.sort(column)[places.round().astype(np.int64)])
    low, high = values[:-1], values[1:]
    middle = low + (high - low) / 2.0
    return np.where(middle < high, middle, low)


@njit(cache=True, nogil=True)
def grow_tree(codes, positive, max_depth, min_leaf):
    """Grow a tree by the Gini impurity, level by level.

    Returns, for every node, the column and the code it splits on (-1 for leaves; codes up to that
    one go left), its children and its share of positives. Children come after their parents.
    """
    n_rows = codes.shape[1]
    most = 2 * (n_rows // max(min_leaf, 1)) + 3
    column = np.full(most, -1, np.int64)
    code = np.full(most, -1, np.int64)
    left, right = np.full(most, -1, np.int64), np.full(most, -1, np.int64)
    share = np.zeros(most)
    begin, end, depth = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
    order = np.arange(n_rows)
    spare = np.empty(n_rows, np.int64)
    end[0] = n_rows
    n_nodes, node = 1, 0
    while node < n_nodes:
        start, stop = begin[node], end[node]
        n = stop - start
        total = 0
        for k in range(start, stop):
            total += positive[order[k]]
        share[node] = total / n
        if 0 < total < n and depth[node] < max_depth and n >= 2 * min_leaf:
            split_column, split_code = _best_split(
                codes, positive, order[start:stop], total, min_leaf
            )
            if split_column >= 0:
                kept, moved = start, 0
                for k in range(start, stop):  # a stable partition
                    row = order[k]
                    if codes[split_column, row] <= split_code:
                        order[kept] = row
                        kept += 1
                    else:
                        spare[moved] = row
                        moved += 1
                order[kept:stop] = spare[:moved]
                column[node], code[node] = split_column, split_code
                left[node], right[node] = n_nodes, n_nodes + 1
                for child in range(n_nodes, n_nodes + 2):
                    depth[child] = depth[node] + 1
                begin[n_nodes], end[n_nodes] = start, kept
                begin[n_nodes + 1], end[n_nodes + 1] = kept, stop
                n_nodes += 2
        node += 1
    return column[:n_nodes], code[:n_nodes], left[:n_nodes], right[:n_nodes], share[:n_nodes]


@njit(cache=True, nogil=True)
def _best_split(codes, positive, rows, total, min_leaf):
    """Column and code of the split that lowers the Gini impurity most, -1 if none does.

    Up to constants the impurity left is minus the sum over both sides of (P^2 + N^2)/(P + N).
    """
    n = len(rows)
    best = (total * total + (n - total) * (n - total)) / n * (1.0 + 1e-12)
    best_column, best_code = -1, -1
    counts = np.zeros(MAX_BINS, np.int64)
    positives = np.zeros(MAX_BINS, np.int64)
    for c in range(len(codes)):
        counts[:] = 0
        positives[:] = 0
        column = codes[c]
        for row in rows:
            counts[column[row]] += 1
            positives[column[row]] += positive[row]
        size, hits = 0, 0
        for k in range(MAX_BINS - 1):
            if counts[k] == 0:
                continue
            size += counts[k]
            hits += positives[k]
            other = n - size
            if other < min_leaf:
                break
            if size < min_leaf:
                continue
            misses, other_hits = size - hits, total - hits
            other_misses = other - other_hits
            gain = (hits * hits + misses * misses) / size
            gain += (other_hits * other_hits + other_misses * other_misses) / other
            if gain > best:
                best, best_column, best_code = gain, c, k
    return best_column, best_code
