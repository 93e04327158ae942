"""Metrics written down as they are defined: loops over pairs, thresholds and tie orders.

Slow and plain on purpose: these are the oracles of the tests. None of them knows about weights;
a weight is tested as that many copies of the row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np


def pair_auc(y, scores, weight=None) -> float:
    """Mean over pairs of 1[f+ > f-] + 1/2 1[f+ = f-]."""
    weight = np.ones(len(y)) if weight is None else weight
    good = total = 0.0
    for i, j in itertools.product(np.flatnonzero(y), np.flatnonzero(np.logical_not(y))):
        pair = weight[i] * weight[j]
        good += pair * ((scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
        total += pair
    return good / total


def average_precision(y, scores) -> float:
    """Mean over positives of the precision of all rows scored at least as high."""
    values = []
    for i in np.flatnonzero(y):
        above = np.asarray(scores) >= scores[i]
        values.append(np.asarray(y)[above].sum() / above.sum())
    return float(np.mean(values))


def pos_at_top(y, scores) -> float:
    """Share of positives above every negative."""
    best = max(s for s, label in zip(scores, y, strict=True) if not label)
    return float(np.mean([s > best for s, label in zip(scores, y, strict=True) if label]))


def tie_orders(y, scores):
    """All lists of labels, highest score first, that agree with the scores (equally likely)."""
    groups = []
    for score in sorted(set(scores), reverse=True):
        members = [label for label, s in zip(y, scores, strict=True) if s == score]
        groups.append(list(itertools.permutations(members)))
    for combination in itertools.product(*groups):
        yield [label for group in combination for label in group]


def expected(metric: Callable[[list], float], y, scores) -> float:
    """Expected value of a metric of an ordered list of labels over all tie orders."""
    return float(np.mean([metric(labels) for labels in tie_orders(y, scores)]))


def precision_of_first(labels, k) -> float:
    """Share of positives among the first k; a fraction of a row counts as that fraction."""
    whole = math.floor(k)
    found = sum(labels[:whole])
    if k > whole and whole < len(labels):
        found += (k - whole) * labels[whole]
    return found / k


def mean_precision(labels) -> float:
    """Mean over all ranks of the precision up to that rank."""
    return float(np.mean([precision_of_first(labels, k) for k in range(1, len(labels) + 1)]))


def reciprocal_rank(labels) -> float:
    """1 over the rank of the first positive."""
    return 1.0 / (1 + next(rank for rank, label in enumerate(labels) if label))


def ndcg(labels, k=None, gain=lambda grade: 2.0**grade - 1) -> float:
    """Discounted gain of the first k labels over that of the best order."""

    def discounted(ordered):
        return sum(gain(g) / math.log2(rank + 2) for rank, g in enumerate(ordered[:k]))

    return discounted(labels) / discounted(sorted(labels, reverse=True))


def roc_corners(y, scores) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates of all thresholds, from none to all rows."""
    y, scores = np.asarray(y), np.asarray(scores)
    fpr, tpr = [0.0], [0.0]
    for threshold in sorted(set(scores.tolist()), reverse=True):
        flagged = scores >= threshold
        fpr.append(float((flagged & (y == 0)).sum() / (y == 0).sum()))
        tpr.append(float((flagged & (y == 1)).sum() / (y == 1).sum()))
    return np.array(fpr), np.array(tpr)


