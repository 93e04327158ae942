"""Run commands on hostile tables with odd options in a process of its own; one line of JSON for each.

    python run_commands.py FOLDER FIRST LAST

A command either answers (exit code 0) or refuses (exit code 2) with one line on the error stream; it leaves no
temporary file, no output of a refused run, and no cell in a CSV file that a spreadsheet would run.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import random
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from open_mutants import RESIDENT, SECONDS, limit, resident
from typer.testing import CliRunner

from toprank.cli import app, inputs

NAMES = ("amount", "target", "id", "x", "", " ", "=A1", "a,b", 'say "hi"', "é", "\x1b[31m", "select", "a\nb",
         "target_1", "Amount", "x" * 300, "<script>", "'; DROP TABLE x; --", "_", "0")  # fmt: skip
CELLS: tuple[Any, ...] = (
    "", "NA", "inf", "-inf", "1e400", "1e200", "-1e39", "0", "1", "2", "-1", "0.5", "yes", "no", "=1+1", "@x",
    "2024-02-30", "2024-01-01", "true", "NULL", "é", "\x00", "a\nb", '"', "x" * 5000, "1,5", "0x10", "1_000",
    "\u0661", "NaN", "nan", "+5", "1e-320", "\ufeff", "'", "\\'", "18446744073709551616",
)  # fmt: skip
OBJECTS: tuple[Any, ...] = (
    None, [1, 2], b"ab", {"a": 1}, pd.Timestamp("2024-01-01"), True, 10**30, 1.5, "text", np.nan,
)  # fmt: skip
OPTIONS: dict[str, tuple[Any, ...]] = {
    "--id": NAMES, "--time": NAMES, "--weight": ("b", *NAMES), "--drop": ("country", *NAMES), "--text": NAMES,
    "--positive": CELLS,
    "--jobs": (1, 0, -1, 100_000, "x"), "--seed": (0, -1, 2**40), "--folds": (0, 1, 2, 10**6), "--gap": (-1, 0),
}  # fmt: skip
QUERIES = (
    "SELECT 1; SELECT 2", "COPY (SELECT 1) TO 'stolen.csv'", "ATTACH 'other.db'", "INSTALL httpfs", "SELECT",
    "SELECT * FROM read_text('/etc/passwd')", "SELECT 1 AS x, 2 AS x", "PRAGMA version", "'",
    "SELECT * FROM 'DATA'", "SELECT * FROM glob('/*')", "SET threads = 1", "EXPORT DATABASE 'all'",
    "SELECT * FROM 'DATA' LIMIT 0", "",
    "CREATE TABLE t AS SELECT 1", "SELECT * FROM 'https://example.org/x.csv'", "WITH a AS (SELECT 1) FROM a",
)  # fmt: skip


def hostile_table(dice: random.Random) -> pd.DataFrame:
    """A table with labels and scores in which some names and cells are out to do harm."""
    n_rows = dice.choice((0, 1, 2, 30, 30, 30, 60, 60))
    rng = np.random.default_rng(dice.randrange(2**32))
    y = (rng.random(n_rows) < 0.4).astype(int)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n_rows) + y,
            "b": rng.integers(0, 5, n_rows),
            "c": rng.random(n_rows),
            "country": rng.choice(["NL", "DE"], n_rows),
            "target": y,
        }
    )
    for _ in range(dice.choice((0, 0, 0, 1, 2))):
        column, values = dice.randrange(table.shape[1]), dice.choice((CELLS, OBJECTS))
        cells = table.iloc[:, column].astype(object)
        for _ in range(dice.choice((1, 1, n_rows))):
            if n_rows:
                cells.iloc[dice.randrange(n_rows)] = dice.choice(values)
        table.isetitem(column, cells.array)
    names = [dice.choice(NAMES) if dice.random() < 0.03 else name for name in table.columns]
    return table.set_axis(names, axis=1)


def written(table: pd.DataFrame, folder: Path, dice: random.Random) -> Path:
    """The table as a file, perhaps a damaged one."""
    kind = dice.choice(("csv", "csv", "tsv", "csv.gz", "parquet"))
    path = folder / f"rows.{kind}"
    if kind == "parquet":
        try:
            table.to_parquet(path, index=False)
        except Exception:  # some mixtures have no place in Parquet
            path = folder / "rows.csv"
            table.to_csv(path, index=False)
    else:
        text = table.to_csv(index=False, sep="\t" if kind == "tsv" else dice.choice(",,,;|"))
        encoding = dice.choice((*["utf-8"] * 8, "utf-16", "latin-1"))
        data = text.encode(encoding, "replace")
        path.write_bytes(gzip.compress(data) if kind == "csv.gz" else data)
    if dice.random() < 0.15:
        data = bytearray(path.read_bytes())
        for _ in range(dice.choice((1, 5))):
            if data:
                data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(data[: dice.randrange(len(data) + 1)] if dice.random() < 0.3 else data)
    return path


def arguments(folder: Path, models: Path, dice: random.Random) -> list[Any]:
    """A command with a table and some options that may not suit it."""
    data = written(hostile_table(dice), folder, dice)
    source: list[Any] = [data]
    if dice.random() < 0.15:
        source = ["--sql", dice.choice(QUERIES).replace("DATA", str(data))]
    command = dice.choice(("fit", "fit", "score", "evaluate", "evaluate", "explain"))
    streamed = dice.random() < 0.15 and command in ("fit", "score")
    if command == "fit":
        model = dice.choice(("ap_sigmoid",) if streamed else ("linear", "rankboost"))
        chosen = [*source, "--target", dice.choice((*["target"] * 8, *NAMES[:4])), "--model", model,
                  "--no-calibration", "--out", folder / "m.toprank"]  # fmt: skip
        for option in dice.sample(sorted(OPTIONS), dice.choice((0, 0, 1, 2))):
            chosen += [option, dice.choice(OPTIONS[option])]
    elif command == "score":
        cut = dice.choice(
            (["--budget", 3], ["--budget", 10**9], ["--all"], ["--fpr", "nan"], ["--cost", "1,x"])
        )
        chosen = [models / "tree.toprank", *source, *cut, "--out", folder / "alerts.csv"]
    elif command == "evaluate":
        chosen = [*source, "--label", dice.choice(("target", "target", "country", "b")), "--score",
                  dice.choice(("a", "b", "c", "country")), "--resamples", dice.choice((0, 5))]  # fmt: skip
        chosen += dice.choice(
            ([], [], ["--positive", dice.choice(CELLS)], ["--weight", "b"], ["--level", 2])
        )
    else:
        chosen = [models / "rules.toprank", *source, "--top", dice.choice((0, 2, 10**9))]
    if streamed:
        chosen += ["--memory", dice.choice(("900MB", "900MB", "900MB", "1B", "x"))]
    return [command, *chosen, *dice.choice(([], ["--json"] if command != "x" else []))]


def outcome(folder: Path, given: list[Any]) -> str:
    """Whether a command answered or refused as it should; what is wrong otherwise."""
    before = set(os.listdir(folder))
    result = CliRunner().invoke(app, [str(part) for part in given])
    new = set(os.listdir(folder)) - before
    if result.exit_code not in (0, 2):
        return f"exit code {result.exit_code}: {result.exception!r} {result.stderr[-300:]}"
    if "unexpected" in result.stderr or "Traceback" in result.stderr:
        return f"a bug shows: {result.stderr[-300:]}"
    if result.exit_code == 2:
        errors = [
            line for line in result.stderr.splitlines() if line.startswith("toprank: error: ")
        ]
        one = len(errors) == 1 and not result.stdout and not new
        return (
            "refused"
            if one
            else f"not one line: {result.stdout[-200:]} {result.stderr[-300:]} {new}"
        )
    if any(not c.isprintable() and c != "\n" for c in result.stdout + result.stderr):
        return "the terminal is steered"
    if new - {"m.toprank", "alerts.csv"}:
        return f"files are left: {new}"
    return "answered" if "alerts.csv" not in new else _formulas(folder / "alerts.csv")


def _formulas(path: Path) -> str:
    with path.open(newline="") as file:
        for row in csv.reader(file):
            for cell in row:
                if cell[:1] in ("=", "@", "\t", "\r"):
                    return f"a formula: {cell[:50]}"
    return "answered"


def main() -> None:
    warnings.simplefilter("ignore")
    limit()
    inputs.FIXED_BYTES = 10**9  # so --memory streams small tables too
    models, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for seed in range(first, last):
        dice, folder = random.Random(f"command {seed}"), models / f"command-{first}"
        folder.mkdir(exist_ok=True)
        for name in os.listdir(folder):
            (folder / name).unlink()
        given = arguments(folder, models, dice)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.chdir(folder):
            found = outcome(folder, given)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if resident() > RESIDENT:
            found = f"{found}, and used {resident() / 2**30:.1f} GiB"
        case = {
            "seed": seed,
            "kind": given[0],
            "outcome": found,
            "arguments": [str(a) for a in given],
        }
        sys.stdout.write(json.dumps(case) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
