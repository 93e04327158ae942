"""Consensus: the median of the rankings of many trees.

Every tree ranks the cells of the common partition (rows that share their leaf in all trees). The
median minimises the sum of distances to these rankings (Clemencon, Depecker & Vayatis 2013, JMLR 14):

- Spearman's, the squared difference of mid-ranks: order by the mean mid-rank;
- the footrule, their absolute difference: an assignment of cells to places;
- Kendall's, the number of pairs in opposite order: exact for few cells, else by local search.

In the forest these stand beside the mean precision of the leaves (`RankTree.smoothed_precision`), which is no
median but keeps the top sharp. The mean mid-rank also scores rows that were never seen. For the other two
a new cell goes where it adds least to the sum of distances while the known cells keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.optimize import linear_sum_assignment

from toprank.ranking import descending_order

__all__ = ["CellOrder", "footrule_order", "kendall_order"]

FOOTRULE_CELLS = 2_000  # an exact assignment has a cost for every cell and place
KENDALL_EXACT_CELLS = 14
KENDALL_FULL_CELLS = 2_000  # beyond this a cell moves at most so many places in a pass:
KENDALL_WINDOW = 25
KENDALL_PASSES = 30


def footrule_order(ranks: np.ndarray) -> np.ndarray:
    """Return the cells from the best to the worst, minimising the sum over trees of |place - rank|.

    Exact up to two thousand cells; beyond, the order of their median ranks.

    Parameters
    ----------
    ranks : ndarray of shape (n_cells, n_trees)
        Mid-ranks from 0 at the best.

    Examples
    --------
    >>> import numpy as np
    >>> footrule_order(np.array([[0.0, 0.0], [2.0, 1.0], [1.0, 2.0]])).tolist()[0]
    0
    """
    n_cells, n_trees = ranks.shape
    if n_cells > FOOTRULE_CELLS:
        return descending_order(-np.median(ranks, axis=1))
    places = np.arange(n_cells)
    cost = np.zeros((n_cells, n_cells))
    for tree in range(n_trees):
        cost += np.abs(ranks[:, tree, None] - places)
    cells, taken = linear_sum_assignment(cost)
    order = np.empty(n_cells, dtype=np.int64)
    order[taken] = cells
    return order


def kendall_order(ranks: np.ndarray) -> np.ndarray:
    """Return the cells from the best to the worst, minimising the pairs that trees order the other way.

    Exact up to fourteen cells; beyond, moves of single cells from the mean-rank order, until none helps.
    """
    ranks = np.ascontiguousarray(ranks, dtype=np.float32)
    if len(ranks) <= KENDALL_EXACT_CELLS:
        return _kendall_exact(ranks)
    window = len(ranks) if len(ranks) <= KENDALL_FULL_CELLS else KENDALL_WINDOW
    start = descending_order(-ranks.mean(axis=1))
    return _kendall_search(ranks, start, window, KENDALL_PASSES)


@dataclass(frozen=True)
class CellOrder:
    """A consensus over cells by the footrule or Kendall's distance, and how to score rows by it."""

    distance: str
    multipliers: np.ndarray  # random odd numbers that turn the leaves of a row into one key
    keys: np.ndarray  # of the known cells, ascending
    places: np.ndarray  # of those cells in the consensus
    node_ranks: tuple[np.ndarray, ...]  # mid-ranks of each tree's leaves, from 0 at the best
    ranks: np.ndarray  # mid-ranks of the cells by each tree, in consensus order (Kendall only)

    @classmethod
    def of(
        cls,
        distance: str,
        leaves: np.ndarray,
        leaf_orders: list[np.ndarray],
        rng: np.random.Generator,
    ) -> CellOrder:
        """Find the consensus from the leaf of each training row in each tree, (n_rows, n_trees).

        `leaf_orders` has for each tree its leaves from the best to the worst.
        """
        multipliers = rng.integers(2**64, size=leaves.shape[1], dtype=np.uint64, endpoint=False)
        multipliers = np.bitwise_or(multipliers, np.uint64(1))
        keys, example = np.unique(_keys(leaves, multipliers), return_index=True)
        cells = leaves[example]
        node_ranks = tuple(map(_leaf_mid_ranks, cells.T, leaf_orders))
        ranks = _rank_matrix(node_ranks, cells)
        order = ORDERS[distance](ranks)
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        kept = ranks[order] if distance == "kendall" else ranks[:0]
        return cls(distance, multipliers, keys, places, node_ranks, kept)

    def scores(self, leaves: np.ndarray) -> np.ndarray:
        """Return scores in (0, 1), the best place highest, of rows whose leaves are known."""
        keys = _keys(leaves, self.multipliers)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        place = self.places[at].astype(np.float64)
        new = np.flatnonzero(self.keys[at] != keys)
        if len(new):
            ranks = _rank_matrix(self.node_ranks, leaves[new])
            if self.distance == "footrule":
                place[new] = np.median(ranks, axis=1)
            else:
                place[new] = _kendall_insert(self.ranks, ranks)
        return 1.0 - (place + 0.5) / len(self.keys)


