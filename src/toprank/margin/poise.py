"""POISE: a linear (or embedded) score with the highest partial AUC (Rao & Acharyya 2020)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods

from toprank import metrics
from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.margin.base import LinearRanker, Solution, deduplicate_rows
from toprank.margin.matrices import fit_scaler, product, scale_rows
from toprank.margin.partial_batch import BatchOptions, choose_range, fit_range
from toprank.margin.partial_loss import SURROGATES, PartialLoss
from toprank.margin.pegasos import PegasosOptions, fit_stochastic
from toprank.margin.tree_path import TreePathEmbedding
from toprank.progress import progress
from toprank.ranking import descending_order
from toprank.sampling import sample_classes
from toprank.stopping import EarlyStopping, ValidationMetric, hold_out
from toprank.validation import Interval, StrOptions, check_range

__all__ = ["PartialAUCRanker", "content_folds"]

_ROWS_AT_A_TIME = 65_536
_PENALTIES = (1e-2, 1e-3, 1e-4, 1e-5)
_MOST_POSITIVES, _MOST_NEGATIVES, _RANGE_FOLDS = 3_000, 12_000, 3


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
        self._store(problem.solve(self.penalty_))
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _store(self, found: _Found) -> None:
        """Keep what was found; warn if the minimum was not reached."""
        solution = found.solution
        self.surrogate_range_ = found.fpr
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        self.gap_ = solution.relative_gap
        self.validation_scores_ = found.validation_scores
        if self.embedding_ is None:
            self._keep_linear(solution.coefficients, self.scaler_)
        else:
            self.coef_ = solution.coefficients
        if self.gap_ > 10 * self.tol and self.early_stopping_rounds is None:
            warnings.warn(
                f"the objective is still up to {100 * self.gap_:.2g}% above its minimum after "
                f"{self.n_iter_} evaluations; raise max_iter or penalty, or scale the columns",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _raw_scores(self, X: Any) -> np.ndarray:
        if self.embedding_ is None:
            return super()._raw_scores(X)
        parts = []
        for start in range(0, X.shape[0], _ROWS_AT_A_TIME):  # an embedding may be wide
            rows = scale_rows(self.scaler_, X[start : start + _ROWS_AT_A_TIME])
            embedded = self.embedding_.transform(rows)
            parts.append(np.asarray(product(embedded, self.coef_), dtype=np.float64).ravel())
        return np.concatenate(parts)

    def _embed_training(self, data: TrainingData, seed: int) -> Any:
        """Fit the embedding, if there is one; return the rows the linear score is learnt on."""
        self.embedding_ = None
        rows = scale_rows(self.scaler_, data.X)
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


# -- what is solved ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    """A solution, the range of negatives in its loss, and the metric after each round, if watched."""

    solution: Solution
    fpr: tuple[float, float]
    validation_scores: list[float]


class _Rounds:
    """What happens after each round of a solver: the progress bar, and early stopping."""

    def __init__(
        self,
        advance: Callable[..., None],
        stopping: EarlyStopping | None,
        evaluate: Callable[[np.ndarray], float],
    ) -> None:
        self.advance, self.stopping, self.evaluate = advance, stopping, evaluate
        self.best_coefficients = np.empty(0)

    def __call__(self, coefficients: np.ndarray) -> bool:
        """Note a round; return whether to stop."""
        if self.stopping is None:
            self.advance()
            return False
        value = self.evaluate(coefficients)
        stop = self.stopping.record(value)
        self.advance(metric=value)
        if self.stopping.best_round == len(self.stopping.history):
            self.best_coefficients = coefficients.copy()
        return stop


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
        self.metric = _validation_metric(ranker.eval_metric, fpr)

    def best_penalty(self) -> float:
        """Return the penalty whose solution does best on held-out rows."""
        kept, held_out = self._hold_out()
        values = [
            self._quality(self._minimise(penalty, kept, None, 0).solution.coefficients, held_out)
            for penalty in _PENALTIES
        ]
        best = np.argmax if self.metric.greater_is_better else np.argmin
        return _PENALTIES[int(best(values))]

    def solve(self, penalty: float) -> _Found:
        """Minimise on all rows, or on those that early stopping leaves."""
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
    ) -> _Found:
        """Minimise on some rows; with held-out rows, keep the round that is best there."""
        ranker = self.ranker
        fpr, start = self._range(penalty, part)
        rows = self.rows if len(part) == self.rows.shape[0] else self.rows[part]
        loss = self._loss(part, fpr)
        stopping = None
        if held_out is not None:
            stopping = EarlyStopping(ranker.early_stopping_rounds, self.metric.greater_is_better)
        total = ranker.n_epochs if ranker.solver == "pegasos" else None
        with progress(total, "partial AUC", enabled=verbose) as advance:
            rounds = _Rounds(advance, stopping, lambda w: self._quality(w, held_out))
            if ranker.solver == "pegasos":
                random = np.random.default_rng(self.seed)
                solution = fit_stochastic(rows, loss, self._pegasos(penalty), random, rounds)
            else:
                solution = fit_range(rows, loss, self._batch(penalty), start, rounds)
        if stopping is None or not stopping.history:
            return _Found(solution, fpr, [])
        w = rounds.best_coefficients
        objective = loss(product(rows, w))[0] + penalty * float(w @ w)
        best = Solution(w, objective, float("nan"), len(stopping.history))
        return _Found(best, fpr, stopping.history)

    def _batch(self, penalty: float) -> BatchOptions:
        return BatchOptions(2.0 * penalty, self.ranker.tol, self.ranker.max_iter)

    def _pegasos(self, penalty: float) -> PegasosOptions:
        ranker = self.ranker
        return PegasosOptions(2.0 * penalty, ranker.tol, ranker.n_epochs, ranker.relative_deviation)

    def _loss(self, part: np.ndarray, fpr: tuple[float, float]) -> PartialLoss:
        return PartialLoss(self.positive[part], self.weights[part], fpr, self.ranker.loss)

    def _quality(self, w: np.ndarray, part: Any) -> float:
        """Return the metric of scores with coefficients w on some rows."""
        weight = None if self.data.sample_weight is None else self.weights[part]
        return self.metric(self.positive[part], product(self.rows[part], w), weight)

    def _range(
        self, penalty: float, part: np.ndarray
    ) -> tuple[tuple[float, float], np.ndarray | None]:
        """Return the range to minimise over, and coefficients to start from if there are any."""
        chosen = self.ranker.surrogate_range
        given = None if isinstance(chosen, str) else check_range(chosen)
        if chosen == "exact" or self.fpr == (0.0, 1.0):
            return self.fpr, None
        if given is not None:
            return given, None
        sample = part[
            sample_classes(self.positive[part], _MOST_POSITIVES, _MOST_NEGATIVES, self.seed)
        ]
        rows, positive, weights = self.rows[sample], self.positive[sample], self.weights[sample]

        def measure(part: np.ndarray, scores: np.ndarray) -> float:
            return metrics.partial_auc(
                positive[part], scores, fpr=self.fpr, sample_weight=weights[part]
            )

        folds = content_folds(rows, positive, _RANGE_FOLDS, np.random.default_rng(self.seed))
        loss = self._loss(sample, self.fpr)
        return choose_range(rows, loss, self._batch(penalty), measure, folds)


def _validation_metric(metric: Any, fpr: tuple[float, float]) -> ValidationMetric:
    """Return the metric of held-out rows; a partial AUC is the one in `fpr`."""
    if metric is None or metric in ("partial_auc", metrics.partial_auc):
        return ValidationMetric.of("partial_auc", fpr=fpr)
    return ValidationMetric.of(metric)


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
