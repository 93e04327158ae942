"""RankTree: an oriented binary tree as flat arrays, left is better.

Node 0 is the root; nodes are numbered breadth first, so parents come before their children. The order
of the leaves from left to right is the ranking; a leaf at depth d and position k (counted from the left
among the 2^d positions of its depth) has the score 2^D (1 - k / 2^d), D the depth of the tree (Clemencon &
Vayatis 2009, IEEE Trans. Information Theory 55).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["RankTree"]


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
