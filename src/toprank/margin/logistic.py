"""Logistic regression, linear or with a kernel: the score is the log-odds of a positive."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from toprank.docstrings import fill_docstring
from toprank.margin.base import KernelRanker, LinearRanker, scaler_of
from toprank.margin.matrices import (
    SERIAL,
    fit_threads,
    newton_direction,
    product,
    row_blocks,
    scale_rows,
    transposed_product,
    weighted_gram,
)
from toprank.parallel import ThreadPool
from toprank.progress import progress

__all__ = ["KernelLogisticRanker", "LogisticRanker"]

_LARGE, _SAMPLE = 20_000, 8  # rows from which a first guess comes from one row in so many
_GUESS_ROWS = 30_000  # more would copy much and tell little
_ROUNDING = 1e-6  # share of the terms of a gradient below which their sum tells nothing


@fill_docstring
class LogisticRanker(LinearRanker):
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
    %(class_weight)s

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

    def __init__(
        self,
        C: float = 1.0,
        *,
        scale: bool = True,
        max_iter: int = 200,
        tol: float = 1e-8,
        class_weight: Mapping[Any, float] | str | None = None,
    ) -> None:
        self.C = C
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight

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
        scaler = scaler_of(self, data)
        model = LogisticRegression(C=self.C, max_iter=self.max_iter, tol=self.tol)
        with fit_threads(1):
            model.fit(scale_rows(scaler, data.X), data.y, sample_weight=data.sample_weight)
        self._keep_linear(model.coef_[0], scaler)
        self.n_iter_ = int(model.n_iter_[0])
        self._set_threshold(self._raw_scores(data.X), data)
        return self


@fill_docstring
class KernelLogisticRanker(KernelRanker):
    r"""Rank by the log-odds of a kernel logistic regression.

    Minimises, with s_i = 1 for a positive and -1 for a negative,

    .. math:: \tfrac12 |v|^2 + C \sum_i w_i \log(1 + \exp(-s_i (v\cdot\phi(x_i) + b)))

    by Newton's method on the kernel's features: exact up to `exact_rows` distinct rows, Nyström beyond.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian"}, default="rbf"
        "linear" is plain logistic regression.
    C : float, default=1.0
        Multiplies the sum of the losses.
    %(kernel_features)s
    %(scale)s
    tol : float, default=1e-8
        Norm of the gradient, relative to the one at the start, at which to stop.
    max_iter : int, default=200
        Most Newton steps.
    %(class_weight)s
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    %(kernel_model)s
    gradient_norm_ : float
        Norm of the gradient at the end, relative to the one at the start.
    n_iter_ : int
        Newton steps taken.
    %(classes)s

    References
    ----------
    Zhu, J. and Hastie, T. (2005). Kernel logistic regression and the import vector machine. Journal of
    Computational and Graphical Statistics 14(1).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from toprank import KernelLogisticRanker
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> round(KernelLogisticRanker().fit(X, y).score(X, y), 2)
    0.98
    """

    def __init__(
        self,
        kernel: str = "rbf",
        C: float = 1.0,
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int = 256,
        exact_rows: int = 1000,
        scale: bool = True,
        tol: float = 1e-8,
        max_iter: int = 200,
        class_weight: Mapping[Any, float] | str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.exact_rows = exact_rows
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticRanker:
        """Learn the coefficients.

        Parameters
        ----------
        %(sparse_X)s
        %(y)s
        %(sample_weight)s

        Returns
        -------
        self : KernelLogisticRanker
        """
        data = self._check_training(X, y, sample_weight)
        with (
            fit_threads(self.n_jobs) as pool,
            progress(None, "logistic", enabled=self.verbose) as advance,
        ):
            features, source = self._features(data, pool)
            problem = LogisticProblem(features, data.y, self.C * data.weights, pool)
            fitted = fit_logistic(problem, tol=self.tol, max_iter=self.max_iter, advance=advance)
            if fitted.gradient_norm > self.tol:
                warnings.warn(
                    f"KernelLogisticRanker stopped after {fitted.n_iter} steps with a relative "
                    f"gradient of {fitted.gradient_norm:.1e}, above tol={self.tol:g}; raise "
                    "max_iter, scale the columns, or lower C",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            self._keep(fitted.coefficients, source)
            self.gradient_norm_ = fitted.gradient_norm
            self.n_iter_ = fitted.n_iter
            del features, problem  # of many rows a gigabyte, that the scores need not wait beside
            self._set_threshold(self._raw_scores(data.X), data)
        return self


# -- Newton's method ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients and intercept, with the relative gradient norm that certifies them."""

    coefficients: np.ndarray
    intercept: float
    gradient_norm: float
    n_iter: int


@dataclass(frozen=True)
class _Point:
    """A point (v, b) as one vector `theta`, with the scores Xv + b, the value and the gradient there."""

    theta: np.ndarray
    scores: np.ndarray
    value: float
    gradient: np.ndarray

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.gradient))


