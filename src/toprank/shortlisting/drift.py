"""Drift: whether new rows, column by column and by their scores, look like the training rows.

By the population stability index and, for numbers, the Kolmogorov-Smirnov distance to the training summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import chdtri, kolmogorov

from toprank.folds import make_indexable, scores_of
from toprank.shortlisting.counts import share_interval
from toprank.shortlisting.reasons import column_names, get_column

__all__ = ["LARGE", "MODERATE", "Drift", "drift"]

MODERATE, LARGE = 0.1, 0.25
LARGE_SCORES = 0.5
FALSE_ALARM = 1e-3  # chance of any warning at all on a table that has not drifted
N_BINS = 10
MIN_UNSEEN = 0.01  # share of unseen categories that is reported
# of all training rows: so many different texts are names, and new rows bring new ones
MANY_VALUES = 0.5


@dataclass(frozen=True)
class Drift:
    """How new rows differ from the training rows.

    Attributes
    ----------
    columns : list of dict
        One for each column: `name`, `kind`, `psi`, `psi_allowed` (what chance explains), `ks` and
        `ks_p_value` (None for categories), `missing` and `missing_training`, `unseen` (share of values whose
        category training did not have; None where that is not known) and `drift`: "none",
        "moderate" or "large".
    scores : dict or None
        The same of the scores.
    warnings : list of str
        What has changed, the worst first; empty when nothing has.
    n_rows : int
    """

    columns: list[dict[str, Any]]
    scores: dict[str, Any] | None
    warnings: list[str]
    n_rows: int

    @property
    def drifted(self) -> bool:
        return bool(self.warnings)

    def table(self) -> pd.DataFrame:
        """Return the columns as a table, the largest index first."""
        table = pd.DataFrame(self.columns)
        return table.sort_values("psi", ascending=False, ignore_index=True) if len(table) else table

    def as_dict(self) -> dict[str, Any]:
        """Return JSON data: `n_rows`, `columns`, `scores` and `warnings`."""
        return asdict(self)


def drift(model_or_summary: Any, X: Any, *, scores: Any = None) -> Drift:
    """Compare new rows with the training rows.

    Parameters
    ----------
    model_or_summary : fitted estimator or dict
        A model that was loaded from a file with a training summary, or a summary
        (`toprank.persistence.summarise`).
    X : array, sparse matrix or table
        New rows.
    scores : array of shape (n_rows,), optional
        The model's scores of the rows where they are known, so that they are not computed again.

    Returns
    -------
    drift : Drift

    Notes
    -----
    Of a calibrated model that tells most rows apart the summary knows the held-out scores of the training
    rows. Of another it knows the scores of the rows themselves, which flatter a model that has learnt them by
    heart: the scores of new rows differ from them without any drift (an index of 0.3 in a forest of 15 trees on
    300 rows). A shift of the scores is therefore reported above 0.5 only.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> from toprank.persistence import summarise
    >>> from toprank.shortlisting import drift
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> model = LogisticRanker().fit(X, (X[:, 0] > 1).astype(int))
    >>> summary = summarise(model, X)
    >>> drift(summary, X[:300]).drifted
    False
    >>> drift(summary, X[:300] + [0.0, 1.0]).columns[1]["drift"]
    'large'
    """
    given = isinstance(model_or_summary, Mapping)
    model = None if given else model_or_summary
    summary = model_or_summary if given else getattr(model, "training_summary_", None)
    if summary is None:
        raise ValueError(
            "the model has no training summary to compare with: save it with its training rows "
            "(toprank.save(model, path, X, y)) and load it, or give toprank.persistence.summarise(...)"
        )
    X = make_indexable(X)
    n_rows = int(X.shape[0])
    if n_rows == 0:
        return Drift([], None, [], 0)
    known = summary["columns"]
    error = FALSE_ALARM / (2 * (len(known) + 1))  # two tests of each column, and the scores
    places = {name: j for j, name in enumerate(column_names(X))} if known else {}
    columns, warnings = [], []
    for column in known:
        if column["name"] not in places:
            warnings.append((np.inf, f"column {column['name']!r} is missing"))
            continue
        values = get_column(X, places[column["name"]])
        categories = _categories(model, column["name"])
        found = _compare_column(column, values, summary["n_rows"], error, categories)
        columns.append(found)
        warnings += _column_warnings(found, error, n_rows)
    found_scores = None
    if (model is not None or scores is not None) and summary.get("scores", {}).get("quantiles"):
        scores = scores_of(model, X) if scores is None else np.asarray(scores, dtype=np.float64)
        as_column = {"name": "", "kind": "number", "missing": 0.0, **summary["scores"]}
        found = _compare_column(as_column, pd.Series(scores), summary["n_rows"], error, None)
        found_scores = {name: found[name] for name in ("psi", "psi_allowed", "ks", "ks_p_value")}
        index, allowed = found["psi"], found["psi_allowed"]
        found_scores["drift"] = "large" if index > max(LARGE_SCORES, allowed) else "none"
        if found_scores["drift"] == "large":
            warnings.append((index, f"the scores: large shift (stability index {index:.2f})"))
    warnings.sort(key=lambda warning: -warning[0])
    return Drift(columns, found_scores, [text for _, text in warnings], n_rows)


def _categories(model: Any, name: str) -> set[str] | None:
    """Return all categories of a column that the model knows (a summary has only the frequent ones)."""
    columns = getattr(model, "columns_", None)
    if columns is None or name not in columns.names:
        return None
    values = columns.categories[columns.names.index(name)]
    return None if values is None else {str(v) for v in values.tolist()}


# -- one column -----------------------------------------------------------------------------------


def _compare_column(
    column: dict[str, Any], values: pd.Series, n_training: int, error: float, categories: Any
) -> dict[str, Any]:
    """Return all measures of one column."""
    missing = values.isna().to_numpy(dtype=bool)
    found = {"name": column["name"], "kind": column["kind"], "missing": float(missing.mean()),
             "missing_training": float(column["missing"]), "ks": None, "ks_p_value": None,
             "unseen": None}  # fmt: skip
    present = values[~missing]
    if column["kind"] == "category":
        old, new, found["unseen"] = _category_bins(
            column, present, len(values), n_training, categories
        )
    else:
        numbers = pd.to_numeric(present, errors="coerce").to_numpy(dtype=np.float64)
        numbers = numbers[~np.isnan(numbers)]
        quantiles = np.asarray(column["quantiles"], dtype=np.float64)
        old, new = number_bins(quantiles, numbers, column["missing"], len(values))
        if len(quantiles) and len(numbers):
            n_old = n_training * (1 - column["missing"])
            found["ks"], found["ks_p_value"] = distance(quantiles, numbers, n_old)
    return {**found, **_stability(old, new, n_training, len(values), error)}


def _stability(
    old: np.ndarray, new: np.ndarray, n_old: int, n_new: int, error: float
) -> dict[str, Any]:
    """Return the index, what chance explains of it, and the verdict.

    Without drift the index is about (1/n + 1/m) times a chi-squared variable with one degree of freedom less
    than bins, for n new and m training rows (Yurdakul and Naranjo 2020, J. Risk Model Validation 14). By
    custom above 0.1 is a moderate and above 0.25 a large shift; here it must also exceed what chance gives
    in one of 1,000 tables (over all columns together).
    """
    index = stability_index(old, new, n_old, n_new)
    bins = int(np.count_nonzero((old > 0) | (new > 0)))
    allowed = (1 / n_new + 1 / max(n_old, 1)) * float(chdtri(max(bins - 1, 1), error))
    # bins that hold next to nothing of a small table stray further than a chi-squared variable
    allowed += 2 * bins / min(n_new, max(n_old, 1))
    level = "none"
    if index > max(MODERATE, allowed):
        level = "large" if index > LARGE else "moderate"
    return {"psi": index, "psi_allowed": allowed, "drift": level}


def stability_index(old: np.ndarray, new: np.ndarray, n_old: int, n_new: int) -> float:
    """Return the population stability index, sum over bins of (new - old) ln(new / old).

    Half a row is added to each bin.

    Examples
    --------
    >>> import numpy as np
    >>> round(stability_index(np.array([0.5, 0.5]), np.array([0.8, 0.2]), 10**6, 10**6), 3)
    0.416
    """
    kept = (old > 0) | (new > 0)
    a = (old[kept] * n_old + 0.5) / (n_old + 0.5 * kept.sum())
    b = (new[kept] * n_new + 0.5) / (n_new + 0.5 * kept.sum())
    return float(np.sum((b - a) * np.log(b / a)))


def cumulative_shares(quantiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values among quantiles at 0, 1, ..., 100 percent, and the share up to each.

    A value that fills several quantiles reaches from the last of them to just before the next: the
    middle is taken, half a percent off at most.
    """
    values, first, times = np.unique(quantiles, return_index=True, return_counts=True)
    ends = first + times - 1
    shares = np.where(times > 1, ends + 0.5, ends) / (len(quantiles) - 1)
    shares[-1] = 1.0
    return values, np.minimum(shares, 1.0)


