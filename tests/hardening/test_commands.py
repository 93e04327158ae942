"""What commands refuse, and that they refuse it before they work."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from cli_cases import one_line, rows, run, written


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(rows(), tmp_path_factory.mktemp("commands") / "rows.csv")


def test_too_many_threads_are_refused_at_once(tmp_path: Path) -> None:
    refused = run(
        "fit", tmp_path / "none.csv", "--target", "y", "--jobs", 100_000, "--out", "m.toprank"
    )
    assert "--jobs" in one_line(refused)


@pytest.mark.parametrize("command", ["fit", "score"])
def test_a_huge_number_is_named(command: str, tmp_path: Path, labelled: Path) -> None:
    table = rows(100)
    table.loc[6, "amount"] = 1e200
    path = written(table, tmp_path / "huge.csv")
    options = [
        "--target",
        "is_fraud",
        "--drop",
        "payment,day",
        "--model",
        "linear",
        "--no-calibration",
    ]
    if command == "fit":
        arguments = [path, *options, "--out", tmp_path / "m.toprank"]
    else:
        fitted = run("fit", labelled, *options, "--out", tmp_path / "m.toprank")
        assert fitted.exit_code == 0, fitted.stderr
        arguments = [tmp_path / "m.toprank", path, "--budget", 3]
    assert "column 'amount' holds 1e+200 in row 7" in one_line(run(command, *arguments))


def test_a_repeated_header_does_not_leak_the_label(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    lines = [f"{x:.3f},{y},{y}" for x, y in zip(rng.normal(size=200), labels, strict=True)]
    path.write_text("\n".join(["amount,target,target", *lines]) + "\n")
    refused = run(
        "fit", path, "--target", "target", "--model", "linear", "--out", tmp_path / "m.toprank"
    )
    assert "2 columns named 'target' (columns 2 and 3)" in one_line(refused)


@pytest.mark.parametrize("words", [("bad", "good"), ("fraud", "ok")])
def test_evaluate_guesses_no_positive_among_words(words: tuple[str, str], tmp_path: Path) -> None:
    table = pd.DataFrame({"y": np.resize(words, 40), "s": np.arange(40.0)})
    path = written(table, tmp_path / "scores.csv")
    assert "--positive" in one_line(run("evaluate", path, "--label", "y", "--score", "s"))
    named = run(
        "evaluate", path, "--label", "y", "--score", "s", "--positive", words[0], "--resamples", 0
    )
    assert named.exit_code == 0, named.stderr
    clear = written(table.assign(y=np.resize(["no", "yes"], 40)), tmp_path / "clear.csv")
    assert run("evaluate", clear, "--label", "y", "--score", "s", "--resamples", 0).exit_code == 0


@pytest.mark.parametrize(("cell", "word"), [([1, 2], "a list"), (b"ab", "a binary cell")])
@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_labels_that_are_no_labels(cell: object, word: str, command: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"y": [cell] * 20, "s": np.arange(20.0)})
    path = written(table, tmp_path / "rows.parquet")
    options = {
        "fit": ["--target", "y", "--out", tmp_path / "m.toprank"],
        "evaluate": ["--label", "y", "--score", "s"],
    }[command]
    assert f"column 'y' holds {word} in row 1" in one_line(run(command, path, *options))
