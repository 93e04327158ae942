"""How far to go along a new tree: Newton leaves as they are, or a bounded line search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

__all__ = ["line_search"]


def line_search(
    loss: Callable[[np.ndarray], float],
    scores: np.ndarray,
    direction: np.ndarray,
    *,
    largest_move: float,
    evaluations: int = 12,
) -> float:
    """Return the step in [0, bound] that lowers `loss(scores + step * direction)` most.

    The bound keeps every score's move at most `largest_move`: without it one pure leaf would run to
    infinity under losses that go on falling as it does. The search runs over the logarithm of the
    step, for the right one may be 1/n of the bound or the bound itself.

    Examples
    --------
    >>> import numpy as np
    >>> step = line_search(lambda s: float((s[0] - 1) ** 2), np.zeros(1), np.ones(1), largest_move=4)
    >>> abs(step - 1) < 0.05
    True
    """
    longest = float(np.abs(direction).max(initial=0.0))
    if longest == 0 or not np.isfinite(longest):
        return 0.0
    bound = largest_move / longest
    before = loss(scores)
    found = minimize_scalar(
        lambda exponent: loss(scores + bound * 10**exponent * direction),
        bounds=(-4.0, 0.0),
        method="bounded",
        options={"maxiter": evaluations, "xatol": 0.01},
    )
    at_bound = loss(scores + bound * direction)
    best, step = min((float(found.fun), float(bound * 10**found.x)), (at_bound, bound))
    return step if best < before else 0.0
