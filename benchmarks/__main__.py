"""Run every benchmark, or those named on the command line: `python -m benchmarks [name ...]`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NAMES = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in {"__main__", "common"})


def main() -> None:
    chosen = sys.argv[1:] or NAMES
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in chosen:
        print(f"\n== {name}", flush=True)
        sys.argv = [name]
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
