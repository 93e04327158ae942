"""Variance of the area under the ROC curve and of the difference of two, without resampling.

DeLong, DeLong and Clarke-Pearson (1988). The structural components are read off one ranked list in
the time of a sort, as in Sun and Xu (2014).
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from toprank.ranking import RankedList

__all__ = ["auc_covariance", "normal_interval", "structural_components"]


def structural_components(
    ranked: RankedList, positive: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Share of the other class that each row is on the right side of; ties count half.

    Returns one value per positive row (negatives below it) and one per negative row (positives
    above it), both in the order in which the rows were given.
    """
    sizes = np.diff(ranked.ends, prepend=0)
    group = np.empty(ranked.n_rows, dtype=np.int64)
    group[ranked.order] = np.repeat(np.arange(ranked.n_groups), sizes)
    negatives_above = (ranked.negatives + _before(ranked.negatives)) / 2
    positives_above = (ranked.positives + _before(ranked.positives)) / 2
    of_positives = 1 - (negatives_above / ranked.total_negatives)[group[positive]]
    of_negatives = (positives_above / ranked.total_positives)[group[~positive]]
    return of_positives, of_negatives


def auc_covariance(
    components: list[tuple[np.ndarray, np.ndarray]],
    positive_weight: np.ndarray | None,
    negative_weight: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """AUC of each list of scores, and the covariance matrix of these AUCs.

    A row of weight w is one observation that counts w times in the mean: with
    ``v = w / sum(w)``, each class adds ``n/(n-1) * sum of (v * (V - AUC))**2``, which is DeLong's
    variance when all weights are equal.
    """
    areas, covariance = np.zeros(len(components)), np.zeros((len(components),) * 2)
    for side, weight in ((0, positive_weight), (1, negative_weight)):
        values = np.stack([component[side] for component in components])
        n_rows = values.shape[1]
        share = np.full(n_rows, 1 / n_rows) if weight is None else weight / weight.sum()
        areas = values @ share
        if n_rows < 2:
            raise ValueError(
                "DeLong's variance needs at least two rows of each class: "
                "use method='bootstrap', or more data."
            )
        centred = (values - areas[:, None]) * share
        covariance += n_rows / (n_rows - 1) * (centred @ centred.T)
    return areas, covariance


def normal_interval(
    value: float, variance: float, level: float, low: float, high: float
) -> tuple[float, float]:
    """Normal interval around a value, cut at the ends of its range."""
    reach = NormalDist().inv_cdf((1 + level) / 2) * float(np.sqrt(max(variance, 0.0)))
    return max(value - reach, low), min(value + reach, high)


def _before(cumulative: np.ndarray) -> np.ndarray:
    """Cumulative weight strictly above each group."""
    return np.concatenate(([0.0], cumulative[:-1]))
