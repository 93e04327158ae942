"""The search for one axis-parallel split over bytes.

Everywhere: P and N are the weights of the positives and negatives of a cell, p and n those of one part of
it. The balanced criterion is |p/P - n/N|; the kernels compare |p N - n P|, which is exact for whole
weights. `order[begin:end]` are the rows of the cell. A split is (feature, threshold, missing_first): rows
whose byte is at most `threshold` come first, or, for categories (threshold -1), rows whose byte is in a
set of 256 bits.
"""

from __future__ import annotations

from numba import njit

__all__ = ["comes_first", "draw", "find_split", "partition"]

MISSING = 255
SMALL = 40  # below this many rows sorting them beats filling 256 counters
BLOCK = 32  # features whose counters are filled in one pass over the rows: they fit the cache
RELATIVE_NOISE = 1e-12  # a smaller share of the scale is rounding: the earlier split stays


@njit(cache=True, nogil=True)
def draw(rng, pool, n_pool, n_draw):
    """Put `n_draw` random members of `pool[:n_pool]` to its front (Fisher-Yates)."""
    if n_draw < n_pool:
        for k in range(n_draw):
            other = k + int(rng.random() * (n_pool - k))
            pool[k], pool[other] = pool[other], pool[k]


@njit(cache=True, nogil=True)
def comes_first(code, threshold, missing_first, bits):
    """Whether a byte falls in the first part of a split."""
    if threshold < 0:
        return (bits[code >> 3] >> (code & 7)) & 1 == 1
    if code == MISSING:
        return missing_first == 1
    return code <= threshold


@njit(cache=True, nogil=True)
def partition(codes, order, begin, end, split, bits, scratch):
    """Reorder the rows of a cell so that the first part of the split leads; return where it ends."""
    feature, threshold, missing_first = split[0], split[1], split[2]
    middle, waiting = begin, 0
    for i in range(begin, end):
        row = order[i]
        if comes_first(codes[row, feature], threshold, missing_first, bits):
            order[middle] = row
            middle += 1
        else:
            scratch[waiting] = row
            waiting += 1
    for i in range(waiting):
        order[middle + i] = scratch[i]
    return middle


@njit(cache=True, nogil=True)
def _runs_by_sorting(codes, positive, weight, order, begin, end, feature, keys, runs):
    """Distinct bytes of a few rows, ascending, with the weight of each class: `runs[:count]`."""
    size = end - begin
    for i in range(size):
        key = int(codes[order[begin + i], feature]) * SMALL + i
        k = i
        while k > 0 and keys[k - 1] > key:
            keys[k] = keys[k - 1]
            k -= 1
        keys[k] = key
    count, last = 0, -1
    for k in range(size):
        code = keys[k] // SMALL
        row = order[begin + keys[k] - code * SMALL]
        if code != last:
            runs[count, 0] = code
            runs[count, 1] = 0.0
            runs[count, 2] = 0.0
            count += 1
            last = code
        runs[count - 1, 2 - positive[row]] += weight[row]
    return count


@njit(cache=True, nogil=True)
def _fill_counters(codes, positive, weight, order, begin, end, features, first, last, counters):
    """Weight of each class in each bin of the features `features[first:last]`."""
    for k in range(last - first):
        for c in range(512):
            counters[k, c] = 0.0
    for i in range(begin, end):
        row = order[i]
        w, c = weight[row], 1 - int(positive[row])
        for k in range(first, last):
            counters[k - first, 2 * int(codes[row, features[k]]) + c] += w


@njit(cache=True, nogil=True)
def _runs_by_counting(counters, n_bins, runs):
    """Occupied bins of one feature, ascending, with the weight of each class: `runs[:count]`."""
    count = 0
    for code in range(n_bins + 1):
        at = MISSING if code == n_bins else code
        p, n = counters[2 * at], counters[2 * at + 1]
        if p + n > 0.0:
            runs[count, 0] = at
            runs[count, 1] = p
            runs[count, 2] = n
            count += 1
    return count


