"""How sure a figure is: confidence intervals and paired comparisons.

Bootstrap intervals are percentile intervals. Resamples are stratified: they keep the number of rows
of each class. Metrics over queries resample whole queries instead, among those that can be scored.
A row of positive weight is one observation, drawn like any other, that counts with its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from toprank.metrics.bootstrap import ListSample, seed_of
from toprank.metrics._delong import auc_covariance, normal_interval, structural_components
from toprank.metrics.registry import prepare
from toprank.metrics.roc import roc_auc_core
from toprank.validation import check_choice

__all__ = [
    "Comparison",
    "Interval",
    "bootstrap_interval",
    "compare",
    "corrected_interval",
    "holm",
    "interval",
    "verdict",
]

METHODS = ("auto", "bootstrap", "delong")
MetricLike = str | Callable[..., Any]


@dataclass(frozen=True)
class Interval:
    """A value with its confidence interval; unpacks as ``value, low, high``.

    Attributes
    ----------
    value, low, high : float
    level : float
        Confidence level, such as 0.95.
    method : {"bootstrap", "delong"}
    """

    value: float
    low: float
    high: float
    level: float
    method: str

    def __iter__(self) -> Iterator[float]:
        return iter((self.value, self.low, self.high))

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"

    def as_dict(self) -> dict[str, Any]:
        """Plain dict of the fields."""
        return asdict(self)


@dataclass(frozen=True)
class Comparison:
    """Difference of a metric between two lists of scores of the same rows, a minus b.

    Unpacks as ``difference, low, high``.

    Attributes
    ----------
    difference, low, high : float
        The difference and its confidence interval.
    p_value : float
        Two-sided, for the hypothesis of no difference.
    value_a, value_b : float
        The metric of each.
    level : float
        Confidence level, such as 0.95.
    method : {"bootstrap", "delong"}
    """

    difference: float
    low: float
    high: float
    p_value: float
    value_a: float
    value_b: float
    level: float
    method: str

    def __iter__(self) -> Iterator[float]:
        return iter((self.difference, self.low, self.high))

    def __str__(self) -> str:
        return f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}], p = {self.p_value:.3g}"

    def as_dict(self) -> dict[str, Any]:
        """Plain dict of the fields."""
        return asdict(self)


def interval(
    metric: MetricLike,
    y_true: Any,
    scores: Any,
    *,
    method: str = "auto",
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    qid: Any = None,
    **parameters: Any,
) -> Interval:
    """Confidence interval of a metric.

    Parameters
    ----------
    metric : str or callable
        Name or function of a metric of this module; or any function ``f(y_true, scores, ...)``,
        which is called anew on each resample (slower).
    y_true, scores, sample_weight, pos_label, qid
        Handed to the metric; `qid` only to metrics over queries.
    method : {"auto", "bootstrap", "delong"}, default="auto"
        - "bootstrap": percentiles of the metric over resamples of the rows within each class, or of
          the queries;
        - "delong": normal interval with DeLong's variance, for `roc_auc` only;
        - "auto": DeLong for `roc_auc` (with at least two rows of each class), else the bootstrap.
    level : float, default=0.95
        Confidence level.
    n_resamples : int, default=1000
        Number of bootstrap resamples.
    random_state : int, Generator, RandomState or None, default=0
        Fixes the resamples. The answer does not depend on `n_jobs`.
    n_jobs : int, optional
        Threads; None is one, -1 all processors.
    **parameters
        Parameters of the metric, such as ``k=100``.

    Returns
    -------
    Interval
        With `value`, `low`, `high`, `level` and `method`.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> y = np.arange(200) < 40
    >>> scores = generator.normal(size=200) + y
    >>> print(interval("roc_auc", y, scores))
    0.7544 [0.6775, 0.8312]
    >>> value, low, high = interval("precision_at_k", y, scores, k=20, n_resamples=200)
    >>> low <= value <= high
    True
    """
    check_level(level)
    data = (sample_weight, pos_label, qid, parameters)
    sample, job = prepare(metric, y_true, scores, *data)
    chosen = _choose(method, [sample], job[0])
    if chosen == "delong":
        areas, covariance = _delong([sample])  # type: ignore[list-item]
        low, high = normal_interval(areas[0], covariance[0, 0], level, 0.0, 1.0)
        return Interval(float(areas[0]), low, high, level, "delong")
    value = sample.value(job)
    values = sample.distribution([job], check_resamples(n_resamples), seed_of(random_state), n_jobs)
    return Interval(value, *percentiles(values[0], level), level, "bootstrap")


def compare(
    metric: MetricLike,
    y_true: Any,
    scores_a: Any,
    scores_b: Any,
    *,
    method: str = "auto",
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    qid: Any = None,
    **parameters: Any,
) -> Comparison:
    """Difference of a metric between two lists of scores of the same rows, with its interval.

    Paired: every resample draws the same rows (or queries) for both.

    Parameters
    ----------
    metric, y_true, method, level, n_resamples, random_state, n_jobs, sample_weight, pos_label, qid
        As in :func:`interval`.
    scores_a, scores_b : array-like of shape (n_rows,)
        The two lists of scores.
    **parameters
        Parameters of the metric.

    Returns
    -------
    Comparison
        With `difference` (a minus b), `low`, `high`, `p_value`, `value_a`, `value_b`. The p-value
        of the bootstrap is twice the smaller share of resamples on either side of zero, counting
        the data itself as one more resample.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> y = np.arange(200) < 40
    >>> good, poor = generator.normal(size=(2, 200)) + np.outer([2, 0], y)
    >>> result = compare("average_precision", y, good, poor, n_resamples=200)
    >>> result.difference > 0, result.p_value < 0.05
    (True, True)
    """
    check_level(level)
    data = (sample_weight, pos_label, qid, parameters)
    sample_a, job = prepare(metric, y_true, scores_a, *data)
    sample_b, _ = prepare(metric, y_true, scores_b, *data)
    if _choose(method, [sample_a, sample_b], job[0]) == "delong":
        return _compare_delong(sample_a, sample_b, level)  # type: ignore[arg-type]
    value_a, value_b = sample_a.value(job), sample_b.value(job)
    count, seed = check_resamples(n_resamples), seed_of(random_state)
    differences = np.subtract(
        sample_a.distribution([job], count, seed, n_jobs)[0],
        sample_b.distribution([job], count, seed, n_jobs)[0],
    )
    low, high = percentiles(differences, level)
    tail = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    p_value = min(1.0, 2.0 * (int(tail) + 1) / (count + 1))
    difference = value_a - value_b
    return Comparison(difference, low, high, p_value, value_a, value_b, level, "bootstrap")


def _compare_delong(sample_a: ListSample, sample_b: ListSample, level: float) -> Comparison:
    """Normal test and interval of the difference of two correlated AUCs."""
    areas, covariance = _delong([sample_a, sample_b])
    difference = float(areas[0] - areas[1])
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    low, high = normal_interval(difference, variance, level, -1.0, 1.0)
    if variance > 1e-20:
        p_value = 2 * NormalDist().cdf(-abs(difference) / variance**0.5)
    else:  # the two orderings agree on every row, or both are perfect
        p_value = 1.0 if abs(difference) < 1e-12 else 0.0
    value_a, value_b = float(areas[0]), float(areas[1])
    return Comparison(difference, low, high, p_value, value_a, value_b, level, "delong")


def _delong(samples: list[ListSample]) -> tuple[np.ndarray, np.ndarray]:
    """AUC of each sample and their covariance."""
    rows = samples[0].rows
    components = [structural_components(sample.ranked, rows.positive) for sample in samples]
    weights = (None, None)
    if rows.weight is not None:
        weights = (rows.weight[rows.positive], rows.weight[~rows.positive])
    return auc_covariance(components, *weights)


def delong_interval(sample: ListSample, level: float) -> tuple[float, float]:
    """Interval of the AUC of one sample."""
    areas, covariance = _delong([sample])
    return normal_interval(float(areas[0]), float(covariance[0, 0]), level, 0.0, 1.0)


def has_delong(sample: Any, core: Callable[..., Any]) -> bool:
    """Whether DeLong's variance exists: the AUC, with two rows of each class."""
    if core is not roc_auc_core:
        return False
    n_positives = int(np.count_nonzero(sample.rows.positive))
    return min(n_positives, len(sample.rows.positive) - n_positives) > 1


