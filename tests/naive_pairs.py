"""Readable twins of the pair sums and of the objectives: every pair written out, no sorting tricks.

Losses are of one list without weights; `loss_of_copies` brings weights and queries in by their
definition: a weight is a number of copies, and a list of lists is the mean over those with something
to rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np


def sigmoid(t):
    return np.where(t >= 0, 1.0, np.exp(-np.abs(t))) / (1.0 + np.exp(-np.abs(t)))


def softplus(t):
    return np.maximum(t, 0.0) + np.log1p(np.exp(-np.abs(t)))


# ---------------------------------------------------------------------------------- pair sums


def pair_sums(kernel: Callable, targets, sources, weights):
    """Sum over sources of weight · kernel(source - target), pair by pair."""
    difference = np.asarray(sources)[None, :] - np.asarray(targets)[:, None]
    return kernel(difference) @ np.asarray(weights)


# -------------------------------------------------------------------------------------- losses


def logistic(y, f):
    return float(np.sum(softplus(-(2 * y - 1) * f)))


def ap_exp(y, f):
    e = np.exp(f - f.max())
    return float(e[y == 0].sum() / e.sum())


def ap_exp_log(y, f):
    return float(-np.log(1.0 - ap_exp(y, f)))


def ap_softmax(y, f):
    q = np.exp(f - f.max())
    return float(-np.mean(np.log(q / q.sum())[y == 1]))


def ap_sigmoid(y, f, alpha=1.0, self_term=1.0):
    precisions = []
    for i in np.flatnonzero(y):
        above = sigmoid(alpha * (f - f[i]))
        above[i] = self_term
        precisions.append(above[y == 1].sum() / above.sum())
    return 1.0 - float(np.mean(precisions))


def dcg(gains_in_order):
    return sum(g / np.log2(1 + rank) for rank, g in enumerate(gains_in_order, start=1))


def ndcg_sigmoid(y, f, alpha=1.0):
    gains = 2.0**y - 1.0
    total = 0.0
    for i in range(len(y)):
        rank = 1.0 + sum(sigmoid(alpha * (f[j] - f[i])) for j in range(len(y)) if j != i)
        total += gains[i] / np.log2(1.0 + rank)
    return 1.0 - total / dcg(sorted(gains, reverse=True))


def pairwise(y, f, phi):
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    return float(np.mean([phi(f[j] - f[i]) for i, j in pairs]))


def pnorm_push(y, f, p):
    sums = [np.sum(np.exp(f[k] - f[y == 1])) for k in np.flatnonzero(y == 0)]
    return float(np.log(np.sum(np.power(sums, p))))


def pauc(y, f, a, b, phi):
    """Negatives in descending order; the one at place k (from 1) covers the range (k-1, k]."""
    negatives = sorted(f[y == 0], reverse=True)
    n = len(negatives)
    cover = [max(0.0, min(k + 1, b * n) - max(k, a * n)) for k in range(n)]
    total = sum(c * phi(g - s) for g, c in zip(negatives, cover, strict=True) for s in f[y == 1])
    return float(total / (np.count_nonzero(y) * (b - a) * n))


def hinge(t):
    return max(0.0, 1.0 + t)


# --------------------------------------------------------------- metrics of an order without ties


def auc(labels):
    """AUC of 0/1 labels in ranked order."""
    pairs = [(i, j) for i, a in enumerate(labels) for j, b in enumerate(labels) if a > b]
    return float(np.mean([i < j for i, j in pairs]))


def average_precision(labels):
    ranks = [k for k, label in enumerate(labels, start=1) if label]
    return float(np.mean([sum(r <= k for r in ranks) / k for k in ranks]))


def ndcg(labels, k=None):
    gains = [2.0**label - 1.0 for label in labels]
    return dcg(gains[:k]) / dcg(sorted(gains, reverse=True)[:k])


def reciprocal_rank(labels):
    return 1.0 / (1 + next(k for k, label in enumerate(labels) if label))


def precision_at(labels, k=None):
    k = int(np.sum(labels)) if k is None else k
    return float(np.sum(labels[:k])) / k


def mauc_ordered(labels, shares=None, area=None):
    labels = np.asarray(labels)
    area = auc if area is None else area
    levels = [c for c in np.unique(labels) if c >= 1]
    shares = {c: np.mean(labels == c) for c in levels} if shares is None else shares
    parts = [
        shares[c] * area((labels >= c).astype(int)) for c in levels if 0 < np.sum(labels >= c) < len(labels)
    ]  # fmt: skip
    return sum(parts) / sum(shares.values())


def partial_auc(labels, a, b):
    """Area of the ROC staircase between two false positive rates, over their distance."""
    labels = np.asarray(labels)
    n_negatives = np.sum(labels == 0)
    area = 0.0
    for place in np.flatnonzero(labels == 0):  # the step of one negative along the axis
        k = np.sum(labels[:place] == 0)
        width = min((k + 1) / n_negatives, b) - max(k / n_negatives, a)
        area += max(width, 0.0) * np.sum(labels[:place]) / np.sum(labels)
    return area / (b - a)


def mauc_one_vs_rest(labels):
    labels = np.asarray(labels)
    return sum(np.mean(labels == c) * auc((labels == c).astype(int)) for c in np.unique(labels))


def swap_matrix(metric: Callable, y, f):
    """|change of the metric| for every swap of two rows with different labels (no ties)."""
    order = np.argsort(-f)
    labels = list(y[order])
    before = metric(labels)
    matrix = np.zeros((len(y), len(y)))
    for a, b in itertools.combinations(range(len(y)), 2):
        if labels[a] != labels[b]:
            swapped = list(labels)
            swapped[a], swapped[b] = swapped[b], swapped[a]
            change = abs(metric(swapped) - before)
            matrix[order[a], order[b]] = matrix[order[b], order[a]] = change
    return matrix


def lambda_loss(deltas, y, f):
    """Sum over pairs of |Delta| · log(1 + exp(-(better - worse)))."""
    better = y[:, None] > y[None, :]
    return float(np.sum(better * deltas * softplus(f[None, :] - f[:, None])))


def lambda_gradient_hessian(deltas, y, f):
    better = y[:, None] > y[None, :]
    s = sigmoid(f[None, :] - f[:, None])  # of the worse row (column) over the better (row)
    force, curvature = better * deltas * s, better * deltas * s * (1 - s)
    return (
        force.sum(axis=0) - force.sum(axis=1),
        curvature.sum(axis=0) + curvature.sum(axis=1),
    )


# --------------------------------------------------------------------- weights, queries, derivatives


def loss_of_copies(loss: Callable, y, f, weight=None, qid=None, *, average: bool = True):
    """Mean of `loss` over queries, each row repeated by its (whole) weight.

    Queries in which all labels are equal leave nothing to rank and are left out.
    """
    weight = np.ones(len(y), int) if weight is None else np.asarray(weight, int)
    qid = np.zeros(len(y), int) if qid is None else np.asarray(qid)
    y, f, qid = np.repeat(y, weight), np.repeat(f, weight), np.repeat(qid, weight)
    losses = [
        loss(y[qid == q], f[qid == q])
        for q in np.unique(qid)
        if len(np.unique(y[qid == q])) > 1 or not average
    ]
    return (float(np.mean(losses)) if average else float(np.sum(losses))) if losses else 0.0


def numeric_gradient(loss: Callable, f, step=1e-5):
    """Central differences of fourth order."""
    gradient = np.empty(len(f))
    for k in range(len(f)):
        values = []
        for m in (-2, -1, 1, 2):
            moved = np.array(f, dtype=float)
            moved[k] += m * step
            values.append(loss(moved))
        gradient[k] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    return gradient


def numeric_curvature(loss: Callable, f, step=1e-3):
    """Second derivatives along each coordinate."""
    middle = loss(np.array(f, dtype=float))
    curvature = np.empty(len(f))
    for k in range(len(f)):
        ends = []
        for m in (-1, 1):
            moved = np.array(f, dtype=float)
            moved[k] += m * step
            ends.append(loss(moved))
        curvature[k] = (ends[0] - 2 * middle + ends[1]) / step**2
    return curvature
