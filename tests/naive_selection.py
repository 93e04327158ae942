"""Slow, plain versions of what toprank.selection computes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy import stats


def corrected_interval(values, n_train: int, n_test: int, level: float):
    """Nadeau and Bengio (2003), section 3: the corrected resampled t interval, term by term."""
    count = len(values)
    mean = sum(values) / count
    variance = sum((v - mean) ** 2 for v in values) / (count - 1)
    error = math.sqrt(variance / count + variance * n_test / n_train)
    quantile = stats.t(df=count - 1).ppf(1 - (1 - level) / 2)
    p_value = 2 * (1 - stats.t(df=count - 1).cdf(abs(mean) / error))
    return mean, mean - quantile * error, mean + quantile * error, p_value


def holm_rejects(p_values, alpha: float) -> list[bool]:
    """Holm (1979): go up the sorted p-values and stop at the first one that is too large."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected = [False] * len(p_values)
    for step, i in enumerate(order):
        if p_values[i] > alpha / (len(p_values) - step):
            break
        rejected[i] = True
    return rejected


def query_mean(metric, positive, scores, qid, **parameters) -> float:
    """Mean of a metric over the queries that hold both classes."""
    values = []
    for query in sorted(set(qid.tolist())):
        rows = qid == query
        if positive[rows].any() and not positive[rows].all():
            values.append(metric(positive[rows], scores[rows], **parameters))
    return float(np.mean(values))


def is_ascending(values) -> bool:
    return all(a < b for a, b in pairwise(values))
