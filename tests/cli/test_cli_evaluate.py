"""`toprank evaluate` and `toprank datasets`: what they print, and what they refuse."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from cli_cases import one_line, run

from toprank import metrics

COLUMNS = ["--label", "y", "--score", "s"]


@pytest.fixture
def scored(tmp_path, rng):
    y = (rng.random(300) < 0.2).astype(int)
    frame = pd.DataFrame({"y": y, "s": rng.normal(size=300) + y, "q": np.arange(300) // 30})
    frame["w"] = rng.integers(1, 4, 300)
    frame["name"] = np.where(y == 1, "bad", "good")
    path = tmp_path / "scores.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_evaluate_prints_every_metric_with_its_interval(scored):
    path, frame = scored
    result = run("evaluate", path, *COLUMNS, "--resamples", 50)
    assert result.exit_code == 0
    expected = metrics.evaluate(frame["y"], frame["s"], n_resamples=50, random_state=0)
    for name, entry in expected.items():
        line = next(
            line for line in result.stdout.splitlines() if line.split("(")[0].split()[:1] == [name]
        )
        for key in ("value", "low", "high"):
            assert f"{entry[key]:.4f}" in line


def test_evaluate_as_json_is_what_the_library_says(scored):
    path, frame = scored
    arguments = ["--weight", "w", "--query", "q", "--resamples", 20, "--level", 0.9, "--seed", 7]
    result = run("evaluate", path, *COLUMNS, *arguments, "--json")
    answer = json.loads(result.stdout)
    expected = metrics.evaluate(
        frame["y"], frame["s"], sample_weight=frame["w"], qid=frame["q"], n_resamples=20,
        level=0.9, random_state=7,
    )  # fmt: skip
    assert answer["rows"] == 300
    assert set(answer["metrics"]) == set(expected)
    for name, entry in expected.items():
        assert answer["metrics"][name]["value"] == pytest.approx(entry["value"], abs=1e-12)
        assert answer["metrics"][name]["low"] == pytest.approx(entry["low"], abs=1e-12)


@pytest.mark.parametrize(
    ("label", "positive"), [("y", "0"), ("name", "bad"), ("name", "good"), ("flag", "true")]
)
def test_the_positive_label_can_be_named(scored, label, positive):
    path, frame = scored
    frame["flag"] = frame["y"] == 1
    frame.to_csv(path, index=False)
    result = run("evaluate", path, "--label", label, "--score", "s", "--positive", positive,
                 "--json", "--resamples", 0)  # fmt: skip
    truth = frame[label].astype(str).str.lower() == positive
    value = json.loads(result.stdout)["metrics"]["average_precision"]["value"]
    assert value == pytest.approx(metrics.average_precision(truth, frame["s"]), abs=1e-12)


def test_labels_may_stand_in_another_file(scored, tmp_path):
    path, frame = scored
    frame[["y"]].to_parquet(tmp_path / "truth.parquet")
    frame[["s"]].to_csv(path, index=False)
    arguments = ["--labels", tmp_path / "truth.parquet", "--json", "--resamples", 0]
    result = run("evaluate", path, *COLUMNS, *arguments)
    assert json.loads(result.stdout)["rows"] == 300
    frame[["y"]].head(200).to_parquet(tmp_path / "truth.parquet")
    assert "rows" in one_line(run("evaluate", path, *COLUMNS, *arguments))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["is empty"]),
        ("y,s\n", ["no rows"]),
        ("y,score\n1,2\n0,1\n", ["no column 's'"]),
        ("y,s\n1,2\n1,1\n", ["class"]),
        ("y,s\n1,2\n,1\n0,3\n", ["lacks a label", "row 2"]),
        ("y,s\n1,2\n0,\n0,3\n", ["NaN"]),
        ("y,s\n1,inf\n0,1\n0,3\n", ["infinite"]),
        ("y,s\n1,high\n0,1\n", ["row 1", "'high'"]),
        ("y,s\n1,2\n0,1,5,6\n2\n", ["number of cells"]),
        ("y,s\na,2\nb,1\nc,3\n", ["3 different labels", "--positive"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, content, words):
    path = tmp_path / "bad.csv"
    path.write_text(content)
    line = one_line(run("evaluate", path, *COLUMNS))
    for word in words:
        assert word in line


def test_other_refusals(scored, tmp_path):
    path, _ = scored
    assert "no such file" in one_line(run("evaluate", tmp_path / "none.csv", *COLUMNS))
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 cut")
    assert "cannot be read" in one_line(run("evaluate", tmp_path / "cut.parquet", *COLUMNS))
    line = one_line(run("evaluate", path, *COLUMNS, "--positive", "fraud"))
    assert "the labels are numbers" in line
    assert "level" in one_line(run("evaluate", path, *COLUMNS, "--level", "1.5"))
    assert run("evaluate", path, *COLUMNS, "--resamples", "-5").exit_code == 2


# -- datasets -------------------------------------------------------------------------------------


def test_datasets_lists_and_shows(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    listing = run("datasets")
    assert listing.exit_code == 0
    assert "creditcard_fraud" in listing.stdout
    assert "284,807" in listing.stdout
    single = run("datasets", "wdbc")
    assert "1510" in single.stdout
    assert "malignant" in single.stdout
    assert len(json.loads(run("datasets", "--json").stdout)) == 46
    assert json.loads(run("datasets", "wdbc", "--json").stdout)["positives"] == 212
    assert "did you mean wdbc" in one_line(run("datasets", "wdcb"))


def test_models_lists_every_candidate_and_estimator():
    from toprank.registry import ESTIMATORS
    from toprank.selection import MODELS, RELATIONAL_MODELS

    listed = json.loads(run("models", "--json").stdout)
    assert [entry["name"] for entry in listed] == [*MODELS, *RELATIONAL_MODELS]
    assert set(ESTIMATORS) <= {entry["class"] for entry in listed}
    assert "ap_sigmoid" in run("models").stdout


def test_evaluate_takes_a_query(scored):
    path, frame = scored
    result = run("evaluate", "--sql", f"SELECT * FROM '{path}' WHERE q < 5", *COLUMNS, "--json",
                 "--resamples", 0)  # fmt: skip
    part = frame[frame["q"] < 5]
    answer = json.loads(result.stdout)
    assert answer["rows"] == len(part)
    value = answer["metrics"]["roc_auc"]["value"]
    assert value == pytest.approx(metrics.roc_auc(part["y"], part["s"]), abs=1e-12)
    assert "name the data" in one_line(run("evaluate", *COLUMNS))
    assert "name the data" in one_line(run("evaluate", path, "--sql", "SELECT 1", *COLUMNS))


def test_daily_lists(tmp_path):
    rng = np.random.default_rng(0)
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 72, 300), "h")
    table = pd.DataFrame({"y": rng.integers(0, 2, 300), "s": rng.normal(size=300), "when": times,
                          "card": rng.integers(0, 50, 300)})  # fmt: skip
    table.to_csv(tmp_path / "s.csv", index=False)
    result = run("evaluate", tmp_path / "s.csv", *COLUMNS, "--time", "when", "--group", "card",
                 "--checks-per-day", 5, "--resamples", 0, "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["metrics"]["daily_precision_at_k"]["value"]
    days = table["when"].dt.date.astype(str)
    expected = metrics.daily_precision_at_k(table["y"], table["s"], days, 5, table["card"])
    assert found == pytest.approx(expected)
