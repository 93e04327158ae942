"""TunedLogisticBooster: chosen by inner validation that keeps groups and times apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost

import toprank
from toprank import TunedLogisticBooster, metrics
from toprank.boosting.tuned import inner_splits


def draw(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 4))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + generator.normal(size=n) > 1.8).astype(int)
    return X, y


def small(**parameters) -> TunedLogisticBooster:
    settings = {"depths": (1, 3), "learning_rates": (0.3,), "n_estimators": 25, "n_jobs": 1}
    return TunedLogisticBooster(**{**settings, "random_state": 0, **parameters})


def test_the_setting_is_the_one_with_the_best_validation():
    X, y = draw(6000)
    model = small(early_stopping_rounds=25).fit(X, y)
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    ((train, validation),) = inner_splits(y, None, None, None, seed)
    assert len(validation) == pytest.approx(1500, abs=2)
    curves = {}
    for depth in (1, 3):
        parameters = {"objective": "binary:logistic", "max_depth": depth, "eta": 0.3, "nthread": 1}
        booster = xgboost.train(parameters, xgboost.QuantileDMatrix(X[train], y[train]), 25)
        matrix = xgboost.DMatrix(X[validation])
        for rounds in range(1, 26):
            scores = booster.predict(matrix, iteration_range=(0, rounds))
            curves[depth, rounds] = metrics.average_precision(y[validation], scores)
    best = max(curves, key=curves.__getitem__)
    assert (model.best_params_["max_depth"], model.best_params_["n_estimators"]) == best
    assert model.best_score_ == pytest.approx(curves[best], abs=1e-5)


def test_it_is_plain_xgboost_on_all_rows():
    X, y = draw()
    model = small().fit(X, y)
    chosen = model.best_params_
    parameters = {"objective": "binary:logistic", "max_depth": chosen["max_depth"],
                  "eta": chosen["learning_rate"], "nthread": 1}  # fmt: skip
    plain = xgboost.train(parameters, xgboost.QuantileDMatrix(X, y), chosen["n_estimators"])
    margin = plain.predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(model.decision_function(X) + model.offset_, margin, atol=1e-5)


def test_it_explains_itself_and_can_be_saved(tmp_path):
    X, y = draw()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(shop=np.where(y == 1, "x", "y"))
    model = small().fit(frame, y)
    scores = model.decision_function(frame)
    explained = model.explain(frame)
    assert explained.columns.tolist() == [*"abcd", "shop", "(base)"]
    np.testing.assert_allclose(explained.sum(axis=1), scores, atol=1e-4)
    assert model.feature_importances_.sum() == pytest.approx(1)
    pair = model.explain_pair(frame[:1], frame[1:2])
    assert pair["adds"].sum() == pytest.approx(scores[0] - scores[1], abs=1e-4)
    toprank.save(model, tmp_path / "tuned", frame, y)
    again = toprank.load(tmp_path / "tuned")
    np.testing.assert_array_equal(again.decision_function(frame), scores)


def test_inner_folds_keep_groups_whole_and_classes_apart():
    _, y = draw()
    groups = np.random.default_rng(0).integers(60, size=400)
    folds = inner_splits(y, groups, None, None, 0)
    assert len(folds) == 5
    for train, validation in folds:
        assert not set(groups[train]) & set(groups[validation])
        assert set(y[validation]) == set(y[train]) == {0, 1}
    plain = inner_splits(y, None, None, None, 0)
    assert sorted(np.concatenate([rows for _, rows in plain])) == list(range(400))


def test_inner_validation_by_time_is_the_latest_quarter():
    _, y = draw()
    time = np.random.default_rng(0).integers(100, size=400)
    ((train, validation),) = inner_splits(y, None, time, 5, 0)
    assert time[train].max() + 5 <= time[validation].min()
    assert len(validation) == pytest.approx(100, abs=10)
    assert set(np.flatnonzero(time >= time[validation].min())) == set(validation)
    dates = np.datetime64("2024-01-01") + time.astype("timedelta64[D]")
    ((train_too, validation_too),) = inner_splits(y, None, dates, np.timedelta64(5, "D"), 0)
    assert np.array_equal(train, train_too)
    assert np.array_equal(validation, validation_too)


def test_what_is_learnt_by_heart_from_groups_is_not_rewarded():
    """Labels depend on the group alone: only validation by group sees that nothing is learnt."""
    generator = np.random.default_rng(0)
    groups = generator.integers(40, size=800)
    y = (generator.random(40) < 0.3).astype(int)[groups]
    X = groups[:, None] * 37 % 101 + generator.normal(scale=0.1, size=(800, 1))
    assert small().fit(X, y).best_score_ > 0.8
    assert small().fit(X, y, groups=groups).best_score_ < 0.6


def test_groups_and_time_follow_the_rows_that_have_weight():
    X, y = draw()
    weight = np.ones(400)
    weight[::3] = 0
    kept = weight > 0
    time, groups = np.arange(400.0), np.arange(400) // 4
    for extra in ({"time": time, "gap": 10}, {"groups": groups}, {}):
        part = {k: v[kept] if np.ndim(v) else v for k, v in extra.items()}
        a = small().fit(X, y, weight, **extra)
        b = small().fit(X[kept], y[kept], weight[kept], **part)
        assert a.best_params_ == b.best_params_
        np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)


def test_one_positive_cannot_be_split_but_learnt_from():
    X, _ = draw(30)
    y = np.eye(30, dtype=int)[3]
    model = small().fit(X, y)
    assert np.isnan(model.best_score_)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize(
    "parameters",
    [{"depths": ()}, {"depths": (0,)}, {"learning_rates": (-0.1,)}, {"n_estimators": 0},
     {"early_stopping_rounds": 0}],
)  # fmt: skip
def test_bad_parameters(parameters):
    X, y = draw(50)
    with pytest.raises(ValueError, match=next(iter(parameters))):
        small(**parameters).fit(X, y)


@pytest.mark.parametrize("name", ["groups", "time"])
def test_lengths_must_agree(name):
    X, y = draw(50)
    with pytest.raises(ValueError, match=f"{name} has 3 entries for 50 rows"):
        small().fit(X, y, **{name: [1, 2, 3]})
