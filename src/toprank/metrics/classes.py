"""Several classes under one score: AUC per class, their average, and precision per class.

The analysis of Welleck, "Efficient AUC Optimization for Information Ranking Applications" (ECIR
2016), where the classes are grades of relevance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.metrics import _query_kernels
from toprank.metrics._lists import QueryTable, mean_over_queries, query_table
from toprank.validation import check_choice, check_range

__all__ = ["multiclass_auc", "multiclass_precision", "per_class_auc"]

KINDS = ("ordered", "one_vs_rest")
AVERAGES = ("micro", "macro")


def multiclass_auc(
    y_true: Any,
    scores: Any,
    *,
    kind: str = "ordered",
    qid: Any = None,
    fpr: tuple[float, float] = (0.0, 1.0),
    sample_weight: Any = None,
    pos_label: Any = None,
    return_skipped: bool = False,
) -> Any:
    """AUC averaged over classes: ``sum over c of p(c) AUC(c) / sum over c of p(c)``.

    `p(c)` is the share of the rows that have label c in the whole data.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        Numeric labels, in order of preference.
    scores : array-like of shape (n_rows,)
        Finite scores, one per row.
    kind : {"ordered", "one_vs_rest"}, default="ordered"
        - "ordered": AUC(c) of the rows of label c and above against those below, for every label
          but the lowest. A perfect order gives 1.
        - "one_vs_rest": AUC(c) of the rows of label c against all others, for every label. With one
          score per row this does not reward the right order: four equal classes in perfect order
          and in reverse both give 0.5.
    qid : array-like of shape (n_rows,), optional
        Query of each row. Classes that a query lacks, or that fill it, are left out of both sums
        for that query; queries in which none is left are left out of the mean.
    fpr : tuple (a, b), default=(0, 1)
        Use the partial area over this range of false positive rates, divided by its width.
    sample_weight : array-like of shape (n_rows,), optional
        Weights >= 0: weight 2 is the row twice, weight 0 the row absent.
    pos_label : label, optional
        Rows of this label against all others.
    return_skipped : bool, default=False
        Return also how many queries were left out.

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In [0, 1].

    Examples
    --------
    >>> multiclass_auc([2, 1, 0, 0], [0.9, 0.5, 0.4, 0.1])
    1.0
    >>> multiclass_auc([3, 2, 1, 0], [4, 3, 2, 1], kind="one_vs_rest")
    0.5
    """
    table = query_table(y_true, scores, sample_weight, pos_label, qid, signed=True)
    return mean_over_queries(multiclass_auc_queries(table, kind=kind, fpr=fpr), return_skipped)


def multiclass_auc_queries(
    table: QueryTable, *, kind: str = "ordered", fpr: tuple[float, float] = (0.0, 1.0)
) -> np.ndarray:
    """Multiclass AUC of each query; NaN where no class can be compared."""
    areas = _level_areas(table, kind, fpr)
    known = ~np.isnan(areas)
    shares = np.where(known, table.level_weight, 0.0)
    total = shares.sum(axis=1)
    weighted = (np.where(known, areas, 0.0) * shares).sum(axis=1)
    return np.divide(weighted, total, out=np.full(len(total), np.nan), where=total > 0)


def per_class_auc(
    y_true: Any,
    scores: Any,
    *,
    kind: str = "ordered",
    qid: Any = None,
    fpr: tuple[float, float] = (0.0, 1.0),
    sample_weight: Any = None,
    pos_label: Any = None,
) -> dict[float, float]:
    """AUC of each class, as averaged by :func:`multiclass_auc`.

    Parameters
    ----------
    y_true, scores, kind, fpr, sample_weight, pos_label
        As in :func:`multiclass_auc`.
    qid : array-like of shape (n_rows,), optional
        Query of each row: the mean of each class over the queries in which it can be compared.

    Returns
    -------
    dict
        From label to AUC. With ``kind="ordered"`` the lowest label is not there.

    Examples
    --------
    >>> per_class_auc([2, 1, 0, 0], [0.9, 0.2, 0.4, 0.1])
    {1.0: 0.75, 2.0: 1.0}
    """
    table = query_table(y_true, scores, sample_weight, pos_label, qid, signed=True)
    areas = _level_areas(table, kind, fpr)
    known = ~np.isnan(areas)
    return {
        float(level): float(areas[known[:, c], c].mean())
        for c, level in enumerate(table.levels)
        if known[:, c].any()
    }


def _level_areas(table: QueryTable, kind: str, fpr: tuple[float, float]) -> np.ndarray:
    """Area of each level (columns) in each query (rows)."""
    ordered = check_choice(kind, "kind", KINDS) == "ordered"
    low, high = check_range(fpr)
    return _query_kernels.query_level_areas(
        table.starts,
        table.scores,
        table.codes,
        table.weight,
        len(table.levels),
        ordered,
        low,
        high,
    )


def multiclass_precision(
    y_true: Any,
    scores: Any,
    *,
    average: str = "micro",
    qid: Any = None,
    sample_weight: Any = None,
    pos_label: Any = None,
    return_skipped: bool = False,
) -> Any:
    """Precision averaged over classes when each class claims as many ranks as it has rows.

    The highest class claims the first ranks, the next one the ranks below, and so on: the precision
    of a class is the share of its own rows in its stretch (its recall as well). Tied rows spread
    evenly over the ranks they share. The source names micro- and macro-averaged precision of a
    ranking without a formula; this is the reading that turns a ranking into classes without a
    threshold to choose.

    Parameters
    ----------
    y_true, scores, sample_weight, pos_label
        As in :func:`multiclass_auc`.
    average : {"micro", "macro"}, default="micro"
        Every row counts the same (the share of rows that stand in the stretch of their class), or
        every class does.
    qid : array-like of shape (n_rows,), optional
        Query of each row: the mean over queries. Those with a single class are left out.
    return_skipped : bool, default=False
        Return also how many queries were left out.

    Returns
    -------
    float, or (float, int) with `return_skipped`
        In [0, 1].

    Examples
    --------
    >>> multiclass_precision([2, 1, 0, 0], [0.9, 0.2, 0.4, 0.1])
    0.5
    >>> multiclass_precision([2, 1, 0, 0], [0.9, 0.2, 0.4, 0.1], average="macro")
    0.5
    """
    table = query_table(y_true, scores, sample_weight, pos_label, qid, signed=True)
    return mean_over_queries(multiclass_precision_queries(table, average=average), return_skipped)


def multiclass_precision_queries(table: QueryTable, *, average: str = "micro") -> np.ndarray:
    """Averaged precision of each query; NaN where a query has a single class."""
    check_choice(average, "average", AVERAGES)
    sizes, hits = _query_kernels.query_level_hits(
        table.starts, table.scores, table.codes, table.weight, len(table.levels)
    )
    present = sizes > 0
    if average == "micro":
        values = hits.sum(axis=1) / sizes.sum(axis=1)
    else:
        each = np.divide(hits, sizes, out=np.zeros_like(hits), where=present)
        values = each.sum(axis=1) / present.sum(axis=1)
    return np.where(present.sum(axis=1) > 1, values, np.nan)
