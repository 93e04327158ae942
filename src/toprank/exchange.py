"""What processes that share one list of rows tell each other: sums, extremes, and gathered arrays.

Code that needs figures of the whole list takes an `Exchange`. Alone, a process has the whole list and every
figure is its own; the workers of a cluster answer through `toprank.boosting.xgboost_helpers`.
"""

from __future__ import annotations

import numpy as np

__all__ = ["ALONE", "Exchange"]


class Exchange:
    """One process that holds all rows. Subclasses speak for several.

    Attributes
    ----------
    rank, size : int
        The number of this process, and how many there are.

    Examples
    --------
    >>> import numpy as np
    >>> ALONE.combine(np.array([1.0, 2.0]), "sum").tolist()
    [1.0, 2.0]
    """

    rank = 0
    size = 1

    def combine(self, array: np.ndarray, how: str) -> np.ndarray:
        """Return the elementwise "sum", "min" or "max" of an array over the processes."""
        return array

    def gather(self, columns: np.ndarray) -> tuple[np.ndarray, slice]:
        """Return the columns of all processes one after the other, and where one's own are among them."""
        if self.size == 1:
            return columns, slice(0, columns.shape[1])
        sizes = np.zeros(self.size)
        sizes[self.rank] = columns.shape[1]
        ends = np.cumsum(self.combine(sizes, "sum")).astype(np.int64)
        mine = slice(int(ends[self.rank]) - columns.shape[1], int(ends[self.rank]))
        whole = np.zeros((len(columns), int(ends[-1])))
        whole[:, mine] = columns
        return self.combine(whole, "sum"), mine


ALONE = Exchange()
