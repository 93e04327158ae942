"""LeafRank: split the rows of a node in two by a small tree of axis-parallel cuts.

The small tree cuts the node into cells, each cut chosen by the balanced criterion inside its cell
(maximise |TPR - FPR|); a cell then goes left when its share of the node's positives exceeds its share of
the node's negatives, and right otherwise (Clemencon, Depecker & Vayatis 2011, Machine Learning 83). For
given cells no other assignment has a higher TPR - FPR, and that difference is a sum over the cells:

    TPR - FPR of the split = sum over cells of max(0, tpr - fpr),

so every cut has a gain, value(first) + value(second) - value(cell) >= 0 with value = max(0, tpr - fpr): it
is what pruning weighs and what a variable's importance adds up.

A cell can search the best set of categories by sorting them by their share of positives in the cell. With
few categories that is the best set; with many it finds one in pure noise: each holds so few rows that its
share is chance, and the same rows then confirm it. So a column with many categories is ordered once, by
the rates

    (positives + 1) / (rows + 1 / share of positives in all rows),

and cut like a number. Training rows carry the rate that the *other folds* give their category
(Micci-Barreca 2001, SIGKDD Explorations 3, estimated across folds): their own labels have no say. Where a
category has few positives, those rows see a lower rate than their neighbours, since their fold is the one
without them; so a cut must also send the categories of high rates to the side with more positives (`rising`
in the kernels).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from toprank.binning import MISSING, N_BINS, OTHER, Bins
from toprank.sampling import stratified_folds
from toprank.trees._kernels import (
    FEATURE,
    MISSING_FIRST,
    SET_BYTES,
    THRESHOLD,
    BinnedSample,
    comes_first,
    find_cut,
    partition,
    shuffle,
    workspace,
)
from toprank.trees.tree import (
    RankTree,
    Sample,
    TreeLimits,
    best_candidate,
    branch_gains,
    collapse_penalties,
    kept_gains,
    penalty_candidates,
    range_weights,
)

__all__ = [
    "LeafRank",
    "LeafRankRules",
    "LeafRankSplitter",
    "apply_order",
    "cut_gains",
    "order_categories",
]

N_FOLDS = 5  # in which rates of categories are estimated
FIRST, SECOND, SIDE = range(MISSING_FIRST + 1, MISSING_FIRST + 4)  # the last entries of a cell
N_ENTRIES = SIDE + 1
NOISE = 1e-13  # a smaller gain is the rounding of shares that cancel


class LeafRank(NamedTuple):
    """Parameters of the splitting rule."""

    max_depth: int  # most cuts on the path to a cell
    min_weight: float  # of a cell
    n_node_features: int  # drawn for a node
    n_cell_features: int  # drawn among those for each cell
    n_folds: int = 0  # that choose how far to prune a small tree; 0 for no pruning


class CellTables(NamedTuple):
    """Cells of small trees, numbered breadth first; the first three as in `LeafRankRules`."""

    cells: np.ndarray
    weights: np.ndarray
    bits: np.ndarray
    ranges: np.ndarray  # begin and end among the ordered rows, and depth


@dataclass(frozen=True)
class LeafRankRules:
    """The small trees of a ranking tree, one after the other.

    `cells` has for each cell its feature (-1: not cut any further), threshold (a bin; -1: a set of
    categories), whether missing cells come first, the two parts, and whether the rows go left.
    """

    cells: np.ndarray  # int32, of shape (n_cells, 6)
    weights: np.ndarray  # of the positives and of the negatives in training, (n_cells, 2)
    bits: np.ndarray  # sets of bytes that come first, (n_cells, 32); one row if no categories
    roots: np.ndarray  # for each split the cell that is the whole node

    @classmethod
    def join(cls, levels: list[tuple[np.ndarray, CellTables]], any_category: bool) -> LeafRankRules:
        """Join the roots and cells of all levels; numbers of cells count on."""
        roots, cells = [np.empty(0, np.int32)], [np.empty((0, N_ENTRIES), np.int32)]
        offset = 0
        for own_roots, tables in levels:
            own = tables.cells.copy()
            own[own[:, FEATURE] >= 0, FIRST : SECOND + 1] += offset
            roots.append((own_roots + offset).astype(np.int32))
            cells.append(own)
            offset += len(own)
        weights = [np.empty((0, 2)), *(tables.weights for _, tables in levels)]
        bits = np.zeros((1, SET_BYTES), np.uint8)
        if any_category and offset:
            bits = np.concatenate([tables.bits for _, tables in levels])
        return cls(np.concatenate(cells), np.concatenate(weights), bits, np.concatenate(roots))

    def apply(self, tree: RankTree, rows: np.ndarray) -> np.ndarray:
        """Return the leaf of each row of bytes."""
        children = (tree.left, tree.right, tree.rule)
        return _find_leaves(rows, *children, self.roots, self.cells, self.bits)

    def split_cells(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the cells of one split, numbered from 0, their class weights and their sets of bytes."""
        begin = self.roots[number]
        end = self.roots[number + 1] if number + 1 < len(self.roots) else len(self.cells)
        cells = self.cells[begin:end].copy()
        cells[cells[:, FEATURE] >= 0, FIRST : SECOND + 1] -= begin
        bits = self.bits[begin:end] if len(self.bits) > 1 else self.bits
        return cells, self.weights[begin:end], bits