@njit(cache=True, nogil=True)
def _scan_numbers(runs, count, P, N, min_leaf, best, split):
    """Try every cut of an ordered feature, missing cells on either side; return the best so far."""
    missing_p, missing_n, present = 0.0, 0.0, count
    if count > 0 and runs[count - 1, 0] == MISSING:
        present = count - 1
        missing_p, missing_n = runs[present, 1], runs[present, 2]
    has_missing = present < count
    total = P + N
    p, n = 0.0, 0.0
    # with missing cells the last cut puts all present cells against them
    for k in range(present if has_missing else present - 1):
        p += runs[k, 1]
        n += runs[k, 2]
        for side in range(2 if has_missing and k + 1 < present else 1):
            p_first, n_first = p + side * missing_p, n + side * missing_n
            first = p_first + n_first
            if first < min_leaf or total - first < min_leaf:
                continue
            value = abs(p_first * N - n_first * P)
            if value > best + RELATIVE_NOISE * P * N:
                best = value
                if k + 1 < present:  # half-way through the empty bins between the two parts
                    split[1] = int(runs[k, 0] + runs[k + 1, 0] - 1) // 2
                else:
                    split[1] = MISSING - 1
                split[2] = side if has_missing else (1 if first > total - first else 0)
    return best


@njit(cache=True, nogil=True)
def _scan_categories(runs, count, P, N, min_leaf, best, split, bits):
    """Try every cut of the categories in the order of their share of positives."""
    for i in range(1, count):
        code, p, n = runs[i, 0], runs[i, 1], runs[i, 2]
        k = i
        # cross-multiplied, so that equal shares stay in the order of their codes
        while k > 0 and runs[k - 1, 1] * n < p * runs[k - 1, 2]:
            runs[k, 0], runs[k, 1], runs[k, 2] = runs[k - 1, 0], runs[k - 1, 1], runs[k - 1, 2]
            k -= 1
        runs[k, 0], runs[k, 1], runs[k, 2] = code, p, n
    total = P + N
    p, n, cut, heavier = 0.0, 0.0, -1, False
    for k in range(count - 1):
        p += runs[k, 1]
        n += runs[k, 2]
        if p + n < min_leaf or total - p - n < min_leaf:
            continue
        value = abs(p * N - n * P)
        if value > best + RELATIVE_NOISE * P * N:
            best, cut, heavier = value, k, p + n > total - p - n
    if cut >= 0:
        split[1], split[2] = -1, 0
        for b in range(32):  # bytes absent from the cell join the heavier part
            bits[b] = 255 if heavier else 0
        for k in range(count):
            code = int(runs[k, 0])
            if k <= cut:
                bits[code >> 3] |= 1 << (code & 7)
            else:
                bits[code >> 3] &= 255 - (1 << (code & 7))
    return best


@njit(cache=True, nogil=True)
def find_split(
    codes, positive, weight, order, begin, end, P, N, n_bins, is_category, features, n_features,
    min_leaf, counters, runs, keys, split, bits,
):  # fmt: skip
    """Write the best split of a cell over `features[:n_features]`; return whether there is one.

    Of equal splits the one on the feature first in `features` wins.
    """
    best = 0.0
    split[0] = -1
    small = end - begin <= SMALL
    block_start = 0
    for k in range(n_features):
        feature = features[k]
        if small:
            count = _runs_by_sorting(
                codes, positive, weight, order, begin, end, feature, keys, runs
            )
        else:
            if k % BLOCK == 0:
                block_start = k
                block_end = min(k + BLOCK, n_features)
                _fill_counters(
                    codes, positive, weight, order, begin, end, features, k, block_end, counters
                )
            count = _runs_by_counting(counters[k - block_start], n_bins[feature], runs)
        before = best
        if is_category[feature]:
            best = _scan_categories(runs, count, P, N, min_leaf, best, split, bits)
        else:
            best = _scan_numbers(runs, count, P, N, min_leaf, best, split)
        if best > before:
            split[0] = feature
    return split[0] >= 0
