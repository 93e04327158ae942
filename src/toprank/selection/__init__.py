"""Comparing models by repeated, grouped or time-ordered cross-validation."""

from toprank.encoding import TableEncoder
from toprank.folds import Split, Splits, make_splits
from toprank.metrics.intervals import corrected_interval, holm
from toprank.selection.compare import compare_models
from toprank.selection.comparison import ModelComparison, Recommendation
from toprank.selection.models import (
    DEFAULT_MODELS,
    MODELS,
    YARDSTICK,
    Candidate,
    fit_model,
    make_model,
    training_rows,
)

__all__ = [
    "DEFAULT_MODELS",
    "MODELS",
    "YARDSTICK",
    "Candidate",
    "ModelComparison",
    "Recommendation",
    "Split",
    "Splits",
    "TableEncoder",
    "compare_models",
    "corrected_interval",
    "fit_model",
    "holm",
    "make_model",
    "make_splits",
    "training_rows",
]