ORDERS = {"footrule": footrule_order, "kendall": kendall_order}


def _keys(leaves: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """Return a 64-bit key for the leaves of each row (two cells share one with probability 2^-64)."""
    keys = np.zeros(len(leaves), dtype=np.uint64)
    for tree, multiplier in enumerate(multipliers):
        keys += (leaves[:, tree].astype(np.uint64) + np.uint64(1)) * multiplier
        keys ^= keys >> np.uint64(29)
        keys *= np.uint64(0xBF58476D1CE4E5B9)  # mixing step of splitmix64
    return keys


def _rank_matrix(node_ranks: tuple[np.ndarray, ...], leaves: np.ndarray) -> np.ndarray:
    """Return the mid-ranks by each tree of rows whose leaves are known; float32 holds them exactly."""
    ranks = np.empty(leaves.shape, dtype=np.float32)
    for tree, own in enumerate(node_ranks):
        ranks[:, tree] = own[leaves[:, tree]]
    return ranks


def _leaf_mid_ranks(leaf: np.ndarray, best_first: np.ndarray) -> np.ndarray:
    """Return the mid-rank of every leaf of a tree among the cells, from 0 at the best."""
    inside = np.bincount(leaf, minlength=best_first.max() + 1)[best_first]
    ranks = np.zeros(best_first.max() + 1)
    ranks[best_first] = np.cumsum(inside) - inside + (inside - 1) / 2
    return ranks


@njit(cache=True, nogil=True)
def _disagreements(above, below):
    """Return how many trees rank the cell `below` over `above`, minus those that agree."""
    total = 0
    for tree in range(len(above)):
        if below[tree] < above[tree]:
            total += 1
        elif below[tree] > above[tree]:
            total -= 1
    return total


@njit(cache=True, nogil=True)
def _kendall_exact(ranks):
    """Return the best order by dynamic programming over the sets of cells that come first."""
    n_cells = len(ranks)
    against = np.zeros((n_cells, n_cells))
    for i in range(n_cells):
        for j in range(n_cells):
            if i != j:
                against[i, j] = _disagreements(ranks[i], ranks[j])
    n_sets = 1 << n_cells
    best = np.full(n_sets, np.inf)
    last = np.full(n_sets, -1)
    best[0] = 0.0
    for members in range(1, n_sets):
        for cell in range(n_cells):
            if (members >> cell) & 1:
                before = members ^ (1 << cell)
                total = best[before]
                for other in range(n_cells):
                    if (before >> other) & 1:
                        total += against[other, cell]
                if total < best[members]:
                    best[members] = total
                    last[members] = cell
    order = np.empty(n_cells, np.int64)
    members = n_sets - 1
    for place in range(n_cells - 1, -1, -1):
        order[place] = last[members]
        members ^= 1 << order[place]
    return order


@njit(cache=True, nogil=True)
def _kendall_search(ranks, order, window, passes):
    """Move single cells to better places until no move helps; return the order."""
    order = order.copy()
    for _ in range(passes):
        improved = False
        for place in range(len(order)):
            target = _best_place(ranks, order, place, window)
            if target != place:
                improved = True
                cell = order[place]
                step = 1 if target > place else -1
                for k in range(place, target, step):
                    order[k] = order[k + step]
                order[target] = cell
        if not improved:
            break
    return order


@njit(cache=True, nogil=True)
def _best_place(ranks, order, place, window):
    """Return the place within the window where a cell costs least."""
    own = ranks[order[place]]
    change, best, target = 0, 0, place
    for k in range(place - 1, max(-1, place - window - 1), -1):
        change -= _disagreements(ranks[order[k]], own)
        if change < best:
            best, target = change, k
    change = 0
    for k in range(place + 1, min(len(order), place + window + 1)):
        change -= _disagreements(own, ranks[order[k]])
        if change < best:
            best, target = change, k
    return target


@njit(cache=True, nogil=True)
def _kendall_insert(known, new):
    """Return where new cells fit best between known ones (place - 1/2, so that none is shared)."""
    places = np.empty(len(new))
    for row in range(len(new)):
        change, best, place = 0, 0, 0
        for k in range(len(known)):
            change += _disagreements(known[k], new[row])
            if change < best:
                best, place = change, k + 1
        places[row] = place - 0.5
    return places
