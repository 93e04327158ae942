"""Checks shared by every metric: raw arrays in, clean arrays out, the same errors everywhere.

Rows of zero weight are left out here, so that nothing later has to think of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

# Read-only arrays (every column of a pandas table) would make the kernels compile a second time.
WRITABLE: tuple[Literal["C"], Literal["W"]] = ("C", "W")
ONE_CLASS = (
    "A ranking metric needs both classes: rows to be found and rows to be passed over. "
    "Check the labels, pos_label and, in cross-validation, that the folds are stratified."
)


@dataclass(frozen=True)
class BinaryRows:
    """Rows with a boolean label, finite scores and, when given, positive weights."""

    positive: np.ndarray
    scores: np.ndarray
    weight: np.ndarray | None


@dataclass(frozen=True)
class GradedRows:
    """Rows with a relevance (a number; higher is better) and perhaps a query."""

    relevance: np.ndarray
    scores: np.ndarray
    weight: np.ndarray | None
    qid: np.ndarray | None


def binary_rows(
    y_true: Any, scores: Any, sample_weight: Any = None, pos_label: Any = None
) -> BinaryRows:
    """Check two-class labels, scores and weights against one another."""
    labels = check_labels(y_true)
    values = check_scores(scores)
    check_lengths(y_true=labels, scores=values, sample_weight=sample_weight)
    weight, kept = check_weight(sample_weight, len(labels))
    positive = binarize(labels, pos_label)
    if kept is not None:
        positive, values = positive[kept], values[kept]
    n_positives = int(np.count_nonzero(positive))
    if n_positives in (0, len(positive)):
        raise ValueError(_one_class_message(labels, n_positives > 0, kept is not None))
    return BinaryRows(positive, values, weight)


def graded_rows(
    y_true: Any,
    scores: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    qid: Any = None,
    *,
    signed: bool = False,
) -> GradedRows:
    """Check graded labels (numbers, 0 = not relevant), scores, weights and queries.

    `signed` allows any numbers as labels, where only their order matters.
    """
    labels = check_labels(y_true)
    values = check_scores(scores)
    check_lengths(y_true=labels, scores=values, sample_weight=sample_weight, qid=qid)
    weight, kept = check_weight(sample_weight, len(labels))
    relevance = _relevance(labels, pos_label, signed)
    queries = None if qid is None else check_queries(qid)
    if kept is not None:
        relevance, values = relevance[kept], values[kept]
        queries = None if queries is None else queries[kept]
    if relevance.min() == relevance.max():
        raise ValueError(
            f"y_true holds only one class ({relevance[0]:g})"
            f"{' once rows of weight 0 are left out' if kept is not None else ''}. {ONE_CLASS}"
        )
    return GradedRows(relevance, values, weight, queries)


def check_labels(y_true: Any) -> np.ndarray:
    """Labels as a non-empty vector without missing values."""
    labels = _vector(y_true, "y_true")
    if len(labels) == 0:
        raise ValueError("y_true is empty: give at least one row of each class.")
    if labels.dtype.kind == "f" and not _all_finite(labels):
        raise ValueError("y_true has missing or infinite labels: drop or fill those rows first.")
    if labels.dtype.kind == "O":
        from pandas import isna  # knows every flavour of a missing value

        if isna(labels).any():
            raise ValueError("y_true has missing labels: drop or fill those rows first.")
        labels = _plain(labels)
    return labels


def check_scores(scores: Any, name: str = "scores") -> np.ndarray:
    """Scores as a contiguous vector of finite float32 or float64 numbers."""
    values = _vector(scores, name)
    if values.dtype.kind not in "fiub":
        try:
            if values.dtype.kind == "O":
                from pandas import isna  # NA of nullable columns does not turn into a number

                values = np.where(isna(values), np.nan, values)
            values = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numbers, got {values.dtype} values.") from error
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    if not _all_finite(values):
        n_bad = len(values) - int(np.count_nonzero(np.isfinite(values)))
        raise ValueError(
            f"{name} has {n_bad} NaN or infinite values: a ranking needs a finite score per row."
        )
    return np.require(values, requirements=WRITABLE)


def check_weight(sample_weight: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Positive weights, and the mask of rows kept when some weights are zero (else None)."""
    if sample_weight is None:
        return None, None
    weight = _vector(sample_weight, "sample_weight")
    try:
        weight = np.require(weight, np.float64, WRITABLE)
    except (TypeError, ValueError) as error:
        raise ValueError("sample_weight must be numbers.") from error
    if not _all_finite(weight):
        raise ValueError("sample_weight has NaN or infinite values: give a number >= 0 per row.")
    lowest = weight.min(initial=1.0)
    if lowest < 0:
        raise ValueError("sample_weight has negative values: give a number >= 0 per row.")
    if lowest > 0:
        return weight, None
    kept = weight > 0
    if not kept.any():
        raise ValueError(f"sample_weight is 0 in all {n_rows} rows: no row of any class is left.")
    return weight[kept], kept


