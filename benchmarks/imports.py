"""`import toprank` against `import sklearn`, each in fresh processes."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.common import medians, report


def main() -> None:
    def start(code: str):
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    times = medians(
        {
            "bare": start("pass"),
            "ours": start("import toprank"),
            "sklearn": start("import sklearn"),
        },
        repeats=9,
    )
    report(
        "import toprank against import sklearn",
        times["ours"] - times["bare"],
        times["sklearn"] - times["bare"],
        1.25,
    )


if __name__ == "__main__":
    main()
