"""Why a row has its score, and why one row is above another: XGBoost's SHAP values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from toprank.boosting._xgboost import require_xgboost

__all__ = ["contributions", "pair_contributions"]

BASE = "(base)"


def contributions(ranker: Any, X: Any) -> pd.DataFrame:
    """What each column adds to the score of each checked row; the last column is the rest."""
    columns = ranker.columns_
    matrix = require_xgboost().DMatrix(
        X,
        feature_types=["c" if c else "q" for c in columns.is_category],
        enable_categorical=bool(columns.is_category.any()),
    )
    each = [booster.predict(matrix, pred_contribs=True) for booster in ranker.boosters_]
    values = np.asarray(np.mean(each, axis=0, dtype=np.float64))
    values[:, -1] -= ranker.offset_
    return pd.DataFrame(values, columns=[*columns.names, BASE])


def pair_contributions(ranker: Any, a: Any, b: Any) -> pd.DataFrame:
    """Contributions of two rows side by side, the largest difference first."""
    for name, row in (("a", a), ("b", b)):
        if row.shape[0] != 1:
            raise ValueError(f"explain_pair compares two rows; {name} has {row.shape[0]}")
    columns = ranker.columns_
    both = contributions(ranker, sparse.vstack([a, b]) if sparse.issparse(a) else np.vstack([a, b]))
    added = (both.iloc[0] - both.iloc[1]).drop(BASE)
    table = pd.DataFrame(
        {
            "a": _values(columns, a),
            "b": _values(columns, b),
            "adds": added.to_numpy(),
        },
        index=pd.Index(columns.names, name="column"),
    )
    return table.sort_values("adds", key=np.abs, ascending=False)


def _values(columns: Any, row: Any) -> list[Any]:
    """The cells of a row as the user knows them."""
    cells = (row.toarray() if sparse.issparse(row) else np.asarray(row))[0]
    shown = []
    for cell, categories in zip(cells, columns.categories, strict=True):
        if categories is None or np.isnan(cell):
            shown.append(float(cell))
        else:
            shown.append(categories[int(cell)])
    return shown
