"""Numbers and findings in words: everything that the page writes, computed where tests can read it."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["amount", "between", "count", "decimal", "money", "percent", "signed"]

METRIC_NAMES = {
    "roc_auc": "ROC AUC",
    "average_precision": "Average precision",
    "recall_precision_area": "Area under recall-precision",
    "pos_at_top": "Positives at the top",
    "precision_at_k": "Precision at k",
    "hit_rate": "Hit rate",
    "partial_auc": "Partial AUC",
    "two_way_partial_auc": "Two-way partial AUC",
    "local_auc": "Local AUC",
    "mean_precision": "Mean precision",
    "precision_at_recall": "Precision at recall",
    "recall_at_precision": "Recall at precision",
    "list_length_for_recall": "List length for recall",
    "ndcg": "NDCG",
}
VERDICTS = {
    "better": "better",
    "worse": "worse",
    "cannot tell": "cannot tell apart",
}


def percent(share: float) -> str:
    """A share as a percentage; only exactly 0 and 1 are written as 0% and 100%.

    Examples
    --------
    >>> [percent(share) for share in (0, 0.00004, 0.0123, 0.345, 0.9996, 1)]
    ['0%', '<0.01%', '1.2%', '34%', '>99.9%', '100%']
    """
    if share <= 0 or share >= 1:
        return f"{100 * share:.0f}%"
    if share < 0.0001:
        return "<0.01%"
    if share > 0.999:
        return ">99.9%"
    if share < 0.001:
        return f"{100 * share:.2f}%"
    return f"{100 * share:.1f}%" if share < 0.0995 or share >= 0.995 else f"{100 * share:.0f}%"


def count(number: float) -> str:
    """A number of rows; one decimal where ties or weights leave a fraction.

    Examples
    --------
    >>> count(12345.0), count(2.5)
    ('12,345', '2.5')
    """
    if abs(number - round(number)) < 1e-6 or abs(number) >= 1000:
        return f"{number:,.0f}".replace("-0", "0") if round(number) == 0 else f"{number:,.0f}"
    return f"{number:,.1f}"


def amount(number: float) -> str:
    """Any number in about four significant digits.

    Examples
    --------
    >>> amount(0.123456), amount(1234567.8), amount(0.0)
    ('0.1235', '1,234,568', '0')
    """
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else str(number)
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.4g}"


def decimal(number: float | None) -> str:
    """A metric with three decimals.

    Examples
    --------
    >>> decimal(0.98765), decimal(None), decimal(1234.0)
    ('0.988', 'n/a', '1,234')
    """
    if number is None:
        return "n/a"
    return count(number) if abs(number) >= 100 else f"{number:.3f}"


def signed(number: float | None) -> str:
    """A difference with its sign.

    Examples
    --------
    >>> signed(0.0123), signed(-0.2)
    ('+0.012', '-0.200')
    """
    return "n/a" if number is None else f"{number:+.3f}"


def money(number: float, currency: str = "") -> str:
    """Money without small change where it is large.

    Examples
    --------
    >>> money(1234567.8, "$"), money(-12.5)
    ('$1,234,568', '-12.50')
    """
    digits = f"{abs(number):,.0f}" if abs(number) >= 1000 else f"{abs(number):,.2f}"
    digits = digits.removesuffix(".00")
    sign = "-" if number < 0 and digits.strip("0.,") else ""
    return f"{sign}{currency}{digits}"


def between(low: Any, high: Any, write: Any) -> str:
    """An interval.

    Examples
    --------
    >>> between(0.1, 0.25, percent)
    '10% to 25%'
    """
    first, last = write(low), write(high)
    return first if first == last else f"{first} to {last}"
