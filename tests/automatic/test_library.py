"""LightGBM's and CatBoost's trees score as in their own library, and are stored like our own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification

import toprank
from toprank.boosting import library
from toprank.boosting.library import LibraryBooster
from toprank.boosting.xgboost_helpers import predict_margin
from toprank.persistence import checks

SETTINGS = {"lightgbm": {"n_estimators": 25}, "catboost": {"iterations": 25}}


def rows(seed: int = 0, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Columns with and without missing cells, with ties and with zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    y = (X[:, 0] + 0.5 * X[:, 4] + 0.4 * rng.normal(size=n) > 1).astype(int)
    X[:, :3][rng.random((n, 3)) < 0.1] = np.nan
    return X, y


def own_margin(name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    module = pytest.importorskip(name)
    if name == "lightgbm":
        model = module.LGBMClassifier(
            **SETTINGS[name],
            verbose=-1,
            deterministic=True,
            force_row_wise=True,
            n_jobs=1,
            random_state=3,
        )
        return model.fit(X, y).predict(X_test, raw_score=True)
    model = module.CatBoostClassifier(
        **SETTINGS[name], verbose=0, allow_writing_files=False, thread_count=1, random_seed=3
    )
    return model.fit(X, y).predict(X_test, prediction_type="RawFormulaVal")


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_trees_score_as_in_their_library(name: str) -> None:
    X, y = rows()
    X_test = rows(1)[0]
    X_test[::3, 3:] = np.nan  # cells that are missing where training had none
    expected = own_margin(name, X, y, X_test)
    trees = library.LIBRARIES[name](X, y, None, SETTINGS[name], 3, 1)
    booster = library.make_booster(trees, X.shape[1], 1)
    np.testing.assert_allclose(predict_margin(booster, X_test), expected, atol=2e-5)
    # a cut is a value of single precision: rows that lie on it go the same way
    edges = np.full((50, X.shape[1]), np.nan, dtype=np.float32)
    cuts = [node[1] for tree in trees for node in tree if node[0] == 0][:50]
    edges[: len(cuts), 0] = np.array(cuts, dtype=np.float32)
    np.testing.assert_allclose(
        predict_margin(booster, edges), own_margin(name, X, y, edges), atol=2e-5
    )


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_callback_ends_the_fit(name: str) -> None:
    pytest.importorskip(name)
    X, y = make_classification(300, weights=[0.8], random_state=0)
    rounds: list[object] = []

    def third(_: object) -> bool:
        rounds.append(_)
        return len(rounds) >= 3

    model = LibraryBooster(name, SETTINGS[name], n_jobs=1, random_state=0)
    model.fit(X, y, callbacks=[third])
    assert len(rounds) == 3
    assert model.boosters_[0].num_boosted_rounds() in (3, 4)  # CatBoost's constant is a tree
    if name == "catboost":
        rounds.clear()
        model.fit_categories(X, y, np.zeros(X.shape[1], dtype=np.int64), callbacks=[third])
        assert len(rounds) == 3


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_library_booster_is_stored_and_explained(name: str, tmp_path) -> None:
    pytest.importorskip(name)
    X, y = rows()
    model = LibraryBooster(name, SETTINGS[name], n_jobs=1, random_state=0).fit(X, y)
    toprank.save(model, tmp_path / "m.toprank")
    scores = model.decision_function(X)
    np.testing.assert_array_equal(toprank.load(tmp_path / "m.toprank").decision_function(X), scores)
    np.testing.assert_allclose(model.explain(X).sum(axis=1), scores, atol=1e-4)
    assert model.score(X, y) > 0.8
    doubled = LibraryBooster(name, SETTINGS[name], n_jobs=1, random_state=0)
    assert doubled.fit(X, y, sample_weight=np.where(y == 1, 9.0, 1.0)).score(X, y) > 0.8


def coded_rows(seed: int, n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes of categories whose combinations matter, numbers, missing cells; and how many codes there are."""
    rng = np.random.default_rng(seed)
    n_categories = np.array([60, 8, 2, 0, 4])
    codes = [rng.integers(0, k, n) for k in (40, 6, 2, 1, 4)]
    X = np.column_stack(codes).astype(np.float32)
    X[:, 3] = rng.normal(size=n)
    y = ((X[:, 0] * 7 % 5 == 1) & (X[:, 1] > 2)) | ((X[:, 1] * 5 + X[:, 0]) % 7 == 2) & (
        X[:, 3] > 0
    )
    y |= rng.random(n) < 0.05
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y.astype(int), n_categories


