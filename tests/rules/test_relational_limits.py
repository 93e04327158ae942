"""Limits, interruptions, threads and memory of the relational search."""

from __future__ import annotations

import gc
import math
import signal
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from relational_worlds import friends

from toprank import Mode, RelationalData, RelationalPRankBoost, stopping
from toprank.rules.relational.background import BATCH_ROWS, Queries, TimeUpError, connect
from toprank.rules.relational.bottom import MAX_REPEATED, Saturation
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.schema import Predicate, infer_modes
from toprank.rules.relational.search import RelationalLimits, RelationalSource
from toprank.rules.weak_rankers import SearchPath

pytestmark = pytest.mark.flaky(reruns=1)  # real processes and clocks on a busy machine
SLOW = "SELECT count(*) AS n FROM range(1000000000) a, range(100000) b WHERE a.range % (b.range + 1) = 3"


def customers(n_columns: int, n: int = 200) -> tuple[RelationalData, np.ndarray]:
    """A wide table of properties; y: two of them have certain values."""
    rng = np.random.default_rng(0)
    ids = [f"c{k}" for k in range(n)]
    columns = {f"x{j}": rng.choice([f"{j}_{v}" for v in range(6)], n) for j in range(n_columns)}
    table = pd.DataFrame({"id": ids, **columns})
    y = ((table["x0"] == "0_1") & (table["x1"] == "1_2")).to_numpy().astype(int)
    return RelationalData({"customer": table}, pd.DataFrame({"id": ids}), target="bad"), y


def test_wide_tables_of_properties_are_searched_quickly() -> None:
    data, y = customers(15)
    assert len(data.schema.modes) == 16  # the key with each property, or with none
    start = time.process_time()
    model = RelationalPRankBoost(2, n_jobs=1, random_state=0).fit(data, y)
    assert time.process_time() - start < 20
    assert model.predict(data).tolist() == y.tolist()
    rule = str(model.rounds_[0].rules[0])
    assert "'0_1'" in rule
    assert "'1_2'" in rule
    assert len(rule) < 120  # what nothing asks for is not named


def test_in_wide_tables_keys_and_shared_types_are_inputs() -> None:
    wide = Predicate("p", tuple("abcde"), ("key", "x", "person", "y", "z"))
    distinct = {"a": 50, "b": 20, "c": 30, "d": 2, "e": 50}
    modes = infer_modes(wide, distinct, 50, target_types=["person"], shared_types=["x"])
    assert {mode.kinds.index("+") for mode in modes} == {0, 1, 2, 4}
    alone = infer_modes(wide, dict.fromkeys("abcde", 9), 50)
    assert {mode.kinds.index("+") for mode in alone} == set(range(5))
    narrow = Predicate("q", tuple("abcd"), ("key", "x", "person", "y"))
    assert {m.kinds.index("+") for m in infer_modes(narrow, distinct, 50)} == set(range(4))


def test_a_literal_repeats_few_known_variables() -> None:
    row = {f"c{k}": ["v"] for k in range(4)}
    types = {"t": ["x"], "p": ["x"] * 4}
    data = RelationalData(
        {"p": pd.DataFrame(row)},
        pd.DataFrame({"id": ["v"]}),
        target="t",
        types=types,
        modes=[Mode("p", ("+", "-", "-", "-"))],
    )
    bottom = Saturation(data.schema).of(data.background, data.codes()[0])
    found = bottom.refinements(bottom.start())
    repeated = [3 - refinement.n_new for refinement in found]
    assert max(repeated) == MAX_REPEATED
    assert len(found) == 1 + 3 + 3
    with pytest.raises(TimeUpError):
        bottom.refinements(bottom.start(), time.monotonic() - 1)


def test_what_was_scored_before_time_was_up_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    data, y = friends(n=150)
    calls, run = [], Queries.run

    def slow_after_first(self, sql, take, deadline):
        calls.append(sql)
        if len(calls) % 2 == 0:
            raise TimeUpError
        run(self, sql, take, deadline)

    monkeypatch.setattr(Queries, "run", slow_after_first)
    with Coverage(data.background, data.codes()) as coverage:
        limits = RelationalLimits(max_seconds=60.0, lookahead=3)
        source = RelationalSource(data, coverage, limits, np.random.RandomState(0))
        found = source.best(y, np.ones(len(y)), "auc")
    assert found is not None
    assert found.n_evaluated > 0
    assert len(calls) >= 2


