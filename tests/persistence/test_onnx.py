"""Exported graphs score as the models do, and what cannot be exported says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank
from toprank import to_onnx


def rows(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    return X, (X[:, 0] + 0.7 * X[:, 1] + 0.7 * rng.normal(size=n) > 1.2).astype(int)


def with_gaps(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X[::7, 1] = np.nan
    X[3::11, 0] = np.nan
    return X


def run(graph: Any, X: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": np.asarray(X, dtype=np.float64)})[0]


def assert_alike(model: Any, X: np.ndarray) -> None:
    expected = model.decision_function(X)
    found = run(to_onnx(model), X)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


BOOSTED = {
    "trees": lambda: toprank.GradientBoostingRanker(n_estimators=50, random_state=0, n_jobs=1),
    "seeds": lambda: toprank.GradientBoostingRanker(
        objective="ap_sigmoid", n_estimators=30, n_seeds=3, random_state=0, n_jobs=1),
    "line search": lambda: toprank.GradientBoostingRanker(
        objective="ap_sigmoid", n_estimators=30, n_seeds=1, step="line_search", random_state=0, n_jobs=1),
    "stumps": lambda: toprank.RankBoost(n_estimators=60),
    "push": lambda: toprank.PNormPush(n_estimators=40),
    "clauses": lambda: toprank.PRankBoost(n_estimators=20, random_state=0),
    "paths": lambda: toprank.PRankBoost(n_estimators=20, weak="path", random_state=0),
    "partial": lambda: toprank.PAUCBoost(n_estimators=30),
    "scorecard": lambda: toprank.RuleScorecard(8, 2),
    "splines": lambda: toprank.PAUCBoost(n_estimators=30, weak="spline"),
}  # fmt: skip


@pytest.mark.parametrize("case", BOOSTED)
def test_boosted_models(case: str) -> None:
    X, y = rows()
    model = BOOSTED[case]().fit(with_gaps(X), y)
    test = rows(n=1000, seed=5)[0]
    assert_alike(model, with_gaps(test))
    # right at the thresholds and far beyond them
    assert_alike(model, np.vstack([X, 1e9 * test[:5], -1e9 * test[:5], np.full((1, 4), np.nan)]))


def test_boosted_trees_compare_in_single_precision() -> None:
    X, y = rows()
    model = toprank.GradientBoostingRanker(n_estimators=20, random_state=0, n_jobs=1).fit(X, y)
    nearly = X + np.random.default_rng(1).choice([-1e-9, 1e-9, 1e-7], size=X.shape)
    assert_alike(model, nearly)


def test_truth_values() -> None:
    X, y = rows()
    frame = pd.DataFrame({"flag": X[:, 0] > 0.5, "x": X[:, 1]})
    model = toprank.RankBoost(n_estimators=10).fit(frame, y)
    expected = model.decision_function(frame)
    np.testing.assert_allclose(
        run(to_onnx(model), frame.to_numpy(dtype=float)), expected, rtol=1e-5
    )


def test_trees_of_sparse_rows_take_zeros_as_missing() -> None:
    X, y = rows()
    X[np.abs(X) < 0.6] = 0
    model = toprank.GradientBoostingRanker(n_estimators=20, random_state=0, n_jobs=1)
    assert_alike(model.fit(sparse.csr_matrix(X), y), X)


LINEAR = {
    "logistic": lambda: toprank.LogisticRanker(),
    "svm": lambda: toprank.RankSVM(),
    "least squares": lambda: toprank.RankLS(),
    "poise": lambda: toprank.PartialAUCRanker(),
    "greedy": lambda: toprank.GreedyPAUC(),
    "structural": lambda: toprank.PartialAUCSVM(),
    "svm, long tails cut off": lambda: toprank.RankSVM(scale="robust"),
}


@pytest.mark.parametrize("case", LINEAR)
def test_linear_models(case: str) -> None:
    X, y = rows()
    assert_alike(LINEAR[case]().fit(X, y), 1e3 * rows(seed=5)[0])


def test_an_ensemble_without_rounds_scores_all_rows_alike() -> None:
    X, y = rows()
    model = toprank.RankBoost(n_estimators=1).fit(X, y)
    model.rounds_ = ()
    assert_alike(model, with_gaps(X))


def table(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, a few categories and many, with missing cells."""
    rng = np.random.default_rng(seed)
    X, y = rows(n, seed)
    frame = pd.DataFrame(with_gaps(X), columns=list("abcd"))
    country = np.where(rng.random(n) < 0.3 + 0.4 * y, "NL", rng.choice(["DE", "FR", "BE"], n))
    shop = np.char.add("shop ", (rng.zipf(1.4, n) % 60).astype(str))
    frame.insert(1, "country", pd.Series(country, dtype=object).mask(rng.random(n) < 0.1))
    return frame.assign(shop=shop, size=pd.Categorical(rng.integers(0, 3, n))), y


