"""How much each member counts, and how good the result will be, both from out-of-fold scores.

With few positives the metric of out-of-fold scores is mostly noise, and the best of many members is mostly
lucky. So a member counts the less, the more standard errors it lies behind the best one, and a single model
is left only where all the others are far behind. With many positives greedy selection (Caruana,
Niculescu-Mizil, Crew & Ksikes 2004, Ensemble selection from libraries of models) has a say: start from
nothing, and add the member that helps the metric most, again and again and with replacement.

Stacking (Breiman 1996, Stacked regressions) tells better which members complement one another: a logistic
regression of the labels on their log-odds, with weights that are not negative. Its penalty is centred on the
weights above, mixed with the prior weights that members have from the development sets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from toprank import metrics
from toprank.base import TrainingData

__all__ = [
    "LogOdds",
    "assess",
    "cross_fitted_ensemble",
    "greedy_weights",
    "select_weights",
    "stacking_weights",
    "to_log_odds",
    "widen",
]

N_STEPS = 12
# random halves of the rows that tell the standard errors; those that greedy selection sees
N_HALVES, N_BAGS = 20, 4
PRIOR_POSITIVES = 300.0  # with as many positives, greedy selection has half of the say,
LEAST_SAY = 0.25  # and with so few that it has less than this, none
MOST_ROWS = 5_000  # of each class, that the choice looks at
PENALTY = 1.0  # of stacking, on squared distances from the weights it starts from
SMALLEST = 0.02  # weights below are not worth the time that it takes to score

Metric = Callable[..., float]  # (y, scores, sample_weight, qid), the more the better


@dataclass(frozen=True)
class LogOdds:
    """The line that turns the scores of a member into log-odds (Platt 1999), never falling.

    Attributes
    ----------
    slope, intercept : float
    low, high : float
        Scores are cut off here: a little beyond the out-of-fold scores.
    """

    slope: float
    intercept: float
    low: float
    high: float

    @classmethod
    def of(cls, y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None) -> LogOdds:
        """Fit the line to out-of-fold scores, with Platt's smoothed labels.

        Examples
        --------
        >>> import numpy as np
        >>> scores = np.linspace(-3, 3, 100)
        >>> LogOdds.of((scores > 1).astype(float), scores).slope > 1
        True
        """
        weight = np.ones(len(y)) if weight is None else weight
        low, high = float(scores.min()), float(scores.max())
        margin = 0.5 * (high - low)
        total = weight.sum()
        mean = float(weight @ scores / total)
        spread = float(np.sqrt(weight @ (scores - mean) ** 2 / total))
        positives, negatives = weight @ (y > 0), weight @ (y <= 0)
        share = (positives + 1) / (total + 2)
        if not spread > 1e-12 * max(1.0, abs(mean)):
            return cls(0.0, float(np.log(share / (1 - share))), low - 1.0, high + 1.0)
        target = np.where(y > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
        rows = np.tile((scores - mean) / spread, 2)[:, None]
        labels = np.repeat([1, 0], len(y))
        weights = np.concatenate([weight * target, weight * (1 - target)])
        line = LogisticRegression(C=100.0, solver="newton-cholesky").fit(rows, labels, weights)
        slope = max(float(line.coef_[0, 0]), 0.0) / spread
        intercept = float(line.intercept_[0]) - slope * mean
        return cls(slope, intercept, low - margin, high + margin)

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        return self.slope * np.clip(scores, self.low, self.high) + self.intercept


def greedy_weights(held_out: TrainingData, metric: Metric, n_steps: int = N_STEPS) -> np.ndarray:
    """Add members with replacement, each time the one after which the metric of the mean is best.

    Of all the means on the way the best is kept, the shortest if several are.

    Parameters
    ----------
    held_out : TrainingData
        Its matrix holds the scores of the members, on one scale.
    metric : callable
        ``metric(y, scores, sample_weight, qid)``, the more the better.
    n_steps : int

    Returns
    -------
    weights : ndarray of shape (n_members,)
        They sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.metrics import average_precision
    >>> columns = np.array([[3.0, 0.0], [0.0, 3.0], [1.0, 1.0], [0.0, 0.0]])
    >>> held_out = TrainingData(columns, np.array([1, 1, 0, 0]), None, None)
    >>> greedy_weights(held_out, lambda y, scores, weight, qid: average_precision(y, scores)).tolist()
    [0.5, 0.5]
    """
    columns = held_out.X
    known = (held_out.sample_weight, held_out.qid)
    n_members = columns.shape[1]
    counts, total = np.zeros(n_members), np.zeros(len(columns))
    best, best_value = counts, -np.inf
    for _ in range(n_steps if n_members > 1 else 1):
        values = [metric(held_out.y, total + columns[:, m], *known) for m in range(n_members)]
        chosen = int(np.argmax(values))
        counts = counts.copy()
        counts[chosen] += 1
        total = total + columns[:, chosen]
        if values[chosen] > best_value + 1e-12:
            best, best_value = counts, values[chosen]
    return best / best.sum()


def stacking_weights(held_out: TrainingData, centre: np.ndarray) -> np.ndarray:
    """Fit a logistic regression of the labels on the members, with weights that are not negative.

    It minimises the log-loss plus ``PENALTY * |weights - centre|²``, so that with few positives the weights
    stay near `centre`.

    Parameters
    ----------
    held_out : TrainingData
        Its matrix holds the log-odds of the members.
    centre : ndarray of shape (n_members,)
        Weights that sum to 1.

    Returns
    -------
    weights : ndarray of shape (n_members,)
        They sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> signal = random.normal(size=400)
    >>> y = (signal > 1).astype(float)
    >>> columns = np.column_stack([signal, random.normal(size=400)]) - 1
    >>> weights = stacking_weights(TrainingData(columns, y, None, None), np.array([0.5, 0.5]))
    >>> bool(weights[0] > 0.9)
    True
    """
    columns, y = held_out.X, held_out.y
    weight = held_out.weights / held_out.weights[y > 0].mean()  # on whatever scale they were given

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        moved, intercept = parameters[:-1] - centre, parameters[-1]
        odds = columns @ parameters[:-1] + intercept
        error = weight * (expit(odds) - y)
        value = weight @ (np.logaddexp(0.0, odds) - y * odds) + PENALTY * moved @ moved
        return value, np.append(columns.T @ error + 2 * PENALTY * moved, error.sum())

    bounds = [(0.0, None)] * len(centre) + [(None, None)]
    found = minimize(loss, np.append(centre, 0.0), jac=True, method="L-BFGS-B", bounds=bounds)
    weights = found.x[:-1]
    return weights / weights.sum() if weights.sum() > 0 else centre


def select_weights(
    held_out: TrainingData, metric: Metric, seed: int = 0, prior: np.ndarray | None = None
) -> np.ndarray:
    """Choose the weights of members.

    A member whose metric is v, where the best one has b, has the weight exp((v - b) / s): s is the standard
    error of the difference, which is its standard deviation over random halves of the rows. With P positives
    (or negatives, if they are fewer) these weights have a share of 300 / (300 + P), and the mean of greedy
    selections on some of the halves has the rest, from 100 positives on. They are mixed with `prior`, and the
    mixture is the centre of `stacking_weights`.

    Parameters
    ----------
    held_out : TrainingData
        Its matrix holds the log-odds of the members.
    metric : callable
        ``metric(y, scores, sample_weight, qid)``, the more the better.
    seed : int
        Of the halves.
    prior : ndarray of shape (n_members,), optional
        Weights known beforehand, from other data; they sum to 1 or less, and the rest goes by the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.metrics import average_precision
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(300) < 60
    >>> columns = np.column_stack([y + 0.5 * random.normal(size=300), random.normal(size=300)])
    >>> held_out = TrainingData(columns, y.astype(float), None, None)
    >>> select_weights(held_out, lambda y, scores, *_: average_precision(y, scores)).tolist()
    [1.0, 0.0]
    """
    if held_out.X.shape[1] == 1:
        return np.ones(1)
    few = _fewer_rows(held_out, seed)
    random = np.random.default_rng(seed)
    halves = [few.rows(_draw_half(few.y, random)) for _ in range(N_HALVES)]
    values, by_half = _values(few, metric), np.stack([_values(half, metric) for half in halves])
    best = int(np.argmax(values))
    behind = values[best] - values
    errors = np.std(by_half - by_half[:, [best]], axis=0)
    chance = metric(few.y, np.zeros(len(few.y)), few.sample_weight, few.qid)
    least = 0.01 * abs(values[best] - chance) + np.finfo(float).tiny
    weights = np.exp(-behind / np.maximum(errors, least))
    weights /= weights.sum()
    rarer = min(np.sum(few.y > 0), np.sum(few.y <= 0))
    say = rarer / (rarer + PRIOR_POSITIVES)
    if say >= LEAST_SAY:
        greedy = np.mean([greedy_weights(half, metric) for half in halves[:N_BAGS]], axis=0)
        weights = (1 - say) * weights + say * greedy
    if prior is not None:
        weights = prior + (1 - prior.sum()) * weights
    weights = stacking_weights(few, weights)
    weights[weights < SMALLEST] = 0.0
    return weights / weights.sum()


def _values(held_out: TrainingData, metric: Metric) -> np.ndarray:
    """Return the metric of each member."""
    known = (held_out.sample_weight, held_out.qid)
    return np.array([metric(held_out.y, column, *known) for column in held_out.X.T])


def _fewer_rows(held_out: TrainingData, seed: int) -> TrainingData:
    """Return at most so many rows of each class, with weights for those that they stand for."""
    random = np.random.default_rng(seed)
    rows, factors = [], []
    for side in (held_out.y > 0, held_out.y <= 0):
        places = np.flatnonzero(side)
        kept = (
            places if len(places) <= MOST_ROWS else random.choice(places, MOST_ROWS, replace=False)
        )
        rows.append(kept)
        factors.append(np.full(len(kept), len(places) / max(len(kept), 1)))
    factor = np.concatenate(factors)
    if (factor == 1).all():
        return held_out
    few = held_out.rows(np.concatenate(rows))
    return replace(few, sample_weight=factor * few.weights)


def _draw_half(y: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Draw half of the rows of each class, at least one."""
    sides = [np.flatnonzero(side) for side in (y > 0, y <= 0)]
    return np.concatenate([random.choice(s, (len(s) + 1) // 2, replace=False) for s in sides])


def to_log_odds(held_out: TrainingData, scores: np.ndarray) -> tuple[list[LogOdds], np.ndarray]:
    """Learn the scale of each member from held-out rows, and return the log-odds of `scores`."""
    scales = [LogOdds.of(held_out.y, own, held_out.sample_weight) for own in held_out.X.T]
    return scales, np.column_stack([f(own) for f, own in zip(scales, scores.T, strict=True)])


def cross_fitted_ensemble(
    held_out: TrainingData,
    parts: np.ndarray,
    metric: Metric,
    seed: int = 0,
    prior: np.ndarray | None = None,
) -> np.ndarray:
    """Score every row by members whose scale and weights were chosen without it.

    Parameters
    ----------
    held_out : TrainingData
        Its matrix holds the out-of-fold scores of the members.
    parts : int ndarray of shape (n_rows,)
        The rows of one part are scored by what the others chose.
    metric, seed, prior
        As `select_weights` takes them.

    Returns
    -------
    scores : ndarray of shape (n_rows,)
        Log-odds.
    """
    out = np.full(len(parts), np.nan)
    for part in np.unique(parts):
        inside = parts == part
        others = held_out.rows(~inside)
        if len(np.unique(others.y > 0)) < 2:
            others = held_out  # no other part has both classes
        _, columns = to_log_odds(others, others.X)
        chosen = select_weights(replace(others, X=columns), metric, seed, prior)
        out[inside] = to_log_odds(others, held_out.X[inside])[1] @ chosen
    return out


# -- how good it will be ------------------------------------------------------------------------------

LEVEL = 0.95
LUCK = 0.25  # variance between fits, over that of the held-out rows
GAIN = 0.1  # log-odds by which the mean of all fold models is better than the one that did not see a row
DRAWN_ROWS = 2e7  # in all resamples
FEWEST, MOST = 100, 500  # resamples


def assess(
    y: np.ndarray,
    scores: np.ndarray,
    sample_weight: np.ndarray | None = None,
    qid: np.ndarray | None = None,
    *,
    groups: np.ndarray | None = None,
    n_rows: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
    n_jobs: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the metrics of held-out scores, each with an interval for a new list.

    The scores are those of `cross_fitted_ensemble`: neither the models nor their weights have seen the row.
    A bootstrap of the rows says how far their metric may lie from that of all rows to come; the metric of a
    new list varies in its turn, the more the shorter it is. The interval allows for both, for the luck of one
    fit and, at its upper end, for what the mean of all models gains over the one that did not see a row.

    Parameters
    ----------
    y, scores, sample_weight, qid : ndarray
        Held-out rows.
    groups : ndarray, optional
        Of the held-out rows: the bootstrap draws whole groups.
    n_rows : int, optional
        Length of the new list; by default that of the held-out rows.
    level : float, default=0.95
    seed : int
    n_jobs : int or None

    Returns
    -------
    estimated : dict
        From the name of each metric to a dict with `value`, `low`, `high`, `level` and `parameters`.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(200) < 40
    >>> scores = np.random.default_rng(0).normal(size=200) + 2 * y
    >>> same, short = (assess(y, scores, n_rows=n)["average_precision"] for n in (200, 20))
    >>> short["low"] < same["low"] < same["value"] < same["high"] < short["high"]
    True
    """
    n_resamples = int(np.clip(DRAWN_ROWS / len(y), FEWEST, MOST))
    found = metrics.evaluate(
        y, scores, qid=qid, groups=groups, sample_weight=sample_weight, intervals="bootstrap", level=level,
        n_resamples=n_resamples, random_state=seed, n_jobs=n_jobs,
    )  # fmt: skip
    n_positives = max(int(np.sum(y > 0)), 1)
    factor = np.sqrt(1.0 + LUCK + len(y) / (len(y) if n_rows is None else max(n_rows, 1)))
    estimated = {}
    for name, entry in found.items():
        figures = [entry[key] for key in ("value", "low", "high")]
        if any(figure is None or not np.isfinite(figure) for figure in figures):
            continue  # it cannot be computed from these rows
        value, low, high = map(float, figures)
        if min(low, value) >= 0 and max(high, value) <= 1:
            low, high = widen(value, low, high, factor, 1 / n_positives, GAIN)
        else:
            half = factor * (high - low) / 2
            low, high = value - half, value + half
        estimated[name] = {
            "value": value, "low": low, "high": high, "level": level, "parameters": entry["parameters"],
        }  # fmt: skip
    return estimated


def widen(
    value: float, low: float, high: float, factor: float, least: float, gain: float = 0.0
) -> tuple[float, float]:
    """Widen an interval of a metric between 0 and 1 by a factor, around its value, in log-odds.

    Parameters
    ----------
    value, low, high : float
    factor : float
        Of the half-width.
    least : float
        The interval reaches at least so far to either side, within 0 and 1.
    gain : float, default=0.0
        Log-odds that the upper end is moved up by.

    Examples
    --------
    >>> low, high = widen(0.5, 0.4, 0.6, 2.0, 0.01)
    >>> round(low, 3), round(high, 3)
    (0.308, 0.692)
    >>> widen(1.0, 1.0, 1.0, 2.0, 0.1)
    (0.9, 1.0)
    """
    edge = min(least, 0.25) / 4

    def log_odds(share: float) -> float:
        inside = min(max(share, edge), 1 - edge)
        return float(np.log(inside) - np.log1p(-inside))

    half = factor * (log_odds(high) - log_odds(low)) / 2
    lower, upper = (1 / (1 + np.exp(-log_odds(value) - move)) for move in (-half, half + gain))
    return float(max(min(lower, value - least), 0.0)), float(min(max(upper, value + least), 1.0))
