"""Reasons: true to the model, in words, for every estimator."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from calibrated_cases import calibrated, table
from contract_settings import small
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from toprank import CalibratedRanker, LogisticRanker, RankSVM, TreeRank
from toprank.persistence import summarise
from toprank.registry import ESTIMATORS, all_estimators
from toprank.shortlisting import contributions, global_importance, reasons
from toprank.shortlisting.reasons import usual_values
from toprank.shortlisting.shortlist import alerts_of_scores

NAMES = sorted(ESTIMATORS)


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_gives_reasons_that_name_what_decides(name: str) -> None:
    X, model = table()[0], calibrated(name).estimator_
    top = np.argsort(-model.decision_function(X))[:10]
    texts = reasons(model, X.iloc[top], n=2, raising_only=True, summary=summarise(model, X))
    assert len(texts) == 10
    assert all(1 <= len(row) <= 2 for row in texts)
    assert all("raises the" in text for row in texts for text in row)
    assert sum("amount" in row[0] for row in texts) >= 7
    important = global_importance(model, X)
    assert important["feature"][0] == "amount"
    assert sorted(important["feature"]) == ["amount", "hour", "noise"]
    assert important["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize("name", NAMES)
def test_the_wrapper_gives_the_reasons_of_its_ranker(name: str) -> None:
    X, model = table()[0], calibrated(name)
    wrapped, plain = (
        [[re.split(" raises | lowers ", text)[0] for text in row] for row in reasons(m, X[:5])]
        for m in (model, model.estimator_)
    )
    assert wrapped == plain


def test_a_calibrated_ranker_speaks_of_chances() -> None:
    X, y = table(n=600)
    model = CalibratedRanker(LogisticRanker(), cv=2, method="sigmoid").fit(X, y)
    top = X.iloc[[int(np.argmax(model.decision_function(X)))]]
    (texts,) = reasons(model, top, n=1, summary=summarise(model, X))
    found = re.search(r"raises the chance from ([\d.]+)% to ([\d.]+)%", texts[0])
    assert found, texts
    added = contributions(model, top, summary=summarise(model, X))["amount"].iloc[0]
    score = model.decision_function(top)
    before, after = (100 * float(model.calibration_(s)[0]) for s in (score - added, score))
    assert [float(part) for part in found.groups()] == pytest.approx([before, after], rel=0.06)


def test_what_does_not_move_the_chance_says_so() -> None:
    X, y = table(n=600)
    model = LogisticRanker().fit(X, y)
    row = X.iloc[[int(np.argmax(model.decision_function(X)))]]
    (texts,) = reasons(
        model, row, n=1, background=X, chance=lambda row, added: np.array([0.4, 0.4])
    )
    assert re.search(r"raises the score by [\d.]+ \(chance 40% either way\)", texts[0]), texts


def test_rules_speak_of_chances_too() -> None:
    X, y = table(n=600)
    model = CalibratedRanker(small("RankBoost"), cv=2, method="sigmoid").fit(X, y)
    row = X.iloc[[int(np.argmin(np.abs(model.predict_proba(X)[:, 1] - 0.5)))]]
    (texts,) = reasons(model, row, n=1, raising_only=True)
    after = re.search(r"raises the chance from [\d.]+% to ([\d.]+)%", texts[0])
    assert after, texts
    assert float(after[1]) == pytest.approx(100 * model.predict_proba(row)[0, 1], rel=0.06)


def test_alerts_of_held_out_scores_end_at_their_own_probability() -> None:
    X, y = table(n=900)
    fitted = LogisticRanker().fit(X, y)
    noise = np.random.default_rng(1).normal(size=len(y))
    scores = rankdata(fitted.decision_function(X) + noise) / len(y)  # as a comparison pools them
    alerts, probability = alerts_of_scores(fitted, X, y, scores, 30)
    np.testing.assert_array_equal(alerts["probability"], probability[alerts.index])
    for shown, text in zip(alerts["probability"], alerts["reasons"], strict=True):
        changes = re.findall(r"(?:to|chance) ([\d.]+)%", text)
        assert changes, text
        assert [float(p) for p in changes] == pytest.approx([100 * shown] * len(changes), rel=0.06)
    assert alerts["reasons"].str.contains("amount = .* raises the chance from").any()


def test_few_positives_at_the_top_of_held_out_scores_are_likely_ones() -> None:
    X, _ = table(n=900)
    amount = X["amount"].to_numpy()
    y = (rankdata(amount) > 860).astype(int)  # 40 positives, too few for isotonic regression
    scores = rankdata(amount + 0.1 * np.random.default_rng(1).normal(size=900)) / 900
    fitted = LogisticRanker().fit(X, y)
    probability = alerts_of_scores(fitted, X, y, scores, 30)[1]
    assert probability[np.argsort(-scores)[:20]].min() > 0.9
    assert probability.sum() == pytest.approx(40, rel=0.1)


def test_two_values_and_exceptions_are_neither_high_nor_low() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"known": (rng.random(400) < 0.4).astype(int), "chargebacks": np.arange(400) % 10 // 9}
    )
    X["chargebacks"] *= 3
    y = (X["known"] + X["chargebacks"] + rng.normal(size=400) > 2).astype(int)
    model = LogisticRanker().fit(X, y)
    row = pd.DataFrame({"known": [1], "chargebacks": [3]})
    (texts,) = reasons(model, row, summary=summarise(model, X))
    assert "chargebacks = 3 (as in 9.9% of training rows)" in texts[0]
    assert any("known = 1 (as in " in text for text in texts)


def test_texts_that_training_hardly_knew_are_never_the_first_reason() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"amount": rng.normal(size=600), "shop": [f"s{k}" for k in range(300)] * 2})
    model = ByShop().fit(X, (X["amount"] > 1).astype(int))
    (texts,) = reasons(model, X[:1], summary=summarise(model, X))
    assert [text.split(" ")[0] for text in texts] == ["amount", "shop"]


class ByShop(ClassifierMixin, BaseEstimator):
    """A model in which the shop counts ten times as much as the amount."""

    def fit(self, X, y):
        self.classes_, self.n_features_in_ = np.unique(y), 2
        return self

    def decision_function(self, X):
        return 0.1 * X["amount"].to_numpy() ** 2 + 10.0 * (X["shop"] != "s1").to_numpy()

    def explain(self, X):
        return pd.DataFrame({"amount": 0.1 * X["amount"].abs(), "shop": 10.0}, index=X.index)


def test_contributions_of_a_linear_model_add_up() -> None:
    X, y = table()
    for model in (LogisticRanker().fit(X, y), RankSVM().fit(X, y)):
        parts = contributions(model, X)
        usual = pd.DataFrame([usual_values(X)], columns=X.columns)
        gap = model.decision_function(X) - model.decision_function(usual)
        np.testing.assert_allclose(parts.sum(axis=1), gap, atol=1e-9)


@pytest.mark.parametrize("name", ["GradientBoostingRanker", "RankBoost", "PRankBoost"])
def test_contributions_add_up_to_the_score_but_for_a_constant(name: str) -> None:
    X, y = table()
    model = small(name).fit(X, y)
    rest = model.decision_function(X) - contributions(model, X).sum(axis=1)
    assert np.ptp(rest) < 1e-4


def test_occlusion_is_the_change_of_the_score() -> None:
    X, y = table()
    model = GaussianNB().fit(X, y)
    summary = summarise(model, X)
    parts = contributions(model, X[:20], summary=summary)

    def log_odds(rows: pd.DataFrame) -> np.ndarray:
        p = np.clip(model.predict_proba(rows)[:, 1], 1e-15, 1 - 1e-15)
        return np.log(p / (1 - p))

    for j, column in enumerate(X.columns):
        changed = X[:20].copy()
        changed[column] = summary["columns"][j]["quantiles"][50]
        expected = log_odds(X[:20]) - log_odds(changed)
        np.testing.assert_allclose(parts[column], expected, atol=1e-9)


def test_occlusion_in_pipelines_speaks_of_the_columns_that_were_given() -> None:
    X, y = table()
    X = X.assign(
        country=np.where(y == 1, "XX", "NL"),
        zone=pd.Categorical(np.arange(len(y)) % 3),
        night=y == 1,
        count=np.arange(len(y)) % 4,
        day=pd.Timestamp("2024-05-01"),
    )
    encode = make_column_transformer(
        (StandardScaler(), ["amount", "count"]),
        (OneHotEncoder(handle_unknown="ignore"), ["country", "zone", "night"]),
    )
    model = make_pipeline(encode, LogisticRanker()).fit(X, y)
    summary = summarise(model, X)
    row = X[y == 1].iloc[:1]
    (texts,) = reasons(model, row, n=9, summary=summary)
    assert any(text.startswith("country = XX (") and "raises" in text for text in texts)
    assert any(text.startswith("night = true") for text in texts)
    assert not any(text.startswith(("noise", "day")) for text in texts)
    frame = contributions(model, X, summary=summary)
    assert (frame["noise"] == 0).all()
    assert (frame["day"] == 0).all()


def test_wide_tables_are_screened() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 400))
    y = (X[:, 7] > 0.5).astype(int)
    model = GaussianNB().fit(X, y)
    parts = contributions(model, X)
    assert parts.shape == (60, 400)
    assert (parts != 0).any().sum() <= 100
    assert (parts["x7"] != 0).any()
    assert global_importance(model, X)["feature"][0] == "x7"


def test_rows_of_all_forms() -> None:
    X, y = table()
    model = RankSVM().fit(X.to_numpy(), y)
    dense = reasons(model, X.to_numpy()[:4])
    assert reasons(model, X.to_numpy()[:4].tolist()) == dense
    assert [len(row) for row in reasons(model, sparse.csr_matrix(X.to_numpy()[:4]))] == [
        len(row) for row in dense
    ]
    kernel = RankSVM(kernel="rbf").fit(sparse.csr_matrix(X.to_numpy()), y)
    assert len(reasons(kernel, sparse.csr_matrix(X.to_numpy()[:4]))) == 4
    named = TreeRank().fit(X, y)
    assert reasons(named, pl.from_pandas(X[:4])) == reasons(named, X[:4])
    assert reasons(named, X[:0]) == []
    with pytest.raises(ValueError, match="at least 1"):
        reasons(named, X, n=0)


def test_the_splits_named_by_a_tree_hold_for_the_row() -> None:
    X, y = table()
    model = TreeRank(max_depth=3, leafrank_depth=2).fit(X, y)
    for row, texts in enumerate(reasons(model, X[:50], n=5)):
        for text in texts:
            condition = text.split(" raises the share")[0].split(" lowers the share")[0]
            for literal in condition.split(" and "):
                column, operator, bound = literal.split()
                value = X[column][row]
                assert value > float(bound) if operator == ">" else value <= float(bound), text


def test_missing_cells_in_a_tree_have_a_way_too() -> None:
    X, y = table()
    model = TreeRank(max_depth=3).fit(X, y)
    X = X.assign(amount=np.nan)
    assert len(reasons(model, X[:5])) == 5


def test_what_lowers_the_score_is_named_unless_only_reasons_to_look_are_wanted() -> None:
    X, y = table()
    model = LogisticRanker().fit(X, y)
    lowest = X.iloc[[int(np.argmin(model.decision_function(X)))]]
    ((first, *_),) = reasons(model, lowest, background=X)
    assert "amount" in first
    assert "lowers the score" in first
    (raising,) = reasons(model, lowest, raising_only=True, background=X)
    assert all("raises" in text for text in raising)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (50.0, "usual"),
        (96.5, "high: above 96% of training rows"),
        (3.5, "low: below 96% of training rows"),
        (100.0, "high: the highest of the training rows"),
        (0.0, "low: the lowest of the training rows"),
        (101.0, "high: above all training rows"),
        (-1.0, "low: below all training rows"),
        (np.nan, "is missing (as in 50% of training rows)"),
    ],
)
def test_numbers_are_placed_among_the_training_rows(value: float, words: str) -> None:
    train = pd.DataFrame({"amount": [*np.arange(0.0, 101.0), *[np.nan] * 101]})
    model = small("GradientBoostingRanker", min_child_weight=0.0).fit(train, np.arange(202) % 2)
    from toprank.shortlisting.reasons import _describe

    column = summarise(model, train)["columns"][0]
    assert words in _describe("amount", value, column)


def test_categories_are_placed_among_the_training_rows() -> None:
    from toprank.shortlisting.reasons import _describe

    column = {"name": "c", "kind": "category", "missing": 0.0, "shares": {"NL": 0.97, "XX": 0.03}}
    assert _describe("c", "NL", {**column, "others": 0.0}) == "c = NL (97% of training rows)"
    assert _describe("c", "XX", {**column, "others": 0.0}) == "c = XX (rare: 3% of training rows)"
    assert _describe("c", "??", {**column, "others": 0.0}) == "c = ?? (not seen in training)"
    assert _describe("c", "??", {**column, "others": 0.1}) == "c = ?? (rare in training)"
    assert _describe("c", None, {**column, "others": 0.1}).startswith("c is missing")
    assert len(_describe("c", "x" * 500, None)) < 80


def test_all_estimators_that_take_tables_with_missing_cells_and_categories() -> None:
    X, y = table()
    X = X.assign(country=np.where(y == 1, "XX", "NL"))
    X.loc[::5, "amount"] = np.nan
    X.loc[::7, "country"] = None
    for name, cls in all_estimators().items():
        if cls._accepts_categories and cls._accepts_missing:
            model = small(name).fit(X, y)
            texts = reasons(model, X[:40], summary=summarise(model, X))
            assert len(texts) == 40
            assert any("country" in text for row in texts for text in row), name
