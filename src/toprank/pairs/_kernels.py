"""Compiled loops of `toprank.pairs`: sums over pairs along a ranked list.

Everything is laid out by place in the ranked list: query after query, descending scores inside each. Each
place has a code; sums run over the sources (places with one code) and are read at the targets (places
with another code, or the same).

A pair counts the weight of its source or, by rank value, that times v_higher - v_lower, v being the values
of the two places; the latter runs on two internal vectors, `weights * v` and `weights`.

`state[v]` holds running sums over the sources absorbed so far, seen from a reference score: with
`u = exp(-|f_source - reference|)`, the first `POWERS` are the sums of `w * u**(k + 1)`, the next is that of
`w`, and the last that of `w * |f_source - reference|`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

SIGMOID, SOFTPLUS = 0, 1
"""Kernel families: (sig, sig') of a difference of scores, or log(1 + exp) of it."""

DECAY, COMPLEMENT, LINEAR = 0, 1, 2
"""First kernel on one side: falls to 0, rises to 1 (sig) or grows like the distance (softplus)."""

POWERS = 12
"""How many powers of u are kept: degree 11 fits sig to 3e-9 and sig' to 4e-8, relative."""

NEAR = 40.0
"""Only the first power of u counts beyond this distance: the second is less by exp(-40)."""

REACH = 650.0
"""Beyond this distance rows do not feel each other at all: exp(-650) is next to nothing."""

LANES = {"reassoc", "contract", "nsz", "nnan"}
"""For loops over finite numbers whose sums may be taken in any order: several rows at once."""

TILE = 512

_SHORT = 8
_LEAST_NEAR = math.exp(-NEAR)
_FLUSH = 1e-290
_LOG2_E = 1.0 / math.log(2.0)
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_INVERSE_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(11, -1, -1))
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to a whole number in the low bits


class PairPass(NamedTuple):
    """What is summed, and where the results go; arrays by place of the ranked list.

    `target` and `source` are the codes of the rows that get sums and of the rows that are summed over. The
    rank values (empty if not `by_value`) and `modes`, the behaviour of the first kernel, are for sources above
    the target and for those below it. `coefficients` and `factors` have a row for each kernel, and `out`
    gets its sums added.
    """

    scores: np.ndarray
    codes: np.ndarray
    target: int
    source: int
    weights: np.ndarray
    by_value: bool
    values_above: np.ndarray
    values_below: np.ndarray
    family: int
    modes: np.ndarray
    coefficients: np.ndarray
    factors: np.ndarray
    out: np.ndarray


class Scan(NamedTuple):
    """One walk along one query: `sign` 1 from its top, for sources above; -1 from its bottom."""

    lo: int
    hi: int
    sign: float
    mode: int
    values: np.ndarray


class Scratch(NamedTuple):
    """The running sums, and room for tiles of the list; `scale` is the float view of `bits`."""

    state: np.ndarray
    u: np.ndarray
    near: np.ndarray
    term: np.ndarray
    bits: np.ndarray
    scale: np.ndarray


@njit(cache=True, nogil=True)
def pair_pass(p, starts, pairs_per_row):
    """Add to `p.out[r]` the pair sums times `p.factors[r]` at every target, query by query.

    Tied pairs do not count by rank value. A query is done pair by pair when it has at most
    `pairs_per_row` pairs for each of its rows.
    """
    bits = np.empty(TILE, np.int64)
    scratch = Scratch(
        np.empty((2 if p.by_value else 1, POWERS + 2)),
        np.zeros(TILE), np.zeros(TILE), np.zeros(TILE), bits, bits.view(np.float64),
    )  # fmt: skip
    for q in range(len(starts) - 1):
        lo, hi = starts[q], starts[q + 1]
        n_targets, n_sources = _count(p.codes[lo:hi], p.target), _count(p.codes[lo:hi], p.source)
        if n_targets == 0 or n_sources == 0:
            continue
        if not p.by_value:
            _add_ties(p, lo, hi)
        if n_targets * n_sources <= pairs_per_row * (n_targets + n_sources):
            _double_loop(p, lo, hi, n_sources)
        else:
            _scan(p, Scan(lo, hi, 1.0, p.modes[0], p.values_above), scratch)
            _scan(p, Scan(lo, hi, -1.0, p.modes[1], p.values_below), scratch)


