"""Fuzz model files and the command line for as long as is asked: `make fuzz`.

    python tests/hardening/fuzz.py [--cases 20000] [--tables 2000] [--first 0] [--record]

Every case has a seed, so a finding can be had again: `--first SEED --cases 1`. Cases run in child processes
with a limit of memory and time; a child that dies is a finding, and the next one goes on after it. The exit
code is 1 if anything was found. `--record` keeps what came of it in `fuzz.jsonl`; the manual has a table of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
RECORD = HERE / "fuzz.jsonl"
BATCH = 250  # cases of one child
PATIENCE = 3600  # seconds for a child


@dataclass
class Report:
    """What came of cases: how many of which outcome, and what should not have been."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, object]] = field(default_factory=list)

    def add(self, case: dict[str, object], fine: tuple[str, ...]) -> None:
        found = str(case["outcome"])
        self.counts[found if found in fine else "finding"] += 1
        if found not in fine:
            self.findings.append(case)


def run_cases(runner: str, folder: Path, first: int, last: int) -> Iterator[dict[str, object]]:
    """Run the cases of a range of seeds in children; one that dies is reported as its case."""
    while first < last:
        command = [sys.executable, str(HERE / runner), str(folder), str(first), str(last)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=PATIENCE
            )
            output, code, errors = done.stdout, done.returncode, done.stderr
        except subprocess.TimeoutExpired as late:
            output = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            code, errors = -9, "it took too long"
        cases = [json.loads(line) for line in output.splitlines() if line.endswith("}")]
        yield from cases
        first = int(cases[-1]["seed"]) + 1 if cases else first
        if first < last:  # it died at this seed
            yield {"seed": first, "outcome": f"the process ended with {code}: {errors[-1500:]}"}
            first += 1


def save_models(folder: Path) -> None:
    """Put a file of each kind of model into a folder, and rows for them."""
    from model_cases import MODELS, labelled_rows, rows_of

    import toprank

    frame, y = labelled_rows()
    frame.to_parquet(folder / "rows.parquet")
    for name, make in MODELS.items():
        rows = rows_of(name, frame)
        toprank.save(make().fit(rows, y), folder / f"{name}.toprank", rows, y)


def fuzz(runner: str, folder: Path, first: int, n_cases: int, fine: tuple[str, ...]) -> Report:
    """Run cases batch by batch and say how it goes."""
    report, start = Report(), time.monotonic()
    for begin in range(first, first + n_cases, BATCH):
        for case in run_cases(runner, folder, begin, min(begin + BATCH, first + n_cases)):
            report.add(case, fine)
        seconds = time.monotonic() - start
        shown = ", ".join(f"{count} {name}" for name, count in report.counts.most_common())
        sys.stdout.write(f"{runner}: {shown} in {seconds:.0f} s\n")
        sys.stdout.flush()
    for case in report.findings:
        sys.stdout.write(json.dumps(case) + "\n")
    return report


def record(what: str, first: int, n_cases: int, report: Report) -> None:
    """Keep the outcomes of a run."""
    import toprank

    line = {
        "cases": what, "first": first, "number": n_cases, "outcomes": dict(report.counts),
        "version": toprank.__version__, "on": time.strftime("%Y-%m-%d"),
    }  # fmt: skip
    with RECORD.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def table() -> str:
    """The kept runs as a Markdown table, or a sentence where there is none."""
    if not RECORD.exists():
        return "No run of this version is kept yet.\n"
    lines = [
        "| cases | seeds | refused | used or answered | findings | version | on |",
        "|---|---|---|---|---|---|---|",
    ]
    for text in RECORD.read_text().splitlines():
        run = json.loads(text)
        count = Counter(run["outcomes"])
        seeds = f"{run['first']:,} to {run['first'] + run['number'] - 1:,}"
        fine = [f"{count['refused']:,}", f"{count['used'] + count['answered']:,}"]
        cells = [run["cases"], seeds, *fine, count["finding"], run["version"], run["on"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20_000, help="model files")
    parser.add_argument("--tables", type=int, default=2_000, help="tables and options")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--record", action="store_true", help=f"keep the counts in {RECORD.name}")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_models(folder)
        reports = [
            fuzz("open_mutants.py", folder, options.first, options.cases, ("refused", "used")),
            fuzz("run_commands.py", folder, options.first, options.tables, ("answered", "refused")),
        ]
    if options.record:
        record("model files", options.first, options.cases, reports[0])
        record("commands on tables", options.first, options.tables, reports[1])
    sys.exit(int(any(report.findings for report in reports)))


if __name__ == "__main__":
    main()
