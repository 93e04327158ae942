"""GradientBoostingRanker: any objective, on XGBoost's histogram trees; and the published methods by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData
from toprank.boosting.base import BoostedTreesRanker
from toprank.boosting.settings import AUTO, ENOUGH_POSITIVES, Callback, Settings
from toprank.boosting.xgboost_helpers import GROWTH, predict_margin, require_xgboost
from toprank.columns import Columns
from toprank.docstrings import fill_docstring
from toprank.folds import Split, SplitKeys, make_splits
from toprank.formatting import join_names
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions

# What a fit needs is imported by it: Numba and the objectives are no use to a loaded model.
if TYPE_CHECKING:
    from toprank import objectives
    from toprank.boosting.engine import Validation
    from toprank.stopping import ValidationMetric

__all__ = ["SGBAP", "GradientBoostingRanker", "LambdaMART", "SGBAPsig"]

# Trees may split so many categories of a column into subsets, if inner validation likes that by more than a
# share of the metric.
MOST_CATEGORIES, CLEAR_LEAD = 10_000, 0.01
_SHARE = Interval(Real, 0, 1, closed="right")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


@fill_docstring
class GradientBoostingRanker(BoostedTreesRanker):
    """Stochastic gradient boosting of a ranking objective on XGBoost's trees.

    Parameters
    ----------
    objective : str or Objective, default="auto"
        What the trees minimise: a name of `toprank.objectives` or an instance of one, such as
        ``objectives.get("pauc", fpr=(0, 0.05))``. "auto" is ``lambda_map``
        averaged with models that fail on other data: below 1,000 positives a random forest, from there on
        boosters of ``logistic``; and a logistic regression where rows are few or it does well. With queries
        it is ``lambda_map`` alone.
    n_estimators : int, optional
        Rounds, one tree each. By default they are chosen by inner validation where there are at least
        100 positives and negatives (as many queries with positives, if there are queries), otherwise 300.
    learning_rate : float, optional
        Shrinkage of each tree. By default it suits the rounds that are chosen: between 0.05 and 0.2.
        Where none are, it depends on the number of rows: 0.05 up to 500, growing to 0.3 at 20,000.
    max_depth : int, default=0
        Deepest level of a tree; 0 sets no limit (then `max_leaves` must).
    max_leaves : int, optional
        Most leaves of a tree; 0 sets no limit. By default one for 250 rows, between 6 and 31.
    growth : {"leaf", "depth"}, default="leaf"
        Grow always at the leaf with the greatest gain, or level by level.
    min_child_weight : float, optional
        Least sum of Hessians in a leaf. Ranking gradients are rescaled so that the Hessians of a list
        sum to its positives: a leaf of 1 has about the curvature of one positive. By default 0.3 up
        to 30 positives, growing to 1 at 100.
    min_split_gain : float, default=0.0
        Least gain of a split.
    reg_lambda : float, optional
        L2 penalty on leaf values. By default one fiftieth of the number of positives, between 0.3 and 5.
    reg_alpha : float, default=0.0
        L1 penalty on leaf values.
    max_leaf_step : float, default=2.0
        Bound on a leaf's value before shrinkage (with a line search: on any row's move); 0 for none.
    subsample : float, optional
        Share of rows drawn each round, the same from each class. The objective is computed on the
        draw: a list of the drawn rows. By default 0.7 below 20,000 rows and all rows from there on.
    colsample_bytree : float, default=1.0
        Share of columns drawn for each tree.
    colsample_bynode : float, optional
        Share of columns drawn for each split. By default 0.2 below 5,000 rows; from there on 0.3, but eight
        columns of few, or 0.7 if that is less.
    max_bins : int, default=255
        Bins of each column.
    max_categories : int, optional
        A column of more categories is given to the trees as numbers, since a free choice among subsets of
        many categories fits chance: how much more often than others each is positive (learnt without the
        row itself), where that tells more than chance would, otherwise how many training rows have it. By
        default 30; where the rounds are chosen by inner validation, it also chooses between these numbers
        and the categories themselves.
    step : {"newton", "line_search"}, default="newton"
        Newton leaves, or trees fitted to the gradient by least squares with a bounded line search
        for each, as Frery et al. (2017) have it. A lambda objective has no loss beyond the ranks of the
        moment: along its trees the step is the minimum of the quadratic model of gradient and Hessian.
        Either way no row moves by more than `max_leaf_step`, and the step is then shrunk.
    n_seeds : int, optional
        Boosters of each objective, with different seeds, whose scores are averaged. By default 3 below
        5,000 rows, 2 below 20,000 and 1 from there on; fewer where more than 300 rounds were chosen.
    random_trees : int, optional
        Trees of a random forest (Breiman 2001) that is averaged with the boosters, with a weight of one
        quarter. By default 300 (100 from 20,000 rows on) where the objective is "auto" and there are
        fewer than 1,000 positives and no constraints, otherwise none.
    linear_share : float, optional
        Weight of a logistic regression that is averaged with all of these. By default 0.25 below 5,000 rows
        where the objective is "auto" and nothing is constrained, otherwise 0. Where the rounds are chosen by
        inner validation, it is there below 20,000 rows if it lifts the metric above chance by at least nine
        tenths of what the trees do.
    early_stopping_rounds : int, optional
        Stop when the validation metric has not improved for so many rounds, and keep the best round.
        Validation rows come from `eval_set`, or are split off by `validation_fraction`.
    validation_fraction : float, default=0.2
        Share of the rows (stratified), queries, groups or latest rows held out for early stopping.
    eval_metric : str or callable, optional
        Name of a metric of `toprank.metrics`, whose direction is known, or f(y, scores), of which more is
        better. Average precision by default (its mean over the queries where there are any), NDCG for
        graded objectives.
    monotone_constraints : mapping or sequence of {-1, 0, 1}, optional
        By column name, or one for each column.
    interaction_constraints : sequence of sequences, optional
        Groups of columns (names or positions) that may meet in one branch.
    %(class_weight)s
        It matters for ``logistic`` and, less, for objectives that count the rows above a positive (average
        precision); a loss of pairs only becomes that many times larger.
    device : str, default="cpu"
        XGBoost's device, such as "cpu" or "cuda".
    %(n_jobs)s
    random_state : int, RandomState or None
        Fixes the draws of rows and columns and the validation split.
    %(verbose)s

    Attributes
    ----------
    chosen_ : dict
        What the fit used for every parameter that is optional here: `objectives`, `n_seeds`,
        `random_trees`, `linear_share`, `n_estimators`, `learning_rate`, `max_leaves`, `min_child_weight`,
        `reg_lambda`, `subsample`, `colsample_bynode`, `max_categories`.
    boosters_ : list of xgboost.Booster
        `n_seeds` for each objective; then, if there are any, the random trees, and last the logistic
        regression as a tree for each column.
    booster_weights_ : ndarray of shape (n_boosters,)
        The score is the sum of the boosters' margins times these.
    n_estimators_ : int
        Rounds kept (of the first booster).
    validation_scores_ : list of float
        The validation metric after each round of the first booster, where there was validation data.
    feature_importances_ : ndarray of shape (n_columns,)
        Share of the total gain of the splits on each column.
    %(classes)s

    References
    ----------
    Frery, Habrard, Sebban, Caelen, He-Guelton (2017), Efficient top rank optimization with gradient
    boosting for supervised anomaly detection, ECML PKDD.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import GradientBoostingRanker
    >>> X, y = make_classification(600, weights=[0.95], random_state=0)
    >>> model = GradientBoostingRanker(n_estimators=30, random_state=0).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 3 * y.mean())
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **PARAMETER_CONSTRAINTS,
        "n_estimators": [*PARAMETER_CONSTRAINTS["n_estimators"], None],
        "max_depth": [Interval(Integral, 0, None, closed="left")],
        "max_leaves": [Interval(Integral, 0, None, closed="left"), None],
        "growth": [StrOptions(set(GROWTH))],
        "min_child_weight": [_NOT_NEGATIVE, None],
        "min_split_gain": [_NOT_NEGATIVE],
        "reg_lambda": [_NOT_NEGATIVE, None],
        "reg_alpha": [_NOT_NEGATIVE],
        "max_leaf_step": [_NOT_NEGATIVE],
        "subsample": [_SHARE, None],
        "colsample_bytree": [_SHARE],
        "colsample_bynode": [_SHARE, None],
        "max_bins": [Interval(Integral, 2, None, closed="left")],
        "max_categories": [Interval(Integral, 1, None, closed="left"), None],
        "step": [StrOptions({"newton", "line_search"})],
        "n_seeds": [Interval(Integral, 1, None, closed="left"), None],
        "random_trees": [Interval(Integral, 0, None, closed="left"), None],
        "linear_share": [Interval(Real, 0, 1, closed="left"), None],
    }

    def __init__(
        self,
        objective: str | objectives.Objective = AUTO,
        *,
        n_estimators: int | None = None,
        learning_rate: float | None = None,
        max_depth: int = 0,
        max_leaves: int | None = None,
        growth: str = "leaf",
        min_child_weight: float | None = None,
        min_split_gain: float = 0.0,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        max_leaf_step: float = 2.0,
        subsample: float | None = None,
        colsample_bytree: float = 1.0,
        colsample_bynode: float | None = None,
        max_bins: int = 255,
        max_categories: int | None = None,
        step: str = "newton",
        n_seeds: int | None = None,
        random_trees: int | None = None,
        linear_share: float | None = None,
        early_stopping_rounds: int | None = None,
        validation_fraction: float = 0.2,
        eval_metric: str | Callable[..., float] | None = None,
        monotone_constraints: Mapping[str, int] | Sequence[int] | None = None,
        interaction_constraints: Sequence[Sequence[str | int]] | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.growth = growth
        self.min_child_weight = min_child_weight
        self.min_split_gain = min_split_gain
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.max_leaf_step = max_leaf_step
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.colsample_bynode = colsample_bynode
        self.max_bins = max_bins
        self.max_categories = max_categories
        self.step = step
        self.n_seeds = n_seeds
        self.random_trees = random_trees
        self.linear_share = linear_share
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_fraction = validation_fraction
        self.eval_metric = eval_metric
        self.monotone_constraints = monotone_constraints
        self.interaction_constraints = interaction_constraints
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        qid: Any = None,
        *,
        groups: Any = None,
        time: Any = None,
        gap: Any = None,
        eval_set: tuple[Any, ...] | None = None,
        init_model: GradientBoostingRanker | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> GradientBoostingRanker:
        """Boost.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n_rows, n_columns)
            Missing values are NaN or None; text and category columns are categories, dates, also those
            written as text, days since 1970. Entries that a sparse matrix does not store count as missing.
        y : array of shape (n_rows,)
            Two labels, the greater one positive; whole numbers from 0 up for graded objectives.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 is the row twice, of 0 the row absent.
        qid : array of shape (n_rows,), optional
            Query of each row; rows of different queries are never compared.
        %(inner_splits)s
        eval_set : tuple (X, y), (X, y, sample_weight) or (X, y, sample_weight, qid), optional
            Or a list of such tuples, as XGBoost takes it, of which the last is used.
            Validation rows. With `early_stopping_rounds` they choose the number of rounds.
        init_model : GradientBoostingRanker, optional
            A fitted ranker to go on from: its trees come first. The rows may have other categories: known
            ones keep their codes, new ones are added.
        callbacks : sequence of callables
            Each is called with a `Round` after each round; a true answer ends the fit.
        checkpoint : path, optional
            A folder in which the trees are kept every 25 rounds. The same fit, started again with the same
            folder, goes on from there and gives the same model as one that was never broken off.

        Returns
        -------
        self : GradientBoostingRanker
        """
        from toprank.boosting import training as boosting

        self._check_trees()
        data = self._check_training(X, y, sample_weight, qid, keep_zero_weights=True)
        self.trained_on_sparse_ = bool(sparse.issparse(data.X))
        n_rows, n_positives = float(data.weights.sum()), float(data.weights @ (data.y > 0))
        together = data.qid if groups is None else groups
        keys = SplitKeys.of(len(data.y), together, time, gap)
        given = (self.n_estimators, eval_set, init_model, self.early_stopping_rounds)
        splits = self._inner_splits(data, keys) if all(one is None for one in given) else []
        choosing = len(splits) > 0
        settings = Settings.of(
            self, n_rows, n_positives, queries=data.qid is not None, validated=choosing
        )
        starts: list[Any] = []
        graded = boosting.settings_objectives(settings)[0].graded
        if init_model is not None:
            data = self._encode_like(init_model, X, data)
            settings = self._settings_like(init_model, settings)
            starts = init_model.boosters_
        elif choosing:
            data, settings = self._choose(data, splits, settings, graded)
        else:
            data = self._encode_categories(data, settings.max_categories)
        training, validation = self._validation_split(data, keys, eval_set, graded)
        rows = self._in_form(data.X)
        boosting.fit_boosters(
            self, training, settings, starts=starts, validation=validation, callbacks=callbacks,
            checkpoint=checkpoint, whole=data,
            score=lambda boosters: np.stack([predict_margin(b, rows) for b in boosters]),
            others=boosting.companions(settings, lambda seed: data),
        )  # fmt: skip
        return self

    def fit_source(
        self,
        source: Any = None,
        *,
        target: str,
        pos_label: Any = None,
        sample_weight: str | None = None,
        drop: Sequence[str] = (),
        sql: str | None = None,
        memory: int | str = "2GB",
        folder: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> GradientBoostingRanker:
        """Boost on rows that do not fit in memory, streamed from files or a query.

        DuckDB reads the rows a batch at a time and XGBoost keeps them binned, a byte or two for each cell,
        in files of its own (external memory). What grows with the rows is 40 to 80 bytes for each of them:
        see `toprank.out_of_core`. Beyond 200,000 rows the bins are placed by a sample.

        Parameters
        ----------
        source : path, optional
            A Parquet or CSV file, a folder of them, or a pattern such as ``days/*.parquet``.
        target : str
            Column of the labels. All other columns are features, but for those named below.
        pos_label : label, optional
            Which of two labels is the positive; by default the greater.
        sample_weight : str, optional
            Column of the weights.
        drop : sequence of str
            Columns to leave out.
        sql : str, optional
            Instead of a source: a query in DuckDB's SQL.
        memory : int or str, default="2GB"
            What Python, the libraries and the fit may use together, in bytes or as text; the size of
            batches and samples, and DuckDB's limit, follow from it. Where the rows need more, an error
            says how much.
        folder : path, optional
            Where temporary files go (about the size of the binned rows, and of a copy of CSV, of queries, and
            of Parquet files whose row groups are too large for `memory`); by default the system's folder
            for temporary files.
        checkpoint, callbacks
            As in `fit`.

        Returns
        -------
        self : GradientBoostingRanker

        Examples
        --------
        >>> from toprank import GradientBoostingRanker
        >>> query = "SELECT i * 7 % 100 AS a, (a > 90)::INT AS y FROM range(2000) AS t(i)"
        >>> model = GradientBoostingRanker(n_estimators=5).fit_source(sql=query, target="y")
        >>> model.columns_.names
        ('a',)
        """
        from toprank.out_of_core import fit_source

        return fit_source(
            self, source, target=target, pos_label=pos_label, sample_weight=sample_weight, drop=drop,
            sql=sql, memory=memory, folder=folder, checkpoint=checkpoint, callbacks=callbacks,
        )  # fmt: skip

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters, and after a fit what was chosen for those that were not given."""
        text = super().__repr__(N_CHAR_MAX)
        if not hasattr(self, "chosen_"):
            return text
        chosen = {k: v for k, v in self.chosen_.items() if getattr(self, k, None) is None}
        shown = (f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in chosen.items())
        return f"{text}\n# chosen: {', '.join(shown)}"

    def staged_decision_function(
        self, X: Any, rounds: Iterable[int] | None = None
    ) -> Iterator[np.ndarray]:
        """Yield the scores of rows after each round (with the final threshold subtracted).

        Parameters
        ----------
        X : array or table of shape (n_rows, n_columns)
        rounds : iterable of int, optional
            Only after these numbers of rounds, in ascending order; beyond the last round scores stay the same.
        """
        check_is_fitted(self)
        X = self._in_form(self._check_rows(X))
        lengths = [booster.num_boosted_rounds() for booster in self.boosters_]
        numbers = list(range(1, max(lengths) + 1) if rounds is None else rounds)
        if any(later <= before for before, later in pairwise([0, *numbers])):
            raise ValueError(f"rounds must be ascending numbers from 1 up, got {numbers}")
        total = np.zeros(X.shape[0])
        for before, number in pairwise([0, *numbers]):
            for booster, weight, length in zip(
                self.boosters_, self.booster_weights_, lengths, strict=True
            ):
                if before < min(number, length):
                    total += weight * predict_margin(booster, X, (before, min(number, length)))
            yield total - self.offset_

    # -- parts of fit ----------------------------------------------------------------------------

    def _accepts_grades(self) -> bool:
        if self.objective == AUTO:
            return False
        from toprank import objectives

        return objectives.get(self.objective).graded

    def _inner_splits(self, data: TrainingData, keys: SplitKeys) -> list[Split]:
        """Return the splits to choose the rounds by; none where there is not enough of each class."""
        from toprank.boosting.training import choose_splits

        positive = (data.y > 0) & (data.weights > 0)
        found = int(np.count_nonzero(positive))
        found = min(found, int(np.count_nonzero(data.weights)) - found)
        if data.qid is not None:
            found = min(found, len(np.unique(data.qid[positive])))
        if found < ENOUGH_POSITIVES:
            return []
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return choose_splits(data, keys, seed)

    def _choose(
        self, data: TrainingData, splits: Sequence[Split], settings: Settings, graded: bool
    ) -> tuple[TrainingData, Settings]:
        """Return the rows as the trees get them, and settings with what inner validation likes best.

        It chooses the rounds, whether there is a linear model, and whether columns of many categories become
        numbers or stay categories.
        """
        from toprank.boosting.training import choose_rounds

        columns = self.columns_
        forms = [settings.max_categories]
        if self.max_categories is None:
            sizes = [0 if values is None else len(values) for values in columns.categories]
            most = max((size for size in sizes if size <= MOST_CATEGORIES), default=0)
            forms += [most] if most > forms[0] else []
        metric, by_grade = self._validation_metric(graded, data.qid is not None)
        sign = 1.0 if metric.greater_is_better else -1.0
        found: list[tuple[float, TrainingData, Settings, Columns]] = []
        for most in forms:
            self.columns_ = columns
            rows = self._encode_categories(data, most)
            own = replace(settings, max_categories=most)
            chosen, value = choose_rounds(self, rows, splits, own, metric, by_grade)
            handicap = CLEAR_LEAD * abs(value) if found else 0.0  # of what fits chance more easily
            found.append((sign * value - handicap, rows, chosen, self.columns_))
        _, rows, chosen, self.columns_ = max(found, key=lambda candidate: candidate[0])
        return rows, chosen

    def _validation_metric(self, graded: bool, by_query: bool) -> tuple[ValidationMetric, bool]:
        """Return the validation metric, and whether it takes grades."""
        from toprank import metrics
        from toprank.stopping import ValidationMetric

        usual = "mean_average_precision" if by_query else "average_precision"
        chosen = self.eval_metric or ("ndcg" if graded else usual)
        known = metrics.find_metric(chosen)
        return ValidationMetric.of(chosen), known is None or known.graded

    def _settings_like(self, init_model: GradientBoostingRanker, settings: Settings) -> Settings:
        """Return settings with the boosters of the ranker to go on from; its random trees stay as they are."""
        before = init_model.chosen_
        kinds = tuple(before["objectives"]) if self.objective == AUTO else settings.objectives
        alike = len(kinds) == len(before["objectives"])
        if not alike or self.n_seeds not in (None, before["n_seeds"]):
            raise ValueError(
                f"init_model has {before['n_seeds']} boosters (n_seeds) for each of the objectives "
                f"{join_names(before['objectives'])}; only a ranker like this one can be continued"
            )
        kept = {name: before[name] for name in ("n_seeds", "random_trees", "linear_share")}
        return replace(settings, objectives=kinds, **kept)

    def _check_trees(self) -> None:
        require_xgboost()
        if self.max_depth == 0 and self.max_leaves == 0:
            raise ValueError(
                "max_depth and max_leaves are both 0: one of them must bound the trees"
            )

    def _check_streamed(self, where: str) -> None:
        """Refuse what needs all rows at once."""
        self._check_trees()
        if self.step != "newton":
            raise ValueError(f"{where} steps must be Newton's: set step='newton'")
        if self.class_weight is not None:
            raise ValueError(f"{where} there is no class_weight: give the rows a sample_weight")

    def _encode_like(
        self, init_model: GradientBoostingRanker, X: Any, data: TrainingData
    ) -> TrainingData:
        """Encode the rows as the trees of `init_model` know them: their codes first, then new ones."""
        check_is_fitted(init_model)
        if init_model.columns_.names != self.columns_.names:
            raise ValueError(
                "init_model was trained on other columns; only a ranker like this one can be continued"
            )
        self.columns_ = init_model.columns_.extended(self.columns_)
        self.trained_on_sparse_ = init_model.trained_on_sparse_
        return replace(data, X=self._in_form(self._check_rows(X)))

    def _validation_split(
        self,
        data: TrainingData,
        keys: SplitKeys,
        eval_set: tuple[Any, ...] | None,
        graded: bool,
    ) -> tuple[TrainingData, Validation | None]:
        """Return training and validation data; the latter only where it is given or needed."""
        from toprank.boosting.engine import Validation
        from toprank.stopping import hold_out

        if isinstance(eval_set, list) and eval_set and isinstance(eval_set[-1], tuple):
            eval_set = eval_set[-1]  # XGBoost's spelling: the last of several sets decides
        by_query = (data.qid if eval_set is None else eval_set[3:] or None) is not None
        metric, by_grade = self._validation_metric(graded, by_query)
        patience = self.early_stopping_rounds
        if eval_set is not None:
            if not 2 <= len(eval_set) <= 4:
                raise ValueError(
                    "eval_set must be (X, y), then sample_weight and qid if there are any"
                )
            given = self._check_evaluation(*eval_set)
            given = replace(given, X=self._in_form(given.X))
            return data, Validation(given, metric, by_grade, patience)
        if patience is None:
            return data, None
        if keys.time is not None:
            blocks = max(round(1 / self.validation_fraction) - 1, 1)
            last = make_splits(data.y > 0, **keys.as_dict(), n_splits=blocks)[-1]
            train, held_out = last.train, last.test
        else:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            mask = hold_out(data.y, self.validation_fraction, seed, keys.groups)
            train, held_out = np.flatnonzero(~mask), np.flatnonzero(mask)
        return data.rows(train), Validation(data.rows(held_out), metric, by_grade, patience)


# -- the published methods by their own names ------------------------------------------------------

LAMBDA_METRICS = {
    "auc": "lambda_auc",
    "mauc": "lambda_mauc",
    "map": "lambda_map",
    "ndcg": "lambda_ndcg",
    "mrr": "lambda_mrr",
    "precision": "lambda_precision",
}


def SGBAP(*, subsample: float = 0.5, **parameters: Any) -> GradientBoostingRanker:
    """Stochastic gradient boosting on the exponential surrogate of average precision.

    Frery et al. (2017), section 3.3: ``ap_exp`` on a random draw of the rows each round, which keeps one
    very high score from taking the whole gradient. Leaves are Newton's, with hardly any penalty and none
    above 1; a line search as in the paper (``step="line_search"``) moves mostly the leaf that is
    highest already.

    The softmax soon looks at nothing but the rows on top, so what early trees have not told apart, late
    ones hardly will. On wide, sparse rows let them grow to the end, as in a forest:
    ``SGBAP(max_depth=200, max_leaves=0, colsample_bynode=0.1)`` is what cross-validation chose on every
    split of w8a, before trees of 31 leaves or of depth 8 (``experiments/sgbap.py``).

    Examples
    --------
    >>> from toprank import SGBAP
    >>> SGBAP(n_estimators=50).objective
    'ap_exp'
    """
    usual = {"n_seeds": 1, "max_leaf_step": 1.0, **parameters}
    return GradientBoostingRanker("ap_exp", subsample=subsample, **usual)


def SGBAPsig(*, subsample: float = 0.5, **parameters: Any) -> GradientBoostingRanker:
    """Stochastic gradient boosting on the sigmoid surrogate of average precision.

    Frery et al. (2017), section 3.2, with their term of 1/2 for a positive compared with itself. Their
    steepness alpha of the sigmoid is not here: Newton's leaves cancel it, and the scores only come out
    divided by it. The learning rate decides how soon the sigmoids become steep.

    Examples
    --------
    >>> from toprank import SGBAPsig
    >>> SGBAPsig().objective.self_term
    0.5
    """
    from toprank import objectives

    objective = objectives.get("ap_sigmoid", self_term=0.5)
    return GradientBoostingRanker(objective, subsample=subsample, **{"n_seeds": 1, **parameters})


def LambdaMART(metric: str = "map", **parameters: Any) -> GradientBoostingRanker:
    """Trees on lambda gradients of a ranking metric.

    Burges (2010); for the area under the ROC curve and its multi-class form, Welleck (2016), Efficient
    AUC optimization for information ranking applications.

    Parameters
    ----------
    metric : {"auc", "mauc", "map", "ndcg", "mrr", "precision"}, default="map"
    **parameters
        Those of `GradientBoostingRanker`.

    Examples
    --------
    >>> from toprank import LambdaMART
    >>> LambdaMART("auc").objective
    'lambda_auc'
    """
    if metric not in LAMBDA_METRICS:
        raise ValueError(f"unknown metric {metric!r}; known: {', '.join(LAMBDA_METRICS)}")
    return GradientBoostingRanker(LAMBDA_METRICS[metric], **parameters)
