"""Models by name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import toprank
from toprank.folds import fit_arguments, fit_takes
from toprank.objectives import OBJECTIVES
from toprank.registry import ESTIMATORS, PEERS
from toprank.selection import MODELS, YARDSTICK, default_models, make_model
from toprank.selection.models import training_rows
from toprank.selection.peers import PEERS as PEER_LIBRARIES


def mixed_table(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(generator.normal(size=(n, 3)), columns=["amount", "hour", "age"])
    y = (frame["amount"] + generator.normal(size=n) > 1).astype(int).to_numpy()
    frame["shop"] = generator.choice(["web", "street", "phone"], n)
    frame["kind"] = pd.Categorical(np.where(y == 1, "a", "b"))
    frame["new"] = generator.random(n) < 0.5
    frame.loc[::7, "hour"] = np.nan
    frame.loc[::9, "shop"] = None
    return frame, y


def test_every_estimator_and_every_objective_has_a_name():
    assert {candidate.estimator for candidate in MODELS.values()} == {*ESTIMATORS, *PEERS}
    boosted = {c.parameters.get("objective") for c in MODELS.values()} - {None}
    assert boosted == set(OBJECTIVES)
    assert set(default_models()) <= set(MODELS)
    assert MODELS[YARDSTICK].estimator == "TunedLogisticBooster"
    assert all(candidate.summary for candidate in MODELS.values())


QUICK = {
    "AutoRanker": {
        "time_limit": None,
        "portfolio": ("linear", "rankboost"),
        "n_folds": 2,
        "n_repeats": 1,
    },
    "TunedLogisticBooster": {"n_candidates": 1, "n_estimators": 10},
    "GradientBoostingRanker": {"n_estimators": 10},
    "RankingForest": {"n_estimators": 3},
    "PRankBoost": {"n_estimators": 5},
}
FAMILIES = sorted(
    {c.estimator: n for n, c in reversed(MODELS.items()) if c.estimator in ESTIMATORS}.values()
)


@pytest.mark.parametrize("name", FAMILIES)
def test_any_table_goes_into_any_model(name, tmp_path):
    frame, y = mixed_table()
    model = make_model(name, random_state=1)
    model.set_params(**QUICK.get(MODELS[name].estimator, {}))
    model.fit(frame, y)
    scores = model.decision_function(frame)
    assert toprank.metrics.roc_auc(y, scores) > 0.7
    strange = frame.assign(shop="elsewhere", kind=None, hour=np.nan)
    assert np.isfinite(model.decision_function(strange)).all()
    toprank.save(model, tmp_path / "model.toprank", frame, y)
    again = toprank.load(tmp_path / "model.toprank")
    np.testing.assert_array_equal(again.decision_function(frame), scores)


@pytest.mark.parametrize("kind", PEER_LIBRARIES)
def test_peers_take_any_table_with_weights(kind):
    pytest.importorskip(PEER_LIBRARIES[kind])
    frame, y = mixed_table()
    weight = np.where(np.arange(len(y)) % 7 == 0, 0.0, 2.0)
    model = make_model(kind, random_state=1).fit(frame, y, weight)
    scores = model.decision_function(frame)
    assert toprank.metrics.roc_auc(y, scores) > 0.7
    np.testing.assert_array_equal(scores, model.fit(frame, y, weight).decision_function(frame))
    strange = frame.assign(shop="elsewhere", kind=None, hour=np.nan)
    assert np.isfinite(model.decision_function(strange)).all()


def test_names_seeds_and_threads():
    model = make_model("ap_sigmoid", random_state=7, n_jobs=2)
    assert (model.random_state, model.n_jobs, model.objective) == (7, 2, "ap_sigmoid")
    assert make_model("ap_sigmoid", n_jobs=-1).n_jobs == -1
    assert type(make_model("RankBoost")).__name__ == "RankBoost"
    assert make_model("ranksvm", random_state=3).named_steps["model"].random_state == 3
    with pytest.raises(ValueError, match="unknown model 'rankbost'; did you mean 'rankboost'"):
        make_model("rankbost")
    with pytest.raises(ValueError, match="Known: auto, boosting"):
        make_model("something else entirely")


def test_a_sample_of_rows_keeps_all_positives():
    y = np.arange(60_000) % 50 == 0
    rows = training_rows("greedy_pauc", y, random_state=1)
    assert rows is not None
    assert y[rows].sum() == y.sum()
    assert (~y[rows]).sum() == MODELS["greedy_pauc"].most_negatives == 20_000
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, training_rows("GreedyPAUC", y, random_state=1))
    assert not np.array_equal(rows, training_rows("greedy_pauc", y, random_state=2))
    assert training_rows("greedy_pauc", y[:10_000]) is None
    assert training_rows("ap_sigmoid", y) is None


def test_weights_and_queries_go_to_the_last_step_that_takes_them():
    known = {"sample_weight": np.arange(4), "qid": np.arange(4), "groups": np.arange(4)}

    def taken(name):
        return {*fit_arguments(make_model(name), skip_unknown=True, **known)}

    assert taken("ranksvm") == {"model__sample_weight", "model__qid"}
    assert taken("yardstick") == {"sample_weight", "groups"}
    assert taken("boosting") == set(known)
    assert taken("pauc_linear") == {"model__sample_weight"}
    assert taken("poise") == set()  # makes synthetic rows
    assert not fit_takes(make_model("poise"), "sample_weight")
    some = fit_arguments(make_model("ranksvm"), rows=[3, 1], skip_unknown=True, **known, gap=7)
    np.testing.assert_array_equal(some["model__qid"], [3, 1])
    assert "model__groups" not in fit_arguments(make_model("ranksvm"), **known)
    with pytest.raises(ValueError, match="PartialAUCRanker takes no sample_weight"):
        fit_arguments(make_model("poise"), **known)
