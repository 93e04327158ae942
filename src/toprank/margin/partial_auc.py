"""Linear scores that maximise the partial AUC: the structural SVM, and POISE.

The structural SVM of Narasimhan & Agarwal (2013). Where the classes overlap, the convex loss of a narrow
range has its minimum at w = 0: whenever a mean of the hardest negatives equals the mean of the positives, a
mixture of orderings has the largest loss and no gradient. The cutting planes then certify that no score
does better than equal scores. The tight loss has no such trap, but its descent does not leave w = 0 either,
so it starts from the solution for the whole AUC as well.

POISE (Rao & Acharyya 2020) learns a linear score of the columns, or of paths through a tree.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils._param_validation import HasMethods

from toprank import metrics
from toprank.base import TrainingData
from toprank.docstrings import fill_docstring
from toprank.margin.base import (
    NOTHING_TO_COMPARE,
    LinearRanker,
    Solution,
    deduplicate_rows,
    scaler_of,
    warn_of_gap,
)
from toprank.margin.matrices import fit_threads, product, scale_rows, to_dense
from toprank.margin.partial_loss import SURROGATES, PartialLoss
from toprank.margin.partial_solvers import (
    BatchOptions,
    candidate_ranges,
    choose_range,
    fit_range,
    fit_stochastic,
)
from toprank.margin.tree_path import TreePathEmbedding
from toprank.progress import progress
from toprank.ranking import descending_order
from toprank.sampling import sample_classes
from toprank.stopping import EarlyStopping, ValidationMetric, hold_out
from toprank.validation import Interval, StrOptions, check_range

__all__ = ["POISE", "PartialAUCRanker", "PartialAUCSVM"]

_WHOLE = (0.0, 1.0)
_NO_SPREAD = 1e-2  # standard deviation of scores, of the margin 1, below which they are equal
_ROWS_AT_A_TIME = 65_536
_SMALL = 1 << 18  # cells up to which an embedding is worked on as a dense matrix
_PENALTIES = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
_MOST_POSITIVES, _MOST_NEGATIVES = 3_000, 12_000
_MANY, _FOLDS_OF_MANY, _FOLDS_OF_FEW = 100, 3, 5  # folds by the number of the rarer class


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

    With `fpr=(0, 1)` this is Joachims' (2005) SVM for the AUC. Where the classes overlap, so that some
    mean of the hardest negatives equals the mean of the positives, this loss of a narrow range is
    smallest for equal scores, whatever C is; `degenerate` says what happens then.

    Parameters
    ----------
    fpr : tuple (a, b), default=(0, 1)
        Range of false positive rates, 0 <= a < b <= 1. The default is the whole AUC.
    tight : bool, default=False
        Use the hinge loss on the negatives that rank in the range itself, a smaller bound of the
        partial AUC loss. For a > 0 it is a difference of convex functions, minimised by the
        concave-convex procedure from the solution of the convex problem and from that for the whole
        AUC; the lower of the two is kept.
    C : float, default=10.0
        Factor of the loss, which is a mean over pairs: it means the same for any number of rows.
    degenerate : {"fallback", "warn"}, default="fallback"
        Where equal scores have the smallest loss: take the solution of the tight loss or that for the
        whole AUC, whichever has the greater partial AUC in `fpr` on the training rows; or keep the
        equal scores. Both come with a warning.
    %(scale)s
    tol : float, default=1e-3
        Gap between the objective and its certified bound, relative to the objective (to .01 if that is
        more).
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
    solution_ : {"structural", "tight", "auc"}
        The loss that the coefficients minimise; `objective_` and `gap_` are of this one.
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
        "degenerate": [StrOptions({"fallback", "warn"})],
    }

    def __init__(
        self,
        fpr: tuple[float, float] = (0.0, 1.0),
        *,
        tight: bool = False,
        C: float = 10.0,
        degenerate: str = "fallback",
        scale: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
    ) -> None:
        self.fpr = fpr
        self.tight = tight
        self.C = C
        self.degenerate = degenerate
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
        %(pair_weight)s
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
        scaler = scaler_of(self, data)
        problem = _StructuralProblem(
            scale_rows(scaler, data.X),
            PartialLoss(positive, data.weights, fpr, "hinge", False, data.qid),
            BatchOptions(1.0 / self.C, self.tol, self.max_iter, direct=False),
        )
        # over the whole range all losses are the same, and the hinge is quicker
        self.solution_ = "auc" if fpr == _WHOLE else "tight" if self.tight else "structural"
        with fit_threads(1):
            found = problem.solve(self.solution_)
            if problem.is_degenerate(found):
                found = self._without_a_score(problem, found)
        self.objective_, self.gap_, self.n_iter_ = found.objective, found.relative_gap, found.n_iter
        self._keep_linear(found.coefficients, scaler)
        warn_of_gap(self.gap_, self.tol, f"{self.n_iter_} orderings; raise max_iter, or lower C")
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _without_a_score(self, problem: _StructuralProblem, found: Solution) -> Solution:
        """Say that equal scores have the smallest loss; return what is kept in their place."""
        low, high = problem.loss.fpr
        others = {"structural": ("tight", "auc"), "tight": ("auc",), "auc": ()}[self.solution_]
        certain = found.relative_gap <= 10 * self.tol
        advice = "all rows score the same; widen fpr, or use PartialAUCRanker"
        if self.degenerate == "fallback" and others:
            solved = {name: problem.solve(name) for name in others}
            self.solution_ = max(others, key=lambda name: problem.quality(solved[name]))
            found = solved[self.solution_]
            kept = {"tight": "the tight loss", "auc": "the whole AUC"}[self.solution_]
            advice = f"the solution for {kept} is kept instead (degenerate='fallback')"
        warnings.warn(
            f"no linear score {'has' if certain else 'was found that has'} a smaller loss than equal "
            f"scores: the classes overlap too much between the false positive rates {low:g} and "
            f"{high:g}; {advice}",
            stacklevel=3,
        )
        return found


class _StructuralProblem:
    """Scaled rows, the tight loss on them, and the three losses that can be minimised."""

    def __init__(self, rows: Any, loss: PartialLoss, options: BatchOptions) -> None:
        self.rows, self.loss, self.options = rows, loss, options

    def solve(self, name: str) -> Solution:
        """Minimise the "structural" or the "tight" loss, or that of the whole "auc"."""
        if name == "auc":
            return fit_range(self.rows, self.loss.over(_WHOLE), self.options)
        if name == "structural":
            return fit_range(self.rows, replace(self.loss, structural=True), self.options)
        if self.loss.fpr[0] == 0.0:  # convex: any start will do
            return fit_range(self.rows, self.loss, self.options)
        starts = [self.solve(other).coefficients for other in ("structural", "auc")]
        found = [fit_range(self.rows, self.loss, self.options, start) for start in starts]
        return min(found, key=lambda solution: solution.objective)

    def is_degenerate(self, found: Solution) -> bool:
        """Whether equal scores are as good as what was found.

        A small C makes all scores nearly equal too, in proportion to C: that is no degeneracy.
        """
        spread = float(np.std(product(self.rows, found.coefficients)))
        as_good = found.objective >= (1.0 - self.options.tol) * self.loss.at_zero
        return as_good and spread <= _NO_SPREAD * min(1.0, 1.0 / self.options.strength)

    def quality(self, found: Solution) -> float:
        """Return the partial AUC on the training rows, the mean over queries if there are any."""
        scores, loss = product(self.rows, found.coefficients), self.loss
        query = np.zeros(len(scores), np.int64) if loss.qid is None else loss.qid
        values = []
        for rows in (np.flatnonzero(query == one) for one in np.unique(query)):
            if 0 < np.count_nonzero(loss.positive[rows]) < len(rows):
                weight = loss.weight[rows]
                values.append(
                    metrics.partial_auc(
                        loss.positive[rows], scores[rows], fpr=loss.fpr, sample_weight=weight
                    )
                )
        return float(np.mean(values))


# -- POISE -------------------------------------------------------------------------------------------


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
    solver : {"batch", "pegasos", "algorithm_1"}, default="batch"
        "batch" computes exact gradients in the time of a sort; L-BFGS and cutting planes then reach
        the optimum with a certificate. "pegasos" takes stochastic steps, with the quantiles of the
        negatives estimated from a small sample: one pass costs little memory and time. "algorithm_1"
        is the paper's to the letter (see `POISE`).
    loss : {"hinge", "logistic", "exponential"}, default="hinge"
        Loss of a pair as a function of its margin.
    penalty : float or "auto", default="auto"
        The factor c. "auto" takes the one that does best on held-out folds of at most 15,000 training
        rows: of 1e-2 to 1e-4, and with fewer rows of the rarer class of values up to 1.
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
        when three of them lower the objective by less than this share; "algorithm_1" makes them all.
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
        Share of the rows of each class held out for early stopping.
    eval_metric : str, callable or None, default=None
        Metric on held-out rows and folds: a name in `toprank.metrics` or f(y, scores), the greater the
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
        "solver": [StrOptions({"batch", "pegasos", "algorithm_1"})],
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
        penalty: float | str = "auto",
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
        self.scaler_ = scaler_of(self, data)
        with fit_threads(1):  # those of BLAS cost many times what they give on small products
            problem = _Problem(self, fpr, self._embed_training(data, seed), data, seed)
            found = problem.solve()
        solution, self.surrogate_range_, self.penalty_, self.validation_scores_ = found
        self.objective_, self.n_iter_ = solution.objective, solution.n_iter
        self.gap_ = solution.relative_gap
        if self.embedding_ is None:
            self._keep_linear(solution.coefficients, self.scaler_)
        else:
            self.coef_ = solution.coefficients
        if self.early_stopping_rounds is None:
            advice = "evaluations; raise max_iter or penalty, or scale the columns"
            warn_of_gap(self.gap_, self.tol, f"{self.n_iter_} {advice}")
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
        embedded = embedding.fit_transform(rows, data.y.astype(np.int64))
        # quicker without the zeros' indices
        small = embedded.shape[0] * embedded.shape[1] <= _SMALL
        return to_dense(embedded) if small else embedded


def POISE(
    fpr: tuple[float, float] = (0.0, 0.1),
    *,
    penalty: float = 1e-3,
    n_epochs: int = 10,
    max_depth: int | None = 10,
    random_state: Any = None,
    **parameters: Any,
) -> PartialAUCRanker:
    """The method of Rao & Acharyya (2020) as printed, to set beside `PartialAUCRanker`.

    Their Algorithm 1: coefficients drawn from U(-1, 1); each negative that scores in the range, by a fixed
    sample of the negatives that is scored anew, takes a step of length 1/(2 c t) (Pegasos) against all
    positives; the last coefficients are kept. The loss is over `fpr` itself, and the paths are those of
    a single tree grown on all rows, by which the training rows are embedded too. The penalty c, the number
    of passes and the depth are not printed. Active pairs are those within the margin
    (the printed sign is the other one, with which steps would stop where they are needed).

    Parameters
    ----------
    fpr, penalty, n_epochs, random_state
        As in `PartialAUCRanker`.
    max_depth : int or None, default=10
        Most edges on a path of the tree.
    **parameters
        Others of `PartialAUCRanker`.

    Returns
    -------
    PartialAUCRanker

    Examples
    --------
    >>> from toprank import POISE
    >>> POISE().surrogate_range
    'exact'
    """
    tree = TreePathEmbedding(
        n_folds=None, max_depth=max_depth, scale=False, random_state=random_state
    )
    settings = {
        "solver": "algorithm_1",
        "surrogate_range": "exact",
        "embedding": tree,
        **parameters,
    }
    return PartialAUCRanker(
        fpr, penalty=penalty, n_epochs=n_epochs, random_state=random_state, **settings
    )


# -- what is solved ----------------------------------------------------------------------------------


class _Fit(NamedTuple):
    """A solution, with the range and the penalty of its loss and the metric after each round."""

    solution: Solution
    fpr: tuple[float, float]
    penalty: float
    history: list[float]


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

    def solve(self) -> _Fit:
        """Minimise on all rows, or on those that early stopping leaves."""
        part, held_out = np.arange(len(self.positive)), None
        if self.ranker.early_stopping_rounds is not None:
            part, held_out = self._hold_out()
        return self._minimise(part, held_out)

    def _hold_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the rows to learn from and of those held out."""
        mask = hold_out(self.positive, self.ranker.validation_fraction, self.seed)
        return np.flatnonzero(~mask), np.flatnonzero(mask)

    def _minimise(self, part: np.ndarray, held_out: np.ndarray | None) -> _Fit:
        """Minimise on some rows; with held-out rows, keep the round that is best there."""
        ranker = self.ranker
        fpr, penalty, start = self._settings(part)
        strength = 2.0 * penalty
        options = BatchOptions(strength, ranker.tol, ranker.max_iter)
        rows = self.rows if len(part) == self.rows.shape[0] else self.rows[part]
        loss = PartialLoss(self.positive[part], self.weights[part], fpr, ranker.loss)
        patience = None if held_out is None else ranker.early_stopping_rounds
        stopping = EarlyStopping(patience, self.metric.greater_is_better)
        best = np.empty(0)
        stochastic = ranker.solver != "batch"
        total = ranker.n_epochs if stochastic else None
        with progress(total, "partial AUC", enabled=ranker.verbose) as advance:

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
                    literal=ranker.solver == "algorithm_1", callback=after_round,
                )  # fmt: skip
            else:
                solution = fit_range(rows, loss, options, start, after_round)
        if stopping.history:
            objective = loss(product(rows, best))[0] + penalty * float(best @ best)
            solution = Solution(best, objective, float("nan"), len(stopping.history))
        return _Fit(solution, fpr, penalty, stopping.history)

    def _quality(self, w: np.ndarray, part: Any) -> float:
        """Return the metric of scores with coefficients w on some rows."""
        weight = None if self.data.sample_weight is None else self.weights[part]
        return self.metric(self.positive[part], product(self.rows[part], w), weight)

    def _settings(self, part: np.ndarray) -> tuple[tuple[float, float], float, np.ndarray | None]:
        """Return range and penalty, those left to the data by folds, and coefficients to start from."""
        ranker, chosen = self.ranker, self.ranker.surrogate_range
        given = self.fpr if isinstance(chosen, str) else check_range(chosen)
        by_data = chosen == "auto" and self.fpr != (0.0, 1.0)
        if not by_data and ranker.penalty != "auto":
            return given, float(ranker.penalty), None
        drawn = sample_classes(self.positive[part], _MOST_POSITIVES, _MOST_NEGATIVES, self.seed)
        part = part[drawn]
        rows, positive, weights = self.rows[part], self.positive[part], self.weights[part]
        auto = isinstance(ranker.penalty, str)
        penalties = penalties_to_try(self._rarer(part)) if auto else [ranker.penalty]
        sign = 1.0 if self.metric.greater_is_better else -1.0

        def measure(some: np.ndarray, scores: np.ndarray) -> float:
            weight = None if self.data.sample_weight is None else weights[some]
            return sign * self.metric(positive[some], scores, weight)

        n_folds = _FOLDS_OF_MANY if self._rarer(part) >= _MANY else _FOLDS_OF_FEW
        folds = content_folds(rows, positive, n_folds, np.random.default_rng(self.seed))
        loss = PartialLoss(positive, weights, given, ranker.loss)
        options = BatchOptions(1.0, ranker.tol, ranker.max_iter)
        ranges = candidate_ranges(given) if by_data else [given]
        strengths = [2.0 * float(penalty) for penalty in penalties]
        fpr, strength, start = choose_range(rows, loss, options, ranges, strengths, measure, folds)
        return fpr, 0.5 * strength, start

    def _rarer(self, part: np.ndarray) -> float:
        """Return the weight of the rarer class among some rows."""
        weight, positive = self.weights[part], self.positive[part]
        return float(min(weight[positive].sum(), weight[~positive].sum()))


def penalties_to_try(n_rare: float) -> list[float]:
    """Return the penalties among which folds choose, the strongest first: more of them for few rows.

    Examples
    --------
    >>> penalties_to_try(20), penalties_to_try(5_000)
    ([1.0, 0.1, 0.01, 0.001], [0.01, 0.001, 0.0001])
    """
    strongest = 1.0 if n_rare < 100 else 0.1 if n_rare < 1000 else 0.01
    weakest = 1e-3 if n_rare < 1000 else 1e-4
    return [c for c in _PENALTIES if weakest <= c <= strongest]


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
