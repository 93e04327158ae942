"""The application that commands register with, and its errors: one line and an exit code."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from toprank.cli.output import one_line, say, warn

__all__ = ["BAD_INPUT", "INTERRUPTED", "TRACEBACK", "app", "main"]

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
    app(prog_name="toprank")


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    """Print an error as one line and exit with code 2."""
    try:
        yield
    except (typer.Exit, typer.Abort, BrokenPipeError):  # whoever reads the output has stopped
        raise
    except KeyboardInterrupt:
        typer.echo("toprank: interrupted", err=True)
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
