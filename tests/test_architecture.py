"""The layers of the library: imports point down only, and heavy libraries have one home each."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import toprank

ROOT = Path(toprank.__file__).parent
FAMILIES = ("boosting", "rules", "trees", "margin")
# From the top down. A part may import the parts of its own line and of the lines below it.
LAYERS = [
    ("__main__", "demo"),
    ("cli",),
    ("report", "selection", "shortlisting", "persistence"),
    ("automatic",),
    (*FAMILIES, "datasets", "distributed", "out_of_core"),
    ("base", "encoding", "folds", "leaks", "sampling", "stopping", "metrics", "objectives", "pairs", "binning",
     "rule", "sources", "tables"),
    ("validation", "parallel", "exchange", "columns", "ranking", "_ranking_kernels", "parsing", "progress",
     "formatting", "docstrings", "registry", "temporary", "_version"),
]  # fmt: skip
# Never, even on the same line: neither of metrics and objectives can hide a mistake of the other.
FORBIDDEN = {("metrics", "objectives"), ("objectives", "metrics")} | {
    (family, other) for family in FAMILIES for other in FAMILIES if family != other
}
HOMES = {
    "xgboost": {"boosting"},
    "duckdb": {"tables", "rules"},
    "dask": {"distributed"},
    "distributed": {"distributed"},
    "plotly": {"report"},
    "typer": {"cli", "demo"},
    "onnx": {"persistence"},
    "mlflow": {"persistence"},
    "imblearn": {"margin"},
    "matplotlib": {"metrics", "rules", "trees"},
    "lightgbm": {"objectives"},
    "catboost": {"objectives"},
    "torch": {"objectives"},
}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def part(path: Path) -> str:
    """The module or sub-package, directly below the package, that a file belongs to."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def level(name: str) -> int:
    homes = [k for k, layer in enumerate(LAYERS) if name in layer]
    assert homes, f"{name} is in none of the layers: give it a place in LAYERS"
    return homes[0]


def imports(path: Path) -> set[str]:
    """Everything that a file imports, at its top or inside functions, by its whole name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write the whole name"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_the_layers_name_what_exists() -> None:
    named = {name for layer in LAYERS for name in layer}
    assert named == {part(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    here = part(path)
    for name in imports(path):
        top, *inside = name.split(".")
        assert top not in {"experiments", "benchmarks", "tests"}, f"{path} imports {top}"
        assert here in HOMES.get(top, {here}), f"{here} imports {top}; only {HOMES[top]} may"
        if top != "toprank" or not inside or not _is_part(inside[0]):
            continue
        there = inside[0]
        assert level(there) >= level(here), f"{here} imports {there}, which lies above it"
        assert (here, there) not in FORBIDDEN, f"{here} must not import {there}"


def _is_part(name: str) -> bool:
    return (ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file()


def test_a_boosted_relational_ranker_has_one_base_of_its_own() -> None:
    own = [
        c for c in toprank.RelationalPRankBoost.__mro__ if c.__module__.startswith("toprank.rules")
    ]
    assert len(own) <= 3, own
