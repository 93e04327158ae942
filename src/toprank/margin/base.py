"""What the margin rankers share: linear scores, solutions, equal rows as one, kernels as feature maps.

With landmarks z_1..z_m and K_mm = U S U', the features of a row x are k(x, z) U S^(-1/2): their inner
products are the kernel's when every distinct row is a landmark, and its Nyström approximation
otherwise (Williams & Seeger, 2001). A linear model v on the features scores x by the kernel expansion
k(x, z)·(U S^(-1/2) v), which is what a fitted ranker keeps. Landmarks are drawn by a hash of the row's
contents, half of them among the positives, so neither copies nor the order of the rows change the draw.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state, gen_batches

from toprank.base import BaseRanker, TrainingData
from toprank.margin.matrices import (
    SERIAL,
    ColumnScaler,
    cut_cells,
    fit_scaler,
    fit_threads,
    scale_rows,
    to_dense,
)
from toprank.parallel import ThreadPool
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions

NOTHING_TO_COMPARE = (
    "no query holds rows of more than one class, so there is nothing to compare; "
    "check qid, or leave it out to compare all rows"
)
_MOST_NUMBERS = 1 << 21  # beyond, sorting whole rows costs more than it gains
_ROWS_AT_A_TIME = 4096
_DOUBLE_LIMIT = 1 << 25  # numbers beyond which features are kept in single precision
_EIGENVALUE_CUT = 1e-11

# Where the classes can be separated an objective is as good as 0; that of equal scores is about 1.
LEAST_OBJECTIVE = 1e-2
SCALE: list[Any] = ["boolean", StrOptions({"robust"})]  #: what `scale` may be
KERNELS = ("rbf", "laplacian", "poly", "linear")  #: names in `pairwise_kernels` of scikit-learn


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
        """What may be left to gain, as a share of the objective (of .01 if that is more)."""
        return self.gap / max(abs(self.objective), LEAST_OBJECTIVE)


def scaler_of(estimator: Any, data: TrainingData) -> ColumnScaler:
    """Learn the scale of the columns as the estimator's `scale` asks; say which cells were cut off."""
    names = np.asarray(estimator.columns_.names, dtype=object)
    scaler = fit_scaler(data.X, data.sample_weight, estimator.scale)
    if estimator.scale is True and scaler.cut.any():
        warnings.warn(
            f"absurdly large cells are cut off: {_listed(names[scaler.cut])} hold cells "
            "more than 10,000 times as far from the median as 95% of the others, beside which all other "
            "cells look equal; mend these cells, or leave out their rows",
            stacklevel=_outside(),
        )
    if scaler.faint.any():
        warnings.warn(
            f"columns whose cells are too small to be told apart have no say: "
            f"{_listed(names[scaler.faint])}; give them in another unit",
            stacklevel=_outside(),
        )
    return scaler


def _listed(names: np.ndarray) -> str:
    """Return some names as text."""
    shown = ", ".join(str(name) for name in names[:5])
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown


def _outside() -> int:
    """Return the stack level of the caller's first frame outside the library, for a warning."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("toprank"):
        level, frame = level + 1, frame.f_back
    return level


def warn_of_gap(gap: float, tol: float, after: str) -> None:
    """Warn if an objective is not near its minimum."""
    if gap > 10 * tol:
        message = f"the objective is still up to {100 * gap:.2g}% above its minimum after {after}"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


class LinearRanker(BaseRanker):
    """A ranker whose score is `X @ coef_`, with `coef_` on the scale of the data as given.

    Where training has cut off cells, so has scoring: at `limits_`, the least and the greatest cell of
    each column.
    """

    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "scale": SCALE,
    }

    def _raw_scores(self, X: Any) -> np.ndarray:
        if hasattr(self, "limits_"):
            X = cut_cells(X, *self.limits_)
        return np.asarray(X @ self.coef_, dtype=np.float64).ravel()

    def _keep_linear(self, coefficients: np.ndarray, scaler: ColumnScaler) -> None:
        """Set `coef_` from coefficients that were learnt on scaled columns."""
        self.coef_ = coefficients / scaler.spread
        self.__dict__.pop("limits_", None)  # of an earlier fit
        if scaler.cut.any():
            self.limits_ = np.stack((scaler.lower, scaler.upper))


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
    ) -> tuple[Any, ColumnScaler | KernelMap]:
        """Return the features of the rows, and what makes them: a scaler, or the map of a kernel."""
        scaler = scaler_of(self, data)
        if self.kernel == "linear":
            return scale_rows(scaler, data.X), scaler
        names = ("kernel", "gamma", "degree", "coef0", "n_components", "exact_rows", "random_state")
        kernel_map = KernelMap.of(data, scaler, **{name: getattr(self, name) for name in names})
        return kernel_map.transform(data.X, pool), kernel_map

    def _keep(self, coefficients: np.ndarray, source: ColumnScaler | KernelMap) -> None:
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
        with fit_threads(self.n_jobs) as pool:  # the sums of BLAS depend on its threads
            return self.expansion_.score(X, pool)


def deduplicate_rows(data: TrainingData) -> TrainingData:
    """Return small data with each distinct row (and label, and query) once, weights added up.

    A loss over pairs is the same for a row of weight 2 and for the row twice, but a solver that stops
    at a tolerance ends at slightly different points. Merged and sorted, the two are the same problem
    to the bit, and so is every order of the rows.
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


