"""Probabilities from scores: a rising map, honest bounds, and a check of the top of the list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from toprank.ranking import descending_order
from toprank.shortlisting.bounds import effective_rows, lower_share, share_interval, upper_share
from toprank.shortlisting.staircase import Staircase
from toprank.validation import binary_rows, check_scores

__all__ = ["METHODS", "ProbabilityMap", "probability_bounds", "top_calibration"]

ENOUGH_FOR_ISOTONIC = 100  # rows of the rarer class
SMALLEST_WINDOW = 4
NO_KNOTS = np.empty(0)


@dataclass(frozen=True)
class ProbabilityMap:
    """A rising function from scores to probabilities.

    Attributes
    ----------
    method : {"isotonic", "sigmoid"}
    slope, intercept : float
        Of the sigmoid: 1 / (1 + exp(-slope * score - intercept)).
    knots, values : ndarray
        Of the isotonic map: straight lines between these points, level beyond them.

    Examples
    --------
    >>> import numpy as np
    >>> rising = ProbabilityMap("isotonic", knots=np.array([0.0, 1.0]), values=np.array([0.1, 0.9]))
    >>> rising(np.array([-5.0, 0.5, 5.0])).tolist()
    [0.1, 0.5, 0.9]
    """

    method: str
    slope: float = 0.0
    intercept: float = 0.0
    knots: np.ndarray = field(default_factory=lambda: NO_KNOTS)
    values: np.ndarray = field(default_factory=lambda: NO_KNOTS)

    def __call__(self, scores: Any) -> np.ndarray:
        scores = np.asarray(scores, dtype=np.float64)
        if self.method == "sigmoid":
            return expit(self.slope * scores + self.intercept)
        return np.interp(scores, self.knots, self.values)

    @classmethod
    def learn(cls, stairs: Staircase, method: str = "auto") -> ProbabilityMap:
        """Learn the map from held-out scores.

        ``"auto"`` takes the isotonic map from 100 rows of the rarer class on, the sigmoid below.
        """
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
        if method == "auto":
            rarer = min(stairs.effective_positives, stairs.effective_negatives)
            method = "isotonic" if rarer >= ENOUGH_FOR_ISOTONIC else "sigmoid"
        return _isotonic(stairs) if method == "isotonic" else _sigmoid(stairs)


METHODS = ("auto", "isotonic", "sigmoid")


def _isotonic(stairs: Staircase) -> ProbabilityMap:
    """Isotonic regression with half a row of doubt at each end.

    Isotonic regression gives probability 1 to whatever run of positives heads the list, and 0 to the
    negatives that end it. Half a negative added at the very top and half a positive at the very bottom turn
    a run of k into k / (k + 1/2). (The predictors of Vovk and Petej 2014, Venn-Abers predictors, UAI, add a
    whole row; at the top that is as far below the truth as no row is above it.)
    """
    positives, negatives = stairs.step_counts()
    weight = positives + negatives
    scores = (stairs.tops + stairs.bottoms) / 2
    doubt = 0.5 * stairs.flagged_squares[-1] / stairs.total  # half of one row
    scores = np.concatenate([scores, [stairs.tops[0], stairs.bottoms[-1]]])
    share = np.concatenate([positives / weight, [0.0, 1.0]])
    weight = np.concatenate([weight, [doubt, doubt]])
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(scores, share, sample_weight=weight)
    return ProbabilityMap(
        "isotonic",
        knots=np.asarray(model.X_thresholds_, dtype=np.float64),
        values=np.asarray(model.y_thresholds_, dtype=np.float64),
    )


def _sigmoid(stairs: Staircase) -> ProbabilityMap:
    """A logistic curve through smoothed labels (Platt 1999), never falling.

    With P positives and N negatives the targets are (P + 1) / (P + 2) and 1 / (N + 2). Newton's method
    with halved steps on the convex loss in two parameters.
    """
    positives, negatives = stairs.step_counts()
    scores = (stairs.tops + stairs.bottoms) / 2
    n_positives, n_negatives = stairs.effective_positives, stairs.effective_negatives
    high, low = (n_positives + 1) / (n_positives + 2), 1 / (n_negatives + 2)
    weight = positives + negatives
    target = (positives * high + negatives * low) / weight
    weight = weight / weight.sum()
    centre = float(weight @ scores)
    spread = float(np.sqrt(weight @ (scores - centre) ** 2))
    base = float(weight @ target)
    flat = ProbabilityMap("sigmoid", slope=0.0, intercept=float(np.log(base) - np.log1p(-base)))
    if not spread > 0:
        return flat
    design = np.column_stack([(scores - centre) / spread, np.ones(len(scores))])
    slope, intercept = _newton(design, target, weight, np.array([0.0, flat.intercept]))
    if not slope > 0:
        return flat
    return ProbabilityMap(
        "sigmoid", slope=float(slope / spread), intercept=float(intercept - slope * centre / spread)
    )


def _newton(design: Any, target: Any, weight: Any, start: np.ndarray) -> np.ndarray:
    """Minimise the weighted logistic loss."""

    def loss(parameters: np.ndarray) -> float:
        margins = design @ parameters
        return float(weight @ (np.logaddexp(0.0, margins) - target * margins))

    parameters, current = start, loss(start)
    for _ in range(100):
        probability = expit(design @ parameters)
        gradient = design.T @ (weight * (probability - target))
        hessian = design.T @ (design * (weight * probability * (1 - probability))[:, None])
        step = np.linalg.solve(hessian + 1e-12 * np.eye(2), gradient)
        size = 1.0
        while size > 1e-10 and not loss(parameters - size * step) <= current:
            size /= 2
        if size <= 1e-10:
            break
        parameters = parameters - size * step
        current = loss(parameters)
        if np.abs(gradient).max() < 1e-12:
            break
    return parameters


def probability_bounds(
    stairs: Staircase, scores: Any, confidence: float = 0.95
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds for the probability of a positive at given scores, if only it rises with the score.

    The rows just below a score have at most its probability, so a lower bound for the mean of any window of
    them is one for it; the rows just above give an upper bound. Windows of 4, 8, 16, ... rows share the
    allowed error, and the best bound is taken. Exact for each score, without a model of the curve. (The
    same device, for all scores at once: Dimitriadis, Duembgen, Henzi, Puke and Ziegel 2023, Biometrika
    110.)
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = stairs.n_steps
    rows = stairs.above("flagged")
    sums = (rows, stairs.above("positives"), stairs.above("flagged_squares"))
    typical = stairs.flagged_squares[-1] / stairs.total
    n_windows = max(1, int(np.ceil(np.log2(max(rows[-1] / typical / SMALLEST_WINDOW, 1.0)))) + 1)
    error = (1.0 - confidence) / (2 * n_windows)
    below = np.searchsorted(-stairs.tops, -scores, side="left")  # first step wholly at or below
    above = np.searchsorted(-stairs.bottoms, -scores, side="right")  # steps wholly at or above
    first, low_at = np.unique(below, return_inverse=True)
    last, high_at = np.unique(above, return_inverse=True)
    low, high = np.zeros(len(first)), np.ones(len(last))
    for k in range(n_windows):
        size = SMALLEST_WINDOW * 2.0**k * typical * (1 - 1e-12)
        down = np.minimum(np.searchsorted(rows, rows[first] + size), n)
        up = np.maximum(np.searchsorted(rows, rows[last] - size, side="right") - 1, 0)
        low = np.maximum(low, lower_share(*_window(sums, first, down), error))
        high = np.minimum(high, upper_share(*_window(sums, up, last), error))
    return low[low_at], high[high_at]


def _window(sums: Any, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Effective hits and rows of the steps from `start` to before `end`."""
    weight, positives, squares = (values[end] - values[start] for values in sums)
    rows = effective_rows(weight, squares)
    share = np.divide(positives, weight, out=np.zeros_like(weight), where=weight > 0)
    return rows * np.clip(share, 0.0, 1.0), rows


