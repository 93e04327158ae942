"""Fixtures that all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# No deadline: the first call of a kernel compiles it. Derandomised: a red run is red for everyone.
settings.register_profile("toprank", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("toprank")

# Shells start background jobs with Ctrl-C ignored; tests that send it need it to arrive.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def data_dir(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real data sets, or a skip where there is none."""
    folder = Path(os.environ.get("TOPRANK_DATA", BESIDE))
    if not folder.is_dir():
        pytest.skip("no real data here: set TOPRANK_DATA to a folder with the Parquet files")
    monkeypatch.setenv("TOPRANK_DATA", str(folder))
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20250)
