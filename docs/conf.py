"""Sphinx configuration. What pages show is made in the build: lists, tables, output, pictures."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "tests" / "hardening")]

import fuzz

from experiments import summary
from toprank import __version__, metrics, objectives
from toprank.registry import ESTIMATORS, RELATIONAL, RELATIONAL_TRANSFORMERS, TRANSFORMERS

project = "toprank"
copyright = "the toprank developers"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas without the network
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "console",  # docs/console.py: {run} and {python}
]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
templates_path: list[str] = []
autosummary_generate = True
numpydoc_show_class_members = False
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
suppress_warnings = ["config.cache", "myst.header", "autosummary"]

html_theme = "pydata_sphinx_theme"
html_title = f"toprank {__version__}"
html_static_path = ["pictures", "static"]
html_css_files = ["custom.css"]
html_sidebars = {page: [] for page in ("index", "tutorial", "results", "results/*", "changelog")}
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"spark_bridge|__init__",
    "image_scrapers": ("matplotlib",),
    "download_all_examples": False,
    "show_signature": False,
    "plot_gallery": "True",
    "matplotlib_animations": False,
    "within_subsection_order": "FileNameSortKey",
}

# Pages written from the registries and from the results of the experiments, so that none is forgotten.
GENERATED = HERE / "api"
SECTIONS = {
    "Comparing models": ("selection.compare_models", "selection.make_splits", "selection.find_leaks"),
    "From scores to a list": (
        "CalibratedRanker", "choose_cut", "shortlist", "shortlisting.drift", "shortlisting.reasons",
        "shortlisting.global_importance", "shortlisting.effects",
    ),
    "Reports": ("report.evaluate", "report.write_page"),
    "Past one machine": (
        "DaskGradientBoostingRanker", "distributed.fit_distributed", "distributed.fit_on_worker",
        "distributed.evaluate", "out_of_core.score_source",
    ),
    "Model files": ("save", "load", "to_onnx", "show_versions"),
    "Relational data": ("RelationalData", "Mode"),
    "Data sets": (
        "datasets.load", "datasets.make_card_fraud", "datasets.make_queries", "datasets.make_relational",
    ),
}  # fmt: skip


def autosummary(names: list[str]) -> str:
    """A table of names of toprank, each with a page of its own."""
    lines = [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
    return "\n".join([*lines, *(f"   toprank.{name}" for name in names)]) + "\n"


def section(title: str, body: str) -> str:
    return f"{title}\n{'-' * len(title)}\n\n{body}\n"


def write_api() -> None:
    """Write the pages of the API from the registries."""
    GENERATED.mkdir(exist_ok=True)
    presets = ["SGBAP", "SGBAPsig", "LambdaMART", "POISE"]
    pages = {
        "estimators": [
            ("Rankers of a table", autosummary(list(ESTIMATORS))),
            ("Published settings", autosummary(presets)),
            ("Several tables", autosummary([*RELATIONAL, *RELATIONAL_TRANSFORMERS])),
            ("Transformers", autosummary(list(TRANSFORMERS))),
        ],
        "metrics": [
            ("Functions and curves", autosummary([f"metrics.{n}" for n in metrics.__all__ if n not in
                                                  {"METRICS", "SCORERS"}])),
        ],
        "tools": [(title, autosummary(list(names))) for title, names in SECTIONS.items()],
        "objectives": [
            ("Names", objective_table()),
            ("Making one", autosummary(["objectives.get", "objectives.Objective"])),
        ],
    }  # fmt: skip
    for name, sections in pages.items():
        title = name.capitalize()
        text = "".join(section(*each) for each in sections)
        (GENERATED / f"{name}.rst").write_text(f"{title}\n{'=' * len(title)}\n\n{text}")


def objective_table() -> str:
    """Every objective by name, with its line and whether labels may be grades."""
    rows = [
        f"   * - ``{name}``\n     - {cls.summary}\n     - {'yes' if cls.graded else ''}\n"
        for name, cls in sorted(objectives.OBJECTIVES.items())
    ]
    return (
        ".. list-table::\n   :header-rows: 1\n\n   * - name\n     - what it minimises\n     - grades\n"
        + "".join(rows)
    )


def write_results() -> None:
    """Write results.md, and bring the pages of single experiments and their figures into the manual."""
    folder = HERE / "results"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    summary.write(HERE / "results.md")
    (folder / "which_objective.inc").write_text(summary.which_objective())
    (folder / "what_our_runs_say.inc").write_text(summary.what_our_runs_say())
    (folder / "what_came_of_sgbap.inc").write_text(summary.what_came_of_sgbap())
    (folder / "fuzz.inc").write_text(fuzz.table())
    for source in sorted((HERE.parent / "experiments" / "results").iterdir()):
        if source.suffix == ".png":
            shutil.copy(source, folder / source.name)
        elif source.suffix == ".md":
            (folder / source.name).write_text("---\norphan: true\n---\n" + source.read_text())


def write_changelog() -> None:
    """The changelog of the project, one level of headings as it stands there."""
    text = (HERE.parent / "CHANGELOG.md").read_text()
    (HERE / "changelog.md").write_text(re.sub(r"\]\((?!http)[^)]*\)", "]", text))


def link_results(app, docname: str, source: list[str]) -> None:
    """Links to experiments/results, which a reader of the repository can follow, to their copies here."""
    source[0] = re.sub(r"\]\(\.\./((?:\.\./)*)experiments/results/", r"](\1results/", source[0])


def setup(app) -> None:
    app.connect("source-read", link_results)


write_api()
write_results()
write_changelog()
