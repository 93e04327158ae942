"""What lists of every length hold: right rows, false alarms, money; each with its interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["bigger_lists", "check_list_lengths", "count_interval", "length_grid", "list_table"]

EVERY_LENGTH_TO = 300
ROUND_LENGTHS = np.r_[100:200:5, 200:500:10, 500:1000:25]  # times a power of ten, beyond that
MULTIPLES = (2, 5, 10)  # of the longest list asked for


def check_list_lengths(lengths: Iterable[Any], total: float) -> list[int]:
    """Whole lengths of at least 1, ascending; those beyond the data become the whole data."""
    given = list(lengths)
    for length in given:
        if isinstance(length, bool) or int(length) != length or length < 1:
            raise ValueError(f"lengths must be whole numbers of at least 1, got {length!r}.")
    if not given:
        raise ValueError("lengths is empty: name at least one list length, such as 100.")
    return sorted({min(int(length), max(1, int(total))) for length in given})


def length_grid(total: float, extra: Iterable[int] = ()) -> np.ndarray:
    """Every length up to 300, then round ones at most 5 % apart, up to all rows.

    Examples
    --------
    >>> length_grid(5).tolist()
    [1, 2, 3, 4, 5]
    >>> length_grid(2_000_000)[298:304].tolist()
    [299, 300, 310, 320, 330, 340]
    """
    last = max(1, int(total))
    near = np.arange(1, EVERY_LENGTH_TO + 1)
    decades = 10 ** np.arange(2, max(3, len(str(last))))
    far = np.outer(decades, ROUND_LENGTHS).ravel() // 100
    grid = np.concatenate(
        (near, far[far > EVERY_LENGTH_TO], [last], np.array([*extra], dtype=np.int64))
    )
    return np.unique(grid[(grid >= 1) & (grid <= last)])


def list_table(
    lengths: np.ndarray,
    hits: np.ndarray,
    drawn_hits: np.ndarray,
    total_positives: float,
    drawn_positives: np.ndarray,
    level: float,
) -> dict[str, dict[str, list[float]]]:
    """Right rows, precision, recall and false alarms of each length, with percentile intervals.

    Resamples of a list without one false alarm (or without one right row) may hold none either and
    would claim certainty; there the interval reaches at least as far as the exact binomial one of Clopper and
    Pearson (1934).

    Parameters
    ----------
    lengths, hits : ndarray of shape (n_lengths,)
    drawn_hits : ndarray of shape (n_resamples, n_lengths)
    total_positives : float
    drawn_positives : ndarray of shape (n_resamples,)
    level : float
    """
    low, high = count_interval(hits, drawn_hits, lengths, level)
    recall_low, recall_high = _percentiles(drawn_hits / drawn_positives[:, None], level)
    certain = _certain(hits, lengths)
    recall_low = np.where(certain, np.minimum(low / total_positives, 1.0), recall_low)
    recall_high = np.where(certain, np.minimum(high / total_positives, 1.0), recall_high)
    return {
        "hits": _column(hits, low, high),
        "precision": _column(hits / lengths, low / lengths, high / lengths),
        "recall": _column(hits / total_positives, recall_low, recall_high),
        "false_alarms": _column(lengths - hits, lengths - high, lengths - low),
    }


def money_table(
    lengths: np.ndarray,
    caught: np.ndarray | None,
    drawn: np.ndarray | None,
    cost_of_check: float | None,
    level: float,
) -> dict[str, Any]:
    """Money caught, spent on checks, and left over, for each length."""
    spent = lengths * (cost_of_check or 0.0)
    table: dict[str, Any] = {"spent": spent.tolist() if cost_of_check is not None else None}
    if caught is None or drawn is None:
        return table | {"caught": None, "net": None}
    low, high = _percentiles(drawn, level)
    table["caught"] = _column(caught, low, high)
    table["net"] = _column(caught - spent, low - spent, high - spent)
    return table


def count_interval(
    hits: np.ndarray, drawn_hits: np.ndarray, lengths: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Interval of the number of right rows: percentiles, and exact where resamples cannot differ."""
    low, high = _percentiles(drawn_hits, level)
    tail = (1 - level) / 2
    certain = _certain(hits, lengths)
    reach = tail ** (1 / lengths)  # what k of k right leave open below, and 0 of k above
    exact_low = np.where(hits > 0, lengths * reach, 0.0)
    exact_high = np.where(hits > 0, lengths, lengths * (1 - reach))
    low = np.where(certain, np.minimum(low, exact_low), low)
    return low, np.where(certain, np.maximum(high, exact_high), high)


def bigger_lists(table: dict[str, Any], lengths: list[int]) -> list[dict[str, Any]]:
    """What lists 2, 5 and 10 times the longest of `lengths` would catch beyond it."""
    grid = np.asarray(table["length"])
    start = int(np.searchsorted(grid, lengths[-1]))
    found: list[dict[str, Any]] = []
    for multiple in MULTIPLES:
        end = min(int(np.searchsorted(grid, multiple * lengths[-1])), len(grid) - 1)
        if end > start and (not found or grid[end] > found[-1]["length"]):
            found.append(
                {
                    "length": int(grid[end]),
                    "hits": table["hits"]["value"][end],
                    "recall": table["recall"]["value"][end],
                    "more_hits": table["hits"]["value"][end] - table["hits"]["value"][start],
                    "more_false_alarms": table["false_alarms"]["value"][end]
                    - table["false_alarms"]["value"][start],
                }
            )
    return found


def _certain(hits: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Where a list holds no false alarm, or no right row."""
    return (hits >= lengths * (1 - 1e-12)) | (hits <= 1e-12)


def _percentiles(values: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _column(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> dict[str, list[float]]:
    """Three lists; an interval always holds its value."""
    return {
        "value": value.tolist(),
        "low": np.minimum(low, value).tolist(),
        "high": np.maximum(high, value).tolist(),
    }