def test_a_slow_query_is_stopped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    data, y = friends(n=60)
    run = Queries.run

    def slow(self, sql, take, deadline):
        assert deadline < math.inf
        run(self, SLOW, take, deadline)

    monkeypatch.setattr(Queries, "run", slow)
    start = time.monotonic()
    model = RelationalPRankBoost(3, max_seconds=0.2, random_state=0)
    with pytest.warns(UserWarning, match="stopped after max_seconds"):
        model.fit(data, y)
    assert len(model.rounds_) == 0
    assert time.monotonic() - start < 20


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_query_can_be_stopped_and_the_next_one_runs(n_threads: int) -> None:
    pl.LazyFrame({"a": [1]}).collect()  # sets a handler of its own for Ctrl-C
    cursor = connect().cursor()
    cursor.execute(f"SET threads = {n_threads}")
    queries, batches = Queries(cursor), []
    start = time.monotonic()
    with pytest.raises(TimeUpError):
        queries.run(SLOW, batches.append, start + 0.2)
    with pytest.raises(TimeUpError):
        queries.run(SLOW, batches.append, start)
    send_interrupt(after=0.2)
    with pytest.raises(KeyboardInterrupt):
        queries.run(SLOW, batches.append)
    with pytest.raises(Exception, match="no_such_table"):
        queries.run("SELECT * FROM no_such_table", batches.append)
    assert not batches
    n_rows = 2 * BATCH_ROWS + 7
    queries.run(f"SELECT range AS n FROM range({n_rows})", batches.append)
    assert len(batches) > 2  # a large answer is never whole in memory
    found = np.concatenate([batch["n"].to_numpy() for batch in batches])
    np.testing.assert_array_equal(np.sort(found), np.arange(n_rows))
    queries.close()
    assert time.monotonic() - start < 30


def test_closing_stops_queries_that_still_run() -> None:
    queries = Queries(connect().cursor())
    queries._pool.submit(queries.cursor.execute, SLOW)
    queries._pool.submit(queries.cursor.execute, SLOW)
    start = time.monotonic()
    queries.close()
    assert time.monotonic() - start < 30


def send_interrupt(after: float) -> None:
    """Press Ctrl-C in a moment."""
    main = threading.main_thread().ident
    threading.Timer(after, signal.pthread_kill, [main, signal.SIGINT]).start()


def test_a_signal_in_the_middle_of_a_query_keeps_the_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C while DuckDB is at work, not only between rounds."""
    data, y = friends(n=150)
    whole = RelationalPRankBoost(6, random_state=0).fit(data, y)
    searches, best, run = [], RelationalSource.best, Queries.run

    def counted(self, *arguments):
        searches.append(1)
        if len(searches) == 4:
            self.coverage._cache.clear()  # so that it has something to ask
        return best(self, *arguments)

    def interrupted(self, sql, take, deadline=math.inf):
        if len(searches) == 4:
            searches.append(1)
            send_interrupt(after=0.2)
            sql = SLOW
        run(self, sql, take, deadline)

    monkeypatch.setattr(RelationalSource, "best", counted)
    monkeypatch.setattr(Queries, "run", interrupted)
    with pytest.warns(UserWarning, match="keeping the 3 of 6 rounds"):
        model = RelationalPRankBoost(6, random_state=0).fit(data, y)
    assert [kept.rules for kept in model.rounds_] == [kept.rules for kept in whole.rounds_[:3]]
    expected = list(whole.staged_decision_function(data))[2] + whole.offset_
    np.testing.assert_allclose(model.decision_function(data) + model.offset_, expected)


def test_a_progress_bar_is_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    shown, bar = [], stopping.progress

    def watched(total, label, enabled):
        shown.append((total, label, bool(enabled)))
        return bar(total, label, enabled)

    monkeypatch.setattr(stopping, "progress", watched)
    data, y = friends()
    RelationalPRankBoost(3, random_state=0).fit(data, y)
    assert capfd.readouterr() == ("", "")
    RelationalPRankBoost(3, random_state=0, verbose=1).fit(data, y)
    assert capfd.readouterr().out == ""
    assert shown == [(3, "RelationalPRankBoost", False), (3, "RelationalPRankBoost", True)]


def test_the_number_of_threads_is_restored() -> None:
    data, y = friends()

    def threads() -> int:
        query = "SELECT current_setting('threads')"
        return data.background.cursor().execute(query).fetchone()[0]

    before = threads()
    model = RelationalPRankBoost(2, n_jobs=before + 2, random_state=0).fit(data, y)
    model.decision_function(data)
    assert threads() == before
    with data.background.threads(1):
        assert threads() == 1
    assert threads() == before
    with pytest.raises(ValueError, match="n_jobs"):
        RelationalPRankBoost(2, n_jobs=0).fit(data, y)


def test_rounds_with_a_byte_for_every_example_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    data, y = friends()
    alive = []
    best = RelationalSource.best

    def counted(self, *arguments):
        gc.collect()
        alive.append(sum(isinstance(thing, SearchPath) for thing in gc.get_objects()))
        return best(self, *arguments)

    monkeypatch.setattr(RelationalSource, "best", counted)
    model = RelationalPRankBoost(6, random_state=0).fit(data, y)
    assert len(model.rounds_) == 6
    assert max(alive) - alive[0] <= 1
