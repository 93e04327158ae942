"""Tables as numbers: NumericEncoding of a matrix, TableEncoder of a table."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank.encoding import NumericEncoding, TableEncoder

NUMBER = np.array([False])
CATEGORY = np.array([True])


def column(values) -> np.ndarray:
    return np.asarray(values, dtype=np.float64).reshape(-1, 1)


def mixed_table(n: int = 200, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(n, 3)), columns=["amount", "hour", "age"])
    frame["shop"] = generator.choice(["web", "street", "phone"], n)
    frame["kind"] = pd.Categorical(np.where(frame["amount"] > 0, "a", "b"))
    frame["new"] = generator.random(n) < 0.5
    frame.loc[::7, "hour"] = np.nan
    frame.loc[::9, "shop"] = None
    return frame


# -- NumericEncoding -------------------------------------------------------------------------------


def test_numbers_are_standardised_filled_and_marked() -> None:
    X = np.array([[1.0, 0.0], [3.0, 1.0], [np.nan, 2.0], [5.0, np.nan]])
    encoding = NumericEncoding.of(X, np.array([False, True]))
    rows = encoding.transform(X)
    assert encoding.source.tolist() == [0, 0, 1, 1, 1]
    present = rows[[0, 1, 3], 0]
    assert present.mean() == pytest.approx(0)
    assert present.std() == pytest.approx(1)
    assert rows[2, :2].tolist() == [0.0, 1.0]
    assert rows[:, 2:].tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert encoding.encoded_columns(np.array([1])).tolist() == [2, 3, 4]
    assert encoding.encoded_columns(np.array([0])).tolist() == [0, 1]


def test_missing_cells_that_training_did_not_have_get_the_mean() -> None:
    encoding = NumericEncoding.of(column([1.0, 3.0]), NUMBER)
    assert encoding.transform(column([np.nan, 3.0])).tolist() == [[0.0], [1.0]]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 4))
def test_a_weight_is_a_number_of_copies(seed: int, n: int, max_categories: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 6, size=n)])
    X[rng.random(X.shape) < 0.2] = np.nan
    weight, kinds = rng.integers(1, 4, size=n), np.array([False, True])
    options = {"max_categories": max_categories, "clip": 2.0}
    weighted = NumericEncoding.of(X, kinds, weight.astype(float), **options)
    copied = NumericEncoding.of(np.repeat(X, weight, axis=0), kinds, **options)
    np.testing.assert_array_equal(weighted.source, copied.source)
    np.testing.assert_array_equal(weighted.kind, copied.kind)
    np.testing.assert_allclose(weighted.transform(X), copied.transform(X), atol=1e-9)


def test_the_heaviest_categories_have_a_column() -> None:
    codes = column([0, 0, 0, 1, 2, 2, 3])
    encoding = NumericEncoding.of(codes, CATEGORY, max_categories=2)
    assert encoding.shift.tolist() == [0.0, 2.0]
    weight = np.where(codes.ravel() == 3, 9.0, 1.0)
    heavy = NumericEncoding.of(codes, CATEGORY, weight, max_categories=2)
    assert heavy.shift.tolist() == [0.0, 3.0]
    rare_unseen_missing = encoding.transform(column([1, 9, np.nan]))
    assert rare_unseen_missing.tolist() == [[0.0, 0.0]] * 3


def test_numbers_are_clipped() -> None:
    encoding = NumericEncoding.of(column([-1.0, 1.0]), NUMBER, clip=3.0)
    assert encoding.transform(column([-1e9, 2.0, 1e9])).ravel().tolist() == [-3.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", [NUMBER, CATEGORY])
def test_a_column_of_missing_cells_is_finite(kind) -> None:
    X = column([np.nan, np.nan])
    assert np.isfinite(NumericEncoding.of(X, kind).transform(X)).all()


def test_a_constant_column_stays_finite() -> None:
    X = column([1e9, 1e9, 1e9])
    assert NumericEncoding.of(X, NUMBER).transform(X).tolist() == [[0.0], [0.0], [0.0]]


# -- TableEncoder ----------------------------------------------------------------------------------


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def naive_encoding(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Column by column, with pandas."""
    parts = []
    for name in train:
        old, new = train[name], test[name]
        if name in ("shop", "kind"):
            parts += [
                (new == v).fillna(False).astype(float).rename(f"{name}={v}")
                for v in sorted(old.dropna().unique())
            ]
            continue
        old, new = old.astype(float), new.astype(float)
        scaled = (new.fillna(old.mean()) - old.mean()) / old.std(ddof=0)
        parts.append(scaled.clip(-10, 10))
        if old.isna().any():
            parts.append(new.isna().astype(float).rename(f"{name} is missing"))
    return pd.concat(parts, axis=1)


