"""Queries that can be stopped: by Ctrl-C, or when their time is up."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

__all__ = ["Queries", "TimeUpError"]

PATIENCE = (
    0.05  # seconds between attempts to stop a query: one that has not begun yet takes no notice
)


class TimeUpError(Exception):
    """The time of a search is up."""


class Queries:
    """Runs the queries of one cursor.

    With one thread DuckDB itself looks out for Ctrl-C. With several it may not see it before a query has
    ended, and it knows no deadlines: the caller then waits, and looks, while another thread asks.

    Parameters
    ----------
    cursor : DuckDB cursor

    Examples
    --------
    >>> from toprank.rules.relational.sources import connect
    >>> queries = Queries(connect().cursor())
    >>> queries.fetch("SELECT 1 + 1 AS two")["two"].tolist()
    [2]
    >>> queries.close()
    """

    def __init__(self, cursor: Any) -> None:
        self.cursor = cursor
        setting = cursor.execute("SELECT current_setting('threads')").fetchall()
        self._alone = int(setting[0][0]) == 1
        self._pool = ThreadPoolExecutor(1)  # its thread starts with its first task

    def close(self) -> None:
        """Stop what still runs and end the other thread."""
        self._stop()
        self._pool.shutdown()

    def fetch(self, sql: str, deadline: float | None = None) -> dict[str, Any]:
        """Run a query and return its columns as arrays.

        Past the deadline (on the clock of `time.monotonic`) it is stopped and `TimeUpError` raised.
        """
        if _is_past(deadline):
            raise TimeUpError
        if self._alone and deadline is None:
            return self._run_here(sql)
        try:
            running = self._pool.submit(self._run, sql)
            # in short waits: with handlers that restart system calls, as Polars sets, Ctrl-C would not
            # end a wait without a limit
            while not wait([running], PATIENCE).done and not _is_past(deadline):
                pass
        except BaseException:  # Ctrl-C, for one, at any moment: the query may run or wait to run
            self._stop()
            raise
        if not running.done():
            self._stop()
            raise TimeUpError
        return running.result()

    def _run(self, sql: str) -> dict[str, Any]:
        return self.cursor.execute(sql).fetchnumpy()

    def _run_here(self, sql: str) -> dict[str, Any]:
        try:
            return self._run(sql)
        except RuntimeError as error:  # how DuckDB answers Ctrl-C
            if type(error) is RuntimeError and "interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise

    def _stop(self) -> None:
        """Interrupt until the thread has got to the end of its queue.

        A query that has not begun yet takes no notice of it, so once is not enough.
        """
        last = self._pool.submit(int)
        while not wait([last], PATIENCE).done:
            self.cursor.interrupt()


def _is_past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline
