"""What RankLS would have got wrong on rows or queries it had not seen, without refitting.

Write A = alpha·I + X'LX, b = X'Ly, coefficients A⁻¹b.

A query left out. With its rows X_q, Laplacian L_q and errors e = y - f of the full fit, the errors of
the fit without it are (I - G L_q)⁻¹ e, G = X_q A⁻¹ X_q' (Woodbury), and their pairs cost e'L_q e.

A row left out. Taking a weight d from row i of query q (weight W_q, scatter S_q about its mean, z the
row minus that mean) changes X'LX by -d·S_q - d·W_q·zz', since the scatter falls by d·W_q/(W_q - d)·zz'
and its factor W_q by d. With pairs of different labels only, the same terms of the row's own group
come back with the other sign. The first term is the same for all rows of a group, so one
eigendecomposition a group serves its rows and every alpha; the rest is a correction of rank two. The
error of the row is that of its score relative to the mean of the rows it is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from toprank.margin._laplacian import PairLaplacian
from toprank.margin._matrix import column_block

__all__ = ["query_errors", "row_errors"]

_ROWS_AT_A_TIME = 8192


def query_errors(X: Any, y: np.ndarray, laplacian: PairLaplacian, alphas: np.ndarray) -> np.ndarray:
    """Summed squared errors over the pairs of each query left out in turn, for each alpha."""
    gram, right = laplacian.gram(X, y)
    values, vectors = linalg.eigh(gram)
    values, right = np.maximum(values, 0.0), vectors.T @ right
    total = np.zeros(len(alphas))
    for rows in _rows_by(laplacian.query):
        part = _part(laplacian, rows)
        Z = column_block(X[rows], 0, X.shape[1]) @ vectors
        total += _one_query(Z, y[rows], part, values, right, alphas)
    return total


def _part(laplacian: PairLaplacian, rows: np.ndarray) -> PairLaplacian:
    """The Laplacian of one query alone."""
    groups, group = np.unique(laplacian.group[rows], return_inverse=True)
    weight = laplacian.weight[rows]
    return PairLaplacian(
        weight=weight,
        query=np.zeros(len(rows), np.int64),
        group=group,
        query_weight=np.array([weight.sum()]),
        group_weight=laplacian.group_weight[groups],
        group_query=np.zeros(len(groups), np.int64),
        cross=laplacian.cross,
    )


def _one_query(
    Z: np.ndarray,
    y: np.ndarray,
    part: PairLaplacian,
    values: np.ndarray,
    right: np.ndarray,
    alphas: np.ndarray,
) -> np.ndarray:
    """Errors of one query left out; `Z` are its rows in the basis where X'LX is diagonal."""
    out = np.zeros(len(alphas))
    LZ = part.times(Z)
    if not LZ.any():
        return out
    n_rows, n_columns = Z.shape
    L = part.times(np.eye(n_rows)) if n_rows <= n_columns else np.empty(0)
    for k, alpha in enumerate(alphas):
        inverse = 1.0 / (values + alpha)
        errors = y - Z @ (inverse * right)
        if n_rows <= n_columns:
            errors = np.linalg.solve(np.eye(n_rows) - (Z * inverse) @ Z.T @ L, errors)
        else:
            rest = np.diag(values + alpha) - Z.T @ LZ
            errors = errors + Z @ linalg.solve(rest, LZ.T @ errors, assume_a="sym")
        out[k] = errors @ part.times(errors)
    return out


def row_errors(X: Any, y: np.ndarray, laplacian: PairLaplacian, alphas: np.ndarray) -> np.ndarray:
    """Summed squared errors of each row left out in turn, for each alpha.

    Of a row of weight w, min(w, 1) is left out, and its error counts w times the weight it is
    compared with: a weight of 2 is the row twice.
    """
    gram, right = laplacian.gram(X, y)
    removed = np.minimum(laplacian.weight, 1.0)
    total = np.zeros(len(alphas))
    for query_rows in _rows_by(laplacian.query):
        whole = _Scatter.of(X, y, laplacian.weight, query_rows)
        groups = [query_rows]
        if laplacian.cross:
            groups = [query_rows[part] for part in _rows_by(laplacian.group[query_rows])]
        for group_rows in groups:
            own = _Scatter.of(X, y, laplacian.weight, group_rows) if laplacian.cross else None
            for amount in np.unique(removed[group_rows]):
                compared = whole.weight - (own.weight if own else amount)
                if compared <= 0:
                    continue  # nothing to compare these rows with
                rows = group_rows[removed[group_rows] == amount]
                change = amount * (whole.matrix - (own.matrix if own else 0.0))
                base = _Base.of(gram - change, right - amount * whole.vector, alphas)
                for start in range(0, len(rows), _ROWS_AT_A_TIME):
                    block = rows[start : start + _ROWS_AT_A_TIME]
                    errors = _block_errors(X, y, block, base, whole, own, amount)
                    total += compared * (laplacian.weight[block] @ errors**2)
    return total


