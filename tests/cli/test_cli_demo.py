"""The demonstration: comparison, model, alerts and page belong together."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from cli_cases import one_line, run

import toprank
from toprank.demo import CHECKS_A_DAY, run_demo
from toprank.selection import models as selection_models


@pytest.fixture(autouse=True)
def quick_yardstick(monkeypatch):
    """A stand-in for the tuned booster, so that the demonstration is over soon."""
    quick = selection_models.Candidate("RankLS", "a stand-in")
    monkeypatch.setitem(selection_models.MODELS, "yardstick", quick)


def test_demo_writes_all_that_belongs_to_it(tmp_path):
    out = tmp_path / "deep" / "report"
    result = run("demo", "--rows", 3000, "--models", "linear", "--resamples", 50, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "linear" in result.stdout
    assert f"The page: {out / 'report.html'}" in result.stdout
    report = json.loads((out / "report.json").read_text())
    board = pd.read_csv(out / "comparison.csv")
    assert sorted(board["model"]) == ["linear", "yardstick"]
    assert (out / "report.html").read_text().startswith("<!doctype html>")
    early, late = (pd.read_parquet(out / f"{name}.parquet") for name in ("early", "late"))
    assert len(early) == report["data"]["early"]["rows"]
    assert early["time"].max() < late["time"].min()
    model = toprank.load(out / "fraud.toprank")
    features = [str(name) for name in model.feature_names_in_]
    assert not {"payment", "time", "day", "card_id", "merchant_id", "is_fraud"} & set(features)
    scores = model.decision_function(late[features])
    value = report["report"]["metrics"]["average_precision"]["value"]
    expected = toprank.metrics.average_precision(late["is_fraud"], scores)
    assert value == pytest.approx(expected, abs=1e-9)
    alerts = pd.read_csv(out / "alerts.csv")
    assert alerts.groupby("per").size().max() <= CHECKS_A_DAY
    assert alerts["reasons"].notna().all()
    # what the demonstration tells the user to type next
    line = next(text for text in result.stdout.splitlines() if "toprank score" in text)
    assert run(*line.split()[1:]).exit_code == 0


def test_demo_learns_from_early_days_only():
    demo = run_demo(3000, models=["linear"], n_resamples=20, time_budget=None)
    summary = demo.model.training_summary_
    assert summary["n_rows"] == len(demo.payments["early"])
    assert demo.comparison.scores["row"].max() < len(demo.payments["early"])
    days = demo.payments["late"]["day"]
    assert demo.payments["early"]["day"].max() < days.min()


def test_demo_refuses_too_few_rows_and_a_file_as_its_folder(tmp_path):
    assert "--rows" in one_line(run("demo", "--rows", 10))
    (tmp_path / "file").write_text("")
    assert "is a file" in one_line(run("demo", "--out", tmp_path / "file"))
    assert (tmp_path / "file").read_text() == ""
