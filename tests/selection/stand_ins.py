"""Models that cost nothing, for tests of how a comparison is run."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

HANDS: dict[str, Any] = {}  # the time of a clock that only Slow moves, and how long its fits take
SEEN: list[dict[str, Any]] = []  # what each Recorder was given, in order


class ByColumn(BaseEstimator):
    """Scores rows by one column, plus noise of its own."""

    def __init__(self, column: int = 0, noise: float = 0.0, seed: int = 0) -> None:
        self.column = column
        self.noise = noise
        self.seed = seed

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        values = np.asarray(X, dtype=float)[:, self.column]
        drawn = np.random.default_rng(self.seed + len(values)).normal(size=len(values))
        return values + self.noise * drawn


class Recorder(ByColumn):
    """Notes what it is trained on and tested on."""

    def __init__(self, name: str = "recorder", column: int = 0, noise: float = 0.0) -> None:
        super().__init__(column, noise)
        self.name = name

    def fit(self, X, y, sample_weight=None, qid=None, groups=None, time=None, gap=None):
        SEEN.append({"name": self.name, "X": X, "y": y, "sample_weight": sample_weight, "qid": qid,
                     "groups": groups, "time": time, "gap": gap})  # fmt: skip
        return self


class Failing(ByColumn):
    """Fails at the n-th fit (of all that share a counter), or gives scores that are no numbers."""

    COUNTS: dict[str, int] = {}  # noqa: RUF012 - shared by the copies on purpose

    def __init__(self, counter: str = "", at: int = 1, how: str = "error") -> None:
        super().__init__()
        self.counter = counter
        self.at = at
        self.how = how

    def fit(self, X, y):
        self.COUNTS[self.counter] = self.COUNTS.get(self.counter, 0) + 1
        if self.COUNTS[self.counter] >= self.at:
            if self.how == "error":
                raise RuntimeError("no such luck\nsecond line")
            if self.how == "interrupt":
                raise KeyboardInterrupt
            if self.how == "signal":  # as the boosters do: keep what there is and carry on
                try:
                    os.kill(os.getpid(), signal.SIGINT)
                    for _ in range(10_000_000):
                        pass
                except KeyboardInterrupt:
                    return self
        return self

    def decision_function(self, X):
        scores = super().decision_function(X)
        return scores * np.nan if self.how == "nan" else scores


class Slow(ByColumn):
    """Takes time on a clock of its own."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name

    def fit(self, X, y):
        HANDS["now"] += HANDS["durations"][self.name].pop(0)
        return self
