"""Bootstrap of whole curves: every resample is one staircase, read at all lengths and rates at once.

Resamples are stratified like those of `toprank.metrics`. Without weights, how many negatives a resample
puts between two positives is multinomial, so a draw costs as many numbers as there are steps, not rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.metrics.bootstrap import Job
from toprank.metrics._lists import Staircase
from toprank.ranking import RankedList
from toprank.report.curves import FALSE_POSITIVE_RATES, RECALLS

__all__ = ["Path", "Readings", "Resampler", "n_affordable", "read_resamples"]

FEWEST = 200
NUMBERS = 1e8  # drawn in all, beyond the fewest resamples: some ten seconds


def n_affordable(n_resamples: int, cost: float, at_most: float = NUMBERS) -> int:
    """Resamples for work of `cost` numbers each: all that were asked for, or fewer, down to 200."""
    return int(min(n_resamples, max(FEWEST, at_most // max(cost, 1.0))))


@dataclass(frozen=True)
class Path:
    """A ranked list from its top to its end: what has been passed at every corner of its staircase.

    Between corners all three grow along straight lines, which is the expected value inside a tie group.
    """

    negatives: np.ndarray
    positives: np.ndarray
    money: np.ndarray | None

    @classmethod
    def of(cls, stairs: Staircase, money: np.ndarray | None = None) -> Path:
        """Cumulate a staircase; `money` is the value of the positives of each step."""
        across = np.zeros(2 * len(stairs.rise) + 2)
        across[1::2], across[2::2] = stairs.run, stairs.tied
        cumulated = None if money is None else np.cumsum(_on_steps(money))
        return cls(np.cumsum(across), np.cumsum(_on_steps(stairs.rise)), cumulated)

    def hits(self, lengths: np.ndarray) -> np.ndarray:
        """Positives among the first so many rows."""
        return np.interp(lengths, self.negatives + self.positives, self.positives)

    def caught(self, lengths: np.ndarray) -> np.ndarray:
        """Value of the positives among the first so many rows."""
        assert self.money is not None
        return np.interp(lengths, self.negatives + self.positives, self.money)

    def true_positive_rate(self, rates: np.ndarray) -> np.ndarray:
        """Height of the ROC curve at false positive rates; its upper end where it is vertical."""
        x, y = self.negatives, self.positives
        target = rates * x[-1]
        before = np.searchsorted(x, target, side="right") - 1
        after = np.minimum(before + 1, len(x) - 1)
        share = _ratio(target - x[before], x[after] - x[before])
        return (y[before] + share * (y[after] - y[before])) / y[-1]

    def precision(self, recalls: np.ndarray) -> np.ndarray:
        """Precision of the shortest list of each recall > 0, on the exact hyperbola inside ties."""
        x, y = self.negatives, self.positives
        target = recalls * y[-1]
        after = np.minimum(np.searchsorted(y, target, side="left"), len(y) - 1)
        before = np.maximum(after - 1, 0)
        share = _ratio(target - y[before], y[after] - y[before])
        return target / (target + x[before] + share * (x[after] - x[before]))


@dataclass(frozen=True)
class Resampler:
    """Rows of one list, ready to be drawn again and again.

    Attributes
    ----------
    stairs : Staircase
        Of the rows as they are.
    step : ndarray of shape (n_positives,)
        Step of each positive.
    place : ndarray of shape (n_negatives,)
        Place of each negative: between steps (0 .. n_steps), or tied with one (n_steps + 1 ..).
    height, width : ndarray or None
        Weights of the positives and of the negatives.
    money : ndarray or None
        Value of each positive, times its weight.
    """

    stairs: Staircase
    step: np.ndarray
    place: np.ndarray
    height: np.ndarray | None
    width: np.ndarray | None
    money: np.ndarray | None

    @classmethod
    def of(
        cls,
        positive: np.ndarray,
        scores: np.ndarray,
        weight: np.ndarray | None = None,
        value: np.ndarray | None = None,
    ) -> Resampler:
        """Rank the rows once."""
        stairs = Staircase.of(RankedList.of(positive, scores, weight))
        levels = stairs.scores[::-1]
        found = np.searchsorted(levels, scores)
        met = levels[np.minimum(found, len(levels) - 1)] == scores
        step = len(levels) - found - met
        money = None if value is None else value[positive]
        if money is not None and weight is not None:
            money = money * weight[positive]
        return cls(
            stairs,
            step[positive],
            (step + met * (len(levels) + 1))[~positive],
            None if weight is None else weight[positive],
            None if weight is None else weight[~positive],
            money,
        )

    @property
    def cost(self) -> int:
        """How many numbers a draw and its reading take, roughly."""
        drawn = 2 * len(self.stairs.rise) if self.width is None else len(self.place)
        return len(self.step) + drawn

    def observed(self) -> Path:
        """The path of the rows as they are."""
        return Path.of(self.stairs, self._money(np.arange(len(self.step))))

    def draw(self, n_resamples: int, seed: int) -> Iterator[tuple[Staircase, np.ndarray | None]]:
        """The staircases of so many resamples, and the money of their steps."""
        generator = np.random.default_rng(seed)
        n_steps = len(self.stairs.rise)
        across = np.concatenate((self.stairs.run, self.stairs.tied))
        share = across / across.sum()
        for _ in range(n_resamples):
            drawn = generator.integers(len(self.step), size=len(self.step))
            height = None if self.height is None else self.height[drawn]
            rise = np.bincount(self.step[drawn], height, n_steps).astype(np.float64)
            if self.width is None:
                passed = generator.multinomial(len(self.place), share).astype(np.float64)
            else:
                other = generator.integers(len(self.place), size=len(self.place))
                passed = np.bincount(self.place[other], self.width[other], len(across)).astype(
                    float
                )
            run, tied = passed[: n_steps + 1], passed[n_steps + 1 :]
            yield Staircase(run, rise, tied, self.stairs.scores), self._money(drawn)

    def _money(self, drawn: np.ndarray) -> np.ndarray | None:
        if self.money is None:
            return None
        return np.bincount(self.step[drawn], self.money[drawn], len(self.stairs.rise))


@dataclass(frozen=True)
class Readings:
    """What was read off each resample (first axis), as far as it was asked for."""

    hits: np.ndarray
    positives: np.ndarray
    money: np.ndarray | None
    roc: np.ndarray
    precision: np.ndarray
    metrics: dict[str, np.ndarray]


def read_resamples(
    resampler: Resampler,
    lengths: np.ndarray,
    jobs: Mapping[str, Job],
    n_resamples: int,
    seed: int,
) -> Readings:
    """Draw the resamples once and read lists, curves and metrics off each."""
    readings: dict[str, list[Any]] = {key: [] for key in ("hits", "money", "roc", "precision")}
    metrics: dict[str, list[float]] = {name: [] for name in jobs}
    positives = []
    for stairs, money in resampler.draw(n_resamples, seed):
        path = Path.of(stairs, money)
        positives.append(path.positives[-1])
        readings["hits"].append(path.hits(lengths))
        readings["roc"].append(path.true_positive_rate(FALSE_POSITIVE_RATES))
        readings["precision"].append(path.precision(RECALLS))
        if money is not None:
            readings["money"].append(path.caught(lengths))
        for name, (core, parameters) in jobs.items():
            metrics[name].append(float(core(stairs, **parameters)))
    arrays = {key: np.array(rows) for key, rows in readings.items()}
    return Readings(
        hits=arrays["hits"],
        positives=np.array(positives),
        money=arrays["money"] if resampler.money is not None else None,
        roc=arrays["roc"],
        precision=arrays["precision"],
        metrics={name: np.array(values) for name, values in metrics.items()},
    )


def _on_steps(heights: np.ndarray) -> np.ndarray:
    """What is gained from corner to corner when it comes with the positives."""
    gained = np.zeros(2 * len(heights) + 2)
    gained[2::2] = heights
    return gained


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, 0 where whole is 0."""
    return np.divide(part, whole, out=np.zeros_like(part, dtype=np.float64), where=whole > 0)
