"""What the tests of the command line share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from toprank.__main__ import demo
from toprank.cli import app

assert demo  # its command is on the app


def run(*arguments, **options):
    """The command line in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def real(*arguments, **options):
    """A real process, as a user starts it."""
    command = [sys.executable, "-m", "toprank", *map(str, arguments)]
    options = {"capture_output": True, "text": True, "timeout": 300, **options}
    return subprocess.run(command, check=False, **options)


def one_line(result):
    """The error line of a refused run in this process."""
    assert result.exit_code == 2, (result.exit_code, result.stdout, result.stderr)
    return _only_error(result.stdout, result.stderr)


def one_real_line(result):
    """The error line of a refused process."""
    assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
    return _only_error(result.stdout, result.stderr)


def _only_error(stdout, stderr):
    assert stdout == ""
    lines = stderr.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("toprank: error: ")
    return lines[0]


def rows(n_rows=400, seed=0):
    """Labelled rows with numbers, a category, missing cells, a day and an identifier."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n_rows) < 0.2).astype(int)
    table = pd.DataFrame(
        {
            "payment": [f"P{number}" for number in range(n_rows)],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n_rows) // 40, "D"),
            "amount": rng.gamma(2, 10, n_rows).round(2) * (1 + y),
            "ratio": rng.normal(size=n_rows) + y,
            "country": np.where(rng.random(n_rows) < 0.3 + 0.4 * y, "DE", "NL"),
            "is_fraud": y,
        }
    )
    table.loc[rng.random(n_rows) < 0.1, "ratio"] = np.nan
    return table


def written(table, path):
    """A table as a file."""
    path = Path(path)
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False)
    return path
