"""Boosting and scoring of rows that do not fit in memory, streamed by DuckDB.

A first pass collects what `fit` takes from a whole table: labels, categories, and the number of rows of each
category where there are many. A second one keeps a sample, all positives in it, whose quantiles place the bins.
Then XGBoost takes the rows a batch at a time and keeps them binned in files of its own, of which it holds
a few pages at once. Scores, gradients and labels stay in memory: about 40 bytes a row, however many columns
there are.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData, WeightScale
from toprank.boosting import GradientBoostingRanker
from toprank.boosting.engine import HeldOut, Rows
from toprank.boosting.settings import MAX_CATEGORIES, Settings
from toprank.boosting.training import companions, fit_boosters, settings_objectives
from toprank.boosting.xgboost_helpers import (
    cut_points,
    external_matrix,
    predict_margin,
    quantile_matrix,
    require_xgboost,
)
from toprank.columns import Columns
from toprank.rule import quote_identifier
from toprank.sampling import sample_classes
from toprank.sources import DUCKDB_MEMORY, OpenSource, Source, memory_bytes
from toprank.stopping import hold_out
from toprank.tables import atomic_path
from toprank.temporary import to_be_removed

__all__ = ["fit_source", "score_batches", "score_source"]

BYTES_A_ROW = 80  # scores, gradients, labels, XGBoost's places and margins; what is sorted
LIBRARIES = 500 * 10**6
MARGIN = 30 * 10**6  # what is loaded or compiled on the way, and gaps between blocks of memory
BATCHES_AT_ONCE = 6  # copies of a batch on its way: Arrow, pandas, floats, pages read ahead
FEWEST_ROWS = 1_000  # of a batch
COUNTED_COLUMNS = 16  # at once
SAMPLED_NEGATIVES = 50  # for each positive, in the rows that trees at random cuts grow on
FEWEST_SAMPLED, MOST_SAMPLED = 20_000, 200_000  # of all of them
_NUMBERS = (
    "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
    "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN",
)  # fmt: skip


def fit_source(
    ranker: GradientBoostingRanker,
    source: Any = None,
    *,
    target: str,
    pos_label: Any = None,
    sample_weight: str | None = None,
    drop: Sequence[str] = (),
    sql: str | None = None,
    memory: int | str = "2GB",
    folder: str | None = None,
    checkpoint: Any = None,
    callbacks: Sequence[Any] = (),
) -> GradientBoostingRanker:
    """Fit a boosted ranker on streamed rows: see `GradientBoostingRanker.fit_source`."""
    ranker._validate_params()
    ranker._check_streamed("out of core")
    limit = memory_bytes(memory) or 0
    rows = Source.of(source, sql=sql, memory=_duckdb_memory(limit))
    apart = {target, *drop, *([] if sample_weight is None else [sample_weight])}
    wanted = [name for name in rows.schema() if name not in set(drop)]
    features = [name for name in wanted if name not in apart]
    with (
        rows.opened(wanted, folder) as stream,
        tempfile.TemporaryDirectory(dir=folder) as cache,
        to_be_removed(Path(cache)),
    ):
        n_rows = stream.count()
        leaves = ranker.max_leaves or 2 ** (ranker.max_depth or 5)
        plan = _plan(limit, n_rows, len(features), 16 * ranker.max_bins * 2 * leaves)
        _learn_columns(ranker, stream, features, sample_weight)
        _learn_labels(ranker, stream, target, pos_label)
        y, weight = _labels_and_weights(ranker, stream, target, sample_weight, n_rows)

        def batches() -> Iterator[np.ndarray]:
            for table in stream.batches(plan.batch, features):
                yield _matrix(ranker, table, stream.name)

        # in a call of its own: XGBoost's matrix must be gone before its files are
        return _boost(ranker, batches, y, weight, plan, cache, checkpoint, callbacks)


def _boost(
    ranker: GradientBoostingRanker,
    batches: Callable[[], Iterator[np.ndarray]],
    y: np.ndarray,
    weight: np.ndarray | None,
    plan: _Plan,
    cache: str,
    checkpoint: Any,
    callbacks: Sequence[Any],
) -> GradientBoostingRanker:
    """Bin the streamed rows into files in the folder `cache` and boost on them."""
    columns = ranker.columns_
    bins: Any = {"max_bin": ranker.max_bins, "n_jobs": ranker.n_jobs}
    rows = TrainingData(None, y, weight, None)
    sample = _sample(batches(), rows, 0, plan.sample, plan.sample)
    cuts = cut_points(sample.X, columns, sample_weight=sample.sample_weight, **bins)
    del sample
    reference = quantile_matrix(cuts, columns, **bins)
    matrix = external_matrix(
        batches, columns, reference, cache=os.path.join(cache, "pages"), **bins
    )
    ranker.trained_on_sparse_ = False
    data = replace(rows, X=Rows(matrix))
    n_positives = float(np.count_nonzero(y) if weight is None else weight @ (y > 0))
    settings = Settings.of(ranker, float(len(y) if weight is None else weight.sum()), n_positives)

    def score(boosters: Sequence[Any]) -> np.ndarray:
        margins, start = np.empty((len(boosters), len(y)), np.float32), 0
        for batch in batches():
            for k, booster in enumerate(boosters):
                margins[k, start : start + len(batch)] = predict_margin(booster, batch)
            start += len(batch)
        return margins

    others = companions(settings, lambda seed: _sample(batches(), data, seed, most=plan.sample))
    fit_boosters(
        ranker, data, settings, score=score, others=others,
        validation=_held_out(ranker, settings, data), checkpoint=checkpoint, callbacks=callbacks,
    )  # fmt: skip
    return ranker


def score_batches(
    model: Any, source: Any = None, *, sql: str | None = None, memory: int | str = "2GB",
    columns: Sequence[str] = (), folder: str | None = None,
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:  # fmt: skip
    """Yield the rows of a source, batch by batch, and their scores.

    Each table has the columns that the model was trained on and those named in `columns`.

    Examples
    --------
    >>> from toprank import GradientBoostingRanker
    >>> query = "SELECT i * 7 % 100 AS a, (a > 90)::INT AS y FROM range(1000) AS t(i)"
    >>> model = GradientBoostingRanker(n_estimators=3).fit_source(sql=query, target="y")
    >>> sum(len(scores) for _, scores in score_batches(model, sql=query))
    1000
    """
    check_is_fitted(model)
    features = [str(name) for name in model.feature_names_in_]
    limit = memory_bytes(memory) or 0
    rows = Source.of(source, sql=sql, memory=_duckdb_memory(limit))
    plan = _plan(limit, 0, len(features) + len(columns))
    with rows.opened(list(dict.fromkeys([*features, *columns])), folder) as stream:
        for table in stream.batches(plan.batch):
            yield table, model.decision_function(table[features])


def score_source(
    model: Any,
    source: Any = None,
    out: Any = None,
    *,
    columns: Sequence[str] = (),
    sql: str | None = None,
    memory: int | str = "2GB",
    folder: str | None = None,
) -> int:
    """Score the rows of files or a query and write the scores to a Parquet file; return how many rows.

    Parameters
    ----------
    model : estimator
        Any fitted ranker that was trained on a table.
    source : path, optional
        As in `GradientBoostingRanker.fit_source`.
    out : path
        Parquet file to write, completely or not at all: the `columns` asked for, and `score`, in float32.
    columns : sequence of str
        Columns of the source to keep, such as an identifier.
    sql, memory, folder
        As in `GradientBoostingRanker.fit_source`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from toprank import GradientBoostingRanker
    >>> query = "SELECT i, i * 7 % 100 AS a, (a > 90)::INT AS y FROM range(1000) AS t(i)"
    >>> model = GradientBoostingRanker(n_estimators=3).fit_source(sql=query, target="y", drop=["i"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     score_source(model, sql=query, out=f"{folder}/scores.parquet", columns=["i"])
    1000
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if out is None:
        raise TypeError("name the Parquet file to write: out=...")
    if "score" in columns:
        raise ValueError("a column 'score' cannot be kept beside the scores; rename it in a query")
    writer, n_rows = None, 0
    with atomic_path(out) as temporary:
        try:
            batches = score_batches(
                model, source, sql=sql, memory=memory, columns=columns, folder=folder
            )
            for table, scores in batches:
                kept = table[list(columns)].assign(score=scores.astype(np.float32))
                block = pa.Table.from_pandas(kept, preserve_index=False)
                if writer is None:
                    writer = pq.ParquetWriter(temporary, block.schema)
                writer.write_table(block.cast(writer.schema))
                n_rows += len(scores)
            if writer is None:
                raise ValueError("the source has no rows to score")
        finally:
            if writer is not None:
                writer.close()
    return n_rows


# -- the first pass --------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """How many rows to read at once, and how many to hold as a sample."""

    batch: int
    sample: int


def _plan(limit: int, n_rows: int, n_columns: int, bytes_a_column: int = 0) -> _Plan:
    """Divide the memory that is not needed otherwise, or say how much is.

    What this process, the rows, the columns in XGBoost's histograms and DuckDB leave goes in equal shares to
    the batches on their way to XGBoost and to the sample.
    """
    used = _used_memory() + MARGIN + _duckdb_memory(limit)
    used += bytes_a_column * n_columns + BYTES_A_ROW * n_rows
    fewest = 2 * 8 * n_columns * BATCHES_AT_ONCE * FEWEST_ROWS
    if limit < used + fewest:
        raise ValueError(
            f"memory={limit / 1e9:.2g} GB is too little for {n_rows:,} rows of {n_columns} columns: "
            f"about {(used + fewest) / 1e9:.2g} GB are needed"
        )
    cells = (limit - used) // (2 * max(n_columns, 1))
    return _Plan(
        batch=int(np.clip(cells // (8 * BATCHES_AT_ONCE), FEWEST_ROWS, 1_000_000)),
        sample=int(np.clip(cells // 4, FEWEST_ROWS, MOST_SAMPLED)),
    )


def _duckdb_memory(limit: int) -> int:
    """Return the bytes that DuckDB may use: a sixth of what this process does not use yet."""
    require_xgboost()  # so that it counts as used
    return max((limit - _used_memory()) // 6, DUCKDB_MEMORY)


def _used_memory() -> int:
    """Return the bytes that Python and the libraries take: what this process holds, up to a usual figure.

    What earlier work has freed is given back to the system first, so that it does not count.
    """
    import pyarrow as pa

    for pool in (pa.default_memory_pool(), pa.system_memory_pool()):
        pool.release_unused()
    try:
        with open("/proc/self/statm") as file:
            held = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return LIBRARIES
    return min(held, LIBRARIES)  # tables that the user holds are not the fit's


def _learn_columns(
    ranker: GradientBoostingRanker, stream: OpenSource, features: list[str], weight: str | None
) -> None:
    """Set what `fit` sets from a table: names, categories in order, counts of those of many."""
    if not features:
        raise ValueError(f"{stream.name} has no columns to learn from")
    names = [quote_identifier(name) for name in features]
    if stream.count() == 0:
        raise ValueError(f"{stream.name} has no rows")
    counts_of_values: list[int] = []
    for start in range(0, len(names), COUNTED_COLUMNS):  # few at a time: of each, a page is held
        block = ", ".join(f"count({name})" for name in names[start : start + COUNTED_COLUMNS])
        counts_of_values += stream.rows(f"SELECT {block}")[0]
    empty = [name for name, n in zip(features, counts_of_values, strict=True) if n == 0]
    if empty:
        raise ValueError(
            f"columns of {stream.name} that hold no value in any row: {', '.join(map(repr, empty))}; "
            "leave them out by drop=[...]"
        )
    categories: list[np.ndarray | None] = []
    counts: list[np.ndarray | None] = []
    amount = "count(*)" if weight is None else f"sum({quote_identifier(weight)})"
    for feature, name in zip(features, names, strict=True):
        kind = stream.types[feature].split("(")[0]
        values, held = None, None
        if kind not in _NUMBERS:
            if kind not in ("VARCHAR", "ENUM"):
                raise ValueError(
                    f"column {feature!r} has type {stream.types[feature]}, which is neither numbers nor "
                    "categories; turn it into numbers in a query, or leave it out by drop=[...]"
                )
            found = dict(
                stream.rows(
                    f"SELECT {name}::VARCHAR, {amount}", f"WHERE {name} IS NOT NULL GROUP BY 1"
                )
            )
            values = np.sort(np.array(list(found), dtype=np.str_))
            if len(values) > (ranker.max_categories or MAX_CATEGORIES):
                held = np.array([float(found[value]) for value in values.tolist()])
        categories.append(values)
        counts.append(held)
    any_counts = any(held is not None for held in counts)
    ranker.columns_ = Columns(
        tuple(features), tuple(categories), tuple(counts) if any_counts else ()
    )
    ranker.feature_names_in_ = np.array(features, dtype=object)
    ranker.n_features_in_ = len(features)


def _learn_labels(
    ranker: GradientBoostingRanker, stream: OpenSource, target: str, pos_label: Any
) -> None:
    """Set the classes."""
    found = [
        row[0] for row in stream.rows(f"SELECT DISTINCT {quote_identifier(target)}", "LIMIT 300")
    ]
    if any(value is None or value != value for value in found):
        raise ValueError(f"column {target!r} of {stream.name}: some labels are missing")
    ranker._check_labels(np.array(found))
    if pos_label is not None:
        others = [label for label in found if label != pos_label]
        if len(others) != 1 or len(found) != 2:
            raise ValueError(f"pos_label {pos_label!r} must be one of two labels: {found[:5]}")
        ranker.classes_ = np.array([others[0], pos_label])


def _labels_and_weights(
    ranker: GradientBoostingRanker,
    stream: OpenSource,
    target: str,
    sample_weight: str | None,
    n_rows: int,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return labels as 0, 1, ... in one byte, and weights."""
    labels = np.empty(n_rows, np.uint8)
    weight = None if sample_weight is None else np.empty(n_rows)
    start, apart = 0, [target] if sample_weight is None else [target, sample_weight]
    for table in stream.batches(columns=apart):
        part = slice(start, start + len(table))
        cells = table[target].to_numpy()
        if len(ranker.classes_) == 2 and not ranker._accepts_grades():
            grades = (cells == ranker.classes_[1]).astype(np.float64)  # there are no others
        else:
            grades = ranker._known_labels(cells)
        if grades.max(initial=0.0) > 255:
            raise ValueError(f"column {target!r}: grades above 255 cannot be ranked out of core")
        labels[part] = grades
        if weight is not None:
            weight[part] = table[sample_weight].to_numpy(dtype=np.float64, na_value=np.nan)
        start += len(table)
    if weight is None:
        return labels, None
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"column {sample_weight!r} must hold finite weights of at least 0")
    scale, columns = WeightScale.of(weight), ranker.columns_
    counts = [None if number is None else scale.apply(number) for number in columns.numbers]
    ranker.columns_ = replace(columns, numbers=tuple(counts))  # in the unit of the weights
    return labels, scale.apply(weight)


def _matrix(ranker: GradientBoostingRanker, table: pd.DataFrame, name: str) -> np.ndarray:
    """Return a batch as XGBoost takes it: float32, categories as codes or counts."""
    matrix = ranker.columns_.matrix(table)
    if np.isinf(matrix).any():
        bad = table.columns[int(np.flatnonzero(np.isinf(matrix).any(axis=0))[0])]
        raise ValueError(f"column {bad!r} of {name} holds infinite values")
    return np.ascontiguousarray(matrix, dtype=np.float32)


def _held_out(
    ranker: GradientBoostingRanker, settings: Settings, data: TrainingData
) -> HeldOut | None:
    """Hold rows out for early stopping, if it is asked for."""
    if ranker.early_stopping_rounds is None:
        return None
    graded = settings_objectives(settings)[0].graded
    metric, by_grade = ranker._validation_metric(graded, by_query=False)
    seed = check_random_state(ranker.random_state).randint(2**31 - 1)
    rows = np.flatnonzero(hold_out(data.y, ranker.validation_fraction, seed))
    weight = None if data.sample_weight is None else data.sample_weight[rows]
    kept = TrainingData(None, data.y[rows].astype(np.float64), weight, None)
    return HeldOut(rows, kept, metric, by_grade, ranker.early_stopping_rounds)


def _sample(
    batches: Iterator[np.ndarray],
    data: TrainingData,
    seed: int,
    fewest: int = FEWEST_SAMPLED,
    most: int = MOST_SAMPLED,
) -> TrainingData:
    """Return rows that stand for all of them: to place bins by, and to grow trees at random cuts on."""
    chosen, copies = weighted_sample(data.y > 0, seed, fewest, most)
    X, start, filled = None, 0, 0
    for batch in batches:
        end = filled + int(np.searchsorted(chosen[filled:], start + len(batch)))
        if X is None:
            X = np.empty((len(chosen), batch.shape[1]), np.float32)
        X[filled:end] = batch[chosen[filled:end] - start]
        start, filled = start + len(batch), end
    weight = None if data.sample_weight is None else data.sample_weight[chosen] * copies
    if weight is None and len(chosen) < len(data.y):
        weight = copies
    return TrainingData(X, data.y[chosen].astype(np.float64), weight, None)


def weighted_sample(
    positive: np.ndarray,
    seed: int,
    fewest: int = FEWEST_SAMPLED,
    most: int = MOST_SAMPLED,
    part: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose positives and negatives, at most `most` of each; also return how many rows each stands for.

    Of negatives there are 50 for each positive, but at least `fewest`. Where the rows are only a `part` of all,
    both numbers are meant for all of them.

    Examples
    --------
    >>> import numpy as np
    >>> chosen, copies = weighted_sample(np.arange(100_000) < 10, seed=0)
    >>> len(chosen), round(float(copies.sum()))
    (20010, 100000)
    """
    n_positives = int(np.count_nonzero(positive))
    n_negatives = len(positive) - n_positives
    fewest, most = math.ceil(fewest * part), math.ceil(most * part)
    wanted = min(max(SAMPLED_NEGATIVES * n_positives, fewest), most)
    chosen = sample_classes(positive, most, wanted, seed)
    drawn = positive[chosen]
    n_drawn = int(np.count_nonzero(drawn))
    copies = n_positives / max(n_drawn, 1), n_negatives / max(len(chosen) - n_drawn, 1)
    return chosen, np.where(drawn, *copies)
