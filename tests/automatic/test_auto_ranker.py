"""AutoRanker from end to end: tables of all kinds, time, interruptions, honesty, what follows a fit."""

from __future__ import annotations

import inspect
import signal
import threading
import time
from collections.abc import Callable
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

import toprank
from toprank import AutoRanker, CalibratedRanker, GradientBoostingRanker, metrics
from toprank.automatic import portfolio
from toprank.automatic import search as search_module
from toprank.automatic.portfolio import PORTFOLIO, Configuration
from toprank.automatic.search import Search

QUICK = {
    "time_limit": None,
    "portfolio": ("linear",),
    "n_folds": 2,
    "n_repeats": 1,
    "n_jobs": 1,
    "random_state": 0,
}


def quick(**parameters: Any) -> AutoRanker:
    return AutoRanker(**{**QUICK, **parameters})


def rows(n: int = 240, seed: int = 0, n_columns: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 1.2).astype(int)
    return X, y


@pytest.fixture(scope="module", autouse=True)
def _small_forests() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(portfolio._FOREST, "n_estimators", 20)
        yield


@pytest.fixture(scope="module")
def fitted() -> AutoRanker:
    return quick(portfolio=("linear", "rankboost", "extra trees"), n_folds=3).fit(*rows())


# -- what it says about itself ------------------------------------------------------------------------


def test_the_leaderboard_and_the_members(fitted: AutoRanker) -> None:
    table = fitted.leaderboard_
    assert set(table["member"]) == {"linear", "rankboost", "extra trees"}
    assert table["value"].is_monotonic_decreasing
    assert table["weight"].sum() == pytest.approx(1)
    assert (table["status"] == "done").all()
    assert {m.name for m in fitted.members_} == set(table.query("weight > 0")["member"])


def test_the_score_is_the_weighted_mean_of_the_members(fitted: AutoRanker) -> None:
    X, _ = rows(seed=1)
    by_hand = sum(
        m.weight
        * m.scale(np.mean([f.scores(X, fitted.features_.columns) for f in m.models], axis=0))
        for m in fitted.members_
    )
    np.testing.assert_allclose(fitted.decision_function(X), by_hand - fitted.offset_)


def test_what_it_expects_holds_on_new_rows(fitted: AutoRanker) -> None:
    X, y = rows(2_000, seed=5)
    scores = fitted.decision_function(X)
    for name in ("average_precision", "precision_at_k", "partial_auc", "roc_auc"):
        found = fitted.estimated_[name]
        value = metrics.METRICS[name].function(y, scores)
        assert found["low"] <= found["value"] <= found["high"]
        assert found["low"] <= value <= found["high"], name
    short = fitted.estimate(20)["average_precision"]
    assert short["low"] < fitted.estimated_["average_precision"]["low"]


def test_held_out_scores_are_no_better_than_new_rows(fitted: AutoRanker) -> None:
    noise, y = np.random.default_rng(0).normal(size=(300, 5)), np.arange(300) % 5 == 0
    model = quick(portfolio=("linear", "extra trees", "rankboost")).fit(noise, y)
    assert model.estimated_["roc_auc"]["value"] == pytest.approx(0.5, abs=0.12)
    assert (
        model.estimated_["average_precision"]["low"]
        < 0.2
        < model.estimated_["average_precision"]["high"]
    )


# -- what it is given ---------------------------------------------------------------------------------


