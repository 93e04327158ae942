"""What commands print: lines, tables, JSON. Nothing that comes from data can steer the terminal."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

__all__ = [
    "check_target",
    "figure",
    "note",
    "on_terminal",
    "one_line",
    "plain",
    "print_json",
    "print_table",
    "records",
    "say",
    "shown",
    "warn",
    "with_interval",
]

WIDTH_OF_PIPES = 200
LONGEST_LINE = 2_000


def say(text: str) -> None:
    """A line of the answer."""
    typer.echo(plain(text))


def warn(text: str) -> None:
    """A line beside the answer: on the error stream."""
    typer.echo(f"toprank: warning: {one_line(text)}", err=True)


def note(text: str) -> None:
    """A remark beside the answer: on the error stream."""
    typer.echo(f"toprank: note: {one_line(text)}", err=True)


def on_terminal() -> int:
    """1 where a person watches the error stream and progress bars make sense, else 0."""
    return int(sys.stderr.isatty())


def one_line(message: object) -> str:
    """A message as one line, without what a terminal would act upon.

    Examples
    --------
    >>> one_line("first\\nsecond \\x1b[31mred")
    'first second ?[31mred'
    """
    text = plain(" ".join(str(message).split()))
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 4] + " ..."


def plain(text: str) -> str:
    """Text with a question mark for each character that a terminal would act upon."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def print_table(
    titles: Sequence[str], rows: Iterable[Sequence[str]], right_from: int | None = None
) -> None:
    """A table as wide as it needs to be in a pipe, and as wide as the window in a terminal."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console() if sys.stdout.isatty() else Console(width=WIDTH_OF_PIPES)
    table = Table(box=SIMPLE, show_header=any(titles))
    for position, title in enumerate(titles):
        right = right_from is not None and position >= right_from
        table.add_column(Text(plain(title)), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))  # as text: nothing in it is markup
    console.print(table)


def print_json(value: Any) -> None:
    """Plain data as JSON, in characters that every terminal and pipe can take."""
    typer.echo(json.dumps(_jsonable(value), indent=1, allow_nan=False))


def _jsonable(value: Any) -> Any:
    """JSON knows no NaN, no infinity, no dates and no numbers of NumPy."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(inner) for inner in value]
    if hasattr(value, "tolist") and not isinstance(value, (str, bytes)):
        return _jsonable(value.tolist())
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return None if value != value else str(value)  # NaT is not itself; dates as text


def records(frame: Any) -> list[dict[str, Any]]:
    """The rows of a table as plain data."""
    return [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]


def figure(value: float | None) -> str:
    """A figure with four decimals; nothing where there is none."""
    return "" if value is None or value != value else f"{value:.4f}"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A figure with its interval.

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
    """A cell as people read it.

    Examples
    --------
    >>> shown(284807), shown(None), shown([0, 0.1]), shown(0.00172)
    ('284,807', '', '0-0.1', '0.00172')
    """
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value)
    if isinstance(value, float):
        return "" if value != value else f"{value:g}"
    if isinstance(value, (list, tuple)):
        return "-".join(shown(inner) for inner in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def check_target(path: Path, extensions: Sequence[str], inputs: Iterable[str] = ()) -> None:
    """Refuse a place that cannot be written before any work is done.

    Parameters
    ----------
    path : Path
    extensions : sequence of str
        What the name may end in.
    inputs : iterable of str
        Files that the command reads: none of them is overwritten.
    """
    import os

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
