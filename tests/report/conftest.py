"""One browser for all tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_cases import hostile_report

from toprank import report

CHROMIUM = "/usr/bin/chromium"
SWITCHES = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, or a skip where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or CHROMIUM
    if not Path(path).exists():
        pytest.skip("no Chromium here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=SWITCHES)
        yield running
        running.close()


@pytest.fixture(scope="session")
def shown_report() -> dict[str, Any]:
    """The dict behind the page of the browser tests."""
    return hostile_report()


@pytest.fixture(scope="session")
def page_file(shown_report: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its page."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    report.write_page(shown_report, path)
    return path
