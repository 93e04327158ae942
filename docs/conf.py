"""Sphinx configuration."""

from __future__ import annotations

from pathlib import Path

from toprank import __version__, objectives
from toprank.registry import ESTIMATORS, RELATIONAL, TRANSFORMERS

project = "toprank"
copyright = "2026, the toprank developers"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
]
html_theme = "furo"
html_title = f"toprank {__version__}"
exclude_patterns = ["_build"]
autosummary_generate = True
numpydoc_show_class_members = False
suppress_warnings = ["myst.xref_missing", "myst.header", "autosummary"]

FUNCTIONS = (
    "selection.compare_models",
    "selection.make_splits",
    "choose_cut",
    "CalibratedRanker",
    "shortlist",
    "report.evaluate",
    "report.write_page",
    "distributed.fit_distributed",
    "save",
    "load",
    "to_onnx",
    "RelationalData",
)

# The lists of estimators and objectives are written from the registries, so none is forgotten.
HERE = Path(__file__).parent
GENERATED = HERE / "api" / "generated"


def write_lists() -> None:
    """Write the tables of estimators and objectives that the pages include."""
    GENERATED.mkdir(parents=True, exist_ok=True)
    names = [*ESTIMATORS, *RELATIONAL, *TRANSFORMERS, "SGBAP", "SGBAPsig", "LambdaMART"]
    lines = [".. autosummary::", "   :toctree: .", "", *(f"   toprank.{name}" for name in names)]
    (GENERATED / "estimators.rst").write_text(
        "Estimators\n==========\n\n" + "\n".join(lines) + "\n"
    )
    functions = ["   toprank." + name for name in FUNCTIONS]
    (GENERATED / "functions.rst").write_text(
        "Comparing, cutting, reporting, keeping\n======================================\n\n"
        + "\n".join([".. autosummary::", "   :toctree: .", "", *functions])
        + "\n"
    )
    rows = ["| name | what it minimises | grades |", "|---|---|---|"]
    for name, cls in sorted(objectives.OBJECTIVES.items()):
        rows.append(f"| `{name}` | {cls.summary} | {'yes' if cls.graded else ''} |")
    (GENERATED / "objectives.md").write_text("# Objectives\n\n" + "\n".join(rows) + "\n")


write_lists()
