"""`toprank fit` without a model, and `compare` with the model auto."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_cases import rows, run

import toprank
from toprank.automatic import portfolio
from toprank.selection import models as selection_models

FEATURES = ["amount", "ratio", "country"]
ROLES = ["--target", "is_fraud", "--drop", "payment,day"]


@pytest.fixture(autouse=True)
def _one_quick_configuration(monkeypatch):
    quick = {"linear": portfolio.PORTFOLIO["linear"]}
    monkeypatch.setattr(portfolio, "PORTFOLIO", quick)
    yardstick = selection_models.Candidate("LogisticRanker", "a stand-in")
    monkeypatch.setitem(selection_models.MODELS, "yardstick", yardstick)


def test_fit_is_automatic_by_default(folder, tmp_path):
    path = tmp_path / "m.toprank"
    result = run("fit", folder / "early.csv", *ROLES, "--time-limit", 60, "--out", path)
    assert result.exit_code == 0, result.stderr
    assert "AP to expect" in result.stdout
    model = toprank.load(path)
    assert type(model.estimator_).__name__ == "AutoRanker"
    probability = model.predict_proba(rows()[FEATURES])[:, 1]
    assert probability.mean() == pytest.approx(rows()["is_fraud"].mean(), abs=0.1)


def test_fit_says_what_to_expect_as_json(folder, tmp_path):
    result = run("fit", folder / "early.csv", *ROLES, "--no-calibration", "--json", "--out",
                 tmp_path / "m.toprank")  # fmt: skip
    found = json.loads(result.stdout)
    assert found["members"] == {"linear": 1.0}
    expected = found["estimated"]["average_precision"]
    assert expected["low"] <= expected["value"] <= expected["high"]
    scores = toprank.load(tmp_path / "m.toprank").decision_function(rows()[FEATURES])
    assert np.isfinite(scores).all()


def test_compare_puts_it_beside_the_others(folder):
    result = run("compare", folder / "early.csv", *ROLES, "--models", "auto,linear", "--splits", 2,
                 "--repeats", 1, "--time-limit", 30, "--no-page", "--json")  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert {"auto", "linear"} <= set(json.loads(result.stdout)["models"])
