"""Boosted rules: weak rankers found on tables or relational data, and the boosters that add them up."""

from toprank.rule import Literal, Rule
from toprank.rules.estimators import PNormPush, PRankBoost, RankBoost
from toprank.rules.greedy_pauc import GreedyPAUC
from toprank.rules.partial_auc import PAUCBoost
from toprank.rules.scoring import KeptRound

__all__ = [
    "GreedyPAUC",
    "KeptRound",
    "Literal",
    "PAUCBoost",
    "PNormPush",
    "PRankBoost",
    "RankBoost",
    "Rule",
]
