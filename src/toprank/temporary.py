"""Temporary files of this process, and what becomes of them when a signal ends it.

A light module: the command line loads it before anything else.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["clean_up_on_signals", "to_be_removed"]

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
PATIENCE = 1.0  # seconds for the work to stop by itself

_unfinished: set[Path] = set()
_is_program = False


@contextmanager
def to_be_removed(temporary: Path) -> Iterator[None]:
    """Remember a temporary file or folder while the block lasts.

    In a program that has called `clean_up_on_signals`, SIGTERM and SIGHUP are exceptions inside of the block,
    so that whatever removes the file after an error does so; elsewhere they do what they did.
    """
    _unfinished.add(temporary)
    before = {}
    if _is_program and threading.current_thread() is threading.main_thread():
        for number in ENDING:
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, _exit_for_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _unfinished.discard(temporary)


def _exit_for_signal(number: int, _: Any) -> None:
    raise SystemExit(128 + number)


def clean_up_on_signals(say_interrupted: Callable[[], None]) -> None:
    """Let signals end this program soon, its temporary files removed.

    Python sees a signal when compiled code comes back, which may take long; so a thread that waits for
    signals ends the process when nothing has happened for a while. For the main thread of a program.
    """
    global _is_program
    _is_program = True
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    thread = threading.Thread(target=_end_after_signal, args=(reader, say_interrupted), daemon=True)
    with suppress(RuntimeError):  # no thread to be had: signals arrive when they do
        thread.start()
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)


def _end_after_signal(reader: int, say_interrupted: Callable[[], None]) -> None:
    """Wait for a signal that ends the process; be patient, then end it."""
    number = 0
    while number not in (signal.SIGINT, *ENDING):
        number = os.read(reader, 1)[0]
    threading.Event().wait(PATIENCE)
    for temporary in list(_unfinished):
        shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    if number == signal.SIGINT:
        say_interrupted()
    sys.stderr.flush()
    os._exit(128 + number)
