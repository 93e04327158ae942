"""Gradient boosting of any objective on XGBoost's trees."""

from toprank.boosting.engine import Round
from toprank.boosting.presets import SGBAP, LambdaMART, SGBAPsig
from toprank.boosting.ranker import GradientBoostingRanker

__all__ = ["SGBAP", "GradientBoostingRanker", "LambdaMART", "Round", "SGBAPsig"]
