"""Precision of daily lists, as fraud teams count it: k cards a day, and none that was found before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from toprank.ranking import RankedList
from toprank.validation import binary_rows, check_lengths

__all__ = ["daily_hits", "daily_precision_at_k"]


def daily_precision_at_k(
    y_true: Any, scores: Any, day: Any, k: int, group: Any = None, *, pos_label: Any = None
) -> float:
    """Mean over the days of the share of positives among the first k rows, or cards, of the day.

    With `group`, a list holds cards (customers, machines, ...) rather than rows: a card's score is the
    highest of its rows of the day, it is a positive if one of them is, and a card that was a positive on
    an earlier list is found: it is removed from then on. This is the card precision top-k of Dal
    Pozzolo, Boracchi, Caelen, Alippi and Bontempi (2018, IEEE Transactions on Neural Networks and Learning
    Systems 29). Always k are counted: a day with fewer rows cannot reach 1.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
    scores : array of shape (n_rows,)
    day : array of shape (n_rows,)
        The day of each row; days are taken in their order.
    k : int
        Rows, or cards, that are checked each day.
    group : array of shape (n_rows,), optional
        The card of each row.
    pos_label : label, optional
        The positive class; by default the greater of two labels.

    Returns
    -------
    float
        In [0, 1]. Ties at the end of a list count by their expected value.

    Examples
    --------
    >>> y, day, card = [1, 0, 1, 0, 1], [1, 1, 2, 2, 2], ["a", "b", "a", "b", "c"]
    >>> daily_precision_at_k(y, [0.9, 0.2, 0.8, 0.1, 0.5], day, k=1)
    1.0
    >>> daily_precision_at_k(y, [0.9, 0.2, 0.8, 0.6, 0.5], day, k=1, group=card)
    0.5
    """
    hits = daily_hits(y_true, scores, day, k, group, pos_label=pos_label)
    return float(hits["hits"].mean() / k)


def daily_hits(
    y_true: Any, scores: Any, day: Any, k: int, group: Any = None, *, pos_label: Any = None
) -> pd.DataFrame:
    """Return what the list of each day holds; the arguments are those of `daily_precision_at_k`.

    Returns
    -------
    table : DataFrame
        `day`, `listed` (k, or all rows or cards of a quiet day), `hits` and `positives` (those of the day
        that were still to be found).

    Examples
    --------
    >>> daily_hits([1, 0, 1, 1], [4, 3, 2, 1], ["mon", "mon", "tue", "tue"], 1)["hits"].tolist()
    [1.0, 1.0]
    """
    if isinstance(k, bool) or int(k) != k or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, got {k!r}.")
    rows = binary_rows(y_true, scores, None, pos_label)
    check_lengths(y_true=rows.positive, day=day, group=group)
    table = pd.DataFrame({"day": np.asarray(day), "score": rows.scores, "positive": rows.positive})
    if table["day"].isna().any():
        raise ValueError("day has missing entries; every row needs its day.")
    table["card"] = np.arange(len(table)) if group is None else pd.factorize(np.asarray(group))[0]
    if (table["card"] < 0).any():
        raise ValueError("group has missing entries; every row needs its group.")
    cards = table.groupby(["day", "card"], sort=True)[["score", "positive"]].max().reset_index()
    found: set[int] = set()
    lines = []
    for name, today in cards.groupby("day", sort=True):
        left = today[~today["card"].isin(found)] if found else today
        hits, caught = _first(left, int(k))
        if group is not None:
            found.update(caught)
        lines.append((name, min(int(k), len(left)), hits, int(left["positive"].sum())))
    return pd.DataFrame(lines, columns=["day", "listed", "hits", "positives"])


def _first(cards: pd.DataFrame, k: int) -> tuple[float, list[int]]:
    """Return the expected hits among the first k cards, and the positives that are surely among them."""
    if not len(cards):
        return 0.0, []
    positive, scores = cards["positive"].to_numpy(), cards["score"].to_numpy(dtype=np.float64)
    ranked = RankedList.of(positive, scores)
    flagged = ranked.positives + ranked.negatives
    whole = int(np.searchsorted(flagged, k, side="right"))  # tie groups that fit
    hits = float(ranked.positives[whole - 1]) if whole else 0.0
    if whole < len(flagged):
        before = flagged[whole - 1] if whole else 0.0
        tied = ranked.positives[whole] - hits
        share = tied / (flagged[whole] - before)
        surely = scores > ranked.scores[whole]
        hits += (k - before) * float(share)
    else:
        surely = np.ones(len(cards), dtype=bool)
    return hits, cards["card"].to_numpy()[surely & positive].tolist()
