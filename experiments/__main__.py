"""One entry to all experiments.

python -m experiments                  what there is, and how many cells are finished
python -m experiments NAME [options]   run one, or go on with it; `--help` has its options
python -m experiments summary          write docs/results.md from the finished cells
"""

from __future__ import annotations

import ast
import json
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def experiments() -> dict[str, str]:
    """Every module or package here that can be run, with the first sentence of its docstring."""
    found = {}
    for path in [*ROOT.glob("*.py"), *ROOT.glob("*/__main__.py")]:
        if path != Path(__file__) and '__name__ == "__main__"' in path.read_text():
            package = path.parent != ROOT
            sources = [path.with_name("__init__.py"), path] if package else [path]
            texts = [ast.get_docstring(ast.parse(source.read_text())) for source in sources]
            text = next((text for text in texts if text), "")
            found[path.parent.name if package else path.stem] = " ".join(
                text.split("\n\n")[0].split()
            )
    return dict(sorted(found.items()))


def n_cells(name: str) -> int:
    """Finished cells of an experiment; one that was run again counts once."""
    path = ROOT / "results" / f"{name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return len({json.dumps(json.loads(line)["cell"], sort_keys=True) for line in lines if line})


def main() -> None:
    known = experiments()
    if len(sys.argv) < 2 or sys.argv[1] in {"-h", "--help"}:
        print(__doc__)
        for name, sentence in known.items():
            print(f"{name:24}{n_cells(name) or '':>6}  {sentence}")
        return
    name = sys.argv[1]
    if name not in known:
        sys.exit(f"no experiment {name!r}; there are: {', '.join(known)}")
    del sys.argv[1]
    runpy.run_module(f"experiments.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
