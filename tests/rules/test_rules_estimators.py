"""The boosted-rule estimators: SQL, explanations, stages, early stopping, interruption, bad input."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank import PAUCBoost, PNormPush, PRankBoost, RankBoost
from toprank.metrics import (
    average_precision,
    list_length_for_recall,
    partial_auc,
    recall_precision_area,
)
from toprank.rules import weak_rankers

MODELS = {
    "RankBoost": RankBoost(15, random_state=0),
    "RankBoost clauses": RankBoost(15, weak="clause", random_state=0),
    "PNormPush": PNormPush(4, 15, random_state=0),
    **{
        f"PRankBoost {weak}": PRankBoost(15, weak=weak, random_state=0)
        for weak in ("clause", "path", "mix1", "mix2", "mix3", "mix4")
    },
    "PRankBoost exact": PRankBoost(15, step="exact", learning_rate=0.5, random_state=0),
    "PAUCBoost": PAUCBoost(n_estimators=15),
    "PAUCBoost splines": PAUCBoost(n_estimators=15, weak="spline", n_knots=5),
}
every_model = pytest.mark.parametrize("name", MODELS)


def fresh(name, **changes):
    model = MODELS[name]
    return type(model)(**{**model.get_params(), **changes})


HOSTILE = ['say "hi"; drop table rows', "select", "it's", "per cent %", "naïve — ünï", "a\nb"]


def hostile_table(rng, n=300):
    """Columns whose names are quotes, SQL words and semicolons; cells of every kind."""
    frame = pd.DataFrame(
        {
            HOSTILE[0]: rng.normal(size=n),
            HOSTILE[1]: rng.integers(0, 4, n).astype(float),
            HOSTILE[2]: rng.choice(["O'Neil", 'qu"ote', "; --", "NULL"], n),
            HOSTILE[3]: rng.random(n) < 0.4,
            HOSTILE[4]: pd.array(rng.integers(0, 50, n), dtype="Int64"),
            HOSTILE[5]: pd.Categorical(rng.choice([3, 5, 8], n)),
        }
    )
    frame.loc[rng.random(n) < 0.15, HOSTILE[1]] = np.nan
    frame.loc[rng.random(n) < 0.15, HOSTILE[2]] = None
    frame.loc[rng.random(n) < 0.15, HOSTILE[4]] = pd.NA
    signal = frame[HOSTILE[0]] + 2.0 * (frame[HOSTILE[2]] == "O'Neil") + frame[HOSTILE[3]]
    y = (signal + rng.normal(size=n) > 2.4).to_numpy().astype(int)
    return frame, y


@cache
def fitted(name):
    """A model with the rows and labels that it has learnt; fitted once for all tests that only read it."""
    frame, y = hostile_table(np.random.default_rng(7))
    return fresh(name).fit(frame, y), frame, y


def sql_scores(model, frame):
    """Scores of the model's SQL, run by DuckDB on the same rows."""
    with duckdb.connect() as connection:
        rows = frame.copy()
        for name in frame.columns:
            if isinstance(frame[name].dtype, pd.CategoricalDtype):
                rows[name] = frame[name].astype(frame[name].dtype.categories.dtype)
        connection.register('my "rows"', rows)
        query = model.to_sql('my "rows"', score='the "score"')
        return connection.execute(query).df()['the "score"'].to_numpy()


@every_model
def test_sql_scores_equal_ours(rng, name):
    model, frame, _ = fitted(name)
    new, _ = hostile_table(rng)
    new.loc[:20, HOSTILE[2]] = "never seen"
    for rows in (frame, new):
        ours = model.decision_function(rows)
        assert sql_scores(model, rows) == pytest.approx(ours, abs=1e-9)


@pytest.mark.parametrize("name", ["RankBoost", "PRankBoost path", "PAUCBoost splines"])
def test_sql_runs_in_sqlite_too(rng, name):
    frame, y = hostile_table(rng)
    frame = frame.drop(columns=[HOSTILE[5]]).astype({HOSTILE[0]: np.float32})
    model = fresh(name, n_estimators=40).fit(frame, y)
    with closing(sqlite3.connect(":memory:")) as connection:
        frame.astype({HOSTILE[4]: object}).to_sql("t", connection, index=False)
        scores = pd.read_sql(model.to_sql("t"), connection)["score"].to_numpy()
    assert scores == pytest.approx(model.decision_function(frame), abs=1e-9)


