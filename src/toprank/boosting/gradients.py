"""Gradients for the trees of one fit: which form of the objective serves, and how workers share them."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.exchange import ALONE, Exchange
from toprank.objectives import Objective, ScoredList
from toprank.objectives.binned import EXACT_POSITIVES, binned_gradient_hessian
from toprank.validation import check_choice

__all__ = ["FORMS", "TreeGradients"]

FORMS = ("auto", "exact", "binned")
_ROWS_FOR_BINS = 300_000  # from here on the binned form of an objective that sorts is the cheaper
_ROWS_TO_GATHER = 1_000_000  # of a list whose scores may all travel each round
_BLOCK = 65_536  # rows whose figures stay in the cache
# Their loss is not a mean over queries that each worker could take by itself.
_ACROSS_QUERIES = {"lambda_mauc", "ndcg_sigmoid"}


class TreeGradients:
    """Gradient and Hessian, rescaled for trees, of the rows at hand as part of the rows of all workers.

    Parameters
    ----------
    objective : Objective
    y : ndarray
        Labels 0 and 1, or grades.
    weight, qid : ndarray or None
        Queries must be whole on a worker.
    form : {"auto", "exact", "binned"}
        Gradients of the list itself (the workers gather all scores), or of a histogram of the scores,
        whose size does not depend on the rows. "auto" takes the histogram for long lists; its error is
        below 1e-5 of the greatest gradient, but for lambda objectives on a cluster or out of core with
        more than 131,072 positives.
    thrifty : bool
        Whether memory counts more than time: the histogram then also replaces sums of exponentials.
    redrawn : bool
        Whether the rows drawn change from call to call. All workers must agree on it, for it says what
        travels: one that judged by its own rows could wait for an answer that no other sends.
    exchange : Exchange
    """

    def __init__(
        self,
        objective: Objective,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        qid: np.ndarray | None = None,
        *,
        form: str = "auto",
        thrifty: bool = False,
        redrawn: bool = False,
        exchange: Exchange = ALONE,
    ) -> None:
        check_choice(form, "exchange", FORMS)
        self.objective, self.y, self.weight, self.qid = objective, y, weight, qid
        self.exchange, self.thrifty = exchange, thrifty
        counts = exchange.combine(np.array([len(y), np.count_nonzero(y)], np.float64), "sum")
        if form == "auto":
            form = "binned" if self._bins_serve(counts[0], counts[1], thrifty) else "exact"
        self.form = "exact" if objective.pointwise or qid is not None else form
        if self.form == "binned":
            self.y = y.astype(np.uint8, copy=False)
        self._redrawn = redrawn
        self._list: ScoredList | None = None
        self._gathered: np.ndarray | None = None

    def rows_at(self, scores: np.ndarray, drawn: np.ndarray | None = None) -> ScoredList:
        """Return the rows at hand, or those drawn, with their scores; labels are checked the first time."""
        if self._list is None:
            graded = self.objective.graded
            self._list = ScoredList.of(self.y, scores, self.weight, self.qid, graded=graded)
        return self._list.at(scores.astype(np.float64, copy=False), drawn)

    def _bins_serve(self, n_rows: float, n_positives: float, thrifty: bool) -> bool:
        """Return whether the binned form is the better one, and close enough."""
        if not self.objective.binnable(n_positives, self.weight is not None):
            return False
        if self.exchange.size > 1:
            return n_rows > _ROWS_TO_GATHER
        close = self.objective.smooth or n_positives <= EXACT_POSITIVES
        return n_rows >= _ROWS_FOR_BINS and (thrifty or (self.objective.sorts and close))

    def __call__(
        self, scores: np.ndarray, drawn: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return both in float32, for all rows or for those drawn; to be called by all workers at once."""
        y, weight = self.y, self.weight
        if self.form == "exact" and not self.objective.pointwise:
            rows = self.rows_at(scores, drawn)
            if self.exchange.size == 1:
                return self.objective.scaled_gradient_hessian(rows)
            if rows.qid is not None and self.objective.name not in _ACROSS_QUERIES:
                return self._of_own_queries(rows)
            return self._of_gathered_rows(rows)
        if drawn is not None:
            scores, y = scores[drawn], y[drawn]
            weight = None if weight is None else weight[drawn]
        if self.objective.pointwise:
            return self._by_blocks(y, scores, weight)
        return binned_gradient_hessian(
            self.objective, y, scores, sample_weight=weight, for_trees=True, thrifty=self.thrifty,
            exchange=self.exchange,
        )  # fmt: skip

    def _by_blocks(self, y: np.ndarray, scores: np.ndarray, weight: Any) -> Any:
        """Return what single rows need, a block at a time, so that little memory is touched."""
        gradient, hessian = np.empty((2, len(y)), np.float32)
        for start in range(0, len(y), _BLOCK):
            part = slice(start, start + _BLOCK)
            own = None if weight is None else weight[part]
            rows = ScoredList.of(y[part], scores[part], own)
            gradient[part], hessian[part] = self.objective.scaled_gradient_hessian(rows)
        return gradient, hessian

    def _of_gathered_rows(self, rows: ScoredList) -> tuple[np.ndarray, np.ndarray]:
        """Rank the rows of all workers here, and keep what belongs to one's own."""
        if self._gathered is None or self._redrawn:  # labels travel once, unless they are drawn
            ones = np.ones(len(rows.y)) if rows.weight is None else rows.weight
            query = np.zeros(len(rows.y)) if rows.qid is None else rows.qid
            owner = np.full(len(rows.y), float(self.exchange.rank))
            self._gathered = self.exchange.gather(np.stack((rows.y, ones, query, owner)))[0]
        y, weight, query, owner = self._gathered
        scores, mine = self.exchange.gather(rows.scores[None])
        qid = None
        if rows.qid is not None:  # the workers number their queries each from 0
            qid = np.unique(np.stack((owner, query)), axis=1, return_inverse=True)[1].ravel()
        weight = None if (weight == 1).all() else weight
        whole = ScoredList.of(y, scores[0], weight, qid, graded=self.objective.graded)
        gradient, hessian = self.objective.scaled_gradient_hessian(whole)
        return gradient[mine], hessian[mine]

    def _of_own_queries(self, rows: ScoredList) -> tuple[np.ndarray, np.ndarray]:
        """Give one's own queries their part in the mean over the queries of all workers."""
        own = float(_n_rankable(rows)) if len(rows.y) else 0.0
        if own:
            gradient, hessian = self.objective.gradient_hessian(
                rows.y, rows.scores, sample_weight=rows.weight, qid=rows.qid
            )
            gradient, hessian = gradient * own, hessian * own  # sums, not means, over queries
        else:
            gradient = hessian = np.zeros(len(rows.y))
        weights = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        levels = np.bincount(rows.y.astype(np.int64), weights, 256)[:256]
        raised = float(np.maximum(np.abs(gradient), hessian).sum())
        totals = self.exchange.combine(np.r_[levels, raised], "sum")
        n, held = totals[:256].sum(), float(totals[:256] @ totals[:256])
        target = 0.5 * (n - held / max(n, 1e-300))  # as in `scale_for_trees`, of all workers
        factor = target / totals[256] if totals[256] > 0 else 1.0
        hessian = np.maximum(factor * np.maximum(np.abs(gradient), hessian), 1e-30)
        return (factor * gradient).astype(np.float32), hessian.astype(np.float32)


def _n_rankable(rows: ScoredList) -> int:
    """Return how many queries hold rows of more than one level."""
    present = slice(None) if rows.weight is None else rows.weight > 0
    pairs = np.unique(np.stack((rows.qid[present], rows.y[present])), axis=1)  # type: ignore[index]
    return int((np.unique(pairs[0], return_counts=True)[1] > 1).sum())
