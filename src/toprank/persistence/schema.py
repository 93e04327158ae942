"""What a model says about the rows it takes: columns, a summary of the training rows, made-up rows.

A file whose parts are sound one by one may still not fit together. So a model that was just loaded scores rows
made up from what it says about its own columns (`probe`) before it is handed out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from toprank.columns import Columns, as_frame, is_table
from toprank.parsing import date_source
from toprank.persistence.checks import is_integer, is_wrapper, require

__all__ = [
    "check_summary", "columns_of", "fingerprint", "probe", "relational_schema", "schema_of",
    "share_of_training_rows", "summarise",
]  # fmt: skip

# -- columns ------------------------------------------------------------------------------------------


def schema_of(model: Any) -> dict[str, Any]:
    """Return columns, their kinds, categories and classes of a model as plain data.

    Examples
    --------
    >>> from toprank import LogisticRanker
    >>> schema_of(LogisticRanker().fit([[0.0], [1.0], [2.0]], [0, 0, 1]))
    {'columns': [{'name': 'x0', 'kind': 'number'}], 'classes': [0, 1]}
    """
    classes = np.asarray(getattr(model, "classes_", np.empty(0))).tolist()
    schema = relational_schema(model)
    if schema is not None:
        arguments = [{"name": name, "kind": "argument"} for name in schema.target.columns]
        predicates = [str(predicate.name) for predicate in schema.predicates]
        return {"columns": arguments, "classes": classes, "predicates": predicates}
    columns = columns_of(model)
    orders = columns.dates or (None,) * len(columns.names)
    described = [
        {"name": name, "kind": "number" if order is None else "date"}
        if values is None
        else {"name": name, "kind": "category", "categories": values.tolist()}
        for name, values, order in zip(columns.names, columns.categories, orders, strict=True)
    ]
    return {"columns": described, "classes": classes}


def columns_of(model: Any) -> Columns:
    """Return the columns that a fitted model takes; in a pipeline, as far as its first step tells."""
    first = _first_step(model)
    if hasattr(first, "columns_"):
        return first.columns_
    columns = Columns.numeric(int(getattr(first, "n_features_in_", 0)))
    names = tuple(map(str, getattr(first, "feature_names_in_", columns.names)))
    known = list(columns.categories)
    for j, values in _known_values(first, names).items():
        if isinstance(values[0], str):
            known[j] = np.array([str(v) for v in values], dtype=object)
    return Columns(names, tuple(known))


def _first_step(model: Any) -> Any:
    """Return the estimator that sees the rows first."""
    if is_wrapper(model):
        return _first_step(model.estimator_)
    steps = getattr(model, "steps", None)
    if steps:
        return _first_step(steps[0][1])
    inner = getattr(model, "calibrated_classifiers_", None)
    return _first_step(inner[0].estimator) if inner else model


def relational_schema(model: Any) -> Any:
    """Return the schema of a model of relational data, or of a pipeline that starts with them."""
    own = getattr(model, "schema_", None)
    return getattr(_first_step(model), "schema_", None) if own is None else own


def _known_values(first: Any, names: tuple[str, ...]) -> dict[int, list[Any]]:
    """Return, by column, the values that an encoder in the first step of a pipeline knows."""
    steps = [(first, list(range(len(names))))]
    if hasattr(first, "transformers_"):
        steps = [(step, _positions(chosen, names)) for _, step, chosen in first.transformers_]
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


def _positions(chosen: Any, names: tuple[str, ...]) -> list[int]:
    """Return the positions of the columns that a step of a ColumnTransformer takes."""
    if isinstance(chosen, slice):
        return list(range(len(names)))[chosen]
    chosen = [chosen] if isinstance(chosen, (str, int)) else list(chosen)
    if chosen and isinstance(chosen[0], (bool, np.bool_)):
        return np.flatnonzero(chosen).tolist()
    return [names.index(c) if isinstance(c, str) else int(c) for c in chosen]


# -- made-up rows -------------------------------------------------------------------------------------

MAX_DENSE_COLUMNS = 20_000
N_ROWS = 3


def probe(model: Any) -> None:
    """Score, or transform, made-up rows; any error in there is the caller's to catch."""
    rows = _made_up_rows(model)
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


def _made_up_rows(model: Any) -> Any:
    """Return rows in the form that the model was trained on."""
    schema = relational_schema(model)
    if schema is not None:
        return _relational_rows(schema)
    columns, first = columns_of(model), _first_step(model)
    missing = bool(getattr(first, "_accepts_missing", False))
    known, n_columns = _known_values(first, columns.names), len(columns.names)
    named = hasattr(model, "feature_names_in_")
    if not named and not known and not columns.category_names():
        if n_columns > MAX_DENSE_COLUMNS and getattr(first, "_accepts_sparse", False):
            return sparse.eye_array(N_ROWS, n_columns, format="csr")
        column = np.array([[0.0], [1.0], [np.nan if missing else -1.0]])
        return np.tile(column, n_columns)
    cells = [_made_up_cells(v, known.get(j), missing) for j, v in enumerate(columns.categories)]
    frame = pd.concat(cells, axis=1, keys=columns.names)
    return frame if named else frame.to_numpy()


