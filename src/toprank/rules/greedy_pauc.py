"""GreedyPAUC: a linear score built one coefficient at a time for its partial AUC."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from toprank.base import BaseRanker, TrainingData
from toprank.docstrings import fill_docstring
from toprank.metrics import partial_auc
from toprank.progress import progress
from toprank.sampling import sample_classes
from toprank.validation import PARAMETER_CONSTRAINTS, Interval, StrOptions, check_range

__all__ = ["GreedyPAUC"]

N_ANGLES = 24  # tried over the half circle on a sample
N_REFINEMENTS = 10  # tried near the best of them
SAMPLE_ROWS = 20_000  # of each class
GOLDEN = (np.sqrt(5.0) - 1) / 2


@fill_docstring
class GreedyPAUC(BaseRanker):
    """Rank by a linear combination of the columns, chosen greedily for its partial AUC.

    Starts from the column with the greatest partial AUC, up or down, and adds one column after the
    other [1]_: the score so far, f, becomes cos(t) f + sin(t) x for the angle t that maximises the
    empirical partial AUC of the training rows, both scaled to unit variance. Covering the half circle
    covers both forms f + c x and c f + x of the pairwise combination. Columns that do not help are
    left out. The angle is looked for on a sample of up to 20,000 rows of each class, and it and two
    others near it are tried on all rows; each trial costs one sort.

    Parameters
    ----------
    fpr : tuple (a, b), default=(0.0, 0.1)
        Range of false positive rates, 0 <= a < b <= 1.
    selection : {"ranked", "greedy"}, default="ranked"
        Which column comes next: the one with the next greatest partial AUC of its own, or the one
        whose combination with the score so far has the greatest (as many more trials as columns).
    n_passes : int, default=1
        How often all columns are tried.
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_columns,)
        Coefficients on the scale of the data as given.
    order_ : ndarray of int
        The columns in the order in which they were added.
    train_scores_ : ndarray
        Partial AUC of the training rows after each of them.
    %(classes)s

    References
    ----------
    .. [1] Ricamato & Tortorella (2011), "Partial AUC maximization in a linear combination of
       dichotomizers", Pattern Recognition 44.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from toprank import GreedyPAUC
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> model = GreedyPAUC(fpr=(0, 0.05), random_state=0).fit(X, y)
    >>> bool((model.train_scores_[1:] > model.train_scores_[:-1]).all())
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "selection": [StrOptions({"ranked", "greedy"})],
        "n_passes": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        fpr: tuple[float, float] = (0.0, 0.1),
        *,
        selection: str = "ranked",
        n_passes: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.fpr = fpr
        self.selection = selection
        self.n_passes = n_passes
        self.random_state = random_state
        self.verbose = verbose

    @fill_docstring
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GreedyPAUC:
        """Learn the coefficients.

        Parameters
        ----------
        %(X)s
            Numbers.
        %(y)s
        %(sample_weight)s

        Returns
        -------
        self : GreedyPAUC
        """
        data = self._check_training(X, y, sample_weight)
        random = check_random_state(self.random_state)
        sample = sample_classes(data.y > 0, SAMPLE_ROWS, SAMPLE_ROWS, random)
        search = _Search(data, check_range(self.fpr), sample)
        with progress(None, type(self).__name__, enabled=self.verbose) as advance:
            search.start()
            for _ in range(self.n_passes):
                waiting = search.ranked_columns()
                while waiting:
                    column = waiting[0]
                    if self.selection == "greedy":  # the best combination on the sample
                        column = max(waiting, key=lambda j: (search.coarse(j)[1], -j))
                    waiting.remove(column)
                    search.add(column)
                    advance()
        self.coef_ = search.coefficients
        self.order_ = np.array(search.order, dtype=np.int64)
        self.train_scores_ = np.array(search.values)
        self._set_threshold(self._raw_scores(data.X), data)
        return self

    def _raw_scores(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_, dtype=np.float64)


