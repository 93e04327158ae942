"""Threads for compiled loops that release the lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["Workers", "thread_count"]


def thread_count(n_jobs: int | None) -> int:
    """How many threads `n_jobs` stands for: None and -1 are all cores, -2 all but one."""
    cores = os.cpu_count() or 1
    if n_jobs is None:
        return cores
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for all cores")
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)


class Workers:
    """A pool of threads, or none when there is one thread; the answers are the same.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     workers.map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = thread_count(n_jobs)
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def map(self, task: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        """Call `task` on every item, in threads, and return the answers in order."""
        return list((self._pool.map if self._pool else map)(task, items))

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
