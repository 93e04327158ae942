"""Score a few made-up rows with a model that was just put together.

A file whose parts are sound one by one may still not fit together. A model is only handed out after it has
scored rows made from what it says about its own columns.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from toprank.columns import Columns
from toprank.persistence.errors import require
from toprank.persistence.estimator_checks import is_wrapper

__all__ = ["columns_of", "probe"]

DENSE_COLUMNS = 20_000
N_ROWS = 3


def probe(model: Any) -> None:
    """Score, or transform, made-up rows; any error in there is the caller's to catch."""
    rows = probe_rows(model)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if hasattr(model, "decision_function"):
            scores = model.decision_function(rows)
        elif hasattr(model, "predict_proba"):
            scores = model.predict_proba(rows)[:, 1]
        else:
            require(model.transform(rows).shape[0] == N_ROWS, "it does not transform rows")
            return
    plain = isinstance(scores, np.ndarray) and scores.dtype.kind == "f"
    require(plain and scores.shape == (N_ROWS,), "it does not score rows")


def probe_rows(model: Any) -> Any:
    """Rows in the form that the model was trained on."""
    if hasattr(model, "schema_"):
        return _relational_rows(model.schema_)
    columns = columns_of(model)
    first = _first_step(model)
    missing = bool(getattr(first, "_accepts_missing", False))
    examples = _examples(first, columns)
    named = hasattr(model, "feature_names_in_")
    if not named and not examples and not columns.is_category.any():
        if len(columns.names) > DENSE_COLUMNS and getattr(first, "_accepts_sparse", False):
            ones = np.ones(N_ROWS)
            where = (np.arange(N_ROWS), np.arange(N_ROWS))
            return sparse.csr_matrix((ones, where), shape=(N_ROWS, len(columns.names)))
        cells = np.zeros((N_ROWS, len(columns.names)))
        cells[1:] = [[1.0], [np.nan if missing else -1.0]]
        return cells
    table = [
        _cells(values, examples.get(j), missing) for j, values in enumerate(columns.categories)
    ]
    frame = pd.concat(table, axis=1, keys=columns.names)
    return frame if named else frame.to_numpy()


def _cells(values: np.ndarray | None, examples: list[Any] | None, missing: bool) -> pd.Series:
    """Cells of one column: of the categories that are known, or a few numbers."""
    if examples is None and values is None:
        return pd.Series([0.0, 1.0, np.nan if missing else -1.0])
    known = examples or ([] if values is None else values.tolist())
    if not known:
        return pd.Series([None] * N_ROWS, dtype=object)
    cells = pd.Series([known[0], known[-1], None if missing else known[0]], dtype=object)
    return cells if isinstance(known[0], str) or missing else cells.infer_objects()


def _first_step(model: Any) -> Any:
    """What sees the rows first."""
    if is_wrapper(model):
        return _first_step(model.estimator_)
    steps = getattr(model, "steps", None)
    if steps:
        return _first_step(steps[0][1])
    inner = getattr(model, "calibrated_classifiers_", None)
    return _first_step(inner[0].estimator) if inner else model


def columns_of(model: Any) -> Columns:
    """The columns that a fitted model takes; in a pipeline, as far as its first step tells.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import LogisticRanker
    >>> X = [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]
    >>> columns_of(make_pipeline(StandardScaler(), LogisticRanker()).fit(X, [0, 0, 1])).names
    ('x0', 'x1')
    """
    first = _first_step(model)
    if hasattr(first, "columns_"):
        return first.columns_
    columns = Columns.numeric(int(getattr(first, "n_features_in_", 0)))
    names = getattr(first, "feature_names_in_", None)
    if names is not None:
        columns = Columns(tuple(map(str, names)), columns.categories)
    known = list(columns.categories)
    for j, values in _examples(first, columns).items():
        if isinstance(values[0], str):
            known[j] = np.array([str(v) for v in values], dtype=np.str_)
    return Columns(columns.names, tuple(known))


def _examples(first: Any, columns: Columns) -> dict[int, list[Any]]:
    """By column, the values that an encoder in the first step of a pipeline knows."""
    everything = list(range(len(columns.names)))
    steps = [(first, everything)]
    if hasattr(first, "transformers_"):
        steps = [(step, _positions(chosen, columns)) for _, step, chosen in first.transformers_]
    found: dict[int, list[Any]] = {}
    for step, positions in steps:
        for part in [step, *(inner for _, inner in getattr(step, "steps", ()))]:
            learnt = getattr(part, "categories_", ())
            if len(learnt) == len(positions):
                for j, values in zip(positions, learnt, strict=True):
                    known = [v for v in np.asarray(values).tolist() if v is not None and v == v]
                    if known:
                        found[j] = known
    return found


def _positions(chosen: Any, columns: Columns) -> list[int]:
    """Numbers of the columns that a step of a ColumnTransformer takes."""
    if isinstance(chosen, slice):
        return list(range(len(columns.names)))[chosen]
    chosen = [chosen] if isinstance(chosen, (str, int)) else list(chosen)
    if chosen and isinstance(chosen[0], (bool, np.bool_)):
        return np.flatnonzero(chosen).tolist()
    return [columns.names.index(c) if isinstance(c, str) else int(c) for c in chosen]


def _relational_rows(schema: Any) -> Any:
    """Examples with background tables that hold one fact each."""
    from toprank.rules.relational.data import RelationalData

    def table(predicate: Any, n_rows: int) -> pd.DataFrame:
        return pd.DataFrame({c: ["a", "b", "c"][:n_rows] for c in predicate.columns}, dtype="str")

    return RelationalData(
        {predicate.name: table(predicate, 1) for predicate in schema.predicates},
        table(schema.target, N_ROWS),
        target=schema.target.name,
        types={p.name: p.types for p in (schema.target, *schema.predicates)},
        modes=schema.modes,
    )
