"""Streamed rows against the same rows in memory, and what is said of files that cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

from toprank import GradientBoostingRanker, metrics
from toprank.boosting.xgboost_helpers import cut_points, quantile_matrix
from toprank.columns import Columns
from toprank.out_of_core import score_source, weighted_sample
from toprank.sources import Source, memory_bytes
from toprank.tables import TableError, connect, read_table

N_ROWS = 1500


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["a", "b", "c"]).round(3)
    frame["country"] = np.array(["NL", "DE", "FR"])[rng.integers(0, 3, N_ROWS)]
    frame["merchant"] = np.array([f"m{k}" for k in range(40)])[rng.integers(0, 40, N_ROWS)]
    frame.loc[::7, "c"] = np.nan
    frame.loc[::11, "country"] = None
    signal = frame["a"] + frame["b"] + (frame["country"] == "FR") + rng.normal(size=N_ROWS)
    frame["y"] = (signal > 2.8).astype(int)
    frame["w"] = 1.0 + np.arange(N_ROWS) % 3
    return frame


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    for k, part in enumerate(np.array_split(np.arange(N_ROWS), 3)):
        table.iloc[part].to_parquet(path / f"part-{k}.parquet", index=False)
    return path


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("objective", ["ap_sigmoid", "logistic"])
def test_streamed_rows_give_the_model_of_rows_in_memory(table, folder, objective, weights):
    X, y = table[["a", "b", "c", "country", "merchant"]], table["y"]
    ranker = GradientBoostingRanker(objective, n_estimators=4, n_seeds=1, subsample=1.0, n_jobs=1)
    local = ranker.set_params(random_state=0).fit(X, y, table["w"] if weights else None)
    expected, offset = local.decision_function(X), local.offset_
    named = {"sample_weight": "w"} if weights else {"drop": ["w"]}
    streamed = ranker.fit_source(folder, target="y", **named)
    np.testing.assert_allclose(streamed.decision_function(X), expected, atol=2e-5)
    assert streamed.offset_ == pytest.approx(offset, abs=2e-5)
    assert streamed.columns_.names == tuple(X.columns)
    np.testing.assert_array_equal(streamed.columns_.categories[3], ["DE", "FR", "NL"])
    assert streamed.columns_.numbers[4].sum() == (table["w"].sum() if weights else N_ROWS)


def test_csv_early_stopping_and_the_automatic_objective(table, tmp_path):
    path = tmp_path / "rows.csv"
    table.drop(columns="w").to_csv(path, index=False)
    ranker = GradientBoostingRanker(
        n_estimators=4,
        n_seeds=1,
        random_trees=15,
        early_stopping_rounds=2,
        n_jobs=1,
        random_state=0,
    )
    model = ranker.fit_source(path, target="y", memory="1GB")
    assert len(model.boosters_) == 3  # one objective, the random forest, the linear model
    assert 1 <= model.n_estimators_ <= 4
    assert len(model.validation_scores_) >= model.n_estimators_
    scores = model.decision_function(table[["a", "b", "c", "country", "merchant"]])
    assert metrics.average_precision(table["y"], scores) > 3 * table["y"].mean()


def test_scores_stream_from_parquet_to_parquet(table, folder, tmp_path):
    model = GradientBoostingRanker("logistic", n_estimators=2, n_jobs=1).fit_source(
        folder, target="y", drop=["w"]
    )
    out = tmp_path / "scores.parquet"
    assert score_source(model, folder, out, columns=["y"]) == N_ROWS
    found = read_table(out)
    expected = model.decision_function(table[list(model.feature_names_in_)])
    np.testing.assert_allclose(found["score"], expected, atol=1e-5)
    assert found["score"].dtype == np.float32
    np.testing.assert_array_equal(found["y"], table["y"])
    exact = metrics.average_precision(table["y"], found["score"])
    report = metrics.evaluate_source(out, label="y", score="score", metrics=["average_precision"])
    assert report["average_precision"]["value"] == pytest.approx(exact, rel=1e-12)


def test_what_is_wrong_with_files_is_named(table, folder, tmp_path):
    ranker = GradientBoostingRanker(n_estimators=1)
    for part in folder.iterdir():
        (tmp_path / part.name).write_bytes(part.read_bytes())
    damaged = tmp_path / "part-1.parquet"
    good = damaged.read_bytes()
    damaged.write_bytes(good[: len(good) // 2])
    with pytest.raises(TableError, match=r"part-1\.parquet cannot be read"):
        ranker.fit_source(tmp_path, target="y")
    table.iloc[:9].assign(a="text").to_parquet(damaged, index=False)
    with pytest.raises(
        TableError, match=r"part-1\.parquet differs from .*'a' is VARCHAR, not DOUBLE"
    ):
        ranker.fit_source(tmp_path, target="y")
    table.iloc[:9].drop(columns="b").to_parquet(damaged, index=False)
    with pytest.raises(TableError, match="it lacks 'b'"):
        ranker.fit_source(tmp_path, target="y")
    with pytest.raises(ValueError, match="hold no value in any row: 'gone'"):
        ranker.fit_source(sql="SELECT 1.0 AS a, NULL::DOUBLE AS gone, 1 AS y", target="y")
    with pytest.raises(ValueError, match="column 'd' has type DATE"):
        ranker.fit_source(
            sql="SELECT DATE '2020-01-01' AS d, i AS y FROM range(2) t(i)", target="y"
        )
    with pytest.raises(ValueError, match="is too little for 1,500 rows"):
        ranker.fit_source(folder, target="y", memory="100MB")
    with pytest.raises(ValueError, match="only one class"):
        ranker.fit_source(sql="SELECT 1.0 AS a, 1 AS y FROM range(9)", target="y")
    with pytest.raises(ValueError, match="step='newton'"):
        GradientBoostingRanker(step="line_search").fit_source(folder, target="y")


def test_sizes_and_sources():
    assert memory_bytes("2 GiB") == memory_bytes("2GB") == 2_000_000_000
    with pytest.raises(ValueError, match="is no size"):
        memory_bytes("a lot")
    source = Source.of(sql="SELECT 1 AS a", memory="2GB")
    assert Source.of(source).memory == 2 * 10**9
    assert Source.of(source, memory=10**8).memory == 10**8
    with pytest.raises(TypeError, match="either a source"):
        Source.of()
    with pytest.raises(TableError, match="no such file"):
        Source.of("nowhere/*.parquet")


def test_a_table_of_numbers_alone() -> None:
    query = "SELECT i * 7 % 100 AS a, (a > 90)::INT AS y FROM range(500) AS t(i)"
    model = GradientBoostingRanker("logistic", n_estimators=3, n_jobs=1).fit_source(
        sql=query, target="y"
    )
    scores = model.decision_function(pd.DataFrame({"a": [1.0, 99.0]}))
    assert scores[1] > scores[0]


def test_cut_points_are_those_that_xgboost_finds_by_itself() -> None:
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(3000, 17)), rng.integers(0, 2, 3000), np.full(3000, 3.0)]
    X[::5, 0] = np.nan
    X = np.c_[X, rng.integers(0, 4, 3000)].astype(np.float32)
    weight = rng.random(3000)
    kinds = (*[None] * 19, np.array(["a", "b", "c", "d", "never drawn"]))
    columns = Columns(tuple(f"x{j}" for j in range(20)), kinds)
    table = cut_points(X, columns, max_bin=64, sample_weight=weight, n_jobs=1)
    assert not np.isinf(table).any()  # as the lower bound of a column is in some versions
    ends, found = quantile_matrix(table, columns, max_bin=64).get_quantile_cut()
    whole = quantile_matrix(X, columns, max_bin=64, sample_weight=weight)
    own_ends, expected = whole.get_quantile_cut()
    for j in range(19):  # between the bounds, which no cell lies beyond
        cuts, own = found[ends[j] : ends[j + 1]], expected[own_ends[j] : own_ends[j + 1]]
        np.testing.assert_array_equal(cuts[1:-1], own[1:-1])
    assert ends[20] - ends[19] == 5  # each category has a place, also one that is not in these rows


@pytest.mark.parametrize("value", [5.0, -3.0, 0.0])
def test_a_column_of_one_value_and_missing_cells_tells_rows_apart(value, tmp_path) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(2_000) < 0.3).astype(int)
    rows = pd.DataFrame({"mark": np.where(rng.random(2_000) < 0.2 + 0.6 * y, value, np.nan)})
    rows.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    settings = {"n_estimators": 3, "colsample_bynode": 1.0, "n_jobs": 1, "random_state": 0}
    model = GradientBoostingRanker("logistic", **settings)
    streamed = model.fit_source(tmp_path / "rows.parquet", target="y").decision_function(rows)
    in_memory = GradientBoostingRanker("logistic", **settings).fit(rows, y).decision_function(rows)
    np.testing.assert_allclose(streamed, in_memory, atol=1e-5)
    assert metrics.roc_auc(y, streamed) > 0.7


def test_a_sample_stands_for_all_rows() -> None:
    positive = np.arange(50_000) % 10 == 0
    chosen, copies = weighted_sample(positive, 0, fewest=1_000, most=2_000)
    drawn = positive[chosen]
    assert (drawn.sum(), (~drawn).sum()) == (2_000, 2_000)
    assert copies[drawn].sum() == pytest.approx(5_000)
    assert copies[~drawn].sum() == pytest.approx(45_000)
    parts = np.array_split(positive, [7, 20_000])
    shares = [len(part) / len(positive) for part in parts]
    # rows of which all may be held are all held, however they are cut
    for most in (50_000, 49_000):
        sizes = [
            len(weighted_sample(part, 0, most, most, share)[0])
            for part, share in zip(parts, shares, strict=True)
        ]
        assert sizes == [len(part) for part in parts]


def test_wide_row_groups_are_read_some_columns_at_a_time(tmp_path) -> None:
    file = tmp_path / "wide.parquet"
    X = np.random.default_rng(0).normal(size=(60_000, 40))
    X[::3, 2] = np.nan
    pd.DataFrame(X, columns=[f"x{j}" for j in range(40)]).to_parquet(
        file, index=False, row_group_size=60_000
    )
    for memory, n_files in ((10**9, 0), (32 * 10**6, 3)):
        with Source.of(file, memory=memory).opened(
            ["x39", "x2", *[f"x{j}" for j in range(3, 39)]]
        ) as rows:
            copies = sorted(os.listdir(rows.folder))
            assert len(copies) == n_files
            parts = list(rows.batches(7_000, ["x2", "x39"]))
            # a condition on one file must not shift its rows against those of another
            sums = rows.rows("SELECT sum(x39), count(*)", "WHERE x2 IS NOT NULL")[0]
            whole = sum(len(part) for part in rows.batches(7_000))
        table = pd.concat(parts, ignore_index=True)
        np.testing.assert_array_equal(table.to_numpy(), X[:, [2, 39]])
        assert whole == len(X)
        present = ~np.isnan(X[:, 2])
        assert sums == pytest.approx((X[present, 39].sum(), present.sum()))


LIMITED = """
import json, resource, sys
import numpy as np, pandas as pd
from toprank import GradientBoostingRanker
from toprank.out_of_core import score_source

