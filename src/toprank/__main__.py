"""Run the command line: `toprank` or `python -m toprank`."""

from toprank import demo  # adds its command
from toprank.cli import main

__all__ = ["demo", "main"]

if __name__ == "__main__":
    main()
