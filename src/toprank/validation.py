"""Checks of labels, scores, weights, queries, times, ranges and parameters: the same errors everywhere.

`binary_rows` and `graded_rows` leave out rows of zero weight, so that no metric has to think of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils._param_validation import Interval, StrOptions

__all__ = [
    "PARAMETER_CONSTRAINTS",
    "BinaryRows",
    "GradedRows",
    "Interval",
    "StrOptions",
    "binarize",
    "binary_rows",
    "check_cells",
    "check_choice",
    "check_gap",
    "check_groups",
    "check_labels",
    "check_length",
    "check_lengths",
    "check_numbers",
    "check_queries",
    "check_range",
    "check_scores",
    "check_share",
    "check_time",
    "check_weight",
    "graded_rows",
    "query_codes",
    "require_finite",
]

# Read-only arrays (every column of a pandas table) would make the kernels compile a second time.
WRITABLE: tuple[Literal["C"], Literal["W"]] = ("C", "W")

# Ranges of the parameters that several estimators share, in scikit-learn's own declarations.
PARAMETER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
    "early_stopping_rounds": [Interval(Integral, 1, None, closed="left"), None],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "C": [Interval(Real, 0, None, closed="neither")],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}

SMALLEST_WEIGHT = 1e-60  # where even the heaviest row has less, weights are taken relative to it
LARGEST = float(np.finfo(np.float32).max)  # of a cell: trees are grown in single precision

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
    """Return labels as a non-empty vector without missing values."""
    labels = _vector(y_true, "y_true")
    if len(labels) == 0:
        raise ValueError("y_true is empty: give at least one row of each class.")
    if _has_missing(labels):
        raise ValueError("y_true has missing or infinite labels: drop or fill those rows first.")
    return _typed(labels) if labels.dtype.kind == "O" else labels


def check_scores(scores: Any, name: str = "scores") -> np.ndarray:
    """Return scores as a contiguous vector of finite float32 or float64 numbers."""
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
    require_finite(values, name)
    return np.require(values, requirements=WRITABLE)


def require_finite(scores: np.ndarray, name: str = "scores") -> None:
    """Refuse scores that have no place in a ranking."""
    if scores.dtype.kind == "f" and not _all_finite(scores):
        n_bad = len(scores) - int(np.count_nonzero(np.isfinite(scores)))
        raise ValueError(
            f"{name} has {n_bad} NaN or infinite values: a ranking needs a finite score per row."
        )


def check_cells(X: Any, names: Sequence[str], refuses_missing: str | None = None) -> None:
    """Refuse a matrix with a cell that nothing can be computed with, by column and row.

    Parameters
    ----------
    X : float ndarray or sparse matrix
    names : sequence of str
        Of its columns.
    refuses_missing : str, optional
        Who takes no missing cells; by default NaN passes.

    Examples
    --------
    >>> check_cells(np.array([[1.0], [1e200]]), ["amount"])
    Traceback (most recent call last):
    ...
    ValueError: column 'amount' holds 1e+200 in row 2, beyond the 3.4e+38 up to which models compute; ...
    """
    cells = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (f(cells, axis=None, initial=0.0) for f in (np.fmin.reduce, np.fmax.reduce))
        complete = refuses_missing is None or not np.isnan(cells.sum())
    if low >= -LARGEST and high <= LARGEST and complete:
        return
    bad = ~(np.abs(cells) <= LARGEST)
    if refuses_missing is None:
        bad &= ~np.isnan(cells)
    if not bad.any():
        return  # infinities cancelled out to NaN in the sum of large numbers
    if sparse.issparse(X):
        first = int(np.argmax(bad))
        row, column = int(np.searchsorted(X.indptr, first, side="right")) - 1, X.indices[first]
        cell = cells[first]
    else:
        row, column = np.argwhere(bad)[0]
        cell = cells[row, column]
    raise ValueError(_cell_refusal(float(cell), str(names[column]), int(row) + 1, refuses_missing))


def check_numbers(cells: np.ndarray, name: str) -> None:
    """Refuse a column of numbers, NaN apart, as `check_cells` does a matrix."""
    check_cells(cells.reshape(-1, 1), [name])


def _cell_refusal(cell: float, name: str, row: int, refuses_missing: str | None) -> str:
    """Return what is wrong with a cell and what to do."""
    if np.isnan(cell):
        return (
            f"Input X contains NaN: column {name!r} is missing in row {row}, and {refuses_missing} takes "
            "no missing values. Put scikit-learn's SimpleImputer before it in a Pipeline, or leave "
            "those rows out"
        )
    if np.isinf(cell):
        return (
            f"column {name!r} is infinite in row {row}; put a number there, or leave that row out "
            "(Input X contains infinity)"
        )
    return (
        f"column {name!r} holds {cell:g} in row {row}, beyond the {LARGEST:.2g} up to which models "
        "compute; scale the column, take its logarithm, or leave that row out"
    )


def check_weight(sample_weight: Any, n_rows: int) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return positive weights, and the mask of rows kept when some weights are zero (else None)."""
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
    kept = None if lowest > 0 else weight > 0
    if kept is not None:
        if not kept.any():
            raise ValueError(
                f"sample_weight is 0 in all {n_rows} rows: no row of any class is left."
            )
        weight = weight[kept]
    if len(weight) and not SMALLEST_WEIGHT < weight.max() < 1 / SMALLEST_WEIGHT:
        weight = weight / weight.max()  # products of sums would leave the range of floats
    return weight, kept


