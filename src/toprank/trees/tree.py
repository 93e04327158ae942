"""A ranking tree as flat arrays, left is better: how it scores, how it is grown and how it is pruned.

Node 0 is the root; nodes are numbered breadth first, so parents come before their children. The order
of the leaves from left to right is the ranking; a leaf at depth d and position k (counted from the left
among the 2^d positions of its depth) has the score 2^D (1 - k / 2^d), D the depth of the tree (Clemencon &
Vayatis 2009, IEEE Trans. Information Theory 55).

The AUC of the tree is 1/2 plus the sum of the gains of its splits, so the subtree that maximises
AUC - penalty * leaves follows from collapsing, again and again, the branch with the least gain for each
leaf it saves (Breiman, Friedman, Olshen & Stone 1984, chapter 3). The penalty is chosen by cross-validation.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numba import njit

from toprank.sampling import stratified_folds

__all__ = ["RankTree", "Sample", "Splitter", "TreeLimits", "grow_pruned", "grow_tree"]


@dataclass(frozen=True)
class RankTree:
    """A ranking tree.

    Attributes
    ----------
    left, right : int32 ndarray of shape (n_nodes,)
        Children; -1 for a leaf.
    depth : int64 ndarray of shape (n_nodes,)
    position : int64 ndarray of shape (n_nodes,)
        Position among the nodes of this depth in the full tree, from the left.
    weights : ndarray of shape (n_nodes, 2)
        Weight of the positives and the negatives it was trained with.
    rule : int32 ndarray of shape (n_nodes,)
        Number of the node's split in `rules`; -1 for a leaf.
    rules : LeafRankRules, SVMRules or EstimatorRules
    """

    left: np.ndarray
    right: np.ndarray
    depth: np.ndarray
    position: np.ndarray
    weights: np.ndarray
    rule: np.ndarray
    rules: Any

    @property
    def n_nodes(self) -> int:
        return len(self.left)

    @property
    def is_leaf(self) -> np.ndarray:
        return self.left < 0

    @property
    def leaves(self) -> np.ndarray:
        """Return the leaves from the best to the worst."""
        leaf = np.flatnonzero(self.is_leaf)
        return leaf[np.argsort(self.position[leaf] / 2.0 ** self.depth[leaf])]

    @property
    def rates(self) -> np.ndarray:
        """Return the share of all positives (TPR) and of all negatives (FPR) in every node."""
        return self.weights / self.weights[0]

    @property
    def scores(self) -> np.ndarray:
        """Return the score of every node, 2^D (1 - k / 2^d)."""
        deepest = 2.0 ** self.depth.max()
        return deepest * (1.0 - self.position / 2.0**self.depth)

    @property
    def smoothed_precision(self) -> np.ndarray:
        """Return for every node (p + pi) / (p + n + 1), with pi the share of positives in the tree's sample.

        One more row, of the average kind, keeps small leaves from claiming certainty.
        """
        positives, total = self.weights[:, 0], self.weights.sum(axis=1)
        return (positives + positives[0] / total[0]) / (total + 1.0)

    def gains(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Return what each split adds to the AUC; 0 for leaves.

        With rates relative to the whole sample, a split of node C adds (TPR_left FPR_C - FPR_left TPR_C)/2
        and AUC = 1/2 + the sum. `weights` are the class weights of other rows than those of training.
        """
        weights = self.weights if weights is None else weights
        gain = np.zeros(self.n_nodes)
        if weights[0].min() <= 0:
            return gain
        rates = weights / weights[0]
        inner = ~self.is_leaf
        first = self.left[inner]
        gain[inner] = (rates[first, 0] * rates[inner, 1] - rates[first, 1] * rates[inner, 0]) / 2
        return gain

    def apply(self, rows: Any) -> np.ndarray:
        """Return the leaf of each row, given as bytes (LeafRank) or as an encoded matrix."""
        return self.rules.apply(self, rows)

    def path(self, node: int) -> list[tuple[int, bool]]:
        """Return the splits from the root to a node, and whether the path goes left at each."""
        steps = []
        while node > 0:
            parent = int(np.flatnonzero((self.left == node) | (self.right == node))[0])
            steps.append((parent, bool(self.left[parent] == node)))
            node = parent
        return steps[::-1]

    def class_weights(
        self, leaf: np.ndarray, positive: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Return the class weights in every node of rows whose leaves are known."""
        shares = (weight * positive, weight * (1 - positive))
        weights = np.column_stack([np.bincount(leaf, w, minlength=self.n_nodes) for w in shares])
        for node in range(self.n_nodes - 1, -1, -1):
            if self.left[node] >= 0:
                weights[node] = weights[self.left[node]] + weights[self.right[node]]
        return weights

    def mid_ranks(self, leaf: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return for every leaf the share of the rows' weight ranked below it, plus half of its own.

        `leaf` is the leaf of each row.
        """
        worst_first = self.leaves[::-1]
        inside = np.bincount(leaf, weight, minlength=self.n_nodes)
        ordered = inside[worst_first]
        ranks = np.zeros(self.n_nodes)
        ranks[worst_first] = (np.cumsum(ordered) - ordered + ordered / 2) / inside.sum()
        return ranks

    def pruned(self, keep: np.ndarray) -> RankTree:
        """Return the subtree in which only the nodes marked in `keep` are split."""
        source, children = [0], []
        for node in source:  # grows while it is read: breadth first
            if keep[node]:
                children.append((len(source), len(source) + 1))
                source += [int(self.left[node]), int(self.right[node])]
            else:
                children.append((-1, -1))
        left, right = np.array(children, dtype=np.int32).T.copy()
        return replace(
            self,
            left=left,
            right=right,
            depth=self.depth[source],
            position=self.position[source],
            weights=self.weights[source],
            rule=np.where(left < 0, -1, self.rule[source]).astype(np.int32),
        )


# -- growing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """The rows a tree is grown from: bytes or an encoded matrix; those of weight zero are absent.

    `final_rows` are the same rows as a fitted model reads them, where that differs (see `categories`).
    """

    rows: Any
    positive: np.ndarray
    weight: np.ndarray
    final_rows: Any = None

    @property
    def scored_rows(self) -> Any:
        """Return the rows as a fitted model reads them."""
        return self.rows if self.final_rows is None else self.final_rows

    def folds(self, n_folds: int, rng: np.random.Generator) -> np.ndarray:
        """Return the stratified fold of each row, -1 for those that are absent."""
        present = np.flatnonzero(self.weight > 0)
        fold = np.full(len(self.weight), -1)
        fold[present] = stratified_folds(self.positive[present], n_folds, rng)
        return fold


@dataclass(frozen=True)
class TreeLimits:
    """How far a tree grows: its depth, and the least weight of the rows of a node."""

    max_depth: int
    min_samples_split: float
    min_samples_leaf: float


class Splitter(Protocol):
    """A splitting rule for one sample; it keeps the splits it made."""

    def split(
        self, order: np.ndarray, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Split the nodes `order[starts[k]:stops[k]]`.

        Returns the side of each row of `order` (1 left) and whether each node was split.
        """

    def rules(self) -> Any:
        """Return the splits made so far, in order; `rules().apply(tree, rows)` finds the leaves."""


def grow_tree(
    sample: Sample, splitter: Splitter, limits: TreeLimits, rng: np.random.Generator
) -> RankTree:
    """Grow a ranking tree breadth first: each pass splits all nodes of one depth that may be split."""
    least = max(limits.min_samples_split, 2 * limits.min_samples_leaf)
    order = np.flatnonzero(sample.weight > 0)
    # the nodes of one depth, from left to right: their ranges of rows and their positions
    starts, stops, position = np.array([0]), np.array([len(order)]), np.array([0])
    levels: list[
        tuple[np.ndarray, ...]
    ] = []  # positions, class weights, and which nodes were split
    while len(starts):
        weights = class_weights(order, starts, stops, sample.positive, sample.weight)
        split = np.zeros(len(starts), dtype=bool)
        wanted = np.flatnonzero((weights.min(axis=1) > 0) & (weights.sum(axis=1) >= least))
        if len(levels) < limits.max_depth and len(wanted):
            goes_left, was_split = splitter.split(order, starts[wanted], stops[wanted], rng)
            split[wanted[was_split]] = True
        levels.append((position, weights, split))
        starts, stops, position = starts[split], stops[split], position[split]
        if len(starts):
            middles = separate(order, starts, stops, goes_left)
            starts = np.column_stack([starts, middles]).ravel()
            stops = np.column_stack([middles, stops]).ravel()
            position = np.column_stack([2 * position, 2 * position + 1]).ravel()
    positions, weights, inner = (np.concatenate(part) for part in zip(*levels, strict=True))
    rule = np.where(inner, np.cumsum(inner) - 1, -1).astype(np.int32)
    # breadth first, the children of split number k are the nodes 2k + 1 and 2k + 2
    return RankTree(
        left=np.where(inner, 2 * rule + 1, -1).astype(np.int32),
        right=np.where(inner, 2 * rule + 2, -1).astype(np.int32),
        depth=np.repeat(np.arange(len(levels)), [len(own) for own, _, _ in levels]),
        position=positions,
        weights=weights,
        rule=rule,
        rules=splitter.rules(),
    )


def grow_without_fold(
    sample: Sample,
    held_out: np.ndarray,
    make_splitter: Callable[[Sample], Splitter],
    limits: TreeLimits,
    rng: np.random.Generator,
) -> tuple[RankTree, np.ndarray]:
    """Grow a tree without the rows of a mask; return it and the gains of its splits on those rows."""
    training = replace(sample, weight=np.where(held_out, 0.0, sample.weight))
    tree = grow_tree(training, make_splitter(training), limits, rng)
    leaf = tree.apply(sample.rows[held_out])
    weights = tree.class_weights(leaf, sample.positive[held_out], sample.weight[held_out])
    return tree, tree.gains(weights)


def grow_pruned(
    sample: Sample,
    make_splitter: Callable[[Sample], Splitter],
    limits: TreeLimits,
    n_folds: int,
    rng: np.random.Generator,
) -> RankTree:
    """Grow a tree and prune it by the penalty that did best on held-out rows.

    `n_folds` trees are grown without one fold each; each gives its own weakest-link sequence, and the AUC
    of its subtrees on the fold is 1/2 plus the gains, on the fold, of the nodes they keep.
    """
    tree = grow_tree(sample, make_splitter(sample), limits, rng)
    if n_folds < 2 or tree.n_nodes == 1:
        return tree
    penalties = collapse_penalties(tree.left, tree.right, tree.gains())
    candidates = penalty_candidates(penalties)
    values = np.zeros(len(candidates))
    fold = sample.folds(n_folds, rng)
    for number in range(n_folds):
        part, gains = grow_without_fold(sample, fold == number, make_splitter, limits, rng)
        own_penalties = collapse_penalties(part.left, part.right, part.gains())
        values += kept_gains(own_penalties, gains, candidates)
    return tree.pruned(penalties > best_candidate(candidates, values))


# -- kernels ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def separate(order, starts, stops, goes_left):
    """Put the rows that go left to the front of each range, in place; return where they end."""
    middles = np.empty(len(starts), np.int64)
    for k in range(len(starts)):
        own, left = order[starts[k] : stops[k]], goes_left[starts[k] : stops[k]] == 1
        first, second = own[left], own[~left]
        middles[k] = starts[k] + len(first)
        own[: len(first)] = first
        own[len(first) :] = second
    return middles


@njit(cache=True, nogil=True)
def class_weights(order, starts, stops, positive, weight):
    """Return the weight of the positives and of the negatives in each range."""
    weights = np.empty((len(starts), 2))
    for k in range(len(starts)):
        weights[k] = range_weights(order, starts[k], stops[k], positive, weight)
    return weights


@njit(cache=True, nogil=True)
def range_weights(order, begin, end, positive, weight):
    """Return the weight of the positives and of the negatives among `order[begin:end]`."""
    P, N = 0.0, 0.0
    for i in range(begin, end):
        if positive[order[i]]:
            P += weight[order[i]]
        else:
            N += weight[order[i]]
    return P, N


@njit(cache=True, nogil=True)
def branch_gains(left, right, gain):
    """Return for each node the total gain of its branch (its own included), and its leaves."""
    branch, leaves = gain.copy(), np.ones(len(left))
    for node in range(len(left) - 1, -1, -1):
        if left[node] >= 0:
            branch[node] = gain[node] + branch[left[node]] + branch[right[node]]
            leaves[node] = leaves[left[node]] + leaves[right[node]]
    return branch, leaves


@njit(cache=True, nogil=True)
def collapse_penalties(left, right, gain):
    """Return for each internal node the penalty from which on it is a leaf (or gone); 0 for leaves.

    The subtree that maximises AUC - penalty * leaves keeps the nodes whose value exceeds the penalty;
    of equally good subtrees it is the smallest. `left` and `right` are the children (-1 for none), which
    come after their parents; `gain` is 0 for leaves.

    The weakest link is the first of a heap; a link that changes is pushed again, and its old entry is
    skipped.
    """
    n_nodes = len(left)
    branch, leaves = branch_gains(left, right, gain)
    parent = np.full(n_nodes, -1)
    links = [(np.inf, 0)]
    for node in range(n_nodes):
        if left[node] >= 0:
            parent[left[node]] = node
            parent[right[node]] = node
            links.append((branch[node] / (leaves[node] - 1), node))
    heapq.heapify(links)
    penalties = np.zeros(n_nodes)
    gone = np.zeros(n_nodes, np.bool_)
    current = 0.0
    while left[0] >= 0 and not gone[0]:
        ratio, weakest = heapq.heappop(links)
        if gone[weakest] or ratio != branch[weakest] / (leaves[weakest] - 1):
            continue
        current = max(current, ratio)
        ancestor = parent[weakest]
        while ancestor >= 0:
            branch[ancestor] -= branch[weakest]
            leaves[ancestor] -= leaves[weakest] - 1
            heapq.heappush(links, (branch[ancestor] / (leaves[ancestor] - 1), ancestor))
            ancestor = parent[ancestor]
        _collapse(left, right, weakest, current, penalties, gone)
    return penalties


@njit(cache=True, nogil=True)
def _collapse(left, right, top, penalty, penalties, gone):
    """Mark a node and the splits beneath it as gone from a penalty on."""
    pending = [top]
    while len(pending) > 0:
        node = pending.pop()
        if left[node] >= 0 and not gone[node]:
            gone[node] = True
            penalties[node] = penalty
            pending.append(left[node])
            pending.append(right[node])


@njit(cache=True, nogil=True)
def penalty_candidates(penalties):
    """Return one penalty inside each interval on which the pruned tree stays the same, ascending.

    Between two collapses it is their geometric mean; the last one leaves the root alone.
    """
    collapses = np.unique(penalties[penalties > 0.0])
    candidates = np.zeros(len(collapses) + 1)
    candidates[1:-1] = np.sqrt(collapses[:-1] * collapses[1:])
    if len(collapses) > 0:
        candidates[-1] = np.inf
    return candidates


@njit(cache=True, nogil=True)
def kept_gains(penalties, gain, candidates):
    """Return for each candidate (ascending) the total `gain` of the nodes that its pruned tree keeps."""
    total = np.zeros(len(candidates) + 1)
    for node in range(len(gain)):
        total[np.searchsorted(candidates, penalties[node])] += gain[node]  # of those that keep it
    return np.cumsum(total[:0:-1])[::-1]


@njit(cache=True, nogil=True)
def best_candidate(candidates, values):
    """Return the candidate of the greatest value; of equal ones the greatest penalty."""
    return candidates[len(values) - 1 - np.argmax(values[::-1])]
