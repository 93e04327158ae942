"""One calibrated model of every ranker, for the tests that only look at it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from contract_settings import small

from toprank import CalibratedRanker


def table(seed: int = 0, n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """`amount` decides, `hour` helps a little, `noise` does nothing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"noise": rng.normal(size=n), "amount": rng.normal(size=n), "hour": rng.normal(size=n)}
    ).round(2)
    y = (3 * frame["amount"] + frame["hour"] + 0.3 * rng.normal(size=n) > 3).astype(int)
    return frame, y.to_numpy()


@cache
def calibrated(name: str) -> CalibratedRanker:
    """A ranker, calibrated on the rows of `table`."""
    return CalibratedRanker(small(name), cv=2).fit(*table())