def check_queries(qid: Any) -> np.ndarray:
    """Return query identifiers as a vector without missing values."""
    queries = _vector(qid, "qid")
    if _has_missing(queries):
        raise ValueError("qid has missing values: every row belongs to one query.")
    return _typed(queries) if queries.dtype.kind == "O" else queries


def query_codes(qid: Any, n_rows: int) -> np.ndarray | None:
    """Queries as codes 0, 1, ... in the order of their identifiers; None where there are none."""
    if qid is None:
        return None
    queries = check_queries(qid)
    if len(queries) != n_rows:
        raise ValueError(f"qid has {len(queries)} entries for {n_rows} rows")
    return np.unique(queries, return_inverse=True)[1].astype(np.int64)


def check_groups(groups: Any, n_rows: int, name: str = "groups") -> np.ndarray:
    """Return groups as codes 0, 1, ... in the order in which they appear; every row needs one."""
    from pandas import Series, factorize

    codes = factorize(Series(groups).to_numpy())[0]
    if len(codes) != n_rows:
        raise ValueError(f"{name} has {len(codes)} entries for {n_rows} rows")
    if (codes < 0).any():
        raise ValueError(
            f"{name} is missing in {int((codes < 0).sum())} rows; every row needs one (one of its own "
            "if it belongs to nobody else)"
        )
    return codes


def check_time(time: Any, n_rows: int | None = None, name: str = "time") -> np.ndarray:
    """Return times that can be compared: datetime64[ns] for dates (zones become UTC), or numbers.

    Text must be in the order of ISO 8601: of 03/04/2024 nobody can say which day it is.

    Examples
    --------
    >>> check_time(["2024-12-31", "2025-01-01T12:00"])
    array(['2024-12-31T00:00:00.000000000', '2025-01-01T12:00:00.000000000'],
          dtype='datetime64[ns]')
    """
    import pandas as pd

    values = pd.Series(time).reset_index(drop=True)
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} entries for {n_rows} rows")
    missing = values.isna()
    if missing.any():
        raise ValueError(
            f"{name} is missing in {int(missing.sum())} rows, the first of them row "
            f"{int(np.argmax(missing)) + 1}; fill it in or drop those rows"
        )
    if pd.api.types.is_timedelta64_dtype(values.dtype):
        values = pd.Timestamp(0) + values
    if pd.api.types.is_numeric_dtype(values.dtype):
        # differences of narrow whole numbers would wrap around
        numbers = values.to_numpy(dtype=np.int64 if values.dtype.kind in "iub" else np.float64)
        if not np.isfinite(numbers).all():
            raise ValueError(f"{name} holds infinite values; every row needs its place in time")
        return numbers
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        values = _read_dates(values, name)
    if getattr(values.dtype, "tz", None) is not None:
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    return values.to_numpy().astype("datetime64[ns]")


def _read_dates(values: Any, name: str) -> Any:
    """Read text or objects as dates; the error names the first cell that is not one."""
    import pandas as pd

    read = pd.to_datetime(values, errors="coerce", utc=True, format="ISO8601")
    if read.isna().any():
        row = int(np.argmax(read.isna().to_numpy()))
        raise ValueError(
            f"{name} holds {str(values.iloc[row])[:60]!r} in row {row + 1}, which is neither a number "
            "nor a date such as 2024-12-31 or 2024-12-31T23:59:59"
        )
    return read


def check_gap(gap: Any, time: np.ndarray) -> Any:
    """Return the least distance in time between training and test rows, in the units of checked times.

    Between dates a number counts days.
    """
    import pandas as pd

    if time.dtype.kind != "M":
        if isinstance(gap, timedelta | np.timedelta64):
            raise TypeError("gap is a timedelta but time holds numbers; give gap in the same units")
        length = 0 if gap is None else gap
        if not length >= 0:
            raise ValueError(f"gap must not be negative, got {gap!r}")
        return length
    try:
        number = isinstance(gap, int | float | np.number) and not isinstance(gap, np.timedelta64)
        length = pd.Timedelta(float(gap), unit="D") if number else pd.Timedelta(gap or 0)
    except (ValueError, TypeError) as error:
        raise ValueError(f"gap must be a timedelta or a number of days, got {gap!r}") from error
    if length is pd.NaT:
        raise ValueError("gap is missing (NaT)")
    if length < pd.Timedelta(0):
        raise ValueError(f"gap must not be negative, got {gap!r}")
    return length.as_unit("ns").to_timedelta64()


