"""Compiled loops of the exponential objectives: class sums of exponentials, and what follows."""

from __future__ import annotations

import math

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def class_sums(scores, multipliers, weight, classes, queries, n_queries):
    """Sums of weight·exp(multiplier·score) over each class of each query.

    Returns `terms` = exp(multiplier·score - highest) by row, and by query and class the `highest`
    exponent, the sum of weighted terms and the sum of weights. Empty `weight` stands for ones,
    empty `queries` for one query.
    """
    n = len(scores)
    highest = np.full((n_queries, 2), -math.inf)
    sums, weights = np.zeros((n_queries, 2)), np.zeros((n_queries, 2))
    for i in range(n):
        q, c = queries[i] if len(queries) else 0, classes[i]
        highest[q, c] = max(highest[q, c], multipliers[c] * scores[i])
    terms = np.empty(n)
    for i in range(n):
        q, c = queries[i] if len(queries) else 0, classes[i]
        w = weight[i] if len(weight) else 1.0
        below = multipliers[c] * scores[i] - highest[q, c]
        # Further down there are only subnormal numbers, slow to reckon with and worth nothing.
        terms[i] = math.exp(below) if below > -700.0 else 0.0
        sums[q, c] += w * terms[i]
        weights[q, c] += w
    return terms, highest, sums, weights


@njit(cache=True, nogil=True)
def gradient_hessian(terms, weight, classes, queries, slope, offset, curvature, saturation):
    """Gradient w·(slope·term + offset) and Hessian w·curvature·term·(1 - saturation·term).

    The four factors are by query and class.
    """
    n = len(terms)
    gradient, hessian = np.empty(n), np.empty(n)
    for i in range(n):
        q, c = queries[i] if len(queries) else 0, classes[i]
        w = weight[i] if len(weight) else 1.0
        term = terms[i]
        gradient[i] = w * (slope[q, c] * term + offset[q, c])
        hessian[i] = w * curvature[q, c] * term * max(1.0 - saturation[q, c] * term, 0.0)
    return gradient, hessian