def test_sql_of_many_rounds_stays_shallow(rng):
    frame, y = hostile_table(rng)
    model = RankBoost(1_500).fit(frame, y)
    assert sql_scores(model, frame) == pytest.approx(model.decision_function(frame), abs=1e-6)


@every_model
def test_every_rule_s_mask_equals_its_sql(name):
    model, frame, _ = fitted(name)
    rules = [rule for kept in model.rounds_ for rule in kept.rules]
    with duckdb.connect() as connection:
        rows = frame.assign(**{HOSTILE[5]: frame[HOSTILE[5]].astype(int)})
        connection.register("t", rows)
        holds = ", ".join(f"coalesce({rule.sql()}, false) AS r{k}" for k, rule in enumerate(rules))
        answers = connection.execute(f"SELECT {holds} FROM t").df()
    for k, rule in enumerate(rules):
        assert np.array_equal(answers[f"r{k}"].to_numpy(), rule.mask(frame)), str(rule)


@every_model
def test_explanations_add_up_to_the_score(name):
    model, frame, _ = fitted(name)
    table = model.explain(frame)
    assert list(table.columns) == ["row", "round", "rule", "adds"]
    sums = table.groupby("row")["adds"].sum().reindex(range(len(frame)), fill_value=0.0)
    assert sums.to_numpy() - model.offset_ == pytest.approx(model.decision_function(frame))
    # what fired is what holds, and only the most specific rule of a round
    assert not table.duplicated(["row", "round"]).any()
    texts = {str(rule): rule for kept in model.rounds_ for rule in kept.rules}
    for text, part in table.groupby("rule"):
        assert texts[text].mask(frame)[part["row"]].all()
    assert (table["row"].diff().dropna() >= 0).all()


@every_model
def test_stages_end_at_the_score(name):
    model, frame, y = fitted(name)
    stages = list(model.staged_decision_function(frame))
    assert len(stages) == len(model.rounds_) == len(model.n_evaluated_) == len(model.train_loss_)
    assert stages[-1] == pytest.approx(model.decision_function(frame))
    shorter = fresh(name, n_estimators=5).fit(frame, y)
    if "PAUC" not in name and "mix4" not in name:  # their schedule depends on the number of rounds
        assert stages[4] + model.offset_ == pytest.approx(
            shorter.decision_function(frame) + shorter.offset_
        )
    assert (model.n_evaluated_ > 0).all()


@every_model
def test_the_table_of_rules(rng, name):
    frame, y = hostile_table(rng)
    weights = rng.integers(1, 3, len(y)).astype(float)
    model = fresh(name).fit(frame, y, weights)
    table = model.rules_
    assert table["round"].nunique() == len(model.rounds_)
    rules = [rule for kept in model.rounds_ for rule in kept.rules]
    for k, rule in enumerate(rules):
        line = table.iloc[k]
        mask = rule.mask(frame)
        assert line["rule"] == str(rule)
        assert line["positives"] == pytest.approx(weights[mask & (y == 1)].sum())
        assert line["negatives"] == pytest.approx(weights[mask & (y == 0)].sum())
        assert line["precision"] == pytest.approx(
            weights[mask & (y == 1)].sum() / weights[mask].sum()
        )


@every_model
def test_threads_order_and_pickle_do_not_change_the_model(rng, name):
    model, frame, y = fitted(name)
    expected = model.decision_function(frame)
    assert np.array_equal(fresh(name, n_jobs=3).fit(frame, y).decision_function(frame), expected)
    order = rng.permutation(len(y))
    shuffled = fresh(name).fit(frame.iloc[order], y[order])
    assert shuffled.decision_function(frame) == pytest.approx(expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).decision_function(frame), expected)
    polars = pl.from_pandas(frame.drop(columns=[HOSTILE[5]]))
    part = frame.drop(columns=[HOSTILE[5]])
    assert fresh(name).fit(polars, y).decision_function(part) == pytest.approx(
        fresh(name).fit(part, y).decision_function(polars)
    )


