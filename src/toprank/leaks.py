"""Columns that tell too much: they number the rows, decide the target, or are filled in only afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from toprank import metrics
from toprank.columns import as_frame, is_table

__all__ = ["find_leaks"]

DECIDES = 0.985  # out-of-fold AUC of a single column
FILLED_FOR = 0.9  # AUC of whether a cell is filled in
NUMBERS = 4.0  # standard errors of the AUC beyond which the number of a row tells too much
LEAST_POSITIVES = 10
MOST_NEGATIVES = 20_000  # of a sample
MOST_BINS = 64
PRIOR_ROWS = 2.0  # that the share of positives of a bin is drawn towards the mean by


def find_leaks(X: Any, y: Any, random_state: int = 0) -> list[str]:
    """Name the columns that tell the target better than any honest column does.

    A column is ranked by the share of positives of its values (of its quantiles, for numbers), learnt from
    one half of the rows and measured on the other. Whether cells are missing is looked at alone: what
    becomes known only afterwards is often filled in for the positives only. A column that numbers the rows
    is named where the positives have other numbers than the rest: rows to come will have none like them.

    Parameters
    ----------
    X : table or array of shape (n_rows, n_columns)
    y : array of shape (n_rows,)
        1 for the positives, 0 for the others.
    random_state : int, default=0
        Of the halves, and of the sample of negatives where they are very many.

    Returns
    -------
    warnings : list of str
        A sentence for each such column.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> y = random.integers(0, 2, 400)
    >>> X = pd.DataFrame({"amount": random.normal(size=400) + y, "refund": np.where(y, 5.0, np.nan)})
    >>> find_leaks(X, y)
    ["column 'refund' is filled in almost only for the positives (AUC 1.000), as what is known afterwards is"]
    """
    positive = np.asarray(y) > 0
    if min(positive.sum(), (~positive).sum()) < LEAST_POSITIVES:
        return []
    random = np.random.default_rng(random_state)
    negatives = np.flatnonzero(~positive)
    if len(negatives) > MOST_NEGATIVES:
        negatives = random.choice(negatives, MOST_NEGATIVES, replace=False)
    rows = random.permutation(np.concatenate([np.flatnonzero(positive), negatives]))
    frame = as_frame(X) if is_table(X) else pd.DataFrame(np.asarray(X)).add_prefix("x")
    labels = positive[rows]
    half = np.arange(len(rows)) % 2 == 0
    chance = 0.5 + NUMBERS * np.sqrt(len(rows) / (12.0 * labels.sum() * (~labels).sum()))
    found = []
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        if _numbers_rows(column):
            area = metrics.roc_auc(labels, column.to_numpy(dtype=np.float64)[rows])
            if max(area, 1 - area) > chance:
                found.append(
                    f"column {str(name)!r} numbers the rows, and the positives have other numbers than the "
                    f"rest (AUC {max(area, 1 - area):.3f}), as rows to come will not"
                )
            continue
        column = column.iloc[rows]
        filled = column.notna().to_numpy()
        area = metrics.roc_auc(labels, filled) if 0 < filled.sum() < len(filled) else 0.5
        if area >= FILLED_FOR:
            found.append(
                f"column {str(name)!r} is filled in almost only for the positives (AUC {area:.3f}), as what "
                "is known afterwards is"
            )
            continue
        codes = _bins(column)
        parts = [(half, ~half), (~half, half)]
        area = np.mean([_area(codes, labels, learnt, tested) for learnt, tested in parts])
        if area >= DECIDES:
            found.append(f"column {str(name)!r} alone nearly decides the target (AUC {area:.3f})")
    return found


def _numbers_rows(column: pd.Series) -> bool:
    """Whether all cells are different whole numbers with few gaps between them."""
    if not pd.api.types.is_numeric_dtype(column.dtype) or column.hasnans or not column.is_unique:
        return False
    cells = column.to_numpy(dtype=np.float64)
    return not (cells % 1).any() and np.ptp(cells) < 2 * len(cells)


def _bins(column: pd.Series) -> np.ndarray:
    """Return codes of the values of a column, or of the quantiles of many numbers; -1 where missing."""
    if pd.api.types.is_numeric_dtype(column.dtype) and column.nunique() > MOST_BINS:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        edges = np.nanquantile(numbers, np.linspace(0, 1, MOST_BINS + 1)[1:-1])
        return np.where(np.isnan(numbers), -1, np.searchsorted(edges, numbers))
    return pd.factorize(column.astype(object))[0]


def _area(codes: np.ndarray, labels: np.ndarray, learnt: np.ndarray, tested: np.ndarray) -> float:
    """Return the AUC of the share of positives of each bin, learnt from some rows, on others."""
    places = codes + 1
    size = int(places.max()) + 1
    hits = np.bincount(places[learnt], labels[learnt], minlength=size)
    rows = np.bincount(places[learnt], minlength=size)
    mean = labels[learnt].mean()
    share = (hits + PRIOR_ROWS * mean) / (rows + PRIOR_ROWS)
    if len(np.unique(labels[tested])) < 2:
        return 0.5
    return metrics.roc_auc(labels[tested], share[places[tested]])