class LeafRankSplitter:
    """LeafRank on one sample of bytes; `is_ordered` are the columns of categories in order of their rates."""

    def __init__(
        self,
        sample: Sample,
        limits: TreeLimits,
        bins: Bins,
        parameters: LeafRank,
        is_ordered: np.ndarray | None = None,
    ) -> None:
        is_ordered = np.zeros(bins.n_columns, dtype=bool) if is_ordered is None else is_ordered
        # a bound on the bytes of each column; above OTHER where training rows have rare categories
        n_bins = np.where(bins.is_category, bins.n_cuts, bins.n_cuts + 1)
        n_bins[is_ordered] += 1  # for OTHER
        is_set = bins.is_category & ~is_ordered
        for column in np.flatnonzero(is_set):
            if (sample.rows[:, column] == OTHER).any():
                n_bins[column] = OTHER + 1
        self.rows = BinnedSample(
            sample.rows, sample.positive, sample.weight, n_bins, is_set, is_ordered
        )
        self.limits = limits
        self.parameters = parameters
        self.levels: list[tuple[np.ndarray, CellTables]] = []

    def split(
        self, order: np.ndarray, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Split the nodes of a level; return the side of each row (1 left) and which were split."""
        nodes = (self.rows, order, starts, stops, self.parameters, rng)
        tables, begins, drawn = grow_level(*nodes)
        penalties = np.zeros(len(starts))
        if self.parameters.n_folds > 1:
            penalties = choose_penalties(*nodes, tables, begins, drawn)
        goes_left, roots, kept = assign_sides(
            tables, begins, len(order), penalties, float(self.limits.min_samples_leaf)
        )
        was_split = roots >= 0
        self.levels.append((roots[was_split], kept))
        return goes_left, was_split

    def rules(self) -> LeafRankRules:
        """Return the splits made so far, in order."""
        return LeafRankRules.join(self.levels, bool(self.rows.is_category.any()))


@njit(cache=True, nogil=True)
def _find_leaves(codes, left, right, rule, roots, cells, bits):
    """Return the leaf of each row of bytes."""
    n_rows = len(codes)
    leaf = np.empty(n_rows, np.int32)
    for row in range(n_rows):
        node = 0
        while left[node] >= 0:
            cell = roots[rule[node]]
            while cells[cell, FEATURE] >= 0:
                cell = _next_cell(codes[row], cells, bits, cell)
            node = left[node] if cells[cell, SIDE] else right[node]
        leaf[row] = node
    return leaf


@njit(cache=True, nogil=True)
def _next_cell(codes, cells, bits, cell):
    """Return the part of a cell that a row of bytes belongs to."""
    first = comes_first(
        codes[cells[cell, FEATURE]],
        cells[cell, THRESHOLD],
        cells[cell, MISSING_FIRST],
        bits[cell if len(bits) > 1 else 0],
    )
    return cells[cell, FIRST] if first else cells[cell, SECOND]


# -- cells -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def make_tables(n_cells, any_category):
    """Return empty tables for so many cells; without categories the sets of bytes have one row."""
    n_cells = max(n_cells, 2)  # one row of bits means that there are no categories
    return CellTables(
        np.zeros((n_cells, N_ENTRIES), np.int32),
        np.empty((n_cells, 2)),
        np.zeros((n_cells if any_category else 1, SET_BYTES), np.uint8),
        np.empty((n_cells, 3), np.int64),
    )


@njit(cache=True, nogil=True)
def slice_tables(tables, begin, end):
    """Return the cells from `begin` to `end`, as views."""
    bits = tables.bits[begin:end] if len(tables.bits) > 1 else tables.bits
    return CellTables(
        tables.cells[begin:end], tables.weights[begin:end], bits, tables.ranges[begin:end]
    )


@njit(cache=True, nogil=True)
def most_cells(max_depth, n_rows):
    """Return an upper bound on the cells of a small tree."""
    return max(1, min(2 ** min(max_depth + 1, 40) - 1, 2 * n_rows))


@njit(cache=True, nogil=True)
def grow_level(rows, order, starts, stops, parameters, rng):
    """Cut the nodes `order[starts[k]:stops[k]]` of one level into cells.

    Rows are reordered inside their node. Returns the tables of all cells, where those of each node
    begin (their numbers count from there), and the features drawn for each node.
    """
    capacity, largest = 0, 0
    for k in range(len(starts)):
        capacity += most_cells(parameters.max_depth, stops[k] - starts[k])
        largest = max(largest, stops[k] - starts[k])
    tables = make_tables(capacity, rows.is_category.any())
    begins = np.zeros(len(starts) + 1, np.int64)
    drawn = np.empty((len(starts), parameters.n_node_features), np.int64)
    work = workspace(parameters.n_node_features, largest)
    features = np.arange(rows.codes.shape[1])
    for k in range(len(starts)):
        shuffle(rng, features, parameters.n_node_features)
        drawn[k] = features[: parameters.n_node_features]
        own = slice_tables(tables, begins[k], capacity)
        begins[k + 1] = begins[k] + grow_cells(
            rows, order, starts[k], stops[k], drawn[k], parameters, rng, work, own
        )
    return tables, begins, drawn


@njit(cache=True, nogil=True)
def grow_cells(rows, order, begin, end, features, parameters, rng, work, tables):
    """Cut the rows `order[begin:end]` (reordered in place) into cells; return how many there are."""
    cells, weights, bits, ranges = tables
    ranges[0, 0], ranges[0, 1], ranges[0, 2] = begin, end, 0
    P_node, N_node = range_weights(order, begin, end, rows.positive, rows.weight)
    weights[0, 0], weights[0, 1] = P_node, N_node
    min_weight = parameters.min_weight
    count, cell = 1, 0
    while cell < count:
        start, stop, depth = ranges[cell, 0], ranges[cell, 1], ranges[cell, 2]
        P, N = weights[cell, 0], weights[cell, 1]
        cells[cell, FEATURE], cells[cell, FIRST], cells[cell, SECOND] = -1, -1, -1
        cells[cell, SIDE] = 1 if P * N_node > N * P_node else 0
        if depth < parameters.max_depth and P > 0.0 and N > 0.0 and 2 * min_weight <= P + N:
            shuffle(rng, features, parameters.n_cell_features)
            pool = features[: parameters.n_cell_features]
            cut, own_bits = cells[cell], bits[cell if len(bits) > 1 else 0]
            if find_cut(rows, order, start, stop, P, N, pool, min_weight, work, cut, own_bits):
                middle = partition(rows.codes, order, start, stop, cut, own_bits, work.waiting)
                for part in range(2):
                    first, last = (start, middle) if part == 0 else (middle, stop)
                    ranges[count, 0], ranges[count, 1], ranges[count, 2] = first, last, depth + 1
                    weights[count, 0], weights[count, 1] = range_weights(
                        order, first, last, rows.positive, rows.weight
                    )
                    cells[cell, FIRST + part] = count
                    count += 1
        cell += 1
    return count


@njit(cache=True, nogil=True)
def cut_gains(cells, weights, P, N):
    """Return the gain of each cut: half of what it adds to TPR - FPR, that is AUC inside the node.

    `weights` may be those of other rows than the cells were cut with; sides stay as they were learnt.
    """
    gain = np.zeros(len(cells))
    if P <= 0.0 or N <= 0.0:
        return gain
    for cell in range(len(cells)):
        if cells[cell, FEATURE] < 0:
            continue
        total = -cells[cell, SIDE] * (weights[cell, 0] / P - weights[cell, 1] / N)
        for child in (cells[cell, FIRST], cells[cell, SECOND]):
            total += cells[child, SIDE] * (weights[child, 0] / P - weights[child, 1] / N)
        if abs(total) > NOISE:
            gain[cell] = total / 2
    return gain


# -- sides -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def assign_sides(tables, begins, n_rows, penalties, min_weight):
    """Prune the small trees of a level, and send every row to its side.

    `penalties` has one for each node; 0 only removes cuts between cells that go to the same side. Returns
    the side of each row (1 left), the root cell of each node (-1: no split with weight `min_weight` on
    both sides), and the tables of the cells that are left.
    """
    kept = make_tables(begins[-1], len(tables.bits) > 1)
    goes_left = np.zeros(n_rows, np.uint8)
    roots = np.full(len(begins) - 1, -1, np.int32)
    size = 0
    for k in range(len(roots)):
        grown = slice_tables(tables, begins[k], begins[k + 1])
        end = _copy_subtree(grown, _useful_cuts(grown, penalties[k]), kept, size)
        if _lighter_side(kept, size, end) >= min_weight:
            for cell in range(size, end):
                if kept.cells[cell, FEATURE] < 0 and kept.cells[cell, SIDE]:
                    goes_left[kept.ranges[cell, 0] : kept.ranges[cell, 1]] = 1
            roots[k] = size
            size = end
    return goes_left, roots, slice_tables(kept, 0, size)


@njit(cache=True, nogil=True)
def _useful_cuts(tables, penalty):
    """Return which cuts of a small tree stay under a penalty on its number of cells."""
    cells, weights = tables.cells, tables.weights
    if penalty > 0.0:
        value = _cell_penalties(cells, weights)
    else:  # a branch that gains nothing goes
        gain = cut_gains(cells, weights, weights[0, 0], weights[0, 1])
        value = branch_gains(cells[:, FIRST], cells[:, SECOND], gain)[0]
    return (cells[:, FEATURE] >= 0) & (value > penalty)


@njit(cache=True, nogil=True)
def _copy_subtree(tables, stays_cut, out, begin):
    """Copy the cells that stay, breadth first, to `out[begin:end]`; return `end`."""
    source = np.empty(len(tables.cells), np.int64)  # the cell that each copied one comes from
    source[0] = 0
    count, k = 1, 0
    while k < count:
        cell, at = source[k], begin + k
        out.cells[at] = tables.cells[cell]
        out.weights[at] = tables.weights[cell]
        out.ranges[at] = tables.ranges[cell]
        if len(out.bits) > 1:
            out.bits[at] = tables.bits[cell if len(tables.bits) > 1 else 0]
        if stays_cut[cell]:
            source[count], source[count + 1] = tables.cells[cell, FIRST], tables.cells[cell, SECOND]
            out.cells[at, FIRST], out.cells[at, SECOND] = begin + count, begin + count + 1
            count += 2
        else:
            out.cells[at, FEATURE], out.cells[at, FIRST], out.cells[at, SECOND] = -1, -1, -1
        k += 1
    return begin + count


@njit(cache=True, nogil=True)
def _lighter_side(tables, begin, end):
    """Return the weight of the lighter side of a split, -1 if all cells lie on one side."""
    weight = np.zeros(2)
    n_cells = np.zeros(2, np.int64)
    for cell in range(begin, end):
        if tables.cells[cell, FEATURE] < 0:
            side = tables.cells[cell, SIDE]
            weight[side] += tables.weights[cell, 0] + tables.weights[cell, 1]
            n_cells[side] += 1
    return weight.min() if n_cells.min() > 0 else -1.0


# -- pruning small trees ---------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def choose_penalties(rows, order, starts, stops, parameters, rng, tables, begins, drawn):
    """Return for each node of a level the penalty that gives the best split of held-out rows.

    Arguments are those of `grow_level` and what it returned. The value of a split on held-out rows is
    half their TPR - FPR; without a split it is 0.
    """
    largest = (stops - starts).max()
    spare = make_tables(most_cells(parameters.max_depth, largest), rows.is_category.any())
    work = workspace(parameters.n_node_features, largest)
    chosen = np.zeros(len(starts))
    for k in range(len(starts)):
        own = slice_tables(tables, begins[k], begins[k + 1])
        candidates = penalty_candidates(_cell_penalties(own.cells, own.weights))
        values = np.zeros(len(candidates))
        members = order[starts[k] : stops[k]]
        fold = _deal_folds(rows.positive, members, parameters.n_folds, rng)
        for number in range(parameters.n_folds):
            train, held_out = members[fold != number], members[fold == number]
            if len(train) > 0 and len(held_out) > 0:
                node = (rows, train, 0, len(train), drawn[k], parameters, rng, work, spare)
                part = slice_tables(spare, 0, grow_cells(*node))
                values += _held_out_values(rows, held_out, part, candidates)
        chosen[k] = best_candidate(candidates, values)
    return chosen


@njit(cache=True, nogil=True)
def _cell_penalties(cells, weights):
    """Return the penalty from which on each cut of a small tree is gone."""
    gain = cut_gains(cells, weights, weights[0, 0], weights[0, 1])
    return collapse_penalties(cells[:, FIRST], cells[:, SECOND], gain)


@njit(cache=True, nogil=True)
def _held_out_values(rows, held_out, tables, candidates):
    """Return what the subtree of each candidate penalty gains on held-out rows."""
    cells, weights = tables.cells, np.zeros_like(tables.weights)
    for row in held_out:
        cell, label = 0, 1 - int(rows.positive[row])
        weights[cell, label] += rows.weight[row]
        while cells[cell, FEATURE] >= 0:
            cell = _next_cell(rows.codes[row], cells, tables.bits, cell)
            weights[cell, label] += rows.weight[row]
    gain = cut_gains(cells, weights, weights[0, 0], weights[0, 1])
    return kept_gains(_cell_penalties(cells, tables.weights), gain, candidates)


@njit(cache=True, nogil=True)
def _deal_folds(positive, rows, n_folds, rng):
    """Return the fold of each of `rows`, the shuffled rows of each class dealt out in turns."""
    shuffled = np.arange(len(rows))
    shuffle(rng, shuffled, len(rows) - 1)
    fold = np.empty(len(rows), np.int64)
    seen = np.zeros(2, np.int64)
    for i in shuffled:
        label = int(positive[rows[i]])
        fold[i] = seen[label] % n_folds
        seen[label] += 1
    return fold


# -- categories in the order of their rates ---------------------------------------------------------


def order_categories(
    codes: np.ndarray,
    columns: np.ndarray,
    positive: np.ndarray,
    weight: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Order the categories of some columns by their rates.

    Parameters
    ----------
    codes : uint8 ndarray of shape (n_rows, n_columns)
    columns : int ndarray
        Those to order.
    positive, weight : ndarray of shape (n_rows,)
    rng : Generator
        Draws the folds.

    Returns
    -------
    tables : uint8 ndarray of shape (n_columns, 256)
        What each byte becomes, in rows to be scored; the lowest rate is 0. Other columns keep theirs.
    training : uint8 ndarray of shape (n_rows, n_columns)
        The training rows, with the rates of the folds they are not in.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.repeat(np.array([[0], [1], [2]], np.uint8), 20, axis=0)
    >>> positive = np.repeat([1, 0, 1], [15, 25, 20])
    >>> rng = np.random.default_rng(0)
    >>> tables, _ = order_categories(codes, np.array([0]), positive, np.ones(60), rng)
    >>> tables[0, :3].tolist()
    [1, 0, 2]
    """
    tables = np.tile(np.arange(N_BINS, dtype=np.uint8), (codes.shape[1], 1))
    training = codes.copy()
    fold = stratified_folds(positive, N_FOLDS, rng)
    for column in columns:
        own = codes[:, column]
        rates = _rates(own, positive, weight)
        known = np.unique(own[own != MISSING])
        values = np.unique(rates[known])
        cuts = (values[:-1] + values[1:]) / 2  # the byte of a rate is how many of them lie below it
        tables[column] = MISSING  # what training did not have
        tables[column, known] = np.searchsorted(cuts, rates[known])
        for number in range(N_FOLDS):
            inside, outside = fold == number, fold != number
            others = _rates(own[outside], positive[outside], weight[outside])
            present = inside & (own != MISSING)
            training[present, column] = np.searchsorted(cuts, others[own[present]])
    return tables, training


def apply_order(codes: np.ndarray, tables: np.ndarray) -> np.ndarray:
    """Return rows of bytes with the ordered columns replaced, in place."""
    for column in np.flatnonzero((tables != np.arange(N_BINS)).any(axis=1)):
        codes[:, column] = tables[column][codes[:, column]]
    return codes


def _rates(codes: np.ndarray, positive: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the shrunken rate of each byte: one positive more, in as many rows as it takes on average."""
    positives = np.bincount(codes, weight * positive, minlength=N_BINS)
    rows = np.bincount(codes, weight, minlength=N_BINS)
    share = positives.sum() / rows.sum()
    if share == 0.0:  # a fold may hold all positives
        return np.zeros(N_BINS)
    return (positives + 1.0) / (rows + 1.0 / share)