@every_model
def test_weights_are_copies(rng, name):
    frame, y = hostile_table(rng, 150)
    weights = rng.integers(0, 4, len(y))
    copies = rng.permutation(np.repeat(np.arange(len(y)), weights))
    weighted = fresh(name).fit(frame, y, weights)
    copied = fresh(name).fit(frame.iloc[copies], y[copies])
    assert weighted.decision_function(frame) == pytest.approx(copied.decision_function(frame))


@every_model
def test_early_stopping_keeps_the_best_round(rng, name):
    frame, y = hostile_table(rng, 400)
    model = fresh(
        name, n_estimators=60, early_stopping_rounds=5, validation_fraction=0.3, random_state=1
    ).fit(frame, y)
    best = int(np.argmax(model.validation_scores_)) + 1
    assert model.best_iteration_ == best == len(model.rounds_)
    assert len(model.validation_scores_) <= min(best + 5, 60)


def test_the_metric_of_early_stopping_can_be_chosen(rng):
    frame, y = hostile_table(rng, 400)

    def last_rank(y, scores, sample_weight=None):
        return -float(np.sum(scores > scores[y > 0].min()))

    for metric in ("roc_auc", "partial_auc", "list_length_for_recall", last_rank):
        model = RankBoost(20, early_stopping_rounds=3, eval_metric=metric, random_state=0)
        assert len(model.fit(frame, y).validation_scores_) >= 1
    with pytest.raises(ValueError, match=r"Unknown metric 'accuracy'.*roc_auc"):
        RankBoost(early_stopping_rounds=3, eval_metric="accuracy").fit(frame, y)


@pytest.mark.parametrize("metric", ["list_length_for_recall", list_length_for_recall])
def test_early_stopping_keeps_the_least_of_a_metric_that_should_be_small(rng, metric):
    frame, y = hostile_table(rng, 400)
    model = RankBoost(40, early_stopping_rounds=10, eval_metric=metric, random_state=0)
    lengths = model.fit(frame, y).validation_scores_
    assert len(model.rounds_) == model.best_iteration_ == int(np.argmin(lengths)) + 1
    assert lengths.min() < lengths.max()


def test_mix4_switches_when_validation_stalls(rng):
    frame, y = hostile_table(rng, 400)
    model = PRankBoost(60, weak="mix4", switch_at="stall", validation_fraction=0.3, random_state=0)
    model.fit(frame, y)
    assert len(model.rounds_) == 60  # nothing stops it, the rows held out only time the switch
    scores = model.validation_scores_
    stalled = [t for t in range(60) if t - int(np.argmax(scores[: t + 1])) >= 10]
    assert stalled
    always = PRankBoost(60, weak="mix4", switch_at=10**6, random_state=0).fit(frame, y)
    never_held_out = PRankBoost(60, weak="clause", random_state=0).fit(frame, y)
    assert always.rules_.equals(never_held_out.rules_)
    at_once = PRankBoost(20, weak="mix4", switch_at=0, random_state=0).fit(frame, y)
    assert at_once.rules_.equals(PRankBoost(20, weak="mix1", random_state=0).fit(frame, y).rules_)


def test_an_interruption_keeps_the_rounds_done(rng, monkeypatch):
    frame, y = hostile_table(rng)
    full = PRankBoost(10, random_state=0).fit(frame, y)
    original, calls = weak_rankers.ClauseSource.best, []

    def interrupted(self, *arguments, **keywords):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(weak_rankers.ClauseSource, "best", interrupted)
    with pytest.warns(UserWarning, match="4 of 10 rounds"):
        model = PRankBoost(10, random_state=0).fit(frame, y)
    assert model.rules_["rule"].tolist() == full.rules_["rule"].tolist()[:4]
    assert np.isfinite(model.decision_function(frame)).all()
    calls[:] = [1] * 4
    with pytest.raises(KeyboardInterrupt):
        PRankBoost(10, random_state=0).fit(frame, y)


