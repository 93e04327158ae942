"""Growing a ranking tree: level after level over ranges of row indices, then pruning it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numba import njit

from toprank.trees.leafrank import FIRST, LeafRank, LeafRankRules, assign_sides, grow_level
from toprank.trees.leafrank_pruning import choose_penalties
from toprank.trees.pruning import choose_penalty, collapse_penalties, stratified_folds
from toprank.trees.tree import RankTree

__all__ = ["LeafRankSplitter", "Limits", "Sample", "Splitter", "grow_pruned", "grow_tree"]


@dataclass(frozen=True)
class Sample:
    """The rows a tree is grown from.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Prepared for the splitting rule: bytes, or an encoded matrix.
    positive : uint8 ndarray of shape (n_rows,)
    weight : float ndarray of shape (n_rows,)
        Rows of weight zero are absent.
    """

    rows: Any
    positive: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Limits:
    """How far a tree grows, in depth and in weight of rows."""

    max_depth: int
    min_samples_split: float
    min_samples_leaf: float


class Splitter(Protocol):
    """A splitting rule at work on one sample: it splits nodes and keeps the splits it made."""

    def split(
        self,
        order: np.ndarray,
        starts: np.ndarray,
        stops: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Side of each row of `order` (1 left) and whether each range was split."""

    def rules(self) -> Any:
        """The splits made so far, in order."""


