"""What the experiments share: results that survive an interruption, intervals, tables.

An experiment is a list of cells (a data set, a split, a method). Each finished cell is one line of a
JSON-lines file, so a run that was stopped goes on where it was, and a table is made from what is there.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parent
LIBRARY = ROOT.parent / "src" / "toprank"
BESIDE = ROOT.parent.parent / "shared" / "data"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def use_local_data() -> None:
    """Let `toprank.datasets` read the data folder that lies next to the project, if there is one."""
    if "TOPRANK_DATA" not in os.environ and BESIDE.is_dir():
        os.environ["TOPRANK_DATA"] = str(BESIDE)


def code_state(*packages: str) -> str:
    """Eight digits that stand for the code of some packages of the library, such as "boosting".

    Comments, docstrings and layout do not count.
    """
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted((LIBRARY / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            for node in ast.walk(tree):
                if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
                    del node.body[0]
            digest.update(f"{path.relative_to(LIBRARY).as_posix()}\n{ast.unparse(tree)}\n".encode())
    return digest.hexdigest()[:8]


class Results:
    """Finished cells of one experiment: a JSON-lines file, one cell a line; of a cell twice the last line counts."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.cells: list[dict[str, Any]] = []
        self._place: dict[str, int] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                if line:
                    self._keep(json.loads(line))

    @staticmethod
    def _key(cell: dict[str, Any]) -> str:
        return json.dumps(cell, sort_keys=True)

    def _keep(self, record: dict[str, Any]) -> None:
        """Take in a finished cell, in the place of an earlier one of the same name."""
        place = self._place.setdefault(self._key(record["cell"]), len(self.cells))
        self.cells[place : place + 1] = [record]

    def run(
        self,
        cells: Iterable[dict[str, Any]],
        compute: Callable[..., dict[str, Any]],
        *,
        code: str | None = None,
        anew: bool = False,
    ) -> None:
        """Compute `compute(**cell)` for every cell that is not there yet; keep each at once.

        `code` says what code made a cell and is kept with it; with `anew` those of other code are computed again.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for cell in cells:
            place = self._place.get(self._key(cell))
            if place is not None and not (anew and self.cells[place].get("code") != code):
                continue
            start = time.perf_counter()
            values = compute(**cell)
            record = {"cell": cell, **values, "seconds": round(time.perf_counter() - start, 3)}
            if code is not None:
                record["code"] = code
            with self.path.open("a") as stream:
                stream.write(json.dumps(record) + "\n")
            self._keep(record)
            shown = " ".join(f"{k}={v}" for k, v in cell.items())
            print(f"{shown}  ({record['seconds']:.1f} s)", flush=True)

    def tidy(self) -> None:
        """Leave out the lines that later ones have replaced; nothing else may write to the file meanwhile."""
        beside = self.path.with_suffix(".new")
        beside.write_text("".join(json.dumps(record) + "\n" for record in self.cells))
        beside.replace(self.path)

    def select(self, **wanted: Any) -> list[dict[str, Any]]:
        """The finished cells whose keys have these values."""
        return [c for c in self.cells if all(c["cell"].get(k) == v for k, v in wanted.items())]

    def values(self, name: str, **wanted: Any) -> np.ndarray:
        """One figure of the selected cells."""
        return np.array([c[name] for c in self.select(**wanted)], dtype=float)


def corrected_interval(
    differences: np.ndarray, test_share: float, level: float = 0.95
) -> tuple[float, float, float]:
    """Mean and interval of paired differences over repeated splits that share training rows.

    Nadeau & Bengio (2003): the variance of the mean is (1/J + test/train) times the sample variance.
    """
    differences = np.asarray(differences, dtype=float)
    n = len(differences)
    mean = float(differences.mean())
    if n < 2:
        return mean, float("nan"), float("nan")
    variance = differences.var(ddof=1) * (1 / n + test_share / (1 - test_share))
    half = stats.t.ppf((1 + level) / 2, n - 1) * np.sqrt(variance)
    return mean, mean - half, mean + half


def mean_interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Mean and t interval of values from independent repeats."""
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return mean, mean - half, mean + half


def reaches(ours: float, published: float, deviation: float = 0.0) -> str:
    """Say whether our mean is at or above the published one, or within its published deviation."""
    if ours >= published:
        return "reaches"
    return "reaches, within its deviation," if ours >= published - deviation else "does not reach"


def markdown_table(header: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table; floats with four digits."""

    def show(value: Any) -> str:
        if isinstance(value, float):
            return "-" if np.isnan(value) else f"{value:.4f}"
        return str(value)

    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(show, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"
