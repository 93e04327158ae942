"""TableEncoder: any table as numbers, for models that know neither categories nor missing cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from toprank.base import InputChecks

__all__ = ["TableEncoder"]


class TableEncoder(InputChecks, TransformerMixin, BaseEstimator):
    """Numbers for categories, values for missing cells, one scale for all columns.

    A column of numbers has its missing cells filled with the median and is divided by its standard
    deviation after its mean is taken off; where training had missing cells, a column of 0 and 1 says
    which. A column of categories becomes one column of 0 and 1 for each of its `max_categories` most
    frequent categories; all others, and missing cells, are zero in each of them.

    Sparse matrices are divided by the standard deviation of each column only, and stay sparse.

    Parameters
    ----------
    max_categories : int, default=50
        Most columns that one column of categories becomes.
    clip : float, default=10.0
        Scaled numbers are cut off at plus and minus this many standard deviations, so that one
        strange cell cannot outweigh all others.

    Attributes
    ----------
    centre_, spread_ : ndarray of shape (n_columns,)
        Mean and standard deviation (0 and 1 for categories).
    medians_ : ndarray of shape (n_columns,)
    kept_ : list of ndarray
        For each column the codes of its categories that have a column of their own.
    indicated_ : bool ndarray of shape (n_columns,)
        Which columns had missing cells in training.
    source_ : ndarray of shape (n_columns_out,)
        The input column that each output column is made from.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"amount": [1.0, None, 3.0], "country": ["NL", "DE", "NL"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['amount', 'country=NL', 'country=DE', 'amount is missing']
    >>> encoder.transform(table)[1].tolist()
    [0.0, 0.0, 1.0, 1.0]
    """

    _accepts_missing = True
    _accepts_categories = True
    _accepts_sparse = True

    def __init__(self, *, max_categories: int = 50, clip: float = 10.0) -> None:
        self.max_categories = max_categories
        self.clip = clip

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn what the columns hold; `y` is not used.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)

        Returns
        -------
        self : TableEncoder
        """
        if not self.max_categories >= 1:
            raise ValueError(f"max_categories must be at least 1, got {self.max_categories!r}")
        if not self.clip > 0:
            raise ValueError(f"clip must be above 0, got {self.clip!r}")
        matrix = self._check_rows(X, reset=True)
        self.trained_on_sparse_ = bool(sparse.issparse(matrix))
        self._learn_sparse(matrix) if self.trained_on_sparse_ else self._learn_dense(matrix)
        n_kept = [len(codes) for codes in self.kept_]
        whole = np.where(self.columns_.is_category, n_kept, 1)
        every = np.arange(len(whole))
        self.source_ = np.concatenate([np.repeat(every, whole), every[self.indicated_]])
        return self

    def transform(self, X: Any) -> Any:
        """Return the rows as numbers.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)

        Returns
        -------
        numbers : ndarray or sparse matrix of shape (n_rows, n_columns_out)
        """
        check_is_fitted(self)
        matrix = self._check_rows(X)
        if self.trained_on_sparse_:
            scaled = sparse.csr_matrix(matrix) @ sparse.diags_array(1 / self.spread_)
            return sparse.csr_matrix(scaled)
        if sparse.issparse(matrix):
            matrix = matrix.toarray()
        out = np.zeros((matrix.shape[0], len(self.source_)))
        place = 0
        for j, codes in enumerate(self.kept_):
            cells = matrix[:, j]
            if self.columns_.is_category[j]:
                for code in codes:
                    out[:, place] = cells == code
                    place += 1
            else:
                filled = np.where(np.isnan(cells), self.medians_[j], cells)
                scaled = (filled - self.centre_[j]) / self.spread_[j]
                out[:, place] = np.clip(scaled, -self.clip, self.clip)
                place += 1
        out[:, place:] = np.isnan(matrix[:, self.indicated_])
        return out

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the output columns; `input_features` is not used."""
        check_is_fitted(self)
        names = []
        columns = self.columns_
        for name, codes, values in zip(columns.names, self.kept_, columns.categories, strict=True):
            names += [name] if values is None else [f"{name}={values[code]}" for code in codes]
        missing = np.array(columns.names, dtype=object)[self.indicated_]
        return np.array([*names, *(f"{name} is missing" for name in missing)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags

    def _learn_dense(self, matrix: np.ndarray) -> None:
        """Medians, scale, frequent categories and which columns have missing cells."""
        n_columns = matrix.shape[1]
        self.medians_, self.centre_ = np.zeros(n_columns), np.zeros(n_columns)
        self.spread_, self.kept_ = np.ones(n_columns), []
        absent = np.isnan(matrix)
        self.indicated_ = absent.any(axis=0) & ~self.columns_.is_category
        for j in range(n_columns):
            cells = matrix[~absent[:, j], j].astype(np.float64)
            self.kept_.append(np.empty(0, dtype=np.int64))
            if self.columns_.is_category[j]:
                counts = np.bincount(cells.astype(np.int64))
                frequent = np.argsort(-counts, kind="stable")[: self.max_categories]
                self.kept_[j] = frequent[counts[frequent] > 0].astype(np.int64)
            elif len(cells):
                self.medians_[j] = np.median(cells)
                # missing cells count as the median they are filled with
                share = len(cells) / matrix.shape[0]
                centre = share * cells.mean() + (1 - share) * self.medians_[j]
                square = share * np.mean((cells - centre) ** 2)
                spread = np.sqrt(square + (1 - share) * (self.medians_[j] - centre) ** 2)
                self.centre_[j] = centre
                self.spread_[j] = spread if spread > 1e-12 * max(1.0, abs(centre)) else 1.0

    def _learn_sparse(self, matrix: Any) -> None:
        """The scale of each column; zeros stay zeros."""
        if np.isnan(matrix.data).any():
            raise ValueError(
                "Input X contains NaN: a sparse matrix may not hold missing cells here"
            )
        n_columns = matrix.shape[1]
        self.medians_, self.centre_ = np.zeros(n_columns), np.zeros(n_columns)
        mean = np.asarray(matrix.mean(axis=0)).ravel()
        square = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        self.spread_ = np.where(spread > 1e-12 * np.maximum(1.0, np.abs(mean)), spread, 1.0)
        self.kept_ = [np.empty(0, dtype=np.int64)] * n_columns
        self.indicated_ = np.zeros(n_columns, dtype=bool)
