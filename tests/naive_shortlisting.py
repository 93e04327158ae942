"""Slow and plain twins of what `toprank.shortlisting` computes."""

from __future__ import annotations

import math

import numpy as np


def binomial_at_least(hits: int, total: int, share: float) -> float:
    return sum(
        math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(hits, total + 1)
    )


def cuts(y: np.ndarray, scores: np.ndarray) -> list[tuple[float, int, int]]:
    """For every cut, ties together: the lowest score flagged, positives and negatives flagged."""
    found = [(math.inf, 0, 0)]
    for score in sorted(set(scores.tolist()), reverse=True):
        flagged = scores >= score
        found.append((score, int(y[flagged].sum()), int((1 - y[flagged]).sum())))
    return found


def design_effect(negatives: np.ndarray, folds: np.ndarray, chance: float, least: float) -> float:
    """Spread of the folds' false positive rates over what chance gives, at five thresholds."""
    ratios = []
    for rate in (0.01, 0.02, 0.05, 0.1, 0.2):
        threshold = np.quantile(negatives, 1 - rate)
        overall = float(np.mean(negatives > threshold))
        parts = [negatives[folds == fold] for fold in set(folds.tolist())]
        if rate * min(map(len, parts)) < 1 or not 0 < overall < 1:
            continue
        variances = [overall * (1 - overall) / len(part) for part in parts]
        squares = [(np.mean(p > threshold) - overall) ** 2 for p in parts]
        found = sum(s / v for s, v in zip(squares, variances, strict=True))
        ratios.append(found / (len(parts) - 1))
    k = len(set(folds.tolist()))
    excess = max(0.0, sum(ratios) / len(ratios) / (chance / (k - 1)) - 1)
    return max(least, 1 + (k + 1) * excess)


def fpr_cut(y: np.ndarray, scores: np.ndarray, fpr: float, error: float) -> int:
    """Rows flagged by the umbrella algorithm and in lists: the longest one with few enough negatives."""
    n = int((1 - y).sum())
    best = 0
    for _, positives, negatives in cuts(y, scores):
        at_most = 1 - binomial_at_least(negatives + 1, n, fpr)
        if at_most <= error and list_risk(negatives, n, fpr) <= error:
            best = max(best, positives + negatives)
    return best


def list_risk(m: int, n: int, rate: float) -> float:
    """In how many orders of n known and n new negatives too many new ones are above the (m + 1)-th known."""
    k = math.floor(rate * n + 1e-9)
    drawn = m + 1 + k
    if drawn > 2 * n:
        return 0.0
    ways = sum(math.comb(n, known) * math.comb(n, drawn - known) for known in range(m + 1))
    return ways / math.comb(2 * n, drawn)


def cheapest_cut(y: np.ndarray, scores: np.ndarray, false_alarm: float, miss: float) -> int:
    total = int(y.sum())
    costs = [
        (false_alarm * negatives + miss * (total - positives), positives + negatives)
        for _, positives, negatives in cuts(y, scores)
    ]
    least = min(cost for cost, _ in costs)
    return min(length for cost, length in costs if cost <= least + 1e-9)


def isotonic(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Rising least squares by max-min: max over starts of min over ends of the mean between."""
    n = len(y)
    fitted = np.empty(n)
    for i in range(n):
        fitted[i] = max(
            min(
                float((weight[a : b + 1] @ y[a : b + 1]) / weight[a : b + 1].sum())
                for b in range(i, n)
            )
            for a in range(i + 1)
        )
    return fitted
