"""The page: one HTML file with its data, its style, its script and Plotly inside.

A content security policy allows only the two scripts that are known by their hash and forbids every
request, so nothing that a name or a cell contains can run or leave. Plotly travels compressed and is
unpacked by the browser.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from toprank.report.figures import build_figures
from toprank.report.text import page_texts
from toprank.tables import StrPath, write_text

__all__ = ["render", "write_page"]

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def render(report: dict[str, Any]) -> str:
    """Lay out the dict of `toprank.report.evaluate` as a page.

    Parameters
    ----------
    report : dict
        As `evaluate` returned it, or read back from JSON.

    Returns
    -------
    str
        A whole HTML document that works offline.

    Examples
    --------
    >>> from toprank.report import evaluate
    >>> page = render(evaluate([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], model="demo", n_resamples=50))
    >>> page.startswith("<!doctype html>")
    True
    """
    from markupsafe import Markup  # for what is HTML, a script or JSON already

    figures = build_figures(report)
    texts = page_texts(report)
    script, style = _resource("page.js"), _resource("page.css")
    library, library_hash = _plotly()
    policy = POLICY.format(scripts=f"'{_hash(script)}' '{library_hash}'")
    data = {
        "lists": texts["lists"],
        "lengths": report["lists"]["length"],
        "start": texts["start"],
        "alerts": texts["alerts"],
        "marks": {name: report["lists"][name]["value"] for name in ("precision", "recall")},
        "figures": {
            name: {key: figure[key] for key in ("traces", "layout", "height")}
            for name, figure in figures.items()
        },
    }
    return _environment().get_template("page.html").render(
        report=report,
        texts=texts,
        figures=figures,
        policy=policy,
        script=Markup(script),
        style=Markup(style),
        library=Markup(library),
        data=Markup(_embedded(data)),
    )  # fmt: skip


def write_page(report: dict[str, Any], path: StrPath) -> None:
    """Write the page of a report, whole or not at all.

    Parameters
    ----------
    report : dict
        As `toprank.report.evaluate` returned it.
    path : path
        Where; the folder must exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from toprank.report import evaluate
    >>> report = evaluate([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], n_resamples=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(report, pathlib.Path(folder) / "report.html")
    """
    write_text(render(report), path)


def _embedded(data: Any) -> str:
    """JSON that cannot end its script element, nor a line where JavaScript would."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


@lru_cache(maxsize=1)
def _plotly() -> tuple[str, str]:
    """Plotly's script, compressed and in base64, and the hash of its text."""
    from plotly.offline import get_plotlyjs

    text = get_plotlyjs()
    packed = gzip.compress(text.encode("utf-8"), 9, mtime=0)
    return base64.b64encode(packed).decode("ascii"), _hash(text)


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("toprank.report", "template"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _resource(name: str) -> str:
    return files("toprank.report").joinpath("template", name).read_text(encoding="utf-8")
