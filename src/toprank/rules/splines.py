"""Natural cubic splines as weak rankers: step functions of one column, read off at its bins.

A spline over a binned column takes one value an interval, so it is a path of nested rules
(`x is present`, `x > c1`, `x > c2`, ...) with a level for each: it is scored, explained and written as
SQL like any other path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline

from toprank.rule import Literal, Rule
from toprank.rules._kernels import MISSING, N_BINS
from toprank.rules.bins import Bins

__all__ = ["SplineBasis", "spline_bases"]

MOST_LEVELS = 48  # values a spline takes


@dataclass(frozen=True)
class SplineBasis:
    """The cardinal natural cubic splines of one column.

    Attributes
    ----------
    column : int
    rules : tuple of Rule
        The nested rules of the intervals, from "present" to above the last cut.
    depth_of_bin : uint8 ndarray of shape (256,)
        How many of the rules cover each bin of the column.
    levels : ndarray of shape (n_basis, n_intervals)
        Basis functions, centred over the intervals and of unit length: 1 at one knot and 0 at the
        others before that, natural cubic splines in between.
    roughness : ndarray of shape (n_basis, n_basis)
        Integrals of products of second derivatives, over their greatest diagonal entry.
    """

    column: int
    rules: tuple[Rule, ...]
    depth_of_bin: np.ndarray
    levels: np.ndarray
    roughness: np.ndarray

    @classmethod
    def of(cls, bins: Bins, column: int, n_knots: int) -> SplineBasis:
        """Basis with knots at quantiles of a column of numbers."""
        chosen = _spread_out(len(bins.cuts[column]), MOST_LEVELS - 1)
        cuts = bins.cuts[column][chosen]
        name = bins.columns.names[column]
        literals = [Literal(name, "is present")]
        literals += [bins.above(column, int(k)) for k in chosen]
        depth = np.searchsorted(chosen, np.arange(N_BINS), side="left") + 1
        depth[MISSING] = 0
        centres = np.concatenate([cuts[:1], (cuts[1:] + cuts[:-1]) / 2, cuts[-1:]])
        knots = np.unique(centres[_spread_out(len(centres), n_knots)])
        unit = (knots - knots[0]) / (knots[-1] - knots[0])
        splines = CubicSpline(unit, np.eye(len(unit)), bc_type="natural")
        levels = splines((centres - knots[0]) / (knots[-1] - knots[0])).T
        levels = levels - levels.mean(axis=1, keepdims=True)
        length = np.sqrt((levels**2).mean(axis=1, keepdims=True))
        rules = tuple(Rule((literal,)) for literal in literals)
        return cls(
            column, rules, depth.astype(np.uint8), levels / length, _roughness(splines, length)
        )

    def slopes(self, sums: np.ndarray) -> np.ndarray:
        """Inner products of the basis functions with values of rows, summed by bin."""
        by_depth = np.bincount(self.depth_of_bin, weights=sums, minlength=len(self.rules) + 1)
        return self.levels @ by_depth[1:]


def spline_bases(bins: Bins, n_knots: int) -> list[SplineBasis]:
    """Bases of the continuous columns: numbers with more distinct values than knots."""
    continuous = [
        j
        for j in range(bins.n_columns)
        if not bins.columns.is_category[j] and len(bins.cuts[j]) > n_knots
    ]
    return [SplineBasis.of(bins, j, n_knots) for j in continuous]


def _spread_out(n: int, wanted: int) -> np.ndarray:
    """Up to `wanted` of the indices below n, evenly spread, with both ends."""
    return np.unique(np.round(np.linspace(0, n - 1, min(n, wanted))).astype(np.int64))


def _roughness(splines: CubicSpline, length: np.ndarray) -> np.ndarray:
    """Integrals of products of second derivatives (linear between knots, so sums are exact)."""
    points = np.unique(np.concatenate([splines.x, (splines.x[1:] + splines.x[:-1]) / 2]))
    second = splines(points, 2)  # (n_points, n_basis)
    widths = np.diff(splines.x)
    left, middle, right = second[:-1:2], second[1::2], second[2::2]
    # Simpson's rule is exact for the products, which are quadratic between knots
    products = sum(
        share * np.einsum("ki,kj,k->ij", part, part, widths)
        for share, part in ((1 / 6, left), (4 / 6, middle), (1 / 6, right))
    )
    products = products / (length * length.T)
    return products / np.diag(products).max()
