"""Slow, plain versions of what the rules compute."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm


def pair_loss(y, scores, weights, push=1.0):
    """The p-norm push loss over all pairs, divided by its value at constant scores."""
    loss, start = 0.0, 0.0
    for k in np.flatnonzero(y == 0):
        inner = sum(weights[i] * np.exp(-(scores[i] - scores[k])) for i in np.flatnonzero(y == 1))
        loss += weights[k] * inner**push
        start += weights[k] * weights[y == 1].sum() ** push
    return loss / start


def curve_area(points, total_positives, total_negatives):
    """Numeric integral of precision over recall along Davis & Goadrich's interpolation.

    `points` are (TP, FP) in any order; the curve runs from (0, 0) to the totals.
    """
    corners = [(0.0, 0.0), *sorted(points), (total_positives, total_negatives)]
    area = 0.0
    for (tp_a, fp_a), (tp_b, fp_b) in itertools.pairwise(corners):
        if tp_b <= tp_a:
            continue
        slope = (fp_b - fp_a) / (tp_b - tp_a)

        def precision(tp, tp_a=tp_a, fp_a=fp_a, slope=slope):
            covered = tp + fp_a + slope * (tp - tp_a)
            return tp / covered if covered > 0 else 1.0

        start = tp_a if tp_a + fp_a > 0 else tp_a + 1e-12 * (tp_b - tp_a)
        area += quad(precision, start, tp_b, limit=200, epsabs=1e-9 * total_positives)[0]
    return area / total_positives


def best_stump_strength(columns, is_category, y, weights):
    """Greatest |r| over all single literals, every subset of categories and side for missing cells."""
    signed = np.where(y == 1, weights, -weights)
    best = 0.0
    for cells, category in zip(columns, is_category, strict=True):
        missing = np.isnan(cells)
        values = np.unique(cells[~missing])
        if category:
            sets = [
                np.isin(cells, chosen)
                for size in range(len(values) + 1)
                for chosen in itertools.combinations(values, size)
            ]
        else:
            sets = [cells <= cut for cut in values] + [np.zeros(len(cells), dtype=bool)]
        for inside in sets:
            for side in (inside & ~missing, inside | missing):
                best = max(best, abs(signed[side].sum()))
    return best


def seed_literals(frame, seed, cuts):
    """All literals of a bottom clause as masks, in the order in which the search lists them."""
    masks = []
    for j, name in enumerate(frame.columns):
        cells, value = frame[name], frame[name].iloc[seed]
        if value != value or value is None:
            masks.append((name, cells.isna().to_numpy()))
        elif isinstance(value, str):
            masks.append((name, (cells == value).to_numpy(dtype=bool)))
        else:
            for cut in cuts[j]:
                holds = cells <= cut if value <= cut else cells > cut
                masks.append((name, holds.to_numpy(dtype=bool)))
    return masks


def greedy_clause(frame, seed, cuts, y, weights, area_of, max_length):
    """Masks along the greedy path: add the literal with the greatest score while it rises."""
    covered = np.ones(len(y), dtype=bool)
    path, score = [], area_of([covered])
    literals = seed_literals(frame, seed, cuts)
    for _ in range(max_length):
        scores = [area_of([*path, covered & mask]) for _, mask in literals]
        best = int(np.argmax(scores >= max(scores) - 1e-11))
        if scores[best] <= score + 1e-9:
            break
        covered = covered & literals[best][1]
        path.append(covered)
        score = scores[best]
    return path, score


def in_range(y, scores, weights, low, high):
    """Weight of each negative ranked between low N and high N; ties share what they have together."""
    inside = np.zeros(len(y))
    total = weights[y == 0].sum()
    above = 0.0
    for value in sorted(set(scores[y == 0]), reverse=True):
        rows = (scores == value) & (y == 0)
        tied = weights[rows].sum()
        overlap = max(min(above + tied, high * total) - max(above, low * total), 0.0)
        inside[rows] = weights[rows] * overlap / tied
        above += tied
    return inside


def smooth_partial_auc(y, scores, weights, inside, sigma):
    """Mean of Phi over pairs of a positive and a negative in the range."""
    total, value = 0.0, 0.0
    for i in np.flatnonzero(y == 1):
        for k in np.flatnonzero(inside > 0):
            pair = weights[i] * inside[k]
            value += pair * norm.cdf((scores[i] - scores[k]) / sigma)
            total += pair
    return value / total