# -- kernels ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelFunction:
    """A kernel with its parameters fixed, on scaled columns."""

    name: str
    gamma: float
    degree: int
    coef0: float
    scaler: ColumnScaler

    def __call__(self, X: Any, landmarks: np.ndarray) -> np.ndarray:
        """Return the kernel values of unscaled rows `X` with scaled `landmarks`."""
        rows = scale_rows(self.scaler, X)
        if self.name == "laplacian":
            rows = to_dense(rows)
        parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return pairwise_kernels(rows, landmarks, self.name, filter_params=True, **parameters)


@dataclass(frozen=True)
class KernelExpansion:
    """A score that is a weighted sum of kernel values with the landmarks."""

    function: KernelFunction
    landmarks: np.ndarray
    dual_coef: np.ndarray

    def score(self, X: Any, pool: ThreadPool = SERIAL) -> np.ndarray:
        """Score unscaled rows, a block at a time."""

        def scored(block: slice) -> np.ndarray:
            return self.function(X[block], self.landmarks) @ self.dual_coef

        return np.concatenate(pool.map(scored, gen_batches(X.shape[0], _ROWS_AT_A_TIME)))


@dataclass(frozen=True)
class KernelMap:
    """The feature map of a kernel: scaled rows as landmarks, and the projection U S^(-1/2)."""

    function: KernelFunction
    landmarks: np.ndarray
    projection: np.ndarray

    @classmethod
    def of(
        cls,
        data: TrainingData,
        scaler: ColumnScaler,
        kernel: str = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int = 256,
        exact_rows: int = 1000,
        random_state: Any = None,
    ) -> KernelMap:
        """Learn the map from unscaled rows (see `RankSVM` for the parameters)."""
        width = _kernel_width(gamma, scaler)
        function = KernelFunction(kernel, width, int(degree), float(coef0), scaler)
        chosen = choose_landmarks(data.X, data.y > 0, n_components, exact_rows, random_state)
        landmarks = to_dense(scale_rows(scaler, data.X[chosen]))
        values, vectors = linalg.eigh(function(data.X[chosen], landmarks))
        kept = values > max(values[-1], 0.0) * _EIGENVALUE_CUT
        if not kept.any():
            raise ValueError(f"the {kernel} kernel is zero on all rows; choose another kernel")
        return cls(function, landmarks, vectors[:, kept] / np.sqrt(values[kept]))

    def transform(self, X: Any, pool: ThreadPool = SERIAL) -> np.ndarray:
        """Return the features of unscaled rows, in single precision when they are many."""
        n_rows, n_features = X.shape[0], self.projection.shape[1]
        single = n_rows * n_features > _DOUBLE_LIMIT
        out = np.empty((n_rows, n_features), np.float32 if single else np.float64)

        def fill(block: slice) -> None:
            out[block] = self.function(X[block], self.landmarks) @ self.projection

        pool.map(fill, gen_batches(n_rows, _ROWS_AT_A_TIME))
        return out

    def expansion(self, coefficients: np.ndarray) -> KernelExpansion:
        """Return the kernel expansion of a linear model on the features."""
        return KernelExpansion(self.function, self.landmarks, self.projection @ coefficients)


def _kernel_width(gamma: float | str, scaler: ColumnScaler) -> float:
    """Return gamma; "scale" is one over the summed variance of the scaled columns."""
    if gamma != "scale":
        return float(gamma)
    total = float(((scaler.deviation / scaler.spread) ** 2).sum())
    return 1.0 / total if total > 0 else 1.0


def choose_landmarks(
    X: Any,
    positive: np.ndarray,
    n_components: int = 256,
    exact_rows: int = 1000,
    random_state: Any = None,
) -> np.ndarray:
    """Return the row numbers of the landmarks: all distinct rows if they are few, or a balanced draw."""
    keys = _row_keys(X, check_random_state(random_state))
    distinct, first = np.unique(keys, return_index=True)
    if len(distinct) <= max(exact_rows, n_components):
        return first
    parts = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    parts = [rows[np.unique(keys[rows], return_index=True)[1]] for rows in parts]
    small, large = sorted(parts, key=len)
    n_small = min(len(small), n_components // 2)
    chosen = np.concatenate([small[:n_small], large[: n_components - n_small]])
    return chosen[np.unique(keys[chosen], return_index=True)[1]]


def _row_keys(X: Any, random: np.random.RandomState) -> np.ndarray:
    """Return a 64-bit hash of each row; equal rows have equal keys, zeros count for nothing."""
    salt = random.randint(0, 1 << 62, size=X.shape[1], dtype=np.int64).astype(np.uint64)
    if sparse.issparse(X):
        mixed = _mix(X.data.astype(np.float64).view(np.uint64) ^ salt[X.indices])
        mixed[X.data == 0] = 0
        running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return _mix(running[X.indptr[1:]] - running[X.indptr[:-1]])
    keys = np.zeros(X.shape[0], np.uint64)
    for j in range(X.shape[1]):
        column = np.array(X[:, j], dtype=np.float64)
        keys += np.where(column == 0, np.uint64(0), _mix(column.view(np.uint64) ^ salt[j]))
    return _mix(keys)


def _mix(bits: np.ndarray) -> np.ndarray:
    """Mix the bits by the finaliser of SplitMix64 (Steele, Lea & Flood, 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
