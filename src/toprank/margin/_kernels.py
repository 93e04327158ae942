"""Sums of a clipped quadratic loss over pairs, in the time of a sort.

For a pair of one query with grade_i > grade_j put r = 1 - f_i + f_j and, with a bend mu > 0,

    loss(r) = 0 for r <= 0,   r²/2 for 0 < r < mu,   mu·(r - mu/2) for r >= mu.

mu = infinity is half the squared hinge; loss/mu tends to the hinge as mu falls to 0. Rows stand in
descending order of score inside their query, so the partners of a row with r > 0 and those with
r >= mu are two growing prefixes. A Fenwick tree over the grades holds their sums: O(n log levels).
Side 0 sums over the lower partners of each row, side 1, by the mirrored walk, over the higher ones;
both compute r by the same floating-point expression, so they agree on every pair.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["pair_losses", "partner_sums"]


_NARROW = 32  # rows in the bend up to which they are summed one by one


@njit(cache=True, nogil=True)
def _sweep_losses(
    side, scores, centre, order, start, stop, grade, levels, weight, mu, tree, slope, degree
):
    """One side of one query: add to `slope` and `degree`; return (loss, hinge, sum of loss').

    Columns of `tree`: weight, weight·f and weight·f² of the rows with r > 0, then with r >= mu. The
    rows between are the difference, or, when they are few, are summed one by one: a narrow bend needs
    the digits that a difference of two growing sums would lose.
    """
    tree[:levels] = 0.0
    loss, hinge, pull = 0.0, 0.0, 0.0
    top = levels - 1  # the best grade has no better one, so it is never stored
    sign = 1.0 if side == 0 else -1.0
    near, far = 0, 0
    sums = np.empty(6)
    for k in range(stop - start):
        row = order[start + k] if side == 0 else order[stop - 1 - k]
        rank = grade[row] if side == 0 else top - grade[row]
        if rank == 0:
            continue
        own = scores[row] - centre
        for zone in range(2):
            entered = near if zone == 0 else far
            while entered < stop - start:
                other = order[start + entered] if side == 0 else order[stop - 1 - entered]
                f = scores[other] - centre
                r = (1.0 - own) + f if side == 0 else (1.0 - f) + own
                if (zone == 0 and r <= 0.0) or (zone == 1 and r < mu):
                    break
                entered += 1
                place = (grade[other] if side == 0 else top - grade[other]) + 1
                w = weight[other]
                while place <= top:
                    tree[place, 3 * zone] += w
                    tree[place, 3 * zone + 1] += w * f
                    tree[place, 3 * zone + 2] += w * f * f
                    place += place & -place
            if zone == 0:
                near = entered
            else:
                far = entered
        sums[:] = 0.0
        place = rank
        while place > 0:
            for c in range(6):
                sums[c] += tree[place, c]
            place -= place & -place
        base = 1.0 - sign * own  # r = base + sign·f
        kink_weight, kink_sum, kink_squares = 0.0, 0.0, 0.0
        if near - far <= _NARROW:
            for entered in range(far, near):
                other = order[start + entered] if side == 0 else order[stop - 1 - entered]
                if (grade[other] if side == 0 else top - grade[other]) < rank:
                    r = base + sign * (scores[other] - centre)
                    kink_weight += weight[other]
                    kink_sum += weight[other] * r
                    kink_squares += weight[other] * r * r
        else:
            kink_weight = sums[0] - sums[3]
            kink_f = sign * (sums[1] - sums[4])
            kink_sum = base * kink_weight + kink_f
            kink_squares = base * (kink_sum + kink_f) + (sums[2] - sums[5])
        far_sum = base * sums[3] + sign * sums[4]
        far_pull = mu * sums[3] if sums[3] > 0.0 else 0.0
        degree[row] += weight[row] * kink_weight
        slope[row] -= sign * weight[row] * (kink_sum + far_pull)
        if side == 0:
            far_loss = mu * (far_sum - 0.5 * mu * sums[3]) if sums[3] > 0.0 else 0.0
            loss += weight[row] * (0.5 * kink_squares + far_loss)
            hinge += weight[row] * (kink_sum + far_sum)
            pull += weight[row] * (kink_sum + far_pull)
    return loss, hinge, pull


@njit(cache=True, nogil=True)
def pair_losses(scores, order, starts, grade, levels, weight, mu):
    """Loss over all pairs, the sum of hinges, the sum of loss'; by row the slope and the degree.

    The slope is the gradient in the scores; the degree of a row is its weight times the weight of its
    partners with 0 < r < mu, the diagonal of the second derivative.
    """
    slope, degree = np.zeros(len(scores)), np.zeros(len(scores))
    tree = np.zeros((levels.max() + 1, 6))
    loss, hinge, pull = 0.0, 0.0, 0.0
    for q in range(len(levels)):
        if levels[q] < 2:
            continue
        start, stop = starts[q], starts[q + 1]
        centre = scores[order[(start + stop) // 2]]  # keeps the squares small
        for side in range(2):
            parts = _sweep_losses(
                side, scores, centre, order, start, stop, grade, levels[q], weight, mu, tree,
                slope, degree,
            )  # fmt: skip
            loss += parts[0]
            hinge += parts[1]
            pull += parts[2]
    return loss, hinge, pull, slope, degree


@njit(cache=True, nogil=True)
def _add_row(tree, leaf, factor, row, dense, data, indices, indptr):
    """Add `factor` times a dense or sparse row to one node of the tree."""
    if len(indptr) > 0:
        for p in range(indptr[row], indptr[row + 1]):
            tree[leaf, indices[p]] += factor * data[p]
    else:
        for c in range(dense.shape[1]):
            tree[leaf, c] += factor * dense[row, c]


@njit(cache=True, nogil=True)
def partner_sums(
    side, scores, order, starts, grade, levels, weight, mu, dense, data, indices, indptr,
    first, last, state, tree, rows, out,
):  # fmt: skip
    """Walk the positions `first` to `last`: for each row i, w_i · sum of w_j x_j over its partners.

    Partners are the rows with 0 < r < mu, of lower grade for side 0, of higher grade for side 1. Rows
    x are those of `dense`, or of a CSR matrix if `indptr` is not empty. `rows` gets the row at each
    position and `out` its sum. `state` (query, near, far; -1 first) and `tree` carry the walk from one
    call to the next, so that `out` need hold a part of the rows only.
    """
    q, near, far = state[0], state[1], state[2]
    for k in range(first, last):
        while q < 0 or k >= starts[q + 1]:
            q += 1
            near = far = starts[q]
            tree[: levels[q]] = 0.0
        start, stop = starts[q], starts[q + 1]
        row = order[k] if side == 0 else order[start + stop - 1 - k]
        rows[k - first] = row
        out[k - first] = 0.0
        top = levels[q] - 1
        place = grade[row] if side == 0 else top - grade[row]
        if place == 0:
            continue
        centre = scores[order[(start + stop) // 2]]
        own = scores[row] - centre
        for zone in range(2):
            entered = near if zone == 0 else far
            while entered < stop:
                other = order[entered] if side == 0 else order[start + stop - 1 - entered]
                f = scores[other] - centre
                r = (1.0 - own) + f if side == 0 else (1.0 - f) + own
                if (zone == 0 and r <= 0.0) or (zone == 1 and r < mu):
                    break
                entered += 1
                leaf = (grade[other] if side == 0 else top - grade[other]) + 1
                factor = weight[other] if zone == 0 else -weight[other]
                while leaf <= top:
                    _add_row(tree, leaf, factor, other, dense, data, indices, indptr)
                    leaf += leaf & -leaf
            if zone == 0:
                near = entered
            else:
                far = entered
        while place > 0:
            for c in range(out.shape[1]):
                out[k - first, c] += weight[row] * tree[place, c]
            place -= place & -place
    state[0], state[1], state[2] = q, near, far
