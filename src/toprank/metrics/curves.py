"""Points of the curves that show a ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.metrics._lists import Staircase, staircase
from toprank.validation import check_choice

__all__ = ["ranking_curve"]

Points = tuple[np.ndarray, np.ndarray]


def ranking_curve(
    kind: str,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    max_points: int = 2000,
) -> Points:
    """Points of a curve of a ranking.

    Parameters
    ----------
    kind : {"roc", "recall_precision", "list_precision"}
        - "roc": true positive rate against false positive rate;
        - "recall_precision": precision against recall, with points on the hyperbolas between
          thresholds (Davis and Goadrich 2006), whose area is
          :func:`~toprank.metrics.recall_precision_area`;
        - "list_precision": expected precision against the length of the list.
    y_true : array-like of shape (n_rows,)
        Labels of two classes.
    scores : array-like of shape (n_rows,)
        Finite scores, higher for rows more likely positive.
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0.
    pos_label : label, optional
        The positive class; by default the greater of the two labels.
    max_points : int, default=2000
        About how many points; longer curves are thinned out, shorter ones refined where they bend.

    Returns
    -------
    x, y : ndarray
        Points to be joined by straight lines.

    Examples
    --------
    >>> x, y = ranking_curve("roc", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    >>> x.tolist(), y.tolist()
    ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    points = CURVES[check_choice(kind, "kind", tuple(CURVES))]
    return points(staircase(y_true, scores, sample_weight, pos_label), max_points)


def roc_points(stairs: Staircase, max_points: int = 2000) -> Points:
    """Corners of the ROC curve."""
    negatives, positives = _corners(stairs)
    kept = _spread(len(negatives), max_points)
    x, y = negatives[kept] / stairs.negatives, positives[kept] / stairs.positives
    moved = np.append(True, (np.diff(x) > 0) | (np.diff(y) > 0))
    return x[moved], y[moved]


def recall_precision_points(stairs: Staircase, max_points: int = 2000) -> Points:
    """Precision against recall along the hyperbolas between thresholds."""
    steps = _spread(len(stairs.rise), max_points // 2)
    pieces = max(1, min(50, max_points // len(steps)))
    share = np.linspace(0.0, 1.0, pieces + 1)
    negatives, positives = _corners(stairs)
    # corner 2g + 1 is where step g starts, after its run of negatives
    x = negatives[1:-1:2][steps, None] + stairs.tied[steps, None] * share
    y = positives[1:-1:2][steps, None] + stairs.rise[steps, None] * share
    size = x + y
    precision = np.divide(y, size, out=np.zeros_like(y), where=size > 0)
    if size[0, 0] == 0:  # the empty list: precision is constant up to the first threshold
        precision[0, 0] = precision[0, -1]
    recall = (y / stairs.positives).ravel()
    return np.append(recall, 1.0), np.append(precision.ravel(), stairs.positives / stairs.total)


def list_precision_points(stairs: Staircase, max_points: int = 2000) -> Points:
    """Expected precision against list length, from one row to all."""
    negatives, positives = _corners(stairs)
    kept = _spread(len(negatives), max_points)
    size = negatives + positives
    grid = np.geomspace(min(1.0, size[-1]), size[-1], max_points // 2)
    grid[-1] = size[-1]  # geomspace may end a rounding away
    length = np.union1d(size[kept][size[kept] >= grid[0]], grid)
    distinct = np.append(np.diff(size) > 0, True)
    return length, np.interp(length, size[distinct], positives[distinct]) / length


CURVES: dict[str, Callable[..., Points]] = {
    "roc": roc_points,
    "recall_precision": recall_precision_points,
    "list_precision": list_precision_points,
}


def _corners(stairs: Staircase) -> Points:
    """Negatives and positives passed at every corner of the staircase, from (0, 0) to the end."""
    n_steps = len(stairs.rise)
    across, up = np.zeros(2 * n_steps + 2), np.zeros(2 * n_steps + 2)
    across[1::2] = stairs.run
    across[2::2] = stairs.tied
    up[2::2] = stairs.rise
    return np.cumsum(across), np.cumsum(up)


def _spread(count: int, at_most: int) -> np.ndarray:
    """At most so many indices, evenly spread, both ends included."""
    if count <= at_most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, max(at_most, 2)).astype(np.int64))
