"""A report with everything in it, names and cells hostile on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from toprank import report

HOSTILE = (
    "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\u2028&amp;"
)
FORMULA = '=HYPERLINK("http://example.invalid","x")'
N_ROWS = 3000


def hostile_report(**changes: Any) -> dict[str, Any]:
    """Simulated payments with five models, time, money, alerts with reasons, and importance."""
    rng = np.random.default_rng(7)
    y = rng.random(N_ROWS) < 0.06
    scores = rng.normal(size=N_ROWS) + 2.2 * y
    ids = np.array([f"tx-{row:05d}" for row in range(N_ROWS)], dtype=object)
    first = np.argsort(-scores, kind="stable")[:250]
    ids[first[1]], ids[first[2]] = HOSTILE, FORMULA
    alerts = pd.DataFrame(
        {
            "rank": np.arange(1, 251),
            "id": ids[first],
            "score": scores[first],
            "probability": np.linspace(0.99, 0.2, 250),
            "probability_low": np.linspace(0.97, 0.1, 250),
            "probability_high": np.linspace(0.999, 0.4, 250),
            "value": rng.lognormal(4, 1, 250).round(2),
            "reasons": [f"amount = {row} raises the score by 1.3; {HOSTILE}" for row in range(250)],
        }
    )
    options: dict[str, Any] = {
        "model": f"model {HOSTILE}",
        "scores_by_model": {
            "noisy <b>model</b>": scores + rng.normal(size=N_ROWS),
            "rounded": scores.round(0),
            "=SUM(A1)": scores + 0.3 * rng.normal(size=N_ROWS),
        },
        "ids": ids,
        "alerts": alerts,
        "importance": {"amount": 2.0, HOSTILE: 1.0, "hour": 0.5},
        "time": np.datetime64("2025-01-01") + (np.arange(N_ROWS) // 50).astype("timedelta64[D]"),
        "value": rng.lognormal(4, 1, N_ROWS),
        "cost_of_check": 5,
        "currency": "$",
        "title": f"Payments {HOSTILE}",
        "n_resamples": 60,
        "n_jobs": 1,
    }
    return report.evaluate(y, scores, **{**options, **changes})
