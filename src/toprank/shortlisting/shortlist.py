"""The shortlist: which rows to check, in which order, with reasons."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from toprank.folds import make_indexable, scores_of, take_rows
from toprank.ranking import descending_order
from toprank.shortlisting.calibration import CalibratedRanker, ProbabilityMap
from toprank.shortlisting.counts import OutOfFoldCounts
from toprank.shortlisting.cut import Cut, only_target
from toprank.shortlisting.reasons import reasons
from toprank.validation import check_choice, check_lengths, check_scores

__all__ = ["shortlist"]

BACKGROUND_ROWS = 1000


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
    rank_by: str = "score",
    n_reasons: int = 3,
    confidence: float = 0.95,
    summary: dict[str, Any] | None = None,
    scores: Any = None,
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
        ``attrs["ties_left_out"]`` says how many with the same score are not on it. Where there are
        fewer rows than the budget, all are listed, and ``attrs["short_groups"]`` counts such groups.
    fpr, precision, cost : optional
        As in `choose_cut`: all rows above the threshold are listed, ties together. When no cut
        can be promised to meet the target, a warning says why; the list is then empty, or for
        `precision` the best there is.
    cut : Cut or float, optional
        A cut chosen before, or a threshold: rows with a higher score are listed.
    per : array of shape (n_rows,) or str, optional
        Groups such as days: each has a list of its own, with ranks of its own and, if given, the
        budget. A str names a column of `X`.
    ids : array of shape (n_rows,) or str, optional
        What rows are called.
    value : array of shape (n_rows,) or str, optional
        Money at stake, shown beside each row.
    rank_by : {"score", "value"}, default="score"
        "value" ranks by the money that a check is expected to save: the probability of a positive
        times `value`. It needs both, and a `budget`.
    n_reasons : int, default=3
        Most reasons for each row; 0 for none.
    confidence : float, default=0.95
        Of the cut and of the probability intervals.
    summary : dict, optional
        Training summary for the reasons; by default the model's own.
    scores : array of shape (n_rows,), optional
        The model's scores of the rows where they are known, so that they are not computed again.

    Returns
    -------
    table : DataFrame
        Columns `rank` (from 1, in each group), `id`, `per` (if given) and `score`; `probability` where
        the model gives one, with `probability_low` and `probability_high` from a `CalibratedRanker`;
        `value` (if given); `expected_value` (with ``rank_by="value"``); `reasons` (one text, "; " in
        between). By group, then rank; the index
        is the position of the row in `X`. ``attrs`` holds the `cut` as a dict (None for a budget),
        `ties_left_out` and `short_groups`.

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
    X = make_indexable(X)
    n_rows = X.shape[0]
    asked = {"budget": budget, "fpr": fpr, "precision": precision, "cost": cost, "cut": cut}
    only_target(asked, "to say how long the list is")
    columns = {
        name: _check_column(X, column, n_rows, name)
        for name, column in (("id", ids), ("per", per), ("value", value))
        if column is not None
    }
    scores = check_scores(scores_of(model, X) if scores is None else scores).astype(np.float64)
    check_lengths(X=range(n_rows), scores=scores)
    expected = None
    if check_choice(rank_by, "rank_by", ("score", "value")) == "value":
        expected = _expected_value(model, scores, columns.get("value"), budget)
    ranked = _rank_in_groups(scores if expected is None else expected, columns.get("per"))
    chosen_cut, ties, short = None, 0, 0
    if budget is not None:
        kept = ranked["rank"] <= _check_budget(budget)
        short = int((ranked.groupby("group").size() < budget).sum())
        last = ranked["score"].where(ranked["rank"] == budget).groupby(ranked["group"])
        ties = int(np.sum(~kept & (ranked["score"] == last.transform("max"))))
    else:
        chosen_cut = _find_cut(model, asked, confidence)
        threshold = chosen_cut.threshold if isinstance(chosen_cut, Cut) else chosen_cut
        kept = ranked["score"] > threshold
    rows = ranked.index.to_numpy()[kept]
    table = ranked.loc[kept, ["rank"]]
    listed = {name: column.iloc[rows].to_numpy() for name, column in columns.items()}
    table = table.assign(**{name: listed[name] for name in ("id", "per") if name in listed})
    table["score"] = scores[rows]
    _add_probability(table, model, X, confidence)
    if "value" in listed:
        table["value"] = listed["value"]
    if expected is not None:
        table["expected_value"] = expected[rows]
    if n_reasons > 0:
        table["reasons"] = _join_reasons(model, X, table, n_reasons, summary)
    table.attrs["cut"] = chosen_cut.as_dict() if isinstance(chosen_cut, Cut) else None
    table.attrs["ties_left_out"] = ties
    table.attrs["short_groups"] = short
    return table


def alerts_of_scores(
    model: Any,
    X: Any,
    y: Any,
    scores: np.ndarray,
    length: int,
    *,
    ids: Any = None,
    value: Any = None,
) -> tuple[pd.DataFrame, np.ndarray]:
    """List the highest of held-out rows, with probabilities learnt from their labels and reasons of a model.

    For comparisons: `scores` are those of models that have not seen the rows, on one scale, while `model`
    has learnt from all of them and only explains. A row's place in the list stands for the same place in the
    model's own list, so that what a column adds can be told as a change of the chance.

    Returns
    -------
    table : DataFrame
        As `shortlist` gives it.
    probability : ndarray of shape (n_rows,)
    """
    from scipy.stats import rankdata  # slow to import, and only needed here

    # places in the list, spread out at its ends, where few positives allow no more than a sigmoid
    held_out = logit((rankdata(scores) - 0.5) / len(scores))
    probability_at = ProbabilityMap.learn(OutOfFoldCounts.of(np.asarray(y) > 0, held_out))
    probability = probability_at(held_out)
    order = descending_order(scores)[:length]
    columns = {"id": ids, "score": scores, "probability": probability, "value": value}
    table = pd.DataFrame(
        {name: np.asarray(column)[order] for name, column in columns.items() if column is not None},
        index=pd.Index(order, name="row"),
    )
    table.insert(0, "rank", np.arange(1, len(order) + 1))
    X = make_indexable(X)
    step = max(1, X.shape[0] // BACKGROUND_ROWS)
    background = take_rows(X, np.arange(0, X.shape[0], step))
    own = scores_of(model, X)
    places, own_places = np.sort(held_out), np.sort(own)

    def chance(row: int, added: float) -> np.ndarray:
        now = held_out[order[row]]
        before = np.interp(np.interp(now, places, own_places) - added, own_places, places)
        return probability_at(np.array([before, now]))

    texts = reasons(
        model, take_rows(X, order), raising_only=True, background=background, scores=own[order],
        chance=chance,
    )  # fmt: skip
    table["reasons"] = ["; ".join(parts) for parts in texts]
    return table, probability


def _expected_value(model: Any, scores: np.ndarray, value: Any, budget: Any) -> np.ndarray:
    """Return the probability of a positive times the money at stake."""
    if value is None or budget is None:
        raise ValueError(
            "rank_by='value' needs value, the money at stake in each row, and a budget"
        )
    if not hasattr(model, "calibration_"):
        raise ValueError(
            "rank_by='value' needs probabilities: fit the ranker in a CalibratedRanker"
        )
    amounts = np.asarray(value, dtype=np.float64)
    if not np.isfinite(amounts).all():
        raise ValueError("value must be a finite number in every row")
    return model.calibration_(scores) * amounts


def _rank_in_groups(scores: np.ndarray, groups: pd.Series | None) -> pd.DataFrame:
    """Return rows by group, the highest score first; equal scores in the order of the rows."""
    codes = np.zeros(len(scores), dtype=np.int64)
    if groups is not None:
        codes = pd.factorize(groups, sort=True)[0]
    order = np.lexsort((-scores, codes))
    index = pd.Index(order, name="row")
    ranked = pd.DataFrame({"group": codes[order], "score": scores[order]}, index=index)
    return ranked.assign(rank=ranked.groupby("group").cumcount() + 1)


def _check_column(X: Any, column: Any, n_rows: int, name: str) -> pd.Series:
    """Return a column that is given by its name or its values."""
    if isinstance(column, str):
        if not isinstance(X, pd.DataFrame) or column not in X.columns:
            raise ValueError(f"{name}: the rows have no column {column!r}")
        column = X[column]
    values = pd.Series(column.to_pandas() if hasattr(column, "to_pandas") else column)
    if len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} entries for {n_rows} rows")
    if name == "per" and values.isna().any():
        raise ValueError("per has missing entries; every row needs its group")
    return values.reset_index(drop=True)


def _check_budget(budget: Any) -> int:
    whole = isinstance(budget, Integral) or (isinstance(budget, float) and budget.is_integer())
    if not whole or isinstance(budget, bool) or budget < 1:
        raise ValueError(f"budget must be a whole number of rows of at least 1, got {budget!r}")
    return int(budget)


def _find_cut(model: Any, asked: Mapping[str, Any], confidence: float) -> Cut | float:
    """Return the cut that is given, or the one that meets the target; warn if none does."""
    cut = asked["cut"]
    if cut is not None and not isinstance(cut, Cut):
        if isinstance(cut, (bool, str)) or not float(cut) == float(cut):
            raise ValueError(f"cut must be a Cut or a threshold, got {cut!r}")
        return float(cut)
    if cut is None:
        target = {name: value for name, value in asked.items() if value is not None}
        if not hasattr(model, "cut"):
            raise ValueError(
                f"{', '.join(target)} needs out-of-fold scores, which {type(model).__name__} does not "
                "keep: fit it in a CalibratedRanker, or give cut=choose_cut(y, scores, ...) from "
                "held-out rows"
            )
        cut = model.cut(**target, confidence=confidence)
    if not cut.reached:
        empty = "" if np.isfinite(cut.threshold) else "the shortlist is empty; "
        warnings.warn(f"{empty}{cut.guarantee}", stacklevel=3)
    return cut


def _add_probability(table: pd.DataFrame, model: Any, X: Any, confidence: float) -> None:
    """Add the probability of each listed row, with its interval from a `CalibratedRanker`."""
    if isinstance(model, CalibratedRanker):
        scores = table["score"].to_numpy()
        table["probability"] = model.calibration_(scores)
        low, high = model._probability_interval(scores, confidence)
        table["probability_low"], table["probability_high"] = low, high
    elif hasattr(model, "predict_proba"):
        rows = table.index.to_numpy()
        table["probability"] = model.predict_proba(take_rows(X, rows))[:, 1] if len(rows) else 0.0


def _join_reasons(
    model: Any, X: Any, table: pd.DataFrame, n_reasons: int, summary: dict[str, Any] | None
) -> list[str]:
    """Return the reasons of each listed row as one text."""
    if not len(table):
        return []
    background = None
    if isinstance(X, (pd.DataFrame, np.ndarray)):  # evenly spaced rows, which represent all
        step = max(1, X.shape[0] // BACKGROUND_ROWS)
        background = take_rows(X, np.arange(0, X.shape[0], step))
    texts = reasons(
        model, take_rows(X, table.index.to_numpy()), n_reasons, raising_only=True, summary=summary,
        background=background, scores=table["score"].to_numpy(),
    )  # fmt: skip
    return ["; ".join(parts) for parts in texts]
