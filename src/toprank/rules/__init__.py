"""Boosted rules: weak rankers found on tables or relational data, and the boosters that add them up."""

from toprank.rule import Literal, Rule
from toprank.rules.boosters import KeptRound
from toprank.rules.estimators import PNormPush, PRankBoost, RankBoost
from toprank.rules.partial_auc import GreedyPAUC, PAUCBoost
from toprank.rules.scorecard import RuleScorecard

__all__ = [
    "GreedyPAUC",
    "KeptRound",
    "Literal",
    "PAUCBoost",
    "PNormPush",
    "PRankBoost",
    "RankBoost",
    "Rule",
    "RuleScorecard",
]
