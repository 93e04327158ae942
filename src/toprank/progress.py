"""Progress bars for long work, on the error stream and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress"]


@contextmanager
def progress(
    total: float | None, label: str, enabled: bool | int = True
) -> Iterator[Callable[..., None]]:
    """Show a progress bar on the error stream while the block runs.

    Parameters
    ----------
    total : float or None
        Number of steps; None when it is not known.
    label : str
        What is being done.
    enabled : bool or int, default=True
        Nothing is written, and Rich is not imported, when this is false or 0.

    Yields
    ------
    advance : callable
        `advance(step=1, **fields)` moves the bar on; the fields are shown behind it.

    Examples
    --------
    >>> with progress(3, "rounds", enabled=False) as advance:
    ...     for loss in (0.9, 0.5, 0.4):
    ...         advance(loss=loss)
    """
    if not enabled:
        yield _silent
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(label), total=total, note="")

        def advance(step: float = 1, **fields: Any) -> None:
            note = "  ".join(f"{name} {_short(value)}" for name, value in fields.items())
            if fields:
                bar.update(task, advance=step, note=escape(note))
            else:
                bar.update(task, advance=step)

        yield advance


def _silent(step: float = 1, **fields: Any) -> None:
    """Stand in for `advance` when no bar is shown."""


def _short(value: Any) -> str:
    """Numbers with four figures, the rest as text."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
