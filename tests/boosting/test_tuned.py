"""TunedLogisticBooster: chosen by inner validation that keeps groups and times apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xgboost

import toprank
from toprank import TunedLogisticBooster, metrics
from toprank.boosting.tuned import (
    _better_than_usual,
    _choose_round,
    candidates,
    choose_splits,
    search_stages,
)
from toprank.folds import SplitKeys


def draw(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, 4))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + generator.normal(size=n) > 1.8).astype(int)
    return X, y


def small(**parameters) -> TunedLogisticBooster:
    settings = {"n_candidates": 4, "n_estimators": 25, "n_jobs": 1}
    return TunedLogisticBooster(**{**settings, "random_state": 0, **parameters})


SEED = int(np.random.RandomState(0).randint(2**31 - 1))  # what a fit draws from random_state=0


def plain_curve(setting, X, y, train, validation, rounds):
    """Average precision after each round of XGBoost's own training."""
    parameters = {"objective": "binary:logistic", "nthread": 1, "seed": SEED, **setting}
    booster = xgboost.train(parameters, xgboost.QuantileDMatrix(X[train], y[train]), rounds)
    matrix = xgboost.DMatrix(X[validation])
    return [
        metrics.average_precision(
            y[validation], booster.predict(matrix, iteration_range=(0, k), output_margin=True)
        )
        for k in range(1, rounds + 1)
    ]


def test_the_setting_is_the_one_with_the_best_validation():
    X, y = draw(6000)
    model = small(early_stopping_rounds=25).fit(X, y)
    inner = choose_splits(y, SplitKeys(), SEED)
    assert len(inner[0][1]) == pytest.approx(1500, abs=2)
    stages, splits = search_stages(inner, y, SEED)
    alive = candidates(4, y, SEED)
    first = alive[0]
    for stage, kept in zip(stages, (2, 2, 2), strict=True):  # the first is never left behind
        (part,) = stage
        curves = [plain_curve(setting, X, y, *splits[part], 25) for setting in alive]
        rounds = [
            _choose_round([c], s["learning_rate"]) for c, s in zip(curves, alive, strict=True)
        ]
        values = [curve[k - 1] for curve, k in zip(curves, rounds, strict=True)]
        order = np.argsort(-np.array(values), kind="stable")
        best = {**alive[order[0]], "n_estimators": rounds[order[0]]}, values[order[0]]
        alive = [alive[k] for k in order[: int(np.ceil(len(alive) / 3))]]
        alive = alive if first in alive else [*alive, first]
        assert len(alive) <= kept
    assert model.best_params_ == best[0]
    assert model.best_score_ == pytest.approx(best[1], abs=1e-5)


def test_the_first_rounds_are_not_chosen_by_chance():
    lucky = [0.9, *np.linspace(0.1, 0.6, 60)]
    assert _choose_round([lucky], learning_rate=0.1) > 50
    assert _choose_round([[0.5, 0.6]], learning_rate=0.1) == 2  # there are no more


def test_the_usual_setting_is_left_only_for_one_that_leads_beyond_its_standard_error():
    usual = np.array([0.5, 0.6, 0.7])
    assert _better_than_usual(2, {0: usual, 2: usual + np.array([0.1, 0.12, 0.09])}) == 2
    assert _better_than_usual(2, {0: usual, 2: usual + np.array([0.3, -0.2, 0.0])}) == 0
    # one split: no error known
    assert _better_than_usual(2, {0: usual[:1], 2: usual[:1] + 0.01}) == 2


def test_few_rows_are_judged_by_more_and_more_folds():
    _, y = draw()
    inner = choose_splits(y, SplitKeys(), 0)
    stages, splits = search_stages(inner, y, 0)
    assert [len(stage) for stage in stages] == [2, 5, 10]
    assert splits is inner
    for repeat in (splits[:5], splits[5:]):
        assert sorted(np.concatenate([rows for _, rows in repeat])) == list(range(400))


def test_parts_of_many_rows_grow_and_keep_both_classes():
    y = (np.arange(9000) % 25 == 0).astype(int)
    inner = choose_splits(y, SplitKeys(), 0)
    _, splits = search_stages(inner, y, 0)
    sizes = [len(train) for train, _ in splits]
    assert sizes == pytest.approx([750, 2250, 6750], abs=3)
    for train, validation in splits:
        assert set(y[train]) == {0, 1}
        assert np.array_equal(validation, inner[0][1])
        assert not set(train) & set(validation)


