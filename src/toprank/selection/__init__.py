"""Comparing models by repeated, grouped or time-ordered cross-validation."""

from toprank.encoding import TableEncoder
from toprank.folds import Split, Splits, make_splits
from toprank.leaks import find_leaks
from toprank.metrics.intervals import corrected_interval, holm
from toprank.selection.compare import compare_models
from toprank.selection.comparison import ModelComparison, Recommendation
from toprank.selection.models import (
    MODELS,
    RELATIONAL_MODELS,
    YARDSTICK,
    Candidate,
    default_models,
    fit_model,
    make_model,
    training_rows,
)

__all__ = [
    "MODELS",
    "RELATIONAL_MODELS",
    "YARDSTICK",
    "Candidate",
    "ModelComparison",
    "Recommendation",
    "Split",
    "Splits",
    "TableEncoder",
    "compare_models",
    "corrected_interval",
    "default_models",
    "find_leaks",
    "fit_model",
    "holm",
    "make_model",
    "make_splits",
    "training_rows",
]
