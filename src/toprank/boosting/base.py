"""What every ranker made of XGBoost's trees shares: scores, explanations, importances."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from toprank.base import BaseRanker, TrainingData
from toprank.boosting.xgboost_helpers import predict_margin, shap_values
from toprank.columns import Columns
from toprank.sampling import stratified_folds

__all__ = ["BoostedTreesRanker"]

BASE = "(base)"
RATE_FOLDS, RATE_ROWS = 5, 10.0
RATE_ERRORS = 4.0  # standard errors of the AUC that rates must lead chance by


class BoostedTreesRanker(BaseRanker):
    """Base of the rankers whose score is a weighted sum of the margins of the boosters in `boosters_`.

    `fit` sets `boosters_`, their weights `booster_weights_`, and `trained_on_sparse_`: what a sparse
    matrix leaves out is missing to the trees, so rows are put into the form of the training data before
    they are scored.
    """

    boosters_: list[Any]
    booster_weights_: np.ndarray
    trained_on_sparse_: bool

    _accepts_missing = True
    _accepts_categories = True
    _accepts_dates = True
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
        rows = self._in_form(self._check_rows(X))
        values = shap_values(self.boosters_, self.booster_weights_, self.columns_, rows)
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
        shares = np.zeros(self.n_features_in_)
        for booster, weight in zip(self.boosters_, self.booster_weights_, strict=True):
            gain = np.zeros(self.n_features_in_)
            for key, value in booster.get_score(importance_type="total_gain").items():
                gain[int(key[1:])] = value
            shares += weight * gain / max(gain.sum(), np.finfo(float).tiny)
        return shares / shares.sum() if shares.sum() > 0 else shares

    def _encode_categories(self, data: TrainingData, max_categories: int) -> TrainingData:
        """Give columns of more categories than `max_categories` to the trees as numbers.

        How much more often than others a category is positive, where that says more than chance about rows
        whose own label is left out; elsewhere how common it is.
        """
        if not self.columns_.is_category.any():
            return data
        codes, positive, weights = data.X, data.y > 0, data.weights
        columns = self.columns_.with_counts(codes, weights, max_categories)
        X, numbers = columns.numbers_for_codes(codes), list(columns.numbers)
        for j, counts in enumerate(numbers):
            if counts is None:
                continue
            rates, left_out = excess_rates(codes[:, j], positive, weights, len(counts))
            if _tells_more(left_out, X[:, j], positive, weights):
                numbers[j], X[:, j] = rates, left_out
        self.columns_ = replace(columns, numbers=tuple(numbers))
        return replace(data, X=X)

    def _raw_scores(self, X: Any) -> np.ndarray:
        X = self._in_form(X)
        return self.booster_weights_ @ np.stack([predict_margin(b, X) for b in self.boosters_])

    def _in_form(self, X: Any) -> Any:
        """Return checked rows as sparse or dense as the training data."""
        if self.trained_on_sparse_ and not sparse.issparse(X):
            return sparse.csr_matrix(X)
        if not self.trained_on_sparse_ and sparse.issparse(X):
            return X.toarray()
        return X


def excess_rates(
    codes: np.ndarray, positive: np.ndarray, weight: np.ndarray, n_categories: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return how much more often than all rows each category is positive, shrunk to 0 where rows are few.

    Also return the same for each row, learnt from four fifths of the rows that it does not belong to: a
    row must not see its own label. NaN stays NaN.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.repeat([0.0, 1.0], 50)
    >>> rates, rows = excess_rates(codes, codes == 1, np.ones(100), 2)
    >>> rates.round(2).tolist()
    [-0.42, 0.42]
    >>> bool((rows[50:] > 0.3).all())
    True
    """
    known = ~np.isnan(codes)
    code = np.where(known, codes, 0).astype(np.int64)
    fold = stratified_folds(positive, RATE_FOLDS, 0)
    size = (n_categories, RATE_FOLDS)
    place = (code * RATE_FOLDS + fold)[known]
    total = np.bincount(place, weight[known], size[0] * size[1]).reshape(size)
    found = np.bincount(place, (weight * positive)[known], size[0] * size[1]).reshape(size)

    def shrunken(found: np.ndarray, total: np.ndarray) -> np.ndarray:
        share = found.sum(axis=0) / np.maximum(total.sum(axis=0), np.finfo(float).tiny)
        return (found - share * total) / (total + RATE_ROWS * weight.mean())

    others = shrunken(
        found.sum(axis=1, keepdims=True) - found, total.sum(axis=1, keepdims=True) - total
    )
    return shrunken(found.sum(axis=1), total.sum(axis=1)), np.where(
        known, others[code, fold], np.nan
    )


def _tells_more(
    rates: np.ndarray, counts: np.ndarray, positive: np.ndarray, weight: np.ndarray
) -> bool:
    """Return whether rates tell positives from negatives beyond chance, and better than counts do."""
    known = ~np.isnan(rates) & (weight > 0)
    n_positives = np.count_nonzero(positive & known)
    n_negatives = np.count_nonzero(known) - n_positives
    if min(n_positives, n_negatives) == 0:
        return False
    from toprank.metrics import roc_auc  # slow to import, and not needed to score

    lead, other = (
        roc_auc(positive[known], values[known], sample_weight=weight[known]) - 0.5
        for values in (rates, counts)
    )
    error = np.sqrt((1 / n_positives + 1 / n_negatives) / 12)
    return bool(lead > RATE_ERRORS * error and lead > abs(other))


def _cells(columns: Columns, row: Any) -> list[Any]:
    """Return the cells of a checked row as the user knows them."""
    cells = (row.toarray() if sparse.issparse(row) else np.asarray(row))[0]
    return [
        float(cell) if categories is None or not coded or np.isnan(cell) else categories[int(cell)]
        for cell, categories, coded in zip(
            cells, columns.categories, columns.is_category, strict=True
        )
    ]
