"""What commands print: lines, tables and JSON, without characters that control a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

__all__ = [
    "check_output", "figure", "note", "on_terminal", "one_line", "print_json",
    "print_list_figures", "print_table", "printable", "records", "say", "shown", "warn",
    "with_interval",
]  # fmt: skip

WIDTH_OF_PIPES = 200
LONGEST_LINE = 2_000


def say(text: str) -> None:
    """Print a line of the answer."""
    typer.echo(printable(text))


def warn(text: str) -> None:
    """Print a warning on the error stream."""
    typer.echo(f"toprank: warning: {one_line(text)}", err=True)


def note(text: str) -> None:
    """Print a note on the error stream."""
    typer.echo(f"toprank: note: {one_line(text)}", err=True)


def on_terminal() -> int:
    """Return 1 where the error stream is a terminal, so that progress bars make sense, else 0."""
    return int(sys.stderr.isatty())


def one_line(message: object) -> str:
    """Return a message as one line, without characters that control a terminal.

    Examples
    --------
    >>> one_line("first\\nsecond \\x1b[31mred")
    'first second ?[31mred'
    """
    text = printable(" ".join(str(message).split()))
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 4] + " ..."


def printable(text: str) -> str:
    """Return text with a question mark for each character that would control a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def print_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], right_from: int | None = None
) -> None:
    """Print a table, in a terminal as wide as the window."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_PIPES)
    table = Table(box=SIMPLE, show_header=any(titles))
    for position, title in enumerate(titles):
        right = right_from is not None and position >= right_from
        table.add_column(
            Text(printable(title)), justify="right" if right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))  # as text: nothing in it is markup
    console.print(table)


def print_json(value: Any) -> None:
    """Print data as JSON, in ASCII characters only."""
    from toprank.formatting import to_jsonable

    typer.echo(json.dumps(to_jsonable(value), indent=1, allow_nan=False))


def records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts."""
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]


def figure(value: float | None) -> str:
    """Format a number with four decimals; nothing where there is none."""
    return "" if value is None or value != value else f"{value:.4f}"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """Format a number with its interval.

    Examples
    --------
    >>> with_interval(0.51, 0.4, 0.6), with_interval(0.51, None, None)
    ('0.510 (0.400 to 0.600)', '0.510')
    """
    if value is None or value != value:
        return ""
    if low is None or low != low or high is None:
        return f"{value:.3f}"
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def shown(value: Any) -> str:
    """Format a value as people read it.

    Examples
    --------
    >>> shown(284807), shown(None), shown([0, 0.1]), shown(0.00172)
    ('284,807', '', '0-0.1', '0.00172')
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value)
    if hasattr(value, "item"):  # NumPy's
        value = value.item()
    if isinstance(value, float):
        return "" if value != value else f"{value:g}"
    if isinstance(value, (list, tuple)):
        return "-".join(shown(inner) for inner in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_list_figures(found: dict[str, Any]) -> None:
    """Print how many of the first rows of a report are positives."""
    lists = found["lists"]
    for length in found["lengths"]:
        place = lists["length"].index(length)
        hits = lists["hits"]
        bounds = ""
        if hits["low"][place] is not None:
            bounds = f" ({hits['low'][place]:.0f} to {hits['high'][place]:.0f})"
        recall = lists["recall"]["value"][place]
        say(
            f"Of the first {shown(length)} rows {hits['value'][place]:.0f}{bounds} are right: "
            f"{recall:.0%} of all positives."
        )


def check_output(path: Path, extensions: Sequence[str], inputs: Iterable[str] = ()) -> None:
    """Refuse a file that cannot be written, before any work is done.

    Parameters
    ----------
    path : Path
    extensions : sequence of str
        What the name may end in.
    inputs : iterable of str
        Files that the command reads: none of them is overwritten.
    """
    if not path.name.lower().endswith(tuple(extensions)):
        raise ValueError(f"--out {path}: the name must end in {' or '.join(extensions)}")
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise ValueError(f"--out {path} is not a regular file; choose another name")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ValueError(f"--out {path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"--out {path}: the folder {folder} may not be written to")
    if path.exists() and any(os.path.exists(name) and path.samefile(name) for name in inputs):
        raise ValueError(f"--out {path} would overwrite the input; choose another name")
