"""From scores to a shortlist: cuts, calibrated probabilities, reasons and drift."""

from toprank.shortlisting.calibration import CalibratedRanker
from toprank.shortlisting.contributions import contributions
from toprank.shortlisting.cross_fit import cross_fitted_scores
from toprank.shortlisting.cut import Cut, choose_cut
from toprank.shortlisting.drift import Drift, drift
from toprank.shortlisting.probability import top_calibration
from toprank.shortlisting.reasons import global_importance, reasons
from toprank.shortlisting.shortlist import shortlist

__all__ = [
    "CalibratedRanker",
    "Cut",
    "Drift",
    "choose_cut",
    "contributions",
    "cross_fitted_scores",
    "drift",
    "global_importance",
    "reasons",
    "shortlist",
    "top_calibration",
]
