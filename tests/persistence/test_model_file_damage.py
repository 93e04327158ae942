"""Damaged files: refused, or still a model that scores; never another error, never a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import toprank

TRIALS = 40  # for each member of a file
RUNNER = Path(__file__).with_name("damage_runner.py")
MODELS = {
    "boosters": lambda: toprank.GradientBoostingRanker(
        n_estimators=3, max_depth=3, n_jobs=1, random_state=0),
    "tree": lambda: toprank.TreeRank(max_depth=3, random_state=0),
    "forest": lambda: toprank.RankingForest(
        2, splitter=DecisionTreeClassifier(max_depth=3), max_depth=2, consensus="kendall",
        random_state=0),
    "rules": lambda: toprank.PRankBoost(weak="path", n_estimators=3, random_state=0),
    "pipeline": lambda: make_pipeline(
        make_column_transformer((OneHotEncoder(), ["country"]), remainder="passthrough"),
        toprank.KernelLogisticRanker(n_components=8, exact_rows=8)),
    "embedding": lambda: make_pipeline(
        make_column_transformer((OneHotEncoder(), ["country"]), remainder="passthrough"),
        toprank.PartialAUCRanker(
            embedding=toprank.TreePathEmbedding(n_folds=None, max_depth=3), random_state=0)),
}  # fmt: skip


def run(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """What came of damaged files, by model and member; a process of its own may crash alone."""
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(folder), str(TRIALS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-3000:]}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MODELS)
def test_damage_of_any_member_is_refused_or_harmless(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)).round(1), columns=["a", "b", "c"])
    y = (frame["a"] + frame["b"] + 0.7 * rng.normal(size=120) > 1.2).astype(int).to_numpy()
    frame["country"] = np.where(y == 1, "NL", np.where(frame["c"] > 0, "DE", "FR"))
    toprank.save(MODELS[name]().fit(frame, y), tmp_path / f"{name}.toprank", frame, y)
    frame.to_parquet(tmp_path / "rows.parquet")
    members = run(tmp_path)[name]
    for member, outcomes in members.items():
        assert set(outcomes) <= {"refused", "scored"}, (member, outcomes)
        assert sum(outcomes.values()) == TRIALS
    # bytes in the dates of members may change without harm; lies about a model mostly do not
    assert members["the file"].get("refused", 0) > 0.8 * TRIALS
    assert members["model.json"].get("refused", 0) > 0.5 * TRIALS
