"""LeafRank: split the rows of a node in two by a small tree of axis-parallel splits.

The small tree cuts the node into cells, each cut chosen by the balanced criterion inside its cell
(maximise |TPR - FPR|); a cell then goes left when its share of the node's positives exceeds its share of
the node's negatives, and right otherwise (Clemencon, Depecker & Vayatis 2011, Machine Learning 83). For
given cells no other assignment has a higher TPR - FPR, and that difference is a sum over the cells:

    TPR - FPR of the split = sum over cells of max(0, tpr - fpr),

so every cut has a gain, value(first) + value(second) - value(cell) >= 0 with value = max(0, tpr - fpr): it
is what pruning weighs and what a variable's importance adds up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from toprank.trees._kernels import BLOCK, SMALL, draw, find_split, partition
from toprank.trees.pruning import branch_gains, collapse_penalties

__all__ = ["LeafRank", "LeafRankRules", "assign_sides", "cut_gains", "grow_cells", "grow_level"]

# columns of the table of cells
FEATURE, THRESHOLD, MISSING_FIRST, FIRST, SECOND, SIDE = range(6)
N_COLUMNS = 6
NOISE = 1e-13  # a smaller gain is the rounding of shares that cancel


@dataclass(frozen=True)
class LeafRankRules:
    """The small trees of a ranking tree, one after the other.

    Attributes
    ----------
    cells : int32 ndarray of shape (n_cells, 6)
        Feature (-1: not cut any further), threshold (a bin; -1: a set of categories), whether missing
        cells come first, the two parts, and whether the rows go left.
    weights : ndarray of shape (n_cells, 2)
        Weight of the positives and of the negatives that were in the cell.
    bits : uint8 ndarray of shape (n_cells, 32)
        The bytes that come first, for sets of categories (no rows if there are no categories).
    roots : int32 ndarray of shape (n_nodes,)
        The cell that is the whole node, -1 for a leaf of the ranking tree.
    """

    cells: np.ndarray
    weights: np.ndarray
    bits: np.ndarray
    roots: np.ndarray


@dataclass(frozen=True)
class LeafRank:
    """Parameters of the splitting rule.

    Attributes
    ----------
    max_depth : int
        Most cuts on the way to a cell.
    min_samples_leaf : float
        Least weight of a cell.
    n_node_features, n_cell_features : int
        Features drawn for a node, and among those for each cell.
    n_folds : int
        Folds that choose how far to prune a small tree; 0 for no pruning.
    """

    max_depth: int = 6
    min_samples_leaf: float = 1.0
    n_node_features: int = 1
    n_cell_features: int = 1
    n_folds: int = 0


@njit(cache=True, nogil=True)
def _class_weights(positive, weight, order, begin, end):
    """Weight of the positives and negatives among `order[begin:end]`."""
    P, N = 0.0, 0.0
    for i in range(begin, end):
        if positive[order[i]]:
            P += weight[order[i]]
        else:
            N += weight[order[i]]
    return P, N


@njit(cache=True, nogil=True)
def grow_cells(
    codes, positive, weight, order, begin, end, n_bins, is_category, pool, n_draw, max_depth,
    min_leaf, rng, work, tables,
):  # fmt: skip
    """Cut the rows `order[begin:end]` (reordered in place) into cells; return how many there are.

    Cells are numbered breadth first; the last table gets the begin, end and depth of each.
    """
    cells, weights, bits, ranges = tables
    counters, runs, keys, scratch = work
    ranges[0, 0], ranges[0, 1], ranges[0, 2] = begin, end, 0
    weights[0, 0], weights[0, 1] = _class_weights(positive, weight, order, begin, end)
    P_node, N_node = weights[0, 0], weights[0, 1]
    count, cell = 1, 0
    while cell < count:
        start, stop, depth = ranges[cell, 0], ranges[cell, 1], ranges[cell, 2]
        P, N = weights[cell, 0], weights[cell, 1]
        cells[cell, FEATURE], cells[cell, FIRST], cells[cell, SECOND] = -1, -1, -1
        cells[cell, SIDE] = 1 if P * N_node > N * P_node else 0
        if depth < max_depth and P > 0.0 and N > 0.0 and 2 * min_leaf <= P + N:
            draw(rng, pool, len(pool), n_draw)
            own_bits = bits[cell if len(bits) > 1 else 0]
            found = find_split(
                codes, positive, weight, order, start, stop, P, N, n_bins, is_category, pool,
                n_draw, min_leaf, counters, runs, keys, cells[cell], own_bits,
            )  # fmt: skip
            if found:
                middle = partition(codes, order, start, stop, cells[cell], own_bits, scratch)
                for part in range(2):
                    ranges[count, 0] = start if part == 0 else middle
                    ranges[count, 1] = middle if part == 0 else stop
                    ranges[count, 2] = depth + 1
                    weights[count, 0], weights[count, 1] = _class_weights(
                        positive, weight, order, ranges[count, 0], ranges[count, 1]
                    )
                    cells[cell, FIRST + part] = count
                    count += 1
        cell += 1
    return count


@njit(cache=True, nogil=True)
def cut_gains(cells, weights, P, N):
    """The gain of each cut: by how much it raises TPR - FPR, half of it, as AUC inside the node.

    `weights` may be those of other rows than the cells were cut with; sides stay as they were learnt.
    """
    gain = np.zeros(len(cells))
    if P <= 0.0 or N <= 0.0:
        return gain
    for cell in range(len(cells)):
        if cells[cell, FEATURE] < 0:
            continue
        first, second = cells[cell, FIRST], cells[cell, SECOND]
        total = -cells[cell, SIDE] * (weights[cell, 0] / P - weights[cell, 1] / N)
        for child in (first, second):
            total += cells[child, SIDE] * (weights[child, 0] / P - weights[child, 1] / N)
        if abs(total) > NOISE:
            gain[cell] = total / 2
    return gain


@njit(cache=True, nogil=True)
def workspace(n_features, n_rows):
    """Scratch memory of the search: class weights of bins, runs of equal bytes, keys, rows."""
    return (
        np.empty((min(BLOCK, n_features), 512)),
        np.empty((256, 3)),
        np.empty(SMALL, np.int64),
        np.empty(n_rows, np.int64),
    )


@njit(cache=True, nogil=True)
def cell_tables(size, any_category):
    """Empty tables for `size` cells; without categories the sets of bytes have one row for all."""
    return (
        np.empty((size, N_COLUMNS), np.int32),
        np.empty((size, 2)),
        np.zeros((size if any_category else 1, 32), np.uint8),
        np.empty((size, 3), np.int64),
    )


@njit(cache=True, nogil=True)
def most_cells(max_depth, n_rows):
    """An upper bound on the cells of a small tree."""
    return max(1, min(2 ** min(max_depth + 1, 40) - 1, 2 * n_rows))


@njit(cache=True, nogil=True)
def grow_level(
    codes, positive, weight, order, starts, stops, n_bins, is_category, n_node_features,
    n_cell_features, max_depth, min_leaf, rng,
):  # fmt: skip
    """Cut the nodes `order[starts[k]:stops[k]]` of one level into cells.

    Rows are reordered inside their node. Returns the tables of all cells, where those of each node
    begin (their numbers count from there), and the features drawn for each node.
    """
    capacity, largest = 0, 0
    for k in range(len(starts)):
        capacity += most_cells(max_depth, stops[k] - starts[k])
        largest = max(largest, stops[k] - starts[k])
    any_category = is_category.any()
    cells, weights, bits, ranges = cell_tables(capacity, any_category)
    begins = np.zeros(len(starts) + 1, np.int64)
    drawn = np.empty((len(starts), n_node_features), np.int64)
    work = workspace(n_node_features, largest)
    pool = np.arange(codes.shape[1])
    for k in range(len(starts)):
        draw(rng, pool, len(pool), n_node_features)
        for j in range(n_node_features):
            drawn[k, j] = pool[j]
        at = begins[k]
        begins[k + 1] = at + grow_cells(
            codes, positive, weight, order, starts[k], stops[k], n_bins, is_category, drawn[k],
            n_cell_features, max_depth, min_leaf, rng, work,
            (cells[at:], weights[at:], bits[at if any_category else 0 :], ranges[at:]),
        )  # fmt: skip
    return (cells, weights, bits, ranges), begins, drawn


@njit(cache=True, nogil=True)
def assign_sides(tables, begins, n_rows, penalties, min_side):
    """Prune the small trees of a level, and send every row to its side.

    `penalties` has one for each node; with 0 nothing is lost, only cuts between cells on the same side go.
    Returns the side of each row (1 left), the root cell of each node (-1: no split with weight
    `min_side` on both sides), and the tables of the cells that are left.
    """
    cells, weights, bits, ranges = tables
    size = begins[-1]
    any_category = len(bits) > 1
    out_cells, out_weights, out_bits, _ = cell_tables(size, any_category)
    goes_left = np.zeros(n_rows, np.uint8)
    roots = np.empty(len(begins) - 1, np.int32)
    at = np.int64(0)
    for k in range(len(roots)):
        begin, end = begins[k], begins[k + 1]
        P, N = weights[begin, 0], weights[begin, 1]
        gain = cut_gains(cells[begin:end], weights[begin:end], P, N)
        first, second = cells[begin:end, FIRST], cells[begin:end, SECOND]
        if penalties[k] > 0.0:
            collapse = collapse_penalties(first, second, gain)
        else:  # what is worth nothing goes
            collapse = branch_gains(first, second, gain)[0]
        count = _keep_cells(
            cells[begin:end], collapse, penalties[k], at, out_cells[at:], ranges[begin:end]
        )
        for i in range(at, at + count):
            source = begin + ranges[begin + i - at, 2]
            out_weights[i, 0], out_weights[i, 1] = weights[source, 0], weights[source, 1]
            if any_category:
                for b in range(32):
                    out_bits[i, b] = bits[source, b]
            if out_cells[i, FEATURE] < 0 and out_cells[i, SIDE]:
                for row in range(ranges[source, 0], ranges[source, 1]):
                    goes_left[row] = 1
        roots[k] = -1
        if _lighter_side(out_cells, out_weights, at, at + count) >= min_side:
            roots[k] = at
            at += count
        else:
            for row in range(ranges[begin, 0], ranges[begin, 1]):
                goes_left[row] = 0
    return goes_left, roots, out_cells[:at], out_weights[:at], out_bits[: at if any_category else 1]


@njit(cache=True, nogil=True)
def _keep_cells(cells, collapse, penalty, offset, out, ranges):
    """Write the cells that stay, breadth first; return how many (where from: third of `ranges`)."""
    ranges[0, 2] = 0
    count, k = 1, 0
    while k < count:
        cell = ranges[k, 2]
        for c in range(N_COLUMNS):
            out[k, c] = cells[cell, c]
        if cells[cell, FEATURE] >= 0 and collapse[cell] > penalty:
            for part in range(2):
                ranges[count, 2] = cells[cell, FIRST + part]
                out[k, FIRST + part] = offset + count
                count += 1
        else:
            out[k, FEATURE], out[k, FIRST], out[k, SECOND] = -1, -1, -1
        k += 1
    return count


@njit(cache=True, nogil=True)
def _lighter_side(cells, weights, begin, end):
    """The weight of the lighter side of a split, -1 if all cells lie on one side."""
    side = np.zeros(2)
    seen = np.zeros(2, np.int64)
    for cell in range(begin, end):
        if cells[cell, FEATURE] < 0:
            side[cells[cell, SIDE]] += weights[cell, 0] + weights[cell, 1]
            seen[cells[cell, SIDE]] += 1
    return min(side[0], side[1]) if seen[0] and seen[1] else -1.0
