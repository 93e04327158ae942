"""No objective returns NaN or infinity, at any depth, on any data, however long it runs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from toprank import GradientBoostingRanker
from toprank.objectives import OBJECTIVES

every = pytest.mark.parametrize("objective", sorted(OBJECTIVES))


def sparse_rows(n: int, columns: int) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Binary columns that are rarely 1 and 3% positives, as in text data such as w8a."""
    rng = np.random.default_rng(0)
    X = sparse.random(n, columns, density=0.04, random_state=0, format="csr", data_rvs=np.ones)
    signal = np.asarray(X @ rng.normal(size=columns)) + 0.5 * rng.normal(size=n)
    return sparse.csr_matrix(X), (signal > np.quantile(signal, 0.97)).astype(int)


def check_finite(model: GradientBoostingRanker, X, bound: float) -> None:
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= bound
    leaves = model.boosters_[0].trees_to_dataframe()
    assert np.isfinite(leaves["Gain"]).all()


@every
def test_many_deep_rounds_stay_finite(objective: str) -> None:
    """A thousand rounds at half a step go as far as 5,000 at a tenth, which `benchmarks endurance` runs."""
    X, y = sparse_rows(1000, 30)
    rounds, step, rate = 1000, 2.0, 0.5
    model = GradientBoostingRanker(
        objective,
        n_estimators=rounds,
        learning_rate=rate,
        max_leaf_step=step,
        growth="depth",
        max_depth=10,
        max_leaves=0,
        n_jobs=1,
        n_seeds=1,
        random_state=0,
    ).fit(X, y)
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 2 * rounds * rate * step
    assert model.score(X, y) > 2 * y.mean()


@every
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_one_positive(objective: str, step: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.arange(200) == int(np.argmax(X[:, 0]))
    model = GradientBoostingRanker(
        objective,
        n_estimators=30,
        step=step,
        min_child_weight=0.01,
        n_jobs=1,
        n_seeds=1,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="all scores are equal")
        check_finite(model.fit(X, y), X, 200)


@every
@pytest.mark.parametrize("step", ["newton", "line_search"])
def test_separable_rows(objective: str, step: str) -> None:
    X = np.linspace(-1, 1, 300)[:, None]
    y = (X[:, 0] > 0.8).astype(int)
    model = GradientBoostingRanker(
        objective,
        n_estimators=200,
        learning_rate=1.0,
        step=step,
        n_jobs=1,
        n_seeds=1,
        random_state=0,
    ).fit(X, y)
    check_finite(model, X, 4000)
    assert model.score(X, y) == pytest.approx(1.0, abs=0.02)


@every
@pytest.mark.parametrize("size", [1e-6, 1e6])
def test_columns_of_tiny_and_huge_numbers(objective: str, size: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 1).astype(int)
    model = GradientBoostingRanker(objective, n_estimators=20, n_jobs=1, n_seeds=1, random_state=0)
    model.fit(X * size, y)
    check_finite(model, X * size, 200)
    assert model.score(X * size, y) > 2 * y.mean()


@every
def test_continuing_from_scores_of_a_million(objective: str) -> None:
    """Gradients where the scores are 1e6 apart, as after a booster with huge leaves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=300) > 1).astype(int)
    far = GradientBoostingRanker(
        "logistic",
        n_estimators=1,
        learning_rate=1e6,
        max_leaf_step=0,
        n_jobs=1,
        n_seeds=1,
        random_state=0,
    ).fit(X, y)
    assert np.ptp(far.decision_function(X)) > 1e5
    model = GradientBoostingRanker(objective, n_estimators=10, n_jobs=1, n_seeds=1, random_state=0)
    model.fit(X, y, init_model=far)
    assert np.isfinite(model.decision_function(X)).all()
