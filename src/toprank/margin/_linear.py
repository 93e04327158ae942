"""The base classes of the margin rankers: a linear score of the columns, or of kernel features."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.base import BaseRanker, TrainingData
from toprank.margin._matrix import blas_threads
from toprank.margin.kernels import KernelMap
from toprank.margin.scaling import Scaling

__all__ = ["FeatureSpace", "GradedQueries", "KernelRanker", "LinearRanker"]


@dataclass(frozen=True)
class FeatureSpace:
    """Where a linear model lives: on scaled columns, or on the features of a kernel."""

    scaling: Scaling
    kernel_map: KernelMap | None = None

    def transform(self, X: Any) -> Any:
        """Features of unscaled rows."""
        return self.scaling.apply(X) if self.kernel_map is None else self.kernel_map.transform(X)


class LinearRanker(BaseRanker):
    """A ranker whose score is `X @ coef_`, with `coef_` on the scale of the data as given."""

    _accepts_sparse = True

    def _raw_scores(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_, dtype=np.float64).ravel()

    def _keep_linear(self, coefficients: np.ndarray, scaling: Scaling) -> None:
        """Set `coef_` from coefficients that were learnt on scaled columns."""
        self.coef_ = coefficients / scaling.spread


class GradedQueries(BaseRanker):
    """Grades of relevance are taken as labels where `fit` is given queries.

    Without queries more than two labels are an error, as for every ranker; to rank one graded list,
    give all its rows the same query.
    """

    def _check_training(
        self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None, **options: Any
    ) -> TrainingData:
        self.ranks_queries_ = qid is not None
        return super()._check_training(X, y, sample_weight, qid, **options)

    def _accepts_grades(self) -> bool:
        return getattr(self, "ranks_queries_", False)


class KernelRanker(LinearRanker):
    """A linear ranker on the columns (`kernel="linear"`) or on the features of a kernel.

    Subclasses have the parameters `kernel`, `gamma`, `degree`, `coef0`, `n_components`,
    `exact_rows`, `scale`, `n_jobs` and `random_state`; they learn coefficients on the features of
    `_feature_space(data)` and hand them to `_keep`.
    """

    def _feature_space(self, data: TrainingData) -> FeatureSpace:
        """Learn the scale of the columns, and the kernel map if there is a kernel."""
        scaling = Scaling.of(data.X, data.sample_weight, enabled=self.scale)
        if self.kernel == "linear":
            return FeatureSpace(scaling)
        kernel_map = KernelMap.of(
            data.X,
            data.y > 0,
            data.sample_weight,
            scaling,
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            n_components=self.n_components,
            exact_rows=self.exact_rows,
            random_state=self.random_state,
        )
        return FeatureSpace(scaling, kernel_map)

    def _threads(self) -> AbstractContextManager[Any]:
        """Limit the threads of the linear algebra of `fit` to `n_jobs`."""
        return blas_threads(self.n_jobs)

    def _keep(self, coefficients: np.ndarray, space: FeatureSpace) -> None:
        """Store the learnt coefficients: `coef_`, or the kernel expansion that scores rows."""
        for name in ("coef_", "expansion_"):
            self.__dict__.pop(name, None)  # a refit may change the kernel
        if space.kernel_map is None:
            self._keep_linear(coefficients, space.scaling)
        else:
            self.expansion_ = space.kernel_map.expansion(coefficients)

    def _raw_scores(self, X: Any) -> np.ndarray:
        if hasattr(self, "coef_"):
            return super()._raw_scores(X)
        return self.expansion_.score(X)
