"""Mutated model files: refused in one line, or still a model; never another error, a crash or gigabytes.

A few hundred of them here; `make fuzz` opens tens of thousands.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import fuzz
import pytest
from fuzz import Report, run_cases, save_models

N_FILES, N_COMMANDS = 300, 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mutants")
    save_models(place)
    return place


def test_mutants_are_refused_or_harmless(folder: Path) -> None:
    outcomes: Counter[tuple[str, str]] = Counter()
    for case in run_cases("open_mutants.py", folder, 0, N_FILES):
        assert case["outcome"] in ("refused", "used"), case
        outcomes[str(case["kind"]), str(case["outcome"])] += 1
    # a changed structure is nearly always a lie; the dates of members may change without harm
    assert outcomes["structure", "refused"] > 2 * outcomes["structure", "used"]
    assert outcomes["bytes", "refused"] > 0
    assert outcomes["cells", "used"] > 0


def test_commands_on_hostile_tables_answer_or_refuse_in_one_line(folder: Path) -> None:
    outcomes: Counter[str] = Counter()
    for case in run_cases("run_commands.py", folder, 0, N_COMMANDS):
        assert case["outcome"] in ("answered", "refused"), case
        outcomes[str(case["outcome"])] += 1
    assert min(outcomes["answered"], outcomes["refused"]) > 20


def test_kept_runs_are_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "RECORD", tmp_path / "fuzz.jsonl")
    assert "No run" in fuzz.table()
    fuzz.record("model files", 100, 50, Report(Counter(refused=39, used=10, finding=1)))
    assert "| model files | 100 to 149 | 39 | 10 | 1 |" in fuzz.table()
