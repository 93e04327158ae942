"""Streamed rows against the same rows in memory, and what is said of files that cannot be used."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from toprank import GradientBoostingRanker, metrics
from toprank.out_of_core import score_source
from toprank.sources import Source, memory_bytes
from toprank.tables import TableError, read_table

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
    assert len(model.boosters_) == 2  # one objective and the random forest
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
