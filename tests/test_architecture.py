"""The import arrows of the house: they point down only, and heavy libraries have one home each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import toprank

ROOT = Path(toprank.__file__).parent
FAMILIES = {"boosting", "rules", "trees", "margin"}
LAYERS = [  # a part may import the parts of its own line (unless a rule below forbids) and above
    {"ranking", "tasks", "registry", "progress", "_version", "_versions", "columns"},
    {
        "metrics",
        "objectives",
        "pair_sums",
        "binned_sums",
        "rule",
        "base",
        "tables",
        "_pair_kernels",
        "_pair_tiles",
    },
    {*FAMILIES, "linear", "datasets", "distributed"},
    {"selection", "shortlisting", "persistence", "report"},
    {"demo", "cli", "__main__", "__init__"},
]
HOMES = {
    "xgboost": {"boosting", "distributed", "objectives", "persistence"},
    "duckdb": {"tables", "rules"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "plotly": {"report"},
    "typer": {"cli"},
    "skops": {"persistence"},
    "imblearn": {"margin"},
}
FORBIDDEN = {("metrics", "objectives"), ("objectives", "metrics"), *(
    (a, b) for a in FAMILIES for b in FAMILIES if a != b
)}  # fmt: skip


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            raise AssertionError(f"{path}: relative import; write the whole name")
    return found


def level(name: str) -> int:
    homes = [k for k, layer in enumerate(LAYERS) if name in layer]
    assert homes, f"{name} has no place in the layers: give it one"
    return homes[0]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_point_down(path: Path) -> None:
    here = part(path)
    for name in imports(path):
        top, *rest = name.split(".")
        if top in HOMES:
            assert here in HOMES[top], f"{top} is imported in {here}, its homes are {HOMES[top]}"
        if top in {"experiments", "benchmarks", "tests"}:
            raise AssertionError(f"{path} imports {top}")
        if top == "toprank" and rest and (ROOT / rest[0]).with_suffix("").name in _parts():
            there = rest[0]
            assert level(there) <= level(here), f"{here} imports {there}, which lies above it"
            assert (here, there) not in FORBIDDEN, f"{here} must not import {there}"


def _parts() -> set[str]:
    return {part(p) for p in ROOT.rglob("*.py")}
