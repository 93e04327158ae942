"""Comparisons: paired splits, honest figures, whatever happens on the way."""

from __future__ import annotations

import inspect
import json
import signal
from dataclasses import replace

import naive_selection as naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.preprocessing import StandardScaler
from stand_ins import HANDS, SEEN, ByColumn, Failing, Recorder, Slow

from toprank import TunedLogisticBooster, metrics, objectives
from toprank.metrics.intervals import holm_levels
from toprank.selection import Candidate, compare_models, make_splits
from toprank.selection import models as selection_models
from toprank.selection.compare import ComparisonData, Evaluator, Runs
from toprank.selection.comparison import METRIC_NAMES


def draw(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    y = (generator.random(n) < 0.2).astype(int)
    X = generator.normal(size=(n, 3)) + np.outer(y, [1.5, 0.3, 0.0])
    return X, y


def stand_ins(**others) -> dict:
    return {"yardstick": ByColumn(1), "good": ByColumn(0), **others}


def test_figures_are_those_of_the_metrics_on_each_test_part():
    X, y = draw()
    found = compare_models(
        X, y, models=stand_ins(), n_splits=4, n_repeats=2, k=10, fpr=(0, 0.2), random_state=3
    )
    splits = make_splits(y, n_splits=4, n_repeats=2, random_state=3)
    assert found.values.shape == (8, 2, 5)
    for number, split in enumerate(splits):
        for model, column in (("yardstick", 1), ("good", 0)):
            labels, scores = y[split.test], X[split.test, column]
            expected = [
                metrics.average_precision(labels, scores),
                metrics.precision_at_k(labels, scores, k=10),
                metrics.pos_at_top(labels, scores),
                metrics.partial_auc(labels, scores, fpr=(0, 0.2)),
                metrics.roc_auc(labels, scores),
            ]
            got = found.values[number, found.models.index(model)]
            np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_the_leaderboard_and_the_differences_are_the_corrected_ones():
    X, y = draw()
    found = compare_models(
        X, y, models=stand_ins(noisy=ByColumn(0, 0.5)), n_splits=5, n_repeats=2, level=0.9
    )
    assert found.method == "corrected_t"
    board = found.leaderboard()
    assert board["average_precision"].is_monotonic_decreasing
    assert board["n_splits"].tolist() == [10, 10, 10]
    for j, metric in enumerate(METRIC_NAMES):
        for row in board.itertuples():
            values = found.values[:, found.models.index(row.model), j]
            mean, low, high, _ = naive.corrected_interval(values.tolist(), 240, 60, 0.9)
            assert getattr(row, metric) == pytest.approx(mean)
            assert getattr(row, f"{metric}_low") == pytest.approx(max(low, 0))
            assert getattr(row, f"{metric}_high") == pytest.approx(min(high, 1))
        table = found.differences(metric)
        for _, part in table.groupby("reference"):
            rejected = naive.holm_rejects(part["p_value"].tolist(), 0.1)
            assert [v != "cannot tell" for v in part["verdict"]] == rejected
        levels = pd.concat(
            pd.Series(holm_levels(part["p_value"], 0.9), index=part.index)
            for _, part in table.groupby("reference")
        )
        for row in table.itertuples():
            a, b = (found.values[:, found.models.index(m), j] for m in (row.model, row.other))
            expected = naive.corrected_interval((a - b).tolist(), 240, 60, levels[row.Index])
            assert (row.verdict == "cannot tell") == (row.low <= 0 <= row.high)
            got = (row.difference, row.low, row.high, row.p_value)
            np.testing.assert_allclose(got, expected, atol=1e-9)


def test_the_sentence_says_what_the_verdict_says():
    X, y = draw(1500)
    clear = compare_models(X, y, models=stand_ins(), n_repeats=2)
    assert clear.best == clear.recommended.model == "good"
    assert "better than the tuned logistic booster by more than chance" in str(clear.recommended)
    table = clear.differences()
    assert table[table["reference"] == "yardstick"]["verdict"].tolist() == ["better"]
    assert table[table["reference"] == "best"]["verdict"].tolist() == ["worse"]
    twins = compare_models(X, y, models={"yardstick": ByColumn(0), "twin": ByColumn(0)})
    assert set(twins.differences()["verdict"]) == {"cannot tell"}
    assert (twins.differences()["p_value"] == 1).all()
    close = compare_models(X, y, models={"yardstick": ByColumn(0, 0.3), "other": ByColumn(0, 0.29)})
    assert "cannot be told from" in str(close.recommended) or close.best == "yardstick"
    ahead = compare_models(X, y, models={"yardstick": ByColumn(0), "poor": ByColumn(2)})
    assert "no other model does better" in str(ahead.recommended)


def test_a_model_of_another_library_is_named_but_not_recommended():
    X, y = draw(1500)
    models = {"yardstick": ByColumn(2), "catboost": ByColumn(0), "fair": ByColumn(1)}
    found = compare_models(X, y, models=models)
    assert found.best == "catboost"
    assert found.recommended.model == "fair"
    assert str(found.recommended).startswith(
        "catboost, a model of another library, has the highest"
    )
    assert "of those that can be saved here, fair" in str(found.recommended)


def test_results_as_json():
    X, y = draw()
    found = compare_models(X, y, models=stand_ins(bad=Failing("plain")), n_splits=3, n_repeats=1)
    data = found.as_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["recommended"]["sentence"] == str(found.recommended)
    assert [row["model"] for row in data["leaderboard"]] == found.leaderboard()["model"].tolist()


def test_scores_are_those_of_the_first_repeat():
    X, y = draw()
    found = compare_models(X, y, models=stand_ins(), n_splits=3, n_repeats=2)
    table = found.scores
    assert table.columns.tolist() == ["row", "fold", "label", "yardstick", "good"]
    assert table["row"].tolist() == list(range(300))
    np.testing.assert_array_equal(table["label"], y)
    np.testing.assert_array_equal(table["good"], X[:, 0])
    for split in make_splits(y, n_splits=3):
        assert set(table["fold"][split.test]) == {split.fold}


def test_pooled_scores_take_an_equal_share_of_each_fold():
    X, y = draw()
    found = compare_models(X, y, models=stand_ins(), n_splits=3, n_repeats=1)
    pooled = found.pooled_scores()["good"]
    for _, fold in found.scores.groupby("fold"):
        order = np.argsort(fold["good"].to_numpy())
        expected = (np.arange(len(fold)) + 0.5) / len(fold)
        np.testing.assert_allclose(pooled[fold.index][order], expected)


def test_a_model_that_fails_is_reported_and_the_others_go_on():
    X, y = draw()
    models = stand_ins(at_once=Failing("a"), later=Failing("b", 3), nan=Failing("c", how="nan"))
    found = compare_models(X, y, models=models, n_splits=4, n_repeats=1)
    assert found.models == ("yardstick", "good")
    assert found.n_splits == 4
    assert found.failures["at_once"] == found.failures["later"] == "RuntimeError: no such luck"
    assert "finite" in found.failures["nan"]
    assert Failing.COUNTS["a"] == 1  # not tried again
    assert Failing.COUNTS["b"] == 3
    assert "later" not in found.scores.columns


def test_a_yardstick_that_fails_leaves_no_differences_to_it():
    X, y = draw()
    models = {"yardstick": Failing("y"), "good": ByColumn(0), "poor": ByColumn(2)}
    found = compare_models(X, y, models=models)
    assert found.yardstick is None
    assert set(found.differences()["reference"]) == {"best"}
    assert "no yardstick" in str(found.recommended)
    json.dumps(found.as_dict(), allow_nan=False)


def test_when_every_model_fails_the_reasons_are_given():
    X, y = draw()
    with pytest.raises(ValueError, match="every model failed.*no such luck"):
        compare_models(X, y, models={"yardstick": Failing("e")})


def run_with_budget(budget: float, durations: dict[str, list[float]]):
    """Run models whose fits take so many seconds of a clock of our own."""
    X, y = draw()
    HANDS.update(now=0.0, durations={name: list(d) for name, d in durations.items()})
    models = {name: Slow(name) for name in durations}
    splits = make_splits(y, n_splits=5)
    runs = Runs(models, ComparisonData(X, y == 1), clock=lambda: HANDS["now"])
    return runs.run(splits, budget)


@pytest.mark.parametrize("budget", [0.5, 1, 2.5, 5, 9.9, 10, 14, 15, 20, 24.9, 25, 100])
def test_a_time_budget_leaves_complete_splits(budget):
    durations = {"yardstick": [1.0] * 5, "slow": [3.0] * 5, "last": [1.0] * 5}
    runs = run_with_budget(budget, durations)
    assert len(runs.splits) == min(5, max(1, int(budget // 5)))
    # in the first split, models for which nothing was left are left out altogether
    expected = {"yardstick"} if budget < 1 else {"yardstick", "slow"}
    expected = expected if budget < 4 else {*durations}
    assert {*durations} - {*runs.left_out} == expected
    assert all(set(scores) == expected for scores in runs.scores)
    assert all("time budget" in why for why in runs.left_out.values())
    noted = [note for note in runs.notes if f"{len(runs.splits)} of 5 splits" in note]
    assert len(noted) == (len(runs.splits) < 5)


def test_a_split_that_takes_too_long_is_dropped_whole():
    durations = {"yardstick": [1.0] * 5, "slow": [1.0, 1.0, 50.0, 1.0, 1.0], "last": [1.0] * 5}
    runs = run_with_budget(20, durations)
    assert len(runs.splits) == 2
    assert not runs.left_out
    assert all(set(scores) == {*durations} for scores in runs.scores)


def test_a_budget_ends_a_real_comparison_with_intervals():
    X, y = draw()
    found = compare_models(X, y, models=stand_ins(), time_budget=1e-6)
    assert found.n_splits == 1
    assert found.models == ("yardstick",)
    assert "good" in found.left_out
    assert found.method == "bootstrap"
    row = found.leaderboard().iloc[0]
    assert row["average_precision_low"] < row["average_precision"] < row["average_precision_high"]
    json.dumps(found.as_dict(), allow_nan=False)


def test_one_split_gives_no_verdict():
    X, y = draw(2000)
    found = compare_models(X, y, models=stand_ins(), n_splits=5, n_repeats=1)
    one = replace(found, splits=found.splits[:1], values=found.values[:1], method="bootstrap",
                  resampled=np.repeat(found.values[:1].transpose(1, 2, 0), 50, axis=2))  # fmt: skip
    assert "better" in set(found.differences()["verdict"])
    assert set(one.differences()["verdict"]) == {"cannot tell"}
    assert one.differences()["low"].isna().all()
    assert "on one split, which decides nothing" in str(one.recommended)
    assert "nan" not in f"{one.recommended} {one._repr_html_()}"
    shown = found._repr_html_()  # in a notebook
    assert shown.startswith("<p>good has the highest average precision, ")
    low, high = found.leaderboard()[["roc_auc_low", "roc_auc_high"]].iloc[0]
    assert f"({low:.3f} to {high:.3f})</td>" in shown


def test_a_small_budget_runs_cheap_models_first():
    X, y = draw()
    models = ["boosting", "ranking_forest", "linear"]
    found = compare_models(X, y, models=models, time_budget=1e-6)
    assert found.models == ("linear",)
    assert {"boosting", "ranking_forest", "yardstick"} == set(found.left_out)


def test_classifiers_with_probabilities_alone_are_compared():
    X, y = draw()
    yardstick = ByColumn(0)
    found = compare_models(
        X, y, models={"yardstick": yardstick, "forest": ExtraTreesClassifier(10)}
    )
    assert set(found.models) == {"yardstick", "forest"}
    with pytest.raises(TypeError, match="neither decision_function nor predict_proba"):
        compare_models(X, y, models={"scaler": StandardScaler()})


def test_one_range_of_the_partial_auc_everywhere():
    from toprank.report.details import PARAMETERS

    defaults = inspect.signature(compare_models).parameters["fpr"].default
    assert defaults == Evaluator().fpr == objectives_range() == (0.0, 0.1)
    assert inspect.signature(metrics.partial_auc).parameters["fpr"].default == defaults
    assert PARAMETERS.get("partial_auc", {"fpr": defaults})["fpr"] == defaults


def objectives_range():
    pauc = objectives.get("pauc")
    return (pauc.a, pauc.b)


@pytest.mark.parametrize("how", ["interrupt", "signal"])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_ctrl_c_leaves_complete_splits(how, at):
    X, y = draw()
    before = signal.getsignal(signal.SIGINT)
    models = stand_ins(stops=Failing(f"{how}{at}", at, how), last=ByColumn(0, 0.5))
    if at == 1:
        with pytest.raises(KeyboardInterrupt):
            compare_models(X, y, models=models)
    else:
        found = compare_models(X, y, models=models)
        assert found.n_splits == at - 1
        assert found.models == ("yardstick", "good", "stops", "last")
        assert not found.failures
        assert found.notes[-1] == f"interrupted: {at - 1} of 10 splits are complete"
    assert signal.getsignal(signal.SIGINT) is before


def test_groups_and_queries_are_kept_whole_and_handed_on():
    X, y = draw(400)
    qid = np.random.default_rng(1).integers(40, size=400)
    names = np.array([f"query {q}" for q in qid])
    SEEN.clear()
    models = {"yardstick": Recorder("first"), "other": ByColumn(1)}
    found = compare_models(X, y, models=models, qid=names, n_splits=4, n_repeats=1, k=3)
    assert found.kind == "grouped"
    tested = found.scores.groupby("fold")["row"]
    for (_, rows), seen in zip(tested, SEEN, strict=True):
        assert len(seen["y"]) + len(rows) == 400
        assert len(set(seen["qid"])) + len(set(qid[rows])) == len(set(qid))
        assert np.array_equal(seen["groups"], seen["qid"])
    for number, (_, rows) in enumerate(tested):
        expected = naive.query_mean(
            metrics.average_precision, y[rows], X[rows, 0], qid[rows.to_numpy()]
        )
        assert found.values[number, 0, 0] == pytest.approx(expected)
    with pytest.raises(ValueError, match="several groups"):
        compare_models(X, y, models=models, qid=qid, groups=np.arange(400) % 7)


def test_time_goes_forward_and_is_handed_on():
    X, y = draw(400)
    days = pd.date_range("2024-03-01", periods=100).repeat(4)
    SEEN.clear()
    models = {"yardstick": Recorder("first"), "other": ByColumn(1)}
    found = compare_models(X, y, models=models, time=days, gap=7, n_splits=4, n_repeats=3)
    assert (found.kind, found.method, found.n_splits) == ("time", "bootstrap", 4)
    assert [s["fold"] for s in found.splits] == [3, 2, 1, 0]  # the latest block first
    for seen, split in zip(SEEN, found.splits, strict=True):
        rows = found.scores[found.scores["fold"] == split["fold"]]["row"]
        first = days[rows.min()].to_datetime64()
        assert first - seen["time"].max() >= seen["gap"] == np.timedelta64(7, "D")
        assert seen["groups"] is None
    assert found.scores["row"].tolist() == list(range(found.scores["row"].min(), 400))


def test_weights_are_used_and_rows_without_weight_are_absent():
    X, y = draw()
    weight = np.random.default_rng(0).integers(0, 3, size=300).astype(float)
    SEEN.clear()
    models = {"yardstick": Recorder("first"), "other": ByColumn(1)}
    found = compare_models(X, y, models=models, sample_weight=weight, n_splits=3, n_repeats=1)
    assert found.scores["row"].tolist() == np.flatnonzero(weight).tolist()
    assert all((seen["sample_weight"] > 0).all() for seen in SEEN)
    assert found.notes == ("other takes no sample weights: it was trained without them",)
    rows = found.scores[found.scores["fold"] == 0]["row"].to_numpy()
    expected = metrics.average_precision(y[rows], X[rows, 1], sample_weight=weight[rows])
    assert found.values[0, 1, 0] == pytest.approx(expected)
    fewer = weight > 0
    again = compare_models(
        X[fewer], y[fewer], models=models, sample_weight=weight[fewer], n_splits=3, n_repeats=1
    )
    np.testing.assert_array_equal(again.values, found.values)


def test_tables_of_all_makes():
    X, y = draw()
    expected = compare_models(X, y, models=stand_ins(), n_splits=3).values
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(300)[::-1])
    arrow = pl.from_pandas(frame).to_arrow()
    for table in (frame, pl.from_pandas(frame), arrow, X.tolist()):
        found = compare_models(table, y, models=stand_ins(), n_splits=3)
        np.testing.assert_array_equal(found.values, expected)
    real = compare_models(
        sparse.csr_matrix(X), y, models={"yardstick": Recorder(), "linear": None}, n_splits=3
    )
    assert real.models == ("linear",)  # the stand-in does not know sparse rows
    text = np.where(y == 1, "bad", "good")
    named = compare_models(X, text, models=stand_ins(), n_splits=3, pos_label="bad")
    np.testing.assert_array_equal(named.values, expected)


def test_a_model_that_does_not_scale_learns_from_a_sample(monkeypatch):
    X, y = draw(600)
    small = Candidate("RankLS", "for the test", {}, 50)
    monkeypatch.setitem(selection_models.MODELS, "rankls", small)
    found = compare_models(X, y, models={"yardstick": ByColumn(1), "rankls": None}, n_splits=3)
    positives = np.mean([split["train_positives"] for split in found.splits])
    assert found.training_rows["rankls"] == round(positives + 50)
    assert found.training_rows["yardstick"] == 400
    assert any("rankls learns from all positives and a sample" in note for note in found.notes)


def test_real_models_with_the_yardstick_on_a_mixed_table():
    X, y = draw(300)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["shop"] = np.where(X[:, 0] > 1, "web", "street")
    frame.loc[::5, "b"] = np.nan
    quick = TunedLogisticBooster(n_candidates=1, n_estimators=20, n_jobs=1, random_state=0)
    models = {"linear": None, "rankboost": None, "yardstick": quick}
    found = compare_models(frame, y, models=models, n_splits=2, n_repeats=1, n_resamples=50)
    assert found.models == ("yardstick", "linear", "rankboost")
    assert not found.failures
    assert (found.leaderboard()["average_precision"] > 0.4).all()


def test_the_bootstrap_agrees_with_that_of_the_metrics():
    X, y = draw(800)
    time = np.arange(800)
    found = compare_models(X, y, models=stand_ins(), time=time, n_splits=1, n_resamples=2000)
    test = found.scores["row"].to_numpy()
    expected = metrics.compare(
        "average_precision", y[test], X[test, 0], X[test, 1], n_resamples=2000
    )
    table = found.differences()
    row = table[table["reference"] == "yardstick"].iloc[0]
    assert row["difference"] == pytest.approx(expected.difference)
    width = expected.high - expected.low
    _, low, high, _ = found._estimate("average_precision", row["model"], row["other"])
    assert low == pytest.approx(expected.low, abs=0.1 * width)
    assert high == pytest.approx(expected.high, abs=0.1 * width)


def test_groups_are_drawn_whole():
    X, y = draw(120)
    codes = np.arange(120) // 6
    evaluator = Evaluator(fpr=(0, 0.5))
    drawn = evaluator.resample(ComparisonData(None, y == 1, groups=codes), X[:, 0], 200, 0)
    # the first draw of the same stream
    counts = [np.bincount(np.random.default_rng(0).integers(20, size=20), minlength=20)]
    rows = np.repeat(np.arange(120), counts[0][codes])
    repeated = evaluator.metrics(ComparisonData(None, y[rows] == 1), X[rows, 0])
    np.testing.assert_allclose(drawn[:, 0], repeated, rtol=1e-12)
    # copies of the same rows in one group tell nothing new: the spread stays as wide
    copies = np.tile(np.arange(120), 4)
    copied = ComparisonData(None, y[copies] == 1, groups=codes[copies])
    again = evaluator.resample(copied, X[copies, 0], 200, 0)
    np.testing.assert_allclose(again[[0, 3, 4]], drawn[[0, 3, 4]], rtol=0.2)


def test_queries_are_drawn_whole():
    X, y = draw(200)
    qid = np.arange(200) // 10
    evaluator, test = Evaluator(fpr=(0, 0.5)), ComparisonData(None, y == 1, qid=qid)
    drawn = evaluator.resample(test, X[:, 0], 400, 0)
    assert drawn.shape == (5, 400)
    assert drawn[0].mean() == pytest.approx(evaluator.metrics(test, X[:, 0])[0], abs=0.03)


X300, Y300 = draw()
BAD = {
    "unknown model": ({"models": ["ap_sigmod"]}, "did you mean 'ap_sigmoid'"),
    "a taken name": ({"models": {"row": ByColumn()}}, "cannot be called 'row'"),
    "lengths": ({"y": Y300[:-1]}, "300 rows but y has 299"),
    "one class": ({"y": np.ones(300)}, "two classes"),
    "budget": ({"time_budget": 0}, "time_budget"),
    "level": ({"level": 1.0}, "level"),
    "fpr": ({"fpr": (0.5, 0.1)}, "fpr"),
    "k": ({"k": 0}, "k"),
    "weights": ({"sample_weight": -np.ones(300)}, "negative values"),
    "weights' length": ({"sample_weight": np.ones(3)}, "sample_weight has 3"),
    "gap": ({"gap": 3}, "gap needs time"),
    "pos_label": ({"pos_label": 7}, "not among"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused(kind):
    arguments, message = BAD[kind]
    arguments = {"models": stand_ins(), "y": Y300, "n_splits": 3, **arguments}
    with pytest.raises(ValueError, match=message):
        compare_models(X300, **arguments)


def test_what_cannot_rank_is_refused():
    with pytest.raises(TypeError, match="decision_function"):
        compare_models(X300, Y300, models={"text": "no estimator"})
    found = compare_models(X300, Y300, models=stand_ins(), n_splits=3)
    with pytest.raises(ValueError, match="unknown metric 'luck'"):
        found.differences("luck")


def test_a_list_longer_than_a_test_part_is_noted():
    found = compare_models(X300, Y300, models=stand_ins(), n_splits=3, k=200)
    assert any("k = 200" in note for note in found.notes)
