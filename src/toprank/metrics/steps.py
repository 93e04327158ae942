"""One ranked list of two classes, reduced to the steps of its positives; metrics of functions of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import signature
from typing import Any, Protocol, cast

import numpy as np

from toprank.docstrings import fill_docstring
from toprank.metrics._kernels import weigh_around
from toprank.ranking import RankedList
from toprank.validation import BinaryRows, binary_rows

__all__ = [
    "CumulativeCounts",
    "Metric",
    "Staircase",
    "list_metric",
    "negatives_around",
    "positive_steps",
    "staircase",
]

# so many rows with at most this share of positives: only these are sorted
MANY_ROWS, RARE = 10_000, 0.02

Job = tuple[Callable[..., Any], dict[str, Any]]  # a core and its parameters


@dataclass(frozen=True)
class Staircase:
    """The tie groups of a list that hold a positive (steps), and the weight of the negatives around them.

    `negatives_between` lie strictly between two steps, the last entry below all; `negatives_tied` share the
    score of a step, and `scores` descend.
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

    @classmethod
    def of_rows(cls, rows: BinaryRows) -> Staircase:
        """Rank rows; of a long list with few positives only these are sorted, the others counted between."""
        n_rows = len(rows.scores)
        if n_rows < MANY_ROWS or np.count_nonzero(rows.positive) > RARE * n_rows:
            return cls.of(RankedList.of(rows.positive, rows.scores, rows.weight))
        return cls.of_rare(rows)

    @classmethod
    def of_rare(cls, rows: BinaryRows) -> Staircase:
        """Sort the positives alone."""
        known = rows.positive, rows.scores, rows.weight
        scores, positives = positive_steps(*known)
        held = negatives_around(scores, *known)
        return cls(
            held[::-2].copy(), positives[::-1].copy(), held[-2::-2].copy(), scores[::-1].copy()
        )

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
    return Staircase.of_rows(binary_rows(y_true, scores, sample_weight, pos_label))


def positive_steps(
    positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct scores of the positives, ascending, and the weight at each."""
    present = positive if weight is None else positive & (weight > 0)
    steps, places = np.unique(scores[present], return_inverse=True)
    return steps, np.bincount(places, None if weight is None else weight[present], len(steps)) * 1.0


def negatives_around(
    steps: np.ndarray, positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Return the weight of the negatives below the first of some ascending scores, at it, above it, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> scores, positive = np.array([1.0, 2.0, 2.0, 5.0]), np.array([False, True, False, False])
    >>> negatives_around(np.array([2.0]), positive, scores).tolist()
    [1.0, 1.0, 1.0]
    """
    weights = np.empty(0) if weight is None else weight
    return weigh_around(steps, np.ascontiguousarray(scores), positive, weights)


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


# -- metrics ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A metric and the functions that compute it on a list that is already ranked.

    The public `function` takes raw arrays, `list_core` the `Staircase` of one list of two classes, and
    `query_core` a `QueryTable`, to return a value for each query. A `graded` one also takes a single list of
    more than two labels, a `signed` one any numbers as labels.
    """

    function: Callable[..., Any]
    summary: str
    list_core: Callable[..., Any] | None = None
    query_core: Callable[..., Any] | None = None
    graded: bool = False
    signed: bool = False
    greater_is_better: bool = True

    @property
    def name(self) -> str:
        return self.function.__name__

    def __reduce__(self) -> Any:  # a core has the name of its metric, so pickle cannot find it
        return getattr, (self.function, "entry")

    @property
    def takes_queries(self) -> bool:
        return self.query_core is not None

    @property
    def needs_queries(self) -> bool:
        return self.list_core is None and not self.graded

    def list_job(self, **given: Any) -> Job:
        """Return what a `ListSample` runs: the function of one list, and all its parameters."""
        assert self.list_core is not None
        return self.list_core, self.parameters(given)

    def query_job(self, **given: Any) -> Job:
        """Return the same for a `TableSample`."""
        assert self.query_core is not None
        return self.query_core, self.parameters(given)

    def parameters(self, given: dict[str, Any]) -> dict[str, Any]:
        """Parameters of the metric with their defaults; unknown ones raise."""
        core = self.list_core or self.query_core
        assert core is not None
        known = {
            name: parameter.default
            for name, parameter in signature(core).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        unknown = sorted(set(given) - set(known))
        if unknown:
            choices = ", ".join(known) or "none"
            raise TypeError(f"{self.name} has no parameter {unknown[0]!r} (it has: {choices}).")
        return {**known, **given}


class PublicMetric(Protocol):
    """A metric of labels and scores; its `core` takes what is ranked already."""

    core: Callable[..., Any]
    entry: Metric

    def __call__(
        self,
        y_true: Any,
        scores: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        **parameters: Any,
    ) -> Any: ...


def list_metric(
    summary: str, *, greater_is_better: bool = True
) -> Callable[[Callable[..., float]], PublicMetric]:
    """Turn a function of a `Staircase` into a metric of labels and scores."""

    def decorate(core: Callable[..., float]) -> PublicMetric:
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

        entry = Metric(metric, summary, core, greater_is_better=greater_is_better)
        return publish(entry, core)

    return decorate


def publish(entry: Metric, core: Callable[..., Any]) -> PublicMetric:
    """Show the parameters of `core` in the signature of the metric that calls it; fill its docstring."""
    public = cast(Any, fill_docstring(entry.function))
    own = signature(public, follow_wrapped=False)
    y_true, scores, *options, _ = own.parameters.values()
    _, *parameters = signature(core).parameters.values()
    if entry.needs_queries:
        options = [o.replace(default=o.empty) if o.name == "qid" else o for o in options]
    public.__signature__ = own.replace(
        parameters=[y_true, scores, *parameters, *options], return_annotation="float"
    )
    public.core, public.entry = core, entry
    return public
