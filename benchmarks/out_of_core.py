"""Rows that do not fit: Parquet files whose matrix is at least 4x the memory that a process may use.

DuckDB writes the files. One process fits and scores them with its private memory limited by the system
(RLIMIT_DATA; allocators and the stacks of threads are told not to reserve more than they use, as the limit
counts that too); another, without a limit, fits the same rows in memory. Printed are the peaks of both, the
times, and average precision on rows that neither has seen (bar: within 0.005). `--alone` leaves the second
process out, where the machine has too little memory for it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import in_own_process, keep, report_bar
from toprank import GradientBoostingRanker, metrics
from toprank.out_of_core import score_source
from toprank.tables import connect, read_table

PARAMETERS = {"random_state": 0, "n_jobs": 1}


def write_rows(folder: Path, n_rows: int, n_columns: int, seed: float) -> None:
    """Write simulated rows with 0.5% positives as files of up to 500,000 rows."""
    folder.mkdir(parents=True)
    size = 500_000
    with connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(f"SELECT setseed({seed})")
        for k in range(-(-n_rows // size)):
            n = min(size, n_rows - k * size)
            columns = ", ".join(f"(random() - random())::FLOAT AS x{j}" for j in range(n_columns))
            signal = "x0 + x1 * x2 * 2 + 0.3 * (random() - random())"
            connection.execute(
                f"COPY (SELECT *, ({signal} > 1.05)::INT AS y FROM (SELECT {columns} FROM range({n}))) "
                f"TO '{folder}/part-{k:04d}.parquet' (FORMAT parquet)"
            )


def fit(mode: str, folder: str, limit: int, objective: str, rounds: int) -> dict[str, Any]:
    """Fit in this process and score the test rows; say how long it took and how much memory."""
    settings = PARAMETERS | {"n_estimators": rounds}
    ends: list[float] = []
    ranker, start = GradientBoostingRanker(objective, **settings), time.perf_counter()
    if mode == "streamed":
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        ranker.fit_source(
            f"{folder}/train", target="y", memory=limit, folder=folder,
            callbacks=[lambda _: ends.append(time.perf_counter())],
        )  # fmt: skip
    else:
        table = read_table(f"{folder}/train/*.parquet")
        ranker.fit(
            table.drop(columns="y"), table["y"],
            callbacks=[lambda _: ends.append(time.perf_counter())],
        )  # fmt: skip
    fitted = time.perf_counter() - start
    out = f"{folder}/{mode}.parquet"
    score_source(ranker, f"{folder}/test", out, columns=["y"], memory=limit)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    per_round = (ends[-1] - ends[0]) / max(len(ends) - 1, 1)
    processor = time.process_time()
    return {"fit": fitted, "all": seconds, "round": per_round, "processor": processor, "peak": peak,
            "file": out}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_800_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--objective", default="lambda_map")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", help="where to put the files; by default a temporary folder")
    parser.add_argument("--alone", action="store_true", help="without the fit in memory")
    parser.add_argument("--test-rows", type=int, default=500_000)
    parser.add_argument("--limit", type=int, help="bytes; by default a quarter of the matrix")
    parser.add_argument("--quick", action="store_true", help="few rows, and nothing is kept")
    parser.add_argument("--child")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.columns, options.rounds = 60_000, 20, 2
        options.test_rows, options.limit = 20_000, 900_000_000
    if options.child:
        print(json.dumps(fit(*json.loads(options.child))))
        return
    os.environ |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}
    resource.setrlimit(resource.RLIMIT_STACK, (2**20, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write_rows(folder / "train", options.rows, options.columns, 0.1)
        write_rows(folder / "test", options.test_rows, options.columns, 0.2)
        size = sum(os.path.getsize(file) for file in (folder / "train").iterdir())
        matrix = 8 * options.rows * options.columns
        limit = options.limit or matrix // 4
        print(f"{options.rows:,} x {options.columns} rows: {size / 1e9:.2f} GB of Parquet, a matrix of "
              f"{matrix / 1e9:.2f} GB; limit {limit / 1e9:.2f} GB")  # fmt: skip
        found: dict[str, float] = {}
        figures: dict[str, float] = {}
        for mode in ("streamed",) if options.alone else ("streamed", "in memory"):
            child = in_own_process(
                "benchmarks.out_of_core", mode, name, limit, options.objective, options.rounds
            )
            scores = read_table(child["file"])
            found[mode] = metrics.average_precision(scores["y"], scores["score"])
            print(f"{mode:<10} fit {child['fit']:.0f} s ({child['round']:.1f} s a round), with scores "
                  f"{child['all']:.0f} s, {child['processor']:.0f} s on the processor, peak "
                  f"{child['peak'] / 1e9:.2f} GB, AP on test rows {found[mode]:.4f}", flush=True)  # fmt: skip
            figures |= {f"{mode} {key}": child[key] for key in ("fit", "round", "peak")}
            figures[f"{mode} AP"] = found[mode]
        rows = f"{options.rows:,} x {options.columns}, {options.objective}, {options.rounds} rounds"
        keep(rows, matrix=matrix, enforced=limit, **figures)
        if len(found) == 2:
            gap = abs(np.subtract(*found.values()))
            what = f"AP streamed and in memory, {options.rows:,} x {options.columns}"
            report_bar(what, float(gap), 0.005)


if __name__ == "__main__":
    main()
