"""compare, fit, score, report and explain: what they say is what the library says."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_cases import one_line, rows, run, written
from sklearn.pipeline import Pipeline

import toprank
import toprank.shortlisting
from toprank.selection import models as selection_models
from toprank.shortlisting import drift, global_importance, reasons

FEATURES = ["amount", "ratio", "country"]
ROLES = ["--target", "is_fraud", "--id", "payment", "--time", "day"]


@pytest.fixture
def quick_yardstick(monkeypatch):
    """A stand-in for the tuned booster, whose own tests are elsewhere."""
    quick = selection_models.Candidate("LogisticRanker", "a stand-in")
    monkeypatch.setitem(selection_models.MODELS, "yardstick", quick)


# -- fit ------------------------------------------------------------------------------------------


def test_fit_writes_a_calibrated_model_with_its_summary(folder):
    model = toprank.load(folder / "linear.toprank")
    assert isinstance(model, toprank.CalibratedRanker)
    assert model.feature_names_in_.tolist() == FEATURES
    assert model.cv == 3  # the number of folds, not their rows
    assert model.training_summary_["n_rows"] == 400
    assert model.training_summary_["n_positives"] == rows()["is_fraud"].sum()
    # calibrated on blocks of time: the first days were never held out
    assert 0 < model.staircase_.total < 400


def test_fit_without_calibration_and_with_weights(folder, tmp_path):
    table = rows().assign(w=np.tile([1.0, 2.0], 200))
    written(table, tmp_path / "early.parquet")
    result = run("fit", tmp_path / "early.parquet", *ROLES, "--weight", "w", "--model", "linear",
                 "--no-calibration", "--out", tmp_path / "m.toprank", "--json")  # fmt: skip
    answer = json.loads(result.stdout)
    assert (answer["rows"], answer["columns"], answer["model"]) == (400, 3, "linear")
    assert "held_out_average_precision" not in answer
    model = toprank.load(tmp_path / "m.toprank")
    twin = selection_models.make_model("linear")
    twin.fit(table[FEATURES], table["is_fraud"], model__sample_weight=table["w"].to_numpy())
    scores = model.decision_function(table[FEATURES])
    np.testing.assert_allclose(scores, twin.decision_function(table[FEATURES]), rtol=1e-9)


def test_the_average_precision_that_fit_prints(folder, tmp_path):
    arguments = ["fit", folder / "early.csv", "--target", "is_fraud", "--drop", "payment,day",
                 "--model", "linear", "--out", tmp_path / "m.toprank", "--json"]  # fmt: skip
    printed = json.loads(run(*arguments).stdout)["held_out_average_precision"]
    table, model = rows(), selection_models.make_model("linear")
    final = selection_models.make_model("linear").fit(table[FEATURES], table["is_fraud"])
    scores = toprank.shortlisting.cross_fitted_scores(
        model, table[FEATURES], table["is_fraud"], final=final
    )
    expected = toprank.metrics.average_precision(table["is_fraud"], scores)
    assert printed == pytest.approx(expected)


def test_a_model_that_does_not_scale_learns_from_a_sample(monkeypatch, tmp_path, folder):
    small = selection_models.Candidate("TreeRank", "capped", {}, 100)
    monkeypatch.setitem(selection_models.MODELS, "treerank", small)
    result = run("fit", folder / "early.csv", *ROLES, "--model", "treerank", "--folds", 2,
                 "--out", tmp_path / "m.toprank")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    n_positives = rows()["is_fraud"].sum()
    assert f"a sample of the others, {n_positives + 100} of 400 rows" in result.stderr
    model = toprank.load(tmp_path / "m.toprank")
    assert type(model.estimator_).__name__ == "TreeRank"
    # probabilities are those of all rows, not of the sample
    probability = model.predict_proba(rows()[FEATURES])[:, 1]
    assert probability.mean() == pytest.approx(rows()["is_fraud"].mean(), abs=0.1)


def test_the_positive_label(tmp_path):
    table = rows().assign(is_fraud=lambda t: np.where(t["is_fraud"] == 1, "bad", "good"))
    path = written(table, tmp_path / "named.csv")
    arguments = [path, *ROLES, "--model", "linear", "--folds", 2, "--out", tmp_path / "m.toprank"]
    line = one_line(run("fit", *arguments))
    assert "--positive" in line
    assert "'bad'" in line
    assert run("fit", *arguments, "--positive", "bad").exit_code == 0
    scores = toprank.load(tmp_path / "m.toprank").decision_function(table[FEATURES])
    assert toprank.metrics.roc_auc(rows()["is_fraud"], scores) > 0.6
    assert "holds 'good', 'bad'" in one_line(run("fit", *arguments, "--positive", "BAD")).replace(
        "'bad', 'good'", "'good', 'bad'"
    )


# -- score ----------------------------------------------------------------------------------------


def test_the_list_is_that_of_the_library(folder, tmp_path):
    out = tmp_path / "alerts.parquet"
    result = run("score", folder / "linear.toprank", folder / "late.csv", "--budget", 7, "--id",
                 "payment", "--value", "amount", "--out", out, "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    late = rows(seed=1)
    model = toprank.load(folder / "linear.toprank")
    expected = toprank.shortlist(
        model, late[FEATURES], budget=7, ids=late["payment"], value=late["amount"]
    )
    alerts = pd.read_parquet(out)
    pd.testing.assert_frame_equal(alerts, expected.reset_index(drop=True), check_dtype=False)
    answer = json.loads(result.stdout)
    assert answer["n_alerts"] == 7
    assert answer["value"]["all"] == pytest.approx(late["amount"].sum())
    caught = (expected["probability"] * expected["value"]).sum()
    assert answer["value"]["expected_caught"] == pytest.approx(caught)
    assert answer["unused_columns"] == ["day", "is_fraud"]
    assert answer["drift"] == drift(model, late[FEATURES]).warnings


def test_a_budget_for_each_day(folder, tmp_path):
    out = tmp_path / "alerts.csv"
    result = run("score", folder / "linear.toprank", folder / "late.csv", "--budget", 3, "--per",
                 "week", "--time", "day", "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    alerts = pd.read_csv(out)
    assert alerts["per"].nunique() == 2
    assert alerts["rank"].tolist() == [1, 2, 3] * 2
    assert set(alerts["row"]) <= set(range(1, 401))
    by_column = run("score", folder / "linear.toprank", folder / "late.csv", "--budget", 2, "--per",
                    "country", "--json")  # fmt: skip
    groups = [entry["per"] for entry in json.loads(by_column.stdout)["alerts"]]
    assert groups == ["DE", "DE", "NL", "NL"]


@pytest.mark.parametrize(
    ("option", "value", "keyword", "argument"),
    [
        ("--fpr", "0.05", "fpr", 0.05),
        ("--cost", "5,100", "cost", (5.0, 100.0)),
        ("--cost", "5,100,20", "cost", (5.0, 100.0, 20.0)),
        ("--precision", "0.3", "precision", 0.3),
    ],
)
def test_other_cuts(folder, option, value, keyword, argument):
    result = run("score", folder / "linear.toprank", folder / "late.csv", option, value, "--json")
    answer = json.loads(result.stdout)
    expected = toprank.load(folder / "linear.toprank").cut(**{keyword: argument})
    assert answer["cut"]["threshold"] == pytest.approx(expected.threshold)
    scores = toprank.load(folder / "linear.toprank").decision_function(rows(seed=1)[FEATURES])
    assert answer["n_alerts"] == int((scores > expected.threshold).sum())


def test_all_rows_can_be_listed(folder):
    result = run("score", folder / "linear.toprank", folder / "late.csv", "--all", "--json")
    alerts = json.loads(result.stdout)["alerts"]
    assert [entry["rank"] for entry in alerts] == list(range(1, 401))
    assert "reasons" not in alerts[0]


def test_a_cut_that_cannot_be_promised_lists_nothing(folder, tmp_path):
    out = tmp_path / "alerts.csv"
    result = run("score", folder / "linear.toprank", folder / "late.csv", "--fpr", "0.000001",
                 "--out", out)  # fmt: skip
    assert result.exit_code == 0
    assert "warning: the shortlist is empty" in result.stderr
    assert len(pd.read_csv(out)) == 0


def test_drift_is_a_warning(folder, tmp_path):
    moved = rows(seed=1).assign(amount=lambda t: t["amount"] + 500, country="FR")
    path = written(moved, tmp_path / "moved.csv")
    result = run("score", folder / "linear.toprank", path, "--budget", 5)
    assert result.exit_code == 0
    warning = next(line for line in result.stderr.splitlines() if "drifted" in line)
    assert "'amount'" in warning
    assert "'country'" in warning
    still = run("score", folder / "linear.toprank", folder / "early.csv", "--budget", 5)
    assert "drifted" not in still.stderr


def test_only_budgets_without_calibration(folder, tmp_path):
    run("fit", folder / "early.csv", *ROLES, "--model", "linear", "--no-calibration", "--out",
        tmp_path / "m.toprank")  # fmt: skip
    arguments = ["score", tmp_path / "m.toprank", folder / "late.csv"]
    assert "out-of-fold" in one_line(run(*arguments, "--fpr", "0.1"))
    assert run(*arguments, "--budget", 3).exit_code == 0


ONCE = {  # rows of each call: the table, then rows with one of the three columns changed
    "score": (["--budget", 7, "--out", "alerts.csv"], [400, 3 * 7]),
    "report": (
        ["--target", "is_fraud", "--lengths", 50, "--resamples", 20],
        [400, 3 * 50, 3 * 400],
    ),
    "explain": (["--top", 4], [400, 3 * 4, 3 * 400]),
}


@pytest.mark.parametrize("command", ONCE)
def test_the_table_is_scored_once(folder, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    scored, calls = Pipeline.decision_function, []

    def counting(self, X):
        calls.append(len(X))
        return scored(self, X)

    monkeypatch.setattr(Pipeline, "decision_function", counting)
    options, expected = ONCE[command]
    result = run(command, folder / "linear.toprank", folder / "late.csv", *options)
    assert result.exit_code == 0, result.stderr
    assert calls[-len(expected) :] == expected
    assert sum(calls[: -len(expected)]) < 10  # opening a file tries the model on a few rows


# -- report and explain -----------------------------------------------------------------------------


def test_report_writes_the_page_and_says_what_is_on_it(folder, tmp_path):
    out = tmp_path / "page.html"
    arguments = [folder / "linear.toprank", folder / "late.csv", *ROLES, "--value", "amount",
                 "--lengths", "10,50", "--resamples", 100, "--cost-of-check", 3, "--out", out]  # fmt: skip
    result = run("report", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    late = rows(seed=1)
    scores = toprank.load(folder / "linear.toprank").decision_function(late[FEATURES])
    expected = toprank.metrics.average_precision(late["is_fraud"], scores)
    assert answer["metrics"]["average_precision"]["value"] == pytest.approx(expected)
    place = answer["lists"]["length"].index(10)
    top = late["is_fraud"].to_numpy()[np.argsort(-scores)][:10].sum()
    assert answer["lists"]["hits"]["value"][place] == pytest.approx(top)
    assert answer["time"] is not None
    page = out.read_text()
    assert page.startswith("<!doctype html>")
    shown = run("report", *arguments)
    assert f"Of the first 10 rows {top:.0f} (" in shown.stdout


def test_explain_describes_a_file(folder):
    answer = json.loads(run("explain", folder / "linear.toprank", "--json").stdout)
    assert (answer["class"], answer["calibrated"], answer["rows"]) == ("LogisticRanker", True, 400)
    assert [column["name"] for column in answer["columns"]] == FEATURES
    assert "LogisticRanker" in run("explain", folder / "linear.toprank").stdout


def test_explain_gives_reasons_of_rows(folder):
    arguments = ["explain", folder / "linear.toprank", folder / "late.csv", "--id", "payment"]
    answer = json.loads(run(*arguments, "--row", "P5,P9", "--json").stdout)
    late = rows(seed=1)
    model = toprank.load(folder / "linear.toprank")
    assert [entry["row"] for entry in answer["explained"]] == ["P5", "P9"]
    expected = reasons(model, late[FEATURES].iloc[[5, 9]], 5, background=late[FEATURES])
    assert [entry["reasons"] for entry in answer["explained"]] == expected
    importance = global_importance(model, late[FEATURES])
    assert [entry["feature"] for entry in answer["importance"]] == importance["feature"].tolist()
    top = run(*arguments, "--top", 2).stdout
    assert "rank 1," in top
    assert "rank 3," not in top
    assert "no such row" in one_line(run(*arguments, "--row", "P5,nobody"))


def test_explain_shows_rules(folder, tmp_path):
    run("fit", folder / "early.csv", *ROLES, "--model", "rankboost", "--no-calibration", "--out",
        tmp_path / "m.toprank")  # fmt: skip
    answer = json.loads(run("explain", tmp_path / "m.toprank", "--json").stdout)
    assert answer["n_rules"] >= len(answer["rules"]) > 0
    assert "rule" in answer["rules"][0]


# -- compare --------------------------------------------------------------------------------------


def test_compare_says_what_the_library_says(folder, tmp_path, quick_yardstick):
    out = tmp_path / "page.html"
    arguments = [folder / "early.csv", *ROLES, "--gap", 1, "--models", "linear,rankls", "--splits",
                 3, "--out", out]  # fmt: skip
    answer = json.loads(run("compare", *arguments, "--json").stdout)
    table = rows()
    expected = toprank.selection.compare_models(
        table[FEATURES], table["is_fraud"], models=["linear", "rankls"], time=table["day"], gap=1,
        n_splits=3,
    )  # fmt: skip
    board = expected.leaderboard()
    assert [entry["model"] for entry in answer["leaderboard"]] == board["model"].tolist()
    values = [entry["average_precision"] for entry in answer["leaderboard"]]
    assert values == pytest.approx(board["average_precision"].tolist())
    assert answer["kind"] == "time"
    assert answer["recommended"]["model"] == expected.recommended.model
    assert out.read_text().startswith("<!doctype html>")
    shown = run("compare", *arguments, "--no-page").stdout
    assert "3 models on 3 blocks of time" in shown
    assert "cannot tell" in shown or "worse" in shown
    assert "The page" not in shown


def test_compare_by_folds_and_by_queries(tmp_path, quick_yardstick, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = rows(200).assign(q=np.arange(200) // 10).drop(columns=["payment", "day"])
    path = written(table, tmp_path / "rows.csv")
    arguments = [path, "--target", "is_fraud", "--models", "rankls", "--splits", 2, "--repeats", 1]
    plain = run("compare", *arguments, "--drop", "q")
    assert "2 stratified folds" in plain.stdout
    assert (tmp_path / "toprank-comparison.html").exists()
    grouped = json.loads(run("compare", *arguments, "--query", "q", "--no-page", "--json").stdout)
    assert grouped["kind"] == "grouped"
    line = one_line(run("compare", *arguments, "--models", "rankles"))
    assert "'rankls'" in line


def test_every_help_has_examples():
    from toprank.cli import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert {"compare", "fit", "score", "report", "explain", "evaluate", "datasets", "demo"} <= {
        *names
    }
    for name in names:
        text = run(name, "--help").stdout
        assert "Examples" in text
        assert f"toprank {name}" in text
        assert "--json" in text
