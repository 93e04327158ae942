"""Boosting on rows that are spread over the workers of a Dask cluster.

A ranking objective needs the whole list, and no worker has it. What travels is either the scores of all
rows (exact: every worker then sees the list of one machine) or, for long lists, a histogram of the scores
by label (`toprank.objectives.binned`). XGBoost grows the trees with its own distributed histograms. The
answer is an ordinary fitted `GradientBoostingRanker`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state

from toprank.base import threshold_for_positives
from toprank.boosting import GradientBoostingRanker
from toprank.boosting.xgboost_helpers import (
    booster_parameters,
    column_types,
    predict_margin,
    require_xgboost,
)
from toprank.columns import Columns
from toprank.objectives import Objective, ScoredList
from toprank.objectives.binned import binned_gradient_hessian
from toprank.validation import check_choice

__all__ = ["SpreadObjective", "fit_distributed"]

EXCHANGES = ("auto", "exact", "histogram")
_LONGEST_EXACT = 1_000_000  # rows of a list whose scores may all travel each round


def fit_distributed(
    ranker: GradientBoostingRanker,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    client: Any = None,
    exchange: str = "auto",
) -> GradientBoostingRanker:
    """Fit a boosted ranker on Dask collections.

    Parameters
    ----------
    ranker : GradientBoostingRanker
        What to fit; it is not changed. Steps must be Newton's, and the number of rounds fixed
        (`early_stopping_rounds=None`).
    X : dask DataFrame or dask Array
        Rows in partitions. Text and category columns are categories, as in a table.
    y, sample_weight : dask Series or dask Array
        In the partitions of `X`.
    client : distributed.Client, optional
        By default the current one.
    exchange : {"auto", "exact", "histogram"}, default="auto"
        What the workers tell each other each round: the scores of all rows, so that gradients are those
        of one machine; or histograms of the scores on 65,536 points, whose size does not grow with
        the rows (gradients within 1e-5 of the greatest for smooth objectives; those that go by ranks
        take the ranks from the histogram too, and err most where their metric has an edge). "auto" is
        exact up to 1,000,000 rows, and for objectives that go by ranks.

    Returns
    -------
    model : GradientBoostingRanker
        Fitted, the same as from one machine but for the quantiles that XGBoost bins columns by, which
        each worker sketches from its own rows; Dask decides which those are, so that two fits with one
        seed may differ a little. Its threshold comes from all training scores, which are brought
        together once.

    Examples
    --------
    >>> from dask.distributed import Client  # doctest: +SKIP
    >>> from toprank import GradientBoostingRanker
    >>> model = fit_distributed(GradientBoostingRanker(), X, y, client=Client())  # doctest: +SKIP
    """
    from distributed import default_client

    model = _checked(ranker, exchange)
    rows = _partitions(X, y, sample_weight)
    _learn_columns_and_labels(model, rows)
    rows = _encoded(model, rows)
    client = default_client() if client is None else client
    model.boosters_ = _boosters(model, rows, exchange, client)
    model.n_estimators_ = model.n_estimators
    model.validation_scores_, model.trained_on_sparse_ = [], False
    model.offset_ = _threshold(model, rows)
    return model


@dataclass
class SpreadObjective:
    """An objective as XGBoost calls it on each worker, with what the workers have to share.

    Each round draws a share `subsample` of the rows; the others have no gradient. `base_score` is added to all
    scores, which XGBoost counts from 0, and a histogram has `n_points`.
    """

    objective: Objective
    exchange: str
    subsample: float = 1.0
    seed: int = 0
    base_score: float = 0.0
    n_points: int = 65_536
    _round: int = field(default=0, init=False)
    _labels: np.ndarray | None = field(default=None, init=False)

    def __call__(self, scores: np.ndarray, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and Hessian, rescaled for trees, of the rows of this worker."""
        y = np.asarray(matrix.get_label(), dtype=np.float64)
        weight = matrix.get_weight()
        weight = None if len(weight) == 0 else np.asarray(weight, dtype=np.float64)
        return self.gradient_hessian(y, np.asarray(scores, dtype=np.float64), weight)

    def gradient_hessian(
        self, y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same from arrays; to be called by all workers at once."""
        weight, scores = self._drawn(y, weight), scores + self.base_score
        if self.objective.pointwise:
            return self.objective.gradient_hessian(y, scores, sample_weight=weight)
        if self.exchange == "histogram":
            return binned_gradient_hessian(
                self.objective, y, scores, sample_weight=weight, n_points=self.n_points,
                for_trees=True, combine=_combine,
            )  # fmt: skip
        if self._labels is None or self.subsample < 1:  # these travel once, unless they are drawn
            ones = np.ones(len(y)) if weight is None else weight
            self._labels = _gathered(np.stack((y, ones)))[0]
        labels, weights = self._labels
        (whole,), mine = _gathered(scores[None])
        rows = ScoredList.of(
            labels, whole, None if (weights == 1).all() else weights, graded=self.objective.graded
        )
        gradient, hessian = self.objective.scaled_gradient_hessian(rows)
        return gradient[mine], hessian[mine]

    def _drawn(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Return weights with zeros outside this round's draw: the same share of each label here."""
        if self.subsample == 1:
            return weight
        self._round += 1
        random = np.random.default_rng((self.seed, self._round, _rank()))
        chosen = np.zeros(len(y))
        for label in np.unique(y):
            rows = np.flatnonzero(y == label)
            size = max(1, round(self.subsample * len(rows)))
            chosen[random.choice(rows, size=size, replace=False)] = 1.0
        return chosen if weight is None else weight * chosen


def _checked(ranker: GradientBoostingRanker, exchange: str) -> GradientBoostingRanker:
    """Return a copy of the ranker, if its parameters can be kept on a cluster."""
    check_choice(exchange, "exchange", EXCHANGES)
    if ranker.step != "newton":
        raise ValueError("on a cluster steps must be Newton's: set step='newton'")
    if ranker.early_stopping_rounds is not None:
        raise ValueError(
            "on a cluster the number of rounds is fixed: set early_stopping_rounds=None"
        )
    model = clone(ranker)
    model._validate_params()
    model._check_trees()
    return model


class _Partitions(NamedTuple):
    """The partitions of the rows, their labels and their weights (or None), one delayed object each."""

    X: list[Any]
    y: list[Any]
    weight: list[Any]


def _partitions(X: Any, y: Any, sample_weight: Any) -> _Partitions:
    """Return the partitions of Dask collections that are cut at the same rows."""
    parts: list[list[Any]] = []
    for name, collection in (("X", X), ("y", y), ("sample_weight", sample_weight)):
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
                f"{name} has {len(parts[-1])} partitions and X has {len(parts[0])}; "
                "they must be cut at the same rows (align them, or repartition both)"
            )
    return _Partitions(*parts)


