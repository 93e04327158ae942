"""fit and score on rows that are said not to fit in memory: streamed, with the same answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_cases import one_line, rows, run, written

import toprank
from toprank.cli import inputs
from toprank.tables import read_table

LIMIT = ["--memory", "1GB"]


@pytest.fixture
def large(monkeypatch):
    """Let every row look like a gigabyte."""
    monkeypatch.setattr(inputs, "BYTES_A_ROW", 10**9)
    monkeypatch.setattr(inputs, "EXPANSION", 10**9)


def test_small_files_are_not_streamed(folder):
    assert not inputs.would_not_fit(str(folder / "early.csv"), None, None)
    assert not inputs.would_not_fit(str(folder / "early.csv"), None, "1GB")
    assert not inputs.would_not_fit(str(folder / "missing.csv"), None, None)
    assert not inputs.would_not_fit("-", None, "1GB")


def test_fit_and_score_stream(large, tmp_path):
    for name, seed in (("early.parquet", 0), ("late.parquet", 1)):
        written(rows(seed=seed), tmp_path / name)
    out = tmp_path / "m.toprank"
    result = run("fit", tmp_path / "early.parquet", "--target", "is_fraud", "--id", "payment",
                 "--drop", "day", "--model", "logistic", "--out", out, "--json", *LIMIT)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == 400
    assert "not calibrated" in result.stderr
    model = toprank.load(out)
    table = read_table(tmp_path / "late.parquet")
    expected = model.decision_function(table[list(model.feature_names_in_)])

    scores = tmp_path / "scores.parquet"
    result = run("score", out, tmp_path / "late.parquet", "--all", "--id", "payment", "--out",
                 scores, "--json", *LIMIT)  # fmt: skip
    assert result.exit_code == 0, result.stderr
    found = read_table(scores)
    assert found.columns.tolist() == ["payment", "score"]
    np.testing.assert_allclose(found["score"], expected, atol=1e-5)

    result = run("score", out, tmp_path / "late.parquet", "--budget", 5, "--json", *LIMIT)
    assert result.exit_code == 0, result.stderr
    listed = json.loads(result.stdout)["alerts"]
    best = np.argsort(-expected, kind="stable")[:5]
    assert [row["score"] for row in listed] == pytest.approx(expected[best].tolist(), abs=1e-5)
    assert sorted(row["row"] for row in listed) == sorted((best + 1).tolist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "linear"], "cannot be fitted out of core"),
        (["--model", "logistic", "--time", "day"], "--time"),
        (["--model", "logistic", "--memory", "a lot"], "is no size"),
    ],
)
def test_what_cannot_be_streamed(large, folder, tmp_path, arguments, message):
    result = run("fit", folder / "early.csv", "--target", "is_fraud", "--out",
                 tmp_path / "m.toprank", *LIMIT, *arguments)  # fmt: skip
    assert message in one_line(result)
