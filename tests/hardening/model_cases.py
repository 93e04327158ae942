"""Small fitted models of every kind that a file can hold, for the mutator and the hostile cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import toprank
from toprank.encoding import TableEncoder


def labelled_rows(n_rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with three columns of numbers and one of categories."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 3)).round(1), columns=["a", "b", "c"])
    y = (frame["a"] + frame["b"] + 0.7 * rng.normal(size=n_rows) > 1.2).astype(int).to_numpy()
    frame["country"] = np.where(y == 1, "NL", np.where(frame["c"] > 0, "DE", "FR"))
    return frame, y


def rows_of(name: str, frame: pd.DataFrame) -> Any:
    """The rows in the form that a model of this name takes."""
    if name != "relational":
        return frame
    ids = frame.index.map("r{}".format)
    facts = pd.DataFrame({"row": ids, "country": frame["country"].to_numpy()})
    amounts = pd.DataFrame({"row": ids, "amount": frame["a"].to_numpy()})
    examples = pd.DataFrame({"row": ids})
    return toprank.RelationalData({"in": facts, "paid": amounts}, examples, target="positive")


def _encoded(*steps: Any) -> Any:
    encoder = make_column_transformer((OneHotEncoder(), ["country"]), remainder="passthrough")
    return make_pipeline(encoder, *steps)


# Each with a few rounds, so that a file is small and a mutation hits something that matters.
MODELS: dict[str, Callable[[], Any]] = {
    "boosters": lambda: toprank.GradientBoostingRanker(
        n_estimators=3, max_depth=3, n_jobs=1, random_state=0),
    "tree": lambda: toprank.TreeRank(max_depth=3, random_state=0),
    "forest": lambda: toprank.RankingForest(
        2, splitter=DecisionTreeClassifier(max_depth=3), max_depth=2, consensus="kendall",
        random_state=0),
    "rules": lambda: toprank.PRankBoost(weak="path", n_estimators=3, random_state=0),
    "pipeline": lambda: _encoded(toprank.KernelLogisticRanker(
        n_components=8, exact_rows=8, random_state=0)),
    "embedding": lambda: _encoded(toprank.PartialAUCRanker(
        embedding=toprank.TreePathEmbedding(n_folds=None, max_depth=3), random_state=0)),
    "calibrated": lambda: toprank.CalibratedRanker(
        toprank.RankBoost(n_estimators=3), cv=2, random_state=0),
    "spread out": lambda: toprank.TreeRank(splitter="svm", max_depth=2, random_state=0),
    "scikit-learn": lambda: _encoded(
        SimpleImputer(), StandardScaler(),
        CalibratedClassifierCV(RandomForestClassifier(3, max_depth=3, random_state=0), cv=2)),
    "encoder": TableEncoder,
    "automatic": lambda: toprank.AutoRanker(
        time_limit=None, portfolio=("linear",), n_folds=2, n_repeats=1, n_jobs=1, random_state=0),
    "kernel": lambda: _encoded(toprank.RankSVM(kernel="rbf", random_state=0)),
    "scorecard": lambda: toprank.CalibratedRanker(
        toprank.RuleScorecard(n_rules=3, n_folds=2), method="sigmoid", cv=2, random_state=0),
    "relational": lambda: toprank.RelationalPRankBoost(n_estimators=2, n_jobs=1, random_state=0),
}  # fmt: skip
