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
    weights : ndarray of shape (n_rows,)
        :math:`c_{ij} = w_j`.
    rank_values : pair of ndarray of shape (n_rows,), optional
        With them :math:`c_{ij} = w_j (v_{higher} - v_{lower})`, the rank value of the higher of i
        and j minus that of the lower: the first array for sources above the target, the second
        for those below it. Ties do not count.
    kernel : {"sigmoid", "softplus"}
        "sigmoid" gives two results, for sig and for sig'; "softplus" gives one.
    rising : bool
        K of :math:`f_j - f_i` when true, of :math:`f_i - f_j` otherwise.
    factors : tuple of float
        What to multiply the results of each kernel by.
    out : ndarray, optional
        Where to add the results, instead of a new array of zeros. Only the places of targets are
        touched, so that several threads may serve one array.

    Returns
    -------
    ndarray of shape (n_kernels, n_rows)
        Zero at the places that are no targets.
    """
    family = {"sigmoid": kernels.SIGMOID, "softplus": kernels.SOFTPLUS}[kernel]
    coefficients = _coefficients()[family]
    far = kernels.COMPLEMENT if family == kernels.SIGMOID else kernels.LINEAR
    modes = np.array([far, kernels.DECAY] if rising else [kernels.DECAY, far])
    above, below = (_NONE, _NONE) if rank_values is None else rank_values
    if out is None:
        out = np.zeros((len(coefficients), len(codes)))
    work = PairPass(
        ranked.scores, codes, target, source, weights, rank_values is not None, above, below, family,
        modes, coefficients, np.array(factors), out,
    )  # fmt: skip
    kernels.pair_pass(work, ranked.starts, PAIRS_PER_ROW)
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
    out = np.zeros((2, len(codes))) if out is None else out
    sign = 1.0 if rising else -1.0
    kernels.hinge_pass(
        sign, ranked.scores, ranked.starts, codes, target, source, weights, float(margin), out
    )
    return out


def sigmoid_sums(
    target_scores: Any, source_scores: Any, source_weights: Any = None
) -> tuple[FloatArray, FloatArray]:
    r"""Return :math:`\sum_j w_j sig(f_j - f_i)` and :math:`\sum_j w_j sig'(f_j - f_i)` for each i.

    Parameters
    ----------
    target_scores : array-like of shape (n_targets,)
        The scores :math:`f_i`.
    source_scores : array-like of shape (n_sources,)
        The scores :math:`f_j`.
    source_weights : array-like of shape (n_sources,), optional
        Ones by default.

    Returns
    -------
    sums, derivative_sums : ndarray of shape (n_targets,)

    Examples
    --------
    >>> sums, derivatives = sigmoid_sums([0.0], [0.0, 0.0, 3.0])
    >>> sums.round(6).tolist(), derivatives.round(6).tolist()
    ([1.952574], [0.545177])
    """
    sums, derivative_sums = _two_list_sums("sigmoid", target_scores, source_scores, source_weights)
    return sums, derivative_sums


def softplus_sums(target_scores: Any, source_scores: Any, source_weights: Any = None) -> FloatArray:
    r"""Return :math:`\sum_j w_j \log(1 + e^{f_j - f_i})` for each i (see `sigmoid_sums`).

    Examples
    --------
    >>> softplus_sums([0.0], [0.0, -50.0, 50.0]).round(6).tolist()
    [50.693147]
    """
    return _two_list_sums("softplus", target_scores, source_scores, source_weights)[0]


def _two_list_sums(kernel: str, targets: Any, sources: Any, weights: Any) -> FloatArray:
    """Rank targets (code 0) and sources (code 1) as one list; return the sums in the targets' order."""
    n, n_sources = len(targets), len(sources)
    weights = np.ones(n_sources) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(weights) != n_sources:
        raise ValueError(f"{len(weights)} weights for {n_sources} sources")
    ranked = RankedQueries.of(np.concatenate((targets, sources), dtype=np.float64))
    codes = (ranked.order >= n).astype(np.uint8)
    by_place = np.concatenate((np.zeros(n), weights))[ranked.order]
    sums = np.empty((2 if kernel == "sigmoid" else 1, len(codes)))
    sums[:, ranked.order] = ranked_sums(ranked, codes, 0, 1, by_place, kernel=kernel)
    return sums[:, :n]
