"""Tables of all makes become one float matrix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from toprank.columns import Columns, as_frame, is_table

FRAME = pd.DataFrame(
    {
        "amount": [1.5, np.nan, 3.0, 4.0],
        "visits": [1, 2, 3, 4],
        "abroad": [True, False, True, False],
        "country": ["NL", None, "DE", "NL"],
        "kind": pd.Categorical(["b", "a", None, "b"]),
    }
)
EXPECTED = np.array(
    [
        [1.5, 1, 1, 1, 1],
        [np.nan, 2, 0, np.nan, 0],
        [3, 3, 1, 0, np.nan],
        [4, 4, 0, 1, 1],
    ]
)


@pytest.mark.parametrize(
    "make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_every_make_of_table_gives_the_same_matrix(make) -> None:
    table = make(FRAME)
    assert is_table(table)
    frame = as_frame(table)
    columns = Columns.of(frame)
    assert columns.names == tuple(FRAME.columns)
    assert columns.category_names() == ["country", "kind"]
    np.testing.assert_array_equal(columns.matrix(frame), EXPECTED)


def test_nullable_columns_and_numbers_kept_as_objects() -> None:
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 3], dtype="Int64"),
            "b": pd.array([True, None, False], dtype="boolean"),
            "c": pd.Series([1, 2.5, None], dtype=object),
        }
    )
    columns = Columns.of(frame)
    assert not columns.is_category.any()
    np.testing.assert_array_equal(
        columns.matrix(frame), [[1, 1, 1], [np.nan, np.nan, 2.5], [3, 0, np.nan]]
    )


def test_values_never_seen_are_missing() -> None:
    columns = Columns.of(FRAME)
    new = FRAME.assign(country=["XX", "NL", "DE", None])
    np.testing.assert_array_equal(columns.matrix(new)[:, 3], [np.nan, 1, 0, np.nan])


def test_codes_do_not_depend_on_row_order() -> None:
    backwards = FRAME.iloc[::-1]
    np.testing.assert_array_equal(
        Columns.of(backwards).matrix(FRAME), Columns.of(FRAME).matrix(FRAME)
    )


def test_whole_number_categories_keep_their_kind() -> None:
    frame = pd.DataFrame({"zone": pd.Categorical([30, 10, 20, 10])})
    columns = Columns.of(frame)
    assert columns.categories[0].tolist() == [10, 20, 30]
    assert columns.matrix(frame)[:, 0].tolist() == [2, 0, 1, 0]


def test_float32_stays_float32() -> None:
    frame = pd.DataFrame(np.ones((3, 2), dtype=np.float32), columns=["a", "b"])
    assert Columns.of(frame).matrix(frame).dtype == np.float32


def test_a_date_gets_a_clear_error() -> None:
    frame = pd.DataFrame({"when": pd.to_datetime(["2024-01-01"])})
    with pytest.raises(ValueError, match=r"'when'.*days since"):
        Columns.of(frame)


def test_dates_become_days_where_they_are_taken() -> None:
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["1970-01-02", None]),
            "day": ["29/2/1972", "1/3/1972"],
            "no": ["a", "b"],
        }
    )
    columns = Columns.of(frame, dates=True)
    assert columns.dates == ("", "%d/%m/%Y", None)
    assert columns.is_category.tolist() == [False, False, True]
    np.testing.assert_array_equal(columns.matrix(frame)[:, :2], [[1.0, 789.0], [np.nan, 790.0]])
    assert columns.extended(columns).dates == columns.dates
    later = frame.assign(day=["4/3/1972", None], when=[3.0, 4.5])  # by itself it could be of April
    np.testing.assert_array_equal(columns.matrix(later)[:, :2], [[3.0, 793.0], [4.5, np.nan]])
    with pytest.raises(ValueError, match=r"'day' held dates"):
        columns.matrix(frame.assign(day=["soon", "late"]))
    assert "'day'" in str(columns.differences(frame.assign(day=["soon", "late"])))


def test_parts_of_a_table_agree_on_the_order_of_dates() -> None:
    parts = [["1/2/1972"], ["29/2/1972"], [None]]
    columns = [Columns.of(pd.DataFrame({"day": part}), dates=True) for part in parts]
    assert [c.dates for c in columns] == [("%m/%d/%Y",), ("%d/%m/%Y",), ()]
    union = Columns.union(columns[:2])
    assert union.matrix(pd.DataFrame({"day": ["1/2/1972"]})).tolist() == [[761.0]]


def test_text_where_numbers_were_gets_a_clear_error() -> None:
    columns = Columns.of(FRAME)
    with pytest.raises(ValueError, match=r"'amount' held numbers"):
        columns.matrix(FRAME.assign(amount=["a", "b", "c", "d"]))


def test_an_array_is_no_table() -> None:
    assert not is_table(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="ndarray"):
        as_frame(np.zeros((2, 2)))


def test_a_column_that_training_saw_empty_takes_anything_as_unseen() -> None:
    columns = Columns.of(pd.DataFrame({"note": pd.Series([None, None], dtype=object)}))
    later = pd.DataFrame({"note": ["ZS", None]})
    assert not columns.differences(later)
    np.testing.assert_array_equal(columns.matrix(later, unseen=-1.0), [[-1.0], [np.nan]])


def test_counts_follow_the_weights_of_training_rows() -> None:
    frame = pd.DataFrame({"shop": ["a", "b", "b", None], "size": [1.0, 2.0, 3.0, 4.0]})
    columns = Columns.of(frame)
    codes = columns.matrix(frame)
    counted = columns.with_counts(codes, np.array([2.0, 1.0, 0.5, 9.0]), more_than=1)
    expected = [[2.0, 1.0], [1.5, 2.0], [1.5, 3.0], [np.nan, 4.0]]
    np.testing.assert_array_equal(counted.matrix(frame), expected)
    np.testing.assert_array_equal(counted.numbers_for_codes(codes), expected)
    assert not counted.is_category.any()
    assert counted.category_names() == ["shop"]


def test_few_categories_stay_codes() -> None:
    frame = pd.DataFrame({"shop": ["a", "b"]})
    columns = Columns.of(frame)
    assert columns.with_counts(columns.matrix(frame), np.ones(2), more_than=2).numbers == ()


def test_extended_columns_count_new_categories_as_never_seen() -> None:
    old, new = (pd.DataFrame({"shop": list(names)}) for names in ("aab", "bc"))
    columns = Columns.of(old)
    counted = columns.with_counts(columns.matrix(old), np.ones(3), more_than=1)
    extended = counted.extended(Columns.of(new))
    np.testing.assert_array_equal(extended.matrix(new).ravel(), [1.0, 0.0])