def _rows_by(key: np.ndarray) -> list[np.ndarray]:
    """Row indices of each value of `key`."""
    values, code = np.unique(key, return_inverse=True)
    order = np.argsort(code, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code))[:-1]) if len(values) > 1 else [order]


@dataclass(frozen=True)
class _Scatter:
    """Weighted means of some rows, and sums of squares and products about them."""

    weight: float
    mean: np.ndarray
    target: float
    matrix: np.ndarray
    vector: np.ndarray

    @classmethod
    def of(cls, X: Any, y: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> _Scatter:
        n_columns = X.shape[1]
        blocks = [rows[k : k + _ROWS_AT_A_TIME] for k in range(0, len(rows), _ROWS_AT_A_TIME)]
        total = float(weight[rows].sum())
        mean = np.zeros(n_columns)
        for block in blocks:
            mean += weight[block] @ column_block(X[block], 0, n_columns)
        mean /= total
        target = float(weight[rows] @ y[rows]) / total
        matrix, vector = np.zeros((n_columns, n_columns)), np.zeros(n_columns)
        for block in blocks:
            deviation = column_block(X[block], 0, n_columns) - mean
            weighted = weight[block, None] * deviation
            matrix += deviation.T @ weighted
            vector += (y[block] - target) @ weighted
        return cls(total, mean, target, matrix, vector)


@dataclass(frozen=True)
class _Base:
    """The part of the system that rows of a group share, diagonal in its own basis."""

    vectors: np.ndarray
    inverse: np.ndarray  # (n_features, n_alphas): 1/(eigenvalue + alpha)
    right: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray, right: np.ndarray, alphas: np.ndarray) -> _Base:
        values, vectors = linalg.eigh(0.5 * (matrix + matrix.T))
        inverse = 1.0 / (np.maximum(values, 0.0)[:, None] + alphas[None, :])
        return cls(vectors, inverse, vectors.T @ right)

    def inner(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Products of rows through the inverse, for each alpha."""
        return (a * b) @ self.inverse

    def with_right(self, a: np.ndarray) -> np.ndarray:
        """Products of rows with the right-hand side through the inverse."""
        return (a * self.right) @ self.inverse


def _block_errors(
    X: Any,
    y: np.ndarray,
    rows: np.ndarray,
    base: _Base,
    whole: _Scatter,
    own: _Scatter | None,
    amount: float,
) -> np.ndarray:
    """Errors (n_rows, n_alphas) of rows of one group, each left out in turn."""
    x, offset = column_block(X[rows], 0, X.shape[1]), y[rows] - whole.target
    z = (x - whole.mean) @ base.vectors
    if own is None:
        factor = whole.weight / (whole.weight - amount)
        k = -amount * whole.weight
        zb = base.with_right(z) + k * offset[:, None] * base.inner(z, z)
        # (M + k zz')⁻¹ by Sherman and Morrison, met from the left by factor·z
        return factor * (offset[:, None] - zb / (1.0 + k * base.inner(z, z)))
    g = (x - own.mean) @ base.vectors
    others = (whole.weight * whole.mean - own.weight * own.mean) / (whole.weight - own.weight)
    others_target = (whole.weight * whole.target - own.weight * own.target) / (
        whole.weight - own.weight
    )
    r = (x - others) @ base.vectors
    inner = base.inner
    k, h = -amount * whole.weight, amount * own.weight
    shift = k * offset[:, None]
    zz, zg, gg = inner(z, z), inner(z, g), inner(g, g)
    zb, gb = base.with_right(z) + shift * zz, base.with_right(g) + shift * zg
    rb = base.with_right(r) + shift * inner(r, z)
    # (M + k zz' + h gg')⁻¹ by Woodbury: solve (I + KC) t = K (zb, gb), K = diag(k, h)
    determinant = (1.0 + k * zz) * (1.0 + h * gg) - k * h * zg**2
    t = ((1.0 + h * gg) * k * zb - k * zg * h * gb) / determinant
    s = ((1.0 + k * zz) * h * gb - h * zg * k * zb) / determinant
    return (y[rows] - others_target)[:, None] - (rb - inner(r, z) * t - inner(r, g) * s)
