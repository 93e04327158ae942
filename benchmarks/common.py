"""What the benchmarks share: medians of several runs, taken in turns, printed as ratios."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np


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
    return ratio
