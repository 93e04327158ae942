"""compare, fit and score take a folder of tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_cases import one_line, run

import toprank
from toprank.selection import models as selection_models


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """People, their friends and who smokes; ill are those with a friend who smokes."""
    rng = np.random.default_rng(0)
    names = np.array([f"p{k:02d}" for k in range(60)])
    pairs = rng.integers(0, 60, (120, 2))
    smokes = rng.random(60) < 0.2
    ill = np.isin(np.arange(60), pairs[smokes[pairs[:, 1]], 0])
    place = tmp_path_factory.mktemp("relational")
    pd.DataFrame({"a": names[pairs[:, 0]], "b": names[pairs[:, 1]]}).to_parquet(
        place / "friends.parquet"
    )
    pd.DataFrame({"who": names[smokes]}).to_parquet(place / "smokes.parquet")
    pd.DataFrame({"person": names, "ill": np.where(ill, "yes", "no")}).to_parquet(
        place / "examples.parquet"
    )
    return place


def test_a_model_of_clauses_is_fitted_saved_and_scores(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.toprank"
    fitted = run("fit", "--relational", tables, "--target", "ill", "--model", "clauses",
                 "--no-calibration", "--out", out, "--json")  # fmt: skip
    assert fitted.exit_code == 0, fitted.stderr
    answer = json.loads(fitted.stdout)
    assert (answer["rows"], answer["class"]) == (60, "RelationalPRankBoost")
    scored = run("score", out, "--relational", tables, "--budget", 5, "--reasons", 0,
                 "--out", tmp_path / "alerts.csv")  # fmt: skip
    assert scored.exit_code == 0, scored.stderr
    model = toprank.load(out)
    data = toprank.RelationalData.from_folder(tables, label="ill")
    best = np.argsort(-model.decision_function(data), kind="stable")[:5] + 1
    alerts = pd.read_csv(tmp_path / "alerts.csv")
    assert len(alerts) == 5
    assert set(alerts["row"]) <= set(range(1, 61))
    assert model.decision_function(data)[alerts["row"] - 1].min() >= (
        model.decision_function(data)[best - 1].min()
    )


def test_a_model_of_tables_gets_the_facts_as_columns(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.toprank"
    fitted = run("fit", "--relational", tables, "--target", "ill", "--model", "linear",
                 "--folds", 2, "--out", out, "--json")  # fmt: skip
    assert fitted.exit_code == 0, fitted.stderr
    assert json.loads(fitted.stdout)["held_out_average_precision"] > 0.5
    scored = run("score", out, "--relational", tables, "--budget", 3, "--reasons", 0, "--json")
    assert scored.exit_code == 0, scored.stderr
    assert json.loads(scored.stdout)["n_alerts"] == 3


def test_models_are_compared_on_a_folder(tables: Path, tmp_path: Path, monkeypatch) -> None:
    quick = selection_models.Candidate("LogisticRanker", "a stand-in")
    monkeypatch.setitem(selection_models.MODELS, "yardstick", quick)
    found = run("compare", "--relational", tables, "--target", "ill", "--models", "linear",
                "--splits", 2, "--repeats", 1, "--no-page", "--json")  # fmt: skip
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout)["rows"] == 60


def test_what_does_not_fit_together_is_refused(tables: Path, tmp_path: Path, folder) -> None:
    out = ["--out", tmp_path / "m.toprank"]
    assert "no labels: name the column of its examples by --target" in one_line(
        run("fit", "--relational", tables, *out)
    )
    assert "--id is for one table; --relational names a folder of several" in one_line(
        run("fit", "--relational", tables, "--target", "ill", "--id", "person", *out)
    )
    assert "ranks rows of one table; --relational is for models of several" in one_line(
        run("score", folder / "linear.toprank", "--relational", tables, "--budget", 3)
    )
    assert "needs relational data, not one table" in one_line(
        run(
            "fit",
            folder / "early.csv",
            "--target",
            "is_fraud",
            "--id",
            "payment",
            "--time",
            "day",
            "--model",
            "clauses",
            *out,
        )
    )
    assert "there is no folder" in one_line(
        run("fit", "--relational", tmp_path / "nowhere", "--target", "ill", *out)
    )