class _Search:
    """The score so far, its coefficients, and the search for the next column."""

    def __init__(self, data: TrainingData, fpr: tuple[float, float], sample: np.ndarray) -> None:
        self.data = data
        self.sample = sample
        deviations = np.array([_deviation(cells, data.sample_weight) for cells in data.X.T])
        only_rounding = 1e-12 * np.abs(data.X).max(axis=0)
        self.spread = np.where(deviations > only_rounding, deviations, 0.0)
        self.coefficients = np.zeros(data.X.shape[1])
        self.scores = np.zeros(len(data.y))
        self.deviation = 1.0
        self.value = -np.inf
        self.order: list[int] = []
        self.values: list[float] = []
        weight = data.sample_weight

        def measure(scores: np.ndarray, rows: Any = slice(None)) -> float:
            part = None if weight is None else weight[rows]
            return partial_auc(data.y[rows], scores, fpr=fpr, sample_weight=part)

        self.measure: Callable[..., float] = measure

    def column(self, j: int, rows: Any = slice(None)) -> np.ndarray:
        """Return a column at unit variance (zeros if it is constant)."""
        cells = np.asarray(self.data.X[rows, j], dtype=np.float64)
        return cells / self.spread[j] if self.spread[j] > 0 else np.zeros_like(cells)

    def start(self) -> None:
        """Start from the column with the greatest partial AUC, up or down."""
        usable = np.flatnonzero(self.spread > 0).tolist()
        both = [
            (self.measure(sign * self.column(j, self.sample), self.sample), -j, sign)
            for j in usable
            for sign in (1.0, -1.0)
        ]
        self.single = {-j: value for value, j, _ in sorted(both)}  # the greater of the two
        if not both:
            return
        _, negated, sign = max(both)
        self._set(-negated, 0.0, sign, self.measure(sign * self.column(-negated)))

    def ranked_columns(self) -> list[int]:
        """Return the columns but the last one added, the greatest partial AUC of their own first."""
        waiting = [j for j in self.single if not self.order or j != self.order[-1]]
        return sorted(waiting, key=lambda j: (-self.single[j], j))

    def add(self, j: int) -> None:
        """Add a column at its best angle, if that raises the partial AUC of all rows."""
        width = np.pi / N_ANGLES
        coarse, _ = self.coarse(j)
        on_sample = self._trial(j, self.sample)
        near = _golden_section(on_sample, coarse - width, coarse + width, start=coarse)
        on_all = self._trial(j, slice(None))
        value, angle = max((on_all(t), t) for t in (near, near - width / 8, near + width / 8))
        if value > self.value + 1e-12:
            self._set(j, np.cos(angle), np.sin(angle), value)

    def _trial(self, j: int, rows: Any) -> Callable[[float], float]:
        """Return the partial AUC of the combination with a column as a function of the angle."""
        column, unit = self.column(j, rows), self.scores[rows] / self.deviation
        return lambda t: self.measure(np.cos(t) * unit + np.sin(t) * column, rows)

    def coarse(self, j: int) -> tuple[float, float]:
        """Return the best of evenly spaced angles on the sample, and its partial AUC there."""
        # straight up and straight down leave out the score so far, and are not tried
        angles = (np.arange(1, N_ANGLES) / N_ANGLES - 0.5) * np.pi
        trial = self._trial(j, self.sample)
        values = [trial(t) for t in angles]
        best = int(np.argmax(values))
        return float(angles[best]), float(values[best])

    def _set(self, j: int, keep: float, add: float, value: float) -> None:
        self.coefficients *= keep / self.deviation
        self.coefficients[j] += add / self.spread[j]
        self.scores = self.scores * (keep / self.deviation) + add * self.column(j)
        self.deviation = max(_deviation(self.scores, self.data.sample_weight), 1e-300)
        self.value = value
        self.order.append(j)
        self.values.append(value)


def _golden_section(
    function: Callable[[float], float], low: float, high: float, *, start: float
) -> float:
    """Return the best of the points that a golden-section search for a maximum tries, or `start`."""
    tried = {start: function(start)}

    def value(point: float) -> float:
        if point not in tried:
            tried[point] = function(point)
        return tried[point]

    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    for _ in range(N_REFINEMENTS - 1):
        if value(left) >= value(right):
            high, right = right, left
            left = high - GOLDEN * (high - low)
        else:
            low, left = left, right
            right = low + GOLDEN * (high - low)
    return max((value, point) for point, value in tried.items())[1]


def _deviation(values: np.ndarray, weight: np.ndarray | None) -> float:
    """Return the weighted standard deviation."""
    values = np.asarray(values, dtype=np.float64)
    mean = np.average(values, weights=weight)
    return float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
