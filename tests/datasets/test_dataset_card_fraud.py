"""The card-fraud simulator: its promises, and that it is neither easy nor hopeless."""

from __future__ import annotations

import itertools
from pathlib import Path

import naive_datasets
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from threadpoolctl import threadpool_limits

from toprank.datasets import iter_card_fraud, make_card_fraud, write_card_fraud
from toprank.datasets.card_fraud import card_history


@pytest.fixture(scope="module")
def payments():
    return make_card_fraud(120_000, fraud_rate=0.01, random_state=1)


CATEGORICAL = {
    "channel", "merchant_category", "authentication", "device", "address_match", "merchant_country",
    "currency", "card_type", "card_brand", "issuer", "holder_segment", "home_region",
}  # fmt: skip
NUMERIC = {
    "amount", "hour", "weekday", "recurring", "instalments", "attempts", "ip_risk", "device_age_days",
    "email_age_days", "security_code_match", "language_match", "merchant_age_days",
    "merchant_mean_amount", "merchant_volume", "merchant_chargeback_rate", "card_age_days",
    "credit_limit", "holder_age", "distance_home_km", "distance_last_km", "speed_kmh",
    "hours_since_last", "recent_count_1h", "recent_count_24h", "recent_amount_24h",
    "card_mean_amount", "amount_ratio", "recent_online_share",
}  # fmt: skip


def test_shape_and_columns(payments):
    assert payments.X.shape == (120_000, 40)
    assert set(payments.X.columns) == CATEGORICAL | NUMERIC
    assert payments.extra.columns.tolist() == ["time", "day", "card_id", "merchant_id"]
    assert payments.y.sum() == 1200
    assert set(payments.X.select_dtypes("category").columns) == CATEGORICAL
    assert set(payments.X.select_dtypes("number").columns) == NUMERIC
    assert payments.X.isna().any().sum() >= 10
    assert not np.isinf(payments.X.select_dtypes("number").to_numpy(dtype=float)).any()


def test_rows_are_in_order_of_time_over_all_days(payments):
    time = payments.extra["time"]
    assert time.is_monotonic_increasing
    assert payments.extra["day"].nunique() == 60
    since = (time - pd.Timestamp("2024-01-01")).dt.days
    np.testing.assert_array_equal(since, payments.extra["day"])
    np.testing.assert_array_equal(time.dt.hour, payments.X["hour"])


def test_default_rate_is_one_in_five_hundred():
    assert make_card_fraud(20_000, random_state=0).y.sum() == 40


def test_stolen_cards_are_used_in_bursts(payments):
    fraud = payments.extra[payments.y == 1]
    gaps = fraud.groupby("card_id")["time"].diff().dropna().dt.total_seconds() / 3600
    assert len(gaps) > 0.4 * len(fraud)  # most frauds follow another one on the same card
    assert gaps.median() < 3
    genuine = payments.extra[payments.y == 0]
    usual = genuine.groupby("card_id")["time"].diff().dropna().dt.total_seconds() / 3600
    assert usual.median() > 10


def test_fraud_happens_at_night_more_than_purchases_do(payments):
    night = payments.X["hour"].isin([0, 1, 2, 3, 4, 5]).to_numpy()
    assert night[payments.y == 1].mean() > 2 * night[payments.y == 0].mean()


def test_fraud_drifts_more_than_genuine_purchases(payments):
    def change(label):
        chosen = payments.y == label
        early = (payments.extra["day"] < 30).to_numpy()
        shares = [
            payments.X["merchant_category"][chosen & half].value_counts(normalize=True)
            for half in (early, ~early)
        ]
        return (shares[0] - shares[1]).abs().sum() / 2

    assert change(1) > 0.1
    assert change(0) < 0.03


def test_technical_traces_are_missing_in_shops_only(payments):
    online = (payments.X["channel"] == "online").to_numpy()
    assert payments.X["device"][online].notna().all()
    assert payments.X["device"][~online].isna().all()
    in_shop = ~payments.X["channel"].isin(["online", "phone"])
    np.testing.assert_array_equal(payments.X["distance_home_km"].notna(), in_shop)


