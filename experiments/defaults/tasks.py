"""The ten sets of the comparison: how each is read and split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, train_test_split

from toprank import datasets
from toprank.columns import Columns

# Small sets choose by 5-fold cross-validation and are split more often; large ones hold out a quarter.
REPEATS = {
    "heart_cleveland_4_vs_all": 20,
    "breast_cancer_ljubljana": 20,
    "pima": 20,
    "hiv1_protease": 20,
    "letter_img_z": 20,
    "w8a": 5,
    "a9a": 5,
    "ijcnn1": 5,
    "covtype_4_vs_2": 5,
    "creditcard_fraud": 8,
}
TEST_SHARE = 1 / 3


@dataclass(frozen=True)
class Task:
    """One split of one set: training rows, test rows, and inner splits of the training rows."""

    X: pd.DataFrame
    y: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    columns: Columns
    inner: list[tuple[np.ndarray, np.ndarray]]


def make_task(name: str, repeat: int) -> Task:
    """Read a set and split it: at random, or (card fraud) the first day against the second."""
    data = datasets.load(name)
    X, y = data.X, np.asarray(data.y)
    if name == "creditcard_fraud":
        first_day = X["Time"].to_numpy() < 86_400
        X = X.drop(columns="Time")
        train, test = np.flatnonzero(first_day), np.flatnonzero(~first_day)
    else:
        train, test = train_test_split(
            np.arange(len(y)), test_size=TEST_SHARE, stratify=y, random_state=repeat
        )
    rows = X.iloc[train].reset_index(drop=True)
    return Task(
        rows, y[train], X.iloc[test], y[test], Columns.of(rows), inner_splits(y[train], repeat)
    )


def inner_splits(y: np.ndarray, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Splits of the training rows for choosing: five folds where rows are few, else a quarter."""
    if len(y) < 5000:
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        return list(folds.split(np.zeros(len(y)), y))
    fit, held_out = train_test_split(
        np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed
    )
    return [(fit, held_out)]
