"""Run every benchmark, or those named: `python -m benchmarks [name ...] [--option ...]`; the last is the page.

Options go to each of them: `python -m benchmarks --quick`, `python -m benchmarks relational
--install-prolog`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
PARTS = {"__main__", "brute_force", "common", "page"}
NAMES = [*sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in PARTS), "page"]


def main() -> None:
    words = sys.argv[1:]
    first = next((k for k, word in enumerate(words) if word.startswith("-")), len(words))
    chosen, options = words[:first] or NAMES, words[first:]
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in chosen:
        print(f"\n== {name}", flush=True)
        sys.argv = [name, *options]
        runpy.run_module(f"benchmarks.{name}", run_name="__main__")


if __name__ == "__main__":
    main()