def test_late_fraud_can_be_found_but_not_all_of_it(payments):
    early = (payments.extra["day"] < 45).to_numpy()
    model = HistGradientBoostingClassifier(
        max_iter=40, categorical_features="from_dtype", random_state=0
    )
    with threadpool_limits(1):
        model.fit(payments.X[early], payments.y[early])
    scores = model.decision_function(payments.X[~early])
    assert 0.85 < roc_auc_score(payments.y[~early], scores) < 0.99
    assert 0.2 < average_precision_score(payments.y[~early], scores) < 0.8


def test_no_single_column_gives_fraud_away(payments):
    for name in payments.X.columns:
        column = payments.X[name]
        codes = column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column
        values = codes.to_numpy(dtype=float)
        for filler in (-1e9, 1e9):
            auc = roc_auc_score(payments.y, np.where(np.isnan(values), filler, values))
            assert 0.15 < auc < 0.85, name


def test_the_seed_fixes_the_rows():
    first, again = (make_card_fraud(3000, random_state=7).to_frame() for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    other = make_card_fraud(3000, random_state=8).to_frame()
    assert not first["amount"].equals(other["amount"])


def test_the_size_of_the_pieces_does_not_change_the_rows():
    n = 60_000  # two blocks of the simulator
    whole = pd.concat(iter_card_fraud(n, chunk_rows=n, random_state=2), ignore_index=True)
    pieces = list(iter_card_fraud(n, chunk_rows=17_001, random_state=2))
    assert [len(piece) for piece in pieces] == [17_001, 17_001, 17_001, 8_997]
    assert whole.equals(pd.concat(pieces, ignore_index=True))
    assert whole["time"].is_monotonic_increasing
    assert whole["is_fraud"].sum() == 120


def test_a_thousand_million_rows_begin_at_once():
    first = next(iter_card_fraud(10**9, n_cards=2000, chunk_rows=1000, random_state=0))
    assert len(first) == 1000
    assert first["day"].max() == 0


@settings(max_examples=25)
@given(
    n_rows=st.integers(2, 1500),
    rate=st.floats(0.0005, 0.1),
    days=st.integers(1, 40),
    seed=st.integers(0, 1000),
)
def test_counts_are_exact(n_rows, rate, days, seed):
    data = make_card_fraud(n_rows, fraud_rate=rate, days=days, n_cards=50, random_state=seed)
    assert len(data.y) == n_rows
    assert data.y.sum() == max(1, round(n_rows * rate))
    assert data.extra["time"].is_monotonic_increasing
    assert data.extra["day"].between(0, days - 1).all()


def test_history_agrees_with_its_plain_twin(rng):
    n, n_cards = 400, 12
    time = np.sort(rng.uniform(0, 5 * 86_400, n))
    card = rng.integers(0, n_cards, n)
    amount = rng.exponential(40, n)
    online = rng.random(n) < 0.4
    x, y = rng.normal(0, 100, (2, n))
    state = rng.uniform(0, 3, (n_cards, 9))
    state[:, [0, 6]] *= -10_000
    state[:3, [0, 6, 7, 8]] = np.nan
    expected = naive_datasets.card_history(time, card, amount, online, x, y, state.copy())
    found = card_history(time, card, amount, online, x, y, state)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_the_file_holds_the_same_rows(tmp_path):
    path = tmp_path / "payments.parquet"
    write_card_fraud(path, 5000, chunk_rows=1300, random_state=3)
    expected = make_card_fraud(5000, random_state=3).to_frame("is_fraud")
    pd.testing.assert_frame_equal(pd.read_parquet(path), expected)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_file_that_could_not_be_finished(tmp_path, monkeypatch, error):
    import pyarrow.parquet as pq

    calls = itertools.count()
    write = pq.ParquetWriter.write_table

    def fail(self, table, *arguments):
        if next(calls) == 2:
            raise error
        write(self, table, *arguments)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    path = Path(tmp_path) / "payments.parquet"
    with pytest.raises(type(error)):
        write_card_fraud(path, 5000, chunk_rows=1000, random_state=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_rows": 0}, "n_rows"),
        ({"n_rows": 10.5}, "n_rows"),
        ({"n_rows": 100, "fraud_rate": 0.0}, "fraud_rate"),
        ({"n_rows": 100, "fraud_rate": 0.5}, "fraud_rate"),
        ({"n_rows": 100, "days": 0}, "days"),
        ({"n_rows": 100, "n_cards": -1}, "n_cards"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_card_fraud(**arguments)
