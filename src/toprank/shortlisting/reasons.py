"""Why a row has its score, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.columns import as_frame, is_table
from toprank.shortlisting.contributions import contributions, has_rules, unwrapped
from toprank.shortlisting.cross_fit import take_rows
from toprank.shortlisting.tree_paths import has_paths, path_reasons

__all__ = ["contributions", "global_importance", "reasons"]

MOST_TEXT = 60  # characters of a cell that are shown


def reasons(
    model: Any,
    X: Any,
    n: int = 3,
    *,
    raising_only: bool = False,
    summary: dict[str, Any] | None = None,
    background: Any = None,
) -> list[list[str]]:
    """Say in words what the score of each row rests on.

    Parameters
    ----------
    model : fitted estimator
        Any estimator of the library, a pipeline, or a `CalibratedRanker` around one.
    X : array, sparse matrix, table or RelationalData
        The rows to explain.
    n : int, default=3
        Most reasons of a row.
    raising_only : bool, default=False
        Give only what raises the score, as suits rows on a shortlist.
    summary : dict, optional
        Training summary, which places values among the training rows; by default the one that
        came with the model file.
    background : array or table, optional
        Rows that say what is usual where there is no summary; by default `X` itself, so that a
        single row needs one or the other.

    Returns
    -------
    texts : list of list of str
        For each row its reasons, the weightiest first. Boosted rules give the rules that fired,
        `TreeRank` the splits on the way to the leaf, all other models columns
        (see `contributions` for how their share is found).

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import LogisticRanker
    >>> from toprank.persistence import summarise
    >>> from toprank.shortlisting import reasons
    >>> X = pd.DataFrame({"amount": [10.0, 20.0, 30.0, 900.0], "hour": [3.0, 4.0, 2.0, 3.0]})
    >>> model = LogisticRanker().fit(X, [0, 0, 0, 1])
    >>> reasons(model, X[3:], n=1, summary=summarise(model, X))
    [['amount = 900 (high: the highest of the training rows) raises the score by 2.2']]
    """
    check_is_fitted(model)
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    X = as_frame(X) if is_table(X) else X
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    inner = unwrapped(model)
    if X.shape[0] == 0:
        return []
    if has_rules(inner):
        return _rule_reasons(inner, X, n, raising_only)
    if has_paths(inner):
        return path_reasons(inner, X, n, raising_only)
    summary = getattr(model, "training_summary_", None) if summary is None else summary
    table = contributions(model, X, summary=summary, background=background)
    return _column_reasons(table, X, n, raising_only, summary)


def global_importance(
    model: Any,
    X: Any,
    *,
    most_rows: int = 1000,
    summary: dict[str, Any] | None = None,
    background: Any = None,
    random_state: Any = 0,
) -> pd.DataFrame:
    """Rank the columns by how much they move the scores.

    Parameters
    ----------
    model : fitted estimator
    X : array, sparse matrix or table
        Rows to look at, such as the test rows.
    most_rows : int, default=1000
        Rows drawn from `X` when it has more.
    summary, background : optional
        As for `contributions`.
    random_state : int, RandomState or None, default=0

    Returns
    -------
    table : DataFrame
        `feature`, `importance` (mean absolute deviation of its contribution from the mean: what is
        the same for all rows moves none) and `share` of the total, the greatest first.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> from toprank.shortlisting import global_importance
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = (X[:, 1] > 1).astype(int)
    >>> global_importance(LogisticRanker().fit(X, y), X)["feature"][0]
    'x1'
    """
    check_is_fitted(model)
    X = as_frame(X) if is_table(X) else X
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows > most_rows:
        random = check_random_state(random_state)
        X = take_rows(X, np.sort(random.choice(n_rows, most_rows, replace=False)))
    table = contributions(model, X, summary=summary, background=background)
    values = table.to_numpy()
    importance = np.abs(values - values.mean(axis=0)).mean(axis=0)
    total = importance.sum()
    found = pd.DataFrame(
        {
            "feature": [str(name) for name in table.columns],
            "importance": importance,
            "share": importance / total if total > 0 else importance,
        }
    )
    return found.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


# -- reasons by rule and by column ----------------------------------------------------------------


def _rule_reasons(model: Any, X: Any, n: int, raising_only: bool) -> list[list[str]]:
    """The rules that fired; one that fired in several rounds is named once.

    What a rule adds counts by the share of training rows that it does not hold for: one that holds for nearly
    all of them tells rows apart as little as a constant.
    """
    texts: list[list[str]] = [[] for _ in range(X.shape[0])]
    fired = model.explain(X)
    if not len(fired):
        return texts
    fired = fired.astype({"row": np.int64, "adds": np.float64})
    summed = fired.groupby(["row", "rule"], sort=False, as_index=False)["adds"].sum()
    telling = summed["rule"].map(_telling(model)).to_numpy(dtype=np.float64)
    summed["weight"] = summed["adds"].to_numpy() * telling
    for row, part in summed.groupby("row", sort=False):
        for k in _weightiest(part["weight"].to_numpy(), n, raising_only):
            rule, added = part["rule"].iloc[k], float(part["adds"].iloc[k])
            texts[int(row)].append(f"{rule} {_moves(added)}")
    return texts


def _telling(model: Any) -> dict[str, float]:
    """For each rule the share of training rows that it does not cover (of those that the widest does)."""
    covered = {
        str(rule): float(held)
        for kept in model.rounds_
        for rule, held in zip(kept.rules, kept.positives + kept.negatives, strict=True)
    }
    widest = max(covered.values(), default=0.0)
    # never quite 0: a rule that is alone still says something
    return {
        rule: 1.0 - 0.99 * held / widest if widest > 0 else 1.0 for rule, held in covered.items()
    }


def _column_reasons(
    table: pd.DataFrame, X: Any, n: int, raising_only: bool, summary: dict[str, Any] | None
) -> list[list[str]]:
    known = {column["name"]: column for column in (summary or {}).get("columns", [])}
    values, names = table.to_numpy(), [str(name) for name in table.columns]
    texts = []
    for row in range(len(table)):
        chosen = _weightiest(values[row], n, raising_only)
        texts.append(
            [
                f"{_describe(names[j], _cell(X, row, int(j)), known.get(names[j]))} "
                f"{_moves(float(values[row, j]))}"
                for j in chosen
            ]
        )
    return texts


def _weightiest(values: np.ndarray, n: int, raising_only: bool) -> np.ndarray:
    """Positions of the greatest contributions that are any."""
    size = values if raising_only else np.abs(values)
    order = np.argsort(-size, kind="stable")[:n]
    return order[size[order] > 1e-12 * max(1.0, float(np.abs(values).max(initial=0.0)))]


def _moves(added: float) -> str:
    return f"{'raises' if added > 0 else 'lowers'} the score by {abs(added):.3g}"


def _cell(X: Any, row: int, column: int) -> Any:
    if isinstance(X, pd.DataFrame):
        return X.iat[row, column]
    return X[row, column] if sparse.issparse(X) else X[row][column]


def _describe(name: str, cell: Any, column: dict[str, Any] | None) -> str:
    """A cell and its place among the training rows."""
    if cell is None or cell is pd.NA or cell != cell:
        share = "" if column is None else f" (as in {_percent(column['missing'])} of training rows)"
        return f"{name} is missing{share}"
    if isinstance(cell, (bool, np.bool_)):
        shown = str(bool(cell)).lower()
    elif isinstance(cell, (int, float, np.number)):
        shown = f"{float(cell):.6g}"
    else:
        text = str(cell)
        shown = text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."
    place = "" if column is None else _place(cell, column)
    return f"{name} = {shown}" + (f" ({place})" if place else "")


def _place(cell: Any, column: dict[str, Any]) -> str:
    """Where a value stands among the training rows, by their summary."""
    if column["kind"] == "category":
        share = column["shares"].get(str(cell))
        if share is None:
            return "rare in training" if column["others"] > 0 else "not seen in training"
        return f"{'rare: ' if share < 0.05 else ''}{_percent(share)} of training rows"
    quantiles = np.asarray(column["quantiles"], dtype=np.float64)
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return ""
    if not len(quantiles) or quantiles[0] == quantiles[-1] == value:
        return ""
    if value > quantiles[-1]:
        return "high: above all training rows"
    if value < quantiles[0]:
        return "low: below all training rows"
    above = int(np.searchsorted(quantiles, value, side="left"))  # of the 101 points, those below
    below = len(quantiles) - int(np.searchsorted(quantiles, value, side="right"))
    if value == quantiles[-1] and above > 75:
        return "high: the highest of the training rows"
    if above > 75:
        return f"high: above {above - 1}% of training rows"
    if value == quantiles[0] and below > 75:
        return "low: the lowest of the training rows"
    if below > 75:
        return f"low: below {below - 1}% of training rows"
    return "usual"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else "100%"
