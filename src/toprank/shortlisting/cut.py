"""Where to cut a ranked list: by budget, false positive rate, precision or cost.

All rules look at rows whose labels are known and whose scores the model could not have learnt by heart:
held out, or cross-fitted (`cross_fitted_scores`). What they promise holds for new rows from the same source,
scored by the same model; scores of the training rows themselves make every promise void.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from toprank.shortlisting.bounds import effective_rows, share_interval
from toprank.shortlisting.costs import Costs, optimism
from toprank.shortlisting.cut_rules import RULES, inside, positive_number
from toprank.shortlisting.staircase import Staircase
from toprank.validation import binary_rows

__all__ = ["Cut", "choose_cut", "cut_stairs"]


@dataclass(frozen=True)
class Cut:
    """A threshold and what to expect of the rows above it.

    All counts are on the scale of `population` rows. Each figure has an interval, `_low` to `_high`, at
    the confidence asked for.

    Attributes
    ----------
    rule : {"budget", "fpr", "precision", "cost"}
    target : float or dict
        What was asked for.
    threshold : float
        Rows with a score above it are flagged: half-way between two neighbouring scores, so that
        ties are never split. Infinite when nothing (or, negative, everything) is flagged.
    reached : bool
        Whether the rule could be met; if not, nothing is flagged and `guarantee` says why.
    guarantee : str
        What holds for new rows, in words.
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
        """Which scores lie above the threshold."""
        return np.asarray(scores) > self.threshold

    def as_dict(self) -> dict[str, Any]:
        """The cut as plain JSON data; what is infinite or NaN becomes None."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: None if _not_finite(v) else v for k, v in plain.items()}


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
        With the asked confidence, the false positive rate on new rows is at most this. Of n
        negatives, m may lie above the threshold if P(Binomial(n, fpr) <= m) <= 1 - confidence (the
        umbrella algorithm of Tong, Feng and Li 2018, Science Advances 4): exact, whatever
        the distribution of the scores.
    precision : float, optional
        With the asked confidence, at least this share of the list is right, although the cut is
        searched. Lists of lengths fixed beforehand (each a tenth longer than the last) are
        tested from the shortest on by an exact binomial test; the error allowed is shared out
        among them, and a test that succeeds hands its share on to the next (the fallback
        procedure, Wiens and Dmitrienko 2005, J. Biopharmaceutical Statistics 15), so that the
        error over all of them stays within what was asked. The longest list that passes is taken.
    cost : pair, triple or mapping, optional
        Cost of a false alarm, cost of a miss and, optionally, gain of a hit; or a mapping with the
        keys ``false_alarm``, ``miss`` and ``gain``. The cheapest cut is taken. The figures are
        corrected by the bootstrap for the optimism of the search.
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
    approximate in one more way: the models of the folds stand for the final one.

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
    stairs = Staircase.of(rows.positive, rows.scores, rows.weight)
    return cut_stairs(
        stairs,
        budget=budget,
        fpr=fpr,
        precision=precision,
        cost=cost,
        population=population,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
    )


def cut_stairs(
    stairs: Staircase,
    *,
    budget: float | None = None,
    fpr: float | None = None,
    precision: float | None = None,
    cost: Any = None,
    population: float | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
) -> Cut:
    """What `choose_cut` does, from a `Staircase`."""
    asked = {"budget": budget, "fpr": fpr, "precision": precision, "cost": cost}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) != 1:
        raise ValueError(
            "give exactly one of budget, fpr, precision and cost to choose the cut by; "
            f"got {', '.join(given) if given else 'none'}"
        )
    (rule,) = given
    error = 1.0 - inside(confidence, "confidence")
    size = stairs.total if population is None else positive_number(population, "population")
    target, choice = RULES[rule](stairs, asked[rule], error, size)
    figures = _figures(stairs, choice.steps, size, confidence)
    figures |= dict(choice.bounds or {})
    if rule == "cost":
        costs = Costs.of(target)
        shift = optimism(stairs, costs, n_resamples=n_resamples, random_state=random_state)
        figures = _corrected(stairs, choice.steps, size, figures, costs, shift, error)
    return Cut(
        rule=rule,
        target=target,
        confidence=float(confidence),
        reached=choice.reached,
        threshold=stairs.threshold(choice.steps),
        population=size,
        guarantee=choice.guarantee,
        **_with_false_alarms(figures),
    )


# -- what to expect of a cut ----------------------------------------------------------------------


def _figures(stairs: Staircase, steps: int, size: float, confidence: float) -> dict[str, float]:
    """Estimates and intervals at a fixed cut."""
    positives = float(stairs.above("positives")[steps])
    negatives = float(stairs.above("negatives")[steps])
    squares = float(
        stairs.above("positive_squares")[steps] + stairs.above("negative_squares")[steps]
    )
    flagged, total = positives + negatives, stairs.total
    total_squares = float(stairs.flagged_squares[-1])
    shares = {
        "n_flagged": (flagged / total, float(effective_rows(total, total_squares))),
        "precision": (
            positives / flagged if flagged else math.nan,
            float(effective_rows(flagged, squares)),
        ),
        "recall": (positives / stairs.total_positives, stairs.effective_positives),
        "false_positive_rate": (negatives / stairs.total_negatives, stairs.effective_negatives),
    }
    figures: dict[str, float] = {}
    certain = steps in (0, stairs.n_steps)  # nothing and everything need no estimate
    for name, (share, n) in shares.items():
        low, high = (share, share) if certain else share_interval(share * n, n, confidence)
        if name == "precision":
            hits = 0.0 if math.isnan(share) else share * n
            low, high = share_interval(hits, n, confidence)
        figures |= {name: share, f"{name}_low": low, f"{name}_high": high}
    for name in ("n_flagged", "n_flagged_low", "n_flagged_high"):
        figures[name] *= size
    return figures


def _corrected(
    stairs: Staircase,
    steps: int,
    size: float,
    figures: dict[str, float],
    costs: Costs,
    shift: Mapping[str, Any],
    error: float,
) -> dict[str, float]:
    """Figures of a searched cut, moved by the mean optimism of the search and kept within bounds."""
    corrected = dict(figures)
    for name in ("precision", "recall", "false_positive_rate"):
        for key in (name, f"{name}_low", f"{name}_high"):
            corrected[key] = float(np.clip(figures[key] - shift[name], 0.0, 1.0))
    scale = size / stairs.total
    apparent = float(costs.totals(stairs.above("positives"), stairs.above("negatives"))[steps])
    low, high = np.quantile(shift["apparent"], [error / 2, 1 - error / 2])
    centre = apparent - shift["cost"]
    corrected["expected_cost"] = centre * scale
    corrected["expected_cost_low"] = float(centre + low - apparent) * scale
    corrected["expected_cost_high"] = float(centre + high - apparent) * scale
    return corrected


def _with_false_alarms(figures: dict[str, float]) -> dict[str, float]:
    flagged = figures["n_flagged"]
    wrong = 0.0 if math.isnan(figures["precision"]) else 1.0 - figures["precision"]
    return {
        **figures,
        "false_alarms": flagged * wrong,
        "false_alarms_low": flagged * (1.0 - figures["precision_high"]),
        "false_alarms_high": flagged * (1.0 - figures["precision_low"]),
    }


def _not_finite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
