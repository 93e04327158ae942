"""Run the command line: `toprank` or `python -m toprank`."""

import signal
import sys


def _interrupted(*_: object) -> None:
    """End quietly where Ctrl-C comes before there is anything to clean up."""
    sys.stderr.write("toprank: interrupted\n")
    sys.stderr.flush()
    sys.exit(130)


_starting = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _starting:
    signal.signal(signal.SIGINT, _interrupted)

from toprank import demo  # noqa: E402 - adds its command
from toprank.cli import main  # noqa: E402

if _starting:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["demo", "main"]

if __name__ == "__main__":
    main()