def test_a_refit_without_early_stopping_forgets_the_validation_of_the_fit_before(rng):
    frame, y = hostile_table(rng)
    model = RankBoost(10, early_stopping_rounds=3, random_state=0).fit(frame, y)
    assert model.best_iteration_ == len(model.rounds_)
    model.set_params(early_stopping_rounds=None).fit(frame, y)
    assert len(model.rounds_) == 10
    assert not hasattr(model, "best_iteration_")
    assert not hasattr(model, "validation_scores_")


def test_a_fit_holds_out_rows_of_both_classes(rng):
    frame, y = hostile_table(rng)
    few = np.r_[np.flatnonzero(y == 1)[:1], np.flatnonzero(y == 0)]
    with pytest.raises(ValueError, match="1 positive"):
        RankBoost(early_stopping_rounds=3).fit(frame.iloc[few], y[few])


BAD = [
    (RankBoost(0), "n_estimators"),
    (RankBoost(max_bins=256), "max_bins"),
    (RankBoost(max_bins=1), "max_bins"),
    (RankBoost(weak="tree"), r"'weak' parameter of RankBoost must be a str among \{"),
    (RankBoost(step="long"), "'step' parameter"),
    (RankBoost(learning_rate=0), "learning_rate"),
    (RankBoost(learning_rate=1.5), "learning_rate"),
    (RankBoost(max_evaluated=0), "max_evaluated"),
    (RankBoost(early_stopping_rounds=0), "early_stopping_rounds"),
    (RankBoost(n_jobs=0), "n_jobs"),
    (PNormPush(0.5), "'p' parameter of PNormPush must be a float in the range"),
    (PRankBoost(weak="mix9"), "mix4"),
    (PRankBoost(step="bound"), r"'step' parameter .*'area'"),
    (PRankBoost(weak="mix4", switch_at=-1), "switch_at"),
    (PRankBoost(weak="mix4", switch_at="soon"), "switch_at"),
    (PRankBoost(max_length=0), "max_length"),
    (PRankBoost(max_length=256), "max_length"),
    (PRankBoost(max_seconds=-1), "max_seconds"),
    (PAUCBoost(fpr=(0.5, 0.1)), "fpr must be a range"),
    (PAUCBoost(fpr=0.1), "fpr must be a pair"),
    (PAUCBoost(penalty=-1), "penalty"),
    (PAUCBoost(sigma=0), "sigma"),
    (PAUCBoost(n_knots=2), "n_knots"),
    (PAUCBoost(narrowing=2), "narrowing"),
]


@pytest.mark.parametrize(("model", "message"), BAD)
def test_bad_parameters_are_named(rng, model, message):
    frame, y = hostile_table(rng, 50)
    with pytest.raises(ValueError, match=message):
        model.fit(frame, y)


def test_two_columns_of_one_name_are_refused(rng):
    frame = pd.DataFrame(rng.normal(size=(20, 2)), columns=["x", "x"])
    with pytest.raises(ValueError, match="'x'"):
        RankBoost().fit(frame, np.arange(20) % 2)


@every_model
def test_columns_that_say_nothing_give_constant_scores(name):
    X = np.zeros((30, 2))
    X[:, 1] = np.nan
    y = np.arange(30) % 2
    model = fresh(name).fit(X, y)
    assert np.ptp(model.decision_function(X)) == 0
    assert len(model.rounds_) == 0
    assert model.explain(X).empty
    assert model.rules_.empty
    assert list(model.staged_decision_function(X)) == []
    assert 'AS "score"' in model.to_sql()


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_tiny_data_never_breaks(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    X = rng.choice([0.0, 1.0, np.nan, 1e38, -1e38, 5e-324], size=(n, 3))
    y = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    for name in MODELS:
        scores = fresh(name, n_estimators=4).fit(X, y).decision_function(X)
        assert np.isfinite(scores).all(), name


def test_missing_cells_go_to_the_better_side():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    model = RankBoost(1).fit(X, [0, 0, 1, 1])
    assert str(model.rounds_[0].rules[0]) == "x0 is missing"
    X = np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan], [4.0]])
    model = RankBoost(1).fit(X, [0, 0, 1, 1, 1, 1])
    assert str(model.rounds_[0].rules[0]) == "(x0 > 2.5 or missing)"


