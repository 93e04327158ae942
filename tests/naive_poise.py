"""Slow, literal twins of the partial-AUC losses, orderings, steps and paths."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from toprank.margin.partial_solvers import proportional_draw

LOSSES = {
    "hinge": lambda margin: max(0.0, 1.0 - margin),
    "logistic": lambda margin: float(np.logaddexp(0.0, -margin)),
    "exponential": lambda margin: float(np.exp(-margin)),
}

SLOPES = {
    "hinge": lambda margin: 1.0 if margin < 1.0 else 0.0,
    "logistic": lambda margin: 1.0 / (1.0 + np.exp(margin)),
    "exponential": lambda margin: float(np.exp(-margin)),
}


def range_weights(scores: np.ndarray, weights: np.ndarray, low: float, high: float) -> np.ndarray:
    """Part of each negative's weight between two shares of the total, ties in the order given."""
    total = weights.sum()
    inside = np.zeros(len(scores))
    above = 0.0
    for j in sorted(range(len(scores)), key=lambda j: -scores[j]):
        begin, end = above, above + weights[j]
        inside[j] = max(0.0, min(end, high * total) - max(begin, low * total))
        above = end
    return inside


def partial_loss(
    positive: np.ndarray,
    scores: np.ndarray,
    weights: np.ndarray,
    fpr: tuple[float, float],
    surrogate: str = "hinge",
) -> float:
    """The loss over positives and the negatives in the range, pair by pair."""
    low, high = fpr
    above, below = np.flatnonzero(positive), np.flatnonzero(~positive)
    inside = range_weights(scores[below], weights[below], low, high)
    total = 0.0
    for i in above:
        for j, u in zip(below, inside, strict=True):
            total += weights[i] * u * LOSSES[surrogate](scores[i] - scores[j])
    return total / (weights[above].sum() * weights[below].sum() * (high - low))


def structural_loss(
    positive_scores: np.ndarray,
    negative_scores: np.ndarray,
    fpr: tuple[float, float],
    copies: int = 1,
) -> float:
    """Maximum over all orderings of Delta(pi) minus the weighted sum of margins.

    Each negative is `copies` rows of weight 1/copies, so that fractional ends of the range fall
    between rows. For each order of the negatives and each place of each positive among them, the
    value is computed literally.
    """
    low, high = fpr
    parts = np.repeat(negative_scores, copies)
    n_parts, n_positives = len(parts), len(positive_scores)
    in_range = np.array([low * n_parts <= k < high * n_parts for k in range(n_parts)], float)
    best = -np.inf
    for order in set(permutations(parts)):
        total = 0.0
        for score in positive_scores:
            # the positive stands below the first r negatives of this order
            values = [
                sum(in_range[k] - (score - order[k]) for k in range(r)) for r in range(n_parts + 1)
            ]
            total += max(values)
        best = max(best, total)
    return best / (n_positives * n_parts * (high - low))


def all_orderings(n_positives: int, n_negatives: int) -> list[tuple[np.ndarray, list[int]]]:
    """Every matrix pi that an order of the rows gives, with the order of its negatives."""
    rows = [("+", i) for i in range(n_positives)] + [("-", j) for j in range(n_negatives)]
    found = []
    for order in permutations(rows):
        matrix = np.zeros((n_positives, n_negatives))
        negatives = [number for kind, number in order if kind == "-"]
        for place, (kind, i) in enumerate(order):
            if kind == "+":
                for other, j in order[:place]:
                    if other == "-":
                        matrix[i, j] = 1.0
        found.append((matrix, negatives))
    return found


def ordering_loss(matrix: np.ndarray, negatives: list[int], fpr: tuple[float, float]) -> float:
    """One minus the partial AUC of an ordering, the ends of the range at whole negatives."""
    low, high = fpr
    n = matrix.shape[1]
    ranked = negatives[round(low * n) : round(high * n)]
    return float(matrix[:, ranked].sum() / (matrix.shape[0] * n * (high - low)))


def pegasos_pass(
    X: np.ndarray,
    negatives: np.ndarray,
    positives: np.ndarray,
    reservoir: np.ndarray,
    places: tuple[int, int],
    loss: str,
    strength: float,
    batch: int,
    partners: int,
    reach: float,
) -> tuple[np.ndarray, np.ndarray]:
    """One pass of the stochastic solver from w = 0, written out; w and its average."""
    k_low, k_high = places
    w = np.zeros(X.shape[1])
    average, gathered, history = w.copy(), [], []
    t, squares, place = 0, 0.0, 0
    for row in negatives:
        estimate = np.sort([X[r] @ w for r in reservoir])[::-1]
        lowest = estimate[k_high - 1] if k_high else -np.inf
        highest = estimate[k_low - 1] if k_low else np.inf
        if not lowest <= X[row] @ w <= highest:
            continue
        gathered.append(row)
        if len(gathered) < batch:
            continue
        gradient = strength * w
        chosen = [positives[(place + p) % len(positives)] for p in range(partners)]
        place += partners
        for i in chosen:
            for j in gathered:
                slope = SLOPES[loss]((X[i] - X[j]) @ w)
                gradient = gradient + slope * (X[j] - X[i]) / (batch * partners)
        gathered = []
        t += 1
        squares += gradient @ gradient
        w = w - min(reach / np.sqrt(squares), 1.0 / (strength * t)) * gradient
        reach = max(reach, float(np.linalg.norm(w)))
        history.append(w)
        average = average + 4.0 / (t + 3.0) * (w - average)
    return w, average


def walk(tree: Any, row: np.ndarray) -> tuple[list[int], int]:
    """The nodes below the root that a row passes, and the sign of its leaf."""
    node, passed = 0, []
    while tree.feature[node] >= 0:
        goes_left = row[tree.feature[node]] <= tree.threshold[node]
        node = int(tree.left[node] if goes_left else tree.right[node])
        passed.append(node)
    return passed, int(tree.sign[node])


def signed_shared_path(tree: Any, first: np.ndarray, second: np.ndarray) -> int:
    """Number of edges two rows share from the root, with the product of the signs of their leaves."""
    (path, sign), (other, other_sign) = walk(tree, first), walk(tree, second)
    shared = 0
    for a, b in zip(path, other, strict=False):
        if a != b:
            break
        shared += 1
    return sign * other_sign * shared


def algorithm_1(
    X: np.ndarray,
    positive: np.ndarray,
    rate: float,
    strength: float,
    random: np.random.Generator,
    n_epochs: int,
) -> np.ndarray:
    """Algorithm 1 of Rao & Acharyya (2020), with the hinge: all negatives are the sample."""
    w = random.uniform(-1.0, 1.0, X.shape[1])
    above, below = np.flatnonzero(positive), np.flatnonzero(~positive)
    proportional_draw(np.ones(len(below)), len(below), random)  # the sample
    first = below[proportional_draw(np.ones(len(below)), len(below), random)]
    proportional_draw(np.ones(len(above)), len(above), random)
    k, t = round(rate * (len(below) + 1)), 0
    for _ in range(n_epochs):
        for row in random.permutation(first):
            if X[row] @ w < sorted(X[other] @ w for other in below)[-k]:
                continue
            t += 1
            step = strength * w
            for other in above:
                if X[other] @ w - X[row] @ w < 1.0:
                    step = step + (X[row] - X[other]) / len(above)
            w = w - step / (strength * t)
    return w
