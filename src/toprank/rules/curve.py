"""Areas under weighted recall-precision curves of rules and of paths of rules.

A rule is one point (TP, FP), the weights of the positives and negatives it covers. Between two points
the curve is the interpolation of Davis & Goadrich (2006), integrated in closed form
(`prankboost`, "Calculating AURPC"): with s = (FP_B - FP_A)/(TP_B - TP_A),

    area(A, B) = integral over x from TP_A to TP_B of x / (x + FP_A + s (x - TP_A)) dx.

The curve starts at (0, 0) and ends at (P, N), the rule that takes every row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

__all__ = ["SCORES", "CurvePath", "best_candidate", "recall_precision_area", "segment_area"]


@njit(cache=True, nogil=True)
def segment_area(tp_a, fp_a, tp_b, fp_b):
    """Integral of precision over true-positive weight between two points, `tp_a <= tp_b`."""
    gain = tp_b - tp_a
    if gain <= 1e-290:  # the area is at most the gain, and the slope would overflow
        return 0.0
    slope = max(fp_b - fp_a, 0.0) / gain
    a = 1.0 + slope
    b = fp_a - slope * tp_a
    covered = tp_a + fp_a
    if covered <= 1e-14 * (tp_b + fp_b) or abs(b) <= 1e-14 * (fp_a + slope * tp_a):
        return gain / a
    return gain / a - b / (a * a) * np.log1p(a * gain / covered)


@njit(cache=True, nogil=True)
def _extension_areas(positives, negatives, end_positives, end_negatives, fixed_area):
    """Areas of the curve (0, 0) -> candidate -> end point, plus the fixed part right of the end."""
    areas = np.empty(len(positives))
    for k in range(len(positives)):
        tp, fp = positives[k], negatives[k]
        areas[k] = (
            fixed_area
            + segment_area(0.0, 0.0, tp, fp)
            + segment_area(tp, fp, end_positives, end_negatives)
        )
    return areas


@dataclass(frozen=True)
class CurvePath:
    """The curve of a path of nested rules, with the totals of both classes.

    Attributes
    ----------
    total_positives, total_negatives : float
        The last point of the curve: every row.
    positives, negatives : tuple of float
        The points of the rules, from the most general to the most specific.
    fixed_area : float
        Area under the curve from the last rule's recall up to recall 1, times `total_positives`.
    """

    total_positives: float
    total_negatives: float
    positives: tuple[float, ...] = ()
    negatives: tuple[float, ...] = ()
    fixed_area: float = 0.0

    def extended(self, positives: float, negatives: float) -> CurvePath:
        """The path with one more rule, which covers a part of what the last one covers."""
        step = segment_area(float(positives), float(negatives), *self.end)
        return CurvePath(
            self.total_positives,
            self.total_negatives,
            (*self.positives, float(positives)),
            (*self.negatives, float(negatives)),
            self.fixed_area + step,
        )

    @property
    def end(self) -> tuple[float, float]:
        """The point of the most specific rule, or of every row."""
        if not self.positives:
            return float(self.total_positives), float(self.total_negatives)
        return self.positives[-1], self.negatives[-1]

    @property
    def area(self) -> float:
        """Area under the whole curve, in [0, 1]."""
        whole = self.fixed_area + segment_area(0.0, 0.0, *self.end)
        return whole / self.total_positives

    def levels(self) -> np.ndarray:
        """Values in [0, 1] that a path gives the rows whose most specific rule is each of its rules.

        The area from the rule's recall up to recall 1, over the whole area. The stretch down to recall
        0 belongs to the most specific rule, which so gets 1; rows under no rule get 0.
        """
        levels = np.empty(len(self.positives))
        path = CurvePath(self.total_positives, self.total_negatives)
        for k, point in enumerate(zip(self.positives, self.negatives, strict=True)):
            path = path.extended(*point)
            levels[k] = path.fixed_area
        whole = self.area * self.total_positives
        levels = levels / whole if whole > 0 else np.zeros(len(levels))
        levels[-1:] = 1.0
        return levels


def recall_precision_area(
    positives: float, negatives: float, total_positives: float, total_negatives: float
) -> float:
    """Area under the recall-precision curve of one rule.

    Examples
    --------
    >>> recall_precision_area(2.0, 0.0, 2.0, 8.0)
    1.0
    >>> round(recall_precision_area(2.0, 8.0, 2.0, 8.0), 12)
    0.2
    """
    path = CurvePath(float(total_positives), float(total_negatives))
    return path.extended(positives, negatives).area


def _auc_scores(positives: np.ndarray, negatives: np.ndarray, path: CurvePath) -> np.ndarray:
    """r = 2 AUC - 1 of one rule: its true-positive rate minus its false-positive rate."""
    return positives / path.total_positives - negatives / path.total_negatives


def _clause_scores(positives: np.ndarray, negatives: np.ndarray, path: CurvePath) -> np.ndarray:
    """Area of the curve through the candidate alone."""
    end_positives, end_negatives = float(path.total_positives), float(path.total_negatives)
    areas = _extension_areas(positives, negatives, end_positives, end_negatives, 0.0)
    return areas / path.total_positives


def _path_scores(positives: np.ndarray, negatives: np.ndarray, path: CurvePath) -> np.ndarray:
    """Area of the curve through the whole path and the candidate at its end."""
    areas = _extension_areas(positives, negatives, *path.end, path.fixed_area)
    return areas / path.total_positives


#: What a search maximises: scores of candidate extensions (their weights of positives and
#: negatives, float64 arrays) of a path.
SCORES: dict[str, Callable[[np.ndarray, np.ndarray, CurvePath], np.ndarray]] = {
    "auc": _auc_scores,
    "clause": _clause_scores,
    "path": _path_scores,
}


def best_candidate(scores: np.ndarray) -> tuple[int, float]:
    """Index and score of the best candidate; the first of those equal up to rounding.

    The tolerance makes the choice independent of the order in which rows were summed.
    """
    best = float(scores.max())
    index = int(np.argmax(scores >= best - 1e-11 * max(abs(best), 1e-300)))
    return index, float(scores[index])