def _made_up_cells(values: np.ndarray | None, known: list[Any] | None, missing: bool) -> pd.Series:
    """Return cells of one column: of the categories that are known, or a few numbers."""
    if known is None and values is None:
        return pd.Series([0.0, 1.0, np.nan if missing else -1.0])
    known = known or ([] if values is None else values.tolist())
    if not known:
        return pd.Series([None] * N_ROWS, dtype=object)
    cells = pd.Series([known[0], known[-1], None if missing else known[0]], dtype=object)
    return cells if isinstance(known[0], str) or missing else cells.infer_objects()


def _relational_rows(schema: Any) -> Any:
    """Return examples with background tables that hold one fact each."""
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


# -- the training summary -----------------------------------------------------------------------------

PERCENTS = tuple(range(101))
MAX_CATEGORIES = 100  # with a share of their own
MAX_COLUMNS = 2_000  # more are not summarised
LARGEST = 2**53  # number of rows, or hash of one


def summarise(model: Any, X: Any, y: Any = None) -> dict[str, Any]:
    """Summarise training rows for a fitted model, so that later rows can be compared with them.

    No row is kept.

    Parameters
    ----------
    model : fitted estimator
    X : array, sparse matrix or table
        The rows it was trained on.
    y : array, optional
        Their labels.

    Returns
    -------
    summary : dict
        `n_rows`, `n_positives` (None without labels), `columns` (a list of dicts: `name`, `kind`,
        `missing`, and `quantiles` at 0, 1, ..., 100 percent, or `shares` of the most frequent
        categories and `others`, the share of all others), `chosen` (settings that the fit took from the
        data, where it did), `fingerprint` (see there) and `scores` (a dict with `quantiles`).

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import TreeRank
    >>> X = pd.DataFrame({"amount": [1.0, 2.0, 9.0, 8.0], "country": ["NL", "NL", "DE", None]})
    >>> summary = summarise(TreeRank().fit(X, [0, 0, 1, 1]), X, [0, 0, 1, 1])
    >>> summary["columns"][1]["shares"], summary["columns"][1]["missing"], summary["n_positives"]
    ({'NL': 0.5, 'DE': 0.25}, 0.25, 2)
    """
    n_rows = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    summary: dict[str, Any] = {"n_rows": n_rows, "n_positives": None, "columns": []}
    if y is not None and hasattr(model, "classes_"):
        labels = np.asarray(y).ravel()
        binary = np.isin(labels, model.classes_).all()  # otherwise they are grades of relevance
        summary["n_positives"] = int((labels == model.classes_[1] if binary else labels > 0).sum())
    if is_table(X) or relational_schema(model) is None:  # else examples are only names
        summary["columns"] = list(_column_summaries(columns_of(model), X))
    if hasattr(model, "chosen_"):
        summary["chosen"] = model.chosen_
    summary["fingerprint"] = fingerprint(model, X)
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        summary["scores"] = {"quantiles": _quantiles(scores)}
        if hasattr(model, "staircase_") and len(np.unique(scores)) > n_rows / 4:
            # a model that tells single rows apart flatters those that it has learnt by heart
            summary["scores"] = {"quantiles": model.staircase_.score_quantiles()}
    return summary


FINGERPRINT_ROWS = 256
LEAST_UNIQUE = 0.5  # share of rows that occur once; below, equal rows are no sign


def fingerprint(model: Any, X: Any) -> list[int]:
    """Return hashes of a few rows, by which the same rows are known again; none can be read back.

    The smallest 256 hashes of the rows that occur once: a sample that does not depend on the order of
    the rows or on the file they come from. Empty where rows repeat too often to tell.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = LogisticRanker().fit(X, X[:, 0] > 0)
    >>> len(fingerprint(model, X)), fingerprint(model, X[::-1]) == fingerprint(model, X)
    (256, True)
    """
    hashes = _row_hashes(model, X)
    unique, counts = np.unique(hashes, return_counts=True)
    once = unique[counts == 1]
    if len(once) < LEAST_UNIQUE * max(len(hashes), 1):
        return []
    return once[:FINGERPRINT_ROWS].tolist()


def share_of_training_rows(model: Any, X: Any) -> float:
    """Return the share of the training rows that are among rows, as far as a fingerprint tells.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> model = LogisticRanker().fit(X, X[:, 0] > 0)
    >>> model.training_summary_ = summarise(model, X)
    >>> share_of_training_rows(model, X), share_of_training_rows(model, X + 1)
    (1.0, 0.0)
    """
    known = (getattr(model, "training_summary_", None) or {}).get("fingerprint") or []
    if not known:
        return 0.0
    return float(np.isin(known, _row_hashes(model, X)).mean())


