"""Sums over pairs of rows in the time of a sort.

`sums` has the sorted form, `binned` the histogram that stands for rows spread over workers.
"""

from toprank.pairs._kernels import range_weights
from toprank.pairs.binned import BinnedScores, Grid
from toprank.pairs.sums import ranked_hinge_sums, ranked_sums, sigmoid_sums, softplus_sums

__all__ = [
    "BinnedScores",
    "Grid",
    "range_weights",
    "ranked_hinge_sums",
    "ranked_sums",
    "sigmoid_sums",
    "softplus_sums",
]