def test_a_planted_clause_is_found(rng):
    n = 20_000
    frame = pd.DataFrame(rng.random((n, 6)), columns=list("abcdef"))
    frame["g"] = rng.choice(["u", "v", "w"], n)
    hit = (frame["a"] > 0.9) & (frame["c"] <= 0.2) & (frame["g"] == "v")
    y = (hit | (rng.random(n) < 2e-4)).astype(int)
    for weak in ("clause", "path", "mix1"):
        model = PRankBoost(5, weak=weak, random_state=0).fit(frame, y)
        best = model.rounds_[0].rules[-1]
        named = {literal.column: literal for literal in best.literals}
        assert set(named) == {"a", "c", "g"}
        assert named["a"].operator == ">"
        assert named["a"].value == pytest.approx(0.9, abs=0.01)
        assert named["c"].operator == "<="
        assert named["c"].value == pytest.approx(0.2, abs=0.01)
        assert named["g"].value == "v"
        assert recall_precision_area(y, model.decision_function(frame)) > 0.85


def test_paths_rank_finer_than_clauses(rng):
    frame, y = hostile_table(rng, 400)
    clause = PRankBoost(1, weak="clause", random_state=0).fit(frame, y)
    path = PRankBoost(1, weak="path", random_state=0).fit(frame, y)
    assert len(np.unique(clause.decision_function(frame))) == 2
    assert len(np.unique(path.decision_function(frame))) == len(path.rounds_[0].rules) + 1


def test_the_push_lifts_the_top_of_the_list(rng):
    # half of the positives are easy; stumps must choose whom to please
    n = 4_000
    X = rng.normal(size=(n, 6))
    y = (rng.random(n) < 0.1).astype(int)
    X[y == 1, 0] += 1.0
    X[(y == 1) & (rng.random(n) < 0.4), 1] += 3.0
    plain = RankBoost(60).fit(X, y)
    pushed = PNormPush(16, 60).fit(X, y)
    top = {"fpr": (0.0, 0.01)}
    assert partial_auc(y, pushed.decision_function(X), **top) > partial_auc(
        y, plain.decision_function(X), **top
    )


@pytest.mark.data
def test_rules_find_card_fraud(data_dir):
    rows = pd.read_parquet(data_dir / "creditcard_fraud.parquet")
    y = rows.pop("target").to_numpy()
    half = len(y) // 2
    model = PRankBoost(30, random_state=0).fit(rows[:half], y[:half])
    assert average_precision(y[half:], model.decision_function(rows[half:])) > 0.65


def test_the_length_of_clauses_is_chosen_by_inner_folds() -> None:
    """What needs two conditions gets them; what one condition tells gets no more; copies change nothing."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (600, 6)).astype(float)
    both = (X[:, 0] > 5) == (X[:, 1] > 5)  # no sum of single conditions tells it
    long = PRankBoost(8, max_length="auto", random_state=0).fit(X, both)
    short = PRankBoost(8, max_length="auto", random_state=0).fit(X, X[:, 2] > 9)
    assert long.max_length_ >= 2 > short.max_length_
    same = PRankBoost(8, max_length=long.max_length_, random_state=0).fit(X, both)
    assert long.rules_.equals(same.rules_)
    assert PRankBoost(1, max_length=5).fit(X, both).max_length_ == 5
    order = rng.permutation(600)
    shuffled = PRankBoost(8, max_length="auto", random_state=0).fit(X[order], both[order])
    assert shuffled.max_length_ == long.max_length_
    twice = PRankBoost(8, max_length="auto", random_state=0)
    twice.fit(np.repeat(X, 2, axis=0), np.repeat(both, 2))
    weighted = PRankBoost(8, max_length="auto", random_state=0).fit(X, both, np.full(600, 2.0))
    assert twice.max_length_ == weighted.max_length_
    few = PRankBoost(2, max_length="auto").fit(X[:40], np.arange(40) == 3)
    assert few.max_length_ == 3  # one positive is in no two folds