def _row_hashes(model: Any, X: Any) -> np.ndarray:
    """Return a hash of each row as the model sees it, of 53 bits; none of rows that have no matrix."""
    try:
        if is_table(X):
            columns = columns_of(model)
            matrix = columns.matrix(as_frame(X)[list(columns.names)])
        else:
            matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError, KeyError, AttributeError):
        return np.empty(0, dtype=np.int64)
    if matrix.ndim != 2:
        return np.empty(0, dtype=np.int64)
    mixed = np.zeros(len(matrix), dtype=np.uint64)
    for column in matrix.T:  # in float32: the same number, whatever wrote it
        cells = np.where(np.isnan(column), np.nan, column + 0.0).astype(np.float32)
        mixed = (mixed ^ cells.view(np.uint32)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.int64)


def _column_summaries(learnt: Columns, X: Any) -> Iterator[dict[str, Any]]:
    """Summarise column by column; with how numbers and dates were written where they were text.

    Columns that the model takes as dates have no summary.
    """
    dates = {
        name for name, order in zip(learnt.names, learnt.dates, strict=False) if order is not None
    }
    written = X.attrs if isinstance(X, pd.DataFrame) else {}
    decimals, orders = written.get("decimals", {}), written.get("date_orders", {})
    rows: Any = as_frame(X) if is_table(X) else X.tocsc() if sparse.issparse(X) else np.asarray(X)
    for j in range(min(rows.shape[1], MAX_COLUMNS)):
        if isinstance(rows, pd.DataFrame):
            if str(rows.columns[j]) in dates:
                continue
            try:
                columns = Columns.of(rows.iloc[:, [j]])
            except ValueError:
                continue  # dates and the like, which a pipeline may take
            found = _column_summary(columns.names[0], columns.categories[0], rows.iloc[:, j])
            decimal, order = decimals.get(found["name"]), orders.get(date_source(found["name"]))
            more = {"decimal": decimal, "date_order": order}
            yield found | {key: value for key, value in more.items() if value is not None}
        else:
            cells = rows[:, [j]].toarray().ravel() if sparse.issparse(rows) else rows[:, j]
            yield _column_summary(f"x{j}", None, pd.Series(cells))


def _column_summary(name: str, values: np.ndarray | None, column: pd.Series) -> dict[str, Any]:
    missing = float(column.isna().mean()) if len(column) else 0.0
    summary: dict[str, Any] = {"name": name, "missing": missing}
    if values is None:
        cells = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return {**summary, "kind": "number", "quantiles": _quantiles(cells[~np.isnan(cells)])}
    counts = column.dropna().astype(object).map(str).value_counts()
    shares = counts / max(len(column), 1)
    kept = {str(k): float(v) for k, v in shares.iloc[:MAX_CATEGORIES].items()}
    others = float(shares.iloc[MAX_CATEGORIES:].sum())
    return {**summary, "kind": "category", "shares": kept, "others": others}


def _quantiles(cells: np.ndarray) -> list[float]:
    """Return the values at 0, 1, ..., 100 percent; an empty list if there are no values."""
    return np.percentile(cells, PERCENTS, method="lower").tolist() if len(cells) else []


def check_summary(summary: dict[str, Any]) -> None:
    """Check a summary from a file."""
    known, more = {"n_rows", "n_positives", "columns"}, {"scores", "chosen", "fingerprint"}
    fits = known <= set(summary) <= known | more and isinstance(summary["columns"], list)
    require(fits, "the training summary is damaged")
    for count in (summary["n_rows"], summary["n_positives"]):
        whole = count is None or is_integer(count, 0, LARGEST)
        require(whole, "the training summary is miscounted")
    scores, hashes = summary.get("scores", {}), summary.get("fingerprint", [])
    fits = all(isinstance(c, dict) and _is_column_summary(c) for c in summary["columns"])
    fits = fits and isinstance(scores, dict) and _are_quantiles(scores.get("quantiles", []))
    fits = fits and isinstance(summary.get("chosen", {}), dict)
    fits = fits and isinstance(hashes, list) and len(hashes) <= FINGERPRINT_ROWS
    fits = fits and all(is_integer(number, 0, LARGEST) for number in hashes)
    require(fits, "the training summary is damaged")


def _is_column_summary(column: dict[str, Any]) -> bool:
    shares: Any = column.get("shares")
    named = isinstance(column.get("name"), str) and _are_numbers([column.get("missing")])
    named = named and column.get("decimal", ".") in (".", ",")
    named = named and isinstance(column.get("date_order", ""), str)
    if column.get("kind") == "number":
        return named and _are_quantiles(column.get("quantiles"))
    fits = named and column.get("kind") == "category" and isinstance(shares, dict)
    return fits and _are_numbers([*shares.values()]) and _are_numbers([column.get("others")])


def _are_quantiles(values: Any) -> bool:
    """Whether there is a number for each percent, or none at all."""
    return _are_numbers(values) and len(values) in (0, len(PERCENTS))


def _are_numbers(values: Any) -> bool:
    """Whether it is a list of finite numbers, of reasonable length."""
    numbers = isinstance(values, list) and all(type(v) in (int, float) for v in values)
    largest = float(np.finfo(np.float64).max)  # a whole number may be larger than any float
    return numbers and len(values) <= len(PERCENTS) and all(abs(v) <= largest for v in values)
