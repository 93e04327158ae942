"""Fixtures of the command line's tests."""

from __future__ import annotations

import pytest
from cli_cases import rows, run, written


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Labelled rows, new rows and a calibrated model: early.csv, late.csv, linear.toprank."""
    place = tmp_path_factory.mktemp("cli")
    written(rows(seed=0), place / "early.csv")
    written(rows(seed=1), place / "late.csv")
    fitted = run("fit", place / "early.csv", "--target", "is_fraud", "--id", "payment", "--time",
                 "day", "--model", "linear", "--folds", 3, "--out", place / "linear.toprank",
                 "--json")  # fmt: skip
    assert fitted.exit_code == 0, fitted.stderr
    return place