def run_table(graph: Any, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    columns = {
        name: np.where(frame[name].isna(), "", frame[name].astype(object).map(str))
        if name in ("country", "shop", "size")
        else frame[name].to_numpy(dtype=np.float64)
        for name in frame
    }
    cells = {
        name: column.astype(object if column.dtype.kind == "U" else column.dtype)[:, None]
        for name, column in columns.items()
    }
    names = [output.name for output in graph.graph.output]
    return dict(zip(names, session.run(names, cells), strict=True))


WITH_CATEGORIES = {
    "trees": BOOSTED["seeds"],
    "sets of categories": lambda: toprank.GradientBoostingRanker(
        "logistic", n_estimators=30, max_categories=100, random_state=0, n_jobs=1, n_seeds=1),
    "a forest and a linear model": lambda: toprank.GradientBoostingRanker(
        n_estimators=10, random_trees=10, linear_share=0.5, random_state=0, n_jobs=1, n_seeds=1),
    "stumps": BOOSTED["stumps"],
    "clauses": BOOSTED["clauses"],
}  # fmt: skip


@pytest.mark.parametrize("case", WITH_CATEGORIES)
def test_categories_are_text(case: str) -> None:
    frame, y = table()
    model = WITH_CATEGORIES[case]().fit(frame, y)
    test = table(n=500, seed=5)[0]
    test.loc[::9, ["country", "shop"]] = "never seen"
    found = run_table(to_onnx(model), test)["score"]
    np.testing.assert_allclose(found, model.decision_function(test), rtol=1e-5, atol=1e-5)
    assert len(np.unique(found)) > 5


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibrated_models_give_probabilities(method: str) -> None:
    frame, y = table()
    ranker = toprank.RankBoost(n_estimators=20)
    model = toprank.CalibratedRanker(ranker, method=method, cv=3).fit(frame, y)
    test = table(n=500, seed=5)[0]
    found = run_table(to_onnx(model), test)
    expected = model.predict_proba(test)[:, 1]
    np.testing.assert_allclose(found["probability"], expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["score"], model.decision_function(test), rtol=1e-5, atol=1e-5)


def test_refusals_name_what_is_in_the_way() -> None:
    X, y = rows()
    for model, message in (
        (toprank.TreeRank(max_depth=2), "TreeRank cannot be exported"),
        (toprank.RankSVM(kernel="rbf"), "RankSVM with a kernel"),
        (toprank.PartialAUCRanker(embedding=StandardScaler()), "with an embedding"),
        (make_pipeline(StandardScaler(), toprank.LogisticRanker()), "steps of a Pipeline"),
    ):
        with pytest.raises(ValueError, match=message):
            to_onnx(model.fit(X, y))
    with pytest.raises(NotFittedError):
        to_onnx(toprank.LogisticRanker())
    frame = table()[0].rename(columns={"a": "score"})
    with pytest.raises(ValueError, match="a column called 'score'"):
        to_onnx(toprank.RankBoost(n_estimators=3).fit(frame, y))
