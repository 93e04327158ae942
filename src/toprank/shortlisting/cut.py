"""Where to cut a ranked list: by budget, false positive rate, precision or cost.

Promises hold for new rows from the same source, if the cut is chosen on rows that the model did not learn from.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import betaln
from sklearn.utils import check_random_state

from toprank.formatting import join_names, to_jsonable
from toprank.shortlisting.counts import (
    OutOfFoldCounts,
    effective_rows,
    lower_share,
    probability_at_least,
    probability_at_most,
    share_interval,
    upper_share,
)
from toprank.validation import binary_rows, check_share

__all__ = ["Costs", "Cut", "choose_cut", "cut_counts", "only_target", "optimism"]

LENGTH_RATIO = 1.1  # between the list lengths that the precision rule tries
BOOTSTRAP_STEPS = 2_000  # of the counts that are resampled
BLOCK_SIZE = 2_000_000  # numbers in one block of resamples


@dataclass(frozen=True)
class Cut:
    """A threshold and what to expect of the rows above it.

    All counts are on the scale of `population` rows. Each figure has an interval, `_low` to `_high`, at
    the given confidence.

    Attributes
    ----------
    rule : {"budget", "fpr", "precision", "cost"}
    target : float or dict
        The given target.
    threshold : float
        Rows with a score above it are flagged: half-way between two neighbouring scores, so that
        ties are never split. Infinite when nothing (or, negative, everything) is flagged.
    reached : bool
        Whether the rule could be met; if not, `guarantee` says why, and nothing is flagged, except
        that for a precision the best list is offered with its range.
    guarantee : str
        A sentence on what holds for new rows.
    n_flagged, precision, recall, false_positive_rate, false_alarms : float
        Estimates; the precision of an empty list is NaN.
    expected_cost : float or None
        For the rule "cost", corrected for the search.
    """

    rule: str
    target: Any
    confidence: float
    reached: bool
    threshold: float
    population: float
    n_flagged: float
    n_flagged_low: float
    n_flagged_high: float
    precision: float
    precision_low: float
    precision_high: float
    recall: float
    recall_low: float
    recall_high: float
    false_positive_rate: float
    false_positive_rate_low: float
    false_positive_rate_high: float
    false_alarms: float
    false_alarms_low: float
    false_alarms_high: float
    expected_cost: float | None = None
    expected_cost_low: float | None = None
    expected_cost_high: float | None = None
    guarantee: str = ""

    def flags(self, scores: Any) -> np.ndarray:
        """Return which scores lie above the threshold."""
        return np.asarray(scores) > self.threshold

    def as_dict(self) -> dict[str, Any]:
        """Return the cut as JSON data; what is infinite or NaN becomes None."""
        return to_jsonable(asdict(self))


def choose_cut(
    y_true: Any,
    scores: Any,
    *,
    budget: float | None = None,
    fpr: float | None = None,
    precision: float | None = None,
    cost: Any = None,
    population: float | None = None,
    confidence: float = 0.95,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> Cut:
    """Choose the threshold above which rows go on the shortlist.

    Give exactly one of `budget`, `fpr`, `precision` and `cost`.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        Labels of rows that the model was not trained on.
    scores : array of shape (n_rows,)
        Their scores, held out or cross-fitted (`cross_fitted_scores`).
    budget : float, optional
        Rows that can be checked out of every `population` rows. The longest list within it is taken.
    fpr : float, optional
        With the given confidence, the false positive rate on new rows is at most this, in the long run
        and in a list of as many new negatives. Of n negatives, m may lie above the threshold if
        P(Binomial(n, fpr) <= m) <= 1 - confidence (the umbrella algorithm of Tong, Feng and Li 2018,
        Science Advances 4), and if more than fpr n of n new ones are above the (m + 1)-th highest with
        no greater probability (`list_risk`): exact, whatever the distribution of the scores.
    precision : float, optional
        With the given confidence, at least this share of the list is right, although the cut is
        searched. Lists of lengths fixed beforehand (each a tenth longer than the last) are
        tested from the shortest on by an exact binomial test; the error allowed is shared out
        among them, and a test that succeeds hands its share on to the next (the fallback
        procedure, Wiens and Dmitrienko 2005, J. Biopharmaceutical Statistics 15), so that the
        error over all of them stays within 1 - `confidence`. The longest list that passes is taken; if
        none does, the longest that was precise enough (else the most precise), without a promise and
        with a range that allows for the search.
    cost : pair, triple or mapping, optional
        Cost of a false alarm, cost of a miss and, optionally, gain of a hit; or a mapping with the
        keys ``false_alarm``, ``miss`` and ``gain``. Each may be an array with the cost of every row,
        such as its amount. The cheapest cut is taken. The figures are corrected by the bootstrap
        for the optimism of the search.
    population : float, optional
        Counts are given for so many rows; by default for the rows given (the sum of their weights).
    confidence : float, default=0.95
        Of the promise and of all intervals.
    sample_weight : array of shape (n_rows,), optional
        A row counts with its weight and is one observation; bounds use the effective number of rows
        (sum of weights)^2 / (sum of squared weights) and are then approximate.
    pos_label : label, optional
        The positive class; the greater of two labels by default.
    n_resamples : int, default=1000
        Bootstrap resamples, for `cost`.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    cut : Cut

    Notes
    -----
    Intervals are those of Clopper and Pearson at the chosen threshold. For the budget they need no
    correction (the cut does not look at labels); for `fpr` the upper bound of the false positive rate, for
    `precision` the lower bound of the precision are the promised ones; for `cost` they are shifted by
    the optimism (Noma et al. 2021, Statistics in Medicine 40). With cross-fitted scores each is
    approximate in one more way: the models of the folds take the place of the final one.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import choose_cut
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(5000) < 0.1).astype(int)
    >>> scores = rng.normal(size=5000) + 2 * y
    >>> cut = choose_cut(y, scores, fpr=0.01)
    >>> cut.false_positive_rate < cut.false_positive_rate_high <= 0.01
    True
    >>> print(cut.guarantee)
    with 95% confidence at most 1% of new negatives are flagged
    """
    rows = binary_rows(y_true, scores, sample_weight, pos_label)
    if cost is not None and RowCosts.are_given(cost):
        only_target({"budget": budget, "fpr": fpr, "precision": precision, "cost": cost}, "")
        if sample_weight is not None:
            raise ValueError("costs of single rows take no sample_weight: multiply the costs by it")
        return _cut_by_row_costs(
            RowCosts.of(cost, rows.positive), rows.positive, rows.scores, population=population,
            confidence=confidence, n_resamples=n_resamples, random_state=random_state,
        )  # fmt: skip
    return cut_counts(
        OutOfFoldCounts.of(rows.positive, rows.scores, rows.weight),
        {"budget": budget, "fpr": fpr, "precision": precision, "cost": cost},
        population=population, confidence=confidence, n_resamples=n_resamples,
        random_state=random_state,
    )  # fmt: skip


def cut_counts(
    counts: OutOfFoldCounts,
    targets: Mapping[str, Any],
    *,
    population: float | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> Cut:
    """Choose a cut from counts, by exactly one of the `targets` budget, fpr, precision and cost."""
    rule = only_target(targets, "to choose the cut by")
    error = 1.0 - _check_inside(confidence, "confidence")
    size = counts.total if population is None else _check_amount(population, "population")
    steps, guarantee, bounds = RULES[rule](counts, targets[rule], error, size)
    reached = bounds.pop("reached", steps > 0 or rule == "cost")
    figures = _figures(counts, steps, size, confidence) | bounds
    if rule == "cost":
        costs = Costs.of(targets[rule])
        found = optimism(counts, costs, n_resamples=n_resamples, random_state=random_state)
        figures |= _corrected(figures, found)
        figures |= _expected_cost(counts, steps, size, costs, found, error)
    target = asdict(costs) if rule == "cost" else float(targets[rule])
    known = {"rule": rule, "target": target, "reached": bool(reached), "guarantee": guarantee}
    return _make_cut(counts, steps, size, confidence, figures | known)


def _make_cut(
    counts: OutOfFoldCounts, steps: int, size: float, confidence: float, figures: dict[str, Any]
) -> Cut:
    """Return the cut after some steps, with what its precision says about false alarms."""
    n_flagged, precision = figures["n_flagged"], figures["precision"]
    return Cut(
        confidence=float(confidence),
        threshold=counts.threshold(steps),
        population=size,
        false_alarms=0.0 if math.isnan(precision) else n_flagged * (1.0 - precision),
        false_alarms_low=n_flagged * (1.0 - figures["precision_high"]),
        false_alarms_high=n_flagged * (1.0 - figures["precision_low"]),
        **figures,
    )


def only_target(targets: Mapping[str, Any], purpose: str) -> str:
    """Return the name of the only target that is given."""
    given = [name for name, value in targets.items() if value is not None]
    if len(given) != 1:
        names = join_names(list(targets))
        raise ValueError(f"give exactly one of {names} {purpose}; got {', '.join(given) or 'none'}")
    return given[0]


# -- what to expect of a cut ----------------------------------------------------------------------


def _figures(
    counts: OutOfFoldCounts, steps: int, size: float, confidence: float
) -> dict[str, float]:
    """Return estimates and intervals at a fixed cut."""
    positives, negatives, squares = (
        float(counts.by_steps_flagged(name)[steps])
        for name in ("positives", "negatives", "flagged_squares")
    )
    flagged, total = positives + negatives, counts.total
    n_flagged = float(effective_rows(flagged, squares))
    shares = {
        "n_flagged": (flagged / total, float(effective_rows(total, counts.flagged_squares[-1]))),
        "precision": (positives / flagged if flagged else math.nan, n_flagged),
        "recall": (positives / counts.total_positives, counts.effective_positives),
        "false_positive_rate": (negatives / counts.total_negatives, counts.effective_negatives),
    }
    figures: dict[str, float] = {}
    certain = steps in (0, counts.n_steps)  # nothing and everything need no estimate
    for name, (share, n) in shares.items():
        low = high = share
        if name == "precision" or not certain:
            low, high = share_interval(0.0 if math.isnan(share) else share * n, n, confidence)
        scale = size if name == "n_flagged" else 1.0
        figures |= {name: share * scale, f"{name}_low": low * scale, f"{name}_high": high * scale}
    return figures


def _corrected(figures: dict[str, float], found: dict[str, Any]) -> dict[str, float]:
    """Return the shares less the mean optimism of the search."""
    return {
        key: float(np.clip(figures[key] - found[name], 0.0, 1.0))
        for name in ("precision", "recall", "false_positive_rate")
        for key in (name, f"{name}_low", f"{name}_high")
    }


def _expected_cost(
    counts: OutOfFoldCounts, steps: int, size: float, costs: Costs, found: dict, error: float
) -> dict[str, float]:
    """Return the cost of a searched cut, less the optimism of the search, with its interval."""
    scale = size / counts.total
    apparent = float(costs.totals(*_flagged(counts))[steps])
    expected = apparent - found["cost"]
    low, high = np.quantile(found["apparent_costs"], [error / 2, 1 - error / 2])
    return {
        "expected_cost": expected * scale,
        "expected_cost_low": float(expected + low - apparent) * scale,
        "expected_cost_high": float(expected + high - apparent) * scale,
    }


# -- rules ----------------------------------------------------------------------------------------


# A rule decides how many steps to flag, what that promises, and bounds from its own mathematics; `reached`
# among them says that a list is offered although the target was not met.
Choice = tuple[int, str, dict[str, float]]


def _cut_by_budget(counts: OutOfFoldCounts, budget: Any, error: float, size: float) -> Choice:
    """Take the longest list within the budget."""
    wanted = _check_amount(budget, "budget")
    if wanted > size:
        raise ValueError(
            f"the budget of {wanted:g} is larger than the {size:g} rows that it is to be spent on"
        )
    room = wanted / size * counts.total * (1 + 1e-12)
    steps = int(np.searchsorted(counts.flagged, room, side="right"))
    if steps == 0:
        text = (
            f"nothing is flagged: the {counts.flagged[0] * size / counts.total:g} rows at the top "
            f"of the list have equal scores and are more than the budget of {wanted:g}"
        )
        return 0, text, {}
    text = (
        f"of {size:g} new rows about {wanted:g} are flagged, as far as they resemble those the cut "
        "was chosen on; to keep to the budget exactly, take the first rows of each list"
    )
    return steps, text, {}


def _cut_by_fpr(counts: OutOfFoldCounts, fpr: Any, error: float, size: float) -> Choice:
    """Take the longest list whose false positive rate is low enough with confidence."""
    rate = _check_inside(fpr, "fpr")
    n = counts.effective_negatives
    share = counts.by_steps_flagged("negatives") / counts.total_negatives
    allowed = np.flatnonzero(probability_at_most(share * n, n, rate) <= error)
    limit = error * (1 + 1e-9)  # rounding
    within = bisect_right(allowed, limit, key=lambda k: list_risk(float(share[k]) * n, n, rate))
    allowed = allowed[:within]
    if not len(allowed):
        tries = (math.ceil(wrong / rate - 1e-9) for wrong in range(1, 1000))
        needed = next(size for size in tries if list_risk(0, size, rate) <= limit)
        text = (
            f"nothing is flagged: {n:g} negatives are too few to promise a false positive rate of "
            f"{_percent(rate)} with {_percent(1 - error)} confidence; {needed} are needed"
        )
        return 0, text, {}
    steps = int(allowed[-1])
    if steps == 0:
        text = (
            f"nothing is flagged: the {share[1] * counts.total_negatives:g} negatives among the rows "
            f"at the top of the list, which have equal scores, are too many for a false positive rate "
            f"of {_percent(rate)}"
        )
        return 0, text, {}
    bound = float(upper_share(share[steps] * n, n, error))
    text = f"with {_percent(1 - error)} confidence at most {_percent(rate)} of new negatives are flagged"
    return steps, text, {"false_positive_rate_high": min(bound, rate)}


def list_risk(m: float, n: float, rate: float) -> float:
    """Return how likely more than `rate` of n new negatives lie above the (m + 1)-th highest of n known ones.

    Not more than k do if m + 1 of the m + 1 + k highest of all 2n are known ones. These are n of 2n in random
    order, so their number there is hypergeometric.

    Examples
    --------
    >>> round(list_risk(0, 100, 0.04), 4)  # all of the five highest are new
    0.0297
    """
    m, n = math.ceil(m - 1e-9), math.floor(n + 1e-9)
    k = math.floor(rate * n + 1e-9)
    if k >= n:
        return 0.0
    drawn = m + 1 + k
    far = max(0, drawn - n, m - 50 - 20 * math.isqrt(drawn))  # what lies below is next to nothing
    known = np.arange(far, min(m, n) + 1)
    log_terms = _log_choose(n, known) + _log_choose(n, drawn - known) - _log_choose(2 * n, drawn)
    return float(np.exp(log_terms).sum())


def _log_choose(n: int, k: Any) -> Any:
    return -betaln(n - k + 1, k + 1) - math.log(n + 1)


def _cut_by_precision(counts: OutOfFoldCounts, precision: Any, error: float, size: float) -> Choice:
    """Take the longest list whose precision is high enough with confidence, over all lists tried."""
    share = _check_inside(precision, "precision")
    lengths = effective_rows(counts.flagged, counts.flagged_squares)
    hits = lengths * counts.positives / counts.flagged
    tried = tried_lists(lengths, share, error)
    passed, allowed = fallback_tests(hits[tried], lengths[tried], share, error)
    if not passed.any():
        return _best_effort(counts, hits, lengths, share, error)
    last = int(np.flatnonzero(passed)[-1])
    step = int(tried[last])
    bound = float(lower_share(hits[step], lengths[step], allowed[last]))
    text = (
        f"with {_percent(1 - error)} confidence at least {_percent(share)} of the rows flagged among "
        "new ones are positives"
    )
    return step + 1, text, {"precision_low": max(bound, share)}


def _best_effort(
    counts: OutOfFoldCounts, hits: np.ndarray, lengths: np.ndarray, share: float, error: float
) -> Choice:
    """Take the longest list that was precise enough, or the most precise one, without a promise.

    Its range holds for whichever of the lists of fixed lengths had been taken: each has its part of the
    error (Bonferroni).
    """
    tried = tried_lists(lengths, 0.5, error)  # of 5 rows or more, and lengths a tenth apart
    if not len(tried):
        text = f"nothing is flagged: {counts.total:g} rows are too few to say what a list is worth"
        return 0, text, {"reached": False}
    precise = np.flatnonzero(hits[tried] >= share * lengths[tried])
    best = int(np.argmax(lower_share(hits[tried], lengths[tried], error / len(tried))))
    step = int(tried[precise[-1] if len(precise) else best])
    part = error / (2 * len(tried))
    low, high = (
        float(bound(hits[step], lengths[step], part)) for bound in (lower_share, upper_share)
    )
    text = (
        f"no promise: no list reaches a precision of {_percent(share)} with {_percent(1 - error)} "
        f"confidence. The best effort: of the first {counts.flagged[step]:g} of {counts.total:g} rows "
        f"{_percent(hits[step] / lengths[step])} were right, which on new rows may be "
        f"{_percent(low)} to {_percent(high)}"
    )
    return step + 1, text, {"precision_low": low, "precision_high": high, "reached": False}


def tried_lists(lengths: np.ndarray, share: float, error: float) -> np.ndarray:
    """Return the steps after which lists are tested: fixed by the lengths, never by the labels.

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
    """Return which lists pass, and the error allowed to each: an equal part, and what the last one passed on.

    Given the scores, the hits of a list are a sum of independent draws whose mean probability is the
    precision. Beyond one more than their mean, such a sum exceeds a number less often than a binomial
    (Hoeffding 1956, Annals of Mathematical Statistics 27), so its tail is a valid p-value there.
    """
    passed, allowed = np.zeros(len(hits), dtype=bool), np.zeros(len(hits))
    p_values = probability_at_least(hits, lengths, share)
    passed_on = 0.0
    for k in range(len(hits)):
        allowed[k] = passed_on + error / len(hits)
        passed[k] = p_values[k] <= allowed[k] and hits[k] >= lengths[k] * share + 1
        passed_on = allowed[k] if passed[k] else 0.0
    return passed, allowed


