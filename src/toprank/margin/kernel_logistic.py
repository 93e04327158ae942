"""Kernel logistic regression: the score is the log-odds of a positive."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from toprank.margin._linear import KernelRanker
from toprank.margin._matrix import (
    EXPLICIT_COLUMNS,
    column_block,
    product,
    row_blocks,
    solve_positive,
    transposed_product,
)
from toprank.progress import progress

__all__ = ["KernelLogisticRanker", "fit_logistic"]

_LARGE, _SAMPLE = 20_000, 8  # rows from which a first guess comes from one row in so many
_GUESS_ROWS = 60_000  # more would copy much and tell little


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
    gamma : float or "scale", default="scale"
        Width of the kernel; "scale" is one over the summed variance of the columns.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial kernel.
    n_components : int, default=256
        Landmarks of the Nyström features, half of them positives where there are enough.
    exact_rows : int, default=1000
        Up to this many distinct rows the kernel is exact.
    scale : bool, default=True
        Divide each column by its standard deviation (and centre it, if the data is dense) first.
    tol : float, default=1e-8
        Norm of the gradient, relative to the one at the start, at which to stop.
    max_iter : int, default=200
        Most Newton steps.
    n_jobs : int or None, default=None
        Threads of the linear algebra: None is one, -1 all cores.
    random_state : int, RandomState or None, default=None
        Draws the landmarks.
    verbose : int, default=0
        Above 0, shows the progress.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        With the linear kernel: coefficients on the scale of the data as given.
    expansion_ : KernelExpansion
        With another kernel: landmarks and their coefficients.
    gradient_norm_ : float
        Norm of the gradient at the end, relative to the one at the start.
    n_iter_ : int
        Newton steps taken.
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive one.
    offset_ : float
        The threshold that was subtracted from the scores.

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
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticRanker:
        """Learn the coefficients.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.

        Returns
        -------
        self : KernelLogisticRanker
        """
        if not self.C > 0:
            raise ValueError(f"C must be above 0, got {self.C!r}")
        data = self._check_training(X, y, sample_weight)
        with self._threads(), progress(None, "logistic", enabled=self.verbose) as advance:
            space = self._feature_space(data)
            fitted = fit_logistic(
                space.transform(data.X),
                data.y,
                self.C * data.weights,
                tol=self.tol,
                max_iter=self.max_iter,
                advance=advance,
            )
            if fitted.gradient_norm > self.tol:
                warnings.warn(
                    f"KernelLogisticRanker stopped after {fitted.n_iter} steps with a relative "
                    f"gradient of {fitted.gradient_norm:.1e}, above tol={self.tol:g}; raise "
                    "max_iter, scale the columns, or lower C",
                    ConvergenceWarning,
                    stacklevel=2,
                )
            self._keep(fitted.coefficients, space)
            self.gradient_norm_ = fitted.gradient_norm
            self.n_iter_ = fitted.n_iter
            self._set_threshold(self._raw_scores(data.X), data)
        return self


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients and intercept, with the relative gradient norm that certifies them."""

    coefficients: np.ndarray
    intercept: float
    gradient_norm: float
    n_iter: int


def fit_logistic(
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    *,
    tol: float = 1e-8,
    max_iter: int = 200,
    start: np.ndarray | None = None,
    advance: Callable[[], None] | None = None,
) -> LogisticFit:
    """Minimise |v|²/2 + sum of weight·log(1 + exp(-s·(Xv + b))) over (v, b) by Newton's method.

    Examples
    --------
    >>> import numpy as np
    >>> fitted = fit_logistic(np.array([[-1.0], [1.0]]), np.array([0.0, 1.0]), np.ones(2))
    >>> bool(np.isclose(fitted.coefficients[0], 2 / (1 + np.exp(fitted.coefficients[0]))))
    True
    """
    if start is None:
        start = _first_guess(X, y, weight)
    v, b = start[:-1], start[-1]
    scores = product(X, v)
    value, gradient = _objective(X, y, weight, v, b, scores)
    scale = _start_norm(X, y, weight)
    iteration = 0
    while iteration < max_iter and np.linalg.norm(gradient) > tol * scale:
        iteration += 1
        step = _newton_step(X, y, weight, scores + b, gradient, scale)
        shift = product(X, step[:-1])
        moved = _search(X, y, weight, (v, b, scores, value, gradient), step, shift)
        if advance is not None:
            advance()
        if moved is None:
            break  # rounding errors leave no further descent
        v, b, scores, value, gradient = moved
    norm = float(np.linalg.norm(gradient)) / scale
    return LogisticFit(v, float(b), norm, iteration)


