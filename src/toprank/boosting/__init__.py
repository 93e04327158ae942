"""Gradient boosting of any objective on XGBoost's trees."""

from toprank.boosting.ranker import SGBAP, GradientBoostingRanker, LambdaMART, SGBAPsig
from toprank.boosting.settings import Round

__all__ = ["SGBAP", "GradientBoostingRanker", "LambdaMART", "Round", "SGBAPsig"]
