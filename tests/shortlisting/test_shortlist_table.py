"""The shortlist: the right rows, in the right order, with what is known about them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract_settings import small

import toprank
from toprank import CalibratedRanker, LogisticRanker, TreeRank, choose_cut, shortlist
from toprank.persistence import summarise
from toprank.registry import ESTIMATORS
from toprank.shortlisting import cross_fitted_scores, drift


def rows(seed: int = 0, n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["amount", "hour", "noise"])
    return X, (2 * X["amount"] + X["hour"] + rng.normal(size=n) > 3).astype(int).to_numpy()


@pytest.fixture(scope="module")
def model() -> CalibratedRanker:
    X, y = rows(0, 1500)
    return CalibratedRanker(LogisticRanker()).fit(X, y)


def test_the_first_rows_by_score(model) -> None:
    X, _ = rows(1)
    table = shortlist(model, X, budget=30)
    scores = model.decision_function(X)
    assert table.index.tolist() == np.argsort(-scores)[:30].tolist()
    assert table["rank"].tolist() == list(range(1, 31))
    np.testing.assert_array_equal(table["score"], np.sort(scores)[::-1][:30])
    np.testing.assert_array_equal(
        table["probability"], model.predict_proba(X.iloc[table.index])[:, 1]
    )
    assert (table["probability_low"] <= table["probability"]).all()
    assert (table["probability"] <= table["probability_high"]).all()
    assert table["reasons"].str.contains("amount").any()
    expected = ["rank", "score", "probability", "probability_low", "probability_high", "reasons"]
    assert table.columns.tolist() == expected
    assert table.attrs == {"cut": None, "ties_left_out": 0, "short_groups": 0}


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator(name: str) -> None:
    X, y = rows()
    plain = small(name).fit(X, y)
    table = shortlist(plain, X, budget=7, n_reasons=2)
    assert len(table) == 7
    assert table["score"].is_monotonic_decreasing
    assert table["reasons"].str.len().gt(0).any()


def test_names_and_values_travel_along(model) -> None:
    X, _ = rows(1)
    names = [f"t{k}" for k in range(len(X))]
    table = shortlist(model, X, budget=4, ids=names, value="amount", n_reasons=0)
    assert table["id"].tolist() == [f"t{k}" for k in table.index]
    assert table["value"].tolist() == X["amount"].iloc[table.index].tolist()
    assert "reasons" not in table
    again = shortlist(model, pl.from_pandas(X), budget=4, ids=pl.Series(names), value="amount")
    assert again["id"].tolist() == table["id"].tolist()


def test_a_budget_for_each_day(model) -> None:
    X, _ = rows(1)
    day = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(400) % 3, unit="D"))
    day.iloc[:2] = pd.Timestamp("2023-12-31")  # a day with fewer rows than the budget
    table = shortlist(model, X, budget=5, per=day)
    assert table["per"].is_monotonic_increasing
    assert table.groupby("per")["rank"].apply(list).tolist() == [[1, 2], *[[1, 2, 3, 4, 5]] * 3]
    scores = model.decision_function(X)
    for when, part in table.groupby("per"):
        best = np.sort(scores[(day == when).to_numpy()])[::-1][: len(part)]
        np.testing.assert_array_equal(part["score"], best)
    assert len(shortlist(model, X, budget=200, per=day, n_reasons=0)) == 400


def test_ties_are_taken_in_the_order_of_the_rows() -> None:
    X = pd.DataFrame({"a": np.repeat([2.0, 1.0, 0.0], [3, 10, 50])})
    tree = TreeRank(max_depth=2).fit(X, (X["a"] > 0.5).astype(int))
    table = shortlist(tree, X, budget=5)
    assert table.index.tolist() == [0, 1, 2, 3, 4]
    flagged = tree.decision_function(X)
    assert (
        table.attrs["ties_left_out"]
        == (flagged == flagged[4]).sum() - (flagged[:5] == flagged[4]).sum()
    )
    assert len(shortlist(tree, X, cut=float(flagged.min()))) == (flagged > flagged.min()).sum()


def test_cuts(model) -> None:
    X, y = rows(1, 2000)
    scores = model.decision_function(X)
    for rule in ({"fpr": 0.05}, {"precision": 0.5}, {"cost": (1, 5)}):
        table = shortlist(model, X, **rule, n_reasons=0)
        cut = model.cut(**rule)
        assert len(table) == (scores > cut.threshold).sum() > 0
        assert table.attrs["cut"] == cut.as_dict()
    assert (scores[y == 0] > model.cut(fpr=0.05).threshold).mean() <= 0.05
    chosen = choose_cut(y, scores, budget=40)
    assert len(shortlist(model, X, cut=chosen, n_reasons=0)) == 40
    assert len(shortlist(model, X, cut=-np.inf, n_reasons=0)) == 2000


def test_a_target_that_cannot_be_promised_gives_an_empty_list_and_a_warning(model) -> None:
    X, _ = rows(1)
    with pytest.warns(UserWarning, match="the shortlist is empty; nothing is flagged"):
        table = shortlist(model, X, fpr=1e-6)
    assert len(table) == 0
    assert "probability_high" in table
    assert "reasons" in table


def test_a_plain_ranker_with_a_cut_from_cross_fitted_scores() -> None:
    X, y = rows(0, 1000)
    plain = LogisticRanker().fit(X, y)
    cut = choose_cut(y, cross_fitted_scores(LogisticRanker(), X, y, final=plain), precision=0.6)
    assert len(shortlist(plain, rows(1)[0], cut=cut)) > 0
    with pytest.raises(ValueError, match="CalibratedRanker"):
        shortlist(plain, X, precision=0.6)


def test_reasons_use_the_training_summary(model) -> None:
    X, _ = rows(1)
    table = shortlist(model, X, budget=3, summary=summarise(model, rows(0, 1500)[0]))
    assert table["reasons"].str.contains("of training rows").all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one"),
        ({"budget": 3, "fpr": 0.1}, "exactly one"),
        ({"budget": 0}, "at least 1"),
        ({"budget": 2.5}, "whole number"),
        ({"budget": True}, "whole number"),
        ({"budget": 3, "ids": [1, 2]}, "id has 2 entries for 400 rows"),
        ({"budget": 3, "per": "day"}, "no column 'day'"),
        ({"budget": 3, "per": [None] * 400}, "missing"),
        ({"cut": "high"}, "cut must be"),
        ({"cut": float("nan")}, "cut must be"),
    ],
)
def test_bad_arguments_get_a_clear_error(model, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shortlist(model, rows(1)[0], **options)


def test_fewer_rows_than_the_budget_are_all_listed(model) -> None:
    X, _ = rows(1)
    table = shortlist(model, X, budget=401, n_reasons=0)
    assert (len(table), table.attrs["short_groups"]) == (400, 1)
    days = np.repeat(["quiet", "busy"], [3, 397])
    table = shortlist(model, X, budget=5, per=days, n_reasons=0)
    assert (len(table), table.attrs["short_groups"]) == (8, 1)


def test_it_is_exported() -> None:
    assert toprank.shortlist is shortlist
    assert {"shortlist", "choose_cut", "CalibratedRanker"} <= set(toprank.__all__)


# -- how often rows are scored --------------------------------------------------------------------


class Counting(LogisticRanker):
    """A linear ranker that keeps the number of rows of every call of decision_function."""

    CALLS: ClassVar[list[int]] = []

    def decision_function(self, X):
        self.CALLS.append(len(X))
        return super().decision_function(X)


@pytest.fixture
def counting() -> tuple[CalibratedRanker, pd.DataFrame, list[int]]:
    X, y = rows(0, 600)
    fitted = CalibratedRanker(Counting(), cv=2).fit(X, y)
    fitted.training_summary_ = summarise(fitted, X)
    Counting.CALLS.clear()
    return fitted, rows(1)[0], Counting.CALLS


@pytest.mark.parametrize("options", [{"budget": 20}, {"fpr": 0.05}, {"cut": -np.inf}])
def test_the_table_is_scored_once(counting, options) -> None:
    model, X, calls = counting
    table = shortlist(model, X, **options)
    assert {"probability", "probability_high", "reasons"} <= {*table.columns}
    assert calls == [400]


def test_known_scores_are_not_computed_again(counting) -> None:
    model, X, calls = counting
    scores = model.decision_function(X)
    expected = shortlist(model, X, budget=5)
    shift = drift(model, X)
    calls.clear()
    pd.testing.assert_frame_equal(shortlist(model, X, budget=5, scores=scores), expected)
    assert drift(model, X, scores=scores) == shift
    assert calls == []
    with pytest.raises(ValueError, match="Numbers of rows differ"):
        shortlist(model, X, budget=5, scores=scores[:-1])


def test_occlusion_scores_the_listed_rows_only_with_a_column_changed() -> None:
    """A model without an account of its own: what-if rows for each column, nothing else."""
    X, y = rows(0, 600)

    class Opaque(Counting):
        """Not seen as linear."""

        def fit(self, X, y):
            super().fit(X, y)
            self.embedding_ = "hidden"
            return self

    model = Opaque().fit(X, y)
    Opaque.CALLS.clear()
    shortlist(model, rows(1)[0], budget=10)
    assert Opaque.CALLS == [400, 10 * 3]
