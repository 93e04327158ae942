"""Partial AUC: structural support vector machines, and POISE (Rao & Acharyya 2020)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import HasMethods

from toprank import metrics
from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.margin.base import NOTHING_TO_COMPARE, LinearRanker, Solution, deduplicate_rows
from toprank.margin.matrices import fit_scaler, product, scale_rows
from toprank.margin.partial_batch import BatchOptions, choose_range, fit_range
from toprank.margin.partial_loss import SURROGATES, PartialLoss
from toprank.margin.pegasos import fit_stochastic
from toprank.margin.tree_path import TreePathEmbedding
from toprank.progress import progress
from toprank.ranking import descending_order
from toprank.sampling import sample_classes
from toprank.stopping import EarlyStopping, ValidationMetric, hold_out
from toprank.validation import Interval, StrOptions, check_range

__all__ = ["PartialAUCRanker", "PartialAUCSVM"]

_ROWS_AT_A_TIME = 65_536
_PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5)
_MOST_POSITIVES, _MOST_NEGATIVES, _RANGE_FOLDS = 3_000, 12_000, 3


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
        positive = data.y > 0
        if (
            data.qid is not None
            and not np.intersect1d(data.qid[positive], data.qid[~positive]).size
        ):
            raise ValueError(NOTHING_TO_COMPARE)
        scaler = fit_scaler(data.X, data.sample_weight, enabled=self.scale)
        rows = scale_rows(scaler, data.X)
        options = BatchOptions(1.0 / self.C, self.tol, self.max_iter, direct=False)
        # over the whole range the two losses are the same, and the hinge is quicker
        structural = not self.tight and fpr != (0.0, 1.0)
        loss = PartialLoss(positive, data.weights, fpr, "hinge", structural, data.qid)
        start = None
        if self.tight and fpr[0] > 0.0:
            start = fit_range(rows, replace(loss, structural=True), options).coefficients
        found = fit_range(rows, loss, options, start)
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.relative_gap, found.n_iter
        self._keep_linear(found.coefficients, scaler)
        _warn_of_gap(self.gap_, self.tol, f"{self.n_iter_} orderings; raise max_iter, or lower C")
        if self.gap_ <= 10 * self.tol and not self.coef_.any():
            warnings.warn(
                "no linear score has a smaller loss than equal scores: the classes overlap too much "
                f"between the false positive rates {fpr[0]:g} and {fpr[1]:g}, and all rows score the "
                "same; widen fpr, or use PartialAUCRanker, which finds a range that works",
                stacklevel=2,
            )
        self._set_threshold(self._raw_scores(data.X), data)
        return self


def _warn_of_gap(gap: float, tol: float, after: str) -> None:
    """Warn if an objective is not near its minimum."""
    if gap > 10 * tol:
        message = f"the objective is still up to {100 * gap:.2g}% above its minimum after {after}"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


@fill_docstring
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
    %(scale)s
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
        Metric on the held-out rows: a name in `toprank.metrics` or f(y, scores), the greater the
        better unless it is a metric of the library that says otherwise; None is the partial AUC in
        `fpr`.
    %(verbose)s
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
    %(classes)s

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LinearRanker._parameter_constraints,
        "solver": [StrOptions({"batch", "pegasos"})],
        "loss": [StrOptions(set(SURROGATES))],
        "penalty": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "surrogate_range": [StrOptions({"auto", "exact"}), "array-like"],
        "embedding": [StrOptions({"tree_path"}), HasMethods(["fit_transform", "transform"]), None],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "relative_deviation": [Interval(Real, 0, None, closed="neither")],
        "eval_metric": [str, callable, None],
    }

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

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PartialAUCRanker:
        """Learn the coefficients.

        Parameters
        ----------
        %(sparse_X)s
        %(y)s
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent (exactly so for "batch"; "pegasos"
            draws rows in proportion). Not with `embedding="tree_path"`, which makes synthetic rows.

        Returns
        -------
        self : PartialAUCRanker
        """
        fpr = check_range(self.fpr)
        data = self._check_training(X, y, sample_weight)
        if self.embedding is None:
            data = deduplicate_rows(data)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        self.scaler_ = fit_scaler(data.X, data.sample_weight, enabled=self.scale)
        problem = _Problem(self, fpr, self._embed_training(data, seed), data, seed)
        self.penalty_ = problem.best_penalty() if self.penalty == "auto" else float(self.penalty)
        solution, self.surrogate_range_, self.validation_scores_ = problem.solve(self.penalty_)
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        self.gap_ = solution.relative_gap
        if self.embedding_ is None:
            self._keep_linear(solution.coefficients, self.scaler_)
        else:
            self.coef_ = solution.coefficients
        if self.early_stopping_rounds is None:
            advice = "evaluations; raise max_iter or penalty, or scale the columns"
            _warn_of_gap(self.gap_, self.tol, f"{self.n_iter_} {advice}")
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        if self.embedding_ is None:
            return super()._raw_scores(X)
        parts = []
        for block in gen_batches(X.shape[0], _ROWS_AT_A_TIME):  # an embedding may be wide
            embedded = self.embedding_.transform(scale_rows(self.scaler_, X[block]))
            parts.append(np.asarray(product(embedded, self.coef_), dtype=np.float64).ravel())
        return np.concatenate(parts)

    def _embed_training(self, data: TrainingData, seed: int) -> Any:
        """Fit the embedding, if there is one; return the rows the linear score is learnt on."""
        self.embedding_ = None
        rows = scale_rows(self.scaler_, data.X)
        if self.embedding is None:
            return rows
        default = TreePathEmbedding(scale=False, random_state=seed)
        embedding = default if isinstance(self.embedding, str) else clone(self.embedding)
        if isinstance(embedding, TreePathEmbedding) and data.sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be used with the tree-path embedding, since it makes "
                "synthetic rows; repeat the rows instead, or use embedding=None"
            )
        self.embedding_ = embedding
        return embedding.fit_transform(rows, data.y.astype(np.int64))


# -- what is solved ----------------------------------------------------------------------------------


class _Problem:
    """The rows to learn from, and the ways a ranker's parameters ask to learn from them."""

    def __init__(
        self,
        ranker: PartialAUCRanker,
        fpr: tuple[float, float],
        rows: Any,
        data: TrainingData,
        seed: int,
    ) -> None:
        self.ranker, self.fpr, self.rows, self.data, self.seed = ranker, fpr, rows, data, seed
        self.positive, self.weights = data.y > 0, data.weights
        metric = ranker.eval_metric
        if metric is None or metric in ("partial_auc", metrics.partial_auc):
            self.metric = ValidationMetric.of("partial_auc", fpr=fpr)
        else:
            self.metric = ValidationMetric.of(metric)

    def best_penalty(self) -> float:
        """Return the penalty whose solution does best on held-out rows."""
        kept, held_out = self._hold_out()
        values = [
            self._quality(self._minimise(penalty, kept, None, 0)[0].coefficients, held_out)
            for penalty in _PENALTIES
        ]
        best = np.argmax if self.metric.greater_is_better else np.argmin
        return _PENALTIES[int(best(values))]

    def solve(self, penalty: float) -> tuple[Solution, tuple[float, float], list[float]]:
        """Minimise on all rows, or on those that early stopping leaves.

        Returns the solution, the range of negatives in its loss, and the metric after each round.
        """
        part, held_out = np.arange(len(self.positive)), None
        if self.ranker.early_stopping_rounds is not None:
            part, held_out = self._hold_out()
        return self._minimise(penalty, part, held_out, self.ranker.verbose)

    def _hold_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the rows to learn from and of those held out."""
        mask = hold_out(self.positive, self.ranker.validation_fraction, self.seed)
        return np.flatnonzero(~mask), np.flatnonzero(mask)

    def _minimise(
        self, penalty: float, part: np.ndarray, held_out: np.ndarray | None, verbose: int
    ) -> tuple[Solution, tuple[float, float], list[float]]:
        """Minimise on some rows; with held-out rows, keep the round that is best there."""
        ranker, strength = self.ranker, 2.0 * penalty
        options = BatchOptions(strength, ranker.tol, ranker.max_iter)
        fpr, start = self._range(options, part)
        rows = self.rows if len(part) == self.rows.shape[0] else self.rows[part]
        loss = PartialLoss(self.positive[part], self.weights[part], fpr, ranker.loss)
        patience = None if held_out is None else ranker.early_stopping_rounds
        stopping = EarlyStopping(patience, self.metric.greater_is_better)
        best = np.empty(0)
        stochastic = ranker.solver == "pegasos"
        total = ranker.n_epochs if stochastic else None
        with progress(total, "partial AUC", enabled=verbose) as advance:

            def after_round(w: np.ndarray) -> bool:
                nonlocal best
                if held_out is None:
                    advance()
                    return False
                value = self._quality(w, held_out)
                stop = stopping.record(value)
                advance(metric=value)
                best = w.copy() if stopping.best_round == len(stopping.history) else best
                return stop

            if stochastic:
                solution = fit_stochastic(
                    rows, loss, strength, np.random.default_rng(self.seed), tol=ranker.tol,
                    n_epochs=ranker.n_epochs, relative_deviation=ranker.relative_deviation,
                    callback=after_round,
                )  # fmt: skip
            else:
                solution = fit_range(rows, loss, options, start, after_round)
        if stopping.history:
            objective = loss(product(rows, best))[0] + penalty * float(best @ best)
            solution = Solution(best, objective, float("nan"), len(stopping.history))
        return solution, fpr, stopping.history

    def _quality(self, w: np.ndarray, part: Any) -> float:
        """Return the metric of scores with coefficients w on some rows."""
        weight = None if self.data.sample_weight is None else self.weights[part]
        return self.metric(self.positive[part], product(self.rows[part], w), weight)

    def _range(
        self, options: BatchOptions, part: np.ndarray
    ) -> tuple[tuple[float, float], np.ndarray | None]:
        """Return the range to minimise over, and coefficients to start from if there are any."""
        chosen = self.ranker.surrogate_range
        given = self.fpr if isinstance(chosen, str) else check_range(chosen)
        if chosen != "auto" or self.fpr == (0.0, 1.0):
            return given, None
        drawn = sample_classes(self.positive[part], _MOST_POSITIVES, _MOST_NEGATIVES, self.seed)
        part = part[drawn]
        rows, positive, weights = self.rows[part], self.positive[part], self.weights[part]

        def measure(some: np.ndarray, scores: np.ndarray) -> float:
            weight = weights[some]
            return metrics.partial_auc(positive[some], scores, fpr=self.fpr, sample_weight=weight)

        folds = content_folds(rows, positive, _RANGE_FOLDS, np.random.default_rng(self.seed))
        loss = PartialLoss(positive, weights, self.fpr, self.ranker.loss)
        return choose_range(rows, loss, options, measure, folds)


def content_folds(
    X: Any, positive: np.ndarray, n_folds: int, random: np.random.Generator
) -> np.ndarray:
    """Return folds with equal shares of both classes in which equal rows lie in the same fold.

    Rows of a class are put in the order of a random projection and dealt out in turns, so that a
    row of weight 2 and the same row twice get the same folds, and the order of the rows does not
    matter. With fewer distinct rows than folds there are fewer folds.
    """
    projection = product(X, random.standard_normal(X.shape[1]))
    unit = 1e-9 * max(float(np.abs(projection).max(initial=0.0)), 1e-300)
    group = np.empty(len(positive), dtype=np.int64)
    n_groups = []
    for label in (True, False):
        rows = np.flatnonzero(positive == label)
        rows = rows[descending_order(projection[rows])]
        new = np.diff(projection[rows], prepend=np.inf) < -unit
        group[rows] = np.cumsum(new) - 1
        n_groups.append(int(new.sum()))
    return group % max(1, min(n_folds, *n_groups))
