r"""Sums over pairs of rows in the time of a sort.

Pairwise and listwise objectives need, for every row i, sums such as
:math:`\sum_j w_j K(f_j - f_i)` with K a sigmoid, its derivative, a softplus or a hinge. Pair by pair
they cost one operation for each pair. They need not: for :math:`t \ge 0` put :math:`u = e^{-t}`, so
that :math:`sig(-t) = u/(1+u)`, :math:`sig'(t) = u/(1+u)^2` and :math:`log(1 + e^{-t}) = log(1+u)`.
Each is u times a smooth function on [0, 1], which a Chebyshev series of low degree follows with a
*relative* error of 1e-8 or less, and a sum of :math:`u^k` over the rows above i is a running
product along the sorted scores. One pass down and one pass up the list give all rows their sums.

Hinge sums are exact by running counts; exponential sums factorise and need no help.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from toprank.pairs import _kernels as kernels
from toprank.pairs._kernels import POWERS, PairPass
from toprank.ranking import RankedQueries

__all__ = ["ranked_hinge_sums", "ranked_sums", "sigmoid_sums", "softplus_sums"]

FloatArray = np.ndarray

PAIRS_PER_ROW = 16
"""Up to this many pairs for each row of a query, the plain double loop is the faster way."""

_SIDES = {"both": 0, "above": 1, "below": -1}
_NONE = np.empty(0)


@lru_cache(maxsize=1)
def _coefficients() -> tuple[FloatArray, FloatArray]:
    """Power-series coefficients of (sig, sig') and of softplus, divided by u, on u in [0, 1].

    They go through the functions at the extrema of a Chebyshev polynomial, so also at u = 1: what
    a pair adds does not jump when its scores cross.
    """
    nodes = 0.5 + 0.5 * np.cos(np.pi * np.arange(POWERS) / (POWERS - 1))

    def through(values: FloatArray) -> FloatArray:
        series = Chebyshev.fit(nodes, values, POWERS - 1, domain=[0.0, 1.0])
        return series.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1]).coef

    sigmoid = np.array([through(1.0 / (1.0 + nodes)), through((1.0 + nodes) ** -2.0)])
    quotient = np.log1p(nodes) / np.where(nodes > 0, nodes, 1.0)
    return sigmoid, np.array([through(np.where(nodes > 0, quotient, 1.0))])


def ranked_sums(
    ranked: RankedQueries,
    codes: np.ndarray,
    target: int,
    source: int,
    weights: FloatArray,
    *,
    rank_values: tuple[FloatArray, FloatArray] | None = None,
    kernel: str = "sigmoid",
    rising: bool = True,
    side: str = "both",
    pairs_per_row: int | None = None,
    factors: tuple[float, ...] = (1.0, 1.0),
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Return :math:`\sum_j c_{ij} K(f_j - f_i)` for every target i over the sources j of its query.

    All arrays are by place of the ranked list.

    Parameters
    ----------
    ranked : RankedQueries
    codes : ndarray of uint8
        A small number for each place, such as its relevance level.
    target, source : int
        Sums are taken over the rows with the code `source` and returned at those with the code `target`.
    weights : ndarray of shape (n_rows,) or (n_vectors, n_rows)
        :math:`c_{ij} = w_j`; several vectors are served by one pass.
    rank_values : pair of ndarray of shape (n_rows,), optional
        With them :math:`c_{ij} = w_j (v_{higher} - v_{lower})`, the rank value of the higher of i
        and j minus that of the lower: the first array for sources above the target, the second
        for those below it. One vector of weights only, and ties do not count.
    kernel : {"sigmoid", "softplus"}
        "sigmoid" gives two results, for sig and for sig'; "softplus" gives one.
    rising : bool
        K of :math:`f_j - f_i` when true, of :math:`f_i - f_j` otherwise.
    side : {"both", "above", "below"}
        Which sources count: all, those that rank higher, or those that rank lower. Sources with
        the target's own score count for "both" only.
    pairs_per_row : int, optional
        Queries with at most so many pairs for each row are done pair by pair (`PAIRS_PER_ROW`).
    factors : tuple of float
        What to multiply the results of each kernel by.
    out : ndarray, optional
        Where to add the results, instead of a new array of zeros. Only the places of targets are
        touched, so that several threads may serve one array.

    Returns
    -------
    ndarray of shape (n_kernels, n_rows) or (n_kernels, n_vectors, n_rows)
        Zero at the places that are no targets.
    """
    if side not in _SIDES:
        raise ValueError(f"side must be one of {list(_SIDES)}, not {side!r}")
    family = {"sigmoid": kernels.SIGMOID, "softplus": kernels.SOFTPLUS}[kernel]
    coefficients = _coefficients()[family]
    far = kernels.COMPLEMENT if family == kernels.SIGMOID else kernels.LINEAR
    modes = np.array([far, kernels.DECAY] if rising else [kernels.DECAY, far])
    above, below = (_NONE, _NONE) if rank_values is None else rank_values
    matrix = np.ascontiguousarray(np.atleast_2d(weights), dtype=np.float64)
    if out is None:
        out = np.zeros((len(coefficients), *weights.shape))
    work = PairPass(
        ranked.scores, codes, target, source, matrix, rank_values is not None, above, below, family,
        modes, coefficients, np.array(factors), out.reshape(len(out), len(matrix), -1),
    )  # fmt: skip
    most_pairs = PAIRS_PER_ROW if pairs_per_row is None else pairs_per_row
    kernels.pair_pass(work, ranked.starts, _SIDES[side], most_pairs)
    return out


def ranked_hinge_sums(
    ranked: RankedQueries,
    codes: np.ndarray,
    target: int,
    source: int,
    weights: FloatArray,
    *,
    margin: float = 1.0,
    rising: bool = True,
    out: FloatArray | None = None,
) -> FloatArray:
    r"""Return :math:`\sum_j w_j \max(0, m + f_j - f_i)` and the weight of the j inside the margin.

    By place, like `ranked_sums`; with `rising=False` the hinge is of :math:`f_i - f_j`.
    """
    matrix = np.ascontiguousarray(np.atleast_2d(weights), dtype=np.float64)
    if out is None:
        out = np.zeros((2, *weights.shape))
    kernels.hinge_pass(
        1.0 if rising else -1.0, ranked.scores, ranked.starts, codes, target, source, matrix,
        float(margin), out.reshape(2, len(matrix), -1),
    )  # fmt: skip
    return out


def sigmoid_sums(
    target_scores: Any,
    source_scores: Any,
    source_weights: Any = None,
    *,
    side: str = "both",
    target_qid: Any = None,
    source_qid: Any = None,
    pairs_per_row: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\sum_j w_j sig(f_j - f_i)` and :math:`\sum_j w_j sig'(f_j - f_i)` for each i.

    Parameters
    ----------
    target_scores : array-like of shape (n_targets,)
        The scores :math:`f_i`.
    source_scores : array-like of shape (n_sources,)
        The scores :math:`f_j`.
    source_weights : array-like of shape (n_sources,) or (n_vectors, n_sources), optional
        One or several vectors of weights, all served by one pass; ones by default.
    side : {"both", "above", "below"}
        Which sources count for a target: all, those scored higher, or those scored lower. Sources
        with the target's own score count for "both" only.
    target_qid, source_qid : array-like, optional
        Queries; sources of another query do not count.
    pairs_per_row : int, optional
        Queries with at most so many pairs for each row are done pair by pair (`PAIRS_PER_ROW`).

    Returns
    -------
    sums, derivative_sums : ndarray of shape (n_targets,) or (n_vectors, n_targets)

    Examples
    --------
    >>> sums, derivatives = sigmoid_sums([0.0], [0.0, 0.0, 3.0])
    >>> sums.round(6).tolist(), derivatives.round(6).tolist()
    ([1.952574], [0.545177])
    """
    rows = _JoinedRows.of(target_scores, source_scores, source_weights, target_qid, source_qid)
    sums = rows.sums("sigmoid", side, pairs_per_row)
    return sums[0], sums[1]


def softplus_sums(
    target_scores: Any,
    source_scores: Any,
    source_weights: Any = None,
    *,
    side: str = "both",
    target_qid: Any = None,
    source_qid: Any = None,
    pairs_per_row: int | None = None,
) -> FloatArray:
    r"""Return :math:`\sum_j w_j \log(1 + e^{f_j - f_i})` for each i (see `sigmoid_sums`).

    Examples
    --------
    >>> softplus_sums([0.0], [0.0, -50.0, 50.0]).round(6).tolist()
    [50.693147]
    """
    rows = _JoinedRows.of(target_scores, source_scores, source_weights, target_qid, source_qid)
    return rows.sums("softplus", side, pairs_per_row)[0]


@dataclass(frozen=True)
class _JoinedRows:
    """Targets (code 0) and sources (code 1) in one ranked list, and the place of each target."""

    ranked: RankedQueries
    codes: np.ndarray
    weights: FloatArray
    places: np.ndarray

    @classmethod
    def of(
        cls, targets: Any, sources: Any, weights: Any, target_qid: Any, source_qid: Any
    ) -> _JoinedRows:
        targets = np.ascontiguousarray(targets, dtype=np.float64)
        sources = np.ascontiguousarray(sources, dtype=np.float64)
        if (target_qid is None) != (source_qid is None):
            raise ValueError("give both target_qid and source_qid, or neither")
        weights = (
            np.ones(len(sources)) if weights is None else np.asarray(weights, dtype=np.float64)
        )
        if weights.shape[-1] != len(sources):
            raise ValueError(f"{weights.shape[-1]} weights for {len(sources)} sources")
        n = len(targets)
        qid = None if target_qid is None else np.concatenate((target_qid, source_qid))
        ranked = RankedQueries.of(np.concatenate((targets, sources)), qid)
        codes = (ranked.order >= n).astype(np.uint8)
        by_place = np.zeros((*weights.shape[:-1], len(codes)))
        by_place[..., codes == 1] = weights[..., ranked.order[codes == 1] - n]
        places = np.empty(n, np.int64)
        places[ranked.order[codes == 0]] = np.flatnonzero(codes == 0)
        return cls(ranked, codes, by_place, places)

    def sums(self, kernel: str, side: str, pairs_per_row: int | None) -> FloatArray:
        """Return the sums in the order in which the targets were given."""
        sums = ranked_sums(
            self.ranked, self.codes, 0, 1, self.weights, kernel=kernel, side=side,
            pairs_per_row=pairs_per_row,
        )  # fmt: skip
        return sums[..., self.places]
