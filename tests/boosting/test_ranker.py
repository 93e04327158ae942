"""GradientBoostingRanker: what its parameters promise."""

from __future__ import annotations

import json
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeRegressor

import toprank
from toprank import (
    SGBAP,
    GradientBoostingRanker,
    LambdaMART,
    SGBAPsig,
    TunedLogisticBooster,
    load,
    metrics,
    objectives,
    save,
)
from toprank.boosting import engine, training
from toprank.boosting.engine import quadratic_step
from toprank.boosting.settings import Settings
from toprank.objectives import OBJECTIVES, ScoredList
from toprank.parallel import thread_count


def draw(n: int = 600, seed: int = 0, rate: float = 0.15) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, (signal > np.quantile(signal, 1 - rate)).astype(int)


def quick(objective="ap_sigmoid", **parameters) -> GradientBoostingRanker:
    settings = {"n_estimators": 20, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0}
    settings |= {"n_seeds": 1, "subsample": 1.0, "max_leaves": 16, "colsample_bynode": 0.5}
    return GradientBoostingRanker(**{"objective": objective, **settings, **parameters})


@pytest.mark.parametrize("step", ["newton", "line_search"])
@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
def test_every_objective_learns(objective: str, step: str) -> None:
    X, y = draw()
    X_test, y_test = draw(seed=1)
    model = quick(objective, step=step, n_estimators=30).fit(X, y)
    assert model.score(X_test, y_test) > 2 * y_test.mean()


@pytest.mark.parametrize("objective", ["ap_sigmoid", "ap_exp", "logistic", "lambda_map"])
def test_the_training_loss_falls(objective: str) -> None:
    X, y = draw()
    model = quick(objective, n_estimators=30).fit(X, y)
    chosen = objectives.get(objective)
    staged = list(model.staged_decision_function(X))
    before = chosen.loss(y, np.zeros(len(y)))
    assert chosen.loss(y, staged[-1]) < 0.8 * before


def test_line_search_never_raises_the_loss_of_a_full_draw() -> None:
    X, y = draw()
    model = quick("ap_exp", step="line_search", learning_rate=1.0).fit(X, y)
    chosen = objectives.get("ap_exp")
    losses = [chosen.loss(y, scores) for scores in model.staged_decision_function(X)]
    assert np.all(np.diff([chosen.loss(y, np.zeros(len(y))), *losses]) <= 1e-6)


def test_stages_end_at_the_decision_function() -> None:
    X, y = draw()
    for parameters in ({}, {"n_seeds": 3, "subsample": 0.5}, {"step": "line_search"}):
        model = quick(**parameters).fit(X, y)
        stages = list(model.staged_decision_function(X))
        assert len(stages) == model.n_estimators_
        np.testing.assert_allclose(stages[-1], model.decision_function(X), atol=2e-5)
        some = list(model.staged_decision_function(X, [1, 7, 10_000]))
        np.testing.assert_allclose(some, [stages[0], stages[6], stages[-1]], atol=2e-5)


def test_stages_are_asked_for_in_ascending_order() -> None:
    X, y = draw()
    model = quick(n_estimators=5).fit(X, y)
    for rounds in ([3, 2], [0], [2, 2]):
        with pytest.raises(ValueError, match="rounds must be ascending"):
            list(model.staged_decision_function(X, rounds))


def test_explanations_add_up_to_the_score() -> None:
    X, y = draw()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = np.where(y == 1, "x", "z")
    frame.loc[::5, "kind"] = None
    for parameters in ({}, {"n_seeds": 2, "subsample": 0.5}, {"step": "line_search"}):
        model = quick(**parameters).fit(frame, y)
        table = model.explain(frame)
        assert list(table.columns) == [*frame.columns, "(base)"]
        np.testing.assert_allclose(table.sum(axis=1), model.decision_function(frame), atol=1e-4)


def test_explain_pair_says_why_one_row_is_above_another() -> None:
    X, y = draw()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=np.where(y == 1, "x", "z"))
    model = quick().fit(frame, y)
    a, b = frame.iloc[[np.argmax(y)]], frame.iloc[[np.argmin(y)]]
    table = model.explain_pair(a, b)
    assert table["adds"].abs().is_monotonic_decreasing
    assert table.loc["kind", ["a", "b"]].tolist() == ["x", "z"]
    expected = model.decision_function(a)[0] - model.decision_function(b)[0]
    assert table["adds"].sum() == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ValueError, match="two rows"):
        model.explain_pair(frame.iloc[:2], b)


