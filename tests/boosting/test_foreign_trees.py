"""Trees that XGBoost did not grow: cuts taken over, and a linear model as stairs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import toprank
from toprank import GradientBoostingRanker
from toprank.boosting.foreign_trees import CLIP, STEPS, _cuts, _strict_cuts, linear_trees
from toprank.boosting.training import random_trees
from toprank.boosting.xgboost_helpers import predict_margin, shap_values


@pytest.mark.parametrize(
    "cut", [0.0, 0.1, -2.5, 1e300, -1e300, 16_777_217.0, float(np.float32(0.3))]
)
def test_a_strict_cut_is_the_same_cut(cut: float) -> None:
    (strict,) = _strict_cuts(np.array([cut]))
    near = np.float32(np.clip(cut, -3e38, 3e38))
    around = [
        near,
        np.nextafter(near, np.float32(-np.inf)),
        np.nextafter(near, np.float32(np.inf)),
        0.0,
    ]
    for x in np.array(around, dtype=np.float32):
        assert (x < np.float32(strict)) == (float(x) <= cut)


def draw(n: int = 500, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers of few and of many values, missing cells, categories, a constant."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "many": rng.lognormal(sigma=2, size=n),
        "few": rng.integers(5, size=n).astype(float),
        "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        "shop": rng.choice(["a", "b", "c", None], size=n),
        "same": 1.0,
    })  # fmt: skip
    signal = frame["few"] + 2 * frame["gaps"].isna() + 2 * (frame["shop"] == "b")
    return frame, (signal + rng.normal(size=n) > 5).to_numpy().astype(int)


def checked(X, y, weight=None):
    """A ranker that knows the columns, and the rows as it sees them."""
    model = GradientBoostingRanker(n_jobs=1)
    data = model._check_training(X, y, weight, keep_zero_weights=True)
    return model, data


def naive(frame: pd.DataFrame, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """The scores of scikit-learn's logistic regression on columns made by hand, without the intercept."""
    weight = np.ones(len(y)) if weight is None else weight
    made = {}
    for name in ("many", "few", "gaps"):
        known = frame[name].notna()
        mean = np.average(frame[name][known], weights=weight[known])
        spread = np.sqrt(np.average((frame[name][known] - mean) ** 2, weights=weight[known]))
        made[name] = ((frame[name] - mean) / spread).fillna(0).clip(-CLIP, CLIP)
    made["missing"] = frame["gaps"].isna().astype(float)
    for shop in "abc":
        made[shop] = (frame["shop"] == shop).astype(float)
    table = pd.DataFrame(made).to_numpy()
    model = LogisticRegression(max_iter=500, tol=1e-10).fit(table, y, weight)
    return table @ model.coef_[0]


def test_the_stairs_follow_the_logistic_regression():
    frame, y = draw()
    model, data = checked(frame, y)
    margin = predict_margin(linear_trees(model, data), data.X)
    expected = naive(frame, y)
    assert np.corrcoef(margin, expected)[0, 1] > 0.999
    # where every value has a step of its own there is no difference
    exact = draw()[0].assign(many=2.0)
    exact["gaps"] = exact["gaps"].round(0)
    model, data = checked(exact, y)
    margin = predict_margin(linear_trees(model, data), data.X)
    np.testing.assert_allclose(margin, naive(exact, y), atol=1e-4)


def test_a_weight_is_a_number_of_copies_and_none_is_no_row():
    frame, y = draw()
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    weighted, repeated = (
        predict_margin(linear_trees(*fit), checked(frame, y)[1].X)
        for fit in (checked(frame, y, weight), checked(frame.iloc[copies], y[copies]))
    )
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)


def test_a_sparse_matrix_is_zero_where_it_has_nothing():
    rng = np.random.default_rng(0)
    X = sparse.random(400, 30, density=0.1, random_state=0, format="csr")
    dense = X.toarray()
    y = (dense[:, 0] + dense[:, 1] + 0.1 * rng.normal(size=400) > 0.3).astype(int)
    model, data = checked(X, y)
    margin = predict_margin(linear_trees(model, data), X)
    scaled = dense / np.abs(dense).max(axis=0)
    expected = scaled @ LogisticRegression(max_iter=500, tol=1e-10).fit(scaled, y).coef_[0]
    assert np.corrcoef(margin, expected)[0, 1] > 0.999


def test_a_category_that_training_did_not_have_adds_nothing():
    frame, y = draw()
    model, data = checked(frame, y)
    booster = linear_trees(model, data)
    rows = np.repeat(data.X[:1], 3, axis=0)
    shop = frame.columns.get_loc("shop")
    rows[:, shop] = [1, 3, np.nan]  # known, beyond the last code, missing
    known, unknown, missing = predict_margin(booster, rows)
    assert unknown == pytest.approx(missing, abs=1e-6)
    assert known > missing + 0.1


@pytest.mark.parametrize("n_values", [1, 2, STEPS, STEPS + 1, 10_000])
def test_cuts_lie_between_values(n_values):
    values = np.unique(np.random.default_rng(0).lognormal(size=n_values).astype(np.float32))
    cuts = _cuts(values)
    assert len(cuts) == len(values) - 1 if n_values <= STEPS else len(cuts) <= STEPS
    assert (np.diff(cuts) > 0).all()
    assert len(np.unique(np.searchsorted(cuts, values))) == len(cuts) + 1  # no step is empty
    neighbours = np.array([1.0, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    assert np.searchsorted(_cuts(neighbours), neighbours).tolist() == [0, 1]


def test_the_linear_part_is_explained_counted_and_kept_in_files(tmp_path):
    frame, y = draw()
    model = GradientBoostingRanker(n_estimators=5, linear_share=0.9, n_jobs=1, random_state=0)
    model.fit(frame, y)
    scores = model.decision_function(frame)
    np.testing.assert_allclose(model.explain(frame).sum(axis=1), scores, atol=1e-4)
    assert model.feature_importances_[1] > 0.2
    assert model.feature_importances_[4] == 0
    toprank.save(model, tmp_path / "m.toprank")
    again = toprank.load(tmp_path / "m.toprank").decision_function(frame)
    np.testing.assert_array_equal(again, scores)


def test_columns_without_content_make_a_linear_part_of_zeros():
    frame, y = draw()
    model, data = checked(frame[["same"]], y)
    assert predict_margin(linear_trees(model, data), data.X).tolist() == [0.0] * len(y)


def test_explanations_of_deep_random_trees_add_up():
    """Rows of many rare marks make trees as deep as they have marks, if they may."""
    rng = np.random.default_rng(0)
    X = (rng.random((2_000, 150)) < 0.02).astype(float)
    y = (X[:, :20].sum(axis=1) + 0.3 * rng.normal(size=2_000) > 1).astype(int)
    model, data = checked(X, y)
    booster = random_trees(model, data, 30, seed=0)
    explained = shap_values([booster], np.ones(1), model.columns_, X[:200])
    assert np.abs(explained.sum(axis=1) - predict_margin(booster, X[:200])).max() < 1e-3