@njit(cache=True, nogil=True)
def _scan(p, scan, scratch):
    """Add the sums over the sources that the walk meets strictly before each target.

    `i` is the next row to look at, `j` the next to absorb and `group` the row where the tie group of `i`
    begins, all counted from the end where the walk starts.
    """
    n, sign = scan.hi - scan.lo, scan.sign
    first, step = (scan.lo, 1) if sign > 0 else (scan.hi - 1, -1)
    for v in range(len(scratch.state)):
        fill(scratch.state[v], 0.0, POWERS + 2)
    reference = math.nan  # of the running sums; none before the first source
    i = j = group = 0
    last_source = -1
    while i < n:
        code = p.codes[first + step * i]
        if code == p.source:
            last_source = i
        if code != p.target:
            i += 1
            continue
        here = p.scores[first + step * i]
        if p.scores[first + step * group] != here:
            group = i
            while group > 0 and p.scores[first + step * (group - 1)] == here:
                group -= 1
        reference = _absorb_runs(p, scan, scratch, j, group, reference)
        j = max(j, group)
        # Targets in a row are read together, but no further than a tie group with sources of its own.
        k, tied_only = i + 1, last_source >= group
        while k < n and p.codes[first + step * k] == p.target:
            if tied_only and p.scores[first + step * k] != here:
                break
            k += 1
        if not math.isnan(reference):
            a, b = (scan.lo + i, scan.lo + k) if sign > 0 else (scan.hi - k, scan.hi - i)
            if k - i < _SHORT:
                _read_few(p, scan, scratch.state, a, b, reference)
            else:
                _read_tiles(p, scan, scratch, a, b, reference)
        i = k


@njit(cache=True, nogil=True, forceinline=True)
def _absorb_runs(p, scan, scratch, j, end, reference):
    """Absorb the sources from row `j` up to row `end` of the walk, run by run.

    Returns the new reference: the score of the last source.
    """
    first, step = (scan.lo, 1) if scan.sign > 0 else (scan.hi - 1, -1)
    while j < end:
        k = j + 1
        if p.codes[first + step * j] == p.source:
            while k < end and p.codes[first + step * k] == p.source:
                k += 1
            nearest = p.scores[first + step * (k - 1)]
            if not math.isnan(reference):
                _move_reference(scan.sign * (reference - nearest), scratch.state)
            reference = nearest
            a, b = (scan.lo + j, scan.lo + k) if scan.sign > 0 else (scan.hi - k, scan.hi - j)
            if k - j < _SHORT:
                _absorb_few(p, scan, scratch.state, a, b, reference)
            else:
                _absorb_tiles(p, scan, scratch, a, b, reference)
        j = k
    return reference


@njit(cache=True, nogil=True)
def _move_reference(distance, state):
    """Let every absorbed source recede by `distance`."""
    e = math.exp(-distance) if distance < REACH else 0.0
    for v in range(len(state)):
        state[v, POWERS + 1] += distance * state[v, POWERS]
        p = e
        for k in range(POWERS):
            x = state[v, k] * p
            p = p * e if distance < NEAR else 0.0
            # Subnormal numbers would make every later product many times slower.
            state[v, k] = x if abs(x) > _FLUSH else 0.0


@njit(cache=True, nogil=True)
def _absorb_tiles(p, scan, scratch, lo, hi, reference):
    """Add the sources at places `lo:hi` to the running sums, seen from `reference`, tile by tile."""
    state, u, near, term = scratch.state, scratch.u, scratch.near, scratch.term
    for first in range(lo, hi, TILE):
        last = min(first + TILE, hi)
        n = last - first
        tile = p.scores[first:last]
        tile_exp(tile, -scan.sign, reference, u, scratch.bits, scratch.scale)
        for a in range(n):
            near[a] = u[a] if u[a] > _LEAST_NEAR else 0.0
        for v in range(len(state)):
            weights = p.weights[first:last]
            for a in range(n):
                term[a] = weights[a]
            if p.by_value and v == 0:
                values = scan.values[first:last]
                for a in range(n):
                    term[a] *= values[a]
            if scan.mode != DECAY:
                state[v, POWERS] += plain_sum(term[:n])
            if scan.mode == LINEAR:
                state[v, POWERS + 1] += scan.sign * sum_away(term[:n], tile, reference)
            state[v, 0] += multiply_and_sum(term[:n], u)
            for k in range(1, POWERS):
                state[v, k] += multiply_and_sum(term[:n], near)


