"""Compiled loops of `toprank.pair_sums`.

Everything is laid out by place in the ranked list: query after query, descending scores inside
each. Each place has a code; sums run over the sources (places with one code) and are read at the
targets (places with another code, or the same). `state[v]` holds running sums over the sources
consumed so far, seen from a reference score: with `u = exp(-|f_source - reference|)`, the first
`POWERS` are the sums of `W[v] * u**(k + 1)`, the next is that of `W[v]`, and the last that of
`W[v] * |f_source - reference|`.

There are two ways of weighing pairs. Plain: one result for each vector of source weights `W[v]`.
By worth: one result, with pair weight `W[0] * (worth of the higher - worth of the lower place)`; this
runs on two internal vectors, `W[0] * worth` and `W[0]`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from toprank._pair_tiles import (
    NEAR,
    POWERS,
    REACH,
    fill,
    keep_near,
    multiply_and_sum,
    plain_sum,
    sum_away,
    tile_exp,
    tile_polynomial,
)

SIGMOID, SOFTPLUS = 0, 1
"""Kernel families: (sig, sig') of a difference of scores, or log(1 + exp) of it."""

DECAY, COMPLEMENT, LINEAR = 0, 1, 2
"""First kernel on one side: falls to 0, rises to 1 (sig) or grows like the distance (softplus)."""

_TILE = 512
_WORK_ROWS = 3
_SHORT = 8
_FLUSH = 1e-290


@njit(cache=True, nogil=True)
def _move_reference(distance, state):
    """Let every consumed source recede by `distance`."""
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
def _source_factors(W, worth, by_worth, v, lo, hi, term):
    """Copy the internal weight vector `v` at places `lo:hi` into `term`."""
    weights = W[0 if by_worth else v, lo:hi]
    for a in range(hi - lo):
        term[a] = weights[a]
    if by_worth and v == 0:
        values = worth[lo:hi]
        for a in range(hi - lo):
            term[a] *= values[a]


@njit(cache=True, nogil=True)
def _absorb(scores, W, worth, by_worth, lo, hi, sign, reference, mode, state, work, bits, scale):
    """Add the sources at places `lo:hi` to the running sums, seen from `reference`."""
    if hi - lo < _SHORT:
        for place in range(lo, hi):
            away = sign * (scores[place] - reference)
            x = math.exp(-away) if away < REACH else 0.0
            for v in range(len(state)):
                p = W[0 if by_worth else v, place]
                if by_worth and v == 0:
                    p *= worth[place]
                state[v, POWERS] += p
                state[v, POWERS + 1] += p * away
                for k in range(POWERS if away < NEAR else 1):
                    p *= x
                    state[v, k] += p
        return
    u, near, term = work[0], work[1], work[2]
    for first in range(lo, hi, _TILE):
        last = min(first + _TILE, hi)
        n = last - first
        tile = scores[first:last]
        tile_exp(tile, -sign, reference, u, bits, scale)
        keep_near(u, near, n)
        for v in range(len(state)):
            _source_factors(W, worth, by_worth, v, first, last, term)
            if mode != DECAY:
                state[v, POWERS] += plain_sum(term[:n])
            if mode == LINEAR:
                state[v, POWERS + 1] += sign * sum_away(term[:n], tile, reference)
            state[v, 0] += multiply_and_sum(term[:n], u)
            for k in range(1, POWERS):
                state[v, k] += multiply_and_sum(term[:n], near)


@njit(cache=True, nogil=True)
def _read_short(
    scores, worth, by_worth, lo, hi, sign, reference, state, coefficients, mode, out, factors
):
    """Add the running sums to the results at a few places, one by one."""
    for place in range(lo, hi):
        away = sign * (reference - scores[place])
        x = math.exp(-away) if away < REACH else 0.0
        for r in range(len(coefficients)):
            for v in range(len(state)):
                value = 0.0
                for k in range(POWERS - 1, -1, -1):
                    value = (value + state[v, k] * coefficients[r, k]) * x
                if r == 0 and mode == COMPLEMENT:
                    value = state[v, POWERS] - value
                elif r == 0 and mode == LINEAR:
                    value += state[v, POWERS + 1] + state[v, POWERS] * away
                if by_worth:
                    value *= sign if v == 0 else -sign * worth[place]
                out[r, 0 if by_worth else v, place] += factors[r] * value


@njit(cache=True, nogil=True)
def _read(
    scores, worth, by_worth, lo, hi, sign, reference, state, coefficients, mode, out, factors,
    work, bits, scale,
):  # fmt: skip
    """Add the running sums to the results at places `lo:hi`, tile by tile.

    By worth, a pair counts the worth of its higher place minus that of its lower: the source is
    the higher one when `sign` is 1, and the second internal vector brings in the target's worth.
    """
    u, c, own = work[0], work[1], work[2]
    for first in range(lo, hi, _TILE):
        last = min(first + _TILE, hi)
        n = last - first
        tile = scores[first:last]
        tile_exp(tile, sign, reference, u, bits, scale)
        for v in range(len(state)):
            side = sign if by_worth else 1.0
            if by_worth and v == 1:
                values = worth[first:last]
                for a in range(n):
                    own[a] = -values[a]
            else:
                fill(own, 1.0, n)
            for r in range(len(coefficients)):
                target, factor = out[r, 0 if by_worth else v, first:last], side * factors[r]
                base, slope, flip = 0.0, 0.0, factor
                if r == 0 and mode == COMPLEMENT:
                    base, flip = factor * state[v, POWERS], -factor
                elif r == 0 and mode == LINEAR:
                    base, slope = factor * state[v, POWERS + 1], factor * sign * state[v, POWERS]
                for k in range(POWERS):
                    c[k] = flip * state[v, k] * coefficients[r, k]
                tile_polynomial(c, base, u, own[:n], target)
                if slope != 0.0:
                    for a in range(n):
                        target[a] += own[a] * slope * (reference - tile[a])


@njit(cache=True, nogil=True)
def _scan(
    sign, scores, codes, lo, hi, target_code, source_code, W, worth, by_worth, coefficients, mode,
    out, factors, state, work, bits, scale,
):  # fmt: skip
    """Add the sums over the sources strictly above each target (`sign` 1) or below it (-1).

    The list is walked from the end where the sources come first. `i` is the next place to read,
    `j` the next to absorb, `group` the place where the tie group of `i` begins; all three count
    from that end.
    """
    n = hi - lo
    first, step = (lo, 1) if sign > 0 else (hi - 1, -1)
    for v in range(len(state)):
        fill(state[v], 0.0, POWERS + 2)
    reference = scores[first]
    i = j = group = 0
    empty, pending, same = True, False, source_code == target_code
    while i < n:
        reading = codes[first + step * i] == target_code
        k = i + 1
        if not reading:
            while k < n and codes[first + step * k] != target_code:
                k += 1
        else:
            while j < group:  # absorb every run of sources above the tie group
                k = j + 1
                if codes[first + step * j] == source_code:
                    while k < group and codes[first + step * k] == source_code:
                        k += 1
                    nearest = scores[first + step * (k - 1)]
                    if not empty:
                        _move_reference(sign * (reference - nearest), state)
                    reference, empty = nearest, False
                    a, b = (lo + j, lo + k) if sign > 0 else (hi - k, hi - j)
                    _absorb(
                        scores, W, worth, by_worth, a, b, sign, reference, mode, state, work, bits,
                        scale,
                    )  # fmt: skip
                j = k
            # Read a run of targets, but no further than a tie group that holds sources itself.
            k = i + 1
            here, inside = scores[first + step * i], pending or same
            while k < n and codes[first + step * k] == target_code:
                if inside and scores[first + step * k] != here:
                    break
                k += 1
            a, b = (lo + i, lo + k) if sign > 0 else (hi - k, hi - i)
            if not empty and k - i < _SHORT:
                _read_short(
                    scores, worth, by_worth, a, b, sign, reference, state, coefficients, mode,
                    out, factors,
                )  # fmt: skip
            elif not empty:
                _read(
                    scores, worth, by_worth, a, b, sign, reference, state, coefficients, mode,
                    out, factors, work, bits, scale,
                )  # fmt: skip
        if k < n:
            here = scores[first + step * k]
            if scores[first + step * group] != here:
                group, pending = k, False
                while scores[first + step * (group - 1)] == here:
                    group -= 1
            if not reading:
                for p in range(max(group, i), k):
                    pending = pending or codes[first + step * p] == source_code
        i = k


@njit(cache=True, nogil=True)
def _add_ties(scores, codes, lo, hi, target_code, source_code, W, values, factors, out):
    """Add `values[r] * W` of the sources tied with each target."""
    start = lo
    while start < hi:
        end = start + 1
        while end < hi and scores[end] == scores[start]:
            end += 1
        if end > start + 1 or source_code == target_code:
            for v in range(W.shape[0]):
                total = 0.0
                for k in range(start, end):
                    if codes[k] == source_code:
                        total += W[v, k]
                for k in range(start, end):
                    if codes[k] == target_code:
                        for r in range(len(out)):
                            out[r, v, k] += factors[r] * values[r] * total
        start = end


@njit(cache=True, nogil=True)
def _double_loop(
    scores, codes, lo, hi, target_code, sources, W, upper, lower, by_worth, one_side, modes,
    family, factors, out,
):  # fmt: skip
    """Do the same pair by pair, exactly."""
    for i in range(lo, hi):
        if codes[i] != target_code:
            continue
        for j in sources:
            difference = scores[j] - scores[i]
            if difference == 0.0 or difference * one_side < 0.0:
                continue
            u = math.exp(-abs(difference))
            mode = modes[0] if difference > 0.0 else modes[1]
            second = 0.0
            if family == SIGMOID:
                fall = u / (1.0 + u)
                second = fall / (1.0 + u)
                first = 1.0 - fall if mode == COMPLEMENT else fall
            else:
                first = math.log1p(u) + (abs(difference) if mode == LINEAR else 0.0)
            for v in range(1 if by_worth else W.shape[0]):
                pair = W[v, j]
                if by_worth:
                    pair *= upper[j] - upper[i] if difference > 0.0 else lower[i] - lower[j]
                out[0, v, i] += factors[0] * pair * first
                if family == SIGMOID:
                    out[1, v, i] += factors[1] * pair * second


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
def pair_pass(
    scores, starts, codes, target_code, source_code, W, upper, lower, by_worth, one_side, family,
    coefficients, modes, pairs_per_row, factors, out,
):  # fmt: skip
    """Add to `out[r, v]` the pair sums times `factors[r]` at every target, query by query.

    `upper` are the worths for sources above the target, `lower` for sources below it. `modes` say
    how the first kernel behaves on each side. `one_side` 1 counts sources above the target only, -1
    those below it only, 0 both and, unless pairs are weighed by worth, those tied with it. A query
    is done pair by pair when it has at most `pairs_per_row` pairs for each of its rows.
    """
    work, bits = np.zeros((_WORK_ROWS, _TILE)), np.empty(_TILE, np.int64)
    scale = bits.view(np.float64)
    state = np.empty((2 if by_worth else W.shape[0], POWERS + 2))
    sources = np.empty(len(codes), np.int64)
    tied = np.array([0.5 if family == SIGMOID else math.log(2.0), 0.25])
    for q in range(len(starts) - 1):
        lo, hi = starts[q], starts[q + 1]
        n_targets, n_sources = _count(codes[lo:hi], target_code), _count(codes[lo:hi], source_code)
        if n_targets == 0 or n_sources == 0:
            continue
        tied_rows = source_code == target_code or _has_ties(
            scores[lo : hi - 1], scores[lo + 1 : hi]
        )
        if one_side == 0 and not by_worth and tied_rows:
            _add_ties(scores, codes, lo, hi, target_code, source_code, W, tied, factors, out)
        if n_targets * n_sources <= pairs_per_row * (n_targets + n_sources):
            n_sources = 0
            for k in range(lo, hi):
                if codes[k] == source_code:
                    sources[n_sources] = k
                    n_sources += 1
            _double_loop(
                scores, codes, lo, hi, target_code, sources[:n_sources], W, upper, lower, by_worth,
                one_side, modes, family, factors, out,
            )  # fmt: skip
            continue
        for side in range(2):
            sign = 1.0 - 2.0 * side
            if sign * one_side < 0.0:
                continue
            _scan(
                sign, scores, codes, lo, hi, target_code, source_code, W,
                lower if side else upper, by_worth, coefficients, modes[side], out, factors,
                state, work, bits, scale,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def hinge_pass(sign, scores, starts, codes, target_code, source_code, W, margin, out):
    """Fill `out[0, v]` with hinge sums and `out[1, v]` with the weight inside the margin.

    With `sign` 1 the hinge of a pair is `max(0, margin + f_source - f_target)`, with -1 it is
    `max(0, margin + f_target - f_source)`; one merge along each query.
    """
    n_vectors = W.shape[0]
    count, moment = np.empty(n_vectors), np.empty(n_vectors)
    for q in range(len(starts) - 1):
        n = starts[q + 1] - starts[q]
        if n == 0:
            continue
        first, step = (starts[q], 1) if sign > 0 else (starts[q + 1] - 1, -1)
        origin = scores[first]  # sums stay small when measured from the query's own end
        fill(count, 0.0, n_vectors)
        fill(moment, 0.0, n_vectors)
        j = 0
        for i in range(n):
            target = first + step * i
            if codes[target] != target_code:
                continue
            while j < n and margin + sign * (scores[first + step * j] - scores[target]) > 0.0:
                source = first + step * j
                if codes[source] == source_code:
                    for v in range(n_vectors):
                        count[v] += W[v, source]
                        moment[v] += W[v, source] * sign * (scores[source] - origin)
                j += 1
            for v in range(n_vectors):
                offset = margin + sign * (origin - scores[target])
                out[0, v, target] = moment[v] + offset * count[v]
                out[1, v, target] = count[v]