def test_importances_find_the_columns_that_matter() -> None:
    X, y = draw(n=2000)
    importances = quick().fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert set(np.argsort(-importances)[:3]) == {0, 1, 2}


def test_early_stopping_keeps_the_best_round() -> None:
    X, y = draw(n=1500, rate=0.2)
    X_val, y_val = draw(n=800, seed=3, rate=0.2)
    model = quick(n_estimators=200, learning_rate=0.5, early_stopping_rounds=8)
    model.fit(X, y, eval_set=(X_val, y_val))
    history = model.validation_scores_
    assert model.n_estimators_ == int(np.argmax(history)) + 1
    assert len(history) == model.n_estimators_ + 8 < 200
    assert model.score(X_val, y_val) == pytest.approx(max(history), abs=1e-6)


@pytest.mark.parametrize("metric", ["roc_auc", "pos_at_top", "recall_precision_area"])
def test_early_stopping_on_any_metric_with_a_held_out_share(metric: str) -> None:
    X, y = draw(n=800)
    model = quick(n_estimators=40, early_stopping_rounds=5, eval_metric=metric).fit(X, y)
    assert 0 < model.n_estimators_ <= len(model.validation_scores_) <= 40
    custom = quick(
        n_estimators=40, early_stopping_rounds=5, eval_metric=getattr(metrics, metric)
    ).fit(X, y)
    assert custom.validation_scores_ == model.validation_scores_


def test_xgboosts_spellings_mean_the_same() -> None:
    X, y = draw(n=300)
    X_val, y_val = draw(n=200, seed=3)
    ours = quick(early_stopping_rounds=5).fit(X, y, eval_set=(X_val, y_val))
    theirs = quick(early_stopping_rounds=5, eval_metric="aucpr").fit(
        X, y, eval_set=[(X, y), (X_val, y_val)]
    )
    assert theirs.validation_scores_ == ours.validation_scores_


def test_early_stopping_follows_the_direction_of_the_metric() -> None:
    """A list length is better the shorter it is: the best round is the one with the shortest."""
    X, y = draw(n=1500, rate=0.2)
    X_val, y_val = draw(n=800, seed=3, rate=0.2)
    model = quick(
        n_estimators=60, early_stopping_rounds=60, eval_metric="list_length_for_recall"
    ).fit(X, y, eval_set=(X_val, y_val))
    history = model.validation_scores_
    assert min(history) < history[0]
    assert model.n_estimators_ == int(np.argmin(history)) + 1
    reached = metrics.list_length_for_recall(y_val, model.decision_function(X_val))
    assert reached == pytest.approx(min(history))


def test_validation_by_query_keeps_queries_whole() -> None:
    X, y = draw(n=600)
    qid = np.repeat(np.arange(30), 20)
    seen = []

    def spy(y_true, scores, qid):
        seen.append(qid.copy())
        return metrics.mean_average_precision(y_true, scores, qid=qid)

    model = quick("lambda_map", early_stopping_rounds=5, eval_metric=spy).fit(X, y, qid=qid)
    queries, sizes = np.unique(seen[0], return_counts=True)
    assert len(queries) == 6  # a fifth of them
    assert (sizes == 20).all()
    assert all(np.array_equal(seen[0], rows) for rows in seen)
    named = quick("lambda_map", early_stopping_rounds=5, eval_metric="mean_average_precision")
    assert named.fit(X, y, qid=qid).validation_scores_ == model.validation_scores_


def test_the_usual_metric_goes_by_query_where_there_are_queries() -> None:
    X, y = draw(n=600)
    qid = np.repeat(np.arange(30), 20)
    X[:, 0] += 10 * (qid % 2)  # the level of a query says nothing about its rows
    model = quick("lambda_map", early_stopping_rounds=5).fit(X, y, qid=qid)
    named = quick("lambda_map", early_stopping_rounds=5, eval_metric="mean_average_precision")
    assert model.validation_scores_ == named.fit(X, y, qid=qid).validation_scores_
    pooled = quick("lambda_map", early_stopping_rounds=5, eval_metric="average_precision")
    assert model.validation_scores_ != pooled.fit(X, y, qid=qid).validation_scores_
    late = slice(400, None)
    given = quick("lambda_map").fit(X, y, qid=qid, eval_set=(X[late], y[late], None, qid[late]))
    scores = given.decision_function(X[late])
    expected = metrics.mean_average_precision(y[late], scores, qid=qid[late])
    assert given.validation_scores_[-1] == pytest.approx(expected, abs=1e-6)
    given.fit(X, y, qid=qid, eval_set=(X[late], y[late]))
    expected = metrics.average_precision(y[late], given.decision_function(X[late]))
    assert given.validation_scores_[-1] == pytest.approx(expected, abs=1e-6)


