"""RankSVM: the support vector machine on pairs, without listing the pairs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank.base import TrainingData
from toprank.margin._linear import FeatureSpace, GradedQueries, KernelRanker
from toprank.margin._newton import LOSSES, Solution, solve
from toprank.margin.pairs import GradedPairs
from toprank.progress import progress

__all__ = ["RankSVM"]


class RankSVM(GradedQueries, KernelRanker):
    r"""Rank by a support vector machine on pairs of rows.

    Minimises

    .. math:: \tfrac12 |v|^2 + C \sum_{q} \sum_{i, j \in q,\ y_i > y_j} w_i w_j
              \, \ell(1 - v\cdot(\phi(x_i) - \phi(x_j)))

    with the squared hinge :math:`\ell(r) = \max(0, r)^2` or the hinge :math:`\max(0, r)`. Sums
    over pairs take one sort (pairs are never listed), so a fit costs n log n. The optimum is certified
    by its duality gap.

    Parameters
    ----------
    kernel : {"linear", "rbf", "poly", "laplacian"}, default="linear"
        Anything but "linear" goes through the kernel's features: exact up to `exact_rows` distinct
        rows, Nyström beyond.
    C : float, default=1.0
        Multiplies the sum over pairs.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        The squared hinge takes a handful of Newton steps, the hinge some tens.
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
    tol : float, default=1e-6
        Duality gap, relative to the objective, at which to stop. Rounding allows about 1e-10.
    max_iter : int, default=500
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
    objective_ : float
        Value reached.
    duality_gap_ : float
        The best possible value lies at most this far below `objective_`.
    n_iter_ : int
        Newton steps taken.
    ranks_queries_ : bool
        Whether `fit` was given queries.
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive one.
    offset_ : float
        The threshold that was subtracted from the scores.

    References
    ----------
    Joachims, T. (2002). Optimizing search engines using clickthrough data. KDD.
    Chapelle, O. and Keerthi, S. S. (2010). Efficient algorithms for ranking with SVMs. Information
    Retrieval 13.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import RankSVM
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> ranker = RankSVM().fit(X, y)
    >>> round(ranker.score(X, y), 2), ranker.duality_gap_ <= 1e-6 * ranker.objective_
    (0.69, True)
    """

    def __init__(
        self,
        kernel: str = "linear",
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        n_components: int = 256,
        exact_rows: int = 1000,
        scale: bool = True,
        tol: float = 1e-6,
        max_iter: int = 500,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.loss = loss
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> RankSVM:
        """Learn the coefficients.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Two labels, the greater one positive; or, with `qid`, grades 0, 1, 2, ...
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent; a pair weighs the product.
        qid : array of shape (n_rows,), optional
            The query of each row; only rows of the same query are compared.

        Returns
        -------
        self : RankSVM
        """
        self._check_parameters(self.C)
        data = self._check_training(X, y, sample_weight, qid)
        with self._threads():
            space = self._feature_space(data)
            solution = self._solve(space.transform(data.X), _pairs_of(data), None)
            self._store(solution, space, data)
        return self

    def path(
        self, X: Any, y: Any, Cs: Sequence[float], sample_weight: Any = None, qid: Any = None
    ) -> list[RankSVM]:
        """Fit one ranker for each C, from the smallest up, each started from the one before.

        The columns are scaled and the kernel features computed once.

        Parameters
        ----------
        X, y, sample_weight, qid
            As in `fit`.
        Cs : sequence of float
            The values of C.

        Returns
        -------
        rankers : list of RankSVM
            Fitted, in ascending order of C.

        Examples
        --------
        >>> from sklearn.datasets import make_classification
        >>> from toprank import RankSVM
        >>> X, y = make_classification(300, random_state=0)
        >>> [ranker.C for ranker in RankSVM().path(X, y, [1.0, 0.01])]
        [0.01, 1.0]
        """
        values = sorted(float(C) for C in Cs)
        for C in values:
            self._check_parameters(C)
        unfitted = clone(self)
        data = unfitted._check_training(X, y, sample_weight, qid)
        rankers: list[RankSVM] = []
        start: np.ndarray | None = None
        with unfitted._threads():
            space = unfitted._feature_space(data)
            features, pairs = space.transform(data.X), _pairs_of(data)
            for C in values:
                ranker = copy(unfitted).set_params(C=C)
                solution = ranker._solve(features, pairs, start)
                ranker._store(solution, space, data)
                rankers.append(ranker)
                start = solution.coefficients
        return rankers

    def _check_parameters(self, C: float) -> None:
        if not C > 0:
            raise ValueError(f"C must be above 0, got {C!r}")
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        if not self.tol > 0:
            raise ValueError(f"tol must be above 0, got {self.tol!r}")

    def _solve(self, features: Any, pairs: GradedPairs, start: np.ndarray | None) -> Solution:
        """Minimise over the coefficients; warn if the gap stayed open."""
        with progress(None, "RankSVM", enabled=self.verbose) as advance:
            solution = solve(
                features,
                pairs,
                C=self.C,
                loss=self.loss,
                tol=self.tol,
                max_iter=self.max_iter,
                start=start,
                advance=advance,
            )
        if not solution.converged:
            warnings.warn(
                f"RankSVM stopped after {solution.n_iter} steps with a relative duality gap of "
                f"{solution.gap / solution.objective:.1e}, above tol={self.tol:g}; raise max_iter, "
                "scale the columns, or lower C",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution

    def _store(self, solution: Solution, space: FeatureSpace, data: TrainingData) -> None:
        """Set the fitted attributes and the threshold."""
        self._keep(solution.coefficients, space)
        self.objective_ = solution.objective
        self.duality_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self._set_threshold(self._raw_scores(data.X), data)


def _pairs_of(data: TrainingData) -> GradedPairs:
    """The pairs of the training rows; there must be some."""
    pairs = GradedPairs.of(data.y, data.weights, data.qid)
    if pairs.total == 0:
        raise ValueError(
            "no query holds rows of more than one class, so there is nothing to compare; "
            "check qid, or leave it out to compare all rows"
        )
    return pairs
