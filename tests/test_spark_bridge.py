"""Fits and scores on a local Spark, and where XGBoost's own estimators for Spark end."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from toprank import GradientBoostingRanker, metrics, objectives

pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def bridge():
    path = Path(__file__).parents[1] / "examples" / "spark_bridge.py"
    spec = importlib.util.spec_from_file_location("spark_bridge", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["spark_bridge"] = module
    spec.loader.exec_module(module)
    import cloudpickle

    cloudpickle.register_pickle_by_value(module)  # Spark's workers cannot import it
    return module


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # not whatever python3 is on the path
    quiet = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = quiet.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.mark.filterwarnings("ignore")
def test_rows_go_out_and_scores_come_back(bridge, spark, tmp_path):
    rows = spark.sql("SELECT id, rand(1) AS a, rand(2) AS b FROM range(3000)")
    rows = rows.selectExpr("*", "CAST(a + b > 1.7 AS INT) AS y").cache()
    table = rows.toPandas().sort_values("id")
    ranker = GradientBoostingRanker(
        "ap_sigmoid", n_estimators=20, learning_rate=0.3, subsample=1.0, colsample_bynode=1.0,
        random_state=0, n_jobs=1,
    )  # fmt: skip
    streamed = bridge.fit_from_files(rows.drop("id"), "y", str(tmp_path / "rows"), ranker)
    spread = bridge.fit_on_spark(rows.drop("id"), "y", ranker, n_workers=2)
    found = []
    for model in (streamed, spread):
        scores = bridge.score_on_spark(rows, model, "id").toPandas().sort_values("id")["score"]
        np.testing.assert_allclose(scores, model.decision_function(table[["a", "b"]]))
        found.append(metrics.average_precision(table["y"], scores))
    assert found[0] > 0.8
    assert found[1] == pytest.approx(found[0], abs=0.02)  # the bins are others


def test_xgboost_for_spark_takes_objectives_by_name_only(spark):
    from xgboost.spark import SparkXGBRegressor

    objective = objectives.get("ap_sigmoid").for_xgboost()
    with pytest.raises((ValueError, TypeError), match=r"(?i)objective"):
        SparkXGBRegressor(objective=objective)._validate_params()
