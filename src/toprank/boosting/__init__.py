"""Gradient boosting of any objective on XGBoost's trees."""

from toprank.boosting.engine import Round
from toprank.boosting.ranker import SGBAP, GradientBoostingRanker, LambdaMART, SGBAPsig

__all__ = ["SGBAP", "GradientBoostingRanker", "LambdaMART", "Round", "SGBAPsig"]