@njit(cache=True, nogil=True, forceinline=True)
def _absorb_few(p, scan, state, lo, hi, reference):
    """Do the same for a few places, one by one."""
    for place in range(lo, hi):
        away = scan.sign * (p.scores[place] - reference)
        x = math.exp(-away) if away < REACH else 0.0
        for v in range(len(state)):
            power = p.weights[place]
            if p.by_value and v == 0:
                power *= scan.values[place]
            state[v, POWERS] += power
            state[v, POWERS + 1] += power * away
            for k in range(POWERS if away < NEAR else 1):
                power *= x
                state[v, k] += power


@njit(cache=True, nogil=True)
def _read_tiles(p, scan, scratch, lo, hi, reference):
    """Add the running sums to the results at places `lo:hi`, tile by tile.

    By rank value, a pair counts the value of its higher place minus that of its lower: the source is
    the higher one when `sign` is 1, and the second internal vector brings in the target's own value.
    """
    state, u, c, own = scratch.state, scratch.u, scratch.near, scratch.term
    for first in range(lo, hi, TILE):
        last = min(first + TILE, hi)
        n = last - first
        tile = p.scores[first:last]
        tile_exp(tile, scan.sign, reference, u, scratch.bits, scratch.scale)
        for v in range(len(state)):
            side = scan.sign if p.by_value else 1.0
            if p.by_value and v == 1:
                values = scan.values[first:last]
                for a in range(n):
                    own[a] = -values[a]
            else:
                fill(own, 1.0, n)
            for r in range(len(p.coefficients)):
                results, factor = p.out[r, first:last], side * p.factors[r]
                base, slope, flip = 0.0, 0.0, factor
                if r == 0 and scan.mode == COMPLEMENT:
                    base, flip = factor * state[v, POWERS], -factor
                elif r == 0 and scan.mode == LINEAR:
                    base = factor * state[v, POWERS + 1]
                    slope = factor * scan.sign * state[v, POWERS]
                for k in range(POWERS):
                    c[k] = flip * state[v, k] * p.coefficients[r, k]
                tile_polynomial(c, base, u, own[:n], results)
                if slope != 0.0:
                    for a in range(n):
                        results[a] += own[a] * slope * (reference - tile[a])


@njit(cache=True, nogil=True, forceinline=True)
def _read_few(p, scan, state, lo, hi, reference):
    """Do the same for a few places, one by one."""
    for place in range(lo, hi):
        away = scan.sign * (reference - p.scores[place])
        x = math.exp(-away) if away < REACH else 0.0
        for r in range(len(p.coefficients)):
            for v in range(len(state)):
                value = 0.0
                for k in range(POWERS - 1, -1, -1):
                    value = (value + state[v, k] * p.coefficients[r, k]) * x
                if r == 0 and scan.mode == COMPLEMENT:
                    value = state[v, POWERS] - value
                elif r == 0 and scan.mode == LINEAR:
                    value += state[v, POWERS + 1] + state[v, POWERS] * away
                if p.by_value:
                    value *= scan.sign if v == 0 else -scan.sign * scan.values[place]
                p.out[r, place] += p.factors[r] * value


@njit(cache=True, nogil=True)
def _add_ties(p, lo, hi):
    """Add what the sources tied with each target count: the kernels at 0 times their weights."""
    at_zero = (0.5 if p.family == SIGMOID else math.log(2.0), 0.25)
    same = p.source == p.target  # a row is tied with itself
    if not same and not _has_ties(p.scores[lo : hi - 1], p.scores[lo + 1 : hi]):
        return
    start = lo
    while start < hi:
        end = start + 1
        while end < hi and p.scores[end] == p.scores[start]:
            end += 1
        if end > start + 1 or same:
            total = 0.0
            for k in range(start, end):
                if p.codes[k] == p.source:
                    total += p.weights[k]
            for k in range(start, end):
                if p.codes[k] == p.target:
                    for r in range(len(p.out)):
                        p.out[r, k] += p.factors[r] * at_zero[r] * total
        start = end


