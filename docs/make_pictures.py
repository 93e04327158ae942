"""Take the pictures of docs/pictures anew: the report page and a terminal.

    python docs/make_pictures.py [FOLDER]

FOLDER is what `toprank demo --out FOLDER` left; without it the demonstration is run first. Needs the extras `dev`, `docs`
and Chromium; the pictures are kept in the project, since the build of the manual has neither.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

from console import run_command, terminal_svg
from PIL import Image
from playwright.sync_api import Page, sync_playwright

PICTURES = Path(__file__).parent / "pictures"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
COLOURS = 64  # of a picture: small files
SECTIONS = ("length", "curves", "models", "over-time", "drivers", "alerts")


def save(png: bytes, name: str, width: int | None = None) -> None:
    """Keep a screenshot with few colours, made narrower if wished."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    if width:
        image = image.resize((width, image.height * width // image.width))
    path = PICTURES / f"{name}.png"
    image.quantize(COLOURS).save(path, optimize=True)
    print(path.name, image.size, path.stat().st_size // 1024, "kB")


def shots(page: Page, report: Path) -> None:
    """The top of the page, and its sections by their identifiers."""
    page.goto(report.resolve().as_uri())
    page.wait_for_timeout(2000)
    save(page.screenshot(), "report")
    page.add_style_tag(content="header { position: static !important }")  # not across the sections
    for name in SECTIONS:
        section = page.locator(f"section#{name}")
        section.scroll_into_view_if_needed()
        page.wait_for_timeout(500)
        top = section.bounding_box()
        clip = {**top, "height": min(top["height"], 760)}
        save(page.screenshot(full_page=True, clip={**clip, "y": top["y"] + page.evaluate("scrollY")}),
             f"report-{name}", 800)  # fmt: skip


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "demo-report"
    command = f"toprank demo --out {folder.name}"
    if not (folder / "report.html").exists():
        _, text = run_command(command, folder.parent, colour=True)
        (PICTURES / "terminal.svg").write_text(terminal_svg(f"$ {command}\n{text}", "toprank demo"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        shots(browser.new_page(viewport={"width": 1200, "height": 820}), folder / "report.html")
        phone = browser.new_page(viewport={"width": 390, "height": 800}, device_scale_factor=1)
        phone.goto((folder / "report.html").resolve().as_uri())
        phone.wait_for_timeout(1500)
        save(phone.screenshot(), "report-phone")
        browser.close()


if __name__ == "__main__":
    main()
