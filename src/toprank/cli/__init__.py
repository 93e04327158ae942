"""The command line.

Commands only read arguments and print; the work is done by the library. Whatever goes wrong is one
line on the error stream and exit code 2.
"""

# each module adds its command, in the order of the help
from toprank.cli import (  # isort: skip
    compare, fit, score, report, explain, evaluate, models, datasets, demo
)  # fmt: skip
from toprank.cli.application import app, main

__all__ = [
    "app", "compare", "datasets", "demo", "evaluate", "explain", "fit", "main", "models", "report", "score",
]  # fmt: skip