def number_bins(
    quantiles: np.ndarray, numbers: np.ndarray, missing: float, n_new: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return shares of old and new rows in tenths of the old ones; the last bin is for missing values."""
    new_missing = 1 - len(numbers) / n_new
    if not len(quantiles):
        return np.array([0.0, missing]), np.array([1 - new_missing, new_missing])
    values, shares = cumulative_shares(quantiles)
    wanted = np.arange(1, N_BINS) / N_BINS
    at = np.unique(np.minimum(np.searchsorted(shares, wanted - 1e-9), len(values) - 1))
    at = at[shares[at] < 1.0]
    old = np.diff(np.concatenate([[0.0], shares[at], [1.0]]))
    new = np.bincount(np.searchsorted(values[at], numbers), minlength=len(old)) / n_new
    return np.append(old * (1 - missing), missing), np.append(new, new_missing)


def distance(quantiles: np.ndarray, numbers: np.ndarray, n_old: float) -> tuple[float, float]:
    """Return the largest distance of two distribution functions at the old quantiles, and its p-value."""
    values, shares = cumulative_shares(quantiles)
    ordered = np.sort(numbers)
    here = np.searchsorted(ordered, values, side="right") / len(ordered)
    slack = np.where(np.isin(shares * (len(quantiles) - 1) % 1, (0.0,)), 0.0, 0.005)
    largest = float(np.max(np.maximum(np.abs(here - shares) - slack, 0.0)))
    n = len(numbers) * n_old / (len(numbers) + n_old) if n_old > 0 else 0.0
    return largest, float(kolmogorov(largest * np.sqrt(n)))


def _category_bins(
    column: dict[str, Any],
    present: pd.Series,
    n_new: int,
    n_training: int,
    categories: set[str] | None,
) -> tuple[np.ndarray, np.ndarray, float | None]:
    """Return shares of old and new rows in the frequent categories, all others and missing values."""
    shares = column["shares"]
    counts = present.astype(object).map(str).value_counts()
    new = np.array([counts.get(name, 0) for name in shares], dtype=float) / n_new
    others = float(len(present)) / n_new - float(new.sum())
    old = np.append(np.array(list(shares.values())), [column["others"], column["missing"]])
    new = np.append(new, [others, 1 - len(present) / n_new])
    unseen: float | None = None
    if categories is not None or column["others"] == 0:
        known = list(shares if categories is None else categories)
        if len(known) > MANY_VALUES * n_training * (1 - column["missing"]):
            return old, np.maximum(new, 0.0), None  # names of rows: new ones have others
        unseen = float(counts[~counts.index.isin(known)].sum()) / n_new
    return old, np.maximum(new, 0.0), unseen


def _column_warnings(found: dict[str, Any], error: float, n_rows: int) -> list[tuple[float, str]]:
    """Return warnings about one column, each with how bad it is."""
    name, warnings = found["name"], []
    before, now = found["missing_training"], found["missing"]
    low, high = share_interval(now * n_rows, n_rows, 1 - 2 * error)
    apart = f"{now:.1%} missing, {before:.1%} in training" if abs(now - before) > 0.05 else ""
    if found["drift"] != "none":
        shift = f"{found['drift']} shift (stability index {found['psi']:.2f})"
        warnings.append((found["psi"], f"{name!r}: {'; '.join(filter(None, (shift, apart)))}"))
    elif apart and not low <= before <= high:
        warnings.append((abs(now - before), f"{name!r}: {apart}"))
    unseen = found["unseen"]
    if unseen is not None and unseen >= MIN_UNSEEN and unseen * n_rows >= 5:
        text = f"{name!r}: {unseen:.1%} of the values are categories not seen in training"
        warnings.append((unseen, text))
    return warnings
