"""The command line: what it prints, and one line and exit code 2 for whatever goes wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import toprank
from toprank import metrics
from toprank.cli import app

COLUMNS = ["--label", "y", "--score", "s"]


def run(*arguments, **options):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def real(*arguments, **options):
    """A real process, as a user starts it."""
    command = [sys.executable, "-m", "toprank.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.fixture
def scored(tmp_path, rng):
    y = (rng.random(300) < 0.2).astype(int)
    frame = pd.DataFrame({"y": y, "s": rng.normal(size=300) + y, "q": np.arange(300) // 30})
    frame["w"] = rng.integers(1, 4, 300)
    frame["name"] = np.where(y == 1, "bad", "good")
    path = tmp_path / "scores.csv"
    frame.to_csv(path, index=False)
    return path, frame


def one_line(result):
    """The error line of a refused run."""
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("toprank: error: ")
    return lines[0]


# -- real processes -------------------------------------------------------------------------------


def test_version_help_and_errors_in_real_processes(tmp_path):
    version = real("--version")
    assert (version.returncode, version.stdout) == (0, f"toprank {toprank.__version__}\n")
    refused = real("evaluate", tmp_path / "none.csv", *COLUMNS)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == f"toprank: error: {tmp_path / 'none.csv'}: no such file\n"
    usage = real("evaluate")
    assert usage.returncode == 2
    assert "Traceback" not in usage.stderr


def test_standard_input_of_a_real_process(scored):
    path, frame = scored
    result = real("evaluate", "-", *COLUMNS, "--json", "--resamples", 0, input=path.read_text())
    assert result.returncode == 0
    value = json.loads(result.stdout)["metrics"]["roc_auc"]["value"]
    assert value == pytest.approx(metrics.roc_auc(frame["y"], frame["s"]), abs=1e-12)


INTERRUPTED_WHILE_WRITING = """
import os, signal, sys, time
import pandas as pd
import toprank.cli, toprank.demo

def half(self, path, **options):
    with open(path, "w") as file:
        file.write("half of")
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

pd.DataFrame.to_csv = half
toprank.demo.run_demo = lambda *_, **__: ({"models": {}}, pd.DataFrame({"is_fraud": [1]}))
sys.argv = ["toprank", "demo", "--out", "out"]
toprank.cli.main()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals as on Unix")
def test_an_interrupted_process_leaves_no_half_written_file(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED_WHILE_WRITING]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr.strip() == "toprank: interrupted"
    assert os.listdir(tmp_path / "out") == ["report.json"]  # written whole before the interruption
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == {"models": {}}


def test_the_command_line_starts_without_the_heavy_libraries():
    code = (
        "import sys, toprank.cli\n"
        "heavy = {'sklearn', 'numba', 'pandas', 'duckdb', 'xgboost', 'scipy', 'plotly'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("\n", "")


# -- evaluate -------------------------------------------------------------------------------------


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
        ("y,s\n1,2\n,1\n0,3\n", ["label", "missing"]),
        ("y,s\n1,2\n0,\n0,3\n", ["NaN"]),
        ("y,s\n1,inf\n0,1\n0,3\n", ["infinite"]),
        ("y,s\n1,high\n0,1\n", ["row 1", "'high'"]),
        ("y,s\n1,2\n0,1,5,6\n2\n", ["number of cells"]),
        ("y,s\na,2\nb,1\nc,3\n", ["3 classes"]),
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


def test_datasets_lists_and_shows():
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


# -- demo -----------------------------------------------------------------------------------------


@pytest.fixture
def two_models(monkeypatch):
    models = {
        "linear": ("LogisticRanker", {"max_iter": 300, "tol": 1e-3}),
        "absent": ("AbsentRanker", {}),
    }
    monkeypatch.setitem(toprank.registry.ESTIMATORS, "AbsentRanker", "toprank.absent")
    monkeypatch.setattr("toprank.demo.default_models", lambda: models)


def test_demo_compares_and_writes_its_report(tmp_path, two_models):
    out = tmp_path / "deep" / "report"
    result = run("demo", "--rows", 4000, "--resamples", 20, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "linear" in result.stdout
    assert "absent was left out" in result.stdout
    report = json.loads((out / "report.json").read_text())
    figures = report["models"]["linear"]["metrics"]["average_precision"]
    assert figures["low"] <= figures["value"] <= figures["high"]
    table = pd.read_csv(out / "comparison.csv")
    assert table["model"].tolist() == ["linear"]
    scores = pd.read_csv(out / "scores.csv")
    assert len(scores) == report["data"]["test_rows"]
    again = run("evaluate", out / "scores.csv", "--label", "is_fraud", "--score", "linear",
                "--json", "--resamples", 0)  # fmt: skip
    value = json.loads(again.stdout)["metrics"]["average_precision"]["value"]
    assert value == pytest.approx(figures["value"], abs=1e-9)


def test_demo_trains_on_early_days_only(two_models, monkeypatch):
    from toprank.datasets import make_card_fraud
    from toprank.linear import LogisticRanker

    seen = {}
    original = LogisticRanker.fit

    def fit(self, X, y):
        seen["rows"] = len(y)
        return original(self, X, y)

    monkeypatch.setattr(LogisticRanker, "fit", fit)
    report = json.loads(run("demo", "--rows", 4000, "--resamples", 0, "--json").stdout)
    day = make_card_fraud(4000, random_state=0).extra["day"]
    cut = day[day.index[-1] - report["data"]["test_rows"] + 1]
    assert seen["rows"] == report["data"]["training_rows"] == (day < cut).sum()


def test_demo_refuses_too_few_rows_and_a_file_as_its_folder(tmp_path, two_models):
    assert run("demo", "--rows", 10).exit_code == 2
    (tmp_path / "file").write_text("")
    one_line(run("demo", "--rows", 4000, "--resamples", 0, "--out", tmp_path / "file"))
    assert (tmp_path / "file").read_text() == ""