class LeafRankSplitter:
    """LeafRank on one sample of bytes."""

    def __init__(
        self,
        parameters: LeafRank,
        limits: Limits,
        sample: Sample,
        n_bins: np.ndarray,
        is_category: np.ndarray,
    ) -> None:
        self.parameters = parameters
        self.limits = limits
        self.sample = sample
        self.n_bins = n_bins
        self.is_category = is_category
        self.pieces: list[tuple[np.ndarray, ...]] = []

    def split(
        self, order: np.ndarray, starts: np.ndarray, stops: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        part, sample = self.parameters, self.sample
        data = (sample.rows, sample.positive, sample.weight, order, starts, stops)
        kinds = (self.n_bins, self.is_category)
        least = float(part.min_samples_leaf)
        tables, begins, drawn = grow_level(
            *data, *kinds, part.n_node_features, part.n_cell_features, part.max_depth, least, rng
        )
        penalties = np.zeros(len(starts))
        if part.n_folds > 1:
            penalties = choose_penalties(
                *data, *kinds, drawn, part.n_cell_features, part.max_depth, least, part.n_folds, rng,
                tables, begins,
            )  # fmt: skip
        goes_left, roots, cells, weights, bits = assign_sides(
            tables, begins, len(order), penalties, float(self.limits.min_samples_leaf)
        )
        self.pieces.append((roots[roots >= 0], cells, weights, bits))
        return goes_left, roots >= 0

    def rules(self) -> LeafRankRules:
        """Join the cells of all levels; what points into a level's own table moves along."""
        moved = []
        at = 0
        for roots, cells, weights, bits in self.pieces:
            cells = cells.copy()
            inner = cells[:, FIRST] >= 0
            cells[inner, FIRST : FIRST + 2] += at
            moved.append((roots + at, cells, weights, bits))
            at += len(cells)
        if not moved:
            moved = [
                (
                    np.empty(0, np.int32),
                    np.empty((0, 6), np.int32),
                    np.empty((0, 2)),
                    np.zeros((1, 32), np.uint8),
                )
            ]
        roots, cells, weights, bits = zip(*moved, strict=True)
        all_bits = np.concatenate(bits) if self.is_category.any() else bits[0]
        return LeafRankRules(
            np.concatenate(cells),
            np.concatenate(weights),
            all_bits,
            np.concatenate(roots).astype(np.int32),
        )


@dataclass(frozen=True)
class _Level:
    """Nodes of one depth, from left to right: ranges of the order of rows, positions, class weights."""

    starts: np.ndarray
    stops: np.ndarray
    position: np.ndarray
    weights: np.ndarray

    def may_split(self, limits: Limits) -> np.ndarray:
        """Nodes of both classes that are heavy enough."""
        least = max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        return (self.weights.min(axis=1) > 0) & (self.weights.sum(axis=1) >= least)

    def children(
        self, order: np.ndarray, split: np.ndarray, goes_left: np.ndarray, sample: Sample
    ) -> _Level:
        """The next level: both sides of each node that was split; `order` is rearranged."""
        starts, stops, position = self.starts[split], self.stops[split], self.position[split]
        middles = separate(order, starts, stops, goes_left)
        starts = np.column_stack([starts, middles]).ravel()
        stops = np.column_stack([middles, stops]).ravel()
        position = np.column_stack([2 * position, 2 * position + 1]).ravel()
        weights = class_weights(order, starts, stops, sample.positive, sample.weight)
        return _Level(starts, stops, position, weights)


def grow_tree(
    sample: Sample, splitter: Splitter, limits: Limits, rng: np.random.Generator
) -> RankTree:
    """Grow a ranking tree breadth first: each pass splits all nodes of one depth that may be split."""
    order = np.flatnonzero(sample.weight > 0)
    start, stop = np.array([0]), np.array([len(order)])
    weights = class_weights(order, start, stop, sample.positive, sample.weight)
    level = _Level(start, stop, np.array([0]), weights)
    levels, splits = [level], []
    while True:
        split = np.zeros(len(level.starts), dtype=bool)
        splits.append(split)
        wanted = np.flatnonzero(level.may_split(limits))
        if len(levels) > limits.max_depth or not len(wanted):
            break
        goes_left, was_split = splitter.split(order, level.starts[wanted], level.stops[wanted], rng)
        split[wanted[was_split]] = True
        if not split.any():
            break
        level = level.children(order, split, goes_left, sample)
        levels.append(level)
    inner = np.concatenate(splits)
    rule = np.where(inner, np.cumsum(inner) - 1, -1).astype(np.int32)
    # breadth first, the children of split number k are the nodes 2k + 1 and 2k + 2
    return RankTree(
        left=np.where(inner, 2 * rule + 1, -1).astype(np.int32),
        right=np.where(inner, 2 * rule + 2, -1).astype(np.int32),
        depth=np.repeat(np.arange(len(levels)), [len(one.starts) for one in levels]),
        position=np.concatenate([one.position for one in levels]),
        weights=np.concatenate([one.weights for one in levels]),
        rule=rule,
        rules=splitter.rules(),
    )


def grow_pruned(
    sample: Sample,
    make_splitter: Callable[[Sample], Splitter],
    limits: Limits,
    n_folds: int,
    rng: np.random.Generator,
) -> RankTree:
    """Grow a tree and cut it back to the penalty that did best on rows held out.

    `n_folds` trees are grown without one fold each; each gives its own weakest-link sequence, and the AUC
    of its members on the fold is 1/2 plus the gains, on the fold, of the nodes they keep.
    """
    tree = grow_tree(sample, make_splitter(sample), limits, rng)
    if n_folds < 2 or tree.n_nodes == 1:
        return tree
    penalties = collapse_penalties(tree.left, tree.right, tree.gains())
    present = np.flatnonzero(sample.weight > 0)
    fold = np.full(len(sample.weight), -1)
    fold[present] = stratified_folds(sample.positive[present], n_folds, rng)
    held_out_gains = []
    for number in range(n_folds):
        out = fold == number
        rest = Sample(sample.rows, sample.positive, np.where(out, 0.0, sample.weight))
        part = grow_tree(rest, make_splitter(rest), limits, rng)
        leaf = part.apply(sample.rows[out])
        held_out = part.class_weights(leaf, sample.positive[out], sample.weight[out])
        part_penalties = collapse_penalties(part.left, part.right, part.gains())
        held_out_gains.append((part_penalties, part.gains(held_out)))
    return tree.pruned(penalties > choose_penalty(penalties, held_out_gains))


@njit(cache=True, nogil=True)
def separate(order, starts, stops, goes_left):
    """Put the rows that go left to the front of each range, in place; return where they end."""
    middles = np.empty(len(starts), np.int64)
    scratch = np.empty(len(order), order.dtype)
    for k in range(len(starts)):
        middle, waiting = starts[k], 0
        for i in range(starts[k], stops[k]):
            if goes_left[i]:
                order[middle] = order[i]
                middle += 1
            else:
                scratch[waiting] = order[i]
                waiting += 1
        for i in range(waiting):
            order[middle + i] = scratch[i]
        middles[k] = middle
    return middles


@njit(cache=True, nogil=True)
def class_weights(order, starts, stops, positive, weight):
    """Weight of the positives and of the negatives in each range."""
    weights = np.zeros((len(starts), 2))
    for k in range(len(starts)):
        for i in range(starts[k], stops[k]):
            weights[k, 1 - positive[order[i]]] += weight[order[i]]
    return weights