@dataclass(frozen=True)
class LogisticProblem:
    """|v|²/2 + sum of weight·log(1 + exp(-s·(Xv + b))), s = 1 where y is 1 and -1 elsewhere."""

    X: Any
    y: np.ndarray
    weight: np.ndarray
    pool: ThreadPool = SERIAL

    @property
    def positive_share(self) -> float:
        return float(self.weight @ self.y) / self.weight.sum()

    def evaluate(self, theta: np.ndarray, scores: np.ndarray | None = None) -> _Point:
        """Return value and gradient at a point; its scores save a product if they are known."""
        v, b = theta[:-1], theta[-1]
        if scores is None:
            scores = product(self.X, v) + b
        losses = np.logaddexp(0.0, scores)  # in place from here: of many rows each array weighs
        losses -= self.y * scores
        value = 0.5 * float(v @ v) + float(self.weight @ losses)
        by_score = expit(scores, out=losses)
        by_score -= self.y
        by_score *= self.weight
        gradient = np.append(v + transposed_product(self.X, by_score), by_score.sum())
        return _Point(theta, scores, value, gradient)

    def direction(self, point: _Point, scale: float) -> np.ndarray:
        """Solve Hessian · direction = -gradient."""
        curvature = expit(point.scores)
        curvature *= 1.0 - curvature
        curvature *= self.weight

        def hessian() -> np.ndarray:
            size = len(point.theta)
            out = np.empty((size, size))
            out[:-1, :-1] = weighted_gram(self.X, curvature, self.pool)
            out[:-1, -1] = out[-1, :-1] = transposed_product(self.X, curvature)
            out[np.arange(size - 1), np.arange(size - 1)] += 1.0
            out[-1, -1] = max(float(curvature.sum()), 1e-300)
            return out

        def hessian_product(step: np.ndarray) -> np.ndarray:
            moved = curvature * (product(self.X, step[:-1]) + step[-1])
            return np.append(step[:-1] + transposed_product(self.X, moved), moved.sum())

        rtol = min(0.1, np.sqrt(point.norm / scale))
        return newton_direction(point.gradient, hessian, hessian_product, rtol)

    def line_search(self, point: _Point, direction: np.ndarray) -> _Point | None:
        """Take the longest step 1, 1/2, 1/4, ... that lowers the objective, or None."""
        downhill = float(point.gradient @ direction)
        if not downhill < 0:
            return None
        shift = product(self.X, direction[:-1]) + direction[-1]
        length, slack = 1.0, 1e-14 * abs(point.value)
        for _ in range(40):
            moved = self.evaluate(point.theta + length * direction, point.scores + length * shift)
            lowered = moved.value <= point.value + 1e-4 * length * downhill
            if lowered or (moved.norm < point.norm and moved.value <= point.value + slack):
                return moved
            length *= 0.5
        return None


def fit_logistic(
    problem: LogisticProblem,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    advance: Callable[[], None] = lambda: None,
) -> LogisticFit:
    """Minimise over (v, b) until the gradient is `tol` times that at the start."""
    point = problem.evaluate(_first_guess(problem))
    scale = _gradient_at_zero(problem)
    iteration = 0
    while iteration < max_iter and point.norm > tol * scale:
        iteration += 1
        moved = problem.line_search(point, problem.direction(point, scale))
        advance()
        if moved is None:
            break  # rounding errors leave no further descent
        point = moved
    return LogisticFit(point.theta[:-1], float(point.theta[-1]), point.norm / scale, iteration)


def _gradient_at_zero(problem: LogisticProblem) -> float:
    """Return the norm of the gradient at zero coefficients and the best intercept.

    Where it is nothing but rounding, as with constant columns, the size of what cancels out in it.
    """
    by_score = problem.weight * (problem.positive_share - problem.y)
    scale = float(np.linalg.norm(transposed_product(problem.X, by_score)))
    sizes = (abs(problem.X[rows]).T @ np.abs(by_score[rows]) for rows in row_blocks(problem.X))
    terms = np.append(sum(sizes), np.abs(by_score).sum())  # the last one is the intercept's
    return max(scale, _ROUNDING * float(np.linalg.norm(terms))) or 1.0


def _first_guess(problem: LogisticProblem) -> np.ndarray:
    """Return zeros and the log-odds; for many rows the rough optimum of a part of them."""
    y, weight = problem.y, problem.weight
    share = problem.positive_share
    guess = np.zeros(problem.X.shape[1] + 1)
    guess[-1] = np.log(share / (1.0 - share))
    if len(y) < _LARGE:
        return guess
    size = min(len(y) // _SAMPLE, _GUESS_ROWS)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:size])
    if len(np.unique(y[rows])) < 2:
        return guess
    drawn_weight = weight[rows] * (weight.sum() / weight[rows].sum())
    part = replace(problem, X=problem.X[rows], y=y[rows], weight=drawn_weight)
    rough = fit_logistic(part, tol=1e-3, max_iter=30)
    return np.append(rough.coefficients, rough.intercept)
