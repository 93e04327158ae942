"""Confidence intervals of metrics, paired comparisons, and all metrics of a list with their intervals.

Bootstrap intervals are percentile intervals. Resamples are stratified: they keep the number of rows
of each class. Metrics over queries resample whole queries instead, among those that can be scored; with
groups whole groups are drawn, since rows of one customer or patient are not independent.
A row of positive weight is one observation, drawn like any other, that counts with its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from toprank.docstrings import fill_docstring
from toprank.formatting import to_jsonable, to_python
from toprank.metrics.bootstrap import Job, ListSample, TableSample, seed_of
from toprank.metrics.lists import roc_auc
from toprank.metrics.queries import mean_over_queries
from toprank.metrics.registry import (
    METRICS,
    Metric,
    find_metric,
    is_graded,
    list_sample,
    prepare,
    takes_list,
)
from toprank.validation import check_choice, graded_rows

__all__ = [
    "Comparison",
    "Interval",
    "bootstrap_interval",
    "compare",
    "corrected_interval",
    "evaluate",
    "holm",
    "holm_levels",
    "interval",
    "interval_verdict",
    "verdict",
]

MetricLike = str | Callable[..., Any]
NO_GROUPS = "DeLong's interval knows no groups: use the bootstrap."


@dataclass(frozen=True)
class Resampling:
    """How a bootstrap is drawn: confidence level, number of resamples, seed and threads."""

    level: float
    n_resamples: int
    seed: int
    n_jobs: int | None = None

    @classmethod
    def of(
        cls, level: float, n_resamples: int, random_state: Any, n_jobs: int | None
    ) -> Resampling:
        """Check the options that a user gave."""
        return cls(check_level(level), check_resamples(n_resamples), seed_of(random_state), n_jobs)

    def draw(self, sample: Any, jobs: Sequence[Job], *, paired: bool = False) -> np.ndarray:
        """Return the values of each job (rows) on each resample (columns)."""
        return sample.distribution(jobs, self.n_resamples, self.seed, self.n_jobs, paired=paired)


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
    as_dict = asdict

    def __iter__(self) -> Iterator[float]:
        return iter((self.value, self.low, self.high))

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


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
    level, method
        As in `Interval`.
    """

    difference: float
    low: float
    high: float
    p_value: float
    value_a: float
    value_b: float
    level: float
    method: str
    as_dict = asdict

    def __iter__(self) -> Iterator[float]:
        return iter((self.difference, self.low, self.high))

    def __str__(self) -> str:
        return f"{self.difference:+.4f} [{self.low:+.4f}, {self.high:+.4f}], p = {self.p_value:.3g}"


@fill_docstring
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
    groups: Any = None,
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
          the queries, or of whole groups;
        - "delong": normal interval with DeLong's variance, for `roc_auc` only;
        - "auto": DeLong for `roc_auc` (with at least two rows of each class, without groups), else the
          bootstrap.
    %(bootstrap_options)s
    %(drawn_groups)s
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
    sample, job = prepare(metric, y_true, scores, sample_weight, pos_label, qid, parameters, groups)
    if _use_delong(method, sample, job[0]):
        return delong_interval(sample, level)  # type: ignore[arg-type]
    resampling = Resampling.of(level, n_resamples, random_state, n_jobs)
    value = sample.value(job)  # first, since parameters that do not fit are refused here
    drawn = resampling.draw(sample, [job])[0]
    return Interval(value, *percentiles(drawn, level), level, "bootstrap")


