"""Boosting on rows that are spread over the workers of a Dask cluster.

A ranking objective needs the whole list, and no worker has it. Each worker runs the same rounds as one
machine does (`toprank.boosting.engine`) on its own rows; what the list adds is exchanged through XGBoost's
collective operations: the scores of all rows for short lists, histograms of the scores for long ones
(`toprank.objectives.binned`). XGBoost grows the trees with its own distributed histograms.

Dask starts the workers and watches them. One that is lost while rows are encoded is made up for by the others;
one that is lost later ends the fit with an error that names it, or, with a checkpoint, the fit goes on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData, WeightScale
from toprank.boosting import GradientBoostingRanker
from toprank.boosting.engine import HeldOut, Rows
from toprank.boosting.gradients import FORMS
from toprank.boosting.settings import MAX_CATEGORIES, Settings
from toprank.boosting.training import (
    companions,
    fit_boosters,
    settings_objectives,
    warn_if_constant,
)
from toprank.boosting.xgboost_helpers import (
    Workers,
    cut_points,
    predict_margin,
    quantile_matrix,
    require_xgboost,
)
from toprank.columns import Columns
from toprank.exchange import Exchange
from toprank.metrics.condensed import CondensedList
from toprank.metrics.intervals import evaluate as evaluate_rows
from toprank.out_of_core import MOST_SAMPLED, weighted_sample
from toprank.validation import check_choice

__all__ = [
    "DaskGradientBoostingRanker",
    "WorkerLostError",
    "evaluate",
    "fit_distributed",
    "fit_on_worker",
]

_POLL = 0.5  # seconds between two looks at the workers
_PATIENCE = 60.0  # seconds to wait for a worker when there is none
_COLLECTIVE_TIMEOUT = 600  # seconds that a worker waits for the others inside one operation
RESTARTS = 3
MOST_CELLS = 40_000_000  # of the rows that place the bins


class WorkerLostError(RuntimeError):
    """A worker of the cluster was lost, and with it rows that the fit needs."""


class DaskGradientBoostingRanker(GradientBoostingRanker):
    """`GradientBoostingRanker` on Dask collections.

    The parameters are those of `GradientBoostingRanker`; steps must be Newton's, and there is no
    `class_weight`. The model is the same as from one machine but for the order in which sums are taken, and
    beyond 40,000,000 cells for the quantiles that columns are binned by: they are those of a sample.

    Attributes
    ----------
    bytes_per_round_ : float
        What one worker put into the exchange in each round, on average, beside XGBoost's histograms.

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> from toprank import DaskGradientBoostingRanker
    >>> with Client() as client:  # doctest: +SKIP
    ...     model = DaskGradientBoostingRanker().fit(X, y, client=client)
    ...     scores = model.decision_function(X_new).compute()
    >>> DaskGradientBoostingRanker(n_estimators=50).n_estimators
    50
    """

    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        qid: Any = None,
        *,
        eval_set: tuple[Any, ...] | None = None,
        client: Any = None,
        exchange: str = "auto",
        checkpoint: Any = None,
    ) -> DaskGradientBoostingRanker:
        """Boost.

        Parameters
        ----------
        X : dask DataFrame or dask Array
            Rows in partitions. Text and category columns are categories, as in a table.
        y, sample_weight, qid : dask Series or dask Array
            In the partitions of `X`. Rows of one query may lie in several partitions: they are brought
            together on one worker.
        eval_set : tuple (X, y), (X, y, sample_weight) or (X, y, sample_weight, qid), optional
            Validation rows, Dask collections too. The metric is that of all of them together.
        client : distributed.Client, optional
            By default the current one.
        exchange : {"auto", "exact", "binned"}, default="auto"
            What the workers tell each other each round: the scores of all rows, so that gradients are
            those of one machine; or histograms of the scores, whose size does not grow with the rows
            (gradients within 1e-5 of the greatest). "auto" is exact up to 1,000,000 rows, and for
            objectives whose edges a histogram would blur. With queries each worker takes its own.
        checkpoint : path, optional
            A folder that all workers can reach, in which the trees are kept every 25 rounds. When a
            worker is lost the fit goes on from there with the others, up to 3 times; without it
            `WorkerLostError` is raised.

        Returns
        -------
        self : DaskGradientBoostingRanker
        """
        from distributed import default_client

        check_choice(exchange, "exchange", FORMS)
        self._validate_params()
        self._check_streamed("on a cluster")
        rows = _partitions(X, y, sample_weight, qid)
        held_out = None if eval_set is None else _partitions(*eval_set, names=_EVALUATION)
        cluster = _Cluster(default_client() if client is None else client)
        rows = _scaled(rows, cluster)
        if held_out is not None:
            held_out = _scaled(held_out, cluster)
        sizes = _learn_columns_and_labels(self, rows, cluster)
        figures = cluster.compute([_lazy(_count)(*part, self) for part in rows.parts()], "counting")
        n_rows, n_positives = np.sum(figures, axis=0)
        settings = Settings.of(self, n_rows, n_positives, queries=qid is not None)
        sample = _sample(self, rows, sizes, cluster)
        shared = _Shared(
            clone(self), self.columns_, self.classes_, self.n_features_in_, settings,
            _cuts(self, sample), _companions(self, settings, sample), exchange, checkpoint,
            qid is not None,
        )  # fmt: skip
        fitted = cluster.train(shared, rows, held_out, self)
        for name in _FITTED:
            setattr(self, name, getattr(fitted, name))
        if not self.feature_importances_.any():
            warn_if_constant(np.zeros(2), settings)  # the workers' own warnings stay with them
        return self

    def decision_function(self, X: Any) -> Any:
        """Score rows: a Dask collection lazily, partition by partition; anything else at once."""
        return self._spread(X, "decision_function", np.float64)

    def predict(self, X: Any) -> Any:
        """Flag rows, a Dask collection lazily."""
        check_is_fitted(self)
        return self._spread(X, "predict", self.classes_.dtype)

    def to_local(self) -> GradientBoostingRanker:
        """Return an ordinary `GradientBoostingRanker` with the same trees, to save, explain and score with."""
        check_is_fitted(self)
        local = GradientBoostingRanker(**self.get_params())
        for name, value in vars(self).items():
            if name.endswith("_") and name != "bytes_per_round_":
                setattr(local, name, value)
        return local

    def _spread(self, X: Any, method: str, dtype: Any) -> Any:
        """Call a method of the local model on each partition."""
        check_is_fitted(self)
        local = self.to_local()
        if hasattr(X, "map_blocks") and hasattr(X, "chunks"):
            return X.map_blocks(_call, local, method, drop_axis=1, dtype=dtype)
        if hasattr(X, "map_partitions"):
            return X.map_partitions(_call, local, method, meta=pd.Series(dtype=dtype, name="score"))
        return getattr(local, method)(X)


_FITTED = (
    "boosters_", "booster_weights_", "chosen_", "n_estimators_", "validation_scores_", "offset_",
    "trained_on_sparse_", "bytes_per_round_",
)  # fmt: skip
_TRAINING = ("X", "y", "sample_weight", "qid")
_EVALUATION = tuple(f"{name} of eval_set" for name in _TRAINING)


def fit_distributed(
    ranker: GradientBoostingRanker,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    client: Any = None,
    exchange: str = "auto",
) -> GradientBoostingRanker:
    """Fit a ranker with the parameters of `ranker` on Dask collections; return an ordinary fitted one.

    The short form of `DaskGradientBoostingRanker(...).fit(...).to_local()`.

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> from toprank import GradientBoostingRanker
    >>> model = fit_distributed(GradientBoostingRanker(), X, y, client=Client())  # doctest: +SKIP
    """
    model = DaskGradientBoostingRanker(**ranker.get_params())
    return model.fit(X, y, sample_weight, client=client, exchange=exchange).to_local()


def fit_on_worker(
    ranker: GradientBoostingRanker,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    exchange: str = "auto",
) -> GradientBoostingRanker:
    """Fit a ranker together with the other workers of XGBoost's communicator, each on its own rows.

    For what starts the workers itself, such as a barrier stage of Spark, Ray Train or MPI: call it on every
    worker at once, inside ``xgboost.collective.CommunicatorContext``. Each of them returns the same fitted
    ranker, and `ranker` stays as it is.

    Parameters
    ----------
    ranker : GradientBoostingRanker
    X : array or table of numbers, of shape (n_rows, n_columns)
        The rows of this worker, at least one, in the same columns everywhere.
    y, sample_weight : array of shape (n_rows,)
        Labels must be numbers.
    exchange : {"auto", "exact", "binned"}, default="auto"
        As in `DaskGradientBoostingRanker.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import GradientBoostingRanker
    >>> X, y = np.arange(100.0)[:, None], np.arange(100) > 90
    >>> fit_on_worker(GradientBoostingRanker(n_estimators=2), X, y).n_estimators_  # the only worker
    2
    """
    check_choice(exchange, "exchange", FORMS)
    model, workers = clone(ranker), Workers()
    model._validate_params()
    model._check_streamed("on a cluster")
    if model.random_state is None:  # the same everywhere
        drawn = np.random.default_rng().integers(2**31, size=1)
        model.random_state = int(workers.combine(drawn, "max")[0])
    look = _look(X, y)
    columns, size = look["columns"], float(look["size"] * (not look["columns"].is_category.any()))
    if workers.combine(np.array([size]), "min")[0] == 0:  # all raise, and none waits for another
        raise ValueError("each worker needs rows, and columns of numbers")
    model.columns_ = columns
    model._check_rows(look["head"], reset=True)
    model._check_labels(np.unique(workers.gather(look["labels"][None].astype(np.float64))[0]))
    sample_weight = _scaled_on_worker(sample_weight, len(X), workers)
    own = _encode(X, y, sample_weight, None, model, False)
    n_rows, n_positives = workers.combine(np.array(_count(X, y, sample_weight, None, model)), "sum")
    settings = Settings.of(model, n_rows, n_positives)
    sizes = workers.combine(np.array([float(look["size"])]), "sum")
    most = min(MOST_SAMPLED, MOST_CELLS // len(columns.names))  # which all workers hold
    own_share = look["size"] / sizes[0]
    part = _sampled((X, y, sample_weight, None), model, workers.rank, own_share, most)
    columns_of_sample = [*part.X.T, part.y, np.asarray(part.weight)]
    table = workers.gather(np.stack(columns_of_sample).astype(np.float64))[0].T
    sample = TrainingData(table[:, :-2].astype(np.float32), table[:, -2], table[:, -1], None)
    shared = _Shared(
        model, columns, model.classes_, len(columns.names), settings, _cuts(model, sample),
        _companions(model, settings, sample), exchange, None, False,
    )  # fmt: skip
    return _boost(shared, [own], workers)


def evaluate(
    y: Any, scores: Any, sample_weight: Any = None, *, pos_label: Any = None, **settings: Any
) -> dict[str, dict[str, Any]]:
    """Compute the metrics of Dask collections, exactly; only positives' scores and counts travel.

    Parameters
    ----------
    y, scores, sample_weight : dask Series or dask Array
        Labels of two classes, scores and weights, cut at the same rows.
    pos_label : label, optional
        Which label is the positive; by default the greater.
    **settings
        `metrics` and `parameters` of `toprank.metrics.evaluate`.

    Returns
    -------
    dict
        As `toprank.metrics.evaluate` gives it, without intervals.

    Examples
    --------
    >>> import dask.array as da
    >>> y, scores = da.from_array([0, 1, 0, 1], chunks=2), da.from_array([0.1, 0.4, 0.35, 0.8], chunks=2)
    >>> evaluate(y, scores)["roc_auc"]["value"]
    1.0
    """
    import dask

    names = ("scores", "y", "sample_weight")
    rows = _partitions(scores, y, sample_weight, names=names)
    labels = np.unique(np.concatenate(dask.compute(*[_lazy(np.unique)(part) for part in rows.y])))
    if len(labels) != 2 or (pos_label is not None and pos_label not in labels):
        raise ValueError(
            f"y must hold two labels, pos_label one of them; it has {labels[:5].tolist()}"
        )
    positive = labels[1] if pos_label is None else pos_label
    parts = [
        _lazy(_scored_part)(own, y_part, weight, positive)
        for own, y_part, weight, _ in rows.parts()
    ]
    found = dask.compute(*[_lazy(CondensedList.positives_of)(part) for part in parts])
    known = CondensedList(*np.concatenate(found, axis=1))
    negatives = np.sum(dask.compute(*[_lazy(known.negatives_of)(part) for part in parts]), axis=0)
    labels, ranks, weights = known.rows(negatives)
    return evaluate_rows(labels, ranks, sample_weight=weights, intervals=None, **settings)


def _scored_part(scores: Any, y: Any, weight: Any, positive: Any) -> Any:
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    return np.asarray(y) == positive, np.asarray(scores, dtype=np.float64), weight


def _call(part: Any, model: GradientBoostingRanker, method: str) -> Any:
    """Call a method of a model on one partition, which may be empty."""
    found = getattr(model, method)(part) if len(part) else np.zeros(0)
    return pd.Series(found, index=part.index, name="score") if hasattr(part, "index") else found


def _lazy(function: Any) -> Any:
    import dask

    return dask.delayed(function, pure=False)


# -- partitions ------------------------------------------------------------------------------------


class _Partitions(NamedTuple):
    """The partitions of rows, labels, weights and queries (or None), one delayed object each."""

    X: list[Any]
    y: list[Any]
    weight: list[Any]
    qid: list[Any]

    def parts(self) -> list[tuple[Any, ...]]:
        """Return what belongs to each partition."""
        return list(zip(*self, strict=True))


def _partitions(
    X: Any, y: Any, sample_weight: Any = None, qid: Any = None, *, names: Sequence[str] = _TRAINING
) -> _Partitions:
    """Return the partitions of Dask collections that are cut at the same rows."""
    parts: list[list[Any]] = []
    for name, collection in zip((*names, "qid"), (X, y, sample_weight, qid), strict=False):
        if collection is None:
            parts.append([None] * len(parts[0]))
            continue
        if not hasattr(collection, "to_delayed"):
            raise TypeError(
                f"{name} must be a Dask collection, not {type(collection).__name__}; "
                "rows in the memory of one machine are fitted by GradientBoostingRanker.fit"
            )
        parts.append(list(np.asarray(collection.to_delayed(), dtype=object).ravel()))
        if len(parts[-1]) != len(parts[0]):
            raise ValueError(
                f"{name} has {len(parts[-1])} partitions and {names[0]} has {len(parts[0])}; "
                "they must be cut at the same rows (align them, or repartition both)"
            )
    return _Partitions(*parts)


def _scaled(rows: _Partitions, cluster: _Cluster) -> _Partitions:
    """Return the partitions with weights in the unit of all of them, as on one machine."""
    if rows.weight[0] is None:
        return rows
    scales = cluster.compute([_lazy(_scale)(weight) for weight in rows.weight], "weighing")
    scale = WeightScale.merge([_usable(found) for found in scales])
    return rows._replace(weight=[_lazy(_apply)(scale, weight) for weight in rows.weight])


def _scaled_on_worker(weight: Any, n_rows: int, workers: Workers) -> np.ndarray | None:
    """Return the weights of this worker in the unit of those of all workers, if any has weights."""
    if not workers.combine(np.array([float(weight is not None)]), "max")[0]:
        return None
    weight = np.ones(n_rows) if weight is None else np.asarray(weight, dtype=np.float64)
    own = _scale(weight)
    all_fine = workers.combine(np.array([float(own is not None)]), "min")[0]  # or all raise
    own = _usable(own if all_fine else None)
    few = np.zeros(0) if own.values is None else own.values
    figures = [[own.largest], [own.total], [own.n_present], [own.values is not None]]
    table = workers.gather(np.array(figures, dtype=np.float64))[0]
    values = workers.gather(few[None])[0][0] if table[3].all() else None
    parts = [WeightScale(largest, total, int(n), values) for largest, total, n in table[:3].T]
    return WeightScale.merge(parts).apply(weight)


def _scale(weight: Any) -> WeightScale | None:
    """Return the scale of the weights of a partition, None if they are no weights."""
    weight = np.asarray(weight, dtype=np.float64)
    fine = np.isfinite(weight).all() and (weight >= 0).all()
    return WeightScale.of(weight) if fine else None


def _usable(scale: WeightScale | None) -> WeightScale:
    if scale is None:
        raise ValueError("sample_weight must be finite and at least 0")
    return scale


def _apply(scale: WeightScale, weight: Any) -> np.ndarray:
    return scale.apply(np.asarray(weight, dtype=np.float64))


def _learn_columns_and_labels(
    model: GradientBoostingRanker, rows: _Partitions, cluster: _Cluster
) -> list[int]:
    """Set what `fit` sets from the whole table: columns, categories, classes; return the parts' sizes."""
    found = cluster.compute([_lazy(_look)(*part[:2]) for part in rows.parts()], "reading")
    sizes = [one["size"] for one in found]
    if sum(sizes) == 0:
        raise ValueError("the collections have no rows")
    filled = [(k, one) for k, one in enumerate(found) if one["size"]]
    first = filled[0][1]
    for k, one in filled:
        if one["columns"].names != first["columns"].names:
            here, there = set(one["columns"].names), set(first["columns"].names)
            changed = ", ".join(sorted(map(repr, here ^ there))) or "their order"
            raise ValueError(
                f"partition {k} differs from partition {filled[0][0]} in its columns: {changed}"
            )
    model._check_rows(first["head"], reset=True)
    names = first["columns"].names
    values = np.array([one["values"] for _, one in filled])
    empty = [repr(name) for name, held in zip(names, values.T, strict=True) if not held.any()]
    if empty:
        raise ValueError(f"columns without a value in any row: {', '.join(empty)}; leave them out")
    columns: list[tuple[Columns, np.ndarray]] = []
    for (k, one), held in zip(filled, values, strict=True):
        # a part without a value of a column does not know what it holds
        known = zip(one["columns"].categories, held, strict=True)
        kinds = tuple(found if count else None for found, count in known)
        for j, name in enumerate(names):
            for other, (before, count) in zip(filled, columns, strict=False):
                if held[j] and count[j] and (kinds[j] is None) != (before.categories[j] is None):
                    raise ValueError(
                        f"column {name!r} holds numbers or dates in one of partitions {other[0]} and {k} and "
                        "text in the other"
                    )
        columns.append((Columns(names, kinds, dates=one["columns"].dates), held))
    model.columns_ = Columns.union([found for found, _ in columns])
    model._check_labels(np.concatenate([one["labels"] for _, one in filled]))
    if not model.columns_.is_category.any():
        return sizes
    lazy = [
        _lazy(_counted)(part, weight, model.columns_, model.max_categories or MAX_CATEGORIES)
        for part, _, weight, _ in rows.parts()
    ]
    counts = zip(*(part.numbers for part in cluster.compute(lazy, "counting")), strict=True)
    total = tuple(None if count[0] is None else np.sum(count, axis=0) for count in counts)
    model.columns_ = replace(model.columns_, numbers=total)
    return sizes


def _look(part: Any, y: Any) -> dict[str, Any]:
    """Return what is to be known of a partition before it can be encoded."""
    table = isinstance(part, pd.DataFrame)
    columns = Columns.of(part, dates=True) if table else Columns.numeric(part.shape[1])
    values = part.notna().sum().to_numpy() if table else (~np.isnan(part)).sum(axis=0)
    labels = pd.unique(np.asarray(y))
    return {
        "size": len(part), "columns": columns, "values": values, "labels": labels, "head": part[:2]
    }  # fmt: skip


def _counted(part: Any, weight: Any, columns: Columns, max_categories: int) -> Columns:
    ones = np.ones(len(part)) if weight is None else np.asarray(weight, dtype=np.float64)
    return columns.with_counts(_matrix(part, columns), ones, max_categories)


def _matrix(part: Any, columns: Columns) -> np.ndarray:
    if isinstance(part, pd.DataFrame):
        return np.ascontiguousarray(columns.matrix(part))
    return np.asarray(part, dtype=np.float64)


def _count(
    X: Any, y: Any, weight: Any, qid: Any, model: GradientBoostingRanker
) -> tuple[float, float]:
    """Return the weight of the rows and of the positives."""
    ones = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    positive = model._known_labels(np.asarray(y)) > 0
    return float(ones.sum()), float(ones[positive].sum())


class _Encoded(NamedTuple):
    """Encoded rows of one partition, or of one worker; `held_out` rows only measure."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    qid: np.ndarray | None
    held_out: bool = False


def _encode(
    X: Any, y: Any, weight: Any, qid: Any, model: GradientBoostingRanker, held_out: bool
) -> _Encoded:
    """Encode rows as float32 and labels as 0, 1, ..."""
    matrix = _matrix(X, model.columns_).astype(np.float32)
    weight = None if weight is None else np.asarray(weight, dtype=np.float64)
    qid = None if qid is None else np.asarray(qid)
    return _Encoded(matrix, model._known_labels(np.asarray(y)), weight, qid, held_out)


def _of_worker(part: _Encoded, number: int, n_workers: int) -> _Encoded:
    """Return the rows of the queries that belong to one worker."""
    queries = np.asarray(part.qid)
    if queries.dtype.kind not in "iub":  # numbers and text may be hashed, whatever their type here
        queries = queries.astype(str).astype(object)
    keep = pd.util.hash_array(queries) % n_workers == number
    weight = None if part.weight is None else part.weight[keep]
    return part._replace(X=part.X[keep], y=part.y[keep], weight=weight, qid=part.qid[keep])  # type: ignore[index]


def _sample(
    model: GradientBoostingRanker, rows: _Partitions, sizes: Sequence[int], cluster: _Cluster
) -> TrainingData:
    """Bring rows that stand for all of them here, in the order of the partitions."""
    lazy = [
        _lazy(_sampled)(part, model, k, size / sum(sizes), MOST_CELLS // model.n_features_in_)
        for k, (part, size) in enumerate(zip(rows.parts(), sizes, strict=True))
    ]
    parts = [part for part in cluster.compute(lazy, "sampling") if len(part.y)]
    X, y, weight = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return TrainingData(X, y, weight, None)


def _sampled(
    part: Sequence[Any], model: GradientBoostingRanker, seed: int, share: float, most: int
) -> _Encoded:
    """Return positives and negatives, at most so many, of a partition that has a share of all rows."""
    X, y, weight, qid = part
    rows = _encode(X, y, weight, qid, model, held_out=False)
    chosen, copies = weighted_sample(rows.y > 0, seed, most, most, share)
    copies = copies if rows.weight is None else rows.weight[chosen] * copies
    return _Encoded(rows.X[chosen], rows.y[chosen], copies, None)


def _cuts(model: GradientBoostingRanker, sample: TrainingData) -> np.ndarray:
    """Place the cut points of the columns, the same from any number of workers."""
    weight = None if (sample.weights == 1).all() else sample.weights
    return cut_points(
        sample.X, model.columns_, max_bin=model.max_bins, sample_weight=weight, n_jobs=model.n_jobs
    )


def _companions(
    model: GradientBoostingRanker, settings: Settings, sample: TrainingData
) -> list[Any]:
    """Make the boosters that are averaged with the others, on the sample."""

    def part(seed: int) -> TrainingData:
        chosen, copies = weighted_sample(sample.y > 0, seed)
        return replace(sample.rows(chosen), sample_weight=sample.weights[chosen] * copies)

    makers = companions(settings, part)
    seeds = check_random_state(model.random_state).randint(2**31 - 1, size=settings.n_boosters)
    first = settings.n_boosters - len(makers)  # the seeds after those of the boosters
    return [make(model, int(seed)) for make, seed in zip(makers, seeds[first:], strict=True)]


# -- the cluster -----------------------------------------------------------------------------------


class _Shared(NamedTuple):
    """What every worker needs to know of a fit."""

    ranker: GradientBoostingRanker
    columns: Columns
    classes: np.ndarray
    n_features: int
    settings: Settings
    cuts: np.ndarray
    companions: list[Any]
    exchange: str
    checkpoint: Any
    queries: bool


class _Cluster:
    """A Dask client that notices when workers go, so that nothing waits for them for ever."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def workers(self) -> dict[str, Any]:
        """Return the workers that the scheduler knows now, by address; wait a while for the first."""
        end = time.monotonic() + _PATIENCE
        while True:
            found = self.client.scheduler_info(n_workers=-1)["workers"]
            if found or time.monotonic() > end:
                break
            time.sleep(_POLL)
        if not found:
            raise WorkerLostError(f"the cluster has had no worker for {_PATIENCE:.0f} s")
        return dict(sorted(found.items()))

    def compute(self, lazy: list[Any], stage: str) -> list[Any]:
        """Return the answers of delayed calls; Dask computes again what a lost worker held."""
        futures = self.client.compute(lazy)
        self._wait(futures, stage)
        return self.client.gather(futures)

    def _wait(self, futures: list[Any], stage: str, needed: Sequence[str] = ()) -> None:
        """Wait for futures; raise the first error, or `WorkerLostError` when a needed worker is gone."""
        while True:
            for future in futures:
                if future.status in ("error", "lost", "cancelled"):
                    _raise(future, stage)
            if all(future.status == "finished" for future in futures):
                return
            gone = set(needed) - set(self.workers())
            if gone:
                raise WorkerLostError(
                    f"{stage}: the worker {sorted(gone)[0]} was lost, and with it its rows; give "
                    "checkpoint=folder to go on with the others, or fit again"
                )
            time.sleep(_POLL)

    def train(
        self,
        shared: _Shared,
        rows: _Partitions,
        held_out: _Partitions | None,
        model: GradientBoostingRanker,
    ) -> GradientBoostingRanker:
        """Run the rounds on all workers; after a loss go on from the checkpoint, if there is one."""
        for attempt in range(RESTARTS + 1):
            lazy = [_lazy(_encode)(*part, model, False) for part in rows.parts()]
            if held_out is not None:
                lazy += [_lazy(_encode)(*part, model, True) for part in held_out.parts()]
            parts = self.client.compute(lazy)
            self._wait(parts, "encoding rows")
            try:
                return self._rounds(shared, parts)
            except WorkerLostError:
                if shared.checkpoint is None or attempt == RESTARTS:
                    raise
            finally:
                self.client.cancel(parts, force=True)
        raise AssertionError("unreachable")

    def _rounds(self, shared: _Shared, parts: list[Any]) -> GradientBoostingRanker:
        """Give each worker its rows, and let all of them run the rounds together."""
        workers = list(self.workers())
        if shared.queries:
            owned = [
                [
                    self.client.submit(_of_worker, part, k, len(workers), pure=False)
                    for part in parts
                ]
                for k in range(len(workers))
            ]
        else:
            owned = [[] for _ in workers]
            held = self.client.who_has(parts)
            for k, part in enumerate(parts):
                places = [workers.index(w) for w in held.get(part.key, ()) if w in workers]
                owned[places[0] if places else k % len(workers)].append(part)
        host = self.client.scheduler.address.split("://")[-1].rsplit(":", 1)[0].strip("[]")
        tracker = require_xgboost("tracker").RabitTracker(
            n_workers=len(workers), host_ip=_own_address(host), sortby="task"
        )
        tracker.start()
        arguments = {**tracker.worker_args(), "dmlc_timeout": _COLLECTIVE_TIMEOUT, "dmlc_retry": 1}
        futures = [
            self.client.submit(
                _train, shared, own, {**arguments, "dmlc_task_id": f"{k:06d}"}, workers=[worker],
                allow_other_workers=False, pure=False, retries=0,
            )
            for k, (worker, own) in enumerate(zip(workers, owned, strict=True))
        ]  # fmt: skip
        try:
            self._wait_for_rounds(futures, workers)
            return next(found for found in self.client.gather(futures) if found is not None)
        finally:
            self.client.cancel(futures, force=True)
            # workers that still wait for others get an error; freeing may wait for them in turn
            Thread(target=_free, args=(tracker,), daemon=True).start()

    def _wait_for_rounds(self, futures: list[Any], workers: list[str]) -> None:
        """Wait for the rounds; an error of one worker may come from the loss of another: that is the cause."""
        try:
            self._wait(futures, "boosting", workers)
        except WorkerLostError:
            raise
        except Exception:
            end = time.monotonic() + 10  # the scheduler may not have noticed yet
            while time.monotonic() < end:
                gone = set(workers) - set(self.workers())
                if gone:
                    raise WorkerLostError(
                        f"boosting: the worker {sorted(gone)[0]} was lost, and with it its rows; give "
                        "checkpoint=folder to go on with the others, or fit again"
                    ) from None
                time.sleep(_POLL)
            raise


def _free(tracker: Any) -> None:
    """Stop a tracker, whatever its workers have left it in."""
    with suppress(require_xgboost().core.XGBoostError):
        tracker.free()


def _raise(future: Any, stage: str) -> None:
    """Raise the error of a future; what Dask says of killed workers becomes `WorkerLostError`."""
    from distributed.scheduler import KilledWorker

    if future.status != "error":
        raise WorkerLostError(
            f"{stage}: the rows of a lost worker cannot be computed again; fit again"
        )
    error = future.exception()
    if isinstance(error, KilledWorker):
        raise WorkerLostError(
            f"{stage}: workers die while they work on {error.task}: {error}"
        ) from None
    raise error


def _own_address(scheduler_host: str) -> str:
    """Return this machine's address as the scheduler's machine sees it."""
    from distributed.utils import get_ip

    return scheduler_host if scheduler_host.startswith("127.") else get_ip(scheduler_host)


# -- on a worker -----------------------------------------------------------------------------------


def _train(shared: _Shared, parts: list[_Encoded], arguments: dict[str, Any]) -> Any:
    """Run the rounds on the rows of this worker; the first worker returns the fitted ranker."""
    from distributed import get_worker

    shared.ranker.n_jobs = max(1, get_worker().state.nthreads)
    with require_xgboost("collective").CommunicatorContext(**arguments):
        workers = Workers()
        fitted = _boost(shared, parts, workers)
        return fitted if workers.rank == 0 else None


def _boost(shared: _Shared, parts: list[_Encoded], workers: Workers) -> GradientBoostingRanker:
    """Run the rounds on the rows of this worker, together with the others."""
    ranker = shared.ranker
    ranker.columns_, ranker.classes_ = shared.columns, shared.classes
    ranker.n_features_in_, ranker.trained_on_sparse_ = shared.n_features, False
    rows, held_out = _joined(parts, shared)
    bins: Any = {"max_bin": ranker.max_bins, "n_jobs": ranker.n_jobs}
    reference = quantile_matrix(shared.cuts, ranker.columns_, **bins)
    matrix = quantile_matrix(rows.X, ranker.columns_, reference=reference, **bins)
    weight, counted = rows.sample_weight, ~held_out
    data = TrainingData(Rows(matrix, workers, shared.exchange), rows.y, weight, rows.qid)
    validation = _validation(ranker, shared, data, held_out, workers)
    before, scored = workers.bytes_sent, rows.X[counted]
    rounds: list[Any] = []
    whole = TrainingData(None, rows.y[counted], None if weight is None else weight[counted], None)
    fit_boosters(
        ranker, data, shared.settings, validation=validation, whole=whole,
        score=lambda boosters: np.stack([predict_margin(booster, scored) for booster in boosters]),
        others=[lambda *_, k=k: shared.companions[k] for k in range(len(shared.companions))],
        checkpoint=shared.checkpoint, callbacks=[rounds.append],
    )  # fmt: skip
    ranker.bytes_per_round_ = (workers.bytes_sent - before) / max(len(rounds), 1)
    return ranker


def _joined(parts: list[_Encoded], shared: _Shared) -> tuple[TrainingData, np.ndarray]:
    """Put the partitions of a worker together, and say which rows were given for validation."""
    parts = [part for part in parts if len(part.y)]
    if not parts:
        none = np.zeros(0)
        queries = np.zeros(0, np.int64) if shared.queries else None
        X = np.zeros((0, shared.n_features), np.float32)
        return TrainingData(X, none, None, queries), np.zeros(0, dtype=bool)
    X, y = (np.concatenate([part[k] for part in parts]) for k in range(2))
    held_out = np.concatenate([np.full(len(part.y), part.held_out) for part in parts])
    weight = None
    if any(part.weight is not None for part in parts):
        ones = [np.ones(len(part.y)) if part.weight is None else part.weight for part in parts]
        weight = np.concatenate(ones)
    qid = None
    if shared.queries:  # validation queries are others, whatever their names
        names = np.concatenate([np.asarray(part.qid, dtype=object) for part in parts])
        qid = 2 * np.unique(names.astype(str), return_inverse=True)[1] + held_out
        qid = np.unique(qid, return_inverse=True)[1]
    return TrainingData(X, y, weight, qid), held_out


def _validation(
    ranker: GradientBoostingRanker,
    shared: _Shared,
    data: TrainingData,
    given: np.ndarray,
    exchange: Exchange,
) -> HeldOut | None:
    """Return the validation rows of this worker: those given, or a share of its own."""
    any_given = exchange.combine(np.array([float(given.any())]), "max")[0] > 0
    if not any_given and ranker.early_stopping_rounds is None:
        return None
    held_out = given
    if not any_given:
        seed = check_random_state(ranker.random_state).randint(2**31 - 1)
        random = np.random.default_rng((seed, exchange.rank))
        if data.qid is None:
            held_out = random.random(len(data.y)) < ranker.validation_fraction
        else:
            drawn = random.random(int(data.qid.max(initial=-1)) + 1) < ranker.validation_fraction
            held_out = drawn[data.qid]
    kept = [(data.y > 0) & m for m in (held_out, ~held_out)]
    kept += [(data.y == 0) & m for m in (held_out, ~held_out)]
    found = exchange.combine(np.array([float(np.count_nonzero(mask)) for mask in kept]), "sum")
    if (found == 0).any():
        raise ValueError(
            "the validation or the training rows hold only one class; give an eval_set"
        )
    graded = settings_objectives(shared.settings)[0].graded
    metric, by_grade = ranker._validation_metric(graded, data.qid is not None)
    rows = np.flatnonzero(held_out)
    weight = None if data.sample_weight is None else data.sample_weight[rows]
    qid = None if data.qid is None else data.qid[rows]
    measured = TrainingData(None, data.y[rows], weight, qid)
    return HeldOut(rows, measured, metric, by_grade, ranker.early_stopping_rounds, exchange)
