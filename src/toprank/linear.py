"""A linear logistic ranker: the plainest model that a ranking is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from toprank.base import BaseRanker

__all__ = ["LogisticRanker"]


class LogisticRanker(BaseRanker):
    """Rank by the score of an L2-penalised logistic regression.

    Parameters
    ----------
    C : float, default=1.0
        Inverse strength of the penalty.
    scale : bool, default=True
        Divide each column by its standard deviation (and centre it, if the data is dense) first.
    max_iter : int, default=200
        Most iterations of the solver.
    tol : float, default=1e-8
        Tolerance of the solver on the gradient.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        One coefficient for each column, on the scale of the data as given.
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive one.
    offset_ : float
        The threshold that was subtracted from the scores.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import LogisticRanker
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> round(LogisticRanker().fit(X, y).score(X, y), 2)
    0.8
    """

    _accepts_sparse = True

    def __init__(
        self, C: float = 1.0, *, scale: bool = True, max_iter: int = 200, tol: float = 1e-8
    ) -> None:
        self.C = C
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRanker:
        """Learn the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.

        Returns
        -------
        self : LogisticRanker
        """
        data = self._check_training(X, y, sample_weight)
        spread = np.ones(data.X.shape[1])
        rows = data.X
        if self.scale:
            centre = not hasattr(data.X, "tocsr")
            scaler = StandardScaler(with_mean=centre).fit(data.X, sample_weight=data.sample_weight)
            rows, spread = scaler.transform(data.X), scaler.scale_
        model = LogisticRegression(C=self.C, max_iter=self.max_iter, tol=self.tol)
        model.fit(rows, data.y, sample_weight=data.sample_weight)
        self.coef_ = model.coef_[0] / spread
        self.n_iter_ = int(model.n_iter_[0])
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_, dtype=np.float64).ravel()
