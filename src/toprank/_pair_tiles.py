"""Short straight loops over tiles of an array, written so that they compile to vector code."""

from __future__ import annotations

import math

from numba import njit

POWERS = 12
"""How many powers of u are kept: degree 11 fits sig to 3e-9 and sig' to 4e-8, relative."""

NEAR = 40.0
"""Only the first power of u counts beyond this distance: the second is less by exp(-40)."""

REACH = 650.0
"""Beyond this distance rows do not feel each other at all: exp(-650) is next to nothing."""

LANES = {"reassoc", "contract", "nsz", "nnan"}
"""For loops over finite numbers whose sums may be taken in any order: several rows at once."""

_LOG2_E = 1.0 / math.log(2.0)
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number in the low bits


@njit(cache=True, nogil=True, fastmath={"contract"})
def tile_exp(x, sign, reference, u, bits, scale):
    """Write `u = exp(sign * (x - reference))`, 0 out of reach; plain loops that vectorise.

    `scale` is the float view of `bits`; the power of two is built in the exponent bits.
    """
    n = len(x)
    for a in range(n):
        z = max(sign * (x[a] - reference), -700.0)
        shifted = z * _LOG2_E + _ROUND
        scale[a] = shifted
        k = shifted - _ROUND
        r = (z - k * _LN2_HIGH) - k * _LN2_LOW
        p = 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        p = p * r + 1.0
        u[a] = p if z > -REACH else 0.0
    for a in range(n):
        bits[a] = (bits[a] + 1023) << 52
    for a in range(n):
        u[a] = u[a] * scale[a]


@njit(cache=True, nogil=True, fastmath={"contract"})
def tile_polynomial(c, base, u, factor, out):
    """Add `factor * (base + u * (c[0] + c[1] u + ...))` to `out`; written out to vectorise."""
    c0, c1, c2, c3, c4, c5 = c[0], c[1], c[2], c[3], c[4], c[5]
    c6, c7, c8, c9, c10, c11 = c[6], c[7], c[8], c[9], c[10], c[11]
    for a in range(len(factor)):
        x = u[a]
        p = c11
        p = p * x + c10
        p = p * x + c9
        p = p * x + c8
        p = p * x + c7
        p = p * x + c6
        p = p * x + c5
        p = p * x + c4
        p = p * x + c3
        p = p * x + c2
        p = p * x + c1
        p = p * x + c0
        out[a] += factor[a] * (p * x + base)


@njit(cache=True, nogil=True)
def keep_near(u, near, n):
    """Copy `u`, with 0 for what is too small for its square to count."""
    least = math.exp(-NEAR)
    for a in range(n):
        near[a] = u[a] if u[a] > least else 0.0


@njit(cache=True, nogil=True)
def fill(array, value, n):
    """Set the first `n` numbers (slice assignment takes seconds to compile, this nothing)."""
    for a in range(n):
        array[a] = value


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def multiply_and_sum(term, u):
    """Multiply `term` by `u` in place and return its sum (finite numbers only)."""
    total = 0.0
    for a in range(len(term)):
        x = term[a] * u[a]
        term[a] = x
        total += x
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def plain_sum(term):
    total = 0.0
    for a in range(len(term)):
        total += term[a]
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def sum_away(term, scores, reference):
    total = 0.0
    for a in range(len(term)):
        total += term[a] * (scores[a] - reference)
    return total
