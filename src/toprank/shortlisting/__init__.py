"""From scores to a shortlist: cuts, calibrated probabilities, reasons and drift."""

from toprank.folds import cross_fitted_scores
from toprank.shortlisting.calibration import CalibratedRanker, calibrate, top_calibration
from toprank.shortlisting.cut import Cut, choose_cut
from toprank.shortlisting.drift import Drift, drift
from toprank.shortlisting.reasons import contributions, effects, global_importance, reasons
from toprank.shortlisting.shortlist import shortlist

__all__ = [
    "CalibratedRanker",
    "Cut",
    "Drift",
    "calibrate",
    "choose_cut",
    "contributions",
    "cross_fitted_scores",
    "drift",
    "effects",
    "global_importance",
    "reasons",
    "shortlist",
    "top_calibration",
]
