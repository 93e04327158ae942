"""MLflow loads a model file and scores as the model does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import toprank
from toprank.persistence import mlflow as toprank_mlflow


def calibrated() -> tuple[toprank.CalibratedRanker, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "kind": rng.choice(["a", "b"], 200)})
    y = (X["x"] + rng.normal(size=200) > 1).astype(int).to_numpy()
    return toprank.CalibratedRanker(toprank.RankBoost(n_estimators=5), cv=2).fit(X, y), X, y


def test_what_mlflow_calls_scores_as_the_model_does(tmp_path: Path) -> None:
    model, X, y = calibrated()
    toprank.save(model, tmp_path / "m.toprank", X, y)
    found = toprank_mlflow._load_pyfunc(str(tmp_path / "m.toprank")).predict(X)
    np.testing.assert_array_equal(found["score"], model.decision_function(X))
    np.testing.assert_array_equal(found["probability"], model.predict_proba(X)[:, 1])


def test_without_mlflow_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"toprank\[mlflow\]"):
        toprank_mlflow.save_model(calibrated()[0], tmp_path / "folder")


@pytest.mark.filterwarnings("ignore")  # of MLflow itself
def test_saved_and_loaded_by_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    model, X, y = calibrated()
    toprank_mlflow.save_model(model, tmp_path / "fraud", X, y, metadata={"team": "risk"})
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "fraud"))
    np.testing.assert_array_equal(loaded.predict(X)["score"], model.decision_function(X))
    assert [column.name for column in loaded.metadata.get_input_schema()] == ["x", "kind"]
