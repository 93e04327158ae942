"""Threads: how many `n_jobs` means, and two of them where a computation on a long list falls into pieces.

The pieces are the same whatever the number of threads, and so is the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

__all__ = ["at_most", "run_halves", "run_tasks", "thread_count"]

_ROWS_FOR_THREADS = 100_000

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


def thread_count(n_jobs: int | None) -> int:
    """How many threads `n_jobs` stands for: None and -1 are all cores that this process may use, -2 all but
    one.

    Examples
    --------
    >>> thread_count(3)
    3
    """
    cores = _available_cpus()
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


@contextmanager
def at_most(n_jobs: int | None) -> Iterator[None]:
    """Let `run_tasks` use no more threads than `n_jobs` stands for, for a while."""
    token = _limit.set(thread_count(n_jobs))
    try:
        yield
    finally:
        _limit.reset(token)


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
        cpus = min(_available_cpus(), _limit.get() or 2)
        n_threads = 2 if n_rows >= _ROWS_FOR_THREADS and cpus > 1 else 1
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