def _choose(method: str, samples: list[Any], core: Callable[..., Any]) -> str:
    """Resolve `method` for a metric."""
    check_choice(method, "method", METHODS)
    if method == "delong" and core is not roc_auc_core:
        raise ValueError("DeLong's interval is for roc_auc only: use method='bootstrap'.")
    if method != "auto":
        return method
    return "delong" if has_delong(samples[0], core) else "bootstrap"


def percentiles(values: np.ndarray, level: float) -> tuple[float, float]:
    """Percentile interval of bootstrap values."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def check_level(level: Any) -> float:
    """A confidence level between 0 and 1."""
    if not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}.")
    return float(level)


def check_resamples(n_resamples: Any) -> int:
    """At least one resample."""
    if int(n_resamples) != n_resamples or n_resamples < 1:
        raise ValueError(f"n_resamples must be a whole number of at least 1, got {n_resamples!r}.")
    return int(n_resamples)


def corrected_interval(
    values: Any, test_share: float, level: float = 0.95
) -> tuple[float, float, float, float]:
    r"""Mean over splits that share training rows, its interval, and the p-value of a mean of zero.

    Values of different splits are not independent: their training sets overlap. Nadeau and Bengio
    (2003, Inference for the generalization error, Machine Learning 52) put the correlation at the
    share of rows that is tested, which for J splits with test sets of :math:`n_2` rows and training
    sets of :math:`n_1` gives the mean a variance of

    .. math:: \left(\frac1J + \frac{n_2}{n_1}\right) s^2,

    with :math:`s^2` the sample variance, and Student's t with J - 1 degrees of freedom. Bouckaert and
    Frank (2004) use the same for repeated cross-validation, as is done here.

    Parameters
    ----------
    values : array of shape (n_splits,)
        A metric, or a difference of two models, on each split.
    test_share : float
        :math:`n_2 / n_1`; the mean over the splits.
    level : float, default=0.95

    Returns
    -------
    mean, low, high, p_value : float
        With fewer than two values the interval is everything, and the p-value 1.

    Examples
    --------
    >>> [round(v, 3) for v in corrected_interval([0.1, 0.2, 0.3, 0.2], 0.25)]
    [0.2, 0.016, 0.384, 0.041]
    """
    from scipy import stats  # slow to import, and only needed here

    values = np.asarray(values, dtype=np.float64)
    count = len(values)
    mean = float(values.mean())
    if count < 2:
        return mean, -np.inf, np.inf, 1.0
    spread = float(values.std(ddof=1))
    if spread <= 1e-15 * max(1.0, abs(mean)):  # the same on every split
        return (0.0, 0.0, 0.0, 1.0) if abs(mean) < 1e-15 else (mean, mean, mean, 0.0)
    error = spread * float(np.sqrt(1 / count + test_share))
    half = float(stats.t.ppf((1 + level) / 2, count - 1)) * error
    p_value = 2 * float(stats.t.sf(abs(mean) / error, count - 1))
    return mean, mean - half, mean + half, p_value


def bootstrap_interval(
    value: float, resampled: np.ndarray, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Percentile interval of resampled values and the p-value of a value of zero.

    The p-value is twice the smaller share of resamples on either side of zero, with the data itself
    counted as one more resample.

    Examples
    --------
    >>> import numpy as np
    >>> value, low, high, p = bootstrap_interval(0.5, np.linspace(0.01, 1, 99))
    >>> round(low, 3), round(high, 3), p
    (0.035, 0.975, 0.02)
    """
    low, high = percentiles(resampled, level)
    tail = min(np.count_nonzero(resampled <= 0), np.count_nonzero(resampled >= 0))
    p_value = min(1.0, 2.0 * (int(tail) + 1) / (len(resampled) + 1))
    return float(value), low, high, p_value


def holm(p_values: Any) -> np.ndarray:
    """P-values adjusted for their number by Holm's step-down rule (1979).

    The smallest of m is multiplied by m, the next by m - 1, and so on; an adjusted value is never
    below that of a smaller one. Calling those below alpha real keeps the chance of even one false
    call below alpha, however the tests depend on one another.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(factors * p_values[order]))
    adjusted = np.empty_like(stepped)
    adjusted[order] = stepped
    return adjusted


def verdict(difference: float, p_value: float, level: float = 0.95) -> str:
    """Say "better", "worse" or "cannot tell".

    Examples
    --------
    >>> verdict(0.02, 0.01), verdict(-0.02, 0.01), verdict(0.02, 0.2)
    ('better', 'worse', 'cannot tell')
    """
    if not p_value <= 1 - level or difference == 0:
        return "cannot tell"
    return "better" if difference > 0 else "worse"