@fill_docstring
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
    groups: Any = None,
    **parameters: Any,
) -> Comparison:
    """Difference of a metric between two lists of scores of the same rows, with its interval.

    Paired: every resample draws the same rows (or queries) for both.

    Parameters
    ----------
    metric, y_true, method, sample_weight, pos_label, qid
        As in :func:`interval`.
    scores_a, scores_b : array-like of shape (n_rows,)
        The two lists of scores.
    %(bootstrap_options)s
    %(drawn_groups)s
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
    data = (sample_weight, pos_label, qid, parameters, groups)
    sample_a, job = prepare(metric, y_true, scores_a, *data)
    sample_b, _ = prepare(metric, y_true, scores_b, *data)
    if _use_delong(method, sample_a, job[0]):
        return _compare_delong(sample_a, sample_b, level)  # type: ignore[arg-type]
    resampling = Resampling.of(level, n_resamples, random_state, n_jobs)
    value_a, value_b = sample_a.value(job), sample_b.value(job)
    drawn_a, drawn_b = (
        resampling.draw(sample, [job], paired=True)[0] for sample in (sample_a, sample_b)
    )
    estimate = bootstrap_interval(value_a - value_b, drawn_a - drawn_b, level)
    return Comparison(*estimate, value_a, value_b, level, "bootstrap")


@fill_docstring
def evaluate(
    y_true: Any,
    scores: Any,
    *,
    metrics: Iterable[str] | None = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    qid: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    intervals: str | None = "all",
    level: float = 0.95,
    n_resamples: int = 1000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[str, dict[str, Any]]:
    """Compute many metrics from one sort, with confidence intervals.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Labels of two classes; or grades >= 0, for which the metrics of grades are computed.
    scores : array-like of shape (n_rows,)
        Finite scores, higher for rows more likely positive.
    metrics : iterable of str, optional
        Names of the metrics; by default all that fit the data.
    parameters : dict of dict, optional
        Parameters by metric, such as ``{"precision_at_k": {"k": 100}}``.
    qid : array-like of shape (n_rows,), optional
        Query of each row. Metrics that know queries become means over them; the others still rank
        all rows as one list.
    %(metric_options)s
    intervals : {"all", "bootstrap", "delong", None}, default="all"
        Which intervals: "bootstrap" for every metric; "delong" for `roc_auc` only; "all" takes
        DeLong for `roc_auc` and the bootstrap for the rest; None leaves them out, and so do 0
        resamples all those of the bootstrap.
    %(bootstrap_options)s
    %(drawn_groups)s

    Returns
    -------
    dict
        From the name of each metric to a dict of plain values, ready for JSON: `value`, `low` and
        `high` (None without an interval), `method` ("bootstrap", "delong" or None), `parameters`,
        and for means over queries `n_queries` (scored) and `n_skipped` (left out of the mean).

    Examples
    --------
    >>> report = evaluate([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], intervals=None)
    >>> report["roc_auc"]["value"], report["pos_at_top"]["value"]
    (0.75, 0.5)
    """
    check_choice(intervals, "intervals", ("all", "bootstrap", "delong", None))
    if groups is not None and intervals == "delong":
        raise ValueError(NO_GROUPS)
    bootstrap = bool(n_resamples) and intervals in ("all", "bootstrap")
    resampling = Resampling.of(level, n_resamples if bootstrap else 1, random_state, n_jobs)
    chosen = _choose_metrics(metrics, y_true, pos_label, qid)
    options = dict(parameters or {})
    unknown = sorted(set(options) - {metric.name for metric in chosen})
    if unknown:
        raise ValueError(f"parameters names {unknown[0]!r}, which is not among the metrics.")
    data = (y_true, scores, sample_weight, pos_label)
    on_list = [metric for metric in chosen if takes_list(metric, y_true, pos_label, qid)]
    on_table = [metric for metric in chosen if metric not in on_list]
    report: dict[str, dict[str, Any]] = {}
    if on_list:
        ranked = list_sample(*data, groups)
        jobs = {metric.name: metric.list_job(**options.get(metric.name, {})) for metric in on_list}
        report |= {name: _entry(ranked.value(job), job[1]) for name, job in jobs.items()}
        delong = intervals in ("all", "delong") and groups is None
        if "roc_auc" in jobs and delong and has_delong(ranked):
            _, low, high = delong_interval(ranked, level)
            report["roc_auc"] |= {"low": low, "high": high, "method": "delong"}
        if bootstrap:
            _add_bootstrap(report, ranked, jobs, resampling)
    if on_table:
        if groups is not None and qid is None:
            raise ValueError(f"groups are drawn for two classes; {on_table[0].name} is of grades.")
        signed = all(metric.signed for metric in on_table)
        table = TableSample(graded_rows(*data, qid, signed=signed))
        jobs = {
            metric.name: metric.query_job(**options.get(metric.name, {})) for metric in on_table
        }
        for name, job in jobs.items():
            values = table.query_values(job)
            mean, n_skipped = mean_over_queries(values, return_skipped=True)
            report[name] = _entry(mean, job[1])
            if qid is not None:
                report[name] |= {"n_queries": len(values) - n_skipped, "n_skipped": n_skipped}
        if bootstrap:
            _add_bootstrap(report, table, jobs, resampling)
    return {metric.name: report[metric.name] for metric in chosen}


def _add_bootstrap(
    entries: dict[str, dict[str, Any]], sample: Any, jobs: dict[str, Job], resampling: Resampling
) -> None:
    """Fill in the intervals that are missing; every resample is drawn once for all metrics."""
    waiting = [name for name in jobs if entries[name]["method"] is None]
    if not waiting:
        return
    drawn = resampling.draw(sample, [jobs[name] for name in waiting])
    for name, values in zip(waiting, drawn, strict=True):
        low, high = percentiles(values, resampling.level)
        entries[name] |= {"low": low, "high": high, "method": "bootstrap"}


def _entry(value: float, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return one metric without an interval, in types that JSON knows."""
    entry: dict[str, Any] = {"value": float(value), "low": None, "high": None, "method": None}
    return entry | {"parameters": to_jsonable(parameters)}


