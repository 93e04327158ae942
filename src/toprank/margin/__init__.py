"""Margin methods: pairwise and structural support vector machines, least squares, logistic regression."""

from toprank.margin.logistic import KernelLogisticRanker, LogisticRanker
from toprank.margin.partial_auc import POISE, PartialAUCRanker, PartialAUCSVM
from toprank.margin.rankls import RankLS
from toprank.margin.ranksvm import RankSVM
from toprank.margin.tree_path import TreePathEmbedding

__all__ = [
    "POISE",
    "KernelLogisticRanker",
    "LogisticRanker",
    "PartialAUCRanker",
    "PartialAUCSVM",
    "RankLS",
    "RankSVM",
    "TreePathEmbedding",
]
