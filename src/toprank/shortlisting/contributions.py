"""What each column adds to the score of a row, whatever the model.

Three ways, the first that the model allows: its own account (`explain`: SHAP values of boosted trees, fired
rules), the terms of a linear score, or occlusion: a column is replaced by its usual value and the
score is looked at again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from toprank.columns import as_frame, is_table
from toprank.shortlisting.baseline import Baseline, column_names
from toprank.shortlisting.cross_fit import scores_of, take_rows

__all__ = ["contributions", "has_rules", "is_linear", "unwrapped"]

BASE = "(base)"
SCREEN_ABOVE = 200  # columns; beyond, occlusion looks at all of them on a few rows only
SCREEN_ROWS = 16
SCREEN_KEEPS = 100
CHUNK_ROWS = 20_000  # scored in one call


def unwrapped(model: Any) -> Any:
    """The ranker inside a `CalibratedRanker`."""
    while hasattr(model, "staircase_") and hasattr(model, "estimator_"):
        model = model.estimator_
    return model


def has_rules(model: Any) -> bool:
    """Whether `explain` gives fired rules."""
    return hasattr(model, "rounds_") and hasattr(model, "explain")


def is_linear(model: Any) -> bool:
    """Whether the score is `X @ coef_` less a threshold."""
    coefficients = getattr(model, "coef_", None)
    return (
        coefficients is not None
        and hasattr(model, "_raw_scores")
        and getattr(model, "embedding_", None) is None
        and np.shape(coefficients) == (getattr(model, "n_features_in_", -1),)
    )


def contributions(
    model: Any, X: Any, *, summary: dict[str, Any] | None = None, background: Any = None
) -> pd.DataFrame:
    """Split the scores of rows into what each column adds.

    Parameters
    ----------
    model : fitted estimator
    X : array, sparse matrix or table
    summary : dict, optional
        Training summary (`toprank.persistence.summarise`); by default the model's own.
    background : array or table, optional
        Rows that say what is usual where there is no summary; by default `X` itself.

    Returns
    -------
    table : DataFrame of shape (n_rows, n_columns)
        Boosted trees: SHAP values. Boosted rules: what the rules that fired add, shared equally among
        the columns that a rule looks at (for relational data, one column for each clause). Linear
        models: coefficient times the distance from the usual value. All other models, and
        pipelines: by how much the score falls when the column takes its usual value (the training median or
        most frequent category). Such one-at-a-time effects need not add up, and two columns that
        say the same can hide one another.

    Notes
    -----
    Occlusion scores every row once for each column. Beyond 200 columns all of them are tried on 16 rows, and
    only the 100 that matter most there on all rows; the others count 0.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> from toprank.shortlisting import contributions
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> table = contributions(LogisticRanker().fit(X, [0, 0, 1, 1]), X)
    >>> table.columns.tolist(), (table["x0"] > 0).tolist()
    (['x0', 'x1'], [False, False, True, True])
    """
    inner = unwrapped(model)
    if has_rules(inner):
        return _rule_contributions(inner, X)
    if hasattr(inner, "explain"):
        return inner.explain(X).drop(columns=BASE, errors="ignore")
    summary = getattr(model, "training_summary_", None) if summary is None else summary
    baseline = Baseline.of(X, summary, background)
    if is_linear(inner):
        return _linear_contributions(inner, X, baseline)
    return _occlusion(inner, X, baseline)


def _rule_contributions(model: Any, X: Any) -> pd.DataFrame:
    """What fired rules add, by column."""
    fired = model.explain(X)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    looks_at = {
        str(rule): sorted({literal.column for literal in rule.literals})
        for kept in model.rounds_
        for rule in kept.rules
        if hasattr(rule, "literals")
    }
    names = list(model.columns_.names) if hasattr(model, "columns_") else []
    table = pd.DataFrame(0.0, index=range(n_rows), columns=names)
    for rule, part in fired.groupby("rule", sort=False):
        added = np.bincount(part["row"].astype(int), part["adds"], minlength=n_rows)
        columns = looks_at.get(str(rule)) or [str(rule)]
        for column in columns:
            before = table[column].to_numpy() if column in table else 0.0
            table[column] = before + added / len(columns)
    return table


def _linear_contributions(model: Any, X: Any, baseline: Baseline) -> pd.DataFrame:
    usual = np.array([0.0 if v is None or v != v else float(v) for v in baseline.values])
    matrix: Any = as_frame(X).to_numpy(dtype=np.float64) if is_table(X) else X
    if sparse.issparse(matrix):
        matrix = matrix.toarray()
    values = (np.asarray(matrix, dtype=np.float64) - usual) * model.coef_
    return pd.DataFrame(values, columns=column_names(X))


def _occlusion(model: Any, X: Any, baseline: Baseline) -> pd.DataFrame:
    """By how much scores fall when one column after the other takes its usual value."""
    X = as_frame(X) if is_table(X) else X if hasattr(X, "shape") else np.asarray(X)
    names = column_names(X)
    n_rows, n_columns = X.shape
    chosen = np.arange(n_columns)
    if sparse.issparse(X):
        chosen = np.flatnonzero(np.asarray((X != 0).sum(axis=0)).ravel())  # others are usual
    if len(chosen) > SCREEN_ABOVE:
        few = np.unique(np.linspace(0, n_rows - 1, min(SCREEN_ROWS, n_rows)).astype(np.int64))
        effects = np.abs(_effects(model, take_rows(X, few), chosen, baseline)).mean(axis=0)
        chosen = np.sort(chosen[np.argsort(-effects, kind="stable")[:SCREEN_KEEPS]])
    values = np.zeros((n_rows, n_columns))
    values[:, chosen] = _effects(model, X, chosen, baseline)
    return pd.DataFrame(values, columns=names)


def _effects(model: Any, X: Any, chosen: np.ndarray, baseline: Baseline) -> np.ndarray:
    """The effects of some columns, several of them in one call of the model."""
    scores = scores_of(model, X)
    together = max(1, CHUNK_ROWS // max(1, X.shape[0]))
    effects = np.zeros((X.shape[0], len(chosen)))
    for start in range(0, len(chosen), together):
        part = chosen[start : start + together]
        blocks = [baseline.fill(X, int(column)) for column in part]
        if isinstance(X, pd.DataFrame):
            stacked: Any = pd.concat(blocks, ignore_index=True)
        else:
            stacked = sparse.vstack(blocks, "csr") if sparse.issparse(X) else np.vstack(blocks)
        occluded = scores_of(model, stacked).reshape(len(part), X.shape[0])
        effects[:, start : start + len(part)] = (scores - occluded).T
    return effects
