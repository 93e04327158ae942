"""From an estimator's parameters and data to what grows trees; shared by the tree and the forest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from toprank.base import BaseRanker, TrainingData
from toprank.trees.binning import MAX_BINS, Bins
from toprank.trees.encoding import Encoding
from toprank.trees.growing import (
    LeafRankSplitter,
    Limits,
    Sample,
    Splitter,
    grow_pruned,
)
from toprank.trees.leafrank import LeafRank
from toprank.trees.splitters import (
    EstimatorSplitter,
    SVMSplitter,
    check_estimator_splitter,
    choose_machine,
)
from toprank.trees.svm import SVMSplit
from toprank.trees.tree import RankTree

__all__ = ["CHUNK", "BaseTreeRanker", "Plan", "chunks", "count_features"]

CHUNK = 65_536
DEEPEST = 50  # a leaf's place among 2^depth must stay exact in a float
PRUNE = {
    False: (False, False),
    True: (True, True),
    "tree": (True, False),
    "leafrank": (False, True),
}


@dataclass(frozen=True)
class Plan:
    """All that growing one tree needs: rows, limits, the maker of splitters, folds for pruning."""

    sample: Sample
    limits: Limits
    make_splitter: Callable[[Sample], Splitter]
    n_folds: int

    def grow(self, weight: np.ndarray, rng: np.random.Generator) -> RankTree:
        """Grow (and prune) a tree on the rows under other weights."""
        sample = Sample(self.sample.rows, self.sample.positive, weight)
        return grow_pruned(sample, self.make_splitter, self.limits, self.n_folds, rng)


class BaseTreeRanker(BaseRanker):
    """What the tree and the forest share: parameters that are checked, and data that is prepared."""

    _accepts_missing = True
    _accepts_categories = True

    def _plan(
        self,
        data: TrainingData,
        node_features: int | float | None,
        cell_features: int | float | None,
        rng: np.random.Generator,
    ) -> Plan:
        """Learn bins or the encoding, set `space_`, and make the plan of the trees."""
        self._check_parameters()
        n_columns = data.X.shape[1]
        n_node = count_features(node_features, n_columns, "max_features")
        n_cell = count_features(cell_features, n_columns, "leafrank_max_features")
        limits = Limits(
            int(self.max_depth), float(self.min_samples_split), float(self.min_samples_leaf)
        )
        leafrank = isinstance(self.splitter, str) and self.splitter == "leafrank"
        is_category = self.columns_.is_category
        if leafrank:
            self.space_: Any = Bins.of(data.X, is_category, data.sample_weight, self.max_bins)
        else:
            self.space_ = Encoding.of(data.X, is_category, data.sample_weight)
        rows = self.space_.prepare(data.X)
        sample = Sample(rows, data.y.astype(np.uint8), data.weights)
        make: Callable[[Sample], Splitter]
        if leafrank:
            make = self._leafrank_maker(limits, n_node, min(n_cell, n_node))
        else:
            make = self._classifier_maker(sample, limits, n_node, rng)
        prune_tree, _ = PRUNE[self.prune]
        return Plan(sample, limits, make, int(self.prune_folds) if prune_tree else 0)

    def _leafrank_maker(
        self, limits: Limits, n_node: int, n_cell: int
    ) -> Callable[[Sample], Splitter]:
        """What makes a LeafRank splitter for a sample."""
        _, prune_cells = PRUNE[self.prune]
        parameters = LeafRank(
            int(self.leafrank_depth),
            float(self.leafrank_min_samples_leaf),
            n_node,
            n_cell,
            int(self.prune_folds) if prune_cells else 0,
        )
        return partial(_make_leafrank, parameters, limits, self.space_)

    def _classifier_maker(
        self, sample: Sample, limits: Limits, n_node: int, rng: np.random.Generator
    ) -> Callable[[Sample], Splitter]:
        """What makes a splitter by machines or by the user's classifier for a sample."""
        if not isinstance(self.splitter, (SVMSplit, str)):
            return partial(_make_estimator, self.splitter, limits, self.space_, n_node)
        svm = self.splitter if isinstance(self.splitter, SVMSplit) else SVMSplit()
        self.svm_ = choose_machine(sample, svm, limits, self.space_, rng)
        return partial(_make_svm, self.svm_, limits, self.space_, n_node)

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense, and say what they may be."""
        if isinstance(self.splitter, str):
            if self.splitter not in {"leafrank", "svm"}:
                raise ValueError(
                    f"splitter must be 'leafrank', 'svm', an SVMSplit or a classifier, "
                    f"got {self.splitter!r}"
                )
        elif isinstance(self.splitter, SVMSplit):
            _check_svm(self.splitter)
        else:
            check_estimator_splitter(self.splitter)
        if self.prune not in PRUNE:
            raise ValueError(f"prune must be one of {list(PRUNE)}, got {self.prune!r}")
        _check_whole(self.max_depth, "max_depth", 1, DEEPEST)
        _check_whole(self.leafrank_depth, "leafrank_depth", 1, DEEPEST)
        _check_whole(self.max_bins, "max_bins", 2, MAX_BINS)
        _check_whole(self.prune_folds, "prune_folds", 2, None)
        for name in ("min_samples_split", "min_samples_leaf", "leafrank_min_samples_leaf"):
            value = getattr(self, name)
            if not isinstance(value, (int, float, np.number)) or not value > 0:
                raise ValueError(f"{name} must be a number above 0, got {value!r}")


def _check_svm(svm: SVMSplit) -> None:
    if svm.kernel not in {"auto", "linear", "gaussian"}:
        raise ValueError(
            f"the kernel of SVMSplit must be 'auto', 'linear' or 'gaussian', got {svm.kernel!r}"
        )
    for name, word in (("C", "auto"), ("gamma", "scale")):
        value = getattr(svm, name)
        if value != word and (isinstance(value, str) or not value > 0):
            raise ValueError(
                f"{name} of SVMSplit must be {word!r} or a number above 0, got {value!r}"
            )


def count_features(wanted: int | float | None, n_columns: int, name: str) -> int:
    """How many features a parameter asks for: all, a number, or a share (rounded down, at least 1).

    Examples
    --------
    >>> count_features(None, 10, "max_features"), count_features(0.25, 10, "max_features")
    (10, 2)
    """
    if wanted is None:
        return n_columns
    if isinstance(wanted, Integral) and wanted >= 1:
        return min(int(wanted), n_columns)
    if isinstance(wanted, float) and 0 < wanted <= 1:
        return max(1, int(wanted * n_columns))
    raise ValueError(
        f"{name} must be None, a whole number from 1 up or a share in (0, 1], got {wanted!r}"
    )


def chunks(n_rows: int) -> list[slice]:
    """Slices of a bounded number of rows."""
    return [slice(start, start + CHUNK) for start in range(0, max(1, n_rows), CHUNK)]


def _check_whole(value: Any, name: str, least: int, most: int | None) -> None:
    bad = not isinstance(value, Integral) or isinstance(value, bool) or value < least
    if bad or (most is not None and value > most):
        upper = "up" if most is None else f"to {most}"
        raise ValueError(f"{name} must be a whole number from {least} {upper}, got {value!r}")


def _make_leafrank(parameters: LeafRank, limits: Limits, bins: Bins, sample: Sample) -> Splitter:
    return LeafRankSplitter(parameters, limits, sample, bins.n_bins, bins.is_category)


def _make_svm(
    parameters: SVMSplit, limits: Limits, encoding: Encoding, n_node_features: int, sample: Sample
) -> Splitter:
    return SVMSplitter(sample, limits, encoding, n_node_features, parameters)


def _make_estimator(
    estimator: Any, limits: Limits, encoding: Encoding, n_node_features: int, sample: Sample
) -> Splitter:
    return EstimatorSplitter(sample, limits, encoding, n_node_features, estimator)