def test_the_encoder_does_what_pandas_does():
    train, test = mixed_table(), mixed_table(seed=1)
    test.loc[0, "amount"] = 1e6
    test.loc[1, "shop"] = "never seen"
    encoder = TableEncoder().fit(train)
    expected = naive_encoding(train, test)
    assert encoder.get_feature_names_out().tolist() == expected.columns.tolist()
    assert encoder.transform(test)[0, 0] == 10.0
    sources = [train.columns[j] for j in encoder.encoding_.source]
    assert sources == [name.split("=")[0].split(" is")[0] for name in expected.columns]
    for table in (test, pl.from_pandas(test), pl.from_pandas(test).to_arrow()):
        np.testing.assert_allclose(encoder.transform(table), expected.to_numpy(), atol=1e-9)


def test_columns_without_information_do_no_harm():
    frame = pd.DataFrame(
        {"same": [3.0] * 6, "empty": [np.nan] * 6, "none": [None] * 6, "text": ["a"] * 6}
    )
    encoder = TableEncoder().fit(frame)
    assert np.isfinite(encoder.transform(frame)).all()
    assert np.isfinite(encoder.transform(frame.assign(same=np.nan, empty=1.0))).all()


def test_rare_categories_are_zero_everywhere():
    frame = pd.DataFrame({"city": [*"aaabbc", *"defgh"]})
    encoder = TableEncoder(max_categories=2).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["city=a", "city=b"]
    assert encoder.transform(frame)[:5].sum() == 5
    assert encoder.transform(frame)[5:].sum() == 0


def test_sparse_rows_stay_sparse():
    X = sparse.random(50, 8, density=0.3, random_state=0, format="csr")
    encoder = TableEncoder().fit(X)
    expected = X.toarray() / np.where(X.toarray().std(axis=0) > 0, X.toarray().std(axis=0), 1)
    found = encoder.transform(X)
    assert sparse.issparse(found)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)
    dense = encoder.transform(X.toarray())
    np.testing.assert_allclose(dense.toarray(), expected, atol=1e-12)
    assert encoder.get_feature_names_out().tolist() == [f"x{j}" for j in range(8)]


def test_sparse_rows_after_dense_training():
    X = np.random.default_rng(0).normal(size=(20, 3))
    encoder = TableEncoder().fit(X)
    np.testing.assert_array_equal(encoder.transform(sparse.csr_matrix(X)), encoder.transform(X))


def test_sparse_rows_with_missing_cells_are_refused():
    with pytest.raises(ValueError, match="sparse matrix may not hold missing cells"):
        TableEncoder().fit(sparse.csr_matrix([[np.nan, 1.0], [0.0, 2.0]]))


def test_clone_and_pickle():
    frame = mixed_table()
    encoder = clone(TableEncoder(max_categories=2)).fit(frame)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(frame), encoder.transform(frame))


@pytest.mark.parametrize("parameters", [{"max_categories": 0}, {"clip": -1.0}, {"clip": 0.0}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        TableEncoder(**parameters).fit([[1.0]])
