"""What every ranker made of XGBoost's trees shares: scores, explanations, importances."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker
from toprank.boosting.xgboost_helpers import predict_margin, shap_values
from toprank.columns import Columns

__all__ = ["BoostedTreesRanker"]

BASE = "(base)"


class BoostedTreesRanker(BaseRanker):
    """Base of the rankers whose score is the mean margin of the boosters in `boosters_`.

    `fit` sets `boosters_`, and `trained_on_sparse_`: what a sparse matrix leaves out is missing to the trees,
    so rows are put into the form of the training data before they are scored.
    """

    boosters_: list[Any]
    trained_on_sparse_: bool

    _accepts_missing = True
    _accepts_categories = True
    _accepts_sparse = True

    @abstractmethod
    def fit(self, X: Any, y: Any) -> BoostedTreesRanker:
        """Boost trees on rows `X` with labels `y`."""

    def explain(self, X: Any) -> pd.DataFrame:
        """Split each row's score into what each column adds (SHAP values of the trees).

        Returns
        -------
        table : DataFrame of shape (n_rows, n_columns + 1)
            One column for each feature and a last one, ``(base)``; a row sums to its score.
        """
        check_is_fitted(self)
        values = shap_values(self.boosters_, self.columns_, self._in_form(self._check_rows(X)))
        values[:, -1] -= self.offset_
        return pd.DataFrame(values, columns=[*self.columns_.names, BASE])

    def explain_pair(self, a: Any, b: Any) -> pd.DataFrame:
        """Say why row `a` is ranked above (or below) row `b`.

        Parameters
        ----------
        a, b : one row each, in any form that `decision_function` takes (a table or array of one row)

        Returns
        -------
        table : DataFrame
            For each column its value in `a` and in `b` and what it adds to the difference of their
            scores, the greatest first; the last column sums to ``score(a) - score(b)``.
        """
        check_is_fitted(self)
        rows = {"a": self._check_rows(a), "b": self._check_rows(b)}
        for name, row in rows.items():
            if row.shape[0] != 1:
                raise ValueError(f"explain_pair compares two rows; {name} has {row.shape[0]}")
        added = self.explain(a).iloc[0] - self.explain(b).iloc[0]
        table = pd.DataFrame(
            {name: _cells(self.columns_, row) for name, row in rows.items()},
            index=pd.Index(self.columns_.names, name="column"),
        )
        table["adds"] = added.drop(BASE).to_numpy()
        return table.sort_values("adds", key=np.abs, ascending=False)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of the total gain of the splits on each column."""
        check_is_fitted(self)
        gain = np.zeros(self.n_features_in_)
        for booster in self.boosters_:
            for key, value in booster.get_score(importance_type="total_gain").items():
                gain[int(key[1:])] += value
        return gain / gain.sum() if gain.sum() > 0 else gain

    def _raw_scores(self, X: Any) -> np.ndarray:
        X = self._in_form(X)
        return np.mean([predict_margin(booster, X) for booster in self.boosters_], axis=0)

    def _in_form(self, X: Any) -> Any:
        """Return checked rows as sparse or dense as the training data."""
        if self.trained_on_sparse_ and not sparse.issparse(X):
            return sparse.csr_matrix(X)
        if not self.trained_on_sparse_ and sparse.issparse(X):
            return X.toarray()
        return X


def _cells(columns: Columns, row: Any) -> list[Any]:
    """Return the cells of a checked row as the user knows them."""
    cells = (row.toarray() if sparse.issparse(row) else np.asarray(row))[0]
    return [
        float(cell) if categories is None or np.isnan(cell) else categories[int(cell)]
        for cell, categories in zip(cells, columns.categories, strict=True)
    ]
