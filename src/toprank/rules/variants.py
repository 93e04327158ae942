"""AreaBoosting: the variants of PRankBoost, whatever the rules are about."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from toprank.base import TrainingData
from toprank.rules.boosted import BoostedRules
from toprank.rules.boosters import VARIANTS, PRankBooster
from toprank.rules.checks import check_choice
from toprank.rules.rounds import EarlyStopping
from toprank.rules.source import WeakRankerSource

__all__ = ["AreaBoosting"]

STALL_ROUNDS = 10


class AreaBoosting(BoostedRules):
    """Base of the estimators that boost on the area under the recall-precision curve."""

    weak: str
    switch_at: int | str | None
    step: str
    learning_rate: float

    def _check_variant(self) -> None:
        """Raise a ValueError when `weak`, `step` or `switch_at` is none that exists."""
        check_choice(self, "weak", tuple(VARIANTS))
        check_choice(self, "step", ("area", "exact"))
        round_number = isinstance(self.switch_at, Integral) and int(self.switch_at) >= 0
        if self.switch_at not in (None, "stall") and not round_number:
            raise ValueError(
                f"{type(self).__name__}: switch_at must be a round (0, 1, ...), 'stall' or None, "
                f"got {self.switch_at!r}"
            )

    def _waits_for_stall(self) -> bool:
        return self.weak == "mix4" and self.switch_at == "stall"

    def _holds_out(self) -> bool:
        return super()._holds_out() or self._waits_for_stall()

    def _after_round(self, booster: Any, stopping: EarlyStopping) -> None:
        if self._waits_for_stall() and stopping.stalled(STALL_ROUNDS):
            booster.switch()

    def _area_booster(self, source: WeakRankerSource, data: TrainingData) -> PRankBooster:
        """The booster of the chosen variant on a source of rules."""
        switch_at = self.n_estimators // 2 if self.switch_at is None else self.switch_at
        return PRankBooster(
            source,
            data.y,
            data.sample_weight,
            weak=self.weak,
            switch_at=None if self._waits_for_stall() else int(switch_at),
            step=self.step,
            learning_rate=self.learning_rate,
        )