def _encoded(model: GradientBoostingRanker, rows: _Partitions) -> _Partitions:
    """Encode rows as float matrices and labels as 0, 1, ...; keep both in the memory of the workers."""
    import dask

    X = [dask.delayed(_matrix)(part, model.columns_) for part in rows.X]
    y = [dask.delayed(_labels)(part, model) for part in rows.y]
    return _Partitions(*dask.persist(X, y, rows.weight))


def _learn_columns_and_labels(model: GradientBoostingRanker, rows: _Partitions) -> None:
    """Set what `fit` sets from the whole table: its columns, categories and classes."""
    import dask

    columns, labels, sizes = dask.compute(
        [dask.delayed(_columns_of)(part) for part in rows.X],
        [dask.delayed(np.unique)(part) for part in rows.y],
        [dask.delayed(len)(part) for part in rows.y],
    )
    if sum(sizes) == 0:
        raise ValueError("the collections have no rows")
    first = next(part for part, size in zip(rows.X, sizes, strict=True) if size)
    model._check_rows(first[:2].compute(), reset=True)
    model.columns_ = Columns.union([c for c, size in zip(columns, sizes, strict=True) if size])
    model._check_labels(np.concatenate(labels))


def _columns_of(part: Any) -> Columns:
    return Columns.of(part) if isinstance(part, pd.DataFrame) else Columns.numeric(part.shape[1])


def _matrix(part: Any, columns: Columns) -> np.ndarray:
    if isinstance(part, pd.DataFrame):
        return np.ascontiguousarray(columns.matrix(part))
    return np.asarray(part, dtype=np.float64)