@njit(cache=True, nogil=True)
def _double_loop(p, lo, hi, n_sources):
    """Do the untied pairs of a query one by one, exactly."""
    sources, n = np.empty(n_sources, np.int64), 0
    for k in range(lo, hi):
        if p.codes[k] == p.source:
            sources[n] = k
            n += 1
    for i in range(lo, hi):
        if p.codes[i] != p.target:
            continue
        for j in sources:
            difference = p.scores[j] - p.scores[i]
            if difference == 0.0:
                continue
            u = math.exp(-abs(difference))
            mode = p.modes[0] if difference > 0.0 else p.modes[1]
            second = 0.0
            if p.family == SIGMOID:
                tail = u / (1.0 + u)
                second = tail / (1.0 + u)
                first = 1.0 - tail if mode == COMPLEMENT else tail
            else:
                first = math.log1p(u) + (abs(difference) if mode == LINEAR else 0.0)
            pair = p.weights[j]
            if p.by_value and difference > 0.0:
                pair *= p.values_above[j] - p.values_above[i]
            elif p.by_value:
                pair *= p.values_below[i] - p.values_below[j]
            p.out[0, i] += p.factors[0] * pair * first
            if p.family == SIGMOID:
                p.out[1, i] += p.factors[1] * pair * second


@njit(cache=True, nogil=True)
def _count(codes, code):
    n = 0
    for k in range(len(codes)):
        n += codes[k] == code
    return n


@njit(cache=True, nogil=True)
def _has_ties(scores, following):
    n = 0
    for k in range(len(scores)):
        n += scores[k] == following[k]
    return n > 0


@njit(cache=True, nogil=True)
def hinge_pass(sign, scores, starts, codes, target_code, source_code, weights, margin, out):
    """Fill `out[0]` with hinge sums and `out[1]` with the weight inside the margin.

    With `sign` 1 the hinge of a pair is `max(0, margin + f_source - f_target)`, with -1 it is
    `max(0, margin + f_target - f_source)`; one merge along each query.
    """
    for q in range(len(starts) - 1):
        n = starts[q + 1] - starts[q]
        if n == 0:
            continue
        first, step = (starts[q], 1) if sign > 0 else (starts[q + 1] - 1, -1)
        origin = scores[first]  # sums stay small when measured from the query's own end
        count = moment = 0.0
        j = 0
        for i in range(n):
            target = first + step * i
            if codes[target] != target_code:
                continue
            while j < n and margin + sign * (scores[first + step * j] - scores[target]) > 0.0:
                source = first + step * j
                if codes[source] == source_code:
                    count += weights[source]
                    moment += weights[source] * sign * (scores[source] - origin)
                j += 1
            out[0, target] = moment + (margin + sign * (origin - scores[target])) * count
            out[1, target] = count


@njit(cache=True, nogil=True)
def range_weights(scores, weights, low, high):
    """Return the weight of each ranked row between the cumulative weights `low` and `high`.

    For the negatives of a list, with `low` and `high` the ends of a range of false positive rates times
    their total weight, this is how much each of them counts in the partial AUC. A row that
    straddles an end counts with the part inside; rows of equal score share what their tie group has
    inside in proportion to their weights. Compiled, so that other compiled loops can call it.

    Parameters
    ----------
    scores : float64 ndarray of shape (n_rows,)
        Descending.
    weights : float64 ndarray of shape (n_rows,)
    low, high : float
        In units of weight; `high` may be infinite, for the end of the list.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> range_weights(np.array([3.0, 2.0, 2.0, 1.0]), np.ones(4), 0.5, 2.0).tolist()
    [0.5, 0.5, 0.5, 0.0]
    """
    n = len(scores)
    inside = np.zeros(n)
    above = 0.0
    start = 0
    while start < n and above < high:
        end = start
        mass = 0.0
        while end < n and not scores[end] < scores[start]:
            mass += weights[end]
            end += 1
        overlap = min(above + mass, high) - max(above, low)
        if overlap > 0.0 and mass > 0.0:
            share = min(overlap / mass, 1.0)
            for k in range(start, end):
                inside[k] = weights[k] * share
        above += mass
        start = end
    return inside


# -- short straight loops over tiles of an array, written so that they compile to vector code ------


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
        p = _INVERSE_FACTORIALS[0]
        for coefficient in _INVERSE_FACTORIALS[1:]:
            p = p * r + coefficient
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
    """Return the sum of `term` (finite numbers only)."""
    total = 0.0
    for a in range(len(term)):
        total += term[a]
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def sum_away(term, scores, reference):
    """Return the sum of `term` times the distance of each score from `reference`."""
    total = 0.0
    for a in range(len(term)):
        total += term[a] * (scores[a] - reference)
    return total
