"""Threads: what `n_jobs` means, and running independent pieces of work in several of them.

The pieces are the same whatever the number of threads, and so is the answer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController, threadpool_limits

__all__ = [
    "MAX_THREADS", "ThreadPool", "hold_openmp_after_fork", "is_forked", "limit_threads", "run_halves",
    "run_tasks", "single_threaded_blas", "thread_count",
]  # fmt: skip

MAX_THREADS = 1024
_ROWS_FOR_THREADS = 30_000

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` stands for.

    None and -1 are all cores that this process may use, -2 all but one. Inside a worker of joblib (a
    parallel grid search, say) None and negative numbers are 1, so that the workers do not crowd one
    another out. In a process that was forked it is always 1: the threads of compiled code do not survive a
    fork, and waiting for them would never end.

    Examples
    --------
    >>> thread_count(3)
    3
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use 1 for one thread or -1 for all cores")
    if n_jobs is not None and abs(n_jobs) > MAX_THREADS:
        raise ValueError(f"n_jobs is {n_jobs}; more than {MAX_THREADS} threads are never of use")
    if is_forked():
        return 1
    if n_jobs is not None and n_jobs > 0:
        return int(n_jobs)
    if _inside_joblib_worker():
        return 1
    return max(1, available_cores() + 1 + (-1 if n_jobs is None else int(n_jobs)))


_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def is_forked() -> bool:
    """Whether this process was forked from one that had loaded the library."""
    return _forks > 0


_held = threading.local()


def hold_openmp_after_fork() -> None:
    """In a forked process, let compiled code of this thread that asks OpenMP for all cores get one.

    XGBoost does so in places, whatever number of threads it is given.
    """
    if is_forked() and not getattr(_held, "held", False):
        threadpool_limits(1, user_api="openmp")
        _held.held = True


def available_cores() -> int:
    """Return how many cores this process may use."""
    if is_forked():
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _inside_joblib_worker() -> bool:
    return bool(getattr(get_active_backend()[0], "nesting_level", 0))


@contextmanager
def limit_threads(n_jobs: int | None) -> Iterator[None]:
    """Let `run_tasks` and `run_halves` use no more threads than `n_jobs` stands for in the block."""
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
        long = n_rows >= _ROWS_FOR_THREADS
        n_threads = 2 if long and min(available_cores(), _limit.get() or 2) > 1 else 1
    if n_threads == 1 or len(tasks) < 2:
        return [task() for task in tasks]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda task: task(), tasks))


def run_halves(task: Callable[[slice], None], n_rows: int) -> None:
    """Call a task that treats each row on its own with both halves of the rows."""
    middle = n_rows // 2
    halves = slice(None, middle), slice(middle, None)
    run_tasks([partial(task, half) for half in halves], n_rows)


class ThreadPool:
    """A pool of threads, or none when `n_jobs` stands for one; the answers are the same.

    Examples
    --------
    >>> with ThreadPool(2) as pool:
    ...     pool.map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_threads = thread_count(n_jobs)
        self._pool = ThreadPoolExecutor(self.n_threads) if self.n_threads > 1 else None

    def map(self, task: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        """Call `task` on every item, in threads, and return the answers in order."""
        return list((self._pool.map if self._pool else map)(task, items))

    def __enter__(self) -> ThreadPool:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:  # on Ctrl-C what has not begun is left
            self._pool.shutdown(cancel_futures=exception[0] is not None)


class _SingleThreadedBlas:
    """Hold BLAS at one thread while a fit runs in any thread of Python, and restore it after the last."""

    lock, n_fits = threading.Lock(), 0
    limiter: Any = None

    def __enter__(self) -> None:
        with self.lock:
            if self.n_fits == 0:
                self.limiter = _blas().limit(limits=1, user_api="blas")
            self.n_fits += 1

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.n_fits -= 1
            if self.n_fits == 0:
                self.limiter.restore_original_limits()


single_threaded_blas = _SingleThreadedBlas()
_blas = cache(ThreadpoolController)
