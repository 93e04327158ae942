"""Curves of every model, with pointwise bands for the model of the report; thinned to stay small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.metrics._lists import Staircase
from toprank.metrics.curves import CURVES
from toprank.ranking import RankedList

__all__ = ["FALSE_POSITIVE_RATES", "LOW_RANGE", "RECALLS", "band", "curve_points", "other_curves"]

MOST_POINTS = 400
LOW_RANGE = 0.05  # the false positive rates that are drawn enlarged
FALSE_POSITIVE_RATES = np.union1d(np.linspace(0, LOW_RANGE, 51), np.linspace(0, 1, 101))
RECALLS = np.linspace(0.01, 1, 100)


def curve_points(stairs: Staircase) -> dict[str, dict[str, list[float]]]:
    """The points of each kind of curve."""
    points: dict[str, dict[str, list[float]]] = {}
    draw: Callable[..., Any]
    for kind, draw in CURVES.items():
        x, y = draw(stairs, MOST_POINTS)
        points[kind] = {"x": shortened(x), "y": shortened(y)}
    return points


def other_curves(
    positive: np.ndarray, scores: dict[str, np.ndarray], weight: np.ndarray | None
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """The curves of each model."""
    return {
        name: curve_points(Staircase.of(RankedList.of(positive, column, weight)))
        for name, column in scores.items()
    }


def band(x: np.ndarray, drawn: np.ndarray, level: float) -> dict[str, list[float]]:
    """Pointwise percentile band of curves drawn at the same places."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return {"x": shortened(x), "low": shortened(low), "high": shortened(high)}


def shortened(values: np.ndarray) -> list[float]:
    """Numbers with six significant digits, which is finer than any screen."""
    return [float(f"{number:.6g}") for number in np.asarray(values, dtype=np.float64)]
