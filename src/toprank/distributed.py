"""Boosting on rows that are spread over the workers of a Dask cluster.

A ranking objective needs the whole list, and no worker has it. What travels is either the scores of all
rows (exact: every worker then sees the list of one machine) or, for long lists, a histogram of the scores
by label (`toprank.objectives.binned`). XGBoost grows the trees with its own distributed histograms. The
answer is an ordinary fitted `GradientBoostingRanker`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import check_random_state

from toprank.base import threshold_for_positives
from toprank.boosting import GradientBoostingRanker
from toprank.boosting._xgboost import predict_margin, require_xgboost
from toprank.boosting.automatic import automatic_rate
from toprank.boosting.tree_parameters import tree_parameters
from toprank.columns import Columns
from toprank.objectives import Objective
from toprank.objectives.binned import binned_gradient_hessian

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
    model = _checked(ranker, exchange)
    rows = _Partitions.of(X, y, sample_weight)
    _learn_columns_and_labels(model, rows)
    rows = rows.coded(model)
    seeds = check_random_state(model.random_state).randint(2**31 - 1, size=model.n_seeds)
    boosters = [_train(model, rows, int(seed), exchange, client) for seed in seeds]
    model.boosters_, model.n_estimators_ = boosters, model.n_estimators
    model.validation_scores_, model.trained_on_sparse_ = [], False
    model.offset_ = _threshold(model, rows)
    return model


@dataclass
class SpreadObjective:
    """An objective as XGBoost calls it on each worker, with what the workers have to share.

    Attributes
    ----------
    objective : Objective
    exchange : {"exact", "histogram"}
    subsample : float
        Share of the rows that each round draws; the others have no gradient.
    seed : int
    n_points : int
        Of the histogram.
    """

    objective: Objective
    exchange: str
    subsample: float = 1.0
    seed: int = 0
    n_points: int = 65_536
    _round: int = field(default=0, init=False)
    _labels: np.ndarray | None = field(default=None, init=False)

    def __call__(self, scores: np.ndarray, matrix: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian, rescaled for trees, of the rows of this worker."""
        y = np.asarray(matrix.get_label(), dtype=np.float64)
        weight = matrix.get_weight()
        weight = None if len(weight) == 0 else np.asarray(weight, dtype=np.float64)
        return self.gradient_hessian(y, np.asarray(scores, dtype=np.float64), weight)

    def gradient_hessian(
        self, y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same from arrays; to be called by all workers at once."""
        weight = self._drawn(y, weight)
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
        gradient, hessian = self.objective.tree_gradient_hessian(
            labels, whole, sample_weight=None if (weights == 1).all() else weights
        )
        return gradient[mine], hessian[mine]

    def _drawn(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray | None:
        """Weights with zeros outside this round's draw: the same share of each label here."""
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
    """A copy of the ranker, if its parameters can be kept on a cluster."""
    if exchange not in EXCHANGES:
        raise ValueError(f"exchange must be one of {', '.join(EXCHANGES)}, got {exchange!r}")
    if ranker.step != "newton":
        raise ValueError("on a cluster steps must be Newton's: set step='newton'")
    if ranker.early_stopping_rounds is not None:
        raise ValueError(
            "on a cluster the number of rounds is fixed: set early_stopping_rounds=None"
        )
    model = clone(ranker)
    model._check_parameters()
    return model


@dataclass(frozen=True)
class _Partitions:
    """The partitions of the rows, their labels and their weights, one delayed object for each."""

    X: list[Any]
    y: list[Any]
    weight: list[Any] | None

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any) -> _Partitions:
        parts = [None if c is None else _delayed_parts(c) for c in (X, y, sample_weight)]
        for name, part in zip(("y", "sample_weight"), parts[1:], strict=True):
            if part is not None and len(part) != len(parts[0] or ()):
                raise ValueError(
                    f"{name} has {len(part)} partitions and X has {len(parts[0] or ())}; "
                    "they must be cut at the same rows (align them, or repartition both)"
                )
        return cls(*parts)  # type: ignore[arg-type]

    def coded(self, model: GradientBoostingRanker) -> _Partitions:
        """Float matrices and labels 0, 1, ... kept in the memory of the workers."""
        import dask

        X = [dask.delayed(_matrix)(part, model.columns_) for part in self.X]
        y = [dask.delayed(_codes)(part, model) for part in self.y]
        kept = dask.persist(*X, *y, *(self.weight or ()))
        n = len(X)
        return _Partitions(
            list(kept[:n]), list(kept[n : 2 * n]), list(kept[2 * n :]) if self.weight else None
        )


def _delayed_parts(collection: Any) -> list[Any]:
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"X, y and sample_weight must be Dask collections, not {type(collection).__name__}; "
            "rows in the memory of one machine are fitted by GradientBoostingRanker.fit"
        )
    return list(np.asarray(collection.to_delayed(), dtype=object).ravel())


def _learn_columns_and_labels(model: GradientBoostingRanker, rows: _Partitions) -> None:
    """Set what `fit` sets from the whole table: its columns, categories and classes."""
    import dask

    kinds = dask.compute(*[dask.delayed(_columns_of)(part) for part in rows.X])
    labels = dask.compute(*[dask.delayed(np.unique)(part) for part in rows.y])
    sizes = dask.compute(*[dask.delayed(len)(part) for part in rows.y])
    if sum(sizes) == 0:
        raise ValueError("the collections have no rows")
    first = next(part for part, size in zip(rows.X, sizes, strict=True) if size)
    model._check_rows(dask.compute(dask.delayed(_head)(first))[0], reset=True)
    model.columns_ = Columns.union([k for k, size in zip(kinds, sizes, strict=True) if size])
    model._check_labels(np.concatenate(labels))


