"""Compiled loops over sets of heads kept as bits."""

from __future__ import annotations

import numpy as np
from numba import njit

# a de Bruijn sequence: its multiples by powers of two differ in their first six bits, which so number
# the powers (Leiserson, Prokop & Randall 1998)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
POSITIONS = np.empty(64, dtype=np.int64)
for _power in range(64):
    POSITIONS[((int(DE_BRUIJN) << _power) & (2**64 - 1)) >> 58] = _power


@njit(cache=True, nogil=True)
def set_bits(bits, rows, places, lookup):
    """Set bit `lookup[places[i]]` of row `rows[i]`; places outside the lookup or at -1 have none.

    Setting a bit twice changes nothing, so rows need not be distinct and their order has no effect.
    """
    for i in range(len(rows)):
        if places[i] < len(lookup):
            place = lookup[places[i]]
            if place >= 0:
                bits[rows[i], place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@njit(cache=True, nogil=True)
def test_bits(bits, places, mask):
    """`mask &= bit of each place`; a place of -1 has no bit."""
    for i in range(len(places)):
        place = places[i]
        if mask[i]:
            mask[i] = place >= 0 and (bits[place >> 6] >> np.uint64(place & 63)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def group_weights(places, covered, positive, weights, n_places):
    """Total weight of the covered negatives and positives at each place, and the places of any, as bits."""
    sums = np.zeros((n_places, 2))
    present = np.zeros((n_places + 63) // 64, dtype=np.uint64)
    for i in range(len(places)):
        place = places[i]
        if covered[i] and place >= 0:
            sums[place, np.int64(positive[i])] += weights[i]
            present[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    return sums, present


@njit(cache=True, nogil=True)
def sum_bits(bits, present, sums):
    """Sums of the two columns over the places whose bit is set in both sets."""
    positive_sum, negative_sum = 0.0, 0.0
    for word in range(len(bits)):
        rest = bits[word] & present[word]
        while rest != 0:
            lowest = rest & (~rest + np.uint64(1))
            place = (word << 6) + POSITIONS[(lowest * DE_BRUIJN) >> np.uint64(58)]
            negative_sum += sums[place, 0]
            positive_sum += sums[place, 1]
            rest ^= lowest
    return positive_sum, negative_sum
