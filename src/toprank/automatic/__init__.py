"""AutoRanker: many configurations under a time limit, the best of them combined, and how good the result is."""

from toprank.automatic.interpretation import Distillation
from toprank.automatic.portfolio import PORTFOLIO, Configuration
from toprank.automatic.ranker import AutoRanker

__all__ = ["PORTFOLIO", "AutoRanker", "Configuration", "Distillation"]
