"""Two threads where it pays: independent pieces of one computation on a long list.

The pieces are the same whatever the number of threads, and so is the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

__all__ = ["run_halves", "run_tasks"]

_ROWS_FOR_THREADS = 100_000


def run_tasks(
    tasks: Sequence[Callable[[], Any]], n_rows: int, n_threads: int | None = None
) -> list:
    """Run independent tasks, in two threads when the list is long; same answer either way.

    Examples
    --------
    >>> run_tasks([lambda: 1, lambda: 2], n_rows=10)
    [1, 2]
    """
    if n_threads is None:
        n_threads = 2 if n_rows >= _ROWS_FOR_THREADS and _available_cpus() > 1 else 1
    if n_threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda task: task(), tasks))


def run_halves(task: Callable[[slice], None], n_rows: int) -> None:
    """Call a task that treats each row on its own with both halves of the rows."""
    middle = n_rows // 2
    halves = slice(None, middle), slice(middle, None)
    run_tasks([partial(task, half) for half in halves], n_rows)


def _available_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
