"""The shortlist: which rows to check, in which order, and why."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from toprank.columns import as_frame, is_table
from toprank.ranking import order_by_code
from toprank.shortlisting.cross_fit import scores_of, take_rows
from toprank.shortlisting.cut import Cut
from toprank.shortlisting.reasons import reasons as words_for

__all__ = ["shortlist"]


def shortlist(
    model: Any,
    X: Any,
    *,
    budget: int | None = None,
    fpr: float | None = None,
    precision: float | None = None,
    cost: Any = None,
    cut: Any = None,
    per: Any = None,
    ids: Any = None,
    value: Any = None,
    n_reasons: int = 3,
    confidence: float = 0.95,
    summary: dict[str, Any] | None = None,
) -> pd.DataFrame:
    """List the rows to check, the most suspicious first, with reasons.

    Give exactly one of `budget`, `fpr`, `precision`, `cost` and `cut`.

    Parameters
    ----------
    model : fitted estimator
        `fpr`, `precision` and `cost` need a `CalibratedRanker`, which keeps out-of-fold scores.
    X : array, sparse matrix, table or RelationalData
        New rows.
    budget : int, optional
        Rows to list (in each group of `per`). Exactly so many are listed: of rows with equal
        scores at the end of the list those that come first in `X` are taken, and
        ``attrs["ties_left_out"]`` says how many with the same score are not on it.
    fpr, precision, cost : optional
        As in `choose_cut`: all rows above the threshold are listed, ties together. When no cut
        can be promised to meet the target, the list is empty and a warning says why.
    cut : Cut or float, optional
        A cut chosen before, or a threshold: rows with a higher score are listed.
    per : array of shape (n_rows,) or str, optional
        Groups such as days: each has a list of its own, with ranks of its own and, if given, the
        budget (all rows of a group that has fewer). A str names a column of `X`.
    ids : array of shape (n_rows,) or str, optional
        What rows are called.
    value : array of shape (n_rows,) or str, optional
        Money at stake, shown beside each row.
    n_reasons : int, default=3
        Most reasons for each row; 0 for none.
    confidence : float, default=0.95
        Of the cut and of the probability intervals.
    summary : dict, optional
        Training summary for the reasons; by default the model's own.

    Returns
    -------
    table : DataFrame
        Columns `rank` (from 1, in each group), `id`, `per` (if given) and `score`; `probability` where
        the model gives one, with `probability_low` and `probability_high` from a `CalibratedRanker`;
        `value` (if given); `reasons` (one text, "; " in between). By group, then rank; the index
        is the position of the row in `X`. ``attrs`` holds the `cut` as a dict (None for a budget)
        and `ties_left_out`.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import LogisticRanker, shortlist
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = LogisticRanker().fit(X[:400], y[:400])
    >>> table = shortlist(model, X[400:], budget=5, n_reasons=1)
    >>> table["rank"].tolist(), table.columns.tolist()
    ([1, 2, 3, 4, 5], ['rank', 'score', 'reasons'])
    """
    check_is_fitted(model)
    X = as_frame(X) if is_table(X) else X if hasattr(X, "shape") else np.asarray(X)
    n_rows = X.shape[0]
    asked = {"budget": budget, "fpr": fpr, "precision": precision, "cost": cost, "cut": cut}
    _exactly_one(asked)
    extra = {
        name: _column(X, column, n_rows, name)
        for name, column in (("id", ids), ("per", per), ("value", value))
    }
    scores = scores_of(model, X)
    if not np.isfinite(scores).all():
        raise ValueError("some scores are NaN or infinite; such rows cannot be ranked")
    ranked = _Ranked.of(scores, extra["per"])
    chosen_cut = None
    if budget is not None:
        kept, ties = ranked.first(_whole_budget(budget, ranked.sizes, per is not None))
    else:
        chosen_cut = _cut_of(model, asked, confidence)
        kept, ties = ranked.above(chosen_cut), 0
        _warn_if_not_reached(chosen_cut)
    rows = ranked.order[kept]
    table = pd.DataFrame({"rank": ranked.ranks[kept]}, index=pd.Index(rows, name="row"))
    if extra["id"] is not None:
        table["id"] = extra["id"].iloc[rows].to_numpy()
    if extra["per"] is not None:
        table["per"] = extra["per"].iloc[rows].to_numpy()
    table["score"] = scores[rows]
    _add_probability(table, model, X, rows, confidence)
    if extra["value"] is not None:
        table["value"] = extra["value"].iloc[rows].to_numpy()
    if n_reasons > 0:
        table["reasons"] = _reasons(model, X, rows, n_reasons, summary)
    table.attrs["cut"] = chosen_cut.as_dict() if isinstance(chosen_cut, Cut) else None
    table.attrs["ties_left_out"] = ties
    return table


@dataclass(frozen=True)
class _Ranked:
    """Rows by group, the highest score first; equal scores in the order of the rows."""

    order: np.ndarray
    ranks: np.ndarray
    codes: np.ndarray
    scores: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, groups: pd.Series | None) -> _Ranked:
        if groups is None:
            codes = np.zeros(len(scores), dtype=np.int64)
            n_groups = 1
        else:
            codes, names = pd.factorize(groups, sort=True)
            codes = codes.astype(np.int64)
            n_groups = len(names)
        order, starts = order_by_code(scores, codes, n_groups)
        # ties in no particular order become ties in the order of the rows
        here, ranked = codes[order], scores[order]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (here[1:] != here[:-1]) | (ranked[1:] != ranked[:-1])
        order = order[np.lexsort((order, np.cumsum(new)))]
        ranks = np.arange(len(order)) - starts[codes[order]] + 1
        return cls(order, ranks, codes[order], scores[order], np.diff(starts))

    def first(self, budget: int) -> tuple[np.ndarray, int]:
        """The first rows of each group, and how many tied with the last of them are left out."""
        kept = self.ranks <= budget
        last = np.flatnonzero(kept & (self.ranks == budget))
        worst = np.full(len(self.sizes), np.nan)  # equal to no score
        worst[self.codes[last]] = self.scores[last]
        ties = np.count_nonzero(~kept & (self.scores == worst[self.codes]))
        return np.flatnonzero(kept), int(ties)

    def above(self, cut: Cut | float) -> np.ndarray:
        threshold = cut.threshold if isinstance(cut, Cut) else cut
        return np.flatnonzero(self.scores > threshold)


def _exactly_one(asked: Mapping[str, Any]) -> None:
    given = [name for name, option in asked.items() if option is not None]
    if len(given) != 1:
        raise ValueError(
            "give exactly one of budget, fpr, precision, cost and cut to say how long the list is; "
            f"got {', '.join(given) if given else 'none'}"
        )


def _column(X: Any, column: Any, n_rows: int, name: str) -> pd.Series | None:
    """A column by its name or its cells."""
    if column is None:
        return None
    if isinstance(column, str):
        if not isinstance(X, pd.DataFrame) or column not in X.columns:
            raise ValueError(f"{name}: the rows have no column {column!r}")
        column = X[column]
    cells = pd.Series(column.to_pandas() if hasattr(column, "to_pandas") else column)
    if len(cells) != n_rows:
        raise ValueError(f"{name} has {len(cells)} entries for {n_rows} rows")
    if name == "per" and cells.isna().any():
        raise ValueError("per has missing entries; every row needs its group")
    return cells.reset_index(drop=True)


def _whole_budget(budget: Any, sizes: np.ndarray, grouped: bool) -> int:
    whole = isinstance(budget, Integral) or (isinstance(budget, float) and budget.is_integer())
    if not whole or isinstance(budget, bool) or budget < 1:
        raise ValueError(f"budget must be a whole number of rows of at least 1, got {budget!r}")
    most = int(sizes.max(initial=0))
    if budget > most:
        where = "the largest group has" if grouped else "there are"
        raise ValueError(
            f"the budget of {int(budget)} is larger than the data: {where} only {most} rows"
        )
    return int(budget)


def _cut_of(model: Any, asked: Mapping[str, Any], confidence: float) -> Cut | float:
    cut = asked["cut"]
    if isinstance(cut, Cut):
        return cut
    if cut is not None:
        if isinstance(cut, (bool, str)) or not float(cut) == float(cut):
            raise ValueError(f"cut must be a Cut or a threshold, got {cut!r}")
        return float(cut)
    if not hasattr(model, "cut"):
        (name,) = (name for name, option in asked.items() if option is not None)
        raise ValueError(
            f"{name} needs out-of-fold scores, which {type(model).__name__} does not keep: fit it in a "
            "CalibratedRanker, or give cut=choose_cut(y, scores, ...) from held-out rows"
        )
    target = {name: asked[name] for name in ("fpr", "precision", "cost")}
    return model.cut(**target, confidence=confidence)


def _warn_if_not_reached(cut: Cut | float) -> None:
    if isinstance(cut, Cut) and not cut.reached:
        warnings.warn(f"the shortlist is empty; {cut.guarantee}", stacklevel=3)


def _add_probability(
    table: pd.DataFrame, model: Any, X: Any, rows: np.ndarray, confidence: float
) -> None:
    if not hasattr(model, "predict_proba"):
        return
    names = ["probability"]
    columns = [np.empty(0)]
    bounded = hasattr(model, "probability_interval")
    if len(rows):
        part = take_rows(X, rows)
        columns = [model.predict_proba(part)[:, 1]]
        columns += list(model.probability_interval(part, confidence)) if bounded else []
    if bounded:
        names += ["probability_low", "probability_high"]
        columns = columns if len(rows) else columns * 3
    for name, cells in zip(names, columns, strict=True):
        table[name] = cells


def _reasons(
    model: Any, X: Any, rows: np.ndarray, n_reasons: int, summary: dict[str, Any] | None
) -> list[str]:
    if not len(rows):
        return []
    texts = words_for(
        model,
        take_rows(X, rows),
        n_reasons,
        raising_only=True,
        summary=summary,
        background=_background(X),
    )
    return ["; ".join(parts) for parts in texts]


def _background(X: Any, most: int = 1000) -> Any:
    """Some rows that stand for all, evenly drawn."""
    if not is_table(X) and not isinstance(X, np.ndarray):
        return None
    step = max(1, X.shape[0] // most)
    return take_rows(X, np.arange(0, X.shape[0], step))
