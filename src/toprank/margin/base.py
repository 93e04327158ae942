"""What the margin rankers share: linear scores, feature spaces, solutions, equal rows as one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from toprank.base import BaseRanker, TrainingData
from toprank.margin.kernels import KERNELS, KernelMap
from toprank.margin.matrices import fit_scaler, scale_rows
from toprank.parallel import ThreadPool
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions

NOTHING_TO_COMPARE = (
    "no query holds rows of more than one class, so there is nothing to compare; "
    "check qid, or leave it out to compare all rows"
)
_MOST_NUMBERS = 1 << 21  # beyond, sorting whole rows costs more than it gains


@dataclass(frozen=True)
class Solution:
    """Where a minimisation ended; `bound` is a certified lower bound of the minimum, or NaN."""

    coefficients: np.ndarray
    objective: float
    bound: float
    n_iter: int

    @property
    def gap(self) -> float:
        """What may be left to gain."""
        return max(self.objective - self.bound, 0.0)

    @property
    def relative_gap(self) -> float:
        """What may be left to gain, as a share of the objective."""
        return self.gap / max(abs(self.objective), 1e-12)


class LinearRanker(BaseRanker):
    """A ranker whose score is `X @ coef_`, with `coef_` on the scale of the data as given."""

    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "scale": ["boolean"],
    }

    def _raw_scores(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_, dtype=np.float64).ravel()

    def _keep_linear(self, coefficients: np.ndarray, scaler: StandardScaler) -> None:
        """Set `coef_` from coefficients that were learnt on scaled columns."""
        self.coef_ = coefficients / scaler.scale_ if scaler.with_std else coefficients


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

    Subclasses have the parameters named below, `n_jobs` and `random_state`; they learn coefficients
    on their `_features` and hand them to `_keep`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearRanker._parameter_constraints,
        "kernel": [StrOptions(set(KERNELS))],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"scale"})],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "exact_rows": [Interval(Integral, 0, None, closed="left")],
    }

    def _features(
        self, data: TrainingData, pool: ThreadPool
    ) -> tuple[Any, StandardScaler | KernelMap]:
        """Return the features of the rows, and what makes them: a scaler, or the map of a kernel."""
        scaler = fit_scaler(data.X, data.sample_weight, enabled=self.scale)
        if self.kernel == "linear":
            return scale_rows(scaler, data.X), scaler
        names = ("kernel", "gamma", "degree", "coef0", "n_components", "exact_rows", "random_state")
        kernel_map = KernelMap.of(data, scaler, **{name: getattr(self, name) for name in names})
        return kernel_map.transform(data.X, pool), kernel_map

    def _keep(self, coefficients: np.ndarray, source: StandardScaler | KernelMap) -> None:
        """Store the coefficients of features: `coef_`, or the kernel expansion that scores rows."""
        for name in ("coef_", "expansion_"):
            self.__dict__.pop(name, None)  # a refit may change the kernel
        if isinstance(source, KernelMap):
            self.expansion_ = source.expansion(coefficients)
        else:
            self._keep_linear(coefficients, source)

    def _raw_scores(self, X: Any) -> np.ndarray:
        if hasattr(self, "coef_"):
            return super()._raw_scores(X)
        return self.expansion_.score(X)


def deduplicate_rows(data: TrainingData) -> TrainingData:
    """Return small data with each distinct row (and label, and query) once, weights added up.

    A loss over pairs is the same for a row of weight 2 and for the row twice, but a solver that stops
    at a tolerance ends at slightly different points. Merged and sorted, the two are the same problem
    to the bit, and so is every order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> rows = TrainingData(np.array([[2.0], [1.0], [2.0]]), np.array([1.0, 0.0, 1.0]), None, None)
    >>> merged = deduplicate_rows(rows)
    >>> merged.X.ravel().tolist(), merged.weights.tolist()
    ([1.0, 2.0], [1.0, 2.0])
    """
    n_rows, n_columns = data.X.shape
    if n_rows * n_columns > _MOST_NUMBERS:
        return data
    dense = data.X.toarray() if sparse.issparse(data.X) else np.asarray(data.X)
    query = np.zeros(n_rows) if data.qid is None else data.qid
    keys = np.column_stack((query, data.y, dense)) + 0.0  # no negative zeros
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    weights = np.bincount(inverse.ravel(), weights=data.weights)
    kept = data.rows(first)
    return TrainingData(kept.X, kept.y, weights, kept.qid)
