"""The cheapest cut, and how much better it looks than it is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from toprank.shortlisting.staircase import Staircase

__all__ = ["Costs", "cheapest", "optimism"]

BOOTSTRAP_STEPS = 2_000  # of the staircase that is drawn again
CELLS = 2_000_000  # of one block of resamples


@dataclass(frozen=True)
class Costs:
    """What a false alarm and a miss cost and what a hit gains."""

    false_alarm: float
    miss: float
    gain: float = 0.0

    @classmethod
    def of(cls, cost: Any) -> Costs:
        """Read costs from a pair, a triple or a mapping.

        Examples
        --------
        >>> Costs.of((5, 100))
        Costs(false_alarm=5.0, miss=100.0, gain=0.0)
        """
        names = ("false_alarm", "miss", "gain")
        if isinstance(cost, Mapping):
            given = dict(cost)
        else:
            try:
                given = dict(zip(names, cost, strict=False))
            except TypeError:
                given = {}
            if not 2 <= len(given) == len(tuple(cost) if given else ()):
                raise ValueError(
                    "cost must be (cost of a false alarm, cost of a miss) or (false alarm, miss, gain "
                    f"of a hit), got {cost!r}"
                )
        if not {"false_alarm", "miss"} <= set(given) <= set(names):
            raise ValueError(
                "cost must name false_alarm and miss, and may name gain; "
                f"got {', '.join(map(str, given)) or 'nothing'}"
            )
        return cls(**{name: _amount(value, name) for name, value in given.items()})

    def __post_init__(self) -> None:
        if self.miss + self.gain <= 0:
            raise ValueError("a miss must cost, or a hit gain, something; else flag nothing")

    def as_dict(self) -> dict[str, float]:
        return {"false_alarm": self.false_alarm, "miss": self.miss, "gain": self.gain}

    def totals(self, positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
        """Cost of each cut, from the weight of the classes above it (the last: of all rows)."""
        missed = positives[..., -1:] - positives
        return self.false_alarm * negatives + self.miss * missed - self.gain * positives


def cheapest(stairs: Staircase, costs: Costs) -> int:
    """How many steps to flag; of equally cheap cuts the shortest list.

    Examples
    --------
    >>> import numpy as np
    >>> stairs = Staircase.of(np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 1.0]))
    >>> cheapest(stairs, Costs(1.0, 5.0)), cheapest(stairs, Costs(5.0, 1.0))
    (3, 1)
    """
    return int(np.argmin(costs.totals(stairs.above("positives"), stairs.above("negatives"))))


def optimism(
    stairs: Staircase, costs: Costs, *, n_resamples: int = 1000, random_state: Any = 0
) -> dict[str, Any]:
    """By how much the figures of the cheapest cut flatter it, on average over bootstrap resamples.

    Each resample chooses its own cheapest cut. What that cut is worth on the resample, less what it is
    worth on the rows themselves, is the optimism of the search (Efron 1983, JASA 78). The rows of a step
    are drawn as a Poisson number of rows of the step's mean weight.

    Returns
    -------
    dict
        Mean optimism of `precision`, `recall`, `false_positive_rate` and `cost`, and `apparent`, the
        cost of the original cut on every resample.
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples!r}")
    random = check_random_state(random_state)
    stairs = stairs.thinned(BOOTSTRAP_STEPS)
    chosen = cheapest(stairs, costs)
    original = (stairs.above("positives"), stairs.above("negatives"))
    block = max(1, CELLS // (stairs.n_steps + 1))
    found: dict[str, list[np.ndarray]] = {}
    for start in range(0, n_resamples, block):
        n_drawn = min(block, n_resamples - start)
        drawn = (
            _redraw(stairs, "positive", n_drawn, random),
            _redraw(stairs, "negative", n_drawn, random),
        )
        both = (drawn[0][:, -1] > 0) & (drawn[1][:, -1] > 0)
        drawn = (drawn[0][both], drawn[1][both])
        totals = costs.totals(*drawn)
        cut = np.argmin(totals, axis=1)
        rows = np.arange(len(cut))
        # resamples differ in size: costs are compared for as many rows as there are
        size = stairs.total / (drawn[0][:, -1] + drawn[1][:, -1])
        found.setdefault("apparent", []).append(totals[:, chosen] * size)
        found.setdefault("cost", []).append(totals[rows, cut] * size - costs.totals(*original)[cut])
        here = _shares(drawn[0][rows, cut], drawn[1][rows, cut], drawn[0][:, -1], drawn[1][:, -1])
        there = _shares(original[0][cut], original[1][cut], original[0][-1], original[1][-1])
        for name in here:
            found.setdefault(name, []).append(here[name] - there[name])
    joined = {name: np.concatenate(parts) for name, parts in found.items()}
    if not len(joined["apparent"]):
        raise ValueError(
            "no resample holds both classes; there are too few rows to correct a search"
        )
    means = {name: _mean(values) for name, values in joined.items() if name != "apparent"}
    return {**means, "apparent": joined["apparent"]}


def _redraw(stairs: Staircase, name: str, n_drawn: int, random: Any) -> np.ndarray:
    """Cumulative weights of a class in resamples, one line each, from no step to all."""
    weight = np.diff(getattr(stairs, f"{name}s"), prepend=0.0)
    squares = np.diff(getattr(stairs, f"{name}_squares"), prepend=0.0)
    some = (weight > 0) & (squares > 0)
    each = np.divide(squares, weight, out=np.zeros_like(weight), where=some)
    rows = np.divide(weight, each, out=np.zeros_like(weight), where=some)
    drawn = random.poisson(rows, size=(n_drawn, len(rows))) * each
    return np.concatenate([np.zeros((n_drawn, 1)), np.cumsum(drawn, axis=1)], axis=1)


def _shares(
    positives: Any, negatives: Any, all_positives: Any, all_negatives: Any
) -> dict[str, Any]:
    flagged = positives + negatives
    precision = np.full(np.shape(flagged), np.nan)
    np.divide(positives, flagged, out=precision, where=flagged > 0)
    return {
        "precision": precision,
        "recall": positives / all_positives,
        "false_positive_rate": negatives / all_negatives,
    }


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else 0.0


def _amount(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"the cost {name!r} must be a number of at least 0, got {value!r}")
    return number
