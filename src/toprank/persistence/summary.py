"""What the training data looked like: a short summary that later rows can be compared with.

Plain JSON: shares of missing cells, quantiles of numbers, shares of categories, quantiles of the scores,
numbers of rows and positives. No row is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from toprank.columns import Columns, as_frame, is_table
from toprank.persistence.errors import require

__all__ = ["check_summary", "summarise"]

PERCENTS = tuple(range(101))
MOST_CATEGORIES = 100  # with a share of their own
MOST_COLUMNS = 2_000  # more are not summarised


def summarise(model: Any, X: Any, y: Any = None) -> dict[str, Any]:
    """Summarise training rows for a fitted model.

    Parameters
    ----------
    model : fitted estimator
    X : array, sparse matrix or table
        The rows it was trained on.
    y : array, optional
        Their labels.

    Returns
    -------
    summary : dict
        `n_rows`, `n_positives` (None without labels), `columns` (a list of dicts: `name`, `kind`,
        `missing`, and `quantiles` at 0, 1, ..., 100 percent, or `shares` of the most frequent
        categories and `others`, the share of the rest) and `scores` (a dict with `quantiles`).

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import TreeRank
    >>> X = pd.DataFrame({"amount": [1.0, 2.0, 9.0, 8.0], "country": ["NL", "NL", "DE", None]})
    >>> summary = summarise(TreeRank().fit(X, [0, 0, 1, 1]), X, [0, 0, 1, 1])
    >>> summary["columns"][1]["shares"], summary["columns"][1]["missing"], summary["n_positives"]
    ({'NL': 0.5, 'DE': 0.25}, 0.25, 2)
    """
    summary: dict[str, Any] = {"n_rows": n_rows_of(X), "n_positives": None, "columns": []}
    if y is not None:
        summary["n_positives"] = _count_positives(model, y)
    if is_table(X):
        summary["columns"] = _table_summary(as_frame(X))
    elif not hasattr(model, "schema_"):  # examples of relational data are but names
        summary["columns"] = _array_summary(X)
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        summary["scores"] = {"quantiles": _quantiles(scores)}
    return summary


def n_rows_of(X: Any) -> int:
    """Number of rows of anything that estimators take."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _count_positives(model: Any, y: Any) -> int:
    labels = np.asarray(y).ravel()
    if np.isin(labels, model.classes_).all():
        return int((labels == model.classes_[1]).sum())
    return int((labels > 0).sum())  # grades of relevance


def _table_summary(frame: pd.DataFrame) -> list[dict[str, Any]]:
    found = []
    for j in range(min(frame.shape[1], MOST_COLUMNS)):
        try:
            columns = Columns.of(frame.iloc[:, [j]])
        except ValueError:
            continue  # dates and the like: a pipeline may take them, but they have no summary
        found.append(_column_summary(columns.names[0], columns.categories[0], frame.iloc[:, j]))
    return found


def _array_summary(X: Any) -> list[dict[str, Any]]:
    n_columns = X.shape[1] if hasattr(X, "shape") else len(X[0])
    sparse = hasattr(X, "tocsc")
    matrix: Any = X.tocsc() if sparse else np.asarray(X)
    found = []
    for j in range(min(n_columns, MOST_COLUMNS)):
        cells = matrix[:, [j]].toarray().ravel() if sparse else matrix[:, j]
        found.append(_column_summary(f"x{j}", None, pd.Series(cells)))
    return found


def _column_summary(name: str, values: np.ndarray | None, column: pd.Series) -> dict[str, Any]:
    missing = float(column.isna().mean()) if len(column) else 0.0
    summary: dict[str, Any] = {"name": name, "missing": missing}
    if values is None:
        cells = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return {**summary, "kind": "number", "quantiles": _quantiles(cells[~np.isnan(cells)])}
    counts = column.dropna().astype(object).map(str).value_counts()
    shares = counts / max(len(column), 1)
    kept = {str(k): float(v) for k, v in shares.iloc[:MOST_CATEGORIES].items()}
    others = float(shares.iloc[MOST_CATEGORIES:].sum())
    return {**summary, "kind": "category", "shares": kept, "others": others}


def _quantiles(cells: np.ndarray) -> list[float]:
    """The cells at 0, 1, ..., 100 percent; none of no cells."""
    if not len(cells):
        return []
    found = np.percentile(cells, PERCENTS, method="lower")
    return [float(value) for value in found]


def check_summary(summary: Any) -> None:
    """Check a summary from a file."""
    require(isinstance(summary, dict), "the training summary is damaged")
    keys = {"n_rows", "n_positives", "columns"}
    known = keys <= set(summary) <= {*keys, "scores"}
    require(known and isinstance(summary["columns"], list), "the training summary is damaged")
    for name in ("n_rows", "n_positives"):
        count = summary[name]
        require(count is None or (type(count) is int and count >= 0), "the summary is miscounted")
    for column in summary["columns"]:
        require(isinstance(column, dict), "the training summary is damaged")
        numeric = column.get("kind") == "number" and _is_list(column.get("quantiles"))
        shares = column.get("shares")
        share = isinstance(shares, dict) and _is_list(list(shares.values()))
        category = column.get("kind") == "category" and share and _is_list([column.get("others")])
        named = isinstance(column.get("name"), str) and _is_list([column.get("missing")])
        require(named and (numeric or category), "the training summary is damaged")
    scores = summary.get("scores", {"quantiles": []})
    listed = isinstance(scores, dict) and _is_list(scores.get("quantiles"))
    require(listed, "the training summary is damaged")


def _is_list(values: Any) -> bool:
    """A list of numbers, of reasonable length."""
    numbers = isinstance(values, list) and all(type(v) in (int, float) for v in values)
    return numbers and len(values) <= len(PERCENTS)
