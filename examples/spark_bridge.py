"""From Spark to toprank and back: a fit on Spark's own workers, or on Parquet files; scores by a pandas UDF.

XGBoost's estimators for Spark take objectives by name only, so the objectives of toprank cannot be handed to
them. But what they are built from is open to all: a barrier stage, in which every task runs at once, and
XGBoost's tracker, through which the tasks find each other. `fit_on_spark` does the same with `fit_on_worker`.
Where one machine's disk holds the table, `fit_from_files` is simpler: Spark writes a folder of Parquet
files and `fit_source` streams it. Run it with pyspark installed: `python examples/spark_bridge.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import toprank
from toprank import GradientBoostingRanker
from toprank.distributed import fit_on_worker


def fit_on_spark(
    table: Any, target: str, ranker: GradientBoostingRanker, n_workers: int
) -> GradientBoostingRanker:
    """Fit on a Spark table of numbers, in `n_workers` tasks that Spark runs at the same time."""
    from xgboost.tracker import RabitTracker

    host = table.sparkSession.conf.get("spark.driver.host")
    tracker = RabitTracker(n_workers=n_workers, host_ip=host, sortby="task")
    tracker.start()
    arguments = tracker.worker_args()

    def train(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from pyspark import BarrierTaskContext
        from xgboost.collective import CommunicatorContext

        rows, number = pd.concat(list(batches)), BarrierTaskContext.get().partitionId()
        with CommunicatorContext(**arguments, dmlc_task_id=f"{number:06d}"):
            model = fit_on_worker(ranker, rows.drop(columns=target), rows[target])
        if number == 0:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.toprank"
                toprank.save(model, path)
                yield pd.DataFrame({"model": [path.read_bytes()]})

    spread = table.repartition(n_workers).mapInPandas(train, "model binary", barrier=True)
    found = spread.collect()[0]["model"]
    tracker.wait_for()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.toprank"
        path.write_bytes(bytes(found))
        return toprank.load(path)


def fit_from_files(
    table: Any, target: str, folder: str, ranker: GradientBoostingRanker
) -> GradientBoostingRanker:
    """Write a Spark table to `folder`, which this machine can read, and fit a ranker on it."""
    table.write.mode("overwrite").parquet(folder)
    return ranker.fit_source(folder, target=target)


def score_on_spark(table: Any, model: GradientBoostingRanker, keep: str) -> Any:
    """Return a Spark table of the column `keep` and the scores, computed where the rows are."""
    columns = [str(name) for name in model.feature_names_in_]

    def score(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield pd.DataFrame(
                {keep: batch[keep], "score": model.decision_function(batch[columns])}
            )

    kind = dict(table.dtypes)[keep]
    return table.mapInPandas(score, schema=f"`{keep}` {kind}, score double")


def main() -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").appName("toprank").getOrCreate()
    rows = spark.sql("SELECT id, rand(1) AS a, rand(2) AS b FROM range(20000)")
    rows = rows.selectExpr("*", "CAST(a + b > 1.9 AS INT) AS y").cache()
    ranker = GradientBoostingRanker("ap_sigmoid", n_estimators=30, random_state=0, n_jobs=1)
    with tempfile.TemporaryDirectory() as folder:
        for model in (
            fit_on_spark(rows.drop("id"), "y", ranker, n_workers=2),
            fit_from_files(rows.drop("id"), "y", folder, ranker),
        ):
            score_on_spark(rows, model, "id").orderBy("score", ascending=False).show(5)
    spark.stop()


if __name__ == "__main__":
    main()