def test_settings_are_those_users_start_from_and_random_ones_within_bounds():
    _, y = draw()
    found = candidates(60, y, 0)
    assert found == candidates(60, y, 0)
    assert found != candidates(60, y, 1)
    assert (found[0]["max_depth"], found[0]["learning_rate"]) == (5, 0.05)
    assert len(candidates(2, y, 0)) == 2
    assert {s["max_depth"] for s in found} == set(range(2, 9))
    assert all(0.02 <= s["learning_rate"] <= 0.3 for s in found)
    weights = {round(s["scale_pos_weight"], 6) for s in found}
    assert weights == {1.0, round(float(np.sqrt((y == 0).sum() / y.sum())), 6)}


def test_it_is_plain_xgboost_on_all_rows():
    X, y = draw()
    model = small().fit(X, y)
    setting = {k: v for k, v in model.best_params_.items() if k != "n_estimators"}
    parameters = {"objective": "binary:logistic", "nthread": 1, "seed": SEED, **setting}
    rounds = model.best_params_["n_estimators"]
    plain = [
        xgboost.train(parameters | {"seed": SEED + k}, xgboost.QuantileDMatrix(X, y), rounds)
        for k in range(3)
    ]
    margin = np.mean([b.predict(xgboost.DMatrix(X), output_margin=True) for b in plain], axis=0)
    np.testing.assert_allclose(model.decision_function(X) + model.offset_, margin, atol=1e-5)


def test_weights_times_a_constant_change_nothing():
    X, y = draw()
    weight = np.random.default_rng(0).integers(1, 4, size=400).astype(float)
    a, b = (small().fit(X, y, weight * factor) for factor in (1.0, 1e-6))
    assert a.best_params_ == b.best_params_
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-5)


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
    folds = choose_splits(y, SplitKeys.of(400, groups), 0)
    assert len(folds) == 10
    for train, validation in folds:
        assert not set(groups[train]) & set(groups[validation])
        assert set(y[validation]) == set(y[train]) == {0, 1}


def test_inner_validation_by_time_goes_from_the_latest_quarter_back():
    _, y = draw()
    time = np.random.default_rng(0).integers(100, size=400)
    found = choose_splits(y, SplitKeys.of(400, time=time, gap=5), 0)
    assert len(found) == 3
    for train, validation in found:
        assert time[train].max() + 5 <= time[validation].min()
        assert len(validation) == pytest.approx(100, abs=12)
        assert set(y[validation]) == set(y[train]) == {0, 1}
    first, *earlier = (time[validation] for _, validation in found)
    assert first.max() == time.max()
    assert earlier[0].max() < first.min()
    dates = np.datetime64("2024-01-01") + time.astype("timedelta64[D]")
    again = choose_splits(y, SplitKeys.of(400, time=dates, gap=np.timedelta64(5, "D")), 0)
    for one, other in zip(found, again, strict=True):
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))


def test_many_rows_with_many_positives_are_judged_by_one_quarter_and_with_few_by_folds():
    time = np.arange(8000)
    many, few = (np.arange(8000) % every == 0 for every in (10, 100))
    assert len(choose_splits(many, SplitKeys.of(8000, time=time), 0)) == 1
    assert len(choose_splits(few, SplitKeys.of(8000, time=time), 0)) == 3
    assert len(choose_splits(many, SplitKeys(), 0)) == 1
    assert len(choose_splits(few, SplitKeys(), 0)) == 5


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
    [{"n_candidates": 0}, {"n_estimators": 0}, {"early_stopping_rounds": 0}],
)
def test_bad_parameters(parameters):
    X, y = draw(50)
    with pytest.raises(ValueError, match=next(iter(parameters))):
        small(**parameters).fit(X, y)


@pytest.mark.parametrize("name", ["groups", "time"])
def test_lengths_must_agree(name):
    X, y = draw(50)
    with pytest.raises(ValueError, match=f"{name} has 3 entries for 50 rows"):
        small().fit(X, y, **{name: [1, 2, 3]})
