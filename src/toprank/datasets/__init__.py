"""Data to learn from and to measure on: generators with known answers, and loaders."""

from __future__ import annotations

from toprank.datasets.card_fraud import iter_card_fraud, make_card_fraud, write_card_fraud
from toprank.datasets.generators import (
    gauss20d,
    gauss20d_bayes_auc,
    gauss20d_bayes_score,
    make_queries,
    toy14,
)
from toprank.datasets.loaders import Dataset, RelationalDataset, describe, load, load_relational
from toprank.datasets.relational import make_relational

__all__ = [
    "Dataset",
    "RelationalDataset",
    "describe",
    "gauss20d",
    "gauss20d_bayes_auc",
    "gauss20d_bayes_score",
    "iter_card_fraud",
    "load",
    "load_relational",
    "make_card_fraud",
    "make_queries",
    "make_relational",
    "toy14",
    "write_card_fraud",
]