def top_calibration(
    y_true: Any,
    probability: Any,
    k: Any = (50, 100, 200),
    *,
    scores: Any = None,
    confidence: float = 0.95,
    pos_label: Any = None,
) -> pd.DataFrame:
    """Compare the predicted with the observed rate of positives in the top of the list.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
    probability : array of shape (n_rows,)
    k : int or sequence of int, default=(50, 100, 200)
        Lengths of the list; those longer than the data are left out.
    scores : array of shape (n_rows,), optional
        What the list is ranked by; by default the probabilities themselves.
    confidence : float, default=0.95
    pos_label : label, optional

    Returns
    -------
    table : DataFrame
        One line for each length: `k`, `predicted` (mean probability), `observed` (share of positives)
        with `observed_low` and `observed_high`, and `agrees`, whether the prediction lies in between.

    Examples
    --------
    >>> from toprank.shortlisting import top_calibration
    >>> top_calibration([1, 1, 0, 0], [0.9, 0.8, 0.2, 0.1], k=2)[["predicted", "observed"]]
       predicted  observed
    0       0.85       1.0
    """
    rows = binary_rows(y_true, probability, None, pos_label)
    if rows.scores.min() < 0 or rows.scores.max() > 1:
        raise ValueError("probability must lie between 0 and 1")
    order = descending_order(rows.scores if scores is None else check_scores(scores))
    hits = np.cumsum(rows.positive[order])
    predicted = np.cumsum(rows.scores[order], dtype=np.float64)
    found = []
    for length in np.atleast_1d(k).tolist():
        if not 1 <= length <= len(order):
            continue
        low, high = share_interval(float(hits[length - 1]), length, confidence)
        mean = predicted[length - 1] / length
        found.append((int(length), mean, hits[length - 1] / length, low, high, low <= mean <= high))
    names = ["k", "predicted", "observed", "observed_low", "observed_high", "agrees"]
    return pd.DataFrame(found, columns=names)
