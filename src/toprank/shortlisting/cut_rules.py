"""The rules by which a list is cut: how many steps of a `Staircase` are flagged, and what that promises."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.shortlisting.bounds import at_least, at_most, effective_rows, lower_share, upper_share
from toprank.shortlisting.costs import Costs, cheapest
from toprank.shortlisting.staircase import Staircase
from toprank.validation import check_share

__all__ = ["RULES", "Choice", "fallback_tests", "inside", "positive_number", "tried_lists"]

LENGTH_RATIO = 1.1  # between the list lengths that the precision rule tries


@dataclass(frozen=True)
class Choice:
    """What a rule decides: how many steps, and bounds that its own mathematics gives."""

    steps: int
    guarantee: str
    reached: bool = True
    bounds: Mapping[str, float] | None = None


def _by_budget(stairs: Staircase, budget: Any, error: float, size: float) -> tuple[float, Choice]:
    """The longest list within the budget."""
    wanted = positive_number(budget, "budget")
    if wanted > size:
        raise ValueError(
            f"the budget of {wanted:g} is larger than the {size:g} rows that it is to be spent on; "
            "every row would be checked"
        )
    room = wanted / size * stairs.total * (1 + 1e-12)
    steps = int(np.searchsorted(stairs.flagged, room, side="right"))
    if steps == 0:
        words = (
            f"nothing is flagged: the {stairs.flagged[0] * size / stairs.total:g} rows at the top "
            f"of the list have equal scores and are more than the budget of {wanted:g}"
        )
        return wanted, Choice(0, words, reached=False)
    words = (
        f"of {size:g} new rows about {wanted:g} are flagged, as far as they resemble those the cut "
        "was chosen on; to keep to the budget exactly, take the first rows of each list"
    )
    return wanted, Choice(steps, words)


def _by_fpr(stairs: Staircase, fpr: Any, error: float, size: float) -> tuple[float, Choice]:
    """The longest list whose false positive rate is low enough with confidence."""
    rate = inside(fpr, "fpr")
    n = stairs.effective_negatives
    share = stairs.above("negatives") / stairs.total_negatives
    kept = np.flatnonzero(at_most(share * n, n, rate) <= error)
    if not len(kept):
        needed = math.ceil(math.log(error) / math.log1p(-rate))
        words = (
            f"nothing is flagged: {n:g} negatives are too few to promise a false positive rate of "
            f"{_percent(rate)} with {_percent(1 - error)} confidence; {needed} are needed"
        )
        return rate, Choice(0, words, reached=False)
    steps = int(kept[-1])
    if steps == 0:
        words = (
            f"nothing is flagged: the {share[1] * stairs.total_negatives:g} negatives among the rows "
            f"at the top of the list, which have equal scores, are too many for a false positive rate "
            f"of {_percent(rate)}"
        )
        return rate, Choice(0, words, reached=False)
    bound = float(upper_share(share[steps] * n, n, error))
    words = f"with {_percent(1 - error)} confidence at most {_percent(rate)} of new negatives are flagged"
    return rate, Choice(steps, words, bounds={"false_positive_rate_high": min(bound, rate)})


def _by_precision(
    stairs: Staircase, precision: Any, error: float, size: float
) -> tuple[float, Choice]:
    """The longest list whose precision is high enough with confidence, over all lists tried."""
    share = inside(precision, "precision")
    lengths = effective_rows(stairs.flagged, stairs.flagged_squares)
    hits = lengths * stairs.positives / stairs.flagged
    tried = tried_lists(lengths, share, error)
    passed, allowed = fallback_tests(hits[tried], lengths[tried], share, error)
    if not passed.any():
        return share, Choice(0, _why_no_precision(stairs, hits, lengths, share, error), False)
    last = int(np.flatnonzero(passed)[-1])
    steps = int(tried[last])
    bound = float(lower_share(hits[steps], lengths[steps], allowed[last]))
    words = (
        f"with {_percent(1 - error)} confidence at least {_percent(share)} of the rows flagged among "
        "new ones are positives"
    )
    return share, Choice(steps + 1, words, bounds={"precision_low": max(bound, share)})


def tried_lists(lengths: np.ndarray, share: float, error: float) -> np.ndarray:
    """The steps after which lists are tested: fixed by the lengths, never by the labels.

    The shortest is one that would pass if every row of it were a positive.
    """
    shortest = math.log(error) / math.log(share)
    n_tried = max(0, math.ceil(math.log(max(lengths[-1] / shortest, 1.0), LENGTH_RATIO))) + 1
    wanted = np.ceil(shortest * LENGTH_RATIO ** np.arange(n_tried) - 1e-9)
    ends = np.searchsorted(lengths, np.append(wanted, lengths[-1]) * (1 + 1e-12), side="right") - 1
    ends = np.unique(ends[ends >= 0])
    return ends[lengths[ends] >= shortest * (1 - 1e-12)]


def fallback_tests(
    hits: np.ndarray, lengths: np.ndarray, share: float, error: float
) -> tuple[np.ndarray, np.ndarray]:
    """Which lists pass, and the error allowed to each: an equal part, and what the last one handed on.

    Given the scores, the hits of a list are a sum of independent draws whose mean probability is the
    precision. Beyond one more than their mean, such a sum exceeds a number less often than a binomial
    (Hoeffding 1956, Annals of Mathematical Statistics 27), so its tail is a valid p-value there.
    """
    passed, allowed = np.zeros(len(hits), dtype=bool), np.zeros(len(hits))
    tails = at_least(hits, lengths, share)
    handed_on = 0.0
    for k in range(len(hits)):
        allowed[k] = handed_on + error / len(hits)
        passed[k] = tails[k] <= allowed[k] and hits[k] >= lengths[k] * share + 1
        handed_on = allowed[k] if passed[k] else 0.0
    return passed, allowed


def _why_no_precision(
    stairs: Staircase, hits: np.ndarray, lengths: np.ndarray, share: float, error: float
) -> str:
    bounds = lower_share(hits, lengths, error)
    best = int(np.argmax(bounds))
    return (
        f"nothing is flagged: no list reaches a precision of {_percent(share)} with "
        f"{_percent(1 - error)} confidence; the first {stairs.flagged[best]:g} of {stairs.total:g} "
        f"rows come nearest, with {_percent(hits[best] / lengths[best])} right"
    )


def _by_cost(stairs: Staircase, cost: Any, error: float, size: float) -> tuple[Any, Choice]:
    costs = Costs.of(cost)
    words = (
        "no promise: the cut is the cheapest on the rows given, and the figures are corrected for "
        "having been chosen as such"
    )
    return costs.as_dict(), Choice(cheapest(stairs, costs), words)


Rule = Callable[[Staircase, Any, float, float], tuple[Any, Choice]]
RULES: dict[str, Rule] = {
    "budget": _by_budget,
    "fpr": _by_fpr,
    "precision": _by_precision,
    "cost": _by_cost,
}


def inside(value: Any, name: str) -> float:
    number = check_share(value, name)
    if number >= 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")
    return number


def positive_number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 < number < math.inf or isinstance(value, (bool, str)):
        raise ValueError(f"{name} must be a number of rows above 0, got {value!r}")
    return number


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
