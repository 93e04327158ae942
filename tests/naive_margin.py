"""Plain versions of the margin methods: pairs in lists, refits in loops."""

from __future__ import annotations

import numpy as np


def pair_list(
    y: np.ndarray, weight: np.ndarray, qid: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Higher row, lower row and weight of every pair of one query with different labels."""
    qid = np.zeros(len(y)) if qid is None else qid
    higher, lower = np.nonzero((y[:, None] > y[None, :]) & (qid[:, None] == qid[None, :]))
    return higher, lower, weight[higher] * weight[lower]


def bent_hinge(r: np.ndarray, bend: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The clipped parabola of the pair kernels, its derivative, and where it is curved."""
    loss, slope = np.zeros_like(r), np.zeros_like(r)
    curved = (r > 0) & (r < bend)
    loss[curved], slope[curved] = r[curved] ** 2 / 2, r[curved]
    straight = r >= bend
    loss[straight], slope[straight] = bend * (r[straight] - bend / 2), bend
    return loss, slope, curved


def laplacian_of_pairs(
    n_rows: int, higher: np.ndarray, lower: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Sum over pairs of weight·(e_i - e_j)(e_i - e_j)'."""
    out = np.zeros((n_rows, n_rows))
    for i, j, w in zip(higher, lower, weight, strict=True):
        out[i, i] += w
        out[j, j] += w
        out[i, j] -= w
        out[j, i] -= w
    return out


def rank_svm_objective(
    v: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    qid: np.ndarray | None,
    C: float,
    power: int,
) -> float:
    """|v|²/2 + C · sum over pairs of max(0, 1 - v·(x_i - x_j))^power."""
    higher, lower, pair_weight = pair_list(y, weight, qid)
    r = 1 - (X[higher] - X[lower]) @ v
    return float(0.5 * v @ v + C * pair_weight @ np.maximum(r, 0) ** power)


def rank_ls_pairs(
    y: np.ndarray, weight: np.ndarray, qid: np.ndarray | None, pairs: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each unordered pair of one query once; those with different labels only for "cross"."""
    qid = np.zeros(len(y)) if qid is None else qid
    first, second = np.triu_indices(len(y), k=1)
    kept = qid[first] == qid[second]
    if pairs == "cross":
        kept &= y[first] != y[second]
    first, second = first[kept], second[kept]
    return first, second, weight[first] * weight[second]


def rank_ls(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    qid: np.ndarray | None,
    alpha: float,
    pairs: str,
) -> np.ndarray:
    """Ridge regression of the differences of labels on the differences of rows."""
    first, second, pair_weight = rank_ls_pairs(y, weight, qid, pairs)
    root = np.sqrt(pair_weight)
    D = np.vstack([root[:, None] * (X[first] - X[second]), np.sqrt(alpha) * np.eye(X.shape[1])])
    t = np.concatenate([root * (y[first] - y[second]), np.zeros(X.shape[1])])
    return np.linalg.lstsq(D, t, rcond=None)[0]


def rank_ls_row_errors(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    qid: np.ndarray | None,
    alpha: float,
    pairs: str,
) -> float:
    """Refit without each row (at most one unit of its weight); its error against its partners' mean."""
    queries = np.zeros(len(y)) if qid is None else qid
    total = 0.0
    for i in range(len(y)):
        rest = weight.copy()
        rest[i] -= min(weight[i], 1.0)
        partners = queries == queries[i]
        if pairs == "cross":
            partners &= y != y[i]
        mass = rest[partners].sum()
        if mass <= 0:
            continue
        v = rank_ls(X, y, rest, qid, alpha, pairs)
        share = rest[partners] / mass
        error = (y[i] - share @ y[partners]) - (X[i] - share @ X[partners]) @ v
        total += weight[i] * mass * error**2
    return total


def rank_ls_query_errors(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    qid: np.ndarray,
    alpha: float,
    pairs: str,
) -> float:
    """Refit without each query; squared errors over its pairs."""
    total = 0.0
    for query in np.unique(qid):
        inside = qid == query
        v = rank_ls(X[~inside], y[~inside], weight[~inside], qid[~inside], alpha, pairs)
        first, second, pair_weight = rank_ls_pairs(y[inside], weight[inside], None, pairs)
        rows, labels = X[inside], y[inside]
        errors = (labels[first] - labels[second]) - (rows[first] - rows[second]) @ v
        total += float(pair_weight @ errors**2)
    return total


def logistic_objective(
    coefficients: np.ndarray, X: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> float:
    """|v|²/2 + sum of weight·log(1 + exp(-s(Xv + b))); the last coefficient is b."""
    margin = (2 * y - 1) * (X @ coefficients[:-1] + coefficients[-1])
    norm = 0.5 * coefficients[:-1] @ coefficients[:-1]
    return float(norm + weight @ np.log1p(np.exp(-margin)))