def test_queries_change_what_is_learnt() -> None:
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), 25)
    level = rng.normal(size=40)[qid]  # tells queries apart but not rows inside one
    signal = rng.normal(size=len(qid))
    y = (signal + 0.3 * rng.normal(size=len(qid)) + 2 * level > 1.5).astype(int)
    X = np.column_stack([level, signal])
    by_query = quick("pairwise_logistic").fit(X, y, qid=qid).feature_importances_
    pooled = quick("pairwise_logistic").fit(X, y).feature_importances_
    assert by_query[0] < 0.5 * pooled[0]


def test_grades() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    grades = np.digitize(X[:, 0] + 0.3 * rng.normal(size=400), [0, 1, 1.5])
    qid = np.repeat(np.arange(20), 20)
    for name in ("lambda_ndcg", "lambda_mauc", "ndcg_sigmoid"):
        model = quick(name).fit(X, grades, qid=qid)
        assert metrics.ndcg(grades, model.decision_function(X), qid=qid) > 0.9
    with pytest.raises(ValueError, match="binary"):
        quick("ap_sigmoid").fit(X, grades, qid=qid)
    with pytest.raises(ValueError, match="whole numbers"):
        quick("lambda_ndcg").fit(X, grades - 1, qid=qid)


@pytest.mark.parametrize("objective", ["ap_sigmoid", "logistic"])
def test_continuing_a_fit_equals_one_long_fit(objective: str) -> None:
    X, y = draw()

    def grow(rounds: int) -> GradientBoostingRanker:
        return quick(objective, n_estimators=rounds, colsample_bynode=1.0)  # columns are drawn anew

    whole = grow(20).fit(X, y)
    half = grow(10).fit(X, y)
    continued = grow(10).fit(X, y, init_model=half)
    assert continued.n_estimators_ == 20
    np.testing.assert_allclose(
        continued.decision_function(X), whole.decision_function(X), atol=1e-4
    )
    assert half.n_estimators_ == 10  # what was continued is left as it was
    with pytest.raises(ValueError, match="other columns"):
        grow(5).fit(X[:, :3], y, init_model=half)