def _choose_metrics(
    metrics: Iterable[str] | None, y_true: Any, pos_label: Any, qid: Any
) -> list[Metric]:
    """Return the named metrics, or all that fit the labels and queries."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if metrics is not None:
        named = [find_metric(name) for name in dict.fromkeys(metrics)]
        for metric in named:
            if metric is None:
                raise TypeError("metrics must be names of metrics, see toprank.metrics.METRICS.")
            if qid is None and metric.needs_queries:
                raise ValueError(f"{metric.name} is a mean over queries: pass qid.")
        return named  # type: ignore[return-value]
    graded = is_graded(y_true, pos_label)

    def fits(metric: Metric) -> bool:
        if metric.signed:  # on two classes these only repeat the AUC and the precision at k
            return graded
        if metric.list_core is None or graded:
            return metric.takes_queries and (qid is not None or metric.graded)
        return True

    return [metric for metric in METRICS.values() if fits(metric)]


# -- intervals and tests ------------------------------------------------------------------------------


def percentiles(values: np.ndarray, level: float) -> tuple[Any, Any]:
    """Return the ends of the central share `level` of bootstrap values, or of each column of a matrix."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return to_python(low), to_python(high)


def bootstrap_interval(
    value: float, resampled: np.ndarray, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Percentile interval of resampled values and the p-value of a value of zero.

    The p-value is twice the smaller share of resamples on either side of zero, with the data itself
    counted as one more resample.
    """
    low, high = percentiles(resampled, level)
    tail = min(np.count_nonzero(resampled <= 0), np.count_nonzero(resampled >= 0))
    p_value = min(1.0, 2.0 * (int(tail) + 1) / (len(resampled) + 1))
    return float(value), low, high, p_value


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


def holm_levels(p_values: Any, level: float = 0.95) -> np.ndarray:
    """Confidence levels of intervals that leave out zero exactly where Holm's rule calls a difference real.

    The r-th smallest of m p-values is tested at alpha / (m - r + 1), and so is every later one as soon
    as one test fails: an interval at 1 minus that error says the same as the test.

    Examples
    --------
    >>> holm_levels([0.01, 0.04, 0.03]).round(4).tolist()
    [0.9833, 0.975, 0.975]
    """
    p_values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p_values, kind="stable")
    divisors = np.arange(len(p_values), 0, -1)
    n_real = int(np.sum(holm(p_values)[order] <= 1 - level))
    if n_real < len(p_values):
        divisors[n_real:] = divisors[n_real]
    levels = np.empty(len(p_values))
    levels[order] = 1 - (1 - level) / divisors
    return levels


def interval_verdict(low: float, high: float) -> str:
    """Say "better", "worse" or "cannot tell" by the interval of a difference.

    Examples
    --------
    >>> interval_verdict(0.007, 0.038), interval_verdict(-0.1, 0.1)
    ('better', 'cannot tell')
    """
    return "better" if low > 0 else "worse" if high < 0 else "cannot tell"


def verdict(difference: float, p_value: float, level: float = 0.95) -> str:
    """Say "better", "worse" or "cannot tell"."""
    if not p_value <= 1 - level or difference == 0:
        return "cannot tell"
    return "better" if difference > 0 else "worse"


def check_level(level: Any) -> float:
    """Return a confidence level between 0 and 1."""
    if not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}.")
    return float(level)


def check_resamples(n_resamples: Any) -> int:
    """Return a number of resamples, at least one."""
    if int(n_resamples) != n_resamples or n_resamples < 1:
        raise ValueError(f"n_resamples must be a whole number of at least 1, got {n_resamples!r}.")
    return int(n_resamples)


# -- DeLong -------------------------------------------------------------------------------------------


def delong(samples: Sequence[ListSample]) -> tuple[np.ndarray, np.ndarray]:
    """Return the AUC of lists of scores of the same rows, and the covariance of these AUCs.

    DeLong, DeLong and Clarke-Pearson (1988); the structural components are read off each ranked list
    in the time of a sort, as in Sun and Xu (2014). A row of weight w is one observation that counts w times
    in the mean: with ``v = w / sum(w)``, each class adds ``n/(n-1) * sum of (v * (V - AUC))**2``, which is
    DeLong's variance when all weights are equal.
    """
    rows = samples[0].rows
    components = [_structural_components(sample) for sample in samples]
    areas, covariance = np.zeros(len(samples)), np.zeros((len(samples),) * 2)
    for side, members in enumerate((rows.positive, ~rows.positive)):
        values = np.stack([component[side] for component in components])
        n_rows = values.shape[1]
        if n_rows < 2:
            raise ValueError(
                "DeLong's variance needs at least two rows of each class: "
                "use method='bootstrap', or more data."
            )
        weight = np.ones(n_rows) if rows.weight is None else rows.weight[members]
        share = weight / weight.sum()
        areas = values @ share
        centred = (values - areas[:, None]) * share
        covariance += n_rows / (n_rows - 1) * (centred @ centred.T)
    return areas, covariance


def _structural_components(sample: ListSample) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of negatives below each positive and of positives above each negative; ties half."""
    ranked, positive = sample.ranked, sample.rows.positive
    group = np.empty(ranked.n_rows, dtype=np.int64)
    group[ranked.order] = np.repeat(np.arange(ranked.n_groups), np.diff(ranked.ends, prepend=0))
    negatives_above = (ranked.negatives + np.append(0.0, ranked.negatives[:-1])) / 2
    positives_above = (ranked.positives + np.append(0.0, ranked.positives[:-1])) / 2
    of_positives = 1 - (negatives_above / ranked.total_negatives)[group[positive]]
    return of_positives, (positives_above / ranked.total_positives)[group[~positive]]


def normal_interval(
    value: float, variance: float, level: float, low: float, high: float
) -> tuple[float, float]:
    """Return the normal interval around a value, cut at the ends of its range."""
    reach = NormalDist().inv_cdf((1 + level) / 2) * float(np.sqrt(max(variance, 0.0)))
    return max(value - reach, low), min(value + reach, high)


def delong_interval(sample: ListSample, level: float) -> Interval:
    """Return the AUC of a list with its normal interval."""
    areas, covariance = delong([sample])
    value = float(areas[0])
    return Interval(value, *normal_interval(value, covariance[0, 0], level, 0, 1), level, "delong")


def normal_p_value(difference: float, variance: float) -> float:
    """Return the two-sided p-value of no difference; without any variance it is 0 or 1."""
    if variance > 1e-20:
        return 2 * NormalDist().cdf(-abs(difference) / variance**0.5)
    return 1.0 if abs(difference) < 1e-12 else 0.0


def _compare_delong(sample_a: ListSample, sample_b: ListSample, level: float) -> Comparison:
    """Compare two correlated AUCs by a normal test."""
    (value_a, value_b), covariance = delong([sample_a, sample_b])
    difference = float(value_a - value_b)
    variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    bounds = normal_interval(difference, variance, level, -1.0, 1.0)
    p_value = normal_p_value(difference, variance)
    return Comparison(difference, *bounds, p_value, float(value_a), float(value_b), level, "delong")


def has_delong(sample: ListSample) -> bool:
    """Return whether DeLong's variance exists, which needs two rows of each class."""
    n_positives = int(np.count_nonzero(sample.rows.positive))
    return min(n_positives, len(sample.rows.positive) - n_positives) > 1


def _use_delong(method: str, sample: Any, core: Callable[..., Any]) -> bool:
    """Check `method` and return whether it is DeLong's for a metric."""
    check_choice(method, "method", ("auto", "bootstrap", "delong"))
    if method == "delong" and core is not roc_auc.core:
        raise ValueError("DeLong's interval is for roc_auc only: use method='bootstrap'.")
    grouped = getattr(sample, "groups", None) is not None
    if method == "delong" and grouped:
        raise ValueError(NO_GROUPS)
    auto = method == "auto" and core is roc_auc.core and has_delong(sample) and not grouped
    return method == "delong" or auto
