"""Exact full-batch learning of a linear score that minimises a partial-AUC loss.

    F(w) = D(X w) + strength/2 |w|^2

with D of `partial_loss`. For a range [0, b] this is convex and solved with a certificate. For [a, b] the
concave-convex procedure of Yuille & Rangarajan (2003) is used: with
(b - a) D[a, b] = b D[0, b] - a D[0, a], the second term is replaced by its tangent and the convex problem
left is solved; every round lowers F. A direct L-BFGS descent goes first, since it comes near the same
point at a fraction of the cost.

In a narrow range the negatives are the hardest ones, and where the classes overlap no linear score may
put most positives above them. The convex loss is then smallest for scores that are all equal and says
nothing about the order; the loss of a wider range gives the better partial AUC in the narrow one.
`range_choice` finds the range to minimise over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from toprank.margin._matrix import product, transposed_product
from toprank.margin.cutting_plane import Callback, Oracle, Planes, Solution, minimise
from toprank.margin.partial_loss import PartialLoss

__all__ = ["BatchOptions", "RangeSolution", "fit_range", "linear_oracle"]

_CONCAVE_ROUNDS = 30


@dataclass(frozen=True)
class BatchOptions:
    """How far to go.

    Attributes
    ----------
    strength : float
        Factor of half the squared norm.
    tol : float
        Certified relative gap to reach.
    max_iter : int
        Most evaluations of the loss.
    direct : bool
        For a > 0, whether L-BFGS on the loss itself goes before the concave-convex rounds.
    certify : bool
        Whether to go on after L-BFGS until the gap is closed.
    """

    strength: float
    tol: float = 1e-4
    max_iter: int = 500
    direct: bool = True
    certify: bool = True


@dataclass(frozen=True)
class RangeSolution:
    """Coefficients learnt for a range.

    Attributes
    ----------
    w : ndarray
        Coefficients.
    fpr : tuple (a, b)
        The range they were learnt for.
    loss : float
        D at the coefficients.
    objective : float
        D plus the squared norm.
    gap : float
        Certified bound on what is left to gain, as a share of the objective; for a > 0 that of the
        last convex problem.
    n_evaluations : int
        How often the loss was computed.
    """

    w: np.ndarray
    fpr: tuple[float, float]
    loss: float
    objective: float
    gap: float
    n_evaluations: int


def linear_oracle(X: Any, loss: Callable[[np.ndarray], tuple[float, np.ndarray]]) -> Oracle:
    """Turn a loss of scores into a function of the coefficients: value and (sub)gradient."""

    def oracle(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(product(X, w))
        return value, transposed_product(X, gradient)

    return oracle


def fit_range(
    X: Any,
    loss: PartialLoss,
    options: BatchOptions,
    start: np.ndarray | None = None,
    callback: Callback | None = None,
) -> RangeSolution:
    """Minimise D(X w) + strength/2 |w|^2 over the range of `loss`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0], [1.0], [0.0], [-1.0]])
    >>> loss = PartialLoss(np.array([True, False, True, False]), np.ones(4), (0.0, 1.0))
    >>> found = fit_range(X, loss, BatchOptions(strength=0.1))
    >>> found.w.round(3).tolist(), round(found.loss, 3), found.gap < 1e-4
    ([1.0], 0.5, True)
    """
    if start is None:
        start = _first_point(X, loss, options)
    low = loss.fpr[0]
    if low == 0.0 or loss.structural:
        oracle = linear_oracle(X, loss)
        found = minimise(
            oracle, Planes(X.shape[1]), start, options.strength,
            tol=options.tol, max_iter=options.max_iter, certify=options.certify, callback=callback,
        )  # fmt: skip
    else:
        found = _concave_convex(X, loss, options, start, callback)
    penalty = 0.5 * options.strength * float(found.w @ found.w)
    return RangeSolution(
        found.w, loss.fpr, found.value - penalty, found.value, found.gap, found.n_evaluations
    )


def _first_point(X: Any, loss: PartialLoss, options: BatchOptions) -> np.ndarray:
    """Where to start: 0 for the whole range, the minimiser for the whole range otherwise.

    At 0 all negatives are tied and the loss of a narrow range has a sharp kink there.
    """
    zero = np.zeros(X.shape[1])
    if loss.fpr == (0.0, 1.0) or loss.structural:
        return zero
    return fit_range(X, loss.over((0.0, 1.0)), options, zero).w


def _concave_convex(
    X: Any, loss: PartialLoss, options: BatchOptions, start: np.ndarray, callback: Callback | None
) -> Solution:
    """Minimise the difference of convex functions that a range [a, b], a > 0, gives."""
    low, high = loss.fpr
    oracle = linear_oracle(X, loss)
    outer = linear_oracle(X, loss.over((0.0, high)))
    inner = linear_oracle(X, loss.over((0.0, low)))
    planes = Planes(X.shape[1])
    w, value, n_evaluations = start, _objective(oracle, start, options.strength)[0], 1
    if options.direct:
        w, value, used = _descend(oracle, w, options, callback)
        n_evaluations += used
    gap = np.inf
    for _ in range(_CONCAVE_ROUNDS if options.certify or not options.direct else 0):
        if n_evaluations >= options.max_iter:
            break
        tangent = inner(w)[1]
        found = minimise(
            outer, planes, w, options.strength,
            scale=high / (high - low), linear=-low / (high - low) * tangent,
            tol=options.tol, max_iter=max(2, options.max_iter - n_evaluations), callback=callback,
        )  # fmt: skip
        n_evaluations += found.n_evaluations + 2
        new_value = _objective(oracle, found.w, options.strength)[0]
        gap = found.gap
        gain = value - new_value
        if gain > 0:
            w, value = found.w, new_value
        if gain <= options.tol * abs(value):
            break
    bound = value * (1.0 - gap) if np.isfinite(gap) else -np.inf
    return Solution(w, value, bound, n_evaluations)


def _objective(oracle: Oracle, w: np.ndarray, strength: float) -> tuple[float, np.ndarray]:
    value, slope = oracle(w)
    return value + 0.5 * strength * float(w @ w), slope + strength * w


def _descend(
    oracle: Oracle, start: np.ndarray, options: BatchOptions, callback: Callback | None
) -> tuple[np.ndarray, float, int]:
    """L-BFGS on the objective itself; return the best point, its value and the evaluations."""
    best: list[Any] = [np.inf, start]

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _objective(oracle, w, options.strength)
        if value < best[0]:
            best[:] = value, w.copy()
        return value, gradient

    def report(w: np.ndarray) -> None:
        if callback is not None and callback(best[1]):
            raise StopIteration

    steps = max(2, options.max_iter // 2)
    answer = optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=report,
        options={"maxiter": steps, "maxfun": steps, "maxcor": 20, "ftol": options.tol * 1e-3},
    )
    return best[1], float(best[0]), int(answer.nfev)
