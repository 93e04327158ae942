"""A linear logistic ranker: the plainest model that a ranking is compared with."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from toprank.base import BaseRanker
from toprank.docstrings import fill_docstring
from toprank.validation import PARAMETER_CONSTRAINTS

__all__ = ["LogisticRanker"]


@fill_docstring
class LogisticRanker(BaseRanker):
    """Rank by the score of an L2-penalised logistic regression.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    %(scale)s
    max_iter : int, default=200
        Most iterations of the solver.
    tol : float, default=1e-8
        Tolerance of the solver on the gradient.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        One coefficient for each column, on the scale of the data as given.
    %(classes)s

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import LogisticRanker
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> round(LogisticRanker().fit(X, y).score(X, y), 2)
    0.8
    """

    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "scale": ["boolean"],
    }

    def __init__(
        self, C: float = 1.0, *, scale: bool = True, max_iter: int = 200, tol: float = 1e-8
    ) -> None:
        self.C = C
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRanker:
        """Learn the coefficients.

        Parameters
        ----------
        %(sparse_X)s
        %(y)s
        %(sample_weight)s

        Returns
        -------
        self : LogisticRanker
        """
        data = self._check_training(X, y, sample_weight)
        scaler = StandardScaler(
            with_mean=self.scale and not sparse.issparse(data.X), with_std=self.scale
        )
        rows = scaler.fit_transform(data.X, sample_weight=data.sample_weight)
        model = LogisticRegression(C=self.C, max_iter=self.max_iter, tol=self.tol)
        model.fit(rows, data.y, sample_weight=data.sample_weight)
        self.coef_ = model.coef_[0] / scaler.scale_ if self.scale else model.coef_[0]
        self.n_iter_ = int(model.n_iter_[0])
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_, dtype=np.float64).ravel()