def _columns_of(part: Any) -> Columns:
    return Columns.of(part) if isinstance(part, pd.DataFrame) else Columns.numeric(part.shape[1])


def _head(part: Any) -> Any:
    return part.iloc[:2] if isinstance(part, pd.DataFrame) else part[:2]


def _matrix(part: Any, columns: Columns) -> np.ndarray:
    if isinstance(part, pd.DataFrame):
        return np.ascontiguousarray(columns.matrix(part))
    return np.asarray(part, dtype=np.float64)


def _codes(part: Any, model: GradientBoostingRanker) -> np.ndarray:
    return model._known_labels(np.asarray(part))


def _train(
    model: GradientBoostingRanker, rows: _Partitions, seed: int, exchange: str, client: Any
) -> Any:
    """One booster, by XGBoost's own distributed training."""
    import dask
    import dask.array as da
    from distributed import default_client

    require_xgboost()
    import xgboost.dask as spread

    client = default_client() if client is None else client
    weights = [None] * len(rows.y) if rows.weight is None else rows.weight
    counted = zip(rows.y, weights, strict=True)
    counts = dask.compute(*[dask.delayed(_count)(*part) for part in counted])
    sizes = [size for size, _, _ in counts]

    def joined(parts: list[Any], width: int | None) -> Any:
        shapes = [(n,) if width is None else (n, width) for n in sizes]
        arrays = [
            da.from_delayed(part, shape, dtype=np.float64)
            for part, shape in zip(parts, shapes, strict=True)
        ]
        return da.concatenate(arrays)

    n_rows, objective = sum(sizes), model._objective()
    if exchange == "auto":
        exchange = "exact" if n_rows <= _LONGEST_EXACT or objective.by_rank else "histogram"
    matrix = spread.DaskQuantileDMatrix(
        client,
        joined(rows.X, model.n_features_in_),
        joined(rows.y, None),
        weight=None if rows.weight is None else joined(rows.weight, None),
        max_bin=model.max_bins,
        feature_types=["c" if c else "q" for c in model.columns_.is_category],
        enable_categorical=bool(model.columns_.is_category.any()),
    )
    base = 0.0
    if objective.pointwise:
        base = float(np.log(sum(p for _, p, _ in counts) / sum(n for _, _, n in counts)))
    parameters = {
        **tree_parameters(model, n_rows),
        "eta": model.learning_rate or automatic_rate(n_rows),
        "seed": seed,
        "base_score": 0.0,
        "objective": "reg:squarederror",
        "disable_default_eval_metric": True,
    }
    parameters.pop("nthread")  # what a worker has is the cluster's choice
    shared = SpreadObjective(
        _Shifted(objective, base) if base else objective,  # type: ignore[arg-type]
        exchange,
        model.subsample,
        seed,
    )
    found = spread.train(client, parameters, matrix, model.n_estimators, obj=shared)
    return found["booster"]


def _count(y: np.ndarray, weight: Any) -> tuple[int, float, float]:
    """Rows, and the weight of the positives and of the negatives."""
    ones = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    return len(y), float(ones[y > 0].sum()), float(ones[y == 0].sum())


@dataclass(frozen=True)
class _Shifted:
    """A pointwise objective that starts at the base rate, as on one machine."""

    objective: Objective
    base: float
    pointwise: bool = True

    def gradient_hessian(
        self, y: np.ndarray, scores: np.ndarray, *, sample_weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        return self.objective.gradient_hessian(y, scores + self.base, sample_weight=sample_weight)


def _threshold(model: GradientBoostingRanker, rows: _Partitions) -> float:
    """The cut that flags as many training rows as there are positives."""
    import dask

    def score(part: np.ndarray, boosters: list[Any]) -> np.ndarray:
        return np.mean([predict_margin(booster, part) for booster in boosters], axis=0)

    scores = dask.compute(*[dask.delayed(score)(part, model.boosters_) for part in rows.X])
    labels = dask.compute(*rows.y)
    weight = None
    if rows.weight is not None:
        weight = np.concatenate([np.asarray(w, float) for w in dask.compute(*rows.weight)])
    raw_scores = np.concatenate(scores)
    model._warn_if_constant(raw_scores)
    return threshold_for_positives(np.concatenate(labels) > 0, raw_scores, weight)


# -- what the workers tell each other -------------------------------------------------------------


def _rank() -> int:
    from xgboost import collective

    return int(collective.get_rank())


def _combine(array: np.ndarray, how: str) -> np.ndarray:
    """The elementwise minimum, maximum or sum of an array over the workers."""
    from xgboost import collective

    operations = {
        "min": collective.Op.MIN,
        "max": collective.Op.MAX,
        "sum": collective.Op.SUM,
    }
    array = np.ascontiguousarray(array, dtype=np.float64)
    return collective.allreduce(array, operations[how]).reshape(array.shape)


def _gathered(columns: np.ndarray) -> tuple[np.ndarray, slice]:
    """The columns of all workers one after the other, and where one's own are among them."""
    from xgboost import collective

    sizes = np.zeros(collective.get_world_size())
    sizes[_rank()] = columns.shape[1]
    ends = np.cumsum(_combine(sizes, "sum")).astype(np.int64)
    mine = slice(int(ends[_rank()]) - columns.shape[1], int(ends[_rank()]))
    whole = np.zeros((len(columns), int(ends[-1])))
    whole[:, mine] = columns
    return _combine(whole, "sum"), mine
