"""Minimise a convex loss plus a squared norm, with a certificate.

    F(w) = strength/2 |w|^2 + scale * H(w) + linear . w

H is convex and known by its value and a subgradient at the points asked for. Each answer is a plane
below H; the highest of the planes, with the squared norm, is a model below F whose minimum is a lower
bound of the minimum of F (Teo et al. 2010, "Bundle methods for regularized risk minimization"). It is
a small quadratic program in the weights of the planes, solved by Clarabel (Goulart & Chen 2024).

The losses of this package are sums over so many pairs that they are almost smooth: L-BFGS comes very
near the minimum in a few dozen steps. Its evaluations are planes too, so the bound is there at once, and
proximal bundle steps close what is left of the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, sparse

__all__ = ["Planes", "Solution", "minimise"]

Oracle = Callable[[np.ndarray], tuple[float, np.ndarray]]
Callback = Callable[[np.ndarray], bool]

_MOST_PLANES = 100
_STEEPEST = 1e8  # a plane of an exploding loss far out tells nothing and spoils the program
_FIRST_PULL = 10.0
_GOOD_PART = 0.1
_STEPS_PER_BOUND = 3


class Planes:
    """The planes below a convex function that its evaluations have given."""

    def __init__(self, n_features: int) -> None:
        self.slopes = np.empty((0, n_features))
        self.heights = np.empty(0)
        self.gram = np.empty((0, 0))

    def add(self, w: np.ndarray, value: float, slope: np.ndarray) -> None:
        """Add the plane value + slope . (v - w)."""
        products = self.slopes @ slope
        n = len(self.heights)
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n] = self.gram
        gram[n, :n] = gram[:n, n] = products
        gram[n, n] = slope @ slope
        self.gram = gram
        self.slopes = np.vstack((self.slopes, slope))
        self.heights = np.append(self.heights, value - slope @ w)

    def keep(self, chosen: np.ndarray) -> None:
        """Forget all planes but the chosen ones."""
        self.slopes = self.slopes[chosen]
        self.heights = self.heights[chosen]
        self.gram = self.gram[np.ix_(chosen, chosen)]

    def lowest(
        self, strength: float, scale: float = 1.0, linear: np.ndarray | None = None
    ) -> tuple[np.ndarray, float]:
        """Minimise the model; return the point and the lower bound.

        With weights x of the planes (x >= 0, sum 1), the minimising w is
        -(scale * x @ slopes + linear)/strength, and the bound is the value of the dual at x.
        """
        heights = scale * self.heights
        if linear is not None:
            heights = heights - (scale / strength) * (self.slopes @ linear)
        shares = _simplex_program((scale**2 / strength) * self.gram, heights)
        if len(shares) > _MOST_PLANES:
            chosen = np.sort(np.argsort(-shares, kind="stable")[: _MOST_PLANES * 2 // 3])
            self.keep(chosen)
            shares = shares[chosen] / shares[chosen].sum()
        slope = scale * (shares @ self.slopes)
        if linear is not None:
            slope = slope + linear
        bound = scale * (shares @ self.heights) - slope @ slope / (2.0 * strength)
        return -slope / strength, float(bound)


def _simplex_program(quadratic: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Maximise gain . x - x' quadratic x / 2 over x >= 0 with sum 1."""
    import clarabel

    n = len(gain)
    if n == 1:
        return np.ones(1)
    unit = max(float(np.abs(gain).max()), float(np.abs(quadratic).max()), 1e-300)
    constraints = sparse.vstack((np.ones((1, n)), -sparse.eye_array(n)), format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    answer = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(quadratic / unit)),
        -gain / unit,
        sparse.csc_matrix(constraints),
        np.concatenate(([1.0], np.zeros(n))),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    ).solve()
    # any point of the simplex gives a valid bound, so an inexact answer is still an answer
    shares = np.maximum(np.nan_to_num(np.asarray(answer.x)), 0.0)
    total = shares.sum()
    return shares / total if total > 0 else np.full(n, 1.0 / n)


@dataclass(frozen=True)
class Solution:
    """Where a minimisation ended.

    Attributes
    ----------
    w : ndarray
        The best point found.
    value : float
        The objective there.
    bound : float
        A certified lower bound of the minimum.
    n_evaluations : int
        How often the loss was computed.
    """

    w: np.ndarray
    value: float
    bound: float
    n_evaluations: int

    @property
    def gap(self) -> float:
        """What may be left to gain, as a share of the objective."""
        return max(self.value - self.bound, 0.0) / max(abs(self.value), 1e-12)


