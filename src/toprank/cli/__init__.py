"""The command line.

Commands only read arguments and print; the work is done by the library. An error is one line on the error
stream and exit code 2.
"""

from toprank.cli.app import app, main

# each module adds its commands, in the order of the help
from toprank.cli import training, scoring  # isort: skip

__all__ = ["app", "main", "scoring", "training"]
