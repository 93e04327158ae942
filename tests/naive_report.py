"""What the report computes, written down slowly and plainly."""

from __future__ import annotations

from itertools import pairwise, permutations
from math import prod

import numpy as np


def hits_by_orders(positive, scores, length):
    """Mean number of positives among the first rows over every order that the scores allow."""
    rows = range(len(scores))
    found = [
        sum(bool(positive[row]) for row in order[:length])
        for order in permutations(rows)
        if all(scores[order[k]] >= scores[order[k + 1]] for k in range(len(order) - 1))
    ]
    return float(np.mean(found))


def money_by_orders(positive, scores, value, length):
    """Mean value of the positives among the first rows over every order that the scores allow."""
    rows = range(len(scores))
    found = [
        sum(value[row] for row in order[:length] if positive[row])
        for order in permutations(rows)
        if all(scores[order[k]] >= scores[order[k + 1]] for k in range(len(order) - 1))
    ]
    return float(np.mean(found))


def roc_corners(positive, scores):
    """False and true positive rate at every threshold, the corner before a run of ties included."""
    positive, scores = np.asarray(positive, bool), np.asarray(scores, float)
    corners = [(0.0, 0.0)]
    for threshold in sorted(set(scores), reverse=True):
        above = scores >= threshold
        corners.append((above[~positive].mean(), above[positive].mean()))
    return corners


def recall_at_rate(positive, scores, rate):
    """Highest true positive rate at a false positive rate, straight lines between thresholds."""
    corners = roc_corners(positive, scores)
    best = max(y for x, y in corners if x <= rate)
    for (x0, y0), (x1, y1) in pairwise(corners):
        if x0 < x1 and x0 <= rate <= x1:
            best = max(best, y0 + (rate - x0) / (x1 - x0) * (y1 - y0))
    return best


def precision_at(positive, scores, recall):
    """Precision of the shortest list of a recall; inside a tie group both classes come evenly."""
    positive, scores = np.asarray(positive, bool), np.asarray(scores, float)
    needed, found, passed = recall * positive.sum(), 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        group = scores == threshold
        p, q = (group & positive).sum(), (group & ~positive).sum()
        if p and found + p >= needed - 1e-12:
            share = (needed - found) / p
            return needed / (needed + passed + share * q)
        found, passed = found + p, passed + q
    raise AssertionError("recall above 1")


def all_right_limit(length, tail):
    """The share p for which `length` of `length` right rows have probability `tail`, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if prod([middle] * length) < tail:
            low = middle
        else:
            high = middle
    return low
