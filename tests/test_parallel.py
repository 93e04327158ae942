"""Tasks in threads give what they give one after the other."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from toprank import parallel
from toprank.parallel import limit_threads, run_halves, run_tasks, thread_count


@pytest.fixture(params=[1, 2])
def n_cpus(request, monkeypatch) -> int:
    monkeypatch.setattr(parallel, "_ROWS_FOR_THREADS", 0)
    monkeypatch.setattr(parallel, "available_cores", lambda: request.param)
    return request.param


@pytest.mark.parametrize("n_rows", [0, 1, 2, 7])
def test_both_halves_are_done_once(n_cpus: int, n_rows: int) -> None:
    times = np.zeros(n_rows)

    def count(part: slice) -> None:
        times[part] += 1

    run_halves(count, n_rows)
    assert (times == 1).all()


def test_long_lists_use_two_threads(n_cpus: int) -> None:
    both = threading.Barrier(n_cpus)  # with one thread nobody else has to come
    names = run_tasks([lambda: (both.wait(10), threading.get_ident())[1]] * 2, n_rows=10)
    assert len(set(names)) == n_cpus


def test_short_lists_stay_in_this_thread() -> None:
    assert run_tasks([threading.get_ident] * 2, n_rows=10) == [threading.get_ident()] * 2


def test_one_job_is_one_thread(monkeypatch) -> None:
    monkeypatch.setattr(parallel, "_ROWS_FOR_THREADS", 0)
    monkeypatch.setattr(parallel, "available_cores", lambda: 2)
    here = [threading.get_ident()] * 2
    with limit_threads(1):
        assert run_tasks([threading.get_ident] * 2, n_rows=10) == here
    assert run_tasks([threading.get_ident] * 2, n_rows=10) != here


def test_errors_come_through(n_cpus: int) -> None:
    def fail() -> None:
        raise ValueError("no such row")

    with pytest.raises(ValueError, match="no such row"):
        run_tasks([fail, fail], n_rows=10)


def test_thread_counts():
    assert thread_count(1) == 1
    assert thread_count(None) == thread_count(-1) >= 1
    assert thread_count(-100) == 1
    with pytest.raises(ValueError, match="n_jobs"):
        thread_count(0)