def kilobytes(what):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what))

def run(rows, test, memory):
    model = GradientBoostingRanker(
        "logistic", n_estimators=16, max_leaves=8, max_bins=32, colsample_bynode=1.0, n_jobs=1
    )
    model.fit_source(f"{folder}/{rows}", target="y", memory=memory)
    score_source(model, f"{folder}/{test}", f"{folder}/scores.parquet", columns=["y"], memory=memory)

folder, allowed = sys.argv[1], int(sys.argv[2])
run("few", "few", "2GB")  # what is loaded and compiled once is no part of the limit
before = 1024 * kilobytes("VmData")
if allowed:
    resource.setrlimit(resource.RLIMIT_DATA, (before + allowed, before + allowed))
resident = 1024 * kilobytes("VmRSS")
run("train", "test", resident + allowed)
peak = 1024 * kilobytes("VmHWM")
print(json.dumps({"before": before, "resident": resident, "peak": peak}))
"""


def small_stacks() -> None:
    """Give each thread of the process that is about to start a stack of a megabyte."""
    import resource

    resource.setrlimit(resource.RLIMIT_STACK, (2**20, resource.getrlimit(resource.RLIMIT_STACK)[1]))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits private memory")
@pytest.mark.timeout(1800)  # half a minute of work, of which a busy machine may make ten minutes
def test_rows_of_four_times_the_memory_that_the_system_allows(tmp_path, record_property) -> None:
    """The fitting process may take a quarter of the matrix in memory beyond what it holds when idle."""
    n_rows, n_columns = 350_000, 200
    allowed = 8 * n_rows * n_columns // 4
    columns = ", ".join(f"random() AS x{j}" for j in range(n_columns))
    label = "(x0 + 2 * x1 * x2 + 0.3 * random() > 2.2)::INT AS y"
    with connect() as connection:
        connection.execute("SET threads = 1; SELECT setseed(0.1)")
        for name, n in (("few", 3_000), ("train", n_rows), ("test", 60_000)):
            (tmp_path / name).mkdir()
            for k in range(2):
                connection.execute(
                    f"COPY (SELECT *, {label} FROM (SELECT {columns} FROM range({n // 2}))) "
                    f"TO '{tmp_path}/{name}/{k}.parquet' (FORMAT parquet, ROW_GROUP_SIZE 4096)"
                )
    # allocators and stacks of threads must not reserve more than they use, for the limit counts that too
    quiet = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), str(tmp_path), str(allowed)],
        env={**os.environ, **quiet}, capture_output=True, text=True, check=False,
        preexec_fn=small_stacks,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    sys.stdout.write(f"allowed {allowed}, bytes of the process {found}\n")  # shown by pytest -rP
    scores = read_table(tmp_path / "scores.parquet")
    train, test = (read_table(f"{tmp_path}/{name}/*.parquet") for name in ("train", "test"))
    model = GradientBoostingRanker(
        "logistic", n_estimators=16, max_leaves=8, max_bins=32, colsample_bynode=1.0, n_jobs=1
    ).fit(train.drop(columns="y"), train["y"])
    in_memory = metrics.average_precision(
        test["y"], model.decision_function(test.drop(columns="y"))
    )
    streamed = metrics.average_precision(scores["y"], scores["score"])
    assert streamed == pytest.approx(in_memory, abs=0.005)
    assert in_memory > 3 * test["y"].mean()
