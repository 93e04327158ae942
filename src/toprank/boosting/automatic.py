"""Settings that depend on the number of training rows, chosen by `experiments.defaults`."""

from __future__ import annotations

import numpy as np

__all__ = ["automatic_leaves", "automatic_penalty", "automatic_rate"]

_FEW_ROWS = 2_000


def automatic_rate(n_rows: int) -> float:
    """Return the learning rate for a number of training rows: 0.05 to 500 rows, 0.3 from 20,000 on.

    Examples
    --------
    >>> [round(automatic_rate(n), 3) for n in (100, 5_000, 1_000_000)]
    [0.05, 0.153, 0.3]
    """
    share = np.log(n_rows / 500) / np.log(40)
    return float(0.05 * 6 ** np.clip(share, 0, 1))


def automatic_leaves(n_rows: int) -> int:
    """Return the most leaves of a tree: 16 below 2,000 training rows, 31 from there on."""
    return 16 if n_rows < _FEW_ROWS else 31


def automatic_penalty(n_rows: int) -> float:
    """Return the L2 penalty on leaf values: 1 below 2,000 training rows, 5 from there on."""
    return 1.0 if n_rows < _FEW_ROWS else 5.0
