"""Compiled loops of the exponential objectives: class sums of exponentials, and what follows.

On one list the loops compile to vector code, and what they cost is reading and writing memory: few passes,
and arrays that come from NumPy (memory that compiled code asks for is given back at once, and fetching it
anew costs more than filling it). `queries` is None for one list and `weight` for ones; what belongs to the
other case is left out when a loop is compiled.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from toprank._pair_tiles import LANES, tile_exp

_LOWEST = -1.7e308
_TILE = 512


@njit(cache=True, nogil=True, fastmath=LANES)
def highest_exponents(scores, classes, queries, negative, positive, highest):
    """Fill in the highest multiplier·score by query and class (0 negatives, 1 positives)."""
    if queries is None:
        of_negatives = of_positives = _LOWEST
        for i in range(len(scores)):
            exponent = (positive if classes[i] else negative) * scores[i]
            of_negatives = max(of_negatives, _LOWEST if classes[i] else exponent)
            of_positives = max(of_positives, exponent if classes[i] else _LOWEST)
        highest[0, 0], highest[0, 1] = of_negatives, of_positives
    else:
        for q in range(len(highest)):
            highest[q, 0] = highest[q, 1] = _LOWEST
        for i in range(len(scores)):
            q, c = queries[i], classes[i]
            exponent = (positive if c else negative) * scores[i]
            highest[q, c] = max(highest[q, c], exponent)


@njit(cache=True, nogil=True, fastmath=LANES)
def class_sums(scores, classes, queries, weight, negative, positive, highest, terms, sums, weights):
    """Fill in terms = exp(multiplier·score - highest); add up weighted terms, and weights.

    `highest`, `sums` and `weights` are by query and class.
    """
    below, bits = np.empty(_TILE), np.empty(_TILE, np.int64)
    scale = bits.view(np.float64)
    for first in range(0, len(scores), _TILE):
        n = min(_TILE, len(scores) - first)
        some, own = scores[first : first + n], classes[first : first + n]
        values = terms[first : first + n]
        if queries is None:
            top, top_positive = highest[0, 0], highest[0, 1]
            for a in range(n):
                below[a] = (positive if own[a] else negative) * some[a] - (
                    top_positive if own[a] else top
                )
        else:
            for a in range(n):
                below[a] = (positive if own[a] else negative) * some[a] - highest[
                    queries[first + a], own[a]
                ]
        tile_exp(below[:n], 1.0, 0.0, values, bits, scale)
        if queries is None:
            held_negative = held_positive = count_negative = count_positive = 0.0
            for a in range(n):
                w = 1.0
                if weight is not None:
                    w = weight[first + a]
                held_negative += 0.0 if own[a] else w * values[a]
                held_positive += w * values[a] if own[a] else 0.0
                count_negative += 0.0 if own[a] else w
                count_positive += w if own[a] else 0.0
            sums[0, 0] += held_negative
            sums[0, 1] += held_positive
            weights[0, 0] += count_negative
            weights[0, 1] += count_positive
        else:
            for a in range(n):
                w = 1.0
                if weight is not None:
                    w = weight[first + a]
                sums[queries[first + a], own[a]] += w * values[a]
                weights[queries[first + a], own[a]] += w


@njit(cache=True, nogil=True, fastmath=LANES)
def slopes(terms, classes, queries, weight, slope, offset, curvature, saturation, hessian):
    """Turn each term, in its place, into the gradient w·(slope·term + offset).

    Also fill in the Hessian w·curvature·term·(1 - saturation·term). The four factors are by query and
    class.
    """
    if queries is None:
        slope_0, slope_1 = slope[0, 0], slope[0, 1]
        offset_0, offset_1 = offset[0, 0], offset[0, 1]
        curvature_0, curvature_1 = curvature[0, 0], curvature[0, 1]
        saturation_0, saturation_1 = saturation[0, 0], saturation[0, 1]
        for i in range(len(terms)):
            w = 1.0
            if weight is not None:
                w = weight[i]
            term = terms[i]
            rest = max(1.0 - (saturation_1 if classes[i] else saturation_0) * term, 0.0)
            terms[i] = w * (
                (slope_1 if classes[i] else slope_0) * term + (offset_1 if classes[i] else offset_0)
            )
            hessian[i] = w * (curvature_1 if classes[i] else curvature_0) * term * rest
    else:
        for i in range(len(terms)):
            w, q, c, term = 1.0, queries[i], classes[i], terms[i]
            if weight is not None:
                w = weight[i]
            terms[i] = w * (slope[q, c] * term + offset[q, c])
            hessian[i] = w * curvature[q, c] * term * max(1.0 - saturation[q, c] * term, 0.0)
