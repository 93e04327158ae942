"""How sure a comparison over splits is: corrected t intervals, the paired bootstrap, Holm's rule."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

__all__ = ["bootstrap_interval", "corrected_interval", "holm", "verdict"]


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
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    tail = min(np.count_nonzero(resampled <= 0), np.count_nonzero(resampled >= 0))
    p_value = min(1.0, 2.0 * (int(tail) + 1) / (len(resampled) + 1))
    return float(value), float(low), float(high), p_value


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
    if not p_value <= 1 - level:
        return "cannot tell"
    return "better" if difference > 0 else "worse"
