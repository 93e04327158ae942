"""Gradients of every objective written out pair by pair, straight from the definitions of their losses.

For one list of labels 0 and 1 without ties. Nothing here comes from the library: matrices with a row for each
positive and a column for each row of the list, and for the lambda objectives the metric itself before and
after every swap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def sigmoid(t: np.ndarray) -> np.ndarray:
    return np.where(t >= 0, 1.0, np.exp(-np.abs(t))) / (1.0 + np.exp(-np.abs(t)))


def logistic(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return sigmoid(f) - y


def ap_exp(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    q = np.exp(f - f.max()) / np.exp(f - f.max()).sum()
    loss = q[y == 0].sum()
    return np.where(y == 1, -q * loss, q * (1 - loss))


def ap_softmax(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    return np.exp(f - f.max()) / np.exp(f - f.max()).sum() - y / y.sum()


def exponential_pairs(y: np.ndarray, f: np.ndarray, p: float) -> np.ndarray:
    """The log of the sum over negatives k of (sum over positives i of exp(f_k - f_i)) to the power p."""
    positive, negative = y == 1, y == 0
    pairs = np.exp(f[None, negative] - f[positive, None])
    # what pair (i, k) adds to the derivatives, over p
    pushed = pairs.sum(axis=0) ** (p - 1) * pairs
    gradient = np.empty(len(f))
    gradient[negative] = pushed.sum(axis=0)
    gradient[positive] = -pushed.sum(axis=1)
    return p * gradient / np.sum(pairs.sum(axis=0) ** p)


def of_smooth_sums(
    y: np.ndarray, f: np.ndarray, derivative: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """The chain rule over S_ij = sig(f_j - f_i), i positive, j any other row.

    `derivative` takes S, with 1 at j = i, and returns dL/dS_ij.
    """
    positive = np.flatnonzero(y == 1)
    s = sigmoid(f[None, :] - f[positive, None])
    s[np.arange(len(positive)), positive] = 1.0
    forces = derivative(s) * s * (1.0 - s)  # none at j = i
    gradient = forces.sum(axis=0)
    gradient[positive] -= forces.sum(axis=1)
    return gradient


def ap_sigmoid(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    def derivative(s: np.ndarray) -> np.ndarray:
        a, b = s[:, y == 1].sum(axis=1)[:, None], s.sum(axis=1)[:, None]
        return -((y[None, :] == 1) * b - a) / b**2 / y.sum()

    return of_smooth_sums(y, f, derivative)


def ndcg_sigmoid(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    ideal = np.sum(1.0 / np.log2(1.0 + np.arange(1, y.sum() + 1)))

    def derivative(s: np.ndarray) -> np.ndarray:
        after = 1.0 + s.sum(axis=1)[:, None]  # 1 + rank
        return np.log(2.0) / (after * np.log(after) ** 2) / ideal * np.ones_like(s)

    return of_smooth_sums(y, f, derivative)


def of_pairs(y: np.ndarray, f: np.ndarray, weights: np.ndarray, slope: Callable) -> np.ndarray:
    """Sum over positives i and negatives j of weights_ij · phi(f_j - f_i), phi' being `slope`."""
    forces = weights * slope(f[None, y == 0] - f[y == 1, None])
    gradient = np.empty(len(f))
    gradient[y == 0] = forces.sum(axis=0)
    gradient[y == 1] = -forces.sum(axis=1)
    return gradient


def pairwise_logistic(y: np.ndarray, f: np.ndarray) -> np.ndarray:
    n_positives, n_negatives = np.count_nonzero(y == 1), np.count_nonzero(y == 0)
    weights = np.full((n_positives, n_negatives), 1.0 / (n_positives * n_negatives))
    return of_pairs(y, f, weights, sigmoid)


def pauc(y: np.ndarray, f: np.ndarray, b: float = 0.1) -> np.ndarray:
    negative = f[y == 0]
    n_positives, end = np.count_nonzero(y == 1), b * len(negative)
    above = (negative[None, :] > negative[:, None]).sum(axis=1)
    inside = np.clip(end - above, 0.0, 1.0)  # the part of each negative that the range covers
    weights = np.tile(inside / (n_positives * end), (n_positives, 1))
    return of_pairs(y, f, weights, lambda t: (1.0 + t > 0) * 1.0)


METRICS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    # of the ascending ranks of the positives, one list in each row, among n rows
    "lambda_auc": lambda ranks, n: (
        1.0 - (ranks - _places(ranks)).mean(axis=1) / (n - ranks.shape[1])
    ),
    "lambda_map": lambda ranks, n: (_places(ranks) / ranks).mean(axis=1),
    "lambda_ndcg": lambda ranks, n: (
        (1.0 / np.log2(1.0 + ranks)).sum(axis=1) / (1.0 / np.log2(1.0 + _places(ranks))).sum()
    ),
    "lambda_mrr": lambda ranks, n: 1.0 / ranks[:, 0],
    "lambda_precision": lambda ranks, n: (ranks <= ranks.shape[1]).mean(axis=1),
}
METRICS["lambda_mauc"] = METRICS["lambda_auc"]  # the same with two levels


def _places(ranks: np.ndarray) -> np.ndarray:
    return np.arange(1, ranks.shape[1] + 1)


def lambda_gradients(y: np.ndarray, f: np.ndarray) -> dict[str, np.ndarray]:
    """sum over pairs of |metric after the swap - metric| · log(1 + exp(f_j - f_i)), the change held fixed."""
    ranks = np.empty(len(f))
    ranks[np.argsort(-f)] = np.arange(1, len(f) + 1)
    own, others = ranks[y == 1], ranks[y == 0]
    sorted_ranks = np.sort(own)[None, :]
    changes = {name: np.empty((len(own), len(others))) for name in METRICS}
    for i, rank in enumerate(own):
        swapped = np.repeat(sorted_ranks, len(others), axis=0)
        swapped[:, np.flatnonzero(sorted_ranks[0] == rank)[0]] = others
        swapped.sort(axis=1)
        for name, metric in METRICS.items():
            changes[name][i] = np.abs(metric(swapped, len(f)) - metric(sorted_ranks, len(f)))
    return {name: of_pairs(y, f, change, sigmoid) for name, change in changes.items()}


def gradients(y: np.ndarray, f: np.ndarray) -> dict[str, np.ndarray]:
    """The gradient of every objective at its default parameters."""
    return {
        "logistic": logistic(y, f),
        "ap_exp": ap_exp(y, f),
        "ap_sigmoid": ap_sigmoid(y, f),
        "ap_softmax": ap_softmax(y, f),
        "ndcg_sigmoid": ndcg_sigmoid(y, f),
        "pairwise_logistic": pairwise_logistic(y, f),
        "pairwise_exp": exponential_pairs(y, f, p=1.0),
        "pnorm_push": exponential_pairs(y, f, p=4.0),
        "pauc": pauc(y, f),
        **lambda_gradients(y, f),
    }
