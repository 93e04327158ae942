"""One ranked list of two classes, reduced to the steps that its positives make: what its metrics read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import signature
from typing import Any, Protocol, cast

import numpy as np

from toprank.docstrings import fill_docstring
from toprank.ranking import RankedList
from toprank.validation import binary_rows

__all__ = ["CumulativeCounts", "Staircase", "list_metric", "staircase"]

ROUNDING = 1e-12  # shares such as .55 of 100 rows come out as 55.00000000000001


@dataclass(frozen=True)
class Staircase:
    """The tie groups of a list that hold a positive, and the weight of the negatives around them.

    Attributes
    ----------
    negatives_between : ndarray of shape (n_steps + 1,)
        Weight of the negatives strictly between two steps; the last entry is for those below all.
    positives, negatives_tied : ndarray of shape (n_steps,)
        Weight of the positives of each step and of the negatives that share its score.
    scores : ndarray of shape (n_steps,)
        The scores of the steps, descending.
    """

    negatives_between: np.ndarray
    positives: np.ndarray
    negatives_tied: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, ranked: RankedList) -> Staircase:
        """Reduce a ranked list."""
        above = ranked.positives
        steps = np.flatnonzero(np.append(above[0] > 0, above[1:] > above[:-1]))
        positives = np.diff(above[steps], prepend=0.0)
        ends = ranked.negatives[steps]
        starts = np.where(steps > 0, ranked.negatives[steps - 1], 0.0)
        between = np.append(starts, ranked.total_negatives) - np.append(0.0, ends)
        return cls(between, positives, ends - starts, ranked.scores[steps])

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that the compiled loops take."""
        return self.negatives_between, self.positives, self.negatives_tied

    @property
    def n_steps(self) -> int:
        return len(self.positives)

    @cached_property
    def positives_caught(self) -> np.ndarray:
        """Weight of the positives at or above each step."""
        return np.cumsum(self.positives)

    @cached_property
    def negatives_flagged(self) -> np.ndarray:
        """Weight of the negatives at or above each step."""
        return np.cumsum(self.negatives_between[:-1] + self.negatives_tied)

    @cached_property
    def precisions(self) -> np.ndarray:
        """Precision of the list that ends with each step; 0 where it is empty."""
        return _ratio(self.positives_caught, self.positives_caught + self.negatives_flagged)

    @cached_property
    def total_positives(self) -> float:
        return float(self.positives.sum())

    @cached_property
    def total_negatives(self) -> float:
        return float(self.negatives_between.sum() + self.negatives_tied.sum())

    @property
    def total(self) -> float:
        return self.total_positives + self.total_negatives


def staircase(
    y_true: Any, scores: Any, sample_weight: Any = None, pos_label: Any = None
) -> Staircase:
    """Check raw arrays and rank them once."""
    rows = binary_rows(y_true, scores, sample_weight, pos_label)
    return Staircase.of(RankedList.of(rows.positive, rows.scores, rows.weight))


class PublicMetric(Protocol):
    """A metric of labels and scores; its `core` takes what is ranked already."""

    __name__: str
    core: Callable[..., Any]

    def __call__(self, y_true: Any, scores: Any, **options: Any) -> Any: ...


def list_metric(core: Callable[..., float]) -> PublicMetric:
    """Turn a function of a `Staircase` into a metric of labels and scores."""

    @wraps(core)
    def metric(
        y_true: Any,
        scores: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        **parameters: Any,
    ) -> float:
        return core(staircase(y_true, scores, sample_weight, pos_label), **parameters)

    return publish(metric, core)


def publish(metric: Callable[..., Any], core: Callable[..., Any]) -> PublicMetric:
    """Show the parameters of `core` in the signature of the metric that calls it; fill its docstring."""
    own = signature(metric, follow_wrapped=False)
    y_true, scores, *options, _ = own.parameters.values()
    _, *parameters = signature(core).parameters.values()
    public = cast(Any, fill_docstring(metric))
    public.__signature__ = own.replace(parameters=[y_true, scores, *parameters, *options])
    public.core = core
    return public


@dataclass(frozen=True)
class CumulativeCounts:
    """Negatives and positives passed at every corner of a staircase, from the top of the list to its end.

    There are 2 n_steps + 2 corners: the start, the start and end of each step, and the end of the list.
    Between corners both grow along straight lines, which is the expected value inside a tie group.
    """

    negatives: np.ndarray
    positives: np.ndarray

    @classmethod
    def of(cls, stairs: Staircase) -> CumulativeCounts:
        """Cumulate the steps of a list."""
        negatives = np.zeros(2 * stairs.n_steps + 2)
        negatives[1::2], negatives[2::2] = stairs.negatives_between, stairs.negatives_tied
        return cls(np.cumsum(negatives), _cumulate_steps(stairs.positives))

    def positives_among(self, lengths: np.ndarray) -> np.ndarray:
        """Return the expected positives among the first so many rows."""
        return np.interp(lengths, self.negatives + self.positives, self.positives)

    def sum_among(self, lengths: np.ndarray, step_sums: np.ndarray) -> np.ndarray:
        """Return the expected sum over the first so many rows of what the positives of each step hold."""
        return np.interp(lengths, self.negatives + self.positives, _cumulate_steps(step_sums))

    def recall_at_fpr(self, rates: np.ndarray) -> np.ndarray:
        """Return the height of the ROC curve; its upper end where the curve is vertical."""
        x, y = self.negatives, self.positives
        target = rates * x[-1]
        before = np.searchsorted(x, target, side="right") - 1
        after = np.minimum(before + 1, len(x) - 1)
        share = _ratio(target - x[before], x[after] - x[before])
        return (y[before] + share * (y[after] - y[before])) / y[-1]

    def precision_at_recall(self, recalls: np.ndarray) -> np.ndarray:
        """Return the precision of the shortest list of each recall > 0, on the hyperbola inside ties."""
        x, y = self.negatives, self.positives
        target = recalls * y[-1]
        after = np.minimum(np.searchsorted(y, target, side="left"), len(y) - 1)
        before = np.maximum(after - 1, 0)
        share = _ratio(target - y[before], y[after] - y[before])
        return target / (target + x[before] + share * (x[after] - x[before]))


def _cumulate_steps(step_sums: np.ndarray) -> np.ndarray:
    """Cumulate from corner to corner what comes with the positives of each step."""
    gained = np.zeros(2 * len(step_sums) + 2)
    gained[2::2] = step_sums
    return np.cumsum(gained)


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Divide, with 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole > 0)