def shops(names: str, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table whose labels depend on a category: shops with even letters have the positives."""
    rng = np.random.default_rng(seed)
    shop = rng.choice(list(names), size=1500)
    risky = np.array([ord(name) % 2 == 0 for name in shop])
    y = (rng.random(1500) < np.where(risky, 0.95, 0.02)).astype(int)
    return pd.DataFrame({"shop": shop, "amount": rng.normal(size=1500)}), y


@pytest.mark.parametrize("kind", ["text", "number"])
def test_continuing_on_other_categories(kind: str, tmp_path) -> None:
    """Old trees must see the codes they were grown on, and new trees tell the new categories apart."""
    old, y_old = shops("bdeghk", seed=0)
    new, y_new = shops("abcdefghijkl", seed=1)
    if kind == "number":
        old["shop"], new["shop"] = (
            table["shop"].map(ord).astype("category") for table in (old, new)
        )
    first = quick(n_estimators=30).fit(old, y_old)
    more = quick(n_estimators=30).fit(new, y_new, init_model=first)
    fresh = quick(n_estimators=30).fit(new, y_new)
    assert more.score(new, y_new) > fresh.score(new, y_new) - 0.01
    assert more.score(old, y_old) > first.score(old, y_old) - 0.02
    start = first.boosters_[0].num_boosted_rounds()
    staged = list(more.staged_decision_function(old))[start - 1] + more.offset_
    np.testing.assert_allclose(staged, first.decision_function(old) + first.offset_, atol=1e-5)
    save(more, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.decision_function(new), more.decision_function(new))


def test_continuing_on_a_column_of_another_type() -> None:
    table, y = shops("abcd", seed=0)
    first = quick().fit(table, y)
    with pytest.raises(ValueError, match="shop"):
        quick().fit(table.assign(shop=1.5), y, init_model=first)
    with pytest.raises(ValueError, match="amount"):
        quick().fit(table.assign(amount="much"), y, init_model=first)


@pytest.mark.parametrize("n_jobs", [None, -1, 1, 2])
def test_threads_are_counted_as_everywhere(n_jobs: int | None) -> None:
    X, y = draw(n=200)
    models = [
        quick(n_estimators=2, n_jobs=n_jobs),
        TunedLogisticBooster(n_candidates=1, n_estimators=2, n_jobs=n_jobs),
    ]
    for model in models:
        config = json.loads(model.fit(X, y).boosters_[0].save_config())
        assert int(config["learner"]["generic_param"]["nthread"]) == thread_count(n_jobs)


def test_seeds_average() -> None:
    X, y = draw()
    model = quick(n_seeds=3, subsample=0.5).fit(X, y)
    assert len(model.boosters_) == 3
    one = [b.inplace_predict(X, predict_type="margin") for b in model.boosters_]
    assert not np.array_equal(one[0], one[1])
    np.testing.assert_allclose(
        model.decision_function(X), np.mean(one, axis=0) - model.offset_, atol=1e-5
    )


def test_monotone_constraints_by_name_and_by_position() -> None:
    X, y = draw()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for signs in ({"a": -1}, (-1, 0, 0, 0, 0, 0)):
        model = quick(monotone_constraints=signs).fit(frame, y)
        grid = frame.iloc[[0] * 50].assign(a=np.linspace(-3, 3, 50))
        assert np.all(np.diff(model.decision_function(grid)) <= 1e-6)
    with pytest.raises(ValueError, match="nothing_here"):
        quick(monotone_constraints={"nothing_here": 1}).fit(frame, y)
    with pytest.raises(ValueError, match="each of the 6 columns"):
        quick(monotone_constraints=(1, 0)).fit(frame, y)


def test_interaction_constraints_keep_groups_apart() -> None:
    X, y = draw()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = quick(interaction_constraints=[["a"], ["b", "c"], ["d", "e", "f"]], max_depth=3)
    for tree in model.fit(frame, y).boosters_[0].trees_to_dataframe().groupby("Tree"):
        used = set(tree[1]["Feature"]) - {"Leaf"}
        groups = [{"f0"}, {"f1", "f2"}, {"f3", "f4", "f5"}]
        assert any(used <= group for group in groups)


def test_callbacks_see_rounds_and_can_end_the_fit() -> None:
    X, y = draw()
    seen = []

    def watch(done) -> bool:
        seen.append(done.number)
        return done.number == 5

    assert quick().fit(X, y, callbacks=[watch]).n_estimators_ == 5
    assert seen == [1, 2, 3, 4, 5]


def test_an_interrupted_fit_keeps_its_rounds() -> None:
    X, y = draw()

    def interrupt(done) -> None:
        if done.number == 7:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="keeping the 7 of 20 rounds"):
        model = quick().fit(X, y, callbacks=[interrupt])
    assert model.n_estimators_ == 7
    assert model.score(X, y) > y.mean()


def test_an_interrupted_fit_keeps_the_rounds_of_boosters_that_grow_side_by_side(
    monkeypatch,
) -> None:
    X, y = draw()
    started = threading.Barrier(3, timeout=60)  # both boosters and the main thread
    engine_round = engine._Run._round

    def first_round(run) -> None:
        if not run.factors:
            started.wait()
        engine_round(run)

    def interrupt(futures) -> None:
        started.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(engine._Run, "_round", first_round)
    monkeypatch.setattr(training, "wait", interrupt)
    monkeypatch.setattr(training, "thread_count", lambda n_jobs: 2)
    with pytest.warns(UserWarning, match="keeping the rounds done so far"):
        model = quick(n_seeds=2, n_estimators=10**6).fit(X, y)
    assert [b.num_boosted_rounds() < 10**6 for b in model.boosters_] == [True, True]
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("few_cells", [0, 10**6], ids=["one by one", "side by side"])
def test_boosters_are_the_same_side_by_side(monkeypatch, few_cells: int) -> None:
    monkeypatch.setattr(training, "FEW_CELLS", few_cells)
    X, y = draw(900, rate=0.2)  # positives enough for the rounds to be chosen
    settings = {"n_seeds": 3, "n_estimators": None, "learning_rate": None}
    alone, several = (quick(n_jobs=n, **settings).fit(X, y) for n in (1, 2))
    assert alone.chosen_ == several.chosen_
    np.testing.assert_array_equal(alone.decision_function(X), several.decision_function(X))
    for booster in several.boosters_:
        config = json.loads(booster.save_config())
        assert config["learner"]["generic_param"]["nthread"] == "2"


def test_sparse_rows_and_their_dense_form_score_alike() -> None:
    X, y = draw()
    X[np.abs(X) < 0.7] = 0
    model = quick().fit(sparse.csr_matrix(X), y)
    stored_zero = sparse.csr_matrix(X)
    stored_zero.data[:3] = 0
    same = stored_zero.toarray()
    np.testing.assert_array_equal(
        model.decision_function(stored_zero), model.decision_function(same)
    )


def test_the_draw_is_stratified_and_leaves_out_absent_rows() -> None:
    from toprank.boosting.engine import StratifiedDraw

    positive = np.arange(100) < 4
    draw_rows = StratifiedDraw(positive, np.arange(100) % 10 != 9, 0.25, random_state=0)
    for _ in range(20):
        rows = draw_rows()
        assert positive[rows].sum() == 1
        assert len(rows) == 1 + round(0.25 * 86)
        assert np.all(rows % 10 != 9)


def test_the_draw_keeps_both_classes_of_every_query() -> None:
    from toprank.boosting.engine import StratifiedDraw

    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat(np.arange(50), 12))
    positive = rng.random(600) < 0.15
    present = rng.random(600) < 0.9
    draw_rows = StratifiedDraw(positive, present, 0.5, random_state=0, qid=qid)
    stratum = 2 * qid + positive
    sizes = np.bincount(stratum[present], minlength=100)
    wanted = np.where(sizes > 0, np.maximum(1, np.round(0.5 * sizes)), 0)
    seen = np.zeros(600, dtype=int)
    for _ in range(40):
        rows = draw_rows()
        np.testing.assert_array_equal(np.bincount(stratum[rows], minlength=100), wanted)
        assert (np.diff(rows) > 0).all()
        seen[rows] += 1
    assert (seen[present] > 0).all()
    assert (seen[~present] == 0).all()


def test_constant_scores_are_warned_about() -> None:
    X, y = draw()
    with pytest.warns(UserWarning, match="min_child_weight"):
        quick(min_child_weight=1e6).fit(X, y)


def test_more_rounds_from_a_pickled_model_score_the_same() -> None:
    X, y = draw()
    model = quick(step="line_search").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_allclose(again.explain(X), model.explain(X))


def test_presets_are_the_published_methods() -> None:
    assert SGBAP().objective == "ap_exp"
    ranker = SGBAP()
    ranker.n_features_in_ = 5
    # the usual penalty would hold back what is not high yet
    assert Settings.of(ranker, 1_000, 100).reg_lambda < 0.01
    assert SGBAP().subsample < 1
    assert SGBAPsig().objective.self_term == 0.5
    assert LambdaMART("ndcg", n_estimators=7).n_estimators == 7
    with pytest.raises(ValueError, match="unknown metric"):
        LambdaMART("nothing")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"step": "leap"}, "step"),
        ({"growth": "sideways"}, "growth"),
        ({"objective": "nothing"}, "nothing"),
        ({"n_estimators": 0}, "n_estimators"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"subsample": 0}, "subsample"),
        ({"early_stopping_rounds": 3, "validation_fraction": 1.5}, "validation_fraction"),
        ({"early_stopping_rounds": 3, "eval_metric": "nothing"}, "Unknown metric 'nothing'"),
    ],
)
def test_bad_parameters_get_a_clear_error(parameters: dict, message: str) -> None:
    X, y = draw()
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(X, y)


def test_bad_eval_sets_get_a_clear_error() -> None:
    X, y = draw()
    with pytest.raises(ValueError, match="eval_set"):
        quick().fit(X, y, eval_set=(X,))
    with pytest.raises(ValueError, match="not there in training"):
        quick().fit(X, y, eval_set=(X, y + 5))


def test_weights_without_a_draw_are_copies() -> None:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(300, 3)), 1)
    y = (X[:, 0] + rng.normal(size=300) > 1).astype(int)
    weight = rng.integers(0, 4, size=300)
    copies = np.repeat(np.arange(300), weight)
    # few rounds and usual penalties: a rounding error may tip a split of equal gain
    usual = {"n_estimators": 5, "min_child_weight": 1.0, "reg_lambda": 1.0}
    for name in sorted(OBJECTIVES):
        weighted = quick(name, **usual).fit(X, y, sample_weight=weight)
        repeated = quick(name, **usual).fit(X[copies], y[copies])
        np.testing.assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), atol=2e-3, err_msg=name
        )


def test_no_warning_on_ordinary_data() -> None:
    X, y = draw()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(X, y).predict(X)


@pytest.mark.parametrize("objective", ["logistic", "ap_sigmoid"])
def test_scores_kept_by_xgboost_are_those_kept_here(monkeypatch, objective):
    from toprank.boosting import engine

    X, y = make_classification(800, weights=[0.8], random_state=5)
    found = []
    for many in (10**9, 1):
        monkeypatch.setattr(engine, "_MANY_CELLS", many)
        model = GradientBoostingRanker(objective, n_estimators=15, subsample=0.7, random_state=0)
        first = model.fit(X, y, sample_weight=1.0 + (np.arange(800) % 2))
        more = GradientBoostingRanker(objective, n_estimators=5, subsample=0.7, random_state=1)
        found.append(more.fit(X, y, init_model=first).decision_function(X))
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if not OBJECTIVES[name].smooth])
@pytest.mark.parametrize("spread", [0.0, 0.5, 5.0])
def test_the_step_of_a_lambda_objective_lowers_its_loss_at_fixed_deltas(name, spread):
    """Even unshrunk, along a tree of any size, with every pair written out."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), (rng.random(150) < 0.2).astype(float)
    scores = spread * rng.normal(size=150)
    objective = OBJECTIVES[name]()
    rows = ScoredList.of(y, scores, graded=objective.graded)
    gradient, hessian = objective.scaled_gradient_hessian(rows)
    deltas = np.where(y[:, None] > y, objective.deltas(y, scores), 0.0)

    def frozen_loss(f):
        return float((deltas * np.logaddexp(0.0, f - f[:, None])).sum())

    for leaves in (2, 16, 100):
        tree = DecisionTreeRegressor(max_leaf_nodes=leaves, random_state=0).fit(X, -gradient)
        direction = tree.predict(X)
        step = quadratic_step(gradient, hessian, direction, largest_move=0.5)
        assert 0 < step <= 0.5 / np.abs(direction).max() * (1 + 1e-12)
        assert frozen_loss(scores + step * direction) < frozen_loss(scores)


def test_dates_are_days_also_where_they_are_text(tmp_path) -> None:
    rng = np.random.default_rng(0)
    days = rng.integers(0, 400, 600)
    moments = pd.Timestamp("2023-01-01") + pd.to_timedelta(days, "D")
    y = (days > 300) ^ (rng.random(600) < 0.05)
    settings = {"n_estimators": 10, "random_state": 0}
    forms = {
        "days": (moments - pd.Timestamp(0)) / pd.Timedelta("1D"),
        "dates": moments,
        "text": moments.strftime("%d.%m.%Y"),
    }
    noise = rng.normal(size=600)
    tables = {f: pd.DataFrame({"opened": cells, "noise": noise}) for f, cells in forms.items()}
    models = {f: GradientBoostingRanker(**settings).fit(t, y) for f, t in tables.items()}
    scores = {form: model.decision_function(tables[form]) for form, model in models.items()}
    np.testing.assert_array_equal(scores["dates"], scores["days"])
    np.testing.assert_array_equal(scores["text"], scores["days"])
    np.testing.assert_array_equal(models["text"].decision_function(tables["dates"]), scores["days"])
    late = pd.DataFrame({"opened": ["01.03.2030", None], "noise": 0.0})  # no category of training
    assert np.isfinite(models["text"].decision_function(late)).all()
    toprank.save(models["text"], tmp_path / "m.toprank", tables["text"], y)
    again = toprank.load(tmp_path / "m.toprank")
    np.testing.assert_array_equal(again.decision_function(tables["text"]), scores["days"])
    assert again.columns_.dates == ("%d.%m.%Y", None)
    reason = toprank.shortlist(again, tables["text"], budget=1)["reasons"].iloc[0]
    assert "opened = " in reason
    assert "rare" not in reason  # as every single day is
