"""Run the experiment: `python -m experiments.treerank [--repeats 30] [--budget-minutes 60] [--quick]`."""

from __future__ import annotations

import argparse
import time

from experiments.common import ROOT, Results, use_local_data
from experiments.treerank import protocol, report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30, help="draws of each Gaussian set")
    parser.add_argument("--budget-minutes", type=float, default=float("inf"))
    parser.add_argument("--quick", action="store_true", help="one draw, two folds, two variants")
    options = parser.parse_args()
    use_local_data()
    name = "treerank_quick" if options.quick else "treerank"
    results = Results(ROOT / "results" / f"{name}.jsonl")
    stop = time.monotonic() + 60 * options.budget_minutes
    for cell in protocol.cells(options.repeats, options.quick):
        if time.monotonic() > stop:
            print("the budget is used up; run again to go on")
            break
        results.run([cell], protocol.compute)
    page = ROOT / "results" / f"{name}.md"
    report.write(results, page)
    print(f"wrote {page.name}")


if __name__ == "__main__":
    main()
