"""From scores to a page: one dict of plain data, and one HTML file that shows it.

`evaluate` computes everything; `render` and `write_page` only lay it out. The page works offline, asks
for nothing from any network, and shows no figure that is not in the dict.
"""

from __future__ import annotations

from toprank.report.evaluate import evaluate
from toprank.report.page import render, write_page

__all__ = ["evaluate", "render", "write_page"]
