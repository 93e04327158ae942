"""Ranking trees: TreeRank, LeafRank, pruning, forests, and how to read them."""

from __future__ import annotations

from toprank.trees.forest import VARIANTS, RankingForest
from toprank.trees.plotting import plot_roc, plot_tree
from toprank.trees.reading import export_text, leaf_region, leaf_rules, roc_vertices
from toprank.trees.region import Region
from toprank.trees.svm import SVMSplit
from toprank.trees.tree import RankTree
from toprank.trees.treerank import TreeRank

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
