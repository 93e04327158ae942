"""Quality over time: the same model on consecutive stretches of the rows."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from toprank import metrics
from toprank.metrics.bootstrap import ListSample
from toprank.metrics.intervals import _delong, percentiles
from toprank.metrics.precision import average_precision_core
from toprank.report.resamples import Resampler, n_affordable
from toprank.report.rows import ReportRows
from toprank.validation import BinaryRows

__all__ = ["quality_over_time", "time_blocks"]

MOST_BLOCKS = 12
POSITIVES_PER_BLOCK = 10  # on average; a block with fewer says little
BLOCK_RESAMPLES = 400


def quality_over_time(
    rows: ReportRows, level: float, n_resamples: int, seed: int
) -> dict[str, Any] | None:
    """Average precision and AUC of consecutive blocks, and whether the later half differs."""
    assert rows.time is not None
    n_positives = int(np.count_nonzero(rows.positive))
    n_blocks = min(MOST_BLOCKS, max(2, n_positives // POSITIVES_PER_BLOCK))
    codes = time_blocks(rows.time, n_blocks if n_positives >= POSITIVES_PER_BLOCK else 1)
    if codes.max() == 0:
        return None
    count = max(1, min(n_resamples, BLOCK_RESAMPLES))
    blocks = [
        _block(rows, np.flatnonzero(codes == code), level, count, seed)
        for code in range(codes.max() + 1)
    ]
    return {"blocks": blocks, "change": _change(rows, level)}


def time_blocks(time: np.ndarray, n_blocks: int) -> np.ndarray:
    """Codes 0, 1, ... of about equally long blocks in order of time; equal times stay together.

    Examples
    --------
    >>> time_blocks(np.array([3, 1, 1, 2, 2, 3]), 3).tolist()
    [2, 0, 0, 1, 1, 2]
    """
    _, moment, counts = np.unique(time, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / len(time)
    code_of_moment = np.minimum((middle * n_blocks).astype(np.int64), n_blocks - 1)
    used = np.unique(code_of_moment)
    return np.searchsorted(used, code_of_moment)[moment]


def _block(
    rows: ReportRows, members: np.ndarray, level: float, n_resamples: int, seed: int
) -> dict[str, Any]:
    """One stretch of time."""
    assert rows.time is not None
    positive, scores = rows.positive[members], rows.scores[rows.model][members]
    weight = None if rows.weight is None else rows.weight[members]
    total = float(len(members) if weight is None else weight.sum())
    found = float(positive.sum() if weight is None else weight[positive].sum())
    block: dict[str, Any] = {
        "start": _shown(rows.time[members].min()),
        "end": _shown(rows.time[members].max()),
        "n_rows": total,
        "n_positives": found,
        "prevalence": found / total,
        "average_precision": None,
        "roc_auc": None,
    }
    if 0 < np.count_nonzero(positive) < len(members):
        sample = ListSample(BinaryRows(positive, scores, weight))
        area = metrics.interval("roc_auc", positive, scores, sample_weight=weight, level=level,
                                n_resamples=n_resamples)  # fmt: skip
        block["roc_auc"] = {"value": area.value, "low": area.low, "high": area.high}
        value = float(average_precision_core(sample.stairs))
        resampler = Resampler.of(positive, scores, weight)
        count = n_affordable(n_resamples, resampler.cost)
        drawn = [average_precision_core(stairs) for stairs, _ in resampler.draw(count, seed)]
        low, high = percentiles(np.array(drawn), level)
        block["average_precision"] = {"value": value, "low": low, "high": high}
    return block


def _change(rows: ReportRows, level: float) -> dict[str, Any] | None:
    """AUC of the later half of the rows minus that of the earlier, by DeLong's variances.

    The AUC does not depend on how common positives are, which may itself change with time.
    """
    assert rows.time is not None
    later = time_blocks(rows.time, 2).astype(bool)
    areas, variance = [], 0.0
    for half in (~later, later):
        positive = rows.positive[half]
        n_positives = np.count_nonzero(positive)
        if min(n_positives, len(positive) - n_positives) < 2:
            return None
        weight = None if rows.weight is None else rows.weight[half]
        sample = ListSample(BinaryRows(positive, rows.scores[rows.model][half], weight))
        area, covariance = _delong([sample])
        areas.append(float(area[0]))
        variance += float(covariance[0, 0])
    difference = areas[1] - areas[0]
    margin = NormalDist().inv_cdf((1 + level) / 2) * variance**0.5
    low, high = max(difference - margin, -1.0), min(difference + margin, 1.0)
    verdict = "better" if low > 0 else "worse" if high < 0 else "cannot tell"
    return {
        "earlier": areas[0],
        "later": areas[1],
        "difference": difference,
        "low": low,
        "high": high,
        "verdict": verdict,
    }


def _shown(moment: Any) -> str:
    """A date without an empty clock, or a short number."""
    if isinstance(moment, np.datetime64):
        text = np.datetime_as_string(moment, unit="m").replace("T", " ")
        return text.removesuffix(" 00:00")
    return f"{float(moment):,.6g}"
