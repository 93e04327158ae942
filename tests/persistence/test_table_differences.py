"""Scoring a table with missing, extra or retyped columns says which."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import toprank
from toprank.columns import Columns


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "amount": rng.normal(size=60).round(1),
            "hour": rng.integers(0, 24, 60),
            "country": rng.choice(["NL", "DE"], 60),
            "zone": pd.Categorical(rng.integers(0, 3, 60)),
        }
    )


@pytest.fixture
def model(frame: pd.DataFrame, tmp_path: Path):
    y = (frame["amount"] > 0.7).astype(int)
    toprank.save(toprank.TreeRank(max_depth=3).fit(frame, y), tmp_path / "model.toprank")
    return toprank.load(tmp_path / "model.toprank")


def test_missing_and_extra_columns_are_named(model, frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="TreeRank: .*: missing 'hour'; not in training 'hours'"):
        model.decision_function(frame.rename(columns={"hour": "hours"}))
    with pytest.raises(ValueError, match="missing 'amount', 'country'\n"):
        model.decision_function(frame[["hour", "zone"]])
    with pytest.raises(ValueError, match="not in training 'new', 'newer'\n"):
        model.decision_function(frame.assign(new=1, newer="x"))
    with pytest.raises(ValueError, match="missing 'zone'"):
        model.predict(pl.from_pandas(frame[["amount", "hour", "country"]]))


def test_retyped_columns_are_named_all_at_once(model, frame: pd.DataFrame) -> None:
    changed = frame.assign(
        amount=["much"] * 60, hour=pd.Timestamp("2024-01-01"), country=7, zone="north"
    )
    with pytest.raises(ValueError, match="columns differ") as caught:
        model.decision_function(changed)
    text = str(caught.value)
    assert "'amount' held numbers in training but has cells that are not numbers" in text
    assert "'hour' held numbers" in text
    assert "dates or times" in text
    assert "'country' held text as categories in training but holds numbers (type int64)" in text
    assert "'zone' held numbers as categories in training but holds text" in text
    with pytest.raises(ValueError, match="missing 'hour'; column 'amount' held numbers"):
        model.decision_function(changed.drop(columns="hour"))


def test_what_is_new_but_of_the_same_kind_is_scored(model, frame: pd.DataFrame) -> None:
    same = frame.assign(
        amount=frame["amount"].map(str),  # numbers that came as text
        hour=frame["hour"].astype("Int64"),
        country="FR",
        zone=pd.Categorical([9] * 60),
    )
    assert len(model.decision_function(same)) == 60
    assert len(model.decision_function(frame.assign(country=np.nan, zone=None))) == 60
    known = frame.assign(country=np.where(np.arange(60) > 3, frame["country"], "new"))
    assert len(model.decision_function(known)) == 60


def test_whole_numbers_for_categories_that_are_digits_still_match() -> None:
    columns = Columns.of(pd.DataFrame({"code": ["1", "2", "10"]}))
    assert columns.matrix(pd.DataFrame({"code": [2, 10, 77]}))[:2, 0].tolist() == [2, 1]


def test_other_orders_keep_the_message_of_scikit_learn(model, frame: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="same order"):
        model.decision_function(frame[frame.columns[::-1]])
    assert not model.columns_.differences(frame)