def odd_table(n: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    """Dates, text, many categories, an empty and a constant column, a copy, missing cells."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.25).astype(int)
    opened = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 200, n), "D")
    wait = np.where(y == 1, 30, 2) + rng.integers(0, 5, n)
    words = np.where(y == 1, "parcel never arrived at all", "very happy with the fast delivery")
    table = pd.DataFrame({
        "opened": opened,
        "closed": (opened + pd.to_timedelta(wait, "D")).astype(str),
        "note": [f"{w} order {k}" for k, w in enumerate(words)],
        "shop": [f"shop {k}" for k in rng.integers(0, 90, n)],
        "kind": rng.choice(["a", "b", None], n),
        "amount": rng.normal(size=n),
        "empty": np.nan,
        "same": 7,
    })  # fmt: skip
    table["again"] = table["amount"]
    table.loc[::13, "opened"] = pd.NaT
    table.loc[::17, "note"] = None
    return table, y


def test_a_table_of_odd_columns(tmp_path) -> None:
    table, y = odd_table()
    model = quick(portfolio=("linear", "extra trees")).fit(table, y)
    assert model.estimated_["average_precision"]["value"] > 0.8
    assert {"days from opened to closed", "note: length", "opened: month"} <= set(
        model.features_.columns.names
    )
    assert any("same is the same" in note for note in model.notes_)
    assert not any("note is" in note for note in model.notes_)
    assert any("again is a copy of amount" in note for note in model.notes_)
    scores = model.decision_function(table)
    toprank.save(model, tmp_path / "m.toprank", table, y)
    again = toprank.load(tmp_path / "m.toprank")
    np.testing.assert_array_equal(again.decision_function(table), scores)
    toprank.save(model, tmp_path / "bare.toprank")
    with ZipFile(tmp_path / "bare.toprank") as archive:  # the model itself keeps no text
        assert not any(
            "parcel" in archive.read(name).decode("latin-1") for name in archive.namelist()
        )
    np.testing.assert_allclose(model.explain(table[:5]).sum(axis=1), scores[:5])
    unseen = table.assign(note="quite another matter", shop="nowhere", kind="z")
    assert np.isfinite(model.decision_function(unseen)).all()
    with pytest.raises(ValueError, match="closed"):
        model.decision_function(table.drop(columns="closed"))
    with pytest.raises(ValueError, match="takes no text, but that is what note held"):
        model.distill(table, y)
    table = table.drop(columns="note")
    model = quick().fit(table, y)
    with pytest.raises(ValueError, match="takes no dates, but that is what opened and closed held"):
        model.distill(table, y, kind="tree")
    small = model.distill(table, y, kind="booster")
    assert np.isfinite(small.model.decision_function(table)).all()


def test_groups_are_never_split(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    groups = np.arange(240) // 4
    seen: list[bool] = []
    original = Search._fit_folds

    def spy(self: Search, trial: Any, splits: Any, most_rows: Any) -> Any:
        seen.extend(bool(set(groups[s.train]) & set(groups[s.test])) for s in splits)
        return original(self, trial, splits, most_rows)

    monkeypatch.setattr(Search, "_fit_folds", spy)
    quick().fit(X, y, groups=groups)
    quick().fit(X, y, qid=groups)
    assert seen
    assert not any(seen)


def test_copies_of_rows_in_groups_do_not_make_it_surer() -> None:
    X, y = rows(90)
    copies = np.repeat(np.arange(90), 5)
    told = quick(portfolio=("linear",)).fit(X[copies], y[copies], groups=copies)
    untold = quick(portfolio=("linear",)).fit(X[copies], y[copies])

    def width(model: AutoRanker) -> float:
        found = model.estimated_["average_precision"]
        return found["high"] - found["low"]

    assert width(told) > 1.3 * width(untold)


def test_members_with_an_inner_validation_are_given_groups_and_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = rows()
    groups, seen = np.arange(240) // 4, []
    original = GradientBoostingRanker.fit

    def spy(self: Any, X: Any, y: Any, *args: Any, **known: Any) -> Any:
        seen.append(
            {name: known.get(name) for name in ("groups", "time", "gap")} | {"rows": len(y)}
        )
        return original(self, X, y, *args, **known)

    spy.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    monkeypatch.setattr(GradientBoostingRanker, "fit", spy)
    quick(portfolio=("boosted logistic",), n_folds=3).fit(X, y, groups=groups)
    assert len(seen) == 3
    assert all(len(known["groups"]) == known["rows"] < 240 for known in seen)
    seen.clear()
    quick(portfolio=("boosted logistic",), n_folds=3).fit(X, y, time=np.arange(240.0), gap=5)
    assert [known["rows"] for known in seen] == [56, 116, 176, 240]
    assert all(len(known["time"]) == known["rows"] and known["gap"] == 5 for known in seen)


def test_rows_in_the_order_of_time() -> None:
    X, y = rows()
    day = np.arange(240.0)
    model = quick(n_folds=3).fit(X, y, time=day, gap=5)
    (member,) = model.members_
    assert len(member.models) == 1  # fitted again on all rows
    assert np.isnan(model.out_of_fold_scores_[:60]).all()
    assert np.isfinite(model.out_of_fold_scores_[60:]).all()
    with pytest.raises(ValueError, match="gap needs time"):
        quick().fit(X, y, gap=5)


def test_weights_of_zero_have_no_part() -> None:
    X, y = rows()
    weight = np.where(np.arange(240) % 3 == 0, 0.0, 2.0)
    model = quick().fit(X, y, sample_weight=weight, groups=np.arange(240) // 2)
    np.testing.assert_array_equal(np.isnan(model.out_of_fold_scores_), weight == 0)


@pytest.mark.parametrize(
    "metric", ["precision_at_k", "partial_auc", "list_length_for_recall", metrics.roc_auc]
)
def test_any_metric(metric: Any) -> None:
    X, y = rows()
    model = quick(portfolio=("linear", "rankboost"), metric=metric).fit(X, y)
    values = model.leaderboard_["value"]
    best = values.min() if metric == "list_length_for_recall" else values.max()
    assert values.iloc[0] == best > 0
    assert model.score(X, y) > 0.5


def test_a_metric_of_queries() -> None:
    X, y = rows()
    model = quick(portfolio=("linear", "rankboost"), metric="mean_average_precision")
    model.fit(X, y, qid=np.arange(240) // 20)
    assert "mean_average_precision" in model.estimated_


# -- little, much, wrong ------------------------------------------------------------------------------


def test_three_positives() -> None:
    X, _ = rows(60)
    y = np.zeros(60, dtype=int)
    y[[5, 20, 40]] = 1
    X[y == 1, 0] += 5
    model = quick(n_folds=5, portfolio=("linear", "extra trees")).fit(X, y)
    assert model.score(X, y) > 0.5
    assert any("3 folds instead of 5" in note for note in model.notes_)
    with pytest.raises(ValueError, match="at least 2 rows of each class"):
        quick().fit(X, np.arange(60) == 5)


def test_one_column_and_duplicate_rows() -> None:
    X, y = rows(120)
    model = quick(portfolio=("linear", "extra trees", "boosted logistic")).fit(X[:, :1].round(1), y)
    assert model.score(X[:, :1], y) > 0.5
    twice = np.tile(X[:60], (2, 1))
    assert quick().fit(twice, np.tile(y[:60], 2)).score(twice, np.tile(y[:60], 2)) > 0.3


def test_more_columns_than_rows() -> None:
    X, y = rows(200, n_columns=5_000)
    X[:, 0] *= 10
    model = quick(portfolio=("linear", "extra trees")).fit(X, y)
    assert len(model.decision_function(X)) == 200


def test_a_leaking_number_of_the_row_is_warned_about() -> None:
    X, _ = rows(200)
    y = (np.arange(200) >= 170).astype(int)
    X[:, 2] = np.arange(5_000, 5_200)
    with pytest.warns(UserWarning, match="column 'x2' numbers the rows"):
        quick().fit(X, y)


def test_a_group_that_holds_all_positives() -> None:
    X, _ = rows(60)
    y = (np.arange(60) < 10).astype(int)
    with pytest.raises(ValueError, match="groups with rows"):
        quick().fit(X, y, groups=np.where(y == 1, 0, np.arange(60)))


def test_blocks_of_time_without_positives_are_left_out() -> None:
    X, y = rows(240)
    y[:] = 0
    y[:100:7] = 1
    model = quick(n_folds=4).fit(X, y, time=np.arange(240))
    assert any("left out" in note for note in model.notes_)


# -- time and interruptions ---------------------------------------------------------------------------


class Clock:
    """A clock that only fits move on, by a time that is known."""

    def __init__(self, seconds: Callable[[Configuration, int], float]) -> None:
        self.now, self.seconds, self.rows = 0.0, seconds, []
        self.original = search_module.fit_configuration

    def perf_counter(self) -> float:
        return self.now

    def fit(self, configuration: Configuration, X: Any, y: Any, *more: Any, **options: Any) -> Any:
        self.rows.append(len(y))
        self.now += self.seconds(configuration, len(y))
        return self.original(PORTFOLIO["linear"], X, y, *more, **{**options, "callbacks": ()})


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_clock(seconds: Callable[[Configuration, int], float]) -> Clock:
        clock = Clock(seconds)
        monkeypatch.setattr(search_module, "fit_configuration", clock.fit)
        monkeypatch.setattr(time, "perf_counter", clock.perf_counter)
        return clock

    return set_clock


def test_what_cannot_finish_is_not_begun(set_clock: Any) -> None:
    clock = set_clock(lambda configuration, n_rows: 2 * configuration.cost)
    names = ("linear", "boosted lambda_map", "kernel least squares")
    model = quick(portfolio=names, time_limit=2.5).fit(*rows(120))
    status = model.leaderboard_.set_index("member")["status"]
    assert status["linear"] == status["kernel least squares"] == "done"
    assert status["boosted lambda_map"] == "not begun: no time left"  # two folds of a second
    assert clock.now < 2.5


def test_a_slow_start_does_not_make_the_others_look_slow(set_clock: Any) -> None:
    clock = set_clock(lambda configuration, n_rows: 0.02 if len(clock.rows) > 1 else 3.0)
    model = quick(portfolio=("linear", "rankboost", "extra trees"), time_limit=8).fit(*rows(120))
    # the first fit may load or compile something
    assert model.leaderboard_["status"].eq("done").all()


def test_a_configuration_slower_than_foreseen_is_given_up(set_clock: Any) -> None:
    slow = PORTFOLIO["rankboost"]
    clock = set_clock(lambda configuration, n_rows: 1.5 if configuration is slow else 0.01)
    model = quick(portfolio=("linear", "rankboost"), n_folds=5, time_limit=4).fit(*rows(120))
    status = model.leaderboard_.set_index("member")["status"]
    assert status["rankboost"] == "stopped: no time left"
    assert clock.now < 4


def test_a_long_table_is_sampled_when_time_is_short(set_clock: Any) -> None:
    clock = set_clock(lambda configuration, n_rows: 1e-4 * n_rows)
    X, y = rows(30_000)
    y[np.flatnonzero(y)[100:]] = 0
    model = quick(portfolio=("linear", "boosted logistic"), time_limit=3).fit(X, y)
    assert model.leaderboard_["status"].eq("done").any()
    assert 2_000 < max(clock.rows) < 15_000
    assert clock.now < 3.3  # the limit is held within a tenth


def test_nothing_is_begun_once_the_time_is_over(set_clock: Any) -> None:
    clock = set_clock(lambda configuration, n_rows: 1.0)  # also the short fits that tell the speed
    model = quick(portfolio=list(PORTFOLIO)[:4] + list(PORTFOLIO)[6:9], time_limit=10)
    model.fit(*rows(5_000))
    assert clock.now < 10


def test_what_tunes_itself_is_timed_by_what_the_others_took(set_clock: Any) -> None:
    begun: list[int] = []

    def seconds(configuration: Configuration, n_rows: int) -> float:
        if configuration.tunes_itself:
            begun.append(n_rows)
        return configuration.cost

    names = ("linear", "kernel least squares", "extra trees", "default booster")
    clock = set_clock(seconds)
    model = quick(portfolio=names, time_limit=100).fit(*rows(6_000))
    assert begun[0] == 3_000  # no short fits, whose tuning takes as long
    assert clock.rows[:2] == [500, 2_000]  # as the others have

    begun.clear()
    model = quick(portfolio=names, time_limit=4).fit(*rows(6_000))
    status = model.leaderboard_.set_index("member")["status"]
    assert status["extra trees"] == "done"
    assert status["default booster"] == "not begun: no time left"
    assert not begun


def test_with_time_the_model_of_all_rows_has_its_share_of_the_limit(set_clock: Any) -> None:
    clock = set_clock(lambda configuration, n_rows: 0.7)
    X, y = rows(2_500)
    model = quick(n_folds=3, time_limit=4).fit(X, y, time=np.arange(2_500))
    assert clock.rows == [625, 1_250, 1_875, 2_500]  # not a sample for lack of time
    assert [len(member.models) for member in model.members_] == [1]
    assert clock.now < 4


def test_ctrl_c_leaves_the_best_model_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(120)
    original = search_module.fit_configuration

    def interrupt(configuration: Configuration, *arguments: Any, **more: Any) -> Any:
        if configuration is PORTFOLIO["rankboost"]:
            raise KeyboardInterrupt
        return original(configuration, *arguments, **more)

    monkeypatch.setattr(search_module, "fit_configuration", interrupt)
    with pytest.warns(UserWarning, match="interrupted: the model is made of the 1 configurations"):
        model = quick(portfolio=("linear", "rankboost")).fit(X, y)
    assert model.score(X, y) > 0.5
    with pytest.raises(KeyboardInterrupt):
        quick(portfolio=("rankboost", "linear")).fit(X, y)


@pytest.mark.parametrize("time_order", [False, True])
def test_folds_side_by_side_give_the_same_model(time_order: bool) -> None:
    X, y = rows(200)
    names = ("linear", "rankboost", "extra trees", "boosted logistic")
    keys = {"time": np.arange(200)} if time_order else {}
    models = [
        quick(portfolio=names, n_folds=3, n_repeats=2, n_jobs=n).fit(X, y, **keys) for n in (1, 3)
    ]
    alone, beside = models
    np.testing.assert_array_equal(alone.decision_function(X), beside.decision_function(X))
    np.testing.assert_array_equal(alone.out_of_fold_scores_, beside.out_of_fold_scores_)
    columns = ["member", "value", "weight", "models", "status"]
    pd.testing.assert_frame_equal(alone.leaderboard_[columns], beside.leaderboard_[columns])


@pytest.mark.parametrize("keys", [{}, {"time": np.arange(600.0)}], ids=["folds", "time"])
def test_what_the_first_fold_chooses_the_others_take_over(
    keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows(600, n_columns=2)
    y = (X[:, 0] > 0).astype(int)
    original, rounds, models = search_module.fit_configuration, [], []

    def spy(configuration: Configuration, *arguments: Any, **more: Any) -> Any:
        rounds.append(configuration.settings.get("n_estimators"))
        models.append(original(configuration, *arguments, **more))
        return models[-1]

    monkeypatch.setattr(search_module, "fit_configuration", spy)
    quick(portfolio=("boosted logistic",), n_folds=3, n_repeats=2).fit(X, y, **keys)
    chosen = models[0].model.chosen_["n_estimators"]
    if "time" in keys:  # the past of the first block is short
        assert rounds == [None] * 8
    else:
        assert rounds == [None, *[chosen] * 5]
        assert all(fitted.model.n_estimators_ == chosen for fitted in models)


def test_two_folds_run_at_once_with_a_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    original, meeting, threads = (
        search_module.fit_configuration,
        threading.Barrier(2, timeout=60),
        [],
    )

    def meet(*arguments: Any, **more: Any) -> Any:
        meeting.wait()  # until the other fold has begun too
        threads.append(more["n_jobs"])
        return original(*arguments, **more)

    monkeypatch.setattr(search_module, "fit_configuration", meet)
    quick(n_folds=2, n_jobs=3).fit(*rows(120))
    assert threads == [1, 1]


def test_ctrl_c_stops_the_folds_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    original, stopped = search_module.fit_configuration, []
    main = threading.main_thread().ident
    interrupt = threading.Timer(0.5, signal.pthread_kill, [main, signal.SIGINT])
    meeting = threading.Barrier(2, action=interrupt.start, timeout=60)

    def endless(configuration: Configuration, *arguments: Any, callbacks: Any, **more: Any) -> Any:
        if configuration is PORTFOLIO["linear"]:
            return original(configuration, *arguments, callbacks=callbacks, **more)
        meeting.wait()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(callback(None) for callback in callbacks):
            time.sleep(0.01)
        stopped.append(configuration)
        raise RuntimeError("stopped")

    monkeypatch.setattr(search_module, "fit_configuration", endless)
    with pytest.warns(UserWarning, match="interrupted: the model is made of the 1 configurations"):
        model = quick(portfolio=("linear", "rankboost"), n_folds=2, n_jobs=2).fit(*rows(120))
    assert len(stopped) == 2
    assert [member.name for member in model.members_] == ["linear"]


def test_a_configuration_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows(120)
    original = search_module.fit_configuration

    def fail(configuration: Configuration, *arguments: Any, **more: Any) -> Any:
        if configuration is PORTFOLIO["rankboost"]:
            raise MemoryError("too large")
        return original(configuration, *arguments, **more)

    monkeypatch.setattr(search_module, "fit_configuration", fail)
    model = quick(portfolio=("rankboost", "linear")).fit(X, y)
    assert model.leaderboard_.set_index("member")["status"]["rankboost"] == "failed: too large"
    with pytest.raises(MemoryError):
        quick(portfolio=("rankboost",)).fit(X, y)


def test_repeats_go_to_the_better_half() -> None:
    X, y = rows(120)
    names = ("linear", "rankboost", "extra trees", "kernel least squares")
    model = quick(portfolio=names, n_repeats=2).fit(X, y)
    assert sorted(model.leaderboard_["models"]) == [2, 4, 4, 4]


# -- what follows a fit -------------------------------------------------------------------------------


def test_a_file_of_all_members(tmp_path) -> None:
    X, y = rows(100)
    names = ("linear", "boosted logistic", "extra trees", "kernel logistic", "rankboost")
    model = quick(portfolio=names).fit(X, y)
    toprank.save(model, tmp_path / "m.toprank", X, y)
    again = toprank.load(tmp_path / "m.toprank")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    pd.testing.assert_frame_equal(again.leaderboard_, model.leaderboard_)
    assert again.estimated_ == model.estimated_
    assert not hasattr(again, "out_of_fold_scores_")
    with pytest.raises(ValueError, match="from a file"):
        again.estimate(10)


def test_calibration_takes_its_own_held_out_scores() -> None:
    X, y = rows(400)
    counted: list[int] = []

    class Counted(AutoRanker):
        def fit(self, *arguments: Any, **more: Any) -> Any:
            counted.append(1)
            return super().fit(*arguments, **more)

    model = CalibratedRanker(Counted(**QUICK)).fit(X, y)
    assert len(counted) == 1
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)
    assert 0 < model.cut(budget=10).n_flagged <= 10
    fresh = CalibratedRanker.of_fitted(quick().fit(X, y), y)
    np.testing.assert_allclose(fresh.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("kind", ["booster", "tree", "rules"])
def test_distillation(fitted: AutoRanker, kind: str, tmp_path) -> None:
    X, y = rows()
    small = fitted.distill(X, y, kind=kind)
    assert small.low <= small.high
    assert small.given_up == pytest.approx(small.teacher - small.student)
    assert small.agreement > 0.3
    assert small.model.score(*rows(seed=3)) > 0.5
    assert "gives up" in str(small)
    toprank.save(small.model, tmp_path / "small.toprank")
    with pytest.raises(ValueError, match="kind must be"):
        fitted.distill(X, y, kind="oracle")


def test_shortlist_reasons_and_report(fitted: AutoRanker) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = CalibratedRanker.of_fitted(quick().fit(frame, y), y)
    listed = toprank.shortlist(model, frame, budget=5)
    assert len(listed) == 5
    assert toprank.shortlisting.reasons(model, frame[:2])[0]
    found = toprank.report.evaluate(y, fitted.decision_function(X), n_resamples=20)
    assert found["metrics"]
