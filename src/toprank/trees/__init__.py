"""Ranking trees: TreeRank, LeafRank, pruning, forests, and how to read them."""

from __future__ import annotations

from toprank.trees.estimators import VARIANTS, RankingForest, TreeRank
from toprank.trees.reading import (
    Region,
    export_text,
    leaf_region,
    leaf_rules,
    plot_roc,
    plot_tree,
    roc_vertices,
)
from toprank.trees.splitters import SVMSplit
from toprank.trees.tree import RankTree

__all__ = [
    "VARIANTS",
    "RankTree",
    "RankingForest",
    "Region",
    "SVMSplit",
    "TreeRank",
    "export_text",
    "leaf_region",
    "leaf_rules",
    "plot_roc",
    "plot_tree",
    "roc_vertices",
]
