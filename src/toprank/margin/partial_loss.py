"""The loss over positives and the negatives ranked in a range, and its derivative by the scores.

    D(f) = 1/(W+ (b - a) W-) sum over positives i, negatives j of w_i u_j loss(f_i - f_j)

where W+ and W- are the weights of the classes and u_j is the part of the weight of negative j whose
cumulative weight, counted from the highest score, lies between a W- and b W-. For a = 0 this is the
largest value that any choice of negatives of total weight b W- gives (Rao & Acharyya 2020, eq. 7), so it
is convex in the scores for every convex decreasing loss. For a > 0 it is the difference of two such
functions: (b - a) D[a, b] = b D[0, b] - a D[0, a].

The compiled loops at the end take float64 arrays. "Ranked" means from the highest score down. Nothing
depends on the order of rows with equal scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from toprank.pairs import range_weights, sigmoid_sums, softplus_sums
from toprank.ranking import RankedQueries, descending_order

PairSums = tuple[float, np.ndarray, np.ndarray]

# Pair sums take the scores and weights w_i of the positives, then the scores and weights u_j of the
# negatives, both from the highest score down; they return the sum and its derivatives by both scores.


def exponential_pair_sums(
    above: np.ndarray, w: np.ndarray, below: np.ndarray, u: np.ndarray
) -> PairSums:
    """Sum over pairs of w_i u_j exp(f_j - f_i), which factorises, and its derivatives."""
    lowest, highest = above[-1], below[0]
    positive = w * np.exp(lowest - above)
    negative = u * np.exp(below - highest)
    scale = np.exp(min(highest - lowest, 600.0))  # finite, so that a line search can turn back
    total = scale * positive.sum() * negative.sum()
    return total, -scale * negative.sum() * positive, scale * positive.sum() * negative


def logistic_pair_sums(
    above: np.ndarray, w: np.ndarray, below: np.ndarray, u: np.ndarray
) -> PairSums:
    """Sum over pairs of w_i u_j log(1 + exp(f_j - f_i)), and its derivatives."""
    losses = softplus_sums(above, below, u)
    up, down = sigmoid_sums(above, below, u)[0], sigmoid_sums(-below, -above, w)[0]
    return float(w @ losses), -w * up, u * down


#: The losses of a pair as functions of its margin, with their pair sums (None for the hinge: compiled).
SURROGATES: dict[str, Callable[..., PairSums] | None] = {
    "hinge": None,
    "logistic": logistic_pair_sums,
    "exponential": exponential_pair_sums,
}


@dataclass(frozen=True)
class PartialLoss:
    """Partial-AUC loss of a list of scores.

    `weight` counts copies of each row, `fpr` is the range (a, b) and `surrogate` the loss of one pair.
    `structural` takes the bound of the structural SVM (Narasimhan & Agarwal 2013) in place of the hinge
    itself. With queries the loss is the mean over those with both classes (hinge only).

    Examples
    --------
    >>> import numpy as np
    >>> loss = PartialLoss(np.array([True, False, False]), np.ones(3), (0.0, 0.5))
    >>> value, gradient = loss(np.array([0.5, 0.25, -3.0]))
    >>> value, gradient.tolist()
    (0.75, [-1.0, 1.0, 0.0])
    """

    positive: np.ndarray
    weight: np.ndarray
    fpr: tuple[float, float]
    surrogate: str = "hinge"
    structural: bool = False
    qid: np.ndarray | None = None

    def over(self, fpr: tuple[float, float]) -> PartialLoss:
        """Return the same loss over another range."""
        return replace(self, fpr=fpr)

    @property
    def at_zero(self) -> float:
        """The loss of scores that are all equal."""
        return float(np.log(2.0)) if self.surrogate == "logistic" else 1.0

    def __call__(self, scores: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its derivative by every score."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        pair_sums = SURROGATES[self.surrogate]
        if pair_sums is None:
            ranked = RankedQueries.of(scores, self.qid)
            return range_loss(
                scores, self.positive, self.weight, ranked.order, ranked.starts, *self.fpr,
                self.structural,
            )  # fmt: skip
        above = np.flatnonzero(self.positive)
        below = np.flatnonzero(~self.positive)
        above = above[descending_order(scores[above])]
        below = below[descending_order(scores[below])]
        negatives = self.weight[below].sum()
        low, high = self.fpr
        end = high * negatives if high < 1.0 else np.inf
        inside = range_weights(scores[below], self.weight[below], low * negatives, end)
        used = slice(*np.flatnonzero(inside)[[0, -1]] + [0, 1])
        pairs = self.weight[above].sum() * negatives * (high - low)
        total, up, down = pair_sums(
            scores[above], self.weight[above], scores[below[used]], inside[used]
        )
        gradient = np.zeros(len(scores))
        gradient[above] = up / pairs
        gradient[below[used]] = down / pairs
        return total / pairs, gradient


# -- compiled loops ----------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def range_loss(scores, positive, weights, order, starts, low, high, structural):
    """Mean over queries of the hinge loss (or its structural bound) in a range of the negatives.

    `order` ranks the rows inside each query, `starts` says where each query begins in it. `low`
    and `high` are shares of the weight of the negatives. Queries without both classes are left
    out. Returns the mean and its derivative by the score of every row.
    """
    gradient = np.zeros(len(scores))
    total, n_queries = 0.0, 0
    for q in range(len(starts) - 1):
        rows = order[starts[q] : starts[q + 1]]
        above = rows[positive[rows]]
        below = rows[~positive[rows]]
        if len(above) == 0 or len(below) == 0:
            continue
        n_queries += 1
        negatives = weights[below].sum()
        pairs = weights[above].sum() * negatives * (high - low)
        # the end of the list is the end of the range, whatever the rounding of the weights
        end = high * negatives if high < 1.0 else np.inf
        if structural:
            value, up, down = most_violated_ordering(
                scores[above], weights[above], scores[below], weights[below], low * negatives, end
            )
        else:
            inside = range_weights(scores[below], weights[below], low * negatives, end)
            value, up, down = hinge_pair_sums(scores[above], weights[above], scores[below], inside)
        total += value / pairs
        gradient[above] = up / pairs
        gradient[below] = down / pairs
    return total / n_queries, gradient / n_queries


@njit(cache=True, nogil=True)
def hinge_pair_sums(positive_scores, positive_weights, negative_scores, negative_weights):
    """Sum over pairs of w_i u_j max(0, 1 - f_i + f_j), and its derivatives, by two pointers.

    Both lists are ranked; the cost is linear in their lengths.
    """
    n_positives, n_negatives = len(positive_scores), len(negative_scores)
    positive_gradient = np.zeros(n_positives)
    negative_gradient = np.zeros(n_negatives)
    total, weight, moment = 0.0, 0.0, 0.0
    j = 0
    for i in range(n_positives):
        reach = positive_scores[i] - 1.0
        while j < n_negatives and negative_scores[j] > reach:
            weight += negative_weights[j]
            moment += negative_weights[j] * negative_scores[j]
            j += 1
        total += positive_weights[i] * (moment - weight * reach)
        positive_gradient[i] = -positive_weights[i] * weight
    weight = 0.0
    i = n_positives - 1
    for j in range(n_negatives - 1, -1, -1):
        # the same comparison as above, so that the two gradients count the same pairs
        while i >= 0 and negative_scores[j] > positive_scores[i] - 1.0:
            weight += positive_weights[i]
            i -= 1
        negative_gradient[j] = negative_weights[j] * weight
    return total, positive_gradient, negative_gradient


@njit(cache=True, nogil=True)
def most_violated_ordering(
    positive_scores, positive_weights, negative_scores, negative_weights, low, high
):
    """Most violated ordering of a structural SVM for the partial AUC.

    Maximises, over orderings pi (pi_ij = 1 when negative j stands above positive i),

        sum_ij w_i v_j pi_ij (c_j - f_i + f_j),

    c_j = 1 where the cumulative weight of the negatives lies between `low` and `high`, else 0. The
    negatives keep their order by score, so the row of each positive is a prefix of them (Narasimhan &
    Agarwal 2013). Both lists are ranked. Negatives are cut into pieces of equal score that lie before,
    in or behind the range.

    Returns the maximum and its derivatives by the scores of the positives and of the negatives.
    """
    values, group_weights, ends = _tie_groups(negative_scores, negative_weights)
    scores, weights, groups, before, upto = _pieces(values, group_weights, low, high)
    prefixes, maxima, cumulative = _best_prefixes(positive_scores, scores, weights, before, upto)
    total = 0.0
    positive_gradient = np.empty(len(positive_scores))
    entered = np.zeros(len(scores) + 1)  # weight of the positives whose prefix ends at each piece
    for i in range(len(positive_scores)):
        total += positive_weights[i] * maxima[i]
        positive_gradient[i] = -positive_weights[i] * cumulative[prefixes[i]]
        entered[prefixes[i]] += positive_weights[i]
    share = np.zeros(len(values))  # weight of the positives below each group, averaged over pieces
    below = 0.0
    for k in range(len(scores) - 1, -1, -1):
        below += entered[k + 1]
        share[groups[k]] += below * weights[k] / group_weights[groups[k]]
    negative_gradient = np.empty(len(negative_scores))
    start = 0
    for g in range(len(values)):
        for j in range(start, ends[g]):
            negative_gradient[j] = negative_weights[j] * share[g]
        start = ends[g]
    return total, positive_gradient, negative_gradient


@njit(cache=True, nogil=True)
def _best_prefixes(positive_scores, scores, weights, before, upto):
    """For each positive, how many of the pieces stand above it in the most violated ordering.

    A prefix is either short, ending before the range, where a piece enters if f_j >= f_i; or long: it
    takes all of that and goes on inside the range while f_j >= f_i - 1 and, if it takes the whole range,
    behind it while f_j >= f_i. As the scores of the positives fall, all three ends only move on.

    Returns the length of each prefix, the maximum it gives, and the cumulative weight of the pieces.
    """
    n_pieces, n_positives = len(scores), len(positive_scores)
    weight, moment = np.zeros(n_pieces + 1), np.zeros(n_pieces + 1)
    for k in range(n_pieces):
        weight[k + 1] = weight[k] + weights[k]
        moment[k + 1] = moment[k] + weights[k] * scores[k]
    prefixes, maxima = np.empty(n_positives, np.int64), np.empty(n_positives)
    short, inside, behind = 0, before, upto
    for i in range(n_positives):
        score = positive_scores[i]
        while short < before and scores[short] >= score:
            short += 1
        while inside < upto and scores[inside] >= score - 1.0:
            inside += 1
        while behind < n_pieces and scores[behind] >= score:
            behind += 1
        long = behind if behind > upto and inside == upto else inside
        best_short = moment[short] - score * weight[short]
        best_long = moment[long] - score * weight[long]
        best_long += weight[min(long, upto)] - weight[before]
        take_long = best_long > best_short
        prefixes[i] = long if take_long else short
        maxima[i] = best_long if take_long else best_short
    return prefixes, maxima, weight


@njit(cache=True, nogil=True)
def _tie_groups(scores, weights):
    """Distinct scores of a ranked list, the weight of each, and where each group ends."""
    n = len(scores)
    values, group_weights = np.empty(n), np.empty(n)
    ends = np.empty(n, np.int64)
    g = -1
    for j in range(n):
        if g < 0 or scores[j] != values[g]:
            g += 1
            values[g] = scores[j]
            group_weights[g] = 0.0
        group_weights[g] += weights[j]
        ends[g] = j + 1
    return values[: g + 1], group_weights[: g + 1], ends[: g + 1]


@njit(cache=True, nogil=True)
def _pieces(values, group_weights, low, high):
    """Cut the tie groups at the two ends of the range.

    Returns the score, weight and group of every piece, and how many pieces lie before the range
    and up to its end.
    """
    n = len(values)
    scores, weights = np.empty(n + 2), np.empty(n + 2)
    groups = np.empty(n + 2, np.int64)
    k, before, upto = 0, 0, 0
    above = 0.0
    for g in range(n):
        left = group_weights[g]
        for zone in range(3):
            end = low if zone == 0 else (high if zone == 1 else np.inf)
            take = min(left, end - above)
            if take <= 0.0:
                continue
            scores[k], weights[k], groups[k] = values[g], take, g
            k += 1
            above += take
            left -= take
            if zone == 0:
                before = k
            if zone <= 1:
                upto = k
    return scores[:k], weights[:k], groups[:k], before, max(before, upto)
