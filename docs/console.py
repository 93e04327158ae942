"""Two directives that run what a page shows: `{run}` for commands, `{python}` for code.

The commands of a page share a folder and its code shares its names, both made anew when the page is
read. A command or a block that fails is a warning, so `make docs` fails with it; `:fails:` says that a
command is meant to. `:hidden:` runs without showing, `:picture:` shows a terminal as SVG.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WIDTH = 92
NAMES: dict[str, dict[str, Any]] = {}


def folder_of(env: Any) -> Path:
    folder = Path(env.app.doctreedir) / "run" / env.docname
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def start_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Begin a page with an empty folder and no names."""
    shutil.rmtree(Path(app.doctreedir) / "run" / docname, ignore_errors=True)
    NAMES[docname] = {"__name__": "__main__"}


def literal(text: str, language: str) -> nodes.literal_block:
    block = nodes.literal_block(text, text)
    block["language"] = language
    return block


def terminal_svg(text: str, title: str) -> str:
    """Draw coloured output of a command as a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text))
    return console.export_svg(title=title)


def run_command(command: str, folder: Path, *, colour: bool = False) -> tuple[int, str]:
    """Run one line of a shell; its exit code, and what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"COLUMNS": str(WIDTH), "PATH": path, "PYTHONWARNINGS": "ignore"}
    environment |= {"FORCE_COLOR": "1"} if colour else {"NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        command, shell=True, cwd=folder, env=environment, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.returncode, "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip("\n")


class Run(SphinxDirective):
    has_content = True
    option_spec = {  # noqa: RUF012
        "hidden": directives.flag,
        "fails": directives.flag,
        "picture": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        shown = []
        picture = self.options.get("picture")
        for written in re.split(r"(?<!\\)\n", "\n".join(self.content)):
            command = re.sub(r"\s*\\\n\s*", " ", written)
            code, output = run_command(command, folder_of(self.env), colour=picture is not None)
            if bool(code) != ("fails" in self.options):
                raise self.error(f"exit code {code} of: {command}\n{output}")
            if picture is not None:
                svg = terminal_svg(f"$ {command}\n{output}", picture)
                return [nodes.raw("", f'<div class="terminal">{svg}</div>', format="html")]
            shown.append(f"$ {written}" + (f"\n{output}" if output else ""))
        return [] if "hidden" in self.options else [literal("\n".join(shown), "console")]


class Python(SphinxDirective):
    has_content = True
    option_spec = {"hidden": directives.flag}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        code, printed = "\n".join(self.content), io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.chdir(folder_of(self.env)):
                exec(compile(code, self.env.docname, "exec"), NAMES[self.env.docname])  # noqa: S102
        except Exception as error:
            raise self.error(f"{traceback.format_exc()}\nin:\n{code}") from error
        output = printed.getvalue().rstrip()
        blocks = [literal(code, "python"), *([literal(output, "text")] if output else [])]
        return [] if "hidden" in self.options else blocks


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("run", Run)
    app.add_directive("python", Python)
    app.connect("source-read", start_page)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