class _Search:
    """The objective, the planes its evaluations give, and the best point so far."""

    def __init__(
        self,
        oracle: Oracle,
        planes: Planes | None,
        strength: float,
        scale: float,
        linear: np.ndarray | None,
    ) -> None:
        self.oracle, self.planes, self.strength = oracle, planes, strength
        self.scale, self.linear = scale, linear
        self.value, self.w, self.n_evaluations = np.inf, np.empty(0), 0

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = self.oracle(w)
        self.n_evaluations += 1
        gentle = value < _STEEPEST and np.abs(slope).max() < _STEEPEST
        if gentle and self.planes is not None:
            self.planes.add(w, value, slope)
        total = self.scale * value + 0.5 * self.strength * (w @ w)
        gradient = self.scale * slope + self.strength * w
        if self.linear is not None:
            total += self.linear @ w
            gradient = gradient + self.linear
        if total < self.value:
            self.value, self.w = total, w.copy()
        return total, gradient

    def lowest(self, pull: float = 0.0) -> tuple[np.ndarray, float]:
        """Minimise the model, with pull/2 |w - best|^2 added."""
        assert self.planes is not None
        linear = self.linear
        if pull > 0.0:
            linear = -pull * self.w if linear is None else linear - pull * self.w
        return self.planes.lowest(self.strength + pull, self.scale, linear)

    def model(self, w: np.ndarray) -> float:
        """The model at a point: the highest plane, and the terms that are exact."""
        assert self.planes is not None
        highest = float((self.planes.slopes @ w + self.planes.heights).max())
        extra = 0.0 if self.linear is None else float(self.linear @ w)
        return self.scale * highest + 0.5 * self.strength * float(w @ w) + extra


def minimise(
    oracle: Oracle,
    planes: Planes,
    start: np.ndarray,
    strength: float,
    *,
    scale: float = 1.0,
    linear: np.ndarray | None = None,
    tol: float = 1e-4,
    max_iter: int = 500,
    smooth_steps: int = 200,
    certify: bool = True,
    callback: Callback | None = None,
) -> Solution:
    """Minimise strength/2 |w|^2 + scale * H(w) + linear . w for a convex H.

    Parameters
    ----------
    oracle : callable
        Gives H(w) and a subgradient of it.
    planes : Planes
        Planes below H that are known already; new ones are added.
    start : ndarray
        First point.
    strength, scale, linear
        The terms of the objective.
    tol : float, default=1e-4
        Stop when (value - bound) is at most this share of the value.
    max_iter : int, default=500
        Most evaluations of H.
    smooth_steps : int, default=200
        Most steps of L-BFGS before the bundle takes over; 0 for the bundle alone.
    certify : bool, default=True
        Whether to compute the bound at all; otherwise the search ends with L-BFGS.
    callback : callable, optional
        Called with the best point after every step; stops the search when it returns True.

    Returns
    -------
    Solution

    Examples
    --------
    >>> import numpy as np
    >>> def absolute(w):  # H(w) = |w - 3|
    ...     return float(np.abs(w - 3).sum()), np.sign(w - 3)
    >>> found = minimise(absolute, Planes(1), np.zeros(1), strength=0.5)
    >>> round(float(found.w[0]), 3), round(found.value, 3)
    (2.0, 2.0)
    """
    search = _Search(oracle, planes if certify else None, strength, scale, linear)
    stopped = _smooth_phase(search, start, min(smooth_steps, max_iter), tol, callback)
    bound = -np.inf if stopped or not certify else _close_gap(search, tol, max_iter, callback)
    return Solution(search.w, float(search.value), float(bound), search.n_evaluations)


def _close_gap(search: _Search, tol: float, max_iter: int, callback: Callback | None) -> float:
    """Proximal bundle steps (Kiwiel 1990) until the bound is near; return the bound.

    Each step minimises the model plus pull/2 |w - best|^2. The pull weakens after a step that
    lowers the objective by a good part of what the model promised, and grows after one that does not.
    """
    pull = _FIRST_PULL * search.strength
    bound, step = -np.inf, 0
    while True:
        if step % _STEPS_PER_BOUND == 0 or search.n_evaluations >= max_iter:
            bound = max(bound, search.lowest()[1])
            if search.value - bound <= tol * abs(search.value):
                return bound
        if search.n_evaluations >= max_iter or not np.isfinite(search.value):
            return bound
        before, best = search.value, search.w
        candidate = search.lowest(pull)[0]
        promised = before - search.model(candidate)
        value, _ = search(candidate)
        if value <= before - _GOOD_PART * promised:
            pull = max(pull / 2.0, 1e-2 * search.strength)
        else:
            pull = min(pull * 1.3, 1e6 * search.strength)
        if np.array_equal(candidate, best):  # the model has nothing left to offer there
            pull = max(pull / 10.0, 1e-2 * search.strength)
        step += 1
        if callback is not None and callback(search.w):
            return bound


def _smooth_phase(
    search: _Search, start: np.ndarray, steps: int, tol: float, callback: Callback | None
) -> bool:
    """Run L-BFGS from `start`; return whether the callback asked to stop."""
    if steps < 2:
        search(start)
        return False
    stopped = False

    def report(w: np.ndarray) -> None:
        nonlocal stopped
        if callback is not None and callback(search.w):
            stopped = True
            raise StopIteration

    optimize.minimize(
        search,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=report,
        options={
            "maxiter": steps,
            "maxfun": steps,
            "maxcor": 20,
            "ftol": tol * 1e-4,
            "gtol": 1e-10,
        },
    )
    return stopped
