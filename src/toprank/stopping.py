"""Hold-out rows, validation metrics with their direction, early stopping, and running rounds.

Every family that learns in rounds uses these: boosting, boosted rules and the solvers of partial AUC.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from toprank import metrics
from toprank.progress import progress

__all__ = ["EarlyStopping", "ValidationMetric", "hold_out", "run_rounds"]

RoundType = TypeVar("RoundType")


def hold_out(
    y: np.ndarray, fraction: float, random_state: int, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return a mask of the rows to hold out: the same share of each class, or whole groups (queries, say).

    Both parts have both classes.

    Examples
    --------
    >>> import numpy as np
    >>> hold_out(np.array([1, 1, 0, 0, 0, 0]), 0.5, random_state=0).sum()
    np.int64(3)
    """
    if not 0 < fraction < 1:
        raise ValueError(f"validation_fraction must lie between 0 and 1, got {fraction!r}")
    random = np.random.default_rng(random_state)
    positive = np.asarray(y) > 0
    held_out = np.zeros(len(positive), dtype=bool)
    if groups is not None:
        known = np.unique(groups)
        if len(known) < 2:
            raise ValueError("one query or group cannot be split for validation; give an eval_set")
        held_out = np.isin(groups, _draw(known, fraction, random))
    else:
        for label in (True, False):
            rows = np.flatnonzero(positive == label)
            if len(rows) < 2:
                raise ValueError(
                    "held-out rows need at least two positives and two negatives, there "
                    f"{'is' if len(rows) == 1 else 'are'} {len(rows)} "
                    f"{'positive' if label else 'negative'}: leave early stopping off, or bring "
                    "validation rows or more data"
                )
            held_out[_draw(rows, fraction, random)] = True
    for part, name in ((held_out, "validation"), (~held_out, "training")):
        if len(np.unique(positive[part])) < 2:
            raise ValueError(f"the {name} part of the split has only one class; give an eval_set")
    return held_out


def _draw(items: np.ndarray, fraction: float, random: np.random.Generator) -> np.ndarray:
    """Draw a share of the items: at least one, and never all of them."""
    size = min(len(items) - 1, max(1, round(fraction * len(items))))
    return random.choice(items, size=size, replace=False)


@dataclass(frozen=True)
class ValidationMetric:
    """A metric of validation rows, and whether more of it is better.

    Attributes
    ----------
    name : str
    function : callable
        ``function(y, scores, ...)``; weights and queries are handed over where it takes them.
    greater_is_better : bool
    """

    name: str
    function: Callable[..., float]
    greater_is_better: bool = True

    @classmethod
    def of(cls, metric: str | Callable[..., float], **parameters: Any) -> ValidationMetric:
        """Look a metric up by its name in `toprank.metrics`, or take any ``f(y, scores)``.

        Functions that are not in the registry are taken as the greater the better.

        Examples
        --------
        >>> ValidationMetric.of("list_length_for_recall").greater_is_better
        False
        """
        known = metrics.find_metric(metric)
        if known is None:
            return cls(getattr(metric, "__name__", "metric"), metric, True)  # type: ignore[arg-type]
        function = partial(known.function, **parameters) if parameters else known.function
        return cls(known.name, function, known.greater_is_better)

    def __call__(
        self,
        y: np.ndarray,
        scores: np.ndarray,
        sample_weight: np.ndarray | None = None,
        qid: np.ndarray | None = None,
    ) -> float:
        takes = inspect.signature(self.function).parameters
        given = {"sample_weight": sample_weight, "qid": qid}
        known = {k: v for k, v in given.items() if v is not None and k in takes}
        return float(self.function(y, scores, **known))


@dataclass
class EarlyStopping:
    """Keep the best round so far, and say when enough rounds brought nothing better.

    Attributes
    ----------
    patience : int or None
        Rounds without improvement after which to stop; None only keeps the record.
    greater_is_better : bool
        The direction of the metric.
    history : list of float
        The metric after each round.
    """

    patience: int | None = None
    greater_is_better: bool = True
    history: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"early_stopping_rounds must be at least 1, got {self.patience!r}")

    def record(self, value: float) -> bool:
        """Note the metric after a round; return whether to stop."""
        self.history.append(float(value))
        return self.patience is not None and self.stalled(self.patience)

    def stalled(self, patience: int) -> bool:
        """Return whether the last `patience` rounds brought nothing better."""
        return len(self.history) - self.best_round >= patience

    @property
    def best_round(self) -> int:
        """How many rounds give the best value: the fewest, if several do; 0 before the first."""
        if not self.history:
            return 0
        values = np.array(self.history)
        return int(np.argmax(values if self.greater_is_better else -values)) + 1

    @property
    def best_value(self) -> float:
        """The best value so far."""
        return self.history[self.best_round - 1]


def run_rounds(
    rounds: Iterable[RoundType],
    n_rounds: int,
    *,
    after_round: Callable[[RoundType], bool] | None = None,
    verbose: int = 0,
    label: str = "boosting",
) -> list[RoundType]:
    """Take up to `n_rounds` rounds.

    Parameters
    ----------
    rounds : iterable
        Does one round each time it is asked for the next item.
    n_rounds : int
    after_round : callable, optional
        Called with each round; True stops.
    verbose : int
        Above 0 shows a progress bar.
    label : str
        What the bar is called.

    Returns
    -------
    rounds : list
        An interruption from the keyboard leaves the rounds done so far, with a warning; before the
        first round it is raised.
    """
    done: list[RoundType] = []
    steps: Any = iter(rounds)
    with progress(n_rounds, label, enabled=verbose) as advance:
        try:
            while len(done) < n_rounds:
                found = next(steps, None)
                if found is None:
                    break
                done.append(found)
                advance()
                if after_round is not None and after_round(found):
                    break
        except KeyboardInterrupt:
            if not done:
                raise
            warnings.warn(
                f"interrupted: keeping the {len(done)} of {n_rounds} rounds done so far",
                UserWarning,
                stacklevel=3,
            )
    return done