def _first_guess(X: Any, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Zero coefficients and the log-odds; for many rows the rough optimum of a part of them."""
    positive = float(weight @ y)
    guess = np.zeros(X.shape[1] + 1)
    guess[-1] = np.log(positive / (weight.sum() - positive))
    if X.shape[0] < _LARGE:
        return guess
    size = min(len(y) // _SAMPLE, _GUESS_ROWS)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:size])
    if len(np.unique(y[rows])) < 2:
        return guess
    share = weight.sum() / weight[rows].sum()
    rough = fit_logistic(X[rows], y[rows], share * weight[rows], tol=1e-3, max_iter=30)
    return np.append(rough.coefficients, rough.intercept)


def _start_norm(X: Any, y: np.ndarray, weight: np.ndarray) -> float:
    """Norm of the gradient at zero coefficients and the best intercept."""
    share = float(weight @ y) / weight.sum()
    return float(np.linalg.norm(transposed_product(X, weight * (share - y)))) or 1.0


def _objective(
    X: Any, y: np.ndarray, weight: np.ndarray, v: np.ndarray, b: float, scores: np.ndarray
) -> tuple[float, np.ndarray]:
    """Value and gradient at (v, b), whose scores Xv are given."""
    margin = scores + b
    value = 0.5 * float(v @ v) + float(weight @ (np.logaddexp(0.0, margin) - y * margin))
    slope = weight * (expit(margin) - y)
    return value, np.append(v + transposed_product(X, slope), slope.sum())


def _newton_step(
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    margin: np.ndarray,
    gradient: np.ndarray,
    scale: float,
) -> np.ndarray:
    """Solve Hessian·step = -gradient, by Cholesky or, for many columns, conjugate gradients."""
    chance = expit(margin)
    curvature = weight * chance * (1.0 - chance)
    size = X.shape[1] + 1
    corner = max(float(curvature.sum()), 1e-300)
    if size <= EXPLICIT_COLUMNS + 1:
        hessian = np.empty((size, size))
        hessian[:-1, :-1] = _weighted_gram(X, curvature)
        hessian[:-1, -1] = hessian[-1, :-1] = transposed_product(X, curvature)
        hessian[np.arange(size - 1), np.arange(size - 1)] += 1.0
        hessian[-1, -1] = corner
        return solve_positive(hessian, -gradient)

    def times(step: np.ndarray) -> np.ndarray:
        step = step.ravel()
        moved = curvature * (product(X, step[:-1]) + step[-1])
        return np.append(step[:-1] + transposed_product(X, moved), moved.sum())

    rtol = min(0.1, np.sqrt(np.linalg.norm(gradient) / scale))
    operator = LinearOperator((size, size), matvec=times, dtype=np.float64)
    return cg(operator, -gradient, rtol=max(rtol, 1e-8), maxiter=500)[0]


def _weighted_gram(X: Any, weight: np.ndarray) -> np.ndarray:
    """X' diag(weight) X, a block of rows at a time."""
    out = np.zeros((X.shape[1], X.shape[1]))
    for block in row_blocks(X):
        rows = column_block(X[block], 0, X.shape[1])
        out += rows.T @ (weight[block, None] * rows)
    return out


def _search(
    X: Any,
    y: np.ndarray,
    weight: np.ndarray,
    at: tuple[np.ndarray, float, np.ndarray, float, np.ndarray],
    step: np.ndarray,
    shift: np.ndarray,
) -> tuple[np.ndarray, float, np.ndarray, float, np.ndarray] | None:
    """The longest step 1, 1/2, 1/4, ... that lowers the objective, or None."""
    v, b, scores, value, gradient = at
    downhill = float(gradient @ step)
    if not downhill < 0:
        return None
    length, slack = 1.0, 1e-14 * abs(value)
    for _ in range(40):
        moved_v, moved_b = v + length * step[:-1], b + length * step[-1]
        moved_scores = scores + length * shift
        moved_value, moved_gradient = _objective(X, y, weight, moved_v, moved_b, moved_scores)
        shrunk = np.linalg.norm(moved_gradient) < np.linalg.norm(gradient)
        lowered = moved_value <= value + 1e-4 * length * downhill
        if lowered or (shrunk and moved_value <= value + slack):
            return moved_v, moved_b, moved_scores, moved_value, moved_gradient
        length *= 0.5
    return None