def check_lengths(**columns: Any) -> None:
    """Check that every given column has as many rows as the first."""
    given = {name: column for name, column in columns.items() if column is not None}
    sizes = {name: len(c if hasattr(c, "__len__") else np.asarray(c)) for name, c in given.items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"Numbers of rows differ: {shown}. Give one value per row to each.")


def check_range(fpr: Any) -> tuple[float, float]:
    """Return a range of false positive rates, 0 <= a < b <= 1."""
    try:
        low, high = (float(bound) for bound in fpr)
    except (TypeError, ValueError) as error:
        raise ValueError(f"fpr must be a pair (a, b) of numbers, got {fpr!r}.") from error
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(f"fpr must be a range with 0 <= a < b <= 1, got {fpr!r}.")
    return low, high


def check_share(value: Any, name: str, *, zero: bool = False) -> float:
    """Return a share in (0, 1], or in [0, 1) where `zero`."""
    number = float(value) if isinstance(value, Real) else math.nan
    if not (0.0 <= number < 1.0 if zero else 0.0 < number <= 1.0):
        raise ValueError(f"{name} must lie in {'[0, 1)' if zero else '(0, 1]'}, got {value!r}.")
    return number


def check_length(k: Any) -> float:
    """Return a list length: a number of at least 1 (in units of weight)."""
    if not isinstance(k, Integral | Real) or isinstance(k, bool) or not 1.0 <= float(k) < math.inf:
        raise ValueError(f"k must be a number of rows of at least 1, got {k!r}.")
    return float(k)


def check_choice(value: Any, name: str, choices: tuple) -> Any:
    """Return one of a few named options."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def binarize(labels: np.ndarray, pos_label: Any) -> np.ndarray:
    """Return where the label is `pos_label`; without one, where it is the greater of two labels."""
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
    """Return labels as numbers, higher is better; two classes become 0 and 1."""
    if pos_label is not None or labels.dtype.kind not in "iuf":
        return binarize(labels, pos_label).astype(np.float64)
    relevance = labels.astype(np.float64)
    if signed or relevance.min() >= 0:
        return relevance
    if np.isin(relevance, (-1.0, 1.0)).all():
        return (relevance > 0).astype(np.float64)
    raise ValueError("Graded labels must be numbers >= 0, where 0 means not relevant.")


def _one_class_message(labels: np.ndarray, positive: bool, weighted: bool) -> str:
    """Say which class is missing; `positive` is whether positives are left."""
    classes = np.unique(labels)
    if len(classes) == 1:
        found = f"y_true holds only one class ({classes[0]!s})"
    elif weighted:
        missing = "negative" if positive else "positive"
        found = f"Every row of the {missing} class has weight 0 or is missing"
    else:
        found = f"No row of y_true is of the positive class (classes: {_shown(classes)})"
    return f"{found}. {ONE_CLASS}"


def _shown(classes: np.ndarray) -> str:
    """Return the first few labels as text."""
    names = [str(label) for label in classes[:5]]
    return ", ".join([*names, "..."] if len(classes) > 5 else names)


def _vector(column: Any, name: str) -> np.ndarray:
    """Return a column as a one-dimensional array."""
    vector = np.asarray(column)
    if vector.ndim != 1:
        hint = "take one column of it" if vector.ndim == 2 else "give one value per row"
        raise ValueError(f"{name} must be one-dimensional, got shape {vector.shape}: {hint}.")
    return vector


def _has_missing(column: np.ndarray) -> bool:
    """Return whether numbers or objects have missing (or infinite) values."""
    if column.dtype.kind != "O":
        return column.dtype.kind == "f" and not _all_finite(column)
    from pandas import isna  # knows every flavour of a missing value

    return bool(isna(column).any())


def _typed(labels: np.ndarray) -> np.ndarray:
    """Return Python objects as a typed array of numbers or booleans; text stays as it is."""
    n_texts = sum(isinstance(label, str) for label in labels)
    if n_texts == len(labels):
        return labels  # an array of text is as wide as its longest cell in every row
    typed = np.array(labels.tolist()) if n_texts == 0 else None
    if typed is None or typed.dtype.kind not in "biuf" or typed.ndim != 1:
        raise ValueError(
            "Labels mix strings with other types, or are neither text nor numbers: use one plain "
            "type for all rows."
        )
    return typed


def _all_finite(values: np.ndarray) -> bool:
    """Return whether all values are finite; one cheap sum settles nearly every case."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum())) or bool(np.isfinite(values).all())
