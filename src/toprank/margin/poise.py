"""POISE: a linear (or embedded) score with the highest partial AUC."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from toprank.base import TrainingData
from toprank.margin._linear import LinearRanker
from toprank.margin._matrix import product
from toprank.margin.copies import merge_copies
from toprank.margin.partial_loss import SURROGATES, check_range
from toprank.margin.poise_problem import Problem
from toprank.margin.scaling import Scaling
from toprank.margin.tree_path import TreePathEmbedding

__all__ = ["PartialAUCRanker"]

_SOLVERS = ("batch", "pegasos")
_ROWS_AT_A_TIME = 65_536


class PartialAUCRanker(LinearRanker):
    r"""Maximise the area under the ROC curve over a range of false positive rates (POISE).

    Learns the linear score that minimises

    .. math:: \frac{1}{P (b-a) N} \sum_{i} \sum_{j} \ell(f_i - f_j) + c |w|^2

    over positives i and the negatives j that rank between a N and b N, the opponent's best choice
    in the game of Rao & Acharyya (2020). For a = 0 the problem is convex. With `fpr=(0, 1)` it is
    the linear AUC maximiser; with `embedding="tree_path"` it is the full method of the paper.

    Parameters
    ----------
    fpr : tuple (a, b), default=(0, 0.1)
        Range of false positive rates, 0 <= a < b <= 1.
    solver : {"batch", "pegasos"}, default="batch"
        "batch" computes exact gradients in the time of a sort; L-BFGS and cutting planes then reach
        the optimum with a certificate. "pegasos" takes stochastic steps, with the quantiles of the
        negatives estimated from a small sample: one pass costs little memory and time.
    loss : {"hinge", "logistic", "exponential"}, default="hinge"
        Loss of a pair as a function of its margin.
    penalty : float or "auto", default=1e-3
        The factor c. "auto" takes the best of 1e-2, 1e-3, 1e-4 and 1e-5 on held-out rows.
    surrogate_range : {"auto", "exact"} or tuple (a, b), default="auto"
        Range of negatives in the loss. Where classes overlap, the convex loss of a narrow range is
        smallest for equal scores and useless; "auto" tries ranges from (0, 1) down to `fpr` on at
        most 15,000 of the training rows and takes the one whose solutions have the best partial
        AUC in `fpr` on held-out folds. "exact" takes `fpr` itself.
    embedding : None, "tree_path" or transformer, default=None
        What maps the (scaled) columns to those of the linear score; "tree_path" stands for
        `TreePathEmbedding()`. Training rows go through its `fit_transform`.
    scale : bool, default=True
        Divide each column by its standard deviation (and centre it, if the data is dense) first.
    tol : float, default=1e-3
        "batch": relative gap between the objective and its certified bound. "pegasos": passes end
        when three of them lower the objective by less than this share.
    max_iter : int, default=500
        Most evaluations of the loss ("batch").
    n_epochs : int, default=50
        Most passes over the negatives ("pegasos").
    relative_deviation : float, default=0.1
        Standard deviation of the estimated rate of a quantile, as a share of it ("pegasos").
    early_stopping_rounds : int or None, default=None
        Stop when the metric on held-out rows has not improved for so many rounds (steps of "batch",
        passes of "pegasos"), and keep the best round.
    validation_fraction : float, default=0.1
        Share of the rows of each class held out for early stopping and for `penalty="auto"`.
    eval_metric : str, callable or None, default=None
        Metric on the held-out rows: a name in `toprank.metrics` or f(y, scores); None is the partial
        AUC in `fpr`.
    verbose : int, default=0
        Show a progress bar.
    random_state : int, RandomState or None, default=None
        For held-out rows, large data (`surrogate_range="auto"`), "pegasos" and "tree_path".

    Attributes
    ----------
    coef_ : ndarray
        Coefficients: on the columns as given, or on those of the embedding if there is one.
    surrogate_range_ : tuple (a, b)
        Range of negatives in the loss.
    penalty_ : float
        The factor c.
    objective_ : float
        Loss plus penalty on the training rows.
    gap_ : float
        Certified bound on what is left to gain, as a share of the objective; NaN for "pegasos".
    n_iter_ : int
        Evaluations of the loss, or passes.
    validation_scores_ : list of float
        Metric on the held-out rows after each round, with early stopping.
    embedding_ : transformer or None
        The fitted embedding.
    classes_ : ndarray of shape (2,)
        The labels; the second is the positive one.
    offset_ : float
        The threshold that was subtracted from the scores.

    References
    ----------
    N. Rao & S. Acharyya (2020). Handling class imbalance with POISE: pAUC optimization in
    supervised experiments.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import PartialAUCRanker
    >>> from toprank.metrics import partial_auc
    >>> X, y = make_classification(1000, weights=[0.9], flip_y=0.02, random_state=3)
    >>> model = PartialAUCRanker(fpr=(0, 0.1)).fit(X, y)
    >>> partial_auc(y, model.decision_function(X), fpr=(0, 0.1)) > 0.7
    True
    """

    def __init__(
        self,
        fpr: tuple[float, float] = (0.0, 0.1),
        *,
        solver: str = "batch",
        loss: str = "hinge",
        penalty: float | str = 1e-3,
        surrogate_range: str | tuple[float, float] = "auto",
        embedding: Any = None,
        scale: bool = True,
        tol: float = 1e-3,
        max_iter: int = 500,
        n_epochs: int = 50,
        relative_deviation: float = 0.1,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.1,
        eval_metric: Any = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.fpr = fpr
        self.solver = solver
        self.loss = loss
        self.penalty = penalty
        self.surrogate_range = surrogate_range
        self.embedding = embedding
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.n_epochs = n_epochs
        self.relative_deviation = relative_deviation
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PartialAUCRanker:
        """Learn the coefficients.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_columns)
        y : array of shape (n_rows,)
            Two labels; the greater one is the positive class.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent (exactly so for "batch"; "pegasos"
            draws rows in proportion). Not with `embedding="tree_path"`, which makes synthetic rows.

        Returns
        -------
        self : PartialAUCRanker
        """
        self._check_parameters()
        data = self._check_training(X, y, sample_weight)
        if self.embedding is None:
            data = merge_copies(data)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.scaling_ = Scaling.of(data.X, data.sample_weight, enabled=self.scale)
        self._learn(Problem(self, self._embed_training(data, seed), data, seed))
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _learn(self, problem: Problem) -> None:
        """Choose what is to be chosen, minimise, and keep the result."""
        self.penalty_ = problem.best_penalty() if self.penalty == "auto" else float(self.penalty)
        solved = problem.solve(self.penalty_)
        self.surrogate_range_ = solved.fpr
        self.objective_, self.gap_, self.n_iter_ = solved.objective, solved.gap, solved.n_iter
        self.validation_scores_ = solved.validation_scores
        if self.embedding_ is None:
            self._keep_linear(solved.w, self.scaling_)
        else:
            self.coef_ = solved.w
        if solved.gap > 10 * self.tol and self.early_stopping_rounds is None:
            warnings.warn(
                f"the objective is still up to {100 * solved.gap:.2g}% above its minimum after "
                f"{solved.n_iter} evaluations; raise max_iter or penalty, or scale the columns",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _raw_scores(self, X: Any) -> np.ndarray:
        if self.embedding_ is None:
            return super()._raw_scores(X)
        parts = []
        for start in range(0, X.shape[0], _ROWS_AT_A_TIME):  # an embedding may be wide
            rows = self.scaling_.apply(X[start : start + _ROWS_AT_A_TIME])
            embedded = self.embedding_.transform(rows)
            parts.append(np.asarray(product(embedded, self.coef_), dtype=np.float64).ravel())
        return np.concatenate(parts)

    def _embed_training(self, data: TrainingData, seed: int) -> Any:
        """Fit the embedding, if there is one; return the rows the linear score is learnt on."""
        self.embedding_ = None
        rows = self.scaling_.apply(data.X)
        if self.embedding is None:
            return rows
        if isinstance(self.embedding, str):
            embedding: Any = TreePathEmbedding(scale=False, random_state=seed)
        else:
            embedding = clone(self.embedding)
        if isinstance(embedding, TreePathEmbedding) and data.sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be used with the tree-path embedding, since it makes "
                "synthetic rows; repeat the rows instead, or use embedding=None"
            )
        self.embedding_ = embedding
        return embedding.fit_transform(rows, data.y.astype(np.int64))

    def _check_parameters(self) -> None:
        check_range(self.fpr)
        if self.solver not in _SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(_SOLVERS)}; got {self.solver!r}")
        if self.loss not in SURROGATES:
            raise ValueError(f"loss must be one of {', '.join(SURROGATES)}; got {self.loss!r}")
        if isinstance(self.embedding, str) and self.embedding != "tree_path":
            raise ValueError(
                f"embedding must be None, 'tree_path' or a transformer; got {self.embedding!r}"
            )
        if isinstance(self.surrogate_range, str):
            if self.surrogate_range not in ("auto", "exact"):
                raise ValueError(
                    "surrogate_range must be 'auto', 'exact' or a pair (a, b); "
                    f"got {self.surrogate_range!r}"
                )
        else:
            check_range(self.surrogate_range)
        if self.penalty != "auto" and (isinstance(self.penalty, str) or not self.penalty > 0):
            raise ValueError(f"penalty must be a number above 0 or 'auto'; got {self.penalty!r}")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must lie between 0 and 1; got {self.validation_fraction!r}"
            )
        if self.early_stopping_rounds is not None and self.early_stopping_rounds < 1:
            raise ValueError(
                f"early_stopping_rounds must be at least 1; got {self.early_stopping_rounds!r}"
            )
