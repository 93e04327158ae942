"""What the benchmarks share: medians taken in turns, ratios, growth of time and memory with the rows.

What `report`, `report_bar` and `report_growth` print is also kept in `results.json`, the last figure of each
line, unless the run is a quick one; `python -m benchmarks page` makes docs/performance.md of it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).with_name("results.json")


def keep(what: str, **figures: Any) -> None:
    """Keep the figures of one line in place of those of the run before."""
    if "--quick" in sys.argv:
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known[f"{Path(sys.argv[0]).stem}: {what.strip()}"] = figures | {"on": time.strftime("%Y-%m-%d")}
    RESULTS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def seconds(function: Callable[[], Any]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def medians(functions: dict[str, Callable[[], Any]], repeats: int = 5) -> dict[str, float]:
    """Median time of each function, called in turns so that a busy moment hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            times[name].append(seconds(function))
    return {name: float(np.median(values)) for name, values in times.items()}


def report(what: str, ours: float, yardstick: float, bar: float | None = None) -> float:
    """Print one line: our time, the yardstick's, the ratio and the bar. Return the ratio."""
    ratio = ours / yardstick
    verdict = "" if bar is None else f"  bar {bar:g}x  {'met' if ratio <= bar else 'MISSED'}"
    print(f"{what:<52} {ours:9.4f} s  {yardstick:9.4f} s  {ratio:8.3f}x{verdict}", flush=True)
    keep(what, ours=ours, yardstick=yardstick, ratio=ratio, bar=bar)
    return ratio


def report_bar(
    what: str, value: float, bar: float, *, at_least: bool = False, unit: str = ""
) -> None:
    """Print one figure that is no ratio of times, and its bar: the most it may be, or the least."""
    met = value >= bar if at_least else value <= bar
    side = "at least" if at_least else "at most"
    print(
        f"{what:<52} {value:.3g} {unit}  bar {side} {bar:g}  {'met' if met else 'MISSED'}",
        flush=True,
    )
    keep(what, value=value, limit=bar, side=side, unit=unit, met=met)


SIZES = (125_000, 250_000, 500_000, 1_000_000)  # between which the slope is measured
SLOPE_BAR = 1.25


def measured(function: Callable[[], Any]) -> dict[str, float]:
    """Seconds of one call on the clock and on the processor, and what it added to the greatest memory."""
    before, processor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    elapsed = seconds(function)
    processor = time.process_time() - processor
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"seconds": elapsed, "processor": processor, "bytes": max(1024 * grown, 0)}


def in_own_process(module: str, *arguments: Any) -> dict[str, Any]:
    """Run `module` with `--child` and the arguments as JSON; read what it prints last.

    A process of its own, since the greatest memory of a process never falls.
    """
    command = [sys.executable, "-W", "ignore", "-m", module, "--child", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} {arguments}:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def report_growth(what: str, sizes: Sequence[int], fits: Sequence[dict[str, Any]]) -> None:
    """Print one line: times, their log-log slope, memory of the largest fit, and the bars.

    Each fit has what `measured` gives and `matrix`, the bytes of its feature matrix. The slope is that
    of the time on the processor: on a busy machine the clock tells of the others.
    """
    times = [fit["seconds"] for fit in fits]
    used = [fit["processor"] for fit in fits]
    inside = [k for k, size in enumerate(sizes) if SIZES[0] <= size <= SIZES[-1]]
    if len(inside) < 2:  # other sizes than usual
        inside = list(range(len(sizes)))
    slope = float(np.polyfit(np.log(np.take(sizes, inside)), np.log(np.take(used, inside)), 1)[0])
    allowed = 4 * fits[-1]["matrix"] + 300 * sizes[-1] + 300e6
    met = slope <= SLOPE_BAR and fits[-1]["bytes"] <= allowed
    verdict = "met" if met else "MISSED"
    keep(
        what, sizes=list(sizes), processor=used, bytes=[fit["bytes"] for fit in fits], slope=slope,
        slope_bar=SLOPE_BAR, allowed=allowed, met=met,
    )  # fmt: skip
    shown = " ".join(f"{t:.2f} ({u:.2f})" for t, u in zip(times, used, strict=True))
    print(
        f"{what:<28} {shown} s  slope {slope:5.2f} (bar {SLOPE_BAR})  "
        f"memory {fits[-1]['bytes'] / 1e6:5.0f} of {allowed / 1e6:.0f} MB  {verdict}",
        flush=True,
    )
