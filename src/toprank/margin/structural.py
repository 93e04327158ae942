"""Structural support vector machines for the AUC and the partial AUC."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.margin.base import LinearRanker, Solution, deduplicate_rows
from toprank.margin.matrices import fit_scaler, scale_rows
from toprank.margin.partial_batch import BatchOptions, fit_range
from toprank.margin.partial_loss import PartialLoss
from toprank.validation import check_range

__all__ = ["PartialAUCSVM"]


@fill_docstring
class PartialAUCSVM(LinearRanker):
    r"""Structural SVM for the area under the ROC curve over a range of false positive rates.

    Narasimhan & Agarwal (2013). Learns the w that minimises

    .. math:: \tfrac12 |w|^2 + C \max_\pi \Big[\Delta(\pi) - \frac{1}{P N (b-a)}
              \sum_{ij} \pi_{ij}\, w \cdot (x_i - x_j)\Big]

    over the orderings :math:`\pi` of positives i and negatives j (:math:`\pi_{ij} = 1` when j stands
    above i), with :math:`\Delta` one minus the partial AUC of the ordering. The most violated
    ordering is found in the time of a sort, and cutting planes lead to the optimum with a
    certificate. A negative at an end of the range is cut there, so that weights are copies of rows;
    where a N and b N are whole numbers this is the paper's definition to the letter.

    With `fpr=(0, 1)` this is Joachims' (2005) SVM for the AUC. Where the classes overlap so much
    that most positives cannot be put above the negatives of a narrow range, both losses are smallest
    for equal scores; a warning then says so.

    Parameters
    ----------
    fpr : tuple (a, b), default=(0, 1)
        Range of false positive rates, 0 <= a < b <= 1. The default is the whole AUC.
    tight : bool, default=False
        Use the hinge loss on the negatives that rank in the range itself, a smaller bound of the
        partial AUC loss. For a > 0 it is a difference of convex functions, minimised by the
        concave-convex procedure from the solution of the convex problem.
    C : float, default=1000.0
        Factor of the loss, which is a mean over pairs (so it takes larger values than for a sum).
    %(scale)s
    tol : float, default=1e-3
        Relative gap between the objective and its certified bound.
    max_iter : int, default=1000
        Most orderings.

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        Coefficients on the columns as given.
    objective_ : float
        The objective divided by C: the loss plus :math:`|w|^2/(2C)`.
    gap_ : float
        Certified bound on what is left to gain, as a share of the objective; with `tight` and a > 0
        that of the last convex problem.
    n_iter_ : int
        Orderings found.
    %(classes)s

    References
    ----------
    T. Joachims (2005). A support vector method for multivariate performance measures. ICML.

    H. Narasimhan & S. Agarwal (2013). A structural SVM based approach for optimizing partial AUC.
    ICML; and SVMpAUC-tight. KDD.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PartialAUCSVM
    >>> from toprank.metrics import partial_auc
    >>> X, y = make_classification(1000, weights=[0.9], flip_y=0.02, random_state=3)
    >>> model = PartialAUCSVM(fpr=(0, 0.1)).fit(X, y)
    >>> round(partial_auc(y, model.decision_function(X), fpr=(0, 0.1)), 2)
    0.7
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearRanker._parameter_constraints,
        "tight": ["boolean"],
    }

    def __init__(
        self,
        fpr: tuple[float, float] = (0.0, 1.0),
        *,
        tight: bool = False,
        C: float = 1000.0,
        scale: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
    ) -> None:
        self.fpr = fpr
        self.tight = tight
        self.C = C
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> PartialAUCSVM:
        """Learn the coefficients.

        Parameters
        ----------
        %(sparse_X)s
        %(y)s
        %(sample_weight)s
        qid : array of shape (n_rows,), optional
            Queries. The loss is then the mean over the queries that have both classes, each with
            its own range.

        Returns
        -------
        self : PartialAUCSVM
        """
        fpr = check_range(self.fpr)
        data = deduplicate_rows(self._check_training(X, y, sample_weight, qid))
        _check_query_classes(data)
        scaler = fit_scaler(data.X, data.sample_weight, enabled=self.scale)
        found = self._minimise(scale_rows(scaler, data.X), data, fpr)
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.relative_gap, found.n_iter
        self._keep_linear(found.coefficients, scaler)
        self._warn(fpr)
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _warn(self, fpr: tuple[float, float]) -> None:
        """Say so if the minimum was not reached, or is of no use."""
        if self.gap_ > 10 * self.tol:
            warnings.warn(
                f"the objective is still up to {100 * self.gap_:.2g}% above its minimum after "
                f"{self.n_iter_} orderings; raise max_iter, or lower C",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif not self.coef_.any():
            warnings.warn(
                "no linear score has a smaller loss than equal scores: the classes overlap too much "
                f"between the false positive rates {fpr[0]:g} and {fpr[1]:g}, and all rows score the "
                "same; widen fpr, or use PartialAUCRanker, which finds a range that works",
                stacklevel=3,
            )

    def _minimise(self, rows: Any, data: TrainingData, fpr: tuple[float, float]) -> Solution:
        """Solve the convex problem, then the tight one if it is wanted."""
        options = BatchOptions(1.0 / self.C, self.tol, self.max_iter, direct=False)
        # over the whole range the two losses are the same, and the hinge is quicker
        structural = not self.tight and fpr != (0.0, 1.0)
        loss = PartialLoss(data.y > 0, data.weights, fpr, "hinge", structural, data.qid)
        if not self.tight or fpr[0] == 0.0:
            return fit_range(rows, loss, options)
        convex = PartialLoss(data.y > 0, data.weights, fpr, "hinge", True, data.qid)
        start = fit_range(rows, convex, options)
        return fit_range(rows, loss, options, start.coefficients)


def _check_query_classes(data: TrainingData) -> None:
    """There must be a query with both classes."""
    if data.qid is None:
        return
    with_positive = np.unique(data.qid[data.y > 0])
    if not np.isin(data.qid[data.y == 0], with_positive).any():
        raise ValueError(
            "no query has both a positive and a negative, so there is nothing to rank; "
            "check qid, or leave it out to rank all rows together"
        )
