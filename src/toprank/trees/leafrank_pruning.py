"""How far to prune the small trees of LeafRank: the penalty of each node by cross-validation."""

from __future__ import annotations

import numpy as np
from numba import njit

from toprank.trees._kernels import comes_first, draw
from toprank.trees.leafrank import (
    FEATURE,
    FIRST,
    MISSING_FIRST,
    SECOND,
    THRESHOLD,
    cell_tables,
    cut_gains,
    grow_cells,
    most_cells,
    workspace,
)
from toprank.trees.pruning import (
    best_candidate,
    collapse_penalties,
    kept_gains,
    penalty_candidates,
)

__all__ = ["choose_penalties"]


@njit(cache=True, nogil=True)
def _drop(codes, positive, weight, rows, cells, bits, counts):
    """Add up the class weights of `rows` in every cell they pass."""
    for cell in range(len(cells)):
        counts[cell, 0], counts[cell, 1] = 0.0, 0.0
    for row in rows:
        cell = 0
        while True:
            counts[cell, 1 - positive[row]] += weight[row]
            feature = cells[cell, FEATURE]
            if feature < 0:
                break
            first = comes_first(
                codes[row, feature], cells[cell, THRESHOLD], cells[cell, MISSING_FIRST],
                bits[cell if len(bits) > 1 else 0],
            )  # fmt: skip
            cell = cells[cell, FIRST] if first else cells[cell, SECOND]


@njit(cache=True, nogil=True)
def _assign_folds(positive, rows, n_folds, rng):
    """A fold for each of `rows`, the classes spread evenly."""
    shuffled = np.arange(len(rows))
    draw(rng, shuffled, len(rows), len(rows) - 1)
    fold = np.empty(len(rows), np.int64)
    seen = np.zeros(2, np.int64)
    for i in shuffled:
        label = int(positive[rows[i]])
        fold[i] = seen[label] % n_folds
        seen[label] += 1
    return fold


@njit(cache=True, nogil=True)
def choose_penalties(
    codes, positive, weight, order, starts, stops, n_bins, is_category, drawn, n_cell_features,
    max_depth, min_leaf, n_folds, rng, tables, begins,
):  # fmt: skip
    """For each node of a level the penalty that gives the best split of rows held out.

    Arguments are those of `grow_level` and what it returned. The value of a split on held-out rows is
    half their TPR - FPR; a penalty that leaves no split is worth 0.
    """
    largest = 0
    for k in range(len(starts)):
        largest = max(largest, stops[k] - starts[k])
    spare = cell_tables(most_cells(max_depth, largest), is_category.any())
    work = workspace(drawn.shape[1], largest)
    chosen = np.zeros(len(starts))
    for k in range(len(starts)):
        own = tables[0][begins[k] : begins[k + 1]]
        own_weights = tables[1][begins[k] : begins[k + 1]]
        gain = cut_gains(own, own_weights, own_weights[0, 0], own_weights[0, 1])
        candidates = penalty_candidates(collapse_penalties(own[:, FIRST], own[:, SECOND], gain))
        values = np.zeros(len(candidates))
        rows = order[starts[k] : stops[k]]
        fold = _assign_folds(positive, rows, n_folds, rng)
        for f in range(n_folds):
            _add_fold(
                codes, positive, weight, rows, fold, f, n_bins, is_category, drawn[k],
                n_cell_features, max_depth, min_leaf, rng, work, spare, candidates, values,
            )  # fmt: skip
        chosen[k] = best_candidate(candidates, values)
    return chosen


@njit(cache=True, nogil=True)
def _add_fold(
    codes, positive, weight, rows, fold, f, n_bins, is_category, pool, n_draw, max_depth, min_leaf,
    rng, work, tables, candidates, values,
):  # fmt: skip
    """Grow a small tree without fold `f`; add what each candidate's subtree is worth on the fold."""
    train, held_out = rows[fold != f], rows[fold == f]
    if len(train) == 0 or len(held_out) == 0:
        return
    cells, weights, bits, _ = tables
    count = grow_cells(
        codes, positive, weight, train, np.int64(0), np.int64(len(train)), n_bins, is_category,
        pool, n_draw, max_depth, min_leaf, rng, work, tables,
    )  # fmt: skip
    part = cells[:count]
    gain = cut_gains(part, weights, weights[0, 0], weights[0, 1])
    penalties = collapse_penalties(part[:, FIRST], part[:, SECOND], gain)
    _drop(codes, positive, weight, held_out, part, bits, weights)
    held_out_gain = cut_gains(part, weights, weights[0, 0], weights[0, 1])
    total = kept_gains(penalties, held_out_gain, candidates)
    for k in range(len(values)):
        values[k] += total[k]
