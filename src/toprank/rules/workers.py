"""Threads for compiled loops that release the lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from toprank.parallel import thread_count

__all__ = ["Workers"]


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