def integrate_roc(y, scores, low, high, floor=0.0, cells=20_000) -> float:
    """Integral of max(TPR - floor, 0) over [low, high] by the midpoint rule."""
    fpr, tpr = roc_corners(y, scores)
    edges = np.linspace(low, high, cells + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    right = np.clip(np.searchsorted(fpr, middle, side="right"), 1, len(fpr) - 1)
    x0, x1, y0, y1 = fpr[right - 1], fpr[right], tpr[right - 1], tpr[right]
    curve = y0 + (y1 - y0) * (middle - x0) / np.where(x1 > x0, x1 - x0, 1.0)
    return float(np.maximum(curve - floor, 0).mean() * (high - low))


def ranked_labels(y, scores) -> np.ndarray:
    """Labels of a list without ties, highest score first."""
    assert len(set(np.asarray(scores).tolist())) == len(scores)
    return np.asarray(y)[np.argsort(-np.asarray(scores))]


def pair_partial_auc(y, scores, first, last, skip_positives=0) -> float:
    """Share of right pairs among the negatives ranked first+1..last and the lower positives.

    The positives are those left when the `skip_positives` highest are taken away.
    """
    labels = ranked_labels(y, scores)
    positives = np.flatnonzero(labels == 1)[skip_positives:]
    negatives = np.flatnonzero(labels == 0)[first:last]
    return float(np.mean([[i < j for j in negatives] for i in positives]))


def pair_local_auc(y, scores, size) -> float:
    """Share of all pairs whose positive is in the first `size` rows and precedes the negative."""
    labels = ranked_labels(y, scores)
    positives, negatives = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    return float(np.mean([[i < min(j, size) for j in negatives] for i in positives]))


def recall_precision_area(y, scores) -> float:
    """Area under the hyperbolas between thresholds by numerical integration."""
    from scipy.integrate import quad

    y, scores = np.asarray(y), np.asarray(scores)
    area, tp, fp = 0.0, 0.0, 0.0
    for threshold in sorted(set(scores.tolist()), reverse=True):
        here = scores == threshold
        up, across = float((here & (y == 1)).sum()), float((here & (y == 0)).sum())
        if up > 0:
            slope = across / up

            def precision(t, tp=tp, fp=fp, slope=slope):
                positives, negatives = tp + t, fp + slope * t
                return positives / (positives + negatives) if t > 0 else 1 / (1 + slope)

            area += quad(precision, 0, up, epsabs=1e-12, epsrel=1e-12)[0]
        tp, fp = tp + up, fp + across
    return area / tp


def class_auc(y, scores, kind) -> dict[float, float]:
    """AUC of each class by pairs; classes that cannot be compared are left out."""
    y = np.asarray(y)
    areas = {}
    for c in np.unique(y):
        positive = y >= c if kind == "ordered" else y == c
        if 0 < positive.sum() < len(y):
            areas[float(c)] = pair_auc(positive, scores)
    return areas


def multiclass_auc(y, scores, kind, shares=None) -> float:
    """Mean of the AUC of the classes, weighted by their shares."""
    areas = class_auc(y, scores, kind)
    shares = shares or {c: float(np.mean(np.asarray(y) == c)) for c in areas}
    return sum(shares[c] * a for c, a in areas.items()) / sum(shares[c] for c in areas)


def multiclass_precision(labels, average) -> float:
    """Precision per class of an ordered list whose stretches go to the classes in order."""
    ideal = sorted(labels, reverse=True)
    right = [a == b for a, b in zip(labels, ideal, strict=True)]
    if average == "micro":
        return float(np.mean(right))
    of_class = [
        np.mean([hit for hit, owner in zip(right, ideal, strict=True) if owner == c])
        for c in sorted(set(labels))
    ]
    return float(np.mean(of_class))


def delong(y, scores_a, scores_b) -> tuple[np.ndarray, np.ndarray]:
    """AUCs of two lists of scores and their covariance from all pairs."""
    y = np.asarray(y).astype(bool)
    kernels = []
    for scores in (np.asarray(scores_a), np.asarray(scores_b)):
        gap = scores[y][:, None] - scores[~y][None, :]
        kernels.append((gap > 0) + 0.5 * (gap == 0))
    areas = np.array([kernel.mean() for kernel in kernels])
    positives = np.cov(np.stack([kernel.mean(axis=1) for kernel in kernels]))
    negatives = np.cov(np.stack([kernel.mean(axis=0) for kernel in kernels]))
    return areas, positives / y.sum() + negatives / (~y).sum()


def mid_ranks(scores) -> np.ndarray:
    """1 + rows above + half of the other rows at the same score."""
    scores = np.asarray(scores)
    return np.array([1 + (scores > s).sum() + ((scores == s).sum() - 1) / 2 for s in scores])


def kendall(scores_a, scores_b) -> float:
    """Share of pairs in opposite orders, those tied in one list only counting half."""
    total, pairs = 0.0, list(itertools.combinations(range(len(scores_a)), 2))
    for i, j in pairs:
        a, b = np.sign(scores_a[i] - scores_a[j]), np.sign(scores_b[i] - scores_b[j])
        total += 1.0 if a * b < 0 else 0.5 * ((a == 0) != (b == 0))
    return total / len(pairs)


def holm(p_values):
    """Holm's adjusted p-values, straight from the definition."""
    count = len(p_values)
    ranked = sorted(range(count), key=lambda i: p_values[i])
    answer = [0.0] * count
    for place, i in enumerate(ranked):
        steps = [(count - k) * p_values[ranked[k]] for k in range(place + 1)]
        answer[i] = min(1.0, max(steps))
    return answer
