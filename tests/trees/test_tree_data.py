"""Forests on real sets come near the published AUC (Depecker, Clemencon & Vayatis 2011, table 5)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from toprank import RankingForest, datasets, metrics

PUBLISHED = [
    ("wdbc", "rf3", "leafrank", 0.988),
    ("german_credit", "rf3", "leafrank", 0.769),
    ("japanese_credit_crx", "rf3", "leafrank", 0.931),
    ("ionosphere", "rf1", "svm", 0.990),
]
PAPER = {"consensus": "spearman", "max_depth": 8, "min_samples_leaf": 1, "leafrank_depth": 6}


@pytest.mark.data
@pytest.mark.parametrize(("name", "variant", "splitter", "published"), PUBLISHED)
def test_published_auc(data_dir, name, variant, splitter, published) -> None:
    data = datasets.load(name)
    scores = np.empty(len(data.y))
    values = []
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for train, test in folds.split(data.X, data.y):
        forest = RankingForest(25, variant=variant, splitter=splitter, random_state=0, **PAPER)
        scores[test] = forest.fit(data.X.iloc[train], data.y[train]).decision_function(
            data.X.iloc[test]
        )
        values.append(metrics.roc_auc(data.y[test], scores[test]))
    assert np.mean(values) > published - 0.02