def _labels(part: Any, model: GradientBoostingRanker) -> np.ndarray:
    """Return labels as 0, 1, ..."""
    return model._known_labels(np.asarray(part))


def _boosters(
    model: GradientBoostingRanker, rows: _Partitions, exchange: str, client: Any
) -> list[Any]:
    """Train a booster for each seed by XGBoost's own distributed training."""
    import dask

    parts = zip(rows.y, rows.weight, strict=True)
    counts = np.array(dask.compute(*[dask.delayed(_count)(*part) for part in parts]))
    n_rows, positive, negative = counts.sum(axis=0)
    objective, base_score = model._objective(), 0.0
    if objective.pointwise:  # start at the base rate, as on one machine
        base_score = float(np.log(positive / negative))
    if exchange == "auto":
        exchange = "exact" if n_rows <= _LONGEST_EXACT or objective.by_rank else "histogram"
    matrix = _quantile_matrix(client, model, rows, counts[:, 0].astype(int).tolist())
    boosters = []
    for seed in check_random_state(model.random_state).randint(2**31 - 1, size=model.n_seeds):
        parameters = booster_parameters(model, int(n_rows), int(seed))
        parameters.pop("nthread")  # what a worker has is the cluster's choice
        shared = SpreadObjective(objective, exchange, model.subsample, int(seed), base_score)
        found = require_xgboost("dask").train(
            client, parameters, matrix, model.n_estimators, obj=shared
        )
        boosters.append(found["booster"])
    return boosters


def _quantile_matrix(
    client: Any, model: GradientBoostingRanker, rows: _Partitions, sizes: list[int]
) -> Any:
    """Bin the rows of all workers."""
    import dask.array as da

    def joined(parts: list[Any], *width: int) -> Any:
        shaped = zip(parts, sizes, strict=True)
        return da.concatenate(
            [da.from_delayed(part, (n, *width), dtype=np.float64) for part, n in shaped]
        )

    return require_xgboost("dask").DaskQuantileDMatrix(
        client,
        joined(rows.X, model.n_features_in_),
        joined(rows.y),
        weight=None if rows.weight[0] is None else joined(rows.weight),
        max_bin=model.max_bins,
        **column_types(model.columns_),
    )


def _count(y: np.ndarray, weight: Any) -> tuple[float, float, float]:
    """Return the number of rows, and the weight of the positives and of the negatives."""
    ones = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    return float(len(y)), float(ones[y > 0].sum()), float(ones[y == 0].sum())


def _threshold(model: GradientBoostingRanker, rows: _Partitions) -> float:
    """Return the cut that flags as many training rows as there are positives."""
    import dask

    def score(part: np.ndarray, boosters: list[Any]) -> np.ndarray:
        return np.mean([predict_margin(booster, part) for booster in boosters], axis=0)

    scores = dask.compute(*[dask.delayed(score)(part, model.boosters_) for part in rows.X])
    labels, weights = dask.compute(rows.y, rows.weight)
    weight = None if weights[0] is None else np.concatenate([np.asarray(w, float) for w in weights])
    raw_scores = np.concatenate(scores)
    model._warn_if_constant(raw_scores)
    return threshold_for_positives(np.concatenate(labels) > 0, raw_scores, weight)


# -- what the workers tell each other -------------------------------------------------------------


def _rank() -> int:
    return int(require_xgboost("collective").get_rank())


def _combine(array: np.ndarray, how: str) -> np.ndarray:
    """Return the elementwise minimum, maximum or sum of an array over the workers."""
    collective = require_xgboost("collective")
    array = np.ascontiguousarray(array, dtype=np.float64)
    return collective.allreduce(array, collective.Op[how.upper()]).reshape(array.shape)


def _gathered(columns: np.ndarray) -> tuple[np.ndarray, slice]:
    """Return the columns of all workers one after the other, and where one's own are among them."""
    collective = require_xgboost("collective")
    sizes = np.zeros(collective.get_world_size())
    sizes[_rank()] = columns.shape[1]
    ends = np.cumsum(_combine(sizes, "sum")).astype(np.int64)
    mine = slice(int(ends[_rank()]) - columns.shape[1], int(ends[_rank()]))
    whole = np.zeros((len(columns), int(ends[-1])))
    whole[:, mine] = columns
    return _combine(whole, "sum"), mine
