"""What commands print about promises, costs and money; a report on known rows; narrow windows."""

from __future__ import annotations

import json
import re

from cli_cases import run


def test_a_report_on_the_training_rows_warns(folder, tmp_path):
    arguments = [
        "--target",
        "is_fraud",
        "--resamples",
        50,
        "--json",
        "--out",
        tmp_path / "page.html",
    ]
    known = run("report", folder / "linear.toprank", folder / "early.csv", *arguments)
    assert "the model has learnt from these rows: 100% of its training rows" in known.stderr
    assert "has learnt from these rows" in json.loads(known.stdout)["warnings"][0]
    assert "has learnt from these rows" in (tmp_path / "page.html").read_text()
    new = run("report", folder / "linear.toprank", folder / "late.csv", *arguments)
    assert new.exit_code == 0
    assert "learnt from these rows" not in new.stderr
    assert "rows of" in (tmp_path / "page.html").read_text()


def test_costs_and_values_are_printed(folder):
    arguments = ["score", folder / "linear.toprank", folder / "late.csv", "--value", "amount"]
    result = run(*arguments, "--cost", "5,100")
    assert result.exit_code == 0, result.stderr
    assert "Its cost (false alarm 5, miss 100, gain 0): " in result.stdout
    assert "of the positives found." in result.stdout
    assert "Value of the positives: about " in result.stdout
    found = json.loads(run(*arguments, "--budget", 50, "--json").stdout)["value"]
    assert found["expected_caught"] < found["expected_all"] < found["all"]
    printed = run(*arguments, "--budget", 5, "--rank-by", "value", "--reasons", 0).stdout
    assert "expected_value" in printed
    assert not re.search(r"\.\d{6}", printed), printed


def test_a_precision_out_of_reach_still_gives_a_list(folder):
    result = run(
        "score", folder / "linear.toprank", folder / "late.csv", "--precision", 0.99, "--json"
    )
    found = json.loads(result.stdout)
    assert found["n_alerts"] > 0
    assert found["cut"]["reached"] is False
    assert found["cut"]["precision_low"] < found["cut"]["precision"]
    assert "no promise" in result.stderr


def test_the_leaderboard_fits_80_columns(folder, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run("compare", folder / "early.csv", "--target", "is_fraud", "--id", "payment", "--drop",
                 "day", "--models", "linear,ranksvm", "--splits", 2, "--repeats", 1, "--no-page",
                 "--time-budget", 0.001)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(len(line.rstrip()) for line in lines if "has the highest" not in line) <= 80
    board = [line for line in lines if line.split()[:1] == ["linear"]]
    # one line: a name, an interval, four figures and the seconds
    assert len(board[0].split()) == 10