def _cut_by_cost(counts: OutOfFoldCounts, cost: Any, error: float, size: float) -> Choice:
    """Take the cheapest list."""
    text = (
        "no promise: the cheapest cut on the rows given; the figures are corrected for the search"
    )
    return int(first_minimum(Costs.of(cost).totals(*_flagged(counts)))), text, {}


RULES: dict[str, Callable[[OutOfFoldCounts, Any, float, float], Choice]] = {
    "budget": _cut_by_budget,
    "fpr": _cut_by_fpr,
    "precision": _cut_by_precision,
    "cost": _cut_by_cost,
}


# -- costs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """What a false alarm and a miss cost and what a hit gains."""

    false_alarm: float
    miss: float
    gain: float = 0.0

    @classmethod
    def of(cls, cost: Any) -> Costs:
        """Read costs from a pair, a triple or a mapping."""
        names = ["false_alarm", "miss", "gain"]
        given = cost
        if np.ndim(cost) == 1 and len(cost) in (2, 3):
            given = dict(zip(names, cost, strict=False))
        if not isinstance(given, Mapping) or not set(names[:2]) <= set(given) <= set(names):
            raise ValueError(
                "cost must be a pair (false_alarm, miss), a triple (false_alarm, miss, gain) or a "
                f"mapping with these names, got {cost!r}"
            )
        costs = cls(**{name: _check_amount(given[name], name, zero=True) for name in given})
        if costs.miss + costs.gain == 0:
            raise ValueError("a miss must cost, or a hit gain, something; else flag nothing")
        return costs

    def totals(self, positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
        """Return the cost of each cut, from the weights of the classes above it (the last: of all)."""
        missed = positives[..., -1:] - positives
        return self.false_alarm * negatives + self.miss * missed - self.gain * positives


def _flagged(counts: OutOfFoldCounts) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the positives and negatives that each cut flags, from no step to all."""
    return counts.by_steps_flagged("positives"), counts.by_steps_flagged("negatives")


def _draw_flagged(counts: OutOfFoldCounts, n_resamples: int, random: Any) -> list[np.ndarray]:
    """Draw resamples that hold both classes: weights as by `_flagged`, one line for each resample.

    The rows of a step are drawn as a Poisson number of rows of the step's mean weight.
    """
    sums = []
    for name in ("positive", "negative"):
        weight = np.diff(getattr(counts, f"{name}s"), prepend=0.0)
        squares = np.diff(getattr(counts, f"{name}_squares"), prepend=0.0)
        some = (weight > 0) & (squares > 0)
        each = np.divide(squares, weight, out=np.zeros_like(weight), where=some)
        rows = np.divide(weight, each, out=np.zeros_like(weight), where=some)
        drawn = random.poisson(rows, size=(n_resamples, len(rows))) * each
        sums.append(np.pad(np.cumsum(drawn, axis=1), ((0, 0), (1, 0))))
    both = (sums[0][:, -1] > 0) & (sums[1][:, -1] > 0)
    return [values[both] for values in sums]


def _shares(positives: np.ndarray, negatives: np.ndarray, cuts: np.ndarray) -> dict[str, Any]:
    """Return precision, recall and false positive rate at the cut of each line."""
    lines = np.arange(len(cuts))
    hits, alarms = positives[lines, cuts], negatives[lines, cuts]
    precision = np.full(len(cuts), np.nan)
    np.divide(hits, hits + alarms, out=precision, where=hits + alarms > 0)
    recall, false_positive_rate = hits / positives[:, -1], alarms / negatives[:, -1]
    return {"precision": precision, "recall": recall, "false_positive_rate": false_positive_rate}


def first_minimum(costs: np.ndarray) -> np.ndarray:
    """Return the first of the lowest costs (of each line), equal but for rounding."""
    slack = 1e-12 * np.abs(costs).max(axis=-1, keepdims=True, initial=0.0)
    return np.argmax(costs <= costs.min(axis=-1, keepdims=True) + slack, axis=-1)


def optimism(
    counts: OutOfFoldCounts, costs: Costs, *, n_resamples: int = 1000, random_state: Any = 0
) -> dict[str, Any]:
    """Return by how much the search of the cheapest cut flatters its figures, by the bootstrap.

    Each resample chooses its own cheapest cut. A figure of that cut on the resample, less the same figure
    on the rows themselves, is the optimism of the search (Efron 1983, JASA 78): the means over the resamples
    of `precision`, `recall`, `false_positive_rate` and `cost`. `apparent_costs` are those of the original
    cut on each resample.
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples!r}")
    random, counts = check_random_state(random_state), counts.thin(BOOTSTRAP_STEPS)
    block = max(1, BLOCK_SIZE // (counts.n_steps + 1))
    original_costs = costs.totals(*_flagged(counts))
    parts = []
    for start in range(0, n_resamples, block):
        drawn = _draw_flagged(counts, min(block, n_resamples - start), random)
        positives, negatives = (np.broadcast_to(v, drawn[0].shape) for v in _flagged(counts))
        drawn_costs = costs.totals(*drawn)
        cuts = first_minimum(drawn_costs)
        # resamples differ in size: costs are compared for as many rows as there are
        drawn_costs *= counts.total / (drawn[0][:, -1:] + drawn[1][:, -1:])
        there, here = _shares(drawn[0], drawn[1], cuts), _shares(positives, negatives, cuts)
        part = {name: there[name] - here[name] for name in here}
        part["cost"] = drawn_costs[np.arange(len(cuts)), cuts] - original_costs[cuts]
        part["apparent_costs"] = drawn_costs[:, first_minimum(original_costs)]
        parts.append(part)
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    apparent = found.pop("apparent_costs")
    if not len(apparent):
        raise ValueError(
            "no resample holds both classes; there are too few rows to correct a search"
        )
    known = {name: values[~np.isnan(values)] for name, values in found.items()}
    means = {name: float(v.mean()) if len(v) else 0.0 for name, v in known.items()}
    return {**means, "apparent_costs": apparent}


# -- costs of single rows --------------------------------------------------------------------------

MOST_ROW_RESAMPLES = 200


@dataclass(frozen=True, eq=False)
class RowCosts:
    """What flagging each row changes: a false alarm costs, a hit saves the miss and gains."""

    change: np.ndarray  # of the cost, when the row is flagged
    unflagged: float  # cost when nothing is flagged

    @staticmethod
    def are_given(cost: Any) -> bool:
        """Return whether any of the costs is an array."""
        parts = cost.values() if isinstance(cost, Mapping) else cost
        try:
            return any(np.ndim(part) == 1 for part in parts)
        except TypeError:
            return False

    @classmethod
    def of(cls, cost: Any, positive: np.ndarray) -> RowCosts:
        """Check costs of single rows, or of all of them."""
        names = ["false_alarm", "miss", "gain"]
        given = dict(cost) if isinstance(cost, Mapping) else dict(zip(names, cost, strict=False))
        if not set(names[:2]) <= set(given) <= set(names):
            raise ValueError(
                f"cost needs false_alarm and miss, and may have gain; got {sorted(given)}"
            )
        columns = {}
        for name, part in given.items():
            cells = (
                np.broadcast_to(np.asarray(part, dtype=np.float64), positive.shape)
                if (np.ndim(part) == 0 or len(part) == len(positive))
                else np.empty(0)
            )
            if len(cells) != len(positive) or not (np.isfinite(cells) & (cells >= 0)).all():
                raise ValueError(
                    f"{name} must be a number of at least 0 for each of the {len(positive)} rows"
                )
            columns[name] = cells
        saved = columns["miss"] + columns.get("gain", 0.0)
        change = np.where(positive, -saved, columns["false_alarm"])
        return cls(change, float(columns["miss"][positive].sum()))


def _cut_by_row_costs(
    costs: RowCosts,
    positive: np.ndarray,
    scores: np.ndarray,
    *,
    population: float | None,
    confidence: float,
    n_resamples: int,
    random_state: Any,
) -> Cut:
    """Take the cheapest list where every row has costs of its own; correct its figures for the search.

    Each resample of the rows chooses its own cheapest list; by how much that looks cheaper there than on the
    rows themselves is the optimism, as in `optimism`.
    """
    error = 1.0 - _check_inside(confidence, "confidence")
    counts = OutOfFoldCounts.of(positive, scores)
    size = counts.total if population is None else _check_amount(population, "population")
    steps_of_rows = np.searchsorted(-counts.tops, -np.asarray(scores, dtype=np.float64))
    random = check_random_state(random_state)

    def totals(weight: np.ndarray) -> np.ndarray:
        sums = np.bincount(steps_of_rows, costs.change * weight, minlength=counts.n_steps)
        return np.concatenate([[0.0], np.cumsum(sums)])

    original = totals(np.ones(len(scores)))
    steps = int(first_minimum(original))
    flattery, apparent = [], []
    for _ in range(min(n_resamples, MOST_ROW_RESAMPLES)):
        drawn = totals(random.poisson(1.0, len(scores)).astype(np.float64))
        best = int(first_minimum(drawn))
        flattery.append(drawn[best] - original[best])
        apparent.append(drawn[steps] - original[steps])
    scale, expected = (
        size / counts.total,
        costs.unflagged + original[steps] - float(np.mean(flattery)),
    )
    low, high = np.quantile(apparent, [error / 2, 1 - error / 2])
    figures = _figures(counts, steps, size, confidence)
    known: dict[str, Any] = {"rule": "cost", "target": None, "reached": True}
    known["guarantee"] = (
        "no promise: the cheapest cut on the rows given; its cost is corrected for the search"
    )
    ends = {"": 0.0, "_low": float(low), "_high": float(high)}
    known |= {f"expected_cost{end}": (expected + shift) * scale for end, shift in ends.items()}
    return _make_cut(counts, steps, size, confidence, figures | known)


# -- checks ---------------------------------------------------------------------------------------


def _check_inside(value: Any, name: str) -> float:
    if check_share(value, name) == 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}.")
    return float(value)


def _check_amount(value: Any, name: str, *, zero: bool = False) -> float:
    """Return a finite number above 0, or of at least 0 where `zero`."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not 0 <= number < math.inf or (number == 0 and not zero):
        least = "of at least" if zero else "above"
        raise ValueError(f"{name} must be a number {least} 0, got {value!r}")
    return number


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
