"""The objectives inside the libraries they are made for."""

from __future__ import annotations

import numpy as np
import pytest
from cases import ALL

from toprank import objectives

BINARY = sorted({c.objective.name for c in ALL})


@pytest.fixture
def table(rng):
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 1.2).astype(float)
    return X, y


def auc(y, scores):
    positive, negative = scores[y == 1], scores[y == 0]
    difference = positive[:, None] - negative[None, :]
    return float(np.mean((difference > 0) + 0.5 * (difference == 0)))


def scaled(objective, y, scores, sample_weight=None, qid=None):
    rows = objectives.ScoredList.of(y, scores, sample_weight, qid, graded=objective.graded)
    return objective.scaled_gradient_hessian(rows)


@pytest.mark.parametrize("name", BINARY)
def test_xgboost_learns_with_every_objective(table, name):
    xgboost = pytest.importorskip("xgboost")
    X, y = table
    parameters = {"max_depth": 2, "nthread": 1, "base_score": 0.0}
    objective = objectives.get(name)
    booster = xgboost.train(
        parameters, xgboost.DMatrix(X, y), num_boost_round=20, obj=objective.for_xgboost()
    )
    scores = booster.predict(xgboost.DMatrix(X), output_margin=True)
    assert np.isfinite(scores).all()
    assert auc(y, scores) > 0.9


def test_xgboost_scikit_learn_interface(table):
    xgboost = pytest.importorskip("xgboost")
    X, y = table
    objective = objectives.get("ap_sigmoid").for_xgboost(api="sklearn")
    model = xgboost.XGBRegressor(objective=objective, n_estimators=20, max_depth=2, n_jobs=1)
    assert auc(y, model.fit(X, y).predict(X)) > 0.9
    weight = np.where(X[:, 1] > 0, 1.0, 0.0)
    weighted = model.fit(X, y, sample_weight=weight).predict(X)
    keep = weight > 0
    alone = model.fit(X[keep], y[keep]).predict(X)
    assert auc(y, weighted) == pytest.approx(auc(y, alone), abs=0.05)


def test_xgboost_weights_and_groups_reach_the_objective(table):
    xgboost = pytest.importorskip("xgboost")
    X, y = table
    qid, weight = np.repeat(np.arange(8), 50), np.arange(400) % 3 + 1.0
    objective = objectives.get("lambda_map")
    matrix = xgboost.DMatrix(X, y, weight=weight)
    ours = objective.for_xgboost()(np.zeros(400), matrix)
    for a, b in zip(ours, scaled(objective, y, np.zeros(400), weight), strict=True):
        np.testing.assert_array_equal(a, b)
    grouped = xgboost.DMatrix(X, y, qid=qid)
    ours = objective.for_xgboost()(X[:, 0], grouped)
    plain = scaled(objective, y, X[:, 0], qid=qid)
    np.testing.assert_array_equal(ours[0], plain[0])
    grouped.set_weight(np.arange(8) + 1.0)  # with groups, XGBoost takes one weight for each
    ours = objective.for_xgboost()(X[:, 0], grouped)
    np.testing.assert_allclose(ours[0], plain[0] * (qid + 1.0))


@pytest.mark.parametrize("name", ["ap_softmax", "lambda_ndcg", "pairwise_logistic"])
def test_lightgbm_with_weights_and_groups(table, name):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = table
    qid, weight = np.repeat(np.arange(8), 50), np.arange(400) % 3 + 1.0
    objective = objectives.get(name)
    data = lightgbm.Dataset(X, y, weight=weight, group=np.full(8, 50), free_raw_data=False)
    parameters = {
        "objective": objective.for_lightgbm(), "num_leaves": 4, "verbose": -1, "num_threads": 1,
        "min_sum_hessian_in_leaf": 1.0,
    }  # fmt: skip
    booster = lightgbm.train(parameters, data, num_boost_round=20)
    assert auc(y, booster.predict(X)) > 0.9
    ours = objective.for_lightgbm()(X[:, 0], data)
    exact = scaled(objective, y, X[:, 0], weight, qid)
    np.testing.assert_allclose(ours[0], exact[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1], exact[1], rtol=1e-12)


def test_lightgbm_scikit_learn_interface(table):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = table
    objective = objectives.get("ap_sigmoid").for_lightgbm(api="sklearn")
    model = lightgbm.LGBMRegressor(
        objective=objective, n_estimators=20, num_leaves=4, n_jobs=1, verbose=-1
    )
    model.fit(X, y, sample_weight=np.ones(400))
    assert auc(y, model.booster_.predict(X)) > 0.9


def test_catboost_takes_pointwise_objectives(table):
    catboost = pytest.importorskip("catboost")
    X, y = table
    model = catboost.CatBoost(
        {
            "loss_function": objectives.get("logistic").for_catboost(), "eval_metric": "Logloss",
            "iterations": 30, "depth": 2, "verbose": 0, "thread_count": 1, "learning_rate": 0.3,
            "allow_writing_files": False, "leaf_estimation_method": "Newton",
        }
    )  # fmt: skip
    model.fit(X, y)
    own = catboost.CatBoost(
        {
            "loss_function": "Logloss", "iterations": 30, "depth": 2, "verbose": 0,
            "thread_count": 1, "learning_rate": 0.3, "allow_writing_files": False,
            "leaf_estimation_method": "Newton", "leaf_estimation_iterations": 1,
            "boost_from_average": False,
        }
    )  # fmt: skip
    own.fit(X, y)
    assert auc(y, model.predict(X)) > 0.9
    np.testing.assert_allclose(model.predict(X), own.predict(X), atol=1e-3)


@pytest.mark.parametrize("name", [n for n in BINARY if n != "logistic"])
def test_catboost_refuses_the_others_and_says_why(name):
    with pytest.raises(ValueError, match="blocks of rows"):
        objectives.get(name).for_catboost()


def test_an_unknown_interface():
    for make in (objectives.get("logistic").for_xgboost, objectives.get("logistic").for_lightgbm):
        with pytest.raises(ValueError, match="api must be one of 'native', 'sklearn'"):
            make(api="spark")


@pytest.mark.parametrize("name", BINARY)
def test_torch_gradient_is_ours(table, name):
    torch = pytest.importorskip("torch")
    X, y = table
    objective = objectives.get(name)
    scores = torch.tensor(X[:, 0], dtype=torch.float64, requires_grad=True)
    loss = objective.for_torch()(scores, torch.tensor(y))
    (3.0 * loss).backward()
    gradient, _ = objective.gradient_hessian(y, X[:, 0])
    assert loss.item() == pytest.approx(objective.loss(y, X[:, 0]))
    np.testing.assert_allclose(scores.grad.numpy(), 3.0 * gradient, rtol=1e-12)


def test_without_torch_the_message_says_what_to_install(monkeypatch):
    import builtins

    plain = builtins.__import__

    def without_torch(name, *arguments, **options):
        if name == "torch":
            raise ImportError(name)
        return plain(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_torch)
    with pytest.raises(ImportError, match="pip install torch"):
        objectives.get("logistic").for_torch()
