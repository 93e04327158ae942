"""The application that commands register with: its errors, one line and an exit code, and what it prints."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from toprank.temporary import clean_up_on_signals

__all__ = [
    "BAD_INPUT", "INTERRUPTED", "TRACEBACK", "app", "check_output", "figure", "main", "note", "on_terminal",
    "one_line", "print_json", "print_list_figures", "print_notes", "print_table", "printable", "records",
    "say", "shown", "table_width", "warn", "with_interval",
]  # fmt: skip

BAD_INPUT, INTERRUPTED = 2, 130
TRACEBACK = "TOPRANK_TRACEBACK"  # set in the environment, errors come with their traceback
EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError, NotImplementedError)


class Commands(TyperGroup):
    """A group of commands whose errors are one line."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _errors_in_one_line():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _errors_in_one_line(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("default", UserWarning)  # others are meant for programmers
            warnings.showwarning = _show_warning
            result = super().invoke(ctx)
            sys.stdout.flush()  # a full disk shows here at the latest
            return result


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Rank rows so that the rare positives come first.",
)


def main() -> None:
    """Run the command line."""
    # the search for garbage takes a tenth of the time that libraries load in
    gc.set_threshold(100_000)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - it lives as long as the process
    _check_memory()
    if threading.current_thread() is threading.main_thread():
        clean_up_on_signals(_say_interrupted)
    if sys.argv[1:2] == ["score"] and "--help" not in sys.argv:
        _start_sooner()
    app(prog_name="toprank")


class _Deferred(ModuleType):
    """Stands for a module that is imported when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def _start_sooner() -> None:
    """Put off what libraries import for functions that scoring never calls: a third of its time for a row.

    For a process of its own: XGBoost stays without its wrappers for scikit-learn, which scoring does not need.
    """
    sys.modules.setdefault("scipy.stats", _Deferred("scipy.stats"))
    folds = "sklearn.model_selection"
    if folds in sys.modules:
        return
    sys.modules[folds] = None  # type: ignore[assignment]  # not to be found
    gc.disable()
    try:
        from toprank.boosting.xgboost_helpers import require_xgboost

        require_xgboost()
    except ImportError:
        pass  # said again, and better, if the model needs it
    finally:
        del sys.modules[folds]
        gc.freeze()  # modules are no garbage: they are not looked through again
        gc.enable()


# Of address space: the libraries map this much, and some abort or hang when they cannot.
LEAST_MEMORY = 3 * 2**29


def _check_memory() -> None:
    """Say so at once where the address space is limited to less than the libraries need."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    except (ImportError, ValueError, OSError):
        return  # this system has no such limit
    if limit != resource.RLIM_INFINITY and limit < LEAST_MEMORY:
        typer.echo(
            f"toprank: error: memory is limited to {limit // 2**20} MB, and {LEAST_MEMORY // 2**20} MB are "
            "needed; raise the limit (ulimit -v)",
            err=True,
        )
        sys.exit(BAD_INPUT)


_said: list[str] = []


def _say_interrupted() -> None:
    """Say it once, from whichever thread comes first."""
    if not _said:
        _said.append("interrupted")
        typer.echo("toprank: interrupted", err=True)


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Print an error as one line and exit with code 2."""
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):  # whoever reads the output has stopped
        raise
    except KeyboardInterrupt:
        _say_interrupted()
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError" or os.environ.get(TRACEBACK):
            raise
        _exit_with(error)


def _exit_with(error: Exception) -> None:
    usage = getattr(error, "format_message", None)  # arguments that the parser refuses
    if usage is not None:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "toprank"
        message = f"{one_line(usage())} (see {path} --help)"
    elif isinstance(error, EXPECTED):
        message = one_line(error) or type(error).__name__
    else:  # a bug: say how to see more
        kind = type(error).__name__
        message = f"unexpected {kind}: {one_line(error)} (set {TRACEBACK}=1 to see where)"
    _drop_unwritten_output()
    typer.echo(f"toprank: error: {message}", err=True)
    raise typer.Exit(BAD_INPUT) from None


def _drop_unwritten_output() -> None:
    """Give up on output that cannot be written, or the interpreter would try again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it lives as long as the process


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    warn(str(message))


def _print_version(asked: bool) -> None:
    if asked:
        from toprank._version import __version__

        say(f"toprank {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


# -- what commands print ---------------------------------------------------------------------------

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


def print_notes(texts: Iterable[str]) -> None:
    """Print notes on the error stream."""
    for text in texts:
        note(text)


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

    console = Console(width=table_width())
    table = Table(box=SIMPLE, show_header=any(titles))
    for position, title in enumerate(titles):
        right = right_from is not None and position >= right_from
        table.add_column(
            Text(printable(title)), justify="right" if right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))  # as text: nothing in it is markup
    console.print(table)


def table_width() -> int:
    """Return how many columns a table may take: those of the window, many in a pipe."""
    if "COLUMNS" not in os.environ and not sys.stdout.isatty():
        return WIDTH_OF_PIPES
    return shutil.get_terminal_size().columns


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