@pytest.mark.parametrize(
    "settings", [{}, {"max_ctr_complexity": 1}, {"one_hot_max_size": 10}, {"nan_mode": "Max"}]
)
def test_categories_score_as_in_catboost(settings: dict) -> None:
    catboost = pytest.importorskip("catboost")
    X, y, n_categories = coded_rows(0)
    X_test = coded_rows(1)[0]
    X_test[:20, 0] = 55  # a code that no training row has

    def table(X: np.ndarray) -> pd.DataFrame:
        rows = pd.DataFrame(X)
        for j in np.flatnonzero(n_categories):
            rows[j] = np.where(np.isnan(X[:, j]), -1, X[:, j]).astype(int).astype(str)
        return rows

    settings = {"iterations": 200, **settings}
    own = catboost.CatBoostClassifier(
        **settings, verbose=0, allow_writing_files=False, thread_count=1, random_seed=3,
        cat_features=np.flatnonzero(n_categories).tolist(),
    ).fit(table(X), y)  # fmt: skip
    trees, statistics = library.catboost_with_categories(
        X, y, n_categories, None, settings, seed=3, n_jobs=1
    )
    rows = statistics.transform(X_test)
    booster = library.make_booster(trees, rows.shape[1], 1)
    expected = own.predict(table(X_test), prediction_type="RawFormulaVal")
    np.testing.assert_allclose(predict_margin(booster, rows), expected, atol=2e-5)
    if not settings.get("max_ctr_complexity"):
        assert any(len(c.categories) + len(c.conditions) > 1 for c in statistics.combinations)


def test_categories_of_catboost_are_stored_and_checked(tmp_path) -> None:
    pytest.importorskip("catboost")
    X, y, n_categories = coded_rows(0)
    table = pd.DataFrame(X)
    for j in np.flatnonzero(n_categories):
        table[j] = table[j].map(lambda code: None if np.isnan(code) else f"v{code:.0f}")
    table.columns = [f"c{j}" for j in range(table.shape[1])]
    settings = {"time_limit": None, "n_folds": 2, "n_jobs": 1, "random_state": 0}
    model = toprank.AutoRanker(portfolio=("catboost",), **settings).fit(table, y)
    toprank.save(model, tmp_path / "m.toprank")
    kept = toprank.load(tmp_path / "m.toprank")
    np.testing.assert_array_equal(kept.decision_function(table), model.decision_function(table))
    statistics = kept.members_[0].models[0].encoding
    checks.check_record("CategoryStatistics", statistics)
    far = np.array([[10**9, 0]])
    with pytest.raises(toprank.persistence.ModelFileError, match="column that does not exist"):
        checks.check_record("CategoryStatistics", replace(statistics, indicators=far))
    one = statistics.combinations[0]
    with pytest.raises(toprank.persistence.ModelFileError, match="do not ascend"):
        checks.check_record("Combination", replace(one, keys=one.keys[::-1].copy()))
    with pytest.raises(toprank.persistence.ModelFileError, match="array it should be"):
        checks.check_record("Combination", replace(one, otherwise=np.zeros(99)))


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(library, "import_module", missing)
    X, y = rows()
    with pytest.raises(ImportError, match=r"pip install toprank\[peers\]"):
        LibraryBooster("lightgbm").fit(X, y)
