"""Dates that files write as text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from toprank.parsing import date_order, read_dates


def test_dates_of_all_kinds() -> None:
    text = pd.Series(["2024-02-29", None, "2024-03-01T12:00:00"])
    expected = [19782.0, np.nan, 19783.5]
    np.testing.assert_allclose(read_dates(text), expected)
    np.testing.assert_allclose(read_dates(pd.to_datetime(text, format="ISO8601")), expected)
    zoned = pd.to_datetime(text, format="ISO8601").dt.tz_localize("Europe/Berlin")
    np.testing.assert_allclose(read_dates(zoned), np.array(expected) - 1 / 24)
    np.testing.assert_allclose(
        read_dates(pd.Series(pd.to_timedelta([36, None], "h"))), [1.5, np.nan]
    )
    assert read_dates(pd.Series([1.0, 2.0])) is None
    assert read_dates(pd.Series(["2024-02-29", "never"])) is None


@pytest.mark.parametrize(
    ("cells", "order"),
    [
        (["2/29/24 7:05", None, "3/1/24 12:00"], "%m/%d/%y"),
        (["29.02.2024", None, "01.03.2024"], "%d.%m.%Y"),
        (["29/2/2024", None, "1/3/2024"], "%d/%m/%Y"),
        (["2024-02-29", None, "2024-03-01T12:00:00"], ""),
        (["29-02-24", None, "01-03-24"], None),  # rather codes
        (["1.2.10", "1.3.11"], None),  # rather versions
        (["2/29/24", "late"], None),
    ],
)
def test_the_order_of_days_and_months_is_learnt(cells, order) -> None:
    column = pd.Series(cells)
    assert date_order(column) == order
    if order is not None:
        days = np.floor(read_dates(column, order))
        np.testing.assert_array_equal(days, [19782.0, np.nan, 19783.0])
