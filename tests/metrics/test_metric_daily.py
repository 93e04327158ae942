"""Daily lists against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from toprank import metrics
from toprank.metrics.daily import daily_hits


def naive(y, scores, day, k, group=None):
    """Day by day, card by card."""
    found, shares = set(), []
    for today in sorted(set(day)):
        cards = {}
        for row in np.flatnonzero(day == today):
            card = row if group is None else group[row]
            if card not in found:
                score, label = cards.get(card, (-np.inf, 0))
                cards[card] = (max(score, scores[row]), max(label, y[row]))
        first = sorted(cards.items(), key=lambda item: -item[1][0])[:k]
        hits = [card for card, (_, label) in first if label]
        if group is not None:
            found.update(hits)
        shares.append(len(hits) / k)
    return np.mean(shares)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("grouped", [False, True])
def test_it_is_the_count_by_hand(seed, grouped):
    rng = np.random.default_rng(seed)
    n = 200
    y, day = (rng.random(n) < 0.3).astype(int), rng.integers(0, 8, n)
    scores, card = rng.normal(size=n) + y, rng.integers(0, 40, n)
    group = card if grouped else None
    for k in (1, 3, 50):
        expected = naive(y, scores, day, k, group)
        assert metrics.daily_precision_at_k(y, scores, day, k, group) == pytest.approx(expected)


def test_ties_count_by_their_expected_value():
    assert metrics.daily_precision_at_k([1, 0, 0], [1, 1, 0], ["a"] * 3, 1) == 0.5
    table = daily_hits([1, 0, 1], [1, 1, 1], [1, 1, 2], 2)
    assert table["hits"].tolist() == [1.0, 1.0]
    assert table["listed"].tolist() == [2, 1]


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="k must be"):
        metrics.daily_precision_at_k([0, 1], [0, 1], [1, 1], 0)
    with pytest.raises(ValueError, match="day has missing"):
        metrics.daily_precision_at_k([0, 1], [0, 1], [1, np.nan], 1)
    with pytest.raises(ValueError, match="day"):
        metrics.daily_precision_at_k([0, 1], [0, 1], [1], 1)
