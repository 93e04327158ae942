"""Tables as numbers on one scale, for methods that know neither categories nor missing cells.

scikit-learn's SimpleImputer and OneHotEncoder take no sample weights, and a weight of 2 must be the row
twice; so the encoding is written here once, for pipelines (`TableEncoder`) and for the splitting rules of
ranking trees.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from toprank.base import InputChecks
from toprank.validation import Interval

__all__ = ["NumericEncoding", "TableEncoder"]

NUMBER, MISSING_MARK, CATEGORY = 0, 1, 2


@dataclass(frozen=True)
class NumericEncoding:
    """How a matrix of numbers and category codes becomes numbers on one scale.

    A column of numbers has its mean subtracted and is divided by its standard deviation; missing cells
    get the mean, and a 0/1 column of their own where training rows had any. A categorical column becomes
    a 0/1 column for each of its heaviest categories.

    Attributes
    ----------
    source : int ndarray of shape (n_encoded,)
        The column that each encoded column comes from.
    kind : int8 ndarray of shape (n_encoded,)
        0 for numbers, 1 for the mark of missing cells, 2 for a category.
    shift, scale : ndarray of shape (n_encoded,)
        Mean and standard deviation of numbers; the code of a category in `shift`.
    n_columns : int
    clip : float
        Scaled numbers are cut off at plus and minus this value.
    """

    source: np.ndarray
    kind: np.ndarray
    shift: np.ndarray
    scale: np.ndarray
    n_columns: int
    clip: float = np.inf

    @classmethod
    def of(
        cls,
        X: np.ndarray,
        is_category: np.ndarray,
        sample_weight: np.ndarray | None = None,
        *,
        max_categories: int = 64,
        clip: float = np.inf,
    ) -> NumericEncoding:
        """Learn the encoding of a matrix.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[1.0, 0.0], [3.0, 1.0]])
        >>> NumericEncoding.of(X, np.array([False, True])).transform(X).tolist()
        [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
        """
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        entries: list[tuple[int, int, float, float]] = []
        for j in range(X.shape[1]):
            if is_category[j]:
                codes = _heaviest_codes(X[:, j], weight, max_categories)
                entries += [(j, CATEGORY, float(code), 1.0) for code in codes]
            else:
                entries += _number_entries(j, X[:, j], weight)
        table = np.array(entries, dtype=np.float64).reshape(-1, 4)
        return cls(
            table[:, 0].astype(np.int64),
            table[:, 1].astype(np.int8),
            table[:, 2].copy(),
            table[:, 3].copy(),
            X.shape[1],
            float(clip),
        )

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the encoded rows."""
        out = np.empty((len(X), len(self.source)))
        for k in range(len(self.source)):
            cells = X[:, self.source[k]]
            if self.kind[k] == NUMBER:
                scaled = (cells - self.shift[k]) / self.scale[k]
                out[:, k] = np.clip(np.nan_to_num(scaled, nan=0.0), -self.clip, self.clip)
            elif self.kind[k] == MISSING_MARK:
                out[:, k] = np.isnan(cells)
            else:
                out[:, k] = cells == self.shift[k]
        return out

    def encoded_columns(self, columns: np.ndarray) -> np.ndarray:
        """Return the encoded columns that come from some columns."""
        wanted = np.zeros(self.n_columns, dtype=bool)
        wanted[columns] = True
        return np.flatnonzero(wanted[self.source])


def _number_entries(
    column: int, cells: np.ndarray, weight: np.ndarray
) -> list[tuple[int, int, float, float]]:
    """The scaled column, and the mark of missing cells where there are any."""
    present = ~np.isnan(cells)
    mean, spread = 0.0, 1.0
    if present.any():
        values = cells[present].astype(np.float64)
        mean = float(np.average(values, weights=weight[present]))
        spread = float(np.sqrt(np.average((values - mean) ** 2, weights=weight[present])))
    if not np.isfinite(spread) or spread <= 1e-12 * max(1.0, abs(mean)):
        spread = 1.0  # a constant column stays constant
    entries = [(column, NUMBER, mean, spread)]
    if not present.all():
        entries.append((column, MISSING_MARK, 0.0, 1.0))
    return entries


def _heaviest_codes(cells: np.ndarray, weight: np.ndarray, most: int) -> np.ndarray:
    """The codes of the heaviest categories, ascending."""
    present = ~np.isnan(cells)
    totals = np.bincount(cells[present].astype(np.int64), weight[present])
    codes = np.flatnonzero(totals)
    return np.sort(codes[np.lexsort((codes, -totals[codes]))[:most]])


class TableEncoder(InputChecks, TransformerMixin, BaseEstimator):
    """Numbers for categories, values for missing cells, one scale for all columns.

    A column of numbers has its mean subtracted and is divided by its standard deviation; missing cells
    get the mean, and where training had missing cells, a column of 0 and 1 says which. A column of
    categories becomes one column of 0 and 1 for each of its `max_categories` most frequent categories;
    all others, and missing cells, are zero in each of them.

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
    encoding_ : NumericEncoding
        What was learnt from a dense matrix or a table.
    scale_ : ndarray of shape (n_columns,)
        What a sparse matrix is divided by.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"amount": [1.0, None, 3.0], "country": ["NL", "DE", "NL"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['amount', 'amount is missing', 'country=DE', 'country=NL']
    >>> encoder.transform(table)[1].tolist()
    [0.0, 1.0, 1.0, 0.0]
    """

    _accepts_missing = True
    _accepts_categories = True
    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="right")],
    }

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
        self._validate_params()
        matrix = self._check_rows(X, reset=True)
        self.trained_on_sparse_ = bool(sparse.issparse(matrix))
        if self.trained_on_sparse_:
            if np.isnan(matrix.data).any():
                raise ValueError(
                    "Input X contains NaN: a sparse matrix may not hold missing cells here"
                )
            self.scale_ = StandardScaler(with_mean=False).fit(matrix).scale_
        else:
            self.encoding_ = NumericEncoding.of(
                matrix,
                self.columns_.is_category,
                max_categories=self.max_categories,
                clip=self.clip,
            )
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
            return sparse.csr_matrix(
                sparse.csr_matrix(matrix) @ sparse.diags_array(1 / self.scale_)
            )
        return self.encoding_.transform(matrix.toarray() if sparse.issparse(matrix) else matrix)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the output columns; `input_features` is not used."""
        check_is_fitted(self)
        columns = self.columns_
        if self.trained_on_sparse_:
            return np.array(columns.names, dtype=object)
        names = []
        encoding = self.encoding_
        for source, kind, shift in zip(encoding.source, encoding.kind, encoding.shift, strict=True):
            name, values = columns.names[source], columns.categories[source]
            if kind == CATEGORY and values is not None:
                name = f"{name}={values[int(shift)]}"
            names.append(f"{name} is missing" if kind == MISSING_MARK else name)
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags
