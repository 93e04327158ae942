"""Running a booster: how many rounds, when to stop early, what an interruption leaves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from toprank.progress import progress

__all__ = ["EarlyStopping", "hold_out", "run_rounds", "watch_metric"]

RoundType = TypeVar("RoundType")


@dataclass
class EarlyStopping:
    """Watches a metric on rows held out; says when it has not improved for long enough.

    Attributes
    ----------
    metric : callable
        `metric(y, scores, sample_weight=...)`, greater is better.
    y, sample_weight : ndarray
        Labels and weights of the rows held out.
    patience : int or None
        Rounds without improvement after which to stop; None only keeps the record.
    scores : list of float
        The metric after each round.
    """

    metric: Callable[..., float]
    y: np.ndarray
    sample_weight: np.ndarray | None
    patience: int | None
    scores: list[float] = field(default_factory=list)

    def update(self, row_scores: np.ndarray) -> bool:
        """Record the scores after a round; True when it is time to stop."""
        value = self.metric(self.y, row_scores, sample_weight=self.sample_weight)
        self.scores.append(float(value))
        return self.patience is not None and self.stalled(self.patience)

    def stalled(self, patience: int) -> bool:
        """Whether the last `patience` rounds brought nothing better."""
        return len(self.scores) - self.best_round >= patience

    @property
    def best_round(self) -> int:
        """How many rounds give the best value (the fewest, if several do)."""
        return int(np.argmax(self.scores)) + 1


def watch_metric(metric: str | Callable[..., float]) -> Callable[..., float]:
    """A metric by its name in `toprank.metrics`, or as given, so that greater is better."""
    if callable(metric):
        return metric
    from toprank.metrics import METRICS

    known = [name for name, entry in METRICS.items() if entry.list_core is not None]
    if metric not in known:
        raise ValueError(f"unknown eval_metric {metric!r}; known: {', '.join(known)}")
    entry = METRICS[metric]
    if entry.greater_is_better:
        return entry.function
    return lambda *arrays, **keywords: -entry.function(*arrays, **keywords)


def hold_out(y: np.ndarray, fraction: float, random: np.random.RandomState) -> np.ndarray:
    """Mask of rows to hold out for validation: the same share of each class, at least one row."""
    if not 0 < fraction < 1:
        raise ValueError(f"validation_fraction must lie between 0 and 1, got {fraction!r}")
    held = np.zeros(len(y), dtype=bool)
    for label, name in ((True, "positive"), (False, "negative")):
        rows = np.flatnonzero((y > 0) == label)
        if len(rows) < 2:
            raise ValueError(
                f"rows cannot be held out for validation with {len(rows)} {name}; "
                "leave early stopping off or bring more rows"
            )
        size = min(len(rows) - 1, max(1, round(fraction * len(rows))))
        held[random.choice(rows, size=size, replace=False)] = True
    return held


def run_rounds(
    booster: Iterable[RoundType],
    n_rounds: int,
    *,
    after_round: Callable[[RoundType], bool] | None = None,
    verbose: int = 0,
    label: str = "boosting",
) -> list[RoundType]:
    """Take up to `n_rounds` rounds of a booster.

    Parameters
    ----------
    booster : iterable of rounds
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
    rounds: list[RoundType] = []
    steps: Any = iter(booster)
    with progress(n_rounds, label, enabled=verbose) as advance:
        try:
            while len(rounds) < n_rounds:
                found = next(steps, None)
                if found is None:
                    break
                rounds.append(found)
                advance()
                if after_round is not None and after_round(found):
                    break
        except KeyboardInterrupt:
            if not rounds:
                raise
            warnings.warn(
                f"interrupted: keeping the {len(rounds)} of {n_rounds} rounds done so far",
                UserWarning,
                stacklevel=3,
            )
    return rounds