def check_queries(qid: Any) -> np.ndarray:
    """Query identifiers as a vector without missing values."""
    queries = _vector(qid, "qid")
    if queries.dtype.kind == "O":
        from pandas import isna

        if isna(queries).any():
            raise ValueError("qid has missing values: every row belongs to one query.")
        return _plain(queries)
    if queries.dtype.kind == "f" and not _all_finite(queries):
        raise ValueError("qid has missing values: every row belongs to one query.")
    return queries


def check_lengths(**columns: Any) -> None:
    """Every given column has as many rows as the first."""
    sizes = {name: _length(column) for name, column in columns.items() if column is not None}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"Numbers of rows differ: {shown}. Give one value per row to each.")


def check_range(fpr: Any) -> tuple[float, float]:
    """A range of false positive rates, 0 <= a < b <= 1."""
    try:
        low, high = (float(bound) for bound in fpr)
    except (TypeError, ValueError) as error:
        raise ValueError(f"fpr must be a pair (a, b) of numbers, got {fpr!r}.") from error
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(f"fpr must be a range with 0 <= a < b <= 1, got {fpr!r}.")
    return low, high


def check_share(value: Any, name: str, *, zero: bool = False) -> float:
    """A share in (0, 1], or in [0, 1) where `zero`."""
    number = float(value) if isinstance(value, Real) else math.nan
    if zero and not 0.0 <= number < 1.0:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}.")
    if not zero and not 0.0 < number <= 1.0:
        raise ValueError(f"{name} must lie in (0, 1], got {value!r}.")
    return number


def check_length(k: Any) -> float:
    """A list length: a number of at least 1 (in units of weight)."""
    if not isinstance(k, Integral | Real) or isinstance(k, bool) or not 1.0 <= float(k) < math.inf:
        raise ValueError(f"k must be a number of rows of at least 1, got {k!r}.")
    return float(k)


def check_choice(value: Any, name: str, choices: tuple) -> Any:
    """One of a few named options."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def binarize(labels: np.ndarray, pos_label: Any) -> np.ndarray:
    """True where the label is `pos_label`; without one, where it is the greater of two labels."""
    if pos_label is not None:
        return labels == pos_label
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind in "iuf":
        low, high = labels.min(), labels.max()
        positive = labels == high
        if low == high:  # one class: only 1 is taken for the positive one
            return positive if high == 1 else np.zeros(len(labels), dtype=bool)
        whole = labels.dtype.kind in "iu" and int(high) - int(low) == 1
        if whole or np.count_nonzero(labels == low) + np.count_nonzero(positive) == len(labels):
            return positive
    classes = np.unique(labels)
    if len(classes) > 2:
        raise ValueError(
            f"y_true has {len(classes)} classes ({_shown(classes)}) where two are needed: "
            "name the positive one with pos_label, or use a metric for graded labels."
        )
    return labels == classes[-1] if len(classes) == 2 else np.zeros(len(labels), dtype=bool)


def _relevance(labels: np.ndarray, pos_label: Any, signed: bool) -> np.ndarray:
    """Labels as numbers, higher is better; two classes become 0 and 1."""
    if pos_label is not None or labels.dtype.kind not in "iuf":
        return binarize(labels, pos_label).astype(np.float64)
    relevance = labels.astype(np.float64)
    if signed or relevance.min() >= 0:
        return relevance
    if np.isin(relevance, (-1.0, 1.0)).all():
        return (relevance > 0).astype(np.float64)
    raise ValueError("Graded labels must be numbers >= 0, where 0 means not relevant.")


def _one_class_message(labels: np.ndarray, positive: bool, weighted: bool) -> str:
    classes = np.unique(labels)
    if len(classes) > 1 and not weighted:
        return (
            f"No row of y_true is of the positive class (classes: {_shown(classes)}). {ONE_CLASS}"
        )
    if len(classes) > 1:
        missing = "negative" if positive else "positive"
        return f"Every row of the {missing} class has weight 0 or is missing. {ONE_CLASS}"
    return f"y_true holds only one class ({classes[0]!s}). {ONE_CLASS}"


def _shown(classes: np.ndarray) -> str:
    names = [str(label) for label in classes[:5]]
    return ", ".join([*names, "..."] if len(classes) > 5 else names)


def _vector(column: Any, name: str) -> np.ndarray:
    vector = np.asarray(column)
    if vector.ndim != 1:
        hint = "take one column of it" if vector.ndim == 2 else "give one value per row"
        raise ValueError(f"{name} must be one-dimensional, got shape {vector.shape}: {hint}.")
    return vector


def _plain(labels: np.ndarray) -> np.ndarray:
    """Python objects as a typed array: numbers, booleans or strings."""
    plain = np.array(labels.tolist())
    if plain.dtype.kind == "U" and not all(isinstance(label, str) for label in labels):
        raise ValueError("Labels mix strings with other types: use one type for all rows.")
    return plain


def _length(column: Any) -> int:
    return len(column) if hasattr(column, "__len__") else len(np.asarray(column))


def _all_finite(values: np.ndarray) -> bool:
    """One cheap sum settles nearly every case: it is finite only if every value is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum())) or bool(np.isfinite(values).all())
