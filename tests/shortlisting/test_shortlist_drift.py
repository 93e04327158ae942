"""Drift: seen when it is there, and not when it is not."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from contract_settings import small
from scipy import sparse
from scipy.stats import ks_2samp

import toprank
from toprank import CalibratedRanker, GradientBoostingRanker, LogisticRanker
from toprank.persistence import summarise
from toprank.shortlisting import drift
from toprank.shortlisting.drift import cumulative_shares, distance, number_bins, stability_index


def draw(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """All kinds of columns: smooth, heavy-tailed, mostly zero, few values, texts, missing cells."""
    frame = pd.DataFrame(
        {
            "smooth": rng.normal(size=n),
            "tail": np.exp(2 * rng.normal(size=n)),
            "zeros": np.where(rng.random(n) < 0.8, 0.0, rng.random(n)),
            "count": rng.poisson(1.5, size=n),
            "flag": rng.random(n) < 0.03,
            "country": rng.choice(["NL", "DE", "FR", "XX"], size=n, p=[0.6, 0.3, 0.09, 0.01]),
            "shop": rng.choice([f"s{k}" for k in range(60)], size=n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "smooth"] = np.nan
    frame.loc[rng.random(n) < 0.05, "country"] = None
    return frame


@pytest.fixture(scope="module")
def summary() -> dict:
    rng = np.random.default_rng(0)
    X = draw(rng, 4000)
    model = GradientBoostingRanker(n_estimators=2, n_jobs=1).fit(X, rng.random(4000) < 0.3)
    return summarise(model, X)


@pytest.mark.parametrize("n", [1, 5, 20, 60, 200, 1000, 4000])
def test_rows_of_the_same_source_raise_no_alarm(summary, n: int) -> None:
    rng = np.random.default_rng(n)
    alarms = [text for _ in range(60) for text in drift(summary, draw(rng, n)).warnings]
    assert not alarms


@pytest.mark.parametrize(
    ("change", "column"),
    [
        (lambda X: X.assign(smooth=X["smooth"] + 1), "smooth"),
        (lambda X: X.assign(tail=X["tail"] * 5), "tail"),
        (lambda X: X.assign(zeros=np.random.default_rng(1).random(len(X))), "zeros"),
        (lambda X: X.assign(count=X["count"] + 2), "count"),
        (lambda X: X.assign(smooth=np.nan), "smooth"),
        (lambda X: X.assign(country="DE"), "country"),
        (lambda X: X.assign(country="??"), "country"),
        (lambda X: X.assign(flag=True), "flag"),
    ],
)
def test_a_changed_column_is_named(summary, change, column: str) -> None:
    X = change(draw(np.random.default_rng(5), 500))
    found = drift(summary, X)
    assert found.drifted
    assert all(repr(column) in text for text in found.warnings)
    by_name = {one["name"]: one for one in found.columns}
    assert by_name[column]["drift"] != "none"
    assert found.table()["name"][0] == column
    json.dumps(found.as_dict(), allow_nan=False)


def test_texts_of_warnings(summary) -> None:
    X = draw(np.random.default_rng(5), 500)
    missing = X.assign(smooth=X["smooth"].where(np.arange(500) % 4 > 0))
    (text,) = drift(summary, missing).warnings
    assert "missing" in text
    assert "in training" in text
    unseen = X.assign(country=X["country"].where(np.arange(500) % 10 > 0, "new"))
    assert any("not seen in training" in text for text in drift(summary, unseen).warnings)
    (text,) = drift(summary, X.drop(columns="tail")).warnings
    assert text == "column 'tail' is missing"
    assert not drift(summary, X[:0]).drifted


def test_new_names_in_a_column_of_names_are_no_drift() -> None:
    X = pd.DataFrame({"email": [f"u{k}@mail.com" for k in range(300)], "a": np.arange(300.0)})
    y = np.arange(300) % 3 == 0
    model = GradientBoostingRanker("logistic", n_estimators=2, random_state=0).fit(X, y)
    model.training_summary_ = summarise(model, X)
    found = drift(model, X.assign(email=X["email"].str.replace("u", "v")))
    assert not found.warnings
    assert found.columns[0]["unseen"] is None


def test_unseen_categories_need_a_full_list(summary) -> None:
    X = draw(np.random.default_rng(5), 500).assign(shop="never")
    short = {**summary, "columns": [dict(c) for c in summary["columns"]]}
    short["columns"][-1]["others"] = 0.1
    assert drift(short, X).columns[-1]["unseen"] is None
    assert drift(summary, X).columns[-1]["unseen"] == 1.0


def test_arrays_and_sparse_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    summary = summarise(LogisticRanker().fit(X, X[:, 0] > 1), X)
    assert not drift(summary, X[:400]).drifted
    assert drift(summary, X[:400] + np.array([0, 2, 0])).warnings[0].startswith("'x1'")
    assert not drift(summary, sparse.csr_matrix(X[:400])).drifted


# -- measures against naive twins -----------------------------------------------------------------


def test_the_stability_index_is_its_formula() -> None:
    old, new = np.array([0.2, 0.3, 0.5]), np.array([0.25, 0.35, 0.4])
    expected = sum((b - a) * np.log(b / a) for a, b in zip(old, new, strict=True))
    assert stability_index(old, new, 10**7, 10**7) == pytest.approx(expected, rel=1e-4)
    assert stability_index(old, old, 100, 100) == pytest.approx(0.0)
    assert np.isfinite(stability_index(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 10, 10))


def test_tenths_of_the_training_rows() -> None:
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=10_000), rng.normal(size=5000) + 0.5
    quantiles = np.percentile(train, range(101), method="lower")
    old_shares, new_shares = number_bins(quantiles, new, 0.0, 5000)
    np.testing.assert_allclose(old_shares, [0.1] * 10 + [0.0])
    edges = np.percentile(train, range(10, 100, 10), method="lower")
    expected = np.bincount(np.searchsorted(edges, new), minlength=10) / 5000
    np.testing.assert_allclose(new_shares, [*expected, 0.0])


def test_the_distance_is_that_of_kolmogorov_and_smirnov() -> None:
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=5000), rng.normal(size=800) + 0.3
    quantiles = np.percentile(train, range(101), method="lower")
    found, p_value = distance(quantiles, new, 5000)
    expected = ks_2samp(train, new)
    assert found == pytest.approx(expected.statistic, abs=0.012)
    assert p_value < 1e-6
    same, p_value = distance(quantiles, train[:800], 5000)
    assert same < 0.05
    assert p_value > 0.01


def test_values_that_fill_many_quantiles() -> None:
    values, shares = cumulative_shares(np.array([0.0] * 81 + [*range(1, 21)]))
    assert values[0] == 0.0
    assert shares[0] == pytest.approx(0.805)
    assert shares[-1] == 1.0


# -- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RankingForest", "TreeRank", "GradientBoostingRanker", "RankSVM"])
def test_a_shift_of_the_scores(name: str, tmp_path) -> None:
    """Also models that know their training rows by heart raise no alarm without drift."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(400, 4)), columns=list("abcd"))
    y = (X["a"] + rng.normal(size=400) > 1.5).astype(int)
    fresh = pd.DataFrame(rng.normal(size=(1000, 4)), columns=list("abcd"))
    path = tmp_path / "model.toprank"
    toprank.save(CalibratedRanker(small(name), cv=2).fit(X, y), path, X, y)
    model = toprank.load(path)
    assert drift(model, fresh).scores["drift"] == "none"
    moved = drift(model, fresh.assign(a=fresh["a"] + 2))
    assert moved.scores["drift"] == "large"
    assert any(text.startswith("the scores") for text in moved.warnings)


def test_a_model_without_summary_gets_a_clear_error() -> None:
    X = np.arange(8.0)[:, None]
    with pytest.raises(ValueError, match="training summary"):
        drift(LogisticRanker().fit(X, [0, 1] * 4), X)
